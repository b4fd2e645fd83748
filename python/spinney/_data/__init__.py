"""Any table in: readers of the caller's data and the schema that a model keeps of it.

    X ──read_table──▶ RawTable ──Schema.learn──▶ Schema          (at fit)
                      RawTable ──Schema.encode─▶ engine table    (at fit and at predict)

A raw table holds the caller's columns where they are. A schema says which columns a model expects, of which
kind, and the values, not the codes, of their categories: columns are matched by name, categories by value.
"""

from spinney._data.columns import CodedColumn, NumberColumn, RawTable, SparseColumn
from spinney._data.combinations import Combinations
from spinney._data.feature import Feature
from spinney._data.read import read_table
from spinney._data.schema import Schema

__all__ = ["CodedColumn", "Combinations", "Feature", "NumberColumn", "RawTable", "Schema", "SparseColumn", "read_table"]
