"""Times until an event beside other libraries: concordance of rows held out, and seconds.

Boosting is compared with XGBoost's, with the same trees. Survival forests are compared with those of scikit-survival,
with the same number of trees and size of leaves, also by the integrated Brier score; `tables_of_forests` are the tables
that scikit-survival brings, with default settings of each library.

Usage: ``python benchmarks/survival.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE] [--data FOLDER]``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from program import command_line, run
from timing import Row, beside, play

_ROUNDS, _LEAVES, _RATE = 100, 8, 0.1


def simulated(n: int, is_proportional: bool, seed: int = 0) -> tuple[Any, Any]:
    """Weibull's times of ten columns, or such whose logarithms are normal; a third is censored; signed times."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    middle = 2 - X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] / 2
    chance = -rng.gumbel(size=n) if is_proportional else rng.normal(size=n)
    time, end = np.exp(middle + 0.7 * chance), rng.exponential(40, n)
    return X, np.where(time < end, time, -end)


def from_file(path: Path, time: str, event: Any, drop: tuple[str, ...] = ()) -> tuple[Any, Any]:
    """Return a table of times; words are codes."""
    import pandas as pd

    frame = pd.read_csv(path)
    is_event = event(frame)
    signed = np.where(is_event, frame[time], -frame[time]).astype(float)
    X = frame.drop(columns=[time, *drop])
    for name in X.select_dtypes(exclude="number"):
        X[name] = X[name].astype("category").cat.codes.where(X[name].notna())
    return X.to_numpy(dtype=np.float32), signed


def _ours(X: Any, times: Any, loss: str) -> Any:
    import spinney

    model = spinney.GradientBoostingSurvival(
        loss, n_estimators=_ROUNDS, max_leaf_nodes=_LEAVES, learning_rate=_RATE, n_jobs=2
    )
    return model.fit(X, times)


def _xgboost(X: Any, times: Any, loss: str) -> Any:
    import xgboost

    shape = {
        "max_leaves": _LEAVES, "learning_rate": _RATE, "max_bin": 256, "tree_method": "hist", "max_depth": 0,
        "grow_policy": "lossguide", "nthread": 2, "verbosity": 0,
    }  # fmt: skip
    if loss == "cox":
        table = xgboost.DMatrix(X, label=times)
        return xgboost.train(shape | {"objective": "survival:cox"}, table, _ROUNDS)
    table = xgboost.DMatrix(X)
    table.set_float_info("label_lower_bound", np.abs(times))
    table.set_float_info("label_upper_bound", np.where(times > 0, times, np.inf))
    chosen = {"objective": "survival:aft", "aft_loss_distribution": "normal", "aft_loss_distribution_scale": 1.0}
    return xgboost.train(shape | chosen, table, _ROUNDS)


def _concordance(model: Any, X: Any, times: Any, loss: str) -> float:
    import xgboost
    from spinney import _engine

    found = model.predict(xgboost.DMatrix(X)) if isinstance(model, xgboost.Booster) else model.predict(X)
    expected = np.asarray(found, dtype=np.float64) * (-1 if loss == "cox" else 1)
    return float(_engine.concordance(np.abs(times), np.where(times > 0, times, np.inf), expected, None))


def _compared(label: str, X: Any, times: Any, loss: str, options: argparse.Namespace, n_splits: int) -> Row:
    """Mean concordance over splits of half the rows; seconds of the first split."""
    found: dict[str, list[float]] = {"ours": [], "xgboost": []}
    makers = {"ours": _ours, "xgboost": _xgboost}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(X))
        learned, held = order[: len(X) // 2], order[len(X) // 2 :]
        for name, make in makers.items():
            model = make(X[learned], times[learned], loss)
            found[name].append(_concordance(model, X[held], times[held], loss))
    rounds = play({name: partial(make, X, times, loss) for name, make in makers.items()}, options.rounds)
    ours, theirs = (float(np.mean(found[name])) for name in makers)
    more = np.subtract(found["ours"], found["xgboost"])
    error = float(np.std(more, ddof=1) / np.sqrt(len(more))) if len(more) > 1 else 0.0
    return beside(
        f"{label}, {loss}",
        rounds,
        peer="xgboost",
        target=">= 0",
        target_value=round(ours - theirs + error, 3),
        evidence=f"concordance {ours:.4f} | {theirs:.4f}: {ours - theirs:+.4f} ± {error:.4f}",
    )


def synthetic(options: argparse.Namespace) -> Iterator[Row]:
    """Weibull's times, whose hazards are proportional, and log-normal ones, whose are not; many rows and few."""
    n = 2_000 if options.quick else 50_000
    for label, is_proportional in (("Weibull", True), ("log-normal", False)):
        for loss in ("cox", "aft"):
            yield _compared(f"{label}, {n // 1000}k x 10", *simulated(n, is_proportional), loss, options, 1)
            few = simulated(300, is_proportional, seed=5)
            yield _compared(f"{label}, 300 x 10", *few, loss, options, 5 if options.quick else 30)


def tables(options: argparse.Namespace) -> Iterator[Row]:
    """Stage C prostate cancer and primary biliary cirrhosis, means of 30 splits."""
    if options.data is None:
        return
    sets = {
        "stagec": from_file(options.data / "stagec.csv", "pgtime", lambda f: f["pgstat"] == 1, ("pgstat", "progstat")),
        "pbc": from_file(
            options.data / "pbc.csv", "time", lambda f: f["status"].astype(str).isin(["2", "dead"]), ("status",)
        ),
    }
    for name, (X, times) in sets.items():
        for loss in ("cox", "aft"):
            yield _compared(name, X, times, loss, options, 5 if options.quick else 30)


# ---- forests -------------------------------------------------------------------------------------------------------

_TREES, _LEAF = 100, 10


def _our_forest(kind: str, X: Any, times: Any, **parameters: Any) -> Any:
    import spinney

    return getattr(spinney, kind)(_TREES, random_state=0, n_jobs=2, **parameters).fit(X, times)


def _their_forest(kind: str, X: Any, times: Any, **parameters: Any) -> Any:
    from sksurv import ensemble

    target = np.array(list(zip(times > 0, np.abs(times), strict=True)), dtype=[("event", bool), ("time", float)])
    return getattr(ensemble, kind)(_TREES, random_state=0, n_jobs=2, **parameters).fit(X, target)


def _scores(model: Any, X: Any, times: Any, training_times: Any) -> tuple[float, float]:
    """Return the concordance and the integrated Brier score."""
    import spinney

    at = np.unique(np.quantile(np.abs(training_times), np.linspace(0.1, 0.8, 15)))
    if type(model).__module__.startswith("spinney"):
        curves = model.predict_survival_function(X, at)
    else:
        curves = np.array([curve(at) for curve in model.predict_survival_function(X)])
    brier = spinney.integrated_brier_score(training_times, times, curves, at)
    return spinney.concordance_index(times, model.predict(X)), brier


def _forests(label: str, X: Any, times: Any, options: argparse.Namespace, n_splits: int, shape: dict[str, Any]) -> Row:
    """Mean scores over splits of two thirds of the rows; seconds of a fit to all rows."""
    kind, theirs = shape.pop("kind", ("RandomSurvivalForest", "RandomSurvivalForest"))
    makers = {"ours": partial(_our_forest, kind, **shape), "scikit-survival": partial(_their_forest, theirs, **shape)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(X))
        learned, held = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
        for name, make in makers.items():
            model = make(X[learned], times[learned])
            found[name].append(_scores(model, X[held], times[held], times[learned]))
    rounds = play({name: partial(make, X, times) for name, make in makers.items()}, options.rounds)
    (ours, our_brier), (peer, peer_brier) = (np.mean(found[name], axis=0) for name in makers)
    more = np.subtract(found["ours"], found["scikit-survival"])[:, 0]
    error = float(np.std(more, ddof=1) / np.sqrt(len(more))) if len(more) > 1 else 0.0
    return beside(
        label,
        rounds,
        peer="scikit-survival",
        target=">= 0",
        target_value=round(float(ours - peer) + error, 3),
        evidence=f"concordance {ours:.4f} | {peer:.4f}, integrated Brier score {our_brier:.4f} | {peer_brier:.4f}",
    )


def forests(options: argparse.Namespace) -> Iterator[Row]:
    """Random forests and extra-trees of the same shape, on Weibull's and log-normal times."""
    n = 300 if options.quick else 2_000
    shape: dict[str, Any] = {"min_samples_leaf": _LEAF, "max_features": "sqrt"}
    for label, is_proportional in (("Weibull", True), ("log-normal", False)):
        X, times = simulated(n, is_proportional)
        for kind in (("RandomSurvivalForest", "RandomSurvivalForest"), ("ExtraSurvivalTrees", "ExtraSurvivalTrees")):
            yield _forests(f"{label}, {n} x 10, {kind[0]}", X, times, options, 2, shape | {"kind": kind})


def tables_of_forests(options: argparse.Namespace) -> Iterator[Row]:
    """Tables of scikit-survival with the default settings of each library, numbers and codes of categories."""
    from sksurv import datasets

    for name in ("veterans_lung_cancer", "gbsg2", "whas500", "aids"):
        frame, target = getattr(datasets, f"load_{name}")()
        for column in frame.select_dtypes(exclude="number"):
            frame[column] = frame[column].astype("category").cat.codes
        event, time = (target[field] for field in target.dtype.names)
        times = np.where(event, 1, -1) * np.maximum(time.astype(float), 0.5)
        X = frame.to_numpy(dtype=np.float32)
        yield _forests(f"{name}, {len(X)} x {X.shape[1]}", X, times, options, 3 if options.quick else 10, {})


WORKLOADS = {
    "synthetic": synthetic,
    "tables": tables,
    "forests": forests,
    "tables_of_forests": tables_of_forests,
}

if __name__ == "__main__":
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="stagec.csv and pbc.csv: tables")
    sys.exit(run(WORKLOADS, parser.parse_args()))
