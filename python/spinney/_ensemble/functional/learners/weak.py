"""What every weak learner is: parameters, and a fitter that is made once for a table and fits round after round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.reproducible import cholesky, solve_factored
from spinney._estimator.estimator import check_parameter_names, store_signature, unknown_parameter
from spinney._model.functional.local import KernelSteps, NeighbourSteps, bumps
from spinney._model.functional.steps import Inputs, Steps, TreeSteps
from spinney._tree.settings import GrowthTarget
from spinney._tree.trees import DecisionTreeRegressor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LearningTable:
    """The rows that all rounds learn from.

    Attributes
    ----------
    inputs : Inputs
        The rows.
    schema : Schema
        Their columns.
    weight : ndarray of shape (n_rows,)
        Weights; rows of weight 0 are not learned from in any round.
    seed : int
        Seed of what is drawn.
    """

    inputs: Inputs
    schema: Schema
    weight: Floats
    seed: int


@dataclass(frozen=True)
class Candidate:
    """A function fitted to residuals, not yet part of the model.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        Its values in the rows.
    add : callable
        Makes it the next step of its learner.
    """

    values: Floats
    add: Callable[[], None]


class Fitter(ABC):
    """A weak learner at work on one table.

    Attributes
    ----------
    steps : Steps
        The functions that were taken into the model.
    """

    steps: Steps

    @property
    def can_fit(self) -> bool:
        """Whether the table has anything for this learner."""
        return True

    @abstractmethod
    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Fit a function to residuals by weighted least squares."""


class WeakLearner(BaseEstimator):
    """A weak learner by its parameters."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        store_signature(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        check_parameter_names(cls, kwargs, {})
        made: Self = super().__new__(cls)
        return made

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params : dict
            New values.

        Returns
        -------
        self
            The learner.
        """
        known = self.get_params()
        for name in params.keys() - known.keys():
            raise ValueError(unknown_parameter(type(self), name, known, {}))
        super().set_params(**params)
        return self

    @abstractmethod
    def _begin(self, table: LearningTable) -> Fitter:
        """Prepare what all rounds share."""

    def _sample(self, table: LearningTable, max_rows: int) -> NDArray[np.intp]:
        """Draw at most so many rows of positive weight, without replacement."""
        used = np.flatnonzero(table.weight > 0)
        if len(used) <= max_rows:
            return used
        return np.sort(np.random.RandomState(table.seed).choice(used, max_rows, replace=False))

    def _check(self) -> None:
        """Check the parameters."""
        validate: Any = self._validate_params
        validate()


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


_LEAST_RIDGE = 1e-8  # two rows may be the same


class Neighbors(WeakLearner):
    """Means over the nearest rows, by the distance of the scaled columns.

    Means are weighted by the rows' weights; a row of weight 2 is still one of the neighbours. All rows that are
    remembered count in every round.

    Parameters
    ----------
    n_neighbors : int, default=20
        Rows that a mean is over; all, if there are fewer.
    max_rows : int, default=5000
        Rows that are remembered at most; if the table has more, they are drawn.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_neighbors: int = 20, *, max_rows: int = 5000) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows

    def _begin(self, table: LearningTable) -> Fitter:
        return _NeighbourFitter(self, table)


class _NeighbourFitter(Fitter):
    def __init__(self, learner: Neighbors, table: LearningTable) -> None:
        self._inputs = table.inputs
        self._rows = learner._sample(table, learner.max_rows)
        remembered = np.ascontiguousarray(table.inputs.terms[:, self._rows].T)
        n_neighbours = min(learner.n_neighbors, len(self._rows))
        self.steps: NeighbourSteps = NeighbourSteps(n_neighbours, remembered, table.weight[self._rows])

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Remember the residuals, and give rows the mean of those near them."""
        numbers = residual[self._rows]
        return Candidate(self.steps.means(self._inputs, numbers), lambda: self.steps.add(numbers))


class KernelRidge(WeakLearner):
    """Ridge regression with a Gaussian kernel of the scaled columns. All rows remembered count in every round.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the ridge, for rows of weight 1.
    gamma : float or None, default=None
        How narrow the kernel exp(-gamma · distance²) is; None: 1 / number of terms.
    max_rows : int, default=500
        Rows that are fitted to at most; if the table has more, they are drawn.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0.0, None, closed="neither")],
        "gamma": [Interval(Real, 0.0, None, closed="neither"), None],
        "max_rows": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, alpha: float = 1.0, *, gamma: float | None = None, max_rows: int = 500) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.max_rows = max_rows

    def _begin(self, table: LearningTable) -> Fitter:
        return _KernelFitter(self, table)


class _KernelFitter(Fitter):
    def __init__(self, learner: KernelRidge, table: LearningTable) -> None:
        self._inputs = table.inputs
        self._rows = learner._sample(table, learner.max_rows)
        remembered = np.ascontiguousarray(table.inputs.terms[:, self._rows].T)
        gamma = float(learner.gamma or 1 / max(1, remembered.shape[1]))
        self.steps: KernelSteps = KernelSteps(gamma, remembered)
        ridge = float(learner.alpha) / table.weight[self._rows]
        kernel = bumps(remembered, remembered, gamma)
        self._factor = cholesky(kernel + np.diag(np.maximum(ridge, _LEAST_RIDGE)))

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Solve for the heights of the bumps."""
        heights = solve_factored(self._factor, residual[self._rows])
        return Candidate(self.steps._sums(self._inputs, heights), lambda: self.steps.add(heights))
