"""Forests of Dask collections: every worker has all rows, and grows some of the trees. A single tree: one worker."""

from __future__ import annotations

import sys
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.utils import check_random_state

import spinney._engine as _engine
from spinney._cluster.dask_actors import Actors, WorkerLostError
from spinney._cluster.grower import Grower, Wanted, fit_alone, leave_table
from spinney._forest.growing.turns import MOST_MEMBERS
from spinney._learn.progress import Progress

_MOST_STARTS = 5
_ROOM = 2.5  # times the size of a table that a worker needs: partitions, all rows together, what is made of them
_TREES_A_TIME = 4  # that a thread grows between two looks at whether its worker lives


class SharedTrees:
    """The trees of one fit, whoever grows them.

    Parameters
    ----------
    client : distributed.Client
    model : forest
    parts : list of futures
        The partitions.
    """

    def __init__(self, client: Any, model: Any, parts: list[Any]) -> None:
        self._client = client
        self._model = model
        self._parts = parts
        self._known: dict[tuple[int, float], _engine.Tree] = {}  # by number and strength: lost with no worker

    def fit(self, y: Any, weight: Any, groups: Any, progress: Progress) -> Any:
        """Return the fitted model; WorkerLostError: begin again, with the workers that are left."""
        fit, growers = f"spinney-{uuid4().hex}", Actors(self._client)
        workers = dict(sorted(self._client.nthreads().items()))
        leave = partial(self._client.submit, leave_table, fit, allow_other_workers=False, pure=False)
        left = {address: leave(address, *self._parts, workers=[address]) for address in workers}
        n_rows = max(growers.gathered([future], address)[0] for address, future in left.items())
        if self._model.verbose:
            each = f"each of {len(workers)} workers has" if len(workers) > 1 else "one worker has"
            print(f"trees are shared out: {each} all {n_rows:,} rows", file=sys.stderr, flush=True)
        for address, n_threads in workers.items():
            growers.make(address, Grower, fit, address, self._model, n_threads)
        leader, *others = workers
        try:
            led = growers.send(leader, "lead", y, weight, groups)
            reading = {address: growers.send(address, "read", y, weight, groups) for address in others}
            said, wanted = growers.answer(leader, led)
            for address, future in reading.items():
                growers.answer(address, future)
            while said == "grow":
                trees = self._grown(growers, workers, wanted, progress)
                said, wanted = growers.call(leader, "go_on", trees)
            if said == "failed":
                raise wanted
            return wanted
        except BaseException:
            with suppress(WorkerLostError):
                growers.send(leader, "give_up")  # and wait for nothing
            raise
        finally:
            growers.close()

    def _grown(
        self, growers: Actors, workers: dict[str, int], wanted: Wanted, progress: Progress
    ) -> list[_engine.Tree]:
        """Return some trees; those that are not known yet are dealt out, a few at a time."""
        first, n_trees, strength = wanted
        missing = [t for t in range(first, first + n_trees) if (t, strength) not in self._known]
        while missing:
            asked: dict[str, tuple[int, Any]] = {}
            for address, n_threads in workers.items():
                most = max(1, min(_TREES_A_TIME * n_threads, -(-len(missing) // (len(workers) - len(asked)))))
                run = _first_run(missing, most)
                if run:
                    asked[address] = (run[0], growers.send(address, "grow", (run[0], len(run), strength)))
                    missing = missing[len(run) :]
            lost = None
            for address, (begin, future) in asked.items():
                try:
                    for t, tree in enumerate(growers.answer(address, future), begin):
                        self._known[t, strength] = tree
                except WorkerLostError as error:
                    lost = error
            if lost is not None:
                raise lost
            progress.report(len({t for t, _ in self._known}))
        return [self._known[t, strength] for t in range(first, first + n_trees)]


def _first_run(numbers: list[int], most: int) -> list[int]:
    """Return the first numbers that follow one another."""
    n = 0
    while n < min(most, len(numbers)) and numbers[n] == numbers[0] + n:
        n += 1
    return numbers[:n]


def fit_forest(client: Any, model: Any, parts: list[Any], beside: dict[str, Any]) -> Any:
    """Return a fitted copy of a forest.

    Parameters
    ----------
    client : distributed.Client
    model : forest
    parts : list of delayed
        The partitions, in order.
    beside : dict
        The other parameters of `fit`, here.
    """
    futures = client.compute(parts)
    check_room(client, futures)
    shared = SharedTrees(client, with_fixed_draws(model), futures)
    n_wanted = MOST_MEMBERS if model.n_estimators == "auto" else int(model.n_estimators)
    with Progress("trees", n_wanted, model.n_estimators == "auto", 0, model.verbose) as progress:
        for attempt in range(_MOST_STARTS):
            try:
                return shared.fit(beside["y"], beside["sample_weight"], beside["groups"], progress)
            except WorkerLostError as lost:
                if attempt + 1 == _MOST_STARTS:
                    raise RuntimeError(
                        f"The cluster has lost workers {_MOST_STARTS} times during the fit, the last of them {lost}. "
                        "They may lack memory: use larger workers."
                    ) from lost
                client.wait_for_workers(1, timeout=60)
                shared._parts = client.compute(parts)
    raise AssertionError


def fit_on_one(client: Any, model: Any, parts: list[Any], beside: dict[str, Any]) -> Any:
    """Return a copy of a model, fitted by the one of the workers that has most threads."""
    futures = client.compute(parts)
    check_room(client, futures)
    address, n_threads = max(client.nthreads().items(), key=lambda item: (item[1], item[0]))
    model = with_fixed_draws(model).set_params(n_jobs=n_threads)
    done = client.submit(
        fit_alone, model, beside, *futures, workers=[address], allow_other_workers=True, pure=False, retries=2
    )
    return Actors(client).gathered([done])[0]


def with_fixed_draws(model: Any) -> Any:
    """Return a copy of a model that draws the same in every process."""
    copied, state = copy(model), model.random_state
    if state is None:
        copied.random_state = int(check_random_state(None).randint(2**31 - 1))
    elif hasattr(state, "randint"):
        copied.random_state = np.random.RandomState()
        copied.random_state.set_state(state.get_state())
        state.randint(np.iinfo(np.int32).max)  # as a fit in this process would
    return copied


def check_room(client: Any, parts: list[Any]) -> None:
    """Refuse a table that does not fit into a worker."""
    from dask.sizeof import sizeof

    if not client.nthreads():
        raise RuntimeError("The cluster has no workers. Start some, or wait for them with client.wait_for_workers.")
    size = sum(Actors(client).gathered(client.map(sizeof, parts, pure=False)))
    limits = [worker.get("memory_limit") or 0 for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    least = min((limit for limit in limits if limit > 0), default=0)
    if 0 < least < _ROOM * size:
        raise ValueError(
            f"The table takes {size / 1e9:.2g} GB, and a worker that grows trees needs all of its rows, with what is "
            f"made of them {_ROOM * size / 1e9:.2g} GB; the smallest has {least / 1e9:.2g} GB. Use larger workers; or "
            "pass spinney.scan(X), whose rows are read at the client, some at a time (set max_bins); or use gradient "
            "boosting, which shares out the rows."
        )
