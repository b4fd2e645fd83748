"""The uncertainty of a forest's predictions: standard errors, quantiles, intervals and prediction sets.

Out-of-bag predictions come from trees that were grown without the row, as for new rows, so that out-of-bag errors
calibrate intervals and prediction sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.types import Floats, TableLike
from spinney._estimator.conformal import (
    CalibrationRows,
    check_coverage,
    class_sets,
    conformal_quantile,
    weight_needed,
    weight_of_one,
)
from spinney._estimator.estimator import only_if
from spinney._estimator.table_estimator import TableEstimator
from spinney._forest.growth_record import TrainingRows
from spinney._forest.samples import Draws
from spinney._model.forest import FittedForest

_BLOCK_NUMBERS = 2**22  # predictions of trees for a block of rows: 32 MiB

Leaves = NDArray[np.uint32]


class Calibration:
    """The training rows used for calibration: of positive weight, and out of bag for at least one tree.

    Attributes
    ----------
    rows : ndarray of int
    means : ndarray of shape (n_rows_used, value_width)
        Out-of-bag predictions.
    target : ndarray of shape (n_rows_used, n_outputs)
    weight : ndarray of shape (n_rows_used,) or None
    margins : dict
        Computed margins of quantiles, by levels.
    """

    def __init__(self, forest: FittedForest, known: TrainingRows) -> None:
        means, n_unseen = known.out_of_bag_means(forest)
        if not known.n_classes and means.shape[1] != known.target.shape[1]:
            raise ValueError(
                "The criterion predicts something other than y, so intervals cannot be calibrated by errors. Use "
                "predict_quantiles."
            )
        usable = n_unseen > 0
        if known.row_weight is not None:
            usable &= known.row_weight > 0
        self.rows = np.flatnonzero(usable)
        if len(self.rows) == 0:
            raise ValueError(
                "Every row was drawn for every tree. Grow more trees, or draw fewer rows with max_samples."
            )
        self.means = means[self.rows]
        self.target = known.target[self.rows]
        self.weight = None if known.row_weight is None else known.row_weight[self.rows]
        self.known = known
        self.margins: dict[tuple[float, ...], Floats] = {}

    @property
    def known_classes(self) -> CalibrationRows:
        """Out-of-bag class probabilities, and the classes."""
        return CalibrationRows(self.means, self.target[:, 0], self.weight)

    @cached_property
    def unseen_bits(self) -> NDArray[np.uint8]:
        """Return the trees for which each row is out of bag as bits, eight trees to a byte, (n_bytes, n_rows_used)."""
        return np.packbits(self.known.unseen()[:, self.rows], axis=0, bitorder="little")

    @cached_property
    def errors(self) -> Floats:
        """Absolute out-of-bag errors, by row and output."""
        return np.abs(self.target - self.means)

    def margin(self, scores: Floats, coverage: float) -> Floats:
        """Return the score that a new row stays below with probability `coverage`, by column."""
        return np.array([conformal_quantile(column, self.weight, coverage) for column in scores.T])

    @property
    def fraction_of_one(self) -> float:
        """Fraction of the weight that one row has among these and itself."""
        if self.weight is None:
            return 1 / (len(self.rows) + 1)
        one = weight_of_one(self.weight)
        return float(one / (self.weight.sum() + one))


@dataclass(frozen=True, eq=False)
class ForestIntervals:
    """Conditional distributions of the target by a forest that stores its training rows.

    Attributes
    ----------
    forest : FittedForest
    known : TrainingRows
    n_jobs : int
    """

    forest: FittedForest
    known: TrainingRows
    n_jobs: int

    @property
    def calibration(self) -> Calibration:
        """The calibration rows, computed once."""
        cache = self.known.cache
        if "calibration" not in cache:
            cache["calibration"] = Calibration(self.forest, self.known)
        found: Calibration = cache["calibration"]
        return found

    def weights(self, leaves: Leaves) -> csr_array:
        """Return the weight of each training row in the prediction for each row."""
        start, row, weight = self.known.engine.weights(leaves, self.n_jobs)
        kind = np.int32 if len(row) < 2**31 else np.int64
        return csr_array((weight, row.astype(kind), start.astype(kind)), shape=(len(leaves), self.known.n_rows))

    def quantiles(self, leaves: Leaves, levels: Floats) -> Floats:
        """Return quantiles of the target, (n_rows, n_outputs, n_levels)."""
        order = np.argsort(levels, kind="stable")
        found = np.empty((len(leaves), len(self.known.places), len(levels)))
        for k, (place, target) in enumerate(self.known.places):
            ordered = np.ascontiguousarray(levels[order])
            flat = self.known.engine.quantiles(leaves, place, target, ordered, self.n_jobs)
            found[:, k, order] = flat.reshape(len(leaves), len(levels))
        return found

    def cdf(self, leaves: Leaves, values: Floats) -> Floats:
        """Return the probability that the target is at most each value, (n_rows, n_outputs, n_values)."""
        weights = self.weights(leaves)
        parts = [weights @ (y[:, np.newaxis] <= values).astype(np.float64) for y in self.known.target.T]
        return np.asarray(np.clip(np.stack(parts, axis=1), 0.0, 1.0))

    def interval(self, columns: _engine.Table, coverage: float, method: str) -> Floats:
        """Return the lower and upper ends of intervals, (n_rows, n_outputs, 2)."""
        if method == "quantile":
            return self._widened_quantiles(self.forest.engine.apply(columns, self.n_jobs), coverage)
        if method == "jackknife+":
            return self._jackknife_plus(self.forest.engine.apply(columns, self.n_jobs), coverage)
        if method == "residual":
            centre = self.forest.predictions(columns, self.n_jobs)
            margin = self.calibration.margin(self.calibration.errors, coverage)
            return np.stack([centre - margin, centre + margin], axis=-1)
        raise ValueError(f"method must be 'quantile', 'jackknife+' or 'residual', not {method!r}.")

    def _widened_quantiles(self, leaves: Leaves, coverage: float) -> Floats:
        """Return intervals by conformalised quantile regression: quantiles, widened by the out-of-bag margin."""
        cal = self.calibration
        levels = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        margin = self._quantile_margins(levels, coverage)
        found = self.quantiles(leaves, levels)
        ends = np.stack([found[..., 0] - margin, found[..., 1] + margin], axis=-1)
        crossed = ends[..., 0] > ends[..., 1]  # a negative margin that exceeds half the distance of the quantiles
        ends = np.where(crossed[..., np.newaxis], found.mean(axis=-1, keepdims=True), ends)
        # A new target lies outside the range of the training targets with a probability of at most twice one row's
        # fraction of the weight: clipping to this range loses at most that much coverage.
        if 2 * cal.fraction_of_one > (1 - coverage) / 10:
            return ends
        lowest, highest = cal.target.min(axis=0)[:, np.newaxis], cal.target.max(axis=0)[:, np.newaxis]
        return np.clip(ends, lowest, highest)

    def _quantile_margins(self, levels: Floats, coverage: float) -> Floats:
        """Return the margin by which out-of-bag quantiles must be widened to reach `coverage`, by output."""
        cal, key = self.calibration, (*levels.tolist(), coverage)
        if key not in cal.margins:
            known = self.quantiles(np.ascontiguousarray(self.known.unseen_leaves[cal.rows]), levels)
            cal.margins[key] = cal.margin(np.maximum(known[..., 0] - cal.target, cal.target - known[..., 1]), coverage)
        return cal.margins[key]

    def _jackknife_plus(self, leaves: Leaves, coverage: float) -> Floats:
        """Return intervals by jackknife+ after bootstrap (Kim, Xu and Barber 2020).

        Each training row i contributes the mean prediction of the trees grown without it, plus and minus its
        out-of-bag error; the ends are quantiles of these values.
        """
        cal, errors = self.calibration, self.calibration.errors
        value = self.forest.engine.value.reshape(-1, self.forest.engine.value_width)
        needed = weight_needed(len(errors), cal.weight, coverage)
        found = np.empty((len(leaves), errors.shape[1], 2))
        n_block = max(1, _BLOCK_NUMBERS // leaves.shape[1])
        for begin in range(0, len(leaves), n_block):
            block = slice(begin, begin + n_block)
            nodes = leaves[block].astype(np.intp) + self.forest.root[:-1]
            for k in range(errors.shape[1]):
                error = np.ascontiguousarray(errors[:, k])
                by_tree = np.ascontiguousarray(value[nodes, k])
                found[block, k] = _engine.jackknife_plus(
                    by_tree, cal.unseen_bits, error, cal.weight, needed, self.n_jobs
                )
        return found


_BLOCK_UNITS = 8192
_MOST_SMALL = 2**16 - 1  # draws of a unit that 16 bits can count
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class VarianceForm:
    """The variance of a mean over trees as a quadratic form.

    Attributes
    ----------
    matrix : ndarray of shape (n_trees, n_trees)
        The variance is d' matrix d, where d = f - f̄.
    noise : float
        Factor of sum(d²): the bias of the variance by the finite number of trees.
    """

    matrix: Floats
    noise: float

    def variances(self, predicted: Floats, corrected: bool) -> Floats:
        """Return the variance for each row of the predictions of all trees, (n_rows, n_trees)."""
        deviation = predicted - predicted.mean(axis=1, keepdims=True)
        found = np.einsum("rt,rt->r", deviation @ self.matrix, deviation)
        return np.asarray(found - self.noise * (deviation**2).sum(axis=1) if corrected else found)


@dataclass(frozen=True)
class DrawnUnits:
    """How often each unit of sampling was drawn for each tree.

    Attributes
    ----------
    counts : ndarray of shape (n_trees, n_units)
    copies : ndarray of shape (n_units,)
        Whole weight of each unit.
    available, drawn : ndarray of shape (n_units,)
        Number of entries in the unit's stratum, and how many of them are drawn for a tree.
    replace : bool
    """

    counts: NDArray[Any]
    copies: NDArray[np.intp]
    available: NDArray[np.intp]
    drawn: NDArray[np.intp]
    replace: bool

    @classmethod
    def of(cls, draws: Draws, n_trees: int) -> DrawnUnits:
        """Repeat the draws of all trees."""
        units, copies, available, drawn = [], [], [], []
        for stratum, n_drawn in zip(draws.strata, draws.n_drawn, strict=True):
            unit, times = np.unique(stratum, return_counts=True)
            units.append(unit)
            copies.append(times)
            available.append(np.full(len(unit), len(stratum)))
            drawn.append(np.full(len(unit), n_drawn))
        labels, first_row = np.unique(draws.unit_of_row, return_index=True)
        rows = first_row[np.searchsorted(labels, np.concatenate(units))]
        counts: NDArray[Any] = np.empty((n_trees, len(rows)), dtype=np.uint16)
        for t in range(n_trees):
            drawn_now = draws.counts(t)[rows]
            if counts.dtype == np.uint16 and drawn_now.max(initial=0) > _MOST_SMALL:
                counts = counts.astype(np.uint32)
            counts[t] = drawn_now
        return cls(
            counts, np.concatenate(copies), np.concatenate(available), np.concatenate(drawn), bool(draws.replace)
        )

    def gram(self, scale: Floats, unseen: bool) -> Floats:
        """Return, for each pair of trees, the scaled sum over units of the products of their counts or absences."""
        n_trees = len(self.counts)
        total = np.zeros((n_trees, n_trees))
        for begin in range(0, self.counts.shape[1], _BLOCK_UNITS):
            block = slice(begin, begin + _BLOCK_UNITS)
            part = self.counts[:, block]
            factor = (part == 0).astype(np.float64) if unseen else part.astype(np.float64)
            total += (factor * scale[block]) @ factor.T
        return total


def infinitesimal_jackknife(units: DrawnUnits) -> VarianceForm:
    """Return the variance as the sum over units of the squared covariance of N[u] and f.

    Without replacement it is inflated by (n - 1)/n · (n/(n - s))² for s of n drawn (Wager and Athey 2018). A unit of c
    copies stands for c units, among which its covariance is divided evenly, so that its square counts 1/c.
    """
    n_trees = len(units.counts)
    scale = 1.0 / units.copies
    if not units.replace:
        if (units.available == units.drawn).any():
            raise ValueError(
                "The infinitesimal jackknife compares trees that have drawn a row with trees that have not, but here "
                "every tree has drawn all rows. Lower max_samples, or set replace=True."
            )
        n, s = units.available, units.drawn
        scale = scale * ((n - 1) / n) * (n / (n - s)) ** 2
    gram = units.gram(scale, unseen=False)
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, np.newaxis] + gram.mean()
    return VarianceForm(gram / n_trees**2, float(np.trace(gram)) / n_trees**3)


def jackknife(units: DrawnUnits) -> VarianceForm:
    """Return the variance as (n - 1)/n times the sum over units of the squared change of the mean without the unit."""
    if not units.replace:
        raise ValueError(
            "The jackknife after bootstrap needs samples with replacement. Use method='infinitesimal', or fit with "
            "replace=True."
        )
    if (units.copies > 1).any():
        raise ValueError(
            "The jackknife after bootstrap leaves out one row at a time, which whole weights above 1 do not allow. Use "
            "method='infinitesimal'."
        )
    n_trees = len(units.counts)
    n_unseen = (units.counts == 0).sum(axis=0)
    lacking = int(np.count_nonzero(n_unseen == 0))
    if lacking == len(n_unseen):
        raise ValueError("Every row was drawn for every tree. Grow more trees, or draw fewer rows with max_samples.")
    if lacking:
        warn(
            f"{lacking} rows (or groups) were drawn for every tree; the jackknife assumes that they contribute as much "
            "as the others. Grow more trees."
        )
    scale = (units.available - 1) / units.available * (len(n_unseen) / (len(n_unseen) - lacking))
    per_tree = np.divide(scale, n_unseen.astype(float), out=np.zeros(len(scale)), where=n_unseen > 0)
    by_square = np.divide(per_tree, n_unseen.astype(float), out=np.zeros(len(scale)), where=n_unseen > 0)
    noise = float((per_tree - np.where(n_unseen > 0, scale, 0.0) / n_trees).sum()) / n_trees
    return VarianceForm(units.gram(by_square, unseen=True), noise)


_FORMS = {"infinitesimal": infinitesimal_jackknife, "jackknife": jackknife}


def standard_errors(
    forest: FittedForest, leaves: NDArray[np.uint32], draws: Draws, method: str, corrected: bool
) -> Floats:
    """Return the standard error of each flat value of each row, (n_rows, value_width)."""
    if method not in _FORMS:
        raise ValueError(f"method must be 'infinitesimal' or 'jackknife', not {method!r}.")
    form = _FORMS[method](DrawnUnits.of(draws, forest.n_trees))
    width = forest.engine.value_width
    value = forest.engine.value.reshape(-1, width)
    found = np.empty((len(leaves), width))
    for begin in range(0, len(leaves), _BLOCK_ROWS):
        block = slice(begin, begin + _BLOCK_ROWS)
        nodes = leaves[block].astype(np.intp) + forest.root[:-1]
        for k in range(width):
            found[block, k] = form.variances(value[nodes, k], corrected)
    scale = np.abs(found).max(initial=0.0)
    negative = int(np.count_nonzero(found < -1e-12 * scale))
    if negative:
        warn(
            f"{negative} of {found.size} variances were negative after the correction for the number of trees and "
            "were set to 0. Grow more trees."
        )
    return np.sqrt(np.maximum(found, 0.0))


# ---- methods of forests ------------------------------------------------------------------------------------------

_NO_OUT_OF_BAG = "needs out-of-bag rows, but with bootstrap=False there are none. Fit with bootstrap=True."


def why_no_training_rows(forest: TableEstimator) -> str | None:
    """Return why a method that needs the training rows is not available; None if it is."""
    has_rows = forest._growth.rows is not None if hasattr(forest, "forest_") else forest.keep_rows
    return (
        None if has_rows else "needs the training rows, which this forest does not store. Fit it with keep_rows=True."
    )


def why_no_out_of_bag_rows(forest: TableEstimator) -> str | None:
    """Return why a method that needs out-of-bag rows is not available; None if it is."""
    has_draws = forest._growth.draws is not None if hasattr(forest, "forest_") else forest.bootstrap
    return why_no_training_rows(forest) or (None if has_draws else _NO_OUT_OF_BAG)


def _intervals(forest: TableEstimator) -> ForestIntervals:
    check_is_fitted(forest)
    return ForestIntervals(forest.forest_, forest._growth.rows, forest._n_threads)


def _leaves(forest: TableEstimator, X: TableLike, oob: bool = False) -> NDArray[np.uint32]:
    """Return the leaves of rows; with `oob`, those of training rows in the trees that were grown without them."""
    if not oob:
        return np.asarray(forest.forest_.engine.apply(forest._columns(X), forest._n_threads))
    known = _intervals(forest).known
    if known.draws is None:
        raise ValueError(f"oob=True {_NO_OUT_OF_BAG}")
    if X is not None:
        forest._training_columns(X, known.n_rows, "oob=True is for the training rows: pass these, or None.")
    return known.unseen_leaves


def _without_single_axes(found: Floats, is_scalar: bool) -> Floats:
    """Return numbers by row, output and level without the axis of a single output, or of a scalar level."""
    found = found[:, 0] if found.shape[1] == 1 else found
    return np.asarray(found[..., 0] if is_scalar else found)


@only_if(why_no_training_rows)
def leaf_weights(forest: TableEstimator, X: TableLike = None, *, oob: bool = False) -> csr_array:
    """Return the weight of each training row in the prediction for each row.

    In each tree, a training row in the leaf of the predicted row gets its fraction of the leaf's weight, and others get
    0. These weights are averaged over the trees, so that they add up to 1 for each predicted row. They define a
    conditional distribution of the target (Meinshausen 2006): ``leaf_weights(X) @ y`` is the mean that a regression
    forest with squared error predicts. Requires ``keep_rows=True``.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    oob : bool, default=False
        For the training rows (`X` may be None): use only the trees grown without the row.

    Returns
    -------
    csr_array of shape (n_samples, n_training_rows)
        Weights.
    """
    return _intervals(forest).weights(_leaves(forest, X, oob))


def predict_standard_error(
    forest: TableEstimator,
    X: TableLike,
    method: Literal["infinitesimal", "jackknife"] = "infinitesimal",
    *,
    corrected: bool = True,
) -> Floats:
    """Estimate the standard error of each prediction over training samples of the same size.

    The standard error measures the uncertainty of the mean (or of the class probabilities), not the spread of single
    targets, for which see `predict_interval`. The estimate uses the samples of the trees (Wager, Hastie and Efron
    2014).

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    method : {"infinitesimal", "jackknife"}, default="infinitesimal"
        The infinitesimal jackknife, or the jackknife after bootstrap. The first supports samples with and without
        replacement, integer weights and strata, the second only samples with replacement. Groups are left out as a
        whole.
    corrected : bool, default=True
        Whether to subtract the bias that the limited number of trees adds to the variance. Variances that become
        negative are set to 0, with a warning: more trees are needed then.

    Returns
    -------
    ndarray of shape (n_samples,), (n_samples, n_outputs) or (n_samples, n_classes), or a list of the last
        Standard errors, in the shape of `predict` for regressors and of `predict_proba` for classifiers.
    """
    check_is_fitted(forest)
    try:
        draws = forest._draws
    except AttributeError as error:
        raise ValueError(f"Standard errors need the samples of the trees. {error}") from None
    if forest.forest_.n_trees < 2:
        raise ValueError("Standard errors need at least 2 trees, and hundreds for a good estimate. Raise n_estimators.")
    trees: FittedForest = forest.forest_
    return trees.by_output(standard_errors(forest.forest_, _leaves(forest, X), draws, method, corrected))


@only_if(why_no_out_of_bag_rows)
def predict_set(
    forest: TableEstimator, X: TableLike, coverage: float = 0.9, method: Literal["lac", "aps"] = "lac"
) -> NDArray[np.bool_]:
    """Predict a set of classes that contains the class of each row with a probability of about `coverage`.

    Sets are calibrated by the out-of-bag class probabilities of the training rows. For new rows of the same
    distribution the coverage is close to `coverage`; because new rows are predicted by all trees, it is not guaranteed.
    Requires ``keep_rows=True``.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    coverage : float, default=0.9
        Fraction of new rows whose set should contain their class.
    method : {"lac", "aps"}, default="lac"
        - "lac": classes whose probability is at least a threshold. The smallest sets on average; a set is empty where
          no class is likely enough.
        - "aps": the most probable classes until their total probability exceeds a threshold: larger sets where the
          classes are hard to distinguish. Never empty.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), bool
        Whether each class is in the set, in the order of `classes_`.
    """
    intervals = _intervals(forest)
    if forest.n_outputs_ > 1:
        raise ValueError("predict_set is for one output. Fit one forest per output.")
    proba = forest.forest_.predictions(forest._columns(X), forest._n_threads)
    return class_sets(proba, intervals.calibration.known_classes, coverage, method)


@only_if(why_no_training_rows)
def predict_quantiles(
    forest: TableEstimator,
    X: TableLike = None,
    quantiles: ArrayLike = (0.025, 0.5, 0.975),
    *,
    oob: bool = False,
) -> Floats:
    """Predict quantiles of the target from the training rows in the leaves (a quantile regression forest).

    The q-quantile is the smallest target at or below which at least the fraction q of the weights of `leaf_weights`
    lies: the inverse of the distribution function, always one of the training targets. Requires ``keep_rows=True``.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    quantiles : float or sequence of float, default=(0.025, 0.5, 0.975)
        Between 0 and 1, in any order.
    oob : bool, default=False
        For the training rows (`X` may be None): use only the trees grown without the row. NaN if there is none.

    Returns
    -------
    ndarray of shape (n_samples, n_quantiles) or (n_samples, n_outputs, n_quantiles)
        Quantiles; without the last axis if `quantiles` is one number.
    """
    levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if levels.ndim != 1 or len(levels) == 0 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"quantiles must be numbers between 0 and 1, not {quantiles!r}.")
    return _without_single_axes(_intervals(forest).quantiles(_leaves(forest, X, oob), levels), np.ndim(quantiles) == 0)


@only_if(why_no_training_rows)
def predict_cdf(forest: TableEstimator, X: TableLike, values: ArrayLike) -> Floats:
    """Predict the probability that the target is at most each of some values.

    Requires ``keep_rows=True``.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    values : float or sequence of float
        Where to evaluate the distribution function.

    Returns
    -------
    ndarray of shape (n_samples, n_values) or (n_samples, n_outputs, n_values)
        Probabilities by the weights of `leaf_weights`; without the last axis if `values` is one number.
    """
    at = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return _without_single_axes(_intervals(forest).cdf(_leaves(forest, X), at), np.ndim(values) == 0)


@only_if(why_no_out_of_bag_rows)
def predict_interval(
    forest: TableEstimator,
    X: TableLike,
    coverage: float = 0.9,
    method: Literal["quantile", "jackknife+", "residual"] = "quantile",
) -> Floats:
    """Predict an interval that contains the target of each row with a probability of about `coverage`.

    Requires ``keep_rows=True``.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    coverage : float, default=0.9
        Fraction of new rows whose interval should contain the target.
    method : {"quantile", "jackknife+", "residual"}, default="quantile"
        - "quantile": quantiles of the forest, widened or narrowed until the out-of-bag intervals of the training rows
          have the coverage (conformalised quantile regression). The width adapts to each row, and the ends stay within
          the range of the training targets, unless there are very few rows. The coverage is close to `coverage` in
          practice, without a guarantee for small samples.
        - "jackknife+": jackknife+ after bootstrap: nearly the same width for all rows. For rows that are exchangeable
          with the training rows, the coverage is at least 1 - 2 (1 - `coverage`) for any distribution, by a theorem
          that assumes a random number of trees; in practice it is close to `coverage`. The time grows with the number
          of rows times the number of training rows.
        - "residual": the prediction plus and minus a quantile of the out-of-bag errors: the same width for all rows.
          The coverage is close to `coverage`, without a guarantee, as with "quantile".

    Returns
    -------
    ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
        Lower and upper ends, for each output; infinite if there are too few training rows for the coverage.

    Notes
    -----
    Calibration leaves out rows of weight 0 and training rows that were drawn for every tree, which have no out-of-bag
    error. The other rows count by their weights. Rows of a group are left out together, so that the errors are those of
    new groups.
    """
    check_coverage(coverage)
    return _without_single_axes(_intervals(forest).interval(forest._columns(X), coverage, method), False)
