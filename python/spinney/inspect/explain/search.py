"""The search for small changes of a row that bring about a goal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from spinney._model.tree import FittedTree
from spinney.inspect.explain.goal import Goal
from spinney.inspect.explain.moves import Moves
from spinney.inspect.explain.regions import nearest_in_leaves
from spinney.inspect.explain.target_model import Floats

_WIDTH = 24  # changes that are changed further
_MOST_PAIRS = 60_000  # changes of two columns that are all tried
_FEW = 24  # values of a column in these


@dataclass(frozen=True, eq=False)
class Alternative:
    """A changed row."""

    row: Floats
    changed: list[int]
    rank: float


def find_alternatives(moves: Moves, goal: Goal, n: int, max_columns: int) -> tuple[list[Alternative], bool, Floats]:
    """Find ways to the goal that change different columns, the best first; whether that is exact; the nearest miss."""
    fitted = moves.asked.model._fitted if moves.asked.is_own else None
    if (
        isinstance(fitted, FittedTree)
        and fitted.splits is None
        and not fitted.has_lines
        and moves.asked.schema.pool is None
    ):
        rows, is_exact = nearest_in_leaves(moves, fitted), True
        rows = rows[(moves.sizes(rows) > 0).sum(axis=1) <= max_columns]
    else:
        rows, is_exact = _beam(moves, goal, max_columns), False
    tried = np.vstack([moves.row, rows]) if len(rows) else moves.row[np.newaxis]
    margins = goal.margins(tried)
    met = tried[margins >= 0]
    found = [_shortened(moves, goal, row) for row in _best(moves, met, 20 * n)]
    ways = [Alternative(row, _changed(moves, row), float(moves.ranks(row[np.newaxis])[0])) for row in found]
    return _diverse([way for way in ways if goal.is_met(way.row)], n), is_exact, tried[int(np.argmax(margins))]


def _changed(moves: Moves, row: Floats) -> list[int]:
    return [j for j in moves.free if moves.steps(j, row[j : j + 1])[0]]


def _best(moves: Moves, rows: Floats, n: int) -> list[Floats]:
    """Return the rows of the lowest ranks, but of each set of columns a few at most."""
    kept: list[Floats] = []
    of_set: dict[tuple[bool, ...], int] = {}
    is_changed = moves.sizes(rows) > 0
    for i in np.argsort(moves.ranks(rows), kind="stable"):
        columns = tuple(is_changed[i].tolist())
        of_set[columns] = of_set.get(columns, 0) + 1
        if of_set[columns] <= 3:
            kept.append(rows[i])
        if len(kept) == n:
            break
    return kept


def _diverse(ways: list[Alternative], n: int) -> list[Alternative]:
    """Return the best way of each set of columns, unless a better one changes a part of these columns alone."""
    found: list[Alternative] = []
    for way in sorted(ways, key=lambda way: way.rank):
        if not any(set(other.changed) <= set(way.changed) for other in found):
            found.append(way)
    return found[:n]


def _beam(moves: Moves, goal: Goal, max_columns: int) -> Floats:
    """All changes of one column, those of two if they are few, and further changes of the most promising."""
    values = {j: moves.values(j) for j in moves.free}
    tried = [_with(moves.row, j, values[j]) for j in moves.free]
    layer = np.vstack(tried) if tried else np.empty((0, len(moves.row)))
    found = [layer]
    for depth in range(1, max_columns):
        if len(layer) == 0:
            break
        if depth == 1 and (pairs := _all_pairs(moves, values)) is not None:
            layer = pairs
        else:
            start = _promising(moves, goal, layer)
            layer = np.vstack(
                [_with(row, j, values[j]) for row in start for j in moves.free if not moves.steps(j, row[j : j + 1])[0]]
                or [np.empty((0, len(moves.row)))]
            )
        found.append(layer)
    return np.vstack(found)


def _with(row: Floats, column: int, values: Floats) -> Floats:
    rows = np.repeat(row[np.newaxis], len(values), axis=0)
    rows[:, column] = values
    return rows


def _all_pairs(moves: Moves, values: dict[int, Floats]) -> Floats | None:
    """Return changes of every two columns, to some values of each; None if they are many."""
    few = {
        j: v[np.unique(np.linspace(0, len(v) - 1, min(_FEW, len(v))).astype(np.intp))]
        for j, v in values.items()
        if len(v)
    }
    n = sum(len(few[a]) * len(few[b]) for a, b in combinations(few, 2))
    if n == 0 or n > _MOST_PAIRS:
        return None
    parts = []
    for a, b in combinations(few, 2):
        rows = np.repeat(moves.row[np.newaxis], len(few[a]) * len(few[b]), axis=0)
        rows[:, a] = np.repeat(few[a], len(few[b]))
        rows[:, b] = np.tile(few[b], len(few[a]))
        parts.append(rows)
    return np.vstack(parts)


def _promising(moves: Moves, goal: Goal, layer: Floats) -> Floats:
    """Return changes that come nearest to the goal, and those that come far for their size, without reaching it."""
    margins = goal.margins(layer)
    start = float(goal.margins(moves.row[np.newaxis])[0])
    missed = np.flatnonzero(margins < 0)
    if len(missed) == 0:
        return layer[:0]
    gain = margins[missed] - start
    size = moves.ranks(layer[missed])
    nearest = missed[np.argsort(-margins[missed], kind="stable")[: _WIDTH // 2]]
    steepest = missed[np.argsort(-gain / size, kind="stable")[: _WIDTH // 2]]
    return layer[list(dict.fromkeys([*nearest.tolist(), *steepest.tolist()]))]


def _shortened(moves: Moves, goal: Goal, row: Floats) -> Floats:
    """Take back what is not needed, and move the rest no farther than it has to be."""
    row = row.copy()
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for j in moves.free:
            step = abs(moves.steps(j, row[j : j + 1])[0])
            if step == 0:
                continue
            values = moves.values(j)
            nearer = np.r_[moves.row[j], values[np.abs(moves.steps(j, values)) < step]]
            tried = _with(row, j, nearer)
            met = np.flatnonzero(goal.margins(tried) >= 0)
            if len(met):
                best = met[np.argmin(np.abs(moves.steps(j, nearer[met])))]
                row, is_shorter = tried[best], True
    return row
