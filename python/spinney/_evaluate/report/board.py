"""The leader board: models, their scores fold by fold, and how sure one can be of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t

from spinney._data.display import plural
from spinney._data.types import Floats
from spinney._evaluate.scoring import is_loss, shown_name, shown_value
from spinney._evaluate.statistics import corrected_error
from spinney._evaluate.study.findings import Entry, Findings

_WORDS = {
    "roc_auc": "area under the ROC curve",
    "roc_auc_ovr": "area under the ROC curve, mean of the classes",
    "average_precision": "average precision",
    "r2": "R²",
}


def metric_words(metric: str) -> str:
    """Name a metric as people do."""
    return _WORDS.get(metric, shown_name(metric).replace("_", " "))


def board_section(study: Findings) -> dict[str, Any]:
    """Gather the leader board."""
    metrics = study.metrics
    share = float(np.mean([len(held) / len(learned) for learned, held in study.folds]))
    n_folds = len(study.folds)
    return {
        "note": (
            f"Scores are from {plural(n_folds, 'fold')} of {plural(len(study.y_train), 'training row')}, the same for "
            "all models; intervals allow for the rows that folds share. Differences are paired by fold, and p is "
            "corrected for the number of models (Holm). No model was chosen by the test rows."
        ),
        "reference": study.leaderboard[0].name,
        "metrics": [{"name": name, "words": metric_words(name), "is_loss": is_loss(name)} for name in metrics],
        "entries": [_entry(entry, study, metrics, share, n_folds) for entry in study.leaderboard],
    }


def _entry(entry: Entry, study: Findings, metrics: list[str], share: float, n_folds: int) -> dict[str, Any]:
    sign = -1 if is_loss(study.metric) else 1
    gap = entry.difference
    ends = sorted([sign * gap.low, sign * gap.high])
    return {
        "name": entry.name,
        "is_best": entry.name == study.best,
        "is_baseline": entry.is_baseline,
        "is_peer": entry.is_peer,
        "difference": {"mean": sign * gap.mean, "low": ends[0], "high": ends[1], "p": gap.p_holm},
        "fit": entry.fit_seconds,
        "predict": entry.predict_seconds,
        "scores": {name: _scores(entry, name, share, n_folds) for name in metrics if name in entry.scores},
    }


def _scores(entry: Entry, metric: str, share: float, n_folds: int) -> dict[str, Any]:
    folds = np.array([shown_value(metric, value) for value in entry.scores[metric].tolist()])
    low, high = mean_interval(folds, share, n_folds, is_loss(metric))
    found: dict[str, Any] = {
        "mean": float(folds.mean()),
        "error": corrected_error(folds, share),
        "low": low,
        "high": high,
        "folds": folds,
    }
    if metric in entry.test:
        test = entry.test[metric]
        low, high = shown_ends(metric, test.low, test.high)
        found |= {"test": shown_value(metric, test.value), "test_low": low, "test_high": high}
    return found


def shown_ends(metric: str, low: float, high: float) -> tuple[float, float]:
    """Return the ends of an interval as people say them; no loss lies below 0."""
    first, last = sorted(shown_value(metric, value) for value in (low, high))
    return (max(0.0, first) if is_loss(metric) and first < 0 else first), last


def mean_interval(folds: Floats, share: float, n_folds: int, is_a_loss: bool) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a mean over folds; NaN for a single fold. No loss lies below 0."""
    mean, error = float(np.mean(folds)), corrected_error(folds, share)
    reach = float(t.ppf(0.975, n_folds - 1)) * error if n_folds > 1 else float("nan")
    low = mean - reach
    return (max(0.0, low) if is_a_loss and low < 0 else low), mean + reach
