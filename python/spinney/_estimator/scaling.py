"""How estimators that need one scale speak of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

SCALE: list[Any] = [StrOptions({"standard", "range"}), "boolean", None]  # what an estimator's scale may be


def scale_word(scale: object) -> str | None:
    """Return a scale by its word: True stands for "standard", False for None."""
    if isinstance(scale, (bool, np.bool_)):
        return "standard" if scale else None
    return str(scale) if scale is not None else None
