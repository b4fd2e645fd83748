"""Ensembles of different estimators: the base of voting and stacking, and voting."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, is_classifier, is_regressor
from sklearn.utils import Bunch, Tags, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from spinney._data.arguments import argument_numbers
from spinney._data.display import warn
from spinney._data.select import PickTable, pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.ensemble import BaseEnsemble, fingerprint_of, members_from_json, members_to_json
from spinney._ensemble.members import (
    MeanPredictions,
    MemberRows,
    ThreadPlan,
    are_foreign,
    estimator_of_word,
    gets_codes,
    is_dropped,
    name_members,
    read_members,
    reset_threads,
    routed_metadata,
    seeded,
    set_input_tags,
    takes_weights,
)
from spinney._estimator import table_estimator
from spinney._estimator.estimator import About, Estimator
from spinney._estimator.held_out import Fold
from spinney._estimator.parallel import Progress
from spinney._estimator.parameters import N_JOBS, estimator, parameter
from spinney._estimator.target import read_one_class, read_one_value, read_weights
from spinney._model.file.container import refuse
from spinney._model.predictions import mean_prediction, member_predictions
from spinney._model.saving.members import NAMES, check_member, read_ensemble

NamedMembers = list[tuple[str, BaseEstimator]]


@dataclass(frozen=True, eq=False)
class FittedMembers:
    """The fitted models of each member, and what they predict out of fold.

    Attributes
    ----------
    models : list of lists of estimators
        By member: the model fitted to all rows, or one model per fold.
    by_code : list of bool
        By member: whether its models know classes by their codes.
    out_of_fold : list of ndarrays of shape (n_rows, width)
        By member: mean prediction of the folds that held a row out; NaN where none did.
    """

    models: list[list[BaseEstimator]]
    by_code: list[bool]
    out_of_fold: list[Floats]


@estimator
class BaseCombination(BaseEnsemble):
    """An ensemble of different estimators, which are passed by name."""

    estimators: Any = parameter(list, tuple, dict, None, default=None, kw_only=False)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    random_state: int | RandomState | None = parameter("random_state", default=None)
    verbose: int | None = parameter("verbose", None, default=None)

    _method: ClassVar[str]  # its name in errors
    _default_members: ClassVar[tuple[str, ...]] = ("forest", "extra_trees", "boosting", "linear")

    # ---- members -------------------------------------------------------------------------------------

    @property
    def _task(self) -> str:
        return "Classifier" if self._is_class_target else "Regressor"

    def _members(self) -> NamedMembers:
        """Return names and unfitted estimators."""
        members = [
            (name, estimator_of_word(member, self._task) if isinstance(member, str) else member)
            for name, member in read_members(self._default_members if self.estimators is None else self.estimators)
        ]
        has_task = is_classifier if self._is_class_target else is_regressor
        for name, member in members:
            if not has_task(member):
                noun = self._task.lower()
                raise ValueError(
                    f"The estimator {type(member).__name__} should be a {noun}: {type(self).__name__} combines "
                    f"{noun}s, and {name!r} is none."
                )
        return members

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the parameters of the members too, as ``name__parameter``, and the members by name.

        Returns
        -------
        dict
            Parameters by name.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name, member in self._members_of_parameter():
                params[name] = member
                if hasattr(member, "get_params"):
                    params |= {f"{name}__{key}": value for key, value in member.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters of the ensemble, parameters of members (``name__parameter``), or members by name.

        Parameters
        ----------
        **params : dict
            New values.

        Returns
        -------
        self
            The estimator.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        by_name = dict(self._members_of_parameter())
        changed = {name: params.pop(name) for name in by_name.keys() & params.keys()}
        if changed:
            self.estimators = [(name, changed.get(name, member)) for name, member in by_name.items()]
        return super().set_params(**params)

    def _members_of_parameter(self) -> NamedMembers:
        """Return the members as they were passed, with their names; none if they are invalid, which `fit` reports."""
        try:
            return [] if self.estimators is None else name_members(self.estimators)
        except (TypeError, ValueError):
            return []

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted members by name."""
        check_is_fitted(self)
        return Bunch(**dict(zip(self._names, self.estimators_, strict=True)))

    # ---- fitting -------------------------------------------------------------------------------------

    def _read_rows(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None) -> MemberRows:
        """Read the rows that members are fitted to."""
        self._check_parameters()
        table = pick_table(X)
        weight = read_weights(sample_weight, table.n_rows)
        if not self._is_class_target:
            return MemberRows(table, read_one_value(y, table.n_rows, self._method), None, weight)
        codes, classes = read_one_class(y, table.n_rows, self._method)
        positions = codes.astype(np.intp)
        return MemberRows(table, classes[positions], positions, weight, classes=classes)

    def _by_code(self, member: BaseEstimator) -> bool:
        return self._is_class_target and gets_codes(member)

    def _warn_of_weights(self, members: NamedMembers, weight: Floats | None) -> None:
        """Warn of members that take no weights."""
        without = [name for name, member in members if not takes_weights(member)]
        if without and weight is not None:
            warn(
                f"These members take no sample_weight and are fitted without: {', '.join(without)}. Rows of weight 0 "
                "are left out all the same."
            )

    def _fit_members(
        self,
        members: NamedMembers,
        methods: Sequence[str],
        rows: MemberRows,
        folds: Sequence[Fold | None],
        fit_params: dict[str, Any],
        random: RandomState,
    ) -> FittedMembers:
        """Fit each member to the training rows of each fold, and predict the rows held out; None: fit all rows."""
        names = [name for name, _ in members]
        params = self._routed(fit_params, names)
        templates = [seeded(member, random) for _, member in members]
        by_code = [self._by_code(template) for template in templates]
        tasks = [(m, fold) for fold in folds for m in range(len(members))]
        threads = ThreadPlan.of(self.n_jobs, len(tasks))

        def work(k: int) -> tuple[BaseEstimator | None, Floats | None]:
            m, fold = tasks[k]
            trained_on = rows.used if fold is None else fold.train
            model = rows.fit(threads.prepared(templates[m]), names[m], trained_on, by_code[m], params[names[m]])
            predicted = None
            if fold is not None:
                X = rows.table.take(fold.held_out)
                predicted = member_predictions(model, X, methods[m], rows.classes, by_code[m])
            is_retained = fold is None or None not in folds
            return reset_threads(model, templates[m], self.n_jobs) if is_retained else None, predicted

        models: list[list[BaseEstimator]] = [[] for _ in members]
        means = [MeanPredictions(rows.table.n_rows) for _ in members]
        noun = "members" if len(folds) == 1 else "fits"
        with Progress(noun, len(tasks), False, 0, self.verbose) as progress:
            for k, (model, predicted) in enumerate(threads.run(work, len(tasks), are_foreign(templates))):
                m, fold = tasks[k]
                if model is not None:
                    models[m].append(model)
                if predicted is not None and fold is not None:
                    means[m].add(fold.held_out, predicted)
                progress.report(k + 1)
        return FittedMembers(models, by_code, [mean.value for mean in means])

    def _set_members(
        self,
        table: PickTable,
        classes: NDArray[Any] | None,
        members: NamedMembers,
        by_code: list[bool],
    ) -> None:
        """Drop the fitted attributes of an earlier fit, and set those of the table and the fitted members."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        self._set_table(table)
        if classes is not None:
            self.classes_, self.n_classes_ = classes, len(classes)
        self._names, self.estimators_ = [name for name, _ in members], [member for _, member in members]
        self._coded = by_code

    # ---- scikit-learn's routing and tags -------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Return scikit-learn's metadata routing: the arguments of `fit` that are passed on to each member.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, member in self._requesting_members():
            router.add(**{name: member}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def _requesting_members(self) -> NamedMembers:
        """Return the members that may request metadata: those passed as estimators."""
        return [(name, member) for name, member in self._members_of_parameter() if not isinstance(member, str)]

    def _routed(self, params: dict[str, Any], names: list[str]) -> dict[str, dict[str, Any]]:
        """Return the metadata for `fit` of each member."""
        if not params:
            return {name: {} for name in names}
        routed = routed_metadata(self, "fit", params)
        requesting = {name for name, _ in self._requesting_members()}
        return {name: dict(routed[name]["fit"]) if name in requesting else {} for name in names}

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        try:
            members = [member for _, member in self._members()]
        except (TypeError, ValueError):
            return tags
        set_input_tags(tags, members)
        return tags

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {"estimators": members_to_json(self.estimators)}

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._loaded_parameters(saved) | {"estimators": members_from_json(saved.get("estimators"))}

    def _to_header(self) -> dict[str, Any]:
        return NAMES.to_header(self)

    def _set_models(self, header: dict[str, Any], models: list[Estimator]) -> None:
        frame = read_ensemble(header)
        self._names, self._coded = frame["_names"], [False] * len(frame["_names"])
        self._combine(header, frame, models)

    @abstractmethod
    def _combine(self, header: dict[str, Any], frame: dict[str, Any], models: list[Estimator]) -> None:
        """Set the members and what combines them, from a header; refuse models that do not fit."""

    def _about(self) -> About:
        weights = self._member_weights()
        return About(
            "ensemble",
            {"members": self._names, "weights": weights},
            sentence=f"An ensemble of {len(weights)} models.",
            why_no_trees="The file holds an ensemble of different models. Look at its named_estimators_ in Python.",
            is_shown=False,
        )

    def _member_weights(self) -> list[float] | list[None]:
        """Return the weight of each member; None where it is not a number."""
        return [None] * len(self._names)

    @abstractmethod
    def _identity(self) -> bytes:
        """Return the numbers that turn predictions of members into predictions of the ensemble, for fingerprints."""

    def fingerprint(self) -> str:
        """Hash of the members, in their order, and of what combines them; all must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads and kind of table.
        """
        check_is_fitted(self)
        models = self._models()
        return fingerprint_of(models, [self._identity(), *[b""] * (len(models) - 1)])


@estimator
class BaseVoting(TransformerMixin, BaseCombination):
    """Members that are fitted to all rows, and whose predictions are averaged."""

    weights: ArrayLike | None = parameter("array-like", None, default=None)
    _kind, _method = "vote", "voting"

    @property
    @abstractmethod
    def _is_soft(self) -> bool:
        """Whether class probabilities of the members are averaged."""

    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: Any) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Any table that the members take: NumPy array, pandas, polars or pyarrow table, scipy sparse matrix, dict of
            columns or list of rows. Members get tables of the same kind.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            For members that take weights. A weight of 0 leaves the row out.
        **fit_params : dict
            For `fit` of the members that request it, with scikit-learn's metadata routing.

        Returns
        -------
        self
            The fitted ensemble.
        """
        rows = self._read_rows(X, y, sample_weight)
        members = self._members()
        self._check_members(members)
        self._normalized_weights(len(members))
        self._warn_of_weights(members, rows.weight)
        random = check_random_state(self.random_state)
        fitted = self._fit_members(members, (), rows, [None], fit_params, random)
        named = [(name, models[0]) for (name, _), models in zip(members, fitted.models, strict=True)]
        self._set_members(rows.table, rows.classes, named, fitted.by_code)
        return self

    def _check_members(self, members: NamedMembers) -> None:
        """Refuse members that lack a method."""
        return

    def _normalized_weights(self, n_members: int) -> Floats:
        """Return the weight of each member; they add up to 1."""
        if self.weights is None:
            return np.full(n_members, 1 / n_members)
        weights = argument_numbers(self.weights, "weights")
        dropped = [is_dropped(member) for _, member in self._members_of_parameter()] or [False] * n_members
        if weights.shape != (len(dropped),):
            raise ValueError(
                f"Number of `estimators` and weights must be equal; got {weights.size} weights, {len(dropped)} "
                "estimators. Give one weight per member."
            )
        weights = weights[~np.array(dropped)]
        if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ValueError("weights must be finite numbers of at least 0, and not all 0.")
        return np.asarray(weights / weights.sum())

    def _each(self, X: TableLike) -> Iterator[Floats]:
        """Yield the predictions of each member."""
        table = self._matched(X)
        for member, coded in zip(self.estimators_, self._coded, strict=True):
            method = "predict_proba" if self._is_soft else "predict"
            yield member_predictions(member, table.native, method, self._classes, coded)

    def _mean(self, X: TableLike) -> Floats:
        check_is_fitted(self)
        return mean_prediction(list(self._each(X)), self._normalized_weights(len(self.estimators_)).tolist())

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns that `transform` returns, as scikit-learn's.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Not used.

        Returns
        -------
        ndarray of str objects
            Names.
        """
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}_{name}{k}" for name in self._names for k in self._suffixes()], dtype=object)

    def _suffixes(self) -> list[str]:
        """Return the suffixes of the column names of one member."""
        return [""]

    @property
    def _n_features_out(self) -> int:
        return len(self._names) * len(self._suffixes())

    # ---- files ---------------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        weights = self._normalized_weights(len(self.estimators_)).tolist()
        return super()._to_header() | {"weights": weights, "soft": self._is_soft}

    def _combine(self, header: dict[str, Any], frame: dict[str, Any], models: list[Estimator]) -> None:
        if len(models) != len(self._names):
            refuse("is damaged: it lacks models")
        for model in models:
            check_member(model, frame)
        self.estimators_ = models
        self._normalized_weights(len(models))
        self._check_members(list(zip(self._names, models, strict=True)))

    def _identity(self) -> bytes:
        return self._normalized_weights(len(self.estimators_)).tobytes()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # votes are whole numbers
        return tags


@estimator
class VotingClassifier(ClassifierMixin, BaseVoting):
    """Classifiers of different kinds, whose probabilities are averaged or whose votes are counted.

    Members are fitted in parallel on threads that share the table, and the ensemble is the same for any number of
    threads.

    See Also
    --------
    VotingRegressor : The same for regression.
    StackingClassifier : Learns how to combine the members.
    BaggingClassifier : Many members of one kind.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.VotingClassifier(["tree", "forest", "linear"], weights=[1, 2, 2], random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    voting: Literal["soft", "hard"] | None = parameter(StrOptions({"soft", "hard"}), None, default=None)
    flatten_transform: bool = parameter("boolean", default=True)
    _is_class_target = True
    predict_log_proba = table_estimator.predict_log_proba

    def _check_members(self, members: NamedMembers) -> None:
        without = [name for name, member in members if not hasattr(member, "predict_proba")]
        if self.voting == "soft" and without:
            raise ValueError(
                f"voting='soft' averages probabilities, and {without[0]!r} has no predict_proba. Use voting='hard'."
            )

    @property
    def _is_soft(self) -> bool:
        return self.voting != "hard" and all(hasattr(member, "predict_proba") for member in self.estimators_)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the class with the highest mean probability, or the most votes; of equal classes the first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        proba = self._mean(X)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def predict_proba(self, X: TableLike) -> Floats:
        """Mean of the members' class probabilities, or fraction of their votes.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return self._mean(X)

    def transform(self, X: TableLike) -> Floats:
        """Predictions of each member: class probabilities, or the codes of the predicted labels.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_members), (n_samples, n_members * n_classes) or (n_members, n_samples, n_classes)
            Codes of votes; or probabilities, the last without `flatten_transform`.
        """
        predicted = list(self._each(X))
        if not self._is_soft:
            return np.column_stack([votes.argmax(axis=1) for votes in predicted])
        return np.hstack(predicted) if self.flatten_transform else np.array(predicted)

    def _suffixes(self) -> list[str]:
        return [str(k) for k in range(len(self.classes_))] if self._is_soft else [""]


@estimator
class VotingRegressor(RegressorMixin, BaseVoting):
    """Regressors of different kinds, whose predictions are averaged.

    Members are fitted in parallel on threads that share the table, and the ensemble is the same for any number of
    threads.

    See Also
    --------
    VotingClassifier : The same for classification.
    StackingRegressor : Learns how to combine the members.
    BaggingRegressor : Many members of one kind.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.VotingRegressor(["tree", "linear"]).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    >>> len(model.estimators_)
    2
    """

    @property
    def _is_soft(self) -> bool:
        return False

    def predict(self, X: TableLike) -> Floats:
        """Weighted mean of the members' predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted values.
        """
        return self._mean(X)[:, 0]

    def transform(self, X: TableLike) -> Floats:
        """Predictions of each member.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_members)
            Predicted values.
        """
        return np.hstack(list(self._each(X)))
