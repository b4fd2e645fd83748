"""What a worker does for a forest: it has all rows, and grows the trees that it is asked for.

Each worker reads the table as a fit in one place does, up to the first tree; trees are known by their numbers. One of
them leads: its fit goes on in a thread of its own, which says what it wants grown and is given the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from importlib import import_module
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np

import spinney._engine as _engine

_LEFT: dict[tuple[str, str], Any] = {}  # tables that tasks have left for the growers of this process, by fit and worker
Wanted = tuple[int, int, float]  # number of the first tree, how many, the strength of their shrinkage


class _ReadyError(Exception):
    """The rows are read: the first tree is asked for."""


def joined(parts: Sequence[Any]) -> Any:
    """Put partitions one below the other, as Dask does when it collects them."""
    if hasattr(parts[0], "iloc"):
        concat: Any = import_module("dask.dataframe.dispatch").concat  # it has no types
        return concat([part for part in parts if len(part)] or parts[:1])
    if hasattr(parts[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def leave_table(fit: str, address: str, *parts: Any) -> int:
    """Leave all rows for the grower of a worker; return how many there are."""
    _LEFT[fit, address] = table = joined(parts)
    return int(table.shape[0])


def fit_alone(model: Any, beside: dict[str, Any], *parts: Any) -> Any:
    """Fit a model to all rows in one place."""
    return model.fit(joined(parts), **beside)


class Grower:
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
        self._asked: Queue[tuple[str, Any]] = Queue()
        self._given: Queue[list[_engine.Tree]] = Queue()

    def is_there(self) -> bool:
        """Answer whoever asks whether there is a way to this worker."""
        return True

    def read(self, y: Any, weight: Any, groups: Any) -> None:
        """Read all rows, up to the first tree."""

        def stop(request: Any, first: int, n_trees: int) -> Any:
            self._request = replace(request, share=None)
            raise _ReadyError

        try:
            self._model._fit(_LEFT.pop(self._left_by), y, weight, groups, stop)
        except _ReadyError:
            return

    def lead(self, y: Any, weight: Any, groups: Any) -> tuple[str, Any]:
        """Begin the fit; return what it wants first, as `go_on` does."""
        table = _LEFT.pop(self._left_by)

        def ask(request: Any, first: int, n_trees: int) -> Any:
            self._request = replace(request, share=None)
            self._asked.put(("grow", (first, n_trees, request.shrinkage)))
            trees = self._given.get()
            if not trees:
                raise _ReadyError
            return request.view(_engine.forest_from_trees(trees, request.n_categories))

        def fit() -> None:
            try:
                self._asked.put(("done", self._model._fit(table, y, weight, groups, ask)))
            except BaseException as error:
                self._asked.put(("failed", error))

        Thread(target=fit, daemon=True).start()
        return self._asked.get()

    def go_on(self, trees: list[_engine.Tree]) -> tuple[str, Any]:
        """Take the trees that were wanted; return which are wanted next, or the fitted model."""
        self._given.put(trees)
        return self._asked.get()

    def give_up(self) -> None:
        """End the fit: nobody waits for it any more."""
        self._given.put([])

    def grow(self, wanted: Wanted) -> list[_engine.Tree]:
        """Grow some trees."""
        first, n_trees, shrinkage = wanted
        forest = replace(self._request, shrinkage=shrinkage).grow(first, n_trees)
        return [forest.tree(t).engine for t in range(n_trees)]
