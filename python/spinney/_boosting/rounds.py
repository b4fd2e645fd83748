"""Round after round: early stopping, progress, callbacks, interruption."""

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
from spinney._boosting.boosters import Task
from spinney._boosting.calibration import Calibration, errors_of_mean, scores_out_of_folds
from spinney._boosting.checkpoint import Checkpoint
from spinney._boosting.evaluation import Evaluations
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss, named_loss
from spinney._boosting.member import Member, in_turns, mean_curve, sum_in_turns
from spinney._boosting.options.recipe import Recipe
from spinney._boosting.settings import BoostingSettings, RoundSettings
from spinney._data.display import warn
from spinney._data.reproducible import log
from spinney._data.types import Floats
from spinney._model.boosting import FittedBoosting


class Rounds:
    """The rounds of one fit."""

    def __init__(
        self,
        settings: RoundSettings,
        recipe: Recipe,
        members: Sequence[Member],
        earlier: FittedBoosting | None,
        view: Callable[[list[_engine.Tree] | _engine.Additive], FittedBoosting],
        factors: Callable[[], Floats] | None = None,
        check_first: Callable[[_engine.Tree], None] | None = None,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = settings
        self._recipe = recipe
        self._members = members
        self._earlier = earlier
        self.view = view
        self._factors = factors
        self._check_first = check_first
        if earlier is not None:
            members[0].resume(earlier.n_rounds, known or {})
        self.evaluations: Evaluations | None = None
        self.checkpoint: Checkpoint | None = None
        self.because = f"all {recipe.n_rounds} rounds are done"
        self.is_cut_short = False

    @property
    def _n_done(self) -> int:
        return max(member.n_done for member in self._members)

    def run(self) -> None:
        """Boost until the rounds are done, nothing improves any more, a callback says so, or it is interrupted."""
        settings, first = self._settings, self._n_done
        try:
            self._run(time.perf_counter())
        except KeyboardInterrupt:
            is_worth_it = settings.keep_interrupted or self.checkpoint is not None
            if not is_worth_it or min(member.n_done for member in self._members) == first:
                raise
            for member in self._members:
                member.record(self._so_far(member))
            self._keep_rounds(must=True)
            if not settings.keep_interrupted:
                raise
            self.because = "it was interrupted"
            self.is_cut_short = True
            warn(f"The fit was interrupted after {self._n_done} of {self._recipe.n_rounds} rounds; these are kept.")
        finally:
            if settings.verbose and sys.stderr.isatty():
                print(file=sys.stderr, flush=True)
        if settings.verbose:
            self._report_end()

    def _run(self, began: float) -> None:
        settings, recipe, first = self._settings, self._recipe, self._n_done
        looks_at_each = bool(settings.callbacks or settings.verbose or self.evaluations or self.checkpoint)
        active = [member for member in self._members if member.n_done < recipe.n_rounds]
        while active:
            self._advance(active, looks_at_each)
            for member in active:
                member.record(self._so_far(member))
            self._check_first_round()
            if self.evaluations is not None:
                self.evaluations.add(self._members[0].engine, self.view([]).n_scores)
            if settings.verbose:
                self._report(first, time.perf_counter() - began)
            answers = [callback(self._progress(began)) for callback in settings.callbacks]  # all are called
            if any(answers):
                self.because = "a callback said so"
                self.is_cut_short = True
                self._keep_rounds(must=True)
                break
            active = [member for member in active if not member.is_settled and member.n_done < recipe.n_rounds]
            if all(member.is_settled for member in self._members):
                judged = "loss" if settings.metrics[0] is None else "score"
                of_folds = " of any fold" if len(self._members) > 1 else ""
                self.because = f"the held-out {judged}{of_folds} has not improved for {recipe.patience} rounds"
                break
            self._keep_rounds()

    def _keep_rounds(self, must: bool = False) -> None:
        """Write the rounds that are done to a file, if one is wanted and it is time."""
        if self.checkpoint is not None:
            self.checkpoint.write(self._members[0], self._earlier, must)

    def _check_first_round(self) -> None:
        """Look at the trees of the first round, if they had all rows."""
        if self._n_done == 1 and self._checks_first:
            assert self._check_first is not None
            for member in self._members:
                for tree in member.trees():
                    self._check_first(tree)

    @property
    def _checks_first(self) -> bool:
        return self._check_first is not None and self._recipe.subsample == 1

    def _advance(self, members: list[Member], looks_at_each: bool) -> None:
        """Add a round to each; or as many as there are to be, if nobody is to look at it before the next."""
        for member in members:
            member.prepare()
        if not isinstance(members[0].engine, _engine.Boosting):  # its rows are on workers
            for member in members:
                member.engine.advance()
            return
        knows = all(member.is_evaluated_by_engine for member in members)
        is_looked_at = looks_at_each or not knows or (self._n_done == 0 and self._checks_first)
        _engine.advance_together(
            [member.engine for member in members],
            [member.settling for member in members] if knows else [],
            1 if is_looked_at else self._recipe.n_rounds - max(member.n_done for member in members),
            keeps_best=self._recipe.n_folds > 0,
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
        done, wanted = self._n_done, self._recipe.n_rounds
        progress = self._progress(0.0)
        left = seconds / max(1, done - first) * (wanted - done)
        parts = [f"round {done} of {wanted}", f"loss {progress['train_loss']:.5g}"]
        if progress["validation_loss"] is not None:
            parts.append(f"held out {progress['validation_loss']:.5g}")
        parts += [f"{name} {value:.5g}" for name, value in progress.get("evaluations", {}).items()]
        parts.append(f"{left:.0f} s left")
        line = ", ".join(parts)
        if sys.stderr.isatty():
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)
        elif done == wanted or done % max(1, wanted // 10) == 0:
            print(line, file=sys.stderr, flush=True)

    def _report_end(self) -> None:
        kept = [member.n_kept() for member in self._members]
        dropped = ""
        if len(kept) > 1:
            dropped = f"; of {len(kept)} boosters the first {', '.join(map(str, kept))}, the best, are kept"
        elif kept[0] < self._n_done:
            dropped = f"; the first {kept[0]}, the best, are kept"
        print(f"stopped after round {self._n_done}: {self.because}{dropped}", file=sys.stderr, flush=True)

    def _so_far(self, member: Member) -> Callable[[], FittedBoosting]:
        """Return what makes the model of the rounds that a member has done."""
        before = [] if self._earlier is None else self._earlier.trees()
        return lambda: self.view(before + member.trees())

    def result(self) -> FittedBoosting:
        """Return the model, cut back to its best rounds if asked for."""
        if len(self._members) == 1:
            member, n_kept = self._members[0], self._members[0].n_kept()
            before = [] if self._earlier is None else self._earlier.trees()
            n_before = 0 if self._earlier is None else self._earlier.n_rounds
            return self.view(before + member.trees(n_rounds=max(0, n_kept - n_before))).first(n_kept)
        return self.mean(1.0)

    def mean(self, times: float) -> FittedBoosting:
        """Return the mean of several members, their rounds in turns, with values times a factor."""
        return self.view(sum_in_turns(self._members, times * self.factors))

    @property
    def n_dropped(self) -> NDArray[np.intp] | None:
        """How many earlier rounds each round of the model has dropped; None if it is not that kind of fit."""
        if not self._settings.drop_rate > 0:
            return None
        dropped = [member.engine.n_dropped for member in self._members]
        return np.array([dropped[m][r] for m, r in self._turns().tolist()], dtype=np.intp)

    @cached_property
    def factors(self) -> Floats:
        """What the trees of several members are multiplied by, by score."""
        return np.ones(self.view([]).n_scores) if self._factors is None else self._factors()

    def calibrated(self, task: Task) -> Calibration | None:
        """Return predictions of the rows that the members have held out, without weights of classes."""
        if self.view([]).n_outputs > 1:
            return None
        task = replace(task, rows=task.target.without_class_weights(task.rows))
        found = self.unseen(task)
        if found is None:
            return None
        known, scores = found
        weight = None if task.rows.weight is None else task.rows.weight[known]
        narrower = 1.0 if self._settings.is_class_target else self._narrower(task)
        return Calibration.of(self._predicted(scores), task.rows.target[known], weight, narrower)

    def _narrower(self, task: Task) -> float:
        """Return how large errors of the mean of all members are beside those of `unseen`."""
        one, other = (self.unseen(task, (turn, turn + 1)) for turn in (0, 1))
        if one is None or other is None or not len(other[0]):
            return 1.0
        held_twice = other[0]
        pair = [one[1][:, np.searchsorted(one[0], held_twice)], other[1]]
        target, weight = task.rows.target[held_twice], task.rows.weights()[held_twice]
        alone = np.array([target - self._predicted(scores)[:, 0] for scores in pair])
        of_two = target - self._predicted((pair[0] + pair[1]) / 2)[:, 0]
        return errors_of_mean(alone, of_two, weight, self._recipe.n_repeats, len(self._members))

    def _predicted(self, scores: Floats) -> Floats:
        return self.view([]).predicted(np.ascontiguousarray(scores.T))

    def unseen(self, task: Task, turns: tuple[int, int] | None = None) -> tuple[NDArray[np.intp], Floats] | None:
        """Return rows that a member has held out, and their scores, (n_scores, n_held_out).

        By the members that `turns` names, of those that have held a row out; None: by one of each split into folds.
        """
        turns = (0, self._recipe.n_repeats) if turns is None else turns
        return scores_out_of_folds(self._members, task, self.factors, turns)

    def loss_on(self, rows: LearningRows, loss: Loss) -> Callable[[Floats], float]:
        """Return the mean loss of other rows, as a function of their scores, (n_rows, n_scores)."""
        outside = self._members[0].outside
        return loss.mean_on(rows, None if outside is None else outside.learning)

    def scores_held_out(self, scores: Floats, parts: Sequence[LearningRows | None]) -> Floats:
        """Scores of rows, (n_scores, n_rows), with those of each fold as the booster has them that holds it out."""
        found = scores.copy()
        for member, part in zip(self._members, parts, strict=True):
            if part is not None and member.best_scores.size:
                held = part.weights() > 0
                found[:, held] = member.best_scores[:, held]
        return found

    def least_loss(self) -> float:
        """Return the mean over the members of the least loss of the rows that they have held out."""
        return float(np.mean([min(member.held_out_curve) for member in self._members]))

    def _turns(self) -> NDArray[np.intp]:
        return in_turns([member.n_kept() for member in self._members])

    def curves(self) -> dict[str, Floats]:
        """Return the learning curves, by the name of their attribute."""
        members, first = self._members, self._members[0]
        names = {"train_score_": [member.train_curve for member in members]}
        if first.has_held_out:
            names["validation_score_"] = [member.held_out_curve for member in members]
        if len(members) > 1:
            turns = self._turns()
            return {name: mean_curve(curves, turns) for name, curves in names.items()}
        found = {name: np.array(curves[0]) for name, curves in names.items()}
        of_draws = ("oob_scores_", "oob_improvement_") if first.has_out_of_bag else ()
        found |= {name: np.array(first.curves[name]) for name in of_draws}
        if first.curves["scales_"]:
            found["scales_"] = np.array(first.curves["scales_"])
        return found


Begin = Callable[[BoostingSettings, Recipe, Task], Rounds]


def fits_mean_first(settings: BoostingSettings, recipe: Recipe, task: Task) -> bool:
    """Whether a fit learns the mean and the spread one after the other."""
    is_plain = settings.metrics == (None,) and settings.leaves != "vector"
    return task.loss.name == "normal" and bool(recipe.n_folds) and len(task.parts) > 1 and is_plain


class MeanThenSpread:
    """The rounds of such a fit, as `Rounds` has them.

    The logarithm of a deviation has the likelihood of the gamma loss at twice itself, of squared errors.
    """

    evaluations = None

    def __init__(self, settings: BoostingSettings, recipe: Recipe, task: Task, begin: Begin):
        self._settings, self._recipe, self._begin = settings, recipe, begin
        rows, start = task.rows, task.start
        self._offset = None if rows.offset is None else 2 * rows.offset[1:]
        self._start = start
        self._of_mean = replace(
            task,
            loss=named_loss("squared_error"),
            rows=_of_mean(rows),
            parts=[(_of_mean(a), None if b is None else _of_mean(b)) for a, b in task.parts],
            start=start[:1],
            earlier=None,
        )
        self._mean = self._begin_with(self._of_mean, is_mean=True)
        self._spread: Rounds | None = None

    def _begin_with(self, task: Task, is_mean: bool) -> Rounds:
        settings = replace(self._settings, loss=task.loss.name)
        recipe = replace(self._recipe, has_statistics=is_mean, worth_of_present=is_mean)
        return self._begin(settings, recipe, task)

    def run(self) -> None:
        """Boost the mean, then the spread."""
        self._mean.run()
        unseen, of_mean = self._mean.unseen(self._of_mean), self._of_mean.rows
        if unseen is None or self._mean.is_cut_short:
            return
        known, scores = unseen
        least = (_engine.LEAST_DEVIATION * max(1.0, abs(self._start[0]))) ** 2
        squares, is_known = np.ones(len(of_mean.target)), np.zeros(len(of_mean.target))
        squares[known] = np.maximum((of_mean.target[known] - scores[0]) ** 2, least)
        unit = float(np.average(squares[known], weights=of_mean.seen_weights[known]))
        squares = squares / unit  # what an improvement is worth does not depend on it
        is_known[known] = 1.0

        def of_squares(rows: LearningRows) -> LearningRows:
            weight = rows.weight if is_known.all() else rows.weights() * is_known
            return replace(rows, target=squares, weight=weight, offset=self._offset)

        rows = of_squares(of_mean)
        parts = [(of_squares(a), None if b is None else of_squares(b)) for a, b in self._of_mean.parts]
        loss = named_loss("gamma")
        offset = None if rows.offset is None else rows.offset[:, rows.used]
        start = loss.constants(squares[rows.used], rows.seen_weights[rows.used], offset)
        if self._settings.init == "zero":
            start = -log(np.array([unit]))
        self._start = np.array([self._start[0], (start[0] + float(log(unit))) / 2])
        self._spread = self._begin_with(
            replace(self._of_mean, loss=loss, rows=rows, parts=parts, start=start), is_mean=False
        )
        self._spread.run()

    def calibrated(self, task: Task) -> Calibration | None:
        """Return what the boosters of the mean predict for the rows that they have held out."""
        return self._mean.calibrated(self._of_mean)

    @property
    def because(self) -> str:
        """Why no further round was tried."""
        return self._mean.because

    @property
    def is_cut_short(self) -> bool:
        """Whether a callback or an interruption has ended it."""
        return self._mean.is_cut_short or (self._spread is not None and self._spread.is_cut_short)

    def least_loss(self) -> float:
        """Mean over the boosters of the least likelihood of rows held out, with its sign changed."""
        assert self._spread is not None
        return self._spread.least_loss() / 2

    @property
    def n_dropped(self) -> NDArray[np.intp] | None:
        """How many earlier rounds those of the mean have dropped; None if it is not that kind of fit."""
        dropped = self._mean.n_dropped
        spread = None if self._spread is None else self._spread.n_dropped
        n_more = 0 if dropped is None or spread is None else max(0, len(spread) - len(dropped))
        return dropped if dropped is None else np.concatenate([dropped, np.zeros(n_more, dtype=np.intp)])

    def result(self) -> FittedBoosting:
        """Return the model; where one of the two has fewer rounds, its last trees do nothing."""
        mean = self._mean.mean(1.0).trees()
        spread = [] if self._spread is None else self._spread.mean(0.5).trees()
        view = self._mean.view([])
        n_rounds, n_categories = max(len(mean), len(spread)), view._n_categories
        nothing = _no_tree(self._of_mean.rows, n_categories)
        both = [trees + [nothing] * (n_rounds - len(trees)) for trees in (mean, spread)]
        trees = [tree for pair in zip(*both, strict=True) for tree in pair]
        return FittedBoosting(trees, self._start, "normal", n_categories, None, None)

    def curves(self) -> dict[str, Floats]:
        """Return the learning curves: the likelihood with the last mean, and what an earlier mean lacked."""
        found = {}
        squares = self._mean.curves()
        spreads = {} if self._spread is None else self._spread.curves()
        for name, curve in squares.items():
            n = max(len(curve), len(spreads.get(name, ())))
            lacks = _stretched(log(np.maximum(curve, 1e-300) / max(curve[-1], 1e-300)) / 2, n)
            found[name] = lacks + _stretched(spreads[name] / 2, n) if name in spreads else lacks
        return found


def _of_mean(rows: LearningRows) -> LearningRows:
    return rows if rows.offset is None else replace(rows, offset=rows.offset[:1])


def _stretched(curve: Floats, n: int) -> Floats:
    """Return a curve that stays where it ends."""
    return np.concatenate([curve, np.full(n - len(curve), curve[-1])])


def _no_tree(rows: LearningRows, n_categories: list[int]) -> _engine.Tree:
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
        weight=np.array([float(rows.seen_weights.sum())]),
        n_rows=np.array([rows.n_used], dtype=np.uint32),
        value=np.zeros((1, 1)),
        gain=zero,
        impurity=None,
        n_categories=n_categories,
    )
