"""Ensembles of different models ⇄ model files: each model's own header in one header, their trees in one row."""

from __future__ import annotations

import hashlib
from typing import Any

import spinney._engine as _engine
from spinney._ensemble.combination.members import read_members
from spinney._estimator.estimator import Estimator, class_name
from spinney._estimator.saving import (
    class_named,
    opening,
    template_from_json,
    template_to_json,
    unfitted,
)
from spinney._model.file.container import refuse
from spinney._model.file.values import labels_to_json
from spinney._model.saving.members import read_frame, read_models


def models_parts(models: list[Any]) -> tuple[list[dict[str, Any]], list[_engine.Tree]]:
    """Return headers and trees of fitted models, which must all be of spinney."""
    headers: list[dict[str, Any]] = []
    trees: list[_engine.Tree] = []
    for part in models:
        if not isinstance(part, Estimator) or class_name(part) is None:
            raise TypeError(
                f"A model file holds models of spinney; one of this ensemble is of the type {type(part).__name__}. "
                "Pickle the ensemble instead."
            )
        header, own = part._file_parts()
        headers.append({"n_trees": len(own), "model": header})
        trees += own
    return headers, trees


def models_of(header: dict[str, Any], file: Any) -> list[Any]:
    """Turn back what `models_parts` gives."""
    return read_models(header, file, lambda own, trees: class_named(own, Estimator)._from_file(own, trees))


def fingerprint_of(models: list[Any], identity: bytes) -> str:
    """Hash fitted models, in their order, and the numbers that turn what they say into predictions."""
    digest = hashlib.sha256(identity)
    for model in models:
        if not hasattr(model, "fingerprint"):
            raise TypeError(f"Models of the type {type(model).__name__} have no fingerprint, so the ensemble has none.")
        digest.update(model.fingerprint().encode())
    return digest.hexdigest()


def combination_parts(model: Any) -> tuple[dict[str, Any], list[_engine.Tree]]:
    """Return header and trees of a fitted ensemble whose models are all of spinney."""
    headers, trees = models_parts(model._parts())
    header = {
        **opening(model, model._saved_parameters()),
        "kind": model._kind,
        "classes": labels_to_json(model.classes_) if hasattr(model, "classes_") else None,
        "names": model._column_names,
        "n_features": int(model.n_features_in_),
        "members": list(model._names),
        "models": headers,
    }
    return header | model._to_header(), trees


def combination_from_file(kind: Any, header: dict[str, Any], file: Any) -> Any:
    """Turn back what `combination_parts` gives."""
    model = unfitted(kind, header)
    learned = read_frame(header)
    if ("classes_" in learned) != (kind._task == "Classifier"):
        refuse("is damaged: its estimator and its classes do not go together")
    models = models_of(header, file)
    model.__dict__.update(learned | kind._from_header(header, learned | {"_models": models}))
    model._check_loaded()
    return model


# ---- members as parameters -------------------------------------------------------------------------------------------


def members_to_json(given: Any) -> Any:
    """Return members as parameters in a form that files hold: names, and words or estimators without their fit."""
    if given is None:
        return None
    return [[name, one if isinstance(one, str) else template_to_json(one)] for name, one in read_members(given)]


def members_from_json(kept: Any) -> Any:
    """Turn back what `members_to_json` gives."""
    if kept is None:
        return None
    if not isinstance(kept, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in kept):
        refuse("is damaged: its members as parameters are unusable")
    found = [(name, one if isinstance(one, str) else template_from_json(one)) for name, one in kept]
    read_members(found)
    return found
