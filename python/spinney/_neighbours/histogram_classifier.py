"""Regular cells whose rows vote for a class."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney._estimator.parameters import store_parameters
from spinney._neighbours.histogram import BaseHistogram
from spinney._neighbours.target import OfClasses


class HistogramClassifier(OfClasses, BaseHistogram):
    """The training rows of a row's cell vote for its class: the histogram rule.

    The table is cut into regular cells: numbers into intervals of one edge, which begin at the lowest value, the mean
    or 0, by ``scale``; categories and missing values are cells of their own. What lies outside the range of the
    training rows belongs to the outermost cells.

    See Also
    --------
    HistogramRegressor : The same for numbers.
    KNeighborsClassifier : Neighbours instead of cells.
    DecisionTreeClassifier : Cells that follow the data.

    Examples
    --------
    >>> import spinney
    >>> X = [[0.1], [0.2], [0.6], [0.9]]
    >>> model = spinney.HistogramClassifier(0.5, scale=None).fit(X, ["low", "low", "high", "high"])
    >>> model.predict([[0.3], [0.7]]).tolist()
    ['low', 'high']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseHistogram._parameter_constraints,
        **OfClasses._parameter_constraints,
    }

    def __init__(
        self,
        cell: float | str = "cv",
        *,
        scale: str | None = "range",
        empty: str = "nearest",
        cell_values: Any = None,
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
