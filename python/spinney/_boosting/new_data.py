"""Methods of fitted boosters that take new rows: refitting of leaves, and importances of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.boosters import start_booster
from spinney._boosting.boosting import BY_ROUND, BaseBoosting
from spinney._boosting.evaluation import HeldOutMetric
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import CustomLosses, Loss
from spinney._boosting.options.engine_options import BoosterInputs, engine_options
from spinney._boosting.options.recipe import resolve
from spinney._boosting.ordered_classes import with_refitted_cuts
from spinney._boosting.settings import Metric
from spinney._boosting.target import BoostingTarget
from spinney._data import read_table
from spinney._data.feature import columns_of, table_of
from spinney._data.types import TableLike
from spinney._estimator.fit_inputs import RowInputs
from spinney._estimator.parameters import read_column_groups, require_whole
from spinney._estimator.target import read_weights

if TYPE_CHECKING:
    from spinney.inspect.explain.importances import Importances

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
    """Refit the values of all leaves to other rows, without changing the splits.

    This is LightGBM's `refit`: the new value of a leaf is ``decay`` times its old value plus ``1 - decay`` times the
    value that a round of `fit` would compute from these rows, given the scores of the rounds that were refitted before
    it. A leaf that no row reaches keeps its value (LightGBM multiplies it by `decay`), and the initial scores do not
    change.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        New rows, with the columns of the fit.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets; classes must be known to the model.
    sample_weight : array-like of shape (n_samples,), optional
        As in `fit`.
    decay : float, default=0.9
        Weight of the old value of a leaf, from 0 to 1.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `fit`.

    Returns
    -------
    estimator
        A fitted model with the new values; this one does not change. Its ``train_score_`` is the loss of the new
        rows after each round; it has no other learning curves and no calibration.
    """
    return refit_leaves(model, RowInputs(X, y, sample_weight, offset), decay)


def refit_leaves(model: Booster, inputs: RowInputs, decay: float) -> Booster:
    """Return a model with leaves refitted to new rows."""
    check_is_fitted(model)
    if not isinstance(decay, Real) or isinstance(decay, bool) or not 0 <= decay <= 1:
        raise ValueError(f"decay must be a number from 0 to 1, not {decay!r}.")
    if not hasattr(model, "_tree_learning_rate"):
        raise ValueError(
            "refit needs a model with one learning rate, and this one has several: it is the mean of several boosters "
            "(n_estimators='auto'), has dropped rounds (dart), or continues a model with another learning rate. Fit "
            "it with a number of rounds."
        )
    if model.boosting_.has_linear_leaves:
        raise ValueError(
            "refit changes the values of leaves, and this model has linear leaves. Fit it to the new rows."
        )
    target = model._fitted_target()
    rows, loss = _read_rows(model, inputs, target, by_class=True)
    loss.check_size(rows, model.boosting_.start)
    trees, curve = _refitted(model, target, rows, loss, float(decay))
    refitted = copy(model)
    for name in (*BY_ROUND, "_calibration"):
        refitted.__dict__.pop(name, None)
    refitted.boosting_ = with_refitted_cuts(model.boosting_.with_trees(trees), loss, rows, float(decay))
    refitted.train_score_ = np.array(curve)
    refitted.stopped_because_ = "its leaves were refitted"
    return refitted


def _read_rows(
    model: BaseBoosting, inputs: RowInputs, target: BoostingTarget, by_class: bool
) -> tuple[LearningRows, Loss]:
    """Return new rows as boosting takes them, with class weights if `by_class`, and the loss in their units."""
    columns, loss = model._columns(inputs.X), target.loss()
    n_rows, values = columns.n_rows, target.read(inputs.y, columns.n_rows, groups=inputs.groups)
    weight = read_weights(inputs.sample_weight, n_rows)
    if by_class:
        weight = target.with_costs(values, weight).weights(values, weight)
    offset = model._read_offset(inputs.X, inputs.offset, n_rows)
    rows = LearningRows(columns, values.values, weight, offset, inputs.X, values.extra)
    loss.check(rows, "y")
    if rows.n_used == 0:
        raise ValueError(f"No row has a positive weight. Change sample_weight{' or class_weight' if by_class else ''}.")
    return rows, loss.in_units(rows)


def _refitted(
    model: BaseBoosting, target: BoostingTarget, rows: LearningRows, loss: Loss, decay: float
) -> tuple[list[_engine.Tree], list[float]]:
    """Return the trees with their new values, and the loss of the rows after each round."""
    fitted, settings = model.boosting_, target.settings
    n_scores, n_parallel = fitted.n_scores, settings.n_parallel_trees
    custom = None if loss.custom is None else CustomLosses(loss.custom, rows, None)
    plain = replace(settings, min_samples_leaf=1, forced_splits=None, feature_weights=None, sampling="uniform")
    recipe = resolve(plain, rows.n_used, n_scores, True, target.total_weight(rows))
    recipe = replace(recipe, learning_rate=model._tree_learning_rate * n_parallel, max_bins=2, subsample=1.0)
    max_step = 0.0 if custom is None else custom.training.default_max_step
    inputs = BoosterInputs(rows.n_used, rows.total_weight, n_scores, seed=0, default_max_step=max_step)
    options = engine_options(plain, recipe, model.schema_, loss, inputs)
    engine = start_booster(rows.columns, rows, None, loss, fitted.start, None, options, None, settings.n_threads)
    old, trees, curve = fitted.trees(), [], []
    for round_ in range(fitted.n_rounds):
        if custom is not None and round_ % n_parallel == 0:
            engine.set_gradients(*custom.training.gradients(engine.scores()))
        trees += engine.refit_round(old[round_ * n_scores : (round_ + 1) * n_scores], decay)
        curve.append(engine.training_loss() if custom is None else custom.training.mean_loss(engine.scores()))
    return trees, [loss.reported_factor * value for value in curve]


KINDS = ("gain", "splits", "permutation")


def importances(
    model: BaseBoosting,
    X: TableLike | None = None,
    y: ArrayLike | None = None,
    kind: Literal["gain", "splits", "permutation"] = "gain",
    *,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    scoring: Metric = None,
    groups: Sequence[Sequence[int | str]] | Mapping[str, Sequence[int | str]] | None = None,
    n_repeats: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> Importances:
    """Return the importance of each column.

    Parameters
    ----------
    X : table of shape (n_samples, n_features), optional
        Rows to permute, with ``kind="permutation"``; preferably not used in training.
    y : array-like of shape (n_samples,), optional
        Their target.
    kind : {"gain", "splits", "permutation"}, default="gain"
        "gain": fraction of the total gain of splits, as `feature_importances_`; "splits": fraction of the splits;
        both need no rows, and overrate columns with many values. "permutation": increase of the loss of the rows when
        the values of a column are permuted.
    sample_weight, offset : array-like, optional
        Weights and offsets of the rows, with permutation.
    scoring : str, callable or None, default=None
        With permutation, a metric whose decrease is measured instead of the loss: one that the parameter `scoring` of
        the model accepts.
    groups : list of lists of columns, or dict of these, optional
        Columns that are permuted together, or whose importances are added, by name or position.
    n_repeats : int, default=5
        Number of permutations of each column, over which the standard error is computed.
    random_state : int, RandomState or None, default=None
        Seed of the permutations; None: a fixed seed.

    Returns
    -------
    Importances
        The importances, with `to_frame` and `plot`.

    See Also
    --------
    spinney.importance_frame : Gains and numbers of splits as a table.
    """
    from spinney.inspect.explain.importances import Importances, count_splits, splits_of_groups

    check_is_fitted(model)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}.")
    require_whole("n_repeats", n_repeats)
    names, columns = read_column_groups(groups, model.schema_)
    fitted = model.boosting_
    n_splits = splits_of_groups(fitted, model.schema_, columns)
    loss: float | None = None
    measure: str | None = None
    if kind == "permutation":
        evaluation = _PermutedEvaluation(model, RowInputs(X, y, sample_weight, offset), scoring)
        seed = 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        loss, measure = evaluation.loss(), evaluation.name
        losses = [evaluation.permuted_losses(group, int(n_repeats), (seed, g)) for g, group in enumerate(columns)]
        draws = np.array(losses).T - np.float64(loss)
        draws[:, n_splits == 0] = 0.0
    else:
        for name, value in (("scoring", scoring), ("sample_weight", sample_weight), ("offset", offset)):
            if value is not None:
                raise ValueError(f"{name} is for kind='permutation', not for {kind!r}.")
        splits = count_splits(fitted, model.schema_)
        fractions = model.feature_importances_ if kind == "gain" else splits / max(1, splits.sum())
        draws = np.array([[fractions[group].sum() for group in columns]])
    return Importances(names, kind, measure, draws, None, n_splits, loss, "permutation")


class _PermutedEvaluation:
    """Evaluates a model on rows with some of their columns permuted."""

    def __init__(self, model: BaseBoosting, inputs: RowInputs, scoring: Metric) -> None:
        if inputs.X is None or inputs.y is None:
            raise ValueError(
                "kind='permutation' is measured on rows. Pass X and y, preferably of rows not used in training."
            )
        if not model._predicts_alone:
            raise ValueError(
                f"The initial scores are predictions of {type(model.init_).__name__}, which is not permuted here. Use "
                "spinney.permutation_importance."
            )
        self._model, self._n_threads = model.boosting_, model._n_threads
        target = model._fitted_target()
        self._rows, loss = _read_rows(model, inputs, target, by_class=False)
        self._table = self._rows.columns
        self._schema = model.schema_
        self._inputs = self._table
        if self._schema.pool is not None:
            self._inputs = self._schema.encode_inputs(read_table(inputs.X), model.unseen, type(model).__name__)
        self._columns = columns_of(self._inputs)
        self._mean_loss = loss.mean_on(self._rows)
        self._scorer: HeldOutMetric | None = None
        self.name = "loss"
        if scoring is not None:
            self.name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "the metric")
            self._scorer = target.held_out_metric(scoring, self._model, self._rows, None, model._columns)

    def loss(self, table: _engine.Table | None = None) -> float:
        """Return the mean loss, or the negated metric, of the rows or of a permuted table."""
        scores = self._model.scores(self._table if table is None else table, self._n_threads)
        if self._rows.offset is not None:
            scores = scores + self._rows.offset.T
        return self._mean_loss(scores) if self._scorer is None else self._scorer(scores, lambda: self._model)

    def permuted_losses(self, group: list[int], n_repeats: int, seed: tuple[int, int]) -> list[float]:
        """Return the losses with the rows of a group of columns permuted together."""
        n = self._table.n_rows
        orders = (np.random.default_rng([*seed, repeat]).permutation(n) for repeat in range(n_repeats))
        return [self.loss(self._permuted(group, order)) for order in orders]

    def _permuted(self, group: list[int], order: NDArray[np.intp]) -> _engine.Table:
        columns = (values[order] if j in group else values for j, values in enumerate(self._columns))
        inputs = table_of(columns, len(order), map(self._inputs.n_categories, range(len(self._columns))))
        return self._schema.combined(inputs)
