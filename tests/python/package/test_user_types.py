"""Scripts of users pass mypy and pyright in strict mode, and wrong options do not."""

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Hashable
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
from sklearn.model_selection import GridSearchCV  # type: ignore
from sklearn.pipeline import make_pipeline  # type: ignore
from sklearn.preprocessing import StandardScaler  # type: ignore
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
explained = model.shap_values(X, interactions=True)
print(explained.response[:, 1].mean(), explained.interactions.sum(axis=2), explained.to_frame(), explained.plot("bars"))
print(spinney.permutation_importance(forest, X, y, groups={"bill": ["bill_length_mm", "bill_depth_mm"]}).order[0])
print(spinney.permutation_importance(forest, X, y, groups=[["bill_length_mm", "bill_depth_mm"]], cv=3).names[0])
print(spinney.partial_dependence(forest, X, "year", individual=True, grid=[2007, 2009]).centred().individual[:, -1])
print(spinney.nearest_rows(forest, X, 0, y=y).target[0], forest.proximity(X, n_neighbors=5).nnz, forest.proximity(X)[0])
print(spinney.counterfactual(tree, X.iloc[0], (None, 3), X=X)[0].prediction, spinney.james_stein([1, 2, 5], 1).factor)
print(spinney.from_xgboost("model.json").predict_proba(X)[:, 1], spinney.from_sklearn(svc).predict(X)[0])
print(tree.to_predictor().predict({**X.iloc[0].to_dict(), "year": 2008}), forest.importances(X, y).standard_error[0])
for scores in model.staged_predict_proba(X):
    print(scores[:, 1].mean())
interval = spinney.GradientBoostingRegressor(loss="quantile", quantile=[0.1, 0.9], init="zero").fit(X, X["year"])
print(interval.predict(X)[:, 0], interval.predict_interval(X, 0.9).shape, interval.history_["round"])
pipeline = make_pipeline(StandardScaler(), spinney.LinearSVC(C="cv"))
search = GridSearchCV(spinney.RandomForestClassifier(max_features="sqrt"), {"max_depth": [3, None]})
print(spinney.compare({"pipeline": pipeline, "search": search, "tree": "tree"}, X, y).scores["accuracy"].mean(axis=1))
print(spinney.bias_variance({"pipeline": pipeline}, X, y, n_repeats=10).to_frame("pandas"))
stack = spinney.StackingClassifier([("forest", forest), ("svm", svc)], final_estimator="logistic", cv=5).fit(X, y)
vote = spinney.VotingClassifier({"forest": forest, "boosting": model}, voting="soft").fit(X, y)
print(stack.predict_proba(X)[:, 1], stack.named_estimators_["svm"].C, vote.predict(X)[0])
print(spinney.BaggingClassifier("tree").fit(X, y).predict_proba(X)[0])
print(spinney.KNeighborsClassifier(5, weights="distance").fit(X, y).kneighbors(X, 3)[1], spinney.rules(tree)[0].formula)
print(spinney.plot_tree(tree).figure, tree.cost_complexity_pruning_path(X, y).ccp_alphas, tree.decision_path(X).shape)
survival = spinney.GradientBoostingSurvival().fit(X, np.column_stack([X["year"], X["year"] > 2007]))
print(survival.predict_survival_function(X, [10, 20])[:, 0], study.report("report.html"))
study.save("model.spinney")
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
    'permutation_importance(model, X, y, cv="five")',
    'permutation_importance(model, X, y, rows="oob")',
    'GradientBoostingRegressor(loss="squred")',
    'DecisionTreeClassifier.rpart(split="entropy")',
    'study(X, y, task="binary")',
    'compare(["tree"], X, y, task="binary")',
    'bias_variance(model, X, y, loss="0-1")',
    'plot_impurities(simplex="error")',
    'plot_tuning(model, X, y, {"max_depth": [1, 2]}, simplest="smallest")',
    'partial_dependence(model, X, "year", method="fast")',
    'partial_dependence(model, X, "year", response_method="proba")',
    'interaction_strength(model, X, response_method="proba")',
    'nearest_rows(model, X, 0, method="proximity")',
    'ranking_score([1, 0], [0.5, 0.1], gains="log")',
    'RandomForestClassifier().importances(X, y, kind="gini")',
    'RandomForestRegressor().predict_interval(X, method="conformal")',
    'GradientBoostingRegressor().predict_interval(X, method="quantile")',
    'GradientBoostingClassifier().importances(kind="shap")',
    'KNeighborsClassifier().kneighbors_graph(X, mode="weights")',
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


def calls_with_unknown_words():
    """Calls of every estimator with a word that is no option, for the parameters that are no arrays."""
    for name in spinney.__all__:
        kind = getattr(spinney, name)
        if isinstance(kind, type) and issubclass(kind, BaseEstimator) and not name.startswith("Imported"):
            for parameter, constraints in kind._parameter_constraints.items():
                is_array = {"array-like", dict, list} & {one for one in constraints if isinstance(one, Hashable)}
                if parameter in ("C", "gamma") or not (is_array or parameter == "init" or str in constraints):
                    yield f"spinney.{name}({parameter}='no option')"


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
    calls = [f"spinney.{call}" for call in WRONG] + list(calls_with_unknown_words())
    assert len(calls) > 600
    start = ["import spinney", "X, y = spinney.datasets.load_penguins()", "model = spinney.RandomForestClassifier()"]
    (tmp_path / "script.py").write_text("\n".join(start + calls) + "\n", encoding="utf-8")
    result = check(tmp_path)
    found = {int(line) for line in re.findall(r"script\.py:(\d+).* error: ", result.stdout)}
    passing = [call for line, call in enumerate(calls, 1 + len(start)) if line not in found]
    assert min(found) > len(start), result.stdout + result.stderr
    assert not passing
