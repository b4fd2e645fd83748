"""Conversations with actors that fit a model: how they begin, go on, end, and begin again where a worker is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

from spinney._cluster.dask_actors import Actors
from spinney._cluster.dask_tables import AllRows
from spinney._cluster.dask_waits import Patience, WorkerLostError, wait_for_a_worker, worker_in_words
from spinney._cluster.worker_tables import forget_everywhere

MOST_STARTS = 5

Model = TypeVar("Model")


@contextmanager
def talk(client: Any) -> Iterator[tuple[str, Actors]]:
    """Give a fit its name and its actors; one that is cut short leaves nothing behind."""
    fit, actors = f"spinney-{uuid4().hex}", Actors(client)
    try:
        yield fit, actors
    except BaseException:
        for address in actors.addresses:
            with suppress(WorkerLostError):
                actors.send(address, "give_up")  # and wait for nothing
        forget_everywhere(client, fit)
        raise
    finally:
        actors.close()


def conversation(actors: Actors, address: str, said: tuple[str, Any], reply: Callable[[Any], Any]) -> Any:
    """Return the model that an actor has fitted, or raise what stood in its way.

    Parameters
    ----------
    actors : Actors
    address : str
        Of its worker.
    said : tuple
        What it has said first.
    reply : callable
        What to tell it when it asks for something.
    """
    kind, what = said
    patience = Patience(worker_in_words(address))
    while kind not in ("done", "failed"):
        if kind == "busy":
            patience.check(what)
            kind, what = actors.call(address, "wait")
        else:
            kind, what = actors.call(address, "go_on", reply(what))
            patience = Patience(worker_in_words(address))
    if kind == "failed":
        raise what
    return what


def begun_again(client: Any, rows: AllRows, fit: Callable[[], Model]) -> Model:
    """Fit, and again with the workers that are left whenever one is lost, but not without end."""
    for attempt in range(MOST_STARTS):
        try:
            return fit()
        except WorkerLostError as lost:
            if attempt + 1 == MOST_STARTS:
                raise RuntimeError(
                    f"The cluster has lost workers {MOST_STARTS} times during the fit, the last of them {lost}. They "
                    "may lack memory: use larger workers."
                ) from lost
            wait_for_a_worker(client)
            rows.renew()
    raise AssertionError
