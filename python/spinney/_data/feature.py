"""One column of a schema: its kind, the encoding of its values as numbers or codes, and its entry in a model file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.cells import CLOCKS, RESOLUTIONS, clock_error, parse_dates, resolution_of
from spinney._data.columns import (
    Array,
    CodedColumn,
    Column,
    NumberColumn,
    RawTable,
    Scalar,
    SparseColumn,
    coded_column,
    dense_column,
    listed,
    missing_column,
    missing_numbers,
)
from spinney._data.display import warn
from spinney._data.types import Floats

Unseen = Literal["missing", "error", "other"]


NO_CODE = -2


@dataclass(frozen=True)
class Feature:
    """A column of the training table, as a model stores it.

    Attributes
    ----------
    name : str
        Its name at fit; ``x0``, ``x1``, … where the table had no names.
    kind : {"number", "boolean", "ordered", "category"}
    categories : tuple of str, int, float or bool
        For "category" the values that occurred at fit, sorted or as declared; for "ordered" the declared values in
        order.
    empty : bool
        Whether the column had no value at fit.
    clock : {"", "local", "utc"}
        For dates, which trees use as numbers: whether they had a time zone. "" for other columns.
    resolution : {"", "day", "hour", "minute", "second", "microsecond"}
        For dates: the longest unit of which all are multiples.
    absent : tuple of two floats, or None
        For numbers: those in this closed interval are missing values; imported models may have one.
    written : str
        For dates: their format in the training file, as in `strptime`; "" if they were no text, or in ISO 8601.
    """

    name: str
    kind: str
    categories: tuple[Scalar, ...] = ()
    empty: bool = False
    clock: str = ""
    resolution: str = ""
    absent: tuple[float, float] | None = None
    written: str = ""

    @property
    def kind_in_words(self) -> str:
        """The kind for display: "date" for numbers that are dates."""
        return "date" if self.clock else self.kind

    @cached_property
    def code_of(self) -> dict[Scalar, int]:
        """Code of each category; 1, 1.0 and True are equal in Python."""
        return {value: code for code, value in enumerate(self.categories)}

    @property
    def holds_text(self) -> bool:
        """Whether the categories are strings."""
        return bool(self.categories) and isinstance(self.categories[0], str)


@dataclass(frozen=True, slots=True)
class PlainFeatures:
    """Many numeric columns without further properties: sparse tables may have 100,000."""

    names: list[str]
    kind: str


def learn_feature(name: str, column: Column, forced: bool, n_rows: int, as_declared: bool = False) -> Feature:
    """Return the feature of a training column."""
    if isinstance(column, SparseColumn):
        if not forced:
            return Feature(name, "boolean" if column.values.dtype.kind == "b" else "number")
        column = dense_column(column, n_rows)
    if isinstance(column, NumberColumn):
        if column.clock:
            return _learn_dates(name, column, forced)
        if not forced:
            kind = "boolean" if column.values.dtype.kind == "b" else "number"
            return Feature(name, kind, empty=is_empty(column))
        column = coded_column(column)
    occurring = [column.values[code] for code in column.occurring_codes()]
    values = {value for value in occurring if not _is_nan(value)}
    if not values:
        return Feature(name, "number", empty=True)
    if column.ordered and not forced:
        declared = dict.fromkeys(value for value in column.values if not _is_nan(value))
        return Feature(name, "ordered", tuple(declared))
    if as_declared and column.declared:
        return Feature(name, "category", tuple(value for value in dict.fromkeys(column.values) if value in values))
    return Feature(name, "category", tuple(sorted(cast(set[Any], values))))


def _learn_dates(name: str, column: NumberColumn, forced: bool) -> Feature:
    if forced:
        raise TypeError(f"categorical_features names the column {name!r}, which holds dates. Convert it to strings.")
    return Feature(name, "number", (), is_empty(column), column.clock, resolution_of(column))


def is_empty(column: NumberColumn) -> bool:
    """Return whether all values of a column are missing."""
    values, missing = column.values, column.missing
    first_missing = missing is not None and missing[0] != 0
    if not first_missing and not (values.dtype.kind == "f" and np.isnan(values[0])):
        return False
    return bool(missing_numbers(column).all())


def _is_nan(value: object) -> bool:
    return bool(value != value)


def add_feature(target: _engine.Table, feature: Feature, column: Column, unseen: Unseen, label: str) -> None:
    """Add a column to an engine table: its numbers, or the codes of its categories."""
    is_number = feature.kind in ("number", "boolean")
    if isinstance(column, SparseColumn):
        if is_number and feature.absent is None:
            target.add_sparse(column.rows, column.values)
            return
        column = dense_column(column, target.n_rows)
    if not is_number:
        _add_codes(target, feature, coded(column, label), unseen, label)
        return
    numbers = _numbers(feature, column, unseen, label)
    values = numbers.values
    if feature.absent is not None:
        values = values.astype(np.float64)
        values[(values >= feature.absent[0]) & (values <= feature.absent[1])] = np.nan
    target.add_number(values, numbers.missing)


def add_values(table: _engine.Table, values: Floats, n_categories: int) -> None:
    """Add a column of numbers, or of codes if there are categories; NaN is missing."""
    if n_categories:
        table.add_category(np.where(np.isnan(values), -1, values).astype(np.int32), n_categories)
    else:
        table.add_number(values)


def table_of(columns: Iterable[Floats], n_rows: int, n_categories: Iterable[int]) -> _engine.Table:
    """Return a table of columns of numbers, or of codes if there are categories; NaN is missing."""
    table = _engine.Table(n_rows)
    for values, n in zip(columns, n_categories, strict=True):
        add_values(table, values, n)
    return table


def columns_of(table: _engine.Table) -> list[Floats]:
    """Return the columns of a table: numbers, or codes of categories; NaN is missing."""
    return [np.asarray(table.column(j)) for j in range(table.n_columns)]


def feature_values(feature: Feature, column: Column, n_rows: int, unseen: Unseen, label: str) -> NDArray[np.float64]:
    """Return one column as the engine reads it: numbers, or codes of categories; NaN is missing.

    A category that did not occur at fit is missing, or the number of categories if `unseen` is "other".
    """
    table = _engine.Table(n_rows)
    add_feature(table, feature, column, unseen, label)
    return np.asarray(table.column(0))


def _numbers(feature: Feature, column: NumberColumn | CodedColumn, unseen: Unseen, label: str) -> NumberColumn:
    if isinstance(column, CodedColumn):
        if feature.clock:
            return parse_dates(column, feature.clock, label, feature.written)
        return _numbers_of_categories(feature, column, unseen, label)
    if column.clock == feature.clock or is_empty(column):
        return column
    if column.clock and feature.clock:
        raise clock_error(label, column.clock)
    if feature.empty:
        return missing_column(len(column.values))
    was, now = ("dates", "numbers") if feature.clock else ("numbers", "dates")
    raise TypeError(f"{label} held {was} at fit and holds {now} now; convert it to {was}.")


def _numbers_of_categories(feature: Feature, column: CodedColumn, unseen: Unseen, label: str) -> NumberColumn:
    """Return categories as numbers where numbers are expected; strings are refused."""
    codes = column.occurring_codes()
    values = [column.values[code] for code in codes]
    texts = [value for value in values if isinstance(value, str)]
    if texts and feature.empty:
        if unseen == "error":
            raise _unseen_error(label, texts)
        return missing_column(len(column.codes))
    if texts:
        raise TypeError(
            f"{label} held numbers at fit and holds strings such as {texts[0]!r} now; convert it to numbers."
        )
    numbers = np.full(len(column.values) + 1, np.nan)
    numbers[codes] = [float(value) for value in values]
    return NumberColumn(numbers[column.codes])


def _add_codes(target: _engine.Table, feature: Feature, column: CodedColumn, unseen: Unseen, label: str) -> None:
    new_code = translation(feature, column, label)
    unknown = np.flatnonzero(new_code == NO_CODE).tolist()
    if unknown and unseen == "error":
        raise _unseen_error(label, [column.values[old] for old in unknown])
    if feature.kind == "ordered":
        positions = np.where(new_code < 0, np.nan, new_code).astype(np.float32)
        target.add_number(positions[column.codes])
    else:
        n_categories = len(feature.categories)
        new_code[unknown] = n_categories if unseen == "other" else -1
        occurring = column.occurring_codes()
        is_same = np.array_equal(new_code[occurring], occurring)
        target.add_category(
            column.codes.astype(np.int32, copy=False) if is_same else new_code[column.codes], n_categories
        )


def coded(column: NumberColumn | CodedColumn, label: str) -> CodedColumn:
    """Return a column as codes where categories are expected."""
    if isinstance(column, CodedColumn):
        return column
    if column.clock and not is_empty(column):
        raise TypeError(f"{label} held categories at fit and holds dates now; convert it to categories.")
    return coded_column(column)


def translation(feature: Feature, column: CodedColumn, label: str) -> Array:
    """Return the code in the schema of every code that occurs; the last entry is for -1, the missing value."""
    new_code = np.full(len(column.values) + 1, -1, dtype=np.int32)
    old_codes = column.occurring_codes()
    values = [column.values[old] for old in old_codes]
    value = next((value for value in values if not _is_nan(value)), None)
    if value is not None and isinstance(value, str) != feature.holds_text:
        was, now = ("strings", "numbers") if feature.holds_text else ("numbers", "strings")
        raise TypeError(
            f"{label} had {was} as categories at fit and holds {now} such as {value!r} now; convert it to {was}."
        )
    codes = [feature.code_of.get(value, NO_CODE) for value in values]
    if NO_CODE in codes and not feature.holds_text:
        codes = [-1 if _is_nan(value) else code for value, code in zip(values, codes, strict=True)]
    new_code[old_codes] = codes
    return new_code


def codes_by_name(feature: Feature, column: Column, n_rows: int, label: str) -> tuple[NDArray[np.float64], list[str]]:
    """Return the codes of a column of categories, and the names of those that did not occur at fit.

    They get the codes after those of the fit, in the order of their names.
    """
    if isinstance(column, SparseColumn):
        column = dense_column(column, n_rows)
    column = coded(column, label)
    codes = translation(feature, column, label)
    others = sorted(np.flatnonzero(codes == NO_CODE).tolist(), key=lambda old: str(column.values[old]))
    codes[others] = len(feature.categories) + np.arange(len(others))
    values = codes[column.codes].astype(np.float64)
    values[values < 0] = np.nan
    return values, [str(column.values[old]) for old in others]


def _unseen_error(label: str, values: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{label} holds categories that did not occur at fit: {listed(values)}. "
        "Train on rows that have them, or set unseen='missing' or unseen='other'."
    )


def feature_to_dict(feature: Feature) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": feature.name, "kind": feature.kind}
    if feature.categories:
        fields["categories"] = [_value_to_json(value) for value in feature.categories]
    if feature.empty:
        fields["empty"] = True
    if feature.clock:
        fields |= {"clock": feature.clock, "resolution": feature.resolution}
    if feature.written:
        fields["written"] = feature.written
    if feature.absent is not None:
        fields["absent"] = [_value_to_json(value) for value in feature.absent]
    return fields


def _value_to_json(value: Scalar) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return {"float": "inf" if value > 0 else "-inf"}  # JSON has no infinity
    return value


def _value_from_json(value: object) -> Scalar:
    if isinstance(value, dict) and value.get("float") in ("inf", "-inf"):
        return float(value["float"])
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"This is not a schema: {value!r} cannot be a category.")


def feature_from_dict(fields: dict[str, Any]) -> Feature:
    categories = tuple(_value_from_json(value) for value in fields.get("categories", ()))
    clock, resolution = fields.get("clock", ""), fields.get("resolution", "")
    absent = _absent_from_json(fields["absent"]) if "absent" in fields else None
    empty, written = fields.get("empty", False), fields.get("written", "")
    feature = Feature(fields["name"], fields["kind"], categories, empty, clock, resolution, absent, written)
    has_codes = feature.kind in ("ordered", "category")
    same_type = len({isinstance(value, str) for value in categories}) <= 1
    if (
        not isinstance(feature.name, str)
        or feature.kind not in _KINDS
        or not isinstance(feature.empty, bool)
        or not isinstance(feature.written, str)
        or (feature.written and not clock)
        or has_codes != bool(categories)
        or len(feature.code_of) != len(categories)
        or not same_type
        or clock not in CLOCKS
        or resolution not in (RESOLUTIONS if clock else ("",))
        or (clock and feature.kind != "number")
        or (absent is not None and (clock or feature.kind != "number"))
    ):
        raise ValueError(f"This is not a schema: the feature {feature.name!r} is inconsistent.")
    return feature


def _absent_from_json(ends: object) -> tuple[float, float]:
    values = [_value_from_json(value) for value in ends] if isinstance(ends, list) else []
    if len(values) != 2 or any(isinstance(value, (str, bool)) for value in values) or not values[0] <= values[1]:  # type: ignore[operator]
        raise ValueError("This is not a schema: the interval of missing values of a feature is invalid.")
    return float(values[0]), float(values[1])


_KINDS = ("number", "boolean", "ordered", "category")


_MIN_VALUES = 100  # with fewer, the table is small, and the column need not be an identifier
_MIN_FRACTION = 0.5  # of the rows that have a value


def warn_of_identifier(feature: Feature, column: Column, label: str) -> None:
    """Warn if a column of unordered categories has more distinct values than half of its rows."""
    n_values = len(feature.categories)
    if feature.kind != "category" or n_values < _MIN_VALUES or not isinstance(column, CodedColumn):
        return
    n_rows = int(np.count_nonzero(column.codes >= 0))
    if n_values <= _MIN_FRACTION * n_rows:
        return
    warn(
        f"{label} looks like an identifier: {n_values:,} values in {n_rows:,} rows. A model cannot "
        "generalise from them to new rows. Leave the column out; if the order of its values is meaningful, convert it "
        "to numbers or dates; if it is a category, name it in categorical_features."
    )


_EXACT = 2**53  # float64 cannot represent all larger integers


def warn_of_rounding(table: RawTable, columns: Sequence[int]) -> None:
    """Warn if distinct values of a column of integers become equal as float64."""
    block = table.matrix if table.matrix is not None else None if table.sparse is None else table.sparse.values
    if block is not None and not _is_wide(block):
        return
    for j in columns:
        column = table.column(j)
        if isinstance(column, CodedColumn):
            continue
        values = column.values
        if isinstance(column, NumberColumn) and column.missing is not None and values.dtype.itemsize == 8:
            values = values[column.missing == 0]
        if not _is_wide(values):
            continue
        wide = np.unique(values[(values >= _EXACT) | (values <= -_EXACT if values.dtype.kind == "i" else False)])
        n_lost = len(wide) - len(np.unique(wide.astype(np.float64)))
        if n_lost:
            warn(
                f"{table.label(j)} holds integers beyond 2**53, of which {n_lost} cannot be distinguished from others: "
                "trees compare numbers as float64, which has 53 binary digits. Subtract an offset, or, if they are "
                "labels, name the column in categorical_features."
            )


def _is_wide(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    return bool(values.max() >= _EXACT or (values.dtype.kind == "i" and values.min() <= -_EXACT))


class RemoteTable(RawTable, ABC):
    """A table whose rows are in other processes."""

    def column(self, j: int) -> Column:
        """Raise TypeError: the values are in other processes."""
        raise TypeError(f"{self.label(j)} is partitioned across workers, and its values are not in this process.")

    @abstractmethod
    def features(self, names: Sequence[str], forced: set[int]) -> list[Feature]:
        """Return the feature of each column; `forced` are those declared to be categories."""

    @abstractmethod
    def encoded(self, schema: Any, unseen: str, estimator: str) -> Any:
        """Encode all rows on their workers; return a handle to the encoded rows."""
