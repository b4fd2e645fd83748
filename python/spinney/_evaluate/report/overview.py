"""Summary, leaderboard, learning curves, data, and reproducibility."""

from __future__ import annotations

import math
import shlex
import time as clock
from typing import Any

import numpy as np
from scipy.stats import t

from spinney._data.display import elide, fixed, one_line, percent, plural, shortest
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.members import seeded
from spinney._estimator.metrics import Scorer
from spinney._evaluate.problem import Array, EstimatorLike, Problem, Rows
from spinney._evaluate.report.view import View, class_codes, histogram
from spinney._evaluate.runner import Candidate, Runner
from spinney._evaluate.scoring import is_loss, shown_name, shown_value
from spinney._evaluate.statistics import corrected_error
from spinney._evaluate.study.columns import ColumnProfile
from spinney._evaluate.study.findings import Entry, Findings
from spinney._evaluate.study.plan import STACK

_WORDS = {
    "roc_auc": "area under the ROC curve",
    "roc_auc_ovr": "area under the ROC curve, mean of the classes",
    "average_precision": "average precision",
    "r2": "R²",
}


def metric_words(metric: str) -> str:
    """Return the name of a metric as text."""
    return _WORDS.get(metric, shown_name(metric).replace("_", " "))


def leaderboard_section(study: Findings) -> dict[str, Any]:
    """Return the leaderboard."""
    return {
        "note": (
            f"Scores on {plural(len(study.y_train), 'training row')} in {study.folds_words()}, the same "
            "for all models. Intervals account for the overlap of the training sets. Differences are "
            "paired by fold; p-values are corrected for all pairs of models (Holm). The test rows were not used to "
            f"choose a model.{_why_kept(study)}"
        ),
        "reference": study.leaderboard[0].name,
        "metrics": [{"name": name, "words": metric_words(name), "is_loss": is_loss(name)} for name in study.metrics],
        "word": _best_word(study),
        "entries": [_entry(entry, study) for entry in study.leaderboard],
    }


def _best_word(study: Findings) -> str:
    """Return the word for the model of the study: a simpler model may be kept than the best one."""
    ahead = next(entry for entry in study.leaderboard if entry.name == study.best or not entry.is_peer)
    return "best" if ahead.name == study.best or ahead.is_baseline else "kept"


def _why_kept(study: Findings) -> str:
    return f" {one_line(study.why)}" if _best_word(study) == "kept" else ""


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
        "scores": {name: _scores(entry, name, test_ratio(study)) for name in study.metrics if name in entry.scores},
    }


def test_ratio(study: Findings) -> float:
    """Return the mean ratio of held-out rows to training rows of the folds."""
    return float(np.mean([len(test) / len(train) for train, test in study.folds]))


def _scores(entry: Entry, metric: str, ratio: float) -> dict[str, Any]:
    folds = _shown_folds(entry, metric)
    low, high = mean_interval(folds, ratio, is_loss(metric))
    error = corrected_error(folds, ratio)
    scores = {"mean": float(folds.mean()), "error": error, "low": low, "high": high, "folds": folds}
    if metric in entry.test:
        test = entry.test[metric]
        low, high = shown_ends(metric, test.low, test.high)
        scores |= {"test": shown_value(metric, test.value), "test_low": low, "test_high": high}
    return scores


def _shown_folds(entry: Entry, metric: str) -> Floats:
    return np.array([shown_value(metric, value) for value in entry.scores[metric].tolist()])


def shown_ends(metric: str, low: float, high: float) -> tuple[float, float]:
    """Return the ends of an interval as shown: losses are positive."""
    first, last = sorted(shown_value(metric, value) for value in (low, high))
    return (max(0.0, first) if is_loss(metric) and first < 0 else first), last


def mean_interval(folds: Floats, ratio: float, is_a_loss: bool) -> tuple[float, float]:
    """Return the 95 % interval of a mean over folds; NaN for a single fold. A loss is at least 0."""
    mean, error = float(np.mean(folds)), corrected_error(folds, ratio)
    reach = float(t.ppf(0.975, len(folds) - 1)) * error if len(folds) > 1 else float("nan")
    low = mean - reach
    return (max(0.0, low) if is_a_loss and low < 0 else low), mean + reach


_FEW_CLASSES = 6
_TASKS = {"binary": "Binary classification", "multiclass": "Multiclass classification", "regression": "Regression"}


def summary(study: Findings, columns: list[str], has_tree: bool = True) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the sentences and the tiles; `columns` are the most important columns in order."""
    texts = _Summary(study)
    return [texts.task(), texts.result(), texts.important(columns, has_tree)], texts.tiles()


class _Summary:
    """Sentences and figures at the top of the report."""

    def __init__(self, study: Findings) -> None:
        self.study = study
        self.metric = study.metric
        self.best = study[study.best]
        self.baseline = next((entry for entry in study.leaderboard if entry.is_baseline), None)
        self.n_columns = sum(column.is_used for column in study.columns)
        ends = mean_interval(_shown_folds(self.best, self.metric), test_ratio(study), is_loss(self.metric))
        self.decimals = _decimals(ends[1] - ends[0])
        self.interval = self.from_to(ends)

    def from_to(self, ends: tuple[float, float]) -> str:
        """Return an interval as text; empty if it is unknown."""
        return " to ".join(fixed(end, self.decimals) for end in ends) if all(map(math.isfinite, ends)) else ""

    def score(self, value: float) -> str:
        return fixed(shown_value(self.metric, value), self.decimals)

    def task(self) -> str:
        study = self.study
        what = study.target
        if study.classes is not None:
            labels = [elide(one_line(label), 30) for label in study.classes.tolist()]
            more = f" and {len(labels) - _FEW_CLASSES} more" if len(labels) > _FEW_CLASSES else ""
            what = f"{study.target} ({', '.join(labels[:_FEW_CLASSES])}{more})"
        n_models = sum(not entry.is_baseline for entry in study.leaderboard)
        return (
            f"Predicting {what} from {plural(self.n_columns, 'column')}: {plural(n_models, 'model')}, cross-validated "
            f"on {plural(len(study.y_train), 'row')}."
        )

    def result(self) -> str:
        best, words = self.best, metric_words(self.metric)
        text = f"The {_best_word(self.study)} model is {best.name}, with {_article(words)} of {self.score(best.mean)}"
        if self.interval:
            text += f" (95 % interval {self.interval})"
        if self.baseline is not None:
            text += f"; a baseline that ignores the columns has {self.score(self.baseline.mean)}"
        test = best.test.get(self.metric)
        if test is not None:
            rows = plural(len(self.study.y_test), "row")
            text += f". On the test set ({rows}) it has {self.score(test.value)}"
        return text + "."

    def important(self, columns: list[str], has_tree: bool) -> str:
        tree = f"; a decision tree with {plural(int(self.study.tree.tree_.n_leaves), 'leaf')} is shown below"
        tree = f"{tree}." if has_tree else "."
        if self.baseline is not None and self.baseline.mean >= self.best.mean:
            return f"That is no better than the baseline: these columns may not predict {self.study.target}{tree}"
        if not columns:
            return f"No column affects the predictions{tree}"
        return f"Most important columns: {', '.join(elide(one_line(name), 40) for name in columns[:3])}{tree}"

    def tiles(self) -> list[dict[str, Any]]:
        study, best, words = self.study, self.best, metric_words(self.metric)
        direction = "lower is better" if is_loss(self.metric) else "higher is better"
        interval = f"{words}, {self.interval}; {direction}" if self.interval else f"{words}; {direction}"
        what = f"{_best_word(study)} model: {best.name}"
        tiles = [{"what": what, "figure": self.score(best.mean), "more": interval, "is_lead": True}]
        test = best.test.get(self.metric)
        if test is not None:
            ends, rows = self.from_to(shown_ends(self.metric, test.low, test.high)), plural(len(study.y_test), "row")
            more = f"{ends} on {rows}" if ends else f"{rows}, not used for fitting"
            tiles.append({"what": "test set", "figure": self.score(test.value), "more": more})
        if self.baseline is not None:
            more = f"{self.baseline.name}: {_baseline_words(study)}"
            tiles.append({"what": "baseline", "figure": self.score(self.baseline.mean), "more": more})
        n_all = len(study.y_train) + len(study.y_test)
        more = f"{plural(self.n_columns, 'column')}, {plural(len(study.y_test), 'row')} in the test set"
        tiles.append({"what": "rows", "figure": f"{n_all:,}", "more": more})
        return tiles


def eyebrow(study: Findings) -> str:
    """Return the task and the metric."""
    return f"{_TASKS[study.task]}, evaluated by {metric_words(study.metric)}"


def _baseline_words(study: Findings) -> str:
    if study.classes is None:
        return f"the mean, {shortest(float(np.mean(study.y_train.astype(float))), 4)}"
    labels, counts = np.unique(study.y_train, return_counts=True)
    most = int(counts.argmax())
    return f"class frequencies ({elide(one_line(labels[most]), 20)} {percent(counts[most] / counts.sum())})"


def _article(words: str) -> str:
    return f"an {words}" if words[0].lower() in "aeior" and not words.lower().startswith(("ro", "re")) else f"a {words}"


def _decimals(spread: float) -> int:
    return min(8, max(0, 1 - math.floor(math.log10(spread / 4)))) if math.isfinite(spread) and spread > 0 else 4


_FRACTIONS = (0.1, 0.2, 0.4, 0.7, 1.0)
_FOLDS = 3
_SECONDS = 3.0  # time limit of the fits of a model, by the times that the study measured
_FEWEST_ROWS = 20
_CURVES = 3
_STACK_FITS = 6  # of each member of a stack: to the folds and to all rows


def learning_section(study: Findings, limit: float = math.inf) -> dict[str, Any] | None:
    """Return learning curves of the model that is kept, of the leading models and of the tree.

    Slow models are fitted to fewer rows, and no fit begins after `limit` seconds. None if no model can be fitted to
    three different numbers of rows.
    """
    folds = sorted(study.folds, key=lambda fold: -len(fold[0]))[:_FOLDS]  # of rows in time, the first are small
    n_rows = min(len(train) for train, _ in folds)
    shown = [entry for entry in study.leaderboard if entry.name in study.models and not entry.is_baseline]
    n_fits = {STACK: _STACK_FITS}
    seconds = {one.name: n_fits.get(one.name, 1) * (one.fit_seconds + one.predict_seconds) for one in shown}
    trees = [name for name in seconds if study.models[name] is study.tree]
    first = [name for name in seconds if name == study.best]
    sizes = {name: _sizes(n_rows, _SECONDS / max(len(folds) * one, 1e-9)) for name, one in seconds.items()}
    names = [name for name in dict.fromkeys([*first, *seconds]) if len(sizes[name]) >= 3]
    names = list(dict.fromkeys([*names[: _CURVES - len(trees)], *trees, *names]))[:_CURVES]
    names = [name for name in names if len(sizes[name]) >= 3]
    end = clock.monotonic() + limit
    curves = {name: _curve(study, name, folds, sizes[name], end) for name in names}
    curves = {name: curve for name, curve in curves.items() if np.isfinite(curve["mean"]).any()}
    if not curves:
        return None
    return {
        "metric": metric_words(study.metric),
        "is_loss": is_loss(study.metric),
        "best": study.best,
        "n_rows": n_rows,
        "curves": [{"name": name, **curve} for name, curve in curves.items()],
    }


def _sizes(n_rows: int, n_fits: float) -> list[int]:
    """Return numbers of rows, up to all; fewer if there is time for less than `n_fits` fits to all rows."""
    scale = min(1.0, n_fits / sum(_FRACTIONS))
    fewest = min(_FEWEST_ROWS, n_rows // 3)
    return sorted({size for part in _FRACTIONS if (size := int(part * scale * n_rows)) >= max(fewest, 4)})


def _curve(study: Findings, name: str, folds: list[tuple[Rows, Rows]], sizes: list[int], end: float) -> dict[str, Any]:
    scorer, table, y = study.scorers.metrics[study.metric], pick_table(study.X_train), study.y_train
    runner, model = Runner(Problem(table, y)), seeded(study.models[name], np.random.RandomState(0))
    held_out, training = np.full((2, len(folds), len(sizes)), np.nan)
    for k, (train, test) in enumerate(folds):
        order = np.random.default_rng(k).permutation(train)
        for s, size in enumerate(sizes):
            rows = np.sort(order[:size])
            lacks_class = study.classes is not None and len(np.unique(y[rows])) < len(study.classes)
            if lacks_class or clock.monotonic() > end:
                continue
            try:
                fitted = runner.fit(Candidate(name, model), rows)
            except ValueError:  # too few rows, or rows of a class; the study has fitted the model to all of them
                if size == len(train):
                    raise
                continue
            held_out[k, s] = shown_value(study.metric, _score(scorer, fitted, table.take(test), y[test]))
            training[k, s] = shown_value(study.metric, _score(scorer, fitted, table.take(rows), y[rows]))
    return {"sizes": sizes, "held_out": held_out.T, "training": _means(training), "mean": _means(held_out)}


def _score(scorer: Scorer, model: EstimatorLike, X: TableLike, y: Array) -> float:
    try:
        return float(scorer(model, X, y))
    except ValueError:
        classes = getattr(model, "classes_", None)
        if classes is None or len(np.unique(y)) == len(classes):
            raise
        return float("nan")  # log loss is undefined without all classes


def _means(values: Floats) -> Floats:
    return np.asarray(np.ma.masked_invalid(values).mean(axis=0).filled(np.nan))


_FLAGS = {  # options whose names differ from those in Python
    "models": "--model",
    "scoring": "--metric",
    "cv": "--folds",
    "random_state": "--seed",
    "groups": "--group",
}


def reproduce_section(study: Findings, slow: list[str], late: list[str]) -> dict[str, Any]:
    """Return notes, versions, time and command, and the titles of sections that there was no time for."""
    options = "".join(f", {name}={value!r}" for name, value in study.options.items())
    table = repr(study.source) if study.source else "table"
    code = one_line(f"study = spinney.study({table}, {study.target!r}{options})")
    reasons = {
        "because predictions would take too long": slow,
        "as the time limit was reached (raise minutes, or write the report again in Python)": late,
    }
    absent = [
        f"Left out of this report, {why}: {', '.join(f'“{title}”' for title in titles)}."
        for why, titles in reasons.items()
        if titles
    ]
    return {
        "notes": [one_line(note) for note in [*study.notes, *absent]],
        "calibration": one_line(study.calibration),
        "seconds": study.seconds,
        "versions": study.versions,
        "folds": study.folds_words(),
        "command": study.command,
        "code": f"import spinney\n\n{code}\nstudy.save('best.model')\nstudy.report('report.html')",
    }


def command_line(table: str, target: str, options: dict[str, Any]) -> str:
    """Return the command line of a study.

    Parameters
    ----------
    table : str
        The file.
    target : str
        The column to predict.
    options : dict of str to value
        By their names in Python; lists repeat the option, and None, False and empty lists are omitted.
    """
    words = ["spinney", "study", table, "--target", target]
    for name, setting in options.items():
        flag = _FLAGS.get(name, f"--{name}")
        for value in setting if isinstance(setting, (list, tuple)) else [setting]:
            if value is not None and value is not False:
                words += [flag] if value is True else [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return " ".join(shlex.quote(one_line(word)) for word in words)


_MOST_COLUMNS = 250
_BARS = 24
_MOST_CATEGORIES = 8
_MOST_CLASSES = 15


def data_section(study: Findings, train: View) -> dict[str, Any]:
    """Return the profile of the table."""
    index = {name: j for j, name in enumerate(train.names)}
    columns = sorted(study.columns, key=lambda column: column.is_used, reverse=True)
    shown = columns[:_MOST_COLUMNS]
    return {
        "n_rows": study.n_rows,
        "n_train": len(study.y_train),
        "n_test": len(study.y_test),
        "n_used": sum(column.is_used for column in study.columns),
        "n_hidden": len(columns) - len(shown),
        "target": _target(study),
        "columns": [_column(column, train, index.get(column.name), study.n_rows) for column in shown],
    }


def _column(column: ColumnProfile, train: View, j: int | None, n_rows: int) -> dict[str, Any]:
    flags = {
        "identifier": column.is_identifier,
        "target leak": column.is_leak,
        "date": column.is_date,
        "constant": column.is_constant,
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
    """Return the histogram of a column, or the counts of its most frequent categories."""
    values = view.numbers[j]
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    if view.is_category(j):
        counts = np.bincount(known.astype(int), minlength=len(view.categories(j)))
        order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        order = order[counts[order] > 0]
        return {"counts": counts[order], "words": [elide(view.categories(j)[k], 24) for k in order]}
    counts, edges, whole = histogram(known, _BARS)
    if whole is not None:
        return {"counts": counts, "values": [view.value_text(j, value) for value in whole.tolist()]}
    low, high = np.quantile(known, [0.005, 0.995])
    inside = known[(known >= low) & (known <= high)]
    counts, edges = np.histogram(inside, min(_BARS, max(2, len(np.unique(inside)))))
    return {"counts": counts, "ends": [view.value_text(j, float(edge), 4) for edge in edges[[0, -1]]]}


def _target(study: Findings) -> dict[str, Any]:
    name = one_line(study.target)
    if study.classes is None:
        counts, edges, whole = histogram(study.y_train.astype(float), 40)
        return {"name": name, "counts": counts, "edges": edges, "values": whole}
    labels = study.classes.tolist()
    counts = np.bincount(class_codes(study.y_train, labels), minlength=len(labels))
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    words = [elide(one_line(labels[k]), 30) for k in order]
    return {"name": name, "words": words, "codes": order, "counts": counts[order]}
