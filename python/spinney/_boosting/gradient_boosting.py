"""Gradient boosting for classification and regression."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import d2_pinball_score
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._boosting import intervals, new_data, sum_of_trees
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.loss import (
    NUMBER_LOSSES,
    TRAITS,
    TWO_CLASS_LOSSES,
    ClassLossName,
    CustomLoss,
    RegressionLossName,
)
from spinney._boosting.settings import FRACTION, BoostingSettings
from spinney._boosting.sum_of_trees import why_no_scores
from spinney._boosting.target import ClassificationTarget, RegressionTarget
from spinney._data.types import Floats, TableLike
from spinney._estimator import support
from spinney._estimator.estimator import only_if
from spinney._estimator.parameters import estimator, parameter
from spinney._model.links import cuts_of, is_of_ordered_classes
from spinney.inspect.explain.recursion import OF_BOOSTING, recursive_dependence


def _initial_estimator(model: BaseBoosting) -> Any:
    """Return the estimator of the initial scores: `init`, fitted, or scikit-learn's dummy estimator; or "zero"."""
    check_is_fitted(model)
    if not model._predicts_alone or model.init == "zero":
        return model.__dict__.get("init_", "zero")
    fitted, rows = model.boosting_, np.zeros((1, 1))
    start = np.asarray(fitted.predicted(fitted.start[np.newaxis]))
    if fitted.n_outputs > 1 and model._is_class_target:
        raise AttributeError(
            "init_ exists for one output only. With several outputs, the initial scores are in boosting_.start."
        )
    if model._is_class_target:
        labels = model.classes_
        return DummyClassifier().fit(np.repeat(rows, len(labels), axis=0), labels, sample_weight=start[0])
    return DummyRegressor(strategy="constant", constant=start[0]).fit(rows, start if start.shape[1] > 1 else start[0])


@recursive_dependence(OF_BOOSTING)
@estimator
class GradientBoostingClassifier(ClassifierMixin, BaseBoosting):
    """Gradient boosting for classification.

    Trees are added one by one; each is fitted to the gradient of the loss at the scores so far. With more than two
    classes a round has one tree per class. By default the model is the mean of several boosters, which are such
    sequences of trees; each holds out one fold of the rows to choose its number of rounds (see `n_estimators`). The
    model is bit-identical for any number of threads and any kind of table.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> model = spinney.GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.predict(X[:2])
    array(['Adelie', 'Adelie'], dtype=object)
    """

    loss: ClassLossName | CustomLoss = parameter(
        StrOptions({"log_loss", "ordinal", *TWO_CLASS_LOSSES}),
        HasMethods(["loss", "gradient"]),
        callable,
        default="log_loss",
        kw_only=False,
    )
    focal_gamma: float = parameter(Interval(Real, 0.0, 10.0, closed="both"), default=2.0)
    class_order: Any = parameter("array-like", None, default=None)
    leaves: Literal["single", "vector"] = parameter(StrOptions({"single", "vector"}), default="single")
    init: BaseEstimator | Literal["constant", "zero"] | None = parameter(
        StrOptions({"constant", "zero"}), None, HasMethods(["fit", "predict_proba"]), default="constant"
    )
    class_weight: dict[Any, float] | Literal["balanced"] | None = parameter(
        dict, StrOptions({"balanced"}), None, default=None
    )
    cost_matrix: Any = parameter("array-like", dict, None, default=None)
    priors: Any = parameter("array-like", dict, StrOptions({"uniform"}), None, default=None)

    init_ = property(_initial_estimator)
    _is_class_target = True
    _target_type = ClassificationTarget

    calibrate = intervals.calibrate
    predict_set = intervals.predict_set
    coverage_report = intervals.coverage_report
    importances = new_data.importances
    refit = new_data.refit
    predict_support = support.predict_support
    predict_or_abstain = support.predict_or_abstain

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def cuts_(self) -> Floats:
        """Ascending cuts of the score between ordered classes, (n_classes - 1,), with ``loss="ordinal"``."""
        check_is_fitted(self)
        if not is_of_ordered_classes(self.boosting_.link):
            raise AttributeError("cuts_ exists for ordered classes. Fit with loss='ordinal'.")
        return cuts_of(self.boosting_.link)

    def _score_names(self) -> list[str]:
        labels = self._labels
        assert labels is not None
        if len(labels) == 1:
            return [str(label) for label in labels[0]]
        return [
            f"output {k}, {label}"
            for k, of_output in enumerate(labels)
            for label in (of_output[1:] if len(of_output) == 2 else of_output)
        ]

    predict_proba = sum_of_trees.predict_proba
    predict_log_proba = sum_of_trees.predict_log_proba
    decision_function = sum_of_trees.decision_function

    @only_if(why_no_scores)
    def staged_decision_function(self, X: TableLike, *, offset: ArrayLike | None = None) -> Iterator[Floats]:
        """Scores of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the form of `decision_function`.
        """
        for scores in self._staged_scores(X, offset):
            yield scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_predict_proba(self, X: TableLike, *, offset: ArrayLike | None = None) -> Iterator[Floats]:
        """Class probabilities of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            In the form of `predict_proba`.
        """
        for scores in self._staged_scores(X, offset):
            yield self.boosting_.by_output(self.boosting_.predicted(scores))


@recursive_dependence(OF_BOOSTING)
@estimator
class GradientBoostingRegressor(RegressorMixin, BaseBoosting):
    """Gradient boosting for regression.

    Trees are added one by one; each is fitted to the gradient of the loss at the predictions so far. By default the
    model is the mean of several boosters, which are such sequences of trees; each holds out one fold of the rows to
    choose its number of rounds (see `n_estimators`). The model is bit-identical for any number of threads and any kind
    of table.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spinney.GradientBoostingRegressor(n_estimators=50).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    loss: RegressionLossName | CustomLoss = parameter(
        StrOptions(set(NUMBER_LOSSES)),
        HasMethods(["loss", "gradient"]),
        callable,
        default="squared_error",
        kw_only=False,
    )
    quantile: Any = parameter(FRACTION, "array-like", default=0.5)
    huber_share: float = parameter(FRACTION, default=0.9)
    tweedie_power: float = parameter(Interval(Real, 1.0, 2.0, closed="neither"), default=1.5)
    leaves: Literal["single", "vector"] = parameter(StrOptions({"single", "vector"}), default="single")
    init: BaseEstimator | Literal["constant", "zero"] | None = parameter(
        StrOptions({"constant", "zero"}), None, HasMethods(["fit", "predict"]), default="constant"
    )

    init_ = property(_initial_estimator)
    _target_type = RegressionTarget
    _other_names: ClassVar[dict[str, tuple[str, ...]]] = {"alpha": ("quantile", "huber_share")}

    calibrate = intervals.calibrate
    predict_interval = intervals.predict_interval
    coverage_report = intervals.coverage_report
    importances = new_data.importances
    refit = new_data.refit
    predict_distribution = intervals.predict_distribution
    predict_std = intervals.predict_std
    predict_quantiles = intervals.predict_quantiles
    predict_uncertainty = intervals.predict_uncertainty
    predict_support = support.predict_support
    predict_or_abstain = support.predict_or_abstain

    @property
    def alpha(self) -> Any:
        """`quantile` or `huber_share`, whichever the loss uses, by scikit-learn's name."""
        parameter = TRAITS[self.loss].parameter if isinstance(self.loss, str) and self.loss in TRAITS else None
        if parameter is None or parameter.name not in self._other_names["alpha"]:
            raise AttributeError("GradientBoostingRegressor.alpha is quantile or huber_share; this loss uses neither.")
        return getattr(self, parameter.name)

    @alpha.setter
    def alpha(self, value: float) -> None:
        self.set_params(alpha=value)

    @property
    def _levels(self) -> list[float] | None:
        """Quantiles, if there are several."""
        return BoostingSettings.of(self).levels

    def _score_names(self) -> list[str]:
        levels = self._levels
        return super()._score_names() if levels is None else [f"quantile {level:g}" for level in levels]

    def _explained_names(self) -> list[Any] | None:
        return self._levels or super()._explained_names()

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination: 1 at best, 0 for a constant prediction.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            R²; for several quantiles the mean of D², which uses pinball losses instead of squared errors.
        """
        levels = self._levels
        if levels is None:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        scores = [
            d2_pinball_score(y, predicted[:, k], sample_weight=sample_weight, alpha=level)
            for k, level in enumerate(levels)
        ]
        return float(np.mean(scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
