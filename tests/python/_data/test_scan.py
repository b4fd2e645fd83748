"""Streams of tables: the same model, bit for bit, as of the same rows in memory."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st
from scanned import FEATURES, FRAME, N_ROWS, pieces
from spinney import GradientBoostingClassifier, GradientBoostingRegressor
from spinney._boosting.learning_rows import LearningRows, split_validation
from spinney._data.arguments import read_size

CASES = {
    "values": (GradientBoostingRegressor(n_estimators=5), {"y": "y"}),
    "two classes": (GradientBoostingClassifier(n_estimators=5), {"y": "yes"}),
    "three classes": (GradientBoostingClassifier(n_estimators=4), {"y": "third"}),
    "weights": (GradientBoostingRegressor(n_estimators=5), {"y": "y", "sample_weight": "w"}),
    "rows drawn": (
        GradientBoostingRegressor(n_estimators=5, subsample=0.5, random_state=1),
        {"y": "y", "sample_weight": "w"},
    ),
    "early stopping": (
        GradientBoostingClassifier(n_estimators=40, early_stopping=True, n_iter_no_change=2, random_state=0),
        {"y": "yes", "groups": "g"},
    ),
    "absolute error": (GradientBoostingRegressor("absolute_error", n_estimators=4), {"y": "y"}),
    "forced categories": (GradientBoostingRegressor(n_estimators=5, categorical_features=["i"]), {"y": "y"}),
    "class weights": (GradientBoostingClassifier(n_estimators=4, class_weight="balanced"), {"y": "yes"}),
    "offset": (GradientBoostingRegressor("poisson", n_estimators=4), {"y": "g", "offset": "w"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [64, 501, N_ROWS])
def test_a_stream_gives_the_model_of_its_rows_in_memory(case, size):
    model, named = CASES[case]
    known = model.fit(FRAME[FEATURES], **{option: FRAME[name] for option, name in named.items()})
    expected, schema, predictions = known.fingerprint(), known.schema_, known.predict(FRAME[FEATURES])
    table = pieces([*FEATURES, *named.values()], size)
    model.fit(table, **named)
    assert model.fingerprint() == expected
    assert model.schema_ == schema
    assert table._spooled[1].spill.n_releases > 3
    assert (model.predict(table) == predictions).all()


def test_several_outputs_are_a_list_of_names():
    model = GradientBoostingRegressor(n_estimators=3)
    expected = model.fit(FRAME[FEATURES], FRAME[["y", "third"]]).fingerprint()
    assert model.fit(pieces([*FEATURES, "y", "third"], 300), ["y", "third"]).fingerprint() == expected


@pytest.mark.slow
@pytest.mark.parametrize("target", ["y", "yes"])
def test_with_constant_leaves_a_stream_gives_the_model_of_its_rows_in_memory(target):
    kind = GradientBoostingRegressor if target == "y" else GradientBoostingClassifier
    model = kind(linear_leaves=False)
    expected = model.fit(FRAME[FEATURES], FRAME[target]).fingerprint()
    assert model.fit(pieces([*FEATURES, target], 300), target).fingerprint() == expected


@settings(max_examples=12, deadline=None)
@given(cuts=st.sets(st.integers(1, N_ROWS - 1), max_size=6), budget=st.integers(1, 10**6))
def test_the_model_does_not_depend_on_the_batches(cuts, budget):
    ends = [0, *sorted(cuts), N_ROWS]
    batches = [FRAME[[*FEATURES, "y"]].iloc[a:b] for a, b in pairwise(ends)]
    found = GradientBoostingRegressor(n_estimators=3).fit(spinney.scan(batches, memory=budget), "y")
    assert found.fingerprint() == _of_memory().fingerprint()


_known: list[GradientBoostingRegressor] = []


def _of_memory() -> GradientBoostingRegressor:
    if not _known:
        _known.append(GradientBoostingRegressor(n_estimators=3).fit(FRAME[FEATURES], FRAME.y))
    return _known[0]


def test_sparse_batches_and_missing_dates_give_the_model_of_their_rows_in_memory():
    rng = np.random.default_rng(2)
    X = scipy.sparse.random(400, 12, 0.1, format="csr", random_state=0)
    model = GradientBoostingRegressor(n_estimators=2)
    y = X.toarray()[:, 0] + rng.normal(size=400)
    expected = model.fit(X, y).fingerprint()
    assert model.fit(spinney.scan([X[:133], X[133:]], memory=4000), y).fingerprint() == expected
    frame = pd.DataFrame({"day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, 400), "D")})
    frame.loc[rng.random(400) < 0.1, "day"] = pd.NaT
    frame["s"] = pd.arrays.SparseArray(X.toarray()[:, 0])
    expected = model.fit(frame, y).fingerprint()
    assert model.fit(spinney.scan([frame[:50], frame[50:]], memory=4000), y).fingerprint() == expected


@pytest.mark.parametrize("by_class", [True, False])
def test_rows_to_stop_by_are_drawn_in_few_bytes_a_row(by_class):
    rows = LearningRows(None, np.arange(300_000) % 3.0, None)
    tracemalloc.start()
    try:
        learning, validation = split_validation(rows, 0.1, None, by_class, 0)
        n_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (np.bincount(rows.target.astype(int), validation.weight) == 10_000).all() or not by_class
    assert (learning.weight + validation.weight == 1).all()
    assert n_bytes < 24 * 300_000  # the two arrays that are returned, and 8


def test_every_kind_of_stream_is_read(tmp_path):
    frame = FRAME[[*FEATURES, "y"]]
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for i in range(3):
        pq.write_table(table.slice(300 * i, 300), tmp_path / f"part{i}.parquet", row_group_size=100)
    with pa.OSFile(str(tmp_path / "all.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=250)
    parts = [tmp_path / f"part{i}.parquet" for i in range(3)]
    streams = {
        "pattern": spinney.scan(str(tmp_path / "*.parquet")),
        "paths": spinney.scan(parts),
        "arrow file": spinney.scan(tmp_path / "all.arrow"),
        "dataset": pa.dataset.dataset(parts),
        "lazy frame": pl.scan_parquet(tmp_path / "*.parquet"),
        "reader": table.to_reader(max_chunksize=200),
        "generator": (frame.iloc[at : at + 99] for at in range(0, N_ROWS, 99)),
        "function": lambda: [frame.iloc[:10], frame.iloc[:0], frame.iloc[10:]],
        "list": spinney.scan([pl.from_pandas(frame[:5]), frame[5:]]),
        "arrow stream": spinney.scan(table),
        "frame": spinney.scan(frame),
    }
    for kind, stream in streams.items():
        found = GradientBoostingRegressor(n_estimators=3).fit(stream, "y")
        assert found.fingerprint() == _of_memory().fingerprint(), kind


class Partitions:
    """Looks like a Dask DataFrame."""

    npartitions = 2

    def __init__(self, frame):
        self._frame = frame

    def get_partition(self, i):
        return Partitions(self._frame.iloc[400 * i : 400 * (i + 1)])

    def compute(self):
        return self._frame


def test_a_dask_frame_is_a_stream_of_its_partitions(monkeypatch):
    import sys
    import types

    module = types.ModuleType("dask.dataframe")
    module.DataFrame = Partitions
    monkeypatch.setitem(sys.modules, "dask.dataframe", module)
    monkeypatch.setattr(Partitions, "__module__", "dask.dataframe")
    frame = Partitions(FRAME[[*FEATURES, "y"]])
    model = GradientBoostingRegressor(n_estimators=3).fit(frame, "y")
    assert model.fingerprint() == _of_memory().fingerprint()
    with pytest.raises(TypeError, match=r"Name its column of X instead, such as y='y'"):
        model.fit(frame, Partitions(FRAME.y))
    with pytest.raises(TypeError, match=r"Dask collection; call compute\(\)"):
        spinney.LinearRegressor().fit(frame, FRAME.y)


def test_a_stream_that_is_read_once_serves_several_fits():
    table = spinney.scan(frame for frame in [FRAME[[*FEATURES, "y"]]])
    models = [GradientBoostingRegressor(n_estimators=3, learning_rate=rate).fit(table, "y") for rate in (0.1, 0.2)]
    assert models[0].fingerprint() == _of_memory().fingerprint() != models[1].fingerprint()
    assert "700 rows and 6 columns in files" in repr(table)
    table.close()
    with pytest.raises(ValueError, match="already read, and cannot be read again"):
        models[0].predict(table)


def test_files_vanish(tmp_path):
    with spinney.scan(lambda: [FRAME[[*FEATURES, "y"]]], folder=str(tmp_path)) as table:
        GradientBoostingRegressor(n_estimators=3).fit(table, "y")
        assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="lacks 'y'"):
        spinney.scan([FRAME[["a", "y"]], FRAME[["a"]]], folder=str(tmp_path)).spooled()
    assert not list(tmp_path.iterdir())


def test_types_that_differ_between_batches_become_one():
    batches = [
        pd.DataFrame({"n": [1, 2], "late": [None, None], "t": [None, None], "f": [True, False], "e": [None, None]}),
        pd.DataFrame({"n": [2.5, np.nan], "late": [3, 4], "t": ["b", "a"], "f": [1, 0], "e": [None, None]}),
        pl.DataFrame({"e": [None], "f": [None], "t": ["b"], "late": [None], "n": [7]}, schema_overrides={"f": pl.Int8}),
    ]
    table = spinney.scan(batches).spooled()
    assert table.names == ["n", "late", "t", "f", "e"]
    number, late, text, flag, empty = (table.column(j) for j in range(5))
    assert number.values.tolist()[:3] == [1, 2, 2.5]
    assert np.isnan(number.values[3])
    assert number.values[4] == 7
    assert late.missing.tolist() == [1, 1, 0, 0, 1]
    assert late.values.tolist()[2:4] == [3, 4]
    assert text.codes.tolist() == [-1, -1, 1, 0, 1]
    assert text.values == ["a", "b"]
    assert flag.values.tolist()[:4] == [1, 0, 1, 0]
    assert flag.missing.tolist() == [0, 0, 0, 0, 1]
    assert np.isnan(empty.values).all()


def test_ordered_categories_and_dates_are_kept():
    grade = pd.Categorical(["low", "high", "low", "mid"], ["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"grade": grade, "day": pd.date_range("2024-05-30", periods=4), "y": [1.0, 2, 3, 4]})
    known = GradientBoostingRegressor(n_estimators=1).fit(frame[["grade", "day"]], frame.y)
    found = GradientBoostingRegressor(n_estimators=1).fit(spinney.scan([frame[:1], frame[1:]]), "y")
    assert found.schema_ == known.schema_
    other = frame.assign(grade=frame.grade.cat.set_categories(["high", "low"]))
    with pytest.raises(ValueError, match="'grade' has other ordered categories in batch 1"):
        spinney.scan([frame, other]).spooled()
    with pytest.raises(TypeError, match="'day' changes between dates and numbers"):
        spinney.scan([frame, frame.assign(day=5)]).spooled()


def test_predictions_of_a_stream_are_those_of_its_rows():
    model = GradientBoostingClassifier(n_estimators=4).fit(FRAME[FEATURES], FRAME.third)
    table = pieces([*FEATURES, "y"], 90)
    assert (model.predict_proba(table) == model.predict_proba(FRAME[FEATURES])).all()
    predictions = [model.predict(rows) for rows in table.batches(model.feature_names_in_)]
    assert len(predictions) == 8
    assert (np.concatenate(predictions) == model.predict(FRAME[FEATURES])).all()
    values = [model.shap_values(rows).values for rows in table.batches(FEATURES)]
    whole = model.shap_values(FRAME[FEATURES])
    assert np.array_equal(np.concatenate(values), whole.values)
    assert np.array_equal(model.shap_values(table).values, whole.values)
    with pytest.raises(ValueError, match=r"has no column\(s\) 't'"):
        model.predict(pieces(["a", "b", "i", "f"], 100))


def test_rows_held_out_may_be_a_stream():
    columns = [*FEATURES, "y", "w"]
    model = GradientBoostingRegressor(n_estimators=20, early_stopping=True)
    head, tail = FRAME[:500], FRAME[500:]
    known = model.fit(
        head[FEATURES], head.y, X_val=tail[FEATURES], y_val=tail.y, sample_weight_val=tail.w
    ).fingerprint()
    held_out = spinney.scan([tail[columns]])
    model.fit(spinney.scan([head[[*FEATURES, "y"]]]), "y", X_val=held_out, y_val="y", sample_weight_val="w")
    assert model.fingerprint() == known


def test_refusals_say_what_to_do(tmp_path):
    columns = [*FEATURES, "y"]
    model = GradientBoostingRegressor(n_estimators=2)
    for stream, error, words in [
        (pieces(columns, 100), ValueError, r"y='target' is not a column of the stream, which has 'a'"),
        (lambda: iter([]), ValueError, "The stream has no rows"),
        (tmp_path / "none*.parquet", FileNotFoundError, "There is no file"),
        (spinney.scan(lambda: [FRAME[["a"]], FRAME[["b"]]]), ValueError, "Batch 1 of the stream lacks 'a'"),
        (lambda: [FRAME[["t"]], FRAME[["a"]].rename(columns={"a": "t"})], TypeError, "'t' mixes strings and numbers"),
    ]:
        with pytest.raises(error, match=words):
            model.fit(stream, "target")
    (tmp_path / "x.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"pass polars.scan_csv\(path\)"):
        spinney.scan(tmp_path / "x.csv")
    with pytest.raises(TypeError, match="A value of type int is not a stream of tables"):
        spinney.scan(5)
    with pytest.raises(ValueError, match="No column is left to learn from"):
        model.fit(pieces(["y"], 100), "y")
    with pytest.raises(TypeError, match="stream of tables, which only trees, forests and gradient boosting accept"):
        spinney.LinearRegressor().fit(pieces(columns, 100), FRAME.y)
    zero = FRAME.assign(w=FRAME.w - 1)[[*columns, "w"]]
    with pytest.raises(ValueError, match="have weight 0, and n_estimators='auto'"):
        GradientBoostingRegressor().fit(spinney.scan(zero), "y", sample_weight="w")
    with pytest.raises(ValueError, match="scoring is a function that may read the held-out rows"):
        GradientBoostingRegressor(n_estimators=5, early_stopping=True, scoring=lambda m, X, y: 0.0, random_state=0).fit(
            pieces(columns, 100), "y"
        )
    with pytest.raises(ValueError, match="init=LinearRegressor would be fitted to all rows"):
        GradientBoostingRegressor(n_estimators=5, init=spinney.LinearRegressor()).fit(pieces(columns, 100), "y")


def test_sizes_are_read():
    sizes = {"2GB": 2 * 10**9, "1.5 MiB": 3 << 19, "300": 300, 7: 7, "4k": 4000}
    assert {text: read_size(text, "memory") for text in sizes} == sizes
    for wrong in ("much", "-1MB", 0, 1.5, True):
        with pytest.raises(ValueError, match="memory must be a number of bytes"):
            read_size(wrong, "memory")


def test_the_command_reads_large_tables_out_of_core(tmp_path):
    from click.testing import CliRunner
    from spinney.cli.commands import spinney as command

    frame = FRAME[[*FEATURES, "yes", "w"]].copy()
    frame.loc[[3, 600], "yes"] = None
    for i, part in enumerate([frame[:300], frame[300:]]):
        part.to_parquet(tmp_path / f"part{i}.parquet", index=False)
    frame.to_parquet(tmp_path / "all.parquet", index=False)
    words = ["--target", "yes", "--weight", "w", "--drop", "f", "--model", "boosting", "--trees", "4", "--json"]

    def run(*arguments):
        return CliRunner().invoke(command, ["fit", *map(str, arguments)])

    many = run(tmp_path / "part*.parquet", *words, "--out", tmp_path / "many")
    assert many.exit_code == 0, many.output
    assert "matches 2 files" in many.stderr
    large = run(tmp_path / "all.parquet", *words, "--memory", "1kB", "--out", tmp_path / "large")
    assert "takes about 0.0 MB of memory, and the limit is 0.0 MB" in large.stderr
    small = run(tmp_path / "all.parquet", *words, "--folds", 0, "--out", tmp_path / "small")
    assert small.exit_code == 0, small.output
    assert "out of core" not in small.stderr
    prints = {spinney.load(tmp_path / name).fingerprint() for name in ("many", "large", "small")}
    assert len(prints) == 1
    assert '"rows": 698' in many.stdout
    for arguments, message in [
        ([tmp_path / "part*.parquet", "--target", "yes", "--model", "knn"], "Only --model boosting, forest"),
        ([tmp_path / "none*.parquet", "--target", "yes"], "No file matches"),
        ([tmp_path / "part*.parquet", *words, "--target", "yess"], "has no column 'yess'"),
        ([tmp_path / "all.parquet", *words, "--memory", "much"], "must be a number of bytes"),
    ]:
        refused = run(*arguments)
        assert refused.exit_code in (1, 2)
        assert message in " ".join(refused.stderr.split())
