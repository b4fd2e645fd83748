"""How near rows are by a forest: the fraction of its trees in which they fall into the same leaf.

The matrix of rows by leaves is sparse, and the product of two such matrices counts the trees that rows share. It is
computed in blocks of rows, so that memory is bounded by what is retained of it. Outliers and maps are read off it.

Kinds
-----
all     all trees
oob     trees that were grown without both rows; with a second table, without the row of that one
in_bag  trees that were grown on both rows
gap     trees grown without the first row: share of the second in what the leaf holds of the tree's sample. The sums
        over each row are 1, and weighting the targets by them gives the out-of-bag prediction if rows and classes have
        no weights (Rhodes, Cutler and Moon 2023)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.types import Floats, Integers, TableLike
from spinney._estimator.parallel import count_threads, in_order
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.forest import FittedForest


@dataclass(frozen=True, eq=False)
class RowLeaves:
    """The leaf of each row in each tree of a forest.

    Attributes
    ----------
    nodes : ndarray of shape (n_rows, n_trees)
        Leaves, numbered through all trees.
    n_nodes : int
        Nodes of all trees.
    drawn : ndarray of shape (n_rows, n_trees), or None
        How often the row was drawn for the tree; None: never, or it does not matter.
    """

    nodes: Integers
    n_nodes: int
    drawn: NDArray[np.uint32] | None = None

    @classmethod
    def of(
        cls, forest: FittedForest, columns: _engine.Table, n_jobs: int, drawn: NDArray[np.uint32] | None = None
    ) -> RowLeaves:
        """Send rows down the trees."""
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
        """Return some of the rows."""
        return RowLeaves(self.nodes[rows], self.n_nodes, None if self.drawn is None else self.drawn[rows])

    def one_hot(self, forest: FittedForest) -> csr_array:
        """Code rows by their leaves: a column per leaf, counted through all trees."""
        is_leaf = forest.engine.feature < 0
        columns = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
        starts = np.arange(self.n_rows + 1, dtype=np.int64) * self.n_trees
        shape = (self.n_rows, int(columns.max()) + 1)
        return csr_array((np.ones(self.nodes.size), columns[self.nodes].ravel(), starts), shape=shape)


def leaf_names(forest: FittedForest) -> list[tuple[int, int]]:
    """Tree of each leaf, and its node number within it."""
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
_BLOCK_PRODUCTS = 2**22  # pairs of rows in a leaf, over all trees, that one block may have: some 50 ms
_PARTS = 2**62  # of a proximity: fractions are whole numbers of them, so that sums are exact and need no order
_NOWHERE = 2**32 - 1  # stands for no leaf
_BITS_SET = np.array([bin(i).count("1") for i in range(2**16)], dtype=np.uint8)


@dataclass(frozen=True)
class Selection:
    """Which proximities are returned, and how.

    Attributes
    ----------
    n_neighbors : int or None
        The largest of each row; None: all.
    threshold : float
        Those of at least so much.
    is_sparse : bool
    """

    n_neighbors: int | None
    threshold: float
    is_sparse: bool

    @classmethod
    def of(
        cls, n_neighbors: int | None, threshold: float | None, sparse: bool | None, shape: tuple[int, int]
    ) -> Selection:
        """Check what a caller asks for, of a matrix of some shape."""
        if n_neighbors is not None and (not isinstance(n_neighbors, Integral) or n_neighbors < 1):
            raise ValueError(f"n_neighbors must be a whole number of at least 1, not {n_neighbors!r}.")
        if threshold is not None and (not isinstance(threshold, Real) or not 0 <= threshold <= 1):
            raise ValueError(f"threshold must be a number from 0 to 1, not {threshold!r}.")
        selects = n_neighbors is not None or threshold is not None
        if selects and sparse is not None and not sparse:
            raise ValueError("sparse=False does not go with n_neighbors or threshold: what they keep is sparse.")
        n_rows, n_columns = shape
        if not selects and sparse is None and n_rows * n_columns > _MOST_DENSE:
            raise ValueError(
                f"{n_rows} x {n_columns} proximities take {n_rows * n_columns / 2**27:.0f} GiB. Keep the largest of "
                "each row with n_neighbors, or pass sparse=True or sparse=False to have them all."
            )
        return cls(n_neighbors, float(threshold or 0.0), bool(selects or sparse))


@dataclass(frozen=True, eq=False)
class Proximities:
    """Proximities of the rows of one table to those of another or the same, made block by block.

    Attributes
    ----------
    left : RowLeaves
        The rows.
    share : ndarray of shape (n_rows, n_trees)
        What each tree counts for the row; by kind gap in parts of a whole, integers.
    right : csr_array of shape (n_nodes, n_columns)
        What each leaf holds of the rows that they are compared to.
    is_self : bool
        Whether they are compared to themselves.
    divisor : int
        Trees that proximities are shares of; with `pairs`, those that count for both rows; 0: the shares say all.
    pairs : tuple of ndarray, or None
        Bits of the trees that count, by row of either side.
    """

    left: RowLeaves
    share: Floats | Integers
    right: csr_array
    is_self: bool
    divisor: int
    pairs: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None

    def select(self, selection: Selection, n_jobs: int | None) -> Floats | csr_array:
        """Return them dense or sparse; to themselves, rows have 1 unless the matrix is not symmetric (gap)."""
        is_symmetric = self.is_self and self.divisor > 0
        if not selection.is_sparse:
            return self.dense(n_jobs, 1.0 if is_symmetric else 0.0)
        rule = self.symmetric if is_symmetric else self.sparse
        return rule(n_jobs, selection.n_neighbors, selection.threshold)

    @classmethod
    def between(cls, left: RowLeaves, right: RowLeaves, kind: Kind, is_self: bool) -> Proximities:
        """Compare rows with rows; `is_self` says that they are the same."""
        if kind == "all":  # whole numbers, whose sums are exact
            ones = np.float64(1.0)
            share, held = np.broadcast_to(ones, left.nodes.shape), np.broadcast_to(ones, right.nodes.shape)
            return cls(left, share, _held(right, held), is_self, left.n_trees)
        assert right.drawn is not None
        if kind == "gap":
            parts = np.rint(_gap_shares(left, right) * _PARTS).astype(np.int64)
            return cls(left, parts, _held(right, right.drawn, np.int64), is_self, 0)
        counts = right.drawn == 0 if kind == "oob" else right.drawn > 0
        own = counts if is_self else np.ones(left.nodes.shape, dtype=bool)
        bits = _bits(own), _bits(counts)
        return cls(left, own.astype(np.float64), _held(right, counts), is_self, left.n_trees, bits)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and rows that they are compared to."""
        return self.left.n_rows, self.right.shape[1]

    def blocks(self) -> list[tuple[int, int]]:
        """Cut the rows into runs of about the same work."""
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
        """Proximities of rows first … last - 1, without those to themselves."""
        nodes, share = self.left.nodes[first:last], self.share[first:last]
        used = share > 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        found = csr_array((share[used], nodes[used], starts), shape=(last - first, self.left.n_nodes)) @ self.right
        rows = np.repeat(np.arange(first, last), np.diff(found.indptr))
        if self.pairs is not None:
            found.data /= _common_bits(*self.pairs, rows, found.indices)
        elif self.divisor:
            found.data /= self.divisor
        else:
            found = csr_array((found.data / _PARTS, found.indices, found.indptr), shape=found.shape)
        return keep_entries(found, found.indices != rows) if self.is_self else found

    def each_block(self, n_jobs: int | None, finish: Callable[[csr_array], Found]) -> Iterator[tuple[int, int, Found]]:
        """Yield (first, last, finish(block)) in order; the blocks are made on threads."""
        blocks = self.blocks()

        def work(b: int) -> Found:
            return finish(self.block(*blocks[b]))

        made = in_order(work, len(blocks), count_threads(n_jobs, len(blocks)))
        for (first, last), result in zip(blocks, made, strict=True):
            yield first, last, result

    def dense(self, n_jobs: int | None, diagonal: float) -> Floats:
        """All of them, as an array."""
        out = np.empty(self.shape)
        for first, last, block in self.each_block(n_jobs, lambda block: block):
            out[first:last] = block.toarray()
        if self.is_self:
            np.fill_diagonal(out, diagonal)
        return out

    def sparse(self, n_jobs: int | None, n_neighbors: int | None, threshold: float = 0.0) -> csr_array:
        """Return those of at least the threshold, and of these the largest of each row; none to the rows themselves.

        Equal ones are taken from the first columns.
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
                block = keep_entries(block, block.data >= threshold)
            return block if n_neighbors is None else keep_largest(block, n_neighbors)

        found = csr_array(vstack([b for *_, b in self.each_block(n_jobs, finish)], format="csr"))
        found.sort_indices()
        return found

    def _leaves(self) -> tuple[Words, Bits, Words, int, bool, Bits | None, Bits | None]:
        """Return what the engine counts trees by; fractions of other kinds are left to sparse products."""
        nodes = np.where(self.share > 0, self.left.nodes, _NOWHERE).astype(np.uint32)
        starts, others = self.right.indptr.astype(np.uint64), self.right.indices.astype(np.uint32)
        left, right = (None, None) if self.pairs is None else self.pairs
        return nodes, starts, others, self.shape[1], self.is_self, left, right

    def symmetric(self, n_jobs: int | None, n_neighbors: int | None, threshold: float = 0.0) -> csr_array:
        """Return entries that are among those kept of either row, and 1 in the diagonal."""
        found = self.sparse(n_jobs, n_neighbors, threshold)
        if n_neighbors is not None:
            found = csr_array(found.maximum(found.T))
        found = csr_array(found + eye_array(self.shape[0], format="csr"))
        found.sort_indices()
        return found

    def sums_of_squares(self, n_jobs: int | None) -> Floats:
        """Sum of the squares of each row, without that to itself."""
        return np.asarray(_engine.squared_proximities(*self._leaves(), n_jobs or 0))


def keep_entries(matrix: csr_array, kept: NDArray[np.bool_]) -> csr_array:
    """Return a matrix with some of its entries."""
    starts = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    return csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def keep_largest(matrix: csr_array, n: int) -> csr_array:
    """Return the n largest entries of each row; of equal ones those of the first columns."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    rank = np.empty(len(rows), dtype=np.int64)
    rank[np.lexsort((matrix.indices, -matrix.data, rows))] = np.arange(len(rows)) - matrix.indptr[rows]
    return keep_entries(matrix, rank < n)


def _held(
    rows: RowLeaves, what: NDArray[np.number | np.bool_], kind: type[np.float64] | type[np.int64] = np.float64
) -> csr_array:
    """Return `what` by leaf and row."""
    used = np.asarray(what > 0)
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    matrix = csr_array((what[used].astype(kind), rows.nodes[used], starts), shape=(rows.n_rows, rows.n_nodes))
    return csr_array(matrix.T.tocsr())


def _gap_shares(left: RowLeaves, right: RowLeaves) -> Floats:
    assert right.drawn is not None
    in_leaf = np.bincount(right.nodes.ravel(), weights=right.drawn.ravel(), minlength=right.n_nodes)
    unseen = np.ones(left.nodes.shape, dtype=bool) if left.drawn is None else left.drawn == 0
    held = in_leaf[left.nodes]
    shares = np.divide(unseen, held, out=np.zeros(unseen.shape), where=unseen & (held > 0))
    return np.asarray(shares / np.maximum(unseen.sum(axis=1, keepdims=True), 1))


def _bits(counts: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack each row into words of 64 bits."""
    n_rows, n_trees = counts.shape
    padded = np.zeros((n_rows, -(-n_trees // 64) * 64), dtype=bool)
    padded[:, :n_trees] = counts
    return np.packbits(padded, axis=1).view(np.uint64)


def _common_bits(
    left: NDArray[np.uint64], right: NDArray[np.uint64], rows: NDArray[np.intp], columns: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Count the bits that both sides of each pair have; at least 1."""
    n = np.zeros(len(rows), dtype=np.int64)
    for word in range(left.shape[1]):
        both = left[rows, word] & right[columns, word]
        for part in range(0, 64, 16):
            n += _BITS_SET[(both >> np.uint64(part)) & np.uint64(0xFFFF)]
    return np.maximum(n, 1)


def outlier_scores(leaves: RowLeaves, classes: list[NDArray[np.intp]], kind: Kind, n_jobs: int | None) -> Floats:
    """How far each row lies from the others of its class; `classes` holds the rows of each."""
    score = np.zeros(leaves.n_rows)
    for rows in classes:
        members = leaves.take(rows)
        sums = 1.0 + Proximities.between(members, members, kind, True).sums_of_squares(n_jobs)
        score[rows] = _standardised(leaves.n_rows / sums)
    return score


def _standardised(raw: Floats) -> Floats:
    middle = np.median(raw)
    away = raw - middle
    noise = 1e-12 * middle  # smaller differences are rounding
    for scale in (_NORMAL_MAD * np.median(np.abs(away)), np.abs(away).mean()):
        if scale > noise:
            return np.asarray(away / scale)
    return np.zeros(len(raw))


def map_rows(leaves: RowLeaves, n_components: int) -> Floats:
    """Place rows in `n_components` dimensions: classical scaling of proximities without writing them out.

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
    if len(used) == n_trees:  # no tree parts any rows
        return np.zeros((n_rows, n_components))
    if n_components >= min(n_rows, len(used)) - 1:  # the iteration finds fewer than all directions
        left, size, _ = np.linalg.svd(incidence.toarray() - mean, full_matrices=False)
    else:
        left, size = _leading(incidence, mean, n_components)
    left, size = left[:, :n_components], size[:n_components]
    # the sign of an eigenvector is arbitrary
    largest = left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])]
    # distances² of classical scaling are p_ii + p_jj - 2 p_ij = 2 (1 - p), twice what is wanted
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


def apply(forest: TableEstimator, X: TableLike) -> Integers:
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
    check_is_fitted(forest)
    apply, n_jobs = forest.forest_.engine.apply, forest._n_threads
    return forest._by_blocks(X, lambda columns: apply(columns, n_jobs).astype(np.int64))


def decision_path(forest: TableEstimator, X: TableLike) -> tuple[csr_array, Integers]:
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
    columns, trees = forest._columns(X), forest.forest_
    leaves = trees.engine.apply(columns, forest._n_threads)
    paths = [trees.tree(t).path(leaves[:, t]) for t in range(trees.n_trees)]
    return csr_array(hstack(paths, format="csr")), trees.root.astype(np.int64)
