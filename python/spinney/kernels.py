"""Kernels as functions of two arrays of rows, which return the matrix of the kernel values of all pairs.

Pass them to `spinney.SVC` and related estimators; `functools.partial` sets their parameters:

>>> from functools import partial
>>> import spinney
>>> from spinney.kernels import rbf
>>> X, y = spinney.datasets.make_xor(60, random_state=0)
>>> model = spinney.SVC(kernel=partial(rbf, gamma=2.0)).fit(X, y)
>>> bool((model.predict(X) == spinney.SVC(gamma=2.0).fit(X, y).predict(X)).all())
True
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["linear", "polynomial", "rbf", "sigmoid"]

Matrix = NDArray[np.float64]


def _pairs(U: ArrayLike, V: ArrayLike | None) -> tuple[Matrix, Matrix]:
    first = np.asarray(U, dtype=np.float64)
    second = first if V is None else np.asarray(V, dtype=np.float64)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError(
            f"A kernel needs two tables with the same number of columns, not arrays of the shapes {first.shape} and "
            f"{second.shape}."
        )
    return first, second


def linear(U: ArrayLike, V: ArrayLike | None = None) -> Matrix:
    """Return the scalar products u·v of each row u of U with each row v of V.

    Parameters
    ----------
    U : array-like of shape (n, n_features)
        Rows.
    V : array-like of shape (m, n_features), optional
        Other rows; None: the rows of U.

    Returns
    -------
    ndarray of shape (n, m)
        Kernel values.

    Examples
    --------
    >>> from spinney.kernels import linear
    >>> linear([[1, 2]], [[3, 4], [0, 1]])
    array([[11.,  2.]])
    """
    first, second = _pairs(U, V)
    return np.asarray(first @ second.T)


def polynomial(
    U: ArrayLike, V: ArrayLike | None = None, *, degree: int = 3, gamma: float = 1.0, coef0: float = 0.0
) -> Matrix:
    """Return the polynomial kernel (γ u·v + c) ** degree.

    Parameters
    ----------
    U, V : array-like
        As in `linear`.
    degree : int, default=3
        The power.
    gamma, coef0 : float, default=1 and 0
        γ, the factor of the scalar product, and the constant c.

    Returns
    -------
    ndarray of shape (n, m)
        Kernel values.

    Examples
    --------
    >>> from spinney.kernels import polynomial
    >>> polynomial([[1, 2]], [[3, 4]], degree=2, coef0=1)
    array([[144.]])
    """
    return np.asarray((gamma * linear(U, V) + coef0) ** degree)


def rbf(U: ArrayLike, V: ArrayLike | None = None, *, gamma: float = 1.0) -> Matrix:
    """Return the Gaussian kernel exp(-γ ‖u - v‖²).

    Parameters
    ----------
    U, V : array-like
        As in `linear`.
    gamma : float, default=1.0
        γ, which is 1 / (2 σ²) for a Gaussian with standard deviation σ.

    Returns
    -------
    ndarray of shape (n, m)
        Kernel values, 1 for equal rows.

    Examples
    --------
    >>> from spinney.kernels import rbf
    >>> rbf([[0.0], [1.0]]).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    first, second = _pairs(U, V)
    squares: Any = (first**2).sum(axis=1)[:, np.newaxis] + (second**2).sum(axis=1) - 2 * first @ second.T
    return np.asarray(np.exp(-gamma * np.maximum(squares, 0.0)))


def sigmoid(U: ArrayLike, V: ArrayLike | None = None, *, gamma: float = 1.0, coef0: float = 0.0) -> Matrix:
    """Return the sigmoid kernel tanh(γ u·v + c), which is not positive definite in general.

    Parameters
    ----------
    U, V : array-like
        As in `linear`.
    gamma, coef0 : float, default=1 and 0
        γ, the factor of the scalar product, and the constant c.

    Returns
    -------
    ndarray of shape (n, m)
        Kernel values between -1 and 1.

    Examples
    --------
    >>> from spinney.kernels import sigmoid
    >>> sigmoid([[1.0]], [[0.0], [10.0]]).round(2)
    array([[0., 1.]])
    """
    return np.tanh(gamma * linear(U, V) + coef0)
