"""A table whose rows are partitioned: what a fit reads of it, and how boosters start on its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.distributed.block_actor import BlockActor, Coding
from spinney._boosting.distributed.booster import BoosterChannel, BoosterInputs, DistributedBooster, rows_of
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._cluster.blocks import Args, LocalBlocks, RowBlocks
from spinney._data import Feature, Schema
from spinney._data.cells import RESOLUTIONS
from spinney._data.feature import RemoteTable
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]
Ranges = tuple[Floats, Floats, NDArray[np.bool_]]
WORK_OF_MESSAGE = 4e7  # rows times columns of a block, about 15 ms: with less, two requests take longer than one


class PartitionedTable(RemoteTable):
    """A table in blocks of rows.

    Parameters
    ----------
    blocks : RowBlocks
    n_columns : int
    names : list of str or None
    """

    __slots__ = ("_blocks",)

    def __init__(self, blocks: RowBlocks, n_columns: int, names: list[str] | None) -> None:
        super().__init__(blocks.ranges[-1][1], n_columns, names, columns=[])
        self._blocks = blocks

    def features(self, names: Sequence[str], forced: set[int]) -> list[Feature]:
        """Return what a model remembers of each column."""
        found = self._blocks.each("features", lambda _: (list(names), forced))
        known = [features for of_block in found for features in of_block]
        return [_merged([features[j] for features in known]) for j in range(len(names))]

    def encoded(self, schema: Schema, unseen: str, estimator: str) -> PartitionedColumns:
        """Turn all rows into the engine's tables where they are."""
        encoding = schema.to_dict(), unseen, estimator
        self._blocks.each("encode", lambda _: encoding)
        return PartitionedColumns(self._blocks, schema.n_categories, encoding)


def _merged(known: Sequence[Feature]) -> Feature:
    """Return one column as all of its parts know it."""
    full = [feature for feature in known if not feature.empty]
    if not full:
        return known[0]
    first = full[0]
    for other in full[1:]:
        if other.kind != first.kind or other.clock != first.clock or other.holds_text != first.holds_text:
            raise TypeError(
                f"Column {first.name!r} holds {first.kind_in_words} values in some partitions and "
                f"{other.kind_in_words} values in others; convert all of them to one kind."
            )
        if first.kind == "ordered" and other.categories != first.categories:
            raise ValueError(
                f"Column {first.name!r} has other ordered categories in some partitions; declare the same."
            )
    if first.kind == "category":
        values: set[Any] = {value for feature in full for value in feature.categories}
        return replace(first, categories=tuple(sorted(values)))
    if first.clock:
        return replace(first, resolution=max((f.resolution for f in full), key=list(RESOLUTIONS).index))
    return first


@dataclass
class PartitionedColumns:
    """All rows as the engine has them, in blocks; stands for the table of a fit."""

    blocks: RowBlocks
    n_categories_of: list[int]
    encoding: Args  # of `BlockActor.encode`
    _ranges: list[tuple[Floats | None, Ranges]] = field(default_factory=list)  # by weights
    _channels: list[BoosterChannel] = field(default_factory=list)
    _coding: Coding = ()  # how all columns are cut, once they are

    @classmethod
    def of_table(cls, table: _engine.Table) -> PartitionedColumns:
        """Return a table that is here as one of one block."""
        n_categories = [table.n_categories(j) for j in range(table.n_columns)]
        return cls(LocalBlocks([BlockActor.of_table(table)], [(0, table.n_rows)]), n_categories, ())

    @property
    def n_rows(self) -> int:
        """Rows of all blocks."""
        return self.blocks.ranges[-1][1]

    @property
    def n_columns(self) -> int:
        """Columns."""
        return len(self.n_categories_of)

    def n_categories(self, column: int) -> int:
        """Return the number of categories of a column, as `Table.n_categories` does."""
        return self.n_categories_of[column]

    def ranges(self, weight: Floats | None, n_jobs: int) -> Ranges:
        """Lowest and highest numbers, and whether some are missing, as `Table.ranges` has them."""
        del n_jobs  # each block has its own
        for known, ranges in self._ranges:
            if known is weight:
                return ranges
        given = self.blocks.each("ranges", lambda b: (rows_of(weight, *self.blocks.ranges[b]),))
        numbers = np.array([some for of_block in given for some in of_block], dtype=np.float64)
        low, high = np.fmin.reduce(numbers[:, :, 0]), np.fmax.reduce(numbers[:, :, 1])
        found = low, high, np.logical_or.reduce(numbers[:, :, 2] != 0)
        self._ranges.append((weight, found))
        return found

    def row_print(self) -> int:
        """Return a number that changes with any value, and with the order of the rows, as `in_order` gives it."""
        return int(sum(self.blocks.each("row_print", lambda b: (self.blocks.ranges[b][0],))) % 2**64)

    def coded(self, weight: Floats | None, options: dict[str, Any]) -> Coding:
        """Learn how columns are cut for boosters that learn from different rows."""
        return self._learned_coding(weight, self, _engine.BoostingOptions(**options))

    def start_booster(
        self,
        rows: LearningRows,
        held_out: LearningRows | None,
        loss: Loss,
        start: Floats,
        earlier: FittedBoosting | None,
        options: dict[str, Any],
        coding: Coding | None,
    ) -> DistributedBooster:
        """Cut the columns, send the blocks their targets, and return a booster that has done the earlier rounds."""
        read = _engine.BoostingOptions(**options)
        validation: PartitionedColumns | _engine.Table | None = None if held_out is None else held_out.columns
        if coding is None:
            coding = self._learned_coding(rows.weight, validation, read)  # asks for ranges while the columns are there
        n_done, trees = (0, []) if earlier is None else (earlier.n_rounds, earlier.trees())
        engine = _engine.PartitionedBoosting(
            coding, self.n_categories_of, self.n_rows, rows.weight, read, n_done, WORK_OF_MESSAGE
        )
        held_weight = None if held_out is None or validation is not self else held_out.weights()
        target, scores = _first_scores(rows, loss, start)
        inputs = BoosterInputs(target, rows.weight, held_weight, scores, trees, options, engine.scales)
        channel = self.channel(inputs, coding)
        if held_out is None or validation is self:
            return DistributedBooster(engine, channel, None)
        there = PartitionedColumns.of_table(validation) if isinstance(validation, _engine.Table) else validation
        assert there is not None
        target, scores = _first_scores(held_out, loss, start)
        weight, scales = held_out.weights(), (len(held_out.target), 1.0, 1.0)
        inputs = BoosterInputs(target, weight, weight, scores, trees, options, scales)
        return DistributedBooster(engine, channel, there.channel(inputs, coding))

    def channel(self, inputs: BoosterInputs, coding: Coding) -> BoosterChannel:
        """Start a booster on all blocks; return the channel to them."""
        self._coding = coding
        channel = BoosterChannel(self.blocks, bytes([len(self._channels)]), inputs)
        self.blocks.each("start_boosters", lambda b: self._boosters([channel], b))
        self._channels.append(channel)
        self.blocks.begin_rounds(
            lambda: [request for one in self._channels for request in one.history()],
            lambda b: {"encode": self.encoding, "start_boosters": self._boosters(self._channels, b)},
        )
        return channel

    def _boosters(self, channels: Sequence[BoosterChannel], block: int) -> Args:
        """Return what `BlockActor.start_boosters` takes."""
        return {one.tag: one.inputs.of_rows(*self.blocks.ranges[block]) for one in channels}, self._coding

    def _learned_coding(
        self,
        weight: Floats | None,
        validation: PartitionedColumns | _engine.Table | None,
        options: _engine.BoostingOptions,
    ) -> Coding:
        """Learn the edges of bins from the rows that they would be learned from in one place.

        Rows for validation may lack values in columns where those of positive weight do not.
        """
        rows, weights = _engine.rows_for_bins(self.n_rows, weight)

        def rows_in(block: int) -> Args:
            begin, end = self.blocks.ranges[block]
            return (rows[(rows >= begin) & (rows < end)] - np.uint32(begin),)

        found = self.blocks.each("sample", rows_in)
        sample = _engine.Table(len(rows))
        for j, n_categories in enumerate(self.n_categories_of):
            column = np.concatenate([values[j] for values in found])
            if n_categories:
                sample.add_category(np.where(np.isnan(column), -1, column).astype(np.int32), n_categories)
            else:
                sample.add_number(column)
        missing = self.ranges(weight, 1)[2].astype(bool)
        if validation is not None:
            missing = missing | validation.ranges(None, 1)[2].astype(bool)
        return _engine.learn_coding(sample, weights if len(weights) else None, missing.astype(int).tolist(), options)


def _first_scores(rows: LearningRows, loss: Loss, start: Floats) -> tuple[Floats, Floats]:
    """Targets, and scores before the first tree, of all rows alike where they are."""
    target, scores = loss.shifted(rows, start)
    return target, scores if rows.offset is not None and not loss.is_shifted else scores[:, :1].copy()
