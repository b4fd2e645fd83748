"""The command group, and the arguments and options that `options.toml` declares for its commands."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spinney import __version__, _engine
from spinney._names import FITTED_BY_COMMAND, FITTED_BY_COMMAND_ALONE
from spinney.cli.failures import CommandGroup

LARGEST_SEED = 2**32 - 1


class Whole(click.IntRange):
    """An integer in a range."""

    name = "n"

    def _describe_range(self) -> str:
        """Return the range as shown in the help; empty for seeds."""
        if self.max is None:
            return f"at least {self.min}"
        return "" if self.max == LARGEST_SEED else f"{self.min} to {self.max}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            wanted = f"of at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
            raise invalid_value(param, f"must be a whole number {wanted}, not '{value}'.", ctx) from None


class Number(click.FloatRange):
    """A finite number in a range."""

    name = "x"

    def _describe_range(self) -> str:
        """Return the range as shown in the help."""
        least = f"above {self.min:g}" if self.min_open else f"{self.min:g}"
        if self.max is not None:
            return f"{least} to {self.max:g}"
        return least if self.min_open else f"at least {least}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a number."""
        try:
            number = super().convert(value, param, ctx)
            if math.isfinite(number):
                return number
        except click.BadParameter:
            pass
        least = f"{self.min:g}"
        if self.min_open:
            wanted = f"above {least}" + ("" if self.max is None else f" and up to {self.max:g}")
        else:
            wanted = f"of at least {least}" if self.max is None else f"from {least} to {self.max:g}"
        raise invalid_value(param, f"must be a number {wanted}, not '{value}'.", ctx)


class NumberOrWord(click.ParamType[float | str]):
    """A word, or a positive number: an integer unless `fractions` are allowed."""

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
            wanted = "a positive number" if self.fractions else "a whole number of at least 1"
            self.fail(f"{value!r} is neither {wanted} nor {self.word!r}.", param, ctx)
        return number


def invalid_value(param: click.Parameter | None, reason: str, ctx: click.Context | None) -> click.UsageError:
    """Return the error of an option with an invalid value."""
    return click.UsageError(f"{param.opts[0] if param is not None else 'A number'} {reason}", ctx)


_NUMBER_LOSSES = [traits.name for traits in _engine.boosting_losses() if not traits.of_classes]
_CLASS_LOSSES = list(dict.fromkeys(traits.public_name for traits in _engine.boosting_losses() if traits.of_classes))
LOSSES_ALONE = {"ranker": ("lambdamart", "pairwise"), "survival": ("cox", "aft")}
_WITHOUT_PROBABILITIES = ("stack", "vote", "linear_svm", "perceptron")
_CHOICES = {  # by their name in `options.toml`
    "model": [*FITTED_BY_COMMAND],
    "any_model": [*FITTED_BY_COMMAND, *FITTED_BY_COMMAND_ALONE],
    "studied": [
        *(word for word in FITTED_BY_COMMAND if word not in _WITHOUT_PROBABILITIES),
        *("log-boosting", "symmetric-boosting"),
    ],
    "loss": [*_NUMBER_LOSSES, *_CLASS_LOSSES, *(name for names in LOSSES_ALONE.values() for name in names)],
}
_TYPES: dict[str, Callable[[Any], click.ParamType[Any]]] = {
    "file": lambda _: click.Path(path_type=Path),
    "seed": lambda _: Whole(0, LARGEST_SEED),
    "whole": lambda bounds: Whole(*bounds),
    "number": lambda bounds: Number(*bounds),
    "above": lambda bounds: Number(bounds[0], next(iter(bounds[1:]), None), min_open=True),
    "number_or": NumberOrWord,
    "fraction_or": lambda word: NumberOrWord(word, fractions=True),
    "choices": lambda words: click.Choice(_CHOICES[words] if isinstance(words, str) else words),
}


def _quantiles(_context: click.Context, _option: click.Parameter, text: str | None) -> float | list[float] | None:
    """Parse one quantile, or several separated by commas."""
    if text is None:
        return None
    try:
        levels = [float(level) for level in text.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0 < level < 1 for level in levels) or sorted(set(levels)) != levels:
        raise click.BadParameter("Pass numbers between 0 and 1 in ascending order, such as 0.05,0.5,0.95.")
    return levels[0] if len(levels) == 1 else levels


def _labels(_context: click.Context, _option: click.Parameter, text: str | None) -> list[str] | None:
    """Parse labels separated by commas."""
    return None if text is None else text.split(",")


def _by_column(_context: click.Context, _option: click.Parameter, entries: tuple[str, ...]) -> dict[str, float] | None:
    """Parse numbers by column, such as income=5."""
    numbers = {}
    for entry in entries:
        column, sign, number = entry.rpartition("=")
        try:
            numbers[column] = float(number)
        except ValueError:
            sign = ""
        if not sign or not column:
            raise click.BadParameter(f"{entry!r} is not a column and a number, such as income=5.")
    return numbers or None


def _distinct(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> list[str] | None:
    """Return the distinct values in order; None if there are none."""
    return list(dict.fromkeys(values)) or None


_CALLBACKS: dict[str, Callable[..., object]] = {
    "quantile": _quantiles,
    "class_order": _labels,
    "feature_costs": _by_column,
    "prefer": lambda _context, _option, is_simplest: "best" if is_simplest is False else "simplest",
    **dict.fromkeys(("learners", "models", "metric", "scoring"), _distinct),
}


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spinney")
def spinney() -> None:
    r"""Trees and ensembles for tabular data.

    \b
    Start with the demo: a study of a small bundled table, with its report
      spinney demo
    \b
    Find the best model for a table (CSV, Parquet, Arrow, Excel; - is stdin)
      spinney study loans.csv --target repaid
      spinney predict loans-study/best.model applicants.csv --out predictions.csv
      spinney explain loans-study/best.model loans.csv --row 3
    \b
    Fit and print one model
      spinney fit loans.csv --target repaid --max-depth 4 --out loans.tree
      spinney show loans.tree
    \b
    Exit codes: 0 success; 1 invalid file or data; 2 invalid command;
    130 interrupted.
    """


DECLARED: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def option_of(name: str, declared: dict[str, Any]) -> str:
    """Return the option name of a parameter."""
    return str(declared.get("option", f"--{name.replace('_', '-')}"))


def _parameter(name: str, declared: dict[str, Any]) -> click.Parameter:
    """Return the click parameter of a declaration."""
    settings = {key: value for key, value in declared.items() if key not in (*_TYPES, "option", "models", "argument")}
    kind = next((make(declared[key]) for key, make in _TYPES.items() if key in declared), None)
    if "argument" in declared:
        return click.Argument([name], type=kind, **settings)
    choices = ", ".join(kind.choices) if isinstance(kind, click.Choice) else ""
    lists = {"choices": choices, "numbers": ", ".join(_NUMBER_LOSSES), "classes": ", ".join(_CLASS_LOSSES)}
    settings |= {"help": declared["help"].format(**lists), "callback": _CALLBACKS.get(name)}
    option = option_of(name, declared)
    if "/" in option:  # a flag with its opposite: None without either
        settings |= {"default": None, "type": bool}
    return click.Option([option, name], **{"type": kind, "show_default": "default" in declared} | settings)


def command(handler: Callable[..., None]) -> click.Command:
    """Return the command of a function, with the parameters declared under its name."""
    declared = DECLARED[handler.__name__]
    params = [_parameter(name, declared.get(name) or DECLARED["shared"][name]) for name in declared["parameters"]]
    return spinney.command(short_help=declared["short_help"], params=params)(handler)
