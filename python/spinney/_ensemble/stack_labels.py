"""Several labels of 0 and 1, which a stack predicts together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from spinney._data.arguments import argument_array
from spinney._data.types import Floats
from spinney._model.predictions import label_columns


def read_labels(y: object) -> NDArray[Any] | None:
    """Return a target of several labels of 0 and 1, (n_rows, n_labels); None if it is another."""
    if y is None:
        return None
    labels = argument_array(y, "y")
    if labels.ndim != 2 or labels.shape[1] < 2 or labels.dtype.kind not in "biuf":
        return None
    is_label = type_of_target(labels) == "multilabel-indicator" and np.isin(labels, (0, 1)).all()
    return labels if is_label else None


def check_options(model: Any) -> None:
    """Refuse the options of a stack that combine one output."""
    if model._is_greedy:
        raise ValueError(
            "final_estimator='greedy' combines one output, and y has several labels. Use another final_estimator."
        )
    if not model.refit:
        raise ValueError("refit=False averages the models of one output, and y has several labels. Use refit=True.")


def predicted_labels(predicted: Floats, method: str, classes: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels that columns of probabilities, decisions or labels predict, (n_rows, n_labels)."""
    return (predicted > (0 if method == "decision_function" else 0.5)).astype(classes[0].dtype)


def label_probabilities(final: Any, X: Any, n_labels: int) -> list[Floats]:
    """Return the probabilities of 0 and 1 of each label, (n_rows, 2)."""
    columns = label_columns(final, X, "predict_proba", n_labels)
    return [np.column_stack([1 - column, column]) for column in columns.T]
