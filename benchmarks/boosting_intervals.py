"""How often intervals and sets of classes of boosted models cover, on sets of a folder (see sets.py).

Usage: ``python benchmarks/boosting_intervals.py --data FOLDER [--sets NAME …] [--rows N] [--splits K]``.
Half of at most N rows are learned from with nothing set, the other half is covered or not, K times.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import sets
import spinney

TEN = "abalone airfoil california_housing kin8nm elevators bike_sharing kc_house_sales phoneme satimage german_credit"
NOMINAL = 0.9


def coverages(table: sets.Table, n_rows: int, seed: int, effort: float) -> dict[str, tuple[float, float]]:
    """Share covered, and mean width or size, by method."""
    rows = np.random.default_rng(seed).permutation(len(table.y))[:n_rows]
    fitted, new = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    categories = np.flatnonzero(table.is_category).tolist() or None
    if table.n_classes:
        model = spinney.GradientBoostingClassifier(effort=effort, categorical_features=categories, n_jobs=1)
        methods = ("lac", "aps")
    else:
        model = spinney.GradientBoostingRegressor(effort=effort, categorical_features=categories, n_jobs=1)
        methods = ("scaled", "residual")
    model.fit(table.X[fitted], table.y[fitted])
    found = {}
    for method in methods:
        report = model.coverage_report(table.X[new], table.y[new], NOMINAL, method, bins=0)
        found[method] = report.columns["coverage"][0], report.columns[report.size_name][0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--sets", nargs="*", default=TEN.split())
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--effort", type=float, default=0.5)
    options = parser.parse_args()
    for name in options.sets:
        table = sets.load(options.data, name)
        runs = [coverages(table, options.rows, seed, options.effort) for seed in range(options.splits)]
        for method in runs[0]:
            covered, size = np.mean([run[method] for run in runs], axis=0)
            n_new = min(options.rows, len(table.y)) // 2 * options.splits
            error = np.sqrt(NOMINAL * (1 - NOMINAL) / n_new)
            print(f"{name:20} {method:9} {100 * covered:5.1f} % ± {100 * error:.1f}  mean size {size:.4g}", flush=True)


if __name__ == "__main__":
    main()
