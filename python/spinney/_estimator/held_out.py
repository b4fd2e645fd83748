"""Held-out rows: folds, pruning by their error, and estimators with known predictions for scorers."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import has_fit_parameter

import spinney._engine as _engine
from spinney._data.arguments import argument_array
from spinney._data.types import ColumnLike
from spinney._model.tree import FittedTree

# (nodes, tree, rows) -> loss of each row if it stopped at its node
Loss = Callable[[NDArray[Any], FittedTree, NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True)
class HeldOut:
    """Rows that a tree was not trained on, and the loss to evaluate it with."""

    columns: _engine.Table
    loss: Loss
    weight: NDArray[np.float64] | None


def node_losses(tree: FittedTree, held_out: HeldOut, n_jobs: int) -> NDArray[np.float64]:
    """Return for every node the loss of the rows that reach it, if it were a leaf."""
    leaves, weight = tree.engine.apply(held_out.columns, n_jobs), held_out.weight
    used = np.arange(len(leaves)) if weight is None else np.flatnonzero(weight > 0)
    total = np.zeros(tree.node_count)
    for rows, nodes in tree.passed_nodes(leaves[used]):
        loss = held_out.loss(nodes, tree, used[rows])
        total += np.bincount(nodes, loss if weight is None else loss * weight[used[rows]], tree.node_count)
    return total


def split_gains(tree: FittedTree, criterion: str) -> NDArray[np.float64]:
    """Return the weighted gain of each split by the criterion of the tree; 0 in leaves.

    Gains are rounded to about twelve digits, so that ties in exact arithmetic are ties here.
    """
    split = np.flatnonzero(~tree.is_leaf)
    left, right = split + 1, tree.children_right[split]
    weight = tree.weighted_n_node_samples
    if criterion in ("chi2", "friedman_mse"):
        value, factor = tree.flat_value, weight[left] * weight[right] / weight[split]
        difference = value[left] - value[right]
        if criterion == "chi2":
            with np.errstate(invalid="ignore"):
                gain = factor * np.nan_to_num(difference**2 / value[split]).sum(axis=1) / tree.n_outputs
        else:
            gain = factor * difference.mean(axis=1) ** 2
    else:
        total = weight * tree.impurity
        gain = total[split] - total[left] - total[right]
    gains = np.zeros(tree.node_count)
    mantissa, exponent = np.frexp(gain)
    gains[split] = np.ldexp(np.round(mantissa * 2.0**40) / 2.0**40, exponent)
    return gains


def prune_best_first(tree: FittedTree, gains: NDArray[np.float64], held_out: HeldOut, n_jobs: int) -> _engine.Tree:
    """Return the tree with the number of best-first splits of the lowest held-out loss; the fewest on a tie.

    Parameters
    ----------
    tree : FittedTree
        Tree that was not trained on these rows.
    gains : ndarray
        Gain of each split, which determines the best-first order.
    held_out : HeldOut
        The rows.
    n_jobs : int
        Threads; 0 for all.

    Returns
    -------
    Tree
        The pruned tree of the engine.
    """
    loss_at = node_losses(tree, held_out, n_jobs)
    right = tree.children_right
    open_splits: list[tuple[float, int, int]] = []
    ages = itertools.count()  # ties go to the earlier node, as in best-first growth

    def push(node: int) -> None:
        age = next(ages)
        if right[node] >= 0:
            heapq.heappush(open_splits, (-float(gains[node]), age, node))

    push(0)
    order: list[int] = []
    error = best_error = float(loss_at[0])
    n_best = 0
    slack = 1e-12 * abs(best_error)  # differences by rounding are no improvement
    while open_splits:
        _, _, node = heapq.heappop(open_splits)
        order.append(node)
        error += float(loss_at[node + 1] + loss_at[right[node]] - loss_at[node])
        if error < best_error - slack:
            best_error, n_best = error, len(order)
        push(node + 1)
        push(int(right[node]))
    leaf = np.ones(tree.node_count, dtype=np.uint8)
    leaf[order[:n_best]] = 0
    return tree.engine.collapsed(leaf)


Rows = NDArray[np.intp]


class Splitter(Protocol):
    """A cross-validation splitter, as those of scikit-learn."""

    def split(self, X: Any, y: Any, groups: Any, /) -> Iterable[Any]:
        """Yield training and held-out rows of each fold."""


# a number of folds, a splitter, an iterable of splits, or fold numbers by row
CrossValidation = int | Splitter | NDArray[Any] | Iterable[int] | Iterable[tuple[Any, Any]]


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to evaluate on."""

    train: Rows
    held_out: Rows


def read_folds(
    cv: object,
    strata: NDArray[Any] | None,
    target: NDArray[Any],
    weight: NDArray[np.float64],
    groups: ColumnLike,
    random: np.random.RandomState,
    order: Rows | None = None,
) -> list[Fold]:
    """Make the folds.

    Parameters
    ----------
    cv : int, splitter, iterable of splits, or array of fold numbers
        As the parameter of the trees.
    strata : ndarray of int or None
        Classes (n_rows, n_outputs) to spread over folds; None in a regression.
    target : ndarray
        Target, for splitters that look at it.
    weight : ndarray
        Weights; rows of weight 0 are in no fold.
    groups : array-like or None
        Rows of one group are held out together.
    random : RandomState
        Draws the folds.
    order : ndarray of int or None
        Order of the rows from which folds are drawn at random; None: that of the table.

    Returns
    -------
    list of Fold
        At least one; each has rows of positive weight on both sides.
    """
    n_rows = len(weight)
    groups = None if groups is None else read_row_groups(groups, n_rows)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        folds = _from_numbers(_assign_folds(int(cv), strata, weight, groups, random, order))
    elif hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
        y = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
        folds = _from_splits(cv.split(np.zeros((n_rows, 1)), y, groups), n_rows)
    elif groups is not None:
        raise ValueError("groups needs a number of folds or a splitter; cv already assigns the rows to folds.")
    elif _is_vector(cv):
        numbers = argument_array(cv, "cv")
        if len(numbers) != n_rows:
            raise ValueError(f"cv has {len(numbers)} fold numbers and the table {n_rows} rows. Pass one per row.")
        folds = _from_numbers(numbers)
    elif isinstance(cv, Iterable) and not isinstance(cv, (str, bytes)):
        folds = _from_splits(cv, n_rows)
    else:
        raise ValueError(f"cv must be a number of folds, a splitter, splits or fold numbers by row. Got {cv!r}.")
    if not folds:
        raise ValueError("cv gives no folds. Use at least 2.")
    return [_weighted(fold, k, weight) for k, fold in enumerate(folds)]


def read_row_groups(groups: ColumnLike, n_rows: int) -> NDArray[Any]:
    """Return checked `groups`: one label per row."""
    return _one_per_row(groups, n_rows, "groups", "group")


def read_time(time: ColumnLike, n_rows: int) -> NDArray[Any]:
    """Return checked `time`: one time per row."""
    times = _one_per_row(time, n_rows, "time", "time")
    missing = np.flatnonzero(times != times)
    if len(missing):
        raise ValueError(f"time is missing in {len(missing)} row(s), the first of which is row {missing[0]}.")
    return times


def _one_per_row(values: ColumnLike, n_rows: int, name: str, what: str) -> NDArray[Any]:
    array = argument_array(values, name)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} has shape {array.shape} and the table {n_rows} rows. Pass one {what} per row.")
    return array


def row_arguments(estimator: Any, groups: Any, time: Any = None, weight: Any = None) -> dict[str, Any]:
    """Return the arguments `time` or `groups` for a fit that holds out rows itself.

    Estimators that hold out no rows refuse both, and those of other libraries do not have them. For estimators without
    `time`, the groups are periods, one for each fold. Groups are left out if there are fewer of them, among the rows of
    positive weight, than folds.
    """
    count = getattr(estimator, "_n_folds_held_out", None)
    n_folds = 0 if count is None else count()
    if n_folds == 0:
        return {}
    if time is not None:
        if has_fit_parameter(estimator, "time"):
            return {"time": time}
        starts = np.sort(time, kind="stable")[len(time) * np.arange(1, n_folds) // n_folds]
        groups = np.searchsorted(starts, time, side="right")
    if groups is None or len(np.unique(groups if weight is None else groups[weight > 0])) < n_folds:
        return {}
    return {"groups": groups}


def _is_vector(cv: object) -> bool:
    if not isinstance(cv, (list, tuple)) and not hasattr(cv, "__array__"):
        return False
    try:
        array = np.asarray(cv)
    except ValueError:  # splits of different lengths
        return False
    return array.ndim == 1 and array.dtype.kind in "biufUS"


def check_fold_count(n_folds: int, rows: Rows, groups: NDArray[Any] | None) -> None:
    """Refuse a number of folds that exceeds the number of rows or groups."""
    n_units, what = (len(rows), "samples") if groups is None else (len(np.unique(groups[rows])), "groups")
    if n_folds < 2:
        raise ValueError(f"cv={n_folds} is too small. Use at least 2 folds.")
    if n_units < n_folds:
        raise ValueError(
            f"cv={n_folds} exceeds the number of {what} of positive weight: n_{what}={n_units}. Pass fewer folds."
        )


def _assign_folds(
    n_folds: int,
    strata: NDArray[Any] | None,
    weight: NDArray[np.float64],
    groups: NDArray[Any] | None,
    random: np.random.RandomState,
    order: Rows | None,
) -> NDArray[np.int64]:
    """Return the fold of each row: at random, stratified by class, groups together; -1: in no fold."""
    rows = np.flatnonzero(weight > 0)
    check_fold_count(n_folds, rows, groups)
    numbers = np.full(len(weight), -1, dtype=np.int64)
    if groups is not None:
        for k, (_, held_out) in enumerate(GroupKFold(n_folds).split(rows, groups=groups[rows])):
            numbers[rows[held_out]] = k
        return numbers
    drawn = random.permutation(rows if order is None else order[weight[order] > 0])
    if strata is not None:
        drawn = drawn[np.lexsort(strata[drawn].T)]
    numbers[drawn] = np.arange(len(drawn)) % n_folds
    return numbers


def _from_numbers(numbers: NDArray[Any]) -> list[Fold]:
    """Return one fold per distinct number; rows with a negative number are never held out."""
    never = numbers < 0 if numbers.dtype.kind in "if" else np.zeros(len(numbers), dtype=bool)
    distinct = np.unique(numbers[~never])
    if len(distinct) < 2 and not never.any():
        raise ValueError("cv puts all rows into one fold, which leaves none to train on. Use at least 2 folds.")
    return [Fold(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in distinct]


def _from_splits(splits: Iterable[Any], n_rows: int) -> list[Fold]:
    folds = []
    for split in splits:
        try:
            sides = [_read_rows(side, n_rows) for side in split]
        except TypeError:
            sides = []
        if len(sides) != 2:
            raise ValueError("Each split of cv must be a pair: rows to train on, rows to hold out.")
        folds.append(Fold(*sides))
    return folds


def _read_rows(rows: object, n_rows: int) -> Rows:
    array = argument_array(rows, "A split of cv")
    if array.dtype.kind == "b" and array.shape == (n_rows,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError("The splits of cv must hold row numbers.")
    if array.size and not (-n_rows <= array.min() and array.max() < n_rows):
        raise ValueError(f"A split of cv names row {int(array.max())}; the table has {n_rows} rows, counted from 0.")
    return np.unique(array.astype(np.intp) % n_rows)


def _weighted(fold: Fold, k: int, weight: NDArray[np.float64]) -> Fold:
    """Return a fold without rows of weight 0; raises if none are left."""
    train, held_out = (rows[weight[rows] > 0] for rows in (fold.train, fold.held_out))
    if not len(train) or not len(held_out):
        side = "training" if not len(train) else "held-out"
        raise ValueError(f"Fold {k} of cv has no {side} row of positive weight.")
    return Fold(train, held_out)


class KnownProba(ClassifierMixin, BaseEstimator):
    """A fitted classifier with known predictions, for scorers; X is row numbers."""

    def __init__(self, proba: Any, labels: Any, classes: Any) -> None:
        self.proba = proba
        self.labels = labels
        self.classes_ = classes[0] if len(classes) == 1 else classes

    def predict(self, X: object) -> Any:
        """Return the labels of rows."""
        return self.labels[X]

    def predict_proba(self, X: object) -> Any:
        """Return the class probabilities of rows."""
        return [proba[X] for proba in self.proba] if isinstance(self.proba, list) else self.proba[X]


class KnownScores(KnownProba):
    """A fitted classifier with known predictions and scores, for scorers; X is row numbers."""

    def __init__(self, proba: Any, labels: Any, classes: Any, scores: Any) -> None:
        super().__init__(proba, labels, classes)
        self.scores = scores

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows."""
        return self.scores[X]


class KnownValues(RegressorMixin, BaseEstimator):
    """A fitted regressor with known predictions, for scorers; X is row numbers."""

    def __init__(self, values: Any) -> None:
        self.values_ = values

    def predict(self, X: Any) -> Any:
        """Return the values of rows."""
        return self.values_[X]
