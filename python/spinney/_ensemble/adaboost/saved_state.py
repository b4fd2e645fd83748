"""AdaBoost ⇄ model files: the template and the record of the rounds, beside what predicts.

Members that are plain trees are one model, like a forest. Others must be models of spinney themselves: the file holds
each as a file of its own would.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._ensemble.rounds import REASONS
from spinney._ensemble.saved_members import models_of, models_parts
from spinney._estimator.saving import (
    class_named,
    opening,
    template_from_json,
    template_to_json,
    unfitted,
)
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.file.arrays import numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.file.values import labels_to_json
from spinney._model.saving.members import check_member, read_frame

KIND = "adaboost_members"

_CURVES = {
    "errors": "estimator_errors_",
    "normalizers": "normalizers_",
    "reach": "_reach",
    "losses": "train_losses_",
    "train_score": "train_score_",
    "validation_score": "validation_score_",
}
_OF_ALL_ROUNDS = ("train_score", "validation_score")  # those that were dropped included
_ALWAYS = ("errors", "normalizers", "reach")


def opening_of(model: Any) -> dict[str, Any]:
    """Return the first entries of the header, and what members are clones of."""
    parameters = model.get_params(deep=False)
    template = parameters.pop("estimator")
    about = None if template is None else opening(template, template.get_params(deep=False))
    return opening(model, parameters) | {"template": about}


def template_of(header: dict[str, Any]) -> Any:
    """Return the parameter `estimator` of a header."""
    if header.get("template") is None:
        return None
    about = field(header, "template", dict)
    return unfitted(class_named(about, TableEstimator), about)


def rounds_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entry of the record of the rounds."""
    curves = {name: attributes[key].tolist() for name, key in _CURVES.items() if key in attributes}
    return {"rounds": curves | {"stopped": attributes["stopped_"]}}


def rounds_from_json(header: dict[str, Any], n_rounds: int) -> dict[str, Any]:
    """Turn back what `rounds_to_json` gives."""
    entry = field(header, "rounds", dict)
    found: dict[str, Any] = {"stopped_": field(entry, "stopped", str)}
    if found["stopped_"] not in REASONS:
        refuse("is damaged: it does not say why its rounds ended")
    for name, key in _CURVES.items():
        if name in entry or name in _ALWAYS:
            found[key] = _curve(entry, name, n_rounds)
    return found


def _curve(entry: dict[str, Any], name: str, n_rounds: int) -> NDArray[np.float64]:
    numbers = numbers_from_json(field(entry, name, list), name)
    if len(numbers) < n_rounds or (len(numbers) > n_rounds and name not in _OF_ALL_ROUNDS):
        refuse("is damaged: the record of its rounds does not fit the model")
    return numbers


def members_parts(model: Any) -> tuple[dict[str, Any], list[_engine.Tree]]:
    """Return header and trees of a fitted AdaBoost whose members are other models than plain trees, all of spinney."""
    headers, trees = models_parts(model._members)
    parameters = model.get_params(deep=False)
    template = parameters.pop("estimator")
    header: dict[str, Any] = {
        **opening(model, parameters),
        "kind": KIND,
        "template": None if template is None else template_to_json(template),
        "classes": labels_to_json(model.classes_) if hasattr(model, "classes_") else None,
        "names": model._column_names,
        "n_features": int(model.n_features_in_),
        "members": [str(number) for number in range(len(headers))],
        "models": headers,
        "weights": model.estimator_weights_.tolist(),
    }
    return header | rounds_to_json(model.__dict__), trees


def members_from_file(kind: Any, header: dict[str, Any], file: Any) -> Any:
    """Turn back what `members_parts` gives."""
    template = None if header.get("template") is None else template_from_json(header["template"])
    model = unfitted(kind, header, estimator=template)
    frame = read_frame(header)
    if ("classes_" in frame) != kind._is_class_target:
        refuse("is damaged: its estimator and its classes do not go together")
    weights = numbers_from_json(field(header, "weights", list), "weights")
    members = models_of(header, file)
    n_of_round = len(members) // max(1, len(weights))
    learned = {name: value for name, value in frame.items() if name != "_names"}
    learned |= rounds_from_json(header, len(weights)) | model._known_rule(learned)
    if not len(weights) or len(members) != n_of_round * len(weights) or n_of_round != model._members_of_round(learned):
        refuse("is damaged: its weights do not fit its members")
    of_values = model._member_classes(learned) is None
    for member in members:
        check_member(member, {"n_features_in_": frame["n_features_in_"]} if of_values else frame)
    learned |= {"_members": members, "_n_of_round": n_of_round, "estimator_weights_": weights, "n_iter_": len(weights)}
    model.__dict__.update(learned | {"estimator_": model._template()})
    return model
