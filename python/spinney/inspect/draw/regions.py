"""Decision regions and fitted curves of any models side by side, and the rounds of AdaBoost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from spinney._data import Schema, read_table
from spinney._data.display import one_line, plural
from spinney._data.schema import column_values
from spinney._data.select import Cells, PickTable, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.parameters import column_index
from spinney._estimator.target import read_values
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import VALUE_COLOUR, class_colour, class_look, short
from spinney.inspect.draw.plane import MAX_POINTS, grid_of, limits_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Models: TypeAlias = BaseEstimator | Sequence[BaseEstimator] | Mapping[str, BaseEstimator]
_CURVE_POINTS = 600


def plot_regions(
    models: Models,
    X: TableLike,
    y: ColumnLike = None,
    *,
    vary: Mapping[str, Iterable[Any]] | None = None,
    stages: Sequence[int] | None = None,
    features: Sequence[str | int] | None = None,
    n_points: int = 150,
    max_columns: int = 4,
) -> Figure:
    """Plot what models predict in the plane of two columns, or along one column, with the rows as points.

    Classifiers are drawn as regions, which are paler where the class probability is lower; regressors as a map, or as a
    curve if there is one column; outlier detectors as a map of `decision_function`, with a line where it is 0; density
    estimators (models that have `score_samples` only) as a map or a curve of the density.

    Parameters
    ----------
    models : estimator, sequence or dict from str to estimator
        One panel for each model, of any library. Models that are not fitted are fitted to X and y.
    X : table of shape (n_samples, n_features)
        Rows. Columns that are not drawn are fixed at their values in the row that is nearest to the medians.
    y : array-like of shape (n_samples,), optional
        Target of the rows. None: no points, except for outlier detectors and density estimators.
    vary : dict from the name of a parameter to its values, optional
        For one model: a panel for each value, such as ``{"n_neighbors": [1, 10, 100]}`` or, to show the growth of a
        tree split by split, ``{"max_leaf_nodes": [2, 3, 4]}``. The models are fitted to X and y.
    stages : sequence of int, optional
        For one ensemble with `staged_predict`: a panel after each of these numbers of rounds or trees.
    features : one or two names or positions, optional
        Numeric columns to draw; None: all columns of X, which must then have one or two.
    n_points : int, default=150
        Points of the grid in each direction.
    max_columns : int, default=4
        Maximum number of panels side by side.

    Returns
    -------
    Figure
        The figure.

    See Also
    --------
    plot_partition : The rectangles of one tree.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.make_diagonal(80, random_state=0)
    >>> figure = spinney.plot_regions(spinney.KNeighborsClassifier(), X, y, vary={"n_neighbors": [1, 9]}, n_points=40)
    >>> [ax.get_title() for ax in figure.axes]
    ['n_neighbors=1', 'n_neighbors=9']
    >>> matplotlib.pyplot.close(figure)
    """
    plane = _Plane.of(X, y, features, n_points)
    panels = list(_panels(models, X, y, vary, stages, plane))
    n_wide = min(max_columns, len(panels))
    n_high = math.ceil(len(panels) / n_wide)
    size = (3.2 * n_wide + 1.2, 3.0 * n_high + 0.4)
    figure: Figure = axes.pyplot().figure(figsize=size, layout="constrained")
    cells = figure.subplots(n_high, n_wide, squeeze=False, sharex=True, sharey=True)
    span = _span(panels, plane)
    for ax, (title, surface) in zip(cells.flat, panels, strict=False):
        ax.set_title(short(title, 40), fontsize=10, parse_math=False)
        _draw_panel(ax, surface, plane, span)
    _finish(figure, cells, len(panels), plane, panels[0][1].quantity)
    _explain_colours(figure, cells, panels, plane, span)
    return figure


@dataclass(frozen=True, eq=False)
class _Plane:
    """The drawn columns of a table, and a grid over them.

    Attributes
    ----------
    names : list of str
        Of one or two columns.
    values : list of ndarray
        Their values in the rows.
    grid : list of ndarray
        Coordinates of the grid.
    table : table
        The points of the grid as rows of the caller's kind of table.
    y : array-like or None
        Target of the rows.
    """

    names: list[str]
    values: list[Floats]
    grid: list[Floats]
    table: Any
    y: ColumnLike

    @classmethod
    def of(cls, X: TableLike, y: ColumnLike, features: Sequence[str | int] | None, n_points: int) -> _Plane:
        """Read the columns to draw, and make the grid."""
        raw, picked = read_table(X), pick_table(X)
        schema = Schema.learn(raw)
        chosen = list(range(schema.n_features)) if features is None else list(features)
        if isinstance(features, str) or len(chosen) not in (1, 2):
            what = f"X has {plural(schema.n_features, 'column')}" if features is None else f"features is {features!r}"
            raise ValueError(f"{what}, and one or two can be drawn. Pass features=[…] with one or two.")
        places = [column_index(name, schema, "features") for name in chosen]
        if any(schema.features[j].kind != "number" for j in places):
            raise ValueError("Only columns of numbers can be drawn. Pass their names as features.")
        columns = column_values(schema, raw, "plot_regions", "missing")
        values = [columns[j] for j in places]
        n_each = n_points if len(places) == 2 else _CURVE_POINTS
        grid = [np.linspace(*limits_of(column), n_each) for column in values]
        points = grid_of(*grid) if len(grid) == 2 else grid[0][:, np.newaxis]
        table = _rows_at(picked, _typical_row(columns), places, points)
        return cls([schema.features[j].name for j in places], values, grid, table, y)


def _typical_row(columns: list[Floats]) -> int:
    """Return the row whose numbers are nearest to the medians."""
    distance = np.zeros(len(columns[0]))
    for column in columns:
        spread = float(np.nanstd(column)) or 1.0
        gap = np.abs(column - np.nanmedian(column)) / spread
        distance += np.where(np.isnan(gap), np.inf if np.isfinite(gap).any() else 0.0, gap)
    return int(distance.argmin())


def _rows_at(table: PickTable, row: int, places: list[int], points: Floats) -> Any:
    """Return copies of a row with other values in some columns."""
    copies = pick_table(table.take(np.full(len(points), row, dtype=np.intp)))
    return copies.with_columns({j: Cells(points[:, k].tolist()) for k, j in enumerate(places)})


# ---- panels ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Surface:
    """The predictions of a model on the grid.

    Attributes
    ----------
    classes : ndarray or None
        Labels; None for a regressor.
    values : ndarray
        Class codes, or predicted values.
    certainty : ndarray
        Of a classifier: 0 where all classes are equally probable, 1 where one is certain or none has a probability.
    quantity : {"target", "decision function", "density"}
        What the values are.
    """

    classes: Any
    values: Floats
    certainty: Floats
    quantity: str = "target"


def _panels(
    models: Models,
    X: TableLike,
    y: ColumnLike,
    vary: Mapping[str, Iterable[Any]] | None,
    stages: Sequence[int] | None,
    plane: _Plane,
) -> Iterator[tuple[str, _Surface]]:
    named = _named_models(models)
    if (vary is not None or stages is not None) and len(named) != 1:
        raise ValueError("vary and stages need one model, not several.")
    if vary is not None:
        (name, values), *others = vary.items()
        if others or stages is not None:
            raise ValueError("Vary one parameter, and pass no stages: a panel can differ in one thing only.")
        (model,) = named.values()
        named = {f"{name}={one_line(value)}": clone(model).set_params(**{name: value}) for value in values}
    for title, model in named.items():
        fitted = fitted_to(model, X, y, refit=vary is not None)
        if stages is None:
            yield title, _surface(fitted, plane.table)
        else:
            yield from _staged(fitted, plane.table, stages)


def _named_models(models: Models) -> dict[str, BaseEstimator]:
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    if hasattr(models, "fit") or isinstance(models, str):
        return {type(models).__name__: models}
    listed: list[BaseEstimator] = list(models)
    names = [type(model).__name__ for model in listed]
    unique = len(set(names)) == len(names)
    return {
        name if unique else f"{k + 1}: {name}": model for k, (name, model) in enumerate(zip(names, listed, strict=True))
    }


def require_estimator(model: Any) -> None:
    """Raise if an object is no estimator, such as the name of a model."""
    if not hasattr(model, "fit"):
        raise TypeError(f"{one_line(model)} is not an estimator. Pass one, such as spinney.KNeighborsClassifier().")


def fitted_to(model: Any, X: TableLike, y: ColumnLike, refit: bool = False) -> Any:
    """Return the model, or a copy fitted to X and y if it is not fitted."""
    require_estimator(model)
    try:
        check_is_fitted(model)
    except NotFittedError:
        refit = True
    if refit and y is None and not (is_outlier_detector(model) or _is_density(model)):
        raise ValueError(f"{type(model).__name__} is not fitted. Pass y, or fit it first.")
    return clone(model).fit(X, *(() if y is None else (y,))) if refit else model


def _is_density(model: Any) -> bool:
    return hasattr(model, "score_samples") and not hasattr(model, "predict")


def _surface(model: Any, table: Any) -> _Surface:
    if is_outlier_detector(model):
        return replace(_of_values(np.asarray(model.decision_function(table))), quantity="decision function")
    if _is_density(model):
        return replace(_of_values(np.exp(model.score_samples(table))), quantity="density")
    if not is_classifier(model):
        return _of_values(np.asarray(model.predict(table), dtype=np.float64))
    has_proba = hasattr(model, "predict_proba")
    proba = np.asarray(model.predict_proba(table)) if has_proba else None
    return _of_labels(model.classes_, np.asarray(model.predict(table)), proba)


def _staged(model: Any, table: Any, stages: Sequence[int]) -> Iterator[tuple[str, _Surface]]:
    if not hasattr(model, "staged_predict"):
        raise TypeError(f"stages need a model with staged_predict, which {type(model).__name__} lacks.")
    has_classes, reached = is_classifier(model), 0
    staged: Callable[[Any], Iterator[Any]] = getattr(
        model, "staged_predict_proba" if has_classes and hasattr(model, "staged_predict_proba") else "staged_predict"
    )
    for n, predicted in enumerate(staged(table), start=1):
        reached = n
        if n not in stages:
            continue
        if has_classes and np.ndim(predicted) == 2:
            surface = _of_labels(model.classes_, np.asarray(model.classes_)[predicted.argmax(axis=1)], predicted)
        elif has_classes:
            surface = _of_labels(model.classes_, predicted, None)
        else:
            surface = _of_values(predicted)
        yield f"{n} of {len(model.estimators_)}" if hasattr(model, "estimators_") else str(n), surface
    if wrong := [n for n in stages if not 1 <= n <= reached]:
        raise ValueError(f"stages must be numbers from 1 to {reached}, not {wrong[0]!r}.")


def _of_values(predicted: Floats) -> _Surface:
    if predicted.ndim > 1 and predicted.shape[1] > 1:
        raise ValueError("plot_regions draws models with one output; this one has several.")
    return _Surface(None, predicted.reshape(-1), np.zeros(0))


def _of_labels(classes: Any, labels: Any, proba: Floats | None) -> _Surface:
    codes = np.searchsorted(classes, labels)
    if proba is None:
        return _Surface(classes, codes.astype(np.float64), np.ones(len(codes)))
    least = 1 / len(classes)
    return _Surface(classes, codes.astype(np.float64), (proba.max(axis=1) - least) / (1 - least))


# ---- drawing --------------------------------------------------------------------------------------------------------


def _span(panels: list[tuple[str, _Surface]], plane: _Plane) -> tuple[float, float]:
    """Return the lowest and the highest value of the colours of regressors."""
    shown = [surface.values for _, surface in panels if surface.classes is None]
    if shown and plane.y is not None:
        shown = [read_values(plane.y, len(plane.values[0]))[:, 0]]
    return (float(min(v.min() for v in shown)), float(max(v.max() for v in shown))) if shown else (0.0, 1.0)


def _draw_panel(
    ax: Axes, surface: _Surface, plane: _Plane, span: tuple[float, float], sizes: Any = 14, thick: Any = False
) -> None:
    if len(plane.grid) == 1:
        _draw_curve(ax, surface, plane)
        if surface.classes is not None and plane.y is not None:
            _draw_points(ax, surface, plane, span, sizes, thick)
        return
    across, up = plane.grid
    shape = (len(up), len(across))
    extent = (across[0], across[-1], up[0], up[-1])
    look: dict[str, Any] = {"extent": extent, "origin": "lower", "aspect": "auto", "interpolation": "nearest"}
    values = surface.values.reshape(shape)
    if surface.classes is None:
        ax.imshow(values, cmap=value_map(), vmin=span[0], vmax=span[1], **look)
        if surface.quantity == "decision function" and values.min() < 0 < values.max():
            ax.contour(across, up, values, levels=[0.0], colors=axes.ink(), linewidths=1.0)
    else:
        ax.imshow(_class_picture(surface).reshape(*shape, 3), **look)
        for code in range(len(surface.classes)):
            if 0 < (values == code).mean() < 1 and (code > 0 or len(surface.classes) > 2):
                ax.contour(across, up, values == code, levels=[0.5], colors=axes.ink(), linewidths=0.7)
    if plane.y is not None or surface.quantity != "target":
        _draw_points(ax, surface, plane, span, sizes, thick)


def _class_picture(surface: _Surface) -> Floats:
    """Return the colour of each point of the grid: that of its class, paler where it is less certain."""
    channels = [[int(class_colour(k)[c : c + 2], 16) for c in (1, 3, 5)] for k in range(len(surface.classes))]
    paper = np.array([int(axes.paper()[c : c + 2], 16) for c in (1, 3, 5)])
    colour = np.array(channels)[surface.values.astype(int)]
    strength = (0.12 + 0.48 * surface.certainty)[:, np.newaxis]
    return np.asarray((paper + (colour - paper) * strength) / 255)


def value_map() -> Any:
    """Return the colours of low to high values, on which text in the colour of `ink` is readable."""
    return axes.colour_map(*(axes.mixed(axes.paper(), VALUE_COLOUR, strength) for strength in (0.10, 0.65)))


def _draw_points(ax: Axes, surface: _Surface, plane: _Plane, span: tuple[float, float], sizes: Any, thick: Any) -> None:
    """Draw the rows, with areas and, where `thick`, with thick edges; if there is one column, at their classes."""
    n_rows = len(plane.values[0])
    ups = plane.values[1] if len(plane.values) == 2 else _class_codes(surface, plane)
    rows = np.arange(0, n_rows, max(1, n_rows // MAX_POINTS))
    rows = rows[np.isfinite([column[rows] for column in plane.values]).all(axis=0)]
    area, width = np.broadcast_to(sizes, n_rows), np.where(np.broadcast_to(thick, n_rows), 1.6, 0.4)
    groups: list[tuple[Any, dict[str, Any]]]
    if plane.y is None:
        groups = [(rows, {"color": axes.pale()})]
    elif surface.classes is None:
        groups = [(rows, {"c": read_values(plane.y, n_rows)[rows, 0], "cmap": value_map(), "vmin": span[0]})]
        groups[0][1]["vmax"] = span[1]
    else:
        labels = np.asarray(plane.y).reshape(-1)
        groups = [
            (rows[labels[rows] == label], class_look(code) | {"label": short(label, 30)})
            for code, label in enumerate(surface.classes)
        ]
    for own, look in groups:
        edge: dict[str, Any] = {"edgecolors": axes.ink(), "linewidths": width[own], "s": area[own], "zorder": 3}
        ax.scatter(plane.values[0][own], ups[own], **edge, **look)


def _draw_curve(ax: Axes, surface: _Surface, plane: _Plane) -> None:
    """Draw a fit along one column: values through the rows, codes of classes, or a density above marks of the rows."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if plane.y is not None and surface.classes is None:
        heights = read_values(plane.y, len(plane.values[0]))[:, 0]
        ax.plot(plane.values[0], heights, ".", color=axes.pale(), markersize=5)
    elif surface.quantity != "target":
        ax.plot(plane.values[0], np.zeros(len(plane.values[0])), "|", color=axes.pale(), markersize=8)
    ax.plot(plane.grid[0], surface.values, color=VALUE_COLOUR, linewidth=1.8)
    if surface.classes is not None:
        ax.set_yticks(range(len(surface.classes)), [short(label, 20) for label in surface.classes], parse_math=False)


def _class_codes(surface: _Surface, plane: _Plane) -> Floats:
    return np.searchsorted(surface.classes, np.asarray(plane.y).reshape(-1)).astype(np.float64)


def _explain_colours(
    figure: Figure, cells: Any, panels: list[tuple[str, _Surface]], plane: _Plane, span: tuple[float, float]
) -> None:
    if len(plane.grid) == 1:
        return
    if any(surface.classes is None for _, surface in panels):
        shown = next(ax for ax, (_, s) in zip(cells.flat, panels, strict=False) if s.classes is None)
        quantities = {surface.quantity for _, surface in panels if surface.classes is None}
        label = "value" if len(quantities) > 1 else quantities.pop().replace("target", "value of points and regions")
        figure.colorbar(shown.images[0], ax=cells, label=label)
    elif plane.y is not None:
        handles, labels = cells.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), frameon=False)


def plot_boosting_steps(
    model: Any,
    X: TableLike,
    y: ColumnLike,
    *,
    rounds: Sequence[int] | None = None,
    features: Sequence[str | int] | None = None,
    n_points: int = 150,
    max_columns: int = 3,
) -> Figure:
    """Plot the first rounds of AdaBoost: the weak classifier of each round, and the rows with their weights.

    The area of a point is proportional to the weight of its row before the round; misclassified rows have a thick edge.
    The last panel has all rounds together. With one column, the rows are at the heights of their classes, and the line
    is the prediction.

    Parameters
    ----------
    model : AdaBoostClassifier
        A model whose members are classifiers. If it is not fitted, it is fitted to X and y.
    X : table of shape (n_samples, n_features)
        The training rows. Columns that are not drawn are fixed at their values in the row that is nearest to the
        medians.
    y : array-like of shape (n_samples,)
        Their classes.
    rounds : sequence of int, optional
        Which rounds, counted from 1; None: the first five.
    features : one or two names or positions, optional
        Numeric columns to draw; None: all columns of X, which must then have one or two.
    n_points : int, default=150
        Points of the grid in each direction.
    max_columns : int, default=3
        Maximum number of panels side by side.

    Returns
    -------
    Figure
        A panel per round with its error ε, its weight α, the factor Z by which the round multiplies the mean loss, and
        ΠZ, the upper bound on the training error; and a panel with the whole model.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.make_diagonal(60, random_state=0)
    >>> model = spinney.AdaBoostClassifier(n_estimators=10)
    >>> figure = spinney.plot_boosting_steps(model, X, y, rounds=[1, 2], n_points=40)
    >>> len(figure.axes)
    3
    >>> matplotlib.pyplot.close(figure)
    """
    if hasattr(model, "staged_weights"):
        model = fitted_to(model, X, y)
    if not hasattr(model, "staged_weights") or not is_classifier(model.estimators_[0]):
        raise TypeError("plot_boosting_steps needs an AdaBoostClassifier whose members are classifiers.")
    plane = _Plane.of(X, y, features, n_points)
    n_rounds = int(model.n_iter_)
    chosen = list(range(1, min(5, n_rounds) + 1)) if rounds is None else sorted(rounds)
    if not chosen or chosen[0] < 1 or chosen[-1] > n_rounds:
        raise ValueError(f"rounds must be numbers from 1 to {n_rounds}, the rounds of the model, not {rounds!r}.")
    weights = [weight for _, weight in zip(range(chosen[-1]), model.staged_weights(X, y), strict=False)]
    n_wide = min(max_columns, len(chosen) + 1)
    n_high = math.ceil((len(chosen) + 1) / n_wide)
    figure: Figure = axes.pyplot().figure(figsize=(3.4 * n_wide, 3.3 * n_high + 0.3), layout="constrained")
    cells = figure.subplots(n_high, n_wide, squeeze=False, sharex=True, sharey=True)
    for ax, t in zip(cells.flat, chosen, strict=False):
        member = model.estimators_[t - 1]
        surface = _surface(member, plane.table)
        surface = replace(surface, certainty=np.full(len(surface.values), 0.6))
        weight = np.asarray(weights[t - 1])
        wrong = np.asarray(member.predict(X)) != np.asarray(y).reshape(-1)
        _draw_panel(ax, surface, plane, (0, 1), sizes=20 * weight * len(weight), thick=wrong)
        numbers = (model.estimator_errors_[t - 1], model.estimator_weights_[t - 1], model.normalizers_[t - 1])
        text = "ε = {:.3f}, α = {:.2f}, Z = {:.3f}".format(*numbers)
        ax.set_title(f"round {t}: {text}\nbound ΠZ = {model.train_losses_[t - 1]:.3f}", fontsize=9)
    last = cells.flat[len(chosen)]
    _draw_panel(last, _surface(model, plane.table), plane, (0, 1))
    last.set_title(f"all {n_rounds} rounds\ntraining error {model.train_score_[n_rounds - 1]:.3f}", fontsize=9)
    _finish(figure, cells, len(chosen) + 1, plane)
    last.scatter([], [], s=40, facecolors="none", edgecolors=axes.ink(), linewidths=1.6, label="misclassified")
    handles, labels = last.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), frameon=False)
    return figure


def _finish(figure: Figure, cells: Any, n_shown: int, plane: _Plane, quantity: str = "target") -> None:
    """Hide the cells without a panel, and name the axes."""
    for ax in cells.flat[n_shown:]:
        ax.set_visible(False)
    names = [short(name, 40) for name in plane.names]
    n_wide = cells.shape[1]
    for k, ax in enumerate(cells.flat[:n_shown]):
        if k + n_wide >= n_shown:
            ax.set_xlabel(names[0], parse_math=False)
            ax.tick_params(labelbottom=True)
        if k % n_wide == 0:
            ax.set_ylabel(names[1] if len(names) == 2 else quantity, parse_math=False)
