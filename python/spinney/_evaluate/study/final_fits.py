"""The final fits of a study: to all training rows, and of the model that is kept to all rows."""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from spinney._data.types import Floats
from spinney._ensemble.members import MeanPredictions
from spinney._ensemble.weighted_stack import weighted_stack
from spinney._evaluate.problem import Rows
from spinney._evaluate.runner import Candidate, RoundLimit, Trial, has_rounds
from spinney._evaluate.scoring import Scorers, describe_error, read_metrics
from spinney._evaluate.statistics import corrected_error, paired_differences
from spinney._evaluate.study.combine import Calibrated, calibrate, fit_stack
from spinney._evaluate.study.findings import Entry
from spinney._evaluate.study.plan import (
    LEAD,
    LIGHTER,
    LOG_BOOSTING,
    QUICK,
    STACK,
    SYMMETRIC,
    TREE,
    estimator_for,
    simplicity,
)
from spinney._evaluate.study.prepare import BEST, SIMPLEST, Prepared
from spinney._evaluate.study.result import Study
from spinney._evaluate.study.schedule import REFIT
from spinney._evaluate.study.session import Session
from spinney._model.predictions import Calibration, calibrated
from spinney._names import __version__

Scores = dict[str, dict[str, Floats]]  # by model, metric and fold
_FAR_MORE = 1.04  # rows of the table, relative to those studied: a fit to all of them is worth more than a stack
_ENOUGH_MORE = 1.9  # rows of the table, relative to those studied: the ranking of models may differ for all rows
_TIMES_MORE = 3.0  # rows of the table, relative to those studied: so may the calibration
_MOST_HELD_OUT, _HELD_OUT = 20_000, 0.05  # rows, and their fraction, that decide between boosting and the best model
_SLOWER = 1.2  # that final fits may be than expected
_MARGIN = 1.3  # of the time left that is shown
_ROWS_OF_TREE, _TREE_SHARE = 10_000, 0.1  # of the report's tree with less than this share of the time left
_ENOUGH_ROUNDS = 0.75  # of boosting: with less time other settings are better
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_PEER_LIBRARIES = ("lightgbm", "xgboost", "catboost")


@dataclass(eq=False)
class FinalFits:
    """Fits the cross-validated models to all training rows, tests them, and refits the best to all rows."""

    session: Session
    trials: list[Trial]
    n_repeats: int
    models: dict[str, Any] = field(default_factory=dict)
    fit_seconds: dict[str, float] = field(default_factory=dict)  # of the fits to all training rows
    larger: Any = None  # boosting fitted to all rows, or nearly all rows of a large table
    is_cut: bool = False  # whether the time limit has ended the latest final fit
    reason: str = ""  # why another model is kept than the preferred one

    def __post_init__(self) -> None:
        with self.session.without_interrupts():
            self._read_folds()

    def _read_folds(self) -> None:
        self.folds = [fold for folds in self.session.repeats[: self.n_repeats] for fold in folds]
        self.test_ratio = float(np.mean([len(fold.held_out) / len(fold.train) for fold in self.folds]))
        self.out_of_fold = {trial.name: self._out_of_fold(trial) for trial in self.trials}
        self.members = [trial for trial in self.trials if trial.is_own and trial.name != STACK]
        self.weights = self._weights()

    def study(self) -> Study:
        """Fit, test, choose, calibrate and refit models; return the study."""
        session = self.session
        with session.without_interrupts():
            scores = {trial.name: self._scores_of(trial) for trial in self.trials}
            order = self._ordered(self.trials, scores)
            preferred = self._preferred(order, scores)
        self._fit_all(order, preferred)
        with session.without_interrupts():
            tested = self._tested([trial.name for trial in order if trial.name in self.models])
            order = [trial for trial in order if trial.name in tested]
            preferred = self._preferred(order, scores)
        best = self._retained(preferred, order, scores)
        with session.without_interrupts():
            calibration = self._calibration(best)
            if calibration.by is not None:  # so that the saved model is the evaluated one
                tested[best.name] = calibrated(tested[best.name], calibration.by)
                self._recalibrate(best, calibration)
                scores[best.name] = self._scores_of(best)
                order = self._ordered(order, scores)
            why = self._why(best, order)
            session.notes.append(f"{why} {calibration.why}".rstrip())
        models = self._final_models(best, order, calibration)
        with session.without_interrupts():
            return self._found(best, order, scores, tested, models, why, calibration)

    def _found(
        self,
        best: Trial,
        order: list[Trial],
        scores: Scores,
        tested: dict[str, Floats],
        models: tuple[Any, str, Any],
        why: str,
        calibration: Calibrated,
    ) -> Study:
        """Return the study of the final models."""
        session, (model, single, single_model) = self.session, models
        for one in (model, single_model):
            _take_whole_tables(one)
        tree, tree_seconds = self._tree()
        self._note_peers(order, best)
        session.progress.done()
        whole, train, test = session.whole, session.train, session.test
        return Study(
            task=whole.task,
            scorers=session.scorers,
            target=whole.target,
            classes=whole.classes,
            columns=whole.columns,
            notes=session.notes,
            X_train=train.X,
            y_train=train.y,
            X_test=test.X,
            y_test=test.y,
            train_rows=train.row_names,
            test_rows=test.row_names,
            folds=[(fold.train, fold.held_out) for fold in self.folds],
            leaderboard=self._entries(order, scores, tested),
            models={trial.name: self.models[trial.name] for trial in order},
            out_of_fold={trial.name: self._flat(self.out_of_fold[trial.name]) for trial in order},
            test_predictions={name: self._flat(one) for name, one in tested.items()},
            best=best.name,
            why=why,
            model=model,
            single=single,
            single_model=single_model,
            calibration=calibration.why,
            tree=tree,
            tree_seconds=tree_seconds,
            n_rows=whole.n_rows,
            seconds=session.budget.elapsed,
            is_interrupted=session.was_interrupted,
            n_repeats=self.n_repeats,
            versions=_versions(session.options.peers),
        )

    # ---- predictions and scores --------------------------------------------------------------------------------------

    def _flat(self, predictions: Floats) -> Floats:
        return predictions if self.session.whole.classes is not None else np.asarray(predictions[:, 0])

    def _out_of_fold(self, trial: Trial) -> Floats:
        mean = MeanPredictions(self.session.train.n_rows)
        for k in range(self.n_repeats):
            for fold, predictions in zip(self.session.repeats[k], trial.predictions(k), strict=True):
                mean.add(fold.held_out, predictions)
        return mean.value

    def _tested(self, names: list[str]) -> dict[str, Floats]:
        """Return the predictions of the test set by model; those that fail are left out."""
        session, tested = self.session, dict[str, Floats]()
        for name in names:
            try:
                tested[name] = session.runner.predict(self.models[name], session.test.X)
            except Exception as error:  # of any library
                session.note_failure([name], describe_error(error))
        return tested

    def _recalibrate(self, best: Trial, calibration: Calibrated) -> None:
        """Replace the out-of-fold predictions of the best model by calibrated ones."""
        for k, runs in enumerate(best.runs):
            predictions = calibration.of_folds(best.predictions(k), self.session.held_out(k))
            best.runs[k] = [replace(run, predictions=one) for run, one in zip(runs, predictions, strict=True)]
        self.out_of_fold[best.name] = self._out_of_fold(best)

    def _scores_of(self, trial: Trial) -> dict[str, Floats]:
        """Return the scores of a model by metric and fold."""
        session = self.session
        predictions = [one for k in range(self.n_repeats) for one in trial.predictions(k)]
        rows = [
            session.scorers.scores(one, session.train.y[fold.held_out])
            for one, fold in zip(predictions, self.folds, strict=True)
        ]
        return {metric: np.array([row[metric] for row in rows]) for metric in session.metrics}

    def _ordered(self, trials: list[Trial], scores: Scores) -> list[Trial]:
        """Return models by descending mean score; those without one come last."""
        metric = self.session.metrics[0]
        return sorted(trials, key=lambda trial: -np.nan_to_num(scores[trial.name][metric].mean(), nan=-np.inf))

    def _preferred(self, order: list[Trial], scores: Scores) -> Trial:
        """Return the best model of spinney, or the simplest within one standard error of it.

        Of equally simple models, the one that scores best; a stack of one member is that member.
        """
        own = _own(order)
        near = [trial for trial in own if self._is_near(trial, own[0], scores)]
        best = own[0] if self.session.options.prefer == BEST else min(near, key=lambda trial: simplicity(trial.name))
        return self._members_of(best)[0] if best.name == STACK and len(self.weights) == 1 else best

    def _is_near(self, trial: Trial, best: Trial, scores: Scores) -> bool:
        """Return whether a model is within one standard error of the best, of its score and of the difference.

        The error of the difference alone is large for a model that fails on some folds.
        """
        metric = self.session.metrics[0]
        gaps = scores[best.name][metric] - scores[trial.name][metric]
        both = [corrected_error(one, self.test_ratio) for one in (gaps, scores[best.name][metric]) if len(gaps) > 1]
        return float(gaps.mean()) <= min(both, default=0.0)

    def _weights(self) -> dict[str, tuple[float, float | None]]:
        """Return weights and temperatures of the members of the stack, fitted to all out-of-fold predictions."""
        if len(self.members) < 2:
            return {}
        predictions = [self.out_of_fold[trial.name] for trial in self.members]
        known = ~np.isnan(predictions[0][:, 0])
        held_out = self.session.held_out(0)
        predictions, target = [one[known] for one in predictions], held_out.target[known]
        fitted = zip(*fit_stack(predictions, target, held_out.classes), strict=True)
        return {trial.name: one for trial, one in zip(self.members, fitted, strict=True) if one[0] > 0}

    # ---- fits --------------------------------------------------------------------------------------------------------

    def _fit_all(self, order: list[Trial], best: Trial) -> None:
        """Fit the models to all training rows, the best first, until an interruption or the time limit."""
        session, late = self.session, list[str]()
        needed = [trial for trial in order if trial in self._members_of(best)]
        again = session.schedule.last if session.schedule.whole > 1 else self._last_seconds(needed)
        try:
            for trial in [*needed, *(trial for trial in order if trial not in needed and trial.name != STACK)]:
                if session.was_interrupted or self._is_too_late(trial, 0.0 if trial in needed else again):
                    late.append(trial.name)
                    self.models[trial.name] = trial.model
                    continue
                waiting = [one for one in needed if one.name not in self.models] if trial in needed else [trial]
                ahead = REFIT * sum(one.fold_seconds for one in waiting) + again
                session.progress.step(f"{trial.name}, all training rows", _MARGIN * ahead)
                most = max(session.left - again, 2 * REFIT * trial.fold_seconds)
                start, limit = clock.monotonic(), RoundLimit(session.budget.first(most))
                try:
                    self.models[trial.name] = session.runner.fit(trial.candidate, None, limit)
                except Exception as error:  # of any library; the other models continue
                    session.note_failure([trial.name], describe_error(error))
                self.fit_seconds[trial.name] = clock.monotonic() - start + limit.cut_seconds
        except KeyboardInterrupt:
            session.was_interrupted = True
            late = [trial.name for trial in order if trial.name not in self.fit_seconds and trial.name != STACK]
            self.models |= {trial.name: trial.model for trial in order if trial.name in late}
        if late:
            why = "Interrupted" if session.was_interrupted else "Time was short"
            session.notes.append(
                f"{why}: the models of {', '.join(late)} are those of a fold, fitted to fewer rows than all training "
                "rows."
            )
        if self.weights and all(name in self.models for name in self.weights):
            self.models[STACK] = self._stack({name: self.models[name] for name in self.weights}, None)

    def _is_too_late(self, trial: Trial, spare: float) -> bool:
        """Return whether there is no time for a fit to all training rows; at least one model of spinney gets it."""
        has_own = any(member.name in self.fit_seconds for member in self.members)
        seconds = REFIT * trial.fold_seconds + spare
        return has_own and not trial.candidate.is_baseline and self.session.budget.left < seconds

    def _retained(self, best: Trial, order: list[Trial], scores: Scores) -> Trial:
        """Return the best model; of a sampled table, the best that there is time to fit to all rows.

        Boosting gains most by more rows: if it is within one standard error of the best, it comes first. If the table
        has nearly twice as many rows or more, boosting is fitted to nearly all, and compared with the best on others,
        unless the best one is clearly better and needs more than half of the time left.
        """
        session, n_rows = self.session, self.session.whole.n_rows
        lead = next((trial for trial in order if trial.name == LEAD), None)
        if session.was_interrupted or lead is None or best is lead:
            return best
        if best.name == QUICK and lead.candidate.max_rows is not None and best.candidate.max_rows is None:
            self.reason = f"{QUICK} scores better on the folds, where it was fitted to more rows."
            return self._larger(lead, best)
        if n_rows < _FAR_MORE * session.data.n_rows:
            return best
        is_near = self._is_near(lead, best, scores)
        if self._is_free:
            members = self._members_of(best)
            again = _SLOWER * self._last_seconds(members) if self._fits(members) else 0.0
            return self._larger(lead, best, again) if is_near or again <= session.left / 2 else best
        near = [lead] * is_near
        for trial in [*([best, *near] if best.name == STACK else [*near, best]), *_own(order)]:
            if self._fits(self._members_of(trial)):
                if trial is not best and self._fits(self._members_of(best)):
                    self.reason = (
                        f"on a sample of the rows it differs from {best.name} by less than the standard error, and "
                        f"boosting gains more by all {n_rows:,} rows."
                    )
                elif trial is not best:
                    self.reason = (
                        f"{best.name} scores best on a sample of the rows, but there was no time to fit it to all "
                        f"{n_rows:,} rows."
                    )
                return trial
        return best

    @property
    def _is_free(self) -> bool:
        """Whether nearly half of the rows or more are not studied, and can be held out: in no group with others."""
        session, whole = self.session, self.session.whole
        is_large = whole.n_rows >= _ENOUGH_MORE * session.data.n_rows and len(session.unstudied) > 0
        return is_large and whole.time is None and (whole.groups is None or whole.groups_are_copies)

    def _larger(self, lead: Trial, best: Trial, spare: float = 0.0) -> Trial:
        """Fit boosting to all rows; return it, or the best model if that predicts other rows better.

        Of a large table the other rows are held out from this fit. Of another one they are those of the test set,
        which boosting has seen: they decide only against a fit that the time limit has ended. `spare` are the seconds
        of a fit of the best model.
        """
        session, rows, fold = self.session, None, self.session.test
        if self._is_free:
            n_held_out = min(_MOST_HELD_OUT, int(_HELD_OUT * session.whole.n_rows), len(session.unstudied))
            held_out = np.sort(np.random.RandomState(session.seed).permutation(session.unstudied)[:n_held_out])
            rows, fold = np.delete(np.arange(session.whole.n_rows), held_out), session.whole.take(held_out)
        try:
            model = self._last_fit(lead, rows, spare)
        except KeyboardInterrupt:
            session.was_interrupted = True
            return best
        n_fitted = session.whole.n_rows if rows is None else len(rows)
        if (rows is not None or self.is_cut) and not self._is_better(model, self.models[best.name], fold):
            self.reason = ""
            session.notes.append(
                f"{best.name} predicts {fold.n_rows:,} other rows better than {lead.name} fitted to all {n_fitted:,} "
                "rows."
            )
            return best
        if rows is not None:
            self.reason = (
                f"{best.name} scores best on a sample of the rows, but boosting, fitted to {n_fitted:,} rows, predicts "
                f"{fold.n_rows:,} others better."
            )
        self.larger = model
        return lead

    def _is_better(self, model: Any, other: Any, fold: Prepared) -> bool:
        """Return whether a model predicts some rows no worse than another one."""
        session, runner = self.session, self.session.runner_of(fold)
        with session.without_interrupts():
            score, least = (
                session.scorers.score(session.metrics[0], runner.predict(one, fold.X), fold.y) for one in (model, other)
            )
        return score >= least

    def _fits(self, trials: list[Trial]) -> bool:
        """Return whether there is time for fits to all rows; that of a single booster ends in time."""
        is_cut = len(trials) == 1 and has_rounds(self.models[trials[0].name])
        return is_cut or _SLOWER * self._last_seconds(trials) <= self.session.left

    def _last_seconds(self, trials: list[Trial]) -> float:
        """Return the expected seconds of fits to all rows."""
        schedule, total = self.session.schedule, 0.0
        n_whole, n_train = self.session.whole.n_rows, self.session.train.n_rows
        for trial in trials:
            job = next((job for job in schedule.jobs if job.name == trial.name), None)
            seconds = self.fit_seconds.get(trial.name, REFIT * trial.fold_seconds)
            if job is None:
                total += seconds
                continue
            most = self._final(trial).max_rows or n_whole
            total += seconds * job.work(most) / job.work(trial.candidate.max_rows or n_train)
        return total

    def _final(self, trial: Trial) -> Candidate:
        """Return the model of the final fit: boosting gets all rows, even if folds had time for fewer."""
        return replace(trial.candidate, max_rows=None) if has_rounds(trial.candidate.estimator) else trial.candidate

    def _last_fit(self, trial: Trial, rows: Rows | None = None, spare: float = 0.0) -> Any:
        """Fit a model to all rows, or those given; boosting with settings for the time left, and until it is over.

        `spare` are the seconds of further fits.
        """
        session, planned = self.session, self.session.plan.effort
        efforts = [planned]
        if trial.name in session.default_names and trial.name in (LEAD, LOG_BOOSTING, SYMMETRIC):
            efforts += [one for one in LIGHTER if one.relative != planned.relative]
        efforts.sort(key=lambda one: -one.relative)
        seconds = self._last_seconds([trial]) / planned.relative
        while True:
            left = session.left - spare
            efforts = [one for one in efforts if _ENOUGH_ROUNDS * seconds * one.relative <= left] or efforts[-1:]
            effort, candidate, note = efforts.pop(0), self._final(trial), ""
            if effort != planned:
                model = estimator_for(trial.name, session.whole.task, effort, session.seed, session.metrics[0])
                candidate = replace(candidate, estimator=model)
                note = " with " + ", ".join(f"{key}={value!r}" for key, value in effort.settings(trial.name).items())
            session.progress.step(f"{trial.name}, all rows", _MARGIN * seconds * effort.relative + spare)
            limit = RoundLimit(session.budget.first(left), _ENOUGH_ROUNDS if efforts else 0.0)
            model = session.runner_of(session.whole).fit(candidate, rows, limit)
            if not limit.is_too_slow:
                break
        self.is_cut = limit.is_reached
        if limit.is_reached:
            note += f" and was ended by the time limit after {limit.n_rounds} of {limit.n_planned} rounds"
        if note:
            why = "The folds had less time" if effort.relative > planned.relative else "Time decided"
            session.notes.append(f"{why}: the final {trial.name} is fitted{note}.")
        return model

    def _members_of(self, trial: Trial) -> list[Trial]:
        """Return the members of a stack, or the model itself."""
        return [one for one in self.members if one.name in self.weights] if trial.name == STACK else [trial]

    def _stack(self, members: dict[str, Any], by: Calibration) -> Any:
        X, classes, scores = (
            self.session.train.X,
            self.session.whole.classes,
            {one: self._score(one) for one in members},
        )
        weights = [self.weights[name][0] for name in members]
        each = [one for name in members if (one := self.weights[name][1]) is not None] or None
        return weighted_stack(members, weights, X, classes, scores=scores, temperatures=each, calibration=by)

    def _score(self, name: str) -> float:
        """Score of the out-of-fold predictions of a model: accuracy, or R²."""
        session, predictions = self.session, self.out_of_fold[name]
        known = ~np.isnan(predictions[:, 0])
        metric = "r2" if session.whole.classes is None else "accuracy"
        scorers = Scorers(read_metrics(metric, session.whole.classes), session.whole.classes)
        return scorers.score(metric, predictions[known], session.train.y[known])

    def _calibration(self, best: Trial) -> Calibrated:
        """Return the calibration of the best model."""
        session = self.session
        if session.whole.classes is None or best.candidate.is_baseline:
            return Calibrated(None, "")
        if session.whole.n_rows >= _TIMES_MORE * session.data.n_rows:
            return Calibrated(
                None, "Its probabilities are not recalibrated: the table has far more rows than the sample."
            )
        return calibrate(best.predictions(0), self.session.held_out(0))

    def _final_models(self, best: Trial, order: list[Trial], calibration: Calibrated) -> tuple[Any, str, Any]:
        """Fit the model that is kept to all rows; return it, and the name and model of the best single one in it."""
        fitted = self._refitted(self._members_of(best), best.name)
        if best.name != STACK:
            model = self._calibrated(best, fitted, calibration)
            return model, best.name, model
        single = next(trial for trial in order if trial.name in fitted)
        return (
            self._stack(fitted, calibration.by),
            single.name,
            self._calibrated(single, fitted, self._calibration(single)),
        )

    def _calibrated(self, trial: Trial, fitted: dict[str, Any], calibration: Calibrated) -> Any:
        """Return a single fitted model with its calibration."""
        if calibration.by is None:
            return fitted[trial.name]
        X, classes, scores = self.session.train.X, self.session.whole.classes, {trial.name: self._score(trial.name)}
        alone = {trial.name: fitted[trial.name]}
        return weighted_stack(alone, [1.0], X, classes, scores=scores, calibration=calibration.by)

    def _refitted(self, trials: list[Trial], best: str) -> dict[str, Any]:
        """Return models fitted to all rows, including the test set; without time left, those of the training rows."""
        session, whole = self.session, self.session.whole
        as_fitted = {trial.name: self.models[trial.name] for trial in trials}
        names = ", ".join(as_fitted)
        if best == STACK:
            names = f"a stack of {names}"
        if self.larger is not None:
            return {best: self.larger}
        if session.was_interrupted or not self._fits(trials):
            if all(name in self.fit_seconds for name in as_fitted):  # else a note names the models of a fold
                why = "Ctrl-C ended the study" if session.was_interrupted else "there was no time to fit it to all rows"
                session.notes.append(
                    f"The final model ({names}) is fitted to the {session.train.n_rows:,} training rows: {why}."
                )
            return as_fitted
        try:
            fitted = {
                trial.name: self._fit_or_keep(trial, self._last_seconds(trials[k + 1 :]))
                for k, trial in enumerate(trials)
            }
        except KeyboardInterrupt:
            session.was_interrupted = True
            session.notes.append(
                f"Interrupted: the final model is fitted to the {session.train.n_rows:,} training rows."
            )
            return as_fitted
        if any(fitted[name] is not model for name, model in as_fitted.items()):
            session.notes.append(
                f"The final model ({names}) is fitted to all {whole.n_rows:,} rows, including the test set."
            )
        return fitted

    def _fit_or_keep(self, trial: Trial, spare: float) -> Any:
        """Fit a model to all rows; return the earlier model if the time limit has made the new one worse.

        The test set decides: only the new fit has seen it.
        """
        session = self.session
        model, earlier = self._last_fit(trial, spare=spare), self.models[trial.name]
        if not self.is_cut or self._is_better(model, earlier, session.test):
            return model
        session.notes.append(
            f"Time was short: the final {trial.name} is that of the training rows, which predicts the test set better."
        )
        return earlier

    def _tree(self) -> tuple[Any, float]:
        """Return the tree of the report, and the seconds of its fit to all training rows."""
        session = self.session
        if TREE in self.models:
            return self.models[TREE], self.fit_seconds.get(TREE, 0.0)
        tree = estimator_for(TREE, session.whole.task, session.plan.effort, session.seed, session.metrics[0])
        is_short = session.was_interrupted or session.budget.left < _TREE_SHARE * session.budget.seconds
        most = min(_ROWS_OF_TREE, session.train.n_rows) if is_short else session.train.n_rows
        start = clock.monotonic()
        fitted = session.runner.fit(Candidate(TREE, tree, max_rows=most), None)
        return fitted, (clock.monotonic() - start) * session.train.n_rows / most

    # ---- leaderboard -------------------------------------------------------------------------------------------------

    def _entries(self, order: list[Trial], scores: Scores, tested: dict[str, Floats]) -> list[Entry]:
        session, metrics = self.session, self.session.metrics
        sizes = np.array([[len(fold.held_out), len(fold.train)] for fold in self.folds]).mean(axis=0)
        ratio = float(sizes[0] / sizes[1])
        gaps = paired_differences(np.array([scores[trial.name][metrics[0]] for trial in order]), 0, ratio, is_best=True)
        return [
            Entry(
                name=trial.name,
                scores=scores[trial.name],
                mean=float(scores[trial.name][metrics[0]].mean()),
                error=corrected_error(scores[trial.name][metrics[0]], ratio),
                difference=gap,
                fit_seconds=trial.mean_seconds("fit_seconds"),
                predict_seconds=trial.mean_seconds("predict_seconds"),
                test={
                    metric: session.scorers.with_interval(
                        metric, tested[trial.name], session.test.y, session.seed, session.test.groups
                    )
                    for metric in metrics
                },
                is_baseline=trial.candidate.is_baseline,
                is_peer=trial.candidate.is_peer,
            )
            for trial, gap in zip(order, gaps, strict=True)
        ]

    def _why(self, best: Trial, order: list[Trial]) -> str:
        """Return a sentence on why a model is kept."""
        session, ahead = self.session, _own(order)[0]
        why = f"{best.name} is kept: it is the best model."
        if self.reason:
            why = f"{best.name} is kept: {self.reason}"
        elif best is not ahead and ahead.name == STACK and list(self.weights) == [best.name]:
            why = f"{best.name} is kept: the stack gives all weight to it."
        elif best is not ahead:
            why = f"{best.name} is kept."
            if simplicity(best.name) < simplicity(ahead.name) and session.options.prefer == SIMPLEST:
                why = (
                    f"{best.name} is kept: it is simpler than {ahead.name}, which scores better by less than a "
                    "standard error. To keep the best score: prefer='best' (--best)."
                )
        if any(trial.candidate.is_baseline for trial in order[: order.index(best)]):
            why += " It is no better than the baseline: nothing was learned."
        return why

    def _note_peers(self, order: list[Trial], best: Trial) -> None:
        ahead = [trial.name for trial in order[: order.index(best)] if trial.candidate.is_peer]
        if ahead:
            self.session.notes.append(f"On these folds {', '.join(ahead)} scored better than {best.name}.")


def _own(order: list[Trial]) -> list[Trial]:
    """Return the models of spinney; all models if there are none."""
    return [trial for trial in order if trial.is_own] or order


def _take_whole_tables(model: Any) -> None:
    """Let a model predict tables as the study got them: with more columns, and with dates instead of their parts."""
    for one in getattr(model, "estimators_", [model]) if hasattr(model, "_weighted_mean") else [model]:
        if hasattr(one, "schema_"):
            one.schema_ = one.schema_.opened()


def _versions(peers: bool) -> dict[str, str]:
    versions = {"spinney": __version__}
    for name in _LIBRARIES + (_PEER_LIBRARIES if peers else ()):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # installed under another name
            continue
    return versions
