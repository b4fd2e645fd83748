"""What comes after the folds of a study: the last fits, the choice, the test part, the board."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.select import pick_table
from spinney._ensemble.stacking.assembled import weighted_stack
from spinney._ensemble.stacking.out_of_fold import OutOfFold
from spinney._evaluate.compare.problem import read_metrics
from spinney._evaluate.compare.result import Comparison
from spinney._evaluate.compare.statistics import corrected_error
from spinney._evaluate.study.combine import Calibrated, calibrate, temperatures_of, tempered_each, weights_of
from spinney._evaluate.study.family import STACK, TREE, Candidate, estimator_for
from spinney._evaluate.study.predictions import Scorers
from spinney._evaluate.study.progress import Teller
from spinney._evaluate.study.result import Entry, Study
from spinney._evaluate.study.run import REFIT, REFIT_ALL, Runner, Trial
from spinney._evaluate.study.session import Session
from spinney._model.calibration import Calibration, calibrated
from spinney._names import __version__

Floats = NDArray[np.float64]
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_PEER_LIBRARIES = ("lightgbm", "xgboost", "catboost")


@dataclass(eq=False)
class Finish:
    """Fits, judges and keeps the models that are done with the folds."""

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
