"""Decision trees with the best splits, and with thresholds drawn at random."""

from __future__ import annotations

from typing import Any, Literal

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions

from spinney._data.types import ByClass
from spinney._estimator.parameters import estimator, parameter
from spinney._tree import growing
from spinney._tree.task import Classification, Regression
from spinney._tree.tree_estimator import BaseTree
from spinney.inspect.explain.recursion import OF_TREES, recursive_dependence


@estimator
class DecisionTreeClassifier(ClassifierMixin, BaseTree):
    """A decision tree for classification.

    See Also
    --------
    ExtraTreeClassifier : Draws split thresholds at random.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    criterion: growing.ClassCriterion = parameter(*growing.CLASS_CRITERIA, default="gini")
    class_weight: dict[Any, float] | list[dict[Any, float]] | Literal["balanced"] | None = parameter(
        dict, list, StrOptions({"balanced"}), None, default=None
    )
    min_purity: float | None = parameter(*growing.PURITY, default=None)
    cost_matrix: ByClass = parameter("array-like", dict, None, default=None)
    priors: ByClass = parameter("array-like", dict, StrOptions({"uniform"}), None, default=None)
    cost_splits: Literal["altered_priors", "generalised_gini"] | None = parameter(
        *growing.COST_SPLITS, default="altered_priors"
    )

    _is_class_target = True
    _task_class = Classification
    predict_proba = growing.predict_proba
    predict_log_proba = growing.predict_log_proba


@recursive_dependence(OF_TREES)
@estimator
class DecisionTreeRegressor(RegressorMixin, BaseTree):
    """A decision tree for regression.

    See Also
    --------
    ExtraTreeRegressor : Draws split thresholds at random.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import DecisionTreeRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> DecisionTreeRegressor(max_depth=1, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).get_n_leaves()
    2
    """

    criterion: growing.RegressionCriterion | Literal["exponential"] = parameter(
        *growing.TREE_NUMBER_CRITERIA, default="squared_error"
    )
    rate_shrinkage: float = parameter(growing.AT_LEAST_0, default=0.0)

    _task_class = Regression


@estimator
class ExtraTreeClassifier(DecisionTreeClassifier):
    """A classification tree that draws a random threshold for each considered column, and uses the best of these.

    See Also
    --------
    DecisionTreeClassifier : Uses the best split of every column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import ExtraTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ExtraTreeClassifier(random_state=0).fit(X, y).score(X, y)
    1.0
    """

    splitter: Literal["best", "random"] = parameter(default="random")
    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(default="sqrt")


@estimator
class ExtraTreeRegressor(DecisionTreeRegressor):
    """A regression tree that draws a random threshold for each considered column, and uses the best of these.

    See Also
    --------
    DecisionTreeRegressor : Uses the best split of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import ExtraTreeRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> ExtraTreeRegressor(max_depth=1, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).get_n_leaves()
    2
    """

    splitter: Literal["best", "random"] = parameter(default="random")
    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(default=1.0)
