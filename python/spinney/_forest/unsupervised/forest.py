"""Forests of random cuts, grown without a target.

The engine cuts by a target, so that each row gets a random one: with one random column and one random cut at a node,
there is nothing for it to choose from but the side that missing values take. It is a function of (seed, values of the
row), so that the forest does not depend on the order of the rows.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.category_check import check_categories
from spinney._data.display.warn import warn
from spinney._data.hashing import mixed
from spinney._estimator.parameters import COUNT
from spinney._estimator.summary import About, counted
from spinney._estimator.target import read_weights
from spinney._forest.growing.batches import ForestRequest, Grown, grow_in_turns
from spinney._forest.growing.rows import Draws, rows_with_weight
from spinney._forest.growing.saved_state import forest_from_json, forest_to_json
from spinney._forest.members import TreesOfForest
from spinney._model.forest import FittedForest
from spinney._model.saving.model_part import FittedPart
from spinney._tree.extra_trees import ExtraTreeRegressor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """What the parameters of a forest mean for a table.

    Attributes
    ----------
    options : dict
        Parameters of each tree.
    weight : ndarray or None
        Weights of the rows, on top of how often they are drawn.
    draws : Draws or None
        Rows of each tree; None: all.
    max_features_per_tree : int or None
        Columns that each tree may use; None: all.
    copies : ndarray of int or None
        How often each row is there; None: once.
    """

    options: dict[str, Any]
    weight: Floats | None = None
    draws: Draws | None = None
    max_features_per_tree: int | None = None
    copies: NDArray[np.int64] | None = None


class UnsupervisedForest(TreesOfForest):
    """What forests without a target share."""

    _has_target = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [COUNT],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
    }

    @abstractmethod
    def _plan(self, columns: _engine.Table, keys: NDArray[np.uint64], weight: Floats | None, seed: int) -> Plan:
        """Find what the parameters mean for a table."""

    def _finished(self, forest: FittedForest, n_categories: list[int]) -> FittedForest:
        """Return the forest with what its nodes are to say."""
        return forest

    def _learned(self, columns: _engine.Table, forest: FittedForest, plan: Plan) -> dict[str, Any]:
        """Further fitted attributes."""
        return {}

    def _grow(self, X: Any, sample_weight: Any) -> _engine.Table:
        """Grow the forest, set the fitted attributes and return the rows as the engine reads them."""
        self._check_parameters()
        table = read_table(X)
        earlier: FittedForest | None = self.forest_ if self.warm_start and hasattr(self, "forest_") else None
        if earlier is None:
            schema = Schema.learn(table, categorical_features=self.categorical_features, unseen=self.unseen)
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        else:
            schema, seed = self.schema_, self._seed
            self._check_extension(earlier)
            check_categories(schema, table, self.categorical_features, type(self).__name__)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        weight = read_weights(sample_weight, table.n_rows)
        keys = columns.fingerprints(self._n_threads)
        y = random_targets(keys, seed)
        plan = self._plan(columns, keys, weight, seed)
        request = ForestRequest(
            columns,
            "squared_error",
            y,
            [],
            plan.weight,
            self._growth_options(plan, schema, y, seed),
            plan.draws,
            plan.max_features_per_tree,
            None,
            None,
            None,
            schema.n_categories,
            lambda forest: self._finished(FittedForest(forest, None, 1), schema.n_categories),
        )
        grown = Grown(earlier, None)
        grow_in_turns(request, grown, self.n_estimators, self.verbose)
        assert grown.forest is not None
        learned = self._learned(columns, grown.forest, plan)
        learned["_draws"] = plan.draws
        learned["_all_rows"] = rows_with_weight(weight, table.n_rows) if plan.draws is None else None
        self._keep(schema, grown.forest, seed, learned)
        return columns

    def _growth_options(self, plan: Plan, schema: Schema, y: Floats, seed: int) -> _engine.GrowthOptions:
        """Ask for what one tree of random cuts asks for."""
        tree = ExtraTreeRegressor(max_features=1, n_jobs=self.n_jobs, **plan.options)
        total = float(len(y)) if plan.weight is None else float(plan.weight.sum())
        return tree._growth_options(schema, len(y), total, (y, []), None, None, seed)

    def _check_extension(self, earlier: FittedForest) -> None:
        if self.n_estimators < earlier.n_trees:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={earlier.n_trees} "
                "when warm_start==True."
            )
        if self.n_estimators == earlier.n_trees:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")

    def _keep(self, schema: Schema, forest: FittedForest, seed: int, learned: dict[str, Any]) -> None:
        self._keep_schema(schema)
        self.forest_ = forest
        self.n_outputs_ = 1
        self.max_features_ = 1
        self._seed = seed
        for name, value in learned.items():
            setattr(self, name, value)

    def _to_header(self) -> dict[str, Any]:
        return forest_to_json(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        return forest_from_json(header, part)

    def _about(self) -> About:
        n_trees, n_leaves = len(self), self.forest_.n_leaves
        size = f"{counted(n_trees, 'tree', 'trees')}, {counted(n_leaves, 'leaf', 'leaves')}"
        return About(
            "forest",
            {"trees": n_trees, "leaves": n_leaves, "out_of_bag": None},
            {"forest": size},
            size,
            why_no_trees=f"the trees of {type(self).__name__} are cut at random and not shown by themselves. "
            "Leave it out.",
        )

    def _nodes(self, columns: _engine.Table) -> NDArray[np.int64]:
        """Leaves of the rows, numbered through all trees."""
        leaves = self.forest_.engine.apply(columns, self._n_threads)
        return np.asarray(leaves.astype(np.int64) + self.forest_.root[:-1])

    def _tree_estimator(self, t: int) -> Any:
        tree = ExtraTreeRegressor(max_features=1, n_jobs=self.n_jobs, unseen=self.unseen)
        tree._keep(self.schema_, self.forest_.tree(t), {"n_outputs_": 1})
        return tree

    def _known_draws(self) -> Draws:
        draws: Draws | None = getattr(self, "_draws", None)
        if draws is None:
            raise AttributeError(
                "A model file does not keep which rows the trees were grown on. Pickle the model, or fit it again."
            )
        return draws

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")


def random_targets(keys: NDArray[np.uint64], seed: int) -> Floats:
    """Numbers between 0 and 1, (n_rows, 1), as a function of the seed and a row's values."""
    bits = mixed(keys ^ mixed(np.full(1, seed, dtype=np.uint64)))
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)[:, np.newaxis]
