"""A day of work compressed into many short runs: fits, files, scans and interrupts leave nothing behind."""

import gc
import io
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import spinney

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="counts what is open in /proc"),
]
RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 4))
VALUES = X[:, 0] + RNG.normal(size=300) / 3
CLASSES = np.digitize(VALUES, [-0.5, 0.5])
MODELS = {
    "forest": lambda: spinney.RandomForestClassifier(10, random_state=0).fit(X, CLASSES),
    "boosting": lambda: spinney.GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, VALUES),
    "folds": lambda: spinney.GradientBoostingClassifier(effort=0.1, random_state=0).fit(X, CLASSES),
    "svc": lambda: spinney.SVC().fit(X, CLASSES),
    "stack": lambda: spinney.StackingRegressor(["tree", "linear"], cv=3, random_state=0).fit(X, VALUES),
    "neighbours": lambda: spinney.KNeighborsRegressor().fit(X, VALUES),
}


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def left_behind(folder):
    """What a run may leave open: files, threads, and files in its folder."""
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "python threads": threading.active_count(),
        "files": sorted(path.name for path in folder.iterdir()),
    }


def interrupted(seconds):
    """Fit until Ctrl-C, which a timer sends; the checkpoint is removed by the fit that resumes it."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        spinney.RandomForestRegressor(100_000, random_state=0).fit(X, VALUES)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


def turn(k, folder, fingerprints):
    """One short run of everything; its models have the bits of the first."""
    for name, make in MODELS.items():
        model = make()
        assert fingerprints.setdefault(name, model.fingerprint()) == model.fingerprint(), name
        path = folder / f"{name}.spinney"
        model.save(path)
        again = spinney.load(path) if k % 2 else pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X[:20]), model.predict(X[:20]))
        with pytest.raises(spinney.ModelFileError):
            spinney.load(io.BytesIO(path.read_bytes()[:-9]))
        path.unlink()
    table = folder / "table.parquet"
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({f"x{j}": X[:, j] for j in range(4)}), table)
    spinney.DecisionTreeRegressor(max_depth=2, max_bins=255).fit(spinney.scan(table), VALUES)
    table.unlink()
    checkpoint = folder / "rounds"
    fit = {"checkpoint": checkpoint}
    spinney.GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, VALUES, **fit)
    assert interrupted(0.02 + 0.01 * (k % 5))


def test_many_short_runs_leave_nothing_behind(tmp_path):
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        fingerprints = {}
        for k in range(6):  # fills caches and the pool of threads
            turn(k, tmp_path, fingerprints)
        before, memory = left_behind(tmp_path), resident()
        until, n_turns = time.monotonic() + 60, 0
        while n_turns < 30 or (time.monotonic() < until and n_turns < 400):
            turn(n_turns, tmp_path, fingerprints)
            n_turns += 1
        assert left_behind(tmp_path) == before
        assert resident() - memory < 50e6, f"{(resident() - memory) / 1e6:.0f} MB more after {n_turns} turns"
    finally:
        signal.signal(signal.SIGALRM, handler)
