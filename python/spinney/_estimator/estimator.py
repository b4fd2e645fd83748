"""Base class of all estimators: checks of parameter names, errors for missing attributes, files and pickles."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.csv_format import CsvFormat
from spinney._data.display import nearest_name, with_article
from spinney._estimator.docstrings import EstimatorDocstring
from spinney._estimator.other_libraries import (
    advise_argument,
    advise_attribute,
    advise_parameter,
    advise_prediction,
    advise_value,
    argument_called,
)
from spinney._estimator.parallel import Watch, is_unwatched
from spinney._estimator.soft_labels import accepts_soft_labels
from spinney._model.file.container import (
    Target,
    csv_format_of,
    field,
    from_bytes,
    label_of,
    model_file_errors,
    read_file,
    refuse,
    to_bytes,
    with_csv_format,
    write_file,
)
from spinney._model.file.values import parameters_from_json, parameters_to_json
from spinney._model.saving.pickle import is_own, seal, unseal
from spinney._names import MODULE_OF, __version__, public

MODEL_FILE = "_model_file"  # entry of a pickled estimator: its model as the bytes of a file
_SEALED, _OUTSIDE = "_sealed", "_outside"  # entries of a pickled estimator

# methods whose unknown arguments are explained
PREDICTIONS = frozenset({"predict", "predict_proba", "predict_log_proba", "decision_function"})


class Estimator(BaseEstimator):
    """Base class of all estimators.

    It checks the names and values of parameters, explains missing attributes, and supports files and pickles.
    Subclasses implement `_file_parts` and `_from_file`, which convert a fitted estimator to the header and the trees of
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
    _csv_format: CsvFormat | None = None  # how the CSV file of the training table was read

    # ---- parameters ------------------------------------------------------------------------------------------

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__ is not None:
            cls.__doc__ = EstimatorDocstring(cls.__doc__)  # type: ignore[assignment]
        if "fit" in cls.__dict__:
            cls.fit = _named_arguments(accepts_soft_labels(cls.__dict__["fit"]))
        for name in PREDICTIONS & cls.__dict__.keys():
            if callable(cls.__dict__[name]):  # not a method that only some models have
                setattr(cls, name, _advised(cls.__dict__[name]))
        if cls._is_class_target and inspect.isfunction(score := getattr(cls, "score", None)):
            cls.score = accepts_soft_labels(score)
        store_signature(cls)

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        check_parameter_names(cls, [name for name in kwargs if name not in cls._other_names], cls._other_library_advice)
        made: Self = super().__new__(cls)
        return made

    @classmethod
    def _in_own_names(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters with scikit-learn's names replaced by spinney's."""
        renamed = dict(params)
        for name in cls._other_names.keys() & params.keys():
            own = cls._other_names[name]
            twice = [known for known in own if known in params]
            if twice:
                raise TypeError(f"{cls.__name__}: {name!r} is another name for {twice[0]!r}. Pass only one of them.")
            renamed |= dict.fromkeys(own, renamed.pop(name))
        return renamed

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

    def _validate_params(self) -> None:
        """Check the parameters other than the defaults; these checks take a tenth of the time of a small fit."""
        cls, params = type(self), self.get_params(deep=False)
        changed = {name: v for name, v in params.items() if v is not getattr(cls, name, dataclasses.MISSING)}
        try:
            validate_parameter_constraints(cls._parameter_constraints, changed, caller_name=cls.__name__)
        except InvalidParameterError as error:
            raise InvalidParameterError(_with_sorted_options(str(error))) from None

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0. Use None for all the cores the process may use, or a number.")

    @property
    def _n_threads(self) -> int:
        """Number of threads for the engine; 0 means all."""
        return self.n_jobs or 0

    @property
    def _sorts_all_rows(self) -> bool:
        """Whether a fit sorts all rows in memory, because no parameter allows bins."""
        return False

    def _n_folds_held_out(self) -> int:
        """Return the minimum number of folds of which a fit holds out one or each; 0: none are held out."""
        return 0

    # ---- attributes ------------------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # so that type checkers report missing attributes

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
                advice = advise_attribute(name, vars(self))
                if advice is None:
                    raise
                text = f"{type(self).__name__} has no attribute '{name}'. {advice}"
                raise AttributeError(text, name=name, obj=self) from None

    def _about(self) -> About:
        """Return a summary of the fitted model."""
        raise NotImplementedError

    # ---- files -----------------------------------------------------------------------------------------------

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        """Return the header and the trees of the estimator's file."""
        raise NotImplementedError

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        """Return the estimator of a file, the inverse of `_file_parts`."""
        raise NotImplementedError

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the parameters for a file: numbers, text and collections of these."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        return parameters

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a file, the inverse of `_saved_parameters`; `refuse` invalid ones."""
        return saved

    def _to_bytes(self) -> bytes:
        """Return the model file."""
        if class_name(self) is None:
            raise TypeError(
                f"{type(self).__name__} is not an estimator of spinney and cannot be loaded again. Pickle it."
            )
        header, trees = self._file_parts()
        return to_bytes(with_csv_format(header, self._csv_format), trees)

    def save(self, file: Target) -> None:
        """Save the fitted model to a file for `spinney.load` and, for most models, `spinney.load_predictor`.

        The file contains numbers and text, but no code. Parameters that only `fit` uses are saved if they are numbers
        or text: a random state that is not an integer becomes None, folds that are not a number become the default, and
        callbacks and scorers that are functions become None. At most 100 rows of ``cp_table_`` are saved; out-of-fold
        predictions and the nodes of the training rows are not. The file of a forest fitted with ``keep_rows=True``
        contains the rows drawn for each tree, and the targets, leaves and out-of-bag predictions of the training rows.
        The out-of-bag score and curve are always saved. The members of an ensemble must be models of spinney; the rows
        that were drawn for each member are not saved. The file of an imputer contains the values of its training rows.

        Parameters
        ----------
        file : str, path or binary file
            Where to write. A file at a path is written atomically: an existing file is replaced in one step.
        """
        check_is_fitted(self)
        write_file(file, self._to_bytes())

    # ---- pickles ---------------------------------------------------------------------------------------------

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes to pickle."""
        return state

    def _unpickled(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return checked attributes, the inverse of `_pickled`."""
        return state

    def __getstate__(self) -> dict[str, Any]:
        state = self._pickled(dict(super().__getstate__()))
        file = state.pop(MODEL_FILE, None)
        # subclasses of users may change the attributes that they add
        inside = {name: value for name, value in state.items() if is_own(self) or is_own(value)}
        rest = {name: value for name, value in state.items() if name not in inside}
        sealed, outside = seal((type(self).__qualname__, file is not None, inside), Estimator)
        held = {} if file is None else {MODEL_FILE: file}
        return rest | held | {_SEALED: sealed, _OUTSIDE: outside}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rest = dict(state)
        with model_file_errors("this pickle"):
            if _SEALED not in rest:
                refuse("is damaged: its checksum is missing")
            kind, has_file, inside = unseal(rest.pop(_SEALED), rest.pop(_OUTSIDE, None))
            if kind != type(self).__qualname__ or has_file != (MODEL_FILE in rest):
                refuse("is damaged: its attributes do not match its model")
            if is_own(self) and rest.keys() - {MODEL_FILE}:
                refuse("is damaged: it has attributes that were not pickled")
            state = self._unpickled(inside | rest)
        super().__setstate__(state)

    def __dask_tokenize__(self) -> object:
        """Return a token of the fitted state; Dask's default would use only the parameters of a dataclass."""
        from dask.tokenize import normalize_token

        return normalize_token((type(self), self.__getstate__()))


def class_name(estimator: object) -> str | None:
    """Return the public name of an estimator's class; None if it does not belong to spinney."""
    name = type(estimator).__name__
    return name if name in MODULE_OF and public(name) is type(estimator) else None


# ---- names of parameters and of the arguments of `fit` ---------------------------------------------------------------


def store_signature(cls: type) -> None:
    """Store the signature of a class that defines `__init__`, for scikit-learn, help() and documentation."""
    if "__init__" not in cls.__dict__:
        return
    own = inspect.signature(cls.__init__)  # type: ignore[misc]
    # scikit-learn needs it in every fit, clone and repr; computing it takes a millisecond for 40 parameters.
    cls.__init__.__signature__ = own  # type: ignore[misc]
    # help() and documentation show this one, not that of __new__.
    cls.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=list(own.parameters.values())[1:], return_annotation=inspect.Signature.empty
    )


def _with_sorted_options(error: str) -> str:
    """Return scikit-learn's error for the value of a parameter with its options sorted, and the nearest of them."""
    options: list[str] = []

    def in_order(found: re.Match[str]) -> str:
        options.extend(sorted(re.findall("'([^']*)'", found[0])))
        return "{" + ", ".join(map(repr, options)) + "}"

    text = re.sub(r"\{'[^{}]*'\}", in_order, error)
    value = re.search(r"Got '(.*)' instead\.$", error)
    if value is None:
        return text
    return f"{text} {advise_value(value[1], options) or nearest_name(value[1], options, '')}".rstrip()


def check_parameter_names(cls: type, names: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """Refuse names that are not parameters of a class."""
    known: list[str] | None = None
    for name in names:
        known = known or [p for p in inspect.signature(cls.__init__).parameters if p != "self"]  # type: ignore[misc]
        if name not in known:
            raise TypeError(unknown_parameter(cls, name, known, elsewhere))


def unknown_parameter(cls: type, name: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """Return the error for an unknown parameter, with advice or the nearest known name."""
    known = sorted(known)
    advice = elsewhere.get(name) or advise_parameter(name, known) or _advise_fit(cls, name)
    if advice is None:
        advice = nearest_name(name, known, f"Its parameters are: {', '.join(known)}.")
    return f"{cls.__name__} has no parameter '{name}'. {advice}"


def _advise_fit(cls: type, name: str) -> str | None:
    """Return advice to pass a name to `fit`; None if it is no argument of `fit`."""
    fit = getattr(cls, "fit", None)
    arguments = {} if fit is None else inspect.signature(fit).parameters
    ours = name if name in arguments else argument_called(name, arguments)
    return None if ours is None else "Pass it to fit." if ours == name else f"Pass it to fit, as {ours}."


def _unknown_argument(cls: type[Estimator], name: str, known: Iterable[str]) -> str:
    """Return the error for an unknown argument of `fit`."""
    known = [argument for argument in known if argument != "self"]
    advice = cls._other_library_advice.get(name)
    advice = advice or advise_argument(name, known, inspect.signature(cls).parameters, cls.__name__)
    if advice is None:
        advice = nearest_name(name, known, f"It takes {', '.join(known[:-1])} and {known[-1]}.")
    return f"{cls.__name__}.fit has no argument '{name}'. {advice}"


def _named_arguments(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fit` with errors for unknown arguments that give advice; long fits show their progress."""
    known = inspect.signature(fit).parameters
    takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in known.values())

    @wraps(fit)
    def checked(self: Estimator, *args: object, **kwargs: object) -> Any:
        for name in kwargs:
            if name not in known and not takes_any:
                raise TypeError(_unknown_argument(type(self), name, known))
        if not is_unwatched():
            return fit(self, *args, **kwargs)
        with Watch(type(self).__name__ if getattr(self, "verbose", None) is None else ""):
            return fit(self, *args, **kwargs)

    return checked


def _advised(predict: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of predictions with errors for other libraries' arguments that name our method."""
    known = inspect.signature(predict).parameters
    if any(argument.kind is argument.VAR_KEYWORD for argument in known.values()):
        return predict

    @wraps(predict)
    def checked(self: Estimator, *args: object, **kwargs: object) -> Any:
        for name in kwargs:
            if name not in known:
                cls = type(self)
                takes = " and ".join(["X", *(name for name in list(known)[2:])])
                advice = advise_prediction(name, known, dir(cls)) or f"It takes {takes}."
                raise TypeError(f"{cls.__name__}.{predict.__name__} has no argument '{name}'. {advice}")
        return predict(self, *args, **kwargs)

    return checked


def accept_other_names(init: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that also accepts scikit-learn's names of parameters."""

    @wraps(init)
    def accepting(self: Estimator, *args: object, **kwargs: object) -> None:
        init(self, *args, **self._in_own_names(kwargs))

    return accepting


Method = TypeVar("Method", bound=Callable[..., Any])


class UnavailableError(AttributeError):
    """The error for an attribute that an estimator does not have, with the reason."""


def only_if(why_not: Callable[[Any], str | None]) -> Callable[[Method], Method]:
    """Make a method available only where ``why_not(estimator)`` is None; else `hasattr` is false, and a call raises.

    The reason continues a sentence after the name of the method: "needs ...".
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
    """Summary of a model for the command line and reports, independent of its family.

    Attributes
    ----------
    noun : str
        What the model is: a tree, a forest, boosting.
    size : dict
        Its size and scores by name, for JSON.
    lines : dict
        The same for a table: label and text of each line.
    sentence : str
        The same in one line.
    trees : sequence of estimators, or None
        The trees that can be read one by one.
    why_no_trees : str
        Why there are none, as a sentence that states what to do.
    title_of_tree : callable, or None
        From the number of a tree, counted from 0, to its title; None: no title.
    is_shown : bool
        Whether there is more to show than a sentence.
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
    """Return the first entries of every header: the version of spinney, the estimator, its parameters."""
    estimator._validate_params()
    return {"spinney": __version__, "estimator": class_name(estimator), "parameters": parameters_to_json(parameters)}


def unfitted(kind: type[Wanted], header: dict[str, Any], **more: Estimator | None) -> Wanted:
    """Return an unfitted estimator with the parameters of a header."""
    parameters = kind._loaded_parameters(parameters_from_json(field(header, "parameters", dict)))
    estimator = kind(**parameters | more)
    estimator._validate_params()
    return estimator


def template_to_json(estimator: object) -> dict[str, Any]:
    """Return an unfitted estimator of spinney, and the estimators among its parameters, for JSON."""
    if not isinstance(estimator, Estimator) or class_name(estimator) is None:
        raise TypeError(
            f"Model files can store only models of spinney; one of the parameters is "
            f"{with_article(type(estimator).__name__)}. Pickle the model instead."
        )
    parameters = estimator._saved_parameters()
    inner = {name: template_to_json(value) for name, value in parameters.items() if isinstance(value, Estimator)}
    plain = {name: value for name, value in parameters.items() if name not in inner}
    return {"estimator": class_name(estimator), "parameters": parameters_to_json(plain), "templates": inner}


def template_from_json(fields: object) -> Estimator:
    """Return the estimator, the inverse of `template_to_json`."""
    if not isinstance(fields, dict):
        refuse("is damaged: one of its parameters is not an estimator")
    inner = {name: template_from_json(value) for name, value in field(fields, "templates", dict).items()}
    return unfitted(class_named(fields, Estimator), fields, **inner)


def class_named(header: dict[str, Any], wanted: type[Wanted]) -> type[Wanted]:
    """Return the class that a header names; refused unless it is a subclass of `wanted`."""
    name = field(header, "estimator", str)
    kind = public(name) if name in MODULE_OF else None
    if not isinstance(kind, type) or not issubclass(kind, Estimator):
        refuse(f"holds a model that this spinney does not know, {name[:100]!r}: upgrade spinney")
    if not issubclass(kind, wanted):
        refuse(f"is damaged: one of its models is {with_article(name)}, which consists of several models")
    return kind


def load(file: Target) -> Any:
    """Load a model that was saved with its `save` method.

    Parameters
    ----------
    file : str, path or binary file
        The file.

    Returns
    -------
    estimator
        The fitted estimator, with its class and parameters.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or written by a newer version of spinney.
    OSError
        If there is no such file, or it cannot be read.

    See Also
    --------
    load_predictor : Loads a model for prediction only, without scikit-learn.

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
        model = class_named(header, Estimator)._from_file(header, model_file)
        if (format_ := csv_format_of(header)) is not None:
            model._csv_format = format_
        return model
