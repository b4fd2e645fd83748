"""A table whose rows are dealt out to others, such as the workers of a cluster: what a fit may ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from spinney._data.columns import Column, RawTable
from spinney._data.feature import Feature


class DealtTable(RawTable, ABC):
    """Rows that are elsewhere."""

    def column(self, j: int) -> Column:
        """Refuse: no column is here."""
        raise TypeError(f"{self.label(j)} is dealt out to others, and its values are not here.")

    @abstractmethod
    def features(self, names: Sequence[str], forced: set[int]) -> list[Feature]:
        """Return what a model keeps of each column; `forced` are those that the caller declares to be categories."""

    @abstractmethod
    def encoded(self, schema: Any, unseen: str, estimator: str) -> Any:
        """Turn all rows, where they are, into the engine's tables; return what stands for them."""
