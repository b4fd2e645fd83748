"""The data of a report, and that no text of a table can run in it."""

import json
import re
import shutil
import subprocess
from copy import copy
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import spinney
from report_stand_in import TABLES, stand_in
from scipy.stats import ks_2samp
from spinney import DecisionTreeRegressor
from spinney._evaluate.report import write_report
from spinney._evaluate.report.errors import (
    _difference,
    _drift,
    _drift_classifier,
    _one_class,
    _out_of_range,
    _roc_auc_error,
    row_losses,
)
from spinney._evaluate.report.explain import _score_changes, dependence_section, shap_section
from spinney._evaluate.report.overview import (
    data_section,
    leaderboard_section,
    learning_section,
    mean_interval,
    shown_ends,
    summary,
)
from spinney._evaluate.report.page import asset, gather, page, short, to_json
from spinney._evaluate.report.relations import associations_section
from spinney._evaluate.report.view import View, histogram, sample
from spinney._evaluate.report.what_if import what_if_section

EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def studies():
    return {name: stand_in(*make(), target) for name, (make, target) in TABLES.items()}


@pytest.fixture(scope="module")
def few_fits():
    """Shorten the fits: the contents of the sections are tested, not their quality."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spinney._evaluate.report.overview._FOLDS", 1)
        patch.setattr("spinney._evaluate.report.explain._REPEATS", 3)
        yield


@pytest.fixture(scope="module")
def gathered(studies, few_fits):
    found = {}
    for name, study in studies.items():
        title, sentences, data = gather(study)
        content = {section["id"]: section["content"] for section in data["sections"]}
        found[name] = (title, sentences, data, content)
    return found


def test_a_report_without_time_names_the_sections_that_it_leaves_out(studies):
    study = next(iter(studies.values()))
    _, sentences, data = gather(study, seconds=-1.0)
    content = {section["id"]: section["content"] for section in data["sections"]}
    titles = {section["id"]: section["title"] for section in data["sections"]}
    late = ["tree", "what_if", "importances", "dependence", "shap", "learning", "reliability"]
    assert [content[name] for name in late] == [None] * 7
    assert None not in [content[name] for name in ("leaderboard", "classification", "data", "reproduce")]
    assert gather(replace(study, tree_seconds=10.0), seconds=15.0)[2]["sections"][1]["content"] is None
    assert gather(replace(study, tree_seconds=1.0), seconds=600.0)[2]["sections"][1]["content"] is not None
    (note,) = (note for note in content["reproduce"]["notes"] if "time limit was reached" in note)
    assert all(f"“{titles[name]}”" in note for name in late)
    assert len(sentences) == 3


class _Tags(HTMLParser):
    """Collects the elements and the data of the page."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.scripts, self._inside = [], [], [], None

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        self._inside = dict(attributes) if tag == "script" else None

    def handle_data(self, text):
        if self._inside is not None:
            self.scripts.append((self._inside, text))
            self._inside = None


def _read(html):
    parser = _Tags()
    parser.feed(html)
    return parser


# ---- encoding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [EVIL, "<!--", "]]>", "a & b", "\u2028\u2029", '"\\', "{{data}}", "\ud800", "&lt;"])
def test_names_are_escaped(name):
    text = to_json({name: [name]})
    assert not set("<>&\u2028\u2029") & set(text)
    encoded = name.encode("utf-8", "replace").decode()
    assert json.loads(text) == {encoded: [encoded]}
    text.encode()


def test_numbers_are_short_and_what_is_not_finite_is_null():
    assert to_json([1 / 3, 2.0, np.float32(0.1), np.nan, -np.inf, np.int8(3), np.bool_(True), None]) == (
        "[0.33333,2,0.1,null,null,3,true,null]"
    )
    assert short(123456.0) == 123460
    assert to_json(np.array([[1.5, np.nan]])) == "[[1.5,null]]"


def test_the_page_has_no_other_tags_whatever_the_texts():
    plain = _read(page({"sections": []}, "title", ["sentence"]))
    evil = _read(page({"sections": [EVIL]}, EVIL, [EVIL, "{{scripts}}"]))
    assert sorted([*plain.tags, "p"]) == sorted(evil.tags)
    assert not [name for name, _ in evil.attributes if name.startswith("on")]
    data = next(text for about, text in evil.scripts if about.get("id") == "report-data")
    assert json.loads(data) == {"sections": [EVIL]}


def test_the_policy_allows_only_the_scripts_of_the_page():
    html = page({"sections": []}, "title", [])
    parser = _read(html)
    policy = next(value for name, value in parser.attributes if name == "content" and "script-src" in value)
    assert "default-src 'none'" in policy
    assert policy.count("'sha256-") == sum("type" not in about for about, _ in parser.scripts) == 3
    assert "unsafe-inline" not in policy.partition("script-src")[2]
    assert not re.findall(r'(?:src|href)="(?!#|data:)', html.partition("<script")[0])


def test_libraries_are_those_that_their_authors_published():
    for line in asset("README.md").splitlines():
        if found := re.match(r"\| `(\S+\.js)` .* `([0-9a-f]{64})` \|", line):
            assert sha256(asset(found[1]).encode()).hexdigest() == found[2]
    assert len(re.findall(r"[0-9a-f]{64}", asset("README.md"))) == 2
    for name in ("d3.LICENSE", "plot.LICENSE"):
        assert "Permission to use, copy, modify" in asset(name)


# ---- data of the page ------------------------------------------------------------------------------------------------


def test_reports_are_the_same_bytes(studies, gathered, tmp_path):
    title, sentences, data, _ = gathered["binary"]
    again = write_report(studies["binary"], tmp_path / "report.html").read_bytes()
    assert page(data, title, sentences).encode() == again
    assert len(again) < 1_000_000


def test_the_summary_is_three_sentences(gathered):
    title, sentences, data, _ = gathered["multiclass"]
    assert title == "Predicting species"
    assert len(sentences) == 3
    assert "Adelie, Chinstrap, Gentoo" in sentences[0]
    assert "baseline" in sentences[1]
    assert "95 % interval" in sentences[1]
    assert data["tiles"][0]["is_lead"]


@pytest.mark.parametrize("kind", TABLES)
def test_the_leaderboard_shows_losses_as_positive_numbers(studies, gathered, kind):
    study, board = studies[kind], gathered[kind][3]["leaderboard"]
    metric = study.metric
    assert board["metrics"][0]["is_loss"]
    for shown, entry in zip(board["entries"], study.leaderboard, strict=True):
        scores = shown["scores"][metric]
        assert scores["mean"] == pytest.approx(-entry.mean)
        assert scores["low"] < scores["mean"] < scores["high"] or entry.is_baseline
        assert scores["test_low"] <= scores["test"] <= scores["test_high"]
        assert shown["difference"]["mean"] >= 0


@pytest.mark.parametrize("kind", TABLES)
def test_one_number_per_node_gives_all_nested_trees(studies, gathered, kind):
    study, tree = studies[kind], gathered[kind][3]["tree"]
    n = len(tree["n_leaves"])
    chosen = tree["chosen"]
    assert tree["n_leaves"][chosen] == study.tree.tree_.n_leaves
    for position in range(n):
        cut = n - 1 - position
        nodes, n_leaves, stack = tree["nodes"], 0, [0]
        while stack:
            node = stack.pop()
            if "right" in nodes[node] and nodes[node]["first"] > cut:
                stack += [node + 1, nodes[node]["right"]]
            else:
                n_leaves += 1
        assert n_leaves == tree["n_leaves"][position]
    assert (np.diff(tree["n_leaves"]) > 0).all()
    assert (np.diff(tree["train"]) <= 1e-9).all()


@pytest.mark.parametrize("kind", TABLES)
def test_the_errors_of_the_slider_are_those_of_the_trees(studies, gathered, kind):
    study, tree = studies[kind], gathered[kind][3]["tree"]
    predicted, actual = study.tree.predict(study.X_test), study.y_test
    error = np.sqrt(np.mean((predicted - actual) ** 2)) if study.classes is None else np.mean(predicted != actual)
    assert tree["test"][tree["chosen"]] == pytest.approx(error)
    table = study.tree.cp_table_
    held_out = study.tree.oof_predictions_
    held_out = held_out[0] if isinstance(held_out, list) else held_out
    if study.classes is None:
        assert tree["cv"][tree["chosen"]] == pytest.approx(np.sqrt(np.mean((held_out - study.y_train) ** 2)))
    assert tree["cv"][0] > tree["cv"][tree["chosen"]]
    assert len(tree["cv"]) == (table.n_leaves <= 150).sum() or len(tree["cv"]) <= 61


@pytest.mark.parametrize("kind", TABLES)
def test_rows_beside_a_node_lie_in_it(studies, gathered, kind):
    tree = gathered[kind][3]["tree"]
    root = tree["nodes"][0]
    assert root["n"] == len(studies[kind].y_train)
    assert root["n_test"] == len(studies[kind].y_test)
    for i, node in enumerate(tree["nodes"]):
        if "right" in node:
            assert node["n"] == tree["nodes"][i + 1]["n"] + tree["nodes"][node["right"]]["n"]
            assert node["n_test"] == tree["nodes"][i + 1]["n_test"] + tree["nodes"][node["right"]]["n_test"]
        if "bars" in node:
            assert sum(node["bars"]) == node["n"]
        else:
            assert sum(node["proba"]) == pytest.approx(1)
    assert all("right" not in tree["nodes"][leaf] for leaf in tree["rows"]["leaf"])


def _positions(study, rows):
    """Return the positions of test rows by their names."""
    return np.searchsorted(study.test_rows.values, [int(row) for row in rows])


@pytest.mark.parametrize("kind", TABLES)
def test_shap_values_sum_to_the_prediction(studies, gathered, kind):
    study, shap = studies[kind], gathered[kind][3]["shap"]
    explained = study.models[shap["model"]].shap_values(study.X_test)
    for output in shap["outputs"]:
        expected = explained if explained.output_names is None else explained.output(output["name"])
        total = np.asarray(output["base"]) + np.asarray(output["values"]).sum(axis=1) + output["rest"]
        np.testing.assert_allclose(total, expected.predictions[_positions(study, shap["rows"])], atol=1e-12)


def test_a_table_of_hostile_names_is_harmless(few_fits, tmp_path):
    rng = np.random.default_rng(0)
    X = {EVIL: rng.choice([EVIL, "<b>", "&amp;"], 120).astype(object), "<svg onload=alert(2)>": rng.random(120)}
    y = np.where(X[EVIL] == EVIL, "<i>yes</i>", "no")
    html = write_report(stand_in(X, y, "<script>alert(3)</script>"), tmp_path / "r.html").read_text()
    parser, plain = _read(html), _read(page({"sections": []}, "", [""] * 3))
    assert sorted(parser.tags) == sorted(plain.tags)
    assert "onerror" not in [name for name, _ in parser.attributes]


# ---- classification --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [37, 3000])
def test_counts_above_thresholds_are_those_of_the_rows(n_rows):
    rng = np.random.default_rng(n_rows)
    proba = rng.random(n_rows).round(2 if n_rows < 100 else 6)
    is_positive = rng.random(n_rows) < proba
    part = _one_class(proba, is_positive)
    assert len(part["threshold"]) <= 201
    assert part["true_positives"][-1] == is_positive.sum()
    assert part["false_positives"][-1] == (~is_positive).sum()
    counts = zip(part["threshold"], part["true_positives"], part["false_positives"], strict=True)
    for threshold, true_positives, false_positives in counts:
        assert true_positives == (is_positive & (proba >= threshold)).sum()
        assert false_positives == (~is_positive & (proba >= threshold)).sum()
    assert sum(entry["n"] for entry in part["bins"]) == n_rows
    assert all(entry["low"] <= entry["observed"] <= entry["high"] for entry in part["bins"])
    assert sum(part["bars"][0]) + sum(part["bars"][1]) == n_rows


def test_the_standard_error_of_the_roc_auc_is_delongs():
    rng = np.random.default_rng(0)
    positive, negative = rng.normal(1, 1, 40).round(1), rng.normal(0, 1, 55).round(1)
    wins = (positive[:, None] > negative).astype(float) + 0.5 * (positive[:, None] == negative)
    expected = np.sqrt(wins.mean(axis=1).var(ddof=1) / len(positive) + wins.mean(axis=0).var(ddof=1) / len(negative))
    assert _roc_auc_error(positive, negative) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classification_is_evaluated_on_test_and_held_out_rows(studies, gathered, kind):
    study, section = studies[kind], gathered[kind][3]["classification"]
    for part in section["classes"]:
        assert part["test"]["n_positive"] + part["test"]["n_negative"] == len(study.y_test)
        assert part["folds"]["n_positive"] == (study.y_train == study.classes[part["code"]]).sum()
    n_correct = np.trace(section["confusion"]["counts"])
    assert section["misclassified"]["n_rows"] == len(study.y_test) - n_correct
    predicted = study.classes[study.test_predictions[study.best].argmax(axis=1)]
    assert n_correct == (predicted == study.y_test).sum()
    for k, label in enumerate(study.classes):
        assert section["confusion"]["n_actual"][k] == (study.y_test == label).sum()
        assert section["confusion"]["n_predicted"][k] == (predicted == label).sum()
    assert gathered[kind][3]["residuals"] is None


def test_residuals_are_those_of_the_test_rows(studies, gathered):
    study, found = studies["regression"], gathered["regression"][3]["residuals"]
    residual = study.y_test - study.test_predictions[study.best]
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert sum(found["bars"]) == len(residual)
    assert (np.abs(residual) <= found["quantiles"][1]["error"]).mean() == pytest.approx(0.8, abs=0.011)
    worst = _positions(study, [row["row"] for row in found["worst"]["rows"]])
    assert np.abs(residual)[worst].min() >= np.sort(np.abs(residual))[-len(worst)] - 1e-12
    assert gathered["regression"][3]["classification"] is None


# ---- outliers and drift ----------------------------------------------------------------------------------------------


def test_drift_is_shown_where_it_is_significant():
    rng = np.random.default_rng(3)

    def both(n_train, n_test, shift):
        X = {f"x{k}": rng.normal(size=n_train + n_test) for k in range(6)}
        X["c"] = rng.choice(["a", "b", "c", "rare"], n_train + n_test, p=[0.5, 0.3, 0.19, 0.01])
        X["moved"] = X["x0"] + shift * (np.arange(n_train + n_test) >= n_train)
        X["kind"] = np.where(
            rng.random(n_train + n_test) < shift * (np.arange(n_train + n_test) >= n_train), "b", X["c"]
        )
        tree = spinney.DecisionTreeRegressor(max_depth=2).fit(X, X["x0"])
        parts = [slice(0, n_train), slice(n_train, None)]
        return [View(tree, {name: values[part] for name, values in X.items()}) for part in parts]

    found = _drift(*both(300, 200, 0.6))
    assert {one["name"] for one in found["columns"]} == {"moved", "kind"}
    assert found["n_columns"] == 9
    train, test = both(300, 200, 0.6)
    distance, p_value = _difference(train, test, 7)
    wanted = ks_2samp(np.asarray(train.numbers[7]), np.asarray(test.numbers[7]), method="asymp")
    assert (distance, p_value) == (pytest.approx(wanted.statistic), pytest.approx(wanted.pvalue))
    n_false = sum(bool(_drift(*both(120, 60, 0.0))["columns"]) for _ in range(100))
    assert n_false <= 11  # 5 % of the studies, with Holm's correction


def test_importances_have_intervals_over_rows(studies):
    """Against the standard deviation of the importance over independent tables."""
    rng = np.random.default_rng(8)
    X = {"a": rng.normal(size=4000), "b": rng.normal(size=4000)}
    y = 2 * X["a"] + rng.normal(size=4000)
    study = stand_in({name: values[:200] for name, values in X.items()}, y[:200], "y", n_trees=3, n_folds=2)
    name, found = study.best, []
    for k in range(19):
        rows = slice(200 + 200 * k, 400 + 200 * k)
        study.X_test, study.y_test = {name: values[rows] for name, values in X.items()}, y[rows]
        found.append(_score_changes(study, name, View(study.tree, study.X_test), np.arange(200)))
    values, errors = (np.array(each)[:, 0] for each in zip(*found, strict=True))
    assert errors.mean() == pytest.approx(values.std(ddof=1), rel=0.5)


@pytest.mark.parametrize("kind", TABLES)
def test_segments_and_outliers_cover_all_rows(studies, gathered, kind):
    study, section = studies[kind], gathered[kind][3]["reliability"]
    if section["segments"]:
        assert sum(one["n"] for one in section["segments"]) == len(study.y_train)
        assert sum(one["n_test"] for one in section["segments"]) == len(study.y_test)
        losses = [one["held_out"] for one in section["segments"]]
        assert losses == sorted(losses, reverse=True)
    assert section["outliers"]["n"] == len(study.y_test)
    assert 0.3 < section["drift_classifier"]["roc_auc"] < 0.7  # the test set was drawn at random


def test_values_outside_the_training_range_are_counted():
    X = {"number": np.arange(60.0), "word": np.array(["a", "b", "c"] * 20, dtype=object)}
    tree = DecisionTreeRegressor(unseen="other").fit(X, np.arange(60.0))
    test = {"number": np.array([-1.0, 3.0, 99.0, np.nan]), "word": np.array(["a", "z", "b", "c"], dtype=object)}
    found = {entry["name"]: entry for entry in _out_of_range(View(tree, X), View(tree, test))}
    assert found["number"] == {"name": "number", "n": 3, "missing": 1, "below": 1, "above": 1}
    assert found["word"]["unseen"] == 1


@pytest.mark.parametrize("unseen", ["missing", "other"])
def test_unseen_categories_keep_their_names(unseen):
    X = {"word": np.array(["a", "b", "c"] * 20, dtype=object)}
    tree = DecisionTreeRegressor(unseen=unseen).fit(X, np.arange(60.0))
    rows = {"word": np.array(["z", "a", None, "y", "z"], dtype=object)}
    train, test = View(tree, X), View(tree, rows)
    assert [test.text(row, 0) for row in range(5)] == ["z", "a", "missing", "y", "z"]
    assert _out_of_range(train, test) == [{"name": "word", "n": 4, "missing": 1, "unseen": 3}]


def test_identifiers_do_not_look_like_drift():
    names = np.array([f"row {k:03d}" for k in np.random.default_rng(0).permutation(200)], dtype=object)
    tree = DecisionTreeRegressor(categorical_features=["name"]).fit({"name": names[:150]}, np.arange(150.0))
    drift = _drift_classifier(View(tree, {"name": names[:150]}), View(tree, {"name": names[150:]}))
    assert abs(drift["roc_auc"] - 0.5) < 4 * drift["error"]


# ---- explanations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_partial_dependence_is_the_mean_over_rows(studies, gathered, kind):
    study, found = studies[kind], gathered[kind][3]["dependence"]
    column = found["columns"][0]
    expected = spinney.partial_dependence(
        study.models[found["model"]], study.X_test, column["name"], n_points=24, percentiles=(0.02, 0.98)
    )
    averages = np.asarray(column["average"]).T
    np.testing.assert_allclose(averages.reshape(expected.average.shape), expected.average)
    assert len(column["single"]) == len(column["average"])
    assert found["outputs"] is None or len(found["outputs"]) == len(column["average"])


@pytest.mark.parametrize("kind", TABLES)
def test_importances_have_intervals_and_appear_in_the_summary(gathered, kind):
    _, sentences, _, content = gathered[kind]
    columns = content["importances"]["columns"]
    assert columns[0]["name"] in sentences[2]
    assert all(entry["low"] <= entry["value"] <= entry["high"] for entry in columns)
    values = [entry["value"] for entry in columns]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("kind", TABLES)
def test_profiles_and_learning_curves_cover_the_training_rows(studies, gathered, kind):
    study, content = studies[kind], gathered[kind][3]
    assert sum(content["data"]["target"]["counts"]) == len(study.y_train)
    assert content["data"]["n_used"] == len(study.columns)
    assert content["learning"]["n_rows"] == max(len(train) for train, _ in study.folds)
    assert all(3 <= len(curve["sizes"]) <= 5 for curve in content["learning"]["curves"])
    assert study.tree is study.models["tree"]
    assert any(curve["name"] == "tree" for curve in content["learning"]["curves"])
    assert f"spinney.study(table, {study.target!r})" in content["reproduce"]["code"]


def test_a_table_without_signal_is_reported(studies, few_fits):
    study = copy(studies["binary"])
    study.leaderboard = [
        replace(entry, mean=entry.mean - 10.0 * (not entry.is_baseline))
        for entry in sorted(study.leaderboard, key=lambda entry: not entry.is_baseline)
    ]
    sentences, _ = summary(study, ["age"])
    assert "no better than the baseline" in sentences[2]
    assert leaderboard_section(study)["reference"] == "baseline"
    sentences, _ = summary(studies["binary"], ["age"])
    assert "Most important columns: age;" in sentences[2]


def test_intervals_of_losses_start_at_zero():
    assert shown_ends("neg_log_loss", -0.2, 0.1) == (0.0, 0.2)
    assert shown_ends("r2", -0.2, 0.1) == (-0.2, 0.1)
    assert mean_interval(np.array([0.0, 0.1, 0.02]), 0.5, True)[0] == 0
    assert mean_interval(np.array([0.0, 0.1, 0.02]), 0.5, False)[0] < 0
    assert np.isnan(mean_interval(np.array([0.1]), 0.5, True)).all()


def test_the_baseline_has_no_learning_curve(studies):
    study = copy(studies["binary"])
    study.leaderboard = [entry for entry in study.leaderboard if entry.is_baseline]
    assert learning_section(study) is None


def test_learning_curves_take_the_folds_with_most_rows(studies, few_fits):
    study = copy(studies["regression"])
    rows = np.arange(len(study.y_train))
    study.folds = [(rows[:30], rows[30:60]), (rows[:60], rows[60:90]), (rows[:240], rows[240:])]
    assert learning_section(study)["curves"][0]["sizes"][-1] == 240


@pytest.fixture
def refusing(studies, few_fits, monkeypatch):
    """Return a function that makes a study whose tree raises an error for fewer rows than a number."""

    def made(n_rows):
        study = copy(studies["binary"])
        kind = type(study.tree)
        fit = kind.fit

        def picky(self, X, y, **given):
            if len(y) < n_rows:
                raise ValueError("y holds too few rows of a class")
            return fit(self, X, y, **given)

        monkeypatch.setattr(kind, "fit", picky)
        return study

    return made


def test_learning_curves_leave_out_sizes_that_a_model_refuses(refusing):
    study = refusing(50)
    found = learning_section(study)
    [curve] = [curve for curve in found["curves"] if study.models[curve["name"]] is study.tree]
    is_known = ~np.isnan(curve["mean"])
    assert is_known.tolist() == [size >= 50 for size in curve["sizes"]]
    assert 0 < is_known.sum() < len(is_known)


def test_learning_curves_pass_an_error_on_where_a_model_refuses_all_rows(refusing):
    with pytest.raises(ValueError, match="too few rows of a class"):
        learning_section(refusing(10**6))


def test_learning_curves_pass_errors_of_a_metric_on(studies, few_fits, monkeypatch):
    def broken(model, X, y):
        raise ValueError("the metric is broken")

    for name in ("binary", "regression"):
        monkeypatch.setitem(studies[name].scorers.metrics, studies[name].metric, broken)
        with pytest.raises(ValueError, match="the metric is broken"):
            learning_section(studies[name])


def test_columns_missing_in_all_test_rows_have_no_partial_dependence(studies):
    study = copy(studies["binary"])
    n_rows = len(study.y_test)
    study.X_test = study.X_test | {"income": np.full(n_rows, np.nan)}
    found = dependence_section(study, View(study.tree, study.X_test), ["income", "age"])
    assert [column["name"] for column in found["columns"]] == ["age"]


@pytest.mark.filterwarnings("ignore:Column 'name' looks like an identifier")
def test_columns_with_only_unseen_categories_have_no_partial_dependence():
    random = np.random.default_rng(0)
    x = random.standard_normal(120)
    table = {"x": x, "name": np.array([f"row {k}" for k in range(120)])}
    study = spinney.study(table, x + random.standard_normal(120), keep="name", models=["tree"], repeats=1)
    found = dependence_section(study, View(study.tree, study.X_test), ["name", "x"])
    assert [column["name"] for column in found["columns"]] == ["x"]


def test_learning_curves_of_a_stack_are_the_same_every_time():
    random = np.random.default_rng(0)
    x = random.standard_normal((120, 3))
    y = np.abs(x[:, 0]) + x[:, 1] + random.standard_normal(120)
    study = spinney.study(x, y, models=["tree", "linear", "knn"], repeats=1)
    study.leaderboard = [study["stack"]]
    first, second = learning_section(study), learning_section(study)
    assert [curve["name"] for curve in first["curves"]] == ["stack"]
    assert to_json(first) == to_json(second)


# ---- what a chart shows --------------------------------------------------------------------------------------------


def test_few_whole_numbers_have_a_bar_each():
    counts, edges, values = histogram(np.array([0.0, 1.0, 1.0, 3.0]), 24)
    assert values.tolist() == [0, 1, 2, 3]
    assert counts.tolist() == [1, 2, 0, 1]
    assert edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5]
    for spread in (np.array([0.0, 0.5, 1.0]), np.array([0.0, 24.0])):
        counts, edges, values = histogram(spread, 24)
        assert values is None
        assert (len(counts), edges[0], edges[-1]) == (24, spread[0], spread[-1])


def test_columns_of_zero_and_one_have_bars_at_zero_and_one():
    rng = np.random.default_rng(0)
    X = {"rare": (np.arange(400) % 390 == 7).astype(int), "is_new": rng.random(400) < 0.3, "size": rng.normal(size=400)}
    study = stand_in(X, (X["size"] > 0).astype(str), "large", n_trees=3, n_folds=2)
    rare, is_new, size = data_section(study, View(study.tree, study.X_train))["columns"]
    n_ones = int(np.sum(study.X_train["rare"]))
    assert rare["bars"]["values"] == ["0", "1"]
    assert rare["bars"]["counts"].tolist() == [300 - n_ones, n_ones]
    assert is_new["bars"]["values"] == ["false", "true"]
    assert "ends" in size["bars"]


def test_categories_of_shap_values_have_names_instead_of_a_scale(studies):
    study = studies["binary"]
    shap = shap_section(study, View(study.tree, study.X_test))
    j = shap["columns"].index("home")
    assert shap["categories"][j] == ["own", "rent", "with parents"]
    assert [names is None for names in shap["categories"]].count(False) == 1
    for cell, code in zip((row[j] for row in shap["cells"]), shap["colour"][j], strict=True):
        assert shap["categories"][j][code] == cell
    k = shap["columns"].index("income")
    is_missing = [row[k] == "missing" for row in shap["cells"]]
    assert any(is_missing)
    assert [level is None for level in shap["colour"][k]] == is_missing


def test_shap_values_of_scores_come_with_probabilities(studies):
    study = copy(studies["binary"])
    test = View(study.tree, study.X_test, study.test_rows)
    for name, response in (("gradient boosting", "probability"), ("random forest", None)):
        study.best = name
        shap = shap_section(study, test)
        assert (shap["model"], shap["response"]) == (name, response)
        [output] = shap["outputs"]
        if response:
            proba = study.models[name].predict_proba(study.X_test)[:, 1]
            rows = _positions(study, shap["rows"])
            np.testing.assert_allclose(output["response"][:, 1], proba[rows], rtol=0, atol=1e-9)
    assert output["response"] is None


class _Opaque:
    """A model without SHAP values."""

    def __init__(self, model):
        self.predict, self.predict_proba, self.classes_ = model.predict, model.predict_proba, model.classes_


def test_a_model_without_shap_values_is_explained_by_samples(studies):
    study = copy(studies["binary"])
    study.models = study.models | {study.best: _Opaque(study.models[study.best])}
    test = View(study.tree, study.X_test, study.test_rows)
    shap = shap_section(study, test)
    assert (shap["model"], shap["is_best"], shap["of"]) == (study.best, True, "probability of the class")
    [output] = shap["outputs"]
    rows = _positions(study, shap["rows"])
    proba = study.models[study.best].predict_proba(test.take(rows))[:, 1]
    found = output["base"] + output["values"].sum(axis=1) + output["rest"]
    np.testing.assert_allclose(found, proba, atol=1e-9)


def test_shap_values_of_a_model_that_has_not_seen_a_class():
    rng = np.random.default_rng(2)
    X, y = {"a": rng.normal(size=120), "b": rng.normal(size=120)}, np.array(["x", "y", "z"])[np.arange(120) % 3]
    study = stand_in(X, y, "y", n_trees=3, n_folds=2)
    is_known = study.y_train != "z"
    few = {name: values[is_known] for name, values in study.X_train.items()}
    study.models[study.best] = spinney.RandomForestClassifier(3, random_state=0).fit(few, study.y_train[is_known])
    shap = shap_section(study, View(study.tree, study.X_test))
    assert [output["name"] for output in shap["outputs"]] == ["y"]


def test_a_model_that_is_not_ahead_is_called_kept(studies):
    study = copy(studies["binary"])
    first, second = (entry.name for entry in study.leaderboard[:2])
    assert leaderboard_section(study)["word"] == "best"
    study.best, study.why = second, f"{second} is kept: {first} scores better, but {second} is simpler."
    section = leaderboard_section(study)
    assert section["word"] == "kept"
    assert section["note"].endswith(study.why)
    sentences, tiles = summary(study, ["age"])
    assert sentences[1].startswith(f"The kept model is {second}")
    assert tiles[0]["what"] == f"kept model: {second}"


def test_the_pictures_of_the_guide_show_the_words_of_the_report():
    script = Path(__file__).parents[3] / "docs" / "report_picture.py"
    source = spec_from_file_location("report_picture", script)
    made = module_from_spec(source)
    source.loader.exec_module(made)
    words = made.report_words()
    assert {'"Partial dependence"', '"Confusion matrix, test set"'} <= set(words)
    saved = made.WORDS.read_text(encoding="utf-8").splitlines()
    assert words == saved, "Draw the pictures again: python docs/report_picture.py"


_EVALUATED = """
const drawers = {};
%s
const section = JSON.parse(require("fs").readFileSync(0, "utf8")), model = parsed_model(section);
const rows = section.values.map(parsed_row), background = section.background.map(parsed_row);
const columns = section.inputs.map((input) => input.column);
console.log(JSON.stringify({ rows: rows.map((row) => predicted(model, row)), sums: rows.slice(0, 3).map((row) => {
  const { base, values } = sampled_shapley(model, row, background, columns, 0);
  return base + values.reduce((a, b) => a + b, 0);
}) }));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js here")
@pytest.mark.parametrize("model", ["gradient boosting", "random forest", "tree"])
@pytest.mark.parametrize("kind", TABLES)
def test_the_page_evaluates_models_as_predict_does(studies, kind, model):
    study = copy(studies[kind])
    study.best = model
    test = View(study.tree, study.X_test, study.test_rows)
    section = what_if_section(study, test)
    assert section["model"] == model
    ran = subprocess.run(
        ["node", "-e", _EVALUATED % asset("what_if.js")], input=to_json(section), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    X = test.take(sample(test.n_rows, 40))
    fitted = study.models[model]
    expected = fitted.predict(X)[:, np.newaxis] if study.classes is None else fitted.predict_proba(X)
    np.testing.assert_allclose(found["rows"], expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["sums"], expected[:3, 0], rtol=1e-4, atol=1e-4)


def test_a_model_that_the_page_cannot_evaluate_gives_way_to_the_tree(studies, monkeypatch):
    study = copy(studies["binary"])
    study.best, study.models = "svm", study.models | {"svm": spinney.SVC(probability=True)}
    test = View(study.tree, study.X_test, study.test_rows)
    section = what_if_section(study, test)
    assert (section["model"], section["is_best"], section["best"]) == ("tree", False, "svm")
    monkeypatch.setattr("spinney._evaluate.report.what_if._MOST_NODES", 1)
    study.best = "tree"
    monkeypatch.setattr("spinney._evaluate.report.what_if.plan_of", lambda *_: pytest.fail("takes minutes"))
    assert what_if_section(study, test) is None


def test_associations_of_columns_with_the_target_and_each_other():
    random = np.random.default_rng(0)
    n = 4000
    group, noise = random.integers(0, 4, n), random.normal(size=n)
    x = random.normal(size=n)
    X = {
        "group": np.array(["a", "b", "c", "d"])[group],
        "noise": np.where(noise > 1.5, np.nan, noise),
        "x": x,
        "cube": x**3,
        "again": x.copy(),
        "coarse": np.array(["low", "high"])[(x > 0).astype(int)],
    }
    y = np.array([0.0, 1.0, 1.0, 6.0])[group] + random.normal(size=n)
    y[1], X = y[0], {name: np.concatenate([[column[0], *column[:1]], column[2:]]) for name, column in X.items()}
    study = stand_in(X, y, "y", n_trees=2)
    section = associations_section(study, View(study.tree, study.X_train, study.train_rows))
    strength = {one["name"]: one["strength"] for one in section["columns"]}
    levels = np.array([0.0, 1.0, 1.0, 6.0])
    assert strength["group"] == pytest.approx(levels.var() / (levels.var() + 1), abs=0.02)
    assert strength["noise"] < 0.01
    assert max(strength, key=strength.get) == "group"
    bins = {one["name"]: one for one in section["columns"][0]["bins"]}
    assert bins["d"]["mean"][0] == pytest.approx(6.0, abs=0.2)
    assert sum(one["n"] for one in bins.values()) == section["n_rows"] == len(study.y_train)
    noise_bins = next(one["bins"] for one in section["columns"] if one["name"] == "noise")
    assert noise_bins[-1]["name"] == "missing"
    pairs = {one["name"]: one for one in section["pairs"]}
    assert {frozenset(name.split(" × ")): round(one["value"], 3) for name, one in pairs.items()}[
        frozenset(("x", "cube"))
    ] == 1.0
    assert any(one["measure"] == "Cramér" and "coarse" in name for name, one in pairs.items())
    assert not any("noise" in name or "group" in name for name in pairs)
    assert section["equal"] == [["x", "again"]]
    assert section["n_duplicates"] <= 1


def test_two_models_are_compared_row_by_row(gathered, studies):
    for name, study in studies.items():
        content = gathered[name][3]["comparison"]
        assert content["model"] == study.best
        losses = [row_losses(study, study.test_predictions[one], study.y_test) for one in study.test_predictions]
        of = dict(zip(study.test_predictions, losses, strict=True))
        for other in content["others"]:
            gaps = of[other["name"]] - of[study.best]
            assert (other["n_better"], other["n_worse"]) == ((gaps > 0).sum(), (gaps < 0).sum())
            assert other["mean"] == pytest.approx(gaps.mean())
            assert other["low"] < other["mean"] < other["high"]
            assert other["listed"]["rows"][0]["row"] == study.test_rows.texts(np.abs(gaps).argsort()[-1:])[0]
        assert "baseline" not in [other["name"] for other in content["others"]]
