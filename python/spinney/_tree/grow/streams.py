"""What trees and forests do not do with tables that lie in files."""

from __future__ import annotations

from spinney._data.spool import SpooledTable
from spinney._data.types import TableLike
from spinney._estimator.user_criterion import is_user
from spinney._tree.grow.settings import GrowthSettings


def check_stream(X: TableLike, settings: GrowthSettings) -> None:
    """Refuse what would take all rows of a stream into memory, again and again."""
    if not isinstance(X, SpooledTable):
        return
    if settings.sorts_all_rows:
        raise ValueError(
            "max_bins=None sorts all rows at every node, and those of a stream are in files. Set max_bins=255 for cuts "
            "between that many bins of equally many rows, or draw cuts at random by extra-trees."
        )
    if is_user(settings.criterion) or settings.criterion == "absolute_error":
        name = settings.criterion if isinstance(settings.criterion, str) else type(settings.criterion).__name__
        raise ValueError(
            f"criterion={name!r} sorts all rows at every node, and those of a stream are in files. Use "
            "'squared_error', 'poisson' or a criterion for classes; boosting has loss='absolute_error'."
        )
    for option, neutral in (("dialect", None), ("missing", "learned"), ("max_competitors", 0), ("oblique", None)):
        value = getattr(settings, option)
        if value != neutral:
            raise ValueError(
                f"{option}={value!r} looks at all rows of a node in memory, and those of a stream are in files. Set "
                f"{option}={neutral!r}, or read the rows first."
            )
    if settings.prune is not None and settings.scoring is not None:
        raise ValueError(
            "scoring is asked of the rows as they were given, and those of a stream are in files. Prune without it."
        )
