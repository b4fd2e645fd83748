"""Each column against the target, columns against each other, and two models row by row."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from spinney._data.display import elide, one_line
from spinney._data.types import Floats
from spinney._evaluate.report.errors import row_losses
from spinney._evaluate.report.explain import value_text
from spinney._evaluate.report.view import View, class_codes, sample
from spinney._evaluate.study.findings import Findings

Codes = NDArray[np.intp]

_MOST_ROWS = 20_000
_MOST_TESTED = 100  # columns, those most associated with the target, that are compared with each other
_SHOWN, _PAIRS, _LEAST = 20, 12, 0.3  # columns; pairs, and their least association
_BINS, _MOST_CATEGORIES, _MOST_CLASSES = 10, 9, 12
_Z = 1.96


def associations_section(study: Findings, train: View) -> dict[str, Any]:
    """Return the association of each column with the target, the strongest of pairs of columns, and duplicates."""
    rows = sample(train.n_rows, _MOST_ROWS)
    target, outputs = _targets(study, rows)
    binned = [_binned(train, j, rows) for j in range(len(train.names))]
    strengths = np.array([_explained(one.codes, target) for one in binned])
    order = np.argsort(-strengths, kind="stable")
    pairs = sorted(_pairs(train, rows, binned, order[:_MOST_TESTED].tolist()), key=lambda one: -abs(one["value"]))
    return {
        "n_rows": len(rows),
        "outputs": outputs,
        "columns": [
            {"name": one_line(train.names[j]), "strength": strengths[j], "bins": _bins(binned[j], target)}
            for j in order[:_SHOWN]
        ],
        "pairs": pairs[:_PAIRS],
        "equal": _equal_columns(train),
        "n_duplicates": len(rows) - len(np.unique(_fingerprints([one[rows] for one in train.numbers]))),
    }


def _targets(study: Findings, rows: Codes) -> tuple[Floats, list[str] | None]:
    """Return the target as columns: a number, or an indicator of each of the most frequent classes."""
    if study.classes is None:
        return study.y_train[rows].astype(np.float64)[:, np.newaxis], None
    codes, labels = class_codes(study.y_train[rows], study.classes.tolist()), study.classes.tolist()
    most = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(labels)), kind="stable")[:_MOST_CLASSES]
    shown = [1] if len(labels) == 2 else np.sort(most).tolist()
    return (codes[:, np.newaxis] == shown).astype(np.float64), [elide(one_line(labels[code]), 40) for code in shown]


@dataclass(frozen=True, eq=False)
class _Binned:
    """The bin of each row in a column, and the names of the bins."""

    codes: Codes
    names: list[str]


def _binned(view: View, column: int, rows: Codes) -> _Binned:
    """Bin a column: by deciles, by number where these are few, or by category; missing values have their own bin."""
    values = view.numbers[column][rows]
    is_known = ~np.isnan(values)
    distinct = np.unique(values[is_known])
    if view.is_category(column):
        counts = np.bincount(values[is_known].astype(np.intp), minlength=len(view.categories(column)))
        most = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        most = most[counts[most] > 0]
        place = np.full(len(counts), len(most))
        place[most] = np.arange(len(most))
        codes = place[np.where(is_known, values, 0).astype(np.intp)]
        names = [elide(view.categories(column)[code], 24) for code in most] + ["others"]
    elif len(distinct) <= _BINS:
        codes, names = np.searchsorted(distinct, values), [view.value_text(column, one) for one in distinct.tolist()]
    else:
        edges = np.unique(np.quantile(values[is_known], np.linspace(0, 1, _BINS + 1)))
        codes = np.clip(np.searchsorted(edges, values) - 1, 0, len(edges) - 2)
        texts = [view.value_text(column, edge, 4) for edge in edges.tolist()]
        names = [f"{low} to {high}" for low, high in pairwise(texts)]
    codes = np.where(is_known, codes, len(names))
    used, codes = np.unique(codes, return_inverse=True)
    return _Binned(codes.astype(np.intp), [[*names, "missing"][code] for code in used])


def _explained(codes: Codes, target: Floats) -> float:
    """Return the fraction of the variance of the target that is between the bins, corrected for their number.

    Of numbers it is the squared correlation ratio; of classes Goodman and Kruskal's tau.
    """
    n, n_bins, centred = len(codes), int(codes.max()) + 1, target - target.mean(axis=0)
    total = float((centred**2).sum())
    if n <= n_bins or total <= 0:
        return 0.0
    counts = np.bincount(codes, minlength=n_bins)
    between = sum(float((np.bincount(codes, one, n_bins) ** 2 / counts).sum()) for one in centred.T)
    return max(0.0, 1 - (1 - between / total) * (n - 1) / (n - n_bins))


def _bins(binned: _Binned, target: Floats) -> list[dict[str, Any]]:
    """Return the rows of each bin, and the mean of each output with a 95 % interval."""
    bins = []
    for code, name in enumerate(binned.names):
        values = target[binned.codes == code]
        reach = (
            _Z * values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(len(values[0]), 0)
        )
        bins.append({"name": name, "n": len(values), "mean": values.mean(axis=0), "reach": reach})
    return bins


def _pairs(view: View, rows: Codes, binned: list[_Binned], columns: list[int]) -> list[dict[str, Any]]:
    """Return the associations of pairs of columns that are not weak: Spearman's correlation, or Cramér's V."""
    ranks = {j: _ranks(view.numbers[j][rows]) for j in columns if not view.is_category(j)}
    found = []
    for a, b in combinations(columns, 2):
        of_numbers = a in ranks and b in ranks
        value = float(ranks[a] @ ranks[b]) if of_numbers else _cramer(binned[a].codes, binned[b].codes)
        if abs(value) >= _LEAST:
            name = f"{one_line(view.names[a])} × {one_line(view.names[b])}"
            found.append({"name": name, "value": value, "measure": "Spearman" if of_numbers else "Cramér"})
    return found


def _ranks(values: Floats) -> Floats:
    """Return ranks, centred and of length 1; missing values have the mean rank."""
    is_known, ranks = ~np.isnan(values), np.zeros(len(values))
    ranks[is_known] = rankdata(values[is_known])
    ranks[is_known] -= ranks[is_known].mean() if is_known.any() else 0.0
    size = float(np.linalg.norm(ranks))
    return ranks / size if size > 0 else ranks


def _cramer(a: Codes, b: Codes) -> float:
    """Return Cramér's V, corrected for bias (Bergsma 2013)."""
    n, r, k = len(a), int(a.max()) + 1, int(b.max()) + 1
    counts = np.bincount(a * k + b, minlength=r * k).reshape(r, k)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    phi = float(((counts - expected) ** 2 / expected).sum()) / n
    rows, columns = (m - (m - 1) ** 2 / (n - 1) for m in (r, k))
    phi, least = max(0.0, phi - (r - 1) * (k - 1) / (n - 1)), min(rows, columns)
    return float(np.sqrt(phi / (least - 1))) if least > 1 else 0.0


def _equal_columns(view: View) -> list[list[str]]:
    """Return groups of columns with the same values in all rows."""
    groups = defaultdict[tuple[Any, ...], list[str]](list)
    for j, (name, values) in enumerate(zip(view.names, view.numbers, strict=True)):
        kind = tuple(view.categories(j)) if view.is_category(j) else ()
        groups[kind, (values + 0.0).tobytes()].append(one_line(name))
    return [names for names in groups.values() if len(names) > 1]


def _fingerprints(columns: list[Floats]) -> NDArray[np.uint64]:
    """Return a number for each row, the same for equal rows, and with near certainty only for these."""
    result = np.zeros(len(columns[0]), dtype=np.uint64)
    for values in columns:
        codes = np.unique(values, return_inverse=True)[1].astype(np.uint64)
        result = (result ^ (codes + np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
        result ^= result >> np.uint64(29)
    return result


_MOST_OTHERS, _MOST_POINTS, _LISTED = 5, 400, 8


def comparison_section(study: Findings, test: View) -> dict[str, Any] | None:
    """Compare the losses of test rows by the model that is kept and by others; None without another model."""
    others = [entry.name for entry in study.leaderboard if entry.name != study.best and not entry.is_baseline]
    if not others:
        return None
    return {
        "model": study.best,
        "loss": "log loss" if study.classes is not None else "absolute error",
        "rows_note": test.row_names.note,
        "others": [_compared(study, test, name) for name in others[:_MOST_OTHERS]],
    }


def _compared(study: Findings, test: View, other: str) -> dict[str, Any]:
    """Return how the losses of test rows differ between the model that is kept and another one."""
    losses = [row_losses(study, study.test_predictions[name], study.y_test) for name in (study.best, other)]
    known = np.flatnonzero(~np.isnan(losses[0] + losses[1]))
    gaps = (losses[1] - losses[0])[known]
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else float("nan")
    points = known[sample(len(known), _MOST_POINTS)]
    rows = known[np.argsort(-np.abs(gaps), kind="stable")[:_LISTED]]
    texts = {kind: [_text(study, name, row) for row in rows] for kind, name in (("kept", study.best), ("other", other))}
    return {
        "name": other,
        "n": len(known),
        "n_better": int((gaps > 0).sum()),
        "n_worse": int((gaps < 0).sum()),
        "mean": float(gaps.mean()) if len(gaps) else None,
        "low": float(gaps.mean()) - _Z * error if len(gaps) else None,
        "high": float(gaps.mean()) + _Z * error if len(gaps) else None,
        "losses": [one[points] for one in losses],
        "listed": test.listed(rows, actual=[value_text(value) for value in study.y_test[rows].tolist()], **texts),
    }


def _text(study: Findings, name: str, row: int) -> str:
    """Return the prediction of a test row: a number, or the most probable class and its probability."""
    predictions = study.test_predictions[name][row]
    if study.classes is None:
        return f"{float(predictions):.5g}"
    code = int(np.argmax(predictions))
    return f"{elide(one_line(study.classes[code]), 16)} {100 * float(predictions[code]):.3g} %"
