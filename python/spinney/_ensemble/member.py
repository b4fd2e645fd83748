"""Fitting one member of an ensemble to its sample, without needless copies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import has_fit_parameter

from spinney._data.select import PickTable
from spinney._ensemble.out_of_bag import Weights
from spinney._ensemble.resampling import Places, Sampling
from spinney._tree.tree_estimator import BaseTree

LARGEST_SEED = np.iinfo(np.int32).max
# Below this share of the rows, a copy of a member's rows is cheaper than reading past those of weight 0.
_LEAST_SHARE_BY_WEIGHT = 0.3


@dataclass(frozen=True, eq=False)
class MemberFit:
    """All that a member is fitted to; threads share it."""

    template: Any
    table: PickTable
    target: NDArray[Any]
    weight: Weights
    sampling: Sampling
    fit_params: dict[str, Any]

    def fit(self, k: int, seed: int) -> Any:
        """Fit the member of a seed."""
        drawn, rows = self.sampling.draw(seed)
        columns = None if self.sampling.takes_all_columns else drawn
        member = self._unfitted(seed)
        try:
            if self._by_weight:
                weight = np.bincount(rows, minlength=self.table.n_rows).astype(np.float64)
                weight = weight if self._passed_on is None else weight * self._passed_on
                member.fit(self.table.take(columns=columns), self.target, sample_weight=weight, **self.fit_params)
            else:
                member.fit(self.table.take(rows, columns), self.target[rows], **self._params_of(rows))
        except Exception as error:
            error.add_note(f"This happened while fitting member {k + 1}{self._about(rows)}.")
            raise
        return member

    @property
    def _by_weight(self) -> bool:
        """Whether draws are given as weights: trees leave rows of weight 0 out and need no copy of the others."""
        is_tree = isinstance(self.template, (BaseTree, BaseDecisionTree)) and takes_weights(self.template)
        return is_tree and self.sampling.mean_share >= _LEAST_SHARE_BY_WEIGHT

    @cached_property
    def _random_states(self) -> list[str]:
        return random_state_names(self.template)

    @cached_property
    def _tree_names(self) -> list[str]:
        return [name for name, part in self.template.get_params(deep=True).items() if isinstance(part, BaseTree)]

    def _trees_of(self, member: Any) -> list[BaseTree]:
        """Return the trees of a member: itself, or parts of it."""
        if isinstance(member, BaseTree):
            return [member]
        return [member.get_params(deep=True)[name] for name in self._tree_names]

    def _unfitted(self, seed: int) -> Any:
        member = clone(self.template)
        set_random_states(member, self._random_states, seed)
        if isinstance(member, BaseTree) and member.n_jobs is None:
            member.n_jobs = 1  # members run side by side
        for tree in self._trees_of(member):
            tree._random_ties = True
        return member

    def _params_of(self, rows: Places) -> dict[str, Any]:
        n_rows = self.table.n_rows
        params = {name: rows_of(value, rows, n_rows) for name, value in self.fit_params.items()}
        if self._passed_on is not None:
            params["sample_weight"] = self._passed_on[rows]
        return params

    @property
    def _passed_on(self) -> Weights:
        """Weights that a member gets: those that no draw has gone by."""
        return None if self.sampling.goes_by_weight else self.weight

    def _about(self, rows: Places) -> str:
        if self.target.dtype.kind == "f" or self.target.ndim > 1:
            return ""
        n_here, n_all = len(set(self.target[rows].tolist())), len(set(self.target.tolist()))
        if n_here == n_all:
            return ""
        return f", whose sample holds {n_here} of the {n_all} classes; stratified=True draws from each class"


def random_state_names(estimator: Any) -> list[str]:
    """Return the parameters that are random states, those of parts of the estimator too."""
    names = sorted(estimator.get_params(deep=True))
    return [name for name in names if name == "random_state" or name.endswith("__random_state")]


def set_random_states(estimator: Any, names: list[str], seed: int) -> None:
    """Set random states that follow from a seed, as scikit-learn's ensembles do for their members."""
    random = np.random.RandomState(seed)
    states = {name: int(random.randint(LARGEST_SEED)) for name in names}
    if list(states) == ["random_state"]:
        estimator.random_state = states["random_state"]  # `set_params` takes as long as growing a small tree
    else:
        estimator.set_params(**states)


def rows_of(value: Any, rows: Places, n_rows: int) -> Any:
    """Cut metadata that has one entry per row; leave others alone."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__") or len(value) != n_rows:
        return value
    if hasattr(value, "iloc"):
        return value.iloc[rows]
    return np.asarray(value)[rows]


def takes_weights(estimator: Any) -> bool:
    """Say whether `fit` of an estimator has a parameter sample_weight."""
    return bool(has_fit_parameter(estimator, "sample_weight"))
