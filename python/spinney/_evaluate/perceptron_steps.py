"""The updates of the perceptron, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney._data.arguments import argument_array
from spinney._data.types import Floats
from spinney._estimator.parameters import require_whole
from spinney._estimator.target import read_classes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class PerceptronStep:
    """The hyperplane after an update of the perceptron; returned by `perceptron_steps`.

    Attributes
    ----------
    epoch, row : int
        Number of the pass over the rows, from 1, and position of the misclassified row.
    coef : ndarray of shape (n_features,)
        Coefficients after the update.
    intercept : float
        Intercept after the update.
    """

    epoch: int
    row: int
    coef: Floats
    intercept: float


class PerceptronSteps(list[PerceptronStep]):
    """The updates of the perceptron, in their order; returned by `perceptron_steps`.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        Their classes.
    """

    def __init__(self, X: Floats, y: NDArray[Any]) -> None:
        super().__init__()
        self.X, self.y = X, y

    def plot(self, *, max_updates: int = 8) -> Figure:
        """Plot the line of two columns before and after each update, with a ring around the row that caused it.

        Parameters
        ----------
        max_updates : int, default=8
            Maximum number of panels: the first updates, and always the last one.

        Returns
        -------
        Figure
            The figure.
        """
        from spinney.inspect.draw.teaching import draw_perceptron_steps

        require_whole("max_updates", max_updates, 1)
        if self.X.shape[1] != 2:
            raise ValueError(f"The perceptron is drawn in the plane of two columns, but X has {self.X.shape[1]}.")
        if not self:
            raise ValueError("There was no update to draw.")
        return draw_perceptron_steps(self, max_updates)


def perceptron_steps(
    X: ArrayLike, y: ArrayLike, *, fit_intercept: bool = False, eta0: float = 1.0, max_epochs: int = 1000
) -> PerceptronSteps:
    """Return the hyperplanes of the online perceptron, which takes the rows in their order.

    A misclassified row x of class y = ±1 changes the coefficients to β + η y x, and the intercept to b + η y R², where
    R is the largest norm of a row. `spinney.Perceptron` with ``shuffle=False``, ``tol=None`` and the same
    ``fit_intercept`` ends at the same hyperplane.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, numbers only.
    y : array-like of shape (n_samples,)
        Two classes; the second in sorted order is +1.
    fit_intercept : bool, default=False
        Whether there is an intercept.
    eta0 : float, default=1.0
        The learning rate η.
    max_epochs : int, default=1000
        Maximum number of passes over the rows.

    Returns
    -------
    PerceptronSteps
        A list with a `PerceptronStep` for each update, and `plot()` for two columns.

    Examples
    --------
    >>> from spinney.teaching import perceptron_steps
    >>> steps = perceptron_steps([[2.0, 1.0], [-1.0, 1.0], [2.0, -0.5]], [1, 1, -1])
    >>> [step.coef.tolist() for step in steps]
    [[2.0, 1.0], [1.0, 2.0], [-1.0, 2.5]]
    """
    rows = np.asarray(argument_array(X, "X"), dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"X must have rows and columns; its shape is {rows.shape}.")
    if not np.isfinite(rows).all():
        raise ValueError("X has missing or infinite values. The perceptron by hand needs numbers.")
    target = read_classes(y, len(rows))
    if len(target.classes[0]) != 2:
        raise ValueError(f"y must have two classes; it has {len(target.classes[0])}.")
    require_whole("max_epochs", max_epochs, 1)
    signs = 2.0 * target.codes[:, 0] - 1.0
    square = float((rows**2).sum(axis=1).max()) if fit_intercept else 0.0
    coef, intercept = np.zeros(rows.shape[1]), 0.0
    steps = PerceptronSteps(rows, np.asarray(target.classes[0])[target.codes[:, 0]])
    for epoch in range(1, max_epochs + 1):
        n_before = len(steps)
        for i, (x, sign) in enumerate(zip(rows, signs.tolist(), strict=True)):
            if sign * (float(coef @ x) + intercept) <= 0:
                coef, intercept = coef + eta0 * sign * x, intercept + eta0 * sign * square
                steps.append(PerceptronStep(epoch, i, coef, intercept))
        if len(steps) == n_before:
            break
    return steps
