"""Trees with vector leaves against the reference implementation; a mean and a spread for each row."""

import io

import numpy as np
import pytest
import spinney
from oracle import boosting_vectors as reference
from oracle.boosting import Rules
from scipy import sparse

FEW = {"n_estimators": 4, "max_leaf_nodes": 6, "min_samples_leaf": 4, "learning_rate": 0.3}


def make_rows(seed=0, n=90, missing=0.1, categories=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < missing] = np.nan
    if categories:
        X[:, 3] = rng.integers(0, categories, size=n)
        X[::9, 3] = np.nan
    known = np.nan_to_num(X)
    Y = np.column_stack([known[:, 0] + 3 * np.sin(5 * known[:, 3]), known[:, 1] ** 2, known[:, 0] - known[:, 2]])
    return X, Y + 0.3 * rng.normal(size=Y.shape)


def splits_of(model):
    step = model.boosting_.n_scores
    return [(int(n), int(f)) for t in model.boosting_.trees()[::step] for n, f in zip(t.n_rows, t.feature, strict=True)]


def reference_splits(trees):
    return [(len(v.rows), v.feature if v.children else -1) for root in trees for v in root.preorder()]


def assert_agree(model, X, scores, trees):
    assert splits_of(model) == reference_splits(trees)
    np.testing.assert_allclose(model.boosting_.scores(model._columns(X), 1), scores, rtol=2e-5, atol=2e-5)


def same_everywhere(make, X, y):
    """Any number of threads, a file and a handle give the same."""
    models = [make(n_jobs=n).fit(X, y) for n in (1, 2, 3)]
    assert len({model.fingerprint() for model in models}) == 1
    file = io.BytesIO()
    models[0].save(file)
    file.seek(0)
    loaded = spinney.load(file)
    assert np.array_equal(loaded.predict(X), models[0].predict(X))
    handle = loaded.to_predictor()
    assert all(np.array_equal(handle.predict(row), one) for row, one in zip(X[:9], loaded.predict(X[:9]), strict=True))
    return models[0]


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ({}, {}),
        pytest.param(
            {"l2_regularization": 2.0, "growth": "depth"}, {"l2": 2.0, "depth_wise": True}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"regularization": {"l1": 1.0, "max_step": 0.5}},
            {"l1": 1.0, "max_step": 0.5},
            marks=pytest.mark.slow,
        ),
        (
            {"max_depth": 2, "regularization": {"min_gain": 0.02}},
            {"max_depth": 2, "min_gain": 0.02},
        ),
    ],
)
def test_outputs_agree_with_the_reference(given, rules):
    X, Y = make_rows()
    model = spinney.GradientBoostingRegressor(leaves="vector", **FEW | given).fit(X, Y)
    weights = 1 / (3 * Y.var(axis=0))
    wanted = Rules(max_leaves=6, min_rows=4, **rules)
    scores, trees = reference.boost("squares", X, Y, np.ones(len(X)), 4, 0.3, wanted, Y.mean(axis=0), weights)
    assert_agree(model, X, scores, trees)


@pytest.mark.slow
@pytest.mark.parametrize("n_categories", [3, 8])
def test_categories_and_weights_agree_with_the_reference(n_categories):
    X, Y = make_rows(3, categories=n_categories)
    weight = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    given = {"categorical_features": [3], "categories": {"smoothing": 2.0, "l2": 1.0}, "min_samples_leaf": 1}
    model = spinney.GradientBoostingRegressor(leaves="vector", **FEW | given).fit(X, Y, weight)
    mean = np.average(Y, axis=0, weights=weight)
    weights = 1 / (3 * np.average((Y - mean) ** 2, axis=0, weights=weight))
    rules = Rules(max_leaves=6, min_rows=1, smoothing=2.0, category_l2=1.0, categories=frozenset({3}))
    scores, trees = reference.boost("squares", X, Y, weight, 4, 0.3, rules, mean, weights)
    used = weight > 0
    assert 3 in {feature for _, feature in splits_of(model)}
    assert splits_of(model) == reference_splits(trees)
    np.testing.assert_allclose(model.predict(X)[used], scores[used], rtol=2e-5, atol=2e-5)


def test_classes_agree_with_the_reference():
    X, Y = make_rows(4)
    codes = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))
    model = spinney.GradientBoostingClassifier(leaves="vector", **FEW).fit(X, codes)
    start = np.log(np.bincount(codes) / len(codes))
    rules = Rules(max_leaves=6, min_rows=4)
    scores, trees = reference.boost("classes", X, codes, np.ones(len(X)), 4, 0.3, rules, start, np.ones(3))
    assert_agree(model, X, scores, trees)


@pytest.mark.slow
@pytest.mark.parametrize("leaves", ["single", "vector"])
def test_a_mean_and_a_spread_agree_with_the_reference(leaves):
    X, Y = make_rows(5)
    y = 3 + 10 * Y[:, 0]
    model = spinney.GradientBoostingRegressor("normal", leaves=leaves, **FEW).fit(X, y)
    variance = y.var()
    start = [y.mean(), np.log(variance) / 2]
    rules = Rules(max_leaves=6, min_rows=4)
    if leaves == "vector":
        weights = [1 / variance, 1.0]
        scores, trees = reference.boost("normal", X, y, np.ones(len(X)), 4, 0.3, rules, start, weights, variance)
        assert_agree(model, X, scores, trees)
    found = model.predict_distribution(X)
    nll = np.log(found.std) + ((y - found.mean) / found.std) ** 2 / 2
    assert model.train_score_[-1] == pytest.approx(nll.mean(), rel=1e-9)
    assert (np.diff(model.train_score_) < 0).all()


def test_derivatives_of_the_normal_loss():
    rng = np.random.default_rng(0)
    y, F, e = rng.normal(size=40), rng.normal(size=(40, 2)), 1e-5

    def loss(at):
        return at[:, 1] + (y - at[:, 0]) ** 2 * np.exp(-2 * at[:, 1]) / 2

    g, _ = reference.gradients("normal", y, F)
    for k in range(2):
        step = e * np.eye(2)[k]
        np.testing.assert_allclose(g[:, k], (loss(F + step) - loss(F - step)) / (2 * e), rtol=1e-6, atol=1e-8)


def test_vector_leaves_are_the_same_everywhere():
    X, Y = make_rows(6, n=200)
    same_everywhere(lambda **more: spinney.GradientBoostingRegressor(leaves="vector", **FEW | more), X, Y)
    codes = np.digitize(Y[:, 0], [-0.5, 0.5])
    model = same_everywhere(lambda **more: spinney.GradientBoostingClassifier(leaves="vector", **FEW | more), X, codes)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.allclose(model.shap_values(X[:5]).predictions, model.decision_function(X[:5]))
    levels = spinney.GradientBoostingRegressor("quantile", quantile=[0.1, 0.5, 0.9], leaves="vector", **FEW)
    assert (np.diff(levels.fit(X, Y[:, 0]).predict(X), axis=1) >= 0).all()
    assert np.mean(Y[:, 0] <= levels.predict(X)[:, 2]) > 0.8
    listed = sparse.random(300, 40, 0.02, random_state=0, format="csc")
    wide = spinney.GradientBoostingRegressor(leaves="vector", **FEW).fit(listed, np.asarray(listed[:, :3].todense()))
    dense = spinney.GradientBoostingRegressor(leaves="vector", **FEW).fit(
        listed.toarray(), np.asarray(listed[:, :3].todense())
    )
    assert wide.fingerprint() == dense.fingerprint()


def test_vector_leaves_keep_constraints_of_each_output():
    X, Y = make_rows(7, n=300, missing=0.0)
    Y = np.column_stack([Y[:, 0], -Y[:, 0] + Y[:, 1]])
    given = FEW | {"n_estimators": 20, "monotonic_cst": [[1, 0, 0, 0], [-1, 0, 0, 0]]}
    grid = np.repeat(X[:30], 20, axis=0)
    grid[:, 0] = np.tile(np.linspace(-3, 3, 20), 30)
    for loss in ("squared_error", "absolute_error"):
        model = spinney.GradientBoostingRegressor(loss, leaves="vector", **given).fit(X, Y)
        steps = np.diff(model.predict(grid).reshape(30, 20, 2), axis=1)
        assert (steps[..., 0] >= 0).all()
        assert (steps[..., 1] <= 0).all()


def test_leaves_have_rows_enough():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(400, 4)), rng.choice(3, p=[0.9, 0.07, 0.03], size=400)
    model = spinney.GradientBoostingClassifier(
        n_estimators=15, leaves="vector", learning_rate=1.0, min_samples_leaf=30, subsample=0.7, random_state=0
    ).fit(X, codes)
    assert all(tree.n_rows.min() >= 30 for tree in model.boosting_.trees())
    stopped = spinney.GradientBoostingClassifier(leaves="vector", effort=0.0).fit(X, codes)
    assert stopped.validation_score_[-1] < np.log(3)


def test_a_spread_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 3))
    y = 1e6 * (5 + X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=600))

    def make(**more):
        return spinney.GradientBoostingRegressor("normal", **FEW | {"n_estimators": 30, "learning_rate": 0.1} | more)

    model = same_everywhere(make, X, y)
    assert np.corrcoef(np.log(model.predict_std(X)), X[:, 1])[0, 1] > 0.9
    assert abs(np.mean(np.abs(y - model.predict(X)) < 1.645 * model.predict_std(X)) - 0.9) < 0.03
    doubt = model.predict_uncertainty(X[:50], 4)
    members = [list(model._staged_scores(X[:50], None))[n - 1] for n in (15, 20, 25, 30)]
    assert np.allclose(doubt.data, np.mean([np.exp(2 * one[:, 1]) for one in members], axis=0))
    assert np.allclose(doubt.knowledge, np.var([one[:, 0] for one in members], axis=0))
    names = model.shap_values(X[:3]).output_names
    assert names == ["mean", "log of the standard deviation"]
    with pytest.raises(AttributeError, match="loss='normal'"):
        spinney.GradientBoostingRegressor(n_estimators=2).fit(X, y).predict_std(X)
    constant = spinney.GradientBoostingRegressor("normal", n_estimators=60).fit(X, np.full(600, 3.0))
    assert np.isfinite(constant.predict_std(X)).all()
    with pytest.raises(ValueError, match="one output"):
        make().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="takes no initial estimator"):
        make(init=spinney.DecisionTreeRegressor(max_depth=2)).fit(X, y)
