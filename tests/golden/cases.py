"""Reference trees of R's rpart: the tables, what was asked of rpart, and what it answered.

``data/NAME.csv`` with ``data/NAME.schema.json`` is a table, ``data/NAME.newdata.csv`` rows to predict,
``rpart/ID.json`` one call with its result. Row numbers, level codes and class indices in them count from 1.
"""

import csv
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LOGICAL = {"FALSE": 0.0, "TRUE": 1.0}
CONTROL = [
    "minsplit", "minbucket", "cp", "maxcompete", "maxsurrogate", "usesurrogate", "surrogatestyle", "maxdepth", "cost",
    "split", "loss", "shrink", "error_method",
]  # fmt: skip


@dataclass
class Case:
    name: str
    method: str  # class, anova, poisson or exp
    names: list  # predictors
    columns: list  # one float array per predictor, NaN where missing; factors as codes from 1
    kinds: list  # numeric, logical, factor or ordered
    levels: list  # names of the levels, None for numbers
    y: np.ndarray  # class codes from 1, values, or the columns of a response of several
    y_names: list
    class_levels: list | None
    params: dict
    xgroups: np.ndarray | None
    weights: np.ndarray | None
    newdata: list  # like columns
    expected: dict

    @property
    def n_levels(self):
        return [0 if levels is None else len(levels) for levels in self.levels]

    @cached_property
    def new_frame(self):
        return pandas_frame(self, self.newdata)

    @property
    def reference_kinds(self):
        return ["numeric" if kind == "logical" else kind for kind in self.kinds]


def case_names():
    return sorted(path.stem.removeprefix("rpart_") for path in (HERE / "rpart").glob("*.json"))


def load_case(name):
    """Read a case, by its id without the leading ``rpart_``."""
    expected = json.loads((HERE / "rpart" / f"rpart_{name}.json").read_text())
    schema = read_schema(expected["data"])
    table = read_table(expected["data"], schema)
    newdata = read_table(expected["newdata"], schema)
    names, response = expected["predictors"], expected["response"]
    y = [table[column] for column in response]
    groups, weights = expected["xgroups"], expected["weights"]
    kinds = {column: column_schema["type"] for column, column_schema in schema.items()}
    return Case(
        name=name,
        method=expected["method"],
        names=names,
        columns=[table[column] for column in names],
        kinds=["numeric" if kinds[column] == "integer" else kinds[column] for column in names],
        levels=[schema[column].get("levels") for column in names],
        y=y[0] if len(y) == 1 else np.column_stack(y),
        y_names=response,
        class_levels=schema[response[0]].get("levels") if expected["method"] == "class" else None,
        params=call_params(expected["params"]),
        xgroups=None if groups is None else np.array(groups),
        weights=None if weights is None else np.array(weights, float),
        newdata=[newdata[column] for column in names],
        expected=expected,
    )


def call_params(params):
    """The parameters in force; a prior only where the call gave one."""
    chosen = {key: params[key] for key in CONTROL if key in params}
    return {**chosen, "prior": params["prior"] if params.get("prior_given") else None}


@lru_cache
def read_schema(path):
    columns = json.loads((HERE / path.replace(".csv", ".schema.json")).read_text())["columns"]
    return {column["name"]: column for column in columns}


def read_table(path, schema):
    with (HERE / path).open(newline="") as stream:
        header, *rows = csv.reader(stream)
    return {
        name: np.array([parse(cell, schema[name]) for cell in cells])
        for name, cells in zip(header, zip(*rows, strict=True), strict=True)
    }


def parse(cell, column):
    if cell == "NA":
        return np.nan
    if column["type"] in ("factor", "ordered"):
        return float(column["levels"].index(cell) + 1)
    return LOGICAL[cell] if column["type"] == "logical" else float(cell)


def to_pandas(case):
    """Predictors, response and new rows as a user would pass them: categories for factors, labels for classes.

    Rows that rpart drops are still there: ``case.expected["omitted_rows_1based"]`` names them.
    """
    return pandas_frame(case, case.columns), pandas_response(case), case.new_frame


def pandas_frame(case, columns):
    import pandas as pd

    described = zip(case.names, columns, case.kinds, case.levels, strict=True)
    return pd.DataFrame({name: pandas_column(values, kind, levels) for name, values, kind, levels in described})


def pandas_column(values, kind, levels):
    import pandas as pd

    if levels is not None:
        codes = np.where(np.isnan(values), 0, values).astype(int) - 1
        return pd.Series(pd.Categorical.from_codes(codes, categories=levels, ordered=kind == "ordered"))
    if kind == "logical":
        return pd.Series(np.where(np.isnan(values), None, values == 1), dtype="boolean")
    return pd.Series(values)


def pandas_response(case):
    """Labels in the order of the levels, numbers, or a frame where the response has several columns."""
    import pandas as pd

    if case.method == "class":
        return pandas_column(case.y, "factor", case.class_levels)
    if case.y.ndim == 1:
        return pd.Series(case.y, name=case.y_names[0])
    return pd.DataFrame(case.y, columns=case.y_names)
