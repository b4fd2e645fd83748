"""Random forests and extra-trees."""

from __future__ import annotations

from spinney._estimator.parameters import estimator, parameter
from spinney._forest.forest import ForestClassifier, ForestRegressor
from spinney._tree import trees
from spinney.inspect.explain.recursion import OF_TREES, recursive_dependence


@estimator
class RandomForestClassifier(ForestClassifier):
    """A random forest for classification: trees on bootstrap samples, which consider random columns at each node.

    See Also
    --------
    ExtraTreesClassifier : Draws split thresholds at random, and fits every tree to all rows.
    DecisionTreeClassifier : A single tree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    bootstrap: bool = parameter(default=True)

    _tree_class = trees.DecisionTreeClassifier


@recursive_dependence(OF_TREES)
@estimator
class RandomForestRegressor(ForestRegressor):
    """A random forest for regression: trees on bootstrap samples, which consider all columns by default.

    See Also
    --------
    ExtraTreesRegressor : Draws split thresholds at random, and fits every tree to all rows.
    DecisionTreeRegressor : A single tree.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import RandomForestRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> len(RandomForestRegressor(n_estimators=20, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).estimators_)
    20
    """

    bootstrap: bool = parameter(default=True)

    _tree_class = trees.DecisionTreeRegressor


@estimator
class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomised trees for classification: a forest whose split thresholds are drawn at random.

    See Also
    --------
    RandomForestClassifier : Uses the best split of the considered columns, and bootstrap samples.
    ExtraTreeClassifier : A single tree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ExtraTreesClassifier(n_estimators=20, random_state=0).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    _tree_class = trees.ExtraTreeClassifier
    _splitter = "random"


@estimator
class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomised trees for regression: a forest whose split thresholds are drawn at random.

    See Also
    --------
    RandomForestRegressor : Uses the best split of the considered columns, and bootstrap samples.
    ExtraTreeRegressor : A single tree.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import ExtraTreesRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> len(ExtraTreesRegressor(n_estimators=20, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).estimators_)
    20
    """

    _tree_class = trees.ExtraTreeRegressor
    _splitter = "random"
