"""Forests of Dask collections: every worker has all rows, and grows some of the trees.

Each worker reads the table as a local fit does, up to the first tree; trees are identified by their numbers. One worker
is the leader: its fit continues in a separate thread, which requests trees from the client.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import Future
from contextlib import ExitStack, closing
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from sklearn.utils import check_random_state

import spinney._engine as _engine
from spinney._cluster import dask
from spinney._cluster.actor import FittingActor, Model, RemoteActor, wait_until_ready
from spinney._cluster.dask import WorkerLostError, secede_thread, threads_by_worker
from spinney._cluster.single_worker import WholeTable, fit_copy, run_remote_fit, with_copied_random_state
from spinney._cluster.transport import Reply
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.parallel import Progress
from spinney._forest.growing import MOST_MEMBERS, ForestRequest
from spinney._model.forest import FittedForest

_TREES_A_TIME = 4  # the most trees per thread in one request
_SOON = 30.0  # seconds that such a request may take: slower trees are requested one by one, because replies time out


class ForestModel(Model, Protocol):
    """A forest whose trees may be grown in other processes."""

    n_estimators: int | str
    random_state: Any
    verbose: int | None


Forest = TypeVar("Forest", bound=ForestModel)


@dataclass(frozen=True)
class TreeRange:
    """Trees to grow: the number of the first, how many, and the strength of their shrinkage."""

    first: int
    n_trees: int
    shrinkage: float


class _ReadyError(Exception):
    """The rows are read, and the first tree is requested."""


class Grower(FittingActor):
    """A worker with all rows, which grows trees of a forest."""

    _request: ForestRequest

    def read(self, inputs: FitInputs) -> None:
        """Read all rows, up to the first tree."""

        def stop(request: ForestRequest, first: int, n_trees: int, /) -> FittedForest:
            self._request = request
            raise _ReadyError

        try:
            self._model._fit(replace(inputs, X=self._table), stop)
        except _ReadyError:
            del self._table

    def lead(self, inputs: FitInputs) -> tuple[str, Any]:
        """Begin the fit; return its first event."""
        inputs, model = replace(inputs, X=self._table), self._model
        del self._table

        def grow_remotely(request: ForestRequest, first: int, n_trees: int, /) -> FittedForest:
            self._request = request
            trees = self.ask_client("grow", TreeRange(first, n_trees, request.shrinkage))
            return request.fitted(_engine.forest_from_trees(trees, request.n_categories))

        self.start(lambda: model._fit(inputs, grow_remotely))
        return self.next_event()

    def grow(self, wanted: TreeRange) -> list[_engine.Tree]:
        """Return the wanted trees."""
        forest = replace(self._request, shrinkage=wanted.shrinkage).grow(wanted.first, wanted.n_trees)
        return [forest.tree(t).engine for t in range(wanted.n_trees)]


class DistributedTrees:
    """The trees of one fit, grown by all workers.

    Parameters
    ----------
    client : distributed.Client
    model : forest
    rows : WholeTable
    progress : Progress
    """

    def __init__(self, client: dask.Client, model: ForestModel, rows: WholeTable, progress: Progress) -> None:
        self._client = client
        self._model = model
        self._rows = rows
        self._progress = progress
        self._a_time = 1
        self._known: dict[tuple[int, float], _engine.Tree] = {}  # by number and strength, on the client

    def fit(self, inputs: FitInputs) -> ForestModel:
        """Return the fitted model; on WorkerLostError the caller starts again with the remaining workers."""
        threads = dict(sorted(threads_by_worker(self._client).items()))
        if self._model.verbose:
            each = f"each of {len(threads)} workers has" if len(threads) > 1 else "one worker has"
            message = f"trees are distributed: {each} all {self._rows.n_rows:,} rows{self._rows.place}"
            print(message, file=sys.stderr, flush=True)
        quiet = copy(self._model).set_params(verbose=0)
        with ExitStack() as stack:
            growers = [
                stack.enter_context(closing(self._rows.actor(address, Grower, quiet, n)))
                for address, n in threads.items()
            ]
            wait_until_ready(self._client, growers)
            leader, *others = growers
            led = leader.send("lead", inputs)
            reading = [(other, other.send("read", inputs)) for other in others]
            first = leader.result(led)
            for other, future in reading:
                other.result(future)
            n_threads = dict(zip(growers, threads.values(), strict=True))
            fitted: ForestModel = run_remote_fit(leader, first, partial(self._grown, n_threads))
            return fitted

    def _grown(self, n_threads: dict[RemoteActor, int], wanted: TreeRange) -> list[_engine.Tree]:
        """Return the wanted trees; all workers grow the missing ones, a few at a time."""
        numbers, strength = range(wanted.first, wanted.first + wanted.n_trees), wanted.shrinkage
        missing = [t for t in numbers if (t, strength) not in self._known]
        while missing:
            began = time.monotonic()
            sent: dict[RemoteActor, tuple[int, Future[Reply]]] = {}
            for grower, n in n_threads.items():
                most = max(1, min(self._a_time * n, -(-len(missing) // (len(n_threads) - len(sent)))))
                if run := _first_run(missing, most):
                    sent[grower] = run[0], grower.send("grow", TreeRange(run[0], len(run), strength))
                    missing = missing[len(run) :]
            self._receive(sent, strength)
            is_soon = (time.monotonic() - began) * _TREES_A_TIME < _SOON * self._a_time
            self._a_time = _TREES_A_TIME if is_soon else 1
            self._progress.report(len({t for t, _ in self._known}))
        return [self._known[t, strength] for t in numbers]

    def _receive(self, sent: dict[RemoteActor, tuple[int, Future[Reply]]], strength: float) -> None:
        """Store the trees that workers have grown; if a worker is lost, raise after all others have replied."""
        lost = None
        for grower, (first, future) in sent.items():
            try:
                for t, tree in enumerate(grower.result(future), first):
                    self._known[t, strength] = tree
            except WorkerLostError as error:
                lost = error
        if lost is not None:
            raise lost


def _first_run(numbers: list[int], most: int) -> list[int]:
    """Return the first consecutive numbers, at most `most`."""
    n = 0
    while n < min(most, len(numbers)) and numbers[n] == numbers[0] + n:
        n += 1
    return numbers[:n]


@secede_thread()
def fit_forest(client: dask.Client, model: Forest, inputs: FitInputs) -> Forest:
    """Grow the trees of a forest on all workers, each of which has all rows.

    Parameters
    ----------
    client : distributed.Client
    model : forest
    inputs : FitInputs
        Arguments of `fit`; X is a Dask DataFrame or Array.
    """

    def fitted_copy(model: Forest, rows: WholeTable, inputs: FitInputs) -> Any:
        rows.check_memory(model)
        is_auto = model.n_estimators == "auto"
        n_wanted = MOST_MEMBERS if is_auto else int(model.n_estimators)
        with Progress("trees", n_wanted, is_auto, 0, model.verbose) as progress:
            trees = DistributedTrees(client, _with_fixed_draws(model), rows, progress)
            return rows.retry(lambda: trees.fit(inputs))

    return fit_copy(client, model, inputs, fitted_copy)


def _with_fixed_draws(model: Forest) -> Forest:
    """Return a copy of a model with a fixed seed for all processes."""
    copied = with_copied_random_state(model)
    if copied.random_state is None:
        copied.random_state = int(check_random_state(None).randint(2**31 - 1))
    return copied
