"""The schedule of a study, on a clock that only the simulated fits advance."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from sklearn.base import clone
from spinney import GradientBoostingRegressor
from spinney._evaluate import runner
from spinney._evaluate.study.plan import EFFORTS, LIGHTER, Size, lightened, make_plan
from spinney._evaluate.study.plan import work_of as planned_work
from spinney._evaluate.study.schedule import PROBE_ROWS, REFIT, REFIT_ALL, Action, Job, Schedule

N_FOLDS = 5
PER_ROW = {"quick": 1, "boosting": 10, "linear": 1, "forest": 5, "svm": 0.02}  # millionths of a second; svm: squared


def work_of(name):
    power = 2 if name == "svm" else 1
    return lambda rows: 1e-6 * PER_ROW[name] * (rows + 1000) ** power


def jobs_of(n_rows):
    family = {"quick": "boosting"}
    return [
        Job(name, family.get(name, name), work_of(name), n_rows, leads=name == "boosting", gain=1.0) for name in PER_ROW
    ]


class Machine:
    """Runs a schedule; a fit takes its work times the slowness of its family at that time."""

    def __init__(self, n_rows, seconds, slowness=lambda name, now: 1.0, failing=(), whole=1.0):
        self.schedule = Schedule(jobs_of(n_rows), N_FOLDS, seconds, whole)
        self.now, self.seconds, self.slowness, self.failing = 0.0, seconds, slowness, failing
        self.actions, self.timed, self.shown = [], set(), []
        while (action := self.schedule.next(self.left)) is not None:
            self.actions.append((action.job.name, action.rows, action.is_probe))
            assert len(self.actions) < 100
            self.run(action)
        for job in self.schedule.jobs:  # the final fits
            if job.rows:
                self.now += REFIT / 1.1 * self.fit(job, job.rows) + REFIT_ALL / 1.1 * self.fit(job, job.rows)

    @property
    def left(self):
        return self.seconds - self.now

    def fit(self, job, rows):
        return job.work(rows) * self.slowness(job.name, self.now)

    def run(self, action):
        job = action.job
        for n in range(1 if action.is_probe else N_FOLDS):
            if n and job is not self.schedule.jobs[0] and not self.schedule.can_go_on(action, N_FOLDS - n, self.left):
                return
            if job.name in self.failing:
                job.has_failed = True
                return
            took = self.fit(job, action.rows)
            self.now += took
            self.timed.add(job.name)
            self.schedule.learn(job, action.rows, took)
            self.shown.append(self.schedule.ahead(self.left))
        if not action.is_probe:
            job.rows = action.rows

    @property
    def rows(self):
        return {job.name: job.rows for job in self.schedule.jobs}


def test_all_models_get_all_rows_if_there_is_time():
    found = Machine(10_000, 60)
    assert found.actions[:2] == [("quick", 10_000, False), ("boosting", 10_000, False)]
    assert set(found.rows.values()) == {10_000}
    assert not any(is_probe for *_, is_probe in found.actions)
    assert all(left <= found.seconds for left in found.shown)


@pytest.mark.parametrize("n_rows", [50_000, 300_000, 1_000_000])
@pytest.mark.parametrize("busy", [1.0, 3.0])
def test_slow_tables_end_in_time_and_use_it(n_rows, busy):
    found = Machine(n_rows, 120, lambda name, now: busy)
    assert found.rows["quick"] == n_rows
    assert found.now <= 1.05 * found.seconds
    if min(found.rows.values()) < n_rows:
        assert found.now >= 0.8 * found.seconds
    untimed = set(PER_ROW) - found.timed
    assert not untimed


def test_a_model_is_left_out_only_after_it_was_timed():
    found = Machine(300_000, 60)
    assert ("svm", PROBE_ROWS, True) in found.actions
    assert 0 < found.rows["svm"] < 300_000
    fewer = {name for name, rows, is_probe in found.actions if rows < 300_000 and not is_probe}
    assert fewer <= {"boosting", "forest", "svm"}


def test_the_pace_is_learned_by_family():
    """A slow forest does not make the linear model seem slow."""
    found = Machine(100_000, 60, lambda name, now: 20.0 if name == "forest" else 1.0)
    assert found.rows["linear"] == found.rows["boosting"] == 100_000
    assert found.rows["forest"] < 100_000
    assert found.now <= 1.05 * found.seconds


def test_a_small_table_is_timed_too_where_the_estimate_is_far_too_long():
    """The estimate of a linear model with many categories is a hundred times its time."""
    schedule = Schedule(jobs_of(800), N_FOLDS, 60.0)
    for job in schedule.jobs:
        if job.name == "linear":
            job.work = lambda rows: 0.1 * (rows + 1000)
        else:
            job.rows = 800
    action = schedule.next(50.0)
    assert (action.job.name, action.is_probe) == ("linear", True)
    assert action.rows < 800
    schedule.learn(action.job, action.rows, 0.01)
    assert schedule.next(49.0).rows == 800


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_a_pace_that_changes_midway_is_noticed(factor):
    found = Machine(200_000, 120, lambda name, now: 1.0 if now < 30 else factor)
    assert found.rows["quick"] == 200_000
    assert found.now <= 1.05 * found.seconds or factor > 1  # the fit that was running takes longer
    assert found.now <= 1.25 * found.seconds


def test_a_model_that_fails_is_not_tried_again():
    found = Machine(100_000, 60, failing=("forest", "quick"))
    assert [name for name, *_ in found.actions].count("forest") == 1
    assert found.rows["forest"] == found.rows["quick"] == 0
    assert found.rows["boosting"] > 0


def test_the_final_fit_to_all_rows_of_a_sampled_table_has_time():
    plain, sampled = Machine(20_000, 30), Machine(20_000, 30, whole=20.0)
    lead = sampled.schedule.jobs[1]
    assert lead.rows == 20_000
    assert sampled.schedule.reserve >= min(20 * REFIT_ALL * lead.timed[1], 0.3 * 30)
    assert sampled.schedule.reserve > plain.schedule.reserve
    assert sampled.rows["svm"] < plain.rows["svm"]


def test_without_time_the_first_model_alone_runs():
    found = Machine(10_000, 1e-6)
    assert {name for name, *_ in found.actions} == {"quick"}


def test_a_first_model_that_is_far_too_slow_gets_fewer_rows():
    schedule = Schedule([Job("svm", "svm", lambda rows: 4e-7 * rows * rows, 8000)], N_FOLDS, 3.0)
    action = schedule.next(3.0)
    assert action.is_probe
    assert action.rows < 2000
    schedule.learn(action.job, action.rows, 4e-7 * action.rows**2)
    action = schedule.next(2.9)
    assert not action.is_probe
    assert schedule.cost(action.job, action.rows) <= 3.0


@pytest.mark.parametrize("whole", [1.0, 10.0])
@pytest.mark.parametrize("name", ["quick", "boosting", "linear"])
def test_limits_of_fits_in_rounds_leave_time_for_the_other_folds_and_the_final_fits(whole, name):
    """A model that would take for ever is cut on each fold, and is finished in time."""
    schedule = Schedule(jobs_of(100_000), N_FOLDS, 60.0, whole)
    job = next(job for job in schedule.jobs if job.name == name)
    action, left, limits = Action(job, job.n_rows), 60.0, []
    for n in range(N_FOLDS, 0, -1):
        limits.append(schedule.limit(action, n, left))
        left -= limits[-1]
        schedule.learn(job, job.n_rows, limits[-1])
    job.rows = job.n_rows
    assert min(limits) >= 1
    assert schedule.reserve <= left


def test_a_leading_model_gets_more_rows_before_others_start():
    schedule = Schedule(jobs_of(50_000), N_FOLDS, 60.0)
    quick, boosting = schedule.jobs[:2]
    for job, seconds in ((quick, 0.1), (boosting, 0.2)):
        schedule.learn(job, job.n_rows // 10, seconds)
        job.rows = job.n_rows // 10 if job is boosting else job.n_rows
    action = schedule.next(50.0)
    assert (action.job, action.rows) == (boosting, 50_000)


def test_a_limit_counts_rounds_and_foresees_the_others(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(runner, "clock", SimpleNamespace(monotonic=lambda: now.seconds))
    limit = runner.RoundLimit(runner.Budget(1000.0).first(10.0))

    def advance(seconds, done):
        now.seconds += seconds
        return limit({"round": done, "n_estimators": 50})

    assert not advance(4.0, 1)  # the preparation, and a round
    assert not any(advance(0.5, k) for k in range(2, 14))
    assert limit.done == 1.0
    assert limit.cut_seconds == 0.0
    assert advance(0.5, 14)
    assert limit.done == 14 / 50
    assert limit.cut_seconds == pytest.approx(0.5 * 36)
    assert clone(GradientBoostingRegressor(callbacks=[limit])).callbacks == [limit]


@pytest.mark.parametrize(("pace", "is_too_slow"), [(0.1, False), (1.0, True)])
def test_a_fit_that_is_too_slow_is_ended_early(monkeypatch, pace, is_too_slow):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(runner, "clock", SimpleNamespace(monotonic=lambda: now.seconds))
    limit = runner.RoundLimit(runner.Budget(20.0), least=0.75)
    for done in range(1, 51):
        now.seconds += pace
        if limit({"round": done, "n_estimators": 50}):
            break
    assert limit.is_too_slow == limit.is_reached == is_too_slow
    assert now.seconds <= 5.0


def test_a_fit_whose_first_round_takes_long_is_ended_early(monkeypatch):
    """On a starved machine the preparation and a round take a third of the time."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(runner, "clock", SimpleNamespace(monotonic=lambda: now.seconds))
    limit = runner.RoundLimit(runner.Budget(20.0), least=0.75)
    now.seconds = 6.0
    assert limit({"round": 1, "n_estimators": 50})
    assert limit.is_too_slow


@pytest.mark.parametrize("pace", [0.01, 1.0, 20.0, 1000.0])
def test_boosting_is_as_light_as_the_time_requires(pace):
    size = Size(100_000, 10, 10, 2)
    plan = make_plan(size, 120.0, None, 5, None)
    light = lightened(plan, size, pace, 120.0)
    seconds = pace * planned_work("boosting", size.of(125_000), light.effort)
    assert light.effort.relative <= plan.effort.relative
    assert seconds <= 66 or light.effort == LIGHTER[-1]
    if light.effort != plan.effort:
        assert pace * planned_work("boosting", size.of(125_000), plan.effort) > 66


def test_settings_of_less_effort_take_less_time():
    efforts = [EFFORTS[0], *LIGHTER]
    assert [one.relative for one in efforts] == sorted((one.relative for one in efforts), reverse=True)
    assert LIGHTER[-1].settings("boosting") == {"effort": 0.0, "early_stopping": True}
