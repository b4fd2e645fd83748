"""Members of a bagging ensemble: their fits, their predictions put together, and those for rows they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.tree import BaseDecisionTree
from sklearn.utils.random import sample_without_replacement

from spinney._data.reproducible import exp
from spinney._data.select import PickTable
from spinney._data.types import TableLike
from spinney._ensemble.members import random_state_names, rows_of, set_random_states, takes_weights
from spinney._estimator.held_out import KnownProba, KnownValues
from spinney._estimator.parallel import count_threads, in_order
from spinney._model.predictions import member_codes, member_probabilities, onehot
from spinney._tree.tree_estimator import BaseTree

Values = NDArray[np.float64]
Weights = Values | None
Metric = Callable[[NDArray[Any], NDArray[Any]], float]

# Below this share of the rows, a copy of a member's rows is cheaper than reading past those of weight 0.
_LEAST_SHARE_BY_WEIGHT = 0.3


@dataclass(frozen=True, eq=False)
class MemberFit:
    """All that a member is fitted to; threads share it."""

    template: BaseEstimator
    table: PickTable
    target: NDArray[Any]
    weight: Weights
    sampling: Sampling
    fit_params: dict[str, Any]

    def fit(self, k: int, seed: int) -> BaseEstimator:
        """Fit the member of a seed."""
        drawn, rows = self.sampling.draw(seed)
        columns = None if self.sampling.takes_all_columns else drawn
        member = self._unfitted(seed)
        try:
            if self._by_weight:
                weight = np.bincount(rows, minlength=self.table.n_rows).astype(np.float64)
                weight = weight if self._passed_on is None else weight * self._passed_on
                member.fit(self.table.take(columns=columns), self.target, sample_weight=weight, **self.fit_params)
            else:
                member.fit(self.table.take(rows, columns), self.target[rows], **self._params_of(rows))
        except Exception as error:
            error.add_note(f"This happened while fitting member {k + 1}{self._about(rows)}.")
            raise
        return member

    @property
    def _by_weight(self) -> bool:
        """Whether draws are given as weights: trees leave rows of weight 0 out and need no copy of the others."""
        is_tree = isinstance(self.template, (BaseTree, BaseDecisionTree)) and takes_weights(self.template)
        return is_tree and self.sampling.mean_share >= _LEAST_SHARE_BY_WEIGHT

    @cached_property
    def _random_states(self) -> list[str]:
        return random_state_names(self.template)

    @cached_property
    def _tree_names(self) -> list[str]:
        return [name for name, part in self.template.get_params(deep=True).items() if isinstance(part, BaseTree)]

    def _trees_of(self, member: BaseEstimator) -> list[BaseTree]:
        """Return the trees of a member: itself, or parts of it."""
        if isinstance(member, BaseTree):
            return [member]
        return [member.get_params(deep=True)[name] for name in self._tree_names]

    def _unfitted(self, seed: int) -> BaseEstimator:
        member = clone(self.template)
        set_random_states(member, self._random_states, seed)
        if isinstance(member, BaseTree) and member.n_jobs is None:
            member.n_jobs = 1  # members run side by side
        for tree in self._trees_of(member):
            tree._random_ties = True
        return member

    def _params_of(self, rows: Places) -> dict[str, Any]:
        n_rows = self.table.n_rows
        params = {name: rows_of(value, rows, n_rows) for name, value in self.fit_params.items()}
        if self._passed_on is not None:
            params["sample_weight"] = self._passed_on[rows]
        return params

    @property
    def _passed_on(self) -> Weights:
        """Weights that a member gets: those that no draw has gone by."""
        return None if self.sampling.goes_by_weight else self.weight

    def _about(self, rows: Places) -> str:
        if self.target.dtype.kind == "f" or self.target.ndim > 1:
            return ""
        n_here, n_all = len(set(self.target[rows].tolist())), len(set(self.target.tolist()))
        if n_here == n_all:
            return ""
        return f", whose sample holds {n_here} of the {n_all} classes; stratified=True draws from each class"


# ---- predictions of members, put together ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassOutput:
    """Class probabilities, or votes."""

    classes: NDArray[Any]
    is_soft: Callable[[BaseEstimator], bool]

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes that follow from the target."""
        return {"classes_": self.classes, "n_classes_": len(self.classes)}

    def predict(self, member: BaseEstimator, X: TableLike, **params: Any) -> Values:
        """Probabilities of all classes, or votes."""
        if not self.is_soft(member):
            return onehot(member_codes(member, X, self.classes, False, **params), len(self.classes))
        return member_probabilities(member, X, self.classes, False, **params)

    def losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Return 1 for a wrong class."""
        return np.asarray(self.predictions(np.nan_to_num(mean)) != target, dtype=np.float64)

    def smooth_losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Squared errors of the probabilities."""
        return np.asarray(((mean - (target[:, np.newaxis] == self.classes)) ** 2).sum(axis=1))

    def predictions(self, mean: Values) -> NDArray[Any]:
        """Labels of the largest probability; of equal ones the first."""
        return np.asarray(self.classes[mean.argmax(axis=1)])

    def score(self, actual: NDArray[Any], predicted: NDArray[Any], weight: Weights) -> float:
        """Accuracy."""
        return float(accuracy_score(actual, predicted, sample_weight=weight))

    def as_model(self, mean: Values) -> BaseEstimator:
        """Return a classifier."""
        return KnownProba(mean, self.predictions(mean), [self.classes])


@dataclass(frozen=True, eq=False)
class ValueOutput:
    """Values of one output or several."""

    n_outputs: int

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes that follow from the target."""
        return {"n_outputs_": self.n_outputs}

    def predict(self, member: BaseEstimator, X: TableLike, **params: Any) -> Values:
        """Values, (n_rows, n_outputs)."""
        predicted = np.asarray(member.predict(X, **params), dtype=np.float64)
        return predicted.reshape(len(predicted), -1)

    def losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Squared errors."""
        return np.asarray(((target.reshape(mean.shape) - mean) ** 2).mean(axis=1))

    def smooth_losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Squared errors."""
        return self.losses(target, mean)

    def predictions(self, mean: Values) -> NDArray[Any]:
        """Values in the shape of the target."""
        return mean[:, 0] if self.n_outputs == 1 else mean

    def score(self, actual: NDArray[Any], predicted: NDArray[Any], weight: Weights) -> float:
        """Return R²."""
        return float(r2_score(actual, predicted, sample_weight=weight))

    def as_model(self, mean: Values) -> BaseEstimator:
        """Return a regressor."""
        return KnownValues(self.predictions(mean))


Output = ClassOutput | ValueOutput  # what members predict, as numbers that can be averaged


def metric_value(
    output: Output, metric: Metric | str | None, target: NDArray[Any], mean: Values, weight: Weights
) -> float:
    """Return a metric of the rows that have a mean; NaN if none has."""
    rows = ~np.isnan(mean[:, 0])
    if not rows.any():
        return float("nan")
    own = None if weight is None else weight[rows]
    if isinstance(metric, str):
        weighted = {} if own is None else {"sample_weight": own}
        scorer, every = get_scorer(metric), np.arange(np.count_nonzero(rows))
        return float(scorer(output.as_model(mean[rows]), every, target[rows], **weighted))
    predicted = output.predictions(mean[rows])
    if metric is not None:
        return float(metric(target[rows], predicted))
    return output.score(target[rows], predicted, own)


# ---- out of bag ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Bag:
    """Members and how the rows and columns of each were drawn."""

    estimators: list[BaseEstimator]
    draws: list[tuple[Sampling, int]]

    def out_of_bag(
        self, table: PickTable, output: Output, n_jobs: int | None, first: int = 0
    ) -> Iterator[tuple[NDArray[np.bool_], Values]]:
        """Yield for each member from the first the rows it has not seen, and its predictions of them."""

        def predict(k: int) -> tuple[NDArray[np.bool_], Values]:
            sampling, seed = self.draws[first + k]
            columns, rows = sampling.draw(seed)
            left_out = out_of(rows, table.n_rows)
            if not left_out.any():
                return left_out, np.empty((0, 0))
            X = table.take(np.flatnonzero(left_out), None if sampling.takes_all_columns else columns)
            return left_out, output.predict(self.estimators[first + k], X)

        n_members = len(self.estimators) - first
        if n_members:
            yield from in_order(predict, n_members, count_threads(n_jobs, n_members))


@dataclass
class OutOfBag:
    """Sums over the members so far, and the errors after each of them.

    Attributes
    ----------
    n_rows : int
        Rows of the table.
    curve, smooth : list of float
        Errors after each member, and those that show whether more members help.
    """

    n_rows: int
    curve: list[float] = field(default_factory=list)
    smooth: list[float] = field(default_factory=list)
    _total: Values | None = None
    _count: Values | None = None

    def add(self, left_out: NDArray[np.bool_], predicted: Values) -> None:
        """Add the predictions of a member for the rows that it has not seen."""
        if self._total is None or self._count is None:
            self._total, self._count = np.zeros((self.n_rows, 1)), np.zeros((self.n_rows, 1))
        if not left_out.any():
            return
        if self._total.shape[1] != predicted.shape[1]:
            self._total = np.zeros((self.n_rows, predicted.shape[1]))
        self._total[left_out] += predicted
        self._count[left_out] += 1

    @property
    def mean(self) -> Values:
        """Mean of the predictions, (n_rows, n_values), NaN where there is none."""
        assert self._total is not None
        assert self._count is not None
        return np.where(self._count > 0, self._total / np.maximum(self._count, 1), np.nan)


def mean_loss(losses: Values, mean: Values, weight: Weights) -> float:
    """Average the losses of rows that have a prediction and a weight; NaN if there is none."""
    rows = ~np.isnan(mean[:, 0])
    if weight is not None:
        rows &= weight > 0
    if not rows.any():
        return float("nan")
    return float(np.average(losses[rows], weights=None if weight is None else weight[rows]))


Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Stratum:
    """Units to draw from."""

    units: Places
    n_drawn: int
    chance: NDArray[np.float64] | None = None  # of each unit; None: all the same

    def draw(self, replace: bool, random: np.random.RandomState) -> Places:
        """Draw units."""
        if self.chance is not None:
            return np.asarray(random.choice(self.units, self.n_drawn, replace=replace, p=self.chance))
        return self.units[_draw(len(self.units), self.n_drawn, replace, random)]


@dataclass(frozen=True, eq=False)
class Sampling:
    """How the rows and columns of members are drawn.

    Attributes
    ----------
    n_rows, n_columns : int
        Of the table.
    replace : bool
        A unit may be drawn several times.
    strata : list of Stratum
    rows_of : list of ndarray or None
        Rows of each unit; None: units are rows.
    n_columns_drawn : int
    replace_columns : bool
    """

    n_rows: int
    n_columns: int
    replace: bool
    strata: list[Stratum]
    rows_of: list[Places] | None
    n_columns_drawn: int
    replace_columns: bool

    def draw(self, seed: int) -> tuple[Places, Places]:
        """Return the columns and the rows of the member with this seed; rows drawn twice are there twice."""
        random = np.random.RandomState(seed)
        columns = _draw(self.n_columns, self.n_columns_drawn, self.replace_columns, random)
        units = np.concatenate([stratum.draw(self.replace, random) for stratum in self.strata])
        if self.rows_of is None:
            return columns, units
        return columns, np.concatenate([self.rows_of[unit] for unit in units])

    @property
    def takes_all_columns(self) -> bool:
        """Whether every member gets the whole width of the table."""
        return self.n_columns_drawn == self.n_columns and not self.replace_columns

    @property
    def leaves_rows_out(self) -> bool:
        """Whether a member may lack rows that it could have."""
        return self.replace or any(stratum.n_drawn < len(stratum.units) for stratum in self.strata)

    @property
    def goes_by_weight(self) -> bool:
        """Whether rows are drawn by their weights, so that the sample has them already."""
        return any(stratum.chance is not None for stratum in self.strata)

    @property
    def mean_share(self) -> float:
        """Return the share of the table's rows that a member sees, about: distinct rows only."""
        distinct = 0.0
        for stratum in self.strata:
            n, drawn = len(stratum.units), stratum.n_drawn
            distinct += n * (1 - float(exp(-drawn / n))) if self.replace else drawn
        n_units = sum(len(stratum.units) for stratum in self.strata)
        return distinct / n_units


def _draw(n: int, n_drawn: int, replace: bool, random: np.random.RandomState) -> Places:
    if replace:
        return np.asarray(random.randint(0, n, n_drawn), dtype=np.intp)
    return np.asarray(sample_without_replacement(n, n_drawn, random_state=random), dtype=np.intp)


def out_of(rows: Places, n_rows: int) -> NDArray[np.bool_]:
    """Mark the rows that are not among these."""
    mask = np.ones(n_rows, dtype=bool)
    mask[rows] = False
    return mask


def row_strata(
    strata: NDArray[np.intp] | None,
    groups: NDArray[Any] | None,
    eligible: NDArray[np.bool_],
) -> tuple[list[Places], list[Places] | None]:
    """Gather rows into units and units into strata.

    Parameters
    ----------
    strata : ndarray of int or None
        Stratum of each row.
    groups : ndarray or None
        Label of each row's group.
    eligible : ndarray of bool
        Rows that may be drawn.

    Returns
    -------
    units : list of ndarray
        Units of each stratum.
    rows_of : list of ndarray or None
        Rows of each unit; None: units are rows.
    """
    rows = np.flatnonzero(eligible)
    if groups is None:
        return _parts(rows, None if strata is None else strata[rows]), None
    _, unit_of = np.unique(groups[rows], return_inverse=True)
    rows_of = _parts(rows, unit_of)
    if strata is None:
        return [np.arange(len(rows_of))], rows_of
    for unit in rows_of:
        if np.ptp(strata[unit]):
            raise ValueError(
                f"Group {groups[unit[0]]!r} holds rows of several strata, so that it cannot be drawn from one. Pass "
                "groups that lie within strata, or drop one of the two."
            )
    return _parts(np.arange(len(rows_of)), np.array([strata[unit[0]] for unit in rows_of])), rows_of


def _parts(places: Places, label: NDArray[Any] | None) -> list[Places]:
    """Split places by their labels, in the order of the labels."""
    if label is None:
        return [places]
    order = np.argsort(label, kind="stable")
    return np.split(places[order], np.flatnonzero(np.diff(label[order])) + 1)


def count_drawn(
    max_samples: int | float | None, sizes: list[int], replace: bool, balanced: bool, what: str
) -> list[int]:
    """Return how many units to draw from each stratum.

    Parameters
    ----------
    max_samples : int, float or None
        Units in all, their share, or None for as many as there are.
    sizes : list of int
        Units of each stratum.
    replace : bool
        Units may be drawn several times.
    balanced : bool
        Draw the same number from each stratum; None then means the size of the smallest.
    what : str
        Name of a unit in messages.

    Returns
    -------
    list of int
        At least one each.
    """
    total, is_number = sum(sizes), isinstance(max_samples, Integral)
    share = 1.0 if max_samples is None else float(max_samples)
    wanted = int(share) if is_number else max(1, int(share * total))
    if not replace and wanted > total:
        raise ValueError(
            f"max_samples={wanted} must be <= n_samples={total} to draw without replacement: there are {total} {what}s."
        )
    if balanced:
        each = max(1, wanted // len(sizes) if is_number else int(share * min(sizes)))
        if not replace and each > min(sizes):
            raise ValueError(
                f"Balanced samples would take {each} {what}s of every class, and the smallest has {min(sizes)}. Lower "
                "max_samples, or draw with replacement."
            )
        return [each] * len(sizes)
    return [wanted] if len(sizes) == 1 else _proportional(wanted, sizes)


def _proportional(wanted: int, sizes: list[int]) -> list[int]:
    """Share a number out in proportion, by largest remainders; each stratum gets one at least."""
    exact = wanted * np.array(sizes) / sum(sizes)
    numbers = np.floor(exact).astype(int)
    short = wanted - int(numbers.sum())
    numbers[np.argsort(-(exact - numbers), kind="stable")[:short]] += 1
    return [max(1, int(number)) for number in numbers]


def count_columns(max_features: int | float, n_columns: int) -> int:
    """Return how many columns a member gets."""
    if isinstance(max_features, Integral):
        if max_features > n_columns:
            raise ValueError(f"max_features={max_features} must be <= n_features: the table has {n_columns} columns.")
        return int(max_features)
    return max(1, int(max_features * n_columns))
