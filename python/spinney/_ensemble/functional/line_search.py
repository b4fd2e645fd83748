"""How far to go along a direction."""

from __future__ import annotations

from collections.abc import Callable

LONGEST = 2.0**10  # steps are not longer: a loss may fall for ever where a function tells the classes apart
_MOST_HALVINGS, _CLOSE = 100, 1e-12


def least_along(slope: Callable[[float], float], first: float) -> float:
    """Step at which a convex loss is least, from the slope along the way; 0 if it does not fall at all.

    The step is never beyond the least: the slope there is not positive, so that the loss has fallen.

    Parameters
    ----------
    slope : callable
        Derivative of the loss by the length of the step.
    first : float
        A step to try first.
    """
    if not slope(0.0) < 0:
        return 0.0
    low, high = 0.0, first
    while slope(high) < 0:
        if high >= LONGEST:
            return high
        low, high = high, 2 * high
    if slope(high) == 0:
        return high
    below, above = slope(low), slope(high)
    for _ in range(_MOST_HALVINGS):
        if high - low <= _CLOSE * high:
            break
        # the secant, kept away from the ends so that both move
        guess = low + (high - low) * min(max(below / (below - above), 0.1), 0.9)
        value = slope(guess)
        if value == 0:
            return guess
        if value < 0:
            low, below = guess, value
        else:
            high, above = guess, value
    return low
