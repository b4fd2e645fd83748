"""Slow reference implementation of `verify_constraints`: every row that the trees can distinguish, one by one."""

import itertools

import numpy as np


def points_of(model, j):
    """Return representative values of column j: each threshold, one beyond the last, categories, missing."""
    feature = model.schema_.features[j]
    if feature.kind == "category":
        return [*feature.categories, None]
    cuts = set()
    for tree in model._fitted.trees():
        cuts |= set(tree.threshold[tree.feature == j].tolist())
    cuts = sorted(cuts)
    return [*cuts, (cuts[-1] + 1 if cuts else 0.0), None]


def largest_decrease(model, column, direction, score):
    """Return the largest decrease of `score(rows)` between two values of a column, all else equal, and the rows."""
    points = [points_of(model, j) for j in range(model.n_features_in_)]
    others = [points[j] for j in range(len(points)) if j != column]
    values = [value for value in points[column] if value is not None]
    worst, where = -np.inf, None
    for rest in itertools.product(*others):
        rows = [[*rest[:column], value, *rest[column:]] for value in values]
        found = direction * score(rows)
        decreases = found[:-1] - found[1:]
        if len(decreases) and decreases.max() > worst:
            k = int(decreases.argmax())
            worst, where = float(decreases.max()), (rows[k], rows[k + 1])
    return worst, where
