"""Ordered classes: their order, and the cuts between them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._data.arguments import argument_array
from spinney._data.types import Floats
from spinney._model.boosting import FittedBoosting
from spinney._model.links import cuts_of, ordinal_link


def in_order(y: Any, codes: Floats, labels: NDArray[Any], order: Any) -> tuple[Floats, NDArray[Any]]:
    """Return codes and labels of ordered classes.

    The order is `order`, else that of an ordered categorical column, else that of numbers or dates.
    """
    given = order if order is None else argument_array(order, "class_order").tolist()
    known = _declared_order(y) if given is None else given
    if known is None and labels.dtype.kind not in "biufmM":
        names = ", ".join(map(repr, labels[:3].tolist()))
        raise ValueError(
            f"loss='ordinal' needs the order of the classes, and y holds text such as {names}. Pass class_order, all "
            "classes from the lowest to the highest, or an ordered categorical column of pandas as y."
        )
    if known is None:
        return codes, labels
    rank_of = {label: rank for rank, label in enumerate(known)}
    if len(rank_of) < len(known):
        raise ValueError("class_order must name each class once.")
    unknown = [label for label in labels.tolist() if label not in rank_of]
    if unknown:
        raise ValueError(f"class_order lacks a class that y has: {unknown[0]!r}. Add it at its place in the order.")
    by_rank = np.argsort([rank_of[label] for label in labels.tolist()], kind="stable")
    place = np.empty(len(labels))
    place[by_rank] = np.arange(len(labels))
    return place[codes.astype(np.intp)], labels[by_rank]


def _declared_order(y: Any) -> list[Any] | None:
    """Return the categories of an ordered categorical column of pandas, or of an Enum of polars; else None."""
    dtype: Any = getattr(y, "dtype", None)
    kind = type(dtype).__name__
    if kind == "CategoricalDtype" and dtype.ordered:
        return list(dtype.categories)
    return dtype.categories.to_list() if kind == "Enum" else None


def link_on(fitted: FittedBoosting, loss: Loss, rows: LearningRows, n_threads: int) -> str:
    """Return the link of predictions; that of ordered classes has the cuts of least loss of the rows."""
    scores = fitted.scores(rows.columns, n_threads).T
    return loss.link_at(rows.target, scores if rows.offset is None else scores + rows.offset, rows.weight)


def with_refitted_cuts(fitted: FittedBoosting, loss: Loss, rows: LearningRows, decay: float) -> FittedBoosting:
    """Return a model whose cuts between ordered classes retain the fraction `decay` of their values.

    The rest comes from the cuts of least loss of the rows.
    """
    if loss.name != "ordinal":
        return fitted
    new = cuts_of(link_on(fitted, loss, rows, 1))
    return fitted.with_link(ordinal_link(decay * cuts_of(fitted.link) + (1 - decay) * new))
