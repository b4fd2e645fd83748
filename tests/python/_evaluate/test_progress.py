"""What a study shows while it runs: a line on a terminal, on a simulated clock and on a pseudo-terminal."""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import spinney._evaluate.progress as progress
from spinney._evaluate.progress import EvaluationProgress, StatusLine
from spinney._evaluate.runner import Budget
from spinney.datasets import load_penguins

LEFT = re.compile(r"at most (\d+):(\d\d) left")
unix = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")


def seconds_left(line):
    return sum(int(part) * factor for part, factor in zip(LEFT.search(line).groups(), (60, 1), strict=True))


@pytest.fixture
def now(monkeypatch):
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress, "clock", SimpleNamespace(monotonic=lambda: clock.seconds))
    return clock


def test_the_line_counts_down_between_steps(now):
    status = StatusLine()
    assert "at most" not in status.line(now.seconds + 3)
    status(1, 10, "boosting, fold 1 of 5", 60.0)
    assert [seconds_left(status.line(now.seconds + k)) for k in (0, 1, 30, 70)] == [60, 59, 30, 0]
    assert "boosting, fold 1 of 5  0:30, at most 0:30 left" in status.line(now.seconds + 30)
    assert status.line(now.seconds + 30).count("█") == 10


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_line_fits_the_terminal(now, width):
    status = StatusLine()
    status(1, 10, "a model with a long name " * 5, 4000.0)
    assert len(status.line(now.seconds + 5000, width)) < width


def test_the_time_left_never_rises_by_more_than_a_tenth(now):
    status, random = StatusLine(), np.random.default_rng(0)
    status(1, 10, "first", 100.0)
    for _ in range(200):
        before = status._end - now.seconds
        status(1, 10, "next", float(random.uniform(0, 300)))
        assert status._end - now.seconds <= max(0.0, 1.1 * before) + 1e-9
        now.seconds += float(random.uniform(0, 0.5))


def test_the_time_left_includes_the_report(now):
    status = StatusLine()
    status.spare = 20.0
    status(1, 10, "forest", 30.0)
    assert seconds_left(status.line(now.seconds)) == 50


def test_nothing_is_shown_in_a_pipe(capsys, monkeypatch):
    monkeypatch.setattr(progress, "is_interactive", lambda: False)
    with EvaluationProgress(None, 3, Budget(60.0)) as shown:
        shown.step("tree", 10.0)
        time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_a_notebook_shows_the_line(capsys, monkeypatch):
    monkeypatch.setattr(progress, "is_interactive", lambda: True)
    with EvaluationProgress(True, 3, Budget(60.0)) as shown:
        shown.step("tree, fold 1 of 3", 10.0)
        time.sleep(0.4)
    assert "tree, fold 1 of 3" in capsys.readouterr().err


class Terminal:
    """Runs a command on a pseudo-terminal of 80 columns, and records what it writes, and when."""

    def __init__(self, *command, until=None):
        import pty

        control, terminal = pty.openpty()
        environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
        self.written, self.times, is_sent = b"", [time.monotonic()], False
        with subprocess.Popen(
            [str(word) for word in command], stdout=terminal, stderr=terminal, env=environment, start_new_session=True
        ) as process:
            os.close(terminal)
            while select.select([control], [], [], 120)[0]:
                try:
                    self.written += os.read(control, 65536)
                except OSError:  # closed by the command
                    break
                self.times.append(time.monotonic())
                if until is not None and until in self.written and not is_sent:
                    process.send_signal(signal.SIGINT)
                    is_sent = True
            self.code = process.wait(60)
        os.close(control)

    @property
    def lines(self):
        return re.sub(rb"\x1b\]8;;[^\x1b]*\x1b\\", b"", self.written).decode().replace("\r\x1b[2K", "\n").split("\n")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    import polars as pl

    X, y = load_penguins(as_frame="polars")
    path = tmp_path_factory.mktemp("progress") / "penguins.csv"
    pl.concat([X.with_columns(species=y)] * 4).write_csv(path)
    return path


STUDY = (sys.executable, "-c", "from spinney.cli import main; main()", "study")


@unix
@pytest.mark.slow
def test_a_study_on_a_terminal_is_never_silent(table):
    out = table.parent / "whole"
    shown = Terminal(*STUDY, table, "--target", "species", "--out", out, "--minutes", "0.2")
    assert shown.code == 0, shown.lines[-20:]
    first = next(k for k, line in enumerate(shown.lines) if "reading the table" in line)
    assert first < 5
    gaps = [b - a for a, b in itertools.pairwise(shown.times[2:])]
    assert max(gaps) < 1.5  # a second, on a busy machine
    status = [line for line in shown.lines if LEFT.search(line)]
    assert max(map(len, status)) < 80
    left = [seconds_left(line) for line in status]
    assert all(after <= 1.1 * before + 1 for before, after in itertools.pairwise(left))
    assert any("writing the report" in line for line in status)
    board = [line for line in shown.lines if line.count(" ± ") in (1, 2)]
    assert len(board) >= 3
    assert max(len(line.rstrip("\r")) for line in board) <= 80
    assert f"\x1b]8;;{(out / 'report.html').resolve().as_uri()}\x1b\\".encode() in shown.written
    assert json.loads((out / "study.json").read_text())["seconds"] >= 0.8 * (shown.times[-1] - shown.times[1])


@unix
@pytest.mark.slow
@pytest.mark.parametrize("step", [b"forest, fold 1 of 5", b"all training rows", b"all rows"])
def test_an_interrupted_study_keeps_what_is_done_and_ends_with_130(table, step):
    out = table.parent / f"interrupted {step.decode()}"
    models = ("--model", "tree", "--model", "forest", "--repeats", "1")
    shown = Terminal(*STUDY, table, "--target", "species", "--out", out, *models, until=step)
    assert shown.code == 130, shown.lines[-20:]
    results = json.loads((out / "study.json").read_text())
    assert {"tree", "baseline"} <= {entry["model"] for entry in results["leaderboard"]}
    assert (out / "best.model").exists()


@unix
@pytest.mark.slow
def test_a_study_in_python_shows_a_line(table):
    code = f"import polars, spinney; spinney.study(polars.read_csv({str(table)!r}), 'species', minutes=0.2)"
    shown = Terminal(sys.executable, "-c", code)
    assert shown.code == 0
    assert any(LEFT.search(line) for line in shown.lines)
    assert shown.lines[-1].strip() == ""
