"""Training samples and test rows of `bias_variance`, and predictions as arrays of (n_rows, n_values)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from spinney._data.select import PickTable, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.bagged_members import out_of
from spinney._estimator.held_out import read_row_groups, read_time
from spinney._estimator.target import read_classes, read_values
from spinney._evaluate.folds import split_latest
from spinney._evaluate.problem import EstimatorLike

Rows = NDArray[np.intp]
Generator = Callable[[np.random.Generator, int], tuple[TableLike, ColumnLike]]


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from, and which test rows they are judged by."""

    judged: Rows
    X: TableLike
    y: ColumnLike
    groups: NDArray[Any] | None  # labels of those that belong together
    time: NDArray[Any] | None  # their moments


@dataclass(frozen=True, eq=False)
class Source:
    """Test rows, and a way to draw training samples."""

    table: PickTable  # test rows
    observed: Floats  # one column, or one per class
    best: Floats | None  # the truth about them, likewise
    classes: NDArray[Any] | None
    y: NDArray[Any] | None  # of the table that is bootstrapped
    generator: Generator | None
    n_train: int
    units: list[Rows] | None = None  # rows that are drawn together
    time: NDArray[Any] | None = None
    parts: tuple[Rows, Rows] | None = None  # with `time`: rows to draw from, and the latest, which are judged

    def draw(self, rng: np.random.Generator) -> Sample:
        """Draw a training sample.

        A row that was drawn twice belongs to itself: a learner that holds one of the two out has seen the other.
        """
        if self.y is None:
            assert self.generator is not None
            X, y = self.generator(rng, self.n_train)
            return Sample(np.arange(self.table.n_rows), X, y, None, None)
        if self.parts is not None and self.time is not None:
            earlier, latest = self.parts
            rows = earlier[rng.integers(len(earlier), size=len(earlier))]
            return Sample(latest, self.table.take(rows), self.y[rows], rows, self.time[rows])
        if self.units is None:
            rows = together = rng.integers(self.table.n_rows, size=self.table.n_rows)
        else:
            drawn = rng.integers(len(self.units), size=len(self.units))
            rows = np.concatenate([self.units[u] for u in drawn])
            together = np.repeat(drawn, [len(self.units[u]) for u in drawn])
        judged = np.flatnonzero(out_of(rows, self.table.n_rows))
        return Sample(judged, self.table.take(rows), self.y[rows], together, None)

    def judge(self, fitted: Learner, rows: Rows, loss: str) -> tuple[Floats, Floats | None]:
        """Return what a learner predicts of test rows, and what its members do."""
        X = self.table.take(None if self.y is None else rows)
        if not len(rows):
            return np.empty((0, self.observed.shape[1])), None
        return predictions(fitted, X, self.classes, loss), members_say(fitted, X, self.classes)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where samples come from, as the parameters of `bias_variance`: rows of a table, or a generator."""

    X: TableLike = None
    y: ColumnLike = None
    groups: ColumnLike = None
    time: ColumnLike = None
    generator: Generator | None = None
    truth: Callable[[TableLike], ArrayLike] | None = None
    n_train: int = 100
    n_test: int = 1000


def read_source(given: Origin, seed: int, has_classes: bool) -> Source:
    """Check where samples come from.

    Parameters
    ----------
    given : Origin
    seed : int
        Draws the test rows of a generator.
    has_classes : bool
        Whether all learners are classifiers.

    Returns
    -------
    Source
    """
    groups, time = given.groups, given.time
    for name, told in (("groups", groups), ("time", time)):
        if told is not None and given.X is None:
            raise ValueError(f"{name} goes with X and y: a generator draws rows of its own. Leave it out.")
    if groups is not None and time is not None:
        raise ValueError("time and groups both say which rows are judged. Pass one of them.")
    source = _read(given, seed, has_classes)
    n_rows = source.table.n_rows
    if groups is not None:
        return replace(source, units=_units(read_row_groups(groups, n_rows)))
    if time is not None:
        moments = read_time(time, n_rows)
        split = split_latest(moments)
        return replace(source, time=moments, parts=(split.grown_on, split.held_out))
    return source


def _units(labels: NDArray[Any]) -> list[Rows]:
    """Rows of each group."""
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])


def _read(given: Origin, seed: int, has_classes: bool) -> Source:
    X, y, generator = given.X, given.y, given.generator
    if (generator is None) == (X is None):
        raise ValueError("Pass either a generator, or X and y; they say where training samples come from.")
    if X is not None and y is None:
        raise ValueError("Pass y with X.")
    if generator is not None and not callable(generator):
        raise TypeError(f"generator must be callable as generator(rng, n), not a {type(generator).__name__}.")
    truth = given.truth if given.truth is not None else getattr(generator, "truth", None)
    if generator is not None:
        X, y = generator(np.random.default_rng([seed, 0, 0]), given.n_test)
    table = pick_table(X)
    if has_classes:
        found = read_classes(y, table.n_rows)
        if found.n_outputs > 1:
            raise ValueError("y has several outputs; classes are decomposed one output at a time.")
        classes, labels = found.classes[0], found.classes[0][found.codes[:, 0]]
        observed, target = onehot(labels, classes), labels
    else:
        classes, observed = None, read_values(y, table.n_rows)
        target = observed[:, 0] if observed.shape[1] == 1 else observed
    best = None if truth is None else read_truth(truth(table.native), observed.shape, classes)
    return Source(table, observed, best, classes, target if generator is None else None, generator, given.n_train)


Array = NDArray[Any]
Learners = EstimatorLike | Mapping[str, EstimatorLike]  # as callers give them
_ROWS_COMPARED = 50  # enough to see whether an ensemble says the mean of its members


class Learner(Protocol):
    """A fitted estimator of any library; classifiers have the classes, and most of them probabilities."""

    classes_: Array

    def predict(self, X: TableLike) -> Array:
        """Labels or values."""

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities."""


def read_estimators(estimator: Learners) -> dict[str, EstimatorLike]:
    """Return learners by name."""
    learners = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
    if not learners:
        raise ValueError("There is no learner to judge. Pass an estimator, or a dict from names to estimators.")
    for name, learner in learners.items():
        if isinstance(learner, type) or not hasattr(learner, "fit") or not hasattr(learner, "predict"):
            raise TypeError(f"Learner {name!r} is not an estimator: it needs fit and predict. Got {learner!r}.")
    return {str(name): learner for name, learner in learners.items()}


def onehot(labels: Array, classes: Array) -> Floats:
    """Return 1 in the column of each row's class; nowhere if the class is not among `classes`."""
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.asarray(np.eye(len(classes))[place] * (classes[place] == labels)[:, None])


def read_truth(said: ArrayLike, shape: tuple[int, ...], classes: Array | None) -> Floats:
    """Check the truth: means, or class probabilities.

    Parameters
    ----------
    said : array-like
        One value per row, or one per row and output or class; of two classes the second alone will do.
    shape : tuple
        (n_rows, n_values) that is wanted.
    classes : ndarray or None
        Labels.

    Returns
    -------
    ndarray of the shape wanted
    """
    values = np.asarray(said, dtype=np.float64)
    if values.ndim == 1 and classes is not None and len(classes) == 2:
        values = np.column_stack([1 - values, values])
    if values.ndim == 1:
        values = values[:, None]
    if values.shape != shape:
        what = "one mean per row" if classes is None else f"one probability per row and class of {classes.tolist()}"
        raise ValueError(f"truth(X) has the shape {values.shape}; it must give {what}: {shape}.")
    if classes is not None and not (np.allclose(values.sum(axis=1), 1) and (values >= 0).all()):
        raise ValueError("truth(X) must give probabilities that add up to 1 in each row.")
    return values


def predictions(fitted: Learner, X: TableLike, classes: Array | None, loss: str) -> Floats:
    """Return predictions as means, probabilities (squared loss) or classes as 0 and 1 (0-1 loss)."""
    if classes is None:
        said = np.asarray(fitted.predict(X), dtype=np.float64)
        return said.reshape(len(said), -1)
    if loss == "zero_one" or not hasattr(fitted, "predict_proba"):
        return onehot(np.asarray(fitted.predict(X)), classes)
    return _aligned(fitted.predict_proba(X), fitted.classes_, classes)


def _aligned(said: ArrayLike, its_classes: Array, classes: Array) -> Floats:
    probabilities = np.asarray(said)
    shares = np.zeros((len(probabilities), len(classes)))
    place = np.searchsorted(classes, its_classes)
    known = place < len(classes)
    known[known] &= classes[place[known]] == np.asarray(its_classes)[known]
    shares[:, place[known]] = probabilities[:, known]
    return shares


def members_say(fitted: Learner, X: TableLike, classes: Array | None) -> Floats | None:
    """Return what each member says of X: (n_members, n_rows, n_values).

    None if there are no members, or their mean is not what the ensemble says (as in boosting).
    """
    members = getattr(fitted, "estimators_", None)
    if not isinstance(members, list) or len(members) < 2 or not all(hasattr(m, "predict") for m in members):
        return None
    columns = getattr(fitted, "estimators_features_", [None] * len(members))
    table = pick_table(X)
    says = [_member_says(fitted, m, table.take(columns=c), classes) for m, c in zip(members, columns, strict=True)]
    if any(said is None for said in says):
        return None
    by_member = np.array(says)
    few = np.arange(min(_ROWS_COMPARED, table.n_rows))
    whole = predictions(fitted, table.take(few), classes, "squared")
    return by_member if np.allclose(by_member[:, few].mean(axis=0), whole) else None


def _member_says(ensemble: Learner, member: Learner, X: TableLike, classes: Array | None) -> Floats | None:
    if hasattr(ensemble, "feature_names_in_") and not hasattr(member, "feature_names_in_"):
        X = np.asarray(X)  # scikit-learn's ensembles show their members arrays
    if classes is None:
        said = np.asarray(member.predict(X), dtype=np.float64)
        return said.reshape(len(said), -1)
    if not is_classifier(member):
        return None
    is_vote = getattr(ensemble, "voting", None) == "hard" or not hasattr(member, "predict_proba")
    own = np.asarray(ensemble.classes_)
    labels = np.asarray(member.classes_)
    by_code = not np.isin(labels, own).all() or (labels.dtype.kind == "f" and own.dtype.kind != "f")
    if is_vote:
        said = np.asarray(member.predict(X))
        return onehot(own[said.astype(int)] if by_code else said, classes)
    return _aligned(member.predict_proba(X), own[labels.astype(int)] if by_code else labels, classes)
