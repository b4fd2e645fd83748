"""Design matrix of a table: scaled numeric terms, for linear models, support vector machines and distances.

Each column becomes one or more terms: the standardised value of a number and, if values were missing at fit, an
indicator of missing values; an indicator of each category that occurred at fit. Missing values are replaced by the
mean.

Other scales: "range" subtracts the lowest value and divides by the range, None does not scale and retains constant
columns; with both, indicators are 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.schema import Schema
from spinney._data.types import Floats

VALUE, MISSING, CATEGORY = 0, 1, 2
_FARTHEST = 1e100  # so that squared distances are numbers
_CHUNK = 2**17  # numbers of the columns that are read at a time
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
        used, n_categories = weight > 0, np.array(schema.n_categories)
        positive = weight[used]
        found = [_Terms.of([])]
        step = max(1, _CHUNK // max(1, columns.n_rows))
        for begin in range(0, len(n_categories), step):
            features = np.arange(begin, min(begin + step, len(n_categories)), dtype=np.int32)
            values = columns.block(features, False)
            values = values if len(positive) == len(used) else np.ascontiguousarray(values[:, used])
            is_plain = (n_categories[features] == 0) & _are_finite(values)
            plain = values if is_plain.all() else values[is_plain]
            found.append(_plain_terms(features[is_plain], plain, positive, scale))
            for j in np.flatnonzero(~is_plain).tolist():
                found.append(_terms_of(begin + j, values[j], int(n_categories[begin + j]), positive, scale, schema))
        terms = _Terms.joined(found)
        order = np.argsort(terms.feature, kind="stable")
        feature, kind, code, center, width, fill = (numbers[order] for numbers in vars(terms).values())
        return cls(feature, kind, code, center, width, None if scale == "standard" else fill)

    @classmethod
    def learn_first(cls, columns: _engine.Table, schema: Schema, weight: Floats, scale: str | None) -> Design:
        """Return the terms of the first of several batches: also those that do not vary among its rows."""
        varying, plain = (cls.learn(columns, schema, weight, one) for one in (scale, None))
        found: dict[tuple[int, int, int], _Term] = {}
        for design in (plain, varying):
            fill = design.center if design.fill is None else design.fill
            arrays: list[NDArray[Any]] = [design.feature, design.kind, design.code, design.center, design.scale, fill]
            found |= {term[:3]: term for term in zip(*(array.tolist() for array in arrays), strict=True)}
        for j, n_categories in enumerate(schema.n_categories):
            absent = {(j, CATEGORY, c): (j, CATEGORY, c, 0.0, 1.0, 0.0) for c in range(n_categories)}
            found = absent | found
        terms = _Terms.of([found[key] for key in sorted(found)])
        return cls(*vars(terms).values())

    @classmethod
    def of_numbers(cls, rows: Floats) -> Design:
        """Return the unscaled terms of a table of bounded numbers, (n_rows, n_terms), as `learn` does."""
        return _NumbersDesign(rows)

    @classmethod
    def learn_terms(
        cls, columns: _engine.Table, schema: Schema, weight: Floats, scale: str | None
    ) -> tuple[Design, Floats]:
        """Return `learn`'s design and the terms of all rows, (n_terms, n_rows), read once if they are the numbers."""
        if scale is None and schema.is_numeric and (weight == 1).all():
            terms = columns.block(np.arange(columns.n_columns, dtype=np.int32), False)
            if are_bounded(terms):
                design: Design = _NumbersDesign(terms.T)
                _ = design.fill  # computed now, so that the design does not retain the terms
                return design, terms
        design = cls.learn(columns, schema, weight, scale)
        return design, design.matrix(columns)

    def matrix(self, columns: _engine.Table, by_row: bool = False) -> Floats:
        """Return the terms of some rows, (n_terms, n_rows), or with `by_row` the transpose."""
        found = columns.block(self.feature, by_row)
        terms = found.T if by_row else found
        if (self.kind != VALUE).any():
            is_missing, is_category = self.kind == MISSING, self.kind == CATEGORY
            terms[is_missing] = np.isnan(terms[is_missing])
            terms[is_category] = terms[is_category] == self.code[is_category, np.newaxis]
        if not are_bounded(found):
            unknown = ~np.isfinite(terms)  # infinite numbers have no distance either
            fill = self.center if self.fill is None else self.fill
            np.copyto(terms, fill[:, np.newaxis], where=unknown)
        elif not self.is_scaled:
            return found
        if self.is_scaled:
            terms -= self.center[:, np.newaxis]
            terms /= self.scale[:, np.newaxis]
        return np.clip(found, -_FARTHEST, _FARTHEST, out=found)

    @cached_property
    def is_scaled(self) -> bool:
        """Whether a term differs from the numbers of its column, or from an indicator."""
        return bool(self.center.any() or (self.scale != 1).any())

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
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: numbers for name, numbers in arrays.items() if numbers is not None}

    def fits(self, n_categories: list[int]) -> bool:
        """Return whether terms of categories, and only these, are of columns that have them."""
        sizes, is_category = np.array(n_categories)[self.feature], self.kind == CATEGORY
        return bool(((sizes > 0) == is_category).all() and (self.code < sizes)[is_category].all())


class _NumbersDesign(Design):
    """Terms that are the numbers of the table; the means, which replace missing values, are computed on first use."""

    def __init__(self, rows: Floats) -> None:
        n = rows.shape[1]
        zeros = np.zeros(n, dtype=np.int32)
        super().__init__(np.arange(n, dtype=np.int32), zeros, zeros, np.zeros(n), np.ones(n))
        self.__dict__["_rows"] = rows
        del self.__dict__["fill"]

    @cached_property
    def fill(self) -> Floats:
        """Mean of each column."""
        rows: Floats | None = self.__dict__.get("_rows")
        if rows is None:  # another thread has computed the means meanwhile
            return np.asarray(self.__dict__["fill"])
        weight, step = np.ones(len(rows)), max(1, _CHUNK // len(rows))
        blocks = (np.ascontiguousarray(rows[:, j : j + step].T) for j in range(0, rows.shape[1], step))
        found = np.concatenate([means_and_spreads(block, weight, False)[0] for block in blocks])
        self.__dict__["fill"] = found  # before the rows are released
        self.__dict__.pop("_rows", None)
        return found


@dataclass(frozen=True)
class _Terms:
    """Terms of some columns: the arrays of a design."""

    feature: NDArray[np.int32]
    kind: NDArray[np.int32]
    code: NDArray[np.int32]
    center: Floats
    scale: Floats
    fill: Floats

    @classmethod
    def of(cls, terms: list[_Term]) -> _Terms:
        """Return terms given one by one."""
        entries: Any = zip(*terms, strict=True) if terms else [()] * 6
        types = (np.int32, np.int32, np.int32, np.float64, np.float64, np.float64)
        arrays: list[NDArray[Any]] = [np.array(entry, dtype=t) for entry, t in zip(entries, types, strict=True)]
        return cls(*arrays)

    @classmethod
    def joined(cls, parts: list[_Terms]) -> _Terms:
        """Return all terms of several lists of terms."""
        return cls(*[np.concatenate(entries) for entries in zip(*[vars(part).values() for part in parts], strict=True)])


def _terms_of(j: int, values: Floats, n_categories: int, weight: Floats, scale: str | None, schema: Schema) -> _Terms:
    """Return the terms of a column of categories, or of numbers that are not all finite."""
    absent = np.isnan(values)
    if n_categories:
        codes = np.where(absent, n_categories, values).astype(np.intp)
        means = np.bincount(codes, weight, n_categories + 1)[:n_categories] / float(weight.sum())
        return _Terms.of([_indicator(j, CATEGORY, c, mean, scale) for c, mean in enumerate(means) if 0 < mean < 1])
    if np.isinf(values).any():
        _warn_of_infinite(schema.features[j].name)
        return _Terms.of([])
    return _number_terms(j, values, absent, weight, scale)


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


def _plain_terms(features: NDArray[np.int32], values: Floats, weight: Floats, scale: str | None) -> _Terms:
    """Return the terms of columns of finite numbers, (n_features, n_rows)."""
    if not len(features) or not len(weight):
        return _Terms.of([])
    mean, spread = means_and_spreads(values, weight, scale is not None)
    is_used, center, width = np.isfinite(mean), np.zeros(len(mean)), np.ones(len(mean))
    if scale is not None:
        is_used = np.isfinite(spread) & (spread > 1e-12 * np.abs(mean))
        low = values.min(axis=1)
        center, width = (mean, spread) if scale == "standard" else (low, values.max(axis=1) - low)
    kind = np.full(len(mean), VALUE, dtype=np.int32)
    terms = _Terms(features, kind, np.zeros_like(kind), center, width, mean)
    return _Terms(*[numbers[is_used] for numbers in vars(terms).values()])


def _number_terms(j: int, values: Floats, absent: NDArray[np.bool_], weight: Floats, scale: str | None) -> _Terms:
    """Return the terms of a column with missing numbers: its value, and whether it is missing."""
    if absent.all():
        return _Terms.of([])
    known = values[np.newaxis, ~absent]
    missing = _indicator(j, MISSING, 0, weight[absent].sum() / weight.sum(), scale)
    number = _plain_terms(np.array([j], dtype=np.int32), known, weight[~absent], scale)
    return _Terms.joined([number, _Terms.of([missing])])


def are_bounded(values: Floats) -> bool:
    """Return whether all numbers are finite and small enough for squared distances; False if their squares are not."""
    return is_bounded(float(np.einsum("ij,ij->", values, values)))


def is_bounded(squares: float) -> bool:
    """Return `are_bounded` of numbers, given the sum of their squares."""
    return squares <= _FARTHEST**2 / 2


def _are_finite(values: Floats) -> NDArray[np.bool_]:
    """Return whether all numbers of each row are finite."""
    if not values.shape[1]:
        return np.ones(len(values), dtype=bool)
    highest, lowest = values.max(axis=1), values.min(axis=1)  # NaN if a number is
    return np.asarray(np.isfinite(highest) & np.isfinite(lowest))


def means_and_spreads(values: Floats, weight: Floats, has_spread: bool = True) -> tuple[Floats, Floats]:
    """Return mean and standard deviation (or 0) of each row, computed in a unit in which squares stay in range."""
    _, exponent = np.frexp(np.maximum(values.max(axis=1), -values.min(axis=1)))
    power = np.where(np.abs(exponent) < 300, 0, exponent)[:, np.newaxis]
    scaled = np.ldexp(values, -power) if power.any() else values
    weighted = scaled if (weight == 1).all() else scaled * weight
    mean = weighted.sum(axis=1, keepdims=True) / weight.sum()
    if not has_spread:
        return np.ldexp(mean, power)[:, 0], np.zeros(len(mean))
    spread = np.sqrt((weight * (scaled - mean) ** 2).sum(axis=1, keepdims=True) / weight.sum())
    return np.ldexp(mean, power)[:, 0], np.ldexp(spread, power)[:, 0]
