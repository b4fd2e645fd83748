"""Boosting of ordered classes: one score, with cuts between the classes."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest
import spinney
from oracle import boosting as reference
from spinney import _engine
from spinney._boosting.loss import class_loss
from spinney._estimator.metrics import NamedScorer
from spinney._model.links import has_cuts

LEVELS = ["low", "middle", "high", "top"]
SMALL = {"n_estimators": 12, "max_leaf_nodes": 5, "min_samples_leaf": 5, "learning_rate": 0.3}


def make_rows(seed=0, n=400, cuts=(-1.5, 0.5, 2.0)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = 2 * X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 0]
    return X, np.digitize(score + rng.logistic(size=n), cuts)


def ordinal(**options):
    return spinney.GradientBoostingClassifier(**{"loss": "ordinal", **SMALL, **options})


def ranked_score(proba, codes):
    return np.mean(((np.cumsum(proba, axis=1) - (np.arange(proba.shape[1]) >= codes[:, np.newaxis])) ** 2).sum(axis=1))


@pytest.mark.parametrize("size", [0.0, 0.3, 2.0, 30.0])
def test_cuts_are_those_of_least_loss(size):
    rng = np.random.default_rng(1)
    score = size * rng.normal(size=300)
    codes, weight = np.digitize(score + rng.logistic(size=300), [-2, 0, 1]), rng.uniform(0.5, 2, 300)
    found = _engine.ordinal_cuts(codes.astype(float), score, weight, 4, 1)
    np.testing.assert_allclose(found, reference.ordinal_cuts(codes, score, weight, 4), rtol=1e-3, atol=1e-3)
    again = _engine.ordinal_cuts(codes.astype(float), score, weight, 4, 4)
    assert found.tolist() == again.tolist()


def test_cuts_of_many_rows_do_not_depend_on_threads_and_leave_no_slope():
    rng = np.random.default_rng(2)
    score = 3 * rng.normal(size=30_000)
    codes = np.digitize(score + rng.logistic(size=len(score)), [-4, -1, 0, 5]).astype(float)
    found = _engine.ordinal_cuts(codes, score, None, 5, 1)
    assert found.tolist() == _engine.ordinal_cuts(codes, score, None, 5, 4).tolist()
    least = _engine.loss_value("ordinal", found, codes, score[np.newaxis], None)
    for k in range(4):
        for step in (-1e-3, 1e-3):
            other = found + step * (np.arange(4) == k)
            assert _engine.loss_value("ordinal", other, codes, score[np.newaxis], None) > least


def test_cuts_around_a_class_without_rows_are_finite_and_ascend():
    codes, score = np.repeat([1.0, 3.0], 50), np.linspace(-1, 1, 100)
    found = _engine.ordinal_cuts(codes, score, None, 6, 1)
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()
    alone = _engine.ordinal_cuts(np.zeros(100), score, None, 3, 1)
    assert np.isfinite(alone).all()
    assert (np.diff(alone) > 0).all()
    assert _engine.ordinal_cuts(codes, score, np.zeros(100), 3 + 1, 1).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("weighted", [False, True])
def test_fits_agree_with_the_reference(weighted):
    X, codes = make_rows(3, 150)
    weight = np.random.default_rng(4).integers(1, 4, 150).astype(float) if weighted else np.ones(150)
    model = ordinal(n_estimators=4).fit(X, codes, weight if weighted else None)
    rules = reference.Rules(max_leaves=5, min_rows=5)
    scores, trees, cuts = reference.boost_ordered(X, codes, weight, 4, 4, 0.3, rules)
    assert [len(t.feature) for t in model.boosting_.trees()] == [len(list(root.preorder())) for root in trees]
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-3, atol=1e-3)
    expected = reference.ordinal_proba(scores, cuts)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=3e-3, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (model.predict(X) == model.predict_proba(X).argmax(axis=1)).all()


def test_a_class_without_weight_is_refused_with_folds_too():
    X, codes = make_rows(20)
    for absent in (1, 3):
        for n_estimators in (4, "auto"):
            with pytest.raises(ValueError, match=f"index {absent} in classes_ has no training row"):
                ordinal(n_estimators=n_estimators).fit(X, codes, (codes != absent).astype(float))


@pytest.mark.parametrize("size", [1e4, 1e6])
def test_scores_too_far_apart_for_cuts_are_refused(size):
    rng = np.random.default_rng(0)
    codes, scores = rng.integers(0, 4, 400).astype(float), size * rng.normal(size=(1, 400))
    with pytest.raises(ValueError, match=r"no thresholds between the classes at scores from -.*\. Rescale offset"):
        class_loss("ordinal", 4).link_at(codes, scores, None)


def test_two_ordered_classes_are_those_of_the_log_loss():
    X, codes = make_rows(5)
    two = codes > 1
    found, plain = ordinal().fit(X, two), spinney.GradientBoostingClassifier(**SMALL).fit(X, two)
    assert np.abs(found.predict_proba(X) - plain.predict_proba(X)).mean() < 0.04


@pytest.mark.parametrize(
    "options", [{}, {"n_estimators": "auto"}, {"early_stopping": True, "n_estimators": 100, "random_state": 0}]
)
def test_ordered_classes_are_predicted_better_than_by_the_log_loss(options):
    X, codes = make_rows(6, 1500, cuts=(-3, -1, 0, 1, 2, 4))
    later, found = slice(700, None), {}
    for loss in ("ordinal", "log_loss"):
        model = ordinal(loss=loss, **options).fit(X[:700], codes[:700])
        found[loss] = ranked_score(model.predict_proba(X[later]), codes[later])
    assert found["ordinal"] < 0.99 * found["log_loss"]


def test_weights_are_repeated_rows_and_threads_change_nothing():
    X, codes = make_rows(7, 300)
    times = np.random.default_rng(8).integers(1, 4, 300)
    weighted = ordinal(min_samples_leaf=1).fit(X, codes, times)
    repeated = ordinal(min_samples_leaf=1).fit(np.repeat(X, times, axis=0), np.repeat(codes, times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-4, atol=1e-6)
    assert len({ordinal(n_jobs=n).fit(X, codes).fingerprint() for n in (1, 2, 4)}) == 1


# ---- the order ----------------------------------------------------------------------------------------------


def test_the_order_is_that_of_the_parameter_the_column_or_the_numbers():
    X, codes = make_rows(9)
    text = np.array(LEVELS, dtype=object)[codes]
    by_number = ordinal().fit(X, codes)
    columns = {
        "parameter": (text, {"class_order": LEVELS}),
        "pandas": (pd.Series(pd.Categorical(text, [*LEVELS, "beyond"], ordered=True)), {}),
        "polars": (pl.Series(text.tolist(), dtype=pl.Enum([*LEVELS, "beyond"])), {}),
    }
    for y, options in columns.values():
        model = ordinal(**options).fit(X, y)
        assert model.classes_.tolist() == LEVELS
        assert model.predict_proba(X).tolist() == by_number.predict_proba(X).tolist()
        assert model.predict(X).tolist() == np.array(LEVELS)[by_number.predict(X)].tolist()
    reverse = ordinal(class_order=[3, 2, 1, 0]).fit(X, codes)
    assert reverse.classes_.tolist() == [3, 2, 1, 0]
    assert reverse.score(X, codes) > 0.6
    np.testing.assert_allclose(reverse.predict_proba(X)[:, ::-1], by_number.predict_proba(X), atol=0.02)


def test_averages_match_the_columns_of_members_by_label():
    X, codes = make_rows(17)
    text = np.array(LEVELS, dtype=object)[codes]
    for reverse in (False, True):
        y, order = (codes, [3, 2, 1, 0]) if reverse else (text, LEVELS)
        member = ordinal(class_order=order, n_estimators=4)
        for model in (
            spinney.BaggingClassifier(member, n_estimators=3, bootstrap=False),
            spinney.VotingClassifier([("one", member), ("other", member)], voting="soft"),
        ):
            model.fit(X, y)
            alone = ordinal(class_order=order, n_estimators=4).fit(X, y)
            places = [alone.classes_.tolist().index(label) for label in model.classes_.tolist()]
            np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X)[:, places], atol=1e-12)


@pytest.mark.parametrize("metric", ["log_loss", "auc", "brier", "accuracy", "f1_macro"])
def test_metrics_by_name_do_not_depend_on_the_order_of_the_classes(metric):
    X, codes = make_rows(18)
    ascending = ordinal(n_estimators=4).fit(X, codes)
    by_text = ordinal(n_estimators=4, class_order=LEVELS).fit(X, np.array(LEVELS, dtype=object)[codes])
    found, expected = NamedScorer(metric)(by_text, X, np.array(LEVELS)[codes]), NamedScorer(metric)(ascending, X, codes)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    is_high, order = codes > 1, ["not high", "high"]
    model = ordinal(n_estimators=4, class_order=order).fit(X, np.array(order)[is_high.astype(int)])
    reference = ordinal(n_estimators=4).fit(X, is_high.astype(int))
    if metric != "f1_macro":
        found, expected = (NamedScorer(metric)(one, X, one.classes_[is_high.astype(int)]) for one in (model, reference))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_comparisons_and_early_stopping_score_text_by_its_label():
    X, codes = make_rows(19)
    text = np.array(LEVELS)[codes]
    scores = spinney.compare({"ordinal": ordinal(class_order=LEVELS)}, X, text, scoring="log_loss", cv=2)
    by_number = spinney.compare({"ordinal": ordinal()}, X, codes, scoring="log_loss", cv=2)
    name = scores.names.index("ordinal")
    np.testing.assert_allclose(scores.scores["neg_log_loss"][name], by_number.scores["neg_log_loss"][name], atol=1e-12)
    stopped = [
        ordinal(class_order=order, n_estimators=100, early_stopping=True, scoring="log_loss", random_state=0).fit(X, y)
        for y, order in ((text, LEVELS), (codes, None))
    ]
    assert stopped[0].n_iter_ == stopped[1].n_iter_ > 1


def test_what_has_no_order_is_refused():
    X, codes = make_rows(10)
    text = np.array(LEVELS, dtype=object)[codes]
    with pytest.raises(ValueError, match=r"y holds text such as 'high', 'low'.*Pass class_order"):
        ordinal().fit(X, text)
    with pytest.raises(ValueError, match="Pass class_order"):
        ordinal().fit(X, pd.Series(pd.Categorical(text)))
    with pytest.raises(ValueError, match="class_order lacks a class that y has: 'top'"):
        ordinal(class_order=LEVELS[:3]).fit(X, text)
    with pytest.raises(ValueError, match="name each class once"):
        ordinal(class_order=[*LEVELS, "low"]).fit(X, text)
    with pytest.raises(ValueError, match="class_order is for loss='ordinal'"):
        spinney.GradientBoostingClassifier(class_order=LEVELS).fit(X, text)
    with pytest.raises(ValueError, match="one output of ordered classes; y has 2 columns"):
        ordinal().fit(X, np.column_stack([codes, codes]))


# ---- the rest of boosting ------------------------------------------------------------------------------------


def test_files_single_rows_and_staged_predictions():
    X, codes = make_rows(11)
    model = ordinal(class_order=LEVELS).fit(X, np.array(LEVELS, dtype=object)[codes])
    file = io.BytesIO()
    model.save(file)
    loaded = spinney.load(io.BytesIO(file.getvalue()))
    assert loaded.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert loaded.classes_.tolist() == LEVELS
    assert loaded.fingerprint() == model.fingerprint()
    row = model.to_predictor()
    assert [row.predict(x) for x in X[:20].tolist()] == model.predict(X[:20]).tolist()
    np.testing.assert_array_equal([row.predict_proba(x) for x in X[:20].tolist()], model.predict_proba(X[:20]))
    assert list(model.staged_predict_proba(X))[-1].tolist() == model.predict_proba(X).tolist()


def test_exports_refuse_the_link_by_name():
    model = ordinal(n_estimators=2).fit(*make_rows(16, 100))
    with pytest.raises(ValueError, match=r"ONNX cannot hold the link 'ordinal' of this .*store the model with save"):
        spinney.to_onnx(model)


@pytest.mark.parametrize(
    "link", ["ordinal", "ordinal 1.0", "ordinal 2.0 1.0", "ordinal nan 1.0", "ordinal 1 2.0", "ordinal 1.0  2.0"]
)
def test_damaged_cuts_are_refused(link):
    assert not has_cuts(link, 3)
    if link != "ordinal 1.0" and link != "ordinal 1 2.0" and link != "ordinal nan 1.0":
        with pytest.raises(ValueError, match="Unknown link"):
            _engine.predicted(link, np.zeros((1, 1)))


def test_costs_choose_the_median_class_and_columns_may_be_monotonic():
    X, codes = make_rows(12)
    cost = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    model = ordinal(cost_matrix=cost).fit(X, codes)
    proba = model.predict_proba(X)
    assert (model.predict(X) == (proba @ cost).argmin(axis=1)).all()
    rising = ordinal(monotonic_cst=[1, 0, 0, 0]).fit(X, codes)
    moved = X.copy()
    moved[:, 0] += 1
    assert (rising.decision_function(moved) >= rising.decision_function(X)).all()


def test_validation_scoring_warm_starts_and_checkpoints(tmp_path):
    X, codes = make_rows(13, 600)
    train, held_out = slice(0, 400), slice(400, None)
    model = ordinal(n_estimators=200, n_iter_no_change=5, scoring=["neg_log_loss", "accuracy", None])
    model.fit(X[train], codes[train], X_val=X[held_out], y_val=codes[held_out])
    assert model.n_iter_ < 200
    logs, losses = (next(v for k, v in model.history_.items() if k.endswith(name)) for name in ("log_loss", " loss"))
    np.testing.assert_allclose(-logs, losses, atol=1e-9)
    whole = ordinal().fit(X, codes)
    warm = ordinal(n_estimators=6, warm_start=True).fit(X, codes).set_params(n_estimators=12).fit(X, codes)
    np.testing.assert_allclose(warm.predict_proba(X), whole.predict_proba(X), atol=1e-6)
    path = tmp_path / "fit.checkpoint"
    stop = ordinal(callbacks=lambda progress: progress["round"] == 5)
    stop.fit(X, codes, checkpoint=path)
    resumed = ordinal().fit(X, codes, checkpoint=path)
    assert resumed.fingerprint() == whole.fingerprint()


def test_refitted_leaves_have_cuts_for_the_new_rows():
    X, codes = make_rows(14, 600)
    model = ordinal().fit(X[:300], codes[:300])
    same = model.refit(X[:300], codes[:300], decay=1.0)
    np.testing.assert_allclose(same.predict_proba(X), model.predict_proba(X), atol=1e-9)
    moved = model.refit(X[300:], np.maximum(codes[300:] - 1, 0), decay=0.0)
    assert moved.predict(X[300:]).mean() < model.predict(X[300:]).mean() - 0.5


def test_offsets_are_added_to_the_score():
    X, codes = make_rows(15)
    offset = 2 * X[:, 0]
    model = ordinal().fit(X, codes, offset=offset)
    proba = model.predict_proba(X, offset=offset)
    assert ranked_score(proba, codes) < ranked_score(model.predict_proba(X), codes)


def test_cuts_are_an_attribute_and_a_picture():
    import matplotlib

    matplotlib.use("agg")
    X = np.random.RandomState(0).normal(size=(300, 2))
    y = np.digitize(X[:, 0] + np.random.RandomState(1).normal(size=300) / 2, [-0.5, 0.7])
    model = spinney.GradientBoostingClassifier("ordinal", n_estimators=10).fit(X, y)
    at_cut = model.boosting_.predicted(model.cuts_[:, np.newaxis])
    np.testing.assert_allclose([at_cut[k, k + 1 :].sum() for k in range(2)], 0.5)
    ax = spinney.plot_ordered_classes(model, X)
    curves = [line for line in ax.get_lines() if len(line.get_xdata()) == 400]
    assert [line.get_label() for line in curves] == ["0", "1", "2"]
    np.testing.assert_allclose(sum(line.get_ydata() for line in curves), 1.0)
    cuts = [line.get_xdata()[0] for line in ax.get_lines() if line.get_linestyle() == ":"]
    np.testing.assert_allclose(cuts, model.cuts_)
    assert spinney.plot_ordered_classes(model, ax=ax) is ax
    matplotlib.pyplot.close(ax.figure)
    plain = spinney.GradientBoostingClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="with loss='ordinal'"):
        spinney.plot_ordered_classes(plain)
    with pytest.raises(AttributeError, match="Fit with loss='ordinal'"):
        _ = plain.cuts_
