"""What ensembles of different estimators share: members by name as parameters, tables, metadata routing, files."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import Bunch, Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.display import warn
from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._ensemble.members import (
    MemberRows,
    estimator_of_word,
    fingerprint_of,
    gets_codes,
    matched_table,
    members_from_json,
    members_to_json,
    models_of,
    models_parts,
    read_members,
    routed_metadata,
    take_input_tags,
    takes_weights,
)
from spinney._estimator.estimator import About, Estimator, opening, unfitted
from spinney._estimator.parameters import N_JOBS, estimator, parameter
from spinney._estimator.target import read_one_class, read_one_value, read_weights
from spinney._model.file.container import refuse
from spinney._model.file.values import labels_to_json
from spinney._model.saving.members import read_ensemble

Floats = NDArray[np.float64]
Named = list[tuple[str, BaseEstimator]]


@dataclass(frozen=True, eq=False)
class FittedMembers:
    """Members by name, fitted, and which of them know classes by their codes."""

    names: list[str]
    estimators: list[BaseEstimator]
    by_code: list[bool]


@estimator
class BaseCombination(Estimator):
    """An ensemble of different estimators."""

    estimators: Any = parameter(list, tuple, dict, None, default=None, kw_only=False)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    random_state: int | RandomState | None = parameter("random_state", default=None)
    verbose: int = parameter("verbose", default=0)

    _kind: ClassVar[str]  # what model files call it
    _method: ClassVar[str]  # what errors call it
    _default_members: ClassVar[tuple[str, ...]] = ("forest", "extra_trees", "boosting", "linear")

    # ---- members -------------------------------------------------------------------------------------

    @property
    def _task(self) -> str:
        return "Classifier" if self._is_class_target else "Regressor"

    def _members(self) -> Named:
        """Return names and estimators, unfitted."""
        given = list(self._default_members) if self.estimators is None else self.estimators
        found = [
            (name, estimator_of_word(one, self._task) if isinstance(one, str) else one)
            for name, one in read_members(given)
        ]
        is_right = is_classifier if self._is_class_target else is_regressor
        for name, member in found:
            if not is_right(member):
                noun = self._task.lower()
                raise ValueError(
                    f"The estimator {type(member).__name__} should be a {noun}: {name!r} is none, and "
                    f"{type(self).__name__} combines {noun}s."
                )
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return those of the members too, as ``name__parameter``, and the members by name.

        Returns
        -------
        dict
            Parameters by name.
        """
        found: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name, member in self._given_members():
                found[name] = member
                if hasattr(member, "get_params"):
                    found |= {f"{name}__{key}": value for key, value in member.get_params(deep=True).items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change parameters of the ensemble, of members (``name__parameter``), or members by name.

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
        by_name = dict(self._given_members())
        changed = {name: params.pop(name) for name in by_name.keys() & params.keys()}
        if changed:
            self.estimators = [(name, changed.get(name, member)) for name, member in by_name.items()]
        return super().set_params(**params)

    def _given_members(self) -> Named:
        """Return names and what was given as members; nothing if it makes no sense, which `fit` will say."""
        try:
            return [] if self.estimators is None else read_members(self.estimators)
        except (TypeError, ValueError):
            return []

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted members by name."""
        check_is_fitted(self)
        return Bunch(**dict(zip(self._names, self.estimators_, strict=True)))

    # ---- fitting -------------------------------------------------------------------------------------

    def _read_rows(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None) -> MemberRows:
        """Read what members are fitted to."""
        self._check_parameters()
        table = pick_table(X)
        weight = read_weights(sample_weight, table.n_rows)
        if not self._is_class_target:
            return MemberRows(table, read_one_value(y, table.n_rows, self._method), None, weight)
        codes, classes = read_one_class(y, table.n_rows, self._method)
        places = codes.astype(np.intp)
        return MemberRows(table, classes[places], places, weight, classes=classes)

    def _by_code(self, member: BaseEstimator) -> bool:
        return self._is_class_target and gets_codes(member)

    def _warn_of_weights(self, members: Named) -> None:
        """Warn of members that take no weights."""
        without = [name for name, member in members if not takes_weights(member)]
        if without:
            warn(
                f"These members take no sample_weight and are fitted without: {', '.join(without)}. Rows of weight 0 "
                "are left out all the same."
            )

    def _keep(self, table: PickTable, classes: NDArray[Any] | None, members: FittedMembers) -> None:
        """Drop the fitted attributes of an earlier fit, and set those of the table and the members."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        self.n_features_in_ = table.n_columns
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        self._column_names = table.names
        if classes is not None:
            self.classes_, self.n_classes_ = classes, len(classes)
        self._names, self.estimators_, self._coded = members.names, members.estimators, members.by_code

    @property
    def _classes(self) -> NDArray[Any] | None:
        return self.classes_ if self._is_class_target else None

    def _matched(self, X: TableLike) -> PickTable:
        """Return the table with its columns as they were at fit."""
        check_is_fitted(self)
        return matched_table(X, self._column_names, self.n_features_in_, type(self).__name__)

    # ---- scikit-learn's routing and tags -------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing wants to know: what `fit` hands on to which member.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, member in self._asking_members():
            router.add(**{name: member}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def _asking_members(self) -> Named:
        """Return the members that may request metadata: those that are given as estimators."""
        return [(name, member) for name, member in self._given_members() if not isinstance(member, str)]

    def _routed(self, params: dict[str, Any], names: list[str]) -> dict[str, dict[str, Any]]:
        """Return the metadata that `fit` of each member gets."""
        if not params:
            return {name: {} for name in names}
        routed = routed_metadata(self, "fit", params)
        asking = {name for name, _ in self._asking_members()}
        return {name: dict(routed[name]["fit"]) if name in asking else {} for name in names}

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        try:
            members = [member for _, member in self._members()]
        except (TypeError, ValueError):
            return tags
        take_input_tags(tags, members)
        return tags

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {"estimators": members_to_json(self.estimators)}

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._loaded_parameters(saved) | {"estimators": members_from_json(saved.get("estimators"))}

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        headers, trees = models_parts(self._parts())
        header = {
            **opening(self, self._saved_parameters()),
            "kind": self._kind,
            "classes": None if self._classes is None else labels_to_json(self._classes),
            "names": self._column_names,
            "n_features": int(self.n_features_in_),
            "members": list(self._names),
            "models": headers,
        }
        return header | self._combination_header(), trees

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        model, frame = unfitted(cls, header), read_ensemble(header)
        if ("classes_" in frame) != cls._is_class_target:
            refuse("is damaged: its estimator and its classes do not go together")
        model.__dict__.update(frame)
        model._load_combination(header, frame, models_of(header, file))
        model._coded = [False] * len(model._names)
        return model

    @abstractmethod
    def _combination_header(self) -> dict[str, Any]:
        """Return the header entries of what combines the members."""

    @abstractmethod
    def _load_combination(self, header: dict[str, Any], frame: dict[str, Any], models: list[Estimator]) -> None:
        """Set the members, and what `_combination_header` gives; refuse what does not fit them."""

    def _parts(self) -> list[BaseEstimator]:
        """Return the fitted models that files hold, in order."""
        return list(self.estimators_)

    def _about(self) -> About:
        weights = self._member_weights()
        return About(
            "ensemble",
            {"members": self._names, "weights": weights},
            sentence=f"{len(weights)} models together.",
            why_no_trees="The file holds an ensemble of different models. Look at its named_estimators_ in Python.",
            is_shown=False,
        )

    def _member_weights(self) -> list[float] | list[None]:
        """Return the weight of each member, where that is a number."""
        return [None] * len(self._names)

    @abstractmethod
    def _identity(self) -> bytes:
        """Return the numbers that turn predictions of members into those of the ensemble."""

    def fingerprint(self) -> str:
        """Hash of the members, in their order, and of what combines them; all must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads and kind of table.
        """
        check_is_fitted(self)
        return fingerprint_of(self._parts(), self._identity())
