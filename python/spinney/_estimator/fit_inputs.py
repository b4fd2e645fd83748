"""The arguments of a fit beside the parameters of the estimator: rows to learn from, and validation sets."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Self

from spinney._estimator.streams import taken_apart

UNNAMED = "validation"  # name of a validation set that has none


@dataclass(frozen=True)
class RowInputs:
    """Rows as the caller gives them.

    Attributes
    ----------
    X, y, sample_weight, offset, groups, time : as of `fit`
        Of a stream, perhaps names of its columns.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None
    groups: Any = None
    time: Any = None

    def spooled(self, categorical_features: object, suffix: str = "") -> Self:
        """Return a stream as a table in files, and the columns that are named as arrays; any other table as it is."""
        beside = {name + suffix: getattr(self, name) for name in ("y", "sample_weight", "offset", "groups", "time")}
        X, (y, weight, offset, groups, time) = taken_apart(self.X, beside, categorical_features, "X" + suffix)
        return replace(self, X=X, y=y, sample_weight=weight, offset=offset, groups=groups, time=time)


@dataclass(frozen=True)
class ValidationSet(RowInputs):
    """Rows that are not learned from, with the name that they have in the history."""

    name: str = UNNAMED


@dataclass(frozen=True)
class FitInputs(RowInputs):
    """All arguments of a fit.

    Attributes
    ----------
    validation : tuple of ValidationSet
        Sets to evaluate after each round; the first stops the fit.
    checkpoint : str, path or None
    """

    validation: tuple[ValidationSet, ...] = ()
    checkpoint: str | os.PathLike[str] | None = None

    @property
    def first_validation(self) -> ValidationSet | None:
        """The set that stops the fit, if there is one."""
        return self.validation[0] if self.validation else None


def validation_sets(
    X_val: Any, y_val: Any, sample_weight_val: Any = None, offset_val: Any = None, groups_val: Any = None
) -> tuple[ValidationSet, ...]:
    """Return the validation sets of a fit: of dicts by name if `y_val` is one, else one set, or none."""
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val, "offset_val": offset_val}
    given["groups_val"] = groups_val
    if not isinstance(y_val, dict):
        check_together(given)
        return () if X_val is None else (ValidationSet(X_val, y_val, sample_weight_val, offset_val, groups_val),)
    for name, part in given.items():
        if part is None and name not in ("X_val", "y_val"):
            continue
        if not isinstance(part, dict) or part.keys() != y_val.keys():
            raise ValueError(f"y_val names the sets {', '.join(map(str, y_val))}. Pass a dict of the same for {name}.")
    if not y_val:
        raise ValueError("y_val names no set. Pass some rows, or leave it out.")
    sets = []
    for key in y_val:
        X, y, weight, offset, groups = (None if part is None else part[key] for part in given.values())
        sets.append(ValidationSet(X, y, weight, offset, groups, name=str(key)))
    return tuple(sets)


def check_together(given: dict[str, Any]) -> None:
    """Refuse parts of a validation set without its X_val and y_val."""
    if (given["X_val"] is None) != (given["y_val"] is None):
        raise ValueError("X_val and y_val go together. Pass both or neither.")
    alone = [name for name, value in given.items() if value is not None] if given["X_val"] is None else []
    if alone:
        raise ValueError(f"{alone[0]} goes with X_val. Pass X_val and y_val too.")
