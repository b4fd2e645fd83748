"""What a tree, forest or boosting has learned ⇄ the header and trees of a model file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._model.file.container import field, refuse, to_bytes
from spinney._model.file.values import labels_from_json, labels_to_json
from spinney._model.model import FittedModel, Frame, ModelOfTrees, decision_costs
from spinney._names import FITTED_KINDS, fitted_class


@dataclass(frozen=True)
class FittedPart:
    """What a tree, forest or boosting has learned.

    Attributes
    ----------
    schema : Schema
    model : FittedModel
    classes : list of ndarray, or None
        Labels of each output; None in a regression.
    max_features : int, or None
        Columns tried at each node; None if the model is not made of trees.
    cost_matrix : ndarray of shape (n_classes, n_classes), or None
        Cost of predicting class j (column) for class i (row).
    priors : ndarray of shape (n_classes,), or None
        Class probabilities that were assumed.
    """

    schema: Schema
    model: FittedModel
    classes: list[NDArray[Any]] | None
    max_features: int | None
    cost_matrix: NDArray[np.float64] | None = None
    priors: NDArray[np.float64] | None = None

    def header(self) -> dict[str, Any]:
        """Return what a header says of it."""
        fields: dict[str, Any] = {
            "schema": self.schema.to_dict(),
            "classes": None if self.classes is None else [labels_to_json(labels) for labels in self.classes],
            "n_outputs": self.model.n_outputs,
        }
        if self.max_features is not None:
            fields["max_features"] = int(self.max_features)
        fields |= self.model.to_header()
        for name, numbers in (("cost_matrix", self.cost_matrix), ("priors", self.priors)):
            if numbers is not None:
                fields[name] = numbers.tolist()
        return fields

    def to_bytes(self, more: dict[str, Any]) -> bytes:
        """Write a model file with `more` in its header."""
        return to_bytes(more | self.header(), self.model.trees())

    def without_labels(self) -> FittedPart:
        """Return the same with numbers as labels, for pickles: labels may be of types that no model file holds."""
        if self.classes is None:
            return self
        return replace(self, classes=[np.arange(len(labels)) for labels in self.classes])

    def fingerprint(self) -> str:
        """Hash of the trees and of what turns their values into predictions; names do not count."""
        digest = hashlib.sha256(self.model.identity())
        if self.schema.pool is not None:
            pool = self.schema.pool
            for array in (np.array(pool.plain, dtype=np.int64), pool.parts.astype(np.int64), pool.coefficients):
                digest.update(np.ascontiguousarray(array).tobytes())
        for tree in self.model.trees():
            digest.update(tree.__getstate__()[1])
        return digest.hexdigest()

    @classmethod
    def from_header(cls, header: dict[str, Any], file: _engine.ModelFile, first: int, n_trees: int) -> FittedPart:
        """Read the model of a header whose trees are n_trees of a file, from the first."""
        schema = Schema.from_dict(field(header, "schema", dict))
        n_outputs = field(header, "n_outputs", int)
        classes = None
        if header.get("classes") is not None:
            classes = [labels_from_json(labels) for labels in field(header, "classes", list)]
        if not 0 <= first <= first + n_trees <= file.n_trees:
            refuse("is damaged: it lacks trees")
        if n_outputs < 1 or (classes is not None and len(classes) != n_outputs):
            refuse("is damaged: its number of outputs is wrong")
        n_classes = None if classes is None else [len(labels) for labels in classes]
        kind = kind_of(header)
        if kind not in FITTED_KINDS:
            refuse(f"holds a model that this spinney does not know, {kind[:100]!r}: upgrade spinney")
        max_features = None
        if issubclass(fitted_class(kind), ModelOfTrees):
            max_features = field(header, "max_features", int)
            if not 0 < max_features <= schema.n_split_features:
                refuse("is damaged: its number of columns tried is impossible")
        cost, priors = _read_costs(header, n_classes)
        frame = Frame(schema, n_classes, n_outputs, decision_costs(cost, priors))
        try:
            trees = [file.tree(t, schema.n_categories) for t in range(first, first + n_trees)]
            model = fitted_class(kind).from_file(header, trees, frame)
        except ValueError as error:
            refuse(str(error))
        if (cost is not None or priors is not None) and not model.takes_costs:
            refuse(f"is damaged: it has costs or priors, which a {model.noun} does not use")
        return cls(schema, model, classes, max_features, cost, priors)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of the estimator."""
        schema, classes = self.schema, self.classes
        found: dict[str, Any] = {
            "schema_": schema,
            "n_features_in_": schema.n_features,
        } | self.model.attributes()
        if self.max_features is not None:
            found["max_features_"] = self.max_features
        if schema.has_names:
            found["feature_names_in_"] = np.array(schema.names, dtype=object)
        if classes is not None:
            single = len(classes) == 1
            found["classes_"] = classes[0] if single else classes
            if self.model.takes_costs:
                found["cost_matrix_"] = self.cost_matrix
                if self.model.takes_priors:
                    found["priors_"] = self.priors
            found["n_classes_"] = len(classes[0]) if single else np.array([len(labels) for labels in classes])
        return found

    @classmethod
    def of(cls, attributes: dict[str, Any], model: FittedModel) -> FittedPart:
        """Collect it from the fitted attributes of an estimator and the model among them."""
        classes = attributes.get("classes_")
        if classes is not None and attributes.get("n_outputs_", 1) == 1:
            classes = [classes]
        return cls(
            attributes["schema_"],
            model,
            classes,
            attributes.get("max_features_"),
            attributes.get("cost_matrix_"),
            attributes.get("priors_"),
        )


def _read_costs(
    header: dict[str, Any], n_classes: list[int] | None
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Read costs and priors; files of models without them lack the fields."""
    found: list[NDArray[np.float64] | None] = []
    for name, n_dimensions in (("cost_matrix", 2), ("priors", 1)):
        if header.get(name) is None:
            found.append(None)
            continue
        numbers = np.array(field(header, name, list), dtype=np.float64)
        if n_classes is None or len(n_classes) != 1 or numbers.shape != (n_classes[0],) * n_dimensions:
            refuse(f"is damaged: its {name} does not fit its classes")
        if not np.isfinite(numbers).all() or (numbers < 0).any():
            refuse(f"is damaged: its {name} holds impossible numbers")
        found.append(numbers)
    return found[0], found[1]


def kind_of(header: dict[str, Any]) -> str:
    """Return the kind of model that a header names; the header of a single tree names none."""
    kind: str = field(header, "kind", str) if "kind" in header else "tree"
    return kind
