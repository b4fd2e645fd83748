"""Several numbers per row: quantiles, a mean and a spread, several outputs.

Usage: ``python benchmarks/outputs.py FOLDER [quantiles crossings spread vectors …] [--sets NAME …] [--rows N]``, with a
folder as `sets.py` describes. Half of the rows of each set, at most N in all, are the training set, the others the test
set. quantiles: one model for several quantiles against a model for each. crossings: test rows and synthetic rows in
which the quantiles of one model cross, on every regression set. spread: the likelihood of rows under
``loss="normal"``, against one deviation for all rows and a deviation from two quantiles. vectors: trees with vector
leaves against trees of one score each and XGBoost's ``multi_output_tree``, with columns of a set as targets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import spinney
from sets import Table, load, names, seed_of

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SETS = (
    *("abalone", "airfoil", "bike_sharing", "california_housing", "elevators"),
    *("house_16h", "kc_house_sales", "kin8nm", "pol", "wine_quality"),
)
Parted = tuple[Any, Any, Any, Any]


def parted(table: Table, n_rows: int) -> Parted:
    """Return training and test rows, drawn by the name of the set."""
    order = seed_of(table.name, 1).permutation(len(table.y))[:n_rows]
    half = len(order) // 2
    y = table.y.astype(np.float64)
    return table.X[order[:half]], y[order[:half]], table.X[order[half:]], y[order[half:]]


def pinball(y: Any, predictions: Any) -> float:
    """Mean loss of all quantiles."""
    off = y[:, np.newaxis] - predictions
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


def crossings(table: Table, n_rows: int) -> str:
    """Rows that were asked for, and those of them in which a quantile lies below the one before it."""
    X, y, X_test, _ = parted(table, n_rows)
    given: dict[str, Any] = {"loss": "quantile", "categorical_features": table.is_category, "n_estimators": 50}
    model = spinney.GradientBoostingRegressor(quantile=list(QUANTILES), **given).fit(X, y)
    rng = seed_of(table.name, 2)
    made = np.column_stack([rng.choice(column, size=10_000) for column in X.T])  # columns from different rows
    numbers = ~np.asarray(table.is_category)
    made[:, numbers] = made[:, numbers] * rng.choice([-3.0, 0.5, 1.0, 1.0, 3.0], size=made[:, numbers].shape)
    predictions = np.concatenate([model.predict(X_test), model.predict(made)])
    return f"{len(predictions)} | {int((np.diff(predictions, axis=1) < 0).any(axis=1).sum())}"


def likelihood(y: Any, mean: Any, deviation: Any) -> float:
    """Mean negative logarithm of a normal density."""
    return float(np.mean(np.log(deviation) + ((y - mean) / deviation) ** 2 / 2) + np.log(2 * np.pi) / 2)


def spread(table: Table, n_rows: int) -> str:
    """Negative log likelihood of the other rows: a deviation for each row, for all, and from quantiles."""
    X, y, X_test, y_test = parted(table, n_rows)
    given: dict[str, Any] = {"categorical_features": table.is_category}
    model = spinney.GradientBoostingRegressor("normal", **given).fit(X, y)
    by_row = likelihood(y_test, *model.predict_distribution(X_test))
    mean = spinney.GradientBoostingRegressor(**given).fit(X, y)
    size = np.sqrt(np.mean((mean._calibration.target - mean._calibration.predicted[:, 0]) ** 2))  # rows held out
    for_all = likelihood(y_test, mean.predict(X_test), np.full(len(y_test), size))
    ends = spinney.GradientBoostingRegressor("quantile", quantile=[0.159, 0.841], **given).fit(X, y).predict(X_test)
    between = np.maximum((ends[:, 1] - ends[:, 0]) / 2, 1e-3 * size)
    return f"{by_row:.4f} | {for_all:.4f} | {likelihood(y_test, mean.predict(X_test), between):.4f}"


def vectors(table: Table, n_rows: int) -> str:
    """Mean R2 of the other rows, and seconds: the target and the two columns most like it, from the other columns."""
    import xgboost

    X, y, X_test, y_test = parted(table, n_rows)
    known = np.nan_to_num(X)
    similarity = np.array([abs(np.corrcoef(x, y)[0, 1]) if x.std() > 0 else 0.0 for x in known.T])
    chosen = np.argsort(-np.where(table.is_category, 0.0, similarity))[:2]
    rest = np.setdiff1d(np.arange(X.shape[1]), chosen)
    Y, Y_test = (np.column_stack([t, np.nan_to_num(x[:, chosen])]) for t, x in ((y, X), (y_test, X_test)))
    scale = Y.std(axis=0)
    found = []
    plain = {"n_estimators": 200, "max_leaf_nodes": 31, "learning_rate": 0.1}
    theirs = {"n_estimators": 200, "max_leaves": 31, "max_depth": 0, "learning_rate": 0.1, "min_child_weight": 20}
    makers: list[Callable[[], Any]] = [
        lambda: spinney.GradientBoostingRegressor(leaves="vector", **plain),
        lambda: spinney.GradientBoostingRegressor(**plain),
        lambda: xgboost.XGBRegressor(
            multi_strategy="multi_output_tree", tree_method="hist", grow_policy="lossguide", reg_lambda=0, **theirs
        ),
    ]
    for make in makers:
        began = time.perf_counter()
        model = make().fit(X[:, rest], Y / scale)
        seconds = time.perf_counter() - began
        off = Y_test / scale - model.predict(X_test[:, rest])
        r2 = 1 - np.mean(off**2, axis=0) / np.var(Y_test / scale, axis=0)
        found.append(f"{r2.mean():.4f} {seconds:.2f} s")
    return " | ".join(found)


WORKLOADS: dict[str, tuple[str, Callable[[Table, int], str]]] = {
    "spread": ("a deviation for each row | for all rows | from quantiles", spread),
    "vectors": ("vector leaves | trees of one score | XGBoost", vectors),
    "crossings": ("rows | that cross", crossings),
    "quantiles": ("one model | one for each | ratio | rows that cross apart | fits", quantiles),
}


def main() -> None:
    """Print a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of sets")
    parser.add_argument("workloads", nargs="*", default=[], help=", ".join(WORKLOADS))
    parser.add_argument("--sets", nargs="*", help="names of sets")
    parser.add_argument("--rows", type=int, default=5000, help="most rows of a set")
    options = parser.parse_args()
    for name in options.workloads or WORKLOADS:
        header, work = WORKLOADS[name]
        print(f"\n{name}\nset | {header}", flush=True)
        for one in options.sets or (names(options.folder) if work is crossings else SETS):
            table = load(options.folder, one)
            if not table.n_classes:
                print(f"{one} | {work(table, options.rows)}", flush=True)


if __name__ == "__main__":
    main()
