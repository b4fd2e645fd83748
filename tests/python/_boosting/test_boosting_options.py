"""Rounds that drop others, rows by gradients, forced splits, weights of columns, values drawn together, refits."""

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle import boosting as reference
from oracle import boosting_rounds as slow
from oracle.saved import through_bytes

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 4))
X[::17, 2] = np.nan
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * RNG.normal(size=300)
THREE = np.digitize(Y, [0, 1.5])
SMALL = {"n_estimators": 8, "max_leaf_nodes": 5, "random_state": 0}
TOWNS = np.array(["a", "b", "c", "d"])[RNG.integers(4, size=300)]
MIXED = pd.DataFrame({"size": X[:, 0], "town": TOWNS, "age": X[:, 1]})
FORCED = {"feature": "x1", "threshold": 0.25, "left": {"feature": "x0", "threshold": -0.5}}


def values(**parameters):
    return spinney.GradientBoostingRegressor(**(SMALL | parameters))


@pytest.mark.parametrize(
    "parameters",
    [
        {"dart": 0.3},
        {"dart": {"rate": 0.5, "by": "weight", "skip": 0.2, "max_rounds": 2}, "subsample": 0.7},
        {"sampling": "goss"},
        {"sampling": {"top_rate": 0.4}, "subsample": 0.6, "growth": "symmetric"},
        {"growth": {"forced_splits": FORCED}},
        {"feature_sampling": {"weights": [1.0, 5.0, 0.0, 1.0]}, "max_features": 0.5},
        {"regularization": {"hierarchical_shrinkage": 30.0}},
        {"n_estimators": "auto", "n_iter_no_change": 3, "dart": 0.3, "growth": {"forced_splits": FORCED}},
    ],
    ids=str,
)
@pytest.mark.parametrize("y", [Y, THREE], ids=["values", "classes"])
def test_identical_models_for_any_threads_and_everything_reads_it(parameters, y):
    kind = spinney.GradientBoostingRegressor if y is Y else spinney.GradientBoostingClassifier
    models = [kind(**(SMALL | parameters), n_jobs=n).fit(X, y) for n in (1, 2, 4)]
    assert len({model.fingerprint() for model in models}) == 1
    model = models[0]
    assert model.fingerprint() != kind(**SMALL).fit(X, y).fingerprint()
    back = through_bytes(model)
    assert np.array_equal(back.predict(X), model.predict(X))
    assert back.__dict__.keys() >= {"n_dropped_"} & model.__dict__.keys()
    assert model.to_predictor().predict(X[3]) == model.predict(X[3:4])[0]
    shap = model.shap_values(X[:3])
    scores = model.predict(X[:3]) if y is Y else model.decision_function(X[:3])
    np.testing.assert_allclose(np.asarray(shap.values).sum(axis=1) + shap.base_values, scores)


# ---- rounds that drop others -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "drops", [{"rate": 0.4}, {"rate": 0.6, "skip": 0.3, "most": 2, "by_weight": True}], ids=["plain", "by weight"]
)
def test_rounds_drop_as_published(drops):
    rules = reference.Rules(max_leaves=5, min_rows=5)
    n_rounds, Z, y, names = 7, X[:70], Y[:70], {"rate": "rate", "skip": "skip", "most": "max_rounds"}
    given = {names[name]: value for name, value in drops.items() if name in names}
    by = "weight" if drops.get("by_weight") else "uniform"
    options = {
        "learning_rate": 0.8,
        "min_samples_leaf": 5,
        "init": "zero",
        "max_bins": 65535,
        "dart": {"by": by, **given},
    }
    model = values(n_estimators=n_rounds, **options).fit(Z, y)
    rest = {name: value for name, value in drops.items() if name != "rate"}
    stages, dropped = slow.dart(Z, y, n_rounds, drops["rate"], rules, model._seed, 0.8, **rest)
    assert model.n_dropped_.tolist() == [len(rounds) for rounds in dropped]
    np.testing.assert_allclose(model.predict(Z), stages[-1], atol=1e-4)
    losses = [np.mean((f - y) ** 2) for f in stages]
    np.testing.assert_allclose(model.train_score_, losses, rtol=1e-4)


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", lambda y, f: (y - f) ** 2], ids=["squares", "medians", "own"]
)
def test_early_stopping_keeps_the_model_as_it_was_after_its_best_round(loss):
    half = np.arange(300) % 2 == 0
    options = {"dart": 0.3, "learning_rate": 0.9, "n_estimators": 30, "loss": loss, "early_stopping": True}
    model = values(**options, n_iter_no_change=4).fit(X[half], Y[half], X_val=X[~half], y_val=Y[~half])
    assert model.n_iter_ < len(model.validation_score_)
    predicted = np.abs(model.predict(X[~half]) - Y[~half])
    found = predicted.mean() if loss == "absolute_error" else (predicted**2).mean()
    assert found == pytest.approx(model.validation_score_.min(), rel=1e-9)
    assert len(model.n_dropped_) == model.n_iter_


def test_several_sets_are_evaluated_with_current_rounds():
    sets = {"a": X[:100], "b": X[100:200]}, {"a": Y[:100], "b": Y[100:200]}
    model = values(dart=0.5).fit(X, Y, X_val=sets[0], y_val=sets[1])
    for name in ("a", "b"):
        error = np.mean((model.predict(sets[0][name]) - sets[1][name]) ** 2)
        assert float(np.asarray(model.history_[f"{name} loss"])[-1]) == pytest.approx(error)


def test_dropped_rounds_have_no_stages():
    with pytest.raises(ValueError, match="the model has no stages"):
        next(values(dart=0.2).fit(X, Y).staged_predict(X))


# ---- rows by their gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_goss_takes_the_largest_gradients_and_some_that_stand_for_the_others(loss):
    y = Y - Y.min() if loss == "poisson" else Y
    options = {"n_estimators": 1, "learning_rate": 1.0, "min_samples_leaf": 5, "init": "zero", "max_bins": 65535}
    options |= {"loss": loss, "sampling": {"top_rate": 0.2}, "subsample": 0.35, "regularization": {"max_step": None}}
    model = values(**options).fit(X, y)
    g, h = reference.gradients(loss, y, np.zeros(300))
    rows, factor = slow.goss_rows(g, 0.2, 0.35, model._seed, 0)
    assert len(rows) == 105
    tree = model.estimators_[0, 0].tree_
    assert tree.n_node_samples[0] == 105
    assert tree.weighted_n_node_samples[0] == pytest.approx(300)
    root = reference.grow(X, g * factor, h * factor, rows, reference.Rules(max_leaves=5, min_rows=5))
    wanted = slow.values_of(root, g * factor, h * factor, 1.0, reference.Rules(), 300)
    found = model._scores(X, None)[:, 0]
    np.testing.assert_allclose(found[rows], wanted[rows], rtol=1e-5, atol=1e-6)


def test_goss_draws_a_tenth_besides_the_largest_by_default():
    tree = values(sampling={"top_rate": 0.5}, n_estimators=1).fit(X, Y).estimators_[0, 0].tree_
    assert tree.n_node_samples[0] == 180
    assert not hasattr(values(sampling="goss").fit(X, Y), "oob_scores_")


# ---- forced splits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("growth", ["leaf", "depth"])
@pytest.mark.parametrize("max_bins", [4, 255, 1000])
def test_every_tree_begins_with_the_forced_splits(growth, max_bins):
    model = values(growth={"forced_splits": FORCED, "order": growth}, max_bins=max_bins).fit(X, Y)
    for tree in model.boosting_.trees():
        assert tree.feature[:2].tolist() == [1, 0]
        assert tree.threshold[:2].tolist() == [0.25, -0.5]
    first = model.estimators_[0, 0].tree_
    assert first.n_node_samples[1] == (X[:, 1] <= 0.25).sum()
    assert first.n_node_samples[2] == ((X[:, 1] <= 0.25) & (X[:, 0] <= -0.5)).sum()


def test_categories_dates_and_missing_values_are_forced_too():
    forced = {"feature": "town", "categories": ["c", "a"], "right": {"feature": "age", "threshold": 0}}
    tree = values(growth={"forced_splits": forced}).fit(MIXED, Y).estimators_[0, 0]
    assert "town in {a, c}" in spinney.export_text(tree)
    assert tree.tree_.n_node_samples[1] == np.isin(TOWNS, ["a", "c"]).sum()
    days = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=300), "x": X[:, 0]})
    model = values(growth={"forced_splits": {"feature": "day", "threshold": "2024-02-10"}}).fit(days, Y)
    assert model.estimators_[0, 0].tree_.n_node_samples[1] == 41
    missing = values(growth={"forced_splits": {"feature": 2, "threshold": 0.0}}, n_estimators=1).fit(X, Y)
    n_left = missing.estimators_[0, 0].tree_.n_node_samples[1]
    assert n_left in ((X[:, 2] <= 0).sum(), (X[:, 2] <= 0).sum() + np.isnan(X[:, 2]).sum())


def test_a_forced_split_that_gains_nothing_is_made_and_monotone_columns_stay_so():
    options = {"growth": {"forced_splits": {"feature": "x3", "threshold": 0.0}}, "monotonic_cst": {"x0": 1}}
    model = values(**options).fit(X, Y)
    assert (model.boosting_.engine.feature[model.boosting_.engine.root[:-1]] == 3).all()
    assert model.verify_constraints().holds


@pytest.mark.parametrize(
    ("forced", "message"),
    [
        ({"feature": "x9", "threshold": 0.0}, "x9"),
        ({"feature": "size"}, "either 'threshold' or 'categories'"),
        ({"feature": "size", "threshold": np.nan}, "must be a finite number"),
        ({"feature": "size", "threshold": 0.0, "middle": {}}, "a split has no key 'middle'"),
        ({"feature": "town", "threshold": 0.0}, "it holds categories. Give the 'categories'"),
        ({"feature": "size", "categories": ["a"]}, "it holds numbers. Give a 'threshold'"),
        ({"feature": "town", "categories": ["z"]}, "'z' does not occur"),
        ({"feature": "town", "categories": list("abcd")}, "some must go left and some right"),
        ({"feature": "size", "threshold": 99.0}, "'size' cannot be split at 99.0: fewer than min_samples_leaf rows"),
        ({"feature": "town", "categories": ["a"], "left": {"feature": "town", "categories": ["b"]}}, "cannot be split"),
    ],
    ids=str,
)
def test_forced_splits_that_are_wrong_or_impossible_are_refused(forced, message):
    with pytest.raises(ValueError, match=message):
        values(growth={"forced_splits": forced}).fit(MIXED, Y)


def test_forced_splits_need_room():
    for given, message in (({"max_depth": 1}, "2 deep"), ({"max_leaf_nodes": 2}, "make 3 leaves")):
        with pytest.raises(ValueError, match=message):
            values(growth={"forced_splits": FORCED}, **given).fit(X, Y)


# ---- columns, values ---------------------------------------------------------------------------------------


def test_columns_are_drawn_by_their_weights():
    Z = RNG.normal(size=(300, 4))
    y = Z.sum(axis=1)
    options = {"max_leaf_nodes": 2, "n_estimators": 300, "learning_rate": 1e-6}
    drawn = spinney.FeatureSampling(per_tree=0.25, weights={"x0": 6.0, "x1": 3.0, "x3": 0.0})
    model = values(**options, feature_sampling=drawn).fit(Z, y)
    feature = model.boosting_.engine.feature[model.boosting_.engine.root[:-1]]
    shares = np.bincount(feature, minlength=4) / 300
    np.testing.assert_allclose(shares, [0.6, 0.3, 0.1, 0.0], atol=0.08)


def test_values_are_drawn_to_those_of_their_ancestors():
    plain = values(n_estimators=1, learning_rate=1.0).fit(X, Y)
    drawn = values(n_estimators=1, learning_rate=1.0, regularization={"hierarchical_shrinkage": 40.0}).fit(X, Y)
    tree, found = plain.boosting_.trees()[0], drawn.boosting_.trees()[0]

    def shrunk(at, value):
        assert found.value[at] == pytest.approx(value, abs=1e-12)
        if tree.feature[at] >= 0:
            for child in (at + 1, int(tree.children_right()[at])):
                shrunk(child, value + (tree.value[child] - tree.value[at]) / (1 + 40.0 / tree.weight[at]))

    shrunk(0, tree.value[0])
    assert (
        values(regularization={"hierarchical_shrinkage": 40.0}, monotonic_cst={"x0": 1})
        .fit(X, Y)
        .verify_constraints()
        .holds
    )


# ---- leaves updated ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_refit_keeps_a_share_and_takes_the_rest_from_the_new_rows(loss):
    y = Y - Y.min() + 0.1 if loss == "poisson" else Y
    options = {"loss": loss, "learning_rate": 0.4, "l2_regularization": 2.0, "regularization": {"max_step": None}}
    model = values(**options).fit(X[:150], y[:150])
    new, target = X[150:], y[150:]
    found = model.refit(new, target, decay=0.7)
    trees = model.boosting_.trees()
    leaves = [tree.apply(model._columns(new), 1) for tree in trees]
    f = np.full(150, model.boosting_.start[0])
    wanted = slow.refit([tree.value for tree in trees], leaves, target, f, loss, 0.7, 0.4, 2.0)
    for tree, old, leaf, by_node in zip(found.boosting_.trees(), trees, leaves, wanted, strict=True):
        assert np.array_equal(tree.threshold, old.threshold)
        np.testing.assert_allclose(tree.value[leaf], by_node[leaf], rtol=1e-6, atol=1e-9)
        empty = np.setdiff1d(np.flatnonzero(old.feature < 0), leaf)
        assert np.array_equal(tree.value[empty], old.value[empty])
    assert through_bytes(found).refit(new, target).fingerprint() == found.refit(new, target).fingerprint()
    assert found.n_iter_ == len(found.train_score_) == model.n_iter_


def test_refit_of_all_of_it_by_the_same_rows_changes_nothing_and_of_others_follows_them():
    for y, kind in ((Y, spinney.GradientBoostingRegressor), (THREE, spinney.GradientBoostingClassifier)):
        model = kind(**SMALL).fit(X, y)
        again = model.refit(X, y, decay=0.0)
        scores = [m._scores(X, None) for m in (model, again)]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)
        np.testing.assert_allclose(again.train_score_, model.train_score_, atol=1e-6)
        assert model.refit(X, y, decay=1.0).fingerprint() == model.fingerprint()
        assert {m.refit(X[:90], y[:90]).fingerprint() for m in (model, model.set_params(n_jobs=4))}.__len__() == 1
    shifted = values().fit(X, Y).refit(X, Y + 5.0, decay=0.0)
    assert np.mean(Y + 5.0 - shifted.predict(X)) < 3.0


def test_refit_of_monotone_models_own_losses_and_medians():
    model = values(monotonic_cst={"x0": 1}).fit(X, Y).refit(X[:40], -Y[:40], decay=0.2)
    assert model.verify_constraints().holds
    for loss in ("absolute_error", lambda y, f: (y - f) ** 2 / 2):
        fitted = values(loss=loss).fit(X, Y)
        np.testing.assert_allclose(fitted.refit(X, Y, decay=0.0).predict(X), fitted.predict(X), atol=1e-5)
    together = values(growth={"n_parallel_trees": 2}, subsample=0.5).fit(X, Y)
    assert together.refit(X, Y).n_iter_ == together.n_iter_


def test_refit_refusals():
    model = values().fit(X, Y)
    with pytest.raises(ValueError, match="decay must be a number from 0 to 1"):
        model.refit(X, Y, decay=2)
    with pytest.raises(ValueError, match="y"):
        spinney.GradientBoostingClassifier(**SMALL).fit(X, THREE).refit(X, THREE + 5)
    for other in ({"dart": 0.2}, {"n_estimators": "auto", "n_iter_no_change": 2}):
        with pytest.raises(ValueError, match="a model with one learning rate"):
            values(**other).fit(X, Y).refit(X, Y)


# ---- what does not go together -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sampling": "goss", "loss": "absolute_error"}, "not informative for loss='absolute_error'"),
        ({"sampling": "goss", "subsample": 0.1}, "Make subsample larger than top_rate"),
        ({"sampling": "goss", "growth": {"n_parallel_trees": 2}}, "n_parallel_trees needs rows drawn uniformly"),
        ({"dart": 0.1, "warm_start": True}, "changes the values of these"),
        ({"dart": 0.1, "growth": {"n_parallel_trees": 2}}, "dart does not support n_parallel_trees"),
        ({"dart": {"rate": 0, "skip": 0.1}}, "its rate=0 drops none"),
        ({"growth": {"forced_splits": FORCED, "order": "symmetric"}}, "does not support symmetric growth"),
        ({"growth": {"forced_splits": FORCED}, "interaction_cst": "pairwise"}, "does not support interaction_cst"),
        ({"feature_sampling": {"weights": [1, 2, 3, 4]}}, "and all columns are used"),
        ({"alpha": 0.3}, r"\(or alpha\) is for loss=.* and loss='squared_error' does not use it"),
        ({"alpha": 0.9, "loss": "poisson"}, r"quantile \(or alpha\) is for loss='quantile'"),
        ({"quantile": [0.1, 0.9]}, "and loss='expectile', and loss='squared_error' does not use it"),
        ({"quantile": 0.3, "loss": "huber"}, "quantile is for loss='quantile' and loss='expectile', and loss='huber'"),
        ({"huber_share": 0.4, "loss": "quantile"}, "huber_share is for loss='huber' and loss='log_cosh'"),
        ({"tweedie_power": 1.2, "loss": "poisson"}, "tweedie_power is for loss='tweedie'"),
    ],
    ids=str,
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        values(**parameters).fit(X, np.abs(Y))


def test_classes_times_and_own_losses_refuse_parameters_that_they_do_not_read():
    with pytest.raises(ValueError, match="and a custom loss does not use it"):
        values(tweedie_power=1.2, loss=lambda y, f: (y - f) ** 2).fit(X, Y)
    with pytest.raises(ValueError, match="focal_gamma is for loss='focal', and loss='log_loss' does not use it"):
        spinney.GradientBoostingClassifier(focal_gamma=1.0).fit(X, Y > 0)
    for name, value in (("scale", 2.0), ("distribution", "logistic")):
        with pytest.raises(ValueError, match=f"{name} is for loss='aft', and loss='cox' does not use it"):
            spinney.GradientBoostingSurvival(**{name: value}).fit(X, np.exp(Y))
    with pytest.raises(ValueError, match="ties is for loss='cox'"):
        spinney.GradientBoostingSurvival("aft", ties="efron").fit(X, np.exp(Y))


def test_a_parameter_at_its_default_is_refused_by_no_loss():
    defaults = {"quantile": 0.5, "huber_share": 0.9, "tweedie_power": 1.5}
    for traits in spinney._engine.boosting_losses():
        if not traits.of_classes and traits.n_scores == 1:
            loss = traits.name
            model = values(loss=loss, n_estimators=1).fit(X, np.abs(Y) + 0.1)
            named = values(loss=loss, **defaults, n_estimators=1).fit(X, np.abs(Y) + 0.1)
            assert named.fingerprint() == model.fingerprint()
    for loss in ("huber", "log_cosh", "quantile", "expectile"):
        assert values(loss=loss, alpha=0.3, n_estimators=1).fit(X, Y).alpha == 0.3


# ---- rankers and times ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"dart": 0.4},
        {"sampling": {"top_rate": 0.3}, "subsample": 0.6},
        {"sampling": "gradient", "subsample": 0.5},
        {"growth": {"forced_splits": FORCED}},
        {"feature_sampling": {"weights": [1.0, 5.0, 0.0, 1.0]}, "max_features": 0.5},
        {"feature_costs": [9.0, 1.0, 1.0, 1.0]},
        {"linear_leaves": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [spinney.GradientBoostingRanker, spinney.GradientBoostingSurvival])
def test_rankers_and_times_are_grown_and_drawn_otherwise_too(kind, parameters):
    is_ranker = kind is spinney.GradientBoostingRanker
    y = THREE if is_ranker else np.exp(Y) * np.where(np.arange(300) % 3, 1, -1)
    lists = {"groups": np.arange(300) % 20} if is_ranker else {}
    given = SMALL | {"n_estimators": 4} | parameters
    models = [kind(**given, n_jobs=n).fit(X, y, **lists) for n in (1, 3)]
    assert models[0].fingerprint() == models[1].fingerprint()
    plain = kind(**SMALL | {"n_estimators": 4}).fit(X, y, **lists)
    assert models[0].fingerprint() != plain.fingerprint()
    assert np.array_equal(through_bytes(models[0]).predict(X), models[0].predict(X))
    if "forced_splits" in parameters.get("growth", {}):
        assert {int(tree.feature[0]) for tree in models[0].boosting_.trees()} == {1}


def test_times_refuse_what_does_not_go_together():
    with pytest.raises(ValueError, match="top_rate"):
        spinney.GradientBoostingSurvival(sampling="goss", subsample=0.1).fit(X, np.exp(Y))
    with pytest.raises(ValueError, match="monotonic_cst"):
        spinney.GradientBoostingRanker(linear_leaves=True, monotonic_cst=[1, 0, 0, 0]).fit(
            X, THREE, groups=np.arange(300) % 20
        )


def test_a_subclass_may_take_other_parameters():
    class Upper(spinney.GradientBoostingRegressor):
        def __init__(self, level=0.9):
            super().__init__("quantile", quantile=level, n_estimators=3)
            self.level = level

    X = np.arange(60.0)[:, np.newaxis]
    assert Upper().fit(X, X[:, 0]).predict(X[:1]).shape == (1,)
