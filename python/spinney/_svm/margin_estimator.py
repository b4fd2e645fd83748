"""What support vector machines, linear ones and the perceptron share: tables in terms, folds that choose, classes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.arguments import given_numbers
from spinney._data.design import Design
from spinney._data.feature import Unseen
from spinney._data.reproducible import sums_by_code
from spinney._data.types import TableLike
from spinney._estimator.costs import read_cost_matrix
from spinney._estimator.held_out import Fold, read_folds
from spinney._estimator.parameters import N_JOBS, SCALE, UNSEEN, estimator, parameter, scale_word
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import SingleTarget, read_weights
from spinney._model.file.container import refuse
from spinney._model.model import FittedModel
from spinney._model.svm.model import FittedMachines, FittedMargin

Floats = NDArray[np.float64]


def class_weights(
    given: dict[Any, float] | str | None, codes: NDArray[np.intp], weight: Floats, classes: NDArray[Any]
) -> Floats:
    """Return the weight of each class; "balanced" uses the weights that their rows have."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, dict):
        unknown = [label for label in given if label not in set(classes.tolist())]
        if unknown:
            raise ValueError(f"class_weight has a class that y does not have: {unknown[0]!r}.")
        by_class = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    else:
        total = sums_by_code(codes, weight, len(classes))
        by_class = weight.sum() / (len(classes) * np.where(total > 0, total, 1.0))
    if not (np.isfinite(by_class) & (by_class >= 0)).all():
        raise ValueError("class_weight must give finite weights of at least 0.")
    return np.asarray(by_class)


@dataclass(frozen=True)
class TermRows:
    """All rows in terms that were learned from those of positive weight.

    Attributes
    ----------
    design : Design or None
        How columns become terms; None: rows are a kernel matrix.
    terms : ndarray of shape (n_terms, n_rows)
        The rows, or the kernel matrix.
    target : ndarray of shape (n_rows,)
        Values, or class codes.
    weight : ndarray of shape (n_rows,)
        Weights.
    """

    design: Design | None
    terms: Floats
    target: Floats
    weight: Floats

    def used(self) -> TermRows:
        """Return the rows of positive weight."""
        used = self.weight > 0
        if used.all():
            return self
        terms = np.ascontiguousarray(self.terms[:, used])
        return replace(self, terms=terms, target=self.target[used], weight=self.weight[used])

    @cached_property
    def merged(self) -> MarginRows:
        """Rows of positive weight, equal ones taken together."""
        of = MarginRows.of_matrix if self.design is None else MarginRows.of
        return of(self.terms, self.target, self.weight)

    def held_out(self, model: FittedMargin, rows: NDArray[np.intp]) -> Floats:
        """Return some rows as a model of a fold reads them."""
        if self.design is None:
            assert isinstance(model, FittedMachines)
            return np.ascontiguousarray(self.terms[np.ix_(rows, model.support)])
        return np.ascontiguousarray(self.terms[:, rows].T)


@dataclass(frozen=True)
class MarginTable:
    """A table and its target on their way to a margin.

    Attributes
    ----------
    columns : Table
        The table as the engine reads it.
    schema : Schema
        Its columns.
    target : SingleTarget
        What is predicted.
    weight : ndarray of shape (n_rows,)
        Weights.
    scale : str or None
        How columns are brought to one scale.
    matrix : ndarray of shape (n_rows, n_rows) or None
        Kernel values of all pairs of rows, where these are given.
    cost : ndarray of shape (n_classes, n_classes) or None
        Costs of mistakes, true class first.
    """

    columns: _engine.Table
    schema: Schema
    target: SingleTarget
    weight: Floats
    scale: str | None
    matrix: Floats | None
    cost: Floats | None

    def learn(self, weight: Floats) -> TermRows:
        """Learn terms from the rows of positive weight; refuse classes that have none."""
        self.target.require_rows(weight)
        if self.matrix is not None:
            return TermRows(None, self.matrix, self.target.values, weight)
        design = Design.learn(self.columns, self.schema, weight, self.scale)
        return TermRows(design, design.matrix(self.columns), self.target.values, weight)

    def learn_without(self, fold: Fold) -> TermRows:
        """Learn terms from the rows that a fold does not hold out."""
        weight = np.zeros_like(self.weight)
        weight[fold.grown_on] = self.weight[fold.grown_on]
        return self.learn(weight)


@dataclass(frozen=True)
class Chosen:
    """What cross-validation has chosen, and the table of all that was tried, if there was a choice."""

    C: float
    gamma: float
    results: dict[str, Floats] | None = None


@estimator
class BaseMargin(TableEstimator):
    """Learners whose model is a score for each machine: the side of a margin that a row lies on."""

    scale: str | bool | None = parameter(*SCALE, default="standard")
    categorical_features: ArrayLike | None = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")
    random_state: int | RandomState | None = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)

    margin_: FittedMargin = field(init=False)
    _model_attribute = "margin_"
    _noun: ClassVar[str] = "support vector machine"

    @abstractmethod
    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        """Find the margin, and set the fitted attributes that follow from it."""

    def _read_matrix(self, columns: _engine.Table) -> Floats | None:
        """Return the table as kernel values, if it holds these."""
        return None

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
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
        schema = self._learn_schema(raw)
        target = SingleTarget.read(y, raw.n_rows, f"a {self._noun}", self._is_class_target)
        costs: ArrayLike | None = getattr(self, "cost_matrix", None)
        cost = None if costs is None else read_cost_matrix(costs, target.labels)
        columns = schema.encode(raw, unseen=self.unseen, estimator=type(self).__name__)
        given = read_weights(sample_weight, raw.n_rows)
        weight = np.ones(raw.n_rows) if given is None else given
        matrix = self._read_matrix(columns)
        self._fit_table(MarginTable(columns, schema, target, weight, scale_word(self.scale), matrix, cost), groups)
        self._keep_schema(schema)
        if target.classes is not None:
            self.classes_, self.n_classes_ = target.classes, len(target.classes)
            self.cost_matrix_ = cost
        return self

    def _keep_choice(self, chosen: Chosen) -> None:
        """Set what cross-validation has chosen."""
        self.C_: Any = chosen.C
        self.__dict__.pop("cv_results_", None)
        if chosen.results is not None:
            self.cv_results_ = chosen.results

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedMargin)
        for values in found.values():
            if isinstance(values, np.ndarray) and len(values) != model.n_machines:
                refuse("is damaged: what is known of its machines does not fit them")

    def _scores(self, X: TableLike) -> Floats:
        """Scores of each row by machine."""
        return self._by_blocks(X, lambda columns: self.margin_.scores(columns, self._n_threads))

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, or values.
        """
        scores = self._scores(X)
        if not self._is_class_target:
            return scores[:, 0]
        return self.margin_.labels(self.margin_.score_codes(scores), [self.classes_])

    @property
    def intercept_(self) -> Floats:
        """What each machine adds to its sums."""
        check_is_fitted(self)
        return self.margin_.intercepts

    @property
    def terms_(self) -> list[str]:
        """Names of the terms."""
        check_is_fitted(self)
        return [] if self.margin_.design is None else self.margin_.design.names(self.schema_)


# from rows, gamma and ascending penalties to a model for each of these
Path = Callable[[TermRows, float, Floats], Iterator[FittedMargin]]


class MarginSearch:
    """The choice of C and gamma on folds, along a path of penalties; each fold has terms of its own."""

    def __init__(self, table: MarginTable, cv: Any, groups: ArrayLike | None, random: RandomState, n_jobs: int) -> None:
        self._table, self._n_jobs, target = table, n_jobs, table.target
        strata = None if target.classes is None else target.codes[:, np.newaxis]
        self.folds = read_folds(5 if cv is None else cv, strata, target.values, table.weight, groups, random)

    def choose(self, grid: Grid, path: Path) -> Chosen:
        """Try all pairs of C and gamma."""
        table, shape = self._table, (len(grid.gammas), len(grid.penalties), len(self.folds))
        errors, total = np.empty(shape), np.empty(len(self.folds))
        for f, fold in enumerate(self.folds):
            rows, judged = table.learn_without(fold), table.weight[fold.held_out]
            total[f] = judged.sum()
            for g, gamma in enumerate(grid.gammas.tolist()):
                for p, model in enumerate(path(rows, gamma, grid.penalties)):
                    scores = model.scores_of(rows.held_out(model, fold.held_out), self._n_jobs)
                    actual = table.target.values[fold.held_out]
                    if table.target.classes is None:
                        cost = (scores[:, 0] - actual) ** 2
                    else:
                        cost = np.asarray(model.score_codes(scores)[:, 0] != actual, dtype=np.float64)
                    errors[g, p, f] = (cost * judged).sum() / judged.sum()
        means = (errors * total).sum(axis=2) / total.sum()
        best_p, best_g = np.unravel_index(int(means.T.argmin()), means.T.shape)  # of equals the smallest C
        return Chosen(float(grid.penalties[best_p]), float(grid.gammas[best_g]), grid.table(errors, means))


Places = NDArray[np.intp]


@dataclass(frozen=True)
class MarginRows:
    """Rows of positive weight, equal ones taken together, sorted: neither their order nor how often each occurs shows.

    Attributes
    ----------
    terms : ndarray of shape (n_terms, n)
        Terms of the rows; or the kernel matrix, (n, n).
    target : ndarray of shape (n,)
        Class codes, or values.
    weight : ndarray of shape (n,)
        Sums of the weights of equal rows.
    first : ndarray of shape (n,)
        The first row of the table that each stands for.
    place : ndarray of shape (n_rows,)
        Where each row of the table is; -1 if its weight is 0.
    """

    terms: Floats
    target: Floats
    weight: Floats
    first: Places
    place: Places

    def __len__(self) -> int:
        return len(self.target)

    @classmethod
    def of(cls, terms: Floats, target: Floats, weight: Floats) -> MarginRows:
        """Sort rows of terms, by target first, and take equal ones together."""
        used = np.flatnonzero(weight > 0)
        order, is_new = _sorted([target[used], *(term[used] for term in terms)])
        group = np.cumsum(is_new) - 1
        total = np.bincount(group, weight[used][order]).astype(np.float64)
        rows = used[order]
        first = np.full(len(total), len(weight))
        np.minimum.at(first, group, rows)
        place = np.full(len(weight), -1)
        place[rows] = group
        return cls(np.ascontiguousarray(terms[:, first]), target[first], total, first, place)

    @classmethod
    def of_matrix(cls, matrix: Floats, target: Floats, weight: Floats) -> MarginRows:
        """Sort the rows of a kernel matrix by target, which is all that is known of them."""
        used = np.flatnonzero(weight > 0)
        rows = used[np.argsort(target[used], kind="stable")]
        place = np.full(len(weight), -1)
        place[rows] = np.arange(len(rows))
        return cls(np.ascontiguousarray(matrix[np.ix_(rows, rows)]), target[rows], weight[rows], rows, place)


def _sorted(keys: list[Floats]) -> tuple[Places, NDArray[np.bool_]]:
    """Order by the first key, then the second and so on; and where in it a row differs from the one before.

    Each further key only sorts what those before it leave equal.
    """
    order = np.argsort(keys[0], kind="stable")
    is_new = _differs(keys[0][order])
    for key in keys[1:]:
        alone = is_new & np.append(is_new[1:], True)
        equal = np.flatnonzero(~alone)
        if not len(equal):
            break
        group = np.cumsum(is_new[equal])
        order[equal] = order[equal][np.lexsort((key[order[equal]], group))]
        is_new[equal] |= _differs(key[order[equal]])
    return order, is_new


def _differs(values: Floats) -> NDArray[np.bool_]:
    """Whether each value differs from the one before; the first does."""
    found = np.ones(len(values), dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found


PENALTY: list[Any] = [Interval(Real, 0.0, np.inf, closed="right"), StrOptions({"cv"}), "array-like"]  # what C may be
C_GRID = tuple(10.0 ** (k / 2) for k in range(-4, 7))
GAMMA_STEPS = tuple(4.0**k for k in range(-2, 3))


@dataclass(frozen=True)
class Grid:
    """Penalties and widths of kernels to try.

    Attributes
    ----------
    penalties, gammas : ndarray
        Ascending, each value once.
    """

    penalties: Floats
    gammas: Floats

    @property
    def is_one(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.penalties) == 1 and len(self.gammas) == 1

    def table(self, errors: Floats, means: Floats) -> dict[str, Floats]:
        """Return the results as columns: one line for each pair tried."""
        g, p = np.indices(means.shape)
        spread = errors.std(axis=2, ddof=1) if errors.shape[2] > 1 else np.zeros_like(means)
        columns = {
            "C": self.penalties[p.ravel()],
            "gamma": self.gammas[g.ravel()],
            "error": means.ravel(),
            "sd": spread.ravel(),
        }
        folds = {f"fold_{k}": errors[:, :, k].ravel() for k in range(errors.shape[2])}
        return columns | folds


def is_searched(value: Any) -> bool:
    """Whether a parameter asks for a search: the word "cv", or several values."""
    return (isinstance(value, str) and value == "cv") or (not isinstance(value, str) and np.ndim(value) > 0)


def read_values(value: Any, name: str) -> Floats:
    """Check values to try."""
    numbers = np.asarray(given_numbers(value, name), dtype=np.float64).ravel()
    if not len(numbers) or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(f"{name} must hold positive, finite numbers to try. Got {value!r}.")
    return np.unique(numbers)


def read_penalties(C: Any) -> Floats:
    """Values of C to try: one, unless a search is asked for."""
    if isinstance(C, str):
        return np.array(C_GRID)
    return read_values(C, "C") if is_searched(C) else np.array([float(C)])
