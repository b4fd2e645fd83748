"""The learning rate of boosted models, chosen by cross-validation."""

import matplotlib
import numpy as np
import pytest
import spinney
from oracle.saved import through_bytes
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

matplotlib.use("agg")
RATES = [1.0, 0.3, 0.1, 0.03, 0.01]


def spheres(n=240):
    return spinney.datasets.make_nested_spheres(n, n_features=4, random_state=0)


def cases():
    X, y = spheres()
    values = make_friedman1(240, random_state=0)
    return {
        "boosting of classes": (spinney.GradientBoostingClassifier(n_estimators=15), X, y),
        "boosting of values": (spinney.GradientBoostingRegressor(n_estimators=15), *values),
        "AdaBoost": (spinney.AdaBoostClassifier(n_estimators=15), X, y),
        "AdaBoost.R2": (spinney.AdaBoostRegressor(n_estimators=10), *values),
        "functions": (spinney.FunctionalBoostingClassifier(n_estimators=15), X, y),
        "functions for values": (spinney.FunctionalBoostingRegressor("linear", n_estimators=15), *values),
    }


@pytest.mark.parametrize("name", cases())
def test_the_model_is_that_of_the_chosen_rate_also_from_a_file(name):
    model, X, y = cases()[name]
    model.set_params(learning_rate="cv", random_state=0).fit(X, y)
    results = model.cv_results_
    assert results["learning_rate"].tolist() == RATES
    assert model.learning_rate_ == RATES[int(results["error"].argmin())]
    assert (results["fold_errors"].mean(axis=1).round(12) == results["error"].round(12)).all()  # equal folds
    alike = clone(model).set_params(learning_rate=model.learning_rate_).fit(X, y)
    assert (model.predict(X) == alike.predict(X)).all()
    assert model.learning_rate == "cv"
    again = through_bytes(model)
    assert again.learning_rate_ == model.learning_rate_
    assert (again.predict(X) == model.predict(X)).all()
    assert (again.cv_results_["error"] == results["error"]).all()
    model.set_params(learning_rate=0.5).fit(X, y)
    assert not hasattr(model, "learning_rate_")
    assert not hasattr(model, "cv_results_")


def test_errors_are_those_of_rows_that_were_not_fitted():
    """The means over five folds are near those over other folds, computed from the predictions (the deviance)."""
    X, y = spheres(600)
    found = spinney.GradientBoostingClassifier(n_estimators=20, learning_rate="cv", random_state=0).fit(X, y)
    for rate, error, spread in zip(RATES, found.cv_results_["error"], found.cv_results_["error_se"], strict=True):
        losses = []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=7).split(X, y):
            model = spinney.GradientBoostingClassifier(n_estimators=20, learning_rate=rate, random_state=0)
            losses.append(2 * log_loss(y[test], model.fit(X[train], y[train]).predict_proba(X[test])))
        assert abs(np.mean(losses) - error) < 4 * spread


def test_fewer_rounds_need_larger_rates():
    X, y = spheres()
    few = spinney.GradientBoostingClassifier(n_estimators=5, learning_rate="cv", random_state=0).fit(X, y)
    many = spinney.GradientBoostingClassifier(n_estimators=150, learning_rate="cv", random_state=0).fit(X, y)
    assert few.learning_rate_ > many.learning_rate_


def test_rows_of_weight_0_and_groups_are_respected():
    X, y = spheres()
    weight = np.where(np.arange(len(y)) < 200, 1.0, 0.0)
    model = spinney.AdaBoostClassifier(n_estimators=10, learning_rate="cv", random_state=0)
    wrong = np.where(weight > 0, y, 1 - y)  # labels of rows that do not count
    a = clone(model).fit(X, y, weight).cv_results_["error"]
    assert (a == clone(model).fit(X, wrong, weight).cv_results_["error"]).all()
    twice = groups = np.repeat(np.arange(120), 2)
    labels = np.random.default_rng(0).integers(0, 2, 120)[twice]  # noise, which copies of a row would give away
    grown = {"learning_rate": "cv", "random_state": 0}
    boosted = spinney.GradientBoostingClassifier(n_estimators=10, min_samples_leaf=1, **grown)
    for model in (spinney.AdaBoostClassifier(n_estimators=5, max_depth=9, **grown), boosted):
        apart = clone(model).fit(X[twice], labels, groups=groups).cv_results_["error"].min()
        leaked = clone(model).fit(X[twice], labels).cv_results_["error"].min()
        assert apart > leaked + 0.1


def test_a_warm_start_keeps_the_chosen_rate():
    X, y = spheres()
    model = spinney.GradientBoostingClassifier(n_estimators=10, learning_rate="cv", warm_start=True, random_state=0)
    chosen = model.fit(X, y).learning_rate_
    model.set_params(n_estimators=20).fit(X, y)
    alike = spinney.GradientBoostingClassifier(n_estimators=20, learning_rate=chosen, random_state=0).fit(X, y)
    assert (model.learning_rate_, model.n_iter_) == (chosen, 20)
    np.testing.assert_allclose(model.predict_proba(X), alike.predict_proba(X), atol=1e-12)


def test_frames_rankings_and_survival_times():
    pd = pytest.importorskip("pandas")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    lists = np.arange(len(y)) // 10
    ranker = spinney.GradientBoostingRanker(n_estimators=5, learning_rate="cv", random_state=0)
    assert ranker.fit(X, (y // 100).astype(int), groups=lists).learning_rate_ in RATES
    times = pd.DataFrame({"event": (y > 100), "time": y})
    survival = spinney.GradientBoostingSurvival(n_estimators=5, learning_rate="cv", random_state=0)
    assert survival.fit(X, times).learning_rate_ in RATES


def test_the_weights_of_rows_are_those_of_the_chosen_rate():
    X, y = spheres()
    model = spinney.AdaBoostClassifier(n_estimators=8, learning_rate="cv", random_state=0).fit(X, y)
    alike = clone(model).set_params(learning_rate=model.learning_rate_).fit(X, y)
    for own, other in zip(model.staged_weights(X, y), alike.staged_weights(X, y), strict=True):
        assert (own == other).all()


def test_what_does_not_go_with_folds_is_refused():
    X, y = spheres()
    for kind in (spinney.AdaBoostClassifier, spinney.GradientBoostingClassifier):
        with pytest.raises(ValueError, match="random folds, which time does not allow"):
            kind(learning_rate="cv").fit(X, y, time=np.arange(len(y)))
    with pytest.raises(ValueError, match="must be in memory"):
        spinney.GradientBoostingClassifier(learning_rate="cv").fit(spinney.scan([(X, y)]), "y")


def test_the_errors_are_drawn():
    X, y = spheres()
    model = spinney.AdaBoostClassifier(n_estimators=10, learning_rate="cv", random_state=0).fit(X, y)
    ax = spinney.plot_error_curve(model)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("learning rate", "error rate", "log")
    bars = ax.containers[0].lines[0]
    np.testing.assert_array_equal(bars.get_ydata(), model.cv_results_["error"])
    matplotlib.pyplot.close(ax.figure)
    boosted = spinney.GradientBoostingClassifier(n_estimators=2, learning_rate="cv", random_state=0).fit(X[:60], y[:60])
    assert spinney.plot_error_curve(boosted).get_ylabel() == "loss"
    matplotlib.pyplot.close("all")
