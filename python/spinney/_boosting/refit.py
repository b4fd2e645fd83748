"""New values for the leaves of a fitted booster, from new rows; its splits stay."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.boosters import start_booster
from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.custom_loss import CustomLosses
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import Loss
from spinney._boosting.options.engine_options import BoosterInputs, engine_options
from spinney._boosting.options.recipe import resolve
from spinney._boosting.saved_state import BY_ROUND
from spinney._boosting.target import BoostingTarget
from spinney._data.types import TableLike
from spinney._estimator.fit_inputs import RowInputs
from spinney._estimator.target import read_weights

Booster = TypeVar("Booster", bound=BaseBoosting)


def refit(
    model: Booster,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    decay: float = 0.9,
    offset: ArrayLike | None = None,
) -> Booster:
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
    return refit_leaves(model, RowInputs(X, y, sample_weight, offset), decay)


def refit_leaves(model: Booster, given: RowInputs, decay: float) -> Booster:
    """Return a model with leaves that new rows have set anew."""
    check_is_fitted(model)
    if not isinstance(decay, Real) or isinstance(decay, bool) or not 0 <= decay <= 1:
        raise ValueError(f"decay must be a number from 0 to 1, not {decay!r}.")
    if model.boosting_.has_lines:
        raise ValueError(
            "refit sets the values of leaves anew, and those of this model are lines (linear_leaves=True). Fit "
            "it to the new rows."
        )
    if not hasattr(model, "_step"):
        raise ValueError(
            "refit needs the size of the model's steps, and this one has no single one: it is the mean of several "
            "boosters (n_estimators='auto'), has dropped rounds (dart), or went on from a model of other steps. "
            "Fit it with a number of rounds."
        )
    columns, target = model._columns(given.X), model._fitted_target()
    n_rows, values = columns.n_rows, target.read(given.y, columns.n_rows, groups=given.groups)
    weight = read_weights(given.sample_weight, n_rows)
    weight, loss = target.with_costs(values, weight).weights(values, weight), target.loss()
    offset = model._read_offset(given.X, given.offset, n_rows)
    rows = LearningRows(columns, values.values, weight, offset, given.X, values.more)
    loss.check(rows, "y")
    if rows.n_used == 0:
        raise ValueError("No row has a positive weight. Change sample_weight or class_weight.")
    loss = loss.in_units(rows)
    loss.check_size(rows, model.boosting_.start)
    trees, curve = _refitted(model, target, rows, loss, float(decay))
    made = copy(model)
    for name in (*BY_ROUND, "_calibration"):
        made.__dict__.pop(name, None)
    made.boosting_ = model.boosting_.with_trees(trees)
    made.train_score_ = np.array(curve)
    made.stopped_because_ = "its leaves were refitted"
    return made


def _refitted(
    model: BaseBoosting, target: BoostingTarget, rows: LearningRows, loss: Loss, decay: float
) -> tuple[list[_engine.Tree], list[float]]:
    """Return the trees with their new values, and the loss of the rows after each round."""
    view, settings = model.boosting_, target.settings
    n_scores, n_parallel = view.n_scores, settings.n_parallel_trees
    outside = None if loss.outside is None else CustomLosses(loss.outside, rows, None)
    plain = replace(settings, min_samples_leaf=1, forced_splits=None, feature_weights=None, sampling="uniform")
    recipe = resolve(plain, rows.n_used, n_scores, True, target.total_weight(rows))
    recipe = replace(recipe, learning_rate=model._step * n_parallel, max_bins=2, subsample=1.0)
    step = 0.0 if outside is None else outside.learning.largest_step
    inputs = BoosterInputs(rows.n_used, rows.total_weight, n_scores, seed=0, largest_step=step)
    options = engine_options(plain, recipe, model.schema_, loss, inputs)
    engine = start_booster(rows.columns, rows, None, loss, view.start, None, options, None, settings.n_threads)
    old, trees, curve = view.trees(), [], []
    for round_ in range(view.n_rounds):
        if outside is not None and round_ % n_parallel == 0:
            engine.set_gradients(*outside.learning.gradients(engine.scores()))
        trees += engine.refit_round(old[round_ * n_scores : (round_ + 1) * n_scores], decay)
        curve.append(engine.training_loss() if outside is None else outside.learning.mean_loss(engine.scores()))
    return trees, curve
