"""Costs of misclassification and prior class probabilities: their checks and their effects.

Vocabulary, for classes i (true) and j (predicted):
  cost          C[i, j], 0 where i = j
  priors        prior class probabilities
  prior_factor  prior_i divided by class i's fraction of the training weight: factor of the weight of a row of class i
                in the values of nodes
  split_factor  factor of the weight of a row of class i in the search for splits; altered priors multiply it by the sum
                of the costs of missing class i. Not normalised: no split depends on the scale, and products of integer
                costs and weights are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.arguments import argument_numbers
from spinney._data.reproducible import log2, sums_by_code, times
from spinney._data.types import Floats
from spinney._model.file.values import labelled_rows
from spinney._model.model import decision_costs
from spinney._model.tree import FittedTree

_MAX_COST = 1e100  # sums over rows and products with weights stay finite


def _code_of(label: object, code_of: Mapping[Any, int], parameter: str) -> int:
    if label not in code_of:
        known = ", ".join(repr(known) for known in list(code_of)[:10])
        raise ValueError(f"{parameter} names a class that does not occur in y: {label!r}. The classes are: {known}.")
    return code_of[label]


def weights_of_classes(weights: Mapping[Any, float], classes: NDArray[Any]) -> Floats:
    """Return the weight of each class from a `class_weight` by label; classes that it does not name have weight 1.

    Labels that y lacks are refused, unless all classes of y have a weight: a fold may lack a rare class.
    """
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    if any(label not in weights for label in code_of):
        for label in weights:
            _code_of(label, code_of, "class_weight")
    return np.array([weights.get(label, 1.0) for label in code_of], dtype=np.float64)


def _by_label(rows: Mapping[Any, Any], classes: NDArray[Any], is_frame: bool) -> Floats:
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    if is_frame:
        code_of = _as_named(code_of, rows)
        if len(rows) != len(classes) or any(len(row) != len(classes) for row in rows.values()):
            raise ValueError(
                f"cost_matrix must have one row and one column for each of the {len(classes)} classes, with their "
                "labels."
            )
    cost = 1.0 - np.eye(len(classes))
    for true, row in rows.items():
        if not isinstance(row, Mapping):
            raise ValueError(
                f"cost_matrix as a dict must hold dicts: {{true: {{predicted: cost}}}}. Got {row!r} for class {true!r}."
            )
        i = _code_of(true, code_of, "cost_matrix")
        for predicted, value in row.items():
            cost[i, _code_of(predicted, code_of, "cost_matrix")] = _number(value, "cost_matrix")
    return cost


def _as_named(code_of: dict[Any, int], rows: Mapping[Any, Any]) -> dict[Any, int]:
    """Return the codes by label as the frame names it: some frames have only strings as column names."""
    named = {name for row in rows.values() for name in row}
    texts = {str(label): code for label, code in code_of.items()}
    return {**texts, **code_of} if named <= set(texts) and len(texts) == len(code_of) else code_of


def _number(value: Any, parameter: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{parameter} must hold numbers. Got {value!r}.") from None


def read_cost_matrix(cost: object, classes: NDArray[Any]) -> Floats:
    """Return checked costs as an array in the order of the classes."""
    n = len(classes)
    rows = cost if isinstance(cost, Mapping) else labelled_rows(cost)
    if rows is not None:
        array = _by_label(rows, classes, not isinstance(cost, Mapping))
    else:
        array = np.array(argument_numbers(cost, "cost_matrix"))
        if array.shape != (n, n):
            raise ValueError(
                f"cost_matrix has shape {array.shape}, but y has {n} classes. Pass {n} rows (true class) of {n} "
                "costs (predicted class), in the order of classes_, or a dict of dicts by label."
            )
    _check_costs(array, classes.tolist())
    return np.ascontiguousarray(array)


def _check_costs(cost: Floats, classes: list[Any]) -> None:
    if not np.isfinite(cost).all() or (cost < 0).any():
        i, j = np.argwhere(~np.isfinite(cost) | (cost < 0))[0]
        raise ValueError(
            f"cost_matrix must hold finite costs of at least 0. Predicting {classes[j]!r} for {classes[i]!r} costs "
            f"{cost[i, j]}."
        )
    if cost.max(initial=0.0) > _MAX_COST:
        i, j = np.unravel_index(cost.argmax(), cost.shape)
        raise ValueError(
            f"cost_matrix holds {cost[i, j]:g}, the cost of predicting {classes[j]!r} for {classes[i]!r}, which is too "
            f"large to be summed over the rows. Only ratios of costs matter: divide all of them by it."
        )
    if cost.diagonal().any():
        i = int(np.flatnonzero(cost.diagonal())[0])
        raise ValueError(
            f"cost_matrix must be 0 on its diagonal: a correct prediction of {classes[i]!r} costs {cost[i, i]}. "
            "Subtract the cost of the correct prediction from each row."
        )
    free = ~cost.any(axis=1)
    if len(classes) > 1 and free.any():
        raise ValueError(
            f"cost_matrix has a row of zeros: misclassified rows of class {classes[np.argmax(free)]!r} cost nothing. "
            "Set a positive cost in each row, or leave the rows of this class out."
        )


def read_priors(priors: Any, classes: NDArray[Any]) -> Floats:
    """Return checked class probabilities in the order of the classes; their sum is 1."""
    n = len(classes)
    if isinstance(priors, str):  # "uniform"
        return np.full(n, 1.0 / n)
    if isinstance(priors, Mapping):
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        array = np.full(n, np.nan)
        for label, value in priors.items():
            array[_code_of(label, code_of, "priors")] = _number(value, "priors")
        if len(priors) < n:
            left_out = [label for label in classes.tolist() if label not in priors]
            raise ValueError(f"priors leaves out the class {left_out[0]!r}. Pass a probability for every class.")
    else:
        array = np.array([_number(value, "priors") for value in priors], dtype=np.float64)
        if array.shape != (n,):
            raise ValueError(
                f"priors has {len(array)} entries, but y has {n} classes. Pass one probability per class, in the "
                "order of classes_, or a dict by label."
            )
    if not np.isfinite(array).all() or not (array > 0).all():
        raise ValueError(
            f"priors must be positive probabilities. Got {array.tolist()}. To leave a class out, drop its rows."
        )
    if abs(array.sum() - 1.0) > 1e-6:
        raise ValueError(f"priors must sum to 1. They sum to {array.sum():g}: divide them by that.")
    return np.asarray(array / array.sum())


def are_costs_equal(cost: Floats) -> bool:
    """Return whether all mistakes cost the same: then the most probable class has the least cost."""
    n = len(cost)
    return bool(n < 2 or (cost[~np.eye(n, dtype=bool)] == cost[0, 1]).all())


def class_impurity(criterion: str, proba: Floats, cost: Floats | None) -> Floats:
    """Return the impurity of class probabilities, one row per node."""
    if criterion in ("entropy", "log_loss", "gain_ratio"):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(proba > 0, proba * log2(proba), 0.0).sum(axis=1))
    if criterion == "misclassification":
        return np.asarray(1.0 - proba.max(axis=1))
    if cost is not None:
        return np.asarray((times(proba, cost) * proba).sum(axis=1))
    return np.asarray((proba * (1.0 - proba)).sum(axis=1))


@dataclass(frozen=True)
class ClassCosts:
    """Costs and priors of one fit.

    Attributes
    ----------
    cost : ndarray of shape (n_classes, n_classes) or None
        Cost of each mistake; None: 1.
    priors : ndarray of shape (n_classes,) or None
        Class probabilities; None: those of the training rows.
    prior_factor, split_factor : ndarray of shape (n_classes,) or None
        See the docstring of the module; None: 1 for every class.
    pairs : ndarray of shape (n_classes, n_classes) or None
        Costs of the generalised Gini index, if it is used.
    """

    cost: Floats | None = None
    priors: Floats | None = None
    prior_factor: Floats | None = None
    split_factor: Floats | None = None
    pairs: Floats | None = None

    @classmethod
    def of(
        cls,
        cost: Floats | None,
        priors: Floats | None,
        splits: str | None,
        codes: NDArray[np.int32],
        weight: Floats | None,
        classes: NDArray[Any],
    ) -> ClassCosts:
        """Return costs and priors with the factors that follow from the class frequencies of the training rows."""
        frequency = sums_by_code(codes, weight, len(classes))
        frequency = frequency / frequency.sum()
        factor = None
        if priors is not None:
            if not frequency.all():
                raise ValueError(
                    f"priors cannot be used: class {classes.tolist()[np.argmin(frequency)]!r} has no rows of positive "
                    "weight. Drop its rows."
                )
            factor = priors / frequency
        split_factor, pairs = factor, None
        if cost is not None and not are_costs_equal(cost) and splits == "altered_priors":
            total_cost = cost.sum(axis=1)
            split_factor = total_cost if factor is None else total_cost * factor
        elif cost is not None and splits == "generalised_gini" and not (are_costs_equal(cost) and cost.max() == 1):
            pairs = cost
        return cls(cost, priors, factor, split_factor, pairs)

    @property
    def decision(self) -> Floats:
        """Costs from which the prediction of a node follows."""
        return np.asarray(decision_costs(self.cost, self.priors))

    def split_weights(self, codes: NDArray[np.int32], weight: Floats | None) -> Floats | None:
        """Return the weights of the rows in the search for splits."""
        return _times_class(self.split_factor, codes, weight)

    def value_weights(self, codes: NDArray[np.int32], weight: Floats | None) -> Floats | None:
        """Return the weights of the rows in the class probabilities of nodes: with the priors, without the costs."""
        return _times_class(self.prior_factor, codes, weight)

    def restate(self, tree: FittedTree, criterion: str) -> FittedTree:
        """Return a grown tree with values that include the priors but not the costs."""
        return self._rescaled(tree, self.split_factor, self.prior_factor, criterion)

    def as_searched(self, tree: FittedTree, criterion: str) -> FittedTree:
        """Return the result of `restate` with the values from which its splits were chosen."""
        return self._rescaled(tree, self.prior_factor, self.split_factor, criterion)

    def _rescaled(self, tree: FittedTree, old: Floats | None, new: Floats | None, criterion: str) -> FittedTree:
        if old is new:
            return tree
        ones = np.ones(tree.flat_value.shape[1])
        ratio = (ones if new is None else new) / (ones if old is None else old)
        counts = tree.flat_value * tree.weighted_n_node_samples[:, np.newaxis] * ratio
        weight = counts.sum(axis=1)
        proba = counts / weight[:, np.newaxis]
        return tree.with_values(proba, weight, class_impurity(criterion, proba, self.pairs))

    def loss(self, true: NDArray[np.int32], predicted: NDArray[Any]) -> Floats:
        """Return the cost of each prediction; for true classes that did not occur in training, the largest cost."""
        cost = self.decision
        loss = np.where(true >= 0, cost[true, predicted], cost.max(axis=0)[predicted])
        if self.prior_factor is not None:
            loss = loss * np.where(true >= 0, self.prior_factor[true], 1.0)
        return np.asarray(loss)


def _times_class(factor: Floats | None, codes: NDArray[np.int32], weight: Floats | None) -> Floats | None:
    if factor is None:
        return weight
    by_class = factor[codes]
    return np.ascontiguousarray(by_class if weight is None else weight * by_class)
