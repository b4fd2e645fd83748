"""Boosted models through files, pickles and processes; files that lie are refused."""

import io
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle.saved import assert_same_answers, bytes_of, through_bytes
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from spinney import _engine


def table(n=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "town": rng.choice(["Ely", "Rye", "Wem"], size=n)})
    X.loc[::9, "a"] = np.nan
    return X, X["a"].fillna(0) + (X["town"] == "Rye") + 0.1 * rng.normal(size=n)


def models():
    X, y = table()
    boost = {"n_estimators": 4, "max_leaf_nodes": 4, "random_state": 0}
    yield spinney.GradientBoostingRegressor(**boost).fit(X, y)
    yield spinney.GradientBoostingRegressor("tweedie", **boost).fit(X, np.maximum(y, 0))
    yield spinney.GradientBoostingRegressor(early_stopping=True, scoring="r2", **boost).fit(X, y)
    yield spinney.GradientBoostingClassifier(**boost).fit(X, y > 0)
    yield spinney.GradientBoostingClassifier("exponential", **boost).fit(X, np.where(y > 0, "yes", "no"))
    yield spinney.GradientBoostingClassifier(early_stopping=True, class_weight="balanced", **boost).fit(
        X, np.array(["low", "mid", "high"])[np.digitize(y, [0, 1])]
    )


@pytest.mark.parametrize("model", list(models()), ids=lambda m: f"{m.loss}-{getattr(m, 'n_classes_', 1)}")
@pytest.mark.parametrize("way", ["file", "pickle"])
def test_a_model_comes_back_whole(model, way):
    X, _ = table()
    back = through_bytes(model) if way == "file" else pickle.loads(pickle.dumps(model))
    assert type(back) is type(model)
    assert sorted(vars(back)) == sorted(vars(model))
    assert back.fingerprint() == model.fingerprint()
    assert back.schema_ == model.schema_
    for name in ("train_score_", "validation_score_", "feature_importances_"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(back, name), getattr(model, name))
    assert_same_answers(model, back, X)
    assert_same_answers(model, through_bytes(model, spinney.load_predictor), X)
    predictor = through_bytes(model, spinney.load_predictor)
    rows = X.astype(object).where(X.notna(), None).to_numpy().tolist()
    assert [predictor.predict_one(row) for row in rows[:10]] == model.predict(X[:10]).tolist()


@pytest.mark.parametrize("model", list(models()), ids=lambda m: f"{m.loss}-{getattr(m, 'n_classes_', 1)}")
def test_a_predictor_takes_an_offset(model):
    X, _ = table()
    rng = np.random.default_rng(0)
    offset = 3 * rng.normal(size=(len(X), model.boosting_.n_scores))
    predictor = through_bytes(model, spinney.load_predictor)
    np.testing.assert_array_equal(predictor.predict(X, offset=offset), model.predict(X, offset=offset))
    if hasattr(model, "classes_"):
        shares = predictor.predict_proba(X, offset=offset)
        np.testing.assert_array_equal(shares, model.predict_proba(X, offset=offset))
    rows = X.astype(object).where(X.notna(), None).to_numpy().tolist()
    one = [predictor.predict_one(row, o) for row, o in zip(rows[:10], offset, strict=False)]
    assert one == model.predict(X[:10], offset=offset[:10]).tolist()
    with pytest.raises(ValueError, match="offset has shape"):
        predictor.predict(X, offset=offset[:5])


def test_an_offset_is_for_boosting_alone():
    X, y = table()
    predictor = through_bytes(spinney.DecisionTreeRegressor(max_depth=2).fit(X, y), spinney.load_predictor)
    for call in (lambda: predictor.predict(X, offset=y), lambda: predictor.predict_one(["Ely", 1.0], 2.0)):
        with pytest.raises(ValueError, match="offset is for gradient boosting, and this is a DecisionTreeRegressor"):
            call()


def test_a_loaded_model_can_be_boosted_on():
    X, y = table()
    long = spinney.GradientBoostingRegressor(n_estimators=6, subsample=0.5, random_state=1).fit(X, y)
    short = spinney.GradientBoostingRegressor(n_estimators=2, subsample=0.5, random_state=1, warm_start=True).fit(X, y)
    again = through_bytes(short).set_params(n_estimators=6).fit(X, y)
    assert again.fingerprint() == long.fingerprint()


def test_what_is_code_is_not_saved():
    X, y = table()
    model = spinney.GradientBoostingRegressor(n_estimators=2, callbacks=print, scoring=lambda m, X, y: 0.0)
    back = through_bytes(model.set_params(callbacks=lambda about: None).fit(X, y))
    assert back.callbacks is None
    assert back.scoring is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"link": "logit"}, "its link does not fit its target"),
        ({"link": "cosine"}, "its link does not fit its target"),
        ({"link": 3}, "lacks a usable 'link'"),
        ({"start": [0.0, 1.0]}, "scores do not fit"),
        ({"start": []}, "scores do not fit"),
        ({"start": ["a"]}, "'start' does not hold numbers"),
        ({"start": None}, "lacks a usable 'start'"),
        ({"n_outputs": 2}, "scores do not fit its classes or outputs"),
        ({"kind": "forest"}, "match its estimator"),
        ({"kind": "sum"}, "does not know, 'sum'"),
        ({"kind": "tree"}, "4 trees instead of one"),
        ({"estimator": "RandomForestRegressor"}, "its trees do not match its estimator"),
        ({"estimator": "GradientBoostingClassifier"}, "match its estimator"),
        ({"boosting": {"seed": -1, "train_score": [1.0] * 4}}, "lacks a usable 'seed'"),
        ({"boosting": {"seed": 1, "train_score": [1.0] * 3}}, "learning curve is shorter"),
        ({"boosting": {"seed": 1}}, "lacks a usable 'train_score'"),
        ({"boosting": {"seed": 1, "train_score": [None] * 4}}, "does not hold numbers"),
        ({"boosting": None}, "lacks a usable 'boosting'"),
    ],
)
def test_headers_that_lie_are_refused(change, message):
    model = next(models())
    header = json.loads(_engine.ModelFile(bytes_of(model)).header) | change
    bad = _engine.write_model_file(json.dumps(header).encode(), model.boosting_.trees())
    with pytest.raises(spinney.ModelFileError, match=message):
        spinney.load(io.BytesIO(bad))


def test_classes_and_trees_must_fit():
    X, y = table()
    model = spinney.GradientBoostingClassifier(n_estimators=2).fit(X, np.digitize(y, [0, 1]))
    header = _engine.ModelFile(bytes_of(model)).header
    with pytest.raises(spinney.ModelFileError, match="5 trees for 3 scores"):
        spinney.load(io.BytesIO(_engine.write_model_file(header, model.boosting_.trees()[:5])))
    wide = spinney.DecisionTreeClassifier(max_depth=1).fit(X, y > 0).tree_.engine
    with pytest.raises(spinney.ModelFileError, match="one value"):
        spinney.load(io.BytesIO(_engine.write_model_file(header, [wide] * 3)))
    two = spinney.GradientBoostingClassifier(n_estimators=2).fit(X, y > 0)
    lying = json.loads(_engine.ModelFile(bytes_of(two)).header) | {"link": "softmax"}
    with pytest.raises(spinney.ModelFileError, match="do not fit its classes"):
        spinney.load(io.BytesIO(_engine.write_model_file(json.dumps(lying).encode(), two.boosting_.trees())))


@pytest.mark.slow
def test_it_works_with_scikit_learns_tools():
    X, y = table()
    model = spinney.GradientBoostingRegressor(n_estimators=5, random_state=0)
    assert len(cross_val_score(model, X, y, cv=3)) == 3
    search = GridSearchCV(model, {"learning_rate": [0.1, 0.5]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_params_["learning_rate"] == 0.5
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()
