"""Support vector machines of R's e1071 (libsvm) and kernlab: what they decide on rows they have not seen.

``svm/ID.json`` is one fit at a tolerance of 1e-8. Both keep kernel values as floats of 32 bits, so that agreement
to 1e-6 asks for the same. A positive decision favours the first label of libsvm, the later level of kernlab.
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import spinney

from golden.cases import read_schema, read_table

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in (HERE / "svm").glob("*.json"))
KERNELS = {
    **{"radial": "rbf", "rbfdot": "rbf", "linear": "linear", "vanilladot": "linear", "polynomial": "poly"},
    "sigmoid": "sigmoid",
}


def load(name):
    case = json.loads((HERE / "svm" / f"{name}.json").read_text())
    schema = read_schema(case["data"])
    table = read_table(case["data"], schema)
    X = np.column_stack([table[name] for name in case["features"]])
    y = table[case["response"]]
    if "ylevels" in case:
        levels = schema[case["response"]]["levels"]
        y = np.array([levels[int(code) - 1] for code in y])
    train, test = (np.array(case[rows]) - 1 for rows in ("train_rows_1based", "test_rows_1based"))
    if case["params"].get("scale") or case["params"].get("scaled"):
        X = (X - X[train].mean(axis=0)) / X[train].std(axis=0, ddof=1)
    return case, X, y, train, test


def parameters(case):
    given = case["params"]
    found = {"kernel": KERNELS[given["kernel"]], "scale": False, "tol": 1e-8}
    if case["kind"] == "svm_kernlab":
        return found | {"C": given["C"], "gamma": dict(given["kpar"] or {}).get("sigma", 1.0)}
    chosen = {"cost": "C"} if given["nu"] is None else {"nu": "nu"}
    names = chosen | {"gamma": "gamma", "coef0": "coef0", "degree": "degree"}
    return found | {own: given[name] for name, own in names.items()}


def decisions_as_stated(case, model, X):
    """Decisions with the signs of the package."""
    found = model.decision_function(X)
    if found.ndim == 2:
        return found if case["kind"] == "svm" else -found
    positive = case["libsvm_label_order"][0] if case["kind"] == "svm" else case["ylevels"][1]
    return (found if positive == model.classes_[1] else -found)[:, np.newaxis]


@pytest.mark.parametrize("name", [name for name in NAMES if "eps" not in name])
def test_decisions_are_those_of_libsvm_and_kernlab(name):
    case, X, y, train, test = load(name)
    make = partial(spinney.SVC, class_weight=case["params"]["class_weights"])
    if case["params"].get("nu"):
        make = spinney.NuSVC
    model = make(decision_function_shape="ovo", **parameters(case)).fit(X[train], y[train])
    np.testing.assert_allclose(decisions_as_stated(case, model, X[test]), case["test_decision"], atol=1e-6)
    np.testing.assert_allclose(decisions_as_stated(case, model, X[train]), case["train_decision"], atol=1e-6)
    exact = make(precision="double", **parameters(case))
    stated = case.get("dual_objective_recomputed") or case["objective"]
    best = np.array(stated) + 1e-9 * np.abs(stated)
    if model.kernel != "sigmoid":  # which has several
        assert (exact.fit(X[train], y[train]).objective_ <= best).all()
        assert (exact.dual_gap_ < 1e-6 * np.abs(stated)).all()


@pytest.mark.parametrize("name", [name for name in NAMES if "eps" in name])
def test_values_are_those_of_libsvm(name):
    case, X, y, train, test = load(name)
    mean, spread = y[train].mean(), y[train].std(ddof=1)
    model = spinney.SVR(epsilon=case["params"]["epsilon"], **parameters(case)).fit(X[train], (y[train] - mean) / spread)
    np.testing.assert_allclose(model.predict(X[test]) * spread + mean, case["test_pred"], atol=1e-6)
    assert len(model.support_) == case["n_sv"]
