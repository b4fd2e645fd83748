"""The tables of studies.py and automl.py: reading them, the rows to learn from and to test, and the losses by row."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STUDY = "study"
TEST_SHARE = 0.3  # of the rows of a set: more than a study locks away, so that differences show
SEED = 20261116
TARGET = "target"
Table = dict[str, Any]  # arrays by column


def read_columns(folder: Path, name: str) -> Table:
    """Return the columns of a set as arrays: numbers with NaN, or text with None where a value is missing."""
    if name.startswith("synthetic_"):
        return synthetic(int(name.rpartition("_")[2]))
    if (folder / f"{name}.npz").exists():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            return {str(column): _read_npz(file, k) for k, column in enumerate(file["names"])}
    try:
        import polars as pl

        frame: Any = pl.read_parquet(folder / f"{name}.parquet")
        return {column: frame[column].to_numpy() for column in frame.columns}
    except ModuleNotFoundError:
        import pyarrow.parquet as pq

        table = pq.read_table(folder / f"{name}.parquet")
        return {column: table[column].to_pandas().to_numpy() for column in table.column_names}


def write_npz(table: Table, path: Path) -> None:
    """Write columns to a file that NumPy alone reads: text as codes of labels, -1 where a value is missing."""
    arrays: dict[str, Any] = {"names": np.array(list(table))}
    for k, values in enumerate(table.values()):
        if values.dtype == object:
            texts = np.array(["" if one is None or one != one else str(one) for one in values])
            labels, codes = np.unique(texts, return_inverse=True)
            missing = np.array([one is None or one != one for one in values])
            arrays |= {f"codes{k}": np.where(missing, -1, codes).astype(np.int32), f"labels{k}": labels}
        else:
            arrays[f"values{k}"] = values
    np.savez_compressed(path, **arrays)


def _read_npz(file: Any, k: int) -> np.ndarray:
    if f"values{k}" in file:
        return np.asarray(file[f"values{k}"])
    codes = file[f"codes{k}"]
    return np.append(file[f"labels{k}"].astype(object), None)[codes]


def synthetic(rows: int) -> Table:
    """Return a synthetic table of ten columns and two classes with interactions and noise."""
    random = np.random.default_rng([SEED, rows])
    X = random.standard_normal((rows, 9)).astype(np.float32)
    group = random.integers(0, 40, rows)
    effect = random.standard_normal(40)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + effect[group] * (X[:, 4] > 0) + 0.5 * X[:, 5]
    target = np.where(score + random.standard_normal(rows) > 1, "yes", "no")
    return {f"x{j}": X[:, j].copy() for j in range(9)} | {"group": np.char.add("g", group.astype(str)), TARGET: target}


def halves(table: Table, name: str) -> tuple[Table, Table]:
    """Part a set into rows to learn from and rows to test, the same ones in every run."""
    n = n_rows(table)
    order = np.random.default_rng([SEED, zlib.crc32(name.encode())]).permutation(n)
    n_test = round(TEST_SHARE * n)
    return take(table, np.sort(order[n_test:])), take(table, np.sort(order[:n_test]))


def take(table: Table, rows: np.ndarray) -> Table:
    """Return some rows of a table."""
    return {name: values[rows] for name, values in table.items()}


def n_rows(table: Table) -> int:
    """Return the number of rows."""
    return len(table[TARGET])


def without_target(table: Table) -> Table:
    """Return the features."""
    return {name: values for name, values in table.items() if name != TARGET}


def is_regression(table: Table) -> bool:
    """Return whether the target is a number to predict, by the rule of spinney."""
    from spinney._evaluate.problem import read_target

    return bool(read_target(table[TARGET]).task == "regression")


def truth(table: Table, is_value: bool) -> np.ndarray:
    """Return the target of rows: values, or labels as text."""
    return table[TARGET].astype(np.float64) if is_value else table[TARGET].astype(str)


def evaluated(
    predict: Callable[[Table], Any], classes: np.ndarray | None, test: Table
) -> tuple[np.ndarray, dict[str, float]]:
    """Return squared errors or log losses of the held-out rows, and the seconds of predicting one of many, and one."""
    X, start = without_target(test), time.perf_counter()
    predictions = np.asarray(predict(X), dtype=np.float64)
    batch = (time.perf_counter() - start) / n_rows(test)
    one, single = {name: values[:1] for name, values in X.items()}, []
    for _ in range(20):
        start = time.perf_counter()
        predict(one)
        single.append(time.perf_counter() - start)
    speed = {"seconds_per_row": batch, "seconds_of_one_row": float(np.median(single))}
    actual = truth(test, classes is None)
    if classes is None:
        return (predictions.ravel() - actual) ** 2, speed
    own = (np.array([str(one) for one in classes]) == actual[:, np.newaxis]).argmax(axis=1)
    return -np.log(np.clip(predictions[np.arange(len(own)), own], 2.0**-52, None)), speed
