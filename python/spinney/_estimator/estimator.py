"""The base class of every estimator: parameters by name, clear errors for missing attributes, files and pickles."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._estimator.docstrings import EstimatorDocstring
from spinney._estimator.other_libraries import advise_argument, advise_parameter, argument_called
from spinney._model.file.container import (
    Target,
    field,
    from_bytes,
    label_of,
    model_file_errors,
    read_file,
    refuse,
    to_bytes,
    write_file,
)
from spinney._model.file.values import parameters_from_json, parameters_to_json
from spinney._model.saving.pickle import is_own, seal, unseal
from spinney._names import MODULE_OF, __version__, public

MODEL_FILE = "_model_file"  # entry of a pickled estimator: its model as the bytes of a file
_SEALED, _OUTSIDE = "_sealed", "_outside"  # entries of a pickled estimator


class Estimator(BaseEstimator):
    """Refuses unknown parameters, checks the others, explains missing attributes, and can be saved and pickled.

    A family is its own codec: `_file_parts` and `_from_file` turn a fitted estimator into the header and the trees of
    its file and back.
    """

    _is_class_target: ClassVar[bool] = False
    _missing_attribute_reasons: ClassVar[
        dict[str, str]
    ] = {}  # why attributes of related estimators are missing, after their name
    _other_library_advice: ClassVar[
        dict[str, str]
    ] = {}  # what to do instead, for parameters and arguments of other libraries
    _other_names: ClassVar[dict[str, tuple[str, ...]]] = {}  # names of scikit-learn, and the parameters they stand for

    # ---- parameters ------------------------------------------------------------------------------------------

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__ is not None:
            cls.__doc__ = EstimatorDocstring(cls.__doc__)  # type: ignore[assignment]
        if "fit" in cls.__dict__:
            cls.fit = _named_arguments(cls.__dict__["fit"])
        store_signature(cls)

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        check_parameter_names(cls, [name for name in kwargs if name not in cls._other_names], cls._other_library_advice)
        made: Self = super().__new__(cls)
        return made

    @classmethod
    def _in_own_names(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters by the names that are their own."""
        found = dict(params)
        for name in cls._other_names.keys() & params.keys():
            own = cls._other_names[name]
            twice = [known for known in own if known in params]
            if twice:
                raise TypeError(f"{cls.__name__}: {name!r} is another name of {twice[0]!r}. Pass one of them.")
            found |= dict.fromkeys(own, found.pop(name))
        return found

    def set_params(self, **params: object) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params : dict
            New values.

        Returns
        -------
        self
            The estimator.
        """
        params = self._in_own_names(params)
        known = self.get_params(deep=True)
        for name in params:
            if name not in known and "__" not in name:
                raise ValueError(unknown_parameter(type(self), name, known, self._other_library_advice))
        return super().set_params(**params)  # type: ignore[no-any-return]

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0. Use None for all the cores the process may use, or a number.")

    @property
    def _n_threads(self) -> int:
        """Threads as the engine takes them: 0 stands for all."""
        return self.n_jobs or 0

    @property
    def _sorts_all_rows(self) -> bool:
        """Whether a fit sorts all rows in memory, because no parameter says that it may bin them."""
        return False

    def _n_folds_held_out(self) -> int:
        """Return the fewest folds that a fit splits the rows into, to hold each of them or one out; 0: none."""
        return 0

    # ---- attributes ------------------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # a type checker is to notice a missing attribute

        def __getattr__(self, name: str) -> Any:
            if name in self._missing_attribute_reasons:
                raise AttributeError(
                    f"{type(self).__name__}.{name} {self._missing_attribute_reasons[name]}", name=name, obj=self
                )
            try:
                return object.__getattribute__(self, name)  # fails again, with the reason of a property
            except AttributeError as error:
                if isinstance(error.__cause__, UnavailableError):
                    raise AttributeError(str(error.__cause__), name=name, obj=self) from None
                raise

    def _about(self) -> About:
        """Return the fitted model in a few words and numbers."""
        raise NotImplementedError

    # ---- files -----------------------------------------------------------------------------------------------

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        """Return the header and the trees of the estimator's file."""
        raise NotImplementedError

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        """Turn back what `_file_parts` gives."""
        raise NotImplementedError

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the parameters as files hold them: numbers, text and collections of these."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        return parameters

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        """Turn back what `_saved_parameters` gives; `refuse` what cannot be."""
        return saved

    def _to_bytes(self) -> bytes:
        """Return the model file."""
        if class_name(self) is None:
            raise TypeError(
                f"{type(self).__name__} is not one of spinney's own estimators and cannot be loaded again. Pickle it."
            )
        return to_bytes(*self._file_parts())

    def save(self, file: Target) -> None:
        """Write the fitted model to a file for `spinney.load`; for `spinney.load_predictor`, if it predicts a target.

        The file holds numbers and text, no code: loading it runs none. Parameters that only a fit needs are saved if
        they are numbers or text: a random state that is not an integer becomes None, folds that are not a number become
        the default, callbacks and scorers that are functions become None. Of ``cp_table_`` at most 100 rows are saved;
        out-of-fold predictions and the nodes of the training rows are not. Which rows were drawn for the trees of a
        forest is saved with ``keep_rows=True``, as are the targets and leaves of its training rows and what was
        predicted for them out of bag; the out-of-bag score and curve always are. Members of an ensemble must be models
        of spinney that are no ensembles of any models themselves; which rows they were fitted on is not saved. An
        imputer's file holds the values of its training rows, which it lends.

        Parameters
        ----------
        file : str, path or binary file
            Where to write. At a path, the file is complete or not there: an older one is replaced in one step.
        """
        check_is_fitted(self)
        write_file(file, self._to_bytes())

    # ---- pickles ---------------------------------------------------------------------------------------------

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return attributes as they are pickled."""
        return state

    def _unpickled(self, state: dict[str, Any]) -> dict[str, Any]:
        """Turn back what `_pickled` gives, checked."""
        return state

    def __getstate__(self) -> dict[str, Any]:
        state = self._pickled(dict(super().__getstate__()))
        file = state.pop(MODEL_FILE, None)
        # a subclass may change what it adds
        inside = {name: value for name, value in state.items() if is_own(self) or is_own(value)}
        rest = {name: value for name, value in state.items() if name not in inside}
        sealed, outside = seal((type(self).__qualname__, file is not None, inside), Estimator)
        held = {} if file is None else {MODEL_FILE: file}
        return rest | held | {_SEALED: sealed, _OUTSIDE: outside}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rest = dict(state)
        with model_file_errors("this pickle"):
            if _SEALED not in rest:
                refuse("is damaged: it lacks its checksum")
            kind, has_file, inside = unseal(rest.pop(_SEALED), rest.pop(_OUTSIDE, None))
            if kind != type(self).__qualname__ or has_file != (MODEL_FILE in rest):
                refuse("is damaged: its model and its attributes do not go together")
            if is_own(self) and rest.keys() - {MODEL_FILE}:
                refuse("is damaged: it has attributes that were not pickled")
            state = self._unpickled(inside | rest)
        super().__setstate__(state)

    def __dask_tokenize__(self) -> object:
        """Return what tells models apart; by default Dask would see no more than the parameters of a dataclass."""
        from dask.tokenize import normalize_token

        return normalize_token((type(self), self.__getstate__()))


def class_name(estimator: object) -> str | None:
    """Return the name under which an estimator is found again; None if it is not one of spinney's own."""
    name = type(estimator).__name__
    return name if name in MODULE_OF and public(name) is type(estimator) else None


# ---- names of parameters and of the arguments of `fit` ---------------------------------------------------------------


def store_signature(cls: type) -> None:
    """Store the signature of a class that has its own `__init__`, for scikit-learn, help() and documentation."""
    if "__init__" not in cls.__dict__:
        return
    own = inspect.signature(cls.__init__)  # type: ignore[misc]
    # Stored, as scikit-learn asks for it in every fit, clone and repr: each time a millisecond for 40 parameters.
    cls.__init__.__signature__ = own  # type: ignore[misc]
    # help() and documentation show this one, not that of __new__.
    cls.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=list(own.parameters.values())[1:], return_annotation=inspect.Signature.empty
    )


def check_parameter_names(cls: type, names: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """Refuse names that are no parameters of a class."""
    known: list[str] | None = None
    for name in names:
        known = known or [p for p in inspect.signature(cls.__init__).parameters if p != "self"]  # type: ignore[misc]
        if name not in known:
            raise TypeError(unknown_parameter(cls, name, known, elsewhere))


def unknown_parameter(cls: type, name: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """Return the error for a parameter that does not exist, with the nearest that does or what to do instead."""
    known = sorted(known)
    advice = elsewhere.get(name) or advise_parameter(name, known) or _advise_fit(cls, name)
    if advice is None:
        nearest = get_close_matches(name, known, n=1)
        advice = f"Did you mean '{nearest[0]}'?" if nearest else f"Its parameters are: {', '.join(known)}."
    return f"{cls.__name__} has no parameter '{name}'. {advice}"


def _advise_fit(cls: type, name: str) -> str | None:
    """Say that a name is an argument of `fit`; None if it is not."""
    fit = getattr(cls, "fit", None)
    arguments = {} if fit is None else inspect.signature(fit).parameters
    ours = name if name in arguments else argument_called(name, arguments)
    return None if ours is None else "Pass it to fit." if ours == name else f"Pass it to fit, as {ours}."


def _unknown_argument(cls: type[Estimator], name: str, known: Iterable[str]) -> str:
    """Return the error for an argument of `fit` that does not exist."""
    known = [argument for argument in known if argument != "self"]
    advice = cls._other_library_advice.get(name)
    advice = advice or advise_argument(name, known, inspect.signature(cls).parameters, cls.__name__)
    if advice is None:
        nearest = get_close_matches(name, known, n=1)
        advice = f"Did you mean '{nearest[0]}'?" if nearest else f"It takes {', '.join(known[:-1])} and {known[-1]}."
    return f"{cls.__name__}.fit has no argument '{name}'. {advice}"


def _named_arguments(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Have `fit` refuse arguments that do not exist in words of ours, not Python's."""
    known = inspect.signature(fit).parameters
    if any(argument.kind is argument.VAR_KEYWORD for argument in known.values()):
        return fit

    @wraps(fit)
    def checked(self: Estimator, *args: object, **kwargs: object) -> Any:
        for name in kwargs:
            if name not in known:
                raise TypeError(_unknown_argument(type(self), name, known))
        return fit(self, *args, **kwargs)

    return checked


def taking_other_names(init: Callable[..., None]) -> Callable[..., None]:
    """Have an `__init__` take the names that scikit-learn has for parameters."""

    @wraps(init)
    def taking(self: Estimator, *args: object, **kwargs: object) -> None:
        init(self, *args, **self._in_own_names(kwargs))

    return taking


Method = TypeVar("Method", bound=Callable[..., Any])


class UnavailableError(AttributeError):
    """The sentence says why an estimator lacks an attribute."""


def only_if(why_not: Callable[[Any], str | None]) -> Callable[[Method], Method]:
    """Have a method only where ``why_not(estimator)`` is None; else `hasattr` is false, and a call says why.

    The reason goes on after the name of the method: "needs ...".
    """

    def decorate(method: Method) -> Method:
        def check(estimator: object) -> bool:
            reason = why_not(estimator)
            if reason is not None:
                raise UnavailableError(f"{type(estimator).__name__}.{method.__name__} {reason}")
            return True

        return cast(Method, available_if(check)(method))

    return decorate


@dataclasses.dataclass(frozen=True)
class About:
    """What the command line and reports say of a model without knowing its family.

    Attributes
    ----------
    noun : str
        What people call it: a tree, a forest, boosting.
    size : dict
        Its size and scores by name, as JSON can hold them.
    lines : dict
        The same for a table: label and text of each line.
    sentence : str
        The same in one line.
    trees : sequence of estimators, or None
        The trees that can be read one by one.
    why_no_trees : str
        Why there are none, as a sentence that says what to do.
    title_of_tree : callable, or None
        From the number of one of the trees, counted from 0, to what it is; None: it speaks for itself.
    is_shown : bool
        Whether there is anything to show of it but a sentence.
    """

    noun: str
    size: dict[str, Any] = dataclasses.field(default_factory=dict)
    lines: dict[str, str] = dataclasses.field(default_factory=dict)
    sentence: str = ""
    trees: Sequence[Any] | None = None
    why_no_trees: str = ""
    title_of_tree: Callable[[int], str] | None = None
    is_shown: bool = True


Wanted = TypeVar("Wanted", bound=Estimator)


def opening(estimator: Estimator, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the first entries of every header: which spinney, which estimator, its parameters."""
    estimator._validate_params()
    return {"spinney": __version__, "estimator": class_name(estimator), "parameters": parameters_to_json(parameters)}


def unfitted(kind: type[Wanted], header: dict[str, Any], **more: Estimator | None) -> Wanted:
    """Make an estimator with the parameters of a header."""
    parameters = kind._loaded_parameters(parameters_from_json(field(header, "parameters", dict)))
    estimator = kind(**parameters | more)
    estimator._validate_params()
    return estimator


def template_to_json(estimator: object) -> dict[str, Any]:
    """Return an unfitted estimator of spinney, which may have others as parameters, as parameters hold it."""
    if not isinstance(estimator, Estimator) or class_name(estimator) is None:
        raise TypeError(
            f"A model file holds models of spinney; one of the parameters is a {type(estimator).__name__}. Pickle the "
            "model instead."
        )
    parameters = estimator._saved_parameters()
    inner = {name: template_to_json(value) for name, value in parameters.items() if isinstance(value, Estimator)}
    plain = {name: value for name, value in parameters.items() if name not in inner}
    return {"estimator": class_name(estimator), "parameters": parameters_to_json(plain), "templates": inner}


def template_from_json(fields: object) -> Estimator:
    """Turn back what `template_to_json` gives."""
    if not isinstance(fields, dict):
        refuse("is damaged: one of its parameters is no estimator")
    inner = {name: template_from_json(value) for name, value in field(fields, "templates", dict).items()}
    return unfitted(class_named(fields, Estimator), fields, **inner)


def class_named(header: dict[str, Any], wanted: type[Wanted]) -> type[Wanted]:
    """Return the estimator that a header names, if it is of the kind that is wanted."""
    name = field(header, "estimator", str)
    kind = public(name) if name in MODULE_OF else None
    if not isinstance(kind, type) or not issubclass(kind, Estimator):
        refuse(f"holds a model that this spinney does not know, {name[:100]!r}: upgrade spinney")
    if not issubclass(kind, wanted):
        refuse(f"is damaged: one of its models is a {name}, which is made of several")
    return kind


def load(file: Target) -> Any:
    """Read a model that its `save` method has written.

    Parameters
    ----------
    file : str, path or binary file
        What to read.

    Returns
    -------
    estimator
        Of the class that was saved, fitted, with its parameters.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or written by a newer spinney.
    OSError
        If there is no such file, or it cannot be read.

    See Also
    --------
    load_predictor : Predicts only, without scikit-learn.

    Examples
    --------
    >>> import io
    >>> import spinney
    >>> model = spinney.DecisionTreeClassifier().fit([[1.0], [2.0]], ["low", "high"])
    >>> file = io.BytesIO()
    >>> model.save(file)
    >>> _ = file.seek(0)
    >>> spinney.load(file).predict([[1.2]])
    array(['low'], dtype='<U4')
    """
    data = read_file(file)
    with model_file_errors(label_of(file)):
        header, model_file = from_bytes(data)
        return class_named(header, Estimator)._from_file(header, model_file)
