"""A fitted linear model: an intercept and a coefficient for each term of the table, and a link."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

import spinney._engine as _engine
from spinney._data.design import Design
from spinney._data.types import Floats
from spinney._model.file.codec import array, saved_fields, word
from spinney._model.file.container import refuse
from spinney._model.model import DESIGN, ModelSpec, ScoredModel, digest_of

_LINKS = ("identity", "logit", "softmax")


class FittedLinear(ScoredModel):
    """Scores that are linear in the terms of a table.

    Attributes
    ----------
    design : Design
        How columns become scaled terms.
    slopes : ndarray of shape (n_terms, n_scores)
        Coefficients of the scaled terms.
    constants : ndarray of shape (n_scores,)
        Intercepts: scores where all scaled terms are 0.
    link : {"identity", "logit", "softmax"}
        Name of the function from scores to predictions.
    """

    kind = "linear"
    attribute = "linear_"
    noun = "linear model"
    takes_costs = False
    saved = saved_fields(
        link=word(_LINKS),
        design=DESIGN,
        slopes=array("float64", "n_terms", "n_scores"),
        constants=array("float64", "n_scores"),
    )

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
        """Return the scores, (n_rows, n_scores)."""
        found = np.tile(self.constants[:, np.newaxis], columns.n_rows)
        for term, slopes in zip(self.design.matrix(columns), self.slopes, strict=True):
            found += slopes[:, np.newaxis] * term
        return np.ascontiguousarray(found.T)

    # ---- files -----------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the model from a header."""
        n_classes = None if spec.n_classes is None else spec.n_classes[0]
        n_scores = 1 if n_classes is None or n_classes == 2 else n_classes
        found = cls.saved.from_header(header, schema=spec.schema, n_scores=n_scores)
        link = "identity" if n_classes is None else "logit" if n_classes == 2 else "softmax"
        if trees or spec.n_outputs != 1 or found["link"] != link:
            refuse("is damaged: its link does not fit its target")
        return cls(**found, n_classes=spec.n_classes)

    def identity(self) -> bytes:
        """Hash of all numbers."""
        return digest_of(self.link, *self.design.arrays.values(), self.slopes, self.constants)
