"""Imputation of missing values by proximities."""

import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import spinney
from oracle.saved import bytes_of, through_bytes
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from spinney._model.file.codec import array_to_json
from spinney._model.file.container import from_bytes, to_bytes


@pytest.fixture(scope="module")
def penguins():
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    rng = np.random.default_rng(0)
    return X, X.mask(rng.random(X.shape) < 0.1), y


def small(**options):
    return spinney.ProximityImputer(**({"n_estimators": 20, "n_iter": 2, "random_state": 0} | options))


def test_beats_the_median_of_the_class(penguins):
    X, gaps, y = penguins
    filled = small(n_estimators=50, kind="all").fit_transform(gaps, y)
    for name in ("bill_depth_mm", "flipper_length_mm", "body_mass_g"):
        hidden = gaps[name].isna() & X[name].notna()
        rough = gaps[name].fillna(gaps[name].groupby(np.asarray(y)).transform("median"))
        assert np.abs(filled[name] - X[name])[hidden].mean() < np.abs(rough - X[name])[hidden].mean()


def test_one_round_by_hand():
    """The weighted mean and mode of the donors, by the proximities of the forest that was kept."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": rng.choice(["u", "v", "w"], 60)})
    y = X["a"] + (X["c"] == "u")
    gaps = X.copy()
    gaps.loc[5, "b"] = np.nan
    gaps.loc[9, "c"] = None
    imputer = small(n_iter=1, kind="all")
    filled = imputer.fit_transform(gaps, y)
    start = np.column_stack([gaps["a"], gaps["b"].fillna(gaps["b"].median()), gaps["c"].map({"u": 0, "v": 1, "w": 2})])
    start[9, 2] = pd.Series(start[:, 2]).mode()[0]
    P = imputer.forest_.proximity(start)
    donors = gaps["b"].notna()
    expected = np.average(gaps["b"][donors], weights=P[5, donors])
    np.testing.assert_allclose(filled["b"][5], expected, rtol=1e-12)
    weight = {value: P[9, gaps["c"] == value].sum() for value in "uvw"}
    assert filled["c"][9] == max(weight, key=weight.get)


def test_the_rows_own_target_does_not_colour_it(penguins):
    """With noise for a target, rows filled by their class would tell it."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.random.default_rng(1).integers(0, 2, 200)
    X[::2, 0] = np.nan
    gain = {}
    for kind in ("gap", "all"):
        filled = small(kind=kind, n_iter=5).fit_transform(X, y)[::2, 0]
        gain[kind] = abs(np.corrcoef(filled, y[::2])[0, 1])
    assert gain["gap"] < 0.2 < 0.5 < gain["all"]


@pytest.mark.parametrize("target", ["classes", "numbers", None])
def test_what_is_there_stays(penguins, target):
    X, gaps, y = penguins
    y = {"classes": y, "numbers": X["body_mass_g"].fillna(4000), None: None}[target]
    filled = small().fit_transform(gaps, y)
    assert not filled.isna().any().any()
    assert (filled.dtypes == gaps.dtypes).all()
    assert filled.index.equals(gaps.index)
    for name in gaps:
        there = gaps[name].notna()
        assert (filled[name][there] == gaps[name][there]).all()
    assert gaps.isna().any().any()  # the caller's own table is not written to


def test_kinds_of_columns_keep_their_dtype():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "float32": rng.normal(size=80).astype(np.float32),
            "whole": pd.array(rng.integers(0, 9, 80), dtype="Int64"),
            "flag": pd.array(rng.random(80) < 0.5, dtype="boolean"),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], 80), categories=["s", "m", "l"]),
            "text": rng.choice(["x", "y"], 80),
            "full": rng.integers(0, 5, 80),
        }
    )
    for j, name in enumerate(X.columns[:5]):
        X.loc[10 * j : 10 * j + 5, name] = None
    filled = small().fit_transform(X)
    assert (filled.dtypes == X.dtypes).all()
    assert not filled.isna().any().any()
    ordered = X.assign(size=X["size"].cat.as_ordered())
    assert (small().fit_transform(ordered).dtypes == ordered.dtypes).all()
    polars, arrow = pl.from_pandas(X), pa.Table.from_pandas(X)
    filled_polars, filled_arrow = small().fit_transform(polars), small().fit_transform(arrow)
    assert filled_polars.schema == polars.schema
    assert filled_arrow.schema == arrow.schema
    for name in X:
        assert filled_polars[name].to_list() == filled[name].tolist() == filled_arrow.column(name).to_pylist()


def test_arrays_lists_and_dicts():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[3, 1] = X[7, 2] = np.nan
    expected = small().fit_transform(X)
    assert isinstance(expected, np.ndarray)
    assert np.isfinite(expected).all()
    assert np.array_equal(small().fit_transform(X.tolist()), expected)
    columns = small().fit_transform({name: X[:, j] for j, name in enumerate("abc")})
    assert np.array_equal(np.column_stack(list(columns.values())), expected)
    objects = X.astype(object)
    objects[:, 0] = np.where(X[:, 0] > 0, "up", "down")
    objects[5, 0] = None
    filled = small().fit_transform(objects)
    assert filled.dtype == object
    assert filled[5, 0] in ("up", "down")


def test_new_rows(penguins):
    X, gaps, y = penguins
    imputer = small().fit(gaps.iloc[::2], y[::2])
    filled = imputer.transform(gaps.iloc[1::2])
    assert not filled.isna().any().any()
    one_by_one = pd.concat([imputer.transform(gaps.iloc[[i]]) for i in (1, 3, 5, 7, 9, 11)])
    pd.testing.assert_frame_equal(one_by_one, filled.iloc[:6])
    reordered = imputer.transform(gaps.iloc[1::2, ::-1])
    pd.testing.assert_frame_equal(reordered[list(X.columns)], filled)
    strange = gaps.iloc[1:3].astype({"island": str}).assign(island=["Atlantis", None])
    assert imputer.transform(strange)["island"].tolist()[0] == "Atlantis"
    again = pickle.loads(pickle.dumps(imputer))
    pd.testing.assert_frame_equal(again.transform(gaps), imputer.transform(gaps))


def test_results_are_bit_identical_for_any_threads(penguins):
    _, gaps, y = penguins
    expected = small(n_jobs=1).fit_transform(gaps, y)
    for n_jobs in (2, 7):
        pd.testing.assert_frame_equal(small(n_jobs=n_jobs).fit_transform(gaps, y), expected, check_exact=True)


def test_in_a_pipeline(penguins):
    _, gaps, y = penguins
    model = make_pipeline(small(), spinney.DecisionTreeClassifier(max_depth=4))
    assert model.fit(gaps[::2], y[::2]).score(gaps[1::2], y[1::2]) > 0.75
    assert small().fit(gaps, y).get_feature_names_out().tolist() == list(gaps.columns)


def test_refusals_and_warnings(penguins):
    X = np.ones((6, 2))
    with pytest.raises(TypeError, match="dense tables only"):
        small().fit(csr_array(X))
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="entirely missing and are not filled: 'x1'"):
        assert np.isnan(small().fit_transform(X)[:, 1]).all()
    with pytest.raises(ValueError, match="n_iter"):
        small(n_iter=0).fit(X)


@pytest.mark.parametrize(
    ("y", "task", "kind"),
    [
        (np.arange(60) % 3, "auto", "RandomForestClassifier"),
        (np.arange(60) % 3, "regression", "RandomForestRegressor"),
        (np.arange(60), "auto", "RandomForestRegressor"),
        (np.arange(60) % 2 == 0, "auto", "RandomForestClassifier"),
        (np.linspace(0, 1, 60), "auto", "RandomForestRegressor"),
        (np.column_stack([np.arange(60) % 2, np.arange(60) % 3]), "auto", "RandomForestClassifier"),
    ],
)
def test_what_the_target_is(y, task, kind):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[4, 0] = np.nan
    imputer = small(task=task).fit(X, y)
    assert type(imputer.forest_).__name__ == kind


# ---- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gap", "all"])
@pytest.mark.parametrize("has_target", [True, False])
def test_a_file_fills_as_the_imputer_does(penguins, kind, has_target, tmp_path):
    X, gaps, y = penguins
    imputer = small(kind=kind, n_jobs=1).fit(gaps.iloc[::2], y[::2] if has_target else None)
    imputer.save(tmp_path / "imputer")
    loaded = spinney.load(tmp_path / "imputer")
    assert type(loaded) is spinney.ProximityImputer
    assert loaded.get_params() == imputer.get_params()
    assert loaded.feature_names_in_.tolist() == list(X.columns)
    pd.testing.assert_frame_equal(loaded.transform(gaps), imputer.transform(gaps), check_exact=True)
    assert bytes_of(loaded) == bytes_of(imputer)


def test_a_file_of_numbers_has_no_names():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[::5, 1] = np.nan
    imputer = small().fit(X, X[:, 0])
    loaded = through_bytes(imputer)
    assert not hasattr(loaded, "feature_names_in_")
    np.testing.assert_array_equal(loaded.transform(X), imputer.transform(X))


def test_only_a_fitted_imputer_of_spinney_is_saved(penguins):
    class Mine(spinney.ProximityImputer):
        pass

    with pytest.raises(NotFittedError):
        bytes_of(small())
    _, gaps, y = penguins
    with pytest.raises(TypeError, match="Mine is not an estimator of spinney"):
        bytes_of(Mine(n_estimators=2).fit(gaps, y))
    with pytest.raises(spinney.ModelFileError, match="of the kind ProximityImputer, which does not predict"):
        through_bytes(small().fit(gaps, y), spinney.load_predictor)


@pytest.mark.parametrize(
    "change",
    [
        {"leaf": None},
        {"leaf": array_to_json(np.full((80, 5), 10**6, dtype=np.uint32))},
        {"drawn": None},
        {"known": array_to_json(np.zeros((80, 1)))},
        {"known": array_to_json(np.full((80, 2), 99.0))},
        {"known": array_to_json(np.zeros((0, 2)))},
        {"forest": {}},
        {"schema": {}},
        {"parameters": {"n_estimators": 0}},
        {"parameters": {"trees": 3}},
    ],
)
def test_damaged_files_are_refused(change):
    frame = pd.DataFrame({"a": np.arange(80.0), "b": np.tile(["u", "v", None, "u"], 20)})
    imputer = small(n_estimators=5).fit(frame, np.arange(80) % 2)
    header, _ = from_bytes(bytes_of(imputer))
    trees = [imputer.forest_.forest_.engine.tree(t) for t in range(5)]
    assert spinney.load(io.BytesIO(to_bytes(header, trees))).n_features_in_ == 2
    with pytest.raises(spinney.ModelFileError, match="Cannot load"):
        spinney.load(io.BytesIO(to_bytes(header | change, trees)))


def test_a_stream_is_filled_as_its_table():
    rng = np.random.default_rng(0)
    values = rng.normal(size=40)
    table = pa.table({"a": values, "b": [None if i % 7 == 0 else float(v > 0) for i, v in enumerate(values)]})
    imputer = spinney.ProximityImputer(n_estimators=3, n_iter=2, random_state=0)
    assert imputer.fit_transform(table.to_reader(max_chunksize=9)).equals(imputer.fit_transform(table))
    assert imputer.fit(table.to_reader()).transform(table.to_reader(max_chunksize=9)).equals(imputer.transform(table))
