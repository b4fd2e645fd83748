"""The command line around studies."""

from __future__ import annotations

import json

import polars as pl
import pytest
import spinney
from click.testing import CliRunner
from spinney.cli.commands import spinney as command
from spinney.datasets import load_penguins

QUICK = ("--model", "tree", "--model", "linear", "--repeats", "1", "--folds", "3")


def run(*arguments, code=0, **given):
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], **given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    X, y = load_penguins(as_frame="polars")
    X.with_columns(species=y).write_csv(folder / "penguins.csv")
    return folder


def test_study_prints_the_board_and_keeps_report_and_model(folder):
    out = folder / "kept"
    said = run("study", folder / "penguins.csv", "--target", "species", "--out", out, *QUICK).stdout
    assert "log_loss" in said
    assert str(out / "report.html") in said
    assert "<html" in (out / "report.html").read_text()
    model = spinney.load_predictor(out / "best.model")
    X, _ = load_penguins(as_frame="polars")
    assert len(model.predict(X)) == 344
    facts = json.loads((out / "study.json").read_text())
    assert facts["best"] in said
    answers = run("predict", out / "best.model", folder / "penguins.csv").stdout
    assert len(pl.read_csv(answers.encode())) == 344


def test_study_as_json(folder):
    out = folder / "as_json"
    said = run("study", folder / "penguins.csv", "--target", "body_mass_g", "--out", out, "--json", *QUICK).stdout
    found = json.loads(said)
    assert found["task"] == "regression"
    assert {entry["model"] for entry in found["leaderboard"]} == {"tree", "linear", "stack", "baseline"}
    assert set(found["files"]) == {"report", "model", "facts"}
