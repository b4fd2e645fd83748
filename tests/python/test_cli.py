"""The command line, run as a user runs it: output, exit codes, and what it says when something is missing."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import spinney
from spinney.cli.demo import percent, questions, tree_lines
from spinney.datasets import load_penguins

PACKAGE_PARENT = str(Path(spinney.__file__).parent.parent)


def run(*arguments, blocked=()):
    """Run ``python -m spinney`` in a new interpreter in which the blocked packages cannot be imported."""
    code = (
        f"import sys; sys.path.insert(0, {PACKAGE_PARENT!r})\n"
        f"for name in {list(blocked)!r}: sys.modules[name] = None\n"
        f"sys.argv = ['spinney', *{list(arguments)!r}]\n"
        "from spinney.cli import main\nmain()"
    )
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", env=environment
    )


def test_version():
    result = run("--version")
    assert result.returncode == 0
    assert result.stdout.strip() == f"spinney, version {spinney.__version__}"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_says_where_to_start(flag):
    result = run(flag)
    assert result.returncode == 0
    assert "spinney demo" in result.stdout


def test_help_of_the_demo_names_its_options():
    result = run("demo", "--help")
    assert result.returncode == 0
    assert {"--max-depth", "--folds", "--seed"} <= set(re.findall(r"--[a-z-]+", result.stdout))


def test_a_misspelt_command_exits_2_and_names_the_nearest():
    result = run("dmo")
    assert result.returncode == 2
    assert "demo" in result.stderr


def test_an_option_out_of_range_exits_2():
    result = run("demo", "--max-depth", "0")
    assert result.returncode == 2
    assert "--max-depth" in result.stderr


@pytest.mark.parametrize("package", ["click", "rich", "polars"])
@pytest.mark.parametrize("arguments", [("--version",), ("demo",)])
def test_without_the_extra_one_line_says_what_to_install(package, arguments):
    result = run(*arguments, blocked=[package])
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == f"The command line needs {package}: pip install 'spinney[cli]'\n"


@pytest.mark.parametrize("module", ["sklearn", "spinney.cli.commands"])
def test_another_missing_module_is_not_mistaken_for_the_extra(module):
    result = run("demo", blocked=[module])
    assert result.returncode == 1
    assert "pip install" not in result.stderr
    assert module in result.stderr


@pytest.fixture(scope="module")
def demo():
    return run("demo")


def test_demo_runs(demo):
    assert demo.returncode == 0, demo.stderr
    assert demo.stderr == ""
    assert "344 rows, 7 features" in demo.stdout
    assert "island, sex" in demo.stdout
    assert "19 missing values" in demo.stdout


def test_demo_beats_the_majority_class(demo):
    means = [float(mean) for mean in re.findall(r"([\d.]+)% ± [\d.]+%", demo.stdout)]
    tree, majority = means
    assert 90 < tree <= 100
    assert majority == pytest.approx(44.2, abs=0.3)


def test_demo_prints_the_tree(demo):
    _, _, printed = demo.stdout.partition("as questions:\n")
    lines = printed.splitlines()
    assert lines[0] == "all: 344 rows (Adelie 44%, Chinstrap 20%, Gentoo 36%)"
    leaves = [line for line in lines if "→" in line]
    assert sum(int(re.search(r"(\d+) rows?", line)[1]) for line in leaves) == 344
    assert {re.search(r"→ (\w+)", line)[1] for line in leaves} == {"Adelie", "Chinstrap", "Gentoo"}
    assert max(len(line) - len(line.lstrip()) for line in lines) == 4 * 3


def test_demo_is_the_same_again(demo):
    again = run("demo")
    assert again.returncode == 0
    assert again.stdout == demo.stdout


def test_demo_depth_one_asks_one_question():
    result = run("demo", "--max-depth", "1", "--folds", "3")
    _, _, printed = result.stdout.partition("as questions:\n")
    assert len(printed.splitlines()) == 3


class FakeTree:
    """A stump on one feature."""

    children_left = np.array([1, -1, -1])
    children_right = np.array([2, -1, -1])
    feature = np.array([0, -1, -1])
    value = np.array([[[0.5, 0.5]], [[1.0, 0.0]], [[0.25, 0.75]]])
    n_node_samples = np.array([5, 1, 4])

    def __init__(self, threshold=0.0, left=(), missing_left=False):
        self.threshold = np.array([threshold, 0, 0])
        self.missing_go_to_left = np.array([missing_left, False, False])
        self._left = list(left)

    def left_categories(self, node):
        return self._left


def stump(kind, categories=(), **tree):
    feature = SimpleNamespace(name="size", kind=kind, categories=categories)
    return SimpleNamespace(
        tree_=FakeTree(**tree), schema_=SimpleNamespace(features=[feature]), classes_=np.array(["no", "yes"])
    )


def test_question_about_a_number():
    model = stump("number", threshold=2.5, missing_left=True)
    assert questions(model, 0, {"size"}) == ("size ≤ 2.5 (or missing)", "size > 2.5")
    assert questions(model, 0, {"colour"}) == ("size ≤ 2.5", "size > 2.5")


def test_question_about_a_large_number_keeps_its_digits():
    model = stump("number", threshold=12345678.5)
    assert questions(model, 0, ()) == ("size ≤ 12345678.5", "size > 12345678.5")


@pytest.mark.parametrize("kind", ["number", "ordered", "boolean"])
def test_question_whether_a_value_is_known(kind):
    model = stump(kind, ("s", "m") if kind == "ordered" else (), threshold=np.inf)
    assert questions(model, 0, {"size"}) == ("size is known", "size is missing")


def test_question_about_a_category():
    model = stump("category", ("l", "m", "s"), threshold=np.nan, left=[0, 2])
    assert questions(model, 0, {"size"}) == ("size is l or s", "size is m (or missing)")


def test_question_about_a_category_whose_names_all_go_left():
    model = stump("category", ("l", "m"), threshold=np.nan, left=[0, 1])
    assert questions(model, 0, {"size"}) == ("size is l or m", "size is something else (or missing)")


def test_question_about_an_ordered_category():
    model = stump("ordered", ("s", "m", "l"), threshold=0.5)
    assert questions(model, 0, {"size"}) == ("size is s", "size is m or l (or missing)")


def test_question_about_a_boolean():
    model = stump("boolean", threshold=0.5)
    assert questions(model, 0, {"size"}) == ("size is false", "size is true (or missing)")


def test_lines_of_a_stump():
    assert list(tree_lines(stump("number", threshold=1.0), {"size"})) == [
        "all: 5 rows (no 50%, yes 50%)",
        "    size ≤ 1: 1 row (no 100%) → no",
        "    size > 1 (or missing): 4 rows (no 25%, yes 75%) → yes",
    ]


def test_questions_send_rows_where_the_tree_sends_them():
    """Answer the printed questions by hand for every penguin and compare the leaf with the tree's own."""
    X, y = load_penguins(as_frame="pandas")
    model = spinney.DecisionTreeClassifier(max_depth=5).fit(X, y)
    leaves = model.apply(X)
    for row, leaf in zip(X.to_dict("records"), leaves, strict=True):
        node = 0
        while model.tree_.children_left[node] >= 0:
            left, _ = questions(model, node, X.columns)
            goes_left = answer(left, row)
            node = (model.tree_.children_left if goes_left else model.tree_.children_right)[node]
        assert node == leaf


def answer(question, row):
    """Say whether a row satisfies a printed question."""
    feature, verb, rest = question.split(" ", 2)
    value = row[feature]
    if pd.isna(value):
        return question.endswith("(or missing)")
    rest = rest.removesuffix(" (or missing)")
    if rest == "known":
        return True
    return value <= float(rest) if verb == "≤" else value in rest.split(" or ")


@pytest.mark.parametrize(
    ("share", "text"),
    [(1, "100%"), (0.997, ">99%"), (0.25, "25%"), (0.009, "<1%"), (0.012, "1%"), (0.99, "99%")],
)
def test_percent(share, text):
    assert percent(share) == text
