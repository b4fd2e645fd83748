"""What support vector machines of classes and of values share."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.design import Design
from spinney._data.display.warn import warn
from spinney._estimator.folds import Fold
from spinney._estimator.scaling import SCALE, scale_word
from spinney._estimator.summary import About, counted
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.file.arrays import array_to_json, numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.saving.model_part import FittedPart
from spinney._model.svm.model import KERNELS, FittedMachines
from spinney._svm.rows import MarginRows
from spinney._svm.search import (
    GAMMA_STEPS,
    Grid,
    folds_of,
    is_searched,
    read_penalties,
    read_values,
    results_from_json,
)
from spinney._svm.solve import Effort, KernelChoice, Problems, Solution, machines_of, solve

Floats = NDArray[np.float64]
_MOST_STEPS = 10_000_000


class MarginTable:
    """A table on its way to a margin: its columns, and the terms that folds of it have.

    Attributes
    ----------
    target, weight : ndarray of shape (n_rows,)
        Class codes or values, and weights.
    """

    def __init__(
        self, columns: _engine.Table, schema: Schema, target: Floats, weight: Floats, scale: str | None, is_matrix: bool
    ) -> None:
        self.columns = columns
        self.schema = schema
        self.target = target
        self.weight = weight
        self._scale = scale
        self.matrix = _kernel_matrix(columns) if is_matrix else None

    def learn(self, weight: Floats) -> tuple[Design | None, MarginRows, Floats | None]:
        """Terms of the rows of positive weight; the rows; and all rows in these terms, (n_terms, n_rows)."""
        if self.matrix is not None:
            return None, MarginRows.of_matrix(self.matrix, self.target, weight), None
        design = Design.learn(self.columns, self.schema, weight, self._scale)
        terms = design.matrix(self.columns)
        return design, MarginRows.of(terms, self.target, weight), terms

    def held_out(self, model: FittedMachines, terms: Floats | None, rows: NDArray[np.intp]) -> Floats:
        """Return some rows as a model of a fold reads them."""
        if terms is None:
            assert self.matrix is not None
            return np.ascontiguousarray(self.matrix[np.ix_(rows, model.support)])
        return np.ascontiguousarray(terms[:, rows].T)


def _kernel_matrix(columns: _engine.Table) -> Floats:
    if columns.n_columns != columns.n_rows:
        raise ValueError(
            f"kernel='precomputed' takes a square matrix, the kernel values of all pairs of training rows. X has "
            f"{columns.n_rows} rows and {columns.n_columns} columns."
        )
    found = np.column_stack([np.asarray(columns.column(j)) for j in range(columns.n_columns)])
    _refuse_missing(found)
    return np.ascontiguousarray(found)


def _refuse_missing(values: Floats) -> None:
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"kernel='precomputed' takes finite numbers, and row {row} of X has {values[row, column]} in column "
            f"{column}. A NaN is no kernel value."
        )


class BaseSupportVectors(TableEstimator):
    """Support vector machines of classes or values."""

    _model_attribute = "margin_"
    margin_: FittedMachines
    C_: Any  # one for all machines, or one of each
    _kept_numbers: ClassVar[tuple[str, ...]] = ("dual_gap_", "kkt_violation_", "objective_")  # of each machine
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
        "degree": [Interval(Integral, 0, 1000, closed="both")],
        "gamma": [StrOptions({"scale", "auto", "cv"}), Interval(Real, 0.0, None, closed="neither"), "array-like"],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "scale": SCALE,
        "shrinking": ["boolean"],
        "precision": [StrOptions({"single", "double"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [Interval(Real, 0.0, 2.0**40, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "cv": ["cv_object", "array-like"],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        """Check y; return it as numbers, and what is learned from it."""

    @abstractmethod
    def _problems(self, rows: MarginRows, learned: dict[str, Any]) -> Problems:
        """Return the duals."""

    @abstractmethod
    def _errors(self, model: FittedMachines, scores: Floats, target: Floats) -> Floats:
        """Say what each row's prediction costs, from its scores."""

    def _calibrate(self, table: MarginTable, kernel: KernelChoice, C: float, learned: dict[str, Any]) -> Floats | None:
        """Return the curves that make probabilities of scores."""
        return None

    def _weigh(self, target: Floats, weight: Floats, learned: dict[str, Any]) -> None:
        """Note what else weighs than rows."""
        return

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Find the margin.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are. With
            ``kernel="precomputed"``: kernel values of all pairs of rows.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C: a weight of 2 means that the row counts twice, a weight of 0 leaves it out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together, where folds are made.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        raw = read_table(X)
        is_matrix = isinstance(self.kernel, str) and self.kernel == "precomputed"
        schema = self._learn_schema(raw)
        target, learned = self._read_target(y, raw.n_rows)
        columns = schema.encode(raw, unseen=self.unseen, estimator=type(self).__name__)
        given = read_weights(sample_weight, raw.n_rows)
        weight = np.ones(raw.n_rows) if given is None else given
        self._weigh(target, weight, learned)
        table = MarginTable(columns, schema, target, weight, scale_word(self.scale), is_matrix)
        learned["_groups"] = groups
        design, rows, _ = table.learn(weight)
        self._check_rows(rows, learned)
        grid = self._grid(rows)
        C, gamma, results = float(grid.penalties[0]), float(grid.gammas[0]), None
        if not grid.is_one:
            C, gamma, results = self._search(table, grid, learned)
        kernel = self._kernel(gamma)
        problems = self._problems(rows, learned)
        solutions = solve(rows, problems, kernel, np.array([C]), self._effort)[0]
        self._check_solutions(solutions, C)
        model = machines_of(rows, problems, solutions, kernel, design, self._n_classes(learned))
        model.calibration = self._calibrate(table, kernel, C, learned)
        self._keep(schema, model, rows, problems, solutions, learned)
        self.gamma_ = gamma
        self._keep_found(C, solutions)
        self.__dict__.pop("cv_results_", None)
        if results is not None:
            self.cv_results_ = results
        return self

    @staticmethod
    def _n_classes(learned: dict[str, Any]) -> int | None:
        return len(learned["classes_"]) if "classes_" in learned else None

    def _check_rows(self, rows: MarginRows, learned: dict[str, Any]) -> None:
        """Refuse rows that there is nothing to learn from."""
        for k in range(self._n_classes(learned) or 0):
            if not (rows.target == k).any():
                raise ValueError(
                    f"The class with index {k} in classes_ has no row of positive weight to learn from. Drop its rows, "
                    "or give some of them a weight."
                )

    @property
    def _effort(self) -> Effort:
        most = _MOST_STEPS if self.max_iter == -1 else min(int(self.max_iter), 2**62)
        return Effort(
            float(self.tol),
            float(self.cache_size),
            most,
            bool(self.shrinking),
            self.precision == "double",
            self._n_threads,
        )

    def _kernel(self, gamma: float) -> KernelChoice:
        return KernelChoice(self.kernel, gamma, float(self.coef0), int(self.degree))

    def _penalties(self) -> Floats:
        """Values of C to try."""
        return read_penalties(self.C)

    def _grid(self, rows: MarginRows) -> Grid:
        """Values of C and gamma to try: one of each, unless a search is asked for."""
        uses_gamma = callable(self.kernel) or self.kernel in ("poly", "rbf", "sigmoid")
        if is_searched(self.gamma) and not isinstance(self.gamma, str):
            gammas = read_values(self.gamma, "gamma")
        elif isinstance(self.gamma, str):
            usual = _usual_gamma(rows, self.gamma) if uses_gamma and not callable(self.kernel) else 1.0
            gammas = usual * np.array(GAMMA_STEPS if self.gamma == "cv" and uses_gamma else (1.0,))
        else:
            gammas = np.array([float(self.gamma)])
        if not np.isfinite(gammas).all():
            raise ValueError(f"gamma must be finite. Got {self.gamma!r}.")
        return Grid(self._penalties(), gammas if uses_gamma else gammas[:1])

    def _folds(self, table: MarginTable, learned: dict[str, Any], seed_of: int) -> list[Fold]:
        if "_seed" not in learned:
            learned["_seed"] = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        random = np.random.RandomState((learned["_seed"] + seed_of) % 2**32)
        return folds_of(self.cv, table.target, "classes_" in learned, table.weight, learned["_groups"], random)

    def _search(
        self, table: MarginTable, grid: Grid, learned: dict[str, Any]
    ) -> tuple[float, float, dict[str, Floats]]:
        """Try all pairs on folds; each fold has terms of its own."""
        folds = self._folds(table, learned, 0)
        errors = np.empty((len(grid.gammas), len(grid.penalties), len(folds)))
        total = np.empty(len(folds))
        for f, fold in enumerate(folds):
            weight = np.zeros_like(table.weight)
            weight[fold.grown_on] = table.weight[fold.grown_on]
            design, rows, terms = table.learn(weight)
            self._check_rows(rows, learned)
            judged = table.weight[fold.held_out]
            total[f] = judged.sum()
            problems = self._problems(rows, learned)
            for g, gamma in enumerate(grid.gammas.tolist()):
                kernel = self._kernel(gamma)
                path = solve(rows, problems, kernel, grid.penalties, self._effort)
                for p, solutions in enumerate(path):
                    model = machines_of(rows, problems, solutions, kernel, design, self._n_classes(learned))
                    scores = model.scores_of(table.held_out(model, terms, fold.held_out), self._n_threads)
                    cost = self._errors(model, scores, table.target[fold.held_out])
                    errors[g, p, f] = (cost * judged).sum() / judged.sum()
        g, p, means = grid.chosen(errors, total)
        return float(grid.penalties[p]), float(grid.gammas[g]), grid.table(errors, means)

    def _check_solutions(self, solutions: list[Solution], C: float) -> None:
        """Refuse what is no number, and a hard margin that is none; warn if the steps did not suffice."""
        if not all(np.isfinite(solution.objective) and np.isfinite(solution.scores).all() for solution in solutions):
            raise ValueError(
                "The kernel values of these columns are too large to be numbers. Scale the columns (scale='standard')."
            )
        reached = [solution.violation <= self.tol and solution.is_bounded for solution in solutions]
        if all(reached):
            return
        if np.isinf(C):
            why = "the machine did not come to rest"
            if not all(solution.is_bounded for solution in solutions):
                why = "no margin separates the rows by this kernel"
            raise ValueError(
                f"C=inf asks for a margin that no row crosses, and {why}. Pass a finite C, such as C=1.0, or a kernel "
                "that bends more."
            )
        worst = max(solution.violation for solution in solutions)
        warn(
            f"The fit stopped before tol={self.tol:g} was reached: rows still violate the conditions of the optimum by "
            f"{worst:.3g}. Raise max_iter, lower C, or scale the columns (scale='standard').",
            ConvergenceWarning,
        )

    def _keep(
        self,
        schema: Schema,
        model: FittedMachines,
        rows: MarginRows,
        problems: Problems,
        solutions: list[Solution],
        learned: dict[str, Any],
    ) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        self._keep_schema(schema)
        self.margin_ = model
        self.dual_gap_ = np.array([solution.gap for solution in solutions])
        self.kkt_violation_ = np.array([solution.violation for solution in solutions])
        self.objective_ = np.array([solution.objective for solution in solutions])
        self.n_iter_ = np.array([solution.n_iter for solution in solutions])
        largest = np.zeros(len(rows))
        for m, solution in enumerate(solutions):
            own = problems.rows_of(m)
            largest[own] = np.maximum(largest[own], solution.slacks)
        self.slacks_ = np.where(rows.place >= 0, largest[rows.place], np.nan)
        for name, value in learned.items():
            if not name.startswith("_"):
                setattr(self, name, value)

    def _keep_found(self, C: float, solutions: list[Solution]) -> None:
        """Set what was found of the penalty."""
        self.C_ = C

    # ---- what the model is made of --------------------------------------------------------------------

    @property
    def support_(self) -> NDArray[np.int64]:
        """Rows of the training table that are support vectors; of equal rows the first."""
        check_is_fitted(self)
        return self.margin_.support

    @property
    def support_vectors_(self) -> Floats:
        """Support vectors in terms."""
        check_is_fitted(self)
        return self.margin_.vectors

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        check_is_fitted(self)
        return self.margin_.n_support

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the support vectors."""
        check_is_fitted(self)
        return self.margin_.coefficients

    @property
    def intercept_(self) -> Floats:
        """What each machine adds to its sums."""
        check_is_fitted(self)
        return self.margin_.intercepts

    @property
    def coef_(self) -> Floats:
        """Weights of the terms, if the kernel is linear."""
        check_is_fitted(self)
        if self.margin_.kernel != "linear":
            raise AttributeError("coef_ is only available when the kernel is linear: kernel='linear'.")
        return self.margin_.planes

    @property
    def terms_(self) -> list[str]:
        """Names of the terms."""
        check_is_fitted(self)
        return [] if self.margin_.design is None else self.margin_.design.names(self.schema_)

    # ---- files ---------------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        entry: dict[str, Any] = {name: getattr(self, name).tolist() for name in (*self._kept_numbers, "n_iter_")}
        entry["gamma_"] = self.gamma_
        if "C_" not in self._kept_numbers:
            entry["C_"] = "inf" if np.isinf(self.C_) else self.C_  # JSON has no infinite number
        if hasattr(self, "cv_results_"):
            entry["cv_results_"] = {name: array_to_json(column) for name, column in self.cv_results_.items()}
        return {"margin": entry}

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        entry = field(header, "margin", dict)
        found: dict[str, Any] = {}
        assert isinstance(part.model, FittedMachines)
        for name in (*cls._kept_numbers, "n_iter_"):
            found[name] = numbers_from_json(field(entry, name, list), name)
            if len(found[name]) != part.model.n_machines:
                refuse("is damaged: what is known of its machines does not fit them")
        found["n_iter_"] = found["n_iter_"].astype(np.int64)
        if "C_" not in cls._kept_numbers:
            found["C_"] = np.inf if entry.get("C_") == "inf" else field(entry, "C_", float)
        found["gamma_"] = field(entry, "gamma_", float)
        if "cv_results_" in entry:
            found["cv_results_"] = results_from_json(entry)
        return found

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if hasattr(self, "margin_") and callable(self.margin_.kernel):
            return state
        return super()._pickled(state)

    def _about(self) -> About:
        n = int(self.margin_.coefficients.shape[1])
        vectors, machines = counted(n, "support vector", "support vectors"), self.margin_.n_machines
        name = self.kernel if isinstance(self.kernel, str) else "own"
        lines = {"support vector machine": f"{vectors}, {name} kernel"}
        for chosen in ("C_", "nu"):
            if np.ndim(getattr(self, chosen, [])) == 0:
                lines[chosen.rstrip("_")] = f"{getattr(self, chosen):g}"
        if name in ("poly", "rbf", "sigmoid"):
            lines["gamma"] = f"{self.gamma_:.4g}"
        size: dict[str, Any] = {"support_vectors": n, "machines": machines, "kernel": name, "gamma": self.gamma_}
        if np.ndim(self.C_) == 0:
            size["C"] = self.C_ if np.isfinite(self.C_) else None
        return About(
            "support vector machine",
            size,
            lines,
            f"{vectors}; {name} kernel",
            why_no_trees="the model is a sum over support vectors. Use its support_vectors_ and coef_ in Python.",
        )

    # ---- using ---------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Floats:
        """Scores of each row by machine."""

        def work(columns: _engine.Table) -> Floats:
            rows = self.margin_.rows(columns)
            if self.margin_.design is None:
                _refuse_missing(rows)
            return self.margin_.scores_of(rows, self._n_threads)

        return self._by_blocks(X, work)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            tags.input_tags.pairwise = True
            tags.input_tags.allow_nan = False
        return tags


def _usual_gamma(rows: MarginRows, name: str) -> float:
    """1 over the number of terms, and with "scale" over the variance of all of them too."""
    n_terms = max(len(rows.terms), 1)
    if name == "auto" or not len(rows.terms):
        return 1.0 / n_terms
    share = rows.weight / rows.weight.sum()
    mean = (rows.terms * share).sum() / n_terms
    variance = float((((rows.terms - mean) ** 2) * share).sum() / n_terms)
    return 1.0 / (n_terms * variance) if variance > 0 else 1.0
