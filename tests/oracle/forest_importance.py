"""Importances of a forest, slowly: whole tables are permuted and every row goes down every tree."""

import numpy as np

_MASK = 2**64 - 1


def _scramble(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def derive(key, branch):
    return _scramble((key + 0x9E3779B97F4A7C15 * (branch + 1)) & _MASK)


def permutation(n, seed, tree, column, repeat):
    """The order in which `n` out-of-bag rows lend their values."""
    key = derive(derive(derive(derive(seed, 103), tree), column), repeat)
    count = 0
    order = list(range(n))
    for i in range(n - 1):
        left = n - i
        while True:
            product = derive(key, count) * left
            count += 1
            if product & _MASK >= (2**64 - left) % left:
                break
        j = i + (product >> 64)
        order[i], order[j] = order[j], order[i]
    return np.array(order, dtype=np.intp)


def spreads(y, weight, loss):
    """What the best constant loses, output by output; 1 for a single one, which keeps its units."""
    if y.shape[1] == 1 or loss not in ("squared_error", "absolute_error"):
        return np.ones(y.shape[1])
    if loss == "squared_error":
        return np.average((y - np.average(y, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
    return np.min([np.average(np.abs(y - constant), axis=0, weights=weight) for constant in y], axis=0)


def losses(tree, X, y, loss, spread):
    """Loss of each row; y has a column per output."""
    if loss in ("squared_error", "absolute_error"):
        off = tree.predict(X).reshape(y.shape) - y
        return ((off**2 if loss == "squared_error" else np.abs(off)) / spread).mean(axis=1)
    if loss == "error":
        return (tree.predict(X).reshape(y.shape) != y).mean(axis=1)
    shares = tree.predict_proba(X)
    shares, classes = (shares, tree.classes_) if isinstance(shares, list) else ([shares], [tree.classes_])
    total = np.zeros(len(y))
    for k, (share, labels) in enumerate(zip(shares, classes, strict=True)):
        right = labels == y[:, k][:, np.newaxis]
        if loss == "brier":
            total += ((share - right) ** 2).sum(axis=1)
        else:
            total += np.where(right, 0, share).max(axis=1) - (share * right).sum(axis=1)
    return total / y.shape[1]


def permutation_importances(forest, X, y, groups, *, loss, n_repeats=1, weight=None, seed=None):
    """Rises by tree and group, and mean rises by row and group; X is a pandas frame, groups are lists of positions."""
    y = np.asarray(y).reshape(len(X), -1)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    seed = forest._growth.seed if seed is None else seed
    rises = np.full((len(forest), len(groups)), np.nan)
    spread = spreads(y, weight, loss)
    row_sums, row_trees = np.zeros((len(X), len(groups))), np.zeros(len(X))
    for t, tree in enumerate(forest.estimators_):
        rows = np.flatnonzero((forest._draws.counts(t) == 0) & (weight > 0))
        if len(rows) == 0:
            continue
        row_trees[rows] += 1
        before = losses(tree, X.iloc[rows], y[rows], loss, spread)
        for g, group in enumerate(groups):
            rise = np.zeros(len(rows))
            for repeat in range(n_repeats):
                order = permutation(len(rows), seed, t, group[0], repeat)
                other = X.iloc[rows].copy()
                for j in group:
                    other[X.columns[j]] = X.iloc[rows[order], j].array
                rise += losses(tree, other, y[rows], loss, spread) - before
            rise /= n_repeats
            rises[t, g] = np.average(rise, weights=weight[rows])
            row_sums[rows, g] += rise
    with np.errstate(invalid="ignore"):
        return rises, row_sums / row_trees[:, np.newaxis]


def unbiased_importances(forest, X, y, weight=None):
    """Out-of-bag decrease of the impurity by tree and column."""
    targets = np.asarray(y).reshape(len(X), -1)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    found = np.zeros((len(forest), X.shape[1]))
    for t, tree in enumerate(forest.estimators_):
        rows = np.flatnonzero((forest._draws.counts(t) == 0) & (weight > 0))
        passes = tree.decision_path(X.iloc[rows]).toarray() > 0
        fitted = tree.tree_
        for node in range(fitted.node_count):
            if fitted.is_leaf[node]:
                continue
            left, right = node + 1, fitted.children_right[node]
            here = [rows[passes[:, child]] for child in (left, right)]
            if not all(len(some) for some in here):
                continue
            w = [weight[some].sum() for some in here]
            product = 0.0
            for k in range(targets.shape[1]):
                if hasattr(forest, "classes_"):
                    labels = forest.classes_ if targets.shape[1] == 1 else forest.classes_[k]
                    known = (targets[:, k][:, np.newaxis] == labels).astype(float)
                    inside = fitted.value[left, k, : len(labels)] - fitted.value[right, k, : len(labels)]
                else:
                    known = targets[:, [k]]
                    inside = fitted.value[left, k] - fitted.value[right, k]
                means = [np.average(known[some], axis=0, weights=weight[some]) for some in here]
                product += inside @ (means[0] - means[1])
            gain = w[0] * w[1] / sum(w) * product / targets.shape[1]
            found[t, fitted.feature[node]] += gain / weight[rows].sum()
    return found
