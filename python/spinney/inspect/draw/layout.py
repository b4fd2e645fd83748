"""Shapes of pictures of trees, and the positions of their nodes, in points with y downwards.

A tree is a list of blocks in preorder, each with its texts and colours and any number of children.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from spinney.inspect.draw.axes import INK, PALE, class_colour, ink_on, short, tint

SIZE, SMALL = 10.0, 9.0  # of the font
LEADING = 1.3
PAD, GAP, MARGIN = 6.0, 10.0, 8.0
BAR = 4.0  # height of the bar of class probabilities
STUB = 7.0  # from a node to the line to its children
LABEL_LETTERS = 20
_LEGEND_CLASSES = 8  # the number of colours


@dataclass(frozen=True)
class Text:
    """One line of text, centred on (x, y); vertical if `upright`."""

    x: float
    y: float
    words: str
    size: float = SIZE
    bold: bool = False
    colour: str = INK
    upright: bool = False


@dataclass(frozen=True)
class Rectangle:
    """A filled box; without an edge if `edge` is empty."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    edge: str = ""
    dashed: bool = False
    radius: float = 0.0


@dataclass(frozen=True)
class Line:
    """Connected straight lines."""

    points: tuple[tuple[float, float], ...]
    width: float = 1.0


@dataclass
class NodePicture:
    """The shapes of one node, and its tooltip."""

    node: int
    title: str
    box: Rectangle
    shapes: list[Text | Rectangle] = field(default_factory=list)


@dataclass
class Picture:
    """A drawn tree: `labels` are the conditions on the branches; `legend` has the colours of the classes."""

    width: float
    height: float
    lines: list[Line]
    nodes: list[NodePicture]
    labels: list[Text | Rectangle]
    legend: list[Text | Rectangle]
    about: str
    is_compact: bool


@dataclass(kw_only=True)
class Block:
    """A node before it is placed: its texts, its children and its size."""

    node: int
    depth: int
    is_last: bool  # a leaf, or a branch that is not drawn further
    box: list[tuple[str, float, bool]]  # lines: words, size, bold
    under: str  # the split column, below the box
    label: list[str]  # the condition on the branch to it
    title: str
    fill: str
    bar: Sequence[float] = ()  # class probabilities, drawn as a bar in the box
    is_cut: bool = False  # not a leaf, though it is the last that is drawn
    children: list[int] = field(default_factory=list)
    x: float = 0.0
    width: float = 0.0  # of the box
    height: float = 0.0
    half_box: float = 0.0  # half the width of the box and the column name below it
    half_label: float = 0.0

    @property
    def label_height(self) -> float:
        """Height of the condition on the branch."""
        return SMALL * LEADING * len(self.label)

    def measure(self, is_upright: bool) -> None:
        """Set the size of the box and of the label."""
        self.width = max(text_width(words, size, bold=bold) for words, size, bold in self.box) + 2 * PAD
        self.height = sum(size * LEADING for _, size, _ in self.box) + PAD
        if is_upright and self.is_last:
            self.width, self.height = self.height, self.width
        else:
            self.height += BAR + 2.0 if self.bar else 0.0
        self.half_box = max(self.width, text_width(self.under, SIZE, bold=True)) / 2
        self.half_label = max((text_width(words, SMALL) + 4.0 for words in self.label), default=0.0) / 2


# ---- positions -------------------------------------------------------------------------------------------


@dataclass
class Drawing:
    """The positions and shapes of blocks.

    Attributes
    ----------
    blocks : list of Block
        In preorder.
    classes : list
        Classes of the legend by code; none in a regression.
    note : str
        Text of the legend; empty: none.
    name : str
        What the tree is, for the title of the picture.
    is_compact, is_upright : bool
        Whether all leaves have the same height, and whether their texts are vertical.
    is_rounded : bool
        Whether boxes have rounded corners.
    """

    blocks: list[Block]
    classes: list[object]
    note: str = ""
    name: str = ""
    is_compact: bool = False
    is_upright: bool = False
    is_rounded: bool = True

    def __post_init__(self) -> None:
        self.bottom = max(block.depth for block in self.blocks)
        self.under = 0.0 if self.is_compact else SIZE * LEADING + 2.0
        for block in self.blocks:
            block.measure(self.is_upright)
        tallest = max(block.height for block in self.blocks if block.is_last)
        for block in self.blocks:
            if self.is_compact and block.is_last:  # leaves have equal heights
                block.height = tallest

    def picture(self) -> Picture:
        """Return the shapes, placed."""
        positions = place(self.blocks, 4.0 if self.is_compact else GAP)
        for block, x in zip(self.blocks, positions, strict=True):
            block.x = MARGIN + x
        width = MARGIN + max(block.x + max(block.half_box, block.half_label) for block in self.blocks)
        legend, legend_width, top = self._legend(width)
        for block in self.blocks:
            block.x += max(0.0, legend_width - width) / 2
        self._find_rows(top)
        lines, labels = self._branches()
        nodes = [self._node(block) for block in self.blocks]
        height = max(node.box.y + node.box.height for node in nodes) + MARGIN
        return Picture(max(width, legend_width), height, lines, nodes, labels, legend, self.name, self.is_compact)

    def _legend(self, width: float) -> tuple[list[Text | Rectangle], float, float]:
        """Return the legend, wrapped to the width of the picture, its width, and the y where the tree begins."""
        entries: list[tuple[str, str]] = []  # colour, words
        if len(self.classes) <= _LEGEND_CLASSES:
            names = [short(label, LABEL_LETTERS) for label in self.classes]
            entries += [(tint(class_colour(code), 1.0), name) for code, name in enumerate(names)]
        if self.note:
            entries.append(("", self.note))
        boxes: list[Rectangle] = []
        texts: list[Text] = []
        x, y, needed = MARGIN, MARGIN, 0.0
        for colour, words in entries:
            swatch, length = SMALL + 4.0 if colour else 0.0, text_width(words, SMALL)
            if x > MARGIN and x + swatch + length > width - MARGIN:
                x, y = MARGIN, y + SMALL * LEADING + 3.0
            if colour:
                boxes.append(Rectangle(x, y + 1.5, SMALL, SMALL, colour, INK, radius=1.5))
            texts.append(Text(x + swatch + length / 2, y + SMALL * LEADING / 2, words, SMALL))
            x += swatch + length
            needed = max(needed, x + MARGIN)
            x += 2 * GAP
        return [*boxes, *texts], needed, y + (SMALL * LEADING + GAP if entries else 0.0)

    def _find_rows(self, y: float) -> None:
        """Set the top of each row of boxes and of the horizontal lines below them."""
        self.top, self.bar = [0.0] * (self.bottom + 1), [0.0] * (self.bottom + 1)
        for depth in range(self.bottom + 1):
            row = [block for block in self.blocks if block.depth == depth]
            label = max(block.label_height for block in row)
            if depth:
                y += label + (10.0 if label else 6.0)
            self.top[depth] = y
            if inner := [block.height for block in row if not block.is_last]:
                y += max(inner) + self.under + STUB
            self.bar[depth] = y

    def _top_of(self, block: Block) -> float:
        return self.top[self.bottom if block.is_last else block.depth]

    def _branches(self) -> tuple[list[Line], list[Text | Rectangle]]:
        """Return the lines from each node to its children, and their labels."""
        lines: list[Line] = []
        labels: list[Text | Rectangle] = []
        for block in self.blocks:
            bar = self.bar[block.depth]
            if block.children:
                lines.append(Line(((block.x, self.top[block.depth] + block.height + self.under), (block.x, bar))))
                children = [self.blocks[child] for child in block.children]
                down = [(child.x, self._top_of(child)) for child in children]
                lines.append(Line((down[0], (down[0][0], bar), (down[-1][0], bar), down[-1])))
                lines += [Line(((x, bar), (x, y))) for x, y in down[1:-1]]
            if block.label:
                top, half = self.bar[block.depth - 1] + 5.0, block.half_label
                labels.append(Rectangle(block.x - half, top, 2 * half, block.label_height, "#ffffff"))
                middles = [top + (k + 0.5) * SMALL * LEADING for k in range(len(block.label))]
                labels += [Text(block.x, y, words, SMALL) for y, words in zip(middles, block.label, strict=True)]
        return lines, labels

    def _node(self, block: Block) -> NodePicture:
        x, width, height = block.x, block.width, block.height
        top, fill = self._top_of(block), block.fill
        edge, radius = PALE if block.is_cut else INK, 3.0 if self.is_rounded else 0.0
        box = Rectangle(x - width / 2, top, width, height, fill, edge, block.is_cut, radius)
        node = NodePicture(block.node, block.title, box)
        if self.is_upright and block.is_last:
            node.shapes.append(Text(x, top + height / 2, *block.box[0], ink_on(fill), upright=True))
            return node
        y = top + PAD / 2
        for words, size, bold in block.box:
            node.shapes.append(Text(x, y + size * LEADING / 2, words, size, bold, ink_on(fill)))
            y += size * LEADING
        left = x - width / 2 + PAD
        for code, probability in enumerate(block.bar):
            if probability > 0:
                length = (width - 2 * PAD) * probability
                node.shapes.append(Rectangle(left, y + 1.0, length, BAR, class_colour(code)))
                left += length
        if block.under:
            node.shapes.append(Text(x, top + height + 2.0 + SIZE * LEADING / 2, block.under, SIZE, True))
        return node


# ---- layout ------------------------------------------------------------------------------------------------------
#
# Trees are as narrow as possible without overlap, with parents centred above their children. Rows alternate: row 2d has
# the boxes of depth d, row 2d - 1 the labels of the branches to them. Leaves are in the last row, and the lines to them
# need space in the rows between. Each subtree is built once, from the bottom, with its outline: its leftmost and
# rightmost point in every row (Reingold and Tilford 1981, with widths). Siblings are moved to the left until their
# outlines touch.

LINE_MARGIN = 4.0  # half the width that is reserved for a line


class _Outline(NamedTuple):
    """Leftmost and rightmost point of a subtree in each row, from that of its label, relative to its root."""

    low: list[float]
    high: list[float]


def place(blocks: Sequence[Block], gap: float) -> list[float]:
    """Return the x of each node, the smallest left edge being 0.

    Parameters
    ----------
    blocks : sequence of Block
        Nodes in preorder.
    gap : float
        Minimum distance between neighbours.
    """
    bottom = 2 * max(block.depth for block in blocks)
    outlines: list[_Outline | None] = [None] * len(blocks)
    offset = [0.0] * len(blocks)  # of a node from its parent
    for i in range(len(blocks) - 1, -1, -1):
        block = blocks[i]
        if not block.children:
            outlines[i] = _leaf_outline(block, bottom)
            continue
        below = [outline for child in block.children if (outline := outlines[child]) is not None]
        steps = _side_by_side(below, gap)
        for child, step in zip(block.children, steps, strict=True):
            outlines[child], offset[child] = None, step
        outlines[i] = _combined_outline(block, below, steps)
    x = [0.0] * len(blocks)
    for i, block in enumerate(blocks):
        for child in block.children:
            x[child] = x[i] + offset[child]
    root = outlines[0]
    assert root is not None
    return [value - min(root.low) for value in x]


def _leaf_outline(block: Block, bottom: int) -> _Outline:
    n_between = bottom - 2 * block.depth
    high = [block.half_label, *[LINE_MARGIN] * n_between, block.half_box]
    return _Outline([-value for value in high], high)


def _side_by_side(outlines: list[_Outline], gap: float) -> list[float]:
    """Return how far siblings are from the middle between the first and the last."""
    places, edge = [0.0], outlines[0].high
    for outline in outlines[1:]:
        places.append(max(h - lo for h, lo in zip(edge, outline.low, strict=False)) + gap)
        moved = [h + places[-1] for h in outline.high]
        edge = [max(pair) for pair in zip_longest(edge, moved, fillvalue=-math.inf)]
    return [place - places[-1] / 2 for place in places]


def _combined_outline(block: Block, below: list[_Outline], steps: list[float]) -> _Outline:
    own = max(block.half_box, steps[-1] + LINE_MARGIN)  # the line to the children is in the row of the box
    lows = [[x + step for x in outline.low] for outline, step in zip(below, steps, strict=True)]
    highs = [[x + step for x in outline.high] for outline, step in zip(below, steps, strict=True)]
    low = [min(row) for row in zip_longest(*lows, fillvalue=math.inf)]
    high = [max(row) for row in zip_longest(*highs, fillvalue=-math.inf)]
    return _Outline([-block.half_label, -own, *low], [block.half_label, own, *high])


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
