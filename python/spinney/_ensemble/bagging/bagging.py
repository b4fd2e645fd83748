"""What bagged classifiers and regressors share: drawing samples, fitting members, asking them."""

from __future__ import annotations

import hashlib
import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.arguments import given_array
from spinney._data.column_names import match_columns
from spinney._data.numeric.reproducible import any_order_sum
from spinney._data.select import PickTable, pick_table
from spinney._ensemble.bagging.out_of_bag import JudgesUnseenRows
from spinney._ensemble.bagging.saved_state import ensemble_from_file, ensemble_parts
from spinney._ensemble.member import LARGEST_SEED, MemberFit, takes_weights
from spinney._ensemble.out_of_bag import OutOfBag, Values, Weights, mean_loss
from spinney._ensemble.resampling import Sampling, Stratum, count_columns, count_drawn, row_strata
from spinney._ensemble.routing import RoutesToMembers
from spinney._estimator.folds import read_row_groups
from spinney._estimator.members import SequenceOfMembers
from spinney._estimator.parameters import COUNT
from spinney._estimator.progress import Progress
from spinney._estimator.summary import About
from spinney._estimator.target import read_weights
from spinney._estimator.threads import count_threads, in_order
from spinney._estimator.warm_start import check_target_goes_on
from spinney._forest.growing import MOST_MEMBERS, batch_size, has_settled


class BaseBagging(JudgesUnseenRows, SequenceOfMembers, RoutesToMembers):
    """Fits members to samples of the rows and columns."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [COUNT, StrOptions({"auto"})],
        "max_samples": [
            COUNT,
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

    # ---- what differs between classes and values -----------------------------------------------------

    @abstractmethod
    def _default_estimator(self) -> Any:
        """Return the member if none is given."""

    @abstractmethod
    def _class_strata(self, target: Any) -> Any:
        """Labels of the strata if `stratified` is set."""

    @abstractmethod
    def _smooth_losses(self, target: Any, mean: Values) -> Values:
        """Loss of each row that tells whether more members help."""

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
            Rows are drawn in proportion to their weights, whatever the members; a row of weight 0 is never drawn. Where
            nothing is drawn, because every member gets all rows, the members get the weights.
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
        table = self._table_of_fit(X)
        target, learned = self._read_target(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        template = self._template()
        sampling = self._plan(table, template, self._strata(target, strata, table.n_rows), groups, weight)
        if (self.oob_score or self.n_estimators == "auto") and not sampling.leaves_rows_out:
            raise ValueError(
                "Out of bag estimation needs rows that are left out, but every member gets all rows. Set "
                "bootstrap=True, lower max_samples, or set oob_score=False and n_estimators to a number."
            )
        old = self._members_to_keep(sampling, learned)
        if old and (self.oob_score or self.n_estimators == "auto"):
            self._check_rows(table, target)
        stream = deepcopy(self._seed_stream) if old else check_random_state(self.random_state)
        learned |= {
            "estimator_": template,
            "estimators_": list(old),
            "n_features_in_": table.n_columns,
            "_column_names": table.names,
            "_draws": list(self._draws) if old else [],
            "_seed_stream": stream,
        }
        job = MemberFit(template, table, target, weight, sampling, fit_params)
        oob = OutOfBag(table.n_rows) if self.oob_score or self.n_estimators == "auto" else None
        self._with(learned)._add_members(job, oob)
        learned["estimators_features_"] = [plan.draw(seed)[0] for plan, seed in learned["_draws"]]
        learned["_row_print"] = self._row_print_of(table, target) if sampling.leaves_rows_out else None
        learned["_takes_all_columns"] = [plan.takes_all_columns for plan, _ in learned["_draws"]]
        if oob is not None:
            learned |= self._with(learned)._learn_oob(oob, target, weight)
        learned["_seed_stream"] = deepcopy(stream)
        self._keep(table.names, learned)
        return self

    def _with(self, learned: dict[str, Any]) -> Self:
        """Return a copy that is fitted."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__ | learned)
        return other

    def _keep(self, names: list[str] | None, learned: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once, when the members are there."""
        for name in ("feature_names_in_", "oob_score_", "oob_curve_", self._oob_name, "_draws"):
            self.__dict__.pop(name, None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.__dict__.update(learned)

    def _unfitted_member(self) -> Any:
        return self._default_estimator() if self.estimator is None else self.estimator

    def _template(self) -> Any:
        return clone(self._unfitted_member())

    @property
    def _stratified(self) -> bool | str:
        """How classes are drawn; False: as they come."""
        return False

    def _strata(self, target: Any, strata: Any, n_rows: int) -> NDArray[np.intp] | None:
        """Return the stratum of each row."""
        if strata is not None and self._stratified:
            raise ValueError("strata and stratified both say what to draw from. Pass one of them.")
        if strata is None and not self._stratified:
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
        balanced = self._stratified == "balanced"
        numbers = count_drawn(self.max_samples, sizes, self.bootstrap, balanced, what)
        chance = None
        if weight is not None and (self.bootstrap or numbers != sizes):
            chance = weight if rows_of is None else np.array([any_order_sum(weight[rows]) for rows in rows_of])
        elif weight is not None and not takes_weights(template):
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

    @property
    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "estimators_")

    def _table_of_fit(self, X: Any) -> PickTable:
        """Return the table; for a warm start, with the columns in the order that the members know."""
        table = pick_table(X)
        return self._matched(X) if self._goes_on and table.n_columns == self.n_features_in_ else table

    def _members_to_keep(self, sampling: Sampling, learned: dict[str, Any]) -> list[Any]:
        """Return the members that a warm start goes on from."""
        if not self._goes_on:
            return []
        check_target_goes_on(learned, self.__dict__)
        before = self._known_draws()[0][0]
        if (sampling.n_rows, sampling.n_columns) != (before.n_rows, before.n_columns):
            raise ValueError(
                f"warm_start goes on from a table of {before.n_rows} rows and {before.n_columns} columns; X has "
                f"{sampling.n_rows} and {sampling.n_columns}. Pass the same table, or set warm_start=False."
            )
        n_old = len(self.estimators_)
        if self.n_estimators == "auto":
            return list(self.estimators_)
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

    def _add_members(self, job: MemberFit, oob: OutOfBag | None) -> None:
        """Add members until there are as many as asked for, or until their error has settled; judge them."""
        is_auto = self.n_estimators == "auto"
        n_wanted = MOST_MEMBERS if is_auto else int(self.n_estimators)
        if oob is not None:
            self._judge(job, oob)
        with Progress("members", n_wanted, is_auto, len(self.estimators_), self.verbose) as progress:
            while len(self.estimators_) < n_wanted and not (is_auto and oob is not None and has_settled(oob.smooth)):
                n_turn = n_wanted - len(self.estimators_)
                if is_auto or (self.verbose and oob is not None):
                    n_turn = min(n_turn, batch_size(len(self.estimators_)))
                self._fit_members(job, n_turn, progress, oob)
                if oob is not None:
                    self._judge(job, oob)
                    progress.report(len(self.estimators_), oob.curve[-1])

    def _fit_members(self, job: MemberFit, n_members: int, progress: Progress, oob: OutOfBag | None) -> None:
        seeds = self._seed_stream.randint(LARGEST_SEED, size=n_members).tolist()
        found = in_order(lambda k: job.fit(k, seeds[k]), n_members, count_threads(self.n_jobs, n_members))
        for seed, member in zip(seeds, found, strict=True):
            self.estimators_.append(member)
            self._draws.append((job.sampling, seed))
            progress.report(len(self.estimators_), oob.curve[-1] if oob is not None and oob.curve else None)

    def _judge(self, job: MemberFit, oob: OutOfBag) -> None:
        """Bring the out-of-bag errors up to date."""
        for left_out, said in self._out_of_bag(job.table, len(oob.curve)):
            oob.add(left_out, said)
            mean = oob.mean
            oob.curve.append(mean_loss(self._row_losses(job.target, mean), mean, job.weight))
            if self.n_estimators == "auto":
                oob.smooth.append(mean_loss(self._smooth_losses(job.target, mean), mean, job.weight))

    # ---- keeping -------------------------------------------------------------------------------------

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        return ensemble_parts(self)

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        model: Self = ensemble_from_file(cls, header, file)
        return model

    def _about(self) -> About:
        return About(
            "ensemble",
            {"members": len(self.estimators_)},
            why_no_trees="The file holds a bagging ensemble, whose members may be any models. Look at its estimators_ "
            "in Python.",
            is_shown=False,
        )

    def fingerprint(self) -> str:
        """Hash of the members, in their order, and of the columns that each sees; members must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads and kind of table.
        """
        check_is_fitted(self)
        digest = hashlib.sha256()
        for member, columns in zip(self.estimators_, self.estimators_features_, strict=True):
            if not hasattr(member, "fingerprint"):
                raise TypeError(
                    f"Members of the type {type(member).__name__} have no fingerprint, so the ensemble has none."
                )
            digest.update(np.asarray(columns, dtype=np.int64).tobytes() + member.fingerprint().encode())
        return digest.hexdigest()

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
            columns = None if self._takes_all_columns[k] else self.estimators_features_[k]
            return say(self.estimators_[k], table.take(columns=columns))

        yield from in_order(one, len(self.estimators_), count_threads(self.n_jobs, len(self.estimators_)))

    def _running_means(self, X: Any) -> Iterator[Values]:
        total: Any = 0.0
        for k, said in enumerate(self._each(X, self._say), start=1):
            total = total + said
            yield total / k

    def _mean(self, X: Any, params: dict[str, Any]) -> Values:
        total: Any = 0.0
        for said in self._each(X, partial(self._say, **params)):
            total = total + said
        return np.asarray(total / len(self.estimators_))

    @property
    def feature_importances_(self) -> Values:
        """Mean of the members' importances, as shares; a column that a member lacks has none there."""
        check_is_fitted(self)
        if not hasattr(self.estimators_[0], "feature_importances_"):
            raise AttributeError(f"Members of type {type(self.estimators_[0]).__name__} have no feature_importances_.")
        total = np.zeros(self.n_features_in_)
        for member, columns in zip(self.estimators_, self.estimators_features_, strict=True):
            np.add.at(total, columns, member.feature_importances_)
        return total / total.sum() if total.any() else total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        member = get_tags(self._unfitted_member())
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(member.input_tags, name))
        return tags


def read_row_labels(strata: Any, n_rows: int) -> NDArray[Any]:
    """Check `strata`: one label per row."""
    labels = given_array(strata, "strata")
    if labels.shape != (n_rows,):
        raise ValueError(f"strata has shape {labels.shape} and the table {n_rows} rows. Give one label per row.")
    return labels


def parameters_of_member(kind: Any) -> dict[str, str]:
    """Say of the parameters of the usual member that they belong there."""
    return {
        name: f"It belongs to the members: estimator={kind.__name__}({name}=...)."
        for name in inspect.signature(kind).parameters
    }
