"""What a worker does: it holds blocks of rows, first as frames, then in codes, and answers questions about them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._cluster.actor import Answering
from spinney._cluster.blocks import n_rows_of, together
from spinney._cluster.dask_channel import hear_lines
from spinney._cluster.worker_tables import take
from spinney._data import Feature, RawTable, Schema, read_table
from spinney._data.feature import learn_feature
from spinney._estimator.row_fingerprint import in_order

Floats = NDArray[np.float64]
Values = NDArray[np.float32] | Floats
Numbers = list[tuple[float, float, bool]]  # by column: lowest, highest, whether some are missing


class Holder(Answering):
    """Blocks of rows that follow one another in a table.

    Parameters
    ----------
    fit : str
        What the fit is known by in this process.
    n_jobs : int
        Threads.
    """

    def __init__(self, fit: str, n_jobs: int) -> None:
        hear_lines(self)
        self._fit = fit
        self._n_jobs = n_jobs
        self._frames: dict[int, list[RawTable]] = {}
        self._tables: dict[int, list[_engine.Table]] = {}
        self._coded: dict[int, _engine.CodedRows] = {}
        self._pieces: dict[tuple[bytes, int], _engine.Piece] = {}  # by booster and block

    def take(self, block: int, frames: Sequence[Any] | None = None) -> None:
        """Take over the frames of a block, which were left here unless they are given."""
        found = take(self._fit, block) if frames is None else frames
        self._frames[block] = [read_table(frame) for frame in found if n_rows_of(frame)]

    def hold(self, block: int, tables: list[_engine.Table]) -> None:
        """Take over the rows of a block that are in the engine's tables already."""
        self._tables[block] = tables

    def features(self, names: Sequence[str], forced: set[int]) -> list[list[Feature]]:
        """Return what each frame knows of the columns."""
        return [
            [learn_feature(name, table.column(j), j in forced, table.n_rows) for j, name in enumerate(names)]
            for tables in self._frames.values()
            for table in tables
        ]

    def encode(self, schema: dict[str, Any], unseen: Any, estimator: str) -> None:
        """Turn the frames into the engine's tables."""
        known = Schema.from_dict(schema)
        for block, tables in self._frames.items():
            self._tables[block] = [known.encode(table, unseen=unseen, estimator=estimator) for table in tables]

    def ranges(self, weights: dict[int, Floats | None]) -> list[Numbers]:
        """Lowest and highest numbers, and whether some are missing, of the rows of positive weight."""
        found = []
        for block, weight in weights.items():
            first = 0
            for table in self._tables[block]:
                some = None if weight is None else np.ascontiguousarray(weight[first : first + table.n_rows])
                low, high, missing = table.ranges(some, self._n_jobs)
                found.append(list(zip(low.tolist(), high.tolist(), missing.astype(bool).tolist(), strict=True)))
                first += table.n_rows
        return found

    def sample(self, rows: dict[int, NDArray[np.uint32]]) -> dict[int, list[Values]]:
        """Return the values of some rows, column by column."""
        return {block: _values_at(self._tables[block], some) for block, some in rows.items()}

    def row_print(self, first_rows: dict[int, int]) -> int:
        """Return the sum of the prints of all rows, given the first row of each block."""
        found = 0
        for block, first in first_rows.items():
            for table in self._tables[block]:
                found += in_order(table.fingerprints(self._n_jobs), first)
                first += table.n_rows
        return found

    def cut(
        self,
        boosters: Sequence[tuple[bytes, dict[int, dict[str, Any]], list[_engine.Tree], dict[str, Any]]],
        coding: Any,
    ) -> None:
        """Make the pieces of some boosters, with the scores that earlier trees give them, and let the frames go.

        Parameters
        ----------
        boosters : list of tuples
            Tag of each, what its pieces are made of, by block, earlier trees, and options.
        coding : as `learn_coding` returns it
            How all of them cut the columns.
        """
        for tag, given, trees, options in boosters:
            read = _engine.BoostingOptions(**options | {"n_jobs": self._n_jobs})
            for block, of_block in given.items():
                start = of_block.pop("start")
                if block in self._tables:
                    tables = self._tables.pop(block)
                    self._frames.pop(block, None)
                    self._coded[block] = _engine.CodedRows(tables, coding, read)
                    scores = _scores_after(trees, tables, start, self._n_jobs)
                else:
                    scores = _scores_of(start, of_block["target"].shape[1])
                self._pieces[tag, block] = _engine.Piece(self._coded[block], scores=scores, options=read, **of_block)

    def answer(self, question: bytes) -> dict[int, bytes]:
        """Answer a question, which begins with the tag of a booster, block by block."""
        tag, asked = question[:1], question[1:]
        return {block: piece.answer(asked) for (of, block), piece in self._pieces.items() if of == tag}

    def answers_to(self, question: bytes) -> memoryview:
        """Answer a question; `apart` gives the answers by block. Dask sends one run of bytes as it is."""
        return memoryview(b"".join(self.heard(question)))

    def heard(self, question: bytes) -> list[bytes]:
        """Answer a question that has come over a line."""
        return together(self.answer(question))

    def answers_of(self, block: int, questions: Sequence[bytes], n_last: int) -> list[bytes]:
        """Answer questions in order for one block alone; return the last answers."""
        found: deque[bytes] = deque(maxlen=n_last)
        for question in questions:
            found.append(self._pieces[question[:1], block].answer(question[1:]))
        return list(found)


def _scores_of(start: Floats, n_rows: int) -> Floats:
    """Scores, (n_scores, n_rows), before the first tree, where `start` may be the same for all rows."""
    return np.array(np.broadcast_to(start, (len(start), n_rows)))


def _scores_after(trees: list[_engine.Tree], tables: Sequence[_engine.Table], start: Floats, n_jobs: int) -> Floats:
    """Scores after the rounds of these trees, added in the order in which they were grown."""
    n_scores, begin = len(start), 0
    scores = _scores_of(start, sum(table.n_rows for table in tables))
    for table in tables if trees else ():
        added = _engine.make_additive(trees, n_scores, [table.n_categories(j) for j in range(table.n_columns)])
        mine = scores[:, begin : begin + table.n_rows]
        for first in range(0, len(trees), n_scores):
            mine += added.sums(table, first, first + n_scores, n_jobs).T
        begin += table.n_rows
    return scores


def _values_at(tables: Sequence[_engine.Table], rows: NDArray[np.uint32]) -> list[Values]:
    """Values of some rows, by column: as floats of 4 bytes where these hold them, which are sent and sorted sooner."""
    found: list[list[Floats]] = [[] for _ in range(tables[0].n_columns)]
    first = 0
    for table in tables:
        mine = rows[(rows >= first) & (rows < first + table.n_rows)] - np.uint32(first)
        for j, values in enumerate(found):
            values.append(table.values_at(j, mine))
        first += table.n_rows
    return [_short(np.concatenate(values)) for values in found]


def _short(values: Floats) -> Values:
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    same = short == values
    return short if same.all() or (same | np.isnan(values)).all() else values
