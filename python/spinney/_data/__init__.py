"""Readers of tables of any kind, and the schema that a model has of its columns.

    X ──read_table──▶ RawTable ──Schema.learn──▶ Schema          (at fit)
                      RawTable ──Schema.encode─▶ engine table    (at fit and at predict)

A raw table refers to the caller's columns in place. A schema holds the names and kinds of the columns that a model
expects, and the values, not the codes, of their categories: columns are matched by name, categories by value.
"""

from spinney._data.columns import CodedColumn, NumberColumn, RawTable, SparseColumn
from spinney._data.combinations import Combinations
from spinney._data.feature import Feature
from spinney._data.read import read_table
from spinney._data.schema import Schema

__all__ = ["CodedColumn", "Combinations", "Feature", "NumberColumn", "RawTable", "Schema", "SparseColumn", "read_table"]
