"""The command line that all programs here share: which workloads, how many rounds, where the figures go."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from timing import HEADER, Row, environment, write_json

Workloads = Mapping[str, Callable[[Any], Iterator[Row]]]


def command_line(description: str, workloads: Workloads, rounds: int = 3) -> argparse.ArgumentParser:
    """Return a parser with the common options; a program may add its own."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    names = ", ".join(workloads)
    parser.add_argument(
        "workloads", nargs="*", choices=[*workloads, []], default=[], metavar="WORKLOAD", help=f"{names} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows: to see that it works, not to claim")
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds behind each median")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE")
    return parser


def run(workloads: Workloads, options: argparse.Namespace, versions: Mapping[str, Any] | None = None) -> int:
    """Print a row of each workload as it is measured; return 1 for the shell if a target was missed."""
    machine = environment() | dict(versions or {})
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    if options.quick or options.rounds < 3 or machine["load average"][0] > 0.5:
        print("A look, not a claim: that takes full sizes, at least 3 rounds and a load average below 0.5.")
    print(HEADER)
    rows: list[Row] = []
    for name in options.workloads or workloads:
        for row in workloads[name](options):
            print(row, flush=True)
            rows.append(row)
            if options.json:  # after each row, so that a run that is stopped keeps what it has
                write_json(options.json, machine, rows)
    missed = [row.workload for row in rows if row.met is False]
    print(f"{sum(row.met is True for row in rows)} targets met, {len(missed)} missed", *missed, sep="\n  ")
    return int(bool(missed))
