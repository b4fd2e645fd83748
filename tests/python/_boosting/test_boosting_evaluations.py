"""Several held-out sets and metrics: their history, which one stops the fit, and what is refused."""

import numpy as np
import pytest
import spinney
from sklearn.metrics import log_loss, mean_absolute_error

SMALL = {"n_estimators": 12, "max_leaf_nodes": 4, "learning_rate": 0.3}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=240) / 4
SETS = {"first": slice(120, 180), "second": slice(180, 240)}


def held_out(y, of=X):
    return {"X_val": {k: of[s] for k, s in SETS.items()}, "y_val": {k: y[s] for k, s in SETS.items()}}


def test_each_metric_on_each_set_is_what_staged_predictions_give():
    scoring = ["loss", "r2", mean_absolute_error]
    model = spinney.GradientBoostingRegressor(scoring=scoring, **SMALL).fit(X[:120], Y[:120], **held_out(Y))
    history = model.history_
    assert next(iter(history)) == "round"
    assert len(history) == 1 + 2 * 3
    np.testing.assert_array_equal(history["round"], np.arange(1, 13))
    for name, rows in SETS.items():
        for i, predicted in enumerate(model.staged_predict(X[rows])):
            assert history[f"{name} mean_absolute_error"][i] == pytest.approx(
                np.abs(predicted - Y[rows]).mean(), rel=1e-12
            )
            assert history[f"{name} loss"][i] == pytest.approx(((predicted - Y[rows]) ** 2).mean(), rel=1e-9)
    np.testing.assert_allclose(model.validation_score_, history["first loss"], rtol=1e-9)


def test_the_first_set_and_metric_stop():
    plain = {**SMALL, "n_estimators": 80, "n_iter_no_change": 3}
    model = spinney.GradientBoostingRegressor(scoring=[mean_absolute_error, "loss"], **plain)
    model.fit(X[:120], Y[:120], **held_out(Y))
    assert len(model.history_["round"]) < 80
    assert model.n_iter_ == 1 + model.history_["first mean_absolute_error"].argmin()
    alone = spinney.GradientBoostingRegressor(scoring="neg_mean_absolute_error", **plain)
    alone.fit(X[:120], Y[:120], X_val=X[SETS["first"]], y_val=Y[SETS["first"]])
    assert alone.fingerprint() == model.fingerprint()
    assert not hasattr(alone, "history_")


def test_of_classes_with_weights_and_several_scores():
    for y in (np.digitize(Y, [0.5]), np.digitize(Y, [0.0, 1.5])):
        weights = {k: np.arange(60) % 3 + 0.5 for k in SETS}
        model = spinney.GradientBoostingClassifier(scoring=["loss", "accuracy", "neg_log_loss"], **SMALL)
        model.fit(X[:120], y[:120], sample_weight_val=weights, **held_out(y))
        for name, rows in SETS.items():
            expected = log_loss(y[rows], model.predict_proba(X[rows]), sample_weight=weights[name])
            assert model.history_[f"{name} loss"][-1] == pytest.approx((2 if y.max() == 1 else 1) * expected, rel=1e-9)
            assert model.history_[f"{name} neg_log_loss"][-1] == pytest.approx(-expected, rel=1e-9)


def test_of_an_own_loss_lists_and_times():
    def quartic(y, f):
        return (y - f) ** 4

    model = spinney.GradientBoostingRegressor(quartic, **SMALL).fit(X[:120], Y[:120], **held_out(Y))
    predicted = model.predict(X[SETS["second"]])
    assert model.history_["second loss"][-1] == pytest.approx(((predicted - Y[SETS["second"]]) ** 4).mean(), rel=1e-9)
    grades, lists = np.digitize(Y, [0.0, 1.0]), np.arange(240) // 6
    model = spinney.GradientBoostingRanker(scoring=["ndcg@3", "map", "loss"], **SMALL)
    model.fit(X[:120], grades[:120], groups=lists[:120], groups_val=held_out(lists)["y_val"], **held_out(grades))
    found = model.score(X[180:], grades[180:], groups=lists[180:], metric="map")
    assert model.history_["second map"][-1] == pytest.approx(found, rel=1e-12)
    times = np.exp(Y) * np.where(np.arange(240) % 3, 1, -1)
    for loss in ("cox", "aft"):
        model = spinney.GradientBoostingSurvival(loss, scoring=["loss", "concordance"], **SMALL)
        model.fit(X[:120], times[:120], **held_out(times))
        assert model.history_["second concordance"][-1] == pytest.approx(model.score(X[180:], times[180:]), rel=1e-12)
        np.testing.assert_allclose(model.validation_score_, model.history_["first loss"], rtol=1e-9)


def test_progress_and_callbacks_show_them(capsys):
    seen = []
    model = spinney.GradientBoostingRegressor(verbose=1, callbacks=seen.append, **SMALL)
    model.fit(X[:120], Y[:120], **held_out(Y))
    assert seen[-1]["evaluations"]["second loss"] == model.history_["second loss"][-1]
    assert "second loss" in capsys.readouterr().err


def test_a_warm_start_continues_the_history():
    model = spinney.GradientBoostingRegressor(warm_start=True, **SMALL).fit(X[:120], Y[:120], **held_out(Y))
    whole = spinney.GradientBoostingRegressor(**SMALL | {"n_estimators": 16}).fit(X[:120], Y[:120], **held_out(Y))
    model.set_params(n_estimators=16).fit(X[:120], Y[:120], **held_out(Y))
    np.testing.assert_array_equal(model.history_["round"], np.arange(13, 17))
    np.testing.assert_allclose(model.history_["second loss"], whole.history_["second loss"][12:], rtol=1e-12)


@pytest.mark.parametrize(
    ("more", "options", "message"),
    [
        ({"X_val": X}, {}, "Pass a dict with the same names for X_val"),
        ({"X_val": {}, "y_val": {}}, {}, "names no set"),
        ({"sample_weight_val": {"first": np.ones(60)}}, {}, "Pass a dict with the same names for sample_weight_val"),
        ({}, {"scoring": []}, "scoring is empty"),
        ({}, {"scoring": ["r2", "no_such_metric"]}, "no_such_metric"),
    ],
)
def test_invalid_inputs_are_refused(more, options, message):
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingRegressor(**SMALL, **options).fit(X[:120], Y[:120], **(held_out(Y) | more))
