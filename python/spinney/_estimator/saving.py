"""Estimators ⇄ model files: the header's first entries, templates of estimators, and `load`."""

from __future__ import annotations

from typing import Any, TypeVar

from spinney._estimator.estimator import Estimator, class_name
from spinney._model.file.container import faults_named, field, from_bytes, refuse
from spinney._model.file.disk import Target, label_of, read_file
from spinney._model.file.values import parameters_from_json, parameters_to_json
from spinney._names import MODULE_OF, __version__, public

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
    with faults_named(label_of(file)):
        header, model_file = from_bytes(data)
        return class_named(header, Estimator)._from_file(header, model_file)
