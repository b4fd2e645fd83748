"""A tree as shapes and texts, to be drawn as SVG or with matplotlib.

Two styles. "full": a box per node with prediction, probabilities and rows, the split column below it, the conditions on
the branches. "compact", for trees with many leaves: inner boxes have the condition, left means yes, and leaves are
small boxes, or vertical ones if there are very many. A legend above the tree names the colours of the classes and the
contents of leaves.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from spinney._data.display import elide, grouped, one_line, percent, plural
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.user_criterion import name_of
from spinney.inspect.draw.axes import class_colour, short, tint, value_tint
from spinney.inspect.draw.layout import LABEL_LETTERS, SIZE, SMALL, Block, Drawing, Picture
from spinney.inspect.draw.look import Look, short_decimal
from spinney.inspect.draw.multiway_picture import draw_multiway
from spinney.inspect.text.conditions import Condition
from spinney.inspect.text.multiway import MultiwayTree
from spinney.inspect.text.reader import Names, Step, TreeReader, require_count

Style = Literal["auto", "full", "compact"]

_FULL_LEAVES = 14  # more leaves than this are drawn in the compact style
_FLAT_LEAVES = 24  # more leaves than this are vertical there
_LONG_NUMBERS = 10_000  # cuts from this on have digit groups; years do not
_MAX_LETTERS = 26


def draw(
    model: TableEstimator | MultiwayTree,
    *,
    feature_names: Names = None,
    class_names: Names | bool = None,
    max_depth: int | None = None,
    decimals: int | None = None,
    style: Style = "auto",
    show_missing: bool | Collection[str] = "seen",
    look: Look = Look(),  # noqa: B008 (immutable)
) -> Picture:
    """Return the picture of a fitted tree; parameters as in `plot_tree`."""
    if style not in ("auto", "full", "compact"):
        raise ValueError(f"style must be 'auto', 'full' or 'compact', not {style!r}.")
    require_count("max_depth", max_depth)
    if isinstance(model, MultiwayTree):
        if style == "compact" or feature_names is not None or class_names is not None:
            raise ValueError(
                "A MultiwayTree is drawn in the full style, by the names of the table that it was grown on."
            )
        return draw_multiway(model, max_depth, decimals, look)
    reader = TreeReader(model, decimals, show_missing, feature_names, class_names)
    n_shown = sum(reader.is_end(step.node, max_depth) for step in reader.walk(max_depth))
    is_compact = style == "compact" or (style == "auto" and n_shown > _FULL_LEAVES and not look.has_details)
    is_upright = is_compact and n_shown > _FLAT_LEAVES
    blocks = _blocks(reader, max_depth, is_compact, is_upright, look)
    n_leaves = plural(int(reader.tree.n_leaves), "leaf")
    return Drawing(
        blocks,
        list(reader.classes[0]) if reader.has_probabilities else [],
        _leaf_legend(reader, is_upright, look) if is_compact else "",
        f"{type(model).__name__}: a tree with {n_leaves}",
        is_compact,
        is_upright,
        look.rounded,
    ).picture()


# ---- texts of the nodes -----------------------------------------------------------------------------------------


def _blocks(reader: TreeReader, max_depth: int | None, is_compact: bool, is_upright: bool, look: Look) -> list[Block]:
    position: dict[int, int] = {}
    blocks: list[Block] = []
    values = reader.tree.flat_value[reader.tree.is_leaf, 0]
    span = float(values.min()), float(values.max())
    has_bars = not is_compact and reader.has_probabilities
    for step in reader.walk(max_depth):
        node, is_last = step.node, reader.is_end(step.node, max_depth)
        block = Block(
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
            fill=_fill(reader, node, look, span),
            bar=reader.probabilities(node)[0] if has_bars else [],
            is_cut=is_last and not reader.is_leaf(node),
        )
        if node:
            blocks[position[int(reader.parent[node])]].children.append(len(blocks))
        position[node] = len(blocks)
        blocks.append(block)
    return blocks


def _full_lines(reader: TreeReader, node: int, is_last: bool, look: Look) -> list[tuple[str, float, bool]]:
    lines = _details(reader, node, look)
    if reader.has_probabilities:
        lines.append(_class_line(reader, node, look))
    elif spread := reader.spread(node):
        lines.append(grouped(spread))
    lines.append(look.words(node, "n", _size(reader, node, look)))
    if is_last:
        lines += _hidden_leaves(reader, node)
    return [(_prediction(reader, node), SIZE, True), *[(line, SMALL, False) for line in lines]]


def _class_line(reader: TreeReader, node: int, look: Look) -> str:
    """Return the class probabilities, or the training weight of each class; of many classes, that of the predicted."""
    return look.class_line(reader.probabilities(node)[0], reader.weight(node), reader.purity(node) or 0.0)


def _size(reader: TreeReader, node: int, look: Look) -> str:
    return look.size(f"{reader.n_rows(node):,}", reader.fraction(node))


def _details(reader: TreeReader, node: int, look: Look) -> list[str]:
    """Return the number and the impurity of a node."""
    impurity = grouped(reader.number(float(reader.tree.impurity[node]), 3)) if look.impurity else ""
    return look.lines(node, name_of(reader.model.criterion), impurity)


def _hidden_leaves(reader: TreeReader, node: int) -> list[str]:
    """Return the number of leaves below a collapsed node as text."""
    return [] if reader.is_leaf(node) else [f"… {plural(int(reader.n_leaves_below[node]), 'leaf')}"]


def _fill(reader: TreeReader, node: int, look: Look, span: tuple[float, float]) -> str:
    """Return the colour of a box: that of its class, or of its value between the lowest and the highest."""
    if not look.filled:
        return "#ffffff"
    if reader.tree.n_outputs > 1:
        return "#f4f4f4"
    if not reader.is_classifier:
        return value_tint(float(reader.tree.flat_value[node, 0]), *span)
    return tint(class_colour(int(reader.tree.majority[node, 0])), reader.certainty(node))


def _prediction(reader: TreeReader, node: int) -> str:
    """Return the prediction of a node as short text."""
    text = reader.prediction_text(node)
    return elide(text if reader.is_classifier else grouped(text), _MAX_LETTERS)


def _condition_lines(reader: TreeReader, condition: Condition, reach: Condition | None = None) -> list[str]:
    """Return the condition of a branch in short lines."""
    lines = condition.short_lines(reach, show_missing=reader.shows_missing(condition.column))
    is_number = condition.kind == "number" and not condition.feature.clock
    return [grouped(line, _LONG_NUMBERS) for line in lines] if is_number else lines


def _compact_lines(
    reader: TreeReader, step: Step, is_last: bool, is_upright: bool, look: Look
) -> list[tuple[str, float, bool]]:
    node = step.node
    if not is_last:
        side, reach = reader.sides(node)[0], step.path.get(reader.column(node))
        first, lines = short(side.column, LABEL_LETTERS), _joined(_condition_lines(reader, side, reach))
        lines += _details(reader, node, look)
    else:
        purity = [short_decimal(reader.purity(node) or 0.0)] if reader.has_probabilities else []
        first = _prediction(reader, node)
        size = percent(reader.fraction(node)) if look.proportion is not False else _size(reader, node, look)
        lines = [*_details(reader, node, look), *purity, size, *_hidden_leaves(reader, node)]
        if is_upright:
            return [("  ".join([first, *lines]), SMALL, False)]
    return [(first, SMALL, True), *[(line, SMALL, False) for line in lines]]


def _joined(lines: list[str]) -> list[str]:
    """Join consecutive lines while they stay short."""
    joined = lines[:1]
    for line in lines[1:]:
        if len(joined[-1]) + 1 + len(line) <= LABEL_LETTERS + 2:
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
    return [elide(line, LABEL_LETTERS + 2) for line in lines]


def _title(reader: TreeReader, step: Step) -> str:
    node, condition = step.node, step.condition
    text = "" if condition is None else f"{condition.describe()}{reader.surrogate_text(step)}\n"
    return f"{text}{reader.rows_text(node)}\n→ {reader.prediction_text(node)} (node {node})"
