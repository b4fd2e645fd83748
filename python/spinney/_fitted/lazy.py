"""Sequences that make their items when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any


class LazySequence(Sequence[Any]):
    """A read-only sequence whose items are made when they are asked for."""

    def __init__(self, n: int, make: Callable[[int], Any]) -> None:
        self._n = n
        self._make = make

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self._make(t) for t in range(*i.indices(self._n))]
        t = range(self._n)[i]
        return self._make(t)

    def __iter__(self) -> Iterator[Any]:
        return (self._make(t) for t in range(self._n))

    def __repr__(self) -> str:
        return f"<{self._n} items, made on demand>"
