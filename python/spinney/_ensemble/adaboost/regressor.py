"""AdaBoost of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.metrics import get_scorer, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data import Schema
from spinney._data.select import pick_table
from spinney._ensemble.adaboost.adaboost import BaseAdaBoost, Say
from spinney._ensemble.adaboost.rules import R2Rule
from spinney._ensemble.weak import WeakLearner
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_value
from spinney._model.adaboost import FittedMedian, weighted_medians
from spinney._tree.regressor import DecisionTreeRegressor

Floats = NDArray[np.float64]


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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseAdaBoost._parameter_constraints,
        "loss": [StrOptions({"linear", "square", "exponential"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 50,
        *,
        loss: str = "linear",
        learning_rate: float = 1.0,
        max_depth: int = 3,
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

    def _default_estimator(self) -> Any:
        return DecisionTreeRegressor(max_depth=self.max_depth)

    def _check_member(self, template: Any) -> None:
        if is_classifier(template):
            raise ValueError(f"AdaBoost of numbers needs regressors, and {type(template).__name__} is a classifier.")

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return read_one_value(y, n_rows, "AdaBoost"), {}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any]) -> Floats:
        return read_one_value(y, n_rows, "AdaBoost", "y_val")

    def _make_rule(self, rows: LearningRows, learned: dict[str, Any]) -> R2Rule:
        return R2Rule(rows.target, rows.weights(), self.loss, float(self.learning_rate))

    def _of_rule(self, rule: R2Rule) -> dict[str, Any]:
        return {}

    def _known_rule(self, learned: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _members_of_round(self, learned: dict[str, Any]) -> int:
        return 1

    def _member_classes(self, learned: dict[str, Any]) -> NDArray[Any] | None:
        return None

    def _say(self, learner: WeakLearner) -> Say:
        return learner.values

    def _held_out_loss(
        self, held: LearningRows, rule: R2Rule, learned: dict[str, Any]
    ) -> Callable[[list[NDArray[Any]], float], float]:
        values: list[Floats] = []
        weights: list[float] = []
        used = held.weights() > 0
        y, weight = held.target[used], held.weights()[used]
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        X = pick_table(held.given).take(np.flatnonzero(used)) if callable(self.scoring) else np.arange(len(y))

        def loss(said: list[NDArray[Any]], member_weight: float) -> float:
            values.append(said[0][used])
            weights.append(member_weight)
            predicted = weighted_medians(np.column_stack(values), np.array(weights))
            if scorer is None:
                return float(np.average((predicted - y) ** 2, weights=weight))
            weighted = {} if (weight == weight[0]).all() else {"sample_weight": weight}
            return -float(scorer(_HeldOutValues(predicted), X, y, **weighted))

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, rule: R2Rule, schema: Schema) -> FittedMedian:
        return FittedMedian(trees, weights)

    def _advice_on_chance(self) -> str:
        return "Use members that learn more, such as deeper trees, or loss='square'."

    # ---- using ---------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Floats:
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
            model: Any = self._fitted
            return self._by_blocks(X, lambda columns: model.predictions(columns, self._n_threads))[:, 0]
        return weighted_medians(np.column_stack([said[0] for said, _ in self._by_round(X)]), self.estimator_weights_)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
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
        for said, _ in self._by_round(X):
            values.append(said[0])
            yield weighted_medians(np.column_stack(values), self.estimator_weights_[: len(values)])

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
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


class _HeldOutValues(RegressorMixin, BaseEstimator):
    """Looks to a scorer like a fitted regressor; the predictions of the held-out rows are known."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def predict(self, X: Any) -> Floats:
        """Return the values of the held-out rows."""
        if _num_samples(X) != len(self.values):
            raise ValueError(
                "scoring asks for predictions of other rows than those held out. Predict the rows that it is given, "
                "as a whole."
            )
        return self.values
