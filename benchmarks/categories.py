"""Categories and identifiers: what columns of names cost each family, and sets of categories against codes.

Usage: ``python benchmarks/categories.py --data FOLDER [identifiers] [encodings] [--rows N] [--folds K] [--jobs N]``.
The folder is that of accuracy.py (see `sets.py`); results go to ``--records``, one line each, and a
later run goes on from there.

- ``identifiers``: tables with columns of names, some of them added here, against the same tables without them.
  A column of names may cost no more than .01 of the area under the curve.
- ``encodings``: categories as they are, as codes, and as one column of 0 and 1 for each; with ``--repeats R`` rows are
  parted R times. Behind is what is worse than the better of the two by half a percent and by two standard errors.
  Means are geometric ones of ratios, clipped to between a half and double: ratios of losses near 0 are not informative.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pool
import sets
from defaults import DUPLICATES, TOO_LARGE, Job, _answers, _folds, _for_all, evaluate
from forest_defaults import LEAST, compared
from timing import environment

MOST_LOST = 0.01  # of the area under the curve
# columns of names by their place, or how many rows share a name that is added
NAMES: dict[str, tuple[int, ...]] = {"titanic": (5, 7, 9), "cylinder_bands": (0, 1)}
ADDED: dict[str, int] = {"german_credit": 1, "diabetes_pima": 1, "heart_cleveland": 3}
LARGE = TOO_LARGE | DUPLICATES | {"connect4", "arrhythmia"}


def _trees(name: str, regression: str, **options: Any) -> Callable[[Job, bool], Any]:
    def make(job: Job, as_categories: bool) -> Any:
        import spinney

        kind = getattr(spinney, regression if job.is_regression else name)
        places = np.flatnonzero(job.is_category).tolist() if as_categories else None
        return kind(categorical_features=places, n_jobs=job.threads, random_state=0, **options)

    return make


def _bagging(job: Job, as_categories: bool) -> Any:
    import spinney

    kind, tree = (
        (spinney.BaggingRegressor, spinney.DecisionTreeRegressor)
        if job.is_regression
        else (spinney.BaggingClassifier, spinney.DecisionTreeClassifier)
    )
    places = np.flatnonzero(job.is_category).tolist() if as_categories else None
    return kind(tree(categorical_features=places), n_estimators=50, n_jobs=job.threads, random_state=0)


FAMILIES: dict[str, Callable[[Job, bool], Any]] = {
    "tree": _trees("DecisionTreeClassifier", "DecisionTreeRegressor", prune="cv"),
    "forest": _trees("RandomForestClassifier", "RandomForestRegressor"),
    "extra-trees": _trees("ExtraTreesClassifier", "ExtraTreesRegressor"),
    "bagging": _bagging,
    "AdaBoost": _trees("AdaBoostClassifier", "AdaBoostRegressor"),
    "boosting, 100 rounds": _trees("GradientBoostingClassifier", "GradientBoostingRegressor", n_estimators=100),
    "boosting": _trees("GradientBoostingClassifier", "GradientBoostingRegressor"),
}
ENCODINGS = ("categories", "codes", "0 and 1")
ENCODED_FAMILIES = ("tree", "forest", "extra-trees")


def add_names(table: sets.Table, per_name: int) -> sets.Table:
    """Return the table with a column of names that say nothing, each of `per_name` rows or one less."""
    random = sets.seed_of(table.name, 3)
    names = []
    while len(names) < len(table.y):
        names += [len(names)] * int(random.integers(max(1, per_name - 1), per_name + 1))
    column = random.permutation(np.array(names[: len(table.y)], dtype=np.float32))
    X = np.column_stack([table.X, column])
    return sets.Table(table.name, X, np.append(table.is_category, True), table.y, table.n_classes)


def with_names(table: sets.Table) -> tuple[sets.Table, tuple[int, ...]]:
    """Return a table that has columns of names, and where they are."""
    if table.name in ADDED:
        return add_names(table, ADDED[table.name]), (table.X.shape[1],)
    return table, NAMES[table.name]


def variant(table: sets.Table, wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """Return columns, and which of them are categories."""
    if wanted in ("with names", "without"):
        table, places = with_names(table)
        kept = [j for j in range(table.X.shape[1]) if wanted == "with names" or j not in places]
        return table.X[:, kept], table.is_category[kept]
    X = table.encoded if wanted == "0 and 1" else table.X
    return X, table.is_category if wanted == "categories" else np.zeros(X.shape[1], dtype=bool)


def fit(folder: str, name: str, rows: int, k: int, fold: int, family: str, wanted: str, repeat: int) -> pool.Record:
    """Fit one family on all folds of a set but one, and evaluate it on that one."""
    table = sets.load(Path(folder), name)
    table = table if len(table.y) <= rows else sets._sample(table, rows)
    table = sets.shuffled(table, repeat) if repeat else table
    held_out = _folds(table, k) == fold
    X, is_category = variant(table, wanted)
    y = table.y if table.n_classes else table.y.astype(np.float64)
    labels = np.unique(y[~held_out]) if table.n_classes else None
    learned = y[~held_out] if labels is None else np.searchsorted(labels, y[~held_out])
    job = Job(X[~held_out], learned, is_category, 0 if labels is None else len(labels), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FAMILIES[family](job, bool(is_category.any())).fit(job.X, job.y)
        found = _answers(model, job)(X[held_out])
    if labels is not None:
        found = _for_all(found, labels, table.n_classes)
    return {"rows": len(table.y), **evaluate(y[held_out], found)}


# ---- report ---------------------------------------------------------------------------------------------------


def _means(records: list[pool.Record], what: str, metric: str) -> dict[tuple[str, str, str], float]:
    """Means over folds, by set, family and variant."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        key = record["key"]
        if key["part"] == what and metric in record:
            values.setdefault((key["set"], key["family"], key["variant"]), []).append(record[metric])
    return {key: float(np.mean(found)) for key, found in values.items()}


def report_identifiers(records: list[pool.Record]) -> bool:
    """Print the area under the curve with and without names; say whether the bar holds."""
    means = _means(records, "identifiers", "misranked")
    found = list(dict.fromkeys(name for name, _, _ in means))
    if not found:
        return True
    holds = True
    print("\narea under the curve without columns of names, and what it loses with them (bar: .01)")
    print(f"{'':<22}" + "".join(f"{name:>18}" for name in found))
    for family in FAMILIES:
        cells = []
        for name in found:
            without, names = means.get((name, family, "without")), means.get((name, family, "with names"))
            if without is None or names is None:
                cells.append("")
                continue
            holds &= names - without <= MOST_LOST
            cells.append(f"{1 - without:.3f} {names - without:+.3f}{'*' if names - without > MOST_LOST else ' '}")
        print(f"{family:<22}" + "".join(f"{cell:>18}" for cell in cells))
    return holds


def mean_ratio(ratios: np.ndarray) -> float:
    """Return the geometric mean of ratios, those beyond a half and double taken as these.

    Otherwise one set on which a loss is nearly none, as mushroom, would decide alone.
    """
    return float(np.exp(np.log(np.clip(ratios, 0.5, 2.0)).mean()))


def report_encodings(records: list[pool.Record]) -> None:
    """Print the loss with categories over those with codes, by family and set, and what is behind."""
    found: dict[tuple[str, str, str], dict[tuple[int, int], float]] = {}
    for record in records:
        key = record["key"]
        if key["part"] == "encodings":
            part = (key.get("repeat", 0), key["fold"])
            found.setdefault((key["family"], key["set"], key["variant"]), {})[part] = record["loss"]
    k = max((record["key"]["folds"] for record in records), default=5)
    for family in ENCODED_FAMILIES:
        names = sorted({name for of, name, _ in found if of == family})
        whole = [n for n in names if all((family, n, v) in found for v in ENCODINGS)]
        if not whole:
            continue
        print(f"\n{family}: loss with categories over that with codes, and with columns of 0 and 1, ± standard error")
        over, behind = [], []
        for name in whole:
            by_variant = [found[family, name, v] for v in ENCODINGS]
            parts = sorted(set.intersection(*map(set, by_variant)))
            mine, *others = (np.array([losses[part] for part in parts]) for losses in by_variant)
            pairs = [compared(mine, other, k) for other in others]
            worst, error = max(pairs)
            behind += [name] if worst > LEAST and worst > 2 * error else []
            over.append([1 + pair[0] for pair in pairs])
            print(f"{name:<24}{mine.mean():>10.4g}" + "".join(f"{a:>+9.1%} ± {b:<6.1%}" for a, b in pairs))
        table = np.array(over)
        print(f"{'mean of ' + str(len(whole)):<34}" + "".join(f"{mean_ratio(c) - 1:>+9.1%}{'':9}" for c in table.T))
        print(f"{'median':<34}" + "".join(f"{np.median(c) - 1:>+9.1%}{'':9}" for c in table.T))
        print(f"behind on {len(behind)} of {len(whole)}: {', '.join(behind) or 'none'}")


def _units(options: argparse.Namespace) -> list[pool.Unit]:
    chosen = []
    if "identifiers" in options.parts:
        wanted = options.families or list(FAMILIES)
        chosen += [
            ("identifiers", n, f, v) for n in [*NAMES, *ADDED] for f in wanted for v in ("without", "with names")
        ]
    if "encodings" in options.parts:
        wanted = [f for f in ENCODED_FAMILIES if not options.families or f in options.families]
        asked_for = options.sets or sets.names(options.data)
        with_categories = [n for n in sets.names(options.data) if n in asked_for and n not in LARGE]
        with_categories = [n for n in with_categories if sets.load(options.data, n).is_category.any()]
        chosen += [("encodings", n, f, v) for n in with_categories for f in wanted for v in ENCODINGS]
    return [
        pool.Unit(
            {
                "part": part, "set": name, "family": family, "variant": v, "fold": fold, "rows": options.rows,
                "folds": options.folds, "repeat": repeat,
            },
            fit,
            (str(options.data), name, options.rows, options.folds, fold, family, v, repeat),
        )
        for part, name, family, v in chosen
        if not options.sets or name in options.sets
        for repeat in range(options.repeats)
        for fold in range(options.folds)
    ]  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = ("identifiers", "encodings")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[], metavar="PART", help=", ".join(parts))
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="index.csv and the sets; none: report alone")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), help="only these")
    parser.add_argument("--rows", type=int, default=6_000, help="at most so many of a set, drawn at random")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=1, help="how often rows are parted into folds")
    parser.add_argument("--jobs", type=int, help="fits at a time; default: processors")
    parser.add_argument("--minutes", type=float, help="start nothing new after so many")
    parser.add_argument("--records", type=Path, default=Path("categories.jsonl"), help="results, one line each")
    options = parser.parse_args()
    options.parts = options.parts or list(parts)
    return options


def main() -> int:
    options = parse()
    print(", ".join(f"{name} {value}" for name, value in environment().items()))
    if options.data is not None:
        pool.run(_units(options), options.records, options.jobs or len(os.sched_getaffinity(0)), options.minutes)
    records = pool.read_records(options.records)
    holds = report_identifiers(records)
    report_encodings(records)
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
