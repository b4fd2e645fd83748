"""Parameters of estimators: misspelt names, and numbers that depend on the table."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from spinney._data import Schema
from spinney._data.arguments import given_array, given_numbers
from spinney._estimator.docstrings import EstimatorDocstring
from spinney._estimator.other_libraries import advise_argument, advise_parameter, argument_called

COUNT = Interval(Integral, 1, 2**31 - 1, closed="both")  # of things that the engine has an array of


class NamedParameters:
    """Refuses parameters that do not exist, naming the nearest that does."""

    _elsewhere: ClassVar[dict[str, str]] = {}  # what to do instead, for parameters and arguments of others
    _neutral: ClassVar[dict[str, Any]] = {}  # what the estimator does instead
    _other_names: ClassVar[dict[str, tuple[str, ...]]] = {}  # names of scikit-learn, and the parameters they stand for

    @classmethod
    def _unknown(cls, name: str, known: Iterable[str]) -> str:
        known = sorted(known)
        nearest = get_close_matches(name, known, n=1)
        hint = f"Did you mean '{nearest[0]}'?" if nearest else f"Its parameters are: {', '.join(known)}."
        advice = cls._elsewhere.get(name) or advise_parameter(name, known)
        if advice is None:
            arguments = _arguments_of_fit(cls)
            ours = name if name in arguments else argument_called(name, arguments)
            advice = None if ours is None else "Pass it to fit." if ours == name else f"Pass it to fit, as {ours}."
        return f"{cls.__name__} has no parameter '{name}'. {advice or hint}"

    @classmethod
    def _unknown_argument(cls, name: str, known: Iterable[str]) -> str:
        known = [argument for argument in known if argument != "self"]
        nearest = get_close_matches(name, known, n=1)
        hint = f"Did you mean '{nearest[0]}'?" if nearest else f"It takes {', '.join(known[:-1])} and {known[-1]}."
        advice = cls._elsewhere.get(name)
        advice = advice or advise_argument(name, known, inspect.signature(cls).parameters, cls.__name__)
        return f"{cls.__name__}.fit has no argument '{name}'. {advice or hint}"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__ is not None:
            cls.__doc__ = EstimatorDocstring(cls.__doc__)  # type: ignore[assignment]
        if "fit" in cls.__dict__:
            cls.fit = _named_arguments(cls.__dict__["fit"])  # type: ignore[attr-defined]
        if "__init__" in cls.__dict__ and cls._other_names:
            cls.__init__ = _taking_other_names(cls.__init__)  # type: ignore[method-assign]
        if "__init__" in cls.__dict__:
            own = inspect.signature(cls.__init__)
            # Kept, as scikit-learn asks for it in every fit, clone and repr: each time a millisecond for 40 parameters.
            cls.__init__.__signature__ = own  # type: ignore[attr-defined]
            # help() and documentation show this one, not that of __new__.
            cls.__signature__ = own.replace(  # type: ignore[attr-defined]
                parameters=list(own.parameters.values())[1:], return_annotation=inspect.Signature.empty
            )

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            known = [p for p in inspect.signature(cls.__init__).parameters if p != "self"]
            for name in kwargs:
                if name not in known and name not in cls._other_names:
                    raise TypeError(cls._unknown(name, known))
        return super().__new__(cls)

    def _setting(self, name: str) -> Any:
        """Value of a parameter; if this estimator has no such parameter, the neutral value."""
        return vars(self)[name] if name in vars(self) else self._neutral[name]

    @classmethod
    def _in_own_names(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters by the names that are their own."""
        found = dict(params)
        for name in cls._other_names.keys() & params.keys():
            own = cls._other_names[name]
            twice = [known for known in own if known in params]
            if twice:
                raise TypeError(f"{cls.__name__}: {name!r} is another name of {twice[0]!r}. Pass one of them.")
            found |= dict.fromkeys(own, found.pop(name))
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params : dict
            New values.

        Returns
        -------
        self
            The estimator.
        """
        params = self._in_own_names(params)
        known = self.get_params(deep=True)  # type: ignore[attr-defined]
        for name in params:
            if name not in known and "__" not in name:
                raise ValueError(self._unknown(name, known))
        return super().set_params(**params)  # type: ignore[misc,no-any-return]


def store_parameters(estimator: NamedParameters, arguments: Mapping[str, object]) -> None:
    """Set the parameters of an estimator: `arguments` are the ``locals()`` of its ``__init__``."""
    vars(estimator).update((name, value) for name, value in arguments.items() if name not in ("self", "__class__"))


def _arguments_of_fit(cls: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls.fit).parameters if hasattr(cls, "fit") else {}


def _named_arguments(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Have `fit` refuse arguments that do not exist in words of ours, not Python's."""
    known = inspect.signature(fit).parameters
    if any(argument.kind is argument.VAR_KEYWORD for argument in known.values()):
        return fit

    @wraps(fit)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                raise TypeError(self._unknown_argument(name, known))
        return fit(self, *args, **kwargs)

    return checked


def _taking_other_names(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def taking(self: NamedParameters, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **self._in_own_names(kwargs))

    return taking


def count_features(max_features: int | float | str | None, n_features: int) -> int:
    """Return the number of columns tried at a node, as in scikit-learn."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(math.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(math.log2(n_features)))
    if isinstance(max_features, Integral):
        return int(max_features)
    return max(1, int(float(max_features) * n_features))


def count_rows(share_or_count: int | float, n_rows: int) -> int:
    """Return a number of rows given as such or as a share of all."""
    if isinstance(share_or_count, Integral):
        return int(share_or_count)
    return math.ceil(float(share_or_count) * n_rows)


def column_index(column: Any, schema: Schema, parameter: str) -> int:
    """Position of a column given by name or position."""
    if isinstance(column, str):
        names = list(schema.names or [])
        if column not in names:
            nearest = get_close_matches(column, names, n=1)
            hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
            raise ValueError(f"{parameter} names a column that the table does not have: '{column}'.{hint}")
        return names.index(column)
    if isinstance(column, Integral) and 0 <= int(column) < schema.n_features:
        return int(column)
    raise ValueError(
        f"{parameter} must name columns or give positions from 0 to {schema.n_features - 1}. Got {column!r}."
    )


def read_column_groups(groups: Any, schema: Schema) -> tuple[list[str], list[list[int]]]:
    """Names and columns of groups in the order of their first columns; other columns stand alone."""
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


def read_monotone(constraint: Any, schema: Schema) -> list[int]:
    """Monotone directions by column; empty if there are none."""
    if constraint is None:
        return []
    directions = np.zeros(schema.n_features, dtype=np.int8)
    if isinstance(constraint, Mapping):
        for column, direction in constraint.items():
            directions[column_index(column, schema, "monotonic_cst")] = _direction(direction)
    else:
        given = given_array(constraint, "monotonic_cst")
        if given.shape != (schema.n_features,):
            raise ValueError(
                f"monotonic_cst has shape {given.shape} but the input data X has {schema.n_features} features. "
                "Give one of -1, 0, 1 per column, or a dict from column names to these."
            )
        for column, direction in enumerate(given.tolist()):
            directions[column] = _direction(direction)
    for feature, direction in zip(schema.features, directions, strict=True):
        if direction and feature.kind == "category":
            raise ValueError(
                f"monotonic_cst constrains column '{feature.name}', whose values are categories without an order. "
                "Set it to 0, or pass an ordered category."
            )
    return directions.tolist() if directions.any() else []


def read_feature_costs(costs: Any, schema: Schema, keep_equal: bool = False) -> list[float]:
    """Costs by column; empty if all are the same, unless these are to be kept."""
    if costs is None:
        return []
    found = np.ones(schema.n_features)
    if isinstance(costs, Mapping):
        for column, cost in costs.items():
            found[column_index(column, schema, "feature_costs")] = float(cost)
    else:
        given = given_numbers(costs, "feature_costs")
        if given.shape != (schema.n_features,):
            raise ValueError(
                f"feature_costs has shape {given.shape} but the input data X has {schema.n_features} features. "
                "Give one positive number per column, or a dict from column names to these."
            )
        found[:] = given
    if not np.isfinite(found).all() or not (found > 0).all():
        column = int(np.flatnonzero(~(np.isfinite(found) & (found > 0)))[0])
        raise ValueError(
            f"feature_costs must be positive numbers. Column {schema.features[column].name!r} has {found[column]}; "
            "to leave a column out, drop it from X."
        )
    return [] if (found == found[0]).all() and not keep_equal else found.tolist()


def read_drawn_columns(weights: Any, always: Any, schema: Schema) -> tuple[list[float], list[int]]:
    """Weights of the columns in the draw (empty if all are the same), and columns that need not be drawn."""
    if schema.pool is not None:  # both are about single columns, so both were refused with combinations
        return schema.pool.draw_weights, []
    found = _read_feature_weights(weights, schema)
    columns = _read_always(always, schema)
    for column in columns:
        if found and found[column] == 0:
            name = schema.features[column].name
            raise ValueError(
                f"always_try names column {name!r}, but feature_weights gives it 0, which means never. Drop one."
            )
    return found, columns


def _read_feature_weights(weights: Any, schema: Schema) -> list[float]:
    if weights is None:
        return []
    found = np.ones(schema.n_features)
    if hasattr(weights, "items") and all(isinstance(label, str) for label, _ in weights.items()):
        weights = dict(weights.items())  # a Series that is indexed by column names works like a dict
    if isinstance(weights, Mapping):
        for column, weight in weights.items():
            found[column_index(column, schema, "feature_weights")] = float(weight)
    else:
        given = given_numbers(weights, "feature_weights")
        if given.shape != (schema.n_features,):
            raise ValueError(
                f"feature_weights has shape {given.shape} but the input data X has {schema.n_features} features. "
                "Give one number per column, or a dict from column names to these."
            )
        found[:] = given
    is_wrong = ~(np.isfinite(found) & (found >= 0))
    if is_wrong.any():
        column = int(np.flatnonzero(is_wrong)[0])
        raise ValueError(
            f"feature_weights must be numbers from 0 up. Column {schema.features[column].name!r} has {found[column]}; "
            "0 means that the column is never tried."
        )
    if not found.any():
        raise ValueError("feature_weights are all 0, which leaves no column to split on. Give at least one a weight.")
    return [] if (found == found[0]).all() else (found / found.max()).tolist()


def _read_always(always: Any, schema: Schema) -> list[int]:
    if always is None:
        return []
    columns: list[Any] = [always] if isinstance(always, str | Integral) else list(always)
    if any(isinstance(column, bool | np.bool_) for column in columns):
        if len(columns) != schema.n_features:
            raise ValueError(
                f"always_try has {len(columns)} entries of True and False, but the input data X has "
                f"{schema.n_features} features. Give one per column, or the columns' names."
            )
        columns = np.flatnonzero(columns).tolist()
    return sorted({column_index(column, schema, "always_try") for column in columns})


def _direction(value: Any) -> int:
    if value not in (-1, 0, 1):
        raise ValueError(f"monotonic_cst must contain only -1, 0 or 1. Got {value!r}.")
    return int(value)


def read_groups(constraint: Any, schema: Schema) -> list[list[int]]:
    """Interaction groups as lists of positions; empty if every column may meet every other."""
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
