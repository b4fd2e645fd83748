"""The search for counterfactuals: the wanted prediction, the allowed changes, and the best of them."""

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
from spinney.inspect.explain.nearest import cells_of_row, row_as_table, scale_of
from spinney.inspect.explain.target_model import ModelQuery, all_thresholds, check_fitted
from spinney.inspect.text.conditions import Condition
from spinney.inspect.text.reader import TreeReader

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Goal:
    """The wanted prediction: a class, or an interval of values.

    Attributes
    ----------
    query : ModelQuery
    text : str
        Description.
    code : int or None
        Position of the class; None for regression.
    probability : float or None
        Minimum probability of the class.
    low, high : float
        Interval of the value.
    """

    query: ModelQuery
    text: str
    code: int | None
    probability: float | None
    low: float
    high: float

    def margins(self, rows: Floats) -> Floats:
        """Return by how much the prediction of each row exceeds the goal; negative if it misses it."""
        predictions = self.query.predict_numbers(rows)
        if self.code is None:
            return np.asarray(np.minimum(predictions[:, 0] - self.low, self.high - predictions[:, 0]))
        if predictions.shape[1] == 1:  # one score for two classes
            return np.asarray(predictions[:, 0] - _TINY if self.code == 1 else -predictions[:, 0])
        if self.probability is not None:
            return np.asarray(predictions[:, self.code] - self.probability)
        merits = self.query.class_merits(predictions)
        merit = merits[:, self.code]
        before = merits[:, : self.code].max(axis=1, initial=-np.inf)  # these classes win a tie
        after = merits[:, self.code + 1 :].max(axis=1, initial=-np.inf)
        return np.asarray(np.where(before >= merit, merit - before - _TINY, merit - np.maximum(before, after)))

    def is_met(self, row: Floats) -> bool:
        """Return whether the prediction of a row meets the goal."""
        met = bool(self.margins(row[np.newaxis])[0] >= 0)
        if self.code is None or self.probability is not None or not met:
            return met
        return bool(self.query.predict_row(row) == self._classes[self.code])

    @property
    def _classes(self) -> list[Any]:
        return list(np.asarray(self.query.model.classes_).tolist())

    def prediction(self, row: Floats, wanted: bool = False) -> tuple[Any, float | None]:
        """Return the prediction for a row: a value, or a class (`wanted`: the wanted one) and its probability."""
        predictions = self.query.predict_numbers(row[np.newaxis])[0]
        if self.code is None:
            return float(predictions[0]), None
        label = self._classes[self.code] if wanted else self.query.predict_row(row)
        if self.query.method != "predict_proba":
            return label, None
        return label, float(predictions[self._classes.index(label)])


def read_goal(query: ModelQuery, wanted: object, probability: float | None) -> Goal:
    """Return the wanted prediction: a class, or an interval of values."""
    classes = getattr(query.model, "classes_", None)
    if classes is None:
        return _value_goal(query, wanted, probability)
    labels = np.asarray(classes).tolist()
    if wanted is None:
        if len(labels) != 2:
            raise ValueError(
                f"wanted is required for more than two classes: one of {', '.join(map(repr, labels[:10]))}."
            )
        wanted = labels[1] if query.predict_row(query.row_numbers()) == labels[0] else labels[0]
    if isinstance(wanted, np.generic):
        wanted = wanted.item()
    if wanted not in labels:
        raise ValueError(f"wanted must be one of the classes {', '.join(map(repr, labels[:10]))}, not {wanted!r}.")
    if probability is not None and query.method != "predict_proba":
        raise ValueError(f"{type(query.model).__name__} has no predict_proba. Leave probability out.")
    if probability is not None and not 0 < probability <= 1:
        raise ValueError(f"probability must be a number between 0 and 1, not {probability!r}.")
    text = f"{wanted}" if probability is None else f"{wanted} with a probability of at least {probability:.0%}"
    return Goal(query, text, labels.index(wanted), probability, -np.inf, np.inf)


def _value_goal(query: ModelQuery, wanted: Any, probability: float | None) -> Goal:
    if probability is not None:
        raise ValueError("probability is for classifiers, but this is a regression model. Leave it out.")
    try:
        low, high = wanted
    except (TypeError, ValueError):
        example = "wanted must be the smallest and the largest value, such as (100, None)"
        raise ValueError(f"{example}, not {wanted!r}.") from None
    low, high = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    if not low <= high or (np.isinf(low) and np.isinf(high)):
        raise ValueError(f"wanted must be the smallest and the largest value, not both None, not {wanted!r}.")
    texts = shortest(low), shortest(high)
    text = f"at most {texts[1]}" if np.isinf(low) else f"at least {texts[0]}" if np.isinf(high) else " to ".join(texts)
    return Goal(query, text, None, None, low, high)


_MAX_VALUES = 200  # of a column that are tried


@dataclass(frozen=True)
class Limits:
    """The allowed values of a column: an interval of numbers, or some codes.

    Attributes
    ----------
    low, high : float
    codes : ndarray or None
        Categories, as codes.
    observed : ndarray
        Values that occur, ascending.
    is_whole : bool
        Whether only whole numbers are allowed.
    """

    low: float
    high: float
    codes: Floats | None
    observed: Floats
    is_whole: bool


class SearchSpace:
    """A row of numbers, and its allowed changes.

    Attributes
    ----------
    query : ModelQuery
        The model and the row.
    row : ndarray of shape (n_columns,)
    free : list of int
        Columns that may change.
    limits : dict of int to Limits
    """

    def __init__(self, query: ModelQuery, free: list[int], limits: dict[int, Limits], scales: Floats) -> None:
        self.query = query
        self.row = query.row_numbers()
        self.free = free
        self.limits = limits
        self._scales = scales
        self.values = cache(self._values)

    def steps(self, column: int, numbers: Floats) -> Floats:
        """Return the signed changes of a column's value: numbers relative to their typical range, others 0 or 1."""
        current, feature = self.row[column], self.query.feature(column)
        if feature.kind in ("category", "boolean") or np.isnan(current):
            same = np.isnan(numbers) if np.isnan(current) else numbers == current
            return np.where(same, 0.0, 1.0)
        change = (numbers - current) / self._scales[column]
        return np.where(np.isnan(change), 1.0, change)

    def sizes(self, rows: Floats) -> Floats:
        """Return the absolute changes of rows, by row and free column."""
        steps = [np.abs(self.steps(j, rows[:, j])) for j in self.free]
        return np.column_stack(steps) if steps else np.zeros((len(rows), 0))

    def changed(self, row: Floats) -> list[int]:
        """Return the columns in which a row differs from the original one."""
        return [j for j in self.free if self.steps(j, row[j : j + 1])[0]]

    def ranks(self, rows: Floats) -> Floats:
        """Return the ranks of rows: the distance plus 0.25 for each changed column."""
        sizes = self.sizes(rows)
        return np.asarray(sizes.sum(axis=1) + 0.25 * (sizes > 0).sum(axis=1))

    def nearest(self, column: int, low: float, high: float) -> float | None:
        """Return the value nearest to the row's with low < value <= high: one that occurs, or has few digits."""
        limits, current = self.limits[column], self.row[column]
        low = low if limits.low <= low else math.nextafter(limits.low, -math.inf)
        high = min(high, limits.high)
        if not low < high:
            return None
        if low < current <= high:
            return float(current)
        goes_up = not current > high  # also for a missing value
        inside = limits.observed[(limits.observed > low) & (limits.observed <= high)]
        if len(inside):
            return float(inside[0] if goes_up else inside[-1])
        if limits.is_whole:
            whole = math.floor(low) + 1 if goes_up else math.floor(high)
            return float(whole) if low < whole <= high else None
        margin = self._scales[column] / 50
        return few_digits(low, min(high, low + margin)) if goes_up else few_digits(max(low, high - margin), high)

    def _values(self, column: int) -> Floats:
        """Return values of a column to try, the nearest first: one between any two thresholds of the trees."""
        limits = self.limits[column]
        if limits.codes is not None:
            return np.asarray(limits.codes[limits.codes != self.row[column]])
        thresholds = thresholds_of(self.query, column)
        if thresholds is None:
            values = limits.observed[limits.observed != self.row[column]]
        else:
            edges = np.r_[-np.inf, thresholds, np.inf]
            nearest = [self.nearest(column, low, high) for low, high in pairwise(edges.tolist())]
            values = np.array([value for value in nearest if value is not None and value != self.row[column]])
        values = values[np.argsort(np.abs(self.steps(column, values)), kind="stable")]
        return np.asarray(values[_even_positions(len(values), _MAX_VALUES)])


def _even_positions(n: int, n_max: int) -> NDArray[np.intp]:
    """Return at most `n_max` evenly spaced positions of a list of length n."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, n_max)).astype(np.intp))


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


def thresholds_of(query: ModelQuery, column: int) -> Floats | None:
    """Return the thresholds of a column in all trees, ascending; None if the model is not made of spinney's trees."""
    return all_thresholds(query.trees, column) if query.has_trees else None


def read_space(
    model: object, row: object, X: TableLike, fixed: list[Any], ranges: Mapping[Any, Any] | None
) -> SearchSpace:
    """Return the allowed changes of a row."""
    check_fitted(model)
    table = None if X is None else ModelQuery(model, X)
    query = _row_query(model, row, table)
    fixed_columns = {query.column(column, "fixed") for column in fixed}
    range_of = {query.column(column, "ranges"): value for column, value in (ranges or {}).items()}
    both = fixed_columns & range_of.keys()
    if both:
        raise ValueError(f"Column {query.feature(both.pop()).name!r} is both in fixed and in ranges. Remove one.")
    limits, scales = {}, np.ones(query.schema.n_features)
    for j in range(query.schema.n_features):
        observed = None if table is None else table.numbers(j)
        limits[j] = _limits(query, j, observed, range_of.get(j))
        if observed is None:
            thresholds = thresholds_of(query, j)
            observed = np.r_[np.empty(0) if thresholds is None else thresholds, query.numbers(j)[0]]
        scales[j] = scale_of(observed)
    free = [j for j in limits if j not in fixed_columns and _can_change(query, j, limits[j])]
    return SearchSpace(query, free, limits, scales)


def _row_query(model: object, row: object, table: ModelQuery | None) -> ModelQuery:
    if isinstance(row, (int, np.integer)) and not isinstance(row, bool):
        if table is None or not 0 <= row < table.n_rows:
            raise ValueError(f"row is the position {row}, which X does not have. Pass X, or the values of the row.")
        return ModelQuery(model, table.table.take(np.array([row])), both_classes=True)
    if table is not None:
        return ModelQuery(model, row_as_table(table, row), both_classes=True)
    if not (isinstance(model, TableEstimator) and model._has_target):
        name = type(model).__name__
        raise ValueError(f"{name} stores neither columns nor thresholds. Pass X, rows like those of the fit.")
    cells = cells_of_row(model.schema_, row)
    if cells is not None:
        row = {name: [cell] for name, cell in zip(model.schema_.names, cells, strict=True)}
        row = row if model.schema_.has_names else [cells]
    return ModelQuery(model, row, both_classes=True)


def _limits(query: ModelQuery, column: int, observed: Floats | None, allowed: Any) -> Limits:
    feature = query.feature(column)
    present = np.empty(0) if observed is None else np.unique(observed[~np.isnan(observed)])
    if feature.kind in ("category", "boolean"):
        codes = present if observed is not None else np.arange(float(len(feature.categories) or 2))
        if allowed is not None:
            codes = np.unique(_numbers(query, column, allowed))
        return Limits(-np.inf, np.inf, codes, codes, True)
    low, high = (float(present[0]), float(present[-1])) if len(present) else (-np.inf, np.inf)
    if allowed is not None:
        low, high = _interval(query, column, allowed)
        present = present[(present >= low) & (present <= high)]
    numbers = np.r_[present, query.numbers(column)[:1]]
    numbers = numbers[~np.isnan(numbers)]
    is_whole = feature.kind == "ordered" or (observed is not None and bool((numbers == np.rint(numbers)).all()))
    return Limits(low, high, None, present, is_whole)


def _interval(query: ModelQuery, column: int, allowed: Any) -> tuple[float, float]:
    name = query.feature(column).name
    try:
        low, high = allowed
    except (TypeError, ValueError):
        raise ValueError(f"ranges must have a pair (low, high) for column {name!r}, not {allowed!r}.") from None
    low = -np.inf if low is None else float(_numbers(query, column, [low])[0])
    high = np.inf if high is None else float(_numbers(query, column, [high])[0])
    if not low <= high:
        raise ValueError(f"ranges has {allowed!r} for column {name!r}, but low must not exceed high.")
    return low, high


def _numbers(query: ModelQuery, column: int, values: Iterable[Any]) -> Floats:
    feature = query.feature(column)
    if isinstance(values, str):
        raise ValueError(f"ranges must have a list of categories for column {feature.name!r}, not {values!r}.")
    return numbers_of_cells(feature, list(values), "ranges")


def _can_change(query: ModelQuery, column: int, limits: Limits) -> bool:
    if limits.codes is not None:
        return len(limits.codes) > 0
    return limits.low < limits.high or (limits.low == limits.high != query.numbers(column)[0])


_BEAM_WIDTH = 24  # changes that are extended
_MAX_PAIRS = 60_000  # changes of two columns up to which all are tried
_PAIR_VALUES = 24  # values of a column in these


def find_alternatives(space: SearchSpace, goal: Goal, n: int, max_columns: int) -> tuple[list[Floats], bool, Floats]:
    """Return changed rows that meet the goal, the best first; whether that is exact; the row closest to the goal.

    A row that changes the columns of a better one, or a superset of them, is omitted.
    """
    fitted = space.query.model._fitted if space.query.is_own else None
    is_exact = isinstance(fitted, FittedTree) and fitted.splits is None and not fitted.has_linear_leaves
    is_exact = is_exact and space.query.schema.pool is None
    if is_exact:
        rows = nearest_in_leaves(space)
        rows = rows[(space.sizes(rows) > 0).sum(axis=1) <= max_columns]
    else:
        rows = _beam_search(space, goal, max_columns)
    tried = np.vstack([space.row, rows])
    margins = goal.margins(tried)
    shortened = [_shortened(space, goal, row) for row in _best(space, tried[margins >= 0], 20 * n)]
    found: list[Floats] = []
    for row in sorted(shortened, key=lambda row: float(space.ranks(row[np.newaxis])[0])):
        others = (set(space.changed(other)) for other in found)
        if goal.is_met(row) and not any(other <= set(space.changed(row)) for other in others):
            found.append(row)
    return found[:n], is_exact, tried[int(np.argmax(margins))]


def _best(space: SearchSpace, rows: Floats, n: int) -> list[Floats]:
    """Return the rows with the lowest ranks, at most three for each set of changed columns."""
    best: list[Floats] = []
    n_of_set: Counter[tuple[bool, ...]] = Counter()
    is_changed = space.sizes(rows) > 0
    for i in np.argsort(space.ranks(rows), kind="stable"):
        columns = tuple(is_changed[i].tolist())
        n_of_set[columns] += 1
        if n_of_set[columns] <= 3:
            best.append(rows[i])
    return best[:n]


def _beam_search(space: SearchSpace, goal: Goal, max_columns: int) -> Floats:
    """Return all changes of one column, of two if they are few, and extensions of the most promising."""
    layers = [_extended(space, space.row[np.newaxis])]
    for depth in range(1, max_columns):
        if len(layers[-1]) == 0:
            break
        pairs = _all_pairs(space) if depth == 1 else None
        layers.append(_extended(space, _promising(space, goal, layers[-1])) if pairs is None else pairs)
    return np.vstack(layers)


def _extended(space: SearchSpace, rows: Floats) -> Floats:
    """Return all changes of one more column of some rows."""
    free = [[j for j in space.free if j not in space.changed(row)] for row in rows]
    changed = [_with(row, j, space.values(j)) for row, columns in zip(rows, free, strict=True) for j in columns]
    return np.vstack([np.empty((0, len(space.row))), *changed])


def _with(row: Floats, column: int, values: Floats) -> Floats:
    rows = np.repeat(row[np.newaxis], len(values), axis=0)
    rows[:, column] = values
    return rows


def _all_pairs(space: SearchSpace) -> Floats | None:
    """Return the changes of all pairs of columns, to some values of each; None if there are too many."""
    few = {j: space.values(j)[_even_positions(len(space.values(j)), _PAIR_VALUES)] for j in space.free}
    n = sum(len(few[a]) * len(few[b]) for a, b in combinations(few, 2))
    if n == 0 or n > _MAX_PAIRS:
        return None
    pairs = [(_with(space.row, a, few[a]), b) for a, b in combinations(few, 2)]
    return np.vstack([_with(row, b, few[b]) for rows, b in pairs for row in rows])


def _promising(space: SearchSpace, goal: Goal, layer: Floats) -> Floats:
    """Return the changes that miss the goal by the least, and those with the largest gain relative to their size."""
    margins = goal.margins(layer)
    start = float(goal.margins(space.row[np.newaxis])[0])
    missed = np.flatnonzero(margins < 0)
    gain = margins[missed] - start
    size = space.ranks(layer[missed])
    nearest = missed[np.argsort(-margins[missed], kind="stable")[: _BEAM_WIDTH // 2]]
    steepest = missed[np.argsort(-gain / size, kind="stable")[: _BEAM_WIDTH // 2]]
    return layer[list(dict.fromkeys([*nearest.tolist(), *steepest.tolist()]))]


def _shortened(space: SearchSpace, goal: Goal, row: Floats) -> Floats:
    """Undo changes of a row that the goal does not need, and reduce the others as far as possible."""
    row = row.copy()
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for j in space.free:
            step = abs(space.steps(j, row[j : j + 1])[0])
            if step == 0:
                continue
            values = space.values(j)
            nearer = np.r_[space.row[j], values[np.abs(space.steps(j, values)) < step]]
            tried = _with(row, j, nearer)
            met = np.flatnonzero(goal.margins(tried) >= 0)
            if len(met):
                best = met[np.argmin(np.abs(space.steps(j, nearer[met])))]
                row, is_shorter = tried[best], True
    return row


def nearest_in_leaves(space: SearchSpace) -> Floats:
    """Return the nearest allowed point of each leaf that can be reached, (n_points, n_columns)."""
    reader, found = TreeReader(space.query.model), []
    for step in reader.walk():
        values = {j: _nearest(space, j, condition) for j, condition in step.path.items()}
        if reader.is_leaf(step.node) and None not in values.values():
            point = space.row.copy()
            point[list(values)] = list(values.values())
            found.append(point)
    return np.array(found).reshape(-1, len(space.row))


def _nearest(space: SearchSpace, column: int, condition: Condition) -> float | None:
    """Return the allowed value of a column nearest to the row's that satisfies a condition; None if there is none."""
    codes = space.limits[column].codes
    if condition.holds(space.row[column : column + 1])[0]:
        return float(space.row[column])
    if column not in space.free:
        return None
    if codes is None:
        return space.nearest(column, condition.lower, condition.upper)
    allowed = codes[condition.holds(codes)]
    return float(allowed[0]) if len(allowed) else None
