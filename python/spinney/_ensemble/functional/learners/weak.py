"""What every weak learner is: parameters, and a fitter that is made once for a table and fits round after round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from spinney._data import Schema
from spinney._estimator.estimator import check_parameter_names, store_signature, unknown_parameter
from spinney._model.functional.steps import Inputs, Steps

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
