"""k-nearest neighbours for classification and regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import plural, warn
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import About
from spinney._estimator.parameters import COUNT, SCALE, estimator, parameter, scale_name
from spinney._model.file.codec import SavedState, columns, integer
from spinney._model.file.container import refuse
from spinney._model.model import FittedModel
from spinney._model.neighbours.measure import METRICS, OF_DIFFERENCES, POWERS, Measure
from spinney._model.neighbours.model import TIES, WEIGHTS, Counting, Find, FittedNeighbours, Rows
from spinney._neighbours.local_estimator import LocalClassifier, LocalEstimator, LocalRegressor, LocalRows, Results

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_MOST_TREE_TERMS = 20  # the engine's index of more is a copy of the rows, which is made at the first query
_MAX_K = 30  # largest k that n_neighbors="cv" tries, unless k_values is set
Metric = str | Callable[[Floats, Floats], float]
MetricName = Literal[
    "auto", "euclidean", "l2", "manhattan", "l1", "cityblock", "chebyshev", "infinity", "minkowski", "cosine",
    "mahalanobis", "seuclidean", "sqeuclidean", "correlation", "hamming", "gower", "precomputed",
]  # fmt: skip
Weighting = Literal["uniform", "distance", "triangular", "epanechnikov", "biweight", "triweight", "tricube", "gaussian"]
# scikit-learn's
_OTHER_NAMES = {"l1": "manhattan", "cityblock": "manhattan", "l2": "euclidean", "infinity": "chebyshev"}
# what metric_params may hold
_METRIC_PARAMS = {"minkowski": ("p", "w"), "seuclidean": ("V",), "mahalanobis": ("V", "VI")}
# the engine's search by the parameter; a k-d tree finds the neighbours of a ball tree
_SEARCHES = {"auto": "auto", "brute": "brute", "kd_tree": "tree", "ball_tree": "tree"}


@dataclass(frozen=True)
class Trial:
    """A model, and the rows that it is evaluated on.

    Attributes
    ----------
    model : FittedNeighbours
        Fitted without these rows; with them for leave-one-out.
    find : callable
        Returns the k nearest rows of the model and their distances, given numbers among the held-out rows.
    n_queries, n_rows : int
        Number of held-out rows, and of rows that may be neighbours of one of them.
    held_out : ndarray of int
        Numbers of the held-out rows in the table.
    """

    model: FittedNeighbours
    find: Find
    n_queries: int
    n_rows: int
    held_out: Rows

    @classmethod
    def of(cls, model: FittedNeighbours, terms: Floats, held_out: Rows, n_jobs: int) -> Trial:
        """Evaluate a model on held-out rows, given as terms."""

        def find(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return model.nearest(np.ascontiguousarray(terms[queries]), k, n_jobs)

        return cls(model, find, len(terms), len(model.rows), held_out)

    @classmethod
    def leave_one_out(cls, model: FittedNeighbours, numbers: Rows, n_jobs: int) -> Trial:
        """Evaluate a model on its training rows by leave-one-out."""

        def find(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return model.nearest_others(queries, k, n_jobs)

        return cls(model, find, len(model.rows), len(model.rows) - 1, numbers)

    def predictions(self, values: Sequence[int]) -> Iterator[Floats]:
        """Yield the predictions for each number of neighbours, in ascending order."""
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
        """Yield the predictions where the vote of a neighbour does not depend on k, so that sums are cumulative."""
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
    """Prediction by the k nearest training rows."""

    n_neighbors: int | Literal["cv"] = parameter(COUNT, StrOptions({"cv"}), default=5, kw_only=False)
    weights: Weighting | Callable[[Floats], Floats] | None = parameter(
        StrOptions(set(WEIGHTS)), callable, None, default="uniform"
    )
    metric: MetricName | Callable[[Any, Any], Any] = parameter(
        StrOptions({"auto", *METRICS, *_OTHER_NAMES}), callable, default="auto"
    )
    p: float = parameter(Interval(Real, 0.0, None, closed="right"), default=2.0)
    metric_params: dict[str, Any] | None = parameter(dict, None, default=None)
    scale: Literal["standard", "range"] | bool | None = parameter(*SCALE, default=None)
    algorithm: Literal["auto", "brute", "kd_tree", "ball_tree"] = parameter(StrOptions(set(_SEARCHES)), default="auto")
    leaf_size: int = parameter(COUNT, default=30)
    ties: Literal["first", "all"] = parameter(StrOptions(set(TIES)), default="first")
    k_values: ArrayLike | None = parameter("array-like", None, default=None)

    neighbors_: FittedNeighbours = field(init=False)
    _model_attribute = "neighbors_"
    _saved: ClassVar[SavedState] = SavedState(
        "fitted", {"_n_rows_given": integer(), "cv_results_": columns("n_neighbors")}
    )

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Store the training rows; with ``n_neighbors="cv"``, choose the number of neighbours.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values need no encoding.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice, as two of the neighbours; a weight of 0 leaves the row
            out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are in the same fold (``n_neighbors="cv"`` with folds).

        Returns
        -------
        self
            The fitted estimator.
        """
        self._refuse_graph(X)
        rows = self._read_rows(X, y, sample_weight)
        metric = self._find_metric(rows)
        results: Results | None = None
        k = self.n_neighbors
        if k == "cv":
            trials = self._trials(rows, metric, groups)
            fewest = int(min(trial.model.total_weight - (trial.n_rows < len(trial.model.rows)) for trial in trials))
            k, results = self._choose(rows, trials, "n_neighbors", self._values_to_try(max(1, fewest)))
        elif groups is not None:
            raise ValueError(
                'groups are only used by cross-validation: n_neighbors="cv" and cv with folds. Leave groups out.'
            )
        model = self._model(rows, metric, rows.weight, int(k))
        if model.measure.is_indexed and model.rows.shape[1] <= _MOST_TREE_TERMS:
            model.index(self._n_threads)
        self._n_rows_given = len(rows.weight)
        self._set_fitted(rows, model, results)
        return self

    def _refuse_graph(self, X: TableLike) -> None:
        """Refuse a sparse matrix of distances: the entries that it leaves out are no distances of 0."""
        if issparse(X) and isinstance(self.metric, str) and self.metric == "precomputed":
            raise TypeError("metric='precomputed' does not support sparse matrices. Pass the distances of all pairs.")

    def _columns(self, X: TableLike) -> _engine.Table:
        self._refuse_graph(X)
        return super()._columns(X)

    def _find_metric(self, rows: LocalRows) -> Metric:
        """Return the metric; "auto" is Gower's for tables with categories or missing values, else Minkowski's."""
        metric = _OTHER_NAMES.get(self.metric, self.metric) if isinstance(self.metric, str) else self.metric
        if metric == "auto":
            has_categories = not rows.schema.is_numeric and any(
                feature.kind in ("category", "ordered") for feature in rows.schema.features
            )
            metric = "gower" if has_categories or self._has_missing(rows) else "minkowski"
        if self.algorithm == "kd_tree" and (callable(metric) or metric in ("gower", "hamming", "precomputed")):
            name = "a function" if callable(metric) else repr(metric)
            raise ValueError(f"algorithm='kd_tree' does not support metric {name}. Use algorithm='auto' or 'brute'.")
        if metric == "precomputed" and rows.columns.n_rows != rows.columns.n_columns:
            raise ValueError(
                f"metric='precomputed' needs a square matrix, the distances of all pairs of training rows. X has "
                f"{rows.columns.n_rows} rows and {rows.columns.n_columns} columns."
            )
        return metric

    def _has_missing(self, rows: LocalRows) -> bool:
        """Return whether a row of positive weight has a missing value."""
        if scale_name(self.scale) is None and rows.numbers is not None:
            return False
        weight = None if (rows.weight > 0).all() else rows.weight
        return any(rows.columns.ranges(weight, self._n_threads)[2])

    def _metric_params(self, metric: Metric) -> dict[str, Any]:
        """Return metric_params, of which a function takes any and each metric its own."""
        given = dict(self.metric_params or {})
        if callable(metric):
            return given
        known = _METRIC_PARAMS.get(metric, ())
        for name in given:
            if name not in known:
                takes = f"It takes {' and '.join(map(repr, known))}." if known else "It takes none."
                raise ValueError(f"metric_params has {name!r}, but metric={metric!r} has no such parameter. {takes}")
        if "p" in given:
            warn("metric_params has 'p', so that the parameter p is ignored.", SyntaxWarning)
            if not (isinstance(given["p"], Real) and float(given["p"]) > 0):
                raise ValueError(f"'p' in metric_params must be a number above 0. Got {given['p']!r}.")
        return given

    def _model(self, rows: LocalRows, metric: Metric, weight: Floats, k: int) -> FittedNeighbours:
        """Return the fitted model of the rows of positive weight."""
        given = self._metric_params(metric)
        p = float(given.pop("p", self.p))
        if callable(metric) and given:
            metric = partial(metric, **given)
        scale, ballot, numbers = scale_name(self.scale), rows.target.ballot, None
        if scale is None and not given and metric in OF_DIFFERENCES and weight is rows.weight:
            numbers = rows.numbers
        if numbers is not None:
            measure, terms = Measure.of_numbers(str(metric), p, numbers), numbers
        else:
            measure = Measure.learn(metric, p, scale, rows.columns, rows.schema, weight, given)
            terms = measure.terms(rows.columns)
        used = np.flatnonzero(weight > 0)
        is_whole = len(used) == len(weight)
        own = weight if is_whole else weight[used]
        return FittedNeighbours(
            measure,
            terms if is_whole else np.ascontiguousarray(terms[used]),
            None if (own == 1).all() else own,
            ballot if is_whole else replace(ballot, target=np.ascontiguousarray(ballot.target[used])),
            Counting(k, "uniform" if self.weights is None else self.weights, self.ties),
            _SEARCHES[self.algorithm],
            rows.target.costs.prior_factor,
            None if is_whole else used.astype(np.int64),
            rows.target.decision,
        )

    def _values_to_try(self, fewest: int) -> list[int]:
        if self.k_values is None:
            return list(range(1, min(_MAX_K, fewest) + 1))
        values = np.unique(np.asarray(self.k_values))
        if values.dtype.kind not in "iu" or values.ndim != 1 or not len(values) or values[0] < 1:
            raise ValueError(f"k_values must be whole numbers of at least 1. Got {self.k_values!r}.")
        return [int(k) for k in values]

    def _trials(self, rows: LocalRows, metric: Metric, groups: ArrayLike | None) -> list[Trial]:
        """Return the models to evaluate, with their held-out rows."""
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

    # ---- fitted attributes ---------------------------------------------------------------------------

    @property
    def n_neighbors_(self) -> int:
        """Number of neighbours that a prediction uses."""
        check_is_fitted(self)
        return self.neighbors_.counting.k

    @property
    def metric_(self) -> str:
        """Name of the metric."""
        check_is_fitted(self)
        return self.neighbors_.measure.metric

    @property
    def effective_metric_(self) -> Metric:
        """The distance: "euclidean" for Minkowski's with ``p=2``; other names and functions as passed."""
        return self._effective()[0]

    @property
    def effective_metric_params_(self) -> dict[str, Any]:
        """Parameters of the distance: ``metric_params``, and for Minkowski distances the power and the weights."""
        return self._effective()[1]

    def _effective(self) -> tuple[Metric, dict[str, Any]]:
        """Return the distance and its parameters as scikit-learn names them."""
        check_is_fitted(self)
        metric, params = self.metric, dict(self.metric_params or {})
        if metric == "auto":
            metric = "gower" if self.metric_ == "gower" else "minkowski"
        if metric == "minkowski":
            p, w = params.pop("p", self.p), params.pop("w", None)
            if w is None and p in POWERS:
                return POWERS[p], params
            params |= {"p": p, "w": w}
        return metric, params

    @property
    def n_samples_fit_(self) -> int:
        """Number of stored rows."""
        check_is_fitted(self)
        return len(self.neighbors_.rows)

    @property
    def terms_(self) -> list[str]:
        """Names of the terms that distances compare."""
        check_is_fitted(self)
        return self.neighbors_.measure.names(self.schema_)

    @property
    def center_(self) -> Floats:
        """Centre that is subtracted from each term."""
        check_is_fitted(self)
        center = self.neighbors_.measure.center
        return np.zeros(self.n_features_in_) if center is None else center

    @property
    def scale_(self) -> Floats:
        """Scale by which each centred term is divided; 0 for a constant column, which Gower's distance leaves out."""
        check_is_fitted(self)
        scale = self.neighbors_.measure.scale
        return np.ones(self.n_features_in_) if scale is None else scale

    def kneighbors(
        self, X: TableLike = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> NDArray[np.intp] | tuple[Floats, NDArray[np.intp]]:
        """Find the nearest training rows, sorted by distance; of equal distances, the first in the table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows. None: the training rows, which are not neighbours of themselves.
        n_neighbors : int, optional
            Number of neighbours; None: as for predictions.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Distances, in scaled units; only with `return_distance`.
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
        self,
        X: TableLike = None,
        n_neighbors: int | None = None,
        mode: Literal["connectivity", "distance"] = "connectivity",
    ) -> csr_matrix[np.float64]:
        """Return the graph of nearest neighbours as a sparse matrix.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows. None: the training rows, which are not neighbours of themselves.
        n_neighbors : int, optional
            Number of neighbours; None: as for predictions.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are 1 or distances.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_samples, n_training_rows)
            The entries of a row are at its neighbours.
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

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        if isinstance(self.metric, str) and self.metric == "precomputed":
            tags.input_tags.pairwise = tags.input_tags.positive_only = True
            tags.input_tags.allow_nan = tags.input_tags.sparse = False
        return tags

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
    """k-nearest neighbours classification: the nearest training rows vote for the class of a row.

    The search is exact. Tables with categories or missing values use Gower's distance, numeric tables the Euclidean
    distance; set ``scale`` if columns differ in unit. Of rows at equal distance, the first in the table are
    neighbours, unless ``ties="all"``; of classes with equal votes, the first in ``classes_`` wins.

    See Also
    --------
    KNeighborsRegressor : The same for regression.
    HistogramClassifier : Cells of a regular grid instead of neighbours.

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

    @property
    def outputs_2d_(self) -> bool:
        """Whether `y` had several columns."""
        check_is_fitted(self)
        return bool(self.n_outputs_ > 1)


@estimator
class KNeighborsRegressor(LocalRegressor, BaseNeighbors):
    """k-nearest neighbours regression: the prediction is the mean of the nearest training rows.

    The search is exact. Tables with categories or missing values use Gower's distance, numeric tables the Euclidean
    distance; set ``scale`` if columns differ in unit. Of rows at equal distance, the first in the table are
    neighbours, unless ``ties="all"``.

    See Also
    --------
    KNeighborsClassifier : The same for classification.
    HistogramRegressor : Cells of a regular grid instead of neighbours.

    Examples
    --------
    >>> import spinney
    >>> X = [[float(x)] for x in range(20)]
    >>> y = [2 * x for (x,) in X]
    >>> spinney.KNeighborsRegressor(2).fit(X, y).predict([[4.4]])
    array([9.])
    """
