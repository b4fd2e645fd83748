"""The options of a booster: what values they may have, and how they cross to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from spinney._boosting.loss import Loss
from spinney._boosting.options.constraints import promised_directions
from spinney._boosting.options.forced import ForcedSplit, read_forced_splits
from spinney._boosting.options.option_objects import PARAMETER_CONSTRAINTS
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.options.recipe_table import SEARCH
from spinney._boosting.settings import BoostingSettings
from spinney._data import Schema
from spinney._data.display.warn import warn
from spinney._estimator.parameters import (
    COUNT,
    count_features,
    count_rows,
    read_drawn_columns,
    read_feature_costs,
    read_groups,
)

AUTO = StrOptions({"auto"})
NO_LIMIT = 2**32 - 1
_USUAL_LEAF, _LEAF_OF_FEW = 20, 3  # rows, unless the user says how many; the latter where the former leaves no split

CONSTRAINTS: dict[str, list[Any]] = {
    **PARAMETER_CONSTRAINTS,
    "n_estimators": [COUNT, AUTO],
    "effort": [Interval(Real, 0.0, 1.0, closed="both"), StrOptions({SEARCH})],
    "learning_rate": [Interval(Real, 0.0, None, closed="neither"), AUTO],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None, AUTO],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Real, 0.0, 1.0, closed="neither"),
        AUTO,
    ],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "l2_regularization": [Interval(Real, 0.0, None, closed="left"), AUTO],
    "subsample": [Interval(Real, 0.0, 1.0, closed="right"), AUTO],
    "feature_costs": ["array-like", dict, None],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Real, 0.0, 1.0, closed="right"),
        StrOptions({"auto", "sqrt", "log2"}),
        None,
    ],
    "max_bins": [Interval(Integral, 2, 65535, closed="both"), AUTO],
    "monotonic_cst": ["array-like", dict, None],
    "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
    "early_stopping": ["boolean", None],
    "scoring": [str, callable, list, tuple, None],
    "validation_fraction": [
        Interval(Real, 0.0, 1.0, closed="neither"),
        Interval(Integral, 1, None, closed="left"),
    ],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
    "tol": [Interval(Real, 0.0, None, closed="left")],
    "keep_best": ["boolean"],
    "categorical_features": ["array-like", None],
    "unseen": [StrOptions({"missing", "error", "other"})],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
    "callbacks": [callable, list, tuple, None],
    "keep_interrupted": ["boolean"],
    "random_state": ["random_state"],
    "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
}


def engine_options(
    settings: BoostingSettings,
    recipe: Recipe,
    schema: Schema,
    loss: Loss,
    n_rows: int,
    weight: float,
    n_scores: int,
    seed: int,
    sources: Sequence[int] = (),
    largest_step: float = 0.0,
) -> dict[str, Any]:
    """Return all of it, by name as the engine takes it; `sources` are the columns whose statistics come last."""
    n_features = schema.n_features
    monotone = promised_directions(settings, schema, [part.n_scores for part in loss.parts])
    costs = read_feature_costs(settings.feature_costs, schema)
    weights, _ = read_drawn_columns(settings.feature_weights, None, schema)
    is_goss = settings.sampling == "goss" and recipe.subsample < 1
    node_share = count_features(recipe.max_features, n_features)
    if (
        weights
        and node_share >= n_features
        and min(settings.max_features_per_level, settings.max_features_per_tree) >= 1
    ):
        raise ValueError(
            "The weights of feature_sampling say how likely columns are to be drawn, and none are drawn. Set "
            "max_features, or per_tree or per_level of feature_sampling."
        )
    if node_share > n_features:
        raise ValueError(
            f"max_features={settings.max_features} is more than the table's {n_features} columns. Use None for all."
        )
    return {
        "losses": [(part.name, float(part.parameter), part.n_scores, float(part.weight)) for part in loss.parts],
        "max_bins": int(recipe.max_bins),
        "subsample": float(recipe.subsample),
        "draws_by_gradient": settings.draws_by_gradient and recipe.subsample < 1,
        "top_share": float(settings.top_share) if is_goss else 0.0,
        "n_parallel_trees": int(settings.n_parallel_trees),
        "drop_rate": float(settings.drop_rate),
        "skip_drop": float(settings.skip_drop),
        "max_drop": min(settings.max_drop or NO_LIMIT, NO_LIMIT),
        "drops_by_weight": settings.drop_by == "weight",
        "learning_rate": step_size(settings, recipe),
        "steps_grow_after": recipe.steps_grow_after,
        "max_leaf_nodes": min(recipe.max_leaf_nodes or NO_LIMIT, NO_LIMIT),
        "max_depth": min(settings.max_depth or NO_LIMIT, NO_LIMIT),
        "depth_wise": settings.growth == "depth",
        "symmetric": settings.growth == "symmetric",
        "min_samples_split": min(count_rows(settings.min_samples_split, n_rows), NO_LIMIT),
        "min_samples_leaf": min(smallest_leaf(settings, recipe, n_rows), NO_LIMIT),
        "min_hessian_leaf": float(settings.min_hessian_leaf),
        "min_gain": max(float(settings.min_gain), settings.min_impurity_decrease * recipe.subsample * weight),
        "l2_regularization": float(recipe.l2_regularization),
        "l1_regularization": float(settings.l1_regularization),
        "max_step": 0.0 if settings.max_step == "auto" else float(settings.max_step or 0.0),
        "temper_steps": settings.max_step == "auto" and not largest_step,
        "longest_step": largest_step if settings.max_step == "auto" else 0.0,
        "vector_leaves": settings.leaves == "vector" and n_scores > 1,
        "max_features_per_tree": float(settings.max_features_per_tree),
        "max_features_per_level": float(settings.max_features_per_level),
        "max_features": node_share / n_features,
        "max_one_hot": min(int(settings.max_one_hot), NO_LIMIT),
        "category_smoothing": float(settings.category_smoothing),
        "category_l2": float(settings.category_l2),
        "monotonic_cst": [directions + [0] * len(sources) for directions in monotone],
        "interaction_cst": [
            [*group, *(n_features + i for i, source in enumerate(sources) if source in group)]
            for group in read_groups(settings.interaction_cst, schema)
        ],
        "feature_costs": costs + [costs[source] for source in sources] if costs else [],
        "feature_weights": weights + [weights[source] for source in sources] if weights else [],
        "forced_splits": [split.to_engine() for split in forced_splits(settings, recipe, schema)],
        "hierarchical_shrinkage": float(settings.hierarchical_shrinkage),
        "linear_columns": _linear_columns(schema) + [0] * len(sources) if settings.linear_leaves else [],
        "linear_l2": float(settings.linear_l2),
        "seed": seed,
        "n_jobs": settings.n_threads,
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
