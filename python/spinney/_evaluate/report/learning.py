"""Would more rows help? Scores by the number of rows learned from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import get_scorer

from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._evaluate.problem import Array, EstimatorLike, Problem, Rows
from spinney._evaluate.report.board import metric_words
from spinney._evaluate.runner import Candidate, Runner
from spinney._evaluate.scoring import Scorer, is_loss, shown_value
from spinney._evaluate.study.findings import Findings

_SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)
_FOLDS = 3
_SECONDS = 4.0  # that the fits may take, by what the study measured
_FEWEST_ROWS = 20


def learning_section(study: Findings) -> dict[str, Any] | None:
    """Fit the best model that is quick enough, and the tree, to parts of the training rows; None if there are few."""
    folds = sorted(study.folds, key=lambda fold: -len(fold[0]))[:_FOLDS]  # in time, the first learn from few rows
    n_rows = min(len(learned) for learned, _ in folds)
    sizes = sorted({max(_FEWEST_ROWS, int(share * n_rows)) for share in _SHARES})
    if len(sizes) < 3:
        return None
    seconds = {entry.name: entry.fit_seconds + entry.predict_seconds for entry in study.leaderboard}
    cost = len(folds) * sum(_SHARES)
    shown = [entry.name for entry in study.leaderboard if entry.name in study.models and not entry.is_baseline]
    quick = [name for name in shown if seconds[name] * cost <= _SECONDS]
    names = list(dict.fromkeys([*quick[:2], *(name for name in quick if study.models[name] is study.tree)]))[:3]
    if not names:
        return None
    scorer = get_scorer(study.metric)
    return {
        "metric": metric_words(study.metric),
        "is_loss": is_loss(study.metric),
        "best": study.best,
        "sizes": sizes,
        "curves": [{"name": name, **_curve(study, name, folds, sizes, scorer)} for name in names],
    }


def _curve(
    study: Findings, name: str, folds: list[tuple[Rows, Rows]], sizes: list[int], scorer: Scorer
) -> dict[str, Any]:
    table, y = pick_table(study.X_train), study.y_train
    runner, candidate = Runner(Problem(table, y)), Candidate(name, study.models[name])
    held, learned = np.full((len(folds), len(sizes)), np.nan), np.full((len(folds), len(sizes)), np.nan)
    for k, (train, test) in enumerate(folds):
        order = np.random.default_rng(k).permutation(train)
        for s, size in enumerate(sizes):
            rows = np.sort(order[:size])
            if study.classes is not None and len(np.unique(y[rows])) < len(study.classes):
                continue
            try:
                model = runner.fit(candidate, rows)
            except ValueError:  # of so few rows, or of a class; the study has fitted it to all of them
                if size == sizes[-1]:
                    raise
                continue
            held[k, s] = shown_value(study.metric, _score(scorer, model, table.take(test), y[test]))
            learned[k, s] = shown_value(study.metric, _score(scorer, model, table.take(rows), y[rows]))
    return {"held_out": held.T, "learned": _means(learned), "mean": _means(held)}


def _score(scorer: Scorer, model: EstimatorLike, X: TableLike, y: Array) -> float:
    try:
        return float(scorer(model, X, y))
    except ValueError:
        classes = getattr(model, "classes_", None)
        if classes is None or len(np.unique(y)) == len(classes):
            raise
        return float("nan")  # rows that lack a class have no log loss


def _means(values: Floats) -> Floats:
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)
