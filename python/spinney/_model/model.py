"""What predicts, whatever it is made of.

Files, reading, drawing, the command line and other formats know a fitted model by `FittedModel` alone. A new kind of
model is a subclass, and a line in the list of kinds in ``spinney._names``.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._data.reproducible import times
from spinney._model.file.codec import Field, Known, SavedState, saved_fields
from spinney._model.file.container import refuse
from spinney._model.row_predictors import RowPredictor

Floats = NDArray[np.float64]


def _read_design(value: Any, name: str, known: Known) -> Design:
    design = Design.from_dict(value, known["schema"])
    known["n_terms"] = len(design)
    return design


DESIGN = Field(Design.to_dict, _read_design)


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

    def by_output(self, flat: NDArray[np.float64]) -> NDArray[np.float64] | list[NDArray[np.float64]]:
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

    @property
    def width(self) -> int:
        """Flat numbers of a prediction."""
        return self.n_outputs if self.n_classes is None else sum(self.n_classes)


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
    saved : SavedState
        What a header holds of it, beside its trees and `Frame`.
    """

    kind: ClassVar[str]
    attribute: ClassVar[str]
    noun: ClassVar[str]
    takes_offset: ClassVar[bool] = False
    takes_costs: ClassVar[bool] = True
    takes_priors: ClassVar[bool] = True
    saved: ClassVar[SavedState] = saved_fields()

    def trees(self) -> list[_engine.Tree]:
        """Return the engine's trees; none if it is not made of trees."""
        return []

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves are lines, not values."""
        return False

    @abstractmethod
    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Flat values of each row: a value or a class share by column."""

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, n_outputs)."""
        return self.best_codes(self.predictions(columns, n_jobs))

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> RowPredictor:
        """Prepare a handle that predicts single rows."""
        sizes, of_outputs = schema.n_categories, [classes] if self.n_outputs == 1 else classes

        def value(numbers: Floats) -> Any:
            values = self.predictions(_row_table(sizes, numbers), 1)[0]
            return float(values[0]) if self.n_outputs == 1 else values

        def label(numbers: Floats) -> Any:
            return self.labels(self.codes(_row_table(sizes, numbers), 1), of_outputs)[0]

        def shares(numbers: Floats) -> Any:
            found = self.by_output(self.predictions(_row_table(sizes, numbers), 1))
            return [part[0] for part in found] if isinstance(found, list) else found[0]

        if classes is None:
            return RowPredictor(schema, unseen, value)
        return RowPredictor(schema, unseen, label, shares)

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return what the header of a model file says of this kind of model, beside its trees and `Frame`."""
        return {"kind": self.kind, **self.saved.to_header(self)}

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


class ScoredModel(FittedModel):
    """A fitted model whose scores become predictions."""

    @abstractmethod
    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_scores)."""

    @abstractmethod
    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into values, (n_rows, n_outputs), or class shares, (n_rows, n_classes) of all outputs."""

    def score_codes(self, scores: Floats) -> NDArray[np.intp]:
        """Code of the class with the largest score, (n_rows, 1); one score is that of the second of two classes."""
        if scores.shape[1] == 1:
            return (scores > 0).astype(np.intp)
        return np.asarray(scores.argmax(axis=1)[:, np.newaxis])

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Value, or class shares, of each row."""
        return self.predicted(self.scores(columns, n_jobs))

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Code of the class that each row is predicted to be, (n_rows, n_outputs)."""
        return self.score_codes(self.scores(columns, n_jobs))


def digest_of(words: str, *arrays: NDArray[Any] | None) -> bytes:
    """Hash of words and numbers."""
    digest = hashlib.sha256(words.encode())
    for array in arrays:
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.digest()


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
    def engine(self) -> Any:
        """The engine's tree or trees."""

    @property
    def _engines(self) -> Sequence[Any]:
        """Where the nodes of all trees are."""
        return [self.engine]

    @property
    @abstractmethod
    def n_trees(self) -> int:
        """Number of trees."""

    @property
    def node_count(self) -> int:
        """Number of nodes of all trees."""
        return sum(part.size for part in self._engines)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return sum(int(np.count_nonzero(part.feature < 0)) for part in self._engines)

    def split_counts(self, n_features: int) -> NDArray[np.intp]:
        """Count the splits on each column."""
        feature = np.concatenate([part.feature for part in self._engines])
        return np.bincount(feature[feature >= 0], minlength=n_features)

    @abstractmethod
    def trees(self) -> list[_engine.Tree]:
        """Return the engine's trees."""

    @abstractmethod
    def importances(self, n_features: int) -> Floats:
        """Share of each column in the gain of the splits."""

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
    if any(tree.value_width != frame.width for tree in trees):
        refuse("is damaged: a tree does not fit its classes or outputs")


def _row_table(n_categories: list[int], numbers: Floats) -> _engine.Table:
    """Make a table of one row."""
    table = _engine.Table(1)
    for j, n in enumerate(n_categories):
        if n:
            known = numbers[j] >= 0  # NaN is not
            table.add_category(np.array([numbers[j] if known else -1], dtype=np.int32), n)
        else:
            table.add_number(numbers[j : j + 1].copy())
    return table
