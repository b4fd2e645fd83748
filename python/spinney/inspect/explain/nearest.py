"""Training rows that are most similar to a given row, according to a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import spinney._engine as _engine
from spinney._data import Feature, Schema
from spinney._data.columns import is_instance_of
from spinney._data.display import Backend, ShownAsTable, frame_of, plural
from spinney._data.schema import row_cells
from spinney._data.select import Constant, PickTable, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.parameters import require_whole
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.boosting import FittedBoosting
from spinney._model.forest import FittedForest
from spinney._model.model import ModelOfTrees
from spinney.inspect.draw import explanation as charts
from spinney.inspect.explain.target_model import ModelQuery, cells_of_feature, text_of_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class NearestRows(ShownAsTable):
    """Result of `nearest_rows`, the most similar row first.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Positions in the table.
    similarity : ndarray of shape (n,)
        Similarity to the row that was passed: the fraction of the trees in which both reach the same leaf (the
        proximity; weighted for boosted models) or, if `method` is "distance", 1 minus the distance.
    distance : ndarray of shape (n,)
        Mean over the columns of the distance between the values. The distance of two numbers is their difference
        relative to the range between the 5% and 95% quantiles, and at most 1. The distance of two categories is 0 if
        they are equal, else 1.
    target : ndarray of shape (n,), or None
        Target of the rows, if `y` was passed.
    method : {"leaves", "distance"}
        Definition of the similarity.
    columns : list of str
        Column names.
    values, row_values : ndarray of shape (n, n_columns) and (n_columns,)
        The rows and the row that was passed, as numbers: dates as seconds since 1970, categories as codes.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[1, 0], [2, 0], [3, 1], [4, 1]], [10, 20, 30, 40]
    >>> model = spinney.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> spinney.nearest_rows(model, X, [1.4, 0], n=2).rows
    array([0, 1])
    """

    rows: NDArray[np.intp]
    similarity: Floats
    distance: Floats
    target: NDArray[Any] | Any  # or None: Any, so that users can index it without a check
    method: str
    columns: list[str]
    values: Floats = field(repr=False)
    row_values: Floats = field(repr=False)
    features: list[Feature] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<NearestRows: {plural(len(self), 'row')} by {self.method}>"

    def text_of(self, row: int | None, column: int) -> str:
        """Return a value as text.

        Parameters
        ----------
        row : int or None
            Position in `rows`; None: the row that was passed.
        column : int
            Position of the column.

        Returns
        -------
        str
            The text.
        """
        number = self.row_values[column] if row is None else self.values[row, column]
        return text_of_value(self.features[column], float(number))

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the rows as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            The columns "(row)", "(similarity)", "(distance)", "(target)" if `y` was passed, and those of the table.
        """
        measures = {"row": self.rows, "similarity": self.similarity, "distance": self.distance, "target": self.target}
        columns: dict[str, list[Any]] = {f"({name})": v.tolist() for name, v in measures.items() if v is not None}
        for j, name in enumerate(self.columns):
            columns[name] = cells_of_feature(self.features[j], self.values[:, j]).tolist()
        return frame_of(columns, backend)

    def plot(self, *, max_columns: int = 12, ax: Axes | None = None) -> Axes:
        """Plot the values of the rows relative to the row that was passed, one line of points per column.

        Parameters
        ----------
        max_columns : int, default=12
            Maximum number of columns: the first ones.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        return charts.draw_nearest(self, max_columns, ax)


def nearest_rows(
    model: object,
    X: TableLike,
    row: object,
    *,
    y: ColumnLike = None,
    n: int = 5,
    method: Literal["auto", "leaves", "distance"] = "auto",
) -> NearestRows:
    """Return the rows of a table that are most similar to a given row, according to a model.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library.
    X : table of shape (n_samples, n_features)
        Rows to search, such as the training set.
    row : int, mapping or sequence
        Position of a row of `X`, which is then excluded; or values by column name, or in the order of the columns.
    y : array-like of shape (n_samples,), optional
        Target of the rows, to be returned with them.
    n : int, default=5
        Number of rows.
    method : {"auto", "leaves", "distance"}, default="auto"
        How similarity is measured. "leaves": by the fraction of the trees in which two rows reach the same leaf; the
        trees of boosted models are weighted by the spread of their leaf values. "distance": by the distance of the
        values, without the model. "auto": "leaves" if the model has trees. Ties are broken by distance, then by
        position.

    Returns
    -------
    NearestRows
        Positions, similarity and values; `to_frame` and `plot`.

    See Also
    --------
    RandomForestClassifier.proximity : Similarity of all rows to each other.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.RandomForestClassifier(random_state=0).fit(X, y)
    >>> spinney.nearest_rows(model, X, 0, y=y, n=3).target.tolist()
    ['Adelie', 'Adelie', 'Adelie']
    """
    if method not in ("auto", "leaves", "distance"):
        raise ValueError(f"method must be 'auto', 'leaves' or 'distance', not {method!r}.")
    require_whole("n", n)
    query = ModelQuery(model, X)
    position = int(row) if isinstance(row, (int, np.integer)) and not isinstance(row, bool) else None
    if position is None:
        one = row_as_table(query, row)
    elif -query.n_rows <= position < query.n_rows:
        position %= query.n_rows
        one = query.table.take(np.array([position]))
    else:
        raise ValueError(f"row is {position}, but X has {query.n_rows} rows. Positions start at 0.")
    row_query = ModelQuery(model, one)
    shared = _shared_leaves(model, query, row_query, method)
    values, row_values = query.all_numbers(), row_query.row_numbers()
    distance = distances(query.schema.features, values, row_values)
    similarity = 1.0 - distance if shared is None else shared
    order = np.lexsort((np.arange(query.n_rows), distance, -similarity))
    order = order[order != position][:n] if position is not None else order[:n]
    return NearestRows(
        order,
        similarity[order],
        distance[order],
        None if y is None else np.asarray(y)[order],
        "distance" if shared is None else "leaves",
        list(query.schema.names),
        values[order],
        row_values,
        list(query.schema.features),
    )


def cells_of_row(schema: Schema, row: Any) -> list[Any] | None:
    """Return the values of a row, by name or in column order, in column order; None if it is a table of one row."""
    if is_instance_of(row, "pyarrow", "Table", "RecordBatch") and row.num_rows == 1:
        row = row.to_pylist()[0]
    n_rows = None
    if not isinstance(row, Mapping) and not is_instance_of(row, "pandas", "Series"):
        with suppress(TypeError, ValueError):
            n_rows = pick_table(row).n_rows
    if n_rows is None:
        return row_cells(schema, row)
    if n_rows != 1:
        raise ValueError(f"row must be one row, not a table of {n_rows} rows.")
    return None


def row_as_table(query: ModelQuery, row: Any) -> Any:
    """Return a table of one row, of the same kind as the caller's."""
    cells = cells_of_row(query.schema, row)
    if cells is None:
        return row
    first: PickTable = pick_table(query.table.take(np.zeros(1, dtype=np.intp)))
    return first.with_columns({query.table_position(j): Constant(value) for j, value in enumerate(cells)})


def _shared_leaves(model: object, query: ModelQuery, row_query: ModelQuery, method: str) -> Floats | None:
    """Return the weighted fraction of trees in which each row shares the leaf of one row; None: use distances."""
    if method == "distance":
        return None
    leaves = _leaves(model, query)
    if leaves is None and method == "leaves":
        raise ValueError(f"{type(model).__name__} has no leaves. Use method='distance', or a model made of trees.")
    if leaves is None:
        return None
    weight = _tree_weights(model, leaves.shape[1])
    same = leaves == _leaves(model, row_query)
    return np.asarray((same * weight).sum(axis=1) / weight.sum())


def _leaves(model: BaseEstimator, query: ModelQuery) -> NDArray[Any] | None:
    """Return the leaf of each row in each tree, (n_rows, n_trees); None if the model has none."""
    if isinstance(model, TableEstimator):
        fitted = model._fitted
        if not isinstance(fitted, ModelOfTrees):
            return None
        if isinstance(fitted, FittedForest):
            return fitted.engine.apply(query.encoded, model._n_threads)
        return np.column_stack([tree.apply(query.encoded, model._n_threads) for tree in fitted.trees()])
    if hasattr(model, "apply"):
        leaves = model.apply(query.table.native)
    elif hasattr(model, "booster_"):  # LightGBM
        leaves = model.predict(query.table.native, pred_leaf=True)
    else:
        return None
    return np.asarray(leaves).reshape(query.n_rows, -1)


def _tree_weights(model: object, n_trees: int) -> Floats:
    """Return the weight of each tree: for boosting, the standard deviation of its leaf values."""
    fitted = getattr(model, "boosting_", None)
    if not isinstance(fitted, FittedBoosting):
        return np.ones(n_trees)
    weights = np.array([_spread(fitted.engine.tree(t)) for t in range(n_trees)])
    return weights if weights.sum() > 0 else np.ones(n_trees)


def _spread(tree: _engine.Tree) -> float:
    leaf = tree.feature < 0
    fraction = tree.weight[leaf] / tree.weight[leaf].sum()
    mean = (fraction * tree.value[leaf]).sum()
    return float(np.sqrt((fraction * (tree.value[leaf] - mean) ** 2).sum()))


def distances(features: Any, values: Floats, row: Floats) -> Floats:
    """Return the mean distance over the columns of each row from one row, between 0 and 1."""
    total = np.zeros(len(values))
    for j, feature in enumerate(features):
        column, own = values[:, j], row[j]
        gap = np.ones(len(column))
        if np.isnan(own):
            gap[np.isnan(column)] = 0.0
        elif feature.kind == "category":
            gap[column == own] = 0.0
        else:
            known = ~np.isnan(column)
            gap[known] = np.minimum(1.0, np.abs(column[known] - own) / scale_of(column))
        total += gap
    return np.asarray(total / max(1, len(features)))


def scale_of(column: Floats) -> float:
    """Return the range between the 5% and 95% quantiles; the full range if it is 0; 1 if the column is constant."""
    known = column[np.isfinite(column)]
    if len(known) == 0:
        return 1.0
    low, high = np.quantile(known, (0.05, 0.95))
    return float(high - low) or float(np.ptp(known)) or 1.0
