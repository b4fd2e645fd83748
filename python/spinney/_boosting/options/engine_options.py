"""The options of a booster: what values they may have, and how they cross to the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spinney._boosting.loss import Loss
from spinney._boosting.options.constraints import promised_directions
from spinney._boosting.options.forced import ForcedSplit, read_forced_splits
from spinney._boosting.options.option_objects import traits
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import BoostingSettings
from spinney._data import Schema
from spinney._data.display import warn
from spinney._estimator.parameters import (
    count_features,
    count_rows,
    read_drawn_columns,
    read_feature_costs,
    read_groups,
)

NO_LIMIT = 2**32 - 1
_USUAL_LEAF, _LEAF_OF_FEW = 20, 3  # rows, unless the user says how many; the latter where the former leaves no split


@dataclass(frozen=True)
class BoosterInputs:
    """What the options of one booster depend on, beside settings, recipe and schema.

    Attributes
    ----------
    n_rows : int
        Rows to learn from.
    weight : float
        Their total weight.
    n_scores : int
        Scores of a row.
    seed : int
        Of all that is drawn.
    sources : sequence of int
        Columns whose statistics come last.
    largest_step : float
        Of a leaf, for losses of the user's own; 0: no limit.
    """

    n_rows: int
    weight: float
    n_scores: int
    seed: int
    sources: Sequence[int] = ()
    largest_step: float = 0.0


def engine_options(
    settings: BoostingSettings, recipe: Recipe, schema: Schema, loss: Loss, inputs: BoosterInputs
) -> dict[str, Any]:
    """Return all options by name as the engine takes them.

    Those that are numbers come from the engine's table; their values from the settings and the recipe, unless they are
    worked out here.
    """
    values = vars(settings) | vars(recipe) | _derived_numbers(settings, recipe, schema.n_features, inputs)
    return _derived_lists(settings, recipe, schema, inputs.sources) | {
        **{name: _AS_NUMBER[option.type](values[name]) for name, option in traits().items()},
        "losses": [(part.name, float(part.parameter), part.n_scores, float(part.weight)) for part in loss.parts],
        "monotonic_cst": [
            directions + [0] * len(inputs.sources)
            for directions in promised_directions(settings, schema, [part.n_scores for part in loss.parts])
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
    """Return the options that are something else than the parameter of their name."""
    draws = recipe.subsample < 1
    is_auto_step = settings.max_step == "auto"
    return {
        "draws_by_gradient": settings.draws_by_gradient and draws,
        "top_share": settings.top_share if settings.sampling == "goss" and draws else 0.0,
        "max_drop": settings.max_drop or NO_LIMIT,
        "drops_by_weight": settings.drop_by == "weight",
        "learning_rate": step_size(settings, recipe),
        "max_leaf_nodes": recipe.max_leaf_nodes or NO_LIMIT,
        "max_depth": settings.max_depth or NO_LIMIT,
        "depth_wise": settings.growth == "depth",
        "symmetric": settings.growth == "symmetric",
        "min_samples_split": count_rows(settings.min_samples_split, inputs.n_rows),
        "min_samples_leaf": smallest_leaf(settings, recipe, inputs.n_rows),
        "min_gain": max(float(settings.min_gain), settings.min_impurity_decrease * recipe.subsample * inputs.weight),
        "max_step": 0.0 if isinstance(settings.max_step, str) else settings.max_step or 0.0,
        "temper_steps": is_auto_step and not inputs.largest_step,
        "longest_step": inputs.largest_step if is_auto_step else 0.0,
        "vector_leaves": settings.leaves == "vector" and inputs.n_scores > 1,
        "max_features": _columns_of_node(settings, recipe, n_features) / n_features,
    }


def _columns_of_node(settings: BoostingSettings, recipe: Recipe, n_features: int) -> int:
    """Return how many columns each node considers."""
    found = count_features(recipe.max_features, n_features)
    if found > n_features:
        raise ValueError(
            f"max_features={settings.max_features} is more than the table's {n_features} columns. Use None for all."
        )
    return found


def _derived_lists(
    settings: BoostingSettings, recipe: Recipe, schema: Schema, sources: Sequence[int]
) -> dict[str, list[Any]]:
    """Return the options that are read by column; statistics share those of the columns that they are of."""
    costs = read_feature_costs(settings.feature_costs, schema)
    weights, _ = read_drawn_columns(settings.feature_weights, None, schema)
    fractions = (settings.max_features_per_level, settings.max_features_per_tree)
    if weights and min(fractions) >= 1 and count_features(recipe.max_features, schema.n_features) >= schema.n_features:
        raise ValueError(
            "The weights of feature_sampling say how likely columns are to be drawn, and none are drawn. Set "
            "max_features, or per_tree or per_level of feature_sampling."
        )
    return {
        "interaction_cst": [
            [*group, *(schema.n_features + i for i, source in enumerate(sources) if source in group)]
            for group in read_groups(settings.interaction_cst, schema)
        ],
        "feature_costs": costs + [costs[source] for source in sources] if costs else [],
        "feature_weights": weights + [weights[source] for source in sources] if weights else [],
        "forced_splits": [split.to_engine() for split in forced_splits(settings, recipe, schema)],
        "linear_columns": _linear_columns(schema) + [0] * len(sources) if settings.linear_leaves else [],
    }


def _linear_columns(schema: Schema) -> list[int]:
    """Which columns lines in leaves may be of: those of numbers."""
    return [int(n_categories == 0) for n_categories in schema.n_categories]


def step_size(settings: BoostingSettings, recipe: Recipe) -> float:
    """Return what the values of a tree are multiplied by."""
    return float(recipe.learning_rate / settings.n_parallel_trees)


def forced_splits(settings: BoostingSettings, recipe: Recipe, schema: Schema) -> list[ForcedSplit]:
    """Return the splits that every tree starts with."""
    return read_forced_splits(settings.forced_splits, schema, settings.max_depth, recipe.max_leaf_nodes)


def smallest_leaf(settings: BoostingSettings, recipe: Recipe, n_rows: int) -> int:
    """Return the fewest rows of a leaf."""
    if isinstance(settings.min_samples_leaf, str):  # "auto"
        if recipe.min_samples_leaf is not None:
            return recipe.min_samples_leaf
        if n_rows < 2 * _USUAL_LEAF:
            return min(_LEAF_OF_FEW, max(1, n_rows // 4))
        return min(_USUAL_LEAF, max(_LEAF_OF_FEW, int(n_rows * settings.leaf_share)))
    fewest = count_rows(settings.min_samples_leaf, n_rows)
    if 2 * fewest > n_rows > 1:
        warn(
            f"min_samples_leaf={settings.min_samples_leaf} leaves no room for a split of {n_rows} rows: the model is a "
            "constant. Lower it, or leave it out."
        )
    return fewest
