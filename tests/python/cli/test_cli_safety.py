"""The command line with hostile names, labels and files: nothing is overwritten, run or printed raw."""

import gzip

import numpy as np
import pytest
import spinney
from click.testing import CliRunner
from spinney.cli.commands import spinney as main

ROWS = 60
LABELS = ["=1+1", "@cmd", "-2", "plain"]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write_table(path, name="x", labels=LABELS):
    cells = [f"{i % 7},{labels[i % len(labels)]}" for i in range(ROWS)]
    path.write_text("\n".join([f"{name},target", *cells]) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "d.csv")


@pytest.fixture
def model(tmp_path, table):
    labels = np.array([LABELS[i % 4] for i in range(ROWS)], dtype=object)
    path = tmp_path / "m.tree"
    spinney.DecisionTreeClassifier().fit({"x": np.arange(ROWS) % 7.0}, labels).save(path)
    return path


def test_an_output_does_not_overwrite_an_input(tmp_path, table, model):
    before = table.read_bytes(), model.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for command in (
        ("fit", table, "--target", "target", "--out", table),
        ("fit", table, "--target", "target", "--out", link),
        ("predict", model, table, "--out", table),
        ("predict", model, table, "--out", model),
        ("export", model, "--to", "c", "--out", model),
    ):
        found = run(*command)
        assert found.exit_code == 1, command
        assert "is an input of this command" in found.output
    assert (table.read_bytes(), model.read_bytes()) == before


def test_labels_that_are_formulas_are_noted_and_quoted_on_request(table, model):
    plain = run("predict", model, table)
    assert "--safe-csv" in plain.stderr
    assert "\n=1+1" in plain.stdout
    safe = run("predict", model, table, "--safe-csv")
    assert safe.stderr == ""
    lines = safe.stdout.splitlines()[1:]
    assert {line[0] for line in lines} <= {"'", "-", "p"}
    assert [line.removeprefix("'") for line in lines] == plain.stdout.splitlines()[1:]
    assert "-2" in set(lines)  # a number


def test_escape_sequences_do_not_reach_the_terminal(tmp_path):
    table = write_table(tmp_path / "e.csv", "\x1b]0;owned\x07name", ["\x1b[31mred", "blue"])
    for command in (
        ("fit", table, "--target", "target"),
        ("fit", table, "--target", "nothing"),
        ("predict", tmp_path / "\x1b[2Jm.tree", table),
    ):
        assert "\x1b" not in run(*command).output, command


@pytest.mark.parametrize("kind", ["gzip", "cut gzip", "excel", "arrow", "decimals", "runs"])
def test_a_damaged_table_is_refused_in_a_sentence(tmp_path, table, kind):
    data = gzip.compress(table.read_bytes())
    path = tmp_path / {"gzip": "d.csv.gz", "cut gzip": "d.csv.gz", "excel": "d.xlsx"}.get(kind, "d.arrow")
    if kind == "gzip":
        path.write_bytes(data[:20] + bytes(30) + data[50:])
    elif kind == "cut gzip":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "excel":
        path.write_bytes(b"PK\x03\x04" + bytes(100))
    else:
        pa = pytest.importorskip("pyarrow")
        numbers = pa.array([1, 2, 3, 4])
        runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([1.0, 2.0]))
        column = {"arrow": numbers, "decimals": numbers.cast(pa.decimal256(60, 2)), "runs": runs}[kind]
        batch = pa.record_batch({"x": column, "target": pa.array(["a", "b", "a", "b"])})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        if kind == "arrow":
            path.write_bytes(path.read_bytes()[:-40])
    found = run("fit", path, "--target", "target")
    assert found.exit_code == 1
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert found.stderr.startswith("Error: ")
    assert "Traceback" not in found.output
    assert "Aborted" not in found.output


@pytest.mark.parametrize("memory", [10**30, 2**63, -1, "many"])
def test_an_impossible_memory_is_refused_in_a_sentence(memory):
    with pytest.raises(ValueError, match="memory must be a number of bytes"):
        spinney.scan(list, memory=memory)
