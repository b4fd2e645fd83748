"""Support vector machines with a kernel: SVC, NuSVC, SVR and NuSVR."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import plural, warn
from spinney._data.types import Floats, TableLike
from spinney._estimator import table_estimator
from spinney._estimator.estimator import About, only_if
from spinney._estimator.held_out import CrossValidation
from spinney._estimator.many_classes import refuse_pairs
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import SingleTarget
from spinney._model.file.codec import SavedState, columns, integer, number, numbers, optional
from spinney._model.svm.model import KERNELS, MAX_DEGREE, FittedMachines
from spinney._svm.margin_estimator import (
    GAMMA_STEPS,
    PENALTY,
    BaseMargin,
    Chosen,
    Grid,
    MarginRows,
    MarginSearch,
    MarginTable,
    NumberOrSearch,
    TermRows,
    class_weights,
    is_searched,
    read_penalties,
    read_values,
)
from spinney._svm.solve import (
    KERNEL_OVERFLOWS,
    Problems,
    Solution,
    Solver,
    class_problems,
    fit_sigmoid,
    machines_of,
    nu_class_problems,
    nu_value_problem,
    value_problem,
)

_MAX_ITER = 10_000_000
NU = Interval(Real, 0.0, 1.0, closed="right")
SAVED = {name: numbers() for name in ("dual_gap_", "kkt_violation_", "objective_")}
SAVED |= {"n_iter_": numbers(np.int64), "gamma_": number()}


@dataclass(frozen=True)
class Solved:
    """The fitted machines: distinct rows, dual problems, solutions, and the model that predicts."""

    rows: MarginRows
    problems: Problems
    solutions: list[Solution]
    model: FittedMachines

    @property
    def slacks(self) -> Floats:
        """Return the slack of each row of the table, the largest over the machines; NaN for rows of weight 0."""
        largest = np.zeros(len(self.rows))
        for m, solution in enumerate(self.solutions):
            own = self.problems.rows_of(m)
            largest[own] = np.maximum(largest[own], solution.slacks)
        return np.where(self.rows.place >= 0, largest[self.rows.place], np.nan)


def _refuse_missing(values: Floats) -> None:
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"kernel='precomputed' needs finite numbers, but X has {values[row, column]} in row {row}, column "
            f"{column}. Compute kernel values without NaN or infinity."
        )


@estimator
class BaseKernelMachine(BaseMargin):
    """Support vector machines with a kernel."""

    kernel: Literal["linear", "poly", "rbf", "sigmoid", "precomputed"] | Callable[..., Any] = parameter(
        StrOptions({*KERNELS, "precomputed"}), callable, default="rbf"
    )
    degree: int = parameter(Interval(Integral, 0, MAX_DEGREE, closed="both"), default=3)
    gamma: Literal["scale", "auto"] | NumberOrSearch = parameter(
        StrOptions({"scale", "auto", "cv"}), Interval(Real, 0.0, None, closed="neither"), "array-like", default="scale"
    )
    coef0: float = parameter(Interval(Real, None, None, closed="neither"), default=0.0)
    shrinking: bool = parameter("boolean", default=True)
    tol: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1e-3)
    cache_size: float = parameter(Interval(Real, 0.0, 2.0**40, closed="neither"), default=200)
    precision: Literal["single", "double"] = parameter(StrOptions({"single", "double"}), default="single")
    max_iter: int = parameter(Interval(Integral, -1, None, closed="left"), default=-1)

    margin_: FittedMachines = field(init=False)

    @abstractmethod
    def _problems(self, rows: MarginRows, table: MarginTable) -> Problems:
        """Return the dual problems of all machines."""

    # ---- fitting -------------------------------------------------------------------------------------

    def _read_matrix(self, columns: _engine.Table) -> Floats | None:
        if callable(self.kernel) or self.kernel != "precomputed":
            return None
        if columns.n_columns != columns.n_rows:
            raise ValueError(
                f"kernel='precomputed' needs a square matrix, the kernel values of all pairs of training rows. X has "
                f"{columns.n_rows} rows and {columns.n_columns} columns."
            )
        matrix = np.column_stack([np.asarray(columns.column(j)) for j in range(columns.n_columns)])
        _refuse_missing(matrix)
        return np.ascontiguousarray(matrix)

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        rows = table.learn(table.weight)
        grid = self._grid(rows.merged)
        chosen = Chosen(float(grid.penalties[0]), float(grid.gammas[0]))
        self._set_fitted(self._solved(table, rows, chosen), chosen)
        self.shape_fit_ = (len(table.weight), table.schema.n_features)

    def _solved(self, table: MarginTable, rows: TermRows, chosen: Chosen) -> Solved:
        """Return the checked machines of the chosen parameters."""
        solved = next(self._solve(table, rows, chosen.gamma, np.array([chosen.C])))
        self._check_solutions(solved.solutions, chosen.C)
        return solved

    def _solve(self, table: MarginTable, rows: TermRows, gamma: float, penalties: Floats) -> Iterator[Solved]:
        """Yield the fitted machines for each of ascending penalties."""
        merged = rows.merged
        solver = Solver(
            kernel=self.kernel,
            gamma=gamma,
            coef0=float(self.coef0),
            degree=int(self.degree),
            tol=float(self.tol),
            cache_size=float(self.cache_size),
            max_iter=_MAX_ITER if self.max_iter == -1 else min(int(self.max_iter), 2**62),
            shrinking=bool(self.shrinking),
            is_double=self.precision == "double",
            n_jobs=self._n_threads,
        )
        problems, breaks_ties = self._problems(merged, table), bool(getattr(self, "break_ties", False))
        for solutions in solver.solve(merged, problems, penalties):
            model = machines_of(merged, problems, solutions, solver, rows.design, table.target.n_classes, breaks_ties)
            yield Solved(merged, problems, solutions, model)

    def _grid(self, rows: MarginRows) -> Grid:
        """Return the values of C and gamma to try: one of each, unless they are to be searched."""
        uses_gamma = callable(self.kernel) or self.kernel in ("poly", "rbf", "sigmoid")
        if isinstance(self.gamma, str):
            default = _default_gamma(rows, self.gamma) if uses_gamma and not callable(self.kernel) else 1.0
            gammas = default * np.array(GAMMA_STEPS if self.gamma == "cv" and uses_gamma else (1.0,))
        elif is_searched(self.gamma):
            gammas = read_values(self.gamma, "gamma")
        else:
            gammas = np.array([float(self.gamma)])  # type: ignore[arg-type]
        if not np.isfinite(gammas).all():
            raise ValueError(f"gamma must be finite. Got {self.gamma!r}.")
        return Grid(read_penalties(getattr(self, "C", 1.0)), gammas if uses_gamma else gammas[:1])

    def _check_solutions(self, solutions: list[Solution], C: float) -> None:
        """Refuse overflow and an infeasible hard margin; warn if a machine has not converged."""
        if not all(np.isfinite(solution.objective) and np.isfinite(solution.scores).all() for solution in solutions):
            raise ValueError(KERNEL_OVERFLOWS)
        reached = [solution.violation <= self.tol and solution.is_bounded for solution in solutions]
        if all(reached):
            return
        if np.isinf(C):
            why = "the solver did not converge"
            if not all(solution.is_bounded for solution in solutions):
                why = "the classes are not separable with this kernel"
            raise ValueError(
                f"C=inf asks for a hard margin, and {why}. Pass a finite C, such as C=1.0, or a more flexible kernel."
            )
        worst = max(solution.violation for solution in solutions)
        lower = "lower C, " if hasattr(self, "C") else ""
        warn(
            f"The solver did not converge to tol={self.tol:g}: the optimality conditions are still violated by "
            f"{worst:.3g}. Raise max_iter, {lower}or scale the columns (scale='standard').",
            ConvergenceWarning,
        )

    def _set_fitted(self, solved: Solved, chosen: Chosen) -> None:
        """Set the fitted attributes."""
        solutions = solved.solutions
        self.margin_ = solved.model
        self.dual_gap_ = np.array([solution.gap for solution in solutions])
        self.kkt_violation_ = np.array([solution.violation for solution in solutions])
        self.objective_ = np.array([solution.objective for solution in solutions])
        self.n_iter_: Any = np.array([solution.n_iter for solution in solutions])
        self.slacks_ = solved.slacks
        self.gamma_ = chosen.gamma

    # ---- fitted attributes ----------------------------------------------------------------------------

    @property
    def fit_status_(self) -> int:
        """0 if the solver has converged to ``tol``, else 1."""
        check_is_fitted(self)
        return int((self.kkt_violation_ > self.tol).any())

    @property
    def support_(self) -> NDArray[np.int64]:
        """Row numbers of the support vectors in the training table."""
        check_is_fitted(self)
        return self.margin_.support

    @property
    def support_vectors_(self) -> Floats:
        """Support vectors as rows of terms, in the units of the columns."""
        check_is_fitted(self)
        model = self.margin_
        if model.design is None:
            return np.empty((len(model.support), 0))
        return (model.vectors * model.design.scale + model.design.center)[model.vector]

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors; in a classifier, of each class."""
        check_is_fitted(self)
        of_vector = np.repeat(np.arange(len(self.margin_.n_vectors)), self.margin_.n_vectors)
        counts = np.bincount(of_vector[self.margin_.vector], minlength=len(self.margin_.n_vectors))
        return counts.astype(np.int32)

    @property
    def dual_coef_(self) -> Floats:
        """Dual coefficients of the support vectors; equal rows share one, in proportion to their weights."""
        check_is_fitted(self)
        return self.margin_.coefficients[:, self.margin_.vector] * self.margin_.fraction

    @property
    def coef_(self) -> Floats:
        """Coefficients of the terms; only for a linear kernel."""
        check_is_fitted(self)
        if self.margin_.kernel != "linear":
            raise AttributeError("coef_ is only available when the kernel is linear: kernel='linear'.")
        return self.margin_.raw_planes[0]

    @property
    def _is_linear(self) -> bool:
        return self.margin_.kernel == "linear"

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if hasattr(self, "margin_") and callable(self.margin_.kernel):
            return state
        return super()._pickled(state)

    def _about(self) -> About:
        n = int(self.margin_.coefficients.shape[1])
        vectors, name = plural(n, "support vector"), str(self.margin_.kernel)
        name = "user-defined" if callable(self.margin_.kernel) else name
        lines = {"support vector machine": f"{vectors}, {name} kernel"}
        C = getattr(self, "C_", None)
        penalty = float(C) if C is not None and np.ndim(C) == 0 else None
        lines |= {} if penalty is None else {"C": f"{penalty:g}"}
        lines |= {"nu": f"{self.nu:g}"} if hasattr(self, "nu") else {}
        if name in ("poly", "rbf", "sigmoid"):
            lines["gamma"] = f"{self.gamma_:.4g}"
        size = {"support_vectors": n, "machines": self.margin_.n_machines, "kernel": name, "gamma": self.gamma_}
        if penalty is not None:
            size["C"] = penalty if np.isfinite(penalty) else None
        return About(
            "support vector machine",
            size,
            lines,
            f"{vectors}; {name} kernel",
            why_no_trees="the model is a support vector machine. Use its support_vectors_ and coef_ in Python.",
        )

    def _scores(self, X: TableLike) -> Floats:
        """Return the score that each machine gives each row, (n_rows, n_machines)."""

        def work(columns: _engine.Table) -> Floats:
            rows = self.margin_.rows(columns)
            if self.margin_.design is None:
                _refuse_missing(rows)
            return self.margin_.scores_of(rows, self._n_threads)

        return self._by_blocks(X, work)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            tags.input_tags.pairwise = True
            tags.input_tags.allow_nan = False
        return tags


def _default_gamma(rows: MarginRows, name: str) -> float:
    """Return 1 / n_terms for "auto", 1 / (n_terms * variance) for "scale", as in scikit-learn."""
    n_terms = max(len(rows.terms), 1)
    if name == "auto" or not len(rows.terms):
        return 1.0 / n_terms
    weight = rows.weight / rows.weight.sum()
    mean = (rows.terms * weight).sum() / n_terms
    variance = float((((rows.terms - mean) ** 2) * weight).sum() / n_terms)
    return 1.0 / (n_terms * variance) if variance > 0 else 1.0


def _fit_chosen(
    machine: BaseKernelClassifier | BaseKernelRegressor, table: MarginTable, groups: ArrayLike | None
) -> None:
    """Fit a machine with the C and gamma of its grid that cross-validation chooses, and calibrate its probabilities."""
    rows = table.learn(table.weight)
    grid = machine._grid(rows.merged)
    chosen = Chosen(float(grid.penalties[0]), float(grid.gammas[0]))
    calibrates = isinstance(machine, BaseKernelClassifier) and machine.probability
    if not grid.is_single or calibrates:
        seed = int(check_random_state(machine.random_state).randint(np.iinfo(np.int32).max))
    if not grid.is_single:
        search = MarginSearch(table, machine.cv, groups, RandomState(seed), machine._n_threads)
        chosen = search.choose(grid, lambda own, gamma, Cs: (s.model for s in machine._solve(table, own, gamma, Cs)))
    solved = machine._solved(table, rows, chosen)
    if isinstance(machine, BaseKernelClassifier) and machine.probability:
        search = MarginSearch(table, machine.cv, groups, RandomState((seed + 1) % 2**32), machine._n_threads)
        solved.model.calibration = machine._calibrate(table, chosen, search)
    machine._set_chosen(chosen)
    machine._set_fitted(solved, chosen)
    machine.shape_fit_ = (len(table.weight), table.schema.n_features)


# ---- classification ----------------------------------------------------------------------------------------------


def _why_no_probabilities(model: BaseKernelClassifier) -> str | None:
    return None if model.probability else "needs probability=True. Set it and fit again, or use decision_function."


@estimator
class BaseKernelClassifier(ClassifierMixin, BaseKernelMachine):
    """Support vector classification: one machine, one per pair of classes, or one per class against the rest."""

    cv: CrossValidation = parameter("cv_object", "array-like", default=5)
    random_state: int | RandomState | None = parameter("random_state", default=None)
    probability: bool = parameter("boolean", default=False)
    decision_function_shape: Literal["ovo", "ovr"] = parameter(StrOptions({"ovo", "ovr"}), default="ovr")
    break_ties: bool = parameter("boolean", default=False)
    _is_class_target = True
    _saved: ClassVar[SavedState] = SavedState(
        "fitted", {**SAVED, "C_": number(0.0), "cv_results_": columns(), "class_weight_": optional(numbers(least=0))}
    )

    def _by_class(self, table: MarginTable) -> Floats:
        """Return the factor of C of each class."""
        return np.ones(len(table.target.labels))

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        _fit_chosen(self, table, groups)
        self.class_weight_ = self._by_class(table)

    def _calibrate(self, table: MarginTable, chosen: Chosen, search: MarginSearch) -> Floats:
        """Fit the sigmoids that turn scores into probabilities, by cross-validated scores (Platt scaling)."""
        held_out: Floats | None = None
        for fold in search.folds:
            rows = table.learn_without(fold)
            model = next(self._solve(table, rows, chosen.gamma, np.array([chosen.C]))).model
            scores = model.scores_of(rows.held_out(model, fold.held_out), self._n_threads)
            if held_out is None:
                held_out = np.full((len(table.weight), scores.shape[1]), np.nan)
            held_out[fold.held_out] = scores
        assert held_out is not None
        has_score, target = ~np.isnan(held_out[:, 0]), table.target.values
        sigmoids = []
        for m, (positive, negative) in enumerate(_sides(len(table.target.labels), model.strategy)):
            is_positive = np.isin(target, positive)
            used = has_score & (is_positive | np.isin(target, negative))
            sigmoids.append(fit_sigmoid(held_out[used, m], is_positive[used], table.weight[used]))
        return np.array(sigmoids)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the class of each row; see ``break_ties`` for classes with equal votes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'. Use 'ovr' to break ties.")
        return table_estimator.predict_labels(self, X)

    def decision_function(self, X: TableLike) -> Floats:
        """Scores of each row; for two classes, the signed distance from the boundary in units of the margin.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            With two classes: positive for the second class. With more classes: the number of votes for each class, plus
            the summed confidence scaled to less than 1/3 to break ties. With ``decision_function_shape="ovo"``: the
            scores of the pairwise machines, positive for the first class of the pair. With ``multi_class="ovr"``
            (`SVC`): the score of each class against all others.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return scores if self.decision_function_shape == "ovo" else self.margin_.class_scores(scores)

    @only_if(_why_no_probabilities)
    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities of each row, by Platt scaling of cross-validated scores.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`. The most probable class may differ from `predict`, which uses the scores
            alone.
        """
        scores = self._scores(X)
        if self.margin_.calibration is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False. Fit again with probability=True."
            )
        return self.margin_.predicted(scores)

    predict_log_proba = only_if(_why_no_probabilities)(table_estimator.predict_log_proba)


def _sides(n_classes: int, strategy: str) -> list[tuple[list[int], list[int]]]:
    """Return the classes on the positive and the negative side of each machine."""
    if strategy == "one":
        return [([1], [0])]
    if strategy == "ovo":
        return [([int(i)], [int(j)]) for i, j in zip(*np.triu_indices(n_classes, 1), strict=True)]
    return [([k], [other for other in range(n_classes) if other != k]) for k in range(n_classes)]


@estimator
class SVC(BaseKernelClassifier):
    """Support vector classification.

    The fit maximises the margin between two classes in the feature space of a kernel; margin violations cost ``C`` per
    unit. The dual is solved by sequential minimal optimisation with second-order working set selection, until no pair
    of rows violates the optimality (KKT) conditions by more than ``tol``.

    Columns are encoded as numeric features, called terms; ``terms_`` has their names. A numeric column is one term, in
    its unit unless ``scale`` is set, which is recommended if columns differ in unit. Each category becomes a term of 0
    or 1, and missing values are replaced by the mean, with a term of 0 or 1 that marks them. Rows that are equal in all
    terms and in class are merged during the fit.

    See Also
    --------
    LinearSVC : Fits linear machines to many rows.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.SVC(C=10.0, scale="standard").fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    C: NumberOrSearch = parameter(*PENALTY, default=1.0)
    class_weight: dict[Any, float] | Literal["balanced"] | None = parameter(
        dict, StrOptions({"balanced"}), None, default=None
    )
    cost_matrix: ArrayLike | None = parameter("array-like", dict, None, default=None)
    multi_class: Literal["ovo", "ovr"] = parameter(StrOptions({"ovo", "ovr"}), default="ovo")

    def _by_class(self, table: MarginTable) -> Floats:
        return class_weights(self.class_weight, table.target.codes, table.weight, table.target.labels)

    def _problems(self, rows: MarginRows, table: MarginTable) -> Problems:
        return class_problems(rows, self._by_class(table), self.multi_class, table.cost)

    def _check_classes(self, target: SingleTarget, n_rows: int) -> None:
        if self.multi_class == "ovr":
            super()._check_classes(target, n_rows)
        else:
            refuse_pairs(target.n_classes or 0, "SVC")


@estimator
class NuSVC(BaseKernelClassifier):
    """Nu-support vector classification.

    Like `SVC`, but with ``nu`` in place of the penalty ``C``. ``nu`` is a lower bound on the fraction of rows that are
    support vectors and an upper bound on the fraction of margin violations (Schölkopf, Smola, Williamson and Bartlett
    2000). With two classes, `SVC` with the penalty ``C_`` gives the same model. With more classes, each pair of classes
    has a binary classifier, called a machine, and ``C_`` holds the penalty of each machine.

    See Also
    --------
    SVC : Parameterised by the penalty C.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.NuSVC(nu=0.1, scale="standard").fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    nu: float = parameter(NU, default=0.5)
    _saved = SavedState("fitted", {**BaseKernelClassifier._saved.fields, "C_": numbers()})
    _other_library_advice: ClassVar[dict[str, str]] = {
        "class_weight": "Pass the weights of rows to fit, as sample_weight. scikit-learn's NuSVC ignores class_weight."
    }

    def _problems(self, rows: MarginRows, table: MarginTable) -> Problems:
        return nu_class_problems(rows, float(self.nu), table.target.labels)

    def _check_classes(self, target: SingleTarget, n_rows: int) -> None:
        refuse_pairs(target.n_classes or 0, "NuSVC")

    def _set_fitted(self, solved: Solved, chosen: Chosen) -> None:
        super()._set_fitted(solved, chosen)
        self.C_ = np.array([solution.penalty for solution in solved.solutions])


# ---- regression --------------------------------------------------------------------------------------------------


@estimator
class BaseKernelRegressor(RegressorMixin, BaseKernelMachine):
    """Support vector regression: one machine, whose score is the prediction."""

    cv: CrossValidation = parameter("cv_object", "array-like", default=5)
    random_state: int | RandomState | None = parameter("random_state", default=None)
    C: NumberOrSearch = parameter(*PENALTY, default=1.0)
    predict = table_estimator.predict_values
    _saved = SavedState("fitted", {**SAVED, "n_iter_": integer(), "C_": number(0.0), "cv_results_": columns()})

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        _fit_chosen(self, table, groups)

    def _set_fitted(self, solved: Solved, chosen: Chosen) -> None:
        super()._set_fitted(solved, chosen)
        self.n_iter_ = int(solved.solutions[0].n_iter)


@estimator
class SVR(BaseKernelRegressor):
    """Support vector regression.

    The fit finds the flattest function in the feature space of a kernel; errors beyond ``epsilon`` cost ``C`` per unit.
    Columns are encoded as numeric features, called terms, as in `SVC`; the solver is the same too.

    See Also
    --------
    LinearSVR : Fits linear machines to many rows.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> x = np.linspace(0, 6, 60)
    >>> model = spinney.SVR(C=10.0, epsilon=0.05).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict(x[:, None]) - np.sin(x)).max() < 0.06)
    True
    """

    epsilon: float = parameter(Interval(Real, 0.0, None, closed="left"), default=0.1)

    def _problems(self, rows: MarginRows, table: MarginTable) -> Problems:
        return value_problem(rows, float(self.epsilon))


@estimator
class NuSVR(BaseKernelRegressor):
    """Nu-support vector regression.

    Like `SVR`, but with ``nu`` in place of ``epsilon``. ``nu`` is a lower bound on the fraction of rows that are
    support vectors and an upper bound on the fraction of rows outside the tube (Schölkopf, Smola, Williamson and
    Bartlett 2000). `SVR` with ``epsilon_`` gives the same function.

    See Also
    --------
    SVR : Parameterised by the half-width epsilon of the tube.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> x = np.linspace(0, 6, 60)
    >>> model = spinney.NuSVR(C=10.0, nu=0.2).fit(x[:, None], np.sin(x))
    >>> bool(np.abs(model.predict(x[:, None]) - np.sin(x)).max() < 0.06)
    True
    """

    nu: float = parameter(NU, default=0.5)
    _saved = SavedState("fitted", {**BaseKernelRegressor._saved.fields, "epsilon_": numbers()})

    def _problems(self, rows: MarginRows, table: MarginTable) -> Problems:
        return nu_value_problem(rows, float(self.nu))

    def _set_fitted(self, solved: Solved, chosen: Chosen) -> None:
        super()._set_fitted(solved, chosen)
        self.epsilon_ = np.array([solution.epsilon for solution in solved.solutions])
