"""Steps that are smooth functions of one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import field, refuse
from spinney._model.functional.steps import Inputs, KeptSteps

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Basis:
    """Functions of one column that add up to 1: B-splines of a number, or one for each category; one if it is missing.

    Attributes
    ----------
    feature : int
    knots : ndarray
        Where pieces of the B-splines meet, from the lowest value to the highest; empty for categories.
    degree : int
        Of the pieces.
    n_categories : int
        0 for numbers.
    """

    feature: int
    knots: Floats
    degree: int
    n_categories: int

    @property
    def n_curves(self) -> int:
        """Number of functions without that of missing values, which is the last."""
        return self.n_categories or len(self.knots) - 1 + self.degree

    def locate(self, values: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Functions that are not 0 at each value and what they are there, (n_parts, n_values) each."""
        absent = np.isnan(values)
        if self.n_categories:
            codes = np.where(absent | (values >= self.n_categories), self.n_curves, values).astype(np.intp)
            return codes[np.newaxis], np.ones((1, len(values)))
        low, high = self.knots[0], self.knots[-1]
        x = np.clip(np.where(absent, low, values), low, high)
        piece = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)
        heights = _b_splines(self.knots, self.degree, x, piece)
        heights[:, absent] = 0.0
        heights[0, absent] = 1.0
        places = piece + np.arange(self.degree + 1)[:, np.newaxis]
        return np.where(absent, self.n_curves, places), heights


def _b_splines(knots: Floats, degree: int, x: Floats, piece: NDArray[np.intp]) -> Floats:
    """B-splines that are not 0 on the piece of each x, by the recurrence of Cox and de Boor; (degree + 1, n)."""
    padded = np.concatenate([np.repeat(knots[0], degree), knots, np.repeat(knots[-1], degree)])
    at = piece + degree
    heights = np.zeros((degree + 1, len(x)))
    heights[0] = 1.0
    for d in range(1, degree + 1):
        saved = np.zeros(len(x))
        for r in range(d):
            right, left = padded[at + r + 1], padded[at + 1 - d + r]
            part = heights[r] / (right - left)
            heights[r] = saved + (right - x) * part
            saved = (x - left) * part
        heights[d] = saved
    return heights


class SplineSteps(KeptSteps):
    """Smooth functions of one column each.

    Attributes
    ----------
    bases : list of Basis
    chosen : ndarray of shape (n_steps,)
        Basis of each step.
    heights : ndarray of shape (n_steps, n_most)
        Coefficients, of which a step uses as many as its basis has functions.
    """

    kind = "splines"

    def __init__(
        self, bases: list[Basis], chosen: NDArray[np.int32] | None = None, heights: Floats | None = None
    ) -> None:
        self.bases = bases
        most = max((basis.n_curves + 1 for basis in bases), default=1)
        self.chosen = np.empty(0, dtype=np.int32) if chosen is None else chosen
        self.heights = np.empty((0, most)) if heights is None else heights

    def __len__(self) -> int:
        return len(self.chosen)

    def add(self, basis: int, heights: Floats) -> None:
        """Add a step."""
        self.chosen = np.append(self.chosen, np.int32(basis))
        self.heights = np.concatenate([self.heights, heights[np.newaxis]])

    def read(self, inputs: Inputs) -> Any:
        """Locate the rows in the columns, when they are asked for."""
        return {}

    def located(self, inputs: Inputs, basis: int) -> tuple[NDArray[np.intp], Floats]:
        """Functions that are not 0 in each row, and what they are there."""
        known: dict[int, tuple[NDArray[np.intp], Floats]] = inputs.of(self)
        if basis not in known:
            column = np.asarray(inputs.columns.column(self.bases[basis].feature))
            known[basis] = self.bases[basis].locate(column)
        return known[basis]

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Value of the curve in each row."""
        places, parts = self.located(inputs, int(self.chosen[step]))
        return curve(self.heights[step], places, parts)

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return the one column."""
        return (self.bases[int(self.chosen[step])].feature,)

    def identity(self) -> bytes:
        """Return the bases, which of them steps use, and coefficients."""
        bases = [
            np.array([basis.feature, basis.degree], dtype=np.int64).tobytes() + basis.knots.tobytes()
            for basis in self.bases
        ]
        return b"".join(bases) + self.chosen.tobytes() + self.heights.tobytes()

    def first(self, n_steps: int) -> SplineSteps:
        """Return the first steps alone."""
        return SplineSteps(self.bases, self.chosen[:n_steps], self.heights[:n_steps])

    def to_json(self) -> dict[str, Any]:
        """Return bases and coefficients."""
        bases = [
            {"feature": b.feature, "knots": array_to_json(b.knots), "degree": b.degree, "n_categories": b.n_categories}
            for b in self.bases
        ]
        return {"bases": bases, "chosen": array_to_json(self.chosen), "heights": array_to_json(self.heights)}

    @classmethod
    def from_json(cls, fields: dict[str, Any], trees: list[_engine.Tree], schema: Schema, design: Design) -> Self:
        """Turn them back."""
        bases = [_basis_from_json(entry, schema) for entry in field(fields, "bases", list)]
        chosen = array_from_json(fields.get("chosen"), ("int32",), (None,))
        most = max((basis.n_curves + 1 for basis in bases), default=1)
        heights = array_from_json(fields.get("heights"), ("float64",), (len(chosen), most))
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(bases)):
            refuse("is damaged: a step has a curve that is not there")
        if not np.isfinite(heights).all():
            refuse("is damaged: a step holds impossible numbers")
        return cls(bases, chosen, heights)


def curve(heights: Floats, places: NDArray[np.intp], parts: Floats) -> Floats:
    """Value of a curve at rows that `Basis.locate` has located."""
    total = heights[places[0]] * parts[0]
    for place, part in zip(places[1:], parts[1:], strict=True):
        total = total + heights[place] * part
    return np.asarray(total)


def _basis_from_json(entry: Any, schema: Schema) -> Basis:
    if not isinstance(entry, dict):
        refuse("is damaged: a curve has no header")
    feature, degree = field(entry, "feature", int), field(entry, "degree", int)
    n_categories = field(entry, "n_categories", int)
    knots = array_from_json(entry.get("knots"), ("float64",), (None,))
    if not 0 <= feature < schema.n_features or n_categories != schema.n_categories[feature] or not 0 <= degree <= 3:
        refuse("is damaged: a curve is of a column that is not there")
    if not n_categories and (len(knots) < 2 or not np.isfinite(knots).all() or not (np.diff(knots) > 0).all()):
        refuse("is damaged: a curve has impossible knots")
    return Basis(feature, knots, degree, n_categories)
