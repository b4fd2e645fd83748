"""Several numbers per row: quantiles that never cross, several outputs, costs and priors."""

import io

import numpy as np
import pytest
import spinney
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.boosting import losses
from sklearn.metrics import d2_pinball_score

LEVELS = [0.05, 0.5, 0.95]
FEW = {"n_estimators": 6, "max_leaf_nodes": 5, "min_samples_leaf": 3, "learning_rate": 0.4}


def make_rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    known = np.nan_to_num(X)
    y = known[:, 0] + np.abs(known[:, 1]) * rng.normal(size=n)
    return X, y, np.column_stack([y, 1000 * known[:, 2] ** 2 + 100 * rng.normal(size=n)])


def labels_of(Y):
    return np.column_stack([np.where(Y[:, 0] > 0, "b", "a"), np.digitize(Y[:, 1], [300, 1500]).astype(str)])


def quantiles(**given):
    return spinney.GradientBoostingRegressor("quantile", quantile=LEVELS, **FEW | given)


def same_after(model, X):
    """What a file, a handle and another number of threads make of a model is the same."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = spinney.load(file)
    file.seek(0)
    predictor = spinney.load_predictor(file)
    wanted = model.predict(X)
    assert np.array_equal(loaded.predict(X), wanted)
    assert np.array_equal(predictor.predict(X), wanted)
    assert loaded.fingerprint() == model.fingerprint()
    assert loaded.n_outputs_ == model.n_outputs_
    handle = loaded.to_predictor()
    assert all(np.array_equal(handle.predict(row), one) for row, one in zip(X[:20], wanted, strict=False))
    return loaded


# ---- quantiles ----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    levels=st.lists(st.floats(0.01, 0.99), min_size=2, max_size=5, unique=True),
    rate=st.floats(0.05, 1.0),
    weighted=st.booleans(),
)
def test_quantiles_never_cross(seed, levels, rate, weighted):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.standard_t(2, size=40)
    weight = rng.integers(0, 3, size=40) + (np.arange(40) < 20) if weighted else None
    model = spinney.GradientBoostingRegressor("quantile", quantile=sorted(levels), **FEW | {"learning_rate": rate})
    model.fit(X, y, weight)
    anywhere = np.where(rng.random((200, 3)) < 0.1, np.nan, rng.normal(scale=5, size=(200, 3)))
    predicted = model.predict(anywhere, offset=rng.normal(size=(200, len(levels))))
    assert predicted.shape == (200, len(levels))
    assert (np.diff(predicted, axis=1) >= 0).all()
    assert all((np.diff(one, axis=1) >= 0).all() for one in model.staged_predict(anywhere))


def test_to_put_quantiles_in_order_never_raises_their_loss():
    rng = np.random.default_rng(0)
    y, scores = rng.normal(size=500), rng.normal(size=(500, 3))

    def total(predicted):
        return sum(losses("quantile", y, predicted[:, k], level) for k, level in enumerate(LEVELS))

    assert (total(np.sort(scores, axis=1)) <= total(scores) + 1e-12).all()


def test_quantiles_are_what_models_of_each_find():
    X, y, _ = make_rows(400)
    together = quantiles(n_estimators=30, learning_rate=0.1).fit(X, y)
    for k, level in enumerate(LEVELS):
        alone = spinney.GradientBoostingRegressor(
            "quantile", quantile=level, **FEW | {"n_estimators": 30, "learning_rate": 0.1}
        )
        share = np.mean(y <= together.predict(X)[:, k])
        assert abs(share - np.mean(y <= alone.fit(X, y).predict(X))) < 0.03
        assert together.boosting_.start[k] == alone.boosting_.start[0]
    assert (
        abs(
            together.train_score_[0]
            - np.mean(
                [
                    losses("quantile", y, one, q).mean()
                    for one, q in zip(next(iter(together.staged_predict(X))).T, LEVELS, strict=True)
                ]
            )
        )
        < 1e-9
    )


def test_quantiles_are_kept_explained_and_read():
    X, y, _ = make_rows()
    model = quantiles().fit(X, y)
    assert same_after(model, X).quantile == LEVELS
    assert quantiles(n_jobs=1).fit(X, y).fingerprint() == quantiles(n_jobs=2).fit(X, y).fingerprint()
    explained = model.shap_values(X[:10])
    assert explained.output_names == LEVELS
    raw = model.boosting_.scores(model._columns(X[:10]), 1)
    assert np.allclose(explained.predictions, raw)
    assert np.array_equal(np.sort(raw, axis=1), model.predict(X[:10]))
    assert model.apply(X).shape == (150, 6, 3)
    assert model.estimators_.shape == (6, 3)
    assert "quantile 0.95" in model._title_of_tree(2)
    assert model.importances(X, y, "permutation").importance.shape == (4,)


def test_quantiles_are_scored_by_their_losses():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    constant, learned = (
        spinney.GradientBoostingRegressor(loss="quantile", quantile=[0.2, 0.8], n_estimators=n).fit(X, y)
        for n in (1, 30)
    )
    wanted = [d2_pinball_score(y, learned.predict(X)[:, k], alpha=level) for k, level in enumerate((0.2, 0.8))]
    assert learned.score(X, y) == pytest.approx(np.mean(wanted))
    assert 0 < constant.score(X, y) < learned.score(X, y) < 1


def test_quantiles_that_rise_with_a_column_do_so_in_order():
    X, y, _ = make_rows(300)
    model = quantiles(n_estimators=20, monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    grid = np.repeat(X[:30], 20, axis=0)
    grid[:, 0] = np.tile(np.linspace(-3, 3, 20), 30)
    assert (np.diff(model.predict(grid).reshape(30, 20, 3), axis=1) >= 0).all()


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([0.5, 0.1], "ascending"),
        ([0.5, 0.5], "different"),
        ([0.0, 0.5], "between 0 and 1"),
        ([], "no number"),
    ],
)
def test_quantiles_refused(levels, message):
    X, y, Y = make_rows()
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingRegressor("quantile", quantile=levels, n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="several outputs"):
        quantiles().fit(X, Y)


def test_quantiles_stop_early_start_anywhere_and_go_on():
    X, y, _ = make_rows()
    stopped = quantiles(early_stopping=True, n_estimators=50, random_state=0).fit(X, y)
    assert stopped.predict(X).shape == (150, 3)
    assert len(stopped.validation_score_) >= stopped.n_iter_
    auto = spinney.GradientBoostingRegressor("quantile", quantile=LEVELS, effort=0.0).fit(X, y)
    assert (np.diff(auto.predict(X), axis=1) >= 0).all()
    filled = np.nan_to_num(X)
    first = quantiles(init=spinney.DecisionTreeRegressor(max_depth=2)).fit(filled, y)
    assert first.predict(filled).shape == (150, 3)
    longer = quantiles(warm_start=True).fit(X, y)
    longer.set_params(n_estimators=9).fit(X, y)
    assert longer.fingerprint() == quantiles(n_estimators=9).fit(X, y).fingerprint()
    with pytest.raises(ValueError, match="outputs of the earlier fit"):
        longer.set_params(quantile=[0.1, 0.9]).fit(X, y)


# ---- outputs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "poisson"])
def test_outputs_are_what_models_of_each_find(loss):
    X, _, Y = make_rows(300)
    Y = np.exp(Y / Y.std(axis=0)) if loss == "poisson" else Y
    model = spinney.GradientBoostingRegressor(loss, **FEW).fit(X, Y)
    predicted = model.predict(X)
    for k in range(2):
        alone = spinney.GradientBoostingRegressor(loss, **FEW).fit(X, Y[:, k]).predict(X)
        assert (
            np.corrcoef(predicted[:, k], alone)[0, 1] > 0.99
        )  # gradients are rounded by chance, another for each tree
    same_after(model, X)
    assert model.n_outputs_ == 2
    assert model.score(X, Y) > 0.2
    explained = model.shap_values(X[:5])
    assert np.allclose(explained.predictions, model.boosting_.scores(model._columns(X[:5]), 1))


def test_outputs_count_alike_in_any_units():
    X, _, Y = make_rows()
    curves = [spinney.GradientBoostingRegressor(**FEW).fit(X, Y * [1, unit]).train_score_ for unit in (1, 2.0**20)]
    assert np.allclose(*curves)


def test_labels_of_several_columns():
    X, _, Y = make_rows(300)
    labels = labels_of(Y)
    model = spinney.GradientBoostingClassifier(**FEW).fit(X, labels)
    same_after(model, X)
    predicted, shares = model.predict(X), model.predict_proba(X)
    assert (predicted == labels).mean() > 0.8
    assert [one.shape[1] for one in shares] == [2, 3]
    for k, one in enumerate(shares):
        assert np.allclose(one.sum(axis=1), 1)
        assert np.array_equal(model.classes_[k][one.argmax(axis=1)], predicted[:, k])
        alone = spinney.GradientBoostingClassifier(**FEW).fit(X, labels[:, k]).predict_proba(X)
        assert np.abs(one - alone).mean() < 0.05
    handle = model.to_predictor()
    assert all(np.array_equal(a, b[0]) for a, b in zip(handle.predict_proba(X[0]), shares, strict=True))
    two, three = model.shap_values(X[:5])
    assert two.values.shape == (5, 4)
    assert three.values.shape == (5, 4, 3)
    assert np.allclose(1 / (1 + np.exp(-two.predictions)), shares[0][:5, 1])
    early = spinney.GradientBoostingClassifier(effort=0.0).fit(X, labels)
    assert early.predict(X).shape == labels.shape
    with pytest.raises(ValueError, match="class_weight is for one output"):
        spinney.GradientBoostingClassifier(class_weight="balanced", **FEW).fit(X, labels)
    with pytest.raises(ValueError, match="Column 1 of y has only one class"):
        spinney.GradientBoostingClassifier(**FEW).fit(X, np.column_stack([labels[:, 0], ["x"] * 300]))


def test_outputs_have_separate_constraints():
    X, _, Y = make_rows(300)
    X, Y = np.nan_to_num(X), np.column_stack([Y[:, 0], -Y[:, 0]])
    directions = [[1, 0, 0, 0], [-1, 0, 0, 0]]
    model = spinney.GradientBoostingRegressor(monotonic_cst=directions, **FEW | {"n_estimators": 20}).fit(X, Y)
    grid = np.repeat(X[:30], 20, axis=0)
    grid[:, 0] = np.tile(np.linspace(-3, 3, 20), 30)
    steps = np.diff(model.predict(grid).reshape(30, 20, 2), axis=1)
    assert (steps[..., 0] >= 0).all()
    assert (steps[..., 1] <= 0).all()
    with pytest.raises(ValueError, match="has 3 rows, and the model 2 outputs"):
        spinney.GradientBoostingRegressor(monotonic_cst=[[0] * 4] * 3, **FEW).fit(X, Y)


# ---- costs and priors ---------------------------------------------------------------------------------------


def test_costs_decide_and_leave_probabilities_alone():
    X, y, _ = make_rows(300)
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [-0.5, 1])]
    cost = np.array([[0, 1, 2], [1, 0, 1], [20, 10, 0]])
    plain = spinney.GradientBoostingClassifier(**FEW).fit(X, labels)
    model = spinney.GradientBoostingClassifier(cost_matrix=cost, **FEW).fit(X, labels)
    shares = model.predict_proba(X)
    assert np.array_equal(shares, plain.predict_proba(X))
    assert model.fingerprint() != plain.fingerprint()
    assert np.array_equal(model.predict(X), model.classes_[(shares @ cost).argmin(axis=1)])
    paid = [
        cost[model.classes_.searchsorted(labels), model.classes_.searchsorted(one.predict(X))].sum()
        for one in (model, plain)
    ]
    assert paid[0] < paid[1]
    assert np.array_equal(model.cost_matrix_, cost)
    assert same_after(model, X).priors_ is None
    two = spinney.GradientBoostingClassifier(cost_matrix={"a": {"b": 1}, "b": {"a": 9}}, **FEW).fit(
        X, labels_of(np.column_stack([y, y]))[:, 0]
    )
    assert np.array_equal(two.predict(X) == "b", 9 * two.predict_proba(X)[:, 1] > two.predict_proba(X)[:, 0])


def test_priors_are_the_shares_that_rows_have():
    X, y, _ = make_rows(300)
    labels, weight = np.where(y > 0.5, "b", "a"), np.where(y > 0.5, 0.3, 0.7) * 300
    weight = np.where(labels == "b", 0.3, 0.7) / np.array([np.mean(labels == one) for one in labels])
    by_priors = spinney.GradientBoostingClassifier(priors={"a": 0.7, "b": 0.3}, **FEW).fit(X, labels)
    by_weights = spinney.GradientBoostingClassifier(**FEW).fit(X, labels, weight)
    assert np.allclose(by_priors.predict_proba(X), by_weights.predict_proba(X), atol=1e-6)
    assert np.isclose(by_priors.boosting_.start[0], np.log(0.3 / 0.7))
    assert np.allclose(same_after(by_priors, X).priors_, [0.7, 0.3])
    with pytest.raises(ValueError, match="both reweight"):
        spinney.GradientBoostingClassifier(priors=[0.5, 0.5], class_weight="balanced").fit(X, labels)
    with pytest.raises(ValueError, match="are for one output"):
        spinney.GradientBoostingClassifier(priors=[0.5, 0.5]).fit(X, np.column_stack([labels, labels]))
