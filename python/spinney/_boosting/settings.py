"""The parameters of a booster, and its settings, which a fit reads from the estimator once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from spinney._boosting.options.option_objects import (
    ORDERS,
    CategoryOptions,
    Dart,
    FeatureSampling,
    Goss,
    Growth,
    LinearLeaves,
    Regularization,
    bounds,
    flat_settings,
)
from spinney._data.arguments import argument_array
from spinney._data.feature import Unseen
from spinney._data.types import RandomState
from spinney._estimator.parameters import COUNT, N_JOBS, UNSEEN, parameter
from spinney._estimator.rate_search import is_searched

AUTO = StrOptions({"auto"})
RATE = StrOptions({"auto", "cv"})
FRACTION = Interval(Real, 0.0, 1.0, closed="neither")
FROM_ONE = Interval(Integral, 1, None, closed="left")
Auto = Literal["auto"]  # chosen by the recipe
Metric = str | Callable[..., float] | None  # by name, as a function, or None for the loss
Callback = Callable[[dict[str, Any]], object]


@dataclass(eq=False, repr=False, kw_only=True)
class BoosterParameters:
    """The parameters of all boosters, with their allowed values."""

    n_estimators: int | Auto = parameter(COUNT, AUTO, default="auto")
    effort: float = parameter(Interval(Real, 0.0, 1.0, closed="both"), default=0.5)
    learning_rate: float | Auto | Literal["cv"] = parameter(bounds("learning_rate"), RATE, default="auto")
    max_leaf_nodes: int | Auto | None = parameter(bounds("max_leaf_nodes"), None, AUTO, default="auto")
    max_depth: int | None = parameter(bounds("max_depth"), None, default=None)
    growth: Literal["leaf", "depth", "symmetric"] | Growth | dict[str, Any] = parameter(
        ORDERS, Growth, dict, default="leaf"
    )
    min_samples_split: int | float = parameter(
        bounds("min_samples_split"), Interval(RealNotInt, 0.0, 1.0, closed="right"), default=2
    )
    min_samples_leaf: int | float | Auto = parameter(bounds("min_samples_leaf"), FRACTION, AUTO, default="auto")
    min_impurity_decrease: float = parameter(bounds("min_gain"), default=0.0)
    l2_regularization: float | Auto = parameter(bounds("l2_regularization"), AUTO, default="auto")
    regularization: Regularization | dict[str, Any] | None = parameter(Regularization, dict, None, default=None)
    subsample: float | Auto = parameter(bounds("subsample"), AUTO, default="auto")
    sampling: Literal["uniform", "gradient", "goss"] | Goss | dict[str, Any] = parameter(
        StrOptions({"uniform", "gradient", "goss"}), Goss, dict, default="uniform"
    )
    dart: bool | float | Dart | dict[str, Any] | None = parameter(
        "boolean", bounds("drop_rate"), Dart, dict, None, default=None
    )
    max_features: int | float | Literal["auto", "sqrt", "log2"] | None = parameter(
        FROM_ONE, bounds("max_features"), StrOptions({"auto", "sqrt", "log2"}), None, default="auto"
    )
    feature_sampling: float | FeatureSampling | dict[str, Any] | None = parameter(
        bounds("max_features_per_tree"), FeatureSampling, dict, None, default=None
    )
    max_bins: int | Auto = parameter(bounds("max_bins"), AUTO, default="auto")
    categories: CategoryOptions | dict[str, Any] | None = parameter(CategoryOptions, dict, None, default=None)
    monotonic_cst: Any = parameter("array-like", dict, None, default=None)
    interaction_cst: Any = parameter(list, tuple, StrOptions({"pairwise", "no_interactions"}), None, default=None)
    feature_costs: Any = parameter("array-like", dict, None, default=None)
    feature_combinations: Any = parameter(list, tuple, AUTO, None, default="auto")
    linear_leaves: bool | Auto | LinearLeaves | dict[str, Any] = parameter(
        "boolean", AUTO, LinearLeaves, dict, default="auto"
    )
    early_stopping: bool | Auto | None = parameter("boolean", AUTO, None, default=None)
    scoring: Metric | Sequence[Metric] = parameter(str, callable, list, tuple, None, default=None)
    validation_fraction: float | int = parameter(FRACTION, FROM_ONE, default=0.1)
    n_iter_no_change: int | None = parameter(FROM_ONE, None, default=None)
    tol: float = parameter(Interval(Real, 0.0, None, closed="left"), default=1e-7)
    keep_best: bool = parameter("boolean", default=True)
    categorical_features: Any = parameter("array-like", StrOptions({"from_dtype"}), None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")
    warm_start: bool = parameter("boolean", default=False)
    verbose: int | None = parameter("verbose", None, default=None)
    callbacks: Any = parameter(callable, list, tuple, None, default=None)
    keep_interrupted: bool = parameter("boolean", default=False)
    random_state: RandomState = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)


class BoostingEstimator(Protocol):
    """An estimator whose parameters are those of a booster."""

    _is_class_target: ClassVar[bool]
    _leaf_fraction: ClassVar[float]

    @property
    def _n_threads(self) -> int: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


@dataclass(eq=False, kw_only=True)
class RoundSettings:
    """Settings of the loop over rounds, for trees or other functions.

    Attributes
    ----------
    metrics : tuple
        Metrics on held-out rows; the first stops the fit. None is the loss.
    n_threads : int
        Number of threads; 0: all.
    is_class_target : bool
        Whether the target is classes.
    """

    metrics: tuple[Metric, ...] = (None,)
    callbacks: tuple[Callback, ...] = ()
    tol: float = 1e-7
    keep_best: bool = True
    keep_interrupted: bool = False
    verbose: int | None = None
    n_threads: int = 0
    n_parallel_trees: int = 1
    sampling: Literal["uniform", "gradient", "goss"] = "uniform"
    drop_rate: float = 0.0
    is_class_target: bool = False

    @property
    def draws_by_gradient(self) -> bool:
        """Whether rows are drawn by their gradients."""
        return self.sampling in ("gradient", "goss")


@dataclass(eq=False, kw_only=True)
class BoostingSettings(RoundSettings, BoosterParameters):
    """All parameters of a booster.

    Parameters that only some of the estimators have are neutral for the others.

    Attributes
    ----------
    estimator : str
        Name of the class, for messages.
    changed : frozenset of str
        Parameters that differ from their defaults.
    calibrates : bool
        Whether held-out rows calibrate prediction intervals or sets.
    leaf_fraction : float
        Default of `min_samples_leaf` in small tables, as a fraction of the rows.
    others : as the parameters of the estimators
    """

    estimator: str = ""
    changed: frozenset[str] = frozenset()
    calibrates: bool = False
    leaf_fraction: float = 0.2
    parameters: Mapping[str, Any] = field(default_factory=dict)

    loss: Any = "squared_error"
    focal_gamma: float = 2.0
    class_order: Any = None
    quantile: float | Sequence[float] = 0.5
    huber_share: float = 0.9
    tweedie_power: float = 1.5
    truncation: int | None = 30
    gains: str = "exponential"
    distribution: str = "normal"
    scale: float | Auto = "auto"
    ties: str = "breslow"

    init: Any = "constant"
    class_weight: Any = None
    cost_matrix: Any = None
    priors: Any = None

    growth: Literal["leaf", "depth", "symmetric"] = "leaf"
    forced_splits: dict[str, Any] | None = None
    leaves: str = "single"
    linear_leaves: bool | Auto = "auto"
    linear_l2: float = 5.0
    min_hessian_leaf: float = 1e-3
    min_gain: float = 0.0
    l1_regularization: float = 0.0
    max_step: float | Auto | None = "auto"
    hierarchical_shrinkage: float = 0.0
    sampling: Literal["uniform", "gradient", "goss"] = "uniform"
    top_fraction: float = 0.2
    skip_drop: float = 0.0
    max_drop: int | None = None
    drop_by: str = "uniform"
    max_features_per_level: float = 1.0
    max_features_per_tree: float = 1.0
    feature_weights: Any = None
    max_one_hot: int = 4
    category_smoothing: float = 10.0
    category_l2: float = 10.0

    @classmethod
    def of(cls, estimator: BoostingEstimator) -> BoostingSettings:
        """Read the parameters of an estimator."""
        found, defaults = dict(vars(estimator)), _defaults(type(estimator))
        if found.get("early_stopping") == "auto":
            found["early_stopping"] = None
        if is_searched(found.get("learning_rate")):  # of a model without a chosen rate: only before its fit
            found["learning_rate"] = found.get("learning_rate_", "auto")
        read: dict[str, Any] = {one.name: found[one.name] for one in fields(cls) if one.name in found}
        read |= flat_settings(found) | {
            "estimator": type(estimator).__name__,
            "parameters": estimator.get_params(deep=False),
            "changed": frozenset(
                name for name in defaults.keys() & found.keys() if _is_changed(found[name], defaults[name])
            ),
            "calibrates": hasattr(type(estimator), "calibrate"),
            "leaf_fraction": estimator._leaf_fraction,
            "metrics": metrics_of(found.get("scoring")),
            "callbacks": callbacks_of(found.get("callbacks")),
            "n_threads": estimator._n_threads,
            "is_class_target": estimator._is_class_target,
        }
        return cls(**read)

    def loss_parameter(self, name: str) -> float:
        """Return the value of a loss parameter."""
        value = vars(self)[name]
        if not isinstance(value, Real):
            raise ValueError(f"loss={self.loss!r} takes one number as {name}. Several numbers need loss='quantile'.")
        return float(value)

    @property
    def starts_at_model(self) -> bool:
        """Whether the initial scores are predictions of an estimator."""
        return not isinstance(self.init, str | None)

    @property
    def levels(self) -> list[float] | None:
        """Quantiles, if there are several."""
        if self.loss != "quantile" or isinstance(self.quantile, Real):
            return None
        return read_quantiles(self.quantile)

    @property
    def stops_early(self) -> bool:
        """Whether rows are held out for early stopping, as a validation set or in folds."""
        if self.early_stopping is not None:
            return bool(self.early_stopping)
        return self.n_iter_no_change is not None or self.n_estimators == "auto"


def read_quantiles(quantiles: ArrayLike) -> list[float]:
    """Return the levels of quantiles: different numbers between 0 and 1, in ascending order."""
    levels = [float(level) for level in np.asarray(argument_array(quantiles, "quantile"), dtype=np.float64).ravel()]
    if not levels:
        raise ValueError("quantile holds no number. Give one between 0 and 1, or several.")
    for level in levels:
        if not 0 < level < 1:
            raise ValueError(f"quantile must hold numbers between 0 and 1. Got {level:g}.")
    if any(a >= b for a, b in pairwise(levels)):
        raise ValueError(f"quantile must hold different numbers in ascending order. Got {levels}.")
    return levels


def metrics_of(scoring: Metric | Sequence[Metric]) -> tuple[Metric, ...]:
    """Return the metrics of `scoring`; None is the loss."""
    metrics = scoring if isinstance(scoring, (list, tuple)) else (scoring,)
    if not metrics:
        raise ValueError("scoring is empty. Name a metric, or use None for the loss.")
    return tuple(None if isinstance(metric, str) and metric == "loss" else metric for metric in metrics)


def callbacks_of(callbacks: Callback | Sequence[Callback] | None) -> tuple[Callback, ...]:
    """Return the functions to call after each round."""
    return (callbacks,) if callable(callbacks) else tuple(callbacks or ())


def _is_changed(value: object, default: object) -> bool:
    """Return whether a parameter differs from its default; lists and objects always do."""
    return value is not default and not (isinstance(value, (str, Real)) and value == default)


@lru_cache(maxsize=64)
def _defaults(kind: type) -> dict[str, Any]:
    """Return the defaults of an estimator's parameters, including those of its base classes."""
    found: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        if "__init__" in vars(one):
            found |= {name: taken.default for name, taken in inspect.signature(one).parameters.items()}
    return found
