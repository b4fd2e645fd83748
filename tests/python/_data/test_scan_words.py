"""Streams that cannot be read, or not in this way: sentences that say which part of them, and what to do."""

from __future__ import annotations

import numpy as np
import pyarrow.dataset as ds
import pytest
import spinney
from click.testing import CliRunner
from scanned import FEATURES, FRAME
from spinney import DecisionTreeRegressor, GradientBoostingRegressor, RandomForestRegressor
from spinney.cli.commands import spinney as command

COLUMNS = [*FEATURES, "y"]
HALVES = [FRAME[COLUMNS][:300], FRAME[COLUMNS][300:]]


def model() -> GradientBoostingRegressor:
    return GradientBoostingRegressor(n_estimators=2)


@pytest.fixture
def files(tmp_path):
    for i, half in enumerate(HALVES):
        half.to_parquet(tmp_path / f"part{i}.parquet", index=False)
    return tmp_path


def cut_off(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def garble(path):
    data = bytearray(path.read_bytes())
    data[200 : len(data) // 2] = bytes(byte ^ 0x5A for byte in data[200 : len(data) // 2])
    path.write_bytes(data)


def test_lists_of_files_and_of_frames_are_fitted_as_they_are(files):
    expected = model().fit(FRAME[FEATURES], FRAME.y).fingerprint()
    names = [str(files / f"part{i}.parquet") for i in range(2)]
    (files / "year=1").mkdir()
    HALVES[1].to_parquet(files / "year=1" / "a.parquet", index=False)
    for stream in (
        names,
        [files / "part0.parquet", files / "year=*"],  # a pattern of folders
        tuple(HALVES),
        ds.dataset(names).scanner(),
        lambda: ds.dataset(names),
        lambda: names,
        lambda: FRAME[COLUMNS],
    ):
        stream = spinney.scan(stream) if isinstance(stream, list) and stream[-1] == files / "year=*" else stream
        assert model().fit(stream, "y").fingerprint() == expected


@pytest.mark.parametrize("damage", [cut_off, garble])
def test_a_damaged_file_is_named(files, damage):
    damage(files / "part1.parquet")
    with pytest.raises(
        ValueError, match=r"Cannot read '.*part1\.parquet': .*\. Write the file again, or leave it out\."
    ):
        model().fit(files, "y")


def test_a_file_that_is_gone_is_named(files):
    table = spinney.scan(files)
    (files / "part1.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"file '.*part1\.parquet' was removed .* Restore it, or scan"):
        model().fit(table, "y")


def test_a_folder_and_a_file_with_brackets_in_their_names_are_no_patterns(tmp_path):
    folder = tmp_path / "run[1]"
    folder.mkdir()
    FRAME[COLUMNS].to_parquet(folder / "part?.parquet", index=False)
    fitted = model().fit(FRAME[FEATURES], FRAME["y"])
    for source in (folder, str(folder), folder / "part?.parquet", [folder / "part?.parquet"]):
        np.testing.assert_array_equal(fitted.predict(source), fitted.predict(FRAME[FEATURES]))


def test_a_folder_of_folders_is_read_by_a_pattern(tmp_path):
    (tmp_path / "year=1").mkdir()
    HALVES[0].to_parquet(tmp_path / "year=1" / "a.parquet")
    with pytest.raises(
        FileNotFoundError, match=r"has no Parquet or Arrow files\. .* pattern, such as '.*\*\*/\*\.parquet'"
    ):
        spinney.scan(tmp_path)
    assert model().fit(str(tmp_path / "**" / "*.parquet"), "y").n_features_in_ == len(FEATURES)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(model, {}), (RandomForestRegressor, {"max_bins": 255}), (DecisionTreeRegressor, {"max_bins": 9})],
)
def test_streams_without_rows(kind, options):
    stream = iter(HALVES)
    fitted = kind(**options, **({"n_estimators": 2} if kind is RandomForestRegressor else {})).fit(stream, "y")
    for none in (stream, spinney.scan([HALVES[0][:0]]), lambda: []):
        for method in (fitted.predict, fitted.shap_values):
            with pytest.raises(ValueError, match=r"The stream has no rows\. .* create a new one, or scan it once"):
                method(none)


@pytest.mark.parametrize(
    ("stream", "error", "words"),
    [
        (lambda: None, TypeError, "returned a value of type NoneType. It must return an iterator of tables"),
        (lambda: [HALVES[0], None], TypeError, "Batch 1 of the stream cannot be read. X must be a table"),
        (lambda: [np.arange(5.0)], ValueError, "Batch 0 of the stream cannot be read. Expected 2D array"),
        (
            lambda: [np.zeros((4, 2)), np.zeros((4, 3))],
            ValueError,
            "Batch 1 of the stream has 3 columns, and the first",
        ),
        (lambda: [np.zeros((4, 2))], ValueError, "the columns of the stream have no names. Pass y as an array"),
        (
            spinney.scan(HALVES, folder="/no/such"),
            NotADirectoryError,
            "There is no folder /no/such for",
        ),
    ],
)
def test_what_is_no_stream_is_refused(stream, error, words):
    with pytest.raises(error, match=words):
        model().fit(stream, "y")


def test_offsets_of_a_stream():
    frame = FRAME[COLUMNS].assign(o=np.arange(len(FRAME)) / 100)
    table = spinney.scan([frame[:301], frame[301:]])
    fitted = model().fit(table, "y", offset="o")
    predictions = fitted.predict(FRAME[FEATURES], offset=frame.o)
    assert (fitted.predict(table, offset="o") == predictions).all()
    assert (fitted.predict(table, offset=frame.o) == predictions).all()
    why = fitted.shap_values(table, offset="o")
    assert (why.offset == fitted.shap_values(FRAME[FEATURES], offset=frame.o).offset).all()
    for wrong in (np.zeros(len(frame) + 1), np.zeros(len(frame) - 1), np.zeros(5)):
        with pytest.raises(ValueError, match=rf"offset has {len(wrong)} rows, and the stream has"):
            fitted.predict(table, offset=wrong)
    with pytest.raises(ValueError, match=r"has no column\(s\) 'p'"):
        fitted.predict(table, offset="p")


def fit(*arguments):
    done = CliRunner().invoke(
        command, ["fit", *map(str, arguments), "--target", "y", "--model", "boosting", "--trees", "2"]
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.stderr.split())


@pytest.mark.parametrize("damage", [cut_off, garble])
def test_the_command_names_a_damaged_file(files, damage):
    damage(files / "part1.parquet")
    code, message = fit(files / "part*.parquet")
    assert code == 1
    assert "part1.parquet' as Parquet" in message
    assert "part0" not in message.split("Error")[1]


def test_the_command_reads_a_folder_and_columns_that_differ(files):
    assert fit(files)[0] == 0
    half = HALVES[1]
    half[half.columns[::-1]].astype({"a": "float32" if half.a.dtype == "float64" else "float64"}).to_parquet(
        files / "part1.parquet", index=False
    )
    assert fit(files / "*.parquet")[0] == 0
    half.drop(columns="a").to_parquet(files / "part1.parquet", index=False)
    code, message = fit(files / "*.parquet")
    assert code == 1
    assert "part1.parquet' differ in columns: only" in message
    half.astype({"a": str}).to_parquet(files / "part1.parquet", index=False)
    code, message = fit(files / "*.parquet")
    assert code == 1
    assert "Column 'a' is Float64 in" in message
    for file in files.iterdir():
        half[:0].to_parquet(file, index=False)
    code, message = fit(files)
    assert code == 1
    assert "has no rows. Name a table that has some." in message
    for file in files.iterdir():
        file.unlink()
    code, message = fit(files)
    assert code == 1
    assert "a folder without Parquet files" in message


def test_a_reader_that_fails_in_the_middle_may_be_read_again():
    fails = [True]

    def some():
        yield HALVES[0]
        if fails.pop():
            raise RuntimeError("the connection broke")
        yield HALVES[1]

    fails.insert(0, False)
    table = spinney.scan(some)
    with pytest.raises(RuntimeError, match="the connection broke"):
        model().fit(table, "y")
    assert model().fit(table, "y").fingerprint() == model().fit(FRAME[FEATURES], FRAME.y).fingerprint()
