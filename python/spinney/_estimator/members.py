"""Ensembles as sequences of their members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class SequenceOfMembers:
    """Mixin: length, items and iteration are those of ``estimators_``."""

    estimators_: Any

    def __len__(self) -> int:
        return len(self.estimators_)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def __getitem__(self, i: object) -> Any:
        return self.estimators_[i]

    def __bool__(self) -> bool:
        return True  # else Python would ask __len__, which an unfitted estimator refuses
