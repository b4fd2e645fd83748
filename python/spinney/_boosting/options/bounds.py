"""Values that the options of a booster may have, by the engine's table of options."""

from __future__ import annotations

import math
from functools import cache
from numbers import Integral, Real

from sklearn.utils._param_validation import Interval

import spinney._engine as _engine


@cache
def traits() -> dict[str, _engine.OptionTraits]:
    """Return the engine's options that are numbers, by name."""
    return {option.name: option for option in _engine.boosting_options()}


def bounds(name: str) -> Interval:
    """Return the numbers that the engine takes for an option, as scikit-learn checks them."""
    option = traits()[name]
    number = int if option.type == "int" else float
    high = None if math.isinf(option.high) else number(option.high)
    return Interval(Integral if option.type == "int" else Real, number(option.low), high, closed=option.closed)
