"""What the model says as one column changes: partial dependence, and the curves of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import elide, one_line
from spinney._data.types import Floats
from spinney._evaluate.report.models import affordable
from spinney._evaluate.report.view import View, sample
from spinney._evaluate.study.findings import Findings
from spinney.inspect.explain.dependence import PartialDependence, partial_dependence

_MOST_COLUMNS = 9
_POINTS = 24
_MOST_ROWS = 200
_CURVES = 40  # of single rows
_MOST_CATEGORIES, _MOST_CLASSES = 8, 8


def dependence_section(study: Findings, test: View, columns: list[str]) -> dict[str, Any] | None:
    """Ask the model about the columns that matter most; None if no model answers in time."""
    rows = sample(test.n_rows, _MOST_ROWS)
    has_values = {
        name for name, values in zip(test.names, test.numbers, strict=True) if (~np.isnan(values[rows])).any()
    }
    shown = [name for name in columns if name in has_values][:_MOST_COLUMNS]
    name = affordable(study, len(rows) * _POINTS * max(len(shown), 1))
    if name is None or not shown:
        return None
    classes = None if study.classes is None else study.classes.tolist()
    X = test.take(rows)
    drawn = np.unique(np.linspace(0, len(rows) - 1, min(_CURVES, len(rows))).round().astype(int))
    found = [
        partial_dependence(study.models[name], X, column, individual=True, n_points=_POINTS, percentiles=(0.02, 0.98))
        for column in shown
    ]
    labels = classes if classes is None or len(classes) > 2 else classes[1:]
    return {
        "model": name,
        "is_best": name == study.best,
        "of": found[0].of,
        "n_rows": len(rows),
        "outputs": None if labels is None else [elide(one_line(label), 40) for label in labels[:_MOST_CLASSES]],
        "columns": [
            _column(part, drawn, test.numbers[test.names.index(name)][rows])
            for part, name in zip(found, shown, strict=True)
        ],
    }


def _column(part: PartialDependence, drawn: NDArray[np.intp], values: Floats) -> dict[str, Any]:
    """Lay out one column: the mean by output, and the curves of some rows; of many categories, the commonest."""
    average, alone = part.average, part.individual
    assert alone is not None
    if part.outputs is None:
        average, alone = average[:, None], alone[:, :, None]
    texts = part.texts()
    kept = np.arange(len(texts))
    if part.is_category():
        counts = np.array([(values == number).sum() for number in part.numbers[0]])
        kept = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES])
    digits = 3 if float(np.abs(average).max()) <= 1 else 5
    single = [[_rounded(alone[row, kept, k], digits) for row in drawn] for k in range(alone.shape[2])][:_MOST_CLASSES]
    return {
        "name": one_line(part.columns[0]),
        "is_category": part.is_category(),
        "is_date": bool(part.features[0].clock),
        "texts": [elide(texts[k], 20) for k in kept],
        "at": None if part.is_category() else part.numbers[0],
        "deciles": part.deciles[0],
        "average": [average[kept, k] for k in range(average.shape[1])][:_MOST_CLASSES],
        "single": single,
    }


def _rounded(values: Floats, digits: int) -> list[float]:
    found: list[float] = values.round(digits).tolist()
    return found
