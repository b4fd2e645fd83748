"""Ways to grow trees, and to draw rows, columns and rounds, that do not go together."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spinney._boosting.options.constraints import REFITTED

if TYPE_CHECKING:
    from collections.abc import Hashable

_BY_GRADIENT = ("gradient", "goss")
_READ_BY = {  # parameters of losses: those that read them
    "quantile": ("quantile",),
    "huber_share": ("huber", "log_cosh"),
    "tweedie_power": ("tweedie",),
    "focal_gamma": ("focal",),
    "distribution": ("aft",),
    "scale": ("aft",),
    "ties": ("cox",),
}
_ALPHA = frozenset({"quantile", "huber_share"})  # what scikit-learn's word sets


def draws_by_gradient(model: Any) -> bool:
    """Whether the gradients of rows say which are drawn."""
    return model._setting("sampling") in _BY_GRADIENT


def check_options(model: Any) -> None:
    """Refuse options that would do nothing, or the wrong thing, beside others."""
    _check_loss(model)
    _check_rows(model)
    _check_rounds(model)
    _check_trees(model)
    if model._setting("linear_leaves"):
        _check_lines(model)
    elif _is_set(model, "linear_l2"):
        raise ValueError("linear_l2 draws lines in leaves to 0, and there are none. Set linear_leaves=True.")


@lru_cache(maxsize=64)
def _defaults(kind: Any) -> dict[str, Any]:
    """Return the defaults of an estimator's parameters; a class of the user's may take others than those it extends."""
    found: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        if "__init__" in vars(one):
            found |= {name: taken.default for name, taken in inspect.signature(one).parameters.items()}
    return found


def _is_set(model: Any, name: str) -> bool:
    """Whether a parameter that an estimator has is another than its default."""
    if name not in vars(model):
        return False
    value, kind = getattr(model, name), cast("Hashable", type(model))
    return not (np.ndim(value) == 0 and value == _defaults(kind).get(name, value))


def _check_loss(model: Any) -> None:
    """Refuse parameters that the loss does not read."""
    loss = model.loss if isinstance(model.loss, str) else None
    read = {name for name, losses in _READ_BY.items() if loss in losses}
    of_alpha = _ALPHA if _may_be_alpha(model) else frozenset()
    for name, losses in _READ_BY.items():
        if name in read or (name in of_alpha and read & of_alpha) or not _is_set(model, name):
            continue
        said = f"{name} (or alpha)" if name in of_alpha else name
        which = " and ".join(f"loss={one!r}" for one in losses)
        mine = f"loss={loss!r}" if loss else "a loss of your own"
        raise ValueError(f"{said} is for {which}, and {mine} does not read it. Leave it out, or set the loss.")


def _may_be_alpha(model: Any) -> bool:
    """Whether parameters are as `alpha` sets them: all to one number, of which a loss reads one."""
    values: list[Any] = [getattr(model, name, None) for name in _ALPHA]
    return all(value is not None and np.ndim(value) == 0 for value in values) and bool(values[0] == values[1])


def _check_rows(model: Any) -> None:
    sampling = model._setting("sampling")
    losses = model.loss if isinstance(model.loss, (list, tuple)) else [model.loss]
    if draws_by_gradient(model) and any(isinstance(loss, str) and loss in REFITTED for loss in losses):
        raise ValueError(
            f"sampling={sampling!r} draws rows by the size of their gradients, which loss={model.loss!r} does not "
            "tell. Use sampling='uniform'."
        )
    if draws_by_gradient(model) and model._setting("n_parallel_trees") > 1:
        raise ValueError("n_parallel_trees goes with rows drawn alike. Use sampling='uniform'.")
    if sampling != "goss" and _is_set(model, "top_share"):
        raise ValueError(
            f"top_share is read by sampling='goss', and sampling is {sampling!r}. Leave top_share out, or set sampling."
        )
    if sampling == "goss" and model.subsample != "auto" and not model._setting("top_share") < model.subsample:
        raise ValueError(
            f"sampling='goss' draws subsample={model.subsample} of the rows, and those with the largest gradients "
            f"alone are top_share={model._setting('top_share')} of them. Make subsample larger than top_share."
        )


def _check_rounds(model: Any) -> None:
    if not model._setting("drop_rate") > 0:
        for name, plain in (("skip_drop", 0.0), ("max_drop", None), ("drop_by", "uniform")):
            if model._setting(name) != plain:
                raise ValueError(f"{name} says how rounds are dropped, and drop_rate=0 drops none. Set drop_rate.")
        return
    if model.warm_start:
        raise ValueError(
            "warm_start adds to the trees of the earlier fit, and drop_rate changes what these are worth. Set "
            "warm_start=False, or drop_rate=0."
        )
    if model._setting("n_parallel_trees") > 1:
        raise ValueError("drop_rate goes with single trees, not with n_parallel_trees. Set one of them.")


def _check_trees(model: Any) -> None:
    is_symmetric, is_forced = model.growth == "symmetric", model._setting("forced_splits") is not None
    if is_forced and is_symmetric:
        raise ValueError("forced_splits does not go with growth='symmetric', whose levels have one cut each. Drop one.")
    if is_forced and model.interaction_cst is not None:
        raise ValueError("forced_splits does not go with interaction_cst, which may forbid them. Drop one.")
    if model._setting("leaves") != "vector":
        return
    odd = is_symmetric or draws_by_gradient(model) or model._setting("n_parallel_trees") > 1 or is_forced
    if odd or model._setting("feature_costs") is not None:
        raise ValueError(
            "leaves='vector' goes with no growth='symmetric', sampling='gradient' or 'goss', n_parallel_trees, "
            "feature_costs or forced_splits. Use leaves='single'."
        )


def _check_lines(model: Any) -> None:
    losses = model.loss if isinstance(model.loss, (list, tuple)) else [model.loss]
    if any(isinstance(loss, str) and loss in REFITTED for loss in losses):
        raise ValueError(
            f"linear_leaves fits lines by second derivatives, which loss={model.loss!r} does not have. Use "
            "'squared_error' or 'log_cosh', or linear_leaves=False."
        )
    odd = {
        "monotonic_cst": (model.monotonic_cst is not None, "a line may fall where its column is to rise"),
        "l1_regularization": (model.l1_regularization > 0, "lines have squared penalties alone"),
        "hierarchical_shrinkage": (
            model._setting("hierarchical_shrinkage") > 0,
            "it draws values to others, not lines",
        ),
        "drop_rate": (model._setting("drop_rate") > 0, "dropped rounds are taken off by the codes of rows, not values"),
        "leaves": (model._setting("leaves") == "vector", "a leaf has one line"),
    }
    for name, (is_given, why) in odd.items():
        if is_given:
            raise ValueError(f"linear_leaves does not go with {name}: {why}. Drop one of them.")
