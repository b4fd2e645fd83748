"""A fitted model with its schema and labels ⇄ the header and trees of a model file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._model.file.codec import Field, Known, integer, lack, listed, nullable, numbers, optional, saved_fields
from spinney._model.file.container import field, refuse, to_bytes
from spinney._model.file.values import labels
from spinney._model.model import FittedModel, ModelOfTrees, ModelSpec, decision_costs
from spinney._names import FITTED_KINDS, fitted_class


class FileOfTrees:
    """A range of the trees of a model file, read like a file."""

    n_trees: int

    def __init__(self, file: FileOfTrees | _engine.ModelFile, first: int, n_trees: int) -> None:
        if not 0 <= first <= first + n_trees <= file.n_trees:
            refuse("is damaged: it lacks trees")
        self._file, self._first = file, first
        self.n_trees = n_trees

    def tree(self, t: int, n_categories: list[int]) -> _engine.Tree:
        """Read a tree."""
        if not 0 <= t < self.n_trees:
            refuse("is damaged: it lacks trees")
        return self._file.tree(self._first + t, n_categories)


def _read_schema(value: Any, name: str, known: Known) -> Schema:
    return Schema.from_dict(value) if isinstance(value, dict) else lack(name)


_SPEC = saved_fields(
    schema=Field(Schema.to_dict, _read_schema),
    classes=nullable(listed(labels())),
    n_outputs=integer(least=1),
    max_features=optional(integer(least=1)),
)
_COSTS = saved_fields(
    cost_matrix=optional(numbers(np.float64, "n_classes", "n_classes", least=0)),
    priors=optional(numbers(np.float64, "n_classes", least=0)),
)


@dataclass(frozen=True)
class SavedModel:
    """A fitted model with its schema and labels: everything that predicts.

    Attributes
    ----------
    schema : Schema
    model : FittedModel
    classes : list of ndarray, or None
        Labels of each output; None in a regression.
    max_features : int, or None
        Features considered per split; None if the model has no trees.
    cost_matrix : ndarray of shape (n_classes, n_classes), or None
        Cost of predicting class j (column) for class i (row).
    priors : ndarray of shape (n_classes,), or None
        Class probabilities assumed in the fit.
    """

    schema: Schema
    model: FittedModel
    classes: list[NDArray[Any]] | None
    max_features: int | None
    cost_matrix: NDArray[np.float64] | None = None
    priors: NDArray[np.float64] | None = None

    def header(self) -> dict[str, Any]:
        """Return the header of its model file."""
        return (
            _SPEC.to_header(vars(self) | {"n_outputs": self.model.n_outputs})
            | self.model.to_header()
            | _COSTS.to_header(self)
        )

    def to_bytes(self, more: dict[str, Any]) -> bytes:
        """Return a model file with additional header entries."""
        return to_bytes(more | self.header(), self.model.trees())

    def without_labels(self) -> SavedModel:
        """Return a copy with class codes as labels, for pickles, whose labels may have types that files cannot hold."""
        if self.classes is None:
            return self
        return replace(self, classes=[np.arange(len(labels)) for labels in self.classes])

    def fingerprint(self) -> str:
        """Return a hash of the trees and of all other numbers that determine predictions; names do not count."""
        digest = hashlib.sha256(self.model.identity())
        if self.schema.pool is not None:
            pool = self.schema.pool
            for array in (np.array(pool.plain, dtype=np.int64), pool.parts.astype(np.int64), pool.coefficients):
                digest.update(np.ascontiguousarray(array).tobytes())
            if set(pool.operations) != {"sum"}:
                digest.update(" ".join(pool.operations).encode())
        for tree in self.model.trees():
            digest.update(tree.__getstate__()[1])
        return digest.hexdigest()

    @classmethod
    def from_header(cls, header: dict[str, Any], file: FileOfTrees | _engine.ModelFile) -> SavedModel:
        """Read a model from its header and trees."""
        found = _SPEC.from_header(header)
        schema, classes, n_outputs = found["schema"], found["classes"], found["n_outputs"]
        if classes is not None and len(classes) != n_outputs:
            refuse("is damaged: its number of outputs is wrong")
        n_classes = None if classes is None else [len(known) for known in classes]
        kind, max_features = kind_of(header), found.get("max_features")
        if kind not in FITTED_KINDS:
            refuse(f"holds a model that this spinney does not know, {kind[:100]!r}: upgrade spinney")
        if not issubclass(fitted_class(kind), ModelOfTrees):
            max_features = None
        elif max_features is None or max_features > schema.n_split_features:
            refuse("is damaged: its max_features is impossible")
        single = n_classes[0] if n_classes is not None and n_outputs == 1 else -1
        costs = _COSTS.from_header(header, n_classes=single)
        cost = decision_costs(costs.get("cost_matrix"), costs.get("priors"))
        try:
            trees = [file.tree(t, schema.n_categories) for t in range(file.n_trees)]
            model = fitted_class(kind).from_file(header, trees, ModelSpec(schema, n_classes, n_outputs, cost))
        except ValueError as error:
            refuse(str(error))
        if costs and not model.takes_costs:
            refuse(f"is damaged: it has costs or priors, which a {model.noun} does not use")
        return cls(schema, model, classes, max_features, **costs)

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
    def of(cls, attributes: dict[str, Any], model: FittedModel) -> SavedModel:
        """Make one from the fitted attributes of an estimator and its model."""
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


def kind_of(header: dict[str, Any]) -> str:
    """Return the kind of model in a header; the header of a single tree has no entry for it."""
    kind: str = field(header, "kind", str) if "kind" in header else "tree"
    return kind
