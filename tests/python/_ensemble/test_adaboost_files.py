"""AdaBoost in files: what comes back, what predicts without scikit-learn, and what is refused."""

import functools
import io
import pickle

import numpy as np
import pytest
import spinney
from numpy.testing import assert_array_equal
from oracle.saved import assert_same_answers, bytes_of, through_bytes
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KNeighborsClassifier
from spinney._model.file.container import from_bytes, to_bytes

PENGUINS, SPECIES = spinney.datasets.load_penguins(as_frame="pandas")
DIABETES, PROGRESS = load_diabetes(return_X_y=True)
RECORD = ("estimator_errors_", "estimator_weights_", "normalizers_", "train_losses_", "train_score_")


@pytest.mark.parametrize(
    "model",
    [
        *(spinney.AdaBoostClassifier(n_estimators=4, algorithm=name) for name in ("samme", "real", "gentle", "logit")),
        spinney.AdaBoostClassifier(spinney.DecisionTreeClassifier(max_depth=3, criterion="entropy"), 5, algorithm="m1"),
        spinney.AdaBoostClassifier(n_estimators=9, early_stopping=True, random_state=0, unseen="other"),
    ],
    ids=str,
)
def test_a_classifier_comes_back_as_it_was(model):
    model = clone(model).fit(PENGUINS, SPECIES)
    loaded = through_bytes(model)
    for other in (loaded, pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(loaded))):
        assert_same_answers(model, other, PENGUINS)
        assert_array_equal(other.margins(PENGUINS, SPECIES), model.margins(PENGUINS, SPECIES))
        assert_array_equal(other.feature_importances_, model.feature_importances_)
        assert [str(tree) for tree in other.estimators_] == [str(tree) for tree in model.estimators_]
        for name in (*RECORD, "stopped_", "n_iter_"):
            assert_array_equal(getattr(other, name), getattr(model, name))
    assert bytes_of(loaded) == bytes_of(model)
    assert str(loaded) == str(model)
    assert sorted(vars(loaded)) == sorted(vars(model))
    assert_same_answers(model, through_bytes(model, spinney.load_predictor), PENGUINS)


def test_a_regressor_comes_back_as_it_was():
    model = spinney.AdaBoostRegressor(n_estimators=5, loss="square").fit(DIABETES, PROGRESS)
    loaded = through_bytes(model)
    for other in (loaded, pickle.loads(pickle.dumps(model)), through_bytes(model, spinney.load_predictor)):
        assert_array_equal(other.predict(DIABETES), model.predict(DIABETES))
    assert loaded.to_predictor().predict(DIABETES[3]) == model.predict(DIABETES[3:4])[0]
    assert bytes_of(loaded) == bytes_of(model)
    assert sorted(vars(loaded)) == sorted(vars(model))


@pytest.mark.parametrize(
    ("member", "algorithm"),
    [
        (spinney.RandomForestClassifier(n_estimators=3, random_state=0), "samme"),
        (spinney.DecisionTreeClassifier(prune="cv", cv=3), "real"),
        (spinney.GradientBoostingRegressor(n_estimators=2), "gentle"),
        (spinney.BaggingClassifier(n_estimators=2, random_state=0), "samme"),
        (spinney.FunctionalBoostingRegressor(["stumps", "linear"], n_estimators=2), "logit"),
        (None, "samme"),
    ],
    ids=str,
)
def test_members_that_are_models_of_spinney_come_back_too(member, algorithm):
    X, y = PENGUINS.iloc[::3], SPECIES.iloc[::3]
    model = spinney.AdaBoostClassifier(member, 2, algorithm=algorithm, resample=member is None, random_state=0)
    model.fit(X, y)
    loaded = through_bytes(model)
    for other in (loaded, pickle.loads(pickle.dumps(loaded))):
        assert_same_answers(model, other, X)
        assert_array_equal(other.margins(X, y), model.margins(X, y))
        for name in (*RECORD, "stopped_", "n_iter_"):
            assert_array_equal(getattr(other, name), getattr(model, name))
    assert bytes_of(loaded) == bytes_of(model)
    assert sorted(vars(loaded)) == sorted(vars(model))
    assert str(loaded) == str(model)
    with pytest.raises(spinney.ModelFileError, match=r"an ensemble of several models. Read it with spinney.load"):
        through_bytes(model, spinney.load_predictor)


def test_values_by_other_members_come_back_too():
    forest = spinney.ExtraTreesRegressor(n_estimators=2, random_state=0)
    model = spinney.AdaBoostRegressor(forest, 3, random_state=0).fit(DIABETES, PROGRESS)
    loaded = through_bytes(model)
    assert_array_equal(loaded.predict(DIABETES), model.predict(DIABETES))
    assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    assert bytes_of(loaded) == bytes_of(model)


def saved_estimator(name):
    """Return the estimator of a name, as a header holds it among the parameters."""
    return {"dict": [["estimator", name], ["parameters", {"dict": []}], ["templates", {"dict": []}]]}


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.update(weights=h["weights"][:1]),
        lambda h: h.update(weights=[]),
        lambda h: h.update(classes=None),
        lambda h: h.update(models=h["models"][:1]),
        lambda h: h.update(n_features=3, names=None),
        lambda h: h["parameters"].update(estimator=saved_estimator("os")),
        lambda h: h["rounds"].update(stopped="by the moon"),
        lambda h: h["models"][0]["model"].update(estimator="RandomForestRegressor"),
        lambda h: h["parameters"].update(algorithm="gentle"),
    ],
)
def test_damaged_members_are_refused(change):
    model = spinney.AdaBoostClassifier(spinney.RandomForestClassifier(n_estimators=2, max_depth=1), 2, random_state=0)
    header, _ = from_bytes(bytes_of(model.fit(PENGUINS.iloc[::3], SPECIES.iloc[::3])))
    trees = model._file_parts()[1]
    assert model.n_iter_ == 2
    change(header)
    with pytest.raises(spinney.ModelFileError):
        spinney.load(io.BytesIO(to_bytes(header, trees)))


def test_members_of_other_libraries_can_only_be_pickled():
    model = spinney.AdaBoostClassifier(KNeighborsClassifier(), 3, random_state=0).fit(DIABETES, PROGRESS > 100)
    with pytest.raises(TypeError, match=r"of the type KNeighborsClassifier\. Pickle"):
        model.save(io.BytesIO())
    other = pickle.loads(pickle.dumps(model))
    assert_array_equal(other.decision_function(DIABETES), model.decision_function(DIABETES))


@functools.cache
def whole_file(kind):
    if kind == "values":
        return bytes_of(spinney.AdaBoostRegressor(n_estimators=3).fit(DIABETES, PROGRESS))
    tree = spinney.DecisionTreeRegressor(max_depth=2) if kind == "gentle" else None
    return bytes_of(spinney.AdaBoostClassifier(tree, 3, algorithm=kind).fit(PENGUINS, SPECIES))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("samme", lambda h: h.update(weights=h["weights"][:2])),
        ("samme", lambda h: h.update(weights=[1.0, 2.0, "3"])),
        ("samme", lambda h: h.update(weights=[])),
        ("samme", lambda h: h.update(algorithm="gentle")),
        ("samme", lambda h: h.update(algorithm="other")),
        ("samme", lambda h: h.update(kind="forest")),
        ("samme", lambda h: h.update(kind="adaboost_r2")),
        ("samme", lambda h: h.update(estimator="AdaBoostRegressor")),
        ("samme", lambda h: h["rounds"].update(errors=[0.1])),
        ("samme", lambda h: h["rounds"].update(errors=[0.1, 0.1, 0.1, 0.1])),
        ("samme", lambda h: h["rounds"].pop("normalizers")),
        ("samme", lambda h: h["rounds"].update(stopped="never")),
        ("samme", lambda h: h["rounds"].update(train_score=[1])),
        ("samme", lambda h: h.pop("rounds")),
        ("samme", lambda h: h["parameters"].update(estimator=saved_estimator("load"))),
        ("gentle", lambda h: (h["parameters"].update(estimator=None), h.update(algorithm="samme"))),
        ("gentle", lambda h: h["parameters"].update(estimator=saved_estimator("RandomForestRegressor"))),
        ("gentle", lambda h: h["parameters"].update(algorithm="samme")),
        ("values", lambda h: h.update(weights=[1.0, 2.0, -3.0])),
        ("values", lambda h: h.update(kind="adaboost")),
        ("values", lambda h: h.update(n_outputs=2)),
    ],
)
def test_a_damaged_header_is_refused(kind, change):
    data = whole_file(kind)
    header, file = from_bytes(data)
    trees = spinney.load(io.BytesIO(data)).adaboost_.trees()
    assert to_bytes(header, trees) == data
    change(header)
    with pytest.raises(spinney.ModelFileError):
        spinney.load(io.BytesIO(to_bytes(header, trees)))
    assert np.isfinite(file.n_trees)
