"""Monotone columns as boosting can promise them; what it cannot keep is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spinney._boosting.losses.outputs import read_monotone_of_outputs
from spinney._data import Schema

REFITTED = ("absolute_error", "quantile", "huber")  # losses whose leaves take medians or quantiles of residuals


def promised_directions(model: Any, schema: Schema, widths: Sequence[int]) -> list[list[int]]:
    """Monotone directions by score and column, as `read_monotone_of_outputs` returns them."""
    if getattr(model, "loss", None) == "normal" and model.monotonic_cst is not None:
        raise ValueError(
            "monotonic_cst is for losses of one score, and loss='normal' has two, a mean and a spread. Use "
            "loss='squared_error', or leave the constraints out."
        )
    directions = read_monotone_of_outputs(model.monotonic_cst, schema, widths)
    differ = any(len(set(of_column)) > 1 for of_column in zip(*directions, strict=True))
    if differ and getattr(model, "_levels", None) is not None:
        raise ValueError(
            "A row's quantiles are put in order, so that one rises with a column only if all do, and monotonic_cst has "
            "another direction for some. Give one row of -1, 0, 1 for all of them."
        )
    if directions and model.growth == "symmetric":
        raise ValueError(
            "growth='symmetric' makes the same cut in all nodes of a level, and monotonicity constraints may forbid it "
            "in some. Use another growth, or leave the constraints out."
        )
    if directions and model._starts_at_model:
        raise ValueError(
            f"monotonic_cst cannot be kept with init={type(model.init).__name__}: the trees would rise, and where they "
            "start need not. Use init='constant', or leave the constraints out."
        )
    return directions


def check_earlier_keeps(model: Any) -> None:
    """Refuse to go on from trees that break, or may break, a constraint of the model."""
    fitted = model.boosting_
    has_many = fitted.n_shares > 0 and fitted.n_scores > model.n_outputs_  # classes: nothing can be proved of them
    if has_many or not model._asked_directions(model.monotonic_cst):
        return
    found = model.verify_constraints()
    if found.holds is not True:
        raise ValueError(
            "warm_start adds to the trees of the earlier fit, and these are not known to keep monotonic_cst "
            f"({str(found).splitlines()[0]}). Set warm_start=False."
        )
