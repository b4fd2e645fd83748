"""Parameters of estimators as dataclass fields: name, type, allowed values and default in one line.

An estimator that is decorated with `estimator` inherits the parameters of its base classes, so that what several
estimators share is written once. Its `__init__`, its signature and scikit-learn's `_parameter_constraints` follow. The
signature lists what may be passed by position, then the class's own parameters, then those of its bases.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any, TypeVar, dataclass_transform

from sklearn.utils._param_validation import Interval, StrOptions

from spinney._estimator.estimator import store_signature

Estimator = TypeVar("Estimator")
_ALLOWED = "allowed"

UNSEEN = StrOptions({"missing", "error", "other"})
N_JOBS = Interval(Integral, -1024, 1024, closed="both")


def parameter(*allowed: object, default: object, kw_only: bool = True) -> Any:
    """Declare a parameter of an estimator.

    Parameters
    ----------
    *allowed : constraints of scikit-learn
        What the parameter may be; empty: what a base class says of it.
    default : object
        Its default.
    kw_only : bool, default=True
        Whether it must be passed by name.
    """
    return field(default=default, kw_only=kw_only, metadata={_ALLOWED: list(allowed)} if allowed else {})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter, field))
def estimator(kind: type[Estimator]) -> type[Estimator]:
    """Give a class the `__init__` that its parameters, declared by `parameter`, and those of its bases ask for."""
    _make(kind)
    return kind


def _make(kind: Any) -> None:
    kind.__signature__ = inspect.Signature()  # dataclasses look at the docstring, which looks at the signature
    dataclass(eq=False, repr=False, kw_only=True)(kind)
    known: dict[str, list[Any]] = {}
    for base in reversed(kind.__mro__):
        known |= base.__dict__.get("_parameter_constraints", {})
    known |= allowed_values(kind)
    kind._parameter_constraints = known
    kind.__init__.__signature__ = _own_first(kind)
    store_signature(kind)


def allowed_values(kind: type[Any]) -> dict[str, list[Any]]:
    """Return scikit-learn's constraints of the parameters that a dataclass declares by `parameter`."""
    return {entry.name: entry.metadata[_ALLOWED] for entry in fields(kind) if _ALLOWED in entry.metadata}


def _own_first(kind: type[Any]) -> inspect.Signature:
    """Return the signature of `__init__` with the class's own parameters before those of its bases."""
    signature = inspect.signature(kind.__init__)
    declared = [name for base in kind.__mro__ for name in inspect.get_annotations(base)]
    by_name = [entry for entry in signature.parameters.values() if entry.kind is entry.KEYWORD_ONLY]
    rest = [entry for entry in signature.parameters.values() if entry.kind is not entry.KEYWORD_ONLY]
    return signature.replace(parameters=[*rest, *sorted(by_name, key=lambda entry: declared.index(entry.name))])
