"""Proximities of a forest: the fraction of its trees in which two rows fall into the same leaf.

The matrix of rows by leaves is sparse, and the product of two such matrices counts the trees in which rows share a
leaf. It is computed in blocks of rows, so that memory is bounded by the selected entries. Outlier scores and maps are
computed from it.

Kinds
-----
all     all trees
oob     trees that were grown without both rows; with a second table, without the row of the second table
in_bag  trees that were grown on both rows
gap     trees grown without the first row: fraction of the second row in the tree's sample within the leaf. The sums
        over each row are 1, and weighting the targets by them gives the out-of-bag prediction if rows and classes have
        no weights (Rhodes, Cutler and Moon 2023)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.types import ColumnLike, Floats, Integers, TableLike
from spinney._estimator.parallel import count_threads, in_order
from spinney._estimator.parameters import require_whole
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.forest import FittedForest


@dataclass(frozen=True, eq=False)
class RowLeaves:
    """The leaf of each row in each tree of a forest.

    Attributes
    ----------
    nodes : ndarray of shape (n_rows, n_trees)
        Leaves, numbered over all trees.
    n_nodes : int
        Number of nodes of all trees.
    drawn : ndarray of shape (n_rows, n_trees), or None
        How often the row was drawn for the tree; None: never, or not needed.
    """

    nodes: Integers
    n_nodes: int
    drawn: NDArray[np.uint32] | None = None

    @classmethod
    def of(
        cls, forest: FittedForest, columns: _engine.Table, n_jobs: int, drawn: NDArray[np.uint32] | None = None
    ) -> RowLeaves:
        """Find the leaves of rows."""
        leaves = forest.engine.apply(columns, n_jobs).astype(np.int64)
        return cls(leaves + forest.root[:-1], forest.node_count, drawn)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.nodes)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.nodes.shape[1])

    def take(self, rows: NDArray[np.intp]) -> RowLeaves:
        """Return a subset of the rows."""
        return RowLeaves(self.nodes[rows], self.n_nodes, None if self.drawn is None else self.drawn[rows])

    def one_hot(self, forest: FittedForest) -> csr_array:
        """Return the one-hot encoding of the leaves: a column per leaf of all trees."""
        is_leaf = forest.engine.feature < 0
        columns = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
        starts = np.arange(self.n_rows + 1, dtype=np.int64) * self.n_trees
        shape = (self.n_rows, int(columns.max()) + 1)
        return csr_array((np.ones(self.nodes.size), columns[self.nodes].ravel(), starts), shape=shape)


def leaf_names(forest: FittedForest) -> list[tuple[int, int]]:
    """Return the tree and the node number of each leaf."""
    leaves = np.flatnonzero(forest.engine.feature < 0)
    tree = np.searchsorted(forest.root, leaves, side="right") - 1
    return list(zip(tree.tolist(), (leaves - forest.root[tree]).tolist(), strict=True))


Kind = Literal["all", "oob", "in_bag", "gap"]
KINDS = ("all", "oob", "in_bag", "gap")
Found = TypeVar("Found")
Words = NDArray[np.uint32]
Bits = NDArray[np.uint64]

_MOST_DENSE = 2**27  # entries: 1 GiB
_NORMAL_MAD = 1.4826022185056018  # standard deviation of a normal variable over its median absolute deviation
_BLOCK_PRODUCTS = 2**22  # pairs of rows in the same leaf, over all trees, in one block: about 50 ms
_UNITS = 2**62  # of a proximity of 1: fractions are integers in this unit, so that sums do not depend on their order
_NO_LEAF = 2**32 - 1  # stands for no leaf
_BITS_SET = np.array([bin(i).count("1") for i in range(2**16)], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Proximities:
    """Proximities between the rows of two tables, or of one table, computed in blocks.

    Attributes
    ----------
    left : RowLeaves
        The rows of the first table.
    tree_weight : ndarray of shape (n_rows, n_trees)
        Weight of each tree for the row; for the kind "gap" as integers in units of 2**-62.
    right : csr_array of shape (n_nodes, n_columns)
        Weights of the rows of the second table in each leaf.
    is_self : bool
        Whether both tables are the same.
    divisor : int
        Number of trees by which counts are divided; with `pairs`, the number of trees that count for both rows is used
        instead; 0: the weights are fractions already.
    pairs : tuple of ndarray, or None
        Bits of the trees that count, by row of each table.
    """

    left: RowLeaves
    tree_weight: Floats | Integers
    right: csr_array
    is_self: bool
    divisor: int
    pairs: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None

    @classmethod
    def between(cls, left: RowLeaves, right: RowLeaves, kind: Kind, is_self: bool) -> Proximities:
        """Compare the rows of two tables; `is_self`: they are the same."""
        if kind == "all":  # whole numbers, whose sums are exact
            ones = np.float64(1.0)
            left_ones, right_ones = np.broadcast_to(ones, left.nodes.shape), np.broadcast_to(ones, right.nodes.shape)
            return cls(left, left_ones, _by_leaf(right, right_ones), is_self, left.n_trees)
        assert right.drawn is not None
        if kind == "gap":
            units = np.rint(_gap_fractions(left, right) * _UNITS).astype(np.int64)
            return cls(left, units, _by_leaf(right, right.drawn, np.int64), is_self, 0)
        counts = right.drawn == 0 if kind == "oob" else right.drawn > 0
        left_counts = counts if is_self else np.ones(left.nodes.shape, dtype=bool)
        bits = _bits(left_counts), _bits(counts)
        return cls(left, left_counts.astype(np.float64), _by_leaf(right, counts), is_self, left.n_trees, bits)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows of both tables."""
        return self.left.n_rows, self.right.shape[1]

    def blocks(self) -> list[tuple[int, int]]:
        """Split the rows into blocks of about the same number of products."""
        in_leaf = np.diff(self.right.indptr)
        products = np.cumsum(in_leaf[self.left.nodes].sum(axis=1, dtype=np.int64))
        first, found = 0, []
        while first < self.left.n_rows:
            done = products[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(products, done + _BLOCK_PRODUCTS, side="right")))
            found.append((first, last))
            first = last
        return found

    def block(self, first: int, last: int) -> csr_array:
        """Return the proximities of rows first … last - 1, without those of a row to itself."""
        nodes, tree_weight = self.left.nodes[first:last], self.tree_weight[first:last]
        used = tree_weight > 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        found = (
            csr_array((tree_weight[used], nodes[used], starts), shape=(last - first, self.left.n_nodes)) @ self.right
        )
        rows = np.repeat(np.arange(first, last), np.diff(found.indptr))
        if self.pairs is not None:
            found.data /= _common_bits(*self.pairs, rows, found.indices)
        elif self.divisor:
            found.data /= self.divisor
        else:
            found = csr_array((found.data / _UNITS, found.indices, found.indptr), shape=found.shape)
        return select_entries(found, found.indices != rows) if self.is_self else found

    def each_block(self, n_jobs: int | None, finish: Callable[[csr_array], Found]) -> Iterator[tuple[int, int, Found]]:
        """Yield (first, last, finish(block)) in order; the blocks are computed by threads."""
        blocks = self.blocks()

        def work(b: int) -> Found:
            return finish(self.block(*blocks[b]))

        made = in_order(work, len(blocks), count_threads(n_jobs, len(blocks)))
        for (first, last), result in zip(blocks, made, strict=True):
            yield first, last, result

    def dense(self, n_jobs: int | None, diagonal: float) -> Floats:
        """Return all proximities as an array."""
        out = np.empty(self.shape)
        for first, last, block in self.each_block(n_jobs, lambda block: block):
            out[first:last] = block.toarray()
        if self.is_self:
            np.fill_diagonal(out, diagonal)
        return out

    def sparse(self, n_jobs: int | None, n_neighbors: int | None, threshold: float = 0.0) -> csr_array:
        """Return the largest proximities of each row that reach the threshold, without those of a row to itself.

        Ties are broken by the order of the columns.
        """
        if self.divisor == 0:
            return self._sparse_by_products(n_jobs, n_neighbors, threshold)
        n, columns, data = _engine.nearest_rows(
            *self._leaves(), self.shape[1] if n_neighbors is None else n_neighbors, threshold, n_jobs or 0
        )
        starts = np.concatenate([[0], np.cumsum(n, dtype=np.int64)])
        return csr_array((data, columns.astype(np.int64), starts), shape=self.shape)

    def _sparse_by_products(self, n_jobs: int | None, n_neighbors: int | None, threshold: float) -> csr_array:
        def finish(block: csr_array) -> csr_array:
            if threshold > 0:
                block = select_entries(block, block.data >= threshold)
            return block if n_neighbors is None else select_largest(block, n_neighbors)

        found = csr_array(vstack([b for *_, b in self.each_block(n_jobs, finish)], format="csr"))
        found.sort_indices()
        return found

    def _leaves(self) -> tuple[Words, Bits, Words, int, bool, Bits | None, Bits | None]:
        """Return the engine's arguments for kinds that count trees; "gap" uses sparse products instead."""
        nodes = np.where(self.tree_weight > 0, self.left.nodes, _NO_LEAF).astype(np.uint32)
        starts, others = self.right.indptr.astype(np.uint64), self.right.indices.astype(np.uint32)
        left, right = (None, None) if self.pairs is None else self.pairs
        return nodes, starts, others, self.shape[1], self.is_self, left, right

    def symmetric(self, n_jobs: int | None, n_neighbors: int | None, threshold: float = 0.0) -> csr_array:
        """Return the entries that are selected for either of their rows, with 1 in the diagonal."""
        found = self.sparse(n_jobs, n_neighbors, threshold)
        if n_neighbors is not None:
            found = csr_array(found.maximum(found.T))
        found = csr_array(found + eye_array(self.shape[0], format="csr"))
        found.sort_indices()
        return found

    def sums_of_squares(self, n_jobs: int | None) -> Floats:
        """Return the sum of squared proximities of each row, without that to itself."""
        return np.asarray(_engine.squared_proximities(*self._leaves(), n_jobs or 0))


def select_entries(matrix: csr_array, selected: NDArray[np.bool_]) -> csr_array:
    """Return a matrix with only the selected entries."""
    starts = np.concatenate([[0], np.cumsum(selected)])[matrix.indptr]
    return csr_array((matrix.data[selected], matrix.indices[selected], starts), shape=matrix.shape)


def select_largest(matrix: csr_array, n: int) -> csr_array:
    """Return the n largest entries of each row; ties are broken by the order of the columns."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    rank = np.empty(len(rows), dtype=np.int64)
    rank[np.lexsort((matrix.indices, -matrix.data, rows))] = np.arange(len(rows)) - matrix.indptr[rows]
    return select_entries(matrix, rank < n)


def _by_leaf(
    rows: RowLeaves, weight: NDArray[np.number | np.bool_], kind: type[np.float64] | type[np.int64] = np.float64
) -> csr_array:
    """Return the matrix of weights by leaf and row."""
    used = np.asarray(weight > 0)
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    matrix = csr_array((weight[used].astype(kind), rows.nodes[used], starts), shape=(rows.n_rows, rows.n_nodes))
    return csr_array(matrix.T.tocsr())


def _gap_fractions(left: RowLeaves, right: RowLeaves) -> Floats:
    assert right.drawn is not None
    in_leaf = np.bincount(right.nodes.ravel(), weights=right.drawn.ravel(), minlength=right.n_nodes)
    unseen = np.ones(left.nodes.shape, dtype=bool) if left.drawn is None else left.drawn == 0
    leaf_size = in_leaf[left.nodes]
    fractions = np.divide(unseen, leaf_size, out=np.zeros(unseen.shape), where=unseen & (leaf_size > 0))
    return np.asarray(fractions / np.maximum(unseen.sum(axis=1, keepdims=True), 1))


def _bits(counts: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack each row into words of 64 bits."""
    n_rows, n_trees = counts.shape
    padded = np.zeros((n_rows, -(-n_trees // 64) * 64), dtype=bool)
    padded[:, :n_trees] = counts
    return np.packbits(padded, axis=1).view(np.uint64)


def _common_bits(
    left: NDArray[np.uint64], right: NDArray[np.uint64], rows: NDArray[np.intp], columns: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return the number of common bits of each pair; at least 1."""
    n = np.zeros(len(rows), dtype=np.int64)
    for word in range(left.shape[1]):
        both = left[rows, word] & right[columns, word]
        for part in range(0, 64, 16):
            n += _BITS_SET[(both >> np.uint64(part)) & np.uint64(0xFFFF)]
    return np.maximum(n, 1)


def _standardised(raw: Floats) -> Floats:
    median = np.median(raw)
    deviation = raw - median
    rounding = 1e-12 * median
    for scale in (_NORMAL_MAD * np.median(np.abs(deviation)), np.abs(deviation).mean()):
        if scale > rounding:
            return np.asarray(deviation / scale)
    return np.zeros(len(raw))


def map_rows(leaves: RowLeaves, n_components: int) -> Floats:
    """Return coordinates of rows by classical scaling of the proximities, without computing all of them.

    The proximities are A Aᵀ / T for the 0-1 matrix A of rows and leaves. Centred on both sides they are the products
    of the rows of the centred A, so that its leading singular vectors place the rows.
    """
    n_rows, n_trees = leaves.nodes.shape
    if not 1 <= n_components <= n_rows:
        raise ValueError(f"n_components must be from 1 to the number of rows, {n_rows}; it is {n_components}.")
    used, columns = np.unique(leaves.nodes, return_inverse=True)
    starts = np.arange(n_rows + 1) * n_trees
    incidence = csr_array((np.ones(leaves.nodes.size), columns.reshape(-1), starts), shape=(n_rows, len(used)))
    mean = np.asarray(incidence.sum(axis=0)).reshape(-1) / n_rows
    if len(used) == n_trees:  # no tree separates any rows
        return np.zeros((n_rows, n_components))
    if n_components >= min(n_rows, len(used)) - 1:  # the iterative method cannot find all directions
        left, size, _ = np.linalg.svd(incidence.toarray() - mean, full_matrices=False)
    else:
        left, size = _leading(incidence, mean, n_components)
    left, size = left[:, :n_components], size[:n_components]
    # the sign of an eigenvector is arbitrary
    largest = left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])]
    # squared distances of classical scaling are p_ii + p_jj - 2 p_ij = 2 (1 - p), twice the squared distances here
    placed = left * np.where(largest < 0, -1.0, 1.0) * size / np.sqrt(2 * n_trees)
    return np.pad(placed, ((0, 0), (0, n_components - placed.shape[1])))


def _leading(incidence: csr_array, mean: Floats, n_components: int) -> tuple[Floats, Floats]:
    n_rows, n_columns = incidence.shape
    transposed = csr_array(incidence.T.tocsr())
    operator = LinearOperator(
        (n_rows, n_columns),
        matvec=lambda v: incidence @ v.reshape(-1) - mean @ v.reshape(-1),
        rmatvec=lambda u: transposed @ u.reshape(-1) - mean * u.sum(),
        dtype=np.float64,
    )
    start = np.random.default_rng(0).normal(size=min(n_rows, n_columns))
    left, size, _ = svds(operator, k=n_components, v0=start, return_singular_vectors="u")
    order = np.argsort(-size, kind="stable")
    return left[:, order], np.asarray(size[order], dtype=np.float64)


# ---- methods of forests ------------------------------------------------------------------------------------------


def apply(forest: TableEstimator, X: TableLike) -> Integers:
    """Return the leaf of each row in each tree.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_trees)
        Node numbers, counted within each tree.
    """
    check_is_fitted(forest)
    apply, n_jobs = forest.forest_.engine.apply, forest._n_threads
    return forest._by_blocks(X, lambda columns: apply(columns, n_jobs).astype(np.int64))


def decision_path(forest: TableEstimator, X: TableLike) -> tuple[csr_array, Integers]:
    """Return the nodes on the path of each row.

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
    columns, trees = forest._columns(X), forest.forest_
    leaves = trees.engine.apply(columns, forest._n_threads)
    paths = [trees.tree(t).path(leaves[:, t]) for t in range(trees.n_trees)]
    return csr_array(hstack(paths, format="csr")), trees.root.astype(np.int64)


def proximity(
    forest: TableEstimator,
    X: TableLike,
    Y: TableLike = None,
    *,
    kind: Kind = "all",
    n_neighbors: int | None = None,
    threshold: float | None = None,
    sparse: bool | None = None,
) -> Any:  # ndarray or csr_array
    """Compute the fraction of the trees in which two rows fall into the same leaf.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows. Without `Y`, and with another `kind` than "all", they must be the rows that the forest was fitted on, in
        the same order.
    Y : table of shape (n_others, n_features), optional
        Rows to compare `X` to; None: `X` itself. With another `kind` than "all", they must be the training rows, and
        the rows of `X` count as new rows.
    kind : {"all", "oob", "in_bag", "gap"}, default="all"
        Which trees are used. "all": all trees. "oob": the trees grown without either row. "in_bag": the trees grown on
        both rows. "gap" (Rhodes, Cutler and Moon 2023): for each row of `X`, the trees grown without it. In each of
        these trees, the sampled rows in the same leaf share a weight of 1, in proportion to how often they were drawn.
        With "all", training rows of the same class appear closer than they are, because the trees were grown to
        separate the classes.
    n_neighbors : int, optional
        Return only the largest proximities of each row. Without `Y`, an entry is returned if it is among the largest of
        either row, so that the result is symmetric (except with "gap").
    threshold : float, optional
        Return only proximities of at least this.
    sparse : bool, optional
        Whether to return a sparse matrix; None: only if `n_neighbors` or `threshold` is set.

    Returns
    -------
    ndarray or csr_array of shape (n_samples, n_samples) or (n_samples, n_others)
        Proximities. Without `Y` the matrix is symmetric, with 1 on the diagonal. With "gap" it is not symmetric: each
        row adds up to 1, and the diagonal is 0.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}.")
    left = row_leaves(forest, X, kind if Y is None else "all")
    right = left if Y is None else row_leaves(forest, Y, kind)
    is_sparse = _is_sparse(n_neighbors, threshold, sparse, left.n_rows, right.n_rows)
    found, is_symmetric = Proximities.between(left, right, kind, Y is None), Y is None and kind != "gap"
    if not is_sparse:
        return found.dense(forest.n_jobs, 1.0 if is_symmetric else 0.0)
    select = found.symmetric if is_symmetric else found.sparse
    return select(forest.n_jobs, n_neighbors, float(threshold or 0.0))


def _is_sparse(
    n_neighbors: int | None, threshold: float | None, sparse: bool | None, n_rows: int, n_columns: int
) -> bool:
    """Check which proximities are wanted, and return whether they are returned as a sparse matrix."""
    if n_neighbors is not None:
        require_whole("n_neighbors", n_neighbors)
    if threshold is not None and (not isinstance(threshold, Real) or not 0 <= threshold <= 1):
        raise ValueError(f"threshold must be a number from 0 to 1, not {threshold!r}.")
    selects = n_neighbors is not None or threshold is not None
    if selects and sparse is not None and not sparse:
        raise ValueError("sparse=False cannot be combined with n_neighbors or threshold: their result is sparse.")
    if not selects and sparse is None and n_rows * n_columns > _MOST_DENSE:
        raise ValueError(
            f"{n_rows} x {n_columns} proximities take {n_rows * n_columns / 2**27:.0f} GiB. Select the largest of "
            "each row with n_neighbors, or pass sparse=True or sparse=False to get them all."
        )
    return bool(selects or sparse)


def outlier_score(forest: TableEstimator, X: TableLike, y: ColumnLike = None, *, kind: Kind = "all") -> Floats:
    """Compute a score of how far each row lies from the other rows of its class.

    The raw score is the number of rows divided by the sum of the squared proximities to the rows of the class. The
    median of the class is subtracted from it, and the difference is divided by the median absolute deviation (times
    1.48, which makes it the standard deviation of a normal distribution). Rows with scores above 10 are candidates for
    outliers (Breiman and Cutler).

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        Their classes; with several outputs, each combination of classes is a class. If it is None, or the forest is a
        regressor, all rows are one class.
    kind : {"all", "oob"}, default="all"
        Which trees are used; see `proximity`. With "oob", `X` must be the rows that the forest was fitted on.

    Returns
    -------
    ndarray of shape (n_samples,)
        Scores. Rows of a class in which all raw scores are equal get the score 0.
    """
    check_kind_among_rows(kind)
    leaves = row_leaves(forest, X, kind)
    classes = [np.arange(leaves.n_rows)]
    if y is not None and forest._is_class_target:
        codes = forest._task.read(y, leaves.n_rows).array
        class_of_row = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
        classes = [np.flatnonzero(class_of_row == c) for c in range(class_of_row.max() + 1)]
    score = np.zeros(leaves.n_rows)
    for rows in classes:
        members = leaves.take(rows)
        sums = 1.0 + Proximities.between(members, members, kind, True).sums_of_squares(forest.n_jobs)
        score[rows] = _standardised(leaves.n_rows / sums)
    return score


def proximity_map(forest: TableEstimator, X: TableLike, n_components: int = 2) -> Floats:
    """Compute coordinates of rows whose distances approximate the square root of 1 - proximity.

    The coordinates are those of classical multidimensional scaling. They are computed from the leading singular vectors
    of the centred matrix of rows and leaves, without the matrix of proximities.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    n_components : int, default=2
        Number of coordinates.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        Coordinates, the widest direction first. Signs are chosen so that the coordinate furthest from 0 is positive.
    """
    return map_rows(row_leaves(forest, X, "all"), n_components)


def leaf_embedding(forest: TableEstimator, X: TableLike, *, sparse_output: bool = True) -> csr_array | Floats:
    """Encode each row by its leaves.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    sparse_output : bool, default=True
        Whether to return a sparse matrix.

    Returns
    -------
    csr_array or ndarray of shape (n_samples, n_leaves)
        One column per leaf, tree by tree: 1 for the leaves of the row. The scalar product of two rows, divided by the
        number of trees, is their proximity.
    """
    codes = row_leaves(forest, X, "all").one_hot(forest.forest_)
    return codes if sparse_output else codes.toarray()


def check_kind_among_rows(kind: Kind) -> None:
    """Refuse kinds of proximities that need a second table."""
    if kind not in ("all", "oob"):
        raise ValueError(f"kind must be 'all' or 'oob', not {kind!r}.")


def row_leaves(forest: TableEstimator, X: TableLike, kind: Kind) -> RowLeaves:
    """Find the leaves of rows, and how often the rows were drawn where the kind needs that."""
    if kind == "all":
        return RowLeaves.of(forest.forest_, forest._columns(X), forest._n_threads)
    try:
        draws = forest._draws
    except AttributeError as error:
        raise ValueError(f"kind={kind!r} needs the samples of the trees. {error}") from None
    advice = f"kind={kind!r} needs the same rows; for others use kind='all'."
    columns = forest._training_columns(X, draws.n_rows, advice)
    return RowLeaves.of(forest.forest_, columns, forest._n_threads, draws.counts_by_row(forest.forest_.n_trees))
