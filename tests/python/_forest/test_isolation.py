"""Isolation forests against a slow reference implementation and scikit-learn; weights and categories."""

import io
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.ensemble
import spinney
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from spinney import _engine
from spinney._forest.isolation import average_path_length
from spinney.datasets import load_penguins


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(size=(400, 3)), rng.uniform(-6, 6, size=(30, 3))])


@pytest.fixture(scope="module")
def model(rows):
    return spinney.IsolationForest(n_estimators=30, random_state=0).fit(rows)


def slow_scores(model, rows):
    """Walk each row down each tree; count the cuts."""
    lengths = np.zeros((len(rows), len(model)))
    for t in range(len(model)):
        tree = model.forest_.tree(t)
        for i, row in enumerate(rows):
            node, depth = 0, 0
            while tree.feature[node] >= 0:
                goes_left = row[tree.feature[node]] <= tree.threshold[node]
                node = node + 1 if goes_left else tree.children_right[node]
                depth += 1
            n = tree.weighted_n_node_samples[node]
            harmonic = np.log(n - 1) + 0.5772156649015329 if n > 2 else 0
            lengths[i, t] = depth + (0 if n <= 1 else 1 if n == 2 else 2 * harmonic - 2 * (n - 1) / n)
    psi = model.max_samples_
    usual = 2 * (np.log(psi - 1) + 0.5772156649015329) - 2 * (psi - 1) / psi
    return -(2 ** (-lengths.mean(axis=1) / usual))


def test_scores_are_those_of_the_paths(model, rows):
    np.testing.assert_allclose(model.score_samples(rows[::20]), slow_scores(model, rows[::20]), rtol=1e-12)


def test_trees_are_limited_as_they_should_be(model):
    assert model.max_samples_ == 256
    assert max(model.forest_.tree(t).max_depth for t in range(30)) == 8
    assert all(model.forest_.tree(t).weighted_n_node_samples[0] == 256 for t in range(30))


def test_average_path_length():
    ours = average_path_length([0, 1, 2, 3, 256])
    np.testing.assert_allclose(ours, sklearn.ensemble._iforest._average_path_length(np.array([0, 1, 2, 3, 256])))


def test_cuts_do_not_follow_a_target(rows):
    """Columns are cut equally often, whatever they hold, and cuts are uniform in the range."""
    X = np.random.default_rng(1).uniform(size=(300, 4)) * [1, 10, 100, 1000]
    forest = spinney.IsolationForest(n_estimators=400, random_state=0).fit(X).forest_
    roots = forest.root[:-1]
    feature = forest.engine.feature[roots]
    assert (np.abs(np.bincount(feature) - 100) < 40).all()
    place = forest.engine.threshold[roots] / X.max(axis=0)[feature]
    assert abs(place.mean() - 0.5) < 0.05
    assert abs(np.mean(place < 0.25) - 0.25) < 0.07


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "ring", "clusters"])
def test_ranks_outliers_as_well_as_scikit_learn(shape):
    rng = np.random.default_rng(5)
    if shape == "normal":
        X = np.vstack([rng.normal(size=(400, 4)), rng.uniform(-4, 4, (30, 4))])
    elif shape == "ring":
        angle = rng.uniform(0, 2 * np.pi, 400)
        ring = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(400, 2)) / 10
        X = np.vstack([ring, rng.normal(size=(30, 2)) / 4])
    else:
        X = np.vstack([rng.normal(size=(200, 3)) - 3, rng.normal(size=(200, 3)) / 3 + 3, rng.uniform(-7, 7, (30, 3))])
    y = np.repeat([0, 1], [400, 30])
    auc = {}
    for library in (spinney, sklearn.ensemble):
        models = [library.IsolationForest(n_estimators=50, random_state=seed).fit(X) for seed in range(4)]
        found = [roc_auc_score(y, -model.score_samples(X)) for model in models]
        auc[library.__name__] = np.mean(found), np.std(found, ddof=1) / np.sqrt(6)
    (ours, our_error), (theirs, their_error) = auc["spinney"], auc["sklearn.ensemble"]
    assert ours > theirs - 3 * np.hypot(our_error, their_error) - 0.002


def test_the_threshold(rows, model):
    assert model.offset_ == -0.5
    assert np.array_equal(model.decision_function(rows), model.score_samples(rows) + 0.5)
    assert np.array_equal(model.predict(rows), np.where(model.score_samples(rows) < -0.5, -1, 1))
    some = spinney.IsolationForest(n_estimators=30, contamination=0.1, random_state=0).fit(rows)
    assert some.offset_ == np.percentile(some.score_samples(rows), 10)
    assert (some.predict(rows) == -1).sum() == 43
    assert np.array_equal(some.fit_predict(rows), some.predict(rows))


def test_results_are_bit_identical_for_any_threads_libraries_and_row_orders():
    X, _ = load_penguins(as_frame="pandas")
    expected = spinney.IsolationForest(n_estimators=20, random_state=3, n_jobs=1).fit(X).score_samples(X)
    order = np.random.default_rng(0).permutation(len(X))
    for n_jobs, table in ((2, X), (7, X), (2, pl.from_pandas(X)), (2, pa.Table.from_pandas(X))):
        found = spinney.IsolationForest(n_estimators=20, random_state=3, n_jobs=n_jobs).fit(table).score_samples(table)
        assert np.array_equal(found, expected)
    shuffled = spinney.IsolationForest(n_estimators=20, random_state=3).fit(X.iloc[order])
    assert np.array_equal(shuffled.score_samples(X), expected)


def test_odd_categories_and_missing_values_stand_out():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["x", "y"], 300), "b": rng.normal(size=300)})
    X.loc[7, "a"] = "z"
    X.loc[8, "b"] = np.nan
    score = spinney.IsolationForest(n_estimators=200, random_state=0).fit(X).score_samples(X)
    assert score[7] < np.quantile(score, 0.1)
    assert score[8] < np.median(score)
    assert np.isfinite(score).all()


def test_a_weight_is_a_number_of_rows(rows):
    weight = np.random.default_rng(0).integers(0, 4, len(rows))
    weighted = spinney.IsolationForest(n_estimators=10, contamination=0.1, random_state=0)
    weighted.fit(rows, sample_weight=weight)
    repeated = spinney.IsolationForest(n_estimators=10, contamination=0.1, random_state=0)
    repeated.fit(np.repeat(rows, weight, axis=0))
    assert np.array_equal(weighted.score_samples(rows), repeated.score_samples(rows))
    assert weighted.offset_ == repeated.offset_
    half = spinney.IsolationForest(n_estimators=10, random_state=0).fit(rows, sample_weight=np.full(len(rows), 0.5))
    whole = spinney.IsolationForest(n_estimators=10, random_state=0).fit(rows)
    assert np.array_equal(half.score_samples(rows), whole.score_samples(rows))


def test_weights_that_are_not_whole_are_shares(rows):
    weight = np.random.default_rng(0).uniform(0.1, 2, len(rows))
    weight[::3] = 0
    model = spinney.IsolationForest(n_estimators=10, random_state=0).fit(rows, sample_weight=weight)
    changed = rows.copy()
    changed[::3] = 99.0  # rows of weight 0 are not looked at
    again = spinney.IsolationForest(n_estimators=10, random_state=0).fit(changed, sample_weight=weight)
    assert model.forest_.node_count == again.forest_.node_count
    assert model.forest_.engine.threshold.max() < 50


def test_other_parameters(rows):
    few = spinney.IsolationForest(n_estimators=8, max_samples=0.1, max_features=1, random_state=0).fit(rows)
    assert few.max_samples_ == 43
    used = [np.unique(few.forest_.tree(t).feature) for t in range(8)]
    assert all(len(columns[columns >= 0]) == 1 for columns in used)
    twice = spinney.IsolationForest(n_estimators=8, max_samples=20, bootstrap=True, random_state=0).fit(rows)
    assert twice.forest_.tree(0).n_node_samples[0] <= 20 == twice.forest_.tree(0).weighted_n_node_samples[0]
    with pytest.warns(UserWarning, match="is more than the"):
        assert spinney.IsolationForest(n_estimators=2, max_samples=1000).fit(rows).max_samples_ == len(rows)
    with pytest.raises(ValueError, match="max_features=4 is more than the table's 3 columns"):
        spinney.IsolationForest(max_features=4).fit(rows)
    with pytest.raises(TypeError, match="Did you mean 'contamination'"):
        spinney.IsolationForest(contaminaton=0.1)
    one = spinney.IsolationForest(n_estimators=2, max_samples=1).fit(rows)
    assert (one.score_samples(rows) == -0.5).all()


def test_warm_start_adds_trees(rows):
    grown = spinney.IsolationForest(n_estimators=5, warm_start=True, random_state=0).fit(rows)
    grown.set_params(n_estimators=12).fit(rows)
    at_once = spinney.IsolationForest(n_estimators=12, random_state=0).fit(rows)
    assert np.array_equal(grown.score_samples(rows), at_once.score_samples(rows))
    with pytest.raises(ValueError, match="n_estimators=3 must be larger or equal"):
        grown.set_params(n_estimators=3).fit(rows)


def test_sparse_rows(rows):
    X = np.where(np.abs(rows) < 0.5, 0.0, rows)
    dense = spinney.IsolationForest(n_estimators=10, random_state=0).fit(X)
    sparse = spinney.IsolationForest(n_estimators=10, random_state=0).fit(csr_array(X))
    assert np.array_equal(dense.score_samples(X), sparse.score_samples(csr_array(X)))


def test_saved_pickled_and_one_row_at_a_time(model, rows):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded, unpickled = spinney.load(file), pickle.loads(pickle.dumps(model))
    handle = model.to_predictor()
    for again in (loaded, unpickled):
        assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
        assert again.max_samples_ == 256
    assert [handle.score(row) for row in rows[-5:]] == model.score_samples(rows[-5:]).tolist()
    assert [handle.predict(row) for row in rows[-5:]] == model.predict(rows[-5:]).tolist()
    file.seek(0)
    with pytest.raises(spinney.ModelFileError, match=r"does not predict a target\. Read it with spinney\.load\.$"):
        spinney.load_predictor(file)


def test_pictures(model, rows):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    ax = spinney.plot_isolation(model, rows, features=[0, 2])
    drawn = [np.asarray(points.get_offsets()) for points in ax.collections if len(points.get_offsets()) > 1]
    inside = model.predict(rows) > 0
    assert [len(points) for points in drawn] == [inside.sum(), (~inside).sum()]
    assert np.array_equal(drawn[1], rows[~inside][:, [0, 2]])
    plt.close(ax.figure)
    X = pd.DataFrame({"a": ["x", "y"] * 5, "b": range(10)})
    with pytest.raises(ValueError, match="needs numeric columns"):
        spinney.plot_isolation(spinney.IsolationForest(n_estimators=2).fit(X), X)
    with pytest.raises(ValueError, match="two names or positions"):
        spinney.plot_isolation(model, rows, features=[0])


@pytest.mark.parametrize("name", ["RandomForestRegressor", "RandomTreesEmbedding"])
def test_a_file_that_names_another_kind_of_forest_is_refused(name):
    file = io.BytesIO()
    model = spinney.IsolationForest(n_estimators=3, random_state=0).fit(np.arange(60.0).reshape(20, 3))
    model.save(file)
    header = json.loads(_engine.ModelFile(file.getvalue()).header) | {"estimator": name, "parameters": {}}
    bad = _engine.write_model_file(json.dumps(header).encode(), model.forest_.trees())
    with pytest.raises(spinney.ModelFileError, match="threshold does not match its kind of forest"):
        spinney.load(io.BytesIO(bad))
