"""How sure a boosted model is: intervals and sets of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.rounds.calibration import Calibration
from spinney._estimator import abstention
from spinney._estimator.attributes import only_if
from spinney._estimator.conformal import KnownClasses, check_coverage, class_sets
from spinney._estimator.target import read_weights
from spinney.inspect.explain import coverage

if TYPE_CHECKING:
    from spinney._data import Schema
    from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]
METHODS = ("scaled", "residual")


def _why_not_calibrated(model: Any) -> str | None:
    if getattr(model, "n_outputs_", 1) > 1:
        return "is for one output. Several quantiles are intervals themselves; else fit one model per output."
    if not hasattr(model, "boosting_"):
        return None  # whether there will be folds is not known yet
    if hasattr(model, "_calibration"):
        return None
    return (
        "needs rows that the model has not learned from. Call calibrate(X, y) with some, or fit with nothing said of "
        "rounds and early stopping: then each row is held out."
    )


class CertainBoosting:
    """What boosted classifiers and regressors share."""

    predict_support = abstention.predict_support
    predict_or_abstain = abstention.predict_or_abstain

    if TYPE_CHECKING:
        schema_: Schema
        boosting_: FittedBoosting
        _n_threads: int

        def _scores(self, X: Any, offset: Any) -> Floats: ...
        def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = ...) -> Floats: ...
        def predict(self, X: Any, *, offset: Any = None) -> NDArray[Any]: ...

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None) -> Any:
        """Learn how far off predictions are, from rows that the model has not learned from.

        Intervals and sets of classes are calibrated by them from now on. The predictions stay as they are.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows that had no part in the fit, not even to stop it.
        y : array-like of shape (n_samples,)
            Their target.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Returns
        -------
        self
            The estimator.
        """
        check_is_fitted(self)
        if self.boosting_.n_outputs > 1:
            raise ValueError("calibrate is for one output. Fit one model per output.")
        predicted = self.boosting_.predicted(self._scores(X, offset))
        target = self._known_target(y, len(predicted), self.__dict__)
        self._calibration = Calibration.of(predicted, target, read_weights(sample_weight, len(predicted)))
        return self

    def _calibrated(self) -> Calibration:
        check_is_fitted(self)
        found: Calibration = self._calibration
        return found


class CertainValues(CertainBoosting):
    """A boosted model of values."""

    @only_if(_why_not_calibrated)
    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "scaled", *, offset: Any = None) -> Floats:
        """Interval that holds the target of each row with a probability of about `coverage`.

        The errors that calibrate it are of rows not learned from: with nothing set, of each row by the booster that
        held it out, made smaller by as much as the mean of the boosters errs less than each of them, which rows tell
        that two have held out; else of the rows that `calibrate` was given. Of the latter the coverage is at least what
        is asked for, whatever the distribution, if new rows are like them. Of the former it is close to that.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Share of new rows whose interval is to hold their target.
        method : {"scaled", "residual"}, default="scaled"
            - "scaled": as wide as the errors of rows with predictions near this one ask for.
            - "residual": of one width for all rows.
        offset : array-like of shape (n_samples,), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends; infinite where the rows that calibrate are too few.
        """
        check_coverage(coverage)
        if method not in METHODS:
            raise ValueError(f"method must be 'scaled' or 'residual', not {method!r}.")
        known = self._calibrated()
        centre = self.boosting_.predicted(self._scores(X, offset))[:, 0]
        margin = known.margins(centre, float(coverage), method)
        low = centre - margin
        return np.column_stack([np.maximum(low, 0.0) if self.boosting_.link == "log" else low, centre + margin])

    coverage_report = only_if(_why_not_calibrated)(coverage.coverage_report)


class CertainClasses(CertainBoosting):
    """A boosted model of classes."""

    @only_if(_why_not_calibrated)
    def predict_set(
        self, X: Any, coverage: float = 0.9, method: str = "lac", *, offset: Any = None
    ) -> NDArray[np.bool_]:
        """Set of classes that holds the class of each row with a probability of about `coverage`.

        Sets are calibrated by the shares of rows not learned from, as intervals of values are: with nothing set, by the
        booster that held each row out; else of the rows that `calibrate` was given.

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
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), bool
            Whether each class is in the set, in the order of `classes_`.
        """
        known = self._calibrated()
        proba = self.boosting_.predicted(self._scores(X, offset))
        rows = KnownClasses(known.predicted, known.target.astype(np.intp), known.weight)
        return class_sets(proba, rows, coverage, method)

    coverage_report = only_if(_why_not_calibrated)(coverage.coverage_report)
