"""Training samples and test rows of `bias_variance`, and predictions as arrays of (n_rows, n_values)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from spinney._data.select import PickTable, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.sampling import out_of
from spinney._estimator.held_out import read_row_groups, read_time
from spinney._estimator.target import read_classes, read_values
from spinney._evaluate.folds import split_latest
from spinney._evaluate.problem import EstimatorLike

Rows = NDArray[np.intp]
Array = NDArray[Any]
Generator = Callable[[np.random.Generator, int], tuple[TableLike, ColumnLike]]
Truth = Callable[[Any], ArrayLike]  # called with a table; returns means of y, or class probabilities
Learners = EstimatorLike | Mapping[str, EstimatorLike]  # argument of callers
_ROWS_COMPARED = 50  # enough to see whether an ensemble predicts the mean of its members


class Learner(Protocol):
    """A fitted estimator of any library; classifiers have the classes, and most of them probabilities."""

    classes_: Array

    def predict(self, X: TableLike) -> Array:
        """Return labels or numbers."""

    def predict_proba(self, X: TableLike) -> Floats:
        """Return class probabilities."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A training sample, and the numbers of its test rows."""

    test: Rows
    X: TableLike
    y: ColumnLike
    groups: Array | None = None  # of the training rows
    time: Array | None = None  # of the training rows


@dataclass(frozen=True, eq=False)
class Source:
    """Test rows, and the source of training samples: a generator, or units of rows drawn with replacement."""

    table: PickTable  # test rows
    y: Array
    observed: Floats  # y in one column, or one per class
    classes: Array | None
    truth: Floats | None  # in the shape of `observed`
    generate: Callable[[np.random.Generator], tuple[TableLike, ColumnLike]] | None = None
    units: Sequence[Rows] = ()  # rows that are drawn together
    time: Array | None = None
    latest: Rows | None = None  # with `time`: the test rows

    def draw(self, rng: np.random.Generator) -> Sample:
        """Draw a training sample.

        Copies of a row are one group, so that a validation set of the learner does not split them.
        """
        if self.generate is not None:
            return Sample(np.arange(self.table.n_rows), *self.generate(rng))
        drawn = rng.integers(len(self.units), size=len(self.units))
        rows = np.concatenate([self.units[unit] for unit in drawn])
        together = np.repeat(drawn, [len(self.units[unit]) for unit in drawn])
        test = np.flatnonzero(out_of(rows, self.table.n_rows)) if self.latest is None else self.latest
        time = None if self.time is None else self.time[rows]
        return Sample(test, self.table.take(rows), self.y[rows], together, time)

    def evaluate(self, fitted: Learner, rows: Rows, loss: str) -> tuple[Floats, Floats | None]:
        """Return the predictions of a learner for test rows, and those of its members."""
        if not len(rows):
            return np.empty((0, self.observed.shape[1])), None
        X = self.table.take(rows if self.generate is None else None)
        return predictions(fitted, X, self.classes, loss), member_predictions(fitted, X, self.classes)


def generated_source(
    generator: Generator, truth: Truth | None, n_train: int, n_test: int, seed: int, has_classes: bool
) -> Source:
    """Return a source of training samples and test rows from a generator."""
    if not callable(generator):
        raise TypeError(f"generator must be callable as generator(rng, n), not a {type(generator).__name__}.")
    X, y = generator(np.random.default_rng([seed, 0, 0]), n_test)
    source = _read(X, y, truth if truth is not None else getattr(generator, "truth", None), has_classes)
    return replace(source, generate=lambda rng: generator(rng, n_train))


def resampled_source(
    X: TableLike, y: ColumnLike, groups: ColumnLike, time: ColumnLike, truth: Truth | None, has_classes: bool
) -> Source:
    """Return a source of bootstrap samples: of rows, of groups, or of the rows before the latest fifth."""
    if groups is not None and time is not None:
        raise ValueError("time and groups both determine the test rows. Pass one of them.")
    if y is None:
        raise ValueError("Pass y with X.")
    source = _read(X, y, truth, has_classes)
    n_rows = source.table.n_rows
    if groups is not None:
        _, codes, counts = np.unique(read_row_groups(groups, n_rows), return_inverse=True, return_counts=True)
        return replace(source, units=np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1]))
    if time is None:
        return replace(source, units=list(np.arange(n_rows)[:, np.newaxis]))
    times = read_time(time, n_rows)
    split = split_latest(times)
    return replace(source, units=list(split.train[:, np.newaxis]), time=times, latest=split.held_out)


def _read(X: TableLike, y: ColumnLike, truth: Truth | None, has_classes: bool) -> Source:
    table, classes = pick_table(X), None
    if has_classes:
        read = read_classes(y, table.n_rows)
        if read.n_outputs > 1:
            raise ValueError("y has several outputs; decompose classes one output at a time.")
        classes = read.classes[0]
        target: Array = classes[read.codes[:, 0]]
        observed = onehot(target, classes)
    else:
        observed = read_values(y, table.n_rows)
        target = observed[:, 0] if observed.shape[1] == 1 else observed
    known = None if truth is None else read_truth(truth(table.native), observed.shape, classes)
    return Source(table, target, observed, classes, known)


def read_estimators(estimator: Learners) -> dict[str, EstimatorLike]:
    """Return learners by name."""
    learners = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
    if not learners:
        raise ValueError("There is no learner. Pass an estimator, or a dict from names to estimators.")
    for name, learner in learners.items():
        if isinstance(learner, type) or not hasattr(learner, "fit") or not hasattr(learner, "predict"):
            raise TypeError(f"Learner {name!r} is not an estimator: it needs fit and predict. Got {learner!r}.")
    return {str(name): learner for name, learner in learners.items()}


def onehot(labels: Array, classes: Array) -> Floats:
    """Return the one-hot encoding of labels; all 0 for an unknown label."""
    return np.asarray(labels[:, np.newaxis] == classes, dtype=np.float64)


def read_truth(truth: ArrayLike, shape: tuple[int, ...], classes: Array | None) -> Floats:
    """Check the truth: means, or class probabilities.

    Parameters
    ----------
    truth : array-like
        One value per row, or one per row and output or class; for two classes the second alone suffices.
    shape : tuple
        Required shape (n_rows, n_values).
    classes : ndarray or None
        Labels.

    Returns
    -------
    ndarray of the required shape
    """
    values = np.asarray(truth, dtype=np.float64)
    if values.ndim == 1 and classes is not None and len(classes) == 2:
        values = np.column_stack([1 - values, values])
    if values.ndim == 1:
        values = values[:, None]
    if values.shape != shape:
        what = "one mean per row" if classes is None else f"one probability per row and class of {classes.tolist()}"
        raise ValueError(f"truth(X) has the shape {values.shape}; it must return {what}: {shape}.")
    if classes is not None and not (np.allclose(values.sum(axis=1), 1) and (values >= 0).all()):
        raise ValueError("truth(X) must return probabilities that sum to 1 in each row.")
    return values


def predictions(fitted: Learner, X: TableLike, classes: Array | None, loss: str) -> Floats:
    """Return predictions as means, probabilities (squared loss) or classes as 0 and 1 (0-1 loss)."""
    if classes is None:
        values = np.asarray(fitted.predict(X), dtype=np.float64)
        return values.reshape(len(values), -1)
    if loss == "zero_one" or not hasattr(fitted, "predict_proba"):
        return onehot(np.asarray(fitted.predict(X)), classes)
    return np.asarray(fitted.predict_proba(X)) @ onehot(np.asarray(fitted.classes_), classes)


def member_predictions(fitted: Learner, X: TableLike, classes: Array | None) -> Floats | None:
    """Return the predictions of each member: (n_members, n_rows, n_values).

    None if there are no members, or if their mean is not the prediction of the ensemble (as in boosting).
    """
    members = getattr(fitted, "estimators_", None)
    if not isinstance(members, Sequence) or len(members) < 2:
        return None
    members = list(members)
    if not all(hasattr(member, "predict") for member in members):
        return None
    columns = getattr(fitted, "estimators_features_", [None] * len(members))
    table = pick_table(X)

    def each(rows: NDArray[np.intp] | None) -> Floats | None:
        found = [
            _predictions_of_member(fitted, member, table.take(rows, columns=own), classes)
            for member, own in zip(members, columns, strict=True)
        ]
        return None if any(one is None for one in found) else np.array(found)

    few = np.arange(min(_ROWS_COMPARED, table.n_rows))
    some, whole = each(few), predictions(fitted, table.take(few), classes, "squared")
    return each(None) if some is not None and np.allclose(some.mean(axis=0), whole) else None


def _predictions_of_member(ensemble: Learner, member: Learner, X: TableLike, classes: Array | None) -> Floats | None:
    if hasattr(ensemble, "feature_names_in_") and not hasattr(member, "feature_names_in_"):
        X = np.asarray(X)  # scikit-learn's ensembles fit their members to arrays
    if classes is None:
        values = np.asarray(member.predict(X), dtype=np.float64)
        return values.reshape(len(values), -1)
    if not is_classifier(member):
        return None
    is_vote = getattr(ensemble, "voting", None) == "hard" or not hasattr(member, "predict_proba")
    own = np.asarray(ensemble.classes_)
    labels = np.asarray(member.classes_)
    by_code = not np.isin(labels, own).all() or (labels.dtype.kind == "f" and own.dtype.kind != "f")
    if is_vote:
        predicted = np.asarray(member.predict(X))
        return onehot(own[predicted.astype(int)] if by_code else predicted, classes)
    return np.asarray(member.predict_proba(X)) @ onehot(own[labels.astype(int)] if by_code else labels, classes)
