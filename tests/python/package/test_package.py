"""The package as a whole: what importing it costs, what it exposes, what it ships."""

import doctest
import functools
import importlib.util
import inspect
import json
import os
import pydoc
import re
import statistics
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import check_wheel
import pytest
import spinney
from sklearn.base import BaseEstimator

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGE = Path(spinney.__file__).parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def python(code):
    """Run code in a new interpreter that imports the same spinney, and return its last line as JSON."""
    path = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
    result = subprocess.run([sys.executable, "-c", path + code], capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])


def test_import_loads_no_heavy_package():
    heavy = ["sklearn", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "click", "rich", "numpy"]
    code = f"import json, spinney; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    assert python(code) == []


def test_import_costs_under_a_fifth_of_a_second_of_processor_time_beyond_numpy():
    code = (
        "import json, time, numpy\nstart = time.process_time()\nimport spinney\n"
        "print(json.dumps(time.process_time() - start))"
    )
    assert statistics.median(python(code) for _ in range(5)) < 0.2


def test_all_is_importable_and_listed():
    for name in spinney.__all__:
        assert getattr(spinney, name) is not None
    assert dir(spinney) == sorted(spinney.__all__)  # and nothing else, such as modules that it imports


def test_all_is_in_the_api_reference():
    page = (REPOSITORY / "docs" / "api.rst").read_text(encoding="utf-8")
    shown = re.findall(r"^   (\w+)(?:\.\w+)?$|``spinney\.(\w+)``", page, re.MULTILINE)
    assert {*spinney.__all__} - {"__version__"} - {name for match in shown for name in match} == set()


def test_names_come_from_where_they_are_defined():
    assert spinney.DecisionTreeClassifier is importlib.import_module("spinney._tree.trees").DecisionTreeClassifier
    assert spinney.datasets.__name__ == "spinney.datasets"


def estimators():
    kinds = [getattr(spinney, name) for name in spinney.__all__]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseEstimator)]


@pytest.mark.parametrize("estimator", estimators(), ids=lambda kind: kind.__name__)
def test_help_shows_the_parameters_of_an_estimator(estimator):
    signature = inspect.signature(estimator)
    assert signature == estimator.__signature__  # documentation tools prefer it to that of __new__, which is *args
    assert signature.return_annotation is inspect.Signature.empty  # calling a class does not return None
    shown = signature.parameters
    assert list(shown.values()) == list(inspect.signature(estimator.__init__).parameters.values())[1:]
    assert inspect.signature(estimator.__init__) is inspect.signature(estimator.__init__)  # kept: every fit asks for it
    assert sorted(shown) == estimator._get_param_names()  # those that scikit-learn knows; it sorts them
    above_the_docstring = pydoc.plain(pydoc.render_doc(estimator)).partition("Parameters\n")[0]
    assert [name for name in shown if f"{name}: " not in above_the_docstring] == []


def test_every_lazy_name_is_public_and_every_public_name_resolves():
    lazy = {*spinney._names.MODULE_OF, *spinney._names.SUBMODULES, "__version__"}
    assert lazy == set(spinney.__all__)


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [
        ("DecisionTreeClasifier", "DecisionTreeClassifier"),
        ("decision_tree_regressor", "DecisionTreeRegressor"),
        ("extratreeregressor", "ExtraTreeRegressor"),
        ("dataset", "datasets"),
    ],
)
def test_a_misspelt_name_gets_the_nearest(misspelt, nearest):
    with pytest.raises(AttributeError, match=rf"no attribute '{misspelt}'; did you mean '{nearest}'\?") as caught:
        getattr(spinney, misspelt)
    assert caught.value.name == misspelt


def test_the_beginning_of_a_name_gets_all_that_begin_so():
    with pytest.raises(AttributeError, match=r"did you mean 'RandomForestClassifier' or 'RandomForestRegressor'\?$"):
        getattr(spinney, "RandomForest")  # noqa: B009


def test_a_strange_name_gets_no_guess():
    with pytest.raises(AttributeError, match=r"^module 'spinney' has no attribute 'zzz'$"):
        spinney.zzz  # noqa: B018


def test_version_is_that_of_the_project():
    assert spinney.__version__ == PROJECT["version"]
    assert f"## {spinney.__version__}" in (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")


def run_beside_another_spinney(folder, *arguments):
    (folder / "spinney").symlink_to(PACKAGE, target_is_directory=True)
    (folder / "spinney-0.8.1.dist-info").mkdir()
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True)


def test_another_project_in_the_same_folder_is_reported(tmp_path):
    result = run_beside_another_spinney(tmp_path, "-W", "always", "-c", "import spinney")
    assert result.returncode == 0
    assert "UserWarning: Two distributions are installed in the folder" in result.stderr
    assert "pip uninstall -y spinney spinney-ml && pip install spinney-ml" in result.stderr
    assert "spinney-0.8.1.dist-info" in result.stderr


def test_the_command_line_stops_beside_another_project(tmp_path):
    result = run_beside_another_spinney(tmp_path, "-W", "ignore", "-m", "spinney", "--version")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Two distributions are installed in the folder")


def test_every_extra_named_in_a_message_exists():
    text = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r"pip install '([\w-]+)\[(\w+)\]'", text))
    assert named
    assert {distribution for distribution, _ in named} == {PROJECT["name"]} == {"spinney-ml"}
    assert {extra for _, extra in named} <= set(PROJECT["optional-dependencies"])


def test_licence_is_bsd_and_declared():
    assert PROJECT["license"] == "BSD-3-Clause AND ISC"  # ours, and that of the report's charts
    for name in ("d3", "plot"):
        granted = (PACKAGE / f"_evaluate/report/assets/{name}.LICENSE").read_text(encoding="utf-8")
        assert "Permission to use, copy, modify, and/or distribute" in granted
    text = (REPOSITORY / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("BSD 3-Clause License")
    assert "Neither the name of the copyright holder" in re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    "name", ["py.typed", "_engine.pyi", "datasets/penguins.csv", "datasets/README.md", "__main__.py"]
)
def test_the_package_carries_its_files(name):
    assert (PACKAGE / name).is_file()


def test_the_readme_examples_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write a report
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8").replace("minutes=0.2", "minutes=0.05")
    assert "minutes=0.05" in readme
    examples = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    names = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(r"\['(yes|no)' '(yes|no)'\]", printed)
    (table,) = re.findall(r"```text\n(.*?)```", readme, flags=re.DOTALL)
    assert table in printed
    picture = REPOSITORY / "docs" / "pictures" / "loans.svg"
    assert spinney.tree_svg(names["model"]) == picture.read_text(encoding="utf-8")
    assert "Predicting species (3 classes)" in printed
    assert (tmp_path / "penguins.html").is_file()


@pytest.mark.parametrize("name", [*spinney._names.MODULE_OF, "datasets.load_penguins"])
def test_every_public_name_has_an_example_that_runs(name):
    value = functools.reduce(getattr, name.split("."), spinney)
    (example,) = [test for test in doctest.DocTestFinder(recurse=False).find(value, name) if test.examples]
    result = doctest.DocTestRunner().run(example)
    assert result.attempted > 0
    assert result.failed == 0


GOOD_WHEEL = [
    "spinney/__init__.py",
    "spinney/__init__.pyi",
    "spinney/_estimator/other_libraries.toml",
    "spinney/_estimator/parameter_texts.toml",
    "spinney/py.typed",
    "spinney/_engine.cpython-311-x86_64-linux-gnu.so",
    "spinney/_engine.pyi",
    *(f"spinney/datasets/{name}.csv" for name in ("batting", "loans", "penguins")),
    "spinney/datasets/README.md",
    *(
        f"spinney/_evaluate/report/assets/{name}"
        for name in (
            "template.html",
            "report.css",
            "page.js",
            "d3.min.js",
            "d3.LICENSE",
            "plot.umd.min.js",
            "plot.LICENSE",
        )
    ),
    "spinney_ml-0.1.0.dist-info/licenses/LICENSE",
    "spinney_ml-0.1.0.dist-info/entry_points.txt",
]


def wheel_of(tmp_path, names):
    path = tmp_path / "spinney-0.1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return path


def test_a_good_wheel_passes(tmp_path):
    assert check_wheel.defects(wheel_of(tmp_path, GOOD_WHEEL)) == []


@pytest.mark.parametrize("left_out", GOOD_WHEEL)
def test_a_wheel_that_lacks_a_file_is_caught(tmp_path, left_out):
    (defect,) = check_wheel.defects(wheel_of(tmp_path, [n for n in GOOD_WHEEL if n != left_out]))
    assert defect.startswith("0 files match")


@pytest.mark.parametrize(
    "extra",
    ["tests/test_a.py", "spinney/tests/a.py", "spinney/libx.a", "nanobind/a.cmake", "lib/libspinney.so"],
)
def test_a_wheel_with_too_much_is_caught(tmp_path, extra):
    (defect,) = check_wheel.defects(wheel_of(tmp_path, [*GOOD_WHEEL, extra]))
    assert defect == f"{extra} does not belong in a wheel."


def test_a_large_wheel_is_caught(tmp_path):
    (defect,) = check_wheel.defects(wheel_of(tmp_path, GOOD_WHEEL), max_bytes=100)
    assert "the limit is 100" in defect


def test_the_engine_is_built_for_this_interpreter():
    assert importlib.util.find_spec("spinney._engine") is not None


USED = """
import ctypes, sys
import numpy as np, spinney
X = np.random.default_rng(0).normal(size=(60, 3))
y = X[:, 0] > 0
tree = spinney.DecisionTreeRegressor(criterion=spinney.LossCriterion(lambda y, v: (y - v) ** 2)).fit(X, X[:, 0])
tree.me = tree
kept = []
forest = spinney.RandomForestClassifier(5, keep_rows=True).fit(X, y)
kept += [forest, forest.to_predictor(), forest.importances(X, y), forest.predict_set(X), forest.shap_values(X[:2])]
boosting = spinney.GradientBoostingClassifier(n_estimators=2).fit(X, y)
kept.append(boosting.staged_predict(X))
next(kept[-1])
try:
    spinney.RandomForestClassifier().fit(X, y[:3])
except ValueError as error:
    kept.append(error)
if sys.argv[1] == "leak":
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(forest.forest_.engine))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "leak"])
def test_nothing_of_the_engine_is_left_at_the_end(how):
    environment = os.environ | {"SPINNEY_LEAK_WARNINGS": "1", "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run(
        [sys.executable, "-c", USED, how], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert ("leaked" in run.stderr) == (how == "leak"), run.stderr


def test_an_estimator_has_at_most_five_ancestors_in_spinney():
    kinds = [kind for name in dir(spinney) if isinstance(kind := getattr(spinney, name), type)]
    found = {kind.__name__: [b for b in kind.__mro__[1:] if b.__module__.startswith("spinney")] for kind in kinds}
    assert len(found["RandomForestClassifier"]) == 5
    assert {name: bases for name, bases in found.items() if len(bases) > 5} == {}
