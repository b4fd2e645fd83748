"""Neighbours that vote for a class."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney._estimator.parameters import store_parameters
from spinney._neighbours.queries import FindsNeighbors
from spinney._neighbours.target import OfClasses


class KNeighborsClassifier(OfClasses, FindsNeighbors):
    """The nearest training rows vote for the class of a row.

    Distances are exact. Tables with categories or missing values are compared column by column (Gower's distance),
    plain numbers by Euclid's distance of the scaled columns. Of rows equally far away the first in the table counts; of
    classes with equal votes the first in ``classes_`` wins.

    See Also
    --------
    KNeighborsRegressor : The same for numbers.
    HistogramClassifier : Regular cells instead of neighbours.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.KNeighborsClassifier("cv").fit(X, y)
    >>> model.metric_
    'gower'
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FindsNeighbors._parameter_constraints,
        **OfClasses._parameter_constraints,
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
        cost_matrix: Any = None,
        priors: Any = None,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())
