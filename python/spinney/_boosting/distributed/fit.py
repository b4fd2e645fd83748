"""Boosting on a Dask cluster: with partitioned rows if possible, else on one worker that holds all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.distributed.booster import (
    BlockActor,
    BoosterChannel,
    Coding,
    DistributedBooster,
    PartitionInputs,
    slice_rows,
)
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._boosting.options.compatibility import why_not_partitioned
from spinney._boosting.options.recipe import VERY_LARGE_TABLE, makes_folds
from spinney._boosting.settings import BoostingEstimator, BoostingSettings
from spinney._cluster import dask
from spinney._cluster.actor import Model
from spinney._cluster.blocks import Args, DaskBlocks, LocalBlocks, RowBlocks
from spinney._cluster.collections import (
    columns_of,
    compute_columns,
    gather_columns,
    partitions_of,
    without_named_columns,
)
from spinney._cluster.dask import WorkerLostError, secede_thread, wait_for_worker
from spinney._cluster.single_worker import MAX_ATTEMPTS, WholeTable, fit_on_one_worker
from spinney._data import Feature, Schema
from spinney._data.cells import RESOLUTIONS
from spinney._data.feature import RemoteTable, table_of
from spinney._data.scan import is_collection
from spinney._data.types import Floats
from spinney._estimator.fit_inputs import FitInputs, ValidationSet
from spinney._model.boosting import FittedBoosting


class BoostingModel(BoostingEstimator, Model, Protocol):
    """A boosted estimator that learns from a `PartitionedTable`."""

    def _fit(self, inputs: FitInputs) -> Self: ...


Booster = TypeVar("Booster", bound=BoostingModel)


@secede_thread()
def fit_boosting(client: dask.Client, model: Booster, inputs: FitInputs) -> Booster:
    """Boost on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    model : estimator
    inputs : FitInputs
        Arguments of `fit`; X is a Dask DataFrame or Array.
    """
    model._check_parameters()
    settings = BoostingSettings.of(model)
    reason, computed = why_not_partitioned(settings, inputs), list[WholeTable]()
    if reason is None and makes_folds(settings, inputs.has_validation_rows):
        computed = [WholeTable(client, partitions_of(without_named_columns(inputs).X))]
        if computed[0].n_rows < VERY_LARGE_TABLE and computed[0].fits:
            reason = f"n_estimators='auto' reads all rows at once below {VERY_LARGE_TABLE:,} rows"
    if reason is None:
        return _fit_partitioned(client, model, inputs, computed)
    if inputs.checkpoint is not None:
        raise ValueError(
            f"checkpoint is for fits whose rows are partitioned, and here one worker needs all of them: {reason}. "
            "Leave checkpoint out; or choose settings that partition the rows, such as n_estimators=300."
        )
    return fit_on_one_worker(client, model, inputs, reason=f": {reason}", table=computed[0] if computed else None)


def _fit_partitioned(client: dask.Client, model: Booster, inputs: FitInputs, computed: list[WholeTable]) -> Booster:
    """Boost where the rows are; `computed` holds the partitions until blocks are made of them."""
    inputs = without_named_columns(inputs)
    for attempt in range(MAX_ATTEMPTS):
        blocks: list[DaskBlocks] = []
        try:
            columns = compute_columns(client, inputs)
            table = _partitioned_table(client, inputs.X, blocks)
            computed.clear()
            here = gather_columns(client, columns, table.n_rows)
            validation = tuple(_validation_set(client, one, blocks) for one in inputs.validation)
            return model._fit(replace(here, X=table, validation=validation))
        except WorkerLostError as lost:  # before the first round
            if attempt + 1 == MAX_ATTEMPTS:
                raise RuntimeError(
                    f"The cluster loses workers before the fit begins, the last of them {lost}. They may lack memory: "
                    "make smaller partitions, or use larger workers."
                ) from lost
            wait_for_worker(client)
        finally:
            for one in blocks:
                one.close()
    raise AssertionError


def _partitioned_table(client: dask.Client, X: object, blocks: list[DaskBlocks]) -> PartitionedTable:
    """Return a collection in blocks of rows, and add these to the blocks that the fit closes."""
    n_columns, names = columns_of(X)
    blocks.append(DaskBlocks(client, partitions_of(X), BlockActor))
    return PartitionedTable(blocks[-1], n_columns, names)


def _validation_set(client: dask.Client, inputs: ValidationSet, blocks: list[DaskBlocks]) -> ValidationSet:
    """Return a validation set with its columns as arrays; X stays on the workers if it is a collection."""
    if not is_collection(inputs.X):
        return gather_columns(client, compute_columns(client, inputs))
    inputs = without_named_columns(inputs, "_val")
    columns = compute_columns(client, inputs)
    table = _partitioned_table(client, inputs.X, blocks)
    return replace(gather_columns(client, columns, table.n_rows, "_val"), X=table)


Ranges = tuple[Floats, Floats, NDArray[np.bool_]]
WORK_OF_MESSAGE = 4e7  # rows times columns of a block, about 15 ms: below, two requests take longer than one


class PartitionedTable(RemoteTable):
    """A table whose rows are in blocks on workers.

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
        """Return the features of all columns."""
        found = self._blocks.call_all("features", lambda _: (list(names), forced))
        known = [features for of_block in found for features in of_block]
        return [_merged([features[j] for features in known]) for j in range(len(names))]

    def encoded(self, schema: Schema, unseen: str, estimator: str) -> PartitionedColumns:
        """Encode all rows on their workers."""
        encoding = schema.to_dict(), unseen, estimator
        self._blocks.call_all("encode", lambda _: encoding)
        return PartitionedColumns(self._blocks, schema.n_categories, encoding)


def _merged(known: Sequence[Feature]) -> Feature:
    """Return the feature of a column, merged from those of all partitions."""
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
                f"Column {first.name!r} has other ordered categories in some partitions; declare the same categories "
                "in all partitions."
            )
    if first.kind == "category":
        values: set[Any] = {value for feature in full for value in feature.categories}
        return replace(first, categories=tuple(sorted(values)))
    if first.clock:
        return replace(first, resolution=max((f.resolution for f in full), key=list(RESOLUTIONS).index))
    return first


@dataclass
class PartitionedColumns:
    """The encoded rows of all blocks, in place of the engine's table."""

    blocks: RowBlocks
    n_categories_of: list[int]
    encoding: Args  # of `BlockActor.encode`
    _ranges: list[tuple[Floats | None, Ranges]] = field(default_factory=list)  # by weights
    _channels: list[BoosterChannel] = field(default_factory=list)
    _coding: Coding = ()  # bins of all columns, once learned

    @classmethod
    def of_table(cls, table: _engine.Table) -> PartitionedColumns:
        """Return a local table as a single block."""
        n_categories = [table.n_categories(j) for j in range(table.n_columns)]
        return cls(LocalBlocks([BlockActor.of_table(table)], [(0, table.n_rows)]), n_categories, ())

    @property
    def n_rows(self) -> int:
        """Number of rows of all blocks."""
        return self.blocks.ranges[-1][1]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.n_categories_of)

    def n_categories(self, column: int) -> int:
        """Return the number of categories of a column, as `Table.n_categories` does."""
        return self.n_categories_of[column]

    def ranges(self, weight: Floats | None, n_jobs: int) -> Ranges:
        """Return minima and maxima, and whether values are missing, as `Table.ranges` does."""
        del n_jobs  # each block uses the threads of its worker
        for known, ranges in self._ranges:
            if known is weight:
                return ranges
        given = self.blocks.call_all("ranges", lambda b: (slice_rows(weight, *self.blocks.ranges[b]),))
        numbers = np.array([some for of_block in given for some in of_block], dtype=np.float64)
        low, high = np.fmin.reduce(numbers[:, :, 0]), np.fmax.reduce(numbers[:, :, 1])
        found = low, high, np.logical_or.reduce(numbers[:, :, 2] != 0)
        self._ranges.append((weight, found))
        return found

    def row_fingerprint(self) -> int:
        """Return a fingerprint of all values and of the order of the rows, as `in_order` does."""
        return int(sum(self.blocks.call_all("row_fingerprint", lambda b: (self.blocks.ranges[b][0],))) % 2**64)

    def learn_bins(self, weight: Floats | None, options: dict[str, Any]) -> Coding:
        """Learn the bins of the columns, for boosters that learn from different rows."""
        return self._learn_coding(weight, self, _engine.BoostingOptions(**options))

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
        """Bin the columns, send targets and scores to the blocks, and return a booster that continues `earlier`."""
        read = _engine.BoostingOptions(**options)
        validation: PartitionedColumns | _engine.Table | None = None if held_out is None else held_out.columns
        if coding is None:
            coding = self._learn_coding(rows.weight, validation, read)  # before the blocks release their columns
        n_done, trees = (0, []) if earlier is None else (earlier.n_rounds, earlier.trees())
        engine = _engine.PartitionedBoosting(
            coding, self.n_categories_of, self.n_rows, rows.weight, read, n_done, WORK_OF_MESSAGE
        )
        held_weight = None if held_out is None or validation is not self else held_out.weights()
        target, scores = _initial_scores(rows, loss, start)
        inputs = PartitionInputs(target, rows.weight, held_weight, scores, trees, options, engine.scales)
        channel = self.channel(inputs, coding)
        if held_out is None or validation is self:
            return DistributedBooster(engine, channel, None)
        columns = PartitionedColumns.of_table(validation) if isinstance(validation, _engine.Table) else validation
        assert columns is not None
        target, scores = _initial_scores(held_out, loss, start)
        weight, scales = held_out.weights(), (len(held_out.target), 1.0, 1.0)
        inputs = PartitionInputs(target, weight, weight, scores, trees, options, scales)
        return DistributedBooster(engine, channel, columns.channel(inputs, coding))

    def channel(self, inputs: PartitionInputs, coding: Coding) -> BoosterChannel:
        """Start a booster on all blocks; return the channel to them."""
        self._coding = coding
        if not self._channels:
            first = [begin for begin, _ in self.blocks.ranges]
            digests = self.blocks.call_all("row_fingerprint", lambda b: (first[b],))
            self._known_rows = list(zip(first, digests, strict=True))
        channel = BoosterChannel(self.blocks, bytes([len(self._channels)]), inputs)
        self.blocks.call_all("start_boosters", lambda b: self._boosters([channel], b))
        self._channels.append(channel)
        self.blocks.set_recovery(
            lambda: [request for one in self._channels for request in one.history()],
            lambda b: {
                "encode": self.encoding,
                "check_rows": self._known_rows[b],
                "start_boosters": self._boosters(self._channels, b),
            },
        )
        return channel

    def _boosters(self, channels: Sequence[BoosterChannel], block: int) -> Args:
        """Return the arguments of `BlockActor.start_boosters`."""
        return {one.tag: one.inputs.sliced(*self.blocks.ranges[block]) for one in channels}, self._coding

    def _learn_coding(
        self,
        weight: Floats | None,
        validation: PartitionedColumns | _engine.Table | None,
        options: _engine.BoostingOptions,
    ) -> Coding:
        """Learn the bin edges from the same sample of rows as a fit in one process.

        Validation rows may have missing values in columns where training rows have none.
        """
        rows, weights = _engine.rows_for_bins(self.n_rows, weight)

        def rows_in(block: int) -> Args:
            begin, end = self.blocks.ranges[block]
            return (rows[(rows >= begin) & (rows < end)] - np.uint32(begin),)

        found = self.blocks.call_all("sample", rows_in)
        sample = table_of(map(np.concatenate, zip(*found, strict=True)), len(rows), self.n_categories_of)
        missing = self.ranges(weight, 1)[2].astype(bool)
        if validation is not None:
            missing = missing | validation.ranges(None, 1)[2].astype(bool)
        return _engine.learn_coding(sample, weights if len(weights) else None, missing.astype(int).tolist(), options)


def _initial_scores(rows: LearningRows, loss: Loss, start: Floats) -> tuple[Floats, Floats]:
    """Return targets and initial scores; one column of scores if they are the same for all rows."""
    target, scores = loss.centred(rows, start)
    return target, scores if rows.offset is not None and not loss.is_shift_invariant else scores[:, :1].copy()
