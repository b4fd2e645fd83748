"""Boosters with partitioned rows, and the actors on workers that answer their requests."""

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

_GRADIENTS, _SAVE_SCORES = _engine.request("gradients"), _engine.request("save_scores")


@dataclass(frozen=True)
class PartitionInputs:
    """Targets, weights and scores of a booster, for all rows or for one block.

    Attributes
    ----------
    target : ndarray of shape (n_parts, n_rows)
    weight, held_weight : ndarray of shape (n_rows,), or None
        Weights of training and held-out rows.
    scores : ndarray of shape (n_scores, 1) or (n_scores, n_rows)
        Initial scores, the same for all rows or one for each.
    trees : list of Tree
        Trees of earlier rounds.
    options : dict
        The engine's options.
    scales : tuple
        Number of all rows, and the engine's scales of their gradients.
    first : int
        Index of the first row in the table.
    """

    target: Floats
    weight: Floats | None
    held_weight: Floats | None
    scores: Floats
    trees: list[_engine.Tree]
    options: dict[str, Any]
    scales: tuple[int, float, float]
    first: int = 0

    def sliced(self, begin: int, end: int) -> PartitionInputs:
        """Return the inputs of a range of rows."""
        return replace(
            self,
            target=np.ascontiguousarray(self.target[:, begin:end]),
            weight=slice_rows(self.weight, begin, end),
            held_weight=slice_rows(self.held_weight, begin, end),
            scores=self.scores if self.scores.shape[1] == 1 else np.ascontiguousarray(self.scores[:, begin:end]),
            first=begin,
        )


def slice_rows(numbers: Floats | None, begin: int, end: int) -> Floats | None:
    """Return the numbers of a range of rows."""
    return None if numbers is None else np.ascontiguousarray(numbers[begin:end])


@dataclass
class BoosterChannel:
    """Requests of one booster to the blocks of its rows, prefixed by the booster's tag.

    Attributes
    ----------
    blocks : RowBlocks
    tag : bytes
    inputs : BoosterInputs
        Inputs of all rows.
    done : list of bytes
        Requests that a rebuilt block must replay.
    """

    blocks: RowBlocks
    tag: bytes
    inputs: PartitionInputs
    done: list[bytes] = field(default_factory=list)

    def query(self, request: bytes) -> Answers:
        """Return the answers of all blocks to a read-only request."""
        answers = self._exchange(request)
        self.blocks.forget_requests()
        return answers

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
        """Wait for the answers to the oldest unanswered request."""
        return self.blocks.receive()

    def change(self, request: bytes) -> None:
        """Send all blocks a request that changes their state, and add it to the history."""
        self._exchange(request)
        self.done.append(request)
        self.blocks.forget_requests()

    def history(self) -> list[bytes]:
        """Return all requests that a rebuilt block must answer."""
        return [self.tag + request for request in (*self.done, _GRADIENTS)]

    def save_best_scores(self) -> None:
        """Let the blocks save the scores of the held-out rows, instead of those saved before."""
        self.done = [request for request in self.done if request != _SAVE_SCORES]
        self.change(_SAVE_SCORES)

    def scores(self, which: str) -> Floats:
        """Return scores of the held-out rows, (n_scores, n_rows)."""
        n_scores = len(self.inputs.scores)
        found = [np.frombuffer(answer).reshape(n_scores, -1) for answer in self.query(_engine.request(which))]
        return np.concatenate(found, axis=1)


class DistributedBooster:
    """A booster with partitioned rows, with the interface that `Member` needs.

    Parameters
    ----------
    engine : PartitionedBoosting
    channel : BoosterChannel
        Channel to the training rows.
    validation : BoosterChannel or None
        Channel to the validation set, if it is another table.
    """

    n_dropped: Sequence[int] = ()

    def __init__(
        self, engine: _engine.PartitionedBoosting, channel: BoosterChannel, validation: BoosterChannel | None
    ) -> None:
        self._engine = engine
        self._channel = channel
        self._validation = validation
        self._n_known = 0  # length of the engine's history so far

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
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
        """Return copies of the trees of the first rounds, of all rounds by default."""
        assert not statistics
        found = self._engine.trees(first, list(factors))
        return found if n_rounds is None else found[: n_rounds * len(self._channel.inputs.scores) - first]

    def training_loss(self) -> float:
        """Return the mean loss of the training rows."""
        return self._engine.losses[0]

    def held_out_loss(self) -> float:
        """Return the mean loss of the held-out rows."""
        if self._validation is None:
            return self._engine.losses[1]
        return _engine.held_out_loss(list(self._validation.query(_GRADIENTS)))

    def out_of_bag_loss(self) -> tuple[float, float]:
        """Return the mean loss of out-of-bag rows before and after the last round."""
        return self._engine.losses[2:]

    @property
    def _held_out(self) -> BoosterChannel:
        return self._validation or self._channel

    def held_out_scores(self) -> Floats:
        """Return the scores of the held-out rows, (n_scores, n_rows)."""
        return self._held_out.scores("held_scores")

    def save_best_scores(self) -> None:
        """Save the scores of the held-out rows on the workers: this is the best round so far."""
        self._held_out.save_best_scores()

    def best_scores(self) -> Floats:
        """Return the scores that were saved last, (n_scores, n_rows)."""
        return self._held_out.scores("saved_scores")


Values = NDArray[np.float32] | Floats
Coding = Sequence[tuple[bool, bool, int, Sequence[float]]]  # bins of the columns, as `learn_coding` returns them
ColumnRanges = list[tuple[float, float, bool]]  # by column: minimum, maximum, whether values are missing


class BlockActor(Actor):
    """A block of consecutive rows of a table.

    Parameters
    ----------
    n_jobs : int
        Number of threads.
    ranges : list of tuple
        Range of rows of each partition.
    *partitions
        Partitions that hold the rows, in order.
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
        """Return a block of rows that are encoded already."""
        found = cls(1, [])
        found._tables = [table]
        return found

    def features(self, names: Sequence[str], forced: set[int]) -> list[list[Feature]]:
        """Return the features of each frame."""
        return [
            [learn_feature(name, table.column(j), j in forced, table.n_rows) for j, name in enumerate(names)]
            for table in self._frames
        ]

    def encode(self, schema: dict[str, Any], unseen: Unseen, estimator: str) -> None:
        """Encode the frames."""
        known = Schema.from_dict(schema)
        self._tables = [known.encode(table, unseen=unseen, estimator=estimator) for table in self._frames]

    def ranges(self, weight: Floats | None) -> list[ColumnRanges]:
        """Return the ranges of the columns of each table, over rows of positive weight."""
        found, first = [], 0
        for table in self._tables:
            some = None if weight is None else np.ascontiguousarray(weight[first : first + table.n_rows])
            low, high, missing = table.ranges(some, self._n_jobs)
            found.append(list(zip(low.tolist(), high.tolist(), missing.astype(bool).tolist(), strict=True)))
            first += table.n_rows
        return found

    def sample(self, rows: NDArray[np.uint32]) -> list[Values]:
        """Return the values of some rows by column, as float32 if that is exact."""
        found: list[list[Floats]] = [[] for _ in range(self._tables[0].n_columns)]
        first = 0
        for table in self._tables:
            mine = rows[(rows >= first) & (rows < first + table.n_rows)] - np.uint32(first)
            for j, values in enumerate(found):
                values.append(table.values_at(j, mine))
            first += table.n_rows
        return [_short(np.concatenate(values)) for values in found]

    def row_fingerprint(self, first: int) -> int:
        """Return the sum of the fingerprints of all rows; `first` is the index of the first one in the table."""
        found = 0
        for table in self._tables:
            found += in_order(table.fingerprints(self._n_jobs), first)
            first += table.n_rows
        return found

    def check_rows(self, first: int, known: int) -> None:
        """Refuse rows, computed again after a worker was lost, whose fingerprint is not the known one."""
        if self.row_fingerprint(first) != known:
            n_rows = sum(table.n_rows for table in self._tables)
            raise ValueError(
                f"The rows {first:,} to {first + n_rows - 1:,} have other values than before: a worker was lost, and "
                "its partitions were computed again. Random numbers need a seed, and files must not change during a "
                "fit; or write the table to files, and fit to these."
            )

    def start_boosters(self, boosters: dict[bytes, PartitionInputs], coding: Coding) -> None:
        """Bin the rows, once, and start boosters on this block, by their tags."""
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
        request = bytes(request)  # Dask may pass a memoryview
        return self._partitions[request[:1]].answer(request[1:])

    def replay(self, requests: Sequence[bytes], n_last: int) -> list[bytes]:
        """Answer requests in order; return the last answers."""
        return list(deque(map(self.answer, requests), maxlen=n_last))


def _add_trees(scores: Floats, trees: list[_engine.Tree], tables: Sequence[_engine.Table], n_jobs: int) -> None:
    """Add earlier trees to scores, (n_scores, n_rows), in the order they were grown."""
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
