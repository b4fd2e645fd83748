"""Weak learners: their parameters, and fitters that prepare a table once and fit a function in each round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.reproducible import cholesky, solve_factored
from spinney._data.types import Floats
from spinney._estimator.estimator import check_parameter_names, unknown_parameter
from spinney._estimator.parameters import estimator, parameter
from spinney._model.functional.local import KernelSteps, NeighbourSteps, gaussian_kernel
from spinney._model.functional.steps import Inputs, Steps, TreeSteps
from spinney._tree.settings import GrowthTarget
from spinney._tree.trees import DecisionTreeRegressor

_POSITIVE = Interval(Integral, 1, None, closed="left")


@dataclass(frozen=True)
class LearningTable:
    """The training rows of all rounds.

    Attributes
    ----------
    inputs : Inputs
        The rows.
    schema : Schema
        Columns of the table.
    weight : ndarray of shape (n_rows,)
        Weights; rows of weight 0 are not used in any round.
    seed : int
        Random seed.
    """

    inputs: Inputs
    schema: Schema
    weight: Floats
    seed: int

    def remembered(self, max_rows: int) -> tuple[NDArray[np.intp], Floats]:
        """Return at most `max_rows` rows of positive weight, drawn without replacement, and their terms."""
        rows = np.flatnonzero(self.weight > 0)
        if len(rows) > max_rows:
            rows = np.sort(np.random.RandomState(self.seed).choice(rows, max_rows, replace=False))
        return rows, np.ascontiguousarray(self.inputs.terms[:, rows].T)


@dataclass(frozen=True)
class Candidate:
    """A function fitted to residuals that is not part of the model yet.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        Values of the function.
    add : callable
        Adds the function to the model.
    """

    values: Floats
    add: Callable[[], None]


class Fitter(ABC):
    """A weak learner that is prepared for one table.

    Attributes
    ----------
    steps : Steps
        The functions that were added to the model.
    """

    steps: Steps

    @property
    def can_fit(self) -> bool:
        """Whether the learner can fit the table."""
        return True

    @abstractmethod
    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Fit a function to residuals by weighted least squares."""


class WeakLearner(BaseEstimator):
    """Base class of the weak learners."""

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
        """Return the fitter of all rounds."""

    def _check(self) -> None:
        """Check the parameters."""
        validate: Any = self._validate_params
        validate()


@estimator
class Trees(WeakLearner):
    """Regression trees of a given depth or number of splits; stumps by default.

    Parameters
    ----------
    max_depth : int, None or "auto", default="auto"
        Maximum depth; None: no limit. "auto": 1, or no limit with ``n_splits``.
    n_splits : int or None, default=None
        Maximum number of splits of each tree, grown best-first.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number or fraction of features considered per split; None: all.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier(spinney.learners.Trees(n_splits=3)).fit(X, y)
    """

    max_depth: int | Literal["auto"] | None = parameter(
        _POSITIVE, StrOptions({"auto"}), None, default="auto", kw_only=False
    )
    n_splits: int | None = parameter(_POSITIVE, None, default=None)
    min_samples_leaf: int = parameter(_POSITIVE, default=1)
    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(
        _POSITIVE, Interval(Real, 0.0, 1.0, closed="right"), StrOptions({"sqrt", "log2"}), None, default=None
    )

    def _begin(self, table: LearningTable) -> Fitter:
        return _TreeFitter(self, table)


class _TreeFitter(Fitter):
    def __init__(self, learner: Trees, table: LearningTable) -> None:
        self._inputs, self._schema, self._seed = table.inputs, table.schema, table.seed
        of_default = 1 if learner.n_splits is None else None
        depth = of_default if isinstance(learner.max_depth, str) else learner.max_depth
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
        """Fit a tree."""
        columns = self._columns
        target = np.ascontiguousarray(residual[:, np.newaxis])
        seed = (self._seed + self._n_fits) % (2**31 - 1)
        self._n_fits += 1
        options = self._settings.engine_options(
            self._schema, GrowthTarget([], 1), columns.n_rows, float(weight.sum()), seed=seed
        )
        tree, leaves = _engine.grow_tree(columns, "squared_error", target, [], weight, options, self._index)
        return Candidate(np.asarray(tree.value).take(leaves), lambda: self.steps.add(tree))


_LEAST_RIDGE = 1e-8  # the kernel matrix of equal rows is singular


@estimator
class Neighbors(WeakLearner):
    """k-nearest neighbours regression, with the Euclidean distance of the scaled columns.

    The mean of the neighbours is weighted by the weights of the rows, but a row of weight 2 counts as one of the
    ``n_neighbors``. Every round uses all stored rows, whatever ``subsample`` is.

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbours; all rows if there are fewer.
    max_rows : int, default=5000
        Maximum number of stored rows; from a larger table they are drawn at random.
    """

    n_neighbors: int = parameter(_POSITIVE, default=20, kw_only=False)
    max_rows: int = parameter(_POSITIVE, default=5000)

    def _begin(self, table: LearningTable) -> Fitter:
        return _NeighbourFitter(self, table)


class _NeighbourFitter(Fitter):
    def __init__(self, learner: Neighbors, table: LearningTable) -> None:
        self._inputs = table.inputs
        self._rows, remembered = table.remembered(learner.max_rows)
        n_neighbours = min(learner.n_neighbors, len(self._rows))
        self.steps: NeighbourSteps = NeighbourSteps(n_neighbours, remembered, table.weight[self._rows])

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Return the mean residuals of the nearest neighbours."""
        numbers = residual[self._rows]
        return Candidate(self.steps.means(self._inputs, numbers), lambda: self.steps.add(numbers))


@estimator
class KernelRidge(WeakLearner):
    """Kernel ridge regression with a Gaussian kernel of the scaled columns.

    Every round uses all stored rows, whatever the ``subsample`` of the boosting is.

    Parameters
    ----------
    alpha : float, default=1.0
        Ridge penalty, which is divided by the weight of each row.
    gamma : float or None, default=None
        Parameter of the kernel exp(-gamma · distance²); None: 1 / number of terms.
    max_rows : int, default=500
        Maximum number of stored rows; from a larger table they are drawn at random.
    """

    alpha: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1.0, kw_only=False)
    gamma: float | None = parameter(Interval(Real, 0.0, None, closed="neither"), None, default=None)
    max_rows: int = parameter(_POSITIVE, default=500)

    def _begin(self, table: LearningTable) -> Fitter:
        return _KernelFitter(self, table)


class _KernelFitter(Fitter):
    def __init__(self, learner: KernelRidge, table: LearningTable) -> None:
        self._inputs = table.inputs
        self._rows, remembered = table.remembered(learner.max_rows)
        gamma = float(learner.gamma or 1 / max(1, remembered.shape[1]))
        self.steps: KernelSteps = KernelSteps(gamma, remembered)
        ridge = float(learner.alpha) / table.weight[self._rows]
        kernel = gaussian_kernel(remembered, remembered, gamma)
        self._factor = cholesky(kernel + np.diag(np.maximum(ridge, _LEAST_RIDGE)))

    def fit(self, residual: Floats, weight: Floats) -> Candidate:
        """Solve for the coefficients of the kernels."""
        heights = solve_factored(self._factor, residual[self._rows])
        return Candidate(self.steps._sums(self._inputs, heights), lambda: self.steps.add(heights))
