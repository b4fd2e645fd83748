"""New values for the leaves of a fitted booster, from new rows; its splits stay."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.fitted.saved_state import BY_ROUND
from spinney._boosting.losses.custom import OutsideLosses
from spinney._boosting.losses.outputs import weighed
from spinney._boosting.losses.rows import LearningRows, check_size
from spinney._boosting.options.engine_options import engine_options
from spinney._boosting.options.recipe import resolve
from spinney._boosting.rounds.boosters import start_booster
from spinney._boosting.settings import BoostingEstimator, BoostingSettings
from spinney._estimator.target import read_weights

_LEARNED = ("n_outputs_", "classes_", "n_classes_")


def _copy(model: Any) -> Any:
    """Return the same model as an object of its own."""
    made = object.__new__(type(model))
    made.__dict__.update(model.__dict__)
    return made


class RefitsLeaves:
    """Mixin for boosted models of values, of classes and of lists."""

    if TYPE_CHECKING:
        boosting_: Any
        schema_: Any
        train_score_: Any
        stopped_because_: str
        n_parallel_trees: int
        _n_threads: int
        _step: float

        def _columns(self, X: Any) -> Any: ...
        def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Any: ...
        def _all_weights(self, target: Any, weight: Any, learned: dict[str, Any]) -> Any: ...
        def _weight_by_which(self, rows: LearningRows) -> float: ...
        def _make_loss(self, learned: dict[str, Any]) -> Any: ...
        def _read_offset(self, X: Any, offset: Any, n_rows: int) -> Any: ...

    def refit(self, X: Any, y: Any, sample_weight: Any = None, *, decay: float = 0.9, offset: Any = None) -> Self:
        """Set the values of all leaves anew by other rows, and leave the splits as they are.

        Round by round, as LightGBM's `refit`: a leaf keeps `decay` of its value and takes the rest of the value that a
        round of `fit` would set it to by these rows, at the scores that the refitted rounds before have led to. A leaf
        that none of the rows reach stays as it is (LightGBM's is multiplied by `decay`). Where scores start stays too.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            New rows, with the columns of the fit.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets; classes must be known to the model.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.
        decay : float, default=0.9
            How much of its value a leaf keeps, from 0 to 1.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `fit`.

        Returns
        -------
        estimator
            A fitted model with the new values; this one does not change. Its ``train_score_`` is the loss of the new
            rows after each round; other curves and calibrations are those of the fit, and are gone.
        """
        check_is_fitted(self)
        if not isinstance(decay, Real) or isinstance(decay, bool) or not 0 <= decay <= 1:
            raise ValueError(f"decay must be a number from 0 to 1, not {decay!r}.")
        if self.boosting_.has_lines:
            raise ValueError(
                "refit sets the values of leaves anew, and those of this model are lines (linear_leaves=True). Fit "
                "it to the new rows."
            )
        if not hasattr(self, "_step"):
            raise ValueError(
                "refit needs the size of the model's steps, and this one has no single one: it is the mean of several "
                "boosters (n_estimators='auto'), has dropped rounds (drop_rate), went on from a model of other steps, "
                "or is a file of an earlier version. Fit it with a number of rounds."
            )
        learned = {name: getattr(self, name) for name in _LEARNED if hasattr(self, name)}
        columns = self._columns(X)
        n_rows = columns.n_rows
        target = self._known_target(y, n_rows, learned)
        weight = self._all_weights(target, read_weights(sample_weight, n_rows), learned)
        loss = self._make_loss(learned)
        offset = self._read_offset(X, offset, n_rows)
        rows = LearningRows(columns, target, weight, offset, X, learned.pop("_more", None))
        rows.check(loss, "y")
        if rows.n_used == 0:
            raise ValueError("No row has a positive weight. Change sample_weight or class_weight.")
        loss = weighed(loss, rows)
        check_size(rows, self.boosting_.start, loss)
        trees, curve = self._refitted(rows, loss, float(decay))
        made = _copy(self)
        for name in (*BY_ROUND, "_calibration"):
            made.__dict__.pop(name, None)
        made.boosting_ = self.boosting_.with_trees(trees)
        made.train_score_ = np.array(curve)
        made.stopped_because_ = "its leaves were refitted"
        return cast(Self, made)

    def _refitted(self, rows: LearningRows, loss: Any, decay: float) -> tuple[list[Any], list[float]]:
        """Return the trees with their new values, and the loss of the rows after each round."""
        view = self.boosting_
        n_scores = view.n_scores
        outside = None if loss.outside is None else OutsideLosses(loss.outside, rows, None)
        settings = BoostingSettings.of(cast(BoostingEstimator, self))
        plain = replace(settings, min_samples_leaf=1, forced_splits=None, feature_weights=None, sampling="uniform")
        rate = self._step * self.n_parallel_trees
        recipe = resolve(plain, rows.n_used, n_scores, True, self._weight_by_which(rows))
        recipe = replace(recipe, learning_rate=rate, max_bins=2, subsample=1.0)
        step = 0.0 if outside is None else outside.learning.largest_step
        given = rows.n_used, rows.total_weight, n_scores, 0, (), step
        options = engine_options(plain, recipe, self.schema_, loss, *given)
        engine = start_booster(rows.columns, rows, None, loss, view.start, None, options, None, self._n_threads)
        old, trees, curve = view.trees(), [], []
        for round_ in range(view.n_rounds):
            if outside is not None and round_ % self.n_parallel_trees == 0:
                engine.set_gradients(*outside.learning.gradients(engine.scores()))
            trees += engine.refit_round(old[round_ * n_scores : (round_ + 1) * n_scores], decay)
            curve.append(engine.training_loss() if outside is None else outside.learning.mean_loss(engine.scores()))
        return trees, curve
