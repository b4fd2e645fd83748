"""Trees of tables that are mostly 0: grown from the other entries, and the same as from all rows, bit for bit."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import spinney
from oracle.check import check_tree
from oracle.models import assert_identical
from sklearn.base import clone

SEEDS = range(12)
SHIFT = 8.0  # whole numbers and their halves are moved by it without rounding


def sparse_of(X, random):
    """The same table as compressed columns; a few zeros are stored."""
    stored = (X != 0) | (random.random(X.shape) < 0.01)
    rows, columns = np.nonzero(stored)
    return sp.csc_matrix((X[rows, columns], (rows, columns)), shape=X.shape)


def make_table(seed, missing=True):
    """Whole numbers, or 0 and 1, or one value below 0 in some columns; most are 0."""
    random = np.random.default_rng(seed)
    shape = random.integers(30, 250), random.integers(3, 30)
    kinds = np.stack(
        [np.ones(shape), random.integers(-3, 6, shape), np.full(shape, -2.0), random.integers(1, 60, shape)]
    )
    values = np.take_along_axis(kinds, random.integers(4, size=shape[1])[None, None, :], axis=0)[0]
    X = np.where(random.random(shape) < random.choice([0.03, 0.1, 0.2]), values, 0.0)
    if missing and seed % 3 == 0:
        X[(random.random(shape) < 0.03) & (np.arange(shape[1]) % 2 == 0)] = np.nan
    return X, random


def target_of(X, random, n_classes):
    score = np.nan_to_num(X) @ random.standard_normal(X.shape[1]) + random.standard_normal(len(X))
    return score.round(2) if n_classes == 0 else np.argsort(np.argsort(score)) * n_classes // len(X)


def weights_of(X, random, seed):
    if seed % 4 == 1:
        return random.integers(0, 4, len(X)).astype(float)
    return random.random(len(X)) + 0.1 if seed % 4 == 2 else None


def models(seed):
    """(model, number of classes; 0: values) of every kind that grows from entries."""
    random = np.random.default_rng(seed)
    every = {
        "random_state": seed,
        "n_jobs": int(random.integers(1, 5)),
        "min_samples_leaf": int(random.choice([1, 1, 3])),
    }
    for criterion in ("gini", "entropy", "gain_ratio", "misclassification", "chi2"):
        for n_classes in (2, 5):
            yield spinney.DecisionTreeClassifier(criterion=criterion, **every), n_classes
    yield spinney.DecisionTreeClassifier(**every), 40
    for extra in ({}, {"max_features": "sqrt"}, {"min_weight_fraction_leaf": 0.05}, {"splitter": "random"}):
        yield spinney.DecisionTreeRegressor(**extra, **every), 0
        yield spinney.DecisionTreeClassifier(**extra, **every), 2
    for max_features in ("sqrt", None):
        for forest in (spinney.RandomForestClassifier, spinney.ExtraTreesClassifier):
            for n_classes in (2, 5):
                yield forest(3, max_features=max_features, **every), n_classes
        for forest in (spinney.RandomForestRegressor, spinney.ExtraTreesRegressor):
            yield forest(3, max_features=max_features, **every), 0


def grown(model, X, y, w):
    model = clone(model).fit(X, y, sample_weight=w)
    return [model] if hasattr(model, "tree_") else model.estimators_


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_and_dense_give_the_same_trees(seed):
    X, random = make_table(seed)
    S = sparse_of(X, random)
    w = weights_of(X, random, seed)
    for model, n_classes in models(seed):
        y = target_of(X, np.random.default_rng(seed), n_classes)
        for a, b in zip(grown(model, S, y, w), grown(model, X, y, w), strict=True):
            assert_identical(a, b)


@pytest.mark.parametrize("seed", SEEDS)
def test_growing_from_entries_is_growing_from_all_rows(seed):
    """A table without zeros is grown from all its rows: moved by a number, it must give the same splits."""
    X, random = make_table(seed)
    S = sparse_of(X, random)
    w = weights_of(X, random, seed)
    for model, n_classes in models(seed):
        y = target_of(X, np.random.default_rng(seed), n_classes)
        if hasattr(model, "bootstrap"):  # samples are drawn by the rows' values
            model.set_params(bootstrap=False)
        who = str(model)
        is_drawn = "Extra" in type(model).__name__ or getattr(model, "splitter", "best") == "random"
        for entries, all_rows in zip(grown(model, S, y, w), grown(model, X + SHIFT, y, w), strict=True):
            a, b = entries.tree_, all_rows.tree_
            for name in ("children_left", "children_right", "feature", "impurity", "value", "weighted_n_node_samples"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=f"{who} {name}")
            splits = a.feature >= 0
            compare = np.testing.assert_allclose if is_drawn else np.testing.assert_array_equal
            compare(a.threshold[splits], b.threshold[splits] - SHIFT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_each_split_is_the_best_of_all(seed):
    X, random = make_table(seed)
    for model, n_classes in ((spinney.DecisionTreeClassifier(), 2), (spinney.DecisionTreeRegressor(), 0)):
        y = target_of(X, random, n_classes)
        check_tree(model.fit(sparse_of(X, random), y), X, y)


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_and_dense_are_boosted_alike(seed):
    X, random = make_table(seed)
    w = weights_of(X, random, seed)
    options = {"n_estimators": 4, "min_samples_leaf": 3, "random_state": seed, "n_jobs": 1 + seed % 4}
    for extra in ({}, {"max_bins": 5}):
        for n_classes in (0, 2, 3):
            kind = spinney.GradientBoostingClassifier if n_classes else spinney.GradientBoostingRegressor
            y = target_of(X, np.random.default_rng(seed), n_classes)
            prints = {
                kind(**options, **extra).fit(table, y, sample_weight=w).fingerprint()
                for table in (X, sparse_of(X, random), sparse_of(X, random).astype(np.float32))
            }
            assert len(prints) == 1


def listed_table(seed, n_rows=1_500):
    """Columns of many values: below 0, missing, all the same, hardly or never there; and one that is full."""
    random = np.random.default_rng(seed)
    X = np.where(random.random((n_rows, 40)) < 0.04, random.standard_normal((n_rows, 40)).round(2), 0.0)
    X[:, 30:34] = np.abs(X[:, 30:34])
    X[:, 34] *= -np.sign(X[:, 34])
    X[:, 35] = (random.random(n_rows) < 0.03) * 2.5
    X[:, 36] = 0.0
    X[3, 37:39] = 1.0
    X[:, 38] = np.where(random.random(n_rows) < 0.02, np.nan, 0.0)
    X[random.random(n_rows) < 0.02, 5] = np.nan
    X[:, 39] = random.standard_normal(n_rows)  # no list
    return X, random


@pytest.mark.parametrize(
    ("n_classes", "options"),
    [
        (0, {}),
        (2, {}),
        (3, {}),
        (2, {"subsample": 0.5}),
        (3, {"max_features": 0.5, "max_depth": 3}),
        (0, {"min_samples_leaf": 1, "max_leaf_nodes": 60}),
        (2, {"monotonic_cst": [1, -1] * 20}),
        (0, {"interaction_cst": [list(range(20)), list(range(15, 40))]}),
        (2, {"early_stopping": True, "n_iter_no_change": 2}),
        (0, {"regularization": {"l1": 2.0}, "categorical_features": [35]}),
        (3, {"growth": "depth", "min_samples_leaf": 40}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_listed_columns_are_boosted_as_full_ones(n_classes, options):
    """Nodes of many rows have histograms of these columns, those of few have none."""
    X, random = listed_table(n_classes)
    y = target_of(X, random, n_classes)
    w = random.integers(0, 4, len(X)).astype(float) if "subsample" in options or "max_features" in options else None
    kind = spinney.GradientBoostingClassifier if n_classes else spinney.GradientBoostingRegressor
    every = {"n_estimators": 3, "learning_rate": 0.4, "random_state": 1, **options}
    prints = {
        kind(n_jobs=n_jobs, **every).fit(table, y, sample_weight=w).fingerprint()
        for table, n_jobs in ((X, 1), (sp.csc_matrix(X), 1), (sp.csr_matrix(X), 3))
    }
    assert len(prints) == 1


def test_infinite_values_are_cut_off_the_zeros():
    X = np.zeros((40, 5))
    X[:4, 0], X[4:8, 1], X[8:12, 2] = np.inf, -np.inf, 3.0
    y = np.arange(40) % 3
    for forest in (spinney.RandomForestClassifier, spinney.ExtraTreesClassifier):
        for max_features in (None, 2):
            model = forest(5, random_state=0, max_features=max_features)
            sparse, dense = model.fit(sp.csc_matrix(X), y).predict_proba(X), model.fit(X, y).predict_proba(X)
            np.testing.assert_array_equal(sparse, dense)


def test_a_column_of_stored_zeros_is_a_column_of_zeros():
    S = sp.csc_matrix((np.array([0.0, 0.0, -0.0, 1.0]), ([0, 3, 5, 2], [0, 0, 0, 1])), shape=(8, 2))
    y = np.array([0, 1, 1, 0, 0, 1, 0, 1])
    assert_identical(spinney.DecisionTreeClassifier().fit(S, y), spinney.DecisionTreeClassifier().fit(S.toarray(), y))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        "DecisionTreeClassifier()",
        "RandomForestClassifier(4)",
        "ExtraTreesClassifier(4)",
        "RandomForestRegressor(2)",
        "GradientBoostingClassifier(n_estimators=3)",
    ],
)
def test_memory_depends_on_the_entries_that_are_not_zero(model):
    """5,000 × 100,000 would be 4 GB in full; it holds 500,000 entries."""
    program = f"""
import numpy as np, scipy.sparse as sp, spinney
def status(name):
    return next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith(name)) / 1024
random = np.random.default_rng(0)
places = random.integers(5_000, size=500_000), random.integers(100_000, size=500_000)
X = sp.csc_matrix((random.random(500_000), places), (5_000, 100_000))
y = random.integers(2, size=5_000)
spinney.DecisionTreeClassifier(max_depth=1).fit(X[:100, :100], y[:100])
before = status('VmRSS')
spinney.{model}.set_params(max_depth=6, n_jobs=2).fit(X, y)
print(status('VmHWM') - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 250
