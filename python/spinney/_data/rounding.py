"""The unit of a rounded column."""

from __future__ import annotations

import numpy as np

from spinney._data.types import Floats

_FEWEST_MULTIPLES = 0.9  # fraction of rows
_TOLERANCE = 1e-6  # in units


def unit_of(values: Floats) -> float | None:
    """Return the unit to which numbers are rounded: the most frequent gap between neighbouring values.

    None if most values are different, or if more than a tenth of them are not multiples of the gap.
    """
    distinct = np.unique(values)
    if not 1 < len(distinct) <= len(values) / 2:
        return None
    digits = 9 - int(np.floor(np.log10(distinct[-1] - distinct[0])))
    gaps, counts = np.unique(np.diff(distinct).round(digits), return_counts=True)
    unit = float(gaps[counts.argmax()])
    if not unit > 0:
        return None
    multiple = values / unit
    is_multiple = np.abs(multiple - multiple.round()) < _TOLERANCE * np.maximum(1.0, np.abs(multiple))
    return unit if is_multiple.mean() >= _FEWEST_MULTIPLES else None
