"""What a worker does: it holds blocks of rows, first as frames, then in codes, and answers questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._cluster.actor import Answering
from spinney._cluster.line import listen
from spinney._data import Feature, RawTable, Schema, read_table
from spinney._data.feature import learn_feature
from spinney._learn.row_print import in_order

Floats = NDArray[np.float64]
Numbers = list[tuple[float, float, bool]]  # by column: lowest, highest, whether some are missing
_LEFT: dict[tuple[str, int], list[Any]] = {}  # frames that tasks have left for the holder, by fit and block


def leave_block(fit: str, block: int, ranges: Sequence[tuple[int, int]], *parts: Any) -> int:
    """Leave some rows of each part for the holder of this process; return how many there are."""
    _LEFT[fit, block] = [rows_between(part, *ends) for part, ends in zip(parts, ranges, strict=True)]
    return sum(end - begin for begin, end in ranges)


def n_rows_of(part: Any) -> int:
    """Return the rows of a frame, an array or a sparse matrix."""
    return int(part.shape[0])


def rows_between(part: Any, begin: int, end: int) -> Any:
    """Return some rows of a frame or an array."""
    return part.iloc[begin:end] if hasattr(part, "iloc") else part[begin:end]


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
        self._fit = fit
        self._n_jobs = n_jobs
        self._frames: dict[int, list[RawTable]] = {}
        self._tables: dict[int, list[_engine.Table]] = {}
        self._coded: dict[int, _engine.CodedRows] = {}
        self._pieces: dict[tuple[bytes, int], _engine.Piece] = {}  # by booster and block

    def listen(self, host: str) -> tuple[int, bytes] | None:
        """Answer questions at the end of a line too; return its port and password, if this worker is at that host."""
        return listen(host, self.answer)

    def take(self, block: int, frames: Sequence[Any] | None = None) -> None:
        """Take over the frames of a block, which were left here unless they are given."""
        found = _LEFT.pop((self._fit, block)) if frames is None else frames
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

    def sample(self, rows: dict[int, NDArray[np.uint32]]) -> dict[int, Floats]:
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
                    table = _joined(self._tables.pop(block))
                    self._frames.pop(block, None)
                    self._coded[block] = _engine.CodedRows(table, coding, read)
                    scores = _scores_after(trees, table, start, self._n_jobs)
                else:
                    scores = _scores_after([], None, start, self._n_jobs, of_block["target"].shape[1])
                self._pieces[tag, block] = _engine.Piece(self._coded[block], scores=scores, options=read, **of_block)

    def answer(self, question: bytes) -> dict[int, bytes]:
        """Answer a question, which begins with the tag of a booster, block by block."""
        tag, asked = question[:1], question[1:]
        return {block: piece.answer(asked) for (of, block), piece in self._pieces.items() if of == tag}

    def answer_of(self, block: int, questions: Sequence[bytes]) -> bytes:
        """Answer questions in order for one block alone; return the last answer."""
        found = b""
        for question in questions:
            found = self._pieces[question[:1], block].answer(question[1:])
        return found


def _scores_after(
    trees: list[_engine.Tree], table: _engine.Table | None, start: Floats, n_jobs: int, n_rows: int = 0
) -> Floats:
    """Scores, (n_scores, n_rows), after the rounds of these trees, added in the order in which they were grown."""
    n_scores, n_rows = len(start), n_rows if table is None else table.n_rows
    scores = np.array(np.broadcast_to(start, (n_scores, n_rows)))
    if trees and table is not None:
        added = _engine.make_additive(trees, n_scores, [table.n_categories(j) for j in range(table.n_columns)])
        for first in range(0, len(trees), n_scores):
            scores += added.sums(table, first, first + n_scores, n_jobs).T
    return np.ascontiguousarray(scores)


def _values_at(tables: Sequence[_engine.Table], rows: NDArray[np.uint32]) -> Floats:
    found, first = [], 0
    for table in tables:
        mine = rows[(rows >= first) & (rows < first + table.n_rows)] - np.uint32(first)
        found.append([table.values_at(j, mine) for j in range(table.n_columns)])
        first += table.n_rows
    return np.concatenate([np.asarray(values) for values in found], axis=1)


def _joined(tables: Sequence[_engine.Table]) -> _engine.Table:
    """Put tables of the same columns one below the other."""
    if len(tables) == 1:
        return tables[0]
    joined = _engine.Table(sum(table.n_rows for table in tables))
    for j in range(tables[0].n_columns):
        values = np.concatenate([np.asarray(table.column(j)) for table in tables])
        if n_categories := tables[0].n_categories(j):
            joined.add_category(np.where(np.isnan(values), -1, values).astype(np.int32), n_categories)
        else:
            joined.add_number(values)
    return joined
