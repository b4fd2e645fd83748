"""What an estimator shows is what it has: attributes can be read, are documented, and are its own."""

import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import spinney
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError

ESTIMATORS = [
    name
    for name in spinney.__all__
    if isinstance(getattr(spinney, name), type) and issubclass(getattr(spinney, name), BaseEstimator)
]
KEPT = {"oob_score": True, "keep_rows": True}
MORE = {  # parameters that bring further attributes
    "BaggingClassifier": {"oob_score": True},
    "BaggingRegressor": {"oob_score": True},
    "DecisionTreeClassifier": {"prune": "cv"},
    "DecisionTreeRegressor": {"prune": "cv"},
    "ExtraSurvivalTrees": {"bootstrap": True, **KEPT},
    "ExtraTreesClassifier": {"bootstrap": True, **KEPT},
    "ExtraTreesRegressor": {"bootstrap": True, **KEPT},
    "GradientBoostingClassifier": {"early_stopping": True, "subsample": 0.5},
    "GradientBoostingRegressor": {"early_stopping": True, "subsample": 0.5},
    "GradientBoostingSurvival": {"loss": "aft", "early_stopping": True, "subsample": 0.5},
    "RandomForestClassifier": KEPT,
    "RandomForestRegressor": KEPT,
    "RandomSurvivalForest": KEPT,
    "SurvivalTree": {"prune": "cv"},
}
FAST = {"n_estimators": 20, "random_state": 0}  # 20 drawn anew leave a row in all samples now and then
GOLDEN = Path(__file__).parents[2] / "golden" / "imported"
IMPORTED = {"ImportedClassifier": "xgboost_binary.ubj", "ImportedRegressor": "xgboost_squared.json"}


def make(name, **parameters):
    kind = getattr(spinney, name)
    known = inspect.signature(kind).parameters
    return kind(**{**{k: v for k, v in FAST.items() if k in known}, **parameters})


def fitted(model):
    if type(model).__name__ in IMPORTED:
        return spinney.from_xgboost(GOLDEN / IMPORTED[type(model).__name__])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + X[:, 1] ** 2
    if model.__sklearn_tags__().target_tags.positive_only:
        y = np.abs(y) + 0.1
    return model.fit(X, (y > 0.5) if is_classifier(model) else y)


def states():
    for name in ESTIMATORS:
        for parameters in [{}, *([MORE[name]] if name in MORE else [])]:
            yield pytest.param(name, parameters, False, id=f"{name}-{bool(parameters)}-new")
            yield pytest.param(name, parameters, True, id=f"{name}-{bool(parameters)}-fitted")
    for name in ("DecisionTreeClassifier", "DecisionTreeRegressor"):
        parameters = {"dialect": "rpart", "max_depth": 5, "missing": "surrogate"}
        yield pytest.param(name, parameters, True, id=f"{name}-rpart-fitted")


def public(names):
    return [name for name in names if not name.startswith("_")]


def documented(kind):
    """Names in the sections Parameters and Attributes of a class's docstring."""
    return set(re.findall(r"^(\w[\w, ]*) : ", kind.__doc__, flags=re.MULTILINE))


@pytest.mark.filterwarnings("ignore:The perceptron still misclassified rows")  # the rows cannot be separated
@pytest.mark.parametrize(("name", "parameters", "is_fitted"), list(states()))
def test_every_attribute_can_be_read_and_is_documented(name, parameters, is_fitted):
    model = make(name, **parameters)
    if is_fitted:
        model = fitted(model)
    kind = type(model)
    known = {*model.get_params(deep=False), *kind._other_names}  # parameters, also by names that others give them
    texts = documented(kind)
    for attribute in public(dir(model)):
        value = getattr(model, attribute)
        if attribute in known:
            continue
        if callable(value):
            assert inspect.getdoc(value), f"{attribute}() has no docstring"
        else:
            assert attribute in texts, f"{attribute} is not documented"
            assert attribute.endswith("_"), f"{attribute} is neither a parameter nor learned"
            assert is_fitted, f"{attribute} is there before fit"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_missing_attributes_raise_with_a_reason(name):
    model = make(name)
    for attribute in public(dir(type(model))):
        if hasattr(model, attribute):
            continue
        with pytest.raises(AttributeError) as found:
            getattr(model, attribute)
        assert isinstance(found.value, NotFittedError) or str(found.value).startswith(f"{name}.{attribute} ")
        assert attribute not in dir(model)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "ExtraTreesClassifier"])
def test_forests_of_classes_have_no_quantiles(name):
    model = getattr(spinney, name)(keep_rows=True, bootstrap=True)
    assert hasattr(model, "predict_set")
    for missing in ("predict_quantiles", "predict_interval", "predict_cdf"):
        assert not hasattr(model, missing)
        assert missing not in dir(type(model))
    with pytest.raises(AttributeError, match=rf"{name}\.predict_interval .* predicts classes. Use predict_set"):
        model.predict_interval([[1.0]])


@pytest.mark.parametrize("name", ["RandomForestRegressor", "ExtraTreesRegressor"])
def test_forests_of_numbers_have_no_sets_of_classes(name):
    model = getattr(spinney, name)(keep_rows=True, bootstrap=True)
    assert hasattr(model, "predict_interval")
    assert not hasattr(model, "predict_set")
    with pytest.raises(AttributeError, match=rf"{name}\.predict_set .* predicts numbers. Use predict_interval"):
        model.predict_set([[1.0]])


@pytest.mark.parametrize("is_fitted", [False, True])
def test_what_needs_kept_rows_is_there_if_they_are_kept(is_fitted):
    names = {"leaf_weights", "predict_quantiles", "predict_cdf", "predict_interval", "coverage_report"}
    without, kept = make("RandomForestRegressor"), make("RandomForestRegressor", keep_rows=True)
    all_seen = make("RandomForestRegressor", keep_rows=True, bootstrap=False)
    for model in (without, kept, all_seen) if is_fitted else ():
        fitted(model)
    assert names & set(dir(without)) == set()
    assert names <= set(dir(kept))
    assert names & set(dir(all_seen)) == {"leaf_weights", "predict_quantiles", "predict_cdf"}
    with pytest.raises(AttributeError, match=r"predict_quantiles needs .* keep_rows=True"):
        without.predict_quantiles([[1.0, 1.0, 1.0]])
    with pytest.raises(AttributeError, match=r"predict_interval needs .* bootstrap=True"):
        all_seen.predict_interval([[1.0, 1.0, 1.0]])


def test_rparts_words_are_there_if_its_rules_are():
    plain, by_rpart = spinney.DecisionTreeClassifier(), spinney.DecisionTreeClassifier.rpart()
    for name in ("printcp", "summary", "rpart_frame", "rpart_splits"):
        assert not hasattr(plain, name)
        assert hasattr(by_rpart, name)
        assert hasattr(pickle.loads(pickle.dumps(fitted(by_rpart))), name)
    with pytest.raises(AttributeError, match=r"DecisionTreeClassifier\.printcp needs .*rpart\(...\)"):
        fitted(plain).printcp()


def test_an_attribute_that_nobody_has_is_refused_as_usual():
    with pytest.raises(AttributeError, match="'RandomForestClassifier' object has no attribute 'colour'"):
        _ = spinney.RandomForestClassifier().colour
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = spinney.RandomForestClassifier().feature_importances_
