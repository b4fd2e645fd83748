"""Blocks of rows: what a table is split into whose rows are not in one place, and how requests reach them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spinney._cluster import dask
from spinney._cluster.actor import Actor, n_rows_of
from spinney._cluster.remote_actor import RemoteActor, made, request_all
from spinney._cluster.transport import REQUEST

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


_MOST_LOSSES = 20  # workers that a fit may lose

Replies = list[Any]  # in the order of the blocks; None of those that are lost


class DaskBlocks:
    """Rows of a collection, in one block on each worker.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of delayed
        In order; they are made again from their graph where a worker is lost.
    kind : type
        Of the actors that hold the blocks; made of a number of threads, the ranges of rows of some partitions, and
        these.
    """

    def __init__(self, client: dask.Client, partitions: Sequence[object], kind: type[Actor]) -> None:
        self._client = client
        self._partitions = list(partitions)
        self._kind = kind
        self._log: list[bytes] = []  # requests of the round
        self._sent: deque[Callable[[], Replies]] = deque()  # what waits for the replies to each, first to last
        self._known: deque[Replies] = deque()  # to requests before them
        self._history: Callable[[], list[bytes]] | None = None
        self._rebuild: Callable[[int], dict[str, Args]] | None = None
        self._n_lost = 0
        threads = dask.threads_of_some(client)
        futures = client.compute(self._partitions)
        self._lengths: list[int] = dask.gathered(client, client.map(n_rows_of, futures, pure=False))
        self.n_rows = sum(self._lengths)
        if self.n_rows == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        self.ranges = aligned_ranges(self.n_rows, len(threads))
        addresses = self._in_order(list(threads), futures)[: len(self.ranges)]
        known = dict(enumerate(futures))
        self._actors = [self._begun(block, address, known) for block, address in enumerate(addresses)]
        try:
            made(client, self._actors)
        except BaseException:
            self.close()
            raise

    def _in_order(self, workers: list[str], futures: Sequence[dask.Future]) -> list[str]:
        """Order workers by the partitions that they have, so that few of these travel."""
        holders = dask.in_time(self._client, lambda: self._client.who_has(futures))
        places: dict[str, list[int]] = {address: [] for address in workers}
        for i, future in enumerate(futures):
            for address in holders.get(future.key, ()):
                places.setdefault(address, []).append(i)
        return sorted(workers, key=lambda a: (sum(places[a]) / len(places[a]) if places[a] else len(futures), a))

    def _begun(self, block: int, address: str, futures: dict[int, dask.Future] | None = None) -> RemoteActor:
        """Begin to make the actor of a block, from partitions or, if these are gone, from their graph."""
        slices = slices_of(self._lengths, *self.ranges[block])
        if futures is None:
            futures = dict(zip(slices, self._client.compute([self._partitions[p] for p in slices]), strict=True))
        n_threads = dask.threads_of(self._client).get(address, 1)
        rows = [futures[p] for p in slices]
        return RemoteActor(self._client, address, self._kind, n_threads, list(slices.values()), *rows)

    def each(self, method: str, args_of: Callable[[int], Args]) -> list[Any]:
        """Call a method of every actor."""
        sent = [actor.send(method, *args_of(block)) for block, actor in enumerate(self._actors)]
        return [actor.result(future) for actor, future in zip(self._actors, sent, strict=True)]

    def begin_rounds(self, history: Callable[[], list[bytes]], rebuild: Callable[[int], dict[str, Args]]) -> None:
        """Note what replaces a lost block."""
        self._history, self._rebuild = history, rebuild

    def end_round(self) -> None:
        """Forget the requests of the round."""
        self._log = []

    def send(self, request: bytes) -> None:
        """Send a request to all blocks."""
        self._log.append(request)
        self._sent.append(request_all(self._client, list(self._actors), request))

    def receive(self) -> Answers:
        """Wait for the answers to a request; lost blocks are made again on other workers first."""
        replies = self._known.popleft() if self._known else self._next_replies()
        if None in replies:
            coming = [replies, *(self._next_replies() for _ in range(len(self._sent)))]  # the others stand still
            self._replace_lost(coming)
            replies, *known = coming
            self._known.extend(known)
        return replies

    def _next_replies(self) -> Replies:
        """Wait for the replies of living workers."""
        replies = self._sent[0]()
        self._sent.popleft()
        return replies

    def drop(self) -> None:
        """Ignore the answers to all that was sent."""
        self._known.clear()
        self._sent.clear()

    def _replace_lost(self, coming: list[Replies]) -> None:
        """Replace the blocks that have not answered all of the last requests, and add their answers."""
        lost = [b for b in range(len(self.ranges)) if any(replies[b] is None for replies in coming)]
        for address in {self._actors[b].address for b in lost}:
            self._count_loss(address)
        for block in lost:
            self._actors[block].close()
            for replies, answer in zip(coming, self._replaced(block, len(coming)), strict=True):
                replies[block] = answer

    def _replaced(self, block: int, n_last: int) -> list[bytes]:
        """Make a block again on another worker, let it catch up, and return its last answers."""
        assert self._history is not None
        assert self._rebuild is not None
        while True:
            dask.wait_for_a_worker(self._client)
            alive = list(dask.threads_of(self._client))
            others = [address for address in alive if address != self._actors[block].address]
            if not others:
                time.sleep(dask.LOOK_EVERY)  # it may be gone, and not be known to be
            if not alive:
                continue
            used = [actor.address for actor in self._actors]
            address = min(others or alive, key=lambda a: (used.count(a), a))
            self._actors[block] = actor = self._begun(block, address)
            try:
                made(self._client, [actor])
                for method, args in self._rebuild(block).items():
                    actor.call(method, *args)
                found: list[bytes] = actor.call("replay", self._history() + self._log, n_last)
                return found
            except dask.WorkerLostError:
                actor.close()
                self._count_loss(address)

    def _count_loss(self, address: str) -> None:
        """Note that a worker is lost, but not without end."""
        self._n_lost += 1
        if self._n_lost > _MOST_LOSSES:
            raise RuntimeError(
                f"The cluster has lost workers {self._n_lost} times during the fit, the last of them {address}. They "
                "may lack memory: use more workers, or larger ones."
            )

    def close(self) -> None:
        """Let the actors go."""
        for actor in self._actors:
            actor.close()
