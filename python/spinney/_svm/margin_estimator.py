"""Base of kernel machines, linear machines and the perceptron: rows as terms, and the cross-validated choice of C."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.arguments import argument_numbers
from spinney._data.design import Design
from spinney._data.feature import Unseen
from spinney._data.reproducible import sample_deviation, sums_by_code
from spinney._data.types import Floats, TableLike
from spinney._estimator.costs import read_cost_matrix, weights_of_classes
from spinney._estimator.estimator import only_if
from spinney._estimator.held_out import Fold, read_folds
from spinney._estimator.many_classes import warn_of_passes
from spinney._estimator.online import forget_batches
from spinney._estimator.parameters import N_JOBS, SCALE, UNSEEN, estimator, parameter, scale_name
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import SingleTarget, read_weights
from spinney._model.file.container import refuse
from spinney._model.model import FittedModel
from spinney._model.svm.model import FittedMachines, FittedMargin


def class_weights(
    given: dict[Any, float] | str | None, codes: NDArray[np.intp], weight: Floats, classes: NDArray[Any]
) -> Floats:
    """Return the weight of each class; "balanced" makes the weighted rows of all classes count the same."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, dict):
        by_class = weights_of_classes(given, classes)
    else:
        total = sums_by_code(codes, weight, len(classes))
        by_class = weight.sum() / (len(classes) * np.where(total > 0, total, 1.0))
    if not (np.isfinite(by_class) & (by_class >= 0)).all():
        raise ValueError("class_weight must give finite weights of at least 0.")
    return np.asarray(by_class)


_LARGEST_WEIGHT = 1e100


@dataclass(frozen=True)
class TermRows:
    """All rows as terms; scales and categories are learned from the rows of positive weight.

    Attributes
    ----------
    design : Design or None
        Encoding of the columns; None if the rows are a kernel matrix.
    terms : ndarray of shape (n_terms, n_rows)
        Terms of the rows, or the kernel matrix.
    target : ndarray of shape (n_rows,)
        Numeric target, or class codes.
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
        """Rows of positive weight; equal rows are merged."""
        of = MarginRows.of_matrix if self.design is None else MarginRows.of
        return of(self.terms, self.target, self.weight)

    def held_out(self, model: FittedMargin, rows: NDArray[np.intp]) -> Floats:
        """Return held-out rows in the form that the model of a fold reads."""
        if self.design is None:
            assert isinstance(model, FittedMachines)
            return np.ascontiguousarray(self.terms[np.ix_(rows, model.vector_rows)])
        return np.ascontiguousarray(self.terms[:, rows].T)


@dataclass(frozen=True)
class MarginTable:
    """The training table, its target and how it is scaled.

    Attributes
    ----------
    columns : Table
        Encoded columns.
    schema : Schema
        Names and types of the columns.
    target : SingleTarget
        Target.
    weight : ndarray of shape (n_rows,)
        Weights.
    scale : str or None
        How columns are scaled.
    matrix : ndarray of shape (n_rows, n_rows) or None
        Precomputed kernel matrix.
    cost : ndarray of shape (n_classes, n_classes) or None
        Misclassification costs; the true class is the row.
    """

    columns: _engine.Table
    schema: Schema
    target: SingleTarget
    weight: Floats
    scale: str | None
    matrix: Floats | None
    cost: Floats | None

    def learn(self, weight: Floats) -> TermRows:
        """Fit the encoding to the rows of positive weight; refuse classes without such rows."""
        self.target.require_rows(weight)
        if self.matrix is not None:
            return TermRows(None, self.matrix, self.target.values, weight)
        design, terms = Design.learn_terms(self.columns, self.schema, weight, self.scale)
        return TermRows(design, terms, self.target.values, weight)

    def learn_without(self, fold: Fold) -> TermRows:
        """Fit the encoding to the training rows of a fold."""
        weight = np.zeros_like(self.weight)
        weight[fold.train] = self.weight[fold.train]
        return self.learn(weight)


@dataclass(frozen=True)
class Chosen:
    """The chosen C and gamma, and the cross-validation results if there was a search."""

    C: float
    gamma: float
    results: dict[str, Floats] | None = None


def _why_no_distance(model: BaseMargin) -> str | None:
    if not model._is_class_target:
        return "needs classes, which a hyperplane separates. Use predict."
    if getattr(model, "kernel", "linear") != "linear":
        return "needs kernel='linear', whose boundary is a hyperplane. Use decision_function."
    return None


@estimator
class BaseMargin(TableEstimator):
    """Estimators whose model is one or several machines, each of which gives a row a score."""

    scale: Literal["standard", "range"] | bool | None = parameter(*SCALE, default=None)
    categorical_features: ArrayLike | None = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    verbose: int | bool | None = parameter("verbose", None, default=None)

    margin_: FittedMargin = field(init=False)
    _model_attribute = "margin_"
    _noun: ClassVar[str] = "support vector machine"

    @property
    def _is_linear(self) -> bool:
        """Whether each machine is a hyperplane in the space of the columns."""
        return True

    def _read_target(self, y: ArrayLike | None, n_rows: int) -> SingleTarget:
        return SingleTarget.read(y, n_rows, f"a {self._noun}", self._is_class_target)

    @abstractmethod
    def _fit_table(self, table: MarginTable, groups: ArrayLike | None) -> None:
        """Fit the machines and set their fitted attributes."""

    def _read_matrix(self, columns: _engine.Table) -> Floats | None:
        """Return the table as a kernel matrix, if the kernel is precomputed."""
        return None

    def fit(
        self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values need no encoding. For models with a kernel
            and ``kernel="precomputed"``: the kernel matrix of the rows.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are in the same fold. Without cross-validation, groups have no effect.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        raw = read_table(X)
        schema = self._learn_schema(raw)
        target = self._read_target(y, raw.n_rows)
        costs: ArrayLike | None = getattr(self, "cost_matrix", None)
        cost = None if costs is None else read_cost_matrix(costs, target.labels)
        columns = schema.encode(raw, unseen=self.unseen, estimator=type(self).__name__)
        weight = read_weights(sample_weight, raw.n_rows)
        weight = np.ones(raw.n_rows) if weight is None else weight
        self._refuse_large(weight)
        self._check_classes(target, raw.n_rows)
        matrix = self._read_matrix(columns)
        self._fit_table(MarginTable(columns, schema, target, weight, scale_name(self.scale), matrix, cost), groups)
        self._set_table(schema, target, cost)
        forget_batches(self)
        return self

    def _check_classes(self, target: SingleTarget, n_rows: int) -> None:
        """Warn of, or refuse, a fit of very many classes."""
        warn_of_passes(target.n_classes or 0, n_rows, type(self).__name__)

    def _refuse_large(self, weight: Floats) -> None:
        if weight.max() > _LARGEST_WEIGHT:
            raise ValueError(
                f"sample_weight reaches {weight.max():g}: a {self._noun} cannot compute with numbers of this size. "
                "Rescale the weights, and choose C for them."
            )

    def _set_table(self, schema: Schema, target: SingleTarget, cost: Floats | None) -> None:
        """Set the fitted attributes that come from the table and its target."""
        self._set_schema(schema)
        if target.classes is not None:
            self.classes_, self.n_classes_ = target.classes, len(target.classes)
            self.cost_matrix_ = cost

    def _set_chosen(self, chosen: Chosen) -> None:
        """Set the fitted attributes of the cross-validation."""
        self.C_: Any = chosen.C
        self.__dict__.pop("cv_results_", None)
        if chosen.results is not None:
            self.cv_results_ = chosen.results

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedMargin)
        for name, values in found.items():
            n_wanted = model.class_columns[0].stop if name == "class_weight_" else model.n_machines
            if isinstance(values, np.ndarray) and len(values) != n_wanted:
                refuse("is damaged: its attributes do not have one entry per machine")

    def _scores(self, X: TableLike) -> Floats:
        """Return the score that each machine gives each row, (n_rows, n_machines)."""
        return self._by_blocks(X, lambda columns: self.margin_.scores(columns, self._n_threads))

    @only_if(_why_no_distance)
    def signed_distances(self, X: TableLike) -> Floats:
        """Signed distance of each row from the separating hyperplane, in the units of the columns.

        The distance is the score of the hyperplane divided by the norm of its coefficients, `coef_`. The method is
        available for classifiers that are linear or have ``kernel="linear"``, but not for regressors.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_hyperplanes)
            With two classes: positive on the side of the second class. With more: one column for each row of `coef_`.
        """
        scores = self._scores(X)
        norms = np.sqrt((self.margin_.raw_planes[0] ** 2).sum(axis=1))
        if not norms.all():
            raise ValueError("All coefficients of a hyperplane are 0: nothing has a distance from it.")
        distances: Floats = scores / norms
        return distances[:, 0] if distances.shape[1] == 1 else distances

    @property
    def intercept_(self) -> Floats:
        """Intercept of each binary classifier; if the model is linear, in the units of the columns."""
        check_is_fitted(self)
        return self.margin_.raw_planes[1] if self._is_linear else self.margin_.intercepts

    @property
    def terms_(self) -> list[str]:
        """Names of the terms."""
        check_is_fitted(self)
        return [] if self.margin_.design is None else self.margin_.design.names(self.schema_)


# fits a model for each of ascending penalties, given the rows and gamma
FitPath = Callable[[TermRows, float, Floats], Iterator[FittedMargin]]


class MarginSearch:
    """Cross-validated choice of C and gamma; columns are encoded and scaled within each fold."""

    def __init__(self, table: MarginTable, cv: Any, groups: ArrayLike | None, random: RandomState, n_jobs: int) -> None:
        self._table, self._n_jobs, target = table, n_jobs, table.target
        strata = None if target.classes is None else target.codes[:, np.newaxis]
        self.folds = read_folds(5 if cv is None else cv, strata, target.values, table.weight, groups, random)

    def choose(self, grid: Grid, fit_path: FitPath) -> Chosen:
        """Return the pair of C and gamma with the smallest mean error; of equal errors, the smallest C."""
        table, shape = self._table, (len(grid.gammas), len(grid.penalties), len(self.folds))
        errors, total = np.empty(shape), np.empty(len(self.folds))
        for f, fold in enumerate(self.folds):
            rows, weight = table.learn_without(fold), table.weight[fold.held_out]
            total[f] = weight.sum()
            for g, gamma in enumerate(grid.gammas.tolist()):
                for p, model in enumerate(fit_path(rows, gamma, grid.penalties)):
                    scores = model.scores_of(rows.held_out(model, fold.held_out), self._n_jobs)
                    actual = table.target.values[fold.held_out]
                    with np.errstate(over="ignore", invalid="ignore"):
                        if table.target.classes is None:
                            loss = (scores[:, 0] - actual) ** 2
                        else:
                            loss = np.asarray(model.score_codes(scores)[:, 0] != actual, dtype=np.float64)
                        errors[g, p, f] = (loss * weight).sum() / weight.sum()
                    if not (np.isfinite(scores).all() and np.isfinite(errors[g, p, f])):
                        raise ValueError(
                            "The errors of the cross-validation overflow. Scale the columns (scale='standard') and the "
                            "target, or choose smaller values of gamma."
                        )
        means = (errors * total).sum(axis=2) / total.sum()
        best_p, best_g = np.unravel_index(int(means.T.argmin()), means.T.shape)
        return Chosen(float(grid.penalties[best_p]), float(grid.gammas[best_g]), grid.table(errors, means))


Places = NDArray[np.intp]


@dataclass(frozen=True)
class MarginRows:
    """Distinct rows of positive weight, sorted: the order of the table and repeated rows have no effect on a fit.

    Attributes
    ----------
    terms : ndarray of shape (n_terms, n)
        Terms of the rows; or the kernel matrix, (n, n).
    target : ndarray of shape (n,)
        Class codes, or numeric target.
    weight : ndarray of shape (n,)
        Sums of the weights of equal rows.
    first : ndarray of shape (n,)
        Number of the first of these rows in the table.
    place : ndarray of shape (n_rows,)
        Index of each row of the table among the distinct rows; -1 if its weight is 0.
    fraction : ndarray of shape (n_rows,)
        Weight of each row of the table as a fraction of the weight of all rows equal to it.
    """

    terms: Floats
    target: Floats
    weight: Floats
    first: Places
    place: Places
    fraction: Floats

    def __len__(self) -> int:
        return len(self.target)

    @classmethod
    def of(cls, terms: Floats, target: Floats, weight: Floats) -> MarginRows:
        """Sort rows by target and terms, and merge equal rows."""
        used = np.flatnonzero(weight > 0)
        order, is_new = _sorted(target[used], (term[used] for term in terms))
        group = np.cumsum(is_new) - 1
        total = np.bincount(group, weight[used][order]).astype(np.float64)
        rows = used[order]
        first = np.full(len(total), len(weight))
        np.minimum.at(first, group, rows)
        place = np.full(len(weight), -1)
        place[rows] = group
        return cls(np.take(terms, first, axis=1), target[first], total, first, place, weight / total[place])

    @classmethod
    def of_matrix(cls, matrix: Floats, target: Floats, weight: Floats) -> MarginRows:
        """Sort the rows of a kernel matrix by target; rows are not compared."""
        used = np.flatnonzero(weight > 0)
        rows = used[np.argsort(target[used], kind="stable")]
        place = np.full(len(weight), -1)
        place[rows] = np.arange(len(rows))
        own = np.ascontiguousarray(matrix[np.ix_(rows, rows)])
        return cls(own, target[rows], weight[rows], rows, place, np.ones(len(weight)))


def _sorted(first: Floats, others: Iterator[Floats]) -> tuple[Places, NDArray[np.bool_]]:
    """Return the order of rows by several keys, and a mask of rows that differ from the row before.

    Each further key is read while rows are equal in all keys before it, and sorts only these.
    """
    order = np.argsort(first, kind="stable")
    is_new = _differs(first[order])
    while len(equal := np.flatnonzero(~(is_new & np.append(is_new[1:], True)))):
        key = next(others, None)
        if key is None:
            break
        group = np.cumsum(is_new[equal])
        order[equal] = order[equal][np.lexsort((key[order[equal]], group))]
        is_new[equal] |= _differs(key[order[equal]])
    return order, is_new


def _differs(values: Floats) -> NDArray[np.bool_]:
    """Return whether each value differs from the one before; True for the first."""
    found = np.ones(len(values), dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found


NumberOrSearch: TypeAlias = float | Literal["cv"] | Sequence[float] | Floats  # C and gamma
PENALTY: list[Any] = [Interval(Real, 0.0, np.inf, closed="right"), StrOptions({"cv"}), "array-like"]  # what C may be
C_GRID = tuple(10.0 ** (k / 2) for k in range(-4, 7))
GAMMA_STEPS = tuple(4.0**k for k in range(-2, 3))


@dataclass(frozen=True)
class Grid:
    """Values of C and gamma to try.

    Attributes
    ----------
    penalties, gammas : ndarray
        Ascending, each value once.
    """

    penalties: Floats
    gammas: Floats

    @property
    def is_single(self) -> bool:
        """Whether there is only one candidate."""
        return len(self.penalties) == 1 and len(self.gammas) == 1

    def table(self, errors: Floats, means: Floats) -> dict[str, Floats]:
        """Return the cross-validation results as columns, one row per candidate."""
        g, p = np.indices(means.shape)
        columns = {
            "C": self.penalties[p.ravel()],
            "gamma": self.gammas[g.ravel()],
            "error": means.ravel(),
            "sd": sample_deviation(errors).ravel(),
        }
        folds = {f"fold_{k}": errors[:, :, k].ravel() for k in range(errors.shape[2])}
        return columns | folds


def is_searched(value: Any) -> bool:
    """Return whether a parameter is to be chosen by cross-validation: "cv", or several values."""
    return (isinstance(value, str) and value == "cv") or (not isinstance(value, str) and np.ndim(value) > 0)


def read_values(value: Any, name: str) -> Floats:
    """Check and sort the candidate values of a parameter."""
    numbers = np.asarray(argument_numbers(value, name), dtype=np.float64).ravel()
    if not len(numbers) or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(f"{name} must be positive, finite numbers. Got {value!r}.")
    return np.unique(numbers)


def read_penalties(C: Any) -> Floats:
    """Return the values of C to try: one, unless C is to be searched."""
    if isinstance(C, str):
        return np.array(C_GRID)
    return read_values(C, "C") if is_searched(C) else np.array([float(C)])
