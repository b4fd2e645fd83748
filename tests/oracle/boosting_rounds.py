"""Rounds of boosting that drop others, draw rows by their gradients or set leaves anew, in floats and row by row."""

import numpy as np

from oracle import boosting as reference
from oracle.tree_keys import derive


def unit(key, branch):
    return (derive(key, branch) >> 11) * 2.0**-53


def scale_of_drops(dropped, n_rounds):
    """By round: what its trees are multiplied by after so many rounds; a round's own share is part of its trees."""
    worth = np.ones(n_rounds)
    for rounds in dropped[:n_rounds]:
        for t in rounds:
            worth[t] *= len(rounds) / (len(rounds) + 1)
    return worth


def drawn_rounds(seed, n_done, dropped, rate, skip=0.0, most=None, by_weight=False):
    """Rounds that the next one does without."""
    key = derive(derive(seed, 13), n_done)
    if n_done == 0 or unit(key, 0) < skip:
        return []
    weight = np.ones(n_done)
    if by_weight:
        weight = scale_of_drops(dropped, n_done) / [len(rounds) + 1 for rounds in dropped]
    times = np.array([unit(key, t + 1) for t in range(n_done)]) * weight.mean() / weight
    order = np.argsort(times, kind="stable")
    n = max(1, int((times < rate).sum()))
    return sorted(order[: n if most is None else min(n, most)].tolist())


def values_of(root, g, h, rate, rules, n):
    """What a tree adds to each row."""
    found = np.zeros(n)
    for node in root.preorder():
        if not node.children:
            found[node.rows] = rate * reference.step(g[node.rows].sum(), h[node.rows].sum(), rules)
    return found


def dart(X, y, n_rounds, rate, rules, seed, learning_rate, **drops):
    """Scores after each round of squared errors, from 0, and what each round has dropped."""
    n, f = len(y), np.zeros(len(y))
    trees, dropped, stages = [], [], []
    for t in range(n_rounds):
        without = drawn_rounds(seed, t, dropped, rate, **drops)
        worth = scale_of_drops(dropped, t)
        f = sum((worth[i] * trees[i] for i in range(t) if i not in without), np.zeros(n))
        g, h = f - y, np.ones(n)
        root = reference.grow(X, g, h, np.arange(n), rules)
        trees.append(values_of(root, g, h, learning_rate / (len(without) + 1), rules, n))
        dropped.append(without)
        worth = scale_of_drops(dropped, t + 1)
        stages.append(sum((worth[i] * trees[i] for i in range(t + 1)), np.zeros(n)))
    return stages, dropped


def goss_rows(gradients, top_fraction, subsample, seed, round_):
    """Rows that are drawn, ascending, and what each stands for."""
    n = len(gradients)
    n_top = int(np.clip(np.round(top_fraction * n), 1, n))
    n_some = min(max(1, int(np.round((subsample - top_fraction) * n))), n - n_top)
    order = sorted(range(n), key=lambda r: (-np.float32(abs(gradients[r])), r))
    key = derive(derive(seed, 11), round_)
    some = sorted(order[n_top:], key=lambda r: derive(key, r))[:n_some]
    factor = np.zeros(n)
    factor[order[:n_top]] = 1.0
    factor[some] = (n - n_top) / n_some
    return np.flatnonzero(factor), factor


def refit(trees, leaves, y, f, loss, decay, rate, l2=0.0):
    """Values of the leaves of trees, by leaf of each row in each, updated from scores f; old ones by node."""
    found = []
    for old, leaf in zip(trees, leaves, strict=True):
        g, h = reference.gradients(loss, y, f)
        values = old.copy()
        for node in np.unique(leaf):
            rows = leaf == node
            values[node] = decay * old[node] - (1 - decay) * rate * g[rows].sum() / (h[rows].sum() + l2)
        f = f + values[leaf]
        found.append(values)
    return found


def rounds_until_settled(losses, patience, tol, worth, of_present):
    """After how many losses the least has not fallen enough for `patience` of them; None if it always has."""
    for n in range(patience + 1, len(losses) + 1):
        least = min(losses[:n])
        needed = max(tol, worth * abs(least if of_present else losses[0]))
        if least >= min(losses[: n - patience]) - needed:
            return n
    return None
