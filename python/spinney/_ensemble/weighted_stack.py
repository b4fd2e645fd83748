"""Stacks of fitted models with given weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from spinney._data.select import pick_table
from spinney._data.types import TableLike
from spinney._ensemble.stack_members import GreedySelection
from spinney._ensemble.stacking import GREEDY, StackingClassifier, StackingRegressor
from spinney._model.predictions import Calibration


def weighted_stack(
    members: dict[str, BaseEstimator],
    weights: list[float],
    X: TableLike,
    classes: NDArray[Any] | None,
    *,
    scores: dict[str, float],
    temperatures: list[float] | None = None,
    calibration: Calibration = None,
) -> StackingClassifier | StackingRegressor:
    """Return a fitted stack that averages fitted models of spinney with given weights.

    Parameters
    ----------
    members : dict of str to estimator
        Fitted to the columns of `X`; classifiers must have predict_proba.
    weights : list of float
        Weights of the members; they add up to 1.
    X : table
        The training table of the members.
    classes : ndarray or None
        Labels; None in a regression.
    scores : dict of str to float
        Out-of-fold scores of the members.
    temperatures : list of float, optional
        Temperature of each member: its log-probabilities are divided by it before they are averaged.
    calibration : float or Curve, optional
        Calibration of the mean probabilities: a temperature, or a calibration curve.

    Returns
    -------
    StackingClassifier or StackingRegressor
        Fitted.
    """
    kind: type[StackingClassifier | StackingRegressor] = StackingRegressor if classes is None else StackingClassifier
    model, n = kind(list(members.items()), GREEDY), len(members)
    model._set_members(pick_table(X), classes, list(members.items()), [False] * n)
    model.stack_method_ = ["predict" if classes is None else "predict_proba"] * n
    model.oof_scores_ = scores
    model._widths = [1 if classes is None or len(classes) == 2 else len(classes)] * n
    model.final_estimator_ = GreedySelection.of(np.array(weights, dtype=float), classes, temperatures, calibration)
    model._final_coded = False
    return model
