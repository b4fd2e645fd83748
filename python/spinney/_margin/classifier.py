"""Support vector machines that tell classes apart."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from spinney._fitted.margin.machines import FittedMachines
from spinney._learn.attributes import only_if
from spinney._learn.costs import read_cost_matrix
from spinney._learn.one_target import read_one_class
from spinney._margin.base import BaseSupportVectors, Floats, MarginTable
from spinney._margin.calibrate import fit_curve
from spinney._margin.rows import MarginRows
from spinney._margin.solve import KernelChoice, Problems, class_problems, machines_of, solve
from spinney._margin.weights import class_weights
from spinney._numbers.same_bits import log


def _why_no_probabilities(model: Any) -> str | None:
    return None if model.probability else "needs probability=True. Set it and fit again, or use decision_function."


class SVC(ClassifierMixin, BaseSupportVectors):
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
    scale : bool, default=True
        Whether terms are centred and divided by their standard deviation. False: numbers stay as they are, and a
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
        Rows of the training table that are support vectors, those of a class together; of equal rows the first.
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

    _is_class_target = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSupportVectors._parameter_constraints,
        "probability": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "cost_matrix": ["array-like", dict, None],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "decision_function_shape": [StrOptions({"ovo", "ovr"})],
    }

    def __init__(
        self,
        *,
        C: Any = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        scale: bool = True,
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

    # ---- fitting -------------------------------------------------------------------------------------

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "a support vector machine")
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, classes)
        learned = {"classes_": classes, "n_classes_": len(classes), "cost_matrix_": cost}
        return codes, learned

    def _weigh(self, target: Floats, weight: Floats, learned: dict[str, Any]) -> None:
        codes = target.astype(np.intp)
        learned["_by_class"] = class_weights(self.class_weight, codes, weight, learned["classes_"])

    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        return class_problems(rows, learned["_by_class"], self.multi_class, learned["cost_matrix_"])

    def _errors(self, model: FittedMachines, scores: Floats, target: Floats) -> Floats:
        return np.asarray(model.score_codes(scores)[:, 0] != target, dtype=np.float64)

    def _calibrate(self, table: MarginTable, kernel: KernelChoice, C: float, learned: dict[str, Any]) -> Floats | None:
        """Fit the curves to the scores of rows in folds that the machines have not seen."""
        if not self.probability:
            return None
        n_classes = len(learned["classes_"])
        found: Floats | None = None
        for fold in self._folds(table, learned, 1):
            weight = np.zeros_like(table.weight)
            weight[fold.grown_on] = table.weight[fold.grown_on]
            design, rows, terms = table.learn(weight)
            self._check_rows(rows, learned)
            problems = self._problems(rows, learned)
            solutions = solve(rows, problems, kernel, np.array([C]), self._effort)[0]
            model = machines_of(rows, problems, solutions, kernel, design, n_classes)
            scores = model.scores_of(table.held_out(model, terms, fold.held_out), self._n_threads)
            if found is None:
                found = np.full((len(table.target), scores.shape[1]), np.nan)
            found[fold.held_out] = scores
        assert found is not None
        seen = ~np.isnan(found[:, 0])
        curves = []
        for m, (positive, negative) in enumerate(_sides(n_classes, self.multi_class)):
            is_positive = np.isin(table.target, positive)
            used = seen & (is_positive | np.isin(table.target, negative))
            curves.append(fit_curve(found[used, m], is_positive[used], table.weight[used]))
        return np.array(curves)

    # ---- using ---------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._scores(X)
        return self.margin_.labels(self.margin_.score_codes(scores), [self.classes_])

    def decision_function(self, X: Any) -> Floats:
        """Scores of each row: of two classes, the signed distance from the boundary in units of the margin.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: positive for the second. More: votes of the machines and, below 1/3, how clear they are; or,
            with ``decision_function_shape="ovo"``, the machines of pairs, positive for the first of the pair.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return scores if self.decision_function_shape == "ovo" else self.margin_.class_scores(scores)

    @only_if(_why_no_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of each row, by curves fitted to the scores of rows held out.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`. They need not agree with `predict`, which goes by the scores alone.
        """
        return self.margin_.predicted(self._scores(X))

    @only_if(_why_no_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of the class probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        shares: Floats = self.predict_proba(X)
        return log(shares)


def _sides(n_classes: int, multi_class: str) -> list[tuple[list[int], list[int]]]:
    """Classes on the positive and the negative side of each machine."""
    if n_classes == 2:
        return [([1], [0])]
    if multi_class == "ovo":
        return [([int(i)], [int(j)]) for i, j in zip(*np.triu_indices(n_classes, 1), strict=True)]
    return [([k], [other for other in range(n_classes) if other != k]) for k in range(n_classes)]
