"""AdaBoost of classes and of values: members fitted one after the other to what the earlier ones got wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.evaluation import HeldOutScore
from spinney._boosting.learning_rows import LearningRows
from spinney._data import Schema, read_table
from spinney._data.types import TableLike
from spinney._ensemble.adaboost.base import BaseAdaBoost, Floats
from spinney._ensemble.adaboost.rules import R2Rule, RoundLoss, Rule, ScoresRule, make_rule
from spinney._estimator import table_estimator
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.target import SingleTarget, known_codes, read_weights
from spinney._model.adaboost import ALGORITHMS, FittedAdaBoost, FittedMedian, ScoreFormula, weighted_medians
from spinney._model.boosting import FittedBoosting

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues

# ---- classes -----------------------------------------------------------------------------------------------------


def _link(formula: ScoreFormula) -> FittedBoosting:
    """Return a sum of no trees, which knows how scores become class probabilities."""
    return FittedBoosting([], np.zeros(formula.n_scores), formula.link, [], [formula.n_classes])


@estimator
class AdaBoostClassifier(ClassifierMixin, BaseAdaBoost):
    """Weak classifiers fitted one after the other, each looking at what the earlier ones got wrong.

    Rows that a member gets wrong weigh more for the next one, and members vote with a weight that follows from their
    error. By default members are stumps, trees of one split, of which spinney fits hundreds a second; any estimator
    will do that takes weights, and one that does not is fitted to rows drawn by their weights.

    The `decision_function` of two classes is f = Σ α / 2 · h, positive for the second: half its log-odds. For more
    classes it is a number per class: the sum of the weights of the members that vote for it (``"m1"``, ``"samme"``),
    or its logarithmic score.

    See Also
    --------
    GradientBoostingClassifier : Boosts any loss; ``loss="exponential"`` is AdaBoost's.

    References
    ----------
    Y. Freund, R. E. Schapire (1997). A decision-theoretic generalization of on-line learning and an application to
    boosting. Journal of Computer and System Sciences 55, 119-139.

    J. Friedman, T. Hastie, R. Tibshirani (2000). Additive logistic regression: a statistical view of boosting. The
    Annals of Statistics 28, 337-407.

    J. Zhu, H. Zou, S. Rosset, T. Hastie (2009). Multi-class AdaBoost. Statistics and Its Interface 2, 349-360.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = spinney.AdaBoostClassifier(n_estimators=100).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.94
    """

    algorithm: str = parameter(StrOptions(set(ALGORITHMS)), default="samme")
    _formula: ScoreFormula = field(init=False)
    _is_class_target = True
    predict_log_proba = table_estimator.predict_log_proba
    decision_function = table_estimator.decision_function
    staged_decision_function = table_estimator.staged_decision_function

    # ---- fitting -------------------------------------------------------------------------------------

    @property
    def _algorithm(self) -> str:
        return self.algorithm

    @property
    def _n_of_round(self) -> int:
        return self._formula.n_members

    def _make_rule(self, rows: LearningRows, target: SingleTarget) -> ScoresRule:
        formula = ScoreFormula(self.algorithm, len(target.labels))
        return make_rule(formula, rows.target.astype(np.intp), rows.weights(), float(self.learning_rate))

    def _set_classes(self, classes: NDArray[Any] | None) -> None:
        assert classes is not None
        self.classes_, self.n_classes_ = classes, len(classes)
        self._formula = ScoreFormula(self.algorithm, len(classes))

    def _held_out_loss(self, held: LearningRows, rule: Rule, target: SingleTarget) -> RoundLoss:
        assert isinstance(rule, ScoresRule)
        formula, added = rule.formula, rule.added
        scores = np.zeros((len(held.target), formula.n_scores))
        codes, weight = held.target.astype(np.intp), held.weights()
        score = None if self.scoring is None else HeldOutScore(self.scoring, _link(formula), held, [target.labels])

        def loss(predicted: list[NDArray[Any]], member_weight: float) -> float:
            scores[:] += added(predicted, member_weight)
            if score is not None:
                return score(scores)
            return float(weight[formula.codes(scores) != codes].sum() / weight.sum())

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedAdaBoost:
        return FittedAdaBoost(trees, weights, self._formula, schema.n_categories)

    def _advice_on_chance(self) -> str:
        if self.algorithm == "m1":
            return "With many classes use algorithm='samme', or members that learn more, such as deeper trees."
        return "Use members that learn more, such as deeper trees, or see whether X tells anything of y."

    # ---- using ---------------------------------------------------------------------------------------

    def _staged_scores(self, X: TableLike) -> Iterator[Floats]:
        scores: Any = 0.0
        for predicted, weight in self._by_round(X):
            scores = scores + np.hstack([self._formula.scores(values, weight) for values in predicted])
            yield scores

    def _scores(self, X: TableLike) -> Floats:
        """Scores of each row, (n_rows, n_scores)."""
        if self._has_trees:
            model = self._fitted
            assert isinstance(model, FittedAdaBoost)
            return self._by_blocks(X, lambda columns: model.scores(columns, self._n_threads))
        *_, scores = self._staged_scores(X)
        return scores

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Class with the largest score; of equal ones the first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_.take(self._formula.codes(self._scores(X))))

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities of each row, by the theory of the algorithm.

        For two classes 1 / (1 + exp(-2 f)) of the score f; for votes of several classes, in proportion to the
        exponential of each class's votes. They rest on the training rows, and are too sure of themselves where these
        are fitted closely.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return _link(self._formula).predicted(self._scores(X))

    def staged_predict(self, X: TableLike) -> Iterator[NDArray[Any]]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Labels.
        """
        for scores in self._staged_scores(X):
            yield np.asarray(self.classes_.take(self._formula.codes(scores)))

    def staged_predict_proba(self, X: TableLike) -> Iterator[Floats]:
        """Class probabilities of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        for scores in self._staged_scores(X):
            yield _link(self._formula).predicted(scores)

    def staged_score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[float]:
        """Accuracy after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Yields
        ------
        float
            Share of the rows that are given their own class.
        """
        for labels in self.staged_predict(X):
            yield float(accuracy_score(y, labels, sample_weight=sample_weight))

    def shap_values(self, X: TableLike, *, interactions: bool = False, background: TableLike = None) -> ShapValues:
        """Part each score among the columns: Shapley values by TreeSHAP. For members that are trees.

        Starting from the base value, each column adds its value; together they are the score that `decision_function`
        gives. Where a tree asks for a column that is not known yet, both ways are taken in proportion to the weight of
        the rows that the tree was grown on, which is another for each tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        interactions : bool, default=False
            Also compute what pairs of columns add together: n_features² numbers per row.
        background : table of shape (n_background, n_features), optional
            Rows that columns take their values from while they are not known (interventional values); the result is
            the mean over these rows, the base value their mean score. The time grows with their number: some
            hundred typical rows do. None: both ways by the weight of the rows, as above.

        Returns
        -------
        ShapValues
            Has `values`, `base_value` and, if asked for, `interactions`; with more than two classes, for each class.
        """
        from spinney.inspect.explain.shap import ShapValues, explain

        check_is_fitted(self)
        self._fitted  # noqa: B018
        two = len(self.classes_) == 2
        of = f"half the log-odds of {self.classes_[1]}" if two else "score of the class"
        explained = explain(self, read_table(X), interactions, background, of=of)
        assert isinstance(explained, ShapValues)
        return explained

    # ---- margins ---------------------------------------------------------------------------------------

    def staged_margins(self, X: TableLike, y: ArrayLike) -> Iterator[Floats]:
        """Margin of each row after each round: how far the vote for its own class is ahead of all others.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Yields
        ------
        ndarray of shape (n_samples,)
            Between -1 and 1 for the rows of the fit: the score of the row's own class less the largest of the others,
            over the most that the rounds could have made of it. Negative where the model is wrong.
        """
        check_is_fitted(self)
        reach = 0.0
        for t, scores in enumerate(self._staged_scores(X)):
            reach += float(self._reach[t])
            yield self._margins(scores, y) / (reach if reach > 0 else 1.0)

    def margins(self, X: TableLike, y: ArrayLike) -> Floats:
        """Margin of each row: how far the vote for its own class is ahead of all others.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        ndarray of shape (n_samples,)
            As the last of `staged_margins`.
        """
        check_is_fitted(self)
        reach = float(np.cumsum(self._reach)[-1])  # in the order of the rounds, as in `staged_margins`
        return self._margins(self._scores(X), y) / (reach if reach > 0 else 1.0)

    def _margins(self, scores: Floats, y: ArrayLike) -> Floats:
        codes = known_codes(y, self.classes_, len(scores)).astype(np.intp)
        if scores.shape[1] == 1:
            return 2.0 * (2.0 * codes - 1.0) * scores[:, 0]
        own = np.take_along_axis(scores, codes[:, np.newaxis], axis=1)[:, 0]
        others = scores.copy()
        np.put_along_axis(others, codes[:, np.newaxis], -np.inf, axis=1)
        return np.asarray(own - others.max(axis=1))

    def staged_weights(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[Floats]:
        """Weights of the training rows before each round, and after the last.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            The rows of the fit.

        Yields
        ------
        ndarray of shape (n_samples,)
            They add up to 1. Where each class has members of its own, (n_samples, n_classes).
        """
        check_is_fitted(self)
        codes = known_codes(y, self.classes_, len(np.asarray(y)))
        weight = read_weights(sample_weight, len(codes))
        rule = make_rule(
            self._formula,
            codes.astype(np.intp),
            np.ones(len(codes)) if weight is None else weight,
            float(self.learning_rate),
        )
        yield rule.weights
        for predicted, _ in self._by_round(X):
            rule.take(rule.judge(predicted))
            yield rule.weights


# ---- values ------------------------------------------------------------------------------------------------------


@estimator
class AdaBoostRegressor(RegressorMixin, BaseAdaBoost):
    """Regressors fitted one after the other, each looking at the rows that the earlier ones were far off.

    AdaBoost.R2. A member's error is the mean of the rows' losses, each as a share of the largest; the prediction is the
    median of the members' predictions by their weights. Members that take weights get them, where the original draws
    samples; ``resample=True`` does as the original.

    See Also
    --------
    GradientBoostingRegressor : Boosts any loss, and is usually more accurate.

    References
    ----------
    H. Drucker (1997). Improving regressors using boosting techniques. International Conference on Machine Learning,
    107-115.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spinney.AdaBoostRegressor(n_estimators=50).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 1)
    0.3
    """

    loss: str = parameter(StrOptions({"linear", "square", "exponential"}), default="linear")
    max_depth: int = parameter(default=3)

    def _make_rule(self, rows: LearningRows, target: SingleTarget) -> R2Rule:
        return R2Rule(rows.target, rows.weights(), self.loss, float(self.learning_rate))

    def _held_out_loss(self, held: LearningRows, rule: Rule, target: SingleTarget) -> RoundLoss:
        values: list[Floats] = []
        weights: list[float] = []
        used = held.weights() > 0
        y, weight = held.target[used], held.weights()[used]
        identity = FittedBoosting([], np.zeros(1), "identity", [], None)
        score = None if self.scoring is None else HeldOutScore(self.scoring, identity, held, None)

        def loss(predicted: list[NDArray[Any]], member_weight: float) -> float:
            values.append(predicted[0])
            weights.append(member_weight)
            median = weighted_medians(np.column_stack(values), np.array(weights))
            if score is not None:
                return score(median[:, np.newaxis])
            return float(np.average((median[used] - y) ** 2, weights=weight))

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedMedian:
        return FittedMedian(trees, weights)

    def _advice_on_chance(self) -> str:
        return "Use members that learn more, such as deeper trees, or loss='square'."

    def predict(self, X: TableLike) -> Floats:
        """Weighted median of the members' predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        check_is_fitted(self)
        if self._has_trees:
            model = self._fitted
            return self._by_blocks(X, lambda columns: model.predictions(columns, self._n_threads))[:, 0]
        values = np.column_stack([predicted[0] for predicted, _ in self._by_round(X)])
        return weighted_medians(values, self.estimator_weights_)

    def staged_predict(self, X: TableLike) -> Iterator[Floats]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Values.
        """
        values: list[Floats] = []
        for predicted, _ in self._by_round(X):
            values.append(predicted[0])
            yield weighted_medians(np.column_stack(values), self.estimator_weights_[: len(values)])

    def staged_score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[float]:
        """R² after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their values.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Yields
        ------
        float
            R².
        """
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))
