"""Work that joblib carries to other machines, where the caller has told it to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")
_LOCAL = ("sequential", "threading", "loky", "multiprocessing")  # what joblib calls the backends of one machine


def is_spread() -> bool:
    """Tell whether the caller has set a backend of joblib that works on other machines, such as Dask's."""
    from joblib.parallel import BACKENDS, get_active_backend

    here = tuple(BACKENDS[name] for name in _LOCAL if name in BACKENDS)
    return not isinstance(get_active_backend()[0], here)


def spread(work: Callable[[Any], Result], given: list[Any]) -> list[Result]:
    """Do some work for each of several things, wherever the backend has room; return the results in order."""
    from joblib import Parallel, delayed

    found: list[Result] = Parallel(n_jobs=-1)(delayed(work)(one) for one in given)
    return found
