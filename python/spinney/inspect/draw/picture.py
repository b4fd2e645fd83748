"""A tree as shapes and texts, in points with y downwards, to be drawn as SVG or with matplotlib.

Two styles. "full": a box per node with prediction, probabilities and rows, the split column below it, the conditions on
the branches. "compact", for trees with many leaves: inner boxes have the condition, left means yes, and leaves are
small boxes, or vertical ones if there are very many. A legend above the tree names the colours of the classes and the
contents of leaves.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, NamedTuple

from spinney._data.display import elide, grouped, one_line, percent, plural, shortest, thousands
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.user_criterion import name_of
from spinney.inspect.draw.axes import INK, PALE, class_colour, ink_on, short, tint, value_tint
from spinney.inspect.text.conditions import Condition
from spinney.inspect.text.reader import Names, Step, TreeReader, require_count

Style = Literal["auto", "full", "compact"]
Labels = Literal["all", "root", "none"]

SIZE, SMALL = 10.0, 9.0  # of the font
LEADING = 1.3
PAD, GAP, MARGIN = 6.0, 10.0, 8.0
BAR = 4.0  # height of the bar of class probabilities
STUB = 7.0  # from a node to the line to its children
_FULL_LEAVES = 14  # more leaves than this are drawn in the compact style
_FLAT_LEAVES = 24  # more leaves than this are vertical there
_LEGEND_CLASSES = 8  # the number of colours
_LONG_NUMBERS = 10_000  # cuts from this on have digit groups; years do not
_MAX_LETTERS, _LABEL_LETTERS = 26, 20
_MAX_PROBABILITIES = 4


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


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the boxes of a picture show; the parameters of `plot_tree` of these names."""

    filled: bool = True
    rounded: bool = True
    impurity: bool = False
    node_ids: bool = False
    proportion: bool | None = None
    label: Labels = "all"

    def __post_init__(self) -> None:
        if self.label not in ("all", "root", "none"):
            raise ValueError(f"label must be 'all', 'root' or 'none', not {self.label!r}.")

    @property
    def has_details(self) -> bool:
        """Whether boxes show more than those of small pictures have space for."""
        return self.impurity or self.node_ids or self.proportion is not None

    def words(self, node: int, name: str, text: str) -> str:
        """Return a text with the name of what it is, in the boxes that have names."""
        return f"{name} = {text}" if self.label == "all" or (self.label == "root" and node == 0) else text

    def size(self, reader: TreeReader, node: int) -> str:
        """Return the number of training rows of a node, their fraction, or both."""
        n, fraction = f"{reader.n_rows(node):,}", percent(reader.fraction(node))
        return f"{n} ({fraction})" if self.proportion is None else fraction if self.proportion else n

    def lines(self, reader: TreeReader, node: int) -> list[str]:
        """Return the number and the impurity of a node."""
        number = [self.words(node, "node", str(node))] if self.node_ids else []
        if not self.impurity:
            return number
        name, impurity = name_of(reader.model.criterion), float(reader.tree.impurity[node])
        return [*number, self.words(node, name, grouped(reader.number(impurity, 3)))]


@dataclass(kw_only=True)
class _Block:
    """A node before it is placed: its texts, its children (-1: a leaf) and its size."""

    node: int
    depth: int
    is_last: bool  # a leaf, or a branch that is not drawn further
    box: list[tuple[str, float, bool]]  # lines: words, size, bold
    under: str  # the split column, below the box
    label: list[str]  # the condition on the branch to it
    title: str
    left: int = -1
    right: int = -1
    x: float = 0.0
    width: float = 0.0  # of the box
    height: float = 0.0
    half_box: float = 0.0  # half the width of the box and the column name below it
    half_label: float = 0.0

    @property
    def label_height(self) -> float:
        return SMALL * LEADING * len(self.label)

    def measure(self, is_upright: bool, bar: float) -> None:
        """Set the size of the box, with a bar of this height, and of the label."""
        self.width = max(text_width(words, size, bold=bold) for words, size, bold in self.box) + 2 * PAD
        self.height = sum(size * LEADING for _, size, _ in self.box) + PAD
        if is_upright and self.is_last:
            self.width, self.height = self.height, self.width
        else:
            self.height += bar
        self.half_box = max(self.width, text_width(self.under, SIZE, bold=True)) / 2
        self.half_label = max((text_width(words, SMALL) + 4.0 for words in self.label), default=0.0) / 2


def draw(
    model: TableEstimator,
    *,
    feature_names: Names = None,
    class_names: Names | bool = None,
    max_depth: int | None = None,
    decimals: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
    look: Look = Look(),
) -> Picture:
    """Return the picture of a fitted tree; parameters as in `plot_tree`."""
    if style not in ("auto", "full", "compact"):
        raise ValueError(f"style must be 'auto', 'full' or 'compact', not {style!r}.")
    require_count("max_depth", max_depth)
    reader = TreeReader(model, decimals, show_missing, feature_names, class_names)
    n_shown = sum(reader.is_end(step.node, max_depth) for step in reader.walk(max_depth))
    is_compact = style == "compact" or (style == "auto" and n_shown > _FULL_LEAVES and not look.has_details)
    is_upright = is_compact and n_shown > _FLAT_LEAVES
    blocks = _blocks(reader, max_depth, is_compact, is_upright, look)
    return _Drawing(reader, blocks, is_compact, is_upright, look).picture()


# ---- texts of the nodes -----------------------------------------------------------------------------------------


def _blocks(reader: TreeReader, max_depth: int | None, is_compact: bool, is_upright: bool, look: Look) -> list[_Block]:
    position: dict[int, int] = {}
    blocks: list[_Block] = []
    for step in reader.walk(max_depth):
        node, is_last = step.node, reader.is_end(step.node, max_depth)
        block = _Block(
            node=node,
            depth=int(reader.tree.depth[node]),
            is_last=is_last,
            box=(
                _compact_lines(reader, step, is_last, is_upright, look)
                if is_compact
                else _full_lines(reader, node, is_last, look)
            ),
            under="" if is_last or is_compact else short(reader.features[reader.column(node)].name, 30),
            label=_label(reader, step, is_compact),
            title=_title(reader, step),
        )
        if node:
            parent = blocks[position[int(reader.parent[node])]]
            parent.left, parent.right = (len(blocks), -1) if parent.left < 0 else (parent.left, len(blocks))
        position[node] = len(blocks)
        blocks.append(block)
    return blocks


def _full_lines(reader: TreeReader, node: int, is_last: bool, look: Look) -> list[tuple[str, float, bool]]:
    lines = look.lines(reader, node)
    if reader.has_probabilities:
        lines.append(_class_line(reader, node, look))
    elif spread := reader.spread(node):
        lines.append(grouped(spread))
    lines.append(look.words(node, "n", look.size(reader, node)))
    if is_last:
        lines += _hidden_leaves(reader, node)
    return [(_prediction(reader, node), SIZE, True), *[(line, SMALL, False) for line in lines]]


def _class_line(reader: TreeReader, node: int, look: Look) -> str:
    """Return the class probabilities, or the training weight of each class; of many classes, that of the predicted."""
    probabilities = reader.probabilities(node)[0]
    if len(probabilities) > _MAX_PROBABILITIES:
        probabilities = [reader.purity(node) or 0.0]
        if look.proportion is not False:
            return percent(probabilities[0])
    if look.proportion is False:
        texts = [thousands(shortest(probability * reader.weight(node))) for probability in probabilities]
    else:
        texts = [_short_decimal(probability) for probability in probabilities]
    return "\N{NO-BREAK SPACE} ".join(texts)


def _hidden_leaves(reader: TreeReader, node: int) -> list[str]:
    """Return the number of leaves below a collapsed node as text."""
    return [] if reader.is_leaf(node) else [f"… {plural(int(reader.n_leaves_below[node]), 'leaf')}"]


def _prediction(reader: TreeReader, node: int) -> str:
    """Return the prediction of a node as short text."""
    text = reader.prediction_text(node)
    return elide(text if reader.is_classifier else grouped(text), _MAX_LETTERS)


def _condition_lines(reader: TreeReader, condition: Condition, reach: Condition | None = None) -> list[str]:
    """Return the condition of a branch in short lines."""
    lines = condition.short_lines(reach, show_missing=reader.shows_missing(condition.column))
    is_number = condition.kind == "number" and not condition.feature.clock
    return [grouped(line, _LONG_NUMBERS) for line in lines] if is_number else lines


def _short_decimal(probability: float) -> str:
    """Return two decimals without the leading zero; 1 and 0 only if exact."""
    if probability in (0.0, 1.0):
        return f"{probability:.0f}"
    return f"{min(max(probability, 0.01), 0.99):.2f}"[1:]


def _compact_lines(
    reader: TreeReader, step: Step, is_last: bool, is_upright: bool, look: Look
) -> list[tuple[str, float, bool]]:
    node = step.node
    if not is_last:
        side, reach = reader.sides(node)[0], step.path.get(reader.column(node))
        first, lines = short(side.column, _LABEL_LETTERS), _joined(_condition_lines(reader, side, reach))
        lines += look.lines(reader, node)
    else:
        purity = [_short_decimal(reader.purity(node) or 0.0)] if reader.has_probabilities else []
        first = _prediction(reader, node)
        size = percent(reader.fraction(node)) if look.proportion is not False else look.size(reader, node)
        lines = [*look.lines(reader, node), *purity, size, *_hidden_leaves(reader, node)]
        if is_upright:
            return [("  ".join([first, *lines]), SMALL, False)]
    return [(first, SMALL, True), *[(line, SMALL, False) for line in lines]]


def _joined(lines: list[str]) -> list[str]:
    """Join consecutive lines while they stay short."""
    joined = lines[:1]
    for line in lines[1:]:
        if len(joined[-1]) + 1 + len(line) <= _LABEL_LETTERS + 2:
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return joined


def _leaf_legend(reader: TreeReader, is_upright: bool, look: Look) -> str:
    """Return a description of the leaves of a compact picture."""
    what = "classes" if reader.is_classifier else "values"
    if reader.tree.n_outputs == 1:
        what = reader.centre
    details = ", number" * look.node_ids + ", impurity" * look.impurity
    if reader.has_probabilities:
        what, details = "class", f"{details}, its probability"
    size = "fraction of the rows" if look.proportion is not False else "number of rows"
    return f"leaf{', read upwards' * is_upright}: {what}{details}, {size}"


def _label(reader: TreeReader, step: Step, is_compact: bool) -> list[str]:
    condition = step.condition
    if condition is None:
        return []
    if is_compact:
        return ["yes" if step.node == 1 else "no"] if reader.parent[step.node] == 0 else []
    lines = _condition_lines(reader, condition, step.reach)
    if (surrogate := reader.surrogate_condition(step)) is not None:
        lines += [f"missing: {one_line(surrogate.column)}", *surrogate.short_lines(show_missing=False)]
    return [elide(line, _LABEL_LETTERS + 2) for line in lines]


def _title(reader: TreeReader, step: Step) -> str:
    node, condition = step.node, step.condition
    text = "" if condition is None else f"{condition.describe()}{reader.surrogate_text(step)}\n"
    return f"{text}{reader.rows_text(node)}\n→ {reader.prediction_text(node)} (node {node})"


# ---- positions -------------------------------------------------------------------------------------------


class _Drawing:
    """The positions and shapes of blocks."""

    def __init__(
        self, reader: TreeReader, blocks: list[_Block], is_compact: bool, is_upright: bool, look: Look
    ) -> None:
        self.reader, self.blocks, self.look = reader, blocks, look
        self.is_compact, self.is_upright = is_compact, is_upright
        self.has_bars = not is_compact and reader.has_probabilities
        self.bottom = max(block.depth for block in blocks)
        self.under = 0.0 if is_compact else SIZE * LEADING + 2.0
        for block in blocks:
            block.measure(is_upright, BAR + 2.0 if self.has_bars else 0.0)
        tallest = max(block.height for block in blocks if block.is_last)
        for block in blocks:
            if is_compact and block.is_last:  # leaves have equal heights
                block.height = tallest
        values = reader.tree.flat_value[reader.tree.is_leaf, 0]
        self.low, self.high = float(values.min()), float(values.max())

    def picture(self) -> Picture:
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
        n = int(self.reader.tree.n_leaves)
        about = f"{type(self.reader.model).__name__}: a tree with {plural(n, 'leaf')}"
        return Picture(max(width, legend_width), height, lines, nodes, labels, legend, about, self.is_compact)

    def _legend(self, width: float) -> tuple[list[Text | Rectangle], float, float]:
        """Return the legend, wrapped to the width of the picture, its width, and the y where the tree begins."""
        entries: list[tuple[str, str]] = []  # colour, words
        if self.reader.has_probabilities and len(self.reader.classes[0]) <= _LEGEND_CLASSES:
            names = [short(label, _LABEL_LETTERS) for label in self.reader.classes[0]]
            entries += [(tint(class_colour(code), 1.0), name) for code, name in enumerate(names)]
        if self.is_compact:
            entries.append(("", _leaf_legend(self.reader, self.is_upright, self.look)))
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

    def _top_of(self, block: _Block) -> float:
        return self.top[self.bottom if block.is_last else block.depth]

    def _branches(self) -> tuple[list[Line], list[Text | Rectangle]]:
        """Return the lines from each node to its children, and their labels."""
        lines: list[Line] = []
        labels: list[Text | Rectangle] = []
        for block in self.blocks:
            bar = self.bar[block.depth]
            if block.left >= 0:
                lines.append(Line(((block.x, self.top[block.depth] + block.height + self.under), (block.x, bar))))
                left, right = self.blocks[block.left], self.blocks[block.right]
                down = (left.x, self._top_of(left)), (right.x, self._top_of(right))
                lines.append(Line((down[0], (left.x, bar), (right.x, bar), down[1])))
            if block.label:
                top, half = self.bar[block.depth - 1] + 5.0, block.half_label
                labels.append(Rectangle(block.x - half, top, 2 * half, block.label_height, "#ffffff"))
                middles = [top + (k + 0.5) * SMALL * LEADING for k in range(len(block.label))]
                labels += [Text(block.x, y, words, SMALL) for y, words in zip(middles, block.label, strict=True)]
        return lines, labels

    def _fill(self, node: int) -> str:
        reader = self.reader
        if not self.look.filled:
            return "#ffffff"
        if reader.tree.n_outputs > 1:
            return "#f4f4f4"
        if not reader.is_classifier:
            return value_tint(float(reader.tree.flat_value[node, 0]), self.low, self.high)
        return tint(class_colour(int(reader.tree.majority[node, 0])), reader.certainty(node))

    def _node(self, block: _Block) -> NodePicture:
        x, width, height = block.x, block.width, block.height
        top, fill = self._top_of(block), self._fill(block.node)
        is_cut = block.is_last and not self.reader.is_leaf(block.node)
        edge, radius = PALE if is_cut else INK, 3.0 if self.look.rounded else 0.0
        box = Rectangle(x - width / 2, top, width, height, fill, edge, is_cut, radius)
        node = NodePicture(block.node, block.title, box)
        if self.is_upright and block.is_last:
            node.shapes.append(Text(x, top + height / 2, *block.box[0], ink_on(fill), upright=True))
            return node
        y = top + PAD / 2
        for words, size, bold in block.box:
            node.shapes.append(Text(x, y + size * LEADING / 2, words, size, bold, ink_on(fill)))
            y += size * LEADING
        if self.has_bars:
            node.shapes.extend(self._probability_bar(block.node, x - width / 2 + PAD, y + 1.0, width - 2 * PAD))
        if block.under:
            node.shapes.append(Text(x, top + height + 2.0 + SIZE * LEADING / 2, block.under, SIZE, True))
        return node

    def _probability_bar(self, node: int, x: float, y: float, width: float) -> list[Rectangle]:
        bars = []
        for code, probability in enumerate(self.reader.probabilities(node)[0]):
            if probability > 0:
                bars.append(Rectangle(x, y, width * probability, BAR, class_colour(code)))
                x += width * probability
        return bars


# ---- layout ------------------------------------------------------------------------------------------------------
#
# Trees are as narrow as possible without overlap, with parents centred above their children. Rows alternate: row 2d has
# the boxes of depth d, row 2d - 1 the labels of the branches to them. Leaves are in the last row, and the lines to them
# need space in the rows between. Each subtree is built once, from the bottom, with its outline: its leftmost and
# rightmost point in every row (Reingold and Tilford 1981, with widths). Two siblings are moved together until their
# outlines touch.

LINE_MARGIN = 4.0  # half the width that is reserved for a line


class _Outline(NamedTuple):
    """Leftmost and rightmost point of a subtree in each row, from that of its label, relative to its root."""

    low: list[float]
    high: list[float]


def place(blocks: Sequence[_Block], gap: float) -> list[float]:
    """Return the x of each node, the smallest left edge being 0.

    Parameters
    ----------
    blocks : sequence of _Block
        Nodes in preorder.
    gap : float
        Minimum distance between neighbours.
    """
    bottom = 2 * max(block.depth for block in blocks)
    outlines: list[_Outline | None] = [None] * len(blocks)
    offset = [0.0] * len(blocks)  # of a node from its parent
    for i in range(len(blocks) - 1, -1, -1):
        block = blocks[i]
        if block.left < 0:
            outlines[i] = _leaf_outline(block, bottom)
            continue
        left, right = outlines[block.left], outlines[block.right]
        outlines[block.left] = outlines[block.right] = None
        assert left is not None and right is not None  # noqa: PT018
        half = (max(h - lo for h, lo in zip(left.high, right.low, strict=False)) + gap) / 2
        offset[block.left], offset[block.right] = -half, half
        outlines[i] = _combined_outline(block, left, right, half)
    x = [0.0] * len(blocks)
    for i, block in enumerate(blocks):
        for child in (block.left, block.right):
            if child >= 0:
                x[child] = x[i] + offset[child]
    root = outlines[0]
    assert root is not None
    return [value - min(root.low) for value in x]


def _leaf_outline(block: _Block, bottom: int) -> _Outline:
    n_between = bottom - 2 * block.depth
    high = [block.half_label, *[LINE_MARGIN] * n_between, block.half_box]
    return _Outline([-value for value in high], high)


def _combined_outline(block: _Block, left: _Outline, right: _Outline, half: float) -> _Outline:
    own = max(block.half_box, half + LINE_MARGIN)  # the line to the children is in the row of the box
    low = [min(a - half, b + half) for a, b in zip_longest(left.low, right.low, fillvalue=math.inf)]
    high = [max(a - half, b + half) for a, b in zip_longest(left.high, right.high, fillvalue=-math.inf)]
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
