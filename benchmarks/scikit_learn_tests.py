"""scikit-learn's test files with spinney's classes in place of scikit-learn's.

    PYTHONPATH=python python benchmarks/scikit_learn_tests.py                        # every file: about an hour
    PYTHONPATH=python python benchmarks/scikit_learn_tests.py test_forest svm        # files whose path contains a word
    PYTHONPATH=python python benchmarks/scikit_learn_tests.py test_tree -k pickle    # tests chosen as by pytest
    PYTHONPATH=python python benchmarks/scikit_learn_tests.py --table FILE

`scikit_learn_tests.toml` has a table for each file that is run. A table lists the tests that are known to fail, one
line each with the reason; `test_x` stands for all parameters of the test, `*` for any characters. The program prints
the counts of each file, the failures that are not listed ("new"), and the entries that match no failing test ("stale").
The exit status is 1 if there are any of either. `--table` replaces the rows of the files that were run in a page.

The files are those of the installed scikit-learn, each run by pytest in its own process with a time limit. In that
process every public name that both libraries have is replaced in scikit-learn's public modules (`sklearn.tree`,
`sklearn.ensemble` …) before the test file is imported; `HistGradientBoosting*` becomes `GradientBoosting*` with
`max_iter` as another name of `n_estimators`. scikit-learn's own code keeps its own classes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

LISTED = Path(__file__).with_suffix(".toml")
PUBLIC_MODULES = ("tree", "ensemble", "svm", "neighbors", "linear_model")
# imported before names are replaced, so that scikit-learn's own code keeps its own classes
LOADED_FIRST = (
    *PUBLIC_MODULES, "calibration", "compose", "feature_selection", "impute", "inspection", "metrics",
    "model_selection", "multiclass", "multioutput", "pipeline", "preprocessing", "semi_supervised",
    "utils.estimator_checks", "utils._test_common.instance_generator",
)  # fmt: skip
OUTCOMES_TO = "SCIKIT_LEARN_TESTS_OUTCOMES"  # environment variable: the file to which the plugin writes
UNFINISHED = "did not finish"


class Replacement(NamedTuple):
    """The pytest plugin of a test process: replaces the classes, and writes each test's outcome to a file."""

    outcomes: Path

    def write(self, test: str, outcome: str, detail: str = "") -> None:
        """Append one line to the file of outcomes."""
        with self.outcomes.open("a") as file:
            file.write(json.dumps([test, outcome, detail]) + "\n")

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Note a test that begins: it counts as unfinished if the process ends within it."""
        self.write(test_name(nodeid), UNFINISHED)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the outcome of a test."""
        if report.when == "call" or report.outcome != "passed":
            outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
            self.write(test_name(report.nodeid), outcome, last_line(report))

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.write("collection", "failed", last_line(report))


def test_name(nodeid: str) -> str:
    return nodeid.partition("::")[2]


def last_line(report: Any) -> str:
    """Return the message of a failure in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    return " ".join(text.split())[:300]


def histogram_booster(kind: type) -> type:
    """Return a booster that also takes scikit-learn's name of the number of rounds in `HistGradientBoosting*`."""
    from spinney._estimator.parameters import estimator

    names = {"max_iter": ("n_estimators",), **getattr(kind, "_other_names", {})}
    max_iter = property(lambda model: model.n_estimators, lambda model, value: setattr(model, "n_estimators", value))
    made = type(
        f"Hist{kind.__name__}",
        (kind,),
        {"_other_names": names, "max_iter": max_iter, "__doc__": kind.__doc__, "__module__": "sklearn.ensemble"},
    )
    return estimator(made)


def replace_classes() -> None:
    """Put spinney's public names into scikit-learn's public modules."""
    import spinney

    replaced = {name: getattr(spinney, name) for name in spinney.__all__}
    replaced |= {
        f"Hist{name}": histogram_booster(replaced[name])
        for name in ("GradientBoostingClassifier", "GradientBoostingRegressor")
    }
    for name in LOADED_FIRST:
        importlib.import_module(f"sklearn.{name}")
    for name in PUBLIC_MODULES:
        module = importlib.import_module(f"sklearn.{name}")
        for public in module.__all__:
            if public in replaced:
                setattr(module, public, replaced[public])


def run_as_plugin(path: str, options: list[str]) -> int:
    """Run one test file in this process."""
    import matplotlib as mpl
    import pytest

    sys.path.remove(str(Path(__file__).parent))  # its sparse.py is not the package `sparse`, which Dask imports
    mpl.use("agg")
    replace_classes()
    plugin = Replacement(Path(os.environ[OUTCOMES_TO]))
    quiet = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(Path(path).parent)]
    return int(pytest.main([*quiet, *options, path], plugins=[plugin]))


class FileResult(NamedTuple):
    """Outcome and message of every test of a file, by the test's name."""

    tests: dict[str, tuple[str, str]]
    seconds: float

    def failing(self) -> dict[str, str]:
        """Return the message of each test that failed or did not finish."""
        return {t: detail or outcome for t, (outcome, detail) in self.tests.items() if outcome in FAILING}


FAILING = ("failed", UNFINISHED)
KINDS = ("private", "message")  # first word of a reason: private code is tested; the message has other words
PRINTED = ("passed", "failed", "new", "stale", "skipped")
COLUMNS = ("passed", "failed", *KINDS, "skipped")  # of the page with the results
ROW = re.compile(r"^\| `(.+)` \|" + r" (\d+) \|" * len(COLUMNS), re.MULTILINE)


def run_file(path: Path, limit: float, options: list[str]) -> FileResult:
    """Run one test file in its own process, at most `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes.jsonl"
        outcomes.touch()
        environment = {**os.environ, OUTCOMES_TO: str(outcomes)}
        command = [sys.executable, __file__, "--in-this-process", str(path), *options]
        started = time.perf_counter()
        try:
            done = subprocess.run(command, env=environment, timeout=limit, capture_output=True, text=True, check=False)
            output = f"{done.stdout}\n{done.stderr}"[-300:]
            is_run = done.returncode in (0, 5) or (done.returncode == 1 and outcomes.stat().st_size > 0)
            ended = "" if is_run else f"ended with {done.returncode}: {output}"
        except subprocess.TimeoutExpired:
            ended = f"time limit of {limit:.0f} s"
        lines = [json.loads(line) for line in outcomes.read_text().splitlines()]
    tests = {test: (outcome, detail) for test, outcome, detail in lines}
    if ended:
        tests["the file"] = ("failed", " ".join(ended.split()))
    return FileResult(tests, time.perf_counter() - started)


def matches(pattern: str, test: str) -> bool:
    """Return whether a listed pattern means a test: the whole name, or the name before its parameters."""
    expression = re.escape(pattern).replace(r"\*", ".*")
    return re.fullmatch(expression + r"(\[.*\])?", test) is not None


def is_stale(pattern: str, result: FileResult, are_all_run: bool) -> bool:
    """Return whether no test of a listed pattern fails; tests skipped for lack of a package prove nothing."""
    outcomes = {outcome for test, (outcome, _) in result.tests.items() if matches(pattern, test)}
    return not outcomes & set(FAILING) and (bool(outcomes - {"skipped"}) or (are_all_run and not outcomes))


def print_file(name: str, result: FileResult, listed: dict[str, str], are_all_run: bool) -> Counter[str]:
    """Print one file's counts, its new failures and its stale entries; return the counts."""
    failing = result.failing()
    reasons = {test: [reason for p, reason in listed.items() if matches(p, test)] for test in failing}
    new = {test: detail for test, detail in failing.items() if not reasons[test]}
    stale = [p for p in listed if is_stale(p, result, are_all_run)]
    counts = Counter(outcome for outcome, _ in result.tests.values())
    counts["failed"] = len(failing)
    counts["new"], counts["stale"] = len(new), len(stale)
    counts.update(kind for given in reasons.values() for kind in KINDS if given and given[0].startswith(f"{kind}:"))
    print_row(name, counts, result.seconds)
    for test, detail in new.items():
        print(f"    new: {test}\n         {detail}")
    for pattern in stale:
        print(f"    stale: {pattern}")
    return counts


def print_row(name: str, counts: Counter[str], seconds: float) -> None:
    figures = "".join(f"{counts[key]:>9}" for key in PRINTED)
    print(f"{name:<70}{figures}{seconds:>8.0f} s", flush=True)


def write_table(page: Path, counted: dict[str, Counter[str]], listed: list[str]) -> None:
    """Replace the rows of the counted files in the page's table, and its sums."""
    text = page.read_text()
    rows = {name: Counter(dict(zip(COLUMNS, map(int, figures), strict=True))) for name, *figures in ROW.findall(text)}
    rows |= counted
    rows = {f"`{name}`": rows[name] for name in listed if name in rows}
    rows["all"] = sum(rows.values(), Counter())
    lines = [["file", *COLUMNS], ["---", *("---:" for _ in COLUMNS)]]
    lines += [[name, *(str(row[key]) for key in COLUMNS)] for name, row in rows.items()]
    page.write_text(text[: text.index("| file |")] + "".join(f"| {' | '.join(line)} |\n" for line in lines))


def main(words: list[str], limit: float, options: list[str], table: Path | None) -> Counter[str]:
    import sklearn

    folder = Path(sklearn.__file__).parent
    listed: dict[str, dict[str, str]] = tomllib.loads(LISTED.read_text())
    counted: dict[str, Counter[str]] = {}
    started = time.perf_counter()
    print(f"scikit-learn {sklearn.__version__}")
    print(f"{'file':<70}" + "".join(f"{key:>9}" for key in PRINTED))
    for name, known in listed.items():
        if not words or any(word in name for word in words):
            counted[name] = print_file(name, run_file(folder / name, limit, options), known, not options)
            if table is not None:
                write_table(table, {name: counted[name]}, list(listed))
    total = sum(counted.values(), Counter())
    print_row("all", total, time.perf_counter() - started)
    return total


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in-this-process"]:
        sys.exit(run_as_plugin(sys.argv[2], sys.argv[3:]))
    parser = argparse.ArgumentParser(description="Run scikit-learn's own test files with spinney's classes.")
    parser.add_argument("words", nargs="*", help="run the files whose path contains one of these")
    parser.add_argument("-k", help="run the tests that match this expression of pytest", default="")
    parser.add_argument("--limit", type=float, default=900, help="seconds for a file (default 900)")
    parser.add_argument("--table", type=Path, metavar="FILE", help="page in which to replace the rows of these files")
    chosen = parser.parse_args()
    if chosen.table and chosen.k:
        parser.error("--table needs all tests of a file: leave out -k")
    total = main(chosen.words, chosen.limit, ["-k", chosen.k] if chosen.k else [], chosen.table)
    sys.exit(total["new"] + total["stale"] > 0)
