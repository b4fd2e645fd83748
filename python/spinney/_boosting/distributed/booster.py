"""Boosters whose rows are partitioned, and the blocks of rows that answer their requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._cluster import dask
from spinney._cluster.actor import Actor, n_rows_of, rows_between
from spinney._cluster.blocks import Answers, Range, RowBlocks
from spinney._data import Feature, Schema, read_table
from spinney._data.feature import Unseen, learn_feature
from spinney._data.types import Floats
from spinney._estimator.rows import in_order

_GRADIENTS, _KEEP = _engine.request("gradients"), _engine.request("keep_scores")


@dataclass(frozen=True)
class BoosterInputs:
    """What a booster learns from, of all rows or of those of one block.

    Attributes
    ----------
    target : ndarray of shape (n_parts, n_rows)
    weight, held_weight : ndarray of shape (n_rows,), or None
        Of the rows that are learned from, and of those held out.
    scores : ndarray of shape (n_scores, 1) or (n_scores, n_rows)
        Before the first tree; the same for all rows, or one for each.
    trees : list of Tree
        Of rounds that are done already.
    options : dict
    scales : tuple
        Number of all rows, and what the engine scales their gradients by.
    first : int
        Number of the first row.
    """

    target: Floats
    weight: Floats | None
    held_weight: Floats | None
    scores: Floats
    trees: list[_engine.Tree]
    options: dict[str, Any]
    scales: tuple[int, float, float]
    first: int = 0

    def of_rows(self, begin: int, end: int) -> BoosterInputs:
        """Return the same of some rows."""
        return replace(
            self,
            target=np.ascontiguousarray(self.target[:, begin:end]),
            weight=rows_of(self.weight, begin, end),
            held_weight=rows_of(self.held_weight, begin, end),
            scores=self.scores if self.scores.shape[1] == 1 else np.ascontiguousarray(self.scores[:, begin:end]),
            first=begin,
        )


def rows_of(numbers: Floats | None, begin: int, end: int) -> Floats | None:
    """Return the numbers of some rows."""
    return None if numbers is None else np.ascontiguousarray(numbers[begin:end])


@dataclass
class BoosterChannel:
    """Requests of one booster to the blocks of its rows; they begin with its tag.

    Attributes
    ----------
    blocks : RowBlocks
    tag : bytes
    inputs : BoosterInputs
        Of all rows.
    done : list of bytes
        Requests that bring a new block to where the others are.
    """

    blocks: RowBlocks
    tag: bytes
    inputs: BoosterInputs
    done: list[bytes] = field(default_factory=list)

    def ask(self, request: bytes) -> Answers:
        """Return the answers of all blocks to a request that changes nothing."""
        found = self._exchange(request)
        self.blocks.forget_requests()
        return found

    def _exchange(self, request: bytes) -> Answers:
        try:
            self.send(request)
            return self.receive()
        except BaseException:
            self.blocks.drop()
            raise

    def send(self, request: bytes) -> None:
        """Send a request to all blocks."""
        self.blocks.send(self.tag + request)

    def receive(self) -> Answers:
        """Wait for the answers to the first request whose answers were not received yet."""
        return self.blocks.receive()

    def change(self, request: bytes) -> None:
        """Send all blocks a request that changes them, and them alone: it is part of the history."""
        self._exchange(request)
        self.done.append(request)
        self.blocks.forget_requests()

    def history(self) -> list[bytes]:
        """Return all requests that a new block is to answer."""
        return [self.tag + request for request in (*self.done, _GRADIENTS)]

    def keep_scores(self) -> None:
        """Have the blocks note the scores of the rows held out, in the place of those noted before."""
        self.done = [request for request in self.done if request != _KEEP]
        self.change(_KEEP)

    def scores(self, which: str) -> Floats:
        """Scores of the rows held out, (n_scores, n_rows)."""
        n_scores = len(self.inputs.scores)
        found = [np.frombuffer(answer).reshape(n_scores, -1) for answer in self.ask(_engine.request(which))]
        return np.concatenate(found, axis=1)


class DistributedBooster:
    """A booster whose rows are partitioned, as `Member` takes one.

    Parameters
    ----------
    engine : PartitionedBoosting
    channel : BoosterChannel
        To the rows that are learned from.
    validation : BoosterChannel or None
        To the validation set, if it is of another table.
    """

    n_dropped: Sequence[int] = ()

    def __init__(
        self, engine: _engine.PartitionedBoosting, channel: BoosterChannel, validation: BoosterChannel | None
    ) -> None:
        self._engine = engine
        self._channel = channel
        self._validation = validation
        self._n_known = 0  # requests of the engine's history

    @property
    def n_rounds(self) -> int:
        """Rounds done."""
        return self._engine.n_rounds

    def advance(self) -> None:
        """Add a round."""
        try:
            self._engine.advance(self._channel)
        except BaseException:
            self._channel.blocks.drop()
            raise
        added = self._engine.history(self._n_known)
        self._n_known += len(added)
        self._channel.done += added
        self._channel.blocks.forget_requests()
        if self._validation is not None:
            for request in added:
                self._validation.change(request)

    def trees(
        self,
        first: int,
        factors: Sequence[float] = (),
        statistics: Sequence[object] = (),
        n_rounds: int | None = None,
    ) -> list[_engine.Tree]:
        """Return copies of the trees, of the first rounds if their number is given."""
        assert not statistics
        found = self._engine.trees(first, list(factors))
        return found if n_rounds is None else found[: n_rounds * len(self._channel.inputs.scores) - first]

    def training_loss(self) -> float:
        """Mean loss of the rows learned from."""
        return self._engine.losses[0]

    def held_out_loss(self) -> float:
        """Mean loss of the rows held out."""
        if self._validation is None:
            return self._engine.losses[1]
        return _engine.held_out_loss(list(self._validation.ask(_GRADIENTS)))

    def out_of_bag_loss(self) -> tuple[float, float]:
        """Mean loss of rows that the last round has not drawn, before and after it."""
        return self._engine.losses[2:]

    @property
    def _held_out(self) -> BoosterChannel:
        return self._validation or self._channel

    def held_out_scores(self) -> Floats:
        """Scores of the rows held out, (n_scores, n_rows)."""
        return self._held_out.scores("held_scores")

    def keep_scores(self) -> None:
        """Note the scores of the rows held out where they are: no round was better."""
        self._held_out.keep_scores()

    def best_scores(self) -> Floats:
        """Scores that were noted last, (n_scores, n_rows)."""
        return self._held_out.scores("kept_scores")


Values = NDArray[np.float32] | Floats
Coding = Sequence[tuple[bool, bool, int, Sequence[float]]]  # how columns are cut, as `learn_coding` returns it
ColumnRanges = list[tuple[float, float, bool]]  # by column: lowest, highest, whether some are missing


class BlockActor(Actor):
    """Rows that follow one another in a table.

    Parameters
    ----------
    n_jobs : int
        Threads.
    ranges : list of tuple
        First row and end of those of each partition.
    *partitions
        That the rows are taken from, in order.
    """

    def __init__(self, n_jobs: int, ranges: Sequence[Range], *partitions: dask.Rows) -> None:
        super().__init__()
        self._n_jobs = n_jobs
        frames = [rows_between(rows, *ends) for rows, ends in zip(partitions, ranges, strict=True)]
        self._frames = [read_table(frame) for frame in frames if n_rows_of(frame)]
        self._tables: list[_engine.Table] = []
        self._coded: _engine.CodedRows | None = None
        self._partitions: dict[bytes, _engine.Partition] = {}  # by the tag of the booster

    @classmethod
    def of_table(cls, table: _engine.Table) -> BlockActor:
        """Return a block of rows that are in the engine's table already."""
        found = cls(1, [])
        found._tables = [table]
        return found

    def features(self, names: Sequence[str], forced: set[int]) -> list[list[Feature]]:
        """Return what each frame knows of the columns."""
        return [
            [learn_feature(name, table.column(j), j in forced, table.n_rows) for j, name in enumerate(names)]
            for table in self._frames
        ]

    def encode(self, schema: dict[str, Any], unseen: Unseen, estimator: str) -> None:
        """Turn the frames into the engine's tables."""
        known = Schema.from_dict(schema)
        self._tables = [known.encode(table, unseen=unseen, estimator=estimator) for table in self._frames]

    def ranges(self, weight: Floats | None) -> list[ColumnRanges]:
        """Return the ranges of the columns of each table, of the rows of positive weight."""
        found, first = [], 0
        for table in self._tables:
            some = None if weight is None else np.ascontiguousarray(weight[first : first + table.n_rows])
            low, high, missing = table.ranges(some, self._n_jobs)
            found.append(list(zip(low.tolist(), high.tolist(), missing.astype(bool).tolist(), strict=True)))
            first += table.n_rows
        return found

    def sample(self, rows: NDArray[np.uint32]) -> list[Values]:
        """Return the values of some rows, column by column: as floats of 4 bytes where these hold them."""
        found: list[list[Floats]] = [[] for _ in range(self._tables[0].n_columns)]
        first = 0
        for table in self._tables:
            mine = rows[(rows >= first) & (rows < first + table.n_rows)] - np.uint32(first)
            for j, values in enumerate(found):
                values.append(table.values_at(j, mine))
            first += table.n_rows
        return [_short(np.concatenate(values)) for values in found]

    def row_fingerprint(self, first: int) -> int:
        """Return the sum of the fingerprints of all rows, given the number of the first in the table."""
        found = 0
        for table in self._tables:
            found += in_order(table.fingerprints(self._n_jobs), first)
            first += table.n_rows
        return found

    def start_boosters(self, boosters: dict[bytes, BoosterInputs], coding: Coding) -> None:
        """Code the rows, once, and start the blocks' part of some boosters, by their tags."""
        for tag, inputs in boosters.items():
            options = _engine.BoostingOptions(**inputs.options | {"n_jobs": self._n_jobs})
            scores = np.array(np.broadcast_to(inputs.scores, (len(inputs.scores), inputs.target.shape[1])))
            if self._coded is None:
                self._coded = _engine.CodedRows(self._tables, coding, options)
                _add_trees(scores, inputs.trees, self._tables, self._n_jobs)
                self._tables, self._frames = [], []
            self._partitions[tag] = _engine.Partition(
                self._coded,
                target=inputs.target,
                weight=inputs.weight,
                held_weight=inputs.held_weight,
                scores=scores,
                options=options,
                place=(inputs.first, *inputs.scales),
            )

    def answer(self, request: bytes) -> bytes:
        """Answer a request, which begins with the tag of a booster."""
        request = bytes(request)  # Dask may bring a view
        return self._partitions[request[:1]].answer(request[1:])

    def replay(self, requests: Sequence[bytes], n_last: int) -> list[bytes]:
        """Answer requests in order; return the last answers."""
        return list(deque(map(self.answer, requests), maxlen=n_last))


def _add_trees(scores: Floats, trees: list[_engine.Tree], tables: Sequence[_engine.Table], n_jobs: int) -> None:
    """Add the rounds of earlier trees to scores, (n_scores, n_rows), in the order in which they were grown."""
    n_scores, begin = len(scores), 0
    for table in tables if trees else ():
        added = _engine.make_additive(trees, n_scores, [table.n_categories(j) for j in range(table.n_columns)])
        mine = scores[:, begin : begin + table.n_rows]
        for first in range(0, len(trees), n_scores):
            mine += added.sums(table, first, first + n_scores, n_jobs).T
        begin += table.n_rows


def _short(values: Floats) -> Values:
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    same = short == values
    return short if same.all() or (same | np.isnan(values)).all() else values
