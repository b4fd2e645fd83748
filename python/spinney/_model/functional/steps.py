"""What one weak learner adds to a sum of functions, step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design

Floats = NDArray[np.float64]


class Inputs:
    """Rows as the steps read them; what several of them need is made once.

    Attributes
    ----------
    columns : Table
        As trees read them.
    design : Design
        How they become terms.
    n_jobs : int
        Threads.
    native : table, or None
        The caller's own, with the columns as at fit, for learners that read tables themselves.
    """

    def __init__(self, columns: _engine.Table, design: Design, n_jobs: int, native: Any = None) -> None:
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
        """Return what some steps have read of the rows."""
        if steps not in self._read:
            self._read[steps] = steps.read(self)
        return self._read[steps]


class Steps(ABC):
    """The steps of one weak learner.

    Attributes
    ----------
    kind : str
        Its name in model files.
    """

    kind: ClassVar[str]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of steps."""

    def read(self, inputs: Inputs) -> Any:
        """Read from some rows what all steps need; `Inputs.of` keeps it."""
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
        """Columns that one step reads, in rising order."""

    @abstractmethod
    def identity(self) -> bytes:
        """Return all numbers but those of trees."""

    @abstractmethod
    def first(self, n_steps: int) -> Self:
        """Return the first steps alone."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return what a header says of it, beside trees; TypeError if no file can hold it."""

    def trees(self) -> list[_engine.Tree]:
        """Return the trees that a model file holds of it."""
        return []


class KeptSteps(Steps):
    """Steps that model files hold."""

    @classmethod
    @abstractmethod
    def from_json(cls, fields: dict[str, Any], trees: list[_engine.Tree], schema: Schema, design: Design) -> Self:
        """Turn back what `to_json` and `trees` give; `refuse` what cannot be."""


class TreeSteps(KeptSteps):
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
        """Read nothing: trees walk the table itself."""
        return None

    def values(self, inputs: Inputs, step: int) -> Floats:
        """Value of the leaf of each row."""
        leaves = self._trees[step].apply(inputs.columns, inputs.n_jobs)
        return np.asarray(self._leaf_values[step][leaves])

    def features(self, step: int, design: Design) -> tuple[int, ...]:
        """Columns that the tree splits on."""
        split_on = self._trees[step].feature
        return tuple(np.unique(split_on[split_on >= 0]).tolist())

    def identity(self) -> bytes:
        """Return nothing: trees are hashed by themselves."""
        return b""

    def first(self, n_steps: int) -> TreeSteps:
        """Return the first trees alone."""
        return TreeSteps(self._trees[:n_steps])

    def trees(self) -> list[_engine.Tree]:
        """Return the trees."""
        return self._trees

    def to_json(self) -> dict[str, Any]:
        """Return how many trees there are."""
        return {"n_trees": len(self)}

    @classmethod
    def from_json(cls, fields: dict[str, Any], trees: list[_engine.Tree], schema: Schema, design: Design) -> Self:
        """Take the trees of the file."""
        return cls(trees)
