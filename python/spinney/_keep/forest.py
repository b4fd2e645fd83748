"""What a forest has learned beside its trees ⇄ an entry of a model file's header."""

from __future__ import annotations

import math
from typing import Any

from spinney._keep.model_file import field, refuse


def forest_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry; none if it is no forest."""
    if "forest_" not in attributes:
        return {}
    entry: dict[str, Any] = {"seed": int(attributes["_seed"])}
    if "oob_score_" in attributes:
        score = float(attributes["oob_score_"])
        entry["oob_score"] = score if math.isfinite(score) else None
    if "offset_" in attributes:
        entry["offset"], entry["max_samples"] = float(attributes["offset_"]), int(attributes["max_samples_"])
    return {"forest": entry}


def forest_from_json(header: dict[str, Any]) -> dict[str, Any]:
    """Turn back what `forest_to_json` gives."""
    if "forest" not in header:
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
    if "offset" in entry:
        found["offset_"], found["max_samples_"] = field(entry, "offset", float), field(entry, "max_samples", int)
        if not -1 <= found["offset_"] <= 0 or found["max_samples_"] < 1:
            refuse("is damaged: its threshold or its number of rows drawn is not one")
    return found
