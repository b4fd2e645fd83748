"""The stack of a study, and the calibration of its best model: both found on rows held out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney._data.reproducible import log
from spinney._data.types import Floats
from spinney._ensemble.stack_members import GreedySelection
from spinney._estimator.held_out import Fold
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

Way = Callable[[Floats, NDArray[np.generic]], float | Curve]
TEMPERATURES = [round(float(1.05**k), 4) for k in range(-36, 49)]  # 0.17 to 10.4
_LEAST_SHARE = 2.0**-52
_ROWS_FOR_A_CURVE = 500  # of the rarer class


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Folds of one repeat in order, and the targets: values, or codes of classes.

    Attributes
    ----------
    folds : list of Fold
    target : ndarray of shape (n_rows,)
    classes : ndarray or None
    in_time : bool
        Whether a fold may only learn from those before it.
    """

    folds: list[Fold]
    target: NDArray[np.generic]
    classes: NDArray[np.generic] | None
    in_time: bool

    def others(self, k: int) -> list[int]:
        """Folds that may be learned from to judge fold k."""
        return [j for j in range(len(self.folds)) if (j < k if self.in_time else j != k)]

    def targets(self, folds: list[int]) -> NDArray[np.generic]:
        """Targets of some folds."""
        return np.concatenate([self.target[self.folds[k].held_out] for k in folds])


def fit_stack(
    predictions: list[Floats], target: NDArray[np.generic], classes: NDArray[np.generic] | None
) -> tuple[list[float], list[float | None]]:
    """Weights of members by greedy selection, and temperatures of their probabilities, found on rows held out.

    A mean is best of members that are as sure as they should be.
    """
    temperatures = [None if classes is None else best_temperature(one, target) for one in predictions]
    method = "predict" if classes is None else "predict_proba"
    columns = np.hstack([as_columns(one, method, classes) for one in tempered_each(predictions, temperatures)])
    weights: list[float] = GreedySelection(len(predictions)).fit(columns, target, classes=classes).weights_.tolist()
    return weights, temperatures


def stacked(said: list[list[Floats]], held_out: HeldOut) -> list[Floats]:
    """Return what the stack of some members says of each fold, with temperatures and weights found on the others.

    Parameters
    ----------
    said : list of lists of ndarray
        By member and fold.
    held_out : HeldOut
    """
    found = []
    for k in range(len(held_out.folds)):
        others, asked = held_out.others(k), [member[k] for member in said]
        weights = [1 / len(said)] * len(said)
        if others:
            before = [np.vstack([member[j] for j in others]) for member in said]
            weights, temperatures = fit_stack(before, held_out.targets(others), held_out.classes)
            asked = tempered_each(asked, temperatures)
        found.append(mean_prediction(asked, weights))
    return found


def tempered_each(predictions: list[Floats], temperatures: list[float | None]) -> list[Floats]:
    """Temper the predictions of each member; None: leave them."""
    return [tempered(one, temperature) for one, temperature in zip(predictions, temperatures, strict=True)]


def log_losses(shares: Floats, codes: NDArray[np.generic]) -> Floats:
    """Log loss of each row."""
    own = shares[np.arange(len(codes)), codes.astype(np.intp)]
    return -log(np.maximum(own, _LEAST_SHARE))


def best_temperature(shares: Floats, codes: NDArray[np.generic]) -> float:
    """Find the temperature of least log loss, of a fixed list: so that the last bits of sums do not decide.

    The loss falls and then rises with the temperature, so two neighbours tell on which side the least lies.
    """

    def loss(k: int) -> float:
        return float(log_losses(tempered(shares, TEMPERATURES[k]), codes).mean())

    place = bisect_left(range(len(TEMPERATURES) - 1), True, key=lambda k: loss(k) <= loss(k + 1))
    return TEMPERATURES[place]


def best_curve(shares: Floats, codes: NDArray[np.generic]) -> Curve:
    """Find the rising curve of two classes."""
    return isotonic_curve(shares[:, 1], codes == 1)


@dataclass(frozen=True)
class Calibrated:
    """A temperature, a curve, or None where probabilities stay as they are; why; and how it is found."""

    by: Calibration
    why: str
    way: Way | None = None

    def of_folds(self, said: list[Floats], held_out: HeldOut) -> list[Floats]:
        """Calibrate what was said of each fold by what is found on the others."""
        if self.way is None:
            return said
        return [calibrated(one, by) for one, by in zip(said, _found(said, held_out, self.way), strict=True)]


def calibrate(said: list[Floats], held_out: HeldOut) -> Calibrated:
    """Judge whether a temperature or a rising curve makes probabilities better; each fold has that of the others.

    The one that lowers the mean log loss most is taken, if by more than the standard error of the fall. Curves have
    many numbers to find: only two classes with enough rows have one.
    """
    folds = list(range(len(held_out.folds)))
    codes = held_out.targets(folds)
    ways: dict[str, Way] = {"temperature": best_temperature}
    if said[0].shape[1] == 2 and np.bincount(codes.astype(np.intp), minlength=2).min() >= _ROWS_FOR_A_CURVE:
        ways["curve"] = best_curve
    gains = {name: _gains(said, held_out, way) for name, way in ways.items()}
    best = max(gains, key=lambda name: float(np.mean(gains[name])))
    gain = float(np.mean(gains[best]))
    error = corrected_error(np.array(gains[best]), 1 / max(1, len(folds) - 1))
    if not gain > (0.0 if np.isnan(error) else error):
        more = " nor a curve" if "curve" in ways else ""
        return Calibrated(None, f"Its probabilities stay as they are: no temperature{more} lowers their log loss.")
    by = ways[best](np.vstack(said), codes)
    lower = f"which lowers the cross-validated log loss by {gain:.2g}."
    if isinstance(by, Curve):
        return Calibrated(
            by, f"Its probabilities were read off a rising curve (isotonic regression), {lower}", best_curve
        )
    how = "less" if by > 1 else "more"
    return Calibrated(by, f"Its probabilities were made {how} sure (temperature {by:.2g}), {lower}", best_temperature)


def _found(said: list[Floats], held_out: HeldOut, way: Way) -> list[Calibration]:
    """Return for each fold what is found on the others; None where there are none."""
    return [
        way(np.vstack([said[j] for j in others]), held_out.targets(others)) if others else None
        for others in map(held_out.others, range(len(said)))
    ]


def _gains(said: list[Floats], held_out: HeldOut, way: Way) -> list[float]:
    """Return what the log loss of each fold falls by, with what was found on the others."""
    gains = []
    for one, by, fold in zip(said, _found(said, held_out, way), held_out.folds, strict=True):
        if by is not None:
            codes = held_out.target[fold.held_out]
            gains.append(float(log_losses(one, codes).mean() - log_losses(calibrated(one, by), codes).mean()))
    return gains
