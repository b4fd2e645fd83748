"""The perceptron."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.types import Floats, TableLike
from spinney._estimator import table_estimator
from spinney._estimator.estimator import only_if
from spinney._estimator.online import SAVED_ONLINE, OnlineState, check_state, remember_batch
from spinney._estimator.parameters import estimator, parameter
from spinney._model.file.codec import SavedState, bounds, integer, numbers
from spinney._model.model import FittedModel
from spinney._model.svm.model import FittedPlanes
from spinney._svm.linear_machines import BasePlanes, machines_of_classes, why_no_balance
from spinney._svm.margin_estimator import MarginRows, MarginTable, TermRows

_MOST_ROUNDS, _FEASIBLE = 100, 1e-7  # of the search for the widest plane


@dataclass(frozen=True)
class _Passed:
    """What passes over the rows end with.

    Attributes
    ----------
    weights : ndarray of shape (n_terms + 1,)
        Coefficients and intercept; if averaged, their mean.
    n_updates, n_epochs : int
        Numbers of updates and of passes.
    is_clean, is_settled : bool
        Whether the last epoch had no misclassified row; whether the loss no longer decreased.
    last : ndarray of shape (n_terms + 1,)
        Coefficients and intercept after the last row.
    squared_radius : float
        Largest squared norm of a row.
    """

    weights: Floats
    n_updates: int
    n_epochs: int
    is_clean: bool
    is_settled: bool
    last: Floats
    squared_radius: float


@estimator
class Perceptron(ClassifierMixin, BasePlanes):
    """Rosenblatt's perceptron, a linear classifier.

    The fit passes over the rows in epochs. Each misclassified row x of class y = ±1 changes the coefficients β to
    β + η y x and the intercept b to b + η y R², where η is ``eta0`` times the weight of the row and R the largest norm
    of a row; scikit-learn's perceptron changes the intercept to b + η y. The fit ends after an epoch without mistakes,
    after ``max_iter`` epochs, or when the loss settles (``tol``); Rosenblatt's rule is ``tol=None``, which ignores the
    loss. With three classes or more, each class is separated from all others.

    If a hyperplane with margin M separates the classes (with the intercept in units of R), the fit makes at most
    2 R²/M² updates (Novikoff's theorem), or R²/M² without an intercept. Rows that are equal in all terms and in class
    are merged, and the order of the table has no effect, unless ``shuffle=False``: each epoch then takes the rows one
    by one in the order of the table, as in online learning.

    See Also
    --------
    LinearSVC : The hyperplane of the largest margin, with a penalty for margin violations.

    Examples
    --------
    >>> import spinney
    >>> X = [[0.0, 1.0], [1.0, 2.0], [3.0, 0.0], [4.0, 1.0]]
    >>> model = spinney.Perceptron(tol=None, random_state=0).fit(X, ["left", "left", "right", "right"])
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
    tol: float | None = parameter(Interval(Real, 0.0, None, closed="left"), None, default=1e-3)
    n_iter_no_change: int = parameter(Interval(Integral, 1, 2**31 - 1, closed="both"), default=5)
    shuffle: bool = parameter("boolean", default=True)
    class_weight: dict[Any, float] | Literal["balanced"] | None = parameter(
        dict, StrOptions({"balanced"}), None, default=None
    )
    random_state: int | RandomState | None = parameter(default=0)
    cost_matrix: ArrayLike | None = parameter("array-like", dict, None, default=None)

    n_updates_: NDArray[np.int64] = field(init=False)
    n_iter_: int = field(init=False)
    _noun = "perceptron"
    _is_class_target = True
    _machines = machines_of_classes
    predict = table_estimator.predict_labels
    decision_function = table_estimator.decision_function
    _saved = SavedState(
        "fitted",
        {"n_updates_": numbers(np.int64), "n_iter_": integer(), "novikoff_bound_": bounds()} | SAVED_ONLINE,
    )
    _other_library_advice: ClassVar[dict[str, str]] = {
        "eta": "In spinney it is called 'eta0'.",
        "early_stopping": "Use tol, which stops when the loss of the training rows settles, or averaged=True.",
        "validation_fraction": "Use tol, which stops when the loss of the training rows settles.",
        "warm_start": "Each fit starts at weights of 0. Raise max_iter.",
    }

    @only_if(why_no_balance)
    def partial_fit(
        self, X: TableLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the model with further rows; the rows of earlier calls are not needed any more.

        The method makes one pass over the rows in their order, whatever ``shuffle`` is, so that several batches give
        the same hyperplane as one call with all their rows. R is the largest norm of the rows so far. A model that was
        fitted by `fit` is continued from its coefficients.

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
            Factors of the updates; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._learn_batch(X, y, classes, sample_weight)

    def _pass(
        self, rows: MarginRows | TermRows, squared_radius: float, *, seed: int = 0, start: Floats | None = None
    ) -> _Passed:
        """Pass over the rows: in epochs; or once, in their order, from the weights of earlier rows."""
        is_next = start is not None
        l1_ratio = {None: 0.0, "l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))
        alpha = float(self.alpha) if self.penalty is not None else 0.0
        found = _engine.fit_perceptron(
            np.ascontiguousarray(rows.terms.T),
            np.ascontiguousarray(rows.target),
            rows.weight,
            rate=float(self.eta0),
            squared_radius=squared_radius,
            max_epochs=1 if is_next else int(self.max_iter),
            averaged=bool(self.averaged),
            shuffles=bool(self.shuffle) and not is_next,
            seed=seed,
            l1=alpha * l1_ratio,
            l2=alpha * (1.0 - l1_ratio),
            tolerance=-1.0 if self.tol is None else float(self.tol),
            patience=int(self.n_iter_no_change),
            start=np.zeros(0) if start is None else start,
            grows_radius=is_next and bool(self.fit_intercept),
        )
        return _Passed(*found)

    def _state_to_continue(self, n_machines: int, n_terms: int) -> OnlineState:
        """Return a copy of the state after earlier rows; after a fit, its weights."""
        state: OnlineState | None = getattr(self, "_online", None)
        if state is not None:
            return {name: array.copy() for name, array in state.items()}
        planes = np.zeros((n_machines, n_terms + 1))
        if hasattr(self, "margin_"):
            planes = np.column_stack([self.margin_.planes, self.margin_.intercepts])
        zeros = np.zeros(n_machines)
        return {"last": planes, "mean": planes.copy(), "squared_radius": zeros, "n_rows": zeros.copy()}

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedPlanes)
        m, n = model.planes.shape[0], model.planes.shape[1] + 1
        check_state(found, last=(m, n), mean=(m, n), squared_radius=(m,), n_rows=(m,))
        super()._check_saved(found, model)

    def _learn_batch(
        self, X: TableLike, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        """Learn from further rows."""
        self._check_parameters()
        table, rows = self._next_rows(X, y, classes, sample_weight, not hasattr(self, "margin_"))
        n_classes = table.target.n_classes
        n_machines = n_classes if n_classes is not None and n_classes > 2 else 1
        state = self._state_to_continue(n_machines, len(rows.terms))
        is_new, planes, updates = not hasattr(self, "margin_"), [], np.zeros(n_machines, dtype=np.int64)
        for m, every in enumerate(self._machines(rows, table)):
            machine = every.used()
            passed = self._pass(machine, float(state["squared_radius"][m]), start=state["last"][m])
            mean, n_rows = state["mean"][m], len(machine.target)
            updates[m] = passed.n_updates
            state["n_rows"][m] += n_rows
            state["last"][m], state["squared_radius"][m] = passed.last, passed.squared_radius
            if n_rows:
                state["mean"][m] = mean + (passed.weights - mean) * (n_rows / state["n_rows"][m])
            planes.append(state["mean" if self.averaged else "last"][m])
        self.margin_ = self._model(np.array(planes), rows, table.target.n_classes)
        self.n_updates_ = updates if is_new else self.n_updates_ + updates
        self.n_iter_ = 1 if is_new else self.n_iter_ + 1
        self.__dict__.pop("_bounds", None)
        self.novikoff_bound_ = np.full(n_machines, np.inf)
        self._set_table(table.schema, table.target, table.cost)
        remember_batch(self, state, len(rows.target))
        return self

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        rows = table.learn(table.weight)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)) if self.shuffle else 0
        planes, updates, epochs, ended = [], [], [], []
        for own, radius in self._machines_with_radius(rows, table):
            passed = self._pass(own, (radius or 1.0) if self.fit_intercept else 0.0, seed=seed)
            planes.append(passed.weights)
            updates.append(passed.n_updates)
            epochs.append(passed.n_epochs)
            ended.append(passed.is_clean or passed.is_settled)
        if not all(ended) and not self.averaged:
            first = "tol=1e-3" if self.tol is None else "a larger max_iter"
            warn(
                f"The perceptron still misclassified rows after max_iter={self.max_iter} epochs; the classes may not "
                f"be linearly separable. Use {first}, averaged=True, or LinearSVC.",
                ConvergenceWarning,
            )
        self.margin_ = self._model(np.array(planes), rows, table.target.n_classes)
        self.n_updates_, self.n_iter_ = np.array(updates), max(epochs)
        self.__dict__.pop("novikoff_bound_", None)
        self._bounds = partial(clone(self)._novikoff_bounds, planes, rows, table)

    def _machines_with_radius(
        self, rows: TermRows, table: MarginTable
    ) -> Iterator[tuple[MarginRows | TermRows, float]]:
        """Yield the rows of each machine, and the largest distance of a row from the origin."""
        for machine in self._machines(rows, table):
            own = machine.merged if self.shuffle else machine.used()
            yield own, float((own.terms**2).sum(axis=0).max(initial=0.0))

    def _novikoff_bounds(self, planes: list[Floats], rows: TermRows, table: MarginTable) -> Floats:
        """Return Novikoff's bound of each plane; with a penalty there is none."""
        if self.penalty is not None and self.alpha != 0.0:
            return np.full(len(planes), np.inf)
        machines = zip(planes, self._machines_with_radius(rows, table), strict=True)
        return np.array([_novikoff(plane, own, radius, self.fit_intercept) for plane, (own, radius) in machines])

    @cached_property
    def novikoff_bound_(self) -> Floats:
        """Novikoff's bound on the number of updates of each hyperplane, computed at the first access."""
        check_is_fitted(self)
        bounds = self.__dict__.get("_bounds")
        if bounds is None:  # another thread has computed them meanwhile
            return np.asarray(self.__dict__["novikoff_bound_"])
        found: Floats = bounds()
        self.__dict__["novikoff_bound_"] = found  # before the rows are released
        self.__dict__.pop("_bounds", None)
        return found

    def _to_header(self) -> dict[str, Any]:
        _ = self.novikoff_bound_  # computed, so that it is among the attributes that are saved
        return super()._to_header()

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if "_bounds" in state:
            state = {name: value for name, value in state.items() if name != "_bounds"}
            state["novikoff_bound_"] = self.novikoff_bound_
        return super()._pickled(state)


def _novikoff(plane: Floats, rows: MarginRows | TermRows, squared_radius: float, has_intercept: bool) -> float:
    """Return Novikoff's bound on the number of updates: 2 R²/M², or R²/M² without an intercept.

    M is the largest margin of any plane through the origin of the rows (x, R), or of the rows x without an intercept,
    which are those that the perceptron updates. Weights multiply the updates, so that the bound grows by the square of
    their largest ratio. It is infinite if no plane separates the rows.
    """
    radius = np.sqrt(squared_radius) or 1.0
    terms, found = rows.terms.T / radius, plane[:-1]
    if has_intercept:
        terms, found = np.column_stack([terms, np.ones(len(terms))]), np.append(found, plane[-1] / radius)
    signed = rows.target[:, np.newaxis] * terms
    margin = max(_relative_margin(found, signed), _relative_margin(_widest_plane(signed), signed))
    if not margin > 0:
        return np.inf
    weight_ratio = float(rows.weight.max() / rows.weight.min())
    return (2.0 if has_intercept else 1.0) / margin**2 * weight_ratio**2


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
