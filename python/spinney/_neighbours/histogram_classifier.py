"""Regular cells whose rows vote for a class."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney._neighbours.histogram import BaseHistogram
from spinney._neighbours.target import OfClasses


class HistogramClassifier(OfClasses, BaseHistogram):
    """The training rows of a row's cell vote for its class: the histogram rule.

    The table is cut into regular cells: numbers into intervals of one edge, which begin at the lowest value, the mean
    or 0, by ``scale``; categories and missing values are cells of their own. What lies outside the range of the
    training rows belongs to the outermost cells.

    Parameters
    ----------
    cell : float or "cv", default="cv"
        Edge of the cells, in units of ``scale``. "cv": the one among ``cell_values`` with the smallest cross-validated
        error; see ``cv_results_`` and `spinney.plot_error_curve`.
    scale : {"range", "standard"}, bool or None, default="range"
        Unit of the cells' edge. "range": the range of each column, from its lowest value on; an edge of 0.25 makes four
        cells of each. "standard" (or True): its standard deviation, from the mean on. None (or False): the column's own
        units, from 0 on.
    empty : {"nearest", "overall"}, default="nearest"
        What answers for a cell without training rows: the nearest cell that has some, by the number of steps from cell
        to cell (another category, or a missing value, is one), the first of several; or all training rows.
    cell_values : array-like of float, optional
        Edges that ``cell="cv"`` tries. None: 1, 1/2, … 1/32 of the range; 4, 2, … 1/8 in other units.
    cv : "loo", int, splitter, iterable of splits, or array of fold numbers, default="loo"
        Held-out rows of ``cell="cv"``. "loo": each row is judged by the others of its cell. Cells are laid over all
        rows. For a number, folds are drawn by `random_state` with the classes spread evenly, or, if `fit` is given
        groups, such that each group stays in one fold.
    scoring : str, callable or None, default=None
        A scikit-learn scorer by which cross-validation chooses, which is given nothing but the predictions. None: the
        share of wrong rows, or the cost of mistakes; the mean squared error of numbers.
    cost_matrix : array-like of shape (n_classes, n_classes), frame, or dict of dicts by label, optional
        Cost of predicting class j (column) for a row of class i (row).
    priors : array-like of shape (n_classes,), dict by label, "uniform" or None, default=None
        Class probabilities to assume. None: those of the training rows.
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
    classes_ : ndarray, or list of these
        Class labels, sorted; one array per output.
    n_classes_ : int, or ndarray of int
        Number of classes; one number per output.
    cells_ : FittedCells
        What predicts: the cells that hold training rows, and what these have.
    cell_ : float
        Edge of the cells, in units of ``scale``.
    n_cells_ : int
        Cells that hold training rows.
    cv_results_ : dict of ndarrays
        With ``cell="cv"``: the edges tried ("cell"), their mean "error" over the folds, its standard error "error_se",
        and the "fold_errors", one column per fold.
    cost_matrix_ : ndarray of shape (n_classes, n_classes), or None
        Costs in the order of `classes_`, if any were given.
    priors_ : ndarray of shape (n_classes,), or None
        Class probabilities that were assumed, if any were given.
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
        self.cell = cell
        self.scale = scale
        self.empty = empty
        self.cell_values = cell_values
        self.cv = cv
        self.scoring = scoring
        self.cost_matrix = cost_matrix
        self.priors = priors
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs
