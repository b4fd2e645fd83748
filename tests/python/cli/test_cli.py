"""The command line, run as a user runs it: output, exit codes, and errors when an extra is missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import spinney
from click.testing import CliRunner
from spinney.cli.commands import spinney as command

PACKAGE_PARENT = str(Path(spinney.__file__).parent.parent)


def run(*arguments, blocked=()):
    """Run ``python -m spinney`` in a new interpreter in which the blocked packages cannot be imported."""
    code = (
        f"import sys; sys.path.insert(0, {PACKAGE_PARENT!r})\n"
        f"for name in {list(blocked)!r}: sys.modules[name] = None\n"
        f"sys.argv = ['spinney', *{list(map(str, arguments))!r}]\n"
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
def test_help_names_the_first_command(flag):
    result = run(flag)
    assert result.returncode == 0
    assert "spinney demo" in result.stdout


def test_help_of_the_demo_names_its_options():
    result = run("demo", "--help")
    assert result.returncode == 0
    assert {"--out", "--minutes", "--seed"} <= set(re.findall(r"--[a-z-]+", result.stdout))


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
def test_without_the_extra_one_line_names_what_to_install(package, arguments):
    result = run(*arguments, blocked=[package])
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == f"The command line needs {package}: pip install 'spinney-ml[cli]'\n"


@pytest.mark.parametrize("module", ["sklearn", "spinney.cli.commands"])
def test_another_missing_module_is_not_mistaken_for_the_extra(module):
    result = run("demo", blocked=[module])
    assert result.returncode == 1
    assert "pip install" not in result.stderr
    assert module in result.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    words = ["demo", "--model", "tree", "--model", "linear", "--repeats", "1", "--out"]
    return CliRunner().invoke(command, [*words, str(tmp_path_factory.mktemp("demo") / "out")])


@pytest.mark.slow
def test_demo_runs_and_prints_the_path_of_the_report(demo):
    assert demo.exit_code == 0, demo.stderr
    assert demo.stderr == ""
    assert "344 rows, 7 features" in demo.stdout
    assert "island, sex" in demo.stdout
    assert "19 missing values" in demo.stdout
    report = Path(re.search(r"Report: (.*) \(open it", demo.stdout)[1])
    assert report.read_text().lstrip().lower().startswith("<!doctype html")


@pytest.mark.slow
def test_demo_beats_the_baseline(demo):
    linear = float(re.search(r"^linear \*? +([\d.]+)", demo.stdout, re.M)[1])
    assert linear < 0.2 < float(re.search(r"^baseline +([\d.]+)", demo.stdout, re.M)[1])


@pytest.mark.slow
def test_demo_prints_the_tree(demo):
    _, _, printed = demo.stdout.partition("decision tree:\n")
    lines = printed.partition("\n\n")[0].splitlines()
    assert lines[0].startswith("all: 275 rows (Adelie 44%")
    leaves = [line for line in lines if "→" in line]
    assert sum(int(re.search(r"(\d+) rows?", line)[1]) for line in leaves) == 275
    assert {re.search(r"→ (\w+)", line)[1] for line in leaves} == {"Adelie", "Chinstrap", "Gentoo"}


@pytest.mark.slow
def test_demo_is_the_same_again(demo, tmp_path):
    again = run("demo", "--model", "tree", "--model", "linear", "--repeats", "1", "--out", tmp_path / "out")
    assert again.returncode == 0

    def without_times(text):
        return re.sub(r"; \d+ s$| +(fit s|[\d.e-]+)$|^(Report|Model that is kept.*): .*$", "", text, flags=re.M)

    assert without_times(again.stdout) == without_times(demo.stdout)
