"""Uncertainty of forests: speed of quantiles beside quantile-forest's, and what the rest costs.

Usage: ``python benchmarks/forest_uncertainty.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
Without names every workload runs. The README beside this file says what each one claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from program import command_line, run
from timing import Row, median, play, ratio

N_JOBS = 2
LEVELS = [0.05, 0.5, 0.95]


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
        "intervals, jackknife+": partial(forest.predict_interval, new),
        "intervals, quantile": partial(forest.predict_interval, new, method="quantile"),
        "support": partial(forest.predict_support, new),
    }
    for name, call in calls.items():
        played = play({"ours": call, "peer": plain}, options.rounds)
        yield Row(f"{name}, {n_new} rows", median(played, "ours"), evidence=f"predict {median(played, 'peer'):.3g} s")


def _row(name: str, played: Any, target: str, evidence: str) -> Row:
    return Row(
        name,
        median(played, "ours"),
        median(played, "peer"),
        ratio=ratio(played, "peer", "ours"),
        cpu_ratio=ratio(played, "peer", "ours", "cpu"),
        target=target,
        evidence=evidence,
        rounds=played,
    )


WORKLOADS = {f.__name__: f for f in (quantiles, others)}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
