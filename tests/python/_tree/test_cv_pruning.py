"""Pruning by cross-validation: folds, the table, the choice, out-of-fold predictions."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
import spinney
from hypothesis import given
from hypothesis import strategies as st
from oracle.pruning import cv_errors
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, RepeatedKFold, TimeSeriesSplit
from spinney import DecisionTreeClassifier as Classifier
from spinney import DecisionTreeRegressor as Regressor
from spinney._estimator.held_out import read_folds
from spinney._tree.pruning import choose
from sweep import examples

COLUMNS = ["alpha", "cp", "n_splits", "n_leaves", "relative_error", "cv_error", "cv_se"]


def problem(kind, n=160, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)).round(1)
    score = X[:, 0] + X[:, 1] * (X[:, 2] > 0) + random.normal(size=n)
    y = np.digitize(score, [-1, 1]) if kind == "classes" else np.abs(score).round(1)
    return X, y, random.integers(1, 4, size=n).astype(float)


def pairs(numbers):
    return [(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in np.unique(numbers)]


def wrong(true, predicted):
    return (true != predicted).astype(float)


def squared(true, predicted):
    return (true - predicted) ** 2


def absolute(true, predicted):
    return np.abs(true - predicted)


def deviance(true, predicted):
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(true > 0, true * np.log(true / predicted), 0.0)
    return log - true + predicted


# ---- the table ---------------------------------------------------------------------------------------------------


COSTS = np.array([[0, 1, 4], [2, 0, 1], [9, 3, 0.0]])


def cost(true, predicted):
    return COSTS[true, predicted]


CASES = [
    ("classes", {"cost_matrix": COSTS}, cost),
    ("classes", {"cost_matrix": COSTS, "cost_splits": None, "risk": "impurity"}, cost),
    ("classes", {}, wrong),
    ("classes", {"risk": "error"}, wrong),
    ("classes", {"criterion": "entropy", "min_samples_leaf": 5}, wrong),
    ("values", {}, squared),
    ("values", {"max_depth": 4}, squared),
    ("values", {"criterion": "absolute_error", "min_samples_leaf": 8}, absolute),
    ("values", {"criterion": "poisson", "min_samples_leaf": 8}, deviance),
]


@pytest.mark.parametrize(("kind", "options", "loss"), CASES)
def test_the_table_is_the_one_of_pruning_and_predicting_again_and_again(kind, options, loss):
    X, y, w = problem(kind)
    numbers = np.random.default_rng(1).integers(5, size=len(y))
    make = Classifier if kind == "classes" else Regressor
    model = make(prune="cv", cv=numbers, **options).fit(X, y, w)
    table = model.cp_table_
    full = make(**options).fit(X, y, w)
    root = np.average(loss(y, full.pruned(alpha=np.inf).predict(X)), weights=w)
    mean, error = cv_errors(lambda: make(**options), X, y, w, pairs(numbers), table.alpha[::-1], loss)
    np.testing.assert_allclose(table.cv_error[::-1], mean / root, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(table.cv_se[::-1], error / root, rtol=1e-10, atol=1e-10)
    assert len(table) > 4
    for i in range(len(table)):
        tree = full.pruned(alpha=table.alpha[i])
        assert (table.n_leaves[i], table.n_splits[i]) == (tree.get_n_leaves(), tree.get_n_leaves() - 1)
        training = np.average(loss(y, tree.predict(X)), weights=w)
        assert table.relative_error[i] == pytest.approx(training / root, abs=1e-12)
        assert table.cp[i] == pytest.approx(table.alpha[i] / full._node_risks(full.tree_)[0])
    assert table.n_leaves[0] == 1
    assert table.alpha[-1] == 0
    np.testing.assert_array_equal(model.predict(X), full.pruned(alpha=model.alpha_).predict(X))


@examples(6)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["classes", "values"]), st.integers(2, 4))
def test_the_table_on_small_tables_full_of_ties(seed, kind, n_folds):
    random = np.random.default_rng(seed)
    X, y = random.integers(4, size=(24, 3)).astype(float), random.integers(3, size=24)
    numbers = random.permutation(np.arange(24) % n_folds)
    make, loss = (Classifier, wrong) if kind == "classes" else (Regressor, squared)
    table = make(prune="cv", cv=numbers).fit(X, y).cp_table_
    mean, _ = cv_errors(make, X, y, np.ones(24), pairs(numbers), table.alpha[::-1], loss)
    root = np.mean(loss(y, make().fit(X, y).pruned(alpha=np.inf).predict(X))) or 1.0
    np.testing.assert_allclose(table.cv_error[::-1], mean / root, rtol=1e-10, atol=1e-13)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [2.0**265, 2.0**-275])
def test_the_unit_of_the_target_does_not_matter_however_large(unit):
    X, y, w = problem("values")
    plain, other = (Regressor(prune="cv", cv=4, random_state=0).fit(X, target, w) for target in (y, y * unit))
    for name in ("n_leaves", "relative_error", "cv_error", "cv_se"):
        np.testing.assert_array_equal(getattr(plain.cp_table_, name), getattr(other.cp_table_, name))


@pytest.mark.filterwarnings("error")
def test_a_fold_without_a_loss_leaves_the_unit_to_the_others():
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] < 20, 0.0, np.tile([1.0, 3.0], 20))
    folds = np.where(X[:, 0] < 10, 0, 1 + np.arange(40) % 2)
    plain, other = (Regressor(prune="cv", cv=folds).fit(X, y * unit) for unit in (1.0, 2.0**-275))
    np.testing.assert_array_equal(plain.cp_table_.cv_se, other.cp_table_.cv_se)
    assert (plain.cp_table_.cv_se > 0).all()


def test_standard_error_is_rparts_formula_for_the_effective_number_of_rows():
    X, y, w = problem("values")
    numbers = np.arange(len(y)) % 4
    table = Regressor(prune="cv", cv=numbers).fit(X, y, w).cp_table_
    loss = np.empty(len(y))
    for grown_on, held_out in pairs(numbers):
        loss[held_out] = (y[held_out] - np.average(y[grown_on], weights=w[grown_on])) ** 2
    root = np.sum(w * (y - np.average(y, weights=w)) ** 2)
    assert table.cv_error[0] == pytest.approx(np.sum(w * loss) / root)
    rparts = np.sqrt(np.sum(w * loss**2) - np.sum(w * loss) ** 2 / w.sum()) / root
    assert table.cv_se[0] == pytest.approx(rparts * np.sqrt(np.sum(w**2) / np.sum(w)))


def test_weights_of_two_are_rows_twice():
    X, y, _ = problem("classes")
    w = np.where(np.arange(len(y)) % 3, 1.0, 2.0)
    numbers = np.arange(len(y)) % 5
    weighted = Classifier(prune="cv", cv=numbers, rule="min").fit(X, y, w)
    times = w.astype(int)
    twice = Classifier(prune="cv", cv=np.repeat(numbers, times), rule="min")
    twice.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    for name in set(COLUMNS) - {"cv_se"}:  # a weight of two is no second observation
        np.testing.assert_allclose(
            getattr(weighted.cp_table_, name), getattr(twice.cp_table_, name), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_array_equal(weighted.predict(X), twice.predict(X))


@pytest.mark.parametrize("unit", [1e-300, 1 / 150, 0.1, 2.0, 100.0, 1e6, 1e300])
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_the_unit_of_the_weights_does_not_matter(kind, unit):
    X, y, _ = problem(kind)
    w = 1.0 + np.arange(len(y)) % 3
    model = Classifier if kind == "classes" else Regressor
    one = model(prune="cv", cv=5, random_state=0).fit(X, y, w)
    other = model(prune="cv", cv=5, random_state=0).fit(X, y, w * unit)
    # rounding in another unit may break ties deep in the tree in another way
    assert other.cp_table_.cv_se[0] == pytest.approx(one.cp_table_.cv_se[0], rel=1e-2)
    assert other.get_n_leaves() == one.get_n_leaves()


def test_rows_of_weight_zero_are_not_there():
    X, y, w = problem("values")
    w[::4] = 0
    numbers = np.arange(len(y)) % 5
    some = Regressor(prune="cv", cv=numbers).fit(X, y, w)
    fewer = Regressor(prune="cv", cv=numbers[w > 0]).fit(X[w > 0], y[w > 0], w[w > 0])
    np.testing.assert_allclose(some.cp_table_.cv_error, fewer.cp_table_.cv_error)
    assert np.isnan(some.oof_predictions_[::4]).all()
    np.testing.assert_allclose(some.oof_predictions_[w > 0], fewer.oof_predictions_)


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_the_number_of_threads_changes_nothing(kind):
    X, y, w = problem(kind, n=3000)
    make = Classifier if kind == "classes" else Regressor
    models = [make(prune="cv", random_state=0, n_jobs=n).fit(X, y, w) for n in (1, 2, 7)]
    for other in models[1:]:
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(models[0].cp_table_, name), getattr(other.cp_table_, name))
        np.testing.assert_array_equal(models[0].oof_predictions_, other.oof_predictions_)


def test_rows_that_rest_before_a_leaf():
    X, y, w = problem("values")
    X[np.random.default_rng(5).random(X.shape) < 0.2] = np.nan
    options = {"missing": "surrogate", "missing_fallback": "stop", "max_surrogates": 0, "min_samples_leaf": 4}
    numbers = np.arange(len(y)) % 5
    model = Regressor(prune="cv", cv=numbers, **options).fit(X, y, w)
    full, table = Regressor(**options).fit(X, y, w), model.cp_table_
    assert (~full.tree_.is_leaf[full.apply(X)]).any()
    root = np.average(squared(y, np.average(y, weights=w)), weights=w)
    for i in range(len(table)):
        training = np.average(squared(y, full.pruned(alpha=table.alpha[i]).predict(X)), weights=w)
        assert table.relative_error[i] == pytest.approx(training / root, abs=1e-12)
    mean, _ = cv_errors(lambda: Regressor(**options), X, y, w, pairs(numbers), table.alpha[::-1], squared)
    np.testing.assert_allclose(table.cv_error[::-1], mean / root, rtol=1e-10)


def test_a_floor_shortens_the_table():
    X, y, _ = problem("values")
    numbers = np.arange(len(y)) % 5
    whole = Regressor(prune="cv", cv=numbers).fit(X, y).cp_table_
    floored = Regressor(prune="cv", cv=numbers, cp=0.02).fit(X, y).cp_table_
    assert floored.cp[-1] == pytest.approx(0.02)
    n = len(floored) - 1
    np.testing.assert_allclose(floored.cv_error[:n], whole.cv_error[:n])
    assert whole.cp[n] < 0.02 < whole.cp[n - 1]


def test_one_leaf_and_pure_targets():
    for y in (np.zeros(20), np.r_[np.zeros(19), 1]):
        model = Regressor(prune="cv", random_state=0).fit(np.zeros((20, 1)), y)
        assert len(model.cp_table_) == 1
        assert model.get_n_leaves() == 1
    assert np.isfinite(Classifier(prune="cv").fit(np.zeros((20, 1)), ["a"] * 20).cp_table_.cv_error).all()


# ---- the choice --------------------------------------------------------------------------------------------------


def test_rules():
    error = np.array([0.50, 0.40, 0.40, 0.45, 0.52, 1.0])  # from the largest tree to the root
    se = np.full(6, 0.06)
    assert choose(error, se, "min") == 2
    assert choose(error, se, "1se") == 3
    assert choose(error, se, 2.0) == 4
    assert choose(error, se, 0.0) == 2
    assert choose(error, se, None) is None
    assert choose(error + np.array([0, 0, 1e-16, 0, 0, 0]), se, "min") == 2
    assert choose(np.array([np.nan, 0.2, 0.3]), np.array([np.nan, 0.0, 0.0]), "min") == 1
    with pytest.raises(ValueError, match="finite"):
        choose(np.array([np.nan]), se[:1], "min")


@pytest.mark.parametrize("rule", ["min", "1se", 0.5, None])
def test_the_rule_is_kept(rule):
    X, y, _ = problem("values")
    model = Regressor(prune="cv", rule=rule, random_state=0).fit(X, y)
    table = model.cp_table_
    if rule is None:
        assert table.chosen is None
        assert model.get_n_leaves() == Regressor().fit(X, y).get_n_leaves()
        return
    best = np.argmin(table.cv_error)
    limit = table.cv_error[best] + {"min": 0, "1se": 1, 0.5: 0.5}[rule] * table.cv_se[best]
    assert table.chosen == np.flatnonzero(table.cv_error <= limit + 1e-12)[0]
    assert model.get_n_leaves() == table.n_leaves[table.chosen]
    assert model.alpha_ == table.alpha[table.chosen]


def test_no_rule_keeps_the_tree_that_cp_leaves():
    X, y, _ = problem("values")
    model = Regressor(prune="cv", rule=None, cp=0.02, random_state=0).fit(X, y)
    assert model.get_n_leaves() == Regressor(cp=0.02).fit(X, y).get_n_leaves() == model.cp_table_.n_leaves[-1]


def test_pruning_finds_the_true_size():
    random = np.random.default_rng(0)
    X = random.uniform(size=(2000, 5))
    y = np.select([X[:, 0] < 0.3, X[:, 1] < 0.5], [0.0, 2.0], 4.0) + random.normal(size=2000)
    assert Regressor(prune="cv", random_state=0).fit(X, y).get_n_leaves() == 3


# ---- folds -------------------------------------------------------------------------------------------------------


def folds_of(cv, y, weight=None, groups=None, strata=True, seed=0):
    y = np.asarray(y).reshape(len(y), -1)
    weight = np.ones(len(y)) if weight is None else weight
    return read_folds(cv, y if strata else None, y, weight, groups, np.random.RandomState(seed))


def test_a_number_of_folds_spreads_the_classes():
    y = np.repeat([0, 1, 2], [50, 30, 7])
    folds = folds_of(5, y)
    assert sorted(np.concatenate([f.held_out for f in folds]).tolist()) == list(range(87))
    for fold in folds:
        assert set(fold.train) == set(range(87)) - set(fold.held_out)
        counts = np.bincount(y[fold.held_out], minlength=3)
        assert (np.abs(counts - np.array([10, 6, 1.4])) < 1).all()
        assert len(fold.held_out) in (17, 18)
    again, other = folds_of(5, y), folds_of(5, y, seed=1)
    assert all((a.held_out == b.held_out).all() for a, b in zip(folds, again, strict=True))
    assert any(
        len(a.held_out) != len(b.held_out) or (a.held_out != b.held_out).any()
        for a, b in zip(folds, other, strict=True)
    )


@examples(20)
@given(st.lists(st.integers(0, 8), min_size=12, max_size=60), st.integers(2, 4))
def test_groups_are_never_split(groups, n_folds):
    groups = np.array([*groups, 0, 1, 2, 3])
    for cv in (n_folds, GroupKFold(n_folds)):
        for fold in folds_of(cv, np.zeros(len(groups)), groups=groups):
            assert not set(groups[fold.train]) & set(groups[fold.held_out])


def test_groups_reach_the_folds_of_a_fit():
    X, y, _ = problem("values")
    groups = np.repeat(np.arange(16), 10)
    numbers = np.empty(160, dtype=int)
    for k, (_, held_out) in enumerate(GroupKFold(4).split(X, groups=groups)):
        numbers[held_out] = k
    grouped = Regressor(prune="cv", cv=4).fit(X, y, groups=[f"group {g:02d}" for g in groups])
    by_hand = Regressor(prune="cv", cv=numbers).fit(X, y)
    np.testing.assert_array_equal(grouped.cp_table_.cv_error, by_hand.cp_table_.cv_error)


def test_splitters_splits_and_fold_numbers_agree():
    X, y, _ = problem("classes")
    splitter = KFold(4, shuffle=True, random_state=3)
    splits = list(splitter.split(X))
    numbers = np.empty(len(y), dtype=int)
    for k, (_, held_out) in enumerate(splits):
        numbers[held_out] = k
    masks = [(numbers != k, numbers == k) for k in range(4)]
    named = np.array(["abcd"[k] for k in numbers])
    tables = [
        Classifier(prune="cv", cv=cv).fit(X, y).cp_table_
        for cv in (
            splitter,
            splits,
            numbers,
            numbers.tolist(),
            pd.Series(numbers),
            PredefinedSplit(numbers),
            masks,
            named,
        )
    ]
    for table in tables[1:]:
        np.testing.assert_array_equal(tables[0].cv_error, table.cv_error)


def test_rows_of_a_negative_fold_number_are_never_held_out():
    X, y, _ = problem("values")
    numbers = np.where(np.arange(len(y)) < 40, -1, np.arange(len(y)) % 4)
    model = Regressor(prune="cv", cv=numbers).fit(X, y)
    assert np.isnan(model.oof_predictions_[:40]).all()
    assert np.isfinite(model.oof_predictions_[40:]).all()
    split = Regressor(prune="cv", cv=PredefinedSplit(numbers)).fit(X, y)
    np.testing.assert_array_equal(model.cp_table_.cv_error, split.cp_table_.cv_error)


def test_splits_that_leave_rows_out_of_both_sides():
    X, y, w = problem("values")
    folds = list(TimeSeriesSplit(3).split(X))
    table = Regressor(prune="cv", cv=TimeSeriesSplit(3)).fit(X, y, w).cp_table_
    mean, _ = cv_errors(Regressor, X, y, w, folds, table.alpha[::-1], squared)
    root = np.average(squared(y, np.average(y, weights=w)), weights=w)
    np.testing.assert_allclose(table.cv_error[::-1], mean / root, rtol=1e-10)


def test_repeated_folds_are_averaged():
    X, y, _ = problem("values")
    alone = [Regressor(prune="cv", cv=KFold(4, shuffle=True, random_state=s), rule="min").fit(X, y) for s in (0, 1, 2)]
    splits = [split for s in (0, 1, 2) for split in KFold(4, shuffle=True, random_state=s).split(X)]
    together = Regressor(prune="cv", cv=splits, rule="min").fit(X, y)
    mean = np.mean([m.cp_table_.cv_error for m in alone], axis=0)
    np.testing.assert_allclose(together.cp_table_.cv_error, mean, rtol=1e-12)
    spreads = [m.cp_table_.cv_se for m in alone]
    assert (together.cp_table_.cv_se >= 0.9 * np.min(spreads, axis=0)).all()
    assert (together.cp_table_.cv_se <= 1.1 * np.max(spreads, axis=0)).all()
    repeated = Regressor(prune="cv", cv=RepeatedKFold(n_splits=4, n_repeats=3, random_state=0)).fit(X, y)
    assert np.isfinite(repeated.oof_predictions_).all()


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (1, "range .2, inf"),
        (None, "must be a number of folds"),
        (200, "exceeds the number of samples"),
        ([0, 1, 0], "3 fold numbers and the table 160 rows"),
        (np.zeros(160, dtype=int), "all rows into one fold"),
        ([], "no folds|fold numbers"),
        ([([0, 1], [2]), ([0],)], "must be a pair"),
        ([([0, 1], [160])], "names row 160"),
        ([([], [2])], "no training row of positive weight"),
        ([([0.5], [2])], "must hold row numbers"),
    ],
)
def test_what_cv_refuses(cv, words):
    X, y, _ = problem("values")
    with pytest.raises(ValueError, match=words):
        Regressor(prune="cv", cv=cv).fit(X, y)


def test_groups_with_folds_by_row_are_refused():
    X, y, _ = problem("values")
    with pytest.raises(ValueError, match="already assigns"):
        Regressor(prune="cv", cv=np.arange(160) % 3).fit(X, y, groups=np.arange(160))
    with pytest.raises(ValueError, match="exceeds the number of groups"):
        Regressor(prune="cv", cv=3).fit(X, y, groups=np.arange(160) % 2)


# ---- scorers -----------------------------------------------------------------------------------------------------


def test_a_scorer_chooses():
    X, y = load_breast_cancer(return_X_y=True)
    numbers = np.random.default_rng(0).integers(5, size=len(y))
    model = Classifier(prune="cv", cv=numbers, scoring="roc_auc", rule="min").fit(X, y)
    table, scorer = model.cp_table_, get_scorer("roc_auc")
    alphas = table.alpha[::-1]
    cuts = [*np.sqrt(alphas[:-1] * alphas[1:]), np.inf]
    scores = np.array(
        [
            [scorer(Classifier().fit(X[a], y[a]).pruned(alpha=cut), X[b], y[b]) for cut in cuts]
            for a, b in pairs(numbers)
        ]
    )
    np.testing.assert_allclose(table.cv_error[::-1], scores.mean(axis=0))
    np.testing.assert_allclose(table.cv_se[::-1], scores.std(axis=0, ddof=1) / np.sqrt(5))
    assert table.chosen == np.argmax(table.cv_error)
    assert table.to_frame("pandas").columns[5] == "cv_score"
    same = Classifier(prune="cv", cv=numbers, scoring=lambda m, X, y: m.score(X, y), rule="min").fit(X, y)
    own = Classifier(prune="cv", cv=numbers, rule="min").fit(X, y)
    fold_sizes = np.bincount(numbers)
    assert len(set(fold_sizes.tolist())) > 1
    np.testing.assert_allclose(same.cp_table_.alpha, own.cp_table_.alpha)


def test_log_loss_chooses_with_one_row_of_the_root_added_to_each_leaf():
    X, y = load_breast_cancer(return_X_y=True)
    numbers = np.random.default_rng(0).integers(5, size=len(y))
    model = Classifier(prune="cv", cv=numbers, scoring="neg_log_loss", rule="min").fit(X, y)
    table = model.cp_table_
    alphas = table.alpha[::-1]
    losses = np.zeros(len(alphas))
    for k, cut in enumerate([*np.sqrt(alphas[:-1] * alphas[1:]), np.inf]):
        for train, test in pairs(numbers):
            tree = Classifier().fit(X[train], y[train]).pruned(alpha=cut)
            leaves = tree.apply(X[test])
            n = tree.tree_.n_node_samples[leaves][:, np.newaxis]
            proba = (n * tree.tree_.value[leaves, 0] + np.bincount(y[train]) / len(train)) / (n + 1)
            losses[k] -= np.log(proba[np.arange(len(test)), y[test]]).sum()
    np.testing.assert_allclose(table.cv_error[::-1], -losses / len(y))
    assert table.chosen == np.argmax(table.cv_error)


def test_log_loss_finds_the_leaves_of_a_rare_class_that_no_leaf_has_in_its_majority():
    random = np.random.default_rng(1)
    X = random.normal(size=(4000, 3))
    y = random.random(4000) < np.where(X[:, 0] > 1, 0.3, 0.03)
    by_error = Classifier(prune="cv", random_state=0).fit(X, y)
    by_loss = Classifier(prune="cv", scoring="neg_log_loss", random_state=0).fit(X, y)
    assert by_error.get_n_leaves() == 1
    assert 2 <= by_loss.get_n_leaves() <= 6
    assert by_loss.tree_.feature[0] == 0


@pytest.mark.slow
def test_a_scorer_sees_at_most_a_hundred_trees_of_frames_too():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = Regressor(prune="cv", cv=3, scoring="r2", random_state=0).fit(X, y)
    assert len(model.cp_table_) == 100
    assert model.cp_table_.n_leaves[0] == 1
    assert model.cp_table_.alpha[-1] == 0
    assert model.get_n_leaves() == model.cp_table_.n_leaves[model.cp_table_.chosen] < 30


# ---- out of fold ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_out_of_fold_predictions_are_those_of_the_pruned_fold_trees(kind):
    X, y, w = problem(kind)
    numbers = np.arange(len(y)) % 5
    make = Classifier if kind == "classes" else Regressor
    model = make(prune="cv", cv=numbers).fit(X, y, w)
    table = model.cp_table_
    above = table.alpha[table.chosen - 1] if table.chosen else np.inf
    cut = np.sqrt(model.alpha_ * above)
    for grown_on, held_out in pairs(numbers):
        tree = make().fit(X[grown_on], y[grown_on], w[grown_on]).pruned(alpha=cut)
        expected = tree.predict_proba(X[held_out]) if kind == "classes" else tree.predict(X[held_out])
        np.testing.assert_allclose(model.oof_predictions_[held_out], expected)


def test_several_outputs():
    X, y, _ = problem("classes")
    Y = np.column_stack([y, y == 1])
    model = Classifier(prune="cv", random_state=0).fit(X, Y)
    assert [o.shape for o in model.oof_predictions_] == [(160, 3), (160, 2)]
    values = Regressor(prune="cv", random_state=0).fit(X, Y.astype(float))
    assert values.oof_predictions_.shape == (160, 2)


def test_a_later_fit_forgets_the_pruning():
    X, y, _ = problem("values")
    model = Regressor(prune="cv", random_state=0).fit(X, y)
    assert hasattr(model, "cp_table_")
    model.set_params(prune=None).fit(X, y)
    assert not any(hasattr(model, name) for name in ("alpha_", "cp_table_", "oof_predictions_"))


def test_the_grown_tree_is_the_same_with_and_without_folds():
    X, y, _ = problem("values")
    options = {"max_features": 2, "random_state": 7}
    kept = Regressor(prune="cv", rule=None, **options).fit(X, y)
    assert pickle.dumps(kept.tree_) == pickle.dumps(Regressor(**options).fit(X, y).tree_)


# ---- showing and keeping -------------------------------------------------------------------------------------------


def test_printing():
    X, y = load_iris(return_X_y=True)
    table = Classifier(prune="cv", random_state=0).fit(X, y).cp_table_
    lines = str(table).splitlines()
    assert repr(table) == str(table)
    assert lines[0].split() == ["cp", "splits", "leaves", "relative", "error", "CV", "error", "standard", "error"]
    assert len(lines) == len(table) + 1
    assert [i for i, line in enumerate(lines) if line.endswith("← chosen")] == [table.chosen + 1]
    assert len({len(line.removesuffix("  ← chosen")) for line in lines}) == 1


def test_long_tables_print_head_choice_and_tail():
    X, y = load_diabetes(return_X_y=True)
    table = Regressor(prune="cv", random_state=0).fit(X, y).cp_table_
    lines = str(table).splitlines()
    assert len(table) > 200
    assert len(lines) < 32
    assert sum("…" in line for line in lines) in (1, 2)
    assert sum("chosen" in line for line in lines) == 1


def test_frames():
    X, y = load_iris(return_X_y=True)
    table = Classifier(prune="cv", random_state=0).fit(X, y).cp_table_
    for backend in ("pandas", "polars"):
        frame = table.to_frame(backend)
        assert list(frame.columns) == COLUMNS
        assert frame["cv_error"].to_list() == table.cv_error.tolist()


@pytest.mark.slow
def test_pictures():
    import matplotlib as mpl

    mpl.use("agg")
    X, y = load_diabetes(return_X_y=True)
    X2, y2 = load_iris(return_X_y=True)
    for model in (
        Regressor(prune="cv", random_state=0),
        Regressor(prune="cv", random_state=0, rule=None),
        Regressor(prune="cv", random_state=0, rule=2.0, scoring="r2"),
    ):
        ax = model.fit(X, y).cp_table_.plot()
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert any(label.startswith("selected") for label in labels) == (model.rule is not None)
        assert ax.get_xscale() == "log"
        mpl.pyplot.close(ax.figure)
    _, ax = mpl.pyplot.subplots()
    small = Classifier(prune="cv", random_state=0).fit(X2, y2)
    assert spinney.plot_cp(small, ax=ax) is ax
    assert ax.get_xscale() == "linear"
    line = next(line for line in ax.lines if line.get_linestyle() == "--")
    table = small.cp_table_
    best = np.argmin(table.cv_error)
    assert line.get_ydata()[0] == pytest.approx(table.cv_error[best] + table.cv_se[best])
    mpl.pyplot.close(ax.figure)
    with pytest.raises(ValueError, match="prune='cv'"):
        spinney.plot_cp(Classifier().fit(X2, y2))


def saved_and_loaded(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return spinney.load(file)


def test_saved_and_pickled_models_keep_the_table():
    X, y = load_diabetes(return_X_y=True)
    model = Regressor(prune="cv", cv=KFold(3), random_state=0).fit(X, y)
    pickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(pickled.oof_predictions_, model.oof_predictions_)
    assert str(pickled.cp_table_) == str(model.cp_table_)
    loaded = saved_and_loaded(model)
    assert 90 < len(loaded.cp_table_) <= 100
    assert loaded.alpha_ == model.alpha_
    assert loaded.prune == "cv"
    assert loaded.cv == 10
    chosen, before = loaded.cp_table_.chosen, model.cp_table_
    for name in COLUMNS:
        assert getattr(loaded.cp_table_, name)[chosen] == getattr(before, name)[before.chosen]
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert not hasattr(saved_and_loaded(Regressor().fit(X, y)), "cp_table_")
    assert saved_and_loaded(Regressor().fit(X, y).pruned(alpha=np.inf)).alpha_ == np.inf


@pytest.mark.parametrize(
    "damage",
    [
        {"alpha": "much"},
        {"alpha": -1},
        {"cp_table": []},
        {"cp_table": {}},
        {"chosen": 10**6},
        {"chosen": 1.5},
        {"n_leaves": [1]},
        {"n_leaves": [10**30] * 5},
        {"cv_error": ["a"] * 5},
        {"cv_error": None},
        {"scoring": 3},
        {"rule": []},
    ],
)
def test_damaged_tables_are_refused(damage):
    from spinney._model.file.container import ModelFileError, model_file_errors
    from spinney._tree.complexity_table import SAVED_PRUNING

    X, y = load_iris(return_X_y=True)
    model = Classifier(prune="cv", random_state=0).fit(X, y)
    header = SAVED_PRUNING.to_header(vars(model))
    assert SAVED_PRUNING.from_header(header)["alpha_"] == model.alpha_
    if damage.keys() & header.keys():
        header |= damage
    else:
        header["cp_table"] |= damage
    with pytest.raises(ModelFileError), model_file_errors("this file"):
        SAVED_PRUNING.from_header(header)


def test_clones_and_checks_of_scikit_learn():
    from sklearn.model_selection import GridSearchCV

    X, y, _ = problem("classes")
    model = Classifier(prune="cv", cv=KFold(3), random_state=0)
    copy = clone(model)
    assert copy.get_params()["cv"].n_splits == 3
    search = GridSearchCV(model, {"rule": ["min", "1se"], "prune": ["cv", None]}, cv=3).fit(X, y)
    assert search.best_params_["prune"] in ("cv", None)


def test_the_unit_of_the_target_does_not_matter():
    """Penalties are in squares of it, and the products of two of them vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X[:, 0] + rng.normal(size=100)
    sizes = [Regressor(prune="cv", cv=3, random_state=0).fit(X, y * unit).get_n_leaves() for unit in (1.0, 1e-120)]
    assert sizes[0] == sizes[1] > 1
