"""Members of a bagging ensemble: their fits, their mean predictions, and their out-of-bag errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.tree import BaseDecisionTree

from spinney._data.select import PickTable, Places
from spinney._data.types import TableLike
from spinney._ensemble.members import MeanPredictions, random_state_names, rows_of, set_random_states, takes_weights
from spinney._ensemble.sampling import Sampling, out_of
from spinney._estimator.held_out import KnownProba, KnownValues
from spinney._estimator.metrics import find_scorer
from spinney._estimator.parallel import count_threads, in_order
from spinney._model.predictions import member_codes, member_probabilities, onehot
from spinney._tree.tree_estimator import BaseTree

Values = NDArray[np.float64]
Weights = Values | None
Metric = Callable[[NDArray[Any], NDArray[Any]], float]

# Below this fraction of the rows, copying a sample is faster than skipping rows of weight 0.
_MIN_FRACTION_BY_WEIGHT = 0.3


@dataclass(frozen=True, eq=False)
class MemberFit:
    """The training rows and settings of all members, shared by all threads."""

    template: BaseEstimator
    table: PickTable
    target: NDArray[Any]
    weight: Weights
    sampling: Sampling
    fit_params: dict[str, Any]

    def fit(self, k: int, seed: int) -> BaseEstimator:
        """Fit member k to the sample of a seed."""
        drawn, rows = self.sampling.draw(seed)
        columns = None if self.sampling.takes_all_columns else drawn
        member = self._unfitted(seed)
        try:
            if self._by_weight:
                weight = np.bincount(rows, minlength=self.table.n_rows).astype(np.float64)
                weight = weight if self._member_weight is None else weight * self._member_weight
                member.fit(self.table.take(columns=columns), self.target, sample_weight=weight, **self.fit_params)
            else:
                member.fit(self.table.take(rows, columns), self.target[rows], **self._params_of(rows))
        except Exception as error:
            error.add_note(f"This happened while fitting member {k + 1}{self._about(rows)}.")
            raise
        return member

    @property
    def _by_weight(self) -> bool:
        """Whether counts of draws are passed as weights: trees skip rows of weight 0 and need no copy of the sample."""
        is_tree = isinstance(self.template, (BaseTree, BaseDecisionTree)) and takes_weights(self.template)
        return is_tree and self.sampling.mean_fraction >= _MIN_FRACTION_BY_WEIGHT

    @cached_property
    def _random_states(self) -> list[str]:
        return random_state_names(self.template)

    @cached_property
    def _tree_names(self) -> list[str]:
        return [name for name, part in self.template.get_params(deep=True).items() if isinstance(part, BaseTree)]

    def _trees_of(self, member: BaseEstimator) -> list[BaseTree]:
        """Return the trees of a member: itself, or nested estimators."""
        if isinstance(member, BaseTree):
            return [member]
        return [member.get_params(deep=True)[name] for name in self._tree_names]

    def _unfitted(self, seed: int) -> BaseEstimator:
        member = clone(self.template)
        set_random_states(member, self._random_states, seed)
        if isinstance(member, BaseTree) and member.n_jobs is None:
            member.n_jobs = 1  # members are fitted in parallel
        for tree in self._trees_of(member):
            tree._random_ties = True
        return member

    def _params_of(self, rows: Places) -> dict[str, Any]:
        n_rows = self.table.n_rows
        params = {name: rows_of(value, rows, n_rows) for name, value in self.fit_params.items()}
        if self._member_weight is not None:
            params["sample_weight"] = self._member_weight[rows]
        return params

    @property
    def _member_weight(self) -> Weights:
        """Weights for the members, unless rows are drawn by their weights."""
        return None if self.sampling.draws_by_weight else self.weight

    def _about(self, rows: Places) -> str:
        if self.target.dtype.kind == "f" or self.target.ndim > 1:
            return ""
        n_here, n_all = len(set(self.target[rows].tolist())), len(set(self.target.tolist()))
        if n_here == n_all:
            return ""
        return f", whose sample has {n_here} of the {n_all} classes; stratified=True draws from each class"


# ---- predictions of members ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassOutput:
    """Members that predict class probabilities, or vote."""

    classes: NDArray[Any]
    is_soft: Callable[[BaseEstimator], bool]

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the target."""
        return {"classes_": self.classes, "n_classes_": len(self.classes)}

    def predict(self, member: BaseEstimator, X: TableLike, **params: Any) -> Values:
        """Return the class probabilities, or votes, of a member, (n_rows, n_classes)."""
        if not self.is_soft(member):
            return onehot(member_codes(member, X, self.classes, False, **params), len(self.classes))
        return member_probabilities(member, X, self.classes, False, **params)

    def losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Return 1 for misclassified rows, else 0."""
        return np.asarray(self.predictions(np.nan_to_num(mean)) != target, dtype=np.float64)

    def smooth_losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Return the Brier score of each row."""
        return np.asarray(((mean - (target[:, np.newaxis] == self.classes)) ** 2).sum(axis=1))

    def predictions(self, mean: Values) -> NDArray[Any]:
        """Return the labels of the largest mean probability; in a tie, the first."""
        return np.asarray(self.classes[mean.argmax(axis=1)])

    def score(self, actual: NDArray[Any], predicted: NDArray[Any], weight: Weights) -> float:
        """Return the accuracy."""
        return float(accuracy_score(actual, predicted, sample_weight=weight))

    def as_model(self, mean: Values) -> BaseEstimator:
        """Return mean predictions as a classifier, for scorers."""
        return KnownProba(mean, self.predictions(mean), [self.classes])


@dataclass(frozen=True, eq=False)
class ValueOutput:
    """Members that predict one numeric target or several."""

    n_outputs: int

    @property
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the target."""
        return {"n_outputs_": self.n_outputs}

    def predict(self, member: BaseEstimator, X: TableLike, **params: Any) -> Values:
        """Return the predictions of a member, (n_rows, n_outputs)."""
        predicted = np.asarray(member.predict(X, **params), dtype=np.float64)
        return predicted.reshape(len(predicted), -1)

    def losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Return the squared error of each row."""
        return np.asarray(((target.reshape(mean.shape) - mean) ** 2).mean(axis=1))

    def smooth_losses(self, target: NDArray[Any], mean: Values) -> Values:
        """Return the squared error of each row."""
        return self.losses(target, mean)

    def predictions(self, mean: Values) -> NDArray[Any]:
        """Return mean predictions in the shape of the target."""
        return mean[:, 0] if self.n_outputs == 1 else mean

    def score(self, actual: NDArray[Any], predicted: NDArray[Any], weight: Weights) -> float:
        """Return R²."""
        return float(r2_score(actual, predicted, sample_weight=weight))

    def as_model(self, mean: Values) -> BaseEstimator:
        """Return mean predictions as a regressor, for scorers."""
        return KnownValues(self.predictions(mean))


Output = ClassOutput | ValueOutput


def metric_value(
    output: Output, metric: Metric | str | None, target: NDArray[Any], mean: Values, weight: Weights
) -> float:
    """Return a metric, or the default score, over the rows that have a prediction; NaN if none has."""
    rows = ~np.isnan(mean[:, 0])
    if not rows.any():
        return float("nan")
    weight = None if weight is None else weight[rows]
    if isinstance(metric, str):
        weighted = {} if weight is None else {"sample_weight": weight}
        scorer, all_rows = find_scorer(metric), np.arange(np.count_nonzero(rows))
        return float(scorer(output.as_model(mean[rows]), all_rows, target[rows], **weighted))
    predicted = output.predictions(mean[rows])
    return float(metric(target[rows], predicted)) if metric else output.score(target[rows], predicted, weight)


# ---- out-of-bag predictions ------------------------------------------------------------------------------------


@dataclass(eq=False)
class Bag:
    """Members, with the sampling plan and the seed of each."""

    estimators: list[BaseEstimator]
    draws: list[tuple[Sampling, int]]

    def out_of_bag(
        self, mean: MeanPredictions, table: PickTable, output: Output, n_jobs: int | None, first: int = 0
    ) -> Iterator[Values]:
        """Add the out-of-bag predictions of each member from `first` on to a mean; yield the mean after each member."""

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
            for left_out, predicted in in_order(predict, n_members, count_threads(n_jobs, n_members)):
                mean.add(left_out, predicted)
                yield mean.value


class OutOfBag(MeanPredictions):
    """Mean out-of-bag predictions of the members so far, and the error after each member.

    Attributes
    ----------
    curve, smooth : list of float
        Errors after each member; smooth errors decide whether more members help.
    """

    def __init__(self, n_rows: int) -> None:
        super().__init__(n_rows)
        self.curve: list[float] = []
        self.smooth: list[float] = []


def mean_loss(losses: Values, mean: Values, weight: Weights) -> float:
    """Return the weighted mean loss of the rows that have a prediction; NaN if there is none."""
    rows = ~np.isnan(mean[:, 0])
    if weight is not None:
        rows &= weight > 0
    if not rows.any():
        return float("nan")
    return float(np.average(losses[rows], weights=None if weight is None else weight[rows]))
