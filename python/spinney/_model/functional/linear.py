"""Steps that are linear in one or two terms, or such a line bent to an S."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._data.numeric.reproducible import exp
from spinney._model.file.arrays import array_from_json, array_to_json
from spinney._model.file.container import refuse
from spinney._model.functional.steps import Inputs, KeptSteps

Floats = NDArray[np.float64]
WIDTH = 4  # numbers of a step: its height, a constant, and two slopes


class LinearSteps(KeptSteps):
    """Lines and planes.

    Attributes
    ----------
    terms : ndarray of shape (n_steps, 2)
        Terms of each step; the second is that of the first again if there is one.
    numbers : ndarray of shape (n_steps, 4)
        Height, constant, and the slopes of the two terms.
    """

    kind = "linear"

    def __init__(self, terms: NDArray[np.int32] | None = None, numbers: Floats | None = None) -> None:
        self.terms = np.empty((0, 2), dtype=np.int32) if terms is None else terms
        self.numbers = np.empty((0, WIDTH)) if numbers is None else numbers

    def __len__(self) -> int:
        return len(self.terms)

    def add(self, terms: tuple[int, int], numbers: tuple[float, ...]) -> None:
        """Add a step."""
        self.terms = np.concatenate([self.terms, np.array([terms], dtype=np.int32)])
        self.numbers = np.concatenate([self.numbers, np.array([numbers])])

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Height times the line."""
        terms, (one, two) = inputs.of(self), self.terms[step]
        return self.at(terms[one], terms[two], tuple(self.numbers[step].tolist()))

    @staticmethod
    def at(one: Floats, two: Floats, numbers: tuple[float, ...]) -> Floats:
        """Value of a step at two terms."""
        height, constant, first, second = numbers
        return height * (constant + first * one + second * two)

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Columns of the terms that count."""
        slopes = self.numbers[step, 2:]
        return tuple(np.unique(design.feature[self.terms[step][slopes != 0]]).tolist())

    def identity(self) -> bytes:
        """Return terms and numbers."""
        return self.terms.tobytes() + self.numbers.tobytes()

    def first(self, n_steps: int) -> LinearSteps:
        """Return the first steps alone."""
        return type(self)(self.terms[:n_steps], self.numbers[:n_steps])

    def to_json(self) -> dict[str, Any]:
        """Return terms and numbers."""
        return {"terms": array_to_json(self.terms), "numbers": array_to_json(self.numbers)}

    @classmethod
    def from_json(cls, fields: dict[str, Any], trees: list[_engine.Tree], schema: Schema, design: Design) -> Self:
        """Turn them back."""
        terms = array_from_json(fields.get("terms"), ("int32",), (None, 2))
        numbers = array_from_json(fields.get("numbers"), ("float64",), (len(terms), WIDTH))
        if len(terms) and (terms.min() < 0 or terms.max() >= len(design)):
            refuse("is damaged: a step has a term that is not there")
        if not np.isfinite(numbers).all():
            refuse("is damaged: a step holds impossible numbers")
        return cls(terms, numbers)


class LogisticSteps(LinearSteps):
    """Curves like an S, from minus their height to their height."""

    kind = "logistic"

    @staticmethod
    def at(one: Floats, two: Floats, numbers: tuple[float, ...]) -> Floats:
        """Value of a step at two terms."""
        height, constant, first, second = numbers
        return height * bent(constant + first * one + second * two)


def bent(line: Floats) -> Floats:
    """Bend numbers to between -1 and 1."""
    return np.asarray(2 / (1 + exp(-np.clip(line, -500, 500))) - 1)
