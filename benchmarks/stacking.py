"""Stacking beside scikit-learn's: the same members, the same folds, two workers on both sides.

Usage: ``python benchmarks/stacking.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``. Without names every workload
runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import data
import numpy as np
from program import command_line, run
from timing import Row, beside, play_round

N_JOBS = 2
N_ROWS = 10_000


def sides(name: str, members: list[tuple[str, Any]], options: argparse.Namespace) -> Iterator[Row]:
    """Fit both to the same folds; they predict the same, but for the solver of the last step."""
    import sklearn.ensemble
    import spinney
    from sklearn.model_selection import StratifiedKFold

    table = data.numbers("classifier", N_ROWS // 10 if options.quick else N_ROWS, seed=0, n_test=5_000)
    more = {"cv": StratifiedKFold(5, shuffle=True, random_state=0), "n_jobs": N_JOBS}
    models = {
        "ours": spinney.StackingClassifier(members, random_state=0, **more),
        "peer": sklearn.ensemble.StackingClassifier(members, **more),
    }
    rounds = []
    for number in range(options.rounds):
        rounds.append(play_round({k: partial(m.fit, table.X, table.y) for k, m in models.items()}, number))
    proba = [model.predict_proba(table.X_test)[:, 1] for model in models.values()]
    gap = float(np.abs(proba[0] - proba[1]).max())
    yield beside(
        f"{name}, {N_ROWS // 1000}k x 28, 5 folds, fit",
        rounds,
        evidence=f"largest difference of a probability {gap:.1e}",
        same_work=gap < 0.01,
    )


def own_members(options: argparse.Namespace) -> Iterator[Row]:
    """Members of spinney on both sides."""
    import spinney

    members = [
        ("tree", spinney.DecisionTreeClassifier(min_samples_leaf=20)),
        ("forest", spinney.RandomForestClassifier(50, random_state=0)),
        ("boosting", spinney.GradientBoostingClassifier(n_estimators=50, random_state=0)),
        ("linear", spinney.LinearClassifier()),
    ]
    yield from sides("four members of spinney", members, options)


def their_members(options: argparse.Namespace) -> Iterator[Row]:
    """Members of scikit-learn on both sides."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    members = [
        ("tree", DecisionTreeClassifier(min_samples_leaf=20, random_state=0)),
        ("forest", RandomForestClassifier(50, random_state=0)),
        ("near", KNeighborsClassifier(15)),
        ("line", LogisticRegression()),
    ]
    yield from sides("four members of scikit-learn", members, options)


WORKLOADS = {"own_members": own_members, "their_members": their_members}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
