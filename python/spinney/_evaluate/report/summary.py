"""The answer in three sentences, and the figures beside it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spinney._data.display import elide, fixed, one_line, percent, plural, shortest
from spinney._evaluate.report.board import mean_interval, metric_words, shown_ends
from spinney._evaluate.scoring import is_loss, shown_value
from spinney._evaluate.study.findings import Findings
from spinney._evaluate.study.profile import ColumnProfile

_FEW_CLASSES = 6
_TASKS = {"binary": "two classes", "multiclass": "several classes", "regression": "values"}


def summary(study: Findings, columns: list[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the sentences and the tiles; `columns` are those that matter, the first most."""
    lines = _Lines(study)
    return [lines.asked(), lines.answer(), lines.goes_by(columns)], lines.tiles()


class _Lines:
    def __init__(self, study: Findings) -> None:
        self.study = study
        self.metric = study.metric
        self.best = study[study.best]
        self.baseline = next((entry for entry in study.leaderboard if entry.is_baseline), None)
        share = float(np.mean([len(held) / len(learned) for learned, held in study.folds]))
        folds = np.array([shown_value(self.metric, v) for v in self.best.scores[self.metric].tolist()])
        self.low, self.high = mean_interval(folds, share, len(study.folds), is_loss(self.metric))
        self.decimals = _decimals(self.high - self.low)

    def score(self, value: float) -> str:
        return fixed(shown_value(self.metric, value), self.decimals)

    def asked(self) -> str:
        study = self.study
        what = f"the value of {study.target}"
        if study.classes is not None:
            labels = [elide(one_line(label), 30) for label in study.classes.tolist()]
            more = f" and {len(labels) - _FEW_CLASSES} more" if len(labels) > _FEW_CLASSES else ""
            what = f"{study.target} ({', '.join(labels[:_FEW_CLASSES])}{more})"
        n_columns = len(_used(study))
        n_models = sum(not entry.is_baseline for entry in study.leaderboard)
        return (
            f"Asked: how well can {what} be told from {plural(n_columns, 'column')}? "
            f"{plural(n_models, 'model')} learned from {plural(len(study.y_train), 'row')} and were judged on rows "
            "that they had not seen."
        )

    def answer(self) -> str:
        best, words = self.best, metric_words(self.metric)
        text = f"Best is {best.name}, with {_article(words)} of {self.score(best.mean)}"
        if math.isfinite(self.low):
            text += f" (95 % interval {fixed(self.low, self.decimals)} to {fixed(self.high, self.decimals)})"
        if self.baseline is not None:
            text += f"; a baseline that looks at no column has {self.score(self.baseline.mean)}"
        test = best.test.get(self.metric)
        if test is not None:
            rows = plural(len(self.study.y_test), "row")
            text += f". On the {rows} locked away for the end it has {self.score(test.value)}"
        return text + "."

    @property
    def beats_nothing(self) -> bool:
        """Whether no model is better than always saying the same."""
        return self.baseline is not None and self.baseline.mean >= self.best.mean

    def goes_by(self, columns: list[str]) -> str:
        n_leaves = int(self.study.tree.tree_.n_leaves)
        tree = f"a tree of {plural(n_leaves, 'leaf')} that fits on a page is shown below"
        if self.beats_nothing:
            return f"That is no better than the baseline: these columns may not tell {self.study.target}; {tree}."
        if not columns:
            return f"No column moves the predictions; {tree}."
        named = [elide(one_line(name), 40) for name in columns[:3]]
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        return f"It goes mostly by {listed}; {tree}."

    def tiles(self) -> list[dict[str, Any]]:
        study, best, words = self.study, self.best, metric_words(self.metric)
        direction = "lower is better" if is_loss(self.metric) else "higher is better"
        interval = (
            f"{words}, {fixed(self.low, self.decimals)} to {fixed(self.high, self.decimals)}; {direction}"
            if math.isfinite(self.low)
            else f"{words}; {direction}"
        )
        tiles = [{"what": f"best: {best.name}", "figure": self.score(best.mean), "more": interval, "is_lead": True}]
        test = best.test.get(self.metric)
        if test is not None:
            ends = shown_ends(self.metric, test.low, test.high)
            rows = plural(len(study.y_test), "row")
            known = all(math.isfinite(v) for v in ends)
            low, high = (fixed(v, self.decimals) for v in ends)
            more = f"{low} to {high} on {rows}" if known else f"{rows} never used before"
            tiles.append({"what": "the same on test rows", "figure": self.score(test.value), "more": more})
        if self.baseline is not None:
            more = f"{self.baseline.name}: {_baseline_words(study)}"
            tiles.append({"what": "baseline", "figure": self.score(self.baseline.mean), "more": more})
        n_all = len(study.y_train) + len(study.y_test)
        more = f"{plural(len(_used(study)), 'column')}, {plural(len(study.y_test), 'row')} kept for the test"
        tiles.append({"what": "rows", "figure": f"{n_all:,}", "more": more})
        return tiles


def eyebrow(study: Findings) -> str:
    """Say what kind of question it is."""
    return f"A study of {_TASKS[study.task]}, judged by {metric_words(study.metric)}"


def _baseline_words(study: Findings) -> str:
    if study.classes is None:
        return f"always {shortest(float(np.mean(study.y_train.astype(float))), 4)}"
    labels, counts = np.unique(study.y_train, return_counts=True)
    most = int(counts.argmax())
    return f"{elide(one_line(labels[most]), 20)} is the commonest, {percent(counts[most] / counts.sum())}"


def _used(study: Findings) -> list[ColumnProfile]:
    return [column for column in study.columns if column.is_used]


def _article(words: str) -> str:
    return f"an {words}" if words[0].lower() in "aeior" and not words.lower().startswith(("ro", "re")) else f"a {words}"


def _decimals(spread: float) -> int:
    return min(8, max(0, 1 - math.floor(math.log10(spread / 4)))) if math.isfinite(spread) and spread > 0 else 4
