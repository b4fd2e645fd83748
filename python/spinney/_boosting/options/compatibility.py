"""Checks of settings that are incompatible with each other, with streams, or with partitioned rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real

import spinney._engine as _engine
from spinney._boosting.combined_columns import has_list
from spinney._boosting.evaluation import takes_predictions
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import TRAITS, may_learn_mean_first
from spinney._boosting.options.recipe import Recipe, makes_folds
from spinney._boosting.settings import BoostingSettings
from spinney._boosting.target_encoding import high_cardinality_columns
from spinney._data.feature import RemoteTable
from spinney._data.schema import Input
from spinney._estimator.fit_inputs import FitInputs

_READ_BY: dict[str, tuple[str, ...]] = {  # losses that read each parameter
    "distribution": ("aft",),
    "scale": ("aft",),
    "ties": ("cox",),
    "class_order": ("ordinal",),
}
for _name, _traits in TRAITS.items():
    if _traits.parameter is not None:
        _READ_BY[_traits.parameter.name] = (*_READ_BY.get(_traits.parameter.name, ()), _name)
_ALPHA = frozenset({"quantile", "huber_share"})  # set by scikit-learn's parameter alpha


@dataclass(frozen=True)
class Conflict:
    """Settings that are incompatible with each other.

    Attributes
    ----------
    holds : callable
        Returns whether settings are in conflict.
    message : str
        Error message, in which `s` stands for the settings.
    """

    holds: Callable[[BoostingSettings], bool]
    message: str


def check_options(settings: BoostingSettings) -> None:
    """Refuse incompatible settings."""
    _check_loss_parameters(settings)
    for conflict in CONFLICTS:
        if conflict.holds(settings):
            raise ValueError(conflict.message.format(s=settings))


def allows_linear_leaves(settings: BoostingSettings) -> bool:
    """Return whether no other setting is incompatible with linear leaves."""
    linear = replace(settings, linear_leaves=True)
    return not any(conflict.holds(linear) for conflict in CONFLICTS)


def _check_loss_parameters(settings: BoostingSettings) -> None:
    """Refuse parameters that the loss does not read."""
    loss = settings.loss if isinstance(settings.loss, str) else None
    read = {name for name, losses in _READ_BY.items() if loss in losses}
    is_alpha = isinstance(settings.quantile, Real) and settings.quantile == settings.huber_share  # as `alpha` sets both
    of_alpha = _ALPHA if is_alpha else frozenset()
    for name, losses in _READ_BY.items():
        if name in read or (name in of_alpha and read & of_alpha) or name not in settings.changed:
            continue
        parameter = f"{name} (or alpha)" if name in of_alpha else name
        readers = " and ".join(f"loss={one!r}" for one in losses)
        current = f"loss={loss!r}" if loss else "a custom loss"
        raise ValueError(
            f"{parameter} is for {readers}, and {current} does not use it. Leave it out, or change the loss."
        )


def _refits_leaves(settings: BoostingSettings) -> bool:
    losses = settings.loss if isinstance(settings.loss, (list, tuple)) else [settings.loss]
    return any(isinstance(loss, str) and loss in TRAITS and TRAITS[loss].refits_leaves for loss in losses)


def _drops(settings: BoostingSettings) -> bool:
    return settings.drop_rate > 0


def _is_symmetric(settings: BoostingSettings) -> bool:
    return settings.growth == "symmetric"


def _is_forced(settings: BoostingSettings) -> bool:
    return settings.forced_splits is not None


def _is_parallel(settings: BoostingSettings) -> bool:
    return settings.n_parallel_trees > 1


def _has_vectors(settings: BoostingSettings) -> bool:
    return settings.leaves == "vector"


def _not_with_linear_leaves(name: str, why: str, holds: Callable[[BoostingSettings], bool]) -> Conflict:
    message = f"linear_leaves does not support {name}: {why}. Drop one of them."
    return Conflict(lambda s: s.linear_leaves is True and holds(s), message)


CONFLICTS = (
    Conflict(
        lambda s: s.draws_by_gradient and _refits_leaves(s),
        "sampling={s.sampling!r} draws rows by the size of their gradients, which is not informative for "
        "loss={s.loss!r}. Use sampling='uniform'.",
    ),
    Conflict(
        lambda s: s.draws_by_gradient and _is_parallel(s),
        "n_parallel_trees needs rows drawn uniformly. Use sampling='uniform'.",
    ),
    Conflict(
        lambda s: s.sampling == "goss" and not isinstance(s.subsample, str) and s.top_fraction >= s.subsample,
        "sampling='goss' draws subsample={s.subsample} of the rows, of which top_rate={s.top_fraction} have the "
        "largest gradients. Make subsample larger than top_rate.",
    ),
    Conflict(
        lambda s: not _drops(s) and (s.skip_drop > 0 or s.max_drop is not None or s.drop_by != "uniform"),
        "dart sets how rounds are dropped, and its rate=0 drops none. Set rate, or dart=None.",
    ),
    Conflict(
        lambda s: _drops(s) and s.warm_start,
        "warm_start adds to the trees of the earlier fit, and dart changes the values of these. Set warm_start=False, "
        "or dart=None.",
    ),
    Conflict(
        lambda s: _drops(s) and _is_parallel(s),
        "dart does not support n_parallel_trees. Set one of them.",
    ),
    Conflict(
        lambda s: _is_forced(s) and _is_symmetric(s),
        "forced_splits does not support symmetric growth, whose levels have one split each. Drop one.",
    ),
    Conflict(
        lambda s: _is_forced(s) and s.interaction_cst is not None,
        "forced_splits does not support interaction_cst, which may forbid them. Drop one.",
    ),
    Conflict(
        lambda s: (
            _has_vectors(s)
            and (
                _is_symmetric(s)
                or s.draws_by_gradient
                or _is_parallel(s)
                or _is_forced(s)
                or s.feature_costs is not None
            )
        ),
        "leaves='vector' does not support growth='symmetric', sampling='gradient' or 'goss', n_parallel_trees, "
        "feature_costs or forced_splits. Use leaves='single'.",
    ),
    Conflict(
        lambda s: s.linear_leaves is True and _refits_leaves(s),
        "linear_leaves needs second derivatives, which loss={s.loss!r} does not have. Use 'squared_error' or "
        "'log_cosh', or linear_leaves=False.",
    ),
    _not_with_linear_leaves(
        "monotonic_cst",
        "a linear leaf may fall where it must rise",
        lambda s: s.monotonic_cst is not None,
    ),
    _not_with_linear_leaves(
        "l1 of regularization", "linear leaves have L2 penalties only", lambda s: s.l1_regularization > 0
    ),
    _not_with_linear_leaves(
        "hierarchical_shrinkage", "it shrinks constant leaf values only", lambda s: s.hierarchical_shrinkage > 0
    ),
    _not_with_linear_leaves("dart", "dropped rounds are subtracted by bins, not by values", _drops),
    _not_with_linear_leaves("leaves='vector'", "a linear leaf has one output", _has_vectors),
    Conflict(
        lambda s: (
            has_list(s.feature_combinations)
            and (s.monotonic_cst, s.interaction_cst, s.feature_costs, s.feature_weights) != (None, None, None, None)
        ),
        "feature_combinations does not support monotonic_cst, interaction_cst, feature_costs or the weights of "
        "feature_sampling, which are for single columns. Drop one of them.",
    ),
)


def check_combined(X: Input) -> None:
    """Refuse listed combinations of columns of rows that are not in memory."""
    if X.is_stream or isinstance(X.table, RemoteTable):
        where = "temporary files" if X.is_stream else "several workers"
        raise ValueError(
            f"feature_combinations computes columns in memory, and the rows are in {where}. Add these columns to the "
            "table, or pass feature_combinations=None."
        )


def check_stream(X: Input, settings: BoostingSettings, recipe: Recipe, rows: LearningRows) -> None:
    """Refuse settings that need all rows of a stream in memory."""
    if not X.is_stream:
        return
    if recipe.n_folds and 0 < rows.n_used < len(rows.target):
        raise ValueError(
            "Some rows of the stream have weight 0, and n_estimators='auto' would copy the others into memory. Leave "
            "these rows out of the stream, or set n_estimators to a number."
        )
    if callable(settings.metrics[0]) and recipe.stops_early:
        raise ValueError(
            "scoring is a function that may read the held-out rows, and those of a stream are in files. Use the name "
            "of a metric, or the loss."
        )
    if settings.linear_leaves is True:
        raise ValueError(
            "linear_leaves reads the values of all rows of a leaf at once, and those of a stream are in files. Use "
            "linear_leaves=False."
        )
    if settings.starts_at_model:
        raise ValueError(
            f"init={type(settings.init).__name__} would be fitted to all rows of the stream in memory. Use "
            "init='constant', or pass its predictions as a column with offset."
        )


def check_partitioned(recipe: Recipe, rows: LearningRows) -> None:
    """Refuse settings that need all rows of a partitioned table on one worker."""
    if isinstance(rows.columns, _engine.Table) or not recipe.n_folds:
        return
    if rows.n_used < len(rows.target):
        raise ValueError(
            "Some rows have weight 0, and n_estimators='auto' would copy the others, which are on several workers. "
            "Leave these rows out of the collection, or set n_estimators to a number."
        )
    if recipe.random_bins or (recipe.target_encoding and high_cardinality_columns(rows.columns)):
        raise ValueError(
            "n_estimators='auto' reads all rows of a table of this size at once, and they are on several workers. Use "
            "larger workers, one of which can hold all rows; or set n_estimators to a number, such as "
            "n_estimators=300, perhaps with early_stopping=True."
        )


def why_not_partitioned(settings: BoostingSettings, inputs: FitInputs) -> str | None:
    """Return why a fit needs all rows on one worker, in words; None if rows can be partitioned."""
    loss = settings.loss
    folds = makes_folds(settings, inputs.has_validation_rows)
    reasons = {
        "growth='symmetric' has one split for all nodes of a level": settings.growth == "symmetric",
        "leaves='vector' has several values in a leaf": settings.leaves == "vector",
        f"sampling={settings.sampling!r} compares the gradients of all rows": (settings.sampling != "uniform"),
        "feature_combinations computes columns in memory": has_list(settings.feature_combinations),
        "dart subtracts earlier rounds from all rows": settings.drop_rate > 0,
        "forced_splits in growth splits between the values of all rows": settings.forced_splits is not None,
        "hierarchical_shrinkage in regularization shrinks leaves to their ancestors": settings.hierarchical_shrinkage
        > 0,
        "linear_leaves reads the values of all rows of a leaf": settings.linear_leaves is True,
        "n_parallel_trees in growth fits several trees to one gradient": settings.n_parallel_trees > 1,
        f"init={type(settings.init).__name__} is fitted to all rows": settings.starts_at_model,
        "scoring reads the rows": any(
            callable(metric) and not takes_predictions(metric) for metric in settings.metrics
        ),
        "several validation sets or metrics are evaluated after each round": (
            len(inputs.validation) > 1 or len(settings.metrics) > 1
        ),
        f"loss={loss if isinstance(loss, str) else type(loss).__name__!r} needs all rows of a leaf": (
            not _is_additive(loss) or (may_learn_mean_first(loss) and folds)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _is_additive(loss: object) -> bool:
    """Return whether leaf values of a loss are sums over rows."""
    if not isinstance(loss, str):
        return False
    known = TRAITS.get("logistic" if loss == "log_loss" else loss)  # also for several classes
    return known is not None and known.is_additive
