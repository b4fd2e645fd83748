"""Scripts of users pass mypy and pyright in strict mode, and wrong options do not."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import spinney
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

pytest.importorskip("mypy")  # of the extra `dev`, which CI installs before its slow tests
pytest.importorskip("pyright")
pytestmark = pytest.mark.slow

SOURCE = Path(spinney.__file__).parents[1]
SCRIPT = """\
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import spinney
from spinney import GradientBoostingClassifier

X, y = spinney.datasets.load_penguins()
model = GradientBoostingClassifier(n_estimators=50, growth="depth").fit(X, y)
second = model.predict_proba(X)[:, 1]
print(model.classes_[0], second.mean(), model.shap_values(X).values.shape)
print(spinney.load("model.spinney").predict(X)[0])
print(spinney.load_predictor("model.spinney").predict(X)[0])
study = spinney.study(X, y, minutes=1)
print(study.model.predict(X)[:3], study.leaderboard[0].name)
forest = spinney.RandomForestClassifier(100, random_state=0, oob_score=True, class_weight="balanced").fit(X, y)
print(forest.feature_importances_[0], forest.predict_proba(X)[:, 0].max(), forest.oob_score_)
print(forest.estimators_[0].get_depth(), forest[0].tree_.node_count, forest.get_params())
print(model.classes_.tolist(), forest.classes_.tolist(), model.n_iter_ + 1, forest.n_features_in_, model.score(X, y))
tree = spinney.DecisionTreeRegressor(max_depth=3).fit(np.zeros((3, 2)), [1.0, 2.0, 3.0])
print(tree.predict(np.zeros((1, 2)))[0], spinney.export_text(tree))
result = spinney.compare({"forest": forest, "boosting": model}, X, y, cv=3)
folds = np.arange(len(y)) % 4
class Halves:
    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[list[int], list[int]]]:
        yield list(range(0, len(X), 2)), list(range(1, len(X), 2))


spinney.compare(["tree"], X, y, cv=Halves())
spinney.compare(["tree"], X, y, cv=Halves().split(X))
spinney.compare(["tree"], X, y, cv=[(np.flatnonzero(folds > 0), np.flatnonzero(folds == 0))])
spinney.compare(["tree"], X, y, cv=folds)
spinney.StackingClassifier(["tree"], cv=folds.tolist())
spinney.KNeighborsClassifier("cv", cv=pd.Series(folds))
svc = spinney.SVC(kernel="rbf").fit(X, y)
print(result.best_, svc.predict(X)[0], svc.score(X, y), svc.classes_[0], spinney.SVR().fit(X, y).score(X, y))
"""
WRONG = (
    'GradientBoostingClassifier(n_estimators="fifty")',
    'GradientBoostingClassifier(loss="logloss")',
    'GradientBoostingRegressor(growth="depthwise")',
    'RandomForestClassifier(criterion="ginni")',
    'RandomForestRegressor(max_features="square root")',
    'DecisionTreeClassifier(splitter="worst")',
    'SVC(kernel="rfb")',
    'KNeighborsClassifier(n_neighbors="many")',
    'KNeighborsRegressor(weights="distances")',
    'RandomForestClassifier(class_weight="balance")',
    'GradientBoostingClassifier(class_weight="balance")',
    'compare(["tree", "forest"], X, y, cv="five")',
    'DecisionTreeClassifier(prune="cv", cv="ten")',
    'StackingClassifier(["tree", "linear"], cv="prefitted")',
    'KNeighborsClassifier("cv", cv="leave one out")',
)


def constructors():
    """Calls of every estimator: with its defaults passed by name, and with every string that it accepts."""
    kinds = {name: getattr(spinney, name) for name in spinney.__all__}
    for name, kind in kinds.items():
        if isinstance(kind, type) and issubclass(kind, BaseEstimator) and not name.startswith("Imported"):
            parameters = inspect.signature(kind).parameters
            literals = [one for one in parameters.values() if isinstance(one.default, (int, float, str, type(None)))]
            required = [one.name for one in parameters.values() if one.default is inspect.Parameter.empty]
            assert set(required) <= {"estimators"}
            start = f"spinney.{name}(" + ("['tree', 'linear'], " if required else "")
            yield start + ", ".join(f"{one.name}={one.default!r}" for one in literals) + ")"
            for parameter, constraints in kind._parameter_constraints.items():
                options = [option for one in constraints if isinstance(one, StrOptions) for option in one.options]
                yield from (
                    f"{start}{parameter}={option!r})" for option in sorted(options) if parameter not in required
                )


def run_mypy(folder):
    is_installed = "site-packages" in SOURCE.parts  # mypy refuses such a folder in its path
    environment = os.environ | ({} if is_installed else {"MYPYPATH": str(SOURCE)})
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", str(folder.parent / "cache")]
    command = [sys.executable, "-m", "mypy", *options, "script.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def run_pyright(folder):
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(SOURCE)], "include": ["script.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(folder), "--pythonpath", sys.executable]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


CHECKERS = pytest.mark.parametrize("check", [run_mypy, run_pyright])


@CHECKERS
def test_common_lines_pass_a_type_checker(tmp_path, check):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    result = check(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@CHECKERS
def test_constructors_take_their_defaults_and_options(tmp_path, check):
    calls = list(constructors())
    assert len(calls) > 150
    (tmp_path / "script.py").write_text("import spinney\n\n" + "\n".join(calls) + "\n", encoding="utf-8")
    result = check(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@CHECKERS
def test_wrong_options_do_not(tmp_path, check):
    start = "import spinney\nX, y = spinney.datasets.load_penguins()\n"
    (tmp_path / "script.py").write_text(start + "".join(f"spinney.{call}\n" for call in WRONG), encoding="utf-8")
    result = check(tmp_path)
    found = re.findall(r"script\.py:(\d+).* error: ", result.stdout)
    assert {int(line) for line in found} == set(range(3, 3 + len(WRONG))), result.stdout + result.stderr
