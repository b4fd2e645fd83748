"""Normal distributions with default settings: the deviation is learned from out-of-fold errors."""

import numpy as np
import pytest
import spinney
from spinney._boosting.options import recipe as recipe_table

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(240, 2))
SPREAD = np.where(X[:, 0] > 0, 1.0, 0.2)
Y = 3 * X[:, 1] + SPREAD * RNG.normal(size=240)
NEW = RNG.uniform(-1, 1, size=(800, 2))
NEW_Y = 3 * NEW[:, 1] + np.where(NEW[:, 0] > 0, 1.0, 0.2) * RNG.normal(size=800)
QUICK = {"effort": 0.0, "n_iter_no_change": 5}


def likelihood(y, mean, std):
    return np.mean(np.log(std) + ((y - mean) / std) ** 2 / 2)


@pytest.fixture(scope="module")
def model():
    return spinney.GradientBoostingRegressor("normal", **QUICK).fit(X, Y)


def test_the_mean_is_that_of_the_squared_error_and_the_spread_is_better_than_one_for_all(model, monkeypatch):
    rows = [row for row in recipe_table.ROWS if "fold_overlap" not in row.settings or row is recipe_table.ROWS[0]]
    monkeypatch.setattr(recipe_table, "ROWS", tuple(rows))  # a spread is learned from all rows
    plain = spinney.GradientBoostingRegressor(linear_leaves=False, **QUICK).fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))
    found = model.predict_distribution(NEW)
    one = np.sqrt(np.mean((plain._calibration.predicted[:, 0] - Y) ** 2))
    assert likelihood(NEW_Y, *found) < likelihood(NEW_Y, found.mean, one) - 0.1
    np.testing.assert_array_equal(model.predict_interval(NEW), plain.predict_interval(NEW))


def test_a_model_of_both_is_a_model_as_any_other(model, tmp_path):
    n = model.n_iter_
    assert model.boosting_.n_trees == 2 * n
    assert model.train_score_.shape == model.validation_score_.shape == (n,)
    assert model.validation_score_[-1] < model.validation_score_[0]
    np.testing.assert_allclose(model.shap_values(NEW[:5]).predictions, model._scores(NEW[:5], None), atol=1e-12)
    model.save(tmp_path / "both.model")
    loaded = spinney.load(tmp_path / "both.model")
    np.testing.assert_array_equal(loaded.predict_std(NEW), model.predict_std(NEW))
    data, knowledge = model.predict_uncertainty(NEW)
    assert (data > 0).all()
    assert (knowledge >= 0).all()
    again = spinney.GradientBoostingRegressor("normal", n_jobs=3, **QUICK).fit(X, Y)
    assert again.fingerprint() == model.fingerprint()


def test_weights_and_offsets_count_and_units_do_not(model):
    without = spinney.GradientBoostingRegressor("normal", **QUICK).fit(X, Y, np.r_[np.zeros(40), np.ones(200)])
    fewer = spinney.GradientBoostingRegressor("normal", **QUICK).fit(X[40:], Y[40:])
    np.testing.assert_allclose(without.predict_std(NEW), fewer.predict_std(NEW), rtol=1e-9)
    larger = spinney.GradientBoostingRegressor("normal", **QUICK).fit(X, 1024 * Y)
    np.testing.assert_allclose(larger.predict_std(NEW), 1024 * model.predict_std(NEW), rtol=1e-6)
    offset = np.column_stack([3 * X[:, 1], np.log(SPREAD)])
    known = spinney.GradientBoostingRegressor("normal", **QUICK).fit(X, Y, offset=offset)
    assert np.abs(known.predict_std(NEW) - 1).max() < 0.5
    constant = spinney.GradientBoostingRegressor("normal", **QUICK).fit(X, np.full(len(X), 2.0))
    assert constant.predict_std(NEW).max() < 1e-6
    with pytest.raises(ValueError, match="loss='normal' has several"):
        spinney.GradientBoostingRegressor("normal", monotonic_cst=[1, 0], **QUICK).fit(X, Y)
