"""CSV files as people write them: what is detected, what is expected_note about it, and what is asked."""

from __future__ import annotations

import datetime
import json
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import spinney
from click.testing import CliRunner
from spinney._data.csv_format import CsvFormat
from spinney._data.file_readers import read_file
from spinney.cli.commands import spinney as command

APRIL_3, MAY_4, MAY_31 = (datetime.date(2025, month, day) for month, day in ((4, 3), (5, 4), (5, 31)))


def read(tmp_path, text, encoding="utf-8", **requested):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    found = read_file(path, CsvFormat(**requested))
    assert len(found.notes) <= 1  # one line, whatever was found
    return found.frame.to_dict(as_series=False), "".join(found.notes).removeprefix("Reading 't.csv': ")


def run(*words, code=0):
    result = CliRunner().invoke(command, list(map(str, words)))
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("text", "expected_note"),
    [
        ("a;b\n1;x\n2;y\n", "columns separated by semicolons."),
        ("a\tb\n1\tx\n2\ty\n", "columns separated by tabs."),
        ("a|b\n1|x\n2|y\n", "columns separated by pipes."),
        ("\ufeffa,b\n1,x\n2,y\n", ""),
        ('"a","b"\n"1","x"\n"2","y"\n', ""),
        (" a,b\n".lstrip() + " 1,x\n2 ,y\n", ""),
    ],
)
def test_delimiters_quotes_and_marks_are_detected(tmp_path, text, expected_note):
    assert read(tmp_path, text) == ({"a": [1, 2], "b": ["x", "y"]}, expected_note)


def test_a_delimiter_within_quotes_or_text_is_none(tmp_path):
    text = 'a,b\n1,"x;y;z"\n2,"p;q;r"\n'
    assert read(tmp_path, text) == ({"a": [1, 2], "b": ["x;y;z", "p;q;r"]}, "")
    assert read(tmp_path, "a;b\nx,y;1\nz,w;2\n")[0] == {"a": ["x,y", "z,w"], "b": [1, 2]}


@pytest.mark.parametrize(
    ("encoding", "expected_note"), [("cp1252", "cp1252"), ("latin-1", "latin-1"), ("utf-16", "utf-16"), ("utf-8", "")]
)
def test_encodings_are_detected(tmp_path, encoding, expected_note):
    name = "Genève\x81" if encoding == "latin-1" else "Genève"
    found, note = read(tmp_path, f"town,n\n{name},1\nBern,2\n", encoding)
    assert found == {"town": [name, "Bern"], "n": [1, 2]}
    assert note == (f"encoding {expected_note}." if expected_note else "")


@pytest.mark.parametrize(
    ("cells", "numbers", "expected_note"),
    [
        (["1,5", "2,25"], [1.5, 2.25], "decimal commas in 'a'"),
        (["1.234,5", "-2,25"], [1234.5, -2.25], "thousands separators in 'a'; decimal commas in 'a'"),
        (["1.234.567", "2.000"], [1234567, 2000], "thousands separators in 'a'"),
        (["1,234.5", "2"], [1234.5, 2.0], "thousands separators in 'a'"),
        (["1 234", "2 345"], [1234, 2345], "thousands separators in 'a'"),
        (["1'234.5", "2.5"], [1234.5, 2.5], "thousands separators in 'a'"),
        (["0.123", "1.234"], [0.123, 1.234], ""),
        (["1.234", "2.345"], [1.234, 2.345], "1.234 in 'a' read as 1.234 (else pass --decimal ',')"),
        (["1,234", "2,345"], [1.234, 2.345], "decimal commas in 'a'; 1,234 in 'a' read as 1.234 (else pass --d"),
        (["1,2,3", "4,5,6"], ["1,2,3", "4,5,6"], ""),
        (["1.5", "1,5"], ["1.5", "1,5"], ""),
        (["0.100", "0,5"], ["0.100", "0,5"], ""),
    ],
)
def test_decimal_signs_and_thousands(tmp_path, cells, numbers, expected_note):
    found, note = read(tmp_path, "a;b\n" + "".join(f"{cell};x\n" for cell in cells))
    assert found["a"] == numbers
    assert note.removeprefix("columns separated by semicolons").removeprefix("; ").startswith(expected_note or ".")


def test_one_column_decides_the_decimal_sign_of_another(tmp_path):
    found, _ = read(tmp_path, "a;b\n1.234;1,5\n2.345;2,5\n")
    assert found == {"a": [1234, 2345], "b": [1.5, 2.5]}
    assert read(tmp_path, "a;b\n1.234;x\n2.345;y\n", decimal=",")[0]["a"] == [1234, 2345]
    assert read(tmp_path, "a;b\n1,234;1.5\n2,345;2.5\n")[0] == {"a": [1234, 2345], "b": [1.5, 2.5]}
    assert read(tmp_path, 'a,b\n"1,234",x\n"2,345",y\n')[0]["a"] == [1234, 2345]


def test_points_in_a_file_separated_by_commas_are_decimal_points(tmp_path):
    text = 'a,b\n1.234,"0,5"\n2.345,"1,5"\n'
    assert read(tmp_path, text)[0] == {"a": [1.234, 2.345], "b": [0.5, 1.5]}
    assert read(tmp_path, text, decimal=",")[0]["a"] == [1234, 2345]


@pytest.mark.parametrize("cells", [["+", "-"], ["1,5", "+"], ["١,٢٣٤", "٢,٣٤٥"]])
def test_signs_without_digits_and_other_digits_are_text(tmp_path, cells):
    assert read(tmp_path, "a;b\n" + "".join(f"{cell};x\n" for cell in cells))[0]["a"] == cells
    assert read(tmp_path, "a;b\n1,5;x\n-;x\n", missing=("x",))[0]["a"] == ["1,5", "-"]


def test_a_value_far_down_the_file_counts(tmp_path):
    cells = ["03/04/2025"] * 5000
    assert read(tmp_path, "a,b\n" + "".join(f"{cell},x\n" for cell in [*cells, "04/13/2025"]))[0]["a"][0] == (
        datetime.date(2025, 3, 4)
    )
    assert read(tmp_path, "a,b\n" + "1,x\n" * 5000 + "007,x\n")[0]["a"][-1] == "007"
    assert read(tmp_path, "a,b\n" + "1,x\n" * 5000 + "2.5,x\n")[0]["a"][-1] == 2.5
    assert read(tmp_path, "a,b\n" + "1,x\n" * 5000 + "-,x\n")[0]["a"][-1] is None
    assert read(tmp_path, "a,b\n" + "1,x\n" * 5000 + "many,x\n")[0]["a"][-1] == "many"


def test_missing_values(tmp_path):
    text = 'a,b,c\n1.5,x,2025-04-03\n-,-,?\nN/A,null,NA\n"",y,\n'
    found, note = read(tmp_path, text)
    assert found == {
        "a": [1.5, None, None, None],
        "b": ["x", None, None, "y"],
        "c": [APRIL_3, None, None, None],
    }
    assert note == "'-' missing in 'a', 'b'; '?' missing in 'c'."
    assert read(tmp_path, "a,b\n-,- -\n+,x\n")[0]["a"] == ["-", "+"]  # signs alone are values
    found, note = read(tmp_path, text, missing=("-", "?"))
    assert found["a"] == ["1.5", None, "N/A", None]
    assert found["b"] == ["x", None, "null", "y"]


@pytest.mark.parametrize(
    ("cells", "dates", "expected_note"),
    [
        (["03/04/2025", "31/05/2025"], [APRIL_3, MAY_31], "day/month/year"),
        (["04/03/2025", "05/31/2025"], [APRIL_3, MAY_31], "month/day/year"),
        (["4-3-2025", "5-31-2025"], [APRIL_3, MAY_31], "month-day-year"),
        (["03.04.2025", "04.05.2025"], [APRIL_3, MAY_4], "day.month.year"),
        (["3 Apr 2025", "31 May 2025"], [APRIL_3, MAY_31], "day month year"),
        (["3-APR-2025", "31-MAY-2025"], [APRIL_3, MAY_31], "day-month-year"),
        (["Apr 3, 2025", "May 31, 2025"], [APRIL_3, MAY_31], "month day, year"),
        (["2025-04-03", "2025-05-31"], [APRIL_3, MAY_31], ""),
        (["4 May 2025", "3 April 2025"], [MAY_4, APRIL_3], "day month year"),
        (["May 4, 2025", "April 3, 2025", "Apr 3, 2025"], [MAY_4, APRIL_3, APRIL_3], "month day, year"),
    ],
)
def test_dates_are_decided_from_the_whole_column(tmp_path, cells, dates, expected_note):
    found, note = read(tmp_path, "d|n\n" + "".join(f"{cell}|1\n" for cell in cells))
    assert found["d"] == dates
    assert note.removeprefix("columns separated by pipes") == (
        f"; dates in 'd' are {expected_note}." if expected_note else "."
    )


@pytest.mark.parametrize("time", ["10:30", "10:30:05", "10:30:05.25", "01:30 PM"])
def test_dates_with_times(tmp_path, time):
    found, _ = read(tmp_path, f"d,n\n03/04/2025 {time},1\n31/05/2025 {time},2\n")
    assert [when.date() for when in found["d"]] == [APRIL_3, MAY_31]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2025-04-03", "2025-05-31 10:30"], [(4, 3, 0, 0), (5, 31, 10, 30)]),
        (["-", "2025-04-03 09:00:00", " 2025-05-31 10:30:00"], [None, (4, 3, 9, 0), (5, 31, 10, 30)]),
        (["2025-04-03 9:00 AM", "2025-05-31 1:30 PM"], [(4, 3, 9, 0), (5, 31, 13, 30)]),
        (["2025/04/03 12:00:00 am", "2025/05/31 01:30:00 pm"], [(4, 3, 0, 0), (5, 31, 13, 30)]),
    ],
)
def test_times_after_the_year_first(tmp_path, cells, expected):
    found, _ = read(tmp_path, "d,n\n" + "".join(f"{cell},1\n" for cell in cells))
    assert found["d"] == [None if when is None else datetime.datetime(2025, *when) for when in expected]


@pytest.mark.parametrize(
    ("cells", "odd"),
    [
        (["1.25", "3"], "1.2O"),
        (["1,234.5", "2"], "1,23"),
        (["2025-04-03", "2025-05-31"], "2025-02-30"),
        (["31/05/2025", "03/04/2025"], "31/06/2025"),
        (["4 May 2025", "3 April 2025"], "4 Mai 2025"),
    ],
)
def test_the_value_that_makes_a_column_text_is_named(tmp_path, cells, odd):
    rows = [*cells * 5, odd, *cells * 5]
    found, note = read(tmp_path, "x|n\n" + "".join(f"{cell}|1\n" for cell in rows))
    assert found["x"] == rows
    assert note.endswith(f"; 'x' is text because of '{odd}' in row {5 * len(cells) + 1}.")
    assert "because" not in read(tmp_path, "x|n\n" + "".join(f"{cell}|1\n" for cell in [*rows, odd, odd]))[1]


def test_dates_that_fit_both_orders_are_asked_for(tmp_path):
    text = "d,n\n03/04/2025,1\n04/05/2025,2\n"
    with pytest.raises(ValueError, match=r"Column 'd' holds dates such as 03/04/2025.*--dayfirst or --monthfirst"):
        read(tmp_path, text)
    assert read(tmp_path, text, day_first=True)[0]["d"] == [APRIL_3, MAY_4]
    assert read(tmp_path, text, day_first=False)[0]["d"] == [datetime.date(2025, 3, 4), datetime.date(2025, 4, 5)]
    other = "d,e\n03/04/2025,31/05/2025\n04/05/2025,31/05/2025\n"
    assert read(tmp_path, other) == (
        {"d": [APRIL_3, MAY_4], "e": [MAY_31] * 2},
        "dates in 'e', 'd' are day/month/year.",
    )


@pytest.mark.parametrize(
    ("cells", "expected_note"),
    [
        (["20250403", "20250404"], "'d' (numbers) may be dates, such as 20250403."),
        (["1743638400", "1743638460"], "'d' (numbers) may be dates, seconds since 1970."),
        (["1743638400000", "1743638460000"], "'d' (numbers) may be dates, milliseconds since 1970."),
        (["03/04/25", "31/05/25"], "'d' (text) may be dates such as 03/04/25: write years with four digits."),
        (["20259999", "20250404"], ""),
        (["00123", "01234"], "'d' text, because of leading zeros."),
        ([" 00123", " 01234"], "'d' text, because of leading zeros."),
        (["01", "12"], ""),
        ([" 12345678901234567890", "12345678901234567891 "], "'d' text, because numbers have at most 18 digits."),
        (["12345678901234567890", "12345678901234567891"], "'d' text, because numbers have at most 18 digits."),
    ],
)
def test_columns_that_may_mean_something_else_are_named(tmp_path, cells, expected_note):
    assert read(tmp_path, "d,n\n" + "".join(f"{cell},1\n" for cell in cells))[1] == expected_note


@pytest.mark.parametrize(
    ("text", "found", "expected_note"),
    [
        ('a,b\n1,"x\ny"\n', {"a": [1], "b": ["x\ny"]}, ""),
        ("a,b\n,x\n,y\n", {"a": [None, None], "b": ["x", "y"]}, ""),
        ("a,b\n1,2\n3\n", {"a": [1, 3], "b": [2, None]}, "the last cells missing in 1 row, first in line 3."),
        ('a,b\n"1",2\n3\n', {"a": [1, 3], "b": [2, None]}, "the last cells missing in 1 row, first in line 3."),
        ("a,b\n1,2\n3,\n", {"a": [1, 3], "b": [2, None]}, ""),
        (
            "a,a\n1,2\n",
            {"a": [1], "a_duplicated_0": [2]},
            "columns of the same name renamed to 'a_duplicated_0'.",
        ),
    ],
)
def test_layouts(tmp_path, text, found, expected_note):
    assert read(tmp_path, text) == (found, expected_note)


def test_a_text_file_that_exceeds_the_memory_is_refused_with_a_remedy(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 1000)
    message = run("fit", tmp_path / "t.csv", "--target", "b", "--memory", "1KB", code=1).stderr
    assert "Convert it to Parquet" in message
    assert "raise --memory" in message


def european(path, rows):
    """Write dates with the day first, decimal commas and points between thousands."""
    lines = ["when;price;size;town;y"]
    for when, price, size, town, y in rows:
        text = f"{price:,.2f}".translate(str.maketrans(",.", ".,"))
        lines.append(f"{when:%d/%m/%Y};{text};{size:,};{town};{y}".replace(f"{size:,}", f"{size:,}".replace(",", ".")))
    path.write_bytes("\n".join(lines).encode("cp1252"))


@pytest.fixture
def sales():
    random = np.random.default_rng(0)
    days = [datetime.date(2025, 1, 1) + datetime.timedelta(days=int(day)) for day in random.integers(0, 300, 80)]
    return [
        (day, float(random.integers(100, 900_000)) / 100, int(random.integers(1000, 9999)), town, day.month + size)
        for day, size, town in zip(days, random.integers(0, 9, 80), ["Zürich", "Bern"] * 40, strict=True)
    ]


@pytest.mark.parametrize(
    "words", ["fit --model boosting --trees 5 --folds 0", "study --model tree --repeats 1 --folds 2"]
)
def test_a_model_remembers_how_its_file_was_read(tmp_path, monkeypatch, sales, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spinney._evaluate.study.result.write_report", lambda study, path, seconds: path)
    european(Path("train.csv"), sales)
    command_, *options = words.split()
    run(command_, "train.csv", "--target", "y", "--task", "regression", *options, "--out", "out")
    path = Path("out/best.model") if command_ == "study" else Path("out")
    model = spinney.load(path)
    assert model._csv_format.to_dict() == {
        "dates": {"when": "%d/%m/%Y"},
        "decimals": {"price": ",", "size": ","},
    }
    assert pickle.loads(pickle.dumps(model))._csv_format == model._csv_format
    ambiguous = [row for row in sales if row[0].day <= 12][:6]
    frame = pl.DataFrame(ambiguous, schema=["when", "price", "size", "town", "y"], orient="row").drop("y")
    frame = frame.with_columns(pl.col("when").cast(pl.Date))
    if command_ == "study":
        frame = spinney.date_parts(frame).select(model.feature_names_in_.tolist())
    european(Path("new.csv"), ambiguous)
    result = run("predict", path, "new.csv")
    assert pl.read_csv(result.stdout.encode())["prediction"].to_list() == pytest.approx(model.predict(frame).tolist())
    explained = json.loads(run("explain", path, "new.csv", "--row", "2", "--json").stdout)
    assert explained["prediction"] == pytest.approx(model.predict(frame)[1])
    pl.DataFrame(ambiguous, schema=["when", "price", "size", "town", "y"], orient="row").write_csv("iso.csv")
    assert run("predict", path, "iso.csv").stdout == result.stdout


def fit_tree(*options):
    """Fit a tree to t.csv and save it."""
    run("fit", "t.csv", "--target", "y", "--model", "tree", "--folds", 0, "--out", "m", *options)


def predictions(path, text, *options):
    """Return the predictions for a CSV file, and the notes on its reading."""
    Path("new.csv").write_text(text)
    result = run("predict", path, "new.csv", *options)
    return pl.read_csv(result.stdout.encode())["prediction"].to_list(), result.stderr


def test_a_model_remembers_the_text_of_missing_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,b,y\n" + "1,x,low\n2,x,low\n-999,x,high\n?,x,high\n" * 10)
    fit_tree("--missing", "-999", "--missing", "?")
    assert spinney.load("m")._csv_format.to_dict() == {"missing": ["-999", "?"]}
    assert predictions("m", "a,b\n1,x\n-999,x\n?,x\n")[0] == ["low", "high", "high"]
    assert predictions("m", "a,b\n1,x\n-998,x\n", "--missing", "-998")[0] == ["low", "high"]


def test_a_model_remembers_decimal_points(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{size:,};{size % 7}.5;{'high' if size > 100_000 else 'low'}\n" for size in range(1000, 2_000_000, 40_000)]
    Path("t.csv").write_text("a;b;y\n" + "".join(rows))
    fit_tree()
    assert spinney.load("m")._csv_format.to_dict() == {"decimals": {"a": ".", "b": "."}}
    assert predictions("m", "a;b\n279,353;1.5\n1,000;2\n")[0] == ["high", "low"]
    assert predictions("m", "a;b\n279.353;1,5\n1.000;1,5\n")[0] == ["high", "low"]  # written with decimal commas


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([], "the format of its training file"),
        ({"dates": {"a": 1}}, "the formats of its dates"),
        ({"decimal": ";"}, "the decimal sign"),
        ({"decimals": {"a": []}}, "the decimal sign"),
        ({"decimals": [","]}, "the decimal sign"),
        ({"missing": "x"}, "the text of its missing values"),
        ({"missing": [1]}, "the text of its missing values"),
    ],
)
def test_a_damaged_format_is_refused(fields, problem):
    with pytest.raises(ValueError, match=f"^{problem}.* invalid$"):
        CsvFormat.from_dict(fields)


def test_a_value_that_is_no_number_is_named_at_predict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spinney.DecisionTreeRegressor().fit({"a": [1.0, 2.0]}, [1.0, 2.0]).save("m")
    Path("t.csv").write_text("a,b\n1,x\n2,x\ntwo,x\n")
    assert "Column 'a' of 't.csv' holds numbers in the training table, but 'two' in row 3." in (
        run("predict", "m", "t.csv", code=1).stderr
    )


@pytest.fixture
def two_blocks(tmp_path, monkeypatch):
    """Return a function that predicts rows, read in blocks of two: 0 where a is below 500, else 1."""
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"a": [0.0, 1e3], "d": [APRIL_3] * 2, "e": [0.5] * 2})
    spinney.DecisionTreeRegressor(min_samples_leaf=1).fit(frame, [0.0, 1.0]).save("m")

    def predict(rows, code=0):
        rows = ["a;d;e", *rows]
        monkeypatch.setattr("spinney.cli.tables.BLOCK_BYTES", len("\n".join(rows[:3])) + 1)
        Path("t.csv").write_text("\n".join(rows) + "\n")
        return run("predict", "m", "t.csv", code=code)

    return predict


@pytest.mark.parametrize(
    ("later", "problem"),
    [
        (["1,5;01/06/2025;1", "9;01/06/2025;1"], ""),
        (["-;01/06/2025;1", "-;-;1"], ""),
        (["2,500;01/06/2025;0.5", "9;01/06/2025;0.5"], ""),  # read as before, whatever other columns hold
        (["7;01/06/2025;1", "1.5;01/06/2025;1"], "holds numbers in the training table, but '1.5' in row 4"),
        (["7;01/06/2025;1", "1,234.5;01/06/2025;1"], "holds numbers in the training table, but '1,234.5' in row 4"),
        (["9;01/06/2025;1", "9;06/13/2025;1"], "holds dates in the training table, but '06/13/2025' in row 4"),
    ],
)
def test_later_blocks_are_read_as_the_first(two_blocks, later, problem):
    result = two_blocks(["1,234;31/05/2025;1", "2,345;31/05/2025;1", *later], code=1 if problem else 0)
    assert problem in result.stderr
    if not problem:
        found = pl.read_csv(result.stdout.encode())["prediction"].to_list()
        assert all(value == 0.0 for value, row in zip(found[2:], later, strict=True) if row[0] != "-")
        assert result.stderr.count("1,234 in 'a' read as 1.234") == 1


@pytest.mark.parametrize("name", ["fit", "predict", "study", "explain", "compare", "bench"])
def test_every_command_that_reads_a_table_takes_the_options(name):
    shown = run(name, "--help").stdout
    assert all(f"--{option}" in shown for option in ("delimiter", "decimal", "encoding", "missing", "dayfirst"))
