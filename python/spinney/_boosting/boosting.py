"""What boosted classifiers and regressors share: reading, rounds, stopping, staged predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.fitted.importances import BoostingImportances
from spinney._boosting.fitted.readable import ReadableBoosting
from spinney._boosting.fitted.saved_state import BY_ROUND, boosting_from_json, boosting_to_json
from spinney._boosting.fitted.scores import SaysScores
from spinney._boosting.losses.custom import OutsideLosses
from spinney._boosting.losses.loss import Loss
from spinney._boosting.losses.outputs import weighed
from spinney._boosting.losses.rows import LearningRows, check_size, in_folds, kept, set_aside, that_count
from spinney._boosting.options.compatibility import check_options
from spinney._boosting.options.constraints import promised_directions
from spinney._boosting.options.engine_options import (
    CONSTRAINTS,
    engine_options,
    forced_splits,
    smallest_leaf,
    step_size,
)
from spinney._boosting.options.forced import check_forced
from spinney._boosting.options.recipe import Recipe, draw_seed, resolve, searched
from spinney._boosting.rounds.boosters import coded_table, start_booster, tables_of_members, weights_for_bins
from spinney._boosting.rounds.checkpoint import Checkpoint
from spinney._boosting.rounds.evaluation import HeldOutScore, WithScoring
from spinney._boosting.rounds.evaluations import FollowsSets, named_sets
from spinney._boosting.rounds.first_model import StartsAtModel
from spinney._boosting.rounds.mean_then_spread import MeanThenSpread, goes_apart
from spinney._boosting.rounds.member import Member
from spinney._boosting.rounds.run import Rounds
from spinney._boosting.rounds.scale import best_factors
from spinney._boosting.rounds.streams import check_dealt, check_stream
from spinney._boosting.rounds.task import Parts, Task
from spinney._boosting.settings import BoostingSettings
from spinney._data import Schema, read_table
from spinney._data.display.warn import warn
from spinney._data.partitioned import DealtTable
from spinney._data.scan import client_of
from spinney._estimator.parameters import count_features
from spinney._estimator.single_target import check_held_out, check_scoring
from spinney._estimator.streams import check_files, taken_apart
from spinney._estimator.support import ColumnRanges
from spinney._estimator.target import read_weights
from spinney._estimator.warm_start import check_target_goes_on
from spinney._model.boosting import FittedBoosting
from spinney._model.model import decision_costs
from spinney._model.offsets import read_offset
from spinney._model.saving.model_part import FittedPart

Floats = NDArray[np.float64]


class BaseBoosting(SaysScores, FollowsSets, ReadableBoosting, BoostingImportances, StartsAtModel):
    """Gradient boosting of classes or values."""

    _model_attribute = "boosting_"
    boosting_: FittedBoosting
    _leaf_share: ClassVar[float] = 1.0  # of few rows: fewest of a leaf, unless the user says how many
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    _elsewhere: ClassVar[dict[str, str]] = {
        "criterion": "Splits are compared by the loss that they save. Leave it out.",
        "init": "Pass what another model says of the rows as offset, to fit and to predict.",
        "leaves": "There is one score, so that a leaf has one value. Leave it out.",
    }

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        """Check y; return it as numbers, and what is learned from it."""

    @abstractmethod
    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        """Return the target of rows that are not learned from, as numbers; `name` is what the caller calls it."""

    @abstractmethod
    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        """Return the loss."""

    @abstractmethod
    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        """Row weights, class weights included."""

    @abstractmethod
    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        """Turn scores, (n_rows, n_scores), into predictions."""

    def _held_out_score(self, scoring: Any, *given: Any) -> Any:
        """Return a metric on held-out rows, as a function of scores; smaller is better."""
        return HeldOutScore(WithScoring(self, scoring), *given)

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        groups: Any = None,
        time: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        offset_val: Any = None,
        checkpoint: Any = None,
    ) -> Self:
        """Boost.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or stream
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are. A stream is a table
            that is read some rows at a time, as by `spinney.scan`: y, sample_weight, offset and groups may then be the
            names of columns.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice, a weight of 0 leaves it out.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Scores that the trees add to, such as the logarithm of an exposure. Pass the same to `predict`.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together (early stopping, folds).
        time : array-like of shape (n_samples,), optional
            Moments, numbers or dates: the latest rows are held out (early stopping). With nothing set there is one
            booster then, as no fold but the last is later than all others.
        X_val, y_val, sample_weight_val, offset_val : as X, y, sample_weight and offset, optional
            Held-out rows, for early stopping and the learning curve. Several sets are dicts of these by name: the
            first stops the fit, all are judged after each round (``history_``).
        checkpoint : str or path, optional
            A file that keeps the rounds while they are done. If it is there, because an earlier process with the same
            data and parameters was cut short, the fit goes on with them, and ends with the same bits. It is removed
            when the fit is done.

        Returns
        -------
        self
            The fitted estimator.
        """
        later = X_val, y_val, sample_weight_val, offset_val
        if (client := client_of(X)) is not None:
            names = ("X_val", "y_val", "sample_weight_val", "offset_val")
            beside = {"y": y, "sample_weight": sample_weight, "offset": offset, "groups": groups, "time": time}
            return self._fit_elsewhere(client, X, beside | dict(zip(names, later, strict=True)), checkpoint)
        return self._fit(X, y, sample_weight, offset, groups, later, time, checkpoint)

    def _fit_elsewhere(self, client: Any, X: Any, beside: dict[str, Any], checkpoint: Any) -> Self:
        """Boost on the workers of a cluster; `beside` are the other parameters of `fit`."""
        from spinney._boosting.distributed.fit import fit_boosting

        fitted: Self = fit_boosting(client, self, X, beside, checkpoint)
        return fitted

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        offset: Any,
        groups: Any,
        later: tuple[Any, Any, Any, Any],
        time: Any = None,
        checkpoint: Any = None,
    ) -> Self:
        """Boost; `later` are the table, targets, weights and offsets that the caller holds out."""
        file = None if checkpoint is None else Checkpoint(checkpoint)
        sets = named_sets(later, ("X_val", "y_val", "sample_weight_val", "offset_val"))
        X_val, y_val, *_ = later = sets[0][1]
        self._check_request(X_val, y_val, {"sample_weight_val": later[2], "offset_val": later[3]}, groups, time)
        beside = {"y": y, "sample_weight": sample_weight, "offset": offset, "groups": groups, "time": time}
        X, given = taken_apart(X, beside, self.categorical_features)
        settings = BoostingSettings.of(self)
        recipe, task = self._read(settings, X, given, sets, None if file is None else file.seed)
        if file is not None:
            file.begin(settings, recipe, task)
        recipe, rounds = self._run(searched(settings, recipe), partial(self._begin, settings, task=task, file=file))
        model, found = self._found(recipe, rounds, task)
        check_files(X)
        self._keep(recipe, task.schema, rounds, model, task.learned | found)
        if file is not None and not rounds.is_cut_short:
            file.remove()
        return self

    def _read(
        self, settings: BoostingSettings, X: Any, given: Any, sets: list[tuple[str, Any]], seed: int | None
    ) -> tuple[Recipe, Task]:
        """Read what was given; return how to boost, and what; `seed` is that of a fit to go on with, if any."""
        y, sample_weight, offset, groups, time = given
        later, table = sets[0][1], read_table(X)
        earlier: FittedBoosting | None = self.boosting_ if self.warm_start and hasattr(self, "boosting_") else None
        schema = self._learn_schema(table, goes_on=earlier is not None)
        given_weight = read_weights(sample_weight, table.n_rows)
        target, learned = self._read_target(y, table.n_rows)
        loss = self._make_loss(learned)
        n_scores = sum(part.n_scores for part in loss.parts)
        if earlier is not None:
            self._check_earlier(earlier, loss, learned)
        weight = self._all_weights(target, given_weight, learned)
        columns, offset = self._encode(schema, table), read_offset(offset, table.n_rows, n_scores)
        target, weight = kept(columns, target), None if weight is None else kept(columns, weight)
        rows = LearningRows(columns, target, weight, offset, X, learned.pop("_more", None))
        rows.check(loss, "y")
        loss = weighed(loss, rows)
        held_out = self._held_out(rows, schema, loss, later, learned, n_scores)
        others = [(name, self._held_out(rows, schema, loss, given, learned, n_scores)) for name, given in sets[1:]]
        has_held_out = held_out is not None or time is not None
        recipe = resolve(settings, rows.n_used, n_scores, has_held_out, self._weight_by_which(rows), schema.n_features)
        check_stream(X, settings, recipe, rows)
        check_dealt(recipe, rows)
        if recipe.n_folds and 0 < rows.n_used < len(rows.target):
            read_again = callable(settings.metrics[0]) or hasattr(X, "tocsc")  # a metric may read it; or it is sparse
            encode = (lambda X: self._encode(schema, read_table(X))) if read_again else None
            rows, groups = that_count(rows, groups, encode)
        if seed is None:
            seed = self._seed if earlier is not None else draw_seed(settings, recipe, later[0] is None)
        deals = self._deals(recipe, rows, held_out, (groups, time), seed)
        parts = [part for deal in deals for part in deal]
        if settings.starts_at_model:
            is_weighted = given_weight is not None or weight is not given_weight
            parts = [self._from_first_model(X, later[0], *parts[0], loss, learned, earlier, is_weighted)]
        if len(parts) == 1:
            rows = parts[0][0]
        start = self._start(loss, rows, n_scores) if earlier is None else earlier.start
        check_size(rows, start, loss)
        judged = [(sets[0][0], parts[0][1]), *others] if len(parts) == 1 else []
        n_of_deals = [len(deal) for deal in deals]
        return recipe, Task(schema, loss, rows, parts, n_of_deals, start, earlier, seed, learned, judged)

    def _begin(
        self, settings: BoostingSettings, recipe: Recipe, task: Task, file: Checkpoint | None
    ) -> Rounds | MeanThenSpread:
        """Start the boosters of one recipe; they go on from a file that keeps rounds."""
        if goes_apart(settings, recipe, task):
            promised_directions(settings, task.schema, [len(task.start)])
            return MeanThenSpread(settings, recipe, task, self._rounds)
        known = self.__dict__ if task.earlier is not None else None
        if file is not None and file.is_there:
            earlier, known = file.rounds(task)
            task = replace(task, earlier=earlier)
        rounds = self._rounds(settings, recipe, task, known)
        rounds.checkpoint = file
        if task.judged:
            rounds.evaluations = self._evaluations(task, rounds)
        return rounds

    def _found(self, recipe: Recipe, rounds: Any, task: Task) -> tuple[FittedBoosting, dict[str, Any]]:
        """Return the model, and what is known beside it."""
        rows, is_one = task.rows, len(task.parts) == 1
        found: dict[str, Any] = {"_seed": task.seed}
        found["_ranges"] = ColumnRanges.of(rows.columns, rows.weight, self._n_threads)
        if rounds.evaluations is not None:
            found["history_"] = rounds.evaluations.columns()
        by_class = task.learned.pop("_class_weight", None)
        if not is_one and hasattr(self, "calibrate"):
            known = rounds.calibrated(task.parts, rows, task.loss, task.start, by_class)
            found |= {} if known is None else {"_calibration": known}
        model = rounds.result()
        step, dropped = step_size(BoostingSettings.of(self), recipe), rounds.n_dropped
        if dropped is not None:
            found["n_dropped_"] = dropped
        elif is_one and (task.earlier is None or step == getattr(self, "_step", None)):
            found["_step"] = step
        return model, found | self._told_by(rounds, model, task)

    def _run(
        self, recipes: list[Recipe], begin: Callable[[Recipe], Rounds | MeanThenSpread]
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

    def _deals(
        self, recipe: Recipe, rows: LearningRows, held_out: LearningRows | None, together: tuple[Any, Any], seed: int
    ) -> list[Parts]:
        """Rows to learn from and rows to be judged by, for each booster of each time that rows are dealt out."""
        groups, time = together
        if recipe.n_folds:
            by_class = self._is_class_target
            into = partial(in_folds, rows, recipe.n_folds, groups, by_class, held_twice=recipe.held_twice)
            deals = [into(seed=seed + r) for r in range(recipe.n_deals)]
            if deals[0]:
                return deals
        elif held_out is None and recipe.stops_early:
            return [[set_aside(rows, self.validation_fraction, groups, self._is_class_target, seed, time)]]
        return [[(rows, held_out)]]

    def _weight_by_which(self, rows: LearningRows) -> float:
        """Return the weight of the table by which what the user left open is decided."""
        return rows.total_weight

    def _n_parts_held_out(self) -> int:
        return 2 if BoostingSettings.of(self).stops_early else 0

    def _check_request(self, X_val: Any, y_val: Any, more: dict[str, Any], groups: Any, time: Any) -> None:
        self._check_parameters()
        settings = BoostingSettings.of(self)
        for metric in settings.metrics:
            check_scoring(metric, settings.callbacks)
        check_held_out(X_val, y_val, more, groups, settings.stops_early, time)
        check_options(settings)

    def _check_earlier(self, earlier: FittedBoosting, loss: Loss, learned: dict[str, Any]) -> None:
        check_target_goes_on(learned, self.__dict__)
        if earlier.link != loss.link:
            raise ValueError(
                f"warm_start needs the loss of the earlier fit, and loss={self.loss!r} has scores of another kind. "
                "Set warm_start=False."
            )
        n_done = earlier.n_rounds
        if self.n_estimators == "auto":
            raise ValueError(
                f"warm_start adds rounds to the {n_done} of the earlier fit, and n_estimators='auto' does not say how "
                "many. Set n_estimators to a number, or warm_start=False."
            )
        if self.n_estimators < n_done:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least the {n_done} rounds of the earlier fit when "
                "warm_start=True."
            )
        self._check_earlier_keeps_constraints(earlier)
        if self.n_estimators == n_done:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")

    def _check_earlier_keeps_constraints(self, earlier: FittedBoosting) -> None:
        """Refuse to go on from trees that break, or may break, a constraint of the model."""
        has_many = earlier.n_shares > 0 and earlier.n_scores > self.n_outputs_  # classes: nothing can be proved of them
        if has_many or not self._constrained_directions(self.monotonic_cst):
            return
        found = self.verify_constraints()
        if found.holds is not True:
            raise ValueError(
                "warm_start adds to the trees of the earlier fit, and these are not known to keep monotonic_cst "
                f"({str(found).splitlines()[0]}). Set warm_start=False."
            )

    def _encode(self, schema: Schema, table: Any) -> Any:
        if isinstance(table, DealtTable):
            return table.encoded(schema, self.unseen, type(self).__name__)
        return schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)

    def _held_out(
        self, rows: LearningRows, schema: Schema, loss: Loss, given: Any, learned: dict[str, Any], n_scores: int
    ) -> LearningRows | None:
        X, y, weight, offset = given
        if X is None:
            return None
        beside = {"y_val": y, "sample_weight_val": weight, "offset_val": offset}
        X, (y, weight, offset) = taken_apart(X, beside, self.categorical_features, "X_val")
        if (offset is None) != (rows.offset is None):
            raise ValueError("offset and offset_val go together. Pass both or neither.")
        table = read_table(X)
        target = self._known_target(y, table.n_rows, learned, "y_val")
        weight = self._all_weights(target, read_weights(weight, table.n_rows), learned)
        offset = read_offset(offset, table.n_rows, n_scores, "offset_val")
        held_out = LearningRows(self._encode(schema, table), target, weight, offset, X, learned.pop("_more", None))
        held_out.check(loss, "y_val")
        if held_out.n_used == 0:
            raise ValueError("No held-out row has a positive weight. Change sample_weight_val or class_weight.")
        return held_out

    def _start(self, loss: Loss, rows: LearningRows, n_scores: int) -> Floats:
        """Scores before the first tree, besides an offset."""
        if self._starts_at_model or getattr(self, "init", None) == "zero":
            return np.zeros(n_scores)
        return self._best_constant(loss, rows, n_scores)

    def _best_constant(self, loss: Loss, rows: LearningRows, n_scores: int) -> Floats:
        weight, used = rows.seen_weights, rows.used
        found: list[Floats] = []
        for part, target in zip(loss.parts, rows.targets(loss), strict=True):
            first = sum(map(len, found))
            offset = None if rows.offset is None else rows.offset[first : first + part.n_scores, used]
            found.append(part.constants(target[used], weight[used], offset))
        return np.concatenate(found)

    def _rounds(
        self, settings: BoostingSettings, recipe: Recipe, task: Task, known: dict[str, Any] | None = None
    ) -> Rounds:
        """Start the boosters; `known` are the learning curves so far, if the estimator itself does not have them."""
        schema, loss, rows, parts = task.schema, task.loss, task.rows, task.parts
        start, earlier, seed, learned = task.start, task.earlier, task.seed, task.learned
        classes = learned.get("classes_")
        n_classes = None if classes is None else list(map(len, classes if isinstance(classes, list) else [classes]))
        cost = decision_costs(learned.get("cost_matrix_"), learned.get("priors_"))

        def view(trees: list[_engine.Tree] | _engine.Additive) -> FittedBoosting:
            return FittedBoosting(trees, start, loss.link, schema.n_categories, n_classes, cost)

        tables = tables_of_members(recipe, task)
        sources = [source for source, *_ in tables[0][1]]

        def options_of(i: int, part: LearningRows, largest_step: float) -> dict[str, Any]:
            n_used, weight, key = part.n_used, part.total_weight, (seed + i) % 2**31
            given = n_used, weight, len(start), key, sources, largest_step
            return engine_options(settings, recipe.of_member(i), schema, loss, *given)

        def encode(X: Any) -> Any:
            return self._encode(schema, read_table(X))

        members = []
        coded = None
        for i, (learning, held_out) in enumerate(parts):
            outside = None if loss.outside is None else OutsideLosses(loss.outside, learning, held_out)
            options = options_of(i, learning, 0.0 if outside is None else outside.learning.largest_step)
            columns, statistics = tables[i]
            if len(parts) > 1 and (coded is None or recipe.draws_bins or sources):
                coded = coded_table(columns, weights_for_bins(recipe, rows, seed + i), options)
            engine = start_booster(columns, learning, held_out, loss, start, earlier, options, coded, self._n_threads)
            judge = None
            scoring = settings.metrics[0]
            if held_out is not None and scoring is not None:
                base = held_out.scores(start) if loss.is_shifted else None
                judge = self._held_out_score(scoring, view([]), held_out, learned, base, encode)
            members.append(Member(settings, recipe, engine, held_out is not None, judge, statistics, outside))

        def factors() -> Floats:
            judged = [part for _, part in parts if part is not None]
            return best_factors(members, judged, *rows.shifted(start, loss), loss)

        check = None
        if forced := forced_splits(settings, recipe, schema):
            check = partial(check_forced, forced, n_rows=smallest_leaf(settings, recipe, parts[0][0].n_used))
        return Rounds(settings, recipe, members, earlier, view, None if loss.outside else factors, check, known)

    def _told_by(self, rounds: Any, model: FittedBoosting, task: Task) -> dict[str, Any]:
        """Return what else is learned from the rows once the model is known."""
        return {}

    def _keep(
        self, recipe: Recipe, schema: Schema, rounds: Any, model: FittedBoosting, learned: dict[str, Any]
    ) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        curves = rounds.curves()
        for name in (*BY_ROUND, "init_", "_calibration", "_step"):
            self.__dict__.pop(name, None)
        self._keep_schema(schema)
        self.max_features_ = min(count_features(recipe.max_features, schema.n_features), schema.n_features)
        self.boosting_ = model
        self.n_outputs_ = model.n_outputs
        self.n_iter_ = self.boosting_.n_rounds
        self.stopped_because_ = rounds.because
        self.__dict__.update(curves)
        if "oob_scores_" in curves:
            self.oob_score_ = float(curves["oob_scores_"][self.n_iter_ - 1])
        for name, value in learned.items():
            setattr(self, name, value)

    # ---- using ---------------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        return boosting_to_json(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        return boosting_from_json(header, part)

    @property
    def n_estimators_(self) -> int:
        """Rounds of the model, by the name that scikit-learn's gradient boosting gives them."""
        check_is_fitted(self)
        return int(self.boosting_.n_rounds)

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the loss that the splits save."""
        check_is_fitted(self)
        return self.boosting_.importances(self.n_features_in_)
