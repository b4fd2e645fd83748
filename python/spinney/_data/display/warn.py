"""Warnings that point at the line of the user's that led to them, however deep in spinney they arise."""

from __future__ import annotations

import sys
import warnings


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn the nearest caller that is not spinney's own code."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "spinney":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
