"""The service of examples/serve.py predicts and reports errors; MLflow stores models as files."""

import http.client
import json
import sys
import threading
from contextlib import closing
from http.server import ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import spinney

EXAMPLES = Path(__file__).parents[3] / "examples"
GOLDEN = Path(__file__).parents[2] / "golden" / "imported"


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def asked(port, body, path="/predict"):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("POST", path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_the_service_answers_and_refuses_in_words(examples, tmp_path):
    from serve import handler_of

    model = spinney.from_xgboost(GOLDEN / "xgboost_words.json")
    model.save(tmp_path / "model")
    row = {"a": 0.3, "b": 1.0, "c": None, "d": "cow", "e": 7}
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_of(spinney.load_predictor(tmp_path / "model"))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.server_address[1]
        try:
            assert asked(port, json.dumps({"rows": [row, row]})) == (200, {"predictions": [1, 1]})
            status, reply = asked(port, json.dumps({"rows": [row | {"d": "fox"}]}))
            assert (status, "was not seen in training: 'fox'" in reply["error"]) == (400, True)
            assert asked(port, "no JSON")[0] == 400
            assert asked(port, "{}")[0] == 400
            assert asked(port, "{}", "/elsewhere")[0] == 404
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                for path, status in (("/elsewhere", 404), ("/predict", 200)):  # a refused body is not the next request
                    connection.request("POST", path, json.dumps({"rows": [row]}))
                    response = connection.getresponse()
                    assert (response.status, bool(response.read())) == (status, True)
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_keeps_a_model_by_its_file(examples, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    sys.modules.pop("mlflow_model", None)
    from mlflow_model import save_to_mlflow

    X, y = spinney.datasets.load_penguins()
    model = spinney.RandomForestClassifier(3, random_state=0).fit(X, y)
    save_to_mlflow(model, tmp_path / "kept", tmp_path / "model.spinney", proba=True)
    np.testing.assert_array_equal(mlflow.pyfunc.load_model(str(tmp_path / "kept")).predict(X), model.predict_proba(X))
