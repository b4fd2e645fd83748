"""The rows that a margin is learned from, in an order of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class MarginRows:
    """Rows of positive weight, equal ones taken together, sorted: neither their order nor how often each occurs shows.

    Attributes
    ----------
    terms : ndarray of shape (n_terms, n)
        Terms of the rows; or the kernel matrix, (n, n).
    target : ndarray of shape (n,)
        Class codes, or values.
    weight : ndarray of shape (n,)
        Sums of the weights of equal rows.
    first : ndarray of shape (n,)
        The first row of the table that each stands for.
    place : ndarray of shape (n_rows,)
        Where each row of the table is; -1 if its weight is 0.
    """

    terms: Floats
    target: Floats
    weight: Floats
    first: Places
    place: Places

    def __len__(self) -> int:
        return len(self.target)

    @classmethod
    def of(cls, terms: Floats, target: Floats, weight: Floats) -> MarginRows:
        """Sort rows of terms, by target first, and take equal ones together."""
        used = np.flatnonzero(weight > 0)
        order, is_new = _sorted([target[used], *(term[used] for term in terms)])
        group = np.cumsum(is_new) - 1
        total = np.bincount(group, weight[used][order]).astype(np.float64)
        rows = used[order]
        first = np.full(len(total), len(weight))
        np.minimum.at(first, group, rows)
        place = np.full(len(weight), -1)
        place[rows] = group
        return cls(np.ascontiguousarray(terms[:, first]), target[first], total, first, place)

    @classmethod
    def of_matrix(cls, matrix: Floats, target: Floats, weight: Floats) -> MarginRows:
        """Sort the rows of a kernel matrix by target, which is all that is known of them."""
        used = np.flatnonzero(weight > 0)
        rows = used[np.argsort(target[used], kind="stable")]
        place = np.full(len(weight), -1)
        place[rows] = np.arange(len(rows))
        return cls(np.ascontiguousarray(matrix[np.ix_(rows, rows)]), target[rows], weight[rows], rows, place)


def _sorted(keys: list[Floats]) -> tuple[Places, NDArray[np.bool_]]:
    """Order by the first key, then the second and so on; and where in it a row differs from the one before.

    Each further key only sorts what those before it leave equal.
    """
    order = np.argsort(keys[0], kind="stable")
    is_new = _differs(keys[0][order])
    for key in keys[1:]:
        alone = is_new & np.append(is_new[1:], True)
        equal = np.flatnonzero(~alone)
        if not len(equal):
            break
        group = np.cumsum(is_new[equal])
        order[equal] = order[equal][np.lexsort((key[order[equal]], group))]
        is_new[equal] |= _differs(key[order[equal]])
    return order, is_new


def _differs(values: Floats) -> NDArray[np.bool_]:
    """Whether each value differs from the one before; the first does."""
    found = np.ones(len(values), dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found
