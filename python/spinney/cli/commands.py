"""The commands of ``spinney``: help and handlers. What they do is imported when they run, so that help is quick."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import rich  # noqa: F401  (asked for here, so that a missing extra shows at once)

from spinney.cli.options import DECLARED, LOSSES_ALONE, command, option_of, spinney

if TYPE_CHECKING:
    from spinney.cli.fit_table import Source

__all__ = ["spinney"]

if find_spec("polars") is None:
    raise ModuleNotFoundError("No module named 'polars'", name="polars")

_COMPARED = ["tree", "forest", "extra-trees", "boosting", "linear"]
_WHY_NOT_AUTO = {
    "functional": "Functional boosting has no rows out of bag. Pass the number of rounds, or leave it out.",
    "adaboost": "AdaBoost has no rows out of bag. Pass the number of rounds, or leave it out.",
    "extra-trees": "Extra-trees see every row, so that none is out of bag. Pass a number, or --model forest.",
}


def _check_options(kind: str, options: dict[str, Any], folds: int) -> None:
    """Refuse options that do not go with a kind of model."""
    if kind == "tree" and options["n_estimators"] is not None:
        raise click.BadParameter("It is for ensembles. Pass --model forest or boosting too.", param_hint="'--trees'")
    if kind in _WHY_NOT_AUTO and options["n_estimators"] == "auto":
        raise click.BadParameter(_WHY_NOT_AUTO[kind], param_hint="'--trees'")
    for name, value in options.items():
        declared = DECLARED["fit"].get(name, {})
        if value is not None and kind not in declared.get("models", (kind,)):
            option = f"'{option_of(name, declared)}'"
            raise click.BadParameter(f"This is not a parameter of --model {kind}. Leave it out.", param_hint=option)
    if folds == 1:
        raise click.BadParameter("1 fold leaves no rows to learn from. Use 0, or 2 and more.", param_hint="'--folds'")
    for model, names in LOSSES_ALONE.items():
        if options["loss"] in names and kind != model:
            raise click.BadParameter(f"It is for --model {model}.", param_hint="'--loss'")
        if kind == model and options["loss"] not in (None, *names):
            raise click.BadParameter(f"--model {model} has {' and '.join(names)}.", param_hint="'--loss'")
    if kind == "ranker" and options["group"] is None:
        raise click.BadParameter(
            "--model ranker compares rows of the same list. Name the column that says which, such as the query's.",
            param_hint="'--group'",
        )


def _source(table: Path, target: str | None, options: dict[str, Any], names: tuple[str, ...]) -> Source:
    """Take the options that say where rows come from and which columns are not learned from."""
    from spinney.cli.fit_table import Source
    from spinney.cli.tables import require_target

    columns = {name: options.pop(name) for name in ("delimiter", "encoding", *names)}
    return Source(table, require_target(target, table, columns["delimiter"]), **columns)


@command
def demo(**options: Any) -> None:
    r"""Study the bundled penguins, and say where the report is.

    The table is bundled: 344 penguins of three species, with two category columns (island, sex), five number
    columns and some missing values. Nothing is encoded or filled in.

    \b
    You see
      the table's shape and its classes;
      the leader board: how well each model does on rows that it has not
      seen, beside a constant prediction;
      the pruned tree, as questions you can answer by hand;
      where the report is: open it in a browser.

    \b
    Example
      spinney demo
      spinney demo --model tree --model forest --out penguins
    """
    from spinney.cli.study import run_demo

    run_demo(**options)


@command
def study(table: Path, target: str | None, out: Path | None, as_json: bool, **options: Any) -> None:
    r"""Study TABLE: fit a family of models, compare them honestly, keep the best, write a report.

    TABLE is a CSV, Parquet, Arrow or Excel file, or - for standard input. Columns are taken as they are: numbers, text,
    dates, gaps. A fifth of the rows is held out. On the others a pruned tree, boosting, forests, a linear model,
    AdaBoost, neighbours, support vectors and a stack of them are compared on the same folds, beside a constant
    prediction. Columns that name rows or give the target away are left out and named; --keep brings them back.

    The same command gives the same result, unless time runs out: then it says what was cut. Ctrl-C keeps what is done.
    Exit codes: 0 done; 1 the table cannot be used; 2 the command was not understood; 130 interrupted.

    \b
    Example
      spinney study loans.csv --target repaid
      spinney study loans.csv --target repaid --group customer --minutes 10
      spinney study loans.csv --target repaid --time granted --peers
    \b
    Then open loans-study/report.html, and use the saved model
      spinney predict loans-study/best.model applicants.csv
      spinney explain loans-study/best.model loans.csv --row 3
    """
    from spinney.cli.study import run_study

    run_study(_source(table, target, options, ()), options, out=out, as_json=as_json)


@command
def predict(model: Path, **options: Any) -> None:
    r"""Predict each row of TABLE with a MODEL that study or fit has saved.

    Columns are found by name; others, such as the target, are ignored. Rows keep their order, and the table may be
    larger than memory.

    \b
    Example
      spinney predict loans.tree applicants.csv --proba | head
      spinney predict loans-study/best.model applicants.csv --out answers.csv
      spinney predict loans.model - < applicants.csv
    """
    from spinney.cli.predict import run_predict

    run_predict(model, **options)


@command
def explain(model: Path, table: Path, encoding: str | None, delimiter: str | None, as_json: bool, **asked: Any) -> None:
    r"""Explain a saved MODEL by the rows of TABLE: which columns matter, what one does, or why a row is as it is.

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


@command
def show(model: Path, **options: Any) -> None:
    r"""Print a saved MODEL as text, with its columns and how much each matters; of an ensemble, the columns.

    \b
    Example
      spinney show loans.tree --max-depth 3 --svg loans.svg
      spinney show loans.model --tree 1
    """
    from spinney.cli.use import run_show

    run_show(model, **options)


@command
def fit(table: Path, target: str | None, kind: str, folds: int, seed: int, **options: Any) -> None:
    r"""Fit a tree, a forest, boosted trees or another model to TABLE and evaluate it.

    Strings are categories, dates such as 2024-05-31 are dates, and empty cells (or NA, NaN, null) are missing values:
    nothing needs encoding or filling in. The score is that of rows the model has not seen, beside always naming the
    most frequent class or the mean.

    \b
    Example
      spinney fit loans.csv --target repaid --max-depth 4 --out loans.tree
      spinney fit loans.csv --target repaid --model forest --trees auto
      spinney fit loans.csv --target repaid --model boosting --out loans.model
    \b
    Lists, times until an event, tables larger than memory
      spinney fit clicks.csv --target grade --model ranker --group query
      spinney fit machines.csv --target hours --model survival --event failed
      spinney fit 'loans/*.parquet' --target repaid --model boosting --memory 2GB
    """
    _check_options(kind, options, folds)
    from spinney.cli.fit import FitOptions, run_fit

    out, memory, as_json = (options.pop(name) for name in ("out", "memory", "as_json"))
    options["task"] = {"ranker": "ranking", "survival": "survival"}.get(kind, options["task"])
    options["date_parts"] = tuple(part.strip() for part in (options["date_parts"] or "").split(",") if part)
    source = _source(table, target, options, ("task", "drop", "date_parts", "weight", "offset", "group", "event"))
    run_fit(source, FitOptions(kind, options, folds, seed, out, as_json, memory))


@command
def compare(table: Path, target: str | None, plot: Path | None, as_json: bool, **options: Any) -> None:
    r"""Compare models on the same folds of TABLE, beside a constant prediction.

    Differences are paired by fold, with standard errors that allow for the rows that folds share, and p-values of the
    corrected resampled t-test, corrected for the number of models by Holm. Ctrl-C keeps the models that are done.

    \b
    Example
      spinney compare loans.csv --target repaid --model forest --model boosting
      spinney compare loans.csv --target repaid --metric roc_auc --plot loans.png
    """
    from spinney.cli.study import run_compare

    source = _source(table, target, options, ("task", "drop", "weight", "group", "time"))
    run_compare(source, options | {"models": options["models"] or _COMPARED}, plot=plot, as_json=as_json)


@command
def bench(table: Path | None, target: str | None, **options: Any) -> None:
    r"""Time models on TABLE, or on made-up numbers, beside other libraries where they are installed.

    Every model has its defaults and all cores. A fifth of the rows is held out: the loss on them stands beside the
    times, because fast and wrong is not fast. Models take turns, and medians are printed.

    \b
    Example
      spinney bench
      spinney bench loans.csv --target repaid --rounds 5
    """
    from spinney.cli.study import run_bench

    if (table is None) != (target is None):
        raise click.UsageError("TABLE and --target go together. Pass both, or neither.")
    source = _source(table or Path(), target or "", options, ("task",))
    run_bench(None if table is None else source, **options)


@command
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


@command
def export(model: Path, **options: Any) -> None:
    r"""Write a saved MODEL in another format, for a runtime, a database or a compiler.

    What a format cannot hold is refused by name. The guide has a table of what each holds.

    \b
    Example
      spinney export loans.tree --to sql --name applicants > predict.sql
      spinney export loans.model --to onnx --out loans.onnx
    """
    from spinney.cli.use import run_export

    run_export(model, **options)


@command
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
