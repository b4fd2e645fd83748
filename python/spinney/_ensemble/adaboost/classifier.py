"""AdaBoost of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, is_classifier, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.evaluation import HeldOutScore
from spinney._boosting.learning_rows import LearningRows
from spinney._data import Schema, read_table
from spinney._data.numeric.reproducible import log
from spinney._ensemble.adaboost.adaboost import BaseAdaBoost, Say
from spinney._ensemble.adaboost.margins import HasMargins
from spinney._ensemble.adaboost.rules import ScoresRule, make_rule
from spinney._ensemble.weak import WeakLearner
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import known_codes, read_one_class
from spinney._model.adaboost import ALGORITHMS, VOTES, FittedAdaBoost, Sayings
from spinney._model.boosting import FittedBoosting
from spinney._model.saving.model_part import FittedPart
from spinney._tree.classifier import DecisionTreeClassifier
from spinney._tree.regressor import DecisionTreeRegressor

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues

Floats = NDArray[np.float64]


class AdaBoostClassifier(HasMargins, ClassifierMixin, BaseAdaBoost):
    """Weak classifiers fitted one after the other, each looking at what the earlier ones got wrong.

    Rows that a member gets wrong weigh more for the next one, and members vote with a weight that follows from their
    error. By default members are stumps, trees of one split, of which spinney fits hundreds a second; any estimator
    will do that takes weights, and one that does not is fitted to rows drawn by their weights.

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

    _is_class_target = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseAdaBoost._parameter_constraints,
        "algorithm": [StrOptions(set(ALGORITHMS))],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 50,
        *,
        algorithm: str = "samme",
        learning_rate: float = 1.0,
        max_depth: int = 1,
        resample: bool = False,
        early_stopping: bool = False,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    # ---- fitting -------------------------------------------------------------------------------------

    @property
    def _fits_values(self) -> bool:
        return self.algorithm in ("gentle", "logit")

    def _default_estimator(self) -> Any:
        kind = DecisionTreeRegressor if self._fits_values else DecisionTreeClassifier
        return kind(max_depth=self.max_depth)

    def _check_member(self, template: Any) -> None:
        name = type(template).__name__
        if self._fits_values and is_classifier(template):
            raise ValueError(f"algorithm={self.algorithm!r} fits values, and {name} is a classifier. Pass a regressor.")
        if not self._fits_values and is_regressor(template):
            raise ValueError(
                f"algorithm={self.algorithm!r} needs classifiers, and {name} is a regressor. Pass a classifier, or "
                "algorithm='gentle' or 'logit'."
            )
        if self.algorithm == "real" and not hasattr(template, "predict_proba"):
            raise ValueError(f"algorithm='real' needs probabilities, and {name} has no predict_proba. Use 'samme'.")

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "AdaBoost")
        return codes, {"classes_": classes, "n_classes_": len(classes)}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y_val") -> Floats:
        return known_codes(y, learned["classes_"], n_rows, name)

    def _make_rule(self, rows: LearningRows, learned: dict[str, Any]) -> ScoresRule:
        weight, codes = rows.weights(), rows.target.astype(np.intp)
        sayings = Sayings(self.algorithm, len(learned["classes_"]))
        return make_rule(sayings, codes, weight, float(self.learning_rate))

    def _of_rule(self, rule: ScoresRule) -> dict[str, Any]:
        return {"_sayings": rule.sayings}

    def _known_rule(self, learned: dict[str, Any]) -> dict[str, Any]:
        return {"_sayings": Sayings(self.algorithm, len(learned["classes_"]))}

    def _members_of_round(self, learned: dict[str, Any]) -> int:
        return int(learned["_sayings"].n_members)

    def _member_classes(self, learned: dict[str, Any]) -> NDArray[Any] | None:
        if self._fits_values:
            return None
        return np.asarray(learned["classes_"])

    def _say(self, learner: WeakLearner) -> Say:
        return learner.codes if self.algorithm in VOTES else learner.values

    def _held_out_loss(
        self, held: LearningRows, rule: ScoresRule, learned: dict[str, Any]
    ) -> Callable[[list[NDArray[Any]], float], float]:
        scores = np.zeros((len(held.target), rule.sayings.n_scores))
        codes, weight = held.target.astype(np.intp), held.weights()
        classes = [np.asarray(learned["classes_"])]
        judge = None if self.scoring is None else HeldOutScore(self.scoring, _link(rule.sayings), held, classes)

        def loss(said: list[NDArray[Any]], member_weight: float) -> float:
            scores[:] += rule.added(said, member_weight)
            if judge is not None:
                return judge(scores)
            return float(weight[rule.sayings.codes(scores) != codes].sum() / weight.sum())

        return loss

    def _fitted_of(
        self, trees: list[_engine.Tree], weights: Floats, rule: ScoresRule, schema: Schema
    ) -> FittedAdaBoost:
        return FittedAdaBoost(trees, weights, rule.sayings, schema.n_categories)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        assert isinstance(part.model, FittedAdaBoost)
        return super()._from_header(header, part) | {"_sayings": part.model.sayings}

    def _advice_on_chance(self) -> str:
        if self.algorithm == "m1":
            return "With many classes use algorithm='samme', or members that learn more, such as deeper trees."
        return "Use members that learn more, such as deeper trees, or see whether X tells anything of y."

    # ---- using ---------------------------------------------------------------------------------------

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        return view.labels(view.score_codes(scores), [np.asarray(learned["classes_"])])

    def _staged_scores(self, X: Any) -> Iterator[Floats]:
        scores: Any = 0.0
        for said, weight in self._by_round(X):
            scores = scores + np.hstack([self._sayings.scores(values, weight) for values in said])
            yield scores

    def _scores(self, X: Any) -> Floats:
        """Scores of each row, (n_rows, n_scores)."""
        if self._has_trees:
            model: Any = self._fitted
            return self._by_blocks(X, lambda columns: model.scores(columns, self._n_threads))
        *_, scores = self._staged_scores(X)
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
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
        return np.asarray(self.classes_.take(self._sayings.codes(self._scores(X))))

    def predict_proba(self, X: Any) -> Floats:
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
        return _link(self._sayings).predicted(self._scores(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Minus infinity where the probability is 0.
        """
        with np.errstate(divide="ignore"):
            return log(self.predict_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Scores of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes f = Σ α / 2 · h, positive for the second: half its log-odds. For more, a number per class:
            the sum of the weights of the members that vote for it (``"m1"``, ``"samme"``), or its logarithmic score.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Scores of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            As `decision_function`.
        """
        for scores in self._staged_scores(X):
            yield scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
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
            yield np.asarray(self.classes_.take(self._sayings.codes(scores)))

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
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
            yield _link(self._sayings).predicted(scores)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
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

    # ---- Shapley values ------------------------------------------------------------------------------

    def shap_values(self, X: Any, *, interactions: bool = False, background: Any = None) -> ShapValues:
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


def _link(sayings: Sayings) -> FittedBoosting:
    """Return a sum of no trees, which knows how scores become class shares."""
    return FittedBoosting([], np.zeros(sayings.n_scores), sayings.link, [], [sayings.n_classes])
