"""What gradient boosting has learned ⇄ trees and entries of a model file's header."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._boosting.calibration import Calibration
from spinney._estimator.support import ranges_from_json, ranges_to_json
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import array_from_json, array_to_json, numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.saving.model_part import FittedPart

_CURVES = ("train_score", "validation_score")
_ARRAYS = ("oob_scores", "oob_improvement", "scales")
BY_ROUND = ("validation_score_", "oob_scores_", "oob_improvement_", "oob_score_", "scales_", "n_dropped_", "history_")


def boosting_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry that only a fit or a reader of curves needs."""
    entry: dict[str, Any] = {"seed": int(attributes["_seed"])}
    for name in _CURVES:
        if name + "_" in attributes:
            entry[name] = attributes[name + "_"].tolist()
    for name in _ARRAYS:
        if name + "_" in attributes:
            entry[name] = array_to_json(attributes[name + "_"])
    if attributes.get("_ranges") is not None:
        entry["ranges"] = ranges_to_json(attributes["_ranges"])
    if attributes.get("_calibration") is not None:
        entry["calibration"] = attributes["_calibration"].to_json()
    if "n_dropped_" in attributes:
        entry["n_dropped"] = attributes["n_dropped_"].tolist()
    if "_step" in attributes:
        entry["step"] = attributes["_step"]
    if "stopped_because_" in attributes:
        entry["stopped_because"] = attributes["stopped_because_"]
    return {"boosting": entry}


def boosting_from_json(header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
    """Turn back what `boosting_to_json` gives."""
    assert isinstance(part.model, FittedBoosting)
    entry, n_rounds = field(header, "boosting", dict), part.model.n_rounds
    found: dict[str, Any] = {"_seed": field(entry, "seed", int)}
    if not 0 <= found["_seed"] < 2**31:
        refuse("is damaged: its seed is not a number between 0 and 2³¹")
    for name in _CURVES:
        if name in entry:
            found[name + "_"] = numbers_from_json(field(entry, name, list), name)
    if "stopped_because" in entry:
        found["stopped_because_"] = field(entry, "stopped_because", str)
    if "train_score_" not in found or len(found["train_score_"]) < n_rounds:
        refuse("is damaged: its learning curve is shorter than the model")
    for name in _ARRAYS:
        if name in entry:
            found[name + "_"] = array_from_json(entry[name], ("float64",), (None,))
            if len(found[name + "_"]) < n_rounds:
                refuse("is damaged: its out-of-bag curve is shorter than the model")
    if "n_dropped" in entry:
        counts = numbers_from_json(field(entry, "n_dropped", list), "n_dropped")
        if len(counts) != n_rounds or not ((counts >= 0) & (counts < n_rounds)).all():
            refuse("is damaged: its dropped rounds do not fit the model")
        found["n_dropped_"] = counts.astype(np.intp)
    if "step" in entry:
        found["_step"] = field(entry, "step", float)
        if not 0 < found["_step"] < np.inf:
            refuse("is damaged: its step is not a positive number")
    if "ranges" in entry:
        found["_ranges"] = ranges_from_json(field(entry, "ranges", dict), part.schema.n_features)
    if "calibration" in entry:
        found["_calibration"] = Calibration.from_json(field(entry, "calibration", dict), part.model)
    if "oob_scores_" in found:
        found["oob_score_"] = float(found["oob_scores_"][n_rounds - 1])
    return found


def times_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry of a model of times: its curve's times, and the hazard or the scale."""
    entry: dict[str, Any] = {"times": array_to_json(attributes["event_times_"])}
    if attributes["loss"] == "cox":
        entry["hazard"] = array_to_json(attributes["baseline_hazard_"])
    else:
        entry["scale"] = float(attributes["scale_"])
    return {"survival": entry}


def times_from_json(header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
    """Read what `times_to_json` has written."""
    entry = field(header, "survival", dict)
    times = array_from_json(field(entry, "times", dict), ("float64",), (None,))
    if not (np.isfinite(times) & (times > 0)).all() or not (np.diff(times) > 0).all():
        refuse("is damaged: its times are not in order")
    assert isinstance(part.model, FittedBoosting)
    if part.model.link == "identity":  # Cox's
        hazard = array_from_json(field(entry, "hazard", dict), ("float64",), (len(times),))
        if not (np.isfinite(hazard) & (hazard > 0)).all() or not (np.diff(hazard) >= 0).all():
            refuse("is damaged: its hazard does not rise with time")
        return {"event_times_": times, "baseline_hazard_": hazard}
    scale = field(entry, "scale", float)
    if not 0 < scale < np.inf:
        refuse("is damaged: its scale is not a positive number")
    return {"event_times_": times, "scale_": scale}
