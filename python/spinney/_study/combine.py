"""The stack of a study, and the temperature of its best model: both found on rows held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney._ensemble.stacking.greedy import GreedySelection
from spinney._fitted.said import as_columns, mean_said, tempered
from spinney._judge.compare.statistics import corrected_error
from spinney._learn.folds import Fold
from spinney._numbers.same_bits import log

Floats = NDArray[np.float64]
TEMPERATURES = [round(float(1.05**k), 4) for k in range(-20, 29)]  # 0.38 to 3.9
_LEAST_SHARE = 2.0**-52


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


def weights_of(said: list[Floats], target: NDArray[np.generic], classes: NDArray[np.generic] | None) -> list[float]:
    """Weights of members by greedy selection, given what each says of rows that it has not seen."""
    method = "predict" if classes is None else "predict_proba"
    columns = np.hstack([as_columns(one, method, classes) for one in said])
    found: list[float] = GreedySelection(len(said)).fit(columns, target, classes=classes).weights_.tolist()
    return found


def stacked(said: list[list[Floats]], held_out: HeldOut) -> list[Floats]:
    """Return what the stack of some members says of each fold, with weights found on the others.

    Parameters
    ----------
    said : list of lists of ndarray
        By member and fold.
    held_out : HeldOut
    """
    found = []
    for k in range(len(held_out.folds)):
        others = held_out.others(k)
        weights = [1 / len(said)] * len(said)
        if others:
            before = [np.vstack([member[j] for j in others]) for member in said]
            weights = weights_of(before, held_out.targets(others), held_out.classes)
        found.append(mean_said([member[k] for member in said], weights))
    return found


def log_losses(shares: Floats, codes: NDArray[np.generic]) -> Floats:
    """Log loss of each row."""
    own = shares[np.arange(len(codes)), codes.astype(np.intp)]
    return -log(np.maximum(own, _LEAST_SHARE))


def best_temperature(shares: Floats, codes: NDArray[np.generic]) -> float:
    """Find the temperature of least log loss, of a fixed list: so that the last bits of sums do not decide."""
    losses = [float(log_losses(tempered(shares, one), codes).mean()) for one in TEMPERATURES]
    return TEMPERATURES[int(np.argmin(losses))]


@dataclass(frozen=True)
class Calibration:
    """A temperature, or None where probabilities stay as they are; and why."""

    temperature: float | None
    why: str


def calibrate(said: list[Floats], held_out: HeldOut) -> Calibration:
    """Judge whether a temperature makes probabilities better, fold by fold: each has that of the others.

    It is taken if the mean log loss falls by more than the standard error of the fall.
    """
    gains = []
    for k, fold in enumerate(held_out.folds):
        others = held_out.others(k)
        if not others:
            continue
        temperature = best_temperature(np.vstack([said[j] for j in others]), held_out.targets(others))
        codes = held_out.target[fold.held_out]
        before, after = log_losses(said[k], codes).mean(), log_losses(tempered(said[k], temperature), codes).mean()
        gains.append(float(before - after))
    gain, error = float(np.mean(gains)), corrected_error(np.array(gains), 1 / max(1, len(held_out.folds) - 1))
    folds = list(range(len(held_out.folds)))
    if not gain > (0.0 if np.isnan(error) else error):
        return Calibration(None, "Its probabilities stay as they are: a temperature does not lower their log loss.")
    temperature = best_temperature(np.vstack([said[j] for j in folds]), held_out.targets(folds))
    how = "less" if temperature > 1 else "more"
    why = (
        f"Its probabilities were made {how} sure (temperature {temperature:.2g}), which lowers the cross-validated log "
        f"loss by {gain:.2g}."
    )
    return Calibration(temperature, why)
