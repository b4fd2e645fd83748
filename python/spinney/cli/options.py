"""The command group, number types of options, and options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spinney import __version__
from spinney._names import FITTED_BY_COMMAND_ALONE
from spinney.cli.failures import CommandGroup

LARGEST_SEED = 2**32 - 1


class Whole(click.IntRange):
    """A whole number of a range."""

    name = "n"

    def _describe_range(self) -> str:
        """Say the range in words, for the help; that of seeds tells nothing."""
        if self.max is None:
            return f"{self.min} and more"
        return "" if self.max == LARGEST_SEED else f"{self.min} to {self.max}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            upto = "up" if self.max is None else f"to {self.max}"
            raise misfit(param, f"must be a whole number from {self.min} {upto}, not '{value}'.", ctx) from None


class Number(click.FloatRange):
    """A finite number of a range."""

    name = "x"

    def _describe_range(self) -> str:
        """Say the range in words, for the help."""
        least = f"above {self.min:g}" if self.min_open else f"{self.min:g}"
        return f"{least} and up" if self.max is None and not self.min_open else f"{least}{self._to_most}"

    @property
    def _to_most(self) -> str:
        return "" if self.max is None else f" to {self.max:g}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number."""
        try:
            found = super().convert(value, param, ctx)
            if math.isfinite(found):
                return found
        except click.BadParameter:
            pass
        least = f"{self.min:g}"
        if self.min_open:
            wanted = f"above {least}" + ("" if self.max is None else f" and up to {self.max:g}")
        else:
            wanted = f"from {least} " + ("up" if self.max is None else f"to {self.max:g}")
        raise misfit(param, f"must be a number {wanted}, not '{value}'.", ctx)


class NumberOrWord(click.ParamType[float | str]):
    """A positive number, a whole one unless `fractions` are allowed, or a word."""

    def __init__(self, word: str, fractions: bool = False) -> None:
        self.name, self.word, self.fractions = f"number or {word}", word, fractions

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number, or the word."""
        if value == self.word:
            return self.word
        try:
            number = float(str(value)) if self.fractions else int(str(value))
        except ValueError:
            number = 0
        if not number > 0:
            wanted = "a positive number" if self.fractions else "a number from 1 up"
            self.fail(f"{value!r} is neither {wanted} nor {self.word!r}.", param, ctx)
        return number


def misfit(param: click.Parameter | None, words: str, ctx: click.Context | None) -> click.UsageError:
    """Make the error of an option whose value does not do."""
    return click.UsageError(f"{param.opts[0] if param is not None else 'A number'} {words}", ctx)


FILE = click.Path(path_type=Path)
encoding_option = click.option(
    "--encoding", metavar="E", help="Encoding of a CSV file that is not UTF-8, such as latin-1."
)
delimiter_option = click.option(
    "--delimiter", metavar="D", help="What separates CSV columns: one character, or tab. Default: comma; tab for .tsv."
)
target_option = click.option("--target", metavar="COL", help="Column to predict.  [required]")
task_option = click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="auto: classification if the target holds labels or at most ten different whole numbers.",
)
drop_option = click.option(
    "--drop", multiple=True, metavar="COL", help="Column to leave out; may be given several times."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spinney")
def spinney() -> None:
    r"""Trees and ensembles for tables.

    \b
    New here? Start with
      spinney demo           study a small table, and look at the report
    \b
    With a table of your own (CSV, Parquet, Arrow, Excel; - is standard input)
      spinney study loans.csv --target repaid
      spinney predict loans-study/best.model applicants.csv --out answers.csv
      spinney explain loans-study/best.model loans.csv --row 3
    \b
    One model, chosen by hand
      spinney fit loans.csv --target repaid --max-depth 4 --out loans.tree
      spinney show loans.tree
    \b
    Exit codes: 0 done; 1 a file or its data cannot be used; 2 a command was
    not understood; 130 interrupted.
    """


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
