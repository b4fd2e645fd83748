"""The engine's table of losses: traits, and consistency of values, gradients and initial scores."""

import io

import numpy as np
import pytest
import spinney
from numpy.testing import assert_allclose
from oracle import boosting as oracle
from sklearn.dummy import DummyRegressor
from sklearn.metrics import mean_squared_log_error
from spinney import _engine

LOSSES = {traits.name: traits for traits in _engine.boosting_losses()}
ONE_SCORE = [name for name, traits in LOSSES.items() if traits.n_scores == 1]
N_ROWS = 300


def rows_of(traits, seed=0):
    random = np.random.RandomState(seed)
    n_scores = traits.n_scores or 4
    if traits.of_classes:
        n_classes = 4 if traits.has_cuts else 2 if traits.n_scores == 1 else n_scores
        target = random.randint(0, n_classes, N_ROWS).astype(float)
    elif traits.targets is _engine.LossTargets.unit_interval:
        target = random.beta(2.0, 3.0, N_ROWS)
    elif traits.targets is _engine.LossTargets.counts:
        target = random.negative_binomial(2, 0.3, N_ROWS).astype(float)
    else:
        target = random.gamma(2.0, 3.0, N_ROWS)
    return target, random.normal(size=(n_scores, N_ROWS)), random.uniform(0.5, 2.0, N_ROWS)


def parameter_of(traits, target, scores, weight):
    if traits.has_location:
        return 2.0
    if traits.has_cuts:
        return _engine.ordinal_cuts(target, scores[0], weight, 4, 1)
    return (
        _engine.loss_delta(traits.name, traits.parameter.preset, target, scores[0], weight) if traits.parameter else 0.0
    )


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_the_slopes_of_values(name):
    traits = LOSSES[name]
    target, scores, weight = rows_of(traits)
    parameter, step = parameter_of(traits, target, scores, weight), 1e-6
    gradients, hessians = _engine.loss_gradients(name, parameter, target, scores)
    assert (hessians >= 0).all()
    for k in range(len(scores)):
        if traits.has_location and k == 0:
            continue  # in units of the variance
        up, down = scores.copy(), scores.copy()
        up[k] += step
        down[k] -= step
        rise = _engine.loss_rows(name, parameter, target, up) - _engine.loss_rows(name, parameter, target, down)
        assert_allclose(gradients[k], rise / (2 * step), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ONE_SCORE)
def test_values_and_gradients_are_the_oracles(name):
    target, scores, weight = rows_of(LOSSES[name], seed=1)
    parameter = parameter_of(LOSSES[name], target, scores, None)
    preset = LOSSES[name].parameter.preset if LOSSES[name].parameter else 0.0
    preset = parameter if LOSSES[name].has_cuts else preset
    gradients, hessians = oracle.gradients(name, target, scores[0], preset)
    found = _engine.loss_gradients(name, parameter, target, scores)
    assert_allclose(found[0][0], gradients, rtol=1e-9, atol=1e-12)
    assert_allclose(found[1][0], hessians, rtol=1e-9, atol=1e-12)
    values = oracle.losses(name, target, scores[0], parameter)
    assert_allclose(_engine.loss_rows(name, parameter, target, scores), values, rtol=1e-9, atol=1e-12)
    mean = np.average(values, weights=weight)
    assert_allclose(_engine.loss_value(name, parameter, target, scores, weight), mean, rtol=1e-9)


@pytest.mark.parametrize("has_offset", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_no_constant_near_the_start_has_less_loss(name, has_offset):
    traits = LOSSES[name]
    target, scores, weight = rows_of(traits, seed=2)
    offset = scores / 4 if has_offset else None
    if traits.has_location and has_offset:
        offset[1] = 0.0  # the mean that starts does not weight rows by deviations that differ
    preset = traits.parameter.preset if traits.parameter else 2.0
    start = _engine.loss_start(name, preset, target, weight, offset, len(scores))
    assert start.shape == (len(scores),)
    if traits.has_delta:
        return  # these start at the median, wherever they bend

    if traits.has_cuts:
        preset = parameter_of(traits, target, np.zeros_like(scores) if offset is None else offset, weight)

    def loss_at(constants):
        at = constants[:, np.newaxis] + (0.0 if offset is None else offset) + np.zeros_like(scores)
        return _engine.loss_value(name, preset, target, at, weight)

    for k in range(len(scores)):
        for step in (-1e-3, 1e-3):
            assert loss_at(start + step * (np.arange(len(scores)) == k)) >= loss_at(start)


@pytest.mark.parametrize("n", [1, 7, 8, 100, 129, 1000, 4099])
def test_means_are_numpys_to_the_bit(n):
    target = np.random.RandomState(n).normal(size=n)
    weight = np.random.RandomState(n + 1).uniform(size=n)
    first = np.average(target, weights=weight)
    mean = first + np.average(target - first, weights=weight)
    assert _engine.loss_start("squared_error", 0.0, target, weight, None, 1)[0] == mean


def test_the_start_of_a_sum_that_cancels_is_exact():
    found = _engine.root_of_sum(lambda at: np.array([1e16, 1.0 + 3 * at, -1e16]), 0.0, 0.0, 1.0)
    assert found == pytest.approx(-1 / 3, abs=1e-15)


def test_parameters_have_bounds_around_their_defaults():
    for traits in LOSSES.values():
        if traits.parameter is not None:
            assert traits.parameter.low < traits.parameter.preset < traits.parameter.high
            assert traits.parameter.name in ("quantile", "huber_share", "tweedie_power", "focal_gamma")


def test_rows_that_do_not_fit_are_refused():
    y = np.zeros(3)
    with pytest.raises(ValueError, match="different numbers of rows"):
        _engine.loss_rows("squared_error", 0.0, y, np.zeros((1, 4)))
    with pytest.raises(ValueError, match="number of columns"):
        _engine.loss_rows("normal", 1.0, y, np.zeros((1, 3)))
    with pytest.raises(ValueError, match="class code is out of range"):
        _engine.loss_start("multinomial", 0.0, y + 5, None, None, 3)
    with pytest.raises(ValueError, match="class code is out of range"):
        _engine.loss_rows("ordinal", np.zeros(1), y + 2, np.zeros((1, 3)))
    with pytest.raises(ValueError, match="cuts must be finite, and ascend"):
        _engine.loss_rows("ordinal", np.zeros(2), y, np.zeros((1, 3)))
    for name, parameter in (("ordinal", 2.0), ("squared_error", np.zeros(2))):
        with pytest.raises(ValueError, match="an array of cuts is for ordered classes"):
            _engine.loss_rows(name, parameter, y, np.zeros((1, 3)))
    with pytest.raises(ValueError, match="no loss cubic"):
        _engine.loss_value("cubic", 0.0, y, np.zeros((1, 3)), None)


TABLE = np.random.RandomState(3).normal(size=(400, 3))
VALUES = np.exp(TABLE[:, 0] + np.random.RandomState(4).normal(size=400) / 2)
FEW = {"n_estimators": 8, "max_leaf_nodes": 5}


def test_the_expectile_of_one_half_is_the_mean():
    half = spinney.GradientBoostingRegressor("expectile", **FEW).fit(TABLE, VALUES)
    squared = spinney.GradientBoostingRegressor("squared_error", **FEW).fit(TABLE, VALUES)
    assert_allclose(half.predict(TABLE), squared.predict(TABLE), rtol=1e-6)


def test_expectiles_rise_with_their_level():
    low, high = (
        spinney.GradientBoostingRegressor("expectile", quantile=level, **FEW).fit(TABLE, VALUES).predict(TABLE)
        for level in (0.2, 0.8)
    )
    assert (low < high).mean() > 0.95
    with pytest.raises(ValueError, match="takes one number as quantile"):
        spinney.GradientBoostingRegressor("expectile", quantile=[0.2, 0.8]).fit(TABLE, VALUES)


def test_percentage_errors_are_least_where_they_are_the_loss():
    def error(loss):
        model = spinney.GradientBoostingRegressor(loss, **FEW).fit(TABLE, 10 * VALUES)
        return np.mean(np.abs(model.predict(TABLE) - 10 * VALUES) / np.maximum(10 * VALUES, 1))

    assert error("mape") < min(error("absolute_error"), error("squared_error"))
    zero = spinney.GradientBoostingRegressor("mape", **FEW).fit(TABLE, np.round(TABLE[:, 0]))
    assert np.isfinite(zero.predict(TABLE)).all()


# ---- the squared error of logarithms ----------------------------------------------------------------------------


def test_the_squared_log_error_is_the_squared_error_of_logarithms():
    target = np.exp(np.abs(VALUES))
    limits = {"n_estimators": 20, "max_leaf_nodes": 6, "learning_rate": 0.3}
    model = spinney.GradientBoostingRegressor("squared_log_error", **limits).fit(TABLE, target)
    plain = spinney.GradientBoostingRegressor(**limits).fit(TABLE, np.log1p(target))
    assert_allclose(np.log1p(model.predict(TABLE)), plain.predict(TABLE), rtol=1e-6)
    found = mean_squared_log_error(target, model.predict(TABLE))
    squared = spinney.GradientBoostingRegressor(**limits).fit(TABLE, target).predict(TABLE)
    assert found < mean_squared_log_error(target, squared.clip(0))
    predictor = model.to_predictor()
    assert predictor.predict(TABLE[0].tolist()) == model.predict(TABLE[:1])[0]
    file = io.BytesIO()
    model.save(file)
    assert spinney.load(io.BytesIO(file.getvalue())).predict(TABLE).tolist() == model.predict(TABLE).tolist()


def test_the_squared_log_error_needs_targets_of_at_least_0():
    with pytest.raises(ValueError, match="needs targets of at least 0"):
        spinney.GradientBoostingRegressor("squared_log_error", **FEW).fit(TABLE, VALUES - VALUES.mean())
    below = DummyRegressor(strategy="constant", constant=-3.0)
    with pytest.raises(ValueError, match="predictions above -1"):
        spinney.GradientBoostingRegressor("squared_log_error", init=below, **FEW).fit(TABLE, VALUES)
