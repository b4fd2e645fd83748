"""Fits of very many classes beside scikit-learn's: three rows of each class, six columns.

Usage: ``python benchmarks/many_classes.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
Both sides have one thread. README.md in this folder states what each workload claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import sklearn.ensemble
import sklearn.neighbors
import sklearn.tree
import spinney
from program import command_line, run
from timing import Row, beside, median, play, ratio

FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {  # name, scikit-learn's module, parameters
    "tree": ("DecisionTreeClassifier", "tree", {}),
    "tree, entropy": ("DecisionTreeClassifier", "tree", {"criterion": "entropy"}),
    "extra_tree": ("ExtraTreeClassifier", "tree", {}),
    "forest of 3": ("RandomForestClassifier", "ensemble", {"n_estimators": 3}),
    "extra_trees of 3": ("ExtraTreesClassifier", "ensemble", {"n_estimators": 3}),
    "bagging of 3": ("BaggingClassifier", "ensemble", {"n_estimators": 3}),
    "adaboost of 3": ("AdaBoostClassifier", "ensemble", {"n_estimators": 3}),
    "neighbours": ("KNeighborsClassifier", "neighbors", {}),
}


def table(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 3)
    return rng.normal(size=(n_classes, 6))[y] + 0.3 * rng.normal(size=(len(y), 6)), y


def families(options: argparse.Namespace) -> Iterator[Row]:
    """Every family whose time grows with the rows and the classes."""
    n_classes = 500 if options.quick else 5000
    X, y = table(n_classes)
    for family, (name, module, parameters) in FAMILIES.items():
        ours = getattr(spinney, name)(**parameters)
        peer = getattr(getattr(sklearn, module), name)(**parameters)
        if "n_jobs" in ours.get_params():
            ours.set_params(n_jobs=1)
        played = play({"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}, options.rounds)
        evidence = f"accuracy {ours.score(X[:300], y[:300]):.3f} | {peer.score(X[:300], y[:300]):.3f}"
        target = ">= 2" if family == "tree" else ""
        yield beside(f"{family}, {n_classes} classes", played, target=target, evidence=evidence)


def growth(options: argparse.Namespace) -> Iterator[Row]:
    """How the time of a tree grows when the classes double; ours alone, leaves of few rows in all."""
    sizes = (500, 1000, 2000) if options.quick else (1000, 2000, 4000)
    tables = {n: table(n) for n in sizes}
    model = spinney.DecisionTreeClassifier(max_depth=6, n_jobs=1)
    played = play({n: partial(model.fit, *tables[n]) for n in sizes}, options.rounds)
    for before, after in pairwise(sizes):
        yield Row(
            f"tree of depth 6, {before} -> {after} classes",
            median(played, after),
            ratio=ratio(played, after, before),
            cpu_ratio=ratio(played, after, before, "cpu"),
            target="<= 3",
            target_value=ratio(played, after, before, "cpu"),
            rounds=played,
        )


WORKLOADS = {"families": families, "growth": growth}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS, rounds=1).parse_args())


if __name__ == "__main__":
    sys.exit(main())
