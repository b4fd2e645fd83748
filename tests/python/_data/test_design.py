"""The design matrix, compared with one computed column by column."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from spinney._data import Schema, read_table
from spinney._data.design import CATEGORY, MISSING, Design

KINDS = ["float64", "float32", "strided", "missing", "mixed", "sparse", "integer", "one row"]


def column_terms(design, columns):
    """Terms of each row, one by one from copies of the columns."""
    terms = np.empty((len(design), columns.n_rows))
    fill = design.center if design.fill is None else design.fill
    for t, (j, kind) in enumerate(zip(design.feature.tolist(), design.kind.tolist(), strict=True)):
        values = np.asarray(columns.column(j))
        if kind == MISSING:
            values = np.isnan(values).astype(float)
        elif kind == CATEGORY:
            values = (values == design.code[t]).astype(float)
        else:
            values = np.where(np.isfinite(values), values, fill[t])
        terms[t] = (values - design.center[t]) / design.scale[t]
    return np.clip(terms, -1e100, 1e100)


def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 90))
    holes = np.where(rng.random(X.shape) < 0.02, np.nan, X)
    mixed = pd.DataFrame({"a": X[:, 0], "b": rng.choice(["x", "y", "z"], 150), "c": holes[:, 1], "d": X[:, 2] > 0})
    thin = scipy.sparse.csc_array(np.where(X > 1, X, 0))
    return [X, X.astype("float32"), np.asfortranarray(X)[::2], holes, mixed, thin, np.round(X).astype(int), X[:1]]


@pytest.mark.parametrize("scale", ["standard", "range", None])
@pytest.mark.parametrize("table", tables(), ids=KINDS)
def test_terms_are_those_of_the_columns(table, scale):
    raw = read_table(table)
    schema = Schema.learn(raw)
    columns = schema.encode(raw)
    weight = np.arange(raw.n_rows) % 3 + (raw.n_rows == 1.0)
    design = Design.learn(columns, schema, weight, scale)
    expected = column_terms(design, columns)
    np.testing.assert_array_equal(design.matrix(columns), expected)
    np.testing.assert_array_equal(design.matrix(columns, by_row=True), expected.T)
    assert design.matrix(columns, by_row=True).flags.c_contiguous


@pytest.mark.parametrize("table", tables(), ids=KINDS)
def test_blocks_are_columns(table):
    raw = read_table(table)
    columns = Schema.learn(raw).encode(raw)
    features = np.arange(columns.n_columns, dtype=np.int32)[::-1].copy()
    expected = np.array([np.asarray(columns.column(j)) for j in features])
    np.testing.assert_array_equal(columns.block(features, False), expected)
    np.testing.assert_array_equal(columns.block(features, True), expected.T)
    with pytest.raises(IndexError, match="no such column"):
        columns.block(np.array([columns.n_columns], dtype=np.int32), True)


@pytest.mark.parametrize("size", [1.0, 1e200, 1e-200, 1e307])
def test_numbers_have_their_mean_and_spread(size):
    X = np.random.default_rng(0).normal(2.0, 1.0, size=(40, 3)) * np.array([1.0, size, -size])
    weight = np.arange(40) % 4.0
    raw = read_table(X)
    schema = Schema.learn(raw)
    design = Design.learn(schema.encode(raw), schema, weight)
    unit = np.abs(X).max(axis=0)
    mean = np.average(X / unit, weights=weight, axis=0)
    np.testing.assert_allclose(design.center, mean * unit, rtol=1e-12)
    np.testing.assert_allclose(
        design.scale, np.sqrt(np.average((X / unit - mean) ** 2, weights=weight, axis=0)) * unit, rtol=1e-12
    )
