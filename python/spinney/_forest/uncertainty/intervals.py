"""What forests say of how sure they are: quantiles, standard errors, intervals, sets of classes, support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from spinney._estimator import abstention
from spinney._estimator.attributes import only_if
from spinney._estimator.conformal import check_coverage, class_sets
from spinney._forest.growing.training_rows import TrainingRows
from spinney._forest.uncertainty.conformal import Calibration, jackknife_plus
from spinney._forest.uncertainty.standard_errors import standard_errors
from spinney.inspect.explain import coverage

if TYPE_CHECKING:
    import spinney._engine as _engine
    from spinney._data import Schema
    from spinney._forest.growing.rows import Draws
    from spinney._model.forest import FittedForest

Floats = NDArray[np.float64]
Leaves = NDArray[np.uint32]


_NONE_UNSEEN = "needs trees that have not seen every row, but with bootstrap=False all have. Fit with bootstrap=True."


def _why_no_rows(model: Any) -> str | None:
    is_kept = vars(model).get("_training_rows") is not None if hasattr(model, "forest_") else model.keep_rows
    if is_kept:
        return None
    return "needs the training rows in the leaves, which this forest does not keep. Fit it with keep_rows=True."


def _why_none_unseen(model: Any) -> str | None:
    why = _why_no_rows(model)
    if why is not None:
        return why
    has_unseen = model._training_rows.draws is not None if hasattr(model, "forest_") else model.bootstrap
    return None if has_unseen else _NONE_UNSEEN


class UncertainForest:
    """What forests of classes and of values share."""

    predict_support = abstention.predict_support
    predict_or_abstain = abstention.predict_or_abstain

    if TYPE_CHECKING:
        forest_: FittedForest
        schema_: Schema
        n_outputs_: int
        _n_threads: int

        def _columns(self, X: Any) -> _engine.Table: ...
        def _training_columns(self, X: Any, n_rows: int, advice: str = ...) -> _engine.Table: ...
        def _known_draws(self) -> Draws: ...

    def _kept_rows(self, *, oob: bool = False) -> TrainingRows:
        """Return the training rows, for methods that are there only if they are kept."""
        check_is_fitted(self)
        kept: TrainingRows = self._training_rows  # type: ignore[attr-defined]
        if oob and kept.draws is None:
            raise ValueError(f"oob=True {_NONE_UNSEEN}")
        return kept

    def _calibration(self) -> Calibration:
        kept = self._kept_rows()
        if "calibration" not in kept.memo:
            kept.memo["calibration"] = Calibration(self.forest_, kept)
        found: Calibration = kept.memo["calibration"]
        return found

    def _leaves(self, X: Any) -> Leaves:
        return self.forest_.engine.apply(self._columns(X), self._n_threads)

    def _training_leaves(self, X: Any, kept: TrainingRows) -> Leaves:
        """Leaves of the training rows in the trees that have not seen them."""
        if X is not None:
            self._training_columns(X, kept.n_rows, "oob=True is for the training rows: pass these, or None.")
        return kept.unseen_leaves

    @only_if(_why_no_rows)
    def leaf_weights(self, X: Any = None, *, oob: bool = False) -> csr_array:
        """Weight of each training row in the prediction for each row.

        A training row weighs in by its share of the leaf that both fall into, averaged over the trees; the weights of
        a row add up to 1. They are a conditional distribution of the target (Meinshausen 2006): ``leaf_weights(X) @ y``
        is the mean that a regression forest with squared error predicts.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        oob : bool, default=False
            For the training rows (`X` may be None): use only the trees that have not seen each.

        Returns
        -------
        csr_array of shape (n_samples, n_training_rows)
            Weights.
        """
        kept = self._kept_rows(oob=oob)
        leaves = self._training_leaves(X, kept) if oob else self._leaves(X)
        start, row, weight = kept.engine.weights(leaves, self._n_threads)
        kind = np.int32 if len(row) < 2**31 else np.int64
        return csr_array((weight, row.astype(kind), start.astype(kind)), shape=(len(leaves), kept.n_rows))

    def predict_standard_error(
        self, X: Any, method: str = "infinitesimal", *, corrected: bool = True
    ) -> Floats | list[Floats]:
        """Estimate how much each prediction would vary with another training sample of this size.

        It says how well the forest knows the mean (or the class shares), not how far single targets lie from it; for
        that see `predict_interval`. Estimated from which rows each tree has drawn (Wager, Hastie and Efron 2014).

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        method : {"infinitesimal", "jackknife"}, default="infinitesimal"
            The infinitesimal jackknife, or the jackknife after bootstrap. The first goes with samples with and without
            replacement, whole weights and strata, the second with replacement only. Groups are left out as a whole.
        corrected : bool, default=True
            Subtract what the limited number of trees adds to the variance on average. A variance that falls below 0
            is set to 0, with a warning: then more trees are needed.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_outputs) or (n_samples, n_classes), or a list of the last
            Standard errors, in the shape of `predict` for values and of `predict_proba` for classes.
        """
        check_is_fitted(self)
        try:
            draws = self._known_draws()
        except AttributeError as error:
            raise ValueError(f"Standard errors need to know which rows each tree has drawn. {error}") from None
        if self.forest_.n_trees < 2:
            raise ValueError("Standard errors need at least 2 trees; hundreds are better.")
        found = standard_errors(self.forest_, self._leaves(X), draws, method, corrected)
        return self.forest_.spread(found)

    def _effective_rows(self, columns: _engine.Table) -> Floats | None:
        kept: TrainingRows | None = getattr(self, "_training_rows", None)
        if kept is None:
            return None
        leaves = self.forest_.engine.apply(self.schema_.combined(columns), self._n_threads)
        return kept.engine.effective_rows(leaves, self._n_threads)


class UncertainValues(UncertainForest):
    """A forest for numbers."""

    _not_here: ClassVar[dict[str, str]] = {
        "predict_set": "is for classes; this forest learns numbers. Use predict_interval.",
    }

    @only_if(_why_no_rows)
    def predict_quantiles(self, X: Any = None, quantiles: Any = (0.025, 0.5, 0.975), *, oob: bool = False) -> Floats:
        """Quantiles of the target for each row, from the training rows in its leaves (a quantile regression forest).

        The q-quantile is the smallest target at or below which at least the share q of the weights of `leaf_weights`
        lies: the inverse of the distribution function, always a target that occurred.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        quantiles : float or sequence of float, default=(0.025, 0.5, 0.975)
            Between 0 and 1, in any order.
        oob : bool, default=False
            For the training rows (`X` may be None): use only the trees that have not seen each. NaN if all have.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles) or (n_samples, n_outputs, n_quantiles)
            Quantiles; without the last axis if `quantiles` is one number.
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if levels.ndim != 1 or len(levels) == 0 or not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"quantiles must be numbers between 0 and 1, not {quantiles!r}.")
        kept = self._kept_rows(oob=oob)
        leaves = self._training_leaves(X, kept) if oob else self._leaves(X)
        found = self._quantiles(kept, leaves, levels)
        found = found[:, 0] if kept.target.shape[1] == 1 else found
        return found[..., 0] if np.ndim(quantiles) == 0 else found

    def _quantiles(self, kept: TrainingRows, leaves: Leaves, levels: Floats) -> Floats:
        order = np.argsort(levels, kind="stable")
        found = np.empty((len(leaves), len(kept.places), len(levels)))
        for k, (place, target) in enumerate(kept.places):
            flat = kept.engine.quantiles(leaves, place, target, np.ascontiguousarray(levels[order]), self._n_threads)
            found[:, k, order] = flat.reshape(len(leaves), len(levels))
        return found

    @only_if(_why_no_rows)
    def predict_cdf(self, X: Any, values: Any) -> Floats:
        """Probability that the target is at most each of some values, for each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        values : float or sequence of float
            Where to evaluate the distribution function.

        Returns
        -------
        ndarray of shape (n_samples, n_values) or (n_samples, n_outputs, n_values)
            Shares of the weights of `leaf_weights`; without the last axis if `values` is one number.
        """
        kept = self._kept_rows()
        at = np.atleast_1d(np.asarray(values, dtype=np.float64))
        weights = self.leaf_weights(X)
        parts = [weights @ (y[:, np.newaxis] <= at).astype(np.float64) for y in kept.target.T]
        found = np.clip(np.stack(parts, axis=1), 0.0, 1.0)
        found = found[:, 0] if kept.target.shape[1] == 1 else found
        return np.asarray(found[..., 0] if np.ndim(values) == 0 else found)

    @only_if(_why_none_unseen)
    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "quantile") -> Floats:
        """Interval that holds the target of each row with a probability of about `coverage`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Share of new rows whose interval is to hold the target.
        method : {"quantile", "jackknife+", "residual"}, default="quantile"
            - "quantile": quantiles of the forest, widened or narrowed by what makes them cover the training rows out
              of bag (conformalised quantile regression): as wide as each row needs, and never beyond the targets that
              occurred, unless the training rows are too few to tell. Close to `coverage` in practice, without a
              guarantee for small samples.
            - "jackknife+": jackknife+ after bootstrap: nearly one width for all rows. For rows like the training rows
              (exchangeable with them) the coverage is at least 1 - 2 (1 - coverage) whatever the distribution, up to
              the randomness of the number of trees that the theorem asks for; in practice it is close to `coverage`.
              Work grows with the number of rows times the number of training rows.
            - "residual": the prediction plus and minus a quantile of the out-of-bag errors: one width for all rows.
              Guarantees as "quantile".

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends; infinite if there are too few training rows for the coverage. With several outputs
            each has its own interval.

        Notes
        -----
        Training rows that were drawn for every tree have no out-of-bag error and do not count; rows of weight 0 do not
        either, and others count as much as they weigh. Rows of a group are left out together, so that the errors are
        those on new groups.
        """
        check_coverage(coverage)
        leaves, cal = self._leaves(X), self._calibration()
        if method == "quantile":
            found = self._widened_quantiles(leaves, cal, coverage)
        elif method == "jackknife+":
            found = jackknife_plus(self.forest_, leaves, cal, coverage, self._n_threads)
        elif method == "residual":
            found = self._around_predictions(X, cal, coverage)
        else:
            raise ValueError(f"method must be 'quantile', 'jackknife+' or 'residual', not {method!r}.")
        return found[:, 0] if self.n_outputs_ == 1 else found

    def _around_predictions(self, X: Any, cal: Calibration, coverage: float) -> Floats:
        centre = self.forest_.predictions(self._columns(X), self._n_threads)
        errors = np.abs(cal.target - cal.means)
        margin = np.array([cal.margin(errors[:, k], coverage) for k in range(errors.shape[1])])
        return np.stack([centre - margin, centre + margin], axis=-1)

    def _widened_quantiles(self, leaves: Leaves, cal: Calibration, coverage: float) -> Floats:
        levels = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        margin = self._margins(cal, levels, coverage)
        found = self._quantiles(cal.kept, leaves, levels)
        ends = np.stack([found[..., 0] - margin, found[..., 1] + margin], axis=-1)
        crossed = ends[..., 0] > ends[..., 1]  # a negative margin wider than the quantiles are apart
        ends = np.where(crossed[..., np.newaxis], found.mean(axis=-1, keepdims=True), ends)
        # A new target lies beyond those that occurred with a probability of at most twice one row's share: ends that
        # stop there lose no more than that.
        if 2 * cal.share_of_one > (1 - coverage) / 10:
            return ends
        lowest, highest = cal.target.min(axis=0)[:, np.newaxis], cal.target.max(axis=0)[:, np.newaxis]
        return np.clip(ends, lowest, highest)

    def _margins(self, cal: Calibration, levels: Floats, coverage: float) -> Floats:
        """Return how far targets lie beyond out-of-bag quantiles, as `coverage` of the rows do at most, by output."""
        memo, key = cal.kept.memo, ("margins", *levels.tolist(), coverage)
        if key not in memo:
            known = self._quantiles(cal.kept, np.ascontiguousarray(cal.kept.unseen_leaves[cal.rows]), levels)
            beyond = np.maximum(known[..., 0] - cal.target, cal.target - known[..., 1])
            memo[key] = np.array([cal.margin(scores, coverage) for scores in beyond.T])
        found: Floats = memo[key]
        return found

    coverage_report = only_if(_why_none_unseen)(coverage.coverage_report)


class UncertainClasses(UncertainForest):
    """A forest for classes."""

    _not_here: ClassVar[dict[str, str]] = {
        "predict_quantiles": "is for numbers; this forest learns classes. Use predict_proba or predict_set.",
        "predict_cdf": "is for numbers; this forest learns classes. Use predict_proba or predict_set.",
        "predict_interval": "is for numbers; this forest learns classes. Use predict_set.",
    }

    if TYPE_CHECKING:
        classes_: Any

    @only_if(_why_none_unseen)
    def predict_set(self, X: Any, coverage: float = 0.9, method: str = "lac") -> NDArray[np.bool_]:
        """Set of classes that holds the class of each row with a probability of about `coverage`.

        Sets are calibrated by the out-of-bag class shares of the training rows. For new rows like these the coverage is
        close to what is asked for; as the shares of new rows come from all trees, this is not guaranteed.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Share of new rows whose set is to hold their class.
        method : {"lac", "aps"}, default="lac"
            - "lac": classes whose share is at least a threshold. The smallest sets on average; a set is empty where no
              class is likely enough.
            - "aps": the most probable classes until their shares exceed a threshold together: sets that grow where the
              classes are hard to tell apart. Never empty.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), bool
            Whether each class is in the set, in the order of `classes_`.
        """
        cal = self._calibration()
        if self.n_outputs_ > 1:
            raise ValueError("predict_set is for one output. Fit one forest per output.")
        proba = self.forest_.predictions(self._columns(X), self._n_threads)
        return class_sets(proba, cal.known_classes, coverage, method)

    coverage_report = only_if(_why_none_unseen)(coverage.coverage_report)
