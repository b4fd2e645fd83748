"""A table as numbers of one scale, for learners that add, multiply or measure distances.

Each column becomes one or more terms: a number its value, less the mean and divided by the standard deviation, and, if
values were missing at fit, whether it is missing; a category whether it is this one, for each that occurred at fit.
What is missing has the mean.

Other scales: "range" takes off the lowest value and divides by the range, None leaves numbers as they are, constant
ones too; with both, terms that say whether are 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.schema import Schema

Floats = NDArray[np.float64]
VALUE, MISSING, CATEGORY = 0, 1, 2
_FARTHEST = 1e100  # so that squared distances are numbers
_Term = tuple[int, int, int, float, float, float]  # feature, kind, code, center, scale, fill


@dataclass(frozen=True)
class Design:
    """The terms of a table.

    Attributes
    ----------
    feature : ndarray of shape (n_terms,)
        Column that each term is made of.
    kind : ndarray of shape (n_terms,)
        VALUE, MISSING or CATEGORY.
    code : ndarray of shape (n_terms,)
        Code of the category; 0 for other terms.
    center, scale : ndarray of shape (n_terms,)
        What is taken off, and what it is divided by then.
    fill : ndarray of shape (n_terms,), or None
        What a missing value has, before that; None: the center.
    """

    feature: NDArray[np.int32]
    kind: NDArray[np.int32]
    code: NDArray[np.int32]
    center: Floats
    scale: Floats
    fill: Floats | None = None

    def __len__(self) -> int:
        return len(self.feature)

    @classmethod
    def learn(cls, columns: _engine.Table, schema: Schema, weight: Floats, scale: str | None = "standard") -> Design:
        """Find the terms that vary among the rows of positive weight."""
        found: list[_Term] = []
        used = weight > 0
        kept, total = weight[used], float(weight[used].sum())
        for j, n_categories in enumerate(schema.n_categories):
            values = np.asarray(columns.column(j))[used]
            absent = np.isnan(values)
            if n_categories:
                codes = np.where(absent, n_categories, values).astype(np.intp)
                shares = np.bincount(codes, kept, n_categories + 1)[:n_categories] / total
                found += [_whether(j, CATEGORY, c, share, scale) for c, share in enumerate(shares) if 0 < share < 1]
            elif np.isinf(values).any():
                _warn_of_infinite(schema.features[j].name)
            else:
                found += _number_terms(j, values, absent, kept, scale)
        arrays = zip(*found, strict=True) if found else ((), (), (), (), (), ())
        feature, kind, code, center, width, fill = arrays
        whole = [np.array(entry, dtype=np.int32) for entry in (feature, kind, code)]
        numbers = [np.array(entry, dtype=float) for entry in (center, width, fill)]
        fills = None if scale == "standard" else numbers[2]
        return cls(whole[0], whole[1], whole[2], numbers[0], numbers[1], fills)

    def matrix(self, columns: _engine.Table) -> Floats:
        """Terms of some rows, (n_terms, n_rows)."""
        terms = np.empty((len(self), columns.n_rows))
        fill = self.center if self.fill is None else self.fill
        last, values = -1, np.empty(0)
        for t, (j, kind) in enumerate(zip(self.feature.tolist(), self.kind.tolist(), strict=True)):
            if j != last:
                last, values = j, np.asarray(columns.column(j))
                absent = np.isnan(values)
                unknown = ~np.isfinite(values)  # an infinite number says as little of how far a row is
            if kind == MISSING:
                terms[t] = absent
            elif kind == CATEGORY:
                terms[t] = values == self.code[t]
            else:
                terms[t] = np.where(unknown, fill[t], values)
            terms[t] -= self.center[t]
            terms[t] /= self.scale[t]
        return np.clip(terms, -_FARTHEST, _FARTHEST, out=terms)

    def names(self, schema: Schema) -> list[str]:
        """Return the terms in words."""
        found = []
        for j, kind, code in zip(self.feature.tolist(), self.kind.tolist(), self.code.tolist(), strict=True):
            feature = schema.features[j]
            suffix = {VALUE: "", MISSING: " is missing"}.get(kind)
            found.append(f"{feature.name}{f' = {feature.categories[code]}' if suffix is None else suffix}")
        return found

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All numbers, by name."""
        return {name: numbers for name, numbers in vars(self).items() if numbers is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold and `from_dict` turns back."""
        return {name: numbers.tolist() for name, numbers in self.arrays.items()}

    @classmethod
    def from_dict(cls, fields: Any, schema: Schema) -> Design:
        """Rebuild it; ValueError if `fields` cannot be a design of these columns."""
        try:
            integers = [np.array(fields[name], dtype=np.int32).reshape(-1) for name in ("feature", "kind", "code")]
            center, scale, fill = (
                np.array(fields[name], dtype=np.float64).reshape(-1)
                for name in ("center", "scale", "fill" if "fill" in fields else "center")
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ValueError("is damaged: its terms are unusable") from None
        feature, kind, code = integers
        sizes = np.array(schema.n_categories)
        lengths = {entry.size for entry in integers} | {center.size, scale.size, fill.size}
        fits = len(lengths) == 1 and np.isfinite(fill).all()
        if not fits or not np.isfinite(center).all() or not (np.isfinite(scale) & (scale > 0)).all():
            raise ValueError("is damaged: its terms are unusable")
        if len(feature) and not (feature.min() >= 0 and feature.max() < len(sizes) and set(kind.tolist()) <= {0, 1, 2}):
            raise ValueError("is damaged: its terms are of columns that it does not have")
        is_category = kind == CATEGORY
        if ((sizes[feature] > 0) != is_category).any() or (code[is_category] >= sizes[feature][is_category]).any():
            raise ValueError("is damaged: its terms do not fit its columns")
        return cls(feature, kind, code, center, scale, fill if "fill" in fields else None)


def _warn_of_infinite(name: str) -> None:
    """Say that a column is left out, since infinite numbers have no mean and no distance."""
    warn(
        f"Column {name!r} holds infinite numbers and is left out by models that need its mean or distances. Replace "
        "them by missing values or by the largest number that makes sense."
    )


def _whether(j: int, kind: int, code: int, share: float, scale: str | None) -> _Term:
    """Term that says whether: its mean is the share."""
    center = float(share)
    if scale != "standard":
        return j, kind, code, 0.0, 1.0, center
    return j, kind, code, center, float(np.sqrt(center * (1 - center))), center


def _number_terms(j: int, values: Floats, absent: NDArray[np.bool_], weight: Floats, scale: str | None) -> list[_Term]:
    """Terms of a column of numbers: its value and, if some are, whether it is missing."""
    found: list[_Term] = []
    there, kept = values[~absent], weight[~absent]
    if len(there):
        mean, spread = mean_and_spread(there, kept)
        varies = spread > 1e-12 * abs(mean)
        if np.isfinite(spread) and scale is None:
            found.append((j, VALUE, 0, 0.0, 1.0, mean))
        elif np.isfinite(spread) and varies:
            low = float(there.min())
            center, width = (mean, spread) if scale == "standard" else (low, float(there.max()) - low)
            found.append((j, VALUE, 0, center, width, mean))
    if absent.any() and len(there):
        found.append(_whether(j, MISSING, 0, weight[absent].sum() / weight.sum(), scale))
    return found


def mean_and_spread(values: Floats, weight: Floats) -> tuple[float, float]:
    """Mean and standard deviation, in a unit in which no square is too large or too small to be a number."""
    _, exponent = np.frexp(np.abs(values).max())
    power = 0 if -300 < exponent < 300 else int(exponent)
    there = np.ldexp(values, -power)
    mean = float((there * weight).sum() / weight.sum())
    spread = float(np.sqrt((weight * (there - mean) ** 2).sum() / weight.sum()))
    return float(np.ldexp(mean, power)), float(np.ldexp(spread, power))
