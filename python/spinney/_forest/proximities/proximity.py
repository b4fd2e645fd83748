"""How near rows are by a forest: the share of its trees in which they rest in the same leaf.

A row of numbers per tree says where a table's row rests; the matrix of rows by leaves is sparse, and the product of two
such matrices counts the trees that rows share. It is computed in blocks of rows, so that memory is bounded by what is
kept of it.

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
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, vstack

import spinney._engine as _engine
from spinney._estimator.threads import count_threads, in_order
from spinney._forest.growing.rows import Draws

Kind = Literal["all", "oob", "in_bag", "gap"]
KINDS = ("all", "oob", "in_bag", "gap")
Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]

_BLOCK_PRODUCTS = 2**22  # pairs of rows in a leaf, over all trees, that one block may have: some 50 ms
_PARTS = 2**62  # of a proximity: shares are whole numbers of them, so that sums are exact and need no order
_NOWHERE = 2**32 - 1  # stands for no leaf
_BITS_SET = np.array([bin(i).count("1") for i in range(2**16)], dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Resting:
    """Where rows rest in the trees of a forest.

    Attributes
    ----------
    nodes : ndarray of shape (n_rows, n_trees)
        Leaves, numbered through all trees.
    n_nodes : int
        Nodes of all trees.
    drawn : ndarray of shape (n_rows, n_trees), or None
        How often the row was drawn for the tree; None: never, or it does not matter.
    """

    nodes: Nodes
    n_nodes: int
    drawn: NDArray[np.uint32] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.nodes)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.nodes.shape[1])

    def take(self, rows: NDArray[np.intp]) -> Resting:
        """Return some of the rows."""
        return Resting(self.nodes[rows], self.n_nodes, None if self.drawn is None else self.drawn[rows])


def count_draws(draws: Draws, n_trees: int) -> NDArray[np.uint32]:
    """How often each row was drawn for each tree, (n_rows, n_trees)."""
    drawn = np.empty((draws.n_rows, n_trees), dtype=np.uint32)
    for t in range(n_trees):
        drawn[:, t] = draws.counts(t)
    return drawn


@dataclass(frozen=True, eq=False)
class Proximities:
    """Proximities of the rows of one table to those of another or the same, made block by block.

    Attributes
    ----------
    left : Resting
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

    left: Resting
    share: NDArray[Any]
    right: csr_array
    is_self: bool
    divisor: int
    pairs: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None = None

    @classmethod
    def between(cls, left: Resting, right: Resting, kind: Kind, is_self: bool) -> Proximities:
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

    def each_block(self, n_jobs: int | None, finish: Callable[[int, csr_array], Any]) -> Iterator[tuple[int, int, Any]]:
        """Yield (first, last, finish(first, block)) in order; the blocks are made on threads."""
        blocks = self.blocks()

        def work(b: int) -> Any:
            return finish(blocks[b][0], self.block(*blocks[b]))

        made = in_order(work, len(blocks), count_threads(n_jobs, len(blocks)))
        for (first, last), result in zip(blocks, made, strict=True):
            yield first, last, result

    def dense(self, n_jobs: int | None, diagonal: float) -> Floats:
        """All of them, as an array."""
        out = np.empty(self.shape)
        for first, last, block in self.each_block(n_jobs, lambda _, block: block):
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
        def finish(_: int, block: csr_array) -> csr_array:
            if threshold > 0:
                block = keep_entries(block, block.data >= threshold)
            return block if n_neighbors is None else keep_largest(block, n_neighbors)

        found = csr_array(vstack([b for *_, b in self.each_block(n_jobs, finish)], format="csr"))
        found.sort_indices()
        return found

    def _leaves(self) -> tuple[Any, Any, Any, int, bool, Any, Any]:
        """Return what the engine counts trees by; shares of other kinds are left to sparse products."""
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
    kept = np.zeros(len(matrix.data), dtype=bool)
    for first, last in pairwise(matrix.indptr.tolist()):
        if last - first <= n:
            kept[first:last] = True
            continue
        row = matrix.data[first:last]
        least = np.partition(row, len(row) - n)[len(row) - n]
        kept[first:last] = row > least
        equal = np.flatnonzero(row == least)
        n_equal = n - np.count_nonzero(row > least)
        if n_equal < len(equal):
            equal = equal[np.argsort(matrix.indices[first + equal], kind="stable")[:n_equal]]
        kept[first + equal] = True
    return keep_entries(matrix, kept)


def _held(rows: Resting, what: NDArray[Any], kind: Any = np.float64) -> csr_array:
    """Return `what` by leaf and row."""
    used = what > 0
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    matrix = csr_array((what[used].astype(kind), rows.nodes[used], starts), shape=(rows.n_rows, rows.n_nodes))
    return csr_array(matrix.T.tocsr())


def _gap_shares(left: Resting, right: Resting) -> Floats:
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
    left: NDArray[np.uint64], right: NDArray[np.uint64], rows: NDArray[np.intp], columns: NDArray[Any]
) -> NDArray[np.int64]:
    """Count the bits that both sides of each pair have; at least 1."""
    n = np.zeros(len(rows), dtype=np.int64)
    for word in range(left.shape[1]):
        both = left[rows, word] & right[columns, word]
        for part in range(0, 64, 16):
            n += _BITS_SET[(both >> np.uint64(part)) & np.uint64(0xFFFF)]
    return np.maximum(n, 1)
