"""Which boosted models learn from partitioned rows, and why others do not."""

from __future__ import annotations

from collections.abc import Mapping

from spinney._boosting.evaluation import takes_predictions
from spinney._boosting.loss import TRAITS
from spinney._boosting.options.recipe_table import makes_folds
from spinney._boosting.settings import SEARCH, BoostingSettings, Metric


def why_all_rows(settings: BoostingSettings, arguments: Mapping[str, object]) -> str | None:
    """Say, in words, why a model needs all of its rows in one place; None if it does not.

    Parameters
    ----------
    settings : BoostingSettings
        Of the model.
    arguments : dict
        The other parameters of `fit`, by name.
    """
    loss = settings.loss
    folds = makes_folds(settings, arguments.get("X_val") is not None or arguments.get("time") is not None)
    reasons = {
        f"effort={SEARCH!r} tries several recipes on the same rows": settings.effort == SEARCH,
        "growth='symmetric' has one cut for all leaves of a level": settings.growth == "symmetric",
        "leaves='vector' has several values in a leaf": settings.leaves == "vector",
        f"sampling={settings.sampling!r} compares the gradients of all rows": (settings.sampling != "uniform"),
        "dart takes earlier rounds off all rows": settings.drop_rate > 0,
        "forced_splits in growth cuts between the values of all rows": settings.forced_splits is not None,
        "hierarchical_shrinkage in regularization draws leaves to the nodes above": settings.hierarchical_shrinkage > 0,
        "linear_leaves reads the values of all rows of a leaf": bool(settings.linear_leaves),
        "n_parallel_trees in growth fits several trees to one gradient": settings.n_parallel_trees > 1,
        f"init={type(settings.init).__name__} is fitted to all rows": settings.starts_at_model,
        "scoring looks at the rows themselves": any(map(_reads_rows, settings.metrics)),
        "several sets or metrics are judged after each round": (
            isinstance(arguments.get("y_val"), dict) or len(settings.metrics) > 1
        ),
        f"loss={loss if isinstance(loss, str) else type(loss).__name__!r} looks at all rows of a leaf": (
            not _adds_up(loss) or (loss == "normal" and folds)
        ),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), None)


def _reads_rows(metric: Metric) -> bool:
    return not (metric is None or isinstance(metric, str) or takes_predictions(metric))


def _adds_up(loss: object) -> bool:
    """Whether leaves of a loss are sums over rows, wherever these are."""
    if not isinstance(loss, str):
        return False
    known = TRAITS.get("logistic" if loss == "log_loss" else loss)  # of classes, however many
    return known is not None and known.is_additive
