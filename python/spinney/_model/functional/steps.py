"""Boosting steps of weak learners: trees, linear and logistic functions, splines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._data.reproducible import exp
from spinney._data.types import Floats
from spinney._model.file.codec import SavedState, array, integer, listed, saved_fields, table
from spinney._model.file.container import refuse


class Inputs:
    """Rows as steps read them; intermediate results that several steps need are cached.

    Attributes
    ----------
    columns : Table
        The rows as trees read them.
    design : Design
        How columns become terms.
    n_jobs : int
        Number of threads.
    native : table, or None
        The caller's table, with the columns of the fit, for learners that read tables.
    """

    def __init__(self, columns: _engine.Table, design: Design, n_jobs: int, native: object = None) -> None:
        self.columns = columns
        self.design = design
        self.n_jobs = n_jobs
        self.native = native
        self._read: dict[Steps, Any] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.columns.n_rows

    @cached_property
    def terms(self) -> Floats:
        """The terms, (n_terms, n_rows)."""
        return self.design.matrix(self.columns)

    def of(self, steps: Steps) -> Any:
        """Return what `steps.read` computes from the rows, cached."""
        if steps not in self._read:
            self._read[steps] = steps.read(self)
        return self._read[steps]


class Steps(ABC):
    """The steps of one weak learner.

    Attributes
    ----------
    kind : str
        Its name in model files.
    saved : SavedState
        Its entries in a header, besides trees.
    """

    kind: ClassVar[str]
    saved: ClassVar[SavedState] = saved_fields()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of steps."""

    def read(self, inputs: Inputs) -> Any:
        """Compute from rows what all steps need; cached by `Inputs.of`."""
        return inputs.terms

    @abstractmethod
    def values(self, inputs: Inputs, step: int) -> Floats:
        """Value of one step for each row."""

    def total(self, inputs: Inputs, steps: NDArray[np.intp], factors: Floats) -> Floats:
        """Sum of some steps, each times its factor, for each row."""
        found = np.zeros(inputs.n_rows)
        for step, factor in zip(steps.tolist(), factors.tolist(), strict=True):
            found += factor * self.values(inputs, step)
        return found

    @abstractmethod
    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return the columns that a step reads, ascending."""

    @abstractmethod
    def identity(self) -> bytes:
        """Return all numbers, except those of trees, as bytes."""

    @abstractmethod
    def first(self, n_steps: int) -> Self:
        """Return the first steps."""

    def trees(self) -> list[_engine.Tree]:
        """Return the trees to write to a model file."""
        return []

    def to_json(self) -> dict[str, Any]:
        """Return its header entries, besides trees; TypeError if a file cannot hold them."""
        return self.saved.to_header(self)

    @classmethod
    def make(cls, trees: list[_engine.Tree], found: dict[str, Any], schema: Schema) -> Self:
        """Make the steps from the trees and the entries of a file; `refuse` impossible ones."""
        return cls(**found)


class TreeSteps(Steps):
    """Regression trees."""

    kind = "trees"

    def __init__(self, trees: list[_engine.Tree] | None = None) -> None:
        self._trees = trees or []
        self._leaf_values = [tree.value for tree in self._trees]

    def __len__(self) -> int:
        return len(self._trees)

    def add(self, tree: _engine.Tree) -> None:
        """Add a step."""
        self._trees.append(tree)
        self._leaf_values.append(tree.value)

    def read(self, inputs: Inputs) -> Any:
        """Return None: trees read the table."""
        return None

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Value of the leaf of each row."""
        leaves = self._trees[step].apply(inputs.columns, inputs.n_jobs)
        return np.asarray(self._leaf_values[step][leaves])

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return the columns that the tree splits on."""
        split_on = self._trees[step].feature
        return tuple(np.unique(split_on[split_on >= 0]).tolist())

    def identity(self) -> bytes:
        """Return no bytes: trees are hashed separately."""
        return b""

    def first(self, n_steps: int) -> TreeSteps:
        """Return the first trees."""
        return TreeSteps(self._trees[:n_steps])

    def trees(self) -> list[_engine.Tree]:
        """Return the trees."""
        return self._trees

    @classmethod
    def make(cls, trees: list[_engine.Tree], found: dict[str, Any], schema: Schema) -> Self:
        """Make the steps from the trees of a file."""
        return cls(trees)


WIDTH = 4  # coefficients of a step: a factor, an intercept and two slopes


class LinearSteps(Steps):
    """Linear functions of one or two terms.

    Attributes
    ----------
    terms : ndarray of shape (n_steps, 2)
        Terms of each step; the same term twice if the step has one.
    numbers : ndarray of shape (n_steps, 4)
        Factor, intercept and slopes of the two terms.
    """

    kind = "linear"
    saved = saved_fields(
        terms=array("int32", "n_steps", 2, least=0, below="n_terms"),
        numbers=array("float64", "n_steps", WIDTH),
    )

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
        """Return the value of a step for each row."""
        terms, (one, two) = inputs.of(self), self.terms[step]
        return self.at(terms[one], terms[two], tuple(self.numbers[step].tolist()))

    @staticmethod
    def at(one: Floats, two: Floats, numbers: tuple[float, ...]) -> Floats:
        """Value of a step at two terms."""
        height, constant, first, second = numbers
        return height * (constant + first * one + second * two)

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return the columns of the terms with a slope."""
        slopes = self.numbers[step, 2:]
        return tuple(np.unique(design.feature[self.terms[step][slopes != 0]]).tolist())

    def identity(self) -> bytes:
        """Return terms and numbers."""
        return self.terms.tobytes() + self.numbers.tobytes()

    def first(self, n_steps: int) -> LinearSteps:
        """Return the first steps."""
        return type(self)(self.terms[:n_steps], self.numbers[:n_steps])


class LogisticSteps(LinearSteps):
    """Logistic functions of one or two terms, scaled to between plus and minus a factor."""

    kind = "logistic"

    @staticmethod
    def at(one: Floats, two: Floats, numbers: tuple[float, ...]) -> Floats:
        """Value of a step at two terms."""
        height, constant, first, second = numbers
        return height * bent(constant + first * one + second * two)


def bent(line: Floats) -> Floats:
    """Apply the logistic function, scaled to between -1 and 1."""
    return np.asarray(2 / (1 + exp(-np.clip(line, -500, 500))) - 1)


@dataclass(frozen=True)
class Basis:
    """Basis functions of one column, which sum to 1: B-splines, or indicators of categories and of missing values.

    Attributes
    ----------
    feature : int
    knots : ndarray
        Knots of the B-splines, ascending; empty for categories.
    degree : int
        Degree of the B-splines.
    n_categories : int
        0 for numbers.
    """

    feature: int
    knots: Floats
    degree: int
    n_categories: int

    @property
    def n_curves(self) -> int:
        """Number of functions, without the last, which is that of missing values."""
        return self.n_categories or len(self.knots) - 1 + self.degree

    def locate(self, values: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Return the functions that are not 0 at each value, and their values, (degree + 1, n_values) each."""
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
    """B-splines that are not 0 between the knots around each x, by the Cox-de Boor recursion; (degree + 1, n)."""
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


_BASIS = saved_fields(
    feature=integer(least=0, below="n_features"),
    knots=array("float64", None),
    degree=integer(least=0, most=3),
    n_categories=integer(least=0),
)


class SplineSteps(Steps):
    """Smooth functions of one column each.

    Attributes
    ----------
    bases : list of Basis
    chosen : ndarray of shape (n_steps,)
        Basis of each step.
    heights : ndarray of shape (n_steps, n_most)
        Coefficients; a step uses as many as its basis has functions.
    """

    kind = "splines"
    saved = saved_fields(
        bases=listed(table(_BASIS, Basis), "n_bases"),
        chosen=array("int32", "n_steps", least=0, below="n_bases"),
        heights=array("float64", "n_steps", None),
    )

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
        """Return an empty cache of the basis functions of each column."""
        return {}

    def located(self, inputs: Inputs, basis: int) -> tuple[NDArray[np.intp], Floats]:
        """Return the basis functions that are not 0 in each row, and their values."""
        known: dict[int, tuple[NDArray[np.intp], Floats]] = inputs.of(self)
        if basis not in known:
            column = np.asarray(inputs.columns.column(self.bases[basis].feature))
            known[basis] = self.bases[basis].locate(column)
        return known[basis]

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Return the value of a step for each row."""
        places, parts = self.located(inputs, int(self.chosen[step]))
        return curve(self.heights[step], places, parts)

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Return the column of the step."""
        return (self.bases[int(self.chosen[step])].feature,)

    def identity(self) -> bytes:
        """Return the bases, their numbers by step, and the coefficients."""
        bases = [
            np.array([basis.feature, basis.degree], dtype=np.int64).tobytes() + basis.knots.tobytes()
            for basis in self.bases
        ]
        return b"".join(bases) + self.chosen.tobytes() + self.heights.tobytes()

    def first(self, n_steps: int) -> SplineSteps:
        """Return the first steps."""
        return SplineSteps(self.bases, self.chosen[:n_steps], self.heights[:n_steps])

    @classmethod
    def make(cls, trees: list[_engine.Tree], found: dict[str, Any], schema: Schema) -> Self:
        """Make the steps from the entries of a file."""
        for basis in found["bases"]:
            knots = basis.knots
            if basis.n_categories != schema.n_categories[basis.feature]:
                refuse("is damaged: a spline does not fit its column")
            if not basis.n_categories and (len(knots) < 2 or not (np.diff(knots) > 0).all()):
                refuse("is damaged: a spline has impossible knots")
        steps = cls(**found)
        if found["heights"].shape[1:] != cls(steps.bases).heights.shape[1:]:
            refuse("is damaged: the coefficients of a step do not fit its splines")
        return steps


def curve(heights: Floats, places: NDArray[np.intp], parts: Floats) -> Floats:
    """Value of a spline in rows, given the result of `Basis.locate`."""
    total = heights[places[0]] * parts[0]
    for place, part in zip(places[1:], parts[1:], strict=True):
        total = total + heights[place] * part
    return np.asarray(total)
