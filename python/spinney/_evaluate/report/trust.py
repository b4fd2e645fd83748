"""Where not to trust the model: rows unlike those learned from, columns that drift, parts where it errs most."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from spinney._data.display import one_line
from spinney._data.reproducible import log
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._evaluate.report.view import View, class_codes, sample
from spinney._evaluate.study.findings import Findings
from spinney._forest.isolation import IsolationForest
from spinney._forest.random_forests import RandomForestClassifier
from spinney._tree.regressor import DecisionTreeRegressor
from spinney.inspect.text.reader import TreeReader

_MOST_ROWS = 4000  # of either part, to tell them apart and to find odd rows
_MOST_COLUMNS = 12
_MOST_TOLD = 300  # columns by which the parts are told apart
_MOST_PARTS = 6
_ODD = 0.01  # share of the training rows that are called odd
_LEAST = 1e-15  # probability, so that a loss is finite


def trust_section(study: Findings, train: View, test: View) -> dict[str, Any]:
    """Gather the reasons for doubt."""
    losses = {
        "train": _losses(study, study.out_of_fold[study.best], study.y_train),
        "test": _losses(study, study.test_predictions[study.best], study.y_test),
    }
    return {
        "model": study.best,
        "loss": "log loss" if study.classes is not None else "size of the miss",
        "parts": _weak_parts(study, losses["train"], losses["test"]),
        "odd": _odd_rows(study, train, test, losses["test"]),
        "outside": _outside(train, test),
        "drift": _drift(train, test),
        "told_apart": _told_apart(train, test),
    }


def _losses(study: Findings, said: Floats, y: NDArray[Any]) -> Floats:
    """Loss of each row; NaN where the row was never held out."""
    if study.classes is None:
        return np.asarray(np.abs(said - y.astype(np.float64)))
    codes = class_codes(y, study.classes.tolist())
    given = said[np.arange(len(codes)), np.maximum(codes, 0)]
    return np.asarray(np.where(codes >= 0, -log(np.maximum(given, _LEAST)), np.nan))


def _weak_parts(study: Findings, train: Floats, test: Floats) -> list[dict[str, Any]]:
    """Grow a small tree on the held-out losses: its leaves are the parts of the table that the model finds hard."""
    known = np.flatnonzero(~np.isnan(train))
    least = max(20, len(known) // 20)
    if len(known) < 3 * least:
        return []
    rows = pick_table(study.X_train).take(known)
    tree = DecisionTreeRegressor(max_leaf_nodes=_MOST_PARTS, min_samples_leaf=least, random_state=0)
    reader = TreeReader(tree.fit(rows, train[known]), show_missing=False)
    leaf_of_test = np.asarray(tree.apply(study.X_test)).reshape(-1)
    parts = []
    for step in reader.walk():
        if not reader.is_leaf(step.node):
            continue
        inside = test[leaf_of_test == step.node]
        parts.append(
            {
                "rule": [condition.describe(show_missing=False) for condition in step.path.values()] or ["all rows"],
                "n": reader.n_rows(step.node),
                "share": reader.share_of_all(step.node),
                "held_out": float(reader.tree.flat_value[step.node, 0]),
                "n_test": len(inside),
                "test": float(np.nanmean(inside)) if (~np.isnan(inside)).any() else None,
            }
        )
    return sorted(parts, key=lambda part: -part["held_out"])


def _odd_rows(study: Findings, train: View, test: View, losses: Floats) -> dict[str, Any]:
    """Find test rows that random cuts part from the training rows quickly, and how the model does on them."""
    rows = sample(train.n_rows, _MOST_ROWS)
    forest = IsolationForest(random_state=0).fit(train.take(rows))
    usual = forest.score_samples(train.take(rows))
    line = float(np.quantile(usual, _ODD))
    shown = sample(test.n_rows, _MOST_ROWS)
    scores = forest.score_samples(test.take(shown))
    is_odd, loss = scores < line, losses[shown]
    order = np.argsort(scores, kind="stable")[:5]
    odd = order[is_odd[order]]
    columns, names = test.first_columns()
    return {
        "n": len(shown),
        "n_odd": int(is_odd.sum()),
        "expected": _ODD,
        "loss_odd": _mean(loss[is_odd]),
        "loss_usual": _mean(loss[~is_odd]),
        "columns": names,
        "rows": [
            {"row": int(shown[k]), "loss": loss[k], "cells": cells}
            for k, cells in zip(odd, test.cells(shown[odd], columns), strict=True)
        ],
    }


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _outside(train: View, test: View) -> list[dict[str, Any]]:
    """Count test values that no training row came near: beyond the range, unseen, missing where nothing was."""
    found: list[dict[str, Any]] = []
    for j, name in enumerate(test.names):
        learned, asked = train.numbers[j], test.numbers[j]
        known = learned[~np.isnan(learned)]
        counts: dict[str, int] = {"missing": 0 if np.isnan(learned).any() else int(np.isnan(asked).sum())}
        if train.is_category(j):
            counts["unseen"] = int((~np.isin(asked[~np.isnan(asked)], known)).sum())
        elif len(known):
            counts |= {"below": int((asked < known.min()).sum()), "above": int((asked > known.max()).sum())}
        if total := sum(counts.values()):
            found.append({"name": one_line(name), "n": total, **counts})
    return sorted(found, key=lambda entry: -entry["n"])[:_MOST_COLUMNS]


def _drift(train: View, test: View) -> list[dict[str, Any]]:
    """How far the columns of the two parts lie apart: the largest gap between their distributions."""
    found: list[dict[str, Any]] = []
    for j, name in enumerate(test.names):
        distance, line = _distance(train.numbers[j], test.numbers[j], train.is_category(j))
        found.append({"name": one_line(name), "distance": distance, "chance": line})
    return sorted(found, key=lambda entry: -(entry["distance"] - entry["chance"]))[:_MOST_COLUMNS]


def _distance(learned: Floats, asked: Floats, is_category: bool) -> tuple[float, float]:
    """Kolmogorov and Smirnov's distance, or half the sum of differences of shares; and what chance alone reaches.

    Missing values are a value of their own, the largest. One column in twenty passes the line by chance.
    """
    n, m = len(learned), len(asked)
    a, b = (np.where(np.isnan(values), np.inf, values) for values in (learned, asked))
    values = np.unique(np.concatenate([a, b]))
    if is_category:
        shares = [np.bincount(np.searchsorted(values, part), minlength=len(values)) / len(part) for part in (a, b)]
        pooled = (n * shares[0] + m * shares[1]) / (n + m)
        expected = np.sqrt(2 / np.pi * pooled * (1 - pooled) * (1 / n + 1 / m))
        spread = np.sqrt((1 - 2 / np.pi) * pooled * (1 - pooled) * (1 / n + 1 / m))
        chance = (expected.sum() + 1.64 * np.sqrt((spread**2).sum())) / 2
        return float(np.abs(shares[0] - shares[1]).sum() / 2), float(chance)
    below = [np.searchsorted(np.sort(part), values, side="right") / len(part) for part in (a, b)]
    return float(np.abs(below[0] - below[1]).max()), float(1.358 * np.sqrt((n + m) / (n * m)))


def _together(train: View, test: View, column: int, rows: list[NDArray[np.intp]]) -> Floats:
    """Numbers of a column in rows of both parts; codes of categories do not tell which part they come from."""
    numbers = [view.numbers[column][part] for view, part in zip((train, test), rows, strict=True)]
    if not train.is_category(column):
        return np.concatenate(numbers)
    place = {name: float(k) for k, name in enumerate(sorted({*train.categories(column), *test.categories(column)}))}
    by_code = [
        np.array([*(place[name] for name in view.categories(column)), np.nan]) for view in (train, test)
    ]  # the last one is of rows without a value
    return np.concatenate(
        [
            places[np.where(np.isnan(part), -1, part).astype(np.intp)]
            for places, part in zip(by_code, numbers, strict=True)
        ]
    )


def _told_apart(train: View, test: View) -> dict[str, Any]:
    """Let a forest tell training rows from test rows: if it can, the parts differ in more than one column."""
    rows = [sample(view.n_rows, _MOST_ROWS) for view in (train, test)]
    is_test = np.repeat([False, True], [len(part) for part in rows])
    numbers = [_together(train, test, int(j), rows) for j in sample(len(train.names), _MOST_TOLD)]
    forest = RandomForestClassifier(n_estimators=60, min_samples_leaf=5, oob_score=True, random_state=0)
    forest.fit(np.column_stack(numbers), is_test)
    said = forest.oob_decision_function_[:, 1]
    known = ~np.isnan(said)
    area = float(roc_auc_score(is_test[known], said[known]))
    n, m = int((~is_test).sum()), int(is_test.sum())
    return {"area": area, "error": float(np.sqrt((n + m + 1) / (12 * n * m)))}
