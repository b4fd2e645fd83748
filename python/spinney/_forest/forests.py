"""Forests of the best cuts on bootstrap samples, and forests whose cuts are drawn at random."""

from __future__ import annotations

from spinney._estimator.parameters import estimator, parameter
from spinney._forest.forest import ForestClassifier, ForestRegressor
from spinney._tree import trees


@estimator
class RandomForestClassifier(ForestClassifier):
    """A random forest for classes: trees on samples of the rows, random columns at each node.

    See Also
    --------
    ExtraTreesClassifier : Cuts drawn at random, all rows for every tree.
    DecisionTreeClassifier : One tree.

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


@estimator
class RandomForestRegressor(ForestRegressor):
    """A random forest for numbers: trees on samples of the rows, random columns at each node if asked for.

    See Also
    --------
    ExtraTreesRegressor : Cuts drawn at random, all rows for every tree.
    DecisionTreeRegressor : One tree.

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

    _tree_class = trees.ExtraTreeClassifier
    _splitter = "random"


@estimator
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

    _tree_class = trees.ExtraTreeRegressor
    _splitter = "random"
