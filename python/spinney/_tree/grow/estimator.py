"""The base class of estimators that grow trees, be it one or many."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions

from spinney._data import Schema
from spinney._data.types import Floats
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.tree import FittedTree
from spinney._tree.grow.settings import GrowthSettings
from spinney._tree.grow.task import Task
from spinney.inspect.constraints import verify
from spinney.inspect.explain import methods

GROWTH_PARAMETERS: dict[str, list[Any]] = {
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
CLASS_PARAMETERS: dict[str, list[Any]] = {
    "criterion": [
        StrOptions({"gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio", "user"}),
        HasMethods(["evaluate", "split"]),
    ],
    "class_weight": [dict, list, StrOptions({"balanced"}), None],
    "min_purity": [Interval(Real, 0.0, 1.0, closed="right"), None],
    "cost_matrix": ["array-like", dict, None],
    "priors": ["array-like", dict, StrOptions({"uniform"}), None],
    "cost_splits": [StrOptions({"altered_priors", "generalised_gini"}), None],
}
NUMBER_PARAMETERS: dict[str, list[Any]] = {
    "criterion": [
        StrOptions({"squared_error", "friedman_mse", "absolute_error", "poisson", "exponential", "user"}),
        HasMethods(["evaluate", "split"]),
    ],
    "rate_shrinkage": [Interval(Real, 0.0, None, closed="left")],
}


class GrowingEstimator(TableEstimator):
    """Reads its parameters as settings of growth, and holds the task: classification or regression."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = GROWTH_PARAMETERS
    _task_class: ClassVar[type[Task]]
    _splitter: ClassVar[str] = "best"  # of estimators that have no parameter for it
    _random_ties: bool = False  # even if nothing else is drawn: a tree that is one of many
    shap_values = methods.shap_values
    verify_constraints = verify.verify_constraints

    @property
    def _settings(self) -> GrowthSettings:
        """The parameters as typed settings."""
        return GrowthSettings.of(self, splitter=self._splitter, random_ties=self._random_ties)

    @property
    def _task(self) -> Task:
        """What is predicted, and by which settings."""
        return self._task_class(self._settings)

    @property
    def _sorts_all_rows(self) -> bool:
        return self._settings.sorts_all_rows

    def _node_risks(self, tree: FittedTree) -> Floats:
        """Risk of each node if it were a leaf, as a share of the root's weight."""
        return self._task.node_risks(tree)

    def _keep_schema(self, schema: Schema) -> None:
        """Set the fitted attributes that come from the table."""
        super()._keep_schema(schema)
        self.max_features_ = self._settings.columns_tried(schema)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = True
        return tags
