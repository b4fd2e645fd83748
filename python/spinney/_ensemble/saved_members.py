"""Ensembles ⇄ model files: each member's own header in one header, their trees in one row; their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import spinney._engine as _engine
from spinney._data.columns import match_columns
from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._estimator.estimator import Estimator, class_name, class_named
from spinney._model.saving.members import read_models


def models_parts(models: Sequence[BaseEstimator]) -> tuple[list[dict[str, Any]], list[_engine.Tree]]:
    """Return headers and trees of fitted models, which must all be of spinney."""
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
    return headers, trees


def models_of(header: dict[str, Any], file: _engine.ModelFile) -> list[Estimator]:
    """Turn back what `models_parts` gives."""
    return read_models(header, file, lambda own, trees: class_named(own, Estimator)._from_file(own, trees))


def fingerprint_of(models: Sequence[BaseEstimator], identity: bytes) -> str:
    """Hash fitted models, in their order, and the numbers that turn their predictions into those of an ensemble."""
    digest = hashlib.sha256(identity)
    for model in models:
        if not hasattr(model, "fingerprint"):
            raise TypeError(f"Models of the type {type(model).__name__} have no fingerprint, so the ensemble has none.")
        digest.update(model.fingerprint().encode())
    return digest.hexdigest()


def matched_table(X: TableLike, names: list[str] | None, n_columns: int, ensemble: str) -> PickTable:
    """Return a table with its columns as an ensemble has seen them at fit."""
    table = pick_table(X)
    order = match_columns(table.names, table.n_columns, names, n_columns, ensemble)
    return table if order is None else pick_table(table.take(columns=np.array(order)))
