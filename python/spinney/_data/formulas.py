"""Automatic differentiation of user-defined losses, and their translation to programs of the engine.

A formula that is evaluated once with symbols instead of numbers becomes a program for its value and derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp
from numbers import Real
from typing import Any

import numpy as np

import spinney._engine as _engine
from spinney._data.types import Floats

Derivatives = tuple[Any, Any, Any]  # value, first and second derivative of a function of one number


def derivatives(formula: Callable[[Any], Any], at: Floats) -> tuple[Floats, Floats, Floats]:
    """Return value, first and second derivative of a formula at each of some numbers.

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
    parts = _jet(formula(Jet(at, 1.0, 0.0))).parts  # a result without derivatives does not depend on the numbers
    value, first, second = (np.array(np.broadcast_to(part, at.shape), dtype=np.float64) for part in parts)
    return value, first, second


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
        """Raise AttributeError: methods of arrays are not supported."""
        raise AttributeError(
            f"A loss is a formula for each row: no sums or means, nor other methods of arrays such as f.{name}."
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a function of NumPy or SciPy."""
        if method != "__call__" or options:
            return NotImplemented
        if ufunc.__name__ in _NOT_DIFFERENTIATED:
            return ufunc(*(value_of(x) for x in inputs))
        if len(inputs) == 1 and ufunc.__name__ in _OF_ONE:
            return inputs[0]._through(_OF_ONE[ufunc.__name__](inputs[0].value))
        if len(inputs) == 2 and ufunc.__name__ in _OF_TWO:
            return _OF_TWO[ufunc.__name__](*(_jet(x) for x in inputs))
        raise TypeError(
            f"No derivative of {ufunc.__name__} is known. Use other functions, or pass the loss as an object with "
            "loss(y, f), gradient(y, f) and hessian(y, f)."
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Apply `np.where` or `np.clip`."""
        if function is np.where and len(args) == 3:
            return _choose(value_of(args[0]), _jet(args[1]), _jet(args[2]))
        if function is np.clip and len(args) == 3 and not kwargs:
            low = args[0] if args[1] is None else np.maximum(args[0], args[1])
            return low if args[2] is None else np.minimum(low, args[2])
        raise TypeError(
            f"No derivative of np.{function.__name__} is known. A loss is computed row by row: no sums or means."
        )

    @property
    def parts(self) -> Derivatives:
        """Value, first and second derivative."""
        return self.value, self.first, self.second

    def _through(self, outer: Derivatives) -> Jet:
        """Apply the chain rule: return a function of this, given its value and derivatives at this value."""
        value, first, second = outer
        return Jet(
            value,
            _product(first, self.first),
            _sum(_product(_product(second, self.first), self.first), _product(first, self.second)),
        )


def value_of(x: Any) -> Any:
    """Return the values without derivatives."""
    return x.value if isinstance(x, Jet) else x


def _jet(x: Any) -> Jet:
    return x if isinstance(x, Jet) else Jet(x, 0.0, 0.0)


# Derivatives that are the same for all rows, such as those of a constant, are single numbers.


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
        parts = (np.power(a.value, p), p * np.power(a.value, p - 1.0), p * (p - 1.0) * np.power(a.value, p - 2.0))
        value, first, second = (np.where(np.isfinite(part), part, 0.0) for part in parts)
        return a._through((value, first, second))
    exponent = _times(b, a._through(_OF_ONE["log"](a.value)))
    return exponent._through(_OF_ONE["exp"](exponent.value))


def _choose(condition: Any, a: Jet, b: Jet) -> Jet:
    return Jet(*(np.where(condition, x, y) for x, y in zip(a.parts, b.parts, strict=True)))


def _larger(a: Jet, b: Jet) -> Jet:
    return _choose(a.value >= b.value, a, b)


def _smaller(a: Jet, b: Jet) -> Jet:
    return _choose(a.value <= b.value, a, b)


def _log_add_exp(a: Jet, b: Jet) -> Jet:
    p = _logistic(a.value - b.value)
    first = p * a.first + (1 - p) * b.first
    gap = a.first - b.first
    second = p * a.second + (1 - p) * b.second + p * (1 - p) * gap * gap
    return Jet(np.logaddexp(a.value, b.value), first, second)


def _logistic(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x > 0, 1.0, small) / (1.0 + small)


def _of_logistic(x: Any) -> Derivatives:
    p = _logistic(x)
    return p, p * (1 - p), p * (1 - p) * (1 - 2 * p)


def _of_log_logistic(x: Any) -> Derivatives:
    p = _logistic(x)
    return -np.logaddexp(0, -x), 1 - p, -p * (1 - p)


def _of_tanh(x: Any) -> Derivatives:
    t = np.tanh(x)
    return t, 1 - t * t, -2 * t * (1 - t * t)


_OF_ONE: dict[str, Callable[[Any], Derivatives]] = {
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
# powers that are products: faster, and bit-identical on every processor
_BY_PRODUCTS: dict[float, Callable[[Any], Derivatives]] = {
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
_NOT_DIFFERENTIATED = frozenset(["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
_NOT_DIFFERENTIATED |= {"isnan", "isfinite", "isinf", "sign", "floor", "ceil", "rint"}


class CannotRecordError(AttributeError):
    """A formula uses an operation that the engine does not have, or more than one row."""


class _Tape:
    """Operations in the order of a formula; equal operations are recorded once."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, tuple[int, ...]]] = [("target", ()), ("score", ())]
        self.constants: dict[int, float] = {}  # by number of the step
        self._known: dict[tuple[Any, ...], int] = {}

    def add(self, name: str, *of: int) -> Recorded:
        if name in ("add", "multiply"):  # commutative, also in the last bit
            of = tuple(sorted(of))
        return Recorded(self, self._step((name, *of), name, of))

    def number_of(self, x: object) -> int:
        """Return the step of a recorded number, or of a constant."""
        if isinstance(x, Recorded) and x.tape is self:
            return x.at
        if not isinstance(x, Real | np.bool_) and not (isinstance(x, np.ndarray) and x.ndim == 0):
            raise CannotRecordError(f"{type(x).__name__} in a formula")
        value = float(x)
        at = self._step(("constant", value.hex()), "constant", ())
        self.constants[at] = value
        return at

    def _step(self, key: tuple[Any, ...], name: str, of: tuple[int, ...]) -> int:
        if key not in self._known:
            self._known[key] = len(self.steps)
            self.steps.append((name, of))
        return self._known[key]


class Recorded(np.lib.mixins.NDArrayOperatorsMixin):
    """A symbol for one number per row."""

    def __init__(self, tape: _Tape, at: int) -> None:
        self.tape, self.at = tape, at

    def __getattr__(self, name: str) -> Any:
        """Refuse attributes of arrays."""
        raise CannotRecordError(name)

    def __bool__(self) -> bool:
        """Refuse a condition that is the same for all rows."""
        raise CannotRecordError("a condition")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> Any:
        """Record a function of NumPy or SciPy."""
        if any(isinstance(x, Jet) for x in inputs):
            return NotImplemented
        if method != "__call__" or options:
            raise CannotRecordError(ufunc.__name__)
        return self._record(ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Record `np.where` or `np.clip`."""
        if any(isinstance(x, Jet) for x in args):
            return NotImplemented
        if function is np.where and len(args) == 3 and not kwargs:
            return self._record("where", *args)
        if function is np.clip and len(args) == 3 and not kwargs:
            low = args[0] if args[1] is None else self._record("maximum", args[0], args[1])
            return low if args[2] is None else self._record("minimum", low, args[2])
        raise CannotRecordError(function.__name__)

    def _record(self, name: str, *inputs: object) -> Any:
        if name in _COMPOSED:
            return _COMPOSED[name](*inputs)
        if name not in _OPERATIONS:
            raise CannotRecordError(name)
        return self.tape.add(name, *(self.tape.number_of(x) for x in inputs))


_OPERATIONS = frozenset(["add", "subtract", "multiply", "negative", "absolute", "sqrt", "exp", "log", "log1p", "expm1"])
_OPERATIONS |= {"sign", "maximum", "minimum", "less", "less_equal", "equal", "isfinite", "where"}


def _ratio(a: Any, b: Any) -> Any:
    if isinstance(b, float | int) and b != 0 and abs(frexp(b)[0]) == 0.5:  # a power of 2: bit-identical and faster
        return a * (1 / b)
    tape = a.tape if isinstance(a, Recorded) else b.tape
    return tape.add("divide", tape.number_of(a), tape.number_of(b))


def _engine_power(a: Any, b: Any) -> Any:
    if isinstance(a, Recorded) and not isinstance(b, Recorded) and float(b) in (1, 2, 3, 4, 0.5):
        square = a * a
        return {1: a, 2: square, 3: square * a, 4: square * square, 0.5: np.sqrt(a)}[float(b)]
    tape = a.tape if isinstance(a, Recorded) else b.tape
    return tape.add("power", tape.number_of(a), tape.number_of(b))


def _engine_log_add_exp(a: Any, b: Any) -> Any:
    return np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b)))


def _tanh(x: Any) -> Any:
    less = np.expm1(-2.0 * np.abs(x))
    return np.sign(x) * (-less / (2.0 + less))


def _sinh(x: Any) -> Any:
    less = np.expm1(np.abs(x))
    return np.sign(x) * 0.5 * (less + less / (less + 1.0))


# functions composed of the engine's operations, and other names of these
_COMPOSED: dict[str, Callable[..., Any]] = {
    "divide": _ratio,
    "power": _engine_power,
    "float_power": _engine_power,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "positive": lambda x: x,
    "fabs": np.abs,
    "fmax": np.maximum,
    "fmin": np.minimum,
    "greater": lambda a, b: np.less(b, a),
    "greater_equal": lambda a, b: np.less_equal(b, a),
    "not_equal": lambda a, b: 1.0 - np.equal(a, b),
    "logical_and": np.minimum,
    "bitwise_and": np.minimum,
    "logical_or": np.maximum,
    "bitwise_or": np.maximum,
    "logical_not": lambda x: 1.0 - x,
    "invert": lambda x: 1.0 - x,
    "logaddexp": _engine_log_add_exp,
    "expit": _logistic,
    "log_expit": lambda x: -_engine_log_add_exp(0.0, -x),
    "tanh": _tanh,
    "sinh": _sinh,
    "cosh": lambda x: 0.5 * (np.exp(x) + np.exp(-x)),
}


def recorded(formula: Callable[[Any, Any], Any]) -> _engine.Formula | None:
    """Return a program of a formula's value, first and second derivative; None if it cannot be recorded.

    Parameters
    ----------
    formula : callable
        Function of targets and scores, row by row; derivatives are with respect to the scores.

    Returns
    -------
    Formula or None
    """
    tape = _Tape()
    try:
        jet = _jet(formula(Recorded(tape, 0), Jet(Recorded(tape, 1), 1.0, 0.0)))
        return _program(tape, [tape.number_of(part) for part in jet.parts])
    except Exception:  # of any kind: then NumPy evaluates the formula, or raises a clear error
        return None


def _program(tape: _Tape, outputs: list[int]) -> _engine.Formula:
    """Return the steps that the outputs need; registers are reused after their last use."""
    last = {at: len(tape.steps) for at in outputs}
    for at in range(len(tape.steps) - 1, -1, -1):
        if at in last:
            for k in tape.steps[at][1]:
                last.setdefault(k, at)
    constants = [at for at in tape.constants if at in last]
    register = {0: 0, 1: 1} | {at: 2 + k for k, at in enumerate(constants)}
    free: list[int] = []
    n_registers = 2 + len(constants)
    steps = []
    for at, (name, of) in enumerate(tape.steps):
        if at < 2 or at in tape.constants or at not in last:
            continue
        read = [register[k] for k in of]
        free += sorted({register[k] for k in of if last[k] == at and k > 1 and k not in tape.constants}, reverse=True)
        if not free:
            free.append(n_registers)
            n_registers += 1
        register[at] = free.pop()
        steps.append((name, register[at], read))
    values = [tape.constants[at] for at in constants]
    return _engine.Formula(steps, values, n_registers, [register[at] for at in outputs])
