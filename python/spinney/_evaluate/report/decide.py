"""How good probabilities are, and what to decide by them: calibration, ROC, precision and recall, confusion, costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from spinney._data.display import elide, one_line
from spinney._data.types import Floats
from spinney._evaluate.report.view import View, class_codes
from spinney._evaluate.study.findings import Findings

Codes = NDArray[np.intp]

_MOST_THRESHOLDS = 200
_MOST_CLASSES = 12
_BARS = 30  # of the histogram of probabilities
_BINS = 10  # of the calibration
_Z = 1.96


def decide_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Judge the probabilities of the best model on rows that it has not learned from."""
    if study.classes is None:
        return None
    labels = study.classes.tolist()
    judged = {}
    for name, said, y in (
        ("test", study.test_predictions[study.best], study.y_test),
        ("folds", study.out_of_fold[study.best], study.y_train),
    ):
        codes, shares = class_codes(y, labels), said
        known = (codes >= 0) & ~np.isnan(shares).any(axis=1)
        judged[name] = (shares[known], codes[known])
    counts = np.bincount(judged["folds"][1], minlength=len(labels))
    shown = [1] if len(labels) == 2 else np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES]).tolist()
    return {
        "model": study.best,
        "calibration": study.calibration,
        "names": [elide(one_line(label), 40) for label in labels],
        "confusion": _confusion(*judged["test"], len(labels)),
        "classes": [
            {"code": code, "name": one_line(labels[code])}
            | {name: _one_class(shares[:, code], codes == code) for name, (shares, codes) in judged.items()}
            for code in shown
        ],
        "surprises": _surprises(study, test, labels),
    }


def _one_class(share: Floats, is_it: NDArray[np.bool_]) -> dict[str, Any]:
    """Describe one class against the others by the probability that the model gives it."""
    n_yes, n_no = int(is_it.sum()), int((~is_it).sum())
    threshold, hits, alarms = _counts_above(share, is_it)
    has_both = n_yes > 0 and n_no > 0
    edges = np.linspace(0, 1, _BARS + 1)
    return {
        "n_yes": n_yes,
        "n_no": n_no,
        "threshold": threshold,
        "hits": hits,
        "alarms": alarms,
        "area": roc_auc_score(is_it, share) if has_both else None,
        "area_error": _area_error(share[is_it], share[~is_it]) if has_both else None,
        "precision": average_precision_score(is_it, share) if has_both else None,
        "brier": float(np.mean((share - is_it) ** 2)) if len(share) else None,
        "bars": [np.histogram(share[part], edges)[0] for part in (is_it, ~is_it)],
        "bins": _calibration(share, is_it),
    }


def _counts_above(share: Floats, is_it: NDArray[np.bool_]) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Rows of the class, and others, that lie at or above each threshold; thresholds fall from above all to 0.

    Where there are many distinct probabilities, thresholds are spread over the rows of either kind, so that no part of
    a curve is coarse.
    """
    order = np.argsort(-share, kind="stable")
    sorted_share, sorted_yes = share[order], is_it[order]
    last = np.flatnonzero(np.append(sorted_share[1:] != sorted_share[:-1], True)) if len(share) else np.empty(0, int)
    hits, alarms = np.cumsum(sorted_yes)[last], np.cumsum(~sorted_yes)[last]
    if len(last) > _MOST_THRESHOLDS:
        spread = [np.linspace(0, len(last) - 1, _MOST_THRESHOLDS // 2).round().astype(np.intp)]
        for counts in (hits, alarms):
            places = np.searchsorted(counts, np.linspace(0, counts[-1], _MOST_THRESHOLDS // 4))
            spread.append(places.astype(np.intp))
        kept = np.unique(np.clip(np.concatenate(spread), 0, len(last) - 1))
        last, hits, alarms = last[kept], hits[kept], alarms[kept]
    return np.append(1.01, sorted_share[last]), np.append(0, hits), np.append(0, alarms)


def _area_error(yes: Floats, no: Floats) -> float:
    """Return the standard error of the area under the ROC curve (DeLong 1988)."""

    def places(values: Floats, others: Floats) -> Floats:
        ordered = np.sort(others)
        below, up_to = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
        return np.asarray((below + up_to) / (2 * len(others)))

    parts = [places(yes, no), 1 - places(no, yes)]
    return float(np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts if len(part) > 1)))


def _calibration(share: Floats, is_it: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Compare probabilities with what came, in bins of as many rows each; intervals by Wilson."""
    bins = []
    for rows in np.array_split(np.argsort(share, kind="stable"), min(_BINS, max(1, len(share) // 5))):
        n = len(rows)
        if n == 0:
            continue
        came = float(is_it[rows].mean())
        middle = (came + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z * np.sqrt(came * (1 - came) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
        bins.append(
            {"said": float(share[rows].mean()), "came": came, "low": middle - half, "high": middle + half, "n": n}
        )
    return bins


def _confusion(shares: Floats, codes: Codes, n_classes: int) -> dict[str, Any]:
    """Count the test rows by class and by the class that is said of them, the commonest classes first."""
    said = shares.argmax(axis=1)
    counts = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(counts, (codes, said), 1)
    order = np.argsort(-counts.sum(axis=1), kind="stable")[:_MOST_CLASSES]
    order = np.sort(order)
    return {"classes": order, "counts": counts[np.ix_(order, order)], "n_hidden": n_classes - len(order)}


def _surprises(study: Findings, test: View, labels: list[Any], most: int = 8) -> dict[str, Any]:
    """Find the test rows whose class the model held least likely."""
    codes, shares = class_codes(study.y_test, labels), study.test_predictions[study.best]
    given = np.where(codes >= 0, shares[np.arange(len(codes)), np.maximum(codes, 0)], np.nan)
    wrong = np.flatnonzero(shares.argmax(axis=1) != codes)
    rows = wrong[np.argsort(given[wrong], kind="stable")][:most]
    columns, names = test.first_columns()
    return {
        "columns": names,
        "rows": [
            {
                "row": int(row),
                "is": one_line(study.y_test[row]),
                "said": one_line(labels[int(shares[row].argmax())]),
                "share": float(shares[row].max()),
                "given": float(given[row]),
                "cells": cells,
            }
            for row, cells in zip(rows, test.cells(rows, columns), strict=True)
        ],
        "n_wrong": len(wrong),
    }
