"""What a bagging ensemble says of its training rows, each by the members that have not seen it: out of bag."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._data.select import PickTable
from spinney._ensemble.out_of_bag import Metric, OutOfBag, Values, Weights, mean_loss, scored
from spinney._ensemble.resampling import Places, Sampling, out_of
from spinney._estimator.row_fingerprint import RowPrint, refuse_other_rows
from spinney._estimator.target import read_weights
from spinney._estimator.threads import count_threads, in_order


class JudgesUnseenRows:
    """Mixin for bagging: errors out of bag."""

    _oob_name: ClassVar[str]  # attribute of the predictions

    if TYPE_CHECKING:
        estimators_: list[Any]
        _draws: list[tuple[Sampling, int]]
        oob_score: Any
        n_jobs: int | None

        def _matched(self, X: Any) -> PickTable: ...

    # ---- what differs between classes and values -----------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[Any, dict[str, Any]]:
        """Check y; return what members get to see of it, and fitted attributes."""

    @abstractmethod
    def _say(self, member: Any, X: Any, **params: Any) -> Values:
        """Return what a member, given these parameters, says of some rows: (n_rows, n_values), to be averaged."""

    @abstractmethod
    def _row_losses(self, target: Any, mean: Values) -> Values:
        """Loss of each row for the error curve."""

    @abstractmethod
    def _answers(self, mean: Values) -> NDArray[Any]:
        """Return what is predicted, given what members say on average."""

    @abstractmethod
    def _own_score(self, actual: Any, answers: NDArray[Any], weight: Weights) -> float:
        """Score if no metric is named."""

    @abstractmethod
    def _as_model(self, mean: Values) -> Any:
        """Return a model that says this, for scorers."""

    def _shaped(self, mean: Values) -> Values:
        """Return out-of-bag means in the shape of their attribute."""
        return mean

    # ---- rows that members have not seen -------------------------------------------------------------

    @property
    def estimators_samples_(self) -> list[Places]:
        """Rows that each member was fitted to; those drawn twice are there twice. Drawn again at every call."""
        return [sampling.draw(seed)[1] for sampling, seed in self._known_draws()]

    def _known_draws(self) -> list[tuple[Sampling, int]]:
        check_is_fitted(self)
        if not hasattr(self, "_draws"):
            raise AttributeError("A model file does not keep which rows were drawn. Pickle the model, or fit it again.")
        draws: list[tuple[Sampling, int]] = self._draws
        return draws

    def _out_of_bag(self, table: PickTable, first: int = 0) -> Iterator[tuple[NDArray[np.bool_], Values]]:
        """Yield for each member from the first the rows it has not seen, and what it says of them."""

        def say(k: int) -> tuple[NDArray[np.bool_], Values]:
            sampling, seed = self._draws[first + k]
            columns, rows = sampling.draw(seed)
            left_out = out_of(rows, table.n_rows)
            if not left_out.any():
                return left_out, np.empty((0, 0))
            X = table.take(np.flatnonzero(left_out), None if sampling.takes_all_columns else columns)
            return left_out, self._say(self.estimators_[first + k], X)

        n_members = len(self.estimators_) - first
        if n_members:
            yield from in_order(say, n_members, count_threads(self.n_jobs, n_members))

    def _learn_oob(self, oob: OutOfBag, target: Any, weight: Weights) -> dict[str, Any]:
        mean = oob.mean
        has_value = ~np.isnan(mean[:, 0])
        if not has_value.all():
            warnings.warn(
                f"Some inputs do not have OOB scores: {int((~has_value).sum())} rows are in the samples of all members "
                "and left out of the score. More members leave fewer such rows.",
                UserWarning,
                stacklevel=3,
            )
        if not has_value.any():
            raise ValueError("No row is out of bag: every member has seen all rows. Fit more members.")
        metric = None if isinstance(self.oob_score, (bool, np.bool_)) else self.oob_score
        score = self._oob_value(metric, target, mean, weight)
        return {"oob_curve_": np.array(oob.curve), "oob_score_": score, self._oob_name: self._shaped(mean)}

    def oob_errors(
        self, X: Any = None, y: Any = None, metric: Metric | str | None = None, *, sample_weight: Any = None
    ) -> Values:
        """Error out of bag after the first member, the first two, and so on, by any metric.

        Each row is judged by the members that have not seen it; rows that all of them have seen are left out.

        Parameters
        ----------
        X, y : optional
            What the ensemble was fitted to. Not needed if it was fitted with `oob_score` and `metric` is None.
        metric : callable, str or None, default=None
            ``metric(y, predicted)``, or a scikit-learn scorer by name; None: share of wrong classes, or mean squared
            error.
        sample_weight : array-like of shape (n_samples,), optional
            Weights for the error without a metric, and for scorers; rows of weight 0 are not judged.

        Returns
        -------
        ndarray of shape (n_estimators,)
            NaN while no row is out of bag.
        """
        check_is_fitted(self)
        if X is None or y is None:
            if metric is not None or not hasattr(self, "oob_curve_"):
                raise ValueError(
                    "Pass X and y as they were at fit. Without them there is only the curve that oob_score=True keeps."
                )
            return np.array(self.oob_curve_)
        table, n_rows = self._matched(X), self._known_draws()[0][0].n_rows
        if table.n_rows != n_rows:
            raise ValueError(
                f"The ensemble was fitted to {n_rows} rows and X has {table.n_rows}. Pass the rows it "
                "was fitted to, in the same order."
            )
        target, _ = self._read_target(y, table.n_rows)
        self._check_rows(table, target)
        weight = read_weights(sample_weight, table.n_rows)
        oob, found = OutOfBag(table.n_rows), []
        for left_out, said in self._out_of_bag(table):
            oob.add(left_out, said)
            mean = oob.mean
            if metric is None:
                found.append(mean_loss(self._row_losses(target, mean), mean, weight))
            else:
                found.append(self._oob_value(metric, target, mean, weight))
        return np.array(found)

    def _row_print_of(self, table: PickTable, target: NDArray[Any]) -> RowPrint | None:
        return RowPrint.of_any(table, target, count_threads(self.n_jobs, table.n_rows))

    def _check_rows(self, table: PickTable, target: NDArray[Any]) -> None:
        """Refuse rows that are not those of the fit, as far as can be told."""
        known: RowPrint | None = getattr(self, "_row_print", None)
        given = None if known is None else self._row_print_of(table, target)
        if given != known:
            is_table = given is None or known is None or given.table != known.table
            refuse_other_rows("X" if is_table else "y", "ensemble")

    def _oob_value(self, metric: Metric | str | None, target: Any, mean: Values, weight: Weights) -> float:
        rows = ~np.isnan(mean[:, 0])
        if not rows.any():
            return float("nan")
        kept = None if weight is None else weight[rows]
        if isinstance(metric, str):
            return scored(metric, self._as_model(mean[rows]), target[rows], kept)
        if metric is not None:
            return float(metric(target[rows], self._answers(mean[rows])))
        return self._own_score(target[rows], self._answers(mean[rows]), kept)
