"""Functions that return gradients and hessians, as XGBoost and LightGBM take them."""

import pickle

import numpy as np
import pytest
import spinney
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.metrics import log_loss


def squared(y, f):
    return f - y, np.ones_like(y)


def logistic(y, f):
    p = 1 / (1 + np.exp(-f))
    return p - y, p * (1 - p)


def softmax(y, f):
    p = np.exp(f - f.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p - np.eye(f.shape[1])[y.astype(int)], p * (1 - p)


OPTIONS = {"n_estimators": 30, "learning_rate": 0.1, "max_leaf_nodes": 8, "random_state": 0}


def test_squared_errors_are_those_of_the_named_loss():
    X, y = make_regression(500, 5, noise=5, random_state=0)
    own = spinney.GradientBoostingRegressor(loss=squared, **OPTIONS).fit(X, y)
    named = spinney.GradientBoostingRegressor(**OPTIONS).fit(X, y)
    np.testing.assert_allclose(own.predict(X), named.predict(X), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(2 * own.train_score_, named.train_score_, rtol=1e-4)


def test_log_odds_are_those_of_the_named_loss():
    X, y = make_classification(500, 6, random_state=0)
    labels = np.array(["no", "yes"])[y]
    own = spinney.GradientBoostingClassifier(loss=logistic, **OPTIONS).fit(X, labels)
    named = spinney.GradientBoostingClassifier(**OPTIONS).fit(X, labels)
    np.testing.assert_allclose(own.predict_proba(X), named.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(2 * own.train_score_, named.train_score_, rtol=1e-3)
    assert own.classes_.tolist() == ["no", "yes"]


def test_several_classes_have_a_score_each():
    X, y = load_iris(return_X_y=True)
    own = spinney.GradientBoostingClassifier(loss=softmax, **OPTIONS).fit(X, y)
    assert own.decision_function(X).shape == (150, 3)
    assert own.score(X, y) > 0.95
    named = spinney.GradientBoostingClassifier(**OPTIONS).fit(X, y)
    assert log_loss(y, own.predict_proba(X)) < 1.3 * log_loss(y, named.predict_proba(X))


def test_weights_count_like_rows():
    X, y = make_regression(200, 3, noise=5, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    weighted = spinney.GradientBoostingRegressor(loss=squared, min_samples_leaf=1, **OPTIONS).fit(X, y, weight)
    repeated = spinney.GradientBoostingRegressor(loss=squared, min_samples_leaf=1, **OPTIONS)
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("options", [{"early_stopping": True, "n_estimators": 300}, {"n_estimators": "auto"}])
def test_rounds_are_chosen_by_the_usual_loss(options):
    X, y = make_classification(600, 6, flip_y=0.2, random_state=0)
    model = spinney.GradientBoostingClassifier(loss=logistic, random_state=0, **options).fit(X, y)
    assert model.n_iter_ > 0
    assert model.stopped_because_ is not None
    assert np.isfinite(model.validation_score_).all()


def test_hessians_of_zero_mean_gradients_alone():
    X, y = make_regression(300, 3, noise=5, random_state=0)
    model = spinney.GradientBoostingRegressor(loss=lambda y, f: (np.sign(f - y), np.zeros_like(y)), **OPTIONS)
    model.fit(X, y)
    assert np.abs(y - model.predict(X)).mean() < np.abs(y - np.median(y)).mean()


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (lambda y, f: (f - y, np.ones(2)), r"hessian\(y, f\) of the loss returned shape \(2,\); it needs \(100,\)"),
        (lambda y, f: (np.full(len(y), np.nan), np.ones_like(y)), r"gradient\(y, f\) of the loss returned NaN"),
        (lambda y, f: (f - y, y, y), r"returned a tuple for 100 rows\. Return an array"),
        (lambda y, f: [f - y, y], r"returned a list for 100 rows\. Return .* as \(gradient, hessian\)"),
        (lambda y, f: ((f - y) ** 2).mean(), r"returned a float64 for 100 rows"),
        (lambda y, f: (f - y) * np.ones(7), r"failed with ValueError: .* called with y of shape \(100,\) and scores"),
        (lambda y: (y, y), r"failed with TypeError: .* takes 1 positional argument"),
        (
            lambda y, f: (f - y) ** 2 * np.ones(100),
            r"the rows are those of the fit, or some of them",
        ),
    ],
)
def test_unusable_results_are_refused(objective, message):
    X, y = make_regression(100, 3, random_state=0)
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingRegressor(loss=objective, **OPTIONS).fit(X, y)


@pytest.mark.parametrize("loss", [lambda y, f: np.logaddexp(0, -y * f), lambda y, f: np.logaddexp(0, -y[:, None] * f)])
def test_a_formula_for_several_classes_is_refused_with_advice(loss):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"returns gradients and hessians, both of shape \(n_rows, n_classes\)"):
        spinney.GradientBoostingClassifier(loss=loss, **OPTIONS).fit(X, y)


def test_an_objective_may_need_all_training_rows():
    X, y = make_regression(100, 3, noise=5, random_state=0)
    weight = np.linspace(1, 2, 100)
    inside = spinney.GradientBoostingRegressor(loss=lambda y, f: (weight * (f - y), weight), **OPTIONS).fit(X, y)
    outside = spinney.GradientBoostingRegressor(loss=squared, **OPTIONS).fit(X, y, weight)
    np.testing.assert_allclose(inside.predict(X), outside.predict(X), rtol=1e-3, atol=1e-2)
    X, y = load_iris(return_X_y=True)
    ones = np.ones((150, 1))
    objective = lambda y, f: tuple(ones * array for array in softmax(y, f))  # noqa: E731
    assert spinney.GradientBoostingClassifier(loss=objective, **OPTIONS).fit(X, y).score(X, y) > 0.95


def test_a_formula_may_insist_on_its_classes():
    def strict(y, f):
        if set(y) != {-1.0, 1.0}:
            raise ValueError("classes are -1 and 1")
        return np.logaddexp(0, -y * f)

    X, y = make_classification(100, 6, random_state=0)
    assert spinney.GradientBoostingClassifier(loss=strict, **OPTIONS).fit(X, y).score(X, y) > 0.9


def test_functional_boosting_refuses_an_objective():
    X, y = make_regression(100, 3, noise=5, random_state=0)
    with pytest.raises(ValueError, match=r"the function returned a pair\. Pass an object with the methods loss"):
        spinney.FunctionalBoostingRegressor(loss=squared, n_estimators=2).fit(X, y)


@pytest.mark.parametrize("names", ["preds, labels", "predt, dtrain", "y_pred, y_true", "preds, train_data"])
def test_an_objective_with_the_predictions_first_is_refused(names):
    objective = eval(f"lambda {names}: None")
    with pytest.raises(ValueError, match=r"targets first and then the scores\. Swap its parameters"):
        spinney.GradientBoostingRegressor(loss=objective, **OPTIONS).fit(np.arange(9.0)[:, np.newaxis], np.arange(9.0))


@pytest.mark.parametrize("objective", [squared, logistic])
def test_an_objective_with_swapped_arguments_warns(objective):
    X, y = make_classification(300, 5, random_state=0)
    kind = spinney.GradientBoostingRegressor if objective is squared else spinney.GradientBoostingClassifier
    with pytest.warns(UserWarning, match="arguments of the function may be swapped"):
        kind(loss=lambda a, b: objective(b, a), n_estimators=2, max_leaf_nodes=8).fit(X, y)


def partial_likelihood(y, f):
    """Return derivatives of Cox's loss, whose gradients rise with the time."""
    order = np.argsort(np.abs(y))
    at_risk, hazard = np.cumsum(np.exp(f[order])[::-1])[::-1], np.zeros(len(y))
    hazard[order] = np.cumsum((y[order] > 0) / at_risk)
    return np.exp(f) * hazard - (y > 0), np.exp(f) * hazard


def cauchy(y, f):
    return 2 * (f - y) / (1 + (f - y) ** 2), 2 / (1 + (f - y) ** 2)


@pytest.mark.parametrize("objective", [partial_likelihood, cauchy, lambda y, f: (np.sign(f - y), np.ones_like(y))])
def test_other_objectives_do_not_warn(objective, recwarn):
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = spinney.GradientBoostingRegressor(loss=objective, **OPTIONS).fit(X, 1 + np.abs(X[:, 0]))
    assert not recwarn.list
    assert np.isfinite(model.predict(X)).all()


# ---- objects for several classes ----------------------------------------------------------------------------


class Softmax:
    """The log loss of several classes, with the curvature and the start of the named loss."""

    def proba(self, f):
        e = np.exp(f - f.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def loss(self, y, f):
        return -np.log(self.proba(f)[np.arange(len(y)), y.astype(int)])

    def gradient(self, y, f):
        return self.proba(f) - np.eye(f.shape[1])[y.astype(int)]

    def hessian(self, y, f):
        p, k = self.proba(f), f.shape[1]
        return k / (k - 1) * p * (1 - p)

    def start(self, y, weight):
        return np.log(np.bincount(y.astype(int), weight) / weight.sum())


def test_an_object_for_several_classes_is_the_named_loss(tmp_path):
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 150)
    own = spinney.GradientBoostingClassifier(Softmax(), **OPTIONS).fit(X, y, weight)
    named = spinney.GradientBoostingClassifier(**OPTIONS).fit(X, y, weight)
    np.testing.assert_allclose(own.predict_proba(X), named.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(own.train_score_, named.train_score_, rtol=1e-6)
    np.testing.assert_allclose(own.boosting_.start, named.boosting_.start)
    assert own.to_predictor().predict(X[0].tolist()) == own.predict(X[:1])[0]
    with pytest.raises(TypeError, match="The parameter loss cannot be saved in a model file"):
        own.save(tmp_path / "own.model")
    again = pickle.loads(pickle.dumps(own))
    assert (again.predict_proba(X) == own.predict_proba(X)).all()
    own.set_params(loss="log_loss").save(tmp_path / "own.model")
    assert (spinney.load(tmp_path / "own.model").predict_proba(X) == own.predict_proba(X)).all()


@pytest.mark.parametrize("options", [{"scoring": "accuracy"}, {"scoring": None}, {"n_estimators": "auto"}])
def test_objects_for_several_classes_stop_early(options):
    X, y = load_iris(return_X_y=True)
    given = OPTIONS | {"n_estimators": 200, "early_stopping": True} | options
    if given["n_estimators"] == "auto":
        given = {"effort": 0.2, "random_state": 0}
    model = spinney.GradientBoostingClassifier(Softmax(), **given).fit(X, y)
    assert model.n_iter_ < 200
    assert model.score(X, y) > 0.9


def test_hessian_and_start_are_optional_for_several_classes():
    class Plain:
        loss, gradient, proba = Softmax.loss, Softmax.gradient, Softmax.proba

    X, y = load_iris(return_X_y=True)
    model = spinney.GradientBoostingClassifier(Plain(), **OPTIONS).fit(X, y)
    assert (model.boosting_.start == 0).all()
    assert model.score(X, y) > 0.95


def test_wrong_objects_for_several_classes_are_refused():
    class Reversed(Softmax):
        def gradient(self, y, f):
            return -super().gradient(y, f)

    class Narrow(Softmax):
        def gradient(self, y, f):
            return super().gradient(y, f)[:, :2]

    class Summed(Softmax):
        def loss(self, y, f):
            return super().loss(y, f).mean()

    class Short(Softmax):
        def start(self, y, weight):
            return [0.0]

    class Other(Softmax):
        link = "logit"

    X, y = load_iris(return_X_y=True)
    for loss, sentence in (
        (Reversed(), "for score 0 at y=0, f=.*, where the loss has the slope"),
        (Narrow(), r"gradient\(y, f\) of the loss returned shape"),
        (Summed(), r"loss\(y, f\) of the loss returned shape \(\)"),
        (Short(), r"start\(y, weight\) of the loss returned \[0.0\]; it must return 3 finite numbers"),
        (Other(), "link='logit'. With 3 classes it must be 'softmax'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            spinney.GradientBoostingClassifier(loss, **OPTIONS).fit(X, y)


def test_objects_for_one_score_may_choose_their_start():
    class Squared:
        def loss(self, y, f):
            return (y - f) ** 2 / 2

        def gradient(self, y, f):
            return f - y

        def start(self, y, weight):
            return 7.0

    X, y = make_regression(100, 3, random_state=0)
    assert spinney.GradientBoostingRegressor(Squared(), **OPTIONS).fit(X, y).boosting_.start.tolist() == [7.0]
