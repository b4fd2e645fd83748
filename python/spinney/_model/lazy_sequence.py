"""Sequences that create their items on access."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LazySequence(Sequence[Any]):
    """A read-only sequence whose items are created on access."""

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

    def copy(self) -> list[Any]:
        """Return all items as a list."""
        return list(self)

    def __repr__(self) -> str:
        return f"<{self._n} items, created on access>"


class LazyGrid:
    """A read-only two-dimensional array whose items are created on access; several come as an array.

    Attributes
    ----------
    shape : (int, int)
        Numbers of rows and columns.
    ndim, size : int
        2, and the number of items.
    """

    ndim = 2

    def __init__(self, shape: tuple[int, int], make: Callable[[int], Any]) -> None:
        self.shape = shape
        self.size = shape[0] * shape[1]
        self._make = make

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        found = np.arange(self.size).reshape(self.shape)[key]
        return self._made(found) if isinstance(found, np.ndarray) else self._make(int(found))

    def __iter__(self) -> Iterator[NDArray[np.object_]]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[np.object_]:
        return self._made(np.arange(self.size).reshape(self.shape))

    def ravel(self) -> NDArray[np.object_]:
        """Return all items in a one-dimensional array."""
        return self._made(np.arange(self.size))

    flatten = ravel

    @property
    def flat(self) -> Iterator[Any]:
        """All items, one after another."""
        return (self._make(i) for i in range(self.size))

    def _made(self, places: NDArray[np.intp]) -> NDArray[np.object_]:
        items = np.empty(places.shape, dtype=object)
        for place, number in np.ndenumerate(places):
            items[place] = self._make(int(number))
        return items

    def __repr__(self) -> str:
        return f"<{self.shape[0]} x {self.shape[1]} items, created on access>"
