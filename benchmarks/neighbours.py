"""Neighbours beside scikit-learn: all rows met, a tree in space, and k by cross-validation; two threads.

Usage: ``python benchmarks/neighbours.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from program import command_line, run
from timing import Row, beside, median, play

TARGETS = {12: ">= 2", 3: ">= 2"}


def _table(n: int, n_columns: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1).astype(int)


def _queries(options: argparse.Namespace, n_columns: int, algorithms: tuple[str, ...], k: int) -> Row:
    """Fit and ask for the neighbours of a tenth as many rows; the peer by the fastest of its algorithms."""
    import sklearn.neighbors
    import spinney

    n = 20_000 if options.quick else 100_000
    X, y = _table(n, n_columns)
    queries = _table(n // 10, n_columns, seed=1)[0]
    models: dict[str, Any] = {"ours": spinney.KNeighborsClassifier(k, scale=None, n_jobs=2)}
    models |= {name: sklearn.neighbors.KNeighborsClassifier(k, algorithm=name, n_jobs=2) for name in algorithms}
    rounds = play({side: partial(_ask, model, X, y, queries) for side, model in models.items()}, options.rounds)
    best = min(algorithms, key=lambda name: median(rounds, name))
    found = {side: models[side].kneighbors(queries, return_distance=False) for side in ("ours", best)}
    same = float((found["ours"] == found[best]).mean())
    index = models["ours"].neighbors_.index(2)
    return beside(
        f"{n // 1000}k x {n_columns}, {n // 10_000}k queries, k = {k}",
        rounds,
        peer=best,
        target=TARGETS[n_columns],
        evidence=f"{'tree' if index.has_tree else 'all rows'} | {best}; {same:.2%} of the neighbours are the same",
        same_work=same > 0.9999,
    )


def _ask(model: Any, X: Any, y: Any, queries: Any) -> None:
    model.fit(X, y).kneighbors(queries)


def all_rows(options: argparse.Namespace) -> Iterator[Row]:
    """Twelve columns, in which a tree is of no use."""
    for k in (5, 30):
        yield _queries(options, 12, ("brute",), k)


def space(options: argparse.Namespace) -> Iterator[Row]:
    """Three columns, for trees."""
    yield _queries(options, 3, ("kd_tree", "ball_tree"), 5)


def choice(options: argparse.Namespace) -> Iterator[Row]:
    """Choose k among 1 to 30 by five folds."""
    import sklearn.model_selection
    import sklearn.neighbors
    import spinney

    n = 2_000 if options.quick else 10_000
    X, y = _table(n, 12)
    folds = sklearn.model_selection.KFold(5)
    ours = spinney.KNeighborsClassifier("cv", cv=folds, scale=None, n_jobs=2)
    peer = sklearn.model_selection.GridSearchCV(
        sklearn.neighbors.KNeighborsClassifier(n_jobs=2), {"n_neighbors": list(range(1, 31))}, cv=folds
    )
    rounds = play({"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}, options.rounds)
    same = ours.n_neighbors_ == peer.best_params_["n_neighbors"]
    scores = np.abs(1 - ours.cv_results_["error"] - peer.cv_results_["mean_test_score"]).max()
    yield beside(
        f"k of 30 by 5 folds, {n // 1000}k x 12",
        rounds,
        target=">= 20",
        evidence=f"k = {ours.n_neighbors_} | {peer.best_params_['n_neighbors']}, scores differ by {scores:.1g}",
        same_work=bool(same and scores < 1e-9),
    )


WORKLOADS = {"all_rows": all_rows, "space": space, "choice": choice}

if __name__ == "__main__":
    sys.exit(run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args()))
