"""Saving and loading restore bit-identical models."""

import copy
import io
import json
import pickle
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from oracle.models import TREES
from oracle.saved import assert_same_answers, assert_same_model, bytes_of, through_bytes
from scipy import sparse
from sklearn.exceptions import NotFittedError
from spinney._model.file.values import parameters_from_json, parameters_to_json

PACKAGE_FOLDER = str(Path(spinney.__file__).parent.parent)


@pytest.fixture(scope="module")
def mixed():
    """A frame with every kind of column and missing values, classes and values."""
    rng = np.random.default_rng(80)
    n = 300
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "single": rng.normal(size=n).astype(np.float32),
            "integer": rng.integers(-5, 5, size=n),
            "boolean": rng.random(n) < 0.4,
            "town": rng.choice(["Ely", "Rye", "Wem", "Zürich"], size=n),
            "many": [f"k{i}" for i in rng.integers(0, 90, size=n)],
            "size": pd.Categorical(rng.choice(["S", "M", "L"], size=n), categories=["S", "M", "L"], ordered=True),
            "code": pd.Categorical(rng.choice([1.5, 7.0, np.inf], size=n)),
            "empty": np.full(n, np.nan),
        }
    )
    frame.loc[::7, "number"] = np.nan
    frame.loc[::5, "town"] = None
    frame.loc[::11, "size"] = None
    score = frame["number"].fillna(1) + (frame["town"] == "Rye") * 2 + (frame["size"] == "L") + rng.normal(size=n)
    return frame, np.where(score > 1, "high", np.where(score > 0, "mid", "low")), score.to_numpy()


COPIES = {
    "save": through_bytes,
    "pickle": lambda model: pickle.loads(pickle.dumps(model, protocol=5)),
    "old pickle": lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
}


# ---- round trips ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", TREES)
def test_every_estimator_is_restored_bit_identical(mixed, name, way):
    X, labels, values = mixed
    y = labels if "Classifier" in name else values
    model = getattr(spinney, name)(random_state=3, min_samples_leaf=2).fit(X, y)
    again = COPIES[way](model)
    assert_same_model(model, again, X)
    assert again.get_params() == model.get_params()
    assert again.feature_names_in_.tolist() == list(X.columns)
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


@pytest.mark.parametrize("name", TREES)
def test_predictors_are_bit_identical(mixed, name):
    X, labels, values = mixed
    model = getattr(spinney, name)(random_state=3).fit(X, labels if "Classifier" in name else values)
    predictor = through_bytes(model, spinney.load_predictor)
    assert_same_answers(model, predictor, X)
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    assert [predictor.predict_one(row) for row in rows[:60]] == list(model.predict(X[:60]))
    assert name in repr(predictor)
    if "Regressor" in name:
        with pytest.raises(AttributeError, match="Use predict"):
            predictor.predict_proba(X)


def frames(mixed):
    X = mixed[0].drop(columns="code")
    numbers = X[["number", "single", "integer"]].to_numpy()
    yield "pandas", X
    yield "polars", pl.from_pandas(X)
    yield "arrow", pl.from_pandas(X).to_arrow()
    yield "numpy", numbers
    yield "float32, Fortran order", np.asfortranarray(numbers.astype(np.float32))
    yield "booleans", X[["boolean"]].to_numpy()
    yield "sparse", sparse.csr_array(np.nan_to_num(numbers))
    yield "list", np.nan_to_num(numbers).tolist()
    yield "strings", X[["town", "many"]].to_numpy(dtype=object)


@pytest.mark.parametrize("kind", range(9))
def test_every_kind_of_frame_is_restored_bit_identical(mixed, kind):
    _, X = list(frames(mixed))[kind]
    for model in (spinney.DecisionTreeClassifier().fit(X, mixed[1]), spinney.DecisionTreeRegressor().fit(X, mixed[2])):
        for again in (through_bytes(model), pickle.loads(pickle.dumps(model))):
            assert_same_model(model, again, X)
        assert_same_answers(model, through_bytes(model, spinney.load_predictor), X)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b"]),
        np.array(["a", "b"], dtype="U300"),
        np.array(["a", "b"], dtype=object),
        np.array([-3, 2**62]),
        np.array([1, 200], dtype=np.uint8),
        np.array([0.1, 1e300]),
        np.array([0.1, 3], dtype=np.float32),
        np.array([False, True]),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels_keep_their_type(labels):
    y = labels[np.arange(20) % 2]
    if y.dtype.kind == "f":
        model = spinney.DecisionTreeClassifier().fit(np.arange(20.0)[:, None], np.arange(20) % 2)
        model.classes_ = labels  # scikit-learn takes fractions for a regression
    else:
        model = spinney.DecisionTreeClassifier().fit(np.arange(20.0)[:, None], y)
    for way in ("save", "pickle"):
        again = COPIES[way](model)
        assert again.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(again.classes_, model.classes_)
        assert_same_model(model, again, np.arange(20.0)[:, None])


def test_several_outputs_come_back(mixed):
    X, labels, values = mixed
    two = pd.DataFrame({"a": labels, "b": np.array(list("wxyz"))[np.arange(len(labels)) % 4]})
    model = spinney.DecisionTreeClassifier(max_depth=4).fit(X, two)
    again = through_bytes(model)
    assert_same_model(model, again, X)
    assert [c.tolist() for c in again.classes_] == [c.tolist() for c in model.classes_]
    assert again.n_classes_.tolist() == model.n_classes_.tolist() == [3, 4]
    assert_same_answers(model, through_bytes(model, spinney.load_predictor), X)
    regressor = spinney.DecisionTreeRegressor(max_depth=4).fit(X, np.column_stack([values, -values]))
    assert_same_model(regressor, through_bytes(regressor), X)


def test_weights_pruning_and_single_leaves_come_back(mixed):
    X, labels, values = mixed
    weight = np.random.default_rng(81).random(len(X)) + 0.01
    for model in (
        spinney.DecisionTreeClassifier().fit(X, labels, sample_weight=weight),
        spinney.DecisionTreeClassifier(class_weight="balanced").fit(X, labels),
        spinney.DecisionTreeRegressor(criterion="absolute_error").fit(X, values, sample_weight=weight),
        spinney.DecisionTreeRegressor(criterion="poisson").fit(X, np.abs(values)),
        spinney.DecisionTreeClassifier(ccp_alpha=0.01, max_leaf_nodes=20).fit(X, labels),
        spinney.DecisionTreeClassifier().fit(X, ["same"] * len(X)),
        spinney.DecisionTreeRegressor(validation_fraction=0.3, random_state=0).fit(X, values),
    ):
        assert_same_model(model, through_bytes(model), X)


def test_parameters_are_saved_by_value():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    parameters = {
        "max_depth": np.int64(3),
        "min_samples_leaf": np.float32(0.1),
        "class_weight": {0: 1.0, np.int64(1): 2},
        "monotonic_cst": np.array([0, 1]),
        "interaction_cst": [{0}, (1,)],
        "categorical_features": None,
        "unseen": "other",
        "random_state": 7,
    }
    model = spinney.DecisionTreeClassifier(**parameters).fit(X, y)
    again = through_bytes(model).get_params()
    assert again["class_weight"] == {0: 1.0, 1: 2}
    assert again["interaction_cst"] == [{0}, (1,)]
    assert again["monotonic_cst"].tolist() == [0, 1]
    assert again["max_depth"] == 3
    assert again["min_samples_leaf"] == np.float32(0.1)
    assert (again["random_state"], again["unseen"]) == (7, "other")


def test_values_that_json_lacks_come_back():
    values = {
        "inf": float("inf"),
        "nan": float("nan"),
        "nested": [(1, None), {"a": -float("inf"), 2: frozenset({"x"})}, {True: 0.1}],
        "array": np.array([[0.1, np.inf]], dtype=np.float32),
        "names": np.array(["a", "b"], dtype=object),
        "index": pd.Index(["a", "b"]),
        "random_state": np.uint8(3),
    }
    again = parameters_from_json(json.loads(json.dumps(parameters_to_json(values), allow_nan=False)))
    assert again["inf"] == float("inf")
    assert np.isnan(again["nan"])
    assert again["nested"] == values["nested"]
    assert isinstance(again["nested"][0], tuple)
    assert again["array"].dtype == np.float32
    np.testing.assert_array_equal(again["array"], values["array"])
    assert again["names"].tolist() == again["index"].tolist() == ["a", "b"]
    assert again["random_state"] == 3


def test_a_generator_of_random_numbers_is_saved_as_none_but_pickled():
    model = spinney.ExtraTreeRegressor(random_state=np.random.RandomState(0)).fit([[1.0], [2.0]], [1.0, 2.0])
    assert through_bytes(model).random_state is None
    assert isinstance(pickle.loads(pickle.dumps(model)).random_state, np.random.RandomState)


def test_a_loaded_model_can_be_fitted_again(mixed):
    X, labels, _ = mixed
    model = spinney.DecisionTreeClassifier(max_depth=3).fit(X, labels)
    assert_same_model(through_bytes(model).fit(X, labels), model, X)


def test_pickles_keep_other_attributes_and_the_unfitted():
    model = spinney.DecisionTreeRegressor(max_depth=2)
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
    model.fit([[1.0], [2.0]], [1.0, 2.0]).note = "mine"
    assert pickle.loads(pickle.dumps(model)).note == "mine"
    assert not hasattr(pickle.loads(pickle.dumps(model)), "_model_file")


def test_joblib_goes_through_the_same_bytes(mixed, tmp_path):
    X, labels, _ = mixed
    model = spinney.DecisionTreeClassifier().fit(X, labels)
    joblib.dump(model, tmp_path / "a.joblib")
    assert_same_model(model, joblib.load(tmp_path / "a.joblib"), X)
    assert b"\x89spinney" in (tmp_path / "a.joblib").read_bytes()
    assert b"\x89spinney" in pickle.dumps(model.tree_)


def test_a_tree_alone_can_be_pickled(mixed):
    X, labels, _ = mixed
    tree = spinney.DecisionTreeClassifier().fit(X, labels).tree_
    again = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(again.value, tree.value)
    np.testing.assert_array_equal(again.threshold, tree.threshold)


def test_errors_name_what_cannot_be_saved():
    with pytest.raises(NotFittedError):
        spinney.DecisionTreeClassifier().save(io.BytesIO())

    class Mine(spinney.DecisionTreeClassifier):
        pass

    X, y = [[1.0], [2.0]], [0, 1]
    with pytest.raises(TypeError, match="Mine is not an estimator of spinney"):
        Mine().fit(X, y).save(io.BytesIO())
    model = spinney.DecisionTreeClassifier().fit(X, y)
    model.classes_ = np.array([1, "a"], dtype=object)
    with pytest.raises(TypeError, match=r"objects of the types int, str\. Fit on labels"):
        model.save(io.BytesIO())
    model = spinney.DecisionTreeClassifier().fit(X, y).set_params(class_weight={0: object()})
    with pytest.raises(TypeError, match="parameter class_weight cannot be saved in a model file: it holds an object"):
        model.save(io.BytesIO())
    with pytest.raises(ValueError, match="max_depth"):
        model.set_params(max_depth=-1).save(io.BytesIO())


# ---- without scikit-learn, in little space and time -------------------------------------------------------


def test_predictors_need_neither_scikit_learn_nor_scipy(mixed, tmp_path):
    X, labels, _ = mixed
    X = X[["number", "integer", "boolean", "many"]]
    model = spinney.DecisionTreeClassifier().fit(X, labels)
    model.save(tmp_path / "m")
    columns = {name: X[name].astype(object).where(X[name].notna(), None).tolist() for name in X}
    code = f"""
        import json, sys
        sys.path.insert(0, {PACKAGE_FOLDER!r})
        import spinney
        predictor = spinney.load_predictor({str(tmp_path / "m")!r})
        columns = json.load(sys.stdin)
        table = {{name: [float("nan") if v is None else v for v in values] for name, values in columns.items()}}
        print(predictor.predict(table).tolist() == {model.predict(X).tolist()!r})
        print(predictor.predict_proba(table).tobytes().hex() == {model.predict_proba(X).tobytes().hex()!r})
        first = {{name: values[0] for name, values in columns.items()}}
        print(predictor.predict_one(first) == {str(model.predict(X)[0])!r})
        print(sorted({{"sklearn", "scipy", "pandas", "joblib"}} & set(sys.modules)))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        input=json.dumps(columns),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split("\n")[:4] == ["True", "True", "True", "[]"]


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_files_are_less_than_a_third_of_scikit_learns_pickles(kind):
    import sklearn.tree

    rng = np.random.default_rng(83)
    X = rng.normal(size=(4000, 5)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
    y = y > 0 if kind == "Classifier" else y
    ours = getattr(spinney, f"DecisionTree{kind}")().fit(X, y)
    theirs = getattr(sklearn.tree, f"DecisionTree{kind}")(random_state=0).fit(X, y)
    per_node = len(pickle.dumps(theirs, protocol=5)) / theirs.tree_.node_count
    assert len(bytes_of(ours)) / ours.tree_.node_count < per_node / 3


@pytest.mark.slow
def test_a_million_nodes_load_quickly():
    X = np.arange(500_000.0)[:, None]
    model = spinney.DecisionTreeRegressor().fit(X, np.random.default_rng(84).normal(size=len(X)))
    assert model.tree_.node_count > 900_000
    file = io.BytesIO(bytes_of(model))
    seconds = []
    for _ in range(5):
        file.seek(0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        spinney.load(file)
        seconds.append(resource.getrusage(resource.RUSAGE_SELF).ru_utime - before)
    assert min(seconds) < 0.5  # 0.1 on a quiet machine
