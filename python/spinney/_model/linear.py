"""A fitted linear model: a constant and a slope for each term of the table, and a link."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.links import predicted
from spinney._model.model import FittedModel, Frame
from spinney._model.row_predictors import TableRowPredictor

Floats = NDArray[np.float64]
_LINKS = ("identity", "logit", "softmax")


class FittedLinear(FittedModel):
    """Scores that are linear in the terms of a table.

    Attributes
    ----------
    design : Design
        The table as numbers of one scale.
    slopes : ndarray of shape (n_terms, n_scores)
        Slopes of the scaled terms.
    constants : ndarray of shape (n_scores,)
        Scores where all scaled terms are 0.
    link : {"identity", "logit", "softmax"}
        How scores become predictions.
    """

    kind = "linear"
    attribute = "linear_"
    noun = "linear model"
    takes_costs = False

    def __init__(
        self, design: Design, slopes: Floats, constants: Floats, link: str, n_classes: list[int] | None
    ) -> None:
        super().__init__(n_classes, 1)
        self.design = design
        self.slopes = slopes
        self.constants = constants
        self.link = link

    def __repr__(self) -> str:
        return f"<FittedLinear: {len(self.design)} terms>"

    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Add up the terms, (n_rows, n_scores)."""
        found = np.tile(self.constants[:, np.newaxis], columns.n_rows)
        for term, slopes in zip(self.design.matrix(columns), self.slopes, strict=True):
            found += slopes[:, np.newaxis] * term
        return np.ascontiguousarray(found.T)

    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into values, (n_rows, 1), or class shares, (n_rows, n_classes)."""
        return predicted(self.link, scores)

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Value, or class shares, of each row."""
        return self.predicted(self.scores(columns, n_jobs))

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Code of the class with the largest score, (n_rows, 1)."""
        scores = self.scores(columns, n_jobs)
        if scores.shape[1] == 1:  # that of the second of two classes
            return (scores > 0).astype(np.intp)
        return np.asarray(scores.argmax(axis=1)[:, np.newaxis])

    def row_predictor(self, schema: Schema, unseen: str, classes: object) -> TableRowPredictor:
        """Prepare a handle that predicts single rows."""
        return TableRowPredictor(self, schema, unseen, classes)

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return all there is: the model has no trees."""
        return {
            "kind": self.kind,
            "link": self.link,
            "design": self.design.to_dict(),
            "slopes": array_to_json(self.slopes),
            "constants": array_to_json(self.constants),
        }

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Turn back what `to_header` gives."""
        link, n_classes = field(header, "link", str), frame.n_classes
        if trees or frame.n_outputs != 1 or link not in _LINKS or (link == "identity") != (n_classes is None):
            refuse("is damaged: its scores and its target do not go together")
        n_scores = n_classes[0] if n_classes is not None and link == "softmax" else 1
        if n_classes is not None and (n_classes[0] == 2) != (link == "logit"):
            refuse("is damaged: its scores do not fit its classes")
        design = Design.from_dict(header.get("design"), frame.schema)
        slopes = array_from_json(header.get("slopes"), ("float64",), (len(design), n_scores))
        constants = array_from_json(header.get("constants"), ("float64",), (n_scores,))
        if not np.isfinite(slopes).all() or not np.isfinite(constants).all():
            refuse("is damaged: a slope or constant is not a number")
        return cls(design, slopes, constants, link, n_classes)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        digest = hashlib.sha256(self.link.encode())
        design = self.design
        terms = (design.feature, design.kind, design.code, design.center, design.scale)
        for array in (*terms, self.slopes, self.constants):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.digest()

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self}
