"""Filling missing values from the rows that a forest finds near."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

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
from spinney._forest.proximities import Kind, Proximities, RowLeaves
from spinney._model.file.codec import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.forest import FittedForest
from spinney._model.saving.saved_model import SavedModel
from spinney._tree.growing import at_least


@dataclass(frozen=True, eq=False)
class Donors:
    """The values that training rows have, to be lent to rows that lack them.

    Attributes
    ----------
    features : list of Feature
    known : ndarray of shape (n_rows, n_columns)
        Numbers and codes; NaN is missing.
    usual : ndarray of shape (n_columns,)
        Median or most frequent code; NaN if the column is empty.
    """

    features: list[Feature]
    known: Floats
    usual: Floats

    @classmethod
    def of(cls, known: Floats, features: Sequence[Feature]) -> Donors:
        """Take the values of training rows."""
        return cls(list(features), known, _usual_values(known, features))

    def rough(self, known: Floats, classes: NDArray[np.intp] | None) -> Floats:
        """Fill with what is usual, in the row's class where they are given."""
        values = np.where(np.isnan(known), self.usual, known)
        if classes is not None:
            for c in range(classes.max() + 1):
                rows = np.flatnonzero(classes == c)
                usual = _usual_values(known[rows], self.features)
                usual = np.where(np.isnan(usual), self.usual, usual)
                values[rows] = np.where(np.isnan(known[rows]), usual, known[rows])
        return values

    def filled(self, known: Floats, values: Floats, near: Proximities, n_jobs: int | None) -> Floats:
        """Fill what is not known of rows from near donors; where none is near, `values` stay."""
        lacks = np.isnan(known)
        columns = [j for j in np.flatnonzero(lacks.any(axis=0)) if not np.isnan(self.usual[j])]
        lent = [_Lent.of(self.known[:, j], is_code(self.features[j])) for j in columns]

        filled = values.copy()
        for first, last, found in near.each_block(n_jobs, lambda block: [loan.nearest(block) for loan in lent]):
            for j, value in zip(columns, found, strict=True):
                use = lacks[first:last, j] & ~np.isnan(value)
                filled[first:last, j][use] = value[use]
        return filled


@dataclass(frozen=True, eq=False)
class _Lent:
    """One column of the donors: codes as one column each, or numbers."""

    codes: csr_array | None
    numbers: Floats
    known: Floats

    @classmethod
    def of(cls, column: Floats, is_code: bool) -> _Lent:
        known = ~np.isnan(column)
        if not is_code:
            return cls(None, np.where(known, column, 0.0), known.astype(np.float64))
        rows = np.flatnonzero(known)
        codes = column[rows].astype(np.int64)
        shape = (len(column), int(codes.max()) + 1)
        return cls(csr_array((np.ones(len(rows)), (rows, codes)), shape=shape), column[rows], known.astype(np.float64))

    def nearest(self, block: csr_array) -> Floats:
        """Weighted mean, or code of the most weight; NaN without any weight."""
        if self.codes is not None:
            weight = (block @ self.codes).toarray()
            return np.where(weight.max(axis=1) > 0, weight.argmax(axis=1), np.nan)
        total = block @ self.known
        mean = np.divide(row_dots(block, self.numbers), total, out=np.full(len(total), np.nan), where=total > 0)
        known = self.numbers[self.known > 0]
        return np.asarray(np.clip(mean, known.min(), known.max()))  # against rounding: a constant stays itself


def is_code(feature: Feature) -> bool:
    return feature.kind != "number"


def _usual_values(known: Floats, features: Sequence[Feature]) -> Floats:
    usual = np.full(known.shape[1], np.nan)
    for j, feature in enumerate(features):
        present = known[~np.isnan(known[:, j]), j]
        if len(present):
            usual[j] = np.bincount(present.astype(np.int64)).argmax() if is_code(feature) else np.median(present)
    return usual


Forest = RandomForestClassifier | RandomForestRegressor
_MOST_CLASSES = 20  # whole numbers with more distinct values are a quantity


@estimator
class ProximityImputer(OneToOneFeatureMixin, TransformerMixin, Estimator):
    """Fill missing values with those of near rows, near by the proximities of a forest.

    Each column is first filled with its median (categories: the most frequent). Then a forest is grown, and each
    missing value replaced by the mean of the values that other rows have, weighted by their proximity (categories: the
    value with the most weight); and so on for some rounds (Breiman and Cutler 2003). Without a target, the forest
    learns to tell the rows from rows whose columns were shuffled.

    Notes
    -----
    A table comes back as it is but for the cells that were missing: of the same kind, with the same dtypes. In columns
    of integers, means are rounded. `fit_transform` fills the training rows as the forests were grown; `transform` takes
    any rows as new ones, so that the two fill the training rows a little differently.

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
    task: str = parameter(StrOptions({"auto", "classification", "regression"}), default="auto")
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
        """Grow the forests and fill the rows they are grown on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their target.

        Returns
        -------
        table
            Of the kind of `X`.
        """
        X = _lasting(X)
        table, values = self._fit(X, y)
        return self._written(X, table, values)

    def _fit(self, X: TableLike, y: ColumnLike) -> tuple[RawTable, Floats]:
        self._validate_params()
        table = _read(X)
        schema = Schema.learn(table, categorical_features=self.categorical_features)
        known = np.column_stack(column_values(schema, table, type(self).__name__, "missing"))
        classes = None if y is None else self._classes(y)
        _warn_of_empty(schema)
        donors = Donors.of(known, schema.features)
        values = donors.rough(known, classes if self.kind == "all" else None)
        random = check_random_state(self.random_state)
        lacking = np.flatnonzero(np.isnan(known).any(axis=1))
        for _ in range(self.n_iter):
            forest = self._grow(schema, values, y, classes is not None, random)
            leaves = self._training_leaves(forest, values)
            if len(lacking) == 0:
                break
            near = Proximities.between(leaves.take(lacking), leaves, self.kind, False)
            values[lacking] = donors.filled(known[lacking], values[lacking], near, self.n_jobs)
        self._keep(schema, forest, donors, leaves)
        return table, values

    def _training_leaves(self, forest: Forest, values: Floats) -> RowLeaves:
        """Find the leaves of the training rows, with how often they were drawn."""
        leaves = forest._row_leaves(values, "all")
        if self.kind == "all":
            return leaves
        drawn = forest._draws.counts_by_row(leaves.n_trees)[: len(values)]  # behind them come shuffled rows, if any
        return replace(leaves, drawn=drawn)

    def _keep(self, schema: Schema, forest: Forest, donors: Donors, leaves: RowLeaves) -> None:
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if schema.has_names:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.forest_, self._donors, self._donor_leaves = forest, donors, leaves

    def _classes(self, y: ColumnLike) -> NDArray[np.intp] | None:
        """Class of each row; None if the target is a quantity, or several."""
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
        """Fill rows, whose target is not known.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows. Categories that did not occur at fit stay.

        Returns
        -------
        table
            Of the kind of `X`.
        """
        check_is_fitted(self)
        X = _lasting(X)
        table = _read(X)
        known = np.column_stack(column_values(self.schema_, table, type(self).__name__, "missing"))
        values = self._donors.rough(known, None)
        lacking = np.flatnonzero(np.isnan(known).any(axis=1))
        for _ in range(self.n_iter if len(lacking) else 0):
            before = values[lacking]
            leaves = self.forest_._row_leaves(before, "all")
            near = Proximities.between(leaves, self._donor_leaves, self.kind, False)
            values[lacking] = self._donors.filled(known[lacking], before, near, self.n_jobs)
            if np.array_equal(values[lacking], before, equal_nan=True):
                break
        return self._written(X, table, values)

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        saved, leaves = self.forest_._saved_model(), self._donor_leaves
        header = {
            **opening(self, self.get_params(deep=False)),
            "kind": "imputer",
            "schema": self.schema_.to_dict(),
            "known": array_to_json(self._donors.known),
            "leaf": array_to_json((leaves.nodes - self.forest_.forest_.root[:-1]).astype(np.uint32)),
            "drawn": None if leaves.drawn is None else array_to_json(leaves.drawn),
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
            refuse("is damaged: its forest does not fit its columns")
        known = array_from_json(header.get("known"), ("float64",), (None, schema.n_features))
        _check_codes(known, schema)
        leaves = _leaves_from_json(header, saved.model, len(known))
        if (imputer.kind == "gap") != (leaves.drawn is not None):
            refuse("is damaged: it lacks the rows drawn for each tree, or has them where kind does not need them")
        forest = class_named(about, TableEstimator)._of_saved(about, saved)
        if not isinstance(forest, Forest):
            refuse("is damaged: its forest does not fit its columns")
        imputer._keep(schema, forest, Donors.of(known, schema.features), leaves)
        return imputer

    def _about(self) -> About:
        return About(
            "imputer",
            why_no_trees="The file holds an imputer, which fills tables and has no tree to show. Use it in Python.",
            is_shown=False,
        )

    def _written(self, X: TableLike, table: RawTable, values: Floats) -> Any:
        expected = self.schema_.names if self.schema_.has_names else None
        order = match_columns(table.names, table.n_columns, expected, self.n_features_in_, type(self).__name__)
        fills: dict[int, tuple[NDArray[np.intp], list[Any]]] = {}
        for j, feature in enumerate(self.schema_.features):
            place = j if order is None else order[j]
            column = table.column(place)
            rows = np.flatnonzero(missing_rows(column))
            if len(rows) and not feature.empty:
                is_whole = isinstance(column, NumberColumn) and column.values.dtype.kind in "iu"
                fills[place] = (rows, _cells(feature, values[rows, j], is_whole))
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


def _lasting(X: TableLike) -> Any:
    """Return what can be read twice, once for its values and once to be filled: of a stream, its table."""
    is_stream = hasattr(X, "__arrow_c_stream__") and not hasattr(X, "shape")
    return pick_table(X).native if is_stream else X


def _warn_of_empty(schema: Schema) -> None:
    empty = [feature.name for feature in schema.features if feature.empty]
    if empty:
        warn(f"These columns have no value at all and stay as they are: {listed(empty)}.")


def _check_codes(known: Floats, schema: Schema) -> None:
    if len(known) == 0:
        refuse("is damaged: it has no rows to take values from")
    for values, feature in zip(known.T, schema.features, strict=True):
        present = values[~np.isnan(values)]
        n_codes = 2 if feature.kind == "boolean" else len(feature.categories)
        if feature.kind == "number":
            continue
        if (present != np.floor(present)).any() or (present < 0).any() or (present >= n_codes).any():
            refuse(f"is damaged: column {feature.name!r} holds a code that stands for no category")


def _leaves_from_json(header: dict[str, Any], forest: FittedForest, n_rows: int) -> RowLeaves:
    leaf = array_from_json(header.get("leaf"), ("uint32",), (n_rows, forest.n_trees)).astype(np.int64)
    if (leaf >= np.diff(forest.root.astype(np.int64))).any():
        refuse("is damaged: a row is in a leaf that does not exist")
    drawn = header.get("drawn")
    if drawn is not None:
        drawn = array_from_json(drawn, ("uint32",), (n_rows, forest.n_trees))
    return RowLeaves(leaf + forest.root[:-1], forest.node_count, drawn)
