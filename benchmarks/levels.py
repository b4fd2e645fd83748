"""Simulations of error levels and coverage: what the tests and intervals of comparisons and studies promise.

Usage: ``python benchmarks/levels.py [NAME…] [--draws 200]``. Each simulation draws tables whose truth is known, and
prints how often a test rejects or an interval covers, with its binomial standard error, beside the promised level.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import spinney
from sklearn.base import BaseEstimator, RegressorMixin


class Level(NamedTuple):
    """How often something happened in the draws, and how often it should."""

    what: str
    rate: float
    promised: str  # as text


class Noise(RegressorMixin, BaseEstimator):
    """The mean of the target with random noise: all seeds are equally good."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> Noise:
        """Store the mean, and a generator that depends on the training rows."""
        self.mean_ = float(np.mean(y))
        self.random_ = np.random.default_rng([self.seed, int(1e6 * abs(float(np.sum(y))))])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predict the mean with noise of a third of the target's standard deviation."""
        return self.mean_ + self.random_.normal(size=len(X)) / 3


def choosing(draws: int, seed: int = 7) -> Iterator[Level]:
    """Compare equally good models with the best of them, and count how often any is found worse."""
    for n_models in (2, 8, 20):
        rng, rejected, named = np.random.default_rng(seed), [], []
        for draw in range(draws):
            X, y = rng.normal(size=(60, 1)), rng.normal(size=60)
            models = {f"model {k}": Noise(k) for k in range(n_models)}
            found = spinney.compare(models, X, y, scoring="r2", baseline=False, random_state=draw, verbose=0)
            for reference, rates in ((None, rejected), ("model 0", named)):
                gaps = found.differences(reference)
                rates.append(np.nanmin([gap.p_holm for gap in gaps.values()]) < 0.05)
        yield Level(f"{n_models} equal models, best as reference: any p < 0.05", float(np.mean(rejected)), "≤ 0.05")
        yield Level(f"{n_models} equal models, reference named: any p < 0.05", float(np.mean(named)), "≤ 0.05")


SIMULATIONS: dict[str, Callable[[int], Iterator[Level]]] = {"choosing": choosing}


def main() -> None:
    """Run the simulations that were named, and print a line for each level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*SIMULATIONS, []], help="simulations; none: all")
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    for name in options.names or SIMULATIONS:
        for level in SIMULATIONS[name](options.draws):
            error = np.sqrt(level.rate * (1 - level.rate) / options.draws)
            print(
                f"{name:10s} {level.what:64s} {level.rate:.3f} ± {error:.3f}  (promised {level.promised})", flush=True
            )


if __name__ == "__main__":
    main()
