"""Files of several models: each model's own header in one header, their trees in one row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._model.calibration import Calibration, Curve
from spinney._model.file.codec import numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.file.values import labels_from_json
from spinney._model.predictions import METHODS

Floats = NDArray[np.float64]


class TreesOf:
    """Some trees of a model file, as a file of their own."""

    def __init__(self, file: Any, first: int, n_trees: int) -> None:
        if not 0 <= first <= first + n_trees <= file.n_trees:
            refuse("is damaged: it lacks trees")
        self._file, self._first = file, first
        self.n_trees = n_trees

    def tree(self, t: int, n_categories: list[int]) -> _engine.Tree:
        """Read a tree."""
        if not 0 <= t < self.n_trees:
            refuse("is damaged: it lacks trees")
        tree: _engine.Tree = self._file.tree(self._first + t, n_categories)
        return tree


def read_models(header: dict[str, Any], file: Any, read: Callable[[dict[str, Any], Any], Any]) -> list[Any]:
    """Read the models of a header, each from its own header and trees."""
    found, first = [], 0
    for entry in field(header, "models", list):
        if not isinstance(entry, dict):
            refuse("is damaged: a model has no header")
        n_trees = field(entry, "n_trees", int)
        found.append(read(field(entry, "model", dict), TreesOf(file, first, n_trees)))
        first += n_trees
    if first != file.n_trees:
        refuse("is damaged: its models do not account for its trees")
    return found


def read_columns(header: dict[str, Any]) -> dict[str, Any]:
    """Read what an ensemble knows of its table, as fitted attributes."""
    n_features, names = field(header, "n_features", int), header.get("names")
    if n_features < 1:
        refuse("is damaged: its number of columns is impossible")
    found: dict[str, Any] = {"n_features_in_": n_features, "_column_names": names}
    if names is not None:
        if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
            refuse("is damaged: its column names are unusable")
        found["feature_names_in_"] = np.array(names, dtype=object)
    return found


def read_frame(header: dict[str, Any]) -> dict[str, Any]:
    """Read what an ensemble knows of its table, its classes and the names of its members, as fitted attributes."""
    found = read_columns(header)
    if header.get("classes") is not None:
        classes = labels_from_json(header["classes"])
        if len(classes) < 2 or (np.sort(classes) != classes).any():
            refuse("is damaged: its classes are not in order")
        found |= {"classes_": classes, "n_classes_": len(classes)}
    members = field(header, "members", list)
    if not members or not all(isinstance(name, str) for name in members) or len(set(members)) < len(members):
        refuse("is damaged: its members have no names")
    return found | {"_names": members}


def check_member(member: object, frame: dict[str, Any]) -> None:
    """Refuse a member that sees other columns, or predicts other things, than the ensemble."""
    if getattr(member, "n_features_in_", None) != frame["n_features_in_"]:
        refuse("is damaged: a member has other columns")
    check_outputs(member, frame)


def check_outputs(model: object, frame: dict[str, Any]) -> None:
    """Refuse a model that predicts other things than the ensemble."""
    own = getattr(model, "classes_", None)
    if getattr(model, "n_outputs_", 1) != 1 or not hasattr(model, "predict"):
        refuse("is damaged: a member does not predict one target")
    if (own is None) != ("classes_" not in frame):
        refuse("is damaged: a member does not fit the classes or outputs")
    if own is not None and not set(np.asarray(own).tolist()) <= set(frame["classes_"].tolist()):
        refuse("is damaged: a member does not fit the classes or outputs")


def read_weights(header: dict[str, Any], n_members: int) -> Floats:
    """Read the weights of members, which add up to 1."""
    weights = numbers_from_json(field(header, "weights", list), "weights")
    if len(weights) != n_members or (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
        refuse("is damaged: its weights do not fit its members")
    return weights


@dataclass(frozen=True)
class StackPlan:
    """How a stack's models hang together.

    Attributes
    ----------
    methods : list of str
        What each member is asked for.
    widths : list of int
        How many columns each gives.
    members : list of lists
        The models of each: one, or one for each fold.
    of_folds : list of bool
        Whether a member is the mean of its folds' models.
    final : model, or None
        What combines them; None: weights do.
    weights : ndarray of shape (n_members,), or None
    scores : list of float
        Out-of-fold scores of the members.
    calibration : float, Curve or None
        By which logarithms of the mean shares are divided, or a curve off which they are read, where weights combine
        them.
    temperatures : list of float, or None
        By which logarithms of each member's shares are divided before that.
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
    def read(cls, header: dict[str, Any], frame: dict[str, Any], models: list[Any]) -> StackPlan:
        """Read it from a header, given the models."""
        n_members, rest = len(frame["_names"]), list(models)
        methods, widths, folds, scores = (field(header, key, list) for key in ("methods", "widths", "folds", "scores"))
        if any(len(entry) != n_members for entry in (methods, widths, folds, scores)):
            refuse("is damaged: its members are not all described")
        if any(type(n) is not int or n < 0 for n in folds):
            refuse("is damaged: the number of models of a member is impossible")
        weights = None if header.get("weights") is None else read_weights(header, n_members)
        if sum(max(1, n) for n in folds) + (weights is None) != len(rest):
            refuse("is damaged: it lacks models")
        members = [[rest.pop(0) for _ in range(max(1, n))] for n in folds]
        for model in (model for models in members for model in models):
            check_member(model, frame)
        _check_methods(methods, widths, frame.get("classes_"), weights is not None)
        final = rest[0] if weights is None else None
        if final is not None:
            check_outputs(final, frame)
            if final.n_features_in_ not in (sum(widths), sum(widths) + frame["n_features_in_"]):
                refuse("is damaged: what combines its members does not fit them")
        classes = frame.get("classes_") if weights is not None else None
        calibration, each = _read_calibration(header, classes), _read_temperatures(header, classes, n_members)
        known = [_score(s) for s in scores]
        return cls(methods, widths, members, [n > 0 for n in folds], final, weights, known, calibration, each)


def _read_calibration(header: dict[str, Any], classes: NDArray[Any] | None) -> Calibration:
    """Read a temperature or a curve; classes are None where shares are not averaged."""
    value, curve = header.get("temperature"), header.get("curve")
    if value is not None:
        if classes is None or curve is not None:
            refuse("is damaged: its temperature is impossible")
        return _temperature(value)
    if curve is None:
        return None
    if classes is None or len(classes) != 2 or not isinstance(curve, dict):
        refuse("is damaged: its curve is impossible")
    said, true = (numbers_from_json(field(curve, key, list), "curve") for key in ("said", "true"))
    if not len(said) == len(true) > 0 or (np.diff(said) <= 0).any() or (np.diff(true) < 0).any():
        refuse("is damaged: its curve does not rise")
    if not all(0 <= one[0] <= one[-1] <= 1 for one in (said, true)):
        refuse("is damaged: its curve holds no shares")
    return Curve(said, true)


def _read_temperatures(header: dict[str, Any], classes: NDArray[Any] | None, n_members: int) -> list[float] | None:
    """Read the temperatures of members; classes are None where shares are not averaged."""
    values = header.get("temperatures")
    if values is None:
        return None
    if classes is None or not isinstance(values, list) or len(values) != n_members:
        refuse("is damaged: its temperatures do not fit its members")
    return [_temperature(value) for value in values]


def _temperature(value: Any) -> float:
    if type(value) not in (int, float) or not 1e-3 <= value <= 1e3:
        refuse("is damaged: its temperature is impossible")
    return float(value)


def _check_methods(methods: list[Any], widths: list[Any], classes: Any, is_averaged: bool) -> None:
    for method, width in zip(methods, widths, strict=True):
        if method not in METHODS or (classes is None and method != "predict"):
            refuse("is damaged: a member cannot be asked as it says")
        is_one = method == "predict" or len(classes) == 2
        wanted = (1,) if is_one else (len(classes), len(classes) * (len(classes) - 1) // 2)
        if type(width) is not int or width not in wanted:
            refuse("is damaged: a member gives another number of columns")
        if is_averaged and classes is not None and method != "predict_proba":
            refuse("is damaged: its members give no probabilities to average")


def _score(value: Any) -> float:
    if value is None:
        return math.nan
    if type(value) not in (int, float) or not math.isfinite(value):
        refuse("is damaged: a score is not a number")
    return float(value)
