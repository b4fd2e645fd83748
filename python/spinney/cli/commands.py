"""The commands of ``spinney``: help texts and handlers. Imports are deferred to the handlers, so that help is fast."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import rich  # noqa: F401  (imported here, so that a missing extra is reported at once)

from spinney._names import FITTED_BY_COMMAND_ALONE
from spinney.cli.options import DECLARED, LOSSES_ALONE, command, option_of, spinney

if TYPE_CHECKING:
    from spinney._data.csv_format import CsvFormat
    from spinney.cli.fit_table import Source

__all__ = ["spinney"]

if find_spec("polars") is None:
    raise ModuleNotFoundError("No module named 'polars'", name="polars")

_COMPARED = ["tree", "forest", "extra-trees", "boosting", "linear"]
_WHY_NOT_AUTO = {
    "functional": "Functional boosting has no out-of-bag rows. Pass the number of rounds, or leave it out.",
    "adaboost": "AdaBoost has no out-of-bag rows. Pass the number of rounds, or leave it out.",
    "extra-trees": "Extra-trees are fitted to all rows, so none is out of bag. Pass a number, or --model forest.",
    "extra-survival-trees": "They are fitted to all rows, so none is out of bag. Pass a number, or survival-forest.",
}


@contextmanager
def _loading() -> Iterator[None]:
    """Show on a terminal that a command starts, while its modules are imported, which takes a second or more."""
    if not sys.stderr.isatty():
        yield
        return
    print("starting …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _check_options(kind: str, options: dict[str, Any], folds: int) -> None:
    """Raise an error for options that do not apply to a kind of model."""
    if kind == "tree" and options["n_estimators"] is not None:
        raise click.BadParameter(
            "It applies to ensembles. Pass --model forest or boosting too.", param_hint="'--trees'"
        )
    if kind in _WHY_NOT_AUTO and options["n_estimators"] == "auto":
        raise click.BadParameter(_WHY_NOT_AUTO[kind], param_hint="'--trees'")
    for name, value in options.items():
        declared = DECLARED["fit"].get(name, {})
        if value is not None and kind not in declared.get("models", (kind,)):
            option = f"'{option_of(name, declared)}'"
            raise click.BadParameter(f"This is not a parameter of --model {kind}. Leave it out.", param_hint=option)
    if folds == 1:
        raise click.BadParameter("1 fold leaves no training rows. Use 0, or at least 2.", param_hint="'--folds'")
    for model, names in LOSSES_ALONE.items():
        if options["loss"] in names and kind != model:
            raise click.BadParameter(f"It applies to --model {model}.", param_hint="'--loss'")
        if kind == model and options["loss"] not in (None, *names):
            raise click.BadParameter(f"--model {model} takes {' or '.join(names)}.", param_hint="'--loss'")
    if kind == "ranker" and options["group"] is None:
        raise click.BadParameter(
            "--model ranker ranks the rows of each query. Name the column that identifies the query.",
            param_hint="'--group'",
        )


def _source(table: Path, target: str | None, options: dict[str, Any], names: tuple[str, ...]) -> Source:
    """Remove the options that describe the table and its columns, and return them as a source."""
    from spinney.cli.fit_table import Source
    from spinney.cli.tables import require_target

    format_ = _csv_format(options)
    columns = {name: options.pop(name) for name in names}
    return Source(table, require_target(target, table, format_), format_, **columns)


def _csv_format(options: dict[str, Any]) -> CsvFormat:
    """Remove the options that describe the format of a CSV file, and return them."""
    from spinney._data.csv_format import CsvFormat

    missing = tuple(options.pop("missing")) or None
    chosen = {name: options.pop(name) for name in ("delimiter", "decimal", "encoding", "day_first")}
    return CsvFormat(**chosen, missing=missing)


@command
def demo(**options: Any) -> None:
    r"""Run a study of the bundled penguins table and write its report.

    The table holds 344 penguins of three species, with two categorical columns (island, sex), five numeric columns and
    some missing values. No encoding or imputation is needed.

    \b
    The command prints
      the shape of the table and the class counts;
      the leaderboard: cross-validated scores of each model and of a
      baseline that ignores the columns;
      the pruned decision tree as text;
      the path of the HTML report: open it in a browser.

    \b
    Example
      spinney demo
      spinney demo --model tree --model forest --out penguins
    """
    with _loading():
        from spinney.cli.study import run_demo

    run_demo(**options)


@command
def study(table: Path, target: str | None, out: Path | None, as_json: bool, **options: Any) -> None:
    r"""Fit several models to TABLE, compare them, save the best and write a report.

    TABLE is a CSV, Parquet, Arrow or Excel file, or - for standard input. Text, dates and missing values need no
    encoding or imputation. A fifth of the rows is held out as a test set. On the other rows, a pruned tree, gradient
    boosting, forests, a linear model, AdaBoost, k-NN, an SVM and a stack of them are cross-validated on the same folds
    and compared with a baseline. Identifier columns and target leaks are excluded and reported; --keep includes them.

    Results are reproducible unless the time limit ends the study early, which is reported. Ctrl-C ends the study with
    the models fitted so far. Exit codes: 0 success; 1 invalid table; 2 invalid command; 130 interrupted.

    \b
    Example
      spinney study loans.csv --target repaid
      spinney study loans.csv --target repaid --group customer --minutes 10
      spinney study loans.csv --target repaid --time granted --peers
    \b
    Then open loans-study/report.html and use the saved model
      spinney predict loans-study/best.model applicants.csv
      spinney explain loans-study/best.model loans.csv --row 3
    """
    start = time.monotonic()
    with _loading():
        from spinney.cli.study import run_study

    run_study(_source(table, target, options, ()), options, start, out=out, as_json=as_json)


@command
def predict(model: Path, **options: Any) -> None:
    r"""Predict each row of TABLE with a saved MODEL.

    Columns are matched by name; columns unknown to the model, such as the target, are ignored. Predictions are in the
    order of the rows. The table may be larger than memory.

    \b
    Example
      spinney predict loans.tree applicants.csv --proba | head
      spinney predict loans-study/best.model applicants.csv --out predictions.csv
      spinney predict loans.model - < applicants.csv
    """
    from spinney.cli.predict import run_predict

    run_predict(model, format_=_csv_format(options), **options)


@command
def explain(model: Path, table: Path, as_json: bool, **request: Any) -> None:
    r"""Explain a saved MODEL on TABLE: permutation importance, partial dependence, or SHAP values of a row.

    Choose one with --target, --column or --row.

    \b
    Example
      spinney explain loans-study/best.model loans.csv --target repaid
      spinney explain loans-study/best.model loans.csv --column income
      spinney explain loans-study/best.model loans.csv --row 3 --want yes
    """
    if sum(request[name] is not None for name in ("target", "column", "row")) != 1:
        raise click.UsageError("Choose what to explain: one of --target COL, --column COL and --row N.")
    for name in ("want", "id"):
        if request[name] is not None and request["row"] is None:
            raise click.UsageError(f"--{name} requires --row.")
    from spinney.cli.use import ExplainRequest, run_explain

    format_ = _csv_format(request)
    run_explain(model, table, ExplainRequest(**request), format_=format_, as_json=as_json)


@command
def show(model: Path, **options: Any) -> None:
    r"""Print a saved MODEL: its columns and their importances, and a decision tree as text.

    Of an ensemble, only the columns are printed; --tree prints one of its trees.

    \b
    Example
      spinney show loans.tree --max-depth 3 --svg loans.svg
      spinney show loans.model --tree 1
    """
    from spinney.cli.use import run_show

    run_show(model, **options)


@command
def fit(table: Path, target: str | None, kind: str, folds: int, seed: int, **options: Any) -> None:
    r"""Fit one model to TABLE and cross-validate it.

    Strings are categories, values such as 2024-05-31 are dates, and empty cells (or NA, NaN, null) are missing values:
    no encoding or imputation is needed. Scores are cross-validated and compared with a baseline, which predicts the
    most frequent class or the mean.

    \b
    Example
      spinney fit loans.csv --target repaid --max-depth 4 --out loans.tree
      spinney fit loans.csv --target repaid --model forest --trees auto
      spinney fit loans.csv --target repaid --model boosting --out loans.model
    \b
    Ranking, survival analysis, tables larger than memory
      spinney fit clicks.csv --target grade --model ranker --group query
      spinney fit machines.csv --target hours --model survival --event failed
      spinney fit machines.csv --target hours --model survival-forest --event failed
      spinney fit 'loans/*.parquet' --target repaid --model boosting --memory 2GB
    """
    _check_options(kind, options, folds)
    from spinney.cli.fit import FitOptions, run_fit

    out, memory, as_json = (options.pop(name) for name in ("out", "memory", "as_json"))
    scoring, positive = options.pop("scoring"), options.pop("positive")
    if kind in FITTED_BY_COMMAND_ALONE:
        options["task"] = "ranking" if kind == "ranker" else "survival"
    options["date_parts"] = tuple(part.strip() for part in (options["date_parts"] or "").split(",") if part)
    source = _source(table, target, options, ("task", "drop", "date_parts", "weight", "offset", "group", "event"))
    run_fit(source, FitOptions(kind, options, folds, seed, out, as_json, memory, scoring, positive))


@command
def compare(table: Path, target: str | None, plot: Path | None, as_json: bool, **options: Any) -> None:
    r"""Compare models on TABLE by cross-validation on the same folds.

    A baseline that ignores the columns is included. Scores are compared fold by fold; the standard errors and p-values
    of the differences are those of the corrected resampled t-test, with Holm's correction for the number of models.
    Ctrl-C ends the comparison with the models that are finished.

    \b
    Example
      spinney compare loans.csv --target repaid --model forest --model boosting
      spinney compare loans.csv --target repaid --metric roc_auc --plot loans.png
    """
    with _loading():
        from spinney.cli.study import run_compare

    source = _source(table, target, options, ("task", "drop", "weight", "group", "time"))
    run_compare(source, options | {"models": options["models"] or _COMPARED}, plot=plot, as_json=as_json)


@command
def bench(table: Path | None, target: str | None, **options: Any) -> None:
    r"""Time models on TABLE, or on synthetic data, against other libraries that are installed.

    Every model runs with default settings on all cores. A fifth of the rows is held out for the loss, which is printed
    with the median times of several fits.

    \b
    Example
      spinney bench
      spinney bench loans.csv --target repaid --rounds 5
    """
    with _loading():
        from spinney.cli.study import run_bench

    if (table is None) != (target is None):
        raise click.UsageError("TABLE and --target require each other. Pass both, or neither.")
    source = _source(table or Path(), target or "", options, ("task",))
    run_bench(None if table is None else source, **options)


@command
def convert(file: Path, out: Path | None) -> None:
    r"""Import a model FILE of another library and save it as OUT (default: FILE with the suffix .spinney).

    Files of XGBoost (JSON, UBJSON), LightGBM (text, JSON), CatBoost and treelite (JSON) are read. The library need not
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
    r"""Export a saved MODEL to another format, for a runtime, a database or a compiler.

    If the format does not support the model, an error states why. The user guide has a table of what each format
    supports.

    \b
    Example
      spinney export loans.tree --to sql --name applicants > predict.sql
      spinney export loans.model --to onnx --out loans.onnx
    """
    from spinney.cli.use import run_export

    run_export(model, **options)


@command
def completion(shell: str) -> None:
    r"""Print the code that makes SHELL complete commands, options and their values.

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
