"""Boosting of a table in files and in memory: bit-identical models, time and memory.

Usage: ``python benchmarks/out_of_core.py [--rows N] [--columns N] [--rounds N] [--folder F] [--skip-memory]
[--memory SIZE] [--model boosting|forest|tree]``. Writes a table of float32 to Parquet files of a million rows, side by
side, and fits it both ways, each in a separate process. Memory is what the process held at most, files that are
mapped included, and what of it was its own (anonymous): in all, with the buffers of the Parquet reader, and in the
rounds after the first, also in bytes a row beyond what the process held before it read a row. ``--memory`` is what a
scan may hold of its files. The processors' time is of all threads, in the engine and in the system.

Forty million rows, 13 GB of disk and 15 GB of memory (without ``--skip-memory``)::

    python benchmarks/out_of_core.py --rows 40000000 --rounds 6 --memory 256MB
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

FILE_ROWS = 1_000_000


def write_table(folder: Path, n_rows: int, n_columns: int = 28) -> None:
    """Write Parquet files of columns of float32, of which the first four decide the target."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(i: int) -> None:
        rng = np.random.default_rng(i)
        n = min(FILE_ROWS, n_rows - i * FILE_ROWS)
        values = rng.standard_normal((n_columns, n), dtype=np.float32)
        score = values[0] * values[1] + np.sin(2 * values[2]) + values[3] + 0.5 * rng.standard_normal(n)
        columns = {f"x{j}": values[j] for j in range(n_columns)} | {"y": (score > 0).astype(np.int8)}
        pq.write_table(pa.table(columns), folder / f"part{i:04}.parquet", row_group_size=250_000)

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        list(threads.map(write, range(-(-n_rows // FILE_ROWS))))


class MemoryWatch:
    """Looks at what the process holds, at once and every 20 ms."""

    def __init__(self) -> None:
        self.most = {"VmRSS": 0, "RssAnon": 0, "RssAnonInRounds": 0}
        self.in_rounds = False
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
                self.most[name] = max(self.most[name], held := int(rest.split()[0]) << 10)
                if name == "RssAnon" and self.in_rounds:
                    self.most["RssAnonInRounds"] = max(self.most["RssAnonInRounds"], held)

    def stop(self) -> dict[str, int]:
        """Return the most that was held, in bytes."""
        self._done.set()
        self._thread.join()
        return self.most


class Clock:
    """The time after each round of boosting, on the wall and of all processors."""

    def __init__(self, watch: MemoryWatch) -> None:
        self.at: list[tuple[float, float, float]] = []
        self._watch = watch

    def __call__(self, _: Any) -> None:
        """Note the time; the rounds after the first one are watched apart."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.at.append((time.perf_counter(), used.ru_utime, used.ru_stime))
        self._watch.in_rounds = True

    def found(self, began: float) -> dict[str, float]:
        """Return seconds to the first round, and of a round."""
        if len(self.at) < 2:
            return {}
        wall, user, system = ((b - a) / (len(self.at) - 1) for a, b in zip(self.at[0], self.at[-1], strict=True))
        first = self.at[0][0] - began
        return {"to_first_round": first, "a_round": wall, "a_round_engine": user, "a_round_system": system}


def make_model(name: str, n_rounds: int, clock: Clock) -> Any:
    """Return a model of two classes."""
    import spinney

    if name == "forest":
        return spinney.RandomForestClassifier(n_rounds, max_bins=255, min_samples_leaf=20, random_state=0)
    if name == "tree":
        return spinney.DecisionTreeClassifier(max_bins=255, min_samples_leaf=20)
    return spinney.GradientBoostingClassifier(n_estimators=n_rounds, max_leaf_nodes=31, callbacks=clock)


def fit(how: str, folder: str, n_rounds: int, memory: str, name: str) -> dict[str, Any]:
    """Fit in this process, by rounds enough to tell what a round takes from what reading does."""
    import pyarrow.parquet as pq
    import spinney

    for file in sorted(Path(folder).iterdir())[:1]:  # what the reader keeps for itself is no part of a fit
        next(pq.ParquetFile(file).iter_batches(batch_size=65_536))
    before = MemoryWatch().stop()["RssAnon"]
    began = time.perf_counter()
    if how == "memory":
        table = pq.read_table(folder)
        rows = (table.drop_columns("y"), table["y"].to_numpy())
        del table
    else:
        rows = (spinney.scan(folder, folder=str(Path(folder).parent), memory=memory), "y")
    watch = MemoryWatch()
    clock = Clock(watch)
    model = make_model(name, n_rounds, clock).fit(*rows)
    found = {"seconds": time.perf_counter() - began, "before": before, **watch.stop(), **clock.found(began)}
    return {"print": model.fingerprint()[:16], **found}


def line(how: str, found: dict[str, Any], n_rows: int) -> str:
    """Say in a line what was found."""
    text = f"  {how:<7} {found['seconds']:7.1f} s"
    if "a_round" in found:
        ns = {name: 1e9 * found[name] / n_rows for name in ("a_round", "a_round_engine", "a_round_system")}
        text += f", {found['to_first_round']:.1f} s to the first round, {ns['a_round']:.1f} ns a row and round "
        text += f"(processors: {ns['a_round_engine']:.1f} in the engine, {ns['a_round_system']:.1f} in the system)"
    text += f"; held at most {found['VmRSS'] / 1e9:.2f} GB, own {found['RssAnon'] / 1e9:.2f} GB"
    own = found["RssAnonInRounds"] or found["RssAnon"]
    text += f", {'in the rounds ' if found['RssAnonInRounds'] else ''}{own / 1e9:.2f} GB"
    return f"{text} ({(own - found['before']) / n_rows:.0f} bytes a row); {found['print']}"


def main() -> None:
    """Write the table, fit both ways, print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=28)
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
        began = time.perf_counter()
        write_table(folder, given.rows, given.columns)
        seconds = time.perf_counter() - began
        print(f"{given.rows:,} rows of {given.columns} columns, written in {seconds:.0f} s; {given.model}", flush=True)
        all_found = {}
        for how in ("files",) if given.skip_memory else ("memory", "files"):
            command = [sys.executable, __file__, "--fit", how, "--folder", str(folder), "--rounds", str(given.rounds)]
            command += ["--memory", given.memory, "--model", given.model]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            all_found[how] = found
            print(line(how, found, given.rows), flush=True)
        if len(all_found) == 2:
            memory, files = all_found["memory"], all_found["files"]
            what = "a_round" if "a_round" in memory else "seconds"
            same = "the same" if memory["print"] == files["print"] else "NOT THE SAME"
            print(f"  in files {files[what] / memory[what]:.2f} times the time in memory; {same} bits")


if __name__ == "__main__":
    main()
