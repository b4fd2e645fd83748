"""The stack of a study and the calibration of its best model, both fitted to out-of-fold predictions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import Floats
from spinney._ensemble.stack_members import GreedySelection
from spinney._estimator.held_out import Fold
from spinney._evaluate.row_scores import log_losses
from spinney._evaluate.statistics import corrected_error
from spinney._model.predictions import (
    Calibration,
    Curve,
    as_columns,
    calibrated,
    isotonic_curve,
    mean_prediction,
    tempered,
)

Calibrator = Callable[[Floats, NDArray[np.generic]], float | Curve]
TEMPERATURES = [round(float(1.05**k), 4) for k in range(-36, 49)]  # 0.17 to 10.4
_FEWEST_FOR_A_CURVE = 500  # of the rarer class
MOST_STACK_ROWS = 10_000  # that the weights of a stack are fitted to


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Folds of one repeat, and the targets: numbers, or codes of classes.

    Attributes
    ----------
    folds : list of Fold
    target : ndarray of shape (n_rows,)
    classes : ndarray or None
    in_time : bool
        Whether only earlier folds may be used for fitting.
    """

    folds: list[Fold]
    target: NDArray[np.generic]
    classes: NDArray[np.generic] | None
    in_time: bool

    def others(self, k: int) -> list[int]:
        """Return the folds that are used to fit what is evaluated on fold k."""
        return [j for j in range(len(self.folds)) if (j < k if self.in_time else j != k)]

    def targets(self, folds: list[int]) -> NDArray[np.generic]:
        """Return the targets of some folds."""
        return np.concatenate([self.target[self.folds[k].held_out] for k in folds])


def fit_stack(
    predictions: list[Floats], target: NDArray[np.generic], classes: NDArray[np.generic] | None
) -> tuple[list[float], list[float | None]]:
    """Return the weights of members by greedy selection, and the temperatures that calibrate them beforehand.

    Of many rows a part is used, which suffices for so few numbers.
    """
    step = -(-len(target) // MOST_STACK_ROWS)
    predictions, target = [one[::step] for one in predictions], target[::step]
    temperatures = [None if classes is None else best_temperature(one, target) for one in predictions]
    method = "predict" if classes is None else "predict_proba"
    columns = np.hstack([as_columns(one, method, classes) for one in tempered_each(predictions, temperatures)])
    weights: list[float] = GreedySelection(len(predictions)).fit(columns, target, classes=classes).weights_.tolist()
    return weights, temperatures


def stacked(predictions: list[list[Floats]], held_out: HeldOut) -> list[Floats]:
    """Return the predictions of the stack on each fold, with weights and temperatures fitted to the other folds.

    Parameters
    ----------
    predictions : list of lists of ndarray
        Predictions by member and fold.
    held_out : HeldOut
    """
    stack = []
    for k in range(len(held_out.folds)):
        others, members = held_out.others(k), [member[k] for member in predictions]
        weights = [1 / len(predictions)] * len(predictions)
        if others:
            fitted_to = [np.vstack([member[j] for j in others]) for member in predictions]
            weights, temperatures = fit_stack(fitted_to, held_out.targets(others), held_out.classes)
            members = tempered_each(members, temperatures)
        stack.append(mean_prediction(members, weights))
    return stack


def tempered_each(predictions: list[Floats], temperatures: list[float | None]) -> list[Floats]:
    """Return the predictions of each member, divided by its temperature on the log scale; None: unchanged."""
    return [tempered(one, temperature) for one, temperature in zip(predictions, temperatures, strict=True)]


def best_temperature(proba: Floats, codes: NDArray[np.generic]) -> float:
    """Return the temperature of a fixed list with the lowest log loss; the list makes the result reproducible.

    The loss is unimodal in the temperature, so that a bisection on neighbours finds the minimum.
    """

    def loss(k: int) -> float:
        return float(log_losses(tempered(proba, TEMPERATURES[k]), codes).mean())

    best = bisect_left(range(len(TEMPERATURES) - 1), True, key=lambda k: loss(k) <= loss(k + 1))
    return TEMPERATURES[best]


def best_curve(proba: Floats, codes: NDArray[np.generic]) -> Curve:
    """Return the isotonic regression of two classes."""
    return isotonic_curve(proba[:, 1], codes == 1)


@dataclass(frozen=True)
class Calibrated:
    """A calibration (a temperature, a curve, or None), the reason, and the function that fits it."""

    by: Calibration
    why: str
    calibrator: Calibrator | None = None

    def of_folds(self, predictions: list[Floats], held_out: HeldOut) -> list[Floats]:
        """Return calibrated predictions of each fold, with the calibration fitted to the other folds."""
        if self.calibrator is None:
            return predictions
        return [
            calibrated(one, by)
            for one, by in zip(predictions, _fitted(predictions, held_out, self.calibrator), strict=True)
        ]


def calibrate(predictions: list[Floats], held_out: HeldOut) -> Calibrated:
    """Choose between temperature scaling, isotonic regression and no calibration by cross-validation.

    The calibration with the lowest log loss is used if the gain exceeds its standard error. Isotonic regression needs
    two classes with enough rows.
    """
    folds = list(range(len(held_out.folds)))
    codes = held_out.targets(folds)
    calibrators: dict[str, Calibrator] = {"temperature": best_temperature}
    if predictions[0].shape[1] == 2 and np.bincount(codes.astype(np.intp), minlength=2).min() >= _FEWEST_FOR_A_CURVE:
        calibrators["curve"] = best_curve
    gains = {name: _gains(predictions, held_out, calibrator) for name, calibrator in calibrators.items()}
    best = max(gains, key=lambda name: float(np.mean(gains[name])))
    gain = float(np.mean(gains[best]))
    error = corrected_error(np.array(gains[best]), 1 / max(1, len(folds) - 1))
    if not gain > (0.0 if np.isnan(error) else error):
        more = " nor isotonic regression" if "curve" in calibrators else ""
        return Calibrated(None, f"Its probabilities are not recalibrated: no temperature{more} lowers the log loss.")
    by = calibrators[best](np.vstack(predictions), codes)
    lower = f"which lowers the cross-validated log loss by {gain:.2g}."
    if isinstance(by, Curve):
        return Calibrated(by, f"Its probabilities are calibrated by isotonic regression, {lower}", best_curve)
    return Calibrated(
        by, f"Its probabilities are calibrated by temperature scaling (temperature {by:.2g}), {lower}", best_temperature
    )


def _fitted(predictions: list[Floats], held_out: HeldOut, calibrator: Calibrator) -> list[Calibration]:
    """Return the calibration fitted to the other folds of each fold; None without any."""
    return [
        calibrator(np.vstack([predictions[j] for j in others]), held_out.targets(others)) if others else None
        for others in map(held_out.others, range(len(predictions)))
    ]


def _gains(predictions: list[Floats], held_out: HeldOut, calibrator: Calibrator) -> list[float]:
    """Return the decrease of the log loss of each fold by the calibration fitted to the others."""
    gains = []
    for one, by, fold in zip(predictions, _fitted(predictions, held_out, calibrator), held_out.folds, strict=True):
        if by is not None:
            codes = held_out.target[fold.held_out]
            gains.append(float(log_losses(one, codes).mean() - log_losses(calibrated(one, by), codes).mean()))
    return gains
