"""Trees inside scikit-learn: pipelines, searches, cloning, routing, copies across processes."""

import inspect
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import spinney
from oracle.models import TREES, assert_identical, bits
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import AdaBoostClassifier, BaggingRegressor, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags


@pytest.fixture(scope="module")
def people():
    """Return (polars frame with strings and missing values, class, weight)."""
    rng = np.random.default_rng(70)
    n = 240
    town = rng.choice(["Ely", "Rye", "Wem", "Diss"], size=n)
    age = rng.uniform(18, 80, size=n)
    income = rng.lognormal(3, 0.5, size=n)
    score = (town == "Rye") * 2.0 + (age > 50) + rng.normal(size=n) * 0.5
    frame = pl.DataFrame(
        {
            "town": [None if rng.random() < 0.1 else t for t in town],
            "age": [None if rng.random() < 0.1 else a for a in age],
            "income": income,
        }
    )
    return frame, np.where(score > 1, "yes", "no"), rng.uniform(0.5, 2.0, size=n)


@pytest.mark.parametrize("library", ["polars", "pandas", "arrow"])
def test_cross_validation_on_a_frame_with_strings_and_missing_values(people, library):
    frame, y, _ = people
    X = {"polars": lambda: frame, "pandas": frame.to_pandas, "arrow": frame.to_arrow}[library]()
    if library == "arrow":  # scikit-learn cannot take rows of an Arrow table
        assert spinney.DecisionTreeClassifier(max_depth=3).fit(X, y).score(X, y) > 0.8
        return
    scores = cross_val_score(spinney.DecisionTreeClassifier(max_depth=3, random_state=0), X, y, cv=5)
    assert scores.mean() > 0.75


def test_frames_of_two_libraries_cross_validate_alike(people):
    frame, y, _ = people
    model = spinney.DecisionTreeClassifier(max_depth=4)
    first, second = (cross_val_predict(model, X, y, method="predict_proba") for X in (frame, frame.to_pandas()))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", TREES)
def test_clone_copies_every_parameter(name):
    kind = getattr(spinney, name)
    model = kind(max_depth=3, monotonic_cst=[0, 1], interaction_cst=[{0}, {1}], random_state=7, max_bins=20)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    names = set(inspect.signature(kind.__init__).parameters) - {"self"}
    assert set(model.get_params()) == names


@pytest.mark.parametrize("name", TREES)
def test_kind_and_tags(name):
    model = getattr(spinney, name)()
    assert is_classifier(model) == ("Classifier" in name)
    assert is_regressor(model) == ("Regressor" in name)
    tags = get_tags(model)
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.target_tags.multi_output


@pytest.mark.parametrize("name", TREES)
def test_defaults_are_scikit_learns(name):
    import sklearn.tree

    mine = getattr(spinney, name)().get_params()
    theirs = getattr(sklearn.tree, name)().get_params()
    assert {k: mine[k] for k in theirs} == theirs
    assert mine["max_bins"] is None


def test_grid_search_finds_the_depth(people):
    frame, y, _ = people
    grid = {"max_depth": [1, 3], "criterion": ["gini", "gain_ratio"], "ccp_alpha": [0.0, 0.01]}
    search = GridSearchCV(spinney.DecisionTreeClassifier(random_state=0), grid, cv=3).fit(frame, y)
    assert search.best_score_ > 0.75
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_pipeline_hands_names_on():
    X = pd.DataFrame(np.random.default_rng(71).normal(size=(60, 3)), columns=["a", "b", "c"])
    y = X["a"] + X["b"]
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), spinney.DecisionTreeRegressor())
    pipe.fit(X, y)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert pipe.score(X, y) == 1.0
    pipe.set_output(transform="polars").fit(X, y)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]


def test_column_transformer_may_pass_strings_through(people):
    frame, y, _ = people
    columns = ColumnTransformer([("scaled", StandardScaler(), ["income"])], remainder="passthrough")
    columns.set_output(transform="polars")
    pipe = make_pipeline(columns, spinney.DecisionTreeClassifier(max_depth=3)).fit(frame, y)
    assert pipe.score(frame, y) > 0.8
    assert "remainder__town" in pipe[-1].feature_names_in_


def test_sample_weight_is_routed(people):
    frame, y, w = people
    with sklearn.config_context(enable_metadata_routing=True):
        model = spinney.DecisionTreeClassifier(max_depth=3).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        pipe = make_pipeline("passthrough", model)
        search = GridSearchCV(pipe, {"decisiontreeclassifier__max_depth": [2, 3]}, cv=3, refit=True)
        search.fit(frame, y, sample_weight=w)
        chosen = search.best_estimator_[-1]
        direct = clone(chosen).fit(frame, y, sample_weight=w)
        assert_identical(chosen, direct)
        assert chosen.tree_.weighted_n_node_samples[0] == pytest.approx(w.sum())


def test_unrequested_weights_are_refused_by_routing(people):
    frame, y, w = people
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="sample_weight"),
    ):
        cross_val_score(spinney.DecisionTreeClassifier(), frame, y, params={"sample_weight": w})


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickle_keeps_schema_and_tree(people, protocol):
    frame, y, _ = people
    model = spinney.DecisionTreeClassifier().fit(frame, y)
    copy = pickle.loads(pickle.dumps(model, protocol=protocol))
    assert_identical(model, copy)
    np.testing.assert_array_equal(bits(copy, frame.select("income", "age", "town")), bits(model, frame))
    assert copy.schema_ == model.schema_


@pytest.mark.slow
def test_joblib_saves_and_other_processes_predict(people, tmp_path):
    frame, y, _ = people
    model = spinney.DecisionTreeClassifier(max_depth=4).fit(frame, y)
    joblib.dump(model, tmp_path / "tree.joblib")
    loaded = joblib.load(tmp_path / "tree.joblib")
    np.testing.assert_array_equal(bits(loaded, frame), bits(model, frame))
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(bits)(model, part) for part in (frame[:100], frame[100:]))
    np.testing.assert_array_equal(np.concatenate(parts), bits(model, frame))


def test_damaged_pickle_does_not_crash():
    X = np.arange(30.0)[:, None]
    model = spinney.DecisionTreeClassifier().fit(X, X[:, 0] > 14)
    data = bytearray(pickle.dumps(model))
    rng = np.random.default_rng(72)
    n_refused = 0
    for _ in range(60):
        damaged = bytearray(data)
        damaged[rng.integers(len(data) // 3, len(data))] ^= 1 << int(rng.integers(8))
        try:
            np.asarray(pickle.loads(bytes(damaged)).predict(X))
        except Exception:  # any is right; a crash would end the run
            n_refused += 1
    assert n_refused >= 55  # a bit of a name may be turned so that nothing of the model changes


def test_trees_serve_as_members_of_scikit_learns_ensembles():
    rng = np.random.default_rng(73)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    stump = spinney.DecisionTreeClassifier(max_depth=2)
    assert AdaBoostClassifier(stump, n_estimators=10, random_state=0).fit(X, y).score(X, y) > 0.8
    assert BaggingRegressor(spinney.DecisionTreeRegressor(), 5, random_state=0).fit(X, y).score(X, y) > 0.5
    voting = VotingClassifier([("a", stump), ("b", spinney.ExtraTreeClassifier(random_state=0))], voting="soft")
    assert voting.fit(X, y).score(X, y) > 0.8
    calibrated = CalibratedClassifierCV(spinney.DecisionTreeClassifier(), cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.8
    assert MultiOutputRegressor(spinney.DecisionTreeRegressor()).fit(X, X).score(X, X) == 1.0
    target = TransformedTargetRegressor(spinney.DecisionTreeRegressor(), func=np.log1p, inverse_func=np.expm1)
    assert target.fit(X, y).score(X, y) == pytest.approx(1.0)
    chosen = SelectFromModel(spinney.DecisionTreeClassifier(max_depth=2, random_state=0)).fit(X, y)
    assert chosen.transform(X).shape[1] < 3
    full = spinney.DecisionTreeClassifier(random_state=0).fit(X, y)
    assert permutation_importance(full, X, y, n_repeats=2, random_state=0).importances_mean[:2].min() > 0.1


def test_html_and_text_representation():
    model = spinney.DecisionTreeClassifier(max_depth=3)
    assert repr(model) == "DecisionTreeClassifier(max_depth=3)"
    assert "DecisionTreeClassifier" in model._repr_html_()


def test_feature_names_are_checked_and_matched(people):
    frame, y, _ = people
    model = spinney.DecisionTreeClassifier(max_depth=4).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["town", "age", "income"]
    np.testing.assert_array_equal(model.predict(frame.select("age", "income", "town")), model.predict(frame))
    with pytest.raises(ValueError, match="income"):
        model.predict(frame.drop("income"))
    with pytest.raises(ValueError, match="shoe"):
        model.predict(frame.rename({"age": "shoe"}))
    numbers = spinney.DecisionTreeRegressor().fit(pd.DataFrame({"a": [1.0, 2.0]}), [0.0, 1.0])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        numbers.predict([[1.0]])
