"""How a command fails: one line on stderr that names the remedy, an exit code, never a traceback."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

import click

INTERRUPTED = 130  # what shells report for a command ended by Ctrl-C


def _with_kept_lines(text: str | None) -> str | None:
    """Turn the two characters that mark paragraphs in raw docstrings into the one by which click keeps their lines."""
    return None if text is None else inspect.cleandoc(text).replace("\n\\b\n", "\n\n\b\n")


class Command(click.Command):
    """A command whose help keeps the lines of its examples."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options["help"] = _with_kept_lines(options.get("help"))
        super().__init__(*args, **options)


class Misunderstood(click.UsageError):
    """A command that was not understood, said in one line."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print what was not understood, and where to read on."""
        path = "spinney" if self.ctx is None else self.ctx.command_path
        text = " ".join(self.format_message().split())
        click.echo(f"Error: {text} '{path} --help' tells more.", file=file, err=True)


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except Misunderstood:
        raise
    except click.NoSuchOption as error:
        raise Misunderstood(_other_option(error) or error.format_message(), error.ctx) from error
    except click.UsageError as error:
        raise Misunderstood(error.format_message(), error.ctx) from error


def _other_option(error: click.NoSuchOption) -> str | None:
    """Say what an option is here that goes by another library's word; None if it does not."""
    from spinney._estimator.other_libraries import advise_option

    known = [] if error.ctx is None else [name for option in error.ctx.command.params for name in option.opts]
    advice = advise_option(error.option_name, known)
    return None if advice is None else f"No such option '{error.option_name}'. {advice}"


class CommandGroup(click.Group):
    """Commands that end quietly when interrupted, or when the reader of their output has gone."""

    command_class = Command

    def __init__(self, *args: Any, **options: Any) -> None:
        options["help"] = _with_kept_lines(options.get("help"))
        super().__init__(*args, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options that stand before the command."""
        if not args:
            return super().parse_args(ctx, args)  # prints the help
        with _in_one_line():
            return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which people need them, which is that of their definitions."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            with _in_one_line():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            _forget_output()
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_output()
            raise click.exceptions.Exit(0) from None


def _forget_output() -> None:
    """Send what is still buffered nowhere: flushing it at exit would fail, or wait for a reader that does not read."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def fail(message: str) -> click.ClickException:
    """Make the error that ends a command with exit code 1; its message becomes one line."""
    return click.ClickException(" ".join(message.split()))


@contextmanager
def failures_in_words(remedy: str = "") -> Iterator[None]:
    """Turn what the library raises on unusable data into the error of a command."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise fail(os_failure(error)) from error
    except (ValueError, TypeError, OverflowError) as error:
        text = " ".join(str(error).split())
        raise fail(f"{text} {remedy}" if remedy else text) from error
    except MemoryError as error:
        raise fail("There is not enough memory for this. Use fewer rows or columns.") from error


@contextmanager
def warnings_in_words() -> Iterator[None]:
    """Turn the library's warnings into one line each on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        click.echo(f"Warning: {text}", err=True)


def os_failure(error: OSError, path: str | Path | None = None) -> str:
    """Say what went wrong with a file, and what to do."""
    name = os.fspath(path) if path is not None else error.filename
    where = f"Cannot use '{name}'" if name else "Cannot use a file"
    if isinstance(error, FileNotFoundError):
        return f"{where}: there is no such file or folder. Check the path."
    if isinstance(error, IsADirectoryError):
        return f"{where}: it is a folder. Name a file."
    if isinstance(error, PermissionError):
        return f"{where}: permission denied. Change its permissions or choose another file."
    return f"{where}: {error.strerror or error}. Check the path and the disk."


def nearest(name: str, known: list[str]) -> str:
    """Suggest the nearest name, or list those there are."""
    by_lower_case = {other.lower(): other for other in reversed(known)}
    close = get_close_matches(name.lower(), by_lower_case, n=1)
    if close:
        return f"Did you mean '{by_lower_case[close[0]]}'?"
    more = ", …" if len(known) > 8 else ""
    return f"It has: {', '.join(known[:8])}{more}."
