"""Parameters and class labels ⇄ JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import nearest_name, with_article
from spinney._model.file.codec import Field
from spinney._model.file.container import refuse
from spinney._names import MODULE_OF, public

_NUMBER_TYPES = frozenset(
    [
        *("bool", "float16", "float32", "float64"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    ]
)
_COLLECTIONS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_NUMBER_ONLY: dict[str, Any] = {"random_state": None, "cv": 10}  # saved instead of other values
_SLACK = 2**20  # bytes that labels may take beyond the width of the longest


# ---- parameters -------------------------------------------------------------------------------------------


def parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON; objects that only a fit needs are replaced by defaults."""
    return {name: _parameter_to_json(name, value) for name, value in parameters.items()}


def _parameter_to_json(name: str, value: object) -> Any:
    is_word = name == "cv" and isinstance(value, str)
    if name in _NUMBER_ONLY and not isinstance(value, (int, np.integer)) and not is_word:
        return _NUMBER_ONLY[name]
    if name == "oob_score" and not isinstance(value, (bool, np.bool_, str)):
        return True
    if name == "callbacks" or (name == "scoring" and not isinstance(value, str)):
        return None
    if name == "criterion" and value is not None and not isinstance(value, str):
        return "user"  # code is not saved: a loaded model predicts, and needs a criterion only for another fit
    if name == "cost_matrix":
        frame = labelled_rows(value)
        value = value if frame is None else frame
    try:
        return _to_json(value)
    except TypeError as error:
        raise TypeError(
            f"The parameter {name} cannot be saved in a model file: {error} Use numbers, strings, lists, dicts and "
            "arrays of these, or pickle the model."
        ) from None


def parameters_from_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Read parameters that `parameters_to_json` wrote."""
    return {name: _from_json(value) for name, value in fields.items()}


def _to_json(value: object) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    for name, kind in _COLLECTIONS.items():
        if isinstance(value, kind):
            return {name: [_to_json(item) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_to_json(key), _to_json(item)] for key, item in value.items()]}
    if isinstance(value, Options) and type(value).__name__ in MODULE_OF:
        return {"options": [type(value).__name__, _to_json(value.get_params())]}
    if hasattr(value, "__array__"):
        return {"array": _array_to_json(np.asarray(value))}
    raise TypeError(f"it holds {with_article(type(value).__name__)}.")


def _array_to_json(array: NDArray[Any]) -> dict[str, Any]:
    if array.dtype.name not in _NUMBER_TYPES and array.dtype.kind not in "OU":
        raise TypeError(f"it holds an array of {array.dtype}.")
    return {"type": array.dtype.name if array.dtype.kind in "fiub" else "object", "items": _to_json(array.tolist())}


def _from_json(value: object) -> Any:
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, content = next(iter(value.items()), ("", None))
    if kind == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if kind in _COLLECTIONS and isinstance(content, list):
        return _COLLECTIONS[kind](_from_json(item) for item in content)
    if kind == "dict" and isinstance(content, list):
        return {_from_json(key): _from_json(item) for key, item in content}
    if kind == "options" and isinstance(content, list) and len(content) == 2:
        return _options_from_json(content[0], _from_json(content[1]))
    if kind == "array" and isinstance(content, dict) and content.get("type") in {*_NUMBER_TYPES, "object"}:
        return np.array(_from_json(content.get("items")), dtype=content["type"])
    return refuse("is damaged: its header holds an unknown value")


def _options_from_json(name: Any, values: Any) -> Options:
    kind = public(name) if isinstance(name, str) and name in MODULE_OF else None
    if not isinstance(kind, type) or not issubclass(kind, Options) or not isinstance(values, dict):
        refuse("is damaged: its header holds an unknown value")
    if values.keys() - {option.name for option in fields(kind)}:
        refuse(f"is damaged: its header holds options that {name} does not have")
    return kind(**values)


# ---- class labels -----------------------------------------------------------------------------------------


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Return the labels of one output, with their dtype."""
    dtype = labels.dtype
    if dtype.kind == "U":
        width = dtype.itemsize // 4
        longest = max(len(label) for label in labels.tolist())
        return {"type": "str", "width": width if dtype.itemsize * len(labels) <= _SLACK else longest} | {
            "labels": labels.tolist()
        }
    if dtype.name in _NUMBER_TYPES:
        return {"type": dtype.name, "labels": labels.tolist()}
    values = [value.item() if isinstance(value, np.generic) else value for value in labels.tolist()]
    kinds = {str if isinstance(value, str) else type(value) for value in values}
    if dtype.kind == "O" and len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return {"type": "object", "labels": [str(value) for value in values] if kinds == {str} else values}
    raise TypeError(
        f"The class labels cannot be saved in a model file: they are {_described(dtype, kinds)}. Fit on labels that "
        "are all strings, all integers, all floats or all booleans."
    )


def _described(dtype: np.dtype[Any], kinds: set[type]) -> str:
    if dtype.kind != "O":
        return f"of the type {dtype}"
    return "objects of the types " + ", ".join(sorted(kind.__name__ for kind in kinds))


def labels_from_json(fields: Any) -> NDArray[Any]:
    """Read class labels that `labels_to_json` wrote; they must be distinct."""
    known = fields.get("labels") if isinstance(fields, dict) else None
    if not isinstance(known, list) or not known:
        refuse("is damaged: an output has no class labels")
    kind = fields.get("type")
    expected = _python_type(kind, known[0])
    if expected is None or any(type(label) is not expected for label in known) or len(set(known)) < len(known):
        refuse("is damaged: its class labels are inconsistent")
    if kind == "str":
        return np.array(known, dtype=f"U{_checked_width(fields.get('width'), known)}")
    array = np.array(known, dtype=kind)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        refuse("is damaged: a class label is not finite")
    return array


def labels(*, key: str = "") -> Field:
    """Save the labels of one output."""
    return Field(labels_to_json, lambda value, name, known: labels_from_json(value), key)


def _python_type(kind: object, first: object) -> type | None:
    if kind == "str":
        return str
    if kind == "object":
        return type(first) if type(first) in (str, int, float, bool) else None
    if kind not in _NUMBER_TYPES:
        return None
    return {"b": bool, "f": float}.get(np.dtype(kind).kind, int)


def _checked_width(width: object, labels: list[str]) -> int:
    longest = max(len(label) for label in labels)
    if type(width) is not int or width < longest or (width > longest and width * 4 * len(labels) > _SLACK):
        refuse("is damaged: the width of its class labels is impossible")
    return width


def labelled_rows(cost: Any) -> dict[Any, dict[Any, Any]] | None:
    """Return a data frame as a dict of rows by label; None if it is not a data frame.

    The labels are pandas' index, or the first column of any other data frame.
    """
    if not hasattr(cost, "columns") or not hasattr(cost, "to_numpy"):
        return None
    if hasattr(cost, "index"):
        labels, names, cells = cost.index.tolist(), list(cost.columns), cost.to_numpy()
    else:
        labels, names = cost[cost.columns[0]].to_list(), list(cost.columns)[1:]
        cells = cost.to_numpy()[:, 1:]
    if len(set(labels)) < len(labels) or len(set(names)) < len(names):
        raise ValueError("cost_matrix has a label twice. Give each class one row and one column.")
    return {label: dict(zip(names, row, strict=True)) for label, row in zip(labels, cells.tolist(), strict=True)}


@dataclass(frozen=True, repr=False)
class Options:
    """A group of parameters. Subclasses are frozen dataclasses, which model files store by class name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options by name, as in scikit-learn.

        Parameters
        ----------
        deep : bool, default=True
            Accepted for compatibility with scikit-learn; has no effect.

        Returns
        -------
        dict
            Values by name.
        """
        return {option.name: getattr(self, option.name) for option in fields(self)}

    @classmethod
    def check_names(cls, names: set[str], parameter: str) -> None:
        """Raise ValueError for options that do not exist, suggesting the closest name."""
        known = [option.name for option in fields(cls)]
        for name in sorted(names - set(known)):
            hint = nearest_name(name, known, f"It has {', '.join(known)}.")
            raise ValueError(f"{parameter} ({cls.__name__}) has no option '{name}'. {hint}")

    def __repr__(self) -> str:
        current = {option.name: repr(getattr(self, option.name)) for option in fields(self)}
        default = {option.name: repr(option.default) for option in fields(self)}
        changed = [f"{name}={value}" for name, value in current.items() if value != default[name]]
        return f"{type(self).__name__}({', '.join(changed)})"
