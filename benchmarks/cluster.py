"""Gradient boosting on a Dask LocalCluster beside the same fit without one, and beside xgboost.dask and lightgbm.dask.

    python benchmarks/cluster.py --rows 2000000 --workers 2 --threads 1

All grow 100 trees of 31 leaves from 255 bins of 28 columns, leaf by leaf. The data are made on the workers, and lie
there as float32 before any clock starts; peers get the same persisted collections. Spinney's fits report how
long they take until the first tree is begun, how long for a tree, and what is asked and sent for it on the cluster.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

N_COLUMNS = 28
# Dask asks for a package of the name of a neighbour of this file, sparse.
sys.path = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]

import spinney  # noqa: E402
from spinney._cluster.blocks import DaskBlocks  # noqa: E402


def make_part(seed: int, n: int) -> Any:
    """Return one partition: numbers, of which a few tell the class."""
    import pandas as pd

    random = np.random.default_rng(seed)
    X = random.standard_normal((n, N_COLUMNS), dtype=np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + random.standard_normal(n, dtype=np.float32)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_COLUMNS)])
    return frame.assign(y=(score > 0.8).astype(np.int64))


def collection(n_rows: int, n_parts: int) -> Any:
    """Return the table as a Dask DataFrame."""
    import dask.dataframe as dd
    from dask import delayed

    sizes = [n_rows * (i + 1) // n_parts - n_rows * i // n_parts for i in range(n_parts)]
    parts = [delayed(make_part)(seed, n) for seed, n in enumerate(sizes)]
    return dd.from_delayed(parts, meta=make_part(0, 1).iloc[:0])


def timed(fit: Any) -> tuple[float, Any]:
    """Return the seconds of one fit, and what it returned."""
    began = time.perf_counter()
    found = fit()
    return time.perf_counter() - began, found


class Watched:
    """A fit of which each round is noted, and each question of a cluster's."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._ends: list[float] = []
        self.model = spinney.GradientBoostingClassifier(**options, callbacks=self._note)
        self._n_requests = self._n_bytes = self._n_under_way = self._n_waits = 0

    def _note(self, progress: Any) -> None:
        self._ends.append(time.perf_counter())

    def fit(self, X: Any, y: Any) -> float:
        """Fit; return the seconds."""
        send, receive = DaskBlocks.send, DaskBlocks.receive

        def count(blocks: Any, request: bytes) -> None:
            send(blocks, request)
            self._n_requests += 1
            self._n_under_way += 1
            self._n_bytes += len(request) * len(blocks.ranges)

        def count_answers(blocks: Any) -> Any:
            answers = receive(blocks)
            self._n_under_way -= 1
            self._n_waits += self._n_under_way == 0
            self._n_bytes += sum(map(len, answers))
            return answers

        DaskBlocks.send, DaskBlocks.receive = count, count_answers  # type: ignore[method-assign]
        try:
            self._began = time.perf_counter()
            self.model.fit(X, y)
            self.seconds = time.perf_counter() - self._began
        finally:
            DaskBlocks.send, DaskBlocks.receive = send, receive  # type: ignore[method-assign]
        self.model.callbacks = None
        return self.seconds

    def where_time_goes(self) -> str:
        """Say how long it took to set up, and for a tree."""
        n = len(self._ends)
        tree = (self._ends[-1] - self._ends[0]) / max(n - 1, 1)
        text = f"set-up {self._ends[0] - tree - self._began:.2f} s, a tree {1000 * tree:.1f} ms"
        if self._n_requests:
            text += f", {self._n_requests / n:.1f} requests and {self._n_bytes / n / 1e6:.2f} MB for it; workers "
            text += f"have none pending {self._n_waits / n:.1f} times"
        return text


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--peers", action="store_true", help="run xgboost.dask and lightgbm.dask too")
    parser.add_argument("--no-local", action="store_true", help="leave out the fit in this process")
    args = parser.parse_args()

    from distributed import Client, LocalCluster, wait

    options = {"n_estimators": args.trees, "max_leaf_nodes": 31, "learning_rate": 0.1, "max_bins": 255}
    n_threads = args.workers * args.threads
    with (
        LocalCluster(
            n_workers=args.workers, threads_per_worker=args.threads, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        rows = client.persist(collection(args.rows, 4 * args.workers))
        wait(rows, timeout=600)
        X, y = client.persist([rows.drop(columns="y"), rows["y"]])
        wait([X, y], timeout=600)
        print(f"{args.rows:,} rows x {N_COLUMNS}, {args.workers} workers x {args.threads} threads, {args.trees} trees")
        there = Watched(options)
        seconds = there.fit(X, y)
        print(f"spinney on Dask      {seconds:8.2f} s   {there.where_time_goes()}")
        if not args.no_local:
            frame, target = X.compute(), y.compute()
            here = Watched(options | {"n_jobs": n_threads})
            alone = here.fit(frame, target)
            is_same = there.model.set_params(n_jobs=n_threads).fingerprint() == here.model.fingerprint()
            same = "bit-identical" if is_same else "NOT BIT-IDENTICAL"
            print(f"spinney here         {alone:8.2f} s   {here.where_time_goes()}")
            print(f"cluster / here       {seconds / alone:8.2f}     {same}")
            del frame, target, here
        if args.peers:
            for name, fit in peers(client, args).items():
                taken, _ = timed(lambda fit=fit: fit(X, y))
                print(f"{name:<20} {taken:8.2f} s   {taken / seconds:.2f} x spinney on Dask")


def peers(client: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Return the same fit by other libraries."""
    import lightgbm.dask
    import xgboost.dask

    def by_lightgbm(X: Any, y: Any) -> Any:
        model = lightgbm.dask.DaskLGBMClassifier(
            client=client, n_estimators=args.trees, num_leaves=31, learning_rate=0.1, max_bin=255, verbose=-1
        )
        return model.fit(X, y)

    def by_xgboost(X: Any, y: Any) -> Any:
        model = xgboost.dask.DaskXGBClassifier(
            n_estimators=args.trees,
            grow_policy="lossguide",
            max_leaves=31,
            max_depth=0,
            learning_rate=0.1,
            max_bin=255,
            tree_method="hist",
        )
        model.client = client
        return model.fit(X, y)

    return {"lightgbm.dask": by_lightgbm, "xgboost.dask": by_xgboost}


if __name__ == "__main__":
    main()
