"""Models of other libraries, imported, beside the library itself: the same model, the same rows, one run.

Usage: ``python benchmarks/imported.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
The evidence is the largest difference of the predictions: XGBoost adds in single precision.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import data
import numpy as np
from program import command_line, run
from timing import Row, beside, measure, play

Numbers = np.ndarray
N_THREADS = 2


@dataclass
class Pair:
    """A model, and what asks the library and us the same."""

    ours: Any
    theirs: Callable[[Numbers], Numbers]  # probabilities of the second class, or values
    one: Callable[[Numbers], Any]  # a row as an array of shape (1, n_columns)
    parts: Callable[[Numbers], Numbers] | None = None  # Shapley values, and the base value behind them
    by_pointer: Callable[[Numbers], Any] | None = None  # the library's way for one row that its Python does not offer


def xgboost_pair(X: Numbers, y: Numbers, n_trees: int) -> Pair:
    import spinney
    import xgboost

    options = {"objective": "binary:logistic", "max_leaves": 31, "grow_policy": "lossguide", "max_depth": 0}
    model = xgboost.train(options | {"nthread": N_THREADS, "eta": 0.1}, xgboost.DMatrix(X, y), n_trees)
    single = model.copy()
    single.set_param({"nthread": 1})  # its fastest for one row
    return Pair(
        spinney.from_xgboost(model),
        lambda rows: model.inplace_predict(rows),
        lambda row: single.inplace_predict(row),
        lambda rows: model.predict(xgboost.DMatrix(rows), pred_contribs=True),
    )


def lightgbm_by_pointer(model: Any, n_columns: int) -> Callable[[Numbers], float]:
    """Ask LightGBM's C interface, which prepares a call for single rows once; its Python package has no way to it."""
    import ctypes

    from lightgbm.basic import _LIB

    fast, count, out = ctypes.c_void_p(), ctypes.c_int64(), (ctypes.c_double * 1)()
    float64, predict, all_rounds = 1, 0, -1
    place = ctypes.byref(fast)
    _LIB.LGBM_BoosterPredictForMatSingleRowFastInit(
        model._handle, predict, 0, all_rounds, float64, n_columns, b"num_threads=1", place
    )
    ask = _LIB.LGBM_BoosterPredictForMatSingleRowFast

    def one(row: Numbers) -> float:
        ask(fast, ctypes.c_void_p(row.ctypes.data), ctypes.byref(count), out)
        return out[0]

    return one


def lightgbm_pair(X: Numbers, y: Numbers, n_trees: int) -> Pair:
    import lightgbm
    import spinney

    options = {"objective": "binary", "num_leaves": 31, "verbose": -1, "num_threads": N_THREADS}
    model = lightgbm.train(options, lightgbm.Dataset(X, y), n_trees)
    return Pair(
        spinney.from_lightgbm(model),
        lambda rows: model.predict(rows, num_threads=N_THREADS),
        lambda row: model.predict(row, num_threads=1),
        lambda rows: model.predict(rows, pred_contrib=True, num_threads=N_THREADS),
        lightgbm_by_pointer(model, X.shape[1]),
    )


def catboost_pair(X: Numbers, y: Numbers, n_trees: int) -> Pair:
    import catboost
    import spinney

    model = catboost.CatBoostClassifier(
        iterations=n_trees, depth=5, verbose=0, thread_count=N_THREADS, allow_writing_files=False
    ).fit(X, y)
    return Pair(
        spinney.from_catboost(model),
        lambda rows: model.predict_proba(rows, thread_count=N_THREADS)[:, 1],
        lambda row: model.predict_proba(row, thread_count=1),
        lambda rows: model.get_feature_importance(catboost.Pool(rows), type="ShapValues", thread_count=N_THREADS),
    )


def histograms_pair(X: Numbers, y: Numbers, n_trees: int) -> Pair:
    import spinney
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=n_trees, early_stopping=False).fit(X, y)
    return Pair(spinney.from_sklearn(model), lambda rows: model.predict_proba(rows)[:, 1], model.predict_proba)


def forest_pair(X: Numbers, y: Numbers, n_trees: int) -> Pair:
    import spinney
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(min(n_trees, 100), min_samples_leaf=5, n_jobs=N_THREADS, random_state=0).fit(X, y)
    alone = RandomForestClassifier(**model.get_params() | {"n_jobs": 1})
    alone.__dict__.update({name: value for name, value in vars(model).items() if name != "n_jobs"})
    return Pair(spinney.from_sklearn(model), lambda rows: model.predict_proba(rows)[:, 1], alone.predict_proba)


MAKERS = {
    "xgboost": ("xgboost", xgboost_pair),
    "lightgbm": ("lightgbm", lightgbm_pair),
    "catboost": ("catboost", catboost_pair),
    "scikit-learn, histograms": ("sklearn", histograms_pair),
    "scikit-learn, forest": ("sklearn", forest_pair),
}


@cache
def pair_of(name: str, quick: bool) -> tuple[Pair, Numbers]:
    """Fit a library's model to 5,000 rows of 28 columns; 300 trees."""
    table = data.numbers("classifier", 20_000, 0)
    X, y = np.ascontiguousarray(table.X, dtype=np.float64), (np.asarray(table.y) > 0).astype(int)
    pair = MAKERS[name][1](X[:5_000], y[:5_000], 50 if quick else 300)
    pair.ours.set_params(n_jobs=N_THREADS)
    return pair, X


def pairs(options: Any) -> Iterator[tuple[str, Pair, Numbers]]:
    for name, (package, _) in MAKERS.items():
        if find_spec(package):
            yield name, *pair_of(name, options.quick)


def predict(options: Any) -> Iterator[Row]:
    """100,000 rows, two threads."""
    for name, pair, X in pairs(options):
        rows = np.tile(X, (1 if options.quick else 5, 1)) + 0.001
        off = np.abs(pair.ours.predict_proba(rows)[:, 1] - pair.theirs(rows)).max()
        sides = {"spinney": partial(pair.ours.predict_proba, rows), name: partial(pair.theirs, rows)}
        # CatBoost's symmetric trees are made for this and nothing else
        target = "" if name == "catboost" else ">= 3"
        yield row_of(f"predict | {name}", sides, name, target, f"off by {off:.0e}", options)


def ask_each(ask: Callable[[Numbers], Any], rows: list[Numbers]) -> None:
    for row in rows:
        ask(row)


def one_row(options: Any) -> Iterator[Row]:
    """One row, one thread, the whole call."""
    for name, pair, X in pairs(options):
        handle = pair.ours.to_predictor()
        rows = [np.ascontiguousarray(row) for row in X[:100]]
        ask_ours = partial(ask_each, handle.predict_proba, rows)
        ways = {name: (">= 5", pair.one)}
        if pair.by_pointer:
            ways[f"{name}, C by pointer"] = ("", pair.by_pointer)
        for way, (target, ask) in ways.items():
            off = max(abs(handle.predict_proba(row)[1] - np.ravel(ask(row[np.newaxis]))[-1]) for row in rows[:50])
            ask_theirs = partial(ask_each, ask, [row[np.newaxis] for row in rows])
            sides = {"spinney": ask_ours, way: ask_theirs}
            yield row_of(f"100 single rows | {way}", sides, way, target, f"off by {off:.0e}", options)


def shap(options: Any) -> Iterator[Row]:
    """Shapley values of 1,000 rows, two threads."""
    for name, pair, X in pairs(options):
        if pair.parts is None:
            continue
        rows = X[: 100 if options.quick else 1_000]
        off = np.abs(pair.ours.shap_values(rows).values - np.asarray(pair.parts(rows))[:, :-1]).max()
        sides = {"spinney": partial(pair.ours.shap_values, rows), name: partial(pair.parts, rows)}
        target = "" if name == "catboost" else ">= 10"
        yield row_of(f"Shapley values | {name}", sides, name, target, f"off by {off:.0e}", options)


def importing(options: Any) -> Iterator[Row]:
    """Import a file."""
    table = data.numbers("classifier", 20_000, 0)
    X, y = np.ascontiguousarray(table.X, dtype=np.float64), (np.asarray(table.y) > 0).astype(int)
    import spinney

    if find_spec("xgboost"):
        import xgboost

        model = xgboost.train(
            {"max_depth": 6, "nthread": N_THREADS}, xgboost.DMatrix(X, y), 50 if options.quick else 300
        )
        raw = bytes(model.save_raw("ubj"))
        seconds = [measure(lambda: spinney.from_xgboost(raw)).wall for _ in range(options.rounds)]
        yield Row(f"import of {len(raw) / 2**20:.1f} MB | xgboost", float(np.median(seconds)), rounds=seconds)


def row_of(title: str, sides: dict[str, Any], name: str, target: str, evidence: str, options: Any) -> Row:
    """Play the rounds of two sides."""
    rounds = play(sides, options.rounds)
    return beside(
        title,
        rounds,
        ours="spinney",
        peer=name,
        target=target,
        evidence=evidence,
    )


WORKLOADS = {"predict": predict, "one_row": one_row, "shap": shap, "importing": importing}


def main() -> int:
    peers = [peer for peer in ("xgboost", "lightgbm", "catboost") if find_spec(peer)]
    versions = {peer: str(import_module(peer).__version__) for peer in peers}
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args(), versions)


if __name__ == "__main__":
    sys.exit(main())
