"""``spinney explain``, ``show``, ``export`` and ``convert``: what is done with a saved model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.table import Table

from spinney._data import Schema
from spinney._data.display import shortest
from spinney._data.types import Floats
from spinney._estimator.estimator import About, Estimator, load
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.file.container import write_file
from spinney._model.saving.predictor import load_predictor
from spinney._names import public
from spinney.cli.failures import fail, failures_in_words, nearest, warnings_in_words
from spinney.cli.loaded import LoadedModel
from spinney.cli.output import print_json, print_lines, table_of
from spinney.cli.predict import derived_parts, with_parts
from spinney.cli.tables import check_writable, read_whole
from spinney.inspect.explain.counterfactual import counterfactual
from spinney.inspect.explain.dependence import partial_dependence
from spinney.inspect.explain.importances import permutation_importance
from spinney.inspect.text.tables import importance_columns, write_json

if TYPE_CHECKING:
    import polars as pl

_MOST_COLUMNS = 20  # on the screen
_MOST_OTHERS = 200  # whose values a column of a row is given
_MOST_ROWS = 2000  # by which the effect of a column is averaged


@dataclass(frozen=True)
class Question:
    """What to explain: a model by its target, a column, or a row, with what is wanted of it instead."""

    target: str | None = None
    row: int | None = None
    column: str | None = None
    want: str | None = None


def run_explain(
    model_path: Path, table: Path, asked: Question, *, delimiter: str | None, encoding: str | None, as_json: bool
) -> None:
    """Explain a model by the rows of a table."""
    with failures_in_words():
        model, schema = load(model_path), load_predictor(model_path).schema
    frame = read_whole(table, delimiter, encoding)
    X = _columns_of(frame, schema, table)
    with failures_in_words(), warnings_in_words():
        if asked.row is not None:
            found = _row(model, X, asked.row, asked.want)
        elif asked.column is not None:
            found = _effect(model, X, asked.column)
        else:
            found = _importances(model, X, frame, str(asked.target), table)
    lines = found.pop("lines")
    if as_json:
        print_json(found)
    else:
        print_lines(*lines)


def _columns_of(frame: pl.DataFrame, schema: Schema, table: Path) -> pl.DataFrame:
    """Return the model's columns of a table; parts of dates that it lacks are made."""
    parts = derived_parts(schema, frame.columns)
    lacking = [name for name in schema.names if name not in frame.columns and name not in parts]
    if lacking:
        raise fail(
            f"'{table}' lacks the column '{lacking[0]}', which the model needs. {nearest(lacking[0], frame.columns)}"
        )
    return with_parts(frame, schema, parts).select(schema.names)


def _importances(model: LoadedModel, X: pl.DataFrame, frame: pl.DataFrame, target: str, table: Path) -> dict[str, Any]:
    if target not in frame.columns:
        raise fail(f"--target: '{table}' has no column '{target}'. {nearest(target, frame.columns)}")
    known = frame[target].is_not_null()
    y = frame.filter(known)[target].to_numpy()
    found = permutation_importance(model, X.filter(known), y)
    rows = found.to_frame("polars").select("column", "importance", "standard_error").to_dicts()
    cells = [[one["column"], f"{one['importance']:.4g}", f"{one['standard_error']:.2g}"] for one in rows]
    title = f"What the score falls by when a column is shuffled, {X.height:,} rows:"
    return {"importances": rows, "lines": [title, table_of(["column", "importance", "± se"], cells[:_MOST_COLUMNS])]}


def _effect(model: LoadedModel, X: pl.DataFrame, column: str) -> dict[str, Any]:
    if column not in X.columns:
        raise fail(f"--column: the model has no column '{column}'. {nearest(column, X.columns)}")
    rows = X if X.height <= _MOST_ROWS else X.sample(_MOST_ROWS, seed=0)
    frame = partial_dependence(model, rows, [column]).to_frame("polars")
    cells = table_of([name.strip("()") for name in frame.columns], [list(map(_text, row)) for row in frame.iter_rows()])
    title = f"What the model says on average when '{column}' has each value and all else stays:"
    return {"column": column, "effect": frame.to_dicts(), "lines": [title, cells]}


def _row(model: LoadedModel, X: pl.DataFrame, row: int, want: str | None) -> dict[str, Any]:
    """Explain one row: what is said, what each column adds, and the smallest change for another answer."""
    if row > X.height:
        raise fail(f"--row: the table has {X.height:,} rows, so there is no row {row:,}.")
    one = X[row - 1 : row]
    said = model.predict(one).tolist()[0]
    found: dict[str, Any] = {"row": row, "prediction": said, "lines": [f"Row {row}: {_text(said)}"]}
    if hasattr(model, "predict_proba"):
        shares = dict(zip(map(str, model.classes_.tolist()), model.predict_proba(one)[0].tolist(), strict=True))
        found["shares"] = shares
        found["lines"].append("  " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    if hasattr(model, "shap_values"):
        _add_shap(found, model, one, said)
    else:
        _add_falls(found, model, X, one, said)
    if want is not None:
        others = counterfactual(model, one.to_dicts()[0], _wanted(model, want), X=X)
        found["alternatives"] = [{"prediction": one.prediction, "changes": one.changes} for one in others.alternatives]
        found["lines"] += ["", *str(others).splitlines()]
    return found


def _wanted(model: LoadedModel, want: str) -> Any:
    """Return what is wanted: a class by its text, or two ends of a range of values."""
    if hasattr(model, "classes_"):
        by_text = {str(label): label for label in model.classes_.tolist()}
        if want not in by_text:
            raise fail(f"--want: the model knows no class '{want}'. {nearest(want, list(by_text))}")
        return by_text[want]
    low, colon, high = want.partition(":")
    try:
        return (float(low) if low else None, float(high) if high else None) if colon else (float(low), None)
    except ValueError:
        raise fail(f"--want must be a range such as 10:20, 10: or :20, not '{want}'.") from None


def _add_shap(found: dict[str, Any], model: LoadedModel, one: pl.DataFrame, said: object) -> None:
    explained = model.shap_values(one)
    if explained.output_names is not None and len(explained.output_names) > 1:
        explained = explained.output(said)
    order = abs(explained.values[0]).argsort(kind="stable")[::-1].tolist()
    rows = [
        {"column": explained.feature_names[j], "value": explained.text_of(0, j), "adds": float(explained.values[0, j])}
        for j in order
        if explained.values[0, j] != 0
    ]
    base = float(explained.base_values.ravel()[0])
    cells = [[entry["column"], entry["value"], f"{entry['adds']:+.4g}"] for entry in rows[:_MOST_COLUMNS]]
    shown = table_of(["column", "value", "adds"], cells)
    found |= {"explains": explained.of, "base": base, "adds": rows}
    found["lines"] += [f"What each column adds to the {explained.of}, from {shortest(base)} on:", shown]


def _add_falls(found: dict[str, Any], model: LoadedModel, X: pl.DataFrame, one: pl.DataFrame, said: object) -> None:
    """Tell what any model's answer falls by, on average, when one column has the values of other rows."""
    import polars as pl

    others = X if X.height <= _MOST_OTHERS else X.sample(_MOST_OTHERS, seed=0)
    has_shares = hasattr(model, "predict_proba")

    def predicted(rows: pl.DataFrame) -> Floats:
        return model.predict_proba(rows)[:, model.classes_.tolist().index(said)] if has_shares else model.predict(rows)

    if not has_shares and isinstance(said, str):
        return
    own = float(predicted(one)[0])
    same = pl.concat([one] * others.height)
    falls = {name: own - float(np.mean(predicted(same.with_columns(others[name])))) for name in X.columns}
    rows: list[dict[str, Any]] = [
        {"column": name, "value": _text(one[name][0]), "by": by}
        for name, by in sorted(falls.items(), key=lambda pair: -abs(pair[1]))
    ]
    cells = [[entry["column"], entry["value"], f"{entry['by']:.4g}"] for entry in rows[:_MOST_COLUMNS]]
    shown = table_of(["column", "value", "falls by"], cells)
    what = f"share of {said}" if has_shares else "prediction"
    found["falls"] = rows
    found["lines"] += [f"What the {what} falls by when a column has the values of other rows:", shown]


def _text(value: object) -> str:
    return shortest(value) if isinstance(value, float) else str(value)


def run_show(model_path: Path, *, svg: Path | None, max_depth: int | None, number: int | None, as_json: bool) -> None:
    """Print a saved tree and draw it if a file is named; of an ensemble, its size and columns."""
    from spinney import export_text, to_dict, tree_svg

    check_writable(svg)
    with failures_in_words():
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
    """Say what to do instead of drawing or printing a whole ensemble."""
    if about.trees is None:
        return f"{about.why_no_trees[0].upper()}{about.why_no_trees[1:]}".replace(
            "Leave it out", "Leave --svg and --max-depth out"
        )
    return f"'{path}' holds {len(about.trees)} trees. Say which one to draw or print: --tree N."


def chosen_tree(model: TableEstimator, about: About, number: int | None) -> tuple[TableEstimator, str]:
    """Return the tree that is asked for, counted from 1, or the model if it is one; and what to call it."""
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
    """Print the members of an ensemble of different models, and what each counts."""
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

    Trees that are cut at random, without a target, have no importances: their columns are in the order of the table.
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
    """Lay out the columns; without importances or splits where there are none."""
    head = [name for name, value in columns[0].items() if value is not None]
    cells = [[f"{row[name]:.3f}" if name == "importance" else str(row[name]) for name in head] for row in columns]
    return table_of(head, cells, n_left=2)


_NAMED = ("c", "sql")  # formats that name something
_BINARY = frozenset({"onnx", "treelite"})


def written_as(model: Estimator, to: str, name: str | None) -> bytes:
    """Return a model in a format; `name` is what the format names, where it names something."""
    write = public(f"to_{to}")
    named = {"c": {"name": name or "model"}, "sql": {"table": name or "data"}}
    written = write(model, **named.get(to, {}))
    if isinstance(written, str):
        return written.encode()
    return bytes(written.serialize_bytes() if to == "treelite" else written.SerializeToString())


def run_export(model_path: Path, *, to: str, out: Path | None, name: str | None) -> None:
    """Write a saved model in another format."""
    from spinney._estimator.estimator import load
    from spinney._model.file.container import write_file

    if out is None and to in _BINARY and sys.stdout.isatty():
        raise fail(f"{to} is not text: name a file with --out.")
    if name is not None and to not in _NAMED:
        raise click.UsageError(f"--name goes with --to {' and '.join(_NAMED)}.")
    check_writable(out)
    with failures_in_words():
        try:
            written = written_as(load(model_path), to, name)
        except ImportError as error:
            raise fail(str(error)) from None
        if out is not None:
            write_file(out, written)
            return
    click.echo(written, nl=False)


def run_convert(file: Path, out: Path | None) -> None:
    """Import a file and save what it holds."""
    from spinney._interchange.reading.import_file import import_file

    target = out or file.with_suffix(".spinney")
    check_writable(target)
    with failures_in_words():
        model = import_file(file)
        model.save(target)
    click.echo(f"{target}: {model._about().sentence}.", err=True)
