"""Hyperplanes: linear support vector machines for many rows, and the perceptron."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.types import TableLike
from spinney._estimator.estimator import About, counted
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import read_one_value
from spinney._model.saving.saved_attributes import SavedState, bounds, columns, number, numbers
from spinney._model.svm.model import FittedPlanes
from spinney._svm.linear_solve import Plane, PlaneProblem, Terms, fit_plane
from spinney._svm.margin_estimator import (
    BaseMargin,
    Chosen,
    Floats,
    MarginSearch,
    MarginTable,
    MarginTarget,
    TermRows,
    class_weights,
)
from spinney._svm.rows import MarginRows
from spinney._svm.search import Grid, is_searched, read_penalties

_LARGEST_C = 1e30


@dataclass(frozen=True)
class PlaneRows:
    """What one plane is fitted to: sides ±1 or values, and weights, of the rows of positive weight."""

    terms: Floats
    target: Floats
    weight: Floats

    def merged(self) -> PlaneRows:
        """Return the same with equal rows taken together."""
        rows = MarginRows.of(self.terms, self.target, self.weight)
        return PlaneRows(rows.terms, rows.target, rows.weight)

    def used(self) -> PlaneRows:
        """Return the rows of positive weight."""
        used = self.weight > 0
        if used.all():
            return self
        return PlaneRows(np.ascontiguousarray(self.terms[:, used]), self.target[used], self.weight[used])


@estimator
class BasePlanes(BaseMargin):
    """Learners whose model is a plane for each machine."""

    margin_: FittedPlanes = field(init=False)
    _noun: ClassVar[str] = "linear support vector machine"

    @abstractmethod
    def _machines(self, rows: PlaneRows, target: MarginTarget) -> list[PlaneRows]:
        """Return what each machine is fitted to."""

    @staticmethod
    def _rows(rows: TermRows) -> PlaneRows:
        return PlaneRows(rows.terms, rows.target, rows.weight).used()

    @staticmethod
    def _model(planes: Floats, rows: TermRows, target: MarginTarget) -> FittedPlanes:
        n_classes = target.n_classes
        return FittedPlanes(
            planes=np.ascontiguousarray(planes[:, :-1]),
            design=rows.design,
            strategy="ovr" if n_classes is not None and n_classes > 2 else "one",
            intercepts=np.ascontiguousarray(planes[:, -1]),
            n_classes=None if n_classes is None else [n_classes],
        )

    @property
    def coef_(self) -> Floats:
        """Weights of the terms, (n_machines, n_terms)."""
        check_is_fitted(self)
        return self.margin_.planes

    def _about(self) -> About:
        n_terms, n = len(self.terms_), self.margin_.n_machines
        sentence = f"{counted(n, 'plane', 'planes')} of {counted(n_terms, 'term', 'terms')}"
        size = {"planes": n, "terms": self.terms_}
        why = "the model is a plane, or several. Use its coef_ and intercept_ in Python."
        return About(self._noun, size, {self._noun: sentence}, sentence, why_no_trees=why)


@estimator
class BasePlanesOfClasses(ClassifierMixin, BasePlanes):
    """Planes that separate classes: one, or one for each class against all others."""

    class_weight: dict[Any, float] | str | None = parameter(dict, StrOptions({"balanced"}), None, default=None)
    cost_matrix: ArrayLike | None = parameter("array-like", dict, None, default=None)
    _is_class_target = True

    def _read_target(self, y: ArrayLike, n_rows: int) -> MarginTarget:
        return MarginTarget.of_classes(y, n_rows, "a margin", self.cost_matrix)

    def _machines(self, rows: PlaneRows, target: MarginTarget) -> list[PlaneRows]:
        assert target.classes is not None
        classes, codes, cost = target.classes, rows.target.astype(np.intp), target.cost
        weight = rows.weight * class_weights(self.class_weight, codes, rows.weight, classes)[codes]
        found = []
        for k in [1] if len(classes) == 2 else range(len(classes)):
            z = np.where(codes == k, 1.0, -1.0)
            price = np.ones(len(z)) if cost is None else np.where(z > 0, cost[k].sum(), cost[codes, k])
            found.append(PlaneRows(rows.terms, z, weight * price))
        return found

    def predict(self, X: TableLike) -> NDArray[Any]:
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
        return self._predicted_labels(X)

    def decision_function(self, X: TableLike) -> Floats:
        """Scores of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for the second. More: of each class against all others.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores


# ---- planes of least penalty and loss ----------------------------------------------------------------------------


class PenalisedPlanes:
    """The planes of a linear support vector machine, by a penalty that may be chosen on folds."""

    def __init__(self, owner: LinearSVC | LinearSVR, squared: bool, epsilon: float | None) -> None:
        self._owner, self._squared, self._epsilon = owner, squared, epsilon

    def fit(self, table: MarginTable, groups: ArrayLike | None) -> None:
        """Choose C, find the planes and set the fitted attributes of the estimator."""
        owner = self._owner
        grid = Grid(read_penalties(owner.C), np.ones(1))
        if grid.penalties.max() > _LARGEST_C:
            raise ValueError(
                f"C={grid.penalties.max():g} is more than numbers can be weighted by. Pass at most {_LARGEST_C:g}; a "
                "margin that no row crosses is found by SVC(kernel='linear', C=inf)."
            )
        chosen = Chosen(float(grid.penalties[0]), 1.0)
        if is_searched(owner.C):
            random = check_random_state(owner.random_state)
            search = MarginSearch(table, owner.cv, groups, random, owner._n_threads)
            chosen = search.choose(grid, lambda rows, _, Cs: self._path(table.target, rows, Cs))
            assert chosen.results is not None
            del chosen.results["gamma"]
        rows = table.learn(table.weight)
        planes = self._planes(table.target, rows, chosen.C, None)
        self._warn(planes, chosen.C)
        owner.margin_ = owner._model(np.array([plane.weights for plane in planes]), rows, table.target)
        owner.objective_ = np.array([plane.objective for plane in planes])
        owner.dual_gap_ = np.array([plane.gap for plane in planes])
        owner.n_iter_ = np.array([plane.n_iter for plane in planes])
        owner._keep_choice(chosen)

    def _path(self, target: MarginTarget, rows: TermRows, penalties: Floats) -> Iterator[FittedPlanes]:
        """Yield a model for each of ascending penalties, each starting from the one before."""
        planes: list[Plane] | None = None
        for C in penalties.tolist():
            planes = self._planes(target, rows, C, planes)
            yield self._owner._model(np.array([plane.weights for plane in planes]), rows, target)

    def _planes(self, target: MarginTarget, rows: TermRows, C: float, start: list[Plane] | None) -> list[Plane]:
        """Fit a plane for each machine; equal rows count as one where the method asks for it."""
        owner, planes = self._owner, []
        for m, machine in enumerate(owner._machines(owner._rows(rows), target)):
            own = (machine if self._squared else machine.merged()).used()
            first = start[m].weights if start is not None and self._squared else None
            table = Terms(own.terms, owner._n_threads)
            problem = PlaneProblem(table, own.target, C * own.weight, self._epsilon, float(owner.tol), owner.max_iter)
            planes.append(fit_plane(problem, self._squared, first))
        return planes

    def _warn(self, planes: list[Plane], C: float) -> None:
        owner, worst = self._owner, max(planes, key=lambda plane: plane.gap)
        if not worst.gap <= owner.tol:
            warn(
                f"The fit stopped after max_iter={owner.max_iter} rounds before tol={owner.tol:g} was reached: "
                f"{worst.gap:.3g} is left. Raise max_iter, or scale the columns (scale='standard')."
                if worst.n_iter >= owner.max_iter
                else f"The fit came as near as rounding allows before tol={owner.tol:g} was reached: {worst.gap:.3g} "
                f"is left. Raise tol, lower C={C:g}, or scale the columns (scale='standard').",
                ConvergenceWarning,
            )


_SAVED_PLANES = SavedState(
    "fitted",
    {
        "objective_": numbers(),
        "dual_gap_": numbers(),
        "n_iter_": numbers(np.int64),
        "C_": number(0.0),
        "cv_results_": columns(),
    },
)
_C = (Interval(Real, 0.0, None, closed="neither"), StrOptions({"cv"}), "array-like")
_TOL, _ROUNDS = Interval(Real, 0.0, None, closed="neither"), Interval(Integral, 1, None, closed="left")


@estimator
class LinearSVC(BasePlanesOfClasses):
    """Linear support vector classification of many rows.

    A plane between two classes, or one for each class against all others, of least ½|w|² plus ``C`` times what rows pay
    that lie within the margin or beyond it. Unlike in liblinear, the intercept is not penalised, so that neither the
    place of the columns' zeros nor a scaling of the intercept matters.

    Time grows in proportion to the rows and with the square of the terms. Squared hinges are minimised by Newton's
    method, which takes a few rounds; hinges by an interior point, to a duality gap of ``tol``.

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

    loss: str = parameter(StrOptions({"hinge", "squared_hinge"}), default="squared_hinge")
    C: float | str | ArrayLike = parameter(*_C, default=1.0)
    tol: float = parameter(_TOL, default=1e-4)
    max_iter: int = parameter(_ROUNDS, default=200)
    cv: Any = parameter("cv_object", "array-like", default=5)
    _saved = _SAVED_PLANES

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        PenalisedPlanes(self, self.loss == "squared_hinge", None).fit(table, groups)


@estimator
class LinearSVR(RegressorMixin, BasePlanes):
    """Linear support vector regression of many rows.

    The plane of least ½|w|² plus ``C`` times what rows pay that lie farther away than ``epsilon``. Unlike in liblinear,
    the intercept is not penalised. Squared errors are minimised by Newton's method, others by an interior point.

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
    loss: str = parameter(
        StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"}), default="epsilon_insensitive"
    )
    C: float | str | ArrayLike = parameter(*_C, default=1.0)
    tol: float = parameter(_TOL, default=1e-4)
    max_iter: int = parameter(_ROUNDS, default=200)
    cv: Any = parameter("cv_object", "array-like", default=5)
    _saved = _SAVED_PLANES

    def _read_target(self, y: ArrayLike, n_rows: int) -> MarginTarget:
        return MarginTarget(read_one_value(y, n_rows, "a support vector machine"))

    def _machines(self, rows: PlaneRows, target: MarginTarget) -> list[PlaneRows]:
        return [rows]

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        squared = self.loss == "squared_epsilon_insensitive"
        PenalisedPlanes(self, squared, float(self.epsilon)).fit(table, groups)

    def predict(self, X: TableLike) -> NDArray[Any]:
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


# ---- the perceptron ----------------------------------------------------------------------------------------------


@estimator
class Perceptron(BasePlanesOfClasses):
    """Rosenblatt's perceptron.

    Goes through the rows and learns from its mistakes alone: where a row x of side y = ±1 is not on its side, the
    weights become β + η y x and the intercept b + η y R², with R the length of the longest row. It ends when an epoch
    goes by without a mistake, which happens if a plane separates the classes: after at most 2 R²/M² updates (Novikoff),
    where M is the margin of that plane. Rows that are equal in all terms and in class count as one, in an order of
    their own, and a weight is a factor of η.

    See Also
    --------
    LinearSVC : The plane of the widest margin, with a price for rows beyond it.

    Examples
    --------
    >>> import spinney
    >>> X = [[0.0, 1.0], [1.0, 2.0], [3.0, 0.0], [4.0, 1.0]]
    >>> model = spinney.Perceptron(random_state=0).fit(X, ["left", "left", "right", "right"])
    >>> bool(model.n_updates_[0] <= model.novikoff_bound_[0])
    True
    """

    eta: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1.0)
    averaged: bool = parameter("boolean", default=False)
    max_iter: int = parameter(Interval(Integral, 1, 2**31 - 1, closed="both"), default=1000)
    shuffle: bool = parameter("boolean", default=True)

    _noun = "perceptron"
    _saved = SavedState(
        "fitted", {"n_updates_": numbers(np.int64), "n_iter_": numbers(np.int64), "novikoff_bound_": bounds()}
    )

    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        rows = table.learn(table.weight)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)) if self.shuffle else 0
        planes, updates, epochs, clean, novikoff = [], [], [], [], []
        for machine in self._machines(self._rows(rows), table.target):
            own = machine.merged()
            radius = float((own.terms**2).sum(axis=0).max(initial=0.0))
            plane, n_updates, n_epochs, is_clean = _engine.fit_perceptron(
                np.ascontiguousarray(own.terms.T),
                np.ascontiguousarray(own.target),
                own.weight,
                float(self.eta),
                radius or 1.0,
                int(self.max_iter),
                bool(self.averaged),
                bool(self.shuffle),
                seed,
            )
            planes.append(plane)
            updates.append(n_updates)
            epochs.append(n_epochs)
            clean.append(is_clean)
            novikoff.append(_novikoff(plane, own, radius))
        if not all(clean) and not self.averaged:
            warn(
                f"The perceptron still made mistakes after max_iter={self.max_iter} epochs: no plane may separate the "
                "classes. Use averaged=True, or LinearSVC.",
                ConvergenceWarning,
            )
        self.margin_ = self._model(np.array(planes), rows, table.target)
        self.n_updates_, self.n_iter_ = np.array(updates), np.array(epochs)
        self.novikoff_bound_ = np.array(novikoff)


def _novikoff(plane: Floats, rows: PlaneRows, squared_radius: float) -> float:
    """Return 2 R²/M² with M the least score of a row on its side, over the plane's length with the intercept over R.

    Where weights are factors of the steps, times the square of the largest over the smallest. Infinite if the plane
    leaves rows on the wrong side.
    """
    radius = np.sqrt(squared_radius) or 1.0
    length = np.sqrt((plane[:-1] ** 2).sum() + (plane[-1] / radius) ** 2)
    scores = _engine.weighted_terms(rows.terms, np.ascontiguousarray(plane), 1)
    margin = float((rows.target * scores).min()) / length if length > 0 else 0.0
    if not margin > 0:
        return np.inf
    uneven = float(rows.weight.max() / rows.weight.min())
    return 2.0 * (squared_radius or 1.0) / margin**2 * uneven**2
