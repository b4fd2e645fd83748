"""How many tables Hypothesis tries: a few in the quick run, many where CI sweeps."""

import os

from hypothesis import settings

FACTOR = int(os.environ.get("SPINNEY_EXAMPLES", "1"))


def examples(quick: int, **more: bool) -> settings:
    """Settings of a property: `quick` examples, times what the variable SPINNEY_EXAMPLES says."""
    return settings(max_examples=quick * FACTOR, deadline=None, **more)
