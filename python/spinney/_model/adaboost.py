"""A fitted AdaBoost of trees: weighted members, and the sum of their scores.

A member predicts a class (votes), class probabilities (real) or a number (gentle, logit) for each row. `ScoreFormula`
turns these predictions into scores. Applied to the nodes of a tree, it gives a tree of scores, so AdaBoost predicts and
explains rows as a sum of trees does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.reproducible import log
from spinney._data.types import Floats
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import numbers, saved_fields, word
from spinney._model.file.container import refuse
from spinney._model.links import predicted
from spinney._model.model import ModelOfTrees, ModelSpec, ScoredModel, check_width, fractions
from spinney._model.row_predictors import RowPredictor
from spinney._model.tree import FittedTree

VOTES = ("m1", "samme")
ALGORITHMS = (*VOTES, "real", "gentle", "logit")
_FEW_SCORES = 16  # trees that a member may become; each takes several times the memory of its nodes' scores
MIN_PROBABILITY = 1e-5  # of a class ("real"), so that no overconfident member decides alone


@dataclass(frozen=True)
class ScoreFormula:
    """How the predictions of members become scores.

    For two classes there is one score: the algorithm's estimate of half the log-odds of the second class. For more
    classes there is one score per class.

    Attributes
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    n_classes : int
    """

    algorithm: str
    n_classes: int

    @property
    def members_are_regressors(self) -> bool:
        """Whether members are regressors."""
        return self.algorithm in ("gentle", "logit")

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""
        return 1 if self.n_classes <= 2 else self.n_classes

    @property
    def n_members(self) -> int:
        """Members fitted in a round: one, or one per class where each separates one class from the others."""
        return self.n_scores if self.members_are_regressors else 1

    @property
    def link(self) -> str:
        """Name of the function from scores to class probabilities."""
        if self.n_classes <= 2:
            return "half_logit"
        return "one_vs_rest" if self.algorithm == "gentle" else "softmax"

    def node_predictions(self, value: Floats) -> NDArray[Any]:
        """Return the prediction of each node, given node values of shape (n_nodes, value_width)."""
        if self.members_are_regressors:
            return value[:, 0]
        return value.argmax(axis=1) if self.algorithm in VOTES else value

    def codes(self, scores: Floats) -> NDArray[np.intp]:
        """Code of the class with the largest score, (n,); the first on a tie."""
        return np.asarray(scores.argmax(axis=1)) if self.n_scores > 1 else (scores[:, 0] > 0).astype(np.intp)

    def decision_scale(self, weight: float) -> tuple[float, float]:
        """Return the factor and the constant that turn scores into the decision function.

        Votes are divided by the weight of all members, as in scikit-learn; other scores are unchanged.
        """
        if self.algorithm not in VOTES or not weight > 0:
            return 1.0, 0.0
        if self.n_classes <= 2:
            return 4.0 / weight, 0.0
        return self.n_classes / ((self.n_classes - 1.0) * weight), -1.0 / (self.n_classes - 1.0)

    def scores(self, predictions: NDArray[Any], weight: float) -> Floats:
        """Return what one member adds to the scores.

        Parameters
        ----------
        predictions : ndarray of int, (n,); or of float, (n, n_classes) or (n,)
            Class codes; class probabilities; or numbers.
        weight : float
            The member's weight.

        Returns
        -------
        ndarray of shape (n, n_scores), or (n, 1) if each member scores one class
        """
        two = self.n_classes <= 2
        if self.algorithm in VOTES:
            if two:
                return np.asarray((weight / 2) * (2.0 * predictions[:, np.newaxis] - 1.0))
            return weight * np.asarray(predictions[:, np.newaxis] == np.arange(self.n_classes), dtype=np.float64)
        if self.algorithm == "real":
            logs = log(np.maximum(predictions, MIN_PROBABILITY))
            if two:
                return np.asarray((weight / 2) * (logs[:, 1:] - logs[:, :1]))
            return np.asarray(weight * (logs - logs.mean(axis=1, keepdims=True)))
        step = weight / 2 if two else weight * ((self.n_classes - 1) / self.n_classes)
        return np.asarray((weight if self.algorithm == "gentle" else step) * predictions[:, np.newaxis])


def total_weight(weights: Floats) -> float:
    """Return the sum of the members' weights, in the order of the rounds."""
    return float(np.cumsum(weights)[-1])


class WeightedTrees(ModelOfTrees):
    """The members of a fitted AdaBoost, with their weights.

    Attributes
    ----------
    weights : ndarray of shape (n_rounds,)
        Weight of the members of each round.
    n_rounds : int
        Rounds.
    """

    attribute = "adaboost_"
    noun = "AdaBoost"
    takes_costs = False
    engine: list[_engine.Tree]

    def __init__(self, trees: list[_engine.Tree], weights: Floats, n_classes: list[int] | None) -> None:
        super().__init__(n_classes, 1)
        self.engine = trees
        self.weights = weights

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_rounds} rounds, {self.node_count} nodes>"

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.weights)

    @property
    def _engines(self) -> list[_engine.Tree]:
        return self.engine

    @property
    def n_trees(self) -> int:
        """Number of members."""
        return len(self.engine)

    def trees(self) -> list[_engine.Tree]:
        """Return the trees of all members."""
        return list(self.engine)

    def importances(self, n_features: int) -> Floats:
        """Weighted mean of the members' importances, normalised to sum to 1."""
        total = np.zeros(n_features)
        for weight, tree in zip(np.repeat(self.weights, self.n_trees // self.n_rounds), self.engine, strict=True):
            total += float(weight) * FittedTree(tree, None, tree.value_width).importances(n_features)
        return fractions(total)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self, "n_iter_": self.n_rounds, "estimator_weights_": self.weights}


class FittedAdaBoost(WeightedTrees, ScoredModel):
    """A fitted AdaBoost classifier: weighted members, and the equivalent sum of trees.

    Attributes
    ----------
    formula : ScoreFormula
        How the predictions of members become scores.
    """

    kind = "adaboost"
    saved = saved_fields(algorithm=word(ALGORITHMS), weights=numbers(np.float64, "n_rounds"))

    def __init__(
        self, members: list[_engine.Tree], weights: Floats, formula: ScoreFormula, n_categories: list[int]
    ) -> None:
        super().__init__(members, weights, [formula.n_classes])
        self.formula = formula
        self._n_categories = n_categories

    @property
    def algorithm(self) -> str:
        """The boosting algorithm, one of `ALGORITHMS`."""
        return self.formula.algorithm

    @cached_property
    def scoring(self) -> FittedBoosting:
        """The equivalent sum of trees, one tree of each member for each of its scores."""
        return self._sum_of_trees(slice(None))

    def _sum_of_trees(self, which: slice) -> FittedBoosting:
        """Return the sum of trees of some of the scores; of all of them, if each member has one score."""
        added: list[_engine.Tree] = []
        for t, tree in enumerate(self.engine):
            for column in self._node_scores(t, slice(None))[:, which].T:
                values = np.ascontiguousarray(column[:, np.newaxis])
                added.append(tree.with_values(values, tree.weight, tree.impurity))
        start = np.zeros(self.formula.n_scores)[which]
        return FittedBoosting(added, start, self.formula.link, self._n_categories, self._n_classes)

    def _node_scores(self, t: int, nodes: slice | NDArray[np.intp]) -> Floats:
        """Return what some nodes of a member add to the scores."""
        value = self.engine[t].value.reshape(self.engine[t].size, -1)[nodes]
        return self.formula.scores(
            self.formula.node_predictions(value), float(self.weights[t // self.formula.n_members])
        )

    @property
    def _has_many_scores(self) -> bool:
        """Whether the members would become too many trees, so that scores are added without them."""
        return self.formula.n_members == 1 and self.formula.n_scores > _FEW_SCORES

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Shapley values of the decision function: base values, values by row, column and score, and of pairs."""
        if self._has_many_scores:
            firsts = range(0, self.formula.n_scores, _FEW_SCORES)
            parts = (self._sum_of_trees(slice(first, first + _FEW_SCORES)) for first in firsts)
            sums = [
                [
                    found.reshape(-1, part.n_scores)
                    for found in part.shap_sums(columns, background, interactions, n_jobs)
                ]
                for part in parts
            ]
            base, values, pairs = (np.hstack(of_parts).ravel() for of_parts in zip(*sums, strict=True))
        else:
            base, values, pairs = self.scoring.shap_sums(columns, background, interactions, n_jobs)
        factor, constant = self.formula.decision_scale(total_weight(self.weights))
        return factor * base + constant, factor * values, factor * pairs

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> RowPredictor:
        """Return a predictor of single rows."""
        if not self._has_many_scores:
            return self.scoring.row_predictor(schema, unseen, classes)

        def scores(row: Floats) -> Floats:
            return self._added(1, lambda tree: np.array([tree.apply_one(row)]))

        def label(row: Floats) -> Any:
            return classes[int(self.formula.codes(scores(row))[0])]

        return RowPredictor(schema, unseen, label, lambda row: self.predicted(scores(row))[0])

    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Scores, (n_rows, n_scores)."""
        if not self._has_many_scores:
            return self.scoring.scores(columns, n_jobs)
        return self._added(columns.n_rows, lambda tree: tree.apply(columns, n_jobs))

    def _added(self, n_rows: int, leaves_of: Callable[[_engine.Tree], NDArray[Any]]) -> Floats:
        """Add up the scores of the leaves of rows; equivalent to `scoring`, in the memory of the members."""
        total = np.zeros((n_rows, self.formula.n_scores))
        for t, tree in enumerate(self.engine):
            leaves, of_rows = np.unique(leaves_of(tree), return_inverse=True)
            total += self._node_scores(t, leaves.astype(np.intp))[of_rows]
        return total

    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into class probabilities."""
        return predicted(self.formula.link, scores)

    def predicted_from_explained(self, sums: Floats) -> Floats:
        """Turn values of the decision function into class probabilities."""
        factor, constant = self.formula.decision_scale(total_weight(self.weights))
        return self.predicted((sums - constant) / factor)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return super().attributes() | {"_formula": self.formula}

    # ---- files -----------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the ensemble from a file."""
        if spec.n_outputs != 1 or spec.n_classes is None:
            refuse("is damaged: its number of outputs is wrong")
        found = cls.saved.from_header(header)
        formula, weights = ScoreFormula(found["algorithm"], spec.n_classes[0]), found["weights"]
        if not len(weights) or len(trees) != len(weights) * formula.n_members:
            refuse(f"is damaged: it holds {len(trees)} trees for {len(weights)} rounds")
        width = 1 if formula.members_are_regressors else formula.n_classes
        if any(tree.value_width != width for tree in trees):
            refuse("is damaged: a tree does not fit its classes")
        return cls(trees, weights, formula, spec.schema.n_categories)

    def identity(self) -> bytes:
        """Return the algorithm and the members' weights."""
        return self.algorithm.encode() + np.ascontiguousarray(self.weights).tobytes()


def weighted_medians(values: Floats, weights: Floats) -> Floats:
    """Return the weighted median of each row: the lowest value up to which at least half of the weight lies.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n)
    weights : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    order = np.argsort(values, axis=1, kind="stable")
    reached = np.cumsum(weights[order], axis=1)
    middle = (reached >= 0.5 * reached[:, -1:]).argmax(axis=1)
    return np.asarray(values[np.arange(len(values)), order[np.arange(len(values)), middle]])


class FittedMedian(WeightedTrees):
    """A fitted AdaBoost regressor, which predicts the weighted median of its trees."""

    kind = "adaboost_r2"
    saved = saved_fields(weights=numbers(np.float64, "n_rounds", above=0))

    def __init__(self, trees: list[_engine.Tree], weights: Floats) -> None:
        super().__init__(trees, weights, None)

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Raise TypeError: a median is not a sum."""
        raise TypeError(
            "AdaBoostRegressor predicts a median of its trees, which is not a sum of contributions of columns. Explain "
            "a GradientBoostingRegressor or a forest, or the trees in estimators_ one by one."
        )

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> RowPredictor:
        """Return a predictor of single rows."""
        leaves = [(tree.apply_one, tree.value) for tree in self.engine]

        def median(numbers: Floats) -> float:
            values = np.array([[value[leaf_of(numbers)] for leaf_of, value in leaves]])
            return float(weighted_medians(values, self.weights)[0])

        return RowPredictor(schema, unseen, median)

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Weighted median of the trees' values, (n_rows, 1)."""
        values = np.column_stack([tree.value[tree.apply(columns, n_jobs)] for tree in self.engine])
        return weighted_medians(values, self.weights)[:, np.newaxis]

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the ensemble from a file."""
        if not trees or spec.n_outputs != 1 or spec.n_classes is not None:
            refuse("is damaged: its number of trees or outputs is wrong")
        check_width(trees, spec)
        return cls(trees, **cls.saved.from_header(header, n_rounds=len(trees)))

    def identity(self) -> bytes:
        """Return the trees' weights."""
        return np.ascontiguousarray(self.weights).tobytes()
