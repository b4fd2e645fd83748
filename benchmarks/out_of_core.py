"""Boosting of a table in files beside the same fit in memory: the same bits, the time and the memory it takes.

Usage: ``python benchmarks/out_of_core.py [--rows N] [--rounds N] [--folder F] [--skip-memory]``; each fit runs in a
process of its own. Memory is what the process held at most, files that are mapped included, and what of it was its own
(anonymous).
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
    """Looks at what the process holds, every 20 ms."""

    def __init__(self) -> None:
        self.most = {"VmRSS": 0, "RssAnon": 0}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            for line in Path("/proc/self/status").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name in self.most:
                    self.most[name] = max(self.most[name], int(rest.split()[0]) << 10)

    def stop(self) -> dict[str, int]:
        """Return the most that was held, in bytes."""
        self._done.set()
        self._thread.join()
        return self.most


def fit(how: str, folder: str, n_rounds: int) -> dict[str, Any]:
    """Fit in this process, by rounds enough to tell what a round takes from what reading does."""
    import spinney

    at: list[float] = []
    model = spinney.GradientBoostingClassifier(
        n_estimators=n_rounds, max_leaf_nodes=31, callbacks=lambda _: at.append(time.perf_counter())
    )
    began = time.perf_counter()
    if how == "memory":
        import pyarrow.parquet as pq

        table = pq.read_table(folder)
        X, y = table.drop_columns("y"), table["y"].to_numpy()
        del table
        watch = MemoryWatch()
        model.fit(X, y)
    else:
        watch = MemoryWatch()
        model.fit(spinney.scan(folder, folder=str(Path(folder).parent)), "y")
    ended = time.perf_counter()
    per_round = (at[-1] - at[0]) / (len(at) - 1)
    seconds = {"seconds": ended - began, "seconds_a_round": per_round}
    return {"print": model.fingerprint()[:16], **seconds, **watch.stop()}


def main() -> None:
    """Write the table, fit both ways, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--skip-memory", action="store_true")
    parser.add_argument("--fit", choices=("memory", "files"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit:
        print(json.dumps(fit(given.fit, given.folder, given.rounds)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as room:
        folder = Path(room, "table")
        folder.mkdir()
        write_table(folder, given.rows)
        print(f"{given.rows:,} rows of {COLUMNS} columns, {given.rounds} rounds")
        for how in ("files",) if given.skip_memory else ("memory", "files"):
            command = [sys.executable, __file__, "--fit", how, "--folder", str(folder), "--rounds", str(given.rounds)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            gib = {name: f"{found[name] / 2**30:.2f} GiB" for name in ("VmRSS", "RssAnon")}
            a_row = found["RssAnon"] / given.rows
            print(
                f"  {how:<7} {found['seconds']:7.1f} s, {1e9 * found['seconds_a_round'] / given.rows:6.1f} ns a row "
                f"and round; held at most {gib['VmRSS']}, own {gib['RssAnon']} ({a_row:.0f} bytes a row); "
                f"{found['print']}"
            )


if __name__ == "__main__":
    main()
