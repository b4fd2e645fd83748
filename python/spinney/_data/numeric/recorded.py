"""A formula's value and derivatives as a program of the engine, recorded by computing the formula once with names."""

from __future__ import annotations

from collections.abc import Callable
from math import frexp
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.numeric.jets import Jet

Floats = NDArray[np.float64]


class CannotRecordError(AttributeError):
    """A formula asks for what the engine has no operation for, or for more than one row."""


class _Tape:
    """Operations in the order of a formula, each of the same numbers once."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, tuple[int, ...]]] = [("target", ()), ("score", ())]
        self.constants: dict[int, float] = {}  # by the number of their step
        self._known: dict[tuple[Any, ...], int] = {}

    def add(self, name: str, *of: int) -> Recorded:
        if name in ("add", "multiply"):  # the bits of which do not depend on the order
            of = tuple(sorted(of))
        return Recorded(self, self._step((name, *of), name, of))

    def number_of(self, x: object) -> int:
        """Return the step of a number of this tape, or of a constant."""
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
    """A number of each row that is yet to be computed."""

    def __init__(self, tape: _Tape, at: int) -> None:
        self.tape, self.at = tape, at

    def __getattr__(self, name: str) -> Any:
        """Refuse what arrays have beside arithmetic."""
        raise CannotRecordError(name)

    def __bool__(self) -> bool:
        """Refuse to choose one way for all rows."""
        raise CannotRecordError("a condition")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> Any:
        """Record a function of NumPy or SciPy."""
        if any(isinstance(x, Jet) for x in inputs):
            return NotImplemented
        if method != "__call__" or options:
            raise CannotRecordError(ufunc.__name__)
        return self._record(ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Record a choice."""
        if any(isinstance(x, Jet) for x in args):
            return NotImplemented
        if function is np.where and len(args) == 3 and not kwargs:
            return self._record("where", *args)
        if function is np.clip and len(args) == 3 and not kwargs:
            low = args[0] if args[1] is None else self._record("maximum", args[0], args[1])
            return low if args[2] is None else self._record("minimum", low, args[2])
        raise CannotRecordError(function.__name__)

    def _record(self, name: str, *inputs: object) -> Any:
        if name in _MADE_OF:
            return _MADE_OF[name](*inputs)
        if name not in _OPERATIONS:
            raise CannotRecordError(name)
        return self.tape.add(name, *(self.tape.number_of(x) for x in inputs))


_OPERATIONS = frozenset(["add", "subtract", "multiply", "negative", "absolute", "sqrt", "exp", "log", "log1p", "expm1"])
_OPERATIONS |= {"sign", "maximum", "minimum", "less", "less_equal", "equal", "isfinite", "where"}


def _ratio(a: Any, b: Any) -> Any:
    if isinstance(b, float | int) and b != 0 and abs(frexp(b)[0]) == 0.5:  # a power of 2: the same bits, sooner
        return a * (1 / b)
    tape = a.tape if isinstance(a, Recorded) else b.tape
    return tape.add("divide", tape.number_of(a), tape.number_of(b))


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, Recorded) and not isinstance(b, Recorded) and float(b) in (1, 2, 3, 4, 0.5):
        square = a * a
        return {1: a, 2: square, 3: square * a, 4: square * square, 0.5: np.sqrt(a)}[float(b)]
    tape = a.tape if isinstance(a, Recorded) else b.tape
    return tape.add("power", tape.number_of(a), tape.number_of(b))


def _log_add_exp(a: Any, b: Any) -> Any:
    return np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b)))


def _logistic(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x > 0, 1.0, small) / (1.0 + small)


def _tanh(x: Any) -> Any:
    less = np.expm1(-2.0 * np.abs(x))
    return np.sign(x) * (-less / (2.0 + less))


def _sinh(x: Any) -> Any:
    less = np.expm1(np.abs(x))
    return np.sign(x) * 0.5 * (less + less / (less + 1.0))


# functions that are not the engine's own, and other names of those that are
_MADE_OF: dict[str, Callable[..., Any]] = {
    "divide": _ratio,
    "power": _power,
    "float_power": _power,
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
    "logaddexp": _log_add_exp,
    "expit": _logistic,
    "log_expit": lambda x: -_log_add_exp(0.0, -x),
    "tanh": _tanh,
    "sinh": _sinh,
    "cosh": lambda x: 0.5 * (np.exp(x) + np.exp(-x)),
}


def recorded(formula: Callable[[Any, Any], Any]) -> _engine.Formula | None:
    """Return a program of a formula's value, first and second derivative; None if it cannot be recorded.

    Parameters
    ----------
    formula : callable
        Of targets and scores, row by row; derivatives are by the scores.

    Returns
    -------
    Formula or None
    """
    tape = _Tape()
    try:
        found = formula(Recorded(tape, 0), Jet(Recorded(tape, 1), 1.0, 0.0))
        parts = found.parts if isinstance(found, Jet) else (found, 0.0, 0.0)
        return _program(tape, [tape.number_of(part) for part in parts])
    except Exception:  # whatever it asks of arrays: as NumPy computes it, or says what is wrong
        return None


def _program(tape: _Tape, outputs: list[int]) -> _engine.Formula:
    """Return the steps that the outputs need, in few registers: one that is read for the last time is taken again."""
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
