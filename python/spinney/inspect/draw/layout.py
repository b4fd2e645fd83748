"""Layout of a binary tree, and widths of texts.

Trees are as narrow as possible without overlap, with parents centred above their children.

Rows alternate: row 2d has the boxes of depth d, row 2d - 1 the labels of the branches to them. Leaves are in the last
row, and the lines to them need space in the rows between. Each subtree is built once, from the bottom, with its
outline: its leftmost and rightmost point in every row (Reingold and Tilford 1981, with widths). Two siblings are moved
together until their outlines touch.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

LINE_MARGIN = 4.0  # half the width that is reserved for a line


@dataclass(kw_only=True)
class Shape:
    """A node to place: its children (-1: a leaf), its depth, half the width of its box and of its label."""

    left: int = -1
    right: int = -1
    depth: int
    half_box: float = 0.0
    half_label: float = 0.0


class _Outline(NamedTuple):
    """Leftmost and rightmost point of a subtree in each row, from that of its label, relative to its root."""

    low: list[float]
    high: list[float]


def place(shapes: Sequence[Shape], gap: float) -> list[float]:
    """Return the x of each node, the smallest left edge being 0.

    Parameters
    ----------
    shapes : sequence of Shape
        Nodes in preorder.
    gap : float
        Minimum distance between neighbours.
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
    high = [shape.half_label, *[LINE_MARGIN] * n_between, shape.half_box]
    return _Outline([-value for value in high], high)


def _joined(shape: Shape, left: _Outline, right: _Outline, half: float) -> _Outline:
    own = max(shape.half_box, half + LINE_MARGIN)  # the line to the children is in the row of the box
    low = [min(a - half, b + half) for a, b in zip_longest(left.low, right.low, fillvalue=math.inf)]
    high = [max(a - half, b + half) for a, b in zip_longest(left.high, right.high, fillvalue=-math.inf)]
    return _Outline([-shape.half_label, -own, *low], [shape.half_label, own, *high])


# ---- widths of texts -------------------------------------------------------------------------------------------------

# Widths of DejaVu Sans, the widest of the usual screen fonts, for the characters from space to tilde, in hundredths
# of the size.
_REGULAR = (
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
)  # fmt: skip
_BOLD = (
    35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70,
    70, 70, 40, 40, 84, 84, 84, 58, 100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100, 84, 85,
    73, 85, 77, 72, 68, 81, 77, 110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67, 72, 59, 72, 68, 44, 72,
    71, 34, 34, 67, 34, 104, 71, 69, 72, 72, 49, 60, 48, 71, 65, 92, 65, 65, 58, 71, 37, 71, 84,
)  # fmt: skip


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of one line of text in the unit of `size`."""
    return sum(_width(c, bold) for c in text) * size / 100


def _width(character: str, bold: bool) -> int:
    index = ord(" " if character == "\N{NO-BREAK SPACE}" else character) - 32
    if 0 <= index < len(_REGULAR):
        return (_BOLD if bold else _REGULAR)[index]
    if unicodedata.combining(character):
        return 0
    return 105 if unicodedata.east_asian_width(character) in "WFA" else 84
