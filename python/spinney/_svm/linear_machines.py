"""Linear support vector machines for many rows, and the perceptron."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import plural, warn
from spinney._data.types import Floats
from spinney._estimator import table_estimator
from spinney._estimator.estimator import About
from spinney._estimator.parameters import estimator, parameter
from spinney._model.file.codec import SavedState, bounds, columns, integer, number, numbers
from spinney._model.svm.model import FittedPlanes
from spinney._svm.linear_solve import Plane, PlaneProblem, Terms, fit_plane
from spinney._svm.margin_estimator import (
    PENALTY,
    BaseMargin,
    Chosen,
    Grid,
    MarginRows,
    MarginSearch,
    MarginTable,
    TermRows,
    class_weights,
    is_searched,
    read_penalties,
)

_LARGEST_C = 1e30
_LARGEST_TERM = 1e75  # so that products of four terms are finite
_OVERFLOWS = (
    "a linear support vector machine cannot compute with numbers of this size. Scale the columns (scale='standard')"
)


def _refuse_large(terms: Floats) -> None:
    if max(float(terms.max(initial=0.0)), -float(terms.min(initial=0.0))) > _LARGEST_TERM:
        raise ValueError(f"A column has numbers beyond {_LARGEST_TERM:g}: {_OVERFLOWS}.")


@estimator
class BasePlanes(BaseMargin):
    """Estimators whose model is one hyperplane per machine."""

    random_state: int | RandomState | None = parameter("random_state", default=None)

    margin_: FittedPlanes = field(init=False)
    _noun = "linear support vector machine"

    def _machines(self, rows: TermRows, table: MarginTable) -> list[TermRows]:
        """Return the rows of positive weight as each machine is fitted to them: target ±1 or numbers, and weights."""
        return [rows.used()]

    @staticmethod
    def _model(planes: Floats, rows: TermRows, n_classes: int | None) -> FittedPlanes:
        return FittedPlanes(
            planes=np.ascontiguousarray(planes[:, :-1]),
            design=rows.design,
            strategy="ovr" if n_classes is not None and n_classes > 2 else "one",
            intercepts=np.ascontiguousarray(planes[:, -1]),
            n_classes=None if n_classes is None else [n_classes],
        )

    @property
    def coef_(self) -> Floats:
        """Coefficients of the terms, (n_machines, n_terms), in the units of the columns."""
        check_is_fitted(self)
        return self.margin_.raw_planes[0]

    def _about(self) -> About:
        n_terms, n = len(self.terms_), self.margin_.n_machines
        sentence = f"{plural(n, 'plane')} of {plural(n_terms, 'term')}"
        size = {"planes": n, "terms": self.terms_}
        why = "the model is linear. Use its coef_ and intercept_ in Python."
        return About(self._noun, size, {self._noun: sentence}, sentence, why_no_trees=why)


def _machines_of_classes(estimator: LinearSVC | Perceptron, rows: TermRows, table: MarginTable) -> list[TermRows]:
    """Return the rows of each machine: one for two classes, else one per class against the rest."""
    rows, classes, cost = rows.used(), table.target.labels, table.cost
    codes = rows.target.astype(np.intp)
    weight = rows.weight * class_weights(estimator.class_weight, codes, rows.weight, classes)[codes]
    found = []
    for k in [1] if len(classes) == 2 else range(len(classes)):
        z = np.where(codes == k, 1.0, -1.0)
        price = np.ones(len(z)) if cost is None else np.where(z > 0, cost[k].sum(), cost[codes, k])
        found.append(replace(rows, target=z, weight=weight * price))
    return found


# ---- linear support vector machines ------------------------------------------------------------------------------


@estimator
class BaseLinearMachine(BasePlanes):
    """Linear support vector machines; C may be chosen by cross-validation."""

    loss: str = parameter(str, default="squared_hinge")
    C: float | str | ArrayLike = parameter(*PENALTY, default=1.0)
    tol: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1e-4)
    max_iter: int = parameter(Interval(Integral, 1, None, closed="left"), default=200)
    fit_intercept: bool = parameter("boolean", default=True)
    intercept_scaling: float = parameter(Interval(Real, 0.0, np.inf, closed="right"), default=1.0)
    dual: bool | Literal["auto"] = parameter("boolean", StrOptions({"auto"}), default="auto")
    cv: Any = parameter("cv_object", "array-like", default=5)
    _saved: ClassVar[SavedState] = SavedState(
        "fitted",
        {
            "objective_": numbers(),
            "dual_gap_": numbers(),
            "n_iter_": integer(),
            "C_": number(0.0),
            "cv_results_": columns(),
        },
    )

    @property
    def _tube(self) -> float | None:
        """Half-width of the epsilon-insensitive tube; None for classification."""
        return None

    @property
    def _is_sparse(self) -> bool:
        """Whether the penalty is the sum of the sizes of the weights, so that many of them are 0."""
        return False

    def _refuse_combination(self) -> None:
        """Refuse the combinations that scikit-learn refuses."""
        if not self._is_sparse and not self.loss.startswith("squared") and self.dual is False:
            raise ValueError(f"loss={self.loss!r} is not supported with dual=False. Use dual='auto'.")

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        self._refuse_combination()
        grid = Grid(read_penalties(self.C), np.ones(1))
        if grid.penalties.max() > _LARGEST_C:
            raise ValueError(
                f"C={grid.penalties.max():g} is too large. Pass at most {_LARGEST_C:g}; for a hard margin use "
                "SVC(kernel='linear', C=inf)."
            )
        chosen = Chosen(float(grid.penalties[0]), 1.0)
        if is_searched(self.C):
            search = MarginSearch(table, self.cv, groups, check_random_state(self.random_state), self._n_threads)
            chosen = search.choose(grid, lambda rows, _, penalties: self._path(table, rows, penalties))
            assert chosen.results is not None
            del chosen.results["gamma"]
        rows = table.learn(table.weight)
        planes = self._planes(table, rows, chosen.C, None)
        self._warn(planes, chosen.C)
        self.margin_ = self._model(np.array([plane.weights for plane in planes]), rows, table.target.n_classes)
        self.objective_ = np.array([plane.objective for plane in planes])
        self.dual_gap_ = np.array([plane.gap for plane in planes])
        self.n_iter_ = max(plane.n_iter for plane in planes)
        self._set_chosen(chosen)

    def _path(self, table: MarginTable, rows: TermRows, penalties: Floats) -> Iterator[FittedPlanes]:
        """Yield a model for each of ascending penalties, each with a warm start from the one before."""
        planes: list[Plane] | None = None
        for C in penalties.tolist():
            planes = self._planes(table, rows, C, planes)
            yield self._model(np.array([plane.weights for plane in planes]), rows, table.target.n_classes)

    def _planes(self, table: MarginTable, rows: TermRows, C: float, start: list[Plane] | None) -> list[Plane]:
        """Fit the hyperplane of each machine; the interior point method merges equal rows."""
        squared, planes, terms = self.loss.startswith("squared"), [], None
        for m, machine in enumerate(self._machines(rows, table)):
            own = machine.used() if squared else machine.merged
            first = start[m].weights if start is not None and squared else None
            if terms is None or terms.terms is not own.terms:  # machines of the same rows share their products
                of_intercept = 1.0 / self.intercept_scaling if self.fit_intercept else 1.0
                ridge = np.append(np.ones(len(own.terms)), of_intercept**2)
                _refuse_large(own.terms)
                terms = Terms(own.terms, ridge, self._n_threads, bool(self.fit_intercept))
            problem = PlaneProblem(
                terms,
                own.target,
                C * own.weight,
                self._tube,
                float(self.tol),
                self.max_iter,
                lasso=np.sqrt(terms.ridge) if self._is_sparse else None,
            )
            with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is not taken
                planes.append(fit_plane(problem, squared, first))
            if not (np.isfinite(planes[-1].weights).all() and np.isfinite(planes[-1].objective)):
                raise ValueError(f"The loss overflows: {_OVERFLOWS} and the target.")
        return planes

    def _warn(self, planes: list[Plane], C: float) -> None:
        worst = max(planes, key=lambda plane: plane.gap)
        if not worst.gap <= self.tol:
            warn(
                f"The solver did not converge to tol={self.tol:g} in max_iter={self.max_iter} iterations: a gap of "
                f"{worst.gap:.3g} is left. Raise max_iter, or scale the columns (scale='standard')."
                if worst.n_iter >= self.max_iter
                else f"The solver reached the limit of rounding before tol={self.tol:g}: a gap of {worst.gap:.3g} is "
                f"left. Raise tol, lower C={C:g}, or scale the columns (scale='standard').",
                ConvergenceWarning,
            )


@estimator
class LinearSVC(ClassifierMixin, BaseLinearMachine):
    """Linear support vector classification for many rows.

    Minimises ½|w|² (or Σ|w|) plus ``C`` times the hinge loss, for two classes or for each class against the rest. As in
    liblinear, the intercept is penalised too; ``intercept_scaling=inf`` leaves it unpenalised, so that shifting a
    column does not change the model.

    Time is linear in the rows and quadratic in the terms. The squared hinge loss is minimised by Newton's method in a
    few iterations, the hinge loss by an interior point method to a duality gap of ``tol``.

    See Also
    --------
    SVC : Kernels, and one machine per pair of classes.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.LinearSVC(scale="standard").fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """

    penalty: Literal["l1", "l2"] = parameter(StrOptions({"l1", "l2"}), default="l2")
    loss: Literal["hinge", "squared_hinge"] = parameter(StrOptions({"hinge", "squared_hinge"}), default="squared_hinge")
    class_weight: dict[Any, float] | Literal["balanced"] | None = parameter(
        dict, StrOptions({"balanced"}), None, default=None
    )
    cost_matrix: ArrayLike | None = parameter("array-like", dict, None, default=None)
    _is_class_target = True
    _machines = _machines_of_classes
    _other_library_advice: ClassVar[dict[str, str]] = {
        "multi_class": "Each class is fitted against the rest, which is scikit-learn's 'ovr'. Leave it out."
    }
    predict = table_estimator.predict_labels
    decision_function = table_estimator.decision_function

    @property
    def _is_sparse(self) -> bool:
        return self.penalty == "l1"

    def _refuse_combination(self) -> None:
        super()._refuse_combination()
        if self._is_sparse and self.loss == "hinge":
            raise ValueError("penalty='l1' is not supported with loss='hinge'. Use loss='squared_hinge'.")
        if self._is_sparse and self.dual is True:
            raise ValueError("penalty='l1' is not supported with dual=True. Use dual='auto'.")


@estimator
class LinearSVR(RegressorMixin, BaseLinearMachine):
    """Linear support vector regression for many rows.

    Minimises ½|w|² plus ``C`` times the epsilon-insensitive loss. As in liblinear, the intercept is penalised too,
    unless ``intercept_scaling=inf``. The squared loss is minimised by Newton's method, the other by an interior point
    method.

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

    epsilon: float = parameter(Interval(Real, 0.0, None, closed="left"), default=0.0)
    loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = parameter(
        StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"}), default="epsilon_insensitive"
    )
    predict = table_estimator.predict_values

    @property
    def coef_(self) -> Floats:
        """Coefficients of the terms, (n_terms,), in the units of the columns."""
        return np.asarray(super().coef_[0])

    @property
    def _tube(self) -> float | None:
        return float(self.epsilon)


# ---- the perceptron ----------------------------------------------------------------------------------------------


_MOST_ROUNDS, _FEASIBLE = 100, 1e-7  # of the search for the widest plane


@estimator
class Perceptron(ClassifierMixin, BasePlanes):
    """Rosenblatt's perceptron.

    Passes over the rows and updates on misclassified rows only: for a row x of class y = ±1 the coefficients become
    β + η y x and the intercept b + η y R², where R is the largest norm of a row. It stops after an epoch without
    mistakes. If a hyperplane of margin M separates the classes, that takes at most 2 R²/M² updates (Novikoff). Rows
    that are equal in all terms and in class are merged, the order of the table has no effect, and a weight multiplies
    η. With ``shuffle=False`` each epoch takes the rows one by one in the order of the table, as in an online setting.
    scikit-learn's perceptron differs in its intercept, which changes by η y, and in its default ``tol=1e-3``.

    See Also
    --------
    LinearSVC : The hyperplane of the largest margin, with a penalty for margin violations.

    Examples
    --------
    >>> import spinney
    >>> X = [[0.0, 1.0], [1.0, 2.0], [3.0, 0.0], [4.0, 1.0]]
    >>> model = spinney.Perceptron(random_state=0).fit(X, ["left", "left", "right", "right"])
    >>> bool(model.n_updates_[0] <= model.novikoff_bound_[0])
    True
    """

    penalty: Literal["l2", "l1", "elasticnet"] | None = parameter(
        StrOptions({"l2", "l1", "elasticnet"}), None, default=None
    )
    alpha: float = parameter(Interval(Real, 0.0, None, closed="left"), default=1e-4)
    l1_ratio: float = parameter(Interval(Real, 0.0, 1.0, closed="both"), default=0.15)
    fit_intercept: bool = parameter("boolean", default=True)
    eta0: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1.0)
    averaged: bool = parameter("boolean", default=False)
    max_iter: int = parameter(Interval(Integral, 1, 2**31 - 1, closed="both"), default=1000)
    tol: float | None = parameter(Interval(Real, 0.0, None, closed="left"), None, default=None)
    n_iter_no_change: int = parameter(Interval(Integral, 1, 2**31 - 1, closed="both"), default=5)
    shuffle: bool = parameter("boolean", default=True)
    class_weight: dict[Any, float] | Literal["balanced"] | None = parameter(
        dict, StrOptions({"balanced"}), None, default=None
    )
    random_state: int | RandomState | None = parameter(default=0)
    cost_matrix: ArrayLike | None = parameter("array-like", dict, None, default=None)

    _noun = "perceptron"
    _is_class_target = True
    _machines = _machines_of_classes
    predict = table_estimator.predict_labels
    decision_function = table_estimator.decision_function
    _saved = SavedState(
        "fitted", {"n_updates_": numbers(np.int64), "n_iter_": numbers(np.int64), "novikoff_bound_": bounds()}
    )
    _other_library_advice: ClassVar[dict[str, str]] = {
        "eta": "In spinney it is called 'eta0'.",
        "early_stopping": "Use tol, which stops when the loss of the training rows settles, or averaged=True.",
        "validation_fraction": "Use tol, which stops when the loss of the training rows settles.",
        "warm_start": "Each fit starts at weights of 0. Raise max_iter.",
    }

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        rows = table.learn(table.weight)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)) if self.shuffle else 0
        l1_ratio = {None: 0.0, "l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))
        alpha = float(self.alpha) if self.penalty is not None else 0.0
        planes, updates, epochs, ended, novikoff = [], [], [], [], []
        for machine in self._machines(rows, table):
            own = machine.merged if self.shuffle else machine.used()
            radius = float((own.terms**2).sum(axis=0).max(initial=0.0))
            plane, n_updates, n_epochs, is_clean, is_settled = _engine.fit_perceptron(
                np.ascontiguousarray(own.terms.T),
                np.ascontiguousarray(own.target),
                own.weight,
                rate=float(self.eta0),
                squared_radius=(radius or 1.0) if self.fit_intercept else 0.0,
                max_epochs=int(self.max_iter),
                averaged=bool(self.averaged),
                shuffles=bool(self.shuffle),
                seed=seed,
                l1=alpha * l1_ratio,
                l2=alpha * (1.0 - l1_ratio),
                tolerance=-1.0 if self.tol is None else float(self.tol),
                patience=int(self.n_iter_no_change),
            )
            planes.append(plane)
            updates.append(n_updates)
            epochs.append(n_epochs)
            ended.append(is_clean or is_settled)
            is_bounded = alpha == 0.0 and self.fit_intercept
            novikoff.append(_novikoff(plane, own, radius) if is_bounded else np.inf)
        if not all(ended) and not self.averaged:
            warn(
                f"The perceptron still misclassified rows after max_iter={self.max_iter} epochs; the classes may not "
                "be linearly separable. Use tol=1e-3, averaged=True, or LinearSVC.",
                ConvergenceWarning,
            )
        self.margin_ = self._model(np.array(planes), rows, table.target.n_classes)
        self.n_updates_, self.n_iter_ = np.array(updates), np.array(epochs)
        self.novikoff_bound_ = np.array(novikoff)


def _novikoff(plane: Floats, rows: MarginRows | TermRows, squared_radius: float) -> float:
    """Return Novikoff's bound 2 R²/M² on the number of updates, where M is the largest margin of any plane.

    Planes are those through the origin of the rows (x, R), which the perceptron updates. Weights multiply the updates,
    so that the bound grows by the square of their largest ratio. It is infinite if the fitted plane misclassifies rows.
    """
    radius = np.sqrt(squared_radius) or 1.0
    signed = rows.target[:, np.newaxis] * np.column_stack([rows.terms.T / radius, np.ones(len(rows.target))])
    found = np.append(plane[:-1], plane[-1] / radius)
    margin = max(_relative_margin(found, signed), _relative_margin(_widest_plane(signed), signed))
    if not margin > 0:
        return np.inf
    weight_ratio = float(rows.weight.max() / rows.weight.min())
    return 2.0 / margin**2 * weight_ratio**2


def _relative_margin(plane: Floats, signed: Floats) -> float:
    """Return the smallest distance of the rows y x to a plane through the origin; negative if it separates them not."""
    norm = float(np.sqrt((plane**2).sum()))
    return float((signed @ plane).min()) / norm if norm > 0 else 0.0


def _widest_plane(signed: Floats) -> Floats:
    """Return the shortest w with w · y x ≥ 1 for all rows y x; 0 if there is none.

    Least distance programming (Lawson and Hanson 1974, chapter 23) on the rows that are violated so far.
    """
    from scipy.optimize import nnls

    n_terms = signed.shape[1]
    plane, active = np.zeros(n_terms), np.zeros(0, dtype=np.intp)
    for _ in range(_MOST_ROUNDS):
        gap = 1.0 - signed @ plane
        worst = np.argsort(-gap, kind="stable")[: n_terms + 1]
        worst = np.setdiff1d(worst[gap[worst] > _FEASIBLE], active)
        if not len(worst):
            return plane
        active = np.append(active, worst)
        system = np.vstack([signed[active].T, np.ones(len(active))])
        residual = np.append(np.zeros(n_terms), 1.0) - system @ nnls(system, np.append(np.zeros(n_terms), 1.0))[0]
        if not residual[-1] > _FEASIBLE**2:  # no plane separates the rows
            return np.zeros(n_terms)
        plane = -residual[:-1] / residual[-1]
    return plane
