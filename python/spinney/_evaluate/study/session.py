"""The cross-validation of a study: plan, folds, models, stack."""

from __future__ import annotations

import signal
import threading
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from spinney._data.display import plural
from spinney._estimator.estimator import Estimator
from spinney._estimator.held_out import Fold
from spinney._estimator.parallel import is_distributed, run_distributed
from spinney._evaluate import runner
from spinney._evaluate.folds import LARGEST_SEED, TEST_FRACTION, draw_folds, n_folds_of
from spinney._evaluate.problem import BASELINE, baseline_of, read_models
from spinney._evaluate.progress import EvaluationProgress
from spinney._evaluate.scoring import DEFAULT_METRICS, Scorers, describe_error
from spinney._evaluate.study.columns import Columns, screened
from spinney._evaluate.study.combine import MOST_STACK_ROWS, HeldOut, stacked
from spinney._evaluate.study.plan import (
    GAINS,
    LEAD,
    LOG_BOOSTING,
    STACK,
    Plan,
    Size,
    estimator_for,
    family_of,
    lightened,
    make_plan,
    peer_candidates,
    rows_to_study,
    work_of,
)
from spinney._evaluate.study.prepare import Prepared, StudyOptions
from spinney._evaluate.study.schedule import Action, Job, Schedule

_FEWEST_FOLDS = 2  # run even without time left
_ROWS_TO_TIME = 5000  # of the first fit to a table with twice as many rows, or more
_MANY_TO_TIME = 20_000  # if the table has several times as many: boosting has other settings then
_TIMING = 0.05  # of the time limit, for that fit
_CLOSING = 4e-6  # seconds per row, class, model and fold of the stack, scores and intervals
_MOST_CLOSING = 0.2  # of the time limit
_SCORED = 2.0  # times that all scores of a model take, relative to an interval on a fold
_SPARE = 0.02  # of the time limit


class Session:
    """Plans and cross-validates the models of a study.

    Parameters
    ----------
    data : Prepared
    options : StudyOptions
    random : RandomState
    progress : EvaluationProgress
        Its budget is that of the study.
    """

    def __init__(
        self,
        data: Prepared,
        options: StudyOptions,
        random: np.random.RandomState,
        progress: EvaluationProgress,
    ) -> None:
        self.whole, self.options, self.notes = data, options, list(data.notes)
        self.seed = int(random.randint(LARGEST_SEED))
        self.progress, self.budget = progress, progress.budget
        self.scorers = Scorers.of(options.scoring, data, options.positive)
        self.scorers.check(data.y, data.codes, data.target, DEFAULT_METRICS[data.task])
        self.notes += [self.scorers.note] * bool(self.scorers.note)
        self.metrics = list(self.scorers.metrics)
        self.n_folds = n_folds_of(options.cv, data)
        columns = Columns.read(data.X)
        self.plan = self._planned(columns)
        narrowed = self._narrowed(columns)
        self.pace = self._measured_pace(narrowed)
        self.data = self._sampled(narrowed, random)
        is_test = self.data.is_test
        self.train, self.test = self.data.take(np.flatnonzero(~is_test)), self.data.take(np.flatnonzero(is_test))
        repeats = draw_folds(self.train, options.cv, self.plan.repeats, random)
        self.candidates = self._candidates()
        progress.n_fits = len(self.candidates) * (sum(map(len, repeats)) + 1) + 1
        self.runner = self.runner_of(self.train)
        self.repeats = repeats
        self.trials = [runner.Trial(candidate) for candidate in self.candidates]
        self.schedule = self._scheduled()
        self.was_interrupted = False
        self.scoring_seconds = 0.0  # of the interval of one model, as measured

    @staticmethod
    def runner_of(data: Prepared) -> runner.Runner:
        """Return the runner of some rows; folds and validation sets of the models respect groups and times."""
        return runner.Runner(replace(data, groups=None) if data.groups_are_copies else data)

    # ---- plan --------------------------------------------------------------------------------------------------------

    def _planned(self, columns: Columns) -> Plan:
        """Return the plan for the time limit."""
        data = self.whole
        n_terms = sum(max(1, len(feature.categories)) for feature in columns.features)
        n_classes = 0 if data.classes is None else len(data.classes)
        is_nonnegative = data.classes is None and bool((data.y >= 0).all())
        self.size = Size(
            round((1 - TEST_FRACTION) * data.n_rows), len(columns.names), n_terms, n_classes, is_nonnegative
        )
        words = None
        if self.options.models is not None:
            words = [one if isinstance(one, str) else name for name, one in read_models(self.options.models).items()]
            if LOG_BOOSTING in words and not is_nonnegative:
                raise ValueError(
                    f"models holds {LOG_BOOSTING!r}, which needs a numeric target without negative values, and "
                    f"{data.target!r} is not one. Leave the model out."
                )
        return make_plan(self.size, self.budget.seconds, words, self.n_folds, self.options.repeats)

    def _narrowed(self, columns: Columns) -> Prepared:
        """Choose columns of a table that is too wide for the time limit; return the remaining rows."""
        n_columns, n_all = self.plan.n_columns, len(columns.names)
        if n_columns >= n_all:
            return self.whole
        chosen, rows = screened(self.whole, self.whole.is_test, columns, n_columns, self.seed)
        self.notes.append(
            f"The table is too wide for the time limit: {n_columns:,} of its {n_all:,} columns are used, those that "
            f"predict the target best, each alone, on {self.whole.n_rows - len(rows):,} rows, which are used "
            "for nothing else. Raise minutes (--minutes) to use more columns."
        )
        self.whole = self.whole.with_columns(chosen, "Other columns predict the target better, and time is limited.")
        self.size = self.size.of(round((1 - TEST_FRACTION) * len(rows)), n_columns)
        return self.whole.take(rows)

    def _measured_pace(self, data: Prepared) -> float:
        """Return the seconds of a unit of work, by a fit of the leading model to some rows; 1 for small tables."""
        self.timed = 0  # rows of this fit
        if data.n_rows < 2 * _ROWS_TO_TIME:
            return 1.0
        lead, n_rows = self.plan.lead, _MANY_TO_TIME if data.n_rows > 2.5 * _MANY_TO_TIME else _ROWS_TO_TIME
        rows = np.sort(np.random.RandomState(self.seed).permutation(data.n_rows)[: n_rows * 5 // 4])
        is_train = np.arange(len(rows)) % 5 < 4
        model = runner.Candidate(lead, estimator_for(lead, data.task, self.plan.effort, self.seed))
        fold = Fold(np.flatnonzero(is_train), np.flatnonzero(~is_train))
        try:
            run = self.runner_of(data.take(rows)).run(model, fold, self.budget.first(_TIMING * self.budget.seconds))
        except ValueError:  # such as a rare class that is in no row of the sample
            return 1.0
        timed, size = self.size.of(n_rows), self.size
        pace = run.full_seconds / work_of(lead, timed, self.plan.effort)
        self.plan = lightened(self.plan, size, pace, self.budget.left)
        self.timed = n_rows
        return pace

    def _sampled(self, data: Prepared, random: np.random.RandomState) -> Prepared:
        """Sample the rows of a table that is too long for the time limit."""
        self.unstudied = np.empty(0, dtype=np.intp)
        n_train, self.plan = rows_to_study(self.size, self.plan, self.n_folds, self.pace, self.budget.left)
        if n_train >= self.size.n_rows:
            return data
        n_rows = round(n_train / (1 - TEST_FRACTION))
        self.notes.append(
            f"Models are compared on a random sample of {n_rows:,} of {data.n_rows:,} rows, as many as the time limit "
            "allows. Raise minutes (--minutes) to use more rows."
        )
        order = random.permutation(data.n_rows)
        chosen = order[:n_rows]
        if data is self.whole:
            self.unstudied = np.sort(order[n_rows:])
        if data.codes is not None:  # enough rows of rare classes for all folds
            order = order[~data.is_test[order]]
            first = [order[data.codes[order] == code][: 2 * self.n_folds] for code in range(self.size.n_classes)]
            chosen = np.union1d(chosen, np.concatenate(first))
            self.unstudied = np.setdiff1d(self.unstudied, chosen)
        return data.take(np.sort(chosen))

    def _candidates(self) -> list[runner.Candidate]:
        """Return the models in the order of their fits."""
        effort, task = self.plan.effort, self.whole.task
        self.default_names = set[str]()  # of models with the settings of a study
        candidates = [runner.Candidate(BASELINE, baseline_of(task), is_baseline=True)]
        for name, one in read_models(self.plan.words if self.options.models is None else self.options.models).items():
            if name in (STACK, BASELINE):
                raise ValueError(f"models holds {name!r}, which every study has. Name the models to fit without it.")
            if not isinstance(one, str) and not isinstance(one, Estimator):
                raise TypeError(
                    f"models holds {one!r:.100}, which is not an estimator of spinney. Use compare for others."
                )
            model = estimator_for(one, task, effort, self.seed, self.metrics[0]) if isinstance(one, str) else one
            if task != "regression" and not hasattr(model, "predict_proba"):
                raise ValueError(
                    f"models holds {name!r}, which has no class probabilities. A study needs them: leave it out, or "
                    "use compare."
                )
            name = one.replace("_", "-") if isinstance(one, str) else name
            self.default_names |= {name} if isinstance(one, str) else set()
            candidates.append(runner.Candidate(name, model))
        return candidates + (peer_candidates(task, self.seed) if self.options.peers else [])

    def _scheduled(self) -> Schedule:
        """Return the schedule of the models: in the given order if the caller has named them."""
        n_rows = int(np.mean([len(fold.train) for fold in self.repeats[0]]))

        def job(trial: runner.Trial) -> Job:
            def work(rows: int) -> float:
                return work_of(trial.name, self.size.of(rows), self.plan.effort)

            leads = trial.name == LEAD or trial.candidate.is_peer
            return Job(trial.name, family_of(trial.name), work, n_rows, GAINS.get(trial.name, 1.0), leads)

        jobs = [job(trial) for trial in self.trials if not trial.candidate.is_baseline]
        whole = self.whole.n_rows / self.data.n_rows
        relative = self.plan.effort.relative
        schedule = Schedule(jobs, len(self.repeats[0]), self.budget.seconds, whole, relative, self.pace)
        for one in jobs:
            if one.name == self.plan.lead and self.timed:
                schedule.learn(one, self.timed, self.pace * one.work(self.timed))
        return schedule

    # ---- the folds ---------------------------------------------------------------------------------------------------

    @property
    def left(self) -> float:
        """Seconds left for fits, without those for scores and the stack."""
        n_values = min(self.train.n_rows, MOST_STACK_ROWS) * max(1, self.size.n_classes) * len(self.trials)
        stack = _CLOSING * n_values * len(self.repeats[0])
        closing = min(_MOST_CLOSING * self.budget.seconds, stack + _SCORED * len(self.trials) * self.scoring_seconds)
        return self.budget.left - closing - _SPARE * self.budget.seconds

    def run_models(self) -> tuple[list[runner.Trial], int]:
        """Cross-validate the models; return those that are finished and their stack, and the number of repeats."""
        trials = self.trials
        try:
            self._first_repeat()
            self._note_unfinished(trials)
            n_repeats = self._further_repeats([trial for trial in trials if trial.runs])
        except KeyboardInterrupt:
            if not any(trial.runs for trial in trials if not trial.candidate.is_baseline):
                raise
            self.was_interrupted, n_repeats = True, 1
            self.notes.append("Interrupted: the study holds the models finished by then.")
        done = [trial for trial in trials if len(trial.runs) >= n_repeats]
        if not done:
            raise ValueError(f"No model could be fitted. {' '.join(self.notes[-1:])}")
        with self.without_interrupts():
            self._add_stack(done, n_repeats)
        return done, n_repeats

    @contextmanager
    def without_interrupts(self) -> Iterator[None]:
        """Let Ctrl-C wait until the end of short steps that a study needs; further fits are left out then."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is None:  # None: a handler of another language
            yield
            return

        def wait(*_: object) -> None:
            self.was_interrupted = True

        before = signal.signal(signal.SIGINT, wait)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _first_repeat(self) -> None:
        """Run models on the first repeat, in the order of the schedule."""
        schedule, by_name = self.schedule, {trial.name: trial for trial in self.trials}
        for trial in self.trials:
            if trial.candidate.is_baseline:
                trial.runs = [self._run(trial, trial.candidate, self.repeats[0], self.budget)]
                self.scoring_seconds = self._timed_scores(trial)
        while (action := schedule.next(self.left)) is not None:
            job, trial = action.job, by_name[action.job.name]
            try:
                if action.is_probe:
                    self._time(trial, action)
                elif runs := self._run_folds(trial, action):
                    job.rows, trial.runs = action.rows, [runs]
                    trial.candidate = replace(trial.candidate, max_rows=action.max_rows)
            except Exception as error:  # of any library; the other models continue
                trial.failure, job.has_failed = describe_error(error), True

    def _timed_scores(self, trial: runner.Trial) -> float:
        """Return the seconds of the intervals of the scores of a model on a fold."""
        start, y = clock.perf_counter(), self.train.y[self.repeats[0][0].held_out]
        for metric in self.metrics:
            self.scorers.with_interval(metric, trial.runs[0][0].predictions, y, self.seed)
        return clock.perf_counter() - start

    def _time(self, trial: runner.Trial, action: Action) -> None:
        """Time a fit to a few rows of a fold."""
        fold, candidate = self.repeats[0][0], replace(trial.candidate, max_rows=action.rows)
        limit = self.budget.first(self.schedule.limit(action, 1, self.left))
        self.progress.begin(f"{trial.name}, timed", self._ahead)
        run = self.runner.run(candidate, Fold(fold.train, fold.held_out[: action.rows // 4]), limit)
        self.schedule.learn(action.job, action.rows, run.full_seconds)
        self._show(f"{trial.name}, timed")

    def _run_folds(self, trial: runner.Trial, action: Action) -> list[runner.Run]:
        """Run a model on the folds; return its runs, none if there is no time for all of them.

        The first model runs on two folds at least; if there is no time for more, all models get these folds.
        """
        candidate = replace(trial.candidate, max_rows=action.max_rows)
        folds, done, is_first = self.repeats[0], list[runner.Run](), action.job is self.schedule.jobs[0]
        n_at_once = len(folds) if is_distributed() else 1
        while len(done) < len(folds):
            n = len(done)
            n_left = -(-(len(folds) - n) // n_at_once)
            is_limited = (is_first or action.job.leads) and runner.has_rounds(candidate.estimator)
            if n and not is_limited and not self.schedule.can_go_on(action, n_left, self.left):
                if not is_first:
                    return []
                if n >= _FEWEST_FOLDS:
                    self._retain_folds(n)
                    break
            limit = self.budget.first(self.schedule.limit(action, n_left, self.left))
            self.progress.begin(f"{candidate.name}, fold {n + 1} of {len(folds)}", self._ahead)
            done += self._run(trial, candidate, folds[n : n + n_at_once], limit)
            self.schedule.learn(action.job, action.rows, float(np.mean([run.seconds for run in done[n:]])))
            self._show(f"{candidate.name}, fold {len(done)} of {len(folds)}")
        return done

    def _run(
        self, trial: runner.Trial, candidate: runner.Candidate, folds: list[Fold], limit: runner.Budget
    ) -> list[runner.Run]:
        """Run a model on some folds; with a distributed joblib backend, on other machines. Save the last model."""
        if is_distributed():
            runs = run_distributed(partial(self.runner.run, candidate, limit=limit), folds)
        else:
            runs = [self.runner.run(candidate, fold, limit) for fold in folds]
        trial.model = runs[-1].model
        return [replace(run, model=None) for run in runs]

    def _show(self, step: str) -> None:
        self.progress.step(step, self._ahead)

    @property
    def _ahead(self) -> float:
        return self.schedule.ahead(self.budget.left)

    def _note_unfinished(self, trials: list[runner.Trial]) -> None:
        """Add notes on the models that failed, each reason once, and on those without time, or for all rows."""
        for why in dict.fromkeys(trial.failure for trial in trials if trial.failure):
            self.note_failure([trial.name for trial in trials if trial.failure == why], why)
        fewer = [f"{one.name} {one.candidate.max_rows:,}" for one in trials if one.candidate.max_rows and one.runs]
        if fewer:
            self.notes.append(
                f"Time was short: some models are fitted to fewer training rows ({', '.join(fewer)}). Raise minutes "
                "(--minutes)."
            )
        for trial in trials:
            if trial.rounds_done < 1:
                self.notes.append(
                    f"Time was short: {trial.name} was ended by the time limit, after {trial.rounds_done:.0%} of its "
                    "rounds. Raise minutes (--minutes)."
                )
        late = [trial.name for trial in trials if not trial.runs and not trial.failure]
        if late:
            self.notes.append(
                f"Time ran out before these models were finished: {', '.join(late)}. Raise minutes (--minutes)."
            )

    def note_failure(self, failed: list[str], why: str) -> None:
        """Add a note on models that failed."""
        self.notes.append(f"{', '.join(failed)} failed and {'is' if len(failed) == 1 else 'are'} left out. {why}")

    def _further_repeats(self, done: list[runner.Trial]) -> int:
        """Run models on the other repeats; return the number of repeats that all have finished."""
        for k in range(1, len(self.repeats)):
            runs = dict[str, list[runner.Run]]()
            for n, trial in enumerate(list(done)):
                ahead = sum(one.fold_seconds for one in done[n:]) * len(self.repeats[k])
                if ahead > self.left - self.schedule.reserve:
                    self.notes.append(f"Time ran out after {plural(k, 'repeat')} of {len(self.repeats)}.")
                    return k
                try:
                    each = self.left / len(self.repeats[k])
                    runs[trial.name] = self._run(trial, trial.candidate, self.repeats[k], self.budget.first(each))
                except Exception as error:  # of any library; the other models continue
                    trial.failure, trial.runs = describe_error(error), []
                    self.note_failure([trial.name], trial.failure)
                self._show(f"{trial.name}, repeat {k + 1} of {len(self.repeats)}")
            done = [trial for trial in done if trial.name in runs]
            for trial in done:
                trial.runs.append(runs[trial.name])
        return len(self.repeats)

    def _retain_folds(self, n_folds: int) -> None:
        """Restrict all models to the folds that there was time for."""
        self.notes.append(
            f"Time was short: models are evaluated on {n_folds} of {self.n_folds} folds. Raise minutes (--minutes)."
        )
        self.repeats, self.schedule.n_folds = [self.repeats[0][:n_folds]], n_folds
        for trial in self.trials:
            trial.runs = [runs[:n_folds] for runs in trial.runs]

    def held_out(self, k: int) -> HeldOut:
        """Return the folds of a repeat with the targets of the training rows."""
        target = self.train.y if self.train.codes is None else self.train.codes
        return HeldOut(self.repeats[k], target, self.whole.classes, self.whole.time is not None)

    def _add_stack(self, trials: list[runner.Trial], n_repeats: int) -> None:
        """Add the stack of the finished models, fitted to their out-of-fold predictions."""
        members = [trial for trial in trials if trial.is_own]
        if len(members) < 2:
            return
        fit, predict = (sum(one.mean_seconds(kind) for one in members) for kind in ("fit_seconds", "predict_seconds"))
        stack = runner.Trial(runner.Candidate(STACK, None))
        for k in range(n_repeats):
            predictions = stacked([member.predictions(k) for member in members], self.held_out(k))
            stack.runs.append([runner.Run(fit, predict, one) for one in predictions])
        trials.append(stack)
