"""Random trees as a code of rows: one column per leaf."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.types import ColumnLike, ColumnNames, Floats, RandomState, TableLike
from spinney._estimator.parameters import store_parameters
from spinney._forest.proximities import RowLeaves, leaf_names
from spinney._forest.unsupervised import Plan, UnsupervisedForest
from spinney._tree.growing import GrowingEstimator

_TREE_PARAMETERS = (
    "max_depth",
    "min_samples_split",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "max_leaf_nodes",
    "min_impurity_decrease",
)


class RandomTreesEmbedding(TransformerMixin, UnsupervisedForest):
    """Code rows by the leaves of random trees, grown without a target.

    Near rows share leaves: a linear model on the codes is a smooth, non-linear model of the columns.

    See Also
    --------
    RandomForestClassifier.leaf_embedding : The same code by trees that know a target.

    Examples
    --------
    >>> from spinney import RandomTreesEmbedding
    >>> X = [[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]
    >>> codes = RandomTreesEmbedding(n_estimators=5, max_depth=1, random_state=0).fit_transform(X)
    >>> codes.shape, int(codes.sum())
    ((5, 10), 25)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **UnsupervisedForest._parameter_constraints,
        **{name: GrowingEstimator._parameter_constraints[name] for name in _TREE_PARAMETERS},
        "sparse_output": ["boolean"],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int | None = 5,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        sparse_output: bool = True,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        warm_start: bool = False,
        categorical_features: ColumnNames = None,
        unseen: str = "missing",
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: TableLike, y: ColumnLike = None, sample_weight: ColumnLike = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights: those of 0 leave rows out; others matter for `min_weight_fraction_leaf`.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._grow(X, sample_weight)
        return self

    def fit_transform(self, X: TableLike, y: ColumnLike = None, sample_weight: ColumnLike = None) -> csr_array | Floats:
        """Grow the trees and code the rows they are grown on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, as of `fit`.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n_leaves)
            As of `transform`.
        """
        return self._code(self._grow(X, sample_weight))

    def _plan(self, columns: _engine.Table, keys: NDArray[np.uint64], weight: Floats | None, seed: int) -> Plan:
        return Plan({name: getattr(self, name) for name in _TREE_PARAMETERS}, weight)

    def transform(self, X: TableLike) -> csr_array | Floats:
        """Code rows by the leaves they rest in.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n_leaves)
            1 for the leaf of each tree that the row rests in.
        """
        return self._code(self._columns(X))

    def _code(self, columns: _engine.Table) -> csr_array | Floats:
        codes = RowLeaves.of(self.forest_, columns, self._n_threads).one_hot(self.forest_)
        return codes if self.sparse_output else codes.toarray()

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the columns of the code.

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
