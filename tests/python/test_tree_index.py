"""Trees grown on columns that were sorted once are those that are grown by themselves, to the bit."""

import numpy as np
import pytest
import spinney
from spinney import _engine
from spinney._data import Schema, read_table
from spinney._ensemble.weak import WeakTrees


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
        trees = WeakTrees(template, schema, columns, n_classes)
        for shift in range(3):  # one index, several weights
            weights = np.roll(weight, shift) * 3.0**shift
            alone = kind(criterion=criterion, n_jobs=n_jobs, categorical_features=[3], **options)
            alone.fit(X, target, sample_weight=weights)
            found = trees.fit(target, np.ascontiguousarray(weights), seed=0)
            if n_classes is None or len(alone.classes_) == n_classes:
                assert found.__getstate__() == alone.tree_.engine.__getstate__()


def test_an_index_of_another_table_is_not_used():
    X, score, _ = table(50, seed=0)
    tables = [_engine.Table(len(rows)) for rows in (X, X[:20])]
    for built, rows in zip(tables, (X, X[:20]), strict=True):
        built.add_matrix(np.asfortranarray(rows[:, :1]))
    tree = spinney.DecisionTreeRegressor()
    schema = Schema.learn(read_table(X[:, :1]), categorical_features=None, unseen="missing")
    y = np.ascontiguousarray(score[:, np.newaxis])
    options = tree._growth_options(schema, 50, 50.0, (y, []), None, None, 0)
    index = _engine.TreeIndex(tables[1], 1)
    plain = _engine.grow_tree(tables[0], "squared_error", y, [], None, options)[0]
    found = _engine.grow_tree(tables[0], "squared_error", y, [], None, options, index)[0]
    assert found.__getstate__() == plain.__getstate__()
