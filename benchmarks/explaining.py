"""Partial dependence and permutation importance beside scikit-learn's functions of the same names.

Usage: ``python benchmarks/explaining.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
scikit-learn's functions are asked about the same spinney model, at the same values, so that the numbers must be equal
(the evidence is the largest difference), and about its own model with as many trees and leaves. Two threads where
a model has them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import data
import numpy as np
import spinney
from program import command_line, run
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.inspection import partial_dependence as sklearn_dependence
from sklearn.inspection import permutation_importance as sklearn_permutation
from timing import Row, beside, play

Numbers = np.ndarray
OWN, SAME, THEIRS = "spinney", "scikit-learn's function", "scikit-learn's function and model"


def rows_of(
    contestants: Mapping[str, Callable[[], Any]], name: str, target: str, far: float, options: Any
) -> Iterator[Row]:
    rounds = play(contestants, options.rounds)
    for peer in contestants:
        if peer != OWN:
            yield beside(
                f"{name} | {peer}",
                rounds,
                ours=OWN,
                peer=peer,
                target=target if peer == SAME else "",
                evidence=f"largest difference {far:.1g}" if peer == SAME else "",
                same_work=peer != SAME or far < 1e-9,
            )


def dependence(
    name: str, own: Any, peer: Any, columns: list[int], n_rows: int, n_points: int, target: str, options: Any
) -> Iterator[Row]:
    table = data.numbers("regressor", max(n_rows, 20_000 if not options.quick else 2_000), 0)
    X, y = np.ascontiguousarray(table.X, dtype=np.float64), table.y
    own.fit(X, y)
    peer.fit(X, y)
    rows = X[:n_rows]
    found = spinney.partial_dependence(own, rows, columns, n_points=n_points)
    values = dict(zip(columns, found.grid, strict=True))

    def theirs(model: Any) -> Any:
        return sklearn_dependence(model, rows, columns, custom_values=values, method="brute", kind="average")

    far = float(np.abs(theirs(own)["average"][0] - found.average).max())
    contestants = {
        OWN: lambda: spinney.partial_dependence(own, rows, columns, n_points=n_points),
        SAME: lambda: theirs(own),
        THEIRS: lambda: theirs(peer),
    }
    yield from rows_of(contestants, name, target, far, options)


def forest(options: Any) -> Iterator[Row]:
    """Ask a forest of 50 trees grown out, one column, 50 values."""
    n = 500 if options.quick else 2_000
    own = spinney.RandomForestRegressor(50, max_features=1 / 3, random_state=0, n_jobs=2)
    peer = RandomForestRegressor(50, max_features=1 / 3, random_state=0, n_jobs=2)
    yield from dependence(f"forest, {n:,} rows × 50 values", own, peer, [0], n, 50, ">= 5", options)


def boosting(options: Any) -> Iterator[Row]:
    """Ask 100 boosted trees of 31 leaves, one column, 50 values."""
    n = 1_000 if options.quick else 10_000
    own = spinney.GradientBoostingRegressor(n_estimators=100, max_leaf_nodes=31, n_jobs=2)
    peer = HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=31, early_stopping=False)
    yield from dependence(f"boosting, {n:,} rows × 50 values", own, peer, [0], n, 50, ">= 3", options)


def pair(options: Any) -> Iterator[Row]:
    """Ask 100 boosted trees of 31 leaves, two columns, 20 × 20 values."""
    n = 200 if options.quick else 2_000
    own = spinney.GradientBoostingRegressor(n_estimators=100, max_leaf_nodes=31, n_jobs=2)
    peer = HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=31, early_stopping=False)
    yield from dependence(f"boosting, {n:,} rows × 20 × 20 values", own, peer, [0, 1], n, 20, ">= 2", options)


def exchanged(name: str, own: Any, peer: Any, options: Any) -> Iterator[Row]:
    """Draw five permutations of each of 28 columns."""
    n = 1_000 if options.quick else 5_000
    table = data.numbers("regressor", n, 0)
    X, y = np.ascontiguousarray(table.X, dtype=np.float64), table.y
    own.fit(X, y)
    peer.fit(X, y)
    found = spinney.permutation_importance(own, X, y, random_state=0).by_tree.T
    far = float(np.abs(found - sklearn_permutation(own, X, y, random_state=0).importances).max())
    contestants = {
        OWN: lambda: spinney.permutation_importance(own, X, y, random_state=0),
        SAME: lambda: sklearn_permutation(own, X, y, random_state=0),
        THEIRS: lambda: sklearn_permutation(peer, X, y, random_state=0),
    }
    yield from rows_of(contestants, f"permutation of {name}, {n:,} rows", "", far, options)


def permutation(options: Any) -> Iterator[Row]:
    """Permute the columns of a forest of 50 trees grown out."""
    own = spinney.RandomForestRegressor(50, max_features=1 / 3, random_state=0, n_jobs=2)
    peer = RandomForestRegressor(50, max_features=1 / 3, random_state=0, n_jobs=2)
    yield from exchanged("a forest", own, peer, options)


def permutation_boosting(options: Any) -> Iterator[Row]:
    """Permute the columns of 100 boosted trees of 31 leaves."""
    own = spinney.GradientBoostingRegressor(n_estimators=100, max_leaf_nodes=31, n_jobs=2)
    peer = HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=31, early_stopping=False)
    yield from exchanged("boosting", own, peer, options)


WORKLOADS = {
    "forest": forest,
    "boosting": boosting,
    "pair": pair,
    "permutation": permutation,
    "permutation-boosting": permutation_boosting,
}

if __name__ == "__main__":
    sys.exit(run(WORKLOADS, command_line(__doc__ or "", WORKLOADS).parse_args()))
