"""Permutation importance: what a model's score falls by when the values of a column change places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from spinney._data import Schema, read_table
from spinney._data.select import PickTable, pick_table, with_columns
from spinney._data.types import ColumnLike, TableLike
from spinney._estimator.held_out import KnownScores, KnownShares, KnownValues
from spinney._estimator.parallel import count_threads, in_order
from spinney._estimator.parameters import read_column_groups
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.forest import FittedForest
from spinney._model.model import ModelOfTrees
from spinney._model.tree import FittedTree
from spinney.inspect.explain.importances import Importances
from spinney.inspect.explain.target_model import check_fitted

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Score = Callable[..., float]  # of a table, for some of its rows (None: all), perhaps by another model

ROWS = ("given", "out_of_bag")


def permutation_importance(
    model: object,
    X: TableLike,
    y: ColumnLike,
    *,
    rows: str = "given",
    cv: object = None,
    scoring: object = None,
    groups: ColumnLike = None,
    n_repeats: int = 5,
    sample_weight: ColumnLike = None,
    random_state: object = 0,
    n_jobs: int | None = None,
) -> Importances:
    """Find what a score falls by when the values of a column, or of several together, change places among the rows.

    Parameters
    ----------
    model : estimator
        Of spinney, scikit-learn, LightGBM or any library. Fitted, unless there is `cv`.
    X : table of shape (n_samples, n_features)
        Rows that the model has not seen; or those that it was fitted on, with `cv` or out of bag.
    y : array-like of shape (n_samples,)
        Their target.
    rows : {"given", "out_of_bag"}, default="given"
        "given": the rows as they are. "out_of_bag": `X` and `y` are what a forest of spinney was fitted on, and each
        row is judged by the trees that have not seen it.
    cv : int, splitter or list of (train, test) positions, optional
        Fit copies of the model to parts of the rows, and permute the rest of each. The standard error is over the
        folds.
    scoring : str, callable or None, default=None
        A scorer as scikit-learn's; None: the model's own score.
    groups : list of lists of columns, or dict of these, optional
        Columns that are permuted together, by name or position. Other columns stand alone.
    n_repeats : int, default=5
        Permutations of each column; the standard error is over these.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the score (with `cv` also in the fits).
    random_state : int, RandomState or None, default=0
        Seed of the permutations. With the same seed the numbers are those of scikit-learn.
    n_jobs : int, optional
        Threads over the columns; None: one, which leaves threads to the model. The numbers are the same for any.

    Returns
    -------
    Importances
        The numbers, with `to_frame` and `plot`; `by_tree` has a row for each permutation, or fold.

    See Also
    --------
    sklearn.inspection.permutation_importance : The same numbers for given rows.
    RandomForestClassifier.importances : Out of bag for each tree, with other losses.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.RandomForestClassifier(random_state=0).fit(X, y)
    >>> found = spinney.permutation_importance(model, X, y, rows="out_of_bag")
    >>> found.names[found.order[0]]
    'bill_length_mm'
    """
    if rows not in ROWS:
        raise ValueError(f"rows must be 'given' or 'out_of_bag', not {rows!r}.")
    if cv is not None and rows == "out_of_bag":
        raise ValueError("cv fits models of its own, which judge rows held out. Leave one of cv and rows out.")
    if isinstance(n_repeats, bool) or not isinstance(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"n_repeats must be a whole number from 1 up, not {n_repeats!r}.")
    table = pick_table(X)
    schema = model.schema_ if hasattr(model, "schema_") else Schema.learn(read_table(table.native))
    names, columns = read_column_groups(groups, schema)
    places = _Places.of(schema, table)
    weight = read_weights(sample_weight, table.n_rows)
    target = np.asarray(y)
    if len(target) != table.n_rows:
        raise ValueError(f"y has {len(target)} values, but X has {table.n_rows} rows.")
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max + 1)
    plan = _Plan(table, columns, [[places(j) for j in group] for group in columns], int(n_repeats), int(seed), n_jobs)
    if cv is None:
        check_fitted(model)
        score = _out_of_bag(model, table, target, weight, scoring) if rows == "out_of_bag" else None
        score = score or _given(model, target, weight, scoring)
        asked = None if rows == "out_of_bag" else model
        base, draws = plan.falls(score, None, asked if scoring is None or isinstance(scoring, str) else None)
        unit = "permutation"
    else:
        base, draws = _over_folds(model, target, weight, scoring, cv, plan)
        unit = "fold"
    return _importances(model, names, columns, base, draws, _name(model, scoring), unit, cv is None)


class _Places:
    """Positions in the caller's table of the columns of a schema."""

    def __init__(self, names: list[str] | None, schema: Schema) -> None:
        known = names is not None and schema.has_names
        self._at = {name: j for j, name in enumerate(names or ())} if known else None
        self._names = schema.names

    @classmethod
    def of(cls, schema: Schema, table: PickTable) -> _Places:
        return cls(table.names, schema)

    def __call__(self, column: int) -> int:
        return column if self._at is None else self._at[self._names[column]]


@dataclass(frozen=True)
class _Plan:
    """Which columns are permuted, by their places in the schema and in the table, how often, from which seed."""

    table: PickTable
    columns: list[list[int]]
    groups: list[list[int]]
    n_repeats: int
    seed: int
    n_jobs: int | None

    def falls(self, score: Score, some: Rows | None, model: object = None) -> tuple[float, Floats]:
        """Score of the rows as they are, and what it falls by, by permutation and group.

        Models of spinney's trees that are given are asked about all permutations together: a row goes down a tree
        once, and again only for columns that it was asked on its way.
        """
        part = self.table if some is None else pick_table(self.table.take(some))
        base, orders = score(part.native, some), self._orders(part.n_rows)
        answers = exchanged_answers(model, part, self.columns, orders)
        if answers is not None:
            every = np.arange(part.n_rows)
            return base, np.array([[base - score(every, some, one) for one in group] for group in answers]).T

        def of_group(g: int) -> list[float]:
            return [base - score(with_columns(part, dict.fromkeys(self.groups[g], order)), some) for order in orders]

        n_threads = 1 if self.n_jobs is None else count_threads(self.n_jobs, len(self.groups))
        return base, np.array(list(in_order(of_group, len(self.groups), n_threads))).T

    def _orders(self, n_rows: int) -> list[Rows]:
        """Permutations, each of the one before, as in scikit-learn."""
        random = np.random.RandomState(self.seed)
        turn, order, found = np.arange(n_rows), np.arange(n_rows), []
        for _ in range(self.n_repeats):
            random.shuffle(turn)
            order = order[turn]
            found.append(order)
        return found


def _given(model: object, y: NDArray[Any], weight: Floats | None, scoring: object) -> Score:
    scorer = check_scoring(model, scoring=scoring)

    def score(X: TableLike, some: Rows | None, asked: object = model) -> float:
        actual = y if some is None else y[some]
        if weight is None:
            return float(scorer(asked, X, actual))
        return float(scorer(asked, X, actual, sample_weight=weight if some is None else weight[some]))

    return score


def _out_of_bag(model: object, table: PickTable, y: NDArray[Any], weight: Floats | None, scoring: object) -> Score:
    """Score rows by the trees that have not seen them."""
    if not hasattr(model, "_judge_unseen"):
        raise ValueError(
            f"rows='out_of_bag' needs a forest of spinney that was fitted on X, not {type(model).__name__}. Pass rows "
            "that the model has not seen, or cv=5."
        )
    judged, answer = model._judge_unseen(table.native, y, weight)
    scorer = check_scoring(model, scoring=scoring)

    def score(X: TableLike, some: Rows | None) -> float:
        if weight is None:
            return float(scorer(answer(X), judged, y[judged]))
        return float(scorer(answer(X), judged, y[judged], sample_weight=weight[judged]))

    return score


def _over_folds(
    model: object, y: NDArray[Any], weight: Floats | None, scoring: object, cv: object, plan: _Plan
) -> tuple[float, Floats]:
    """Mean score over the folds, and what it falls by, by fold and group."""
    from sklearn.base import is_classifier

    bases, draws = [], []
    for train, test in check_cv(cv, y, classifier=is_classifier(model)).split(np.zeros((len(y), 1)), y):
        fitted = clone(model)
        given = {} if weight is None else {"sample_weight": weight[train]}
        fitted.fit(plan.table.take(train), y[train], **given)
        asked = fitted if scoring is None or isinstance(scoring, str) else None
        base, falls = plan.falls(_given(fitted, y, weight, scoring), np.asarray(test), asked)
        bases.append(base)
        draws.append(falls.mean(axis=0))
    return float(np.mean(bases)), np.array(draws)


def _name(model: object, scoring: object) -> str:
    if isinstance(scoring, str):
        return scoring
    if scoring is not None:
        return str(getattr(scoring, "__name__", None) or "the score")
    return "accuracy" if hasattr(model, "predict_proba") or hasattr(model, "classes_") else "r2"


def _importances(
    model: object,
    names: list[str],
    columns: list[list[int]],
    base: float,
    draws: Floats,
    loss: str,
    unit: str,
    is_fitted: bool,
) -> Importances:
    n = len(draws)
    mean = draws.mean(axis=0)
    error = draws.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(names), np.nan)
    z = np.divide(mean, error, out=np.full(len(names), np.nan), where=error > 0)
    n_splits = None
    if is_fitted and isinstance(model, TableEstimator) and isinstance(model._fitted, ModelOfTrees):
        counts = model._fitted.split_counts(model.schema_.n_split_features)
        counts = counts if model.schema_.pool is None else model.schema_.pool.uses(counts)
        n_splits = np.array([counts[group].sum() for group in columns], dtype=np.intp)
    return Importances(names, "permutation", loss, mean, error, z, draws, None, n_splits, -base, unit)


Known = KnownShares | KnownValues

_MOST_DRAWS = 64
_MOST_ANSWERS = 1 << 22  # numbers held at a time: 32 MB


def exchanged_answers(
    model: object, table: PickTable, groups: list[list[int]], orders: list[Rows]
) -> Iterator[list[Known]] | None:
    """Ask a tree, a forest or boosted trees about a table with the columns of each group in other orders.

    Parameters
    ----------
    model : estimator
    table : PickTable
    groups : list of lists of int
        Columns that change places together, by their place in the schema.
    orders : list of ndarray of shape (n_rows,)
        For each permutation, the row whose values each row gets.

    Returns
    -------
    iterator of lists, or None
        For each group, and each order, the answers as a model that is asked by row numbers. None if the model is
        another one, or has to be asked in another way.
    """
    if not _is_walked(model) or len(orders) > _MOST_DRAWS:
        return None
    return _answers(model, table, groups, np.array(orders, dtype=np.uint32))


def _is_walked(model: object) -> bool:
    if not isinstance(model, TableEstimator) or not isinstance(model, (ClassifierMixin, RegressorMixin)):
        return False
    fitted: Any = model._fitted
    is_plain = model._predicts_alone and model.schema_.pool is None and getattr(fitted, "n_outputs", 0) == 1
    if not is_plain or type(fitted) not in (FittedTree, FittedForest, FittedBoosting) or fitted.has_lines:
        return False
    return type(fitted) is not FittedTree or fitted.splits is None


def _answers(
    model: BaseEstimator, table: PickTable, groups: list[list[int]], others: NDArray[np.uint32]
) -> Iterator[list[Known]]:
    columns = model._columns(table.native)
    width = getattr(model._fitted, "n_scores", len(getattr(model, "classes_", (0,))))
    at_once = max(1, _MOST_ANSWERS // max(1, others.size * width))
    for begin in range(0, len(groups), at_once):
        found = model._fitted.exchanged(columns, others, groups[begin : begin + at_once], model._n_threads)
        for of_group in found:
            yield [_known(model, np.ascontiguousarray(flat)) for flat in of_group]


def _known(model: BaseEstimator, flat: NDArray[np.float64]) -> Known:
    fitted, classes = model._fitted, [getattr(model, "classes_", None)]
    is_boosted = isinstance(fitted, FittedBoosting)
    said = fitted.spread(fitted.predicted(flat) if is_boosted else flat)
    if classes[0] is None:
        return KnownValues(said)
    if not is_boosted:
        return KnownShares(said, fitted.labels(fitted.best_codes(flat), classes), classes)
    scores = flat[:, 0] if fitted.n_scores == 1 else flat
    return KnownScores(said, fitted.labels(fitted.score_codes(flat), classes), classes, scores)
