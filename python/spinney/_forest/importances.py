"""How much each column matters to a forest: by the impurity, by the impurity without its bias, by permutation.

Vocabulary. A row is *out of bag* for a tree that was not grown on it. The importance of a *group* of columns (most
often of one) is a mean over trees; its standard error says how much it would change with other trees of the same kind,
not with other rows.

The decrease of the impurity by a split into left and right is w_l w_r / (w_l + w_r) (m_l - m_r)², with the weights and
mean targets of the two sides (class shares for classes: Gini). It is measured on the rows for which the split was
chosen, so any column that offers many cuts gets something. The unbiased decrease takes one of the two differences,
and the weights, from out-of-bag rows. If a column knows nothing of the target, the difference of the out-of-bag means
is zero on average whatever the tree has found, and so is the product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import ColumnGroups, Floats, RandomState
from spinney._estimator.parameters import read_column_groups
from spinney._model.forest import FittedForest
from spinney.inspect.explain.importances import Importances

KINDS = ("permutation", "unbiased", "impurity")
_CLASS_LOSSES, _NUMBER_LOSSES = ("error", "brier", "margin"), ("squared_error", "absolute_error")


@dataclass(frozen=True)
class ImportanceOptions:
    """Which importances are wanted, as `importances` of a forest documents it."""

    kind: str
    loss: str | None
    groups: ColumnGroups
    n_repeats: int
    by_row: bool
    random_state: RandomState

    def checked(self, has_classes: bool, is_oblique: bool) -> ImportanceOptions:
        """Refuse what does not go together; return the options with the loss of permutations filled in."""
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {self.kind!r}.")
        if self.kind != "permutation":
            changed = {"loss": self.loss is not None, "n_repeats": self.n_repeats != 1, "by_row": self.by_row}
            for name, is_set in changed.items():
                if is_set:
                    raise ValueError(f"{name} goes with kind='permutation', not with {self.kind!r}.")
            return self
        if is_oblique:
            raise ValueError(
                "kind='permutation' follows single columns through the trees, and the splits of this forest are "
                "oblique. Use kind='unbiased' or 'impurity', which share a split out among its columns, or "
                "spinney.permutation_importance on held-out rows."
            )
        n = self.n_repeats
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n_repeats must be a whole number from 1 up, not {n!r}.")
        known = _CLASS_LOSSES if has_classes else _NUMBER_LOSSES
        if self.loss is not None and self.loss not in known:
            raise ValueError(f"loss must be one of {', '.join(map(repr, known))} here, not {self.loss!r}.")
        return replace(self, loss=self.loss or known[0])


@dataclass(frozen=True)
class OutOfBagTable:
    """The training rows as the engine takes them, with the samples of the trees.

    Attributes
    ----------
    columns : Table
    sampling : Sampling
    target : ndarray of shape (n_rows, n_outputs)
        Class codes, or values.
    n_classes : list of int
        Empty for a numeric target.
    weight : ndarray or None
    n_jobs : int
    """

    columns: _engine.Table
    sampling: _engine.Sampling
    target: NDArray[Any]
    n_classes: list[int]
    weight: Floats | None
    n_jobs: int


def find_importances(
    forest: FittedForest,
    schema: Schema,
    options: ImportanceOptions,
    rows: OutOfBagTable | None,
    seed: int,
) -> Importances:
    """Compute the importances of a fitted forest.

    Parameters
    ----------
    forest : FittedForest
    schema : Schema
    options : ImportanceOptions
        Checked.
    rows : OutOfBagTable or None
        The training rows; None: for the impurity alone.
    seed : int
        Of permutations, unless the options have one.
    """
    names, groups = read_column_groups(options.groups, schema)
    n_features = schema.n_split_features
    rises = None
    if rows is None:
        by_tree = _sums(schema.credit_inputs(forest.tree_importances(n_features)), groups)
        is_split = by_tree.sum(axis=1) > 0
        by_tree = by_tree[is_split] if is_split.any() else by_tree  # as in feature_importances_
    elif options.loss is None:
        by_tree = _sums(schema.credit_inputs(_unbiased(forest, rows, n_features)), groups)
    else:
        if options.random_state is not None:
            seed = check_random_state(options.random_state).randint(2**31 - 1)
        rises = _Rises.of(forest, rows, groups, options, seed)
        by_tree = rises.by_tree
    splits = forest.split_counts(n_features)
    splits = splits if schema.pool is None else schema.pool.uses(splits)
    known = by_tree[~np.isnan(by_tree).any(axis=1)]
    if len(known) == 0:
        raise ValueError(
            "Every row was drawn for every tree, so that none is out of bag. Grow more trees, or draw fewer rows with "
            "max_samples."
        )
    importance = known.mean(axis=0)
    spread = known.std(axis=0, ddof=1) if len(known) > 1 else np.full(len(names), np.nan)
    error = spread / np.sqrt(len(known))
    return Importances(
        names=names,
        kind=options.kind,
        loss=options.loss,
        importance=importance,
        standard_error=error,
        z=np.divide(importance, error, out=np.full(len(names), np.nan), where=error > 0),
        by_tree=by_tree,
        by_row=None if rises is None else rises.by_row,
        n_splits=np.array([splits[group].sum() for group in groups], dtype=np.intp),
        tree_loss=None if rises is None else rises.tree_loss,
    )


def _sums(by_column: Floats, groups: list[list[int]]) -> Floats:
    return np.column_stack([by_column[:, group].sum(axis=1) for group in groups])


def _unbiased(forest: FittedForest, rows: OutOfBagTable, n_features: int) -> Floats:
    """Out-of-bag decrease of the impurity by tree and column, per unit of the tree's out-of-bag weight."""
    engine, target = forest.engine, rows.target
    if not rows.n_classes:  # differences of means are the same, and lose fewer digits
        target = target - target.mean(axis=0)
    weight, sums = _engine.out_of_bag_sums(
        engine, rows.columns, rows.sampling, target, rows.n_classes, rows.weight, rows.n_jobs
    )
    value = engine.value.reshape(engine.size, -1)
    split = np.flatnonzero(engine.feature >= 0)
    left, right = split + 1, engine.right[split]
    both = (weight[left] > 0) & (weight[right] > 0)
    split, left, right = split[both], left[both], right[both]
    unseen = sums[left] / weight[left][:, np.newaxis] - sums[right] / weight[right][:, np.newaxis]
    product = ((value[left] - value[right]) * unseen).sum(axis=1) / rows.target.shape[1]
    gain = weight[left] * weight[right] / (weight[left] + weight[right]) * product
    tree = np.searchsorted(forest.root, split, side="right") - 1
    total = np.bincount(
        tree * n_features + engine.feature[split], weights=gain, minlength=forest.n_trees * n_features
    ).reshape(-1, n_features)
    of_tree = weight[forest.root[:-1]][:, np.newaxis]
    return np.asarray(np.divide(total, of_tree, out=np.full(total.shape, np.nan), where=of_tree > 0))


@dataclass(frozen=True)
class _Rises:
    """What the loss of out-of-bag rows rises by when columns are permuted.

    Attributes
    ----------
    tree_loss : float
        Mean loss of a tree without permutation.
    by_tree : ndarray of shape (n_trees, n_groups)
    by_row : ndarray of shape (n_rows, n_groups) or None
    """

    tree_loss: float
    by_tree: Floats
    by_row: Floats | None

    @classmethod
    def of(
        cls,
        forest: FittedForest,
        rows: OutOfBagTable,
        groups: list[list[int]],
        options: ImportanceOptions,
        seed: int,
    ) -> _Rises:
        loss, node_class = str(options.loss), None
        if loss == "error":
            value = forest.engine.value.reshape(forest.node_count, -1)
            node_class = np.ascontiguousarray(forest.best_codes(value), dtype=np.int32)
        losses, rises, sums, n_trees = _engine.permutation_rises(
            forest.engine,
            rows.columns,
            rows.sampling,
            rows.target,
            rows.n_classes,
            rows.weight,
            loss,
            node_class,
            groups,
            int(options.n_repeats),
            int(seed),
            bool(options.by_row),
            rows.n_jobs,
            _output_scales(rows, loss),
        )
        by_row = None
        if options.by_row:
            n_known = n_trees[:, np.newaxis]
            by_row = np.asarray(np.divide(sums, n_known, out=np.full(sums.shape, np.nan), where=n_known > 0))
        return cls(float("nan") if np.isnan(losses).all() else float(np.nanmean(losses)), rises, by_row)


def _output_scales(rows: OutOfBagTable, loss: str) -> list[float]:
    """Return what makes the losses of several outputs of numbers comparable: 1 over the loss of the best constant."""
    if rows.n_classes or rows.target.shape[1] == 1:
        return []
    scales = []
    for y in rows.target.T:
        if loss == "squared_error":
            spread = np.average((y - np.average(y, weights=rows.weight)) ** 2, weights=rows.weight)
        else:
            spread = np.average(np.abs(y - _weighted_median(y, rows.weight)), weights=rows.weight)
        scales.append(1.0 / float(spread) if spread > 0 else 1.0)
    return scales


def _weighted_median(y: Floats, weight: Floats | None) -> float:
    if weight is None:
        return float(np.median(y))
    order = np.argsort(y, kind="stable")
    below = np.cumsum(weight[order])
    return float(y[order[np.searchsorted(below, below[-1] / 2)]])
