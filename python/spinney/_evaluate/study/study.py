"""``study``: fit and compare several models on a table."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from spinney._data.csv_format import CsvFormat
from spinney._data.file_readers import MAX_BYTES, ReadTable, read_file
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.members import MeanPredictions
from spinney._ensemble.stacking import weighted_stack
from spinney._evaluate.folds import LARGEST_SEED
from spinney._evaluate.problem import Models
from spinney._evaluate.runner import Candidate, ProgressCall, Trial
from spinney._evaluate.scoring import Scorers, Scoring, describe_error, read_metrics
from spinney._evaluate.statistics import corrected_error, paired_differences
from spinney._evaluate.study.combine import Calibrated, calibrate, fit_stack
from spinney._evaluate.study.findings import Entry
from spinney._evaluate.study.plan import STACK, TREE, estimator_for
from spinney._evaluate.study.prepare import StudyOptions, prepare
from spinney._evaluate.study.result import Study
from spinney._evaluate.study.schedule import REFIT, REFIT_ALL
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
    scoring: Scoring = None,
    positive: object = None,
    task: str = "auto",
    minutes: float = 2.0,
    peers: bool = False,
    models: Models | None = None,
    cv: int | BaseCrossValidator = 5,
    repeats: int | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    random_state: int | np.random.RandomState | None = 0,
    progress: bool | ProgressCall | None = None,
) -> Study:
    """Fit several models to a table, compare them by cross-validation, and return the best.

    A fifth of the rows is held out as a test set. On the others boosting, a pruned tree, a forest, extra-trees, a
    linear model, AdaBoost, k-NN, an SVM, boosting with symmetric trees (and, for a nonnegative target, with a log link)
    and a stack of them are compared by cross-validation on the same folds, as time allows. All are then evaluated on
    the test set, and the best by cross-validation is fitted to all rows. `notes` list the decisions and their reasons.

    Identifiers, constant columns and columns that leak the target are excluded; date parts are derived; duplicate rows
    stay in the same fold. Settings follow from the size of the table and from `minutes`, so that results are
    reproducible unless time is short; `notes` then report which models were left out or fitted to fewer rows. Of a
    table that is too wide for the time limit, the most predictive columns are used, chosen on rows that are used for
    nothing else. Ctrl-C ends the study with the models fitted so far.

    Parameters
    ----------
    table : frame, dict of columns, array, str or Path
        A pandas, polars or pyarrow table, a dict of arrays, an array, or a CSV, Parquet, Arrow or Excel file (a file
        larger than 256 MB is sampled at random).
    target : str or array-like of shape (n_samples,)
        Name of the column to predict, or its values.
    group : str, optional
        Column of group labels: rows of one group stay in the same fold.
    time : str, optional
        Column of times: held-out rows are later than training rows.
    scoring : str, callable, list or dict of these, optional
        Metrics; the first ranks the models. Names are those of scikit-learn's scorers, with or without ``neg_``, and
        short ones: "auc", "f1", "brier", "mcc", "lift", "rmse", "mae", "mape", "quantile_loss_0.9". None: log loss and
        accuracy (and ROC AUC for two classes), or root mean squared error and R².
    positive : label, optional
        Class of f1, precision, recall, average precision and lift. None: of two classes 1, or else the rarer one; of
        more the mean of all.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": classification for strings, booleans and categories, and for integers (1.0 too) with at most ten
        distinct values, each of which occurs twice on average; else regression. `compare`, ``spinney fit`` and
        ``spinney bench`` use the same rule.
    minutes : float, default=2.0
        Time limit.
    peers : bool, default=False
        Whether to include scikit-learn, LightGBM, XGBoost and CatBoost with their defaults, if installed.
    models : list, optional
        Values of ``spinney fit --model``, or pairs of a name and an estimator of spinney. None: chosen by table size
        and time limit.
    cv : int or splitter, default=5
        Number of cross-validation folds, or a splitter of scikit-learn.
    repeats : int, optional
        Repeats of the cross-validation with new folds. None: up to three, as time allows.
    keep, drop : sequence of str, optional
        Columns to include or to exclude, regardless of the checks above.
    random_state : int, RandomState or None, default=0
        Seed of the test set, folds and models.
    progress : bool, callable or None, default=None
        True: report progress on standard error. None: in a terminal or notebook, if it takes over two seconds. A
        function is called with the number of finished fits, the total number, the current step, and the seconds left.

    Returns
    -------
    Study
        Prints as a leaderboard; has `leaderboard`, `best`, `model`, `notes`, `report`, `save`.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> study = spinney.study(X, y, models=["tree", "linear"], repeats=1)
    >>> study.task, len(study.leaderboard)
    ('multiclass', 4)
    >>> study.model.predict(X)[:2].tolist()
    ['Adelie', 'Adelie']
    """
    start, source, read = clock.monotonic(), "", list[str]()
    chosen = {name: value for name, value in locals().items() if name in _DEFAULTS and _differs(value, _DEFAULTS[name])}
    if not isinstance(minutes, Real) or not 0 < minutes < math.inf:
        raise ValueError(f"minutes must be a number above 0, such as 2 or 0.5. Got {minutes!r}.")
    if not hasattr(cv, "split") and (not isinstance(cv, Integral) or isinstance(cv, bool) or cv < 2):
        raise ValueError(f"cv must be a number of folds from 2, or a splitter of scikit-learn. Got {cv!r}.")
    if repeats is not None and (not isinstance(repeats, Integral) or repeats < 1):
        raise ValueError(f"repeats must be a number from 1, or None. Got {repeats!r}.")
    random, columns = check_random_state(random_state), {"keep": _names(keep, "keep"), "drop": _names(drop, "drop")}
    options = StudyOptions(**chosen | columns)
    seed = int(random.randint(LARGEST_SEED))
    if isinstance(table, (str, Path)):
        source = str(table)
        table = read_file(Path(table), max_bytes=MAX_BYTES, seed=seed)
    format_: CsvFormat | None = None
    if isinstance(table, ReadTable):  # the time to read it counts
        start, format_, table, read = table.since, table.format, table.frame, table.notes
    data = prepare(table, target, options, seed)
    data.notes[:0] = read
    session = Session(data, options, random, start, progress)
    with session.progress:
        result = FinalFits(session, *session.run_models()).study()
    result.source, result.options = source, chosen
    if format_ is not None:
        for model in (result.model, result.tree, *result.models.values()):
            model._csv_format = format_
    return result


def _differs(value: object, default: object) -> bool:
    return type(value) is not type(default) or bool(value != default)


def _names(columns: Sequence[str], option: str) -> tuple[str, ...]:
    if isinstance(columns, str):
        return (columns,)
    if not all(isinstance(name, str) for name in columns):
        raise TypeError(f"{option} must be names of columns. Got {columns!r}.")
    return tuple(columns)


Scores = dict[str, dict[str, Floats]]  # by model, metric and fold
_FAR_MORE = 1.04  # rows of the table, relative to those studied: a fit to all of them is worth more than a stack
_CUT_SHORT = 3.0  # expected seconds of a last fit of boosting, relative to the time left: it ends with the time limit
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

    def __post_init__(self) -> None:
        self.folds = [fold for folds in self.session.repeats[: self.n_repeats] for fold in folds]
        self.test_ratio = float(np.mean([len(fold.held_out) / len(fold.train) for fold in self.folds]))
        self.out_of_fold = {trial.name: self._out_of_fold(trial) for trial in self.trials}
        self.members = [trial for trial in self.trials if trial.is_own and trial.name != STACK]
        self.weights = self._weights()

    def study(self) -> Study:
        """Fit, test, choose, calibrate and refit models; return the study."""
        session, scores = self.session, {trial.name: self._scores_of(trial) for trial in self.trials}
        order = self._ordered(self.trials, scores)
        self._fit_all(order, self._preferred(order, scores))
        tested = self._tested([trial.name for trial in order if trial.name in self.models])
        order = [trial for trial in order if trial.name in tested]
        best = self._retained(self._preferred(order, scores), order, scores)
        calibration = self._calibration(best)
        if calibration.by is not None:  # so that the saved model is the evaluated one
            tested[best.name] = calibrated(tested[best.name], calibration.by)
            self._recalibrate(best, calibration)
            scores[best.name] = self._scores_of(best)
            order = self._ordered(order, scores)
        self._note_best(best, order, calibration)
        model = self._final_model(best, calibration)
        tree = self.models[TREE] if TREE in self.models else self._tree()
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
        """Return the best model of spinney; the stack, if it is within one standard error of the best.

        The ranking of good models is partly chance, and their average is the more stable choice.
        """
        own = _own(order)
        stack = next((trial for trial in own if trial.name == STACK), own[0])
        best = stack if self._is_near(stack, own[0], scores) else own[0]
        return self._members_of(best)[0] if best.name == STACK and len(self.weights) == 1 else best

    def _is_near(self, trial: Trial, best: Trial, scores: Scores) -> bool:
        """Return whether a model is within one standard error of the best."""
        metric = self.session.metrics[0]
        gaps = scores[best.name][metric] - scores[trial.name][metric]
        error = corrected_error(gaps, self.test_ratio) if len(gaps) > 1 else 0.0
        return float(gaps.mean()) <= error

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
        again = REFIT_ALL * sum(trial.fold_seconds for trial in needed)  # the final fit of the best to all rows
        try:
            for trial in [*needed, *(trial for trial in order if trial not in needed and trial.name != STACK)]:
                spare = 0.0 if trial in needed else again
                if self._is_too_late(trial, spare):
                    late.append(trial.name)
                    continue
                session.progress.step(f"{trial.name}, all training rows", max(0.0, session.budget.left))
                start = clock.monotonic()
                try:
                    self.models[trial.name] = session.runner.fit(trial.candidate, None)
                except Exception as error:  # of any library; the other models continue
                    session.note_failure([trial.name], describe_error(error))
                self.fit_seconds[trial.name] = clock.monotonic() - start
        except KeyboardInterrupt:
            if not self.models:
                raise
            session.notes.append("Interrupted: models that were not yet fitted are left out.")
            session.was_interrupted = True
        if late:
            session.notes.append(
                f"Time ran out before the final fits of {', '.join(late)}, which are left out. Raise "
                "minutes (--minutes)."
            )
        if self.weights and all(name in self.models for name in self.weights):
            self.models[STACK] = self._stack({name: self.models[name] for name in self.weights}, None)

    def _is_too_late(self, trial: Trial, spare: float) -> bool:
        """Return whether there is no time for a final fit; at least one model of spinney is always fitted."""
        has_own = any(member.name in self.models for member in self.members)
        seconds = REFIT * trial.fold_seconds + spare
        return has_own and not trial.candidate.is_baseline and self.session.budget.left < seconds

    def _retained(self, best: Trial, order: list[Trial], scores: Scores) -> Trial:
        """Return the best model; of a sampled table, the best that there is time to fit to all rows.

        Boosting gains most by more rows: if it is within one standard error of the best, it comes first.
        """
        whole = self.session.whole.n_rows
        if self.session.was_interrupted or whole < _FAR_MORE * self.session.data.n_rows:
            return best
        near = [trial for trial in order if trial.name == "boosting" and self._is_near(trial, best, scores)]
        first = [best, *near] if best.name == STACK else [*near, best]
        for trial in [*first, *_own(order)]:
            if self._fits(self._members_of(trial)):
                if trial is not best and self._fits(self._members_of(best)):
                    self.session.notes.append(
                        f"{best.name} scores best on a sample of the rows, by less than the standard error of the "
                        f"difference; {trial.name} is chosen, which gains more by all {whole:,} rows."
                    )
                elif trial is not best:
                    self.session.notes.append(
                        f"{best.name} scores best, but there was no time to fit it to all {whole:,} rows: {trial.name} "
                        "is the best model that could be."
                    )
                return trial
        return best

    def _fits(self, trials: list[Trial]) -> bool:
        """Return whether there is time for fits to all rows; that of a single booster may be cut short."""
        slack = _CUT_SHORT if len(trials) == 1 and self._can_be_cut_short(trials[0]) else 1.0
        return self._seconds_of(trials) <= slack * self.session.budget.left

    def _seconds_of(self, trials: list[Trial]) -> float:
        """Return the expected seconds of fits to all rows."""
        before = {trial.name: trial.candidate.max_rows or self.session.train.n_rows for trial in trials}
        after = {trial.name: self._final(trial).max_rows or self.session.whole.n_rows for trial in trials}
        return sum(self.fit_seconds[name] * after[name] / n_rows for name, n_rows in before.items())

    def _can_be_cut_short(self, trial: Trial) -> bool:
        return "callbacks" in self.models[trial.name].get_params(deep=False)

    def _final(self, trial: Trial) -> Candidate:
        """Return the model of the final fit: boosting gets all rows, even if folds had time for fewer."""
        return replace(trial.candidate, max_rows=None) if self._can_be_cut_short(trial) else trial.candidate

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
        scorers = Scorers(read_metrics(metric), session.whole.classes)
        return scorers.score(metric, predictions[known], session.train.y[known])

    def _calibration(self, best: Trial) -> Calibrated:
        """Return the calibration of the best model."""
        if self.session.whole.classes is None or best.candidate.is_baseline:
            return Calibrated(None, "")
        return calibrate(best.predictions(0), self.session.held_out(0))

    def _final_model(self, best: Trial, calibration: Calibrated) -> Any:
        """Fit the best model to all rows."""
        session, fitted = self.session, self._refitted(self._members_of(best), best.name)
        if best.name == STACK:
            return self._stack(fitted, calibration.by)
        if calibration.by is None:
            return fitted[best.name]
        X, classes, scores = session.train.X, session.whole.classes, {best.name: self._score(best.name)}
        return weighted_stack(fitted, [1.0], X, classes, scores=scores, calibration=calibration.by)

    def _refitted(self, trials: list[Trial], best: str) -> dict[str, Any]:
        """Return models fitted to all rows, including the test set; without time left, those of the training rows."""
        session, whole = self.session, self.session.whole
        as_fitted = {trial.name: self.models[trial.name] for trial in trials}
        names = ", ".join(as_fitted)
        if best == STACK:
            names = f"a stack of {names}"
        if session.was_interrupted or not self._fits(trials):
            session.notes.append(
                f"The final model ({names}) is fitted to the {session.train.n_rows:,} training rows: there was no time "
                "to fit it to all rows."
            )
            return as_fitted
        runner = session.runner_of(whole)
        try:
            fitted = dict[str, Any]()
            for trial in trials:
                session.progress.step(f"{trial.name}, all rows", self._seconds_of(trials[len(fitted) :]))
                fitted[trial.name] = runner.fit_until(self._final(trial), session.budget)
        except KeyboardInterrupt:
            session.notes.append(
                f"Interrupted: the final model is fitted to the {session.train.n_rows:,} training rows."
            )
            return as_fitted
        session.notes.append(
            f"The final model ({names}) is fitted to all {whole.n_rows:,} rows, including the test set."
        )
        return fitted

    def _tree(self) -> Any:
        """Return the tree of the report, if it is not among the models."""
        session = self.session
        tree = estimator_for(TREE, session.whole.task, session.plan.effort, session.seed, session.metrics[0])
        return self.session.runner.fit(Candidate(TREE, tree), None)

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

    def _note_best(self, best: Trial, order: list[Trial], calibration: Calibrated) -> None:
        """Add a note on the best model and its calibration."""
        ahead = _own(order)[0]
        why = f"{best.name} is the best model."
        if best.name != STACK and best is not ahead:
            alone = ahead.name == STACK and list(self.weights) == [best.name]
            why = f"{best.name} is chosen" + (": the stack gives all weight to it." if alone else ".")
        elif best is not ahead:
            why = (
                f"{best.name} is chosen: {ahead.name} is better by less than the standard error of the difference, and "
                "an average of several models is more stable."
            )
        if any(trial.candidate.is_baseline for trial in order[: order.index(best)]):
            why += " It is no better than the baseline: nothing was learned."
        self.session.notes.append(f"{why} {calibration.why}".rstrip())

    def _note_peers(self, order: list[Trial], best: Trial) -> None:
        ahead = [trial.name for trial in order[: order.index(best)] if trial.candidate.is_peer]
        if ahead:
            self.session.notes.append(f"On these folds {', '.join(ahead)} scored better than {best.name}.")


def _own(order: list[Trial]) -> list[Trial]:
    """Return the models of spinney; all models if there are none."""
    return [trial for trial in order if trial.is_own] or order


def _versions(peers: bool) -> dict[str, str]:
    versions = {"spinney": __version__}
    for name in _LIBRARIES + (_PEER_LIBRARIES if peers else ()):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # installed under another name
            continue
    return versions
