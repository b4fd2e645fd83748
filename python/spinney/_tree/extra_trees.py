"""Single trees whose cuts are drawn at random."""

from __future__ import annotations

from spinney._data.types import ByClass, ByColumn, ColumnGroups, ColumnNames, RandomState
from spinney._estimator.parameters import store_parameters
from spinney._tree.tree_estimator import TreeClassifier, TreeRegressor
from spinney.criteria import Criterion


class ExtraTreeClassifier(TreeClassifier):
    """A tree for classes whose cuts are drawn at random and chosen by the criterion.

    See Also
    --------
    DecisionTreeClassifier : The best cut of every column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import ExtraTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ExtraTreeClassifier(random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        *,
        criterion: str | Criterion = "gini",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        random_state: RandomState = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: ByClass = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: ByColumn = None,
        interaction_cst: ColumnGroups = None,
        min_purity: float | None = None,
        max_bins: int | None = None,
        validation_fraction: float | None = None,
        categorical_features: ColumnNames = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())


class ExtraTreeRegressor(TreeRegressor):
    """A tree for numbers whose cuts are drawn at random and chosen by the criterion.

    See Also
    --------
    DecisionTreeRegressor : The best cut of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import ExtraTreeRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> ExtraTreeRegressor(max_depth=1, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).get_n_leaves()
    2
    """

    def __init__(
        self,
        *,
        criterion: str | Criterion = "squared_error",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 1.0,
        random_state: RandomState = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: ByColumn = None,
        interaction_cst: ColumnGroups = None,
        max_bins: int | None = None,
        validation_fraction: float | None = None,
        categorical_features: ColumnNames = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())
