"""One study from prepared rows to its result: plan, folds, stack, test part, last fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.pick import pick_table
from spinney._ensemble.stacking.assembled import weighted_stack
from spinney._ensemble.stacking.out_of_fold import OutOfFold
from spinney._fitted.calibration import Calibration, calibrated
from spinney._judge.compare.problem import read_metrics, read_models
from spinney._judge.compare.result import Comparison
from spinney._judge.compare.statistics import corrected_error
from spinney._learn.folds import Fold
from spinney._learn.table_estimator import SavedEstimator
from spinney._names import __version__
from spinney._study.answers import Scorers
from spinney._study.combine import Calibrated, HeldOut, calibrate, stacked, temperatures_of, tempered_each, weights_of
from spinney._study.family import (
    STACK,
    TREE,
    Candidate,
    Plan,
    Size,
    baseline_for,
    estimator_for,
    make_plan,
    quicker,
    work_of,
)
from spinney._study.peers import peer_candidates
from spinney._study.prepare import Prepared
from spinney._study.profile import Columns
from spinney._study.progress import Teller
from spinney._study.result import Entry, Study
from spinney._study.run import REFIT, REFIT_ALL, Budget, Runner, Trial
from spinney._study.screen import screened
from spinney._study.split import TEST_SHARE, make_splits, split_off_test
from spinney._words.digits import plural

Floats = NDArray[np.float64]
_METRICS = {
    "binary": ["neg_log_loss", "roc_auc", "accuracy"],
    "multiclass": ["neg_log_loss", "accuracy"],
    "regression": ["neg_root_mean_squared_error", "r2"],
}
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_PEER_LIBRARIES = ("lightgbm", "xgboost", "catboost")
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
    """Does one study.

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
            if not isinstance(one, str) and not isinstance(one, SavedEstimator):
                raise TypeError(f"models holds {one!r:.100}, which is no estimator of spinney. Use compare for others.")
            model = estimator_for(one, task, care, self.seed) if isinstance(one, str) else one
            found.append(Candidate(word.replace("_", "-"), model, work_of(word, size, care)))
        return found + (peer_candidates(task, size, self.seed) if self.asked.peers else [])

    # ---- the folds ---------------------------------------------------------------------------------------------------

    def run(self) -> Study:
        """Do it."""
        trials = [Trial(candidate) for candidate in self.candidates]
        repeats = self.runner.repeats
        n_fits = len(trials) * sum(map(len, repeats))
        with Teller(self.asked.progress, n_fits + len(trials) + 1, self.budget) as teller:
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
            return _Finish(self, done, n_repeats, teller).study()

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


@dataclass(eq=False)
class _Finish:
    """What comes after the folds."""

    session: Session
    done: list[Trial]
    n_repeats: int
    teller: Teller
    models: dict[str, Any] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        session = self.session
        self.folds = [fold for folds in session.runner.repeats[: self.n_repeats] for fold in folds]
        self.out_of_fold = {trial.name: self._out_of_fold(trial) for trial in self.done}
        self.members = [t for t in self.done if not (t.candidate.is_baseline or t.candidate.is_peer or t.name == STACK)]

    def study(self) -> Study:
        """Fit, test, choose, calibrate, refit."""
        session, scores = self.session, self._scores()
        order = sorted(self.done, key=lambda t: -np.nan_to_num(scores[t.name][session.metrics[0]].mean(), nan=-np.inf))
        self.weights = self._weights()
        self._fit_all(order, self._preferred(order, scores))
        order = [trial for trial in order if trial.name in self.models]
        best = self._preferred(order, scores)
        said = {t.name: session.runner.says(self.models[t.name], session.test.X) for t in order}
        calibration = self._calibration(best)
        if calibration.by is not None:  # what is kept is what is judged
            said[best.name] = calibrated(said[best.name], calibration.by)
            best.said = [calibration.of_folds(one, session.held_out(k)) for k, one in enumerate(best.said)]
            scores[best.name] = self._scores_of(best)
            self.out_of_fold[best.name] = self._out_of_fold(best)
            order.sort(key=lambda t: -np.nan_to_num(scores[t.name][session.metrics[0]].mean(), nan=-np.inf))
        self._say_best(best, order, scores, calibration)
        model = self._last(best, calibration)
        tree = self.models.get(TREE)
        if tree is None:
            tree = session.runner.fit(self._tree(), None)
        self._say_peers(order, best)
        self.teller.done()
        return Study(
            task=session.whole.task,
            metrics=session.metrics,
            target=session.whole.target,
            classes=session.whole.classes,
            columns=session.whole.columns,
            notes=session.notes,
            X_train=session.train.X,
            y_train=session.train.y,
            X_test=session.test.X,
            y_test=session.test.y,
            folds=[(fold.grown_on, fold.held_out) for fold in self.folds],
            leaderboard=self._entries(order, scores, said),
            models={t.name: self.models[t.name] for t in order},
            out_of_fold={t.name: self._flat(self.out_of_fold[t.name]) for t in order},
            test_predictions={name: self._flat(one) for name, one in said.items()},
            best=best.name,
            model=model,
            calibration=calibration.why,
            tree=tree,
            n_rows=session.whole.n_rows,
            seconds=session.budget.elapsed,
            versions=_versions(session.asked.peers),
        )

    # ---- what the models said ----------------------------------------------------------------------------------------

    def _flat(self, said: Floats) -> Floats:
        return said if self.session.whole.classes is not None else np.asarray(said[:, 0])

    def _out_of_fold(self, trial: Trial) -> Floats:
        found = OutOfFold(self.session.train.n_rows)
        for k in range(self.n_repeats):
            for fold, said in zip(self.session.runner.repeats[k], trial.said[k], strict=True):
                found.add(fold.held_out, said)
        return found.mean

    def _scores(self) -> dict[str, dict[str, Floats]]:
        """Return the scores by model, metric and fold."""
        return {trial.name: self._scores_of(trial) for trial in self.done}

    def _scores_of(self, trial: Trial) -> dict[str, Floats]:
        session, said = self.session, [one for k in range(self.n_repeats) for one in trial.said[k]]
        rows = [
            session.scorers.scores(one, session.train.y[fold.held_out])
            for one, fold in zip(said, self.folds, strict=True)
        ]
        return {metric: np.array([row[metric] for row in rows]) for metric in session.metrics}

    def _preferred(self, order: list[Trial], scores: dict[str, dict[str, Floats]]) -> Trial:
        """Return the best of our own; the stack, if what is ahead of it is so by less than its standard error.

        Which of several good models is ahead is partly chance, and a mean of them is the steadier choice.
        """
        own = [t for t in order if not (t.candidate.is_baseline or t.candidate.is_peer)] or order
        stack = next((trial for trial in own if trial.name == STACK), own[0])
        gap, error = self._gap(own[0], stack, scores)
        return stack if gap <= error else own[0]

    def _gap(self, one: Trial, other: Trial, scores: dict[str, dict[str, Floats]]) -> tuple[float, float]:
        """Return what a model scores more than another, by the metric that decides, and the standard error of that."""
        metric = self.session.metrics[0]
        gaps = scores[one.name][metric] - scores[other.name][metric]
        share = float(np.mean([len(fold.held_out) / len(fold.grown_on) for fold in self.folds]))
        return float(gaps.mean()), corrected_error(gaps, share) if len(gaps) > 1 else 0.0

    def _weights(self) -> dict[str, tuple[float, float]]:
        """Return weights and temperatures of the stack's members, by all rows that were held out."""
        if len(self.members) < 2:
            return {}
        said = [self.out_of_fold[trial.name] for trial in self.members]
        judged = ~np.isnan(said[0][:, 0])
        held_out = self.session.held_out(0)
        said, target = [one[judged] for one in said], held_out.target[judged]
        each = temperatures_of(said, target, held_out.classes)
        found = weights_of(tempered_each(said, each), target, held_out.classes)
        by_name = zip([trial.name for trial in self.members], found, each or [1.0] * len(found), strict=True)
        return {name: (weight, temperature) for name, weight, temperature in by_name if weight > 0}

    # ---- fits --------------------------------------------------------------------------------------------------------

    def _fit_all(self, order: list[Trial], best: Trial) -> None:
        """Fit the models to all rows to learn from, what is to be kept first; an interruption or the clock ends it."""
        session = self.session
        needed = [trial for trial in order if trial in self._parts(best)]
        again = REFIT_ALL * sum(trial.fold_seconds for trial in needed)  # the last fit of what is kept, to all rows
        try:
            for trial in [*needed, *(trial for trial in order if trial not in needed and trial.name != STACK)]:
                has_own = any(member.name in self.models for member in self.members)
                spare = 0.0 if trial in needed else again
                if (
                    has_own
                    and session.budget.left < REFIT * trial.fold_seconds + spare
                    and not trial.candidate.is_baseline
                ):
                    self.late.append(trial.name)
                    continue
                self.teller.step(f"{trial.name}, all rows to learn from")
                self.models[trial.name] = session.runner.fit(trial.candidate, None)
        except KeyboardInterrupt:
            if not self.models:
                raise
            session.notes.append("Interrupted: models that were not fitted by then are left out.")
            session.was_interrupted = True
        if self.late:
            names = ", ".join(self.late)
            session.notes.append(
                f"Left out, as the clock ran out before the last fits: {names}. Allow more minutes (--minutes)."
            )
        if self.weights and all(name in self.models for name in self.weights):
            self.models[STACK] = self._stack({name: self.models[name] for name in self.weights}, None)

    def _parts(self, trial: Trial) -> list[Trial]:
        """Return the models that one is made of."""
        return [t for t in self.members if t.name in self.weights] if trial.name == STACK else [trial]

    def _stack(self, members: dict[str, Any], calibration: Calibration) -> Any:
        session = self.session
        scores = {name: self._score(name) for name in members}
        weights, each = ([self.weights[name][k] for name in members] for k in range(2))
        X, classes = session.train.X, session.whole.classes
        given = None if classes is None else each
        return weighted_stack(members, weights, X, classes, scores=scores, temperatures=given, calibration=calibration)

    def _score(self, name: str) -> float:
        """Score of what a model says of rows held out: accuracy, or R²."""
        session, said = self.session, self.out_of_fold[name]
        judged = ~np.isnan(said[:, 0])
        metric = "r2" if session.whole.classes is None else "accuracy"
        scorers = Scorers(read_metrics([metric], ""), session.whole.classes)
        return scorers.score(metric, said[judged], session.train.y[judged])

    def _calibration(self, best: Trial) -> Calibrated:
        """Find what makes the probabilities of the best better."""
        if self.session.whole.classes is None or best.candidate.is_baseline:
            return Calibrated(None, "")
        return calibrate(best.said[0], self.session.held_out(0))

    def _last(self, best: Trial, calibration: Calibrated) -> Any:
        """Fit the best model to all rows."""
        session, fitted = self.session, self._refitted(self._parts(best))
        if best.name == STACK:
            return self._stack(fitted, calibration.by)
        if calibration.by is None:
            return fitted[best.name]
        X, classes, scores = session.train.X, session.whole.classes, {best.name: self._score(best.name)}
        return weighted_stack(fitted, [1.0], X, classes, scores=scores, calibration=calibration.by)

    def _refitted(self, parts: list[Trial]) -> dict[str, Any]:
        """Fit models to all rows, the test part too, if time is left; else return those of the rows to learn from."""
        session, whole = self.session, self.session.whole
        as_fitted = {trial.name: self.models[trial.name] for trial in parts}
        seconds = sum(trial.fold_seconds for trial in parts) * REFIT_ALL * whole.n_rows / session.data.n_rows
        names = ", ".join(as_fitted)
        if session.was_interrupted or seconds > session.budget.left:
            session.notes.append(
                f"The model that is kept ({names}) learned from {session.train.n_rows:,} rows: there was no time "
                "to fit it to all."
            )
            return as_fitted
        runner = Runner(pick_table(whole.X), whole.y, whole.codes, whole.classes, [], session.budget)
        try:
            found = {}
            for trial in parts:
                self.teller.step(f"{trial.name}, all rows")
                found[trial.name] = runner.fit(trial.candidate, None)
        except KeyboardInterrupt:
            session.notes.append(f"Interrupted: the model that is kept learned from {session.train.n_rows:,} rows.")
            return as_fitted
        session.notes.append(
            f"The model that is kept ({names}) learned from all {whole.n_rows:,} rows, those of the test part too."
        )
        return found

    def _tree(self) -> Candidate:
        session = self.session
        return Candidate(TREE, estimator_for(TREE, session.whole.task, session.plan.care, session.seed), 0.0)

    # ---- the board ---------------------------------------------------------------------------------------------------

    def _entries(
        self, order: list[Trial], scores: dict[str, dict[str, Floats]], said: dict[str, Floats]
    ) -> list[Entry]:
        session, names = self.session, [trial.name for trial in order]
        metrics, first = session.metrics, names[0]
        sizes = np.array([[len(fold.grown_on), len(fold.held_out)] for fold in self.folds]).mean(axis=0)
        times = np.zeros((len(names), len(self.folds)))
        by_metric = {metric: np.array([scores[name][metric] for name in names]) for metric in metrics}
        compared = Comparison(names, metrics, by_metric, times, times, {}, first, {}, float(sizes[0]), float(sizes[1]))
        gaps = compared.differences()
        return [
            Entry(
                trial.name,
                scores[trial.name],
                *compared.mean(trial.name),
                gaps[trial.name],
                float(np.mean(trial.fit_seconds)),
                float(np.mean(trial.predict_seconds)),
                {
                    metric: session.scorers.with_interval(metric, said[trial.name], session.test.y, session.seed)
                    for metric in metrics
                },
                trial.candidate.is_baseline,
                trial.candidate.is_peer,
            )
            for trial in order
        ]

    def _say_best(
        self, best: Trial, order: list[Trial], scores: dict[str, dict[str, Floats]], calibration: Calibrated
    ) -> None:
        """Say which model is kept, why, and what was done to its probabilities."""
        own = [t for t in order if not (t.candidate.is_baseline or t.candidate.is_peer)] or order
        why = f"{best.name} is the best."
        if best is not own[0]:
            why = (
                f"{best.name} is kept: {own[0].name} is ahead by less than the standard error of the difference, and a "
                "mean of several models is the steadier choice."
            )
        self.session.notes.append(f"{why} {calibration.why}".rstrip())

    def _say_peers(self, order: list[Trial], best: Trial) -> None:
        ahead = [trial.name for trial in order[: order.index(best)] if trial.candidate.is_peer]
        if ahead:
            self.session.notes.append(f"On these folds {', '.join(ahead)} did better than {best.name}.")


def _versions(peers: bool) -> dict[str, str]:
    found = {"spinney": __version__}
    for name in _LIBRARIES + (_PEER_LIBRARIES if peers else ()):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # installed under another name
            continue
    return found
