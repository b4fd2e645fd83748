"""``spinney explain``: what a kept model has learned, and why it says what it says of a row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spinney._data import Schema
from spinney._data.display import shortest
from spinney._data.types import Floats
from spinney._estimator.estimator import load
from spinney._evaluate.board import finite_or_none
from spinney._model.saving.predictor import load_predictor
from spinney.cli.failures import fail, failures_in_words, nearest, warnings_in_words
from spinney.cli.loaded import LoadedModel
from spinney.cli.predict import derived_parts, with_parts
from spinney.cli.tables import read_whole
from spinney.inspect.explain.counterfactual import counterfactual
from spinney.inspect.explain.dependence import partial_dependence
from spinney.inspect.explain.permutation import permutation_importance

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
    if as_json:
        plain = {key: value for key, value in found.items() if key != "lines"}
        click.echo(json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2, default=str))
        return
    console = Console(highlight=False)
    for line in found["lines"]:
        console.print(Text(line) if isinstance(line, str) else line, soft_wrap=isinstance(line, str))


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
    shown = Table("column", "importance", "± se")
    for one in rows[:_MOST_COLUMNS]:
        shown.add_row(Text(one["column"]), f"{one['importance']:.4g}", f"{one['standard_error']:.2g}")
    lines = [f"What the score falls by when a column is shuffled, {X.height:,} rows:", shown]
    return {"importances": [_plain(one) for one in rows], "lines": lines}


def _effect(model: LoadedModel, X: pl.DataFrame, column: str) -> dict[str, Any]:
    if column not in X.columns:
        raise fail(f"--column: the model has no column '{column}'. {nearest(column, X.columns)}")
    rows = X if X.height <= _MOST_ROWS else X.sample(_MOST_ROWS, seed=0)
    frame = partial_dependence(model, rows, [column]).to_frame("polars")
    shown = Table(*(escape(name.strip("()")) for name in frame.columns))
    for one in frame.iter_rows():
        shown.add_row(*(Text(_text(value)) for value in one))
    lines = [f"What the model says on average when '{column}' has each value and all else stays:", shown]
    return {"column": column, "effect": [_plain(one) for one in frame.to_dicts()], "lines": lines}


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
        found["alternatives"] = [
            _plain({"prediction": way.prediction, "changes": way.changes}) for way in others.alternatives
        ]
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
    shown = Table("column", "value", "adds")
    for entry in rows[:_MOST_COLUMNS]:
        shown.add_row(Text(entry["column"]), Text(entry["value"]), f"{entry['adds']:+.4g}")
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
    shown = Table("column", "value", "falls by")
    for entry in rows[:_MOST_COLUMNS]:
        shown.add_row(Text(entry["column"]), Text(entry["value"]), f"{entry['by']:.4g}")
    what = f"share of {said}" if has_shares else "prediction"
    found["falls"] = rows
    found["lines"] += [f"What the {what} falls by when a column has the values of other rows:", shown]


def _text(value: object) -> str:
    return shortest(value) if isinstance(value, float) else str(value)


def _plain(row: dict[str, object]) -> dict[str, object]:
    return {key: finite_or_none(value) for key, value in row.items()}
