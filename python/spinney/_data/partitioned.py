"""A table whose rows are in other processes, such as the workers of a cluster: what a fit reads of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from spinney._data.columns import Column, RawTable
from spinney._data.feature import Feature


class RemoteTable(RawTable, ABC):
    """Rows in other processes."""

    def column(self, j: int) -> Column:
        """Refuse: no column is here."""
        raise TypeError(f"{self.label(j)} is partitioned across workers, and its values are not here.")

    @abstractmethod
    def features(self, names: Sequence[str], forced: set[int]) -> list[Feature]:
        """Return what a model remembers of each column; `forced` are those declared to be categories."""

    @abstractmethod
    def encoded(self, schema: Any, unseen: str, estimator: str) -> Any:
        """Turn all rows, where they are, into the engine's tables; return what stands for them."""
