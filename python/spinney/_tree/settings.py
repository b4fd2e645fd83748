"""The parameters of trees and forests as one typed value, and the engine options that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Self

import numpy as np

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.display import warn
from spinney._data.schema import Input
from spinney._data.types import ByClass, ByColumn, ColumnGroups, ColumnNames, Floats
from spinney._estimator.costs import ClassCosts
from spinney._estimator.estimator import Estimator
from spinney._estimator.held_out import CrossValidation, split_gains
from spinney._estimator.parameters import (
    count_features,
    count_rows,
    read_drawn_columns,
    read_feature_costs,
    read_groups,
    read_monotone,
)
from spinney._estimator.rows import row_counts
from spinney._estimator.user_criterion import SAVED_NAME, UserTarget, is_user, name_of
from spinney._model.tree import FittedTree
from spinney.criteria import Criterion

NO_LIMIT = 2**32 - 1
RATE_CRITERIA = ("poisson", "exponential")  # events per unit of time
Scorer = Callable[..., float]  # (estimator, X, y) -> score, as scikit-learn's


# parameters that only built-in criteria understand
_BUILT_IN_ONLY = ("monotonic_cst", "max_bins", "min_purity", "cost_matrix", "priors", "rate_shrinkage", "dialect")


@dataclass(frozen=True)
class GrowthTarget:
    """Properties of the target that the engine's options depend on.

    Attributes
    ----------
    n_classes : list of int
        By output; empty in a regression.
    n_outputs : int
    costs : ClassCosts or None
    user : UserTarget or None
        For a user-defined criterion.
    """

    n_classes: list[int]
    n_outputs: int
    costs: ClassCosts | None = None
    user: UserTarget | None = None


@dataclass(frozen=True)
class GrowthSettings:
    """Parameters of growth and pruning; the defaults apply to estimators without the parameter.

    Attributes
    ----------
    max_depth, min_samples_leaf : int or float
        "cv" until `search_size` has replaced it.
    random_ties : bool
        Whether ties between columns are broken at random even if nothing else is random: in the trees of a forest.
    """

    criterion: str | Criterion
    splitter: str = "best"
    max_depth: int | None = None
    min_samples_split: int | float = 2
    min_samples_leaf: int | float = 1
    min_weight_fraction_leaf: float = 0.0
    max_features: int | float | str | None = None
    max_features_per_tree: int | float | str | None = None
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    min_purity: float | None = None
    monotonic_cst: ByColumn = None
    interaction_cst: ColumnGroups = None
    max_bins: int | None = None
    min_samples_category: int = 1
    feature_costs: ByColumn = None
    feature_weights: ByColumn = None
    always_try: ColumnNames = None
    missing: str = "learned"
    max_surrogates: int = 5
    surrogate_style: str = "all"
    missing_fallback: str = "majority"
    max_competitors: int = 0
    class_weight: ByClass = None
    cost_matrix: ByClass = None
    priors: ByClass = None
    cost_splits: str | None = "altered_priors"
    rate_shrinkage: float = 0.0
    sampling: str | None = None
    bootstrap: bool = False
    oblique: int | str | None = None
    prune: str | None = None
    cv: CrossValidation = 10
    rule: str | float | None = "1se"
    scoring: str | Scorer | None = None
    risk: str = "auto"
    ccp_alpha: float = 0.0
    cp: float | None = None
    validation_fraction: float | None = None
    shrinkage: float | str | None = None
    dialect: str | None = None
    n_jobs: int | None = None
    random_ties: bool = False

    @classmethod
    def of(cls, estimator: Estimator, **fixed: Any) -> Self:
        """Collect the parameters of an estimator; `fixed` are settings that its class determines."""
        values = vars(estimator)
        return cls(**(fixed | {field.name: values[field.name] for field in fields(cls) if field.name in values}))

    @property
    def criterion_name(self) -> str:
        """Name of the criterion; the same for all user-defined criteria."""
        return name_of(self.criterion)

    @property
    def searches_size(self) -> bool:
        """Whether cross-validation is to choose `max_depth` or `min_samples_leaf`."""
        values: tuple[object, ...] = (self.max_depth, self.min_samples_leaf)
        return "cv" in values

    @property
    def reads_sequences(self) -> bool:
        """Whether the criterion reads the rows of a node one after another, sorted by a column."""
        return is_user(self.criterion) or self.criterion in ("absolute_error", "log_rank")

    @property
    def n_threads(self) -> int:
        """Number of threads for the engine; 0: all."""
        return self.n_jobs or 0

    @property
    def guards_categories(self) -> bool:
        """Whether rare categories are pooled, and splits on many categories corrected for chance gains."""
        return self.min_samples_category > 1 and self.dialect is None

    @property
    def sorts_all_rows(self) -> bool:
        """Whether growth sorts all rows at every node, because they are not binned."""
        return self.max_bins is None and self.splitter != "random"

    @property
    def has_costs(self) -> bool:
        """Whether there is a cost matrix, or priors of the classes."""
        return self.cost_matrix is not None or self.priors is not None

    @property
    def prunes_by_impurity(self) -> bool:
        """Whether the risk of a node is its impurity, not its error."""
        by_impurity = self.risk == "impurity" or (self.risk == "auto" and not self.has_costs)
        return by_impurity and self.dialect is None

    def check_user_criterion(self) -> None:
        """Refuse an unusable user-defined criterion, and parameters that need a built-in one."""
        criterion = self.criterion
        if not self.reads_sequences or criterion == "absolute_error":
            return
        if criterion == SAVED_NAME:
            raise ValueError(
                "This model was saved without its criterion, which is code. Set it again, model.set_params(criterion=…"
                "), before you fit."
            )
        if isinstance(criterion, type):
            raise TypeError(
                f"criterion must be an object, not the class {criterion.__name__}. Pass an object: "
                f"{criterion.__name__}()."
            )
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            if field.name in _BUILT_IN_ONLY and (value is not None if default is None else value != default):
                which = "a user-defined criterion" if is_user(criterion) else f"criterion={criterion!r}"
                raise ValueError(f"{field.name} cannot be combined with {which}. Leave it at {default}.")

    # ---- columns -------------------------------------------------------------------------------------

    def columns_tried(self, schema: Schema) -> int:
        """Return how many columns (in oblique forests: combinations of columns) are tried at each node."""
        n_features, n_candidates = schema.n_features, schema.n_split_features
        is_word = isinstance(self.max_features, str)
        n_tried = count_features(self.max_features, schema.n_effective_features if is_word else n_features)
        if isinstance(self.max_features, Integral) and n_tried > n_candidates:
            pool = f"the table's {n_features} columns" if schema.pool is None else f"the {n_candidates} in the pool"
            raise ValueError(f"max_features={self.max_features} is more than {pool}. Use None for all.")
        return n_candidates if self.max_features is None else min(n_tried, n_candidates)

    def is_random(self, schema: Schema) -> bool:
        """Return whether growth is random; ties between columns are then broken at random, too."""
        draws = self.splitter == "random" or self.columns_tried(schema) < schema.n_split_features
        return draws or (self.random_ties and self.dialect is None)

    def pooled(self, columns: _engine.Table, weight: Floats | None, counts_weights: bool = True) -> _engine.Table:
        """Return the table for growth, with rare categories pooled.

        `counts_weights`: whether whole weights count as repeated rows.
        """
        if not self.guards_categories or not any(map(columns.n_categories, range(columns.n_columns))):
            return columns
        times = row_counts(weight if weight is None or counts_weights else (weight > 0).astype(np.float64))
        return columns.pooled(float(self.min_samples_category), times)

    def _warn_if_nothing_is_drawn(self, weights: list[float], always: list[int], schema: Schema) -> None:
        drawn = [weight for column, weight in enumerate(weights) if weight > 0 and column not in always]
        per_tree = count_features(self.max_features_per_tree, schema.n_features)
        if len(set(drawn)) > 1 and min(self.columns_tried(schema), per_tree) >= len(drawn):
            warn(
                f"feature_weights set how likely columns are drawn, but max_features={self.max_features} tries all "
                "columns at every node, so that only weights of 0 have an effect. Set a smaller max_features."
            )

    def _monotone(self, schema: Schema, target: GrowthTarget) -> list[int]:
        directions = read_monotone(self.monotonic_cst, schema)
        if not directions:
            return []
        if target.n_outputs > 1:
            raise ValueError(
                "Monotonicity constraints are not supported with multiple outputs. Fit one tree per output."
            )
        if target.n_classes and target.n_classes[0] > 2:
            raise ValueError(
                "Monotonicity constraints are not supported with multiclass classification: the class probabilities "
                "cannot all rise. Fit one tree per class against the rest."
            )
        return [] if target.n_classes == [1] else directions

    # ---- options of the engine -----------------------------------------------------------------------

    def engine_criterion(self, costs: ClassCosts | None = None, has_exposure: bool = False) -> str:
        """Return the engine's name of the criterion."""
        if costs is not None and costs.pairs is not None:
            return "generalised_gini"
        if self.criterion in RATE_CRITERIA and (has_exposure or self.rate_shrinkage > 0):
            return "rate"
        return {"log_loss": "entropy", "log_rank": SAVED_NAME}.get(self.criterion_name, self.criterion_name)

    def surrogates(self, weight: Floats | None) -> _engine.SurrogateOptions | None:
        """Return the options of surrogate and competitor splits; None if only the best split is stored."""
        if self.missing == "learned" and self.max_competitors == 0:
            return None
        return self.surrogate_options(weight, None)

    def surrogate_options(self, weight: Floats | None, rpart: _engine.RpartOptions | None) -> _engine.SurrogateOptions:
        """Return the options of surrogate and competitor splits; `rpart`: by rpart's rules."""
        return _engine.SurrogateOptions(
            present_only=self.missing == "surrogate" or rpart is not None,
            max_competitors=min(self.max_competitors, NO_LIMIT),
            max_surrogates=min(self.max_surrogates, NO_LIMIT),
            absent_disagrees=self.surrogate_style == "all",
            missing_fallback=self.missing_fallback,
            case_weight=weight,
            rpart=rpart,
        )

    def engine_options(
        self,
        schema: Schema,
        target: GrowthTarget,
        n_rows: int,
        total_weight: float,
        *,
        seed: int,
        surrogates: _engine.SurrogateOptions | None = None,
        row_weight: float = 0.0,
    ) -> _engine.GrowthOptions:
        """Return the engine's options of growth."""
        max_features = self.columns_tried(schema)
        weights, always = read_drawn_columns(self.feature_weights, self.always_try, schema)
        if self.feature_weights is not None:
            self._warn_if_nothing_is_drawn(weights, always, schema)
        elif max_features >= schema.n_split_features:
            weights = []  # weights of a pool of combinations, which matter only if columns are drawn
        min_leaf = count_rows(self.min_samples_leaf, n_rows)
        return _engine.GrowthOptions(
            max_depth=min(self.max_depth or NO_LIMIT, NO_LIMIT),
            min_samples_split=min(max(2, 2 * min_leaf, count_rows(self.min_samples_split, n_rows)), NO_LIMIT),
            min_samples_leaf=min(min_leaf, NO_LIMIT),
            min_weight_leaf=float(self.min_weight_fraction_leaf) * total_weight,
            min_impurity_decrease=float(self.min_impurity_decrease),
            min_purity=float(self.min_purity or 2.0),
            max_features=max_features,
            feature_weights=weights,
            always_try=always,
            max_leaf_nodes=min(self.max_leaf_nodes or 0, NO_LIMIT),
            random_cuts=self.splitter == "random",
            random_ties=self.is_random(schema),
            charge_categories=self.guards_categories,
            row_weight=row_weight,
            seed=seed,
            monotonic_cst=self._monotone(schema, target),
            interaction_cst=read_groups(self.interaction_cst, schema),
            feature_costs=read_feature_costs(self.feature_costs, schema, keep_equal=self.dialect is not None),
            cost=None if target.costs is None else target.costs.pairs,
            max_bins=self.max_bins or 0,
            n_jobs=self.n_threads,
            surrogates=surrogates,
            user=None if target.user is None else target.user.criterion,
        )

    def split_gains(self, schema: Schema, costs: ClassCosts | None, tree: FittedTree) -> Floats:
        """Return the gain of each split by which best-first growth ordered the nodes."""
        gains = split_gains(
            tree if costs is None else costs.as_searched(tree, self.criterion_name), self.criterion_name
        )
        prices = read_feature_costs(self.feature_costs, schema)
        return gains / np.where(tree.is_leaf, 1.0, np.array(prices)[tree.feature]) if prices else gains


def check_stream(X: Input, settings: GrowthSettings) -> None:
    """Refuse parameters that would read all rows of a stream into memory at every node."""
    if not X.is_stream:
        return
    if settings.criterion == "log_rank":
        raise ValueError(
            "Survival trees sort all rows at every node, and those of a stream are in files. Read the rows into "
            "memory, or use GradientBoostingSurvival."
        )
    if settings.sorts_all_rows:
        raise ValueError(
            "max_bins=None sorts all rows at every node, and those of a stream are in files. Set max_bins=255 to split "
            "between 255 bins of equally many rows, or use extra-trees, which draw thresholds at random."
        )
    if settings.reads_sequences:
        name = settings.criterion if isinstance(settings.criterion, str) else type(settings.criterion).__name__
        raise ValueError(
            f"criterion={name!r} sorts all rows at every node, and those of a stream are in files. Use "
            "'squared_error', 'poisson' or a criterion for classes, or boosting with loss='absolute_error'."
        )
    for option, neutral in (("dialect", None), ("missing", "learned"), ("max_competitors", 0), ("oblique", None)):
        value = getattr(settings, option)
        if value != neutral:
            raise ValueError(
                f"{option}={value!r} needs all rows of a node in memory, and those of a stream are in files. Set "
                f"{option}={neutral!r}, or read the rows into memory first."
            )
    if settings.prune is not None and settings.scoring is not None:
        raise ValueError("scoring needs the rows in memory, and those of a stream are in files. Prune without scoring.")
