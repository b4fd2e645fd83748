"""Boosted models as a user meets them: targets, categories, offsets, sampling, one row at a time, refusals."""

import warnings

import numpy as np
import pandas as pd
import pytest
import spinney
from processes import run
from sklearn.datasets import load_breast_cancer, load_iris
from spinney import _engine
from spinney._boosting.loss import named_loss
from spinney._model.tree import FittedTree


def regression(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] * 2 + np.abs(X[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


# ---- predictions ------------------------------------------------------------------------------------------


def test_it_learns():
    X, y = regression(1000)
    model = spinney.GradientBoostingRegressor(random_state=0).fit(X[:800], y[:800])
    assert model.score(X[800:], y[800:]) > 0.95
    X, y = load_breast_cancer(return_X_y=True)
    model = spinney.GradientBoostingClassifier(random_state=0).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.94


def test_labels_of_any_type(iris):
    X, y = iris
    for labels in (y, y.astype(str), np.array(["a", "b", "c"], dtype=object)[y], y * 10.0):
        model = spinney.GradientBoostingClassifier(n_estimators=10).fit(X, labels)
        assert model.predict(X).dtype == np.asarray(labels).dtype
        assert (model.predict(X) == labels).mean() > 0.95
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(shares), model.predict_log_proba(X))
    assert (model.classes_[model.decision_function(X).argmax(axis=1)] == model.predict(X)).all()


def test_scores_of_two_classes_are_log_odds():
    X, y = regression()
    labels = np.where(y > 0, "up", "down")
    model = spinney.GradientBoostingClassifier(n_estimators=10).fit(X, labels)
    odds = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-odds)))
    assert ((odds > 0) == (model.predict(X) == "up")).all()
    half = spinney.GradientBoostingClassifier("exponential", n_estimators=10).fit(X, labels)
    np.testing.assert_allclose(half.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * half.decision_function(X))))


@pytest.mark.parametrize(("loss", "gamma"), [("smooth_hinge", 2.0), ("focal", 0.0), ("focal", 1.0), ("focal", 3.0)])
def test_probabilities_of_margin_losses_minimise_the_expected_loss(loss, gamma):
    X, y = regression()
    model = spinney.GradientBoostingClassifier(loss, n_estimators=20, focal_gamma=gamma).fit(X, y > 0)
    scores, shares = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert ((scores > 0) == model.predict(X)).all()
    assert ((shares[:, 1] > 0.5) == model.predict(X)).all()
    gradients = named_loss(loss, gamma).row_gradients
    of_first, of_second = (gradients(np.full(len(scores), code), scores[np.newaxis], None)[0] for code in (0.0, 1.0))
    inside = np.abs(scores) < 1
    np.testing.assert_allclose((shares[:, 1] * of_second + shares[:, 0] * of_first)[inside], 0, atol=1e-12)


def test_constant_initial_scores_of_margin_losses():
    X, y = np.zeros((400, 1)), np.arange(400) < 90
    for loss in ("focal", "smooth_hinge"):
        model = spinney.GradientBoostingClassifier(loss, n_estimators=1).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 90 / 400, atol=1e-9)


def test_log_cosh_is_not_carried_off_by_wild_values_and_has_no_unit():
    X, y = regression()
    wild = y.copy()
    wild[::25] += 1e6

    def fit(loss, target):
        return spinney.GradientBoostingRegressor(loss, n_estimators=100).fit(X, target)

    calm = np.arange(len(y)) % 25 != 0
    off = {loss: np.abs(fit(loss, wild).predict(X) - y)[calm].mean() for loss in ("squared_error", "log_cosh", "huber")}
    assert off["log_cosh"] < 0.5 * np.abs(y - y.mean()).mean() < off["squared_error"]
    small, large = fit("log_cosh", y).predict(X), fit("log_cosh", 2.0**30 * y).predict(X)
    np.testing.assert_array_equal(2.0**30 * small, large)


def test_poisson_gamma_and_tweedie_predict_means():
    rng = np.random.default_rng(1)
    X = rng.random((2000, 2))
    mean = np.exp(1 + X[:, 0])
    for loss, y in (
        ("poisson", rng.poisson(mean)),
        ("gamma", mean * rng.gamma(5.0, 0.2, size=2000) + 1e-9),
        ("tweedie", rng.poisson(mean) * rng.gamma(5.0, 0.2, size=2000)),
    ):
        model = spinney.GradientBoostingRegressor(loss, n_estimators=40, max_leaf_nodes=4).fit(X, y)
        assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.03)
        assert np.corrcoef(model.predict(X), mean)[0, 1] > 0.93


def test_quantiles_are_exceeded_as_often_as_they_should():
    X, y = regression(2000)
    y = y + np.random.default_rng(3).exponential(size=2000)
    for share in (0.1, 0.5, 0.9):
        model = spinney.GradientBoostingRegressor("quantile", quantile=share, max_leaf_nodes=8, n_estimators=100).fit(
            X, y
        )
        assert (y <= model.predict(X)).mean() == pytest.approx(share, abs=0.03)


# ---- columns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_categories", [3, 40])
def test_categories_are_taken_as_they_are(n_categories):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_categories, size=1500)
    effect = rng.normal(size=n_categories)
    frame = pd.DataFrame({"town": np.array([f"t{c}" for c in codes]), "x": rng.normal(size=1500)})
    y = effect[codes] + 0.1 * rng.normal(size=1500)
    model = spinney.GradientBoostingRegressor(n_estimators=60).fit(frame[:1000], y[:1000])
    assert model.score(frame[1000:], y[1000:]) > 0.85
    strange = pd.DataFrame({"town": ["nowhere", None], "x": [0.0, 0.0]})
    assert model.predict(strange)[0] == model.predict(strange)[1]
    with pytest.raises(ValueError, match="'town'"):
        model.set_params(unseen="error").predict(strange)


def test_a_column_of_names_is_not_learned_by_heart():
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame({"name": [f"n{i // 2}" for i in range(n)], "x": rng.normal(size=n)})
    y = frame["x"] + rng.normal(size=n)
    model = spinney.GradientBoostingRegressor(n_estimators=30).fit(frame, y)
    assert model.feature_importances_[0] < 0.05
    unsmoothed = spinney.GradientBoostingRegressor(n_estimators=30, categories={"smoothing": 0.0}).fit(frame, y)
    assert unsmoothed.feature_importances_[0] > 0.5


def test_missing_values_are_a_separate_value():
    X, y = regression(600)
    X[:, 0] = np.where(np.arange(600) % 3 == 0, np.nan, X[:, 0])
    y = np.where(np.isnan(X[:, 0]), 5.0, y)
    model = spinney.GradientBoostingRegressor(n_estimators=50).fit(X, y)
    assert model.predict([[np.nan, 0, 0, 0]])[0] == pytest.approx(5.0, abs=0.3)
    whole = spinney.GradientBoostingRegressor(n_estimators=5).fit(np.nan_to_num(X), y)
    assert np.isfinite(whole.predict(X)).all()  # never seen missing: the larger side


def test_columns_are_found_by_name():
    X, y = regression()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = spinney.GradientBoostingRegressor(n_estimators=5).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="names"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert model.fit(X, y) is model
    assert not hasattr(model, "feature_names_in_")


def test_without_draws_every_fit_is_the_same():
    X, y = regression()
    assert len({spinney.GradientBoostingRegressor(n_estimators=3).fit(X, y).fingerprint() for _ in range(3)}) == 1
    drawn = {spinney.GradientBoostingRegressor(n_estimators=3, subsample=0.5).fit(X, y).fingerprint() for _ in range(3)}
    assert len(drawn) == 3


def test_columns_and_rows_are_drawn():
    X, y = regression(400)
    base = {"n_estimators": 6, "random_state": 0}
    plain = spinney.GradientBoostingRegressor(**base).fit(X, y).fingerprint()
    for drawn in (
        {"subsample": 0.5},
        {"max_features": 1},
        {"max_features": "sqrt"},
        {"feature_sampling": {"per_level": 0.5}},
        {"feature_sampling": 0.5},
    ):
        model = spinney.GradientBoostingRegressor(**base, **drawn).fit(X, y)
        assert model.fingerprint() != plain
        assert model.fingerprint() == spinney.GradientBoostingRegressor(**base, **drawn).fit(X, y).fingerprint()
        assert model.fingerprint() != model.set_params(random_state=1).fit(X, y).fingerprint()
    of_tree = spinney.GradientBoostingRegressor(**base, feature_sampling=0.5).fit(X, y)
    for tree in of_tree.boosting_.trees():
        assert len(np.unique(tree.feature[tree.feature >= 0])) <= 2
    halves = spinney.GradientBoostingRegressor(**base, subsample=0.5).fit(X, y)
    assert {tree.n_rows[0] for tree in halves.boosting_.trees()} <= set(range(150, 250))


def test_importances_tell_which_columns_matter():
    X, y = regression(500)
    model = spinney.GradientBoostingRegressor(n_estimators=20).fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() == 0
    assert model.feature_importances_[2:].max() < 0.05


def test_depth_wise_growth_fills_levels():
    X, y = regression(500)
    model = spinney.GradientBoostingRegressor(n_estimators=1, growth="depth", max_leaf_nodes=8, min_samples_leaf=1)
    assert FittedTree(model.fit(X, y).boosting_.trees()[0], None, 1).max_depth == 3


# ---- offsets and weights ----------------------------------------------------------------------------------


def test_an_offset_is_an_exposure():
    rng = np.random.default_rng(0)
    X, exposure = rng.random((3000, 2)), rng.uniform(0.1, 2.0, size=3000)
    rate = np.exp(X[:, 0])
    y = rng.poisson(rate * exposure)
    model = spinney.GradientBoostingRegressor("poisson", n_estimators=30, max_leaf_nodes=4)
    model.fit(X, y, offset=np.log(exposure))
    assert model.boosting_.start[0] == pytest.approx(np.log(y.sum() / exposure.sum()))
    assert np.corrcoef(model.predict(X), rate)[0, 1] > 0.93
    np.testing.assert_allclose(model.predict(X, offset=np.log(exposure)), model.predict(X) * exposure)
    *_, last = model.staged_predict(X, offset=np.log(exposure))
    np.testing.assert_allclose(last, model.predict(X, offset=np.log(exposure)))


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile", "poisson", "gamma", "tweedie"])
def test_a_constant_offset_changes_nothing_but_the_start(loss):
    X, y = regression()
    y = np.exp(y / 4)
    # where a score meets a target exactly, rounding decides on which side the row is
    n_rounds = 1 if loss in ("absolute_error", "quantile") else 3
    plain = spinney.GradientBoostingRegressor(loss, n_estimators=n_rounds).fit(X, y)
    moved = spinney.GradientBoostingRegressor(loss, n_estimators=n_rounds).fit(X, y, offset=np.full(len(y), 0.5))
    assert moved.boosting_.start + 0.5 == pytest.approx(plain.boosting_.start)
    np.testing.assert_allclose(moved.predict(X, offset=np.full(len(y), 0.5)), plain.predict(X), rtol=1e-4)


def test_the_start_beside_an_offset_has_the_least_loss(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    for labels, width in ((y == 1, 1), (y, 3)):
        offset = rng.normal(size=(len(y), width))
        kind = spinney.GradientBoostingClassifier(n_estimators=1, learning_rate=1e-9)
        best = kind.fit(X, labels, offset=offset).train_score_[0]
        start = kind.boosting_.start.copy()
        for k in range(width):
            for step in (-0.01, 0.01):
                moved = offset.copy()
                moved[:, k] += step
                zero = spinney.GradientBoostingClassifier(n_estimators=1, learning_rate=1e-9, init="zero")
                assert zero.fit(X, labels, offset=moved + start).train_score_[0] > best
    odds = spinney.GradientBoostingClassifier("exponential", n_estimators=1).fit(X, y == 1, offset=offset[:, 0])
    assert np.isfinite(odds.boosting_.start).all()


def test_scores_may_start_at_zero(iris):
    model = spinney.GradientBoostingClassifier(n_estimators=1, init="zero").fit(*iris)
    assert model.boosting_.start.tolist() == [0.0, 0.0, 0.0]


def test_a_weight_of_zero_leaves_a_row_out():
    X, y = regression()
    weight = np.ones(len(y))
    weight[::4] = 0.0
    kept = weight > 0
    wild = np.where(kept, y, 1e6)
    model = spinney.GradientBoostingRegressor(n_estimators=5).fit(X, wild, weight)
    other = spinney.GradientBoostingRegressor(n_estimators=5).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-4)


def test_class_weights_are_row_weights(iris):
    X, y = iris
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    rule = {"n_estimators": 4, "random_state": 0}
    given = spinney.GradientBoostingClassifier(class_weight={"setosa": 3.0}, **rule).fit(X, y)
    weighted = spinney.GradientBoostingClassifier(**rule).fit(X, y, np.where(y == "setosa", 3.0, 1.0))
    assert given.fingerprint() == weighted.fingerprint()
    some = slice(20, None)
    balanced = spinney.GradientBoostingClassifier(class_weight="balanced", **rule).fit(X[some], y[some])
    np.testing.assert_allclose(balanced.boosting_.start, np.log([1 / 3] * 3))


# ---- one row at a time ------------------------------------------------------------------------------------


def test_a_handle_predicts_as_the_model(iris):
    X, y = regression()
    model = spinney.GradientBoostingRegressor(n_estimators=10).fit(X, y)
    handle = model.to_predictor()
    assert [handle.predict(row) for row in X[:20]] == model.predict(X[:20]).tolist()
    X, y = iris
    for labels in (y, y == 1):
        model = spinney.GradientBoostingClassifier(n_estimators=10).fit(X, labels)
        handle = model.to_predictor()
        assert [handle.predict(row) for row in X[::10]] == model.predict(X[::10]).tolist()
        np.testing.assert_array_equal([handle.predict_proba(row) for row in X[::10]], model.predict_proba(X[::10]))
    frame = pd.DataFrame({"town": list("abcab") * 20, "x": np.arange(100.0)})
    counts = spinney.GradientBoostingRegressor("poisson", n_estimators=5).fit(frame, np.arange(100) % 7)
    handle = counts.to_predictor()
    assert handle.predict({"town": "b", "x": 3.0}) == counts.predict(frame.iloc[[1]].assign(x=3.0))[0]
    assert np.isfinite(handle.predict(["unheard of", None]))
    with pytest.raises(AttributeError, match="no class probabilities"):
        handle.predict_proba(["a", 1.0])


def test_a_handle_takes_an_offset(iris):
    X, y = iris
    for model, offset in (
        (spinney.GradientBoostingClassifier(n_estimators=4).fit(X, y), np.linspace(-2, 2, 450).reshape(150, 3)),
        (spinney.GradientBoostingClassifier(n_estimators=4).fit(X, y > 0), np.linspace(-5, 5, 150)),
        (spinney.GradientBoostingClassifier("exponential", n_estimators=4).fit(X, y > 0), np.linspace(-5, 5, 150)),
    ):
        handle = model.to_predictor()
        assert [handle.predict(*a) for a in zip(X, offset, strict=True)] == model.predict(X, offset=offset).tolist()
        shares = [handle.predict_proba(*a) for a in zip(X, offset, strict=True)]
        np.testing.assert_array_equal(shares, model.predict_proba(X, offset=offset))
    counts = spinney.GradientBoostingRegressor("poisson", n_estimators=4).fit(X, y)
    handle = counts.to_predictor()
    assert handle.predict(X[0], 1.5) == counts.predict(X[:1], offset=[1.5])[0]
    with pytest.raises(ValueError, match=r"The offset of a row is one number. Got \[1, 2\]"):
        handle.predict(X[0], [1, 2])


def test_probabilities_are_those_of_the_scores(iris):
    X, y = iris
    model = spinney.GradientBoostingClassifier(n_estimators=5).fit(X, y)
    scores = model.decision_function(X)
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), raised / raised.sum(axis=1, keepdims=True), rtol=1e-13)
    two = spinney.GradientBoostingClassifier(n_estimators=5).fit(X, y > 0)
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], 1 / (1 + np.exp(-two.decision_function(X))), rtol=1e-13)
    far = two.predict_proba(X, offset=np.linspace(-2000, 2000, 150))
    assert np.isfinite(far).all()
    assert far[0, 0] == far[-1, 1] == 1.0


def test_batches_of_every_size_are_scored_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X).sum(axis=1)
    for leaves in (8, 31, 64, 200):
        model = spinney.GradientBoostingRegressor(n_estimators=12, max_leaf_nodes=leaves, min_samples_leaf=2).fit(X, y)
        whole = model.predict(X)
        for size in (1, 7, 100, 513):
            assert model.predict(X[:size]).tobytes() == whole[:size].tobytes()
        walked = np.zeros(len(X))
        for tree in model.boosting_.trees():
            walked += FittedTree(tree, None, 1).predictions(model._columns(X), 1)[:, 0]
        assert (walked + model.boosting_.start[0]).tobytes() == whole.tobytes()


# ---- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("poisson", [1.0, -1.0, 2.0, 0.0], "of at least 0. Row 1 of y has -1"),
        ("tweedie", [1.0, -1.0, 2.0, 0.0], "of at least 0. Row 1 of y has -1"),
        ("gamma", [1.0, 2.0, 0.0, 1.0], "above 0. Row 2 of y has 0"),
        ("poisson", [0.0, 0.0, 0.0, 0.0], "All of y is 0"),
    ],
)
def test_targets_that_a_loss_is_not_for(loss, y, message):
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingRegressor(loss).fit(np.zeros((4, 1)), y)


def test_refusals_of_regression():
    X, y = regression(50)
    model = spinney.GradientBoostingRegressor(n_estimators=2)
    for arguments, message in (
        ({"offset": np.zeros(49)}, r"offset has shape \(49,\); it needs \(50,\)"),
        ({"offset": np.full(50, np.nan)}, "offset must be finite numbers. Row 0"),
        ({"offset": ["a"] * 50}, "offset must hold numbers"),
        ({"X_val": X}, "X_val and y_val go together"),
        ({"sample_weight_val": np.ones(50)}, "goes with X_val"),
        ({"X_val": X, "y_val": y, "offset": y}, "offset and offset_val go together"),
        ({"groups": np.ones(50)}, "groups determine which rows are held out"),
        ({"sample_weight": np.zeros(50)}, "all of them are 0"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, **arguments)
    with pytest.raises(ValueError, match="for one output"):
        spinney.GradientBoostingRegressor(lambda y, f: (y - f) ** 2).fit(X, np.column_stack([y, y]))
    assert not hasattr(model, "boosting_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"max_features": 9}, "more than the table's 4 columns"),
        ({"monotonic_cst": [1]}, "monotonic_cst has shape"),
        ({"interaction_cst": [{9}]}, "interaction_cst must name columns"),
        ({"callbacks": ["print"]}, "callbacks must be functions"),
        ({"scoring": "nonsense"}, "nonsense"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"max_bins": 70_000}, "max_bins"),
        ({"validation_fraction": 50, "early_stopping": True}, "leaves no training rows"),
    ],
)
def test_refusals_of_parameters(parameters, message):
    X, y = regression(50)
    with pytest.raises((ValueError, TypeError), match=message):
        spinney.GradientBoostingRegressor(n_estimators=2, **parameters).fit(X, y)


def test_refusals_of_classes(iris):
    X, y = iris
    with pytest.raises(ValueError, match="for two classes; y has 3"):
        spinney.GradientBoostingClassifier("exponential").fit(X, y)
    with pytest.raises(ValueError, match="y has only one class, 7"):
        spinney.GradientBoostingClassifier().fit(X, np.full(len(y), 7))
    with pytest.raises(ValueError, match="multiclass"):
        spinney.GradientBoostingClassifier(monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    with pytest.raises(ValueError, match="y_val has a class that y does not have: 4"):
        spinney.GradientBoostingClassifier().fit(X, y, X_val=X, y_val=np.where(np.arange(150) == 3, 4, y))
    with pytest.raises(ValueError, match="class_weight names a class"):
        spinney.GradientBoostingClassifier(class_weight={9: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="no training row of positive weight"):
        spinney.GradientBoostingClassifier(class_weight={0: 0.0}).fit(X, y)
    with pytest.raises(ValueError, match=r"offset has shape \(150,\); it needs \(150, 3\)"):
        spinney.GradientBoostingClassifier().fit(X, y, offset=np.zeros(150))


def test_targets_of_any_reasonable_size():
    X, y = regression(100)
    plain = spinney.GradientBoostingRegressor(n_estimators=3).fit(X, y).predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (2.0**50, 2.0**-50):
            model = spinney.GradientBoostingRegressor(n_estimators=3).fit(X, y * scale)
            np.testing.assert_allclose(model.predict(X) / scale, plain, rtol=1e-5)
        assert (spinney.GradientBoostingRegressor(n_estimators=3).fit(X, np.full(100, 7.0)).predict(X) == 7.0).all()
    for wild in (y * 1e100, y * 1e-100):
        with pytest.raises(ValueError, match=r"y lies up to .* Rescale"):
            spinney.GradientBoostingRegressor().fit(X, wild)
    with pytest.raises(ValueError, match=r"sample_weight reaches 1e\+30"):
        spinney.GradientBoostingRegressor().fit(X, y, np.full(100, 1e30))


def all_ways(model, X, rows):
    """Sums by batch, by single rows and by the trees one by one, to the bit."""
    batch = model.boosting_.engine.sums(model._columns(X), 0, model.boosting_.n_trees, 1)
    trees = np.zeros_like(batch)
    for t, tree in enumerate(model.estimators_.ravel()):
        trees[:, t % model.boosting_.n_scores] += tree.predict(X)
    np.testing.assert_array_equal(batch, trees)
    handle = model.to_predictor()
    assert [handle.predict(row) for row in rows[:30]] == model.predict(X)[:30].tolist()


@pytest.mark.parametrize("max_leaf_nodes", [31, 400])
def test_columns_of_more_cuts_than_a_byte_holds(max_leaf_nodes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    X[::17, 0] = np.nan
    y = np.sin(9 * np.nan_to_num(X[:, 0])) + X[:, 1] ** 2 + rng.normal(size=3000) / 9
    model = spinney.GradientBoostingRegressor(
        n_estimators=40, max_bins=65535, min_samples_leaf=2, max_leaf_nodes=max_leaf_nodes
    ).fit(X, y)
    assert len(np.unique(model.boosting_.engine.threshold[model.boosting_.engine.feature == 0])) > 300
    all_ways(model, X, X)
    few = model.boosting_.engine.sums(model._columns(X[:70]), 3, 11, 1)
    whole = model.boosting_.engine.sums(model._columns(X), 3, 11, 1)
    np.testing.assert_array_equal(few, whole[:70])


@pytest.mark.parametrize("unseen", ["missing", "other"])
def test_more_categories_than_a_byte_holds(unseen):
    rng = np.random.default_rng(0)
    town = rng.integers(0, 700, 9000)
    X = pd.DataFrame({"town": [f"t{c}" for c in town], "x": rng.normal(size=9000)})
    X.loc[::31, "town"] = None
    worth = rng.normal(size=700)
    y = worth[town] + X["x"] + rng.normal(size=9000) / 9
    model = spinney.GradientBoostingRegressor(
        n_estimators=60, max_leaf_nodes=16, min_samples_leaf=2, categories={"smoothing": 1.0}, unseen=unseen
    ).fit(X, y)
    tables = {str(tree.left_categories(0)) for tree in model.boosting_.trees() if tree.feature[0] == 0}
    assert len(tables) > 10
    later = X.head(2000).copy()
    later.loc[:20, "town"] = "unheard of"
    all_ways(model, later, later.astype(object).where(later.notna(), None).to_numpy().tolist())
    several = spinney.GradientBoostingClassifier(n_estimators=6, categories={"smoothing": 1.0}, unseen=unseen)
    all_ways(several.fit(X, np.digitize(y, [-1, 1])), later, later.to_numpy().tolist())


@pytest.mark.parametrize("heavy", [1e6, 1e9])
@pytest.mark.parametrize("kind", [spinney.GradientBoostingRegressor, spinney.GradientBoostingClassifier])
def test_a_row_of_huge_weight_leaves_the_others_their_splits(kind, heavy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = 2 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=2000)
    y = y if kind is spinney.GradientBoostingRegressor else (y > 0).astype(int)
    weight = np.ones(2000)
    weight[1000] = heavy
    model = kind(n_estimators=60, learning_rate=0.3).fit(X, y, weight)
    others = np.arange(2000) != 1000
    assert model.score(X[others], y[others]) > 0.9
    assert min(tree.tree_.n_node_samples[tree.tree_.is_leaf].min() for tree in model.estimators_.ravel()) >= 20


@pytest.mark.parametrize("heavy", [1e3, 1e6])
def test_a_small_table_with_a_heavy_row_is_split_too(heavy):
    X = np.random.default_rng(0).normal(size=(100, 3))
    weight = np.ones(100)
    weight[0] = heavy
    model = spinney.GradientBoostingRegressor(n_estimators=20).fit(X, np.sin(3 * X[:, 0]), weight)
    assert all(tree.tree_.n_leaves > 1 for tree in model.estimators_.ravel())


@pytest.mark.slow
@pytest.mark.parametrize("l2", [1e10, 1e15, 1e21])
def test_a_penalty_beyond_all_bounds_gives_the_same_tree_everywhere(l2):
    program = (
        "import numpy as np, spinney; X = np.random.default_rng(0).normal(size=(200, 4)); "
        f"m = spinney.GradientBoostingRegressor(n_estimators=1, l2_regularization={l2}); "
        "print(m.fit(X, np.sin(3 * X[:, 0]) + X[:, 1]).fingerprint())"
    )
    isas = ("base", _engine.instruction_set())
    assert len({run(program, SPINNEY_ISA=isa).stdout for isa in isas}) == 1


def test_every_loss_of_numbers_that_the_engine_has_can_be_chosen():
    random = np.random.default_rng(3)
    X, y = random.normal(size=(200, 3)), random.gamma(2.0, size=200)
    of_numbers = [traits.name for traits in _engine.boosting_losses() if not traits.of_classes]
    assert "gamma" in of_numbers
    assert "logistic" not in of_numbers
    own_targets = {"beta": y / (1 + y), "negative_binomial": np.floor(y), "zero_inflated_poisson": np.floor(y)}
    for name in of_numbers:
        model = spinney.GradientBoostingRegressor(loss=name, n_estimators=2).fit(X, own_targets.get(name, y))
        assert np.isfinite(model.predict(X)).all(), name
    with pytest.raises(ValueError, match="'logistic'"):
        spinney.GradientBoostingRegressor(loss="logistic").fit(X, y)
