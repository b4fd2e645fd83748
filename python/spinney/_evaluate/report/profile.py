"""The columns: kinds, gaps, values, and what was done with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._data.display import elide, one_line, shortest
from spinney._evaluate.report.view import View, class_codes
from spinney._evaluate.study.findings import Findings
from spinney._evaluate.study.profile import ColumnProfile

_MOST_COLUMNS = 250
_BARS = 24
_MOST_CATEGORIES = 8
_MOST_CLASSES = 15


def profile_section(study: Findings, train: View) -> dict[str, Any]:
    """Describe the table."""
    place = {name: j for j, name in enumerate(train.names)}
    columns = sorted(study.columns, key=lambda column: column.is_used, reverse=True)
    shown = columns[:_MOST_COLUMNS]
    return {
        "n_rows": study.n_rows,
        "n_train": len(study.y_train),
        "n_test": len(study.y_test),
        "n_used": sum(column.is_used for column in study.columns),
        "n_hidden": len(columns) - len(shown),
        "target": _target(study),
        "columns": [_column(column, train, place.get(column.name), study.n_rows) for column in shown],
    }


def _column(column: ColumnProfile, train: View, j: int | None, n_rows: int) -> dict[str, Any]:
    flags = {
        "names rows": column.is_identifier,
        "tells the target": column.is_leak,
        "date": column.is_date,
        "one value": column.is_constant,
    }
    return {
        "name": one_line(column.name),
        "kind": column.kind,
        "missing": column.missing / max(n_rows, 1),
        "distinct": column.distinct,
        "examples": [elide(one_line(value), 24) for value in column.examples][:3],
        "flags": [word for word, is_set in flags.items() if is_set],
        "is_used": column.is_used,
        "note": column.note,
        "bars": None if j is None else _bars(train, j),
    }


def _bars(view: View, j: int) -> dict[str, Any] | None:
    """Count for a small picture of a column: bins of numbers, or the commonest categories."""
    values = view.numbers[j]
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    if view.is_category(j):
        counts = np.bincount(known.astype(int), minlength=len(view.categories(j)))
        order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        order = order[counts[order] > 0]
        return {"counts": counts[order], "words": [elide(view.categories(j)[k], 24) for k in order]}
    low, high = np.quantile(known, [0.005, 0.995])
    inside = known[(known >= low) & (known <= high)]
    n_bars = min(_BARS, max(2, len(np.unique(inside))))
    counts, edges = np.histogram(inside, n_bars)
    text = [view.reader.value_text(j, float(v)) if view.is_date(j) else shortest(float(v), 4) for v in edges[[0, -1]]]
    return {"counts": counts, "ends": text}


def _target(study: Findings) -> dict[str, Any]:
    name = one_line(study.target)
    if study.classes is None:
        counts, edges = np.histogram(study.y_train.astype(float), 40)
        return {"name": name, "counts": counts, "edges": edges}
    labels = study.classes.tolist()
    counts = np.bincount(class_codes(study.y_train, labels), minlength=len(labels))
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    words = [elide(one_line(labels[k]), 30) for k in order]
    return {"name": name, "words": words, "codes": order, "counts": counts[order]}
