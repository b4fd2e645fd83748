"""Monotone columns as boosting can promise them; what it cannot keep is refused."""

from __future__ import annotations

from collections.abc import Sequence

from spinney._boosting.losses.outputs import read_monotone_of_outputs
from spinney._boosting.settings import BoostingSettings
from spinney._data import Schema

REFITTED = ("absolute_error", "quantile", "huber")  # losses whose leaves take medians or quantiles of residuals


def promised_directions(settings: BoostingSettings, schema: Schema, widths: Sequence[int]) -> list[list[int]]:
    """Monotone directions by score and column, as `read_monotone_of_outputs` returns them."""
    if settings.loss == "normal" and settings.monotonic_cst is not None:
        raise ValueError(
            "monotonic_cst is for losses of one score, and loss='normal' has two, a mean and a spread. Use "
            "loss='squared_error', or leave the constraints out."
        )
    directions = read_monotone_of_outputs(settings.monotonic_cst, schema, widths)
    differ = any(len(set(of_column)) > 1 for of_column in zip(*directions, strict=True))
    if differ and settings.levels is not None:
        raise ValueError(
            "A row's quantiles are put in order, so that one rises with a column only if all do, and monotonic_cst has "
            "another direction for some. Give one row of -1, 0, 1 for all of them."
        )
    if directions and settings.growth == "symmetric":
        raise ValueError(
            "growth='symmetric' makes the same cut in all nodes of a level, and monotonicity constraints may forbid it "
            "in some. Use another growth, or leave the constraints out."
        )
    if directions and settings.starts_at_model:
        raise ValueError(
            f"monotonic_cst cannot be kept with init={type(settings.init).__name__}: the trees would rise, and where "
            "they start need not. Use init='constant', or leave the constraints out."
        )
    return directions
