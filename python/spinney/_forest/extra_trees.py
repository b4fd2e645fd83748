"""Forests whose cuts are drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spinney._data.types import ByClass, ByColumn, ColumnGroups, ColumnNames, RandomState
from spinney._estimator.parameters import store_parameters
from spinney._forest.forest import ForestClassifier, ForestRegressor
from spinney._tree.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor
from spinney.criteria import Criterion


class ExtraTreesClassifier(ForestClassifier):
    """A forest for classes whose trees cut at random.

    See Also
    --------
    RandomForestClassifier : The best cut of the columns tried, on samples of the rows.
    ExtraTreeClassifier : One tree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ExtraTreesClassifier(n_estimators=20, random_state=0).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    _tree_class = ExtraTreeClassifier
    _splitter = "random"

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        criterion: str | Criterion = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        max_features_per_tree: int | float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        min_purity: float | None = None,
        bootstrap: bool = False,
        replace: bool = True,
        max_samples: int | float | None = None,
        sampling: str | None = None,
        oob_score: bool | str | Callable[[Any, Any], float] = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: ByClass = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: ByColumn = None,
        interaction_cst: ColumnGroups = None,
        max_bins: int | None = None,
        categorical_features: ColumnNames = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        cost_matrix: ByClass = None,
        priors: ByClass = None,
        feature_costs: ByColumn = None,
        feature_weights: ByColumn = None,
        always_try: ColumnNames = None,
        shrinkage: float | str | None = "auto",
        keep_rows: bool = False,
        oblique: int | str | None = None,
        n_combined: int = 3,
    ) -> None:
        store_parameters(self, locals())


class ExtraTreesRegressor(ForestRegressor):
    """A forest for numbers whose trees cut at random.

    See Also
    --------
    RandomForestRegressor : The best cut of the columns tried, on samples of the rows.
    ExtraTreeRegressor : One tree.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import ExtraTreesRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> len(ExtraTreesRegressor(n_estimators=20, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).estimators_)
    20
    """

    _tree_class = ExtraTreeRegressor
    _splitter = "random"

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        criterion: str | Criterion = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 1.0,
        max_features_per_tree: int | float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        replace: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool | str | Callable[[Any, Any], float] = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        monotonic_cst: ByColumn = None,
        interaction_cst: ColumnGroups = None,
        max_bins: int | None = None,
        categorical_features: ColumnNames = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        feature_costs: ByColumn = None,
        feature_weights: ByColumn = None,
        always_try: ColumnNames = None,
        shrinkage: float | None = None,
        keep_rows: bool = False,
        oblique: int | str | None = None,
        n_combined: int = 3,
    ) -> None:
        store_parameters(self, locals())
