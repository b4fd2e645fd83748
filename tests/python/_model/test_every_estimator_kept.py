"""Every estimator, member and option: saved files and pickles restore bit-identical models."""

import copy
import io
import pickle
import warnings

import joblib
import numpy as np
import pytest
import spinney
from every_estimator import MODELS, answers, assert_same_answers
from sklearn.base import clone


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file, compress=1)
    file.seek(0)
    return joblib.load(file)


def saved(model):
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def assert_same_attributes_and_parameters(again, model):
    assert vars(again).keys() == vars(model).keys()
    parameters = again.get_params(deep=False)
    for parameter, value in model.get_params(deep=False).items():
        assert repr(parameters[parameter]) == repr(value)
        assert type(parameters[parameter]) is type(value)


@pytest.mark.parametrize("name", MODELS)
def test_files_and_pickles_restore_every_estimator(name):
    model = MODELS[name]()
    before = answers(model)
    data = saved(model)
    loaded = spinney.load(io.BytesIO(data))
    assert_same_answers(answers(loaded), before)
    assert saved(loaded) == data
    pickled = pickle.loads(pickle.dumps(model))
    assert_same_attributes_and_parameters(pickled, model)
    for again in (pickled, pickle.loads(pickle.dumps(loaded, 2)), copy.deepcopy(model)):
        assert_same_answers(answers(again), before)
        assert saved(again) == data
        assert again.get_params().keys() == model.get_params().keys()
    assert_same_answers(answers(through_joblib(model)), before)
    assert not hasattr(clone(model), "n_features_in_")
    if hasattr(model, "fingerprint"):
        assert loaded.fingerprint() == model.fingerprint()


def test_a_mapped_file_of_joblib_is_checked_too(tmp_path):
    model = MODELS["Regressor rows"]()
    joblib.dump(model, tmp_path / "model")
    assert_same_answers(answers(joblib.load(tmp_path / "model", mmap_mode="r")), answers(model))


@pytest.mark.parametrize(
    "name", ["classes, tree", "Regressor rows", "imputer", "bagging Classifier trees", "isolation"]
)
def test_no_attribute_of_a_pickle_can_change_unnoticed(name):
    model = MODELS[name]()
    state = model.__getstate__()
    fresh = type(model).__new__(type(model))
    for changed in state:
        lacking = {key: value for key, value in state.items() if key != changed}
        for other in (lacking, *(lacking | {changed: value} for value in (b"", state[changed][:-1], [object()], 12.5))):
            if other.get(changed) != state[changed]:
                with pytest.raises(spinney.ModelFileError, match="this pickle: the file is"):
                    fresh.__setstate__(other)
    with pytest.raises(spinney.ModelFileError, match=r"is damaged: it has attributes that were not pickled"):
        fresh.__setstate__(state | {"more": 1})
    with pytest.raises(spinney.ModelFileError, match=r"its attributes do not match its model"):
        spinney.DecisionTreeRegressor.__new__(spinney.DecisionTreeRegressor).__setstate__(state)
    assert vars(fresh) == {}


def test_a_parameter_that_flipped_is_noticed_before_the_first_fit():
    data = pickle.dumps(spinney.RandomForestRegressor(n_estimators=117))
    flipped = data.replace(b"K\x75", b"K\x74")
    assert flipped != data
    with pytest.raises(spinney.ModelFileError, match="its attributes do not match their checksum"):
        pickle.loads(flipped)


def test_labels_that_no_file_holds_can_be_pickled():
    X, days = np.arange(12.0)[:, None], np.repeat(np.arange(3), 4).astype("M8[D]")
    for model in (
        spinney.DecisionTreeClassifier(),
        spinney.RandomForestClassifier(2),
        spinney.GradientBoostingClassifier(n_estimators=2),
        spinney.BaggingClassifier(n_estimators=2),
    ):
        again = pickle.loads(pickle.dumps(model.fit(X, days)))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.classes_.dtype == model.classes_.dtype


class OwnTree(spinney.DecisionTreeRegressor):
    """A user's subclass with more attributes, some of which it does not pickle."""

    def fit(self, X, y, **parameters):
        super().fit(X, y, **parameters)
        self.seen_ = len(X)
        self.cache = {"rows": np.asarray(X)}
        self.lock = object()
        return self

    def __getstate__(self):
        return super().__getstate__() | {"cache": None, "lock": None}


def own_score(estimator, X, y):
    return -1.0


def test_subclasses_and_functions_among_the_parameters():
    X, y = np.arange(30.0)[:, None], np.arange(30.0)
    model = OwnTree(prune="cv", cv=3, scoring=own_score, random_state=np.random.RandomState(3)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is OwnTree
    assert (again.seen_, again.cache, again.scoring) == (30, None, own_score)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.random_state.randint(10**6) == model.random_state.randint(10**6)
    boosted = spinney.GradientBoostingRegressor(n_estimators=3, callbacks=[own_score]).set_params(callbacks=None)
    assert pickle.loads(pickle.dumps(boosted.fit(X, y))).n_iter_ == 3


def test_members_of_other_libraries_are_pickled_as_they_pickle_themselves():
    from sklearn.linear_model import Ridge

    X, y = np.arange(30.0)[:, None], np.arange(30.0)
    model = spinney.BaggingRegressor(Ridge(), n_estimators=3, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="Pickle the ensemble instead"):
        model.save(io.BytesIO())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_an_unfitted_estimator_is_pickled_with_its_parameters():
    for name in spinney.__all__:
        kind = getattr(spinney, name)
        if isinstance(kind, type) and hasattr(kind, "get_params"):
            model = kind()
            if "random_state" in model.get_params(deep=False):
                model.set_params(random_state=5)
            with warnings.catch_warnings(action="error"):
                assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
