"""A forest as its trees: one by one, and the leaves that rows reach in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.utils.validation import check_is_fitted

from spinney._estimator.members import SequenceOfMembers
from spinney._estimator.summary import About, counted
from spinney._estimator.table_estimator import TableEstimator
from spinney._forest.growing.rows import Draws
from spinney._model.forest import FittedForest
from spinney._model.lazy_sequence import LazySequence

Floats = NDArray[np.float64]


class TreesOfForest(SequenceOfMembers, TableEstimator):
    """The trees of a forest, with or without a target, as estimators and as numbers."""

    _model_attribute = "forest_"
    _tree_class: ClassVar[Any]  # the estimator of one tree
    forest_: FittedForest
    bootstrap: bool

    @property
    def estimators_(self) -> Sequence[Any]:
        """The trees as estimators, made on demand."""
        check_is_fitted(self)
        return LazySequence(self.forest_.n_trees, self._tree_estimator)

    def _tree_estimator(self, t: int) -> Any:
        kind = self._tree_class
        own = self.get_params(deep=False)
        own |= {"random_state": None}
        if own.get("class_weight") == "balanced_subsample":
            own["class_weight"] = None
        if own.get("shrinkage") == "auto":
            own["shrinkage"] = getattr(self, "shrinkage_", None)
        tree = kind(**{name: own[name] for name in kind._get_param_names() if name in own})
        names = ("classes_", "n_classes_", "n_outputs_", "cost_matrix_", "priors_")
        learned = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if getattr(self, "_ranges", None) is not None:
            learned["_had_missing"] = self._ranges.has_missing.tolist()
        tree._keep(self.schema_, self.forest_.tree(t), learned)
        return tree

    @property
    def estimators_samples_(self) -> Sequence[NDArray[np.intp]]:
        """Rows that each tree was grown on, in ascending order, as often as they were drawn; made on demand."""
        check_is_fitted(self)
        everything: NDArray[np.intp] | None = getattr(self, "_all_rows", None)
        if everything is not None:
            return LazySequence(self.forest_.n_trees, lambda _: everything.copy())
        return LazySequence(self.forest_.n_trees, self._known_draws().rows)

    def _known_draws(self) -> Draws:
        draws: Draws | None = getattr(self, "_draws", None)
        if draws is not None:
            return draws
        if not self.bootstrap:
            raise AttributeError("With bootstrap=False every tree is grown on all rows. Fit with bootstrap=True.")
        raise AttributeError(
            "A model file does not keep which rows were drawn unless keep_rows=True. Pickle the model, or fit it again."
        )

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Leaf of each row in each tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_trees)
            Node numbers, counted within each tree.
        """
        check_is_fitted(self)
        apply = self.forest_.engine.apply
        return self._by_blocks(X, lambda columns: apply(columns, self._n_threads).astype(np.int64))

    def decision_path(self, X: Any) -> tuple[csr_array, NDArray[np.int64]]:
        """Nodes that each row passes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        path : csr_array of shape (n_samples, node_count)
            1 where the row passes the node.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            The nodes of tree t are columns n_nodes_ptr[t] to n_nodes_ptr[t + 1] - 1.
        """
        columns = self._columns(X)
        leaves = self.forest_.engine.apply(columns, self._n_threads)
        paths = [self.forest_.tree(t).path(leaves[:, t]) for t in range(self.forest_.n_trees)]
        return csr_array(hstack(paths, format="csr")), self.forest_.root.astype(np.int64)


class ForestTrees(TreesOfForest):
    """The trees of a forest that predicts a target."""

    def _about(self) -> About:
        n_trees, n_leaves, score = len(self), self.forest_.n_leaves, float(getattr(self, "oob_score_", math.nan))
        is_known, has_classes = math.isfinite(score), hasattr(self, "classes_")
        size = f"{counted(n_trees, 'tree', 'trees')}, {counted(n_leaves, 'leaf', 'leaves')}"
        lines = {"forest": size}
        if is_known:
            name = "accuracy" if has_classes else "R²"
            lines[f"{name}, out of bag"] = f"{score:.1%}" if has_classes else f"{score:.4g}"
        return About(
            "forest",
            {"trees": n_trees, "leaves": n_leaves, "out_of_bag": score if is_known else None},
            lines,
            f"{size}, out-of-bag score {score:.3f}" if is_known else size,
            self.estimators_,
        )

    @property
    def feature_importances_(self) -> Floats:
        """Mean over the trees of each column's share in the decrease of the impurity."""
        check_is_fitted(self)
        return self.schema_.credit_inputs(self.forest_.importances(self.schema_.n_split_features))
