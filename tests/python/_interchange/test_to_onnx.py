"""Models exported to ONNX predict in onnxruntime as in Python."""

import numpy as np
import pytest
import spinney
from written_models import (
    AVERAGES,
    GRADED,
    LINEAR_AVERAGE,
    MIXED,
    MODELS,
    NUMBERS,
    PAIR,
    VALUES,
    cuts_of,
    is_clear,
    predictions_of,
    probe,
    schema_of,
    table_of,
)

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
CARRIED = sorted(set(MODELS) - {"surrogates"})
QUICK = ["tree of numbers", "boosting of two", "boosting of three, linear"]


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        spinney.to_onnx(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def fed(model, session, columns):
    """Return inputs of the graph: an empty string, or one that is not a category, is missing."""
    if [given.name for given in session.get_inputs()] == ["X"]:
        return {"X": np.column_stack(list(columns.values())).astype(float)}
    inputs = {}
    for feature in schema_of(model).features:
        column = columns[feature.name]
        if feature.holds_text:
            absent = "missing" if "" in feature.categories else ""
            column = np.array([absent if value is None else value for value in column], dtype=object)
        else:
            column = column.astype(float)
        inputs[feature.name] = column[:, np.newaxis]
    return inputs


def assert_same(model, columns):
    session = session_of(model)
    proba, labels = predictions_of(model, table_of(model, columns))
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, fed(model, session, columns)), strict=True))
    if labels is None:
        np.testing.assert_allclose(found["prediction"].reshape(proba.shape), proba, rtol=1e-13, atol=1e-14)
        return
    values = found.get("probabilities", found.get("score")).reshape(proba.shape)
    np.testing.assert_allclose(values, proba, rtol=1e-12, atol=1e-14)
    clear = is_clear(model, proba) | (getattr(model, "cost_matrix", None) is not None)
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(found["prediction"][clear], labels[clear])


def without_clash(name):
    """The model of a name, refitted without the empty string if ONNX cannot distinguish it from a missing value."""
    model = MODELS[name]()
    if model.unseen == "other" and "colour" in model.schema_.names:
        table = dict(MIXED) | {"colour": np.where(MIXED["colour"] == "", "empty", MIXED["colour"])}
        model = model.fit(table, PAIR if hasattr(model, "classes_") else VALUES)
    return model


@pytest.mark.parametrize("name", AVERAGES)
def test_averages(name):
    model = AVERAGES[name]()
    assert_same(model, probe(model))


def test_an_average_with_linear_leaves():
    model = LINEAR_AVERAGE()
    assert_same(model, probe(model))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CARRIED]
)
def test_the_same_predictions(name):
    model = without_clash(name)
    assert_same(model, probe(model))


@pytest.mark.slow
def test_a_forest_of_plain_numbers_decides_as_doubles_do():
    model = spinney.RandomForestRegressor(20, random_state=0).fit(NUMBERS, VALUES)
    assert sum(map(len, cuts_of(model))) > 100
    assert_same(model, probe(model))


@pytest.mark.slow
def test_sets_of_every_size():
    """Small sets are members of a node, large ones indicator columns; both for strings and numbers."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 31, 32, 33, 34, 40, 64, 65, 130):
        codes = rng.integers(0, n, 40 * n)
        y = rng.integers(0, 4, n)[codes] + rng.normal(size=len(codes))
        model = spinney.DecisionTreeRegressor(categorical_features=[0], max_depth=5).fit(codes[:, np.newaxis], y)
        column = np.array([*np.arange(n), np.nan, n + 1, -1, 0.5])
        assert_same(model, {"x0": column})


@pytest.mark.slow
def test_ordered_categories():
    pandas = pytest.importorskip("pandas")
    grades = ["low", "middle", "high", "top"]
    rng = np.random.default_rng(1)
    column = pandas.Categorical(np.array(grades)[rng.integers(0, 4, 80)], categories=grades, ordered=True)
    X = pandas.DataFrame({"grade": column, "x": rng.normal(size=80)})
    y = X["grade"].cat.codes.to_numpy() % 3 + X["x"].to_numpy()
    model = spinney.DecisionTreeRegressor(max_depth=4).fit(X, y)
    rows = {"grade": np.array([*grades, "unheard of", ""] * 5, dtype=object), "x": rng.normal(size=30)}
    session = session_of(model)
    own = {"grade": [None if v == "" else v for v in rows["grade"]], "x": rows["x"]}
    np.testing.assert_array_equal(session.run(None, fed(model, session, rows))[0], model.predict(own))
    numbers = dict(GRADED)
    frame = pandas.DataFrame(numbers)
    frame["grade"] = pandas.Categorical(frame["grade"], categories=[8, 5, 3, 2, 1], ordered=True)
    model = spinney.DecisionTreeRegressor(max_depth=4).fit(frame, VALUES)
    session = session_of(model)
    np.testing.assert_array_equal(session.run(None, fed(model, session, numbers))[0], model.predict(frame))


@pytest.mark.slow
@pytest.mark.parametrize("labels", [[3, 7], [False, True], [1.0, 2.0], ["a", "b"]])
def test_labels_of_every_kind(labels):
    y = np.array(labels)[(VALUES > 0).astype(int)]
    model = spinney.DecisionTreeClassifier(max_depth=3).fit(NUMBERS, y)
    assert_same(model, probe(model))


def test_refusals_say_what_to_do():
    with pytest.raises(ValueError, match="empty string"):
        spinney.to_onnx(MODELS["forest, other"]())
    y = np.column_stack([PAIR, PAIR])
    with pytest.raises(ValueError, match="2 outputs"):
        spinney.to_onnx(spinney.DecisionTreeClassifier(max_depth=2).fit(NUMBERS, y))
    with pytest.raises(ValueError, match="Rename it"):
        spinney.to_onnx(spinney.DecisionTreeRegressor().fit({"score": ["a", "b"], "x": [1, 2]}, [1.0, 2.0]))


def test_without_the_package_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"spinney-ml\[onnx\]"):
        spinney.to_onnx(MODELS["a leaf"]())
