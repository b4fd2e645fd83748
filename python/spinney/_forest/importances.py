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

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._estimator.parameters import read_column_groups
from spinney._estimator.target import read_weights
from spinney._estimator.user_criterion import is_user
from spinney._tree.grow.task import OfValues
from spinney.inspect.explain.importances import Importances

Floats = NDArray[np.float64]
KINDS = ("permutation", "unbiased", "impurity")
_CLASS_LOSSES, _NUMBER_LOSSES = ("error", "brier", "margin"), ("squared_error", "absolute_error")


class ForestImportances:
    """Mixin for forests."""

    def importances(
        self,
        X: Any = None,
        y: Any = None,
        kind: str = "permutation",
        *,
        sample_weight: Any = None,
        loss: str | None = None,
        groups: Any = None,
        n_repeats: int = 1,
        by_row: bool = False,
        random_state: Any = None,
    ) -> Importances:
        """How much each column matters, with standard errors over the trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows that the forest was fitted on, in the same order. Not needed for ``kind="impurity"``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their target.
        kind : {"permutation", "unbiased", "impurity"}, default="permutation"
            "permutation": mean over the trees of what the loss of their out-of-bag rows rises by when a column's values
            are permuted among these. "unbiased": decrease of the impurity (Gini, or variance) with one factor of its
            square from out-of-bag rows, so that columns without information get 0 on average, however many values they
            have. "impurity": share in the decrease of the impurity on the rows of the sample, as
            `feature_importances_`: columns with many values get too much. What an oblique split earns by the last two
            is shared out among its columns by the size of their coefficients, for columns of the same spread.
        sample_weight : array-like of shape (n_samples,), optional
            Weights as given to `fit`; rows of weight 0 are not judged.
        loss : str, optional
            With permutation. Classes: "error" (share of wrong classes, the default), "brier" (squared distance of the
            class shares from the class) or "margin" (share of the class less the largest other). Numbers:
            "squared_error" (the default) or "absolute_error". With several outputs, their mean; losses of numbers are
            first divided by what the best constant would lose (variance, or mean deviation from the median), so that
            an output in large units does not drown the others.
        groups : list of lists of columns, or dict of these, optional
            Columns that are permuted together (else: added up), by name or position. Other columns stand alone.
        n_repeats : int, default=1
            Permutations of each column in each tree.
        by_row : bool, default=False
            Also find the importances of single rows, with permutation.
        random_state : int, RandomState or None, default=None
            Seed of the permutations; None: the forest's own, so that the numbers are the same each time.

        Returns
        -------
        Importances
            The numbers, with `to_frame`, `plot` and `plot_rows`.

        See Also
        --------
        spinney.permutation_importance : The same idea on held-out rows, with any model and scorer.
        spinney.importance_frame : Impurity importances as a table.
        """
        return _find_importances(
            self,
            X,
            y,
            kind,
            sample_weight=sample_weight,
            loss=loss,
            groups=groups,
            n_repeats=n_repeats,
            by_row=by_row,
            random_state=random_state,
        )


def _find_importances(
    forest: Any,
    X: Any,
    y: Any,
    kind: str,
    *,
    sample_weight: Any,
    loss: str | None,
    groups: Any,
    n_repeats: int,
    by_row: bool,
    random_state: Any,
) -> Importances:
    """Do what `importances` of a forest says."""
    check_is_fitted(forest)
    if forest.schema_.pool is not None and kind == "permutation":
        raise ValueError(
            "kind='permutation' follows single columns through the trees, and the splits of this forest are oblique. "
            "Use kind='unbiased' or 'impurity', which share a split out among its columns, or "
            "spinney.permutation_importance on held-out rows."
        )
    loss = _checked_loss(forest, kind, loss, n_repeats, by_row)
    names, columns = read_column_groups(groups, forest.schema_)
    n_features = forest.schema_.n_split_features
    rows: Floats | None = None
    tree_loss: float | None = None
    if kind == "impurity":
        by_tree = _sums(forest.schema_.credit_inputs(forest.forest_.tree_importances(n_features)), columns)
        is_split = by_tree.sum(axis=1) > 0
        by_tree = by_tree[is_split] if is_split.any() else by_tree  # as in feature_importances_
    else:
        judged = _Judged.of(forest, X, y, sample_weight, kind)
        if kind == "unbiased":
            by_tree = _sums(forest.schema_.credit_inputs(_unbiased(judged, n_features)), columns)
        else:
            seed = forest._seed if random_state is None else check_random_state(random_state).randint(2**31 - 1)
            assert loss is not None
            tree_losses, by_tree, rows = _permuted(judged, loss, columns, n_repeats, seed, by_row)
            tree_loss = float(np.nanmean(tree_losses)) if not np.isnan(tree_losses).all() else float("nan")
    splits = forest.forest_.split_counts(n_features)
    if forest.schema_.pool is not None:
        splits = forest.schema_.pool.uses(splits)
    n_splits = np.array([splits[group].sum() for group in columns], dtype=np.intp)
    return _report(names, kind, loss, by_tree, rows, n_splits, tree_loss)


def _checked_loss(forest: Any, kind: str, loss: str | None, n_repeats: int, by_row: bool) -> str | None:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}.")
    if kind != "permutation":
        for name, given in (("loss", loss is not None), ("n_repeats", n_repeats != 1), ("by_row", by_row)):
            if given:
                raise ValueError(f"{name} goes with kind='permutation', not with {kind!r}.")
        return None
    if isinstance(n_repeats, bool) or not isinstance(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"n_repeats must be a whole number from 1 up, not {n_repeats!r}.")
    known = _NUMBER_LOSSES if isinstance(forest, OfValues) else _CLASS_LOSSES
    if loss is not None and loss not in known:
        raise ValueError(f"loss must be one of {', '.join(map(repr, known))} here, not {loss!r}.")
    return loss or known[0]


def _sums(by_column: Floats, columns: list[list[int]]) -> Floats:
    return np.column_stack([by_column[:, group].sum(axis=1) for group in columns])


@dataclass(frozen=True)
class _Judged:
    """The training rows as the engine takes them."""

    forest: Any
    columns: _engine.Table
    sampling: _engine.Sampling
    target: NDArray[Any]
    n_classes: list[int]
    weight: Floats | None
    n_jobs: int

    @classmethod
    def of(cls, forest: Any, X: Any, y: Any, sample_weight: Any, kind: str) -> _Judged:
        if X is None or y is None:
            raise ValueError(f"kind={kind!r} is measured on the training rows. Pass X and y as given to fit.")
        if not forest.bootstrap:
            raise ValueError(
                f"kind={kind!r} needs rows that trees have not seen, but with bootstrap=False every tree sees every "
                "row. Fit with bootstrap=True, or use spinney.permutation_importance on held-out rows."
            )
        if is_user(forest.criterion):
            raise ValueError(
                f"kind={kind!r} compares the trees' predictions with y, which a criterion of your own may not allow. "
                "Use spinney.permutation_importance with a scorer of your own."
            )
        columns, draws, target, (array, n_classes) = forest._read_training_rows(X, y)
        weight = read_weights(sample_weight, columns.n_rows)
        if kind == "unbiased" and getattr(forest, "class_weight", None) != "balanced_subsample":
            weight = forest._target_weights(target, y, weight)
        array = array if n_classes else np.ascontiguousarray(array, dtype=np.float64)
        return cls(forest, columns, draws.engine, array, list(n_classes), weight, forest._n_threads)


def _unbiased(judged: _Judged, n_features: int) -> Floats:
    """Out-of-bag decrease of the impurity by tree and column, per unit of the tree's out-of-bag weight."""
    fitted = judged.forest.forest_
    engine = fitted.engine
    target = judged.target
    if not judged.n_classes:  # differences of means are the same, and lose fewer digits
        target = target - target.mean(axis=0)
    weight, sums = _engine.out_of_bag_sums(
        engine, judged.columns, judged.sampling, target, judged.n_classes, judged.weight, judged.n_jobs
    )
    value = engine.value.reshape(engine.size, -1)
    split = np.flatnonzero(engine.feature >= 0)
    left, right = split + 1, engine.right[split]
    both = (weight[left] > 0) & (weight[right] > 0)
    split, left, right = split[both], left[both], right[both]
    unseen = sums[left] / weight[left][:, np.newaxis] - sums[right] / weight[right][:, np.newaxis]
    product = ((value[left] - value[right]) * unseen).sum(axis=1) / judged.target.shape[1]
    gain = weight[left] * weight[right] / (weight[left] + weight[right]) * product
    tree = np.searchsorted(fitted.root, split, side="right") - 1
    total = np.bincount(
        tree * n_features + engine.feature[split], weights=gain, minlength=fitted.n_trees * n_features
    ).reshape(-1, n_features)
    of_tree = weight[fitted.root[:-1]][:, np.newaxis]
    return np.asarray(np.divide(total, of_tree, out=np.full(total.shape, np.nan), where=of_tree > 0))


def _permuted(
    judged: _Judged, loss: str, columns: list[list[int]], n_repeats: int, seed: int, by_row: bool
) -> tuple[Floats, Floats, Floats | None]:
    """Loss by tree, its rise by tree and group, and by row and group."""
    fitted = judged.forest.forest_
    node_class = None
    if loss == "error":
        value = fitted.engine.value.reshape(fitted.node_count, -1)
        node_class = np.ascontiguousarray(fitted.best_codes(value), dtype=np.int32)
    losses, rises, sums, n_trees = _engine.permutation_rises(
        fitted.engine,
        judged.columns,
        judged.sampling,
        judged.target,
        judged.n_classes,
        judged.weight,
        loss,
        node_class,
        columns,
        int(n_repeats),
        int(seed),
        bool(by_row),
        judged.n_jobs,
        _output_scales(judged, loss),
    )
    if not by_row:
        return losses, rises, None
    known = n_trees[:, np.newaxis] > 0
    rows = np.divide(sums, n_trees[:, np.newaxis], out=np.full(sums.shape, np.nan), where=known)
    return losses, rises, np.asarray(rows)


def _output_scales(judged: _Judged, loss: str) -> list[float]:
    """Return what makes the losses of several outputs of numbers comparable: 1 over the loss of the best constant."""
    if judged.n_classes or judged.target.shape[1] == 1:
        return []
    scales = []
    for y in judged.target.T:
        if loss == "squared_error":
            spread = np.average((y - np.average(y, weights=judged.weight)) ** 2, weights=judged.weight)
        else:
            spread = np.average(np.abs(y - _weighted_median(y, judged.weight)), weights=judged.weight)
        scales.append(1.0 / float(spread) if spread > 0 else 1.0)
    return scales


def _weighted_median(y: Floats, weight: Floats | None) -> float:
    if weight is None:
        return float(np.median(y))
    order = np.argsort(y, kind="stable")
    below = np.cumsum(weight[order])
    return float(y[order[np.searchsorted(below, below[-1] / 2)]])


def _report(
    names: list[str],
    kind: str,
    loss: str | None,
    by_tree: Floats,
    by_row: Floats | None,
    n_splits: NDArray[np.intp],
    tree_loss: float | None,
) -> Importances:
    known = by_tree[~np.isnan(by_tree).any(axis=1)]
    if len(known) == 0:
        raise ValueError(
            "Every row was drawn for every tree, so that none is out of bag. Grow more trees, or draw fewer rows with "
            "max_samples."
        )
    importance = known.mean(axis=0)
    spread = known.std(axis=0, ddof=1) if len(known) > 1 else np.full(len(names), np.nan)
    error = spread / np.sqrt(len(known))
    z = np.divide(importance, error, out=np.full(len(names), np.nan), where=error > 0)
    return Importances(names, kind, loss, importance, error, z, by_tree, by_row, n_splits, tree_loss)
