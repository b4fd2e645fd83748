"""The picture of a tree of ID3 or C4.5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spinney._data.display import elide, plural, shortest
from spinney.inspect.draw.axes import class_colour, short, tint
from spinney.inspect.draw.layout import LABEL_LETTERS, SIZE, SMALL, Block, Drawing, Picture
from spinney.inspect.draw.look import Look
from spinney.inspect.text.multiway import MultiwayTree
from spinney.inspect.text.split_tables import node_impurity

_MAX_LETTERS = 26


def draw_multiway(tree: MultiwayTree, max_depth: int | None, decimals: int | None, look: Look) -> Picture:
    """Return the picture of a tree with any number of branches per split."""
    blocks: list[Block] = []
    parents: dict[int, int] = {}  # position of the parent of each node that has one
    for branch, text, depth, parent in _walk(tree, max_depth, decimals):
        node = len(blocks)
        blocks.append(_block(branch, node, depth, text, float(tree.weights.sum()), depth == max_depth, look))
        if parent is not None:
            parents[node] = parent
            blocks[parent].children.append(node)
    name = f"MultiwayTree: a tree with {plural(tree.n_leaves, 'leaf')}"
    return Drawing(blocks, list(tree._classes), name=name, is_rounded=look.rounded).picture()


def _walk(
    tree: MultiwayTree, max_depth: int | None, decimals: int | None
) -> Iterator[tuple[MultiwayTree, str, int, int | None]]:
    """Yield the nodes in preorder: each with the text of its branch, its depth and the number of its parent."""
    stack: list[tuple[MultiwayTree, str, int, int | None]] = [(tree, "", 0, None)]
    node = -1
    while stack:
        found = stack.pop()
        yield found
        node += 1
        branch, _, depth, _ = found
        if depth != max_depth:
            below = [
                (child, branch.branch_text(code, decimals), depth + 1, node) for code, child in branch.branches.items()
            ]
            stack.extend(reversed(below))


def _block(
    branch: MultiwayTree, node: int, depth: int, text: str, n_rows: float, is_deepest: bool, look: Look
) -> Block:
    weights = branch.weights
    probabilities, weight = weights / weights.sum(), float(weights.sum())
    code, largest = int(weights.argmax()), float(probabilities.max())
    prediction = elide(str(branch._classes[code]), _MAX_LETTERS)
    is_last = is_deepest or branch.column is None
    is_cut = is_last and branch.column is not None
    entropy = f"{float(node_impurity(weights, 'entropy', 'bits')):.3f}"
    rows = shortest(round(weight, 2))
    lines = [
        *look.lines(node, "entropy", entropy),
        look.class_line(probabilities.tolist(), weight, largest),
        look.words(node, "n", look.size(rows, weight / n_rows)),
        *([f"… {plural(branch.n_leaves, 'leaf')}"] if is_cut else []),
    ]
    uniform = 1 / len(weights)
    certainty = max(0.0, (largest - uniform) / (1 - uniform)) if len(weights) > 1 else 1.0
    counts = ", ".join(
        f"{shortest(round(float(own), 2))} {label}" for own, label in zip(weights, branch._classes, strict=True)
    )
    return Block(
        node=node,
        depth=depth,
        is_last=is_last,
        box=[(prediction, SIZE, True), *[(line, SMALL, False) for line in lines]],
        under="" if branch.column is None or is_last else short(branch._names[branch.column], 30),
        label=[elide(text, LABEL_LETTERS + 2)] if text else [],
        title=f"{rows} rows: {counts}\n→ {prediction} (node {node})",
        fill=tint(class_colour(code), certainty) if look.filled else "#ffffff",
        bar=np.asarray(probabilities).tolist(),
        is_cut=is_cut,
    )
