"""The fit of a forest: read the rows, draw the samples, grow the trees, record how they were grown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

import spinney._engine as _engine
from spinney._data import Combinations, Schema
from spinney._data.combinations import n_for_all
from spinney._data.display import warn
from spinney._data.memory import free_memory
from spinney._data.reproducible import any_order_sum
from spinney._data.schema import Input
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.costs import ClassCosts
from spinney._estimator.fit_inputs import FitInputs, groups_of_caller
from spinney._estimator.metrics import check_scoring
from spinney._estimator.parameters import count_features
from spinney._estimator.rows import RowFingerprint, integer_weights, relative_weights, weight_of_one_row
from spinney._estimator.support import ColumnRanges
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import check_same_target, read_weights
from spinney._estimator.user_criterion import check_proba, is_user
from spinney._forest.growing import ForestRequest, GrowingForest, TreeGrower, balanced_weights, grow_in_batches
from spinney._forest.growth_record import GrowthRecord, OutOfBagResult, TrainingRows
from spinney._forest.samples import Draws, Metric, OutOfBag, draw_rows, rows_with_weight
from spinney._forest.shrinkage import (
    DEFAULT,
    N_AUXILIARY,
    N_FIRST,
    STRENGTHS,
    LearningRows,
    evaluation_rows,
    grows_again,
    per_draw,
    strength_of,
)
from spinney._model.forest import FittedForest, join_trees
from spinney._model.tree import FittedTree
from spinney._tree.settings import GrowthSettings, GrowthTarget, check_stream
from spinney._tree.task import Classification, Target, Task

_LEAST, _MOST, _MOST_VALUES = 100, 1000, 2**24  # numbers of combinations, and of their values, for oblique="auto"
_MANY_CLASSES = 100  # fewer are stored without a look at the free memory
# settings with which trees grow until their leaves are pure
_UNTIL_PURE = {
    "min_samples_leaf": 1,
    "min_samples_split": 2,
    "min_weight_fraction_leaf": 0.0,
    "min_impurity_decrease": 0.0,
    "min_purity": None,
}
_SINGLE_COLUMNS = ("monotonic_cst", "interaction_cst", "feature_costs", "feature_weights", "always_try")


@dataclass(frozen=True)
class ForestSettings(GrowthSettings):
    """The parameters of a forest."""

    n_estimators: int | str = 100
    replace: bool = True
    max_samples: int | float | None = None
    oob_score: Metric | bool = False
    verbose: int | None = None
    keep_rows: bool = False
    n_combined: int = 3
    voting: str = "soft"

    def check_voting(self) -> None:
        """Refuse votes of trees together with costs, which need probabilities."""
        if self.voting == "hard" and self.cost_matrix is not None:
            raise ValueError(
                "voting='hard' counts the votes of the trees, but cost_matrix needs their probabilities. Set "
                "voting='soft', or cost_matrix=None."
            )

    def check_samples(self, groups: ColumnLike) -> None:
        """Refuse parameters of sampling that contradict each other."""
        if self.bootstrap:
            return
        if self.max_samples is not None:
            raise ValueError("max_samples requires bootstrap=True. Set bootstrap=True, or max_samples=None.")
        if self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True: otherwise no row is left out.")
        for name, is_set in (
            ("n_estimators='auto'", self.n_estimators == "auto"),
            ("sampling", self.sampling is not None),
            ("replace=False", not self.replace),
            ("groups", groups_of_caller(groups) is not None),
        ):
            if is_set:
                raise ValueError(f"{name} requires bootstrap=True: with bootstrap=False every tree sees every row.")


class ForestClassification(Classification):
    """Forests for classes, whose weights may be balanced in each sample."""

    def weights(self, target: Target, y: ColumnLike, weight: Floats | None) -> Floats | None:
        class_weight = self.settings.class_weight
        if class_weight == "balanced_subsample" and self.settings.bootstrap:
            return weight
        if class_weight not in ("balanced", "balanced_subsample"):
            return super().weights(target, y, weight)
        once = np.ones(len(target.array), dtype=np.uint32)
        return balanced_weights(target.array, target.n_classes, weight, once)


@dataclass(frozen=True)
class TreeFinisher:
    """Gives each grown tree its final values, prunes and shrinks it, and turns its leaves into votes."""

    task: Task
    costs: ClassCosts | None
    checks_proba: bool
    votes: bool

    def finish(self, forest: FittedForest, request: ForestRequest) -> FittedForest:
        """Return the finished trees."""
        trees = [self._finished(forest.tree(t)) for t in range(forest.n_trees)]
        if request.shrinkage > 0:
            trees = [tree.shrunk(request.shrinkage) for tree in trees]
        if self.votes:
            trees = [tree.voting() for tree in trees]
        return forest.replaced(join_trees(trees, request.n_categories))

    def _finished(self, tree: FittedTree) -> FittedTree:
        if self.checks_proba:
            check_proba(tree.engine)
        tree = self.task.restated(tree, self.costs)
        alpha = float(self.task.settings.ccp_alpha)
        return tree.replaced(tree.engine.pruned(alpha, self.task.node_risks(tree))) if alpha > 0 else tree


class ForestFit:
    """One fit of a forest.

    Parameters
    ----------
    estimator : BaseForest
    grower : callable
        Grows the trees, in this process or on the workers of a cluster.
    """

    seed: int
    schema: Schema

    def __init__(self, estimator: TableEstimator, grower: TreeGrower) -> None:
        self.estimator, self.grower = estimator, grower
        self.settings: ForestSettings = estimator._settings
        self.task: Task = estimator._task
        is_warm = estimator.warm_start and hasattr(estimator, "forest_")
        self.earlier: FittedForest | None = estimator.forest_ if is_warm else None
        self.record: GrowthRecord = estimator._growth if is_warm else GrowthRecord()

    def run(self, inputs: FitInputs) -> tuple[Schema, dict[str, Any]]:
        """Read the rows and grow the forest; return its schema and the other fitted attributes."""
        estimator, settings = self.estimator, self.settings
        settings.check_samples(inputs.groups)
        settings.check_voting()
        check_scoring(settings.oob_score, is_classifier(estimator))
        settings.check_user_criterion()
        inputs = inputs.spooled(estimator.categorical_features)
        X = Input.of(inputs.X)
        check_stream(X, settings)
        self.schema = estimator._learn_schema(X.table, continues=self.earlier is not None)
        sample_weight = read_weights(inputs.sample_weight, X.n_rows)
        target = self.task.read(inputs.y, X.n_rows)
        if self.earlier is not None:
            check_same_target(target.attributes(), vars(estimator))
            check_n_estimators(settings.n_estimators, self.earlier.n_trees)
        random = check_random_state(estimator.random_state)
        self.seed = int(random.randint(np.iinfo(np.int32).max)) if self.earlier is None else self.record.seed
        encoded = self.schema.encode_inputs(X.table, unseen=estimator.unseen, estimator=type(estimator).__name__)
        rows = self._learning_rows(encoded, target, inputs, sample_weight)
        attributes = target.attributes() | self.task.cost_attributes(rows.costs) | self._grow(rows)
        weight_of = partial(tree_weights, rows, attributes["_growth"].draws)
        attributes |= self.task.grown_attributes(attributes["forest_"], rows.columns, target, weight_of)
        X.verify()
        return self.schema, attributes

    def _grow(self, rows: LearningRows) -> dict[str, Any]:
        """Grow the trees; return the fitted attributes that depend on them."""
        settings = self.settings
        self._check_memory(rows)
        draws = self._draw(rows) if settings.bootstrap else None
        if self.earlier is not None:
            check_same_samples(self.record, draws)
        strength = self._known_strength(rows.costs)
        request = self._request(rows, draws)
        grown = GrowingForest(self._out_of_bag(rows, draws), self.earlier, settings.n_estimators == "auto")
        if strength is None:
            strength = self._chosen_strength(request, grown, rows)
        request = replace(request, shrinkage=strength * rows.unit)
        forest = grow_in_batches(request, grown, self.grower, settings.n_estimators, settings.verbose)
        fingerprints = rows.fingerprints if settings.bootstrap else None
        record = GrowthRecord(
            seed=self.seed,
            shrinkage=strength,
            draws=draws,
            all_rows=None if settings.bootstrap else rows_with_weight(rows.weight, rows.columns.n_rows),
            ranges=ColumnRanges.of(rows.inputs, rows.weight, settings.n_threads),
            row_fingerprint=None if fingerprints is None else RowFingerprint.of(fingerprints, rows.target),
            rows=self._training_rows(forest, rows, draws, request) if settings.keep_rows else None,
            oob=self._out_of_bag_result(grown, forest),
        )
        attributes = {"forest_": forest, "_growth": record, "n_outputs_": request.n_outputs}
        return attributes | record.attributes(self.estimator._oob_name)

    # ---- rows and samples ----------------------------------------------------------------------------

    def _learning_rows(
        self, encoded: _engine.Table, target: Target, inputs: FitInputs, sample_weight: Floats | None
    ) -> LearningRows:
        settings = self.settings
        relative, copies = relative_weights(sample_weight)
        if settings.rate_shrinkage == 0:  # else rates are shrunk by the number of events, whose unit matters
            sample_weight = relative
        weight = self.task.weights(target, inputs.y, sample_weight)
        costs = self.task.costs(target, weight)
        self.schema = self._with_combinations(encoded, sample_weight)
        needs_fingerprints = settings.bootstrap or self._known_strength(costs) is None
        return LearningRows(
            inputs=encoded,
            columns=settings.pooled(self.schema.combined(encoded), sample_weight),
            target=target.array,
            n_classes=target.n_classes,
            classes=target.classes,
            sample_weight=sample_weight,
            weight=weight,
            copies=copies,
            counts_copies=settings.bootstrap and inputs.groups is None,
            costs=costs,
            groups=inputs.groups,
            fingerprints=encoded.fingerprints(settings.n_threads) if needs_fingerprints else None,
        )

    def _with_combinations(self, inputs: _engine.Table, weight: Floats | None) -> Schema:
        """Return the schema with the combinations of columns that the trees of an oblique forest split on."""
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
                    f"{name} is for splits on single columns, but oblique splits combine several. Set {name}=None or "
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

    def _check_memory(self, rows: LearningRows) -> None:
        """Refuse trees grown until leaves are pure whose class probabilities cannot be stored."""
        settings, n_classes = self.settings, sum(rows.n_classes)
        n_trees = N_FIRST if isinstance(settings.n_estimators, str) else settings.n_estimators
        depth = settings.max_depth
        are_pure = all(getattr(settings, name) == value for name, value in _UNTIL_PURE.items())
        if n_classes < _MANY_CLASSES or not are_pure or isinstance(depth, str) or settings.max_samples is not None:
            return
        # each class of a sample has a leaf, unless rows are equal; a sample with replacement has 1 - 1/e of the classes
        n_leaves = max(rows.n_classes) * (0.63 if settings.bootstrap else 1.0)
        n_leaves = min(n_leaves, settings.max_leaf_nodes or n_leaves, 2.0 ** min(60, depth or 60))
        needed = n_trees * (2 * n_leaves - 1) * n_classes * 8
        if needed <= (free := free_memory()):
            return
        keys = rows.inputs.fingerprints(settings.n_threads) if rows.fingerprints is None else rows.fingerprints
        needed = min(needed, n_trees * (2 * len(np.unique(keys)) - 1) * n_classes * 8)
        if needed > free:
            raise MemoryError(
                f"A forest stores the probabilities of {n_classes:,} classes at each node of its {n_trees} trees, at "
                f"least {needed / 1e9:,.0f} GB if leaves are grown until they are pure, but {free / 1e9:,.0f} GB are "
                "free. Use fewer trees (n_estimators), or limit their size (max_leaf_nodes, max_depth). "
                "KNeighborsClassifier stores the training rows only."
            )

    # ---- trees ---------------------------------------------------------------------------------------

    def _request(self, rows: LearningRows, draws: Draws | None) -> ForestRequest:
        """Return the request to the engine, without shrinkage."""
        settings, schema, costs = self.settings, self.schema, rows.costs
        user = self.task.prepare(rows.target, rows.weight, rows.n_classes)
        total = float(rows.columns.n_rows) if rows.weight is None else any_order_sum(rows.weight)
        weight = each_draw = per_draw(rows.weight, rows.drawn_copies)
        if costs is not None:
            weight = costs.split_weights(rows.target[:, 0], weight)
        row_weight = weight_of_one_row(weight)
        if draws is not None and (weight is None or row_weight > 0):  # a sample repeats rows
            row_weight = draws.times_drawn * (row_weight or 1.0)
        n_outputs = rows.target.shape[1]
        options = settings.engine_options(
            schema,
            GrowthTarget(rows.n_classes, n_outputs, costs, user),
            rows.columns.n_rows,
            total if draws is None else total * draws.fraction,
            seed=draws.seed if draws is not None else self.seed,
            row_weight=row_weight,
        )
        votes = settings.voting == "hard"
        changes = costs is not None or settings.rate_shrinkage > 0 or user is not None or settings.ccp_alpha > 0
        checks_proba = user is not None and bool(rows.n_classes)
        is_balanced = settings.class_weight == "balanced_subsample"
        per_tree = None
        if settings.max_features_per_tree is not None:
            n_tried = count_features(settings.max_features_per_tree, schema.n_features)
            per_tree = min(n_tried, schema.n_split_features)
        return ForestRequest(
            columns=rows.columns,
            y=rows.target if user is None else user.y,
            options=options,
            n_categories=schema.n_categories,
            criterion=settings.engine_criterion(costs),
            n_classes=rows.n_classes,
            n_outputs=user.n_values if user is not None and not rows.n_classes else n_outputs,
            decision=None if costs is None else costs.decision,
            weight=weight,
            draws=draws,
            max_features_per_tree=per_tree,
            balanced=rows.target if is_balanced else None,
            balance_weight=each_draw if is_balanced else None,
            finisher=TreeFinisher(self.task, costs, checks_proba, votes) if changes or votes else None,
        )

    def _known_strength(self, costs: ClassCosts | None) -> float | None:
        """Return the strength of the shrinkage, in rows; None: it is chosen by out-of-bag loss."""
        settings, default = self.settings, STRENGTHS[DEFAULT]
        if not isinstance(settings.shrinkage, str):
            return float(settings.shrinkage or 0.0)
        if settings.voting == "hard":  # a tree's vote needs no better probabilities
            return 0.0
        if self.earlier is not None and self.earlier.n_trees >= N_FIRST:
            return self._earlier_strength
        has_few = not isinstance(settings.n_estimators, str) and settings.n_estimators < N_FIRST
        return default if has_few or costs is not None or is_user(settings.criterion) else None

    @property
    def _earlier_strength(self) -> float:
        return STRENGTHS[DEFAULT] if self.record.shrinkage is None else self.record.shrinkage

    def _chosen_strength(self, request: ForestRequest, grown: GrowingForest, rows: LearningRows) -> float:
        """Return the strength of least out-of-bag loss; the trees grown for it are added to `grown` if possible."""
        if grown.forest is not None:  # an earlier fit of few trees, which used the default strength
            strength = self._earlier_strength
            if not grows_again(request, grown.forest, strength * rows.unit, self.grower):
                return strength
            grown.forest = None
        if request.draws is None:
            return self._strength_by_auxiliary_trees(rows)
        first = self.grower(request, 0, N_FIRST)
        strength = strength_of(first, request.draws, rows, rows.unit, self.settings.n_threads)
        grown.add(first.replaced(first.engine.shrunk(strength * rows.unit)))
        return strength

    def _strength_by_auxiliary_trees(self, rows: LearningRows) -> float:
        """Return the strength for trees grown on all rows, chosen by auxiliary trees that are grown on samples."""
        subset, chosen = evaluation_rows(rows)
        columns = subset.columns if chosen is None else self.settings.pooled(subset.columns, subset.weight)
        seed = (self.seed + 1) % np.iinfo(np.int32).max
        draws = draw_rows(keys=subset.keys, weight=subset.weight, copies=subset.copies, seed=seed)
        request = self._request(replace(subset, columns=columns, counts_copies=True), draws)
        trees = request.grow(0, N_AUXILIARY)
        return strength_of(trees, draws, subset, rows.unit, self.settings.n_threads)

    # ---- the record of growth ------------------------------------------------------------------------

    def _out_of_bag(self, rows: LearningRows, draws: Draws | None) -> OutOfBag | None:
        if draws is None or not (self.settings.oob_score or self.settings.n_estimators == "auto"):
            return None
        kind: type[OutOfBag] = self.estimator._out_of_bag_class
        return kind(rows.columns, draws, rows.target, rows.classes, rows.sample_weight, self.settings.n_threads)

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
        """Return the training rows with their leaves in all trees."""
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


def tree_weights(rows: LearningRows, draws: Draws | None, tree: int) -> Floats:
    """Return the weight of each row in the growth of a tree."""
    once = np.ones(rows.columns.n_rows) if rows.in_leaves is None else rows.in_leaves
    return once if draws is None else once * draws.counts(tree)


# ---- checks of warm starts -----------------------------------------------------------------------------------


def check_n_estimators(n_estimators: int | str, n_earlier: int, noun: str = "trees") -> None:
    """Refuse a warm start with fewer trees, and warn if it adds none."""
    if isinstance(n_estimators, str):
        return
    if n_estimators < n_earlier:
        raise ValueError(
            f"n_estimators={n_estimators} must be larger or equal to len(estimators_)={n_earlier} when "
            "warm_start==True."
        )
    if n_estimators == n_earlier:
        warn(f"Warm-start fitting without increasing n_estimators does not fit new {noun}.")


def check_same_samples(record: GrowthRecord, draws: Draws | None) -> None:
    """Refuse a warm start on other samples, after which the record would not describe the earlier trees."""
    before = record.draws
    if not record.knows_samples:
        return
    if (before is None) != (draws is None):
        raise ValueError(
            "warm_start cannot change how rows are drawn, but the earlier trees were grown with "
            f"bootstrap={before is not None}. Set that, or warm_start=False."
        )
    if before is not None and draws is not None and not draws.same_samples(before):
        raise ValueError(
            "warm_start draws from the rows of the earlier fit, but the rows, their weights or groups, or the "
            "parameters of sampling have changed. Fit as before, or set warm_start=False."
        )


def check_pool(before: Combinations | None, now: Combinations | None) -> None:
    """Refuse a warm start with other combinations of columns."""
    sizes = [None if pool is None else (len(pool), pool.parts.shape[1]) for pool in (before, now)]
    if sizes[0] != sizes[1]:
        earlier = "oblique=None" if sizes[0] is None else f"oblique={sizes[0][0]} and n_combined={sizes[0][1]}"
        raise ValueError(
            f"warm_start cannot change oblique or n_combined, but the earlier trees were grown with {earlier}. Set "
            "these, or warm_start=False."
        )
