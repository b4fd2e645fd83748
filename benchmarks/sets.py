"""Data sets for accuracy benchmarks: a folder of Parquet files and its index, or the same packed for NumPy alone.

The folder has ``index.csv`` with at least the columns ``name``, ``task`` (binary, multiclass or regression) and
``official_train_rows``, and for each set a file ``NAME.parquet`` whose column ``target`` is to be predicted. `pack`
writes each set as ``NAME.npz``: what a machine without pandas needs.

Every column becomes float32, which is what scikit-learn's trees work on: numbers as they are, categories as codes in
the order of their labels, missing values as NaN. A mask marks the columns of codes.
"""

from __future__ import annotations

import csv
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAX_PACKED_ROWS = 40_000


@dataclass(frozen=True)
class Table:
    """One set; `y` holds codes 0 … n_classes - 1, or numbers if `n_classes` is 0."""

    name: str
    X: np.ndarray
    is_category: np.ndarray
    y: np.ndarray
    n_classes: int
    n_official: int = 0  # rows of the official training part, which comes first; 0: there is none

    @property
    def kind(self) -> str:
        """How its estimators are called."""
        return "classifier" if self.n_classes else "regressor"

    @property
    def encoded(self) -> np.ndarray:
        """Return the columns with categories of three and more labels as one column of 0 and 1 per label.

        Columns of more than 20 labels stay codes.
        """
        parts = []
        for column, is_category in zip(self.X.T, self.is_category, strict=True):
            labels = np.unique(column[~np.isnan(column)]) if is_category else ()
            if 3 <= len(labels) <= 20:
                flags = (column[:, np.newaxis] == labels).astype(np.float32)
                flags[np.isnan(column)] = np.nan
                parts.append(flags)
            else:
                parts.append(column[:, np.newaxis])
        return np.hstack(parts)


def names(folder: Path) -> list[str]:
    """Return the sets of the folder, in the order of the index, that have a file."""
    return [row["name"] for row in _index(folder) if _file(folder, row["name"])]


def load(folder: Path, name: str) -> Table:
    path = _file(folder, name)
    if path is None:
        raise SystemExit(f"The folder {folder} has neither {name}.npz nor {name}.parquet.")
    if path.suffix == ".parquet":
        return _from_parquet(path, next(row for row in _index(folder) if row["name"] == name))
    with np.load(path) as packed:
        n_columns = int(packed["n_columns"])
        X = np.column_stack([packed[f"x{j}"].astype(np.float32) for j in range(n_columns)])
        counts = (int(packed[k]) for k in ("n_classes", "n_official"))
        return Table(name, X, packed["is_category"], packed["y"], *counts)


def pack(folder: Path, out: Path, max_rows: int = MAX_PACKED_ROWS) -> None:
    """Write every set as .npz, and an index of them.

    Of a set with more rows, `max_rows` are drawn at random and kept in their order.
    """
    out.mkdir(parents=True, exist_ok=True)
    kept = names(folder)
    for name in kept:
        table = load(folder, name)
        n_rows = len(table.y)
        table = table if n_rows <= max_rows else _sample(table, max_rows)
        columns = {f"x{j}": _smallest(column) for j, column in enumerate(table.X.T)}
        facts = {
            "n_columns": table.X.shape[1], "is_category": table.is_category, "y": table.y,
            "n_classes": table.n_classes, "n_official": table.n_official,
        }  # fmt: skip
        np.savez_compressed(out / f"{name}.npz", **columns, **facts)
        drawn = "" if n_rows <= max_rows else f" of {n_rows}"
        print(f"{name}: {len(table.y)}{drawn} rows, {(out / f'{name}.npz').stat().st_size / 1024:.0f} KiB", flush=True)
    with (out / "index.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["name", "task", "rows"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row for row in _index(folder) if row["name"] in kept)
    total = sum(path.stat().st_size for path in out.iterdir())
    print(f"{len(kept)} sets, {total / 2**20:.1f} MiB")


def seed_of(name: str, *numbers: int) -> np.random.Generator:
    """Return random numbers that are a function of the set and some numbers."""
    return np.random.default_rng([zlib.crc32(name.encode()), *numbers])


def shuffled(table: Table, repeat: int) -> Table:
    """Return the rows in an order that is another for each repeat."""
    order = seed_of(table.name, 5, repeat).permutation(len(table.y))
    return Table(table.name, table.X[order], table.is_category, table.y[order], table.n_classes)


def _sample(table: Table, n_rows: int) -> Table:
    rows = np.sort(seed_of(table.name).choice(len(table.y), n_rows, replace=False))
    y = table.y[rows]
    n_classes = table.n_classes
    if n_classes:
        labels, y = np.unique(y, return_inverse=True)
        n_classes = len(labels)
    n_official = int(np.count_nonzero(rows < table.n_official))
    return Table(table.name, table.X[rows], table.is_category, y, n_classes, n_official)


def _smallest(column: np.ndarray) -> np.ndarray:
    """Return the column in the smallest of a few types that keeps its values."""
    for dtype in (np.int8, np.int16, np.int32, np.float16):
        with np.errstate(invalid="ignore", over="ignore"):
            small = column.astype(dtype)
            if np.array_equal(small.astype(np.float32), column, equal_nan=True):
                return small
    return column


def _index(folder: Path) -> list[dict[str, str]]:
    with (folder / "index.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _file(folder: Path, name: str) -> Path | None:
    found = [folder / f"{name}{suffix}" for suffix in (".npz", ".parquet")]
    return next((path for path in found if path.exists()), None)


def _from_parquet(path: Path, facts: dict[str, str]) -> Table:
    import pandas as pd

    frame = pd.read_parquet(path)
    y: Any = frame.pop("target")
    if facts["task"] == "regression":
        y, n_classes = y.to_numpy(dtype=np.float64), 0
    else:
        labels, y = np.unique(y.to_numpy().astype(str), return_inverse=True)
        n_classes = len(labels)
    is_category = np.array([not pd.api.types.is_numeric_dtype(frame[c]) for c in frame])
    columns = [
        _codes(frame[c]) if category else frame[c].to_numpy(dtype=np.float32, na_value=np.nan)
        for c, category in zip(frame, is_category, strict=True)
    ]
    n_official = int(float(facts["official_train_rows"] or 0))
    return Table(path.stem, np.column_stack(columns), is_category, y, n_classes, n_official)


def _codes(column: Any) -> np.ndarray:
    """Return the places of the labels in their sorted list, NaN where there is none."""
    present = column.notna().to_numpy()
    codes = np.full(len(column), np.nan, dtype=np.float32)
    if present.any():
        codes[present] = np.unique(column[present].astype(str).to_numpy(dtype=str), return_inverse=True)[1]
    return codes
