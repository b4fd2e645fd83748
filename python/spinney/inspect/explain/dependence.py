"""Partial dependence: the mean prediction when all rows have the same value in one column, or in two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Feature
from spinney._data.cells import read_cells
from spinney._data.columns import listed
from spinney._data.display import Backend, ShownAsTable, frame_of, plural
from spinney._data.feature import feature_values
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.parameters import require_whole
from spinney._estimator.target import read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.forest import FittedForest
from spinney._model.tree import FittedTree
from spinney.inspect.draw import explanation as charts
from spinney.inspect.explain.target_model import (
    ModelQuery,
    Points,
    ResponseMethod,
    Rows,
    cells_of_feature,
    text_of_value,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class PartialDependence(ShownAsTable):
    """Result of `partial_dependence`.

    Attributes
    ----------
    columns : list of str
        One column, or two.
    grid : list of ndarray
        Values of each column: numbers, dates, or names of categories.
    average : ndarray of shape (n_values,), (n_values, n_values_2) or (…, n_outputs)
        Mean prediction over the rows at each value, or pair of values.
    individual : ndarray of shape (n_rows, …), or None
        With ``individual=True``: the predictions of each row (individual conditional expectations).
    outputs : list or None
        Classes, or numbers of outputs, along the last axis; None: there is one.
    of : str
        Description of what is averaged.
    method : {"trees", "brute", "recursion"}
        How the averages were computed. "trees": one pass of the rows through the trees for many values. "brute": a
        prediction of all rows for each value, which gives the same numbers. "recursion": without rows; at splits on
        other columns both branches are followed, weighted by their training rows.
    numbers : list of ndarray
        The grid as numbers: dates as seconds since 1970, categories as codes.
    deciles : list of ndarray of shape (9,)
        Deciles of the known values of each column, as numbers; empty for categories.
    is_stepped : bool
        Whether the model consists of trees with constant leaves, so that it is drawn as steps.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.RandomForestClassifier(random_state=0).fit(X, y)
    >>> dependence = spinney.partial_dependence(model, X, "island", output="Gentoo")
    >>> dict(zip(dependence.grid[0], dependence.average.round(2).tolist()))
    {'Biscoe': 0.39, 'Dream': 0.23, 'Torgersen': 0.25}
    """

    columns: list[str]
    grid: list[NDArray[Any]]
    average: Floats
    individual: Floats | Any = field(repr=False)  # or None: Any, so that users can index it without a check
    outputs: list[Any] | None
    of: str
    method: str
    numbers: list[Floats] = field(repr=False)
    deciles: list[Floats] = field(repr=False)
    features: list[Feature] = field(repr=False)
    is_stepped: bool = False

    def __repr__(self) -> str:
        shape = " by ".join(plural(len(values), "value") for values in self.grid)
        return f"<PartialDependence of the {self.of} on {' and '.join(self.columns)}: {shape}>"

    def texts(self, axis: int = 0) -> list[str]:
        """Return the values of a column as text.

        Parameters
        ----------
        axis : int, default=0
            The first or the second column.

        Returns
        -------
        list of str
            One text per value.
        """
        return [text_of_value(self.features[axis], float(number)) for number in self.numbers[axis]]

    def is_category(self, axis: int = 0) -> bool:
        """Return whether a column has categories or booleans.

        Parameters
        ----------
        axis : int, default=0
            The first or the second column.

        Returns
        -------
        bool
            True also for ordered categories.
        """
        return bool(self.features[axis].categories) or self.features[axis].kind == "boolean"

    def centred(self) -> PartialDependence:
        """Return the predictions, mean and by row, minus those at the first value.

        Curves of different rows are then easier to compare.

        Returns
        -------
        PartialDependence
            0 at the first value, or pair of values.
        """
        origin = (slice(0, 1),) * len(self.columns)
        average, individual = self.average - self.average[origin], self.individual
        if individual is not None:
            individual = individual - individual[slice(None), *origin]
        return replace(self, average=average, individual=individual, of=f"change of the {self.of}")

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the averages as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per value (or pair of values) and output. Columns: the explained column or columns, `output` if
            there are several outputs, and `average`.
        """
        indices = np.meshgrid(*(np.arange(n) for n in self.average.shape), indexing="ij")
        columns: dict[str, list[Any]] = {
            name: [self.grid[axis].tolist()[p] for p in indices[axis].ravel()] for axis, name in enumerate(self.columns)
        }
        if self.outputs is not None:
            columns["(output)"] = [self.outputs[p] for p in indices[-1].ravel()]
        return frame_of(columns | {"(average)": self.average.ravel().tolist()}, backend)

    def plot(self, *, output: object = None, max_lines: int = 100, ax: Axes | None = None) -> Axes:
        """Plot the averages: a curve, a point per category, or a map of two columns.

        Parameters
        ----------
        output : class label or number of an output, optional
            The output to plot; None: a curve for each. A map of two columns shows a single output.
        max_lines : int, default=100
            Maximum number of curves of single rows, if there are any: rows at regular intervals of the table.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        shown = self if output is None else self.output(output)
        return charts.draw_curves(shown, max_lines, ax) if len(self.columns) == 1 else charts.draw_map(shown, ax)

    def output(self, name: object) -> PartialDependence:
        """Return the partial dependence of one class or output.

        Parameters
        ----------
        name : class label or number of an output
            One of `outputs`.

        Returns
        -------
        PartialDependence
            Without the last axis.
        """
        if self.outputs is None or name not in self.outputs:
            known = "there is only one" if self.outputs is None else f"they are {', '.join(map(repr, self.outputs))}"
            raise ValueError(f"There is no output {name!r}: {known}.")
        k = self.outputs.index(name)
        individual = None if self.individual is None else self.individual[..., k]
        of = self.of.replace("the class", f"class {name}") if "the class" in self.of else f"{self.of} {name}"
        return replace(self, average=self.average[..., k], individual=individual, outputs=None, of=of)


def partial_dependence(
    model: object,
    X: TableLike,
    columns: object,
    *,
    individual: bool = False,
    grid: Literal["quantiles", "even"] | Sequence[Any] | NDArray[Any] = "quantiles",
    n_points: int = 50,
    percentiles: tuple[float, float] = (0.05, 0.95),
    sample_weight: ColumnLike = None,
    output: object = None,
    response_method: ResponseMethod = "auto",
    method: Literal["auto", "brute", "recursion"] = "auto",
) -> PartialDependence:
    """Return the mean prediction of a model when all rows have the same value in one column, or in two.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library: it needs `predict`.
    X : table of shape (n_samples, n_features)
        Rows to average over, such as the training or the test set.
    columns : str, int, or pair of these
        A column by name or position, or two of them.
    individual : bool, default=False
        Whether to return the predictions of single rows too (individual conditional expectations).
    grid : {"quantiles", "even"} or values, default="quantiles"
        Values of the column at which predictions are averaged. If the column has at most `n_points` different values,
        or categories, all of them. Otherwise "quantiles": `n_points` of the values that occur, at evenly spaced
        quantiles; "even": `n_points` evenly spaced values. A sequence: these values; for two columns, a pair of
        sequences.
    n_points : int, default=50
        Maximum number of values of a column of numbers or dates. The grid of two columns has up to the square of this
        number of points.
    percentiles : pair of float, default=(0.05, 0.95)
        Quantile levels of the first and the last value, if not all values are used.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the mean and in the quantiles.
    output : class label, or number of an output, optional
        Class or output to explain. None: the second of two classes; otherwise all classes or outputs.
    response_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        Method that predicts. "auto": the first that a classifier has, in this order; "predict" for other models. With
        ``method="recursion"``, boosted classifiers use "decision_function".
    method : {"auto", "brute", "recursion"}, default="auto"
        "brute": predict all rows for each value. "auto": a fast algorithm with bit-identical results for trees, forests
        and boosted trees of spinney; "brute" for other models. "recursion": use no rows; at splits on other columns,
        follow both branches, weighted by their training rows (in linear leaves, other columns have their mean in the
        leaf). The results differ if columns are dependent. It requires a tree without surrogates, a forest, or boosted
        trees, whose scores are averaged.

    Returns
    -------
    PartialDependence
        Has `grid`, `average`, optionally `individual`, `to_frame` and `plot`.

    See Also
    --------
    interaction_strength : Which columns interact.
    sklearn.inspection.partial_dependence : The same numbers on an evenly spaced grid.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[1, 0], [2, 0], [3, 1], [4, 1]], [10, 20, 30, 40]
    >>> model = spinney.DecisionTreeRegressor().fit(X, y)
    >>> spinney.partial_dependence(model, X, 0).average
    array([10., 20., 30., 40.])
    """
    if method not in ("auto", "brute", "recursion"):
        raise ValueError(f"method must be 'auto', 'brute' or 'recursion', not {method!r}.")
    _check_grid(n_points, percentiles)
    query = ModelQuery(model, X, _response(model, response_method, method), output)
    chosen = _read_columns(query, columns)
    weight = read_weights(sample_weight, query.n_rows)
    specs = [grid] * len(chosen) if isinstance(grid, str) or len(chosen) == 1 else list(grid)
    if len(specs) != len(chosen):
        raise ValueError("grid must be a pair of sequences of values, one for each of the two columns.")
    grids = [make_grid(query, j, spec, n_points, percentiles, weight) for j, spec in zip(chosen, specs, strict=True)]
    numbers = [grid_numbers for grid_numbers, _ in grids]
    points = points_of(chosen, grids)
    shape = tuple(map(len, numbers))
    by_row: Floats | None = None
    if method == "recursion":
        if individual or weight is not None:
            raise ValueError("method='recursion' uses no rows, so it takes neither individual nor sample_weight.")
        average, how = _by_training_weight(query, points), "recursion"
    else:
        how = "trees" if method == "auto" and query.predicts_by_trees else "brute"
        average, by_row = averages(query, points, weight, individual, fast=method == "auto")
    last_axis = () if query.outputs is None else (query.n_outputs,)
    return PartialDependence(
        [query.feature(j).name for j in chosen],
        [cells_of_feature(query.feature(j), values) for j, values in zip(chosen, numbers, strict=True)],
        average.reshape(*shape, *last_axis),
        None if by_row is None else by_row.reshape(query.n_rows, *shape, *last_axis),
        query.outputs,
        query.of,
        how,
        numbers,
        [_deciles(query, j) for j in chosen],
        [query.feature(j) for j in chosen],
        query.has_trees and not query.model._fitted.has_linear_leaves,
    )


def averages(
    query: ModelQuery, points: Points, weight: Floats | None, individual: bool = False, fast: bool = True
) -> tuple[Floats, Floats | None]:
    """Return the mean predictions, (n_points, n_outputs), and those of each row, (n_rows, n_points, n_outputs)."""
    mean = np.empty((len(points), query.n_outputs))
    by_row = np.empty((query.n_rows, len(points), query.n_outputs)) if individual else None
    for begin, batch in query.predict_at_points(points, fast):
        by_output = np.ascontiguousarray(batch.transpose(0, 2, 1))  # the same order of sums for either method
        mean[begin : begin + len(batch)] = np.average(by_output, axis=2, weights=weight)
        if by_row is not None:
            by_row[:, begin : begin + len(batch)] = batch.transpose(1, 0, 2)
    return mean, by_row


def _read_columns(query: ModelQuery, columns: Any) -> list[int]:
    columns = [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)
    if len(columns) not in (1, 2):
        raise ValueError(f"columns must be one column or a pair of columns, not {len(columns)} of them.")
    chosen = [query.column(column) for column in columns]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"columns names {query.feature(chosen[0]).name!r} twice. Pass two different columns, or one.")
    return chosen


def _check_grid(n_points: int, percentiles: tuple[float, float]) -> None:
    require_whole("n_points", n_points, 2)
    low, high = percentiles
    if not 0 <= low < high <= 1:
        raise ValueError(f"percentiles must be two numbers with 0 <= low < high <= 1, not {percentiles!r}.")


def _response(model: object, response_method: str, method: str) -> str:
    """Return the method that predicts: recursion averages the scores of boosted classifiers."""
    has_scores = hasattr(getattr(model, "boosting_", None), "scores") and hasattr(model, "decision_function")
    is_automatic = method == "recursion" and response_method == "auto"
    return "decision_function" if is_automatic and has_scores else response_method


def _deciles(query: ModelQuery, column: int) -> Floats:
    numbers = query.numbers(column)
    known = numbers[~np.isnan(numbers)]
    if query.feature(column).categories or len(known) == 0:
        return np.empty(0)
    return np.quantile(known, np.arange(1, 10) / 10, method="inverted_cdf")


Grid = tuple[Floats, Rows]  # values, ascending or in the order of the categories; a row with each value, or -1


def make_grid(
    query: ModelQuery, column: int, spec: Any, n_points: int, percentiles: tuple[float, float], weight: Floats | None
) -> Grid:
    """Return values of a column: all that occur if they are few or categories, else quantiles or an even grid."""
    feature, numbers = query.feature(column), query.numbers(column)
    if not isinstance(spec, str):
        if len(spec) == 0:
            raise ValueError(f"grid has no values for column {feature.name!r}.")
        return _with_rows(numbers_of_cells(feature, spec, "grid"), numbers)
    if spec not in ("quantiles", "even"):
        raise ValueError(f"grid must be 'quantiles', 'even' or values, not {spec!r}.")
    weight = np.ones(len(numbers)) if weight is None else weight
    known = ~np.isnan(numbers) & (weight > 0)
    present = numbers[known]
    if len(present) == 0:
        raise ValueError(f"Column {feature.name!r} has no known values. Pass other columns.")
    distinct = np.unique(present)
    if feature.kind != "category" and len(distinct) > n_points:
        n_levels = 2 if spec == "even" else n_points
        distinct = np.unique(_quantiles(present, np.linspace(*percentiles, n_levels), weight[known]))
        if spec == "even" and len(distinct) > 1:
            distinct = np.linspace(distinct[0], distinct[-1], n_points)
    return _with_rows(distinct, numbers)


def _quantiles(values: Floats, levels: Floats, weight: Floats) -> Floats:
    """Return weighted quantiles that are values themselves (the inverted distribution function)."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    indices = np.searchsorted(cumulative, levels * cumulative[-1] * (1 - 1e-12), side="left")
    return np.asarray(values[order][np.minimum(indices, len(values) - 1)])


def numbers_of_cells(feature: Feature, values: Any, parameter: str) -> Floats:
    """Return cells of a column as numbers; raise if one is missing, or an unknown category."""
    cells = np.empty(len(values), dtype=object)
    cells[:] = list(values)
    label = f"{parameter} for column {feature.name!r}"
    numbers = feature_values(feature, read_cells(cells, label), len(cells), "missing", label)
    if np.isnan(numbers).any():
        invalid = cells[int(np.argmax(np.isnan(numbers)))]
        known = f" Its categories are {listed(feature.categories)}." if feature.categories else ""
        raise ValueError(f"The {label} has {invalid!r}, which is not a value of that column.{known}")
    return numbers


def _with_rows(values: Floats, numbers: Floats) -> Grid:
    """Return values with a row for each."""
    order = np.argsort(numbers, kind="stable")  # NaN comes last
    rows = order[np.minimum(np.searchsorted(numbers[order], values), len(numbers) - 1)]
    return values, np.where(numbers[rows] == values, rows, -1)


def points_of(columns: list[int], grids: list[Grid]) -> Points:
    """Return all combinations of the values of grids; the last column varies fastest."""
    numbers, rows = (np.meshgrid(*values, indexing="ij") for values in zip(*grids, strict=True))
    return Points(columns, [values.ravel() for values in numbers], [of_column.ravel() for of_column in rows])


_MISSING_LEFT, _CATEGORY = 1, 2


def _by_training_weight(query: ModelQuery, points: Points) -> Floats:
    """Return the predictions at points, (n_points, n_outputs), both children weighted at splits on other columns."""
    fitted = query.model._fitted if query.predicts_by_trees else None
    if isinstance(fitted, FittedBoosting) and query.method != "decision_function" and fitted.link != "identity":
        raise ValueError(
            "method='recursion' averages scores, but response_method transforms them. Use "
            "response_method='decision_function', or method='auto'."
        )
    return query.select(_means_by_training_weight(fitted, points, type(query.model).__name__, "auto"))


def recursion_averages(model: Any, grid: NDArray[Any], columns: list[int]) -> Floats:
    """Return the means of a fitted model at points of a grid, (n_points, n_outputs), as scikit-learn asks for them."""
    features = model.schema_.features
    numbers = [numbers_of_cells(features[j], grid[:, k], "grid") for k, j in enumerate(columns)]
    points = Points(columns, numbers, [np.full(len(grid), -1)] * len(columns))
    fitted = model._fitted if model._predicts_alone and model.schema_.pool is None else None
    return _means_by_training_weight(fitted, points, type(model).__name__, "brute")


def _means_by_training_weight(fitted: object, points: Points, name: str, other: str) -> Floats:
    """Return the mean values or scores of a fitted model at points, (n_points, n_outputs).

    `name` is that of the estimator, `other` the method that an error recommends.
    """
    if isinstance(fitted, FittedForest):
        return _sum(fitted.trees(), points) / fitted.n_trees
    if isinstance(fitted, FittedTree) and fitted.splits is None:
        return _sum(fitted.trees(), points)
    if isinstance(fitted, FittedBoosting):
        trees = fitted.trees()
        by_score = [_sum(trees[k :: fitted.n_scores], points) for k in range(fitted.n_scores)]
        return np.asarray(np.column_stack(by_score) + fitted.start)
    raise ValueError(
        f"method='recursion' needs a tree without surrogates, a forest or boosted trees of spinney without an init "
        f"estimator, not this {name}. Use method={other!r}."
    )


def _sum(trees: list[_engine.Tree], points: Points) -> Floats:
    return np.asarray(sum(_tree_mean(tree, points) for tree in trees))


def _tree_mean(tree: _engine.Tree, points: Points) -> Floats:
    """Return the mean of a tree's leaf values at each point, (n_points, value_width), weighted by reach."""
    feature, right = tree.feature, tree.children_right()
    reach = np.zeros((tree.size, len(points)))  # the fraction of a point's weight that reaches each node
    reach[0] = 1.0
    nodes = np.array([0])
    while len(nodes := nodes[feature[nodes] >= 0]):
        left = np.repeat((tree.weight[nodes + 1] / tree.weight[nodes])[:, np.newaxis], len(points), axis=1)
        for j, numbers in zip(points.columns, points.numbers, strict=True):
            for i in np.flatnonzero(feature[nodes] == j):
                left[i] = _goes_left(tree, int(nodes[i]), numbers)
        reach[nodes + 1] = reach[nodes] * left
        reach[right[nodes]] = reach[nodes] * (1.0 - left)
        nodes = np.concatenate([nodes + 1, right[nodes]])
    leaf = np.flatnonzero(feature < 0)
    return np.asarray(reach[leaf].T @ tree.value.reshape(tree.size, -1)[leaf]) + _linear_part(tree, points, reach)


def _linear_part(tree: _engine.Tree, points: Points, reach: Floats) -> Floats:
    """Return what linear leaves add to their constants, (n_points, 1); columns without a value are at their centre."""
    lines: Any = tree.linear_leaves()
    added = np.zeros((len(points), 1))
    if lines is None:
        return added
    number_of = dict(zip(points.columns, points.numbers, strict=True))
    for leaf in np.flatnonzero(np.diff(lines["begin"])):
        change = np.full(len(points), lines["base"][leaf] - tree.value.reshape(-1)[leaf])
        for t in range(lines["begin"][leaf], lines["begin"][leaf + 1]):
            numbers = number_of.get(int(lines["feature"][t]), lines["middle"][t])
            change += lines["slope"][t] * (np.clip(numbers, lines["low"][t], lines["high"][t]) - lines["middle"][t])
        added[:, 0] += reach[leaf] * change
    return added


def _goes_left(tree: _engine.Tree, node: int, numbers: Floats) -> NDArray[np.bool_]:
    """Return which numbers of the split column go left."""
    flags = int(tree.flags[node])
    missing = np.isnan(numbers)
    is_category = flags & _CATEGORY
    left = np.isin(numbers, tree.left_categories(node)) if is_category else numbers <= tree.threshold[node]
    return np.where(missing, bool(flags & _MISSING_LEFT), left)
