"""Trees grown on columns that were sorted once are those that are grown by themselves, to the bit."""

import numpy as np
import pytest
import spinney
from hypothesis import example, given
from hypothesis import strategies as st
from spinney import _engine
from spinney._data import Schema, read_table
from spinney._ensemble.adaboost.members import TreeMembers
from spinney._tree.settings import GrowthTarget
from sweep import examples


def table(n_rows, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 6))
    X[:, 1] = np.round(X[:, 1])  # few values
    X[:, 2] = np.where(random.random(n_rows) < 0.3, np.nan, X[:, 2])
    X[:, 3] = random.integers(0, 6, n_rows)  # categories
    X[:, 4] = 1.0  # one value
    X[:, 5] = np.where(random.random(n_rows) < 0.5, np.nan, 0.0)  # one value, or none
    score = X[:, 0] + np.nan_to_num(X[:, 2], nan=1.0) + (X[:, 3] == 2) + random.normal(size=n_rows)
    return X, score, random.random(n_rows) * (random.random(n_rows) < 0.9)


@pytest.mark.parametrize("n_rows", [7, 300, 9000])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("criterion", "n_classes"),
    [("gini", 2), ("entropy", 2), ("misclassification", 2), ("gini", 3), ("squared_error", None), ("poisson", None)],
)
def test_the_tree_is_the_same(n_rows, n_jobs, criterion, n_classes):
    X, score, weight = table(n_rows, seed=n_rows)
    kind = spinney.DecisionTreeRegressor if n_classes is None else spinney.DecisionTreeClassifier
    target = np.abs(score) if n_classes is None else np.digitize(score, [0.5, 1.5][: n_classes - 1]).astype(np.int32)
    for options in ({"max_depth": 1}, {"max_depth": 3}, {}, {"min_samples_leaf": 5, "max_leaf_nodes": 9}):
        template = kind(criterion=criterion, n_jobs=n_jobs, **options)
        raw = read_table(X)
        schema = Schema.learn(raw, categorical_features=[3], unseen="missing")
        columns = schema.encode(raw, unseen="missing", estimator="test")
        classes = None if n_classes is None else np.arange(n_classes)
        trees = TreeMembers(
            schema=schema, unseen="missing", owner="test", template=template, table=columns, classes=classes
        )
        for shift in range(2):  # one index, several weights
            weights = np.roll(weight, shift) * 3.0**shift
            alone = kind(criterion=criterion, n_jobs=n_jobs, categorical_features=[3], **options)
            alone.fit(X, target, sample_weight=weights)
            found = trees.fit(target, np.ascontiguousarray(weights), seed=0)
            if n_classes is None or len(alone.classes_) == n_classes:
                assert found.__getstate__() == alone.tree_.engine.__getstate__()


def any_column(random, kind, n_rows):
    """A column of one of several kinds, with ties and gaps."""
    numbers = random.normal(size=n_rows)
    return {
        "numbers": numbers,
        "skewed": np.exp(3 * numbers),
        "few": np.round(numbers),
        "two": (numbers > 1).astype(float),
        "ties": np.where(numbers > 0.5, 7.0, np.round(50 * numbers)),
        "gaps": np.where(random.random(n_rows) < 0.2, np.nan, numbers),
        "sorted": np.sort(numbers),
        "empty": np.full(n_rows, np.nan),
    }[kind]


KINDS = ["numbers", "skewed", "few", "two", "ties", "gaps", "sorted", "empty"]


@examples(25)
@given(
    seed=st.integers(0, 2**31),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=11),
    criterion=st.sampled_from(["gini", "entropy", "misclassification", "gain_ratio", "chi2", "squared_error"]),
    heavy=st.sampled_from([0.0, 1.0, 4.0]),
    leaf=st.sampled_from([1, 1, 40]),
    depth=st.integers(1, 3),
)
@example(seed=1, kinds=["numbers", "empty", "numbers"], criterion="entropy", heavy=4.0, leaf=1, depth=1)
@example(seed=1, kinds=["empty"], criterion="entropy", heavy=4.0, leaf=1, depth=1)
def test_steps_find_the_cuts_of_sorted_rows(seed, kinds, criterion, heavy, leaf, depth):
    random = np.random.default_rng(seed)
    n_rows = int(random.integers(4096, 5000))  # below 4096 rows there are no steps
    X = np.column_stack([any_column(random, kind, n_rows) for kind in kinds])
    score = np.nan_to_num(X).clip(-2, 2).sum(axis=1) + random.normal(size=n_rows)
    kind = spinney.DecisionTreeRegressor if criterion == "squared_error" else spinney.DecisionTreeClassifier
    target = score if criterion == "squared_error" else (score > np.median(score)).astype(np.int32)
    weight = np.exp(heavy * random.normal(size=n_rows)) * (random.random(n_rows) < 0.95)
    tree = kind(criterion=criterion, max_depth=depth, min_samples_leaf=leaf).fit(X, target, sample_weight=weight)
    raw = read_table(X)
    schema = Schema.learn(raw, categorical_features=None, unseen="missing")
    columns = schema.encode(raw, unseen="missing", estimator="test")
    template = kind(criterion=criterion, max_depth=depth, min_samples_leaf=leaf)
    classes = None if criterion == "squared_error" else np.arange(2)
    trees = TreeMembers(
        schema=schema, unseen="missing", owner="test", template=template, table=columns, classes=classes
    )
    found = trees.fit(target, weight, seed=0)
    assert found.__getstate__() == tree.tree_.engine.__getstate__()
    np.testing.assert_array_equal(trees._leaves(found, columns), tree.apply(X))


def test_an_index_of_another_table_is_not_used():
    X, score, _ = table(50, seed=0)
    tables = [_engine.Table(len(rows)) for rows in (X, X[:20])]
    for built, rows in zip(tables, (X, X[:20]), strict=True):
        built.add_matrix(np.asfortranarray(rows[:, :1]))
    tree = spinney.DecisionTreeRegressor()
    schema = Schema.learn(read_table(X[:, :1]), categorical_features=None, unseen="missing")
    y = np.ascontiguousarray(score[:, np.newaxis])
    options = tree._settings.engine_options(schema, GrowthTarget([], 1), 50, 50.0, seed=0)
    index = _engine.TreeIndex(tables[1], 1)
    plain = _engine.grow_tree(tables[0], "squared_error", y, [], None, options)[0]
    found = _engine.grow_tree(tables[0], "squared_error", y, [], None, options, index)[0]
    assert found.__getstate__() == plain.__getstate__()
