"""The commands of ``spinney``: options and help only; what they do lives in a module of its own each."""

from __future__ import annotations

from importlib.util import find_spec

import click
import rich  # noqa: F401  (asked for here, so that a missing extra shows at once)

from spinney import __version__

if find_spec("polars") is None:
    raise ModuleNotFoundError("No module named 'polars'", name="polars")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spinney")
def spinney() -> None:
    r"""Trees and ensembles for tables.

    \b
    New here? Start with
      spinney demo           one tree on a small table, cross-validated and shown
      spinney demo --help    what that does, and its options
    """


@spinney.command()
@click.option(
    "--max-depth",
    type=click.IntRange(1, 20),
    default=3,
    show_default=True,
    help="Questions from the root to a leaf.",
)
@click.option("--folds", type=click.IntRange(2, 20), default=10, show_default=True, help="Cross-validation folds.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed that shuffles the folds.")
def demo(max_depth: int, folds: int, seed: int) -> None:
    r"""Tell penguins apart with one small tree.

    The table is bundled: 344 penguins of three species, with two category columns (island, sex), five number
    columns and some missing values. Nothing is encoded or filled in: the tree takes the table as it is.

    \b
    You see
      the table's shape and its classes;
      the accuracy on rows the tree has not seen, beside always
      naming the most frequent species;
      the tree itself, as questions you can answer by hand.
    """
    from spinney.cli.demo import run_demo

    run_demo(max_depth=max_depth, n_folds=folds, seed=seed)
