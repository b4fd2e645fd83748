"""Several numbers per row: several quantiles in one model beside a model for each.

Usage: ``python benchmarks/outputs.py FOLDER [quantiles …] [--sets NAME …] [--rows N]``, with a folder as `sets.py`
describes. Half of the rows of each set, at most N in all, are learned from, and the others judged by.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import spinney
from sets import Table, load, seed_of

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SETS = (
    *("abalone", "airfoil", "bike_sharing", "california_housing", "elevators"),
    *("house_16h", "kc_house_sales", "kin8nm", "pol", "wine_quality"),
)
Parted = tuple[Any, Any, Any, Any]


def parted(table: Table, n_rows: int) -> Parted:
    """Return rows to learn from and to judge by, drawn by the name of the set."""
    order = seed_of(table.name, 1).permutation(len(table.y))[:n_rows]
    half = len(order) // 2
    y = table.y.astype(np.float64)
    return table.X[order[:half]], y[order[:half]], table.X[order[half:]], y[order[half:]]


def pinball(y: Any, said: Any) -> float:
    """Mean loss of all quantiles."""
    off = y[:, np.newaxis] - said
    levels = np.array(QUANTILES)
    return float(np.maximum(levels * off, (levels - 1) * off).mean())


def quantiles(table: Table, n_rows: int) -> str:
    """One model of all quantiles, and one of each: loss of the other rows, crossings, seconds."""
    X, y, X_test, y_test = parted(table, n_rows)
    given: dict[str, Any] = {"loss": "quantile", "categorical_features": table.is_category}
    began = time.perf_counter()
    together = spinney.GradientBoostingRegressor(quantile=list(QUANTILES), **given).fit(X, y).predict(X_test)
    between = time.perf_counter()
    apart = [spinney.GradientBoostingRegressor(quantile=q, **given).fit(X, y).predict(X_test) for q in QUANTILES]
    ended = time.perf_counter()
    one, each = pinball(y_test, together), pinball(y_test, np.column_stack(apart))
    crossing = float((np.diff(np.column_stack(apart), axis=1) < 0).any(axis=1).mean())
    assert (np.diff(together, axis=1) >= 0).all()
    times = f"{between - began:.1f} s, {ended - between:.1f} s"
    return f"{one:.4g} | {each:.4g} | {one / each:.3f} | {crossing:.1%} | {times}"


WORKLOADS: dict[str, tuple[str, Callable[[Table, int], str]]] = {
    "quantiles": ("one model | one for each | ratio | rows that cross apart | fits", quantiles),
}


def main() -> None:
    """Print a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of sets")
    parser.add_argument("workloads", nargs="*", default=[], help=", ".join(WORKLOADS))
    parser.add_argument("--sets", nargs="*", default=SETS, help="names of sets")
    parser.add_argument("--rows", type=int, default=5000, help="most rows of a set")
    options = parser.parse_args()
    for name in options.workloads or WORKLOADS:
        header, work = WORKLOADS[name]
        print(f"\n{name}\nset | {header}", flush=True)
        for one in options.sets:
            print(f"{one} | {work(load(options.folder, one), options.rows)}", flush=True)


if __name__ == "__main__":
    main()
