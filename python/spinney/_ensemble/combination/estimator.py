"""What ensembles of different estimators share: their members as parameters, tables, routing, files."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import Bunch, get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.column_names import match_columns
from spinney._data.display.warn import warn
from spinney._data.select import PickTable, pick_table
from spinney._ensemble.combination.members import estimator_of_word, read_members
from spinney._ensemble.combination.prediction import gets_codes
from spinney._ensemble.combination.saved_state import (
    combination_from_file,
    combination_parts,
    fingerprint_of,
    members_from_json,
    members_to_json,
)
from spinney._ensemble.member import takes_weights
from spinney._estimator.estimator import Estimator
from spinney._estimator.summary import About


class BaseCombination(Estimator):
    """An ensemble of different estimators."""

    _kind: ClassVar[str]  # what model files call it
    _task: ClassVar[str]  # "Classifier" or "Regressor"
    _default_members: ClassVar[tuple[str, ...]] = ("forest", "extra_trees", "boosting", "linear")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimators": [list, tuple, dict, None],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    estimators_: list[Any]

    # ---- members -------------------------------------------------------------------------------------

    def _members(self) -> list[tuple[str, Any]]:
        """Return names and estimators, unfitted."""
        given = list(self._default_members) if self.estimators is None else self.estimators
        found = [
            (name, estimator_of_word(one, self._task) if isinstance(one, str) else one)
            for name, one in read_members(given)
        ]
        is_right = is_classifier if self._task == "Classifier" else is_regressor
        for name, estimator in found:
            if not is_right(estimator):
                noun = self._task.lower()
                raise ValueError(
                    f"The estimator {type(estimator).__name__} should be a {noun}: {name!r} is none, and "
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
            for name, estimator in self._given_members():
                found[name] = estimator
                if hasattr(estimator, "get_params"):
                    found |= {f"{name}__{key}": value for key, value in estimator.get_params(deep=True).items()}
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
            self.estimators = [(name, changed.get(name, estimator)) for name, estimator in by_name.items()]
        return super().set_params(**params)

    def _given_members(self) -> list[tuple[str, Any]]:
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

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[Any] | None, dict[str, Any]]:
        """Check y; return labels or values, codes of classes, and fitted attributes."""

    def _by_code(self, estimator: Any) -> bool:
        return self._task == "Classifier" and gets_codes(estimator)

    def _warn_of_weights(self, members: list[tuple[str, Any]]) -> None:
        """Say which members take no weights."""
        without = [name for name, estimator in members if not takes_weights(estimator)]
        if without:
            warn(
                f"These members take no sample_weight and are fitted without: {', '.join(without)}. Rows of weight 0 "
                "are left out all the same."
            )

    def _keep(self, table: PickTable, learned: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        self.n_features_in_ = table.n_columns
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        self.__dict__.update(learned | {"_column_names": table.names})

    def _matched(self, X: Any) -> PickTable:
        """Return the table with its columns as they were at fit."""
        check_is_fitted(self)
        table = pick_table(X)
        order = match_columns(
            table.names, table.n_columns, self._column_names, self.n_features_in_, type(self).__name__
        )
        return table if order is None else pick_table(table.take(columns=np.array(order)))

    # ---- scikit-learn's routing and tags -------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn's metadata routing wants to know: what `fit` hands on to which member.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, estimator in self._asking_members():
            router.add(**{name: estimator}, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def _asking_members(self) -> list[tuple[str, Any]]:
        """Return the members that may have asked for metadata: those that are given as estimators."""
        return [(name, estimator) for name, estimator in self._given_members() if not isinstance(estimator, str)]

    def _routed(self, params: dict[str, Any], names: list[str]) -> dict[str, dict[str, Any]]:
        """Return what each member is to be given at `fit` beside its rows."""
        if not params:
            return {name: {} for name in names}
        if not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"fit hands {', '.join(params)} on to members only where metadata routing is on: "
                "sklearn.set_config(enable_metadata_routing=True), and members that request it."
            )
        routed = process_routing(self, "fit", **params)
        asking = {name for name, _ in self._asking_members()}
        return {name: dict(routed[name]["fit"]) if name in asking else {} for name in names}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            members = [get_tags(estimator).input_tags for _, estimator in self._members()]
        except (TypeError, ValueError):
            return tags
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, all(getattr(member, name) for member in members))
        return tags

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {"estimators": members_to_json(self.estimators)}

    @classmethod
    def _loaded_parameters(cls, kept: dict[str, Any]) -> dict[str, Any]:
        return super()._loaded_parameters(kept) | {"estimators": members_from_json(kept.get("estimators"))}

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        return combination_parts(self)

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        model: Self = combination_from_file(cls, header, file)
        return model

    def _to_header(self) -> dict[str, Any]:
        """Return the header entries of what is remembered beside the members."""
        return {}

    @classmethod
    def _from_header(cls, header: dict[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
        """Turn back what `_to_header` gives, given what else was learned."""
        return {}

    def _check_loaded(self) -> None:
        """Refuse parameters that do not fit what was learned."""
        return

    def _parts(self) -> list[Any]:
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
        """Return what each member counts, where that is a number."""
        return [None] * len(self._names)

    def _identity(self) -> bytes:
        """Return the numbers that turn what members say into predictions."""
        return b""

    def fingerprint(self) -> str:
        """Hash of the members, in their order, and of what combines them; all must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads and kind of table.
        """
        check_is_fitted(self)
        return fingerprint_of(self._parts(), self._identity())
