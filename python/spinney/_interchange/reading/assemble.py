"""What was read of another library's model, as an estimator of spinney."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Feature, Schema
from spinney._data.column_names import position_names
from spinney._interchange.reading.estimators import Imported, ImportedClassifier, ImportedRegressor
from spinney._interchange.reading.nodes import constant_tree
from spinney._model.boosting import FittedImport
from spinney._model.file.container import refuse
from spinney._model.links import is_imported_link
from spinney._model.saving.model_part import FittedPart

Floats = NDArray[np.float64]


@dataclass
class Sum:
    """A sum of trees, as it was read.

    Attributes
    ----------
    schema : Schema
    trees : list of lists of Tree
        Those of each score.
    start : ndarray of shape (n_scores,)
        Where scores start.
    link : str
        How they become predictions.
    classes : ndarray, or None
        Labels; None: values.
    source, objective : str
        The library and its version, and what it calls the target.
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
        n_shares = n_scores if self.classes is None else len(self.classes)
        if not np.isfinite(self.start).all():
            refuse("is damaged: its scores start nowhere")
        if len({len(trees) for trees in self.trees}) != 1 or len(self.trees) != n_scores:
            refuse("is damaged: it does not have as many trees for every score")
        if not is_imported_link(self.link, self.classes is not None, n_scores, n_shares):
            refuse("is damaged: its scores do not fit its classes")
        if not self.trees[0]:
            self.trees = [[constant_tree(0.0, n_categories)] for _ in self.trees]
        trees = [tree for of_round in zip(*self.trees, strict=True) for tree in of_round]
        n_classes = None if self.classes is None else [len(self.classes)]
        model = FittedImport(trees, np.asarray(self.start, dtype=np.float64), self.link, n_categories, n_classes)
        labels = None if self.classes is None else [self.classes]
        kind = ImportedRegressor if self.classes is None else ImportedClassifier
        estimator = kind(unseen=self.schema.unseen)
        part = FittedPart(self.schema, model, labels, self.schema.n_features)
        estimator.__dict__.update(part.attributes())
        estimator.source_, estimator.objective_ = self.source[:100], self.objective[:100]
        return estimator


def schema_of(
    names: Sequence[str] | None,
    n_columns: int,
    categories: dict[int, tuple[Any, ...]],
    unseen: str,
    absent: tuple[float, float] | None = None,
) -> Schema:
    """Make the schema of columns, of which some hold categories and the others numbers.

    Parameters
    ----------
    names : sequence of str, or None
    n_columns : int
    categories : dict
        Categories of columns by their position; a column without any is one of numbers.
    unseen : {"missing", "error", "other"}
    absent : tuple of two floats, optional
        Numbers between these are missing values.
    """
    labels = position_names(n_columns) if names is None else names
    features = [
        Feature(name, "category", categories[j]) if categories.get(j) else Feature(name, "number", absent=absent)
        for j, name in enumerate(labels)
    ]
    return Schema(features, names is not None, unseen)  # type: ignore[arg-type]


def labels_of(classes: object, n_classes: int) -> NDArray[Any]:
    """Read the labels that a caller gives; None: the numbers from 0 up."""
    if classes is None:
        return np.arange(n_classes)
    labels = np.asarray(classes)
    if labels.shape != (n_classes,) or len(set(labels.tolist())) < n_classes:
        raise ValueError(f"classes must be {n_classes} different labels, in the order of the model's classes.")
    return labels
