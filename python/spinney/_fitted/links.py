"""From scores to predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine

Floats = NDArray[np.float64]

# logit: the score is the log-odds of the second of two classes; half_logit: half of it
LINKS = frozenset({"identity", "log", "logit", "half_logit", "softmax"})
CLASS_LINKS = frozenset({"logit", "half_logit", "softmax"})


def predicted(link: str, scores: Floats) -> Floats:
    """Turn scores, (n_rows, n_scores), into values, (n_rows, 1), or class shares, (n_rows, n_classes)."""
    return scores if link == "identity" else _engine.predicted(link, np.ascontiguousarray(scores))
