"""Boosting on the workers of a Dask cluster: rows are partitioned where that is possible, else one worker has all."""

from __future__ import annotations

from typing import Any

from spinney._boosting.distributed.eligibility import kept_whole
from spinney._boosting.distributed.partition_actor import Holder
from spinney._boosting.distributed.partitioned_table import Dealt
from spinney._boosting.options.recipe import VERY_MANY_ROWS, makes_folds
from spinney._boosting.settings import BoostingSettings
from spinney._cluster.collections import (
    begun_columns,
    column_of_all_rows,
    joined_columns,
    partitions_of,
    without_named_columns,
)
from spinney._cluster.dask_carrier import DaskCarrier
from spinney._cluster.dask_session import MOST_STARTS
from spinney._cluster.dask_single_worker import fit_alone
from spinney._cluster.dask_tables import AllRows
from spinney._cluster.dask_waits import WorkerLostError, beside_others, wait_for_a_worker
from spinney._data.scan import is_collection
from spinney._estimator.fit_inputs import FitInputs, ValidationSet, validation_sets

LATER = ("X_val", "y_val", "sample_weight_val", "offset_val")


@beside_others()
def fit_boosting(client: Any, model: Any, X: Any, beside: dict[str, Any], checkpoint: Any) -> Any:
    """Boost on the workers that a client knows.

    Parameters
    ----------
    client : distributed.Client
    model : estimator
    X : dask DataFrame or Array
    beside : dict
        The other parameters of `fit`, by name.
    checkpoint : str, path or None
        A file on the client that keeps the rounds.
    """
    model._check_parameters()
    settings = BoostingSettings.of(model)
    why, held = kept_whole(settings, beside), list[AllRows]()
    if why is None and makes_folds(settings, beside.get("X_val") is not None or beside.get("time") is not None):
        held = [AllRows(client, partitions_of(without_named_columns(X, beside)[0])[0])]
        if held[0].n_rows < VERY_MANY_ROWS and held[0].fits:
            why = f"n_estimators='auto' looks at all of fewer than {VERY_MANY_ROWS:,} rows at once"
    if why is None:
        return _share_rows(client, model, X, beside, checkpoint, held)
    if checkpoint is not None:
        raise ValueError(
            f"checkpoint keeps rounds whose rows are shared out, and here one worker has all of them: {why}. Leave "
            "checkpoint out; or set what shares out the rows, such as n_estimators=300."
        )
    return fit_alone(client, model, X, beside, f": {why}", *held)


def _share_rows(client: Any, model: Any, X: Any, beside: dict[str, Any], checkpoint: Any, held: list[AllRows]) -> Any:
    """Boost where the rows lie; `held` keeps the partitions until others have them."""
    X, taken = without_named_columns(X, beside)
    parts, names, n_columns = partitions_of(X)
    for attempt in range(MOST_STARTS):
        carriers: list[DaskCarrier] = []
        try:
            coming = {name: begun_columns(client, value) for name, value in taken.items() if name not in LATER}
            carriers.append(DaskCarrier(client, parts, Holder))
            del held[:]  # the holders have them now
            given = {
                name: column_of_all_rows(client, value, name, carriers[0].n_rows) for name, value in coming.items()
            }
            coming.clear()
            later = _later(client, taken, carriers)
            table = Dealt(carriers[0], n_columns, names)
            rows = {name: given.get(name) for name in ("y", "sample_weight", "offset", "groups", "time")}
            return model._fit(FitInputs(table, **rows, validation=later, checkpoint=checkpoint))
        except WorkerLostError as lost:  # before the first round
            if attempt + 1 == MOST_STARTS:
                raise RuntimeError(
                    f"The cluster loses workers before the fit begins, the last of them {lost}. They may lack memory: "
                    "make smaller partitions, or use larger workers."
                ) from lost
            wait_for_a_worker(client)
        finally:
            for carrier in carriers:
                carrier.close()
    raise AssertionError


def _later(client: Any, taken: dict[str, Any], carriers: list[DaskCarrier]) -> tuple[ValidationSet, ...]:
    """Return the rows that the caller holds out; those of a collection stay where they are."""
    X_val, *others = (taken.get(name) for name in LATER)
    if not is_collection(X_val):
        return validation_sets(X_val, *(joined_columns(begun_columns(client, value), client) for value in others))
    X_val, found = without_named_columns(X_val, {name: taken.get(name) for name in LATER[1:]}, "X_val")
    parts, names, n_columns = partitions_of(X_val)
    coming = {name: begun_columns(client, found[name]) for name in LATER[1:]}
    carriers.append(DaskCarrier(client, parts, Holder))
    beside = (column_of_all_rows(client, value, name, carriers[-1].n_rows, "X_val") for name, value in coming.items())
    return validation_sets(Dealt(carriers[-1], n_columns, names), *beside)
