"""Distributions for each row: likelihood, CRPS and time beside NGBoost, LightGBMLSS and one distribution for all rows.

Usage: ``python benchmarks/distributions.py FOLDER [--sets NAME:LOSS …] [--rows N] [--spinney-only]``, with a folder as
`sets.py` describes. Half of the rows of each set, at most N in all, are the training set, the others the test set.
spinney has default settings. The others stop early on a fifth of the training rows: NGBoost after at most 2,000 rounds
with a learning rate of 0.03, LightGBMLSS after at most 1,000 rounds with 0.05. All are evaluated by the same formulas.
Libraries that are not installed, or that have no such distribution, are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import spinney
from sets import Table, load, seed_of
from spinney._model.distributions import DISTRIBUTIONS

CASES = (
    ("airfoil", "normal"),
    ("abalone", "student_t"),
    ("kc_house_sales", "log_normal"),
    ("california_housing", "gamma_distribution"),
    ("bike_sharing", "negative_binomial"),
    ("rpart_solder", "zero_inflated_poisson"),
    ("kin8nm", "beta"),
)


def target_of(table: Table, loss: str) -> Any:
    """Return the target as the distribution needs it: positive, whole, or above 0 and below 1."""
    y = table.y.astype(np.float64)
    if loss in ("log_normal", "gamma_distribution"):
        return y / y.mean()
    if loss == "beta":
        return (y - y.min() + 0.01 * np.ptp(y)) / (1.02 * np.ptp(y))
    return y


def of_spinney(loss: str, X: Any, y: Any, X_test: Any, categories: Any) -> Any:
    model = spinney.GradientBoostingRegressor(loss, categorical_features=categories).fit(X, y)
    return model.predict_distribution(X_test)


def of_ngboost(loss: str, X: Any, y: Any, X_test: Any, _: Any) -> Any:
    from ngboost import NGBRegressor
    from ngboost.distns import Gamma, LogNormal, Normal

    kinds = {"normal": Normal, "log_normal": LogNormal, "gamma_distribution": Gamma}
    n_held_out = len(y) // 5
    model = NGBRegressor(Dist=kinds[loss], n_estimators=2000, learning_rate=0.03, verbose=False, random_state=0)
    X, X_test = np.nan_to_num(X), np.nan_to_num(X_test)
    held_out = {"X_val": X[:n_held_out], "Y_val": y[:n_held_out], "early_stopping_rounds": 50}
    model.fit(X[n_held_out:], y[n_held_out:], **held_out)
    found = model.pred_dist(X_test, max_iter=model.best_val_loss_itr).params
    if loss == "normal":
        return DISTRIBUTIONS[loss](found["loc"], found["scale"])
    if loss == "log_normal":
        return DISTRIBUTIONS[loss](np.log(found["scale"]), found["s"])
    return DISTRIBUTIONS[loss](found["alpha"] / found["beta"], found["alpha"])


def of_lightgbmlss(loss: str, X: Any, y: Any, X_test: Any, categories: Any) -> Any:
    import lightgbm
    from lightgbmlss.distributions import ZIPoisson
    from lightgbmlss.distributions.Beta import Beta
    from lightgbmlss.distributions.Gamma import Gamma
    from lightgbmlss.distributions.Gaussian import Gaussian
    from lightgbmlss.distributions.LogNormal import LogNormal
    from lightgbmlss.distributions.NegativeBinomial import NegativeBinomial
    from lightgbmlss.distributions.StudentT import StudentT
    from lightgbmlss.model import LightGBMLSS

    kinds: dict[str, Callable[[], Any]] = {
        "normal": Gaussian,
        "log_normal": LogNormal,
        "gamma_distribution": Gamma,
        "student_t": StudentT,
        "negative_binomial": NegativeBinomial,
        "beta": Beta,
        "zero_inflated_poisson": ZIPoisson.ZIPoisson,
    }
    n_held_out = len(y) // 5
    names = np.flatnonzero(categories).tolist()
    train, held_out = (
        lightgbm.Dataset(X[rows], y[rows], categorical_feature=names, free_raw_data=False)
        for rows in (slice(n_held_out, None), slice(n_held_out))
    )
    model = LightGBMLSS(kinds[loss]())
    options = {"learning_rate": 0.05, "num_leaves": 31, "verbosity": -1, "num_threads": 2}
    model.train(options, train, 1000, valid_sets=[held_out], callbacks=[lightgbm.early_stopping(50, verbose=False)])
    found = {name: column.to_numpy(float) for name, column in model.predict(X_test, pred_type="parameters").items()}
    kind = DISTRIBUTIONS[loss]
    if loss == "student_t":
        return kind(found["loc"], found["scale"], np.maximum(found["df"], 2 + 1e-9))
    if loss == "gamma_distribution":
        return kind(found["concentration"] / found["rate"], found["concentration"])
    if loss == "negative_binomial":
        probability = found["probs"]
        return kind(found["total_count"] * probability / (1 - probability), found["total_count"])
    if loss == "beta":
        total = found["concentration1"] + found["concentration0"]
        return kind(found["concentration1"] / total, total)
    if loss == "zero_inflated_poisson":
        return kind(found["rate"], found["gate"])
    return kind(found["loc"], found["scale"])


def for_all_rows(loss: str, X: Any, y: Any, X_test: Any, _: Any) -> Any:
    """Return the distribution of least loss that does not depend on the columns."""
    start = spinney._engine.loss_start(loss, 1.0, y, np.ones(len(y)), None, len(DISTRIBUTIONS[loss].score_names))
    return DISTRIBUTIONS[loss].of_scores(np.tile(start, (len(X_test), 1)))


LIBRARIES = {"spinney": of_spinney, "NGBoost": of_ngboost, "LightGBMLSS": of_lightgbmlss, "one for all": for_all_rows}


def main() -> None:
    """Print a row for each set and library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of sets")
    parser.add_argument("--sets", nargs="*", help="sets with their distributions, such as airfoil:normal")
    parser.add_argument("--rows", type=int, default=4000, help="most rows of a set")
    parser.add_argument("--spinney-only", action="store_true", help="without the other libraries")
    options = parser.parse_args()
    cases = [tuple(one.split(":")) for one in options.sets] if options.sets else CASES
    print("set, distribution | library | negative log-likelihood | CRPS | coverage of 90 % | seconds", flush=True)
    for name, loss in cases:
        table = load(options.folder, name)
        order = seed_of(name, 1).permutation(len(table.y))[: options.rows]
        half = len(order) // 2
        y, train, test = target_of(table, loss), order[:half], order[half:]
        for library, fit in LIBRARIES.items():
            if options.spinney_only and library in ("NGBoost", "LightGBMLSS"):
                continue
            began = time.perf_counter()
            try:
                with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                    warnings.simplefilter("ignore")
                    found = fit(loss, table.X[train], y[train], table.X[test], table.is_category)
            except (ImportError, KeyError):
                continue
            seconds = time.perf_counter() - began
            nll, crps = -found.log_likelihood(y[test]).mean(), found.crps(y[test]).mean()
            low, high = found.quantile([0.05, 0.95]).T
            covered = np.mean((low <= y[test]) & (y[test] <= high))
            print(f"{name}, {loss} | {library} | {nll:.4f} | {crps:.4g} | {covered:.1%} | {seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
