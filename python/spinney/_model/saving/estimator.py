"""Estimators that can be saved, loaded and pickled.

A family is its own codec. An estimator that holds one model that predicts has two hooks, `_to_header` and
`_from_header`, for what it remembers beside the model; one that is made of several models writes its file itself, in
`_file_parts` and `_from_file`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

import spinney._engine as _engine
from spinney._model.file.container import faults_named, field, from_bytes, refuse, to_bytes
from spinney._model.file.disk import Target, label_of, read_file
from spinney._model.file.values import parameters_from_json, parameters_to_json
from spinney._model.model import FittedModel
from spinney._model.saving.model_part import FittedPart
from spinney._model.saving.pickle import is_own, seal, unseal
from spinney._names import MODULE_OF, __version__, public

_MODEL_FILE, _SEALED, _OUTSIDE = "_model_file", "_sealed", "_outside"  # entries of a pickled estimator


class Kept:
    """Mixin for estimators that model files hold, whatever they are made of."""

    _is_class_target: ClassVar[bool] = False

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        """Return the header and the trees of the estimator's file."""
        raise NotImplementedError

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        """Turn back what `_file_parts` gives."""
        raise NotImplementedError

    def _kept_parameters(self) -> dict[str, Any]:
        """Return the parameters, as far as they are not numbers, text and collections of these in a form that is."""
        parameters: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return parameters

    @classmethod
    def _parameters_again(cls, kept: dict[str, Any]) -> dict[str, Any]:
        """Turn back what `_kept_parameters` gives; `refuse` what cannot be."""
        return kept

    def _to_bytes(self) -> bytes:
        """Return the model file."""
        if class_name(self) is None:
            raise TypeError(
                f"{type(self).__name__} is not one of spinney's own estimators and cannot be loaded again. Pickle it."
            )
        return to_bytes(*self._file_parts())

    # ---- pickles ---------------------------------------------------------------------------------------------

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return attributes as they are pickled."""
        return state

    def _unpickled(self, state: dict[str, Any]) -> dict[str, Any]:
        """Turn back what `_pickled` gives, checked."""
        return state

    def __getstate__(self) -> dict[str, Any]:
        state = self._pickled(dict(super().__getstate__()))  # type: ignore[call-overload]
        file = state.pop(_MODEL_FILE, None)
        # a subclass may change on its way what it adds
        inside = {name: value for name, value in state.items() if is_own(self) or is_own(value)}
        rest = {
            name: value for name, value in state.items() if name not in inside
        }  # a subclass may change what it adds
        sealed, outside = seal((type(self).__qualname__, file is not None, inside), Kept)
        held = {} if file is None else {_MODEL_FILE: file}
        return rest | held | {_SEALED: sealed, _OUTSIDE: outside}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rest = dict(state)
        with faults_named("this pickle"):
            if _SEALED not in rest:
                refuse("is damaged, or made by an older spinney: it lacks its checksum")
            kind, has_file, inside = unseal(rest.pop(_SEALED), rest.pop(_OUTSIDE, None))
            if kind != type(self).__qualname__ or has_file != (_MODEL_FILE in rest):
                refuse("is damaged: its model and its attributes do not go together")
            if is_own(self) and rest.keys() - {_MODEL_FILE}:
                refuse("is damaged: it has attributes that were not pickled")
            state = self._unpickled(inside | rest)
        super().__setstate__(state)  # type: ignore[misc]


class KeptModel(Kept):
    """Mixin for estimators that hold one model that predicts. Pickles hold it as the bytes of a model file."""

    _model_attribute: ClassVar[str]  # where a fitted estimator holds the model
    _tied_to_trees: ClassVar[tuple[str, ...]] = ()  # attributes of `_from_header` that refer to the model's trees

    # ---- what a family says of itself ------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        """Return the header entries of what only the estimator remembers, beside what predicts."""
        return {}

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        """Turn back what `_to_header` gives, as fitted attributes; `refuse` what does not fit the model."""
        return {}

    # ---- what follows from it --------------------------------------------------------------------------------

    def _part(self) -> FittedPart:
        """Return what a fitted estimator has learned, as files hold it."""
        model: FittedModel = getattr(self, self._model_attribute)
        return FittedPart.of(self.__dict__, model)

    @classmethod
    def _of_part(cls, header: dict[str, Any], part: FittedPart) -> Self:
        """Make the fitted estimator of a header."""
        if cls._is_class_target != (part.classes is not None):
            refuse("is damaged: its estimator and its classes do not go together")
        if cls._model_attribute != part.model.attribute:
            refuse("is damaged: its estimator and its trees do not go together")
        estimator: Self = unfitted(cls, header)
        estimator.__dict__.update(part.attributes() | cls._from_header(header, part))
        return estimator

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        part = self._part()
        return estimator_header(self) | part.header(), part.model.trees()

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        return cls._of_part(header, FittedPart.from_header(header, file, 0, file.n_trees))

    # ---- pickles ---------------------------------------------------------------------------------------------

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if state.get(self._model_attribute) is None:
            return state
        part = self._part().without_labels()
        entries = self._to_header() if state.keys() & set(self._tied_to_trees) else {}
        in_file = {*part.attributes(), *self._tied_to_trees} - {"classes_"}
        rest = {name: value for name, value in state.items() if name not in in_file}
        return rest | {_MODEL_FILE: part.to_bytes(entries)}

    def _unpickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if _MODEL_FILE not in state:
            return state
        header, file = from_bytes(state[_MODEL_FILE])
        part = FittedPart.from_header(header, file, 0, file.n_trees)
        learned = self._from_header(header, part) if self._tied_to_trees else {}
        tied = {name: learned[name] for name in self._tied_to_trees if name in learned}
        rest = {name: value for name, value in state.items() if name != _MODEL_FILE}
        return part.attributes() | tied | rest


def estimator_header(estimator: Any) -> dict[str, Any]:
    """Return what the header of a model file says of an estimator, beside what `FittedPart` says."""
    header: dict[str, Any] = opening(estimator, estimator._kept_parameters()) | estimator._to_header()
    return header


def opening(estimator: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the first entries of every header: which spinney, which estimator, its parameters."""
    estimator._validate_params()
    return {"spinney": __version__, "estimator": class_name(estimator), "parameters": parameters_to_json(parameters)}


def unfitted(kind: Any, header: dict[str, Any], **more: Any) -> Any:
    """Make an estimator with the parameters of a header."""
    parameters = kind._parameters_again(parameters_from_json(field(header, "parameters", dict)))
    estimator = kind(**parameters | more)
    estimator._validate_params()
    return estimator


def template_to_json(estimator: Any) -> dict[str, Any]:
    """Return an unfitted estimator of spinney, which may have others as parameters, as parameters hold it."""
    if not isinstance(estimator, Kept) or class_name(estimator) is None:
        raise TypeError(
            f"A model file holds models of spinney; one of the parameters is a {type(estimator).__name__}. Pickle the "
            "model instead."
        )
    parameters = estimator._kept_parameters()
    inner = {name: template_to_json(value) for name, value in parameters.items() if isinstance(value, Kept)}
    plain = {name: value for name, value in parameters.items() if name not in inner}
    return {"estimator": class_name(estimator), "parameters": parameters_to_json(plain), "templates": inner}


def template_from_json(fields: Any) -> Any:
    """Turn back what `template_to_json` gives."""
    if not isinstance(fields, dict):
        refuse("is damaged: one of its parameters is no estimator")
    inner = {name: template_from_json(value) for name, value in field(fields, "templates", dict).items()}
    return unfitted(class_named(fields, Kept), fields, **inner)


def class_name(estimator: Any) -> str | None:
    """Return the name under which an estimator is found again; None if it is not one of spinney's own."""
    name = type(estimator).__name__
    return name if name in MODULE_OF and public(name) is type(estimator) else None


Wanted = TypeVar("Wanted", bound=Kept)


def class_named(header: dict[str, Any], wanted: type[Wanted]) -> type[Wanted]:
    """Return the estimator that a header names, if it is of the kind that is wanted."""
    name = field(header, "estimator", str)
    kind = public(name) if name in MODULE_OF else None
    if not isinstance(kind, type) or not issubclass(kind, Kept):
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
    with faults_named(label_of(file)):
        header, model_file = from_bytes(data)
        return class_named(header, Kept)._from_file(header, model_file)
