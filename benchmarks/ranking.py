"""Rankers beside LightGBM's and XGBoost's: the same trees, leaves, bins and steps, NDCG at 10 of lists held out.

Usage: ``python benchmarks/ranking.py [WORKLOAD …] [--quick] [--rounds N] [--json FILE] [--data FOLDER]``. A row
compares with the faster of the peers; "agree" compares NDCG with the better one, over several tables and seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from program import command_line, run
from timing import Row, beside, median, play, play_round

_ROUNDS, _LEAVES, _RATE, _PLACES = 100, 31, 0.1, 30


class Lists(NamedTuple):
    """Rows, grades and lists of a table, sorted by list."""

    X: Any
    y: Any
    groups: Any

    def parted(self, share: float = 0.3, seed: int = 0) -> tuple[Lists, Lists]:
        """Hold out some of the lists."""
        labels = np.unique(self.groups)
        chosen = np.random.default_rng(seed).permutation(labels)[: int(share * len(labels))]
        held = np.isin(self.groups, chosen)
        return tuple(Lists(self.X[side], self.y[side], self.groups[side]) for side in (~held, held))  # type: ignore[return-value]


_GRADES = (0.5, 0.75, 0.9, 0.97)  # fractions of the rows below each


def queries(
    n_lists: int,
    seed: int = 0,
    size: tuple[int, int] = (20, 200),
    grades: tuple[float, ...] = _GRADES,
    chance: float = 1.0,
) -> Lists:
    """20 to 200 rows of 50 numbers for each query; grades 0 to 4, few of them large, by a curved wish and chance."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(size[0], size[1] + 1, n_lists)
    groups = np.repeat(np.arange(n_lists), sizes)
    X = rng.normal(size=(len(groups), 50)).astype(np.float32)
    X[:, :5] += rng.normal(size=(n_lists, 5)).astype(np.float32)[groups]
    wish = X[:, 6] + np.sin(2 * X[:, 7]) + X[:, 8] * X[:, 9] / 2 + np.abs(X[:, 10]) + X[:, 0] * X[:, 11] / 2
    wish = wish + chance * rng.normal(size=len(wish))
    return Lists(X, np.digitize(wish, np.quantile(wish, grades)), groups)


def from_table(folder: Path, name: str, by: str, most: int) -> Lists:
    """Return a table's rows in lists by a column, with fifths of the target as grades; columns of words are codes."""
    import polars as pl

    frame = pl.read_parquet(folder / f"{name}.parquet").sort(by, maintain_order=True)
    frame = frame.group_by(by, maintain_order=True).head(most)
    groups = np.unique(frame[by].to_numpy(), return_inverse=True)[1]
    y = frame["target"].to_numpy()
    X = frame.drop("target", by)
    columns = [
        c if c.dtype.is_numeric() else pl.Series(np.unique(c.cast(pl.String), return_inverse=True)[1]) for c in X
    ]
    X = np.column_stack([column.cast(pl.Float32).to_numpy() for column in columns])
    return Lists(X, np.digitize(y, np.quantile(y, _GRADES)), groups)


def _sizes(groups: Any) -> Any:
    return np.diff(np.flatnonzero(np.diff(groups, prepend=-1, append=-1)))


def _ours(table: Lists, loss: str) -> Any:
    import spinney

    model = spinney.GradientBoostingRanker(
        loss, n_estimators=_ROUNDS, max_leaf_nodes=_LEAVES, learning_rate=_RATE, truncation=_PLACES, n_jobs=2
    )
    return model.fit(table.X, table.y, groups=table.groups)


def _lightgbm(table: Lists, loss: str) -> Any:
    import lightgbm

    model = lightgbm.LGBMRanker(
        n_estimators=_ROUNDS, num_leaves=_LEAVES, learning_rate=_RATE, max_bin=255, min_child_samples=20, n_jobs=2,
        lambdarank_truncation_level=_PLACES, verbosity=-1, random_state=0,
    )  # fmt: skip
    return model.fit(table.X, table.y, group=_sizes(table.groups))


def _xgboost(table: Lists, loss: str) -> Any:
    import xgboost

    model = xgboost.XGBRanker(
        objective="rank:ndcg" if loss == "lambdamart" else "rank:pairwise", n_estimators=_ROUNDS, max_leaves=_LEAVES,
        learning_rate=_RATE, max_bin=256, tree_method="hist", grow_policy="lossguide", max_depth=0, n_jobs=2,
        lambdarank_pair_method="topk" if loss == "lambdamart" else "mean", verbosity=0, random_state=0,
        **({"lambdarank_num_pair_per_sample": _PLACES} if loss == "lambdamart" else {}),
    )  # fmt: skip
    return model.fit(table.X, table.y, qid=table.groups)


def _makers(loss: str) -> dict[str, Any]:
    return {"ours": _ours, "xgboost": _xgboost} | ({"lightgbm": _lightgbm} if loss == "lambdamart" else {})


def _ndcg(model: Any, held: Lists) -> float:
    import spinney

    return spinney.ranking_score(held.y, model.predict(held.X).astype(float), held.groups, metric="ndcg@10")


def _compared(label: str, table: Lists, loss: str, n_rounds: int, target: str) -> Row:
    learned, held = table.parted()
    makers = _makers(loss)
    models: dict[str, Any] = {}

    def fit(name: str) -> None:
        models[name] = makers[name](learned, loss)

    rounds = play({name: partial(fit, name) for name in makers}, n_rounds)
    found = {name: _ndcg(model, held) for name, model in models.items()}
    fastest = min((name for name in makers if name != "ours"), key=lambda name: median(rounds, name))
    best = max(value for name, value in found.items() if name != "ours")
    scores = ", ".join(f"{name} {value:.4f} in {median(rounds, name):.2f} s" for name, value in found.items())
    return beside(
        f"{label}, {loss}",
        rounds,
        peer=fastest,
        target=target,
        evidence=f"NDCG@10 {scores}",
        same_work=found["ours"] >= best - 0.002,
    )


def synthetic(options: argparse.Namespace) -> Iterator[Row]:
    """2,000 queries of 20 to 200 rows."""
    table = queries(200 if options.quick else 2_000)
    yield _compared("queries", table, "lambdamart", options.rounds, ">= 2")
    yield _compared("queries", table, "pairwise", options.rounds, ">= 2")


def tables(options: argparse.Namespace) -> Iterator[Row]:
    """Houses by postcode and incomes by occupation."""
    if options.data is None:
        return
    for name, by in _TABLES:
        yield _compared(name, from_table(options.data, name, by, 500), "lambdamart", options.rounds, ">= 2")


_TABLES = (("kc_house_sales", "zipcode"), ("gov_census", "occupation"))
_KINDS: dict[str, dict[str, Any]] = {
    "usual": {"n_lists": 300},
    "many": {"n_lists": 1500},
    "short": {"n_lists": 1500, "size": (5, 20)},
    "two grades": {"n_lists": 400, "size": (30, 60), "grades": (0.9,)},
    "much chance": {"n_lists": 300, "size": (20, 100), "grades": (0.4, 0.6, 0.8), "chance": 3.0},
}


def agree(options: argparse.Namespace) -> Iterator[Row]:
    """NDCG of other lists, means over as many seeds as rounds, and over parts of open tables; both losses."""
    for loss in ("lambdamart", "pairwise"):
        for name, kind in _KINDS.items():
            yield _mean(name, [queries(seed=seed, **kind).parted() for seed in range(options.rounds)], loss)
        for name, by in _TABLES if options.data is not None else ():
            table = from_table(options.data, name, by, 500)
            yield _mean(name, [table.parted(seed=seed) for seed in range(options.rounds)], loss)


def _mean(label: str, parts: list[tuple[Lists, Lists]], loss: str) -> Row:
    """Compare with the peer that is better on the mean, with the standard error of the difference."""
    makers, rounds = _makers(loss), []
    found: dict[str, list[float]] = {name: [] for name in makers}
    for number, (learned, held) in enumerate(parts):
        models: dict[str, Any] = {}

        def fit(name: str, learned: Lists = learned, models: dict[str, Any] = models) -> None:
            models[name] = makers[name](learned, loss)

        rounds.append(play_round({name: partial(fit, name) for name in makers}, number))
        for name, model in models.items():
            found[name].append(_ndcg(model, held))
    best = max((name for name in makers if name != "ours"), key=lambda name: float(np.mean(found[name])))
    more = np.subtract(found["ours"], found[best])
    error = float(np.std(more, ddof=1) / np.sqrt(len(more))) if len(more) > 1 else 0.0
    scores = ", ".join(f"{name} {np.mean(values):.4f}" for name, values in found.items())
    return beside(
        f"{label}, {loss}, {len(parts)} seeds",
        rounds,
        peer=best,
        target=">= 0",
        target_value=round(float(more.mean()) + error, 3),
        evidence=f"NDCG@10 {scores}: {more.mean():+.4f} ± {error:.4f}",
    )


WORKLOADS = {"synthetic": synthetic, "tables": tables, "agree": agree}

if __name__ == "__main__":
    parser = command_line(__doc__, WORKLOADS)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="Parquet files: tables")
    sys.exit(run(WORKLOADS, parser.parse_args()))
