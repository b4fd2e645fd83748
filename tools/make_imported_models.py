"""Write tests/golden/imported: small models of other libraries, rows, and what the libraries answer.

Usage: ``python tools/make_imported_models.py [NAME…]``; needs xgboost, lightgbm, catboost, treelite and pandas. Rows
lie at, beside and half way between the cuts in single and in double precision.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import spinney

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "golden" / "imported"
N = 300
WORDS = ["ant", "bee", "cow", "doe", "elk"]
RNG = np.random.default_rng(2026)


def table() -> np.ndarray:
    """Return numbers, some missing, and in the last two columns codes of categories."""
    X = RNG.normal(size=(N, 5)).round(2)
    X[RNG.random(X.shape) < 0.06] = np.nan
    X[:, 3] = RNG.integers(0, 5, N)
    X[:, 4] = RNG.integers(0, 12, N)
    return X


X = table()
Y = np.nan_to_num(X[:, 0]) + (X[:, 3] == 2) - 0.7 * (X[:, 4] % 3 == 1) + RNG.normal(size=N) / 3
Y2, Y3, COUNTS = (Y > 0).astype(int), np.digitize(Y, [-0.6, 0.5]), np.round(np.abs(Y) * 2)
SPARSE = np.where(RNG.random(X.shape) < 0.3, 0.0, X)


def beside(model: Any, base: np.ndarray) -> np.ndarray:
    """Return rows with values at and beside the cuts of a model that was imported."""
    engine = model.boosting_.engine
    cuts = [(int(f), t) for f, t in zip(engine.feature, engine.threshold, strict=True) if f >= 0 and t != 0]
    rows = [base[i] for i in RNG.integers(0, len(base), 24)]
    for k in RNG.permutation(len(cuts))[:10]:
        column, cut = cuts[k]
        single = np.float32(cut)
        singles = [single, np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf))]
        middles = [(float(single) + float(other)) / 2 for other in singles[1:]]
        values = [*map(float, singles), *middles, cut]
        values += [np.nextafter(v, way) for v in (*middles, cut) for way in (-np.inf, np.inf)]
        for value in values:
            row = base[RNG.integers(0, len(base))].copy()
            row[column] = value
            rows.append(row)
    return np.array(rows)


def frame(rows: np.ndarray) -> Any:
    """Return the table with the last but one column as words."""
    import pandas as pd

    made = pd.DataFrame(rows, columns=list("abcde"))
    made["d"] = pd.Categorical([WORDS[int(v)] if v == v else None for v in rows[:, 3]], categories=WORDS)
    return made


def xgboost(target: Any, form: str = "json", rounds: int = 6, data: Any = X, named: bool = False, **more: Any) -> Any:
    """Fit XGBoost."""
    import xgboost as xgb

    def make() -> dict[str, Any]:
        kinds = more.pop("kinds", None)
        missing = more.pop("missing", np.nan)

        def matrix(rows: Any, y: Any = None) -> Any:
            rows = frame(rows) if named else rows
            return xgb.DMatrix(rows, y, missing=missing, feature_types=kinds, enable_categorical=True)

        booster = xgb.train({"max_depth": 3, "nthread": 1, **more}, matrix(data, target), rounds)
        file = bytes(booster.save_raw(form))
        rows = beside(spinney.from_xgboost(file, missing=missing), data)
        if kinds is not None:
            rows[:8, 4] = [0, 3, 11, 12, 40, np.nan, 7, 31]
        return {
            "file": file,
            "extension": form,
            "rows": rows,
            "scores": booster.predict(matrix(rows), output_margin=True),
            "predictions": booster.predict(matrix(rows)),
            "contributions": booster.predict(matrix(rows[:12]), pred_contribs=True),
            "missing": missing,
            "words": named,
        }

    return make


def lightgbm(target: Any, form: str = "txt", data: Any = X, named: bool = False, **more: Any) -> Any:
    """Fit LightGBM."""
    import lightgbm as lgb

    def make() -> dict[str, Any]:
        settings = {"num_leaves": 7, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, **more}
        given = frame(data) if named else data
        columns = settings.pop("categorical_feature", "auto")
        booster = lgb.train(settings, lgb.Dataset(given, target, categorical_feature=columns), 6)
        file = booster.model_to_string() if form == "txt" else json.dumps(booster.dump_model())
        rows = beside(spinney.from_lightgbm(file.encode()), data)
        if "categorical_feature" in more:
            rows[:8, 4] = [0, 3, 11, 12, 40, np.nan, 7, -2]
        asked = frame(rows) if named else rows
        return {
            "file": file.encode(),
            "extension": form,
            "rows": rows,
            "scores": booster.predict(asked, raw_score=True),
            "predictions": booster.predict(asked),
            "contributions": booster.predict(asked[:12], pred_contrib=True),
            "words": named,
        }

    return make


def catboost(target: Any, named: bool = False, **more: Any) -> Any:
    """Fit CatBoost; with `named`, the fourth column holds words and the fifth whole numbers, both categories."""
    import catboost as cat

    def make() -> dict[str, Any]:
        given: Any = X
        if named:
            given = words_and_numbers(X)
            more.update(cat_features=["d", "e"], one_hot_max_size=50)
        settings = {"iterations": 6, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False, **more}
        model = cat.CatBoost({"loss_function": "RMSE", **settings}).fit(given, target)
        with tempfile.TemporaryDirectory() as folder:
            model.save_model(f"{folder}/model.json", format="json")
            file = Path(folder, "model.json").read_bytes()
        categories = {"d": WORDS, "e": range(12)} if named else None
        rows = beside(spinney.from_catboost(file, categories=categories), X)
        asked = words_and_numbers(rows) if named else rows
        loss = model.get_all_params()["loss_function"].partition(":")[0]
        kind = {
            "RMSE": "RawFormulaVal",
            "MultiRMSE": "RawFormulaVal",
            "Poisson": "Exponent",
            "Tweedie": "Exponent",
            "MAE": "RawFormulaVal",
        }
        pool = cat.Pool(asked[:12], cat_features=["d", "e"] if named else None)
        parts = np.asarray(model.get_feature_importance(pool, type="ShapValues"))
        return {
            "file": file,
            "extension": "json",
            "rows": rows,
            "scores": model.predict(asked, prediction_type="RawFormulaVal"),
            "predictions": model.predict(asked, prediction_type=kind.get(loss, "Probability")),
            "contributions": parts,
            "words": named,
        }

    return make


def words_and_numbers(rows: np.ndarray) -> Any:
    """Return the table with words in the fourth and whole numbers in the fifth column."""
    import pandas as pd

    made = pd.DataFrame(rows, columns=list("abcde"))
    made["d"] = [WORDS[int(v)] for v in rows[:, 3]]
    made["e"] = rows[:, 4].astype(int)
    return made


def treelite(fit: Callable[[], Any]) -> Any:
    """Import a model into treelite."""
    import treelite as tl

    def make() -> dict[str, Any]:
        model = fit()
        file = model.dump_as_json(pretty_print=False).encode()
        rows = beside(spinney.from_treelite(file), X)
        predictions = tl.gtil.predict(model, rows.astype(model.input_type))
        scores = tl.gtil.predict(model, rows.astype(model.input_type), pred_margin=True)
        return {
            "file": file,
            "extension": "json",
            "rows": rows,
            "scores": scores,
            "predictions": predictions,
            "words": False,
        }

    return make


def treelite_of_xgboost() -> Any:
    """Return XGBoost's model of categories in treelite."""
    import treelite as tl
    import xgboost as xgb

    data = xgb.DMatrix(X, Y3, feature_types=KINDS, enable_categorical=True)
    settings = {"max_depth": 3, "objective": "multi:softprob", "num_class": 3, "max_cat_to_onehot": 1}
    return tl.frontend.from_xgboost(xgb.train(settings, data, 4))


def treelite_of_forest() -> Any:
    """Return scikit-learn's forest in treelite."""
    import treelite as tl
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(np.nan_to_num(X), Y3)
    return tl.sklearn.import_model(forest)


TWO = np.column_stack([Y, -Y])
KINDS = ["q", "q", "q", "c", "c"]
RF: dict[str, Any] = {"boosting": "rf", "bagging_fraction": 0.6, "bagging_freq": 1}
SETS: dict[str, Any] = {"min_data_per_group": 5, "cat_smooth": 1}
CASES: dict[str, Callable[[], Callable[[], dict[str, Any]]]] = {
    "xgboost_squared": lambda: xgboost(Y),
    "xgboost_binary": lambda: xgboost(Y2, "ubj", objective="binary:logistic"),
    "xgboost_softprob": lambda: xgboost(Y3, objective="multi:softprob", num_class=3),
    "xgboost_softmax": lambda: xgboost(Y3, "ubj", objective="multi:softmax", num_class=3),
    "xgboost_poisson": lambda: xgboost(COUNTS, objective="count:poisson"),
    "xgboost_gamma": lambda: xgboost(COUNTS + 1, objective="reg:gamma"),
    "xgboost_tweedie": lambda: xgboost(COUNTS, objective="reg:tweedie"),
    "xgboost_logistic": lambda: xgboost(Y2, objective="reg:logistic"),
    "xgboost_logitraw": lambda: xgboost(Y2, objective="binary:logitraw"),
    "xgboost_hinge": lambda: xgboost(Y2, objective="binary:hinge"),
    "xgboost_cox": lambda: xgboost(COUNTS + 1, objective="survival:cox"),
    "xgboost_rank": lambda: xgboost(Y2, objective="rank:ndcg"),
    "xgboost_quantiles": lambda: xgboost(Y, objective="reg:quantileerror", quantile_alpha=[0.2, 0.8]),
    "xgboost_two_targets": lambda: xgboost(TWO, "ubj"),
    "xgboost_dart": lambda: xgboost(Y2, booster="dart", rate_drop=0.4, objective="binary:logistic"),
    "xgboost_forest": lambda: xgboost(
        Y3, objective="multi:softprob", num_class=3, num_parallel_tree=3, subsample=0.6, rounds=2
    ),
    "xgboost_sets": lambda: xgboost(Y, kinds=KINDS, max_cat_to_onehot=1),
    "xgboost_one_hot": lambda: xgboost(Y, "ubj", kinds=KINDS, max_cat_to_onehot=50),
    "xgboost_words": lambda: xgboost(Y2, named=True, objective="binary:logistic", max_cat_to_onehot=1),
    "xgboost_missing": lambda: xgboost(Y, data=SPARSE, missing=0.0),
    "lightgbm_squared": lambda: lightgbm(Y),
    "lightgbm_sqrt": lambda: lightgbm(Y, reg_sqrt=True),
    "lightgbm_l1": lambda: lightgbm(Y, objective="regression_l1"),
    "lightgbm_binary": lambda: lightgbm(Y2, objective="binary"),
    "lightgbm_sigmoid": lambda: lightgbm(Y2, "json", objective="binary", sigmoid=2.0),
    "lightgbm_multiclass": lambda: lightgbm(Y3, objective="multiclass", num_class=3),
    "lightgbm_one_vs_all": lambda: lightgbm(Y3, objective="multiclassova", num_class=3, sigmoid=0.7),
    "lightgbm_poisson": lambda: lightgbm(COUNTS, objective="poisson"),
    "lightgbm_gamma": lambda: lightgbm(COUNTS + 1, objective="gamma"),
    "lightgbm_tweedie": lambda: lightgbm(COUNTS, objective="tweedie"),
    "lightgbm_entropy": lambda: lightgbm(Y2, objective="cross_entropy"),
    "lightgbm_entropy_lambda": lambda: lightgbm(Y2, objective="cross_entropy_lambda"),
    "lightgbm_dart": lambda: lightgbm(Y, boosting="dart"),
    "lightgbm_forest": lambda: lightgbm(Y, **RF),
    "lightgbm_forest_classes": lambda: lightgbm(Y3, objective="multiclass", num_class=3, **RF),
    "lightgbm_zero_missing": lambda: lightgbm(Y, data=SPARSE, zero_as_missing=True),
    "lightgbm_no_missing": lambda: lightgbm(Y, use_missing=False),
    "lightgbm_sets": lambda: lightgbm(Y, categorical_feature=[3, 4], max_cat_to_onehot=1, **SETS),
    "lightgbm_sets_dump": lambda: lightgbm(Y, "json", categorical_feature=[4], **SETS),
    "lightgbm_words": lambda: lightgbm(Y2, named=True, objective="binary", **SETS),
    "catboost_squared": lambda: catboost(Y),
    "catboost_binary": lambda: catboost(Y2, loss_function="Logloss"),
    "catboost_multiclass": lambda: catboost(Y3, loss_function="MultiClass"),
    "catboost_one_vs_all": lambda: catboost(Y3, loss_function="MultiClassOneVsAll"),
    "catboost_poisson": lambda: catboost(COUNTS, loss_function="Poisson"),
    "catboost_two_targets": lambda: catboost(TWO, loss_function="MultiRMSE"),
    "catboost_missing_high": lambda: catboost(Y, nan_mode="Max"),
    "catboost_by_depth": lambda: catboost(Y3, loss_function="MultiClass", grow_policy="Depthwise"),
    "catboost_by_loss": lambda: catboost(Y2, loss_function="Logloss", grow_policy="Lossguide"),
    "catboost_words": lambda: catboost(Y, named=True),
    "treelite_xgboost": lambda: treelite(treelite_of_xgboost),
    "treelite_forest": lambda: treelite(treelite_of_forest),
}


def write(name: str) -> None:
    """Write one case."""
    found = CASES[name]()()
    (FOLDER / f"{name}.{found.pop('extension')}").write_bytes(found.pop("file"))
    arrays: dict[str, Any] = {key: np.asarray(value) for key, value in found.items()}
    np.savez_compressed(FOLDER / f"{name}.npz", **arrays)


def main() -> None:
    """Write the cases that are named, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or CASES:
        write(name)
        print(name)


if __name__ == "__main__":
    main()
