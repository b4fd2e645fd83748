"""What a worker does for a forest: it has all rows, and grows the trees that it is asked for.

Each worker reads the table as a fit in one place does, up to the first tree; trees are known by their numbers. One of
them leads: its fit goes on in a thread of its own, which says what it wants grown and is given the trees.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from queue import Empty, Queue
from typing import Any

import spinney._engine as _engine
from spinney._cluster.actor import Answering, Told, held_here
from spinney._cluster.worker_tables import take

Wanted = tuple[int, int, float]  # number of the first tree, how many, the strength of their shrinkage


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
        self._request: Any = None
        self._told = Told()
        self._given: Queue[list[_engine.Tree]] = Queue()
        self._is_held = held_here()

    def read(self, y: Any, weight: Any, groups: Any) -> None:
        """Read all rows, up to the first tree."""

        def stop(request: Any, first: int, n_trees: int) -> Any:
            self._request = replace(request, share=None)
            raise _ReadyError

        try:
            self._model._fit(take(*self._left_by), y, weight, groups, stop)
        except _ReadyError:
            return

    def lead(self, y: Any, weight: Any, groups: Any) -> tuple[str, Any]:
        """Begin the fit; return what it wants first, as `go_on` does."""
        table, model, told, given = take(*self._left_by), self._model, self._told, self._given

        def ask(request: Any, first: int, n_trees: int) -> Any:
            self._request = replace(request, share=None)
            told.say("grow", (first, n_trees, request.shrinkage))
            trees: list[_engine.Tree] | None = None
            while trees is None and self._is_held():
                with suppress(Empty):
                    trees = given.get(timeout=1.0)
            if not trees:
                raise _ReadyError
            return request.view(_engine.forest_from_trees(trees, request.n_categories))

        told.start(lambda: model._fit(table, y, weight, groups, ask))
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
        forest = replace(self._request, shrinkage=shrinkage).grow(first, n_trees)
        return [forest.tree(t).engine for t in range(n_trees)]
