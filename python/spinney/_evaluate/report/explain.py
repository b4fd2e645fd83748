"""Explanations of the model: feature importance, partial dependence, SHAP values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from spinney._data.display import elide, one_line
from spinney._data.types import Floats
from spinney._evaluate.report.overview import metric_words
from spinney._evaluate.report.view import View, affordable, sample
from spinney._evaluate.scoring import is_loss
from spinney._evaluate.study.findings import Findings
from spinney.inspect.explain.dependence import PartialDependence, partial_dependence
from spinney.inspect.explain.importances import permutation_importance
from spinney.inspect.explain.interactions import interaction_strength
from spinney.inspect.explain.shap import ShapValues

_RANKED_COLUMNS = 20
_PERMUTED_ROWS, _FEWEST_PERMUTED = 2000, 60
_REPEATS = 10
_MOST_PERMUTED = 300  # columns
_PAIRS, _PAIR_COLUMNS, _PAIR_ROWS = 8, 6, 50


def importances_section(study: Findings, test: View, shap: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return permutation importances; mean absolute SHAP values if those would take too long."""
    importances = _permuted(study, test) or _mean_shap(shap)
    if importances is None:
        return None
    names = [column["name"] for column in importances["columns"][:_PAIR_COLUMNS]]
    return importances | {"pairs": _pairs(study, test, names)}


def _permuted(study: Findings, test: View) -> dict[str, Any] | None:
    n_columns = len(test.names)
    if n_columns > _MOST_PERMUTED:
        return None
    for most in (_PERMUTED_ROWS, 500, _FEWEST_PERMUTED):
        rows = sample(test.n_rows, most)
        name = affordable(study, len(rows) * n_columns * _REPEATS)
        if name == study.best or (name is not None and most == _FEWEST_PERMUTED):
            break
    else:
        return None
    y = study.y_test[rows]
    if study.classes is not None and len(np.unique(y)) < len(study.classes):
        return None  # scores need every class
    measured = permutation_importance(
        study.models[name],
        test.take(rows),
        y,
        scoring=study.scorers.metrics[study.metric],
        n_repeats=_REPEATS,
        random_state=0,
    )
    reach = float(t.ppf(0.975, _REPEATS - 1)) * measured.standard_error
    words = metric_words(study.metric)
    change = "increase" if is_loss(study.metric) else "decrease"
    return {
        "title": f"Permutation importance, {name}",
        "note": (
            f"{change.capitalize()} of the {words} on {len(rows):,} test rows when a column is shuffled, with 95 % "
            f"intervals over {_REPEATS} shuffles. Correlated columns share their importance."
        ),
        "unit": f"{change} of the {words}",
        "columns": [
            _importance(measured.names[j], measured.importance[j], reach[j]) for j in measured.order[:_RANKED_COLUMNS]
        ],
    }


def _importance(name: str, value: float, reach: float) -> dict[str, Any]:
    return {"name": name, "value": value, "low": value - reach, "high": value + reach}


def _mean_shap(shap: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the mean absolute SHAP value of each column over the explained rows."""
    if shap is None:
        return None
    values = np.mean([np.abs(np.asarray(output["values"])) for output in shap["outputs"]], axis=0)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    order = np.argsort(-mean, kind="stable")[:_RANKED_COLUMNS]
    over = ", averaged over the classes" if len(shap["outputs"]) > 1 else ""
    return {
        "title": f"Mean absolute SHAP values, {shap['model']}",
        "note": f"Of the {shap['of']}{over}, over {len(values)} test rows, with 95 % intervals.",
        "unit": "mean absolute SHAP value",
        "columns": [_importance(shap["columns"][j], mean[j], 1.96 * error[j]) for j in order],
    }


def _pairs(study: Findings, test: View, names: list[str]) -> dict[str, Any] | None:
    """Return the strongest interactions of the best model made of trees: Friedman's H."""
    n_pairs = len(names) * (len(names) + 1) // 2
    name = affordable(study, n_pairs * _PAIR_ROWS**2, "shap_values")
    if name is None or len(names) < 2 or test.n_rows < 20:
        return None
    found = interaction_strength(
        study.models[name], test.table.native, columns=names, max_columns=_PAIR_COLUMNS, n_rows=_PAIR_ROWS
    )
    shown = [
        {"name": f"{one_line(a)} × {one_line(b)}", "value": float(strength), "size": float(size)}
        for (a, b), strength, size in zip(found.pairs, found.pairwise, found.size, strict=True)
        if np.isfinite(strength) and strength > 0
    ]
    return {"model": name, "of": found.of, "n_rows": found.n_rows, "pairs": shown[:_PAIRS]} if shown else None


_CURVE_COLUMNS = 9
_POINTS = 24
_CURVE_ROWS = 200
_CURVES = 40  # of single rows
_MOST_CATEGORIES = 8


def dependence_section(study: Findings, test: View, columns: list[str]) -> dict[str, Any] | None:
    """Return the partial dependence on the most important columns; None if no model is fast enough."""
    rows = sample(test.n_rows, _CURVE_ROWS)
    known = {name for j, name in enumerate(test.names) if test.has_known(j, rows)}
    shown = [name for name in columns if name in known][:_CURVE_COLUMNS]
    name = affordable(study, len(rows) * _POINTS * max(len(shown), 1))
    if name is None or not shown:
        return None
    X = test.take(rows)
    drawn = np.unique(np.linspace(0, len(rows) - 1, min(_CURVES, len(rows))).round().astype(int))
    found = [
        partial_dependence(study.models[name], X, column, individual=True, n_points=_POINTS, percentiles=(0.02, 0.98))
        for column in shown
    ]
    return {
        "model": name,
        "is_best": name == study.best,
        "of": found[0].of,
        "n_rows": len(rows),
        "outputs": None
        if study.classes is None
        else [elide(one_line(label), 40) for label in _explained_classes(study)],
        "columns": [
            _curves_of(part, drawn, test.numbers[test.names.index(name)][rows])
            for part, name in zip(found, shown, strict=True)
        ],
    }


def _curves_of(curve: PartialDependence, drawn: NDArray[np.intp], values: Floats) -> dict[str, Any]:
    """Return the mean curve by output and the curves of some rows; of many categories, the most frequent."""
    average, alone = curve.average, curve.individual
    assert alone is not None
    if curve.outputs is None:
        average, alone = average[:, None], alone[:, :, None]
    texts = curve.texts()
    chosen = np.arange(len(texts))
    if curve.is_category():
        counts = np.array([(values == number).sum() for number in curve.numbers[0]])
        chosen = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES])
    digits = 3 if float(np.abs(average).max()) <= 1 else 5
    single = alone[drawn][:, chosen].round(digits).transpose(2, 0, 1)[:_MOST_CLASSES]
    return {
        "name": one_line(curve.columns[0]),
        "is_category": curve.is_category(),
        "is_date": bool(curve.features[0].clock),
        "texts": [elide(texts[k], 20) for k in chosen],
        "at": None if curve.is_category() else curve.numbers[0],
        "deciles": curve.deciles[0],
        "average": average[chosen].T[:_MOST_CLASSES],
        "single": single,
    }


_MOST_NUMBERS = 40_000  # in the file, all classes together
_MOST_STEPS = 100_000_000  # rows times leaves: some seconds
_MOST_ROWS, _FEWEST_ROWS, _MOST_COLUMNS, _MOST_CLASSES = 300, 40, 14, 8


def shap_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Return SHAP values of test rows for the best model that has them; None if none has."""
    name = affordable(study, 0, "shap_values")
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
    outputs = [explained.output(label) for label in classes] if explained.output_names is not None else [explained]
    size = np.max([np.abs(output.values).mean(axis=0) for output in outputs], axis=0)
    order = np.argsort(-size, kind="stable")
    shown, rest = order[:n_columns], order[n_columns:]
    return {
        "model": name,
        "is_best": name == study.best,
        "of": explained.of,
        "columns": [explained.feature_names[j] for j in shown],
        "categories": [_categories(explained, int(j)) for j in shown],
        "n_rest": len(rest),
        "response": None if explained.response is None else explained.response_name,
        "rows": rows,
        "cells": [[_cell(explained, test, i, int(rows[i]), int(j)) for j in shown] for i in range(len(rows))],
        "colour": [_colours(explained, int(j)) for j in shown],
        "actual": [_text(value) for value in study.y_test[rows].tolist()],
        "outputs": [
            {
                "name": None if output is explained else one_line(label),
                "base": output.base_values,
                "response": output.response,
                "values": output.values[:, shown],
                "rest": output.values[:, rest].sum(axis=1),
            }
            for output, label in zip(outputs, classes, strict=False)
        ],
    }


def _explained_classes(study: Findings) -> list[Any]:
    if study.classes is None:
        return [None]
    classes: list[Any] = study.classes.tolist()
    return classes[1:] if len(classes) == 2 else classes[:_MOST_CLASSES]


def _categories(explained: ShapValues, column: int) -> list[str] | None:
    """Return the categories in the rows, in the order of their colours; None for a column of numbers."""
    if not explained.is_category(column):
        return None
    present, rows = np.unique(explained.numbers[:, column], return_index=True)
    return [elide(explained.text_of(int(row), column), 24) for row in rows[~np.isnan(present)]]


def _colours(explained: ShapValues, column: int) -> list[float | None]:
    """Return the colour of each row: the position of its category, or its number scaled to 0 to 1; None: missing."""
    values = explained.numbers[:, column]
    known = ~np.isnan(values)
    if explained.is_category(column):
        codes = np.searchsorted(np.unique(values[known]), values)
        return [int(code) if is_known else None for code, is_known in zip(codes, known, strict=True)]
    scaled = np.full(len(values), np.nan)
    if known.any():
        low, high = np.quantile(values[known], [0.05, 0.95])
        scaled[known] = np.clip((values[known] - low) / (high - low), 0, 1) if high > low else 0.5
    return [None if np.isnan(value) else round(float(value), 2) for value in scaled]


def _cell(explained: ShapValues, test: View, i: int, row: int, column: int) -> str:
    """Return the text of a cell, including categories unknown to the model."""
    name = explained.feature_names[column]
    if name in test.names and test.is_category(test.names.index(name)):
        return test.text(row, test.names.index(name))
    return str(explained.text_of(i, column))


def _text(value: object) -> str:
    return one_line(value) if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else str(value)
