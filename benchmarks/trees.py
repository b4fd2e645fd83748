"""Speed and memory of single decision trees beside scikit-learn's.

Usage: ``python benchmarks/trees.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE] [--data FOLDER]``.
Without names every workload runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import data
from memory import peak_of_fit
from models import Score, compare, evaluate, make, nodes
from program import command_line, run
from timing import Rounds, Row, beside, median, play, play_round, ratio

Tables = Callable[[int], data.Split]  # a seed to a table
KINDS = ("classifier", "regressor")


def fit_both(
    name: str,
    kind: str,
    tables: Tables,
    targets: dict[int, str],
    rounds: int,
    calls: int = 1,
    max_bins: int | None = None,
) -> Iterator[Row]:
    """Fit ours with each number of threads in `targets`, and the peer's, on a new table each round."""
    models = {n: make("spinney", kind, n, max_bins=max_bins) for n in targets} | {"peer": make("sklearn", kind)}
    played, scores = play_on_tables(kind, tables, models, rounds, calls)
    for n_jobs, target in targets.items():
        evidence, no_worse = compare(kind, scores[n_jobs], scores["peer"])
        yield beside(
            f"{name}, n_jobs={n_jobs}",
            played,
            ours=n_jobs,
            target=target,
            evidence=evidence + (" (one pair)" if rounds == 1 else ""),
            same_work=no_worse,
        )


def play_on_tables(
    kind: str, tables: Tables, models: dict[Any, Any], rounds: int, calls: int = 1
) -> tuple[Rounds, dict[Any, list[Score]]]:
    """Fit every model on `tables(0)`, then on `tables(1)` and so on; return seconds, and how good each is."""
    played, scores = [], {name: [] for name in models}
    for number in range(rounds):
        table = tables(number)
        fits = {name: partial(model.fit, table.X, table.y) for name, model in models.items()}
        played.append(play_round(fits, number, calls))
        for name, model in models.items():
            scores[name].append(evaluate(kind, table, model))
    return played, scores


def full_depth(options: argparse.Namespace) -> Iterator[Row]:
    """Exact trees grown until leaves are pure."""
    n_rows = 50_000 if options.quick else 200_000
    for kind in KINDS:
        tables = partial(data.numbers, kind, n_rows)
        name = f"{kind} {n_rows // 1000}k x 28"
        yield from fit_both(name, kind, tables, {2: ">= 10", 1: ">= 6"}, options.rounds)


def small(options: argparse.Namespace) -> Iterator[Row]:
    """Fit a thousand rows, where fixed costs show."""
    for kind in KINDS:
        tables = partial(data.numbers, kind, 1000)
        targets = {2: ">= 3", 1: ">= 3"}
        yield from fit_both(f"{kind} 1k x 28", kind, tables, targets, max(options.rounds, 20), calls=5)


def binned(options: argparse.Namespace) -> Iterator[Row]:
    """Ours in 255 bins against the peer's exact tree, which takes minutes: one pair."""
    n_rows = 300_000 if options.quick else 1_000_000
    tables = partial(data.numbers, "classifier", n_rows)
    name = f"classifier {n_rows // 1000}k x 28, 255 bins"
    yield from fit_both(name, "classifier", tables, {2: ">= 20"}, 1, max_bins=255)


def growth(options: argparse.Namespace) -> Iterator[Row]:
    """How the time grows when the rows double; ours alone, one thread, so that CPU time counts."""
    sizes = [n * 1000 for n in ((25, 50, 100) if options.quick else (50, 100, 200, 400))]
    for kind in KINDS:
        tables = {n: data.numbers(kind, n, seed=0, n_test=0) for n in sizes}
        model = make("spinney", kind, 1)
        played = play({n: partial(model.fit, t.X, t.y) for n, t in tables.items()}, options.rounds)
        for before, after in pairwise(sizes):
            yield Row(
                f"{kind} {before // 1000}k -> {after // 1000}k rows",
                median(played, after),
                ratio=ratio(played, after, before),
                cpu_ratio=ratio(played, after, before, "cpu"),
                target="<= 2.3",
                evidence=f"{before // 1000}k rows took {median(played, before):.3g} s",
                rounds=played,
            )


def memory(options: argparse.Namespace) -> Iterator[Row]:
    """Peak memory of a fit above the data; each fit in a fresh process."""
    n_rows = 50_000 if options.quick else 200_000
    for kind in KINDS:
        peer = peak_of_fit("sklearn", kind, n_rows, 1)
        for n_jobs in (2, 1):
            ours = peak_of_fit("spinney", kind, n_rows, n_jobs)
            name = f"{kind} {n_rows // 1000}k x 28, n_jobs={n_jobs}"
            share = f"the data: {n_rows * data.N_FEATURES * 4 / 2**20:.0f} MiB"
            yield Row(name, ours, peer, "MiB", peer / ours, target=">= 1", evidence=share)


@cache
def fitted(kind: str, n_rows: int) -> tuple[data.Split, Any, Any]:
    """Fit both full-depth trees once, for the workloads that use fitted trees."""
    table = data.numbers(kind, n_rows, seed=0, n_test=100_000)
    return table, *(make(library, kind, 2).fit(table.X, table.y) for library in ("spinney", "sklearn"))


def predict(options: argparse.Namespace) -> Iterator[Row]:
    """100k rows through full-depth trees."""
    for kind in KINDS:
        table, ours, peer = fitted(kind, 50_000 if options.quick else 200_000)
        evidence, no_worse = compare(kind, [evaluate(kind, table, ours)], [evaluate(kind, table, peer)])
        models = {n: copy(ours).set_params(n_jobs=n) for n in (2, 1)} | {"peer": peer}
        played = play({n: partial(m.predict, table.X_test) for n, m in models.items()}, max(options.rounds, 7))
        for n in (2, 1):
            yield beside(
                f"{kind} predict 100k rows, n_jobs={n}",
                played,
                ours=n,
                target=">= 3",
                evidence=evidence,
                same_work=no_worse,
            )


def one_row(options: argparse.Namespace) -> Iterator[Row]:
    """One row at a time: our handle, and the peer's predict, which has no such handle."""
    for kind in KINDS:
        table, ours, peer = fitted(kind, 50_000 if options.quick else 200_000)
        handle = ours.to_predictor()
        arrays = list(table.X_test[:20_000].astype(float))
        for name, rows in {"array": arrays, "list": [row.tolist() for row in arrays]}.items():
            same = [handle.predict(row) for row in rows] == ours.predict(table.X_test[: len(rows)]).tolist()
            mine = _median_microseconds(handle.predict, rows)
            theirs = _median_microseconds(peer.predict, [row[None] for row in table.X_test[:500]])
            answer = "equal to" if same else "DIFFERS from"
            yield Row(
                f"{kind} one row, {name}",
                mine,
                theirs,
                "us",
                theirs / mine,
                target="<= 10",
                target_value=mine,
                evidence=f"{nodes(ours)} | {nodes(peer)} nodes, {answer} predict",
                same_work=same,
            )


def _median_microseconds(call: Callable[[Any], Any], arguments: list[Any]) -> float:
    clock, times = time.perf_counter_ns, []
    for argument in arguments:
        start = clock()
        call(argument)
        times.append(clock() - start)
    return statistics.median(times) / 1000


def busy(options: argparse.Namespace) -> Iterator[Row]:
    """Fit with two threads beside another process that never rests."""
    n_rows = 50_000 if options.quick else 200_000
    for kind in KINDS:
        table = data.numbers(kind, n_rows, seed=0, n_test=0)
        fit = partial(make("spinney", kind, 2).fit, table.X, table.y)
        played = play({"quiet": fit, "busy": partial(beside_busy_process, fit)}, options.rounds)
        yield Row(
            f"{kind} {n_rows // 1000}k x 28, busy neighbour",
            median(played, "busy"),
            ratio=ratio(played, "busy", "quiet"),
            cpu_ratio=ratio(played, "busy", "quiet", "cpu"),
            target="<= 2.5",
            evidence=f"alone {median(played, 'quiet'):.3g} s",
            rounds=played,
        )


def beside_busy_process(action: Callable[[], Any]) -> None:
    """Call `action` while another process keeps one core busy; that one also ends when its parent does."""
    loop = f"import os\nwhile os.getppid() == {os.getpid()}:\n    for _ in range(10**6): pass"
    process = subprocess.Popen([sys.executable, "-c", loop])
    try:
        action()
    finally:
        process.kill()
        process.wait()


def categories(options: argparse.Namespace) -> Iterator[Row]:
    """Strings and missing values: ours as they are, the peer's one-hot encoded. For information."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    n_rows = 20_000 if options.quick else 100_000
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encode = make_column_transformer(
        (encoder, make_column_selector("category_")), remainder="passthrough", verbose_feature_names_out=False
    )
    limit = {"min_samples_leaf": 20}
    ours = make("spinney", "classifier", 2, **limit)
    peer = make_pipeline(encode, make("sklearn", "classifier", **limit))
    tables = partial(data.mixed, n_rows)
    played, scores = play_on_tables("classifier", tables, {"ours": ours, "peer": peer}, options.rounds)
    evidence, no_worse = compare("classifier", scores["ours"], scores["peer"])
    yield Row(
        f"classifier {n_rows // 1000}k, 4 of 10 strings",
        median(played, "ours"),
        median(played, "peer"),
        ratio=ratio(played, "peer", "ours"),
        evidence=evidence,
        same_work=no_worse,
        rounds=played,
    )


def imports(_: argparse.Namespace) -> Iterator[Row]:
    """Seconds that an import adds to NumPy's, in fresh processes."""
    statements = {
        "import spinney": ("import spinney", "import sklearn", "<= 0.2"),
        "import a tree": (
            "from spinney import DecisionTreeClassifier",
            "from sklearn.tree import DecisionTreeClassifier",
            "",
        ),
    }
    for name, (mine, theirs, target) in statements.items():
        pairs = [(_import_seconds(mine), _import_seconds(theirs)) for _ in range(5)]
        ours, peer = (statistics.median(side) for side in zip(*pairs, strict=True))
        yield Row(
            name,
            ours,
            peer,
            ratio=statistics.median(theirs / mine for mine, theirs in pairs),
            target=target,
            target_value=ours,
            evidence="over numpy, 5 processes each" + ("" if target else "; for information"),
            rounds=pairs,
        )


def _import_seconds(statement: str) -> float:
    program = f"import numpy, time\nstart = time.perf_counter()\n{statement}\nprint(time.perf_counter() - start)"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    return float(output)


def real(options: argparse.Namespace) -> Iterator[Row]:
    """Parquet files of --data; for information. No file, no row."""
    for path in sorted(options.data.glob("*.parquet")) if options.data else ():
        if task := data.real(path):
            kind, tables = task
            n_rows, n_features = tables(0).X.shape
            name = f"{path.stem} {n_rows} x {n_features}"
            yield from fit_both(name, kind, tables, {2: ""}, options.rounds, calls=max(1, 5_000 // n_rows))


WORKLOADS = {
    f.__name__: f
    for f in (full_depth, small, binned, growth, memory, predict, one_row, busy, categories, imports, real)
}


def main() -> int:
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="Parquet files for the workload 'real'")
    return run(WORKLOADS, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
