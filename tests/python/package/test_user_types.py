"""Scripts of users pass mypy in strict mode, and misspelt options do not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import spinney

pytest.importorskip("mypy")
pytestmark = pytest.mark.slow

SCRIPT = """\
import numpy as np
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
forest = spinney.RandomForestClassifier(100, random_state=0).fit(X, y)
print(forest.feature_importances_[0], forest.predict_proba(X)[:, 0].max())
tree = spinney.DecisionTreeRegressor(max_depth=3).fit(np.zeros((3, 2)), [1.0, 2.0, 3.0])
print(tree.predict(np.zeros((1, 2)))[0], spinney.export_text(tree))
result = spinney.compare({"forest": forest, "boosting": model}, X, y, cv=3)
print(result.best_, spinney.SVC(kernel="rbf").fit(X, y).predict(X)[0])
"""
WRONG = (
    'GradientBoostingClassifier(n_estimators="fifty")',
    'GradientBoostingRegressor(growth="depthwise")',
    'RandomForestClassifier(criterion="ginni")',
    'RandomForestRegressor(max_features="square root")',
    'DecisionTreeClassifier(splitter="worst")',
    'SVC(kernel="rfb")',
    'KNeighborsClassifier(n_neighbors="many")',
)


def mypy(folder, text):
    (folder / "script.py").write_text(text, encoding="utf-8")
    environment = os.environ | {"MYPYPATH": str(Path(spinney.__file__).parents[1])}
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", str(folder / "cache")]
    command = [sys.executable, "-m", "mypy", *options, "script.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_common_lines_pass_a_type_checker(tmp_path):
    result = mypy(tmp_path, SCRIPT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_misspelt_options_do_not(tmp_path):
    result = mypy(tmp_path, "import spinney\n\n" + "".join(f"spinney.{call}\n" for call in WRONG))
    found = {line.split(":")[1] for line in result.stdout.splitlines() if ": error: Argument" in line}
    assert found == {str(3 + k) for k in range(len(WRONG))}, result.stdout
