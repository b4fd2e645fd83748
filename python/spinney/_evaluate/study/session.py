"""One study from prepared rows to models that were judged on the same folds: plan, folds, stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display.digits import plural
from spinney._data.select import pick_table
from spinney._estimator.estimator import Estimator
from spinney._estimator.folds import Fold
from spinney._evaluate.compare.problem import read_metrics, read_models
from spinney._evaluate.study.combine import HeldOut, stacked
from spinney._evaluate.study.family import (
    STACK,
    Candidate,
    Plan,
    Size,
    baseline_for,
    estimator_for,
    make_plan,
    quicker,
    work_of,
)
from spinney._evaluate.study.peers import peer_candidates
from spinney._evaluate.study.predictions import Scorers
from spinney._evaluate.study.prepare import Prepared
from spinney._evaluate.study.profile import Columns
from spinney._evaluate.study.progress import Teller
from spinney._evaluate.study.run import REFIT, REFIT_ALL, Budget, Runner, Trial
from spinney._evaluate.study.screen import screened
from spinney._evaluate.study.split import TEST_SHARE, make_splits, split_off_test

Floats = NDArray[np.float64]
_METRICS = {
    "binary": ["neg_log_loss", "roc_auc", "accuracy"],
    "multiclass": ["neg_log_loss", "accuracy"],
    "regression": ["neg_root_mean_squared_error", "r2"],
}
_LARGEST_SEED = 2**31 - 1
_FEWEST_FOLDS = 2  # that are done whatever time they take


@dataclass(frozen=True)
class Asked:
    """What the caller wants, as `study` takes it; the budget in seconds."""

    metric: Any
    budget: float
    peers: bool
    models: Any
    n_folds: int
    repeats: int | None
    progress: Any


class Session:
    """Does one study, up to what comes after the folds.

    Parameters
    ----------
    data : Prepared
    asked : Asked
    random : RandomState
    start : float
        When the study began, by the monotonic clock.
    """

    def __init__(self, data: Prepared, asked: Asked, random: np.random.RandomState, start: float) -> None:
        self.whole, self.asked, self.notes = data, asked, list(data.notes)
        self.seed = int(random.randint(_LARGEST_SEED))
        self.budget = Budget(asked.budget, start)
        scoring = _METRICS[data.task] if asked.metric is None else asked.metric
        task = "Regressor" if data.classes is None else "Classifier"
        self.scorers = Scorers(read_metrics(scoring, task), data.classes)
        self.scorers.check(data.y, data.codes, data.target, _METRICS[data.task])
        self.metrics = list(self.scorers.metrics)
        columns = Columns.read(data.X)
        self.plan = self._planned(columns)
        self.data = self._sampled(self._narrowed(columns), random)
        train, test = split_off_test(self.data, random)
        self.train, self.test = self.data.take(train), self.data.take(test)
        splits = make_splits(self.train, asked.n_folds, self.plan.repeats, random)
        repeats = [[Fold(a, b) for a, b in folds] for folds in splits]
        one = self.train
        self.runner = Runner(pick_table(one.X), one.y, one.codes, one.classes, repeats, self.budget)
        self.candidates = self._candidates()
        self.was_interrupted = False

    # ---- before ------------------------------------------------------------------------------------------------------

    def _planned(self, columns: Columns) -> Plan:
        """Decide what to do by counting."""
        data = self.whole
        terms = sum(max(1, len(feature.categories)) for feature in columns.features)
        n_classes = 0 if data.classes is None else len(data.classes)
        has_logs = data.classes is None and bool((data.y >= 0).all())
        self.size = Size(round((1 - TEST_SHARE) * data.n_rows), len(columns.names), terms, n_classes, has_logs)
        words = None
        if self.asked.models is not None:
            words = [one if isinstance(one, str) else name for name, one in read_models(self.asked.models)]
        plan = make_plan(self.size, self.asked.budget, words, self.asked.n_folds, self.asked.repeats)
        if plan.left_out:
            self.notes.append(f"Left out, as too much work for the time allowed: {', '.join(plan.left_out)}.")
        return plan

    def _narrowed(self, columns: Columns) -> Prepared:
        """Choose columns, where there are more than the time allows; return the rows that are left to study."""
        n_columns, n_all = self.plan.n_columns, len(columns.names)
        if n_columns >= n_all:
            return self.whole
        places, left = screened(self.whole, columns, n_columns, self.seed)
        self.notes.append(
            f"The table is too wide for the time allowed: {n_columns:,} of its {n_all:,} columns were chosen, those "
            f"that tell most of the target, each alone, in {self.whole.n_rows - len(left):,} rows; these rows judge "
            "nothing. More time (minutes, --minutes) takes more columns."
        )
        self.whole = self.whole.with_columns(places, "Others tell more of the target, and time is short.")
        self.size = self.size.of(round((1 - TEST_SHARE) * len(left)), n_columns)
        return self.whole.take(left)

    def _sampled(self, data: Prepared, random: np.random.RandomState) -> Prepared:
        """Draw the rows to study, where there are more than the time allows."""
        n_rows = round(self.plan.n_rows / (1 - TEST_SHARE))
        if self.plan.n_rows >= 0.99 * self.size.n_rows:
            return data
        self.notes.append(
            f"{n_rows:,} of {data.n_rows:,} rows were drawn at random to be studied, as many as the time allows. "
            "More time (minutes, --minutes) takes more of them."
        )
        return data.take(np.sort(random.permutation(data.n_rows)[:n_rows]))

    def _candidates(self) -> list[Candidate]:
        """Return the models, in the order in which they are tried."""
        size, care, task = self.size.of(self.plan.n_rows), self.plan.care, self.whole.task
        found = [baseline_for(task)]
        given = dict(read_models(self.plan.words if self.asked.models is None else self.asked.models))
        for name, one in given.items():
            word = one if isinstance(one, str) else name
            if not isinstance(one, str) and not isinstance(one, Estimator):
                raise TypeError(f"models holds {one!r:.100}, which is no estimator of spinney. Use compare for others.")
            model = estimator_for(one, task, care, self.seed) if isinstance(one, str) else one
            found.append(Candidate(word.replace("_", "-"), model, work_of(word, size, care)))
        return found + (peer_candidates(task, size, self.seed) if self.asked.peers else [])

    # ---- the folds ---------------------------------------------------------------------------------------------------

    def teller(self) -> Teller:
        """Return what reports how far the study is."""
        n_models, n_folds = len(self.candidates), sum(map(len, self.runner.repeats))
        return Teller(self.asked.progress, n_models * n_folds + n_models + 1, self.budget)

    def tried(self, teller: Teller) -> tuple[list[Trial], int]:
        """Fit the models to the folds; return those that are done, with the stack of them, and how many repeats."""
        trials = [Trial(candidate) for candidate in self.candidates]
        try:
            n_repeats = self._cross_validate(trials, teller)
        except KeyboardInterrupt:
            if not any(trial.said for trial in trials if not trial.candidate.is_baseline):
                raise
            self.was_interrupted, n_repeats = True, 1
            self.notes.append("Interrupted: what was done by then is here.")
        done = [trial for trial in trials if len(trial.said) >= n_repeats]
        if not done:
            raise ValueError(f"No model could be fitted. {' '.join(self.notes[-1:])}")
        self._add_stack(done, n_repeats)
        return done, n_repeats

    def _cross_validate(self, trials: list[Trial], teller: Teller) -> int:
        """Fit all models to the folds, repeat by repeat; return how many repeats all of them have."""
        first = next((trial for trial in trials if not trial.candidate.is_baseline), trials[0])
        for trial in trials:
            reserve = sum((REFIT + REFIT_ALL) * one.fold_seconds for one in trials if one.said)
            is_done = self.runner.repeat(trial, 0, reserve, teller.fold, _FEWEST_FOLDS if trial is first else 0)
            if trial is first:
                self._keep_folds(trials)
            if not is_done and not trial.failure and (quick := quicker(trial.candidate)) is not None:
                trial.candidate = quick
                if self.runner.repeat(trial, 0, reserve, teller.fold):
                    self.notes.append(f"Time was short: {trial.name} was fitted with less effort than planned.")
        for why in dict.fromkeys(trial.failure for trial in trials if trial.failure):
            failed = [trial.name for trial in trials if trial.failure == why]
            were = "was" if len(failed) == 1 else "were"
            self.notes.append(f"{', '.join(failed)} failed and {were} left out. {why}")
        late = [trial.name for trial in trials if not trial.said and not trial.failure]
        if late:
            self.notes.append(
                f"Time ran out before these were done: {', '.join(late)}. Allow more minutes (--minutes)."
            )
        done = [trial for trial in trials if trial.said]
        reserve = sum((REFIT + REFIT_ALL) * one.fold_seconds for one in done)
        for k in range(1, len(self.runner.repeats)):
            for n, trial in enumerate(done):
                ahead = sum(one.fold_seconds for one in done[n + 1 :]) * len(self.runner.repeats[k])
                if not self.runner.repeat(trial, k, reserve + ahead, teller.fold):
                    self.notes.append(
                        f"Time ran out: folds were drawn {plural(k, 'time')}, not {len(self.runner.repeats)}."
                    )
                    return k
        return len(self.runner.repeats)

    def _keep_folds(self, trials: list[Trial]) -> None:
        """Let all models have the folds that there was time for."""
        n_folds = len(self.runner.repeats[0])
        if n_folds < self.asked.n_folds and self.whole.time is None:
            self.notes.append(
                f"Time was short: models are judged on {n_folds} of {self.asked.n_folds} folds. Allow more minutes "
                "(--minutes)."
            )
        for trial in trials:
            trial.said = [said[:n_folds] for said in trial.said]

    def held_out(self, k: int) -> HeldOut:
        """Return the folds of a repeat with the targets of the rows to learn from."""
        target = self.train.y if self.train.codes is None else self.train.codes
        return HeldOut(self.runner.repeats[k], target, self.whole.classes, self.whole.time is not None)

    def _add_stack(self, done: list[Trial], n_repeats: int) -> None:
        """Add the stack of the models that are done, made of what they say of rows held out."""
        members = [trial for trial in done if not trial.candidate.is_baseline and not trial.candidate.is_peer]
        if len(members) < 2:
            return
        stack = Trial(Candidate(STACK, None, 0.0))
        for k in range(n_repeats):
            stack.said.append(stacked([member.said[k] for member in members], self.held_out(k)))
        stack.fit_seconds = [sum(float(np.mean(member.fit_seconds)) for member in members)]
        stack.predict_seconds = [sum(float(np.mean(member.predict_seconds)) for member in members)]
        done.append(stack)
