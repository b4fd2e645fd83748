"""Write tests/saved_models: models of this format version, inputs, and what the models answer.

Usage: ``python tools/make_saved_models.py``. Run it when the format changes or a new kind of model comes: all files are
written anew. From the first release on, files of a released format stay, and every later spinney must read them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import spinney
from sklearn.ensemble import HistGradientBoostingClassifier
from spinney import _engine

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "saved_models"


def table() -> pd.DataFrame:
    """Return a table with every kind of column and missing values."""
    rng = np.random.default_rng(2026)
    n = 80
    frame = pd.DataFrame(
        {
            "length": rng.normal(10, 3, size=n).round(3),
            "count": rng.integers(0, 9, size=n),
            "wild": rng.random(n) < 0.4,
            "town": rng.choice(["Ely", "Rye", "Wem", "Zürich"], size=n).astype(object),
            "plot": np.array([f"p{i}" for i in rng.integers(0, 70, size=n)], dtype=object),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], size=n), categories=["S", "M", "L"], ordered=True),
        }
    )
    frame.loc[::6, "length"] = np.nan
    frame.loc[::7, "town"] = None
    return frame


def models() -> dict[str, Any]:
    """Fit one model of each kind."""
    X = table()
    rng = np.random.default_rng(7)
    score = X["length"].fillna(12) + 4 * (X["town"] == "Rye") - X["count"] + rng.normal(size=len(X))
    labels = np.where(score > 10, "high", np.where(score > 7, "mid", "low"))
    weight = rng.random(len(X)) + 0.1
    two = np.column_stack([score, score**2])
    return {
        "classifier": spinney.DecisionTreeClassifier(max_depth=6, min_samples_category=1).fit(X, labels),
        "weighted_classifier": spinney.DecisionTreeClassifier(max_depth=4, unseen="other", min_samples_category=1).fit(
            X, score > 8, weight
        ),
        "regressor": spinney.DecisionTreeRegressor(max_depth=6, min_samples_category=1).fit(X, score),
        "two_outputs": spinney.DecisionTreeRegressor(max_depth=4, min_samples_leaf=3, min_samples_category=1).fit(
            X, two
        ),
        "two_class_outputs": spinney.DecisionTreeClassifier(max_depth=4, min_samples_category=1).fit(
            X, np.column_stack([score > 8, X["count"] > 4]).astype(int)
        ),
        "extra_classifier": spinney.ExtraTreeClassifier(max_depth=5, random_state=1, min_samples_category=1).fit(
            X, labels
        ),
        "extra_regressor": spinney.ExtraTreeRegressor(max_depth=5, random_state=1, min_samples_category=1).fit(
            X, score
        ),
        "forest_shrunk": spinney.RandomForestClassifier(
            n_estimators=5, shrinkage=0.1, random_state=2, min_samples_category=1
        ).fit(X, labels),
        "forest_classifier": spinney.RandomForestClassifier(
            n_estimators=5, max_depth=4, max_samples=0.7, random_state=2, min_samples_category=1
        ).fit(X, labels),
        "extra_forest_regressor": spinney.ExtraTreesRegressor(
            n_estimators=3, max_depth=4, random_state=1, min_samples_category=1
        ).fit(X, two),
        "forest_rows": spinney.RandomForestRegressor(
            n_estimators=3, max_depth=4, keep_rows=True, random_state=2, min_samples_category=1
        ).fit(X, score),
        "boosting_classifier": spinney.GradientBoostingClassifier(
            n_estimators=3, max_leaf_nodes=5, early_stopping=True, random_state=4
        ).fit(X, labels),
        "boosting_regressor": spinney.GradientBoostingRegressor("poisson", n_estimators=4, random_state=4).fit(
            X, X["count"]
        ),
        "boosting_dropped": spinney.GradientBoostingClassifier(
            n_estimators=5,
            max_leaf_nodes=4,
            dart=spinney.Dart(0.5),
            regularization={"hierarchical_shrinkage": 3.0},
            random_state=4,
        ).fit(X, labels),
        "boosting_lines": spinney.GradientBoostingClassifier(
            n_estimators=4, max_leaf_nodes=4, min_samples_leaf=5, linear_leaves=True, random_state=4
        ).fit(X, labels),
        "boosting_refitted": spinney.GradientBoostingRegressor(
            n_estimators=4,
            max_leaf_nodes=5,
            min_samples_leaf=5,
            random_state=4,
            growth={
                "forced_splits": {
                    "feature": "town",
                    "categories": ["Ely", "Rye"],
                    "left": {"feature": "count", "threshold": 4},
                }
            },
        )
        .fit(X[:50], score[:50])
        .refit(X[50:], score[50:]),
        "boosting_cox": spinney.GradientBoostingSurvival(n_estimators=4, random_state=4).fit(
            X, (1 + X["count"]) * np.where(X["wild"], -1, 1)
        ),
        "boosting_aft": spinney.GradientBoostingSurvival("aft", n_estimators=4, random_state=4).fit(
            X, (1 + X["count"]) * np.where(X["wild"], -1, 1)
        ),
        "survival_tree": spinney.SurvivalTree(min_samples_leaf=5).fit(X, (1 + X["count"]) * np.where(X["wild"], -1, 1)),
        "survival_forest": spinney.RandomSurvivalForest(n_estimators=4, random_state=2, min_samples_leaf=5).fit(
            X,
            pd.DataFrame({"time": 1 + X["count"], "cause": X["size"].astype(str).replace("S", "")}),
            entry=X["count"] / 3,
        ),
        "boosting_ranker": spinney.GradientBoostingRanker(n_estimators=4, random_state=4).fit(
            X, X["count"] // 2, groups=X["wild"]
        ),
        "boosting_quantiles": spinney.GradientBoostingRegressor(
            "quantile", quantile=[0.1, 0.5, 0.9], n_estimators=3, max_leaf_nodes=4, random_state=4
        ).fit(X, score),
        "boosting_labels": spinney.GradientBoostingClassifier(n_estimators=2, max_leaf_nodes=3, random_state=4).fit(
            X, np.column_stack([labels, np.where(score > 8, "yes", "no")])
        ),
        "boosting_costs": spinney.GradientBoostingClassifier(
            n_estimators=2,
            max_leaf_nodes=4,
            random_state=4,
            cost_matrix=[[0, 1, 1], [9, 0, 1], [1, 1, 0]],
            priors="uniform",
        ).fit(X, labels),
        "adaboost_classifier": spinney.AdaBoostClassifier(n_estimators=4).fit(X, labels),
        "adaboost_gentle": spinney.AdaBoostClassifier(
            n_estimators=3, algorithm="gentle", max_depth=2, early_stopping=True, random_state=4
        ).fit(X, labels),
        "adaboost_real": spinney.AdaBoostClassifier(
            spinney.DecisionTreeClassifier(max_depth=2), 3, algorithm="real", unseen="other"
        ).fit(X, score > 8, weight),
        "adaboost_regressor": spinney.AdaBoostRegressor(n_estimators=3).fit(X, score),
        "functions_classifier": spinney.FunctionalBoostingClassifier(
            ["linear_pairs", "logistic", "stumps"], n_estimators=4, random_state=4
        ).fit(X, labels),
        "functions_regressor": spinney.FunctionalBoostingRegressor(
            [
                "splines",
                spinney.learners.Neighbors(5),
                spinney.learners.KernelRidge(max_rows=12),
                "trees",
            ],
            n_estimators=8,
            learning_rate=0.5,
            random_state=4,
        ).fit(X, score),
        "machines_classifier": spinney.SVC(probability=True, cv=3, random_state=4).fit(X, labels),
        "machines_regressor": spinney.SVR(kernel="poly", degree=2, coef0=1.0, scale=False, unseen="other").fit(
            X, score
        ),
        "nu_machines_classifier": spinney.NuSVC(nu=0.3, probability=True, cv=3, random_state=4).fit(X, labels),
        "nu_machines_regressor": spinney.NuSVR(kernel="linear", nu=0.3).fit(X, score),
        "imported_classifier": spinney.from_sklearn(
            HistGradientBoostingClassifier(max_iter=3).fit(X[["length", "count"]].to_numpy(), labels)
        ),
        "imported_regressor": spinney.from_lightgbm(
            (FOLDER.parent / "golden" / "imported" / "lightgbm_zero_missing.txt").read_bytes()
        ),
        "linear_classifier": spinney.LinearClassifier().fit(X, labels, weight),
        "linear_regressor": spinney.LinearRegressor(scale=False).fit(X, score),
        "stack_classifier": spinney.StackingClassifier(
            [("shallow", spinney.DecisionTreeClassifier(max_depth=3)), "linear"], cv=3, random_state=4
        ).fit(X, labels),
        "stack_layers": spinney.StackingRegressor(
            [("shallow", spinney.DecisionTreeRegressor(max_depth=3)), "linear"],
            "greedy",
            layers=[["linear", ("small", spinney.ExtraTreesRegressor(2, max_depth=3))]],
            refit=False,
            cv=3,
            passthrough=False,
            random_state=4,
        ).fit(X, score),
        "vote_classifier": spinney.VotingClassifier(
            [("shallow", spinney.DecisionTreeClassifier(max_depth=3)), "linear"], weights=[1, 2], random_state=4
        ).fit(X, labels),
        "planes_regressor": spinney.LinearSVR(C=3.0, epsilon=0.2).fit(X, score),
        "neighbours_classifier": spinney.KNeighborsClassifier(
            "cv", weights="tricube", k_values=[2, 5, 9], priors="uniform"
        ).fit(X, labels, weight),
        "neighbours_regressor": spinney.KNeighborsRegressor(3, metric="mahalanobis", ties="all", unseen="other").fit(
            X, two
        ),
        "cells_classifier": spinney.HistogramClassifier().fit(X, labels),
        "numbers": spinney.DecisionTreeRegressor(max_depth=4).fit(X[["length", "count"]].to_numpy(), score),
        "surrogates": spinney.DecisionTreeClassifier(
            missing="surrogate", missing_fallback="stop", max_competitors=2, max_depth=5, min_samples_category=1
        ).fit(X, labels),
        "imputer": spinney.ProximityImputer(n_estimators=5, n_iter=2, random_state=5).fit(X, labels),
        "rpart": spinney.DecisionTreeClassifier.rpart(minsplit=6, cp=0.02, random_state=3).fit(X, labels),
    }


def rows_to_try(model: Any) -> list[list[Any]]:
    """Return the training rows and some with unseen categories and numbers, as JSON holds them."""
    if model.n_features_in_ == 5:  # one that was imported
        return [[i / 3 - 2, i % 3, None, float(i % 5), (i - 5) ** 3] for i in range(20)]
    X = table() if hasattr(model, "feature_names_in_") else table()[["length", "count"]]
    rows = X.astype(object).where(X.notna(), None).to_numpy().tolist()
    strange = [None if j % 2 else row for j, row in enumerate(rows[1])]
    return [*rows[:40], strange, *([[1e300, -5, True, "Oslo", "p999", "L"]] if X.shape[1] == 6 else [[1e300, -5]])]


def answers(model: Any, rows: list[list[Any]]) -> dict[str, Any]:
    """Return the model's predictions as JSON holds them; floats come back to the bit."""
    X: Any = np.array(rows, dtype=object)
    if hasattr(model, "feature_names_in_"):
        X = {name: [row[j] for row in rows] for j, name in enumerate(model.feature_names_in_)}
    else:
        X = np.array(rows, dtype=float)
    if not hasattr(model, "predict"):
        return {"transform": {name: np.asarray(column).tolist() for name, column in model.transform(X).items()}}
    found = {"predict": model.predict(X).tolist()}
    if hasattr(model, "classes_"):
        shares = model.predict_proba(X)
        found["predict_proba"] = [s.tolist() for s in shares] if isinstance(shares, list) else shares.tolist()
    if isinstance(model, (spinney.SurvivalTree, spinney.RandomSurvivalForest)):
        found["predict_cumulative_incidence"] = model.predict_cumulative_incidence(X).tolist()
    if isinstance(model, spinney.RandomForestRegressor) and model.keep_rows:
        found["predict_quantiles"] = model.predict_quantiles(X, (0.1, 0.5, 0.9)).tolist()
        found["predict_standard_error"] = np.asarray(model.predict_standard_error(X, corrected=False)).tolist()
        support = model.predict_support(X)
        found["effective_rows"] = np.asarray(support.effective_rows).tolist()
        found["outside"] = support.outside.tolist()
        found["predict_interval"] = np.asarray(model.predict_interval(X, 0.8, "jackknife+")).tolist()
    return found


def main() -> int:
    """Write the models of the current format."""
    FOLDER.mkdir(exist_ok=True)
    for name, model in models().items():
        path = FOLDER / f"format{_engine.MODEL_FORMAT}_{name}.spinney"
        rows = rows_to_try(model)
        model.save(path)
        text = json.dumps({"rows": rows, **answers(model, rows)}, ensure_ascii=False)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size} bytes, {spinney.load(path)!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
