"""A fitted imputer ⇄ a model file: the values it lends, where their rows rest, and the forest that says who is near."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._estimator.saving import class_named, opening, unfitted
from spinney._estimator.table_estimator import TableEstimator
from spinney._forest.proximities.donors import Donors
from spinney._forest.proximities.proximity import Resting
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.forest import FittedForest
from spinney._model.saving.model_part import FittedPart

KIND = "imputer"


def imputer_parts(imputer: Any) -> tuple[dict[str, Any], list[_engine.Tree]]:
    """Return header and trees of a fitted imputer."""
    part, resting = imputer.forest_._part(), imputer._resting
    leaves = (resting.nodes - part.model.root[:-1]).astype(np.uint32)
    header = {
        **opening(imputer, imputer.get_params(deep=False)),
        "kind": KIND,
        "schema": imputer.schema_.to_dict(),
        "known": array_to_json(imputer._donors.known),
        "leaf": array_to_json(leaves),
        "drawn": None if resting.drawn is None else array_to_json(resting.drawn),
        "forest": imputer.forest_._header() | part.header(),
    }
    return header, part.model.trees()


def imputer_from_file(kind: Any, header: dict[str, Any], file: _engine.ModelFile) -> Any:
    """Turn back what `imputer_parts` gives."""
    imputer = unfitted(kind, header)
    schema = Schema.from_dict(field(header, "schema", dict))
    about = field(header, "forest", dict)
    part = FittedPart.from_header(about, file, 0, file.n_trees)
    if not isinstance(part.model, FittedForest) or part.schema.n_features != schema.n_features or schema.pool:
        refuse("is damaged: its forest does not fit its columns")
    known = array_from_json(header.get("known"), ("float64",), (None, schema.n_features))
    _check_codes(known, schema)
    resting = _resting(header, part.model, len(known))
    if (imputer.kind == "gap") != (resting.drawn is not None):
        refuse("is damaged: it lacks the rows drawn for each tree, or has them where kind does not need them")
    imputer._keep(
        schema, class_named(about, TableEstimator)._of_part(about, part), Donors.of(known, schema.features), resting
    )
    return imputer


def _check_codes(known: NDArray[np.float64], schema: Schema) -> None:
    if len(known) == 0:
        refuse("is damaged: it has no rows to take values from")
    for values, feature in zip(known.T, schema.features, strict=True):
        present = values[~np.isnan(values)]
        n_codes = 2 if feature.kind == "boolean" else len(feature.categories)
        if feature.kind == "number":
            continue
        if (present != np.floor(present)).any() or (present < 0).any() or (present >= n_codes).any():
            refuse(f"is damaged: column {feature.name!r} holds a code that stands for no category")


def _resting(header: dict[str, Any], forest: FittedForest, n_rows: int) -> Resting:
    leaf = array_from_json(header.get("leaf"), ("uint32",), (n_rows, forest.n_trees)).astype(np.int64)
    if (leaf >= np.diff(forest.root.astype(np.int64))).any():
        refuse("is damaged: a row is in a leaf that does not exist")
    drawn = header.get("drawn")
    if drawn is not None:
        drawn = array_from_json(drawn, ("uint32",), (n_rows, forest.n_trees))
    return Resting(leaf + forest.root[:-1], forest.node_count, drawn)
