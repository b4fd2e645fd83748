"""A table as a fit reads it, classified once: in memory, in the files of a stream, or on the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import spinney._engine as _engine
from spinney._data.columns import RawTable
from spinney._data.feature import Unseen
from spinney._data.partitioned import RemoteTable
from spinney._data.read import read_table
from spinney._data.schema import Schema
from spinney._data.spool import SpooledTable


@dataclass(frozen=True)
class Input:
    """A table.

    Attributes
    ----------
    given : table
        As the caller gave it.
    table : RawTable
        Its columns.
    """

    given: Any
    table: RawTable

    @classmethod
    def of(cls, X: Any) -> Input:
        """Read a table of any kind."""
        return cls(X, read_table(X))

    @property
    def n_rows(self) -> int:
        """Rows."""
        return self.table.n_rows

    @property
    def is_stream(self) -> bool:
        """Whether the rows lie in files."""
        return isinstance(self.given, SpooledTable)

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse matrix."""
        return hasattr(self.given, "tocsc")

    def encoded(self, schema: Schema, unseen: Unseen, estimator: str) -> _engine.Table:
        """Return the engine's columns; of rows on workers, what stands for them."""
        if isinstance(self.table, RemoteTable):
            partitioned: _engine.Table = self.table.encoded(schema, unseen, estimator)
            return partitioned
        return schema.encode(self.table, unseen=unseen, estimator=estimator)

    def verify(self) -> None:
        """Refuse a stream whose files no longer hold what was written to them."""
        if isinstance(self.given, SpooledTable):
            self.given.verify()
