"""A tree as SVG, written by hand: no library, nothing to fetch, every name escaped."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.draw.picture import Line, Picture, Rectangle, Style, Text, draw

_FONT = "DejaVu Sans, Verdana, Geneva, sans-serif"
_NOTEBOOK_LEAVES = 24


def tree_svg(
    model: TableEstimator,
    *,
    max_depth: int | None = None,
    decimals: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
) -> str:
    """Draw a tree as SVG.

    Needs no other package. Boxes tell all about their node when the pointer rests on them.

    Parameters
    ----------
    model : estimator
        A fitted decision tree.
    max_depth : int, optional
        Deepest level to draw; branches below become one dashed box with the number of their leaves.
    decimals : int, optional
        Decimals of all numbers, as for `export_text`.
    style : {"auto", "full", "compact"}, default="auto"
        "full": a box per node with prediction, shares and rows, and the answers on the branches. "compact": questions
        in small boxes, yes to the left, leaves in small boxes or, if there are more than 24, as upright slips. "auto":
        compact if there are more than 14 leaves.
    show_missing : bool, "seen" or collection of column names, default="seen"
        Whether, or for which columns, to say which way missing values go; "seen": those that lacked values in training.

    Returns
    -------
    str
        An ``<svg>`` element.

    See Also
    --------
    plot_tree : The same picture on matplotlib's axes.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> spinney.tree_svg(model)[:4]
    '<svg'
    """
    return render(draw(model, max_depth=max_depth, decimals=decimals, style=style, show_missing=show_missing))


def render(picture: Picture, style: str = "") -> str:
    """Write a picture as SVG, with a CSS style for the whole."""
    width, height = _number(picture.width), _number(picture.height)
    css = f' style="{style}"' if style else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img"{css} font-family="{_FONT}" text-anchor="middle">',
        f"<title>{escape(picture.about)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *[_line(line) for line in picture.lines],
    ]
    parts += [*[_rectangle(box) for box in picture.legend.boxes], *[_text(text) for text in picture.legend.texts]]
    for box, texts in picture.labels:
        parts += [_rectangle(box), *[_text(text) for text in texts]]
    for part in picture.parts:
        parts.append(f"<g><title>{escape(part.title)}</title>{_rectangle(part.box)}")
        parts += [_text(s) if isinstance(s, Text) else _rectangle(s) for s in part.shapes]
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"])


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _line(line: Line) -> str:
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in line.points)
    return f'<polyline points="{points}" fill="none" stroke="#777777" stroke-width="{_number(line.width)}"/>'


def _rectangle(box: Rectangle) -> str:
    edge = f' stroke="{box.edge}" stroke-width="0.8"' if box.edge else ""
    dashes = ' stroke-dasharray="4 2"' if box.dashed else ""
    radius = f' rx="{_number(box.radius)}"' if box.radius else ""
    place = f'x="{_number(box.x)}" y="{_number(box.y)}" width="{_number(box.width)}" height="{_number(box.height)}"'
    return f'<rect {place} fill="{box.fill}"{edge}{dashes}{radius}/>'


def _text(text: Text) -> str:
    x, y = _number(text.x), _number(text.y)
    bold = ' font-weight="bold"' if text.bold else ""
    turn = f' transform="rotate(-90 {x} {y})"' if text.upright else ""
    return (
        f'<text x="{x}" y="{y}" dy="0.35em" font-size="{_number(text.size)}" fill="{text.colour}"{bold}{turn}>'
        f"{escape(text.words)}</text>"
    )


def notebook_html(model: TableEstimator) -> str:
    """Draw a fitted tree for a notebook: as deep as stays easy to read, with the model's name above."""
    depth = model.tree_.max_depth
    while depth > 1 and _n_shown(model, depth) > _NOTEBOOK_LEAVES:
        depth -= 1
    svg = render(draw(model, max_depth=depth), "max-width:100%;height:auto")
    return f"<div><code>{escape(repr(model))}</code><br>{svg}</div>"


def _n_shown(model: TableEstimator, depth: int) -> int:
    tree = model.tree_
    return int(((tree.depth == depth) | (tree.is_leaf & (tree.depth < depth))).sum())
