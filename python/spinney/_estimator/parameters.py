"""Declaration of parameters, and checks of parameters that depend on the table.

A class decorated with `estimator` declares its parameters as dataclass fields: name, type, allowed values and default
in one line. It inherits those of its base classes, so that shared parameters are declared once. Its `__init__`, its
signature and scikit-learn's `_parameter_constraints` are derived from them. The signature lists positional parameters,
then those of the class, then those of its base classes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._data import Schema
from spinney._data.arguments import argument_numbers
from spinney._data.display import nearest_name
from spinney._data.types import Floats
from spinney._estimator.estimator import accept_other_names, store_signature

COUNT = Interval(Integral, 1, 2**31 - 1, closed="both")  # sizes of the engine's arrays


def count_features(max_features: int | float | str | None, n_features: int) -> int:
    """Return the number of columns considered at each split, as in scikit-learn."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(math.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(math.log2(n_features)))
    if isinstance(max_features, Integral):
        return int(max_features)
    return max(1, int(float(max_features) * n_features))


def require_whole(name: str, number: object, minimum: int = 1) -> None:
    """Raise unless a number is whole and at least `minimum`."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}, not {number!r}.")


def count_rows(fraction_or_count: int | float, n_rows: int) -> int:
    """Return a number of rows that is given as a count or as a fraction of all."""
    if isinstance(fraction_or_count, Integral):
        return int(fraction_or_count)
    return math.ceil(float(fraction_or_count) * n_rows)


def column_index(column: object, schema: Schema, parameter: str) -> int:
    """Return the position of a column that is given by name or position."""
    if isinstance(column, str):
        names = list(schema.names or [])
        if column not in names:
            hint = nearest_name(column, names, "")
            raise ValueError(f"{parameter} names a column that the table does not have: '{column}'. {hint}".rstrip())
        return names.index(column)
    if isinstance(column, Integral) and 0 <= int(column) < schema.n_features:
        return int(column)
    raise ValueError(
        f"{parameter} must name columns or give positions from 0 to {schema.n_features - 1}. Got {column!r}."
    )


def read_column_groups(groups: object, schema: Schema) -> tuple[list[str], list[list[int]]]:
    """Return names and columns of groups in the order of their first columns; other columns are groups of one."""
    named: list[tuple[str | None, Any]] = []
    if isinstance(groups, Mapping):
        named = [(str(name), group) for name, group in groups.items()]
    elif groups is not None:
        if isinstance(groups, str) or not isinstance(groups, Iterable):
            raise ValueError(f"groups must be a list of lists of columns, or a dict of these, not {groups!r}.")
        named = [(None, group) for group in groups]
    found: list[tuple[list[int], str]] = []
    owner: dict[int, str] = {}
    for name, group in named:
        members = [group] if isinstance(group, str | Integral) else list(group)
        columns = sorted({column_index(column, schema, "groups") for column in members})
        if not columns:
            raise ValueError("groups has an empty group. Drop it.")
        label = name if name is not None else " + ".join(schema.features[j].name for j in columns)
        for j in columns:
            if j in owner:
                raise ValueError(f"groups has column {schema.features[j].name!r} twice. Put it in one group.")
            owner[j] = label
        found.append((columns, label))
    found += [([j], feature.name) for j, feature in enumerate(schema.features) if j not in owner]
    found.sort(key=lambda entry: entry[0][0])
    return [name for _, name in found], [columns for columns, _ in found]


def _numbers_by_column(values: object, schema: Schema, parameter: str, default: float, what: str) -> Floats:
    """Return a number for each column, from values in order or by name; `default` for columns that are not named."""
    if hasattr(values, "items") and all(isinstance(label, str) for label, _ in values.items()):
        values = dict(values.items())  # a Series that is indexed by column names works like a dict
    if isinstance(values, Mapping):
        by_column = np.full(schema.n_features, default)
        positions = [column_index(column, schema, parameter) for column in values]
        by_column[positions] = argument_numbers(list(values.values()), parameter)
        return by_column
    numbers = argument_numbers(values, parameter)
    if numbers.shape != (schema.n_features,):
        raise ValueError(
            f"{parameter} has shape {numbers.shape} but the input data X has {schema.n_features} features. "
            f"Pass {what} per column, or a dict from column names to these."
        )
    return numbers


def read_monotone(constraint: object, schema: Schema) -> list[int]:
    """Return monotone directions by column; empty if there are none."""
    if constraint is None:
        return []
    directions = _numbers_by_column(constraint, schema, "monotonic_cst", 0.0, "one of -1, 0, 1")
    for feature, direction in zip(schema.features, directions, strict=True):
        if direction not in (-1, 0, 1):
            raise ValueError(f"monotonic_cst must contain only -1, 0 or 1. Got {direction:g}.")
        if direction and feature.kind == "category":
            raise ValueError(
                f"monotonic_cst constrains column '{feature.name}', whose values are categories without an order. "
                "Set it to 0, or pass an ordered category."
            )
    return directions.astype(int).tolist() if directions.any() else []


def read_feature_costs(costs: object, schema: Schema, keep_equal: bool = False) -> list[float]:
    """Return costs by column; empty if all are equal, unless `keep_equal`."""
    if costs is None:
        return []
    found = _numbers_by_column(costs, schema, "feature_costs", 1.0, "one positive number")
    _refuse_numbers(
        found,
        np.isfinite(found) & (found > 0),
        schema,
        "feature_costs must be positive numbers",
        "to leave a column out, drop it from X",
    )
    return [] if (found == found[0]).all() and not keep_equal else found.tolist()


def _refuse_numbers(found: Floats, is_right: NDArray[np.bool_], schema: Schema, rule: str, remedy: str) -> None:
    if not is_right.all():
        column = int(np.argmin(is_right))
        raise ValueError(f"{rule}. Column {schema.features[column].name!r} has {found[column]}; {remedy}.")


def read_drawn_columns(weights: object, always: object, schema: Schema) -> tuple[list[float], list[int]]:
    """Return weights of the columns in the draw (empty if all are equal), and columns that are always considered."""
    if schema.pool is not None:  # neither parameter is allowed with combinations
        return schema.pool.draw_weights, []
    found = _read_feature_weights(weights, schema)
    columns = _read_always(always, schema)
    for column in columns:
        if found and found[column] == 0:
            name = schema.features[column].name
            raise ValueError(
                f"always_try names column {name!r}, but feature_weights gives it 0, which means never. Change one."
            )
    return found, columns


def _read_feature_weights(weights: object, schema: Schema) -> list[float]:
    if weights is None:
        return []
    found = _numbers_by_column(weights, schema, "feature_weights", 1.0, "one number")
    _refuse_numbers(
        found,
        np.isfinite(found) & (found >= 0),
        schema,
        "feature_weights must be numbers from 0 up",
        "0 means that the column is never considered",
    )
    if not found.any():
        raise ValueError("feature_weights are all 0, which leaves no column to split on. Make at least one positive.")
    return [] if (found == found[0]).all() else (found / found.max()).tolist()


def _read_always(always: Any, schema: Schema) -> list[int]:
    if always is None:
        return []
    columns: list[Any] = [always] if isinstance(always, str | Integral) else list(always)
    if any(isinstance(column, bool | np.bool_) for column in columns):
        if len(columns) != schema.n_features:
            raise ValueError(
                f"always_try has {len(columns)} entries of True and False, but the input data X has "
                f"{schema.n_features} features. Pass one per column, or the names of columns."
            )
        columns = np.flatnonzero(columns).tolist()
    return sorted({column_index(column, schema, "always_try") for column in columns})


def read_groups(constraint: object, schema: Schema) -> list[list[int]]:
    """Return interaction groups as lists of positions; empty if all columns may interact."""
    n = schema.n_features
    if constraint is None:
        return []
    if isinstance(constraint, str):
        if constraint == "no_interactions":
            return [[j] for j in range(n)]
        if constraint == "pairwise":
            return [[i, j] for i in range(n) for j in range(i + 1, n)] or [[0]]
        raise ValueError(
            f"interaction_cst must be 'pairwise', 'no_interactions' or a list of groups. Got {constraint!r}."
        )
    if not isinstance(constraint, Sequence) or any(
        isinstance(g, str) or not isinstance(g, Iterable) for g in constraint
    ):
        raise ValueError(
            "interaction_cst must be a list of groups, each a collection of columns, e.g. [{0, 1}, {2, 3}]. "
            f"Got {constraint!r}."
        )
    groups = [sorted({column_index(c, schema, "interaction_cst") for c in group}) for group in constraint]
    rest = sorted(set(range(n)) - {j for group in groups for j in group})
    return [*groups, rest] if rest else groups


Estimator = TypeVar("Estimator")
_ALLOWED = "allowed"

UNSEEN = StrOptions({"missing", "error", "other"})
N_JOBS = Interval(Integral, -1024, 1024, closed="both")


def parameter(*allowed: object, default: object, kw_only: bool = True) -> Any:
    """Declare a parameter of an estimator.

    Parameters
    ----------
    *allowed : constraints of scikit-learn
        Allowed values; empty: those that a base class declares.
    default : object
        Its default.
    kw_only : bool, default=True
        Whether it must be passed by name.
    """
    return field(default=default, kw_only=kw_only, metadata={_ALLOWED: list(allowed)} if allowed else {})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter, field))
def estimator(kind: type[Estimator]) -> type[Estimator]:
    """Add an `__init__` with the parameters of a class and its base classes, which are declared by `parameter`."""
    _make(kind)
    return kind


def _make(kind: Any) -> None:
    kind.__signature__ = inspect.Signature()  # dataclasses read the docstring, which reads the signature
    dataclass(eq=False, repr=False, kw_only=True)(kind)
    known: dict[str, list[Any]] = {}
    for base in reversed(kind.__mro__):
        known |= base.__dict__.get("_parameter_constraints", {})
    known |= allowed_values(kind)
    kind._parameter_constraints = known
    kind.__init__.__signature__ = _own_first(kind)
    if getattr(kind, "_other_names", {}):
        kind.__init__ = accept_other_names(kind.__init__)
    store_signature(kind)


def allowed_values(kind: type[Any]) -> dict[str, list[Any]]:
    """Return scikit-learn's constraints of the parameters that a dataclass declares by `parameter`."""
    return {entry.name: entry.metadata[_ALLOWED] for entry in fields(kind) if _ALLOWED in entry.metadata}


def _own_first(kind: type[Any]) -> inspect.Signature:
    """Return the signature of `__init__` with the parameters of the class before those of its base classes."""
    signature = inspect.signature(kind.__init__)
    declared = [name for base in kind.__mro__ for name in inspect.get_annotations(base)]
    by_name = [entry for entry in signature.parameters.values() if entry.kind is entry.KEYWORD_ONLY]
    rest = [entry for entry in signature.parameters.values() if entry.kind is not entry.KEYWORD_ONLY]
    return signature.replace(parameters=[*rest, *sorted(by_name, key=lambda entry: declared.index(entry.name))])


SCALE: list[Any] = [StrOptions({"standard", "range"}), "boolean", None]  # allowed values of the parameter scale


def scale_name(scale: object) -> str | None:
    """Return the name of a scale: True means "standard", False means None."""
    if isinstance(scale, (bool, np.bool_)):
        return "standard" if scale else None
    return str(scale) if scale is not None else None
