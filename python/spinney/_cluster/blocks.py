"""Blocks of rows: what a table is split into whose rows are not in one place, and how requests reach them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spinney._cluster.actor import REQUEST, Actor

CHUNK_ROWS = 4096  # that the engine adds up together: blocks begin at multiples of it

Range = tuple[int, int]  # first row and end
Args = tuple[object, ...]
Answers = Sequence[bytes | memoryview]  # in the order of the blocks


def aligned_ranges(n_rows: int, n_blocks: int) -> list[Range]:
    """Return the ranges of blocks of about equal size, none of which shares a chunk with another."""
    n_chunks = -(-n_rows // CHUNK_ROWS)
    n_blocks = min(n_blocks, n_chunks)
    ends = [min(n_rows, (i + 1) * n_chunks // n_blocks * CHUNK_ROWS) for i in range(n_blocks)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def slices_of(lengths: Sequence[int], begin: int, end: int) -> dict[int, Range]:
    """Return which partitions, and which of their rows, make the rows from `begin` to `end` of all together."""
    found, first = {}, 0
    for partition, length in enumerate(lengths):
        low, high = max(begin - first, 0), min(end - first, length)
        if low < high:
            found[partition] = (low, high)
        first += length
    return found


class RowBlocks(Protocol):
    """All rows of a table, in blocks that actors hold."""

    ranges: list[Range]

    def each(self, method: str, args_of: Callable[[int], Args]) -> list[Any]:
        """Call a method of every actor, with arguments by the number of its block; return the results in order."""

    def send(self, request: bytes) -> None:
        """Send a request to all blocks, which answer in the order in which requests are sent."""

    def receive(self) -> Answers:
        """Wait for the answers to the first request whose answers were not received yet."""

    def drop(self) -> None:
        """Ignore the answers to all that was sent: who was to receive them has been interrupted."""

    def begin_rounds(self, history: Callable[[], list[bytes]], rebuild: Callable[[int], dict[str, Args]]) -> None:
        """Note what replaces a lost block: calls of its actor by method, and requests."""

    def end_round(self) -> None:
        """Forget the requests of the round: it is part of the history."""


class LocalBlocks:
    """Blocks in this process."""

    def __init__(self, actors: Sequence[Actor], ranges: list[Range]) -> None:
        self.ranges = ranges
        self._actors = actors
        self._sent: deque[bytes] = deque()

    def each(self, method: str, args_of: Callable[[int], Args]) -> list[Any]:
        """Call a method of every actor."""
        return [getattr(actor, method)(*args_of(block)) for block, actor in enumerate(self._actors)]

    def send(self, request: bytes) -> None:
        """Note a request."""
        self._sent.append(request)

    def receive(self) -> Answers:
        """Answer the request that was noted first."""
        request = self._sent.popleft()
        return self.each(REQUEST, lambda _: (request,))

    def drop(self) -> None:
        """Forget what was noted."""
        self._sent.clear()

    def begin_rounds(self, history: Callable[[], list[bytes]], rebuild: Callable[[int], dict[str, Args]]) -> None:
        """Do nothing: no block is lost."""

    def end_round(self) -> None:
        """Do nothing."""
