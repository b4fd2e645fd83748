"""``spinney export``, as a user runs it."""

import pytest
import spinney
from click.testing import CliRunner
from spinney._names import MODULE_OF
from spinney.cli.commands import spinney as command
from written_models import MODELS

WRITTEN = [name[3:] for name, module in MODULE_OF.items() if name.startswith("to_") and "writing" in module]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "model.spinney"
    MODELS["tree of values"]().save(path)
    return path


def run(*words, code=0):
    result = CliRunner().invoke(command, ["export", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def test_what_is_printed_is_what_python_writes(saved):
    model = spinney.load(saved)
    assert run(saved, "--to", "c", "--name", "mine").stdout == spinney.to_c(model, name="mine")
    assert run(saved, "--to", "sql", "--name", "t").stdout == spinney.to_sql(model, "t")


def test_a_file_is_written(saved, tmp_path):
    pytest.importorskip("onnx")
    run(saved, "--to", "onnx", "--out", tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == spinney.to_onnx(spinney.load(saved)).SerializeToString()


def test_every_format_is_offered():
    option = next(p for p in command.commands["export"].params if p.name == "to")
    assert sorted(option.type.choices) == sorted(WRITTEN)


def test_refusals(saved, tmp_path):
    path = tmp_path / "surrogates.spinney"
    MODELS["surrogates"]().save(path)
    result = run(path, "--to", "c", code=1)
    assert result.stderr.startswith("Error: C cannot hold the surrogate splits")
    assert run(saved, "--to", "c", "--name", "int", code=1).stderr.count("\n") == 1
    assert "--name requires" in run(saved, "--to", "onnx", "--name", "x", code=2).stderr
    run(saved, "--to", "paper", code=2)
