"""From scores to predictions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LARGEST = 700.0  # beyond this, e^score is cut by the engine as well


def _exp(score: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(score, -_LARGEST, _LARGEST)))


def _two_shares(score: Floats) -> Floats:
    """Shares of two classes for the log-odds of the second, (n_rows, 2)."""
    second = 1.0 / (1.0 + _exp(-score))
    return np.concatenate([1.0 - second, second], axis=1)


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


# scores, (n_rows, n_scores), to values, (n_rows, 1), or class shares, (n_rows, n_classes)
LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda scores: scores,
    "log": _exp,
    "logit": _two_shares,
    "half_logit": lambda scores: _two_shares(2 * scores),
    "softmax": _softmax,
}
CLASS_LINKS = frozenset({"logit", "half_logit", "softmax"})
