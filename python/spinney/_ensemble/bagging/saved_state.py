"""Ensembles of trees and forests ⇄ model files: the members' headers in one header, their trees in one row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._estimator.estimator import class_name
from spinney._estimator.saving import class_named, opening, unfitted
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.file.values import labels_from_json, labels_to_json
from spinney._model.saving.model_part import FittedPart

KIND = "bagging"


def ensemble_parts(model: Any) -> tuple[dict[str, Any], list[_engine.Tree]]:
    """Return header and trees of a fitted ensemble whose members are models of spinney."""
    for member in model.estimators_:
        if not isinstance(member, TableEstimator) or class_name(member) is None:
            raise TypeError(
                "A model file holds trees, forests and boosting of spinney; the members of this ensemble are of the "
                f"type {type(member).__name__}. Pickle the ensemble instead."
            )
    members: list[dict[str, Any]] = []
    trees: list[_engine.Tree] = []
    for member, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        part = member._part()
        own = part.model.trees()
        whole = model._takes_all_columns[len(members)]
        about = {"n_trees": len(own), "columns": None if whole else columns.tolist()}
        members.append(member._header() | part.header() | about)
        trees += own
    parameters = model.get_params(deep=False)
    template = parameters.pop("estimator")
    header: dict[str, Any] = {
        **opening(model, parameters),
        "kind": KIND,
        "template": None if template is None else opening(template, template.get_params(deep=False)),
        "classes": labels_to_json(model.classes_) if hasattr(model, "classes_") else None,
        "n_outputs": int(getattr(model, "n_outputs_", 1)),
        "names": model._column_names,
        "n_features": int(model.n_features_in_),
        "members": members,
    }
    if hasattr(model, "oob_score_"):
        header["oob_score"] = float(model.oob_score_) if math.isfinite(model.oob_score_) else None
    if hasattr(model, "oob_curve_"):
        header["oob_curve"] = array_to_json(np.asarray(model.oob_curve_, dtype=np.float64))
    return header, trees


def ensemble_from_file(kind: Any, header: dict[str, Any], file: _engine.ModelFile) -> Any:
    """Turn back what `ensemble_parts` gives."""
    template = None
    if header.get("template") is not None:
        about = field(header, "template", dict)
        template = unfitted(class_named(about, TableEstimator), about)
    model = unfitted(kind, header, estimator=template)
    learned = _of_table(header)
    if header.get("classes") is not None:
        learned |= _of_classes(labels_from_json(header["classes"]))
    else:
        learned["n_outputs_"] = field(header, "n_outputs", int)
    if ("classes_" in learned) != kind._is_class_target:
        refuse("is damaged: its estimator and its classes do not go together")
    learned |= _members(field(header, "members", list), file, learned)
    learned["estimator_"] = model._default_estimator() if template is None else template
    if "oob_score" in header:
        score = header["oob_score"]
        learned["oob_score_"] = math.nan if score is None else float(field(header, "oob_score", float))
    if "oob_curve" in header:
        learned["oob_curve_"] = array_from_json(header["oob_curve"], ("float64",), (len(learned["estimators_"]),))
    model.__dict__.update(learned)
    return model


def _of_table(header: dict[str, Any]) -> dict[str, Any]:
    n_features, names = field(header, "n_features", int), header.get("names")
    if n_features < 1:
        refuse("is damaged: its number of columns is impossible")
    found: dict[str, Any] = {"n_features_in_": n_features, "_column_names": names}
    if names is not None:
        if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
            refuse("is damaged: its column names are unusable")
        found["feature_names_in_"] = np.array(names, dtype=object)
    return found


def _of_classes(classes: NDArray[Any]) -> dict[str, Any]:
    return {"classes_": classes, "n_classes_": len(classes)}


def _members(headers: list[Any], file: _engine.ModelFile, learned: dict[str, Any]) -> dict[str, Any]:
    members, columns, whole, first = [], [], [], 0
    for header in headers:
        if not isinstance(header, dict):
            refuse("is damaged: a member has no header")
        n_trees = field(header, "n_trees", int)
        part = FittedPart.from_header(header, file, first, n_trees)
        first += n_trees
        members.append(class_named(header, TableEstimator)._of_part(header, part))
        columns.append(_columns(header.get("columns"), part.schema.n_features, learned["n_features_in_"]))
        whole.append(header.get("columns") is None)
        _check_outputs(part, learned)
    if not members or first != file.n_trees:
        refuse("is damaged: its members do not account for its trees")
    return {"estimators_": members, "estimators_features_": columns, "_takes_all_columns": whole}


def _check_outputs(part: FittedPart, learned: dict[str, Any]) -> None:
    if "classes_" not in learned:
        fits = part.classes is None and part.model.n_outputs == learned["n_outputs_"]
    else:
        fits = part.classes is not None and len(part.classes) == 1
        fits = fits and set(part.classes[0].tolist()) <= set(learned["classes_"].tolist())  # type: ignore[index]
    if not fits:
        refuse("is damaged: a member does not fit the classes or outputs")


def _columns(given: Any, n_own: int, n_all: int) -> NDArray[np.intp]:
    found = np.arange(n_all) if given is None else np.array(given)
    if found.ndim != 1 or found.dtype.kind != "i" or len(found) != n_own or found.min() < 0 or found.max() >= n_all:
        refuse("is damaged: a member's columns are impossible")
    return found.astype(np.intp)
