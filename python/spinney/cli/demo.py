"""``spinney demo``: a study of the bundled penguins, and its tree as questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from spinney.cli.failures import failures_in_words
from spinney.cli.study import check_folder, keep_study, print_study, studied

if TYPE_CHECKING:
    import polars as pl


def run_demo(*, out: Path | None, minutes: float, models: list[str] | None, repeats: int | None, seed: int) -> None:
    """Study the penguins, print the leader board and the tree, and say where the report is."""
    from spinney import export_text
    from spinney.datasets import load_penguins

    folder = Path("penguins-study") if out is None else out
    check_folder(folder)
    X, y = load_penguins(as_frame="polars")
    console = Console(highlight=False)
    console.print(table_summary(X, y.to_list()), soft_wrap=True)
    console.print()
    with failures_in_words():
        options = {"minutes": minutes, "models": models, "repeats": repeats, "random_state": seed}
        found = studied(X.with_columns(species=y), "species", options)
        files = keep_study(found, folder)
    print_study(found, {})
    console.print("\nThe pruned tree, as questions:")
    with_gaps = {name for name in X.columns if X[name].null_count() > 0}
    console.print(export_text(found.tree, show_missing=with_gaps), markup=False, soft_wrap=True)
    click.echo(f"\nThe report is {Path(files['report']).resolve()}: open it in a browser.")
    click.echo(f"The best model is kept in {files['model']}. Now study a table of your own:")
    click.echo("  spinney study loans.csv --target repaid")


def table_summary(X: pl.DataFrame, species: Sequence[str]) -> str:
    """Describe the table in two lines."""
    n_missing = sum(int(X[name].null_count()) for name in X.columns)
    categories = [name for name in X.columns if is_category(X[name])]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(species).items()))
    return (
        f"Palmer penguins: {X.height} rows, {X.width} features "
        f"({len(categories)} categories: {', '.join(categories)}), {n_missing} missing values\n"
        f"Which species? {counts}"
    )


def is_category(column: pl.Series) -> bool:
    """Say whether a polars column holds categories."""
    import polars as pl

    return isinstance(column.dtype, pl.Enum | pl.Categorical | pl.String)
