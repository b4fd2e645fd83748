"""Imported live models predict like the original; those of scikit-learn also next to their thresholds."""

import io
import json
from itertools import chain, combinations
from math import factorial

import numpy as np
import pytest
import spinney
from sklearn import ensemble, tree
from sklearn.exceptions import NotFittedError

RNG = np.random.default_rng(5)
N = 150
X = RNG.normal(size=(N, 4)).round(2)
X[:, 3] = RNG.integers(0, 6, N)
HOLES = np.where(RNG.random(X.shape) < 0.06, np.nan, X)
Y = X[:, 0] + (X[:, 3] == 2) + RNG.normal(size=N) / 3
TWO = np.array(["no", "yes"])[(Y > 0.1).astype(int)]
THREE = np.digitize(Y, [-0.5, 0.7])
PAIRS = np.column_stack([TWO, np.where(THREE == 1, "a", "b")])

MODELS = {
    "tree": (tree.DecisionTreeClassifier(max_depth=4), HOLES, TWO),
    "tree of several classes": (tree.DecisionTreeClassifier(criterion="entropy", class_weight="balanced"), X, THREE),
    "tree of pairs": (tree.DecisionTreeClassifier(max_depth=3), X, PAIRS),
    "tree of values": (tree.DecisionTreeRegressor(max_depth=4), HOLES, Y),
    "tree of medians": (tree.DecisionTreeRegressor(max_depth=3, criterion="absolute_error"), X, Y),
    "extra tree": (tree.ExtraTreeClassifier(max_depth=4), X, THREE),
    "extra tree of values": (tree.ExtraTreeRegressor(max_depth=4), X, Y),
    "forest": (ensemble.RandomForestClassifier(5, max_depth=4), HOLES, TWO),
    "forest of pairs": (ensemble.RandomForestClassifier(4, max_depth=3), X, PAIRS),
    "forest of values": (ensemble.RandomForestRegressor(5, max_depth=4), HOLES, Y),
    "forest of two values": (ensemble.RandomForestRegressor(4, max_depth=3), X, np.column_stack([Y, -Y])),
    "extra trees": (ensemble.ExtraTreesClassifier(5, max_depth=4), X, THREE),
    "extra trees of values": (ensemble.ExtraTreesRegressor(5, max_depth=4), X, Y),
    "boosting": (ensemble.GradientBoostingClassifier(n_estimators=4), X, TWO),
    "boosting of several classes": (ensemble.GradientBoostingClassifier(n_estimators=3), X, THREE),
    "exponential": (ensemble.GradientBoostingClassifier(n_estimators=4, loss="exponential"), X, TWO),
    "from zero": (ensemble.GradientBoostingClassifier(n_estimators=4, init="zero"), X, TWO),
    "boosting of values": (ensemble.GradientBoostingRegressor(n_estimators=4, loss="huber"), X, Y),
    "boosting of medians": (ensemble.GradientBoostingRegressor(n_estimators=3, loss="absolute_error"), X, Y),
    "boosting of quantiles": (ensemble.GradientBoostingRegressor(n_estimators=3, loss="quantile"), X, Y),
    "boosting of means": (ensemble.GradientBoostingRegressor(n_estimators=3), X, Y),
    "histograms of means": (ensemble.HistGradientBoostingRegressor(max_iter=3), HOLES, Y),
    "histograms of medians": (ensemble.HistGradientBoostingRegressor(max_iter=3, loss="absolute_error"), HOLES, Y),
    "histograms of quantiles": (
        ensemble.HistGradientBoostingRegressor(max_iter=3, loss="quantile", quantile=0.3),
        HOLES,
        Y,
    ),
    "histograms": (ensemble.HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5), HOLES, TWO),
    "histograms of several classes": (ensemble.HistGradientBoostingClassifier(max_iter=3), HOLES, THREE),
    "histograms of counts": (ensemble.HistGradientBoostingRegressor(max_iter=4, loss="poisson"), X, np.abs(Y)),
    "histograms of gamma": (ensemble.HistGradientBoostingRegressor(max_iter=4, loss="gamma"), X, np.abs(Y) + 0.1),
    "histograms of categories": (
        ensemble.HistGradientBoostingClassifier(max_iter=4, categorical_features=[3], min_samples_leaf=5),
        HOLES,
        TWO,
    ),
}


def beside(ours, base):
    """Return rows at and next to the thresholds of a model."""
    fitted = ours._fitted
    cuts = {
        (int(f), float(t))
        for made in fitted.trees()
        for f, t in zip(made.feature, made.threshold, strict=True)
        if f >= 0
    }
    rows = [*base[:20]]
    for column, cut in sorted(cuts)[:: max(1, len(cuts) // 12)]:
        if ours.schema_.features[column].categories or not np.isfinite(cut):
            continue
        single = np.float32(cut)
        ends = [float(np.nextafter(single, np.float32(way))) for way in (-np.inf, np.inf)]
        values = [cut, float(single), *ends, *((float(single) + end) / 2 for end in ends)]
        for value in [near for v in values for near in (v, np.nextafter(v, -np.inf), np.nextafter(v, np.inf))]:
            row = base[len(rows) % len(base)].copy()
            row[column] = value
            rows.append(row)
    return np.array(rows)


def shares(model, rows):
    found = model.predict_proba(rows)
    return np.concatenate(found, axis=1) if isinstance(found, list) else found


@pytest.mark.parametrize("name", MODELS)
def test_a_live_model_predicts_the_same_at_and_next_to_its_thresholds(name):
    theirs, table, target = MODELS[name]
    if "random_state" in theirs.get_params():
        theirs.set_params(random_state=0)
    theirs.fit(table, target)
    ours = spinney.from_sklearn(theirs)
    rows = beside(ours, table)
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_allclose(shares(ours, rows), shares(theirs, rows), rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    else:
        np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), rtol=1e-13, atol=1e-14)
    if hasattr(theirs, "feature_importances_"):
        np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-12)
    file = io.BytesIO()
    ours.save(file)
    for load in (spinney.load, spinney.load_predictor):
        np.testing.assert_array_equal(load(io.BytesIO(file.getvalue())).predict(rows), ours.predict(rows))


def test_an_imported_forest_refuses_what_needs_training_rows():
    ours = spinney.from_sklearn(ensemble.RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, TWO))
    with pytest.raises(AttributeError, match="because it was imported"):
        ours.predict_support(X)


def test_isolation_forests_score_alike():
    theirs = ensemble.IsolationForest(n_estimators=6, max_features=0.5, contamination=0.1, random_state=0).fit(X)
    ours = spinney.from_sklearn(theirs)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-13)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    file = io.BytesIO()
    ours.save(file)
    np.testing.assert_array_equal(spinney.load(io.BytesIO(file.getvalue())).score_samples(X), ours.score_samples(X))


def test_categories_are_matched_by_value():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    table["d"] = pd.Categorical(np.array(list("uvwxyz"))[X[:, 3].astype(int)])
    table.loc[::9, "d"] = None
    theirs = ensemble.HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5).fit(table, TWO)
    ours = spinney.from_sklearn(theirs)
    np.testing.assert_allclose(ours.predict_proba(table), theirs.predict_proba(table), rtol=1e-13)
    assert ours.schema_.features[3].categories == tuple("uvwxyz")


def test_a_start_that_is_a_model_is_refused():
    theirs = ensemble.GradientBoostingRegressor(n_estimators=2, init=tree.DecisionTreeRegressor(max_depth=2)).fit(X, Y)
    with pytest.raises(spinney.ModelFileError, match="starts from a DecisionTreeRegressor, which cannot be imported"):
        spinney.from_sklearn(theirs)


# ---- live models of other libraries: files are tested in tests/python/test_imported.py ---------------------


@pytest.mark.parametrize(
    ("library", "name"),
    [("xgboost", "XGBClassifier"), ("lightgbm", "LGBMRegressor"), ("catboost", "CatBoostClassifier")],
)
def test_an_unfitted_estimator_is_refused_as_such(library, name):
    unfitted = getattr(pytest.importorskip(library), name)()
    with pytest.raises(NotFittedError, match=f"This {name} is not fitted yet. Call its fit first"):
        getattr(spinney, f"from_{library}")(unfitted)


@pytest.mark.slow
def test_live_models_of_xgboost_predict_like_the_original(tmp_path):
    xgb = pytest.importorskip("xgboost")
    model = xgb.XGBClassifier(n_estimators=40, max_depth=3, early_stopping_rounds=3, missing=0.0)
    model.fit(X[:100], THREE[:100], eval_set=[(X[100:], THREE[100:])], verbose=False)
    assert model.best_iteration < 39
    ours = spinney.from_xgboost(model)
    assert ours.boosting_.n_rounds == model.best_iteration + 1
    np.testing.assert_allclose(ours.predict_proba(X), model.predict_proba(X), atol=2e-6)
    # a booster has no estimator's ways: all rounds, and missing values unsaid
    booster = spinney.from_xgboost(model.get_booster(), missing=0.0)
    np.testing.assert_allclose(
        booster.predict_proba(X), model.get_booster().predict(xgb.DMatrix(X, missing=0.0)), atol=2e-6
    )
    model.save_model(tmp_path / "model.ubj")  # the file records that an estimator wrote it
    assert spinney.from_xgboost(tmp_path / "model.ubj", missing=0.0).boosting_.n_rounds == ours.boosting_.n_rounds
    forest = xgb.XGBRFRegressor(n_estimators=5, max_depth=3).fit(X, Y)
    np.testing.assert_allclose(spinney.from_xgboost(forest).predict(X), forest.predict(X), atol=2e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_live_models_of_lightgbm_predict_like_the_original():
    lgb = pytest.importorskip("lightgbm")
    model = lgb.LGBMClassifier(n_estimators=30, num_leaves=5, min_child_samples=5, verbose=-1)
    model.fit(X[:100], TWO[:100], eval_set=[(X[100:], TWO[100:])], callbacks=[lgb.early_stopping(2, verbose=False)])
    ours = spinney.from_lightgbm(model)
    assert ours.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(ours._scores(X)[:, 0], model.booster_.predict(X, raw_score=True))
    np.testing.assert_array_equal(
        spinney.from_lightgbm(model.booster_.dump_model()).predict(X), ours.predict(X) == "yes"
    )
    ranker = lgb.LGBMRanker(n_estimators=4, min_child_samples=5, verbose=-1).fit(X, THREE, group=[50, 50, 50])
    np.testing.assert_array_equal(spinney.from_lightgbm(ranker).predict(X), ranker.predict(X))
    linear = lgb.train({"linear_tree": True, "verbose": -1, "min_data_in_leaf": 5}, lgb.Dataset(X, Y), 2)
    with pytest.raises(spinney.ModelFileError, match="has linear trees"):
        spinney.from_lightgbm(linear)


@pytest.mark.slow
def test_live_models_of_catboost_predict_like_the_original(tmp_path):
    cat = pytest.importorskip("catboost")
    settings = {"iterations": 5, "depth": 3, "verbose": 0, "allow_writing_files": False}
    model = cat.CatBoostClassifier(**settings).fit(X, TWO)
    ours = spinney.from_catboost(model)
    np.testing.assert_array_equal(ours._scores(X)[:, 0], model.predict(X, prediction_type="RawFormulaVal"))
    np.testing.assert_array_equal(ours.predict(X), model.predict(X))
    model.save_model(tmp_path / "model.cbm")
    np.testing.assert_array_equal(spinney.from_catboost(tmp_path / "model.cbm").predict(X), ours.predict(X))
    words = X.astype(object)
    words[:, 3] = np.array(list("uvwxyz"))[X[:, 3].astype(int)]
    by_target = cat.CatBoostClassifier(**settings, one_hot_max_size=2, cat_features=[3]).fit(words, TWO)
    with pytest.raises(spinney.ModelFileError, match="statistics of the target by category"):
        spinney.from_catboost(by_target)
    sky = np.where(X[:, 3:] > 2, "red sky at night", "blue sky").astype(object)
    pool = cat.Pool(np.hstack([X.astype(object), sky]), TWO, text_features=[4])
    with pytest.raises(spinney.ModelFileError, match="has columns of text, which cannot be imported"):
        spinney.from_catboost(cat.CatBoostClassifier(**settings).fit(pool))
    embedded = cat.Pool([[row[0], row] for row in X], TWO, embedding_features=[1])
    with pytest.raises(spinney.ModelFileError, match="has columns of embeddings, which cannot be imported"):
        spinney.from_catboost(cat.CatBoostClassifier(**settings).fit(embedded))
    shares = cat.CatBoostClassifier(**settings, loss_function="CrossEntropy").fit(X, THREE / 2)
    np.testing.assert_array_equal(spinney.from_catboost(shares).predict_proba(X), shares.predict_proba(X))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["YetiRank", "QueryRMSE", "QuerySoftMax", "PairLogit"])
def test_rankers_of_catboost(loss):
    cat = pytest.importorskip("catboost")
    model = cat.CatBoostRanker(iterations=4, depth=3, verbose=0, allow_writing_files=False, loss_function=loss)
    model.fit(X, THREE > 0, group_id=np.repeat([0, 1, 2], 50))
    np.testing.assert_array_equal(spinney.from_catboost(model).predict(X), model.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    ["reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "survival:aft", "rank:pairwise", "rank:map"],
)
def test_other_objectives_of_xgboost(objective):
    xgb = pytest.importorskip("xgboost")
    target = THREE > 0 if objective == "rank:map" else np.abs(Y) + 0.1
    data = xgb.DMatrix(X, target)
    if objective == "survival:aft":
        data.set_float_info("label_lower_bound", target)
        data.set_float_info("label_upper_bound", target * 1.5)
    model = xgb.train({"objective": objective, "max_depth": 3}, data, 4)
    np.testing.assert_allclose(spinney.from_xgboost(model).predict(X), model.predict(data), rtol=2e-6, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["huber", "fair", "quantile", "mape", "rank_xendcg", "goss", "your own"])
def test_other_objectives_of_lightgbm(objective):
    lgb = pytest.importorskip("lightgbm")
    settings = {"objective": objective, "verbose": -1, "min_data_in_leaf": 5, "num_leaves": 5}
    if objective == "your own":
        settings["objective"] = lambda scores, data: (scores - data.get_label(), np.ones(len(scores)))
    if objective == "goss":
        settings |= {"objective": "regression", "data_sample_strategy": "goss"}
    is_rank = objective == "rank_xendcg"
    data = lgb.Dataset(X, THREE if is_rank else Y + 5, group=[50, 50, 50] if is_rank else None)
    model = lgb.train(settings, data, 4)
    np.testing.assert_array_equal(spinney.from_lightgbm(model).predict(X), model.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        "MAE",
        "Quantile:alpha=0.3",
        "Huber:delta=1",
        "Tweedie:variance_power=1.5",
        "LogCosh",
        "Lq:q=3",
        "MAPE",
        "Expectile:alpha=0.3",
        "MultiQuantile:alpha=0.1,0.5",
        "LogLinQuantile",
    ],
)
def test_other_losses_of_catboost(loss):
    cat = pytest.importorskip("catboost")
    model = cat.CatBoostRegressor(iterations=4, depth=3, verbose=0, allow_writing_files=False, loss_function=loss)
    model.fit(X, np.abs(Y))
    np.testing.assert_allclose(spinney.from_catboost(model).predict(X), model.predict(X), rtol=1e-14)


@pytest.mark.slow
def test_live_models_of_treelite_predict_like_the_original():
    treelite = pytest.importorskip("treelite")
    model = treelite.sklearn.import_model(ensemble.ExtraTreesRegressor(4, max_depth=3, random_state=0).fit(X, Y))
    np.testing.assert_allclose(
        spinney.from_treelite(model).predict(X), treelite.gtil.predict(model, X).ravel(), rtol=1e-13
    )


# ---- Shapley values of trees with empty leaves -------------------------------------------------------------


def weight_of(node):
    return node["weight"] if "value" in node else weight_of(node["left"]) + weight_of(node["right"])


def expected(node, row, known):
    """Return the mean prediction of a CatBoost tree over rows with the same values in these columns."""
    if "value" in node:
        return node["value"]
    column, left, right = node["split"]["float_feature_index"], node["left"], node["right"]
    if column in known:
        return expected(right if row[column] > node["split"]["border"] else left, row, known)
    weights = [weight_of(left), weight_of(right)]
    return np.average([expected(left, row, known), expected(right, row, known)], weights=weights)


def shares_over_all_subsets(trees, row):
    p, shares = len(row), np.zeros(len(row))
    for j in range(p):
        rest = [k for k in range(p) if k != j]
        for known in chain.from_iterable(combinations(rest, n) for n in range(p)):
            weight = factorial(len(known)) * factorial(p - len(known) - 1) / factorial(p)
            gains = [expected(tree, row, {*known, j}) - expected(tree, row, {*known}) for tree in trees]
            shares[j] += weight * sum(gains)
    return shares


@pytest.mark.parametrize("policy", ["Depthwise", "Lossguide"])
def test_shapley_values_of_catboosts_trees_with_empty_leaves_are_those_over_all_subsets(policy, tmp_path):
    cat = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 4))
    table[:, 1] = np.round(table[:, 1])
    target = table[:, 0] * table[:, 1] + table[:, 2]
    options = {"iterations": 4, "depth": 4, "min_data_in_leaf": 1, "learning_rate": 0.3, "random_seed": 1, "verbose": 0}
    model = cat.CatBoostRegressor(grow_policy=policy, allow_writing_files=False, **options).fit(table, target)
    model.save_model(tmp_path / "model.json", format="json")
    trees = json.loads((tmp_path / "model.json").read_text())["trees"]
    assert any(leaf_is_empty(tree) for tree in trees)
    rows = rng.normal(size=(8, 4))
    explained = spinney.from_catboost(model).shap_values(rows)
    wanted = [shares_over_all_subsets(trees, row) for row in rows]
    np.testing.assert_allclose(explained.values, wanted, atol=1e-12)
    np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, model.predict(rows), atol=1e-12)


def leaf_is_empty(node):
    return node["weight"] == 0 if "value" in node else leaf_is_empty(node["left"]) or leaf_is_empty(node["right"])
