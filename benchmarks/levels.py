"""Simulations of error levels and coverage: of the tests and intervals of comparisons and studies.

Usage: ``python benchmarks/levels.py [NAME…] [--draws 200]``. Each simulation draws tables whose truth is known, and
prints how often a test rejects or an interval covers, with its binomial standard error, beside the nominal level.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from spinney._evaluate.scoring import Scorers, read_metrics
from spinney._evaluate.statistics import paired_differences


class Level(NamedTuple):
    """How often something happened in the draws, and how often it should."""

    what: str
    rate: float
    nominal: str


def choosing(draws: int, seed: int = 7) -> Iterator[Level]:
    """Compare equal models with the best of them, or with one named in advance; count those with any difference.

    Scores of 10 folds are normal, and those of one model are correlated as the corrected resampled t-test assumes.
    """
    test_ratio, rng = 0.25, np.random.default_rng(seed)
    correlation = test_ratio / (1 + test_ratio)
    for n_models in (2, 8, 20):
        found: dict[str, list[bool]] = {"best as reference": [], "reference named": []}
        for _ in range(draws):
            own = np.sqrt(correlation) * rng.normal(size=(n_models, 1))
            scores = own + np.sqrt(1 - correlation) * rng.normal(size=(n_models, 10))
            best = int(scores.mean(axis=1).argmax())
            for (how, rejected), reference in zip(found.items(), (best, 0), strict=True):
                gaps = paired_differences(scores, reference, test_ratio, is_best=how == "best as reference")
                rejected.append(bool(np.nanmin([gap.p_holm for gap in gaps]) < 0.05))
        for how, rejected in found.items():
            yield Level(f"{n_models} equal models, {how}: any p < 0.05", float(np.mean(rejected)), "at most 0.05")


def intervals(draws: int, seed: int = 8) -> Iterator[Level]:
    """Score the true model on test sets; count the 95% intervals that hold the score of a very large one."""
    rng = np.random.default_rng(seed)
    metrics = {
        "binary": ["accuracy", "neg_log_loss", "roc_auc", "f1"],
        "regression": ["neg_root_mean_squared_error", "r2"],
    }
    for task, names in metrics.items():
        classes = np.array([0, 1]) if task == "binary" else None
        scorers = Scorers(read_metrics(names, classes), classes)
        truth = scorers.scores(*_test_set(task, 1_000_000, None, rng)[:2])
        for n_rows, n_groups in ((40, None), (100, None), (1000, None), (1000, 30)):
            covered: dict[str, list[bool]] = {name: [] for name in names}
            for draw in range(draws):
                predictions, y, groups = _test_set(task, n_rows, n_groups, rng)
                for name in names:
                    score = scorers.with_interval(name, predictions, y, draw, groups)
                    covered[name].append(score.low <= truth[name] <= score.high)
            rows = f"{n_rows} rows" + (f" in {n_groups} groups" if n_groups else "")
            for name in names:
                yield Level(f"{name} of {rows}: interval covers", float(np.mean(covered[name])), "0.95")


def _test_set(
    task: str, n_rows: int, n_groups: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return predictions, targets and groups; rows of one group share most of what is not predicted."""
    groups = None if n_groups is None else np.arange(n_rows) % n_groups
    noise = rng.normal(size=n_rows)
    if groups is not None:
        noise = np.sqrt(0.8) * rng.normal(size=n_groups)[groups] + np.sqrt(0.2) * noise
    x = rng.normal(size=n_rows)
    if task == "regression":
        return x[:, np.newaxis], x + noise, groups
    y = (2 * x - 1 + 1.7 * noise > 0).astype(int)  # close to a logistic model
    p = 1 / (1 + np.exp(1 - 2 * x))
    return np.column_stack([1 - p, p]), y, groups


SIMULATIONS: dict[str, Callable[[int], Iterator[Level]]] = {"choosing": choosing, "intervals": intervals}


def main() -> None:
    """Run the simulations that were named, and print a line for each level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*SIMULATIONS, []], help="simulations; none: all")
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    for name in options.names or SIMULATIONS:
        for level in SIMULATIONS[name](options.draws):
            error = np.sqrt(level.rate * (1 - level.rate) / options.draws)
            print(f"{name:10s} {level.what:64s} {level.rate:.3f} ± {error:.3f}  ({level.nominal})", flush=True)


if __name__ == "__main__":
    main()
