"""AutoGluon and FLAML as contestants of studies.py, each with its default settings, a time limit and the same cores.

Each is installed in a separate environment, with ``pip install autogluon.tabular[catboost,lightgbm,xgboost]`` or
``pip install flaml[automl]``, and pandas; the rows, the held-out part and the losses are those of studies.py.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from study_tables import SEED, STUDY, TARGET, Table, evaluated, is_regression


def run(who: str, learn: Table, test: Table, given: argparse.Namespace) -> tuple[dict[str, Any], np.ndarray]:
    """Fit a contestant within the minutes; return what is recorded, and the losses by row."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        return (_autogluon if who == "autogluon" else _flaml)(learn, test, 60 * given.minutes, Path(folder))


def _frame(table: Table, is_value: bool) -> Any:
    """Return a table as a pandas frame; text columns are categories."""
    import pandas as pd

    frame = pd.DataFrame({name: pd.Series(values) for name, values in table.items()})
    for name in frame.columns:
        if frame[name].dtype == object and not (name == TARGET and is_value):
            frame[name] = frame[name].astype("category" if name != TARGET else str)
    return frame


def _autogluon(learn: Table, test: Table, seconds: float, folder: Path) -> tuple[dict[str, Any], np.ndarray]:
    from autogluon.tabular import TabularPredictor

    is_value, n_cores = is_regression(learn), len(os.sched_getaffinity(0))
    frame, start = _frame(learn, is_value), time.monotonic()
    metric = "root_mean_squared_error" if is_value else "log_loss"
    problem = "regression" if is_value else ("binary" if frame[TARGET].nunique() == 2 else "multiclass")
    model = TabularPredictor(TARGET, problem_type=problem, eval_metric=metric, path=str(folder / "model"), verbosity=0)
    model.fit(frame, time_limit=seconds, num_cpus=n_cores, num_gpus=0)
    used = time.monotonic() - start
    size = sum(file.stat().st_size for file in (folder / "model").rglob("*") if file.is_file())
    model.persist()

    def predict(X: Table) -> np.ndarray:
        rows = _frame(X, is_value)
        return np.asarray(model.predict(rows) if is_value else model.predict_proba(rows))

    losses, speed = evaluated(predict, None if is_value else np.array(model.class_labels), test)
    best = str(model.model_best)
    shutil.rmtree(folder / "model", ignore_errors=True)
    about = {"by": best, "bytes": size, "is_value": is_value, "version": version("autogluon.tabular")}
    return {"seconds": used, **about, **speed}, losses


def _flaml(learn: Table, test: Table, seconds: float, folder: Path) -> tuple[dict[str, Any], np.ndarray]:
    from flaml import AutoML

    is_value, n_cores = is_regression(learn), len(os.sched_getaffinity(0))
    frame, start = _frame(learn, is_value), time.monotonic()
    model, task = AutoML(), "regression" if is_value else "classification"
    options = {"time_budget": seconds, "metric": "mse" if is_value else "log_loss", "n_jobs": n_cores, "seed": SEED}
    model.fit(frame.drop(columns=TARGET), frame[TARGET], task=task, verbose=0, **options)
    used = time.monotonic() - start
    with (folder / "model").open("wb") as file:
        pickle.dump(model, file)
    size = (folder / "model").stat().st_size

    def predict(X: Table) -> np.ndarray:
        rows = _frame(X, is_value)
        return np.asarray(model.predict(rows) if is_value else model.predict_proba(rows))

    losses, speed = evaluated(predict, None if is_value else np.asarray(model.classes_), test)
    about = {"by": str(model.best_estimator), "bytes": size, "is_value": is_value, "version": version("flaml")}
    return {"seconds": used, **about, **speed}, losses


def show(found: list[dict[str, Any]], names: list[str]) -> None:
    """Print the results as a table of Markdown, and where the study loses."""
    print("| set | | loss ± error | time, s | model, MB | µs per row | ms of one row | best |")
    print("|---|---|---|---|---|---|---|---|")
    lost = []
    for name in names:
        of_set = {one["who"]: one for one in found if one["set"] == name}
        for who, one in of_set.items():
            print(
                f"| {name} | {who} | {one['loss']:.5g} ± {one['error']:.2g} | {one['seconds']:.0f} | "
                f"{one['bytes'] / 1e6:.1f} | {1e6 * one['seconds_per_row']:.0f} | "
                f"{1e3 * one['seconds_of_one_row']:.1f} | {one['by']} |"
            )
        if STUDY in of_set and len(of_set) > 1:
            other = min((one for who, one in of_set.items() if who != STUDY), key=lambda one: one["loss"])
            far = (of_set[STUDY]["loss"] - other["loss"]) / other["error"]
            if far > 0:
                lost.append(f"{name}: {far:+.2f} errors behind {other['who']}")
    print("The study loses on " + ("; ".join(lost) if lost else "none") + ".")
