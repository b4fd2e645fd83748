"""Clocks that jump: durations and time limits are measured by a clock that nobody can set."""

import pickle
import platform
import random
import re
import time
from pathlib import Path

import numpy as np
import pytest
import spinney
from fuzzing.cycles import jumping_clocks
from spinney._evaluate import runner
from spinney._evaluate.runner import Budget

ROOT = Path(__file__).resolve().parents[3]
RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


class JumpingClock:
    """A time of day that jumps by a day at every look, forward and back."""

    def __init__(self):
        self.now, self.step = 1e9, 86_400.0

    def __call__(self):
        self.step = -2.0 * self.step if abs(self.step) < 1e9 else 86_400.0
        self.now += self.step
        return self.now


@pytest.fixture
def jumping_clock(monkeypatch):
    monkeypatch.setattr(time, "time", JumpingClock())


def test_a_budget_does_not_follow_the_time_of_day(jumping_clock):
    budget = Budget(60.0)
    time.time()
    assert 59 < budget.left <= 60
    assert not budget.is_over()


def test_an_evaluation_within_a_time_limit_does_not_follow_the_time_of_day(jumping_clock):
    models = {"tree": spinney.DecisionTreeClassifier(max_depth=2), "linear": spinney.LinearClassifier()}
    compared = spinney.compare(models, X, Y, cv=3, minutes=1.0)
    assert compared.unfinished == []
    assert all(0 <= seconds < 60 for seconds in np.ravel(compared.fit_seconds))


@pytest.mark.parametrize("names", [["time"], ["time", "monotonic", "perf_counter"]], ids=len)
def test_a_study_ends_with_a_result_whatever_the_clocks_do(names):
    """Clocks that jump forward end a study early, and those that jump back prolong it."""
    table = {f"x{j}": X[:, j] for j in range(3)} | {"y": np.where(Y == 1, "yes", "no")}
    with jumping_clocks(random.Random(1), 1e4, names):
        study = spinney.study(table, "y", minutes=0.05)
    assert "Predicting y (2 classes)" in str(study)
    assert len(study.model.predict(table)) == len(Y)


def test_a_budget_is_sent_to_other_processes_by_the_clock_they_share(monkeypatch):
    began = time.monotonic()
    budget = Budget(60.0, began - 20.0)
    sent, at = pickle.dumps(budget), time.time()
    for jump in (-86_400.0, 86_400.0):
        monkeypatch.setattr(time, "time", lambda jump=jump: at + jump)
        assert pickle.loads(sent).left == pytest.approx(40.0, abs=5.0)


def test_a_wrong_time_of_day_on_another_machine_adds_no_time(monkeypatch):
    sent, at = pickle.dumps(Budget(60.0, time.monotonic() - 20.0)), time.time()
    monkeypatch.setattr(platform, "node", lambda: "another machine")
    monkeypatch.setattr(time, "time", lambda: at - 86_400.0)
    assert 30.0 < pickle.loads(sent).left <= 40.0
    monkeypatch.setattr(time, "time", lambda: at + 10.0)
    assert 20.0 < pickle.loads(sent).left <= 30.5


@pytest.mark.parametrize("folder", ["python/spinney", "cpp", "bindings"])
def test_no_duration_is_measured_by_the_time_of_day(folder):
    settable = re.compile(
        r"(time|clock)\.time\(|datetime\.now|system_clock|gettimeofday|CLOCK_REALTIME|high_resolution_clock"
    )
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".h", ".cpp")
        for line in path.read_text(encoding="utf-8").splitlines()
        if settable.search(line)
    ]
    assert len(found) == 2 * (folder == "python/spinney"), found
    assert all(line.startswith("runner.py") for line in found), found  # budgets sent between machines


def test_the_budget_uses_the_monotonic_clock(monkeypatch):
    budget = Budget(10.0)
    later = time.monotonic() + 11
    monkeypatch.setattr(runner.clock, "monotonic", lambda: later)
    assert budget.is_over()
