"""How often intervals and sets of classes of boosted models cover, on sets of a folder (see sets.py), or simulated.

Usage: ``python benchmarks/boosting_intervals.py --data FOLDER [--sets NAME …] [--rows N] [--splits K] [--jobs J]``.
A model with default settings is fitted to half of at most N rows, and coverage measured on the other half, K times. The
error of a mean is that of the K splits, each with separate rows for training, calibration and coverage.

Without ``--data``, tables are simulated: the model is fitted to N rows, and coverage measured on 3,000 others.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import sets
import spinney

TEN = "abalone airfoil california_housing kin8nm elevators bike_sharing kc_house_sales phoneme satimage german_credit"
NOMINAL = (0.8, 0.9, 0.95)
NEAR = 0.02  # of the nominal coverage

Coverages = dict[tuple[str, float], tuple[float, float]]  # method and nominal coverage: fraction covered, mean size
load = lru_cache(maxsize=1)(sets.load)
SIMULATED = {"numbers": 0, "two_classes": 2, "three_classes": 3}  # number of classes
N_NEW = 3000


def simulated(name: str, seed: int, n_rows: int) -> sets.Table:
    """Return a table of five normal columns, of which four matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows + N_NEW, 5))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + X[:, 3] / 2
    if name == "two_classes":
        y = (score + 0.5 * rng.logistic(size=len(X)) > 0).astype(float)
    else:
        y = score + 0.7 * rng.normal(size=len(X))
    if name == "three_classes":
        y = np.digitize(y, [-0.7, 0.7]).astype(float)
    return sets.Table(name, X, np.zeros(5, dtype=bool), y, SIMULATED[name])


def coverages(name: str, seed: int, data: Path | None, n_rows: int, effort: float) -> Coverages:
    """Share covered, and mean width or number of classes."""
    if data is None:
        table = simulated(name, seed, n_rows)
        fitted, new = np.split(np.arange(len(table.y)), [n_rows])
    else:
        table = load(data, name)
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
        for nominal in NOMINAL:
            report = model.coverage_report(table.X[new], table.y[new], nominal, method, bins=0)
            found[method, nominal] = report.columns["coverage"][0], report.columns[report.size_name][0]
    return found


def report(name: str, runs: list[Coverages]) -> dict[tuple[str, str, float], bool]:
    """Print what was found on one set; return whether it is near what was asked for, by method."""
    near = {}
    for method in dict.fromkeys(method for method, _ in runs[0]):
        cells = []
        for nominal in NOMINAL:
            covered, sizes = np.array([run[method, nominal] for run in runs]).T
            error = covered.std(ddof=1) / np.sqrt(len(covered)) if len(covered) > 1 else np.nan
            cells.append(f"{100 * covered.mean():9.1f} ± {100 * error:.1f}  {sizes.mean():9.4g}")
            near[name, method, nominal] = bool(abs(covered.mean() - nominal) <= NEAR)
        print(f"{name:20} {method:9} " + " ".join(cells), flush=True)
    return near


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--effort", type=float, default=0.5)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    options.sets = options.sets or (TEN.split() if options.data else list(SIMULATED))
    print(f"{'':20} {'':9} " + " ".join(f"{f'{100 * q:g} %: covered':>16} {'mean size':>9}" for q in NOMINAL))
    near = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        given = options.data, options.rows, options.effort
        asked = [(name, k, *given) for name in options.sets for k in range(options.splits)]
        runs = pool.map(coverages, *zip(*asked, strict=True))
        for name in options.sets:
            near |= report(name, list(islice(runs, options.splits)))
    for nominal in NOMINAL:
        by_set = [[v for (n, _, q), v in near.items() if n == name and q == nominal] for name in options.sets]
        first, all_ = sum(found[0] for found in by_set), sum(all(found) for found in by_set)
        print(f"within 2 points of {100 * nominal:g} %: {first} of {len(by_set)} sets, by both methods {all_}")


if __name__ == "__main__":
    main()
