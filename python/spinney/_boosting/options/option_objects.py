"""Option objects of boosting: each groups parameters that few fits set, as the value of one parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal

from numpy import bool_
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

import spinney._engine as _engine
from spinney._estimator.parameters import COUNT, allowed_values
from spinney._model.file.values import Options

ORDERS = StrOptions({"leaf", "depth", "symmetric"})


@cache
def traits() -> dict[str, _engine.OptionTraits]:
    """Return the engine's numeric options, by name."""
    return {option.name: option for option in _engine.boosting_options()}


def bounds(name: str) -> Interval:
    """Return the engine's bounds of an option, as a constraint of scikit-learn."""
    option = traits()[name]
    number = int if option.type == "int" else float
    high = None if math.isinf(option.high) else number(option.high)
    return Interval(Integral if option.type == "int" else Real, number(option.low), high, closed=option.closed)


def option(setting: str, *allowed: object, default: object) -> Any:
    """Declare an option: its name in `BoostingSettings`, and its allowed values, by default the engine's bounds."""
    return field(default=default, metadata={"setting": setting, "allowed": list(allowed) or [bounds(setting)]})


def setting_names(kind: type[Options]) -> dict[str, str]:
    """Return the names of the options in `BoostingSettings`."""
    return {one.name: one.metadata["setting"] for one in fields(kind)}


@dataclass(frozen=True, repr=False)
class Growth(Options):
    """How the trees of a booster are grown: the value of the parameter `growth`.

    A string stands for `order` alone: ``growth="symmetric"``.

    Parameters
    ----------
    order : {"leaf", "depth", "symmetric"}, default="leaf"
        Which leaf to split next. "leaf": the one with the largest gain. "depth": level by level. "symmetric": level by
        level, with the same split in all nodes of a level, the one with the largest total gain; a node in which a side
        would have too few rows is not split.
    forced_splits : dict, optional
        The first splits of every tree: ``{"feature": column, "threshold": number}``. For a categorical column,
        ``"categories"``, the list of categories that go left, replaces the threshold. Child splits, in the same form,
        are entries ``"left"`` and ``"right"``. Thresholds are exact, not rounded to bins; missing values go to the side
        with the lower loss. A split that leaves too few rows on a side is an error; if rows are drawn at random, a tree
        that cannot make the split is grown without it.
    n_parallel_trees : int, default=1
        Number of consecutive trees that are fitted to the same gradients and averaged. Each has its own random rows and
        columns if `subsample`, `max_features` or `feature_sampling` draws them; otherwise the trees are equal.
        ``n_estimators`` counts all trees: if it is 100, and 4 trees are parallel, gradients are computed 25 times.

    Examples
    --------
    >>> import spinney
    >>> split = {"feature": 0, "threshold": 0.5}
    >>> spinney.GradientBoostingRegressor(growth=spinney.Growth(forced_splits=split))
    GradientBoostingRegressor(growth=Growth(forced_splits={'feature': 0, 'threshold': 0.5}))
    """

    order: Literal["leaf", "depth", "symmetric"] = option("growth", ORDERS, default="leaf")
    forced_splits: Mapping[str, Any] | None = option("forced_splits", dict, None, default=None)
    n_parallel_trees: int = option("n_parallel_trees", COUNT, default=1)


@dataclass(frozen=True, repr=False)
class Regularization(Options):
    """Regularisation in addition to `l2_regularization`: the value of the parameter `regularization`.

    Parameters
    ----------
    l1 : float, default=0.0
        L1 penalty on leaf values.
    max_step : float, "auto" or None, default="auto"
        Largest absolute leaf value, before it is multiplied by the learning rate. "auto": depends on the loss. With the
        log loss, Poisson and similar losses, whose Newton steps may diverge, leaf values above 1.5 grow only with the
        logarithm of the Newton step. With a user-defined loss whose ``link`` is "identity", the limit follows from the
        spread of the targets. Other losses have no limit. None: no limit.
    min_hessian_leaf : float, default=1e-3
        Smallest sum of the loss's second derivatives in a leaf.
    min_gain : float, default=0.0
        Smallest gain of a split: twice the decrease of the loss, to second order.
    hierarchical_shrinkage : float, default=0.0
        Strength, in units of the row weights, of the shrinkage of node values towards those of their ancestors; small
        nodes are shrunk most. 0: none.

    Examples
    --------
    >>> import spinney
    >>> spinney.GradientBoostingRegressor(regularization=spinney.Regularization(l1=0.5, min_gain=1.0))
    GradientBoostingRegressor(regularization=Regularization(l1=0.5, min_gain=1.0))
    """

    l1: float = option("l1_regularization", default=0.0)
    max_step: float | Literal["auto"] | None = option(
        "max_step", bounds("max_step"), StrOptions({"auto"}), None, default="auto"
    )
    min_hessian_leaf: float = option("min_hessian_leaf", default=1e-3)
    min_gain: float = option("min_gain", default=0.0)
    hierarchical_shrinkage: float = option("hierarchical_shrinkage", default=0.0)


@dataclass(frozen=True, repr=False)
class Goss(Options):
    """Gradient-based one-side sampling of rows (GOSS): a value of the parameter `sampling`.

    ``sampling="goss"`` means ``Goss()``. Each round uses the rows with the largest gradients and a random sample of the
    other rows, which is weighted so that it stands for all of them. ``subsample`` is the fraction of both together;
    with ``subsample="auto"``, the random sample is a tenth of all rows.

    Parameters
    ----------
    top_rate : float, default=0.2
        Fraction of the rows that are used for their large gradients.

    Examples
    --------
    >>> import spinney
    >>> spinney.GradientBoostingRegressor(sampling=spinney.Goss(top_rate=0.3))
    GradientBoostingRegressor(sampling=Goss(top_rate=0.3))
    """

    top_rate: float = option("top_fraction", default=0.2)


@dataclass(frozen=True, repr=False)
class Dart(Options):
    """Dropout of earlier rounds (DART): the value of the parameter `dart`.

    ``dart=True`` means ``Dart()`` and a number sets its `rate`. A round that drops k others is scaled by 1 / (k + 1),
    and the dropped rounds by k / (k + 1). ``warm_start`` and staged predictions are not supported, as later rounds
    change earlier ones. Early stopping returns the model as it was after its best round.

    Parameters
    ----------
    rate : float, default=0.1
        Fraction of the earlier rounds, drawn at random, that each round drops; at least one. 0: none is dropped.
    skip : float, default=0.0
        Probability that a round drops nothing.
    max_rounds : int or None, default=None
        Maximum number of rounds that a round drops. None: no limit.
    by : {"uniform", "weight"}, default="uniform"
        Whether all rounds are dropped with the same probability, or in proportion to their weight after earlier drops.

    Examples
    --------
    >>> import spinney
    >>> spinney.GradientBoostingRegressor(dart=spinney.Dart(rate=0.05, skip=0.5))
    GradientBoostingRegressor(dart=Dart(rate=0.05, skip=0.5))
    """

    rate: float = option("drop_rate", default=0.1)
    skip: float = option("skip_drop", default=0.0)
    max_rounds: int | None = option("max_drop", bounds("max_drop"), None, default=None)
    by: Literal["uniform", "weight"] = option("drop_by", StrOptions({"uniform", "weight"}), default="uniform")


@dataclass(frozen=True, repr=False)
class FeatureSampling(Options):
    """Columns drawn for each tree and level: the value of the parameter `feature_sampling`.

    A number sets `per_tree` alone, as in ``feature_sampling=0.5``. `max_features` draws from these columns for each
    node.

    Parameters
    ----------
    per_tree : float, default=1.0
        Fraction of the columns drawn for each tree.
    per_level : float, default=1.0
        Fraction of the tree's columns drawn for each of its levels; `max_features` then draws from these.
    weights : array-like of numbers or dict by column name, optional
        Relative probability that a column is drawn for a tree, a level or a node; 0: never. Columns that a dict leaves
        out have weight 1.

    Examples
    --------
    >>> import spinney
    >>> spinney.GradientBoostingRegressor(feature_sampling=spinney.FeatureSampling(per_tree=0.8, per_level=0.5))
    GradientBoostingRegressor(feature_sampling=FeatureSampling(per_tree=0.8, per_level=0.5))
    """

    per_tree: float = option("max_features_per_tree", default=1.0)
    per_level: float = option("max_features_per_level", default=1.0)
    weights: ArrayLike | Mapping[Any, float] | None = option("feature_weights", "array-like", dict, None, default=None)


@dataclass(frozen=True, repr=False)
class CategoryOptions(Options):
    """How categorical columns are split: the value of the parameter `categories`.

    Parameters
    ----------
    max_one_hot : int, default=4
        With up to this many categories in a node, each is tried against the rest. If there are more, they are sorted by
        their gradients and split like numbers.
    smoothing : float, default=10.0
        Number that is added to the sum of second derivatives of each category when categories are sorted. Categories
        with fewer rows than this number in a node are not separated from each other.
    l2 : float, default=10.0
        Additional L2 penalty on both sides when a split by sorted categories is evaluated.

    Examples
    --------
    >>> import spinney
    >>> spinney.GradientBoostingRegressor(categories=spinney.CategoryOptions(max_one_hot=10))
    GradientBoostingRegressor(categories=CategoryOptions(max_one_hot=10))
    """

    max_one_hot: int = option("max_one_hot", default=4)
    smoothing: float = option("category_smoothing", default=10.0)
    l2: float = option("category_l2", default=10.0)


@dataclass(frozen=True, repr=False)
class LinearLeaves(Options):
    """Leaves with linear functions instead of constants: the value of the parameter `linear_leaves`.

    ``linear_leaves=True`` means ``LinearLeaves()``. Each leaf fits a ridge regression on the numeric columns of its
    path. In prediction, the value of a column is clipped to its range in the leaf's training rows, so that the function
    does not extrapolate. A row in which one of these columns is missing gets the leaf's constant. Not supported with
    ``absolute_error``, ``quantile``, ``mape`` and ``huber``, nor with monotonic constraints.

    Parameters
    ----------
    l2 : float, default=5.0
        L2 penalty of the slopes of columns that are scaled to unit variance in their leaf. Its unit is the second
        derivative of the loss of a row of mean weight; for squared errors, it is a number of rows.

    Examples
    --------
    >>> import spinney
    >>> spinney.GradientBoostingRegressor(linear_leaves=spinney.LinearLeaves(l2=1.0))
    GradientBoostingRegressor(linear_leaves=LinearLeaves(l2=1.0))
    """

    l2: float = option("linear_l2", default=5.0)


Value = Options | Mapping[str, Any] | str | float | bool | None  # of a parameter that takes option objects

OPTION_CLASSES: dict[str, type[Options]] = {
    "growth": Growth,
    "regularization": Regularization,
    "sampling": Goss,
    "dart": Dart,
    "feature_sampling": FeatureSampling,
    "categories": CategoryOptions,
    "linear_leaves": LinearLeaves,
}
for _kind in OPTION_CLASSES.values():
    _kind.__module__ = "spinney"  # where users find it, and what messages call it


def read_options(parameter: str, value: Value) -> Options | None:
    """Return a parameter's value as an option object; None if it switches the options off."""
    kind = OPTION_CLASSES[parameter]
    if isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        kind.check_names(set(value), parameter)
        return kind(**value)
    if value is None or value == "auto" or isinstance(value, bool | bool_):
        return kind() if value not in (None, "auto") and value else None
    if parameter == "sampling":
        return Goss() if value == "goss" else None
    return kind(value)  # type: ignore[call-arg]  # the first option


def flat_settings(parameters: Mapping[str, Value]) -> dict[str, Any]:
    """Return the settings in an estimator's option objects, by the names of `BoostingSettings`."""
    found: dict[str, Any] = {"sampling": parameters["sampling"]}
    for parameter, kind in OPTION_CLASSES.items():
        options = read_options(parameter, parameters[parameter])
        if options is not None:
            found |= {setting: getattr(options, name) for name, setting in setting_names(kind).items()}
        if parameter == "sampling" and options is not None:
            found["sampling"] = "goss"
        if parameter == "linear_leaves":
            found["linear_leaves"] = "auto" if parameters[parameter] == "auto" else options is not None
    return found


def check_switched_on(parameter: str, value: Value, changes: Mapping[str, Any], is_explicit: bool) -> None:
    """Refuse options of a parameter that is switched off or has another kind of value."""
    is_other = parameter == "sampling" and value == "gradient"
    is_off = is_explicit and value is not None and read_options(parameter, value) is None
    if is_other or is_off:
        names = " and ".join(f"{parameter}__{option}" for option in changes)
        raise ValueError(
            f"{parameter}={value!r} has no options, so that {names} cannot be set. Leave one of them out; in a grid, "
            "give each its own dict of parameters."
        )


def with_options(parameter: str, value: Value, changes: dict[str, Any]) -> Options:
    """Return the option object of a parameter with some options changed, for ``set_params(dart__rate=0.1)``."""
    kind = OPTION_CLASSES[parameter]
    kind.check_names(set(changes), parameter)
    return replace(read_options(parameter, value) or kind(), **changes)


def check_option_values(parameter: str, value: Value, estimator: str) -> None:
    """Refuse invalid values of options, by nested names such as ``dart__rate``."""
    options = read_options(parameter, value)
    if options is not None:
        allowed = {f"{parameter}__{name}": constraints for name, constraints in allowed_values(type(options)).items()}
        values = {f"{parameter}__{name}": found for name, found in options.get_params().items()}
        validate_parameter_constraints(allowed, values, caller_name=estimator)
