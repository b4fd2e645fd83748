"""The command itself, and what its commands share."""

from __future__ import annotations

from pathlib import Path

import click

from spinney import __version__
from spinney.cli.failures import CommandGroup

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
