"""Stacks of members that are fitted already, with weights found elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.select import pick_table
from spinney._ensemble.stacking.classifier import StackingClassifier
from spinney._ensemble.stacking.greedy import GreedySelection
from spinney._ensemble.stacking.regressor import StackingRegressor
from spinney._ensemble.stacking.stacking import GREEDY
from spinney._model.calibration import Calibration

Floats = NDArray[np.float64]


def weighted_stack(
    members: dict[str, Any],
    weights: list[float],
    X: Any,
    classes: NDArray[Any] | None,
    *,
    scores: dict[str, float],
    temperatures: list[float] | None = None,
    calibration: Calibration = None,
) -> StackingClassifier | StackingRegressor:
    """Make the stack that averages some fitted models of spinney.

    Parameters
    ----------
    members : dict of str to estimator
        Fitted to the columns of `X`; classifiers have probabilities.
    weights : list of float
        Of the members; they add up to 1.
    X : table
        What the members were fitted to, for its columns.
    classes : ndarray or None
        Labels; None: the members predict values.
    scores : dict of str to float
        Out-of-fold scores of the members.
    temperatures : list of float, optional
        By which logarithms of each member's probabilities are divided before they are averaged.
    calibration : float or Curve, optional
        By which logarithms of the mean probabilities are divided, or a curve off which they are read.

    Returns
    -------
    StackingClassifier or StackingRegressor
        Fitted.
    """
    kind: type[StackingClassifier | StackingRegressor] = StackingRegressor if classes is None else StackingClassifier
    model = kind(list(members.items()), GREEDY)
    final = GreedySelection(len(members))
    final.weights_ = np.asarray(weights, dtype=np.float64)
    final.temperatures_, final.calibration_ = temperatures, calibration
    width = 1 if classes is None or len(classes) == 2 else len(classes)
    learned: dict[str, Any] = {
        "_names": list(members),
        "stack_method_": ["predict" if classes is None else "predict_proba"] * len(members),
        "estimators_": list(members.values()),
        "_coded": [False] * len(members),
        "oof_scores_": scores,
        "_widths": [width] * len(members),
        "final_estimator_": final,
        "_final_coded": False,
    }
    if classes is not None:
        final.classes_ = classes
        learned |= {"classes_": classes, "n_classes_": len(classes)}
    model._keep(pick_table(X), learned)
    return model
