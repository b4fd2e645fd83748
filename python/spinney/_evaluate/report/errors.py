"""Errors of the best model: probabilities and decisions, residuals, and where not to trust it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score

from spinney._data.display import elide, one_line
from spinney._data.reproducible import log
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._evaluate.report.view import View, class_codes, sample
from spinney._evaluate.study.findings import Findings
from spinney._forest.forests import RandomForestClassifier
from spinney._forest.isolation import IsolationForest
from spinney._tree.trees import DecisionTreeRegressor
from spinney.inspect.text.reader import TreeReader

Codes = NDArray[np.intp]

_MOST_THRESHOLDS = 200
_MOST_CLASSES = 12
_BARS = 30  # of the histogram of probabilities
_BINS = 10  # of the calibration
_Z = 1.96


def decide_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Judge the probabilities of the best model on rows that it has not learned from."""
    if study.classes is None:
        return None
    labels = study.classes.tolist()
    judged = {
        "test": _known(study.test_predictions[study.best], class_codes(study.y_test, labels)),
        "folds": _known(study.out_of_fold[study.best], class_codes(study.y_train, labels)),
    }
    counts = np.bincount(judged["folds"][1], minlength=len(labels))
    shown = [1] if len(labels) == 2 else np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES]).tolist()
    return {
        "model": study.best,
        "calibration": study.calibration,
        "names": [elide(one_line(label), 40) for label in labels],
        "confusion": _confusion(*judged["test"], len(labels)),
        "classes": [
            {"code": code, "name": one_line(labels[code])}
            | {name: _one_class(shares[:, code], codes == code) for name, (shares, codes) in judged.items()}
            for code in shown
        ],
        "surprises": _surprises(study, test, labels),
    }


def _known(shares: Floats, codes: Codes) -> tuple[Floats, Codes]:
    """Return the rows that have a class and a prediction."""
    known = (codes >= 0) & ~np.isnan(shares).any(axis=1)
    return shares[known], codes[known]


def _one_class(share: Floats, is_it: NDArray[np.bool_]) -> dict[str, Any]:
    """Describe one class against the others by the probability that the model gives it."""
    n_yes, n_no = int(is_it.sum()), int((~is_it).sum())
    threshold, hits, alarms = _counts_above(share, is_it)
    has_both = n_yes > 0 and n_no > 0
    edges = np.linspace(0, 1, _BARS + 1)
    return {
        "n_yes": n_yes,
        "n_no": n_no,
        "threshold": threshold,
        "hits": hits,
        "alarms": alarms,
        "area": roc_auc_score(is_it, share) if has_both else None,
        "area_error": _area_error(share[is_it], share[~is_it]) if has_both else None,
        "precision": average_precision_score(is_it, share) if has_both else None,
        "brier": float(np.mean((share - is_it) ** 2)) if len(share) else None,
        "bars": [np.histogram(share[part], edges)[0] for part in (is_it, ~is_it)],
        "bins": _calibration(share, is_it),
    }


def _counts_above(share: Floats, is_it: NDArray[np.bool_]) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Rows of the class, and others, that lie at or above each threshold; thresholds fall from above all to 0.

    Where there are many distinct probabilities, thresholds are spread over the rows of either kind, so that no part of
    a curve is coarse.
    """
    order = np.argsort(-share, kind="stable")
    sorted_share, sorted_yes = share[order], is_it[order]
    last = np.flatnonzero(np.append(sorted_share[1:] != sorted_share[:-1], True)) if len(share) else np.empty(0, int)
    hits, alarms = np.cumsum(sorted_yes)[last], np.cumsum(~sorted_yes)[last]
    if len(last) > _MOST_THRESHOLDS:
        spread = [np.linspace(0, len(last) - 1, _MOST_THRESHOLDS // 2).round().astype(np.intp)]
        for counts in (hits, alarms):
            places = np.searchsorted(counts, np.linspace(0, counts[-1], _MOST_THRESHOLDS // 4))
            spread.append(places.astype(np.intp))
        kept = np.unique(np.clip(np.concatenate(spread), 0, len(last) - 1))
        last, hits, alarms = last[kept], hits[kept], alarms[kept]
    return np.append(1.01, sorted_share[last]), np.append(0, hits), np.append(0, alarms)


def _area_error(yes: Floats, no: Floats) -> float:
    """Return the standard error of the area under the ROC curve (DeLong 1988)."""

    def places(values: Floats, others: Floats) -> Floats:
        ordered = np.sort(others)
        below, up_to = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
        return np.asarray((below + up_to) / (2 * len(others)))

    parts = [places(yes, no), 1 - places(no, yes)]
    return float(np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts if len(part) > 1)))


def _calibration(share: Floats, is_it: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Compare probabilities with what came, in bins of as many rows each; intervals by Wilson."""
    bins = []
    for rows in np.array_split(np.argsort(share, kind="stable"), min(_BINS, max(1, len(share) // 5))):
        n = len(rows)
        if n == 0:
            continue
        came = float(is_it[rows].mean())
        middle = (came + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z * np.sqrt(came * (1 - came) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
        bins.append(
            {"said": float(share[rows].mean()), "came": came, "low": middle - half, "high": middle + half, "n": n}
        )
    return bins


def _confusion(shares: Floats, codes: Codes, n_classes: int) -> dict[str, Any]:
    """Count the test rows by class and predicted class, of the commonest classes."""
    counts = confusion_matrix(codes, shares.argmax(axis=1), labels=np.arange(n_classes))
    order = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:_MOST_CLASSES])
    return {"classes": order, "counts": counts[np.ix_(order, order)], "n_hidden": n_classes - len(order)}


def _surprises(study: Findings, test: View, labels: list[Any], most: int = 8) -> dict[str, Any]:
    """Find the test rows whose class the model held least likely."""
    codes, shares = class_codes(study.y_test, labels), study.test_predictions[study.best]
    given = np.where(codes >= 0, shares[np.arange(len(codes)), np.maximum(codes, 0)], np.nan)
    wrong = np.flatnonzero(shares.argmax(axis=1) != codes)
    rows = wrong[np.argsort(given[wrong], kind="stable")][:most]
    values = {
        "is": map(one_line, study.y_test[rows]),
        "said": (one_line(labels[code]) for code in shares[rows].argmax(axis=1)),
        "share": shares[rows].max(axis=1),
        "given": given[rows],
    }
    return test.listed(rows, **values) | {"n_wrong": len(wrong)}


_MOST_POINTS = 700
_RESIDUAL_BARS = 32
_RESIDUAL_BINS = 10


def residuals_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Compare predictions with values; None for classes."""
    if study.classes is not None:
        return None
    said, truth = study.test_predictions[study.best], study.y_test.astype(float)
    missed = truth - said
    rows = sample(len(truth), _MOST_POINTS)
    counts, edges = np.histogram(missed, _RESIDUAL_BARS)
    return {
        "model": study.best,
        "n": len(truth),
        "said": said[rows],
        "truth": truth[rows],
        "bins": _bins(said, missed),
        "bars": counts,
        "edges": edges,
        "bias": float(missed.mean()),
        "bias_error": float(missed.std(ddof=1) / np.sqrt(len(missed))) if len(missed) > 1 else None,
        "rmse": float(np.sqrt(np.mean(missed**2))),
        "mean_miss": float(np.abs(missed).mean()),
        "within": [{"share": share, "miss": float(np.quantile(np.abs(missed), share))} for share in (0.5, 0.8, 0.95)],
        "worst": _worst(test, said, truth),
    }


def _bins(said: Floats, missed: Floats) -> list[dict[str, float]]:
    """Spread of the residuals where predictions are low, middling and high."""
    found = []
    for rows in np.array_split(np.argsort(said, kind="stable"), min(_RESIDUAL_BINS, max(1, len(said) // 8))):
        ends = {"from": said[rows].min(), "to": said[rows].max(), "said": said[rows].mean()}
        spread = np.quantile(missed[rows], [0.05, 0.25, 0.5, 0.75, 0.95])
        found.append(ends | dict(zip(("low", "lower", "middle", "upper", "high"), spread, strict=True)))
    return found


def _worst(test: View, said: Floats, truth: Floats, most: int = 8) -> dict[str, Any]:
    rows = np.argsort(-np.abs(truth - said), kind="stable")[:most]
    return test.listed(rows, **{"is": truth[rows], "said": said[rows]})


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
        "odd": _odd_rows(train, test, losses["test"]),
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
    parts: list[dict[str, Any]] = [
        {
            "rule": [condition.describe(show_missing=False) for condition in step.path.values()] or ["all rows"],
            "n": reader.n_rows(step.node),
            "share": reader.fraction(step.node),
            "held_out": float(reader.tree.flat_value[step.node, 0]),
            "n_test": int((leaf_of_test == step.node).sum()),
            "test": _mean(test[leaf_of_test == step.node]),
        }
        for step in reader.walk()
        if reader.is_leaf(step.node)
    ]
    return sorted(parts, key=lambda part: -part["held_out"])


def _odd_rows(train: View, test: View, losses: Floats) -> dict[str, Any]:
    """Find test rows that random cuts part from the training rows quickly, and how the model does on them."""
    rows, shown = sample(train.n_rows, _MOST_ROWS), sample(test.n_rows, _MOST_ROWS)
    forest = IsolationForest(random_state=0).fit(train.take(rows))
    line = float(np.quantile(forest.score_samples(train.take(rows)), _ODD))
    scores = forest.score_samples(test.take(shown))
    is_odd, loss = scores < line, losses[shown]
    order = np.argsort(scores, kind="stable")[:5]
    odd = order[is_odd[order]]
    return {
        "n": len(shown),
        "n_odd": int(is_odd.sum()),
        "expected": _ODD,
        "loss_odd": _mean(loss[is_odd]),
        "loss_usual": _mean(loss[~is_odd]),
        **test.listed(shown[odd], loss=loss[odd]),
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
    if train.is_category(column):
        names = sorted({*train.categories(column), *test.categories(column)})
        for k, view in enumerate((train, test)):
            places = np.append(np.searchsorted(names, view.categories(column)), np.nan)  # the last: without a value
            numbers[k] = places[np.where(np.isnan(numbers[k]), -1, numbers[k]).astype(np.intp)]
    return np.concatenate(numbers)


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
