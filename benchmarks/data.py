"""Tables to measure on: seeded and made here, so that nothing has to be downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

N_FEATURES = 28


@dataclass(frozen=True)
class Split:
    """Training rows and test rows."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def numbers(kind: str, n_rows: int, seed: int, n_test: int = 50_000) -> Split:
    """Make 28 float32 columns with the shape of the Higgs task: a faint, nonlinear signal under heavy noise.

    `kind` is "classifier" (two classes; about 80 % can be got right at best) or "regressor".
    """
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows + n_test, N_FEATURES), dtype=np.float32)
    # Drawn, not the first twelve: our ties go to the lower column, which must not be an informative one.
    score = _signal(X[:, random.permutation(N_FEATURES)[:12]])
    if kind == "classifier":
        y = (random.random(len(X)) < 1.0 / (1.0 + np.exp(-2.0 * score))).astype(np.int64)
    else:
        y = score + random.standard_normal(len(X))
    return _cut(X, y, n_rows)


def _signal(informative: np.ndarray) -> np.ndarray:
    """Add up steps, products, waves and radii of twelve columns."""
    x = informative.astype(np.float64).T
    return (
        0.8 * x[0]
        + np.sign(x[1]) * x[2]
        + x[3] * x[4]
        + np.sin(2.0 * x[5])
        + 0.5 * (x[6] ** 2 - x[7] ** 2)
        + np.where(x[8] > 0.5, x[9], -x[10])
        - 0.3 * np.abs(x[11])
    )


def mixed(n_rows: int, seed: int, n_test: int = 20_000) -> Split:
    """Make a pandas table of six numbers and four strings, a tenth of the values missing, and two classes."""
    import pandas as pd

    random = np.random.default_rng(seed)
    n = n_rows + n_test
    score = np.zeros(n)
    columns: dict[str, Any] = {}
    for j in range(6):
        values = random.standard_normal(n)
        score += 0.5 * np.sin((j + 1) * values)
        columns[f"number_{j}"] = np.where(random.random(n) < 0.1, np.nan, values)
    for n_categories in (4, 12, 40, 120):
        codes = random.integers(n_categories, size=n)
        score += random.standard_normal(n_categories)[codes]
        labels = np.array([f"value {c}" for c in range(n_categories)], dtype=object)[codes]
        labels[random.random(n) < 0.1] = None
        columns[f"category_{n_categories}"] = labels
    y = (random.random(n) < 1.0 / (1.0 + np.exp(-2.0 * score))).astype(np.int64)
    return _cut(pd.DataFrame(columns), y, n_rows)


def real(path: Path) -> tuple[str, Callable[[int], Split]] | None:
    """Read a Parquet file: its kind of task, and a function from a seed to a split with a fifth as the test set.

    It needs a column "target" and columns of numbers without a gap, which are used as float32; None if it has
    none. Targets of at most 100 distinct values are classes.
    """
    import pyarrow.parquet as parquet

    frame = parquet.read_table(path).to_pandas()
    if "target" not in frame:
        return None
    y = frame.pop("target").to_numpy()
    X = frame.select_dtypes("number").dropna(axis=1).to_numpy(dtype=np.float32)
    if not X.size:
        return None
    return "classifier" if len(np.unique(y)) <= 100 else "regressor", partial(_shuffled, X, y)


def _shuffled(X: np.ndarray, y: np.ndarray, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(X))
    return _cut(X[order], y[order], len(X) - len(X) // 5)


def _cut(X: Any, y: np.ndarray, n_rows: int) -> Split:
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])
