"""The answer in short, the leader board, learning curves, the columns, and how the study was made."""

from __future__ import annotations

import math
import shlex
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.metrics import get_scorer

from spinney._data.display import elide, fixed, one_line, percent, plural, shortest
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.members import seeded
from spinney._evaluate.problem import Array, EstimatorLike, Problem, Rows
from spinney._evaluate.report.view import View, class_codes
from spinney._evaluate.runner import Candidate, Runner
from spinney._evaluate.scoring import Scorer, is_loss, shown_name, shown_value
from spinney._evaluate.statistics import corrected_error
from spinney._evaluate.study.columns import ColumnProfile
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
    return {
        "note": (
            f"Scores are from {plural(len(study.folds), 'fold')} of {plural(len(study.y_train), 'training row')}, the "
            "same for all models; intervals allow for the rows that folds share. Differences are paired by fold, and "
            "p is corrected for the number of models (Holm). No model was chosen by the test rows."
        ),
        "reference": study.leaderboard[0].name,
        "metrics": [{"name": name, "words": metric_words(name), "is_loss": is_loss(name)} for name in study.metrics],
        "entries": [_entry(entry, study) for entry in study.leaderboard],
    }


def _entry(entry: Entry, study: Findings) -> dict[str, Any]:
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
        "scores": {name: _scores(entry, name, fold_share(study)) for name in study.metrics if name in entry.scores},
    }


def fold_share(study: Findings) -> float:
    """Rows held out of a fold over rows learned from, on average."""
    return float(np.mean([len(held) / len(learned) for learned, held in study.folds]))


def _scores(entry: Entry, metric: str, share: float) -> dict[str, Any]:
    folds = _shown_folds(entry, metric)
    low, high = mean_interval(folds, share, is_loss(metric))
    error = corrected_error(folds, share)
    found = {"mean": float(folds.mean()), "error": error, "low": low, "high": high, "folds": folds}
    if metric in entry.test:
        test = entry.test[metric]
        low, high = shown_ends(metric, test.low, test.high)
        found |= {"test": shown_value(metric, test.value), "test_low": low, "test_high": high}
    return found


def _shown_folds(entry: Entry, metric: str) -> Floats:
    return np.array([shown_value(metric, value) for value in entry.scores[metric].tolist()])


def shown_ends(metric: str, low: float, high: float) -> tuple[float, float]:
    """Return the ends of an interval as people say them; no loss lies below 0."""
    first, last = sorted(shown_value(metric, value) for value in (low, high))
    return (max(0.0, first) if is_loss(metric) and first < 0 else first), last


def mean_interval(folds: Floats, share: float, is_a_loss: bool) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a mean over folds; NaN for a single fold. No loss lies below 0."""
    mean, error = float(np.mean(folds)), corrected_error(folds, share)
    reach = float(t.ppf(0.975, len(folds) - 1)) * error if len(folds) > 1 else float("nan")
    low = mean - reach
    return (max(0.0, low) if is_a_loss and low < 0 else low), mean + reach


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
        self.n_columns = sum(column.is_used for column in study.columns)
        ends = mean_interval(_shown_folds(self.best, self.metric), fold_share(study), is_loss(self.metric))
        self.decimals = _decimals(ends[1] - ends[0])
        self.interval = self.from_to(ends)

    def from_to(self, ends: tuple[float, float]) -> str:
        """Write an interval; empty if it has no ends."""
        return " to ".join(fixed(end, self.decimals) for end in ends) if all(map(math.isfinite, ends)) else ""

    def score(self, value: float) -> str:
        return fixed(shown_value(self.metric, value), self.decimals)

    def asked(self) -> str:
        study = self.study
        what = f"the value of {study.target}"
        if study.classes is not None:
            labels = [elide(one_line(label), 30) for label in study.classes.tolist()]
            more = f" and {len(labels) - _FEW_CLASSES} more" if len(labels) > _FEW_CLASSES else ""
            what = f"{study.target} ({', '.join(labels[:_FEW_CLASSES])}{more})"
        n_models = sum(not entry.is_baseline for entry in study.leaderboard)
        return (
            f"Asked: how well can {what} be told from {plural(self.n_columns, 'column')}? "
            f"{plural(n_models, 'model')} learned from {plural(len(study.y_train), 'row')} and were judged on rows "
            "that they had not seen."
        )

    def answer(self) -> str:
        best, words = self.best, metric_words(self.metric)
        text = f"Best is {best.name}, with {_article(words)} of {self.score(best.mean)}"
        if self.interval:
            text += f" (95 % interval {self.interval})"
        if self.baseline is not None:
            text += f"; a baseline that looks at no column has {self.score(self.baseline.mean)}"
        test = best.test.get(self.metric)
        if test is not None:
            rows = plural(len(self.study.y_test), "row")
            text += f". On the {rows} locked away for the end it has {self.score(test.value)}"
        return text + "."

    def goes_by(self, columns: list[str]) -> str:
        n_leaves = int(self.study.tree.tree_.n_leaves)
        tree = f"a tree of {plural(n_leaves, 'leaf')} that fits on a page is shown below"
        if self.baseline is not None and self.baseline.mean >= self.best.mean:
            return f"That is no better than the baseline: these columns may not tell {self.study.target}; {tree}."
        if not columns:
            return f"No column moves the predictions; {tree}."
        named = [elide(one_line(name), 40) for name in columns[:3]]
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        return f"It goes mostly by {listed}; {tree}."

    def tiles(self) -> list[dict[str, Any]]:
        study, best, words = self.study, self.best, metric_words(self.metric)
        direction = "lower is better" if is_loss(self.metric) else "higher is better"
        interval = f"{words}, {self.interval}; {direction}" if self.interval else f"{words}; {direction}"
        tiles = [{"what": f"best: {best.name}", "figure": self.score(best.mean), "more": interval, "is_lead": True}]
        test = best.test.get(self.metric)
        if test is not None:
            ends, rows = self.from_to(shown_ends(self.metric, test.low, test.high)), plural(len(study.y_test), "row")
            more = f"{ends} on {rows}" if ends else f"{rows} never used before"
            tiles.append({"what": "the same on test rows", "figure": self.score(test.value), "more": more})
        if self.baseline is not None:
            more = f"{self.baseline.name}: {_baseline_words(study)}"
            tiles.append({"what": "baseline", "figure": self.score(self.baseline.mean), "more": more})
        n_all = len(study.y_train) + len(study.y_test)
        more = f"{plural(self.n_columns, 'column')}, {plural(len(study.y_test), 'row')} kept for the test"
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


def _article(words: str) -> str:
    return f"an {words}" if words[0].lower() in "aeior" and not words.lower().startswith(("ro", "re")) else f"a {words}"


def _decimals(spread: float) -> int:
    return min(8, max(0, 1 - math.floor(math.log10(spread / 4)))) if math.isfinite(spread) and spread > 0 else 4


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
    runner, model = Runner(Problem(table, y)), seeded(study.models[name], np.random.RandomState(0))
    held, learned = np.full((len(folds), len(sizes)), np.nan), np.full((len(folds), len(sizes)), np.nan)
    for k, (train, test) in enumerate(folds):
        order = np.random.default_rng(k).permutation(train)
        for s, size in enumerate(sizes):
            rows = np.sort(order[:size])
            if study.classes is not None and len(np.unique(y[rows])) < len(study.classes):
                continue
            try:
                fitted = runner.fit(Candidate(name, model), rows)
            except ValueError:  # of so few rows, or of a class; the study has fitted it to all of them
                if size == sizes[-1]:
                    raise
                continue
            held[k, s] = shown_value(study.metric, _score(scorer, fitted, table.take(test), y[test]))
            learned[k, s] = shown_value(study.metric, _score(scorer, fitted, table.take(rows), y[rows]))
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
    return np.asarray(np.ma.masked_invalid(values).mean(axis=0).filled(np.nan))


_FLAGS = {"models": "--model", "random_state": "--seed"}  # others: the option's own name


def made_section(study: Findings, left_out: list[str]) -> dict[str, Any]:
    """Gather notes, versions, time and command, and the titles of parts of the page that no model had time for."""
    said = "".join(f", {name}={value!r}" for name, value in study.options.items())
    table = repr(study.source) if study.source else "table"
    code = one_line(f"found = spinney.study({table}, {study.target!r}{said})")
    parts = ", ".join(f"“{title}”" for title in left_out)
    absent = [f"Not on this page, as the best models would take too long to answer: {parts}."] if left_out else []
    return {
        "notes": [one_line(note) for note in [*study.notes, *absent]],
        "calibration": one_line(study.calibration),
        "seconds": study.seconds,
        "versions": study.versions,
        "n_folds": len(study.folds),
        "command": study.command,
        "code": f"import spinney\n\n{code}\nfound.save('best.model')\nfound.report('report.html')",
    }


def command_line(table: str, target: str, options: dict[str, Any]) -> str:
    """Write the command of a study with all options that were given.

    Parameters
    ----------
    table : str
        The file.
    target : str
        The column to predict.
    options : dict of str to value
        By their names in Python; lists are told one by one, and None, False and empty ones not at all.
    """
    words = ["spinney", "study", table, "--target", target]
    for name, given in options.items():
        flag = _FLAGS.get(name, f"--{name}")
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if value is not None and value is not False:
                words += [flag] if value is True else [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return " ".join(shlex.quote(one_line(word)) for word in words)


_MOST_COLUMNS = 250
_BARS = 24
_MOST_CATEGORIES = 8
_MOST_CLASSES = 15


def profile_section(study: Findings, train: View) -> dict[str, Any]:
    """Describe the table."""
    place = {name: j for j, name in enumerate(train.names)}
    columns = sorted(study.columns, key=lambda column: column.is_used, reverse=True)
    shown = columns[:_MOST_COLUMNS]
    return {
        "n_rows": study.n_rows,
        "n_train": len(study.y_train),
        "n_test": len(study.y_test),
        "n_used": sum(column.is_used for column in study.columns),
        "n_hidden": len(columns) - len(shown),
        "target": _target(study),
        "columns": [_column(column, train, place.get(column.name), study.n_rows) for column in shown],
    }


def _column(column: ColumnProfile, train: View, j: int | None, n_rows: int) -> dict[str, Any]:
    flags = {
        "names rows": column.is_identifier,
        "tells the target": column.is_leak,
        "date": column.is_date,
        "one value": column.is_constant,
    }
    return {
        "name": one_line(column.name),
        "kind": column.kind,
        "missing": column.missing / max(n_rows, 1),
        "distinct": column.distinct,
        "examples": [elide(one_line(value), 24) for value in column.examples][:3],
        "flags": [word for word, is_set in flags.items() if is_set],
        "is_used": column.is_used,
        "note": column.note,
        "bars": None if j is None else _bars(train, j),
    }


def _bars(view: View, j: int) -> dict[str, Any] | None:
    """Count for a small picture of a column: bins of numbers, or the commonest categories."""
    values = view.numbers[j]
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    if view.is_category(j):
        counts = np.bincount(known.astype(int), minlength=len(view.categories(j)))
        order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        order = order[counts[order] > 0]
        return {"counts": counts[order], "words": [elide(view.categories(j)[k], 24) for k in order]}
    low, high = np.quantile(known, [0.005, 0.995])
    inside = known[(known >= low) & (known <= high)]
    n_bars = min(_BARS, max(2, len(np.unique(inside))))
    counts, edges = np.histogram(inside, n_bars)
    text = [view.reader.value_text(j, float(v)) if view.is_date(j) else shortest(float(v), 4) for v in edges[[0, -1]]]
    return {"counts": counts, "ends": text}


def _target(study: Findings) -> dict[str, Any]:
    name = one_line(study.target)
    if study.classes is None:
        counts, edges = np.histogram(study.y_train.astype(float), 40)
        return {"name": name, "counts": counts, "edges": edges}
    labels = study.classes.tolist()
    counts = np.bincount(class_codes(study.y_train, labels), minlength=len(labels))
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    words = [elide(one_line(labels[k]), 30) for k in order]
    return {"name": name, "words": words, "codes": order, "counts": counts[order]}
