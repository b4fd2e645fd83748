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
speed_ups: dict[str, dict[str, dict[int, float]]] = {}  # by workload and library, for the picture


def rows_of(name: str, ours: Contestant, options: Any, peers: Mapping[str, Contestant] | None = None) -> Iterator[Row]:
    """Time each number of threads in turn, peers next to ours."""
    makers = {"spinney": ours, **(peers or {})}
    contestants = {f"{who}, {n}": partial(make, n) for who, make in makers.items() for n in options.threads}
    rounds = play(contestants, options.rounds)
    for who in makers:
        base = median(rounds, f"{who}, {options.threads[0]}")
        speed_ups.setdefault(name, {})[who] = {n: base / median(rounds, f"{who}, {n}") for n in options.threads}
    for n in options.threads[1:]:
        yield beside(f"{name}, {n} threads", rounds, ours=f"spinney, {n}", peer=f"spinney, {options.threads[0]}")
    for who in peers or {}:
        for n in options.threads:
            yield beside(f"{name}, {n} threads, {who}", rounds, ours=f"spinney, {n}", peer=f"{who}, {n}")


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


def forest(name: str, ours: str, n_rows: int, options: Any, n_trees: int = 64) -> Iterator[Row]:
    import spinney
    from sklearn import ensemble

    table = data.numbers("classifier", 2_000 if options.quick else n_rows, 0, 1000)

    def of(module: Any) -> Contestant:
        more = {"shrinkage": None} if module is spinney else {}
        return lambda n: getattr(module, ours)(n_estimators=n_trees, n_jobs=n, random_state=0, **more).fit(
            table.X, table.y
        )

    return rows_of(name, of(spinney), options, {"scikit-learn": of(ensemble)})


def models(options: Any) -> Iterator[Row]:
    """One exact tree, AdaBoost, an SVM: scikit-learn's use one thread."""
    import spinney

    factor = 50 if options.quick else 1
    large, small = (data.numbers("classifier", n // factor, 0, 1000) for n in (200_000, 12_000))
    works: dict[str, Contestant] = {
        "exact tree 200k × 28": lambda n: spinney.DecisionTreeClassifier(n_jobs=n).fit(large.X, large.y),
        "AdaBoost 200k × 28": lambda n: spinney.AdaBoostClassifier(n_estimators=50, n_jobs=n).fit(large.X, large.y),
        "SVC 12k × 28": lambda n: spinney.SVC(n_jobs=n).fit(small.X, small.y),
    }
    for name, work in works.items():
        yield from rows_of(name, work, options)


def predictions(options: Any) -> Iterator[Row]:
    """Predictions of a booster, a forest and k-NN, and Shapley values, next to LightGBM's and scikit-learn's."""
    import spinney
    from sklearn import ensemble, neighbors

    factor = 50 if options.quick else 1
    table = data.numbers("classifier", 50_000 // factor, 0, 100_000 // factor)
    X, y, rows = table.X, table.y, table.X_test
    some = rows[: 5_000 // factor]
    booster = spinney.GradientBoostingClassifier(n_estimators=100, max_leaf_nodes=31).fit(X, y)
    trees = spinney.RandomForestClassifier(n_estimators=100, shrinkage=None, random_state=0).fit(X, y)
    near = spinney.KNeighborsClassifier().fit(X, y)
    their_trees = ensemble.RandomForestClassifier(n_jobs=-1, random_state=0).fit(X, y)
    their_near = neighbors.KNeighborsClassifier().fit(X, y)
    theirs: dict[str, Contestant] = {}
    shapley: dict[str, Contestant] = {}
    if find_spec("lightgbm"):
        peer = Booster("lightgbm", Task("classifier", 100, 31, max(options.threads))).fit(X, y).model.booster_
        theirs["lightgbm"] = lambda n: peer.predict(rows, num_threads=n)
        shapley["lightgbm"] = lambda n: peer.predict(some, num_threads=n, pred_contrib=True)
    works: dict[str, tuple[Contestant, dict[str, Contestant]]] = {
        "predict, booster": (lambda n: booster.set_params(n_jobs=n).predict_proba(rows), theirs),
        "predict, forest": (
            lambda n: trees.set_params(n_jobs=n).predict_proba(rows),
            {"scikit-learn": lambda n: their_trees.set_params(n_jobs=n).predict_proba(rows)},
        ),
        "predict, k-NN": (
            lambda n: near.set_params(n_jobs=n).predict(some),
            {"scikit-learn": lambda n: their_near.set_params(n_jobs=n).predict(some)},
        ),
        "Shapley values": (lambda n: booster.set_params(n_jobs=n).shap_values(some), shapley),
    }
    for name, (ours, peers) in works.items():
        yield from rows_of(name, ours, options, peers)


def picture(path: Path, threads: list[int]) -> None:
    """Draw the speed-up of every workload against the number of threads, next to its peer's."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n_across = 4
    figure, panels = plt.subplots(
        -(-len(speed_ups) // n_across), n_across, figsize=(10, 2.4 * -(-len(speed_ups) // n_across)),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for axes, (name, found) in zip(panels.flat, speed_ups.items(), strict=False):
        axes.plot(threads, [n / threads[0] for n in threads], color="gray", linewidth=0.5)
        for who, speeds in found.items():
            axes.plot(list(speeds), list(speeds.values()), "o-" if who == "spinney" else "x:", label=who, markersize=4)
        axes.set_title(name, fontsize="small")
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(threads, [str(n) for n in threads])
        axes.set_yticks(threads, [f"{n}×" for n in threads])
        axes.minorticks_off()
        axes.legend(fontsize="x-small", frameon=False)
    for axes in panels.flat[len(speed_ups) :]:
        axes.axis("off")
    figure.supxlabel("Threads", fontsize="small")
    figure.supylabel(f"Speed relative to {threads[0]} thread(s)", fontsize="small")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


WORKLOADS: dict[str, Callable[[Any], Iterator[Row]]] = {
    "large": partial(boosting, "boosting 1M × 28, 255 leaves", 1_000_000, 50, 255),
    "middle": partial(boosting, "boosting 100k × 28, 31 leaves", 100_000, 100, 31),
    "wide": lambda options: boosting("boosting 16k × 1000, 31 leaves", 16_000, 50, 31, options, 1000),
    "forest": partial(forest, "forest 50k × 28, 64 trees", "RandomForestClassifier", 50_000),
    "extra": partial(forest, "extra-trees 50k × 28, 64 trees", "ExtraTreesClassifier", 50_000),
    "models": models,
    "predictions": predictions,
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
