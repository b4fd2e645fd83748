"""What a report is given to draw, and that nothing out of a table can act in it."""

import json
import re
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest
from report_stand_in import TABLES, stand_in
from spinney._report import write_report
from spinney._report.encode import short, to_json
from spinney._report.page import asset, page
from spinney._report.report import gather

EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def studies():
    return {name: stand_in(*make(), target) for name, (make, target) in TABLES.items()}


@pytest.fixture(scope="module")
def gathered(studies):
    found = {}
    for name, study in studies.items():
        title, sentences, data = gather(study)
        content = {part["id"]: part["content"] for part in data["sections"]}
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


def test_reports_are_the_same_bytes_and_need_nothing_else(studies, tmp_path):
    first = write_report(studies["binary"], tmp_path / "one.html").read_bytes()
    again = write_report(studies["binary"], tmp_path / "two.html").read_bytes()
    assert first == again
    assert len(first) < 1_000_000


def test_the_answer_is_three_sentences_of_numbers(gathered):
    title, sentences, data, _ = gathered["multiclass"]
    assert title == "What tells species?"
    assert len(sentences) == 3
    assert "Adelie, Chinstrap, Gentoo" in sentences[0]
    assert "baseline" in sentences[1]
    assert "95 % interval" in sentences[1]
    assert data["tiles"][0]["is_lead"]


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


def test_a_table_of_hostile_names_is_harmless(tmp_path):
    rng = np.random.default_rng(0)
    X = {EVIL: rng.choice([EVIL, "<b>", "&amp;"], 120).astype(object), "<svg onload=alert(2)>": rng.random(120)}
    y = np.where(X[EVIL] == EVIL, "<i>yes</i>", "no")
    html = write_report(stand_in(X, y, "<script>alert(3)</script>"), tmp_path / "r.html").read_text()
    parser, plain = _read(html), _read(page({"sections": []}, "", [""] * 3))
    assert sorted(parser.tags) == sorted(plain.tags)
    assert "onerror" not in [name for name, _ in parser.attributes]
