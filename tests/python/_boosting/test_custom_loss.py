"""Boosting with a loss of the user's own: a formula, or an object with its derivatives."""

import numpy as np
import pytest
import spinney
from scipy.special import expit
from sklearn.base import clone
from spinney import _engine
from spinney._boosting import user_loss as custom_loss
from spinney._data.formulas import derivatives, recorded

SMALL = {
    "n_estimators": 12,
    "regularization": {"max_step": None},
    "learning_rate": 0.3,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 5,
}


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.nan_to_num(X[:, 0]) - np.nan_to_num(X[:, 1]) ** 2 + 0.3 * rng.normal(size=n)


def squared(y, f):
    return (f - y) ** 2 / 2


def logistic(y, f):
    return np.logaddexp(0, -y * f)


class Squared:
    """The squared error with its derivatives."""

    def loss(self, y, f):
        return (f - y) ** 2 / 2

    def gradient(self, y, f):
        return f - y

    def hessian(self, y, f):
        return np.ones_like(f)


@pytest.mark.parametrize("loss", [squared, Squared()])
def test_the_squared_error_of_a_user_gives_the_model_of_the_built_in_one(loss):
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    for more in ({}, {"subsample": 0.7, "random_state": 3}, {"monotonic_cst": [1, 0, 0, 0]}):
        ours = spinney.GradientBoostingRegressor(**SMALL, **more).fit(X, y, weight)
        own = spinney.GradientBoostingRegressor(loss, **SMALL, **more).fit(X, y, weight)
        np.testing.assert_allclose(own.predict(X), ours.predict(X), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(2 * own.train_score_, ours.train_score_, rtol=1e-6)
        if "subsample" in more:
            np.testing.assert_allclose(2 * own.oob_scores_, ours.oob_scores_, rtol=1e-6)
            np.testing.assert_allclose(2 * own.oob_improvement_, ours.oob_improvement_, rtol=1e-4, atol=1e-9)
        for a, b in zip(own.boosting_.trees(), ours.boosting_.trees(), strict=True):
            np.testing.assert_array_equal(a.feature, b.feature)


def test_a_logistic_formula_gives_the_log_losses_model_and_classes():
    X, y = table()
    labels = np.where(y > 0, "yes", "no")
    ours = spinney.GradientBoostingClassifier(**SMALL).fit(X, labels)
    own = spinney.GradientBoostingClassifier(logistic, **SMALL).fit(X, labels)
    np.testing.assert_allclose(own.predict_proba(X), ours.predict_proba(X), rtol=1e-5)
    assert (own.predict(X) == ours.predict(X)).all()


def test_rows_held_out_stop_it_and_folds_average_it():
    X, y = table(600)
    stopped = spinney.GradientBoostingRegressor(
        squared, n_estimators=300, learning_rate=0.5, early_stopping=True, n_iter_no_change=5, random_state=0
    ).fit(X, y)
    assert stopped.n_iter_ < 300
    ours = spinney.GradientBoostingRegressor(linear_leaves=False).fit(X[:400], y[:400])  # the recipe of custom losses
    own = spinney.GradientBoostingRegressor(squared).fit(X[:400], y[:400])
    off = [np.mean((m.predict(X[400:]) - y[400:]) ** 2) for m in (own, ours)]
    assert off[0] < 1.1 * off[1] < 0.5 * y.var()


def test_an_asymmetric_loss_moves_the_prediction():
    X, y = table(800)

    def linex(y, f):
        return np.exp(y - f) - (y - f) - 1

    own, plain = (
        spinney.GradientBoostingRegressor(
            loss, n_estimators=80, max_leaf_nodes=2, learning_rate=0.3, min_samples_leaf=1
        ).fit(X, y)
        for loss in (linex, "squared_error")
    )
    assert linex(y, own.predict(X)).mean() < linex(y, plain.predict(X)).mean()
    assert own.predict(X).mean() > plain.predict(X).mean() + 0.02


def test_the_same_model_on_any_number_of_threads_and_after_a_clone():
    X, y = table(400)
    models = [spinney.GradientBoostingRegressor(squared, **SMALL, n_jobs=n).fit(X, y) for n in (1, 2, 5)]
    models.append(clone(models[0]).fit(X, y))
    assert len({m.fingerprint() for m in models}) == 1


def test_invalid_custom_losses_are_refused():
    X, y = table(100)

    class Wrong(Squared):
        def gradient(self, y, f):
            return y - f

    class Nowhere(Squared):
        def loss(self, y, f):
            return np.full(len(y), np.nan)

    for loss, message in (
        (Wrong(), "gradient.* has the slope"),
        (Nowhere(), "returned NaN"),
        (lambda y, f: ((f - y) ** 2).sum(), "no sums or means"),
        (lambda y, f: np.i0(f) + f, "No derivative"),
        (lambda y, f: (f - y)[:-1], "shape|subscript"),
    ):
        with pytest.raises((ValueError, TypeError, AttributeError), match=message):
            spinney.GradientBoostingRegressor(loss, n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="With 3 classes, pass a function of"):
        spinney.GradientBoostingClassifier(logistic, n_estimators=3).fit(X, np.arange(100) % 3)


def test_saving_a_function_is_refused():
    X, y = table(100)
    with pytest.raises((TypeError, ValueError), match="loss"):
        spinney.GradientBoostingRegressor(squared, n_estimators=3).fit(X, y).save("never.model")


FORMULAS = [
    lambda f: f * f * f - 2 * f + 1,
    lambda f: np.exp(-f) + np.log(1 + f * f),
    lambda f: np.log1p(np.exp(f)) / (2 + f**2),
    lambda f: np.sqrt(1 + (f / 3) ** 2) - 1,
    lambda f: np.where(f > 0.5, f - 0.25, f**2),
    lambda f: np.maximum(0, 1 - f) ** 2,
    lambda f: np.logaddexp(f, -f) - np.logaddexp(0, 2 * f),
    lambda f: np.clip(f, -1, 0.9) * np.tanh(f) + abs(f),
    lambda f: expit(f) * np.cosh(f / 2) - 1 / (3 + np.sin(f)),
    lambda f: (2 + np.cos(f)) ** f,
    lambda f: np.arctan(2.0**f) - np.square(-f) + np.expm1(f / 4),
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_derivatives_of_formulas_are_what_differences_tell(formula):
    at = np.linspace(-1.97, 1.93, 41)
    value, first, second = derivatives(formula, at)
    np.testing.assert_allclose(value, formula(at), rtol=1e-14)
    e = 1e-4
    np.testing.assert_allclose(first, (formula(at + e) - formula(at - e)) / (2 * e), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        second, (formula(at + e) - 2 * formula(at) + formula(at - e)) / e**2, rtol=1e-4, atol=1e-5
    )


def test_a_formula_in_blocks_gives_identical_models(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] + rng.normal(size=500)

    def plain(y, f):  # with a function that the engine does not have
        return np.logaddexp(f - y, y - f) + np.arctan(f - y) ** 2

    def by_mean(y, f):  # looks at all rows at once
        return (y - f) ** 2 * (1 + np.abs(y.mean()))

    calls = []

    def asked(y, f):
        calls.append(len(y))
        return plain(y, f)

    few = {"n_estimators": 5, "max_leaf_nodes": 4}
    whole = [spinney.GradientBoostingRegressor(loss, **few).fit(X, y) for loss in (plain, by_mean)]
    monkeypatch.setattr(custom_loss, "_ROWS", 64)
    for loss, before in zip((plain, by_mean), whole, strict=True):
        for n_jobs in (1, 2):
            model = spinney.GradientBoostingRegressor(loss, n_jobs=n_jobs, **few).fit(X, y)
            assert model.fingerprint() == before.fingerprint()
            np.testing.assert_array_equal(model.train_score_, before.train_score_)
    spinney.GradientBoostingRegressor(asked, **few).fit(X, y)
    assert calls.count(64) > 7 * calls.count(500)


RECORDED = [
    lambda y, f: (f - y) ** 2 / 2,
    lambda y, f: np.logaddexp(0, -y * f) / 3,
    lambda y, f: np.exp(f) - y * f + np.log(1 + f * f) + y**1.5,
    lambda y, f: np.where((y > f) & (y < 9), 0.2 * (y - f), 0.8 * (f - y) ** 4),
    lambda y, f: np.sqrt(1 + (y - f) ** 2) + np.abs(f) ** 2.5 + 2.0 ** (f / 9),
    lambda y, f: np.log(np.cosh(y - f)) + np.tanh(f) * np.sinh(f / 2) + expit(y) * expit(f),
    lambda y, f: np.clip(f, -1, y) + np.maximum(0, 1 - f) ** 3 + np.minimum(f, y) ** 2 + np.sign(f) * f,
    lambda y, f: np.log1p(np.exp(f)) - y * f + np.expm1(f / 4) / (3 - np.where(y != 0, 1, 0.5)),
    lambda y, f: y + 1.0,
]


@pytest.mark.parametrize("formula", RECORDED)
def test_the_engine_computes_a_formula_and_its_derivatives_as_numpy_does(formula):
    rng = np.random.default_rng(0)
    y, f = rng.uniform(0.1, 4, 1300), 3 * rng.normal(size=1300)
    y[:3], f[:3] = 1.0, (1.0, -1e-9, 30.0)
    program, wanted = recorded(formula), derivatives(lambda at: formula(y, at), f)
    assert program is not None
    found = [np.empty((3, len(y))) for _ in range(3)]
    for n_jobs, to in zip((1, 2, 5), found, strict=True):
        program.run(y, f, to, n_jobs)
        np.testing.assert_array_equal(to, found[0])
    for mine, theirs in zip(found[0], wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13 * np.abs(theirs).max())


def test_extreme_numbers_in_a_formula_are_as_numpy_has_them():
    at = np.array([0.0, -0.0, 1.0, -1.0, 1e-320, 1e300, -1e300, 710.0, -708.0, np.inf, -np.inf, np.nan, 1e-17, 5.0])
    for function in (np.exp, np.log, np.log1p, np.expm1, np.sqrt, np.sign, np.abs, np.tanh, expit):
        program, found = recorded(lambda y, f, of=function: of(y) + 0 * f), np.empty((3, len(at)))
        program.run(at, np.zeros(len(at)), found, 1)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(found[0], function(at) + 0.0, rtol=4e-15, err_msg=function.__name__)
    for function in (np.maximum, np.minimum, np.power, np.less, np.greater_equal, np.not_equal):
        for number in (0.0, 2.0, 3.0, -3.0, 0.7, 5.0):
            program, found = recorded(lambda y, f, of=function, by=number: of(y, by) + 0 * f), np.empty((3, len(at)))
            program.run(at, np.zeros(len(at)), found, 1)
            with np.errstate(all="ignore"):
                wanted = function(at, number)
            np.testing.assert_allclose(found[0], wanted, rtol=1e-12, err_msg=f"{function.__name__} {number}")


def test_what_cannot_be_recorded_is_computed_by_numpy():
    X, y = table(200)
    per_row = np.linspace(1, 2, 200)

    def by_shape(y, f):
        return (f - y) ** 2 / 2 if np.ndim(y) == 1 else f

    others = [
        lambda y, f: (f - y) ** 2 * (1 + abs(y.mean())),
        lambda y, f: (f - y) ** 2 / 2 * (per_row if len(y) == 200 else 1.0),
        lambda y, f: np.arctan(f - y) ** 2 / 2,
        by_shape,
    ]
    for loss in others:
        assert recorded(loss) is None
        spinney.GradientBoostingRegressor(loss, **{**SMALL, "n_estimators": 2}).fit(X, y)

    def tricked(y, f):  # not the same formula for the engine's numbers
        return (f - y) ** 2 / (2 if isinstance(y, np.ndarray) else 3)

    assert recorded(tricked) is not None
    models = [spinney.GradientBoostingRegressor(loss, **SMALL).fit(X, y) for loss in (tricked, squared)]
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), rtol=1e-9)


def test_the_engine_refuses_programs_that_read_what_is_not_there():
    for steps, n_registers, outputs in (
        ([("add", 2, [0, 1])], 2, [1]),
        ([("add", 1, [0, 1])], 3, [1]),
        ([("add", 2, [0, 2])], 3, [2]),
        ([("add", 2, [0])], 3, [2]),
        ([("add", 2, [0, 1])], 3, [3]),
        ([("sine", 2, [0])], 3, [2]),
        ([("where", 2, [0, 1, 0, 1])], 3, [2]),
    ):
        with pytest.raises(ValueError, match="formula"):
            _engine.Formula(steps, [], n_registers, outputs)
    program = _engine.Formula([("add", 2, [0, 1])], [], 3, [2])
    with pytest.raises(ValueError, match="each row"):
        program.run(np.ones(3), np.ones(4), np.empty((1, 3)), 1)


def test_signs_of_sums_are_exact_and_starts_are_where_slopes_cancel():
    rng = np.random.default_rng(0)
    for _ in range(20):
        terms = rng.normal(size=101) * 10.0 ** rng.integers(-30, 30, 101)
        terms = rng.permutation(np.concatenate([terms, -terms]))
        found = _engine.root_of_sum(lambda at, terms=terms: np.append(terms, 1e-280 * (at - 0.3)), 0.0, 0.0, 1.0)
        assert found == pytest.approx(0.3, abs=1e-15)
    y, weight = rng.normal(size=5000), rng.random(5000)
    n_asked = []

    def slopes(at):
        n_asked.append(1)
        return (at - y) * weight

    found = _engine.root_of_sum(slopes, 0.0, 0.25, 3.0)
    assert found == pytest.approx(np.average(y, weights=weight), rel=1e-14)
    assert len(n_asked) < 30


def test_a_link_that_is_no_name_is_refused():
    class Loss:
        link = object()

        def loss(self, y, f):
            return (y - f) ** 2

        def gradient(self, y, f):
            return 2 * (f - y)

    with pytest.raises(ValueError, match="The loss has link=<object"):
        spinney.GradientBoostingRegressor(n_estimators=1, loss=Loss()).fit([[0.0], [1.0]], [0.0, 1.0])
