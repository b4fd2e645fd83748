"""Support vector machines beside scikit-learn's libsvm and liblinear: time and objective at the same tolerance.

Usage: ``python benchmarks/margins.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE] [--data FOLDER]``. The
folder holds ``letter.parquet`` (the letter is its ``target``); without it, a table like it is simulated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from program import command_line, run
from sklearn.datasets import make_classification
from timing import Row, beside, play

Floats = NDArray[np.float64]


def table(n: int, n_columns: int = 20) -> tuple[Floats, NDArray[Any]]:
    """Make two classes of several clumps each, 5 % of the labels at random, scaled."""
    clumps = {"n_informative": 10, "n_redundant": 4, "n_clusters_per_class": 4, "class_sep": 0.8, "flip_y": 0.05}
    X, y = make_classification(n, n_columns, random_state=0, **clumps)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def objective(model: Any, gamma: float) -> float:
    """Dual objective of a machine of two classes, by double kernel values of its support vectors."""
    vectors, coefficients = model.support_vectors_, model.dual_coef_[0]
    squares, total = (vectors**2).sum(axis=1), 0.0
    for first in range(0, len(vectors), 1000):
        some = slice(first, first + 1000)
        distance = squares[some, np.newaxis] + squares - 2 * vectors[some] @ vectors.T
        total += float(coefficients[some] @ (np.exp(-gamma * distance) @ coefficients))
    return total / 2 - float(np.abs(coefficients).sum())


def kernel_rows(n: int, options: argparse.Namespace) -> Iterator[Row]:
    """RBF machines of two classes; memory for kernel values 200 MB on both sides."""
    import sklearn.svm
    import spinney

    n = n // 8 if options.quick else n
    X, y = table(n)
    gamma = 1 / X.shape[1]
    models = {
        "ours": spinney.SVC(gamma=gamma, scale=False, n_jobs=2),
        "peer": sklearn.svm.SVC(gamma=gamma),
    }
    rounds = play({side: partial(model.fit, X, y) for side, model in models.items()}, options.rounds)
    reached = {side: objective(model, gamma) for side, model in models.items()}
    yield beside(
        f"SVC, RBF, {n // 1000}k x 20",
        rounds,
        target=">= 4",
        evidence=f"objective {reached['ours']:.4f} | {reached['peer']:.4f}, {len(models['ours'].support_)} vectors",
        same_work=reached["ours"] <= reached["peer"] + 1e-4 * abs(reached["peer"]),
    )


def one_class(options: argparse.Namespace) -> Iterator[Row]:
    """One-class machines of 12,000 rows, by few and by many support vectors."""
    import sklearn.svm
    import spinney

    X, _ = table(2_000 if options.quick else 12_000)
    gamma = 1 / X.shape[1]

    def reached(model: Any) -> float:
        """Return the dual objective, by double kernel values."""
        values = spinney.kernels.rbf(model.support_vectors_, model.support_vectors_, gamma=gamma)
        return float(model.dual_coef_[0] @ values @ model.dual_coef_[0]) / 2

    for nu in (0.05, 0.5):
        models = {
            "ours": spinney.OneClassSVM(nu=nu, gamma=gamma, n_jobs=2),
            "peer": sklearn.svm.OneClassSVM(nu=nu, gamma=gamma),
        }
        rounds = play({side: partial(model.fit, X) for side, model in models.items()}, options.rounds)
        ours, peer = reached(models["ours"]), reached(models["peer"])
        yield beside(
            f"OneClassSVM, nu={nu}, {len(X) // 1000}k x 20",
            rounds,
            target=">= 1",
            evidence=f"objective {ours:.4f} | {peer:.4f}, {len(models['ours'].support_)} vectors",
            same_work=ours <= peer * (1 + 1e-4),
        )


def letters(options: argparse.Namespace) -> tuple[Floats, NDArray[Any]]:
    """Read the letter table, or make one like it: 26 classes of 20,000 rows, 16 whole numbers from 0 to 15."""
    if options.data is not None:
        import polars as pl

        frame = pl.read_parquet(options.data / "letter.parquet")
        X, y = frame.drop("target").to_numpy().astype(float), frame["target"].to_numpy()
    else:
        rng = np.random.default_rng(0)
        y = rng.integers(0, 26, 20_000)
        X = np.clip(np.round(rng.normal(7.5, 2.5, (26, 16))[y] + rng.normal(0, 1.6, (20_000, 16))), 0, 15)
    n = 3_000 if options.quick else len(y)
    X = X[:n]
    return (X - X.mean(axis=0)) / X.std(axis=0), y[:n]


def classes(options: argparse.Namespace) -> Iterator[Row]:
    """Tell 26 classes apart, a machine for each pair of them."""
    import sklearn.svm
    import spinney

    X, y = letters(options)
    models = {
        "ours": spinney.SVC(gamma=1 / 16, scale=False, n_jobs=2),
        "peer": sklearn.svm.SVC(gamma=1 / 16),
    }
    rounds = play({side: partial(model.fit, X, y) for side, model in models.items()}, options.rounds)
    same = float(np.mean(models["ours"].predict(X[:2000]) == models["peer"].predict(X[:2000])))
    yield beside(
        f"SVC, RBF, {len(y) // 1000}k x 16, 26 classes",
        rounds,
        target=">= 3",
        evidence=f"{same:.1%} of 2,000 rows predicted alike",
        same_work=same > 0.98,
    )


def linear(options: argparse.Namespace) -> Iterator[Row]:
    """Fit planes to 500,000 rows, by squared hinges; liblinear by its own choice of method."""
    import sklearn.svm
    import spinney

    X, y = table(50_000 if options.quick else 500_000, 28)
    models = {"ours": spinney.LinearSVC(scale=False, n_jobs=2), "peer": sklearn.svm.LinearSVC(dual="auto")}
    rounds = play({side: partial(model.fit, X, y) for side, model in models.items()}, options.rounds)
    sign = np.where(y == 1, 1.0, -1.0)

    def paid(model: Any) -> float:
        short = np.maximum(1 - sign * (X @ model.coef_[0] + model.intercept_[0]), 0)
        return float(model.coef_[0] @ model.coef_[0] / 2 + (short**2).sum())

    reached = {side: paid(model) for side, model in models.items()}
    yield beside(
        f"LinearSVC, {len(y) // 1000}k x 28",
        rounds,
        target=">= 1",
        evidence=f"objective {reached['ours']:.3f} | {reached['peer']:.3f}",
        same_work=reached["ours"] <= reached["peer"] * (1 + 1e-6),
    )


def wide(options: argparse.Namespace) -> Iterator[Row]:
    """Fit 150 rows of many columns, and predict one: arrays, and frames of pandas and polars."""
    import pandas as pd
    import polars as pl
    import sklearn.linear_model
    import sklearn.neighbors
    import sklearn.svm
    import spinney

    modules = {
        **dict.fromkeys(("LinearSVC", "LinearSVR", "SVC", "SVR", "NuSVC"), sklearn.svm),
        **dict.fromkeys(("KNeighborsClassifier", "KNeighborsRegressor"), sklearn.neighbors),
        "Perceptron": sklearn.linear_model,
    }
    for n_columns in (10, 2_000) if options.quick else (10, 100, 2_000, 10_000):
        rng, names = np.random.default_rng(0), [f"c{j}" for j in range(n_columns)]
        X, classes, values = rng.normal(size=(150, n_columns)), np.arange(150) % 2, rng.normal(size=150)
        tables = {"array": X, "pandas": pd.DataFrame(X, columns=names), "polars": pl.DataFrame(X, schema=names)}
        for (kind, rows), (name, module) in product(tables.items(), modules.items()):
            y = values if name.endswith(("SVR", "Regressor")) else classes
            models = {"ours": getattr(spinney, name)(n_jobs=2), "peer": getattr(module, name)()}
            calls = {"fit": {side: partial(model.fit, rows, y) for side, model in models.items()}}
            calls["one row"] = {side: partial(model.predict, rows[:1]) for side, model in models.items()}
            for call, sides in calls.items():
                yield beside(
                    f"{name}, {kind}, {n_columns} columns: {call}", play(sides, options.rounds), target=">= 0.5"
                )


WORKLOADS = {
    "12k": partial(kernel_rows, 12_000),
    "one-class": one_class,
    "classes": classes,
    "linear": linear,
    "wide": wide,
    "40k": partial(kernel_rows, 40_000),
}

if __name__ == "__main__":
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="holds letter.parquet; none: a table like it")
    sys.exit(run(WORKLOADS, parser.parse_args()))
