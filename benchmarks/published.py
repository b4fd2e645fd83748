"""Errors in print beside ours and scikit-learn's, by the protocols that the figures come from.

- Breiman, Random Forests, Machine Learning 45 (2001). Table 2, Forest-RI: 100 trees on nine tenths of the rows, once
  with F = 1 and once with F = int(log2(M) + 1) columns tried at a node; "selection" is the one with the lower
  out-of-bag error; 100 repeats. Large sets have a fixed test set, synthetic ones 300 rows for training and 3000 for
  testing. He counts votes; both libraries average shares, and the vote is measured beside it.
- The same, section 12, regression, 100 trees: bagging, which is a forest that tries every column; and a forest that
  cuts random sums of two columns. Both libraries cut one column at a time here (a third of them tried at a node, at
  least two), so the rows "forest" compare another kind of split with the printed one.
- Louppe, Understanding Random Forests (2014), chapter 8: half the rows for training, a quarter for choosing the number
  of columns tried, a quarter for testing; 250 trees; 50 repeats.

Louppe's figures were read in the source of the thesis; Breiman's are quoted from memory of the paper.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sets
from evaluation import Method, make, vote_error
from pool import Record, Unit

# set: percent wrong by selection, and with F = 1
BREIMAN = {
    "glass": (20.6, 21.2), "breast_cancer_wisconsin": (2.9, 2.7), "diabetes_pima": (24.2, 24.3), "sonar": (15.9, 18.0),
    "vowel": (3.4, 3.3), "ionosphere": (7.1, 7.5), "vehicle": (25.8, 26.4), "german_credit_numeric": (24.4, 26.2),
    "segment": (2.1, 2.7), "ecoli": (12.8, 13.0), "votes": (4.1, 4.6), "liver": (25.1, 24.7), "letter": (3.5, 4.7),
    "satimage": (8.6, 10.5), "zipcode": (6.3, 7.8), "waveform21": (17.2, 17.3), "twonorm": (3.9, 3.9),
    "threenorm": (17.5, 17.5), "ringnorm": (4.9, 4.9),
}  # fmt: skip
FIXED = ("letter", "satimage", "zipcode")
SYNTHETIC = ("waveform21", "twonorm", "threenorm", "ringnorm")

# set: mean squared errors of bagging and of the forest, and the factor that they are printed with
BREIMAN_REGRESSION = {
    "boston": (11.4, 10.2, 1), "ozone_la": (17.8, 16.3, 1), "servo": (24.5, 24.6, 100), "abalone": (4.9, 4.6, 1),
    "friedman1": (6.3, 5.7, 1), "friedman2": (21.5, 19.6, 1e-3), "friedman3": (24.8, 21.6, 1e3),
}  # fmt: skip
FRIEDMAN_NOISE = {"friedman1": 1.0, "friedman2": 125.0, "friedman3": 0.1}

# set: percent right of random forest and of extra-trees
LOUPPE = {
    "diabetes_pima": (75.62, 75.38), "ionosphere": (92.20, 93.22), "pendigits": (98.84, 99.23),
    "letter": (95.27, 96.29), "liver": (69.95, 68.22), "ringnorm": (97.48, 98.07), "satimage": (90.67, 91.22),
    "segment": (97.02, 97.93), "sonar": (79.53, 82.76), "spam": (94.76, 95.17), "twonorm": (97.22, 97.50),
    "vowel": (91.51, 93.95), "waveform21": (85.23, 85.77),
}  # fmt: skip
LOUPPE_SHARES = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COARSE_SHARES = (0.1, 0.2, 0.3, 0.5)
COARSE_ABOVE = 1500  # rows; the full grid on large sets would take hours
LIBRARIES = ("spinney", "sklearn")
# The printed figure of a fixed test set is one run; the others are means over so many.
PRINTED_REPEATS = {"breiman": 100, "regression": 100, "louppe": 50}


class Task(NamedTuple):
    """One printed row: which table, which set, which kind of forest, and how often it is worth running."""

    table: str
    name: str
    family: str
    repeats: int


def tasks(folder: Path, chosen: list[str], repeats: int, louppe_repeats: int) -> Iterator[Task]:
    for name in (name for name in BREIMAN if name in chosen):
        yield Task("breiman", name, "forest", min(repeats, 10) if name in FIXED else repeats)
    for name in BREIMAN_REGRESSION:
        if name in chosen or name in FRIEDMAN_NOISE:
            yield Task("regression", name, "forest", repeats)
    for name in (name for name in LOUPPE if name in chosen):
        is_large = len(_load(folder, name).y) > COARSE_ABOVE
        for family in ("forest", "extra"):
            yield Task("louppe", name, family, math.ceil(louppe_repeats / 4) if is_large else louppe_repeats)


def units(folder: Path, chosen: list[str], repeats: int, louppe_repeats: int, n_trees: int) -> Iterator[Unit]:
    """Give the units of all rows in turns, so that each row has the same part of its repeats at any time."""
    found = list(tasks(folder, chosen, repeats, louppe_repeats))
    turns = sorted((repeat / task.repeats, i, repeat) for i, task in enumerate(found) for repeat in range(task.repeats))
    for _, i, repeat in turns:
        task = found[i]
        for library in LIBRARIES:
            key = {
                "study": "published", "table": task.table, "set": task.name, "family": task.family, "repeat": repeat,
                "library": library, "trees": n_trees,
            }  # fmt: skip
            yield Unit(key, work, (folder, task, repeat, library, n_trees))


def work(folder: Path, task: Task, repeat: int, library: str, n_trees: int) -> Record:
    """Run one repeat of a protocol; errors in the units that they are printed in."""
    random = sets.seed_of(task.name, repeat, 1)
    method = Method(library, task.family)
    if task.table == "regression":
        return regression(folder, task.name, random, method, n_trees)
    table = _load(folder, task.name)
    protocol = breiman if task.table == "breiman" else louppe
    return protocol(table, random, method, n_trees)


@lru_cache(maxsize=4)
def _load(folder: Path, name: str) -> sets.Table:
    return sets.load(folder, name)


def _forest(method: Method, kind: str, seed: int, n_trees: int, **options: Any) -> Any:
    return make(method, kind, np.zeros(0, dtype=bool), n_estimators=n_trees, random_state=seed, **options)


def _breiman_split(table: sets.Table, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n = len(table.y)
    if table.name in FIXED:
        return np.arange(table.n_official), np.arange(table.n_official, n)
    order = random.permutation(n)
    if table.name in SYNTHETIC:
        return order[:300], order[300:3300]
    return order[n // 10 :], order[: n // 10]


def breiman(table: sets.Table, random: np.random.Generator, method: Method, n_trees: int) -> Record:
    """Table 2: test errors in percent with F = 1, with F = int(log2(M) + 1), and of the better out of bag."""
    train, test = _breiman_split(table, random)
    seed = int(random.integers(2**31))
    outcomes = []
    for n_tried in (1, int(math.log2(table.X.shape[1]) + 1)):
        model = _forest(method, "classifier", seed, n_trees, max_features=n_tried, oob_score=True)
        model.fit(table.X[train], table.y[train])
        wrong = 100 * float(np.mean(model.predict(table.X[test]) != table.y[test]))
        vote = 100 * vote_error(model, table.X[test], table.y[test])
        outcomes.append({"oob": 100 * (1 - model.oob_score_), "wrong": wrong, "vote": vote})
    single, several = outcomes
    selected = single if single["oob"] < several["oob"] else several
    return {"selection": selected["wrong"], "vote": selected["vote"], "single": single["wrong"]}


def regression(folder: Path, name: str, random: np.random.Generator, method: Method, n_trees: int) -> Record:
    """Section 12: mean squared test errors; a tenth of the rows for testing, a quarter of abalone's."""
    seed = int(random.integers(2**31))
    if name in FRIEDMAN_NOISE:
        import sklearn.datasets as generators

        made = getattr(generators, f"make_{name}")(2200, noise=FRIEDMAN_NOISE[name], random_state=seed)
        X, y = made[0].astype(np.float32), made[1]
        train, test = np.arange(200), np.arange(200, 2200)
    else:
        table = _load(folder, name)
        X, y = table.encoded, table.y
        order = random.permutation(len(y))
        n_test = len(y) // (4 if name == "abalone" else 10)
        train, test = order[n_test:], order[:n_test]
    factor = BREIMAN_REGRESSION[name][2]
    errors = {}
    for what, n_tried in (("bagging", None), ("forest", max(2, X.shape[1] // 3))):
        model = _forest(method, "regressor", seed, n_trees, max_features=n_tried).fit(X[train], y[train])
        errors[what] = factor * float(np.mean((model.predict(X[test]) - y[test]) ** 2))
    return errors


def louppe(table: sets.Table, random: np.random.Generator, method: Method, n_trees: int) -> Record:
    """Chapter 8: accuracy on a quarter of the rows, with the max_features that was best on another quarter."""
    n, p = table.X.shape
    order = random.permutation(n)
    parts = order[: n // 2], order[n // 2 : n * 3 // 4], order[n * 3 // 4 :]
    (X, y), (X_valid, y_valid), (X_test, y_test) = ((table.X[rows], table.y[rows]) for rows in parts)
    grid = LOUPPE_SHARES if n <= COARSE_ABOVE else COARSE_SHARES
    seed = int(random.integers(2**31))
    best, right = -1.0, 0.0
    for n_tried in sorted({max(1, int(share * p)) for share in grid}):
        model = _forest(method, "classifier", seed, round(2.5 * n_trees), max_features=n_tried).fit(X, y)
        score = float(np.mean(model.predict(X_valid) == y_valid))
        if score > best:
            best, right = score, 100 * float(np.mean(model.predict(X_test) == y_test))
    return {method.family: right}


# ---- the report ------------------------------------------------------------------------------------------------------

LAYOUT = "{:<11}{:<25}{:<10}{:>4}{:>9}{:>16}{:>16}  {:<14}{:<14}{}"
HEADER = LAYOUT.format(
    "table", "set", "what", "n", "printed", "spinney", "scikit-learn", "us - print", "peer - print", "us - peer"
)


def printed() -> Iterator[tuple[str, str, str, float, bool]]:
    """Table, set, what, figure, and whether less is better."""
    for name, (selection, single) in BREIMAN.items():
        yield "breiman", name, "selection", selection, True
        yield "breiman", name, "single", single, True
        yield "breiman", name, "vote", selection, True
    for name, (bagging, forest, _) in BREIMAN_REGRESSION.items():
        yield "regression", name, "bagging", bagging, True
        yield "regression", name, "forest", forest, True
    for name, figures in LOUPPE.items():
        for what, figure in zip(("forest", "extra"), figures, strict=True):
            yield "louppe", name, what, figure, False


def report(records: list[Record]) -> None:
    found: dict[tuple[str, str, str, str], dict[int, float]] = defaultdict(dict)
    for record in records:
        key = record["key"]
        if key["study"] == "published":
            for what in record.keys() - {"key"}:
                found[key["table"], key["set"], what, key["library"]][key["repeat"]] = record[what]
    print(
        "The last columns are differences in standard errors, the printed figure's own included; positive is worse.\n"
    )
    print(HEADER)
    rows = []
    for table, name, what, figure, less_is_better in printed():
        ours, peer = (found.get((table, name, what, library), {}) for library in LIBRARIES)
        both = sorted(ours.keys() & peer.keys())
        if len(both) < 2:
            continue
        row = compare(table, name, what, figure, np.array([(ours[r], peer[r]) for r in both]), less_is_better)
        print(row.text)
        rows.append(row)
    for table, what in dict.fromkeys((row.table, row.what) for row in rows):
        chosen = [row for row in rows if (row.table, row.what) == (table, what)]
        sums = ", ".join(
            f"{sum(z <= 2 for z in zs)} of {len(zs)} no worse than {other} (mean {np.mean(zs):+.2f} SE)"
            for other, zs in (("print", [r.to_print for r in chosen]), ("scikit-learn", [r.to_peer for r in chosen]))
        )
        print(f"{table}, {what}: {sums}")


class Compared(NamedTuple):
    """A row of the table, and its differences in standard errors; positive is worse."""

    table: str
    what: str
    to_print: float
    to_peer: float
    text: str


def compare(table: str, name: str, what: str, figure: float, values: np.ndarray, less_is_better: bool) -> Compared:
    n = len(values)
    sign = 1 if less_is_better else -1
    means = values.mean(axis=0)
    variance = float(values.var(axis=0, ddof=1).mean())  # of both libraries: one may have 0 by chance
    n_printed = 1 if table == "breiman" and name in FIXED else PRINTED_REPEATS[table]
    rounding = 10.0 ** -len(str(figure).partition(".")[2]) / math.sqrt(12)
    error = math.sqrt(variance / n + variance / n_printed + rounding**2)
    ours, peers = sign * (means - figure) / error
    gap = sign * (values[:, 0] - values[:, 1])
    gap_error = gap.std(ddof=1) / math.sqrt(n)
    to_peer = float(gap.mean() / gap_error) if gap_error > 0 else 0.0
    errors = values.std(axis=0, ddof=1) / math.sqrt(n)
    sides = [f"{mean:.2f} ± {error:.2f}" for mean, error in zip(means, errors, strict=True)]
    text = LAYOUT.format(table, name, what, n, figure, *sides, *map(_verdict, (ours, peers, to_peer)))
    return Compared(table, what, float(ours), to_peer, text)


def _verdict(z: float) -> str:
    return f"{'noise' if abs(z) <= 2 else 'better' if z < 0 else 'WORSE'} {z:+.1f}"
