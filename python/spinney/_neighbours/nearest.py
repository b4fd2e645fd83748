"""Nearest neighbours: those of classes, those of values, and the neighbours themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import plural
from spinney._data.types import TableLike
from spinney._estimator.estimator import About
from spinney._estimator.parameters import COUNT, SCALE, estimator, parameter, scale_name
from spinney._model.file.codec import SavedState, columns, integer
from spinney._model.file.container import refuse
from spinney._model.model import FittedModel
from spinney._model.neighbours.measure import METRICS, Measure
from spinney._model.neighbours.model import ALGORITHMS, TIES, WEIGHTS, Counting, Find, FittedNeighbours, Rows
from spinney._neighbours.local_estimator import Floats, LocalClassifier, LocalEstimator, LocalRows, Results

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_MOST_TRIED = 30  # neighbours, if the caller does not say
Metric = str | Callable[[Floats, Floats], float]


@dataclass(frozen=True)
class Trial:
    """A model and the rows that it is judged by.

    Attributes
    ----------
    model : FittedNeighbours
        Fitted without these rows, or, if `find` leaves each out, with them.
    find : callable
        From numbers among these rows and k to the nearest rows of the model and their distances.
    n_queries, n_rows : int
        Rows that it is judged by, and rows that may be neighbours of one of them.
    held_out : ndarray of int
        Their numbers in the table.
    """

    model: FittedNeighbours
    find: Find
    n_queries: int
    n_rows: int
    held_out: Rows

    @classmethod
    def of(cls, model: FittedNeighbours, terms: Floats, held_out: Rows, n_jobs: int) -> Trial:
        """Evaluate a model by rows that it has not seen, which are given as terms."""

        def find(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return model.nearest(np.ascontiguousarray(terms[queries]), k, n_jobs)

        return cls(model, find, len(terms), len(model.rows), held_out)

    @classmethod
    def leave_one_out(cls, model: FittedNeighbours, numbers: Rows, n_jobs: int) -> Trial:
        """Evaluate a model by its own rows, each of which is no neighbour of itself."""

        def find(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return model.nearest_others(queries, k, n_jobs)

        return cls(model, find, len(model.rows), len(model.rows) - 1, numbers)

    def predictions(self, values: Sequence[int]) -> Iterator[Floats]:
        """Yield what the model predicts for each number of neighbours; the numbers rise."""
        counting = replace(self.model.counting, k=max(values))
        n = min(self.n_rows, counting.n_wanted)
        rows, distance = self.find(np.arange(self.n_queries), n)
        if counting.is_running and self.model.weight is None:
            yield from self._running(rows, distance, values)
            return

        def known(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return (rows[queries, :k], distance[queries, :k]) if k <= n else self.find(queries, k)

        for k in values:
            flat = np.empty((self.n_queries, self.model.ballot.width))
            for queries, near, votes in self.model.voters(known, replace(counting, k=k), self.n_queries, self.n_rows):
                flat[queries] = self.model.by_class(self.model.ballot.mean(near, votes))
            yield flat

    def _running(self, rows: Rows, distance: Floats, values: Sequence[int]) -> Iterator[Floats]:
        """Yield the same where a neighbour counts the same for any k: sums go on from one k to the next."""
        votes = self.model.counting.weighted(distance, np.ones(distance.shape), np.ones(distance.shape))
        total, sums = np.zeros((len(rows), self.model.ballot.width)), np.zeros(len(rows))
        done = 0
        for k in values:
            for j in range(done, min(k, rows.shape[1])):
                self.model.ballot.add(total, rows[:, j], votes[:, j])
                sums += votes[:, j]
            done = k
            yield self.model.by_class(total / sums[:, np.newaxis])


@estimator
class BaseNeighbors(LocalEstimator):
    """The nearest training rows predict a row."""

    n_neighbors: int | str = parameter(COUNT, StrOptions({"cv"}), default=5, kw_only=False)
    weights: str | Callable[[Floats], Floats] = parameter(StrOptions(set(WEIGHTS)), callable, default="uniform")
    metric: Metric = parameter(StrOptions({"auto", *METRICS}), callable, default="auto")
    p: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=2.0)
    scale: str | bool | None = parameter(*SCALE, default="standard")
    algorithm: str = parameter(StrOptions(set(ALGORITHMS)), default="auto")
    ties: str = parameter(StrOptions(set(TIES)), default="first")
    k_values: ArrayLike | None = parameter("array-like", None, default=None)

    neighbors_: FittedNeighbours = field(init=False)
    _model_attribute = "neighbors_"
    _saved: ClassVar[SavedState] = SavedState(
        "fitted", {"_n_rows_given": integer(), "cv_results_": columns("n_neighbors")}
    )
    _other_library_advice: ClassVar[dict[str, str]] = {
        "leaf_size": "Leaves of the tree hold 16 rows. Leave it out.",
        "metric_params": "Minkowski's power is p, and metric may be a function of two rows.",
    }

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Remember the rows; with ``n_neighbors="cv"``, choose how many are asked.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice, as two of the neighbours; a weight of 0 leaves it out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together (``n_neighbors="cv"`` with folds).

        Returns
        -------
        self
            The fitted estimator.
        """
        rows = self._read_rows(X, y, sample_weight)
        metric = self._find_metric(rows)
        results: Results | None = None
        k = self.n_neighbors
        if k == "cv":
            trials = self._trials(rows, metric, groups)
            fewest = int(min(trial.model.total_weight - (trial.n_rows < len(trial.model.rows)) for trial in trials))
            k, results = self._choose(rows, trials, "n_neighbors", self._values_to_try(max(1, fewest)))
        elif groups is not None:
            raise ValueError('groups say which rows are held out together, which needs n_neighbors="cv" and folds.')
        model = self._model(rows, metric, rows.weight, int(k))
        if model.measure.function is None:
            model.index(self._n_threads)
        self._n_rows_given = len(rows.weight)
        self._keep_fit(rows, model, results)
        return self

    def _find_metric(self, rows: LocalRows) -> Metric:
        """Return the metric; "auto" is Gower's for tables with categories or missing values, else Euclid's."""
        metric = self.metric
        if metric == "auto":
            has_categories = any(feature.kind in ("category", "ordered") for feature in rows.schema.features)
            is_missing = rows.columns.ranges(rows.weight, self._n_threads)[2]
            metric = "gower" if has_categories or any(is_missing) else "euclidean"
        if self.algorithm == "tree" and (callable(metric) or metric in ("gower", "hamming")):
            name = "a function" if callable(metric) else repr(metric)
            raise ValueError(f"algorithm='tree' does not go with metric {name}. Use algorithm='auto' or 'brute'.")
        return metric

    def _model(self, rows: LocalRows, metric: Metric, weight: Floats, k: int) -> FittedNeighbours:
        """Remember the rows of positive weight."""
        measure = Measure.learn(metric, float(self.p), scale_name(self.scale), rows.columns, rows.schema, weight)
        terms, ballot = measure.terms(rows.columns), rows.target.ballot
        used = np.flatnonzero(weight > 0)
        is_whole = len(used) == len(weight)
        own = weight if is_whole else weight[used]
        return FittedNeighbours(
            measure,
            terms if is_whole else np.ascontiguousarray(terms[used]),
            None if (own == 1).all() else own,
            ballot if is_whole else replace(ballot, target=np.ascontiguousarray(ballot.target[used])),
            Counting(k, self.weights, self.ties),
            self.algorithm,
            rows.target.costs.prior_factor,
            None if is_whole else used.astype(np.int64),
            rows.target.decision,
        )

    def _values_to_try(self, fewest: int) -> list[int]:
        if self.k_values is None:
            return list(range(1, min(_MOST_TRIED, fewest) + 1))
        values = np.unique(np.asarray(self.k_values))
        if values.dtype.kind not in "iu" or values.ndim != 1 or not len(values) or values[0] < 1:
            raise ValueError(f"k_values must be whole numbers from 1 up. Got {self.k_values!r}.")
        return [int(k) for k in values]

    def _trials(self, rows: LocalRows, metric: Metric, groups: ArrayLike | None) -> list[Trial]:
        """Return models with the rows that they are evaluated by."""
        folds = self._folds(rows, groups, "n_neighbors")
        if folds is None:
            model = self._model(rows, metric, rows.weight, 1)
            return [Trial.leave_one_out(model, np.flatnonzero(rows.weight > 0), self._n_threads)]
        trials = []
        for weight, held_out in folds:
            model = self._model(rows, metric, weight, 1)
            terms = model.measure.terms(rows.columns)[held_out]
            trials.append(Trial.of(model, terms, held_out, self._n_threads))
        return trials

    # ---- what was learned ----------------------------------------------------------------------------

    @property
    def n_neighbors_(self) -> int:
        """Neighbours that a prediction uses."""
        check_is_fitted(self)
        return self.neighbors_.counting.k

    @property
    def metric_(self) -> str:
        """The distance."""
        check_is_fitted(self)
        return self.neighbors_.measure.metric

    @property
    def n_samples_fit_(self) -> int:
        """Rows remembered."""
        check_is_fitted(self)
        return len(self.neighbors_.rows)

    @property
    def terms_(self) -> list[str]:
        """What distances are made of, in words."""
        check_is_fitted(self)
        return self.neighbors_.measure.names(self.schema_)

    @property
    def center_(self) -> Floats:
        """What is taken off each term."""
        check_is_fitted(self)
        center = self.neighbors_.measure.center
        return np.zeros(self.n_features_in_) if center is None else center

    @property
    def scale_(self) -> Floats:
        """What each term is divided by then."""
        check_is_fitted(self)
        scale = self.neighbors_.measure.scale
        return np.ones(self.n_features_in_) if scale is None else scale

    def kneighbors(
        self, X: TableLike = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> NDArray[np.intp] | tuple[Floats, NDArray[np.intp]]:
        """Find the nearest training rows, the nearest first; of those equally far, the first in the table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows. None: the training rows, none of which is a neighbour of itself.
        n_neighbors : int, optional
            How many; None: as many as predictions ask.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Distances, in scaled units; only if asked for.
        rows : ndarray of int of shape (n_samples, n_neighbors)
            Positions of the neighbours in the training table.
        """
        check_is_fitted(self)
        model = self.neighbors_
        k = model.counting.k if n_neighbors is None else n_neighbors
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value. Got {k!r}.")
        if k < 1:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}.")
        n_others = len(model.rows) - (X is None)
        if k > n_others:
            raise ValueError(f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k} and there are {n_others}.")
        if X is None:
            rows, distance = model.nearest_others(np.arange(len(model.rows)), int(k), self._n_threads)
        else:
            rows, distance = model.nearest(model.measure.terms(self._columns(X)), int(k), self._n_threads)
        if model.row_numbers is not None:
            rows = model.row_numbers[rows].astype(np.intp)
        return (distance, rows) if return_distance else rows

    def kneighbors_graph(
        self, X: TableLike = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix[np.float64]:
        """Return who is whose neighbour, as a sparse matrix.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows. None: the training rows, none of which is a neighbour of itself.
        n_neighbors : int, optional
            How many; None: as many as predictions ask.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are 1 or the distance.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, n_training_rows)
            A row's entries are those of its neighbours.
        """
        from scipy.sparse import csr_matrix

        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance'. Got {mode!r}.")
        distance, rows = self.kneighbors(X, n_neighbors)
        entries = np.ones(rows.size) if mode == "connectivity" else distance.ravel()
        numbers = self.neighbors_.row_numbers
        width = len(self.neighbors_.rows) if numbers is None else self._n_rows_given
        starts = np.arange(0, rows.size + 1, rows.shape[1])
        height = len(rows)
        if X is None and numbers is not None:  # rows without weight have no neighbours
            counts = np.zeros(width + 1, dtype=np.intp)
            counts[numbers + 1] = rows.shape[1]
            starts, height = np.cumsum(counts), width
        return csr_matrix((entries, rows.ravel(), starts), shape=(height, width))

    # ---- files ---------------------------------------------------------------------------------------

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedNeighbours)
        if found["_n_rows_given"] < (len(model.rows) if model.row_numbers is None else model.row_numbers[-1] + 1):
            refuse("is damaged: stored row numbers exceed the number of training rows")

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        model = state.get("neighbors_")
        if model is not None and (model.measure.function is not None or callable(model.counting.weights)):
            return state
        return super()._pickled(state)

    def _about(self) -> About:
        k, metric, n_rows = self.n_neighbors_, self.metric_, self.n_samples_fit_
        rows, near = plural(n_rows, "row"), plural(k, "neighbour")
        size = {"neighbours": k, "rows_remembered": n_rows, "distance": metric}
        lines = {"neighbours": f"{near} of {rows}", "distance": metric}
        return self._summary("neighbours", size, lines, f"{near} of {rows} by {metric} distance", "rows")


@estimator
class KNeighborsClassifier(LocalClassifier, BaseNeighbors):
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


@estimator
class KNeighborsRegressor(RegressorMixin, BaseNeighbors):
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
