"""The engine's boosting beside its reference implementation, and the derivatives of the losses."""

from dataclasses import replace

import numpy as np
import pytest
import spinney
from oracle import boosting as reference
from spinney import _engine
from spinney._boosting.loss import Loss
from spinney._boosting.options.engine_options import BoosterInputs, engine_options
from spinney._boosting.options.recipe import resolve
from spinney._boosting.settings import BoostingSettings
from sweep import covering

REGRESSION = [traits.name for traits in _engine.boosting_losses() if not traits.of_classes and traits.n_scores == 1]
PARAMETER = {"quantile": 0.7, "expectile": 0.7, "huber": 0.9, "log_cosh": 0.9, "tweedie": 1.4, "focal": 2.0}


def make_table(seed=0, n=90, missing=0.0, categories=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < missing] = np.nan
    if categories:
        X[:, 3] = rng.integers(0, categories, size=n)
    signal = np.nan_to_num(X[:, 0]) - np.nan_to_num(X[:, 1]) ** 2 + 0.4 * np.nan_to_num(X[:, 3])
    return X, signal + 0.3 * rng.normal(size=n)


def as_target(loss, y):
    if loss in ("poisson", "tweedie", "squared_log_error"):
        return np.round(np.exp(y / 2))
    return np.exp(y / 3) if loss == "gamma" else y


def nodes_of(model):
    return [(int(n), int(f)) for t in model.boosting_.trees() for n, f in zip(t.n_rows, t.feature, strict=True)]


def reference_nodes(trees):
    return [(len(v.rows), v.feature if v.children else -1) for root in trees for v in root.preorder()]


def assert_agree(model, X, scores, trees, rtol=2e-5):
    assert nodes_of(model) == reference_nodes(trees)
    columns = model._columns(X)
    np.testing.assert_allclose(model.boosting_.scores(columns, 1), scores.reshape(len(X), -1), rtol=rtol, atol=1e-5)


@pytest.mark.parametrize(*covering(loss=REGRESSION, seed=[0, 1]))
def test_losses_agree_with_the_reference(loss, seed):
    X, y = make_table(seed, missing=0.1)
    y = as_target(loss, y)
    n_rounds = 1 if loss == "huber" else 4  # its leaves are one step from the median: the reference has Newton's
    model = spinney.GradientBoostingRegressor(
        loss,
        **({"quantile": 0.7} if loss in ("quantile", "expectile") else {}),
        **({"tweedie_power": 1.4} if loss == "tweedie" else {}),
        n_estimators=n_rounds,
        learning_rate=0.3,
        max_leaf_nodes=6,
        min_samples_leaf=5,
    ).fit(X, y)
    rules = reference.Rules(max_leaves=6, min_rows=5)
    scores, trees = reference.boost(
        X, y, np.ones(len(y)), loss, n_rounds, 0.3, rules, model.boosting_.start[0], PARAMETER.get(loss, 0.0)
    )
    if loss == "huber":
        assert nodes_of(model) == reference_nodes(trees)
    else:
        assert_agree(model, X, scores, trees)


@pytest.mark.parametrize("loss", ["log_loss", "exponential", "focal", "smooth_hinge"])
def test_two_classes_agree_with_the_reference(loss):
    X, y = make_table(3)
    codes = (y > np.median(y)).astype(float)
    model = spinney.GradientBoostingClassifier(loss, n_estimators=4, max_leaf_nodes=5, min_samples_leaf=4).fit(X, codes)
    name = {"log_loss": "logistic"}.get(loss, loss)
    rules = reference.Rules(max_leaves=5, min_rows=4)
    scores, trees = reference.boost(
        X, codes, np.ones(len(y)), name, 4, 0.1, rules, model.boosting_.start[0], PARAMETER.get(loss, 0.0)
    )
    assert_agree(model, X, scores, trees)


def test_many_classes_agree_with_the_reference():
    X, y = make_table(4)
    codes = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model = spinney.GradientBoostingClassifier(
        n_estimators=3, learning_rate=0.5, max_leaf_nodes=5, min_samples_leaf=4
    ).fit(X, codes)
    scores, trees = reference.boost_classes(X, codes, 3, 3, 0.5, reference.Rules(max_leaves=5, min_rows=4))
    assert_agree(model, X, scores, trees)


@pytest.mark.parametrize(
    ("parameters", "rules"),
    [
        ({"l2_regularization": 3.0}, {"l2": 3.0}),
        ({"regularization": {"l1": 2.0}}, {"l1": 2.0}),
        ({"regularization": {"max_step": 0.2}}, {"max_step": 0.2}),
        ({"regularization": {"min_gain": 3.0}}, {"min_gain": 3.0}),
        ({"regularization": {"min_hessian_leaf": 12.0}}, {"min_hessian": 12.0}),
        ({"max_depth": 2}, {"max_depth": 2}),
        ({"growth": "depth"}, {"depth_wise": True}),
        ({"growth": "depth", "max_depth": 3, "max_leaf_nodes": None}, {"max_depth": 3, "max_leaves": 10**9}),
    ],
)
def test_rules_agree_with_the_reference(parameters, rules):
    X, y = make_table(5, missing=0.2)
    given = {"n_estimators": 3, "max_leaf_nodes": 8, "min_samples_leaf": 1} | parameters
    model = spinney.GradientBoostingRegressor(**given).fit(X, y)
    wanted = reference.Rules(**({"max_leaves": 8, "min_rows": 1} | rules))
    if parameters.get("growth") == "depth":
        wanted.depth_wise = True
    scores, trees = reference.boost(X, y, np.ones(len(y)), "squared_error", 3, 0.1, wanted, y.mean())
    assert_agree(model, X, scores, trees)


@pytest.mark.parametrize(
    ("parameters", "rules", "n_categories"),
    [
        ({}, {}, 0),
        ({"min_samples_leaf": 7}, {"min_rows": 7}, 3),
        ({"l2_regularization": 3.0, "max_depth": 2}, {"l2": 3.0, "max_depth": 2}, 8),
        ({"regularization": {"l1": 2.0}}, {"l1": 2.0}, 8),
        (
            {"regularization": {"max_step": 0.2}, "max_leaf_nodes": 9},
            {"max_step": 0.2, "max_leaves": 9},
            0,
        ),
        ({"regularization": {"min_gain": 30.0}}, {"min_gain": 30.0}, 3),
    ],
)
def test_symmetric_trees_agree_with_the_reference(parameters, rules, n_categories):
    X, y = make_table(7, n=60, missing=0.2, categories=n_categories)
    y = y + 2 * np.sin(7 * np.nan_to_num(X[:, 3], nan=20.0)) if n_categories else y
    given = {"n_estimators": 2, "max_leaf_nodes": 8, "min_samples_leaf": 1, "growth": "symmetric"} | parameters
    categories = [3] if n_categories else None
    model = spinney.GradientBoostingRegressor(
        **given, categorical_features=categories, categories={"smoothing": 4.0}
    ).fit(X, y)
    wanted = {"max_leaves": 8, "min_rows": 1, "symmetric": True, "smoothing": 4.0} | rules
    wanted["categories"] = frozenset(categories or ())
    scores, trees = reference.boost(X, y, np.ones(len(y)), "squared_error", 2, 0.1, reference.Rules(**wanted), y.mean())
    assert_agree(model, X, scores, trees)


@pytest.mark.parametrize("n_categories", [3, 8])
@pytest.mark.parametrize("smoothing", [0.0, 10.0])
def test_categories_agree_with_the_reference(n_categories, smoothing):
    X, y = make_table(6, categories=n_categories)
    X[::9, 3] = np.nan
    y = y + 4 * np.sin(7 * np.nan_to_num(X[:, 3], nan=20.0))
    model = spinney.GradientBoostingRegressor(
        n_estimators=3,
        max_leaf_nodes=6,
        min_samples_leaf=3,
        categorical_features=[3],
        categories={"smoothing": smoothing, "l2": 2.0},
    ).fit(X, y)
    rules = reference.Rules(max_leaves=6, min_rows=3, smoothing=smoothing, category_l2=2.0, categories=frozenset({3}))
    scores, trees = reference.boost(X, y, np.ones(len(y)), "squared_error", 3, 0.1, rules, y.mean())
    assert 3 in {feature for _, feature in nodes_of(model)}
    assert_agree(model, X, scores, trees)


def test_weights_agree_with_the_reference():
    X, y = make_table(7)
    weight = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    model = spinney.GradientBoostingRegressor(n_estimators=4, max_leaf_nodes=7, min_samples_leaf=1).fit(X, y, weight)
    rules = reference.Rules(max_leaves=7, min_rows=1)
    scores, trees = reference.boost(X, y, weight, "squared_error", 4, 0.1, rules, np.average(y, weights=weight))
    used = weight > 0
    assert nodes_of(model) == reference_nodes(trees)
    np.testing.assert_allclose(model.predict(X)[used], scores[used], rtol=2e-5, atol=1e-5)


def test_coarse_bins_are_cut_between_them():
    X, y = make_table(8, n=400)
    model = spinney.GradientBoostingRegressor(n_estimators=1, max_leaf_nodes=40, min_samples_leaf=1, max_bins=8).fit(
        X, y
    )
    engine = model.boosting_.engine
    for feature in range(4):
        assert len(np.unique(engine.threshold[engine.feature == feature])) <= 7


# ---- derivatives ------------------------------------------------------------------------------------------


def stump_free(loss, y, score, parameter, **limits):
    """Step of a single leaf from one score, and the loss there, through the engine."""
    n = len(y)
    columns = (
        spinney.GradientBoostingRegressor(n_estimators=1).fit(np.zeros((n, 1)), np.arange(n))._columns(np.zeros((n, 1)))
    )

    model = spinney.GradientBoostingRegressor(
        n_estimators=1, min_samples_leaf=1, learning_rate=1.0, regularization={"min_hessian_leaf": 0.0, **limits}
    )
    options = engine_options(
        BoostingSettings.of(model),
        resolve(BoostingSettings.of(model), n, 1, False),
        _schema(),
        named(loss, parameter),
        BoosterInputs(n, float(n), 1, 0),
    )
    engine = _engine.Boosting(
        columns, y[np.newaxis], None, np.full((1, n), score), None, _engine.BoostingOptions(**options), 0
    )
    before = engine.training_loss()
    engine.advance(1)
    return engine.trees(0)[0].value[0], before


def test_steps_grow_with_the_number_of_rounds_to_three_times_the_first():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = spinney.GradientBoostingRegressor(n_estimators=1, max_leaf_nodes=3).fit(X, y)
    settings = BoostingSettings.of(model)
    columns, recipe = model._columns(X), resolve(settings, 40, 1, False)

    def booster(grow_after, scores, n_done):
        chosen = replace(recipe, learning_rate_growth_start=grow_after)
        options = engine_options(
            BoostingSettings.of(model), chosen, model.schema_, named("squared_error"), BoosterInputs(40, 40.0, 1, 0)
        )
        read = _engine.BoostingOptions(**options)
        return _engine.Boosting(columns, y[np.newaxis], None, scores, None, read, n_done)

    growing = booster(2, np.zeros((1, 40)), 0)
    for n_done in range(11):
        plain = booster(0, growing.scores(), n_done)
        plain.advance(1)
        growing.advance(1)
        growth = min(3.0, max(1.0, n_done / 2))
        np.testing.assert_allclose(growing.trees(n_done)[0].value, growth * plain.trees(0)[0].value, rtol=1e-13)


def _schema():
    return spinney.GradientBoostingRegressor(n_estimators=1).fit(np.zeros((4, 1)), np.arange(4.0)).schema_


def named(name, parameter=0.0):
    return Loss(name, lambda y, weight, offset: 0.0, parameter=parameter)


@pytest.mark.parametrize("loss", ["squared_error", "logistic", "exponential", "poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("score", [-1.3, 0.0, 0.7, 3.0])
def test_steps_and_losses_agree_with_finite_differences(loss, score):
    y = np.array([1.0]) if loss != "squared_error" else np.array([0.3])
    parameter = PARAMETER.get(loss, 0.0)
    value, found = stump_free(loss, y, score, parameter)

    def mean_loss(f):
        return float(reference.losses(loss, y, np.full(len(y), f), parameter).mean())

    e = 1e-4
    first = (mean_loss(score + e) - mean_loss(score - e)) / (2 * e)
    second = (mean_loss(score + e) - 2 * mean_loss(score) + mean_loss(score - e)) / e**2
    assert found == pytest.approx(mean_loss(score), rel=1e-14)
    temper = (lambda s: s) if loss == "squared_error" else reference.tempered
    assert value == pytest.approx(temper(-first / second), rel=1e-4, abs=1e-6)
    g, h = reference.gradients(loss, y, np.full(len(y), score), parameter)
    assert value == pytest.approx(temper(-g.sum() / h.sum()), rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "exponential", "poisson", "gamma", "tweedie"])
def test_long_steps_are_newtons_own_where_that_is_asked_for(loss):
    y, parameter = np.array([1.0]), PARAMETER.get(loss, 0.0)
    score = 3.0 if loss == "gamma" else -3.0
    g, h = reference.gradients(loss, y, np.full(1, score), parameter)
    newton = -g.sum() / h.sum()
    for max_step, wanted in ((None, newton), ("auto", reference.tempered(newton)), (0.5, np.clip(newton, -0.5, 0.5))):
        value, _ = stump_free(loss, y, score, parameter, max_step=max_step)
        assert value == pytest.approx(wanted, rel=1e-6)
    assert loss == "exponential" or abs(newton) > 1.9


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0, 5.0])
def test_the_focal_losses_slope_is_its_own_and_its_curvature_at_least_a_log_losses_share(gamma):
    y, e = np.array([1.0]), 1e-4
    for score in (-4.0, -1.0, 0.0, 0.7, 3.0):
        at = [float(reference.losses("focal", y, np.full(1, f), gamma)[0]) for f in (score - e, score, score + e)]
        g, h = (v[0] for v in reference.gradients("focal", y, np.full(1, score), gamma))
        assert g == pytest.approx((at[2] - at[0]) / (2 * e), rel=1e-5)
        p = 1 / (1 + np.exp(-score))
        assert h == pytest.approx(max((at[2] - 2 * at[1] + at[0]) / e**2, p * (1 - p) ** (1 + gamma)), rel=1e-4)
        value, found = stump_free("focal", y, score, gamma)
        assert found == pytest.approx(at[1], rel=1e-13)
        assert value == pytest.approx(reference.tempered(-g / h), rel=1e-6)


@pytest.mark.parametrize("loss", ["log_cosh", "smooth_hinge"])
def test_parabolas_touch_these_losses_from_above(loss):
    delta, far, e = 1.7, np.linspace(-30, 30, 4001), 1e-5

    def value(f):
        return reference.losses(loss, np.ones_like(f), f, delta)

    for score in (-9.0, -1.3, 0.0, 0.4, 0.99, 1.2, 4.0):
        here = np.full(1, score)
        g, h = (v[0] for v in reference.gradients(loss, np.ones(1), here, 0.9))
        if loss == "log_cosh":  # the reference takes delta from the residuals
            g, h = delta * np.tanh((score - 1) / delta), np.tanh((score - 1) / delta) / ((score - 1) / delta)
        assert g == pytest.approx((value(here + e) - value(here - e))[0] / (2 * e), abs=1e-5)
        assert (value(here)[0] + g * (far - score) + h * (far - score) ** 2 / 2 >= value(far) - 1e-9).all()


@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "huber"])
def test_losses_that_refit_their_leaves(loss):
    rng = np.random.default_rng(0)
    y = rng.standard_cauchy(size=501)
    parameter = PARAMETER.get(loss, 0.0)
    value, found = stump_free(loss, y, 0.4, parameter)
    if loss == "huber":
        delta = np.quantile(np.abs(y - 0.4), 0.9, method="averaged_inverted_cdf")
        median = np.median(y - 0.4)
        assert value == pytest.approx(median + np.clip(y - 0.4 - median, -delta, delta).mean(), rel=1e-12)
    else:
        share = 0.5 if loss == "absolute_error" else parameter
        assert value == np.quantile(y - 0.4, share, method="averaged_inverted_cdf")
        assert found == pytest.approx(reference.losses(loss, y, 0.4, parameter).mean(), rel=1e-13)


def test_the_engines_exponential_and_logarithm():
    scores = np.concatenate([np.linspace(-700, 700, 2001), np.linspace(-1, 1, 400), 10.0 ** np.arange(-300, 0, 7)])
    n = len(scores)
    model = spinney.GradientBoostingRegressor(n_estimators=1).fit(np.zeros((4, 1)), np.arange(4.0))
    columns = model._columns(np.zeros((1, 1)))
    settings = BoostingSettings.of(model)
    recipe = resolve(settings, 1, 1, False)
    poisson, logistic = (
        engine_options(settings, recipe, model.schema_, named(name), BoosterInputs(1, 1.0, 1, 0))
        for name in ("poisson", "logistic")
    )
    for f in scores[:: max(1, n // 300)]:
        engine = _engine.Boosting(
            columns, np.zeros((1, 1)), None, np.full((1, 1), f), None, _engine.BoostingOptions(**poisson), 0
        )
        assert engine.training_loss() == pytest.approx(np.exp(f), rel=5e-16)
        engine = _engine.Boosting(
            columns, np.zeros((1, 1)), None, np.full((1, 1), f), None, _engine.BoostingOptions(**logistic), 0
        )
        assert engine.training_loss() == pytest.approx(np.logaddexp(0, f), rel=1e-15, abs=2e-16)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_columns_that_never_meet_agree_with_the_reference(missing):
    rng = np.random.default_rng(11)
    n = 160
    which = rng.integers(0, 6, size=n)
    one_hot = (which[:, np.newaxis] == np.arange(5)) * np.round(rng.normal(2, 1, size=(n, 5)), 2)
    X = np.column_stack([one_hot, rng.normal(size=n)])
    X[rng.random(X.shape) < missing] = np.nan
    y = np.nan_to_num(X) @ [1.0, -2.0, 0.5, 3.0, -1.0, 1.0] + 0.2 * rng.normal(size=n)
    rules = reference.Rules(max_leaves=9, min_rows=3)
    scores, trees = reference.boost(X, y, np.ones(n), "squared_error", 4, 0.3, rules, y.mean())
    prints = set()
    for n_jobs in (1, 3):
        model = spinney.GradientBoostingRegressor(
            n_estimators=4, learning_rate=0.3, max_leaf_nodes=9, min_samples_leaf=3, n_jobs=n_jobs
        ).fit(X, y)
        assert_agree(model, X, scores, trees)
        prints.add(model.fingerprint())
    assert len(prints) == 1


def test_symmetric_trees_have_a_cut_for_each_level():
    X, y = make_table(8, n=400)
    parameters = {"n_estimators": 20, "growth": "symmetric", "max_depth": 3}
    model = spinney.GradientBoostingRegressor(**parameters).fit(X, y)
    n_splits = []
    for tree in model.boosting_.trees():
        splits = np.flatnonzero(tree.feature >= 0)
        assert len({(tree.feature[i], tree.threshold[i]) for i in splits}) <= 3
        n_splits.append(len(splits))
    assert max(n_splits) > 3
    with pytest.raises(ValueError, match="monotonicity constraints may forbid it"):
        spinney.GradientBoostingRegressor(growth="symmetric", monotonic_cst=[1, 0, 0, 0]).fit(X, y)
