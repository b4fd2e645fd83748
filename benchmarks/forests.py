"""Speed, memory and size of forests beside scikit-learn's, and YDF's where it is installed.

Usage: ``python benchmarks/forests.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE] [--data FOLDER]``.
Without names every workload runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import io
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import data
import numpy as np
from memory import measured_peak
from program import command_line, run
from timing import Rounds, Row, beside, median, play, play_round, ratio

N_JOBS = 2
FAMILIES = {"forest": "RandomForest", "extra": "ExtraTrees"}


def make(library: str, family: str, kind: str, **options: Any) -> Any:
    """Make an unfitted forest with two threads and plain leaves, as the peers have; 50 trees unless asked for more."""
    if library == "sklearn":
        import sklearn.ensemble as module
    else:
        import spinney as module

        options = {"shrinkage": None} | options
    name = FAMILIES[family] + ("Classifier" if kind == "classifier" else "Regressor")
    return getattr(module, name)(**({"n_estimators": 50, "random_state": 0, "n_jobs": N_JOBS} | options))


class YdfForest:
    """YDF's random forest in the shape of an estimator, for two classes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> YdfForest:
        """Train on one column of vectors."""
        import ydf

        learner = ydf.RandomForestLearner(
            label="y", num_trees=50, num_threads=N_JOBS, max_depth=-1, min_examples=1, compute_oob_performances=False,
            winner_take_all=False, discretize_numerical_columns=True,
        )  # fmt: skip
        self.model = learner.train({"x": X, "y": y}, verbose=0)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the shares of both classes."""
        share = np.asarray(self.model.predict({"x": X})).ravel()
        return np.column_stack([1 - share, share])


class Score(NamedTuple):
    """A measure on test rows, larger is better, and what it is called."""

    value: float
    name: str


def evaluate(kind: str, table: data.Split, model: Any) -> Score:
    from sklearn.metrics import roc_auc_score

    if kind == "regressor":
        error = float(np.mean((model.predict(table.X_test) - table.y_test) ** 2))
        return Score(1 - error / float(np.var(table.y_test)), "R²")
    shares = model.predict_proba(table.X_test)
    if shares.shape[1] > 2:
        return Score(float(np.mean(model.classes_[shares.argmax(axis=1)] == table.y_test)), "accuracy")
    return Score(float(roc_auc_score(table.y_test, shares[:, 1])), "AUC")


def fit_sides(
    name: str,
    kind: str,
    tables: Callable[[int], data.Split],
    ours: Any,
    peer: Any,
    target: str,
    rounds: int,
) -> Row:
    """Fit both on a new table each round. No worse: the mean measure is at most 0.002 below the peer's."""
    played: Rounds = []
    scores: dict[str, list[Score]] = {"ours": [], "peer": []}
    for number in range(rounds):
        table = tables(number)
        models = {"ours": ours, "peer": peer}
        played.append(play_round({k: partial(m.fit, table.X, table.y) for k, m in models.items()}, number))
        for side, model in models.items():
            scores[side].append(evaluate(kind, table, model))
    means = [float(np.mean([j.value for j in scores[side]])) for side in ("ours", "peer")]
    no_worse = means[0] >= means[1] - 0.002
    return beside(
        name,
        played,
        target=target,
        evidence=f"{scores['ours'][0].name} {means[0]:.4f} | {means[1]:.4f}{'' if no_worse else ' WORSE'}",
        same_work=no_worse,
    )


def n_rows_of(options: argparse.Namespace) -> int:
    return 5_000 if options.quick else 100_000


def fit(options: argparse.Namespace) -> Iterator[Row]:
    """50 trees to the end, root of p columns at each node: exact and in bins."""
    n_rows = n_rows_of(options)
    tables = partial(data.numbers, "classifier", n_rows)
    name = f"classifier {n_rows // 1000}k x 28, 50 trees"
    peer = partial(make, "sklearn", "forest", "classifier")
    for label, max_bins, target in ((", exact", None, ">= 3"), (", 255 bins", 255, ">= 5")):
        ours = make("spinney", "forest", "classifier", max_bins=max_bins)
        yield fit_sides(name + label, "classifier", tables, ours, peer(), target, options.rounds)
    if find_spec("ydf"):
        ours = make("spinney", "forest", "classifier", max_bins=255)
        yield fit_sides(f"{name} | YDF", "classifier", tables, ours, YdfForest(), ">= 2.5", options.rounds)


def extra_trees(options: argparse.Namespace) -> Iterator[Row]:
    """Random cuts, all rows."""
    n_rows = n_rows_of(options)
    sides = (make(library, "extra", "classifier") for library in ("spinney", "sklearn"))
    tables = partial(data.numbers, "classifier", n_rows)
    name = f"extra-trees {n_rows // 1000}k x 28, 50 trees"
    yield fit_sides(name, "classifier", tables, *sides, ">= 3", options.rounds)


def regression(options: argparse.Namespace) -> Iterator[Row]:
    """Try a third of the columns at each node: exact and in bins."""
    n_rows = n_rows_of(options)
    tables = partial(data.numbers, "regressor", n_rows)
    for label, max_bins in ((", exact", None), (", 255 bins", 255)):
        ours = make("spinney", "forest", "regressor", max_features=1 / 3, max_bins=max_bins)
        peer = make("sklearn", "forest", "regressor", max_features=1 / 3)
        name = f"regressor {n_rows // 1000}k x 28, 50 trees{label}"
        yield fit_sides(name, "regressor", tables, ours, peer, ">= 5", options.rounds)


def small(options: argparse.Namespace) -> Iterator[Row]:
    """200 rows, 500 trees: fixed costs."""
    n_trees = 50 if options.quick else 500
    for kind in ("classifier", "regressor"):
        sides = (make(library, "forest", kind, n_estimators=n_trees) for library in ("spinney", "sklearn"))
        tables = partial(data.numbers, kind, 200, n_test=5_000)
        row = fit_sides(f"{kind} 200 x 28, {n_trees} trees", kind, tables, *sides, ">= 10", max(options.rounds, 5))
        row.same_work = True  # on 200 rows the seeds decide which is better
        yield row


def real(options: argparse.Namespace) -> Iterator[Row]:
    """Parquet files of --data, such as covtype with a target of at least 5; no file, no row."""
    for path in sorted(options.data.glob("*.parquet")) if options.data else ():
        if task := data.real(path):
            kind, tables = task
            sides = (make(library, "forest", kind) for library in ("spinney", "sklearn"))
            target = ">= 5" if path.stem == "covtype" else ""
            yield fit_sides(f"{path.stem}, 50 trees", kind, tables, *sides, target, options.rounds)


@cache
def fitted(kind: str, n_rows: int, n_trees: int = 100) -> tuple[data.Split, Any, Any]:
    """Fit both forests once, for the workloads that use fitted ones."""
    table = data.numbers(kind, n_rows, seed=0, n_test=100_000)
    sides = (make(library, "forest", kind, n_estimators=n_trees) for library in ("spinney", "sklearn"))
    return table, *(model.fit(table.X, table.y) for model in sides)


def predict(options: argparse.Namespace) -> Iterator[Row]:
    """100k rows through 100 full-depth trees, two threads each."""
    for kind in ("classifier", "regressor"):
        table, ours, peer = fitted(kind, 2_000 if options.quick else 50_000)
        rows = table.X_test[:5_000] if options.quick else table.X_test
        played = play({"ours": partial(ours.predict, rows), "peer": partial(peer.predict, rows)}, options.rounds)
        yield beside(
            f"{kind} predict {len(rows) // 1000}k rows, 100 trees",
            played,
            target=">= 5",
            evidence=f"{ours.forest_.node_count} | {sum(t.tree_.node_count for t in peer.estimators_)} nodes",
        )


def one_row(options: argparse.Namespace) -> Iterator[Row]:
    """One row at a time through 100 trees: our handle, and the peer's predict."""
    for kind in ("classifier", "regressor"):
        table, ours, peer = fitted(kind, 2_000 if options.quick else 50_000)
        handle, peer = ours.to_predictor(), peer.set_params(n_jobs=1)
        rows = list(table.X_test[:5_000].astype(float))
        same = [handle.predict(row) for row in rows] == ours.predict(table.X_test[: len(rows)]).tolist()
        mine, theirs = _microseconds(handle.predict, rows), _microseconds(peer.predict, [r[None] for r in rows[:30]])
        yield Row(
            f"{kind} one row, 100 trees",
            mine,
            theirs,
            "us",
            theirs / mine,
            target="<= 20",
            target_value=mine,
            evidence="equal to predict" if same else "DIFFERS from predict",
            same_work=same,
        )


def _microseconds(call: Callable[[Any], Any], arguments: list[Any]) -> float:
    clock, times = time.perf_counter_ns, []
    for argument in arguments:
        start = clock()
        call(argument)
        times.append(clock() - start)
    return statistics.median(times) / 1000


def memory(options: argparse.Namespace) -> Iterator[Row]:
    """Peak memory of a fit above the data; each fit in a fresh process."""
    n_rows = n_rows_of(options)
    for kind in ("classifier", "regressor"):
        ours, peer = (peak_of_fit(library, kind, n_rows) for library in ("spinney", "sklearn"))
        name = f"{kind} {n_rows // 1000}k x 28, 50 trees"
        yield Row(name, ours, peer, "MiB", peer / ours, target=">= 1", evidence="the fitted forest included")


def peak_of_fit(library: str, kind: str, n_rows: int) -> float:
    """Start this program for one fit and return the MiB it prints."""
    command = [sys.executable, __file__, "--peak", library, kind, str(n_rows)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def report_peak(library: str, kind: str, n_rows: str) -> None:
    table = data.numbers(kind, int(n_rows), seed=0, n_test=0)
    options = {} if kind == "classifier" else {"max_features": 1 / 3}
    make(library, "forest", kind, n_estimators=2).fit(table.X[:200], table.y[:200])
    print(measured_peak(partial(make(library, "forest", kind, **options).fit, table.X, table.y)))


def files(options: argparse.Namespace) -> Iterator[Row]:
    """Size of the model file against the peer's pickle, and the time to load it."""
    for kind in ("classifier", "regressor"):
        _, ours, peer = fitted(kind, 2_000 if options.quick else 50_000)
        import spinney

        file = io.BytesIO()
        ours.save(file)
        pickled = pickle.dumps(peer)
        size, peer_size = len(file.getvalue()) / 2**20, len(pickled) / 2**20
        evidence = f"pickle of ours {len(pickle.dumps(ours)) / 2**20:.3g} MiB"
        yield Row(
            f"{kind} file, 100 trees", size, peer_size, "MiB", size / peer_size, target="<= 0.5", evidence=evidence
        )
        played = play(
            {
                "ours": lambda: spinney.load(io.BytesIO(file.getvalue())),  # noqa: B023
                "peer": lambda: pickle.loads(pickled),  # noqa: B023
            },
            options.rounds,
        )
        yield Row(
            f"{kind} load, 100 trees",
            median(played, "ours"),
            median(played, "peer"),
            ratio=ratio(played, "peer", "ours"),
            evidence="checked in full | unchecked",
            rounds=played,
        )


WORKLOADS = {f.__name__: f for f in (fit, extra_trees, regression, small, predict, one_row, memory, files, real)}


def main() -> int:
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="Parquet files for the workload 'real'")
    parser.add_argument("--peak", nargs=3, metavar=("LIBRARY", "KIND", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        report_peak(*options.peak)
        return 0
    return run(WORKLOADS, options)


if __name__ == "__main__":
    sys.exit(main())
