"""Neighbours that give a mean value."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney._neighbours.queries import FindsNeighbors
from spinney._neighbours.target import OfValues


class KNeighborsRegressor(OfValues, FindsNeighbors):
    """The mean of the nearest training rows is the value of a row.

    Distances are exact. Tables with categories or missing values are compared column by column (Gower's distance),
    plain numbers by Euclid's distance of the scaled columns. Of rows equally far away the first in the table counts.

    Parameters
    ----------
    n_neighbors : int or "cv", default=5
        Training rows that answer for a row; all, if there are fewer. "cv": the number among ``k_values`` with the
        smallest cross-validated error; see ``cv_results_`` and `spinney.plot_error_curve`.
    weights : str or callable, default="uniform"
        What a neighbour counts. "uniform": all alike. "distance": 1 / distance; where some are in the same place as the
        row, they count alone. Kernels of u, the distance divided by that of the next neighbour, the k + 1st:
        "triangular" 1 - u, "epanechnikov" 1 - u², "biweight" (1 - u²)², "triweight" (1 - u²)³, "tricube" (1 - u³)³,
        "gaussian" exp(-2 u²). Or a function from an array of distances, a row for each query, to an array of weights.
    metric : str or callable, default="auto"
        The distance. "euclidean", "manhattan", "chebyshev", "minkowski" (with ``p``), "cosine" (1 - cosine of the
        angle), "mahalanobis" (by the covariance of the training rows) go by scaled terms; "hamming" is the share of
        columns that differ, "gower" the mean over the columns that neither row lacks of the difference as a share of
        the column's range, at most 1, or of 1 for different categories. "auto": "gower" for tables with categories or
        missing values, else "euclidean". Or a function of two arrays, the terms of two rows, which is slow.
    p : float, default=2.0
        Power of Minkowski's distance.
    scale : {"standard", "range"}, bool or None, default="standard"
        How columns are brought to one scale. "standard" (or True): less the mean, divided by the standard deviation.
        "range": less the lowest value, divided by the range. None (or False): as they are. A category is a term for
        each value, which is 0 or 1 before scaling; what is missing has the mean, and a term that says so if some was
        missing at fit. Without effect on "gower", "hamming" and "mahalanobis".
    algorithm : {"auto", "brute", "tree"}, default="auto"
        How neighbours are found: among all rows, by a tree of boxes, or by whichever costs less. The answer is the
        same. "gower", "hamming" and functions have no tree.
    ties : {"first", "all"}, default="first"
        Which rows count of those that are as far away as the last neighbour: the first in the table, or all of them, if
        their distances differ by less than a part in 10 billion.
    k_values : array-like of int, optional
        Numbers of neighbours that ``n_neighbors="cv"`` tries. None: 1 to 30.
    cv : "loo", int, splitter, iterable of splits, or array of fold numbers, default="loo"
        Held-out rows of ``n_neighbors="cv"``. "loo": each row is judged by the others, with scales learned from all.
        Folds: scales are learned from the other folds. For a number, folds are drawn by `random_state` with the classes
        spread evenly, or, if `fit` is given groups, such that each group stays in one fold.
    scoring : str, callable or None, default=None
        A scikit-learn scorer by which cross-validation chooses, which is given nothing but the predictions. None: the
        share of wrong rows, or the cost of mistakes; the mean squared error of numbers.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as a value that
        differs from all others.
    random_state : int, RandomState or None, default=None
        Seed of the folds. Without effect where none are drawn.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.

    Attributes
    ----------
    neighbors_ : FittedNeighbours
        What predicts: the rows remembered, their distances, and how they count.
    n_neighbors_ : int
        Rows that answer for a row.
    cv_results_ : dict of ndarrays
        With ``n_neighbors="cv"``: "n_neighbors" tried, their mean "error" over the folds, its standard error
        "error_se", and the "fold_errors", one column per fold.
    metric_ : str
        The distance.
    terms_ : list of str
        What distances are made of, in words: columns, categories, whether a value is missing.
    center_ : ndarray of shape (n_terms,)
        What is taken off each term.
    scale_ : ndarray of shape (n_terms,)
        What each term is divided by then.
    n_samples_fit_ : int
        Rows remembered: those of positive weight.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    n_outputs_ : int
        Number of outputs.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

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
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.p = p
        self.scale = scale
        self.algorithm = algorithm
        self.ties = ties
        self.k_values = k_values
        self.cv = cv
        self.scoring = scoring
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs
