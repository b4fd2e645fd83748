"""A block of rows on a worker: first frames, then the engine's tables, then codes about which it answers requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.distributed.booster import BoosterInputs
from spinney._cluster import dask
from spinney._cluster.actor import Actor
from spinney._cluster.blocks import Range
from spinney._cluster.worker_rows import n_rows_of, rows_between
from spinney._data import Feature, Schema, read_table
from spinney._data.feature import Unseen, learn_feature
from spinney._estimator.rows import in_order

Floats = NDArray[np.float64]
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

    def row_print(self, first: int) -> int:
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
