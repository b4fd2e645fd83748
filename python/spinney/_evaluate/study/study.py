"""``study``: from a table and a target to a compared family of models."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney._data.file_readers import MAX_BYTES, ReadTable, read_file
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.members import MeanPredictions
from spinney._ensemble.stacking import weighted_stack
from spinney._evaluate.folds import LARGEST_SEED
from spinney._evaluate.problem import Models
from spinney._evaluate.runner import REFIT, REFIT_ALL, Candidate, ProgressCall, Trial
from spinney._evaluate.scoring import Scorers, Scoring, read_metrics
from spinney._evaluate.statistics import corrected_error, paired_differences
from spinney._evaluate.study.combine import Calibrated, calibrate, fit_stack
from spinney._evaluate.study.findings import Entry
from spinney._evaluate.study.plan import STACK, TREE, estimator_for
from spinney._evaluate.study.prepare import StudyOptions, prepare
from spinney._evaluate.study.result import Study
from spinney._evaluate.study.session import Session
from spinney._model.predictions import Calibration, calibrated
from spinney._names import __version__

_DEFAULTS = {field.name: field.default for field in fields(StudyOptions)}


def study(
    table: TableLike,
    target: str | ColumnLike,
    *,
    group: str | None = None,
    time: str | None = None,
    metric: Scoring = None,
    task: str = "auto",
    minutes: float = 2.0,
    peers: bool = False,
    models: Models | None = None,
    folds: int = 5,
    repeats: int | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    random_state: int | np.random.RandomState | None = 0,
    progress: bool | ProgressCall = False,
) -> Study:
    """Study a table: fit a family of models to it, compare them honestly, and keep the best.

    A fifth of the rows is locked away. On the others a pruned tree, boosting, a forest, extra-trees, a linear model,
    AdaBoost, neighbours, a support vector machine (the last four where they are not too much work; as time allows also
    boosting with symmetric trees and, for values that are never negative, boosting of the logarithm of the mean) and a
    stack of them are compared by cross-validation on the same folds. All are then judged on the rows that were locked
    away, and the best by cross-validation is fitted to all rows. `notes` say what was done and why.

    Columns that name rows, hold one value, or tell the target nearly alone are left out; dates are taken apart; equal
    rows stay together. How much is done follows from the size of the table and from `minutes` by counting, so that the
    same call gives the same bits, unless time runs out: then `notes` say what was cut. Of a table that is too wide for
    the time, the most telling columns are studied, chosen by rows that judge nothing. Ctrl-C keeps what is done.

    Parameters
    ----------
    table : frame, dict of columns, array, str or Path
        Rows: a pandas, polars or pyarrow table, a dict of arrays, an array, or a CSV, Parquet, Arrow or Excel file (of
        one that is larger than 256 MB rows are drawn at random).
    target : str or array-like of shape (n_samples,)
        Name of the column to predict, or its values.
    group : str, optional
        Column: rows with the same value stay together, all learned from or all judged by.
    time : str, optional
        Column: rows to judge by come later than those learned from.
    metric : str or list of str, optional
        Scikit-learn scorers; the first decides. None: log loss and accuracy (and the area under the ROC curve for two
        classes), or the root of the mean squared error and R².
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": strings, booleans and categories make a classification, and so do numbers that are whole (1.0 too) and
        have at most ten different values, each of which occurs twice on average. `compare`, ``spinney fit`` and
        ``spinney bench`` go by the same rule.
    minutes : float, default=2.0
        Time that the study may take.
    peers : bool, default=False
        Whether to compare with scikit-learn, LightGBM, XGBoost and CatBoost with their defaults, where installed.
    models : list, optional
        Words of ``spinney fit --model``, or pairs of a name and an estimator of spinney. None: the usual ones.
    folds : int, default=5
        Folds of the cross-validation.
    repeats : int, optional
        How often folds are drawn anew. None: up to three times, as time allows.
    keep, drop : sequence of str, optional
        Columns to learn from, or not, whatever they look like.
    random_state : int, RandomState or None, default=0
        Seed of the parts, folds and models.
    progress : bool or callable, default=False
        True: tell what is done on standard error. A function is called with the number of fits done, the number there
        will be, what is being done, and the seconds left.

    Returns
    -------
    Study
        Prints as a leader board; has `leaderboard`, `best`, `model`, `notes`, `report`, `save`.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> found = spinney.study(X, y, models=["tree", "linear"], repeats=1)
    >>> found.task, len(found.leaderboard)
    ('multiclass', 4)
    >>> found.model.predict(X)[:2].tolist()
    ['Adelie', 'Adelie']
    """
    start, source, read = clock.monotonic(), "", list[str]()
    given = {name: value for name, value in locals().items() if name in _DEFAULTS and _differs(value, _DEFAULTS[name])}
    if not isinstance(minutes, Real) or not 0 < minutes < math.inf:
        raise ValueError(f"minutes must be a number above 0, such as 2 or 0.5. Got {minutes!r}.")
    if folds < 2:
        raise ValueError(f"folds must be at least 2, so that some rows are learned from. Got {folds!r}.")
    random, columns = check_random_state(random_state), {"keep": _names(keep, "keep"), "drop": _names(drop, "drop")}
    options = StudyOptions(**given | columns)
    seed = int(random.randint(LARGEST_SEED))
    if isinstance(table, (str, Path)):
        source = str(table)
        table = read_file(Path(table), max_bytes=MAX_BYTES, seed=seed)
    if isinstance(table, ReadTable):  # its reading counts
        start, table, read = table.since, table.frame, table.notes
    data = prepare(table, target, options, seed)
    data.notes[:0] = read
    session = Session(data, options, random, start, progress)
    with session.progress:
        result = Finish(session, *session.tried()).study()
    result.source, result.options = source, given
    return result


def _differs(value: object, default: object) -> bool:
    return type(value) is not type(default) or bool(value != default)


def _names(given: Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not all(isinstance(name, str) for name in given):
        raise TypeError(f"{what} must be names of columns. Got {given!r}.")
    return tuple(given)


Scores = dict[str, dict[str, Floats]]  # by model, metric and fold
_LIBRARIES = ("numpy", "scipy", "scikit-learn")
_PEER_LIBRARIES = ("lightgbm", "xgboost", "catboost")


@dataclass(eq=False)
class Finish:
    """Fits, tests and saves the models that are done with the folds."""

    session: Session
    done: list[Trial]
    n_repeats: int
    models: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folds = [fold for folds in self.session.folds.repeats[: self.n_repeats] for fold in folds]
        self.test_share = float(np.mean([len(fold.held_out) / len(fold.train) for fold in self.folds]))
        self.out_of_fold = {trial.name: self._out_of_fold(trial) for trial in self.done}
        self.members = [trial for trial in self.done if trial.is_own and trial.name != STACK]
        self.weights = self._weights()

    def study(self) -> Study:
        """Fit, test, choose, calibrate, refit."""
        session, scores = self.session, {trial.name: self._scores_of(trial) for trial in self.done}
        order = self._ordered(self.done, scores)
        self._fit_all(order, self._preferred(order, scores))
        order = [trial for trial in order if trial.name in self.models]
        best = self._preferred(order, scores)
        tested = {one.name: session.runner.predict(self.models[one.name], session.test.X) for one in order}
        calibration = self._calibration(best)
        if calibration.by is not None:  # what is saved is what is evaluated
            tested[best.name] = calibrated(tested[best.name], calibration.by)
            self._recalibrate(best, calibration)
            scores[best.name] = self._scores_of(best)
            order = self._ordered(order, scores)
        self._note_best(best, order, calibration)
        model = self._last(best, calibration)
        tree = self.models[TREE] if TREE in self.models else self._tree()
        self._note_peers(order, best)
        session.progress.done()
        whole, train, test = session.whole, session.train, session.test
        return Study(
            task=whole.task,
            metrics=session.metrics,
            target=whole.target,
            classes=whole.classes,
            columns=whole.columns,
            notes=session.notes,
            X_train=train.X,
            y_train=train.y,
            X_test=test.X,
            y_test=test.y,
            folds=[(fold.train, fold.held_out) for fold in self.folds],
            leaderboard=self._entries(order, scores, tested),
            models={trial.name: self.models[trial.name] for trial in order},
            out_of_fold={trial.name: self._flat(self.out_of_fold[trial.name]) for trial in order},
            test_predictions={name: self._flat(one) for name, one in tested.items()},
            best=best.name,
            model=model,
            calibration=calibration.why,
            tree=tree,
            n_rows=whole.n_rows,
            seconds=session.budget.elapsed,
            versions=_versions(session.options.peers),
        )

    # ---- predictions and scores --------------------------------------------------------------------------------------

    def _flat(self, predictions: Floats) -> Floats:
        return predictions if self.session.whole.classes is not None else np.asarray(predictions[:, 0])

    def _out_of_fold(self, trial: Trial) -> Floats:
        mean = MeanPredictions(self.session.train.n_rows)
        for k in range(self.n_repeats):
            for fold, predictions in zip(self.session.folds.repeats[k], trial.predictions(k), strict=True):
                mean.add(fold.held_out, predictions)
        return mean.value

    def _recalibrate(self, best: Trial, calibration: Calibrated) -> None:
        """Put the calibrated predictions of each fold in the place of the best model's own."""
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
        """Return models by their mean score, the best first; those without one come last."""
        metric = self.session.metrics[0]
        return sorted(trials, key=lambda trial: -np.nan_to_num(scores[trial.name][metric].mean(), nan=-np.inf))

    def _preferred(self, order: list[Trial], scores: Scores) -> Trial:
        """Return the best of our own; the stack, if what is ahead of it is so by less than its standard error.

        Which of several good models is ahead is partly chance, and a mean of them is the steadier choice.
        """
        own, metric = _own(order), self.session.metrics[0]
        stack = next((trial for trial in own if trial.name == STACK), own[0])
        gaps = scores[own[0].name][metric] - scores[stack.name][metric]
        error = corrected_error(gaps, self.test_share) if len(gaps) > 1 else 0.0
        return stack if float(gaps.mean()) <= error else own[0]

    def _weights(self) -> dict[str, tuple[float, float | None]]:
        """Return weights and temperatures of the stack's members, by all rows that were held out."""
        if len(self.members) < 2:
            return {}
        predictions = [self.out_of_fold[trial.name] for trial in self.members]
        known = ~np.isnan(predictions[0][:, 0])
        held_out = self.session.held_out(0)
        predictions, target = [one[known] for one in predictions], held_out.target[known]
        found = zip(*fit_stack(predictions, target, held_out.classes), strict=True)
        return {trial.name: one for trial, one in zip(self.members, found, strict=True) if one[0] > 0}

    # ---- fits --------------------------------------------------------------------------------------------------------

    def _fit_all(self, order: list[Trial], best: Trial) -> None:
        """Fit the models to all rows to learn from, the best first; an interruption or the clock ends it."""
        session, late = self.session, list[str]()
        needed = [trial for trial in order if trial in self._parts(best)]
        again = REFIT_ALL * sum(trial.fold_seconds for trial in needed)  # the last fit of the best, to all rows
        try:
            for trial in [*needed, *(trial for trial in order if trial not in needed and trial.name != STACK)]:
                spare = 0.0 if trial in needed else again
                if self._comes_late(trial, spare):
                    late.append(trial.name)
                    continue
                session.progress.step(f"{trial.name}, all rows to learn from")
                self.models[trial.name] = session.runner.fit(trial.candidate, None)
        except KeyboardInterrupt:
            if not self.models:
                raise
            session.notes.append("Interrupted: models that were not fitted by then are left out.")
            session.was_interrupted = True
        if late:
            session.notes.append(
                f"Left out, as the clock ran out before the last fits: {', '.join(late)}. Allow more minutes "
                "(--minutes)."
            )
        if self.weights and all(name in self.models for name in self.weights):
            self.models[STACK] = self._stack({name: self.models[name] for name in self.weights}, None)

    def _comes_late(self, trial: Trial, spare: float) -> bool:
        """Tell whether there is no time for a last fit: one model of our own there must be."""
        has_own = any(member.name in self.models for member in self.members)
        seconds = REFIT * trial.fold_seconds + spare
        return has_own and not trial.candidate.is_baseline and self.session.budget.left < seconds

    def _parts(self, trial: Trial) -> list[Trial]:
        """Return the models that one is made of."""
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
        scorers = Scorers(read_metrics(metric), session.whole.classes)
        return scorers.score(metric, predictions[known], session.train.y[known])

    def _calibration(self, best: Trial) -> Calibrated:
        """Find what makes the probabilities of the best better."""
        if self.session.whole.classes is None or best.candidate.is_baseline:
            return Calibrated(None, "")
        return calibrate(best.predictions(0), self.session.held_out(0))

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
        runner = session.runner_of(whole)
        try:
            found = {}
            for trial in parts:
                session.progress.step(f"{trial.name}, all rows")
                found[trial.name] = runner.fit(trial.candidate, None)
        except KeyboardInterrupt:
            session.notes.append(f"Interrupted: the model that is kept learned from {session.train.n_rows:,} rows.")
            return as_fitted
        session.notes.append(
            f"The model that is kept ({names}) learned from all {whole.n_rows:,} rows, those of the test part too."
        )
        return found

    def _tree(self) -> Any:
        """Fit the tree that the report shows, where it is none of the models."""
        tree = estimator_for(TREE, self.session.whole.task, self.session.plan.care, self.session.seed)
        return self.session.runner.fit(Candidate(TREE, tree), None)

    # ---- the board ---------------------------------------------------------------------------------------------------

    def _entries(self, order: list[Trial], scores: Scores, tested: dict[str, Floats]) -> list[Entry]:
        session, metrics = self.session, self.session.metrics
        sizes = np.array([[len(fold.held_out), len(fold.train)] for fold in self.folds]).mean(axis=0)
        share = float(sizes[0] / sizes[1])
        gaps = paired_differences(np.array([scores[trial.name][metrics[0]] for trial in order]), 0, share)
        return [
            Entry(
                name=trial.name,
                scores=scores[trial.name],
                mean=float(scores[trial.name][metrics[0]].mean()),
                error=corrected_error(scores[trial.name][metrics[0]], share),
                difference=gap,
                fit_seconds=trial.mean_seconds("fit_seconds"),
                predict_seconds=trial.mean_seconds("predict_seconds"),
                test={
                    metric: session.scorers.with_interval(metric, tested[trial.name], session.test.y, session.seed)
                    for metric in metrics
                },
                is_baseline=trial.candidate.is_baseline,
                is_peer=trial.candidate.is_peer,
            )
            for trial, gap in zip(order, gaps, strict=True)
        ]

    def _note_best(self, best: Trial, order: list[Trial], calibration: Calibrated) -> None:
        """Say which model is kept, why, and what was done to its probabilities."""
        ahead = _own(order)[0]
        why = f"{best.name} is the best."
        if best is not ahead:
            why = (
                f"{best.name} is kept: {ahead.name} is ahead by less than the standard error of the difference, and a "
                "mean of several models is the steadier choice."
            )
        self.session.notes.append(f"{why} {calibration.why}".rstrip())

    def _note_peers(self, order: list[Trial], best: Trial) -> None:
        ahead = [trial.name for trial in order[: order.index(best)] if trial.candidate.is_peer]
        if ahead:
            self.session.notes.append(f"On these folds {', '.join(ahead)} did better than {best.name}.")


def _own(order: list[Trial]) -> list[Trial]:
    """Return our own models; all of them, if there is none."""
    return [trial for trial in order if trial.is_own] or order


def _versions(peers: bool) -> dict[str, str]:
    found = {"spinney": __version__}
    for name in _LIBRARIES + (_PEER_LIBRARIES if peers else ()):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # installed under another name
            continue
    return found
