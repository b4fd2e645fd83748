"""What a warm start may not change: what the trees there are were grown on and split on."""

from __future__ import annotations

import warnings
from typing import Any

from spinney._data import Combinations
from spinney._estimator.warm_start import check_target_goes_on
from spinney._forest.growing.rows import Draws
from spinney._model.forest import FittedForest


def check_extension(model: Any, earlier: FittedForest, learned: dict[str, Any]) -> None:
    """Refuse a warm start that the earlier trees do not fit, and warn if it adds nothing."""
    check_target_goes_on(learned, model.__dict__)
    n = model.n_estimators
    if n == "auto":
        return
    if n < earlier.n_trees:
        raise ValueError(
            f"n_estimators={n} must be larger or equal to len(estimators_)={earlier.n_trees} when warm_start==True."
        )
    if n == earlier.n_trees:
        warnings.warn(
            "Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning, stacklevel=3
        )


def check_samples_go_on(known: dict[str, Any], draws: Draws | None) -> None:
    """Refuse a warm start after which nobody would know what the earlier trees were grown on."""
    if "_draws" not in known:  # loaded from a file that does not say
        return
    before: Draws | None = known["_draws"]
    if (before is None) != (draws is None):
        raise ValueError(
            "warm_start keeps how rows are drawn, but the earlier trees were grown with "
            f"bootstrap={before is not None}. Set that, or warm_start=False."
        )
    if before is not None and draws is not None and not draws.same_samples(before):
        raise ValueError(
            "warm_start goes on drawing from the rows of the earlier fit, but the rows, their weights or groups, or "
            "the parameters of sampling have changed. Fit as before, or set warm_start=False."
        )


def check_pool(before: Combinations | None, now: Combinations | None) -> None:
    """Refuse combinations of columns that are not those of the earlier fit."""
    sizes = [None if pool is None else (len(pool), pool.parts.shape[1]) for pool in (before, now)]
    if sizes[0] != sizes[1]:
        earlier = "oblique=None" if sizes[0] is None else f"oblique={sizes[0][0]} and n_combined={sizes[0][1]}"
        raise ValueError(
            f"warm_start keeps what trees split on, but the earlier ones were grown with {earlier}. Set oblique and "
            "n_combined as they were then, or warm_start=False."
        )
