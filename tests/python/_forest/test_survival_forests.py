"""Survival forests: predictions as means over their trees, out-of-bag scores, files, causes, truncation."""

import pickle

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st

FORESTS = [spinney.RandomSurvivalForest, spinney.ExtraSurvivalTrees]
AT = [0.5, 2.0, 5.0, 30.0]


def machines(seed=0, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    time = np.exp(1.5 - X[:, 0] + np.abs(X[:, 1]) / 2 - rng.gumbel(size=n) / 2)
    end = rng.exponential(12, n)
    return X, np.where(time < end, 1, -1) * np.maximum(np.minimum(time, end).round(1), 0.1)


def two_causes(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    first, second = rng.exponential(np.exp(-2 * X[:, 0])), rng.exponential(np.exp(-2 * X[:, 1]))
    end = rng.exponential(3, n)
    time = np.minimum(np.minimum(first, second), end)
    cause = np.where(time == end, "", np.where(first < second, "crash", "wear"))
    return X, pd.DataFrame({"time": time, "cause": cause})


X, Y = machines()
NEW, NEW_Y = machines(1)


@pytest.mark.parametrize("kind", FORESTS)
def test_predictions_are_means_over_the_trees(kind):
    model = kind(7, random_state=0, min_samples_leaf=5).fit(X, Y)
    for name in ("predict_survival_function", "predict_cumulative_hazard", "predict_cumulative_incidence"):
        by_tree = [getattr(tree, name)(NEW, AT) for tree in model]
        np.testing.assert_allclose(getattr(model, name)(NEW, AT), np.mean(by_tree, axis=0), atol=1e-14)
    np.testing.assert_allclose(model.predict(NEW), np.mean([tree.predict(NEW) for tree in model], axis=0))
    curve = model.predict_survival_function(NEW)
    assert (np.diff(curve) <= 0).all()
    assert 0 <= curve.min() <= curve.max() <= 1
    assert model.score(NEW, NEW_Y) > 0.75
    assert 0.7 < spinney.concordance_index(NEW_Y, -model.predict_median(NEW).clip(max=99)) <= 1


@pytest.mark.parametrize("kind", FORESTS)
def test_models_do_not_depend_on_threads_or_the_order_of_rows(kind):
    def fit(n_jobs, order=slice(None)):
        return kind(10, random_state=3, min_samples_leaf=3, n_jobs=n_jobs).fit(X[order], Y[order])

    model = fit(1)
    assert model.fingerprint() == fit(2).fingerprint() == fit(1, np.arange(len(X))[::-1]).fingerprint()
    np.testing.assert_array_equal(model.predict_survival_function(NEW), fit(2).predict_survival_function(NEW))


@given(seed=st.integers(0, 1000))
def test_curves_of_many_rows_are_those_of_single_ones(seed):
    rng = np.random.default_rng(seed)
    model = spinney.RandomSurvivalForest(3, random_state=seed).fit(X, Y)
    times = rng.permutation(np.append(rng.choice(model.event_times_, 4), [0.0, 1e9]))
    together = model.predict_cumulative_hazard(NEW, times)
    row = int(rng.integers(len(NEW)))
    np.testing.assert_array_equal(together[row], model.predict_cumulative_hazard(NEW[row : row + 1], times)[0])
    assert together[row, times == 0] == 0


def test_a_tree_of_all_rows_is_the_single_tree():
    forest = spinney.RandomSurvivalForest(2, bootstrap=False, max_features=None, min_samples_leaf=10).fit(X, Y)
    tree = spinney.SurvivalTree(min_samples_leaf=10).fit(X, Y)
    np.testing.assert_allclose(forest.predict(NEW), tree.predict(NEW))
    np.testing.assert_allclose(forest.predict_survival_function(NEW), tree.predict_survival_function(NEW), atol=1e-14)


def test_out_of_bag_scores_are_those_of_new_rows():
    model = spinney.RandomSurvivalForest(100, random_state=0, oob_score=True).fit(X, Y)
    many, many_y = machines(5, 2000)
    assert model.oob_score_ == pytest.approx(model.score(many, many_y), abs=0.05)
    assert model.oob_score_ == pytest.approx(spinney.concordance_index(Y, model.oob_prediction_))
    assert model.oob_curve_[-1] == pytest.approx(1 - model.oob_score_)
    stops = spinney.RandomSurvivalForest("auto", random_state=0).fit(X, Y)
    assert 50 < len(stops) < 1000


def test_permutation_importances_find_the_columns():
    model = spinney.RandomSurvivalForest(60, random_state=0).fit(X, Y)
    held_out = spinney.permutation_importance(model, NEW, NEW_Y)
    assert held_out.importance.argmax() == 0
    assert held_out.importance[2] < 0.02
    out_of_bag = spinney.permutation_importance(model, X, Y, rows="out_of_bag")
    assert out_of_bag.importance.argmax() == 0
    scored = spinney.RandomSurvivalForest(60, random_state=0, oob_score=True).fit(X, Y)
    assert -out_of_bag.tree_loss == pytest.approx(scored.oob_score_)
    rows, y = two_causes()
    weight = np.arange(len(rows)) % 3
    of_causes = spinney.RandomSurvivalForest(60, random_state=0, oob_score=True).fit(rows, y, weight)
    found = spinney.permutation_importance(of_causes, rows, y, rows="out_of_bag", sample_weight=weight)
    assert -found.tree_loss == pytest.approx(of_causes.oob_score_)
    assert model.feature_importances_.argmax() == 0
    with pytest.raises(ValueError, match=r"spinney\.permutation_importance"):
        model.importances(X, Y)
    assert model.importances(kind="impurity").importance.argmax() == 0


def test_several_causes():
    rows, y = two_causes()
    model = spinney.RandomSurvivalForest(80, random_state=0, oob_score=True).fit(rows, y)
    assert model.causes_.tolist() == ["crash", "wear"]
    risk = model.predict(rows)
    for j in range(2):
        assert np.corrcoef(rows[:, j], risk[:, j])[0, 1] > 0.6
    incidence = model.predict_cumulative_incidence(rows, AT)
    survival = model.predict_survival_function(rows, AT)
    np.testing.assert_allclose(incidence.sum(axis=2) + survival, 1.0)
    assert model.predict_cumulative_hazard(rows, AT).shape == (300, 4, 2)
    assert 0.6 < model.oob_score_ < model.score(rows, y)


def test_left_truncation_corrects_the_curve():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 2))
    time, entry = rng.exponential(np.exp(rows[:, 0])), rng.exponential(1.0, 4000)
    seen = entry < time  # the others are never observed
    rows, time, entry = rows[seen], time[seen], entry[seen]
    at = np.array([0.5, 1.0, 2.0])
    new = np.column_stack([np.linspace(-1, 1, 5), np.zeros(5)])
    truth = np.exp(-at / np.exp(new[:, :1]))

    def error(**entries):
        model = spinney.RandomSurvivalForest(50, random_state=0, min_samples_leaf=50).fit(rows, time, **entries)
        return np.abs(model.predict_survival_function(new, at) - truth).mean()

    assert error(entry=entry) < 0.1 < error()


def test_files_and_pickles(tmp_path):
    rows, y = two_causes()
    model = spinney.RandomSurvivalForest(20, random_state=0, keep_rows=True, oob_score=True).fit(rows, y)
    model.save(tmp_path / "model")
    for other in (spinney.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_survival_function(rows), model.predict_survival_function(rows))
        assert other.causes_.tolist() == model.causes_.tolist()
        assert other.oob_score_ == model.oob_score_
    predictor = spinney.load_predictor(tmp_path / "model")
    np.testing.assert_array_equal(predictor.predict(rows), model.predict(rows))


def test_warm_starts_add_trees():
    model = spinney.RandomSurvivalForest(4, random_state=0, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=9).fit(X, Y)
    whole = spinney.RandomSurvivalForest(9, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict_survival_function(NEW), whole.predict_survival_function(NEW))
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(n_estimators=12, bootstrap=True).fit(X[:150], Y[:150])


def test_shapley_values_explain_the_relative_hazard():
    model = spinney.RandomSurvivalForest(5, random_state=0).fit(X, Y)
    values = model.shap_values(NEW)
    np.testing.assert_allclose(values.base_values + values.values.sum(axis=1), model.predict(NEW))


def test_a_metric_of_out_of_bag_rows_is_refused():
    with pytest.raises(ValueError, match="oob_score"):
        spinney.RandomSurvivalForest(5, oob_score="r2").fit(X, Y)
