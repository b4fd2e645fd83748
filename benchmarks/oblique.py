"""Test errors of forests that split on combinations of columns, beside forests that split on columns.

Usage: ``python benchmarks/oblique.py --data FOLDER [SET …] [--repeats N] [--pool N]``. The folder holds Parquet files
with a column `target`; names of sets are names of files. The protocol is Breiman's (2001): a tenth of the rows is left
out (of simulated sets, 300 rows are learned and 3,000 left out), 100 trees grow on the others with few and with more
choices at each node, and the forest with the lower out-of-bag error is evaluated on the held-out rows.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

REAL = ("sonar", "ionosphere", "vehicle", "vowel", "glass", "diabetes_pima", "liver", "ecoli")
SIMULATED = ("waveform21", "twonorm", "threenorm", "ringnorm")
N_TREES = 100


def contestants(n_columns: int, pool: Any) -> dict[str, list[dict[str, Any]]]:
    """Parameters to choose from, by contestant."""
    more = min(n_columns, int(math.log2(n_columns) + 1))
    return {
        "columns": [{"max_features": f} for f in (1, more)],
        "combined": [{"max_features": f, "oblique": pool} for f in (2, 8)],
        "combined, two": [{"max_features": 2, "oblique": pool}],
        "combined, root": [{"oblique": pool}],
    }


def read(path: Path) -> tuple[Any, np.ndarray]:
    """Read a table and its target."""
    import polars as pl

    frame = pl.read_parquet(path)
    y = frame["target"].to_numpy()
    return frame.drop("target"), np.unique(y, return_inverse=True)[1]


def split(name: str, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows left out."""
    order = np.random.default_rng(seed).permutation(n_rows)
    if name in SIMULATED:
        return order[:300], order[300:3300]
    n_out = round(n_rows / 10)
    return order[n_out:], order[:n_out]


def error(
    X: Any, y: np.ndarray, rows: tuple[np.ndarray, np.ndarray], choices: list[dict[str, Any]], seed: int
) -> float:
    """Share of wrong classes among rows left out, of the choice with the lowest out-of-bag error."""
    from spinney import RandomForestClassifier

    train, test = rows
    models = [
        RandomForestClassifier(n_estimators=N_TREES, oob_score=len(choices) > 1, random_state=seed, n_jobs=2, **choice)
        for choice in choices
    ]
    for model in models:
        model.fit(X[train], y[train])
    best = models[0] if len(models) == 1 else max(models, key=lambda model: model.oob_score_)
    return float(np.mean(best.predict(X[test]) != y[test]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*REAL, *SIMULATED])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--pool", default="auto", help='combinations in the pool, or "auto"')
    options = parser.parse_args()
    pool = options.pool if options.pool == "auto" else int(options.pool)
    print(f"test error in %, mean of {options.repeats} splits; pool of {pool} combinations of 3 columns")
    for name in options.sets:
        X, y = read(options.data / f"{name}.parquet")
        line = f"{name:<16}"
        for contestant, choices in contestants(X.width, pool).items():
            start = time.perf_counter()
            errors = [error(X, y, split(name, len(y), seed), choices, seed) for seed in range(options.repeats)]
            spent = (time.perf_counter() - start) / options.repeats
            line += f"{contestant} {100 * np.mean(errors):5.1f} ({spent:.2f} s)   "
        print(line, flush=True)


if __name__ == "__main__":
    main()
