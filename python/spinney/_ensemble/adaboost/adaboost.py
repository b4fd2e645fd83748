"""AdaBoost for classification and regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

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
from spinney._data.types import Floats, TableLike
from spinney._ensemble.adaboost.base import BaseAdaBoost
from spinney._ensemble.adaboost.rules import R2Rule, RoundLoss, Rule, ScoresRule, make_rule
from spinney._estimator import table_estimator
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.rate_search import chosen_rate
from spinney._estimator.target import SingleTarget, known_codes, read_weights
from spinney._model.adaboost import (
    ALGORITHMS,
    VOTES,
    FittedAdaBoost,
    FittedMedian,
    ScoreFormula,
    total_weight,
    weighted_medians,
)
from spinney._model.boosting import FittedBoosting

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues

# ---- classification ----------------------------------------------------------------------------------------------


def _link(formula: ScoreFormula) -> FittedBoosting:
    """Return a boosted model without trees, whose link turns scores into class probabilities."""
    return FittedBoosting([], np.zeros(formula.n_scores), formula.link, [], [formula.n_classes])


@estimator
class AdaBoostClassifier(ClassifierMixin, BaseAdaBoost):
    """AdaBoost: classifiers fitted one after the other, with larger weights on rows that earlier ones misclassified.

    The weight of a member's vote depends on its error. By default members are stumps, which are trees of one split. Any
    estimator may be a member. A member whose `fit` takes no weights is fitted to rows drawn in proportion to their
    weights.

    With ``algorithm="m1"`` and ``"samme"`` the members vote, and `decision_function` has scikit-learn's scale. The
    score of a class is the total weight of the members that vote for it, minus the total weight of the others divided
    by ``n_classes - 1``, both as fractions of the sum of all weights. With two classes, `decision_function` is the
    score of the second minus that of the first, from -2 to 2. With the other algorithms it is half the log-odds of the
    second of two classes, or one logarithmic score per class.

    See Also
    --------
    GradientBoostingClassifier : Gradient boosting for many losses; ``loss="exponential"`` is that of AdaBoost.

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
    0.95
    """

    algorithm: Literal["samme", "m1", "real", "gentle", "logit"] = parameter(
        StrOptions(set(ALGORITHMS)), default="samme"
    )
    n_iter_no_change: int = parameter(default=50)
    _formula: ScoreFormula = field(init=False)
    _is_class_target = True
    predict_log_proba = table_estimator.predict_log_proba

    # ---- fitting -------------------------------------------------------------------------------------

    @property
    def _algorithm(self) -> str:
        return self.algorithm

    @property
    def _n_of_round(self) -> int:
        return self._formula.n_members

    def _make_rule(self, rows: LearningRows, target: SingleTarget) -> ScoresRule:
        formula = ScoreFormula(self.algorithm, len(target.labels))
        return make_rule(formula, rows.target.astype(np.intp), rows.weights(), chosen_rate(self))

    def _set_classes(self, classes: NDArray[Any] | None) -> None:
        assert classes is not None
        self.classes_, self.n_classes_ = classes, len(classes)
        self._formula = ScoreFormula(self.algorithm, len(classes))

    def _validation_loss(self, validation: LearningRows, rule: Rule, target: SingleTarget) -> RoundLoss:
        held_out = self._make_rule(validation, target)
        score = self.scoring and HeldOutScore(self.scoring, _link(held_out.formula), validation, [target.labels])
        mean_loss = held_out.first_loss

        def loss(predicted: list[NDArray[Any]], member_weight: float) -> tuple[float, float]:
            nonlocal mean_loss
            mean_loss *= held_out.factor(predicted, member_weight)
            held_out.update(predicted, member_weight)
            if score:
                metric = score(held_out.scores)
                return metric, metric
            return mean_loss, held_out.training_error

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedAdaBoost:
        return FittedAdaBoost(trees, weights, self._formula, schema.n_categories)

    def _advice_on_chance(self) -> str:
        if self.algorithm == "m1":
            return "With many classes use algorithm='samme', or stronger members, such as deeper trees."
        return "Use stronger members, such as deeper trees, and check whether y depends on X at all."

    # ---- predicting ----------------------------------------------------------------------------------

    def _staged_scores(self, X: TableLike) -> Iterator[Floats]:
        scores: Any = 0.0
        for predicted, weight in self._by_round(X):
            scores = scores + np.hstack([self._formula.scores(values, weight) for values in predicted])
            yield scores

    def _scores(self, X: TableLike) -> Floats:
        """Return the scores of each row, (n_rows, n_scores)."""
        if self._has_trees:
            model = self._fitted
            assert isinstance(model, FittedAdaBoost)
            return self._by_blocks(X, lambda columns: model.scores(columns, self._n_threads))
        *_, scores = self._staged_scores(X)
        return scores

    def decision_function(self, X: TableLike) -> Floats:
        """Scores of each row: one number if there are two classes, otherwise one number per class.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes: positive for the second class. With more: one score per class, the largest for the
            predicted class. Votes are divided by the sum of the members' weights, as in scikit-learn.
        """
        check_is_fitted(self)
        return self._decisions(self._scores(X), total_weight(self.estimator_weights_))

    def staged_decision_function(self, X: TableLike) -> Iterator[Floats]:
        """Scores of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the form of `decision_function`.
        """
        check_is_fitted(self)
        for scores, weight in zip(self._staged_scores(X), np.cumsum(self.estimator_weights_), strict=True):
            yield self._decisions(scores, float(weight))

    def _decisions(self, scores: Floats, weight: float) -> Floats:
        factor, constant = self._formula.decision_scale(weight)
        decisions = factor * scores + constant
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the class with the largest score; of classes with equal scores, the first.

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
        """Class probabilities of each row, by the link of the algorithm.

        With two classes, the probability of the second is 1 / (1 + exp(-2 f)), where f is half its log-odds. If members
        vote, f is half the total weight of the members that vote for the second class minus half that for the first. If
        members vote on more than two classes, the probability of a class is proportional to the exponential of the
        total weight of the members that vote for it. Probabilities are overconfident where the training rows are fitted
        closely.

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
            In the form of `predict_proba`.
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
            Accuracy of the rounds so far.
        """
        for labels in self.staged_predict(X):
            yield float(accuracy_score(y, labels, sample_weight=sample_weight))

    def shap_values(self, X: TableLike, *, interactions: bool = False, background: TableLike = None) -> ShapValues:
        """Shapley values of the columns for each score, by TreeSHAP; only for members that are trees.

        The base value plus the values of all columns is the score that `decision_function` returns. Where the column of
        a split counts as unknown, both branches are followed, weighted by that tree's training rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        interactions : bool, default=False
            Also compute interaction values of pairs of columns: n_features² numbers per row.
        background : table of shape (n_background, n_features), optional
            Rows that supply the values of unknown columns (interventional Shapley values); the base value is their mean
            score. The time grows with their number; a few hundred typical rows suffice. None: both branches are
            followed, as described above (path-dependent values).

        Returns
        -------
        ShapValues
            With `values`, `base_value` and, if requested, `interactions`; with more than two classes, for each class.

        See Also
        --------
        TreeExplainer : The same values with the interface of ``shap.TreeExplainer``.
        """
        from spinney.inspect.explain.shap import ShapValues, explain

        check_is_fitted(self)
        self._fitted  # noqa: B018
        two = len(self.classes_) == 2
        first = "decision function" if self.algorithm in VOTES else "half the log-odds"
        of = f"{first} of {self.classes_[1]}" if two else "score of the class"
        explained = explain(self, read_table(X), interactions, background, of=of)
        assert isinstance(explained, ShapValues)
        return explained

    # ---- margins ---------------------------------------------------------------------------------------

    def staged_margins(self, X: TableLike, y: ArrayLike) -> Iterator[Floats]:
        """Margin of each row after each round: the score of its class less the largest score of another class.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Yields
        ------
        ndarray of shape (n_samples,)
            Margins, negative for misclassified rows. They are divided by the largest margin that the rounds so far can
            give, so that the margins of the training rows lie between -1 and 1.
        """
        check_is_fitted(self)
        reach = 0.0
        for t, scores in enumerate(self._staged_scores(X)):
            reach += float(self._reach[t])
            yield self._margins(scores, y) / (reach if reach > 0 else 1.0)

    def margins(self, X: TableLike, y: ArrayLike) -> Floats:
        """Margin of each row: the score of its class less the largest score of another class.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        ndarray of shape (n_samples,)
            The margins that `staged_margins` yields after the last round.
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
            The training rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Weights, which add up to 1. The shape is (n_samples, n_classes) where a round has one member per class.
        """
        check_is_fitted(self)
        codes = known_codes(y, self.classes_, len(np.asarray(y)))
        weight = read_weights(sample_weight, len(codes))
        rule = make_rule(
            self._formula,
            codes.astype(np.intp),
            np.ones(len(codes)) if weight is None else weight,
            chosen_rate(self),
        )
        yield rule.weights
        for predicted, _ in self._by_round(X):
            rule.update(predicted, rule.evaluate(predicted).weight)
            yield rule.weights


# ---- regression --------------------------------------------------------------------------------------------------


@estimator
class AdaBoostRegressor(RegressorMixin, BaseAdaBoost):
    """AdaBoost.R2: regressors fitted one after the other, with larger weights on rows with large errors.

    The error of a member is its mean loss relative to the largest loss of a row; the prediction is the weighted median
    of the members' predictions. Members that take weights are fitted with weights; with ``resample=True``, they are
    fitted to samples, as in the original algorithm. The model has no Shapley values, because a median is not a sum of
    contributions of columns.

    See Also
    --------
    GradientBoostingRegressor : Gradient boosting for many losses, usually more accurate.

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

    loss: Literal["linear", "square", "exponential"] = parameter(
        StrOptions({"linear", "square", "exponential"}), default="linear"
    )
    max_depth: int = parameter(default=3)

    def _make_rule(self, rows: LearningRows, target: SingleTarget) -> R2Rule:
        return R2Rule(rows.target, rows.weights(), self.loss, chosen_rate(self))

    def _validation_loss(self, validation: LearningRows, rule: Rule, target: SingleTarget) -> RoundLoss:
        values: list[Floats] = []
        weights: list[float] = []
        used = validation.weights() > 0
        y, weight = validation.target[used], validation.weights()[used]
        identity = FittedBoosting([], np.zeros(1), "identity", [], None)
        score = self.scoring and HeldOutScore(self.scoring, identity, validation, None)

        def loss(predicted: list[NDArray[Any]], member_weight: float) -> tuple[float, float]:
            values.append(predicted[0])
            weights.append(member_weight)
            median = weighted_medians(np.column_stack(values), np.array(weights))
            error = float(np.average((median[used] - y) ** 2, weights=weight))
            found = score(median[:, np.newaxis]) if score else error
            return found, found

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedMedian:
        return FittedMedian(trees, weights)

    def _advice_on_chance(self) -> str:
        return "Use stronger members, such as deeper trees, or loss='square'."

    def predict(self, X: TableLike) -> Floats:
        """Predict the weighted median of the members' predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted values.
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
            Predicted values.
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
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Yields
        ------
        float
            R².
        """
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))
