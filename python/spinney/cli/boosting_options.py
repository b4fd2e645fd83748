"""Options of ``spinney fit`` that say how boosting grows its trees and which rows and columns these see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from spinney._names import FITTED_BY_COMMAND_ALONE
from spinney.cli.numbers import Number, Whole

_GROWTH = ("leaf", "depth", "symmetric")
_SAMPLING = ("uniform", "gradient", "goss")
BOOSTING_OPTIONS = dict.fromkeys(  # models that each is for
    (
        *("growth", "subsample", "sampling", "growth__n_parallel_trees", "dart"),
        *("regularization__hierarchical_shrinkage", "linear_leaves", "feature_costs"),
    ),
    ("boosting", *FITTED_BY_COMMAND_ALONE),
)


def _by_column(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, float] | None:
    """Read numbers by column, as in income=5."""
    found = {}
    for entry in given:
        column, sign, number = entry.rpartition("=")
        try:
            found[column] = float(number)
        except ValueError:
            sign = ""
        if not sign or not column:
            raise click.BadParameter(f"{entry!r} is not a column and a number, such as income=5.")
    return found or None


_OPTIONS = (
    click.option(
        "--growth",
        type=click.Choice(_GROWTH),
        metavar="G",
        help="Boosting: which leaf is split next: leaf (the one that gains most), depth (level by level), symmetric "
        "(all of a level by one cut).  [default: leaf]",
    ),
    click.option(
        "--subsample",
        type=Number(0.0, 1.0, min_open=True),
        metavar="SHARE",
        help="Boosting: share of the rows that each round draws.",
    ),
    click.option(
        "--sampling",
        type=click.Choice(_SAMPLING),
        metavar="S",
        help="Boosting: which rows are drawn: uniform (all alike), gradient (those with large gradients rather than "
        "others), goss (those with the largest, and some of the others).  [default: uniform]",
    ),
    click.option(
        "--parallel-trees",
        "growth__n_parallel_trees",
        type=Whole(1),
        metavar="N",
        help="Boosting: so many trees in a row fit the same scores, and count for their mean.  [default: 1]",
    ),
    click.option(
        "--dart",
        type=Number(0.0, 1.0),
        metavar="SHARE",
        help="Boosting: fraction of the earlier rounds that each is fitted without (DART).  [default: 0]",
    ),
    click.option(
        "--hierarchical-shrinkage",
        "regularization__hierarchical_shrinkage",
        type=Number(0.0),
        metavar="S",
        help="Boosting: strength with which values of nodes are drawn to those above them.  [default: 0]",
    ),
    click.option(
        "--linear-leaves",
        is_flag=True,
        default=None,
        help="Boosting: leaves may be lines of the columns on their path, not values alone.",
    ),
    click.option(
        "--feature-cost",
        "feature_costs",
        multiple=True,
        callback=_by_column,
        metavar="COL=PRICE",
        help="Boosting: divide what splits on a column gain by its price; may be given several times.",
    ),
)


def boosting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add them to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
