"""Files of several models: the header holds a header for each model, the trees follow each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.types import Floats
from spinney._model.file.codec import (
    Field,
    Known,
    integer,
    listed,
    nullable,
    number,
    numbers,
    optional,
    saved_fields,
    score,
    table,
    word,
    words,
)
from spinney._model.file.container import field, refuse
from spinney._model.file.values import labels
from spinney._model.predictions import METHODS, Calibration, Curve
from spinney._model.saving.saved_model import FileOfTrees


def read_models(header: dict[str, Any], file: Any, read: Callable[[dict[str, Any], Any], Any]) -> list[Any]:
    """Read the models of an ensemble, each from its header and trees."""
    found, first = [], 0
    for entry in field(header, "models", list):
        if not isinstance(entry, dict):
            refuse("is damaged: a model has no header")
        n_trees = field(entry, "n_trees", int)
        found.append(read(field(entry, "model", dict), FileOfTrees(file, first, n_trees)))
        first += n_trees
    if first != file.n_trees:
        refuse("is damaged: its models do not account for its trees")
    return found


TABLE = saved_fields(
    n_features_in_=integer(least=1, key="n_features"),
    _column_names=nullable(words("n_features_in_", key="names")),
    classes_=nullable(labels(key="classes")),
)
NAMES = saved_fields(_names=words("n_members", key="members"))


def read_table_attributes(header: dict[str, Any]) -> dict[str, Any]:
    """Read the columns and the classes of an ensemble, as fitted attributes."""
    found = TABLE.from_header(header)
    if found["_column_names"] is not None:
        found["feature_names_in_"] = np.array(found["_column_names"], dtype=object)
    if found["classes_"] is None:
        del found["classes_"]
        return found
    if (np.sort(found["classes_"]) != found["classes_"]).any():
        refuse("is damaged: its classes are not in order")
    return found | {"n_classes_": len(found["classes_"])}


def read_ensemble(header: dict[str, Any]) -> dict[str, Any]:
    """Read the columns, the classes and the names of the members of an ensemble, as fitted attributes."""
    found = read_table_attributes(header) | NAMES.from_header(header)
    if not found["_names"] or len(set(found["_names"])) < len(found["_names"]):
        refuse("is damaged: its members have no names, or two have the same name")
    if found.get("n_classes_", 2) < 2:
        refuse("is damaged: it has fewer than two classes")
    return found


def check_member(member: object, ensemble: dict[str, Any]) -> None:
    """Refuse a member whose columns, classes or outputs differ from the ensemble's."""
    if getattr(member, "n_features_in_", None) != ensemble["n_features_in_"]:
        refuse("is damaged: a member has other columns")
    check_outputs(member, ensemble)


def check_outputs(model: object, ensemble: dict[str, Any]) -> None:
    """Refuse a model whose classes or outputs differ from the ensemble's."""
    own = getattr(model, "classes_", None)
    if getattr(model, "n_outputs_", 1) != 1 or not hasattr(model, "predict"):
        refuse("is damaged: a member does not predict one target")
    if (own is None) != ("classes_" not in ensemble):
        refuse("is damaged: a member does not fit the classes or outputs")
    if own is not None and not set(np.asarray(own).tolist()) <= set(ensemble["classes_"].tolist()):
        refuse("is damaged: a member does not fit the classes or outputs")


def _read_weights(value: Any, name: str, known: Known) -> Floats:
    weights: Floats = numbers(np.float64, "n_members", least=0).read(value, name, known)
    if abs(weights.sum() - 1) > 1e-9:
        refuse("is damaged: its weights do not add up to 1")
    return weights


WEIGHTS = Field(np.ndarray.tolist, _read_weights)
_TEMPERATURE = number(1e-3, most=1e3)
_CURVE = dict.fromkeys(("predicted", "observed"), numbers(np.float64, "n_points", least=0, most=1))
STACK = saved_fields(
    methods=listed(word(METHODS), "n_members"),
    widths=listed(integer(), "n_members"),
    folds=listed(integer(least=0), "n_members"),
    weights=nullable(WEIGHTS),
    scores=listed(score(), "n_members"),
    temperatures=optional(listed(_TEMPERATURE, "n_members")),
    temperature=optional(_TEMPERATURE),
    curve=optional(table(saved_fields(**_CURVE), Curve)),
)


@dataclass(frozen=True)
class StackPlan:
    """How a stacked ensemble combines its models.

    Attributes
    ----------
    methods : list of str
        Prediction method of each member.
    widths : list of int
        Number of columns that each member predicts.
    members : list of lists
        The models of each member: one, or one for each fold.
    of_folds : list of bool
        Whether a member predicts the mean of its folds' models.
    final : model, or None
        The model that combines the members; None if weights do.
    weights : ndarray of shape (n_members,), or None
    scores : list of float
        Out-of-fold scores of the members.
    calibration : float, Curve or None
        Temperature or calibration curve of the mean probabilities, if weights combine the members.
    temperatures : list of float, or None
        Temperature of each member's probabilities.
    """

    methods: list[str]
    widths: list[int]
    members: list[list[Any]]
    of_folds: list[bool]
    final: Any
    weights: Floats | None
    scores: list[float]
    calibration: Calibration = None
    temperatures: list[float] | None = None

    @classmethod
    def read(cls, header: dict[str, Any], ensemble: dict[str, Any], models: list[Any]) -> StackPlan:
        """Read it from a header and the models."""
        found, rest = STACK.from_header(header, n_members=len(ensemble["_names"])), list(models)
        folds, widths, weights = found["folds"], found["widths"], found["weights"]
        if sum(max(1, n) for n in folds) + (weights is None) != len(rest):
            refuse("is damaged: it lacks models")
        members = [[rest.pop(0) for _ in range(max(1, n))] for n in folds]
        for model in (model for models in members for model in models):
            check_member(model, ensemble)
        _check_methods(found["methods"], widths, ensemble.get("classes_"), weights is not None)
        final = None if weights is not None else rest[0]
        if final is not None:
            check_outputs(final, ensemble)
            if final.n_features_in_ not in (sum(widths), sum(widths) + ensemble["n_features_in_"]):
                refuse("is damaged: its final model does not fit its members")
        calibration = _calibration(found, None if weights is None else ensemble.get("classes_"))
        return cls(
            found["methods"],
            widths,
            members,
            [n > 0 for n in folds],
            final,
            weights,
            found["scores"],
            calibration,
            found.get("temperatures"),
        )


def _calibration(found: dict[str, Any], classes: NDArray[Any] | None) -> Calibration:
    """Return a temperature or a curve; `classes` is None unless probabilities are averaged."""
    curve: Curve | None = found.get("curve")
    n_calibrations = sum(name in found for name in ("temperature", "curve"))
    if (classes is None and (n_calibrations or "temperatures" in found)) or n_calibrations > 1:
        refuse("is damaged: its temperature or its curve is impossible")
    if curve is None:
        return found.get("temperature")
    if classes is None or len(classes) != 2 or not len(curve.predicted):
        refuse("is damaged: its curve is impossible")
    if (np.diff(curve.predicted) <= 0).any() or (np.diff(curve.observed) < 0).any():
        refuse("is damaged: its curve does not rise")
    return curve


def _check_methods(methods: list[str], widths: list[int], classes: Any, is_averaged: bool) -> None:
    for method, width in zip(methods, widths, strict=True):
        if classes is None and method != "predict":
            refuse("is damaged: a member of a regression has a method for classifiers")
        is_one = method == "predict" or len(classes) == 2
        if width not in ((1,) if is_one else (len(classes), len(classes) * (len(classes) - 1) // 2)):
            refuse("is damaged: a member predicts another number of columns")
        if is_averaged and classes is not None and method != "predict_proba":
            refuse("is damaged: its members predict no probabilities to average")
