"""A table that is dealt out to holders in blocks, whoever carries the questions to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.distributed.booster import Channel, Cut, DealtBooster, rows_of
from spinney._boosting.distributed.partition_actor import Holder
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._cluster.blocks import Carrier, LocalCarrier
from spinney._data import Feature, Schema
from spinney._data.dates import RESOLUTIONS
from spinney._data.partitioned import DealtTable
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]
Ranges = tuple[Floats, Floats, NDArray[np.bool_]]
WORK_OF_MESSAGE = 4e7  # rows times columns of a holder, about 15 ms: with less, two questions take longer than one


class Dealt(DealtTable):
    """A table that holders have blocks of.

    Parameters
    ----------
    carrier : Carrier
    n_columns : int
    names : list of str or None
    """

    __slots__ = ("_carrier",)

    def __init__(self, carrier: Carrier, n_columns: int, names: list[str] | None) -> None:
        super().__init__(carrier.blocks[-1][1], n_columns, names, columns=[])
        self._carrier = carrier

    def features(self, names: Sequence[str], forced: set[int]) -> list[Feature]:
        """Return what a model keeps of each column."""
        found = self._carrier.each("features", lambda _: (list(names), forced))
        known = [features for of_holder in found for features in of_holder]
        return [_merged([features[j] for features in known]) for j in range(len(names))]

    def encoded(self, schema: Schema, unseen: str, estimator: str) -> DealtColumns:
        """Turn all rows into the engine's tables where they are."""
        self._carrier.each("encode", lambda _: (schema.to_dict(), unseen, estimator))
        return DealtColumns(self._carrier, schema.n_categories, (schema.to_dict(), unseen, estimator))


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
class DealtColumns:
    """All rows as the engine has them, elsewhere; stands for the table of a fit."""

    carrier: Carrier
    n_categories_of: list[int]
    encoding: tuple[dict[str, Any], str, str]
    _ranges: list[tuple[Any, Ranges]] = field(default_factory=list)  # by the weights that were asked for
    _channels: list[Channel] = field(default_factory=list)
    _coded: Any = None  # how all columns are cut, once they are

    @classmethod
    def of_table(cls, table: _engine.Table) -> DealtColumns:
        """Return a table that is here as one that is dealt out to one holder."""
        holder, n_categories = Holder("here", 1), [table.n_categories(j) for j in range(table.n_columns)]
        holder.hold(0, [table])
        return cls(LocalCarrier([holder], [(0, table.n_rows)], [0]), n_categories, ({}, "", ""))

    @property
    def n_rows(self) -> int:
        """Rows of all blocks."""
        return self.carrier.blocks[-1][1]

    @property
    def n_columns(self) -> int:
        """Columns."""
        return len(self.n_categories_of)

    def n_categories(self, column: int) -> int:
        """Categories of a column, as `Table.n_categories` says."""
        return self.n_categories_of[column]

    def ranges(self, weight: Floats | None, n_jobs: int) -> Ranges:
        """Lowest and highest numbers, and whether some are missing, as `Table.ranges` has them."""
        del n_jobs  # each holder knows its own
        for known, ranges in self._ranges:
            if known is weight:
                return ranges
        ends = self.carrier.blocks
        given = self.carrier.each("ranges", lambda blocks: ({b: rows_of(weight, ends[b]) for b in blocks},))
        numbers = np.array([some for of_holder in given for some in of_holder], dtype=np.float64)
        low, high = np.fmin.reduce(numbers[:, :, 0]), np.fmax.reduce(numbers[:, :, 1])
        found = low, high, np.logical_or.reduce(numbers[:, :, 2] != 0)
        self._ranges.append((weight, found))
        return found

    def row_print(self) -> int:
        """Return a number that changes with any value, and with the order of the rows, as `in_order` gives it."""
        first = {b: begin for b, (begin, _) in enumerate(self.carrier.blocks)}
        found = self.carrier.each("row_print", lambda blocks: ({b: first[b] for b in blocks},))
        return int(sum(found) % 2**64)

    def coded(self, weight: Floats | None, options: dict[str, Any]) -> Any:
        """Learn how columns are cut for boosters that learn from different rows."""
        return self._coding(weight, self, _engine.BoostingOptions(**options))

    def start_booster(
        self,
        rows: LearningRows,
        held_out: LearningRows | None,
        loss: Loss,
        start: Floats,
        earlier: FittedBoosting | None,
        options: dict[str, Any],
        coding: Any,
    ) -> DealtBooster:
        """Cut the columns, send the holders their targets, and return a booster that has done the earlier rounds."""
        read = _engine.BoostingOptions(**options)
        later: Any = None if held_out is None else held_out.columns
        if coding is None:
            coding = self._coding(rows.weight, later, read)  # which asks for ranges while the columns are there
        n_done, trees = (0, []) if earlier is None else (earlier.n_rounds, earlier.trees())
        work = WORK_OF_MESSAGE
        engine = _engine.DealtBoosting(coding, self.n_categories_of, self.n_rows, rows.weight, read, n_done, work)
        held_weight = None if held_out is None or later is not self else held_out.weights()
        target, scores = _first_scores(rows, loss, start)
        channel = self.channel(Cut(target, rows.weight, held_weight, scores, trees, options, engine.scales), coding)
        judges = None
        if held_out is not None and later is not self:
            target, scores = _first_scores(held_out, loss, start)
            weight, scales = held_out.weights(), (len(held_out.target), 1.0, 1.0)
            there = DealtColumns.of_table(later) if isinstance(later, _engine.Table) else later
            judges = there.channel(Cut(target, weight, weight, scores, trees, options, scales), coding)
        return DealtBooster(engine, channel, judges)

    def channel(self, cut: Cut, coding: Any) -> Channel:
        """Have the holders make the pieces of a booster; return the channel to them."""
        self._coded = coding
        channel = Channel(self.carrier, bytes([len(self._channels)]), cut)
        self.carrier.each("cut", lambda blocks: self._given([channel], blocks))
        self._channels.append(channel)
        self.carrier.begin_rounds(
            lambda: [question for one in self._channels for question in one.history()],
            lambda blocks: (self.encoding, self._given(self._channels, blocks)),
        )
        return channel

    def _given(self, channels: Sequence[Channel], blocks: list[int]) -> tuple[Any, ...]:
        """Return what `cut` of a holder takes."""
        ends = self.carrier.blocks
        found = [
            (channel.tag, {b: channel.cut.of_rows(*ends[b]) for b in blocks}, channel.cut.trees, channel.cut.options)
            for channel in channels
        ]
        return found, self._coded

    def _coding(self, weight: Floats | None, later: Any, options: _engine.BoostingOptions) -> Any:
        """Learn the edges of bins from the rows that they would be learned from in one place.

        `later` has rows that may lack values in columns where those of positive weight do not.
        """
        rows, weights = _engine.rows_for_bins(self.n_rows, weight)

        def wanted(blocks: list[int]) -> tuple[Any, ...]:
            ends = {b: self.carrier.blocks[b] for b in blocks}
            return ({b: rows[(rows >= i) & (rows < j)] - np.uint32(i) for b, (i, j) in ends.items()},)

        found = {b: values for of_holder in self.carrier.each("sample", wanted) for b, values in of_holder.items()}
        sample = _engine.Table(len(rows))
        for j, n_categories in enumerate(self.n_categories_of):
            column = np.concatenate([found[b][j] for b in range(len(self.carrier.blocks))])
            if n_categories:
                sample.add_category(np.where(np.isnan(column), -1, column).astype(np.int32), n_categories)
            else:
                sample.add_number(column)
        missing = self.ranges(weight, 1)[2].astype(bool)
        if later is not None:
            missing = missing | later.ranges(None, 1)[2].astype(bool)
        return _engine.learn_coding(sample, weights if len(weights) else None, missing.astype(int).tolist(), options)


def _first_scores(rows: LearningRows, loss: Loss, start: Floats) -> tuple[Floats, Floats]:
    """Targets, and scores before the first tree, of all rows alike where they are."""
    target, scores = loss.shifted(rows, start)
    return target, scores if rows.offset is not None and not loss.is_shifted else scores[:, :1].copy()
