"""Forests of Dask collections: every worker has all rows, and grows some of the trees.

Each worker reads the table as a fit in one place does, up to the first tree; trees are known by their numbers. One of
them leads: its fit goes on in a thread of its own, which says what it wants grown and is given the trees.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from copy import copy
from dataclasses import replace
from queue import Empty, Queue
from typing import Any

from sklearn.utils import check_random_state

import spinney._engine as _engine
from spinney._cluster.actor import Answering, Told, held_here
from spinney._cluster.dask_actors import Actors
from spinney._cluster.dask_session import begun_again, conversation, talk
from spinney._cluster.dask_single_worker import fit_copy, with_own_draws
from spinney._cluster.dask_tables import AllRows
from spinney._cluster.dask_waits import WorkerLostError, beside_others, threads_of
from spinney._cluster.worker_tables import take
from spinney._estimator.progress import Progress
from spinney._forest.fitting import FitInputs
from spinney._forest.growing import MOST_MEMBERS, ForestRequest
from spinney._model.forest import FittedForest

Wanted = tuple[int, int, float]  # number of the first tree, how many, the strength of their shrinkage
_TREES_A_TIME = 4  # at most, that a thread grows between two looks at whether its worker lives
_SOON = 30.0  # seconds that so many may take: slower ones are asked for one by one, as an answer has a limit of time


class _ReadyError(Exception):
    """The rows are read: the first tree is asked for."""


class Grower(Answering):
    """All rows of a table, and the forest that is to be grown of them.

    Parameters
    ----------
    fit, address : str
        What the table was left by.
    model : forest
        Unfitted, or to be gone on with.
    n_jobs : int
        Threads.
    """

    def __init__(self, fit: str, address: str, model: Any, n_jobs: int) -> None:
        self._left_by = fit, address
        self._model = copy(model).set_params(n_jobs=n_jobs, verbose=0)
        self._request: ForestRequest | None = None
        self._told = Told()
        self._given: Queue[list[_engine.Tree]] = Queue()
        self._is_held = held_here()

    def read(self, y: Any, weight: Any, groups: Any) -> None:
        """Read all rows, up to the first tree."""

        def stop(request: ForestRequest, first: int, n_trees: int, /) -> FittedForest:
            self._request = request
            raise _ReadyError

        try:
            self._model._fit(FitInputs(take(*self._left_by), y, weight, groups), stop)
        except _ReadyError:
            return

    def lead(self, y: Any, weight: Any, groups: Any) -> tuple[str, Any]:
        """Begin the fit; return what it wants first, as `go_on` does."""
        table, model, told, given = take(*self._left_by), self._model, self._told, self._given

        def ask(request: ForestRequest, first: int, n_trees: int, /) -> FittedForest:
            self._request = request
            told.say("grow", (first, n_trees, request.shrinkage))
            trees: list[_engine.Tree] | None = None
            while trees is None and self._is_held():
                with suppress(Empty):
                    trees = given.get(timeout=1.0)
            if not trees:
                raise _ReadyError
            return request.fitted(_engine.forest_from_trees(trees, request.n_categories))

        told.start(lambda: model._fit(FitInputs(table, y, weight, groups), ask))
        return self.wait()

    def wait(self) -> tuple[str, Any]:
        """Return which trees are wanted next, or the fitted model; "busy": ask again."""
        return self._told.heard()

    def go_on(self, trees: list[_engine.Tree]) -> tuple[str, Any]:
        """Take the trees that were wanted; return as `wait` does."""
        self._given.put(trees)
        return self.wait()

    def give_up(self) -> None:
        """End the fit: nobody waits for it any more."""
        self._given.put([])

    def grow(self, wanted: Wanted) -> list[_engine.Tree]:
        """Grow some trees."""
        first, n_trees, shrinkage = wanted
        assert self._request is not None
        forest = replace(self._request, shrinkage=shrinkage).grow(first, n_trees)
        return [forest.tree(t).engine for t in range(n_trees)]


class SharedTrees:
    """The trees of one fit, whoever grows them.

    Parameters
    ----------
    client : distributed.Client
    model : forest
    rows : AllRows
    """

    def __init__(self, client: Any, model: Any, rows: AllRows) -> None:
        self._client = client
        self._model = model
        self._rows = rows
        self._a_time = 1
        self._known: dict[tuple[int, float], _engine.Tree] = {}  # by number and strength: lost with no worker

    def fit(self, y: Any, weight: Any, groups: Any, progress: Progress) -> Any:
        """Return the fitted model; WorkerLostError: begin again, with the workers that are left."""
        workers = dict(sorted(threads_of(self._client).items()))
        leader, *others = workers
        with talk(self._client) as (fit, growers):
            self._rows.bring(fit, list(workers), self._model)
            if self._model.verbose:
                each = f"each of {len(workers)} workers has" if len(workers) > 1 else "one worker has"
                said = f"trees are shared out: {each} all {self._rows.n_rows:,} rows{self._rows.place}"
                print(said, file=sys.stderr, flush=True)
            for address, n_threads in workers.items():
                growers.make(address, Grower, fit, address, self._model, n_threads)
            led = growers.send(leader, "lead", y, weight, groups)
            reading = {address: growers.send(address, "read", y, weight, groups) for address in others}
            first = growers.answer(leader, led)
            for address, future in reading.items():
                growers.answer(address, future)
            return conversation(growers, leader, first, lambda want: self._grown(growers, workers, want, progress))

    def _grown(
        self, growers: Actors, workers: dict[str, int], wanted: Wanted, progress: Progress
    ) -> list[_engine.Tree]:
        """Return some trees; those that are not known yet are dealt out, a few at a time."""
        first, n_trees, strength = wanted
        missing = [t for t in range(first, first + n_trees) if (t, strength) not in self._known]
        while missing:
            asked: dict[str, tuple[int, Any]] = {}
            began = time.monotonic()
            for address, n_threads in workers.items():
                most = max(1, min(self._a_time * n_threads, -(-len(missing) // (len(workers) - len(asked)))))
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
            is_soon = (time.monotonic() - began) * _TREES_A_TIME < _SOON * self._a_time
            self._a_time = _TREES_A_TIME if is_soon else 1
            progress.report(len({t for t, _ in self._known}))
        return [self._known[t, strength] for t in range(first, first + n_trees)]


def _first_run(numbers: list[int], most: int) -> list[int]:
    """Return the first numbers that follow one another."""
    n = 0
    while n < min(most, len(numbers)) and numbers[n] == numbers[0] + n:
        n += 1
    return numbers[:n]


@beside_others()
def fit_forest(client: Any, model: Any, X: Any, beside: dict[str, Any]) -> Any:
    """Grow the trees of a forest on all workers, each of which has all rows."""
    return fit_copy(client, model, X, beside, _fitted_copy, None)


def _fitted_copy(client: Any, model: Any, rows: AllRows, beside: dict[str, Any]) -> Any:
    """Return a fitted copy of a forest.

    Parameters
    ----------
    client : distributed.Client
    model : forest
    rows : AllRows
    beside : dict
        The other parameters of `fit`, here.
    """
    if not rows.fits:
        rows.check_files(model)
    shared = SharedTrees(client, with_fixed_draws(model), rows)
    n_wanted = MOST_MEMBERS if model.n_estimators == "auto" else int(model.n_estimators)
    with Progress("trees", n_wanted, model.n_estimators == "auto", 0, model.verbose) as progress:
        return begun_again(
            client, rows, lambda: shared.fit(beside["y"], beside["sample_weight"], beside["groups"], progress)
        )


def with_fixed_draws(model: Any) -> Any:
    """Return a copy of a model that draws the same in every process."""
    copied = with_own_draws(model)
    if copied.random_state is None:
        copied.random_state = int(check_random_state(None).randint(2**31 - 1))
    return copied
