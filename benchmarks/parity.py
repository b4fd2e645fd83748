"""Forests of both libraries with the same settings over many sets: paired, with standard errors.

One unit is one method on one split of one set. All methods of a set see the same splits and get the same seeds.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sets
from evaluation import METRICS, Method, evaluate, fit_seconds, make
from pool import Record, Unit

FAMILIES = ("forest", "extra")
BINS = (1023, 255, 127, 63)


class Sizes(NamedTuple):
    """How much of each set is used, and how often."""

    n_trees: int = 100
    train_rows: int = 20_000
    test_rows: int = 10_000
    repeats: int = 16


def parity_methods(has_categories: bool) -> list[Method]:
    methods = []
    for family in FAMILIES:
        methods += [Method("sklearn", family), Method("spinney", family)]
        if family == "forest":  # random cuts take no notice of bins
            methods.append(Method("spinney", family, 255))
        if has_categories:
            methods += [Method("spinney", family, None, "raw"), Method("sklearn", family, None, "one-hot")]
    return methods


def bins_methods(has_categories: bool) -> list[Method]:
    del has_categories  # codes: every column has bins
    return [Method("spinney", "forest", n) for n in (None, *BINS)]


def units(study: str, folder: Path, chosen: list[str], sizes: Sizes) -> Iterator[Unit]:
    """Give the units of repeat 0 of all sets, costly ones first, then those of repeat 1, and so on."""
    facts = {name: _facts(folder, name, sizes) for name in chosen}
    by_cost = sorted(facts, key=lambda name: -facts[name].cost)
    methods = {"parity": parity_methods, "bins": bins_methods}[study]
    for repeat in range(sizes.repeats):
        for name in by_cost:
            if repeat >= n_repeats(facts[name].cost, sizes.repeats):
                continue
            for method in methods(facts[name].has_categories):
                key = {
                    "study": "parity", "set": name, "repeat": repeat, "method": str(method), "trees": sizes.n_trees,
                    "rows": sizes.train_rows,
                }  # fmt: skip
                yield Unit(key, work, (folder, name, repeat, method, sizes))


class Facts(NamedTuple):
    """What the choice of methods and repeats needs to know of a set."""

    cost: float
    has_categories: bool


def _facts(folder: Path, name: str, sizes: Sizes) -> Facts:
    table = sets.load(folder, name)
    n_tried = math.sqrt(table.X.shape[1]) if table.n_classes else table.X.shape[1]
    n_train = min(len(table.y) * 3 // 4, sizes.train_rows)
    return Facts(n_train * n_tried, bool(table.is_category.any()))


def n_repeats(cost: float, most: int) -> int:
    """Fewer for costly sets, down to a quarter: their differences vary less, and they would take all the time."""
    return round(min(most, max(math.ceil(most / 4), most * 20_000 / cost)))


@lru_cache(maxsize=2)
def _load(folder: Path, name: str) -> sets.Table:
    return sets.load(folder, name)


def split(table: sets.Table, repeat: int, sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Return training rows (three quarters) and test rows, limited to the requested sizes."""
    order = sets.seed_of(table.name, repeat).permutation(len(table.y))
    n_test = len(order) // 4
    return order[n_test:][: sizes.train_rows], order[:n_test][: sizes.test_rows]


def work(folder: Path, name: str, repeat: int, method: Method, sizes: Sizes) -> Record:
    """Fit one method on one split and evaluate it."""
    start = time.process_time()
    table = _load(folder, name)
    train, test = split(table, repeat, sizes)
    X = table.encoded if method.columns == "one-hot" else table.X
    model = make(method, table.kind, table.is_category, n_estimators=sizes.n_trees, random_state=repeat)
    seconds = fit_seconds(model, X[train], table.y[train])
    losses = evaluate(model, X[test], table.y[test], table.n_classes)
    return {"kind": table.kind, "losses": losses, "fit_seconds": seconds, "cpu_seconds": time.process_time() - start}


# ---- the report ------------------------------------------------------------------------------------------------------


class Difference(NamedTuple):
    """Loss of one method less that of another on one set, over paired splits."""

    name: str
    n: int
    ours: float
    peer: float
    mean: float
    error: float  # standard error of the mean difference

    @property
    def standardized(self) -> float:
        """The mean in standard errors, at most 5 of them: those of a few repeats can be tiny by chance."""
        if abs(self.mean) >= 5 * self.error:
            return 0.0 if self.mean == 0 else math.copysign(5.0, self.mean)
        return self.mean / self.error

    @property
    def relative(self) -> float:
        """The mean as a share of the peer's loss."""
        return self.mean / self.peer if self.peer > 0 else 0.0


Losses = dict[tuple[str, str], dict[int, Record]]


def by_set_and_method(records: list[Record]) -> Losses:
    found: Losses = defaultdict(dict)
    for record in records:
        key = record["key"]
        if key["study"] == "parity":
            found[key["set"], key["method"]][key["repeat"]] = record
    return found


def differences(found: Losses, ours: Method, peer: Method, metric: str) -> list[Difference]:
    """One per set that has at least two splits with both methods."""
    result = []
    for name in sorted({name for name, _ in found}):
        mine, theirs = found.get((name, str(ours)), {}), found.get((name, str(peer)), {})
        pairs = np.array(
            [
                (mine[r]["losses"][metric], theirs[r]["losses"][metric])
                for r in sorted(mine.keys() & theirs.keys())
                if metric in mine[r]["losses"] and metric in theirs[r]["losses"]
            ]
        ).reshape(-1, 2)
        if len(pairs) < 2:
            continue
        gap = pairs[:, 0] - pairs[:, 1]
        result.append(
            Difference(name, len(gap), *pairs.mean(axis=0), gap.mean(), gap.std(ddof=1) / math.sqrt(len(gap)))
        )
    return result


SUMMARY = "{:<38}{:<10}{:>5}{:>18}{:>18}{:>13}{:>14}{:>9}"
SUMMARY_HEADER = SUMMARY.format(
    "ours - peer", "loss", "sets", "relative, %", "standardized", "better/worse", "beyond 2 SE", "verdict"
)


def summary(label: str, metric: str, found: list[Difference]) -> str:
    """One line over all sets: means with their standard errors over sets; negative is better."""
    if len(found) < 2:
        return SUMMARY.format(label, metric, len(found), "-", "-", "-", "-", "-")
    figures = []
    for values in ([100 * d.relative for d in found], [d.standardized for d in found]):
        figures.append((float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))))
    counts = f"{sum(d.mean < 0 for d in found)}/{sum(d.mean > 0 for d in found)}"
    clear = f"{sum(d.standardized < -2 for d in found)}/{sum(d.standardized > 2 for d in found)}"
    z, z_error = figures[1]
    verdict = "WORSE" if z > 2 * z_error else "better" if z < -2 * z_error else "equal"
    texts = [f"{mean:+.2f} ± {error:.2f}" for mean, error in figures]
    return SUMMARY.format(label, metric, len(found), *texts, counts, clear, verdict)


def comparisons() -> Iterator[tuple[str, Method, Method]]:
    for family in FAMILIES:
        peer = Method("sklearn", family)
        yield f"{family}, exact, same numbers", Method("spinney", family), peer
        if family == "forest":
            yield f"{family}, 255 bins, same numbers", Method("spinney", family, 255), peer
        raw = Method("spinney", family, None, "raw")
        yield f"{family}, categories as such | codes", raw, peer
        yield f"{family}, categories as such | one-hot", raw, Method("sklearn", family, None, "one-hot")


def report_parity(records: list[Record], details: bool) -> None:
    found = by_set_and_method(records)
    print("Losses of spinney less those of scikit-learn. Negative: spinney is better. A row is one loss over all sets;")
    print("± is the standard error over sets. Standardized: a set's mean difference over its own, at most 5.\n")
    print(SUMMARY_HEADER)
    for label, ours, peer in comparisons():
        for metric in (*METRICS["classifier"], *METRICS["regressor"]):
            print(summary(label, metric, differences(found, ours, peer, metric)))
    if details:
        for label, ours, peer in comparisons():
            for metric in ("log loss", "1 - AUC", "error", "RMSE"):
                print(f"\n{label}: {metric}")
                print_sets(differences(found, ours, peer, metric))


def print_sets(found: list[Difference]) -> None:
    layout = "  {:<26}{:>4}{:>12}{:>12}{:>24}{:>8}"
    print(layout.format("set", "n", "ours", "peer", "difference", "z"))
    for d in sorted(found, key=lambda d: d.standardized):
        gap = f"{d.mean:+.3g} ± {d.error:.2g}"
        print(layout.format(d.name, d.n, f"{d.ours:.4g}", f"{d.peer:.4g}", gap, f"{d.standardized:+.1f}"))


def report_bins(records: list[Record]) -> None:
    """Show what bins do to the loss and to the time of a fit, beside exact cuts of the same forest."""
    found = by_set_and_method(records)
    exact = Method("spinney", "forest")
    print("Random forests in bins less the exact ones. Negative: bins are better.\n")
    print(SUMMARY_HEADER)
    for n in BINS:
        for metric in ("log loss", "1 - AUC", "error", "RMSE"):
            print(summary(f"{n} bins", metric, differences(found, Method("spinney", "forest", n), exact, metric)))
    print("\nCPU seconds of a fit, exact / bins: geometric mean and range over sets, by training cost")
    for n in BINS:
        print(f"  {n:>5} bins  " + "   ".join(_speeds(found, exact, Method("spinney", "forest", n))))


def _speeds(found: Losses, exact: Method, binned: Method) -> Iterator[str]:
    ratios: dict[str, list[float]] = defaultdict(list)
    for name in {name for name, _ in found}:
        base, other = found.get((name, str(exact)), {}), found.get((name, str(binned)), {})
        pairs = [(base[r]["fit_seconds"], other[r]["fit_seconds"]) for r in base.keys() & other.keys()]
        if pairs:
            seconds = np.median([b for b, _ in pairs])
            group = "below 0.2 s" if seconds < 0.2 else "0.2 to 1 s" if seconds < 1 else "above 1 s"
            ratios[group].append(float(np.median([b / o for b, o in pairs])))
    for group in ("below 0.2 s", "0.2 to 1 s", "above 1 s"):
        if values := ratios[group]:
            mean = math.exp(float(np.mean(np.log(values))))
            yield f"{group}: {mean:.2f} ({min(values):.2f} … {max(values):.2f}, {len(values)} sets)"
