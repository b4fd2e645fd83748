"""Combined columns of boosting: sums, differences, products and ratios of numbers, and crosses of categories."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from spinney._data import Feature, Schema
from spinney._data.combinations import MOST_CROSSED, Operation, Pair
from spinney._data.types import Floats
from spinney._estimator.parameters import column_index

_SIGNS: dict[str, tuple[Operation, float]] = {
    "+": ("sum", 1.0),
    "-": ("sum", -1.0),
    "*": ("product", 1.0),
    "/": ("ratio", 1.0),
}
_CROSS: tuple[Operation, float] = ("cross", 1.0)
_MOST_COLUMNS = 8  # numeric columns that are combined automatically: the most important ones
_MOST_CROSSED_COLUMNS = 6  # columns of categories that are
_MOST_CATEGORIES = 1000  # of a cross that is chosen automatically
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
        if first == second:
            raise ValueError(
                f"feature_combinations combines column {schema.features[first].name!r} with itself. Name two columns."
            )
        is_cross = one[1] == "*" and _is_cross(schema.features[first], schema.features[second])
        pair = (schema.features[first], schema.features[second])
        if not is_cross and not all(feature.kind in ("number", "boolean") and not feature.clock for feature in pair):
            raise ValueError(
                "feature_combinations combines two columns of numbers, or two columns of unordered categories by '*', "
                f"and in {tuple(one)!r} " + " and ".join(_content(feature) for feature in pair) + ". Leave it out."
            )
        found.append(Pair(first, second, *(_CROSS if is_cross else _SIGNS[one[1]])))
    if not found:
        raise ValueError("feature_combinations is an empty list. Give a combination, or None for none.")
    if len(set(found)) < len(found):
        raise ValueError("feature_combinations names a combination twice. Leave one out.")
    return found


def _content(feature: Feature) -> str:
    """Return what a column holds, in words."""
    kinds = {"date": "dates", "number": "numbers", "boolean": "booleans", "category": "categories"}
    held = "no values" if feature.empty else kinds.get(feature.kind_in_words, "ordered categories")
    return f"{feature.name!r} holds {held}"


def _is_cross(first: Feature, second: Feature) -> bool:
    """Return whether the combination of two columns by "*" is their cross."""
    if first.kind != "category" or second.kind != "category":
        return False
    if (n := (len(first.categories) + 1) * (len(second.categories) + 1)) > MOST_CROSSED:
        raise ValueError(
            f"feature_combinations crosses columns {first.name!r} and {second.name!r}, which have {n:,} pairs of "
            f"categories, more than {MOST_CROSSED:,}. Merge rare categories, or leave this cross out."
        )
    return True


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


def automatic_pairs(schema: Schema, importances: Floats) -> tuple[list[Pair], list[Pair]]:
    """Return all combinations of the most important columns of numbers, and of those of categories."""

    def most_important_of(kind: str, n: int) -> list[int]:
        known = [j for j, f in enumerate(schema.features) if f.kind == kind and not f.clock and importances[j] > 0]
        return sorted(sorted(known, key=lambda j: (-importances[j], j))[:n])

    numbers = most_important_of("number", _MOST_COLUMNS)
    categories = most_important_of("category", _MOST_CROSSED_COLUMNS)
    sizes = [len(feature.categories) + 1 for feature in schema.features]
    crosses = [(a, b) for a, b in combinations(categories, 2) if sizes[a] * sizes[b] <= _MOST_CATEGORIES]
    of_numbers = [Pair(a, b, *sign) for a, b in combinations(numbers, 2) for sign in _SIGNS.values()]
    return of_numbers, [Pair(a, b, *_CROSS) for a, b in crosses]


def most_important(importances: Floats) -> list[int]:
    """Return the combinations with the largest importances, in their order."""
    order = np.argsort(-importances, kind="stable")[:_MOST_COMBINED]
    return [int(k) for k in np.sort(order[importances[order] > 0])]
