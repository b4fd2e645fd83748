"""Linear support vector machines for many rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._data.design import Design
from spinney._data.display import plural, warn
from spinney._data.types import Floats, TableLike
from spinney._estimator import table_estimator
from spinney._estimator.costs import read_cost_matrix
from spinney._estimator.estimator import About, only_if
from spinney._estimator.held_out import CrossValidation
from spinney._estimator.online import (
    SAVED_ONLINE,
    Batch,
    OnlineState,
    Quadratic,
    begins,
    check_state,
    remember_batch,
    state_of,
)
from spinney._estimator.parallel import Progress
from spinney._estimator.parameters import estimator, parameter, scale_name
from spinney._model.file.codec import SavedState, columns, integer, number, numbers
from spinney._model.model import FittedModel
from spinney._model.svm.model import FittedPlanes
from spinney._svm.linear_solve import Plane, PlaneProblem, Terms, fit_plane, with_rows
from spinney._svm.margin_estimator import (
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

    def _next_rows(
        self, X: TableLike, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None, is_first: bool
    ) -> tuple[MarginTable, TermRows]:
        """Return the rows of one call of `partial_fit`, as terms of the first call."""
        batch = Batch.read(self, X, y, classes, sample_weight, is_first)
        self._refuse_large(batch.weight)
        costs: ArrayLike | None = getattr(self, "cost_matrix", None)
        cost = None if costs is None else read_cost_matrix(costs, batch.target.labels)
        scale, weight = scale_name(self.scale), batch.weight
        table = MarginTable(batch.columns, batch.schema, batch.target, weight, scale, None, cost)
        known = None if is_first else self.margin_.design
        design = known or Design.learn_first(batch.columns, batch.schema, weight, scale)
        return table, TermRows(design, design.matrix(batch.columns), batch.target.values, weight)

    def _machines(self, rows: TermRows, table: MarginTable) -> Iterator[TermRows]:
        """Yield the rows of positive weight as each machine is fitted to them: target ±1 or numbers, and weights."""
        yield rows.used()

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


def why_no_balance(estimator: Any) -> str | None:
    if not isinstance(estimator.class_weight, str):
        return None
    return "cannot balance classes whose number of rows is unknown. Pass class_weight as a dict."


def machines_of_classes(estimator: Any, rows: TermRows, table: MarginTable) -> Iterator[TermRows]:
    """Yield the rows of each machine: one for two classes, else one per class against the rest."""
    rows, classes, cost = rows.used(), table.target.labels, table.cost
    codes = rows.target.astype(np.intp)
    weight = rows.weight * class_weights(estimator.class_weight, codes, rows.weight, classes)[codes]
    places = [1] if len(classes) == 2 else range(len(classes))
    with Progress("classes", len(places), False, 0, None) as progress:
        for n_done, k in enumerate(places):
            progress.report(n_done)
            z = np.where(codes == k, 1.0, -1.0)
            price = np.ones(len(z)) if cost is None else np.where(z > 0, cost[k].sum(), cost[codes, k])
            yield replace(rows, target=z, weight=weight * price)


# ---- linear support vector machines ------------------------------------------------------------------------------


@estimator
class BaseLinearMachine(BasePlanes):
    """Linear support vector machines; C may be chosen by cross-validation."""

    loss: str = parameter(str, default="squared_hinge")
    C: NumberOrSearch = parameter(*PENALTY, default=1.0)
    tol: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1e-4)
    max_iter: int = parameter(Interval(Integral, 1, None, closed="left"), default=200)
    fit_intercept: bool = parameter("boolean", default=True)
    intercept_scaling: float = parameter(Interval(Real, 0.0, np.inf, closed="right"), default=1.0)
    dual: bool | Literal["auto"] = parameter("boolean", StrOptions({"auto"}), default="auto")
    cv: CrossValidation = parameter("cv_object", "array-like", default=5)
    _saved: ClassVar[SavedState] = SavedState(
        "fitted",
        {
            "objective_": numbers(),
            "dual_gap_": numbers(),
            "n_iter_": integer(),
            "C_": number(0.0),
            "cv_results_": columns(),
            **SAVED_ONLINE,
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
        self._set_planes(self._planes(table, rows, chosen.C, None), rows, table, chosen)

    def _set_planes(self, planes: list[Plane], rows: TermRows, table: MarginTable, chosen: Chosen) -> None:
        """Set the fitted attributes; warn if a machine has not converged."""
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
                terms = self._terms(own)
            problem = self._problem(own, terms, C)
            with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is not taken
                planes.append(fit_plane(problem, squared, first))
            if not (np.isfinite(planes[-1].weights).all() and np.isfinite(planes[-1].objective)):
                raise ValueError(f"The loss overflows: {_OVERFLOWS} and the target.")
        return planes

    def _terms(self, rows: TermRows | MarginRows) -> Terms:
        """Return the terms of some rows with the penalty of their weights."""
        of_intercept = 1.0 / self.intercept_scaling if self.fit_intercept else 1.0
        ridge = np.append(np.ones(len(rows.terms)), of_intercept**2)
        _refuse_large(rows.terms)
        return Terms(rows.terms, ridge, self._n_threads, bool(self.fit_intercept))

    def _problem(self, rows: TermRows | MarginRows, terms: Terms, C: float) -> PlaneProblem:
        return PlaneProblem(
            terms,
            rows.target,
            C * rows.weight,
            self._tube,
            float(self.tol),
            self.max_iter,
            lasso=np.sqrt(terms.ridge) if self._is_sparse else None,
        )

    def _learn_batch(
        self, X: TableLike, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        """Learn from further rows."""
        self._check_parameters()
        self._refuse_combination()
        C = float(self.C)  # type: ignore[arg-type]
        if C > _LARGEST_C:
            raise ValueError(f"C={C:g} is too large. Pass at most {_LARGEST_C:g}.")
        table, rows = self._next_rows(X, y, classes, sample_weight, begins(self))
        state: OnlineState | None = getattr(self, "_online", None)
        squared, planes, parts = self.loss.startswith("squared"), [], []
        for m, machine in enumerate(self._machines(rows, table)):
            problem = self._problem(machine, self._terms(machine), C)
            earlier = Quadratic.of(problem.table.n_weights, state, m)
            continued = replace(problem, earlier=earlier)
            by_newton = squared or not len(machine.target)  # without rows the losses are equal
            with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is not taken
                planes.append(fit_plane(continued if by_newton or state is not None else problem, by_newton, None))
                parts.append(with_rows(continued, planes[-1].weights, by_newton))
            if not all(np.isfinite(part).all() for part in (planes[-1].weights, parts[-1].curvature, parts[-1].slope)):
                raise ValueError(f"The loss overflows: {_OVERFLOWS} and the target.")
        self._set_planes(planes, rows, table, Chosen(C, 1.0))
        self._set_table(table.schema, table.target, table.cost)
        remember_batch(self, state_of(parts), len(rows.target))
        return self

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedPlanes)
        m, n = model.planes.shape[0], model.planes.shape[1] + 1
        check_state(found, curvature=(m, n, n), slope=(m, n), constant=(m,))
        super()._check_saved(found, model)

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


def _why_no_expansion(model: LinearSVC | LinearSVR) -> str | None:
    """Return why the loss of earlier rows cannot be expanded."""
    if is_searched(model.C):
        return "needs a number for C, because candidates are compared on all rows. Pass C=1.0."
    if model._is_sparse:
        return "needs penalty='l2'."
    if model.loss == "hinge":
        return "needs the squared hinge loss, because loss='hinge' has no curvature. Pass loss='squared_hinge'."
    return None


@estimator
class LinearSVC(ClassifierMixin, BaseLinearMachine):
    """Linear support vector classification for many rows.

    The weights w minimise ½|w|² (or Σ|w|) plus ``C`` times the hinge loss or its square, for two classes or for each
    class against the rest. As in liblinear, the intercept is penalised too; ``intercept_scaling=inf`` leaves it
    unpenalised, so that shifting a column does not change the model.

    The time is linear in the number of rows and quadratic in the number of terms. The squared hinge loss is minimised
    by Newton's method in a few iterations, the hinge loss by an interior point method to a duality gap of a hundredth
    of ``tol``.

    See Also
    --------
    SVC : Has kernels, and one machine per pair of classes.

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
    _machines = machines_of_classes
    _other_library_advice: ClassVar[dict[str, str]] = {
        "multi_class": "Each class is fitted against the rest, which is scikit-learn's 'ovr'. Leave it out."
    }
    predict = table_estimator.predict_labels
    decision_function = table_estimator.decision_function

    @only_if(lambda model: _why_no_expansion(model) or why_no_balance(model))
    def partial_fit(
        self, X: TableLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the model with further rows; the rows of earlier calls are not needed any more.

        The squared loss of earlier rows is replaced by its second-order expansion at the weights that were fitted when
        they arrived. Each call is therefore a short fit, and a single call gives the same model as `fit`. The expansion
        is exact for rows that stay on their side of the margin. The method needs the squared hinge loss,
        ``penalty="l2"``, and a number for `C`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, with the columns of the first call. The terms, their scale and the replacement of missing values are
            those of the first call; a category that the first call did not have is an error.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels that y may have in any call; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows: factors of the loss of each row.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._learn_batch(X, y, classes, sample_weight)

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

    The weights w minimise ½|w|² plus ``C`` times the epsilon-insensitive loss. As in liblinear, the intercept is
    penalised too, unless ``intercept_scaling=inf``. The squared loss is minimised by Newton's method, the loss that is
    not squared by an interior point method.

    See Also
    --------
    SVR : Has kernels.

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

    @only_if(lambda model: _why_no_expansion(model))
    def partial_fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Update the model with further rows; the rows of earlier calls are not needed any more.

        The squared loss of earlier rows is replaced by its second-order expansion at the weights that were fitted when
        they arrived. Each call is therefore a short fit, and a single call gives the same model as `fit`. The expansion
        is exact for rows that stay on their side of the tube. The loss that is not squared is replaced by a quadratic
        function that is nowhere below it, which is less exact. The method needs a number for `C`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows, with the columns of the first call. The terms, their scale and the replacement of missing values are
            those of the first call; a category that the first call did not have is an error.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows: factors of the loss of each row.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._learn_batch(X, y, None, sample_weight)

    @property
    def coef_(self) -> Floats:
        """Coefficients of the terms, (n_terms,), in the units of the columns."""
        return np.asarray(super().coef_[0])

    @property
    def _tube(self) -> float | None:
        return float(self.epsilon)
