"""Shapley values beside shap's TreeExplainer, LightGBM's and XGBoost's, each on its own trees.

Usage: ``python benchmarks/shap_values.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE]``.
All models have as many trees and leaves. The evidence is how deep the leaves lie, because the peers' work grows with
that, and how far the parts are from summing to the prediction.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import data
import numpy as np
from program import command_line, run
from timing import Row, beside, median, play

Numbers = np.ndarray


@dataclass
class Side:
    """A fitted model: how it explains rows (threads, rows) and predicts them, and the mean depth of its leaves."""

    explain: Callable[[int, Numbers], Numbers]  # without the base value
    total: Callable[[Numbers], Numbers]  # prediction less base value
    depth: float


def spinney_side(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    import spinney

    model = spinney.RandomForestRegressor(
        n_estimators=n_trees, max_leaf_nodes=leaves, max_features=1 / 3, random_state=0
    ).fit(X, y)
    trees = [model.forest_.tree(t) for t in range(n_trees)]
    depth = float(np.mean(np.concatenate([tree.depth[tree.is_leaf] for tree in trees])))
    base = model.shap_values(X[:1]).base_value
    return Side(
        lambda n, rows: model.set_params(n_jobs=n).shap_values(rows).values, lambda r: model.predict(r) - base, depth
    )


def shap_side(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    """One thread: the package knows no other."""
    import shap
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(
        n_estimators=n_trees, max_leaf_nodes=leaves, max_features=1 / 3, random_state=0, n_jobs=2
    ).fit(X, y)
    explainer = shap.TreeExplainer(model)
    base = float(np.ravel(explainer.expected_value)[0])

    def explain(n_threads: int, rows: Numbers) -> Numbers:
        return np.asarray(explainer.shap_values(rows, check_additivity=False))

    depth = float(np.mean([leaf_depth(t.tree_.children_left, t.tree_.children_right) for t in model.estimators_]))
    return Side(explain, lambda rows: model.predict(rows) - base, depth)


def lightgbm_side(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    import lightgbm

    options = {
        "boosting": "rf", "num_leaves": leaves or 100_000, "min_data_in_leaf": 1 if leaves is None else 20,
        "bagging_freq": 1, "bagging_fraction": 0.63, "feature_fraction_bynode": 1 / 3, "verbose": -1, "num_threads": 2,
    }  # fmt: skip
    model = lightgbm.train(options, lightgbm.Dataset(X, y), n_trees)

    def explain(n_threads: int, rows: Numbers) -> Numbers:
        return np.asarray(model.predict(rows, pred_contrib=True, num_threads=n_threads))[:, :-1]

    frame = model.trees_to_dataframe()
    depth = float(frame.loc[frame["left_child"].isna(), "node_depth"].mean()) - 1
    base = np.asarray(model.predict(X[:1], pred_contrib=True))[0, -1]
    # it sums the parts over the trees, where the prediction is the mean
    return Side(explain, lambda rows: n_trees * np.asarray(model.predict(rows)) - base, depth)


def xgboost_side(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    options = {
        "num_parallel_tree": n_trees, "max_leaves": leaves or 0, "max_depth": 0, "grow_policy": "lossguide",
        "subsample": 0.63, "colsample_bynode": 1 / 3, "learning_rate": 1, "lambda": 0, "nthread": 2,
    }  # fmt: skip
    return xgboost_of(options, X, y, 1)


def xgboost_of(options: dict[str, Any], X: Numbers, y: Numbers, n_rounds: int) -> Side:
    import xgboost

    model = xgboost.train(options, xgboost.DMatrix(X, y), n_rounds)

    def explain(n_threads: int, rows: Numbers) -> Numbers:
        model.set_param({"nthread": n_threads})
        return model.predict(xgboost.DMatrix(rows, nthread=n_threads), pred_contribs=True)[:, :-1]

    text = "".join(model.get_dump())
    depths = [len(line) - len(line.lstrip("\t")) for line in text.splitlines() if ":leaf=" in line]
    base = model.predict(xgboost.DMatrix(X[:1]), pred_contribs=True)[0, -1]
    return Side(explain, lambda rows: model.predict(xgboost.DMatrix(rows)) - base, float(np.mean(depths)))


# ---- sums of trees ----------------------------------------------------------------------------------------


def boosted_spinney(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    import spinney

    model = spinney.GradientBoostingRegressor(n_estimators=n_trees, max_leaf_nodes=leaves).fit(X, y)
    depth = np.mean([tree.depth()[tree.feature < 0].mean() for tree in model.boosting_.trees()])
    base = model.shap_values(X[:1]).base_value
    return Side(
        lambda n, rows: model.set_params(n_jobs=n).shap_values(rows).values,
        lambda rows: model.predict(rows) - base,
        float(depth),
    )


def boosted_shap(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    """One thread: the package knows no other."""
    import shap
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=leaves, early_stopping=False).fit(X, y)
    explainer = shap.TreeExplainer(model)
    base = float(np.ravel(explainer.expected_value)[0])

    def explain(n_threads: int, rows: Numbers) -> Numbers:
        return np.asarray(explainer.shap_values(rows, check_additivity=False))

    nodes = [predictor[0].nodes for predictor in model._predictors]
    depth = float(np.mean([n["depth"][n["is_leaf"] == 1].mean() for n in nodes]))
    return Side(explain, lambda rows: model.predict(rows) - base, depth)


def boosted_lightgbm(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    import lightgbm

    options = {"num_leaves": leaves, "min_data_in_leaf": 20, "verbose": -1, "num_threads": 2}
    model = lightgbm.train(options, lightgbm.Dataset(X, y), n_trees)

    def explain(n_threads: int, rows: Numbers) -> Numbers:
        return np.asarray(model.predict(rows, pred_contrib=True, num_threads=n_threads))[:, :-1]

    frame = model.trees_to_dataframe()
    depth = float(frame.loc[frame["left_child"].isna(), "node_depth"].mean()) - 1
    base = np.asarray(model.predict(X[:1], pred_contrib=True))[0, -1]
    return Side(explain, lambda rows: np.asarray(model.predict(rows)) - base, depth)


def boosted_xgboost(X: Numbers, y: Numbers, n_trees: int, leaves: int | None) -> Side:
    options = {"max_leaves": leaves, "max_depth": 0, "grow_policy": "lossguide", "learning_rate": 0.1, "nthread": 2}
    return xgboost_of(options, X, y, n_trees)


def leaf_depth(left: Numbers, right: Numbers) -> float:
    depth = np.zeros(len(left))
    for node in np.flatnonzero(left >= 0):
        depth[left[node]] = depth[right[node]] = depth[node] + 1
    return float(depth[left < 0].mean())


FORESTS = {"spinney": spinney_side, "shap": shap_side, "lightgbm": lightgbm_side, "xgboost": xgboost_side}
SUMS = {"spinney": boosted_spinney, "shap": boosted_shap, "lightgbm": boosted_lightgbm, "xgboost": boosted_xgboost}


def compared(
    name: str,
    n_train: int,
    n_rows: int,
    size: tuple[int, int | None],
    target: str,
    options: Any,
    makers: dict[str, Callable[..., Side]] = FORESTS,
) -> Iterator[Row]:
    table = data.numbers("regressor", n_train, 0)
    X, y = np.ascontiguousarray(table.X, dtype=np.float64), table.y
    rows = X[:n_rows]
    sides = {name: make(X, y, *size) for name, make in makers.items() if find_spec(name)}
    for n_threads in (2, 1):
        contestants = {side: partial(s.explain, n_threads, rows) for side, s in sides.items()}
        rounds = play(contestants, options.rounds)
        fastest = min((s for s in sides if s != "spinney"), key=lambda s: median(rounds, s))
        for peer in sides:
            if peer == "spinney":
                continue
            ours, theirs = sides["spinney"], sides[peer]
            errors = [np.abs(s.explain(2, rows[:50]).sum(axis=1) - s.total(rows[:50])).max() for s in (ours, theirs)]
            yield beside(
                f"{name}, n_jobs={n_threads} | {peer}",
                rounds,
                ours="spinney",
                peer=peer,
                target=target if peer == fastest else "",
                evidence=f"leaf depth {ours.depth:.1f} | {theirs.depth:.1f}, off by {errors[0]:.0e} | {errors[1]:.0e}",
            )


def small_trees(options: Any) -> Iterator[Row]:
    """100 trees of 31 leaves, 5,000 rows."""
    yield from compared("31 leaves", 20_000, 200 if options.quick else 5_000, (100, 31), ">= 3", options)


def boosted(options: Any) -> Iterator[Row]:
    """100 rounds of 31 leaves, 5,000 rows."""
    yield from compared("boosted, 31 leaves", 20_000, 200 if options.quick else 5_000, (100, 31), ">= 3", options, SUMS)


def one_row(options: Any) -> Iterator[Row]:
    """One row of the same forest, the whole call."""
    yield from compared("31 leaves, one row", 20_000, 1, (100, 31), "", options)


def deep_trees(options: Any) -> Iterator[Row]:
    """10 trees grown until leaves are pure, few rows."""
    yield from compared("to the end", 5_000, 5 if options.quick else 50, (10, None), "", options)


WORKLOADS = {"boosted": boosted, "small_trees": small_trees, "one_row": one_row, "deep_trees": deep_trees}


def main() -> int:
    # asked of the module: a package may come under another name, such as xgboost-cpu
    peers = [peer for peer in FORESTS if peer != "spinney" and find_spec(peer)]
    versions = {peer: str(import_module(peer).__version__) for peer in peers}
    return run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args(), versions)


if __name__ == "__main__":
    sys.exit(main())
