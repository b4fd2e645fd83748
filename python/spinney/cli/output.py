"""Output of commands on stdout: JSON, lines and tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinney._data.display import for_terminal
from spinney._evaluate.statistics import finite_or_none


def print_json(result: object) -> None:
    """Print as JSON; null for numbers that are not finite."""
    click.echo(json.dumps(finite_or_none(result), ensure_ascii=False, allow_nan=False, indent=2, default=str))


def print_lines(*lines: str | Table) -> None:
    """Print texts unchanged, and tables."""
    console = Console(highlight=False)
    for line in lines:
        console.print(Text(for_terminal(line)) if isinstance(line, str) else line, soft_wrap=isinstance(line, str))


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]], n_left: int | None = None) -> Table:
    """Return a table of cells; columns after the first `n_left` are right-aligned."""
    table = Table(show_header=any(head))
    for k, name in enumerate(head):
        table.add_column(Text(for_terminal(name)), justify="left" if n_left is None or k < n_left else "right")
    for row in rows:
        table.add_row(*(Text(for_terminal(cell)) for cell in row))
    return table
