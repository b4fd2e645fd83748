"""Base of ensembles whose members may be estimators of any library: their table, model files and fingerprint."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data.columns import match_columns
from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._ensemble.members import read_members
from spinney._estimator.estimator import (
    Estimator,
    class_name,
    class_named,
    opening,
    template_from_json,
    template_to_json,
    unfitted,
)
from spinney._model.file.container import refuse
from spinney._model.saving.members import TABLE, read_models, read_table_attributes

Ensemble = TypeVar("Ensemble", bound=Estimator)


def matched_table(X: TableLike, names: list[str] | None, n_columns: int, ensemble: str) -> PickTable:
    """Return a table with its columns in the order of the training table."""
    table = pick_table(X)
    order = match_columns(table.names, table.n_columns, names, n_columns, ensemble)
    return table if order is None else pick_table(table.take(columns=np.array(order)))


def fingerprint_of(models: Sequence[BaseEstimator], prefixes: Sequence[bytes]) -> str:
    """Hash fitted models in order, each preceded by the bytes of the numbers that combine its predictions."""
    digest = hashlib.sha256()
    for model, prefix in zip(models, prefixes, strict=True):
        if not hasattr(model, "fingerprint"):
            raise TypeError(
                f"Members of the type {type(model).__name__} have no fingerprint, so the ensemble has none."
            )
        digest.update(prefix + model.fingerprint().encode())
    return digest.hexdigest()


# ---- model files -------------------------------------------------------------------------------------------------


def saved_template(estimator: Any) -> Any:
    """Return an unfitted estimator as files hold it; names and None stay as they are."""
    return estimator if estimator is None or isinstance(estimator, str) else template_to_json(estimator)


def loaded_template(saved: Any) -> Any:
    """Turn back what `saved_template` returns."""
    return saved if saved is None or isinstance(saved, str) else template_from_json(saved)


def members_to_json(members: Any) -> Any:
    """Return a parameter that lists members as files hold it: names, and model names or unfitted estimators."""
    if members is None:
        return None
    return [[name, saved_template(member)] for name, member in read_members(members)]


def members_from_json(saved: Any) -> Any:
    """Turn back what `members_to_json` returns."""
    if saved is None:
        return None
    if not isinstance(saved, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in saved):
        refuse("is damaged: the parameter that lists its members is unusable")
    members = [(name, loaded_template(member)) for name, member in saved]
    read_members(members)
    return members


def ensemble_to_file(
    ensemble: Estimator, kind: str, models: Sequence[BaseEstimator]
) -> tuple[dict[str, Any], list[_engine.Tree]]:
    """Return the header and the trees of an ensemble of fitted models, all of which must be spinney's."""
    headers: list[dict[str, Any]] = []
    trees: list[_engine.Tree] = []
    for model in models:
        if not isinstance(model, Estimator) or class_name(model) is None:
            raise TypeError(
                f"A model file holds models of spinney; one of this ensemble is of the type {type(model).__name__}. "
                "Pickle the ensemble instead."
            )
        header, own = model._file_parts()
        headers.append({"n_trees": len(own), "model": header})
        trees += own
    start = opening(ensemble, ensemble._saved_parameters())
    return start | {"kind": kind, "models": headers} | TABLE.to_header(ensemble.__dict__), trees


def ensemble_from_file(
    cls: type[Ensemble], header: dict[str, Any], file: _engine.ModelFile
) -> tuple[Ensemble, list[Estimator]]:
    """Return an ensemble that knows its table and classes, and its fitted models."""
    ensemble, attributes = unfitted(cls, header), read_table_attributes(header)
    if ("classes_" in attributes) != cls._is_class_target:
        refuse("is damaged: a classifier needs classes, and a regressor has none")
    ensemble.__dict__.update(attributes)
    models = read_models(header, file, lambda own, trees: class_named(own, Estimator)._from_file(own, trees))
    return ensemble, models


class BaseEnsemble(Estimator):
    """An ensemble of fitted models that get the caller's table."""

    _kind: ClassVar[str]  # of its model files
    n_features_in_: int
    _column_names: list[str] | None

    def _set_table(self, table: PickTable) -> None:
        """Set the fitted attributes of the training table."""
        self.n_features_in_, self._column_names = table.n_columns, table.names
        self.__dict__.pop("feature_names_in_", None)
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)

    @property
    def _classes(self) -> Any:
        return self.classes_ if self._is_class_target else None

    def _matched(self, X: TableLike) -> PickTable:
        """Return a table with its columns in the order of the training table."""
        check_is_fitted(self)
        if self._is_open:
            return pick_table(X)
        return matched_table(X, self._column_names, self.n_features_in_, type(self).__name__)

    @property
    def _is_open(self) -> bool:
        """Whether its members choose their columns from any table."""
        return all(getattr(getattr(model, "schema_", None), "is_open", False) for model in self._models())

    def _models(self) -> list[BaseEstimator]:
        """Return the fitted models in the order in which files hold them."""
        return list(self.estimators_)

    @abstractmethod
    def _to_header(self) -> dict[str, Any]:
        """Return the header entries that belong to this kind of ensemble."""

    @abstractmethod
    def _set_models(self, header: dict[str, Any], models: list[Estimator]) -> None:
        """Set the fitted attributes from models and from what `_to_header` returns; refuse what does not fit."""

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        header, trees = ensemble_to_file(self, self._kind, self._models())
        return header | self._to_header(), trees

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        ensemble, models = ensemble_from_file(cls, header, file)
        ensemble._set_models(header, models)
        return ensemble
