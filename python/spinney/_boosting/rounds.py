"""The loop over boosting rounds: early stopping, progress, callbacks, interruption."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.boosters import (
    HoldsOut,
    Member,
    MemberBlend,
    mean_curve,
    mean_of_trees,
    round_robin,
    rounds_of_others,
)
from spinney._boosting.calibration import Calibration, error_ratio_of_mean, out_of_fold_scores
from spinney._boosting.checkpoint import Checkpoint
from spinney._boosting.evaluation import Evaluations
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss, may_learn_mean_first, named_loss
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import BoostingSettings, RoundSettings
from spinney._boosting.task import Task
from spinney._data.display import warn
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats
from spinney._estimator.parallel import Progress
from spinney._model.boosting import FittedBoosting

_WATCHED_SECONDS = 0.1  # of rounds between two updates of the progress
_MANY_ROWS = 5000  # whose folds leave little to chance
_FEW_ROWS = 200  # whose recipe and rounds, chosen on the folds, fit them as much better as a mean of boosters would be


class Rounds:
    """The rounds of one fit.

    Parameters
    ----------
    settings : RoundSettings
    recipe : Recipe
    members : sequence of Member
        One booster, or one for each fold.
    earlier : FittedBoosting or None
        The model that a warm start continues.
    make_model : callable
        Makes a model of trees.
    find_factors : callable or None
        Returns the factors of the mean of several boosters, by score, from their held-out scores; None: ones.
    check_first : callable or None
        Checks the trees of the first round.
    curves : mapping
        Learning curves of the earlier model.
    """

    def __init__(
        self,
        settings: RoundSettings,
        recipe: Recipe,
        members: Sequence[Member],
        earlier: FittedBoosting | None,
        make_model: Callable[[list[_engine.Tree] | _engine.Additive], FittedBoosting],
        find_factors: Callable[[Sequence[HoldsOut]], Floats] | None = None,
        check_first: Callable[[_engine.Tree], None] | None = None,
        curves: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = settings
        self._recipe = recipe
        self._members = members
        self._weights = np.full(len(members), 1 / len(members))
        self._by_fold: Sequence[HoldsOut] = members
        self._known_scores: list[Floats] | None = None
        self._earlier = earlier
        self.make_model = make_model
        self._find_factors = find_factors
        self._check_first = check_first
        if earlier is not None:
            members[0].resume(earlier.n_rounds, curves or {})
        self.evaluations: Evaluations | None = None
        self.checkpoint: Checkpoint | None = None
        self.stop_reason = f"all {recipe.n_rounds} rounds are done"
        self.is_interrupted = False

    @property
    def members(self) -> Sequence[Member]:
        """The boosters."""
        return self._members

    def blend(self, teams: Sequence[Sequence[Member]], weights: Floats) -> None:
        """Blend boosters of several recipes, `teams`, each with one booster for each fold."""
        used = [(team, weight) for team, weight in zip(teams, weights.tolist(), strict=True) if weight > 0]
        shares = np.array([weight for _, weight in used])
        self._members = [member for team, _ in used for member in team]
        self._weights = np.repeat(shares / len(teams[0]), len(teams[0]))
        self._by_fold = [MemberBlend(members, shares) for members in zip(*(team for team, _ in used), strict=True)]

    @property
    def _n_done(self) -> int:
        return max(member.n_done for member in self._members)

    def run(self) -> None:
        """Boost until all rounds are done, early stopping, a callback that returns True, or an interruption."""
        settings, first = self._settings, self._n_done
        try:
            self._run(time.perf_counter())
        except KeyboardInterrupt:
            is_saved = settings.keep_interrupted or self.checkpoint is not None
            if not is_saved or min(member.n_done for member in self._members) == first:
                raise
            for member in self._members:
                member.record(self._current_model(member))
            self._write_checkpoint(force=True)
            if not settings.keep_interrupted:
                raise
            self.stop_reason = "it was interrupted"
            self.is_interrupted = True
            warn(f"The fit was interrupted after {self._n_done} of {self._recipe.n_rounds} rounds; these are kept.")
        finally:
            if settings.verbose and sys.stderr.isatty():
                print(file=sys.stderr, flush=True)
        if settings.verbose:
            self._report_end()

    def _run(self, began: float) -> None:
        settings, recipe, first = self._settings, self._recipe, self._n_done
        has_round_hooks = bool(settings.callbacks or settings.verbose or self.evaluations or self.checkpoint)
        active = [member for member in self._members if member.n_done < recipe.n_rounds]
        verbose = None if settings.verbose is None else 0  # requested reports are lines of _report
        with Progress("rounds", recipe.n_rounds, recipe.stops_early, first, verbose) as progress:
            while active:
                n_rounds = 1 if has_round_hooks else recipe.n_rounds
                if progress.is_watched and not has_round_hooks:
                    pace = (self._n_done - first) / (time.perf_counter() - began)
                    n_rounds = max(1, int(pace * _WATCHED_SECONDS))
                self._advance(active, n_rounds)
                for member in active:
                    member.record(self._current_model(member))
                self._check_first_round()
                if self.evaluations is not None:
                    self.evaluations.add(self._members[0].engine, self.make_model([]).n_scores)
                loss = self._mean_of_last([member.train_curve for member in self._members])
                progress.report(self._n_done, note="" if loss is None else f", loss {loss:.5g}")
                if settings.verbose:
                    self._report(first, time.perf_counter() - began)
                answers = [callback(self._progress(began)) for callback in settings.callbacks]  # all are called
                if any(answers):
                    self.stop_reason = "a callback stopped the fit"
                    self.is_interrupted = True
                    self._write_checkpoint(force=True)
                    break
                active = [member for member in active if not member.has_stopped and member.n_done < recipe.n_rounds]
                if all(member.has_stopped for member in self._members):
                    metric = "loss" if settings.metrics[0] is None else "score"
                    folds = " on any fold" if len(self._members) > 1 else ""
                    self.stop_reason = f"the held-out {metric} has not improved for {recipe.patience} rounds{folds}"
                    break
                self._write_checkpoint()

    def _write_checkpoint(self, force: bool = False) -> None:
        """Write the rounds so far to the checkpoint, if there is one and it is due."""
        if self.checkpoint is not None:
            self.checkpoint.write(self._members[0], self._earlier, force)

    def _check_first_round(self) -> None:
        """Check the trees of the first round, if they were grown on all rows."""
        if self._n_done == 1 and self._checks_first:
            assert self._check_first is not None
            for member in self._members:
                for tree in member.trees():
                    self._check_first(tree)

    @property
    def _checks_first(self) -> bool:
        return self._check_first is not None and self._recipe.subsample == 1

    def _advance(self, members: list[Member], n_rounds: int) -> None:
        """Add a round to each member; or up to `n_rounds`, if Python has nothing to do between them."""
        for member in members:
            member.set_gradients()
        if not isinstance(members[0].engine, _engine.Boosting):  # rows on workers
            for member in members:
                member.engine.advance()
            return
        by_engine = all(member.is_evaluated_by_engine for member in members)
        one_round = not by_engine or (self._n_done == 0 and self._checks_first)
        _engine.advance_together(
            [member.engine for member in members],
            [member.early_stopping for member in members] if by_engine else [],
            1 if one_round else min(n_rounds, self._recipe.n_rounds - max(member.n_done for member in members)),
            saves_best=self._recipe.n_folds > 0,
            n_jobs=self._settings.n_threads,
        )

    def _progress(self, began: float) -> dict[str, Any]:
        return {
            "round": self._n_done,
            "n_estimators": self._recipe.n_rounds,
            "train_loss": self._mean_of_last([member.train_curve for member in self._members]),
            "validation_loss": self._mean_of_last([member.held_out_curve for member in self._members]),
            "seconds": time.perf_counter() - began,
            **({} if self.evaluations is None else {"evaluations": self.evaluations.last()}),
        }

    @staticmethod
    def _mean_of_last(curves: list[list[float]]) -> float | None:
        if not all(curves):
            return None
        return curves[0][-1] if len(curves) == 1 else float(np.mean([curve[-1] for curve in curves]))

    def _report(self, first: int, seconds: float) -> None:
        done, n_rounds = self._n_done, self._recipe.n_rounds
        progress = self._progress(0.0)
        left = seconds / max(1, done - first) * (n_rounds - done)
        parts = [f"round {done} of {n_rounds}", f"loss {progress['train_loss']:.5g}"]
        if progress["validation_loss"] is not None:
            parts.append(f"held out {progress['validation_loss']:.5g}")
        parts += [f"{name} {value:.5g}" for name, value in progress.get("evaluations", {}).items()]
        parts.append(f"{left:.0f} s left")
        line = ", ".join(parts)
        if sys.stderr.isatty():
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)
        elif done == n_rounds or done % max(1, n_rounds // 10) == 0:
            print(line, file=sys.stderr, flush=True)

    def _report_end(self) -> None:
        retained = [member.n_retained() for member in self._members]
        best = ""
        if len(retained) > 1:
            best = f"; the best rounds of the {len(retained)} boosters are kept: {', '.join(map(str, retained))}"
        elif retained[0] < self._n_done:
            best = f"; the best {retained[0]} are kept"
        print(f"stopped after round {self._n_done}: {self.stop_reason}{best}", file=sys.stderr, flush=True)

    def _current_model(self, member: Member) -> Callable[[], FittedBoosting]:
        """Return a function that makes the model of a member's rounds so far."""
        before = [] if self._earlier is None else self._earlier.trees()
        return lambda: self.make_model(before + member.trees())

    def result(self) -> FittedBoosting:
        """Return the model of the retained rounds."""
        if len(self._members) == 1:
            member, n_retained = self._members[0], self._members[0].n_retained()
            before = [] if self._earlier is None else self._earlier.trees()
            n_before = 0 if self._earlier is None else self._earlier.n_rounds
            return self.make_model(before + member.trees(n_rounds=max(0, n_retained - n_before))).first(n_retained)
        return self.mean(1.0)

    def mean(self, factor: float) -> FittedBoosting:
        """Return the mean of several members, multiplied by a factor."""
        return self.make_model(mean_of_trees(self._members, self._weights, factor * self.factors))

    @property
    def n_dropped(self) -> NDArray[np.intp] | None:
        """Number of earlier rounds that each round of the model has dropped; None without DART."""
        if not self._settings.drop_rate > 0:
            return None
        dropped = [member.engine.n_dropped for member in self._members]
        return np.array([dropped[m][r] for m, r in self._order().tolist()], dtype=np.intp)

    @cached_property
    def factors(self) -> Floats:
        """Factors of the trees of several members, by score."""
        return (
            np.ones(self.make_model([]).n_scores) if self._find_factors is None else self._find_factors(self._by_fold)
        )

    def calibration(self, task: Task) -> Calibration | None:
        """Return out-of-fold predictions, without class weights."""
        if self.make_model([]).n_outputs > 1:
            return None
        task = replace(task, rows=task.target.without_class_weights(task.rows))
        found = self.out_of_fold_scores(task)
        if found is None:
            return None
        held_out, scores = found
        weight = None if task.rows.weight is None else task.rows.weight[held_out]
        error_ratio = 1.0 if self._settings.is_class_target else self._error_ratio(task)
        return Calibration.of(self._predicted(scores), task.rows.target[held_out], weight, error_ratio)

    def _error_ratio(self, task: Task) -> float:
        """Return the errors of the mean of all members relative to those of `out_of_fold_scores`."""
        if task.rows.n_used < _FEW_ROWS:
            return 1.0
        one, other = (self.out_of_fold_scores(task, (i, i + 1)) for i in (0, 1))
        if one is None or other is None or not len(other[0]):
            return 1.0
        fold_overlap = other[0]
        pair = [one[1][:, np.searchsorted(one[0], fold_overlap)], other[1]]
        target, weight = task.rows.target[fold_overlap], task.rows.weights()[fold_overlap]
        errors = np.array([target - self._predicted(scores)[:, 0] for scores in pair])
        of_mean = target - self._predicted((pair[0] + pair[1]) / 2)[:, 0]
        return error_ratio_of_mean(errors, of_mean, weight, self._recipe.n_repeats, len(self._by_fold))

    def _predicted(self, scores: Floats) -> Floats:
        return self.make_model([]).predicted(np.ascontiguousarray(scores.T))

    def out_of_fold_scores(
        self, task: Task, holders: tuple[int, int] | None = None
    ) -> tuple[NDArray[np.intp], Floats] | None:
        """Return the rows that members have held out, and their scores, (n_scores, n_held_out).

        `holders` is a range among the members that hold out a row; None: one member of each split into folds.
        """
        holders = (0, self._recipe.n_repeats) if holders is None else holders
        return out_of_fold_scores(self._scores_by_fold(task), task, self.factors, holders)

    def _scores_by_fold(self, task: Task) -> list[Floats]:
        """Return the scores of the rows that each booster has held out, (n_scores, n_rows).

        Of small tables, after as many rounds as are best on the other folds: the best rounds on the few rows of a
        fold have too small a loss there by chance.
        """
        if self._known_scores is None:
            self._known_scores = [fold.retained_scores() for fold in self._by_fold]
            members = [member for fold in self._by_fold for _, member in fold.parts]
            if task.rows.n_used < _MANY_ROWS and all(member.chooses_rounds for member in members):
                last = 0
                for n_boosters in task.boosters_per_repeat:
                    first, last = last, last + n_boosters
                    if n_boosters > 1:
                        self._known_scores[first:last] = self._scores_by_others(task, self._by_fold[first:last])
        return self._known_scores

    def _scores_by_others(self, task: Task, folds: Sequence[HoldsOut]) -> list[Floats]:
        """Return the scores of one repeat's folds after as many rounds as are best on the other folds."""
        _, start = task.loss.centred(task.rows, task.start)
        found = [np.zeros_like(start) for _ in folds]
        for team in zip(*(fold.parts for fold in folds), strict=True):
            n_rounds = rounds_of_others([member for _, member in team])
            for k, ((weight, member), n) in enumerate(zip(team, n_rounds, strict=True)):
                if n == member.n_retained():
                    found[k] += weight * member.best_scores
                else:
                    widest = folds[k].parts[-1][1]  # its trees know all columns, also the combined ones
                    found[k] += weight * (start + self._sums_after(n, member, widest, task))
        return found

    def _sums_after(self, n_rounds: int, member: Member, widest: Member, task: Task) -> Floats:
        """Return the sums of the first trees of a booster, (n_scores, n_rows); `widest` has all columns of the task."""
        engines, encodings = [member.engine, widest.engine], [member.encodings, widest.encodings]
        factors = [[1.0] * len(self.factors)] * 2
        model = self.make_model(_engine.interleave_rounds(engines, factors, encodings, [n_rounds, 0]))
        sums: Floats = model.engine.sums(task.rows.columns, 0, model.n_trees, self._settings.n_threads)
        return sums.T

    def loss_on(self, rows: LearningRows, loss: Loss) -> Callable[[Floats], float]:
        """Return the mean loss of other rows, as a function of their scores, (n_rows, n_scores)."""
        custom = self._members[0].custom
        return loss.mean_on(rows, None if custom is None else custom.training)

    def with_held_out_scores(self, scores: Floats, held_out: Sequence[LearningRows | None]) -> Floats:
        """Return scores, (n_scores, n_rows), with those of each fold replaced by out-of-fold scores."""
        scores = scores.copy()
        for member, fold in zip(self._by_fold, held_out, strict=True):
            if fold is not None and member.best_scores.size:
                rows = fold.weights() > 0
                scores[:, rows] = member.best_scores[:, rows]
        return scores

    def _order(self) -> NDArray[np.intp]:
        return round_robin([member.n_retained() for member in self._members])

    def curves(self) -> dict[str, Floats]:
        """Return the learning curves, by the names of the fitted attributes."""
        members, first = self._members, self._members[0]
        names = {"train_score_": [member.train_curve for member in members]}
        if first.has_held_out:
            names["validation_score_"] = [member.held_out_curve for member in members]
        if len(members) > 1:
            order = self._order()
            return {name: mean_curve(curves, order, self._weights) for name, curves in names.items()}
        found = {name: np.array(curves[0]) for name, curves in names.items()}
        out_of_bag = ("oob_scores_", "oob_improvement_") if first.has_out_of_bag else ()
        found |= {name: np.array(first.curves[name]) for name in out_of_bag}
        if first.curves["scales_"]:
            found["scales_"] = np.array(first.curves["scales_"])
        return found


StartRounds = Callable[[BoostingSettings, Recipe, Task], Rounds]


def fits_mean_first(settings: BoostingSettings, recipe: Recipe, task: Task) -> bool:
    """Return whether a fit of (log-)normal distributions boosts the mean first, then the standard deviation."""
    is_plain = settings.metrics == (None,) and settings.leaves != "vector"
    return may_learn_mean_first(task.loss.name) and bool(recipe.n_folds) and len(task.splits) > 1 and is_plain


class MeanThenDeviation:
    """The rounds of a fit of normal distributions, with the interface of `Rounds`: first the mean, then the deviation.

    Log-normal distributions are normal ones of the logarithm of the target. Given the mean, the logarithm of the
    standard deviation maximises the likelihood where twice its value minimises the gamma loss of the squared errors.
    """

    evaluations = None

    def __init__(self, settings: BoostingSettings, recipe: Recipe, task: Task, start_rounds: StartRounds):
        self._settings, self._recipe, self._start_rounds = settings, recipe, start_rounds
        self._link = task.loss.link
        if self._link == "log_normal":
            task = replace(
                task,
                rows=_of_logarithms(task.rows),
                splits=[(_of_logarithms(a), None if b is None else _of_logarithms(b)) for a, b in task.splits],
            )
        rows, start = task.rows, task.start
        self._offset = None if rows.offset is None else 2 * rows.offset[1:]
        self._start = start
        self._mean_task = replace(
            task,
            loss=named_loss("squared_error"),
            rows=_with_mean_offset(rows),
            splits=[(_with_mean_offset(a), None if b is None else _with_mean_offset(b)) for a, b in task.splits],
            start=start[:1],
            earlier=None,
        )
        self._mean = self._rounds_of(self._mean_task, is_mean=True)
        self._deviation: Rounds | None = None

    def _rounds_of(self, task: Task, is_mean: bool) -> Rounds:
        settings = replace(self._settings, loss=task.loss.name)
        recipe = replace(self._recipe, target_encoding=is_mean, relative_to_current=is_mean)
        return self._start_rounds(settings, recipe, task)

    def run(self) -> None:
        """Boost the mean, then the standard deviation."""
        self._mean.run()
        out_of_fold, mean_rows = self._mean.out_of_fold_scores(self._mean_task), self._mean_task.rows
        if out_of_fold is None or self._mean.is_interrupted:
            return
        held_out, scores = out_of_fold
        least = (_engine.LEAST_DEVIATION * max(1.0, abs(self._start[0]))) ** 2
        squares, is_held_out = np.ones(len(mean_rows.target)), np.zeros(len(mean_rows.target))
        squares[held_out] = np.maximum((mean_rows.target[held_out] - scores[0]) ** 2, least)
        unit = float(np.average(squares[held_out], weights=mean_rows.weights_view[held_out]))
        squares = squares / unit  # early stopping does not depend on the unit
        is_held_out[held_out] = 1.0

        def of_squares(rows: LearningRows) -> LearningRows:
            weight = rows.weight if is_held_out.all() else rows.weights() * is_held_out
            return replace(rows, target=squares, weight=weight, offset=self._offset)

        rows = of_squares(mean_rows)
        splits = [(of_squares(a), None if b is None else of_squares(b)) for a, b in self._mean_task.splits]
        loss = named_loss("gamma")
        offset = None if rows.offset is None else rows.offset[:, rows.used]
        start = loss.constants(squares[rows.used], rows.weights_view[rows.used], offset)
        if self._settings.init == "zero":
            start = -log(np.array([unit]))
        self._start = np.array([self._start[0], (start[0] + float(log(unit))) / 2])
        self._deviation = self._rounds_of(
            replace(self._mean_task, loss=loss, rows=rows, splits=splits, start=start), is_mean=False
        )
        self._deviation.run()

    def calibration(self, task: Task) -> Calibration | None:
        """Return the out-of-fold predictions of the mean."""
        found = self._mean.calibration(self._mean_task)
        if found is None or self._link == "normal":
            return found
        return replace(found, predicted=exp(found.predicted + exp(2 * self._start[1]) / 2), target=exp(found.target))

    @property
    def stop_reason(self) -> str:
        """Why boosting of the mean has stopped."""
        return self._mean.stop_reason

    @property
    def is_interrupted(self) -> bool:
        """Whether a callback or an interruption has ended the fit."""
        return self._mean.is_interrupted or (self._deviation is not None and self._deviation.is_interrupted)

    @property
    def n_dropped(self) -> NDArray[np.intp] | None:
        """Number of earlier rounds that each round of the mean has dropped; None without DART."""
        dropped = self._mean.n_dropped
        deviation = None if self._deviation is None else self._deviation.n_dropped
        n_more = 0 if dropped is None or deviation is None else max(0, len(deviation) - len(dropped))
        return dropped if dropped is None else np.concatenate([dropped, np.zeros(n_more, dtype=np.intp)])

    def result(self) -> FittedBoosting:
        """Return the model; the score with fewer rounds is padded with trees that add nothing."""
        mean = self._mean.mean(1.0).trees()
        deviation = [] if self._deviation is None else self._deviation.mean(0.5).trees()
        n_rounds, n_categories = max(len(mean), len(deviation)), self._mean_task.schema.n_categories
        padding = _zero_tree(self._mean_task.rows, n_categories)
        both = [trees + [padding] * (n_rounds - len(trees)) for trees in (mean, deviation)]
        trees = [tree for pair in zip(*both, strict=True) for tree in pair]
        return FittedBoosting(trees, self._start, self._link, n_categories, None, None)

    def curves(self) -> dict[str, Floats]:
        """Return the learning curves: the likelihood given the final mean, plus the excess loss of earlier means."""
        found = {}
        deviations = {} if self._deviation is None else self._deviation.curves()
        for name, squares in self._mean.curves().items():
            n = max(len(squares), len(deviations.get(name, ())))
            excess = _extended(log(np.maximum(squares, 1e-300) / max(squares[-1], 1e-300)) / 2, n)
            found[name] = excess + _extended(deviations[name] / 2, n) if name in deviations else excess
        return found


def _of_logarithms(rows: LearningRows) -> LearningRows:
    return replace(rows, target=log(rows.target))


def _with_mean_offset(rows: LearningRows) -> LearningRows:
    return rows if rows.offset is None else replace(rows, offset=rows.offset[:1])


def _extended(curve: Floats, n: int) -> Floats:
    """Repeat the last value of a curve up to a length of n."""
    return np.concatenate([curve, np.full(n - len(curve), curve[-1])])


def _zero_tree(rows: LearningRows, n_categories: list[int]) -> _engine.Tree:
    """Return a single leaf that adds nothing."""
    none, zero = np.array([-1], dtype=np.int32), np.zeros(1)
    return _engine.make_tree(
        left=none,
        right=none,
        feature=none,
        threshold=zero,
        flags=np.zeros(1, dtype=np.uint8),
        begin=np.zeros(2, dtype=np.uint32),
        codes=np.zeros(0, dtype=np.uint32),
        weight=np.array([float(rows.weights_view.sum())]),
        n_rows=np.array([rows.n_used], dtype=np.uint32),
        value=np.zeros((1, 1)),
        gain=zero,
        impurity=None,
        n_categories=n_categories,
    )
