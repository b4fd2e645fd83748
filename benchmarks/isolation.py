"""Speed and ranking of isolation forests beside scikit-learn's.

Usage: ``python benchmarks/isolation.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
Without names every workload runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from program import command_line, run
from timing import Rounds, Row, beside, play_round

N_JOBS = 2


def make(library: str, **options: Any) -> Any:
    """Make an unfitted isolation forest with two threads."""
    if library == "sklearn":
        import sklearn.ensemble as module
    else:
        import spinney as module
    return module.IsolationForest(**({"n_jobs": N_JOBS, "random_state": 0} | options))


def table_of(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated normal rows and, one in fifty, rows spread evenly."""
    rng = np.random.default_rng(seed)
    n_odd = n_rows // 50
    inside = rng.normal(size=(n_rows - n_odd, 10)) @ rng.normal(size=(10, 10)) / 3
    return np.vstack([inside, rng.uniform(-4, 4, size=(n_odd, 10))]), np.repeat([0, 1], [n_rows - n_odd, n_odd])


def sides(options: argparse.Namespace, n_rows: int, what: str) -> Row:
    """Fit or score a new table each round. No worse: the mean AUC is at most 0.002 below the peer's."""
    from sklearn.metrics import roc_auc_score

    played: Rounds = []
    auc: dict[str, list[float]] = {"ours": [], "peer": []}
    for number in range(options.rounds):
        X, y = table_of(n_rows, number)
        models = {"ours": make("spinney", random_state=number), "peer": make("sklearn", random_state=number)}
        if what == "score":
            for model in models.values():
                model.fit(X)
        action = "fit" if what == "fit" else "score_samples"
        played.append(play_round({side: partial(getattr(m, action), X) for side, m in models.items()}, number))
        for side, model in models.items():
            auc[side].append(float(roc_auc_score(y, -model.score_samples(X))))
    means = [float(np.mean(auc[side])) for side in ("ours", "peer")]
    no_worse = means[0] >= means[1] - 0.002
    return beside(
        f"isolation {what} {n_rows // 1000}k x 10, 100 trees",
        played,
        target=">= 1",
        evidence=f"AUC {means[0]:.4f} | {means[1]:.4f}{'' if no_worse else ' WORSE'}",
        same_work=no_worse,
    )


def fit(options: argparse.Namespace) -> Iterator[Row]:
    """Grow 100 trees of 256 rows each."""
    for n_rows in (2_000,) if options.quick else (2_000, 100_000):
        yield sides(options, n_rows, "fit")


def score(options: argparse.Namespace) -> Iterator[Row]:
    """Score the training rows."""
    for n_rows in (2_000,) if options.quick else (2_000, 100_000):
        yield sides(options, n_rows, "score")


WORKLOADS = {f.__name__: f for f in (fit, score)}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS, rounds=5).parse_args())


if __name__ == "__main__":
    sys.exit(main())
