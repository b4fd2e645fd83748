"""Design matrix of a table: scaled numeric terms, for linear models, support vector machines and distances.

Each column becomes one or more terms: the standardised value of a number and, if values were missing at fit, an
indicator of missing values; an indicator of each category that occurred at fit. Missing values are replaced by the
mean.

Other scales: "range" subtracts the lowest value and divides by the range, None does not scale and retains constant
columns; with both, indicators are 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.schema import Schema
from spinney._data.types import Floats

VALUE, MISSING, CATEGORY = 0, 1, 2
_FARTHEST = 1e100  # so that squared distances are numbers
_Term = tuple[int, int, int, float, float, float]  # feature, kind, code, center, scale, fill


@dataclass(frozen=True)
class Design:
    """The terms of a table.

    Attributes
    ----------
    feature : ndarray of shape (n_terms,)
        Column of each term.
    kind : ndarray of shape (n_terms,)
        VALUE, MISSING or CATEGORY.
    code : ndarray of shape (n_terms,)
        Code of the category; 0 for other terms.
    center, scale : ndarray of shape (n_terms,)
        Subtrahend and divisor of each term.
    fill : ndarray of shape (n_terms,), or None
        Replacement of missing values before scaling; None: the center.
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
        """Return the terms that vary among the rows of positive weight."""
        terms: list[_Term] = []
        used = weight > 0
        positive, total = weight[used], float(weight[used].sum())
        for j, n_categories in enumerate(schema.n_categories):
            values = np.asarray(columns.column(j))[used]
            absent = np.isnan(values)
            if n_categories:
                codes = np.where(absent, n_categories, values).astype(np.intp)
                means = np.bincount(codes, positive, n_categories + 1)[:n_categories] / total
                terms += [_indicator(j, CATEGORY, c, mean, scale) for c, mean in enumerate(means) if 0 < mean < 1]
            elif np.isinf(values).any():
                _warn_of_infinite(schema.features[j].name)
            else:
                terms += _number_terms(j, values, absent, positive, scale)
        arrays = zip(*terms, strict=True) if terms else ((), (), (), (), (), ())
        feature, kind, code, center, width, fill = arrays
        whole = [np.array(entry, dtype=np.int32) for entry in (feature, kind, code)]
        numbers = [np.array(entry, dtype=float) for entry in (center, width, fill)]
        fills = None if scale == "standard" else numbers[2]
        return cls(whole[0], whole[1], whole[2], numbers[0], numbers[1], fills)

    def matrix(self, columns: _engine.Table) -> Floats:
        """Return the terms of some rows, (n_terms, n_rows)."""
        terms = np.empty((len(self), columns.n_rows))
        fill = self.center if self.fill is None else self.fill
        last, values = -1, np.empty(0)
        for t, (j, kind) in enumerate(zip(self.feature.tolist(), self.kind.tolist(), strict=True)):
            if j != last:
                last, values = j, np.asarray(columns.column(j))
                absent = np.isnan(values)
                unknown = ~np.isfinite(values)  # infinite numbers have no distance either
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
        """Return the names of the terms."""
        names = []
        for j, kind, code in zip(self.feature.tolist(), self.kind.tolist(), self.code.tolist(), strict=True):
            feature = schema.features[j]
            suffix = {VALUE: "", MISSING: " is missing"}.get(kind)
            names.append(f"{feature.name}{f' = {feature.categories[code]}' if suffix is None else suffix}")
        return names

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name."""
        return {name: numbers for name, numbers in vars(self).items() if numbers is not None}

    def fits(self, n_categories: list[int]) -> bool:
        """Return whether terms of categories, and only these, are of columns that have them."""
        sizes, is_category = np.array(n_categories)[self.feature], self.kind == CATEGORY
        return bool(((sizes > 0) == is_category).all() and (self.code < sizes)[is_category].all())


def _warn_of_infinite(name: str) -> None:
    """Warn that a column is left out, because infinite numbers have no mean and no distance."""
    warn(
        f"Column {name!r} has infinite numbers and is left out by models that need its mean or distances. Replace "
        "them by missing values or by a large finite number."
    )


def _indicator(j: int, kind: int, code: int, mean: float, scale: str | None) -> _Term:
    """Return an indicator term with the given mean."""
    center = float(mean)
    if scale != "standard":
        return j, kind, code, 0.0, 1.0, center
    return j, kind, code, center, float(np.sqrt(center * (1 - center))), center


def _number_terms(j: int, values: Floats, absent: NDArray[np.bool_], weight: Floats, scale: str | None) -> list[_Term]:
    """Return the terms of a numeric column: its value and, if some are missing, an indicator."""
    terms: list[_Term] = []
    known = values[~absent]
    if len(known):
        mean, spread = mean_and_spread(known, weight[~absent])
        varies = spread > 1e-12 * abs(mean)
        if np.isfinite(spread) and scale is None:
            terms.append((j, VALUE, 0, 0.0, 1.0, mean))
        elif np.isfinite(spread) and varies:
            low = float(known.min())
            center, width = (mean, spread) if scale == "standard" else (low, float(known.max()) - low)
            terms.append((j, VALUE, 0, center, width, mean))
    if absent.any() and len(known):
        terms.append(_indicator(j, MISSING, 0, weight[absent].sum() / weight.sum(), scale))
    return terms


def mean_and_spread(values: Floats, weight: Floats) -> tuple[float, float]:
    """Return mean and standard deviation, computed in a unit in which squares neither overflow nor underflow."""
    _, exponent = np.frexp(np.abs(values).max())
    power = 0 if -300 < exponent < 300 else int(exponent)
    scaled = np.ldexp(values, -power)
    mean = float((scaled * weight).sum() / weight.sum())
    spread = float(np.sqrt((weight * (scaled - mean) ** 2).sum() / weight.sum()))
    return float(np.ldexp(mean, power)), float(np.ldexp(spread, power))
