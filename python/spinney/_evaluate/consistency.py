"""Errors of learners against the number of training rows, next to the Bayes error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.base import clone

from spinney._data.display import Backend, ShownAsTable, align, fixed, frame_of, plural
from spinney._data.types import Floats
from spinney._ensemble.members import random_state_names, set_random_states
from spinney._estimator.parallel import count_threads, in_order
from spinney._evaluate.problem import EstimatorLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Learner = EstimatorLike | Callable[[int], EstimatorLike]


class ClassSource(Protocol):
    """A source of rows with known class probabilities, such as `spinney.datasets.TwoSources`."""

    def __call__(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]: ...
    def truth(self, X: Any) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Consistency(ShownAsTable):
    """Test errors of learners by the number of training rows; returned by `consistency`.

    Attributes
    ----------
    sizes : list of int
        Numbers of training rows.
    errors : dict from str to ndarray of shape (n_sizes, n_repeats)
        Test errors by learner.
    bayes_error : float
        L*, the lowest possible error, on the same test rows.
    """

    sizes: list[int]
    errors: dict[str, Floats]
    bayes_error: float

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the mean errors as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per size, one column per learner.
        """
        means = {name: errors.mean(axis=1).tolist() for name, errors in self.errors.items()}
        return frame_of({"rows": list(self.sizes)} | means, backend)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot the errors against the number of rows, with the Bayes error.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        from spinney.inspect.draw.errors import draw_consistency

        return draw_consistency(self, ax)

    def __repr__(self) -> str:
        return f"<Consistency of {plural(len(self.errors), 'learner')}>"

    def __str__(self) -> str:
        head = ["rows", *self.errors]
        means = [errors.mean(axis=1) for errors in self.errors.values()]
        rows = [[f"{n:,}", *(fixed(float(mean[k]), 3) for mean in means)] for k, n in enumerate(self.sizes)]
        return "\n".join([f"test error; Bayes error {fixed(self.bayes_error, 3)}", *align([head, *rows], left=())])


def consistency(
    learners: Mapping[str, Learner],
    source: ClassSource,
    *,
    sizes: Sequence[int] = (30, 100, 300, 1000, 3000),
    n_test: int = 2000,
    n_repeats: int = 10,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Consistency:
    """Estimate the error of learners for growing training samples, and the Bayes error of the data source.

    A learner is consistent if its error tends to the Bayes error. The k-nearest neighbours are consistent if k grows
    while k / n tends to 0; a single neighbour is not.

    Parameters
    ----------
    learners : dict from str to estimator, or to function
        Classifiers, or functions from the number of training rows to a classifier, whose parameters may then depend on
        this number.
    source : callable
        ``source(rng, n)`` draws rows of classes 0, 1, ..., and ``source.truth(X)`` returns their probabilities, as
        `spinney.datasets.TwoSources` and `ThresholdClasses` do.
    sizes : sequence of int
        Numbers of training rows.
    n_test, n_repeats : int, default=2000 and 10
        Number of test rows, the same in all repeats, and number of training sets of each size.
    random_state : int, default=0
        Seed of the rows.
    n_jobs : int, optional
        Threads; None: all cores the process may use.

    Returns
    -------
    Consistency
        Prints as text; has `errors`, `bayes_error`, `to_frame()` and `plot()`.

    Examples
    --------
    >>> import spinney
    >>> from spinney.datasets import ThresholdClasses
    >>> from spinney.teaching import consistency
    >>> learners = {
    ...     "1 neighbour": spinney.KNeighborsClassifier(1),
    ...     "√n neighbours": lambda n: spinney.KNeighborsClassifier(int(n**0.5)),
    ... }
    >>> print(consistency(learners, ThresholdClasses(n_features=1), sizes=(30, 1000)))
    test error; Bayes error 0.200
     rows  1 neighbour  √n neighbours
       30        0.321          0.245
    1,000        0.317          0.203
    """
    if not learners:
        raise ValueError("There is no learner. Pass a dict from names to classifiers.")
    if any(n < 2 for n in sizes):
        raise ValueError(f"sizes must be whole numbers of at least 2, not {list(sizes)!r}.")
    X, _ = source(np.random.default_rng([random_state, 0]), n_test)
    proba = np.asarray(source.truth(X), dtype=np.float64)
    work = [(n, k) for n in sizes for k in range(n_repeats)]

    def one(index: int) -> list[float]:
        n, k = work[index]
        rng = np.random.default_rng([random_state, 1, n, k])
        rows, y = source(rng, n)
        found = []
        for learner in learners.values():
            model = clone(learner) if hasattr(learner, "fit") else learner(n)
            set_random_states(model, random_state_names(model), int(rng.integers(2**31 - 1)))
            codes = np.asarray(model.fit(rows, y).predict(X)).astype(np.intp)
            found.append(float(1 - proba[np.arange(len(proba)), codes].mean()))
        return found

    errors = np.array(list(in_order(one, len(work), count_threads(n_jobs, len(work)))))
    by_learner = errors.reshape(len(sizes), n_repeats, len(learners))
    bayes = float(1 - proba.max(axis=1).mean())
    return Consistency(list(sizes), {name: by_learner[:, :, j] for j, name in enumerate(learners)}, bayes)
