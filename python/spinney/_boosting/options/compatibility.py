"""Ways to grow trees, and to draw rows, columns and rounds, that do not go together."""

from __future__ import annotations

from numbers import Real

from spinney._boosting.options.constraints import REFITTED
from spinney._boosting.settings import BoostingSettings

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


def check_options(settings: BoostingSettings) -> None:
    """Refuse options that would do nothing, or the wrong thing, beside others."""
    _check_loss(settings)
    _check_rows(settings)
    _check_rounds(settings)
    _check_trees(settings)
    if settings.linear_leaves:
        _check_lines(settings)
    elif "linear_l2" in settings.changed:
        raise ValueError("linear_l2 draws lines in leaves to 0, and there are none. Set linear_leaves=True.")


def _check_loss(settings: BoostingSettings) -> None:
    """Refuse parameters that the loss does not read."""
    loss = settings.loss if isinstance(settings.loss, str) else None
    read = {name for name, losses in _READ_BY.items() if loss in losses}
    of_alpha = _ALPHA if _may_be_alpha(settings) else frozenset()
    for name, losses in _READ_BY.items():
        if name in read or (name in of_alpha and read & of_alpha) or name not in settings.changed:
            continue
        said = f"{name} (or alpha)" if name in of_alpha else name
        which = " and ".join(f"loss={one!r}" for one in losses)
        mine = f"loss={loss!r}" if loss else "a loss of your own"
        raise ValueError(f"{said} is for {which}, and {mine} does not read it. Leave it out, or set the loss.")


def _may_be_alpha(settings: BoostingSettings) -> bool:
    """Whether parameters are as `alpha` sets them: all to one number, of which a loss reads one."""
    return isinstance(settings.quantile, Real) and settings.quantile == settings.huber_share


def _check_rows(settings: BoostingSettings) -> None:
    sampling = settings.sampling
    losses = settings.loss if isinstance(settings.loss, (list, tuple)) else [settings.loss]
    if settings.draws_by_gradient and any(isinstance(loss, str) and loss in REFITTED for loss in losses):
        raise ValueError(
            f"sampling={sampling!r} draws rows by the size of their gradients, which loss={settings.loss!r} does not "
            "tell. Use sampling='uniform'."
        )
    if settings.draws_by_gradient and settings.n_parallel_trees > 1:
        raise ValueError("n_parallel_trees goes with rows drawn alike. Use sampling='uniform'.")
    if sampling != "goss" and "top_share" in settings.changed:
        raise ValueError(
            f"top_share is read by sampling='goss', and sampling is {sampling!r}. Leave top_share out, or set sampling."
        )
    if sampling == "goss" and not isinstance(settings.subsample, str) and not settings.top_share < settings.subsample:
        raise ValueError(
            f"sampling='goss' draws subsample={settings.subsample} of the rows, and those with the largest gradients "
            f"alone are top_share={settings.top_share} of them. Make subsample larger than top_share."
        )


def _check_rounds(settings: BoostingSettings) -> None:
    if not settings.drop_rate > 0:
        for name in ("skip_drop", "max_drop", "drop_by"):
            if name in settings.changed:
                raise ValueError(f"{name} says how rounds are dropped, and drop_rate=0 drops none. Set drop_rate.")
        return
    if settings.warm_start:
        raise ValueError(
            "warm_start adds to the trees of the earlier fit, and drop_rate changes what these are worth. Set "
            "warm_start=False, or drop_rate=0."
        )
    if settings.n_parallel_trees > 1:
        raise ValueError("drop_rate goes with single trees, not with n_parallel_trees. Set one of them.")


def _check_trees(settings: BoostingSettings) -> None:
    is_symmetric, is_forced = settings.growth == "symmetric", settings.forced_splits is not None
    if is_forced and is_symmetric:
        raise ValueError("forced_splits does not go with growth='symmetric', whose levels have one cut each. Drop one.")
    if is_forced and settings.interaction_cst is not None:
        raise ValueError("forced_splits does not go with interaction_cst, which may forbid them. Drop one.")
    if settings.leaves != "vector":
        return
    odd = is_symmetric or settings.draws_by_gradient or settings.n_parallel_trees > 1 or is_forced
    if odd or settings.feature_costs is not None:
        raise ValueError(
            "leaves='vector' goes with no growth='symmetric', sampling='gradient' or 'goss', n_parallel_trees, "
            "feature_costs or forced_splits. Use leaves='single'."
        )


def _check_lines(settings: BoostingSettings) -> None:
    losses = settings.loss if isinstance(settings.loss, (list, tuple)) else [settings.loss]
    if any(isinstance(loss, str) and loss in REFITTED for loss in losses):
        raise ValueError(
            f"linear_leaves fits lines by second derivatives, which loss={settings.loss!r} does not have. Use "
            "'squared_error' or 'log_cosh', or linear_leaves=False."
        )
    odd = {
        "monotonic_cst": (settings.monotonic_cst is not None, "a line may fall where its column is to rise"),
        "l1_regularization": (settings.l1_regularization > 0, "lines have squared penalties alone"),
        "hierarchical_shrinkage": (
            settings.hierarchical_shrinkage > 0,
            "it draws values to others, not lines",
        ),
        "drop_rate": (settings.drop_rate > 0, "dropped rounds are taken off by the codes of rows, not values"),
        "leaves": (settings.leaves == "vector", "a leaf has one line"),
    }
    for name, (is_given, why) in odd.items():
        if is_given:
            raise ValueError(f"linear_leaves does not go with {name}: {why}. Drop one of them.")
