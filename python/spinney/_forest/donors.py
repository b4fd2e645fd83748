"""The values that training rows lend to rows that lack them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinney._data.feature import Feature
from spinney._data.numeric.reproducible import row_dots
from spinney._data.types import Floats
from spinney._forest.proximities import Proximities


@dataclass(frozen=True, eq=False)
class Donors:
    """The values that training rows have, to be lent to rows that lack them.

    Attributes
    ----------
    features : list of Feature
    known : ndarray of shape (n_rows, n_columns)
        Numbers and codes; NaN is missing.
    usual : ndarray of shape (n_columns,)
        Median or most frequent code; NaN if the column is empty.
    """

    features: list[Feature]
    known: Floats
    usual: Floats

    @classmethod
    def of(cls, known: Floats, features: Sequence[Feature]) -> Donors:
        """Take the values of training rows."""
        return cls(list(features), known, _usual_values(known, features))

    def rough(self, known: Floats, classes: NDArray[np.intp] | None) -> Floats:
        """Fill with what is usual, in the row's class where they are given."""
        values = np.where(np.isnan(known), self.usual, known)
        if classes is not None:
            for c in range(classes.max() + 1):
                rows = np.flatnonzero(classes == c)
                usual = _usual_values(known[rows], self.features)
                usual = np.where(np.isnan(usual), self.usual, usual)
                values[rows] = np.where(np.isnan(known[rows]), usual, known[rows])
        return values

    def filled(self, known: Floats, values: Floats, near: Proximities, n_jobs: int | None) -> Floats:
        """Fill what is not known of rows from near donors; where none is near, `values` stay."""
        lacks = np.isnan(known)
        columns = [j for j in np.flatnonzero(lacks.any(axis=0)) if not np.isnan(self.usual[j])]
        lent = [_Lent.of(self.known[:, j], is_code(self.features[j])) for j in columns]

        filled = values.copy()
        for first, last, found in near.each_block(n_jobs, lambda block: [loan.nearest(block) for loan in lent]):
            for j, value in zip(columns, found, strict=True):
                use = lacks[first:last, j] & ~np.isnan(value)
                filled[first:last, j][use] = value[use]
        return filled


@dataclass(frozen=True, eq=False)
class _Lent:
    """One column of the donors: codes as one column each, or numbers."""

    codes: csr_array | None
    numbers: Floats
    known: Floats

    @classmethod
    def of(cls, column: Floats, is_code: bool) -> _Lent:
        known = ~np.isnan(column)
        if not is_code:
            return cls(None, np.where(known, column, 0.0), known.astype(np.float64))
        rows = np.flatnonzero(known)
        codes = column[rows].astype(np.int64)
        shape = (len(column), int(codes.max()) + 1)
        return cls(csr_array((np.ones(len(rows)), (rows, codes)), shape=shape), column[rows], known.astype(np.float64))

    def nearest(self, block: csr_array) -> Floats:
        """Weighted mean, or code of the most weight; NaN without any weight."""
        if self.codes is not None:
            weight = (block @ self.codes).toarray()
            return np.where(weight.max(axis=1) > 0, weight.argmax(axis=1), np.nan)
        total = block @ self.known
        mean = np.divide(row_dots(block, self.numbers), total, out=np.full(len(total), np.nan), where=total > 0)
        known = self.numbers[self.known > 0]
        return np.asarray(np.clip(mean, known.min(), known.max()))  # against rounding: a constant stays itself


def is_code(feature: Feature) -> bool:
    return feature.kind != "number"


def _usual_values(known: Floats, features: Sequence[Feature]) -> Floats:
    usual = np.full(known.shape[1], np.nan)
    for j, feature in enumerate(features):
        present = known[~np.isnan(known[:, j]), j]
        if len(present):
            usual[j] = np.bincount(present.astype(np.int64)).argmax() if is_code(feature) else np.median(present)
    return usual
