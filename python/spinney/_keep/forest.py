"""What a forest has learned beside its trees ⇄ an entry of a model file's header."""

from __future__ import annotations

import math
from typing import Any

from spinney._forest.view import FittedForest
from spinney._keep.fitted import FittedPart
from spinney._keep.model_file import field, refuse
from spinney._keep.training_rows import ranges_from_json, ranges_to_json, rows_from_json, rows_to_json


def forest_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry; none if it is no forest."""
    if "forest_" not in attributes:
        return {}
    entry: dict[str, Any] = {"seed": int(attributes["_seed"])}
    if "oob_score_" in attributes:
        score = float(attributes["oob_score_"])
        entry["oob_score"] = score if math.isfinite(score) else None
    if attributes.get("_ranges") is not None:
        entry["ranges"] = ranges_to_json(attributes["_ranges"])
    if attributes.get("_training_rows") is not None:
        entry["rows"] = rows_to_json(attributes["_training_rows"])
    if "offset_" in attributes:
        entry["offset"], entry["max_samples"] = float(attributes["offset_"]), int(attributes["max_samples_"])
    return {"forest": entry}


def forest_from_json(header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
    """Turn back what `forest_to_json` gives; older files lack the ranges and the rows."""
    if "forest" not in header or not isinstance(part.model, FittedForest):
        return {}
    entry = field(header, "forest", dict)
    found: dict[str, Any] = {"_seed": field(entry, "seed", int)}
    if not 0 <= found["_seed"] < 2**31:
        refuse("is damaged: its seed is not one")
    if "oob_score" in entry:
        score = entry["oob_score"]
        if score is not None and (type(score) not in (int, float) or not math.isfinite(score)):
            refuse("is damaged: its out-of-bag score is not one")
        found["oob_score_"] = math.nan if score is None else float(score)
    if "ranges" in entry:
        found["_ranges"] = ranges_from_json(field(entry, "ranges", dict), part.schema.n_features)
    if "rows" in entry:
        n_classes = None if part.classes is None else [len(labels) for labels in part.classes]
        rows = rows_from_json(field(entry, "rows", dict), part.model, n_classes, found["_seed"])
        found |= {"_training_rows": rows, "_draws": rows.draws}
    if "offset" in entry:
        found["offset_"], found["max_samples_"] = field(entry, "offset", float), field(entry, "max_samples", int)
        if not -1 <= found["offset_"] <= 0 or found["max_samples_"] < 1:
            refuse("is damaged: its threshold or its number of rows drawn is not one")
    return found
