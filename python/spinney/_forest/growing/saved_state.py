"""What a forest has learned beside its trees ⇄ an entry of a model file's header."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.row_fingerprint import RowPrint
from spinney._estimator.support import ranges_from_json, ranges_to_json
from spinney._forest.growing.saved_rows import rows_from_json, rows_to_json
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.forest import FittedForest
from spinney._model.saving.model_part import FittedPart

_OUT_OF_BAG = ("oob_decision_function_", "oob_prediction_")


def _flat(means: Any) -> NDArray[np.float64]:
    """Return out-of-bag means as the trees' flat values, (n_rows, value_width)."""
    parts = means if isinstance(means, list) else [means]
    return np.column_stack(parts)


def _row_print(numbers: Any) -> RowPrint:
    if not isinstance(numbers, list) or len(numbers) != 2 or any(type(number) is not int for number in numbers):
        refuse("is damaged: the fingerprint of its training rows is unusable")
    return RowPrint(*numbers)


def forest_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry."""
    entry: dict[str, Any] = {"seed": int(attributes["_seed"])}
    if "shrinkage_" in attributes:
        entry["shrinkage"] = float(attributes["shrinkage_"])
    if "oob_score_" in attributes:
        score = float(attributes["oob_score_"])
        entry["oob_score"] = score if math.isfinite(score) else None
    if "oob_curve_" in attributes:
        entry["oob_curve"] = array_to_json(attributes["oob_curve_"])
    if attributes.get("_ranges") is not None:
        entry["ranges"] = ranges_to_json(attributes["_ranges"])
    if attributes.get("_training_rows") is not None:
        entry["rows"] = rows_to_json(attributes["_training_rows"])
        if attributes.get("_row_print") is not None:
            entry["rows"]["print_of_all"] = [attributes["_row_print"].table, attributes["_row_print"].target]
        for name in _OUT_OF_BAG:
            if name in attributes:
                entry["rows"]["out_of_bag"] = array_to_json(_flat(attributes[name]))
    return {"forest": entry}


def forest_from_json(header: dict[str, Any], part: FittedPart, has_threshold: bool = False) -> dict[str, Any]:
    """Turn back what `forest_to_json` gives; older files lack the ranges and the rows."""
    assert isinstance(part.model, FittedForest)
    entry = field(header, "forest", dict)
    if ("offset" in entry) != has_threshold:
        refuse("is damaged: its estimator and its threshold do not go together")
    found: dict[str, Any] = {"_seed": field(entry, "seed", int)}
    if not 0 <= found["_seed"] < 2**31:
        refuse("is damaged: its seed is not a number between 0 and 2³¹")
    if "shrinkage" in entry:
        found["shrinkage_"] = field(entry, "shrinkage", float)
        if not 0 <= found["shrinkage_"] < math.inf:
            refuse("is damaged: the strength of its shrinkage is impossible")
    if "oob_score" in entry:
        score = entry["oob_score"]
        if score is not None and (type(score) not in (int, float) or not math.isfinite(score)):
            refuse("is damaged: its out-of-bag score is not a finite number")
        found["oob_score_"] = math.nan if score is None else float(score)
    if "oob_curve" in entry:
        found["oob_curve_"] = array_from_json(entry["oob_curve"], ("float64",), (part.model.n_trees,))
    if "ranges" in entry:
        found["_ranges"] = ranges_from_json(field(entry, "ranges", dict), part.schema.n_features)
    if "rows" in entry:
        n_classes = None if part.classes is None else [len(labels) for labels in part.classes]
        fields = field(entry, "rows", dict)
        rows = rows_from_json(fields, part.model, n_classes, found["_seed"])
        found |= {"_training_rows": rows, "_draws": rows.draws}
        if "print_of_all" in fields:  # older files have a "print" that looked at some rows only, and are not checked
            found["_row_print"] = _row_print(fields["print_of_all"])
        if "out_of_bag" in fields:
            shape = (rows.n_rows, part.model.engine.value_width)
            means = array_from_json(fields["out_of_bag"], ("float64",), shape)
            found[_OUT_OF_BAG[n_classes is None]] = part.model.spread(means)
    return found
