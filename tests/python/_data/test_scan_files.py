"""The temporary files of streams: they have no names, and a full disk or damage is a clear error."""

from __future__ import annotations

import gc
import os
import re
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest
import spinney
from scanned import FEATURES, FRAME, pieces
from spinney import DecisionTreeRegressor, ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from spinney._data import spool
from spinney._engine import Checksums

MODELS = [
    GradientBoostingRegressor(n_estimators=2),
    RandomForestRegressor(2, max_bins=20, random_state=0),
    ExtraTreesRegressor(2, random_state=0),
    DecisionTreeRegressor(max_bins=20),
]


@pytest.mark.parametrize(
    "model",
    [*MODELS[:2], *(pytest.param(model, marks=pytest.mark.slow) for model in MODELS[2:])],
    ids=lambda model: type(model).__name__,
)
def test_of_damaged_files_no_model_is_made(model, monkeypatch):
    mapped, n_mapped = spool._File.mapped, 0

    def damaged(file, spill):
        nonlocal n_mapped
        n_mapped += 1
        if n_mapped == 2:  # one bit, in the middle of the second column
            file._file.seek(file.n_bytes // 2)
            byte = file._file.read(1)[0]
            file._file.seek(-1, 1)
            file._file.write(bytes([byte ^ 4]))
        return mapped(file, spill)

    monkeypatch.setattr(spool._File, "mapped", damaged)
    model.__dict__.pop("schema_", None)
    with pytest.raises(RuntimeError, match="has changed since it was written, so the fit was stopped"):
        model.fit(pieces([*FEATURES, "y"], 300), "y")
    assert not hasattr(model, "schema_")


def _files_of_codes() -> list[str]:
    """Return the files that are open and have no name."""
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return [link for link in links if os.path.islink(link) and "/spinney-" in os.readlink(link)]


@pytest.mark.skipif(sys.platform != "linux", reason="finds files without a name in /proc")
@pytest.mark.parametrize("size", [2 * 5056 + 4, 8 * 5000 + 8], ids=["by column", "by row"])
def test_of_damaged_codes_no_model_is_made(size, tmp_path):
    rows = {"a": np.arange(5000.0), "b": np.arange(5000.0) % 9, "y": np.arange(5000.0) % 7}
    before = {os.stat(name).st_ino for name in _files_of_codes()}
    damaged: list[str] = []

    def damage(_: object) -> None:
        if damaged:
            return
        new = [name for name in _files_of_codes() if os.stat(name).st_ino not in before]
        damaged.extend(name for name in new if os.stat(name).st_size == size)
        assert len(damaged) == 1, [os.stat(name).st_size for name in new]
        with open(damaged[0], "r+b") as file:
            file.seek(4000)
            byte = file.read(1)[0]
            file.seek(4000)
            file.write(bytes([byte ^ 1]))

    model = GradientBoostingRegressor(n_estimators=2, callbacks=damage)
    with pytest.raises(RuntimeError, match="has changed since it was written, so the fit was stopped"):
        model.fit(spinney.scan([rows], folder=str(tmp_path)), "y")
    assert not hasattr(model, "schema_")


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
@pytest.mark.parametrize("when", ["never", "while it reads", "in a round"])
def test_a_fit_that_is_interrupted_leaves_no_files_behind(when, tmp_path):
    def rows():
        yield {"a": np.arange(1000.0), "y": np.arange(1000.0) % 7}
        if when == "while it reads":
            raise KeyboardInterrupt

    def in_a_round(_: object) -> None:
        assert _files_of_codes()
        if when == "in a round":
            raise KeyboardInterrupt

    def fit() -> None:
        GradientBoostingRegressor(n_estimators=2, callbacks=in_a_round).fit(
            spinney.scan(rows, folder=str(tmp_path)), "y"
        )

    if when == "never":
        fit()
    else:
        with pytest.raises(KeyboardInterrupt):
            fit()
    gc.collect()
    assert not _files_of_codes()
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_cut_off_is_refused(monkeypatch):
    mapped = spool._File.mapped

    def cut_off(file, spill):
        file._file.truncate(file.n_bytes - 1)
        return mapped(file, spill)

    monkeypatch.setattr(spool._File, "mapped", cut_off)
    with pytest.raises(RuntimeError, match="is shorter than expected"):
        pieces(["a", "y"], 300).spooled()


def test_checksums_see_every_byte_and_no_pieces():
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 256, 2**20 + 77, dtype=np.uint8)

    def sums(values, *ends):
        found = Checksums()
        for part in np.split(values, ends):
            found.add(part)
        return found.finish()

    known = sums(numbers)
    assert len(known) == 2
    assert known == sums(numbers, 1, 5, 100, 131, 4096, 2**20 - 3, 2**20 + 9)
    for place in (0, 31, 32, 1000, 2**20 - 1, 2**20, len(numbers) - 1):
        other = numbers.copy()
        other[place] ^= 1
        changed = sums(other)
        assert [a == b for a, b in zip(known, changed, strict=True)] == [place >= 2**20, place < 2**20]
    assert sums(np.zeros(40, np.uint8)) != sums(np.zeros(41, np.uint8))


@pytest.mark.parametrize(
    ("most", "error", "words"),
    [(1000, OSError, "is too small for the uncompressed columns"), (3000, RuntimeError, "cannot make a file of")],
)
def test_a_full_disk_is_a_clear_error_and_leaves_nothing(most, error, words, tmp_path):
    frame = FRAME[["a", "b", "i", "f", "y"]].astype("float32").fillna(0)
    table = spinney.scan([frame[:100], frame[100:]], folder=str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        with pytest.raises(error, match=words) as caught:
            GradientBoostingRegressor(n_estimators=2).fit(table, "y")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(tmp_path) in str(caught.value)
    assert "with more free space" in str(caught.value)
    assert re.search(r"[1-9][\d,]* bytes", str(caught.value))
    assert not list(tmp_path.iterdir())


CHILD = """
import sys, time
import numpy as np, spinney

def rows():
    yield {"a": np.arange(1000.0), "y": np.arange(1000.0) % 7}

def more_rows():
    yield from rows()
    print("in the middle", flush=True)
    time.sleep(600)

def in_a_round(_):
    spinney.scan(more_rows, folder=sys.argv[1]).spooled()

model = spinney.GradientBoostingRegressor(n_estimators=5, callbacks=in_a_round)
model.fit(spinney.scan(rows, folder=sys.argv[1]), "y")
"""


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_nothing(tmp_path):
    with subprocess.Popen([sys.executable, "-c", CHILD, tmp_path], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "in the middle\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())
