"""The record of a fit by rpart's rules ⇄ an entry of a model file's header."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.container import field, refuse
from spinney._model.saving.model_part import FittedPart
from spinney._model.tree import FittedTree
from spinney._tree.rpart.record import RpartRecord

_BY_NODE = ("risk", "complexity", "improve", "prediction", "weight", "credit")
_METHODS = {"class": True, "anova": False, "poisson": False, "exp": False}  # and whether there are classes


def record_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry; none if the tree was not grown by rpart's rules. Rows' nodes are not kept."""
    record: RpartRecord | None = attributes.get("rpart_")
    if record is None:
        return {}
    names = (*_BY_NODE, "counts", "events", "cp_table")
    arrays = {name: _to_json(getattr(record, name)) for name in names}
    return {
        "rpart": arrays
        | {"method": record.method, "total_weight": float(record.total_weight), "n_dropped": record.n_dropped}
    }


def record_from_json(header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
    """Turn back what `record_to_json` gives, as fitted attributes; it has to fit the tree."""
    if "rpart" not in header:
        return {}
    entries, tree = field(header, "rpart", dict), part.model
    if not isinstance(tree, FittedTree):
        refuse("is damaged: it has a record of rpart, but does not hold a single tree")
    method, n_dropped = field(entries, "method", str), field(entries, "n_dropped", int)
    if _METHODS.get(method) != (part.classes is not None) or tree.n_outputs != 1:
        _refuse("method", "does not go with its target")
    if not 0 <= n_dropped < 2**32:
        _refuse("n_dropped", "is not a count")
    n_classes = len(part.classes[0]) if part.classes is not None else 0
    is_rate = method in ("poisson", "exp")
    arrays: dict[str, Any] = {name: _numbers(entries, name, (tree.node_count,)) for name in _BY_NODE}
    arrays["counts"] = _numbers(entries, "counts", (tree.node_count, n_classes)) if n_classes else None
    arrays["events"] = _numbers(entries, "events", (tree.node_count,)) if is_rate else None
    codes = arrays["prediction"]
    if n_classes and not ((codes >= 0) & (codes < n_classes) & (codes == np.floor(codes))).all():
        _refuse("prediction", "names classes that do not exist")
    total_weight = field(entries, "total_weight", float)
    if not 0 < total_weight < np.inf:
        _refuse("total_weight", "is not a positive weight")
    record = RpartRecord(
        method=method,
        tree=tree,
        where=None,
        cp_table=_table(entries),
        total_weight=total_weight,
        n_dropped=n_dropped,
        **arrays,
    )
    return {"rpart_": record}


def _to_json(array: NDArray[np.float64] | None) -> Any:
    """Return numbers as lists; those that are not finite become None."""
    if array is None:
        return None
    finite = np.isfinite(array)
    return np.asarray(array).tolist() if finite.all() else np.where(finite, array, None).tolist()  # type: ignore[call-overload]


def _numbers(entries: dict[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    numbers = field(entries, name, list)
    flat = [item for line in numbers for item in line] if len(shape) == 2 and _is_nested(numbers) else numbers
    if not all(type(item) in (int, float, type(None)) for item in flat):
        _refuse(name, "does not hold numbers")
    if len(shape) == 2 and not (_is_nested(numbers) and all(len(line) == shape[1] for line in numbers)):
        _refuse(name, "has the wrong shape")
    if len(numbers) != shape[0]:
        _refuse(name, "has the wrong length")
    found = np.array([np.nan if item is None else item for item in flat], dtype=np.float64)
    if np.isinf(found).any():
        _refuse(name, "holds impossible numbers")
    return found.reshape(shape)


def _table(entries: dict[str, Any]) -> NDArray[np.float64]:
    lines = field(entries, "cp_table", list)
    width = len(lines[0]) if lines and isinstance(lines[0], list) else 0
    if width not in (3, 5):
        _refuse("cp_table", "has the wrong shape")
    table = _numbers(entries, "cp_table", (len(lines), width))
    if not ((table[:, 1] >= 0) & (table[:, 1] < 2**32)).all():
        _refuse("cp_table", "counts no splits")
    return table


def _is_nested(numbers: list[Any]) -> bool:
    return all(isinstance(line, list) for line in numbers)


def _refuse(name: str, fault: str) -> None:
    refuse(f"is damaged: in its record of rpart, {name!r} {fault}")
