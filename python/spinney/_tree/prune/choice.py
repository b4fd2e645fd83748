"""Which of the nested trees to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-12


def choose(error: NDArray[np.float64], error_se: NDArray[np.float64], rule: Any) -> int | None:
    """Return the position of the tree to keep; None: keep the whole tree.

    Parameters
    ----------
    error, error_se : ndarray
        Error of each tree and its standard error, from the largest tree to the smallest.
    rule : {"min", "1se"}, float or None
        As the parameter of the trees.

    Returns
    -------
    int or None
        The smallest tree whose error is within `rule` standard errors of the lowest.
    """
    if rule is None:
        return None
    if not np.isfinite(error).any():
        raise ValueError("No tree has a finite cross-validated score. Use another scorer, or fewer folds.")
    error = np.where(np.isfinite(error), error, np.inf)
    slack = _ROUNDING * np.abs(error[np.isfinite(error)]).max()
    best = _last(error <= error.min() + slack)
    width = {"min": 0.0, "1se": 1.0}[rule] if isinstance(rule, str) else float(rule)
    spread = error_se[best] if np.isfinite(error_se[best]) else 0.0
    return _last(error <= error[best] + width * spread + slack)


def _last(mask: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[-1])
