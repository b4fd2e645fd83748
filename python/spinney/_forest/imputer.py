"""Imputation of missing values by the proximities of a forest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import RawTable, Schema, read_table
from spinney._data.arguments import argument_array
from spinney._data.cells import cells_of
from spinney._data.columns import NumberColumn, listed, match_columns
from spinney._data.display import warn
from spinney._data.feature import Feature
from spinney._data.reproducible import row_dots
from spinney._data.schema import column_values
from spinney._data.select import missing_rows, pick_table
from spinney._data.types import ColumnLike, Floats, RandomState, TableLike
from spinney._estimator.estimator import About, Estimator, class_named, opening, unfitted
from spinney._estimator.parameters import COUNT, N_JOBS, estimator, parameter
from spinney._estimator.table_estimator import TableEstimator
from spinney._forest.forests import RandomForestClassifier, RandomForestRegressor
from spinney._forest.proximities import Kind, Proximities, RowLeaves, row_leaves
from spinney._model.file.codec import array, nullable, saved_fields
from spinney._model.file.container import field, refuse
from spinney._model.forest import FittedForest
from spinney._model.saving.saved_model import SavedModel
from spinney._tree.growing import at_least


@dataclass(frozen=True, eq=False)
class Donors:
    """The values of the training rows, by which missing values are filled.

    Attributes
    ----------
    features : list of Feature
    known : ndarray of shape (n_rows, n_columns)
        Numbers and codes; NaN is missing.
    typical : ndarray of shape (n_columns,)
        Median or most frequent code; NaN if the column is empty.
    """

    features: list[Feature]
    known: Floats
    typical: Floats

    @classmethod
    def of(cls, known: Floats, features: Sequence[Feature]) -> Donors:
        """Collect the values of training rows."""
        return cls(list(features), known, _typical_values(known, features))

    def fill_roughly(self, known: Floats, classes: NDArray[np.intp] | None) -> Floats:
        """Fill missing values with medians and most frequent categories, of the row's class if classes are passed."""
        values = np.where(np.isnan(known), self.typical, known)
        if classes is not None:
            for c in range(classes.max() + 1):
                rows = np.flatnonzero(classes == c)
                typical = _typical_values(known[rows], self.features)
                typical = np.where(np.isnan(typical), self.typical, typical)
                values[rows] = np.where(np.isnan(known[rows]), typical, known[rows])
        return values

    def filled(self, known: Floats, values: Floats, near: Proximities, n_jobs: int | None) -> Floats:
        """Fill missing values from near training rows; without a near row, `values` are used."""
        missing = np.isnan(known)
        columns = [j for j in np.flatnonzero(missing.any(axis=0)) if not np.isnan(self.typical[j])]
        donors = [_DonorColumn.of(self.known[:, j], is_code(self.features[j])) for j in columns]

        filled = values.copy()
        for first, last, found in near.each_block(n_jobs, lambda block: [donor.mean(block) for donor in donors]):
            for j, value in zip(columns, found, strict=True):
                use = missing[first:last, j] & ~np.isnan(value)
                filled[first:last, j][use] = value[use]
        return filled


@dataclass(frozen=True, eq=False)
class _DonorColumn:
    """One column of the training rows: one-hot codes, or numbers."""

    codes: csr_array | None
    numbers: Floats
    known: Floats

    @classmethod
    def of(cls, column: Floats, is_code: bool) -> _DonorColumn:
        known = ~np.isnan(column)
        if not is_code:
            return cls(None, np.where(known, column, 0.0), known.astype(np.float64))
        rows = np.flatnonzero(known)
        codes = column[rows].astype(np.int64)
        shape = (len(column), int(codes.max()) + 1)
        return cls(csr_array((np.ones(len(rows)), (rows, codes)), shape=shape), column[rows], known.astype(np.float64))

    def mean(self, block: csr_array) -> Floats:
        """Return the mean, or the code of most weight, weighted by proximities; NaN if they are all 0."""
        if self.codes is not None:
            weight = (block @ self.codes).toarray()
            return np.where(weight.max(axis=1) > 0, weight.argmax(axis=1), np.nan)
        total = block @ self.known
        mean = np.divide(row_dots(block, self.numbers), total, out=np.full(len(total), np.nan), where=total > 0)
        known = self.numbers[self.known > 0]
        return np.asarray(np.clip(mean, known.min(), known.max()))  # so that rounding does not change a constant


def is_code(feature: Feature) -> bool:
    return feature.kind != "number"


def _typical_values(known: Floats, features: Sequence[Feature]) -> Floats:
    typical = np.full(known.shape[1], np.nan)
    for j, feature in enumerate(features):
        present = known[~np.isnan(known[:, j]), j]
        if len(present):
            typical[j] = np.bincount(present.astype(np.int64)).argmax() if is_code(feature) else np.median(present)
    return typical


Forest = RandomForestClassifier | RandomForestRegressor
_MOST_CLASSES = 20  # integers with more distinct values are a numeric target


@estimator
class ProximityImputer(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Fill missing values by the proximities of a random forest.

    Each column is first filled with its median (categories: the most frequent value). Then a forest is grown, and each
    missing value is replaced by the mean of the other rows' values, weighted by their proximity, which measures how
    often two rows share a leaf (categories: the value with the largest weight). Growing the forest and replacing
    the values are repeated (Breiman and Cutler 2003). Without a target, the forest learns to distinguish the rows from
    rows whose columns were shuffled.

    Notes
    -----
    The result is a table of the same library with the same dtypes, in which only missing cells have changed. In columns
    of integers, means are rounded. `fit_transform` fills the training rows during the fit; `transform` treats all rows
    as new, so that the two fill training rows slightly differently.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import ProximityImputer
    >>> X = np.array([[1.0, 1.0], [1.1, np.nan], [0.9, 1.0], [5.0, 9.0], [5.2, np.nan], [4.9, 9.0]])
    >>> y = ["a", "a", "a", "b", "b", "b"]
    >>> ProximityImputer(min_samples_leaf=1, random_state=0).fit_transform(X, y)[:, 1].round()
    array([1., 1., 1., 9., 9., 9.])
    """

    n_estimators: int = parameter(COUNT, default=100)
    n_iter: int = parameter(at_least(1), default=5)
    task: Literal["auto", "classification", "regression"] = parameter(
        StrOptions({"auto", "classification", "regression"}), default="auto"
    )
    kind: Kind = parameter(StrOptions({"gap", "all"}), default="gap")
    min_samples_leaf: int = parameter(at_least(1), default=5)
    random_state: RandomState = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    categorical_features: Iterable[Any] | None = parameter("array-like", None, default=None)

    def fit(self, X: TableLike, y: ColumnLike = None) -> Self:
        """Grow the forests.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows: a NumPy array, a pandas, polars or pyarrow table, a list of rows or a dict of columns.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their target, without missing values.

        Returns
        -------
        self
            The fitted imputer.
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: TableLike, y: ColumnLike = None) -> Any:
        """Grow the forests and fill the missing values of the training rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their target.

        Returns
        -------
        table
            A table of the same library as `X`.
        """
        X = _rereadable(X)
        table, values = self._fit(X, y)
        return self._filled_table(X, table, values)

    def _fit(self, X: TableLike, y: ColumnLike) -> tuple[RawTable, Floats]:
        self._validate_params()
        table = _read(X)
        schema = Schema.learn(table, categorical_features=self.categorical_features)
        known = np.column_stack(column_values(schema, table, type(self).__name__, "missing"))
        classes = None if y is None else self._classes(y)
        _warn_of_empty(schema)
        donors = Donors.of(known, schema.features)
        values = donors.fill_roughly(known, classes if self.kind == "all" else None)
        random = check_random_state(self.random_state)
        incomplete = np.flatnonzero(np.isnan(known).any(axis=1))
        for _ in range(self.n_iter):
            forest = self._grow(schema, values, y, classes is not None, random)
            leaves = self._training_leaves(forest, values)
            if len(incomplete) == 0:
                break
            near = Proximities.between(leaves.take(incomplete), leaves, self.kind, False)
            values[incomplete] = donors.filled(known[incomplete], values[incomplete], near, self.n_jobs)
        self._set_fitted(schema, forest, donors, leaves)
        return table, values

    def _training_leaves(self, forest: Forest, values: Floats) -> RowLeaves:
        """Find the leaves of the training rows, and how often the rows were drawn."""
        leaves = row_leaves(forest, values, "all")
        if self.kind == "all":
            return leaves
        drawn = forest._draws.counts_by_row(leaves.n_trees)[: len(values)]  # without the shuffled rows, if any
        return replace(leaves, drawn=drawn)

    _set_schema = TableEstimator._set_schema

    def _set_fitted(self, schema: Schema, forest: Forest, donors: Donors, leaves: RowLeaves) -> None:
        self._set_schema(schema)
        self.forest_, self._donors, self._donor_leaves = forest, donors, leaves

    def _classes(self, y: ColumnLike) -> NDArray[np.intp] | None:
        """Return the class of each row; None if the target is numeric."""
        target = argument_array(y, "y")
        if self.task == "regression":
            return None
        if self.task == "auto" and target.dtype.kind in "fiu":
            distinct = np.unique(target)
            if len(distinct) > _MOST_CLASSES or (distinct != np.floor(distinct)).any():
                return None
        if target.ndim == 2 and target.shape[1] > 1:
            target = np.unique(target.astype(str), axis=0, return_inverse=True)[1]
        return np.unique(target.reshape(-1).astype(str), return_inverse=True)[1].reshape(-1)

    def _grow(
        self, schema: Schema, values: Floats, y: ColumnLike, has_classes: bool, random: np.random.RandomState
    ) -> Forest:
        kind: type[Forest] = RandomForestClassifier if has_classes or y is None else RandomForestRegressor
        codes = [j for j, feature in enumerate(schema.features) if feature.kind == "category"]
        seed = int(random.randint(np.iinfo(np.int32).max))
        forest = kind(
            n_estimators=self.n_estimators,
            min_samples_leaf=self.min_samples_leaf,
            max_features="sqrt" if kind is RandomForestClassifier else 1 / 3,
            random_state=seed,
            n_jobs=self.n_jobs,
            categorical_features=codes or None,
        )
        if y is not None:
            return forest.fit(values, y)
        shuffle = np.random.RandomState(seed)
        shuffled = np.column_stack([shuffle.permutation(column) for column in values.T])
        return forest.fit(np.vstack([values, shuffled]), np.repeat([1, 0], len(values)))

    def transform(self, X: TableLike) -> Any:
        """Fill the missing values of rows, without their target.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows. Categories that did not occur during `fit` are not changed.

        Returns
        -------
        table
            A table of the same library as `X`.
        """
        check_is_fitted(self)
        X = _rereadable(X)
        table = _read(X)
        known = np.column_stack(column_values(self.schema_, table, type(self).__name__, "missing"))
        values = self._donors.fill_roughly(known, None)
        incomplete = np.flatnonzero(np.isnan(known).any(axis=1))
        for _ in range(self.n_iter if len(incomplete) else 0):
            before = values[incomplete]
            leaves = row_leaves(self.forest_, before, "all")
            near = Proximities.between(leaves, self._donor_leaves, self.kind, False)
            values[incomplete] = self._donors.filled(known[incomplete], before, near, self.n_jobs)
            if np.array_equal(values[incomplete], before, equal_nan=True):
                break
        return self._filled_table(X, table, values)

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        saved, leaves = self.forest_._saved_model(), self._donor_leaves
        leaf = leaves.nodes - self.forest_.forest_.root[:-1]
        header = {
            **opening(self, self.get_params(deep=False)),
            "kind": "imputer",
            "schema": self.schema_.to_dict(),
            **_SAVED.to_header({"known": self._donors.known, "leaf": leaf.astype(np.uint32), "drawn": leaves.drawn}),
            "forest": self.forest_._header() | saved.header(),
        }
        return header, saved.model.trees()

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        imputer: Self = unfitted(cls, header)
        schema = Schema.from_dict(field(header, "schema", dict))
        about = field(header, "forest", dict)
        saved = SavedModel.from_header(about, file)
        if not isinstance(saved.model, FittedForest) or saved.schema.n_features != schema.n_features or schema.pool:
            refuse("is damaged: its forest does not match its columns")
        trees = saved.model
        entries = _SAVED.from_header(header, n_features=schema.n_features, n_trees=trees.n_trees)
        known, leaf, drawn = entries["known"], entries["leaf"].astype(np.int64), entries["drawn"]
        _check_codes(known, schema)
        leaves = RowLeaves(leaf + trees.root[:-1], trees.node_count, drawn)
        _check_leaves(leaves, len(known), trees)
        if (imputer.kind == "gap") != (drawn is not None):
            refuse("is damaged: it lacks the samples of the trees, or has them although its kind does not use them")
        forest = class_named(about, TableEstimator)._of_saved(about, saved)
        if not isinstance(forest, Forest):
            refuse("is damaged: its forest does not match its columns")
        imputer._set_fitted(schema, forest, Donors.of(known, schema.features), leaves)
        return imputer

    def _unpickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if "_donors" not in state:
            return state
        schema, forest, donors, leaves = (state[name] for name in ("schema_", "forest_", "_donors", "_donor_leaves"))
        known, trees = donors.known, getattr(forest, "forest_", None)
        if not isinstance(trees, FittedForest) or forest.n_features_in_ != schema.n_features:
            refuse("is damaged: its forest does not match its columns")
        if not isinstance(known, np.ndarray) or known.dtype != np.float64 or known.shape[1:] != (schema.n_features,):
            refuse("is damaged: its training rows do not match its columns")
        _check_codes(known, schema)
        _check_leaves(leaves, len(known), trees)
        return state | {"_donors": Donors.of(known, schema.features)}

    def _about(self) -> About:
        return About(
            "imputer",
            why_no_trees="The file holds an imputer, which has no single tree to show. Use it in Python.",
            is_shown=False,
        )

    def _filled_table(self, X: TableLike, table: RawTable, values: Floats) -> Any:
        expected = self.schema_.names if self.schema_.has_names else None
        order = match_columns(table.names, table.n_columns, expected, self.n_features_in_, type(self).__name__)
        fills: dict[int, tuple[NDArray[np.intp], list[Any]]] = {}
        for j, feature in enumerate(self.schema_.features):
            position = j if order is None else order[j]
            column = table.column(position)
            rows = np.flatnonzero(missing_rows(column))
            if len(rows) and not feature.empty:
                is_whole = isinstance(column, NumberColumn) and column.values.dtype.kind in "iu"
                fills[position] = (rows, _cells(feature, values[rows, j], is_whole))
        return pick_table(X).filled(fills)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _cells(feature: Feature, values: Floats, is_whole: bool) -> list[Any]:
    if feature.categories:
        return [feature.categories[int(code)] for code in values]
    if feature.kind == "boolean":
        return [bool(value) for value in values]
    if feature.clock:
        return cells_of(values, feature.resolution, feature.clock)
    cells: list[Any] = np.rint(values).astype(np.int64).tolist() if is_whole else values.tolist()
    return cells


def _read(X: TableLike) -> RawTable:
    if issparse(X):
        raise TypeError(
            "Sparse data was passed for X, but missing values are filled in dense tables only. Use toarray()."
        )
    return read_table(X)


def _rereadable(X: TableLike) -> Any:
    """Return a table that can be read twice: once for its values, once to be filled."""
    is_stream = hasattr(X, "__arrow_c_stream__") and not hasattr(X, "shape")
    return pick_table(X).native if is_stream else X


def _warn_of_empty(schema: Schema) -> None:
    empty = [feature.name for feature in schema.features if feature.empty]
    if empty:
        warn(f"These columns are entirely missing and are not filled: {listed(empty)}.")


_SAVED = saved_fields(
    known=array("float64", "n_rows", "n_features", finite=False),
    leaf=array("uint32", "n_rows", "n_trees"),
    drawn=nullable(array("uint32", "n_rows", "n_trees")),
)


def _check_leaves(leaves: RowLeaves, n_rows: int, trees: FittedForest) -> None:
    """Refuse leaves of the training rows that the forest does not have: SciPy does not check them."""
    nodes, drawn = leaves.nodes, leaves.drawn
    wanted = (n_rows, trees.n_trees)
    if getattr(nodes, "dtype", None) != np.int64 or nodes.shape != wanted or leaves.n_nodes != trees.node_count:
        refuse("is damaged: the leaves of its training rows do not match its forest")
    root = trees.root.astype(np.int64)
    if (nodes < root[:-1]).any() or (nodes >= root[1:]).any():
        refuse("is damaged: a training row is in a leaf that does not exist")
    if drawn is not None and (getattr(drawn, "dtype", None) != np.uint32 or drawn.shape != wanted):
        refuse("is damaged: the samples of its trees do not match its training rows")


def _check_codes(known: Floats, schema: Schema) -> None:
    if len(known) == 0:
        refuse("is damaged: it has no training rows")
    for values, feature in zip(known.T, schema.features, strict=True):
        if feature.kind == "number":
            continue
        n_codes = 2 if feature.kind == "boolean" else len(feature.categories)
        if not np.isin(values[~np.isnan(values)], np.arange(n_codes)).all():
            refuse(f"is damaged: column {feature.name!r} holds a code that stands for no category")
