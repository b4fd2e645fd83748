"""Random survival forests and extra survival trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field as fitted_attribute
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.held_out import KnownValues
from spinney._estimator.leaf_curves import LeafCurves
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.survival_times import read_events
from spinney._estimator.target import read_weights
from spinney._forest.forest import BaseForest
from spinney._forest.samples import Metric, OutOfBag
from spinney._model.forest import FittedForest
from spinney._model.saving.saved_model import SavedModel
from spinney._tree import growing
from spinney._tree import survival_predictions as predictions
from spinney._tree.survival import (
    Survival,
    SurvivalTree,
    array_concordance,
    deviance,
    entered,
)
from spinney._tree.tree_estimator import BaseTree


class SurvivalOutOfBag(OutOfBag):
    """Out-of-bag predictions of a survival forest, evaluated by concordance."""

    def error(self, forest: FittedForest) -> float:
        """Return 1 minus the concordance."""
        return 1.0 - self.score(forest, None)

    def smooth_error(self, forest: FittedForest) -> float:
        """Return the mean deviance of the relative hazards."""
        rows = self.rows
        return self._average(deviance(self.means(rows), self.target[rows]), rows)

    def score(self, forest: FittedForest, metric: Metric) -> float:
        """Return the concordance."""
        if metric is not None:
            raise ValueError("The out-of-bag score of a survival forest is the concordance. Set oob_score=True.")
        rows = self.rows
        weight = None if self.weight is None else self.weight[rows]
        return array_concordance(self.target[rows], self.means(rows), weight) if len(rows) else float("nan")


class KnownRisks(KnownValues):
    """A fitted survival model with known predictions, scored by concordance; X is row numbers."""

    def __init__(self, values: Any, causes: NDArray[Any]) -> None:
        super().__init__(values)
        self.causes_ = causes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the concordance of rows."""
        risk = self.predict(X).reshape(-1, len(self.causes_))
        events = read_events(y, len(risk), causes=self.causes_)
        weight = read_weights(sample_weight, len(risk))
        return predictions.mean_concordance(events.time, events.cause, risk, weight)


@estimator
class SurvivalForest(BaseForest):
    """A forest for survival analysis."""

    criterion: Literal["log_rank"] = parameter(StrOptions({"log_rank"}), default="log_rank")
    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(default="sqrt")
    min_samples_leaf: int | float = parameter(default=10)
    oob_score: bool = parameter("boolean", default=False)
    shrinkage: float | None = parameter(growing.AT_LEAST_0, None, default=None)

    _task_class = Survival
    _tree_class = SurvivalTree
    _out_of_bag_class = SurvivalOutOfBag
    _oob_name = "oob_prediction_"
    _predicted_quantity = predictions.PREDICTED_QUANTITY
    _missing_attribute_reasons: ClassVar[dict[str, str]] = {
        "predict_proba": "is for classes. Use predict_survival_function.",
        "predict_quantiles": "is for numeric targets. Use predict_quantile, or predict_survival_function.",
        "predict_interval": "is for numeric targets. Use predict_quantile twice.",
    }

    leaf_curves_: LeafCurves = fitted_attribute(init=False)
    event_times_: Floats = fitted_attribute(init=False)
    causes_: NDArray[Any] = fitted_attribute(init=False)
    n_outputs_: int = fitted_attribute(init=False)
    predict_survival_function = predictions.predict_survival_function
    predict_cumulative_hazard = predictions.predict_cumulative_hazard
    predict_cumulative_incidence = predictions.predict_cumulative_incidence
    predict_quantile = predictions.predict_quantile
    predict_median = predictions.predict_median
    score = predictions.score

    def _to_header(self) -> dict[str, Any]:
        return super()._to_header() | predictions.curves_to_header(self)

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        return super()._from_header(header, saved) | predictions.curves_of_saved(header, saved)

    def __sklearn_tags__(self) -> Any:
        return predictions.survival_tags(super().__sklearn_tags__())

    def fit(
        self,
        X: TableLike,
        y: ColumnLike,
        sample_weight: ColumnLike = None,
        *,
        entry: ColumnLike = None,
        groups: ColumnLike = None,
    ) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values are supported.
        y : array-like of shape (n_samples,), structured array, or data frame of two columns
            Times, negative where the row is censored; or times and events.
        sample_weight : array-like of shape (n_samples,), optional
            Relative weights: a row of twice the weight counts twice, and a weight of 0 leaves the row out. If all
            weights are whole multiples of the smallest, samples are drawn as if rows were repeated. Otherwise, and if
            there are groups, rows are drawn regardless of their weights, and the number of times that a row is drawn is
            multiplied by its weight.
        entry : array-like of shape (n_samples,), optional
            Left truncation: the time from which each row was observed. A row is at risk only after it. None: from 0.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are drawn together, or left out of a sample together.

        Returns
        -------
        self
            The fitted estimator.
        """
        return super().fit(X, entered(y, entry, sample_weight), sample_weight, groups=groups)

    def _out_of_bag(self, X: TableLike, y: ColumnLike, sample_weight: ColumnLike) -> OutOfBag:
        return super()._out_of_bag(X, entered(y, None, sample_weight), sample_weight)

    def _out_of_bag_predictor(
        self, X: TableLike, y: ColumnLike, weight: Floats | None
    ) -> tuple[NDArray[np.intp], Callable[[TableLike], KnownRisks]]:
        rows, predict = super()._out_of_bag_predictor(X, y, weight)
        return rows, lambda changed: KnownRisks(predict(changed).predict(slice(None)), self.causes_)

    def _tree_estimator(self, t: int) -> BaseTree:
        tree = super()._tree_estimator(t)
        root = self.forest_.root
        curves = self.leaf_curves_.of_tree(int(root[t]), int(root[t + 1]))
        tree.__dict__.update(leaf_curves_=curves, event_times_=self.event_times_, causes_=self.causes_)
        return tree


@estimator
class RandomSurvivalForest(SurvivalForest):
    """A random forest for survival analysis: log-rank trees on bootstrap samples, with random columns at each node.

    The target `y` is one number per row: the time of the event, or minus the last time at which it had not happened yet
    (censored). Or it has two columns, as a structured array or a data frame: the time, and an event, which is True or
    False, or the cause of the event, a positive integer or text, and 0 or missing where the row is censored.

    `predict` returns the mean over the trees of the relative hazard of the leaf. The model is bit-identical for any
    number of threads and any kind of table.

    See Also
    --------
    ExtraSurvivalTrees : Draws split thresholds at random, and fits every tree to all rows.
    SurvivalTree : A single tree.
    GradientBoostingSurvival : Boosting of proportional hazards or of accelerated failure times.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.arange(60.0).reshape(30, 2) % 7
    >>> times = np.where(np.arange(30) % 5 == 0, -1, 1) * (1 + X[:, 0])  # every fifth is censored
    >>> forest = spinney.RandomSurvivalForest(n_estimators=20, random_state=0).fit(X, times)
    >>> forest.predict_survival_function(X[:3], times=[2.0, 5.0]).shape
    (3, 2)
    """

    bootstrap: bool = parameter(default=True)


@estimator
class ExtraSurvivalTrees(SurvivalForest):
    """Extremely randomised trees for survival analysis: a survival forest whose split thresholds are drawn at random.

    The target `y` is one number per row: the time of the event, or minus the last time at which it had not happened yet
    (censored). Or it has two columns, as a structured array or a data frame: the time, and an event, which is True or
    False, or the cause of the event, a positive integer or text, and 0 or missing where the row is censored.

    See Also
    --------
    RandomSurvivalForest : Uses the best split of the considered columns, and bootstrap samples.
    SurvivalTree : A single tree; with ``splitter="random"`` it draws thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.arange(60.0).reshape(30, 2) % 7
    >>> times = np.where(np.arange(30) % 5 == 0, -1, 1) * (1 + X[:, 0])  # every fifth is censored
    >>> forest = spinney.ExtraSurvivalTrees(n_estimators=20, random_state=0).fit(X, times)
    >>> forest.predict_survival_function(X[:3], times=[2.0, 5.0]).shape
    (3, 2)
    """

    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(default=1.0)

    _splitter = "random"
