"""Where the nodes of a binary tree stand: as narrow as can be without overlap, parents midway above their children.

Rows alternate: row 2d holds the boxes of depth d, row 2d - 1 the labels of the branches that lead to them. Leaves stand
in the last row, and the lines down to them need room in the rows between. Each branch is built once, from the bottom,
and keeps its outline: its leftmost and rightmost point in every row (Reingold and Tilford 1981, with widths). Two
siblings are pushed together until their outlines touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LINE_ROOM = 4.0  # half the room of a line that passes a row


@dataclass(frozen=True)
class Shape:
    """One node to be placed: its children (-1: a leaf), its depth, half the width of its box and of its label."""

    left: int
    right: int
    depth: int
    half_box: float
    half_label: float


@dataclass
class _Outline:
    """Leftmost and rightmost point of a branch, from row `first` on, relative to its root."""

    first: int
    low: list[float]
    high: list[float]


def place(shapes: Sequence[Shape], gap: float) -> list[float]:
    """Return the x of each node, the smallest left edge being 0.

    Parameters
    ----------
    shapes : sequence of Shape
        Nodes in preorder.
    gap : float
        Least distance between neighbours.
    """
    bottom = 2 * max(shape.depth for shape in shapes)
    outlines: list[_Outline | None] = [None] * len(shapes)
    offset = [0.0] * len(shapes)  # of a node from its parent
    for i in range(len(shapes) - 1, -1, -1):
        shape = shapes[i]
        if shape.left < 0:
            outlines[i] = _leaf_outline(shape, bottom)
            continue
        left, right = outlines[shape.left], outlines[shape.right]
        outlines[shape.left] = outlines[shape.right] = None
        assert left is not None and right is not None  # noqa: PT018
        half = (max(h - lo for h, lo in zip(left.high, right.low, strict=False)) + gap) / 2
        offset[shape.left], offset[shape.right] = -half, half
        outlines[i] = _joined(shape, left, right, half)
    x = [0.0] * len(shapes)
    for i, shape in enumerate(shapes):
        for child in (shape.left, shape.right):
            if child >= 0:
                x[child] = x[i] + offset[child]
    root = outlines[0]
    assert root is not None
    return [value - min(root.low) for value in x]


def _leaf_outline(shape: Shape, bottom: int) -> _Outline:
    n_between = bottom - 2 * shape.depth
    high = [shape.half_label, *[LINE_ROOM] * n_between, shape.half_box]
    return _Outline(2 * shape.depth - 1, [-value for value in high], high)


def _joined(shape: Shape, left: _Outline, right: _Outline, half: float) -> _Outline:
    n = max(len(left.low), len(right.low))
    own = max(shape.half_box, half + LINE_ROOM)  # the bar to the children is in the row of the box
    low, high = [-shape.half_label, -own], [shape.half_label, own]
    for k in range(n):
        lows = [o.low[k] + s for o, s in ((left, -half), (right, half)) if k < len(o.low)]
        highs = [o.high[k] + s for o, s in ((left, -half), (right, half)) if k < len(o.high)]
        low.append(min(lows))
        high.append(max(highs))
    return _Outline(2 * shape.depth - 1, low, high)
