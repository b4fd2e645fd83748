"""What each column adds to single predictions: a sample of test rows, explained."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._data.display import one_line
from spinney._evaluate.report.models import explainable
from spinney._evaluate.report.view import View, sample
from spinney._evaluate.study.findings import Findings
from spinney.inspect.explain.shap import ShapValues

_MOST_NUMBERS = 40_000  # in the file, all classes together
_MOST_STEPS = 100_000_000  # rows times leaves that are walked: some seconds
_MOST_ROWS, _FEWEST_ROWS, _MOST_COLUMNS, _MOST_CLASSES = 300, 40, 14, 8


def shap_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Explain test rows by the best model that can tell; None if none can."""
    name = explainable(study)
    if name is None:
        return None
    model = study.models[name]
    classes = _explained_classes(study)
    n_columns = min(len(test.names), _MOST_COLUMNS)
    n_leaves = getattr(getattr(model, "_fitted", None), "n_leaves", 1)
    most = min(_MOST_NUMBERS // (n_columns * len(classes)), _MOST_STEPS // max(int(n_leaves), 1))
    n_rows = int(np.clip(most, _FEWEST_ROWS, _MOST_ROWS))
    rows = sample(test.n_rows, n_rows)
    explained = model.shap_values(test.take(rows))
    parts = [explained.output(label) for label in classes] if explained.output_names is not None else [explained]
    size = np.max([np.abs(part.values).mean(axis=0) for part in parts], axis=0)
    order = np.argsort(-size, kind="stable")
    shown, rest = order[:n_columns], order[n_columns:]
    return {
        "model": name,
        "is_best": name == study.best,
        "of": explained.of,
        "columns": [explained.feature_names[j] for j in shown],
        "is_category": [explained.is_category(int(j)) for j in shown],
        "n_rest": len(rest),
        "rows": rows,
        "cells": [[_cell(explained, test, i, int(rows[i]), int(j)) for j in shown] for i in range(len(rows))],
        "place": [_places(explained.numbers[:, j]) for j in shown],
        "truth": [_text(value) for value in study.y_test[rows].tolist()],
        "outputs": [
            {
                "name": None if part is explained else one_line(label),
                "base": part.base_values,
                "values": part.values[:, shown],
                "rest": part.values[:, rest].sum(axis=1),
            }
            for part, label in zip(parts, classes, strict=False)
        ],
    }


def _explained_classes(study: Findings) -> list[Any]:
    if study.classes is None:
        return [None]
    classes: list[Any] = study.classes.tolist()
    return classes[1:] if len(classes) == 2 else classes[:_MOST_CLASSES]


def _places(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    """Place of each value among the others, 0 to 1: how the page colours it. None: missing."""
    known = ~np.isnan(values)
    places = np.full(len(values), np.nan)
    if known.any():
        low, high = np.quantile(values[known], [0.05, 0.95])
        places[known] = np.clip((values[known] - low) / (high - low), 0, 1) if high > low else 0.5
    return [None if np.isnan(place) else round(float(place), 2) for place in places]


def _cell(explained: ShapValues, test: View, i: int, row: int, column: int) -> str:
    """Write a cell; of categories, also those that the model does not know."""
    place = test.names.index(explained.feature_names[column]) if explained.feature_names[column] in test.names else None
    known = place is not None and test.is_category(place)
    return test.text(row, place) if known and place is not None else str(explained.text_of(i, column))


def _text(value: object) -> str:
    return one_line(value) if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else str(value)
