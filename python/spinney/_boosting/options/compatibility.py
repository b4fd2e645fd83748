"""Settings of a booster that do not go together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from spinney._boosting.loss import TRAITS
from spinney._boosting.settings import BoostingSettings

_READ_BY: dict[str, tuple[str, ...]] = {  # parameters of losses: those that read them
    "distribution": ("aft",),
    "scale": ("aft",),
    "ties": ("cox",),
}
for _name, _traits in TRAITS.items():
    if _traits.parameter is not None:
        _READ_BY[_traits.parameter.name] = (*_READ_BY.get(_traits.parameter.name, ()), _name)
_ALPHA = frozenset({"quantile", "huber_share"})  # what scikit-learn's word sets


@dataclass(frozen=True)
class Conflict:
    """Settings that would do nothing, or the wrong thing, beside others.

    Attributes
    ----------
    holds : callable
        Whether settings are in conflict.
    message : str
        What is wrong and what to do, in which `s` stands for the settings.
    """

    holds: Callable[[BoostingSettings], bool]
    message: str


def check_options(settings: BoostingSettings) -> None:
    """Refuse settings that do not go together."""
    _check_loss_parameters(settings)
    for conflict in CONFLICTS:
        if conflict.holds(settings):
            raise ValueError(conflict.message.format(s=settings))


def _check_loss_parameters(settings: BoostingSettings) -> None:
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


def _refits_leaves(settings: BoostingSettings) -> bool:
    losses = settings.loss if isinstance(settings.loss, (list, tuple)) else [settings.loss]
    return any(isinstance(loss, str) and loss in TRAITS and TRAITS[loss].refits_leaves for loss in losses)


def _drops(settings: BoostingSettings) -> bool:
    return settings.drop_rate > 0


def _is_symmetric(settings: BoostingSettings) -> bool:
    return settings.growth == "symmetric"


def _is_forced(settings: BoostingSettings) -> bool:
    return settings.forced_splits is not None


def _is_parallel(settings: BoostingSettings) -> bool:
    return settings.n_parallel_trees > 1


def _has_vectors(settings: BoostingSettings) -> bool:
    return settings.leaves == "vector"


def _not_with_lines(name: str, why: str, holds: Callable[[BoostingSettings], bool]) -> Conflict:
    message = f"linear_leaves does not go with {name}: {why}. Drop one of them."
    return Conflict(lambda s: s.linear_leaves and holds(s), message)


CONFLICTS = (
    Conflict(
        lambda s: s.draws_by_gradient and _refits_leaves(s),
        "sampling={s.sampling!r} draws rows by the size of their gradients, which loss={s.loss!r} does not tell. Use "
        "sampling='uniform'.",
    ),
    Conflict(
        lambda s: s.draws_by_gradient and _is_parallel(s),
        "n_parallel_trees goes with rows drawn alike. Use sampling='uniform'.",
    ),
    Conflict(
        lambda s: s.sampling == "goss" and not isinstance(s.subsample, str) and s.top_share >= s.subsample,
        "sampling='goss' draws subsample={s.subsample} of the rows, and those with the largest gradients alone are "
        "top_rate={s.top_share} of them. Make subsample larger than top_rate.",
    ),
    Conflict(
        lambda s: not _drops(s) and (s.skip_drop > 0 or s.max_drop is not None or s.drop_by != "uniform"),
        "dart says how rounds are dropped, and its rate=0 drops none. Set rate, or dart=None.",
    ),
    Conflict(
        lambda s: _drops(s) and s.warm_start,
        "warm_start adds to the trees of the earlier fit, and dart changes what these are worth. Set warm_start=False, "
        "or dart=None.",
    ),
    Conflict(
        lambda s: _drops(s) and _is_parallel(s),
        "dart goes with single trees, not with n_parallel_trees. Set one of them.",
    ),
    Conflict(
        lambda s: _is_forced(s) and _is_symmetric(s),
        "forced_splits does not go with symmetric growth, whose levels have one cut each. Drop one.",
    ),
    Conflict(
        lambda s: _is_forced(s) and s.interaction_cst is not None,
        "forced_splits does not go with interaction_cst, which may forbid them. Drop one.",
    ),
    Conflict(
        lambda s: (
            _has_vectors(s)
            and (
                _is_symmetric(s)
                or s.draws_by_gradient
                or _is_parallel(s)
                or _is_forced(s)
                or s.feature_costs is not None
            )
        ),
        "leaves='vector' goes with no growth='symmetric', sampling='gradient' or 'goss', n_parallel_trees, "
        "feature_costs or forced_splits. Use leaves='single'.",
    ),
    Conflict(
        lambda s: s.linear_leaves and _refits_leaves(s),
        "linear_leaves fits lines by second derivatives, which loss={s.loss!r} does not have. Use 'squared_error' or "
        "'log_cosh', or linear_leaves=False.",
    ),
    _not_with_lines(
        "monotonic_cst", "a line may fall where its column is to rise", lambda s: s.monotonic_cst is not None
    ),
    _not_with_lines("l1 of regularization", "lines have squared penalties alone", lambda s: s.l1_regularization > 0),
    _not_with_lines(
        "hierarchical_shrinkage", "it draws values to others, not lines", lambda s: s.hierarchical_shrinkage > 0
    ),
    _not_with_lines("dart", "dropped rounds are taken off by the codes of rows, not values", _drops),
    _not_with_lines("leaves='vector'", "a leaf has one line", _has_vectors),
)
