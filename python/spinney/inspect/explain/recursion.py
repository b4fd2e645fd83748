"""scikit-learn's ``partial_dependence(method="recursion")`` of trees, forests and boosted trees."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import Floats

OF_TREES = ("sklearn.ensemble._hist_gradient_boosting.gradient_boosting", "BaseHistGradientBoosting")
OF_BOOSTING = ("sklearn.ensemble._gb", "BaseGradientBoosting")

Kind = TypeVar("Kind", bound=type)


def recursive_dependence(stands_for: tuple[str, str]) -> Callable[[Kind], Kind]:
    """Return a decorator of estimators that give scikit-learn the means of their leaves, weighted by training rows.

    scikit-learn asks instances of some of its classes alone. The decorated class is registered as a virtual subclass of
    one of them, once scikit-learn has loaded it: `stands_for` is its module and name.
    """

    def decorate(kind: Kind) -> Kind:
        tags: Callable[[Any], Any] = kind.__sklearn_tags__  # type: ignore[attr-defined]

        def register_and_get_tags(self: Any) -> Any:  # which scikit-learn asks for first
            module, name = stands_for
            base = getattr(sys.modules.get(module), name, None)
            if base is not None and not isinstance(self, base):
                base.register(kind)
            return tags(self)

        kind.__sklearn_tags__ = register_and_get_tags  # type: ignore[attr-defined]
        kind._compute_partial_dependence_recursion = _means  # type: ignore[attr-defined]
        return kind

    return decorate


def _means(estimator: Any, grid: NDArray[Any], target_features: NDArray[np.intp]) -> Floats:
    """Return the means at the points of a grid, (n_outputs, n_points)."""
    from spinney.inspect.explain.dependence import recursion_averages

    return recursion_averages(estimator, np.asarray(grid), [int(j) for j in target_features]).T
