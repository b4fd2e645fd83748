"""Losses that are distributions: likelihoods and predictions by scipy, and what a fit finds."""

import io
import pickle
from functools import partial

import numpy as np
import pytest
import spinney
from numpy.testing import assert_allclose
from oracle import boosting as oracle
from scipy import stats
from scipy.integrate import quad
from spinney import _engine
from spinney._model.distributions import DISTRIBUTIONS

LOSSES = {traits.name: traits for traits in _engine.boosting_losses() if traits.is_distribution}
COUNTS = ("negative_binomial", "zero_inflated_poisson")
FEW = {"n_estimators": 60, "max_leaf_nodes": 6, "learning_rate": 0.1, "linear_leaves": False}


def scores_of(name, n=40, seed=0):
    scores = np.random.RandomState(seed).uniform(-1.0, 1.5, size=(LOSSES[name].n_scores, n))
    scores[1] += 2.0 if name == "beta" else 0.0  # targets away from 0 and 1
    return scores


def sample(name, scores, seed=0):
    random = np.random.RandomState(seed)
    if name == "zero_inflated_poisson":
        is_zero = random.uniform(size=scores.shape[1]) < 1 / (1 + np.exp(-scores[1]))
        return np.where(is_zero, 0, random.poisson(np.exp(scores[0]))).astype(float)
    return oracle.distribution(name, scores).rvs(random_state=random).astype(float)


def test_every_distribution_has_its_loss():
    assert set(DISTRIBUTIONS) == set(LOSSES)
    for name, one in DISTRIBUTIONS.items():
        assert len(one.score_names) == LOSSES[name].n_scores
        assert LOSSES[name].link == name


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_likelihoods_are_scipys(name):
    scores, other = scores_of(name), scores_of(name, seed=1)
    y = sample(name, scores)
    found = DISTRIBUTIONS[name].of_scores(scores.T)
    assert_allclose(found.log_likelihood(y), oracle.log_likelihood(name, y, scores), rtol=1e-9, atol=1e-10)
    change = _engine.loss_rows(name, 1.0, y, scores) - _engine.loss_rows(name, 1.0, y, other)
    wanted = oracle.log_likelihood(name, y, other) - oracle.log_likelihood(name, y, scores)
    assert_allclose(change, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_hessians_are_expected_squares_of_gradients(name):
    n = 200_000
    for seed in (2, 3):
        scores = np.repeat(scores_of(name, 1, seed), n, axis=1)
        gradients, hessians = _engine.loss_gradients(name, 1.0, sample(name, scores, seed), scores)
        for k in range(len(scores)):
            is_approximate = name == "negative_binomial" and k == 1
            wanted = max(np.mean(gradients[k] ** 2), 0.01)
            assert_allclose(hessians[k, 0], wanted, rtol=0.2 if is_approximate else 0.05)
            assert abs(gradients[k].mean()) < 5 * gradients[k].std() / np.sqrt(n)


@pytest.mark.parametrize("name", LOSSES)
def test_moments_and_quantiles_are_scipys(name):
    scores = scores_of(name, 300, seed=4)
    found = DISTRIBUTIONS[name].of_scores(scores.T)
    levels = np.array([0.01, 0.2, 0.5, 0.9, 0.999])
    y = sample(name, scores, seed=5)
    if name == "zero_inflated_poisson":
        rate, zero = np.exp(scores[0]), 1 / (1 + np.exp(-scores[1]))
        assert_allclose(found.mean, (1 - zero) * rate)
        assert_allclose(found.std**2, (1 - zero) * (rate + rate**2) - (1 - zero) ** 2 * rate**2)
        assert_allclose(found.cdf(y), zero + (1 - zero) * stats.poisson(rate).cdf(y))
        above = np.maximum((levels - zero[:, None]) / (1 - zero[:, None]), 0)
        wanted = np.where(above > 0, stats.poisson(rate[:, None]).ppf(above), 0)
    else:
        of_rows = oracle.distribution(name, scores)
        assert_allclose(found.mean, of_rows.mean(), rtol=1e-9)
        assert_allclose(found.std, of_rows.std(), rtol=1e-9)
        assert_allclose(found.cdf(y), of_rows.cdf(y), rtol=1e-9)
        wanted = np.column_stack([of_rows.ppf(level) for level in levels])
    assert_allclose(found.quantile(levels), wanted, rtol=1e-8)
    assert_allclose(found.quantile(0.2), wanted[:, 1], rtol=1e-8)
    for wrong in ([], 0.0, [0.5, 1.0], [[0.5]]):
        with pytest.raises(ValueError, match="above 0 and below 1"):
            found.quantile(wrong)


@pytest.mark.parametrize("name", LOSSES)
def test_the_crps_is_its_integral(name):
    scores = scores_of(name, 6, seed=6)
    found = DISTRIBUTIONS[name].of_scores(scores.T)
    y = sample(name, scores, seed=7)
    for r in range(len(y)):
        one = DISTRIBUTIONS[name].of_scores(scores.T[[r]])
        if name in COUNTS:
            grid = np.arange(0, 4000)
            wanted = sum((one.cdf(k)[0] - (k >= y[r])) ** 2 for k in grid[: int(one.quantile(1 - 1e-12)[0] + y[r] + 2)])
        else:
            low, high = (one.quantile(level)[0] for level in (1e-9, 1 - 1e-9))
            ends = (min(low, y[r]), max(high, y[r]))
            below = quad(lambda x, one=one: one.cdf(x)[0] ** 2, ends[0], y[r], limit=200)[0]
            wanted = below + quad(lambda x, one=one: (1 - one.cdf(x)[0]) ** 2, y[r], ends[1], limit=200)[0]
        assert found.crps(y)[r] == pytest.approx(wanted, rel=1e-4)


# ---- fits ---------------------------------------------------------------------------------------------------


def table_of(name, n=1500, seed=0):
    random = np.random.RandomState(seed)
    X = random.uniform(-1, 1, size=(n, 3))
    scores = np.zeros((LOSSES[name].n_scores, n))
    scores[0] = X[:, 0] + 0.5
    scores[1] = X[:, 1] * (1 if name != "zero_inflated_poisson" else 2)
    if name in ("gamma_distribution", "negative_binomial", "beta"):
        scores[1] += 1.5
    return X, sample(name, scores, seed + 1), scores


@pytest.mark.parametrize("name", LOSSES)
def test_a_fit_finds_the_parameters(name):
    X, y, scores = table_of(name)
    model = spinney.GradientBoostingRegressor(name, **FEW).fit(X, y)
    assert (np.diff(model.train_score_) < 1e-9).all()
    new_X, new_y, new_scores = table_of(name, seed=10)
    found = model.predict_distribution(new_X)
    constant = DISTRIBUTIONS[name].of_scores(np.broadcast_to(model.boosting_.start, (len(new_y), len(scores))))
    known = DISTRIBUTIONS[name].of_scores(new_scores.T)
    least, most = -known.log_likelihood(new_y).mean(), -constant.log_likelihood(new_y).mean()
    assert -found.log_likelihood(new_y).mean() < (least + most) / 2
    assert found.crps(new_y).mean() < constant.crps(new_y).mean()
    assert_allclose(model.predict(new_X), found.mean)
    assert_allclose(model.predict_std(new_X), found.std)
    quantiles = model.predict_quantiles(new_X, [0.05, 0.95])
    assert 0.8 < np.mean((quantiles[:, 0] <= new_y) & (new_y <= quantiles[:, 1])) < (1 if name in COUNTS else 0.95)
    mean, std = found
    assert mean is found.mean or (mean == found.mean).all()
    assert (std == found.std).all()
    scored = model._scores(X, None)
    nll = _engine.loss_value(name, 1.0, y, np.ascontiguousarray(scored.T), None)
    assert model.train_score_[-1] == pytest.approx(nll, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "normal"])
def test_models_are_the_same_everywhere(name):
    X, y, _ = table_of(name, 400)
    make = partial(spinney.GradientBoostingRegressor, name, **FEW | {"n_estimators": 6})
    model = make(n_jobs=1).fit(X, y)
    assert make(n_jobs=3).fit(X, y).fingerprint() == model.fingerprint()
    weight = np.random.RandomState(0).randint(0, 3, len(y)).astype(float)
    y_or_impossible = np.where(weight > 0, y, -1e9)
    weighted = make(min_samples_leaf=1).fit(X, y_or_impossible, weight)
    repeated = make(min_samples_leaf=1).fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int)))
    assert_allclose(weighted.boosting_.start, repeated.boosting_.start, rtol=1e-6, atol=1e-7)
    assert np.isfinite(weighted.predict_std(X)).all()
    file = io.BytesIO()
    model.save(file)
    for again in (spinney.load(io.BytesIO(file.getvalue())), pickle.loads(pickle.dumps(model))):
        assert again.fingerprint() == model.fingerprint()
        assert (again.predict_distribution(X).quantile(0.3) == model.predict_quantiles(X, 0.3)).all()
    assert model.to_predictor().predict(X[0].tolist()) == pytest.approx(model.predict(X[:1])[0], rel=1e-12)
    shap = model.shap_values(X[:5])
    assert shap.output_names == list(DISTRIBUTIONS[name].score_names)
    assert_allclose(shap.predictions, model._scores(X[:5], None))
    vector = make(leaves="vector").fit(X, y)
    assert vector.train_score_[-1] < model.train_score_[0]
    offset = np.zeros((len(y), LOSSES[name].n_scores))
    assert make().fit(X, y, offset=offset).predict(X, offset=offset) == pytest.approx(model.predict(X), rel=1e-6)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "normal"])
def test_defaults_stop_early_and_calibrate(name):
    X, y, _ = table_of(name, 300)
    quick = {"effort": 0.2, "n_iter_no_change": 5}
    model = spinney.GradientBoostingRegressor(name, **quick).fit(X, y)
    constant = DISTRIBUTIONS[name].of_scores(np.broadcast_to(model.boosting_.start, (len(y), LOSSES[name].n_scores)))
    assert model.predict_distribution(X).log_likelihood(y).mean() > constant.log_likelihood(y).mean()
    interval = model.predict_interval(X, 0.9)
    assert 0.8 < np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])) <= 1


@pytest.mark.parametrize("name", LOSSES)
def test_constant_targets_have_finite_predictions(name):
    X = np.random.RandomState(0).normal(size=(100, 2))
    y = np.full(100, 0.25 if name == "beta" else 3.0)
    model = spinney.GradientBoostingRegressor(name, **FEW).fit(X, y)
    assert_allclose(model.predict(X), y, rtol=0.05)
    assert np.isfinite(model.predict_std(X)).all()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("gamma_distribution", 0.0, "needs targets above 0. Row 3 of y has 0"),
        ("log_normal", -2.0, "needs targets above 0. Row 3 of y has -2"),
        ("beta", 1.0, "needs targets above 0 and below 1. Row 3 of y has 1"),
        ("negative_binomial", 1.5, "needs whole numbers of at least 0 as targets. Row 3 of y has 1.5"),
        ("zero_inflated_poisson", -1.0, "needs whole numbers of at least 0 as targets. Row 3 of y has -1"),
    ],
)
def test_impossible_targets_are_refused(name, value, sentence):
    X, y, _ = table_of(name, 100)
    y[3] = value
    with pytest.raises(ValueError, match=sentence):
        spinney.GradientBoostingRegressor(name, **FEW).fit(X, y)


def test_what_distributions_do_not_have_is_refused():
    X, y, _ = table_of("gamma_distribution", 100)
    make = partial(spinney.GradientBoostingRegressor, "gamma_distribution", **FEW)
    with pytest.raises(ValueError, match="has several: log of the mean and log of the shape"):
        make(monotonic_cst=[1, 0, 0]).fit(X, y)
    with pytest.raises(ValueError, match="is for one output"):
        make().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="takes no initial estimator"):
        make(init=spinney.DecisionTreeRegressor(max_depth=2)).fit(X, y)
    with pytest.raises(AttributeError, match="Fit with loss='normal', or another of"):
        spinney.GradientBoostingRegressor(n_estimators=2).fit(X, y).predict_quantiles(X)
    with pytest.raises(AttributeError, match="Fit with loss='normal'"):
        make().fit(X, y).predict_uncertainty(X)
    with pytest.raises(ValueError, match="link 'gamma_distribution'"):
        spinney.to_c(make().fit(X, y))


def test_distributions_are_scored_by_name():
    X, y, _ = table_of("gamma_distribution", 600)
    held_out = {"X_val": X[400:], "y_val": y[400:]}
    for metric in ("nll", "log_likelihood", "crps", "neg_crps"):
        model = spinney.GradientBoostingRegressor("gamma_distribution", **FEW, scoring=metric, early_stopping=True)
        model.fit(X[:400], y[:400], **held_out)
        found = model.predict_distribution(X[400:])
        wanted = found.crps(y[400:]).mean() if "crps" in metric else -found.log_likelihood(y[400:]).mean()
        assert min(model.validation_score_) == pytest.approx(wanted)
    with pytest.raises(ValueError, match="predicts no distributions"):
        spinney.GradientBoostingRegressor(scoring="crps", early_stopping=True, n_estimators=3).fit(X, y)
