"""Functional boosting: the best of all pairs of columns in each round, and trees beside scikit-learn's boosting.

Usage: ``python benchmarks/functional.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial

import data
import numpy as np
from program import command_line, run
from timing import Row, beside, median, play


def pairs(options: argparse.Namespace) -> Iterator[Row]:
    """Planes of the best two of 100 columns, 100 rounds; seconds, as no peer does this."""
    import spinney

    rng = np.random.default_rng(0)
    n = 2_000 if options.quick else 20_000
    X = rng.normal(size=(n, 100))
    y = X[:, 0] + 0.5 * X[:, 7] + 0.2 * X[:, 3] * X[:, 5] + rng.normal(size=n)
    model = spinney.FunctionalBoostingRegressor("linear_pairs", n_estimators=100, n_jobs=2)
    rounds = play({"ours": partial(model.fit, X, y)}, options.rounds)
    taken = median(rounds, "ours")
    evidence = f"R² {model.score(X, y):.3f}, 4,950 pairs a round"
    name = f"linear pairs, {n // 1000}k x 100, 100 rounds"
    yield Row(name, taken, target="<= 20", target_value=taken, evidence=evidence)


def trees(options: argparse.Namespace) -> Iterator[Row]:
    """Fit the same boosted trees of depth 3, exact search on both sides."""
    import sklearn.ensemble
    import spinney

    table = data.numbers("regressor", 2_000 if options.quick else 20_000, seed=0, n_test=5_000)
    shared = {"n_estimators": 20, "learning_rate": 0.1}
    models = {
        "ours": spinney.FunctionalBoostingRegressor(spinney.learners.Trees(max_depth=3), n_jobs=2, **shared),
        "peer": sklearn.ensemble.GradientBoostingRegressor(max_depth=3, **shared),
    }
    rounds = play({side: partial(model.fit, table.X, table.y) for side, model in models.items()}, options.rounds)
    errors = {side: float(np.mean((m.predict(table.X_test) - table.y_test) ** 2)) for side, m in models.items()}
    yield beside(
        f"trees of depth 3, {len(table.X) // 1000}k x 28, 20 rounds",
        rounds,
        evidence=f"squared error {errors['ours']:.4f} | {errors['peer']:.4f}",
        same_work=errors["ours"] <= errors["peer"] * 1.001,
    )


WORKLOADS = {"pairs": pairs, "trees": trees}

if __name__ == "__main__":
    sys.exit(run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args()))
