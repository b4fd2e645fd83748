"""The main rows of all families on one page, two threads, with what is asked of this machine's instruction set.

Usage: ``[SPINNEY_ISA=avx2] python benchmarks/machines.py [WORKLOAD …] [--quick] [--rounds N] [--peers NAME …]
[--json FILE]``. The workloads are those of boosting.py, forests.py, trees.py and shap_values.py; the peers are those
that are installed.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boosters
import boosting
import forests
import shap_values
import trees
from program import command_line, run
from spinney import _engine
from timing import Row


def instruction_set() -> str:
    """Return what the engine uses here: avx512, avx2, base (plain x86) or arm64."""
    return "arm64" if platform.machine() in ("aarch64", "arm64") else str(_engine.instruction_set())


Targets = dict[str, float]  # by instruction set: how many times as fast as the fastest peer


def asked(workload: Callable[[Any], Iterator[Row]], targets: dict[str, Targets]) -> Callable[[Any], Iterator[Row]]:
    """Return the first row a target goes with for each of these parts of a name, with this instruction set's target."""

    def rows(options: argparse.Namespace) -> Iterator[Row]:
        waiting = dict(targets)
        for row in workload(options):
            found = next((part for part in waiting if part in row.workload and row.target), None)
            if found is not None:
                bound = waiting.pop(found).get(instruction_set())
                yield replace(row, target="" if bound is None else f">= {bound:g}")
            if not waiting:
                return

    return rows


def bounds(avx512: float, avx2: float, arm64: float) -> Targets:
    """Name the targets."""
    return {"avx512": avx512, "avx2": avx2, "arm64": arm64}


WORKLOADS = {
    "boosting_large": asked(boosting.large, {"2 threads": bounds(2.4, 2.4, 1.8)}),
    "boosting_middle": asked(boosting.middle, {"2 threads": bounds(2.3, 2.3, 1.8)}),
    "boosting_small": asked(boosting.small, {"2 threads": bounds(3, 3, 2.5)}),
    "boosting_wide": asked(boosting.wide, {"2 threads": bounds(3.2, 3.2, 2.5)}),
    "forest": asked(forests.fit, {"exact": bounds(6.5, 6.5, 5)}),
    "forest_regression": asked(forests.regression, {"exact": bounds(5, 5, 4.5)}),
    "extra_trees": asked(forests.extra_trees, {"extra-trees": bounds(3.2, 3.2, 3.5)}),
    "tree": asked(
        trees.full_depth,
        {"classifier": bounds(25, 25, 25), "regressor": bounds(22, 22, 22)},
    ),
    "shap": asked(shap_values.boosted, {"n_jobs=2": bounds(13, 13, 17)}),
    "predict": asked(boosting.predict, {"predict 20000 rows, 200": {}, "oblivious": bounds(1, 1, 1)}),
}


def main() -> int:
    """Run the workloads named on the command line."""
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--peers", nargs="+", help="boosting: only these")
    parser.set_defaults(jobs=[2], data=None)
    return run(WORKLOADS, parser.parse_args(), {"instruction set": instruction_set()} | boosters.versions())


if __name__ == "__main__":
    raise SystemExit(main())
