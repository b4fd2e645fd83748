"""Numbers that options take, and what is said of those that they do not take."""

from __future__ import annotations

import math
from typing import Any

import click

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
