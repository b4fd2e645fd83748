"""Which columns matter, with an interval for each, and which of them act together."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t

from spinney._data.display import one_line
from spinney._evaluate.report.board import metric_words
from spinney._evaluate.report.models import affordable
from spinney._evaluate.report.view import View, sample
from spinney._evaluate.scoring import is_loss
from spinney._evaluate.study.findings import Findings
from spinney.inspect.explain.interactions import interaction_strength
from spinney.inspect.explain.permutation import permutation_importance

_MOST_COLUMNS = 20
_MOST_ROWS, _FEWEST_ROWS = 2000, 60
_REPEATS = 10
_MOST_PERMUTED = 300  # columns
_PAIRS, _PAIR_COLUMNS, _PAIR_ROWS = 8, 6, 50


def importances_section(study: Findings, test: View, shap: dict[str, Any] | None) -> dict[str, Any] | None:
    """Measure what the model loses when a column is shuffled; where that takes too long, what columns add."""
    found = _permuted(study, test) or _added(shap)
    if found is None:
        return None
    names = [column["name"] for column in found["columns"][:_PAIR_COLUMNS]]
    return found | {"pairs": _pairs(study, test, names)}


def _permuted(study: Findings, test: View) -> dict[str, Any] | None:
    n_columns = len(test.names)
    if n_columns > _MOST_PERMUTED:
        return None
    for most in (_MOST_ROWS, 500, _FEWEST_ROWS):
        rows = sample(test.n_rows, most)
        name = affordable(study, len(rows) * n_columns * _REPEATS)
        if name == study.best or (name is not None and most == _FEWEST_ROWS):
            break
    else:
        return None
    y = study.y_test[rows]
    if study.classes is not None and len(np.unique(y)) < len(study.classes):
        return None  # scores need every class
    found = permutation_importance(
        study.models[name], test.take(rows), y, scoring=study.metric, n_repeats=_REPEATS, random_state=0
    )
    reach = float(t.ppf(0.975, _REPEATS - 1)) * found.standard_error
    words = metric_words(study.metric)
    change = "rise" if is_loss(study.metric) else "fall"
    return {
        "title": f"What {name} loses when a column is shuffled",
        "note": (
            f"{change.capitalize()} of the {words} on {len(rows):,} test rows when the values of a column change "
            f"places. Lines are 95 % intervals over {_REPEATS} shuffles; columns that say the same share their worth."
        ),
        "unit": f"{change} of the {words}",
        "columns": [_column(found.names[j], found.importance[j], reach[j]) for j in found.order[:_MOST_COLUMNS]],
    }


def _column(name: str, value: float, reach: float) -> dict[str, Any]:
    return {"name": name, "value": value, "low": value - reach, "high": value + reach}


def _added(shap: dict[str, Any] | None) -> dict[str, Any] | None:
    """Mean size of what each column adds, over the rows that were explained."""
    if shap is None:
        return None
    values = np.mean([np.abs(np.asarray(part["values"])) for part in shap["outputs"]], axis=0)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    order = np.argsort(-mean, kind="stable")[:_MOST_COLUMNS]
    over = ", mean of the classes" if len(shap["outputs"]) > 1 else ""
    return {
        "title": f"Mean size of what each column adds, {shap['model']}",
        "note": f"In the {shap['of']}{over}, over {len(values)} test rows; lines are 95 % intervals.",
        "unit": "mean size of what the column adds",
        "columns": [_column(shap["columns"][j], mean[j], 1.96 * error[j]) for j in order],
    }


def _pairs(study: Findings, test: View, names: list[str]) -> dict[str, Any] | None:
    """Find columns that act together, in the best model made of trees: Friedman's H."""
    n_asked = len(names) * (len(names) + 1) // 2
    name = affordable(study, n_asked * _PAIR_ROWS**2, "shap_values")
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
