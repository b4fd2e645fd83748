"""Neighbours that give a mean value."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney._estimator.parameters import store_parameters
from spinney._neighbours.queries import FindsNeighbors
from spinney._neighbours.target import OfValues


class KNeighborsRegressor(OfValues, FindsNeighbors):
    """The mean of the nearest training rows is the value of a row.

    Distances are exact. Tables with categories or missing values are compared column by column (Gower's distance),
    plain numbers by Euclid's distance of the scaled columns. Of rows equally far away the first in the table counts.

    See Also
    --------
    KNeighborsClassifier : The same for classes.
    HistogramRegressor : Regular cells instead of neighbours.

    Examples
    --------
    >>> import spinney
    >>> X = [[float(x)] for x in range(20)]
    >>> y = [2 * x for (x,) in X]
    >>> spinney.KNeighborsRegressor(2).fit(X, y).predict([[4.4]])
    array([9.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FindsNeighbors._parameter_constraints,
    }

    def __init__(
        self,
        n_neighbors: int | str = 5,
        *,
        weights: Any = "uniform",
        metric: Any = "auto",
        p: float = 2.0,
        scale: str | None = "standard",
        algorithm: str = "auto",
        ties: str = "first",
        k_values: Any = None,
        cv: Any = "loo",
        scoring: Any = None,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())
