"""Holders that are actors on the workers of a Dask cluster; a worker that is lost is replaced, and nobody notices."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from spinney._cluster.actor import Answering
from spinney._cluster.blocks import Carrier, aligned_blocks, apart, leave_block, n_rows_of, slices_of
from spinney._cluster.dask_actors import Actors
from spinney._cluster.dask_waits import (
    LOOK_EVERY,
    WorkerLostError,
    gathered,
    in_time,
    threads_of,
    wait_for_a_worker,
)
from spinney._cluster.worker_tables import forget_everywhere

_MOST_LOSSES = 20  # workers that a fit may lose


class DaskCarrier(Carrier):
    """Blocks of a collection on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed
        The partitions, in order: they are made again from their graph where a worker is lost.
    actor : type
        Of the actor that holds the blocks of a worker; made of the name of the fit and a number of threads.
    """

    def __init__(self, client: Any, parts: Sequence[Any], actor: type[Answering]) -> None:
        self._client = client
        self._actor = actor
        self._parts = list(parts)
        self._fit = f"spinney-{uuid4().hex}"
        self._holders = Actors(client)
        self._log: list[bytes] = []  # questions of the round
        self._sent: deque[Callable[[], dict[str, Any]]] = deque()  # what waits for the answers to each, first to last
        self._known: deque[dict[int, Any]] = deque()  # answers to those before them, by block
        self._history: Callable[[], list[bytes]] | None = None
        self._recut: Callable[[list[int]], tuple[Any, ...]] | None = None
        self._n_lost = 0
        threads = threads_of(client)
        if not threads:
            raise RuntimeError("The cluster has no workers. Start some, or wait for them with client.wait_for_workers.")
        futures = client.compute(self._parts)
        self._lengths: list[int] = gathered(client, client.map(n_rows_of, futures, pure=False))
        n_rows = sum(self._lengths)
        if n_rows == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        self.blocks = aligned_blocks(n_rows, len(threads))
        self._where = self._in_order(list(threads), futures)[: len(self.blocks)]  # address of each block
        try:
            self._place(dict(enumerate(self._where)), dict(enumerate(futures)))
            self._holders.connect()
        except BaseException:
            forget_everywhere(client, self._fit)
            raise

    @property
    def n_rows(self) -> int:
        """Rows of all blocks."""
        return self.blocks[-1][1]

    def _in_order(self, workers: list[str], futures: Sequence[Any]) -> list[str]:
        """Order workers by the partitions that they have, so that few of these travel."""
        holders = in_time(self._client, lambda: self._client.who_has(futures))
        places: dict[str, list[int]] = {address: [] for address in workers}
        for i, future in enumerate(futures):
            for address in holders.get(future.key, ()):
                places.setdefault(address, []).append(i)
        return sorted(workers, key=lambda a: (sum(places[a]) / len(places[a]) if places[a] else len(futures), a))

    def _place(self, where: dict[int, str], parts: dict[int, Any] | None = None) -> None:
        """Bring the rows of blocks to workers, from their partitions or, if these are gone, from their graph."""
        left, made = {}, []
        for block, address in where.items():
            left[block] = self._left(block, address, parts)
        for address in dict.fromkeys(where.values()):
            if address not in self._holders:
                threads = threads_of(self._client).get(address, 1)
                made.append(self._holders.begin(address, self._actor, self._fit, threads))
        for block, future in left.items():
            gathered(self._client, [future], where[block])
        for wait in made:
            wait()
        taken = [(address, self._holders.send(address, "take", block)) for block, address in where.items()]
        for address, future in taken:
            self._holders.answer(address, future)

    def _left(self, block: int, address: str, parts: dict[int, Any] | None) -> Any:
        """Begin to leave the rows of a block at a worker."""
        some = slices_of(self._lengths, *self.blocks[block])
        if parts is None:
            wanted = [p for p, _, _ in some]
            parts = dict(zip(wanted, self._client.compute([self._parts[p] for p in wanted]), strict=True))
        ranges, rows = [(i, j) for _, i, j in some], [parts[p] for p, _, _ in some]
        return self._client.submit(leave_block, self._fit, block, ranges, *rows, workers=[address], pure=False)

    def _blocks_of(self, address: str) -> list[int]:
        return [b for b, where in enumerate(self._where) if where == address]

    def each(self, method: str, args_of: Callable[[list[int]], tuple[Any, ...]]) -> list[Any]:
        """Call a method of every holder."""
        sent = {a: self._holders.send(a, method, *args_of(self._blocks_of(a))) for a in dict.fromkeys(self._where)}
        return [self._holders.answer(address, future) for address, future in sent.items()]

    def begin_rounds(self, history: Callable[[], list[bytes]], recut: Callable[[list[int]], tuple[Any, ...]]) -> None:
        """Note what brings a new piece up to date."""
        self._history, self._recut = history, recut

    def end_round(self) -> None:
        """Forget the questions of the round."""
        self._log.clear()

    def send(self, question: bytes) -> None:
        """Send a question to all pieces."""
        self._log.append(question)
        self._sent.append(self._holders.ask(list(dict.fromkeys(self._where)), question))

    def receive(self) -> list[bytes | memoryview]:
        """Wait for the answers to a question; pieces of a worker that is lost are made again elsewhere first."""
        answers = self._known.popleft() if self._known else self._next_answers()
        if len(answers) < len(self.blocks):
            coming = [answers, *(self._next_answers() for _ in range(len(self._sent)))]  # the others stand still
            self._make_again(coming)
            answers, *known = coming
            self._known.extend(known)
        return [answers[b] for b in range(len(self.blocks))]

    def _next_answers(self) -> dict[int, Any]:
        """Wait for what living workers say."""
        answers: dict[int, Any] = {}
        for said in self._sent[0]().values():
            answers |= apart(said)
        self._sent.popleft()
        return answers

    def drop(self) -> None:
        """Leave answers where they are read: over a connection they come in order."""
        self._known.clear()
        while self._sent:
            with suppress(Exception):  # of a worker that is lost, which the next question will find out
                self._sent[0]()
            self._sent.popleft()

    def _make_again(self, coming: list[dict[int, Any]]) -> None:
        """Make the pieces anew that have not answered all of the last questions, and add what they say."""
        blocks = [b for b in range(len(self.blocks)) if any(b not in answers for answers in coming)]
        for address in {self._where[b] for b in blocks}:
            self._lose(address)
        for block in blocks:
            for answers, found in zip(coming, self._made_again(block, len(coming)), strict=True):
                answers[block] = found

    def _made_again(self, block: int, n_last: int) -> list[bytes]:
        """Make the piece of a block anew on another worker, let it catch up, and return its last answers."""
        assert self._history is not None
        assert self._recut is not None
        while True:
            lost = self._where[block]
            wait_for_a_worker(self._client)
            alive = list(threads_of(self._client))
            others = [address for address in alive if address != lost]
            if not others:
                time.sleep(LOOK_EVERY)  # it may be gone, and not be known to be
            if not alive:
                continue
            address = min(others or alive, key=lambda a: (len(self._blocks_of(a)), a))
            self._where[block] = address
            try:
                self._place({block: address})
                encoding, given = self._recut([block])
                self._holders.call(address, "encode", *encoding)
                self._holders.call(address, "cut", *given)
                questions = self._history() + self._log
                found: list[bytes] = self._holders.call(address, "answers_of", block, questions, n_last)
                self._holders.connect()
                return found
            except WorkerLostError:
                self._lose(address)
            except BaseException:
                forget_everywhere(self._client, self._fit)  # rows that were left for a holder
                raise

    def _lose(self, address: str) -> None:
        """Note that a worker is lost, but not without end."""
        self._holders.forget(address)
        self._n_lost += 1
        if self._n_lost > _MOST_LOSSES:
            raise RuntimeError(
                f"The cluster has lost workers {self._n_lost} times during the fit, the last of them {address}. They "
                "may lack memory: use more workers, or larger ones."
            )

    def close(self) -> None:
        """Let the holders go."""
        self._holders.close()
