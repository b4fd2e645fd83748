"""The cross-validation of a study: plan, folds, models, stack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spinney._data.display import plural
from spinney._estimator.estimator import Estimator
from spinney._evaluate import runner
from spinney._evaluate.folds import LARGEST_SEED, TEST_FRACTION, draw_folds, n_folds_of
from spinney._evaluate.problem import BASELINE, baseline_of, read_models
from spinney._evaluate.scoring import Scorers, read_metrics
from spinney._evaluate.study.columns import Columns, screened
from spinney._evaluate.study.combine import HeldOut, stacked
from spinney._evaluate.study.plan import STACK, Plan, Size, estimator_for, make_plan, peer_candidates, quicker, work_of
from spinney._evaluate.study.prepare import Prepared, StudyOptions

_METRICS = {
    "binary": ["neg_log_loss", "roc_auc", "accuracy"],
    "multiclass": ["neg_log_loss", "accuracy"],
    "regression": ["neg_root_mean_squared_error", "r2"],
}
_FEWEST_FOLDS = 2  # run even without time left


class Session:
    """Plans and cross-validates the models of a study.

    Parameters
    ----------
    data : Prepared
    options : StudyOptions
    random : RandomState
    start : float
        Start of the study on the monotonic clock.
    progress : bool, callable or None
        Called, or printed, after each fit.
    """

    def __init__(
        self,
        data: Prepared,
        options: StudyOptions,
        random: np.random.RandomState,
        start: float,
        progress: bool | runner.ProgressCall | None,
    ) -> None:
        self.whole, self.options, self.notes = data, options, list(data.notes)
        self.seed = int(random.randint(LARGEST_SEED))
        self.budget = runner.Budget(60.0 * options.minutes, start)
        usual = _METRICS[data.task]
        self.scorers = Scorers(read_metrics(usual if options.scoring is None else options.scoring), data.classes)
        self.scorers.check(data.y, data.codes, data.target, usual)
        self.metrics = list(self.scorers.metrics)
        self.n_folds = n_folds_of(options.cv, data)
        columns = Columns.read(data.X)
        self.plan = self._planned(columns)
        self.data = self._sampled(self._narrowed(columns), random)
        is_test = self.data.is_test
        self.train, self.test = self.data.take(np.flatnonzero(~is_test)), self.data.take(np.flatnonzero(is_test))
        repeats = draw_folds(self.train, options.cv, self.plan.repeats, random)
        self.candidates = self._candidates()
        n_fits = len(self.candidates) * (sum(map(len, repeats)) + 1) + 1
        self.progress = runner.EvaluationProgress(progress, n_fits, self.budget)
        self.runner = self.runner_of(self.train)
        self.folds = runner.FoldRunner(self.runner, repeats, self.progress)
        self.was_interrupted = False

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
        plan = make_plan(self.size, self.budget.seconds, words, self.n_folds, self.options.repeats)
        if plan.left_out:
            self.notes.append(f"Left out, because they would exceed the time limit: {', '.join(plan.left_out)}.")
        return plan

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

    def _sampled(self, data: Prepared, random: np.random.RandomState) -> Prepared:
        """Sample the rows of a table that is too long for the time limit."""
        n_rows = round(self.plan.n_rows / (1 - TEST_FRACTION))
        if self.plan.n_rows >= 0.99 * self.size.n_rows:
            return data
        self.notes.append(
            f"A random sample of {n_rows:,} of {data.n_rows:,} rows is used, as many as the time limit allows. Raise "
            "minutes (--minutes) to use more rows."
        )
        return data.take(np.sort(random.permutation(data.n_rows)[:n_rows]))

    def _candidates(self) -> list[runner.Candidate]:
        """Return the models in the order of their fits."""
        size, effort, task = self.size.of(self.plan.n_rows), self.plan.effort, self.whole.task
        candidates = [runner.Candidate(BASELINE, baseline_of(task), is_baseline=True)]
        for name, one in read_models(self.plan.words if self.options.models is None else self.options.models).items():
            word = one if isinstance(one, str) else name
            if name in (STACK, BASELINE):
                raise ValueError(f"models holds {name!r}, which every study has. Name the models to fit without it.")
            if not isinstance(one, str) and not isinstance(one, Estimator):
                raise TypeError(
                    f"models holds {one!r:.100}, which is not an estimator of spinney. Use compare for others."
                )
            model = estimator_for(one, task, effort, self.seed) if isinstance(one, str) else one
            if task != "regression" and not hasattr(model, "predict_proba"):
                raise ValueError(
                    f"models holds {name!r}, which has no class probabilities. A study needs them: leave it out, or "
                    "use compare."
                )
            candidates.append(runner.Candidate(word.replace("_", "-"), model, work_of(word, size, effort)))
        return candidates + (peer_candidates(task, size, self.seed) if self.options.peers else [])

    # ---- the folds ---------------------------------------------------------------------------------------------------

    def run_models(self) -> tuple[list[runner.Trial], int]:
        """Cross-validate the models; return those that are finished and their stack, and the number of repeats."""
        trials = [runner.Trial(candidate) for candidate in self.candidates]
        try:
            self._first_repeat(trials)
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
        self._add_stack(done, n_repeats)
        return done, n_repeats

    def _first_repeat(self, trials: list[runner.Trial]) -> None:
        """Run all models on the first repeat; one without enough time is tried again with less effort."""
        first = next((trial for trial in trials if not trial.candidate.is_baseline), trials[0])
        for trial in trials:
            reserve = _seconds_of_refits([one for one in trials if one.runs])
            is_done = self.folds.repeat(trial, 0, reserve, _FEWEST_FOLDS if trial is first else 0)
            if trial is first:
                self._retain_folds(trials)
            if not is_done and not trial.failure and (quick := quicker(trial.candidate)) is not None:
                trial.candidate = quick
                if self.folds.repeat(trial, 0, reserve):
                    self.notes.append(f"Time was short: {trial.name} is fitted with less effort than planned.")

    def _note_unfinished(self, trials: list[runner.Trial]) -> None:
        """Add notes on the models that failed, each reason once, and on those without time."""
        for why in dict.fromkeys(trial.failure for trial in trials if trial.failure):
            failed = [trial.name for trial in trials if trial.failure == why]
            verb = "is" if len(failed) == 1 else "are"
            self.notes.append(f"{', '.join(failed)} failed and {verb} left out. {why}")
        late = [trial.name for trial in trials if not trial.runs and not trial.failure]
        if late:
            self.notes.append(
                f"Time ran out before these models were finished: {', '.join(late)}. Raise minutes (--minutes)."
            )

    def _further_repeats(self, done: list[runner.Trial]) -> int:
        """Run models on the other repeats; return the number of repeats that all have finished."""
        reserve, repeats = _seconds_of_refits(done), self.folds.repeats
        for k in range(1, len(repeats)):
            for n, trial in enumerate(done):
                ahead = sum(one.fold_seconds for one in done[n + 1 :]) * len(repeats[k])
                if not self.folds.repeat(trial, k, reserve + ahead):
                    self.notes.append(f"Time ran out after {plural(k, 'repeat')} of {len(repeats)}.")
                    return k
        return len(repeats)

    def _retain_folds(self, trials: list[runner.Trial]) -> None:
        """Restrict all models to the folds that there was time for."""
        n_folds = len(self.folds.repeats[0])
        if n_folds < self.n_folds and self.whole.time is None:
            self.notes.append(
                f"Time was short: models are evaluated on {n_folds} of {self.n_folds} folds. Raise minutes (--minutes)."
            )
        for trial in trials:
            trial.runs = [runs[:n_folds] for runs in trial.runs]

    def held_out(self, k: int) -> HeldOut:
        """Return the folds of a repeat with the targets of the training rows."""
        target = self.train.y if self.train.codes is None else self.train.codes
        return HeldOut(self.folds.repeats[k], target, self.whole.classes, self.whole.time is not None)

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


def _seconds_of_refits(trials: list[runner.Trial]) -> float:
    """Return the expected seconds of the final fits of some models."""
    return sum((runner.REFIT + runner.REFIT_ALL) * trial.fold_seconds for trial in trials)
