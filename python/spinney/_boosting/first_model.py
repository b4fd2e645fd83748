"""Scores that start where another model predicts."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from spinney._boosting.evaluation import Labels
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._data.reproducible import log
from spinney._data.select import pick_table
from spinney._data.types import TableLike
from spinney._estimator.fit_inputs import FitInputs
from spinney._model.links import is_of_classes

Floats = NDArray[np.float64]
_INVERTED = ("logit", "half_logit", "softmax")  # links by which a share has one score
_LEAST_SHARE = float(np.finfo(np.float32).eps)  # a share of 0 has no finite score


class FirstModel(Protocol):
    """An estimator of scikit-learn's kind whose predictions scores start at."""

    def fit(self, X: Any, y: Any) -> Any: ...
    def predict(self, X: Any) -> Any: ...
    def predict_proba(self, X: Any) -> Any: ...


def fit_first(
    template: FirstModel, X: TableLike, rows: LearningRows, classes: Labels | None, is_weighted: bool
) -> FirstModel:
    """Fit the model that scores start from to the rows that are learned from."""
    used = np.flatnonzero(rows.weights() > 0)
    if classes is not None and len(classes) > 1:
        raise ValueError("A model to start from is for one output. Fit one model per output, or drop init.")
    y = rows.target[used] if classes is None else classes[0][rows.target[used].astype(np.intp)]
    weighted = {}
    if is_weighted:
        if not has_fit_parameter(template, "sample_weight"):
            raise ValueError(
                f"The initial estimator {type(template).__name__} does not support sample weights. Leave the weights "
                "out, or start from another model."
            )
        weighted["sample_weight"] = rows.weights()[used]
    table = pick_table(X)
    fitted: FirstModel = clone(template).fit(table.take(None if len(used) == table.n_rows else used), y, **weighted)
    return fitted


def first_scores(first: FirstModel, X: TableLike, link: str, n_classes: int, n_scores: int = 1) -> Floats:
    """Scores at which a model's predictions lie, (n_scores, n_rows)."""
    X = pick_table(X).native
    name = type(first).__name__
    if link == "normal":
        raise ValueError(f"loss='normal' does not start at another model. Drop init={name}.")
    if not is_of_classes(link):
        found = np.asarray(first.predict(X), dtype=np.float64)
        found = found.reshape(1, -1) if found.ndim == 1 or n_scores == 1 else np.ascontiguousarray(found.T)
        if len(found) == 1:
            found = np.repeat(found, n_scores, axis=0)  # all quantiles start at one prediction
        if len(found) != n_scores:
            raise ValueError(f"init={name} predicts {len(found)} outputs, and the model has {n_scores}.")
        if link == "log" and not (found > 0).all():
            output, row = np.argwhere(~(found > 0))[0]
            raise ValueError(
                f"This loss is for positive predictions, and init={name} predicts {found[output, row]:g} for row "
                f"{row}. Start from a model that predicts positive numbers."
            )
        return log(found) if link == "log" else found
    if link not in _INVERTED:
        raise ValueError(f"This loss does not start at another model. Drop init={name}, or use loss='log_loss'.")
    shares = np.asarray(first.predict_proba(X), dtype=np.float64)
    if shares.ndim != 2 or shares.shape[1] != n_classes:
        raise ValueError(f"init={name} gives shares of shape {shares.shape}; they need a column for each class.")
    shares = np.ascontiguousarray(np.clip(shares, _LEAST_SHARE, 1 - _LEAST_SHARE).T)
    if link == "softmax":
        logs = log(shares)
        return np.asarray(logs - logs.mean(axis=0))
    return np.asarray(log(shares[1:] / (1 - shares[1:])) / (2.0 if link == "half_logit" else 1.0))


def from_first_model(
    first: FirstModel, inputs: FitInputs, parts: tuple[LearningRows, LearningRows | None], loss: Loss, n_classes: int
) -> tuple[LearningRows, LearningRows | None]:
    """Begin rows to learn from, and those held out, at the predictions of a fitted model."""
    (rows, held_out), n_scores = parts, sum(part.n_scores for part in loss.parts)
    scores, validation = first_scores(first, inputs.X, loss.link, n_classes, n_scores), inputs.first_validation
    if held_out is not None:
        X = None if validation is None else validation.X
        held_out = held_out.with_offset(scores if X is None else first_scores(first, X, loss.link, n_classes, n_scores))
    return rows.with_offset(scores), held_out
