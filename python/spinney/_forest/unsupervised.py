"""Forests of random splits, grown without a target.

The engine needs a target, so that each row gets a random one: with one random column and one random threshold at a
node, it only decides on which side missing values go. The target is a function of (seed, values of the row), so that
the forest does not depend on the order of the rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as fitted_attribute
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.display import plural
from spinney._data.feature import Unseen
from spinney._data.reproducible import mixed
from spinney._data.types import ColumnLike, ColumnNames, Floats, Integers, RandomState, TableLike
from spinney._estimator.estimator import About
from spinney._estimator.parameters import COUNT, N_JOBS, UNSEEN, estimator, parameter
from spinney._estimator.table_estimator import SequenceOfMembers, TableEstimator
from spinney._estimator.target import read_weights
from spinney._forest.fitting import check_n_estimators
from spinney._forest.growing import Finisher, ForestRequest, GrowingForest, grow_in_batches
from spinney._forest.growth_record import GrowthRecord
from spinney._forest.proximities import RowLeaves, apply, decision_path, leaf_names
from spinney._forest.samples import Draws, rows_with_weight
from spinney._model.file.container import field
from spinney._model.forest import FittedForest
from spinney._model.lazy_sequence import LazySequence
from spinney._model.saving.saved_model import SavedModel
from spinney._tree.growing import GrowingEstimator
from spinney._tree.settings import GrowthTarget
from spinney._tree.trees import ExtraTreeRegressor


@dataclass(frozen=True)
class Plan:
    """The settings of a forest for a table.

    Attributes
    ----------
    options : dict
        Parameters of each tree.
    weight : ndarray or None
        Weights of the rows, multiplied by how often they are drawn.
    draws : Draws or None
        The samples of the trees; None: all rows.
    max_features_per_tree : int or None
        Columns that each tree may use; None: all.
    copies : ndarray of int or None
        How often each row counts; None: once.
    finisher : Finisher or None
        Changes the values of grown trees.
    """

    options: dict[str, Any]
    weight: Floats | None = None
    draws: Draws | None = None
    max_features_per_tree: int | None = None
    copies: Integers | None = None
    finisher: Finisher | None = None


@estimator
class UnsupervisedForest(SequenceOfMembers, TableEstimator):
    """A forest without a target."""

    n_estimators: int = parameter(COUNT, default=100)
    random_state: RandomState = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    verbose: int | None = parameter("verbose", None, default=None)
    warm_start: bool = parameter("boolean", default=False)
    categorical_features: ColumnNames = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")

    forest_: FittedForest = fitted_attribute(init=False)
    _growth: GrowthRecord = fitted_attribute(init=False)
    _model_attribute = "forest_"
    _has_target = False

    @abstractmethod
    def _plan(self, columns: _engine.Table, keys: NDArray[np.uint64], weight: Floats | None, seed: int) -> Plan:
        """Return the settings for a table."""

    def _set_more_attributes(self, columns: _engine.Table, plan: Plan) -> None:
        """Set further fitted attributes."""

    def _grow(self, X: TableLike, sample_weight: ColumnLike) -> _engine.Table:
        """Grow the forest, set the fitted attributes and return the encoded rows."""
        self._check_parameters()
        table = read_table(X)
        earlier = self.forest_ if self.warm_start and hasattr(self, "forest_") else None
        schema = self._learn_schema(table, continues=earlier is not None)
        if earlier is None:
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        else:
            seed = self._growth.seed
            check_n_estimators(self.n_estimators, earlier.n_trees)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        weight = read_weights(sample_weight, table.n_rows)
        keys = columns.fingerprints(self._n_threads)
        y = random_targets(keys, seed)
        plan = self._plan(columns, keys, weight, seed)
        request = ForestRequest(
            columns=columns,
            y=y,
            options=self._growth_options(plan, schema, y, seed),
            n_categories=schema.n_categories,
            weight=plan.weight,
            draws=plan.draws,
            max_features_per_tree=plan.max_features_per_tree,
            finisher=plan.finisher,
        )
        grown = GrowingForest(None, earlier, False)
        self.forest_ = grow_in_batches(request, grown, ForestRequest.grow, self.n_estimators, self.verbose)
        all_rows = rows_with_weight(weight, table.n_rows) if plan.draws is None else None
        self._growth = GrowthRecord(seed=seed, draws=plan.draws, all_rows=all_rows)
        self._set_schema(schema)
        self.n_outputs_ = 1
        self.max_features_ = 1
        self._set_more_attributes(columns, plan)
        return columns

    def _growth_options(self, plan: Plan, schema: Schema, y: Floats, seed: int) -> _engine.GrowthOptions:
        """Return the engine's options of one random tree."""
        tree = ExtraTreeRegressor(max_features=1, n_jobs=self.n_jobs, **plan.options)
        total = float(len(y)) if plan.weight is None else float(plan.weight.sum())
        return tree._settings.engine_options(schema, GrowthTarget([], 1), len(y), total, seed=seed)

    def _to_header(self) -> dict[str, Any]:
        return {"forest": self._growth.to_json()}

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        return {"_growth": GrowthRecord.from_json(field(header, "forest", dict), saved)}

    def _about(self) -> About:
        n_trees, n_leaves = len(self), self.forest_.n_leaves
        size = f"{plural(n_trees, 'tree')}, {plural(n_leaves, 'leaf')}"
        return About(
            "forest",
            {"trees": n_trees, "leaves": n_leaves, "out_of_bag": None},
            {"forest": size},
            size,
            why_no_trees=f"the trees of {type(self).__name__} are random and not shown individually. Leave it out.",
        )

    @property
    def estimators_(self) -> Sequence[ExtraTreeRegressor]:
        """The trees as estimators, created on demand."""
        check_is_fitted(self)
        return LazySequence(self.forest_.n_trees, self._tree_estimator)

    @property
    def estimator_(self) -> ExtraTreeRegressor:
        """A tree with the settings of the forest's trees, not fitted."""
        check_is_fitted(self)
        return ExtraTreeRegressor(max_features=1, n_jobs=self.n_jobs, unseen=self.unseen)

    def _tree_estimator(self, t: int) -> ExtraTreeRegressor:
        tree = self.estimator_
        tree._set_fitted(self.schema_, self.forest_.tree(t), {"n_outputs_": 1})
        return tree

    @property
    def estimators_samples_(self) -> Sequence[NDArray[np.intp]]:
        """Positions of the rows of each tree's sample, ascending, repeated as often as drawn; computed on demand."""
        check_is_fitted(self)
        samples = self._growth.samples(self.forest_.n_trees)
        if samples is not None:
            return samples
        raise AttributeError(
            "A model file does not store which rows the trees were grown on. Pickle the model, or fit it again."
        )

    apply = apply
    decision_path = decision_path

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")


def random_targets(keys: NDArray[np.uint64], seed: int) -> Floats:
    """Return random numbers between 0 and 1, (n_rows, 1), as a function of the seed and the values of a row."""
    bits = mixed(keys ^ mixed(np.full(1, seed, dtype=np.uint64)))
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)[:, np.newaxis]


_OF_TREES = GrowingEstimator._parameter_constraints


@estimator
class RandomTreesEmbedding(TransformerMixin, UnsupervisedForest):
    """Encode rows by the leaves of random trees, grown without a target.

    Similar rows share leaves, so that a linear model of the encoding is a non-linear model of the columns.

    See Also
    --------
    RandomForestClassifier.leaf_embedding : Encodes rows by the leaves of trees that were grown for a target.

    Examples
    --------
    >>> from spinney import RandomTreesEmbedding
    >>> X = [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]
    >>> codes = RandomTreesEmbedding(n_estimators=5, max_depth=1, random_state=0).fit_transform(X)
    >>> codes.shape, int(codes.sum())
    ((5, 10), 25)
    """

    n_estimators: int = parameter(default=100, kw_only=False)
    max_depth: int | None = parameter(*_OF_TREES["max_depth"], default=5)
    min_samples_split: int | float = parameter(*_OF_TREES["min_samples_split"], default=2)
    min_samples_leaf: int | float = parameter(*_OF_TREES["min_samples_leaf"], default=1)
    min_weight_fraction_leaf: float = parameter(*_OF_TREES["min_weight_fraction_leaf"], default=0.0)
    max_leaf_nodes: int | None = parameter(*_OF_TREES["max_leaf_nodes"], default=None)
    min_impurity_decrease: float = parameter(*_OF_TREES["min_impurity_decrease"], default=0.0)
    sparse_output: bool = parameter("boolean", default=True)

    def fit(self, X: TableLike, y: ColumnLike = None, sample_weight: ColumnLike = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are supported.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights: a weight of 0 leaves the row out; others only affect `min_weight_fraction_leaf`.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._grow(X, sample_weight)
        return self

    def fit_transform(self, X: TableLike, y: ColumnLike = None, sample_weight: ColumnLike = None) -> csr_array | Floats:
        """Grow the trees and encode the training rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, as in `fit`.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n_leaves)
            As returned by `transform`.
        """
        return self._code(self._grow(X, sample_weight))

    def _plan(self, columns: _engine.Table, keys: NDArray[np.uint64], weight: Floats | None, seed: int) -> Plan:
        own = RandomTreesEmbedding.__annotations__.keys() & _OF_TREES.keys()
        return Plan({name: getattr(self, name) for name in own}, weight)

    def transform(self, X: TableLike) -> csr_array | Floats:
        """Encode rows by their leaves.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n_leaves)
            1 for the leaf of the row in each tree.
        """
        return self._code(self._columns(X))

    def _code(self, columns: _engine.Table) -> csr_array | Floats:
        codes = RowLeaves.of(self.forest_, columns, self._n_threads).one_hot(self.forest_)
        return codes if self.sparse_output else codes.toarray()

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns of the encoding.

        Parameters
        ----------
        input_features : ignored
            Not used.

        Returns
        -------
        ndarray of str
            ``randomtreesembedding_{tree}_{leaf}``.
        """
        check_is_fitted(self)
        names = [f"randomtreesembedding_{tree}_{leaf}" for tree, leaf in leaf_names(self.forest_)]
        return np.array(names, dtype=object)
