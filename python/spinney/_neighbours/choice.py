"""How many neighbours: errors of held-out rows for many k, from one search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from spinney._model.file.container import refuse
from spinney._model.neighbours.model import Find, FittedNeighbours, Rows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """A model and the rows that it is judged by.

    Attributes
    ----------
    model : FittedNeighbours
        Fitted without these rows, or, if `find` leaves each out, with them.
    find : callable
        From numbers among these rows and k to the nearest rows of the model and their distances.
    n_queries, n_rows : int
        Rows that it is judged by, and rows that may be neighbours of one of them.
    held_out : ndarray of int
        Their numbers in the table.
    """

    model: FittedNeighbours
    find: Find
    n_queries: int
    n_rows: int
    held_out: Rows

    @classmethod
    def of(cls, model: FittedNeighbours, terms: Floats, held_out: Rows, n_jobs: int) -> Trial:
        """Judge a model by rows that it has not seen, which are given as terms."""

        def find(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return model.nearest(np.ascontiguousarray(terms[queries]), k, n_jobs)

        return cls(model, find, len(terms), len(model.rows), held_out)

    @classmethod
    def leave_one_out(cls, model: FittedNeighbours, numbers: Rows, n_jobs: int) -> Trial:
        """Judge a model by its own rows, each of which is no neighbour of itself."""

        def find(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return model.nearest_others(queries, k, n_jobs)

        return cls(model, find, len(model.rows), len(model.rows) - 1, numbers)

    def answers(self, values: Sequence[int]) -> Iterator[Floats]:
        """Yield what the model says of the rows for each number of neighbours; the numbers rise."""
        counting = replace(self.model.counting, k=max(values))
        n = min(self.n_rows, counting.n_wanted)
        rows, distance = self.find(np.arange(self.n_queries), n)
        if counting.is_running and self.model.weight is None:
            yield from self._running(rows, distance, values)
            return

        def known(queries: Rows, k: int) -> tuple[Rows, Floats]:
            return (rows[queries, :k], distance[queries, :k]) if k <= n else self.find(queries, k)

        for k in values:
            flat = np.empty((self.n_queries, self.model.ballot.width))
            for queries, near, votes in self.model.voters(known, replace(counting, k=k), self.n_queries, self.n_rows):
                flat[queries] = self.model.by_class(self.model.ballot.mean(near, votes))
            yield flat

    def _running(self, rows: Rows, distance: Floats, values: Sequence[int]) -> Iterator[Floats]:
        """Yield the same where a neighbour counts the same for any k: sums go on from one k to the next."""
        votes = self.model.counting.weighted(distance, np.ones(distance.shape), np.ones(distance.shape))
        total, sums = np.zeros((len(rows), self.model.ballot.width)), np.zeros(len(rows))
        done = 0
        for k in values:
            for j in range(done, min(k, rows.shape[1])):
                self.model.ballot.add(total, rows[:, j], votes[:, j])
                sums += votes[:, j]
            done = k
            yield self.model.by_class(total / sums[:, np.newaxis])


# from the numbers of rows in the table and what is said of them to their mean error, and each row's if there is one
Judge = Callable[[Any, Rows, Floats], tuple[float, Floats | None]]


class Answers(Protocol):
    """Rows that a setting is judged by, and what a model says of them with each value of it."""

    @property
    def model(self) -> Any:
        """A model that knows how answers are laid out."""

    @property
    def held_out(self) -> Rows:
        """Numbers of the rows."""

    def answers(self, values: Sequence[Any]) -> Iterator[Floats]:
        """Yield the answers for each value."""


def choose(trials: Sequence[Answers], name: str, values: Sequence[Any], judge: Judge) -> tuple[Any, dict[str, Any]]:
    """Return the value with the smallest mean error over the trials, the first of equals, and the table.

    Parameters
    ----------
    trials : sequence of Answers
    name : str
        What is chosen.
    values : sequence
        What may be chosen.
    judge : callable
        Error of what is said of some rows.

    Returns
    -------
    best : one of the values
    results : dict of ndarray
        By value: the values by their name, "error", its standard error "error_se", and "fold_errors".
    """
    errors, spread = np.empty((len(values), len(trials))), np.zeros(len(values))
    for f, trial in enumerate(trials):
        for i, flat in enumerate(trial.answers(values)):
            errors[i, f], losses = judge(trial.model, trial.held_out, flat)
            if len(trials) == 1 and losses is not None and len(losses) > 1:
                spread[i] = _deviation(losses) / np.sqrt(len(losses))
    if len(trials) > 1:
        spread = np.array([_deviation(of_value) for of_value in errors]) / np.sqrt(len(trials))
    mean = errors.mean(axis=1)
    results = {
        name: np.array(values),
        "error": mean,
        "error_se": spread,
        "fold_errors": errors,
    }
    return values[int(mean.argmin())], results


class _Said(BaseEstimator):
    """Has said all that a scorer may ask for."""

    def __init__(self, said: Any = None, shares: Any = None, classes: Any = None) -> None:
        self.said = said
        self.shares = shares
        self.classes = classes
        self.fitted_ = True
        if classes is not None:
            self.classes_ = classes

    def predict(self, X: Any) -> Any:
        """Return the predictions."""
        return self.said


class SaidClasses(ClassifierMixin, _Said):
    """The same of classes."""

    def predict_proba(self, X: Any) -> Any:
        """Return the class shares."""
        return self.shares


class SaidValues(RegressorMixin, _Said):
    """The same of values."""


def read_results(fields: dict[str, Any], first: str, kind: Any) -> dict[str, Any]:
    """Read the table of a cross-validation; refuse one that cannot be."""
    names = (first, "error", "error_se", "fold_errors")
    try:
        found = {name: np.array(fields[name], dtype=kind if name == first else np.float64) for name in names}
    except (KeyError, ValueError, TypeError, OverflowError):
        refuse("is damaged: its cross-validation is unusable")
    lengths = {len(values) if values.ndim else 0 for values in found.values()}
    if len(lengths) != 1 or not min(lengths) or found["fold_errors"].ndim != 2 or not np.isfinite(found["error"]).all():
        refuse("is damaged: its cross-validation is unusable")
    return found


def _deviation(losses: Floats) -> float:
    """Return the standard deviation, in a unit in which no square is too large to be a number."""
    _, power = np.frexp(np.abs(losses).max())
    return float(np.ldexp(np.ldexp(losses, -power).std(ddof=1), power))
