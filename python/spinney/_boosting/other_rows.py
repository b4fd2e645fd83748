"""Methods that take other rows to a fitted booster: importances of its columns, and leaves that are set anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.boosters import start_booster
from spinney._boosting.boosting import BY_ROUND, BaseBoosting
from spinney._boosting.evaluation import Judge
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import CustomLosses, Loss
from spinney._boosting.options.engine_options import BoosterInputs, engine_options
from spinney._boosting.options.recipe import resolve
from spinney._boosting.settings import Metric
from spinney._boosting.target import BoostingTarget
from spinney._data.types import TableLike
from spinney._estimator.fit_inputs import RowInputs
from spinney._estimator.parameters import read_column_groups
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
    if model.boosting_.has_linear_leaves:
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
    target = model._fitted_target()
    rows, loss = _read_rows(model, given, target, by_class=True)
    loss.check_size(rows, model.boosting_.start)
    trees, curve = _refitted(model, target, rows, loss, float(decay))
    made = copy(model)
    for name in (*BY_ROUND, "_calibration"):
        made.__dict__.pop(name, None)
    made.boosting_ = model.boosting_.with_trees(trees)
    made.train_score_ = np.array(curve)
    made.stopped_because_ = "its leaves were refitted"
    return made


def _read_rows(
    model: BaseBoosting, given: RowInputs, target: BoostingTarget, by_class: bool
) -> tuple[LearningRows, Loss]:
    """Return other rows as boosting takes them, perhaps with weights of their classes, and the loss in their units."""
    columns, loss = model._columns(given.X), target.loss()
    n_rows, values = columns.n_rows, target.read(given.y, columns.n_rows, groups=given.groups)
    weight = read_weights(given.sample_weight, n_rows)
    if by_class:
        weight = target.with_costs(values, weight).weights(values, weight)
    offset = model._read_offset(given.X, given.offset, n_rows)
    rows = LearningRows(columns, values.values, weight, offset, given.X, values.more)
    loss.check(rows, "y")
    if rows.n_used == 0:
        raise ValueError(f"No row has a positive weight. Change sample_weight{' or class_weight' if by_class else ''}.")
    return rows, loss.in_units(rows)


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


KINDS = ("gain", "splits", "permutation")


def importances(
    model: BaseBoosting,
    X: TableLike | None = None,
    y: ArrayLike | None = None,
    kind: str = "gain",
    *,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    scoring: Metric = None,
    groups: Sequence[Sequence[int | str]] | Mapping[str, Sequence[int | str]] | None = None,
    n_repeats: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> Importances:
    """How much each column matters.

    Parameters
    ----------
    X : table of shape (n_samples, n_features), optional
        Rows to permute, with ``kind="permutation"``: best such that the model has not seen.
    y : array-like of shape (n_samples,), optional
        Their target.
    kind : {"gain", "splits", "permutation"}, default="gain"
        "gain": share in the loss that the splits save, as `feature_importances_`; "splits": share in the splits;
        both are known without rows, and give columns with many values too much. "permutation": what the loss of
        the rows rises by when a column's values are permuted among them.
    sample_weight, offset : array-like, optional
        Weights and offsets of the rows, with permutation.
    scoring : str, callable or None, default=None
        A metric as scikit-learn's scorers instead of the loss, with permutation: what it falls by.
    groups : list of lists of columns, or dict of these, optional
        Columns that are permuted together (else: added up), by name or position. Other columns stand alone.
    n_repeats : int, default=5
        Permutations of each column; the standard error is over these.
    random_state : int, RandomState or None, default=None
        Seed of the permutations; None: always the same.

    Returns
    -------
    Importances
        The numbers, with `to_frame` and `plot`.

    See Also
    --------
    spinney.importance_frame : Gains and numbers of splits as a table.
    """
    from spinney.inspect.explain.importances import Importances

    check_is_fitted(model)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, not {kind!r}.")
    if isinstance(n_repeats, bool) or not isinstance(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"n_repeats must be a whole number from 1 up, not {n_repeats!r}.")
    names, columns = read_column_groups(groups, model.schema_)
    n_features, view = model.n_features_in_, model.boosting_
    splits = view.split_counts(n_features)
    n_splits = np.array([splits[group].sum() for group in columns], dtype=np.intp)
    loss: float | None = None
    measure: str | None = None
    if kind == "permutation":
        judge = _Judge(model, RowInputs(X, y, sample_weight, offset), scoring)
        seed = 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        loss, measure = judge.loss(), judge.name
        rises = [judge.rises(group, int(n_repeats), (seed, g)) for g, group in enumerate(columns)]
        draws = np.array(rises).T - np.float64(loss)
        draws[:, n_splits == 0] = 0.0
    else:
        for name, given in (("scoring", scoring), ("sample_weight", sample_weight), ("offset", offset)):
            if given is not None:
                raise ValueError(f"{name} goes with kind='permutation', not with {kind!r}.")
        shares = view.importances(n_features) if kind == "gain" else splits / max(1, splits.sum())
        draws = np.array([[shares[group].sum() for group in columns]])
    n = len(draws)
    mean = draws.mean(axis=0)
    error = draws.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(names), np.nan)
    z = np.divide(mean, error, out=np.full(len(names), np.nan), where=error > 0)
    return Importances(names, kind, measure, mean, error, z, draws, None, n_splits, loss, "permutation")


class _Judge:
    """Rows by which a model is judged, with some of their columns permuted."""

    def __init__(self, model: BaseBoosting, given: RowInputs, scoring: Metric) -> None:
        if given.X is None or given.y is None:
            raise ValueError(
                "kind='permutation' is measured on rows. Pass X and y, best of rows that were not trained on."
            )
        if not model._predicts_alone:
            raise ValueError(
                f"The scores start at {type(model.init_).__name__}, whose columns are not permuted here. Use "
                "spinney.permutation_importance."
            )
        self._view, self._n_threads = model.boosting_, model._n_threads
        target = model._fitted_target()
        self._rows, loss = _read_rows(model, given, target, by_class=False)
        self._table = self._rows.columns
        self._columns = [np.asarray(self._table.column(j)) for j in range(self._table.n_columns)]
        self._mean_loss = loss.mean_on(self._rows)
        self._scorer: Judge | None = None
        self.name = "loss"
        if scoring is not None:
            if isinstance(scoring, str):
                get_scorer(scoring)
            self.name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "the metric")
            self._scorer = target.judge(scoring, self._view, self._rows, None, model._columns)

    def loss(self, table: _engine.Table | None = None) -> float:
        """Mean loss, or minus the metric, of the rows or of a table like theirs."""
        scores = self._view.scores(self._table if table is None else table, self._n_threads)
        if self._rows.offset is not None:
            scores = scores + self._rows.offset.T
        return self._mean_loss(scores) if self._scorer is None else self._scorer(scores, lambda: self._view)

    def rises(self, group: list[int], n_repeats: int, seed: tuple[int, int]) -> list[float]:
        """Losses with the values of a group of columns permuted, all in the same way."""
        n = self._table.n_rows
        orders = (np.random.default_rng([*seed, repeat]).permutation(n) for repeat in range(n_repeats))
        return [self.loss(self._permuted(group, order)) for order in orders]

    def _permuted(self, group: list[int], order: NDArray[np.intp]) -> _engine.Table:
        table = _engine.Table(self._table.n_rows)
        for j, values in enumerate(self._columns):
            values = values[order] if j in group else values
            n_categories = self._table.n_categories(j)
            if n_categories:
                table.add_category(np.where(np.isnan(values), -1, values).astype(np.int32), n_categories)
            else:
                table.add_number(values)
        return table
