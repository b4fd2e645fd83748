"""Ensembles of different estimators: the base of voting and stacking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import Bunch, Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import warn
from spinney._data.select import PickTable, pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.ensemble import BaseEnsemble, fingerprint_of, members_from_json, members_to_json
from spinney._ensemble.members import (
    MeanPredictions,
    MemberRows,
    ThreadPlan,
    are_foreign,
    estimator_of_name,
    gets_codes,
    name_members,
    read_members,
    reset_threads,
    routed_metadata,
    seeded,
    set_input_tags,
    takes_weights,
)
from spinney._estimator.estimator import About, Estimator, only_if
from spinney._estimator.held_out import Fold
from spinney._estimator.parallel import Progress
from spinney._estimator.parameters import N_JOBS, estimator, parameter
from spinney._estimator.target import read_one_class, read_one_value, read_weights
from spinney._model.predictions import Classes, WeightedMean, member_predictions
from spinney._model.saving.members import NAMES, read_ensemble

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues

NamedMembers = list[tuple[str, BaseEstimator]]


def _lacks_shap_values(model: BaseCombination) -> str | None:
    """Return why an ensemble has no SHAP values; None if it may have them."""
    if not hasattr(model, "estimators_"):
        return None
    try:
        mean = model._weighted_mean()
    except ValueError as error:
        return f"is not available. {error}"
    without = [n for n, m in zip(mean.names, mean.members, strict=True) if not hasattr(m, "shap_values")]
    return f"needs members that have it, and {without[0]!r} does not." if without else None


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
            (name, estimator_of_name(member, self._task) if isinstance(member, str) else member)
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

    def _sk_visual_block_(self) -> Any:
        """Return the boxes of scikit-learn's diagram: the members, side by side."""
        from sklearn.utils._repr_html.estimator import _VisualBlock

        names, members = zip(*self._members(), strict=True)
        return _VisualBlock("parallel", members, names=names)

    @property
    def named_estimators_(self) -> Any:  # Bunch, which has no types
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
                f"These members take no sample_weight and are fitted without weights: {', '.join(without)}. Rows of "
                "weight 0 are left out all the same."
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
        classes: Classes,
        members: NamedMembers,
        by_code: list[bool],
    ) -> None:
        """Drop the fitted attributes of an earlier fit, and set those of the table and the fitted members."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        self._set_table(table)
        if classes is not None:
            self.classes_ = classes
            self.n_classes_ = [len(one) for one in classes] if isinstance(classes, list) else len(classes)
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
    def _weighted_mean(self) -> WeightedMean:
        """Return how predictions of members are averaged; raise a ValueError if they are combined otherwise."""

    def _mean_of(self, weights: Sequence[float], **more: Any) -> WeightedMean:
        retained = [k for k, weight in enumerate(weights) if weight > 0]
        members = [self.estimators_[k] for k in retained]
        if foreign := [type(one).__name__ for one in members if not isinstance(one, Estimator)]:
            raise ValueError(
                f"A member of this {type(self).__name__} is of the type {foreign[0]}, which is not a model of spinney."
            )
        names = [self._names[k] for k in retained]
        return WeightedMean(names, members, [float(weights[k]) for k in retained], self._classes, **more)

    @only_if(_lacks_shap_values)
    def shap_values(self, X: TableLike) -> ShapValues:
        """Contribution of each column to each prediction: weighted means of the members' Shapley values.

        A stack needs ``final_estimator="greedy"`` and ``refit=True``, because other final estimators are not weighted
        means. They are exact for members whose `shap_values` explain the prediction itself. The probabilities of
        boosting and the calibrated probabilities of a greedy stack are nonlinear functions of an explained score. Their
        contributions are integrated along the straight line from the base value to the prediction (Aumann and Shapley
        1974), so that they still add up to the prediction.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ShapValues
            Contributions to the prediction, or to the probability of each class.
        """
        from spinney.inspect.explain.shap_of_mean import explain_mean

        return explain_mean(self._weighted_mean(), self._matched(X).native)

    @property
    def feature_importances_(self) -> Floats:
        """Weighted mean of the members' importances; a stack needs ``final_estimator="greedy"``."""
        check_is_fitted(self)
        try:
            mean = self._weighted_mean()
        except ValueError as error:
            raise AttributeError(f"There are no feature_importances_: {error}") from None
        if without := [
            n for n, m in zip(mean.names, mean.members, strict=True) if not hasattr(m, "feature_importances_")
        ]:
            raise AttributeError(f"The member {without[0]!r} has no feature_importances_.")
        each = [np.asarray(member.feature_importances_) for member in mean.members]
        total = np.sum([w * one for w, one in zip(mean.weights, each, strict=True)], axis=0)
        return np.asarray(total / total.sum() if total.sum() > 0 else total)

    @abstractmethod
    def _identity(self) -> bytes:
        """Return the numbers that turn predictions of members into predictions of the ensemble, for fingerprints."""

    def fingerprint(self) -> str:
        """Return a hash of the members, in order, and of what combines them; all must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads and kind of table.
        """
        check_is_fitted(self)
        models = self._models()
        return fingerprint_of(models, [self._identity(), *[b""] * (len(models) - 1)])
