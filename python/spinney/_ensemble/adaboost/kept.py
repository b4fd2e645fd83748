"""AdaBoost ⇄ model files: the template and the record of the rounds, beside what predicts.

Members that are plain trees are one model, like a forest. Others must be models of spinney themselves, and each has its
header in that of the ensemble.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._ensemble.rounds import REASONS
from spinney._file.arrays import numbers_from_json
from spinney._file.container import field, refuse
from spinney._keep.estimator import KeptModel, class_named, opening, unfitted

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
    return unfitted(class_named(about, KeptModel), about)


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


def refuse_members(members: list[Any]) -> tuple[dict[str, Any], list[_engine.Tree]]:
    """Say that a model file cannot hold these members."""
    raise TypeError(
        "A model file holds AdaBoost of plain decision trees of spinney; the members of this one are of the type "
        f"{type(members[0]).__name__}. Pickle it instead."
    )
