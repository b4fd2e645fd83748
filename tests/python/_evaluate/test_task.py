"""Classification or regression: one rule, and the same answer at all four doors."""

import json
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from click.testing import CliRunner
from sklearn.base import is_classifier
from spinney._evaluate.problem import read_target
from spinney.cli import study as bench
from spinney.cli.commands import spinney as command

N = 60
RANDOM = np.random.default_rng(0)
CLASSIFICATION, REGRESSION = "classification", "regression"

# awkward targets, and what they ask for; None: they are refused
TARGETS = {
    "floats of 0 and 1": (np.tile([0.0, 1.0], N // 2), CLASSIFICATION),
    "integers of 0 and 1": (np.tile([0, 1], N // 2), CLASSIFICATION),
    "ratings": (np.arange(N) % 5 + 1, CLASSIFICATION),
    "ratings as floats": (np.arange(N) % 5 + 1.0, CLASSIFICATION),
    "ten whole numbers": (np.arange(N) % 10, CLASSIFICATION),
    "eleven whole numbers": (np.arange(N) % 11, REGRESSION),
    "integers that all differ": (RANDOM.permutation(N), REGRESSION),
    "labels beyond the whole floats": (np.tile([2**62, 2**62 + 1], N // 2), CLASSIFICATION),
    "two fractions": (np.tile([0.5, 1.0], N // 2), REGRESSION),
    "fractions": (RANDOM.normal(size=N), REGRESSION),
    "decimals": ([Decimal("1.5"), Decimal("2")] * (N // 2), REGRESSION),
    "strings": (["yes", "no"] * (N // 2), CLASSIFICATION),
    "numbers as strings": ([str(k % 20) for k in range(N)], CLASSIFICATION),
    "booleans": ([True, False] * (N // 2), CLASSIFICATION),
    "categories": (pl.Series(["a", "b", "c"] * (N // 3), dtype=pl.Categorical), CLASSIFICATION),
    "dates": ([date(2024, 1, 1) + timedelta(days=k) for k in range(N)], None),
    "one number": (np.full(N, 3.0), None),
    "one label": (["a"] * N, None),
    "nothing": (pl.Series([None] * N, dtype=pl.Float64), None),
    "infinity": (np.append(np.arange(N - 1.0), np.inf), None),
}


def table(values):
    x = np.random.default_rng(1).normal(size=(N, 2))
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": values})


def run(*words):
    found = CliRunner().invoke(command, [str(word) for word in words])
    if found.exit_code:
        raise ValueError(found.stderr)
    return json.loads(found.stdout)


def ask_study(frame, file, task):
    found = spinney.study(frame, "y", models=["tree"], repeats=1, cv=2, task=task)
    return REGRESSION if found.task == "regression" else CLASSIFICATION


def ask_compare(frame, file, task):
    found = spinney.compare(["tree"], frame.drop("y"), frame["y"], cv=2, repeats=1, baseline=False, task=task)
    return CLASSIFICATION if is_classifier(found.estimators["tree"]) else REGRESSION


def ask_fit(frame, file, task):
    return run("fit", file, "--target", "y", "--folds", 0, "--task", task, "--json")["task"]


def ask_bench(frame, file, task):
    found = run("bench", file, "--target", "y", "--rounds", 1, "--task", task, "--json")
    return CLASSIFICATION if found["loss"] == "log loss" else REGRESSION


@pytest.fixture(params=[ask_study, ask_compare, ask_fit, ask_bench])
def ask(request, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "_OWN", ("tree",))
    monkeypatch.setattr(bench, "peer_candidates", lambda *_: [])

    def asked(values, task="auto"):
        frame, file = table(values), tmp_path / "t.parquet"
        frame.write_parquet(file)
        return request.param(frame, file, task)

    return asked


@pytest.mark.parametrize("name", TARGETS)
def test_all_doors_give_the_same_answer(ask, name):
    values, task = TARGETS[name]
    if task is None:
        with pytest.raises(ValueError, match=r"target.*'y'|'y'.*target"):
            ask(values)
    else:
        assert ask(values) == task


def test_all_doors_take_the_same_override(ask):
    assert ask(TARGETS["floats of 0 and 1"][0], REGRESSION) == REGRESSION
    assert ask(TARGETS["eleven whole numbers"][0], CLASSIFICATION) == CLASSIFICATION
    with pytest.raises(ValueError, match="needs numbers"):
        ask(TARGETS["strings"][0], REGRESSION)
    with pytest.raises(ValueError, match="holds fractions"):
        ask(TARGETS["fractions"][0], CLASSIFICATION)


@pytest.mark.parametrize("values", [[0.0, 1.0, None], ["a", "b", None], [True, False, None], [1, 2, None]])
def test_rows_without_a_value_do_not_count(values):
    target = pl.Series(values * 20)
    found = read_target(target)
    assert found.task == CLASSIFICATION
    assert found.is_known.sum() == 40
    frame = table(target)
    assert ask_study(frame, None, "auto") == CLASSIFICATION
    with pytest.raises(ValueError, match="y contains NaN"):  # as every estimator
        ask_compare(frame, None, "auto")


def test_numbers_of_a_categorical_type_are_classes():
    levels = np.arange(N) % 20
    assert read_target(pd.Series(levels)).task == REGRESSION
    assert read_target(pd.Series(levels, dtype="category")).task == CLASSIFICATION
    found = spinney.study({"a": RANDOM.normal(size=N)}, pd.Series(levels, dtype="category"), models=["tree"], repeats=1)
    assert found.classes.tolist() == list(range(20))


def test_each_value_occurs_twice_on_average():
    assert read_target(np.arange(20) % 10).task == CLASSIFICATION
    assert read_target(np.arange(19) % 10).task == REGRESSION
    assert read_target(np.arange(9)).task == REGRESSION


def test_estimators_among_the_models_come_before_the_rule():
    frame = table(TARGETS["floats of 0 and 1"][0])
    models = ["linear", ("tree", spinney.DecisionTreeRegressor())]
    found = spinney.compare(models, frame.drop("y"), frame["y"], cv=2, repeats=1)
    assert not is_classifier(found.estimators["linear"])


def test_a_task_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="task must be one of auto, classification, regression"):
        read_target([1, 2], "clustering")
