"""Studies beside the defaults of other libraries, on the same rows to learn from and to test.

Usage: ``python benchmarks/studies.py --data FOLDER [--minutes 2] [SET…]``; FOLDER as in sets.py, with Parquet files.
For each set a study runs within its minutes. Then every library that is installed learns, with its defaults, from the
same rows, and all are judged on the rows that were locked away: log loss, or the root of the mean squared error.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import spinney
import spinney._study.run as run
import spinney._study.study as entry
from sets import names
from sklearn.metrics import log_loss, root_mean_squared_error
from spinney._study.family import Size
from spinney._study.peers import peer_candidates

# Eight of different shape, all with a test part that tells something: numbers, many of them, categories of few and of
# many values, missing values, two to ten classes, values; four thousand to a hundred and twenty thousand rows.
USUAL = ("abalone", "spam", "pendigits", "dry_bean", "bike_sharing", "kc_house_sales", "adult", "hotel_bookings")


def main() -> None:
    """Run the studies and their peers, and print a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument(
        "--busy", type=int, metavar="CORES", help="count processor time of so many cores: for a machine that is busy"
    )
    parser.add_argument("sets", nargs="*", default=None)
    given = parser.parse_args()
    if given.busy:
        count_processor_time(given.busy)
    chosen = given.sets or [name for name in USUAL if name in names(given.data)]
    print(f"{'set':18} {'rows':>7} {'task':11} {'study':>9} {'by':12} {'s':>5}  {'best peer':>9} {'':15} no worse")
    n_won = 0
    for name in chosen:
        found, scores = judged(given.data / f"{name}.parquet", given.minutes)
        ours = loss(found, found.test_predictions[found.best])
        peer = min(scores, key=lambda one: scores[one])
        is_won = ours <= scores[peer] * (1 + 1e-9)
        n_won += is_won
        print(
            f"{name:18} {found.n_rows:7,} {found.task:11} {ours:9.4f} {found.best:12} {found.seconds:5.0f}  "
            f"{scores[peer]:9.4f} {peer:15} {'yes' if is_won else 'no'}   "
            + ", ".join(f"{one} {value:.4f}" for one, value in scores.items()),
            flush=True,
        )
    print(f"no worse than the best peer on {n_won} of {len(chosen)} sets")


def count_processor_time(n_cores: int) -> None:
    """Let studies take the time of their own process for the time of the day."""

    def now() -> float:
        return time.process_time() / n_cores

    clock = SimpleNamespace(monotonic=now, perf_counter=now)
    run.clock = entry.clock = clock


def judged(path: Path, minutes: float) -> tuple[Any, dict[str, float]]:
    """Study a set, and fit the peers to the same rows; return the study and the losses of the peers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = spinney.study(pl.read_parquet(path), "target", minutes=minutes)
        size = Size(len(found.y_train), 1, 1, 0 if found.classes is None else len(found.classes))
        scores = {}
        for peer in peer_candidates(found.task, size, 0):
            start = time.perf_counter()
            model = peer.estimator.fit(found.X_train, found.y_train)
            ask = model.predict if found.classes is None else model.predict_proba
            scores[peer.name] = loss(found, ask(found.X_test))
            print(f"  {peer.name}: {scores[peer.name]:.4f}, {time.perf_counter() - start:.0f} s", flush=True)
    print("\n".join(f"  {line}" for line in (*found.board(), *found.notes)), flush=True)
    return found, scores


def loss(found: Any, said: np.ndarray) -> float:
    """Log loss, or the root of the mean squared error, on the test part."""
    if found.classes is None:
        return float(root_mean_squared_error(found.y_test, said))
    return float(log_loss(found.y_test, said, labels=found.classes))


if __name__ == "__main__":
    main()
