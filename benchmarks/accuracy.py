"""Accuracy of forests: beside figures in print, beside scikit-learn's, and with and without bins.

Usage: ``python benchmarks/accuracy.py STUDY --data FOLDER [--records FILE] [--processes N] [--minutes M] …``, where
STUDY is ``published``, ``parity`` or ``bins``; ``report`` prints what a file of records holds; ``pack`` writes the
sets of a folder as .npz files for a machine without pandas. README.md in this folder states what each one claims.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import parity
import pool
import published
import sets
from timing import environment

STUDIES = ("published", "parity", "bins")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in STUDIES:
        command = commands.add_parser(name)
        command.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="index.csv and the sets")
        command.add_argument("--sets", nargs="+", metavar="NAME", help="only these sets")
        command.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
        command.add_argument("--minutes", type=float, help="start nothing new after so many")
        command.add_argument("--trees", type=int, default=100)
        command.add_argument("--repeats", type=int, default=100 if name == "published" else 16)
        if name == "published":
            command.add_argument("--louppe-repeats", type=int, default=20, help="a quarter of these on large sets")
        else:
            command.add_argument("--train-rows", type=int, default=20_000, help="at most so many")
            command.add_argument("--test-rows", type=int, default=10_000, help="at most so many")
        _add_report_options(command)
    report = commands.add_parser("report")
    report.add_argument("studies", nargs="*", choices=[*STUDIES, []], default=[], metavar="STUDY")
    _add_report_options(report)
    pack = commands.add_parser("pack")
    pack.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    pack.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    pack.add_argument("--max-rows", type=int, default=sets.MAX_PACKED_ROWS, help="more are sampled")
    return parser.parse_args()


def _add_report_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--records", type=Path, default=Path("accuracy.jsonl"), help="results, one line each")
    command.add_argument("--details", action="store_true", help="one line per set too")


def run(options: argparse.Namespace) -> None:
    known = sets.names(options.data)
    chosen = options.sets or known
    if unknown := set(chosen) - set(known) - set(published.FRIEDMAN_NOISE):
        raise SystemExit(f"The folder {options.data} has no set named {', '.join(sorted(unknown))}.")
    if options.command == "published":
        units = published.units(options.data, chosen, options.repeats, options.louppe_repeats, options.trees)
    else:
        sizes = parity.Sizes(options.trees, options.train_rows, options.test_rows, options.repeats)
        units = parity.units(options.command, options.data, chosen, sizes)
    pool.run(units, options.records, options.processes, options.minutes)


def report(studies: list[str], options: argparse.Namespace) -> None:
    records = pool.read_records(options.records)
    for study in studies:
        print(f"\n== {study}")
        if study == "published":
            published.report(records)
        elif study == "parity":
            parity.report_parity(records, options.details)
        else:
            parity.report_bins(records)


def main() -> int:
    options = parse()
    if options.command == "pack":
        sets.pack(options.data, options.out, options.max_rows)
        return 0
    print(", ".join(f"{name} {value}" for name, value in environment().items()))
    if options.command in STUDIES:
        run(options)
        report([options.command], options)
    else:
        report(options.studies or list(STUDIES), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
