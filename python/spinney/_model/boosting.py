"""Fitted gradient boosting: a sum of trees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.types import ColumnLike, Floats
from spinney._model.distributions import DISTRIBUTIONS, PredictedDistribution, distributions_of
from spinney._model.file.codec import numbers, saved_fields, text
from spinney._model.file.container import refuse
from spinney._model.links import (
    has_cuts,
    is_imported_link,
    is_link,
    is_of_classes,
    is_of_ordered_classes,
    predicted,
    score_columns,
)
from spinney._model.model import ModelOfTrees, ModelSpec, ScoredModel, fractions, split_gains
from spinney._model.row_predictors import Row, RowPredictor


class FittedBoosting(ModelOfTrees, ScoredModel):
    """A fitted boosting model: the sum of its trees.

    Attributes
    ----------
    start : ndarray of shape (n_scores,)
        Score of every row before the first tree.
    link : str
        Name of the function from scores to predictions.
    n_scores : int
        Number of scores of a row: one, or one for each class, quantile or output.
    n_rounds : int
        Number of rounds; each has a tree for every score.
    """

    kind = "boosting"
    attribute = "boosting_"
    noun = "boosting"
    gain_is = "decrease of the loss"
    takes_offset = True
    engine: _engine.Additive
    saved = saved_fields(start=numbers(np.float64, "n_scores"), link=text())

    def __init__(
        self,
        trees: Sequence[_engine.Tree] | _engine.Additive,
        start: Floats,
        link: str,
        n_categories: list[int],
        n_classes: list[int] | None,
        cost: Floats | None = None,
    ) -> None:
        n_outputs = 1 if link in DISTRIBUTIONS else len(start)
        super().__init__(n_classes, n_outputs if n_classes is None else len(n_classes), cost)
        self.start = start
        self.link = link
        self._n_categories = n_categories
        if not isinstance(trees, _engine.Additive):
            trees = _engine.make_additive(list(trees), len(start), n_categories)
        self.engine = trees

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_rounds} rounds, {self.node_count} nodes>"

    @property
    def has_linear_leaves(self) -> bool:
        """Whether leaves hold linear models instead of constants."""
        return self.engine.has_linear_leaves

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""
        return len(self.start)

    @property
    def n_probabilities(self) -> int:
        """Number of classes whose probabilities are predicted; 0 in a regression."""
        return 0 if self._n_classes is None else self._n_classes[0]

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return self.n_trees // self.n_scores

    def shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool, n_jobs: int
    ) -> tuple[Floats, Floats, Floats]:
        """Shapley values: base values by score, values by row, column and score, and values of pairs of columns."""
        base, values, pairs = _engine.shap_of_additive(self.engine, columns, background, interactions, n_jobs)
        return base + self.start, values, pairs

    def at_points(
        self, columns: _engine.Table, points: _engine.Table, which: list[int], scores: bool, n_jobs: int
    ) -> Floats | None:
        """Predictions, or scores, with some columns replaced by each point's values; None with linear leaves."""
        if self.has_linear_leaves:
            return None
        sums: Any = _engine.replaced_in_additive(self.engine, columns, points, which, n_jobs)
        if sums is None:
            walked = _engine.walked_in_additive(self.engine, columns, points, which, n_jobs)
            sums = walked.reshape(columns.n_rows, points.n_rows, -1).transpose(1, 0, 2).reshape(walked.shape)
        found = sums + self.start if scores else self.predicted(sums + self.start)
        return np.asarray(found.reshape(points.n_rows, columns.n_rows, -1))

    def exchanged(
        self, columns: _engine.Table, others: NDArray[np.uint32], groups: list[list[int]], n_jobs: int
    ) -> Floats:
        """Scores with each group's columns taken from other rows: (n_groups, n_draws, n_rows, n_scores)."""
        sums = _engine.exchanged_in_additive(self.engine, columns, others, groups, n_jobs) + self.start
        return sums.reshape(columns.n_rows, len(groups), len(others), -1).transpose(1, 2, 0, 3)

    def row_predictor(self, schema: Schema, unseen: str, classes: Any) -> BoostingRowPredictor:
        """Return a predictor of single rows."""
        return BoostingRowPredictor(self, schema, unseen, classes)

    @classmethod
    def from_file(cls, header: dict[str, Any], trees: list[_engine.Tree], spec: ModelSpec) -> Self:
        """Read the model from a file."""
        found = cls.saved.from_header(header)
        cls._check_scores(found["link"], len(found["start"]), spec)
        if not trees or len(trees) % len(found["start"]):
            refuse(f"is damaged: it holds {len(trees)} trees for {len(found['start'])} scores")
        return cls(trees, **found, n_categories=spec.schema.n_categories, n_classes=spec.n_classes, cost=spec.cost)

    @classmethod
    def _check_scores(cls, link: str, n_scores: int, spec: ModelSpec) -> None:
        """Refuse scores that do not fit the target."""
        n_classes = spec.n_classes
        if not is_link(link) or is_of_classes(link) != (n_classes is not None):
            refuse("is damaged: its link does not fit its target")
        if n_classes is None:
            distribution = DISTRIBUTIONS.get(link)
            wanted = spec.n_outputs if distribution is None else len(distribution.score_names)
            fits = n_scores == wanted and (distribution is None or spec.n_outputs == 1)
        elif link == "by_output":
            fits = min(n_classes) >= 2 and score_columns(n_classes)[-1].stop == n_scores
        elif is_of_ordered_classes(link):
            fits = len(n_classes) == 1 and n_scores == 1 and has_cuts(link, n_classes[0])
        elif link == "softmax":
            fits = len(n_classes) == 1 and n_scores == n_classes[0] >= 2
        else:
            fits = n_classes == [2] and n_scores == 1
        if not fits:
            refuse("is damaged: its scores do not fit its classes or outputs")

    def identity(self) -> bytes:
        """Return the link, the start and the costs, if there are any."""
        return self.link.encode() + np.ascontiguousarray(self.start).tobytes() + super().identity()

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator that come from the model alone."""
        return super().attributes() | {"n_iter_": self.n_rounds}

    def first(self, n_rounds: int) -> Self:
        """Return the model of the first rounds."""
        if n_rounds == self.n_rounds:
            return self
        return self.with_trees(self.trees()[: n_rounds * self.n_scores])

    def with_trees(self, trees: Sequence[_engine.Tree]) -> Self:
        """Return a model of other trees with the same start and link."""
        return type(self)(trees, self.start, self.link, self._n_categories, self._n_classes, self.cost)

    def with_link(self, link: str) -> Self:
        """Return a model of the same trees with another link."""
        return type(self)(self.engine, self.start, link, self._n_categories, self._n_classes, self.cost)

    def scores(self, columns: _engine.Table, n_jobs: int) -> Floats:
        """Add up the trees and the start, (n_rows, n_scores)."""
        return self.engine.sums(columns, 0, self.n_trees, n_jobs) + self.start

    @property
    def explained_columns(self) -> list[slice]:
        """Slice of each output's scores."""
        return score_columns(self._n_classes or []) if self.link == "by_output" else [slice(0, self.n_scores)]

    def round_sums(self, columns: _engine.Table, round_: int, n_jobs: int) -> Floats:
        """Add up the trees of one round, (n_rows, n_scores)."""
        return self.engine.sums(columns, round_ * self.n_scores, (round_ + 1) * self.n_scores, n_jobs)

    def predicted(self, scores: Floats) -> Floats:
        """Turn scores into numbers, (n_rows, n_outputs), or class probabilities, (n_rows, n_classes) of all outputs."""
        if self.link != "by_output":
            return predicted(self.link, scores)
        by_output = [scores[:, columns] for columns in self.explained_columns]
        return np.hstack([predicted("logit" if one.shape[1] == 1 else "softmax", one) for one in by_output])

    def distributions(self, scores: Floats) -> PredictedDistribution:
        """Turn scores into the distributions of the targets of rows."""
        return distributions_of(self.link, scores)

    def score_codes(self, scores: Floats) -> NDArray[np.intp]:
        """Code of the class with the largest score, or of least expected cost, (n_rows, n_outputs)."""
        if self.cost is not None:
            return self.best_codes(self.predicted(scores))
        if is_of_ordered_classes(self.link):
            return np.asarray(self.predicted(scores).argmax(axis=1)[:, np.newaxis])
        by_output = [scores[:, columns] for columns in self.explained_columns]
        codes = [(one[:, 0] > 0) if one.shape[1] == 1 else one.argmax(axis=1) for one in by_output]
        return np.column_stack(codes).astype(np.intp)

    @cached_property
    def _splits(self) -> tuple[NDArray[np.int32], Floats]:
        engine = self.engine
        split, gain = split_gains(engine.feature, engine.right, engine.weight, engine.impurity)
        return engine.feature[split], gain

    def importances(self, n_features: int) -> Floats:
        """Fraction of the decrease of the loss by all splits that each column contributes."""
        feature, gain = self._splits
        return fractions(np.bincount(feature, weights=np.maximum(gain, 0), minlength=n_features))


class FittedImport(FittedBoosting):
    """An imported model: a sum of trees, with more links than boosting has, and several outputs.

    Attributes
    ----------
    start : ndarray of shape (n_scores,)
        Score of every row before the first tree.
    link : str
        Name of the function from scores to predictions.
    """

    kind = "imported"
    takes_costs = False
    gain_is = "gain of the splits, as the original library computed it"

    @classmethod
    def _check_scores(cls, link: str, n_scores: int, spec: ModelSpec) -> None:
        if spec.n_classes is not None and len(spec.n_classes) != 1:
            refuse("is damaged: its number of outputs is wrong")
        if not is_imported_link(link, spec.n_classes is not None, n_scores, spec.width):
            refuse("is damaged: its link does not fit its target")


class BoostingRowPredictor(RowPredictor):
    """A fitted boosting model prepared to predict single rows in microseconds, without threads.

    Rows have the forms that `RowPredictor` accepts. Use it from one thread at a time; make one per thread.
    """

    def __init__(self, model: FittedBoosting, schema: Schema, unseen: str, classes: Any) -> None:
        super().__init__(schema, unseen, self._predicted, None if classes is None else self._proba)
        self._model = model
        self._is_by_output = model.link == "by_output"  # then the engine computes scores alone
        self._is_distribution = model.link in DISTRIBUTIONS
        link = "identity" if self._is_by_output or self._is_distribution else model.link
        scorer = _engine.RowScorer(model.engine, np.ascontiguousarray(model.start), link)
        self._code, self._value, self._write_flat = scorer.code, scorer.value, scorer.proba
        self._classes = None if classes is None else list(classes)
        self._n_scores = model.n_scores
        self._n_values = model.n_scores if self._is_by_output or classes is None else len(classes)
        self._is_number = classes is None and model.n_scores == 1

    def _read_offset(self, offset: ColumnLike) -> Floats | None:
        if offset is None:
            return None
        try:
            numbers = np.array(offset, dtype=np.float64, ndmin=1)
        except (TypeError, ValueError):
            numbers = np.empty(0)
        if numbers.shape != (self._n_scores,):
            wanted = "one number" if self._n_scores == 1 else f"{self._n_scores} numbers, one per score"
            raise ValueError(f"The offset of a row is {wanted}. Got {offset!r}.")
        if not np.isfinite(numbers).all():
            raise ValueError(f"The offset of a row must be finite. Got {offset!r}.")
        return numbers

    def predict(self, row: Row, offset: Any = None) -> Any:
        """Predict one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.
        offset : float or array-like of shape (n_scores,), optional
            Initial scores, to which those of the trees are added.

        Returns
        -------
        label or float
            Prediction; an array if the model has several outputs.
        """
        return self._predicted(self._numbers(row), self._read_offset(offset))

    def _predicted(self, numbers: Floats, offset: Floats | None = None) -> Any:
        if self._is_number:
            return self._value(numbers, offset)
        if self._is_distribution:
            return float(self._model.predicted(self._flat_of(numbers, offset)[np.newaxis])[0, 0])
        if self._classes is None:
            return self._flat_of(numbers, offset)
        if self._is_by_output:
            codes = self._model.score_codes(self._flat_of(numbers, offset)[np.newaxis])
            return self._model.labels(codes, self._classes)[0]
        if self._model.cost is not None:
            return self._classes[int(self._model.best_codes(self._flat_of(numbers, offset)[np.newaxis])[0, 0])]
        return self._classes[self._code(numbers, offset)]

    def _flat_of(self, numbers: Floats, offset: Floats | None) -> Floats:
        """Return numbers, class probabilities, or scores by output."""
        out = np.empty(self._n_values)
        self._write_flat(numbers, out, offset)
        return out

    def predict_proba(self, row: Row, offset: Any = None) -> Any:
        """Return the class probabilities of one row.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values of one row.
        offset : float or array-like of shape (n_scores,), optional
            Initial scores, to which those of the trees are added.

        Returns
        -------
        ndarray of shape (n_classes,)
            In the order of the classes; a list of these if the model has several outputs.
        """
        if offset is None:
            return super().predict_proba(row)
        return self._proba(self._numbers(row), self._read_offset(offset))

    def _proba(self, numbers: Floats, offset: Floats | None = None) -> Any:
        found = self._flat_of(numbers, offset)
        if not self._is_by_output:
            return found
        proba = self._model.predicted(found[np.newaxis])[0]
        return [proba[columns] for columns in self._model.class_columns]
