"""Linear support vector machines that tell classes apart, for many rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from spinney._model.svm.planes import FittedPlanes
from spinney._svm.linear_solve import Plane
from spinney._svm.penalised import Penalised
from spinney._svm.planes import Floats, PlaneRows, PlanesOfClasses


class LinearSVC(ClassifierMixin, PlanesOfClasses, Penalised):
    """Linear support vector classification of many rows.

    A plane between two classes, or one for each class against all others, of least ½|w|² plus ``C`` times what rows pay
    that lie within the margin or beyond it. Unlike in liblinear, the intercept is not penalised, so that neither the
    place of the columns' zeros nor a scaling of the intercept matters.

    Time grows in proportion to the rows and with the square of the terms. Squared hinges are minimised by Newton's
    method, which takes a few rounds; hinges by an interior point, to a duality gap of ``tol``.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        What a row pays: how far it is from keeping the margin, or that squared.
    C : float, "cv" or list of floats, default=1.0
        What a row pays per unit of its loss. "cv", or values to choose from: that of the least cross-validated error
        (eleven values from 0.01 to 1,000).
    scale : {"standard", "range"}, bool or None, default="standard"
        How terms are brought to one scale. "standard" (or True): less the mean, divided by the standard deviation.
        "range": less the lowest value, divided by the range. None (or False): numbers stay as they are, and a
        category's term is 0 or 1.
    tol : float, default=1e-4
        When to stop: at a duality gap of this share of the objective; of squared losses, when the slope is this share
        of what it was at first.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class label. "balanced": in inverse proportion to the weight of the rows of each class.
    cost_matrix : array-like of shape (n_classes, n_classes), frame, or dict of dicts by label, optional
        Cost of predicting class j (column) for a row of class i (row): a factor of the row's C; for its own machine the
        sum of the costs of what it may be taken for.
    max_iter : int, default=200
        Most rounds; a few suffice for squared losses, 20 to 60 for others.
    cv : int, splitter, iterable of splits, or array of fold numbers, default=5
        Folds, where C is chosen. For a number, folds are drawn by `random_state` with the classes spread evenly, or, if
        `fit` is given groups, such that each group stays in one fold.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as none of the known
        ones.
    random_state : int, RandomState or None, default=None
        Seed of the folds of `C`. Without effect where none are made.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.

    Attributes
    ----------
    classes_ : ndarray, or list of these
        Class labels, sorted; one array per output.
    n_classes_ : int, or ndarray of int
        Number of classes; one number per output.
    margin_ : FittedMargin
        What predicts.
    terms_ : list of str
        Names of the terms that the columns became.
    coef_ : ndarray of shape (n_machines, n_terms)
        Weights of the terms.
    intercept_ : ndarray of shape (n_machines,)
        What each machine adds to its sum.
    objective_ : ndarray of shape (n_machines,)
        Half the squared length of the weights, plus what the rows pay.
    dual_gap_ : ndarray of shape (n_machines,)
        How far the objective can be from the optimum, as a share of it; of squared losses, the slope at the end as a
        share of that at first.
    n_iter_ : ndarray of shape (n_machines,)
        Rounds.
    C_ : float
        The penalty used.
    cv_results_ : dict of ndarrays
        If C or gamma was chosen: what was tried (``C``, ``gamma``), mean error and its standard deviation over folds,
        each fold's.
    cost_matrix_ : ndarray of shape (n_classes, n_classes), or None
        Costs in the order of `classes_`, if any were given.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    See Also
    --------
    SVC : Kernels, and machines for each pair of classes.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.LinearSVC().fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PlanesOfClasses._parameter_constraints,
        **Penalised._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def __init__(
        self,
        *,
        loss: str = "squared_hinge",
        C: Any = 1.0,
        scale: Any = "standard",
        tol: float = 1e-4,
        class_weight: Any = None,
        cost_matrix: Any = None,
        max_iter: int = 200,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.scale = scale
        self.tol = tol
        self.class_weight = class_weight
        self.cost_matrix = cost_matrix
        self.max_iter = max_iter
        self.cv = cv
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit_planes(self, rows: PlaneRows, learned: dict[str, Any], C: float, start: list[Plane] | None) -> list[Plane]:
        machines = self._sides(rows.target, rows.weight, learned)
        return self._planes(rows.terms, machines, None, self.loss == "squared_hinge", C, start)

    def _errors(self, model: FittedPlanes, scores: Floats, target: Floats) -> Floats:
        return np.asarray(model.score_codes(scores)[:, 0] != target, dtype=np.float64)
