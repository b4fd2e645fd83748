"""Importances of the columns of a forest: by impurity, by unbiased impurity, by permutation.

A row is *out of bag* for a tree that was not grown on it. The importance of a *group* of columns (most often one
column) is a mean over trees; its standard error measures how much it would vary with other trees of the same kind, not
with other rows.

The decrease of the impurity by a split into left and right is w_l w_r / (w_l + w_r) (m_l - m_r)², with the weights and
mean targets of the two sides (class probabilities for classes: Gini). It is measured on the rows by which the split
was chosen, so that columns with many possible splits are overrated. The unbiased decrease takes one of the two
differences, and the weights, from out-of-bag rows. If a column is independent of the target, the difference of the
out-of-bag means is zero on average, and so is the product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import ColumnGroups, Floats, RandomState
from spinney._estimator.parameters import read_column_groups, require_whole
from spinney._forest.samples import OutOfBag
from spinney._model.forest import FittedForest
from spinney.inspect.explain.importances import Importances, splits_of_groups

KINDS = ("permutation", "unbiased", "impurity")
_CLASS_LOSSES, _NUMBER_LOSSES = ("error", "brier", "margin"), ("squared_error", "absolute_error")


@dataclass(frozen=True)
class ImportanceOptions:
    """The parameters of `importances` of a forest."""

    kind: str
    loss: str | None
    groups: ColumnGroups
    n_repeats: int
    by_row: bool
    random_state: RandomState

    def checked(self, has_classes: bool, is_oblique: bool) -> ImportanceOptions:
        """Check the options, and return them with the default loss of permutation filled in."""
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {self.kind!r}.")
        if self.kind != "permutation":
            changed = {"loss": self.loss is not None, "n_repeats": self.n_repeats != 1, "by_row": self.by_row}
            for name, is_set in changed.items():
                if is_set:
                    raise ValueError(f"{name} requires kind='permutation', not {self.kind!r}.")
            return self
        if is_oblique:
            raise ValueError(
                "kind='permutation' is for splits on single columns, and the splits of this forest are oblique. Use "
                "kind='unbiased' or 'impurity', which divide a split's gain among its columns, or "
                "spinney.permutation_importance on held-out rows."
            )
        require_whole("n_repeats", self.n_repeats)
        known = _CLASS_LOSSES if has_classes else _NUMBER_LOSSES
        if self.loss is not None and self.loss not in known:
            raise ValueError(f"loss must be one of {', '.join(map(repr, known))} here, not {self.loss!r}.")
        return replace(self, loss=self.loss or known[0])


def find_importances(
    forest: FittedForest,
    schema: Schema,
    options: ImportanceOptions,
    rows: OutOfBag | None,
    seed: int,
) -> Importances:
    """Compute the importances of a fitted forest.

    Parameters
    ----------
    forest : FittedForest
    schema : Schema
    options : ImportanceOptions
        Checked.
    rows : OutOfBag or None
        The training rows; None for kind="impurity".
    seed : int
        Seed of the permutations, unless the options have one.
    """
    names, groups = read_column_groups(options.groups, schema)
    n_features = schema.n_split_features
    increases = None
    if rows is None:
        by_tree = _sums(schema.credit_inputs(forest.tree_importances(n_features)), groups)
        is_split = by_tree.sum(axis=1) > 0
        by_tree = by_tree[is_split] if is_split.any() else by_tree  # as in feature_importances_
    elif options.loss is None:
        by_tree = _sums(schema.credit_inputs(_unbiased(forest, rows, n_features)), groups)
    else:
        if options.random_state is not None:
            seed = check_random_state(options.random_state).randint(2**31 - 1)
        increases = _LossIncreases.of(forest, rows, groups, options, seed)
        by_tree = increases.by_tree
    if np.isnan(by_tree).any(axis=1).all():
        raise ValueError(
            "Every row was drawn for every tree, so that no row is out of bag. Grow more trees, or draw fewer rows "
            "with max_samples."
        )
    return Importances(
        names=names,
        kind=options.kind,
        loss=options.loss,
        by_tree=by_tree,
        by_row=None if increases is None else increases.by_row,
        n_splits=splits_of_groups(forest, schema, groups),
        tree_loss=None if increases is None else increases.tree_loss,
    )


def _sums(by_column: Floats, groups: list[list[int]]) -> Floats:
    return np.column_stack([by_column[:, group].sum(axis=1) for group in groups])


def _unbiased(forest: FittedForest, rows: OutOfBag, n_features: int) -> Floats:
    """Return the out-of-bag decrease of the impurity by tree and column, per unit of out-of-bag weight."""
    engine, target = forest.engine, rows.target
    if not rows.n_classes:  # centred targets have the same differences of means, with smaller rounding errors
        target = target - target.mean(axis=0)
    weight, sums = _engine.out_of_bag_sums(
        engine, rows.columns, rows.draws.engine, target, rows.n_classes, rows.weight, rows.n_jobs
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
class _LossIncreases:
    """The increase of the out-of-bag loss when columns are permuted.

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
        rows: OutOfBag,
        groups: list[list[int]],
        options: ImportanceOptions,
        seed: int,
    ) -> _LossIncreases:
        loss, node_class = str(options.loss), None
        if loss == "error":
            value = forest.engine.value.reshape(forest.node_count, -1)
            node_class = np.ascontiguousarray(forest.best_codes(value), dtype=np.int32)
        losses, by_tree, sums, n_trees = _engine.permutation_increases(
            forest.engine,
            rows.columns,
            rows.draws.engine,
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
        return cls(float("nan") if np.isnan(losses).all() else float(np.nanmean(losses)), by_tree, by_row)


def _output_scales(rows: OutOfBag, loss: str) -> list[float]:
    """Return the factors that make losses of several numeric outputs comparable: 1 over the loss of a constant."""
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
