"""What the messages about damaged model files and pickles name."""

import io
import json
import pickle

import pytest
import spinney
from oracle.saved import bytes_of, small_classifier
from spinney import _engine

# ---- what the messages say ------------------------------------------------------------------------------


@pytest.fixture
def model():
    return small_classifier()


@pytest.mark.parametrize("loader", [spinney.load, spinney.load_predictor])
def test_messages_name_the_problem_and_the_remedy(model, tmp_path, loader):
    data = bytes_of(model)
    cases = {
        b"": "the file is empty",
        b"PK\x03\x04 a zip": "is not a model file. Pass a file written by the save method",
        pickle.dumps(model): "looks like a pickle. Load it with pickle or joblib",
        data[:5]: "is cut short",
        data[:20]: "is cut short. Copy it again from an intact source, or save the model again",
        data[:-9]: f"is cut short: it has {len(data) - 9} of its {len(data)} bytes",
        data + b"x": "is longer than the size in its header",
        data[:60] + b"\xff" + data[61:]: "is damaged: its checksum is wrong",
        data[:8] + b"\x03" + data[9:]: r"newer spinney \(format 3, this one reads up to 1\): upgrade spinney\.$",
    }
    for bad, message in cases.items():
        (tmp_path / "bad.spinney").write_bytes(bad)
        with pytest.raises(spinney.ModelFileError, match=message) as caught:
            loader(tmp_path / "bad.spinney")
        assert "bad.spinney" in str(caught.value)
        assert isinstance(caught.value, ValueError)
        with pytest.raises(spinney.ModelFileError):
            loader(io.BytesIO(bad))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"DecisionTreeClassifier"', b'"DecisionForest"', "does not know, 'DecisionForest'"),
        (b'"DecisionTreeClassifier"', b'"load"', "does not know, 'load'"),
        (b'"DecisionTreeClassifier"', b'"DecisionTreeRegressor"', "match its estimator"),
        (b'"max_depth":3', b'"max_depth":0', "max_depth"),
        (b'"max_depth":3', b'"max_dept ":3', "max_dept"),
        (b'"unseen":"missing"', b'"unseen":"mist"', "unseen"),
        (b'"n_jobs":null', b'"n_jobs":"ab"', "n_jobs"),
        (b'"labels":[0,1,2]', b'"labels":[0,1]  ', "does not fit its classes"),
        (b'"labels":[0,1,2]', b'"labels":[0,1,1]', "labels are inconsistent"),
        (b'"type":"int64"', b'"type":"str"  ', "labels are inconsistent"),
        (b'"n_outputs":1', b'"n_outputs":2', "number of outputs"),
        (b'"max_features":2', b'"max_features":9', "max_features is impossible"),
        (b'"kind":"number"', b'"kind":"numbel"', "is inconsistent"),
        (b'"schema":', b'"scheme":', "lacks a usable 'schema'"),
        (b'"n_outputs":1', b'"n_outputs":NaN', "damaged"),
        (b'{"spinney"', b'["spinney"', "damaged"),
    ],
)
def test_inconsistent_headers_are_refused(model, old, new, message):
    header = _engine.ModelFile(bytes_of(model)).header
    assert old in header
    bad = _engine.write_model_file(header.replace(old, new), [model.tree_.engine])
    with pytest.raises(spinney.ModelFileError, match=message):
        spinney.load(io.BytesIO(bad))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"DecisionTreeClassifier"', b'"DecisionForest"', "does not know, 'DecisionForest': upgrade spinney"),
        (b'"DecisionTreeClassifier"', b'"load"', "does not know, 'load'"),
        (b'"DecisionTreeClassifier"', b'"DecisionTreeRegressor"', "its classes do not match its estimator"),
        (b'"DecisionTreeClassifier"', b'"RandomForestClassifier"', "its trees do not match its estimator"),
        (b'"DecisionTreeClassifier"', b'"BaggingClassifier"', "its trees do not match its estimator"),
        (b'"DecisionTreeClassifier"', b'"IsolationForest"', "which does not predict a target"),
    ],
)
def test_a_predictor_checks_the_kind_of_its_model(model, old, new, message):
    header = _engine.ModelFile(bytes_of(model)).header
    bad = _engine.write_model_file(header.replace(old, new), [model.tree_.engine])
    with pytest.raises(spinney.ModelFileError, match=message):
        spinney.load_predictor(io.BytesIO(bad))


def test_a_hostile_header_does_not_exhaust_the_stack_or_memory(model):
    tree = model.tree_.engine
    header = '{"schema":' + "[" * 200_000 + "]" * 200_000 + "}"
    labels = '{"spinney":"0","classes":[{"type":"str","width":2000000000,"labels":["a","b","c"]}],"n_outputs":1,'
    labels += '"max_features":1,"schema":{"has_names":false,"unseen":"missing",'
    labels += '"features":[{"name":"a","kind":"number"},{"name":"b","kind":"number"}]}}'
    for text in (header, labels, "1" * 100_000, '{"schema":1e999}', "\xff"):
        file = io.BytesIO(_engine.write_model_file(text.encode("latin-1"), [tree]))
        with pytest.raises(spinney.ModelFileError):
            spinney.load(file)


def test_a_damaged_pickle_is_a_model_file_error(model):
    data = pickle.dumps(model)
    at = data.index(b"\x89spinney") + 200
    with pytest.raises(spinney.ModelFileError, match="this pickle: the file is damaged"):
        pickle.loads(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("method", "anova", "'method' does not match the target"),
        ("method", 3, "lacks a usable 'method'"),
        ("risk", [1.0], "'risk' has the wrong length"),
        ("risk", "far", "lacks a usable 'risk'"),
        ("complexity", ["a"] * 7, "'complexity' does not hold numbers"),
        ("improve", [1e999] * 7, "'improve' holds impossible numbers"),
        ("weight", [True] * 7, "'weight' does not hold numbers"),
        ("credit", [[1.0]] * 7, "'credit' does not hold numbers"),
        ("prediction", [3] * 7, "'prediction' names classes that do not exist"),
        ("prediction", [None] * 7, "'prediction' names classes that do not exist"),
        ("counts", [[1.0, 2.0]] * 7, "'counts' has the wrong shape"),
        ("counts", [1.0] * 21, "'counts' has the wrong shape"),
        ("counts", None, "'counts' does not match the method"),
        ("cp_table", [], "'cp_table' has the wrong shape"),
        ("cp_table", [[1.0, 0, 1.0, 2.0]], "'cp_table' has the wrong shape"),
        ("cp_table", [[1.0, None, 1.0]], "'cp_table' does not count splits"),
        ("cp_table", [[1.0, 0, 1.0], [1.0]], "'cp_table' does not hold numbers"),
        ("total_weight", 0.0, "lacks a usable 'total_weight'"),
        ("n_dropped", -1, "lacks a usable 'n_dropped'"),
    ],
)
def test_inconsistent_records_of_rpart_are_refused(name, value, message):
    X, y = spinney.datasets.load_penguins()
    model = spinney.DecisionTreeClassifier.rpart(random_state=0).fit(X, y)
    assert model.tree_.node_count == 7
    header = json.loads(_engine.ModelFile(bytes_of(model)).header)
    assert header["rpart"][name] != value
    header["rpart"][name] = value
    text = json.dumps(header).replace("Infinity", "1e999").encode()
    with pytest.raises(spinney.ModelFileError, match=message):
        spinney.load(io.BytesIO(_engine.write_model_file(text, [model.tree_.engine])))
