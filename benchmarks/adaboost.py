"""AdaBoost beside scikit-learn's: each library's own trees, the same rounds, two workers where there are workers.

Usage: ``python benchmarks/adaboost.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``. Without names every workload
runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial

import data
import numpy as np
from program import command_line, run
from timing import Rounds, Row, beside, play_round

N_JOBS = 2


def sides(name: str, depth: int, table: data.Split, n_estimators: int, rounds: int, target: str) -> Iterator[Row]:
    """Fit both; the same trees vote with the same weights, up to ties between cuts."""
    import sklearn.ensemble
    import sklearn.tree
    import spinney

    stump = sklearn.tree.DecisionTreeClassifier(max_depth=depth)
    models = {
        "ours": spinney.AdaBoostClassifier(n_estimators=n_estimators, max_depth=depth, n_jobs=N_JOBS),
        "peer": sklearn.ensemble.AdaBoostClassifier(stump, n_estimators=n_estimators, random_state=0),
    }
    models["ours"].fit(table.X[:500], table.y[:500])  # so that workers are there
    played: Rounds = [
        play_round({side: partial(model.fit, table.X, table.y) for side, model in models.items()}, number)
        for number in range(rounds)
    ]
    accuracy = {side: float(np.mean(m.predict(table.X_test) == table.y_test)) for side, m in models.items()}
    no_worse = accuracy["ours"] >= accuracy["peer"] - 0.002
    yield beside(
        name,
        played,
        target=target,
        evidence=f"accuracy {accuracy['ours']:.4f} | {accuracy['peer']:.4f}{'' if no_worse else ' WORSE'}",
        same_work=no_worse,
    )


def table_of(options: argparse.Namespace) -> data.Split:
    return data.numbers("classifier", 5_000 if options.quick else 50_000, seed=0, n_test=20_000)


def stumps(options: argparse.Namespace) -> Iterator[Row]:
    """Trees of one split."""
    yield from sides("100 stumps, 50k x 28", 1, table_of(options), 100, options.rounds, ">= 50")


def depth_3(options: argparse.Namespace) -> Iterator[Row]:
    """Trees of depth 3."""
    yield from sides("100 trees of depth 3, 50k x 28", 3, table_of(options), 100, options.rounds, ">= 20")


WORKLOADS = {"stumps": stumps, "depth_3": depth_3}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
