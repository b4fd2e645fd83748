"""Forests: their trees, what they predict, samples, weights, files."""

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.check import check_tree
from oracle.models import assert_identical
from oracle.saved import bytes_of, through_bytes
from oracle.tree_keys import like_tree_of
from processes import run
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from spinney._data import reproducible
from spinney._estimator.rows import relative_weights
from spinney._forest.samples import _stable_order
from sweep import examples

KINDS = [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor]
CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier]


def table(n=120, n_columns=4, seed=0, decimals=1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_columns)).round(decimals)
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n) / 2, [-0.5, 0.7])


def mixed(n=90, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": random.normal(size=n).round(2), "b": random.choice(["u", "v", "w"], size=n)})
    frame["c"] = random.integers(0, 9, size=n).astype(float)
    frame.loc[random.random(n) < 0.2, "c"] = np.nan
    return frame, (frame["a"] + (frame["b"] == "u") + frame["c"].fillna(0) / 4 > 1).astype(int).to_numpy()


def small(kind, **parameters):
    return kind(**({"n_estimators": 8, "random_state": 3} | parameters))


# ---- the trees --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"max_depth": 3}, {"min_samples_leaf": 4}, {"max_leaf_nodes": 9}])
@pytest.mark.parametrize("replace", [True, False])
def test_a_tree_on_all_columns_is_the_tree_of_its_sample(replace, parameters):
    X, y = table()
    forest = small(RandomForestClassifier, max_features=None, replace=replace, **parameters).fit(X, y)
    seen = set()
    for t, grown in enumerate(forest.estimators_):
        counts = forest._draws.counts(t).astype(float)
        alone = like_tree_of(forest, t, spinney.DecisionTreeClassifier, **parameters).fit(X, y, counts)
        assert bytes_of_tree(grown.tree_) == bytes_of_tree(alone.tree_)
        seen.add(bytes_of_tree(grown.tree_))
    assert len(seen) > 6  # the samples differ


def bytes_of_tree(tree):
    engine = tree.engine
    arrays = (engine.feature, engine.threshold, engine.value, engine.impurity, engine.weight, engine.n_rows)
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)


@pytest.mark.parametrize(
    ("kind", "search"),
    list(zip(KINDS, ["column", "column", "any", "any"], strict=True)),
)
def test_every_node_of_every_tree_follows_from_its_rows(kind, search):
    X, y = table()
    y = y.astype(float) + X[:, 1] if "Regressor" in kind.__name__ else y
    forest = small(kind, bootstrap=True, max_features=2, n_estimators=2, shrinkage=None).fit(X, y)
    for t, tree in enumerate(forest.estimators_):
        counts = np.bincount(forest.estimators_samples_[t], minlength=len(X))
        assert tree.tree_.weighted_n_node_samples[0] == len(X) == counts.sum()
        check_tree(tree, X, y, counts, search=search)


def test_extra_trees_see_all_rows_and_differ():
    X, y = table()
    forest = small(ExtraTreesClassifier).fit(X, y)
    assert {int(tree.tree_.n_node_samples[0]) for tree in forest} == {len(X)}
    assert len({bytes_of_tree(tree.tree_) for tree in forest}) == 8
    for rows in forest.estimators_samples_:
        np.testing.assert_array_equal(rows, np.arange(len(X)))


def test_a_tree_uses_no_more_columns_than_it_may():
    X, y = table(n_columns=7, decimals=3)
    forest = small(RandomForestClassifier, max_features_per_tree=3, max_features=2).fit(X, y)
    used = [set(tree.tree_.feature[tree.tree_.feature >= 0]) for tree in forest]
    assert max(map(len, used)) == 3
    assert set.union(*used) == set(range(7))


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_a_bin_for_every_value_gives_the_exact_forest(kind, missing):
    X, y = table(n=300)
    X[np.random.default_rng(1).random(X.shape) < missing] = np.nan
    exact = kind(n_estimators=6, max_features=2, random_state=0, bootstrap=False).fit(X, y)
    binned = clone(exact).set_params(max_bins=300).fit(X, y)
    for first, second in zip(exact.estimators_, binned.estimators_, strict=True):
        assert_identical(first, second)


@pytest.mark.parametrize("parameters", [{}, {"max_bins": 8}, {"feature_costs": [1.0, 1.0, 1.0]}, {"max_leaf_nodes": 9}])
@pytest.mark.parametrize("max_features", [2, None])
def test_of_equally_good_columns_none_is_preferred(max_features, parameters):
    X = np.repeat(table(n=200)[0][:, :1], 3, axis=1)
    y = np.random.default_rng(0).integers(0, 3, size=200)
    forest = RandomForestClassifier(n_estimators=40, max_features=max_features, random_state=0, **parameters).fit(X, y)
    roots = np.bincount([tree.tree_.feature[0] for tree in forest.estimators_], minlength=3)
    assert roots.min() >= 5


def test_the_trees_are_estimators_with_the_forests_labels():
    X, y = mixed()
    forest = small(RandomForestClassifier, max_depth=3).fit(X, np.array(["no", "yes"])[y])
    first, last = forest.estimators_[0], forest[-1]
    assert isinstance(first, spinney.DecisionTreeClassifier)
    assert first.max_depth == 3
    assert first.get_depth() <= 3
    assert set(first.predict(X)) == {"no", "yes"}
    assert list(first.feature_names_in_) == ["a", "b", "c"]
    assert len(spinney.export_text(last).splitlines()) >= last.get_n_leaves()
    assert len(forest.estimators_) == len(forest) == 8
    assert len(forest.estimators_[2:5]) == 3
    with pytest.raises(IndexError):
        forest.estimators_[8]
    assert isinstance(small(ExtraTreesRegressor).fit(X, y)[0], spinney.ExtraTreeRegressor)


# ---- predictions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_shares_are_the_mean_over_the_trees(kind):
    X, y = table()
    forest = small(kind, max_depth=4).fit(X, y)
    mean = np.mean([tree.predict_proba(X) for tree in forest], axis=0)
    np.testing.assert_allclose(forest.predict_proba(X), mean, rtol=1e-13)
    np.testing.assert_array_equal(forest.predict(X), forest.classes_[forest.predict_proba(X).argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(forest.predict_log_proba(X), reproducible.log(forest.predict_proba(X)))


def test_values_are_the_mean_over_the_trees_with_several_outputs():
    X, y = table()
    Y = np.column_stack([y, X[:, 0] - y])
    forest = small(RandomForestRegressor, max_depth=4).fit(X, Y)
    np.testing.assert_allclose(forest.predict(X), np.mean([t.predict(X) for t in forest], axis=0), rtol=1e-12)
    one = small(RandomForestRegressor, max_depth=4).fit(X, y)
    assert one.predict(X).shape == (len(X),)


def test_several_outputs_of_classes():
    X, y = table()
    Y = np.column_stack([y, np.where(X[:, 1] > 0, 7, 5)])
    forest = small(RandomForestClassifier).fit(X, Y)
    shares = forest.predict_proba(X)
    assert [s.shape[1] for s in shares] == [3, 2] == list(forest.n_classes_)
    assert (forest.predict(X) == Y).mean() > 0.9
    row = forest.to_predictor()
    np.testing.assert_array_equal(row.predict(X[0]), forest.predict(X[:1])[0])
    np.testing.assert_array_equal(row.predict_proba(X[0])[1], shares[1][0])


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_and_paths_are_those_of_the_trees(kind):
    X, y = mixed()
    forest = small(kind, n_estimators=3).fit(X, y)
    leaves = forest.apply(X)
    path, ends = forest.decision_path(X)
    assert leaves.shape == (len(X), 3)
    for t, tree in enumerate(forest):
        np.testing.assert_array_equal(leaves[:, t], tree.apply(X))
        own = path.toarray()[:, ends[t] : ends[t + 1]]
        np.testing.assert_array_equal(own, tree.decision_path(X).toarray())


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_single_rows_are_bit_identical(kind):
    X, y = mixed()
    forest = small(kind).fit(X, y)
    handle = forest.to_predictor()
    expected = forest.predict(X)
    for i, row in enumerate(X.to_dict("records")[:20]):
        assert handle.predict(row) == handle.predict(list(row.values())) == expected[i]
        if kind in CLASSIFIERS:
            assert handle.predict_proba(row).tobytes() == forest.predict_proba(X[i : i + 1])[0].tobytes()
    if kind not in CLASSIFIERS:
        with pytest.raises(AttributeError, match="no class probabilities"):
            handle.predict_proba(list(X.iloc[0]))


def test_importances_are_the_mean_of_the_trees_as_shares():
    X, y = table()
    forest = small(RandomForestClassifier).fit(X, y)
    mean = np.mean([tree.feature_importances_ for tree in forest], axis=0)
    np.testing.assert_allclose(forest.feature_importances_, mean / mean.sum(), rtol=1e-12)
    assert forest.feature_importances_.sum() == pytest.approx(1)
    constant = small(RandomForestRegressor).fit(X, np.ones(len(X)))
    np.testing.assert_array_equal(constant.feature_importances_, np.zeros(4))


def test_costs_decide_the_class():
    X, y = load_breast_cancer(return_X_y=True)
    plain = small(RandomForestClassifier, n_estimators=20, min_samples_leaf=20).fit(X, y)
    dear = clone(plain).set_params(cost_matrix=[[0, 20], [1, 0]]).fit(X, y)
    assert (dear.predict(X) == 0).sum() > (plain.predict(X) == 0).sum()
    expected = dear.predict_proba(X) @ np.array([[0, 20.0], [1, 0]])
    np.testing.assert_array_equal(dear.predict(X), expected.argmin(axis=1))
    handle = dear.to_predictor()
    assert [handle.predict(row) for row in X] == dear.predict(X).tolist()
    assert (dear.predict(X) != dear.predict_proba(X).argmax(axis=1)).any()
    assert through_bytes(dear).predict(X).tobytes() == dear.predict(X).tobytes()


def test_priors_shift_the_shares():
    X, y = table()
    shares = [
        small(RandomForestClassifier, min_samples_leaf=10, priors=priors).fit(X, y).predict_proba(X).mean(axis=0)
        for priors in ([0.8, 0.1, 0.1], [0.1, 0.1, 0.8])
    ]
    assert shares[0][0] > 0.6
    assert shares[1][2] > 0.6


def test_pruning_and_shrinkage_are_done_to_each_tree():
    X, y = load_diabetes(return_X_y=True)
    plain = small(RandomForestRegressor).fit(X, y)
    pruned = clone(plain).set_params(ccp_alpha=30.0).fit(X, y)
    shrunk = clone(plain).set_params(shrinkage=20.0).fit(X, y)
    for a, b, c in zip(plain, pruned, shrunk, strict=True):
        assert bytes_of_tree(a.pruned(alpha=30.0).tree_) == bytes_of_tree(b.tree_)
        assert bytes_of_tree(spinney.shrink_tree(a, 20.0).tree_) == bytes_of_tree(c.tree_)
    assert pruned.forest_.node_count < plain.forest_.node_count


def test_constraints_hold_for_the_forest():
    X, y = load_diabetes(return_X_y=True)
    forest = small(RandomForestRegressor, monotonic_cst=[0, 0, 1, 0, 0, 0, 0, 0, -1, 0]).fit(X, y)
    rows = np.repeat(X[:40], 15, axis=0)
    for column, sign in ((2, 1), (8, -1)):
        changed = rows.copy()
        changed[:, column] = np.tile(np.linspace(X[:, column].min(), X[:, column].max(), 15), 40)
        assert (sign * np.diff(forest.predict(changed).reshape(40, 15), axis=1) >= -1e-9).all()
    single = small(RandomForestRegressor, interaction_cst="no_interactions").fit(X, y)
    for tree in single:
        assert all(len({i for i, _ in path}) <= 1 for path in paths(tree.tree_))


def paths(tree, node=0, above=()):
    if tree.children_left[node] == -1:
        return [above]
    below = (*above, (int(tree.feature[node]), node))
    return paths(tree, node + 1, below) + paths(tree, int(tree.children_right[node]), below)


@pytest.mark.parametrize("criterion", ["squared_error", "friedman_mse", "absolute_error", "poisson"])
@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_every_criterion_of_values(kind, criterion):
    X, y = table(60)
    y = np.where(y == 2, y, 0.0)  # samples without an event occur
    forest = small(kind, criterion=criterion, bootstrap=True, max_samples=5, max_features=2).fit(X, y)
    for t, tree in enumerate(forest):
        counts = np.bincount(forest.estimators_samples_[t], minlength=len(X)).astype(float)
        alone = spinney.DecisionTreeRegressor(max_depth=1).fit(X, y, counts)
        if criterion != "absolute_error":
            assert tree.tree_.value[0, 0, 0] == pytest.approx(alone.tree_.value[0, 0, 0])
    assert np.isfinite(forest.predict(X)).all()


@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio"])
def test_every_criterion_of_classes(criterion):
    X, y = table()
    forest = small(RandomForestClassifier, criterion=criterion, max_features=None).fit(X, y)
    for t, tree in enumerate(forest):
        alone = like_tree_of(forest, t, spinney.DecisionTreeClassifier, criterion=criterion)
        alone.fit(X, y, forest._draws.counts(t))
        assert bytes_of_tree(tree.tree_) == bytes_of_tree(alone.tree_)


def test_a_criterion_of_ones_own():
    class Squares:
        def evaluate(self, y, weight):
            mean = np.average(y, weights=weight)
            return mean, float(np.sum(weight * (y - mean) ** 2))

        def split(self, y, weight, x, is_category):
            left = np.cumsum(weight)[:-1]
            total, all_weight = np.sum(weight * y), np.sum(weight)
            s = np.cumsum(weight * y)[:-1]
            return s**2 / left + (total - s) ** 2 / (all_weight - left) - total**2 / all_weight

    X, y = table(60)
    ours = small(RandomForestRegressor, n_estimators=3, max_depth=3, criterion=Squares()).fit(X, y)
    known = small(RandomForestRegressor, n_estimators=3, max_depth=3).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), known.predict(X))


# ---- the same forest --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_for_any_number_of_threads_and_any_turns(kind, capsys):
    X, y = mixed(200)
    files = set()
    for n_jobs in (1, 2, 7):
        forest = small(kind, n_estimators=15, n_jobs=n_jobs).fit(X, y)
        files.add(bytes_of(forest.set_params(n_jobs=None)))
    spoken = small(kind, n_estimators=15, verbose=1).fit(X, y)  # in turns as time allows
    assert "15 of 15 trees" in capsys.readouterr().err
    files.add(bytes_of(spoken.set_params(verbose=None)))
    assert len(files) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_trees_for_every_frame_library(kind):
    X, y = mixed()
    forests = [
        small(kind).fit(frame, y) for frame in (X, pl.from_pandas(X), pa.Table.from_pandas(X, preserve_index=False))
    ]
    assert len({f.forest_.engine.threshold.tobytes() + f.forest_.engine.value.tobytes() for f in forests}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_and_dense_tables_grow_the_same_forest(kind):
    X, y = table()
    X[np.abs(X) < 0.5] = 0
    dense, sparse = small(kind).fit(X, y), small(kind).fit(scipy.sparse.csr_array(X), y)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(scipy.sparse.csc_array(X)))


@pytest.mark.parametrize("replace", [True, False])
@examples(5)
@given(seed=st.integers(0, 10**6))
def test_whole_weights_are_rows_and_the_order_of_rows_does_not_matter(replace, seed):
    X, y = table(50, seed=seed)
    random = np.random.default_rng(seed)
    weight = random.integers(0, 4, size=50)
    order = random.permutation(50)
    model = RandomForestClassifier(n_estimators=5, random_state=seed, replace=replace)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    weighted = clone(model).fit(X[order], y[order], weight[order])
    present = np.isin(weighted.classes_, repeated.classes_)
    np.testing.assert_array_equal(weighted.predict_proba(X)[:, present], repeated.predict_proba(X))


@pytest.mark.parametrize("n_keys", [5, 10**9])
def test_rows_are_drawn_from_in_a_stable_order(n_keys):
    keys = np.random.default_rng(3).integers(0, n_keys, 1000).astype(np.uint64)
    assert np.array_equal(_stable_order(keys, None), np.argsort(keys, kind="stable"))


def test_rows_of_weight_zero_are_left_out():
    X, y = table()
    weight = np.linspace(0, 2, len(X)) * (np.arange(len(X)) % 3 > 0)
    kept = weight > 0
    for kind in KINDS:
        for bootstrap in (True, False):
            model = small(kind, bootstrap=bootstrap)
            a, b = clone(model).fit(X, y, weight), clone(model).fit(X[kept], y[kept], weight[kept])
            np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_weights_that_are_not_whole_count():
    X, y = table()
    weight = np.where(y == 0, 7.5, 0.5)
    plain, weighted = small(RandomForestClassifier).fit(X, y), small(RandomForestClassifier).fit(X, y, weight)
    stumps = [clone(m).set_params(max_depth=1).fit(X, y, w) for m, w in ((plain, None), (weighted, weight))]
    assert stumps[1].predict_proba(X)[:, 0].mean() > stumps[0].predict_proba(X)[:, 0].mean() + 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_gives_the_forest_grown_at_once(kind):
    X, y = mixed()
    forest = small(kind, n_estimators=4, warm_start=True).fit(X, y)
    assert len(forest) == 4
    forest.set_params(n_estimators=9).fit(X, y)
    at_once = small(kind, n_estimators=9, warm_start=True).fit(X, y)
    assert bytes_of(forest) == bytes_of(at_once)
    assert len(forest) == 9
    with pytest.warns(UserWarning, match="does not fit new trees"):
        forest.fit(X, y)
    with pytest.raises(ValueError, match="larger or equal to len"):
        forest.set_params(n_estimators=3).fit(X, y)
    loaded = through_bytes(small(kind, n_estimators=4, warm_start=True).fit(X, y))
    assert bytes_of(loaded.set_params(n_estimators=9).fit(X, y)) == bytes_of(at_once)


def test_a_warm_start_with_other_classes_is_refused():
    X, y = table()
    forest = small(RandomForestClassifier, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="classes and outputs of the earlier fit"):
        forest.set_params(n_estimators=10).fit(X, y + 1)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_warm_start_keeps_how_rows_are_drawn(bootstrap):
    X, y = table()
    forest = small(RandomForestClassifier, warm_start=True, bootstrap=bootstrap).fit(X, y)
    with pytest.raises(ValueError, match=f"earlier trees were grown with bootstrap={bootstrap}. Set that"):
        forest.set_params(n_estimators=10, bootstrap=not bootstrap).fit(X, y)


@pytest.mark.parametrize("kind", [RandomForestClassifier, spinney.RandomTreesEmbedding])
@pytest.mark.parametrize(("before", "after", "was"), [(["b"], None, "a category"), (None, ["b"], "not a category")])
def test_a_warm_start_keeps_the_kinds_of_the_columns(kind, before, after, was):
    _, y = table()
    X = pd.DataFrame({"a": np.where(y > 0, "u", "v"), "b": np.arange(120) % 4})
    forest = kind(n_estimators=4, warm_start=True, random_state=0, categorical_features=before).fit(X, y)
    forest.set_params(n_estimators=6).fit(X[["b", "a"]], y)
    with pytest.raises(ValueError, match=f"column 'b' was {was} at the earlier fit. Set categorical_features"):
        forest.set_params(n_estimators=10, categorical_features=after).fit(X, y)


# ---- samples ----------------------------------------------------------------------------------------------


def test_groups_are_drawn_or_left_out_together():
    X, y = table()
    groups = np.arange(len(X)) // 5
    forest = small(RandomForestClassifier, n_estimators=30).fit(X, y, groups=groups)
    for t in range(30):
        counts = forest._draws.counts(t).reshape(-1, 5)
        assert (counts == counts[:, :1]).all()
        assert counts[:, 0].sum() == 24
        assert (counts == 0).any()
    with pytest.raises(ValueError, match="one group per row"):
        forest.fit(X, y, groups=groups[:-1])


def test_balanced_and_stratified_samples():
    X, y = table(200)
    y = np.where(y == 2, 1, 0)
    sizes = np.bincount(y)
    for sampling, expected in (("balanced", [sizes.min()] * 2), ("stratified", sizes)):
        forest = small(RandomForestClassifier, sampling=sampling).fit(X, y)
        for rows in forest.estimators_samples_:
            np.testing.assert_array_equal(np.bincount(y[rows]), expected)
    half = small(RandomForestClassifier, sampling="balanced", max_samples=0.5).fit(X, y)
    np.testing.assert_array_equal(np.bincount(y[half.estimators_samples_[0]]), [sizes.min() // 2] * 2)


@pytest.mark.parametrize(
    ("parameters", "n_drawn"),
    [({}, 120), ({"max_samples": 30}, 30), ({"max_samples": 0.25}, 30), ({"max_samples": 1.0}, 120)],
)
def test_max_samples(parameters, n_drawn):
    X, y = table()
    rows = small(RandomForestClassifier, **parameters).fit(X, y).estimators_samples_[0]
    assert len(rows) == n_drawn
    assert len(set(rows)) < n_drawn
    without = small(RandomForestClassifier, replace=False, **parameters).fit(X, y).estimators_samples_[0]
    assert len(without) == len(set(without)) == (n_drawn if parameters else 75)


def test_classes_are_balanced_in_each_sample():
    X, y = table()
    forest = small(RandomForestClassifier, class_weight="balanced_subsample").fit(X, y)
    for tree in forest:
        np.testing.assert_allclose(tree.tree_.value[0, 0], 1 / 3)
    plain = small(ExtraTreesClassifier, class_weight="balanced_subsample").fit(X, y)
    np.testing.assert_allclose(plain[0].tree_.value[0, 0], 1 / 3)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample"])
@pytest.mark.parametrize("weight", [[0.5, 1.5], [1, 3], [2, 0]])
def test_classes_are_balanced_by_the_weights_of_their_rows(class_weight, bootstrap, weight):
    X, y = table()
    weight = np.where((X[:, 0] > 0) | (y == 1), *weight)
    how = {"class_weight": class_weight, "bootstrap": bootstrap, "keep_rows": True, "shrinkage": None}
    forest = small(RandomForestClassifier, **how).fit(X, y, weight)
    roots = np.array([tree.tree_.value[0, 0] for tree in forest])
    if bootstrap and class_weight == "balanced":  # over all rows, not in each sample
        np.testing.assert_allclose(roots.mean(axis=0), 1 / 3, atol=0.05)
    else:
        np.testing.assert_allclose(roots, 1 / 3)
    shares = np.stack([forest.leaf_weights(X) @ (y == label).astype(float) for label in forest.classes_], axis=1)
    np.testing.assert_allclose(shares, forest.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_tree_of_balanced_classes_is_the_tree_of_those_weights(n_outputs):
    X, y = table()
    y = np.column_stack([y, y > 1, X[:, 3] > 0][:n_outputs]).astype(int)
    weight = np.where(np.arange(len(X)) % 2, 1.25, 0.75)  # of mean 1, and no multiples of each other
    forest = small(RandomForestClassifier, class_weight="balanced_subsample", max_features=None, max_samples=9)
    forest.fit(X, y, weight)
    np.testing.assert_array_equal(relative_weights(weight)[0], weight)
    for t in range(8):
        counts, factors = forest._draws.counts(t).astype(float), weight.copy()
        for k in range(n_outputs):
            total = np.bincount(y[:, k], weights=counts * weight)
            present = np.count_nonzero(total)
            factors *= np.where(total > 0, total.sum() / (present * np.maximum(total, 0.1)), 1.0)[y[:, k]]
        alone = like_tree_of(forest, t, spinney.DecisionTreeClassifier).fit(X, y, counts * factors)
        assert bytes_of_tree(forest.forest_.tree(t)) == bytes_of_tree(alone.tree_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bootstrap": False, "max_samples": 5}, "max_samples requires bootstrap"),
        ({"bootstrap": False, "oob_score": True}, "only available if bootstrap=True"),
        ({"bootstrap": False, "n_estimators": "auto"}, "requires bootstrap=True"),
        ({"bootstrap": False, "replace": False}, "requires bootstrap=True"),
        ({"replace": False, "max_samples": 121}, "is more than the 120 rows"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": "many"}, "n_estimators"),
        ({"max_features": 5}, "more than the table's 4 columns"),
        ({"oob_score": "acuracy"}, "acuracy"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"sampling": "even"}, "sampling"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused_and_nothing_is_half_fitted(parameters, message):
    X, y = table()
    forest = small(RandomForestClassifier, **parameters)
    with pytest.raises(ValueError, match=message):
        forest.fit(X, y)
    assert not hasattr(forest, "forest_")
    assert not hasattr(forest, "schema_")


def test_a_misspelt_parameter_is_named():
    with pytest.raises(TypeError, match="Did you mean 'n_estimators'"):
        RandomForestClassifier(n_estimator=3)


# ---- keeping ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_files_pickles_and_copies_are_bit_identical(kind):
    X, y = mixed()
    forest = small(kind, n_estimators=30, oob_score=True, bootstrap=True).fit(X, y)
    others = [
        through_bytes(forest),
        pickle.loads(pickle.dumps(forest)),
        copy.deepcopy(forest),
        through_bytes(forest, spinney.load_predictor),
    ]
    for other in others:
        assert other.predict(X).tobytes() == forest.predict(X).tobytes()
        if kind in CLASSIFIERS:
            assert other.predict_proba(X).tobytes() == forest.predict_proba(X).tobytes()
        assert other.to_predictor().predict(list(X.iloc[3])) == forest.predict(X)[3]
    assert others[0].oob_score_ == others[1].oob_score_ == forest.oob_score_
    np.testing.assert_array_equal(others[1].estimators_samples_[2], forest.estimators_samples_[2])
    with pytest.raises(AttributeError, match="stores which rows were drawn only with keep_rows=True"):
        _ = others[0].estimators_samples_
    assert others[0][1].tree_.node_count == forest[1].tree_.node_count
    assert others[0].get_params() == forest.get_params()


def test_a_metric_that_is_a_function_is_not_saved():
    X, y = table()
    forest = small(RandomForestClassifier, n_estimators=30, oob_score=lambda truth, guess: 0.25).fit(X, y)
    assert forest.oob_score_ == 0.25
    assert through_bytes(forest).oob_score is True


def test_a_file_whose_trees_and_estimator_disagree_is_refused():
    X, y = table()
    forest = small(RandomForestClassifier).fit(X, y)
    header = spinney._engine.ModelFile(bytes_of(forest)).header
    trees = [forest.forest_.engine.tree(t) for t in range(8)]
    tree = spinney.DecisionTreeClassifier().fit(X, y)
    for old, new, kept, message in (
        (b'"RandomForestClassifier"', b'"DecisionTreeClassifier"', trees, "do not go together|damaged"),
        (b'"kind":"forest"', b'"kind":"wood"', trees, "does not know, 'wood'"),
        (b'"kind":"forest"', b'"kind":"tree"', trees, "8 trees instead of one"),
        (b'"kind":"forest"', b'"kind":7', trees, "lacks a usable 'kind'"),
        (b'"kind":"forest"', b'"kind":"forest"', [], "holds no trees"),
        (b'"seed":', b'"seed":-', trees, "seed"),
    ):
        assert old in header
        with pytest.raises(spinney.ModelFileError, match=message):
            spinney.load(io.BytesIO(spinney._engine.write_model_file(header.replace(old, new), kept)))
    header = spinney._engine.ModelFile(bytes_of(tree)).header
    wrong = header.replace(b'"DecisionTreeClassifier"', b'"RandomForestClassifier"')
    with pytest.raises(spinney.ModelFileError):
        spinney.load(io.BytesIO(spinney._engine.write_model_file(wrong, [tree.tree_.engine])))


def test_a_forest_is_loaded_without_scikit_learn(tmp_path):
    X, y = table()
    small(RandomForestClassifier).fit(X, y).save(tmp_path / "forest")
    code = "import sys, spinney; m = spinney.load_predictor(sys.argv[1]); print(m.predict_one([0.0] * 4), "
    code += "'sklearn' in sys.modules, 'scipy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "forest"], capture_output=True, text=True, check=True)
    assert run.stdout.split()[1:] == ["False", "False"]


# ---- beside scikit-learn ----------------------------------------------------------------------------------


LOADERS = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "diabetes": load_diabetes}


QUICK = [("RandomForest", "diabetes"), ("ExtraTrees", "wine")]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if (kind, name) in QUICK else pytest.mark.slow)
        for kind in ("RandomForest", "ExtraTrees")
        for name in LOADERS
    ],
)
def test_no_worse_than_scikit_learn_with_the_same_settings(kind, name):
    import sklearn.ensemble

    X, y = LOADERS[name](return_X_y=True)
    kind += "Regressor" if name == "diabetes" else "Classifier"
    differences = []
    for seed in range(8):
        test = np.random.default_rng(seed).permutation(len(X)) < len(X) // 3
        loss = []
        for library in (spinney, sklearn.ensemble):
            model = getattr(library, kind)(n_estimators=50, random_state=seed).fit(X[~test], y[~test])
            loss.append(held_out_loss(model, X[test], y[test]))
        differences.append(loss[0] - loss[1])
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert np.mean(differences) <= 3 * error + 1e-12


def held_out_loss(model, X, y):
    if not hasattr(model, "predict_proba"):
        return np.sqrt(np.mean((model.predict(X) - y) ** 2))
    return np.mean(((model.predict_proba(X) - (y[:, np.newaxis] == model.classes_)) ** 2).sum(axis=1))


# ---- what trees have, too ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"min_purity": 0.8},
        {"cost_matrix": [[0, 1, 5], [1, 0, 1], [2, 1, 0]], "cost_splits": "generalised_gini"},
        {"cost_matrix": [[0, 1, 5], [1, 0, 1], [2, 1, 0]], "cost_splits": None},
    ],
)
def test_parameters_of_a_tree_do_the_same_in_a_forest(parameters):
    X, y = table()
    forest = small(RandomForestClassifier, max_features=None, **parameters).fit(X, y)
    for t in range(3):
        alone = like_tree_of(forest, t, spinney.DecisionTreeClassifier, **parameters)
        alone.fit(X, y, forest._draws.counts(t).astype(float))
        np.testing.assert_array_equal(forest[t].tree_.threshold, alone.tree_.threshold)
        np.testing.assert_array_equal(forest[t].predict_proba(X), alone.predict_proba(X))
        assert forest[t].get_params()[next(iter(parameters))] is not None
    without = dict(list(parameters.items())[:-1])
    plain = small(RandomForestClassifier, max_features=None, **without).fit(X, y)
    assert plain.forest_.node_count != forest.forest_.node_count


def test_pure_enough_nodes_of_extra_trees_are_left_alone():
    X, y = table()
    forest = small(ExtraTreesClassifier, min_purity=0.7).fit(X, y)
    for tree in forest:
        inner = ~tree.tree_.is_leaf
        assert tree.tree_.value[inner, 0].max() < 0.7


def test_rates_are_shrunk_in_every_tree():
    X, y = table()
    parameters = {"criterion": "poisson", "rate_shrinkage": 2.0}
    forest = small(RandomForestRegressor, **parameters).fit(X, y)
    alone = like_tree_of(forest, 0, spinney.DecisionTreeRegressor, **parameters)
    alone.fit(X, y, forest._draws.counts(0).astype(float))
    np.testing.assert_array_equal(forest[0].predict(X), alone.predict(X))
    assert (forest.predict(X) > 0).all()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("missing", "bagging of such trees"),
        ("max_surrogates", "missing='surrogate'"),
        ("prune", "ccp_alpha"),
        ("splitter", "extra-trees"),
        ("max_competitors", "use a decision tree"),
        ("max_dept", "Did you mean 'max_depth'"),
    ],
)
def test_parameters_of_single_trees_are_refused_with_advice(name, advice):
    with pytest.raises(TypeError, match=advice):
        RandomForestClassifier(**{name: None})
    with pytest.raises(ValueError, match=advice):
        ExtraTreesRegressor().set_params(**{name: None})


# ---- interrupting -----------------------------------------------------------------------------------------


PHASES = """
import os, signal, threading, time
import numpy as np, spinney
random = np.random.default_rng(0)
X = random.normal(size=(30_000, 30))
y = random.integers(0, 2, size=30_000)
model = spinney.RandomForestClassifier(n_estimators=6, max_samples=0.2, n_jobs=2, random_state=0).fit(X, y)
before, many = model.forest_, np.tile(X, (12, 1))

def sorted_forest():
    model.set_params(n_estimators=400, max_bins=None).fit(X, y)

def binned_forest():
    model.set_params(n_estimators=4000, max_bins=64).fit(X, y)

def out_of_bag():
    while True:
        model.oob_errors(X, y)

def prediction():
    while True:
        model.predict_proba(many)

for work in (sorted_forest, binned_forest, out_of_bag, prediction):
    for delay in (0.03, 0.15):
        sent = []
        kill = lambda: (sent.append(time.process_time()), os.kill(os.getpid(), signal.SIGINT))
        timer = threading.Timer(delay, kill)
        try:
            timer.start()
            work()
        except KeyboardInterrupt:
            print(time.process_time() - sent[0], model.forest_ is before, flush=True)
        timer.join()
"""


@pytest.mark.slow
def test_ctrl_c_ends_every_phase_within_a_second_and_keeps_the_forest_there_was():
    lines = [line.split() for line in run(PHASES).stdout.splitlines()]
    assert len(lines) == 8
    assert max(float(seconds) for seconds, _ in lines) < 2  # of two processors, whatever else these do
    assert {is_kept for _, is_kept in lines} == {"True"}


@pytest.mark.parametrize("replace", [False, True])
def test_rows_equal_but_for_their_weights_may_be_reordered(replace):
    rng = np.random.default_rng(0)
    X, weight = rng.integers(0, 3, (60, 1)), rng.uniform(0.1, 1.0, 60)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]
    other = rng.permutation(60)
    model = spinney.RandomForestClassifier(n_estimators=6, replace=replace, random_state=5)
    one = model.fit(X, y, weight).predict_proba(X)
    again = model.fit(X[other], y[other], weight[other]).predict_proba(X)
    assert np.array_equal(one, again)
