"""What trees and forests do not do with tables that lie in files."""

from __future__ import annotations

from typing import Any

from spinney._data.spool import SpooledTable
from spinney._estimator.user_criterion import is_user


def check_stream(X: Any, model: Any) -> None:
    """Refuse what would take all rows of a stream into memory, again and again."""
    if not isinstance(X, SpooledTable):
        return
    if model.max_bins is None and model._setting("splitter") != "random":
        raise ValueError(
            "max_bins=None sorts all rows at every node, and those of a stream are in files. Set max_bins=255 for cuts "
            "between that many bins of equally many rows, or draw cuts at random by extra-trees."
        )
    if is_user(model.criterion) or model.criterion == "absolute_error":
        name = model.criterion if isinstance(model.criterion, str) else type(model.criterion).__name__
        raise ValueError(
            f"criterion={name!r} sorts all rows at every node, and those of a stream are in files. Use "
            "'squared_error', 'poisson' or a criterion for classes; boosting has loss='absolute_error'."
        )
    for option, neutral in (("dialect", None), ("missing", "learned"), ("max_competitors", 0), ("oblique", None)):
        value = getattr(model, option, None) if option == "oblique" else model._setting(option)
        if value != neutral:
            raise ValueError(
                f"{option}={value!r} looks at all rows of a node in memory, and those of a stream are in files. Set "
                f"{option}={neutral!r}, or read the rows first."
            )
    if model._setting("prune") is not None and model._setting("scoring") is not None:
        raise ValueError(
            "scoring is asked of the rows as they were given, and those of a stream are in files. Prune without it."
        )
