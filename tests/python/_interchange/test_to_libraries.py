"""Models exported to XGBoost, LightGBM, treelite and PMML predict there as in Python."""

import numpy as np
import pytest
import spinney
from written_models import AVERAGES, MODELS, NUMBERS, VALUES, cuts_of, predictions_of, probe, table_of

NOWHERE = {"boosting, linear", "boosting of three, linear", "default settings"}  # linear leaves
NOWHERE |= {"combined columns", "combined columns of three", "crossed columns", "crossed columns, other"}
NOWHERE |= {"surrogates", "several", "oblique", "boosting, hinge", "boosting, focal", "gentle adaboost"}
PRICED = {"costs of a tree", "costs of a forest"}
OF_SHARES = {"tree of classes", "tree of numbers", "competitors", "forest of classes", "forest, other"}
CARRIED = {
    "xgboost": sorted(set(MODELS) - NOWHERE - PRICED - OF_SHARES - {"isolation"}),
    "lightgbm": sorted(set(MODELS) - NOWHERE - PRICED - {"isolation"}),
    "treelite": sorted(set(MODELS) - NOWHERE - PRICED),
    "pmml": sorted(set(MODELS) - NOWHERE - PRICED - {"isolation", "forest, other", "boosting, other"}),
}


def coded(model, columns):
    """Rows with categories as codes."""
    found = []
    for feature in model.schema_.features:
        column = columns[feature.name]
        if feature.kind == "category":
            other = len(feature.categories) if model.unseen == "other" else np.nan
            column = [np.nan if v is None or v != v else feature.code_of.get(v, other) for v in column]
        found.append(np.asarray(column, dtype=float))
    return np.column_stack(found)


def by_class(found, width):
    """Predictions as (n_rows, width): libraries give the second of two classes alone."""
    found = np.asarray(found, dtype=float).reshape(len(found), -1)
    return np.column_stack([1 - found, found]) if found.shape[1] < width else found


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "boosting of two" else pytest.mark.slow) for n in CARRIED["lightgbm"]]
)
def test_lightgbm(name):
    lightgbm = pytest.importorskip("lightgbm")
    model = MODELS[name]()
    columns = probe(model)
    booster = lightgbm.Booster(model_str=spinney.to_lightgbm(model))
    wanted = predictions_of(model, table_of(model, columns))[0]
    found = by_class(booster.predict(coded(model, columns), num_threads=1), wanted.shape[1])
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def as_float32(columns):
    with np.errstate(over="ignore"):
        return {k: v.astype(np.float32) if v.dtype.kind == "f" else v for k, v in columns.items()}


def beside_in_float32(model):
    """Rows of 32-bit numbers at and beside every cut."""
    rows = []
    with np.errstate(over="ignore"):
        for j, cuts in enumerate(cuts_of(model)):
            own = np.array(sorted(cuts), dtype=np.float32)
            own = own[np.isfinite(own)]
            for values in (own, np.nextafter(own, np.float32(np.inf)), np.nextafter(own, np.float32(-np.inf))):
                part = np.zeros((len(values), len(cuts_of(model))), dtype=np.float32)
                part[:, j] = values
                rows.append(part)
    return np.concatenate(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", CARRIED["xgboost"])
def test_xgboost(name):
    xgboost = pytest.importorskip("xgboost")
    model = MODELS[name]()
    columns = as_float32(probe(model))
    rows = coded(model, columns).astype(np.float32)
    fine = ~np.isinf(rows).any(axis=1)  # XGBoost refuses infinite values
    assert fine.sum() > 10
    booster = xgboost.Booster(model_file=bytearray(spinney.to_xgboost(model).encode()))
    kinds = ["c" if feature.kind == "category" else "float" for feature in model.schema_.features]
    data = xgboost.DMatrix(rows[fine], feature_names=model.schema_.names, feature_types=kinds)
    wanted = predictions_of(model, table_of(model, columns))[0][fine]
    np.testing.assert_allclose(by_class(booster.predict(data), wanted.shape[1]), wanted, rtol=3e-6, atol=3e-7)


@pytest.mark.slow
def test_xgboost_decides_as_spinney_on_every_32_bit_number():
    xgboost = pytest.importorskip("xgboost")
    model = spinney.DecisionTreeRegressor().fit(NUMBERS, np.arange(len(VALUES)) * 1.0)
    rows = beside_in_float32(model)
    assert len(rows) > 100
    booster = xgboost.Booster(model_file=bytearray(spinney.to_xgboost(model).encode()))
    data = xgboost.DMatrix(rows, feature_names=model.schema_.names, feature_types=["float"] * 3)
    np.testing.assert_array_equal(booster.predict(data), model.predict(rows).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("name", CARRIED["treelite"])
def test_treelite(name):
    treelite = pytest.importorskip("treelite")
    model = MODELS[name]()
    columns = probe(model)
    wanted = predictions_of(model, table_of(model, columns))[0]
    if name == "isolation":
        wanted = model.forest_.predictions(model._columns(columns), 1)  # path lengths
    found = treelite.gtil.predict(spinney.to_treelite(model), coded(model, columns), nthread=1)
    # treelite's softmax computes in 32-bit numbers
    exact = model._fitted.kind == "tree" or not hasattr(model, "classes_") or len(model.classes_) == 2
    np.testing.assert_allclose(
        by_class(found.reshape(len(found), -1), wanted.shape[1]), wanted, rtol=1e-12 if exact else 1e-6, atol=1e-13
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CARRIED["pmml"])
def test_pmml(name):
    assert_same_in_pmml(MODELS[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", AVERAGES)
def test_averages_in_pmml(name):
    assert_same_in_pmml(AVERAGES[name]())


def assert_same_in_pmml(model):
    pypmml = pytest.importorskip("pypmml")
    columns = {k: v[:60] for k, v in probe(model, n_more=0).items()}
    reader = pypmml.Model.fromString(spinney.to_pmml(model))
    wanted, labels = predictions_of(model, table_of(model, columns))
    names = ["prediction"] if labels is None else [f"probability({label})" for label in model.classes_]
    found = []
    for row in zip(*columns.values(), strict=True):
        plain = [None if v is None or v != v else v if isinstance(v, str) else float(v) for v in row]
        answer = reader.predict(dict(zip(columns, plain, strict=True)))
        found.append([answer[name] for name in names])
    np.testing.assert_allclose(np.array(found, dtype=float), wanted, rtol=1e-12, atol=1e-13)


def test_names_that_a_format_does_not_take():
    model = spinney.DecisionTreeRegressor().fit({"a[0]": [1.0, 2.0], "b\x01": ["x", "y"]}, [0.0, 1.0])
    with pytest.raises(ValueError, match="takes no"):
        spinney.to_xgboost(model)
    with pytest.raises(ValueError, match="which is not valid in XML"):
        spinney.to_pmml(model)
    assert "feature_names=a_0_ b_\n" in spinney.to_lightgbm(model)
    model = spinney.DecisionTreeRegressor().fit({"a b": [1.0, 2.0], "a_b": [0.0, 1.0]}, [0.0, 1.0])
    with pytest.raises(ValueError, match="two would be the same"):
        spinney.to_lightgbm(model)


@pytest.mark.parametrize(
    ("write", "read"),
    [(spinney.to_lightgbm, spinney.from_lightgbm), (spinney.to_xgboost, spinney.from_xgboost)],
    ids=["lightgbm", "xgboost"],
)
def test_what_is_written_as_text_can_be_read_as_text(write, read):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=list("abc"))
    model = spinney.GradientBoostingRegressor(n_estimators=5).fit(X, X["a"])
    np.testing.assert_allclose(read(write(model)).predict(X), model.predict(X), rtol=1e-6, atol=1e-6)
