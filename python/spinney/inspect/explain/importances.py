"""Importances of columns: the result as a table and a plot, and permutation importance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from spinney._data import Schema, read_table
from spinney._data.columns import match_columns
from spinney._data.display import Backend, ShownAsTable, align, frame_of, plural, shortest
from spinney._data.select import PickTable, pick_table
from spinney._data.types import ColumnGroups, ColumnLike, Floats, TableLike
from spinney._estimator.held_out import CrossValidation, KnownProba, KnownScores, KnownValues
from spinney._estimator.metrics import find_scorer
from spinney._estimator.other_libraries import explain_unknown_arguments
from spinney._estimator.parallel import count_threads, in_order
from spinney._estimator.parameters import read_column_groups, require_whole
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.forest import FittedForest
from spinney._model.model import ModelOfTrees
from spinney._model.tree import FittedTree
from spinney.inspect.draw import explanation as charts
from spinney.inspect.draw.axes import short
from spinney.inspect.explain.target_model import check_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MEASURES = {
    "impurity": "fraction of the impurity decrease",
    "unbiased": "unbiased impurity decrease",
    "error": "increase in error rate when permuted",
    "brier": "increase in Brier score when permuted",
    "margin": "decrease in margin when permuted",
    "squared_error": "increase in squared error when permuted",
    "absolute_error": "increase in absolute error when permuted",
    "gain": "fraction of the loss reduction",
    "splits": "fraction of the splits",
    "loss": "increase in loss when permuted",
}


@dataclass(frozen=True, eq=False)
class Importances(ShownAsTable):
    """Importances of columns, returned by `permutation_importance` or a model's `importances`; prints as text.

    Attributes
    ----------
    names : list of str
        Columns, or groups of these, in the order of the table.
    kind : {"permutation", "unbiased", "impurity", "gain", "splits"}
        How importance is measured.
    loss : str or None
        Loss or score that permutation changes; None if importance is not measured by permutation.
    importance, standard_error, z : ndarray of shape (n_names,)
        Mean importance over the trees, permutations or folds (see `unit`), its standard error, and their ratio (NaN
        where the standard error is 0 or unknown).
    by_tree : ndarray of shape (n_trees, n_names)
        Importances of each tree, permutation or fold; NaN for trees without out-of-bag rows.
    by_row : ndarray of shape (n_samples, n_names), or None
        With ``importances(…, by_row=True)``: mean increase in the row's loss over its out-of-bag trees; NaN if it has
        none.
    n_splits : ndarray of shape (n_names,), or None
        Number of splits on the columns in all trees; oblique splits count for each of their columns. None: the model
        has no trees.
    tree_loss : float or None
        Loss before any permutation: the mean loss of a single tree on its out-of-bag rows, or the loss of a boosted
        model on the rows that were passed.
    unit : {"tree", "permutation", "fold"}
        Unit over which the means are taken.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> importances = RandomForestClassifier(random_state=0).fit(X, y).importances(X, y)
    >>> sorted(importances.to_frame("pandas")["column"][:2])
    ['petal length (cm)', 'petal width (cm)']
    """

    names: list[str]
    kind: str
    loss: str | None
    by_tree: Floats
    by_row: Floats | None
    n_splits: NDArray[np.intp] | None
    tree_loss: float | None
    unit: str = "tree"
    importance: Floats = field(init=False)
    standard_error: Floats = field(init=False)
    z: Floats = field(init=False)

    def __post_init__(self) -> None:
        draws = self.by_tree
        if self.unit == "tree":  # some may have no out-of-bag rows
            draws = draws[~np.isnan(draws).any(axis=1)]
        mean, n, unknown = draws.mean(axis=0), len(draws), np.full(len(self), np.nan)
        error = draws.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else unknown
        z = np.divide(mean, error, out=unknown.copy(), where=error > 0)
        self.__dict__.update(importance=mean, standard_error=error, z=z)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def measure(self) -> str:
        """Description of how importance is measured."""
        return MEASURES.get(self.loss or self.kind, f"decrease in {self.loss} when permuted")

    @property
    def order(self) -> list[int]:
        """Positions in `names`, the most important first."""
        return sorted(range(len(self)), key=lambda j: (-self.importance[j], j))

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the importances as a frame, the most important first.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            `column`, `importance`, `standard_error`, `z`, and `n_splits` for models with trees.
        """
        order = self.order
        columns: dict[str, list[Any]] = {"column": [self.names[j] for j in order]}
        for name in ("importance", "standard_error", "z", "n_splits"):
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)[order].tolist()
        return frame_of(columns, backend)

    def rows_to_frame(self, backend: Backend | None = None) -> Any:
        """Return the importances of single rows as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per row of the table, one column per name.
        """
        by_row = self._known_rows()
        return frame_of({name: by_row[:, j].tolist() for j, name in enumerate(self.names)}, backend)

    def _known_rows(self) -> Floats:
        if self.by_row is None:
            raise ValueError("These importances have no values by row. Use importances(X, y, by_row=True).")
        return self.by_row

    def plot(self, *, style: Literal["bar", "box"] = "bar", max_columns: int = 15, ax: Axes | None = None) -> Axes:
        """Plot the importances, with error bars of one standard error.

        Parameters
        ----------
        style : {"bar", "box"}, default="bar"
            Bars, or a box plot over the trees with the mean and its standard error.
        max_columns : int, default=15
            Maximum number of bars: the most important columns.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        return charts.draw_importances(self, style, max_columns, ax)

    def plot_rows(self, *, colour: object = None, max_columns: int = 15, ax: Axes | None = None) -> Axes:
        """Plot the importances of single rows as points, one line of points per column.

        Parameters
        ----------
        colour : array-like of shape (n_samples,), optional
            Numbers or labels that colour the rows, such as the target.
        max_columns : int, default=15
            Maximum number of lines: the most important columns.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        return charts.draw_rows(self, self._known_rows(), colour, max_columns, ax)

    @property
    def _has_errors(self) -> bool:
        return not np.isnan(self.standard_error).all()

    @property
    def _over(self) -> str:
        return f", {plural(len(self.by_tree), self.unit)}" if self._has_errors else ""

    def __repr__(self) -> str:
        return f"<Importances: {self.kind}, {plural(len(self), 'column')}{self._over}>"

    def __str__(self) -> str:
        lines = [f"{self.measure[0].upper()}{self.measure[1:]}{self._over}"]
        if self.tree_loss is not None and self.unit == "tree":
            lines.append(f"Out-of-bag loss of a single tree: {shortest(self.tree_loss, 4)}")
        elif self.tree_loss is not None:
            what, score = ("Loss", self.tree_loss) if self.loss == "loss" else (self.loss, -self.tree_loss)
            lines.append(f"{what} of the model: {shortest(score, 4)}")
        largest = np.nanmax(self.standard_error, initial=0.0) or 0.01
        digits = max(0, 1 - math.floor(math.log10(largest)))  # two significant digits of the largest error
        shown = self.order[:_MAX_LINES]
        rows = align([[short(self.names[j]), f"{self.importance[j]:.{digits}f}"] for j in shown])
        errors = [f" ± {self.standard_error[j]:.{digits}f}" if self._has_errors else "" for j in shown]
        lines += [row + error for row, error in zip(rows, errors, strict=True)]
        if len(shown) < len(self):
            lines.append(f"… and {plural(len(self) - len(shown), 'column')} below")
        return "\n".join(lines)


_MAX_LINES = 30


def count_splits(fitted: ModelOfTrees, schema: Schema) -> NDArray[np.intp]:
    """Return the number of splits on each column; oblique splits count for each of their columns."""
    counts = fitted.split_counts(schema.n_split_features)
    return counts if schema.pool is None else schema.pool.uses(counts)


def splits_of_groups(fitted: ModelOfTrees, schema: Schema, groups: list[list[int]]) -> NDArray[np.intp]:
    """Return the number of splits on the columns of each group."""
    counts = count_splits(fitted, schema)
    return np.array([counts[group].sum() for group in groups], dtype=np.intp)


# ---- permutation -------------------------------------------------------------------------------------------------

Rows = NDArray[np.intp]


@explain_unknown_arguments
def permutation_importance(
    model: object,
    X: TableLike,
    y: ColumnLike,
    *,
    rows: Literal["given", "out_of_bag"] = "given",
    cv: CrossValidation | None = None,
    scoring: object = None,
    groups: ColumnGroups = None,
    n_repeats: int = 5,
    sample_weight: ColumnLike = None,
    random_state: object = 0,
    n_jobs: int | None = None,
) -> Importances:
    """Return the decrease in a score when the values of a column, or of several together, are permuted.

    Parameters
    ----------
    model : estimator
        Of spinney, scikit-learn, LightGBM or any library. It must be fitted, unless `cv` is passed.
    X : table of shape (n_samples, n_features)
        Held-out rows; or the training rows, with `cv` or ``rows="out_of_bag"``.
    y : array-like of shape (n_samples,)
        Their target.
    rows : {"given", "out_of_bag"}, default="given"
        "given": the model predicts each row. "out_of_bag": `X` and `y` are the training data of a forest of spinney,
        and each row is predicted by the trees that were not trained on it.
    cv : int, splitter or list of (train, test) positions, optional
        Fit copies of the model on the training rows of each fold, and permute its test rows. The standard error is
        over the folds.
    scoring : str, callable or None, default=None
        The name of a scikit-learn scorer, a short name such as "auc", or a scorer; None: the model's `score`.
    groups : list of lists of columns, or dict of these, optional
        Columns that are permuted together, by name or position. Other columns are permuted one by one.
    n_repeats : int, default=5
        Number of permutations of each column. Without `cv`, the standard error is over these.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the score (with `cv` also in the fits).
    random_state : int, RandomState or None, default=0
        Seed of the permutations. The results equal those of scikit-learn with the same seed.
    n_jobs : int, optional
        Number of threads that share the columns; None: one, so that the model itself can use threads. It does not
        affect the results.

    Returns
    -------
    Importances
        Has `to_frame` and `plot`; `by_tree` has one row per permutation, or fold.

    See Also
    --------
    sklearn.inspection.permutation_importance : Permutation importance on the rows that are passed.
    RandomForestClassifier.importances : Out-of-bag importances of each tree, with other losses.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.RandomForestClassifier(random_state=0).fit(X, y)
    >>> importances = spinney.permutation_importance(model, X, y, rows="out_of_bag")
    >>> importances.names[importances.order[0]]
    'bill_length_mm'
    """
    if rows not in ("given", "out_of_bag"):
        raise ValueError(f"rows must be 'given' or 'out_of_bag', not {rows!r}.")
    if cv is not None and rows == "out_of_bag":
        raise ValueError("cv and rows='out_of_bag' exclude each other. Leave one of them out.")
    require_whole("n_repeats", n_repeats)
    table = pick_table(X)
    schema = model.schema_ if hasattr(model, "schema_") else Schema.learn(read_table(table.native))
    names, columns = read_column_groups(groups, schema)
    expected = schema.names if schema.has_names else None
    order = match_columns(table.names, table.n_columns, expected, schema.n_features, type(model).__name__)
    positions = columns if order is None else [[order[j] for j in group] for group in columns]
    weight = read_weights(sample_weight, table.n_rows)
    target = np.asarray(y)
    if len(target) != table.n_rows:
        raise ValueError(f"y has {len(target)} values, but X has {table.n_rows} rows.")
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max + 1)
    plan = _Permutations(table, columns, positions, int(n_repeats), int(seed), n_jobs, target, weight, scoring)
    n_splits = None
    if cv is not None:
        base, draws = plan.over_folds(model, cv)
    else:
        check_fitted(model)
        base, draws = plan.out_of_bag(model) if rows == "out_of_bag" else plan.decreases(model)
        if isinstance(model, TableEstimator) and isinstance(model._fitted, ModelOfTrees):
            n_splits = splits_of_groups(model._fitted, model.schema_, columns)
    unit = "permutation" if cv is None else "fold"
    return Importances(names, "permutation", _score_name(model, scoring), draws, None, n_splits, -base, unit)


@dataclass(frozen=True)
class _Permutations:
    """The columns to permute, by their positions in the schema and in the table, and how to score predictions."""

    table: PickTable
    columns: list[list[int]]
    positions: list[list[int]]
    n_repeats: int
    seed: int
    n_jobs: int | None
    y: NDArray[Any]
    weight: Floats | None
    scoring: object

    def decreases(self, model: object, rows: Rows | None = None) -> tuple[float, Floats]:
        """Return the score of some rows (None: all), and its decrease by permutation and group.

        Models of spinney's trees predict all permutations together: a row passes through a tree once, and again only
        for columns on its path.
        """
        table = self.table if rows is None else pick_table(self.table.take(rows))
        score, orders = self._scorer(model, rows), self._orders(table.n_rows)
        base = score(model, table.native)
        has_name = self.scoring is None or isinstance(self.scoring, str)
        if has_name and self.n_repeats <= _MAX_PERMUTATIONS and _predicts_permutations(model):
            all_rows, predictions = np.arange(table.n_rows), _permuted(model, table.native, self.columns, orders)
            return base, np.array([[base - score(one, all_rows) for one in group] for group in predictions]).T
        return base, self._decreases_by_group(base, table, orders, lambda X: score(model, X))

    def out_of_bag(self, model: object) -> tuple[float, Floats]:
        """Return the same as `decreases`, from the out-of-bag trees of each row."""
        if not hasattr(model, "_out_of_bag_predictor"):
            raise ValueError(
                f"rows='out_of_bag' needs a forest of spinney that was fitted on X, not {type(model).__name__}. Pass "
                "held-out rows, or cv=5."
            )
        rows, predict = model._out_of_bag_predictor(self.table.native, self.y, self.weight)
        score, orders = self._scorer(model, rows), self._orders(self.table.n_rows)
        base = score(predict(self.table.native), rows)
        return base, self._decreases_by_group(base, self.table, orders, lambda X: score(predict(X), rows))

    def over_folds(self, model: object, cv: object) -> tuple[float, Floats]:
        """Return the mean score over the folds, and its decrease by fold and group."""
        bases, draws = [], []
        splitter = check_cv(cv, self.y, classifier=is_classifier(model))
        for train, test in splitter.split(np.zeros((len(self.y), 1)), self.y):
            weights = {} if self.weight is None else {"sample_weight": self.weight[train]}
            fitted = clone(model).fit(self.table.take(train), self.y[train], **weights)
            base, decreases = self.decreases(fitted, np.asarray(test))
            bases.append(base)
            draws.append(decreases.mean(axis=0))
        return float(np.mean(bases)), np.array(draws)

    def _scorer(self, model: object, rows: Rows | None) -> Callable[[Any, Any], float]:
        """Return a function that scores predictions for some rows."""
        scorer, chosen = check_scoring(model, scoring=find_scorer(self.scoring)), slice(None) if rows is None else rows
        weights = {} if self.weight is None else {"sample_weight": self.weight[chosen]}
        return lambda predictor, X: float(scorer(predictor, X, self.y[chosen], **weights))

    def _decreases_by_group(
        self, base: float, table: PickTable, orders: list[Rows], score: Callable[[Any], float]
    ) -> Floats:
        def of_group(g: int) -> list[float]:
            return [base - score(table.with_columns(dict.fromkeys(self.positions[g], order))) for order in orders]

        n_threads = 1 if self.n_jobs is None else count_threads(self.n_jobs, len(self.positions))
        return np.array(list(in_order(of_group, len(self.positions), n_threads))).T

    def _orders(self, n_rows: int) -> list[Rows]:
        """Return the permutations, each of the previous one, as in scikit-learn."""
        random = np.random.RandomState(self.seed)
        shuffled, order, orders = np.arange(n_rows), np.arange(n_rows), []
        for _ in range(self.n_repeats):
            random.shuffle(shuffled)
            order = order[shuffled]
            orders.append(order)
        return orders


def _score_name(model: object, scoring: object) -> str:
    if isinstance(scoring, str):
        return scoring
    if scoring is not None:
        return str(getattr(scoring, "__name__", None) or "the score")
    if hasattr(model, "predict_survival_function"):
        return "concordance"
    return "accuracy" if hasattr(model, "predict_proba") or hasattr(model, "classes_") else "r2"


Known = KnownProba | KnownValues

_MAX_PERMUTATIONS = 64  # that are predicted together
_MAX_PREDICTIONS = 1 << 22  # numbers in memory at a time: 32 MB


def _predicts_permutations(model: object) -> bool:
    """Return whether a model can predict all permutations together."""
    if not isinstance(model, TableEstimator) or not isinstance(model, (ClassifierMixin, RegressorMixin)):
        return False
    fitted: Any = model._fitted
    is_plain = model._predicts_alone and model.schema_.pool is None and getattr(fitted, "n_outputs", 0) == 1
    if not is_plain or type(fitted) not in (FittedTree, FittedForest, FittedBoosting) or fitted.has_linear_leaves:
        return False
    return type(fitted) is not FittedTree or fitted.splits is None


def _permuted(model: BaseEstimator, X: TableLike, groups: list[list[int]], orders: list[Rows]) -> Iterator[list[Known]]:
    """Yield the predictions for each group of columns in each of some orders."""
    others, columns = np.array(orders, dtype=np.uint32), model._columns(X)
    width = getattr(model._fitted, "n_scores", len(getattr(model, "classes_", (0,))))
    batch_size = max(1, _MAX_PREDICTIONS // max(1, others.size * width))
    for begin in range(0, len(groups), batch_size):
        batch = model._fitted.exchanged(columns, others, groups[begin : begin + batch_size], model._n_threads)
        for of_group in batch:
            yield [_known(model, np.ascontiguousarray(flat)) for flat in of_group]


def _known(model: BaseEstimator, flat: NDArray[np.float64]) -> Known:
    fitted, classes = model._fitted, [getattr(model, "classes_", None)]
    is_boosted = isinstance(fitted, FittedBoosting)
    predicted = fitted.by_output(fitted.predicted(flat) if is_boosted else flat)
    if classes[0] is None:
        return KnownValues(predicted)
    if not is_boosted:
        return KnownProba(predicted, fitted.labels(fitted.best_codes(flat), classes), classes)
    scores = flat[:, 0] if fitted.n_scores == 1 else flat
    return KnownScores(predicted, fitted.labels(fitted.score_codes(flat), classes), classes, scores)
