"""Survival trees: the log-rank criterion, relative hazards and curves of leaves, predictions from these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as fitted_attribute
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

import spinney._engine as _engine
from spinney._data.reproducible import log, sums_by_code
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.costs import ClassCosts
from spinney._estimator.held_out import Loss
from spinney._estimator.leaf_curves import LeafCurves
from spinney._estimator.parameters import estimator, parameter
from spinney._estimator.rows import integer_weights, relative_weights
from spinney._estimator.survival_times import EnteredTimes, Events, read_events
from spinney._estimator.target import read_weights
from spinney._estimator.user_criterion import UserTarget
from spinney._model.forest import FittedForest
from spinney._model.model import ModelOfTrees
from spinney._model.saving.saved_model import SavedModel
from spinney._model.tree import FittedTree
from spinney._tree import survival_predictions as predictions
from spinney._tree.task import Target, Task
from spinney._tree.tree_estimator import BaseTree
from spinney.inspect.draw.survival import draw_leaf_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RANK, _ENTRY, _CAUSE, _EXPECTED = 0, 1, 2, 3  # columns of a target's array; the last is the first of the causes


@dataclass(frozen=True, kw_only=True)
class SurvivalTarget(Target):
    """Times and causes, as `array`.

    Its columns are the numbers of event times up to the time and up to the entry of a row; its cause, 0 if censored;
    and for each cause the events expected of the row by the hazard of all training rows.

    Attributes
    ----------
    times : ndarray
        Event times of the training rows.
    hazard : ndarray of shape (n_times + 1, n_causes)
        Cumulative hazard of the training rows, by number of event times.
    causes : ndarray
        Labels.
    """

    times: Floats
    hazard: Floats
    causes: NDArray[Any]

    @property
    def n_outputs(self) -> int:
        """Number of causes."""
        return len(self.causes)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that describe its target."""
        return {"n_outputs_": self.n_outputs, "event_times_": self.times, "causes_": self.causes}

    @classmethod
    def of(cls, events: Events, weight: Floats | None) -> Self:
        """Return the target of training rows."""
        used = np.ones(len(events.time)) if weight is None else weight
        times = np.unique(events.time[(events.cause > 0) & (used > 0)])
        if not len(times):
            raise ValueError("No event has happened in a row of positive weight: there is nothing to learn.")
        ranks = _ranks(events, times)
        hazard = _hazard(ranks, used, len(times), len(events.causes))
        return cls(_with_expected(ranks, hazard), times=times, hazard=hazard, causes=events.causes)

    def array_of(self, events: Events) -> Floats:
        """Return the times of other rows as `array`."""
        return _with_expected(_ranks(events, self.times), self.hazard)


def _ranks(events: Events, times: Floats) -> NDArray[np.int64]:
    rank = np.searchsorted(times, events.time, side="right")
    entry = np.zeros_like(rank) if events.entry is None else np.searchsorted(times, events.entry, side="right")
    return np.column_stack([rank, entry, events.cause]).astype(np.int64)


def _hazard(ranks: NDArray[np.int64], weight: Floats, n_times: int, n_causes: int) -> Floats:
    """Return the cumulative hazard by number of event times and cause (Nelson and Aalen)."""
    m = n_times + 1
    leaving, entering = (_sums(ranks[:, column], weight, m) for column in (_RANK, _ENTRY))
    at_risk = np.cumsum(entering)[:-1] - np.cumsum(leaving)[:-1]  # at each event time
    events = [_sums(ranks[:, _RANK], np.where(ranks[:, _CAUSE] == j + 1, weight, 0.0), m)[1:] for j in range(n_causes)]
    steps = np.column_stack(events) / np.maximum(at_risk, np.sum(events, axis=0))[:, np.newaxis]
    return np.concatenate([np.zeros((1, n_causes)), np.cumsum(steps, axis=0)])


def _sums(codes: NDArray[np.int64], weight: Floats, n: int) -> Floats:
    if integer_weights(weight) is not None:
        return np.asarray(np.bincount(codes, weights=weight, minlength=n))
    return sums_by_code(codes, weight, n)


def _with_expected(ranks: NDArray[np.int64], hazard: Floats) -> Floats:
    expected = hazard[ranks[:, _RANK]] - hazard[ranks[:, _ENTRY]]
    return np.column_stack([ranks.astype(np.float64), expected])


class Survival(Task):
    """Trees for times until events."""

    def read(self, y: ColumnLike, n_rows: int) -> SurvivalTarget:
        settings = self.settings
        if settings.missing_fallback != "majority":
            raise ValueError(
                f"missing_fallback={settings.missing_fallback!r} lets rows stay at splits, which have no curves. Use "
                "'majority'."
            )
        weight = read_weights(y.weight, n_rows) if isinstance(y, EnteredTimes) else None
        return SurvivalTarget.of(read_events(y, n_rows), relative_weights(weight)[0])

    def weights(self, target: Target, y: ColumnLike, weight: Floats | None) -> Floats | None:
        return relative_weights(weight)[0]

    def held_out(self, target: Target, y: ColumnLike, n_rows: int) -> NDArray[Any]:
        assert isinstance(target, SurvivalTarget)
        return target.array_of(read_events(y, n_rows, "y_val", target.causes))

    def prepare(self, array: NDArray[Any], weight: Floats | None, n_classes: list[int]) -> UserTarget:
        ranks, n_causes = np.ascontiguousarray(array[:, :_EXPECTED]), array.shape[1] - _EXPECTED
        used = np.ones(len(array)) if weight is None else weight
        n_times = int(ranks[:, _RANK].max())
        hazard = _hazard(ranks.astype(np.int64), used, n_times, n_causes)
        counts = weight is None or bool((weight == np.floor(weight)).all())
        return UserTarget(_engine.log_rank_criterion(hazard, counts), ranks, n_causes)

    def loss(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> Floats:
            return deviance(tree.flat_value[nodes], actual[rows])

        return loss

    def grown_attributes(
        self,
        model: ModelOfTrees,
        columns: _engine.Table,
        target: Target,
        weight_of: Callable[[int], Floats],
    ) -> dict[str, Any]:
        assert isinstance(target, SurvivalTarget)
        ranks = target.array[:, :_EXPECTED].astype(np.int64)
        leaves = model.engine.apply(columns, self.settings.n_threads).reshape(len(ranks), -1)
        root = model.root.astype(np.int64) if isinstance(model, FittedForest) else np.array([0, model.node_count])
        n_nodes = np.diff(root).tolist()
        return {"leaf_curves_": LeafCurves.of(target.times, ranks, target.n_outputs, leaves, n_nodes, weight_of)}


def deviance(relative_hazard: Floats, array: Floats) -> Floats:
    """Return the deviance of rows of a target's array, of proportional hazards with these relative hazards."""
    is_event = array[:, _CAUSE, np.newaxis] == np.arange(1, array.shape[1] - _EXPECTED + 1)
    expected = array[:, _EXPECTED:]
    least = expected[expected > 0].min(initial=np.inf)  # an event before those of the training rows
    mean = relative_hazard * np.where(is_event & (expected == 0), least, expected)
    return np.asarray(2 * np.where(is_event, mean - 1 - log(np.where(is_event, mean, 1.0)), mean).sum(axis=1))


@estimator
class SurvivalTree(BaseTree):
    """A decision tree for survival analysis, whose target is the time until an event, such as failure or death.

    Splits have the largest log-rank statistic: the rows on their two sides differ most in when their events happen.
    A leaf predicts its hazard relative to that of all training rows, and has a survival curve of its rows.

    The target `y` is one number per row: the time of the event, or minus the last time at which it had not happened yet
    (censored). Or it has two columns, as a structured array or a data frame: the time, and an event, which is True or
    False, or the cause of the event, a positive integer or text, and 0 or missing where the row is censored.

    See Also
    --------
    RandomSurvivalForest : Many trees, which predict better.
    GradientBoostingSurvival : Boosting of proportional hazards or of accelerated failure times.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import SurvivalTree
    >>> X = np.arange(60.0).reshape(30, 2) % 7
    >>> times = np.where(np.arange(30) % 5 == 0, -1, 1) * (1 + X[:, 0])  # every fifth is censored
    >>> tree = SurvivalTree(min_samples_leaf=10).fit(X, times)
    >>> tree.get_n_leaves()
    2
    >>> tree.predict_survival_function(X[:3], times=[2.0, 5.0]).shape
    (3, 2)
    """

    criterion: Literal["log_rank"] = parameter(StrOptions({"log_rank"}), default="log_rank")

    _task_class = Survival
    _tied_to_trees = ("rpart_", "leaf_curves_")
    _predicted_quantity = predictions.PREDICTED_QUANTITY
    _missing_attribute_reasons: ClassVar[dict[str, str]] = {
        "predict_proba": "is for classes. Use predict_survival_function.",
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

    def fit(  # type: ignore[override]
        self,
        X: TableLike,
        y: ColumnLike,
        sample_weight: ColumnLike = None,
        *,
        entry: ColumnLike = None,
        X_val: TableLike = None,
        y_val: ColumnLike = None,
        sample_weight_val: ColumnLike = None,
        groups: ColumnLike = None,
    ) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values need no encoding.
        y : array-like of shape (n_samples,), structured array, or data frame of two columns
            Times, negative where the row is censored; or times and events.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice, except in numbers of rows such as `min_samples_leaf`; a
            weight of 0 leaves the row out. Weights that are no multiples of the smallest are divided by their mean.
        entry : array-like of shape (n_samples,), optional
            Left truncation: the time from which each row was observed. A row is at risk only after it. None: from 0.
        X_val, y_val, sample_weight_val : optional
            Validation set, used instead of the rows that `validation_fraction` holds out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label stay together in the folds of parameters that are "cv".

        Returns
        -------
        self
            The fitted estimator.
        """
        return super().fit(
            X,
            entered(y, entry, sample_weight),
            sample_weight,
            X_val=X_val,
            y_val=y_val,
            sample_weight_val=sample_weight_val,
            groups=groups,
        )

    def pruned(self, *, alpha: float | None = None, cp: float | None = None) -> Self:
        other = super().pruned(alpha=alpha, cp=cp)
        if "leaf_curves_" in vars(self):  # not during a fit, where only predictions are scored
            other.leaf_curves_ = self.leaf_curves_.of_nodes(kept_nodes(self.tree_, other.tree_))
        return other

    def plot_curves(self, ax: Axes | None = None) -> Axes:
        """Plot the survival curve of each leaf.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw in; None: new ones.

        Returns
        -------
        Axes
            The axes. The curves are labelled by the conditions of the leaves, from the lowest hazard to the highest.
        """
        self._check_is_fitted()
        return draw_leaf_curves(self, ax)

    def leaf_curve(self, leaf: int) -> predictions.LeafCurve:
        """Return the survival curve of the training rows of a leaf.

        Parameters
        ----------
        leaf : int
            Node number, as returned by `apply`.

        Returns
        -------
        LeafCurve
            Times of events, rows at risk, events, and the estimates of Kaplan and Meier, Nelson and Aalen, and Aalen
            and Johansen.
        """
        self._check_is_fitted()
        if not 0 <= leaf < self.tree_.node_count or not self.tree_.is_leaf[leaf]:
            raise ValueError(f"Node {leaf} is not a leaf. `apply` returns the leaf of each row.")
        steps = self.leaf_curves_.steps
        of_leaf = slice(int(steps.begin[leaf]), int(steps.begin[leaf + 1]))
        incidence = np.cumsum(steps.incidence[of_leaf], axis=0)
        survival = np.clip(1.0 - incidence.sum(axis=1), 0.0, 1.0)
        hazard = np.cumsum(steps.hazard[of_leaf], axis=0)
        times = self.event_times_[steps.time[of_leaf]]
        return predictions.LeafCurve(times, steps.at_risk[of_leaf], steps.events[of_leaf], survival, hazard, incidence)


def entered(y: Any, entry: ColumnLike, sample_weight: ColumnLike) -> Any:
    """Return a target that knows its entries and weights; `y` alone where it has neither."""
    if y is None or (entry is None and sample_weight is None):
        return y
    return EnteredTimes(y, entry, sample_weight)


def kept_nodes(tree: FittedTree, pruned: FittedTree) -> NDArray[np.intp]:
    """Return the numbers that the nodes of a pruned tree had in the unpruned one."""
    found = np.zeros(pruned.node_count, dtype=np.intp)
    for node in np.flatnonzero(~pruned.is_leaf):  # in preorder
        found[node + 1] = found[node] + 1
        found[pruned.children_right[node]] = tree.children_right[found[node]]
    return found


def array_concordance(array: Floats, risk: Floats, weight: Floats | None) -> float:
    """Return the concordance of rows of a target's array."""
    # censored rows without an event time before them are comparable to none
    return predictions.mean_concordance(
        array[:, _RANK] + (array[:, _CAUSE] == 0) / 2 + 0.5, array[:, _CAUSE], risk, weight
    )
