"""Bagging beside scikit-learn's: the same members, the same samples, two workers on both sides.

Usage: ``python benchmarks/bagging.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``. Without names every workload
runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import data
import numpy as np
from program import command_line, run
from timing import Rounds, Row, beside, play_round

N_JOBS = 2


def make(library: str, member: Any, n_members: int, **options: Any) -> Any:
    """Make an unfitted ensemble with two workers."""
    if library == "sklearn":
        from sklearn.ensemble import BaggingClassifier as Bagging
    else:
        from spinney import BaggingClassifier as Bagging  # type: ignore[no-redef]
    return Bagging(member, n_estimators=n_members, n_jobs=N_JOBS, random_state=0, **options)


def sides(
    name: str, members: dict[str, Any], n_members: int, table: data.Split, rounds: int, target: str, **options: Any
) -> Iterator[Row]:
    """Fit both, then predict with both; the same members say the same, up to rounding."""
    models = {
        side: make({"ours": "spinney", "peer": "sklearn"}[side], m, n_members, **options) for side, m in members.items()
    }
    for model in models.values():
        model.fit(table.X[:500], table.y[:500])  # so that workers are there
    played: dict[str, Rounds] = {"fit": [], "predict": []}
    for number in range(rounds):
        played["fit"].append(play_round({k: partial(m.fit, table.X, table.y) for k, m in models.items()}, number))
        played["predict"].append(
            play_round({k: partial(m.predict_proba, table.X_test) for k, m in models.items()}, number)
        )
    accuracy = {side: float(np.mean(m.predict(table.X_test) == table.y_test)) for side, m in models.items()}
    no_worse = accuracy["ours"] >= accuracy["peer"] - 0.01
    for what, rows in played.items():
        yield beside(
            f"{name}, {what}",
            rows,
            target=target if what == "fit" else "",
            evidence=f"accuracy {accuracy['ours']:.4f} | {accuracy['peer']:.4f}{'' if no_worse else ' WORSE'}",
            same_work=no_worse,
        )


def table_of(n_rows: int, options: argparse.Namespace, n_test: int = 5_000) -> data.Split:
    return data.numbers("classifier", n_rows // 10 if options.quick else n_rows, seed=0, n_test=n_test)


def trees(options: argparse.Namespace) -> Iterator[Row]:
    """Full-depth trees, each library's own."""
    import sklearn.tree
    import spinney

    members = {"ours": spinney.DecisionTreeClassifier(), "peer": sklearn.tree.DecisionTreeClassifier()}
    yield from sides("20 trees, 20k x 28", members, 20, table_of(20_000, options), options.rounds, ">= 3")


def neighbours(options: argparse.Namespace) -> Iterator[Row]:
    """Nearest neighbours of scikit-learn on both sides."""
    from sklearn.neighbors import KNeighborsClassifier

    member = KNeighborsClassifier(5, algorithm="brute")
    table = table_of(10_000, options, 1_000)
    yield from sides("20 nearest neighbours, 10k x 28", {"ours": member, "peer": member}, 20, table, options.rounds, "")


def vectors(options: argparse.Namespace) -> Iterator[Row]:
    """Support vector machines of scikit-learn on both sides."""
    from sklearn.svm import SVC

    table = table_of(20_000, options, 1_000)
    member, more = SVC(), {"max_samples": 0.1}
    yield from sides(
        "10 support vector machines, 20k x 28", {"ours": member, "peer": member}, 10, table, options.rounds, "", **more
    )


def memory(options: argparse.Namespace) -> Iterator[Row]:
    """Peak above the data of this process and its workers while trees are fitted to a wide table."""
    import sklearn.tree
    import spinney

    table = table_of(100_000, options, 10)
    shallow = {"max_depth": 6}
    ours = make("spinney", spinney.DecisionTreeClassifier(**shallow), 8)
    peer = make("sklearn", sklearn.tree.DecisionTreeClassifier(**shallow), 8)
    found = [watched_peak(partial(model.fit, table.X, table.y)) for model in (ours, peer)]
    evidence = f"the data: {table.X.nbytes / 2**20:.0f} MiB"
    yield Row(
        "memory of 8 trees, 100k x 28", *found, unit="MiB", ratio=found[1] / max(found[0], 0.1), evidence=evidence
    )


def watched_peak(action: Callable[[], Any]) -> float:
    """Call `action` and return by how many MiB this process and its children grew, looking every 10 ms."""
    before, peak, is_done = _resident(), [0.0], threading.Event()

    def watch() -> None:
        while not is_done.is_set():
            peak[0] = max(peak[0], _resident())
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        action()
    finally:
        is_done.set()
        watcher.join()
    return peak[0] - before


def _resident() -> float:
    import psutil

    own = psutil.Process(os.getpid())
    total = 0.0
    for process in [own, *own.children(recursive=True)]:
        try:
            total += process.memory_full_info().uss / 2**20
        except psutil.Error:
            continue
    return total


WORKLOADS = {"trees": trees, "neighbours": neighbours, "vectors": vectors, "memory": memory}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
