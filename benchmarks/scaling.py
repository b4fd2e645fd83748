"""Time against the number of threads, for every family, and for LightGBM and scikit-learn where they do the same work.

Usage: ``python benchmarks/scaling.py [WORKLOAD …] [--threads N …] [--picture FILE] [--quick] [--rounds N]
[--json FILE]``. A row is for one number of threads: the seconds of one thread, as `peer`, next to those of all, and
their ratio. Rows with a peer's name compare with that peer on the same number of threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import data
import numpy as np
from boosters import Booster, Task, versions
from program import command_line, run
from timing import Row, beside, median, play

Contestant = Callable[[int], Any]  # number of threads → the work
speed_ups: dict[str, dict[int, float]] = {}  # of the rows so far, for the picture


def rows_of(name: str, ours: Contestant, options: Any, peers: Mapping[str, Contestant] | None = None) -> Iterator[Row]:
    """Time each number of threads in turn, peers next to ours."""
    makers = {"spinney": ours, **(peers or {})}
    contestants = {(who, n): partial(make, n) for who, make in makers.items() for n in options.threads}
    rounds = play(contestants, options.rounds)
    for who in makers:
        base = median(rounds, (who, options.threads[0]))
        speed_ups[f"{name}, {who}"] = {n: base / median(rounds, (who, n)) for n in options.threads}
    for n in options.threads[1:]:
        yield beside(f"{name}, {n} threads", rounds, ours=("spinney", n), peer=("spinney", options.threads[0]))
    for who in peers or {}:
        for n in options.threads:
            yield beside(f"{name}, {n} threads, {who}", rounds, ours=("spinney", n), peer=(who, n))


def boosting(name: str, n_rows: int, n_rounds: int, n_leaves: int, options: Any, n_columns: int = 0) -> Iterator[Row]:
    table = data.numbers("classifier", n_rows // (50 if options.quick else 1), 0, 1000)
    X = (
        table.X
        if not n_columns
        else np.random.default_rng(0).standard_normal((len(table.y), n_columns), dtype=np.float32)
    )

    def of(library: str) -> Contestant:
        return lambda n: Booster(library, Task("classifier", n_rounds, n_leaves, n)).fit(X, table.y)

    peers = {"lightgbm quantised": of("lightgbm quantised")} if find_spec("lightgbm") else {}
    return rows_of(name, of("spinney"), options, peers)


def forest(options: Any, ours: str = "RandomForestClassifier", n_trees: int = 64) -> Iterator[Row]:
    import spinney
    from sklearn import ensemble

    table = data.numbers("classifier", 4_000 if options.quick else 200_000, 0, 1000)

    def of(module: Any) -> Contestant:
        more = {"shrinkage": None} if module is spinney else {}
        return lambda n: getattr(module, ours)(n_estimators=n_trees, n_jobs=n, random_state=0, **more).fit(
            table.X, table.y
        )

    return rows_of(ours, of(spinney), options, {"scikit-learn": of(ensemble)})


def single(options: Any) -> Iterator[Row]:
    """One exact tree, AdaBoost, k-NN, an SVM; predictions and Shapley values of ensembles."""
    import spinney

    factor = 50 if options.quick else 1
    large, small = (data.numbers("classifier", n // factor, 0, 100_000 // factor) for n in (200_000, 12_000))
    booster = spinney.GradientBoostingClassifier(n_estimators=100, max_leaf_nodes=31).fit(large.X, large.y)
    trees = spinney.RandomForestClassifier(n_estimators=100, shrinkage=None).fit(small.X, small.y)
    neighbours = spinney.KNeighborsClassifier().fit(large.X, large.y)
    some = large.X_test[: 10_000 // factor]
    works: dict[str, Contestant] = {
        "exact tree": lambda n: spinney.DecisionTreeClassifier(n_jobs=n).fit(large.X, large.y),
        "AdaBoost, 50 stumps": lambda n: spinney.AdaBoostClassifier(n_estimators=50, n_jobs=n).fit(large.X, large.y),
        "SVC": lambda n: spinney.SVC(n_jobs=n).fit(small.X, small.y),
        "k-NN, predict": lambda n: neighbours.set_params(n_jobs=n).predict(some),
        "forest, predict": lambda n: trees.set_params(n_jobs=n).predict_proba(large.X_test),
        "booster, predict": lambda n: booster.set_params(n_jobs=n).predict_proba(large.X_test),
        "booster, Shapley values": lambda n: booster.set_params(n_jobs=n).shap_values(some),
    }
    for name, work in works.items():
        yield from rows_of(name, work, options)


def picture(path: Path, threads: list[int]) -> None:
    """Draw the speed-up of every workload against the number of threads."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for name, found in speed_ups.items():
        axes.plot(list(found), list(found.values()), "o-" if "spinney" in name else "x:", label=name, linewidth=1)
    axes.plot(threads, [n / threads[0] for n in threads], color="gray", linewidth=0.5)
    axes.set(xlabel="Threads", ylabel=f"Speed relative to {threads[0]} thread(s)", xscale="log", yscale="log")
    axes.set_xticks(threads, [str(n) for n in threads])
    axes.legend(fontsize="x-small")
    figure.savefig(path)


WORKLOADS: dict[str, Callable[[Any], Iterator[Row]]] = {
    "large": partial(boosting, "boosting 1M × 28, 50 × 255 leaves", 1_000_000, 50, 255),
    "middle": partial(boosting, "boosting 100k × 28, 100 × 31 leaves", 100_000, 100, 31),
    "wide": lambda options: boosting("boosting 16k × 1000, 50 × 31 leaves", 16_000, 50, 31, options, 1000),
    "forest": forest,
    "extra": partial(forest, ours="ExtraTreesClassifier"),
    "single": single,
}


def main() -> int:
    parser = command_line(__doc__ or "", WORKLOADS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="numbers of threads")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the speed-ups")
    options = parser.parse_args()
    missed = run(WORKLOADS, options, versions())
    if options.picture:
        picture(options.picture, options.threads)
    return missed


if __name__ == "__main__":
    sys.exit(main())
