"""The default shrinkage of forests, chosen by out-of-bag loss."""

import numpy as np
import pytest
import spinney
from oracle.saved import through_bytes
from oracle.shrinkage import true_class_proba
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from spinney import ExtraTreesClassifier, RandomForestClassifier
from spinney._forest.shrinkage import DEFAULT, STRENGTHS, LearningRows, clearly_best, evaluation_rows

KINDS = [RandomForestClassifier, ExtraTreesClassifier]


def table(n=120, noise=0.3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4)).round(1)
    return X, (X[:, 0] + noise * random.normal(size=n) > 0).astype(int)


def test_out_of_bag_probabilities():
    X, y = load_iris(return_X_y=True)
    X, Y = X[::3], np.column_stack([y, y % 2])[::3]
    forest = RandomForestClassifier(7, shrinkage=None, random_state=0).fit(X, Y)
    unseen = np.stack([forest._draws.counts(t) == 0 for t in range(7)]).astype(float)
    unseen[3] *= 0.25
    strengths, codes = np.array([0.01, 1.0, 30.0]), Y.astype(np.int32)
    found = [
        forest.forest_.engine.true_class_proba(forest.apply(X).astype(np.uint32), unseen, codes, [3, 2], strengths, n)
        for n in (1, 2, 5)
    ]
    slow = true_class_proba(
        [forest.forest_.tree(t) for t in range(7)], forest.apply(X), unseen, codes, [3, 2], strengths
    )
    np.testing.assert_allclose(found[0].reshape(slow.shape), slow, rtol=1e-11)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_shrunk_much_and_what_is_clear_little(kind):
    X, y = table(noise=3.0)
    noisy = kind(60, random_state=0).fit(X, y)
    assert noisy.shrinkage_ >= 3
    given = kind(60, shrinkage=noisy.shrinkage_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(noisy.forest_.engine.value, given.forest_.engine.value)
    clear = kind(60, random_state=0).fit(X[:, :1], (X[:, 0] > 0).astype(int))
    assert clear.shrinkage_ == STRENGTHS[0]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_without_information_cost_next_to_nothing(kind):
    """One row in fifteen is of the second class, whatever its values: the constant is the best there is."""
    random = np.random.default_rng(2)
    X, y = random.normal(size=(3000, 6)), (random.random(3000) < 1 / 15).astype(int)
    forest = kind(60, random_state=0).fit(X[:1500], y[:1500])
    assert forest.shrinkage_ >= 100
    constant = np.full(1500, y[:1500].mean())
    assert log_loss(y[1500:], forest.predict_proba(X[1500:])[:, 1]) < 1.02 * log_loss(y[1500:], constant)


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_depends_neither_on_threads_nor_on_the_order_of_rows_nor_on_copies(kind):
    X, y = table(n=80, noise=3.0)
    twice = np.arange(80) < 20
    forest = kind(50, random_state=1, n_jobs=1).fit(X, y, 1.0 + twice)
    order = np.random.default_rng(0).permutation(80)
    for other in (
        kind(50, random_state=1, n_jobs=3).fit(X[order], y[order], 3.0 * (1.0 + twice)[order]),
        kind(50, random_state=1).fit(np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]])),
    ):
        assert other.shrinkage_ == forest.shrinkage_
        np.testing.assert_array_equal(other.predict_proba(X), forest.predict_proba(X))


def test_few_trees_costs_and_own_numbers_are_as_ever():
    X, y = table()
    usual = STRENGTHS[DEFAULT]
    assert RandomForestClassifier(10, random_state=0).fit(X, y).shrinkage_ == usual
    assert RandomForestClassifier(50, random_state=0, priors=[0.5, 0.5]).fit(X, y).shrinkage_ == usual
    assert RandomForestClassifier(10, shrinkage=2.0, random_state=0).fit(X, y).shrinkage_ == 2.0
    assert RandomForestClassifier(10, shrinkage=None, random_state=0).fit(X, y).shrinkage_ == 0.0
    member = RandomForestClassifier(10, random_state=0).fit(X, y)[0]
    assert clone(member).fit(X, y).shrinkage_ == usual  # a tree alone chooses nothing
    with pytest.raises(ValueError, match="shrinkage"):
        spinney.RandomForestRegressor(shrinkage="auto").fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_and_a_file_keep_the_strength(kind):
    X, y = table(noise=3.0)
    forest = kind(50, warm_start=True, random_state=0).fit(X, y)
    strength = forest.shrinkage_
    loaded = through_bytes(forest)
    assert loaded.shrinkage_ == strength
    longer = loaded.set_params(n_estimators=55, warm_start=True).fit(X, y)
    assert longer.shrinkage_ == strength
    at_once = clone(forest).set_params(n_estimators=55, shrinkage=strength).fit(X, y)
    np.testing.assert_array_equal(longer.predict_proba(X), at_once.predict_proba(X))


@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_that_passes_fifty_trees_is_the_forest_grown_at_once(kind):
    X, y = table(noise=3.0)
    forest = kind(9, warm_start=True, random_state=0).fit(X, y)
    forest.set_params(n_estimators=52).fit(X, y)
    at_once = kind(52, random_state=0).fit(X, y)
    assert forest.shrinkage_ == at_once.shrinkage_ > STRENGTHS[DEFAULT]
    np.testing.assert_array_equal(forest.forest_.engine.value, at_once.forest_.engine.value)
    changed = kind(9, warm_start=True, random_state=0).fit(X, y).set_params(n_estimators=52, max_depth=2).fit(X, y)
    assert changed.shrinkage_ == STRENGTHS[DEFAULT]  # the first trees are kept


def test_out_of_bag_scores_are_those_of_the_shrunken_trees():
    X, y = table(noise=3.0)
    forest = RandomForestClassifier(50, oob_score=True, random_state=0).fit(X, y)
    same = RandomForestClassifier(50, oob_score=True, shrinkage=forest.shrinkage_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(forest.oob_decision_function_, same.oob_decision_function_)
    np.testing.assert_array_equal(forest.oob_curve_, same.oob_curve_)


def test_the_usual_strength_stays_unless_another_is_clearly_better():
    losses = np.tile(np.array([[0.5], [0.4], [0.39], [0.6], [0.6], [0.6], [0.6]]), (1, 100))
    assert clearly_best(losses, None, None) == 2  # every row is better off
    losses[2] += np.random.default_rng(0).normal(size=100)
    assert clearly_best(losses, None, None) == DEFAULT
    assert clearly_best(np.full((7, 3), np.nan), None, None) == DEFAULT


def test_many_rows_are_evaluated_on_a_subset_chosen_by_values():
    keys = np.random.default_rng(0).integers(0, 2**64, size=20_000, dtype=np.uint64)
    columns = spinney._engine.Table(20_000)
    columns.add_number(np.arange(20_000.0))
    rows = LearningRows(columns, columns, np.zeros((20_000, 1), dtype=np.int32), [1], fingerprints=keys)
    some, chosen = evaluation_rows(rows)
    assert 3800 < len(chosen) < 4200
    expected = np.flatnonzero(rows.keys < np.uint64(2**64 // 20_000 * 4000))
    np.testing.assert_array_equal(some.columns.column(0), expected)
