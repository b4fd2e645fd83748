"""Trees as weak learners."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._ensemble.functional.learners.weak import Candidate, Fitter, Floats, LearningTable, WeakLearner
from spinney._model.functional.steps import TreeSteps
from spinney._tree.grow.settings import GrowthTarget
from spinney._tree.regressor import DecisionTreeRegressor


class Trees(WeakLearner):
    """Regression trees of some depth, or with some number of splits; stumps by default.

    Parameters
    ----------
    max_depth : int or None, default=1
        Most splits between the root and a leaf; None: no limit. With ``n_splits`` the default is None.
    n_splits : int or None, default=None
        Splits of each tree, the best first; as many as the table allows, if that is fewer.
    min_samples_leaf : int, default=1
        Fewest rows in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Columns tried at each split; None: all.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier(spinney._ensemble.functional.learners.Trees(n_splits=3)).fit(X, y)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "n_splits": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
    }

    def __init__(
        self,
        max_depth: int | None = 1,
        *,
        n_splits: int | None = None,
        min_samples_leaf: int = 1,
        max_features: int | float | str | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.n_splits = n_splits
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features

    def _begin(self, table: LearningTable) -> Fitter:
        return _TreeFitter(self, table)


class _TreeFitter(Fitter):
    def __init__(self, learner: Trees, table: LearningTable) -> None:
        self._inputs, self._schema, self._seed = table.inputs, table.schema, table.seed
        depth = None if learner.n_splits is not None and learner.max_depth == 1 else learner.max_depth
        template = DecisionTreeRegressor(
            max_depth=depth,
            max_leaf_nodes=None if learner.n_splits is None else learner.n_splits + 1,
            min_samples_leaf=learner.min_samples_leaf,
            max_features=learner.max_features,
            n_jobs=table.inputs.n_jobs or None,
        )
        self._settings = template._settings
        self._columns = self._settings.pooled(table.inputs.columns, None)
        self._index = _engine.TreeIndex(self._columns, table.inputs.n_jobs)  # sorted once for all rounds
        self.steps: TreeSteps = TreeSteps()
        self._n_fits = 0

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Grow a tree."""
        columns = self._columns
        target = np.ascontiguousarray(residual[:, np.newaxis])
        seed = (self._seed + self._n_fits) % (2**31 - 1)
        self._n_fits += 1
        options = self._settings.engine_options(
            self._schema, GrowthTarget([], 1), columns.n_rows, float(weight.sum()), seed=seed
        )
        tree, leaves = _engine.grow_tree(columns, "squared_error", target, [], weight, options, self._index)
        return Candidate(np.asarray(tree.value).take(leaves), lambda: self.steps.add(tree))
