"""Trees of other libraries: their nodes in any order, and thresholds in single precision.

A library that compares in single precision rounds a number first. Rounding is monotonic, so all numbers that go left
lie below one double, which is the threshold: the largest double that rounds to at most the largest single that goes
left. A number halfway between two singles rounds to the one whose last bit is 0.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Feature, Schema
from spinney._data.columns import default_names
from spinney._data.types import Floats
from spinney._interchange.reading.estimators import Imported, ImportedClassifier, ImportedRegressor
from spinney._model.boosting import FittedImport
from spinney._model.file.container import refuse
from spinney._model.links import is_imported_link
from spinney._model.saving.saved_model import SavedModel

MISSING_LEFT, CATEGORY, OTHERS_LEFT = 1, 2, 4  # the engine's flags
_TOP = 2.0**128 - 2.0**103  # halfway from the largest single to the next power of two


def reach_of_singles(largest: object) -> Floats:
    """Return the largest double that rounds to at most each single.

    Parameters
    ----------
    largest : array-like of float32

    Returns
    -------
    ndarray of float64
    """
    single = np.atleast_1d(np.asarray(largest, dtype=np.float32))
    with np.errstate(invalid="ignore", over="ignore"):
        above = np.nextafter(single, np.float32(np.inf))
        middle = single.astype(np.float64) / 2 + above.astype(np.float64) / 2
    middle = np.where(np.isinf(above), _TOP, np.where(np.isneginf(single), -_TOP, middle))
    are_costs_equal = (single.view(np.uint32) & 1) == 0
    reach = np.where(are_costs_equal, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(single), np.inf, reach)


def cuts_below_singles(thresholds: object) -> Floats:
    """Return double thresholds equivalent to ``float32(x) < threshold``."""
    return reach_of_singles(_below(np.asarray(thresholds, dtype=np.float32)))


def _below(single: Any) -> Any:
    """Return the next lower single."""
    with np.errstate(over="ignore"):
        return np.nextafter(single, np.float32(-np.inf))


def cuts_of_singles(thresholds: object) -> Floats:
    """Return double thresholds equivalent to ``float32(x) <= threshold``, where the threshold is a double."""
    wide = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    single = np.where(single > wide, _below(single), single)
    return reach_of_singles(single)


def as_singles(value: float) -> tuple[float, float]:
    """Return the lowest and the highest double that round to the same single as a number."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    below = reach_of_singles(_below(single))[0]
    return float(np.nextafter(below, np.inf)), float(reach_of_singles(single)[0])


@dataclass
class Nodes:
    """The nodes of one tree; node 0 is the root.

    Attributes
    ----------
    left, right : ndarray of int
        Children; negative in leaves.
    feature, threshold : ndarray
        Splits: the column, and the largest number that goes left.
    missing_left : ndarray of bool
        Whether rows without a value go left.
    value : ndarray of shape (n_nodes,) or (n_nodes, width)
        Values of leaves; with `impurity`, also of splits.
    weight, n_rows : ndarray
        Weight and number of the training rows of each node.
    gain : ndarray, or None
        Gain of each split.
    impurity : ndarray, or None
        Impurity of each node, if `gain` is None.
    sets : dict
        For each node that splits categories: the listed codes, ascending, and whether all other codes go left.
    """

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: Floats
    missing_left: NDArray[Any]
    value: Floats
    weight: Floats
    n_rows: NDArray[Any]
    gain: Floats | None = None
    impurity: Floats | None = None
    sets: dict[int, tuple[NDArray[Any], bool]] = field(default_factory=dict)

    def tree(self, n_categories: list[int], which: int) -> _engine.Tree:
        """Make the engine's tree; `which` is its number for messages."""
        n = len(self.left)
        flags = np.where(self.missing_left, MISSING_LEFT, 0).astype(np.uint8)
        begin, codes = np.zeros(n + 1, dtype=np.uint32), []
        for node in sorted(self.sets):
            listed, others_left = self.sets[node]
            flags[node] |= CATEGORY | (OTHERS_LEFT if others_left else 0)
            begin[node + 1] = len(listed)
            codes.append(listed)
        begin = np.cumsum(begin, dtype=np.uint32)
        listed = np.concatenate(codes) if codes else np.empty(0)
        try:
            return _engine.make_tree(
                _as(self.left, np.int32),
                _as(self.right, np.int32),
                _as(self.feature, np.int32),
                _as(self.threshold, np.float64),
                flags,
                begin,
                _as(listed, np.uint32),
                _as(np.maximum(self.weight, 0), np.float64),
                _as(np.clip(self.n_rows, 0, 2**32 - 1), np.uint32),
                _as(self.value.reshape(n, -1), np.float64),
                None if self.gain is None else _as(self.gain, np.float64),
                None if self.impurity is None else _as(self.impurity, np.float64),
                n_categories,
            )
        except ValueError as error:
            refuse(f"is damaged: tree {which} is unusable: {error}")


def _as(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    return np.ascontiguousarray(values, dtype=kind)


def constant_tree(value: float, n_categories: list[int]) -> _engine.Tree:
    """Make a tree with a single leaf."""
    none, one = np.array([-1]), np.ones(1)
    return Nodes(none, none, none, np.zeros(1), none < 0, np.array([value]), one, one, np.zeros(1)).tree(
        n_categories, 0
    )


@dataclass
class TreeSum:
    """A sum of trees read from another library.

    Attributes
    ----------
    schema : Schema
    trees : list of lists of Tree
        Trees of each score.
    start : ndarray of shape (n_scores,)
        Scores before the first tree.
    link : str
        Name of the function from scores to predictions.
    classes : ndarray, or None
        Class labels; None in a regression.
    source, objective : str
        The library with its version, and its name of the objective.
    """

    schema: Schema
    trees: list[list[_engine.Tree]]
    start: Floats
    link: str
    classes: NDArray[Any] | None
    source: str
    objective: str

    def estimator(self) -> Imported:
        """Make the fitted estimator."""
        n_scores, n_categories = len(self.start), self.schema.n_categories
        n_outputs = n_scores if self.classes is None else len(self.classes)
        if not np.isfinite(self.start).all():
            refuse("is damaged: its start scores are not finite")
        if len({len(trees) for trees in self.trees}) != 1 or len(self.trees) != n_scores:
            refuse("is damaged: its scores have different numbers of trees")
        if not is_imported_link(self.link, self.classes is not None, n_scores, n_outputs):
            refuse("is damaged: its scores do not fit its classes")
        if not self.trees[0]:
            self.trees = [[constant_tree(0.0, n_categories)] for _ in self.trees]
        trees = [tree for of_round in zip(*self.trees, strict=True) for tree in of_round]
        n_classes = None if self.classes is None else [len(self.classes)]
        model = FittedImport(trees, np.asarray(self.start, dtype=np.float64), self.link, n_categories, n_classes)
        labels = None if self.classes is None else [self.classes]
        kind = ImportedRegressor if self.classes is None else ImportedClassifier
        estimator = kind(unseen=self.schema.unseen)
        saved = SavedModel(self.schema, model, labels, self.schema.n_features)
        estimator.__dict__.update(saved.attributes())
        estimator.source_, estimator.objective_ = self.source[:100], self.objective[:100]
        return estimator


def schema_of(
    names: Sequence[str] | None,
    n_columns: int,
    categories: dict[int, tuple[Any, ...]],
    unseen: str,
    absent: tuple[float, float] | None = None,
) -> Schema:
    """Make the schema of columns of numbers and categories.

    Parameters
    ----------
    names : sequence of str, or None
    n_columns : int
    categories : dict
        Categories of columns by position; columns without categories hold numbers.
    unseen : {"missing", "error", "other"}
    absent : tuple of two floats, optional
        Range of numbers that are missing values.
    """
    labels = default_names(n_columns) if names is None else names
    features = [
        Feature(name, "category", categories[j]) if categories.get(j) else Feature(name, "number", absent=absent)
        for j, name in enumerate(labels)
    ]
    return Schema(features, names is not None, unseen)  # type: ignore[arg-type]


def links_of(library: str) -> dict[str, str]:
    """Return the link of each objective of a library."""
    text = files("spinney._interchange.reading").joinpath("objectives.toml").read_text(encoding="utf-8")
    return {name: link for link, names in tomllib.loads(text)[library].items() for name in names}


def labels_of(classes: object, n_classes: int) -> NDArray[Any]:
    """Return the labels that a caller passes; without any, the integers from 0."""
    if classes is None:
        return np.arange(n_classes)
    labels = np.asarray(classes)
    if labels.shape != (n_classes,) or len(set(labels.tolist())) < n_classes:
        raise ValueError(f"classes must be {n_classes} different labels, in the order of the model's classes.")
    return labels
