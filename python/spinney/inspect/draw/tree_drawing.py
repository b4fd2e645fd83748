"""A tree as SVG, without any library, or on matplotlib's axes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from spinney._data.display import plural
from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.draw import axes
from spinney.inspect.draw.axes import INK, pyplot
from spinney.inspect.draw.layout import SIZE, Line, Picture, Rectangle, Text
from spinney.inspect.draw.look import Labels, Look
from spinney.inspect.draw.picture import Style, draw
from spinney.inspect.text.multiway import MultiwayTree
from spinney.inspect.text.reader import Names, require_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FONT = "DejaVu Sans, Verdana, Geneva, sans-serif"
_NOTEBOOK_LEAVES = 24
_POINTS = 72.0  # per inch
_WIDEST = 100.0  # inches; a wider tree is drawn smaller


def tree_svg(
    model: TableEstimator | MultiwayTree,
    *,
    feature_names: Names = None,
    class_names: Names | bool = None,
    max_depth: int | None = None,
    decimals: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
    filled: bool = True,
    rounded: bool = True,
    impurity: bool = False,
    node_ids: bool = False,
    proportion: bool | None = None,
    label: Labels = "all",
    precision: int | None = None,
) -> str:
    """Draw a tree as SVG.

    It needs no other package. Boxes have tooltips with the details of their node.

    Parameters
    ----------
    model : estimator or MultiwayTree
        A fitted decision tree, or a tree of `spinney.teaching.multiway_tree`.
    feature_names : sequence of str, optional
        Names of the columns; None: those of the training table.
    class_names : sequence of str, optional
        Names of the classes in the order of `classes_`; None: the classes.
    max_depth : int, optional
        Deepest level to draw; a subtree below it becomes one dashed box with the number of its leaves.
    decimals : int, optional
        Decimals of all numbers. None: as many as a number needs, in general at most five significant digits.
    style : {"auto", "full", "compact"}, default="auto"
        "full": a box per node with prediction, probabilities and rows, and the conditions on the branches. "compact":
        small boxes with the conditions (left means yes) or the predictions; the boxes of more than 24 leaves are
        vertical. "auto": compact if there are more than 14 leaves.
    show_missing : bool, "seen" or collection of column names, default="seen"
        Whether, or for which columns, to show where missing values go; "seen": those with missing training values.
    filled, rounded, impurity, node_ids, proportion, label, precision : optional
        As in `plot_tree`.

    Returns
    -------
    str
        An ``<svg>`` element.

    See Also
    --------
    plot_tree : The same on matplotlib's axes.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> spinney.tree_svg(model)[:4]
    '<svg'
    """
    picture = draw(
        model,
        feature_names=feature_names,
        class_names=class_names,
        max_depth=max_depth,
        decimals=_decimals(decimals, precision),
        style=style,
        show_missing=show_missing,
        look=Look(
            filled=filled, rounded=rounded, impurity=impurity, node_ids=node_ids, proportion=proportion, label=label
        ),
    )
    return render(picture)


def render(picture: Picture, style: str = "") -> str:
    """Return a picture as SVG, with an optional CSS style."""
    width, height = _number(picture.width), _number(picture.height)
    css = f' style="{style}"' if style else ""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img"{css} font-family="{_FONT}" text-anchor="middle">',
        f"<title>{escape(picture.about)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *[_line(line) for line in picture.lines],
        *[_shape(shape) for shape in (*picture.legend, *picture.labels)],
    ]
    for node in picture.nodes:
        lines.append(f"<g><title>{escape(node.title)}</title>{_shape(node.box)}")
        lines += [*[_shape(shape) for shape in node.shapes], "</g>"]
    return "\n".join([*lines, "</svg>"])


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _line(line: Line) -> str:
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in line.points)
    return f'<polyline points="{points}" fill="none" stroke="#777777" stroke-width="{_number(line.width)}"/>'


def _shape(shape: Text | Rectangle) -> str:
    return _text(shape) if isinstance(shape, Text) else _rectangle(shape)


def _rectangle(box: Rectangle) -> str:
    edge = f' stroke="{box.edge}" stroke-width="0.8"' if box.edge else ""
    dashes = ' stroke-dasharray="4 2"' if box.dashed else ""
    radius = f' rx="{_number(box.radius)}"' if box.radius else ""
    position = " ".join(f'{name}="{_number(getattr(box, name))}"' for name in ("x", "y", "width", "height"))
    return f'<rect {position} fill="{box.fill}"{edge}{dashes}{radius}/>'


def _text(text: Text) -> str:
    x, y = _number(text.x), _number(text.y)
    bold = ' font-weight="bold"' if text.bold else ""
    turn = f' transform="rotate(-90 {x} {y})"' if text.upright else ""
    return (
        f'<text x="{x}" y="{y}" dy="0.35em" font-size="{_number(text.size)}" fill="{text.colour}"{bold}{turn}>'
        f"{escape(text.words)}</text>"
    )


def notebook_html(model: TableEstimator) -> str:
    """Return a fitted tree as HTML for a notebook, down to a readable depth, with the model's name above."""
    tree = model.tree_
    depth = tree.max_depth
    while depth > 1 and ((tree.depth == depth) | (tree.is_leaf & (tree.depth < depth))).sum() > _NOTEBOOK_LEAVES:
        depth -= 1
    svg = render(draw(model, max_depth=depth), "max-width:100%;height:auto")
    return f"<div><code>{escape(repr(model))}</code><br>{svg}</div>"


# ---- matplotlib --------------------------------------------------------------------------------------------------


def plot_tree(
    model: TableEstimator | MultiwayTree,
    *,
    feature_names: Names = None,
    class_names: Names | bool = None,
    ax: Axes | None = None,
    max_depth: int | None = None,
    decimals: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
    filled: bool = True,
    rounded: bool = True,
    impurity: bool = False,
    node_ids: bool = False,
    proportion: bool | None = None,
    label: Labels = "all",
    precision: int | None = None,
    fontsize: float | None = None,
) -> Axes:
    """Draw a tree with matplotlib.

    Boxes show the predicted class (or value), the class probabilities in the order of `classes_`, and the number of
    rows. The colour of a box stands for the class, and its intensity for the purity. The split column is below the box,
    and the conditions are on the branches.

    Parameters
    ----------
    model : estimator or MultiwayTree
        A fitted decision tree, or a tree of `spinney.teaching.multiway_tree`.
    feature_names : sequence of str, optional
        Names of the columns; None: those of the training table.
    class_names : sequence of str, optional
        Names of the classes in the order of `classes_`; None: the classes.
    ax : Axes, optional
        Where to draw; the font is scaled so that the tree fits. None: a new figure that fits the tree.
    max_depth : int, optional
        Deepest level to draw; a subtree below it becomes one dashed box with the number of its leaves.
    decimals : int, optional
        Decimals of all numbers. None: as many as a number needs, in general at most five significant digits.
    style : {"auto", "full", "compact"}, default="auto"
        "full": the boxes described above. "compact": small boxes with the conditions, left means yes. "auto": compact
        if there are more than 14 leaves.
    show_missing : bool, "seen" or collection of column names, default="seen"
        Whether, or for which columns, to show where missing values go; "seen": those with missing training values.
    filled : bool, default=True
        Whether boxes have the colour of the predicted class or value; else they are white.
    rounded : bool, default=True
        Whether boxes have rounded corners.
    impurity : bool, default=False
        Whether to show the impurity of each node, with the name of the criterion.
    node_ids : bool, default=False
        Whether to show the number of each node, as `apply` returns it.
    proportion : bool, optional
        True: class probabilities, and the fraction of all rows. False: the weight of each class, and the number of
        rows. None: class probabilities, and both the number and the fraction of the rows.
    label : {"all", "root", "none"}, default="all"
        Which boxes have labels that name each number, as in "n = 50".
    precision : int, optional
        The name that scikit-learn has for `decimals`.
    fontsize : float, optional
        Size of the font of predictions in points; other texts are a tenth smaller. None: the font fits the axes.

    Returns
    -------
    Axes
        The axes; ``ax.figure.savefig("tree.png")`` saves the plot.

    See Also
    --------
    tree_svg : The same without matplotlib.

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
    picture = draw(
        model,
        feature_names=feature_names,
        class_names=class_names,
        max_depth=max_depth,
        decimals=_decimals(decimals, precision),
        style=style,
        show_missing=show_missing,
        look=Look(
            filled=filled, rounded=rounded, impurity=impurity, node_ids=node_ids, proportion=proportion, label=label
        ),
    )
    scale = None if fontsize is None else fontsize / SIZE
    if ax is None:
        larger = 1.0 if scale is None else scale
        ax = _figure(picture.width * larger, picture.height * larger)[0].add_axes((0.0, 0.0, 1.0, 1.0))
    _draw_on(ax, picture, scale)
    return ax


def _decimals(decimals: int | None, precision: int | None) -> int | None:
    """Return the decimals that are given by either name."""
    if decimals is not None and precision is not None:
        raise TypeError("precision is another name for decimals. Pass only one of them.")
    require_count("precision", precision)
    return decimals if precision is None else precision


def _figure(width: float, height: float) -> tuple[Figure, float]:
    """Return a figure of a size in points, reduced if it would be too wide, and the reduction factor."""
    shrink = min(1.0, _WIDEST * _POINTS / width)
    return pyplot().figure(figsize=(width * shrink / _POINTS, height * shrink / _POINTS)), shrink


def _draw_on(ax: Axes, picture: Picture, scale: float | None = None) -> None:
    """Draw a picture; the scale of its texts is, unless given, that at which they fit the axes."""
    from matplotlib.lines import Line2D

    extent = ax.get_window_extent()
    inch = ax.figure.dpi
    if scale is None:
        scale = min(extent.width / inch * _POINTS / picture.width, extent.height / inch * _POINTS / picture.height)
    ax.set_axis_off()
    ax.set_xlim(0, picture.width)
    ax.set_ylim(picture.height, 0)
    ax.set_aspect("equal", anchor="N")
    for line in picture.lines:
        xs, ys = zip(*line.points, strict=True)
        ax.add_line(Line2D(xs, ys, color="#777777", linewidth=line.width * scale, zorder=1))
    for shape in (*picture.legend, *picture.labels):
        _add_shape(ax, _on_paper(shape), scale, 2)
    for node in picture.nodes:
        _add_shape(ax, node.box, scale, 2)
        for shape in node.shapes:
            is_below = shape.y > node.box.y + node.box.height
            _add_shape(ax, _on_paper(shape) if is_below else shape, scale, 3)


def _on_paper(shape: Text | Rectangle) -> Text | Rectangle:
    """Return a shape outside of boxes in the colours of the current style of matplotlib."""
    if isinstance(shape, Text):
        return replace(shape, colour=axes.ink()) if shape.colour == INK else shape
    return replace(shape, fill=axes.paper()) if shape.fill == "#ffffff" and not shape.edge else shape


def _add_shape(ax: Axes, shape: Text | Rectangle, scale: float, zorder: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    if isinstance(shape, Text):
        font: dict[str, Any] = {"fontsize": shape.size * scale, "fontweight": "bold" if shape.bold else "normal"}
        alignment: dict[str, Any] = {"ha": "center", "va": "center" if shape.upright else "center_baseline"}
        font |= {"color": shape.colour, "rotation": 90 if shape.upright else 0, "parse_math": False}
        ax.text(shape.x, shape.y, shape.words, zorder=4, **font, **alignment)
        return
    box = f"round,pad=0,rounding_size={shape.radius}" if shape.radius else "square,pad=0"
    edge: dict[str, Any] = {"edgecolor": shape.edge or "none", "linestyle": "--" if shape.dashed else "-"}
    edge["linewidth"] = 0.8 * scale if shape.edge else 0.0
    corner = (shape.x, shape.y)
    patch = FancyBboxPatch(corner, shape.width, shape.height, box, facecolor=shape.fill, zorder=zorder, **edge)
    ax.add_patch(patch)


def plot_pruning(
    unpruned: Any,
    pruned: Any,
    *,
    max_depth: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
) -> Figure:
    """Draw an unpruned and a pruned tree side by side, at the same scale, with their numbers of leaves as titles.

    Parameters
    ----------
    unpruned, pruned : estimators
        Two fitted decision trees.
    max_depth : int, optional
        Deepest level to draw.
    style : {"auto", "full", "compact"}, default="auto"
        As in `tree_svg`.
    show_missing : bool, "seen" or collection of column names, default="seen"
        Whether, or for which columns, to show where missing values go; "seen": those with missing training values.

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
    models = (unpruned, pruned)
    look: dict[str, Any] = {"max_depth": max_depth, "show_missing": show_missing}
    pictures = [draw(model, style=style, **look) for model in models]
    if any(picture.is_compact for picture in pictures):  # the same style for both
        pictures = [draw(model, style="compact", **look) for model in models]
    gap, head = 24.0, 26.0
    width = pictures[0].width + gap + pictures[1].width
    height = head + max(p.height for p in pictures)
    figure, shrink = _figure(width, height)
    left = 0.0
    for picture, model, name in zip(pictures, models, ("unpruned", "pruned"), strict=True):
        fraction = picture.height / height
        ax = figure.add_axes((left / width, 1 - head / height - fraction, picture.width / width, fraction))
        _draw_on(ax, picture)
        ax.set_title(f"{name}: {plural(model.tree_.n_leaves, 'leaf')}", fontsize=12 * shrink, pad=4)
        left += picture.width + gap
    return figure
