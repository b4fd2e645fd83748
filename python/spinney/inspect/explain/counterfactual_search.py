"""What a changed row is to bring about, and how far it is from that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from spinney._data.display import shortest
from spinney._data.schema import row_table
from spinney._data.select import pick_table
from spinney._data.types import TableLike
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.model import ModelOfTrees
from spinney._model.tree import FittedTree
from spinney.inspect.explain.dependence import numbers_of_cells
from spinney.inspect.explain.nearest import plain_row, row_as_table, scale_of
from spinney.inspect.explain.target_model import Asked, Floats, check_fitted

_LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Goal:
    """A class that is to be predicted, or an interval for a value.

    Attributes
    ----------
    asked : Asked
    text : str
        In words.
    code : int or None
        Position of the class; None: a value is wanted.
    share : float or None
        Least share of the class.
    low, high : float
        Limits of the value.
    """

    asked: Asked
    text: str
    code: int | None
    share: float | None
    low: float
    high: float

    def margins(self, rows: Floats) -> Floats:
        """How far each row, in numbers, is beyond the goal: at least 0 if it is met."""
        answers = self.asked.answers_of_numbers(rows)
        if self.code is None:
            return np.asarray(np.minimum(answers[:, 0] - self.low, self.high - answers[:, 0]))
        if answers.shape[1] == 1:  # one score for two classes
            return np.asarray(answers[:, 0] - _LEAST if self.code == 1 else -answers[:, 0])
        if self.share is not None:
            return np.asarray(answers[:, self.code] - self.share)
        merit = self.asked.merits(answers)
        own = merit[:, self.code]
        before = merit[:, : self.code].max(axis=1, initial=-np.inf)  # which win a tie
        after = merit[:, self.code + 1 :].max(axis=1, initial=-np.inf)
        return np.asarray(np.where(before >= own, own - before - _LEAST, own - np.maximum(before, after)))

    def is_met(self, row: Floats) -> bool:
        """Ask the model itself about one row."""
        met = bool(self.margins(row[np.newaxis])[0] >= 0)
        if self.code is None or self.share is not None or not met:
            return met
        return bool(self.asked.predicted(row) == self._classes[self.code])

    @property
    def _classes(self) -> list[Any]:
        return list(np.asarray(self.asked.model.classes_).tolist())

    def said(self, row: Floats, wanted: bool = False) -> tuple[Any, float | None]:
        """Return what the model says of a row: a value, or a class (`wanted`: the wanted one) and its share."""
        answers = self.asked.answers_of_numbers(row[np.newaxis])[0]
        if self.code is None:
            return float(answers[0]), None
        label = self._classes[self.code] if wanted else self.asked.predicted(row)
        if self.asked.method != "predict_proba":
            return label, None
        return label, float(answers[self._classes.index(label)])


def read_goal(asked: Asked, wanted: object, share: float | None) -> Goal:
    """Read what is wanted: a class, or limits of a value."""
    classes = getattr(asked.model, "classes_", None)
    if classes is None:
        return _value_goal(asked, wanted, share)
    labels = np.asarray(classes).tolist()
    if wanted is None:
        if len(labels) != 2:
            raise ValueError(f"wanted must say which class: one of {', '.join(map(repr, labels[:10]))}.")
        said = asked.predicted(asked.row_numbers())
        wanted = labels[1] if said == labels[0] else labels[0]
    if isinstance(wanted, np.generic):
        wanted = wanted.item()
    if wanted not in labels:
        raise ValueError(f"wanted must be one of the classes {', '.join(map(repr, labels[:10]))}, not {wanted!r}.")
    if share is not None and asked.method != "predict_proba":
        raise ValueError(f"{type(asked.model).__name__} has no predict_proba, so that there are no shares. Drop share.")
    if share is not None and not 0 < share <= 1:
        raise ValueError(f"share must be a number between 0 and 1, not {share!r}.")
    text = f"{wanted}" if share is None else f"{wanted} with a share of at least {share:.0%}"
    return Goal(asked, text, labels.index(wanted), share, -np.inf, np.inf)


def _value_goal(asked: Asked, wanted: Any, share: float | None) -> Goal:
    if share is not None:
        raise ValueError("share goes with classes, and this model predicts values. Drop it.")
    try:
        low, high = wanted
    except TypeError:
        raise ValueError(
            f"wanted must be the least and the largest value, such as (100, None), not {wanted!r}."
        ) from None
    low, high = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    if not low <= high or (np.isinf(low) and np.isinf(high)):
        raise ValueError(f"wanted must be the least and the largest value, one of them at least, not {wanted!r}.")
    if np.isinf(high):
        text = f"at least {shortest(low)}"
    else:
        text = f"at most {shortest(high)}" if np.isinf(low) else f"{shortest(low)} to {shortest(high)}"
    return Goal(asked, text, None, None, low, high)


_MOST_VALUES = 200  # of a column that are tried


@dataclass(frozen=True)
class Limits:
    """What a column may become: numbers between two, perhaps whole ones, or some codes.

    Attributes
    ----------
    low, high : float
    codes : ndarray or None
        Categories, as codes.
    observed : ndarray
        Values that occur, ascending.
    is_whole : bool
        Whether only whole numbers make sense.
    """

    low: float
    high: float
    codes: Floats | None
    observed: Floats
    is_whole: bool


class Moves:
    """A row in numbers, and what it may become.

    Attributes
    ----------
    asked : Asked
        The model and the row.
    row : ndarray of shape (n_columns,)
    free : list of int
        Columns that may change.
    limits : dict of int to Limits
    """

    def __init__(self, asked: Asked, free: list[int], limits: dict[int, Limits], scales: Floats) -> None:
        self.asked = asked
        self.row = asked.row_numbers()
        self.free = free
        self.limits = limits
        self._scales = scales
        self._values: dict[int, Floats] = {}

    def steps(self, column: int, numbers: Floats) -> Floats:
        """How far values of a column are from the row's, with a sign: numbers by their usual range, else 1."""
        own, feature = self.row[column], self.asked.feature(column)
        if feature.kind == "category" or feature.kind == "boolean" or np.isnan(own):
            same = np.isnan(numbers) if np.isnan(own) else numbers == own
            return np.where(same, 0.0, 1.0)
        gap = (numbers - own) / self._scales[column]
        return np.where(np.isnan(gap), 1.0, gap)

    def sizes(self, rows: Floats) -> Floats:
        """How far rows are from the row, by row and free column."""
        found = np.zeros((len(rows), len(self.free)))
        for k, j in enumerate(self.free):
            found[:, k] = np.abs(self.steps(j, rows[:, j]))
        return found

    def distance(self, row: Floats) -> float:
        """Sum of the sizes of all steps."""
        return float(self.sizes(row[np.newaxis]).sum())

    def ranks(self, rows: Floats) -> Floats:
        """Return what ways are compared by: the distance, and a quarter for each column."""
        sizes = self.sizes(rows)
        return np.asarray(sizes.sum(axis=1) + 0.25 * (sizes > 0).sum(axis=1))

    def nearest(self, column: int, low: float, high: float) -> float | None:
        """Value with low < value <= high that is nearest to the row's; one that occurs, or has few digits."""
        limits, own = self.limits[column], self.row[column]
        low, high = (
            (low, min(high, limits.high))
            if limits.low <= low
            else (math.nextafter(limits.low, -math.inf), min(high, limits.high))
        )
        if not low < high:
            return None
        if low < own <= high:
            return float(own)
        goes_up = not own > high  # a missing value goes up
        inside = limits.observed[(limits.observed > low) & (limits.observed <= high)]
        if len(inside):
            return float(inside[0] if goes_up else inside[-1])
        if limits.is_whole:
            whole = math.floor(low) + 1 if goes_up else math.floor(high)
            return float(whole) if low < whole <= high else None
        room = self._scales[column] / 50
        return few_digits(low, min(high, low + room)) if goes_up else few_digits(max(low, high - room), high)

    def values(self, column: int) -> Floats:
        """Values of a column to try, the nearest first: one in each cell that the model tells apart."""
        if column not in self._values:
            self._values[column] = self._find_values(column)
        return self._values[column]

    def _find_values(self, column: int) -> Floats:
        limits = self.limits[column]
        if limits.codes is not None:
            return np.asarray(limits.codes[limits.codes != self.row[column]])
        cuts = cuts_of(self.asked, column)
        if cuts is None:
            found = limits.observed[limits.observed != self.row[column]]
        else:
            edges = np.r_[-np.inf, cuts, np.inf]
            places = [self.nearest(column, low, high) for low, high in pairwise(edges.tolist())]
            found = np.array([place for place in places if place is not None and place != self.row[column]])
        found = found[np.argsort(np.abs(self.steps(column, found)), kind="stable")] if len(found) else found
        if len(found) > _MOST_VALUES:
            found = found[np.unique(np.linspace(0, len(found) - 1, _MOST_VALUES).astype(np.intp))]
        return np.asarray(found)


def few_digits(low: float, high: float) -> float:
    """Return the number with low < number <= high that has the fewest digits after the point."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return high if math.isfinite(high) else math.nextafter(low, math.inf)
    for decimals in range(-int(math.log10(max(abs(low), abs(high), 1.0))) - 1, 18):
        step = 10.0**-decimals
        number = round(math.floor(high / step) * step, max(0, decimals))
        if low < number <= high:
            return number
    return high


def cuts_of(asked: Asked, column: int) -> Floats | None:
    """Thresholds of a column in all trees, ascending; None if the model is not made of spinney's trees."""
    if not asked.says_all or asked.schema.pool is not None or not isinstance(asked.model._fitted, ModelOfTrees):
        return None
    cuts = [tree.threshold[tree.feature == column] for tree in asked.trees]
    return np.unique(np.concatenate(cuts)) if cuts else np.empty(0)


def read_moves(model: object, row: object, X: TableLike, fixed: list[Any], ranges: Mapping[Any, Any] | None) -> Moves:
    """Find what a row may become."""
    check_fitted(model)
    known = None if X is None else Asked(model, X)
    asked = _about_row(model, row, known)
    held = {asked.column(column, "fixed") for column in fixed}
    given = {asked.column(column, "ranges"): value for column, value in (ranges or {}).items()}
    both = held & given.keys()
    if both:
        raise ValueError(f"Column {asked.feature(both.pop()).name!r} is both in fixed and in ranges. Drop one.")
    limits, scales = {}, np.ones(asked.schema.n_features)
    for j in range(asked.schema.n_features):
        seen = None if known is None else known.numbers(j)
        limits[j] = _limits(asked, j, seen, given.get(j))
        scales[j] = _scale(asked, j, seen)
    free = [j for j in limits if j not in held and _can_move(asked, j, limits[j])]
    return Moves(asked, free, limits, scales)


def _about_row(model: object, row: object, known: Asked | None) -> Asked:
    if isinstance(row, (int, np.integer)) and not isinstance(row, bool):
        if known is None or not 0 <= row < known.n_rows:
            raise ValueError(f"row is the position {row}. Pass X that has it, or the values of the row.")
        return Asked(model, known.table.take(np.array([row])), every=True)
    if known is not None:
        return Asked(model, row_as_table(known, row), every=True)
    if not (isinstance(model, TableEstimator) and model._has_target):
        raise ValueError(
            f"{type(model).__name__} keeps no columns and cuts. Pass X, some rows such as it was fitted on."
        )
    return Asked(model, _alone(model, row), every=True)


def _alone(model: BaseEstimator, row: Any) -> Any:
    """Make a table of one row of what a model of spinney takes."""
    row = plain_row(row, model.schema_.has_names)
    if not isinstance(row, Mapping):
        if getattr(row, "ndim", 1) == 2 or hasattr(row, "columns"):
            if pick_table(row).n_rows != 1:
                raise ValueError(f"row must be one row, not a table of {pick_table(row).n_rows} rows.")
            return row
        row = dict(zip(model.schema_.names, row, strict=False)) if len(row) == model.schema_.n_features else row
    row_table(model.schema_, row)  # refuses what is missing, in words
    columns = {name: [row[name]] for name in model.schema_.names}
    return columns if model.schema_.has_names else [[column[0] for column in columns.values()]]


def _limits(asked: Asked, column: int, seen: Floats | None, given: Any) -> Limits:
    feature = asked.feature(column)
    present = np.empty(0) if seen is None else np.unique(seen[~np.isnan(seen)])
    if feature.kind == "category" or feature.kind == "boolean":
        n = 2 if feature.kind == "boolean" else len(feature.categories)
        codes = present if seen is not None else np.arange(float(n))
        if given is not None:
            codes = np.unique(_numbers(asked, column, given))
        return Limits(-np.inf, np.inf, codes, codes, True)
    low, high = (float(present[0]), float(present[-1])) if len(present) else (-np.inf, np.inf)
    if given is not None:
        low, high = _pair(asked, column, given)
        present = present[(present >= low) & (present <= high)]
    own = asked.numbers(column)[0]
    numbers = present if np.isnan(own) else np.r_[present, own]
    is_whole = feature.kind == "ordered" or (seen is not None and bool((numbers == np.rint(numbers)).all()))
    return Limits(low, high, None, present, is_whole)


def _pair(asked: Asked, column: int, given: Any) -> tuple[float, float]:
    name = asked.feature(column).name
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ValueError(f"ranges must give column {name!r} a pair (low, high), not {given!r}.") from None
    ends = [np.nan if end is None else _numbers(asked, column, [end])[0] for end in (low, high)]
    lowest, highest = -np.inf if low is None else float(ends[0]), np.inf if high is None else float(ends[1])
    if not lowest <= highest:
        raise ValueError(f"ranges gives column {name!r} the pair {given!r}, whose first is the larger. Turn it round.")
    return lowest, highest


def _numbers(asked: Asked, column: int, values: Iterable[Any]) -> Floats:
    if isinstance(values, str):
        raise ValueError(
            f"ranges must give column {asked.feature(column).name!r} a list of categories, not {values!r}."
        )
    return numbers_of_cells(asked.feature(column), list(values), "ranges")


def _scale(asked: Asked, column: int, seen: Floats | None) -> float:
    if seen is not None:
        return scale_of(seen)
    cuts = cuts_of(asked, column)
    own = asked.numbers(column)[0]
    known = np.r_[np.empty(0) if cuts is None else cuts, own]
    return scale_of(known)


def _can_move(asked: Asked, column: int, limits: Limits) -> bool:
    if limits.codes is not None:
        return len(limits.codes) > 0
    return limits.low < limits.high or (limits.low == limits.high != asked.numbers(column)[0])


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
