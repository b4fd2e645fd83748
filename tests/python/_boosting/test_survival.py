"""Times until an event: losses and concordance against reference implementations, curves, forms of targets, files."""

import io

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle import survival as reference
from spinney import _engine

SMALL = {"n_estimators": 20, "max_leaf_nodes": 5, "min_samples_leaf": 5, "learning_rate": 0.2}


def times(n=60, seed=0, rounded=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    event = rng.exponential(size=n) * np.exp(-X[:, 0] - 0.5 * X[:, 1]) * 5 + 0.3
    end = rng.exponential(size=n) * 8 + 0.3
    time = np.minimum(event, end)
    return X, np.round(time, 1) if rounded else time, event <= end


def slopes(loss, scores, step=1e-5):
    found = np.empty(len(scores))
    for row in range(len(scores)):
        up, down = scores.copy(), scores.copy()
        up[row] += step
        down[row] -= step
        found[row] = (loss(up) - loss(down)) / (2 * step)
    return found


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_cox_loss_agrees_with_the_reference(weighted, ties):
    X, time, is_event = times(25)
    weight = np.random.default_rng(1).integers(0, 4, 25) / 2 if weighted else np.ones(25)
    scores = X[:, 2] * 3
    used = weight > 0
    is_efron = ties == "efron"
    time = np.ceil(time / 2)  # many ties
    assert any(((time == t) & is_event & used).sum() > 2 for t in time)
    rows = _engine.CoxRows(time, is_event.astype(np.uint8), weight, is_efron)

    def loss(at):
        return (reference.efron_loss if is_efron else reference.cox_loss)(
            time[used], is_event[used], at[used], weight[used]
        )

    g, h, mean = rows.gradients(scores)
    assert mean == pytest.approx(loss(scores), rel=1e-12)
    assert rows.mean_loss(scores) == pytest.approx(mean, rel=1e-12)
    np.testing.assert_allclose(g[0] * weight / weight.sum(), slopes(loss, scores), atol=1e-8)
    if not weighted:
        bends = np.diag([slopes(lambda at, row=row: rows.gradients(at)[0][0][row], scores) for row in range(25)])
        np.testing.assert_allclose(h[0], bends, atol=1e-6)
    found = rows.baseline(scores)
    expected = (reference.efron_hazard if is_efron else reference.baseline_hazard)(
        time[used], is_event[used], scores[used], weight[used]
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


@pytest.mark.parametrize("name", ["normal", "logistic", "extreme"])
@pytest.mark.parametrize("scale", [0.5, 1.7])
def test_aft_losses_agree_with_the_reference(name, scale):
    rng = np.random.default_rng(2)
    low = rng.normal(size=40) * 2
    high = np.where(np.arange(40) % 4 == 0, low, low + rng.random(40) * 2)
    high[1::4] = np.inf
    low[2::4] = -np.inf
    scores = rng.normal(size=40)
    rows = _engine.TimedRows(low, high, None, name)

    def losses(at):
        return reference.timed_losses(name, low, high, at, scale)

    g, h, mean = rows.gradients(scores, scale, 1)
    assert mean == pytest.approx(losses(scores).mean(), rel=1e-9)
    assert rows.mean_loss(scores, scale, 2) == mean
    step = 1e-5
    np.testing.assert_allclose(g[0], (losses(scores + step) - losses(scores - step)) / (2 * step), atol=1e-6)
    before, after = (rows.gradients(scores + way, scale, 1)[0][0] for way in (-step, step))
    np.testing.assert_allclose(h[0], (after - before) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("name", ["normal", "logistic", "extreme"])
def test_losses_far_out_stay_finite(name):
    for z in (-600.0, -40.0, -8.0, 8.0, 40.0, 600.0):
        low, high = np.array([z, z, -np.inf, z]), np.array([z, np.inf, z, z + 1e-3])
        rows = _engine.TimedRows(low, high, None, name)
        g, h, loss = rows.gradients(np.zeros(4), 1.0, 1)
        assert np.isfinite([*g[0], *h[0], loss]).all()
        assert (h >= 0).all()


@pytest.mark.parametrize("name", ["normal", "logistic", "extreme"])
def test_survival_probabilities_and_quantiles(name):
    z = np.linspace(-6, 6, 49)
    np.testing.assert_allclose(_engine.survival_function(name, z), reference.share_left(name, z), rtol=1e-11)
    assert _engine.survival_function(name, np.zeros(1))[0] == pytest.approx(0.5, abs=1e-14)
    for share in (0.01, 0.3, 0.5, 0.99):
        at = np.array([_engine.time_quantile(name, share)])
        assert 1 - _engine.survival_function(name, at)[0] == pytest.approx(share, rel=1e-10)


@pytest.mark.parametrize("kind", ["right", "interval"])
def test_concordance_agrees_with_the_reference(kind):
    rng = np.random.default_rng(3)
    low = rng.integers(1, 12, 50).astype(float)
    high = np.where(rng.random(50) < 0.4, np.inf, low)
    if kind == "interval":
        high[::3] = low[::3] + rng.integers(0, 4, len(low[::3]))
    expected, weight = rng.integers(0, 9, 50).astype(float), rng.integers(1, 4, 50) / 2
    for w in (None, weight):
        found = _engine.concordance(low, high, expected, w)
        assert found == pytest.approx(
            reference.concordance(low, high, expected, np.ones(50) if w is None else w), rel=1e-12
        )


@pytest.mark.parametrize(
    "options", [{}, *({"loss": "aft", "distribution": d} for d in ("normal", "logistic", "extreme"))]
)
def test_learns_what_comes_first(options):
    X, time, is_event = times(300)
    new = times(300, seed=9)
    signed = np.where(is_event, time, -time)
    model = spinney.GradientBoostingSurvival(**SMALL, **options).fit(X, signed)
    assert model.score(new[0], np.where(new[2], new[1], -new[1])) > 0.7
    curves = model.predict_survival_function(new[0], [0.0, 1.0, 2.0, 50.0])
    assert (np.diff(curves, axis=1) <= 0).all()
    np.testing.assert_allclose(curves[:, 0], 1.0)
    median = model.predict_median(new[0])
    finite = np.isfinite(median)
    at_median = np.array(
        [model.predict_survival_function(new[0][[i]], [median[i]])[0, 0] for i in range(20) if finite[i]]
    )
    if options:
        np.testing.assert_allclose(model.predict(new[0]), median, rtol=1e-12)
        np.testing.assert_allclose(at_median, 0.5, rtol=1e-9)
    else:
        assert (at_median <= 0.5 + 1e-9).all()
    assert (model.predict_quantile(X, 0.25) <= model.predict_quantile(X, 0.75)).all()


def test_the_scale_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    time = np.exp(1 + X[:, 0] + 0.7 * rng.normal(size=2000))
    model = spinney.GradientBoostingSurvival("aft", early_stopping=True, n_estimators=200, random_state=0).fit(X, time)
    assert 0.6 < model.scale_ < 0.85
    assert spinney.GradientBoostingSurvival("aft", scale=1.5, **SMALL).fit(X, time).scale_ == 1.5
    plain = spinney.GradientBoostingRegressor(**SMALL).fit(X, np.log(time))
    timed = spinney.GradientBoostingSurvival("aft", scale=1.0, regularization={"max_step": None}, **SMALL).fit(X, time)
    np.testing.assert_allclose(np.log(timed.predict(X)), plain.predict(X), atol=1e-5)  # with all times known: squares


def test_forms_of_targets_are_equivalent():
    X, time, is_event = times()
    signed = np.where(is_event, time, -time)
    structured = np.array(list(zip(is_event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    frame = pd.DataFrame({"time": time, "event": is_event})
    ends = np.column_stack([time, np.where(is_event, time, np.inf)])
    prints = {
        spinney.GradientBoostingSurvival(**SMALL).fit(X, y).fingerprint() for y in (signed, structured, frame, ends)
    }
    assert len(prints) == 1


def test_threads_do_not_matter_and_weights_are_rows():
    X, time, is_event = times(200)
    signed = np.where(is_event, time, -time)
    for options in ({}, {"loss": "aft"}):
        models = [spinney.GradientBoostingSurvival(**SMALL, **options, n_jobs=n).fit(X, signed) for n in (1, 2)]
        assert models[0].fingerprint() == models[1].fingerprint()


@pytest.mark.parametrize("options", [{}, {"loss": "aft", "distribution": "extreme"}])
def test_is_saved(options):
    X, time, is_event = times()
    model = spinney.GradientBoostingSurvival(**SMALL, **options).fit(X, np.where(is_event, time, -time))
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    again = spinney.load(file)
    file.seek(0)
    np.testing.assert_array_equal(again.predict_survival_function(X), model.predict_survival_function(X))
    np.testing.assert_array_equal(again.predict_median(X), model.predict_median(X))
    np.testing.assert_array_equal(spinney.load_predictor(file).predict(X), model.predict(X))
    assert model.to_predictor().predict(X[0]) == model.predict(X[:1])[0]
    shap = model.shap_values(X[:4])
    scores = model.predict(X[:4]) if not options else np.log(model.predict(X[:4]))
    np.testing.assert_allclose(shap.values.sum(axis=1) + shap.base_value, scores, atol=1e-9)


def test_folds_and_held_out_rows():
    X, time, is_event = times(150)
    signed = np.where(is_event, time, -time)
    for loss in ("cox", "aft"):
        model = spinney.GradientBoostingSurvival(loss, effort=0.0, n_iter_no_change=3).fit(X, signed)
        assert model.score(X, signed) > 0.7
        model = spinney.GradientBoostingSurvival(loss, early_stopping=True, n_estimators=30, random_state=0)
        model.fit(X[:100], signed[:100], X_val=X[100:], y_val=signed[100:])
        assert model.validation_score_[model.n_iter_ - 1] == model.validation_score_.min()


@pytest.mark.parametrize(
    ("y", "loss", "message"),
    [
        (np.zeros(10), "cox", "Row 0 of y has 0"),
        (-np.ones(10), "cox", "No event of y has happened"),
        (np.column_stack([np.ones(10), np.full(10, 2.0)]), "cox", "Use loss='aft'"),
        (np.column_stack([np.full(10, 3.0), np.full(10, 2.0)]), "aft", "Row 0 of y has 3 to 2"),
        (np.column_stack([np.arange(10) % 2, np.arange(1.0, 11.0)]), "aft", "pass booleans"),
        (np.column_stack([np.full(10, 0.5), np.arange(10) % 2]), "cox", "second column of y holds only 0 and 1"),
    ],
)
def test_invalid_inputs_are_refused(y, loss, message):
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingSurvival(loss, **SMALL).fit(np.zeros((10, 1)), y)


def test_ties_by_efron_change_rounded_times_alone():
    X, time, is_event = times(200, rounded=False)
    for grid, is_same in ((time, True), (np.ceil(time), False)):
        signed = np.where(is_event, grid, -grid)
        breslow, efron = (
            spinney.GradientBoostingSurvival(**SMALL, ties=ties).fit(X, signed) for ties in ("breslow", "efron")
        )
        assert (breslow.fingerprint() == efron.fingerprint()) is is_same
        curves = efron.predict_survival_function(X[:5])
        assert (np.diff(curves) <= 0).all()
        assert (curves >= 0).all()
    known = reference.efron_hazard(np.ceil(time), is_event, efron.predict(X), np.ones(200))
    np.testing.assert_allclose(efron.baseline_hazard_, known[1], rtol=1e-9)


def test_a_checkpoint_restores_the_scale(tmp_path):
    X, time, is_event = times(100)
    signed = np.where(is_event, time, -time)
    whole = spinney.GradientBoostingSurvival("aft", **SMALL).fit(X, signed)
    assert len(whole.scales_) == whole.n_iter_
    deep = spinney.GradientBoostingSurvival("aft", n_estimators=60, min_samples_leaf=1).fit(X, signed)  # knows its rows
    assert deep.scale_ < deep.scales_.min() == deep.scales_[-1]
    constant = spinney.GradientBoostingSurvival("aft", n_estimators=1).fit(np.zeros_like(X), signed)
    assert deep.scales_.min() == pytest.approx(constant.scale_ / 2, rel=1e-3)
    first = spinney.GradientBoostingSurvival("aft", **SMALL | {"n_estimators": 5}, warm_start=True).fit(X, signed)
    first.save(tmp_path / "model")
    for model in (first, spinney.load(tmp_path / "model")):
        model.n_estimators = SMALL["n_estimators"]
        model.fit(X, signed)
        assert model.fingerprint() == whole.fingerprint()
        np.testing.assert_array_equal(model.scales_, whole.scales_)

    def stop(about):
        if about["round"] == 4:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        spinney.GradientBoostingSurvival("aft", **SMALL, callbacks=stop).fit(X, signed, checkpoint=tmp_path / "rounds")
    with pytest.raises(ValueError, match="groups, or events"):
        spinney.GradientBoostingSurvival("aft", **SMALL).fit(X, np.abs(signed), checkpoint=tmp_path / "rounds")
    again = spinney.GradientBoostingSurvival("aft", **SMALL).fit(X, signed, checkpoint=tmp_path / "rounds")
    assert again.fingerprint() == whole.fingerprint()


def test_a_model_without_scales_is_continued_and_saved(tmp_path):
    X, time, _ = times(100)
    first = spinney.GradientBoostingSurvival("aft", **SMALL | {"n_estimators": 5}, warm_start=True).fit(X, time)
    del first.scales_  # as files of earlier versions
    first.save(tmp_path / "model")
    model = spinney.load(tmp_path / "model").set_params(n_estimators=8).fit(X, time)
    assert np.isnan(model.scales_).tolist() == [True] * 5 + [False] * 3
    model.save(tmp_path / "again")
    assert spinney.load(tmp_path / "again").fingerprint() == model.fingerprint()


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_draws_forests_of_rounds_and_shrunken_trees(loss):
    X, time, is_event = times(200)
    signed = np.where(is_event, time, -time)
    drawn = spinney.GradientBoostingSurvival(loss, **SMALL, subsample=0.5, random_state=0).fit(X, signed)
    assert np.isfinite(drawn.oob_scores_).all()
    assert drawn.oob_improvement_[0] > 0
    for more in (
        {"growth": {"n_parallel_trees": 3}, "subsample": 0.7, "random_state": 0},
        {"regularization": {"hierarchical_shrinkage": 10.0}},
    ):
        model = spinney.GradientBoostingSurvival(loss, **SMALL | {"n_estimators": 30}, **more).fit(X, signed)
        assert model.score(X, signed) > 0.7


def test_leaves_of_few_rows_are_a_twentieth_of_them():
    X, time, is_event = times(120)
    signed = np.where(is_event, time, -time)
    given = {"n_estimators": 3, "max_leaf_nodes": 8}
    auto = spinney.GradientBoostingSurvival(**given).fit(X, signed)
    six, twenty = (spinney.GradientBoostingSurvival(**given, min_samples_leaf=n).fit(X, signed) for n in (6, 20))
    assert auto.fingerprint() == six.fingerprint() != twenty.fingerprint()


@pytest.mark.parametrize("name", ["event", "status"])
def test_an_event_passed_to_fit_gets_advice(name):
    X, time, is_event = times(50)
    with pytest.raises(TypeError, match=rf"has no argument '{name}'. Pass both in y: .*np.where\(event, time, -time\)"):
        spinney.GradientBoostingSurvival(**SMALL).fit(X, time, **{name: is_event})


def test_importances_by_another_metric_are_refused():
    X, time, is_event = times()
    signed = np.where(is_event, time, -time)
    model = spinney.GradientBoostingSurvival(**SMALL).fit(X, signed)
    with pytest.raises(ValueError, match=r"'r2' is not a survival metric. Use 'concordance'"):
        model.importances(kind="permutation", X=X, y=signed, scoring="r2")
    found = model.importances(kind="permutation", X=X, y=signed, scoring="concordance")
    assert found.importance[0] > 0
