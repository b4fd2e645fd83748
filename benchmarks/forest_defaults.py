"""Forests of spinney and scikit-learn with default settings: by set, the ratio of losses with its standard error.

Usage: ``python benchmarks/forest_defaults.py --data FOLDER [--sets NAME …] [--rows N] [--folds K] [--repeats R]
[--jobs N] [--minutes M]``.
The folder is that of accuracy.py (see `sets.py`); results go to ``--records``, one line each, and a
later run goes on from there. Loss is log loss, or root mean squared error. Both forests learn from the same rows;
sets with fewer than 2,000 rows are parted ``--repeats`` times, others once. The standard error is that of the mean
difference over all parts, made larger because parts share rows (Nadeau and Bengio 2003). A set is behind if ours is
worse by more than two of them, and by more than half a percent.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pool
import sets
from defaults import CONTESTANTS, DUPLICATES, TOO_LARGE, Job, _cost, _folds, _for_all, evaluate
from timing import environment

PAIRS = {"forest": "sklearn forest", "extra-trees": "sklearn extra-trees"}
FEW_ROWS = 2000
LEAST = 0.005  # of the other's loss: less is no difference


def fit(folder: str, name: str, rows: int, k: int, repeat: int, fold: int) -> pool.Record:
    """Fit all contestants on all folds of a set but one, and evaluate them on that one."""
    table = sets.load(Path(folder), name)
    table = sets.shuffled(table if len(table.y) <= rows else sets._sample(table, rows), repeat)
    held_out = _folds(table, k) == fold
    y = table.y if table.n_classes else table.y.astype(np.float64)
    labels = np.unique(y[~held_out]) if table.n_classes else None
    learned = y[~held_out] if labels is None else np.searchsorted(labels, y[~held_out])
    job = Job(table.X[~held_out], learned, table.is_category, 0 if labels is None else len(labels), 1)
    record: pool.Record = {"rows": len(table.y)}
    for contestant in [c for pair in PAIRS.items() for c in pair]:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = CONTESTANTS[contestant][1](job)
            seconds = time.process_time() - began
            found = answers(table.X[held_out])
        found = found if labels is None else _for_all(found, labels, table.n_classes)
        record[contestant] = [evaluate(y[held_out], found)["loss"], seconds]
    return record


def compared(ours: np.ndarray, others: np.ndarray, k: int) -> tuple[float, float]:
    """Return the mean difference of losses by part, over the others' mean, and its standard error."""
    mean = max(float(others.mean()), 1e-12)
    spread = float(np.std(ours - others, ddof=1)) if len(ours) > 1 else float("nan")
    return float((ours - others).mean()) / mean, spread * float(np.sqrt(1 / len(ours) + 1 / (k - 1))) / mean


def report(records: list[pool.Record]) -> None:
    """Print a line for each set, and how many are behind."""
    found = list(dict.fromkeys(r["key"]["set"] for r in records))
    print(f"\n{'':<24}" + "".join(f"{mine + ' over scikit-learn':>34}" for mine in PAIRS))
    ratios: dict[str, list[float]] = {mine: [] for mine in PAIRS}
    behind: dict[str, list[str]] = {mine: [] for mine in PAIRS}
    seconds = {c: 0.0 for pair in PAIRS.items() for c in pair}
    for name in found:
        rows = [r for r in records if r["key"]["set"] == name]
        k = rows[0]["key"]["folds"]
        line = f"{name:<24}"
        for mine, theirs in PAIRS.items():
            over, error = compared(*(np.array([r[c][0] for r in rows]) for c in (mine, theirs)), k)
            ratios[mine].append(over)
            is_behind = over > LEAST and over > 2 * error
            behind[mine] += [name] if is_behind else []
            line += f"{over:>+19.1%} ± {error:<7.1%}{'behind' if is_behind else '':>6}"
            for c in (mine, theirs):
                seconds[c] += float(np.mean([r[c][1] for r in rows]))
        print(line)
    for mine, theirs in PAIRS.items():
        over = np.array(ratios[mine])
        print(
            f"{mine}, {len(found)} sets: mean {over.mean():+.1%}, median {np.median(over):+.1%}, lower on "
            f"{int((over < 0).sum())}; behind: {', '.join(behind[mine]) or 'none'}; seconds a fold "
            f"{seconds[mine]:.1f}, scikit-learn {seconds[theirs]:.1f}"
        )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="index.csv and the sets; none: report alone")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--rows", type=int, default=6000, help="at most so many of a set, drawn at random")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3, help="of sets with few rows")
    parser.add_argument("--jobs", type=int, help="fits at a time; default: processors")
    parser.add_argument("--minutes", type=float, help="start nothing new after so many")
    parser.add_argument("--records", type=Path, default=Path("forest_defaults.jsonl"), help="results, one line each")
    return parser.parse_args()


def main() -> int:
    options = parse()
    print(", ".join(f"{name} {value}" for name, value in environment().items()))
    if options.data is not None:
        chosen = options.sets or [n for n in sets.names(options.data) if n not in TOO_LARGE | DUPLICATES]
        n_rows = {name: len(sets.load(options.data, name).y) for name in chosen}
        units = [
            pool.Unit(
                {"set": name, "repeat": repeat, "fold": fold, "rows": options.rows, "folds": options.folds}, fit,
                (str(options.data), name, options.rows, options.folds, repeat, fold),
            )
            for name in sorted(chosen, key=lambda name: _cost(options.data, name, options.rows))
            for repeat in range(options.repeats if n_rows[name] < FEW_ROWS else 1)
            for fold in range(options.folds)
        ]  # fmt: skip
        pool.run(units, options.records, options.jobs or len(os.sched_getaffinity(0)), options.minutes)
    report([r for r in pool.read_records(options.records) if "forest" in r])
    return 0


if __name__ == "__main__":
    sys.exit(main())
