"""Support vector machines that predict values."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from spinney._svm.regression import MachineOfValues
from spinney._svm.rows import MarginRows
from spinney._svm.solve import Problems, value_problem


class SVR(MachineOfValues):
    """Support vector regression.

    The flattest function, in the terms of the table or in the space of a kernel, that leaves most rows within
    ``epsilon``; rows farther away pay ``C`` times how far. Solved as `SVC` is, with the same terms.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        Similarity of rows u and v: u·v, ``(gamma u·v + coef0) ** degree``, ``exp(-gamma |u - v|²)``, ``tanh(gamma u·v +
        coef0)``; a matrix of kernel values in place of the table; or a function of two arrays of rows of terms that
        returns the values of all pairs, which are then held in memory.
    degree : int, default=3
        Power of the polynomial kernel.
    gamma : {"scale", "auto", "cv"}, float or list of floats, default="scale"
        How narrow the kernel is. "scale": one over the number of terms and the variance of all of them; "auto": one
        over the number of terms. "cv", or values to choose from: that of the least cross-validated error (five about
        that of "scale").
    coef0 : float, default=0.0
        Constant of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        By how much the conditions of the optimum may be violated at the end, in units of the score.
    C : float, "cv" or list of floats, default=1.0
        What a row pays per unit of its distance beyond the margin. Infinite: no row may cross it, which is refused if
        the rows cannot be separated. "cv", or values to choose from: that of the least cross-validated error (eleven
        values from 0.01 to 1,000).
    epsilon : float, default=0.1
        Errors up to this do not count.
    scale : {"standard", "range"}, bool or None, default="standard"
        How terms are brought to one scale. "standard" (or True): less the mean, divided by the standard deviation.
        "range": less the lowest value, divided by the range. None (or False): numbers stay as they are, and a
        category's term is 0 or 1.
    shrinking : bool, default=True
        Whether rows that sit firmly at a bound are left out for a while. The optimum is the same.
    cache_size : float, default=200
        Megabytes of kernel values to keep.
    precision : {"single", "double"}, default="single"
        Numbers as which kernel values are kept while the dual is solved: of 32 bits, as libsvm does, or of 64, of which
        half as many fit into `cache_size`. It matters below a `tol` of about 1e-5, and for large C.
    max_iter : int, default=-1
        Most steps of two rows; -1: ten million.
    cv : int, splitter, iterable of splits, or array of fold numbers, default=5
        Folds, where C or gamma is chosen or probabilities are fitted. For a number, folds are drawn by `random_state`
        with the classes spread evenly, or, if `fit` is given groups, such that each group stays in one fold.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as none of the known
        ones.
    random_state : int, RandomState or None, default=None
        Seed of the folds. Without effect where none are made.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.

    Attributes
    ----------
    margin_ : FittedMargin
        What predicts.
    terms_ : list of str
        Names of the terms that the columns became.
    support_ : ndarray of shape (n_vectors,)
        Rows of the training table that are support vectors: those of a class together, in the order of their values and
        not of the table, so that the order of the rows does not show; of equal rows the first.
    support_vectors_ : ndarray of shape (n_vectors, n_terms)
        The same in terms; empty if kernel values were given.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_vectors)
        Coefficients of the support vectors.
    intercept_ : ndarray of shape (n_machines,)
        What each machine adds to its sum.
    coef_ : ndarray of shape (n_machines, n_terms)
        Weights of the terms, if the kernel is linear.
    slacks_ : ndarray of shape (n_samples,)
        How far each training row lies beyond the margin it should keep, in units of the score: 0 if it keeps it. With
        several machines the largest. NaN for rows of weight 0. Not saved in model files.
    dual_gap_ : ndarray of shape (n_machines,)
        Objective of the primal less that of the dual: how far the objective can be from the optimum.
    kkt_violation_ : ndarray of shape (n_machines,)
        Largest violation of the conditions of the optimum (Karush, Kuhn and Tucker): at most `tol`, if the fit came to
        its end.
    objective_ : ndarray of shape (n_machines,)
        Objective of the dual, which is minimised, as libsvm states it.
    n_iter_ : ndarray of shape (n_machines,)
        Steps of two rows.
    C_ : float
        The penalty used.
    gamma_ : float
        The width of the kernel used.
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
    LinearSVR : Planes, for many rows.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> x = np.linspace(0, 6, 60)
    >>> model = spinney.SVR(C=10.0, epsilon=0.05).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict(x[:, None]) - np.sin(x)).max() < 0.06)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MachineOfValues._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: Any = 1.0,
        epsilon: float = 0.1,
        scale: Any = "standard",
        shrinking: bool = True,
        cache_size: float = 200,
        precision: str = "single",
        max_iter: int = -1,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.scale = scale
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.precision = precision
        self.max_iter = max_iter
        self.cv = cv
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        return value_problem(rows, float(self.epsilon))
