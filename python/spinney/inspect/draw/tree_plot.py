"""Trees on matplotlib's axes."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from spinney._data.display import plural
from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.charts.axes import pyplot
from spinney.inspect.draw.picture import Picture, Rectangle, Style, Text, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 72.0  # per inch
_WIDEST = 100.0  # inches; a wider tree is drawn smaller


def plot_tree(
    model: TableEstimator,
    *,
    ax: Axes | None = None,
    max_depth: int | None = None,
    decimals: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
) -> Axes:
    """Draw a tree with matplotlib.

    Boxes show the predicted class (or value), the class shares in the order of `classes_`, and the rows; their colour
    is the class, the stronger the purer. Beneath a box stands the column that is asked, on the branches the answers.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    ax : Axes, optional
        Where to draw; letters are scaled so that the tree fits. None: a new figure, as large as the tree needs.
    max_depth : int, optional
        Deepest level to draw; branches below become one dashed box with the number of their leaves.
    decimals : int, optional
        Decimals of all numbers, as for `export_text`.
    style : {"auto", "full", "compact"}, default="auto"
        As for `tree_svg`.
    show_missing : bool, "seen" or collection of column names, default="seen"
        Whether, or for which columns, to say which way missing values go; "seen": those that lacked values in training.

    Returns
    -------
    Axes
        The axes drawn on; ``ax.figure.savefig("tree.png")`` saves the picture.

    See Also
    --------
    tree_svg : The same picture without matplotlib.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> ax = spinney.plot_tree(model)
    >>> matplotlib.pyplot.close(ax.figure)
    """
    picture = draw(model, max_depth=max_depth, decimals=decimals, style=style, show_missing=show_missing)
    if ax is None:
        shrink = min(1.0, _WIDEST * _POINTS / picture.width)
        size = (picture.width * shrink / _POINTS, picture.height * shrink / _POINTS)
        figure = pyplot().figure(figsize=size)
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    _render(picture, ax)
    return ax


def _render(picture: Picture, ax: Axes) -> None:
    from matplotlib.lines import Line2D

    extent = ax.get_window_extent()
    inch = ax.figure.dpi
    scale = min(extent.width / inch * _POINTS / picture.width, extent.height / inch * _POINTS / picture.height)
    ax.set_axis_off()
    ax.set_xlim(0, picture.width)
    ax.set_ylim(picture.height, 0)
    ax.set_aspect("equal", anchor="N")
    for line in picture.lines:
        xs, ys = zip(*line.points, strict=True)
        ax.add_line(Line2D(xs, ys, color="#777777", linewidth=line.width * scale, zorder=1))
    for box in picture.legend.boxes:
        _add_box(ax, box, scale, 2)
    for text in picture.legend.texts:
        _add_text(ax, text, scale)
    for box, texts in picture.labels:
        _add_box(ax, box, scale, 2)
        for text in texts:
            _add_text(ax, text, scale)
    for part in picture.parts:
        _add_box(ax, part.box, scale, 2)
        for shape in part.shapes:
            if isinstance(shape, Text):
                _add_text(ax, shape, scale)
            else:
                _add_box(ax, shape, scale, 3)


def _add_box(ax: Axes, box: Rectangle, scale: float, zorder: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    ax.add_patch(
        FancyBboxPatch(
            (box.x, box.y),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={box.radius}" if box.radius else "square,pad=0",
            facecolor=box.fill,
            edgecolor=box.edge or "none",
            linestyle="--" if box.dashed else "-",
            linewidth=0.8 * scale if box.edge else 0.0,
            zorder=zorder,
        )
    )


def _add_text(ax: Axes, text: Text, scale: float) -> None:
    ax.text(
        text.x,
        text.y,
        text.words,
        fontsize=text.size * scale,
        fontweight="bold" if text.bold else "normal",
        color=text.colour,
        rotation=90 if text.upright else 0,
        ha="center",
        va="center_baseline" if not text.upright else "center",
        parse_math=False,
        zorder=4,
    )


def plot_pruning(
    unpruned: Any,
    pruned: Any,
    *,
    max_depth: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
) -> Figure:
    """Draw two trees side by side, at the same scale.

    Parameters
    ----------
    unpruned, pruned : estimators
        Two fitted decision trees.
    max_depth : int, optional
        Deepest level to draw of either.
    style : {"auto", "full", "compact"}, default="auto"
        As for `tree_svg`.
    show_missing : bool, "seen" or collection of column names, default="seen"
        Whether, or for which columns, to say which way missing values go; "seen": those that lacked values in training.

    Returns
    -------
    Figure
        A new figure with two axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> large = spinney.DecisionTreeClassifier().fit(X, y)
    >>> small = spinney.DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y)
    >>> figure = spinney.plot_pruning(large, small)
    >>> matplotlib.pyplot.close(figure)
    """
    pictures = [draw(m, max_depth=max_depth, style=style, show_missing=show_missing) for m in (unpruned, pruned)]
    if any(picture.is_compact for picture in pictures):  # both alike
        pictures = [
            draw(m, max_depth=max_depth, style="compact", show_missing=show_missing) for m in (unpruned, pruned)
        ]
    gap, head = 24.0, 26.0
    width = pictures[0].width + gap + pictures[1].width
    height = head + max(p.height for p in pictures)
    shrink = min(1.0, _WIDEST * _POINTS / width)
    figure: Figure = pyplot().figure(figsize=(width * shrink / _POINTS, height * shrink / _POINTS))
    left = 0.0
    for picture, model, name in zip(pictures, (unpruned, pruned), ("unpruned", "pruned"), strict=True):
        share = picture.height / height
        ax = figure.add_axes((left / width, 1 - head / height - share, picture.width / width, share))
        _render(picture, ax)
        ax.set_title(f"{name}: {plural(model.tree_.n_leaves, 'leaf')}", fontsize=12 * shrink, pad=4)
        left += picture.width + gap
    return figure
