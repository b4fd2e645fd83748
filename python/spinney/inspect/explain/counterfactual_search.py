"""What a changed row is to bring about, and how far it is from that."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import shortest
from spinney._data.types import Floats, TableLike
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.tree import FittedTree
from spinney.inspect.explain.dependence import numbers_of_cells
from spinney.inspect.explain.nearest import row_as_table, row_cells, scale_of
from spinney.inspect.explain.target_model import Asked, all_thresholds, check_fitted
from spinney.inspect.text.conditions import Condition
from spinney.inspect.text.reader import TreeReader

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

    def prediction(self, row: Floats, wanted: bool = False) -> tuple[Any, float | None]:
        """Return what the model predicts for a row: a value, or a class (`wanted`: the wanted one) and its share."""
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
        wanted = labels[1] if asked.predicted(asked.row_numbers()) == labels[0] else labels[0]
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
    except (TypeError, ValueError):
        example = "wanted must be the least and the largest value, such as (100, None)"
        raise ValueError(f"{example}, not {wanted!r}.") from None
    low, high = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    if not low <= high or (np.isinf(low) and np.isinf(high)):
        raise ValueError(f"wanted must be the least and the largest value, one of them at least, not {wanted!r}.")
    ends = shortest(low), shortest(high)
    text = f"at most {ends[1]}" if np.isinf(low) else f"at least {ends[0]}" if np.isinf(high) else " to ".join(ends)
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
        self.values = cache(self._values)

    def steps(self, column: int, numbers: Floats) -> Floats:
        """How far values of a column are from the row's, with a sign: numbers by their usual range, else 1."""
        own, feature = self.row[column], self.asked.feature(column)
        if feature.kind in ("category", "boolean") or np.isnan(own):
            same = np.isnan(numbers) if np.isnan(own) else numbers == own
            return np.where(same, 0.0, 1.0)
        gap = (numbers - own) / self._scales[column]
        return np.where(np.isnan(gap), 1.0, gap)

    def sizes(self, rows: Floats) -> Floats:
        """How far rows are from the row, by row and free column."""
        steps = [np.abs(self.steps(j, rows[:, j])) for j in self.free]
        return np.column_stack(steps) if steps else np.zeros((len(rows), 0))

    def changed(self, row: Floats) -> list[int]:
        """Columns that a changed row does not share with the row."""
        return [j for j in self.free if self.steps(j, row[j : j + 1])[0]]

    def ranks(self, rows: Floats) -> Floats:
        """Return what ways are compared by: the distance, and a quarter for each column."""
        sizes = self.sizes(rows)
        return np.asarray(sizes.sum(axis=1) + 0.25 * (sizes > 0).sum(axis=1))

    def nearest(self, column: int, low: float, high: float) -> float | None:
        """Value with low < value <= high that is nearest to the row's; one that occurs, or has few digits."""
        limits, own = self.limits[column], self.row[column]
        low = low if limits.low <= low else math.nextafter(limits.low, -math.inf)
        high = min(high, limits.high)
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

    def _values(self, column: int) -> Floats:
        """Values of a column to try, the nearest first: one in each cell that the model tells apart."""
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
        found = found[np.argsort(np.abs(self.steps(column, found)), kind="stable")]
        return np.asarray(found[_even_places(len(found), _MOST_VALUES)])


def _even_places(n: int, most: int) -> NDArray[np.intp]:
    """At most so many positions in a list, at even steps."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, most)).astype(np.intp))


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
    return all_thresholds(asked.trees, column) if asked.has_trees else None


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
        if seen is None:
            cuts = cuts_of(asked, j)
            seen = np.r_[np.empty(0) if cuts is None else cuts, asked.numbers(j)[0]]
        scales[j] = scale_of(seen)
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
        name = type(model).__name__
        raise ValueError(f"{name} keeps no columns and cuts. Pass X, some rows such as it was fitted on.")
    cells = row_cells(model.schema_, row)
    if cells is not None:
        row = {name: [cell] for name, cell in zip(model.schema_.names, cells, strict=True)}
        row = row if model.schema_.has_names else [cells]
    return Asked(model, row, every=True)


def _limits(asked: Asked, column: int, seen: Floats | None, given: Any) -> Limits:
    feature = asked.feature(column)
    present = np.empty(0) if seen is None else np.unique(seen[~np.isnan(seen)])
    if feature.kind in ("category", "boolean"):
        codes = present if seen is not None else np.arange(float(len(feature.categories) or 2))
        if given is not None:
            codes = np.unique(_numbers(asked, column, given))
        return Limits(-np.inf, np.inf, codes, codes, True)
    low, high = (float(present[0]), float(present[-1])) if len(present) else (-np.inf, np.inf)
    if given is not None:
        low, high = _pair(asked, column, given)
        present = present[(present >= low) & (present <= high)]
    numbers = np.r_[present, asked.numbers(column)[:1]]
    numbers = numbers[~np.isnan(numbers)]
    is_whole = feature.kind == "ordered" or (seen is not None and bool((numbers == np.rint(numbers)).all()))
    return Limits(low, high, None, present, is_whole)


def _pair(asked: Asked, column: int, given: Any) -> tuple[float, float]:
    name = asked.feature(column).name
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ValueError(f"ranges must give column {name!r} a pair (low, high), not {given!r}.") from None
    low = -np.inf if low is None else float(_numbers(asked, column, [low])[0])
    high = np.inf if high is None else float(_numbers(asked, column, [high])[0])
    if not low <= high:
        raise ValueError(f"ranges gives column {name!r} the pair {given!r}, whose first is the larger. Turn it round.")
    return low, high


def _numbers(asked: Asked, column: int, values: Iterable[Any]) -> Floats:
    feature = asked.feature(column)
    if isinstance(values, str):
        raise ValueError(f"ranges must give column {feature.name!r} a list of categories, not {values!r}.")
    return numbers_of_cells(feature, list(values), "ranges")


def _can_move(asked: Asked, column: int, limits: Limits) -> bool:
    if limits.codes is not None:
        return len(limits.codes) > 0
    return limits.low < limits.high or (limits.low == limits.high != asked.numbers(column)[0])


_WIDTH = 24  # changes that are changed further
_MOST_PAIRS = 60_000  # changes of two columns that are all tried
_FEW = 24  # values of a column in these


def find_alternatives(moves: Moves, goal: Goal, n: int, max_columns: int) -> tuple[list[Floats], bool, Floats]:
    """Find changed rows that reach the goal, the best first; whether that is exact; the nearest miss.

    Of rows that change the same columns, or more than another, only the best remains.
    """
    fitted = moves.asked.model._fitted if moves.asked.is_own else None
    is_exact = isinstance(fitted, FittedTree) and fitted.splits is None and not fitted.has_linear_leaves
    is_exact = is_exact and moves.asked.schema.pool is None
    if is_exact:
        rows = nearest_in_leaves(moves)
        rows = rows[(moves.sizes(rows) > 0).sum(axis=1) <= max_columns]
    else:
        rows = _beam(moves, goal, max_columns)
    tried = np.vstack([moves.row, rows])
    margins = goal.margins(tried)
    short = [_shortened(moves, goal, row) for row in _best(moves, tried[margins >= 0], 20 * n)]
    found: list[Floats] = []
    for row in sorted(short, key=lambda row: float(moves.ranks(row[np.newaxis])[0])):
        others = (set(moves.changed(other)) for other in found)
        if goal.is_met(row) and not any(other <= set(moves.changed(row)) for other in others):
            found.append(row)
    return found[:n], is_exact, tried[int(np.argmax(margins))]


def _best(moves: Moves, rows: Floats, n: int) -> list[Floats]:
    """Return the rows of the lowest ranks, but of each set of columns a few at most."""
    found: list[Floats] = []
    n_of_set: Counter[tuple[bool, ...]] = Counter()
    is_changed = moves.sizes(rows) > 0
    for i in np.argsort(moves.ranks(rows), kind="stable"):
        columns = tuple(is_changed[i].tolist())
        n_of_set[columns] += 1
        if n_of_set[columns] <= 3:
            found.append(rows[i])
    return found[:n]


def _beam(moves: Moves, goal: Goal, max_columns: int) -> Floats:
    """All changes of one column, those of two if they are few, and further changes of the most promising."""
    found = [_further(moves, moves.row[np.newaxis])]
    for depth in range(1, max_columns):
        if len(found[-1]) == 0:
            break
        pairs = _all_pairs(moves) if depth == 1 else None
        found.append(_further(moves, _promising(moves, goal, found[-1])) if pairs is None else pairs)
    return np.vstack(found)


def _further(moves: Moves, rows: Floats) -> Floats:
    """All changes of one more column of some rows."""
    free = [[j for j in moves.free if j not in moves.changed(row)] for row in rows]
    changed = [_with(row, j, moves.values(j)) for row, columns in zip(rows, free, strict=True) for j in columns]
    return np.vstack([np.empty((0, len(moves.row))), *changed])


def _with(row: Floats, column: int, values: Floats) -> Floats:
    rows = np.repeat(row[np.newaxis], len(values), axis=0)
    rows[:, column] = values
    return rows


def _all_pairs(moves: Moves) -> Floats | None:
    """Return changes of every two columns, to some values of each; None if they are many."""
    few = {j: moves.values(j)[_even_places(len(moves.values(j)), _FEW)] for j in moves.free}
    n = sum(len(few[a]) * len(few[b]) for a, b in combinations(few, 2))
    if n == 0 or n > _MOST_PAIRS:
        return None
    pairs = [(_with(moves.row, a, few[a]), b) for a, b in combinations(few, 2)]
    return np.vstack([_with(row, b, few[b]) for rows, b in pairs for row in rows])


def _promising(moves: Moves, goal: Goal, layer: Floats) -> Floats:
    """Return changes that come nearest to the goal, and those that come far for their size, without reaching it."""
    margins = goal.margins(layer)
    start = float(goal.margins(moves.row[np.newaxis])[0])
    missed = np.flatnonzero(margins < 0)
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


def nearest_in_leaves(moves: Moves) -> Floats:
    """Return the nearest allowed point of each leaf's box, (n_points, n_columns); leaves out of reach are left out."""
    reader, found = TreeReader(moves.asked.model), []
    for step in reader.walk():
        values = {j: _nearest(moves, j, condition) for j, condition in step.path.items()}
        if reader.is_leaf(step.node) and None not in values.values():
            point = moves.row.copy()
            point[list(values)] = list(values.values())
            found.append(point)
    return np.array(found).reshape(-1, len(moves.row))


def _nearest(moves: Moves, column: int, condition: Condition) -> float | None:
    """Return the value of a column nearest to the row's that satisfies a condition; None if none may."""
    codes = moves.limits[column].codes
    if condition.holds(moves.row[column : column + 1])[0]:
        return float(moves.row[column])
    if column not in moves.free:
        return None
    if codes is None:
        return moves.nearest(column, condition.lower, condition.upper)
    allowed = codes[condition.holds(codes)]
    return float(allowed[0]) if len(allowed) else None
