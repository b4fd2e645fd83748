"""The command line around studies."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import spinney
from click.testing import CliRunner
from spinney.cli.commands import _loading
from spinney.cli.commands import spinney as command
from spinney.datasets import load_penguins

QUICK = ("--model", "tree", "--model", "linear", "--repeats", "1", "--folds", "3")


def run(*arguments, code=0, **given):
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], **given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def short_report(monkeypatch):
    """Replace the report by a stub: its contents are tested in test_report.py."""

    def write(study, path, seconds):
        path.write_text("<html>")
        return path

    monkeypatch.setattr("spinney._evaluate.study.result.write_report", write)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    X, y = load_penguins(as_frame="polars")
    X.with_columns(species=y).write_csv(folder / "penguins.csv")
    return folder


def test_study_prints_the_leaderboard_and_saves_report_and_model(folder, short_report):
    out = folder / "saved"
    printed = run("study", folder / "penguins.csv", "--target", "species", "--out", out, *QUICK).stdout
    assert "log_loss" in printed
    assert str(out / "report.html") in printed
    assert "<html" in (out / "report.html").read_text()
    model = spinney.load_predictor(out / "best.model")
    X, _ = load_penguins(as_frame="polars")
    assert len(model.predict(X)) == 344
    results = json.loads((out / "study.json").read_text())
    assert results["best"] in printed
    predictions = run("predict", out / "best.model", folder / "penguins.csv").stdout
    assert len(pl.read_csv(predictions.encode())) == 344


@pytest.mark.slow
def test_study_as_json(folder):
    out = folder / "as_json"
    printed = run("study", folder / "penguins.csv", "--target", "body_mass_g", "--out", out, "--json", *QUICK).stdout
    found = json.loads(printed)
    assert found["task"] == "regression"
    assert {entry["model"] for entry in found["leaderboard"]} == {"tree", "linear", "stack", "baseline"}
    assert set(found["files"]) == {"report", "model", "results"}


@pytest.fixture(scope="module")
def tree(folder):
    run("fit", folder / "penguins.csv", "--target", "species", "--max-depth", 3, "--folds", 0, "--out", folder / "tree")
    return folder / "tree"


def test_explain_a_row(folder, tree):
    words = ("explain", tree, folder / "penguins.csv", "--row", 3, "--want", "Gentoo")
    printed = run(*words).stdout
    assert printed.startswith("Row 3: Adelie")
    assert "flipper_length_mm" in printed
    assert "Gentoo" in printed
    found = json.loads(run(*words, "--json").stdout)
    assert found["prediction"] == "Adelie"
    total = found["base"] + sum(one["contribution"] for one in found["contributions"])
    assert total == pytest.approx(found["probabilities"]["Adelie"])
    assert found["alternatives"][0]["prediction"] == "Gentoo"


def test_the_row_of_a_report_is_the_row_that_is_explained(folder, tmp_path):
    table = pl.read_csv(folder / "penguins.csv").with_columns(bird=pl.format("b{}", pl.int_range(pl.len()) * 3))
    rows = pl.int_range(pl.len())
    table = table.with_columns(species=pl.when(rows % 5 == 1).then(None).otherwise("species"))
    table.write_csv(tmp_path / "birds.csv")
    fast = ["--model", "forest", "--repeats", "1", "--folds", "2", "--out", tmp_path / "out"]
    for more in ([], ["--id", "bird"]):
        run("study", tmp_path / "birds.csv", "--target", "species", *fast, *more)
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        data = json.loads(re.search(r'id="report-data">(.*?)</script>', page)[1])
        shap = next(one["content"] for one in data["sections"] if one["id"] == "shap")
        assert ("column 'bird'" if more else "birds.csv") in shap["rows_note"]
        words = ["--row", shap["rows"][3], "--json", *more]
        found = json.loads(run("explain", tmp_path / "out" / "best.model", tmp_path / "birds.csv", *words).stdout)
        of_report = dict(zip(shap["columns"], shap["cells"][3], strict=True))
        explained = {one["column"]: one["value"] for one in found["contributions"]}
        assert explained
        assert all(of_report[name] == value for name, value in explained.items())


def test_rows_to_explain_are_refused_by_name(folder, tree):
    table = folder / "penguins.csv"
    assert "must be a whole number of at least 1" in run("explain", tree, table, "--row", "x", code=2).stderr
    assert "--id requires --row" in run("explain", tree, table, "--column", "sex", "--id", "sex", code=2).stderr
    printed = run("explain", tree, table, "--row", "male", "--id", "sex", code=1).stderr
    assert re.search(r"'male' is in \d+ rows of the column 'sex'", printed)


def test_explain_a_row_of_a_model_without_shap_values(folder):
    table, model = folder / "penguins.csv", folder / "linear.model"
    run("fit", table, "--target", "species", "--model", "linear", "--folds", "0", "--out", model)
    printed = run("explain", model, table, "--row", "1").stdout
    assert "Mean drop of the probability of Adelie when a column takes the values of other rows" in printed
    found = json.loads(run("explain", model, table, "--row", "1", "--json").stdout)
    assert {one["column"] for one in found["drops"]} == set(load_penguins(as_frame="polars")[0].columns)
    assert found["drops"][0]["drop"] > 0


def test_explain_columns(folder, tree):
    table = folder / "penguins.csv"
    found = json.loads(run("explain", tree, table, "--target", "species", "--json").stdout)
    assert found["importances"][0]["importance"] > 0.1
    assert "when permuted" in run("explain", tree, table, "--target", "species").stdout
    curve = json.loads(run("explain", tree, table, "--column", "island", "--json").stdout)["partial_dependence"]
    assert {one["island"] for one in curve} == {"Biscoe", "Dream", "Torgersen"}
    assert "mean probability of the class" in run("explain", tree, table, "--column", "island").stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("", 2, "Choose what to explain"),
        ("--row 3 --column island", 2, "one of --target"),
        ("--column island --want x", 2, "requires --row"),
        ("--row 999", 1, "there is no row 999"),
        ("--row 3 --want Gento", 1, "Did you mean 'Gentoo'?"),
        ("--column islan", 1, "Did you mean 'island'?"),
        ("--target specie", 1, "Did you mean 'species'?"),
    ],
)
def test_explain_refuses_with_a_remedy(folder, tree, words, code, message):
    assert message in run("explain", tree, folder / "penguins.csv", *words.split(), code=code).stderr


def test_predict_reads_standard_input(folder, tree):
    text = (folder / "penguins.csv").read_bytes()
    piped = run("predict", tree, "-", input=text).stdout
    assert piped == run("predict", tree, folder / "penguins.csv").stdout


def test_bench_prints_times_and_losses(folder, monkeypatch):
    from spinney.cli import study as bench

    monkeypatch.setattr(bench, "_OWN", ("tree",))
    monkeypatch.setattr(bench, "peer_candidates", lambda *_: [])
    found = json.loads(run("bench", "--rows", 200, "--columns", 3, "--rounds", 1, "--json").stdout)
    assert found["rows"] == 160
    assert [one["model"] for one in found["models"]] == ["spinney tree"]
    printed = run("bench", folder / "penguins.csv", "--target", "species", "--rounds", 1).stdout
    assert "log loss" in printed
    assert "Pass both, or neither" in run("bench", "--target", "species", code=2).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell):
    assert "_SPINNEY_COMPLETE" in run("completion", shell).stdout


@pytest.mark.parametrize(
    "name", ["demo", "study", "predict", "explain", "show", "fit", "compare", "bench", "completion"]
)
def test_help_teaches_by_examples(name):
    printed = run(name, "--help").stdout
    assert f"spinney {name}" in printed.partition("Example\n")[2]
    assert "\\b" not in printed


def examples_of(name):
    """Commands that a help shows, in order."""
    lines = (line.strip() for line in run(name, "--help").stdout.splitlines())
    return [line for line in lines if line.startswith("spinney ")]


@pytest.mark.slow
def test_examples_of_the_help_run(tmp_path, monkeypatch, short_report):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    n = 240
    income = np.append([60.0, 50.0, 12.0], random.normal(40, 12, n - 3).round(1))
    loans = pl.DataFrame(
        {
            "customer": random.integers(0, 60, n),
            "granted": 2000 + np.arange(n) // 12,
            "income": income,
            "house": random.choice(["rents", "owns"], n),
            "repaid": np.where(income + random.normal(0, 8, n) > 40, "yes", "no"),
        }
    )
    loans.write_csv("loans.csv")
    loans.drop("repaid").write_csv("applicants.csv")
    Path("loans").mkdir()
    loans.write_parquet("loans/1.parquet")
    grades = random.integers(0, 3, n)
    pl.DataFrame({"query": np.arange(n) // 8, "x": grades + random.normal(size=n), "grade": grades}).write_csv(
        "clicks.csv"
    )
    hours = random.exponential(income)
    pl.DataFrame({"load": income, "hours": hours, "failed": random.integers(0, 2, n)}).write_csv("machines.csv")
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.XGBClassifier(n_estimators=2).fit(loans.select("income").to_pandas(), np.arange(n) % 2)
    booster.save_model("model.ubj")
    quick = {
        "fit": " --folds 0",
        "demo": " --model tree --repeats 1",
        "study": " --model tree --repeats 1",
        "compare": " --folds 2 --repeats 1",
        "bench": " --rows 200 --rounds 1",
    }
    ran = 0
    for name in ("fit", "study", "demo", "predict", "explain", "show", "compare", "bench", "convert", "export"):
        for line in examples_of(name):
            words, _, given = line.removeprefix("spinney ").partition(" < ")
            words = words.partition(" | ")[0].partition(" > ")[0]
            words = words.replace(" --peers", "").replace(" --rounds 5", "")
            verb = words.split()[0]
            words += quick.get(verb, "") if verb != "bench" or "csv" not in words else " --rounds 1"
            run(*shlex.split(words), input=Path(given).read_bytes() if given else None)
            ran += 1
    assert ran >= 25


@pytest.mark.slow
def test_models_of_other_libraries_are_fitted():
    pytest.importorskip("lightgbm")
    from spinney._evaluate.study.plan import peer_candidates

    X, y = load_penguins(as_frame="polars")
    for peer in peer_candidates("multiclass", 0):
        if peer.name == "lightgbm":
            proba = peer.estimator.fit(X, y.to_numpy()).predict_proba(X)
            assert proba.shape == (344, 3)
            assert (peer.estimator.classes_[proba.argmax(axis=1)] == y.to_numpy()).mean() > 0.95


def test_the_report_shows_the_whole_command():
    from spinney._data.csv_format import CsvFormat
    from spinney.cli.fit_table import Source
    from spinney.cli.study import command_of

    options = {
        "groups": None,
        "time": "day",
        "scoring": ["roc_auc", "accuracy"],
        "models": ["tree"],
        "minutes": 0.5,
        "peers": True,
        "task": "auto",
        "cv": 5,
        "repeats": 1,
        "keep": ("a b",),
        "drop": (),
        "random_state": 7,
    }
    format_ = CsvFormat("tab", missing=("?", "none"), day_first=False)
    words = shlex.split(command_of(Source(Path("my loans.csv"), "it's", format_), options))
    with command.commands["study"].make_context("study", words[2:]) as context:
        again = context.params
    assert words[:2] == ["spinney", "study"]
    assert (again["table"], again["target"], again["delimiter"]) == (Path("my loans.csv"), "it's", "tab")
    assert (again["missing"], again["day_first"], again["decimal"]) == (("?", "none"), False, None)
    assert {name: again[name] for name in options} == options
    assert (
        command_of(Source(Path("t.csv"), "y"), {"minutes": 2.0, "random_state": 0}) == "spinney study t.csv --target y"
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "absent.model"), 1),
        (("show",), 2),
        (("show", "penguins.csv"), 1),
        (("explain", "absent.model", "penguins.csv", "--row", "1"), 1),
        (("explain", "absent.model", "penguins.csv", "--no-such-option"), 2),
        (("predict", "absent.model", "penguins.csv"), 1),
        (("study", "absent.csv", "--target", "y"), 1),
        (("study", "penguins.csv"), 2),
        (("study", "penguins.csv", "--target", "species", "--minutes", "0"), 2),
        (("study", "penguins.csv", "--target", "absent"), 1),
    ],
)
def test_exit_codes_distinguish_invalid_files_from_invalid_commands(folder, monkeypatch, words, code):
    monkeypatch.chdir(folder)
    result = run(*words, code=code)
    assert result.stdout == ""
    assert result.stderr != ""
    assert "Traceback" not in result.stderr


def test_a_terminal_shows_that_a_command_starts_while_modules_are_imported(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    with _loading():
        assert shown.getvalue() == "starting …"
    assert shown.getvalue().endswith("\r\x1b[2K")
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with _loading():
        pass
    assert sys.stderr.getvalue() == ""
