"""Monotone columns as boosting can promise them; what it cannot keep is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spinney._boosting.settings import BoostingSettings
from spinney._data import Schema
from spinney._data.arguments import given_array
from spinney._estimator.parameters import read_monotone


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


def read_monotone_of_outputs(constraint: Any, schema: Schema, widths: Sequence[int]) -> list[list[int]]:
    """Monotone directions by score and column: one list if they are the same for all scores, none if there are none.

    `widths` are the numbers of scores of the outputs.
    """
    several = _by_output(constraint)
    if several is None:
        directions = read_monotone(constraint, schema)
        if directions and max(widths) > 1:
            raise ValueError(
                "Monotonicity constraints are not supported with multiclass classification: the classes' shares "
                "cannot all rise. Fit one model per class against the rest."
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
        raise ValueError("monotonic_cst is for outputs of one score each: values, or two classes. Leave it out.")
    return [directions or [0] * schema.n_features for directions in found]


def _by_output(constraint: Any) -> list[Any] | None:
    """Rows of constraints, if they are given by output."""
    if constraint is None or isinstance(constraint, Mapping):
        return None
    if isinstance(constraint, (list, tuple)) and any(isinstance(one, (Mapping, type(None))) for one in constraint):
        return list(constraint)
    given = given_array(constraint, "monotonic_cst")
    return list(given) if given.ndim == 2 else None
