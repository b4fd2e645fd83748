"""Combinations of columns, which trees split on.

Vocabulary: `inputs` are the columns of the caller's table. Trees split on some of the inputs, and then on the
combinations. A combination is a weighted sum, a product or a ratio of a few numbers, its `parts`, or the cross of two
columns of categories, whose categories are the pairs of theirs. It is missing where any of its parts is; a product or
ratio also where it is not finite, as with a divisor of 0. The code of a cross is a weighted sum of the codes of its
parts: the first has as many codes as it has categories, and one more for those that did not occur at fit.

Oblique forests draw random sums, and split only on the inputs that are not numbers or have many missing values besides.
Their coefficients are those of standardised columns, divided by the standard deviation of each column (`spread`), so
that they are in the units of the table. Boosting splits on all inputs and on combinations of pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.feature import add_values
from spinney._data.reproducible import random_bits, random_uniform, times
from spinney._data.types import Floats

if TYPE_CHECKING:
    from spinney._data.feature import Feature

Operation = Literal["sum", "product", "ratio", "cross"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
_PARTS, _COEFFICIENTS = 101, 102  # purposes of random numbers
SIGNS = {"product": " × ", "ratio": " / ", "cross": " × "}
_DIGITS = 3  # of a coefficient, which are printed and used alike; noise in the spreads does not matter
_BLOCK_VALUES = 2**22  # computed at a time where a whole table is not needed at once
_MOST_PARTS, _MOST_COMBINATIONS = 1000, 10**6
_UNSEEN = "(unseen)"  # in the names of crosses
MOST_CROSSED = 2**16  # categories of a cross


@dataclass(frozen=True)
class Pair:
    """A combination of two inputs; `sign` is the coefficient of the second in a sum."""

    first: int
    second: int
    operation: Operation
    sign: float = 1.0


@dataclass(frozen=True, eq=False)
class Combinations:
    """The combinations that trees split on.

    Attributes
    ----------
    plain : list of int
        Inputs that trees split on directly.
    parts : ndarray of shape (n_combinations, n_combined)
        Inputs of each combination, ascending.
    coefficients : ndarray of shape (n_combinations, n_combined)
    spread : ndarray of shape (n_inputs,)
        Standard deviation of each input that is combined.
    operations : list of {"sum", "product", "ratio", "cross"}
        Kind of each combination. Products and ratios have two parts, with coefficients of 1; crosses have two columns
        of categories.
    """

    plain: list[int]
    parts: NDArray[np.intp]
    coefficients: Floats
    spread: Floats
    operations: list[Operation]

    @classmethod
    def draw(
        cls,
        features: Sequence[Feature],
        columns: _engine.Table,
        weight: Floats | None,
        n_combinations: int,
        n_combined: int,
        seed: int,
    ) -> Combinations:
        """Draw combinations of the numeric columns, as a function of (seed, combination), which use all columns evenly.

        Parameters
        ----------
        features : sequence of Feature
            The inputs.
        columns : Table
            Training rows.
        weight : ndarray or None
            Weights of the rows, for the spreads.
        n_combinations, n_combined : int
        seed : int
        """
        numbers = [j for j, f in enumerate(features) if f.kind in ("number", "boolean") and not f.empty]
        if not numbers:
            raise ValueError("oblique combines numeric columns, and the table has none. Set oblique=None.")
        # a constant column separates no rows, so that it must neither enter a sum nor have importance
        varying = [j for j in numbers if _varies(np.asarray(columns.column(j)), weight)]
        numbers = varying or numbers
        # sums must not be missing in most rows: n columns like this one must be known together in half of the rows
        least = 0.5 ** (1 / n_combined)
        known = [j for j in numbers if _known_fraction(np.asarray(columns.column(j)), weight) >= least]
        alone = set(numbers) - set(known) if known else set()
        numbers = known or numbers
        spread = np.ones(len(features))
        for j in numbers:
            spread[j] = _spread(np.asarray(columns.column(j)), weight)
        combination, place = np.arange(n_combinations)[:, np.newaxis], np.arange(min(n_combined, len(numbers)))
        parts = _draw_parts(np.asarray(numbers, dtype=np.intp), n_combinations, len(place), seed)
        _warn_of_left_out(features, numbers, parts)
        raw = (2.0 * random_uniform(seed, _COEFFICIENTS, combination, place) - 1.0) / spread[parts]
        plain = [j for j, f in enumerate(features) if f.kind not in ("number", "boolean") or j in alone]
        return cls(plain, parts, _rounded(raw), spread, ["sum"] * len(parts))

    @classmethod
    def of_pairs(cls, columns: _engine.Table, weight: Floats | None, pairs: Sequence[Pair]) -> Combinations:
        """Return combinations of pairs of columns, besides all columns of a table.

        Parameters
        ----------
        columns : Table
            Training rows.
        weight : ndarray or None
            Weights of the rows, for the spreads.
        pairs : sequence of Pair
        """
        spread = np.ones(columns.n_columns)
        numbers = [pair for pair in pairs if pair.operation != "cross"]
        for j in {part for pair in numbers for part in (pair.first, pair.second)}:
            spread[j] = _spread(np.asarray(columns.column(j), dtype=np.float64), weight)
        spread = _rounded(spread)
        parts = np.array([(pair.first, pair.second) for pair in pairs], dtype=np.intp)
        n_codes = [columns.n_categories(pair.second) + 1.0 for pair in pairs]
        firsts = (n if pair.operation == "cross" else 1.0 for n, pair in zip(n_codes, pairs, strict=True))
        coefficients = np.array([(first, pair.sign) for first, pair in zip(firsts, pairs, strict=True)])
        return cls(list(range(columns.n_columns)), parts, coefficients, spread, [pair.operation for pair in pairs])

    @property
    def pairs(self) -> list[Pair]:
        """The combinations, if they are of pairs."""
        signs = self.coefficients[:, 1].tolist()
        return [Pair(a, b, *of) for (a, b), *of in zip(self.parts.tolist(), self.operations, signs, strict=True)]

    def only(self, which: Sequence[int]) -> Combinations:
        """Return some of the combinations."""
        operations = [self.operations[k] for k in which]
        chosen = list(which)
        return replace(self, parts=self.parts[chosen], coefficients=self.coefficients[chosen], operations=operations)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def n_split_columns(self) -> int:
        """Number of columns that trees split on."""
        return len(self.plain) + len(self)

    @property
    def replaces_inputs(self) -> bool:
        """Whether trees do not split on some of the inputs directly."""
        return len(self.plain) < len(self.spread)

    @property
    def draw_weights(self) -> list[float]:
        """Relative probability of each column that trees split on to be considered; empty: all equal.

        The combinations together count as many as the columns that they combine, so that other columns are considered
        as often as without combinations.
        """
        if not self.plain or not self.replaces_inputs:
            return []
        plain = len(self) / max(1, len(self.spread) - len(self.plain))
        weights = np.repeat([plain, 1.0], [len(self.plain), len(self)])
        return [float(weight) for weight in weights / weights.max()]

    # ---- computing -----------------------------------------------------------------------------------

    def of_row(self, row: Floats) -> Floats:
        """Return the values that trees split on for the inputs of one row."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            found = self.coefficients[:, 0] * row[self.parts[:, 0]]
            for m in range(1, self.parts.shape[1]):
                found = found + self.coefficients[:, m] * row[self.parts[:, m]]
            for k, operation in self._products:
                found[k] = _of_pair(operation, row[self.parts[k, 0]], row[self.parts[k, 1]])
        return np.concatenate([row[self.plain], found])

    @property
    def has_others(self) -> bool:
        """Whether some combinations are no sums."""
        return set(self.operations) != {"sum"}

    @cached_property
    def _products(self) -> list[tuple[int, Operation]]:
        """The products and ratios."""
        return [(k, one) for k, one in enumerate(self.operations) if one in ("product", "ratio")]

    def n_categories(self, of_inputs: Sequence[int]) -> list[int]:
        """Return the number of categories of each combination, given those of the inputs: 0 for numbers."""
        return [
            prod(of_inputs[part] + 1 for part in parts) if operation == "cross" else 0
            for parts, operation in zip(self.parts.tolist(), self.operations, strict=True)
        ]

    def blocks(self, inputs: _engine.Table, n_rows: int | None = None) -> Iterator[_engine.Table]:
        """Yield tables of the columns that trees split on, in blocks of `n_rows`; None: chosen to save memory."""
        n_rows = max(1024, _BLOCK_VALUES // self.n_split_columns) if n_rows is None else n_rows
        used = sorted({*self.plain, *np.unique(self.parts).tolist()})
        values = {j: np.asarray(inputs.column(j)) for j in used}
        for begin in range(0, inputs.n_rows, n_rows):
            chunk = {j: column[begin : begin + n_rows] for j, column in values.items()}
            yield self._table(chunk, [inputs.n_categories(j) for j in range(inputs.n_columns)])

    def _table(self, inputs: dict[int, Floats], n_categories: list[int]) -> _engine.Table:
        table = _engine.Table(len(next(iter(inputs.values()))))
        for j in self.plain:
            add_values(table, inputs[j], n_categories[j])
        for k, n in enumerate(self.n_categories(n_categories)):
            add_values(table, self._values(k, inputs), n)
        return table

    def _values(self, k: int, inputs: dict[int, Floats]) -> Floats:
        """Return the values of combination k."""
        operation, parts, coefficients = self.operations[k], self.parts[k].tolist(), self.coefficients[k]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            if operation in ("product", "ratio"):
                a, b = (np.asarray(inputs[part], dtype=np.float64) for part in parts)
                return _of_pair(operation, a, b)
            total = coefficients[0] * inputs[parts[0]]
            for coefficient, part in zip(coefficients[1:], parts[1:], strict=True):
                total = total + coefficient * inputs[part]
            return np.asarray(total)

    # ---- reading -------------------------------------------------------------------------------------

    def name(self, k: int, names: Sequence[str]) -> str:
        """Return combination k as text, such as ``0.52 a − 0.31 b`` or ``a / b``."""
        if self.operations[k] != "sum":
            return SIGNS[self.operations[k]].join(names[part] for part in self.parts[k].tolist())
        text = ""
        for coefficient, part in zip(self.coefficients[k].tolist(), self.parts[k].tolist(), strict=True):
            sign = ("−" if coefficient < 0 else "") if not text else (" − " if coefficient < 0 else " + ")
            size = "" if abs(coefficient) == 1 else f"{abs(coefficient):.{_DIGITS}g} "
            text += f"{sign}{size}{names[part]}"
        return text

    def categories(self, k: int, features: Sequence[Feature]) -> tuple[str, ...]:
        """Return the categories of combination k, if it is a cross, such as ``red × small``; else none."""
        if self.operations[k] != "cross":
            return ()
        first, second = ((*map(str, features[part].categories), _UNSEEN) for part in self.parts[k].tolist())
        return tuple(SIGNS["cross"].join(pair) for pair in product(first, second))

    @cached_property
    def _contributions(self) -> Floats:
        """Fraction of each column that trees split on that is due to each input, (n_split_columns, n_inputs)."""
        fractions = np.zeros((self.n_split_columns, len(self.spread)))
        fractions[np.arange(len(self.plain)), self.plain] = 1.0
        size = np.abs(self.coefficients * self.spread[self.parts])
        size[[operation != "sum" for operation in self.operations]] = 1.0
        total = size.sum(axis=1, keepdims=True)
        size = np.divide(size, total, out=np.full(size.shape, 1.0 / size.shape[1]), where=total > 0)
        np.add.at(fractions, (np.arange(len(self))[:, np.newaxis] + len(self.plain), self.parts), size)
        return fractions

    def credit_inputs(self, by_split_column: NDArray[Any]) -> Floats:
        """Distribute importances of split columns over the inputs.

        Parts of a sum are credited by the size of their standardised coefficients, other parts equally.
        """
        return times(by_split_column, self._contributions)

    def credit_inputs_along(self, values: Floats, axis: int) -> Floats:
        """Distribute an axis of split columns over the inputs, as `credit_inputs` does."""
        moved = np.moveaxis(values, axis, -1)
        flat = times(moved.reshape(-1, moved.shape[-1]), self._contributions)
        return np.moveaxis(flat.reshape(*moved.shape[:-1], -1), -1, axis)

    def uses(self, split_columns: NDArray[Any]) -> NDArray[np.intp]:
        """Return the number of splits that use each input, given the number of splits on each split column."""
        return np.asarray(split_columns @ (self._contributions > 0).astype(np.intp))

    # ---- saving --------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON, the inverse of `from_dict`."""
        fields = {
            "plain": [int(j) for j in self.plain],
            "parts": self.parts.tolist(),
            "coefficients": self.coefficients.tolist(),
            "spread": self.spread.tolist(),
        }
        return fields | ({"operations": self.operations} if self.has_others else {})

    @classmethod
    def from_dict(cls, fields: Any, features: Sequence[Feature]) -> Combinations:
        """Return the combinations of a dict; raises ValueError if `fields` is invalid."""
        other = [j for j, f in enumerate(features) if f.kind not in ("number", "boolean")]
        plain = fields.get("plain") if isinstance(fields, dict) else None
        if (
            not isinstance(plain, list)
            or any(type(j) is not int for j in plain)
            or plain != sorted({*plain, *other})
            or not set(plain) <= set(range(len(features)))
        ):
            raise ValueError("This is not a schema: its combinations do not match its features.")
        try:
            parts = np.array(fields["parts"], dtype=np.int64)
            coefficients = np.array(fields["coefficients"], dtype=np.float64)
            spread = np.array(fields["spread"], dtype=np.float64)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"This is not a schema: its combinations are unusable ({type(error).__name__}).") from None
        if (
            parts.ndim != 2
            or parts.shape != coefficients.shape
            or not 0 < len(parts) <= _MOST_COMBINATIONS
            or not 0 < parts.shape[1] <= _MOST_PARTS
            or spread.shape != (len(features),)
            or not (np.isfinite(coefficients).all() and np.isfinite(spread).all() and (spread > 0).all())
        ):
            raise ValueError("This is not a schema: its combinations do not match its features.")
        operations = fields.get("operations", ["sum"] * len(parts))
        if (
            not isinstance(operations, list)
            or len(operations) != len(parts)
            or any(operation not in OPERATIONS for operation in operations)
        ):
            raise ValueError("This is not a schema: the operations of its combinations are unusable.")
        found = cls(plain, parts.astype(np.intp), coefficients, spread, operations)
        if not all(found._is_possible(k, features) for k in range(len(found))):
            raise ValueError("This is not a schema: its combinations do not match its features.")
        return found

    def _is_possible(self, k: int, features: Sequence[Feature]) -> bool:
        """Return whether a combination from a file has parts of the kind of its operation, and their coefficients."""
        operation, parts, coefficients = self.operations[k], self.parts[k].tolist(), self.coefficients[k].tolist()
        if not set(parts) <= set(range(len(features))):
            return False
        if operation == "cross":
            n_codes = [len(features[part].categories) + 1.0 for part in parts]
            are_categories = all(features[part].kind == "category" for part in parts)
            return are_categories and coefficients == [n_codes[-1], 1.0] and prod(n_codes) <= MOST_CROSSED
        are_free = all(features[part].kind in ("number", "boolean") for part in parts)
        are_free = are_free and (not self.replaces_inputs or not set(parts) & set(self.plain))
        return are_free and (operation == "sum" or coefficients == [1.0, 1.0])


def _of_pair(operation: Operation, a: Floats, b: Floats) -> Floats:
    """Return a product or ratio; missing where it is not finite."""
    found = a * b if operation == "product" else a / b
    return np.where(np.isfinite(found), found, np.nan)


def n_for_all(n_columns: int, n_combined: int) -> int:
    """Return how many combinations are needed to use all columns."""
    return -(-n_columns // n_combined)


def _draw_parts(numbers: NDArray[np.intp], n_combinations: int, n_combined: int, seed: int) -> NDArray[np.intp]:
    """Split permutations of the columns into combinations; the last one of a permutation wraps around to its start.

    So each combination is as likely as any other, and no column is left out while another is used twice (thrice, where
    a combination wraps around).
    """
    n_per_permutation = n_for_all(len(numbers), n_combined)
    permutations = np.arange(-(-n_combinations // n_per_permutation))[:, np.newaxis]
    order = np.argsort(random_bits(seed, _PARTS, permutations, numbers), axis=1, kind="stable")
    drawn = order[:, np.arange(n_per_permutation * n_combined) % len(numbers)].reshape(-1, n_combined)
    return np.sort(numbers[drawn[:n_combinations]], axis=1)


def _warn_of_left_out(features: Sequence[Feature], numbers: list[int], parts: NDArray[np.intp]) -> None:
    left_out = np.setdiff1d(numbers, parts)
    if len(left_out):
        n, n_combined = parts.shape
        warnings.warn(
            f"oblique={n} combinations of {n_combined} columns leave out {len(left_out)} of {len(numbers)} "
            f"numeric columns, such as '{features[left_out[0]].name}', so that no tree can use them. Set "
            f"oblique={n_for_all(len(numbers), n_combined)} or more.",
            stacklevel=2,
        )


def _varies(values: Floats, weight: Floats | None) -> bool:
    used = values if weight is None else values[weight > 0]
    return bool((used != used[0]).any())


def _known_fraction(values: Floats, weight: Floats | None) -> float:
    return float(np.average(~np.isnan(values), weights=weight))


def _spread(values: Floats, weight: Floats | None) -> float:
    """Return the standard deviation of the known values; 1 if it is 0 or undefined."""
    known = np.isfinite(values) if weight is None else np.isfinite(values) & (weight > 0)
    if not known.any():
        return 1.0
    values, weight = values[known], None if weight is None else weight[known]
    scale = np.exp2(np.frexp(np.abs(values).max())[1] - 1.0)  # squares must neither overflow nor underflow
    values = values / scale if scale > 0 else values
    centre = np.average(values, weights=weight)
    spread = float(np.sqrt(np.average((values - centre) ** 2, weights=weight)))
    # equal values may differ by rounding; they get 1, so that the coefficient is finite
    return min(max(spread * float(scale), 1e-300), 1e300) if spread > 1e-12 * abs(float(centre)) else 1.0


def _rounded(coefficients: Floats) -> Floats:
    texts = [f"{c:.{_DIGITS}g}" for c in coefficients.ravel().tolist()]
    return np.array([float(text) for text in texts]).reshape(coefficients.shape)
