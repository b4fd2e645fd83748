"""Linear support vector machines that predict values, for many rows."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._estimator.single_target import read_one_value
from spinney._model.svm.planes import FittedPlanes
from spinney._svm.linear_solve import Plane
from spinney._svm.penalised import Penalised
from spinney._svm.planes import Floats, PlaneRows


class LinearSVR(RegressorMixin, Penalised):
    """Linear support vector regression of many rows.

    The plane of least ½|w|² plus ``C`` times what rows pay that lie farther away than ``epsilon``. Unlike in liblinear,
    the intercept is not penalised. Squared errors are minimised by Newton's method, others by an interior point.

    Parameters
    ----------
    epsilon : float, default=0.0
        Errors up to this do not count.
    tol : float, default=1e-4
        When to stop: at a duality gap of this share of the objective; of squared losses, when the slope is this share
        of what it was at first.
    C : float, "cv" or list of floats, default=1.0
        What a row pays per unit of its loss. "cv", or values to choose from: that of the least cross-validated error
        (eleven values from 0.01 to 1,000).
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        What a row pays: its error beyond `epsilon`, or that squared.
    scale : {"standard", "range"}, bool or None, default="standard"
        How terms are brought to one scale. "standard" (or True): less the mean, divided by the standard deviation.
        "range": less the lowest value, divided by the range. None (or False): numbers stay as they are, and a
        category's term is 0 or 1.
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
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    See Also
    --------
    SVR : Kernels.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> x = np.linspace(0, 6, 60)
    >>> model = spinney.LinearSVR(C=100.0).fit(x[:, None], 2 * x + 1)
    >>> model.predict([[10.0]]).round(2)
    array([21.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Penalised._parameter_constraints,
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: Any = 1.0,
        loss: str = "epsilon_insensitive",
        scale: Any = "standard",
        max_iter: int = 200,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.scale = scale
        self.max_iter = max_iter
        self.cv = cv
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return read_one_value(y, n_rows, "a support vector machine"), {}

    def _fit_planes(self, rows: PlaneRows, learned: dict[str, Any], C: float, start: list[Plane] | None) -> list[Plane]:
        squared = self.loss == "squared_epsilon_insensitive"
        return self._planes(rows.terms, [(rows.target, rows.weight)], float(self.epsilon), squared, C, start)

    def _errors(self, model: FittedPlanes, scores: Floats, target: Floats) -> Floats:
        return np.asarray((scores[:, 0] - target) ** 2)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        return self._scores(X)[:, 0]
