"""Speed of users' own split criteria, beside the built-in squared error and scikit-learn's.

Usage: ``python benchmarks/criteria.py [--quick] [--rounds N]``. Needs a C compiler, ``cc`` or $CC.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import spinney
from models import Score, compare, evaluate, make
from timing import HEADER, Row, beside, environment, play_round

SOURCE = r"""
#include <stdint.h>

double evaluate(const double *y, const double *w, intptr_t n, double *value, void *user_data) {
  double weight = 0, sum = 0, risk = 0;
  for (intptr_t i = 0; i < n; ++i) { weight += w[i]; sum += w[i] * y[i]; }
  value[0] = sum / weight;
  for (intptr_t i = 0; i < n; ++i) risk += w[i] * (y[i] - value[0]) * (y[i] - value[0]);
  return risk;
}

void split(const double *y, const double *w, intptr_t n, double *goodness, void *user_data) {
  double weight = 0, sum = 0, wl = 0, sl = 0;
  for (intptr_t i = 0; i < n; ++i) { weight += w[i]; sum += w[i] * y[i]; }
  for (intptr_t i = 0; i + 1 < n; ++i) {
    wl += w[i];
    sl += w[i] * y[i];
    const double d = sl * weight - sum * wl;
    goodness[i] = d * d / (weight * wl * (weight - wl));
  }
}
"""


class Squares(spinney.Criterion):
    """The same in NumPy."""

    def evaluate(self, y: Any, weight: Any) -> Any:
        """Mean and squared errors."""
        mean = np.average(y, weights=weight)
        return mean, np.sum(weight * (y - mean) ** 2)

    def split(self, y: Any, weight: Any, x: Any, is_category: bool) -> Any:
        """Decrease of the squared errors."""
        w, s = np.cumsum(weight), np.cumsum(weight * y)
        return (s[:-1] * w[-1] - s[-1] * w[:-1]) ** 2 / (w[-1] * w[:-1] * (w[-1] - w[:-1]))


def compiled(folder: Path) -> spinney.CompiledCriterion:
    (folder / "squares.c").write_text(SOURCE)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O3", "-shared", "-fPIC", "squares.c", "-o", "squares.so"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "squares.so"))
    return spinney.CompiledCriterion(
        spinney.CompiledCriterion.EVALUATE(("evaluate", library)), spinney.CompiledCriterion.SPLIT(("split", library))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows: to see that it works, not to claim")
    parser.add_argument("--rounds", type=int, default=3, help="rounds behind each median")
    options = parser.parse_args()
    n_rows = 5_000 if options.quick else 50_000
    print(", ".join(f"{name} {value}" for name, value in environment().items()))
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        criterion = compiled(Path(folder))
        models = {
            "compiled, n_jobs=2": make("spinney", "regressor", 2, criterion=criterion),
            "compiled, n_jobs=1": make("spinney", "regressor", 1, criterion=criterion),
            "Python object": make("spinney", "regressor", 1, criterion=Squares()),
            "built-in, n_jobs=1": make("spinney", "regressor", 1),
            "scikit-learn": make("sklearn", "regressor"),
        }
        played, scores = [], {name: [] for name in models}
        for number in range(options.rounds):
            table = ten_columns(n_rows, number)
            fits = {name: partial(model.fit, table.X, table.y) for name, model in models.items()}
            played.append(play_round(fits, number))
            for name, model in models.items():
                scores[name].append(evaluate("regressor", table, model))
    for name in models:
        for peer in ("built-in, n_jobs=1", "scikit-learn"):
            if name not in (peer, "scikit-learn"):
                print(row(f"{name} | {peer}", name, peer, played, scores), flush=True)


def ten_columns(n_rows: int, seed: int) -> data.Split:
    table = data.numbers("regressor", n_rows, seed)
    return data.Split(table.X[:, :10], table.y, table.X_test[:, :10], table.y_test)


def row(label: str, name: str, peer: str, played: Any, scores: dict[str, list[Score]]) -> Row:
    evidence, no_worse = compare("regressor", scores[name], scores[peer])
    return beside(
        label,
        played,
        ours=name,
        peer=peer,
        evidence=evidence,
        same_work=no_worse,
    )


if __name__ == "__main__":
    main()
