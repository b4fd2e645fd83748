"""Filling missing values from the rows that a forest finds near."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import RawTable, Schema, read_table
from spinney._data.arguments import given_array
from spinney._data.column_names import listed, match_columns
from spinney._data.columns import NumberColumn
from spinney._data.dates import cells_of
from spinney._data.display.warn import warn
from spinney._data.feature import Feature
from spinney._data.replace import Fills, fill_table, missing_rows
from spinney._data.select import pick_table
from spinney._data.value_arrays import column_values
from spinney._estimator.estimator import Estimator
from spinney._estimator.parameters import COUNT, store_parameters
from spinney._estimator.summary import About
from spinney._forest.proximities.donors import Donors
from spinney._forest.proximities.proximity import Kind, Proximities, Resting, count_draws
from spinney._forest.proximities.saved_imputer import imputer_from_file, imputer_parts
from spinney._forest.random_forests import RandomForestClassifier, RandomForestRegressor

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_MOST_CLASSES = 20  # whole numbers with more distinct values are a quantity


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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [COUNT],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "kind": [StrOptions({"gap", "all"})],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
        "categorical_features": ["array-like", None],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        n_iter: int = 5,
        task: str = "auto",
        kind: Kind = "gap",
        min_samples_leaf: int = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
        categorical_features: Any = None,
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: Any = None) -> Self:
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

    def fit_transform(self, X: Any, y: Any = None) -> Any:
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

    def _fit(self, X: Any, y: Any) -> tuple[RawTable, Floats]:
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
            resting = self._resting_of(forest, values)
            if len(lacking) == 0:
                break
            near = self._between(resting.take(lacking), resting)
            values[lacking] = donors.filled(known[lacking], values[lacking], near, self.n_jobs)
        self._keep(schema, forest, donors, resting)
        return table, values

    def _resting_of(self, forest: Any, values: Floats) -> Resting:
        """Where the training rows rest, with how often they were drawn."""
        resting = forest._resting(values, "all")
        if self.kind == "all":
            return cast(Resting, resting)
        drawn = count_draws(forest._draws, resting.n_trees)[: len(values)]  # behind them come shuffled rows, if any
        return Resting(resting.nodes, resting.n_nodes, drawn)

    def _between(self, rows: Resting, donors: Resting) -> Proximities:
        return Proximities.between(rows, donors, self.kind, False)

    def _keep(self, schema: Schema, forest: Any, donors: Donors, resting: Resting) -> None:
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if schema.has_names:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.forest_, self._donors, self._resting = forest, donors, resting

    def _classes(self, y: Any) -> NDArray[np.intp] | None:
        """Class of each row; None if the target is a quantity, or several."""
        target = given_array(y, "y")
        if self.task == "regression":
            return None
        if self.task == "auto" and target.dtype.kind in "fiu":
            distinct = np.unique(target)
            if len(distinct) > _MOST_CLASSES or (distinct != np.floor(distinct)).any():
                return None
        if target.ndim == 2 and target.shape[1] > 1:
            target = np.unique(target.astype(str), axis=0, return_inverse=True)[1]
        return np.unique(target.reshape(-1).astype(str), return_inverse=True)[1].reshape(-1)

    def _grow(self, schema: Schema, values: Floats, y: Any, has_classes: bool, random: Any) -> Any:
        kind: Any = RandomForestClassifier if has_classes or y is None else RandomForestRegressor
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

    def transform(self, X: Any) -> Any:
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
            near = self._between(self.forest_._resting(before, "all"), self._resting)
            values[lacking] = self._donors.filled(known[lacking], before, near, self.n_jobs)
            if np.array_equal(values[lacking], before, equal_nan=True):
                break
        return self._written(X, table, values)

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        return imputer_parts(self)

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        imputer: Self = imputer_from_file(cls, header, file)
        return imputer

    def _about(self) -> About:
        return About(
            "imputer",
            why_no_trees="The file holds an imputer, which fills tables and has no tree to show. Use it in Python.",
            is_shown=False,
        )

    def _written(self, X: Any, table: RawTable, values: Floats) -> Any:
        expected = self.schema_.names if self.schema_.has_names else None
        order = match_columns(table.names, table.n_columns, expected, self.n_features_in_, type(self).__name__)
        fills: dict[int, Any] = {}
        for j, feature in enumerate(self.schema_.features):
            place = j if order is None else order[j]
            column = table.column(place)
            rows = np.flatnonzero(missing_rows(column))
            if len(rows) and not feature.empty:
                is_whole = isinstance(column, NumberColumn) and column.values.dtype.kind in "iu"
                fills[place] = (rows, _cells(feature, values[rows, j], is_whole))
        chosen: Fills = fills
        return fill_table(pick_table(X), chosen)

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


def _read(X: Any) -> RawTable:
    if issparse(X):
        raise TypeError(
            "Sparse data was passed for X, but missing values are filled in dense tables only. Use toarray()."
        )
    return read_table(X)


def _lasting(X: Any) -> Any:
    """Return what can be read twice, once for its values and once to be filled: of a stream, its table."""
    is_stream = hasattr(X, "__arrow_c_stream__") and not hasattr(X, "shape")
    return pick_table(X).native if is_stream else X


def _warn_of_empty(schema: Schema) -> None:
    empty = [feature.name for feature in schema.features if feature.empty]
    if empty:
        warn(f"These columns have no value at all and stay as they are: {listed(empty)}.")
