"""Commands that study tables: options and help only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spinney._names import FITTED_BY_COMMAND
from spinney.cli.options import (
    FILE,
    LARGEST_SEED,
    Number,
    Whole,
    delimiter_option,
    drop_option,
    encoding_option,
    json_option,
    spinney,
    target_option,
    task_option,
)

_WITHOUT_SHARES = ("stack", "vote", "linear_svm", "perceptron")
STUDIED = [*(word for word in FITTED_BY_COMMAND if word not in _WITHOUT_SHARES), "log-boosting", "symmetric-boosting"]


@spinney.command(short_help="Study a small bundled table, and look at the report.")
@click.option("--out", type=FILE, metavar="FOLDER", help="Keep model and report here.  [default: penguins-study]")
@click.option(
    "--minutes",
    type=Number(0.0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="M",
    help="Time to spend at most.",
)
@click.option("--model", "models", multiple=True, type=click.Choice(STUDIED), help="Model to study.  [default: all]")
@click.option("--repeats", type=Whole(1, 100), metavar="N", help="Times folds are drawn.  [default: up to 3]")
@click.option("--seed", type=Whole(0, LARGEST_SEED), default=0, show_default=True, help="Seed of the study.")
def demo(out: Path | None, minutes: float, models: tuple[str, ...], repeats: int | None, seed: int) -> None:
    r"""Study the bundled penguins, and say where the report is.

    The table is bundled: 344 penguins of three species, with two category columns (island, sex), five number
    columns and some missing values. Nothing is encoded or filled in.

    \b
    You see
      the table's shape and its classes;
      the leader board: how well each model does on rows that it has not
      seen, beside always saying the same;
      the pruned tree, as questions you can answer by hand;
      where the report is: open it in a browser.

    \b
    Example
      spinney demo
      spinney demo --model tree --model forest --out penguins
    """
    from spinney.cli.study import run_demo

    run_demo(out=out, minutes=minutes, models=list(dict.fromkeys(models)) or None, repeats=repeats, seed=seed)


@spinney.command(short_help="Compare a family of models on your table; report.")
@click.argument("table", type=FILE)
@target_option
@click.option("--out", type=FILE, metavar="FOLDER", help="Keep model and report here.  [default: TABLE-study]")
@click.option(
    "--minutes",
    type=Number(0.0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="M",
    help="Time to spend, the report included.",
)
@click.option("--group", metavar="COL", help="Column: rows with the same value stay together.")
@click.option("--time", metavar="COL", help="Column: rows to judge by come later than those learned from.")
@click.option(
    "--metric",
    multiple=True,
    metavar="M",
    help="Scorer of scikit-learn, such as roc_auc; the first decides. May be given several times.",
)
@task_option
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(STUDIED),
    help="Model to study; give it several times.  [default: the usual ones]",
)
@click.option("--peers", is_flag=True, help="Also compare scikit-learn, LightGBM, XGBoost, CatBoost, where installed.")
@click.option("--keep", multiple=True, metavar="COL", help="Column to learn from, whatever it looks like.")
@drop_option
@click.option("--folds", type=Whole(2, 100), default=5, show_default=True, metavar="N", help="Folds.")
@click.option("--repeats", type=Whole(1, 100), metavar="N", help="Times folds are drawn.  [default: up to 3]")
@click.option("--seed", type=Whole(0, LARGEST_SEED), default=0, show_default=True, help="Seed of folds and models.")
@encoding_option
@delimiter_option
@json_option
def study(
    table: Path,
    target: str | None,
    out: Path | None,
    metric: tuple[str, ...],
    models: tuple[str, ...],
    seed: int,
    delimiter: str | None,
    encoding: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Study TABLE: fit a family of models, compare them honestly, keep the best, write a report.

    TABLE is a CSV, Parquet, Arrow or Excel file, or - for standard input. Columns are taken as they are: numbers, text,
    dates, gaps. A fifth of the rows is locked away. The others are learned from: a pruned tree, boosting, forests, a
    linear model, AdaBoost, neighbours, support vectors and a stack of them are compared on the same folds, beside
    always saying the same. Columns that name rows or give the target away are left out and named; --keep brings them
    back.

    The same command gives the same result, unless time runs out: then it says what was cut. Ctrl-C keeps what is done.
    Exit codes: 0 done; 1 the table cannot be used; 2 the command was not understood; 130 interrupted.

    \b
    Example
      spinney study loans.csv --target repaid
      spinney study loans.csv --target repaid --group customer --minutes 10
      spinney study loans.csv --target repaid --time granted --peers
    \b
    Then open loans-study/report.html, and use what is kept
      spinney predict loans-study/best.model applicants.csv
      spinney explain loans-study/best.model loans.csv --row 3
    """
    from spinney.cli.fit_table import Source
    from spinney.cli.study import run_study
    from spinney.cli.tables import require_target

    target = require_target(target, table, delimiter)
    options |= {"metric": list(metric) or None, "models": list(dict.fromkeys(models)) or None, "random_state": seed}
    run_study(Source(table, target, delimiter, encoding), options, out=out, as_json=as_json)


@spinney.command(short_help="Time models beside other libraries.")
@click.argument("table", type=FILE, required=False)
@click.option("--target", metavar="COL", help="Column to predict.")
@task_option
@click.option("--rows", type=Whole(100), default=20_000, show_default=True, help="Rows, without a TABLE.")
@click.option("--columns", type=Whole(1), default=20, show_default=True, help="Columns, without a TABLE.")
@click.option("--rounds", type=Whole(1, 100), default=3, show_default=True, help="Fits of each model.")
@click.option("--seed", type=Whole(0, LARGEST_SEED), default=0, show_default=True, help="Seed.")
@delimiter_option
@encoding_option
@json_option
def bench(
    table: Path | None,
    target: str | None,
    rows: int,
    columns: int,
    rounds: int,
    seed: int,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Time models on TABLE, or on made-up numbers, beside other libraries where they are installed.

    Every model has its defaults and all cores. A fifth of the rows is held out: the loss on them stands beside the
    times, because fast and wrong is not fast. Models take turns, and medians are printed.

    \b
    Example
      spinney bench
      spinney bench loans.csv --target repaid --rounds 5
    """
    from spinney.cli.fit_table import Source
    from spinney.cli.study import MadeTable, run_bench

    if (table is None) != (target is None):
        raise click.UsageError("TABLE and --target go together. Pass both, or neither.")
    made = MadeTable(rows, columns)
    source = made if table is None else Source(table, str(target), **options)
    run_bench(source, rounds=rounds, seed=seed, as_json=as_json)
