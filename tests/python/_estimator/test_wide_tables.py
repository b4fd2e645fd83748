"""Work in Python on tables of few rows and many columns: counted, since times vary."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney

MODELS = (
    spinney.LinearSVC(),
    spinney.LinearSVR(),
    spinney.SVC(),
    spinney.SVR(),
    spinney.NuSVC(),
    spinney.KNeighborsClassifier(3),
    spinney.KNeighborsRegressor(3),
    spinney.Perceptron(),
)
PACKAGE = str(Path(spinney.__file__).parent)
TABLES: dict[str, Callable[..., Any]] = {"array": lambda X, **_: X, "pandas": pd.DataFrame, "polars": pl.DataFrame}


def n_calls(action: Callable[[], Any]) -> int:
    """Number of calls of functions of Python and C by spinney's own code."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call") and frame.f_code.co_filename.startswith(PACKAGE)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def table(kind: str, n_columns: int) -> Any:
    """Twenty rows, of which the first column separates the even from the odd."""
    X, names = np.random.default_rng(0).normal(size=(20, n_columns)), [f"c{j}" for j in range(n_columns)]
    X[:, 0] = np.abs(X[:, 0]) * np.where(np.arange(20) % 2, 5.0, -5.0)
    return TABLES[kind](X, **{"schema" if kind == "polars" else "columns": names})


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_column_of_numbers_costs_no_call(model: Any, kind: str) -> None:
    y = np.arange(20) % 2
    narrow, wide = table(kind, 10), table(kind, 2_000)
    for X in (wide, narrow):  # what is imported or cached at first use
        model.fit(X, y).predict(X)
    few = n_calls(lambda: model.fit(narrow, y)), n_calls(lambda: model.predict(narrow))
    many = n_calls(lambda: model.fit(wide, y)), n_calls(lambda: model.predict(wide))
    assert 0 < many[0] <= few[0] + 500  # solvers take other numbers of iterations
    assert 0 < many[1] <= few[1] + 20


def test_neighbours_in_wide_tables_are_indexed_at_the_first_query() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 30)), np.arange(40.0)
    model = spinney.KNeighborsRegressor(1).fit(X, y)
    assert model.neighbors_._index is None
    X[:] = 0.0  # the model has its own rows
    assert len(np.unique(model.predict(np.random.default_rng(0).normal(size=(40, 30))))) == 40
    assert model.neighbors_._index is not None
    assert spinney.KNeighborsRegressor(1).fit(X[:, :20], y).neighbors_._index is not None


def test_means_that_replace_missing_values_are_those_of_the_training_rows() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40.0)
    model = spinney.KNeighborsRegressor(2).fit(X, y)
    weighted = spinney.KNeighborsRegressor(2).fit(X, y, np.full(40, 2.0))  # does not take the shorter path
    assert model.neighbors_.measure.design.fill.tolist() == weighted.neighbors_.measure.design.fill.tolist()
    filled = X.copy()
    filled[3, 1] = X.mean(axis=0)[1]
    missing = filled.copy()
    missing[3, 1] = np.nan
    assert model.predict(missing)[3] == model.predict(filled)[3]


def test_novikoffs_bound_is_computed_when_it_is_asked_for() -> None:
    X = np.random.default_rng(0).normal(size=(40, 60))
    model = spinney.Perceptron().fit(X, X[:, 0] > 0)
    assert "novikoff_bound_" not in vars(model)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.novikoff_bound_.tolist() == model.novikoff_bound_.tolist()
    assert "_bounds" not in vars(model)
    model.fit(X[:, :50], X[:, 0] > 0)
    assert "novikoff_bound_" not in vars(model)


@pytest.mark.parametrize("n_columns", [200, 2_000])
def test_few_rows_of_many_columns_reach_the_optimum(n_columns: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, n_columns)), rng.normal(size=150)
    model = spinney.LinearSVR(tol=1e-10).fit(X, y)
    assert model.dual_gap_[0] <= 1e-10
    assert model.n_iter_ < 20
    hinge = spinney.LinearSVC(loss="hinge", tol=1e-10).fit(X, y > 0)
    assert hinge.dual_gap_[0] <= 1e-10
    assert hinge.n_iter_ < 20


def test_numbers_of_first_use_may_be_computed_by_two_threads() -> None:
    """From Python 3.12 on, a cached property has no lock: the second thread may begin before the first has ended."""
    X, y = table("array", 30), np.arange(20) % 2
    perceptron, design = (
        spinney.Perceptron().fit(X, y),
        spinney.KNeighborsClassifier(3).fit(X, y).neighbors_.measure.design,
    )
    for owner, name in ((perceptron, "novikoff_bound_"), (design, "fill")):
        compute = getattr(type(owner), name).func
        first = compute(owner)
        assert first.shape == ((1,) if owner is perceptron else (30,))
        np.testing.assert_array_equal(compute(owner), first)
        np.testing.assert_array_equal(getattr(owner, name), first)
