"""What bagged classifiers and regressors share: drawing samples, fitting members, out-of-bag sums."""

from __future__ import annotations

import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import get_scorer
from sklearn.tree import BaseDecisionTree
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from spinney._bagging.resampling import Places, Sampling, Stratum, count_columns, count_drawn, out_of, row_strata
from spinney._data.names import match_columns
from spinney._data.pick import PickTable, pick_table
from spinney._parameters import NamedParameters
from spinney._pruning.folds import read_row_groups
from spinney._target import read_weights
from spinney._threads import count_threads, in_order
from spinney._tree.base import BaseTree

_LARGEST_SEED = np.iinfo(np.int32).max
# Below this share of the rows, a copy of a member's rows is cheaper than reading past those of weight 0.
_LEAST_SHARE_BY_WEIGHT = 0.3
Values = NDArray[np.float64]
Weights = Values | None
Metric = Callable[[NDArray[Any], NDArray[Any]], float]


class BaseBagging(NamedParameters, BaseEstimator):
    """Fits members to samples of the rows and columns."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            None,
        ],
        "max_features": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right")],
        "bootstrap": ["boolean"],
        "bootstrap_features": ["boolean"],
        "oob_score": ["boolean", str, callable],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    stratified: Any = False

    # ---- what differs between classes and values -----------------------------------------------------

    @abstractmethod
    def _default_estimator(self) -> Any:
        """Return the member if none is given."""

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[Any, dict[str, Any]]:
        """Check y; return what members get to see of it, and fitted attributes."""

    @abstractmethod
    def _class_strata(self, target: Any) -> Any:
        """Labels of the strata if `stratified` is set."""

    @abstractmethod
    def _say(self, member: Any, X: Any) -> Values:
        """Return what a member says of some rows: (n_rows, n_values), to be averaged."""

    @abstractmethod
    def _row_losses(self, target: Any, mean: Values) -> Values:
        """Loss of each row for the error curve."""

    @abstractmethod
    def _oob_attributes(self, target: Any, mean: Values, weight: Weights) -> dict[str, Any]:
        """Fitted attributes from out-of-bag means, which are NaN for rows without any."""

    @abstractmethod
    def _oob_metric(self, metric: Metric, target: Any, mean: Values, rows: NDArray[np.bool_]) -> float:
        """Value of a metric on some rows."""

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, strata: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Any table that the estimator takes: NumPy array, pandas, polars or pyarrow table, scipy sparse matrix, dict
            of columns or list of rows. Members get tables of the same kind.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights. Members that take weights get them, times the number of draws; for others, rows are drawn in
            proportion to their weights. A row of weight 0 is never drawn.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are drawn together, or left out together; `max_samples` then counts groups.
        strata : array-like of shape (n_samples,), optional
            From the rows of each label their share of the sample is drawn, so that none is over-represented.
        **fit_params : dict
            For `fit` of the members; what has one value per row is cut to the rows drawn.

        Returns
        -------
        self
            The fitted ensemble.
        """
        self._validate_params()
        if isinstance(self.oob_score, str):
            get_scorer(self.oob_score)  # so that a wrong name is found before the members are fitted
        table = pick_table(X)
        target, learned = self._read_target(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        template = self._template()
        sampling = self._plan(table, template, self._strata(target, strata, table.n_rows), groups, weight)
        if self.oob_score and not sampling.leaves_rows_out:
            raise ValueError(
                "Out of bag estimation needs rows that are left out, and every member gets all of them. Set "
                "bootstrap=True, lower max_samples, or set oob_score=False."
            )
        old = self._members_to_keep(sampling)
        stream = deepcopy(self._seed_stream) if old else check_random_state(self.random_state)
        seeds = stream.randint(_LARGEST_SEED, size=self.n_estimators - len(old))
        job = _MemberFit(template, table, target, weight, sampling, fit_params)
        members = [*old, *self._fit_members(job, seeds.tolist())]
        learned |= {
            "estimator_": template,
            "estimators_": members,
            "n_features_in_": table.n_columns,
            "_column_names": table.names,
            "_draws": [*(self._draws if old else []), *((sampling, seed) for seed in seeds.tolist())],
            "_seed_stream": deepcopy(stream),
        }
        learned["estimators_features_"] = [plan.draw(seed)[0] for plan, seed in learned["_draws"]]
        if self.oob_score:
            learned |= self._with(learned)._learn_oob(table, target, weight)
        self._keep(table.names, learned)
        return self

    def _with(self, learned: dict[str, Any]) -> Self:
        """Return a copy that is fitted."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__ | learned)
        return other

    def _keep(self, names: list[str] | None, learned: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once, when the members are there."""
        for name in ("feature_names_in_", "oob_score_", "oob_decision_function_", "oob_prediction_", "_oob_errors"):
            self.__dict__.pop(name, None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.__dict__.update(learned)

    def _template(self) -> Any:
        if self.estimator is None:
            return self._default_estimator()
        return clone(self.estimator)

    def _strata(self, target: Any, strata: Any, n_rows: int) -> NDArray[np.intp] | None:
        """Return the stratum of each row."""
        if strata is not None and self.stratified:
            raise ValueError("strata and stratified both say what to draw from. Pass one of them.")
        if strata is None and not self.stratified:
            return None
        labels = self._class_strata(target) if strata is None else read_row_labels(strata, n_rows)
        return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.intp)

    def _plan(
        self, table: PickTable, template: Any, strata: NDArray[np.intp] | None, groups: Any, weight: Weights
    ) -> Sampling:
        eligible = np.ones(table.n_rows, dtype=bool) if weight is None else weight > 0
        labels = None if groups is None else read_row_groups(groups, table.n_rows)
        units, rows_of = row_strata(strata, labels, eligible)
        sizes = [len(part) for part in units]
        what = "row" if groups is None else "group"
        balanced = self.stratified == "balanced"
        numbers = count_drawn(self.max_samples, sizes, self.bootstrap, balanced, what)
        chance = None
        if weight is not None and not takes_weights(template):
            chance = weight if rows_of is None else np.array([weight[rows].sum() for rows in rows_of])
            if not self.bootstrap and numbers == sizes:
                raise ValueError(
                    f"{type(template).__name__} takes no sample_weight, and every member gets all rows, so that the "
                    "weights would have no effect. Set bootstrap=True or lower max_samples."
                )
        return Sampling(
            table.n_rows,
            table.n_columns,
            self.bootstrap,
            [
                Stratum(part, number, None if chance is None else chance[part] / chance[part].sum())
                for part, number in zip(units, numbers, strict=True)
            ],
            rows_of,
            count_columns(self.max_features, table.n_columns),
            self.bootstrap_features,
        )

    def _members_to_keep(self, sampling: Sampling) -> list[Any]:
        """Return the members that a warm start goes on from."""
        if not self.warm_start or not hasattr(self, "estimators_"):
            return []
        before = self._draws[0][0]
        if (sampling.n_rows, sampling.n_columns) != (before.n_rows, before.n_columns):
            raise ValueError(
                f"warm_start goes on from a table of {before.n_rows} rows and {before.n_columns} columns; X has "
                f"{sampling.n_rows} and {sampling.n_columns}. Pass the same table, or set warm_start=False."
            )
        n_old = len(self.estimators_)
        if n_old > self.n_estimators:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={n_old} when "
                "warm_start==True."
            )
        if n_old == self.n_estimators:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new members.",
                UserWarning,
                stacklevel=3,
            )
        return list(self.estimators_)

    def _fit_members(self, job: _MemberFit, seeds: list[int]) -> list[Any]:
        n_threads = count_threads(self.n_jobs, len(seeds)) if seeds else 1
        members, start = [], time.monotonic()
        for member in in_order(lambda k: job.fit(k, seeds[k]), len(seeds), n_threads):
            members.append(member)
            _report(len(members), len(seeds), time.monotonic() - start, self.verbose)
        return members

    # ---- out of bag ----------------------------------------------------------------------------------

    @property
    def estimators_samples_(self) -> list[Places]:
        """Rows that each member was fitted to; those drawn twice are there twice. Drawn again at every call."""
        check_is_fitted(self)
        return [sampling.draw(seed)[1] for sampling, seed in self._draws]

    def _out_of_bag(self, table: PickTable) -> Iterator[tuple[NDArray[np.bool_], Values]]:
        """Yield for each member the rows it has not seen, and what it says of them."""

        def say(k: int) -> tuple[NDArray[np.bool_], Values]:
            sampling, seed = self._draws[k]
            columns, rows = sampling.draw(seed)
            left_out = out_of(rows, table.n_rows)
            if not left_out.any():
                return left_out, np.empty((0, 0))
            X = table.take(np.flatnonzero(left_out), None if sampling.takes_all_columns else columns)
            return left_out, self._say(self.estimators_[k], X)

        yield from in_order(say, len(self.estimators_), count_threads(self.n_jobs, len(self.estimators_)))

    def _oob_means(self, table: PickTable) -> Iterator[Values]:
        """Yield the mean of the first members out of bag, (n_rows, n_values), NaN where there is none."""
        total, n_said = np.zeros((table.n_rows, 1)), np.zeros((table.n_rows, 1))
        for left_out, said in self._out_of_bag(table):
            if left_out.any():
                if total.shape[1] != said.shape[1]:
                    total = np.zeros((table.n_rows, said.shape[1]))
                total[left_out] += said
                n_said[left_out] += 1
            yield np.where(n_said > 0, total / np.maximum(n_said, 1), np.nan)

    def _learn_oob(self, table: PickTable, target: Any, weight: Weights) -> dict[str, Any]:
        errors = np.empty(len(self.estimators_))
        for k, mean in enumerate(self._oob_means(table)):
            errors[k] = self._oob_error(target, mean, weight)
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
        return {"_oob_errors": errors, **self._oob_attributes(target, mean, weight)}

    def _oob_error(self, target: Any, mean: Values, weight: Weights) -> float:
        rows = ~np.isnan(mean[:, 0])
        if weight is not None:
            rows &= weight > 0
        if not rows.any():
            return float("nan")
        losses = self._row_losses(target, mean)[rows]
        return float(np.average(losses, weights=None if weight is None else weight[rows]))

    def oob_errors(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, metric: Metric | None = None
    ) -> Values:
        """Error out of bag after the first member, the first two, and so on.

        Each row is judged by the members that have not seen it; rows that all of them have seen are left out.

        Parameters
        ----------
        X, y, sample_weight : optional
            What the ensemble was fitted to. Not needed if it was fitted with `oob_score` and `metric` is None.
        metric : callable, optional
            (y_true, y_predicted) -> number. None: share of wrong classes, mean squared error. Of sample_weight it
            knows nothing.

        Returns
        -------
        ndarray of shape (n_estimators,)
            NaN while no row is out of bag.
        """
        check_is_fitted(self)
        if X is None or y is None:
            if metric is not None or not hasattr(self, "_oob_errors"):
                raise ValueError(
                    "Pass X and y as they were at fit. Without them there is only the curve that oob_score=True keeps."
                )
            return np.array(self._oob_errors)
        table = self._matched(X)
        n_rows = self._draws[0][0].n_rows
        if table.n_rows != n_rows:
            raise ValueError(
                f"The ensemble was fitted to {n_rows} rows and X has {table.n_rows}. Pass the rows it "
                "was fitted to, in the same order."
            )
        target, _ = self._read_target(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        if metric is None:
            return np.array([self._oob_error(target, mean, weight) for mean in self._oob_means(table)])
        return np.array([self._oob_value(metric, target, mean) for mean in self._oob_means(table)])

    def _oob_value(self, metric: Metric, target: Any, mean: Values) -> float:
        rows = ~np.isnan(mean[:, 0])
        return self._oob_metric(metric, target, mean, rows) if rows.any() else float("nan")

    # ---- using ---------------------------------------------------------------------------------------

    def _matched(self, X: Any) -> PickTable:
        """Return the table with its columns as they were at fit."""
        check_is_fitted(self)
        table = pick_table(X)
        order = match_columns(
            table.names, table.n_columns, self._column_names, self.n_features_in_, type(self).__name__
        )
        return table if order is None else pick_table(table.take(columns=np.array(order)))

    def _each(self, X: Any, say: Callable[[Any, Any], Values]) -> Iterator[Values]:
        """Yield what the members say of X, in order."""
        table = self._matched(X)

        def one(k: int) -> Values:
            columns = None if self._draws[k][0].takes_all_columns else self.estimators_features_[k]
            return say(self.estimators_[k], table.take(columns=columns))

        yield from in_order(one, len(self.estimators_), count_threads(self.n_jobs, len(self.estimators_)))

    def _running_means(self, X: Any) -> Iterator[Values]:
        total: Any = 0.0
        for k, said in enumerate(self._each(X, self._say), start=1):
            total = total + said
            yield total / k

    def _mean(self, X: Any) -> Values:
        total: Any = 0.0
        for said in self._each(X, self._say):
            total = total + said
        return np.asarray(total / len(self.estimators_))

    @property
    def feature_importances_(self) -> Values:
        """Mean of the members' importances; a column that a member lacks has none there."""
        check_is_fitted(self)
        if not hasattr(self.estimators_[0], "feature_importances_"):
            raise AttributeError(f"Members of type {type(self.estimators_[0]).__name__} have no feature_importances_.")
        total = np.zeros(self.n_features_in_)
        for member, columns in zip(self.estimators_, self.estimators_features_, strict=True):
            np.add.at(total, columns, member.feature_importances_)
        return total / len(self.estimators_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        member = get_tags(self._default_estimator() if self.estimator is None else self.estimator)
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(member.input_tags, name))
        return tags


# ---- one member ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _MemberFit:
    """All that a member is fitted to; threads share it."""

    template: Any
    table: PickTable
    target: NDArray[Any]
    weight: Weights
    sampling: Sampling
    fit_params: dict[str, Any]

    def fit(self, k: int, seed: int) -> Any:
        """Fit the member of a seed."""
        drawn, rows = self.sampling.draw(seed)
        columns = None if self.sampling.takes_all_columns else drawn
        member = self._unfitted(seed)
        try:
            if self._by_weight:
                weight = np.bincount(rows, minlength=self.table.n_rows).astype(np.float64)
                weight = weight if self.weight is None else weight * self.weight
                member.fit(self.table.take(columns=columns), self.target, sample_weight=weight, **self.fit_params)
            else:
                member.fit(self.table.take(rows, columns), self.target[rows], **self._params_of(rows))
        except Exception as error:
            error.add_note(f"This happened while fitting member {k + 1}{self._about(rows)}.")
            raise
        return member

    @property
    def _by_weight(self) -> bool:
        """Whether draws are given as weights: trees leave rows of weight 0 out and need no copy of the others."""
        is_tree = isinstance(self.template, (BaseTree, BaseDecisionTree))
        return is_tree and self.sampling.mean_share >= _LEAST_SHARE_BY_WEIGHT

    @cached_property
    def _random_states(self) -> list[str]:
        return random_state_names(self.template)

    def _unfitted(self, seed: int) -> Any:
        member = clone(self.template)
        set_random_states(member, self._random_states, seed)
        if isinstance(member, BaseTree) and member.n_jobs is None:
            member.n_jobs = 1  # members run side by side
        return member

    def _params_of(self, rows: Places) -> dict[str, Any]:
        n_rows = self.table.n_rows
        params = {name: _rows_of(value, rows, n_rows) for name, value in self.fit_params.items()}
        if self.weight is not None and takes_weights(self.template):
            params["sample_weight"] = self.weight[rows]
        return params

    def _about(self, rows: Places) -> str:
        if self.target.dtype.kind == "f" or self.target.ndim > 1:
            return ""
        n_here, n_all = len(set(self.target[rows].tolist())), len(set(self.target.tolist()))
        if n_here == n_all:
            return ""
        return f", whose sample holds {n_here} of the {n_all} classes; stratified=True draws from each class"


def random_state_names(estimator: Any) -> list[str]:
    """Return the parameters that are random states, those of parts of the estimator too."""
    names = sorted(estimator.get_params(deep=True))
    return [name for name in names if name == "random_state" or name.endswith("__random_state")]


def set_random_states(estimator: Any, names: list[str], seed: int) -> None:
    """Set random states that follow from a seed, as scikit-learn's ensembles do for their members."""
    random = np.random.RandomState(seed)
    states = {name: int(random.randint(_LARGEST_SEED)) for name in names}
    if list(states) == ["random_state"]:
        estimator.random_state = states["random_state"]  # `set_params` takes as long as growing a small tree
    else:
        estimator.set_params(**states)


def _rows_of(value: Any, rows: Places, n_rows: int) -> Any:
    """Cut metadata that has one entry per row; leave others alone."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__") or len(value) != n_rows:
        return value
    if hasattr(value, "iloc"):
        return value.iloc[rows]
    return np.asarray(value)[rows]


def takes_weights(estimator: Any) -> bool:
    """Say whether `fit` of an estimator has a parameter sample_weight."""
    return bool(has_fit_parameter(estimator, "sample_weight"))


def read_row_labels(strata: Any, n_rows: int) -> NDArray[Any]:
    """Check `strata`: one label per row."""
    labels = np.asarray(strata)
    if labels.shape != (n_rows,):
        raise ValueError(f"strata has shape {labels.shape} and the table {n_rows} rows. Give one label per row.")
    return labels


def _report(done: int, n_members: int, seconds: float, verbose: int) -> None:
    step = 1 if verbose > 1 else max(1, n_members // 10)
    if verbose and (done % step == 0 or done == n_members):
        left = seconds / done * (n_members - done)
        print(f"{done} of {n_members} members, {seconds:.1f} s, about {left:.1f} s left", file=sys.stderr)
