"""``spinney show``: a saved tree as text, with its columns, or as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spinney.cli.failures import failures_in_words
from spinney.cli.tables import check_writable


def run_show(model_path: Path, *, svg: Path | None, max_depth: int | None, as_json: bool) -> None:
    """Print a saved tree and draw it if a file is named."""
    from spinney import export_text, load, to_dict, tree_svg
    from spinney._keep.disk import write_file

    if svg is not None:
        check_writable(svg)
    with failures_in_words():
        model = load(model_path)
        columns = described_columns(model)
        if svg is not None:
            write_file(svg, tree_svg(model, max_depth=max_depth).encode())
        if as_json:
            about = {"columns": columns, "tree": to_dict(model)}
            click.echo(json.dumps(about, ensure_ascii=False, allow_nan=False, indent=2))
            return
        text = export_text(model, max_depth=max_depth)
    console = Console(highlight=False)
    console.print(Text(f"{type(model).__name__}: {model.get_n_leaves()} leaves, depth {model.get_depth()}\n"))
    console.print(text, markup=False, soft_wrap=True)
    console.print()
    console.print(columns_table(columns))


def described_columns(model: Any) -> list[dict[str, Any]]:
    """List the columns with their kind and importance, the most important first."""
    from spinney.reading.tables import importance_columns

    kinds = {feature.name: feature.kind for feature in model.schema_.features}
    ranked = importance_columns(model)
    return [
        {"column": name, "kind": kinds[name], "importance": importance, "splits": n_splits}
        for name, importance, n_splits in zip(*ranked.values(), strict=True)
    ]


def columns_table(columns: list[dict[str, Any]]) -> Table:
    """Lay out the columns."""
    table = Table()
    table.add_column("column")
    table.add_column("kind")
    table.add_column("importance", justify="right")
    table.add_column("splits", justify="right")
    for entry in columns:
        table.add_row(Text(entry["column"]), entry["kind"], f"{entry['importance']:.3f}", str(entry["splits"]))
    return table
