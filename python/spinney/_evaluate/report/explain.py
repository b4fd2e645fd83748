"""Explanations of the model: feature importance, partial dependence, SHAP values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from spinney._data.display import elide, one_line
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._evaluate.report.overview import metric_words
from spinney._evaluate.report.view import View, affordable, sample
from spinney._evaluate.scoring import is_loss
from spinney._evaluate.study.findings import Findings
from spinney._model.predictions import member_predictions
from spinney.inspect.explain.dependence import PartialDependence, partial_dependence
from spinney.inspect.explain.interactions import interaction_strength
from spinney.inspect.explain.sampled_shap import sampled_shap
from spinney.inspect.explain.shap import ShapValues

_RANKED_COLUMNS = 20
_PERMUTED_ROWS = (4000, 2000, 1000, 500, 200)
_REPEATS = 5
_BLOCKS = 20  # of test rows, for the jackknife
_MOST_PERMUTED = 300  # columns
_PAIRS, _PAIR_COLUMNS, _PAIR_ROWS, _PAIR_SAMPLES = 8, 6, (80, 50, 30), 5


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
    names = {most: affordable(study, min(most, test.n_rows) * n_columns * _REPEATS) for most in _PERMUTED_ROWS}
    most = next((most for most, name in names.items() if name == study.best), _PERMUTED_ROWS[-1])
    name, rows = names[most], sample(test.n_rows, most)
    if name is None:
        return None
    rise, error = _score_changes(study, name, test, rows)
    if np.isnan(rise).any():
        return None  # the metric is undefined on these rows
    order, reach = np.argsort(-rise, kind="stable")[:_RANKED_COLUMNS], 1.96 * error
    words = metric_words(study.metric)
    change = "increase" if is_loss(study.metric) else "decrease"
    return {
        "title": f"Permutation importance, {name}",
        "note": (
            f"{change.capitalize()} of the {words} on {len(rows):,} test rows when a column is shuffled, with 95 % "
            f"intervals over rows and {_REPEATS} shuffles. Correlated columns share their importance."
            + ("" if name == study.best else f" {study.best} would take too long here.")
        ),
        "unit": f"{change} of the {words}",
        "columns": [_importance(test.names[j], float(rise[j]), float(reach[j])) for j in order],
    }


def _score_changes(study: Findings, name: str, test: View, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the drop of the score when each column is shuffled, and its standard error.

    The error is that of the shuffles and, by the jackknife over blocks of rows, that of the rows.
    """
    table, y, random = pick_table(test.take(rows)), study.y_test[rows], np.random.default_rng(0)
    n_blocks = min(_BLOCKS, len(rows))
    block = random.permutation(np.arange(len(rows)) % n_blocks)

    def scores(X: Any) -> Floats:
        """Return the score of all rows, and without each block."""
        predictions = _predictions(study, study.models[name], X)
        without = study.scorers.scores_without(study.metric, predictions, y, block, n_blocks)
        return np.append(study.scorers.score(study.metric, predictions, y), without)

    before, n_columns = scores(table.native), table.n_columns
    drops = np.empty((n_columns, _REPEATS, 1 + n_blocks))
    for j in range(n_columns):
        for r in range(_REPEATS):
            drops[j, r] = before - scores(table.with_columns({j: random.permutation(len(rows))}))
    by_shuffle, without = drops[:, :, 0], drops[:, :, 1:].mean(axis=1)
    of_shuffles = by_shuffle.var(axis=1, ddof=1) / _REPEATS
    of_rows = (n_blocks - 1) * np.nanvar(without, axis=1)
    return by_shuffle.mean(axis=1), np.sqrt(of_shuffles + of_rows)


def _predictions(study: Findings, model: Any, X: Any) -> Floats:
    """Return class probabilities, (n_rows, n_classes), or numbers, (n_rows, 1)."""
    return member_predictions(model, X, "predict_proba", study.classes, by_code=False)


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
    """Return the strongest interactions, Friedman's H, with intervals over samples of the test rows."""
    n_pairs = len(names) * (len(names) + 1) // 2
    if len(names) < 2 or test.n_rows < 20:
        return None
    usable = [(rows, affordable(study, n_pairs * rows**2 * _PAIR_SAMPLES)) for rows in _PAIR_ROWS]
    n_rows, name = next(((rows, one) for rows, one in usable if one == study.best), usable[-1])
    if name is None:
        return None
    found = [
        interaction_strength(
            study.models[name],
            test.table.native,
            columns=names,
            max_columns=len(names),
            n_rows=n_rows,
            random_state=seed,
        )
        for seed in range(_PAIR_SAMPLES)
    ]
    strengths = [dict(zip(one.pairs, one.pairwise, strict=True)) for one in found]
    shown = []
    for a, b in found[0].pairs:
        values = np.array([np.nan_to_num(of_sample.get((a, b), of_sample.get((b, a), 0.0))) for of_sample in strengths])
        reach = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
        low, high = max(0.0, values.mean() - reach), min(1.0, values.mean() + reach)
        name_of_pair = f"{one_line(a)} × {one_line(b)}"
        shown.append({"name": name_of_pair, "value": float(values.mean()), "low": low, "high": high})
    shown = sorted((one for one in shown if one["value"] > 0), key=lambda one: -one["value"])
    about = {"model": name, "of": found[0].of, "n_rows": found[0].n_rows, "n_samples": _PAIR_SAMPLES}
    return about | {"pairs": shown[:_PAIRS]} if shown else None


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
_BACKGROUND, _FEWEST_SAMPLED, _MOST_SAMPLED = 20, 8, 120


def shap_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Return SHAP values of test rows for the model that is kept; None if no model is fast enough."""
    explained = _of_trees(study, test) or _sampled(study, test)
    if explained is None:
        return None
    name, rows, values, note = explained
    classes = [None] if values.output_names is None else _shown_classes(values.output_names)
    outputs = [values] if values.output_names is None else [values.output(label) for label in classes]
    size = np.max([np.abs(output.values).mean(axis=0) for output in outputs], axis=0)
    order = np.argsort(-size, kind="stable")
    n_columns = min(len(test.names), _MOST_COLUMNS)
    shown, rest = order[:n_columns], order[n_columns:]
    return {
        "model": name,
        "is_best": name == study.best,
        "note": note,
        "of": values.of,
        "columns": [values.feature_names[j] for j in shown],
        "categories": [_categories(values, int(j)) for j in shown],
        "n_rest": len(rest),
        "response": None if values.response is None else values.response_name,
        "rows": test.row_names.texts(rows),
        "rows_note": test.row_names.note,
        "cells": [[_cell(values, test, i, int(rows[i]), int(j)) for j in shown] for i in range(len(rows))],
        "colour": [_colours(values, int(j)) for j in shown],
        "actual": [value_text(value) for value in study.y_test[rows].tolist()],
        "outputs": [
            {
                "name": None if output is values else one_line(label),
                "base": output.base_values,
                "response": output.response,
                "values": output.values[:, shown],
                "rest": output.values[:, rest].sum(axis=1),
            }
            for output, label in zip(outputs, classes, strict=True)
        ],
    }


Explained = tuple[str, NDArray[np.intp], ShapValues, str]


def _of_trees(study: Findings, test: View) -> Explained | None:
    """Return SHAP values of the model that is kept; None if it has none."""
    model = study.models.get(study.best)
    if model is None or not hasattr(model, "shap_values"):
        return None
    n_classes = 1 if study.classes is None else min(len(study.classes), _MOST_CLASSES)
    n_columns = min(len(test.names), _MOST_COLUMNS)
    n_leaves = getattr(getattr(model, "_fitted", None), "n_leaves", 1)
    most = min(_MOST_NUMBERS // (n_columns * n_classes), _MOST_STEPS // max(int(n_leaves), 1))
    rows = sample(test.n_rows, int(np.clip(most, _FEWEST_ROWS, _MOST_ROWS)))
    try:
        values = model.shap_values(test.take(rows))
    except (TypeError, ValueError):  # such as oblique splits, or a median of trees
        return None
    return study.best, rows, values, ""


def _sampled(study: Findings, test: View) -> Explained | None:
    """Return sampled Shapley values of the model that is kept, or of the best that is fast enough."""
    n_background = min(_BACKGROUND, test.n_rows)
    for_a_row = 2 * n_background * (len(test.names) + 1)
    name = affordable(study, _FEWEST_SAMPLED * for_a_row)
    if name is None:
        return None
    most = next(
        n for n in range(_MOST_SAMPLED, 0, -1) if n <= _FEWEST_SAMPLED or name == affordable(study, n * for_a_row)
    )
    rows, background = sample(test.n_rows, most), sample(test.n_rows, n_background, seed=1)
    base, values = sampled_shap(lambda X: _predictions(study, study.models[name], X), test.table, rows, background)
    numbers = np.column_stack([column[rows] for column in test.numbers])
    explained = ShapValues(values, base, test.reader.model.schema_, numbers, list(range(len(base))))
    if study.classes is None:
        explained = explained.output(0)
    else:
        explained = explained.of_outputs(slice(0, len(base)), study.classes.tolist(), "probability of the class")
    return (
        name,
        rows,
        explained,
        f"Unknown columns take their values from {n_background} other test rows, in random orders.",
    )


def _shown_classes(labels: list[Any]) -> list[Any]:
    return labels[1:] if len(labels) == 2 else labels[:_MOST_CLASSES]


def _explained_classes(study: Findings) -> list[Any]:
    if study.classes is None:
        return [None]
    return _shown_classes(study.classes.tolist())


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


def value_text(value: object) -> str:
    """Return a label or a number as text."""
    return one_line(value) if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else str(value)
