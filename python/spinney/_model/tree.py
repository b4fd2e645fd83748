"""A fitted tree as arrays with scikit-learn's names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.reproducible import times
from spinney._data.types import TableLike
from spinney._model.file.container import refuse
from spinney._model.model import Frame, ModelOfTrees, check_width
from spinney._model.row_predictors import Answer, Row, RowPredictor

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MISSING_LEFT, _CATEGORY, _STOPS = 1, 2, 8
_SURROGATE = 2  # role of a split


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


class FittedTree(ModelOfTrees):
    """The arrays of a fitted tree, one entry per node, in preorder: the left child of a node is the next node.

    Attributes
    ----------
    node_count, n_leaves, max_depth : int
        Size of the tree.
    children_left, children_right : ndarray of int
        Children of each node; -1 in leaves.
    feature : ndarray of int
        Column split on; -2 in leaves.
    threshold : ndarray of float
        Values up to and including it go left; NaN at category splits, -2 in leaves.
    missing_go_to_left : ndarray of uint8
        Whether rows without a value go left.
    impurity, weighted_n_node_samples : ndarray of float
        Impurity and training weight of each node.
    n_node_samples : ndarray of int
        Training rows of each node.
    value : ndarray of shape (node_count, n_outputs, max_n_classes)
        Class shares, or the predicted value.
    cost : ndarray of shape (n_classes, n_classes) or None
        Cost of predicting class j (column) for class i (row), if costs or priors decide what a node predicts.
    n_features : int
        Columns that the tree could split on.
    """

    kind = "tree"
    attribute = "tree_"
    noun = "tree"
    n_features: int

    def __init__(
        self,
        tree: _engine.Tree,
        n_classes: list[int] | None,
        n_outputs: int,
        cost: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(n_classes, n_outputs, cost)
        self._tree = tree

    def __getstate__(self) -> dict[str, Any]:
        state = {"tree": self._tree, "n_classes": self._n_classes, "n_outputs": self.n_outputs, "cost": self.cost}
        return state | {name: self.__dict__[name] for name in ("n_features",) if name in self.__dict__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        width = sum(state["n_classes"]) if state["n_classes"] is not None else state["n_outputs"]
        if state["tree"].value_width != width:
            raise ValueError("this is not a usable tree: its values do not fit its classes")
        self.__init__(state["tree"], state["n_classes"], state["n_outputs"], state.get("cost"))  # type: ignore[misc]
        if "n_features" in state:
            self.n_features = int(state["n_features"])

    def __repr__(self) -> str:
        return f"<FittedTree: {self.node_count} nodes, {self.n_leaves} leaves, depth {self.max_depth}>"

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves are lines, not values."""
        return self.lines is not None

    @cached_property
    def lines(self) -> dict[str, NDArray[Any]] | None:
        """Lines of the leaves, flat, by name; None where leaves are values alone.

        Those of node i are terms begin[i] … begin[i + 1] - 1. It adds base[i], and for each term the slope times how
        far the column `feature`, held between `low` and `high`, is from its `middle`.
        """
        found: Any = self._tree.lines()
        return None if found is None else dict(found)

    @cached_property
    def summed(self) -> _engine.Additive:
        """The tree as a sum of one, which knows what lines say of a row."""
        return _engine.make_additive([self._tree], 1, self._tree.__getstate__()[0])

    @property
    def engine(self) -> _engine.Tree:
        """The engine's tree."""
        return self._tree

    @property
    def n_trees(self) -> int:
        """Number of trees: one."""
        return 1

    def trees(self) -> list[_engine.Tree]:
        """Return the engine's tree."""
        return [self._tree]

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Values without columns by output, flat values by row, column and output, and flat values of pairs."""
        return _engine.shap_of_tree(self._tree, columns, background, interactions, n_jobs)

    def at_points(
        self, columns: _engine.Table, points: _engine.Table, which: list[int], scores: bool, n_jobs: int
    ) -> NDArray[np.float64] | None:
        """Flat values of each row with the values of each point in some columns; None with surrogates or lines."""
        if self.splits is not None or self.has_linear_leaves:
            return None
        found = _engine.replaced_in_tree(self._tree, columns, points, which, n_jobs)
        return found.reshape(columns.n_rows, points.n_rows, -1).transpose(1, 0, 2)

    def exchanged(
        self, columns: _engine.Table, others: NDArray[np.uint32], groups: list[list[int]], n_jobs: int
    ) -> NDArray[np.float64] | None:
        """As that of forests; None with surrogates or lines."""
        if self.splits is not None or self.has_linear_leaves:
            return None
        found = _engine.exchanged_in_tree(self._tree, columns, others, groups, n_jobs)
        return found.reshape(columns.n_rows, len(groups), len(others), -1).transpose(1, 2, 0, 3)

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> TreeRowPredictor:
        """Prepare a handle that predicts single rows."""
        leaf_of, flat, one = self._tree.apply_one, self.flat_value, self.n_outputs == 1
        if self.has_linear_leaves:
            value = _engine.RowScorer(self.summed, np.zeros(1), "identity").value
            return TreeRowPredictor(schema, unseen, leaf_of, lambda numbers: value(numbers))
        if classes is None:
            said = flat[:, 0].tolist() if one else list(flat)
            return TreeRowPredictor(schema, unseen, leaf_of, lambda numbers: said[leaf_of(numbers)])
        said = [classes[code] for code in self.majority[:, 0]] if one else list(self.labels(self.majority, classes))
        shares = list(flat) if one else [[row[s] for s in self.class_columns] for row in flat]
        of_leaf = (lambda numbers: said[leaf_of(numbers)]), (lambda numbers: shares[leaf_of(numbers)])
        return TreeRowPredictor(schema, unseen, leaf_of, *of_leaf)

    def to_header(self) -> dict[str, Any]:
        """Return nothing: a file that names no kind holds a tree."""
        return {}

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Make the tree of a file."""
        if len(trees) != 1:
            refuse(f"is damaged: it holds {len(trees)} trees instead of one")
        check_width(trees, frame)
        tree = cls(trees[0], frame.n_classes, frame.n_outputs, frame.cost)
        tree.n_features = frame.schema.n_split_features
        return tree

    @property
    def n_classes(self) -> NDArray[np.intp]:
        """Classes of each output; 1 for a number."""
        return np.array(self._n_classes or [1] * self.n_outputs, dtype=np.intp)

    @property
    def max_n_classes(self) -> int:
        """Most classes of an output."""
        return int(self.n_classes.max())

    @cached_property
    def children_left(self) -> NDArray[np.int32]:
        """Left child of each node."""
        return _frozen(self._tree.children_left())

    @cached_property
    def children_right(self) -> NDArray[np.int32]:
        """Right child of each node."""
        return _frozen(self._tree.children_right())

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return _frozen(self._tree.feature < 0)

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Depth of each node; the root's is 0."""
        return _frozen(self._tree.depth())

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    @cached_property
    def feature(self) -> NDArray[np.int64]:
        """Column split on."""
        return _frozen(np.where(self.is_leaf, -2, self._tree.feature).astype(np.int64))

    @cached_property
    def threshold(self) -> NDArray[np.float64]:
        """Threshold of each number split."""
        threshold = np.where(self.is_leaf, -2.0, self._tree.threshold)
        threshold[self.is_categorical] = np.nan
        return _frozen(threshold)

    @cached_property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Which nodes split on a set of categories."""
        return _frozen((self._tree.flags & _CATEGORY) != 0)

    @cached_property
    def missing_go_to_left(self) -> NDArray[np.uint8]:
        """Whether missing values go left."""
        return _frozen((self._tree.flags & _MISSING_LEFT).astype(np.uint8))

    @property
    def impurity(self) -> NDArray[np.float64]:
        """Impurity of each node."""
        return self._tree.impurity

    @cached_property
    def n_node_samples(self) -> NDArray[np.int64]:
        """Training rows of each node."""
        return _frozen(self._tree.n_rows.astype(np.int64))

    @property
    def weighted_n_node_samples(self) -> NDArray[np.float64]:
        """Training weight of each node."""
        return self._tree.weight

    @property
    def flat_value(self) -> NDArray[np.float64]:
        """Values without padding, (node_count, value_width)."""
        return self._tree.value.reshape(self.node_count, -1)

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """Values by node, output and class."""
        if self._n_classes is None:
            return self.flat_value[:, :, np.newaxis]
        padded = np.zeros((self.node_count, self.n_outputs, max(self._n_classes)))
        for k, columns in enumerate(self.class_columns):
            padded[:, k, : columns.stop - columns.start] = self.flat_value[:, columns]
        return _frozen(padded)

    @cached_property
    def majority(self) -> NDArray[np.intp]:
        """Code of the most probable (or least costly) class by node and output; the first on a tie."""
        return _frozen(self.best_codes(self.flat_value))

    @property
    def expected_cost(self) -> NDArray[np.float64]:
        """Expected cost of predicting each class, by node; only if there are costs."""
        if self.cost is None:
            raise AttributeError("a tree without costs has no expected cost")
        return np.asarray(times(self.flat_value, self.cost))

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, n_outputs)."""
        return self.majority[self._tree.apply(columns, n_jobs)]

    def predictions(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.float64]:
        """Flat values of each row's leaf."""
        if self.has_linear_leaves:
            return self.summed.sums(columns, 0, 1, n_jobs)
        return self.flat_value[self._tree.apply(columns, n_jobs)]

    def passed_nodes(self, leaves: NDArray[np.uint32]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield, level by level, the rows that get there and the node each is at, given where they come to rest."""
        rows = np.arange(len(leaves))
        at = np.zeros(len(leaves), dtype=np.intp)
        while len(rows):
            yield rows, at
            going_on = at != leaves[rows]  # a row may come to rest before a leaf
            rows, at = rows[going_on], at[going_on]
            right = self.children_right[at].astype(np.intp)
            at = np.where(leaves[rows] >= right, right, at + 1)

    def path(self, leaves: NDArray[np.uint32]) -> csr_array:
        """Return 1 where a row passes a node, (n_rows, node_count), given where the rows come to rest."""
        from scipy.sparse import csr_array

        steps = list(self.passed_nodes(leaves))
        row = np.concatenate([r for r, _ in steps])
        column = np.concatenate([a for _, a in steps])
        ones = np.ones(len(row), dtype=np.int64)
        return csr_array((ones, (row, column)), shape=(len(leaves), self.node_count))

    # ---- rows of plain numbers, without an estimator -----------------------------------------------------------

    def apply(self, X: TableLike) -> NDArray[np.int64]:
        """Leaf of each row of an array, or scipy sparse matrix, of numbers."""
        if self.is_categorical.any():
            raise ValueError(
                "This tree splits on categories, which it knows by number alone. Ask the estimator: model.apply."
            )
        table = read_table(X)
        if table.n_columns != self.n_features:
            raise ValueError(f"X has {table.n_columns} columns, and the tree was grown on {self.n_features}.")
        columns = Schema.learn(table).encode(table, unseen="missing", estimator="The tree")
        return self._tree.apply(columns, 1).astype(np.int64)

    def predict(self, X: TableLike) -> NDArray[np.float64]:
        """Values of each row's leaf, (n_rows, max_n_classes); of several outputs (n_rows, n_outputs, max_n_classes)."""
        if self.has_linear_leaves:
            raise ValueError("The leaves of this tree are lines. Ask the estimator: model.predict.")
        found = self.value[self.apply(X)]
        return np.asarray(found[:, 0] if self.n_outputs == 1 else found)

    def decision_path(self, X: TableLike) -> csr_array:
        """Return 1 where a row of numbers passes a node, (n_rows, node_count)."""
        return self.path(self.apply(X).astype(np.uint32))

    def compute_feature_importances(self, normalize: bool = True) -> NDArray[np.float64]:
        """Weighted decrease of the impurity by column, as a share of the total, or per unit of weight."""
        shares = self.importances(self.n_features)
        burden = self.weighted_n_node_samples * self.impurity
        total = float(burden[0] - burden[self.is_leaf].sum()) / float(self.weighted_n_node_samples[0])
        return shares if normalize else shares * total

    def replaced(self, engine: _engine.Tree) -> FittedTree:
        """Return a view of another tree with the same outputs and classes."""
        return FittedTree(engine, self._n_classes, self.n_outputs, self.cost)

    def with_values(
        self,
        value: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
        impurity: NDArray[np.float64] | None = None,
    ) -> FittedTree:
        """Return a tree of the same splits that says other things of its nodes; `value` is as `flat_value`."""
        engine = self._tree.with_values(
            np.ascontiguousarray(value, dtype=np.float64),
            np.ascontiguousarray(self._tree.weight if weight is None else weight),
            np.ascontiguousarray(self.impurity if impurity is None else impurity),
        )
        return self.replaced(engine)

    def shrunk(self, strength: float) -> FittedTree:
        """Return a tree of the same splits whose values are drawn to those of the nodes above them.

        On the path root = t_0, ..., t_L the value of t_L becomes v(t_0) plus the sum over l of
        (v(t_l) - v(t_{l-1})) / (1 + strength / N(t_{l-1})), where N is the weight of a node.
        """
        return self.replaced(self._tree.shrunk(strength))

    @property
    def splits(self) -> dict[str, NDArray[Any]] | None:
        """Splits weighed at the nodes, flat, by name; None where only the best was kept.

        Those of node i are begin[i] … begin[i + 1] - 1: the split itself (role 0), its competitors (1), its surrogates
        (2).
        """
        found: Any = self._tree.splits()
        return None if found is None else dict(found)

    def left_categories(self, node: int) -> list[int]:
        """Codes of the categories that go left at a category split."""
        return self._tree.left_categories(node)

    def importances(self, n_features: int) -> NDArray[np.float64]:
        """Weighted decrease of the impurity by column, as a share of the total; surrogates are credited their part."""
        split = np.flatnonzero(~self.is_leaf)
        splits = self.splits
        if splits is not None and ((splits["role"] == _SURROGATE).any() or (self._tree.flags[split] & _STOPS).any()):
            return self.credited(splits["improve"][splits["begin"][:-1].clip(max=len(splits["role"]) - 1)], n_features)
        burden = self.weighted_n_node_samples * self.impurity
        gain = burden[split] - burden[split + 1] - burden[self.children_right[split]]
        total = np.bincount(self._tree.feature[split], weights=gain, minlength=n_features)
        return total / total.sum() if total.sum() > 0 else np.zeros(n_features)

    def credited(self, gain: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Share of each column in all gains: those of its splits, and its surrogates' part by adjusted agreement."""
        splits = self.splits
        assert splits is not None
        node = np.repeat(np.arange(self.node_count), np.diff(splits["begin"]))
        part = np.choose(splits["role"], [np.ones(len(node)), np.zeros(len(node)), splits["adjusted"]])
        total = np.bincount(splits["feature"], weights=part * gain[node], minlength=n_features)
        return total / total.sum() if total.sum() > 0 else np.zeros(n_features)


class TreeRowPredictor(RowPredictor):
    """As `RowPredictor`, for a tree, whose leaves it knows."""

    def __init__(
        self, schema: Schema, unseen: str, leaf_of: Answer, answer: Answer, shares: Answer | None = None
    ) -> None:
        super().__init__(schema, unseen, answer, shares)
        self._leaf_of = leaf_of

    def apply(self, row: Row) -> int:
        """Leaf of a row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.

        Returns
        -------
        int
            Node number.
        """
        return int(self._leaf_of(self._numbers(row)))
