"""User-defined split criteria: an object, a loss alone, or compiled functions.

Pass one of these as `criterion` to a tree. The tree calls three methods:

``init(y, sample_weight)``
    once, before growth: returns the y to use.
``evaluate(y, weight)``
    for every node: returns its value and its risk.
``split(y, weight, x, is_category)``
    for every column of every node that may be split: returns how good each cut is.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import spinney._engine as _engine

__all__ = ["CompiledCriterion", "Criterion", "LossCriterion"]

Array = NDArray[np.float64]


class Criterion:
    """Base class of split criteria written in Python.

    Subclasses implement `evaluate`; the other methods have defaults, which are correct for every risk, but slow. Growth
    runs on one thread. ``fit`` raises the errors of the methods.

    A method ``row_loss(y, value)``, which returns the loss of each row of y predicted by the same row of value, is
    needed to evaluate a tree on held-out rows (`validation_fraction`, ``prune="cv"``). There is no default, because a
    risk need not be a sum over rows.

    Examples
    --------
    The regression tree of squared errors, from `evaluate` alone:

    >>> import numpy as np
    >>> import spinney
    >>> class Squares(spinney.Criterion):
    ...     def evaluate(self, y, weight):
    ...         mean = np.average(y, weights=weight)
    ...         return mean, np.sum(weight * (y - mean) ** 2)
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([1.0, 1.0, 5.0, 6.0])
    >>> spinney.DecisionTreeRegressor(criterion=Squares(), max_depth=1).fit(X, y).predict(X)
    array([1. , 1. , 5.5, 5.5])
    """

    def init(self, y: Array, sample_weight: Array) -> ArrayLike:
        """Check y before growth, and return the y that is passed to the other methods.

        Parameters
        ----------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The target as passed to `fit`; in a classifier, class codes 0, 1, ….
        sample_weight : ndarray of shape (n_samples,)
            Weights; a row of weight 0 takes no part.

        Returns
        -------
        array-like of shape (n_samples,) or (n_samples, k)
            Finite numbers. By default, y itself.
        """
        return y

    def evaluate(self, y: Array, weight: Array) -> tuple[ArrayLike, float]:
        """Value and risk of a node.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)
            Target of the node's rows.
        weight : ndarray of shape (n,)
            Their weights, all positive.

        Returns
        -------
        value : float or array-like
            What the node predicts: one number, or an array of the same length in all nodes. In a classifier: class
            probabilities.
        risk : float
            Risk of all rows together, at least 0, such as a weighted sum of squares. The node's impurity is the risk
            per unit of weight. A node of risk 0 is not split.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method evaluate(y, weight). Implement it.")

    def split(self, y: Array, weight: Array, x: Array, is_category: bool) -> Any:
        """Goodness of each cut of a column.

        Parameters
        ----------
        y : ndarray of shape (n,) or (n, k)
            Target of the node's rows, sorted by x.
        weight : ndarray of shape (n,)
            Their weights, all positive.
        x : ndarray of shape (n,)
            Numbers in ascending order. Missing values are NaN. They come last in one call and first in another, so that
            rows without a value are tried on either side. For a category column, the rows' groups: 0, 1, …, one for
            each category in the node, and the last for missing values if there are any.
        is_category : bool
            Whether x holds groups, which may be put in any order.

        Returns
        -------
        goodness : array-like of shape (n - 1,)
            Goodness of the cut after each row: the larger, the better. Only cuts of positive goodness are made. NaN: no
            cut here. Values for cuts between equal x are ignored. Where nodes are compared (`max_leaf_nodes`,
            `min_impurity_decrease`), goodness is taken as the decrease of the risk, as it is by default.
        order, goodness : array-like of shape (n_groups,) and (n_groups - 1,)
            For a category column: an order of the groups, and the goodness of cutting it after each but the last.
        """
        if is_category:
            return self.split_in_order(y, weight, x)
        whole = self.evaluate(y, weight)[1]
        goodness = np.full(len(x) - 1, np.nan)
        for n in boundaries(x):
            goodness[n - 1] = whole - self.evaluate(y[:n], weight[:n])[1] - self.evaluate(y[n:], weight[n:])[1]
        return goodness

    def split_in_order(self, y: Array, weight: Array, group: Array) -> tuple[NDArray[Any], Array]:
        """Sort the groups of a category column by the (first) value of each, and evaluate the cuts between them.

        Parameters
        ----------
        y, weight, group : ndarray
            As `split` gets them for a category column.

        Returns
        -------
        order, goodness : ndarray
            As `split` returns them for a category column.
        """
        parts = np.split(np.arange(len(group)), boundaries(group))
        values = [np.ravel(np.asarray(self.evaluate(y[rows], weight[rows])[0]))[0] for rows in parts]
        order = np.argsort(values, kind="stable")
        rows = np.concatenate([parts[g] for g in order])
        sizes = np.array([len(parts[g]) for g in order])
        ranks = np.repeat(np.arange(len(order), dtype=float), sizes)
        goodness = np.asarray(self.split(y[rows], weight[rows], ranks, False), dtype=float)
        return order, goodness[np.cumsum(sizes)[:-1] - 1]


def boundaries(x: Array) -> NDArray[np.intp]:
    """Return the number of rows before each possible cut of sorted x; missing values are equal."""
    present = ~np.isnan(x)
    differs = (x[1:] != x[:-1]) & (present[1:] | present[:-1])
    return np.flatnonzero(differs) + 1


# ---- from a loss alone ------------------------------------------------------------------------------------

_DEFAULT_CANDIDATES = 64
_FEWEST_CANDIDATES = 9  # a parabola needs three, near the best
_FINER_CANDIDATES = 17
_MOST_REFINEMENTS = 20  # each narrows the search eightfold
_MATRIX_NUMBERS = 2**20  # losses held at once


class LossCriterion(Criterion):
    """Split criterion derived from a loss: the risk of a node is the least total loss of one constant.

    A node's value is the constant c with the least total loss, and its impurity is min_c mean L(y, c). All cuts of a
    column are evaluated at once, from the losses at some constants: the distinct values of y in the node, or their
    quantiles if there are many. For a smooth loss, a parabola through these losses gives the minimum between the
    constants. The value of a node is always refined further.

    Parameters
    ----------
    loss : callable
        ``loss(y, c)``: the loss of predicting c, for an array y and a number c. If it also broadcasts (y of shape
        (n, 1) against c of shape (1, m)), it is called less often.
    candidates : int or array-like, optional
        Maximum number of constants to try in a node (None: 64), or the constants themselves. Pass constants if the best
        one may lie outside the range of y.

    Examples
    --------
    A tree of 90 % quantiles:

    >>> import numpy as np
    >>> import spinney
    >>> def pinball(y, c):
    ...     return np.where(y > c, 0.9 * (y - c), 0.1 * (c - y))
    >>> X = np.repeat([[0.0], [1.0]], 100, axis=0)
    >>> y = np.concatenate([np.arange(100.0), np.arange(100.0) + 50])
    >>> tree = spinney.DecisionTreeRegressor(criterion=spinney.LossCriterion(pinball), max_depth=1)
    >>> bool(np.all(np.abs(tree.fit(X, y).predict([[0.0], [1.0]]) - [89.5, 139.5]) <= 0.5))
    True
    """

    def __init__(self, loss: Callable[[Any, Any], Any], candidates: int | ArrayLike | None = None) -> None:
        if not callable(loss):
            raise TypeError(f"loss must be a function of y and c, not a {type(loss).__name__}.")
        self.loss = loss
        self.candidates = candidates
        self._most = _DEFAULT_CANDIDATES
        self._given: Array | None = None
        if candidates is not None and np.ndim(candidates) == 0:
            self._most = int(candidates)  # type: ignore[arg-type]
            if self._most < _FEWEST_CANDIDATES:
                raise ValueError(f"candidates must be at least {_FEWEST_CANDIDATES}, or an array of constants.")
        elif candidates is not None:
            self._given = np.unique(np.asarray(candidates, dtype=float))
            if self._given.size == 0 or not np.isfinite(self._given).all():
                raise ValueError("candidates must be finite numbers, at least one.")

    def __repr__(self) -> str:
        name = getattr(self.loss, "__name__", type(self.loss).__name__)
        return f"LossCriterion({name})" if self.candidates is None else f"LossCriterion({name}, {self.candidates!r})"

    def init(self, y: Array, sample_weight: Array) -> ArrayLike:
        """Raise an error if y has several columns; see `Criterion.init`."""
        if y.ndim > 1:
            raise ValueError(f"LossCriterion is for one output, and y has {y.shape[1]}. Fit one tree per output.")
        return y

    def row_loss(self, y: Array, value: Array) -> Array:
        """Loss of each row of y, of shape (n,), if its value in `value` is predicted."""
        losses = np.empty(len(y))
        for c in np.unique(value):
            losses[value == c] = self._matrix(y[value == c], np.array([c]))[:, 0]
        return losses

    def evaluate(self, y: Array, weight: Array) -> tuple[float, float]:
        """Best constant and its total loss; see `Criterion.evaluate`."""
        constants, distinct = self._constants(y), np.unique(y)
        value, least = float(constants[0]), np.inf
        for _ in range(_MOST_REFINEMENTS):
            totals = self._totals(y, weight, constants)
            best, before = int(np.argmin(totals)), least
            if totals[best] < least:
                value, least = float(constants[best]), float(totals[best])
            if len(constants) < 3:
                break
            vertex, predicted = _lowest_by_parabola(totals[None], constants)
            actual = self._totals(y, weight, vertex)[0]
            if actual < least:
                value, least = float(vertex[0]), float(actual)
            low, high = constants[max(best - 1, 0)], constants[min(best + 1, len(constants) - 1)]
            near = distinct[(distinct >= low) & (distinct <= high)]
            is_parabola = abs(actual - predicted[0]) <= 1e-9 * abs(actual)
            is_settled = len(near) <= _FINER_CANDIDATES and before - least <= 1e-13 * abs(least)
            if is_parabola or is_settled:
                break
            constants = np.unique([*np.linspace(low, high, _FINER_CANDIDATES), *_thinned(near, _FINER_CANDIDATES)])
        return value, least

    def split(self, y: Array, weight: Array, x: Array, is_category: bool) -> Any:
        """Decrease of the least loss by each cut; see `Criterion.split`."""
        if is_category:
            return self.split_in_order(y, weight, x)
        goodness = np.full(len(x) - 1, np.nan)
        cuts = boundaries(x)
        constants = self._constants(y)
        totals = self._totals(y, weight, constants)
        least = self._minimiser(y, weight, constants, totals)
        whole = least(totals[None])[0]
        before = np.zeros_like(totals)
        step = max(1, _MATRIX_NUMBERS // len(constants))
        for start in range(0, len(y), step):
            stop = min(start + step, len(y))
            sums = before + np.cumsum(weight[start:stop, None] * self._matrix(y[start:stop], constants), axis=0)
            here = cuts[(cuts > start) & (cuts <= stop)]
            left = sums[here - start - 1]
            goodness[here - 1] = whole - least(left) - least(totals - left)
            before = sums[-1]
        return goodness

    def _minimiser(
        self, y: Array, weight: Array, constants: Array, totals: Array
    ) -> Callable[[NDArray[Any]], NDArray[Any]]:
        """Return a function for the least loss of each row of sums: between the constants if the loss is smooth."""
        if len(constants) < 3:
            return _lowest
        vertex, predicted = _lowest_by_parabola(totals[None], constants)
        actual = self._totals(y, weight, vertex)[0]
        gained = totals.min() - predicted[0]
        is_smooth = abs(actual - predicted[0]) <= 0.1 * gained + 1e-12 * abs(actual)
        return (lambda sums: _lowest_by_parabola(sums, constants)[1]) if is_smooth else _lowest

    def _constants(self, y: Array) -> Array:
        if self._given is not None:
            return self._given
        constants = np.unique(y)
        if len(constants) > self._most:
            constants = np.unique(np.quantile(y, np.linspace(0, 1, self._most), method="nearest"))
        if len(constants) < _FEWEST_CANDIDATES:
            constants = np.unique([*constants, *np.linspace(constants[0], constants[-1], _FEWEST_CANDIDATES)])
        return constants

    def _totals(self, y: Array, weight: Array, constants: Array) -> Array:
        step = max(1, _MATRIX_NUMBERS // len(constants))
        total = np.zeros(len(constants))
        for start in range(0, len(y), step):
            rows = slice(start, start + step)
            total += (weight[rows, None] * self._matrix(y[rows], constants)).sum(axis=0)
        return total

    def _matrix(self, y: Array, constants: Array) -> Array:
        """Losses of each row (n) at each constant (m), by broadcasting if the loss can."""
        shape = (len(y), len(constants))
        try:
            losses = np.asarray(self.loss(y[:, None], constants[None, :]), dtype=float)
        except (TypeError, ValueError):  # it takes one constant at a time, or is invalid: the loop finds out
            losses = np.empty(0)
        if losses.shape == shape:
            return losses
        losses = np.empty(shape)
        for j, c in enumerate(constants.tolist()):
            column = np.asarray(self.loss(y, c), dtype=float)
            if column.shape != y.shape:
                raise ValueError(
                    f"The loss of {len(y)} values and one constant has the shape {column.shape}. It must return one "
                    "loss per value."
                )
            losses[:, j] = column
        return losses


def _lowest(sums: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(sums.min(axis=1))


def _lowest_by_parabola(sums: NDArray[Any], constants: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the best constant and the least loss of each row of sums: by a parabola through the best three."""
    best = np.argmin(sums, axis=1)
    middle = np.clip(best, 1, len(constants) - 2)
    rows = np.arange(len(sums))
    c0, c1, c2 = (constants[middle + k] for k in (-1, 0, 1))
    f0, f1, f2 = (sums[rows, middle + k] for k in (-1, 0, 1))
    rise = (f1 - f0) / (c1 - c0)
    bend = ((f2 - f1) / (c2 - c1) - rise) / (c2 - c0)
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.clip((c0 + c1) / 2 - rise / (2 * bend), c0, c2)
        value = f0 + rise * (vertex - c0) + bend * (vertex - c0) * (vertex - c1)
    lowest = sums[rows, best]
    good = (bend > 0) & (value <= lowest)
    return np.where(good, vertex, constants[best]), np.where(good, value, lowest)


def _thinned(values: Array, most: int) -> Array:
    """Return at most `most` of the values, evenly spread by rank."""
    if len(values) <= most:
        return values
    return np.asarray(values[np.linspace(0, len(values) - 1, most).round().astype(int)])


# ---- compiled ---------------------------------------------------------------------------------------------

_DOUBLES = ctypes.POINTER(ctypes.c_double)
_EVALUATE = "double (double *, double *, intptr_t, double *, void *)"
_SPLIT = "void (double *, double *, intptr_t, double *, void *)"
_SIZES = ("ssize_t", "Py_ssize_t", "npy_intp", "ptrdiff_t", "int64_t", "long long", "long")


class CompiledCriterion(Criterion):
    """Split criterion of two compiled functions, which run at native speed on all threads.

    .. code-block:: c

        double evaluate(const double *y, const double *weight, intptr_t n, double *value, void *user_data);
        void split(const double *y, const double *weight, intptr_t n, double *goodness, void *user_data);

    `evaluate` returns the risk of n rows and writes the value that a node of these rows predicts. `split` gets the rows
    sorted by a column and writes n - 1 numbers: how good the cut after each row is. Risk, value and goodness are
    defined as in `Criterion`; categories are sorted by the values that `evaluate` writes (the first one, if there
    are several). The functions are called from several threads at once, without Python's global interpreter lock.

    Parameters
    ----------
    evaluate, split : scipy.LowLevelCallable, ctypes function with argtypes and restype, or numba cfunc
        The functions. The attributes `EVALUATE` and `SPLIT` are their types for ctypes.
    user_data : ndarray, ctypes object or int, optional
        Data whose address the functions get as their last argument. A LowLevelCallable may have its own.
    n_values : int, default=1
        Number of values that `evaluate` writes.
    n_columns : int, default=1
        Number of columns of y. With more than one, y points to n rows of this many numbers.

    See Also
    --------
    Criterion : Criteria written in Python.

    Examples
    --------
    The functions of a shared library are passed by name, as in ``CompiledCriterion.SPLIT(("split", library))``. The two
    functions below are slow Python and only show the arguments: they cut where adjacent values differ most.

    >>> import spinney
    >>> @spinney.CompiledCriterion.EVALUATE
    ... def evaluate(y, weight, n, value, user_data):
    ...     value[0] = y[0]
    ...     return sum(abs(y[i] - y[0]) for i in range(n))
    >>> @spinney.CompiledCriterion.SPLIT
    ... def split(y, weight, n, goodness, user_data):
    ...     for i in range(n - 1):
    ...         goodness[i] = abs(y[i + 1] - y[i])
    >>> criterion = spinney.CompiledCriterion(evaluate, split)
    >>> tree = spinney.DecisionTreeRegressor(criterion=criterion, max_depth=1)
    >>> tree.fit([[1.0], [2.0], [3.0]], [5.0, 5.5, 9.0]).predict([[1.0], [3.0]])
    array([5., 9.])
    """

    EVALUATE = ctypes.CFUNCTYPE(ctypes.c_double, _DOUBLES, _DOUBLES, ctypes.c_ssize_t, _DOUBLES, ctypes.c_void_p)
    SPLIT = ctypes.CFUNCTYPE(None, _DOUBLES, _DOUBLES, ctypes.c_ssize_t, _DOUBLES, ctypes.c_void_p)

    def __init__(
        self, evaluate: Any, split: Any, *, user_data: Any = None, n_values: int = 1, n_columns: int = 1
    ) -> None:
        if n_values < 1 or n_columns < 1:
            raise ValueError("n_values and n_columns must be at least 1.")
        self.n_values = int(n_values)
        self.n_columns = int(n_columns)
        self._alive = (evaluate, split, user_data)
        self._evaluate = _addresses(evaluate, "evaluate", _EVALUATE, user_data)
        self._split = _addresses(split, "split", _SPLIT, user_data)

    def init(self, y: Array, sample_weight: Array) -> ArrayLike:
        """Check that y has as many columns as the functions expect; see `Criterion.init`."""
        n_columns = 1 if y.ndim == 1 else y.shape[1]
        if n_columns != self.n_columns:
            raise ValueError(f"y has {n_columns} column(s), and the compiled criterion has n_columns={self.n_columns}.")
        return y

    def evaluate(self, y: Array, weight: Array) -> tuple[Array, float]:
        """Call the compiled function; see `Criterion.evaluate`."""
        value = np.full(self.n_values, np.nan)
        function, data = self._evaluate
        risk = self.EVALUATE(function)(_pointer(y), _pointer(weight), len(weight), _pointer(value), data)
        return value, risk

    def split(self, y: Array, weight: Array, x: Array, is_category: bool) -> Any:
        """Call the compiled function; see `Criterion.split`."""
        if is_category:
            return self.split_in_order(y, weight, x)
        goodness = np.full(len(x), np.nan)
        function, data = self._split
        self.SPLIT(function)(_pointer(y), _pointer(weight), len(weight), _pointer(goodness), data)
        return goodness[:-1]

    def _for_engine(self, n_columns: int) -> _engine.UserCriterion:
        return _engine.compiled_criterion(*self._evaluate, *self._split, n_columns, self.n_values)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledCriterion:
        """Return the same object: it never changes, and addresses cannot be copied."""
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "A CompiledCriterion cannot be pickled: addresses mean nothing in another process. Save the model with its "
            "save method, which leaves the criterion out."
        )


def _pointer(array: Array) -> Any:
    return np.ascontiguousarray(array, dtype=np.float64).ctypes.data_as(_DOUBLES)


def _addresses(function: Any, role: str, expected: str, user_data: Any) -> tuple[int, int]:
    """Return the addresses of a function with the expected signature and of its data."""
    from scipy import LowLevelCallable

    if hasattr(function, "ctypes") and hasattr(function, "address"):  # numba
        function = function.ctypes
    if not isinstance(function, LowLevelCallable):
        try:
            function = LowLevelCallable(function)
        except (TypeError, ValueError):
            raise TypeError(
                f"{role} must be a scipy.LowLevelCallable, a ctypes function with argtypes and restype, or a numba "
                f"cfunc, not a {type(function).__name__}. Its signature is '{expected}'."
            ) from None
    signature = function.signature
    if _normalised(signature) != _normalised(expected):
        raise ValueError(f"{role} has the signature '{signature}'. It must be '{expected}'.")
    capsule = tuple.__getitem__(function, 0)
    address, context = _capsule(capsule, signature)
    return address, context or _address_of_data(user_data)


def _normalised(signature: str) -> str:
    """Return a signature without spaces and const; every name of the size type is intptr_t."""
    text = re.sub(r"\bconst\b", " ", signature)
    for name in _SIZES:
        text = re.sub(rf"(?<=[,(])\s*{name}\s*(?=[,)])", "intptr_t", text)
    return re.sub(r"\s+", "", text)


def _capsule(capsule: Any, signature: str) -> tuple[int, int]:
    api = ctypes.pythonapi
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    get_context = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", api))
    return get_pointer(capsule, signature.encode("ascii")), get_context(capsule) or 0


def _address_of_data(user_data: Any) -> int:
    if user_data is None:
        return 0
    if isinstance(user_data, np.ndarray):
        return int(user_data.ctypes.data)
    if isinstance(user_data, int):
        return user_data
    try:
        if isinstance(user_data, (str, bytes)):
            raise TypeError
        if isinstance(user_data, (ctypes.Array, ctypes.Structure)):
            return ctypes.addressof(user_data)
        return ctypes.cast(user_data, ctypes.c_void_p).value or 0
    except (TypeError, ctypes.ArgumentError):
        raise TypeError(
            f"user_data must be an array, a ctypes object or an address, not a {type(user_data).__name__}."
        ) from None
