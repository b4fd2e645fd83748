"""How members are asked."""

from __future__ import annotations

from typing import Any

from spinney._estimator.estimator import Estimator
from spinney._model.predictions import METHODS


def gets_codes(estimator: Any) -> bool:
    """Say whether a classifier is shown codes of the classes, as in scikit-learn's ensembles; ours see the labels."""
    return not isinstance(estimator, Estimator)


def method_of(estimator: Any, name: str, wanted: str) -> str:
    """Return the method by which a member is asked."""
    if wanted == "auto":
        return next(method for method in METHODS if hasattr(estimator, method))
    if not hasattr(estimator, wanted):
        raise ValueError(
            f"Underlying estimator {name} does not implement the method {wanted}. Use stack_method='auto', or a "
            f"member that has it: {type(estimator).__name__} has none."
        )
    return wanted
