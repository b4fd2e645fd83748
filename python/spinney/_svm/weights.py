"""Weights of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.numeric.reproducible import sums_by_code

Floats = NDArray[np.float64]


def class_weights(given: Any, codes: NDArray[np.intp], weight: Floats, classes: NDArray[Any]) -> Floats:
    """Return the weight of each class; "balanced" goes by the weights that their rows have."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, dict):
        unknown = [label for label in given if label not in set(classes.tolist())]
        if unknown:
            raise ValueError(f"class_weight has a class that y does not have: {unknown[0]!r}.")
        by_class = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    else:
        total = sums_by_code(codes, weight, len(classes))
        by_class = weight.sum() / (len(classes) * np.where(total > 0, total, 1.0))
    if not (np.isfinite(by_class) & (by_class >= 0)).all():
        raise ValueError("class_weight must give finite weights of at least 0.")
    return np.asarray(by_class)
