"""The base of bagging: members are fitted to samples of the rows and columns, and their predictions averaged."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import field as dataclass_field
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from spinney._data.arguments import argument_array
from spinney._data.display import warn
from spinney._data.reproducible import any_order_sum
from spinney._data.select import PickTable, Places, pick_table
from spinney._data.types import TableLike
from spinney._ensemble.bagged_members import (
    Bag,
    MemberFit,
    Metric,
    OutOfBag,
    Output,
    Values,
    Weights,
    mean_loss,
    metric_value,
)
from spinney._ensemble.ensemble import BaseEnsemble, fingerprint_of, loaded_template, saved_template
from spinney._ensemble.members import (
    LARGEST_SEED,
    estimator_of_name,
    routed_metadata,
    set_input_tags,
    takes_weights,
)
from spinney._ensemble.sampling import Sampling, Stratum, count_columns, count_drawn, row_strata
from spinney._estimator.estimator import About, Estimator
from spinney._estimator.held_out import read_row_groups
from spinney._estimator.metrics import check_scoring
from spinney._estimator.parallel import Progress, count_threads, in_order
from spinney._estimator.parameters import COUNT, estimator, parameter
from spinney._estimator.rows import RowFingerprint, refuse_other_rows
from spinney._estimator.table_estimator import SequenceOfMembers
from spinney._estimator.target import check_same_target, read_weights
from spinney._forest.fitting import check_n_estimators
from spinney._forest.growing import MOST_MEMBERS, batch_size, has_settled
from spinney._model.file.codec import (
    Field,
    SavedState,
    array,
    listed,
    nullable,
    numbers,
    optional,
    saved_fields,
    score,
)
from spinney._model.file.container import refuse
from spinney._model.model import fractions

SAVED_STATE: dict[str, Field] = {
    "columns": listed(nullable(numbers(np.intp, least=0, below="n_features_in_")), "n_members"),
    "oob_score_": optional(score()),
    "oob_curve_": optional(array("float64", "n_members", finite=False)),
}


def parameters_of_member(kind: type[BaseEstimator]) -> dict[str, str]:
    """Return an advice for each parameter of the default member: pass it to the member."""
    return {
        name: f"It belongs to the members: estimator={kind.__name__}({name}=...)."
        for name in inspect.signature(kind).parameters
    }


@estimator
class BaseBagging(SequenceOfMembers, BaseEnsemble):
    """Members that are fitted to samples of the rows and columns."""

    estimator: BaseEstimator | str | None = parameter(
        HasMethods(["fit", "predict"]), str, None, default=None, kw_only=False
    )
    n_estimators: int | Literal["auto"] = parameter(COUNT, StrOptions({"auto"}), default=10, kw_only=False)
    max_samples: int | float | None = parameter(COUNT, Interval(RealNotInt, 0, 1, closed="right"), None, default=None)
    max_features: int | float = parameter(
        Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right"), default=1.0
    )
    bootstrap: bool = parameter("boolean", default=True)
    bootstrap_features: bool = parameter("boolean", default=False)
    oob_score: bool | str | Metric = parameter("boolean", str, callable, default=False)
    warm_start: bool = parameter("boolean", default=False)
    n_jobs: int | None = parameter(Integral, None, default=None)
    random_state: int | RandomState | None = parameter("random_state", default=None)
    verbose: int | None = parameter("verbose", None, default=None)

    _seed_stream: RandomState = dataclass_field(init=False)
    _oob_name: ClassVar[str]  # attribute of the out-of-bag predictions
    _kind: ClassVar[str] = "bagging"
    _saved: ClassVar[SavedState] = saved_fields(**SAVED_STATE)

    # ---- differences between classification and regression -------------------------------------------

    @abstractmethod
    def _default_estimator(self) -> Estimator:
        """Return the default member."""

    @abstractmethod
    def _read_target(self, y: ArrayLike, n_rows: int) -> tuple[NDArray[Any], Output]:
        """Check y; return the target of the members, and how their predictions are averaged."""

    @property
    @abstractmethod
    def _output(self) -> Output:
        """How predictions of members are averaged."""

    @abstractmethod
    def _methods(self) -> dict[str, str]:
        """Return the method of the members that each method of the ensemble calls."""

    @property
    def _stratified(self) -> bool | str:
        """Whether samples are drawn from each class."""
        return False

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Any table that the estimator takes: NumPy array, pandas, polars or pyarrow table, scipy sparse matrix, dict
            of columns or list of rows. Members get a table of the same type.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. Rows are drawn in proportion to their weights, and a row of weight 0 is never drawn. If
            every member is fitted to all rows, the weights are passed to the members.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are drawn together, or left out together; `max_samples` then counts groups.
        strata : array-like of shape (n_samples,), optional
            Label of the stratum of each row: samples are drawn from each stratum in proportion to its number of rows.
        **fit_params : dict
            Arguments of the members' `fit`. Of arguments with one value per row, members get the values of their rows.

        Returns
        -------
        self
            The fitted ensemble.
        """
        self._validate_params()
        check_scoring(self.oob_score, is_classifier(self))
        table = self._table_of_fit(X)
        target, output = self._read_target(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        template = self._template()
        sampling = self._plan(table, template, self._strata(target, strata, table.n_rows), groups, weight)
        needs_oob = bool(self.oob_score) or self.n_estimators == "auto"
        if needs_oob and not sampling.leaves_rows_out:
            raise ValueError(
                "Out of bag estimation needs rows that are left out, but every member gets all rows. Set "
                "bootstrap=True, lower max_samples, or set oob_score=False and n_estimators to a number."
            )
        bag = self._retained(sampling, output)
        if bag.estimators and needs_oob:
            self._check_rows(table, target)
        stream = deepcopy(self._seed_stream) if bag.estimators else check_random_state(self.random_state)
        oob = OutOfBag(table.n_rows) if needs_oob else None
        job = MemberFit(template, table, target, weight, sampling, fit_params)
        self._add_members(job, bag, stream, output, oob)
        oob_attributes = {} if oob is None else self._oob_attributes(oob, target, weight, output)
        for name in ("oob_score_", "oob_curve_", self._oob_name):
            self.__dict__.pop(name, None)
        self.__dict__.update(output.attributes | oob_attributes)
        self._set_table(table)
        self.estimator_, self.estimators_, self._draws = template, bag.estimators, bag.draws
        self.estimators_features_ = [plan.draw(seed)[0] for plan, seed in bag.draws]
        self._takes_all_columns = [plan.takes_all_columns for plan, _ in bag.draws]
        self._row_fingerprint = self._row_fingerprint_of(table, target) if sampling.leaves_rows_out else None
        self._seed_stream = deepcopy(stream)
        return self

    def _unfitted_member(self) -> BaseEstimator:
        if isinstance(self.estimator, str):
            return estimator_of_name(self.estimator, "Classifier" if self._is_class_target else "Regressor")
        return self._default_estimator() if self.estimator is None else self.estimator

    def _template(self) -> BaseEstimator:
        return clone(self._unfitted_member())

    def _strata(self, target: NDArray[Any], strata: ArrayLike | None, n_rows: int) -> NDArray[np.intp] | None:
        """Return the stratum of each row."""
        if strata is not None and self._stratified:
            raise ValueError("strata and stratified exclude each other. Pass one of them.")
        if strata is None and not self._stratified:
            return None
        labels = target if strata is None else read_strata(strata, n_rows)
        return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.intp)

    def _plan(
        self,
        table: PickTable,
        template: BaseEstimator,
        strata: NDArray[np.intp] | None,
        groups: ArrayLike | None,
        weight: Weights,
    ) -> Sampling:
        """Return how the rows and columns of members are sampled."""
        eligible = np.ones(table.n_rows, dtype=bool) if weight is None else weight > 0
        labels = None if groups is None else read_row_groups(groups, table.n_rows)
        units, rows_of = row_strata(strata, labels, eligible)
        sizes = [len(own) for own in units]
        what = "row" if groups is None else "group"
        numbers = count_drawn(self.max_samples, sizes, self.bootstrap, self._stratified == "balanced", what)
        unit_weight = None
        if weight is not None and (self.bootstrap or numbers != sizes):
            unit_weight = weight if rows_of is None else np.array([any_order_sum(weight[rows]) for rows in rows_of])
        elif weight is not None and not takes_weights(template):
            raise ValueError(
                f"{type(template).__name__} takes no sample_weight, and every member gets all rows, so that the "
                "weights would have no effect. Set bootstrap=True or lower max_samples."
            )
        probability = [None if unit_weight is None else unit_weight[own] / unit_weight[own].sum() for own in units]
        return Sampling(
            table.n_rows,
            table.n_columns,
            self.bootstrap,
            [Stratum(*stratum) for stratum in zip(units, numbers, probability, strict=True)],
            rows_of,
            count_columns(self.max_features, table.n_columns),
            self.bootstrap_features,
        )

    @property
    def _is_warm(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "estimators_")

    def _table_of_fit(self, X: TableLike) -> PickTable:
        """Return the training table; for a warm start, with its columns in the order of the first fit."""
        table = pick_table(X)
        return self._matched(X) if self._is_warm and table.n_columns == self.n_features_in_ else table

    def _retained(self, sampling: Sampling, output: Output) -> Bag:
        """Return the members that a warm start retains; none without a warm start."""
        if not self._is_warm:
            return Bag([], [])
        check_same_target(output.attributes, self.__dict__)
        old = self._bag()
        before = old.draws[0][0]
        if (sampling.n_rows, sampling.n_columns) != (before.n_rows, before.n_columns):
            raise ValueError(
                f"warm_start continues a fit to {before.n_rows} rows and {before.n_columns} columns; X has "
                f"{sampling.n_rows} and {sampling.n_columns}. Pass the same table, or set warm_start=False."
            )
        check_n_estimators(self.n_estimators, len(old.estimators), "members")
        return Bag(list(old.estimators), list(old.draws))

    def _add_members(self, job: MemberFit, bag: Bag, stream: RandomState, output: Output, oob: OutOfBag | None) -> None:
        """Add members until there are n_estimators, or with "auto" until the out-of-bag error has settled."""
        is_auto = self.n_estimators == "auto"
        n_wanted = MOST_MEMBERS if is_auto else int(self.n_estimators)
        if oob is not None:
            self._evaluate(job, bag, output, oob)
        with Progress("members", n_wanted, is_auto, len(bag.estimators), self.verbose) as progress:
            while len(bag.estimators) < n_wanted and not (is_auto and oob is not None and has_settled(oob.smooth)):
                n_turn = n_wanted - len(bag.estimators)
                if is_auto or (self.verbose and oob is not None):
                    n_turn = min(n_turn, batch_size(len(bag.estimators)))
                error = oob.curve[-1] if oob is not None and oob.curve else None
                for seed, member in self._fitted_members(job, stream, n_turn):
                    bag.estimators.append(member)
                    bag.draws.append((job.sampling, seed))
                    progress.report(len(bag.estimators), error)
                if oob is not None:
                    self._evaluate(job, bag, output, oob)
                    progress.report(len(bag.estimators), oob.curve[-1])

    def _fitted_members(self, job: MemberFit, stream: RandomState, n: int) -> Iterator[tuple[int, BaseEstimator]]:
        seeds = stream.randint(LARGEST_SEED, size=n).tolist()
        members = in_order(lambda k: job.fit(k, seeds[k]), n, count_threads(self.n_jobs, n))
        yield from zip(seeds, members, strict=True)

    def _evaluate(self, job: MemberFit, bag: Bag, output: Output, oob: OutOfBag) -> None:
        """Add the out-of-bag errors of new members."""
        for mean in bag.out_of_bag(oob, job.table, output, self.n_jobs, len(oob.curve)):
            oob.curve.append(mean_loss(output.losses(job.target, mean), mean, job.weight))
            if self.n_estimators == "auto":
                oob.smooth.append(mean_loss(output.smooth_losses(job.target, mean), mean, job.weight))

    # ---- out-of-bag errors ---------------------------------------------------------------------------

    @property
    def estimators_samples_(self) -> list[Places]:
        """Rows of each member's sample; repeated rows are repeated. Computed again at every access."""
        return [sampling.draw(seed)[1] for sampling, seed in self._bag().draws]

    def _bag(self) -> Bag:
        check_is_fitted(self)
        if "_draws" not in self.__dict__:
            raise AttributeError("Model files do not save the samples of members. Pickle the model, or fit it again.")
        return Bag(self.estimators_, self._draws)

    def _oob_attributes(self, oob: OutOfBag, target: NDArray[Any], weight: Weights, output: Output) -> dict[str, Any]:
        mean = oob.value
        has_value = ~np.isnan(mean[:, 0])
        if not has_value.all():
            warn(
                f"Some inputs do not have OOB scores: {int((~has_value).sum())} rows are in the samples of all members "
                "and are not part of the score. Fit more members."
            )
        if not has_value.any():
            raise ValueError("No row is out of bag: every sample contains all rows. Fit more members.")
        metric = None if isinstance(self.oob_score, (bool, np.bool_)) else self.oob_score
        score = metric_value(output, metric, target, mean, weight)
        shown = mean if self._is_class_target else output.predictions(mean)
        return {"oob_curve_": np.array(oob.curve), "oob_score_": score, self._oob_name: shown}

    def oob_errors(
        self,
        X: TableLike = None,
        y: ArrayLike | None = None,
        metric: Metric | str | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Values:
        """Out-of-bag error after the first member, the first two, and so on, by any metric.

        Each row is predicted by the members whose sample does not contain it; rows in all samples are left out.

        Parameters
        ----------
        X, y : optional
            The training rows. Not needed if the ensemble was fitted with `oob_score` and `metric` is None.
        metric : callable, str or None, default=None
            ``metric(y, predicted)``, or the name of a scikit-learn scorer; None: fraction of misclassified rows, or
            mean squared error.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the default error and in scorers; rows of weight 0 are left out.

        Returns
        -------
        ndarray of shape (n_estimators,)
            NaN while no row is out of bag.
        """
        check_is_fitted(self)
        if X is None or y is None:
            if metric is not None or not hasattr(self, "oob_curve_"):
                raise ValueError(
                    "Pass the X and y that were passed to fit. Without them, only the curve of oob_score=True is "
                    "available."
                )
            return np.array(self.oob_curve_)
        table, bag = self._matched(X), self._bag()
        n_rows = bag.draws[0][0].n_rows
        if table.n_rows != n_rows:
            raise ValueError(
                f"The ensemble was fitted to {n_rows} rows and X has {table.n_rows}. Pass the rows it "
                "was fitted to, in the same order."
            )
        target, output = self._read_target(y, table.n_rows)
        self._check_rows(table, target)
        weight = read_weights(sample_weight, table.n_rows)
        errors = [
            mean_loss(output.losses(target, mean), mean, weight)
            if metric is None
            else metric_value(output, metric, target, mean, weight)
            for mean in bag.out_of_bag(OutOfBag(table.n_rows), table, output, self.n_jobs)
        ]
        return np.array(errors)

    def _row_fingerprint_of(self, table: PickTable, target: NDArray[Any]) -> RowFingerprint | None:
        return RowFingerprint.of_any(table, target, count_threads(self.n_jobs, table.n_rows))

    def _check_rows(self, table: PickTable, target: NDArray[Any]) -> None:
        """Refuse rows whose fingerprint differs from that of the training rows."""
        known: RowFingerprint | None = self.__dict__.get("_row_fingerprint")
        passed = None if known is None else self._row_fingerprint_of(table, target)
        if passed != known:
            is_table = passed is None or known is None or passed.table != known.table
            refuse_other_rows("X" if is_table else "y", "ensemble")

    # ---- predicting ----------------------------------------------------------------------------------
    def _each(self, X: TableLike, predict: Callable[[BaseEstimator, TableLike], Values]) -> Iterator[Values]:
        """Yield the predictions of the members, in order."""
        table = self._matched(X)

        def one(k: int) -> Values:
            columns = None if self._takes_all_columns[k] else self.estimators_features_[k]
            return predict(self.estimators_[k], table.take(columns=columns))

        yield from in_order(one, len(self.estimators_), count_threads(self.n_jobs, len(self.estimators_)))

    def _running_means(self, X: TableLike) -> Iterator[Values]:
        check_is_fitted(self)
        total: Any = 0.0
        for k, predicted in enumerate(self._each(X, self._output.predict), start=1):
            total = total + predicted
            yield total / k

    def _mean(self, X: TableLike, method: str, params: dict[str, Any]) -> Values:
        routed = self._routed(method, params)
        check_is_fitted(self)
        return np.asarray(sum(self._each(X, partial(self._output.predict, **routed))) / len(self.estimators_))

    def predict(self, X: TableLike, **params: Any) -> NDArray[Any]:
        """Predict the class with the highest mean probability or most votes; in a regression, the mean prediction.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        **params : dict
            Metadata for the members, by scikit-learn's metadata routing.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Labels of a classifier, or predicted values of a regressor.
        """
        mean = self._mean(X, "predict", params)
        return self._output.predictions(mean)

    def staged_predict(self, X: TableLike) -> Iterator[NDArray[Any]]:
        """Yield the predictions of the first member, of the first two, and so on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the form of `predict`.
        """
        for mean in self._running_means(X):
            yield self._output.predictions(mean)

    @property
    def feature_importances_(self) -> Values:
        """Mean of the members' importances, scaled to add up to 1; a member adds nothing to columns it does not use."""
        check_is_fitted(self)
        if not hasattr(self.estimators_[0], "feature_importances_"):
            raise AttributeError(f"Members of type {type(self.estimators_[0]).__name__} have no feature_importances_.")
        total = np.zeros(self.n_features_in_)
        for member, columns in zip(self.estimators_, self.estimators_features_, strict=True):
            np.add.at(total, columns, member.feature_importances_)
        return fractions(total)

    # ---- scikit-learn's routing and tags -------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Return scikit-learn's metadata routing: the arguments that are passed on to each method of the members.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        mapping = MethodMapping()
        for caller, callee in self._methods().items():
            mapping.add(caller=caller, callee=callee)
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self._unfitted_member(), method_mapping=mapping)

    def _routed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata for a method of the members."""
        if not params:
            return {}
        return dict(routed_metadata(self, method, params)["estimator"][self._methods()[method]])

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        set_input_tags(tags, [self._unfitted_member()])
        return tags

    # ---- files ---------------------------------------------------------------------------------------

    def _about(self) -> About:
        return About(
            "ensemble",
            {"members": len(self.estimators_)},
            why_no_trees="The file holds a bagging ensemble, whose members may be any models. Look at its estimators_ "
            "in Python.",
            is_shown=False,
        )

    def fingerprint(self) -> str:
        """Return a hash of the members, in order, and of the columns of each; all must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads and kind of table.
        """
        check_is_fitted(self)
        columns = [np.asarray(columns, dtype=np.int64).tobytes() for columns in self.estimators_features_]
        return fingerprint_of(self.estimators_, columns)

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {"estimator": saved_template(self.estimator)}

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._loaded_parameters(saved) | {"estimator": loaded_template(saved.get("estimator"))}

    def _to_header(self) -> dict[str, Any]:
        pairs = zip(self.estimators_features_, self._takes_all_columns, strict=True)
        return self._saved.to_header(self.__dict__ | {"columns": [None if whole else own for own, whole in pairs]})

    def _set_models(self, header: dict[str, Any], models: list[Estimator]) -> None:
        found = self._saved.from_header(header, n_features_in_=self.n_features_in_, n_members=len(models))
        columns: list[Places | None] = found.pop("columns")
        self.__dict__.update(found)
        n_columns = [self.n_features_in_ if own is None else len(own) for own in columns]
        if not models or any(n != model.n_features_in_ for n, model in zip(n_columns, models, strict=True)):
            refuse("is damaged: it has no members, or the columns of a member are impossible")
        if not all(self._has_target_of(model) for model in models):
            refuse("is damaged: a member does not fit the classes or outputs")
        self.estimators_, self.estimator_ = models, self._template()
        self._takes_all_columns = [own is None for own in columns]
        self.estimators_features_ = [np.arange(self.n_features_in_) if own is None else own for own in columns]

    def _has_target_of(self, member: Estimator) -> bool:
        """Return whether a member predicts the classes or outputs of the ensemble."""
        if not self._is_class_target:
            return not hasattr(member, "classes_") and getattr(member, "n_outputs_", 1) == self.n_outputs_
        labels = getattr(member, "classes_", None)
        return isinstance(labels, np.ndarray) and set(labels.tolist()) <= set(self.classes_.tolist())


def read_strata(strata: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Check `strata`: one label per row."""
    labels = argument_array(strata, "strata")
    if labels.shape != (n_rows,):
        raise ValueError(f"strata has shape {labels.shape} and the table {n_rows} rows. Give one label per row.")
    return labels
