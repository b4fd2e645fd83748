"""Base classes of fitted models.

Model files, explanations, drawings, the command line and exporters use a fitted model through `FittedModel` alone. A
new kind of model needs a subclass and a line in the list of kinds in ``spinney._names``.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import CATEGORY, VALUE, Design
from spinney._data.feature import table_of
from spinney._data.reproducible import times
from spinney._data.types import Floats
from spinney._model.file.codec import Field, Known, SavedState, numbers, optional, saved_fields
from spinney._model.file.container import refuse
from spinney._model.links import predicted
from spinney._model.row_predictors import RowPredictor

_TERMS = saved_fields(
    feature=numbers(np.int32, "n_terms", least=0, below="n_features"),
    kind=numbers(np.int32, "n_terms", least=VALUE, most=CATEGORY),
    code=numbers(np.int32, "n_terms", least=0),
    center=numbers(np.float64, "n_terms"),
    scale=numbers(np.float64, "n_terms", above=0),
    fill=optional(numbers(np.float64, "n_terms")),
)


def _read_design(value: Any, name: str, known: Known) -> Design:
    schema = known["schema"]
    design = Design(**_TERMS.from_header(value, n_features=schema.n_features))
    if not design.fits(schema.n_categories):
        refuse("is damaged: its terms do not match its columns")
    known["n_terms"] = len(design)
    return design


DESIGN = Field(_TERMS.to_header, _read_design)


class Outputs:
    """The layout of predictions: which columns of a flat row belong to which output and class.

    Attributes
    ----------
    n_outputs : int
        Number of outputs.
    cost : ndarray of shape (n_classes, n_classes) or None
        Cost of predicting class j (column) for class i (row), if costs or priors decide the predicted class.
    """

    def __init__(self, n_classes: list[int] | None, n_outputs: int, cost: NDArray[np.float64] | None = None) -> None:
        self._n_classes = n_classes
        self.n_outputs = n_outputs
        self.cost = cost

    @property
    def class_columns(self) -> list[slice]:
        """Slice of each output's classes in a flat row."""
        ends = np.cumsum(self._n_classes or [])
        return [slice(int(end) - n, int(end)) for end, n in zip(ends, self._n_classes or [], strict=True)]

    @property
    def explained_columns(self) -> list[slice]:
        """Slice of each output in the values that Shapley values explain."""
        return self.class_columns

    def best_codes(self, flat: NDArray[np.float64]) -> NDArray[np.intp]:
        """Code of the most probable (or least costly) class by row and output; the first on a tie."""
        if self.cost is not None:
            expected = times(flat, self.cost)
            least = expected.min(axis=1, keepdims=True)
            # all terms have the same sign, so rounding errors are far smaller than this tolerance for ties
            return np.asarray((expected <= least * (1 + 1e-12)).argmax(axis=1)[:, np.newaxis])
        return np.column_stack([flat[:, columns].argmax(axis=1) for columns in self.class_columns])

    def labels(self, codes: NDArray[np.intp], classes: list[NDArray[Any]]) -> NDArray[Any]:
        """Labels of class codes, (n_rows, n_outputs); one column per output if there are several."""
        if self.n_outputs == 1:
            return np.asarray(classes[0].take(codes[:, 0]))
        return np.column_stack([labels.take(codes[:, k]) for k, labels in enumerate(classes)])

    def by_output(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return flat rows as predictions: class probabilities, a list of them for several outputs, or numbers.

        The list is left out of the types of public methods: it would fail ``predict_proba(X)[:, 1]``.
        """
        if self._n_classes is None:
            return flat[:, 0] if self.n_outputs == 1 else flat
        if self.n_outputs == 1:
            return flat
        return cast("NDArray[np.float64]", [flat[:, columns] for columns in self.class_columns])


def decision_costs(cost: Floats | None, priors: Floats | None) -> Floats | None:
    """Costs that decide the predicted class: with priors alone, every error costs 1; with neither, None."""
    return 1.0 - np.eye(len(priors)) if cost is None and priors is not None else cost


@dataclass(frozen=True)
class ModelSpec:
    """The entries of a model file that every kind of model has.

    Attributes
    ----------
    schema : Schema
        The columns.
    n_classes : list of int, or None
        Classes of each output; None in a regression.
    n_outputs : int
        Number of outputs.
    cost : ndarray of shape (n_classes, n_classes), or None
        Costs that decide the predicted class.
    """

    schema: Schema
    n_classes: list[int] | None
    n_outputs: int
    cost: Floats | None

    @property
    def width(self) -> int:
        """Length of a flat row of predictions."""
        return self.n_outputs if self.n_classes is None else sum(self.n_classes)


class FittedModel(Outputs, ABC):
    """A fitted model: predicts tables and single rows, and writes itself to model files.

    Attributes
    ----------
    kind : str
        Its name in model files.
    attribute : str
        The fitted attribute by which estimators hold it.
    noun : str
        Its name in messages.
    takes_offset : bool
        Whether `predict` accepts scores to add to those of the model.
    takes_costs, takes_priors : bool
        Whether costs, and whether priors, may decide the predicted class.
    saved : SavedState
        Its entries in a header, besides its trees and `ModelSpec`.
    """

    kind: ClassVar[str]
    attribute: ClassVar[str]
    noun: ClassVar[str]
    takes_offset: ClassVar[bool] = False
    takes_costs: ClassVar[bool] = True
    takes_priors: ClassVar[bool] = True
    saved: ClassVar[SavedState] = saved_fields()

    def trees(self) -> list[_engine.Tree]:
        """Return the engine's trees; an empty list if it has none."""
        return []

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves hold linear models instead of constants."""
        return False

    @abstractmethod
    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Predictions as flat rows, with a column for each number or class probability."""

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Codes of the predicted classes, (n_rows, n_outputs)."""
        return self.best_codes(self.predictions(columns, n_jobs))

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> RowPredictor:
        """Return a predictor of single rows."""
        sizes, of_outputs = schema.n_categories, [classes] if self.n_outputs == 1 else classes

        def table(numbers: Floats) -> _engine.Table:
            return table_of(numbers[:, np.newaxis], 1, sizes)

        def value(numbers: Floats) -> Any:
            values = self.predictions(table(numbers), 1)[0]
            return float(values[0]) if self.n_outputs == 1 else values

        def label(numbers: Floats) -> Any:
            return self.labels(self.codes(table(numbers), 1), of_outputs)[0]

        def proba(numbers: Floats) -> Any:
            found = self.by_output(self.predictions(table(numbers), 1))
            return [one[0] for one in found] if isinstance(found, list) else found[0]

        if classes is None:
            return RowPredictor(schema, unseen, value)
        return RowPredictor(schema, unseen, label, proba)

    # ---- files -----------------------------------------------------------------------------------------------

    def to_header(self) -> dict[str, Any]:
        """Return the header entries of this kind of model, besides its trees and `ModelSpec`."""
        return {"kind": self.kind, **self.saved.to_header(self)}

    @classmethod
    @abstractmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read a model from its header and trees; `refuse` or raise ValueError if they do not fit together."""

    def identity(self) -> bytes:
        """Return the numbers, besides the trees, that determine predictions: the costs, if there are any."""
        return b"" if self.cost is None else np.ascontiguousarray(self.cost).tobytes()

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return {self.attribute: self}


class LocalModel(FittedModel):
    """A fitted model that averages the targets of nearby training rows.

    Attributes
    ----------
    factor : ndarray of shape (n_classes,), or None
        Factors for the class probabilities, from priors.
    """

    factor: Floats | None

    def by_class(self, proba: Floats) -> Floats:
        """Multiply class probabilities by the factors of the classes, and normalise them."""
        if self.factor is None:
            return proba
        weighted = proba * self.factor
        return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return super().attributes() | {"n_outputs_": self.n_outputs}


class ScoredModel(FittedModel):
    """A fitted model that computes scores, and predictions from these.

    Attributes
    ----------
    link : str
        Name of the function from scores to predictions.
    """

    link: str

    @abstractmethod
    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Score rows, (n_rows, n_scores)."""

    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into numbers, (n_rows, n_outputs), or class probabilities, (n_rows, n_classes) of all outputs."""
        return predicted(self.link, scores)

    def predicted_from_explained(self, sums: Floats) -> Floats:
        """Turn sums of Shapley values and base values into predictions, as `predicted`."""
        return self.predicted(sums)

    def score_codes(self, scores: Floats) -> NDArray[np.intp]:
        """Code of the class with the largest score, (n_rows, 1); a single score is that of the second class."""
        if scores.shape[1] == 1:
            return (scores > 0).astype(np.intp)
        return np.asarray(scores.argmax(axis=1)[:, np.newaxis])

    def predictions(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Predictions as flat rows."""
        return self.predicted(self.scores(columns, n_jobs))

    def codes(self, columns: _engine.Table, n_jobs: int) -> NDArray[np.intp]:
        """Codes of the predicted classes, (n_rows, n_outputs)."""
        return self.score_codes(self.scores(columns, n_jobs))


def digest_of(words: str, *arrays: NDArray[Any] | None) -> bytes:
    """Hash of words and numbers."""
    digest = hashlib.sha256(words.encode())
    for array in arrays:
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.digest()


class ModelOfTrees(FittedModel):
    """A fitted model that consists of trees.

    Attributes
    ----------
    gain_is : str
        What the importances of columns are fractions of.
    n_trees, node_count, n_leaves : int
        Numbers of trees, nodes and leaves.
    """

    gain_is: ClassVar[str] = "decrease of the impurity"
    engine: Any

    @property
    def _engines(self) -> Sequence[Any]:
        """The engine's objects that hold the nodes of all trees."""
        return [self.engine]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.engine.n_trees)

    @property
    def node_count(self) -> int:
        """Number of nodes of all trees."""
        return sum(engine.size for engine in self._engines)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return sum(int(np.count_nonzero(engine.feature < 0)) for engine in self._engines)

    def split_counts(self, n_features: int) -> NDArray[np.intp]:
        """Count the splits on each column."""
        feature = np.concatenate([engine.feature for engine in self._engines])
        return np.bincount(feature[feature >= 0], minlength=n_features)

    def trees(self) -> list[_engine.Tree]:
        """Return copies of all trees."""
        return [self.engine.tree(t) for t in range(self.n_trees)]

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return super().attributes() | {"n_outputs_": self.n_outputs}

    @abstractmethod
    def importances(self, n_features: int) -> Floats:
        """Fraction of the gain of all splits that each column contributes."""

    @abstractmethod
    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Shapley values: base values by output, values by row, column and output, and values of pairs of columns."""

    def at_points(
        self, columns: _engine.Table, points: _engine.Table, which: list[int], scores: bool, n_jobs: int
    ) -> Floats | None:
        """Predictions of each row after replacing some columns by the values of each point.

        The shape is (n_points, n_rows, n_outputs). Numbers are bit-identical to `predictions`, or with `scores` to the
        scores of a model that has them. None if predicting the changed rows is not slower.
        """
        return None


def split_gains(
    feature: NDArray[Any], right: NDArray[Any], weight: Floats, impurity: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """Return the nodes that are split, and the weighted decrease of the impurity by each of these splits."""
    split, burden = np.flatnonzero(feature >= 0), weight * impurity
    return split, burden[split] - burden[split + 1] - burden[right[split]]


def fractions(total: NDArray[Any]) -> Floats:
    """Return numbers as fractions of their sum; zeros if that is 0."""
    return np.asarray(total / total.sum() if total.sum() > 0 else np.zeros(len(total)))


def check_width(trees: list[_engine.Tree], spec: ModelSpec) -> None:
    """Refuse trees whose values do not fit the classes or outputs."""
    if any(tree.value_width != spec.width for tree in trees):
        refuse("is damaged: a tree does not fit its classes or outputs")
