"""Learners with default settings: rank, loss relative to the best and to a peer, seconds, set by set.

Usage: ``python benchmarks/defaults.py --data FOLDER [--family boosters|effort|forests] [--sets NAME …] [--half A|B]
[--rows N] [--folds K] [--jobs N] [--threads N] [--table FILE]``. Boosters are set beside CatBoost, with one effort or
three; forests, as they come and with plain leaves, beside scikit-learn's.
The folder is that of accuracy.py (see `sets.py`); results go to ``--records``, one line each, and a
later run goes on from there. Peers that are not installed are left out. Sets come in the order of their cost, so
that a run that is cut short has as many as it can. A fit has ``--threads`` threads, and where the system allows it and
several run at a time, as many processors to itself; its seconds are those of the processor if it has one thread, so
that other work on the machine does not count. A library is loaded before. ``--table FILE`` also writes rank, loss over
the best and seconds of all contestants, set by set, as a table in Markdown. The report ends with the sets on which
the first contestant is worse than the last by more than two standard errors of the folds.

``python benchmarks/defaults.py --thousand [--data FOLDER] [--threads N]`` times our booster alone on 1,000 rows:
drawn ones of 2 to 20 classes and 5 to 60 columns, and those of each set of classes (600 or more).
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pool
import sets
from timing import environment

TOO_LARGE = {"covtype", "covtype_cat", "kddcup99_10pct"}  # one of them takes CatBoost longer than all others together
LEAST = 0.001  # share of pairs in the wrong order that counts as such: none at all is not infinitely better
_READY: set[str] = set()  # contestants that this process has fitted before
DUPLICATES = {"diabetes_pima_na", "german_credit_numeric", "dna"}  # duplicates of rows of another set


def half(name: str) -> str:
    """Return the half of a set: defaults are chosen on "A" alone; "B" is looked at once a choice is made."""
    return "BA"[zlib.crc32(name.encode()) % 2]


@dataclass
class Job:
    """Rows to learn from, and what a library must know of them."""

    X: np.ndarray
    y: np.ndarray
    is_category: np.ndarray
    n_classes: int
    threads: int

    @property
    def is_regression(self) -> bool:
        """Whether there are values to predict, not classes."""
        return self.n_classes == 0


def _spinney(job: Job, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    import spinney

    kind = spinney.GradientBoostingRegressor if job.is_regression else spinney.GradientBoostingClassifier
    categories = np.flatnonzero(job.is_category).tolist()
    return _answers(kind(categorical_features=categories, n_jobs=job.threads, **options).fit(job.X, job.y), job)


def _catboost(job: Job) -> Callable[[np.ndarray], np.ndarray]:
    import catboost

    kind = catboost.CatBoostRegressor if job.is_regression else catboost.CatBoostClassifier
    places = np.flatnonzero(job.is_category).tolist()

    def taken(X: np.ndarray) -> np.ndarray:  # takes whole numbers as categories, and no missing ones
        if not places:
            return X
        mixed = X.astype(object)
        mixed[:, places] = np.nan_to_num(X[:, places], nan=-1).astype(int)
        return mixed

    model = kind(thread_count=job.threads, allow_writing_files=False, logging_level="Silent", random_seed=0)
    model.fit(taken(job.X), job.y, cat_features=places)
    return _answers(model, job, taken)


def _lightgbm(job: Job, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    import lightgbm

    kind = lightgbm.LGBMRegressor if job.is_regression else lightgbm.LGBMClassifier
    places = np.flatnonzero(job.is_category).tolist()
    model = kind(n_jobs=job.threads, verbosity=-1, random_state=0, **options)
    more: dict[str, Any] = {"categorical_feature": places} if places else {}
    rows, held_out = _parted(job) if options else (slice(None), None)
    if held_out is not None:
        more["eval_set"] = [(job.X[held_out], job.y[held_out])]
        more["callbacks"] = [lightgbm.early_stopping(300, verbose=False)]
    return _answers(model.fit(job.X[rows], job.y[rows], **more), job)


def _lightgbm_tuned(job: Job) -> Callable[[np.ndarray], np.ndarray]:
    """Return LightGBM with the defaults that Holzmüller et al. (2024) tuned on 118 sets."""
    of_task = (
        {"learning_rate": 0.05, "num_leaves": 100, "subsample": 0.7, "min_child_samples": 3}
        if job.is_regression
        else {"learning_rate": 0.04, "num_leaves": 50, "subsample": 0.75, "min_child_samples": 40}
    )
    return _lightgbm(job, n_estimators=1000, subsample_freq=1, min_child_weight=1e-7, **of_task)


def _xgboost(job: Job, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    import xgboost

    kind = xgboost.XGBRegressor if job.is_regression else xgboost.XGBClassifier
    types = ["c" if c else "q" for c in job.is_category]
    model = kind(n_jobs=job.threads, random_state=0, enable_categorical=True, feature_types=types, **options)
    rows, held_out = _parted(job) if options else (slice(None), None)
    more = {} if held_out is None else {"eval_set": [(job.X[held_out], job.y[held_out])], "verbose": False}
    return _answers(model.fit(job.X[rows], job.y[rows], **more), job)


def _xgboost_tuned(job: Job) -> Callable[[np.ndarray], np.ndarray]:
    """Return XGBoost with the defaults of the same study."""
    of_task = (
        {"learning_rate": 0.05, "max_depth": 9, "min_child_weight": 2.0, "subsample": 0.7}
        if job.is_regression
        else {
            "learning_rate": 0.08, "max_depth": 6, "min_child_weight": 5e-6, "subsample": 0.65,
            "colsample_bylevel": 0.9,
        }
    )  # fmt: skip
    return _xgboost(job, n_estimators=1000, reg_lambda=0.0, early_stopping_rounds=300, **of_task)


def _hist(job: Job) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if job.is_regression else HistGradientBoostingClassifier
    narrow = job.is_category & np.array([len(np.unique(c[~np.isnan(c)])) <= 255 for c in job.X.T])  # it takes no more
    return _answers(kind(categorical_features=narrow, random_state=0).fit(job.X, job.y), job)


def _forest(name: str, job: Job) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn import ensemble

    kind = getattr(ensemble, name + ("Regressor" if job.is_regression else "Classifier"))
    return _answers(kind(n_jobs=job.threads, random_state=0).fit(job.X, job.y), job)


def _our_forest(name: str, job: Job, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    import spinney

    kind = getattr(spinney, name + ("Regressor" if job.is_regression else "Classifier"))
    categories = np.flatnonzero(job.is_category).tolist()
    model = kind(categorical_features=categories, n_jobs=job.threads, random_state=0, **options)
    return _answers(model.fit(job.X, job.y), job)


CONTESTANTS: dict[str, tuple[str, Callable[[Job], Callable[[np.ndarray], np.ndarray]]]] = {
    "spinney": ("spinney", _spinney),
    "effort 0": ("spinney", partial(_spinney, effort=0.0)),
    "effort 1": ("spinney", partial(_spinney, effort=1.0)),
    "without combined columns": ("spinney", partial(_spinney, feature_combinations=None)),
    "catboost": ("catboost", _catboost),
    "lightgbm": ("lightgbm", _lightgbm),
    "lightgbm tuned": ("lightgbm", _lightgbm_tuned),
    "xgboost": ("xgboost", _xgboost),
    "xgboost tuned": ("xgboost", _xgboost_tuned),
    "sklearn hist": ("sklearn", _hist),
    "sklearn forest": ("sklearn", partial(_forest, "RandomForest")),
    "forest": ("spinney", partial(_our_forest, "RandomForest")),
    "forest, plain": ("spinney", partial(_our_forest, "RandomForest", shrinkage=None)),
    "extra-trees": ("spinney", partial(_our_forest, "ExtraTrees")),
    "extra-trees, plain": ("spinney", partial(_our_forest, "ExtraTrees", shrinkage=None)),
    "sklearn extra-trees": ("sklearn", partial(_forest, "ExtraTrees")),
}
# Who is set beside whom: a table each, in which losses are also given over those of the last.
FAMILIES = {
    "boosters": [
        [
            "spinney", "lightgbm", "lightgbm tuned", "xgboost", "xgboost tuned", "sklearn hist", "sklearn forest",
            "catboost",
        ],
    ],
    "effort": [["spinney", "effort 0", "effort 1", "catboost"]],
    "forests": [
        ["forest", "forest, plain", "sklearn forest"], ["extra-trees", "extra-trees, plain", "sklearn extra-trees"],
    ],
}  # fmt: skip


def _parted(job: Job) -> tuple[np.ndarray, np.ndarray]:
    """Part a fifth of the rows off, class by class."""
    from sklearn.model_selection import train_test_split

    counts = np.bincount(job.y) if not job.is_regression else np.array([2])
    strata = None if job.is_regression or counts.min() < 2 else job.y
    rows, held_out = train_test_split(np.arange(len(job.y)), test_size=0.2, stratify=strata, random_state=0)
    return rows, held_out


def _answers(
    model: Any, job: Job, taken: Callable[[np.ndarray], np.ndarray] = lambda X: X
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what predicts values, or class shares for all classes, those never seen included."""
    if job.is_regression:
        return lambda X: np.asarray(model.predict(taken(X))).ravel()

    def shares(X: np.ndarray) -> np.ndarray:
        found = np.zeros((len(X), job.n_classes))
        found[:, np.asarray(model.classes_, dtype=int).ravel()] = model.predict_proba(taken(X))
        return found

    return shares


def evaluate(y: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """Return the root mean squared error, or the log loss and, of two classes, one minus the area under the curve."""
    if found.ndim == 1:
        return {"loss": float(np.sqrt(np.mean((found - y) ** 2)))}
    shares = np.clip(found, 1e-15, 1)
    shares /= shares.sum(axis=1, keepdims=True)
    scores = {"loss": float(-np.log(shares[np.arange(len(y)), y]).mean())}
    if found.shape[1] == 2 and 0 < y.mean() < 1:
        from sklearn.metrics import roc_auc_score

        scores["misranked"] = 1 - float(roc_auc_score(y, found[:, 1]))
    return scores


def _folds(table: sets.Table, k: int) -> np.ndarray:
    """Return the fold of each row; classes are spread over folds."""
    order = sets.seed_of(table.name, 1).permutation(len(table.y))
    if table.n_classes:
        order = order[np.argsort(table.y[order], kind="stable")]
    fold = np.empty(len(order), dtype=int)
    fold[order] = np.arange(len(order)) % k
    return fold


def _pin(threads: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        cpus = sorted(os.sched_getaffinity(os.getppid()))
        me = (multiprocessing.current_process()._identity or (1,))[0] - 1
        os.sched_setaffinity(0, {cpus[(me * threads + t) % len(cpus)] for t in range(threads)})


def _get_ready(contestant: str, threads: int) -> None:
    """Load a library and start its threads, once in a process: the seconds are those of a fit."""
    if contestant in _READY:
        return
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    for y, n_classes in ((X[:, 0].astype(np.float64), 0), ((X[:, 0] > 0).astype(np.int64), 2)):
        CONTESTANTS[contestant][1](Job(X, y, np.zeros(2, dtype=bool), n_classes, threads))
    _READY.add(contestant)


def fit(
    folder: str, name: str, rows: int, k: int, fold: int, contestant: str, threads: int, pinned: bool
) -> pool.Record:
    """Fit one contestant on all folds of a set but one, and evaluate it on that one."""
    from threadpoolctl import threadpool_limits

    if pinned:
        _pin(threads)
    _get_ready(contestant, threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    table = sets.load(Path(folder), name)
    table = table if len(table.y) <= rows else sets._sample(table, rows)
    held_out = _folds(table, k) == fold
    y = table.y if table.n_classes else table.y.astype(np.float64)
    labels = np.unique(y[~held_out]) if table.n_classes else None
    learned = y[~held_out] if labels is None else np.searchsorted(labels, y[~held_out])
    job = Job(table.X[~held_out], learned, table.is_category, 0 if labels is None else len(labels), threads)
    began = clock()
    with threadpool_limits(limits=threads):
        answers = CONTESTANTS[contestant][1](job)
        seconds = clock() - began
        found = answers(table.X[held_out])
    constant = np.full(int(held_out.sum()), learned.mean())
    if labels is not None:
        constant = np.tile(np.bincount(learned) / len(learned), (int(held_out.sum()), 1))
        found, constant = (_for_all(part, labels, table.n_classes) for part in (found, constant))
    return {
        "seconds": seconds, "rows": len(table.y), **evaluate(y[held_out], found),
        "constant": evaluate(y[held_out], constant)["loss"],
    }  # fmt: skip


def _cost(folder: Path, name: str, rows: int) -> float:
    """Cells of a set, times its classes: about what a booster has to do."""
    table = sets.load(folder, name)
    n_scores = 1 if table.n_classes <= 2 else table.n_classes
    return min(len(table.y), rows) * (table.X.shape[1] + 2 * int(table.is_category.sum())) * n_scores


def _for_all(shares: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    found = np.zeros((len(shares), n_classes))
    found[:, labels] = shares
    return found


# ---- one thousand rows ----------------------------------------------------------------------------------------

THOUSAND, FEWEST_OF_THOUSAND = 1000, 600


def _thousand_drawn() -> Iterator[tuple[str, Job]]:
    from sklearn.datasets import make_classification

    for n_classes in (2, 3, 5, 11, 20):
        for n_columns in (5, 20, 60):
            X, y = make_classification(
                THOUSAND, n_columns, n_informative=min(10, n_columns), n_redundant=0, n_classes=n_classes,
                n_clusters_per_class=1, random_state=0,
            )  # fmt: skip
            yield f"drawn, {n_classes} classes, {n_columns} columns", Job(X, y, np.zeros(n_columns, bool), n_classes, 0)


def _thousand_of_sets(folder: Path, chosen: list[str]) -> Iterator[tuple[str, Job]]:
    for name in chosen:
        table = sets.load(folder, name)
        if table.n_classes == 0 or len(table.y) < FEWEST_OF_THOUSAND:
            continue
        rows = sets.seed_of(table.name, 1).permutation(len(table.y))[:THOUSAND]
        y = np.unique(table.y[rows], return_inverse=True)[1]
        name = f"{name}, {len(rows)} rows, {y.max() + 1} classes, {table.X.shape[1]} columns"
        yield name, Job(table.X[rows], y, table.is_category, int(y.max()) + 1, 0)


def time_thousand(folder: Path | None, chosen: list[str], threads: int) -> None:
    """Print seconds of a fit, the least of three, and those of the processor."""
    import spinney

    _get_ready("spinney", threads)
    of_sets = _thousand_of_sets(folder, chosen) if folder is not None else iter(())
    print(f"{'seconds of a fit, default settings':<60}{'wall':>8}{'processor':>11}{'trees':>9}")
    for name, job in (*_thousand_drawn(), *of_sets):
        times = []
        for _ in range(3):
            began = time.perf_counter(), time.process_time()
            categories = np.flatnonzero(job.is_category).tolist()
            model = spinney.GradientBoostingClassifier(categorical_features=categories, n_jobs=threads)
            model.fit(job.X, job.y)
            times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
        wall, processor = np.min(times, axis=0)
        n_trees = model.n_estimators_ * (job.n_classes if job.n_classes > 2 else 1)
        print(f"{name:<60}{wall:>8.2f}{processor:>11.2f}{n_trees:>9,}", flush=True)


# ---- report ---------------------------------------------------------------------------------------------------


def report(records: list[pool.Record], side_by_side: list[str], metric: str = "loss") -> None:
    """Print rank, excess over the best and over the last's, and seconds; then one line per set."""
    losses, seconds, constants = _tables(records, metric)
    names = [c for c in side_by_side if any(c in row for row in losses.values())]
    whole = {name: row for name, row in losses.items() if all(c in row for c in names)}
    if len(names) < 2 or not whole:
        return
    table = np.array([[row[c] for c in names] for row in whole.values()])
    time_of = np.array([[seconds[name][c] for c in names] for name in whole])
    ranks = (table[:, :, None] > table[:, None, :]).sum(axis=2) + 1
    least = LEAST if metric == "misranked" else 1e-12
    over_best = np.maximum(table, least) / np.maximum(table, least).min(axis=1, keepdims=True) - 1
    print(f"\n{metric}, {len(whole)} sets: {', '.join(names)}")
    layout = "{:<20}{:>10}{:>7}{:>12}{:>10}{:>16}{:>10}{:>10}"
    print(layout.format("", "mean rank", "first", "mean over", "median", "mean over the", "median", "seconds"))
    print(layout.format("", "", "", "the best", "", "last of these", "", "a fold"))
    for i, name in enumerate(names):
        over = np.maximum(table[:, i], least) / np.maximum(table[:, -1], least) - 1
        print(
            layout.format(
                name, f"{ranks[:, i].mean():.2f}", int((ranks[:, i] == 1).sum()), f"{over_best[:, i].mean():.1%}",
                f"{np.median(over_best[:, i]):.1%}", f"{over.mean():+.1%}", f"{np.median(over):+.1%}",
                f"{time_of[:, i].sum():.1f}",
            )
        )  # fmt: skip
    if metric == "loss":
        _report_sets(list(whole), names, table, time_of, constants)
        _report_worse(records, list(whole), names)


def _report_worse(records: list[pool.Record], found: list[str], names: list[str]) -> None:
    """Print the sets on which the first is worse than the last by more than two standard errors over folds."""
    mine, peer = names[0], names[-1]
    loss = {tuple(record["key"][k] for k in ("set", "contestant", "fold")): record["loss"] for record in records}
    lines = []
    for name in found:
        folds = sorted(fold for s, c, fold in loss if (s, c) == (name, mine) and (name, peer, fold) in loss)
        over = np.array([loss[name, mine, fold] - loss[name, peer, fold] for fold in folds])
        mean = float(np.mean([loss[name, peer, fold] for fold in folds]))
        error = float(over.std(ddof=1)) / len(over) ** 0.5 if len(over) > 1 else np.inf
        if mean > 0 and over.mean() > 2 * error:
            lines.append(f"{name:<24}{over.mean() / mean:+.1%}, standard error {error / mean:.1%}, {len(over)} folds")
    more = "by more than two standard errors of the folds"
    print(f"\n{mine} is worse than {peer} {more} on {len(lines)} of {len(found)} sets")
    print("\n".join(lines))


def _tables(records: list[pool.Record], metric: str) -> tuple[dict[str, dict[str, float]], ...]:
    """Return means over folds by set and contestant: losses, seconds; and the constant's loss."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        key = record["key"]
        for what in (metric, "seconds", "constant"):
            if what in record:
                values.setdefault((what, key["set"], key["contestant"]), []).append(record[what])
    most = {name: max(len(v) for (_, s, _), v in values.items() if s == name) for _, name, _ in values}
    tables: dict[str, dict[str, dict[str, float]]] = {metric: {}, "seconds": {}, "constant": {}}
    for (what, name, contestant), found in values.items():
        if len(found) == most[name]:
            tables[what].setdefault(name, {})[contestant] = float(np.mean(found))
    return tables[metric], tables["seconds"], tables["constant"]


def _report_sets(
    found: list[str], names: list[str], table: np.ndarray, seconds: np.ndarray, constants: dict[str, dict[str, float]]
) -> None:
    print(f"\nset by set: loss of {names[0]}, over each of the others' (negative: it is lower), seconds")
    for i, name in enumerate(found):
        mine = table[i, 0]
        over = ", ".join(f"{c} {mine / max(table[i, j], 1e-12) - 1:+.1%}" for j, c in enumerate(names) if j)
        notes = [f"{seconds[i, 0]:.2f} s", f"{seconds[i, 0] / seconds[i, -1]:.2f} of the last's time"]
        notes += ["WORSE THAN THE CONSTANT"] if mine > constants[name][names[0]] * 1.0005 else []
        print(f"{name:<24}{mine:>10.4g}  {over}; {', '.join(notes)}")


def table_of_sets(records: list[pool.Record], side_by_side: list[str]) -> str:
    """Return a table in Markdown: rank, loss over the best and seconds of each contestant, a line for each set."""
    losses, seconds, _ = _tables(records, "loss")
    n_rows = {record["key"]["set"]: record["rows"] for record in records}
    names = [c for c in side_by_side if any(c in row for row in losses.values())]
    lines = [f"| table | rows | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for name, row in sorted(losses.items()):
        if not all(c in row for c in names):
            continue
        least = max(min(row.values()), 1e-12)
        cells = [
            f"{1 + sum(other < row[c] for other in row.values())}, {max(row[c], 1e-12) / least - 1:.1%}, "
            f"{seconds[name][c]:.2g} s".replace("%", " %")
            for c in names
        ]
        lines.append(f"| {name} | {n_rows[name]:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="index.csv and the sets; none: report alone")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--half", choices=["A", "B"], help="only the sets of one half; see `half`")
    parser.add_argument("--family", choices=list(FAMILIES), default="boosters")
    parser.add_argument("--contestants", nargs="+", choices=list(CONTESTANTS), help="only these")
    parser.add_argument("--rows", type=int, default=10_000, help="at most so many of a set, drawn at random")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, help="fits at a time; default: processors over threads")
    parser.add_argument("--threads", type=int, default=2, help="of a fit")
    parser.add_argument("--thousand", action="store_true", help="time ours alone on 1,000 rows")
    parser.add_argument("--minutes", type=float, help="start nothing new after so many")
    parser.add_argument("--records", type=Path, default=Path("defaults.jsonl"), help="results, one line each")
    parser.add_argument("--table", type=Path, metavar="FILE", help="rank, loss and seconds by set, in Markdown")
    return parser.parse_args()


def main() -> int:
    options = parse()
    print(", ".join(f"{name} {value}" for name, value in environment().items()))
    chosen = options.sets or []
    if options.data is not None and not chosen:
        chosen = [n for n in sets.names(options.data) if n not in TOO_LARGE | DUPLICATES]
    chosen = [n for n in chosen if options.half in (None, half(n))]
    if options.thousand:
        time_thousand(options.data, chosen, options.threads)
        return 0
    if options.data is not None:
        wanted = options.contestants or [c for table in FAMILIES[options.family] for c in table]
        able = [c for c in wanted if importlib.util.find_spec(CONTESTANTS[c][0])]
        jobs = options.jobs or max(1, len(os.sched_getaffinity(0)) // options.threads)
        units = [
            pool.Unit(
                {"set": name, "fold": fold, "contestant": c, "rows": options.rows, "folds": options.folds}, fit,
                (str(options.data), name, options.rows, options.folds, fold, c, options.threads, jobs > 1),
            )
            for name in sorted(chosen, key=lambda name: _cost(options.data, name, options.rows))
            for fold in range(options.folds)
            for c in able
        ]  # fmt: skip
        pool.run(units, options.records, jobs, options.minutes)
    records = [r for r in pool.read_records(options.records) if "loss" in r]
    for side_by_side in FAMILIES[options.family]:
        report(records, side_by_side)
        report(records, side_by_side, "misranked")
    if options.table is not None:
        tables = [table_of_sets(records, side_by_side) for side_by_side in FAMILIES[options.family]]
        options.table.write_text("\n".join(tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
