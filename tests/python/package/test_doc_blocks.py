"""Every block of code on a page of the documentation and in the README runs as it is written, and prints what is shown.

Examples with prompts are doctests; blocks of Python run one after the other, in one namespace for each page; commands
run in a folder with small tables. A block that cannot run has a comment with the reason above it: ``.. not run: …``.
"""

import doctest
import re
import shlex
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import spinney
from click.testing import CliRunner
from spinney.cli.commands import spinney as command

ROOT = Path(__file__).parents[3]
MADE_BY_THE_BUILD = {"_build", "_templates", "api"}
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst")), *sorted((ROOT / "docs").rglob("*.md"))]
    if MADE_BY_THE_BUILD.isdisjoint(path.relative_to(ROOT).parts)
}
SLOW = re.compile(  # hundreds of fits each, or a cluster
    "adaboost|bagging|bias_variance|cluster|comparing|contest|explaining|forests|fragility|imbalanced|neighbours|pruning|report|shap|"
    "stacking|study|tuning"
)
DIRECTIVE = re.compile(
    r"^(?:\.\. not run: (?P<reason>.+)\n\n)?\.\. code-block:: (?P<language>\w+)\n\n(?P<body>(?:(?: +.*)?\n)+)",
    re.MULTILINE,
)
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+) -->\n)?```(?P<language>\w+)\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL
)
TIME_OF_A_FIT = re.compile(r" {2,}[\d.]+$", re.MULTILINE)
SECONDS = re.compile(r"\b[\d.]+ s\b")


def blocks(page, *languages):
    """Bodies of the blocks of a page that run."""
    found = (DIRECTIVE if page.endswith(".rst") else FENCE).finditer(PAGES[page])
    return [block["body"] for block in found if block["language"] in languages and not block["reason"]]


def pages_with(*languages):
    return [page for page in PAGES if blocks(page, *languages)]


def without_times(printed):
    """Replace seconds, also those of a last column ``fit s``, and the blanks that make room for them."""
    if "fit s\n" in printed:
        printed = re.sub(" +", " ", TIME_OF_A_FIT.sub(" #", printed))
    return SECONDS.sub("# s", printed).strip()


class TimesMayDiffer(doctest.OutputChecker):
    def check_output(self, want, got, optionflags):
        return super().check_output(without_times(want), without_times(got), optionflags)


def marked(page):
    marks = [pytest.mark.slow] * bool(SLOW.fullmatch(Path(page).stem))
    if page == "docs/guide/cluster.rst":
        marks.append(pytest.mark.filterwarnings("ignore"))  # of Dask and what it stands on
    return pytest.param(page, id=page, marks=marks)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if re.search("^ *>>> ", PAGES[page], re.MULTILINE)])
def test_examples_print_what_is_shown(page):
    examples = doctest.DocTestParser().get_doctest(PAGES[page], {}, page, page, 0)
    failures = []
    assert doctest.DocTestRunner(TimesMayDiffer()).run(examples, out=failures.append).failed == 0, "".join(failures)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the tables that pages name."""
    random = np.random.default_rng(0)
    income = random.uniform(20, 80, 80).round(1)
    loans = pd.DataFrame({"income": income, "age": random.integers(20, 70, 80)})
    loans.to_csv(tmp_path / "applicants.csv", index=False)
    loans.assign(repaid=np.where(income + random.normal(0, 10, 80) > 45, "yes", "no")).to_csv(
        tmp_path / "loans.csv", index=False
    )
    claims = pd.DataFrame({"age": random.integers(20, 70, 80), "log_exposure": random.normal(size=80).round(2)})
    claims.to_csv(tmp_path / "customers.csv", index=False)
    claims.assign(claims=random.poisson(1, 80)).to_csv(tmp_path / "claims.csv", index=False)
    sales = [f"{i % 7},5;{1 + i % 28}/{1 + i % 12}/2025\n" for i in range(84)]
    (tmp_path / "sales.csv").write_text("price;day\n" + "".join(sales))
    X, y = spinney.datasets.load_penguins()
    X.to_csv(tmp_path / "more.csv", index=False)
    X.assign(species=y).to_csv(tmp_path / "penguins.csv", index=False)
    (tmp_path / "big").mkdir()
    loans.assign(target=income > 45, weight=1.0).to_parquet(tmp_path / "big" / "0.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in pages_with("python") if page not in ("README.md", "docs/index.rst")])
def test_blocks_of_python_run(page, folder):
    names = {}
    for body in blocks(page, "python"):
        exec(compile(textwrap.dedent(body), page, "exec"), names)


def test_the_first_page_has_the_example_of_the_readme():
    """It runs with those of the README, in test_package.py."""
    (body,) = blocks("docs/index.rst", "python")
    assert textwrap.dedent(body).strip() == blocks("README.md", "python")[0].strip()


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("sh", "console"))
def test_commands_run(page, folder):
    """Lines of a block ``sh`` are commands; in a block ``console`` these have a prompt, and the others are printed."""
    printed = ""
    for line in filter(str.strip, "".join(blocks(page, "sh", "console")).splitlines()):
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)
        if words[0] == "pip":  # CI installs by the README's commands
            continue
        if words[0] == "spinney":
            result = CliRunner().invoke(command, [*words[1:], *["--minutes", "0.05"] * (words[1] == "study")])
            assert result.exit_code == 0, f"{line}\n{result.output}"
            printed = without_times(result.output).splitlines()
        else:
            assert without_times(line) in printed, line


@pytest.mark.parametrize("page", [page for page in PAGES if re.search("`spinney [a-z]", PAGES[page])])
def test_commands_in_sentences_exist(page):
    for words in map(str.split, re.findall(r"`spinney ([a-z][^`]*)`", PAGES[page])):
        assert words[0] in command.commands, words
        options = {option for parameter in command.commands[words[0]].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, f"spinney {' '.join(words)}"


def test_every_block_runs_or_has_a_reason():
    for page, text in PAGES.items():
        if page.endswith(".rst"):
            unchecked = set(re.findall(r"^ *\.\. code-block:: (\w+)$", text, re.MULTILINE)) - {
                "python",
                "sh",
                "console",
            }
            assert len(DIRECTIVE.findall(text)) == text.count(".. code-block::"), page
            assert not re.search(r"^(?! *\.\.).*::$", text, re.MULTILINE), f"{page}: a literal block is not run"
        else:
            unchecked = set(re.findall(r"^```(\w+)$", text, re.MULTILINE)) - {"python", "sh"}
            unchecked -= {"text"} if page == "README.md" else set()  # test_package.py compares it
        assert not unchecked, f"{page} has blocks that no test runs: {unchecked}"
        assert "+SKIP" not in text, page
