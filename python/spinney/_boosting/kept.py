"""What gradient boosting has learned ⇄ trees and entries of a model file's header."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _engine
from spinney._data import Schema
from spinney._file.container import field, refuse
from spinney._fitted.boosting import FittedBoosting
from spinney._fitted.links import CLASS_LINKS, LINKS

_CURVES = ("train_score", "validation_score")


def sum_to_json(model: FittedBoosting) -> dict[str, Any]:
    """Return the header entries that predictions need beside the trees."""
    return {"kind": "boosting", "start": model.start.tolist(), "link": model.link}


def sum_from_file(
    header: dict[str, Any], file: _engine.ModelFile, schema: Schema, n_classes: list[int] | None
) -> FittedBoosting:
    """Read the trees and what predictions need beside them."""
    link, start = field(header, "link", str), _numbers(field(header, "start", list), "start")
    if link not in LINKS or (link in CLASS_LINKS) != (n_classes is not None):
        refuse("is damaged: its scores and its target do not go together")
    if n_classes is not None and (n_classes[0] < 2 or (link != "softmax" and n_classes[0] != 2)):
        refuse("is damaged: its scores do not fit its classes")
    if len(start) != (n_classes[0] if n_classes is not None and link == "softmax" else 1):
        refuse("is damaged: its scores do not fit its classes")
    if file.n_trees < 1 or file.n_trees % len(start):
        refuse(f"is damaged: it holds {file.n_trees} trees for {len(start)} scores")
    try:
        trees = [file.tree(t, schema.n_categories) for t in range(file.n_trees)]
        return FittedBoosting(trees, start, link, schema.n_categories, n_classes)
    except ValueError as error:
        refuse(str(error))


def boosting_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry that only a fit or a reader of curves needs; none if it is no boosting."""
    if "boosting_" not in attributes:
        return {}
    entry: dict[str, Any] = {"seed": int(attributes["_seed"])}
    for name in _CURVES:
        if name + "_" in attributes:
            entry[name] = attributes[name + "_"].tolist()
    return {"boosting": entry}


def boosting_from_json(header: dict[str, Any], n_rounds: int) -> dict[str, Any]:
    """Turn back what `boosting_to_json` gives."""
    entry = field(header, "boosting", dict)
    found: dict[str, Any] = {"_seed": field(entry, "seed", int)}
    if not 0 <= found["_seed"] < 2**31:
        refuse("is damaged: its seed is not one")
    for name in _CURVES:
        if name in entry:
            found[name + "_"] = _numbers(field(entry, name, list), name)
    if "train_score_" not in found or len(found["train_score_"]) < n_rounds:
        refuse("is damaged: its learning curve is shorter than the model")
    return found


def _numbers(values: list[Any], name: str) -> NDArray[np.float64]:
    if any(type(value) not in (int, float) for value in values):
        refuse(f"is damaged: its {name!r} does not hold numbers")
    numbers = np.array(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        refuse(f"is damaged: its {name!r} holds impossible numbers")
    return numbers
