"""Warnings and refusals before fits of very many classes."""

from __future__ import annotations

from spinney._data.display import warn

_MANY = 1000
MOST_PAIRS = 500_000  # of classes, with a machine each


def warn_of_passes(n_classes: int, n_rows: int, estimator: str) -> None:
    """Warn that a fit reads all rows for each of very many classes."""
    if n_classes >= _MANY:
        warn(
            f"{estimator} computes with {n_rows:,} rows for each of {n_classes:,} classes, many times, which can take "
            "hours. Ctrl-C ends the fit. DecisionTreeClassifier and KNeighborsClassifier take a time that grows with "
            "the rows and the classes, not with their product."
        )


def refuse_pairs(n_classes: int, estimator: str) -> None:
    """Refuse a machine for each pair of very many classes."""
    n_pairs = n_classes * (n_classes - 1) // 2
    if n_pairs > MOST_PAIRS:
        raise ValueError(
            f"{estimator} fits a machine for each pair of classes: {n_pairs:,} of {n_classes:,} classes, but at most "
            f"{MOST_PAIRS:,} are possible. Use SVC(multi_class='ovr') or LinearSVC, which fit one for each class."
        )
