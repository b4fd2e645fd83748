"""Schema: the columns a model expects, by name, kind and category value.

Vocabulary
----------
number    numbers as they are
boolean   True and False, which the engine reads as 1 and 0
ordered   categories with a declared order; the engine reads the position of a value in it
category  values without an order; the engine reads the position of a value among those that occurred at fit,
          sorted, or in the order in which they were declared
empty     a column without any value at fit: a number to the engine; whatever comes at predict is accepted,
          since no split can use it
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np

from spinney import _engine
from spinney._data.columns import (
    Array,
    CodedColumn,
    Column,
    NumberColumn,
    RawTable,
    Scalar,
    SparseColumn,
    coded_column,
    column_label,
    dense_column,
    missing_column,
)
from spinney._data.combinations import Combinations
from spinney._data.names import listed, match_columns
from spinney._data.rounding import warn_of_rounding

Unseen = Literal["missing", "error", "other"]
_UNSEEN = ("missing", "error", "other")
_KINDS = ("number", "boolean", "ordered", "category")
_NO_CODE = -2


@dataclass(frozen=True)
class Feature:
    """One column as a model knows it.

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
    """

    name: str
    kind: str
    categories: tuple[Scalar, ...] = ()
    empty: bool = False

    @cached_property
    def code_of(self) -> dict[Scalar, int]:
        """Map each category to its code; Python compares 1, 1.0 and True as equal, whatever their width."""
        return {value: code for code, value in enumerate(self.categories)}

    @property
    def holds_text(self) -> bool:
        """Whether the categories are strings."""
        return bool(self.categories) and isinstance(self.categories[0], str)


class Schema:
    """The columns a model expects.

    Parameters
    ----------
    features : sequence of Feature
    has_names : bool
        Whether the table at fit had column names.
    unseen : {"missing", "error", "other"}
        What `encode` makes of a category that did not occur at fit, unless told otherwise.
    pool : Combinations, optional
        Combinations of columns that trees split on instead of the columns of numbers.
    """

    def __init__(
        self,
        features: Iterable[Feature],
        has_names: bool,
        unseen: Unseen = "missing",
        pool: Combinations | None = None,
    ) -> None:
        self.pool = pool
        self.features = tuple(features)
        self.has_names = has_names
        self.unseen = _checked_unseen(unseen)
        self.names = [feature.name for feature in self.features]
        self._all_numbers = all(feature.kind in ("number", "boolean") for feature in self.features)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.features)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Schema({self.n_features} features: {listed(self.names)})"

    @classmethod
    def learn(
        cls,
        table: RawTable,
        categorical_features: Iterable[Any] | None = None,
        unseen: Unseen = "missing",
        as_declared: bool = False,
    ) -> Schema:
        """Learn the schema of a training table.

        Parameters
        ----------
        table : RawTable
        categorical_features : sequence of names, of positions, or of one bool a column; optional
            Columns to treat as categories whatever they hold; strings and declared categories always are.
        unseen : {"missing", "error", "other"}, default="missing"
        as_declared : bool, default=False
            Number the categories in the order in which they were declared, where they were, instead of sorting them.
        """
        forced = forced_categories(categorical_features, table)
        names = table.names or [f"x{j}" for j in range(table.n_columns)]
        if table.matrix is not None:
            features = _learn_matrix(table, names, forced)
        else:
            features = [
                learn_feature(name, table.column(j), j in forced, table.n_rows, as_declared)
                for j, name in enumerate(names)
            ]
        warn_of_rounding(table, [j for j, feature in enumerate(features) if feature.kind == "number"])
        return cls(features, table.names is not None, unseen)

    @cached_property
    def split_features(self) -> tuple[Feature, ...]:
        """What trees split on: the features, or those that are no numbers and then the combinations of numbers."""
        if self.pool is None:
            return self.features
        combined = (Feature(self.pool.name(k, self.names), "number") for k in range(len(self.pool)))
        return (*(self.features[j] for j in self.pool.plain), *combined)

    @property
    def n_split_features(self) -> int:
        """Number of columns that trees split on."""
        return self.n_features if self.pool is None else self.pool.n_split_columns

    @property
    def n_categories(self) -> list[int]:
        """Categories of what trees split on, as the engine counts them: 0 for numbers and ordered categories."""
        return [len(feature.categories) if feature.kind == "category" else 0 for feature in self.split_features]

    def with_pool(self, pool: Combinations) -> Schema:
        """Return the same columns with a pool of combinations."""
        return Schema(self.features, self.has_names, self.unseen, pool)

    def credit_inputs(self, by_split_feature: Array) -> Array:
        """Hand what columns of the trees have earned on to the table's columns."""
        return by_split_feature if self.pool is None else self.pool.credit_inputs(by_split_feature)

    def encode_blocks(
        self, table: RawTable, unseen: Unseen | None = None, estimator: str = "this model"
    ) -> Iterator[_engine.Table]:
        """Encode some rows at a time where that saves memory, else all at once."""
        inputs = self.encode_inputs(table, unseen, estimator)
        if self.pool is None:
            yield inputs
        else:
            yield from self.pool.blocks(inputs)

    def encode(self, table: RawTable, unseen: Unseen | None = None, estimator: str = "this model") -> _engine.Table:
        """Turn a table into what trees split on: its columns as by `encode_inputs`, combined where there is a pool."""
        inputs = self.encode_inputs(table, unseen, estimator)
        return self.combined(inputs)

    def combined(self, inputs: _engine.Table) -> _engine.Table:
        """Turn a table as `encode_inputs` makes it into what trees split on."""
        return inputs if self.pool is None else next(self.pool.blocks(inputs, inputs.n_rows))

    def encode_inputs(
        self, table: RawTable, unseen: Unseen | None = None, estimator: str = "this model"
    ) -> _engine.Table:
        """Turn a table into the engine's: columns in the order of the schema, categories as its codes.

        Parameters
        ----------
        table : RawTable
        unseen : {"missing", "error", "other"}, optional
            A category that did not occur at fit is missing, an error, or "some other value"; the schema's own
            choice if not given. A value outside a declared order has no position: "other" reads it as
            missing.
        estimator : str
            Name of the estimator, for messages.

        Raises
        ------
        ValueError
            If the columns are not those of the schema, or a category is unseen and that is an error.
        TypeError
            If a column holds another kind of values than at fit.

        Warns
        -----
        UserWarning
            If only one of table and schema has column names.
        """
        policy = self.unseen if unseen is None else _checked_unseen(unseen)
        expected = self.names if self.has_names else None
        order = match_columns(table.names, table.n_columns, expected, self.n_features, estimator)
        target = _engine.Table(table.n_rows)
        if self._all_numbers and order is None and table.matrix is not None:
            target.add_matrix(table.matrix)
            return target
        if self._all_numbers and order is None and table.sparse is not None:
            target.add_csc(table.sparse.starts, table.sparse.rows, table.sparse.values)
            return target
        for j, feature in enumerate(self.features):
            column = table.column(j if order is None else order[j])
            label = column_label(j, expected)
            if feature.kind in ("number", "boolean"):
                _add_number(target, feature, column, policy, label)
            else:
                _add_codes(target, feature, column, policy, label)
        return target

    def to_dict(self) -> dict[str, Any]:
        """Return a dict that JSON can hold and `from_dict` turns back."""
        fields: dict[str, Any] = {
            "has_names": self.has_names,
            "unseen": self.unseen,
            "features": [_feature_to_dict(feature) for feature in self.features],
        }
        return fields if self.pool is None else fields | {"combinations": self.pool.to_dict()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Schema:
        """Rebuild a schema; raises ValueError if `fields` cannot be one."""
        try:
            features = [_feature_from_dict(entry) for entry in fields["features"]]
            has_names, unseen = fields["has_names"], fields["unseen"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"This is not a schema: {error!r}.") from None
        if not features or not isinstance(has_names, bool):
            raise ValueError("This is not a schema: it has no features or does not say whether they have names.")
        if has_names and len({feature.name for feature in features}) < len(features):
            raise ValueError("This is not a schema: two features have the same name.")
        pool = Combinations.from_dict(fields["combinations"], features) if "combinations" in fields else None
        return cls(features, has_names, unseen, pool)


def _checked_unseen(unseen: str) -> Unseen:
    if unseen not in _UNSEEN:
        raise ValueError(f"unseen must be 'missing', 'error' or 'other', not {unseen!r}.")
    return cast(Unseen, unseen)


# ---- learning ---------------------------------------------------------------------------------------------


def forced_categories(categorical_features: Iterable[Any] | None, table: RawTable) -> set[int]:
    """Find the columns that the caller declares to be categories."""
    if categorical_features is None:
        return set()
    if isinstance(categorical_features, (str, bytes)):
        raise TypeError(
            f"categorical_features must be a list of names, positions or bools, not {categorical_features!r}."
        )
    items = list(categorical_features)
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != table.n_columns:
            raise ValueError(f"categorical_features has {len(items)} bools, but X has {table.n_columns} columns.")
        return {j for j, item in enumerate(items) if item}
    return {_position(item, table) for item in items}


def _position(item: Any, table: RawTable) -> int:
    if isinstance(item, str):
        if table.names is None:
            raise ValueError(f"categorical_features names the column {item!r}, but X has no column names.")
        if item not in table.names:
            raise ValueError(f"categorical_features names the column {item!r}, which X does not have.")
        return table.names.index(item)
    if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
        raise TypeError(f"categorical_features must be names, positions or bools, not {type(item).__name__}.")
    if not 0 <= item < table.n_columns:
        raise ValueError(f"categorical_features has the position {item}, but X has {table.n_columns} columns.")
    return int(item)


def _learn_matrix(table: RawTable, names: Sequence[str], forced: set[int]) -> list[Feature]:
    matrix = cast(Array, table.matrix)
    kind = "boolean" if matrix.dtype.kind == "b" else "number"
    features = [Feature(name, kind) for name in names]
    if matrix.dtype.kind == "f":
        for j in np.flatnonzero(np.isnan(matrix[0])).tolist():  # only these can be missing throughout
            features[j] = learn_feature(names[j], table.column(j), False, table.n_rows)
    for j in forced:
        features[j] = learn_feature(names[j], table.column(j), True, table.n_rows)
    return features


def learn_feature(name: str, column: Column, forced: bool, n_rows: int, as_declared: bool = False) -> Feature:
    """Find what a model keeps of one training column."""
    if isinstance(column, SparseColumn):
        if not forced:
            return Feature(name, "boolean" if column.values.dtype.kind == "b" else "number")
        column = dense_column(column, n_rows)
    if isinstance(column, NumberColumn):
        if not forced:
            kind = "boolean" if column.values.dtype.kind == "b" else "number"
            return Feature(name, kind, empty=_is_empty(column))
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


def _is_empty(column: NumberColumn) -> bool:
    values, missing = column.values, column.missing
    first_missing = missing is not None and missing[0] != 0
    if not first_missing and not (values.dtype.kind == "f" and np.isnan(values[0])):
        return False
    absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    if missing is not None:
        absent |= missing != 0
    return bool(absent.all())


def _is_nan(value: Any) -> bool:
    return bool(value != value)


# ---- encoding ---------------------------------------------------------------------------------------------


def _add_number(target: _engine.Table, feature: Feature, column: Column, unseen: Unseen, label: str) -> None:
    if isinstance(column, SparseColumn):
        target.add_sparse(column.rows, column.values)
        return
    if isinstance(column, CodedColumn):
        column = _numbers_of(feature, column, unseen, label)
    target.add_number(column.values, column.missing)


def _numbers_of(feature: Feature, column: CodedColumn, unseen: Unseen, label: str) -> NumberColumn:
    """Turn categories into numbers where numbers are expected: fine if they are numbers."""
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


def _add_codes(target: _engine.Table, feature: Feature, column: Column, unseen: Unseen, label: str) -> None:
    if isinstance(column, SparseColumn):
        column = dense_column(column, target.n_rows)
    if isinstance(column, NumberColumn):
        column = coded_column(column)
    new_code = _translation(feature, column, label)
    strangers = np.flatnonzero(new_code == _NO_CODE).tolist()
    if strangers and unseen == "error":
        raise _unseen_error(label, [column.values[old] for old in strangers])
    if feature.kind == "ordered":
        positions = np.where(new_code < 0, np.nan, new_code).astype(np.float32)
        target.add_number(positions[column.codes])
    else:
        n_categories = len(feature.categories)
        new_code[strangers] = n_categories if unseen == "other" else -1
        occurring = column.occurring_codes()
        is_same = np.array_equal(new_code[occurring], occurring)
        target.add_category(column.codes.astype(np.int32) if is_same else new_code[column.codes], n_categories)


def _translation(feature: Feature, column: CodedColumn, label: str) -> Array:
    """Return the new code of every old code that occurs; the last place is for -1, the missing value."""
    new_code = np.full(len(column.values) + 1, -1, dtype=np.int32)
    old_codes = column.occurring_codes()
    values = [column.values[old] for old in old_codes]
    value = next((value for value in values if not _is_nan(value)), None)
    if value is not None and isinstance(value, str) != feature.holds_text:
        was, now = ("strings", "numbers") if feature.holds_text else ("numbers", "strings")
        raise TypeError(
            f"{label} had {was} as categories at fit and holds {now} such as {value!r} now; convert it to {was}."
        )
    codes = [feature.code_of.get(value, _NO_CODE) for value in values]
    if _NO_CODE in codes and not feature.holds_text:
        codes = [-1 if _is_nan(value) else code for value, code in zip(values, codes, strict=True)]
    new_code[old_codes] = codes
    return new_code


def _unseen_error(label: str, values: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{label} holds categories that did not occur at fit: {listed(values)}. "
        "Train on rows that have them, or treat them with unseen='missing' or unseen='other'."
    )


# ---- saving -----------------------------------------------------------------------------------------------


def _feature_to_dict(feature: Feature) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": feature.name, "kind": feature.kind}
    if feature.categories:
        fields["categories"] = [_value_to_json(value) for value in feature.categories]
    if feature.empty:
        fields["empty"] = True
    return fields


def _value_to_json(value: Scalar) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return {"float": "inf" if value > 0 else "-inf"}  # JSON has no infinity
    return value


def _value_from_json(value: Any) -> Scalar:
    if isinstance(value, dict) and value.get("float") in ("inf", "-inf"):
        return float(value["float"])
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"This is not a schema: {value!r} cannot be a category.")


def _feature_from_dict(fields: dict[str, Any]) -> Feature:
    categories = tuple(_value_from_json(value) for value in fields.get("categories", ()))
    feature = Feature(fields["name"], fields["kind"], categories, fields.get("empty", False))
    has_codes = feature.kind in ("ordered", "category")
    same_type = len({isinstance(value, str) for value in categories}) <= 1
    if (
        not isinstance(feature.name, str)
        or feature.kind not in _KINDS
        or not isinstance(feature.empty, bool)
        or has_codes != bool(categories)
        or len(feature.code_of) != len(categories)
        or not same_type
    ):
        raise ValueError(f"This is not a schema: the feature {feature.name!r} is inconsistent.")
    return feature
