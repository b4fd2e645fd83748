"""Derivatives of a formula, found by computing it with numbers that carry them along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Slopes = tuple[Any, Any, Any]  # value, first and second derivative of a function of one number


def derivatives(formula: Callable[[Any], Any], at: Floats) -> tuple[Floats, Floats, Floats]:
    """Value, first and second derivative of a formula at each of some numbers.

    Parameters
    ----------
    formula : callable
        Takes an array and returns one of the same shape, element by element: arithmetic, comparisons, ``np.where`` and
        the usual functions of NumPy and `scipy.special`.
    at : ndarray
        The numbers.

    Returns
    -------
    tuple of ndarray
        Three arrays like `at`.
    """
    found = formula(Jet(at, 1.0, 0.0))
    if not isinstance(found, Jet):  # it does not depend on the numbers
        return (
            np.broadcast_to(np.asarray(found, dtype=np.float64), at.shape).copy(),
            np.zeros_like(at),
            np.zeros_like(at),
        )
    value, first, second = (np.broadcast_to(part, at.shape) for part in (found.value, found.first, found.second))
    return np.array(value), np.array(first), np.array(second)


class Jet(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of values, each with its first and second derivative."""

    __array_priority__ = 1000

    def __init__(self, value: Any, first: Any, second: Any) -> None:
        self.value, self.first, self.second = value, first, second

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values."""
        return np.shape(self.value)

    def __getattr__(self, name: str) -> Any:
        """Say what is missing: methods of arrays are."""
        raise AttributeError(
            f"A loss is a formula of one row: no sums or means, nor other methods of arrays such as f.{name}."
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a function of NumPy or SciPy."""
        if method != "__call__" or options:
            return NotImplemented
        if ufunc.__name__ in _WITHOUT_SLOPE:
            return ufunc(*(value_of(x) for x in inputs))
        if len(inputs) == 1 and ufunc.__name__ in _OF_ONE:
            return inputs[0]._through(_OF_ONE[ufunc.__name__](inputs[0].value))
        if len(inputs) == 2 and ufunc.__name__ in _OF_TWO:
            return _OF_TWO[ufunc.__name__](*(_jet(x) for x in inputs))
        raise TypeError(
            f"No derivative of {ufunc.__name__} is known. Write the formula with others, or give the loss as an "
            "object with loss(y, f), gradient(y, f) and hessian(y, f)."
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Choose between formulas, or cut them off."""
        if function is np.where and len(args) == 3:
            is_so, yes, no = value_of(args[0]), _jet(args[1]), _jet(args[2])
            return Jet(*(np.where(is_so, a, b) for a, b in zip(yes.parts, no.parts, strict=True)))
        if function is np.clip and len(args) == 3 and not kwargs:
            low = args[0] if args[1] is None else np.maximum(args[0], args[1])
            return low if args[2] is None else np.minimum(low, args[2])
        raise TypeError(
            f"No derivative of np.{function.__name__} is known. A loss is computed row by row: no sums or means."
        )

    @property
    def parts(self) -> Slopes:
        """Value, first and second derivative."""
        return self.value, self.first, self.second

    def _through(self, outer: Slopes) -> Jet:
        """Return a function of this, given its value and slopes here."""
        value, slope, curve = outer
        return Jet(
            value,
            _product(slope, self.first),
            _sum(_product(_product(curve, self.first), self.first), _product(slope, self.second)),
        )


def value_of(x: Any) -> Any:
    """Return the values alone."""
    return x.value if isinstance(x, Jet) else x


def _jet(x: Any) -> Jet:
    return x if isinstance(x, Jet) else Jet(x, 0.0, 0.0)


# Derivatives that are the same number for all rows, such as those of a constant, are kept as one.


def _is(x: Any, number: float) -> bool:
    return isinstance(x, float) and x == number


def _product(a: Any, b: Any) -> Any:
    if _is(a, 0.0) or _is(b, 0.0):
        return 0.0
    return b if _is(a, 1.0) else a if _is(b, 1.0) else a * b


def _sum(a: Any, b: Any) -> Any:
    return b if _is(a, 0.0) else a if _is(b, 0.0) else a + b


def _times(a: Jet, b: Jet) -> Jet:
    ends = _product(a.second, b.value), _product(a.value, b.second)
    second = _sum(_sum(ends[0], _product(_product(2.0, a.first), b.first)), ends[1])
    return Jet(a.value * b.value, _sum(_product(a.first, b.value), _product(a.value, b.first)), second)


def _over(a: Jet, b: Jet) -> Jet:
    return _times(a, b._through(_OF_ONE["reciprocal"](b.value)))


def _power(a: Jet, b: Jet) -> Jet:
    is_fixed = _is(b.first, 0.0) and _is(b.second, 0.0)
    if is_fixed or (np.all(b.first == 0) and np.all(b.second == 0)):
        p = b.value
        if np.ndim(p) == 0 and p in _BY_PRODUCTS:
            return a._through(_BY_PRODUCTS[p](a.value))
        slopes = (np.power(a.value, p), p * np.power(a.value, p - 1.0), p * (p - 1.0) * np.power(a.value, p - 2.0))
        value, slope, curve = (np.where(np.isfinite(s), s, 0.0) for s in slopes)
        return a._through((value, slope, curve))
    exponent = _times(b, a._through(_OF_ONE["log"](a.value)))
    return exponent._through(_OF_ONE["exp"](exponent.value))


def _larger(a: Jet, b: Jet) -> Jet:
    return Jet(*(np.where(a.value >= b.value, x, y) for x, y in zip(a.parts, b.parts, strict=True)))


def _smaller(a: Jet, b: Jet) -> Jet:
    return Jet(*(np.where(a.value <= b.value, x, y) for x, y in zip(a.parts, b.parts, strict=True)))


def _log_add_exp(a: Jet, b: Jet) -> Jet:
    share = _logistic(a.value - b.value)
    first = share * a.first + (1 - share) * b.first
    gap = a.first - b.first
    second = share * a.second + (1 - share) * b.second + share * (1 - share) * gap * gap
    return Jet(np.logaddexp(a.value, b.value), first, second)


def _logistic(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x > 0, 1.0, small) / (1.0 + small)


def _of_logistic(x: Any) -> Slopes:
    p = _logistic(x)
    return p, p * (1 - p), p * (1 - p) * (1 - 2 * p)


def _of_log_logistic(x: Any) -> Slopes:
    p = _logistic(x)
    return -np.logaddexp(0, -x), 1 - p, -p * (1 - p)


def _of_tanh(x: Any) -> Slopes:
    t = np.tanh(x)
    return t, 1 - t * t, -2 * t * (1 - t * t)


_OF_ONE: dict[str, Callable[[Any], Slopes]] = {
    "exp": lambda x: (np.exp(x),) * 3,
    "expm1": lambda x: (np.expm1(x), np.exp(x), np.exp(x)),
    "log": lambda x: (np.log(x), 1 / x, -1 / (x * x)),
    "log1p": lambda x: (np.log1p(x), 1 / (1 + x), -1 / ((1 + x) * (1 + x))),
    "sqrt": lambda x: (np.sqrt(x), 0.5 / np.sqrt(x), -0.25 / (x * np.sqrt(x))),
    "square": lambda x: (x * x, 2 * x, 2.0),
    "reciprocal": lambda x: (1 / x, -1 / (x * x), 2 / (x * x * x)),
    "negative": lambda x: (-x, -1.0, 0.0),
    "positive": lambda x: (x, 1.0, 0.0),
    "absolute": lambda x: (np.abs(x), np.sign(x), 0.0),
    "fabs": lambda x: (np.abs(x), np.sign(x), 0.0),
    "tanh": _of_tanh,
    "sinh": lambda x: (np.sinh(x), np.cosh(x), np.sinh(x)),
    "cosh": lambda x: (np.cosh(x), np.sinh(x), np.cosh(x)),
    "sin": lambda x: (np.sin(x), np.cos(x), -np.sin(x)),
    "cos": lambda x: (np.cos(x), -np.sin(x), -np.cos(x)),
    "arctan": lambda x: (np.arctan(x), 1 / (1 + x * x), -2 * x / (1 + x * x) ** 2),
    "expit": _of_logistic,
    "log_expit": _of_log_logistic,
}
# powers that are products: quicker, and with the same bits on every processor
_BY_PRODUCTS: dict[float, Callable[[Any], Slopes]] = {
    1: lambda x: (x, 1.0, 0.0),
    2: lambda x: (x * x, 2 * x, 2.0),
    3: lambda x: (x * x * x, 3 * x * x, 6 * x),
    4: lambda x: ((x * x) * (x * x), 4 * x * x * x, 12 * x * x),
}
_OF_TWO: dict[str, Callable[[Jet, Jet], Jet]] = {
    "add": lambda a, b: Jet(a.value + b.value, _sum(a.first, b.first), _sum(a.second, b.second)),
    "subtract": lambda a, b: Jet(a.value - b.value, a.first - b.first, a.second - b.second),
    "multiply": _times,
    "divide": _over,
    "power": _power,
    "float_power": _power,
    "maximum": _larger,
    "fmax": _larger,
    "minimum": _smaller,
    "fmin": _smaller,
    "logaddexp": _log_add_exp,
}
_WITHOUT_SLOPE = frozenset(
    [
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "isnan",
        "isfinite",
        "isinf",
        "sign",
        "floor",
        "ceil",
        "rint",
    ]
)
