"""``spinney explain``, ``show``, ``export`` and ``convert``: commands on a saved model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from spinney._data import Schema
from spinney._data.csv_format import CsvFormat
from spinney._data.display import nearest_name, shortest
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import About, Estimator, load
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.file.container import write_file
from spinney._names import public
from spinney.cli.failures import command_errors, fail, warnings_in_one_line
from spinney.cli.output import print_json, print_lines, table_of
from spinney.cli.predict import derived_parts, kind_in_csv, saved_predictor, with_parts
from spinney.cli.tables import check_writable, read_whole
from spinney.inspect.explain.counterfactual import counterfactual
from spinney.inspect.explain.dependence import partial_dependence
from spinney.inspect.explain.importances import permutation_importance
from spinney.inspect.explain.shap import ShapValues
from spinney.inspect.text.tables import importance_columns, write_json

if TYPE_CHECKING:
    import polars as pl

_MOST_COLUMNS = 20  # printed
_MOST_OTHERS = 200  # rows whose values replace those of the explained row
_MOST_ROWS = 2000  # for partial dependence


class LoadedModel(Protocol):
    """A fitted estimator of spinney; not every family has every method."""

    classes_: NDArray[Any]
    estimators_: list[LoadedModel]
    schema_: Schema

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return labels or numbers."""

    def predict_proba(self, X: TableLike) -> Floats:
        """Return class probabilities."""

    def shap_values(self, X: TableLike) -> ShapValues:
        """Return SHAP values."""

    def _about(self) -> About:
        """Return a summary of the model."""


@dataclass(frozen=True)
class ExplainRequest:
    """What to explain: the model (by its target), a column, or a row, with the prediction wanted for it.

    A row is the number of a row from 1, or the value of the column `id`.
    """

    target: str | None = None
    row: str | None = None
    id: str | None = None
    column: str | None = None
    want: str | None = None


def run_explain(
    model_path: Path,
    table: Path,
    request: ExplainRequest,
    *,
    format_: CsvFormat,
    as_json: bool,
) -> None:
    """Explain a model on the rows of a table."""
    with command_errors():
        model, schema = load(model_path), saved_predictor(model_path).schema
    kinds = {feature.name: kind_in_csv(feature) for feature in schema.features} if schema.has_names else {}
    frame = read_whole(table, format_.remembering(model._csv_format), kinds).frame
    X = _columns_of(frame, schema, table)
    with command_errors(), warnings_in_one_line():
        if request.row is not None:
            result = _row(model, X, _position(request, frame, table), request)
        elif request.column is not None:
            result = _dependence(model, X, request.column)
        else:
            result = _importances(model, X, frame, str(request.target), table)
    lines = result.pop("lines")
    if as_json:
        print_json(result)
    else:
        print_lines(*lines)


def _columns_of(frame: pl.DataFrame, schema: Schema, table: Path) -> pl.DataFrame:
    """Return the columns of a table that the model uses; missing date parts are derived."""
    parts = derived_parts(schema, frame.columns)
    lacking = [name for name in schema.names if name not in frame.columns and name not in parts]
    if lacking:
        raise fail(
            f"'{table}' has no column '{lacking[0]}', which the model needs. {nearest_name(lacking[0], frame.columns)}"
        )
    return with_parts(frame, schema, parts).select(schema.names)


def _importances(model: LoadedModel, X: pl.DataFrame, frame: pl.DataFrame, target: str, table: Path) -> dict[str, Any]:
    if target not in frame.columns:
        raise fail(f"--target: '{table}' has no column '{target}'. {nearest_name(target, frame.columns)}")
    known = frame[target].is_not_null()
    y = frame.filter(known)[target].to_numpy()
    importances = permutation_importance(model, X.filter(known), y)
    rows = importances.to_frame("polars").select("column", "importance", "standard_error").to_dicts()
    cells = [[one["column"], f"{one['importance']:.4g}", f"{one['standard_error']:.2g}"] for one in rows]
    title = f"Permutation importance: {importances.measure} ({known.sum():,} rows)"
    return {"importances": rows, "lines": [title, table_of(["column", "importance", "± se"], cells[:_MOST_COLUMNS])]}


def _dependence(model: LoadedModel, X: pl.DataFrame, column: str) -> dict[str, Any]:
    if column not in X.columns:
        raise fail(f"--column: the model has no column '{column}'. {nearest_name(column, X.columns)}")
    rows = X if X.height <= _MOST_ROWS else X.sample(_MOST_ROWS, seed=0)
    found = partial_dependence(model, rows, [column])
    frame = found.to_frame("polars")
    heads = {"(output)": "class" if hasattr(model, "classes_") else "output", "(average)": "mean"}
    cells = [list(map(_text, row)) for row in frame.iter_rows()]
    shown = table_of([heads.get(name, name) for name in frame.columns], cells)
    title = f"Partial dependence: mean {found.of} for each value of '{column}'"
    return {"column": column, "explains": found.of, "partial_dependence": frame.to_dicts(), "lines": [title, shown]}


def _position(request: ExplainRequest, frame: pl.DataFrame, table: Path) -> int:
    """Return the position of the row to explain."""
    import polars as pl

    row = str(request.row)
    if request.id is None:
        if not row.isdecimal() or row == "0":
            raise click.UsageError(
                f"--row must be a whole number of at least 1, not '{row}'; or name a column with --id."
            )
        if int(row) > frame.height:
            raise fail(f"--row: the table has {frame.height:,} rows, so there is no row {int(row):,}.")
        return int(row) - 1
    if request.id not in frame.columns:
        raise fail(f"--id: '{table}' has no column '{request.id}'. {nearest_name(request.id, frame.columns)}")
    found = (frame[request.id].cast(pl.String) == row).arg_true().to_list()
    if len(found) != 1:
        how_many = f"in {len(found)} rows" if found else "in no row"
        raise fail(f"--row: '{row}' is {how_many} of the column '{request.id}'. Name a value that is in one row.")
    return int(found[0])


def _row(model: LoadedModel, X: pl.DataFrame, position: int, request: ExplainRequest) -> dict[str, Any]:
    """Explain one row: its prediction, the contributions of the columns, and the nearest counterfactual."""
    one, want = X[position : position + 1], request.want
    row = position + 1 if request.id is None else str(request.row)
    prediction = model.predict(one).tolist()[0]
    what = f"{model._predicted_quantity} " if hasattr(model, "_predicted_quantity") else ""
    result: dict[str, Any] = {"row": row, "prediction": prediction, "lines": [f"Row {row}: {what}{_text(prediction)}"]}
    if hasattr(model, "predict_proba"):
        proba = dict(zip(map(str, model.classes_.tolist()), model.predict_proba(one)[0].tolist(), strict=True))
        result["probabilities"] = proba
        result["lines"].append("  " + ", ".join(f"{name} {p:.1%}" for name, p in proba.items()))
    if hasattr(model, "shap_values"):
        _add_shap(result, model, one, prediction)
    else:
        _add_drops(result, model, X, one, prediction)
    if want is not None:
        _add_counterfactuals(result, model, X, one, _wanted(model, want))
    return result


def _add_counterfactuals(
    result: dict[str, Any], model: LoadedModel, X: pl.DataFrame, one: pl.DataFrame, wanted: object
) -> None:
    """Add the changes that lead to the wanted prediction, or why there are none."""
    try:
        found = counterfactual(model, one.to_dicts()[0], wanted, X=X)
    except ValueError as error:
        result["alternatives"], text = [], str(error)
    else:
        result["alternatives"] = [
            {"prediction": each.prediction, "changes": each.changes} for each in found.alternatives
        ]
        text = str(found)
    result["lines"] += ["", *text.splitlines()]


def _wanted(model: LoadedModel, want: str) -> Any:
    """Return the wanted prediction: a class, or the two ends of a range."""
    if hasattr(model, "classes_"):
        by_text = {str(label): label for label in model.classes_.tolist()}
        if want not in by_text:
            raise fail(f"--want: the model has no class '{want}'. {nearest_name(want, list(by_text))}")
        return by_text[want]
    low, colon, high = want.partition(":")
    try:
        return (float(low) if low else None, float(high) if high else None) if colon else (float(low), None)
    except ValueError:
        raise fail(f"--want must be a range such as 10:20, 10: or :20, not '{want}'.") from None


def _add_shap(result: dict[str, Any], model: LoadedModel, one: pl.DataFrame, prediction: object) -> None:
    explained = model.shap_values(one)
    if explained.output_names is not None and len(explained.output_names) > 1:
        explained = explained.output(prediction)
    order = abs(explained.values[0]).argsort(kind="stable")[::-1].tolist()
    rows = [
        {
            "column": explained.feature_names[j],
            "value": explained.text_of(0, j),
            "contribution": float(explained.values[0, j]),
        }
        for j in order
        if explained.values[0, j] != 0
    ]
    base = float(explained.base_values.ravel()[0])
    cells = [[entry["column"], entry["value"], f"{entry['contribution']:+.4g}"] for entry in rows[:_MOST_COLUMNS]]
    shown = table_of(["column", "value", "contribution"], cells)
    result |= {"explains": explained.of, "base": base, "contributions": rows}
    result["lines"] += [f"SHAP values: contributions to the {explained.of} (base value {shortest(base)})", shown]


def _add_drops(
    result: dict[str, Any], model: LoadedModel, X: pl.DataFrame, one: pl.DataFrame, prediction: object
) -> None:
    """Add the mean drop of the prediction when one column takes the values of other rows, for any model."""
    import polars as pl

    others = X if X.height <= _MOST_OTHERS else X.sample(_MOST_OTHERS, seed=0)
    has_proba = hasattr(model, "predict_proba")

    def predicted(rows: pl.DataFrame) -> Floats:
        if has_proba:
            return model.predict_proba(rows)[:, model.classes_.tolist().index(prediction)]
        return model.predict(rows)

    if not has_proba and isinstance(prediction, str):
        return
    original = float(predicted(one)[0])
    same = pl.concat([one] * others.height)
    drops = {name: original - float(np.mean(predicted(same.with_columns(others[name])))) for name in X.columns}
    rows: list[dict[str, Any]] = [
        {"column": name, "value": _text(one[name][0]), "drop": drop}
        for name, drop in sorted(drops.items(), key=lambda pair: -abs(pair[1]))
    ]
    cells = [[entry["column"], entry["value"], f"{entry['drop']:.4g}"] for entry in rows[:_MOST_COLUMNS]]
    shown = table_of(["column", "value", "mean drop"], cells)
    explained = f"probability of {prediction}" if has_proba else "prediction"
    result["drops"] = rows
    result["lines"] += [f"Mean drop of the {explained} when a column takes the values of other rows", shown]


def _text(value: object) -> str:
    return shortest(value) if isinstance(value, float) else str(value)


def run_show(model_path: Path, *, svg: Path | None, max_depth: int | None, number: int | None, as_json: bool) -> None:
    """Print a saved tree, and draw it if an SVG file is set; of an ensemble, print its size and columns."""
    from spinney import export_text, to_dict, tree_svg

    check_writable(svg)
    with command_errors():
        model = load(model_path)
        about: About = model._about()
        is_whole = number is None and svg is None and max_depth is None
        if "weights" in about.size and is_whole:
            show_members(model, about, as_json)
            return
        if not about.is_shown:
            raise fail(about.why_no_trees)
        if about.noun != "tree" and number is None:
            if not is_whole:
                raise fail(one_tree_only(model_path, about))
            show_ensemble(model, about, as_json)
            return
        tree, title = chosen_tree(model, about, number)
        columns = described_columns(tree)
        if svg is not None:
            write_file(svg, tree_svg(tree, max_depth=max_depth).encode())
        if as_json:
            click.echo(write_json({"columns": columns, "tree": to_dict(tree)}, indent=2))
            return
        text = export_text(tree, max_depth=max_depth)
    print_lines(f"{title}\n", f"{text}\n", columns_table(columns))


def one_tree_only(path: Path, about: About) -> str:
    """Return the error for printing or drawing a whole ensemble."""
    if about.trees is None:
        return f"{about.why_no_trees[0].upper()}{about.why_no_trees[1:]}".replace(
            "Leave it out", "Leave --svg and --max-depth out"
        )
    return f"'{path}' holds {len(about.trees)} trees. Choose the one to print or draw: --tree N."


def chosen_tree(model: TableEstimator, about: About, number: int | None) -> tuple[TableEstimator, str]:
    """Return tree `number`, counted from 1, or the model itself if it is a tree, and its title."""
    if number is None:
        return model, f"{type(model).__name__}: {about.sentence}"
    if about.trees is None:
        raise fail(f"--tree: {about.why_no_trees}")
    if number > len(about.trees):
        raise fail(f"--tree: the model has {len(about.trees)} trees, so there is no tree {number}.")
    tree = about.trees[number - 1]
    name = type(tree).__name__ if about.title_of_tree is None else about.title_of_tree(number - 1)
    return tree, f"{name}: {tree._about().sentence}"


def show_ensemble(model: TableEstimator, about: About, as_json: bool) -> None:
    """Print the size of an ensemble and its columns."""
    columns, name = described_columns(model), type(model).__name__
    if as_json:
        print_json({"model": name, **about.size, "columns": columns})
    else:
        print_lines(f"{name}: {about.sentence}\n", columns_table(columns))


def show_members(model: LoadedModel, about: About, as_json: bool) -> None:
    """Print the members of an ensemble of different models, and their weights."""
    name, members = type(model).__name__, zip(about.size["members"], model.estimators_, strict=True)
    rows = [
        {"member": member, "model": type(one).__name__, "weight": weight}
        for (member, one), weight in zip(members, about.size["weights"], strict=True)
    ]
    if as_json:
        print_json({"model": name, "members": rows})
        return
    cells = [[row["member"], row["model"], "" if row["weight"] is None else f"{row['weight']:.2f}"] for row in rows]
    print_lines(f"{name}: {about.sentence}\n", table_of(["member", "model", "weight"], cells))


def described_columns(model: TableEstimator) -> list[dict[str, Any]]:
    """List the columns with their kind, importance and splits, the most important first.

    Trees with random splits, fitted without a target, have no importances: their columns are in the order of the table.
    """
    kinds = {feature.name: feature.kind_in_words for feature in model.schema_.features}
    unknown = [None] * len(kinds)
    ranked = importance_columns(model) if hasattr(model, "feature_importances_") else {"column": list(kinds)}
    values = zip(ranked["column"], ranked.get("importance", unknown), ranked.get("n_splits", unknown), strict=True)
    return [
        {"column": name, "kind": kinds[name], "importance": importance, "splits": n_splits}
        for name, importance, n_splits in values
    ]


def columns_table(columns: list[dict[str, Any]]) -> Table:
    """Return the table of the columns, without importances and splits if there are none."""
    head = [name for name, value in columns[0].items() if value is not None]
    cells = [[f"{row[name]:.3f}" if name == "importance" else str(row[name]) for name in head] for row in columns]
    return table_of(head, cells, n_left=2)


_NAMED = ("c", "sql")  # formats with a name to choose
_BINARY = frozenset({"onnx", "treelite"})


def exported(model: Estimator, to: str, name: str | None, dialect: str | None = None) -> bytes:
    """Return a model in a format; `name` is the table of SQL or the prefix of C."""
    write = public(f"to_{to}")
    named: dict[str, dict[str, Any]] = {
        "c": {"name": name or "model"},
        "sql": {"table": name or "data", "dialect": dialect},
    }
    written = write(model, **named.get(to, {}))
    if isinstance(written, str):
        return written.encode()
    return bytes(written.serialize_bytes() if to == "treelite" else written.SerializeToString())


def run_export(model_path: Path, *, to: str, out: Path | None, name: str | None, dialect: str | None) -> None:
    """Export a saved model to another format."""
    from spinney._estimator.estimator import load
    from spinney._model.file.container import write_file

    if out is None and to in _BINARY and sys.stdout.isatty():
        raise fail(f"{to} is a binary format: name a file with --out.")
    if name is not None and to not in _NAMED:
        raise click.UsageError(f"--name requires --to {' or '.join(_NAMED)}.")
    if dialect is not None and to != "sql":
        raise click.UsageError("--dialect requires --to sql.")
    check_writable(out)
    with command_errors():
        try:
            written = exported(load(model_path), to, name, dialect)
        except ImportError as error:
            raise fail(str(error)) from None
        if out is not None:
            write_file(out, written)
            return
    click.echo(written, nl=False)


def run_convert(file: Path, out: Path | None) -> None:
    """Import a model file of another library and save it."""
    from spinney._interchange.reading.import_file import import_file

    target = out or file.with_suffix(".spinney")
    check_writable(target)
    with command_errors():
        model = import_file(file)
        model.save(target)
    click.echo(f"{target}: {model._about().sentence}.", err=True)
