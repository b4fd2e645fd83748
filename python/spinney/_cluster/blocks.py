"""Blocks of rows that workers hold, and what carries requests to them."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from spinney._cluster.worker_tables import leave

CHUNK_ROWS = 4096  # that the engine adds up together: blocks begin at multiples of it
_ALL = struct.Struct("!I")  # how many answers there are
_ONE = struct.Struct("!IQ")  # block of each, and its bytes


def aligned_blocks(n_rows: int, n_blocks: int) -> list[tuple[int, int]]:
    """First row and end of blocks of about equal size, none of which shares a chunk with another."""
    n_chunks = -(-n_rows // CHUNK_ROWS)
    n_blocks = min(n_blocks, n_chunks)
    ends = [min(n_rows, (i + 1) * n_chunks // n_blocks * CHUNK_ROWS) for i in range(n_blocks)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def slices_of(lengths: Sequence[int], begin: int, end: int) -> list[tuple[int, int, int]]:
    """Which parts, and which of their rows, make the rows from `begin` to `end` of all parts together."""
    found, first = [], 0
    for part, length in enumerate(lengths):
        low, high = max(begin - first, 0), min(end - first, length)
        if low < high:
            found.append((part, low, high))
        first += length
    return found


class Carrier(ABC):
    """Carries calls to the holders of blocks."""

    blocks: list[tuple[int, int]]  # first row and end

    @abstractmethod
    def each(self, method: str, args_of: Callable[[list[int]], tuple[Any, ...]]) -> list[Any]:
        """Call a method of every holder, with what `args_of` makes of the blocks that it has."""

    @abstractmethod
    def send(self, question: bytes) -> None:
        """Send a question to all pieces, which answer in the order in which they are asked."""

    @abstractmethod
    def receive(self) -> Sequence[bytes | memoryview]:
        """Wait for the answers, in the order of the blocks, to the first question that was not received yet."""

    @abstractmethod
    def drop(self) -> None:
        """Leave the answers to all that was sent: who was to receive them has been interrupted."""

    @abstractmethod
    def begin_rounds(self, history: Callable[[], list[bytes]], recut: Callable[[list[int]], tuple[Any, ...]]) -> None:
        """Note what brings a new piece up to date: questions, and what `encode` and `cut` of its holder take."""

    @abstractmethod
    def end_round(self) -> None:
        """Forget the questions of the round: it is part of the history."""


class LocalCarrier(Carrier):
    """Holders in this process."""

    def __init__(self, holders: Sequence[Any], blocks: list[tuple[int, int]], of_block: Sequence[int]) -> None:
        self._holders = holders
        self._of_block = of_block
        self._sent: deque[bytes] = deque()
        self.blocks = blocks

    def each(self, method: str, args_of: Callable[[list[int]], tuple[Any, ...]]) -> list[Any]:
        """Call a method of every holder."""
        mine = [[b for b, h in enumerate(self._of_block) if h == i] for i in range(len(self._holders))]
        return [getattr(h, method)(*args_of(blocks)) for h, blocks in zip(self._holders, mine, strict=True) if blocks]

    def send(self, question: bytes) -> None:
        """Note a question."""
        self._sent.append(question)

    def receive(self) -> Sequence[bytes | memoryview]:
        """Ask all pieces what was noted first."""
        question = self._sent.popleft()
        found = {b: answer for answers in self.each("answer", lambda _: (question,)) for b, answer in answers.items()}
        return [found[b] for b in range(len(self.blocks))]

    def drop(self) -> None:
        """Forget what was noted."""
        self._sent.clear()

    def begin_rounds(self, history: Callable[[], list[bytes]], recut: Callable[[list[int]], tuple[Any, ...]]) -> None:
        """Do nothing: no holder is lost."""

    def end_round(self) -> None:
        """Do nothing."""


def leave_block(fit: str, block: int, ranges: Sequence[tuple[int, int]], *parts: Any) -> int:
    """Leave some rows of each part for the holder of this process; return how many there are."""
    leave(fit, block, [rows_between(part, *ends) for part, ends in zip(parts, ranges, strict=True)])
    return sum(end - begin for begin, end in ranges)


def n_rows_of(part: Any) -> int:
    """Return the rows of a frame, an array or a sparse matrix."""
    return int(part.shape[0])


def rows_between(part: Any, begin: int, end: int) -> Any:
    """Return some rows of a frame or an array."""
    return part.iloc[begin:end] if hasattr(part, "iloc") else part[begin:end]


def together(answers: dict[int, bytes]) -> list[bytes]:
    """Return bytes that are the answers of blocks if they are put one behind another."""
    heads = [_ONE.pack(block, len(some)) for block, some in answers.items()]
    return [_ALL.pack(len(heads)), *heads, *answers.values()]


def apart(found: memoryview) -> dict[int, memoryview]:
    """Return the answers that were put together, by block."""
    (n_blocks,) = _ALL.unpack_from(found)
    begin = _ALL.size + n_blocks * _ONE.size
    answers = {}
    for block, size in _ONE.iter_unpack(found[_ALL.size : begin]):
        answers[block] = found[begin : begin + size]
        begin += size
    return answers
