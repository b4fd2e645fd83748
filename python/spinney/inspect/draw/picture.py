"""A tree as shapes and texts, in points, y downwards: what SVG and matplotlib draw alike.

Two styles. "full": a box per node with prediction, shares and rows, the column asked beneath it, the answers on the
branches. "compact", for trees with many leaves: inner boxes hold the question, yes is left, and leaves are small boxes,
or upright slips where there are very many. A legend above the tree names the colours of the classes and what leaves
hold.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from spinney._data.display import elide, grouped, one_line, percent, plural
from spinney._estimator.table_estimator import TableEstimator
from spinney.inspect.charts.axes import INK, PALE, VALUE_COLOUR, class_colour, ink_on, tint
from spinney.inspect.draw.layout import Shape, place
from spinney.inspect.draw.letters import text_width
from spinney.inspect.text.conditions import Condition
from spinney.inspect.text.reader import Step, TreeReader

Style = Literal["auto", "full", "compact"]

SIZE, SMALL = 10.0, 9.0  # of letters
LEADING = 1.3
PAD, GAP, MARGIN = 6.0, 10.0, 8.0
BAR = 4.0  # height of the bar of class shares
STUB = 7.0  # from a node to the bar that leads to its children
_FULL_LEAVES = 14  # more leaves than this are drawn in the compact style
_FLAT_LEAVES = 24  # more leaves than this are upright slips there
_LEGEND_CLASSES = 8  # as many as there are colours
_LONG_NUMBERS = 10_000  # cuts from this on are written in groups of digits: years are not
_MOST_LETTERS, _LABEL_LETTERS = 26, 20
_MOST_SHARES = 4


@dataclass(frozen=True)
class Text:
    """One line of text, centred on (x, y); turned to read upwards if `upright`."""

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
class Part:
    """What belongs to one node: its shapes, and all of it in words."""

    node: int
    title: str
    box: Rectangle
    shapes: list[Text | Rectangle] = field(default_factory=list)


@dataclass
class Legend:
    """Which colour is which class, and what leaves hold."""

    boxes: list[Rectangle] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


@dataclass
class Picture:
    """A drawn tree."""

    width: float
    height: float
    lines: list[Line]
    parts: list[Part]
    labels: list[tuple[Rectangle, list[Text]]]
    legend: Legend
    about: str
    is_compact: bool


@dataclass
class _Block:
    """One node before it has a place."""

    node: int
    depth: int
    parent: int  # position among the shown nodes
    is_last: bool  # a leaf, or a branch that is not drawn further
    is_left: bool
    box: list[tuple[str, float, bool]]  # lines: words, size, bold
    under: str  # the column asked, beneath the box
    label: list[str]  # the answer on the branch to it
    title: str
    children: list[int] = field(default_factory=list)

    @property
    def box_size(self) -> tuple[float, float]:
        width = max(text_width(words, size, bold=bold) for words, size, bold in self.box)
        return width + 2 * PAD, sum(size * LEADING for _, size, _ in self.box) + PAD

    @property
    def label_size(self) -> tuple[float, float]:
        width = max((text_width(words, SMALL) for words in self.label), default=0.0)
        return width + (4.0 if self.label else 0.0), SMALL * LEADING * len(self.label)


def draw(
    model: TableEstimator,
    *,
    max_depth: int | None = None,
    decimals: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
) -> Picture:
    """Draw a fitted tree; parameters as for `plot_tree`."""
    from spinney.inspect.text.text import require_depth

    if style not in ("auto", "full", "compact"):
        raise ValueError(f"style must be 'auto', 'full' or 'compact', not {style!r}.")
    require_depth(max_depth)
    reader = TreeReader(model, decimals, show_missing)
    n_shown = sum(_is_last(reader, step.node, max_depth) for step in reader.walk(max_depth))
    is_compact = style == "compact" or (style == "auto" and n_shown > _FULL_LEAVES)
    is_upright = is_compact and n_shown > _FLAT_LEAVES
    blocks = _blocks(reader, max_depth, is_compact, is_upright)
    return _Drawing(reader, blocks, is_compact, is_upright).picture()


def _is_last(reader: TreeReader, node: int, max_depth: int | None) -> bool:
    return reader.is_leaf(node) or (max_depth is not None and int(reader.tree.depth[node]) >= max_depth)


# ---- what the nodes say -----------------------------------------------------------------------------------------


def _blocks(reader: TreeReader, max_depth: int | None, is_compact: bool, is_upright: bool) -> list[_Block]:
    position: dict[int, int] = {}
    blocks: list[_Block] = []
    for step in reader.walk(max_depth):
        node, condition = step.node, step.condition
        parent = position.get(int(reader.parent[node]), -1)
        is_last = _is_last(reader, node, max_depth)
        is_left = condition is not None and node == blocks[parent].node + 1
        block = _Block(
            node=node,
            depth=int(reader.tree.depth[node]),
            parent=parent,
            is_last=is_last,
            is_left=is_left,
            box=_compact_lines(reader, step, is_last, is_upright) if is_compact else _full_lines(reader, node, is_last),
            under="" if is_last or is_compact else elide(one_line(reader.features[reader.column(node)].name), 30),
            label=_label(reader, step, is_left, is_compact),
            title=_title(reader, step),
        )
        if parent >= 0:
            blocks[parent].children.append(len(blocks))
        position[node] = len(blocks)
        blocks.append(block)
    return blocks


def _full_lines(reader: TreeReader, node: int, is_last: bool) -> list[tuple[str, float, bool]]:
    lines = [(_said(reader, node), SIZE, True)]
    if reader.is_classifier and reader.tree.n_outputs == 1:
        shares = reader.shares(node)[0]
        words = (
            "\N{NO-BREAK SPACE} ".join(_short_share(s) for s in shares)
            if len(shares) <= _MOST_SHARES
            else percent(reader.purity(node) or 0.0)
        )
        lines.append((words, SMALL, False))
    elif spread := reader.spread(node):
        lines.append((grouped(spread), SMALL, False))
    lines.append((f"n = {reader.n_rows(node):,} ({percent(reader.share_of_all(node))})", SMALL, False))
    if is_last and not reader.is_leaf(node):
        lines.append((f"… {plural(int(reader.n_leaves_below[node]), 'leaf')}", SMALL, False))
    return lines


def _said(reader: TreeReader, node: int) -> str:
    """Write what a node predicts."""
    words = reader.said(node)
    return elide(words if reader.is_classifier else grouped(words), _MOST_LETTERS)


def _answer(reader: TreeReader, condition: Condition, reach: Condition | None = None) -> list[str]:
    """Write what a branch asks of its column, in short lines."""
    lines = condition.answer(reach, show_missing=reader.shows_missing(condition.column))
    is_number = condition.kind == "number" and not condition.feature.clock
    return [grouped(line, _LONG_NUMBERS) for line in lines] if is_number else lines


def _short_share(share: float) -> str:
    """Two decimals without the zero before the point; 1 and 0 only if exact."""
    if share in (0.0, 1.0):
        return f"{share:.0f}"
    return f"{min(max(share, 0.01), 0.99):.2f}"[1:]


def _compact_lines(reader: TreeReader, step: Step, is_last: bool, is_upright: bool) -> list[tuple[str, float, bool]]:
    node = step.node
    if not is_last:
        side, reach = reader.sides(node)[0], step.path.get(reader.column(node))
        name = elide(one_line(side.column), _LABEL_LETTERS)
        return [(name, SMALL, True), *[(line, SMALL, False) for line in _joined(_answer(reader, side, reach))]]
    said, part = _said(reader, node), percent(reader.share_of_all(node))
    share = [_short_share(reader.purity(node) or 0.0)] if _has_shares(reader) else []
    more = [f"… {plural(int(reader.n_leaves_below[node]), 'leaf')}"] if not reader.is_leaf(node) else []
    if is_upright:
        return [("  ".join([said, *share, part, *more]), SMALL, False)]
    return [(said, SMALL, True), *[(line, SMALL, False) for line in (*share, part, *more)]]


def _joined(lines: list[str]) -> list[str]:
    """Put lines together while they stay short."""
    joined = lines[:1]
    for line in lines[1:]:
        if len(joined[-1]) + 1 + len(line) <= _LABEL_LETTERS + 2:
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    return joined


def _has_shares(reader: TreeReader) -> bool:
    return reader.is_classifier and reader.tree.n_outputs == 1


def _leaf_words(reader: TreeReader, is_upright: bool) -> str:
    """Say what the leaves of a compact picture hold."""
    what = "classes" if reader.is_classifier else "values"
    if reader.tree.n_outputs == 1:
        what = "class, its share" if reader.is_classifier else reader.centre
    return f"leaf{', read upwards' * is_upright}: {what}, part of the rows"


def _label(reader: TreeReader, step: Step, is_left: bool, is_compact: bool) -> list[str]:
    condition = step.condition
    if condition is None:
        return []
    if is_compact:
        return ["yes" if is_left else "no"] if reader.parent[step.node] == 0 else []
    answer = _answer(reader, condition, step.reach)
    if (instead := reader.instead(step)) is not None:
        answer += [f"missing: {one_line(instead.column)}", *instead.answer(show_missing=False)]
    return [elide(line, _LABEL_LETTERS + 2) for line in answer]


def _title(reader: TreeReader, step: Step) -> str:
    node, condition = step.node, step.condition
    asked = "" if condition is None else f"{condition.describe()}{reader.instead_text(step)}\n"
    inside = reader.shares_text(node)
    said = reader.said(node)
    return f"{asked}{reader.size_text(node)}{f' ({inside})' if inside else ''}\n→ {said} (node {node})"


# ---- where they stand -------------------------------------------------------------------------------------------


class _Drawing:
    """Places blocks and turns them into shapes."""

    def __init__(self, reader: TreeReader, blocks: list[_Block], is_compact: bool, is_upright: bool) -> None:
        self.reader, self.blocks, self.is_compact, self.is_upright = reader, blocks, is_compact, is_upright
        self.has_bars = not is_compact and _has_shares(reader)
        self.bottom = max(block.depth for block in blocks)
        self.box_sizes = [self._box_size(block) for block in blocks]
        if is_compact:  # leaves of one height stand in a row
            length = max(h for b, (_, h) in zip(blocks, self.box_sizes, strict=True) if b.is_last)
            self.box_sizes = [(w, length if b.is_last else h) for b, (w, h) in zip(blocks, self.box_sizes, strict=True)]
        values = reader.tree.flat_value[reader.tree.is_leaf, 0]
        self.low, self.high = float(values.min()), float(values.max())

    def _box_size(self, block: _Block) -> tuple[float, float]:
        width, height = block.box_size
        if self.is_upright and block.is_last:
            return height, width
        return width, height + (BAR + 2.0 if self.has_bars else 0.0)

    def picture(self) -> Picture:
        shapes = []
        for block, (width, _) in zip(self.blocks, self.box_sizes, strict=True):
            half = max(width, text_width(block.under, SIZE, bold=True)) / 2
            left, right = block.children or (-1, -1)
            shapes.append(Shape(left, right, block.depth, half, block.label_size[0] / 2))
        gap = 4.0 if self.is_compact else GAP
        self.x = [MARGIN + x for x in place(shapes, gap)]
        width = MARGIN + max(x + max(s.half_box, s.half_label) for x, s in zip(self.x, shapes, strict=True))
        legend, legend_width, top = self._legend(width)
        if legend_width > width:
            self.x = [x + (legend_width - width) / 2 for x in self.x]
            width = legend_width
        self._find_rows(top)
        lines, labels = self._branches()
        parts = [self._part(i) for i in range(len(self.blocks))]
        height = max(part.box.y + part.box.height for part in parts) + MARGIN
        n = int(self.reader.tree.n_leaves)
        about = f"{type(self.reader.model).__name__}: a tree with {plural(n, 'leaf')}"
        return Picture(width, height, lines, parts, labels, legend, about, self.is_compact)

    def _legend(self, width: float) -> tuple[Legend, float, float]:
        """Return the legend, in lines of the picture's width, the width it needs, and where the tree begins."""
        entries: list[tuple[str, str]] = []  # colour, words
        if _has_shares(self.reader) and len(self.reader.classes[0]) <= _LEGEND_CLASSES:
            names = [elide(one_line(label), _LABEL_LETTERS) for label in self.reader.classes[0]]
            entries += [(tint(class_colour(code), 1.0), name) for code, name in enumerate(names)]
        if self.is_compact:
            entries.append(("", _leaf_words(self.reader, self.is_upright)))
        legend, x, y, needed = Legend(), MARGIN, MARGIN, 0.0
        for colour, words in entries:
            swatch = SMALL + 4.0 if colour else 0.0
            length = swatch + text_width(words, SMALL)
            if x > MARGIN and x + length > width - MARGIN:
                x, y = MARGIN, y + SMALL * LEADING + 3.0
            if colour:
                legend.boxes.append(Rectangle(x, y + 1.5, SMALL, SMALL, colour, INK, radius=1.5))
            middle = x + swatch + text_width(words, SMALL) / 2
            legend.texts.append(Text(middle, y + SMALL * LEADING / 2, words, SMALL))
            needed = max(needed, x + length + MARGIN)
            x += length + 2 * GAP
        return legend, needed, y + (SMALL * LEADING + GAP if entries else 0.0)

    def _find_rows(self, y: float) -> None:
        """Find the top of each row of boxes and of the bars beneath them."""
        self.top, self.bar = [0.0] * (self.bottom + 1), [0.0] * (self.bottom + 1)
        for depth in range(self.bottom + 1):
            inner = [i for i, b in enumerate(self.blocks) if b.depth == depth and not b.is_last]
            label = max((b.label_size[1] for b in self.blocks if b.depth == depth), default=0.0)
            if depth:
                y += label + (10.0 if label else 6.0)
            self.top[depth] = y
            if inner:
                under = 0.0 if self.is_compact else SIZE * LEADING + 2.0
                y += max(self.box_sizes[i][1] for i in inner) + under + STUB
            self.bar[depth] = y

    def _top_of(self, i: int) -> float:
        block = self.blocks[i]
        return self.top[self.bottom] if block.is_last else self.top[block.depth]

    def _branches(self) -> tuple[list[Line], list[tuple[Rectangle, list[Text]]]]:
        lines, labels = [], []
        for i, block in enumerate(self.blocks):
            x, bar = self.x[i], self.bar[block.depth]
            if block.children:
                under = 0.0 if self.is_compact else SIZE * LEADING + 2.0
                lines.append(Line(((x, self.top[block.depth] + self.box_sizes[i][1] + under), (x, bar))))
                ends = [(self.x[child], self._top_of(child)) for child in block.children]
                (x1, y1), (x2, y2) = ends
                lines.append(Line(((x1, y1), (x1, bar), (x2, bar), (x2, y2))))
            if block.label:
                labels.append(self._branch_label(i))
        return lines, labels

    def _branch_label(self, i: int) -> tuple[Rectangle, list[Text]]:
        block = self.blocks[i]
        width, height = block.label_size
        top = self.bar[block.depth - 1] + 5.0
        box = Rectangle(self.x[i] - width / 2, top, width, height, "#ffffff")
        step = SMALL * LEADING
        texts = [Text(self.x[i], top + (k + 0.5) * step, words, SMALL) for k, words in enumerate(block.label)]
        return box, texts

    def _fill(self, node: int) -> str:
        reader = self.reader
        if reader.tree.n_outputs > 1:
            return "#f4f4f4"
        if not reader.is_classifier:
            value = float(reader.tree.flat_value[node, 0])
            return tint(VALUE_COLOUR, (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5)
        return tint(class_colour(int(reader.tree.majority[node, 0])), reader.certainty(node))

    def _part(self, i: int) -> Part:
        block, (width, height) = self.blocks[i], self.box_sizes[i]
        x, top, fill = self.x[i], self._top_of(i), self._fill(self.blocks[i].node)
        is_cut = block.is_last and not self.reader.is_leaf(block.node)
        box = Rectangle(x - width / 2, top, width, height, fill, PALE if is_cut else INK, is_cut, 3.0)
        part = Part(block.node, block.title, box)
        if self.is_upright and block.is_last:
            words, size, bold = block.box[0]
            part.shapes.append(Text(x, top + height / 2, words, size, bold, ink_on(fill), upright=True))
            return part
        y = top + PAD / 2
        for words, size, bold in block.box:
            part.shapes.append(Text(x, y + size * LEADING / 2, words, size, bold, ink_on(fill)))
            y += size * LEADING
        if self.has_bars:
            part.shapes.extend(self._share_bar(block.node, x - width / 2 + PAD, y + 1.0, width - 2 * PAD))
        if block.under:
            part.shapes.append(Text(x, top + height + 2.0 + SIZE * LEADING / 2, block.under, SIZE, True))
        return part

    def _share_bar(self, node: int, x: float, y: float, width: float) -> list[Rectangle]:
        bars = []
        for code, share in enumerate(self.reader.shares(node)[0]):
            if share > 0:
                bars.append(Rectangle(x, y, width * share, BAR, class_colour(code)))
                x += width * share
        return bars
