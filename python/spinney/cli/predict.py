"""``spinney predict``: predictions for a table of any length, batch by batch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import click
import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema
from spinney._data.columns import default_names
from spinney._data.csv_format import ANY_FORMAT, CsvFormat
from spinney._data.csv_types import Kind
from spinney._data.display import for_terminal, nearest_name
from spinney._data.feature import Feature
from spinney._data.file_readers import is_parquet, one_column_only
from spinney._data.types import Floats, TableLike
from spinney._model.file.container import ModelFileError
from spinney._model.saving.predictor import load_predictor
from spinney._names import WITHOUT_TARGET
from spinney.cli.failures import command_errors, fail
from spinney.cli.tables import batches, check_writable, column_names, in_batches, number_column, replacing

if TYPE_CHECKING:
    import polars as pl


class LoadedPredictor(Protocol):
    """A model that can only predict."""

    schema: Schema
    classes_: Any
    n_outputs_: int
    takes_offset: bool
    _csv_format: CsvFormat | None

    def predict(self, X: TableLike, **params: Floats) -> NDArray[Any]:
        """Return labels or numbers."""

    def predict_proba(self, X: TableLike, **params: Floats) -> Any:
        """Return class probabilities, a list of them for several outputs."""


class EnsemblePredictor:
    """A saved ensemble that only `spinney.load` reads, in the form of a `LoadedPredictor`."""

    takes_offset = False

    def __init__(self, model: Any) -> None:
        self._model = model
        self.schema = _schema_of(model)
        self.n_outputs_: int = getattr(model, "n_outputs_", 1)
        self._csv_format: CsvFormat | None = model._csv_format
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return labels or numbers."""
        return np.asarray(self._model.predict(X))

    def predict_proba(self, X: TableLike) -> Any:
        """Return class probabilities."""
        return self._model.predict_proba(X)


def saved_predictor(path: Path) -> Any:
    """Return the model of a file, as a `LoadedPredictor`."""
    try:
        return load_predictor(path)
    except ModelFileError:
        from spinney._estimator.estimator import load

        model = load(path)
        if type(model).__name__ in WITHOUT_TARGET:
            raise
        return EnsemblePredictor(model)


def _schema_of(model: Any) -> Schema:
    """Return the columns of a model; those of an ensemble are its members' columns."""
    if hasattr(model, "schema_"):
        return model.schema_  # type: ignore[no-any-return]
    has_names = hasattr(model, "feature_names_in_")
    names = model.feature_names_in_.tolist() if has_names else default_names(model.n_features_in_)
    features = [Feature(name, "number", empty=True) for name in names]
    every = range(len(names))
    for k, member in enumerate(model.estimators_):
        columns = model.estimators_features_[k] if hasattr(model, "estimators_features_") else every
        for j, feature in zip(columns, _schema_of(member).features, strict=True):
            if features[j].empty:  # in the sample of the members before
                features[j] = replace(feature, name=names[j])
    return Schema(features, has_names)


_TRUTH = {"true": True, "1": True, "t": True, "yes": True, "false": False, "0": False, "f": False, "no": False}


def run_predict(
    model_path: Path,
    table: Path,
    *,
    out: Path | None,
    proba: bool,
    offset: str | None,
    safe_csv: bool = False,
    format_: CsvFormat = ANY_FORMAT,
) -> None:
    """Predict each row of a table and write the predictions in row order."""
    check_writable(out)
    with command_errors():
        model = saved_predictor(model_path)
    if proba and not hasattr(model, "classes_"):
        raise fail(f"'{model_path}' is a regression model: it has no class probabilities. Leave out --proba.")
    if offset is not None and not model.takes_offset:
        raise fail(f"--offset applies to gradient boosting, but '{model_path}' is another model. Leave it out.")
    if offset is not None and (n_classes := model._saved.model.n_scores) > 1:
        raise fail(
            f"--offset supports regression and two classes, but '{model_path}' has {n_classes} classes. Leave it out, "
            "or predict from Python."
        )
    with command_errors(), in_batches(table, format_.remembering(model._csv_format)) as (file, found):
        predictions = predicted(model, model_path, file, found, proba=proba, offset=offset)
        if out is None:
            _write_csv(predictions, sys.stdout.buffer, safe_csv)
            return
        with replacing(out) as path:
            if is_parquet(out):
                _write_parquet(predictions, path)
            else:
                with open(path, "wb") as written:
                    _write_csv(predictions, written, safe_csv)


def predicted(
    model: LoadedPredictor, model_path: Path, table: Path, format_: CsvFormat, *, proba: bool, offset: str | None
) -> Iterator[pl.DataFrame]:
    """Yield a frame of predictions per batch."""
    features = model.schema.features
    names = matched_columns(model.schema, model_path, table, offset, format_)
    parts = derived_parts(model.schema, column_names(table, format_))
    kinds = {name: kind_in_csv(feature) for name, feature in zip(names, features, strict=True) if name not in parts}
    if offset is not None:
        kinds[offset] = "number"
    flags = [] if is_parquet(table) else [n for n, f in zip(names, features, strict=True) if f.kind == "boolean"]
    n_rows = 0
    for batch in batches(table, kinds, format_):
        if batch.height == 0:
            continue
        if flags:
            batch = batch.with_columns([truth_values(batch[name], table) for name in flags])
        batch = with_parts(batch, model.schema, parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model fitted without names matches columns by position: checked above
            scores = {} if offset is None else {"offset": number_column(batch[offset], "--offset")}
            yield _frame(model, batch.select(names), proba, scores)
        n_rows += batch.height
    if n_rows == 0:
        raise fail(f"'{table}' has no rows, so there is nothing to predict.")


def matched_columns(schema: Schema, model_path: Path, table: Path, offset: str | None, format_: CsvFormat) -> list[str]:
    """Return the columns of the table that the model uses: by name, or by position if it was fitted without names."""
    present = column_names(table, format_)
    if offset is not None and offset not in present:
        raise fail(f"--offset: '{table}' has no column '{offset}'. {nearest_name(offset, present)}")
    if not schema.has_names:
        present = [name for name in present if name != offset]
        if len(present) != schema.n_features:
            raise fail(
                f"'{model_path}' was fitted without column names, on {schema.n_features} columns, "
                f"but '{table}' has {len(present)}. Select these columns, in the same order."
            )
        return present
    absent = [name for name in schema.names if name not in present and name not in derived_parts(schema, present)]
    if not absent:
        return list(schema.names)
    if len(present) == 1 and schema.n_features > 1:
        raise fail(one_column_only(table, present[0], format_.delimiter))
    listed = ", ".join(f"'{name}'" for name in absent[:8]) + (", …" if len(absent) > 8 else "")
    word = "column" if len(absent) == 1 else "columns"
    hint = nearest_name(absent[0], present) if len(absent) == 1 else "Add or rename them."
    raise fail(f"'{table}' lacks {len(absent)} {word} that the model needs: {listed}. {hint}")


def derived_parts(schema: Schema, present: list[str]) -> dict[str, tuple[int, str]]:
    """Return the date parts of the model that the table lacks: position of the date column, and the part."""
    from spinney._data.date_parts import part_named

    found = {}
    for name in set(schema.names) - set(present):
        column, part = part_named(name) or ("", "")
        if column in present and column in schema.names:
            j = schema.names.index(column)
            if schema.features[j].clock:
                found[name] = (j, part)
    return found


def with_parts(batch: pl.DataFrame, schema: Schema, parts: dict[str, tuple[int, str]]) -> pl.DataFrame:
    """Add the missing date parts that `derived_parts` returns."""
    import polars as pl

    from spinney._data import read_table
    from spinney._data.date_parts import part_of
    from spinney._data.feature import feature_values

    columns = []
    for name, (j, part) in parts.items():
        feature = schema.features[j]
        dates = read_table(batch.select(feature.name)).column(0)
        seconds = feature_values(feature, dates, batch.height, "missing", f"Column '{feature.name}'")
        columns.append(pl.Series(name, part_of(seconds, part)))
    return batch.with_columns(columns)


def kind_in_csv(feature: Feature) -> Kind:
    """Return the kind of a column in a CSV file: that of the training table, whatever the rows hold."""
    if feature.clock:
        return "date"
    return "text" if feature.empty or feature.kind == "boolean" or feature.holds_text else "number"


def truth_values(column: pl.Series, table: Path) -> pl.Series:
    """Parse common spellings of true and false."""
    import polars as pl

    words = column.str.strip_chars().str.to_lowercase()
    unknown = column.filter(~words.is_in(list(_TRUTH)) & words.is_not_null())
    if unknown.len() > 0:
        raise fail(
            f"Column '{column.name}' of '{table}' held True and False in the training table, but holds '{unknown[0]}'. "
            "Write true or false, or leave the cell empty."
        )
    return words.replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean)


def _frame(model: LoadedPredictor, batch: pl.DataFrame, proba: bool, scores: dict[str, Floats]) -> pl.DataFrame:
    import polars as pl

    values = model.predict(batch, **scores)
    outputs = [values] if model.n_outputs_ == 1 else list(values.T)
    marks = [""] if model.n_outputs_ == 1 else [f"_{k}" for k in range(model.n_outputs_)]
    columns: dict[str, Any] = {
        f"prediction{mark}": values.tolist() for mark, values in zip(marks, outputs, strict=True)
    }
    if proba:
        proba_values = model.predict_proba(batch, **scores)
        single = model.n_outputs_ == 1
        for mark, classes, values in zip(
            marks,
            [model.classes_] if single else model.classes_,
            [proba_values] if single else proba_values,
            strict=True,
        ):
            columns |= {f"proba{mark}_{label}": values[:, k] for k, label in enumerate(classes)}
    return pl.DataFrame(columns)


_FORMULA = r"^[=+\-@\t\r]"  # a spreadsheet runs a cell that begins so, unless it is a number
_NUMBER = r"^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$"


def _write_csv(predictions: Iterator[pl.DataFrame], file: BinaryIO, is_safe: bool) -> None:
    """Write the predictions as CSV; `is_safe`: a quote before each text that a spreadsheet would run."""
    import polars as pl

    is_noted = False
    for k, frame in enumerate(predictions):
        texts = [name for name, kind in frame.schema.items() if kind == pl.String]
        formulas = {name: frame[name].str.contains(_FORMULA) & ~frame[name].str.contains(_NUMBER) for name in texts}
        found = [name for name, mask in formulas.items() if mask.any()]
        if is_safe:
            frame = frame.with_columns(
                pl.when(formulas[name]).then("'" + frame[name]).otherwise(frame[name]).alias(name) for name in found
            )
        elif found and not is_noted:
            click.echo(
                f"Some cells of {for_terminal(found[0])} are formulas for spreadsheets. Pass --safe-csv to quote them.",
                err=True,
            )
            is_noted = True
        file.write(frame.write_csv(include_header=k == 0).encode())
    file.flush()


def _write_parquet(predictions: Iterator[pl.DataFrame], path: Path) -> None:
    """Write each batch to a file next to `path`, then stream them into one."""
    import polars as pl

    parts = []
    for k, frame in enumerate(predictions):
        parts.append(path.with_name(f"part-{k:08}.parquet"))
        frame.write_parquet(parts[-1])
    pl.scan_parquet(parts, glob=False).sink_parquet(path)
