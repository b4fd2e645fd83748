"""Small tables for the tests, and the scikit-learn trees that they are compared with."""

import functools
import itertools

import numpy as np
from sklearn import clone, config_context
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from oracle.impurity import CLASSIFICATION


def continuous_table(seed, n=80, n_columns=4, missing=False, categories=()):
    """Distinct values that float32 holds exactly; `categories` maps a column to its number of categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns)).astype(np.float32).astype(float)
    for column, n_categories in dict(categories).items():
        X[:, column] = rng.integers(n_categories, size=n)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
        X[:, -1] = np.where(np.isnan(X[:, -1]), 0.25, X[:, -1])
    return X


def target_for(criterion, X, seed, n_classes=2, n_outputs=1):
    """A noisy target that depends on every column, missing values and categories included."""
    rng = np.random.default_rng(seed + 1000)
    clean = np.where(np.isnan(X), 0.8, X)
    signal = np.sin(1.5 * clean[:, 0]) + 0.8 * clean[:, 1] + 0.3 * clean.sum(axis=1)
    outputs = []
    for k in range(n_outputs):
        score = (signal if k == 0 else clean[:, k % X.shape[1]]) + rng.normal(size=len(X)) * 0.7
        if criterion in CLASSIFICATION:
            outputs.append(np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score))
        elif criterion == "poisson":
            outputs.append(rng.poisson(np.exp(0.4 * score)) + 0.0)
        else:
            outputs.append(score)
    return outputs[0] if n_outputs == 1 else np.stack(outputs, axis=1)


def weights_for(seed, n, kind):
    """None, integers (some zero), or reals."""
    rng = np.random.default_rng(seed + 2000)
    return {"none": None, "integer": rng.integers(0, 4, size=n) * 1.0, "real": rng.uniform(0.2, 3.0, size=n)}[kind]


def sklearn_tree(criterion, **params):
    params.setdefault("random_state", 0)
    if criterion in CLASSIFICATION:
        return DecisionTreeClassifier(criterion=criterion, **params)
    return DecisionTreeRegressor(criterion="squared_error" if criterion == "friedman_mse" else criterion, **params)


def same_structure(first, second):
    return np.array_equal(first.feature, second.feature) and np.array_equal(first.threshold, second.threshold)


def is_stable(tree, X, y, weights):
    """Whether every row of weights gives the same tree again."""
    again, as_stored = clone(tree), np.asarray(X, dtype=np.float32)
    with config_context(skip_parameter_validation=True, assume_finite=not np.isnan(X).any()):
        return all(
            same_structure(tree.tree_, again.fit(as_stored, y, sample_weight=w, check_input=np.isnan(X).any()).tree_)
            for w in weights
        )


@functools.cache
def tie_free(criterion, weights="none", missing=False, n_classes=2, n_outputs=1, n=80, **params):
    """Return (X, y, w, tree): the first seed whose scikit-learn tree is stable.

    Changing the weights by a millionth part breaks exact ties, and ties up to rounding, one way or the other;
    a table whose tree withstands that has none.
    """
    for seed in itertools.count():
        X = continuous_table(seed, n, missing=missing)
        y = target_for(criterion, X, seed, n_classes, n_outputs)
        w = weights_for(seed, n, weights)
        tree = sklearn_tree(criterion, **params).fit(X, y, sample_weight=w)
        shaken = (np.ones(n) if w is None else w) * (1 + 1e-6 * np.random.default_rng(seed).random((14, n)))
        if is_stable(tree, X, y, shaken):
            return X, y, w, tree
    raise AssertionError("unreachable")
