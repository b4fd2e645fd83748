"""From scores to predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine

Floats = NDArray[np.float64]

# logit: the score is the log-odds of the second of two classes; half_logit: half of it; hinge and focal: where the
# expected smooth hinge or focal loss is least. The exponent of the focal loss stands behind a space: "focal 2.0".
_VALUE_LINKS = frozenset({"identity", "log"})
_CLASS_LINKS = frozenset({"logit", "half_logit", "hinge", "softmax"})


def is_link(link: str) -> bool:
    """Whether scores can have this link."""
    return link in _VALUE_LINKS or is_of_classes(link)


def is_of_classes(link: str) -> bool:
    """Whether the link turns scores into shares of classes."""
    return link in _CLASS_LINKS or _is_focal(link)


def _is_focal(link: str) -> bool:
    name, _, exponent = link.partition(" ")
    try:
        return name == "focal" and exponent == repr(float(exponent)) and 0 <= float(exponent) < np.inf
    except ValueError:
        return False


def predicted(link: str, scores: Floats) -> Floats:
    """Turn scores, (n_rows, n_scores), into values, (n_rows, 1), or class shares, (n_rows, n_classes)."""
    return scores if link == "identity" else _engine.predicted(link, np.ascontiguousarray(scores))
