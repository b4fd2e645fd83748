"""The scaled terms of rows: a matrix or, of many categories, a code per column and row instead of their indicators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.design import CATEGORY, Design
from spinney._data.types import Floats

_BLOCK = 2**14  # numbers


def combined(terms: Floats, coefficients: Floats) -> Floats:
    """Return the sum of the terms times their coefficients, (n_scores, n_rows)."""
    found = np.zeros((coefficients.shape[1], terms.shape[1]))
    for block in _blocks(terms):
        for total, of_score in zip(found, coefficients[block].T, strict=True):
            products = terms[block] * of_score[:, np.newaxis]
            products[0] += total
            products.sum(axis=0, out=total)  # adds term by term
    return found


def weighted_sums(terms: Floats, weights: Floats) -> Floats:
    """Return the sums of the terms over the rows, for each vector of weights, (n_terms, n_weights)."""
    found = np.empty((len(terms), len(weights)))
    for block in _blocks(terms):
        for k, weight in enumerate(weights):
            (terms[block] * weight).sum(axis=1, out=found[block, k])
    return found


def _blocks(terms: Floats) -> Iterator[slice]:
    """Yield blocks of terms that fit into a cache: products of single terms, or of all at once, take several times."""
    step = max(1, _BLOCK // max(1, terms.shape[1]))
    for begin in range(0, len(terms), step):
        yield slice(begin, begin + step)


@dataclass(frozen=True, eq=False)
class DenseTerms:
    """Terms as a matrix, (n_terms, n_rows)."""

    matrix: Floats

    def __len__(self) -> int:
        return len(self.matrix)

    def take(self, rows: NDArray[np.bool_]) -> DenseTerms:
        """Return the terms of some rows."""
        return DenseTerms(np.ascontiguousarray(self.matrix[:, rows]))

    def with_constant(self) -> DenseTerms:
        """Return the terms and, as the last one, 1."""
        return DenseTerms(np.concatenate([self.matrix, np.ones((1, self.matrix.shape[1]))]))

    def combined(self, coefficients: Floats) -> Floats:
        """Return the sum of the terms times their coefficients, (n_scores, n_rows)."""
        return combined(self.matrix, coefficients)

    def weighted_sums(self, weights: Floats) -> Floats:
        """Return the sums of the terms over the rows, for each vector of weights, (n_terms, n_weights)."""
        return weighted_sums(self.matrix, weights)

    def weighted_squares(self, weight: Floats) -> Floats:
        """Return the sums of the squares of the terms over the rows, (n_terms,)."""
        return np.asarray((self.matrix**2 * weight).sum(axis=1))


@dataclass(frozen=True, eq=False)
class CodedTerms:
    """Terms of which most are indicators of categories.

    Attributes
    ----------
    dense : ndarray of shape (n_dense, n_rows)
        The terms that are no indicators of categories.
    places : ndarray of shape (n_dense,)
        Their places among all terms.
    codes : list of ndarray of shape (n_rows,)
        By column of categories, the place of the indicator of each row; the number of terms where there is none.
    center, scale : ndarray of shape (n_terms,)
        Subtrahend and divisor of the indicators; 0 and 1 for other terms.
    """

    dense: Floats
    places: NDArray[np.intp]
    codes: list[NDArray[np.intp]]
    center: Floats
    scale: Floats

    @classmethod
    def of(cls, design: Design, columns: _engine.Table) -> Self:
        """Return the terms of some rows."""
        is_category = design.kind == CATEGORY
        dense = Design(*(numbers[~is_category] for numbers in design.arrays.values())).matrix(columns)
        codes = []
        for j in np.unique(design.feature[is_category]):
            places = np.flatnonzero(is_category & (design.feature == j))
            of_code = np.full(int(design.code[places].max()) + 2, len(design), dtype=np.intp)
            of_code[design.code[places]] = places
            values = columns.block(np.array([j], dtype=np.int32), False)[0]
            known = ~np.isnan(values) & (values < len(of_code) - 1)
            codes.append(of_code[np.where(known, values, len(of_code) - 1).astype(np.intp)])
        center, scale = np.where(is_category, design.center, 0.0), np.where(is_category, design.scale, 1.0)
        return cls(dense, np.flatnonzero(~is_category), codes, center, scale)

    def __len__(self) -> int:
        return len(self.center)

    def take(self, rows: NDArray[np.bool_]) -> Self:
        """Return the terms of some rows."""
        dense = np.ascontiguousarray(self.dense[:, rows])
        return replace(self, dense=dense, codes=[codes[rows] for codes in self.codes])

    def with_constant(self) -> Self:
        """Return the terms and, as the last one, 1."""
        is_without = [codes == len(self) for codes in self.codes]
        codes = [np.where(none, len(self) + 1, one) for none, one in zip(is_without, self.codes, strict=True)]
        dense = np.vstack([self.dense, np.ones((1, self.dense.shape[1]))])
        places, center, scale = np.append(self.places, len(self)), np.append(self.center, 0), np.append(self.scale, 1)
        return replace(self, dense=dense, places=places, codes=codes, center=center, scale=scale)

    def combined(self, coefficients: Floats) -> Floats:
        """Return the sum of the terms times their coefficients, (n_scores, n_rows)."""
        slopes = coefficients / self.scale[:, np.newaxis]
        found = combined(self.dense, coefficients[self.places])
        found -= (slopes * self.center[:, np.newaxis]).sum(axis=0)[:, np.newaxis]
        slopes = np.vstack([slopes, np.zeros((1, slopes.shape[1]))]).T
        for codes in self.codes:
            found += slopes[:, codes]
        return found

    def weighted_sums(self, weights: Floats) -> Floats:
        """Return the sums of the terms over the rows, for each vector of weights, (n_terms, n_weights)."""
        found: Floats = self._counts(weights) - self.center[:, np.newaxis] * weights.sum(axis=1)
        found /= self.scale[:, np.newaxis]
        found[self.places] = weighted_sums(self.dense, weights)
        return found

    def weighted_squares(self, weight: Floats) -> Floats:
        """Return the sums of the squares of the terms over the rows, (n_terms,)."""
        counts = self._counts(weight[np.newaxis])[:, 0]
        found = np.asarray((counts * (1 - 2 * self.center) + self.center**2 * weight.sum()) / self.scale**2)
        found[self.places] = (self.dense**2 * weight).sum(axis=1)
        return found

    def _counts(self, weights: Floats) -> Floats:
        """Return the sums of the weights of the rows of each category, (n_terms, n_weights)."""
        found = np.zeros((len(weights), len(self)))
        for total, weight in zip(found, weights, strict=True):
            for codes in self.codes:
                total += np.bincount(codes, weight, len(self) + 1)[:-1]
        return found.T
