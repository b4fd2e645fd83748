"""The engine's options of a booster, with monotonic constraints and forced splits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import spinney._engine as _engine
from spinney._boosting.loss import Loss, distribution_of
from spinney._boosting.options.option_objects import traits
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import BoostingSettings
from spinney._data import Schema
from spinney._data.arguments import argument_array
from spinney._data.cells import seconds_of
from spinney._data.display import warn
from spinney._data.feature import Feature
from spinney._estimator.parameters import (
    column_index,
    count_features,
    count_rows,
    read_drawn_columns,
    read_feature_costs,
    read_groups,
    read_monotone,
)

NO_LIMIT = 2**32 - 1
_SYMMETRIC_DEPTH = 6  # of the recipe with symmetric trees
_MOST_IN_LEAF, _FEWEST_IN_LEAF = 20, 3  # range of the default min_samples_leaf
_LARGEST_FRACTION = 0.2  # of all rows, so that small tables have splits


@dataclass(frozen=True)
class BoosterInputs:
    """What the options of one booster depend on, besides settings, recipe and schema.

    Attributes
    ----------
    n_rows : int
        Number of training rows.
    weight : float
        Total weight of the training rows.
    n_scores : int
        Scores of a row.
    seed : int
        Seed of the random draws.
    encoded : sequence of int
        Columns whose target encodings are the last columns.
    default_max_step : float
        Default of `max_step` for a custom loss; 0: no limit.
    """

    n_rows: int
    weight: float
    n_scores: int
    seed: int
    encoded: Sequence[int] = ()
    default_max_step: float = 0.0


def engine_options(
    settings: BoostingSettings, recipe: Recipe, schema: Schema, loss: Loss, inputs: BoosterInputs
) -> dict[str, Any]:
    """Return all options of the engine by name.

    The names of numeric options come from the engine's table; their values from the settings and the recipe, or from
    `_derived_numbers`.
    """
    values = vars(settings) | vars(recipe) | _derived_numbers(settings, recipe, schema.n_split_features, inputs)
    return _derived_lists(settings, recipe, schema, inputs.encoded) | {
        **{name: _AS_NUMBER[option.type](values[name]) for name, option in traits().items()},
        "losses": [(part.name, float(part.parameter), part.n_scores, float(part.weight)) for part in loss.parts],
        "monotonic_cst": [
            directions + [0] * len(inputs.encoded)
            for directions in monotone_directions(settings, schema, [part.n_scores for part in loss.parts])
        ],
        "seed": inputs.seed,
        "n_jobs": settings.n_threads,
    }


_AS_NUMBER: dict[str, Callable[[Any], int | float | bool]] = {
    "int": lambda value: min(int(value), NO_LIMIT),
    "float": float,
    "bool": bool,
}


def _derived_numbers(
    settings: BoostingSettings, recipe: Recipe, n_features: int, inputs: BoosterInputs
) -> dict[str, int | float | bool]:
    """Return the options whose value is not the parameter of the same name."""
    draws = recipe.subsample < 1
    is_auto_step = settings.max_step == "auto"
    row_weight = inputs.weight / inputs.n_rows  # automatic penalties do not depend on the unit of the weights
    is_auto_l2 = settings.l2_regularization == "auto" and settings.loss != "pairwise"  # whose penalty is in pairs
    return {
        "l2_regularization": recipe.l2_regularization * (row_weight if is_auto_l2 else 1.0),
        "linear_l2": settings.linear_l2 * row_weight,
        "draws_by_gradient": settings.draws_by_gradient and draws,
        "top_fraction": settings.top_fraction if settings.sampling == "goss" and draws else 0.0,
        "max_drop": settings.max_drop or NO_LIMIT,
        "drops_by_weight": settings.drop_by == "weight",
        "learning_rate": tree_learning_rate(settings, recipe),
        "max_leaf_nodes": recipe.max_leaf_nodes or NO_LIMIT,
        "max_depth": _SYMMETRIC_DEPTH if recipe.is_symmetric else settings.max_depth or NO_LIMIT,
        "depth_wise": settings.growth == "depth",
        "symmetric": settings.growth == "symmetric" or recipe.is_symmetric,
        "min_samples_split": count_rows(settings.min_samples_split, inputs.n_rows),
        "min_samples_leaf": min_leaf_rows(settings, recipe, inputs.n_rows),
        "linear_in_all": recipe.is_linear,
        "min_gain": max(float(settings.min_gain), settings.min_impurity_decrease * recipe.subsample * inputs.weight),
        "max_step": 0.0 if isinstance(settings.max_step, str) else settings.max_step or 0.0,
        "damp_steps": is_auto_step and not inputs.default_max_step,
        "longest_step": inputs.default_max_step if is_auto_step else 0.0,
        "vector_leaves": settings.leaves == "vector" and inputs.n_scores > 1,
        "max_features": _columns_of_node(settings, recipe, n_features) / n_features,
    }


def _columns_of_node(settings: BoostingSettings, recipe: Recipe, n_features: int) -> int:
    """Return the number of columns that each node considers."""
    found = count_features(recipe.max_features, n_features)
    if found > n_features:
        raise ValueError(
            f"max_features={settings.max_features} is more than the table's {n_features} columns. Use None for all."
        )
    return found


def _derived_lists(
    settings: BoostingSettings, recipe: Recipe, schema: Schema, encoded: Sequence[int]
) -> dict[str, list[Any]]:
    """Return the options by column; a target encoding has those of its column."""
    costs = read_feature_costs(settings.feature_costs, schema)
    numeric = [int(n_categories == 0) for n_categories in schema.n_categories]
    weights, _ = read_drawn_columns(settings.feature_weights, None, schema)
    fractions = (settings.max_features_per_level, settings.max_features_per_tree)
    n_tried = count_features(recipe.max_features, schema.n_split_features)
    if weights and min(fractions) >= 1 and n_tried >= schema.n_split_features:
        raise ValueError(
            "The weights of feature_sampling are for drawing columns, and all columns are used. Set max_features, or "
            "per_tree or per_level of feature_sampling."
        )
    weights = weights + [weights[column] for column in encoded] if weights else []
    if recipe.has_codes:  # instead of the categories
        weights = [*map(float, numeric), *[1.0] * len(encoded)]
    return {
        "interaction_cst": [
            [*group, *(schema.n_split_features + i for i, column in enumerate(encoded) if column in group)]
            for group in read_groups(settings.interaction_cst, schema)
        ],
        "feature_costs": costs + [costs[column] for column in encoded] if costs else [],
        "feature_weights": weights,
        "forced_splits": [
            (split.feature, split.threshold, list(split.codes), split.left, split.right)
            for split in forced_splits(settings, recipe, schema)
        ],
        "linear_columns": numeric + [0] * len(encoded) if recipe.linear_leaves else [],
    }


def tree_learning_rate(settings: BoostingSettings, recipe: Recipe) -> float:
    """Return the learning rate of one tree, which is lower for parallel trees."""
    return float(recipe.learning_rate / settings.n_parallel_trees)


def forced_splits(settings: BoostingSettings, recipe: Recipe, schema: Schema) -> list[ForcedSplit]:
    """Return the splits that every tree starts with."""
    return read_forced_splits(settings.forced_splits, schema, settings.max_depth, recipe.max_leaf_nodes)


def min_leaf_rows(settings: BoostingSettings, recipe: Recipe, n_rows: int) -> int:
    """Return the minimum number of rows of a leaf."""
    if isinstance(settings.min_samples_leaf, str):  # "auto"
        if recipe.min_samples_leaf is not None:
            return recipe.min_samples_leaf
        wanted = max(n_rows * settings.leaf_fraction, min(_FEWEST_IN_LEAF, n_rows * _LARGEST_FRACTION))
        return max(1, int(min(_MOST_IN_LEAF, wanted) * recipe.subsample))
    fewest = count_rows(settings.min_samples_leaf, n_rows)
    if 2 * fewest > n_rows > 1:
        warn(
            f"min_samples_leaf={settings.min_samples_leaf} allows no split of {n_rows} rows: the model is a constant. "
            "Lower it, or leave it out."
        )
    return fewest


def monotone_directions(settings: BoostingSettings, schema: Schema, widths: Sequence[int]) -> list[list[int]]:
    """Return monotonic constraints by score and column, as `read_monotone_of_outputs` does."""
    distribution = distribution_of(settings.loss)
    if distribution is not None and settings.monotonic_cst is not None:
        names = " and ".join(distribution.score_names)
        raise ValueError(
            f"monotonic_cst is for losses of one score, and loss={settings.loss!r} has several: {names}. Use another "
            "loss, such as 'squared_error', or leave the constraints out."
        )
    directions = read_monotone_of_outputs(settings.monotonic_cst, schema, widths)
    differ = any(len(set(of_column)) > 1 for of_column in zip(*directions, strict=True))
    if differ and settings.levels is not None:
        raise ValueError(
            "The quantiles of a row are sorted, so that one rises with a column only if all do, and monotonic_cst has "
            "different directions for them. Give one row of -1, 0, 1 for all quantiles."
        )
    if directions and settings.growth == "symmetric":
        raise ValueError(
            "growth='symmetric' makes the same split in all nodes of a level, and monotonicity constraints may forbid "
            "it in some. Use another growth, or leave the constraints out."
        )
    if directions and settings.starts_at_model:
        raise ValueError(
            f"monotonic_cst does not support init={type(settings.init).__name__}: the initial scores need not be "
            "monotonic. Use init='constant', or leave the constraints out."
        )
    return directions


def read_monotone_of_outputs(constraint: Any, schema: Schema, widths: Sequence[int]) -> list[list[int]]:
    """Return monotonic constraints by score and column: one list if all scores have the same, empty without any.

    `widths` is the number of scores of each output.
    """
    several = _by_output(constraint)
    if several is None:
        directions = read_monotone(constraint, schema)
        if directions and max(widths) > 1:
            raise ValueError(
                "Monotonicity constraints are not supported with multiclass classification: the probabilities of all "
                "classes cannot rise. Fit one model per class against the rest."
            )
        return [directions] if directions else []
    if len(several) != len(widths):
        raise ValueError(
            f"monotonic_cst has {len(several)} rows, and the model {len(widths)} outputs. Give one row of -1, 0, 1 for "
            "each output, or one for all."
        )
    found = [read_monotone(one, schema) for one in several]
    if not any(found):
        return []
    if max(widths) > 1:
        raise ValueError("monotonic_cst is for outputs of one score each: numbers, or two classes. Leave it out.")
    return [directions or [0] * schema.n_features for directions in found]


def _by_output(constraint: Any) -> list[Any] | None:
    """Return the constraints of each output; None if all outputs have the same."""
    if constraint is None or isinstance(constraint, Mapping):
        return None
    if isinstance(constraint, (list, tuple)) and any(isinstance(one, (Mapping, type(None))) for one in constraint):
        return list(constraint)
    array = argument_array(constraint, "monotonic_cst")
    return list(array) if array.ndim == 2 else None


_NO_CODES: tuple[int, ...] = ()
_KEYS = {"feature", "threshold", "categories", "left", "right"}


@dataclass(frozen=True)
class ForcedSplit:
    """A forced split; `left` and `right` index its child splits, 0 means none. `words` begins the error message."""

    feature: int
    threshold: float
    codes: tuple[int, ...]
    words: str
    left: int = 0
    right: int = 0


def read_forced_splits(given: Any, schema: Schema, max_depth: int | None, max_leaves: int | None) -> list[ForcedSplit]:
    """Return the forced splits, each after its parent."""
    if given is None:
        return []
    splits: list[ForcedSplit] = []
    depth = _add(given, schema, splits)
    if max_depth is not None and depth > max_depth:
        raise ValueError(f"forced_splits are {depth} deep, and max_depth={max_depth}. Raise it, or force fewer splits.")
    if max_leaves is not None and len(splits) >= max_leaves:
        raise ValueError(
            f"forced_splits make {len(splits) + 1} leaves, and trees have at most {max_leaves}. Raise max_leaf_nodes, "
            "or force fewer splits."
        )
    return splits


def _add(given: Any, schema: Schema, splits: list[ForcedSplit]) -> int:
    """Add a split and its descendants; return their depth."""
    if not isinstance(given, Mapping) or "feature" not in given or ("threshold" in given) == ("categories" in given):
        raise ValueError(
            "forced_splits: a split is a dict of 'feature' and either 'threshold' or 'categories', and optionally the "
            f"splits on its 'left' and 'right'. Got {given!r}."
        )
    if unknown := given.keys() - _KEYS:
        raise ValueError(f"forced_splits: a split has no key {sorted(unknown)[0]!r}, but {', '.join(sorted(_KEYS))}.")
    at, column = len(splits), column_index(given["feature"], schema, "forced_splits")
    feature = schema.features[column]
    threshold, codes = 0.0, _NO_CODES
    if "threshold" in given:
        threshold = _threshold(given["threshold"], feature)
        words = f"column {feature.name!r} cannot be split at {given['threshold']!r}"
    else:
        codes = _codes(given["categories"], feature)
        words = f"column {feature.name!r} cannot be split by {list(given['categories'])!r}"
    splits.append(ForcedSplit(column, threshold, codes, words))
    children, depth = {"left": 0, "right": 0}, 0
    for side in children:
        if given.get(side) is not None:
            children[side] = len(splits)
            depth = max(depth, _add(given[side], schema, splits))
    splits[at] = replace(splits[at], left=children["left"], right=children["right"])
    return depth + 1


def _threshold(value: Any, feature: Feature) -> float:
    label = f"forced_splits: the threshold of column {feature.name!r}"
    if feature.kind == "category":
        raise ValueError(f"{label}: it holds categories. Give the 'categories' that go left.")
    if feature.kind == "ordered":
        if value not in feature.code_of:
            raise ValueError(f"{label} must be one of {', '.join(map(repr, feature.categories))}. Got {value!r}.")
        return float(feature.code_of[value])
    if feature.clock and not isinstance(value, Real):
        return float(seconds_of(value, feature.clock, label))
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(float(value)):
        raise ValueError(f"{label} must be a finite number. Got {value!r}.")
    return float(value)


def _codes(values: Any, feature: Feature) -> tuple[int, ...]:
    label = f"forced_splits: the categories of column {feature.name!r}"
    if feature.kind != "category":
        raise ValueError(f"{label}: it holds numbers. Give a 'threshold'.")
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{label} must be a list. Got {values!r}.")
    codes = set()
    for value in values:
        if value not in feature.code_of:
            raise ValueError(f"{label}: {value!r} does not occur in the column. Name categories that do.")
        codes.add(feature.code_of[value])
    if not 0 < len(codes) < len(feature.categories):
        raise ValueError(f"{label}: some must go left and some right. Name some of them, but not all.")
    return tuple(sorted(codes))


def check_forced_splits(splits: list[ForcedSplit], tree: _engine.Tree, n_rows: int) -> None:
    """Refuse forced splits that a tree grown on all rows could not make."""
    pending, right = [(0, 0)], tree.children_right()
    while pending:
        index, at = pending.pop()
        split = splits[index]
        is_made = int(tree.feature[at]) == split.feature and (
            tree.left_categories(at) == list(split.codes) if split.codes else tree.threshold[at] == split.threshold
        )
        if not is_made:
            raise ValueError(
                f"forced_splits: {split.words}: fewer than min_samples_leaf rows ({n_rows}) would be on a side. Move "
                "it, or lower min_samples_leaf."
            )
        children = (split.left, at + 1), (split.right, int(right[at]))
        pending += [(child, node) for child, node in children if child]
