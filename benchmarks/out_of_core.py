"""Boosting of a table in files beside the same fit in memory: the same bits, the time and the memory it takes.

Usage: ``python benchmarks/out_of_core.py [--rows N] [--rounds N] [--folder F] [--skip-memory] [--memory SIZE]
[--model boosting|forest|tree]``; each fit runs in a process of its own. Memory is what the process held at most, files
that are mapped included, and what of it was its own (anonymous); the bytes a row are of the latter, beyond what the
process held before it read a row. ``--memory`` is what a scan may hold of its files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 28
FILE_ROWS = 1_000_000


def write_table(folder: Path, n_rows: int) -> None:
    """Write Parquet files of 28 columns of float32, of which some decide the target."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i, begin in enumerate(range(0, n_rows, FILE_ROWS)):
        rng = np.random.default_rng(i)
        n = min(FILE_ROWS, n_rows - begin)
        values = rng.standard_normal((COLUMNS, n), dtype=np.float32)
        score = values[0] * values[1] + np.sin(2 * values[2]) + values[3] + 0.5 * rng.standard_normal(n)
        columns = {f"x{j}": values[j] for j in range(COLUMNS)} | {"y": (score > 0).astype(np.int8)}
        pq.write_table(pa.table(columns), folder / f"part{i:04}.parquet", row_group_size=250_000)


class MemoryWatch:
    """Looks at what the process holds, at once and every 20 ms."""

    def __init__(self) -> None:
        self.most = {"VmRSS": 0, "RssAnon": 0}
        self._look()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self._look()

    def _look(self) -> None:
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in self.most:
                self.most[name] = max(self.most[name], int(rest.split()[0]) << 10)

    def stop(self) -> dict[str, int]:
        """Return the most that was held, in bytes."""
        self._done.set()
        self._thread.join()
        return self.most


def make_model(name: str, n_rounds: int, at: list[float]) -> Any:
    """Return a model of two classes; `at` takes the time after each round of boosting."""
    import spinney

    if name == "forest":
        return spinney.RandomForestClassifier(n_rounds, max_bins=255, min_samples_leaf=20, random_state=0)
    if name == "tree":
        return spinney.DecisionTreeClassifier(max_bins=255, min_samples_leaf=20)
    return spinney.GradientBoostingClassifier(
        n_estimators=n_rounds, max_leaf_nodes=31, callbacks=lambda _: at.append(time.perf_counter())
    )


def fit(how: str, folder: str, n_rounds: int, memory: str, name: str) -> dict[str, Any]:
    """Fit in this process, by rounds enough to tell what a round takes from what reading does."""
    import pyarrow.parquet as pq
    import spinney

    at: list[float] = []
    model = make_model(name, n_rounds, at)
    for file in sorted(Path(folder).iterdir())[:1]:  # what the reader keeps for itself is no part of a fit
        next(pq.ParquetFile(file).iter_batches(batch_size=65_536))
    first = MemoryWatch().stop()["RssAnon"]
    began = time.perf_counter()
    if how == "memory":
        table = pq.read_table(folder)
        X, y = table.drop_columns("y"), table["y"].to_numpy()
        del table
        watch = MemoryWatch()
        model.fit(X, y)
    else:
        watch = MemoryWatch()
        model.fit(spinney.scan(folder, folder=str(Path(folder).parent), memory=memory), "y")
    ended = time.perf_counter()
    found = {"seconds": ended - began, "RssAnonBefore": first, **watch.stop()}
    if at:
        found |= {"seconds_a_round": (at[-1] - at[0]) / (len(at) - 1), "seconds_to_first_round": at[0] - began}
    return {"print": model.fingerprint()[:16], **found}


def main() -> None:
    """Write the table, fit both ways, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--skip-memory", action="store_true")
    parser.add_argument("--memory", default="256MB")
    parser.add_argument("--model", choices=("boosting", "forest", "tree"), default="boosting")
    parser.add_argument("--fit", choices=("memory", "files"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        print(json.dumps(fit(given.fit, given.folder, given.rounds, given.memory, given.model)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as room:
        folder = Path(room, "table")
        folder.mkdir()
        write_table(folder, given.rows)
        print(f"{given.rows:,} rows of {COLUMNS} columns, {given.model}, {given.rounds} rounds", flush=True)
        for how in ("files",) if given.skip_memory else ("memory", "files"):
            command = [sys.executable, __file__, "--fit", how, "--folder", str(folder), "--rounds", str(given.rounds)]
            command += ["--memory", given.memory, "--model", given.model]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            gib = {name: f"{found[name] / 2**30:.2f} GiB" for name in ("VmRSS", "RssAnon")}
            a_row = (found["RssAnon"] - found["RssAnonBefore"]) / given.rows
            rounds = ""
            if "seconds_a_round" in found:
                ns = 1e9 * found["seconds_a_round"] / given.rows
                rounds = f"{found['seconds_to_first_round']:.1f} s to the first round, {ns:.1f} ns a row and round; "
            print(
                f"  {how:<7} {found['seconds']:7.1f} s, {rounds}held at most {gib['VmRSS']}, own {gib['RssAnon']} "
                f"({a_row:.0f} bytes a row); {found['print']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
