"""One fit of gradient boosting: reads the inputs, boosts, and returns the fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._boosting.boosters import (
    CURVES,
    HoldsOut,
    Member,
    best_tree_factors,
    bin_weights,
    binned_table,
    booster_tables,
    scores_after,
    start_booster,
)
from spinney._boosting.calibration import Calibration
from spinney._boosting.checkpoint import Checkpoint
from spinney._boosting.combined_columns import (
    check_same_pairs,
    has_list,
    read_pairs,
)
from spinney._boosting.evaluation import EvaluatedSet, Evaluations, HeldOutMetric, metric_name, metric_sign
from spinney._boosting.learning_rows import (
    LearningRows,
    Splits,
    drop_zero_weights,
    split_folds,
    split_validation,
    store_with_table,
)
from spinney._boosting.loss import TRAITS, CustomLosses, Loss
from spinney._boosting.options.compatibility import (
    allows_linear_leaves,
    check_combined,
    check_options,
    check_partitioned,
    check_stream,
)
from spinney._boosting.options.engine_options import (
    BoosterInputs,
    check_forced_splits,
    engine_options,
    forced_splits,
    min_leaf_rows,
    monotone_directions,
    tree_learning_rate,
)
from spinney._boosting.options.recipe import Recipe, draw_seed, resolve
from spinney._boosting.ordered_classes import link_on
from spinney._boosting.race import race
from spinney._boosting.rounds import MeanThenDeviation, Rounds, fits_mean_first
from spinney._boosting.settings import BoostingSettings, Metric
from spinney._boosting.target import BoostingTarget, TargetRows, fit_initial_model, initial_scores
from spinney._boosting.task import Task
from spinney._data import Combinations, Schema
from spinney._data.display import warn
from spinney._data.schema import Input, check_categories
from spinney._data.types import Floats, TableLike
from spinney._estimator.fit_inputs import UNNAMED, FitInputs, RowInputs, ValidationSet
from spinney._estimator.many_classes import warn_of_passes
from spinney._estimator.parameters import count_features
from spinney._estimator.support import ColumnRanges
from spinney._estimator.target import check_callbacks, check_held_out, check_same_target, read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.links import is_of_ordered_classes, read_offset


@dataclass(frozen=True)
class FitResult:
    """The result of a fit, or the state of a fitted estimator that a warm start continues.

    The other fields are fitted attributes of an estimator, by their names; None where it has none.

    Attributes
    ----------
    schema : Schema
    target : BoostingTarget
    curves : dict of ndarray
        Learning curves, by the names of the fitted attributes.
    history_ : dict of ndarray, or None
        Metrics on all validation sets, by round.
    n_dropped_ : ndarray or None
        Number of earlier rounds that each round has dropped.
    init_ : estimator or None
        The model whose predictions are the initial scores.
    _calibration : Calibration or None
        Predictions of rows not used in training.
    _tree_learning_rate : float or None
        Factor of the leaf values, if it is the same for all trees.
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
    _tree_learning_rate: float | None

    @classmethod
    def of(cls, attributes: Mapping[str, Any], target: BoostingTarget) -> FitResult:
        """Return the result of the fit that has set these attributes of an estimator."""
        curves = {name: attributes[name] for name in CURVES if name in attributes}
        names = {one.name for one in fields(cls)} - {"schema", "target", "curves"}
        others: dict[str, Any] = {name: attributes.get(name) for name in names}
        return cls(attributes["schema_"], target, curves, **others)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of the estimator by name, except those of the schema."""
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
        Kind of target: classes, numbers, rankings or survival times.
    earlier : FitResult or None
        The earlier fit that a warm start continues.
    """

    def __init__(
        self, settings: BoostingSettings, target_type: type[BoostingTarget], earlier: FitResult | None
    ) -> None:
        self._settings, self._target_type, self._earlier = settings, target_type, earlier
        self._initial_model: Any = None

    def run(self, inputs: FitInputs) -> FitResult:
        """Read the inputs, boost, and return the fitted attributes."""
        settings, file = self._settings, None if inputs.checkpoint is None else Checkpoint(inputs.checkpoint)
        self._check(inputs)
        inputs = inputs.spooled(settings.categorical_features)
        X = Input.of(inputs.X)
        recipe, task = self._read(X, inputs, None if file is None else file.seed)
        if file is not None:
            file.begin(settings, recipe, task)
        rounds = self._start(recipe, task, file)
        rounds.run()
        if isinstance(rounds, Rounds) and file is None and not rounds.is_interrupted:
            task = race(settings, recipe, rounds, task, self._rounds)
        result = self._result(recipe, rounds, task)
        X.verify()
        if file is not None and not rounds.is_interrupted:
            file.remove()
        return result

    def _check(self, inputs: FitInputs) -> None:
        settings = self._settings
        self._target_type.check_request(settings, inputs)
        check_callbacks(settings.callbacks)
        first = inputs.first_validation or ValidationSet(None, None)
        groups = self._target_type.held_out_groups(inputs)
        check_held_out(first.X, first.y, {}, groups, settings.stops_early, inputs.time)
        check_options(settings)

    # ---- reading -------------------------------------------------------------------------------------

    def _read(self, X: Input, inputs: FitInputs, seed: int | None) -> tuple[Recipe, Task]:
        """Return the recipe and the task; `seed` is the seed of a checkpoint, if there is one."""
        settings, earlier = self._settings, self._earlier
        weight = read_weights(inputs.sample_weight, X.n_rows)
        schema = self._learn_schema(X, weight)
        target, values = self._target_type.learn(settings, inputs.y, X.n_rows, inputs.groups)
        loss = target.loss()
        warn_of_passes(sum(part.n_scores for part in loss.parts), X.n_rows, settings.estimator)
        if earlier is not None:
            self._check_earlier(earlier, loss, target)
        target = target.with_costs(values, weight)
        rows = self._learning_rows(X, inputs, schema, target, values, loss)
        loss = loss.in_units(rows)
        held_out = [self._held_out(one, inputs, schema, target, loss) for one in inputs.validation]
        n_scores, has_held_out = sum(part.n_scores for part in loss.parts), inputs.has_validation_rows
        weight_of_all = target.total_weight(rows)
        is_in_memory = isinstance(rows.columns, _engine.Table) and not X.is_stream
        may_be_linear = is_in_memory and allows_linear_leaves(settings)
        n_columns = schema.n_split_features
        recipe = resolve(settings, rows.n_used, n_scores, has_held_out, weight_of_all, n_columns, may_be_linear)
        check_stream(X, settings, recipe, rows)
        check_partitioned(recipe, rows)
        groups = target.row_groups(inputs.groups, X.n_rows)
        if recipe.n_folds and 0 < rows.n_used < len(rows.target):
            needs_X = callable(settings.metrics[0]) or X.is_sparse  # for the metric, or to encode it again
            rows, groups = drop_zero_weights(rows, groups, partial(self._encode, schema) if needs_X else None)
        if seed is None:
            seed = draw_seed(settings, recipe, not held_out) if earlier is None else earlier._seed
        first = held_out[0] if held_out else None
        repeats = self._split(recipe, rows, first, replace(inputs, groups=groups), seed)
        splits = [split for repeat in repeats for split in repeat]
        if settings.starts_at_model:
            splits = [self._with_initial_model(inputs, splits[0], loss, target)]
        if len(splits) == 1:
            rows = splits[0][0]
        start = self._initial_scores(loss, rows, n_scores, target)
        loss.check_size(rows, start)
        names = [one.name for one in inputs.validation] or [UNNAMED]
        sets = list(zip(names, [splits[0][1], *held_out[1:]], strict=True)) if len(splits) == 1 else []
        model = None if earlier is None else earlier.boosting_
        return recipe, Task(schema, loss, rows, splits, list(map(len, repeats)), start, model, seed, target, sets)

    def _learn_schema(self, X: Input, weight: Floats | None) -> Schema:
        settings = self._settings
        if self._earlier is not None:
            check_categories(self._earlier.schema, X.table, settings.categorical_features, settings.estimator)
            check_same_pairs(settings.feature_combinations, self._earlier.schema)
            return self._earlier.schema
        forced, unseen = settings.categorical_features, settings.unseen
        schema = Schema.learn(X.table, categorical_features=forced, unseen=unseen, warn_identifiers=True)
        return self._with_listed_combinations(schema, X, weight)

    def _with_listed_combinations(self, schema: Schema, X: Input, weight: Floats | None) -> Schema:
        """Return the schema with the combined columns that the user lists."""
        listed = self._settings.feature_combinations
        if not has_list(listed):
            return schema
        check_combined(X)
        inputs = X.encoded(schema, self._settings.unseen, self._settings.estimator)
        return schema.with_pool(Combinations.of_pairs(inputs, weight, read_pairs(listed, schema)))

    def _encode(self, schema: Schema, X: TableLike) -> _engine.Table:
        return Input.of(X).encoded(schema, self._settings.unseen, self._settings.estimator)

    def _learning_rows(
        self,
        X: Input,
        inputs: RowInputs,
        schema: Schema,
        target: BoostingTarget,
        values: TargetRows,
        loss: Loss,
        suffix: str = "",
    ) -> LearningRows:
        n_scores = sum(part.n_scores for part in loss.parts)
        weight = target.weights(values, read_weights(inputs.sample_weight, X.n_rows))
        columns = X.encoded(schema, self._settings.unseen, self._settings.estimator)
        offset = read_offset(inputs.offset, X.n_rows, n_scores, "offset" + suffix)
        weight = None if weight is None else store_with_table(columns, weight)
        rows = LearningRows(columns, store_with_table(columns, values.values), weight, offset, X.given, values.extra)
        loss.check(rows, "y" + suffix)
        return rows

    def _held_out(
        self, validation: ValidationSet, inputs: FitInputs, schema: Schema, target: BoostingTarget, loss: Loss
    ) -> LearningRows:
        validation = validation.spooled(self._settings.categorical_features, "_val")
        if (validation.offset is None) != (inputs.offset is None):
            raise ValueError("offset and offset_val go together. Pass both or neither.")
        X = Input.of(validation.X)
        values = target.read(validation.y, X.n_rows, "y_val", validation.groups)
        rows = self._learning_rows(X, validation, schema, target, values, loss, "_val")
        if rows.n_used == 0:
            raise ValueError("No held-out row has a positive weight. Change sample_weight_val or class_weight.")
        return rows

    def _check_earlier(self, earlier: FitResult, loss: Loss, target: BoostingTarget) -> None:
        settings, n_done = self._settings, earlier.boosting_.n_rounds
        check_same_target(target.attributes(), earlier.target.attributes())
        both_ordered = is_of_ordered_classes(earlier.boosting_.link) and is_of_ordered_classes(loss.link)
        if earlier.boosting_.link != loss.link and not both_ordered:
            raise ValueError(
                f"warm_start needs the loss of the earlier fit, and loss={settings.loss!r} has scores of another kind. "
                "Set warm_start=False."
            )
        if isinstance(settings.n_estimators, str):
            raise ValueError(
                f"warm_start adds rounds to the {n_done} of the earlier fit, and n_estimators='auto' does not set "
                "their number. Set n_estimators to a number, or warm_start=False."
            )
        if settings.n_estimators < n_done:
            raise ValueError(
                f"n_estimators={settings.n_estimators} must be at least the {n_done} rounds of the earlier fit when "
                "warm_start=True."
            )
        if settings.n_estimators == n_done:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")

    def _split(
        self, recipe: Recipe, rows: LearningRows, held_out: LearningRows | None, inputs: FitInputs, seed: int
    ) -> list[Splits]:
        """Return training and held-out rows of each booster, for each repeat of the split into folds."""
        settings, by_class = self._settings, self._settings.is_class_target
        if recipe.n_folds:
            split = partial(split_folds, rows, recipe.n_folds, inputs.groups, by_class)
            repeats = [split(seed=seed + r, fold_overlap=recipe.fold_overlap) for r in range(recipe.n_repeats)]
            if repeats[0]:
                return repeats
        elif held_out is None and recipe.stops_early:
            fraction = settings.validation_fraction
            return [[split_validation(rows, fraction, inputs.groups, by_class, seed, inputs.time)]]
        return [[(rows, held_out)]]

    def _with_initial_model(
        self, inputs: FitInputs, split: tuple[LearningRows, LearningRows | None], loss: Loss, target: BoostingTarget
    ) -> tuple[LearningRows, LearningRows | None]:
        """Return rows whose offsets are predictions of `init`, which is fitted unless an earlier fit has done so."""
        classes, rows = target.classes, split[0]
        is_weighted = inputs.sample_weight is not None or target.class_weight is not None
        if self._earlier is None:
            self._initial_model = fit_initial_model(self._settings.init, inputs.X, rows, classes, is_weighted)
        else:
            self._initial_model = self._earlier.init_
        n_classes, n_scores = 0 if classes is None else len(classes[0]), sum(one.n_scores for one in loss.parts)
        scores_of = partial(initial_scores, self._initial_model, link=loss.link, n_classes=n_classes, n_scores=n_scores)
        scores, (rows, held_out), validation = scores_of(inputs.X), split, inputs.first_validation
        if held_out is not None:
            held_out = held_out.with_offset(scores if validation is None else scores_of(validation.X))
        return rows.with_offset(scores), held_out

    def _initial_scores(self, loss: Loss, rows: LearningRows, n_scores: int, target: BoostingTarget) -> Floats:
        """Return the constant initial scores, without offsets."""
        if self._earlier is not None:
            return self._earlier.boosting_.start
        if self._settings.starts_at_model or self._settings.init == "zero":
            return np.zeros(n_scores)
        return target.constants(loss, rows)

    # ---- boosting ------------------------------------------------------------------------------------

    def _start(self, recipe: Recipe, task: Task, file: Checkpoint | None) -> Rounds | MeanThenDeviation:
        """Start the boosters of one recipe, or resume them from a checkpoint."""
        settings = self._settings
        if fits_mean_first(settings, recipe, task):
            monotone_directions(settings, task.schema, [len(task.start)])
            return MeanThenDeviation(settings, recipe, task, self._rounds)
        curves = None if self._earlier is None else self._earlier.curves
        if file is not None and file.exists:
            earlier, curves = file.rounds(task)
            task = replace(task, earlier=earlier)
        rounds = self._rounds(settings, recipe, task, curves)
        rounds.checkpoint = file
        rounds.evaluations = self._evaluations(task, rounds)
        return rounds

    def _rounds(
        self,
        settings: BoostingSettings,
        recipe: Recipe,
        task: Task,
        curves: Mapping[str, Any] | None = None,
        which: slice = slice(None),
    ) -> Rounds:
        """Start the boosters of some folds; `curves` are the learning curves of earlier rounds."""
        loss, rows, splits, start = task.loss, task.rows, task.splits, task.start
        tables = booster_tables(recipe, task)
        encoded = [column for column, *_ in tables[0][1]]
        members: list[Member] = []
        binned = None
        for i, (training, held_out) in list(enumerate(splits))[which]:
            custom = None if loss.custom is None else CustomLosses(loss.custom, training, held_out)
            max_step = 0.0 if custom is None else custom.training.default_max_step
            seed = (task.seed + i) % 2**31
            inputs = BoosterInputs(training.n_used, training.total_weight, len(start), seed, encoded, max_step)
            options = engine_options(settings, recipe.for_booster(i), task.schema, loss, inputs)
            columns, encodings = tables[i]
            if len(splits) > 1 and (binned is None or recipe.random_bins or encoded):
                binned = binned_table(columns, bin_weights(recipe, rows, task.seed + i), options)
            engine = start_booster(
                columns, training, held_out, loss, start, task.earlier, options, binned, settings.n_threads
            )
            metric = None if held_out is None else self._stopping_metric(task, held_out)
            factor = loss.reported_factor
            members.append(Member(settings, recipe, engine, held_out is not None, metric, encodings, custom, factor))

        def find_factors(by_fold: Sequence[HoldsOut]) -> Floats:
            held_out_rows = [held_out for _, held_out in splits if held_out is not None]
            return best_tree_factors(by_fold, held_out_rows, *loss.centred(rows, start), loss)

        check = None
        if forced := forced_splits(settings, recipe, task.schema):
            check = partial(check_forced_splits, forced, n_rows=min_leaf_rows(settings, recipe, splits[0][0].n_used))
        make_model, factors = task.model, None if loss.custom else find_factors
        return Rounds(settings, recipe, members, task.earlier, make_model, factors, check, curves)

    def _stopping_metric(self, task: Task, held_out: LearningRows) -> HeldOutMetric | None:
        """Return the metric that stops the fit, if it is another than the loss."""
        metric, loss = self._settings.metrics[0], task.loss
        if metric is None:
            return None
        base = held_out.scores(task.start) if loss.is_shift_invariant else None
        encode = partial(self._encode, task.schema)
        return task.target.held_out_metric(metric, task.model([]), held_out, base, encode)

    def _evaluations(self, task: Task, rounds: Rounds) -> Evaluations | None:
        """Return the evaluations of several validation sets or metrics; None if there is one of each."""
        settings, model = self._settings, rounds.make_model([])
        sets = [(name, rows) for name, rows in task.validation if rows is not None]
        if not sets or len(sets) * len(settings.metrics) < 2:
            return None
        if len(sets) > 1 and settings.starts_at_model:
            raise ValueError("init=estimator takes one validation set. Pass it as X_val and y_val.")

        def value_on(rows: LearningRows, metric: Metric) -> Callable[[Floats], float]:
            if metric is None:
                return rounds.loss_on(rows, task.loss)
            negated, sign = task.target.held_out_metric(metric, model, rows), metric_sign(metric)
            return lambda scores: -sign * negated(scores, None)

        evaluated = []
        for name, rows in sets:
            scores = scores_after(task.earlier, rows, rows.scores(task.start), settings.n_threads)
            metrics = {metric_name(metric): value_on(rows, metric) for metric in settings.metrics}
            evaluated.append(EvaluatedSet(name, rows.columns, np.ascontiguousarray(scores.T), metrics))
        return Evaluations(evaluated, task.schema.n_categories, settings.n_threads)

    # ---- result --------------------------------------------------------------------------------------

    def _result(self, recipe: Recipe, rounds: Rounds | MeanThenDeviation, task: Task) -> FitResult:
        task = self._with_calibrated_start(rounds, self._with_cuts(rounds, task))
        settings, earlier, rows, is_one = self._settings, self._earlier, task.rows, len(task.splits) == 1
        calibration = rounds.calibration(task) if settings.calibrates and not is_one else None
        model, step, n_dropped = rounds.result(), tree_learning_rate(settings, recipe), rounds.n_dropped
        has_step = is_one and n_dropped is None and (earlier is None or step == earlier._tree_learning_rate)
        target = task.target
        if target.has_curve:
            target = target.with_curve(task.loss, *self._scores_for_curve(rounds, model, task), rows)
        n_features = task.schema.n_split_features
        return FitResult(
            schema=task.schema,
            target=target,
            curves=rounds.curves(),
            boosting_=model,
            max_features_=min(count_features(recipe.max_features, n_features), n_features),
            stopped_because_=rounds.stop_reason,
            _seed=task.seed,
            _ranges=ColumnRanges.of(rows.columns, rows.weight, settings.n_threads).first(task.schema.n_features),
            history_=None if rounds.evaluations is None else rounds.evaluations.columns(),
            n_dropped_=n_dropped,
            init_=self._initial_model,
            _calibration=calibration,
            _tree_learning_rate=step if has_step else None,
        )

    def _with_cuts(self, rounds: Rounds | MeanThenDeviation, task: Task) -> Task:
        """Return the task with the final cuts between ordered classes.

        They are fitted to the out-of-fold scores if there are folds, else to those of the training rows.
        """
        if not isinstance(rounds, Rounds) or task.loss.name != "ordinal":
            return task
        found = rounds.out_of_fold_scores(task) if len(task.splits) > 1 else None
        if found is None:
            link = link_on(rounds.result(), task.loss, task.splits[0][0], self._settings.n_threads)
        else:
            which, scores = found
            link = task.loss.link_at(task.rows.target[which], scores, task.rows.weights()[which])
        task = replace(task, loss=replace(task.loss, link=link))
        rounds.make_model = task.model
        return task

    def _with_calibrated_start(self, rounds: Rounds | MeanThenDeviation, task: Task) -> Task:
        """Return the task with initial scores of distributions that minimise the loss of the out-of-fold scores.

        The training errors of a mean are too small, and so is the spread that is fitted to them.
        """
        is_distribution = task.loss.custom is None and TRAITS[task.loss.name].is_distribution
        if not isinstance(rounds, Rounds) or not is_distribution or len(task.splits) == 1:
            return task
        found = rounds.out_of_fold_scores(task)
        if found is None:
            return task
        which, scores = found
        shift = task.loss.constants(task.rows.target[which], task.rows.weights()[which], scores)
        task = replace(task, start=task.start + shift)
        rounds.make_model = task.model
        return task

    def _scores_for_curve(
        self, rounds: Rounds | MeanThenDeviation, model: FittedBoosting, task: Task
    ) -> tuple[LearningRows, Floats]:
        """Return rows and their scores, (1, n_rows), from which a survival curve is learned."""
        rows, splits = task.rows, task.splits
        if len(splits) == 1 and splits[0][1] is not None and self._settings.loss == "aft":
            rows = splits[0][1]
        scores = np.ascontiguousarray(model.scores(rows.columns, self._settings.n_threads).T)
        if rows.offset is not None:
            scores = scores + rows.offset
        if len(splits) > 1:
            assert isinstance(rounds, Rounds)
            scores = rounds.with_held_out_scores(scores, [held_out for _, held_out in splits])
        return rows, scores
