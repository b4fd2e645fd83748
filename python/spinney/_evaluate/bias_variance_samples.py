"""Where training samples come from, and the rows they are judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney._data.select import PickTable, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._ensemble.resampling import out_of
from spinney._estimator.held_out import read_row_groups, read_time
from spinney._estimator.target import read_classes, read_values
from spinney._evaluate.bias_variance_rows import Learner, members_say, onehot, predictions, read_truth
from spinney._evaluate.folds import split_latest

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
