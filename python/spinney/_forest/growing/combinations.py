"""The pool of combined columns that the trees of an oblique forest split on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Combinations, Schema
from spinney._data.combinations import n_for_all
from spinney._estimator.row_copies import whole_weights
from spinney._forest.growing.warm_start import check_pool

Floats = NDArray[np.float64]
_LEAST, _MOST, _MOST_VALUES = 100, 1000, 2**24  # combinations, and their values, for oblique="auto"


def with_combinations(
    forest: Any, schema: Schema, inputs: _engine.Table, weight: Floats | None, seed: int, is_new: bool
) -> Schema:
    """Return the schema with the pool that trees split on, if the forest is to have one."""
    pool = None if forest.oblique is None else _drawn(forest, schema, inputs, weight, seed)
    if is_new:
        return schema if pool is None else schema.with_pool(pool)
    check_pool(schema.pool, pool)
    return schema


def _drawn(forest: Any, schema: Schema, inputs: _engine.Table, weight: Floats | None, seed: int) -> Combinations:
    for name in ("monotonic_cst", "interaction_cst", "feature_costs", "feature_weights", "always_try"):
        if getattr(forest, name, None) is not None:
            raise ValueError(
                f"{name} is about single columns, but oblique splits combine several. Set {name}=None or oblique=None."
            )
    n_combined = int(forest.n_combined)
    if isinstance(forest.oblique, str):
        copies = whole_weights(weight)
        n_rows = inputs.n_rows if copies is None else int(copies.sum())
        n = max(_LEAST, min(_MOST, _MOST_VALUES // n_rows))
        n = max(n, n_for_all(schema.n_features, n_combined))
    else:
        n = int(forest.oblique)
    return Combinations.draw(schema.features, inputs, weight, n, n_combined, seed)
