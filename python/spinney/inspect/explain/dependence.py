"""Partial dependence: what a model says on average when all rows have the same value in a column, or in two."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Feature
from spinney._data.cells import read_cells
from spinney._data.columns import listed
from spinney._data.display import Backend, frame_of, plural
from spinney._data.feature import feature_values
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.target import read_weights
from spinney._model.boosting import FittedBoosting
from spinney._model.forest import FittedForest
from spinney._model.tree import FittedTree
from spinney.inspect.charts import explanation as charts
from spinney.inspect.explain.target_model import Asked, Points, Rows, cells_of_feature, require_whole, text_of_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """What `partial_dependence` found.

    Attributes
    ----------
    columns : list of str
        One column, or two.
    grid : list of ndarray
        By column, the values asked about: numbers, dates, or categories by name.
    average : ndarray of shape (n_values,), (n_values, n_values_2) or (…, n_outputs)
        Mean answer over the rows at each value, or pair of values.
    individual : ndarray of shape (n_rows, …), or None
        With ``individual=True``: the answers of each row (individual conditional expectations).
    outputs : list or None
        Classes, or numbers of outputs, along the last axis; None: there is one.
    of : str
        What is averaged, in words.
    method : {"trees", "rows", "recursion"}
        How it was found: rows sent down the trees once for many values; rows predicted anew for each value, which gives
        the same numbers; or both ways by training weight at splits on other columns.
    numbers : list of ndarray
        The grid as numbers: dates as seconds since 1970, categories as codes.
    deciles : list of ndarray of shape (9,)
        By column: tenths of the rows that have a value lie between these, as numbers; empty for categories.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.RandomForestClassifier(random_state=0).fit(X, y)
    >>> found = spinney.partial_dependence(model, X, "island", output="Gentoo")
    >>> dict(zip(found.grid[0], found.average.round(2).tolist()))
    {'Biscoe': 0.39, 'Dream': 0.23, 'Torgersen': 0.25}
    """

    columns: list[str]
    grid: list[NDArray[Any]]
    average: Floats
    individual: Floats | None = field(repr=False)
    outputs: list[Any] | None
    of: str
    method: str
    numbers: list[Floats] = field(repr=False)
    deciles: list[Floats] = field(repr=False)
    features: list[Feature] = field(repr=False)

    def __repr__(self) -> str:
        shape = " by ".join(plural(len(values), "value") for values in self.grid)
        return f"<PartialDependence of the {self.of} on {' and '.join(self.columns)}: {shape}>"

    def texts(self, axis: int = 0) -> list[str]:
        """Write the values of a column as people read them.

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
        """Say whether a column holds categories or True and False.

        Parameters
        ----------
        axis : int, default=0
            The first or the second column.

        Returns
        -------
        bool
            True also for categories with an order.
        """
        return bool(self.features[axis].categories) or self.features[axis].kind == "boolean"

    def centred(self) -> PartialDependence:
        """Return the same with the answers at the first value taken away: of the mean, and of each row its own.

        Curves of rows that start apart then show whether they have the same shape.

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
        """Lay the averages out as a table.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per value or pair of values, and output: the column(s), `output` if there are several, `average`.
        """
        places = np.meshgrid(*(np.arange(n) for n in self.average.shape), indexing="ij")
        columns: dict[str, list[Any]] = {
            name: [self.grid[axis].tolist()[p] for p in places[axis].ravel()] for axis, name in enumerate(self.columns)
        }
        if self.outputs is not None:
            columns["(output)"] = [self.outputs[p] for p in places[-1].ravel()]
        return frame_of(columns | {"(average)": self.average.ravel().tolist()}, backend)

    def plot(self, *, output: object = None, max_lines: int = 100, ax: Axes | None = None) -> Axes:
        """Draw the averages: a curve, a point per category, or a map of two columns.

        Parameters
        ----------
        output : class label or number of an output, optional
            Which of several outputs; None: a curve for each. A map shows one.
        max_lines : int, default=100
            Curves of single rows at most, if these were asked for: those of rows at even steps through the table.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        picked = self if output is None else self.output(output)
        return charts.draw_curves(picked, max_lines, ax) if len(self.columns) == 1 else charts.draw_map(picked, ax)

    def output(self, name: object) -> PartialDependence:
        """Return the part that speaks of one class or output.

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
            known = "there is one only" if self.outputs is None else f"they are {', '.join(map(repr, self.outputs))}"
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
    grid: Any = "quantiles",
    n_points: int = 50,
    percentiles: tuple[float, float] = (0.05, 0.95),
    sample_weight: ColumnLike = None,
    output: object = None,
    response_method: str = "auto",
    method: str = "auto",
) -> PartialDependence:
    """Find what a model says on average when all rows are given the same value in a column, or in two.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library: it needs `predict`.
    X : table of shape (n_samples, n_features)
        Rows to average over, such as those of the training or test part.
    columns : str, int, or pair of these
        A column by name or position, or two of them.
    individual : bool, default=False
        Whether to keep the answers of single rows too (individual conditional expectations).
    grid : {"quantiles", "even"} or values, default="quantiles"
        At which values of the column: all that occur, if there are no more than `n_points` or they are categories;
        else so many quantiles, which occur in the table, or as many even steps. Or the values themselves; of two
        columns, a pair of sequences.
    n_points : int, default=50
        Values at most of a column of numbers or dates. Two columns have a grid of its square.
    percentiles : pair of float, default=(0.05, 0.95)
        Share of the rows below the first and the last value, where not all are taken.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the mean and in the quantiles.
    output : class label, or number of an output, optional
        What to explain of a model of several classes or outputs. None: all of them; of two classes the second.
    response_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        What answers. "auto": the shares of the classes, if the model has them; else its scores or values.
    method : {"auto", "brute", "recursion"}, default="auto"
        "auto": trees, forests and boosted trees of spinney take each row down each tree once for up to 64 values;
        the numbers are those of "brute", bit for bit. "brute": predict all rows anew for each value, as is done for
        all other models. "recursion": ask no rows, but at splits on other columns go both ways by training weight:
        for trees without surrogates; of boosted classes, the scores. It differs where columns depend on each other.

    Returns
    -------
    PartialDependence
        Has `grid`, `average` and, if asked for, `individual`; `to_frame` and `plot`.

    See Also
    --------
    interaction_strength : Which columns act together.
    sklearn.inspection.partial_dependence : The same numbers; its grid has even steps.

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
    asked = Asked(model, X, _response(model, response_method, method), output)
    chosen = _read_columns(asked, columns)
    weight = read_weights(sample_weight, asked.n_rows)
    given = [grid] * len(chosen) if isinstance(grid, str) or len(chosen) == 1 else list(grid)
    if len(given) != len(chosen):
        raise ValueError("grid must be a pair of sequences of values, one for each of the two columns.")
    grids = [make_grid(asked, j, g, n_points, percentiles, weight) for j, g in zip(chosen, given, strict=True)]
    numbers = [grid_numbers for grid_numbers, _ in grids]
    points = points_of(chosen, grids)
    shape = tuple(map(len, numbers))
    alone: Floats | None = None
    if method == "recursion":
        if individual or weight is not None:
            raise ValueError("method='recursion' asks no rows: it has no individual curves and takes no sample_weight.")
        average, how = by_training_weight(asked, points), "recursion"
    else:
        how = "trees" if method == "auto" and asked.walks else "rows"
        average, alone = averages(asked, points, weight, individual, fast=method == "auto")
    end = () if asked.outputs is None else (asked.n_outputs,)
    return PartialDependence(
        [asked.feature(j).name for j in chosen],
        [cells_of_feature(asked.feature(j), values) for j, values in zip(chosen, numbers, strict=True)],
        average.reshape(*shape, *end),
        None if alone is None else alone.reshape(asked.n_rows, *shape, *end),
        asked.outputs,
        asked.of,
        how,
        numbers,
        [_deciles(asked, j) for j in chosen],
        [asked.feature(j) for j in chosen],
    )


def averages(
    asked: Asked, points: Points, weight: Floats | None, individual: bool = False, fast: bool = True
) -> tuple[Floats, Floats | None]:
    """Mean answers over the rows, (n_points, n_outputs), and those of each row, (n_rows, n_points, n_outputs)."""
    mean = np.empty((len(points), asked.n_outputs))
    alone = np.empty((asked.n_rows, len(points), asked.n_outputs)) if individual else None
    for begin, found in asked.at_points(points, fast):
        by_output = np.ascontiguousarray(found.transpose(0, 2, 1))  # the same order of sums however it was found
        mean[begin : begin + len(found)] = np.average(by_output, axis=2, weights=weight)
        if alone is not None:
            alone[:, begin : begin + len(found)] = found.transpose(1, 0, 2)
    return mean, alone


def _read_columns(asked: Asked, columns: Any) -> list[int]:
    given = [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)
    if len(given) not in (1, 2):
        raise ValueError(f"columns must be one column or a pair of columns, not {len(given)} of them.")
    chosen = [asked.column(column) for column in given]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"columns names {asked.feature(chosen[0]).name!r} twice. Give two different columns, or one.")
    return chosen


def _check_grid(n_points: int, percentiles: tuple[float, float]) -> None:
    require_whole("n_points", n_points, 2)
    low, high = percentiles
    if not 0 <= low < high <= 1:
        raise ValueError(f"percentiles must be two numbers with 0 <= low < high <= 1, not {percentiles!r}.")


def _response(model: object, response_method: str, method: str) -> str:
    """Boosted classes have training weights in scores alone."""
    has_scores = hasattr(getattr(model, "boosting_", None), "scores") and hasattr(model, "decision_function")
    is_open = method == "recursion" and response_method == "auto"
    return "decision_function" if is_open and has_scores else response_method


def _deciles(asked: Asked, column: int) -> Floats:
    numbers = asked.numbers(column)
    known = numbers[~np.isnan(numbers)]
    if asked.feature(column).categories or len(known) == 0:
        return np.empty(0)
    return np.quantile(known, np.arange(1, 10) / 10, method="inverted_cdf")


Grid = tuple[Floats, Rows]  # values, ascending or in the order of the categories; a row that has each, or -1


def make_grid(
    asked: Asked, column: int, given: Any, n_points: int, percentiles: tuple[float, float], weight: Floats | None
) -> Grid:
    """Choose values of a column: all that occur if they are few or categories, else quantiles or even steps."""
    feature, numbers = asked.feature(column), asked.numbers(column)
    if not isinstance(given, str):
        if len(given) == 0:
            raise ValueError(f"grid has no values for column {feature.name!r}.")
        return _looked_up(numbers_of_cells(feature, given, "grid"), numbers)
    if given not in ("quantiles", "even"):
        raise ValueError(f"grid must be 'quantiles', 'even' or values, not {given!r}.")
    weight = np.ones(len(numbers)) if weight is None else weight
    known = ~np.isnan(numbers) & (weight > 0)
    present = numbers[known]
    if len(present) == 0:
        raise ValueError(f"Column {feature.name!r} has no values to ask the model about. Leave it out.")
    distinct = np.unique(present)
    if feature.kind != "category" and len(distinct) > n_points:
        n_levels = 2 if given == "even" else n_points
        distinct = np.unique(_quantiles(present, np.linspace(*percentiles, n_levels), weight[known]))
        if given == "even" and len(distinct) > 1:
            distinct = np.linspace(distinct[0], distinct[-1], n_points)
    return _looked_up(distinct, numbers)


def _quantiles(values: Floats, levels: Floats, weight: Floats) -> Floats:
    """Quantiles that are values themselves: the least value that so large a share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    places = np.searchsorted(share, levels * share[-1] * (1 - 1e-12), side="left")
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])


def numbers_of_cells(feature: Feature, given: Any, parameter: str) -> Floats:
    """Read values that a caller gives for a column; refuse what is missing, or no category that the model knows."""
    cells = np.empty(len(given), dtype=object)
    cells[:] = list(given)
    label = f"{parameter} for column {feature.name!r}"
    numbers = feature_values(feature, read_cells(cells, label), len(cells), "missing", label)
    if np.isnan(numbers).any():
        wrong = cells[int(np.argmax(np.isnan(numbers)))]
        known = f" Its categories are {listed(feature.categories)}." if feature.categories else ""
        raise ValueError(f"The {label} has {wrong!r}, which is no value of that column.{known}")
    return numbers


def _looked_up(values: Floats, numbers: Floats) -> Grid:
    """Find a row for each value."""
    order = np.argsort(numbers, kind="stable")  # NaN comes last
    place = np.minimum(np.searchsorted(numbers[order], values), len(numbers) - 1)
    rows = order[place]
    return values, np.where(numbers[rows] == values, rows, -1)


def points_of(columns: list[int], grids: list[Grid]) -> Points:
    """Return all combinations of the values of grids, those of the last column fastest."""
    numbers, rows = (np.meshgrid(*values, indexing="ij") for values in zip(*grids, strict=True))
    return Points(columns, [values.ravel() for values in numbers], [place.ravel() for place in rows])


_MISSING_LEFT, _CATEGORY = 1, 2


def by_training_weight(asked: Asked, points: Points) -> Floats:
    """Answers at points, (n_points, n_outputs)."""
    fitted = asked.model._fitted if asked.walks else None
    if fitted is not None and fitted.has_linear_leaves:
        raise ValueError(
            "method='recursion' averages the values of leaves, and those of this model are lines (linear_leaves=True). "
            "Use method='auto'."
        )
    if isinstance(fitted, FittedForest):
        total = _sum(fitted.trees(), points) / fitted.n_trees
    elif isinstance(fitted, FittedTree) and fitted.splits is None:
        total = _sum(fitted.trees(), points)
    elif isinstance(fitted, FittedBoosting) and (asked.method == "decision_function" or fitted.link == "identity"):
        trees = fitted.trees()
        by_score = [_sum(trees[k :: fitted.n_scores], points) for k in range(fitted.n_scores)]
        total = np.column_stack(by_score) + fitted.start
    elif isinstance(fitted, FittedBoosting):
        raise ValueError(
            "method='recursion' averages scores, and this model is asked for what becomes of them. Use "
            "response_method='decision_function', or method='auto'."
        )
    else:
        raise ValueError(
            f"method='recursion' needs a tree without surrogates, a forest or boosted trees of spinney "
            f"that starts at no other model, not this {type(asked.model).__name__}. Use method='auto'."
        )
    return asked._pick(total)


def _sum(trees: list[_engine.Tree], points: Points) -> Floats:
    return np.asarray(sum(_tree_mean(tree, points) for tree in trees))


def _tree_mean(tree: _engine.Tree, points: Points) -> Floats:
    """Mean of a tree's leaves at each point, (n_points, value_width): by the share of the way there that is open."""
    feature, right = tree.feature, tree.children_right()
    share = np.zeros((tree.size, len(points)))
    share[0] = 1.0
    at = np.array([0])
    while len(at := at[feature[at] >= 0]):
        part = np.repeat((tree.weight[at + 1] / tree.weight[at])[:, np.newaxis], len(points), axis=1)
        for j, numbers in zip(points.columns, points.numbers, strict=True):
            for i in np.flatnonzero(feature[at] == j):
                part[i] = goes_left(tree, int(at[i]), numbers)
        share[at + 1] = share[at] * part
        share[right[at]] = share[at] * (1.0 - part)
        at = np.concatenate([at + 1, right[at]])
    leaf = np.flatnonzero(feature < 0)
    return np.asarray(share[leaf].T @ tree.value.reshape(tree.size, -1)[leaf])


def goes_left(tree: _engine.Tree, node: int, numbers: Floats) -> NDArray[np.bool_]:
    """Which numbers of the node's column go left."""
    flags = int(tree.flags[node])
    missing = np.isnan(numbers)
    is_category = flags & _CATEGORY
    left = np.isin(numbers, tree.left_categories(node)) if is_category else numbers <= tree.threshold[node]
    return np.where(missing, bool(flags & _MISSING_LEFT), left)
