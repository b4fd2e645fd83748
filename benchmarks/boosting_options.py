"""What options of growing and drawing do for the error of a booster, on sets of a folder (see sets.py).

Usage: ``python benchmarks/boosting_options.py --data FOLDER [--sets NAME …] [--options WORD …]
[--rows N] [--splits K]``.
Half of at most N rows are learned from; a fifth of these stops the rounds. Errors are log losses or root mean squared
errors of the other half, as ratios to a booster that draws rows alike, or grows leaf by leaf. "refit" learns from half
of these rows and sets its leaves anew by the others; its ratio is to the model before. "lightgbm lines" is LightGBM
with ``linear_tree`` and without, "beside lightgbm" ours beside that.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import sets
import spinney

SETS = "california_housing kin8nm elevators kc_house_sales electricity adult"
OPTIONS: dict[str, tuple[dict, dict]] = {
    "gradient .1": ({"subsample": 0.1}, {"subsample": 0.1, "sampling": "gradient"}),
    "gradient .2": ({"subsample": 0.2}, {"subsample": 0.2, "sampling": "gradient"}),
    "gradient .5": ({"subsample": 0.5}, {"subsample": 0.5, "sampling": "gradient"}),
    "symmetric": ({}, {"growth": "symmetric", "max_leaf_nodes": 64}),
    "parallel": ({"subsample": 0.5}, {"subsample": 0.5, "growth": {"n_parallel_trees": 4}, "n_estimators": 2000}),
    "goss": ({"subsample": 0.3}, {"sampling": {"top_rate": 0.2}, "subsample": 0.3}),
    "drops": ({}, {"dart": 0.1, "learning_rate": 0.5}),
    "few drops": ({}, {"dart": {"rate": 0.05, "skip": 0.5}, "learning_rate": 0.2}),
    "shrinkage 3": ({}, {"regularization": {"hierarchical_shrinkage": 3.0}}),
    "shrinkage 30": ({}, {"regularization": {"hierarchical_shrinkage": 30.0}}),
    "refit": ({}, {"decay": 0.5}),
    "lines": ({}, {"linear_leaves": True}),
    "lines, l2 0": ({}, {"linear_leaves": {"l2": 0.0}}),
    "few lines": ({"max_leaf_nodes": 8}, {"linear_leaves": True, "max_leaf_nodes": 8}),
    "lightgbm lines": ({"library": "lightgbm"}, {"library": "lightgbm", "linear_tree": True, "linear_lambda": 1.0}),
    "beside lightgbm": ({"library": "lightgbm", "linear_tree": True, "linear_lambda": 1.0}, {"linear_leaves": True}),
}


def error(table: sets.Table, parameters: dict, n_rows: int, seed: int, halves: bool) -> float:
    """Error of new rows."""
    rows = np.random.default_rng(seed).permutation(len(table.y))[:n_rows]
    fitted, new = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    kind = spinney.GradientBoostingClassifier if table.n_classes else spinney.GradientBoostingRegressor
    categories = np.flatnonzero(table.is_category).tolist() or None
    if "library" in parameters:
        return peer_error(table, parameters, fitted, new, seed)
    shared = {"n_estimators": 500, "early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 20}
    parameters, decay = {k: v for k, v in parameters.items() if k != "decay"}, parameters.get("decay")
    model = kind(**(shared | parameters), categorical_features=categories, random_state=seed, n_jobs=1)
    if halves:
        model.fit(table.X[fitted[::2]], table.y[fitted[::2]])
    else:
        model.fit(table.X[fitted], table.y[fitted])
    if decay is not None:
        model = model.refit(table.X[fitted[1::2]], table.y[fitted[1::2]], decay=decay)
    return error_of(model, table, new)


def peer_error(table: sets.Table, parameters: dict, fitted: np.ndarray, new: np.ndarray, seed: int) -> float:
    """Return that of LightGBM, stopped by a fifth of the rows to fit."""
    import lightgbm

    given = {name: value for name, value in parameters.items() if name != "library"}
    kind = lightgbm.LGBMClassifier if table.n_classes else lightgbm.LGBMRegressor
    model = kind(n_estimators=500, n_jobs=1, verbosity=-1, random_state=seed, **given)
    stop = np.random.default_rng(seed).permutation(len(fitted)) < len(fitted) // 5
    model.fit(
        table.X[fitted[~stop]],
        table.y[fitted[~stop]],
        eval_set=[(table.X[fitted[stop]], table.y[fitted[stop]])],
        callbacks=[lightgbm.early_stopping(20, verbose=False)],
        categorical_feature=np.flatnonzero(table.is_category).tolist() or "auto",
    )
    return error_of(model, table, new)


def error_of(model: Any, table: sets.Table, new: np.ndarray) -> float:
    """Log loss, or root mean squared error, of new rows."""
    if table.n_classes:
        shares = model.predict_proba(table.X[new])[np.arange(len(new)), table.y[new].astype(int)]
        return float(-np.mean(np.log(np.maximum(shares, 1e-15))))
    return float(np.sqrt(np.mean((model.predict(table.X[new]) - table.y[new]) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--sets", nargs="*", default=SETS.split())
    parser.add_argument("--options", nargs="*", default=list(OPTIONS))
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--splits", type=int, default=3)
    given = parser.parse_args()
    for name in given.sets:
        table = sets.load(given.data, name)
        for option in given.options:
            plain, with_it = OPTIONS[option]
            ratios = [
                error(table, with_it, given.rows, seed, option == "refit")
                / error(table, plain, given.rows, seed, option == "refit")
                for seed in range(given.splits)
            ]
            print(f"{name:20} {option:16} {np.mean(ratios):.3f}", flush=True)


if __name__ == "__main__":
    main()
