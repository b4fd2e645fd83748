"""What predicts, whatever it is made of.

Files, reading, drawing, the command line and other formats know a fitted model by `FittedModel` alone. A new kind of
model is a subclass, and a line in the list of kinds in ``spinney._names``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.reproducible import times
from spinney._model.file.container import refuse

Floats = NDArray[np.float64]


class Outputs:
    """What a model predicts: how rows of flat numbers are laid out as classes, shares and values.

    Attributes
    ----------
    n_outputs : int
        Number of outputs.
    cost : ndarray of shape (n_classes, n_classes) or None
        Cost of predicting class j (column) for class i (row), if costs or priors decide what is predicted.
    """

    def __init__(self, n_classes: list[int] | None, n_outputs: int, cost: NDArray[np.float64] | None = None) -> None:
        self._n_classes = n_classes
        self.n_outputs = n_outputs
        self.cost = cost

    @property
    def class_columns(self) -> list[slice]:
        """Where each output's classes are in a row of flat numbers."""
        ends = np.cumsum(self._n_classes or [])
        return [slice(int(end) - n, int(end)) for end, n in zip(ends, self._n_classes or [], strict=True)]

    @property
    def explained_columns(self) -> list[slice]:
        """Where each output's numbers are among those that Shapley values explain."""
        return self.class_columns

    def best_codes(self, flat: NDArray[np.float64]) -> NDArray[np.intp]:
        """Code of the most probable (or least costly) class by row and output; the first on a tie."""
        if self.cost is not None:
            expected = times(flat, self.cost)
            least = expected.min(axis=1, keepdims=True)
            # sums of terms of one sign: rounding stays far below this, and must not decide a tie
            return np.asarray((expected <= least * (1 + 1e-12)).argmax(axis=1)[:, np.newaxis])
        return np.column_stack([flat[:, columns].argmax(axis=1) for columns in self.class_columns])

    def labels(self, codes: NDArray[np.intp], classes: list[NDArray[Any]]) -> NDArray[Any]:
        """Labels of class codes, (n_rows, n_outputs); one column per output if there are several."""
        if self.n_outputs == 1:
            return np.asarray(classes[0].take(codes[:, 0]))
        return np.column_stack([labels.take(codes[:, k]) for k, labels in enumerate(classes)])

    def spread(self, flat: NDArray[np.float64]) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Lay rows of flat values out as predictions: class shares (a list if there are several outputs) or values."""
        if self._n_classes is None:
            return flat[:, 0] if self.n_outputs == 1 else flat
        return flat if self.n_outputs == 1 else [flat[:, columns] for columns in self.class_columns]


def decision_costs(cost: Floats | None, priors: Floats | None) -> Floats | None:
    """Costs that decide what a node predicts: with priors alone, every mistake costs 1; with neither, None."""
    return 1.0 - np.eye(len(priors)) if cost is None and priors is not None else cost


@dataclass(frozen=True)
class Frame:
    """What a model file says of every model, whatever predicts in it.

    Attributes
    ----------
    schema : Schema
        The columns.
    n_classes : list of int, or None
        Classes of each output; None in a regression.
    n_outputs : int
        Number of outputs.
    cost : ndarray of shape (n_classes, n_classes), or None
        Costs that decide what is predicted.
    """

    schema: Schema
    n_classes: list[int] | None
    n_outputs: int
    cost: Floats | None


class FittedModel(Outputs, ABC):
    """A fitted model: predicts tables and single rows, and says what it is made of.

    Attributes
    ----------
    kind : str
        Its name in model files.
    attribute : str
        The fitted attribute by which estimators hold it.
    noun : str
        What people call it.
    takes_offset : bool
        Whether a score may be added to those of the model.
    takes_costs, takes_priors : bool
        Whether costs, and whether priors may decide what it predicts.
    """

    kind: ClassVar[str]
    attribute: ClassVar[str]
    noun: ClassVar[str]
    takes_offset: ClassVar[bool] = False
    takes_costs: ClassVar[bool] = True
    takes_priors: ClassVar[bool] = True

    def trees(self) -> list[_engine.Tree]:
        """Return the engine's trees; none if it is not made of trees."""
        return []

    @property
    def has_lines(self) -> bool:
        """Whether leaves are lines, not values."""
        return False

    @abstractmethod
    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Flat values of each row: a value or a class share by column."""

    @abstractmethod
    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, n_outputs)."""

    @abstractmethod
    def row_predictor(self, schema: Schema, unseen: str, classes: object) -> Any:
        """Prepare a handle that predicts single rows."""

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return what the header of a model file says of this kind of model, beside its trees and `Frame`."""
        return {"kind": self.kind}

    @classmethod
    @abstractmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], frame: Frame) -> Self:
        """Turn back what `to_header` and `trees` give; ValueError, or `refuse`, if they do not go together."""

    def identity(self) -> bytes:
        """Return the numbers beside the trees that turn their values into predictions: the costs, if they decide."""
        return b"" if self.cost is None else np.ascontiguousarray(self.cost).tobytes()

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self, "n_outputs_": self.n_outputs}


class ModelOfTrees(FittedModel):
    """A fitted model that is made of trees.

    Attributes
    ----------
    gain_is : str
        What the importances of columns are shares of.
    n_trees, node_count, n_leaves : int
        Its size.
    """

    gain_is: ClassVar[str] = "decrease of the impurity"

    @property
    @abstractmethod
    def n_trees(self) -> int:
        """Number of trees."""

    @property
    @abstractmethod
    def node_count(self) -> int:
        """Number of nodes of all trees."""

    @property
    @abstractmethod
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""

    @abstractmethod
    def trees(self) -> list[_engine.Tree]:
        """Return the engine's trees."""

    @abstractmethod
    def importances(self, n_features: int) -> Floats:
        """Share of each column in the gain of the splits."""

    @abstractmethod
    def split_counts(self, n_features: int) -> NDArray[np.intp]:
        """Count the splits on each column."""

    @abstractmethod
    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Values without columns by output, flat values by row, column and output, and flat values of pairs."""

    def at_points(
        self, columns: _engine.Table, points: _engine.Table, which: list[int], scores: bool, n_jobs: int
    ) -> Floats | None:
        """Flat predictions of each row with the values that each point has in some columns.

        Has the shape (n_points, n_rows, n_outputs), and the bits of `predictions`; with `scores`, those of the scores
        where a model has them. None: there is no faster way than to predict the changed rows.
        """
        return None


def check_width(trees: list[_engine.Tree], frame: Frame) -> None:
    """Refuse trees whose values do not fit the classes or outputs."""
    width = frame.n_outputs if frame.n_classes is None else sum(frame.n_classes)
    if any(tree.value_width != width for tree in trees):
        refuse("is damaged: a tree does not fit its classes or outputs")
