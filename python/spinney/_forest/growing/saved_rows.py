"""What a forest keeps of its training rows ⇄ an entry of a model file's header."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._forest.growing.rows import Draws
from spinney._forest.growing.training_rows import TrainingRows
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.forest import FittedForest

_MOST_DRAWN = 1000  # entries drawn for each there is


def rows_to_json(rows: TrainingRows) -> dict[str, Any]:
    """Return the entry of the training rows."""
    entry: dict[str, Any] = {
        "leaf": array_to_json(rows.leaf),
        "target": array_to_json(rows.target),
        "balanced": bool(rows.balanced),
    }
    for name in ("growth_weight", "row_weight"):
        weight = getattr(rows, name)
        entry[name] = None if weight is None else array_to_json(weight)
    draws = rows.draws
    if draws is not None:
        entry["draws"] = {
            "replace": bool(draws.replace),
            "unit_of_row": array_to_json(draws.unit_of_row),
            "strata": [array_to_json(stratum) for stratum in draws.strata],
            "n_drawn": [int(n) for n in draws.n_drawn],
        }
    return entry


def rows_from_json(entry: dict[str, Any], forest: FittedForest, n_classes: list[int] | None, seed: int) -> TrainingRows:
    """Turn back what `rows_to_json` gives."""
    n_nodes = np.diff(forest.root.astype(np.int64))
    leaf = array_from_json(entry.get("leaf"), ("uint16", "uint32"), (forest.n_trees, None))
    n_rows = leaf.shape[1]
    if n_rows == 0 or (leaf.max(axis=1) >= n_nodes).any():
        refuse("is damaged: its training rows are in no leaf")
    kind = "float64" if n_classes is None else "int32"
    n_columns = None if n_classes is None else len(n_classes)  # a criterion of the user's may have other values than y
    target = array_from_json(entry.get("target"), (kind,), (n_rows, n_columns))
    if target.shape[1] == 0:
        refuse("is damaged: its training rows have no target")
    if n_classes is not None and ((target < 0) | (target >= np.array(n_classes))).any():
        refuse("is damaged: a training row has no class")
    if not np.isfinite(target).all():
        refuse("is damaged: a target is not finite")
    draws = None
    if "draws" in entry:
        draws = _draws_from_json(field(entry, "draws", dict), n_rows, seed)
    return TrainingRows(
        leaf,
        target,
        n_classes or [],
        _weight(entry.get("growth_weight"), n_rows),
        _weight(entry.get("row_weight"), n_rows),
        draws,
        field(entry, "balanced", bool) and n_classes is not None,
        n_nodes.tolist(),
    )


def _weight(fields: Any, n_rows: int) -> NDArray[np.float64] | None:
    if fields is None:
        return None
    weight = array_from_json(fields, ("float64",), (n_rows,))
    if not np.isfinite(weight).all() or (weight < 0).any():
        refuse("is damaged: a weight is impossible")
    return weight


def _draws_from_json(entry: dict[str, Any], n_rows: int, seed: int) -> Draws:
    unit_of_row = array_from_json(entry.get("unit_of_row"), ("uint32",), (n_rows,))
    strata = [array_from_json(fields, ("uint32",), (None,)) for fields in field(entry, "strata", list)]
    n_drawn, replace = field(entry, "n_drawn", list), field(entry, "replace", bool)
    sound = len(strata) == len(n_drawn) > 0
    drawn_units = np.unique(unit_of_row[unit_of_row != 2**32 - 1])
    for stratum, n in zip(strata, n_drawn, strict=False):
        most = len(stratum) * _MOST_DRAWN if replace else len(stratum)
        sound = sound and type(n) is int and len(stratum) > 0 and 1 <= n <= most
        sound = sound and bool(np.isin(stratum, drawn_units).all())
    if not sound or not np.isin(drawn_units, np.concatenate(strata)).all():
        refuse("is damaged: its samples of rows are impossible")
    return Draws(n_rows, replace, seed, unit_of_row, strata, n_drawn)
