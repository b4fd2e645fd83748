"""One fit of a forest, stage by stage: the rows it learns from, their samples, the trees, what is remembered."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics import get_scorer

import spinney._engine as _engine
from spinney._data import Combinations, Schema
from spinney._data.combinations import n_for_all
from spinney._data.reproducible import any_order_sum
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.costs import ClassCosts
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.parameters import count_features
from spinney._estimator.rows import RowFingerprint, integer_weights, relative_weights, weight_of_one_row
from spinney._estimator.support import ColumnRanges
from spinney._estimator.user_criterion import check_proba, is_user, prepare
from spinney._forest.growing import ForestRequest, GrowingForest, TreeGrower, grow_in_batches
from spinney._forest.growth_record import GrowthRecord, OutOfBagResult, TrainingRows
from spinney._forest.samples import Draws, Metric, OutOfBag, draw_rows, rows_with_weight
from spinney._forest.shrinkage import (
    N_FIRST,
    N_HELPERS,
    STRENGTHS,
    USUAL,
    LearningRows,
    evaluation_rows,
    grows_again,
    per_draw,
    strength_of,
)
from spinney._model.forest import FittedForest, join_trees
from spinney._model.tree import FittedTree
from spinney._tree.settings import GrowthSettings, GrowthTarget
from spinney._tree.task import Target, Task

_LEAST, _MOST, _MOST_VALUES = 100, 1000, 2**24  # combinations, and their values, for oblique="auto"
_SINGLE_COLUMNS = ("monotonic_cst", "interaction_cst", "feature_costs", "feature_weights", "always_try")


@dataclass(frozen=True)
class ForestSettings(GrowthSettings):
    """The parameters of a forest: those of its trees, and those of their number, their samples and what is retained."""

    n_estimators: int | str = 100
    replace: bool = True
    max_samples: int | float | None = None
    oob_score: Metric | bool = False
    verbose: int = 0
    keep_rows: bool = False
    n_combined: int = 3

    def check_samples(self, groups: ColumnLike) -> None:
        """Refuse parameters of sampling that do not go together."""
        if self.bootstrap:
            if isinstance(self.oob_score, str):
                get_scorer(self.oob_score)  # refuses an unknown name before the trees are grown
            return
        if self.max_samples is not None:
            raise ValueError("max_samples goes with bootstrap=True. Set that, or max_samples=None.")
        if self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True: else no row is left out.")
        for name, given in (
            ("n_estimators='auto'", self.n_estimators == "auto"),
            ("sampling", self.sampling is not None),
            ("replace=False", not self.replace),
            ("groups", groups is not None),
        ):
            if given:
                raise ValueError(f"{name} goes with bootstrap=True: with bootstrap=False every tree sees every row.")


@dataclass(frozen=True)
class FitResult:
    """What a fit of a forest has found.

    Attributes
    ----------
    schema : Schema
    forest : FittedForest
    record : GrowthRecord
    target : Target
    costs : ClassCosts or None
    n_outputs : int
        Of the predictions: a criterion of the user's may predict other values than y.
    """

    schema: Schema
    forest: FittedForest
    record: GrowthRecord
    target: Target
    costs: ClassCosts | None
    n_outputs: int


@dataclass(frozen=True)
class TreeFinisher:
    """Turns the values that growth works with into those that users see, prunes and shrinks each tree."""

    task: Task
    costs: ClassCosts | None
    checks_shares: bool

    def finish(self, forest: FittedForest, request: ForestRequest) -> FittedForest:
        """Return the finished trees."""
        trees = [self._finished(forest.tree(t)) for t in range(forest.n_trees)]
        if request.shrinkage > 0:
            trees = [tree.shrunk(request.shrinkage) for tree in trees]
        return forest.replaced(join_trees(trees, request.n_categories))

    def _finished(self, tree: FittedTree) -> FittedTree:
        if self.checks_shares:
            check_proba(tree.engine)
        tree = self.task.restated(tree, self.costs)
        alpha = float(self.task.settings.ccp_alpha)
        return tree.replaced(tree.engine.pruned(alpha, self.task.node_risks(tree))) if alpha > 0 else tree


@dataclass
class ForestFit:
    """One fit of a forest to a table that has been read.

    Attributes
    ----------
    task : Task
    settings : ForestSettings
    schema : Schema
    earlier : FittedForest or None
        Trees to extend.
    record : GrowthRecord
        How they were grown.
    seed : int
    grower : callable
        Grows the trees.
    """

    task: Task
    settings: ForestSettings
    schema: Schema
    earlier: FittedForest | None
    record: GrowthRecord
    seed: int
    grower: TreeGrower

    def run(self, encoded: _engine.Table, target: Target, inputs: FitInputs, given: Floats | None) -> FitResult:
        """Grow the forest on encoded columns; `given` are the weights of the caller."""
        rows, settings = self._learning_rows(encoded, target, inputs, given), self.settings
        draws = self._draw(rows) if settings.bootstrap else None
        if self.earlier is not None:
            check_samples_go_on(self.record, draws)
        strength = self._known_strength(rows.costs)
        request = self._request(rows, draws)
        grown = GrowingForest(self._out_of_bag(rows, draws), self.earlier, settings.n_estimators == "auto")
        if strength is None:
            strength = self._chosen_strength(request, grown, rows)
        request = replace(request, shrinkage=strength * rows.unit)
        forest = grow_in_batches(request, grown, self.grower, settings.n_estimators, settings.verbose)
        record = GrowthRecord(
            seed=self.seed,
            shrinkage=strength,
            draws=draws,
            all_rows=None if settings.bootstrap else rows_with_weight(rows.weight, rows.columns.n_rows),
            ranges=ColumnRanges.of(rows.inputs, rows.weight, self.settings.n_threads),
            row_fingerprint=RowFingerprint.of(rows.prints, rows.target)
            if settings.bootstrap and rows.prints is not None
            else None,
            rows=self._training_rows(forest, rows, draws, request) if settings.keep_rows else None,
            oob=self._out_of_bag_result(grown, forest),
        )
        return FitResult(self.schema, forest, record, target, rows.costs, request.n_outputs)

    # ---- rows and samples ----------------------------------------------------------------------------

    def _learning_rows(
        self, encoded: _engine.Table, target: Target, inputs: FitInputs, given: Floats | None
    ) -> LearningRows:
        settings = self.settings
        relative, copies = relative_weights(given)
        # rates are shrunk by the number of events: their unit does matter
        sample_weight = given if self.settings.rate_shrinkage > 0 else relative
        weight = self.task.weights(target, inputs.y, sample_weight)
        costs = self.task.costs(target, weight)
        self.schema = self._with_combinations(encoded, sample_weight)
        needs_prints = settings.bootstrap or self._known_strength(costs) is None
        return LearningRows(
            inputs=encoded,
            columns=self.settings.pooled(self.schema.combined(encoded), sample_weight),
            target=target.array,
            n_classes=target.n_classes,
            classes=target.classes,
            sample_weight=sample_weight,
            weight=weight,
            copies=copies,
            counts_copies=settings.bootstrap and inputs.groups is None,
            costs=costs,
            groups=inputs.groups,
            prints=encoded.fingerprints(self.settings.n_threads) if needs_prints else None,
        )

    def _with_combinations(self, inputs: _engine.Table, weight: Floats | None) -> Schema:
        """Return the schema with the pool of combined columns that trees of an oblique forest split on."""
        oblique = self.settings.oblique
        pool = None if oblique is None else self._drawn_combinations(oblique, inputs, weight)
        if self.earlier is None:
            return self.schema if pool is None else self.schema.with_pool(pool)
        check_pool(self.schema.pool, pool)
        return self.schema

    def _drawn_combinations(self, oblique: int | str, inputs: _engine.Table, weight: Floats | None) -> Combinations:
        n_combined = int(self.settings.n_combined)
        for name in _SINGLE_COLUMNS:
            if getattr(self.settings, name) is not None:
                raise ValueError(
                    f"{name} is about single columns, but oblique splits combine several. Set {name}=None or "
                    "oblique=None."
                )
        if isinstance(oblique, str):
            copies = integer_weights(weight)
            n_rows = inputs.n_rows if copies is None else int(copies.sum())
            n = max(_LEAST, min(_MOST, _MOST_VALUES // n_rows))
            n = max(n, n_for_all(self.schema.n_features, n_combined))
        else:
            n = int(oblique)
        return Combinations.draw(self.schema.features, inputs, weight, n, n_combined, self.seed)

    def _draw(self, rows: LearningRows) -> Draws:
        sampling = self.settings.sampling
        classes = None
        if sampling is not None:  # with several outputs, each combination of their classes is a stratum
            classes = np.unique(rows.target, axis=0, return_inverse=True)[1].reshape(-1)
        return draw_rows(
            keys=rows.keys,
            weight=rows.weight,
            copies=rows.drawn_copies,
            seed=self.seed,
            groups=rows.groups,
            classes=classes,
            balanced=sampling == "balanced",
            replace=self.settings.replace,
            max_samples=self.settings.max_samples,
        )

    # ---- trees ---------------------------------------------------------------------------------------

    def _request(self, rows: LearningRows, draws: Draws | None) -> ForestRequest:
        """Say what is to be grown, without shrinkage."""
        settings, schema, costs = self.settings, self.schema, rows.costs
        user = prepare(self.settings.criterion, rows.target, rows.weight, rows.n_classes)
        total = float(rows.columns.n_rows) if rows.weight is None else any_order_sum(rows.weight)
        weight = each_draw = per_draw(rows.weight, rows.drawn_copies)
        if costs is not None:
            weight = costs.split_weights(rows.target[:, 0], weight)
        row_weight = weight_of_one_row(weight)
        if draws is not None and (weight is None or row_weight > 0):  # the rows of a sample are there several times
            row_weight = draws.times_drawn * (row_weight or 1.0)
        n_outputs = rows.target.shape[1]
        options = self.settings.engine_options(
            schema,
            GrowthTarget(rows.n_classes, n_outputs, costs, user),
            rows.columns.n_rows,
            total if draws is None else total * draws.share,
            seed=draws.seed if draws is not None else self.seed,
            row_weight=row_weight,
        )
        changes = costs is not None or self.settings.rate_shrinkage > 0 or user is not None or settings.ccp_alpha > 0
        is_balanced = self.settings.class_weight == "balanced_subsample"
        per_tree = None
        if settings.max_features_per_tree is not None:
            n_tried = count_features(settings.max_features_per_tree, schema.n_features)
            per_tree = min(n_tried, schema.n_split_features)
        return ForestRequest(
            columns=rows.columns,
            y=rows.target if user is None else user.y,
            options=options,
            n_categories=schema.n_categories,
            criterion=self.settings.engine_criterion(costs),
            n_classes=rows.n_classes,
            n_outputs=user.n_values if user is not None and not rows.n_classes else n_outputs,
            decision=None if costs is None else costs.decision,
            weight=weight,
            draws=draws,
            max_features_per_tree=per_tree,
            balanced=rows.target if is_balanced else None,
            balance_weight=each_draw if is_balanced else None,
            finisher=TreeFinisher(self.task, costs, user is not None and bool(rows.n_classes)) if changes else None,
        )

    def _known_strength(self, costs: ClassCosts | None) -> float | None:
        """Return the strength of the shrinkage, in rows; None: the trees choose it."""
        settings, usual = self.settings, STRENGTHS[USUAL]
        if not isinstance(settings.shrinkage, str):
            return float(settings.shrinkage or 0.0)
        if self.earlier is not None and self.earlier.n_trees >= N_FIRST:
            return self._earlier_strength
        has_few = not isinstance(settings.n_estimators, str) and settings.n_estimators < N_FIRST
        return usual if has_few or costs is not None or is_user(settings.criterion) else None

    @property
    def _earlier_strength(self) -> float:
        return STRENGTHS[USUAL] if self.record.shrinkage is None else self.record.shrinkage

    def _chosen_strength(self, request: ForestRequest, grown: GrowingForest, rows: LearningRows) -> float:
        """Return the strength that trees choose; those of this forest that did so are added to it."""
        if grown.forest is not None:  # few trees of an earlier fit, which had the usual strength
            strength = self._earlier_strength
            if not grows_again(request, grown.forest, strength * rows.unit, self.grower):
                return strength
            grown.forest = None
        if request.draws is None:
            return self._strength_by_helpers(rows)
        first = self.grower(request, 0, N_FIRST)
        strength = strength_of(first, request.draws, rows, rows.unit, self.settings.n_threads)
        grown.add(first.replaced(first.engine.shrunk(strength * rows.unit)))
        return strength

    def _strength_by_helpers(self, rows: LearningRows) -> float:
        """Return the strength for trees grown on all rows, by other trees that are grown on samples of some rows."""
        some, chosen = evaluation_rows(rows)
        columns = some.columns if chosen is None else self.settings.pooled(some.columns, some.weight)
        seed = (self.seed + 1) % np.iinfo(np.int32).max
        draws = draw_rows(keys=some.keys, weight=some.weight, copies=some.copies, seed=seed)
        helpers = self._request(replace(some, columns=columns, counts_copies=True), draws).grow(0, N_HELPERS)
        return strength_of(helpers, draws, some, rows.unit, self.settings.n_threads)

    # ---- what is remembered --------------------------------------------------------------------------

    def _out_of_bag(self, rows: LearningRows, draws: Draws | None) -> OutOfBag | None:
        if draws is None or not (self.settings.oob_score or self.settings.n_estimators == "auto"):
            return None
        return OutOfBag(rows.columns, draws, rows.target, rows.classes, rows.sample_weight, self.settings.n_threads)

    def _out_of_bag_result(self, grown: GrowingForest, forest: FittedForest) -> OutOfBagResult | None:
        if grown.oob is None:
            return None
        metric = None if isinstance(self.settings.oob_score, (bool, np.bool_)) else self.settings.oob_score
        grown.oob.warn_if_lacking()
        return OutOfBagResult(
            grown.oob.score(forest, metric), np.array(grown.curve), forest.by_output(grown.oob.means())
        )

    def _training_rows(
        self, forest: FittedForest, rows: LearningRows, draws: Draws | None, request: ForestRequest
    ) -> TrainingRows:
        """Send the training rows down the trees and note where they end."""
        n_nodes = np.diff(forest.root.astype(np.int64)).tolist()
        kind = np.uint16 if max(n_nodes) <= 2**16 else np.uint32
        return TrainingRows(
            leaf=np.ascontiguousarray(forest.engine.apply(rows.columns, self.settings.n_threads).T, dtype=kind),
            target=rows.target.copy(),
            n_classes=rows.n_classes,
            growth_weight=rows.in_leaves,
            row_weight=rows.sample_weight,
            draws=draws,
            balanced=request.balanced is not None,
            n_nodes=n_nodes,
        )


# ---- what a warm start may not change ------------------------------------------------------------------------


def check_n_estimators(n_estimators: int | str, earlier: FittedForest) -> None:
    """Refuse fewer trees than there are, and warn if a warm start adds none."""
    if isinstance(n_estimators, str):
        return
    if n_estimators < earlier.n_trees:
        raise ValueError(
            f"n_estimators={n_estimators} must be larger or equal to len(estimators_)={earlier.n_trees} when "
            "warm_start==True."
        )
    if n_estimators == earlier.n_trees:
        warnings.warn(
            "Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning, stacklevel=4
        )


def check_samples_go_on(record: GrowthRecord, draws: Draws | None) -> None:
    """Refuse a warm start after which nobody would know what the earlier trees were grown on."""
    before = record.draws
    if not record.knows_samples:
        return
    if (before is None) != (draws is None):
        raise ValueError(
            "warm_start keeps how rows are drawn, but the earlier trees were grown with "
            f"bootstrap={before is not None}. Set that, or warm_start=False."
        )
    if before is not None and draws is not None and not draws.same_samples(before):
        raise ValueError(
            "warm_start goes on drawing from the rows of the earlier fit, but the rows, their weights or groups, or "
            "the parameters of sampling have changed. Fit as before, or set warm_start=False."
        )


def check_pool(before: Combinations | None, now: Combinations | None) -> None:
    """Refuse combinations of columns that are not those of the earlier fit."""
    sizes = [None if pool is None else (len(pool), pool.parts.shape[1]) for pool in (before, now)]
    if sizes[0] != sizes[1]:
        earlier = "oblique=None" if sizes[0] is None else f"oblique={sizes[0][0]} and n_combined={sizes[0][1]}"
        raise ValueError(
            f"warm_start keeps what trees split on, but the earlier ones were grown with {earlier}. Set oblique and "
            "n_combined as they were then, or warm_start=False."
        )
