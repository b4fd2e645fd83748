"""Input that is odd but legal, and input that is refused with a message that names the culprit."""

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle.data import continuous_table, target_for, weights_for
from oracle.models import TREES, assert_identical, bits
from sklearn.exceptions import NotFittedError

Classifier, Regressor = spinney.DecisionTreeClassifier, spinney.DecisionTreeRegressor


def make(name, **params):
    return getattr(spinney, name)(**params)


@pytest.fixture(scope="module")
def sample():
    X = continuous_table(80, n=120)
    return X, target_for("gini", X, 80, n_classes=3), target_for("squared_error", X, 80)


# ---- odd but legal input


@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "ExtraTreeClassifier"])
def test_one_class(name):
    model = make(name).fit(continuous_table(90, n=10), ["only"] * 10)
    assert model.predict(np.zeros((2, 4))).tolist() == ["only", "only"]
    assert model.predict_proba(np.zeros((2, 4))).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("name", TREES)
def test_one_row(name):
    model = make(name).fit([[1.0, 2.0]], [3])
    assert model.get_n_leaves() == 1
    assert model.predict([[5.0, 5.0]]).tolist() == [3]


@pytest.mark.parametrize("name", TREES)
def test_constant_columns_make_one_leaf(name):
    model = make(name).fit(np.ones((6, 3)), [0, 1, 0, 1, 1, 1])
    assert model.get_n_leaves() == 1
    expected = [[1 / 3, 2 / 3]] if "Classifier" in name else [2 / 3]
    np.testing.assert_allclose(bits(model, np.ones((1, 3))), expected)


@pytest.mark.parametrize("name", TREES)
def test_rows_of_weight_zero_are_not_there(name):
    X = continuous_table(91, n=60)
    y = target_for("gini", X, 91)
    w = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    first = make(name, random_state=0, max_features=None).fit(X, y, sample_weight=w)
    second = make(name, random_state=0, max_features=None).fit(X[w > 0], y[w > 0])
    if "Extra" not in name:  # a random threshold may depend on the number of a row
        assert_identical(first, second)
    assert first.tree_.n_node_samples[0] == 40


def test_a_class_of_weight_zero_keeps_its_column():
    model = Classifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"], sample_weight=[1, 1, 0])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_proba([[2.0]]).tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**30, 1e-250, 1e250])
def test_the_unit_of_the_weights_does_not_matter(unit, sample):
    X, y, values = sample
    w = weights_for(92, 120, "real")
    for kind, target in ((Classifier, y), (Regressor, values)):
        first = kind(min_samples_leaf=3).fit(X, target, sample_weight=w)
        second = kind(min_samples_leaf=3).fit(X, target, sample_weight=w * unit)
        np.testing.assert_array_equal(first.tree_.feature, second.tree_.feature)
        np.testing.assert_array_equal(first.tree_.threshold, second.tree_.threshold)
        np.testing.assert_allclose(first.tree_.value, second.tree_.value, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e150, 1e299])
def test_targets_of_extreme_size(size):
    y = np.linspace(-1, 1, 60)
    model = Regressor(max_depth=2).fit(np.arange(60.0)[:, None], y * size)
    expected = Regressor(max_depth=2).fit(np.arange(60.0)[:, None], y)
    np.testing.assert_allclose(model.predict([[0.0], [59.0]]) / size, expected.predict([[0.0], [59.0]]), rtol=1e-12)


def test_weights_that_differ_a_lot():
    X = np.arange(6.0)[:, None]
    y = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    model = Regressor().fit(X, y, sample_weight=[1e-12, 1e-6, 1.0, 1e3, 1e6, 1e9])
    assert model.predict(X).tolist() == pytest.approx(y, abs=1e-6)


def test_columns_of_y_as_a_column_vector(sample):
    X, _, values = sample
    model = Regressor(max_depth=3).fit(X, values[:, None])
    assert model.predict(X).shape == (120,)


@pytest.mark.parametrize("low", [np.iinfo(np.int64).min, -130, 0, np.iinfo(np.int64).max - 9])
@pytest.mark.parametrize("step", [1, 3, 2**20])
def test_integers_of_any_size_are_labels(low, step, sample):
    X, y, _ = sample
    labels = np.array([low + (step if low < 2**62 else 1) * int(k) for k in y])
    model = Classifier().fit(X, labels)
    assert model.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    np.testing.assert_array_equal(model.predict(X), labels)
    small = Classifier().fit(X, (y * 100 - 100).astype(np.int8))
    np.testing.assert_array_equal(small.predict(X), y * 100 - 100)


def test_the_tree_before_is_replaced(sample):
    X, y, _ = sample
    model = Classifier().fit(X, y)
    model.set_params(max_depth=1).fit(X[:, :2], y)
    assert (model.n_features_in_, model.get_depth()) == (2, 1)


def test_a_failed_fit_leaves_the_model_as_it_was(sample):
    X, y, _ = sample
    model = Classifier(max_depth=2).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=-np.ones(120))
    np.testing.assert_array_equal(model.predict(X), before)


# ---- bad input

BAD_PARAMETERS = [
    {"criterion": "gin"},
    {"criterion": 3},
    {"splitter": "worst"},
    {"max_depth": 0},
    {"max_depth": -1},
    {"max_depth": 2.5},
    {"min_samples_split": 1},
    {"min_samples_split": 0.0},
    {"min_samples_split": 1.5},
    {"min_samples_leaf": 0},
    {"min_samples_leaf": 0.0},
    {"min_samples_leaf": 1.2},
    {"min_weight_fraction_leaf": -0.1},
    {"min_weight_fraction_leaf": 0.6},
    {"max_features": 0},
    {"max_features": -2},
    {"max_features": 0.0},
    {"max_features": 1.5},
    {"max_features": "many"},
    {"max_leaf_nodes": 1},
    {"max_leaf_nodes": 0},
    {"min_impurity_decrease": -1e-3},
    {"ccp_alpha": -1.0},
    {"max_bins": 1},
    {"max_bins": 2.5},
    {"unseen": "drop"},
    {"validation_fraction": 0.0},
    {"validation_fraction": 1.0},
    {"validation_fraction": -0.2},
    {"random_state": "seed"},
    {"random_state": -1},
    {"n_jobs": "all"},
    {"n_jobs": 0},
    {"n_jobs": 2**40},
    {"categorical_features": ["colour"]},
    {"categorical_features": [9]},
]


@pytest.mark.parametrize("params", BAD_PARAMETERS, ids=lambda p: "-".join(f"{k}={v}" for k, v in p.items()))
@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "DecisionTreeRegressor"])
def test_bad_parameters_are_named(name, params, sample):
    X, y, _ = sample
    with pytest.raises((ValueError, TypeError), match=next(iter(params)) + "|seed"):
        make(name, **params).fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"min_purity": 1.5},
        {"min_purity": -0.1},
        {"class_weight": "even"},
        {"class_weight": {0: 1, 9: 2}},
        {"class_weight": {0: -1.0, 1: 1.0, 2: 1.0}},
        {"class_weight": {0: 0, 1: 0, 2: 0}},
        {"class_weight": 3},
    ],
    ids=str,
)
def test_bad_parameters_of_classifiers_are_named(params, sample):
    X, y, _ = sample
    with pytest.raises((ValueError, TypeError), match=r"min_purity|class_weight"):
        Classifier(**params).fit(X, y)


@pytest.mark.parametrize(
    "name", ["DecisionTreeClassifier", "RandomForestClassifier", "GradientBoostingClassifier", "SVC"]
)
def test_weights_of_classes_that_y_lacks_are_refused_unless_all_others_have_one(name, sample):
    X, y, _ = sample
    kind, labels = getattr(spinney, name), np.where(y > 0, "yes", "no")
    with pytest.raises(ValueError, match=r"class_weight names a class that .* y: 'ja'. The classes are: 'no', 'yes'\."):
        kind(class_weight={"ja": 2.0, "no": 1.0}).fit(X, labels)
    kind(class_weight={"ja": 2.0, "no": 1.0, "yes": 3.0}).fit(X, labels)  # as for a fold without a rare class


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_classifiers_refuse_criteria_of_regressors(criterion, sample):
    X, y, _ = sample
    with pytest.raises(ValueError, match="criterion"):
        Classifier(criterion=criterion).fit(X, y)
    with pytest.raises(ValueError, match="criterion"):
        Regressor(criterion="gini").fit(X, y)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("max_dept", "max_depth"), ("criteria", "criterion"), ("min_sample_leaf", "min_samples_leaf")],
)
def test_a_misspelt_parameter_names_the_nearest(name, wrong, nearest):
    with pytest.raises(TypeError, match=rf"{wrong}.*{nearest}"):
        make(name, **{wrong: 3})
    with pytest.raises(ValueError, match=wrong):
        make(name).set_params(**{wrong: 3})


def bad_target(kind):
    y = np.arange(12) % 2.0
    return {
        "nan": np.where(np.arange(12) == 3, np.nan, y),
        "infinite": np.where(np.arange(12) == 3, np.inf, y),
        "none": None,
        "too short": y[:11],
        "too long": np.append(y, 1.0),
        "empty": y[:0],
        "three dimensions": y.reshape(12, 1, 1),
        "complex": y + 1j,
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nan", "NaN|missing"),
        ("infinite", "infinit"),
        ("none", "y"),
        ("too short", "11"),
        ("too long", "13"),
        ("empty", "0|empty|inconsistent"),
        ("three dimensions", "y|dim"),
        ("complex", "[Cc]omplex"),
    ],
)
@pytest.mark.parametrize("name", ["DecisionTreeClassifier", "DecisionTreeRegressor"])
def test_bad_targets_are_refused(name, kind, message):
    with pytest.raises(ValueError, match=message):
        make(name).fit(np.arange(12.0)[:, None], bad_target(kind))


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA], ids=str)
def test_missing_class_labels_are_refused(missing):
    y = pd.Series(["a", "b", missing, "a"], dtype=object)
    with pytest.raises((ValueError, TypeError), match=r"y|missing|NaN|target"):
        Classifier().fit(np.arange(4.0)[:, None], y)


def test_labels_of_two_types_are_refused_in_words():
    with pytest.raises(TypeError, match=r"labels.*type"):
        Classifier().fit(np.arange(4.0)[:, None], np.array(["a", 1, "a", 1], dtype=object))


def test_strings_as_numbers_to_predict_are_refused():
    with pytest.raises((ValueError, TypeError), match=r"string|number|numeric|float"):
        Regressor().fit(np.arange(3.0)[:, None], ["low", "mid", "high"])


@pytest.mark.parametrize(
    ("y", "message"),
    [([0.0, -1.0, 2.0], "negative|poisson|Poisson"), ([0.0, 0.0, 0.0], "positive|zero|Poisson")],
)
def test_poisson_refuses_targets_without_a_rate(y, message):
    with pytest.raises(ValueError, match=message):
        Regressor(criterion="poisson").fit([[0.0], [1.0], [2.0]], y)


def test_poisson_refuses_a_rate_of_zero_under_the_weights():
    with pytest.raises(ValueError, match=r"positive|zero|Poisson"):
        Regressor(criterion="poisson").fit([[0.0], [1.0]], [0.0, 1.0], sample_weight=[1.0, 0.0])


BAD_WEIGHTS = {
    "negative": (np.where(np.arange(12) == 4, -1.0, 1.0), "sample_weight|[Nn]egative"),
    "nan": (np.where(np.arange(12) == 4, np.nan, 1.0), "sample_weight|NaN"),
    "infinite": (np.where(np.arange(12) == 4, np.inf, 1.0), "sample_weight|infinit"),
    "zero": (np.zeros(12), "sample_weight|zero|positive"),
    "overflow": (np.full(12, 1e308), "sample_weight|weights"),
    "short": (np.ones(11), "sample_weight|11"),
    "matrix": (np.ones((12, 2)), "sample_weight|[Ss]ample weights"),
    "strings": (np.array(["a"] * 12), "sample_weight|string|float"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
@pytest.mark.parametrize("name", TREES)
def test_bad_weights_are_refused(name, case):
    weights, message = BAD_WEIGHTS[case]
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        make(name).fit(np.arange(12.0)[:, None], np.arange(12) % 2, sample_weight=weights)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(12.0), "2D|two|dimension"),
        (np.zeros((12, 0)), "feature|column"),
        (np.zeros((0, 3)), "0 sample|empty|no rows|row"),
        (np.zeros((12, 2, 2)), "dim|2D|two"),
        (np.ones((12, 1)) * 1j, "[Cc]omplex"),
        (None, "X|None|array|table"),
        ("text", "no file"),  # a text names files
        ([[1.0], [2.0, 3.0]] * 6, "length|shape|inhomogeneous|row"),
    ],
    ids=["vector", "no columns", "no rows", "cube", "complex", "none", "string", "ragged"],
)
def test_bad_tables_are_refused(X, message):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        Classifier().fit(X, np.arange(12) % 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, X: m.predict(X),
        lambda m, X: m.apply(X),
        lambda m, X: m.decision_path(X),
        lambda m, X: m.get_depth(),
        lambda m, X: m.get_n_leaves(),
        lambda m, X: m.to_predictor(),
        lambda m, X: m.feature_importances_,
    ],
)
@pytest.mark.parametrize("name", TREES)
def test_nothing_works_before_fit(name, call):
    with pytest.raises(NotFittedError, match=name):
        call(make(name), np.zeros((2, 2)))


@pytest.mark.parametrize("n_columns", [1, 5])
def test_the_number_of_columns_is_checked(n_columns, sample):
    X, y, _ = sample
    model = Classifier(max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match=f"{n_columns} features.*4 features"):
        model.predict(np.zeros((3, n_columns)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X_val": np.zeros((5, 4))}, "y_val"),
        ({"y_val": np.zeros(5)}, "X_val"),
        ({"X_val": np.zeros((5, 4)), "y_val": np.zeros(4)}, "4|5|val"),
        ({"X_val": np.zeros((5, 3)), "y_val": np.zeros(5)}, "3 features|X_val"),
        ({"X_val": np.zeros((5, 4)), "y_val": np.full(5, np.nan)}, "NaN|missing"),
        ({"sample_weight_val": np.ones(5)}, "X_val|sample_weight_val"),
    ],
    ids=["no y", "no X", "lengths", "columns", "nan", "weights alone"],
)
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_bad_held_out_rows_are_refused(kind, arguments, message, sample):
    X, y, _ = sample
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, **arguments)


def test_held_out_rows_of_an_unknown_class_are_errors_wherever_they_go(sample):
    X, y, _ = sample
    known = Classifier().fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    X_val, y_val = np.vstack([X[80:], X[:5]]), np.append(y[80:], [7] * 5)
    assert_identical(known, Classifier().fit(X[:80], y[:80], X_val=X_val, y_val=y_val))


def test_held_out_rows_and_a_fraction_exclude_each_other(sample):
    X, y, _ = sample
    with pytest.raises(ValueError, match="validation_fraction"):
        Classifier(validation_fraction=0.2).fit(X, y, X_val=X, y_val=y)
