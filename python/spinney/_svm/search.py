"""C and gamma by cross-validation: along a path of penalties, each solution starting from the one before."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._data.arguments import given_numbers
from spinney._estimator.held_out import Fold, read_folds

Floats = NDArray[np.float64]
PENALTY: list[Any] = [Interval(Real, 0.0, np.inf, closed="right"), StrOptions({"cv"}), "array-like"]  # what C may be
C_GRID = tuple(10.0 ** (k / 2) for k in range(-4, 7))
GAMMA_STEPS = tuple(4.0**k for k in range(-2, 3))


@dataclass(frozen=True)
class Grid:
    """Penalties and widths of kernels to try.

    Attributes
    ----------
    penalties, gammas : ndarray
        Ascending, each value once.
    """

    penalties: Floats
    gammas: Floats

    @property
    def is_one(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.penalties) == 1 and len(self.gammas) == 1

    def chosen(self, errors: Floats, weight: Floats) -> tuple[int, int, Floats]:
        """Find the least mean error of (n_gammas, n_penalties, n_folds), of equals the smallest C; return all means."""
        means = np.asarray((errors * weight).sum(axis=2) / weight.sum())
        p, g = np.unravel_index(int(means.T.argmin()), means.T.shape)
        return int(g), int(p), means

    def table(self, errors: Floats, means: Floats) -> dict[str, Floats]:
        """Return the results as columns: one line for each pair tried."""
        g, p = np.indices(means.shape)
        spread = errors.std(axis=2, ddof=1) if errors.shape[2] > 1 else np.zeros_like(means)
        columns = {
            "C": self.penalties[p.ravel()],
            "gamma": self.gammas[g.ravel()],
            "error": means.ravel(),
            "sd": spread.ravel(),
        }
        folds = {f"fold_{k}": errors[:, :, k].ravel() for k in range(errors.shape[2])}
        return columns | folds


def is_searched(value: Any) -> bool:
    """Whether a parameter asks for a search: the word "cv", or several values."""
    return (isinstance(value, str) and value == "cv") or (not isinstance(value, str) and np.ndim(value) > 0)


def read_values(value: Any, name: str) -> Floats:
    """Check values to try."""
    numbers = np.asarray(given_numbers(value, name), dtype=np.float64).ravel()
    if not len(numbers) or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(f"{name} must hold positive, finite numbers to try. Got {value!r}.")
    return np.unique(numbers)


def read_penalties(C: Any) -> Floats:
    """Values of C to try: one, unless a search is asked for."""
    if isinstance(C, str):
        return np.array(C_GRID)
    return read_values(C, "C") if is_searched(C) else np.array([float(C)])


def folds_of(cv: Any, target: Floats, has_classes: bool, weight: Floats, groups: Any, random: Any) -> list[Fold]:
    """Folds with the classes spread evenly, unless `cv` or groups say otherwise."""
    strata = target.astype(np.intp)[:, np.newaxis] if has_classes else None
    return read_folds(5 if cv is None else cv, strata, target, weight, groups, random)
