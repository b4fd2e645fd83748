"""Peak memory of one fit above the data, in a separate process.

Usage: ``python benchmarks/memory.py LIBRARY KIND ROWS N_JOBS`` prints MiB; LIBRARY is spinney or sklearn,
KIND is classifier or regressor. Needs Linux: the kernel keeps the high-water mark, and forgets it on request.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
from models import make


def peak_of_fit(library: str, kind: str, n_rows: int, n_jobs: int) -> float:
    """Start this program for one fit and return the MiB it prints."""
    command = [sys.executable, __file__, library, kind, str(n_rows), str(n_jobs)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def fit_and_report(library: str, kind: str, n_rows: int, n_jobs: int) -> float:
    """Fit once here. What imports, data and a first small fit need is there before the mark is reset."""
    table = data.numbers(kind, n_rows, seed=0, n_test=0)
    make(library, kind, n_jobs).fit(table.X[:200], table.y[:200])
    model = make(library, kind, n_jobs)
    return measured_peak(lambda: model.fit(table.X, table.y))


def measured_peak(action: Callable[[], Any]) -> float:
    """Call `action` and return by how many MiB the memory rose at its highest."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # freed pages still held by the allocator would hide part of the growth
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    kept = action()
    peak = _status("VmHWM")
    del kept
    return (peak - before) / 1024


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise LookupError(f"/proc/self/status has no line '{name}'.")


if __name__ == "__main__":
    print(fit_and_report(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
