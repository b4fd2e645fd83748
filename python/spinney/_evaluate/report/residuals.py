"""Where predictions of values miss: residuals of the test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._data.types import Floats
from spinney._evaluate.report.view import View, sample
from spinney._evaluate.study.findings import Findings

_MOST_POINTS = 700
_BARS = 32
_BINS = 10


def residuals_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Compare predictions with values; None for classes."""
    if study.classes is not None:
        return None
    said, truth = study.test_predictions[study.best], study.y_test.astype(float)
    missed = truth - said
    rows = sample(len(truth), _MOST_POINTS)
    counts, edges = np.histogram(missed, _BARS)
    return {
        "model": study.best,
        "n": len(truth),
        "said": said[rows],
        "truth": truth[rows],
        "bins": _bins(said, missed),
        "bars": counts,
        "edges": edges,
        "bias": float(missed.mean()),
        "bias_error": float(missed.std(ddof=1) / np.sqrt(len(missed))) if len(missed) > 1 else None,
        "rmse": float(np.sqrt(np.mean(missed**2))),
        "mean_miss": float(np.abs(missed).mean()),
        "within": [{"share": share, "miss": float(np.quantile(np.abs(missed), share))} for share in (0.5, 0.8, 0.95)],
        "worst": _worst(test, said, truth),
    }


def _bins(said: Floats, missed: Floats) -> list[dict[str, float]]:
    """Spread of the residuals where predictions are low, middling and high."""
    found = []
    for rows in np.array_split(np.argsort(said, kind="stable"), min(_BINS, max(1, len(said) // 8))):
        low, lower, middle, upper, high = np.quantile(missed[rows], [0.05, 0.25, 0.5, 0.75, 0.95])
        ends = {"from": said[rows].min(), "to": said[rows].max(), "said": said[rows].mean()}
        found.append(ends | {"low": low, "lower": lower, "middle": middle, "upper": upper, "high": high})
    return found


def _worst(test: View, said: Floats, truth: Floats, most: int = 8) -> dict[str, Any]:
    rows = np.argsort(-np.abs(truth - said), kind="stable")[:most]
    columns, names = test.first_columns()
    return {
        "columns": names,
        "rows": [
            {"row": int(row), "is": truth[row], "said": said[row], "cells": cells}
            for row, cells in zip(rows, test.cells(rows, columns), strict=True)
        ],
    }
