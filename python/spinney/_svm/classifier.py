"""Support vector machines that tell classes apart."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from spinney._estimator.costs import read_cost_matrix
from spinney._svm.class_pairs import MachinesOfClasses
from spinney._svm.kernel_machine import Floats
from spinney._svm.rows import MarginRows
from spinney._svm.search import PENALTY
from spinney._svm.solve import Problems, class_problems


class SVC(MachinesOfClasses):
    """Support vector classification.

    The widest margin between two classes, in the terms of the table or, with a kernel, in a space that bends; rows that
    lie within the margin or beyond it pay ``C`` times how far. The dual is solved by steps of two rows each, chosen to
    second order, until no pair violates the conditions of the optimum by more than ``tol``.

    Numbers are centred and scaled, categories become one term each, and what is missing has the mean and a term of its
    own, unless ``scale=False`` leaves numbers as they are: ``terms_`` names the terms. Rows that are equal in all terms
    and in class count as one, with the sum of their weights.

    Parameters
    ----------
    C : float, "cv" or list of floats, default=1.0
        What a row pays per unit of its distance beyond the margin. Infinite: no row may cross it, which is refused if
        the rows cannot be separated. "cv", or values to choose from: that of the least cross-validated error (eleven
        values from 0.01 to 1,000).
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
    scale : {"standard", "range"}, bool or None, default="standard"
        How terms are brought to one scale. "standard" (or True): less the mean, divided by the standard deviation.
        "range": less the lowest value, divided by the range. None (or False): numbers stay as they are, and a
        category's term is 0 or 1.
    shrinking : bool, default=True
        Whether rows that sit firmly at a bound are left out for a while. The optimum is the same.
    probability : bool, default=False
        Whether to fit curves that turn scores into probabilities (Platt), to the scores of rows in folds that the
        machines have not seen. Takes as many more fits as there are folds.
    tol : float, default=1e-3
        By how much the conditions of the optimum may be violated at the end, in units of the score.
    cache_size : float, default=200
        Megabytes of kernel values to keep.
    precision : {"single", "double"}, default="single"
        Numbers as which kernel values are kept while the dual is solved: of 32 bits, as libsvm does, or of 64, of which
        half as many fit into `cache_size`. It matters below a `tol` of about 1e-5, and for large C.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class label. "balanced": in inverse proportion to the weight of the rows of each class.
    cost_matrix : array-like of shape (n_classes, n_classes), frame, or dict of dicts by label, optional
        Cost of predicting class j (column) for a row of class i (row): a factor of the row's C in the machine that
        tells the two apart, or, one against all, the sum of the costs of what it may be taken for.
    multi_class : {"ovo", "ovr"}, default="ovo"
        With more than two classes: a machine for each pair of them, or one for each against all others.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What `decision_function` returns for several classes: a number for each, or those of the machines.
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
    classes_ : ndarray, or list of these
        Class labels, sorted; one array per output.
    n_classes_ : int, or ndarray of int
        Number of classes; one number per output.
    margin_ : FittedMargin
        What predicts.
    terms_ : list of str
        Names of the terms that the columns became.
    support_ : ndarray of shape (n_vectors,)
        Rows of the training table that are support vectors: those of a class together, in the order of their values and
        not of the table, so that the order of the rows does not show; of equal rows the first.
    support_vectors_ : ndarray of shape (n_vectors, n_terms)
        The same in terms; empty if kernel values were given.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_vectors)
        Coefficients of the support vectors: a vector of class i has that of its machine with class j in row j, or j - 1
        if j is above i. With ``multi_class="ovr"`` a row for each class.
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
    LinearSVC : Planes, for many rows.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.SVC(C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MachinesOfClasses._parameter_constraints,
        "C": PENALTY,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "cost_matrix": ["array-like", dict, None],
        "multi_class": [StrOptions({"ovo", "ovr"})],
    }

    def __init__(
        self,
        *,
        C: Any = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        scale: Any = "standard",
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        precision: str = "single",
        class_weight: Any = None,
        cost_matrix: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        max_iter: int = -1,
        cv: Any = 5,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.scale = scale
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.precision = precision
        self.class_weight = class_weight
        self.cost_matrix = cost_matrix
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.max_iter = max_iter
        self.cv = cv
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, learned = super()._read_target(y, n_rows)
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, learned["classes_"])
        return codes, learned | {"cost_matrix_": cost}

    def _weights_of_classes(self) -> Any:
        return self.class_weight

    def _multi_class(self) -> str:
        return str(self.multi_class)

    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        return class_problems(rows, learned["_by_class"], self.multi_class, learned["cost_matrix_"])
