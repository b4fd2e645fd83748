"""Gradient boosting of times until an event."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

import spinney._engine as _engine
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.fitted.saved_state import times_from_json, times_to_json
from spinney._boosting.fitted.survival import SaysTimes
from spinney._boosting.losses.loss import Loss
from spinney._boosting.losses.rows import LearningRows
from spinney._boosting.losses.survival import DISTRIBUTIONS, CoxLoss, TimedLoss, read_times, time_loss
from spinney._boosting.options.compatibility import check_options
from spinney._boosting.rounds.task import Task
from spinney._boosting.settings import BoostingSettings
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import check_held_out, check_scoring
from spinney._model.boosting import FittedBoosting
from spinney._model.saving.model_part import FittedPart

Floats = NDArray[np.float64]
_MOST_TIMES = 100  # of curves without a baseline of their own


class GradientBoostingSurvival(SaysTimes, BaseBoosting):
    """Gradient boosting of times until an event, such as failure or death, that may not have happened yet.

    A target is one number per row, a time, with a minus sign where the event had not happened by then (censored); a
    structured array of (event, time), in either order; or, with ``loss="aft"``, two columns, the first and the last
    time at which the event may have happened: equal where it is known, infinity where it is open, 0 where it may have
    happened at any time before. The model is the same, bit for bit, for any number of threads and any kind of table.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.arange(60.0).reshape(30, 2) % 7
    >>> times = np.where(np.arange(30) % 5 == 0, -1, 1) * (1 + X[:, 0])  # every fifth is censored
    >>> model = spinney.GradientBoostingSurvival(n_estimators=20).fit(X, times)
    >>> round(model.score(X, times), 2)
    0.97
    >>> model.predict_survival_function(X[:3], times=[2.0, 5.0]).shape
    (3, 2)
    """

    _leaf_share: ClassVar[float] = 0.05  # censored rows say little: shares of events matter more than counts of rows
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "loss": [StrOptions({"cox", "aft"})],
        "distribution": [StrOptions(set(DISTRIBUTIONS))],
        "ties": [StrOptions({"breslow", "efron"})],
        "scale": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        loss: str = "cox",
        *,
        distribution: str = "normal",
        scale: float | str = "auto",
        ties: str = "breslow",
        n_estimators: int | str = "auto",
        effort: float | str = 0.5,
        learning_rate: float | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        growth: str = "leaf",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = "auto",
        min_hessian_leaf: float = 1e-3,
        min_gain: float = 0.0,
        min_impurity_decrease: float = 0.0,
        l2_regularization: float | str = "auto",
        l1_regularization: float = 0.0,
        max_step: float | str | None = "auto",
        subsample: float | str = "auto",
        sampling: str = "uniform",
        top_share: float = 0.2,
        n_parallel_trees: int = 1,
        drop_rate: float = 0.0,
        skip_drop: float = 0.0,
        max_drop: int | None = None,
        drop_by: str = "uniform",
        max_features: int | float | str | None = "auto",
        max_features_per_level: float = 1.0,
        max_features_per_tree: float = 1.0,
        max_bins: int | str = "auto",
        max_one_hot: int = 4,
        category_smoothing: float = 10.0,
        category_l2: float = 10.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        feature_costs: Any = None,
        feature_weights: Any = None,
        forced_splits: dict[str, Any] | None = None,
        hierarchical_shrinkage: float = 0.0,
        linear_leaves: bool = False,
        linear_l2: float = 5.0,
        early_stopping: bool | None = None,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Any = None,
        keep_interrupted: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    # ---- fitting -------------------------------------------------------------------------------------

    def _check_request(self, X_val: Any, y_val: Any, more: dict[str, Any], groups: Any, time: Any) -> None:
        settings = BoostingSettings.of(self)
        for metric in settings.metrics:
            if metric not in (None, "concordance"):
                raise ValueError(f"{metric!r} is no metric of times. Use 'concordance', or None for the loss.")
        self._check_parameters()
        check_scoring(None, settings.callbacks)
        check_held_out(X_val, y_val, more, groups, settings.stops_early, time)
        check_options(settings)

    def _held_out_score(self, scoring: Any, view: FittedBoosting, held_out: LearningRows, *given: Any) -> Any:
        assert held_out.more is not None
        low, high, sign = held_out.target, held_out.more, -1.0 if self.loss == "cox" else 1.0

        def judge(scores: Floats, so_far: Any = None) -> float:
            expected = np.ascontiguousarray(sign * scores[:, 0])
            return -float(_engine.concordance(low, high, expected, held_out.weight))

        return judge

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        learned: dict[str, Any] = {"n_outputs_": 1}
        return self._known_target(y, n_rows, learned), learned

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        times = read_times(y, n_rows, name)
        if self.loss == "cox" and not (times.is_event | (times.high == np.inf)).all():
            row = int(np.flatnonzero(~times.is_event & np.isfinite(times.high))[0])
            raise ValueError(
                f"loss='cox' needs times that are known or open to the end. Row {row} of {name} lies between "
                f"{times.low[row]:g} and {times.high[row]:g}. Use loss='aft'."
            )
        learned["_more"] = times.high
        return times.low

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        return weight

    @property
    def _given_scale(self) -> float | None:
        return None if isinstance(self.scale, str) else float(self.scale)

    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        return time_loss(self.loss, self.distribution, self._given_scale, self.ties, self._n_threads)

    def _best_constant(self, loss: Loss, rows: LearningRows, n_scores: int) -> Floats:
        assert loss.outside is not None
        of_rows = loss.outside(rows)
        if isinstance(of_rows, CoxLoss):
            return np.zeros(1)
        assert isinstance(of_rows, TimedLoss)
        return np.array([of_rows.constant(np.zeros(len(rows.target)) if rows.offset is None else rows.offset[0])])

    def _told_by(self, rounds: Any, model: FittedBoosting, task: Task) -> dict[str, Any]:
        """Return the hazard of a score of 0, or the scale of times, by rows that the model has not seen if it can."""
        rows, parts, outside = task.rows, task.parts, task.loss.outside
        assert outside is not None
        judged = rows
        if len(parts) == 1 and parts[0][1] is not None and self.loss == "aft":
            judged = parts[0][1]
        scores = np.ascontiguousarray(model.scores(judged.columns, self._n_threads).T)
        if judged.offset is not None:
            scores = scores + judged.offset
        if len(parts) > 1:
            scores = rounds.scores_held_out(scores, [part for _, part in parts])
        of_rows = outside(judged)
        if isinstance(of_rows, CoxLoss):
            times, hazard = of_rows.baseline(scores)
            return {"event_times_": np.asarray(times), "baseline_hazard_": np.asarray(hazard)}
        assert isinstance(of_rows, TimedLoss)
        known = np.unique(rows.target[(rows.weights() > 0) & (rows.target > 0)])
        at = np.unique(np.linspace(0, max(len(known) - 1, 0), min(len(known), _MOST_TIMES)).astype(np.intp))
        return {"event_times_": known[at], "scale_": of_rows.fit_scale(scores)}

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        return view.predicted(scores)[:, 0]

    def _to_header(self) -> dict[str, Any]:
        return super()._to_header() | times_to_json(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        return super()._from_header(header, part) | times_from_json(header, part)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
