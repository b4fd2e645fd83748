"""What support vector machines, linear ones and the perceptron share: tables in terms, folds that choose, classes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.design import Design
from spinney._data.feature import Unseen
from spinney._data.reproducible import sums_by_code
from spinney._data.types import TableLike
from spinney._estimator.costs import read_cost_matrix
from spinney._estimator.held_out import Fold
from spinney._estimator.parameters import N_JOBS, SCALE, UNSEEN, estimator, parameter, scale_word
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_one_class, read_weights
from spinney._model.file.container import refuse
from spinney._model.model import FittedModel
from spinney._model.svm.model import FittedMachines, FittedMargin
from spinney._svm.rows import MarginRows
from spinney._svm.search import Grid, folds_of

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
class MarginTarget:
    """What is predicted.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        Values, or class codes.
    classes : ndarray of shape (n_classes,) or None
        Labels.
    cost : ndarray of shape (n_classes, n_classes) or None
        Costs of mistakes, true class first.
    """

    values: Floats
    classes: NDArray[Any] | None = None
    cost: Floats | None = None

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None: values."""
        return None if self.classes is None else len(self.classes)

    @classmethod
    def of_classes(cls, y: ArrayLike, n_rows: int, method: str, cost_matrix: ArrayLike | None) -> MarginTarget:
        """Read classes."""
        codes, classes = read_one_class(y, n_rows, method)
        return cls(codes, classes, None if cost_matrix is None else read_cost_matrix(cost_matrix, classes))

    def errors(self, model: FittedMargin, scores: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return what the prediction of each of some rows costs: 1 for a wrong class, or the squared error."""
        if self.classes is None:
            return np.asarray((scores[:, 0] - self.values[rows]) ** 2)
        return np.asarray(model.score_codes(scores)[:, 0] != self.values[rows], dtype=np.float64)


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
    target : MarginTarget
        What is predicted.
    weight : ndarray of shape (n_rows,)
        Weights.
    scale : str or None
        How columns are brought to one scale.
    matrix : ndarray of shape (n_rows, n_rows) or None
        Kernel values of all pairs of rows, where these are given.
    """

    columns: _engine.Table
    schema: Schema
    target: MarginTarget
    weight: Floats
    scale: str | None
    matrix: Floats | None = None

    def learn(self, weight: Floats) -> TermRows:
        """Learn terms from the rows of positive weight; refuse classes that have none."""
        for k in range(self.target.n_classes or 0):
            if not (self.target.values[weight > 0] == k).any():
                raise ValueError(
                    f"The class with index {k} in classes_ has no row of positive weight to learn from. Drop its rows, "
                    "or give some of them a weight."
                )
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

    @abstractmethod
    def _read_target(self, y: ArrayLike, n_rows: int) -> MarginTarget:
        """Check y."""

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
        target = self._read_target(y, raw.n_rows)
        columns = schema.encode(raw, unseen=self.unseen, estimator=type(self).__name__)
        given = read_weights(sample_weight, raw.n_rows)
        weight = np.ones(raw.n_rows) if given is None else given
        matrix = self._read_matrix(columns)
        self._fit_table(MarginTable(columns, schema, target, weight, scale_word(self.scale), matrix), groups)
        self._keep_schema(schema)
        if target.classes is not None:
            self.classes_, self.n_classes_ = target.classes, len(target.classes)
            self.cost_matrix_ = target.cost
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

    def _predicted_labels(self, X: TableLike) -> NDArray[Any]:
        scores = self._scores(X)
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
        self._table, self._n_jobs = table, n_jobs
        has_classes = table.target.classes is not None
        self.folds = folds_of(cv, table.target.values, has_classes, table.weight, groups, random)

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
                    cost = table.target.errors(model, scores, fold.held_out)
                    errors[g, p, f] = (cost * judged).sum() / judged.sum()
        g, p, means = grid.chosen(errors, total)
        return Chosen(float(grid.penalties[p]), float(grid.gammas[g]), grid.table(errors, means))
