"""``spinney fit``, ``predict`` and ``show``, end to end: results, files, messages, exit codes."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import processes
import pytest
import spinney
from click.testing import CliRunner
from spinney import _engine
from spinney._data.csv_format import CsvFormat
from spinney._evaluate.problem import read_target
from spinney.cli import tables
from spinney.cli.commands import spinney as command
from spinney.datasets import load_penguins

PACKAGE_PARENT = str(Path(spinney.__file__).parent.parent)


def run(*arguments, code=0):
    """Run a command in this process; an exception that is not an exit fails the test."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, code=1):
    """Run a command that must fail, and return its one-line error."""
    result = run(*arguments, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def start(*arguments, **options):
    """Start a real process."""
    environment = {**os.environ, "PYTHONPATH": PACKAGE_PARENT, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    words = [sys.executable, "-m", "spinney", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options)


@pytest.fixture(scope="module")
def penguins():
    X, y = load_penguins(as_frame="polars")
    return X.with_columns(species=y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, penguins):
    """Hold the penguins as CSV and Parquet, and a model of each task."""
    folder = tmp_path_factory.mktemp("commands")
    penguins.write_csv(folder / "penguins.csv", null_value="NA")
    penguins.write_parquet(folder / "penguins.parquet")
    run("fit", folder / "penguins.csv", "--target", "species", "--max-depth", 3, "--out", folder / "species.tree")
    run("fit", folder / "penguins.parquet", "--target", "body_mass_g", "--folds", 0, "--out", folder / "mass.tree")
    return folder


# ---- fit --------------------------------------------------------------------------------------------------


def test_fit_prints_a_table(folder):
    shown = run("fit", folder / "penguins.csv", "--target", "species", "--max-depth", 3).stdout
    for words in ("344", "species", "classification", "accuracy, 5 folds", "most frequent class", "leaves, depth 3"):
        assert words in shown


def test_fit_ranks_queries(folder, penguins):
    graded = penguins.with_columns(grade=penguins["body_mass_g"].fill_null(0) // 1500)
    graded.write_csv(folder / "graded.csv")
    given = ["fit", folder / "graded.csv", "--target", "grade", "--model", "ranker", "--trees", 5]
    found = json.loads(run(*given, "--group", "species", "--folds", 3, "--json", "--out", folder / "r.model").stdout)
    assert found["task"] == "ranking"
    score = found["scores"]["NDCG@10"]
    assert score["boosting"]["mean"] > score["baseline"]["mean"]
    assert "species" not in found["columns"]
    run("predict", folder / "r.model", folder / "graded.csv")
    assert "--group" in refused(*given, code=2)
    assert "--model ranker" in refused(
        "fit", folder / "graded.csv", "--target", "grade", "--model", "boosting", "--loss", "pairwise", code=2
    )
    assert "queries" in refused(*given, "--group", "species", "--folds", 9)


def test_fit_survival_times(folder, penguins):
    timed = penguins.select(
        "species",
        "island",
        "bill_length_mm",
        hours=penguins["body_mass_g"].fill_null(4000),
        failed=penguins["sex"] == "male",
    ).with_columns(pl.col("failed").fill_null(False).cast(int))
    timed.write_csv(folder / "timed.csv")
    given = [
        "fit",
        folder / "timed.csv",
        "--target",
        "hours",
        "--model",
        "survival",
        "--trees",
        5,
        "--folds",
        3,
        "--json",
    ]
    for loss in ("cox", "aft"):
        found = json.loads(run(*given, "--event", "failed", "--loss", loss).stdout)
        assert found["scores"]["concordance"]["boosting"]["mean"] > 0.6
        assert found["scores"]["concordance"]["baseline"]["mean"] == 0.5
    for kind in ("survival-forest", "extra-survival-trees"):
        words = [kind if word == "survival" else word for word in given]
        found = json.loads(run(*words, "--event", "failed", "--out", folder / "timed.model").stdout)
        assert found["scores"]["concordance"]["forest"]["mean"] > 0.6
        assert "relative hazard" in run("explain", folder / "timed.model", folder / "timed.csv", "--row", 1).stdout
    tree = [
        folder / "timed.csv",
        "--target",
        "hours",
        "--model",
        "survival-tree",
        "--event",
        "failed",
        "--max-depth",
        2,
    ]
    assert "concordance" in run("fit", *tree, "--folds", 3, "--out", folder / "timed.tree").stdout
    assert "relative hazard" in run("show", folder / "timed.tree").stdout
    json.loads(run(*given).stdout)
    assert "1 (or true)" in refused(*given, "--event", "island")
    assert "--model ranker" in refused(*given, "--loss", "pairwise", code=2)


def test_fit_compares_with_the_baseline(folder):
    result = json.loads(run("fit", folder / "penguins.csv", "--target", "species", "--json").stdout)
    accuracy = result["scores"]["accuracy"]
    assert 0.9 < accuracy["tree"]["mean"] <= 1.0
    assert accuracy["baseline"]["mean"] == pytest.approx(152 / 344, abs=0.005)
    assert result["classes"] == ["Adelie", "Chinstrap", "Gentoo"]
    assert "species" not in result["columns"]


def test_fit_guesses_regression_and_leaves_out_rows_without_a_target(folder):
    result = json.loads(
        run("fit", folder / "penguins.csv", "--target", "body_mass_g", "--max-depth", 3, "--json").stdout
    )
    assert result["task"] == "regression"
    assert (result["rows"], result["rows_without_target"]) == (342, 2)
    assert result["scores"]["R²"]["tree"]["mean"] > 0.7
    assert result["scores"]["R²"]["baseline"]["mean"] == pytest.approx(0.0, abs=0.05)
    assert result["scores"]["RMSE"]["tree"]["mean"] < result["scores"]["RMSE"]["baseline"]["mean"]


def test_the_saved_model_is_the_estimator(folder, penguins):
    X, y = penguins.drop("species"), penguins["species"].to_numpy()
    expected = spinney.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    saved = spinney.load(folder / "species.tree")
    assert spinney.export_text(saved) == spinney.export_text(expected)
    np.testing.assert_array_equal(saved.predict_proba(X), expected.predict_proba(X))


def test_fit_takes_every_parameter(folder):
    out = folder / "options.tree"
    options = {"--max-depth": 5, "--min-samples-leaf": 7, "--max-leaf-nodes": 6, "--ccp-alpha": 0.001}
    words = [word for pair in options.items() for word in pair]
    run("fit", folder / "penguins.csv", "--target", "species", *words, "--criterion", "entropy", "--drop", "year",
        "--drop", "sex", "--out", out, "--folds", 2)  # fmt: skip
    model = spinney.load(out)
    given = {"max_depth": 5, "min_samples_leaf": 7, "max_leaf_nodes": 6, "ccp_alpha": 0.001, "criterion": "entropy"}
    assert given.items() <= model.get_params().items()
    assert not {"year", "sex"} & set(model.feature_names_in_)


def test_fit_weights_rows(tmp_path):
    rows = pl.DataFrame({"x": [0, 0, 0, 1, 1, 1], "w": [1.0, 1.0, 5.0, 1.0, 1.0, 1.0], "y": list("aabbbb")})
    rows.write_csv(tmp_path / "t.csv")
    run("fit", tmp_path / "t.csv", "--target", "y", "--weight", "w", "--folds", 0, "--out", tmp_path / "m")
    model = spinney.load(tmp_path / "m")
    assert list(model.feature_names_in_) == ["x"]
    assert model.predict(pl.DataFrame({"x": [0]}))[0] == "b"


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        ([1, 2] * 10, "classification"),
        (list(range(10)) * 2, "classification"),
        (list(range(11)) * 2, "regression"),
        ([1, 2, 3], "regression"),
        ([1.0, 2.0] * 10, "classification"),
        ([1.5, 2.0] * 10, "regression"),
    ],
)
def test_the_task_follows_the_target(values, task):
    assert read_target(pl.Series("y", values)).task == task


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categories_make_a_classification(dtype):
    assert read_target(pl.Series("y", ["a", "b"], dtype=dtype)).task == "classification"


def test_the_reason_for_the_task_names_the_override(tmp_path):
    pl.DataFrame({"x": range(20), "y": [0, 1] * 10}).write_csv(tmp_path / "t.csv")
    shown = run("fit", tmp_path / "t.csv", "--target", "y", "--max-depth", 1).stdout
    assert "(--task regression)" in re.sub(r"[\s│]+", " ", shown)
    forced = json.loads(run("fit", tmp_path / "t.csv", "--target", "y", "--task", "regression", "--json").stdout)
    assert forced["task"] == "regression"


def test_a_class_of_one_row_is_no_warning(tmp_path):
    pl.DataFrame({"x": range(9), "y": list("aaaabbbbc")}).write_csv(tmp_path / "t.csv")
    assert run("fit", tmp_path / "t.csv", "--target", "y").stderr == ""


def test_a_target_of_distinct_labels_is_refused(tmp_path):
    pl.DataFrame({"x": range(9), "y": list("abcdefghi")}).write_csv(tmp_path / "t.csv")
    assert "Every label of the target 'y' occurs once" in run("fit", tmp_path / "t.csv", "--target", "y", code=1).stderr


def test_scores_of_folds_have_a_corrected_standard_error(tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(size=60)
    pl.DataFrame({"x": x, "y": x + random.normal(size=60)}).write_csv(tmp_path / "t.csv")
    found = json.loads(run("fit", tmp_path / "t.csv", "--target", "y", "--json").stdout)["scores"]
    assert all(set(score) == {"mean", "error"} for by_side in found.values() for score in by_side.values())
    assert 0 < found["RMSE"]["baseline"]["error"] < found["RMSE"]["baseline"]["mean"] / 4


def test_a_warning_is_one_line_however_many_folds_give_it(folder, monkeypatch):
    fit = spinney.DecisionTreeClassifier.fit

    def warned_fit(*arguments, **options):
        warnings.warn("Column 'x' looks\nodd.", UserWarning, stacklevel=2)
        return fit(*arguments, **options)

    monkeypatch.setattr(spinney.DecisionTreeClassifier, "fit", warned_fit)
    result = run("fit", folder / "penguins.csv", "--target", "species", "--json")
    assert result.stderr == "Warning: Column 'x' looks odd.\n"
    assert json.loads(result.stdout)["rows"] == 344


# ---- predict ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["penguins.csv", "penguins.parquet"])
@pytest.mark.parametrize("model", ["species.tree", "mass.tree"])
def test_predictions_are_the_models(folder, penguins, table, model):
    if (model, table) == ("mass.tree", "penguins.parquet"):
        penguins = pl.read_parquet(folder / table)
    out = run("predict", folder / model, folder / table).stdout
    expected = spinney.load(folder / model).predict(penguins.select(spinney.load(folder / model).feature_names_in_))
    assert pl.read_csv(out.encode())["prediction"].to_list() == expected.tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_small_batches_change_nothing(folder, tmp_path, monkeypatch, suffix):
    whole = run("predict", folder / "species.tree", folder / "penguins.csv", "--proba").stdout
    monkeypatch.setattr(tables, "BLOCK_BYTES", 700)
    monkeypatch.setattr(tables, "BATCH_ROWS", 50)
    for table in ("penguins.csv", "penguins.parquet"):
        out = tmp_path / f"{table}.{suffix}"
        run("predict", folder / "species.tree", folder / table, "--proba", "--out", out)
        written = pl.read_csv(out) if suffix == "csv" else pl.read_parquet(out)
        assert written.equals(pl.read_csv(whole.encode()))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"penguins.{s}.{suffix}" for s in ("csv", "parquet")]


@pytest.mark.parametrize("block", [1, 2, 7, 64, 10_000])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_blocks_end_where_records_end(tmp_path, monkeypatch, block, newline, last):
    text = newline.join(['"a\nb",c', '1,"x"', '2,"new\nline, and ""quotes"""', "3,", '4,"\n"']) + last
    (tmp_path / "t.csv").write_bytes(text.encode())
    monkeypatch.setattr(tables, "BLOCK_BYTES", block)
    assert tables.column_names(tmp_path / "t.csv", CsvFormat()) == ["a\nb", "c"]
    found = pl.concat(tables.batches(tmp_path / "t.csv", {"c": "text", "a\nb": "number"}, CsvFormat(",")))
    assert found["a\nb"].to_list() == [1.0, 2.0, 3.0, 4.0]
    assert found["c"].to_list() == ["x", 'new\nline, and "quotes"', None, "\n"]


def test_proba_has_a_column_per_class(folder, penguins):
    found = pl.read_csv(run("predict", folder / "species.tree", folder / "penguins.csv", "--proba").stdout.encode())
    assert found.columns == ["prediction", "proba_Adelie", "proba_Chinstrap", "proba_Gentoo"]
    expected = spinney.load(folder / "species.tree").predict_proba(penguins.drop("species"))
    np.testing.assert_array_equal(found.drop("prediction").to_numpy(), expected)


def test_columns_are_read_as_at_fit_whatever_the_first_rows_hold(tmp_path):
    rows = pl.DataFrame({"flag": [True, False] * 4, "code": list("ab12ab12"), "n": [0.5, 1.5] * 4, "y": list("pq" * 4)})
    rows.write_csv(tmp_path / "t.csv")
    run("fit", tmp_path / "t.csv", "--target", "y", "--folds", 0, "--out", tmp_path / "m")
    (tmp_path / "new.csv").write_text("n,code,flag\n1,1,1\n2,2,False\n,,\n")
    model = spinney.load(tmp_path / "m")
    expected = model.predict(
        pl.DataFrame({"flag": [True, False, None], "code": ["1", "2", None], "n": [1.0, 2.0, None]})
    )
    found = run("predict", tmp_path / "m", tmp_path / "new.csv").stdout
    assert found.splitlines() == ["prediction", *expected]
    (tmp_path / "bad.csv").write_text("n,code,flag\n1,1,maybe\n")
    assert "'maybe'" in refused("predict", tmp_path / "m", tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text("n,code,flag\nhello,1,true\n")
    assert "hello" in refused("predict", tmp_path / "m", tmp_path / "bad.csv")


def test_delimiters_and_compression(folder, penguins, tmp_path):
    expected = run("predict", folder / "species.tree", folder / "penguins.csv").stdout
    penguins.write_csv(tmp_path / "t.tsv", separator="\t")
    penguins.write_csv(tmp_path / "semicolon.csv", separator=";")
    penguins.write_csv(tmp_path / "tab.csv", separator="\t")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((folder / "penguins.csv").read_bytes()))
    for table, *words in (
        ["t.tsv"],
        ["semicolon.csv", "--delimiter", ";"],
        ["tab.csv", "--delimiter", "tab"],
        ["t.csv.gz"],
    ):
        assert run("predict", folder / "species.tree", tmp_path / table, *words).stdout == expected
        assert "344" in run("fit", tmp_path / table, "--target", "species", "--folds", 0, *words).stdout


def test_a_model_without_names_takes_columns_by_position(tmp_path):
    spinney.DecisionTreeRegressor().fit([[1.0, 9.0], [2.0, 9.0]], [10.0, 20.0]).save(tmp_path / "m")
    (tmp_path / "t.csv").write_text("p,q\n1,9\n2,9\n")
    assert run("predict", tmp_path / "m", tmp_path / "t.csv").stdout == "prediction\n10.0\n20.0\n"
    (tmp_path / "t.csv").write_text("p,q,r\n1,9,0\n")
    assert "on 2 columns, but" in refused("predict", tmp_path / "m", tmp_path / "t.csv")


def test_several_outputs(tmp_path):
    model = spinney.DecisionTreeClassifier().fit(pl.DataFrame({"x": [1, 2]}), [["a", "c"], ["b", "d"]])
    model.save(tmp_path / "m")
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    shown = run("predict", tmp_path / "m", tmp_path / "t.csv", "--proba").stdout.splitlines()
    assert shown[0] == "prediction_0,prediction_1,proba_0_a,proba_0_b,proba_1_c,proba_1_d"
    assert shown[1] == "a,c,1.0,0.0,1.0,0.0"


# ---- show -------------------------------------------------------------------------------------------------


def test_show_prints_the_tree_and_its_columns(folder):
    model = spinney.load(folder / "species.tree")
    shown = run("show", folder / "species.tree").stdout
    assert spinney.export_text(model) in shown
    assert "importance" in shown
    assert all(name in shown for name in model.feature_names_in_)
    assert spinney.export_text(model, max_depth=1) in run("show", folder / "species.tree", "--max-depth", 1).stdout


def test_show_draws(folder, tmp_path):
    run("show", folder / "species.tree", "--svg", tmp_path / "tree.svg")
    assert ET.parse(tmp_path / "tree.svg").getroot().tag.endswith("svg")


def test_show_as_json(folder):
    model = spinney.load(folder / "species.tree")
    found = json.loads(run("show", folder / "species.tree", "--json").stdout)
    assert found["tree"] == json.loads(spinney.to_json(model))
    assert {entry["column"]: entry["importance"] for entry in found["columns"]} == pytest.approx(
        dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    )


# ---- forests ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forest(folder):
    """Hold a forest of twenty trees."""
    words = ("--target", "species", "--model", "forest", "--trees", 20, "--folds", 3)
    found = json.loads(run("fit", folder / "penguins.csv", *words, "--json", "--out", folder / "forest").stdout)
    return folder / "forest", found


def test_fit_grows_and_evaluates_a_forest(folder, forest, penguins):
    path, found = forest
    assert found["trees"] == 20
    assert found["scores"]["accuracy"]["forest"]["mean"] > 0.95
    assert found["out_of_bag"] > 0.95
    X, y = penguins.drop("species"), penguins["species"].to_numpy()
    expected = spinney.RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(spinney.load(path).predict_proba(X), expected.predict_proba(X))
    extra = run("fit", folder / "penguins.csv", "--target", "body_mass_g", "--model", "extra-trees", "--folds", 0)
    assert "100 trees" in extra.stdout
    assert "out of bag" not in extra.stdout
    assert extra.stdout.count("importances") == 1


def test_trees_are_grown_until_the_error_has_settled(folder):
    words = ("fit", folder / "penguins.csv", "--target", "species", "--folds", 0, "--trees")
    found = json.loads(run(*words, "auto", "--model", "forest", "--json").stdout)
    assert 100 <= found["trees"] < 1000
    assert next(iter(found["importances"])) == "bill_length_mm"
    for model, trees, reason in (
        ("extra-trees", "auto", "none is out of bag"),
        ("forest", "0", "'0' is neither a whole number"),
        ("forest", "many", "'many' is neither a whole number"),
        ("tree", "auto", "Pass --model forest or boosting too"),
    ):
        assert reason in refused(*words, trees, "--model", model, code=2)


def test_show_and_predict_take_a_forest(folder, forest, penguins, tmp_path):
    path, _ = forest
    shown = run("show", path).stdout
    assert "RandomForestClassifier: 20 trees" in shown
    assert "out-of-bag score" in shown
    assert "bill_length_mm" in shown
    about = json.loads(run("show", path, "--json").stdout)
    assert about["trees"] == 20
    assert sum(entry["importance"] for entry in about["columns"]) == pytest.approx(1)
    model = spinney.load(path)
    assert spinney.export_text(model[4]) in run("show", path, "--tree", 5, "--svg", tmp_path / "five.svg").stdout
    assert (tmp_path / "five.svg").exists()
    found = pl.read_csv(run("predict", path, folder / "penguins.csv").stdout.encode())
    assert found.to_series(0).to_list() == model.predict(penguins.drop("species")).tolist()
    assert "--tree N" in refused("show", path, "--svg", tmp_path / "none.svg")
    assert "no tree 21" in refused("show", path, "--tree", 21)
    assert "not a forest" in refused("show", folder / "species.tree", "--tree", 1)


# ---- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("fit penguins.csv --target specie", "Did you mean 'species'?"),
        ("fit penguins.csv --target zzz", "It has: island"),
        ("fit penguins.csv --target species --drop Sex", "Did you mean 'sex'?"),
        ("fit penguins.csv --target species --weight sex", "Weights must be numbers"),
        ("fit penguins.csv --target species --weight body_mass_g", "missing values"),
        ("fit penguins.csv --target species --drop species", "cannot be dropped"),
        ("fit penguins.csv --target species --task regression", "needs numbers"),
        ("fit penguins.csv --target bill_length_mm --task classification", "holds fractions"),
        ("fit penguins.csv --target species --criterion poisson", "criterion"),
        ("fit penguins.csv --target species --delimiter ;", "try --delimiter ','"),
        ("fit penguins.csv --target species --delimiter ;;", "one character"),
        ("fit absent.csv --target species", "no such file"),
        ("fit plain --target species", "it is a folder without Parquet files. Name a file or a pattern."),
        ("fit . --target species", "Cannot read 'fake.parquet'"),
        ("fit penguins.csv --target species --out nowhere/m", "no folder"),
        ("fit penguins.csv --target species --out .", "it is a folder"),
        ("fit species.tree --target species", "Cannot read"),
        ("fit fake.parquet --target species", "as Parquet"),
        ("fit empty.csv --target species", "is empty"),
        ("fit header.csv --target a", "has no rows"),
        ("fit mixed.csv --target a", "line 3 is the first that is not. Name its encoding, such as --encoding latin-1"),
        ("fit two.csv --target a --folds 3", "Pass fewer --folds"),
        ("predict absent.tree penguins.csv", "no such file"),
        ("predict penguins.csv penguins.csv", "not a model file"),
        ("predict species.tree absent.csv", "no such file"),
        ("predict species.tree empty.csv", "is empty"),
        ("predict species.tree two.csv", "lacks 7 columns"),
        ("predict species.tree lacking.csv", "lacks 1 column that the model needs: 'sex'. Did you mean 'sexx'?"),
        ("predict species.tree norows.csv", "has no rows"),
        ("predict species.tree penguins.csv --delimiter ;", "try --delimiter ','"),
        ("predict mass.tree penguins.csv --proba", "Leave out --proba"),
        ("predict species.tree penguins.csv --out nowhere/o.csv", "no folder"),
        ("show penguins.csv", "not a model file"),
        ("show absent.tree", "no such file"),
    ],
)
def test_an_error_is_one_line_with_a_remedy(folder, penguins, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("a,b\n")
    Path("mixed.csv").write_bytes("a,b\n1,é\n".encode() + "2,é\n".encode("latin-1"))
    Path("two.csv").write_text("a,b\n1,2\n3,4\n")
    Path("fake.parquet").write_text("a,b\n1,2\n")
    Path("plain").mkdir(exist_ok=True)
    penguins.rename({"sex": "sexx"}).write_csv("lacking.csv")
    penguins.head(0).write_csv("norows.csv")
    assert message in refused(*words.split())


@pytest.mark.parametrize(
    "words", ["fit", "fit t.csv", "predict m", "fit t.csv --target y --folds 1", "show m --depth 1"]
)
def test_usage_errors_exit_2(words):
    assert f"'spinney {words.split()[0]} --help'" in refused(*words.split(), code=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("study penguins.csv --target species --minutes abc", "--minutes must be a number above 0, not 'abc'."),
        ("study penguins.csv --target species --minutes -1", "--minutes must be a number above 0, not '-1'."),
        ("study penguins.csv --target species --minutes 0", "--minutes must be a number above 0, not '0'."),
        ("study penguins.csv --target species --minutes inf", "--minutes must be a number above 0, not 'inf'."),
        ("study penguins.csv --target species --folds 1", "--folds must be a whole number from 2 to 100, not '1'."),
        (
            "study penguins.csv --target species --seed x",
            "--seed must be a whole number from 0 to 4294967295, not 'x'.",
        ),
        ("show m --tree 0", "--tree must be a whole number of at least 1, not '0'."),
        ("fit t.csv --target y --model nu_svm --nu 2", "--nu must be a number above 0 and up to 1, not '2'."),
        ("study penguins.csv", "Name the column to predict, such as --target species. The table has: island, "),
        ("fit penguins.csv", "Name the column to predict, such as --target species."),
        ("compare penguins.csv", "Name the column to predict, such as --target species."),
        ("study absent.csv", "Name the column to predict: --target COL."),
        ("studi t.csv", "No such command 'studi'."),
        ("--wrong", "No such option '--wrong'"),
    ],
)
def test_an_invalid_command_names_the_remedy_in_one_line(folder, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    assert message in refused(*words.split(), code=2)


def test_an_option_that_does_not_suit_the_target_is_named(folder):
    fit = ("fit", folder / "penguins.csv", "--target", "species")
    wanted = "--criterion must be one of chi2, entropy, gain_ratio, gini, log_loss, misclassification. Got 'poisson'"
    assert wanted in refused(*fit, "--criterion", "poisson")
    weights = refused(*fit, "--weight", "island")
    assert "--weight: the column 'island' holds values such as 'Torgersen'. Weights must be numbers." in weights


def test_other_encodings_and_formats_are_fitted_predicted_and_explained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    towns = ["Zürich", "Genève"] * 20
    frame = pl.DataFrame({"town": towns, "n": list(range(40)), "rent": [900 + 300 * (k % 2) + k for k in range(40)]})
    Path("rents.csv").write_bytes(frame.write_csv().encode("latin-1"))
    frame.write_ipc("rents.arrow")
    frame.write_parquet("rents.parquet")
    latin = ("--encoding", "latin-1")
    note = run("fit", "rents.csv", "--target", "rent", "--out", "detected").stderr
    assert note == "Reading 'rents.csv': encoding cp1252.\n"
    run("fit", "rents.csv", "--target", "rent", "--out", "m", *latin)
    expected = run("predict", "m", "rents.parquet").stdout
    assert run("predict", "m", "rents.csv", *latin).stdout == expected
    assert run("predict", "detected", "rents.csv").stdout == expected
    assert run("predict", "m", "rents.arrow").stdout == expected
    assert "Zürich" in run("explain", "m", "rents.csv", "--column", "town", *latin).stdout
    assert "Zürich" in run("explain", "m", "rents.arrow", "--column", "town").stdout
    run("compare", "rents.csv", "--target", "rent", "--model", "tree", "--folds", "2", "--repeats", "1", *latin)
    frame.rename({"town": "city"}).write_ipc("other.arrow")
    assert refused("predict", "m", "other.arrow").startswith("Error: 'other.arrow' lacks 1 column")


@pytest.mark.parametrize("name", ["fit", "predict", "show"])
def test_help_has_an_example(name):
    shown = run(name, "--help").stdout
    assert f"\n  Example\n    spinney {name} loans" in shown
    assert "\\b" not in shown


def test_a_failed_command_leaves_the_old_file(folder, tmp_path):
    out = tmp_path / "o.csv"
    out.write_text("old")
    rows = (folder / "penguins.csv").read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([*rows, rows[1].replace("39.1", "wrong")]))
    assert "wrong" in refused("predict", folder / "species.tree", tmp_path / "t.csv", "--out", out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.csv", "t.csv"]
    run("predict", folder / "species.tree", folder / "penguins.csv", "--out", out)
    assert out.read_text().startswith("prediction\nAdelie\n")


def test_a_pipe_is_written_to_and_not_replaced(folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    run("predict", folder / "species.tree", folder / "penguins.csv", "--out", tmp_path / "pipe")
    assert reader.communicate(timeout=30)[0].startswith(b"prediction\nAdelie\n")
    assert (tmp_path / "pipe").is_fifo()


# ---- real processes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_table(folder, penguins):
    """Make a table whose predictions do not fit into a pipe."""
    path = folder / "long.csv"
    pl.concat([penguins] * 300).write_csv(path)
    return path


def test_a_reader_that_leaves_early_is_no_error(folder, long_table):
    process = start("predict", folder / "species.tree", long_table)
    assert process.stdout.readline() == b"prediction\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 0
    process.stderr.close()


def test_an_interrupt_exits_130_without_a_traceback(folder, long_table):
    process = start("predict", folder / "species.tree", long_table)
    assert process.stdout.readline() == b"prediction\n"  # it waits for the pipe now
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read() == b"Interrupted.\n"
    process.stdout.close()
    process.stderr.close()


def test_exit_codes_of_real_processes(folder):
    table = folder / "penguins.csv"
    cases = ((["predict", folder / "species.tree", table], 0), (["predict", table, table], 1), (["predict"], 2))
    for process, code in [(start(*words), code) for words, code in cases]:
        out, err = process.communicate(timeout=30)
        assert process.returncode == code
        assert (out == b"") == (code != 0)
        assert b"Traceback" not in err


def test_nothing_but_json_on_stdout_and_no_progress_without_a_terminal(folder):
    code = "from spinney.cli import main; main()"
    found = processes.run(code, "fit", folder / "penguins.csv", "--target", "species", "--json")
    assert json.loads(found.stdout)["task"] == "classification"
    assert found.stderr == ""


# ---- AdaBoost ---------------------------------------------------------------------------------------------


def test_adaboost_fits_shows_and_predicts(folder, penguins, tmp_path):
    fit = ("fit", folder / "penguins.csv", "--target", "species", "--model", "adaboost")
    words = ("--trees", 20, "--learning-rate", 0.8, "--max-depth", 2, "--folds", 3, "--out", tmp_path / "ada", "--json")
    found = json.loads(run(*fit, *words).stdout)
    assert found["scores"]["accuracy"]["AdaBoost"]["mean"] > 0.95
    model = spinney.load(tmp_path / "ada")
    assert (found["rounds"], found["training_error"]) == (model.n_iter_, model.train_score_[-1])
    assert model.get_params()["max_depth"] == 2
    assert "AdaBoostClassifier" in run("show", tmp_path / "ada").stdout
    assert "Round 2 of" in run("show", tmp_path / "ada", "--tree", 2).stdout
    assert "Chinstrap" in run("predict", tmp_path / "ada", folder / "penguins.csv").stdout
    assert "rounds" in run(*fit, "--folds", 0).stdout
    for option, value in (("--criterion", "gini"), ("--max-leaf-nodes", 4), ("--trees", "auto")):
        assert "Leave it out" in refused(*fit, option, value, code=2).replace("leave it out", "Leave it out")
    values = ("fit", folder / "penguins.csv", "--target", "body_mass_g", "--model", "adaboost", "--folds", 0)
    assert "rounds" in run(*values).stdout


# ---- functional boosting ----------------------------------------------------------------------------------


def test_functional_boosting_fits_shows_and_predicts(folder, tmp_path):
    fit = ("fit", folder / "penguins.csv", "--target", "body_mass_g", "--model", "functional", "--folds", 0)
    words = (
        "--learner",
        "linear",
        "--learner",
        "stumps",
        "--trees",
        30,
        "--learning-rate",
        0.3,
        "--out",
        tmp_path / "f",
    )
    run(*fit, *words)
    model = spinney.load(tmp_path / "f")
    assert type(model) is spinney.FunctionalBoostingRegressor
    assert (model.learners, model.n_iter_, model.learning_rate) == (["linear", "stumps"], 30, 0.3)
    assert "FunctionalBoostingRegressor" in run("show", tmp_path / "f").stdout
    assert run("predict", tmp_path / "f", folder / "penguins.csv").stdout.count("\n") > 300
    for option, value in (("--criterion", "gini"), ("--max-depth", 2), ("--trees", "auto")):
        assert "eave it out" in refused(*fit, option, value, code=2)
    tree = ("fit", folder / "penguins.csv", "--target", "species", "--learner", "stumps")
    assert "--model tree" in refused(*tree, code=2)


# ---- SVMs -------------------------------------------------------------------------------------------------


def test_svm_fits_shows_and_predicts(folder, tmp_path):
    fit = ("fit", folder / "penguins.csv", "--target", "species", "--model", "svm")
    words = ("--C", 10, "--kernel", "linear", "--folds", 3, "--out", tmp_path / "svm", "--json")
    found = json.loads(run(*fit, *words).stdout)
    assert found["scores"]["accuracy"]["support vector machine"]["mean"] > 0.95
    model = spinney.load(tmp_path / "svm")
    assert (found["support_vectors"], found["C"], found["importances"]) == (len(model.support_), 10.0, {})
    assert "SVC: " in run("show", tmp_path / "svm").stdout
    assert "Chinstrap" in run("predict", tmp_path / "svm", folder / "penguins.csv").stdout
    assert "fit with probability=True" in refused("predict", tmp_path / "svm", folder / "penguins.csv", "--proba")
    for option, value in (("--max-depth", 2), ("--trees", 10), ("--learning-rate", 0.1)):
        assert "Leave it out" in refused(*fit, option, value, code=2)
    nu = (*fit[:-1], "nu_svm", "--nu", 0.1, "--folds", 0, "--out", tmp_path / "nu")
    run(*nu)
    assert spinney.load(tmp_path / "nu").nu == 0.1
    assert "Leave it out" in refused(*fit, "--nu", 0.1, code=2)
    assert "neither a positive number nor 'cv'" in refused(*fit, "--C", "-3", code=2)
    assert "Leave it out" in refused(*fit[:-1], "tree", "--C", 2, code=2)


@pytest.mark.slow
def test_svm_and_linear_models_fit_numeric_targets(folder):
    values = ("fit", folder / "penguins.csv", "--target", "body_mass_g", "--folds", 0, "--model")
    assert "support vectors" in run(*values, "svm", "--C", "cv").stdout
    assert "plane of " in run(*values, "linear_svm", "--C", 5).stdout
    assert "plane of " in run(*values, "linear_svm", "--C", "cv").stdout
    assert "'perceptron' is not available as a regressor" in refused(*values, "perceptron")
    assert "'logistic' is not available as a regressor" in refused(*values, "logistic")
    classes = ("fit", folder / "penguins.csv", "--target", "species", "--folds", 0, "--model")
    assert "3 planes of" in run(*classes, "perceptron").stdout


# ---- neighbours -------------------------------------------------------------------------------------------


def test_knn_fits_shows_and_predicts(folder, tmp_path):
    fit = ("fit", folder / "penguins.csv", "--target", "species", "--model", "knn")
    found = json.loads(run(*fit, "--folds", 3, "--out", tmp_path / "near", "--json").stdout)
    assert found["scores"]["accuracy"]["neighbours"]["mean"] > 0.95
    model = spinney.load(tmp_path / "near")
    assert (found["neighbours"], found["distance"]) == (model.n_neighbors_, "gower")
    assert "KNeighborsClassifier" in run("show", tmp_path / "near").stdout
    assert "not of trees" in refused("show", tmp_path / "near", "--tree", 1)
    assert "Chinstrap" in run("predict", tmp_path / "near", folder / "penguins.csv").stdout
    assert "4 neighbours" in run(*fit, "--neighbors", 4, "--folds", 0).stdout
    for option, value in (("--criterion", "gini"), ("--max-depth", 4), ("--trees", 10)):
        assert "Leave it out" in refused(*fit, option, value, code=2)
    assert "neither a whole number of at least 1 nor 'cv'" in refused(*fit, "--neighbors", "auto", code=2)


def test_histograms_are_fitted_and_shown(folder, tmp_path):
    fit = ("fit", folder / "penguins.csv", "--target", "body_mass_g", "--model", "histogram", "--folds", 0)
    assert "cells with rows" in run(*fit, "--out", tmp_path / "cells").stdout
    assert "HistogramRegressor" in run("show", tmp_path / "cells").stdout


# ---- boosting ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boosted(folder):
    """Hold a boosted model that stopped early."""
    words = ("--target", "species", "--model", "boosting", "--trees", 60, "--learning-rate", 0.3, "--folds", 3)
    found = json.loads(run("fit", folder / "penguins.csv", *words, "--json", "--out", folder / "boosted").stdout)
    return folder / "boosted", found


def test_fit_boosts_and_reports_early_stopping(folder, boosted):
    path, found = boosted
    assert found["scores"]["accuracy"]["boosting"]["mean"] > 0.95
    model = spinney.load(path)
    assert found["rounds"] == model.n_iter_ <= found["rounds_tried"] <= 60
    assert found["held_out_loss"] == model.validation_score_.min()
    printed = run(
        "fit", folder / "penguins.csv", "--target", "species", "--model", "boosting", "--trees", 5, "--folds", 0
    )
    assert "5 rounds" in printed.stdout
    assert "held-out rows" in printed.stdout


def test_show_and_predict_take_a_boosted_model(folder, boosted, penguins, tmp_path):
    path, found = boosted
    shown = run("show", path).stdout
    assert f"GradientBoostingClassifier: {found['rounds']} rounds" in shown
    assert "bill_length_mm" in shown
    about = json.loads(run("show", path, "--json").stdout)
    assert about["rounds"] == found["rounds"]
    assert {"column", "importance", "kind", "splits"} == set(about["columns"][0])
    assert "Choose the one to print or draw" in refused("show", path, "--svg", tmp_path / "a.svg")
    step = run("show", path, "--tree", 5, "--svg", tmp_path / "step.svg").stdout
    assert f"Round 2 of {found['rounds']}, what it adds to the score for Chinstrap: " in step
    assert (tmp_path / "step.svg").read_text().startswith("<svg")
    assert json.loads(run("show", path, "--tree", 1, "--json").stdout)["tree"]["criterion"] == "gain"
    n_trees = 3 * found["rounds"]
    assert f"has {n_trees} trees, so there is no tree {n_trees + 1}" in refused("show", path, "--tree", n_trees + 1)
    run("predict", path, folder / "penguins.csv", "--proba", "--out", tmp_path / "answers.csv")
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == len(penguins) + 1


def test_options_of_other_models_are_refused(folder):
    for words in (("--model", "boosting", "--criterion", "gini"), ("--model", "forest", "--learning-rate", 0.1)):
        done = run("fit", folder / "penguins.csv", "--target", "species", *words, code=2)
        assert "is not a parameter of --model" in done.stderr


def test_an_imputer_is_neither_shown_nor_used_to_predict(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, None, 4.0], "b": [1, 2, 3, 4]})
    path = tmp_path / "imputer.spinney"
    spinney.ProximityImputer(n_estimators=2, random_state=0).fit(frame).save(path)
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert "holds an imputer, which has no single tree to show" in run("show", path, code=1).output
    assert (
        "holds a model of the kind ProximityImputer, which does not predict a target"
        in run("predict", path, tmp_path / "table.csv", code=1).output
    )


def test_ensembles_without_importances_are_shown_or_refused_in_words(tmp_path):
    frame = pd.DataFrame({"size": np.arange(40.0), "town": ["Ely", "Rye"] * 20})
    path = tmp_path / "model.spinney"
    for model in (spinney.IsolationForest(n_estimators=3), spinney.RandomTreesEmbedding(n_estimators=3)):
        model.fit(frame).save(path)
        shown = run("show", path).output
        assert f"{type(model).__name__}: 3 trees" in shown
        assert "town" in shown
        assert "importance" not in shown
        about = json.loads(run("show", path, "--json").output)
        assert about["columns"][1] == {"column": "town", "kind": "category", "importance": None, "splits": None}
        for arguments in (["--tree", "1"], ["--max-depth", "2"]):
            assert "random and not shown" in run("show", path, *arguments, code=1).output
    spinney.BaggingRegressor(n_estimators=2, random_state=0).fit(frame[["size"]], frame["size"]).save(path)
    for arguments in ([], ["--tree", "1"]):
        assert "bagging ensemble" in run("show", path, *arguments, code=1).output


def bagged(task, **options):
    """Return a bagging ensemble whose last column, of text, is not in every member."""
    kind = spinney.BaggingClassifier if task == "classification" else spinney.BaggingRegressor
    frame = pl.DataFrame({"size": np.arange(40.0), "age": np.arange(40.0) % 7, "town": ["Ely", "Rye"] * 20})
    target = frame["town"].to_numpy() if task == "classification" else frame["size"].to_numpy()
    return frame, kind(n_estimators=4, random_state=0, **options).fit(frame, target)


@pytest.mark.parametrize("target", ["species", "body_mass_g"])
def test_bagging_is_fitted_saved_and_used(folder, penguins, tmp_path, target):
    path, table = tmp_path / "bagged", folder / "penguins.csv"
    fit = ("fit", table, "--target", target, "--model", "bagging", "--folds", 0, "--out", path)
    assert "importances" in run(*fit).stdout
    model = spinney.load(path)
    found = json.loads(run(*fit, "--json").stdout)["importances"]
    assert found == dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    run("predict", path, table, "--out", tmp_path / "p.csv", *(["--proba"] if target == "species" else []))
    expected = model.predict(penguins.filter(pl.col(target).is_not_null()).drop(target))
    written = pl.read_csv(tmp_path / "p.csv")["prediction"].filter(penguins[target].is_not_null())
    assert written.to_list() == pytest.approx(expected.tolist())
    assert "Permutation importance" in run("explain", path, table, "--target", target).stdout
    assert "Mean drop" in run("explain", path, table, "--row", 1).stdout


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_bagging_of_some_columns_predicts_from_a_file(tmp_path, task, n_columns):
    frame, model = bagged(task, max_features=n_columns)
    model.save(tmp_path / "model")
    frame.write_csv(tmp_path / "table.csv")
    run("predict", tmp_path / "model", tmp_path / "table.csv", "--out", tmp_path / "p.csv")
    assert pl.read_csv(tmp_path / "p.csv")["prediction"].to_list() == pytest.approx(model.predict(frame).tolist())


def test_other_ensembles_that_only_load_reads_predict_from_a_file(folder, penguins, tmp_path):
    X, y = penguins.drop("species"), penguins["species"].to_numpy()
    inner = spinney.BaggingClassifier("tree", 2, random_state=0)
    for model in (
        spinney.VotingClassifier([("bag", inner), ("tree", "tree")]),
        spinney.AdaBoostClassifier("linear", n_estimators=2, random_state=0),
    ):
        model.fit(X, y).save(tmp_path / "model")
        with pytest.raises(spinney.ModelFileError, match=r"Read it with spinney\.load"):
            spinney.load_predictor(tmp_path / "model")
        run("predict", tmp_path / "model", folder / "penguins.csv", "--proba", "--out", tmp_path / "p.csv")
        assert pl.read_csv(tmp_path / "p.csv")["prediction"].to_list() == model.predict(X).tolist()


# ---- offsets ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def claims(folder):
    """Write counts that grow with an exposure, whose logarithm is the offset."""
    random = np.random.default_rng(0)
    age, exposure = random.uniform(18, 80, 400), random.uniform(0.1, 5, 400)
    frame = pl.DataFrame({"age": age, "log_exposure": np.log(exposure), "cost": exposure * (1 + (age < 30))})
    frame.write_csv(folder / "claims.csv")
    frame.write_parquet(folder / "claims.parquet")
    return frame


def test_boosting_takes_an_offset_at_fit_and_predict(folder, claims, tmp_path):
    words = ("--target", "cost", "--model", "boosting", "--trees", 30, "--folds", 3, "--offset", "log_exposure")
    found = json.loads(run("fit", folder / "claims.csv", *words, "--json", "--out", folder / "claims").stdout)
    assert found["columns"] == ["age"]
    model = spinney.load(folder / "claims")
    expected = model.predict(claims.select("age"), offset=claims["log_exposure"].to_numpy())
    for name in ("claims.csv", "claims.parquet"):
        run("predict", folder / "claims", folder / name, "--offset", "log_exposure", "--out", tmp_path / "o.csv")
        np.testing.assert_allclose(pl.read_csv(tmp_path / "o.csv")["prediction"], expected, rtol=1e-9)
    without = spinney.GradientBoostingRegressor(
        n_estimators=30, early_stopping=True, n_iter_no_change=20, random_state=0
    ).fit(claims.select("age"), claims["cost"].to_numpy())
    assert not np.allclose(expected, without.predict(claims.select("age")))


def test_weights_and_offsets_may_be_decimal_numbers(claims, tmp_path):
    exact = pl.col("log_exposure").round(2).cast(pl.Decimal(10, 2))
    decimals = claims.with_columns(exact, w=(pl.col("age") / 8).round(1).cast(pl.Decimal(4, 1)))
    floats = decimals.with_columns(pl.col("log_exposure", "w").cast(pl.Float64))
    words = ("--target", "cost", "--model", "boosting", "--trees", 2, "--folds", 0)
    fingerprints = []
    for table in (decimals, floats):
        table.write_parquet(tmp_path / "t.parquet")
        out = ("--out", tmp_path / "m")
        run("fit", tmp_path / "t.parquet", *words, "--offset", "log_exposure", "--weight", "w", *out)
        fingerprints.append(spinney.load(tmp_path / "m").fingerprint())
    assert fingerprints[0] == fingerprints[1]


def test_boosting_of_numbers_takes_a_loss(folder, claims, tmp_path):
    words = ("--target", "cost", "--model", "boosting", "--trees", 20, "--folds", 0, "--loss", "poisson")
    run("fit", folder / "claims.csv", *words, "--offset", "log_exposure", "--out", tmp_path / "m")
    model = spinney.load(tmp_path / "m")
    assert model.loss == "poisson"
    offset = claims["log_exposure"].to_numpy()
    twice = model.predict(claims.select("age"), offset=offset + np.log(2))
    np.testing.assert_allclose(twice, 2 * model.predict(claims.select("age"), offset=offset))
    penguins = ("fit", folder / "penguins.csv", "--target", "species", "--folds", 0, "--loss", "poisson")
    assert "--loss poisson is a regression loss" in refused(*penguins, "--model", "boosting")
    assert "not a parameter of --model tree" in refused(*penguins, code=2)


def test_an_offset_is_checked_in_words(folder, claims, tmp_path):
    fit = ("fit", folder / "claims.csv", "--target", "cost", "--folds", 0)
    assert "not a parameter of --model tree" in refused(*fit, "--offset", "log_exposure", code=2)
    boost = (*fit, "--model", "boosting", "--trees", 3, "--out", tmp_path / "m")
    assert "--offset: " in refused(*boost, "--offset", "log_exposur")
    assert "'cost' is the target" in refused(*boost, "--offset", "cost")
    run(*boost, "--offset", "log_exposure")
    predict = ("predict", tmp_path / "m", folder / "claims.csv")
    assert "Did you mean 'log_exposure'?" in refused(*predict, "--offset", "log_exposur")
    claims.with_columns(pl.when(pl.col("age") > 50).then("log_exposure")).write_csv(tmp_path / "gaps.csv")
    assert "has missing values" in refused("predict", tmp_path / "m", tmp_path / "gaps.csv", "--offset", "log_exposure")
    text = claims.with_columns(log_exposure=pl.lit("high"))
    text.write_parquet(tmp_path / "text.parquet")
    assert "must be numbers" in refused(
        "predict", tmp_path / "m", tmp_path / "text.parquet", "--offset", "log_exposure"
    )
    claims.with_columns(log_exposure=pl.lit(float("inf"))).write_parquet(tmp_path / "inf.parquet")
    assert "'log_exposure' holds NaN or infinity" in refused(
        "predict", tmp_path / "m", tmp_path / "inf.parquet", "--offset", "log_exposure"
    )
    three = claims.with_columns(cost=pl.Series("cost", ["a", "b", "c"] * claims.height)[: claims.height])
    three.write_parquet(tmp_path / "three.parquet")
    words = ("fit", tmp_path / "three.parquet", "--target", "cost", "--folds", 0, "--model", "boosting", "--trees", 2)
    assert "regression and two classes" in refused(*words, "--offset", "log_exposure")
    run(*words, "--drop", "log_exposure", "--out", tmp_path / "m3")
    assert "has 3 classes" in refused("predict", tmp_path / "m3", folder / "claims.csv", "--offset", "log_exposure")
    assert "--offset applies to gradient boosting" in refused(
        "predict", folder / "species.tree", folder / "penguins.csv", "--offset", "year"
    )


def test_an_offset_is_no_column_of_a_model_without_names(claims, tmp_path):
    model = spinney.GradientBoostingRegressor("poisson", n_estimators=5)
    log_exposure = claims["log_exposure"].to_numpy()
    model.fit(claims.select("age").to_numpy(), claims["cost"].to_numpy(), offset=log_exposure).save(tmp_path / "m")
    claims.drop("cost").write_csv(tmp_path / "t.csv")
    run("predict", tmp_path / "m", tmp_path / "t.csv", "--offset", "log_exposure", "--out", tmp_path / "o.csv")
    expected = model.predict(claims.select("age").to_numpy(), offset=log_exposure)
    np.testing.assert_allclose(pl.read_csv(tmp_path / "o.csv")["prediction"], expected, rtol=1e-9)


def test_class_probabilities_take_the_offset_too(claims, folder, tmp_path):
    classes = (claims["age"] < 40).to_numpy()
    model = spinney.GradientBoostingClassifier(n_estimators=5)
    offset = claims["log_exposure"].to_numpy()
    model.fit(claims.select("age"), classes, offset=offset).save(tmp_path / "m")
    words = ("--offset", "log_exposure", "--proba", "--out", tmp_path / "o.csv")
    run("predict", tmp_path / "m", folder / "claims.csv", *words)
    expected = model.predict_proba(claims.select("age"), offset=offset)
    np.testing.assert_allclose(pl.read_csv(tmp_path / "o.csv")["proba_True"], expected[:, 1], rtol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "vote", pytest.param("stack", marks=pytest.mark.slow)])
def test_models_that_are_not_trees_fit_and_predict(kind, folder, penguins, tmp_path):
    path, table = tmp_path / "model", folder / "penguins.csv"
    fitted = run("fit", table, "--target", "species", "--model", kind, "--folds", 0, "--out", path)
    assert "classification" in fitted.stdout
    predicted = pl.read_csv(run("predict", path, table, "--proba").stdout.encode())
    if kind == "linear":
        assert "Linear model of 14 terms" in run("show", path).stdout
    else:
        assert "named_estimators_" in refused("show", path, "--tree", 1)
        assert "LinearClassifier" in run("show", path).stdout
        assert {one["member"] for one in json.loads(run("show", path, "--json").stdout)["members"]} >= {"forest"}
    assert (predicted["prediction"].to_numpy() == penguins["species"].to_numpy()).mean() > 0.98
    assert np.allclose(predicted.drop("prediction").to_numpy().sum(axis=1), 1)
    values = run("fit", table, "--target", "body_mass_g", "--model", kind, "--folds", 0, "--json").stdout
    assert json.loads(values)["importances"] == {}
    assert "not a parameter of --model" in refused(
        "fit", table, "--target", "species", "--model", kind, "--trees", 3, code=2
    )


def test_models_are_compared(folder, tmp_path):
    words = ("compare", folder / "penguins.csv", "--target", "species", "--model", "tree", "--model", "linear")
    shown = run(*words, "--folds", 3, "--repeats", 1, "--plot", tmp_path / "plot.png").stdout
    assert "3 models, 3 folds" in shown
    assert (tmp_path / "plot.png").stat().st_size > 5000
    found = json.loads(run(*words, "--folds", 3, "--metric", "neg_log_loss", "--reference", "tree", "--json").stdout)
    assert (found["best"], found["reference"], found["folds"]) == ("linear", "tree", 6)
    assert {row["model"] for row in found["models"]} == {"tree", "linear", "baseline"}
    by_group = json.loads(run(*words, "--group", "island", "--folds", 3, "--json").stdout)
    assert by_group["folds"] == 6
    by_time = json.loads(run(*words, "--time", "year", "--folds", 2, "--json").stdout)
    assert by_time["training_rows"] < 240
    assert "no column 'yeer'" in refused(*words, "--time", "yeer")
    assert "'acc'" in refused(*words, "--metric", "acc")


def test_boosting_takes_growth_and_sampling_options(folder, claims, tmp_path):
    words = ("fit", folder / "claims.csv", "--target", "cost", "--model", "boosting", "--trees", 4, "--folds", 0)
    column = next(name for name in claims.columns if name != "cost")
    given = ("--growth", "symmetric", "--subsample", 0.7, "--sampling", "gradient", "--feature-cost", f"{column}=3")
    run(*words, *given, "--out", tmp_path / "m")
    model = spinney.load(tmp_path / "m")
    assert (model.growth, model.subsample, model.sampling) == ("symmetric", 0.7, "gradient")
    assert model.feature_costs == {column: 3.0}
    run(*words, "--sampling", "goss", "--dart", 0.2, "--hierarchical-shrinkage", 3, "--out", tmp_path / "m")
    model = spinney.load(tmp_path / "m")
    assert (model.sampling, model.dart) == ("goss", 0.2)
    assert model.regularization == spinney.Regularization(hierarchical_shrinkage=3.0)
    for option, expected in ((("--linear-leaves",), True), (("--constant-leaves",), False), ((), "auto")):
        run(*words, *option, "--out", tmp_path / "m")
        assert spinney.load(tmp_path / "m").linear_leaves == expected
    run(*words, "--parallel-trees", 2, "--out", tmp_path / "m")
    assert spinney.load(tmp_path / "m").growth == spinney.Growth(n_parallel_trees=2)
    assert "such as income=5" in run(*words, "--feature-cost", "3", code=2).stderr
    other = ("fit", folder / "claims.csv", "--target", "cost", "--model", "forest", "--sampling", "gradient")
    assert "is not a parameter of --model forest" in run(*other, code=2).stderr


@pytest.mark.parametrize("loss", sorted({traits.public_name for traits in _engine.boosting_losses()} - {"log_loss"}))
def test_every_loss_of_the_library_is_fitted_from_the_command_line(loss, folder, claims, tmp_path):
    is_class = next(traits.of_classes for traits in _engine.boosting_losses() if traits.name == loss)
    cost = pl.col("cost") + 0.5
    own_targets = {
        "beta": cost / (1 + cost), "negative_binomial": cost.floor(), "zero_inflated_poisson": cost.floor(),
    }  # fmt: skip
    table = claims.with_columns(cost=(pl.col("age") > 50).cast(int) if is_class else own_targets.get(loss, cost))
    table.write_csv(tmp_path / "t.csv")
    task = ("--task", "classification" if is_class else "regression", "--folds", 0, "--trees", 2)
    words = ("fit", tmp_path / "t.csv", "--target", "cost", "--model", "boosting", *task)
    run(*words, "--loss", loss, "--out", tmp_path / "m")
    assert spinney.load(tmp_path / "m").loss == loss


def test_several_quantiles_are_fitted_from_the_command_line(folder, tmp_path):
    words = ("fit", folder / "claims.csv", "--target", "cost", "--model", "boosting", "--folds", 0, "--trees", 3)
    run(*words, "--loss", "quantile", "--quantile", "0.1,0.5,0.9", "--out", tmp_path / "m")
    assert spinney.load(tmp_path / "m").quantile == [0.1, 0.5, 0.9]
    assert "Pass --loss quantile or expectile too" in refused(*words, "--quantile", "0.1,0.9")
    assert "in ascending order" in refused(*words, "--loss", "quantile", "--quantile", "0.9,0.1", code=2)


def test_the_order_of_classes_is_set_from_the_command_line(folder, tmp_path):
    words = ("fit", folder / "penguins.csv", "--target", "species", "--model", "boosting", "--folds", 0, "--trees", 3)
    run(*words, "--loss", "ordinal", "--class-order", "Gentoo,Adelie,Chinstrap", "--out", tmp_path / "m")
    assert spinney.load(tmp_path / "m").classes_.tolist() == ["Gentoo", "Adelie", "Chinstrap"]
    assert "the target holds text. Pass --class-order" in refused(*words, "--loss", "ordinal")
    assert "Pass --loss ordinal too" in refused(*words, "--class-order", "Gentoo,Adelie,Chinstrap")


def test_the_level_of_an_expectile_is_set_from_the_command_line(folder, tmp_path):
    words = ("fit", folder / "claims.csv", "--target", "cost", "--model", "boosting", "--folds", 0, "--trees", 3)
    run(*words, "--loss", "expectile", "--quantile", "0.9", "--out", tmp_path / "m")
    assert spinney.load(tmp_path / "m").quantile == 0.9


def test_a_regression_loss_implies_the_task(tmp_path):
    counts = pl.DataFrame({"x": np.arange(60.0), "claims": np.arange(60) % 3})
    counts.write_csv(tmp_path / "t.csv")
    words = ("fit", tmp_path / "t.csv", "--target", "claims", "--model", "boosting", "--folds", 0, "--trees", 2)
    run(*words, "--loss", "poisson", "--out", tmp_path / "m")
    assert isinstance(spinney.load(tmp_path / "m"), spinney.GradientBoostingRegressor)


def test_a_row_that_has_the_wanted_prediction_is_explained_all_the_same(folder):
    words = ("explain", folder / "species.tree", folder / "penguins.csv", "--row", 1, "--want", "Adelie")
    shown = run(*words).stdout
    assert "SHAP values" in shown
    assert "The prediction is already Adelie" in shown
    assert json.loads(run(*words, "--json").stdout)["alternatives"] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fit {table} --target kind --loss poisson --model boosting", "--loss poisson is a regression loss"),
        ("fit {table} --target kind --task regression", "--task regression needs numbers"),
        ("fit {table} --target kind --metric f1 --positive maybe", "--positive: the target has no class 'maybe'"),
        ("fit {table} --target kind --metric log_loss --model svm", "'log_loss' needs probabilities"),
        ("compare {table} --target kind --reference no", "--reference no is not among"),
        ("study {table} --target kind --group kind --out {out}", "--group names 'kind', which is the target"),
    ],
)
def test_errors_name_options_rather_than_parameters_of_python(words, expected, tmp_path):
    table = tmp_path / "table.csv"
    pl.DataFrame({"number": np.arange(60.0) % 7, "kind": ["yes", "no", "no"] * 20}).write_csv(table)
    run = CliRunner().invoke(command, words.format(table=table, out=tmp_path / "out").split())
    assert run.exit_code != 0
    assert expected in run.output.replace("\n", " ")


def test_explanations_name_the_class_or_the_event(tmp_path):
    random = np.random.default_rng(0)
    table, model = tmp_path / "table.csv", tmp_path / "m.spinney"
    columns = {
        "a": random.normal(size=120),
        "hours": random.exponential(size=120),
        "failed": random.integers(0, 2, 120),
    }
    pl.DataFrame(columns | {"failed": [0, 1, 1] * 40, "kind": ["no", "yes"] * 60}).write_csv(table)
    run("fit", table, "--target", "kind", "--folds", 0, "--max-depth", 2, "--out", model)
    assert "mean probability of class yes for each value of 'a'" in run("explain", model, table, "--column", "a").stdout
    words = ("--target", "hours", "--event", "failed", "--model", "survival", "--trees", 5, "--folds", 0)
    assert "times in 'hours'; event in 'failed'" in " ".join(run("fit", table, *words, "--out", model).stdout.split())
    assert "mean log relative hazard of the event" in run("explain", model, table, "--column", "a").stdout
    assert "Row 1: log relative hazard of the event" in run("explain", model, table, "--row", 1).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dart", "0.1", "--parallel-trees", "2"], "--dart does not support --parallel-trees."),
        (["--sampling", "gradient", "--parallel-trees", "2"], "--parallel-trees needs rows drawn uniformly."),
        (["--min-samples-leaf", "9"], "--min-samples-leaf 9 allows no split of 10 rows"),
    ],
)
def test_errors_and_warnings_name_options(tmp_path, options, message):
    table = tmp_path / "ten.csv"
    table.write_text("a,b\n" + "".join(f"{k},{k % 2}\n" for k in range(10)))
    line = ["fit", str(table), "--target", "b", "--model", "boosting", "--trees", "3", "--folds", "0", *options]
    assert message in CliRunner().invoke(command, line).output
