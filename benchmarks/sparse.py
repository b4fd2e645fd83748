"""Speed of trees, forests and boosting on tables that are mostly 0, beside scikit-learn's and LightGBM's.

Usage: ``python benchmarks/sparse.py [WORKLOAD …] [--quick] [--rounds N]``. Two threads, where a model has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from boosters import Booster, Task, versions
from data import Split
from models import make
from program import command_line, run
from timing import Row, median, play_round, ratio

N_TEST = 5_000


def one_hot_table(n_rows: int, n_variables: int, n_values: int, seed: int, n_classes: int = 2) -> Split:
    """Make variables of some values each, as a column of 0 and 1 for each value."""
    random = np.random.default_rng(seed)
    codes = random.integers(n_values, size=(n_rows + N_TEST, n_variables))
    worth = random.standard_normal((n_variables, n_values))
    score = worth[np.arange(n_variables), codes].sum(axis=1) / np.sqrt(n_variables)
    places = np.repeat(np.arange(len(codes)), n_variables), (codes + n_values * np.arange(n_variables)).ravel()
    X = sp.csr_matrix((np.ones(codes.size), places), (len(codes), n_variables * n_values))
    return _split(X, score + random.standard_normal(len(codes)), n_rows, n_classes)


def numbers_table(n_rows: int, n_columns: int, share: float, seed: int, n_classes: int = 2) -> Split:
    """Make columns of numbers, a share of which is not 0."""
    random = np.random.default_rng(seed)
    X = sp.random(n_rows + N_TEST, n_columns, share, format="csr", random_state=seed)
    score = X @ random.standard_normal(n_columns)
    return _split(X, score / score.std() + random.standard_normal(len(score)), n_rows, n_classes)


def _split(X: Any, score: Any, n_rows: int, n_classes: int) -> Split:
    y = np.argsort(np.argsort(score)) * n_classes // len(score)
    return Split(X[:n_rows].tocsc(), y[:n_rows], X[n_rows:].tocsc(), y[n_rows:])


def forest(library: str, name: str, n_trees: int) -> Any:
    """Make an unfitted forest of either library."""
    if library == "sklearn":
        import sklearn.ensemble as home
    else:
        import spinney as home
    return getattr(home, name)(n_trees, n_jobs=2, random_state=0)


def compare(label: str, tables: list[Split], makers: dict[str, Callable[[], Any]], target: str) -> Row:
    """Time the fits of both sides on the same tables, and compare their losses on other rows."""
    played, losses = [], {name: [] for name in makers}
    for number, table in enumerate(tables):
        models = {name: maker() for name, maker in makers.items()}
        played.append(play_round({n: partial(m.fit, table.X, table.y) for n, m in models.items()}, number))
        for name, model in models.items():
            losses[name].append(loss(model, table))
    ours, peer = makers
    means = {name: float(np.mean(values)) for name, values in losses.items()}
    # equally good splits abound in small nodes, and each library picks its own
    no_worse = means[ours] <= 1.02 * means[peer]
    return Row(
        label, median(played, ours), median(played, peer), ratio=ratio(played, peer, ours),
        cpu_ratio=ratio(played, peer, ours, "cpu"), target=target, same_work=no_worse,
        evidence=f"loss {means[ours]:.4f} | {means[peer]:.4f}{'' if no_worse else ' WORSE'}", rounds=played,
    )  # fmt: skip


def loss(model: Any, table: Split) -> float:
    if isinstance(model, Booster):
        return model.loss(table.X_test, table.y_test)
    return float(np.mean(model.predict(table.X_test) != table.y_test))


def pair(maker: Callable[..., Any], *arguments: Any) -> dict[str, Callable[[], Any]]:
    return {name: partial(maker, name, *arguments) for name in ("spinney", "sklearn")}


def trees() -> dict[str, Callable[[], Any]]:
    return {"spinney": partial(make, "spinney", "classifier", 2), "sklearn": partial(make, "sklearn", "classifier")}


def tables_of(options: argparse.Namespace, maker: Callable[..., Split], n_rows: int, *shape: Any) -> list[Split]:
    n_rows = n_rows // 10 if options.quick else n_rows
    return [maker(n_rows, *shape, seed) for seed in range(options.rounds)]


def in_full(tables: list[Split]) -> list[Split]:
    return [Split(t.X.toarray(), t.y, t.X_test.toarray(), t.y_test) for t in tables]


def one_hot(options: argparse.Namespace) -> Iterator[Row]:
    for shape in ((3, 100), (10, 30)):
        tables = tables_of(options, one_hot_table, 20_000, *shape)
        for kind, given in (("sparse", tables), ("in full", in_full(tables))):
            label = f"one-hot {shape[0]} of {shape[1]}, {kind}"
            yield compare(f"{label}: tree", given, trees(), ">= 3")
            yield compare(f"{label}: forest of 10", given, pair(forest, "RandomForestClassifier", 10), ">= 3")


def wide(options: argparse.Namespace) -> Iterator[Row]:
    tables = tables_of(options, numbers_table, 5_000, 10_000, 0.005)
    yield compare("5k x 10k: forest of 3", tables, pair(forest, "RandomForestClassifier", 3), ">= 3")
    yield compare("5k x 10k: extra-trees of 3", tables, pair(forest, "ExtraTreesClassifier", 3), ">= 3")
    yield compare("5k x 10k: tree", tables, trees(), ">= 3")


def tall(options: argparse.Namespace) -> Iterator[Row]:
    yield compare("20k x 1k: tree", tables_of(options, numbers_table, 20_000, 1_000, 0.01), trees(), ">= 3")


def many_classes(options: argparse.Namespace) -> Iterator[Row]:
    tables = tables_of(options, partial(numbers_table, n_classes=500), 20_000, 200, 0.05)
    for kind, given in (("sparse", tables), ("in full", in_full(tables))):
        yield compare(f"500 classes, {kind}: tree", given, trees(), ">= 1")
        yield compare(f"500 classes, {kind}: forest of 3", given, pair(forest, "RandomForestClassifier", 3), ">= 1")


def boosting(options: argparse.Namespace) -> Iterator[Row]:
    task = Task("classifier", 10, 31, 2)
    makers = {name: partial(Booster, name, task) for name in ("spinney", "lightgbm")}
    yield compare("one-hot: 10 rounds", tables_of(options, one_hot_table, 20_000, 10, 30), makers, ">= 3")
    yield compare("20k x 1k: 10 rounds", tables_of(options, numbers_table, 20_000, 1_000, 0.01), makers, ">= 3")


WORKLOADS = {"one_hot": one_hot, "wide": wide, "tall": tall, "many_classes": many_classes, "boosting": boosting}

if __name__ == "__main__":
    raise SystemExit(run(WORKLOADS, command_line(__doc__, WORKLOADS).parse_args(), versions()))
