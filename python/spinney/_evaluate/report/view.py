"""A table read with the schema of a tree: numbers of each column, texts of cells, samples of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data import read_table
from spinney._data.columns import column_label, match_columns
from spinney._data.display import elide, one_line, shortest
from spinney._data.feature import codes_by_name
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._evaluate.study.findings import Findings
from spinney._evaluate.study.rows import RowNames
from spinney._tree.tree_estimator import BaseTree
from spinney.inspect.text.reader import TreeReader

Rows = NDArray[np.intp]

_CELL_LETTERS = 28
_LISTED_COLUMNS = 6  # of a listed row


class View:
    """Rows of a table, read with the schema of a fitted tree.

    Parameters
    ----------
    tree : estimator
        A fitted decision tree.
    X : table
        Rows.
    row_names : RowNames, optional
        Their names. None: those of the table.
    """

    def __init__(self, tree: BaseTree, X: TableLike, row_names: RowNames | None = None) -> None:
        self.reader = TreeReader(tree)
        self.table = pick_table(X)
        self.row_names = row_names or RowNames.of_table(self.table)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [feature.name for feature in self.reader.features]

    @cached_property
    def numbers(self) -> list[Floats]:
        """By column: numbers, or codes of categories, including unseen ones; NaN is missing."""
        return [values for values, _ in self._read]

    @cached_property
    def _read(self) -> list[tuple[Floats, list[str]]]:
        """By column: its numbers, and the names of unseen categories."""
        columns: list[tuple[Floats, list[str]]] = [(values, []) for values in self.reader.values(self.table.native)]
        schema, raw = self.reader.model.schema_, read_table(self.table.native)
        if schema.pool is not None:
            return columns
        names = schema.names if schema.has_names else None
        order = match_columns(raw.names, raw.n_columns, names, schema.n_features, type(self.reader.model).__name__)
        for j, feature in enumerate(schema.features):
            if feature.kind == "category":
                column = raw.column(j if order is None else order[j])
                columns[j] = codes_by_name(feature, column, raw.n_rows, column_label(j, names))
        return columns

    def is_category(self, column: int) -> bool:
        """Return whether a column holds categories."""
        return bool(self.reader.features[column].categories)

    def categories(self, column: int) -> list[str]:
        """Return the categories of a column; unseen ones come last."""
        names = [*self.reader.features[column].categories, *self._read[column][1]]
        return [one_line(name) for name in names]

    def has_known(self, column: int, rows: Rows) -> bool:
        """Return whether some rows have a number or a known category in a column."""
        n_categories = len(self.reader.features[column].categories) or np.inf
        return bool((self.numbers[column][rows] < n_categories).any())

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell."""
        return self.value_text(column, float(self.numbers[column][row]))

    def value_text(self, column: int, value: float, digits: int = 5) -> str:
        """Return the text of a number of a column: a number, a date, a category, a truth value or ``missing``."""
        feature = self.reader.features[column]
        if feature.kind == "number" and not feature.clock and not np.isnan(value):
            return shortest(value, digits)
        if feature.kind == "category" and not np.isnan(value):
            return elide(self.categories(column)[int(value)], _CELL_LETTERS)
        return elide(self.reader.value_text(column, value), _CELL_LETTERS)

    def cells(self, rows: Rows, columns: Sequence[int]) -> list[list[str]]:
        """Return the texts of some rows and columns."""
        return [[self.text(int(row), j) for j in columns] for row in rows]

    def listed(self, rows: Rows, **values: Iterable[Any]) -> dict[str, Any]:
        """Return a list of rows: their names, named values of each row, and the cells of the first columns."""
        columns = range(min(len(self.names), _LISTED_COLUMNS))
        entries = zip(
            self.row_names.texts(rows), zip(*values.values(), strict=True), self.cells(rows, columns), strict=True
        )
        return {
            "columns": self.names[:_LISTED_COLUMNS],
            "rows": [
                {"row": row, **dict(zip(values, one, strict=True)), "cells": cells} for row, one, cells in entries
            ],
        }

    def take(self, rows: Rows) -> Any:
        """Return some rows as a table of the same type."""
        return self.table.take(rows)


def class_codes(y: NDArray[Any], labels: Sequence[object]) -> Rows:
    """Return the codes of labels; -1 for an unknown label."""
    codes = {label: code for code, label in enumerate(labels)}
    return np.array([codes.get(label, -1) for label in np.asarray(y).tolist()], dtype=np.intp)


def sample(n_rows: int, most: int, seed: int = 0) -> Rows:
    """Return a reproducible sample of at most `most` row numbers, sorted."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:most]).astype(np.intp)


def histogram(values: Floats, most: int) -> tuple[NDArray[np.intp], Floats, Floats | None]:
    """Return counts and edges of a histogram, and the value of each bar where it has a single one.

    Few whole numbers, such as 0 and 1, have a bar each; other values share `most` bars of equal width.
    """
    whole = None
    if (values % 1 == 0).all() and np.ptp(values) < most:
        whole = np.arange(values.min(), values.max() + 1)
    counts, edges = np.histogram(values, most if whole is None else np.append(whole, whole[-1] + 1) - 0.5)
    return counts, edges, whole


SECONDS = 3.0  # time limit for the predictions of one section


def affordable(study: Findings, n_rows: int, method: str = "predict") -> str | None:
    """Return the model that is kept, if it predicts a number of rows within the time limit, or else the best that does.

    Parameters
    ----------
    study : Study
    n_rows : int
        Total number of rows to predict.
    method : str, default="predict"
        Method that the model must have.

    Returns
    -------
    str or None
    """
    held_out = float(np.mean([len(held) for _, held in study.folds]))
    for entry in sorted(study.leaderboard, key=lambda entry: entry.name != study.best):
        is_quick = entry.predict_seconds / max(held_out, 1.0) * n_rows <= SECONDS
        if is_quick and not entry.is_baseline and hasattr(study.models.get(entry.name), method):
            return entry.name
    return None
