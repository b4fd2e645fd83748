"""How much is tried: a few tables and combinations of parameters in the quick run, many where CI sweeps."""

import os
from itertools import product
from math import prod

import pytest
from hypothesis import settings

FACTOR = int(os.environ.get("SPINNEY_EXAMPLES", "1"))


def examples(quick: int, **more: bool) -> settings:
    """Settings of a property: `quick` examples, times the variable SPINNEY_EXAMPLES."""
    return settings(max_examples=quick * FACTOR, deadline=None, **more)


def covering(**lists):
    """Arguments of `pytest.mark.parametrize` for all combinations; in the quick run each entry comes at least once.

    >>> _, found = covering(letter=["a", "b", "c"], number=[1, 2])
    >>> [combination.values for combination in found if not combination.marks]
    [('a', 1), ('b', 2), ('c', 1)]
    """
    longest, *others = sorted(lists, key=lambda name: -len(lists[name]))
    quick = set()
    for i in range(max(len(lists[longest]), prod(len(lists[name]) for name in others))):
        place, at = {longest: i % len(lists[longest])}, i
        for name in others:
            place[name], at = at % len(lists[name]), at // len(lists[name])
        quick.add(tuple(place[name] for name in lists))
    chosen = [
        pytest.param(
            *(lists[name][k] for name, k in zip(lists, places, strict=True)),
            marks=() if places in quick else pytest.mark.slow,
        )
        for places in product(*(range(len(entries)) for entries in lists.values()))
    ]
    return tuple(lists), chosen
