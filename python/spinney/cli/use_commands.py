"""Commands that use models that are kept: options and help only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spinney.cli.options import FILE, Whole, delimiter_option, encoding_option, json_option, spinney

_FORMATS = ["onnx", "c", "sql", "xgboost", "lightgbm", "treelite", "pmml"]


@spinney.command(short_help="Predict the rows of a table with a kept model.")
@click.argument("model", type=FILE)
@click.argument("table", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", help="Write here, CSV or Parquet by its suffix; else CSV to stdout.")
@click.option("--proba", is_flag=True, help="Add one column per class with its share.")
@click.option("--offset", metavar="COL", help="Boosting: column with the score that each row starts from.")
@encoding_option
@delimiter_option
def predict(
    model: Path,
    table: Path,
    out: Path | None,
    proba: bool,
    offset: str | None,
    encoding: str | None,
    delimiter: str | None,
) -> None:
    r"""Predict each row of TABLE with a MODEL that study or fit has kept.

    Columns are found by name; others, such as the target, are ignored. Rows keep their order, and the table may be
    larger than memory.

    \b
    Example
      spinney predict loans.tree applicants.csv --proba | head
      spinney predict loans-study/best.model applicants.csv --out answers.csv
      spinney predict loans.model - < applicants.csv
    """
    from spinney.cli.predict import run_predict

    run_predict(model, table, out=out, proba=proba, offset=offset, delimiter=delimiter, encoding=encoding)


@spinney.command(short_help="Print a kept model as questions, or draw it.")
@click.argument("model", type=FILE)
@click.option("--svg", type=FILE, metavar="FILE", help="Also draw the tree here.")
@click.option("--max-depth", type=Whole(0), metavar="N", help="Deepest level to print and draw.")
@click.option("--tree", type=Whole(1), metavar="N", help="Of an ensemble: show tree N, counted from 1.")
@click.option("--json", "as_json", is_flag=True, help="Print columns and all nodes as JSON.")
def show(model: Path, svg: Path | None, max_depth: int | None, tree: int | None, as_json: bool) -> None:
    r"""Print a kept MODEL as questions, with its columns and how much each matters; of an ensemble, the columns.

    \b
    Example
      spinney show loans.tree --max-depth 3 --svg loans.svg
      spinney show loans.model --tree 1
    """
    from spinney.cli.use import run_show

    run_show(model, svg=svg, max_depth=max_depth, number=tree, as_json=as_json)


@spinney.command(short_help="Say which columns matter, or why a row is as it is.")
@click.argument("model", type=FILE)
@click.argument("table", type=FILE)
@click.option("--target", metavar="COL", help="Which columns matter: what the score falls by when one is shuffled.")
@click.option("--column", metavar="COL", help="What a column does: the mean prediction for each of its values.")
@click.option("--row", type=Whole(1), metavar="N", help="Why row N, counted from 1, gets its prediction.")
@click.option("--want", metavar="W", help="With --row: the smallest change for this class, or for values as in 10:20.")
@encoding_option
@delimiter_option
@json_option
def explain(model: Path, table: Path, encoding: str | None, delimiter: str | None, as_json: bool, **asked: Any) -> None:
    r"""Explain a kept MODEL by the rows of TABLE: which columns matter, what one does, or why a row is as it is.

    \b
    Example
      spinney explain loans-study/best.model loans.csv --target repaid
      spinney explain loans-study/best.model loans.csv --column income
      spinney explain loans-study/best.model loans.csv --row 3 --want yes
    """
    if sum(asked[name] is not None for name in ("target", "column", "row")) != 1:
        raise click.UsageError("Say what to explain: one of --target COL, --column COL and --row N.")
    if asked["want"] is not None and asked["row"] is None:
        raise click.UsageError("--want goes with --row.")
    from spinney.cli.use import Question, run_explain

    run_explain(model, table, Question(**asked), delimiter=delimiter, encoding=encoding, as_json=as_json)


@spinney.command(short_help="Write a kept model for ONNX, C, SQL and others.")
@click.argument("model", type=FILE)
@click.option("--to", type=click.Choice(_FORMATS), required=True, help="The format.")
@click.option("--out", type=FILE, metavar="FILE", help="Write here; else to stdout.")
@click.option("--name", metavar="NAME", help="sql: the table to predict (data). c: what names begin with (model).")
def export(model: Path, to: str, out: Path | None, name: str | None) -> None:
    r"""Write a kept MODEL in another format, for a runtime, a database or a compiler.

    What a format cannot hold is refused by name. The guide has a table of what each holds.

    \b
    Example
      spinney export loans.tree --to sql --name applicants > predict.sql
      spinney export loans.model --to onnx --out loans.onnx
    """
    from spinney.cli.use import run_export

    run_export(model, to=to, out=out, name=name)


@spinney.command(short_help="Take over a model of another library.")
@click.argument("file", type=FILE)
@click.argument("out", type=FILE, required=False)
def convert(file: Path, out: Path | None) -> None:
    r"""Turn a model FILE of another library into one of ours, OUT, or FILE with the ending .spinney.

    It takes what XGBoost (JSON, UBJSON), LightGBM (text, JSON), CatBoost and treelite (JSON) save. The library need not
    be installed.

    \b
    Example
      spinney convert model.ubj
      spinney predict model.spinney applicants.csv
    """
    from spinney.cli.use import run_convert

    run_convert(file, out)


@spinney.command(short_help="Make your shell complete commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    r"""Print what makes SHELL complete commands, options and their values.

    \b
    Example
      spinney completion bash >> ~/.bashrc
      spinney completion zsh >> ~/.zshrc
      spinney completion fish > ~/.config/fish/completions/spinney.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(spinney, {}, "spinney", "_SPINNEY_COMPLETE").source())
