"""Regular cells whose rows give a mean value."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney._estimator.parameters import store_parameters
from spinney._neighbours.histogram import BaseHistogram
from spinney._neighbours.target import OfValues


class HistogramRegressor(OfValues, BaseHistogram):
    """The mean of the training rows of a row's cell: the regressogram.

    The table is cut into regular cells: numbers into intervals of one edge, which begin at the lowest value, the mean
    or 0, by ``scale``; categories and missing values are cells of their own. What lies outside the range of the
    training rows belongs to the outermost cells.

    See Also
    --------
    HistogramClassifier : The same for classes.
    KNeighborsRegressor : Neighbours instead of cells.
    DecisionTreeRegressor : Cells that follow the data.

    Examples
    --------
    >>> import spinney
    >>> X = [[float(x)] for x in range(8)]
    >>> y = [x // 2 for (x,) in X]
    >>> model = spinney.HistogramRegressor(2.0, scale=None).fit(X, y)
    >>> model.predict([[4.4]]).tolist()
    [2.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseHistogram._parameter_constraints,
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
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())
