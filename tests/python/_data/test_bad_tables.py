"""Tables that cannot be studied, or not as they are: one sentence with a remedy, nothing lost, bounded memory."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from spinney._data import file_readers
from spinney._data.csv_format import CsvFormat
from spinney._evaluate.study.prepare import StudyOptions, prepare
from spinney.cli import study as cli_study
from spinney.cli.commands import spinney as command

QUICK = ("--model", "tree", "--repeats", "1", "--folds", "2")


def table(n: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(0)
    x = random.standard_normal(n)
    return pl.DataFrame({"x": x, "city": ["Zürich", "Genève", "Bern"] * (n // 3), "y": np.where(x > 0, "yes", "no")})


def refused(*arguments) -> str:
    result = CliRunner().invoke(command, ["study", *map(str, arguments)])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize(
    ("name", "text", "words", "message"),
    [
        ("empty.csv", b"", "", "is empty. Name a file"),
        ("header.csv", b"x,y\n", "", "has no rows"),
        ("one.csv", b"y\na\nb\n", "", "only one column, 'y'"),
        ("semicolon.csv", b"x;y\n1;a\n2;b\n", "--delimiter ,", "try --delimiter ';'"),
        ("ragged.csv", b"x,y\n1,a\n2,b,c\n", "", "line 3 has 3 cells"),
        ("absent.csv", b"x,z\n1,a\n2,b\n", "", "has no column 'y'"),
        ("constant.csv", b"x,y\n" + b"".join(b"%d,a\n" % k for k in range(30)), "", "is a in all 30 rows"),
        ("nothing.csv", b"x,y\n" + b"".join(b"%d,\n" % k for k in range(30)), "", "has no values"),
        ("few.csv", b"x,y\n1,a\n2,b\n", "", "2 rows with a target"),
        (
            "names.csv",
            b"x,y\n" + b"".join(b"%d,n%d\n" % (k % 7, k) for k in range(40)),
            "",
            "too many for a classification",
        ),
        ("ids.csv", b"x,y\n" + b"".join(b"id%d,%d\n" % (k, k % 2) for k in range(40)), "", "No feature is left"),
        ("mixed.csv", "x,y\nü,a\n".encode() + "é,b\n".encode("latin-1"), "", "line 3 is the first that is not"),
        ("mixed.csv", b"x,y\n1,a\n", "--encoding klingon", "no encoding 'klingon'"),
        ("wide.csv", "x,y\n1,a\n".encode("utf-16-le"), "", "it is not text. Name a CSV, Parquet, Arrow or Excel file."),
        ("bytes.csv", b"\x00\x01\x02" * 50, "", "it is not text. Name a CSV, Parquet, Arrow or Excel file."),
        ("parquet.csv", b"PAR1" + bytes(50), "", "It looks like Parquet: give it the suffix .parquet."),
        ("excel.txt", b"PK\x03\x04" + bytes(50), "", "It looks like Excel: give it the suffix .xlsx."),
        ("packed.csv", b"\x1f\x8b" + bytes(50), "", "It looks like gzip: give it the suffix .csv.gz."),
        ("broken.parquet", b"PAR1 and no more", "", "as Parquet"),
        ("broken.arrow", b"no arrow", "", "has the right suffix"),
    ],
)
def test_what_cannot_be_studied_is_refused_in_one_line(tmp_path, name, text, words, message):
    (tmp_path / name).write_bytes(text)
    assert message in refused(tmp_path / name, "--target", "y", *words.split(), "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path):
    table().write_csv(tmp_path / "t.csv")
    (tmp_path / "other").write_text("")
    assert "it is a file" in refused(tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "other")
    assert "is an input of this command" in refused(tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "t.csv")
    assert "does not exist" in refused(tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "a" / "b")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "arrow", "latin.csv"])
def test_tables_of_every_kind_are_read(tmp_path, kind):
    path, rows, format_ = tmp_path / f"t.{kind}", table(), CsvFormat()
    if kind == "parquet":
        rows.write_parquet(path)
    elif kind == "arrow":
        rows.write_ipc(path)
    elif kind == "latin.csv":
        path.write_bytes(rows.write_csv().encode("latin-1"))
        format_ = CsvFormat(encoding="latin-1")
    else:
        text = rows.write_csv(separator="\t" if kind == "tsv" else ",").encode()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    for most in (None, 1 << 20):
        found = file_readers.read_file(path, format_, max_bytes=most)
        assert found.frame.equals(rows)
        assert found.notes == []


def test_excel_is_read_where_its_reader_is_installed(tmp_path, monkeypatch):
    def without_reader(path):
        raise ModuleNotFoundError("required package 'fastexcel' not found")

    (tmp_path / "t.xlsx").write_bytes(b"PK")
    monkeypatch.setattr(pl, "read_excel", without_reader)
    with pytest.raises(ValueError, match="pip install fastexcel"):
        file_readers.read_file(tmp_path / "t.xlsx")
    monkeypatch.setattr(pl, "read_excel", lambda path: table())
    assert file_readers.read_file(tmp_path / "t.xlsx").frame.equals(table())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_standard_input_is_read(monkeypatch, kind):
    file = io.BytesIO()
    table().write_csv(file) if kind == "csv" else table().write_parquet(file)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.getvalue())))
    assert file_readers.read_file(Path("-")).frame.equals(table())


def test_standard_input_is_studied(tmp_path, monkeypatch):
    monkeypatch.setattr("spinney._evaluate.study.result.write_report", lambda study, path, seconds: path)
    given = table().write_csv().encode()
    words = ["study", "-", "--target", "y", "--keep", "x", "--out", str(tmp_path / "out"), *QUICK]
    result = CliRunner().invoke(command, words, input=given)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "best.model").exists()


# ---- larger than allowed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [7, 64, 1 << 20])
@pytest.mark.parametrize("last", [b"", b"\n"])
def test_records_are_drawn_whole(block, last):
    rows = [f'{k},"a\nb ""{k}"""' for k in range(200)]
    text = b"n,text\n" + "\n".join(rows).encode() + last
    drawn, positions, n_all = file_readers.sample_records(io.BytesIO(text), 1000, 0, block)
    assert n_all == 200
    assert len(drawn) <= 1000 + 10
    frame = pl.read_csv(drawn)
    assert 0 < frame.height < 200
    assert frame["n"].to_list() == positions.tolist() == sorted(positions)
    assert frame["text"].to_list() == [f'a\nb "{k}"' for k in frame["n"]]
    whole, positions, _ = file_readers.sample_records(io.BytesIO(text), 10**6, 0, block)
    assert len(positions) == 200
    assert whole == text


def test_a_table_that_is_too_large_is_sampled_with_a_note(tmp_path):
    rows = table(6000)
    rows.write_csv(tmp_path / "t.csv")
    rows.write_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        found = file_readers.read_file(tmp_path / name, max_bytes=30_000)
        assert 200 < found.frame.height < 3000
        assert "of its 6,000 rows were drawn at random" in found.notes[0]
        again = file_readers.read_file(tmp_path / name, max_bytes=30_000)
        assert again.frame.equals(found.frame)
        assert rows[found.rows].equals(found.frame.select(rows.columns).cast(rows.schema))


@pytest.mark.slow
def test_a_study_of_a_table_that_is_too_large_has_a_note(tmp_path, monkeypatch):
    table(6000).write_csv(tmp_path / "t.csv")
    monkeypatch.setattr(cli_study, "MAX_BYTES", 30_000)
    words = ["study", str(tmp_path / "t.csv"), "--target", "y", "--keep", "x", "--out", str(tmp_path / "out"), *QUICK]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    assert "of its 6,000 rows were drawn at random" in result.stdout


@pytest.mark.slow
def test_memory_of_a_long_file_is_bounded(tmp_path):
    import tracemalloc

    line = b"0.123456789,yes,some text of a longish kind\n"
    with open(tmp_path / "t.csv", "wb") as file:
        file.write(b"x,y,text\n")
        for _ in range(20):
            file.write(line * 10_000)  # 9 MB in all
    tracemalloc.start()
    with open(tmp_path / "t.csv", "rb") as file:
        _, positions, n_all = file_readers.sample_records(file, 1 << 19, 0, 1 << 17)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_all == 200_000
    assert len(positions) * len(line) <= 1 << 19
    assert peak < 6 << 20


@pytest.mark.slow
def test_ten_thousand_columns_are_prepared():
    random = np.random.default_rng(0)
    X = random.standard_normal((100, 10_000))
    X[:, 7] += np.where(X[:, 7] > 0, 1, -1)
    found = prepare(X, np.where(X[:, 7] > 0, "a", "b"), StudyOptions(), 0)
    assert sum(one.is_used for one in found.columns) == 9_999
    assert found.columns[7].is_leak
