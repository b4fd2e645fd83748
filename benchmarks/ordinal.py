"""Ordered classes: ``loss="ordinal"`` against the log loss of boosting, and against linear ordinal models.

Usage: ``python benchmarks/ordinal.py FOLDER [SET …] [--rows N]``, with a folder as `sets.py` describes. Numeric
targets of more than ten values become five classes of equal size. N rows are the training set, at most 5,000 others the
test set. For each model: the ranked probability score, the log loss, the mean absolute error of the most probable class
in classes, and the seconds of the fit. LightGBM, statsmodels and mord are left out where they are not installed. The
first set is simulated: a sum of effects and an interaction, plus logistic noise.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import spinney
from sets import Table, load, seed_of

SETS = ("wine_quality", "abalone", "california_housing", "kin8nm")
N_CLASSES, MOST_VALUES, N_TEST = 5, 10, 5000
Rows = tuple[Any, Any, Any]  # training rows, their classes, test rows


def simulated(n: int) -> Table:
    """Return rows with six ordered classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    score = 2 * X[:, 0] + 1.5 * np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + rng.logistic(size=n)
    return Table("simulated", X, np.zeros(6, dtype=bool), np.digitize(score, [-3, -1, 1, 2, 4]), 6)


def classes_of(y: Any) -> Any:
    """Return the codes of ordered classes."""
    if len(np.unique(y)) <= MOST_VALUES:
        return np.unique(y, return_inverse=True)[1]
    return np.digitize(y, np.quantile(y, np.arange(1, N_CLASSES) / N_CLASSES))


def with_all_classes(proba: Any, classes: Any, n_classes: int) -> Any:
    """Return probabilities with a column for each class, also for those without training rows."""
    found = np.full((len(proba), n_classes), 1e-15)
    found[:, np.asarray(classes, dtype=int)] = proba
    return found


def boosted(loss: str, table: Table) -> Callable[[Rows], Any]:
    """Return a fit of spinney's boosting, default settings."""

    def fit(rows: Rows) -> Any:
        model = spinney.GradientBoostingClassifier(loss=loss, categorical_features=table.is_category)
        model.fit(rows[0], rows[1])
        return model.predict_proba(rows[2]), model.classes_

    return fit


def lightgbm(rows: Rows) -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(verbose=-1, n_jobs=2).fit(rows[0], rows[1])
    return model.predict_proba(rows[2]), model.classes_


def scaled(rows: Rows) -> tuple[Any, Any]:
    """Return training and test rows without missing values, with unit variances."""
    mean = np.nanmean(rows[0], axis=0)
    deviation = np.nanstd(rows[0], axis=0)
    used = deviation > 0
    train, test = (np.where(np.isnan(X), mean, X)[:, used] for X in (rows[0], rows[2]))
    return (train - mean[used]) / deviation[used], (test - mean[used]) / deviation[used]


def statsmodels(rows: Rows) -> Any:
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    train, test = scaled(rows)
    model = OrderedModel(rows[1], train, distr="logit").fit(method="bfgs", disp=False)
    return model.predict(test), np.unique(rows[1])


def mord(rows: Rows) -> Any:
    from mord import LogisticAT

    train, test = scaled(rows)
    codes = np.unique(rows[1], return_inverse=True)[1]
    model = LogisticAT(alpha=1.0).fit(train, codes)
    return model.predict_proba(test), np.unique(rows[1])


def compare(table: Table, n_rows: int) -> None:
    """Print a line for each model."""
    y = classes_of(table.y)
    n_classes = int(y.max()) + 1
    order = seed_of(table.name, 1).permutation(len(y))[: n_rows + N_TEST]
    train, test = order[:n_rows], order[n_rows:]
    X = table.X.astype(np.float64)
    linear = table.encoded.astype(np.float64)
    models = {
        "spinney, ordinal": (boosted("ordinal", table), X),
        "spinney, log loss": (boosted("log_loss", table), X),
        "LightGBM, multiclass": (lightgbm, X),
        "statsmodels, OrderedModel": (statsmodels, linear),
        "mord, LogisticAT": (mord, linear),
    }
    for name, (fit, columns) in models.items():
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                proba, classes = fit((columns[train], y[train], columns[test]))
        except ImportError:
            continue
        seconds = time.perf_counter() - began
        proba, codes = with_all_classes(proba, classes, n_classes), y[test]
        steps = np.cumsum(proba, axis=1) - (np.arange(n_classes) >= codes[:, np.newaxis])
        log_loss = -np.log(np.maximum(proba[np.arange(len(codes)), codes], 1e-15)).mean()
        error = np.abs(proba.argmax(axis=1) - codes).mean()
        ranked = (steps**2).sum(axis=1).mean()
        print(f"| {table.name} | {name} | {ranked:.4f} | {log_loss:.3f} | {error:.3f} | {seconds:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, default=1000, help="training rows")
    given = parser.parse_args()
    print("| set | model | ranked probability score | log loss | absolute error | s |\n|---|---|---|---|---|---|")
    compare(simulated(given.rows + N_TEST), given.rows)
    for name in given.sets:
        compare(load(given.folder, name), given.rows)


if __name__ == "__main__":
    main()
