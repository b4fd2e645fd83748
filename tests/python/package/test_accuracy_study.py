"""The arithmetic of benchmarks/accuracy.py: its verdict on a difference, and that compressed tables are equal."""

import csv
import importlib
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import spinney

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": random.normal(size=60),
            "gap": np.where(random.random(60) < 0.2, np.nan, random.normal(size=60)),
            "word": pd.Series(random.choice(["b", "a", "c"], 60)).where(random.random(60) < 0.8),
        }
    )
    frame["target"] = np.where(frame["number"] > 0, "yes", "no")
    frame.to_parquet(tmp_path / "words.parquet")
    with (tmp_path / "index.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "task", "rows", "official_train_rows"])
        rows.writerows([["words", "binary", 60, 40], ["absent", "binary", 9, ""]])
    return tmp_path


def test_a_packed_set_is_the_same_set(module, folder, tmp_path):
    sets = module("sets")
    assert sets.names(folder) == ["words"]
    sets.pack(folder, tmp_path / "packed")
    read, packed = sets.load(folder, "words"), sets.load(tmp_path / "packed", "words")
    assert read.is_category.tolist() == [False, False, True]
    assert np.unique(read.X[~np.isnan(read.X[:, 2]), 2]).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(read.X, packed.X)
    np.testing.assert_array_equal(read.y, packed.y)
    assert (packed.n_classes, packed.n_official) == (2, 40)
    assert packed.encoded.shape == (60, 5)


def test_codes_marked_as_categories_are_the_words_themselves(module, folder):
    table = module("sets").load(folder, "words")
    frame = pd.read_parquet(folder / "words.parquet").astype({"number": np.float32, "gap": np.float32})
    settings = {"n_estimators": 10, "random_state": 0}
    by_words = spinney.RandomForestClassifier(**settings).fit(frame.drop(columns="target"), table.y)
    method = module("evaluation").Method("spinney", "forest", None, "raw")
    by_codes = module("evaluation").make(method, "classifier", table.is_category, **settings).fit(table.X, table.y)
    np.testing.assert_array_equal(by_words.predict_proba(frame.drop(columns="target")), by_codes.predict_proba(table.X))


def test_a_study_pairs_by_split(module, folder):
    parity = module("parity")
    sizes = parity.Sizes(n_trees=3, repeats=2)
    units = list(parity.units("parity", folder, ["words"], sizes))
    assert len(units) == 2 * len(parity.parity_methods(True))
    records = [{"key": unit.key} | unit.work(*unit.arguments) for unit in units]
    found = parity.differences(
        parity.by_set_and_method(records),
        parity.Method("spinney", "forest"),
        parity.Method("sklearn", "forest"),
        "error",
    )
    assert [(d.name, d.n) for d in found] == [("words", 2)]


def test_an_interrupted_run_goes_on(module, tmp_path):
    pool = module("pool")
    path = tmp_path / "records.jsonl"
    units = [pool.Unit({"repeat": r}, dict, ([("loss", r / 2)],)) for r in range(3)]
    pool.run(units[:2], path, 1, None)
    with path.open("a") as file:
        file.write('{"key": {"repe')  # the process was killed while writing
    assert sorted(record["loss"] for record in pool.read_records(path)) == [0, 0.5]  # in the order they came in
    pool.run(units, path, 1, None)
    assert sorted(record["loss"] for record in pool.read_records(path)) == [0, 0.5, 1]


def test_differences_have_standard_errors(module):
    parity = module("parity")
    ours, peer = parity.Method("spinney", "forest"), parity.Method("sklearn", "forest")
    losses = {
        ("a", str(ours)): {r: {"losses": {"RMSE": value}} for r, value in enumerate([2.0, 3.0, 4.0])},
        ("a", str(peer)): {r: {"losses": {"RMSE": value}} for r, value in enumerate([1.0, 3.0, 2.0])},
    }
    (found,) = parity.differences(losses, ours, peer, "RMSE")
    assert found.mean == 1
    assert found.error == pytest.approx(1 / math.sqrt(3))
    assert found.standardized == pytest.approx(math.sqrt(3))
    assert found.relative == pytest.approx(0.5)
    assert found._replace(error=0.0).standardized == 5
    assert found._replace(mean=0.0, error=0.0).standardized == 0


def test_votes_are_counted_alike(module):
    evaluation = module("evaluation")
    random = np.random.default_rng(1)
    X, y = random.normal(size=(80, 3)), random.integers(3, size=80)
    for library in ("spinney", "sklearn"):
        method = evaluation.Method(library, "forest")
        model = evaluation.make(method, "classifier", np.zeros(3, bool), n_estimators=7, random_state=0).fit(
            X[:60], y[:60]
        )
        named = np.stack([tree.predict(X[60:]) for tree in model.estimators_], axis=1).astype(int)
        majority = [np.bincount(row, minlength=3).argmax() for row in named]
        assert evaluation.vote_error(model, X[60:], y[60:]) == np.mean(majority != y[60:])


def test_a_printed_figure_has_rounding_noise(module):
    published = module("published")
    values = np.array([[20.0, 22.0], [24.0, 26.0], [22.0, 24.0], [22.0, 24.0]])
    row = published.compare("breiman", "glass", "selection", 22.0, values, True)
    assert row.to_print == 0
    row = published.compare("breiman", "glass", "selection", 20.0, values, True)
    variance = 8 / 3
    assert row.to_print == pytest.approx(2 / math.sqrt(variance / 4 + variance / 100 + 0.1**2 / 12))
    assert "WORSE" in row.text
