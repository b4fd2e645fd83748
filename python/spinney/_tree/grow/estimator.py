"""What estimators that grow trees share, be it one or many: parameters, and what the engine is asked for."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from spinney import _engine
from spinney._data import Schema
from spinney._data.display.warn import warn
from spinney._estimator.costs import ClassCosts
from spinney._estimator.held_out import Loss, split_gains
from spinney._estimator.parameters import (
    count_features,
    count_rows,
    read_drawn_columns,
    read_feature_costs,
    read_groups,
    read_monotone,
)
from spinney._estimator.row_copies import times_there
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.user_criterion import UserTarget, name_of
from spinney._model.tree import FittedTree
from spinney.inspect.constraints import verify
from spinney.inspect.explain import methods

NO_LIMIT = 2**32 - 1
RATE_CRITERIA = ("poisson", "exponential")  # events per unit of time


class GrowingEstimator(TableEstimator):
    """Parameters of growth and what they become."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "splitter": [StrOptions({"best", "random"})],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="neither"),
        ],
        "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "random_state": ["random_state"],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
        "max_bins": [Interval(Integral, 2, 65535, closed="both"), None],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
        "min_samples_category": [Interval(Integral, 1, None, closed="left")],
        "feature_costs": ["array-like", dict, None],
        "feature_weights": ["array-like", dict, None],
        "always_try": ["array-like", str, Integral, None],
        "missing": [StrOptions({"learned", "surrogate"})],
        "max_surrogates": [Interval(Integral, 0, None, closed="left")],
        "surrogate_style": [StrOptions({"all", "present"})],
        "missing_fallback": [StrOptions({"majority", "stop", "ignore"})],
        "max_competitors": [Interval(Integral, 0, None, closed="left")],
        "prune": [StrOptions({"cv", "validation", "pessimistic"}), None],
        "cv": ["cv_object", "array-like"],
        "rule": [StrOptions({"min", "1se"}), Interval(Real, 0.0, None, closed="left"), None],
        "scoring": [str, callable, None],
        "risk": [StrOptions({"auto", "impurity", "error"})],
        "cp": [Real, None],
        "shrinkage": [Interval(Real, 0.0, None, closed="left"), StrOptions({"cv"}), None],
        "dialect": [StrOptions({"rpart", "rpart_quirks"}), None],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    _neutral: ClassVar[dict[str, Any]] = {  # what an estimator without these parameters does
        "splitter": "best",
        "min_samples_category": 1,
        "feature_costs": None,
        "feature_weights": None,
        "always_try": None,
        "max_features_per_tree": None,
        "sampling": None,
        "missing": "learned",
        "max_surrogates": 5,
        "surrogate_style": "all",
        "missing_fallback": "majority",
        "max_competitors": 0,
        "min_purity": None,
        "class_weight": None,
        "cost_matrix": None,
        "priors": None,
        "cost_splits": "altered_priors",
        "rate_shrinkage": 0.0,
        "prune": None,
        "cv": 10,
        "rule": "1se",
        "scoring": None,
        "risk": "auto",
        "cp": None,
        "shrinkage": None,
        "dialect": None,
    }
    shap_values = methods.shap_values
    verify_constraints = verify.verify_constraints
    _random_ties: bool = False  # even if nothing else is drawn: a tree that is one of many

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> Any:
        """Check y and return what `_engine_target` and `_learned` need of it."""

    @abstractmethod
    def _engine_target(self, target: Any) -> tuple[NDArray[Any], list[int]]:
        """Array and numbers of classes as the engine takes them."""

    @abstractmethod
    def _target_weights(self, target: Any, y: Any, weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Row weights, class weights included."""

    @abstractmethod
    def _learned(self, target: Any) -> dict[str, Any]:
        """Fitted attributes that come from the target."""

    @abstractmethod
    def _held_out_target(self, target: Any, y: Any, n_rows: int) -> NDArray[Any]:
        """Check y of held-out rows and return it as the engine's array of the target is."""

    @abstractmethod
    def _losses(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        """Loss of each row of such an array if it stopped at a node."""

    def _read_costs(self, target: Any, weight: NDArray[np.float64] | None) -> ClassCosts | None:
        """Costs and priors, if there are any."""
        return None

    def _learned_costs(self, costs: ClassCosts | None) -> dict[str, Any]:
        """Fitted attributes that come from the costs."""
        return {}

    def _per_exposure(
        self, y: Any, weight: NDArray[np.float64] | None, exposure: Any, has_held_out: bool, n_rows: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rates and their weights from counts of events and exposures."""
        raise ValueError("exposure belongs to counts of events. Use DecisionTreeRegressor(criterion='poisson').")

    def _restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        """Return a grown tree with the node values that users see, where growth worked with others."""
        return tree

    def _split_gains(self, schema: Schema, costs: ClassCosts | None, tree: FittedTree) -> NDArray[np.float64]:
        """Gain of each split as best-first growth saw it."""
        gains = split_gains(tree if costs is None else costs.as_searched(tree, self.criterion), self.criterion)
        prices = read_feature_costs(self._setting("feature_costs"), schema)
        return gains / np.where(tree.is_leaf, 1.0, np.array(prices)[tree.feature]) if prices else gains

    # ---- what the engine is asked for ----------------------------------------------------------------

    def _growth_options(
        self,
        schema: Schema,
        n_rows: int,
        total_weight: float,
        target: tuple[NDArray[Any], list[int]],
        costs: ClassCosts | None,
        user: UserTarget | None,
        seed: int,
        weighing: _engine.WeighingOptions | None = None,
        row_weight: float = 0.0,
    ) -> _engine.GrowthOptions:
        """Options of growth as the engine takes them, for a target as `_engine_target` gives it."""
        array, n_classes = target
        max_features = self._columns_tried(schema)
        weights, always = read_drawn_columns(self._setting("feature_weights"), self._setting("always_try"), schema)
        if self._setting("feature_weights") is not None:
            self._warn_if_nothing_is_drawn(weights, always, schema)
        elif max_features >= schema.n_split_features:
            weights = []  # those beside a pool: nothing is drawn
        min_leaf = count_rows(self.min_samples_leaf, n_rows)
        prices = read_feature_costs(
            self._setting("feature_costs"), schema, keep_equal=self._setting("dialect") is not None
        )
        return _engine.GrowthOptions(
            max_depth=min(self.max_depth or NO_LIMIT, NO_LIMIT),
            min_samples_split=min(max(2, 2 * min_leaf, count_rows(self.min_samples_split, n_rows)), NO_LIMIT),
            min_samples_leaf=min(min_leaf, NO_LIMIT),
            min_weight_leaf=float(self.min_weight_fraction_leaf) * total_weight,
            min_impurity_decrease=float(self.min_impurity_decrease),
            min_purity=float(self._setting("min_purity") or 2.0),
            max_features=max_features,
            feature_weights=weights,
            always_try=always,
            max_leaf_nodes=min(self.max_leaf_nodes or 0, NO_LIMIT),
            random_cuts=self._setting("splitter") == "random",
            random_ties=self._is_random(schema),
            charge_categories=self._guards_categories,
            row_weight=row_weight,
            seed=seed,
            monotonic_cst=self._monotone(schema, n_classes, array.shape[1]),
            interaction_cst=read_groups(self.interaction_cst, schema),
            feature_costs=prices,
            cost=None if costs is None else costs.pairs,
            max_bins=self.max_bins or 0,
            n_jobs=self._n_threads,
            weighing=weighing,
            user=None if user is None else user.criterion,
        )

    @property
    def _guards_categories(self) -> bool:
        """Whether rare categories are one, and many are charged for what chance gives them."""
        return self._setting("min_samples_category") > 1 and self._setting("dialect") is None

    def _pooled(self, columns: _engine.Table, weight: NDArray[np.float64] | None) -> _engine.Table:
        """Return the table as trees are grown on it: rare categories are one."""
        if not self._guards_categories or not any(map(columns.n_categories, range(columns.n_columns))):
            return columns
        times = times_there(weight if weight is None or self._counts_weights else (weight > 0).astype(np.float64))
        return columns.pooled(float(self._setting("min_samples_category")), times)

    @property
    def _counts_weights(self) -> bool:
        """Whether weights may say how often rows are there; those of a member say how often it has drawn them."""
        return True

    def _warn_if_nothing_is_drawn(self, weights: list[float], always: list[int], schema: Schema) -> None:
        drawn = [weight for column, weight in enumerate(weights) if weight > 0 and column not in always]
        per_tree = count_features(self._setting("max_features_per_tree"), schema.n_features)
        if len(set(drawn)) > 1 and min(self._columns_tried(schema), per_tree) >= len(drawn):
            warn(
                f"feature_weights say how likely columns are drawn, but max_features={self.max_features} tries all "
                "columns at every node, so that only weights of 0 have an effect. Set max_features to fewer."
            )

    def _is_random(self, schema: Schema) -> bool:
        """Whether a tree is grown by chance: then it is chance, too, that decides between equally good columns."""
        draws = self._setting("splitter") == "random" or self._columns_tried(schema) < schema.n_split_features
        return draws or (self._random_ties and self._setting("dialect") is None)

    def _columns_tried(self, schema: Schema) -> int:
        """Columns tried at each node; with combinations in their place, as many of these."""
        n_features, n_there = schema.n_features, schema.n_split_features
        is_word = isinstance(self.max_features, str)
        found = count_features(self.max_features, schema.n_features_apart if is_word else n_features)
        if isinstance(self.max_features, Integral) and found > n_there:
            there = f"the table's {n_features} columns" if schema.pool is None else f"the {n_there} in the pool"
            raise ValueError(f"max_features={self.max_features} is more than {there}. Use None for all.")
        return n_there if self.max_features is None else min(found, n_there)

    def _engine_criterion(self, costs: ClassCosts | None, has_exposure: bool) -> str:
        if costs is not None and costs.pairs is not None:
            return "generalised_gini"
        if self.criterion in RATE_CRITERIA and (has_exposure or self._setting("rate_shrinkage") > 0):
            return "rate"
        name = name_of(self.criterion)
        return "entropy" if name == "log_loss" else name

    def _monotone(self, schema: Schema, n_classes: list[int], n_outputs: int) -> list[int]:
        directions = read_monotone(self.monotonic_cst, schema)
        if not directions:
            return []
        if n_outputs > 1:
            raise ValueError(
                "Monotonicity constraints are not supported with multiple outputs. Fit one tree per output."
            )
        if n_classes and n_classes[0] > 2:
            raise ValueError(
                "Monotonicity constraints are not supported with multiclass classification: the classes' shares "
                "cannot all rise. Fit one tree per class against the rest."
            )
        return [] if n_classes == [1] else directions

    def _node_risks(self, tree: FittedTree) -> NDArray[np.float64]:
        """Risk of each node if it were a leaf, as a share of the root's weight."""
        share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
        by_row = tree.impurity if self._prunes_by_impurity else self._node_errors(tree)
        return np.asarray(share * by_row)

    @property
    def _prunes_by_impurity(self) -> bool:
        return self._setting("dialect") is None and self._setting("risk") in ("auto", "impurity")

    def _node_errors(self, tree: FittedTree) -> NDArray[np.float64]:
        """Error per unit of weight if each node were a leaf."""
        return tree.impurity

    def _keep_schema(self, schema: Schema) -> None:
        """Set the fitted attributes that come from the table."""
        super()._keep_schema(schema)
        self.max_features_ = self._columns_tried(schema)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
