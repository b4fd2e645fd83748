"""Speed and loss of gradient boosting beside LightGBM, XGBoost, CatBoost and scikit-learn, where they are installed.

Usage: ``python benchmarks/boosting.py [WORKLOAD …] [--quick] [--rounds N] [--jobs N …] [--peers NAME …] [--json FILE]
[--data FOLDER]``. Without names every workload runs. A row compares with whichever peer was fastest in that round, of
all that ran in it, and prints the loss of each on rows not seen.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
from boosters import Booster, Task, installed, versions
from memory import measured_peak
from program import command_line, run
from timing import Rounds, Row, beside, median, play, play_round, ratio

OPEN_LOSS = 1.01  # no worse: at most one percent above the least loss of the peers that count
# Its leaf values are sums of coarsely rounded gradients, too large for the data, as with a larger learning rate.
# With its own `quant_train_renew_leaf` most of its advantage is gone. So its time counts, its loss does not.
LONGER_STEPS = {"lightgbm quantised"}


def against_fastest(played: Rounds, clock: str = "wall") -> tuple[str, float]:
    """Name the peer with the least median, and the median over rounds of the fastest peer's time over ours."""
    peers = [name for name in played[0] if name != "spinney"]
    fastest = min(peers, key=lambda name: median(played, name, clock))
    ratios = [min(getattr(r[p], clock) for p in peers) / getattr(r["spinney"], clock) for r in played]
    return fastest, statistics.median(ratios)


def fit_rows(name: str, task: Task, tables: Callable[[int], data.Split], target: str, options: Any) -> Row:
    """Fit every library on the same table in turn; a new table each round."""
    names = installed(task, options.peers)
    played: Rounds = []
    losses: dict[str, list[float]] = {library: [] for library in names}
    for number in range(options.rounds):
        table = tables(number)
        if number == 0:  # importing counts nowhere
            for library in names:
                Booster(library, replace(task, n_rounds=1)).fit(table.X, table.y)
        models = {library: Booster(library, task) for library in names}
        played.append(play_round({k: partial(m.fit, table.X, table.y) for k, m in models.items()}, number))
        for library, model in models.items():
            losses[library].append(model.loss(table.X_test, table.y_test))
    fastest, faster = against_fastest(played)
    means = {library: float(np.mean(found)) for library, found in losses.items()}
    times = {library: median(played, library) for library in names}
    shown = ", ".join(f"{library} {times[library]:.3g} s loss {means[library]:.4f}" for library in names)
    return Row(
        f"{name}, {task.n_jobs} threads",
        times["spinney"],
        times[fastest],
        ratio=faster,
        cpu_ratio=against_fastest(played, "cpu")[1],
        target=target,
        evidence=f"| {fastest} || {shown}",
        same_work=means["spinney"] <= OPEN_LOSS * _least_loss(means),
        rounds=played,
    )


def _least_loss(means: dict[str, float]) -> float:
    return min([loss for name, loss in means.items() if name not in {"spinney", *LONGER_STEPS}], default=np.inf)


def numbers_rows(options: Any, n_rows: int, n_rounds: int, n_leaves: int, target: str) -> Iterator[Row]:
    n_rows = n_rows // 50 if options.quick else n_rows
    for n_jobs in options.jobs:
        task = Task("classifier", n_rounds, n_leaves, n_jobs)
        name = f"{n_rows // 1000}k x 28, {n_rounds} x {n_leaves}"
        yield fit_rows(name, task, partial(data.numbers, "classifier", n_rows), target, options)


def large(options: Any) -> Iterator[Row]:
    """500k rows, 50 rounds of 255 leaves."""
    yield from numbers_rows(options, 500_000, 50, 255, ">= 2")


def middle(options: Any) -> Iterator[Row]:
    """300k rows, 100 rounds of 31 leaves."""
    yield from numbers_rows(options, 300_000, 100, 31, ">= 2")


def wide_table(n_rows: int, seed: int) -> data.Split:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows + 4000, 1000), dtype=np.float32)
    y = X[:, :20].sum(axis=1) + X[:, 20] * X[:, 21] + random.standard_normal(len(X))
    return data.Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def wide(options: Any) -> Iterator[Row]:
    """16k rows of 1000 columns, 50 rounds of 31 leaves."""
    n_rows = 1_000 if options.quick else 16_000
    for n_jobs in options.jobs:
        task = Task("regressor", 50, 31, n_jobs)
        yield fit_rows(f"{n_rows // 1000}k x 1000, 50 x 31", task, partial(wide_table, n_rows), ">= 1.5", options)


def small(options: Any) -> Iterator[Row]:
    """1,000 rows, 100 rounds: fixed costs; then the same while another process is busy."""
    tables = partial(data.numbers, "classifier", 1_000, n_test=5_000)
    for n_jobs in options.jobs:
        row = fit_rows("1k x 28, 100 x 31", Task("classifier", 100, 31, n_jobs), tables, ">= 3", options)
        row.same_work = True  # on 1,000 rows the draw decides which is better
        yield row
    yield busy_neighbour(options)


def busy_neighbour(options: Any) -> Row:
    """Our fit of 1,000 rows with all threads, alone and beside busy processes, one per core."""
    table = data.numbers("classifier", 1_000, 0, n_test=10)
    booster = Booster("spinney", Task("classifier", 100, 31, max(options.jobs)))

    def seconds() -> float:
        times = []
        for _ in range(max(5, options.rounds)):
            start = time.perf_counter()
            booster.fit(table.X, table.y)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    seconds()
    alone = seconds()
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        beside = seconds()
    finally:
        neighbour.terminate()
        neighbour.wait()
    return Row(
        "1k x 28 beside a busy process", beside, alone, ratio=beside / alone, target="<= 2.5", evidence="| alone"
    )


# ---- tables from files ------------------------------------------------------------------------------------


def open_table(path: Path, most_rows: int | None = None) -> tuple[str, Any, np.ndarray] | None:
    """Read a Parquet file with a column "target": the kind of task, a table with categories as such, and y."""
    import pandas as pd
    import pyarrow.parquet as parquet

    frame = parquet.read_table(path).to_pandas()
    if "target" not in frame:
        return None
    frame = frame[frame["target"].notna()]
    if most_rows is not None and len(frame) > most_rows:
        frame = frame.sample(most_rows, random_state=0)
    y = frame.pop("target")
    for name in frame:
        if not pd.api.types.is_numeric_dtype(frame[name]) or frame[name].dtype == bool:
            frame[name] = frame[name].astype(str).where(frame[name].notna(), None).astype("category")
    is_class = not pd.api.types.is_float_dtype(y) and y.nunique() <= 100
    if not is_class and not pd.api.types.is_numeric_dtype(y):
        return None
    target = np.unique(y.astype(str), return_inverse=True)[1] if is_class else y.to_numpy(dtype=float)
    return "classifier" if is_class else "regressor", frame.reset_index(drop=True), target


def split_rows(X: Any, y: np.ndarray, seed: int) -> data.Split:
    """Hold out a fifth of the rows, of every class."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(y))
    n = len(y) - len(y) // 5
    train, test = np.sort(order[:n]), np.sort(order[n:])
    if y.dtype.kind == "i":  # every class is trained on, and classes are 0, 1, …
        known = np.unique(y[train])
        test = test[np.isin(y[test], known)]
        y = np.searchsorted(known, y)
    return data.Split(X.iloc[train], y[train], X.iloc[test], y[test])


def file_rows(options: Any, stem: str, n_rounds: int, n_leaves: int, target: str) -> Iterator[Row]:
    path = options.data / f"{stem}.parquet" if options.data else Path("nowhere")
    found = open_table(path, 5_000 if options.quick else None) if path.exists() else None
    if found is None:
        return
    kind, X, y = found
    categories = "category" in {str(d) for d in X.dtypes}
    table = X if categories else _plain(X)
    for n_jobs in options.jobs:
        task = Task(kind, n_rounds, n_leaves, n_jobs, categories)
        name = f"{stem} {len(y) // 1000}k x {X.shape[1]}, {n_rounds} x {n_leaves}"
        yield fit_rows(name, task, partial(split_rows, table, y), target, options)


def _plain(X: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(X.to_numpy(dtype=np.float32), columns=X.columns)


def covtype(options: Any) -> Iterator[Row]:
    """581k rows, 7 classes, 30 rounds of 63 leaves for each."""
    yield from file_rows(options, "covtype", 30, 63, ">= 2")


def categories(options: Any) -> Iterator[Row]:
    """Tables whose columns are categories, taken as such."""
    for stem in ("adult", "hotel_bookings", "gov_census"):
        yield from file_rows(options, stem, 100, 31, ">= 2")


# ---- predictions ------------------------------------------------------------------------------------------


def predict(options: Any) -> Iterator[Row]:
    """200 trees of 31 leaves: many rows, some, one; and many beside CatBoost's oblivious trees of 32 leaves."""
    n_rows = 5_000 if options.quick else 100_000
    table = data.numbers("regressor", n_rows, 0, n_test=20_000)
    for n_jobs in options.jobs:
        task = Task("regressor", 200, 31, n_jobs)
        models = {name: Booster(name, task).fit(table.X, table.y).model for name in installed(task, options.peers)}
        for size, calls in ((20_000, 1), (100, 50)):
            rows = np.ascontiguousarray(table.X_test[:size])
            played = [
                play_round({k: _predict_call(k, m, rows, n_jobs) for k, m in models.items()}, number, calls)
                for number in range(max(options.rounds, 5))
            ]
            yield _predict_row(f"predict {size} rows, 200 x 31, {n_jobs} threads", played)
        if "catboost" in models:
            yield oblivious(models["spinney"], table, n_jobs, options)
    yield one_row(models["spinney"], table.X_test)
    classes = data.numbers("classifier", n_rows, 0, n_test=2_000)
    classifier = Booster("spinney", Task("classifier", 200, 31, max(options.jobs))).fit(classes.X, classes.y).model
    yield one_row(classifier, classes.X_test, "predict_proba")


def _predict_call(library: str, model: Any, rows: Any, n_jobs: int) -> Callable[[], Any]:
    # CatBoost's predict uses all cores by default
    return partial(model.predict, rows, **({"thread_count": n_jobs} if library.startswith("catboost") else {}))


def oblivious(ours: Any, table: data.Split, n_jobs: int, options: Any) -> Row:
    """Predict one NumPy array with CatBoost's symmetric trees; other inputs of CatBoost are reported only."""
    import catboost

    model = catboost.CatBoostRegressor(
        iterations=200, depth=5, thread_count=n_jobs, allow_writing_files=False, logging_level="Silent", random_seed=0
    ).fit(table.X, table.y)
    rows = np.ascontiguousarray(table.X_test)
    calls = {
        "spinney": partial(ours.predict, rows),
        "catboost": _predict_call("catboost", model, rows, n_jobs),
        "its columns": _predict_call("catboost", model, np.asfortranarray(rows), n_jobs),
        "its Pool": _predict_call("catboost", model, catboost.Pool(rows), n_jobs),
    }
    played = [play_round(calls, number, 5) for number in range(max(options.rounds, 5))]
    return beside(
        f"predict {len(rows)} rows, oblivious, {n_jobs} threads",
        played,
        ours="spinney",
        peer="catboost",
        target=">= 1",
        evidence="| catboost || " + ", ".join(f"{k} {1000 * median(played, k):.3g} ms" for k in calls),
    )


def _predict_row(name: str, played: Rounds) -> Row:
    fastest, faster = against_fastest(played)
    shown = ", ".join(f"{k} {1000 * median(played, k):.3g} ms" for k in played[0])
    times = median(played, "spinney"), median(played, fastest)
    return Row(name, *times, ratio=faster, target=">= 2", evidence=f"| {fastest} || {shown}", rounds=played)


def one_row(model: Any, X: np.ndarray, method: str = "predict") -> Row:
    """Single rows through our handle, in microseconds."""
    handle, rows = getattr(model.to_predictor(), method), list(X[:2_000].astype(float))
    same = np.array_equal([handle(row) for row in rows], getattr(model, method)(X[: len(rows)]))
    times = []
    for row in rows:
        start = time.perf_counter_ns()
        handle(row)
        times.append(time.perf_counter_ns() - start)
    mine = statistics.median(times) / 1000
    evidence = f"equal to {method}" if same else f"DIFFERS from {method}"
    name = f"one row, 200 x 31, {method}"
    return Row(name, mine, None, "us", target="<= 10", target_value=mine, evidence=evidence, same_work=same)


# ---- memory and agreement ---------------------------------------------------------------------------------


def memory(options: Any) -> Iterator[Row]:
    """Peak memory of a fit above the data; each fit in a fresh process."""
    n_rows = 10_000 if options.quick else 500_000
    peaks = {name: peak_of_fit(name, n_rows) for name in ("spinney", "lightgbm")}
    ours, peer = peaks["spinney"], peaks["lightgbm"]
    yield Row(
        f"peak memory {n_rows // 1000}k x 28", ours, peer, "MiB", peer / ours, target=">= 1", evidence="| lightgbm"
    )


def peak_of_fit(library: str, n_rows: int) -> float:
    command = [sys.executable, __file__, "--peak", library, str(n_rows)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def report_peak(library: str, n_rows: int) -> None:
    table, task = data.numbers("classifier", n_rows, seed=0, n_test=0), Task("classifier", 10, 255, 2)
    Booster(library, task).fit(table.X[:300], table.y[:300])
    print(measured_peak(partial(Booster(library, task).fit, table.X, table.y)))


def agree(options: Any) -> Iterator[Row]:
    """Loss on every table of --data and the losses of the peers, over splits: a row has our distance from their mean.

    The measure is our mean loss less the mean of the peers', in standard deviations of it over splits and peers.
    """
    for path in sorted(options.data.glob("*.parquet")) if options.data else ():
        if options.only and path.stem not in options.only:
            continue
        found = open_table(path, 2_000 if options.quick else 20_000)
        if found is None or len(found[2]) < 100:
            continue
        yield _agreement(path.stem, *found, options)


def _agreement(name: str, kind: str, X: Any, y: np.ndarray, options: Any) -> Row:
    task = Task(kind, 50, 31, max(options.jobs), "category" in {str(d) for d in X.dtypes})
    names = [n for n in installed(task, options.peers) if n not in ("catboost", "lightgbm quantised")]
    losses: dict[str, list[float]] = {n: [] for n in names}
    start = time.perf_counter()
    for seed in range(options.rounds):
        table = split_rows(X, y, seed)
        for library in list(losses):
            try:
                found = Booster(library, task).fit(table.X, table.y).loss(table.X_test, table.y_test)
            except Exception as error:
                if library == "spinney":
                    raise
                print(f"{name}: {library} fails: {str(error)[:100]}", file=sys.stderr)
                del losses[library]  # such as a column without any value
                continue
            losses[library].append(found)
    ours, peers = np.array(losses["spinney"]), np.array([losses[n] for n in losses if n != "spinney"])
    gap = float((ours - peers.mean(axis=0)).mean())
    noise = float(max(peers.std(axis=0, ddof=1).mean() if len(peers) > 1 else 0.0, peers.mean(axis=0).std(ddof=1)))
    shown = ", ".join(f"{n} {np.mean(found):.4g}" for n, found in losses.items())
    means = float(ours.mean()), float(peers.mean())
    return Row(
        f"{name} {len(y)} x {X.shape[1]}",
        *means,
        "loss",
        target_value=gap / max(noise, 1e-12),
        target="<= 2",
        evidence=f"{gap / max(noise, 1e-12):+.2f} sd || {shown} ({time.perf_counter() - start:.0f} s)",
    )


class _Squared:
    """The squared error as an object of the user's."""

    def loss(self, y: Any, f: Any) -> Any:
        return (y - f) ** 2 / 2

    def gradient(self, y: Any, f: Any) -> Any:
        return f - y

    def hessian(self, y: Any, f: Any) -> Any:
        return np.ones_like(f)


def own_loss(options: argparse.Namespace) -> Iterator[Row]:
    """Compare the squared error as a formula and as an object with the built-in one: how many times as long."""
    import spinney

    rng = np.random.default_rng(0)
    n = 20_000 if options.quick else 200_000
    X = rng.normal(size=(n, 20)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    losses = {"built-in": "squared_error", "formula": lambda y, f: (y - f) ** 2 / 2, "object": _Squared()}
    fits = {
        name: partial(spinney.GradientBoostingRegressor(loss, n_estimators=100, max_leaf_nodes=31, n_jobs=2).fit, X, y)
        for name, loss in losses.items()
    }
    rounds = play(fits, options.rounds)
    for name, most in (("formula", 1.5), ("object", 3)):
        times = median(rounds, name), median(rounds, "built-in")
        longer = ratio(rounds, name, "built-in")
        yield Row(f"own loss, {name}, {n // 1000}k x 20", *times, ratio=longer, target=f"<= {most}", rounds=rounds)


WORKLOADS = {f.__name__: f for f in (large, middle, covtype, wide, categories, small, predict, memory, agree, own_loss)}


def main() -> int:
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--jobs", type=int, nargs="+", default=[2, 1], help="threads, one row for each")
    parser.add_argument("--peers", nargs="+", help="only these")
    parser.add_argument("--only", nargs="+", help="only these tables of 'agree'")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="Parquet files: covtype, categories, agree")
    parser.add_argument("--peak", nargs=2, metavar=("LIBRARY", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        report_peak(options.peak[0], int(options.peak[1]))
        return 0
    return run(WORKLOADS, options, versions())


if __name__ == "__main__":
    sys.exit(main())
