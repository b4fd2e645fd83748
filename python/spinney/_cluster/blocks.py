"""Blocks of consecutive rows of a distributed table, and the requests that are sent to all of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from spinney._cluster import dask
from spinney._cluster.actor import Actor, RemoteActor, n_rows_of, request_all, wait_until_ready
from spinney._cluster.transport import REQUEST

CHUNK_ROWS = 4096  # rows whose sums the engine computes together: blocks begin at multiples of it

Range = tuple[int, int]  # first row and end
Args = tuple[object, ...]
Answers = Sequence[bytes | memoryview]  # in the order of the blocks


def aligned_ranges(n_rows: int, n_blocks: int) -> list[Range]:
    """Return row ranges of about equal size that begin at chunk boundaries."""
    n_chunks = -(-n_rows // CHUNK_ROWS)
    n_blocks = min(n_blocks, n_chunks)
    ends = [min(n_rows, (i + 1) * n_chunks // n_blocks * CHUNK_ROWS) for i in range(n_blocks)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def slices_of(lengths: Sequence[int], begin: int, end: int) -> dict[int, Range]:
    """Return the range of rows of each partition that lies between rows `begin` and `end` of the table."""
    found, first = {}, 0
    for partition, length in enumerate(lengths):
        low, high = max(begin - first, 0), min(end - first, length)
        if low < high:
            found[partition] = (low, high)
        first += length
    return found


class RowBlocks(Protocol):
    """The rows of a table in blocks, each held by an actor."""

    ranges: list[Range]

    def call_all(self, method: str, args_of: Callable[[int], Args]) -> list[Any]:
        """Call a method of every actor, with arguments by block number; return the results in block order."""

    def send(self, request: bytes) -> None:
        """Send a request to all blocks, which answer requests in order."""

    def receive(self) -> Answers:
        """Wait for the answers to the oldest unanswered request."""

    def drop(self) -> None:
        """Discard the answers to all requests sent so far, after an interruption."""

    def set_recovery(self, history: Callable[[], list[bytes]], rebuild: Callable[[int], dict[str, Args]]) -> None:
        """Set how a lost block is rebuilt: method calls of its actor, then the history of requests."""

    def forget_requests(self) -> None:
        """Forget the requests of the current round, which are part of the history now."""


class LocalBlocks:
    """Blocks in this process."""

    def __init__(self, actors: Sequence[Actor], ranges: list[Range]) -> None:
        self.ranges = ranges
        self._actors = actors
        self._sent: deque[bytes] = deque()

    def call_all(self, method: str, args_of: Callable[[int], Args]) -> list[Any]:
        """Call a method of every actor."""
        return [getattr(actor, method)(*args_of(block)) for block, actor in enumerate(self._actors)]

    def send(self, request: bytes) -> None:
        """Queue a request."""
        self._sent.append(request)

    def receive(self) -> Answers:
        """Answer the oldest request in the queue."""
        request = self._sent.popleft()
        return self.call_all(REQUEST, lambda _: (request,))

    def drop(self) -> None:
        """Clear the queue."""
        self._sent.clear()

    def set_recovery(self, history: Callable[[], list[bytes]], rebuild: Callable[[int], dict[str, Args]]) -> None:
        """Do nothing: local blocks are never lost."""

    def forget_requests(self) -> None:
        """Do nothing."""


_MAX_LOST_WORKERS = 20  # of a fit

Replies = list[Any]  # in block order; None for lost blocks


class DaskBlocks:
    """Rows of a collection, in one block on each worker.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of delayed
        In order; recomputed from their graph if a worker is lost.
    kind : type
        Class of the actors; its arguments are the number of threads, and ranges of rows with their partitions.
    """

    def __init__(self, client: dask.Client, partitions: Sequence[object], kind: type[Actor]) -> None:
        self._client = client
        self._partitions = list(partitions)
        self._kind = kind
        self._log: list[bytes] = []  # requests of the round
        self._sent: deque[Callable[[], Replies]] = deque()  # wait for the replies to each request, oldest first
        self._received: deque[Replies] = deque()  # replies to requests before these
        self._history: Callable[[], list[bytes]] | None = None
        self._rebuild: Callable[[int], dict[str, Args]] | None = None
        self._n_lost = 0
        threads = dask.require_workers(client)
        futures = client.compute(self._partitions)
        self._lengths: list[int] = dask.gather(client, client.map(n_rows_of, futures, pure=False))
        self.n_rows = sum(self._lengths)
        if self.n_rows == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        self.ranges = aligned_ranges(self.n_rows, len(threads))
        addresses = self._sorted_by_locality(list(threads), futures)[: len(self.ranges)]
        by_number = dict(enumerate(futures))
        self._actors = [self._start_actor(block, address, by_number) for block, address in enumerate(addresses)]
        try:
            wait_until_ready(client, self._actors)
        except BaseException:
            self.close()
            raise

    def _sorted_by_locality(self, workers: list[str], futures: Sequence[dask.Future]) -> list[str]:
        """Sort workers by the partitions that they hold, so that few partitions are moved."""
        holders = dask.wait_for_scheduler(self._client, lambda: self._client.who_has(futures))
        places: dict[str, list[int]] = {address: [] for address in workers}
        for i, future in enumerate(futures):
            for address in holders.get(future.key, ()):
                places.setdefault(address, []).append(i)
        return sorted(workers, key=lambda a: (sum(places[a]) / len(places[a]) if places[a] else len(futures), a))

    def _start_actor(self, block: int, address: str, futures: dict[int, dask.Future] | None = None) -> RemoteActor:
        """Start the actor of a block from computed partitions, or else from their graph."""
        slices = slices_of(self._lengths, *self.ranges[block])
        if futures is None:
            futures = dict(zip(slices, self._client.compute([self._partitions[p] for p in slices]), strict=True))
        n_threads = dask.threads_by_worker(self._client).get(address, 1)
        rows = [futures[p] for p in slices]
        return RemoteActor(self._client, address, self._kind, n_threads, list(slices.values()), *rows)

    def call_all(self, method: str, args_of: Callable[[int], Args]) -> list[Any]:
        """Call a method of every actor."""
        sent = [actor.send(method, *args_of(block)) for block, actor in enumerate(self._actors)]
        return [actor.result(future) for actor, future in zip(self._actors, sent, strict=True)]

    def set_recovery(self, history: Callable[[], list[bytes]], rebuild: Callable[[int], dict[str, Args]]) -> None:
        """Set how a lost block is rebuilt."""
        self._history, self._rebuild = history, rebuild

    def forget_requests(self) -> None:
        """Forget the requests of the current round."""
        self._log = []

    def send(self, request: bytes) -> None:
        """Send a request to all blocks."""
        self._log.append(request)
        self._sent.append(request_all(self._client, list(self._actors), request))

    def receive(self) -> Answers:
        """Wait for the answers to a request; lost blocks are rebuilt on other workers first."""
        replies = self._received.popleft() if self._received else self._next_replies()
        if None in replies:
            pending = [replies, *(self._next_replies() for _ in range(len(self._sent)))]  # all blocks are idle then
            self._replace_lost(pending)
            replies, *others = pending
            self._received.extend(others)
        return replies

    def _next_replies(self) -> Replies:
        """Wait for the replies of the workers that are alive."""
        replies = self._sent[0]()
        self._sent.popleft()
        return replies

    def drop(self) -> None:
        """Discard the answers to all requests sent so far."""
        self._received.clear()
        self._sent.clear()

    def _replace_lost(self, pending: list[Replies]) -> None:
        """Rebuild the blocks that have not answered all pending requests, and fill in their answers."""
        lost = [b for b in range(len(self.ranges)) if any(replies[b] is None for replies in pending)]
        for address in {self._actors[b].address for b in lost}:
            self._count_loss(address)
        for block in lost:
            self._actors[block].close()
            for replies, answer in zip(pending, self._rebuild_block(block, len(pending)), strict=True):
                replies[block] = answer

    def _rebuild_block(self, block: int, n_last: int) -> list[bytes]:
        """Rebuild a block on another worker, replay its requests, and return the last answers."""
        assert self._history is not None
        assert self._rebuild is not None
        while True:
            dask.wait_for_worker(self._client)
            alive = list(dask.threads_by_worker(self._client))
            others = [address for address in alive if address != self._actors[block].address]
            if not others:
                time.sleep(dask.POLL_SECONDS)  # the scheduler may not have noticed the loss yet
            if not alive:
                continue
            used = [actor.address for actor in self._actors]
            address = min(others or alive, key=lambda a: (used.count(a), a))
            self._actors[block] = actor = self._start_actor(block, address)
            try:
                wait_until_ready(self._client, [actor])
                for method, args in self._rebuild(block).items():
                    actor.call(method, *args)
                found: list[bytes] = actor.call("replay", self._history() + self._log, n_last)
                return found
            except dask.WorkerLostError:
                actor.close()
                self._count_loss(address)

    def _count_loss(self, address: str) -> None:
        """Count a lost worker; RuntimeError if there are too many."""
        self._n_lost += 1
        if self._n_lost > _MAX_LOST_WORKERS:
            raise RuntimeError(
                f"The cluster has lost workers {self._n_lost} times during the fit, the last of them {address}. They "
                "may lack memory: use more workers, or larger ones."
            )

    def close(self) -> None:
        """Release the actors."""
        for actor in self._actors:
            actor.close()
