"""Combined columns of boosting: sums, differences, products and ratios of pairs of numeric columns."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import Combinations, Schema
from spinney._data.combinations import Operation, Pair
from spinney._data.types import Floats
from spinney._estimator.parameters import column_index

_SIGNS: dict[str, tuple[Operation, float]] = {
    "+": ("sum", 1.0),
    "-": ("sum", -1.0),
    "*": ("product", 1.0),
    "/": ("ratio", 1.0),
}
_MOST_COLUMNS = 8  # that are combined automatically: the most important ones
_MOST_COMBINED = 12  # combined columns of the race
TRIAL_ROUNDS = 40  # of the booster whose splits choose them


def has_list(feature_combinations: object) -> bool:
    """Return whether the parameter is a list of combinations."""
    return feature_combinations is not None and not isinstance(feature_combinations, str)


def read_pairs(given: Any, schema: Schema) -> list[Pair]:
    """Return the combinations that a user lists."""
    found: list[Pair] = []
    for one in given:
        if not isinstance(one, (list, tuple)) or len(one) != 3 or one[1] not in _SIGNS:
            raise ValueError(
                "feature_combinations is a list of (column, operation, column), with one of '+', '-', '*', '/', such "
                f"as ('width', '*', 'height'). Got {one!r}."
            )
        first, second = (column_index(column, schema, "feature_combinations") for column in (one[0], one[2]))
        for j in (first, second):
            feature = schema.features[j]
            if feature.kind not in ("number", "boolean") or feature.clock:
                raise ValueError(
                    f"feature_combinations combines numbers, and column {feature.name!r} holds "
                    f"{'dates' if feature.clock else 'categories'}. Leave it out."
                )
        if first == second:
            raise ValueError(
                f"feature_combinations combines column {schema.features[first].name!r} with itself. Name two columns."
            )
        found.append(Pair(first, second, *_SIGNS[one[1]]))
    if not found:
        raise ValueError("feature_combinations is an empty list. Give a combination, or None for none.")
    if len(set(found)) < len(found):
        raise ValueError("feature_combinations names a combination twice. Leave one out.")
    return found


def check_same_pairs(given: object, schema: Schema) -> None:
    """Refuse a warm start with other combined columns than those of the earlier fit."""
    pool = schema.pool
    before = [] if pool is None else pool.pairs
    now = read_pairs(given, schema) if has_list(given) else [] if given is None else before
    if now != before:
        names = [] if pool is None else [pool.name(k, schema.names) for k in range(len(pool))]
        raise ValueError(
            "warm_start cannot change feature_combinations, but the earlier trees were grown with "
            f"{', '.join(names) or 'none'}. Set these, or warm_start=False."
        )


def automatic_pairs(schema: Schema, importances: Floats) -> list[Pair]:
    """Return all combinations of the most important numeric columns."""
    numbers = [j for j, f in enumerate(schema.features) if f.kind == "number" and not f.clock and importances[j] > 0]
    chosen = sorted(sorted(numbers, key=lambda j: (-importances[j], j))[:_MOST_COLUMNS])
    return [Pair(a, b, *sign) for a, b in combinations(chosen, 2) for sign in _SIGNS.values()]


def most_important(pool: Combinations, importances: Floats) -> NDArray[np.intp]:
    """Return the combinations with the largest importances among all split columns, in their order."""
    of_combined = importances[len(pool.plain) :]
    order = np.argsort(-of_combined, kind="stable")[:_MOST_COMBINED]
    return np.sort(order[of_combined[order] > 0])
