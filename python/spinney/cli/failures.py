"""Errors of commands: one line on stderr that names the remedy, an exit code, never a traceback."""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import click

from spinney._data.display import for_terminal

INTERRUPTED = 130  # exit code of a command ended by Ctrl-C


def _preserve_lines(text: str | None) -> str | None:
    """Replace the two characters that mark paragraphs in raw docstrings by the one that makes click preserve lines."""
    return None if text is None else inspect.cleandoc(text).replace("\n\\b\n", "\n\n\b\n")


class Command(click.Command):
    """A command whose help preserves the lines of its examples."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options["help"] = _preserve_lines(options.get("help"))
        super().__init__(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless an output would overwrite an input."""
        paths = {name: value for name, value in ctx.params.items() if isinstance(value, Path)}
        for name in _OUTPUTS & paths.keys():
            for other in paths.keys() - _OUTPUTS:
                if _is_same_file(paths[name], paths[other]):
                    raise fail(
                        f"'{paths[name]}' is an input of this command, and would be overwritten. Name another file."
                    )
        return super().invoke(ctx)


_OUTPUTS = {"out", "svg", "plot"}  # parameters that name files to write


def _is_same_file(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.is_file() and other.is_file() and one.samefile(other)
    return False


class InvalidCommand(click.UsageError):
    """A usage error that is printed in one line."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error, and where to find help."""
        path = "spinney" if self.ctx is None else self.ctx.command_path
        text = for_terminal(" ".join(self.format_message().split()))
        click.echo(f"Error: {text} See '{path} --help'.", file=file, err=True)


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except InvalidCommand:
        raise
    except click.NoSuchOption as error:
        raise InvalidCommand(_advice_on_option(error) or error.format_message(), error.ctx) from error
    except click.UsageError as error:
        raise InvalidCommand(error.format_message(), error.ctx) from error


def _advice_on_option(error: click.NoSuchOption) -> str | None:
    """Return the error for an option name of another library; None for other names."""
    from spinney._estimator.other_libraries import advise_option

    known = [] if error.ctx is None else [name for option in error.ctx.command.params for name in option.opts]
    advice = advise_option(error.option_name, known)
    return None if advice is None else f"No such option '{error.option_name}'. {advice}"


class CommandGroup(click.Group):
    """A command group that ends without a traceback when interrupted or when its output pipe is closed."""

    command_class = Command

    def __init__(self, *args: Any, **options: Any) -> None:
        options["help"] = _preserve_lines(options.get("help"))
        super().__init__(*args, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        if not args:
            return super().parse_args(ctx, args)  # prints the help
        with _errors_in_one_line():
            return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of their definitions."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            with _errors_in_one_line():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            _discard_output()
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _discard_output()
            raise click.exceptions.Exit(0) from None


def _discard_output() -> None:
    """Discard buffered output: flushing it at exit would fail, or wait for a reader that does not read."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def fail(message: str) -> click.ClickException:
    """Return the error that ends a command with exit code 1; its message becomes one line."""
    return click.ClickException(for_terminal(" ".join(message.split())))


@contextmanager
def command_errors(remedy: str = "") -> Iterator[None]:
    """Turn exceptions of the library into errors of a command."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise fail(file_error(error)) from error
    except (ValueError, TypeError, OverflowError) as error:
        text = name_options(" ".join(str(error).split()))
        raise fail(f"{text} {remedy}" if remedy else text) from error
    except MemoryError as error:
        raise fail("Not enough memory. Use fewer rows or columns.") from error


def name_options(text: str) -> str:
    """Replace the parameters of Python in an error by the options of the current command: task='x' by --task x."""
    context = click.get_current_context(silent=True)
    if context is None:
        return text
    options = {one.name: one.opts[-1] for one in context.command.params if isinstance(one, click.Option)}
    options |= {name.partition("__")[2]: option for name, option in options.items() if name and "__" in name}
    names = "|".join(sorted(map(re.escape, filter(None, options)), key=len, reverse=True))
    if not names:
        return text
    text = re.sub(r"^The '(\w+)' parameter of \w+ must be", r"\1 must be", text)
    text = re.sub(r",? or (?:an object implementing|a callable)[^.]*(?=\. Got )", "", text)
    text = re.sub(r"a str among \{(.*?)\}", lambda found: f"one of {found[1].replace(chr(39), '')}", text)
    value = r"=('[^']*'|[\w.]+)"
    text = re.sub(rf"\b(?:{names})(?:{value})? \((--[^)]*)\)", r"\2", text)  # those that name the option already
    text = re.sub(
        rf"(?<![\w.(-])({names}){value}", lambda found: f"{options[found[1]]} {found[2].strip(chr(39))}", text
    )
    text = re.sub(
        rf"^({names})(?= must|: | names? | is | requires | needs | does not | cannot )",
        lambda found: options[found[1]],
        text,
    )
    python_names = "|".join(name for name in names.split("|") if "_" in name)  # others may be plain words
    if not python_names:
        return text
    return re.sub(rf"(?<![\w.'\"(-])({python_names})\b(?![=(]|\.\w)", lambda found: options[found[1]], text)


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print each distinct warning of the library as one line on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        click.echo(f"Warning: {for_terminal(name_options(text))}", err=True)


def file_error(error: OSError, path: str | Path | None = None) -> str:
    """Return the message of a file error, with what to do."""
    name = os.fspath(path) if path is not None else error.filename
    where = f"Cannot use '{name}'" if name else "Cannot use a file"
    if isinstance(error, FileNotFoundError):
        return f"{where}: there is no such file or folder. Check the path."
    if isinstance(error, IsADirectoryError):
        return f"{where}: it is a folder. Name a file."
    if isinstance(error, PermissionError):
        return f"{where}: permission denied. Change its permissions or choose another file."
    return f"{where}: {error.strerror or error}. Check the path and the disk."
