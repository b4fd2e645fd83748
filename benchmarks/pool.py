"""Run units of work in processes until they are done or the time is up; keep each result at once.

A unit is a function and its arguments, identified by its key. Results are lines of JSON in one file, so that an
interrupted run keeps what it has and a later one goes on from there.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]


class Unit(NamedTuple):
    """`work(*arguments)` returns a dict of results, which is kept together with `key`."""

    key: Record
    work: Callable[..., Record]
    arguments: tuple[Any, ...]


def read_records(path: Path) -> list[Record]:
    """Return the records of a file; a last line that was cut off is left out."""
    if not path.exists():
        return []
    records = []
    for line in filter(None, path.read_text().splitlines()):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"A line of {path} is not whole and is left out.", file=sys.stderr)
    return records


def run(units: Iterable[Unit], path: Path, processes: int, minutes: float | None) -> None:
    """Run the units that the file does not have yet, in order."""
    done = {_name(record["key"]) for record in read_records(path)}
    left = [unit for unit in units if _name(unit.key) not in done]
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    start, n_done = time.monotonic(), 0
    waiting = iter(left)
    futures: dict[Future[Record], Unit] = {}
    with ProcessPoolExecutor(processes, initializer=_be_quiet) as pool, path.open("a") as file:
        file.write("\n")  # the last line may have been cut off
        while True:
            while len(futures) < 2 * processes and time.monotonic() < end and (unit := next(waiting, None)):
                futures[pool.submit(unit.work, *unit.arguments)] = unit
            if not futures:
                break
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                unit = futures.pop(future)
                if failure := future.exception():
                    print(f"{unit.key}: {type(failure).__name__}: {failure}", file=sys.stderr, flush=True)
                    continue
                file.write(json.dumps({"key": unit.key} | future.result()) + "\n")
                file.flush()
                n_done += 1
    seconds = time.monotonic() - start
    print(f"{n_done} of {len(left)} units done in {seconds:.0f} s; {len(done)} were there.", file=sys.stderr)


def _name(key: Record) -> str:
    return json.dumps(key, sort_keys=True)


def _be_quiet() -> None:
    """Set up a process of the pool: one thread, no warnings about rows without an out-of-bag tree."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    warnings.filterwarnings("ignore")
