"""Option objects: values of parameters, by name and nested, in grids, files and errors."""

import io
import pickle
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
import spinney
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from spinney._boosting.options.option_objects import OPTION_CLASSES, setting_names
from spinney._boosting.settings import BoostingSettings
from spinney._estimator.parameters import allowed_values

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.1 * RNG.normal(size=120)
SMALL = {"n_estimators": 6, "max_leaf_nodes": 4, "min_samples_leaf": 5, "random_state": 0}
BOOSTERS = [getattr(spinney, f"GradientBoosting{name}") for name in ("Classifier", "Regressor", "Ranker", "Survival")]


def values(**parameters):
    return spinney.GradientBoostingRegressor(**SMALL | parameters)


@pytest.mark.parametrize("kind", BOOSTERS)
def test_boosters_have_about_forty_parameters(kind):
    assert len(kind().get_params(deep=False)) <= 45
    assert OPTION_CLASSES.keys() <= kind().get_params(deep=False).keys()


@pytest.mark.parametrize("kind", OPTION_CLASSES.values())
def test_options_are_immutable_values(kind):
    options = kind()
    assert repr(options) == f"{kind.__name__}()"
    assert options == kind(**options.get_params()) == clone(options) == pickle.loads(pickle.dumps(options))
    assert allowed_values(kind).keys() == options.get_params().keys() == {field.name for field in fields(kind)}
    with pytest.raises(FrozenInstanceError):
        setattr(options, fields(kind)[0].name, 1)
    for name in options.get_params():
        assert f"\n    {name} : " in kind.__doc__


@pytest.mark.parametrize("parameter", OPTION_CLASSES)
def test_defaults_of_options_are_those_of_the_settings(parameter):
    """A parameter that is left out, and an option object with defaults, give the same settings."""
    kind, plain = OPTION_CLASSES[parameter], BoostingSettings.of(values())
    given = BoostingSettings.of(values(**{parameter: kind()}))
    for option in set(kind().get_params()) - ({"rate"} if parameter == "dart" else set()):
        name = setting_names(kind)[option]
        assert getattr(given, name) == getattr(plain, name)


@pytest.mark.parametrize(
    ("parameter", "same"),
    [
        ("dart", [True, 0.1, {}, {"rate": 0.1}, spinney.Dart()]),
        ("dart", [None, False, 0, spinney.Dart(rate=0.0)]),
        ("sampling", ["goss", {}, {"top_rate": 0.2}, spinney.Goss()]),
        ("linear_leaves", [True, {}, {"l2": 5.0}, spinney.LinearLeaves(5.0)]),
        ("growth", ["symmetric", {"order": "symmetric"}, spinney.Growth("symmetric")]),
        ("feature_sampling", [0.5, {"per_tree": 0.5}, spinney.FeatureSampling(per_tree=0.5)]),
        ("regularization", [{"l1": 2.0}, spinney.Regularization(l1=2.0)]),
        ("categories", [None, {}, spinney.CategoryOptions()]),
    ],
)
def test_plain_values_dicts_and_objects_fit_the_same_model(parameter, same):
    found = {values(**{parameter: value}).fit(X, Y).fingerprint() for value in same}
    assert len(found) == 1
    assert (values().fit(X, Y).fingerprint() in found) == (None in same)


def test_options_are_set_by_nested_names():
    model = values(dart=spinney.Dart(rate=0.3, skip=0.2))
    assert model.get_params()["dart__rate"] == 0.3
    assert model.set_params(dart__rate=0.5).dart == spinney.Dart(rate=0.5, skip=0.2)
    assert values().set_params(dart__skip=0.5).dart == spinney.Dart(skip=0.5)
    assert values(growth="symmetric").set_params(growth__n_parallel_trees=2).growth == spinney.Growth(
        "symmetric", None, 2
    )
    assert values().set_params(dart=0.2, dart__skip=0.1).dart == spinney.Dart(0.2, 0.1)
    copy = clone(model)
    assert copy.dart == model.dart
    copy.set_params(dart__rate=0.1)
    assert model.dart.rate == 0.5
    with pytest.raises(ValueError, match=r"dart \(Dart\) has no option 'rat'. Did you mean 'rate'\?"):
        model.set_params(dart__rat=0.1)


def test_a_grid_searches_over_options():
    grid = {"dart__rate": [0.0, 0.9], "regularization": [{"l1": 0.0}, spinney.Regularization(l1=1e6)]}
    found = GridSearchCV(values(), grid, cv=2).fit(X, Y)
    assert found.best_params_["regularization"] == {"l1": 0.0}
    assert len({str(given) for given in found.cv_results_["params"]}) == 4


def test_files_hold_options():
    options = {
        "growth": spinney.Growth("depth", forced_splits={"feature": 0, "threshold": 0.1}),
        "feature_sampling": spinney.FeatureSampling(weights=np.array([1.0, 2.0, 3.0]), per_tree=0.7),
        "categories": {"max_one_hot": 3},
        "dart": 0.2,
        "sampling": spinney.Goss(),
    }
    model, file = values(**options).fit(X, Y), io.BytesIO()
    model.save(file)
    file.seek(0)
    found = spinney.load(file)
    for name in ("growth", "categories", "dart", "sampling"):
        assert getattr(found, name) == options[name]
    assert repr(found.feature_sampling) == repr(options["feature_sampling"])
    assert pickle.loads(pickle.dumps(model)).growth == options["growth"]
    assert found.set_params(n_jobs=1).fit(X, Y).fingerprint() == model.fingerprint()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dart": {"rate": 2}}, "The 'dart__rate' parameter of GradientBoostingRegressor must be"),
        ({"dart": spinney.Dart(by="chance")}, "The 'dart__by' parameter"),
        ({"dart": "yes"}, "The 'dart' parameter of GradientBoostingRegressor must be"),
        ({"growth": {"order": "breadth"}}, "The 'growth__order' parameter"),
        ({"regularization": spinney.Regularization(l1=-1)}, "The 'regularization__l1' parameter"),
        ({"regularization": {"l3": 1}}, r"regularization \(Regularization\) has no option 'l3'. It has l1, max_step,"),
        ({"categories": spinney.Dart()}, "The 'categories' parameter"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        values(**given).fit(X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dart": False, "dart__rate": 0.5}, "dart=False has no options, so that dart__rate cannot be set"),
        ({"linear_leaves": False, "linear_leaves__l2": 1.0}, "linear_leaves=False has no options"),
        ({"sampling": "gradient", "sampling__top_rate": 0.3}, "sampling='gradient' has no options"),
        ({"sampling": "uniform", "sampling__top_rate": 0.3}, "sampling='uniform' has no options"),
    ],
)
def test_options_of_what_is_switched_off_are_refused(parameters, message):
    model = spinney.GradientBoostingRegressor()
    with pytest.raises(ValueError, match=message):
        model.set_params(**parameters)
    assert repr(model) == "GradientBoostingRegressor()"


def test_an_option_alone_switches_its_group_on():
    model = spinney.GradientBoostingRegressor().set_params(dart__rate=0.5, sampling__top_rate=0.3)
    assert (model.dart, model.sampling) == (spinney.Dart(rate=0.5), spinney.Goss(top_rate=0.3))


def test_messages_call_option_objects_by_their_public_names():
    with pytest.raises(ValueError, match=r"an instance of 'spinney\.Dart'"):
        spinney.GradientBoostingRegressor(dart="often").fit([[0.0], [1.0]], [0.0, 1.0])
    assert pickle.loads(pickle.dumps(spinney.Dart(rate=0.2))) == spinney.Dart(rate=0.2)
