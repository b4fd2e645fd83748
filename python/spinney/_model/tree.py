"""A fitted tree as arrays with scikit-learn's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.reproducible import times
from spinney._data.types import TableLike
from spinney._model.file.container import refuse
from spinney._model.model import ModelOfTrees, ModelSpec, check_width, fractions, split_gains
from spinney._model.row_predictors import Row, RowFunction, RowPredictor

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MISSING_LEFT, _CATEGORY, _STOPS = 1, 2, 8
_SURROGATE = 2  # role of a split


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _node_array(read: Callable[[FittedTree], NDArray[Any]]) -> cached_property[NDArray[Any]]:
    """Return an attribute that holds a read-only array with an entry for each node."""
    return cached_property(lambda tree: _frozen(read(tree)))


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
        Class probabilities, or the predicted number.
    cost : ndarray of shape (n_classes, n_classes) or None
        Cost of predicting class j (column) for class i (row), if costs or priors decide the predicted class.
    n_features : int
        Columns that the tree could split on.
    """

    kind = "tree"
    attribute = "tree_"
    noun = "tree"
    engine: _engine.Tree
    n_features: int

    def __init__(
        self,
        tree: _engine.Tree,
        n_classes: list[int] | None,
        n_outputs: int,
        cost: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(n_classes, n_outputs, cost)
        self.engine = tree

    def __getstate__(self) -> dict[str, Any]:
        state = {"tree": self.engine, "n_classes": self._n_classes, "n_outputs": self.n_outputs, "cost": self.cost}
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
        """Whether leaves hold linear models instead of constants."""
        return self.linear_terms is not None

    @cached_property
    def linear_terms(self) -> dict[str, NDArray[Any]] | None:
        """Terms of linear leaves, as flat arrays by name; None where leaves are constants.

        Node i has the terms begin[i] … begin[i + 1] - 1. It predicts base[i] plus, for each term, the slope times the
        distance of the column `feature`, clipped to `low` and `high`, from `middle`.
        """
        found: Any = self.engine.linear_leaves()
        return None if found is None else dict(found)

    @cached_property
    def summed(self) -> _engine.Additive:
        """The tree as an additive model, which predicts with linear leaves."""
        return _engine.make_additive([self.engine], 1, self.engine.__getstate__()[0])

    @property
    def n_trees(self) -> int:
        """Number of trees, always 1."""
        return 1

    def trees(self) -> list[_engine.Tree]:
        """Return the engine's tree."""
        return [self.engine]

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Shapley values: base values by output, values by row, column and output, and values of pairs of columns."""
        return _engine.shap_of_tree(self.engine, columns, background, interactions, n_jobs)

    def at_points(
        self, columns: _engine.Table, points: _engine.Table, which: list[int], scores: bool, n_jobs: int
    ) -> NDArray[np.float64] | None:
        """Predictions with some columns replaced, as in the base class; None with surrogates or linear leaves."""
        if self.splits is not None or self.has_linear_leaves:
            return None
        found = _engine.replaced_in_tree(self.engine, columns, points, which, n_jobs)
        return found.reshape(columns.n_rows, points.n_rows, -1).transpose(1, 0, 2)

    def exchanged(
        self, columns: _engine.Table, others: NDArray[np.uint32], groups: list[list[int]], n_jobs: int
    ) -> NDArray[np.float64] | None:
        """Predictions with columns of other rows, as in `FittedForest`; None with surrogates or linear leaves."""
        if self.splits is not None or self.has_linear_leaves:
            return None
        found = _engine.exchanged_in_tree(self.engine, columns, others, groups, n_jobs)
        return found.reshape(columns.n_rows, len(groups), len(others), -1).transpose(1, 2, 0, 3)

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> TreeRowPredictor:
        """Return a predictor of single rows."""
        leaf_of, flat, one = self.engine.apply_one, self.flat_value, self.n_outputs == 1
        if self.has_linear_leaves:
            value = _engine.RowScorer(self.summed, np.zeros(1), "identity").value
            return TreeRowPredictor(schema, unseen, leaf_of, lambda numbers: value(numbers))
        if classes is None:
            values = flat[:, 0].tolist() if one else list(flat)
            return TreeRowPredictor(schema, unseen, leaf_of, lambda numbers: values[leaf_of(numbers)])
        labels = [classes[code] for code in self.majority[:, 0]] if one else list(self.labels(self.majority, classes))
        proba = list(flat) if one else [[row[s] for s in self.class_columns] for row in flat]
        of_leaf = (lambda numbers: labels[leaf_of(numbers)]), (lambda numbers: proba[leaf_of(numbers)])
        return TreeRowPredictor(schema, unseen, leaf_of, *of_leaf)

    def to_header(self) -> dict[str, Any]:
        """Return no entries: a file without a kind holds a tree."""
        return {}

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the tree from a file."""
        if len(trees) != 1:
            refuse(f"is damaged: it holds {len(trees)} trees instead of one")
        check_width(trees, spec)
        tree = cls(trees[0], spec.n_classes, spec.n_outputs, spec.cost)
        tree.n_features = spec.schema.n_split_features
        return tree

    @property
    def n_classes(self) -> NDArray[np.intp]:
        """Number of classes of each output; 1 in a regression."""
        return np.array(self._n_classes or [1] * self.n_outputs, dtype=np.intp)

    @property
    def max_n_classes(self) -> int:
        """Largest number of classes of an output."""
        return int(self.n_classes.max())

    children_left = _node_array(lambda tree: tree.engine.children_left())
    children_right = _node_array(lambda tree: tree.engine.children_right())
    is_leaf = _node_array(lambda tree: tree.engine.feature < 0)
    is_categorical = _node_array(lambda tree: (tree.engine.flags & _CATEGORY) != 0)
    depth = _node_array(lambda tree: tree.engine.depth())  # 0 at the root
    feature = _node_array(lambda tree: np.where(tree.is_leaf, -2, tree.engine.feature).astype(np.int64))
    missing_go_to_left = _node_array(lambda tree: (tree.engine.flags & _MISSING_LEFT).astype(np.uint8))
    n_node_samples = _node_array(lambda tree: tree.engine.n_rows.astype(np.int64))
    impurity = _node_array(lambda tree: tree.engine.impurity)
    weighted_n_node_samples = _node_array(lambda tree: tree.engine.weight)
    majority = _node_array(lambda tree: tree.best_codes(tree.flat_value))  # the predicted class, by node and output

    @cached_property
    def threshold(self) -> NDArray[np.float64]:
        """Threshold of each number split."""
        threshold = np.where(self.is_leaf, -2.0, self.engine.threshold)
        threshold[self.is_categorical] = np.nan
        return _frozen(threshold)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    @property
    def flat_value(self) -> NDArray[np.float64]:
        """Values without padding, (node_count, value_width)."""
        return self.engine.value.reshape(self.node_count, -1)

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """Values by node, output and class."""
        if self._n_classes is None:
            return self.flat_value[:, :, np.newaxis]
        padded = np.zeros((self.node_count, self.n_outputs, max(self._n_classes)))
        for k, columns in enumerate(self.class_columns):
            padded[:, k, : columns.stop - columns.start] = self.flat_value[:, columns]
        return _frozen(padded)

    @property
    def expected_cost(self) -> NDArray[np.float64]:
        """Expected cost of predicting each class, by node; needs costs."""
        if self.cost is None:
            raise AttributeError("a tree without costs has no expected cost")
        return np.asarray(times(self.flat_value, self.cost))

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Codes of the predicted classes, (n_rows, n_outputs)."""
        return self.majority[self.engine.apply(columns, n_jobs)]

    def predictions(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.float64]:
        """Values of each row's leaf, as flat rows."""
        if self.has_linear_leaves:
            return self.summed.sums(columns, 0, 1, n_jobs)
        return self.flat_value[self.engine.apply(columns, n_jobs)]

    def passed_nodes(self, leaves: NDArray[np.uint32]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield, level by level, the rows that reach it and the node of each; `leaves` holds each row's last node."""
        rows = np.arange(len(leaves))
        at = np.zeros(len(leaves), dtype=np.intp)
        while len(rows):
            yield rows, at
            descends = at != leaves[rows]  # the last node of a row may be above a leaf
            rows, at = rows[descends], at[descends]
            right = self.children_right[at].astype(np.intp)
            at = np.where(leaves[rows] >= right, right, at + 1)

    def path(self, leaves: NDArray[np.uint32]) -> csr_array:
        """Return the decision paths, (n_rows, node_count), of rows with these last nodes, as 0 and 1."""
        from scipy.sparse import csr_array

        steps = list(self.passed_nodes(leaves))
        row = np.concatenate([r for r, _ in steps])
        column = np.concatenate([a for _, a in steps])
        ones = np.ones(len(row), dtype=np.int64)
        return csr_array((ones, (row, column)), shape=(len(leaves), self.node_count))

    # ---- tables of numbers, without an estimator -----------------------------------------------------------

    def apply(self, X: TableLike) -> NDArray[np.int64]:
        """Leaf of each row of an array, or scipy sparse matrix, of numbers."""
        if self.is_categorical.any():
            raise ValueError(
                "This tree splits on categories, of which it knows the codes alone. Use the estimator: model.apply."
            )
        table = read_table(X)
        if table.n_columns != self.n_features:
            raise ValueError(f"X has {table.n_columns} columns, and the tree was grown on {self.n_features}.")
        columns = Schema.learn(table).encode(table, unseen="missing", estimator="The tree")
        return self.engine.apply(columns, 1).astype(np.int64)

    def predict(self, X: TableLike) -> NDArray[np.float64]:
        """Values of each row's leaf, (n_rows, max_n_classes); of several outputs (n_rows, n_outputs, max_n_classes)."""
        if self.has_linear_leaves:
            raise ValueError("This tree has linear leaves. Use the estimator: model.predict.")
        found = self.value[self.apply(X)]
        return np.asarray(found[:, 0] if self.n_outputs == 1 else found)

    def decision_path(self, X: TableLike) -> csr_array:
        """Return 1 where a row of numbers passes a node, (n_rows, node_count)."""
        return self.path(self.apply(X).astype(np.uint32))

    def compute_feature_importances(self, normalize: bool = True) -> NDArray[np.float64]:
        """Weighted decrease of the impurity by column, as a fraction of the total, or per unit of weight."""
        fractions = self.importances(self.n_features)
        burden = self.weighted_n_node_samples * self.impurity
        total = float(burden[0] - burden[self.is_leaf].sum()) / float(self.weighted_n_node_samples[0])
        return fractions if normalize else fractions * total

    def replaced(self, engine: _engine.Tree) -> FittedTree:
        """Return a view of another tree with the same outputs and classes."""
        return FittedTree(engine, self._n_classes, self.n_outputs, self.cost)

    def with_values(
        self,
        value: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
        impurity: NDArray[np.float64] | None = None,
    ) -> FittedTree:
        """Return a tree with the same splits and other node values; `value` has the shape of `flat_value`."""
        engine = self.engine.with_values(
            np.ascontiguousarray(value, dtype=np.float64),
            np.ascontiguousarray(self.engine.weight if weight is None else weight),
            np.ascontiguousarray(self.impurity if impurity is None else impurity),
        )
        return self.replaced(engine)

    def voting(self) -> FittedTree:
        """Return a tree with the same splits whose leaves give their class the probability 1."""
        value, leaf = self.flat_value.copy(), np.flatnonzero(self.is_leaf)
        codes = self.best_codes(value[leaf])
        value[leaf] = 0.0
        for k, columns in enumerate(self.class_columns):
            value[leaf, columns.start + codes[:, k]] = 1.0
        return self.with_values(value)

    def shrunk(self, strength: float) -> FittedTree:
        """Return a tree with the same splits and values shrunk towards those of their ancestors.

        On the path root = t_0, ..., t_L the value of t_L becomes v(t_0) plus the sum over l of
        (v(t_l) - v(t_{l-1})) / (1 + strength / N(t_{l-1})), where N is the weight of a node.
        """
        return self.replaced(self.engine.shrunk(strength))

    @property
    def splits(self) -> dict[str, NDArray[Any]] | None:
        """Splits considered at the nodes, as flat arrays by name; None where only the best was retained.

        Node i has the splits begin[i] … begin[i + 1] - 1: the split itself (role 0), its competitors (1) and its
        surrogates (2).
        """
        found: Any = self.engine.splits()
        return None if found is None else dict(found)

    def left_categories(self, node: int) -> list[int]:
        """Codes of the categories that go left at a category split."""
        return self.engine.left_categories(node)

    def importances(self, n_features: int) -> NDArray[np.float64]:
        """Fraction of the weighted decrease of the impurity by column; surrogates are credited by their agreement."""
        splits, engine = self.splits, self.engine
        split, gain = split_gains(engine.feature, self.children_right, engine.weight, engine.impurity)
        if splits is not None and ((splits["role"] == _SURROGATE).any() or (engine.flags[split] & _STOPS).any()):
            return self.credited(splits["improve"][splits["begin"][:-1].clip(max=len(splits["role"]) - 1)], n_features)
        return fractions(np.bincount(engine.feature[split], weights=gain, minlength=n_features))

    def credited(self, gain: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Fraction of all gains by column, where a surrogate has its split's gain times its adjusted agreement."""
        splits = self.splits
        assert splits is not None
        node = np.repeat(np.arange(self.node_count), np.diff(splits["begin"]))
        credit = np.choose(splits["role"], [np.ones(len(node)), np.zeros(len(node)), splits["adjusted"]])
        return fractions(np.bincount(splits["feature"], weights=credit * gain[node], minlength=n_features))


class TreeRowPredictor(RowPredictor):
    """A `RowPredictor` of a tree, which can also return the leaf of a row."""

    def __init__(
        self, schema: Schema, unseen: str, leaf_of: RowFunction, predict: RowFunction, proba: RowFunction | None = None
    ) -> None:
        super().__init__(schema, unseen, predict, proba)
        self._leaf_of = leaf_of

    def apply(self, row: Row) -> int:
        """Return the leaf of a row.

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
