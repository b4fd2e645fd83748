"""Speed of importances: out-of-bag permutation beside scikit-learn's on held-out rows, and the unbiased decrease.

Usage: ``python benchmarks/importances.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
Without names every workload runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial

import data
from forests import N_JOBS, make
from program import command_line, run
from scipy.stats import spearmanr
from sklearn.inspection import permutation_importance
from timing import Row, beside, median, play, ratio

KINDS = ("classifier", "regressor")


def permutation(options: argparse.Namespace) -> Iterator[Row]:
    """Each of 28 columns permuted once, 50 trees; each tree is evaluated on the 37 % of the rows out of bag."""
    n_rows = 4_000 if options.quick else 20_000
    for kind in KINDS:
        table = data.numbers(kind, n_rows, seed=0, n_test=round(0.37 * n_rows))
        ours, peer = (
            make(library, "forest", kind, max_features="sqrt").fit(table.X, table.y)
            for library in ("spinney", "sklearn")
        )
        contestants = {
            "spinney": partial(ours.importances, table.X, table.y),
            "sklearn": partial(
                permutation_importance, peer, table.X_test, table.y_test, n_repeats=1, random_state=0, n_jobs=1
            ),
        }
        played = play(contestants, options.rounds)
        found, theirs = contestants["spinney"]().importance, contestants["sklearn"]().importances_mean
        alike = spearmanr(found, theirs).statistic
        yield beside(
            f"{kind} {n_rows // 1000}k x 28, 50 trees: permutation",
            played,
            ours="spinney",
            peer="sklearn",
            evidence=f"rank correlation of the importances {alike:.2f}; {N_JOBS} threads",
            same_work=alike > 0.5,
        )


def unbiased(options: argparse.Namespace) -> Iterator[Row]:
    """Unbiased importances of a fitted forest against its fit."""
    n_rows = 4_000 if options.quick else 20_000
    for kind in KINDS:
        table = data.numbers(kind, n_rows, seed=0, n_test=0)
        forest = make("spinney", "forest", kind, max_features="sqrt").fit(table.X, table.y)
        grower = make("spinney", "forest", kind, max_features="sqrt")
        played = play(
            {
                "fit": partial(grower.fit, table.X, table.y),
                "unbiased": partial(forest.importances, table.X, table.y, "unbiased"),
            },
            options.rounds,
        )
        yield Row(
            f"{kind} {n_rows // 1000}k x 28, 50 trees: unbiased / fit",
            median(played, "unbiased"),
            ratio=ratio(played, "unbiased", "fit"),
            cpu_ratio=ratio(played, "unbiased", "fit", "cpu"),
            evidence=f"the fit took {median(played, 'fit'):.3g} s",
            rounds=played,
        )


WORKLOADS = {"permutation": permutation, "unbiased": unbiased}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
