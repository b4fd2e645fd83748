"""Whether a table has the kinds of columns that a fitted model knows, for warm starts."""

from __future__ import annotations

from typing import Any

from spinney._data.column_names import match_columns
from spinney._data.columns import CodedColumn, RawTable
from spinney._data.partitioned import RemoteTable
from spinney._data.schema import Schema, forced_categories


def check_categories(schema: Schema, table: RawTable, categorical_features: Any, estimator: str) -> None:
    """Refuse other categories than those of the earlier fit."""
    forced = forced_categories(categorical_features, table)
    expected = schema.names if schema.has_names else None
    order = match_columns(table.names, table.n_columns, expected, schema.n_features, estimator)
    dealt = None
    if isinstance(table, RemoteTable):
        dealt = table.features([table.label(j) for j in range(table.n_columns)], forced)
    for j, feature in enumerate(schema.features):
        place = j if order is None else order[j]
        is_category = feature.kind == "category"
        if is_category == (place in forced) or feature.empty:
            continue
        if dealt is not None:
            is_coded = dealt[place].kind == "category"
        else:
            is_coded = table.matrix is None and isinstance(table.column(place), CodedColumn)
        if not is_category or not is_coded:
            raise ValueError(
                f"warm_start keeps the kinds of the columns, but column {feature.name!r} was "
                f"{'a category' if is_category else 'not a category'} at the earlier fit. Set categorical_features as "
                "it was then, or warm_start=False."
            )
