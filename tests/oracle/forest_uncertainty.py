"""Uncertainty of forests by loops over rows and trees, from the formulas as they are written."""

import math

import numpy as np


def drawn_counts(forest, n_rows):
    """How often each row was drawn, (n_trees, n_rows)."""
    if not forest.bootstrap:
        return np.ones((len(forest), n_rows))
    return np.array([np.bincount(rows, minlength=n_rows) for rows in forest.estimators_samples_], dtype=float)


def slow_weights(forest, queries, train, by_tree, oob=False):
    """Weight of each training row for each query; `by_tree` has the weight of each row in each tree's growth."""
    leaf, known = forest.apply(queries), forest.apply(train)
    found = np.zeros((len(leaf), len(known)))
    for q in range(len(leaf)):
        n_used = 0
        for t in range(leaf.shape[1]):
            if oob and by_tree[t, q] > 0:
                continue
            share = np.where(known[:, t] == leaf[q, t], by_tree[t], 0.0)
            found[q] += share / share.sum()
            n_used += 1
        found[q] = found[q] / n_used if n_used else np.nan
    return found


def slow_quantile(y, weight, level):
    """Smallest y at or below which at least the share `level` of the weight lies."""
    if np.isnan(weight).any():
        return np.nan
    total = 0.0
    for value in np.unique(y[weight > 0]):
        total = math.fsum(weight[y <= value])
        if total >= level - 1e-10:
            return value
    return value


def tree_predictions(forest, X, k=0):
    """Return the k-th value of each tree for each row, (n_trees, n_rows)."""
    engine = forest.forest_.engine
    nodes = forest.apply(X) + engine.root[:-1]
    return engine.value.reshape(-1, engine.value_width)[nodes, k].T


def slow_infinitesimal(counts, f, scale=1.0, corrected=True):
    """Wager, Hastie and Efron's estimate for one row: `counts` (n_trees, n_units), `f` (n_trees,)."""
    n_trees, n_units = counts.shape
    total = np.zeros(n_units)
    for u in range(n_units):
        total[u] = np.mean((counts[:, u] - counts[:, u].mean()) * (f - f.mean())) ** 2
    noise = counts.var(axis=0) * f.var() / n_trees
    return float(np.sum(scale * (total - noise if corrected else total)))


def slow_jackknife(counts, f, corrected=True):
    """Jackknife after bootstrap for one row."""
    n_trees, n_units = counts.shape
    total = 0.0
    for u in range(n_units):
        without = f[counts[:, u] == 0]
        total += (without.mean() - f.mean()) ** 2
        if corrected:
            total -= f.var() * (1 / len(without) - 1 / n_trees)
    return (n_units - 1) / n_units * total


def slow_upper_point(scores, coverage):
    """The ⌈coverage (n + 1)⌉-th smallest score."""
    k = math.ceil(coverage * (len(scores) + 1) - 1e-9)
    return np.sort(scores)[k - 1] if k <= len(scores) else np.inf


def slow_jackknife_plus(counts, by_tree, known_by_tree, y, coverage):
    """Jackknife+ after bootstrap for one row; predictions of the trees for it and for the training rows."""
    lows, highs = [], []
    for i in range(len(y)):
        out = counts[:, i] == 0
        if out.any():
            error = abs(y[i] - known_by_tree[out, i].mean())
            lows.append(by_tree[out].mean() - error)
            highs.append(by_tree[out].mean() + error)
    return -slow_upper_point(-np.array(lows), coverage), slow_upper_point(np.array(highs), coverage)
