"""The base class of trees and forests: their shared parameters, and predictions."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, RealNotInt, StrOptions

from spinney._cluster.collections import lazy_for_collections
from spinney._data import Schema
from spinney._data.feature import Unseen
from spinney._data.reproducible import log
from spinney._data.types import ByColumn, ColumnGroups, ColumnNames, Floats, RandomState, TableLike
from spinney._estimator.parameters import N_JOBS, UNSEEN, estimator, parameter
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.user_criterion import SAVED_NAME
from spinney._model.tree import FittedTree
from spinney._tree.settings import GrowthSettings
from spinney._tree.task import Task
from spinney.criteria import Criterion
from spinney.inspect import constraints
from spinney.inspect.explain import shap as explanations

AT_LEAST_0 = Interval(Real, 0.0, None, closed="left")
SOME_FEATURES = (
    Interval(Integral, 1, None, closed="left"),
    Interval(Real, 0.0, 1.0, closed="right"),
    StrOptions({"sqrt", "log2"}),
    None,
)
_USER_DEFINED = (HasMethods(["evaluate", "split"]), Hidden(StrOptions({SAVED_NAME})))
_ClassName = Literal["gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio"]
_RegressionName = Literal["squared_error", "friedman_mse", "absolute_error", "poisson"]
ClassCriterion = _ClassName | Criterion
RegressionCriterion = _RegressionName | Criterion
CLASS_CRITERIA = (StrOptions(set(get_args(_ClassName))), *_USER_DEFINED)
_REGRESSION_CRITERIA = set(get_args(_RegressionName))
NUMBER_CRITERIA, TREE_NUMBER_CRITERIA = (
    (StrOptions(_REGRESSION_CRITERIA), *_USER_DEFINED),
    (StrOptions(_REGRESSION_CRITERIA | {"exponential"}), *_USER_DEFINED),
)
PURITY = (Interval(Real, 0.0, 1.0, closed="right"), None)
COST_SPLITS = (StrOptions({"altered_priors", "generalised_gini"}), None)


def at_least(least: int) -> Interval:
    """Return the constraint of a parameter that is an integer of at least `least`."""
    return Interval(Integral, least, None, closed="left")


@estimator
class GrowingEstimator(TableEstimator):
    """A tree or a forest."""

    max_depth: int | None = parameter(at_least(1), None, default=None)
    min_samples_split: int | float = parameter(at_least(2), Interval(RealNotInt, 0, 1, closed="right"), default=2)
    min_samples_leaf: int | float = parameter(at_least(1), Interval(Real, 0, 1, closed="neither"), default=1)
    min_weight_fraction_leaf: float = parameter(Interval(Real, 0.0, 0.5, closed="both"), default=0.0)
    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(*SOME_FEATURES, default=None)
    max_leaf_nodes: int | None = parameter(at_least(2), None, default=None)
    min_impurity_decrease: float = parameter(AT_LEAST_0, default=0.0)
    ccp_alpha: float = parameter(AT_LEAST_0, default=0.0)
    monotonic_cst: ByColumn = parameter("array-like", dict, None, default=None)
    interaction_cst: ColumnGroups = parameter(
        list, tuple, StrOptions({"pairwise", "no_interactions"}), None, default=None
    )
    max_bins: int | None = parameter(Interval(Integral, 2, 65535, closed="both"), None, default=None)
    categorical_features: Iterable[Any] | None = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")
    min_samples_category: int = parameter(at_least(1), default=5)
    feature_costs: ByColumn = parameter("array-like", dict, None, default=None)
    feature_weights: ByColumn = parameter("array-like", dict, None, default=None)
    always_try: ColumnNames = parameter("array-like", str, Integral, None, default=None)
    random_state: RandomState = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)

    _task_class: ClassVar[type[Task]]
    _splitter: ClassVar[str] = "best"  # for estimators without this parameter
    _random_ties = False  # whether ties are broken at random even if nothing else is random: in the trees of a forest
    shap_values = explanations.shap_values
    verify_constraints = constraints.verify_constraints

    @property
    def _settings(self) -> GrowthSettings:
        """The parameters as typed settings."""
        return GrowthSettings.of(self, splitter=self._splitter, random_ties=self._random_ties)

    @property
    def _task(self) -> Task:
        """The task: classification or regression, with the settings."""
        return self._task_class(self._settings)

    @property
    def _sorts_all_rows(self) -> bool:
        return self._settings.sorts_all_rows

    def _node_risks(self, tree: FittedTree) -> Floats:
        """Return the risk of each node if it were a leaf, weighted by its fraction of the root's weight."""
        return self._task.node_risks(tree)

    def _set_schema(self, schema: Schema) -> None:
        """Set the fitted attributes that come from the table."""
        super()._set_schema(schema)
        self.max_features_ = self._settings.columns_tried(schema)

    @lazy_for_collections()
    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the target of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Classifiers: the most probable class, or the class of the lowest expected cost if there is a cost matrix; of
            several such classes, the first. Regressors: the value of the leaf or, in a forest, the mean over the trees.
        """
        if self._is_class_target:
            codes = self._by_blocks(X, lambda columns: self._fitted.codes(columns, self._n_threads))
            return self._fitted.labels(codes, [self.classes_] if self.n_outputs_ == 1 else self.classes_)
        flat = self._by_blocks(X, lambda columns: self._fitted.predictions(columns, self._n_threads))
        return self._fitted.by_output(flat)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = True
        return tags


# ---- methods of classifiers --------------------------------------------------------------------------------------


def _has_one_output(model: TableEstimator) -> bool:
    return bool(model.n_outputs_ == 1)


@lazy_for_collections(_has_one_output)
def predict_proba(self: TableEstimator, X: TableLike) -> Floats:
    """Predict class probabilities: those of the leaf of each row, or, in a forest, their mean over the trees.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), or a list of these
        One array per output; columns in the order of `classes_`.
    """
    flat = self._by_blocks(X, lambda columns: self._fitted.predictions(columns, self._n_threads))
    return self._fitted.by_output(flat)


@lazy_for_collections(_has_one_output)
def predict_log_proba(self: TableEstimator, X: TableLike) -> Floats:
    """Predict the logarithms of the class probabilities; -inf for 0.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), or a list of these
        In the form of `predict_proba`.
    """
    proba = predict_proba(self, X)
    with np.errstate(divide="ignore"):
        return [log(of_output) for of_output in proba] if isinstance(proba, list) else log(proba)
