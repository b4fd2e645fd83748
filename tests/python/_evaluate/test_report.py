"""What a report is given to draw, and that nothing out of a table can act in it."""

import json
import re
from copy import copy
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
import spinney
from report_stand_in import TABLES, stand_in
from spinney import DecisionTreeRegressor
from spinney._evaluate.report import write_report
from spinney._evaluate.report.errors import _area_error, _distance, _one_class, _outside, _told_apart
from spinney._evaluate.report.explain import dependence_section
from spinney._evaluate.report.overview import board_section, learning_section, mean_interval, shown_ends, summary
from spinney._evaluate.report.page import asset, gather, page, short, to_json
from spinney._evaluate.report.view import View

EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def studies():
    return {name: stand_in(*make(), target) for name, (make, target) in TABLES.items()}


@pytest.fixture(scope="module")
def few_fits():
    """Learning curves of one fold: what they hold is tested, not how good they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spinney._evaluate.report.overview._FOLDS", 1)
        patch.setattr("spinney._evaluate.report.explain._REPEATS", 3)
        yield


@pytest.fixture(scope="module")
def gathered(studies, few_fits):
    found = {}
    for name, study in studies.items():
        title, sentences, data = gather(study)
        content = {part.id: part.content for part in data.sections}
        found[name] = (title, sentences, data, content)
    return found


class _Tags(HTMLParser):
    """Counts elements, and keeps the data of the page."""

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
def test_names_stay_names(name):
    text = to_json({name: [name]})
    assert not set("<>&\u2028\u2029") & set(text)
    kept = name.encode("utf-8", "replace").decode()
    assert json.loads(text) == {kept: [kept]}
    text.encode()


def test_numbers_are_short_and_what_is_not_finite_is_null():
    assert to_json([1 / 3, 2.0, np.float32(0.1), np.nan, -np.inf, np.int8(3), np.bool_(True), None]) == (
        "[0.33333,2,0.1,null,null,3,true,null]"
    )
    assert short(123456.0) == 123460
    assert to_json(np.array([[1.5, np.nan]])) == "[[1.5,null]]"


def test_the_page_has_no_other_tags_whatever_the_texts():
    plain = _read(page({"sections": []}, "title", ["sentence"]))
    evil = _read(page({"sections": [EVIL]}, EVIL, [EVIL, "{{programs}}"]))
    assert sorted([*plain.tags, "p"]) == sorted(evil.tags)
    assert not [name for name, _ in evil.attributes if name.startswith("on")]
    data = next(text for about, text in evil.scripts if about.get("id") == "report-data")
    assert json.loads(data) == {"sections": [EVIL]}


def test_the_policy_allows_the_programs_of_the_page_alone():
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


# ---- what is gathered ------------------------------------------------------------------------------------------------


def test_reports_are_the_same_bytes(studies, gathered, tmp_path):
    title, sentences, data, _ = gathered["binary"]
    again = write_report(studies["binary"], tmp_path / "report.html").read_bytes()
    assert page(data, title, sentences).encode() == again
    assert len(again) < 1_000_000


def test_the_answer_is_three_sentences_of_numbers(gathered):
    title, sentences, data, _ = gathered["multiclass"]
    assert title == "What tells species?"
    assert len(sentences) == 3
    assert "Adelie, Chinstrap, Gentoo" in sentences[0]
    assert "baseline" in sentences[1]
    assert "95 % interval" in sentences[1]
    assert data.tiles[0]["is_lead"]


@pytest.mark.parametrize("kind", TABLES)
def test_the_leader_board_shows_losses_as_losses(studies, gathered, kind):
    study, board = studies[kind], gathered[kind][3]["board"]
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
    said = study.tree.predict(study.X_test)
    wrong = np.sqrt(np.mean((said - study.y_test) ** 2)) if study.classes is None else np.mean(said != study.y_test)
    assert tree["test"][tree["chosen"]] == pytest.approx(wrong)
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
            assert sum(node["shares"]) == pytest.approx(1)
    assert all("right" not in tree["nodes"][leaf] for leaf in tree["rows"]["leaf"])


@pytest.mark.parametrize("kind", TABLES)
def test_what_columns_add_is_the_prediction(studies, gathered, kind):
    study, shap = studies[kind], gathered[kind][3]["shap"]
    said = study.models[shap["model"]].shap_values(study.X_test)
    for output in shap["outputs"]:
        part = said if said.output_names is None else said.output(output["name"])
        total = np.asarray(output["base"]) + np.asarray(output["values"]).sum(axis=1) + output["rest"]
        np.testing.assert_allclose(total, part.predictions[shap["rows"]], atol=1e-12)


def test_a_table_of_hostile_names_is_harmless(few_fits, tmp_path):
    rng = np.random.default_rng(0)
    X = {EVIL: rng.choice([EVIL, "<b>", "&amp;"], 120).astype(object), "<svg onload=alert(2)>": rng.random(120)}
    y = np.where(X[EVIL] == EVIL, "<i>yes</i>", "no")
    html = write_report(stand_in(X, y, "<script>alert(3)</script>"), tmp_path / "r.html").read_text()
    parser, plain = _read(html), _read(page({"sections": []}, "", [""] * 3))
    assert sorted(parser.tags) == sorted(plain.tags)
    assert "onerror" not in [name for name, _ in parser.attributes]


# ---- decisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [37, 3000])
def test_counts_above_thresholds_are_those_of_the_rows(n_rows):
    rng = np.random.default_rng(n_rows)
    share = rng.random(n_rows).round(2 if n_rows < 100 else 6)
    is_it = rng.random(n_rows) < share
    part = _one_class(share, is_it)
    assert len(part["threshold"]) <= 201
    assert part["hits"][-1] == is_it.sum()
    assert part["alarms"][-1] == (~is_it).sum()
    for threshold, hits, alarms in zip(part["threshold"], part["hits"], part["alarms"], strict=True):
        assert hits == (is_it & (share >= threshold)).sum()
        assert alarms == (~is_it & (share >= threshold)).sum()
    assert sum(entry["n"] for entry in part["bins"]) == n_rows
    assert all(entry["low"] <= entry["came"] <= entry["high"] for entry in part["bins"])
    assert sum(part["bars"][0]) + sum(part["bars"][1]) == n_rows


def test_the_error_of_an_area_is_delongs():
    rng = np.random.default_rng(0)
    yes, no = rng.normal(1, 1, 40).round(1), rng.normal(0, 1, 55).round(1)
    wins = (yes[:, None] > no).astype(float) + 0.5 * (yes[:, None] == no)
    twin = np.sqrt(wins.mean(axis=1).var(ddof=1) / len(yes) + wins.mean(axis=0).var(ddof=1) / len(no))
    assert _area_error(yes, no) == pytest.approx(twin)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_decisions_are_judged_on_rows_that_were_not_learned_from(studies, gathered, kind):
    study, decide = studies[kind], gathered[kind][3]["decide"]
    for part in decide["classes"]:
        assert part["test"]["n_yes"] + part["test"]["n_no"] == len(study.y_test)
        assert part["folds"]["n_yes"] == (study.y_train == study.classes[part["code"]]).sum()
    right = np.trace(decide["confusion"]["counts"])
    assert decide["surprises"]["n_wrong"] == len(study.y_test) - right
    said = study.classes[study.test_predictions[study.best].argmax(axis=1)]
    assert right == (said == study.y_test).sum()
    assert gathered[kind][3]["residuals"] is None


def test_residuals_are_those_of_the_test_rows(studies, gathered):
    study, found = studies["regression"], gathered["regression"][3]["residuals"]
    missed = study.y_test - study.test_predictions[study.best]
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(missed**2)))
    assert sum(found["bars"]) == len(missed)
    assert (np.abs(missed) <= found["within"][1]["miss"]).mean() == pytest.approx(0.8, abs=0.011)
    worst = [row["row"] for row in found["worst"]["rows"]]
    assert np.abs(missed)[worst].min() >= np.sort(np.abs(missed))[-len(worst)] - 1e-12
    assert gathered["regression"][3]["decide"] is None


# ---- doubts ----------------------------------------------------------------------------------------------------------


def test_drift_is_told_from_chance():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(3)
    learned, asked = rng.normal(size=300), rng.normal(0.6, 1, 200)
    distance, line = _distance(learned, asked, False)
    assert distance == pytest.approx(ks_2samp(learned, asked).statistic)
    assert distance > line
    assert _distance(learned, np.append(learned, np.nan), False)[0] == pytest.approx(1 / 301)
    passed = 0
    for _ in range(200):
        codes = rng.choice(4, 500, p=[0.4, 0.3, 0.2, 0.1]).astype(float)
        distance, line = _distance(codes[:300], codes[300:], True)
        passed += distance > line
    assert 2 <= passed <= 22  # one in twenty


@pytest.mark.parametrize("kind", TABLES)
def test_parts_and_odd_rows_are_of_all_rows(studies, gathered, kind):
    study, trust = studies[kind], gathered[kind][3]["trust"]
    if trust["parts"]:
        assert sum(part["n"] for part in trust["parts"]) == len(study.y_train)
        assert sum(part["n_test"] for part in trust["parts"]) == len(study.y_test)
        losses = [part["held_out"] for part in trust["parts"]]
        assert losses == sorted(losses, reverse=True)
    assert trust["odd"]["n"] == len(study.y_test)
    assert 0.3 < trust["told_apart"]["area"] < 0.7  # the parts were drawn at random


def test_values_beyond_the_training_rows_are_counted():
    X = {"number": np.arange(60.0), "word": np.array(["a", "b", "c"] * 20, dtype=object)}
    tree = DecisionTreeRegressor(unseen="other").fit(X, np.arange(60.0))
    asked = {"number": np.array([-1.0, 3.0, 99.0, np.nan]), "word": np.array(["a", "z", "b", "c"], dtype=object)}
    found = {entry["name"]: entry for entry in _outside(View(tree, X), View(tree, asked))}
    assert found["number"] == {"name": "number", "n": 3, "missing": 1, "below": 1, "above": 1}
    assert found["word"]["unseen"] == 1


@pytest.mark.parametrize("unseen", ["missing", "other"])
def test_categories_that_did_not_occur_keep_their_names(unseen):
    X = {"word": np.array(["a", "b", "c"] * 20, dtype=object)}
    tree = DecisionTreeRegressor(unseen=unseen).fit(X, np.arange(60.0))
    asked = {"word": np.array(["z", "a", None, "y", "z"], dtype=object)}
    train, test = View(tree, X), View(tree, asked)
    assert [test.text(row, 0) for row in range(5)] == ["z", "a", "missing", "y", "z"]
    assert _outside(train, test) == [{"name": "word", "n": 4, "missing": 1, "unseen": 3}]


def test_names_of_rows_do_not_tell_the_parts_apart():
    names = np.array([f"row {k:03d}" for k in np.random.default_rng(0).permutation(200)], dtype=object)
    tree = DecisionTreeRegressor(categorical_features=["name"]).fit({"name": names[:150]}, np.arange(150.0))
    told = _told_apart(View(tree, {"name": names[:150]}), View(tree, {"name": names[150:]}))
    assert abs(told["area"] - 0.5) < 4 * told["error"]


# ---- explanations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
def test_dependence_is_the_mean_of_the_rows(studies, gathered, kind):
    study, found = studies[kind], gathered[kind][3]["dependence"]
    column = found["columns"][0]
    twin = spinney.partial_dependence(
        study.models[found["model"]], study.X_test, column["name"], n_points=24, percentiles=(0.02, 0.98)
    )
    averages = np.asarray(column["average"]).T
    np.testing.assert_allclose(averages.reshape(twin.average.shape), twin.average)
    assert len(column["single"]) == len(column["average"])
    assert found["outputs"] is None or len(found["outputs"]) == len(column["average"])


@pytest.mark.parametrize("kind", TABLES)
def test_importances_have_intervals_and_name_the_answer(gathered, kind):
    _, sentences, _, content = gathered[kind]
    columns = content["importances"]["columns"]
    assert columns[0]["name"] in sentences[2]
    assert all(entry["low"] <= entry["value"] <= entry["high"] for entry in columns)
    values = [entry["value"] for entry in columns]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("kind", TABLES)
def test_profiles_and_learning_curves_know_their_rows(studies, gathered, kind):
    study, content = studies[kind], gathered[kind][3]
    assert sum(content["profile"]["target"]["counts"]) == len(study.y_train)
    assert content["profile"]["n_used"] == len(study.columns)
    assert content["learning"]["sizes"][-1] == max(len(learned) for learned, _ in study.folds)
    assert study.tree is study.models["tree"]
    assert any(curve["name"] == "tree" for curve in content["learning"]["curves"])
    assert f"spinney.study(table, {study.target!r})" in content["made"]["code"]


def test_a_table_without_a_signal_is_said_to_have_none(studies, few_fits):
    study = copy(studies["binary"])
    study.leaderboard = [
        replace(entry, mean=entry.mean - 10.0 * (not entry.is_baseline))
        for entry in sorted(study.leaderboard, key=lambda entry: not entry.is_baseline)
    ]
    sentences, _ = summary(study, ["age"])
    assert "no better than the baseline" in sentences[2]
    assert board_section(study)["reference"] == "baseline"
    sentences, _ = summary(studies["binary"], ["age"])
    assert "mostly by age" in sentences[2]


def test_no_loss_lies_below_nothing():
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
    assert learning_section(study)["sizes"][-1] == 240


@pytest.fixture
def refusing(studies, few_fits, monkeypatch):
    """Return a way to make a study whose tree refuses fewer rows than a number."""

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
    assert is_known.tolist() == [size >= 50 for size in found["sizes"]]
    assert 0 < is_known.sum() < len(is_known)


def test_learning_curves_pass_an_error_on_where_a_model_refuses_all_rows(refusing):
    with pytest.raises(ValueError, match="too few rows of a class"):
        learning_section(refusing(10**6))


def test_learning_curves_pass_errors_of_a_metric_on(studies, few_fits, monkeypatch):
    def broken(model, X, y):
        raise ValueError("the metric is broken")

    monkeypatch.setattr("spinney._evaluate.report.overview.get_scorer", lambda name: broken)
    for name in ("binary", "regression"):
        with pytest.raises(ValueError, match="the metric is broken"):
            learning_section(studies[name])


def test_columns_without_values_in_the_test_rows_are_not_asked_about(studies):
    study = copy(studies["binary"])
    n_rows = len(study.y_test)
    study.X_test = study.X_test | {"income": np.full(n_rows, np.nan)}
    found = dependence_section(study, View(study.tree, study.X_test), ["income", "age"])
    assert [column["name"] for column in found["columns"]] == ["age"]


@pytest.mark.filterwarnings("ignore:Column 'name' looks like an identifier")
def test_columns_whose_test_values_no_model_knows_are_not_asked_about():
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
