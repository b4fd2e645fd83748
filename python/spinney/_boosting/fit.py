"""One fit of a booster: reads its inputs, boosts, and collects what the estimator keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.boosters import (
    Task,
    coded_table,
    scores_so_far,
    start_booster,
    tables_of_members,
    weights_for_bins,
)
from spinney._boosting.calibration import Calibration
from spinney._boosting.checkpoint import Checkpoint
from spinney._boosting.evaluation import EvaluatedSet, Evaluations, name_of, sign_of
from spinney._boosting.learning_rows import LearningRows, Parts, in_folds, rows_of_weight, set_aside, stored_with
from spinney._boosting.loss import CustomLosses, Loss
from spinney._boosting.member import Member, best_factors
from spinney._boosting.options.compatibility import check_options, check_partitioned, check_stream
from spinney._boosting.options.engine_options import (
    BoosterInputs,
    check_forced,
    engine_options,
    forced_splits,
    promised_directions,
    smallest_leaf,
    step_size,
)
from spinney._boosting.options.recipe import Recipe, draw_seed, resolve, searched
from spinney._boosting.rounds import MeanThenSpread, Rounds, fits_mean_first
from spinney._boosting.settings import BoostingSettings, Metric
from spinney._boosting.target import BoostingTarget, TargetRows, first_scores, fit_first
from spinney._data import Schema
from spinney._data.display import warn
from spinney._data.schema import Input, check_categories
from spinney._data.types import Floats, TableLike
from spinney._estimator.fit_inputs import UNNAMED, FitInputs, RowInputs, ValidationSet
from spinney._estimator.parameters import count_features
from spinney._estimator.support import ColumnRanges
from spinney._estimator.target import check_held_out, check_same_target, check_scoring, read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.links import read_offset
from spinney._model.model import decision_costs


@dataclass(frozen=True)
class EarlierFit:
    """The fit that a warm start goes on from.

    Attributes
    ----------
    model : FittedBoosting
    schema : Schema
    target : BoostingTarget
    seed : int
    curves : mapping
        Learning curves, by the names of attributes.
    step : float or None
        What the values of its trees were multiplied by, if that was one number.
    first_model : estimator or None
        The model that its scores start at.
    broken_constraint : callable
        Says which constraint the trees may break; None: they keep all.
    """

    model: FittedBoosting
    schema: Schema
    target: BoostingTarget
    seed: int
    curves: Mapping[str, Any]
    step: float | None
    first_model: Any
    broken_constraint: Callable[[], str | None]


@dataclass(frozen=True)
class FitResult:
    """What a fit leaves: fitted attributes of an estimator by their names, None where it has none.

    Attributes
    ----------
    schema : Schema
    target : BoostingTarget
    curves : dict of ndarray
        Learning curves, by the names of attributes.
    history_ : dict of ndarray, or None
        Metrics on all validation sets, by round.
    n_dropped_ : ndarray or None
        Rounds that each round has dropped.
    init_ : estimator or None
        The model that scores start at.
    _calibration : Calibration or None
        Predictions of rows not learned from.
    _step : float or None
        What the values of trees are multiplied by, if that is one number.
    others : as the attributes of the estimators
    """

    schema: Schema
    target: BoostingTarget
    curves: dict[str, Floats]
    boosting_: FittedBoosting
    max_features_: int
    stopped_because_: str
    _seed: int
    _ranges: ColumnRanges
    history_: dict[str, NDArray[Any]] | None
    n_dropped_: NDArray[np.intp] | None
    init_: Any
    _calibration: Calibration | None
    _step: float | None

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name, beside those of the schema."""
        model, others = self.boosting_, {"schema", "target", "curves"}
        found: dict[str, Any] = self.target.attributes() | self.curves
        found |= {name: value for name, value in vars(self).items() if name not in others and value is not None}
        if "oob_scores_" in self.curves:
            found["oob_score_"] = float(self.curves["oob_scores_"][model.n_rounds - 1])
        return found | {"n_outputs_": model.n_outputs, "n_iter_": model.n_rounds}


class BoostingFit:
    """One fit.

    Parameters
    ----------
    settings : BoostingSettings
    target_type : type of BoostingTarget
        What is predicted.
    earlier : EarlierFit or None
        Where a warm start goes on from.
    """

    def __init__(
        self, settings: BoostingSettings, target_type: type[BoostingTarget], earlier: EarlierFit | None
    ) -> None:
        self._settings, self._target_type, self._earlier = settings, target_type, earlier
        self._first_model: Any = None

    def run(self, inputs: FitInputs) -> FitResult:
        """Read the inputs, boost, and return what is learned."""
        settings, file = self._settings, None if inputs.checkpoint is None else Checkpoint(inputs.checkpoint)
        self._check_request(inputs)
        inputs = inputs.spooled(settings.categorical_features)
        X = Input.of(inputs.X)
        recipe, task = self._read(X, inputs, None if file is None else file.seed)
        if file is not None:
            file.begin(settings, recipe, task)
        recipe, rounds = _best(searched(settings, recipe), partial(self._begin, task=task, file=file))
        result = self._result(recipe, rounds, task)
        X.verify()
        if file is not None and not rounds.is_cut_short:
            file.remove()
        return result

    def _check_request(self, inputs: FitInputs) -> None:
        settings = self._settings
        self._target_type.check_request(settings, inputs)
        check_scoring(None, settings.callbacks)
        first = inputs.first_validation or ValidationSet(None, None)
        groups = self._target_type.held_out_together(inputs)
        check_held_out(first.X, first.y, {}, groups, settings.stops_early, inputs.time)
        check_options(settings)

    # ---- reading -------------------------------------------------------------------------------------

    def _read(self, X: Input, inputs: FitInputs, seed: int | None) -> tuple[Recipe, Task]:
        """Return how to boost, and what; `seed` is that of a fit to go on with, if any."""
        settings, earlier = self._settings, self._earlier
        schema = self._learn_schema(X)
        weight = read_weights(inputs.sample_weight, X.n_rows)
        target, values = self._target_type.learn(settings, inputs.y, X.n_rows, inputs.groups)
        loss = target.loss()
        if earlier is not None:
            self._check_earlier(earlier, loss, target)
        target = target.with_costs(values, weight)
        rows = self._learning_rows(X, inputs, schema, target, values, loss)
        loss = loss.in_units(rows)
        held_out = [self._held_out(one, inputs, schema, target, loss) for one in inputs.validation]
        n_scores, has_held_out = sum(part.n_scores for part in loss.parts), inputs.has_validation_rows
        recipe = resolve(settings, rows.n_used, n_scores, has_held_out, target.total_weight(rows), schema.n_features)
        check_stream(X, settings, recipe, rows)
        check_partitioned(recipe, rows)
        groups = target.row_groups(inputs.groups, X.n_rows)
        if recipe.n_folds and 0 < rows.n_used < len(rows.target):
            read_again = callable(settings.metrics[0]) or X.is_sparse  # a metric may read it; or it is sparse
            rows, groups = rows_of_weight(rows, groups, partial(self._encode, schema) if read_again else None)
        if seed is None:
            seed = draw_seed(settings, recipe, not held_out) if earlier is None else earlier.seed
        first = held_out[0] if held_out else None
        splits = self._split(recipe, rows, first, replace(inputs, groups=groups), seed)
        parts = [part for split in splits for part in split]
        if settings.starts_at_model:
            parts = [self._from_first_model(inputs, parts[0], loss, target)]
        if len(parts) == 1:
            rows = parts[0][0]
        start = self._start(loss, rows, n_scores, target)
        loss.check_size(rows, start)
        names = [one.name for one in inputs.validation] or [UNNAMED]
        sets = list(zip(names, [parts[0][1], *held_out[1:]], strict=True)) if len(parts) == 1 else []
        known = None if earlier is None else earlier.model
        return recipe, Task(
            schema, loss, rows, parts, [len(split) for split in splits], start, known, seed, target, sets
        )

    def _learn_schema(self, X: Input) -> Schema:
        settings = self._settings
        if self._earlier is not None:
            check_categories(self._earlier.schema, X.table, settings.categorical_features, settings.estimator)
            return self._earlier.schema
        forced, unseen = settings.categorical_features, settings.unseen
        return Schema.learn(X.table, categorical_features=forced, unseen=unseen, warn_identifiers=True)

    def _encode(self, schema: Schema, X: TableLike) -> _engine.Table:
        return Input.of(X).encoded(schema, self._settings.unseen, self._settings.estimator)

    def _learning_rows(
        self,
        X: Input,
        given: RowInputs,
        schema: Schema,
        target: BoostingTarget,
        values: TargetRows,
        loss: Loss,
        suffix: str = "",
    ) -> LearningRows:
        n_scores = sum(part.n_scores for part in loss.parts)
        weight = target.weights(values, read_weights(given.sample_weight, X.n_rows))
        columns = X.encoded(schema, self._settings.unseen, self._settings.estimator)
        offset = read_offset(given.offset, X.n_rows, n_scores, "offset" + suffix)
        weight = None if weight is None else stored_with(columns, weight)
        rows = LearningRows(columns, stored_with(columns, values.values), weight, offset, X.given, values.more)
        loss.check(rows, "y" + suffix)
        return rows

    def _held_out(
        self, given: ValidationSet, inputs: FitInputs, schema: Schema, target: BoostingTarget, loss: Loss
    ) -> LearningRows:
        given = given.spooled(self._settings.categorical_features, "_val")
        if (given.offset is None) != (inputs.offset is None):
            raise ValueError("offset and offset_val go together. Pass both or neither.")
        X = Input.of(given.X)
        values = target.read(given.y, X.n_rows, "y_val", given.groups)
        rows = self._learning_rows(X, given, schema, target, values, loss, "_val")
        if rows.n_used == 0:
            raise ValueError("No held-out row has a positive weight. Change sample_weight_val or class_weight.")
        return rows

    def _check_earlier(self, earlier: EarlierFit, loss: Loss, target: BoostingTarget) -> None:
        settings, n_done = self._settings, earlier.model.n_rounds
        check_same_target(target.attributes(), earlier.target.attributes())
        if earlier.model.link != loss.link:
            raise ValueError(
                f"warm_start needs the loss of the earlier fit, and loss={settings.loss!r} has scores of another kind. "
                "Set warm_start=False."
            )
        if isinstance(settings.n_estimators, str):
            raise ValueError(
                f"warm_start adds rounds to the {n_done} of the earlier fit, and n_estimators='auto' does not say how "
                "many. Set n_estimators to a number, or warm_start=False."
            )
        if settings.n_estimators < n_done:
            raise ValueError(
                f"n_estimators={settings.n_estimators} must be at least the {n_done} rounds of the earlier fit when "
                "warm_start=True."
            )
        broken = earlier.broken_constraint()
        if broken is not None:
            raise ValueError(
                "warm_start adds to the trees of the earlier fit, and these are not known to keep monotonic_cst "
                f"({broken}). Set warm_start=False."
            )
        if settings.n_estimators == n_done:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")

    def _split(
        self, recipe: Recipe, rows: LearningRows, held_out: LearningRows | None, inputs: FitInputs, seed: int
    ) -> list[Parts]:
        """Rows to learn from and rows held out, for each booster of each time that rows are split into folds."""
        settings, by_class = self._settings, self._settings.is_class_target
        if recipe.n_folds:
            into = partial(in_folds, rows, recipe.n_folds, inputs.groups, by_class, held_twice=recipe.held_twice)
            splits = [into(seed=seed + r) for r in range(recipe.n_repeats)]
            if splits[0]:
                return splits
        elif held_out is None and recipe.stops_early:
            fraction = settings.validation_fraction
            return [[set_aside(rows, fraction, inputs.groups, by_class, seed, inputs.time)]]
        return [[(rows, held_out)]]

    def _from_first_model(
        self, inputs: FitInputs, part: tuple[LearningRows, LearningRows | None], loss: Loss, target: BoostingTarget
    ) -> tuple[LearningRows, LearningRows | None]:
        """Fit the model that scores start from, unless an earlier fit has one, and begin rows at its predictions."""
        classes, rows = target.classes, part[0]
        is_weighted = inputs.sample_weight is not None or target.class_weight is not None
        if self._earlier is None:
            self._first_model = fit_first(self._settings.init, inputs.X, rows, classes, is_weighted)
        else:
            self._first_model = self._earlier.first_model
        n_classes, n_scores = 0 if classes is None else len(classes[0]), sum(one.n_scores for one in loss.parts)
        scores_of = partial(first_scores, self._first_model, link=loss.link, n_classes=n_classes, n_scores=n_scores)
        scores, (rows, held_out), validation = scores_of(inputs.X), part, inputs.first_validation
        if held_out is not None:
            held_out = held_out.with_offset(scores if validation is None else scores_of(validation.X))
        return rows.with_offset(scores), held_out

    def _start(self, loss: Loss, rows: LearningRows, n_scores: int, target: BoostingTarget) -> Floats:
        """Scores before the first tree, besides an offset."""
        if self._earlier is not None:
            return self._earlier.model.start
        if self._settings.starts_at_model or self._settings.init == "zero":
            return np.zeros(n_scores)
        return target.constants(loss, rows)

    # ---- boosting ------------------------------------------------------------------------------------

    def _begin(self, recipe: Recipe, task: Task, file: Checkpoint | None) -> Rounds | MeanThenSpread:
        """Start the boosters of one recipe; they go on from a file that keeps rounds."""
        settings = self._settings
        if fits_mean_first(settings, recipe, task):
            promised_directions(settings, task.schema, [len(task.start)])
            return MeanThenSpread(settings, recipe, task, self._rounds)
        known = None if self._earlier is None else self._earlier.curves
        if file is not None and file.is_there:
            earlier, known = file.rounds(task)
            task = replace(task, earlier=earlier)
        rounds = self._rounds(settings, recipe, task, known)
        rounds.checkpoint = file
        rounds.evaluations = self._evaluations(task, rounds)
        return rounds

    def _rounds(
        self, settings: BoostingSettings, recipe: Recipe, task: Task, known: Mapping[str, Any] | None = None
    ) -> Rounds:
        """Start the boosters; `known` are the learning curves so far."""
        loss, rows, parts, start = task.loss, task.rows, task.parts, task.start
        tables = tables_of_members(recipe, task)
        sources = [source for source, *_ in tables[0][1]]
        members: list[Member] = []
        coded = None
        for i, (learning, held_out) in enumerate(parts):
            outside = None if loss.outside is None else CustomLosses(loss.outside, learning, held_out)
            longest = 0.0 if outside is None else outside.learning.largest_step
            seed = (task.seed + i) % 2**31
            inputs = BoosterInputs(learning.n_used, learning.total_weight, len(start), seed, sources, longest)
            options = engine_options(settings, recipe.of_member(i), task.schema, loss, inputs)
            columns, statistics = tables[i]
            if len(parts) > 1 and (coded is None or recipe.draws_bins or sources):
                coded = coded_table(columns, weights_for_bins(recipe, rows, task.seed + i), options)
            engine = start_booster(
                columns, learning, held_out, loss, start, task.earlier, options, coded, settings.n_threads
            )
            judge = None
            if held_out is not None and settings.metrics[0] is not None:
                base = held_out.scores(start) if loss.is_shifted else None
                encode = partial(self._encode, task.schema)
                judge = task.target.judge(settings.metrics[0], _view(task, []), held_out, base, encode)
            members.append(Member(settings, recipe, engine, held_out is not None, judge, statistics, outside))

        def factors() -> Floats:
            held_out_rows = [part for _, part in parts if part is not None]
            return best_factors(members, held_out_rows, *loss.shifted(rows, start), loss)

        check = None
        if forced := forced_splits(settings, recipe, task.schema):
            check = partial(check_forced, forced, n_rows=smallest_leaf(settings, recipe, parts[0][0].n_used))
        view = partial(_view, task)
        return Rounds(settings, recipe, members, task.earlier, view, None if loss.outside else factors, check, known)

    def _evaluations(self, task: Task, rounds: Rounds) -> Evaluations | None:
        """Return what evaluates several sets, or one by several metrics; None if there is but one of each."""
        settings, model = self._settings, rounds.view([])
        sets = [(name, rows) for name, rows in task.validation if rows is not None]
        if not sets or len(sets) * len(settings.metrics) < 2:
            return None
        if len(sets) > 1 and settings.starts_at_model:
            raise ValueError("Several sets do not go with init=estimator. Pass one set as X_val and y_val.")

        def value_on(rows: LearningRows, metric: Metric) -> Callable[[Floats], float]:
            if metric is None:
                return rounds.loss_on(rows, task.loss)
            judge, sign = task.target.judge(metric, model, rows), sign_of(metric)
            return lambda scores: -sign * judge(scores, None)

        evaluated = []
        for name, rows in sets:
            scores = scores_so_far(rows, rows.scores(task.start), task.earlier, settings.n_threads)
            metrics = {name_of(metric): value_on(rows, metric) for metric in settings.metrics}
            evaluated.append(EvaluatedSet(name, rows.columns, np.ascontiguousarray(scores.T), metrics))
        return Evaluations(evaluated, task.schema.n_categories, settings.n_threads)

    # ---- what is learned -----------------------------------------------------------------------------

    def _result(self, recipe: Recipe, rounds: Rounds | MeanThenSpread, task: Task) -> FitResult:
        settings, earlier, rows, is_one = self._settings, self._earlier, task.rows, len(task.parts) == 1
        calibration = rounds.calibrated(task) if settings.calibrates and not is_one else None
        model, step, n_dropped = rounds.result(), step_size(settings, recipe), rounds.n_dropped
        has_step = is_one and n_dropped is None and (earlier is None or step == earlier.step)
        target = task.target
        if target.has_curve:
            target = target.with_curve(task.loss, *self._scores_for_curve(rounds, model, task), rows)
        n_features = task.schema.n_features
        return FitResult(
            schema=task.schema,
            target=target,
            curves=rounds.curves(),
            boosting_=model,
            max_features_=min(count_features(recipe.max_features, n_features), n_features),
            stopped_because_=rounds.because,
            _seed=task.seed,
            _ranges=ColumnRanges.of(rows.columns, rows.weight, settings.n_threads),
            history_=None if rounds.evaluations is None else rounds.evaluations.columns(),
            n_dropped_=n_dropped,
            init_=self._first_model,
            _calibration=calibration,
            _step=step if has_step else None,
        )

    def _scores_for_curve(
        self, rounds: Rounds | MeanThenSpread, model: FittedBoosting, task: Task
    ) -> tuple[LearningRows, Floats]:
        """Return the rows by whose scores a survival curve is learned, and these scores, (1, n_rows)."""
        judged, parts = task.rows, task.parts
        if len(parts) == 1 and parts[0][1] is not None and self._settings.loss == "aft":
            judged = parts[0][1]
        scores = np.ascontiguousarray(model.scores(judged.columns, self._settings.n_threads).T)
        if judged.offset is not None:
            scores = scores + judged.offset
        if len(parts) > 1:
            assert isinstance(rounds, Rounds)
            scores = rounds.scores_held_out(scores, [part for _, part in parts])
        return judged, scores


def _view(task: Task, trees: list[_engine.Tree] | _engine.Additive) -> FittedBoosting:
    """Return a model of these trees."""
    target = task.target
    n_classes = None if target.classes is None else list(map(len, target.classes))
    cost = decision_costs(target.cost_matrix, target.priors)
    return FittedBoosting(trees, task.start, task.loss.link, task.schema.n_categories, n_classes, cost)


def _best(
    recipes: list[Recipe], begin: Callable[[Recipe], Rounds | MeanThenSpread]
) -> tuple[Recipe, Rounds | MeanThenSpread]:
    """Boost by each recipe; return the best, the first of equals."""
    best = recipes[0], begin(recipes[0])
    best[1].run()
    for recipe in recipes[1:]:
        if best[1].is_cut_short:
            break
        rounds = begin(recipe)
        rounds.run()
        if rounds.is_cut_short:
            break
        if rounds.least_loss() < best[1].least_loss():
            best = recipe, rounds
    return best
