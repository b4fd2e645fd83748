"""The leaves of a tree as boxes, and the point of each that is nearest to a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from spinney._model.tree import FittedTree
from spinney.inspect.explain.moves import Moves
from spinney.inspect.explain.target_model import Floats


@dataclass(frozen=True)
class _Side:
    """What the way to a leaf asks of one column.

    Attributes
    ----------
    low, high : float
        A number with low < number <= high.
    codes : frozenset or None
        One of these categories; None: it was not asked yet.
    missing : bool
        Whether a missing value goes there too.
    """

    low: float = -np.inf
    high: float = np.inf
    codes: frozenset[int] | None = None
    missing: bool = True


def nearest_in_leaves(moves: Moves, tree: FittedTree) -> Floats:
    """Return the nearest allowed point of each leaf's box, (n_points, n_columns); leaves out of reach are left out."""
    found = []
    for box in _boxes(moves, tree):
        point = moves.row.copy()
        for j, side in box.items():
            value = _nearest(moves, j, side)
            if value is None:
                break
            point[j] = value
        else:
            found.append(point)
    return np.array(found).reshape(len(found), len(moves.row))


def _boxes(moves: Moves, tree: FittedTree) -> Iterator[dict[int, _Side]]:
    """Yield what the way to each leaf asks, by column."""
    waiting: list[tuple[int, dict[int, _Side]]] = [(0, {})]
    while waiting:
        node, box = waiting.pop()
        if tree.is_leaf[node]:
            yield box
            continue
        j = int(tree.feature[node])
        side = box.get(j, _Side())
        missing_left = bool(tree.missing_go_to_left[node])
        if tree.is_categorical[node]:
            left = frozenset(tree.left_categories(node))
            every = frozenset(range(len(moves.asked.feature(j).categories))) if side.codes is None else side.codes
            lower = replace(side, codes=every & left, missing=side.missing and missing_left)
            upper = replace(side, codes=every - left, missing=side.missing and not missing_left)
        else:
            cut = float(tree.threshold[node])
            lower = replace(side, high=min(side.high, cut), missing=side.missing and missing_left)
            upper = replace(side, low=max(side.low, cut), missing=side.missing and not missing_left)
        waiting.append((int(tree.children_right[node]), {**box, j: upper}))
        waiting.append((int(tree.children_left[node]), {**box, j: lower}))


def _nearest(moves: Moves, column: int, side: _Side) -> float | None:
    """Return the value of a column nearest to the row's that passes; None if none may."""
    own = float(moves.row[column])
    if np.isnan(own) and side.missing:
        return own
    is_code = side.codes is not None
    if not np.isnan(own) and (int(own) in side.codes if side.codes is not None else side.low < own <= side.high):
        return own
    if column not in moves.free:
        return None
    if not is_code and moves.limits[column].codes is None:
        return moves.nearest(column, side.low, side.high)
    codes = moves.limits[column].codes
    assert codes is not None
    allowed = [
        code
        for code in codes.tolist()
        if (int(code) in side.codes if side.codes is not None else side.low < code <= side.high)
    ]
    return allowed[0] if allowed else None
