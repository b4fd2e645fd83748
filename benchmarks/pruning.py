"""Speed of pruning: the path of a full tree, and cross-validated pruning, as multiples of one fit.

Usage: ``python benchmarks/pruning.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
Without names every workload runs. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial

import data
from models import make
from program import command_line, run
from timing import Row, beside, median, play, ratio

KINDS = ("classifier", "regressor")


def path(options: argparse.Namespace) -> Iterator[Row]:
    """Weakest-link sequence of a full tree against the fit that grew it."""
    n_rows = 50_000 if options.quick else 200_000
    for kind in KINDS:
        table = data.numbers(kind, n_rows, seed=0, n_test=0)
        model = make("spinney", kind).fit(table.X, table.y)
        grower = make("spinney", kind)
        played = play(
            {"fit": partial(grower.fit, table.X, table.y), "path": model.cost_complexity_pruning_path}, options.rounds
        )
        yield Row(
            f"{kind} {n_rows // 1000}k x 28: path / fit",
            median(played, "path"),
            ratio=ratio(played, "path", "fit"),
            cpu_ratio=ratio(played, "path", "fit", "cpu"),
            target="<= 0.05",
            evidence=f"the fit took {median(played, 'fit'):.3g} s; {model.get_n_leaves()} leaves",
            rounds=played,
        )


def peer_path(options: argparse.Namespace) -> Iterator[Row]:
    """Path from the table, growth included, beside scikit-learn's, which is quadratic."""
    n_rows = 4_000 if options.quick else 16_000
    for kind in KINDS:
        table = data.numbers(kind, n_rows, seed=0, n_test=0)
        contestants = {
            library: partial(make(library, kind).cost_complexity_pruning_path, table.X, table.y)
            for library in ("spinney", "sklearn")
        }
        played = play(contestants, options.rounds)
        totals = [call().impurities[-1] for call in contestants.values()]
        yield beside(
            f"{kind} {n_rows // 1000}k x 28: fit and path",
            played,
            ours="spinney",
            peer="sklearn",
            evidence=f"root's risk {totals[0]:.6g} | {totals[1]:.6g}",
            same_work=abs(totals[0] - totals[1]) < 1e-6 * totals[1],
        )


def cross_validation(options: argparse.Namespace) -> Iterator[Row]:
    """Ten folds, all nested trees evaluated, against one fit."""
    n_rows = 20_000 if options.quick else 100_000
    for kind in KINDS:
        table = data.numbers(kind, n_rows, seed=0, n_test=0)
        X = table.X[:, :20].copy()
        models = {"fit": make("spinney", kind), "pruned": make("spinney", kind, prune="cv", cv=10)}
        played = play({name: partial(model.fit, X, table.y) for name, model in models.items()}, options.rounds)
        kept = models["pruned"]
        yield Row(
            f"{kind} {n_rows // 1000}k x 20: 10 folds / fit",
            median(played, "pruned"),
            ratio=ratio(played, "pruned", "fit"),
            cpu_ratio=ratio(played, "pruned", "fit", "cpu"),
            target="<= 12",
            evidence=f"the fit took {median(played, 'fit'):.3g} s; {len(kept.cp_table_)} trees evaluated, "
            f"{kept.get_n_leaves()} leaves kept of {kept.cp_table_.n_leaves[-1]}",
            rounds=played,
        )


WORKLOADS = {"path": path, "peer_path": peer_path, "cross_validation": cross_validation}


def main() -> int:
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args())


if __name__ == "__main__":
    sys.exit(main())
