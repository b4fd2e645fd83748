"""Errors of the best model: classification, residuals, and outliers and drift."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, ks_2samp
from sklearn.metrics import average_precision_score, confusion_matrix, roc_auc_score

from spinney._data.display import elide, one_line
from spinney._data.reproducible import log
from spinney._data.select import pick_table
from spinney._data.types import Floats
from spinney._evaluate.report.view import View, class_codes, sample
from spinney._evaluate.statistics import holm
from spinney._evaluate.study.findings import Findings
from spinney._forest.forests import RandomForestClassifier
from spinney._forest.isolation import IsolationForest
from spinney._tree.trees import DecisionTreeRegressor
from spinney.inspect.text.reader import TreeReader

Codes = NDArray[np.intp]

_MOST_THRESHOLDS = 200
_MOST_CLASSES = 12
_BARS = 30  # of the histogram of probabilities
_BINS = 10  # of the calibration curve
_Z = 1.96


def classification_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Evaluate the class probabilities of the best model on test rows and held-out rows; None for regression."""
    if study.classes is None:
        return None
    labels = study.classes.tolist()
    evaluated = {
        "test": _known(study.test_predictions[study.best], class_codes(study.y_test, labels)),
        "folds": _known(study.out_of_fold[study.best], class_codes(study.y_train, labels)),
    }
    counts = np.bincount(evaluated["folds"][1], minlength=len(labels))
    shown = [1] if len(labels) == 2 else np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES]).tolist()
    return {
        "model": study.best,
        "calibration": study.calibration,
        "names": [elide(one_line(label), 40) for label in labels],
        "confusion": _confusion(*evaluated["test"], len(labels)),
        "classes": [
            {"code": code, "name": one_line(labels[code])}
            | {name: _one_class(proba[:, code], codes == code) for name, (proba, codes) in evaluated.items()}
            for code in shown
        ],
        "misclassified": _misclassified(study, test, labels),
    }


def _known(proba: Floats, codes: Codes) -> tuple[Floats, Codes]:
    """Return the rows that have a class and a prediction."""
    known = (codes >= 0) & ~np.isnan(proba).any(axis=1)
    return proba[known], codes[known]


def _one_class(proba: Floats, is_positive: NDArray[np.bool_]) -> dict[str, Any]:
    """Evaluate the probability of one class against the other classes."""
    n_positive, n_negative = int(is_positive.sum()), int((~is_positive).sum())
    threshold, true_positives, false_positives = _counts_above(proba, is_positive)
    has_both = n_positive > 0 and n_negative > 0
    edges = np.linspace(0, 1, _BARS + 1)
    return {
        "n_positive": n_positive,
        "n_negative": n_negative,
        "threshold": threshold,
        "true_positives": true_positives,
        "false_positives": false_positives,
        "roc_auc": roc_auc_score(is_positive, proba) if has_both else None,
        "roc_auc_error": _roc_auc_error(proba[is_positive], proba[~is_positive]) if has_both else None,
        "average_precision": average_precision_score(is_positive, proba) if has_both else None,
        "brier": float(np.mean((proba - is_positive) ** 2)) if len(proba) else None,
        "bars": [np.histogram(proba[rows], edges)[0] for rows in (is_positive, ~is_positive)],
        "bins": _calibration(proba, is_positive),
    }


def _counts_above(proba: Floats, is_positive: NDArray[np.bool_]) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Return descending thresholds, and the true and false positives at each of them.

    Of many distinct probabilities, thresholds are spread over the rows of either kind, so that no curve is coarse.
    """
    order = np.argsort(-proba, kind="stable")
    ordered, positive = proba[order], is_positive[order]
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if len(proba) else np.empty(0, int)
    true_positives, false_positives = np.cumsum(positive)[last], np.cumsum(~positive)[last]
    if len(last) > _MOST_THRESHOLDS:
        spread = [np.linspace(0, len(last) - 1, _MOST_THRESHOLDS // 2).round().astype(np.intp)]
        for counts in (true_positives, false_positives):
            places = np.searchsorted(counts, np.linspace(0, counts[-1], _MOST_THRESHOLDS // 4))
            spread.append(places.astype(np.intp))
        chosen = np.unique(np.clip(np.concatenate(spread), 0, len(last) - 1))
        last, true_positives, false_positives = last[chosen], true_positives[chosen], false_positives[chosen]
    return np.append(1.01, ordered[last]), np.append(0, true_positives), np.append(0, false_positives)


def _roc_auc_error(positive: Floats, negative: Floats) -> float:
    """Return the standard error of the area under the ROC curve (DeLong 1988)."""

    def ranks(values: Floats, others: Floats) -> Floats:
        ordered = np.sort(others)
        below, up_to = np.searchsorted(ordered, values), np.searchsorted(ordered, values, side="right")
        return np.asarray((below + up_to) / (2 * len(others)))

    both = [ranks(positive, negative), 1 - ranks(negative, positive)]
    return float(np.sqrt(sum(one.var(ddof=1) / len(one) for one in both if len(one) > 1)))


def _calibration(proba: Floats, is_positive: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return predicted and observed frequencies in bins of equal size, with Wilson intervals."""
    bins = []
    for rows in np.array_split(np.argsort(proba, kind="stable"), min(_BINS, max(1, len(proba) // 5))):
        n = len(rows)
        if n == 0:
            continue
        observed = float(is_positive[rows].mean())
        middle = (observed + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z * np.sqrt(observed * (1 - observed) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
        predicted = float(proba[rows].mean())
        bins.append({"predicted": predicted, "observed": observed, "low": middle - half, "high": middle + half, "n": n})
    return bins


def _confusion(proba: Floats, codes: Codes, n_classes: int) -> dict[str, Any]:
    """Return the confusion matrix of the test rows for the most frequent classes, with the totals of all classes."""
    counts = confusion_matrix(codes, proba.argmax(axis=1), labels=np.arange(n_classes))
    order = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:_MOST_CLASSES])
    return {
        "classes": order,
        "counts": counts[np.ix_(order, order)],
        "n_actual": counts.sum(axis=1)[order],
        "n_predicted": counts.sum(axis=0)[order],
        "n_hidden": n_classes - len(order),
    }


def _misclassified(study: Findings, test: View, labels: list[Any], most: int = 8) -> dict[str, Any]:
    """Return the misclassified test rows with the lowest probability of the true class."""
    codes, proba = class_codes(study.y_test, labels), study.test_predictions[study.best]
    of_true = np.where(codes >= 0, proba[np.arange(len(codes)), np.maximum(codes, 0)], np.nan)
    wrong = np.flatnonzero(proba.argmax(axis=1) != codes)
    rows = wrong[np.argsort(of_true[wrong], kind="stable")][:most]
    values = {
        "actual": map(one_line, study.y_test[rows]),
        "predicted": (one_line(labels[code]) for code in proba[rows].argmax(axis=1)),
        "proba": proba[rows].max(axis=1),
    }
    return test.listed(rows, **values) | {"n_rows": len(wrong)}


_MOST_POINTS = 700
_RESIDUAL_BARS = 32
_RESIDUAL_BINS = 10


def residuals_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Return the residuals of the test rows; None for classification."""
    if study.classes is not None:
        return None
    predicted, actual = study.test_predictions[study.best], study.y_test.astype(float)
    residual = actual - predicted
    rows = sample(len(actual), _MOST_POINTS)
    counts, edges = np.histogram(residual, _RESIDUAL_BARS)
    size = np.abs(residual)
    return {
        "model": study.best,
        "n": len(actual),
        "predicted": predicted[rows],
        "actual": actual[rows],
        "bins": _residual_bins(predicted, residual),
        "bars": counts,
        "edges": edges,
        "bias": float(residual.mean()),
        "bias_error": float(residual.std(ddof=1) / np.sqrt(len(residual))) if len(residual) > 1 else None,
        "rmse": float(np.sqrt(np.mean(residual**2))),
        "mae": float(size.mean()),
        "quantiles": [{"level": level, "error": float(np.quantile(size, level))} for level in (0.5, 0.8, 0.95)],
        "worst": _worst(test, predicted, actual),
    }


def _residual_bins(predicted: Floats, residual: Floats) -> list[dict[str, float]]:
    """Return quantiles of the residuals in bins of the predictions."""
    bins = []
    for rows in np.array_split(np.argsort(predicted, kind="stable"), min(_RESIDUAL_BINS, max(1, len(predicted) // 8))):
        quantiles = np.quantile(residual[rows], [0.05, 0.25, 0.5, 0.75, 0.95])
        named = dict(zip(("low", "lower", "middle", "upper", "high"), quantiles, strict=True))
        bins.append({"predicted": predicted[rows].mean()} | named)
    return bins


def _worst(test: View, predicted: Floats, actual: Floats, most: int = 8) -> dict[str, Any]:
    rows = np.argsort(-np.abs(actual - predicted), kind="stable")[:most]
    return test.listed(rows, actual=actual[rows], predicted=predicted[rows])


_MOST_ROWS = 4000  # of the training and the test set, for outliers and for the drift classifier
_MOST_COLUMNS = 12
_MOST_DRIFT_COLUMNS = 300  # of the drift classifier
_MOST_SEGMENTS = 6
_OUTLIERS = 0.01  # fraction of the training rows
_LEAST = 1e-15  # probability, so that a loss is finite
_LEVEL = 0.05  # of the tests for drift
_FEWEST_EXPECTED = 5  # rows of a category, for the chi-squared test


def reliability_section(study: Findings, train: View, test: View) -> dict[str, Any]:
    """Return segments with large errors, outliers, values out of range, and drift."""
    losses = {
        "train": row_losses(study, study.out_of_fold[study.best], study.y_train),
        "test": row_losses(study, study.test_predictions[study.best], study.y_test),
    }
    return {
        "model": study.best,
        "loss": "log loss" if study.classes is not None else "absolute error",
        "segments": _segments(study, losses["train"], losses["test"]),
        "outliers": _outliers(train, test, losses["test"]),
        "out_of_range": _out_of_range(train, test),
        "drift": _drift(train, test),
        "drift_classifier": _drift_classifier(train, test),
    }


def row_losses(study: Findings, predictions: Floats, y: NDArray[Any]) -> Floats:
    """Return the loss of each row; NaN for rows that were never held out."""
    if study.classes is None:
        return np.asarray(np.abs(predictions - y.astype(np.float64)))
    codes = class_codes(y, study.classes.tolist())
    proba = predictions[np.arange(len(codes)), np.maximum(codes, 0)]
    return np.asarray(np.where(codes >= 0, -log(np.maximum(proba, _LEAST)), np.nan))


def _segments(study: Findings, train: Floats, test: Floats) -> list[dict[str, Any]]:
    """Return the leaves of a small tree fitted to the held-out losses: segments with large and small errors."""
    known = np.flatnonzero(~np.isnan(train))
    least = max(20, len(known) // 20)
    if len(known) < 3 * least:
        return []
    rows = pick_table(study.X_train).take(known)
    tree = DecisionTreeRegressor(max_leaf_nodes=_MOST_SEGMENTS, min_samples_leaf=least, random_state=0)
    reader = TreeReader(tree.fit(rows, train[known]), show_missing=False)
    leaf_of_test = np.asarray(tree.apply(study.X_test)).reshape(-1)
    segments: list[dict[str, Any]] = [
        {
            "rule": [condition.describe(show_missing=False) for condition in step.path.values()] or ["all rows"],
            "n": reader.n_rows(step.node),
            "fraction": reader.fraction(step.node),
            "held_out": float(reader.tree.flat_value[step.node, 0]),
            "n_test": int((leaf_of_test == step.node).sum()),
            "test": _mean(test[leaf_of_test == step.node]),
        }
        for step in reader.walk()
        if reader.is_leaf(step.node)
    ]
    return sorted(segments, key=lambda segment: -segment["held_out"])


def _outliers(train: View, test: View, losses: Floats) -> dict[str, Any]:
    """Return the outliers among the test rows by an isolation forest, and the mean loss on them."""
    rows, shown = sample(train.n_rows, _MOST_ROWS), sample(test.n_rows, _MOST_ROWS)
    forest = IsolationForest(random_state=0).fit(train.take(rows))
    threshold = float(np.quantile(forest.score_samples(train.take(rows)), _OUTLIERS))
    scores = forest.score_samples(test.take(shown))
    is_outlier, loss = scores < threshold, losses[shown]
    order = np.argsort(scores, kind="stable")[:5]
    listed = order[is_outlier[order]]
    return {
        "n": len(shown),
        "n_outliers": int(is_outlier.sum()),
        "expected": _OUTLIERS,
        "loss_outliers": _mean(loss[is_outlier]),
        "loss_others": _mean(loss[~is_outlier]),
        **test.listed(shown[listed], loss=loss[listed]),
    }


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _out_of_range(train: View, test: View) -> list[dict[str, Any]]:
    """Count test values outside the training range, unseen categories, and values missing only in test rows."""
    columns: list[dict[str, Any]] = []
    for j, name in enumerate(test.names):
        in_train, in_test = train.numbers[j], test.numbers[j]
        known = in_train[~np.isnan(in_train)]
        counts: dict[str, int] = {"missing": 0 if np.isnan(in_train).any() else int(np.isnan(in_test).sum())}
        if train.is_category(j):
            counts["unseen"] = int((~np.isin(in_test[~np.isnan(in_test)], known)).sum())
        elif len(known):
            counts |= {"below": int((in_test < known.min()).sum()), "above": int((in_test > known.max()).sum())}
        if total := sum(counts.values()):
            columns.append({"name": one_line(name), "n": total, **counts})
    return sorted(columns, key=lambda entry: -entry["n"])[:_MOST_COLUMNS]


def _drift(train: View, test: View) -> dict[str, Any]:
    """Return the columns whose distributions differ significantly between the sets, with Holm's p-values."""
    tests = [_difference(train, test, j) for j in range(len(test.names))]
    p_values = holm([p for _, p in tests])
    columns: list[dict[str, Any]] = [
        {"name": one_line(name), "distance": distance, "p": p}
        for name, (distance, _), p in zip(test.names, tests, p_values, strict=True)
        if p < _LEVEL
    ]
    return {"n_columns": len(tests), "columns": sorted(columns, key=lambda one: -one["distance"])[:_MOST_COLUMNS]}


def _difference(train: View, test: View, column: int) -> tuple[float, float]:
    """Return the distance between the distributions of a column in two sets, and the p-value of their equality.

    Of numbers it is the Kolmogorov-Smirnov distance; of categories, total variation and the chi-squared test. Missing
    values count as one value, the largest.
    """
    n, m = train.n_rows, test.n_rows
    both = _together(train, test, column, [np.arange(n), np.arange(m)])
    both = np.where(np.isnan(both), np.inf, both)
    if not train.is_category(column):
        found = ks_2samp(both[:n], both[n:], method="asymp")
        return float(found.statistic), float(found.pvalue)
    codes = np.unique(both, return_inverse=True)[1]
    counts = np.array([np.bincount(one, minlength=codes.max() + 1) for one in (codes[:n], codes[n:])])
    rare = counts.sum(axis=0) < _FEWEST_EXPECTED * (n + m) / min(n, m)
    pooled = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)]) if rare.any() else counts
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    distance = float(np.abs(counts[0] / n - counts[1] / m).sum() / 2)
    return distance, float(chi2_contingency(pooled).pvalue) if pooled.shape[1] > 1 else 1.0


def _together(train: View, test: View, column: int, rows: list[NDArray[np.intp]]) -> Floats:
    """Return a column in rows of both sets; codes of categories do not depend on the set."""
    numbers = [view.numbers[column][chosen] for view, chosen in zip((train, test), rows, strict=True)]
    if train.is_category(column):
        names = sorted({*train.categories(column), *test.categories(column)})
        for k, view in enumerate((train, test)):
            codes = np.append(np.searchsorted(names, view.categories(column)), np.nan)  # the last: missing
            numbers[k] = codes[np.where(np.isnan(numbers[k]), -1, numbers[k]).astype(np.intp)]
    return np.concatenate(numbers)


def _drift_classifier(train: View, test: View) -> dict[str, Any]:
    """Return the out-of-bag ROC AUC of a forest that distinguishes test rows from training rows."""
    rows = [sample(view.n_rows, _MOST_ROWS) for view in (train, test)]
    is_test = np.repeat([False, True], [len(chosen) for chosen in rows])
    numbers = [_together(train, test, int(j), rows) for j in sample(len(train.names), _MOST_DRIFT_COLUMNS)]
    forest = RandomForestClassifier(n_estimators=60, min_samples_leaf=5, oob_score=True, random_state=0)
    forest.fit(np.column_stack(numbers), is_test)
    proba = forest.oob_decision_function_[:, 1]
    known = ~np.isnan(proba)
    roc_auc = float(roc_auc_score(is_test[known], proba[known]))
    n, m = int((~is_test).sum()), int(is_test.sum())
    return {"roc_auc": roc_auc, "error": float(np.sqrt((n + m + 1) / (12 * n * m)))}
