"""Boosting on the workers of a Dask cluster: rows are partitioned where that is possible, else one worker has all."""

from __future__ import annotations

from os import PathLike
from typing import Any, Protocol, Self, TypeVar

from spinney._boosting.distributed.block_actor import BlockActor
from spinney._boosting.distributed.eligibility import why_all_rows
from spinney._boosting.distributed.partitioned_table import PartitionedTable
from spinney._boosting.options.recipe_table import VERY_LARGE_TABLE, makes_folds
from spinney._boosting.settings import BoostingEstimator, BoostingSettings
from spinney._cluster import dask
from spinney._cluster.actor import Model
from spinney._cluster.collections import (
    begun_columns,
    column_of_all_rows,
    columns_of,
    joined_columns,
    partitions_of,
    without_named_columns,
)
from spinney._cluster.dask_blocks import DaskBlocks
from spinney._cluster.single_worker import Arguments, fit_on_one_worker
from spinney._cluster.waits import WorkerLostError, thread_left_to_others, wait_for_a_worker
from spinney._cluster.whole_table import MOST_STARTS, WholeTable
from spinney._data.scan import is_collection
from spinney._estimator.fit_inputs import FitInputs, ValidationSet, validation_sets

BESIDE = ("y", "sample_weight", "offset", "groups", "time")
VALIDATION = ("y_val", "sample_weight_val", "offset_val")  # beside X_val


class BoostingModel(BoostingEstimator, Model, Protocol):
    """A boosted estimator that learns from a `PartitionedTable`."""

    def _fit(self, inputs: FitInputs) -> Self: ...


Booster = TypeVar("Booster", bound=BoostingModel)


@thread_left_to_others()
def fit_boosting(
    client: dask.Client, model: Booster, X: object, arguments: Arguments, checkpoint: str | PathLike[str] | None
) -> Booster:
    """Boost on the workers that a client knows.

    Parameters
    ----------
    client : distributed.Client
    model : estimator
    X : dask DataFrame or Array
    arguments : dict
        The other parameters of `fit`, by name.
    checkpoint : str, path or None
        A file on the client that keeps the rounds.
    """
    model._check_parameters()
    settings = BoostingSettings.of(model)
    why, held = why_all_rows(settings, arguments), list[WholeTable]()
    has_held_out = arguments.get("X_val") is not None or arguments.get("time") is not None
    if why is None and makes_folds(settings, has_held_out):
        held = [WholeTable(client, partitions_of(without_named_columns(X, arguments)[0]))]
        if held[0].n_rows < VERY_LARGE_TABLE and held[0].fits:
            why = f"n_estimators='auto' looks at all of fewer than {VERY_LARGE_TABLE:,} rows at once"
    if why is None:
        return _fit_partitioned(client, model, X, arguments, checkpoint, held)
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint keeps rounds whose rows are partitioned, and here one worker has all of them: {why}. Leave "
            "checkpoint out; or set what partitions the rows, such as n_estimators=300."
        )
    return fit_on_one_worker(client, model, X, arguments, why=f": {why}", rows=held[0] if held else None)


def _fit_partitioned(
    client: dask.Client,
    model: Booster,
    X: object,
    arguments: Arguments,
    checkpoint: str | PathLike[str] | None,
    held: list[WholeTable],
) -> Booster:
    """Boost where the rows lie; `held` keeps the partitions until the blocks are made of them."""
    X, columns = without_named_columns(X, arguments)
    for attempt in range(MOST_STARTS):
        tables: list[DaskBlocks] = []
        try:
            coming = {name: begun_columns(client, columns.get(name)) for name in BESIDE}
            table = _partitioned(client, X, tables)
            held.clear()
            rows = {name: column_of_all_rows(client, coming.pop(name), name, table.n_rows) for name in BESIDE}
            validation = _validation_sets(client, columns, tables)
            return model._fit(FitInputs(table, **rows, validation=validation, checkpoint=checkpoint))
        except WorkerLostError as lost:  # before the first round
            if attempt + 1 == MOST_STARTS:
                raise RuntimeError(
                    f"The cluster loses workers before the fit begins, the last of them {lost}. They may lack memory: "
                    "make smaller partitions, or use larger workers."
                ) from lost
            wait_for_a_worker(client)
        finally:
            for blocks in tables:
                blocks.close()
    raise AssertionError


def _partitioned(client: dask.Client, X: object, tables: list[DaskBlocks]) -> PartitionedTable:
    """Return a collection in blocks of rows, which are added to those that are to be closed."""
    n_columns, names = columns_of(X)
    tables.append(DaskBlocks(client, partitions_of(X), BlockActor))
    return PartitionedTable(tables[-1], n_columns, names)


def _validation_sets(
    client: dask.Client, columns: dict[str, Any], tables: list[DaskBlocks]
) -> tuple[ValidationSet, ...]:
    """Return the validation sets of the caller; a collection stays where it is."""
    X_val, given = columns.get("X_val"), {name: columns.get(name) for name in VALIDATION}
    if not is_collection(X_val):
        return validation_sets(X_val, *(joined_columns(client, begun_columns(client, v)) for v in given.values()))
    X_val, found = without_named_columns(X_val, given, "X_val")
    coming = {name: begun_columns(client, found[name]) for name in VALIDATION}
    table = _partitioned(client, X_val, tables)
    here = (column_of_all_rows(client, value, name, table.n_rows, "X_val") for name, value in coming.items())
    return validation_sets(table, *here)
