"""The base class of estimators that grow trees, be it one or many."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods

from spinney._data import Schema
from spinney._data.types import Floats
from spinney._estimator.parameters import UNSEEN, allowed_values
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.tree import FittedTree
from spinney._tree.grow.settings import GrowthSettings
from spinney._tree.grow.task import Task
from spinney.inspect.constraints import verify
from spinney.inspect.explain import methods

GROWTH_PARAMETERS: dict[str, list[Any]] = allowed_values(GrowthSettings) | {
    "random_state": ["random_state"],
    "categorical_features": ["array-like", None],
    "unseen": [UNSEEN],
}
OWN_CRITERION = HasMethods(["evaluate", "split"])
CLASS_CRITERIA = {"gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio", "user"}
NUMBER_CRITERIA = {"squared_error", "friedman_mse", "absolute_error", "poisson", "exponential", "user"}


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
