"""Uncertainty of forests: speed of quantiles beside quantile-forest's, and what the rest costs.

Usage: ``python benchmarks/forest_uncertainty.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE] [--data FOLDER]``.
Without names every workload runs. README.md in this folder states what each one claims. ``coverage`` needs the folder
of open sets that accuracy.py takes, and is left out without it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import sets
from program import command_line, run
from timing import Row, beside, median, play

N_JOBS = 2
LEVELS = [0.05, 0.5, 0.95]
SETS = ["bike_sharing", "boston", "airfoil", "california_housing", "kin8nm", "auto_mpg", "ozone_la", "diabetes_lars"]
MOST_ROWS = 3000


@cache
def table(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten normal columns; the spread of y depends on one of them."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 10))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + np.exp(X[:, 3] / 2) * random.normal(size=n_rows)


def make(library: str, min_samples_leaf: int) -> Any:
    """Make an unfitted forest of 100 trees with the rows of every leaf kept whole."""
    shared: dict[str, Any] = {
        "n_estimators": 100,
        "random_state": 0,
        "n_jobs": N_JOBS,
        "min_samples_leaf": min_samples_leaf,
    }
    shared["max_features"] = 1 / 3
    if library == "spinney":
        from spinney import RandomForestRegressor

        return RandomForestRegressor(keep_rows=True, **shared)
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(max_samples_leaf=None, **shared)


def loss(y: np.ndarray, quantiles: np.ndarray) -> float:
    """Mean pinball loss over the levels."""
    off = y[:, np.newaxis] - quantiles
    return float(np.mean(np.maximum(np.array(LEVELS) * off, (np.array(LEVELS) - 1) * off)))


def quantiles(options: argparse.Namespace) -> Iterator[Row]:
    """Fit, and predict three quantiles of new rows: all training rows of each leaf count, on both sides."""
    n_rows, n_new = (2_000, 500) if options.quick else (20_000, 20_000)
    X, y = table(n_rows)
    new, truth = table(n_new, 1)
    for leaf in (1, 5):
        ours, peer = make("spinney", leaf), make("peer", leaf)
        label = f"{n_rows // 1000}k x 10, 100 trees, leaves of {leaf}"
        played = play({"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}, options.rounds)
        yield _row(f"fit {label}", played, ">= 3", "")
        found = ours.predict_quantiles(new, LEVELS), peer.predict(new, quantiles=LEVELS)
        losses = [loss(truth, q) for q in found]
        sides = {
            "ours": partial(ours.predict_quantiles, new, LEVELS),
            "peer": partial(peer.predict, new, quantiles=LEVELS),
        }
        row = _row(f"quantiles {label}", play(sides, options.rounds), ">= 3", f"loss {losses[0]:.4f} | {losses[1]:.4f}")
        row.same_work = losses[0] <= losses[1] * 1.02
        yield row


def others(options: argparse.Namespace) -> Iterator[Row]:
    """Time standard errors, intervals and support beside a plain prediction of the same rows."""
    n_rows, n_new = (2_000, 500) if options.quick else (20_000, 2_000)
    X, y = table(n_rows)
    new, _ = table(n_new, 1)
    forest = make("spinney", 5).fit(X, y)
    plain = partial(forest.predict, new)
    calls = {
        "standard errors": partial(forest.predict_standard_error, new, corrected=False),
        "intervals, quantile": partial(forest.predict_interval, new),
        "intervals, jackknife+": partial(forest.predict_interval, new, method="jackknife+"),
        "support": partial(forest.predict_support, new),
    }
    for name, call in calls.items():
        played = play({"ours": call, "peer": plain}, options.rounds)
        yield Row(f"{name}, {n_new} rows", median(played, "ours"), evidence=f"predict {median(played, 'peer'):.3g} s")


def coverage(options: argparse.Namespace) -> Iterator[Row]:
    """Count what intervals of 90 % by quantiles, and by the jackknife+, cover of rows not learned from."""
    if options.data is None:
        return
    for name in SETS[:1] if options.quick else SETS:
        table = sets.load(options.data, name)
        table = table if len(table.y) <= MOST_ROWS else sets._sample(table, MOST_ROWS)
        fold = sets.seed_of(name, 1).permutation(len(table.y)) % 3
        found: dict[str, list[list[float]]] = {"quantile": [], "jackknife+": []}
        y, seconds = table.y.astype(np.float64), dict.fromkeys(found, 0.0)
        for k in range(3):
            new = fold == k
            forest = make("spinney", 1).set_params(max_features=1.0).fit(table.X[~new], y[~new])
            for method, figures in found.items():
                began = time.perf_counter()
                low, high = forest.predict_interval(table.X[new], method=method).T
                seconds[method] += time.perf_counter() - began
                covered, missed = (low <= y[new]) & (y[new] <= high), np.maximum(low - y[new], y[new] - high)
                score = high - low + 20 * np.maximum(missed, 0)
                figures.append([covered.mean(), score.mean(), (low < y.min()).mean()])
        ours, peer = (np.mean(figures, axis=0) for figures in found.values())
        row = Row(f"coverage, {name}", seconds["quantile"], seconds["jackknife+"])
        row.evidence = (
            f"covered {ours[0]:.1%} | {peer[0]:.1%}, interval score {ours[1]:.4g} | {peer[1]:.4g}, "
            f"lower ends below all targets {ours[2]:.0%} | {peer[2]:.0%}"
        )
        row.same_work = abs(ours[0] - 0.9) <= 0.02 and ours[2] == 0
        yield row


def _row(name: str, played: Any, target: str, evidence: str) -> Row:
    return beside(
        name,
        played,
        target=target,
        evidence=evidence,
    )


WORKLOADS = {f.__name__: f for f in (quantiles, others, coverage)}


def main() -> int:
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="open sets, for coverage")
    return run(WORKLOADS, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
