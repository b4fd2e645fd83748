"""Several numbers per row: targets of several columns, several quantiles, and what their scores have to obey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.losses.loss import Loss, regression_loss
from spinney._boosting.losses.rows import LearningRows
from spinney._data import Schema
from spinney._data.arguments import given_array
from spinney._data.numeric.reproducible import exp
from spinney._estimator.parameters import read_monotone

Floats = NDArray[np.float64]
_SQUARED = ("squared_error", "huber", "log_cosh")  # losses whose unit is that of the target, squared


def loss_of_quantiles(levels: Sequence[float]) -> Loss:
    """Return the loss of several quantiles of one target: their predictions are put in order, row by row."""
    parts = tuple(replace(regression_loss("quantile", q, 1.5), parameter=q, weight=1 / len(levels)) for q in levels)
    return replace(parts[0], link="ascending", of=parts, weight=1.0)


def loss_of_outputs(parts: Sequence[Loss], link: str) -> Loss:
    """Return the loss of several columns of the target: the mean of theirs."""
    return replace(parts[0], link=link, of=tuple(replace(part, weight=1 / len(parts)) for part in parts))


def weighed(loss: Loss, rows: LearningRows) -> Loss:
    """Return a loss that counts alike in whatever units a target is measured: with weights of several columns.

    That of a normal distribution has the variance of all rows as its parameter.
    """
    if loss.name == "normal" and rows.target.ndim == 1:
        used = rows.weights() > 0
        offset = None if rows.offset is None else rows.offset[:, used]
        deviation = exp(loss.constants(rows.target[used], rows.weights()[used], offset)[1])
        return replace(loss, parameter=float(deviation) ** 2)
    if rows.target.ndim == 1:
        return loss
    used = rows.weights() > 0
    columns = zip(loss.parts, rows.target[used].T, strict=True)
    scales = [_weight(part, y, rows.weights()[used]) for part, y in columns]
    parts = (replace(part, weight=scale / len(scales)) for part, scale in zip(loss.parts, scales, strict=True))
    return replace(loss, of=tuple(parts))


def _weight(loss: Loss, y: Floats, weight: Floats) -> float:
    """Return one over the unit of a column's loss, if it has one."""
    if loss.name not in (*_SQUARED, "absolute_error", "quantile"):
        return 1.0
    mean = np.average(y, weights=weight)
    variance = float(np.average((y - mean) ** 2, weights=weight))
    if not variance > 0:
        return 1.0
    return 1 / variance if loss.name in _SQUARED else float(1 / np.sqrt(variance))


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
