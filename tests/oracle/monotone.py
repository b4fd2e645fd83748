"""Slow reference implementation of `verify_constraints`: every row that the trees can distinguish, one by one."""

import itertools

import numpy as np


def points_of(model, j):
    """Values of column j that stand for all there are: at each threshold, between and beyond, categories, missing."""
    feature = model.schema_.features[j]
    if feature.kind == "category":
        return [*feature.categories, None]
    cuts = set()
    for tree in model._fitted.trees():
        cuts |= set(tree.threshold[tree.feature == j].tolist())
    cuts = sorted(cuts)
    return [*cuts, (cuts[-1] + 1 if cuts else 0.0), None]


def worst_fall(model, column, direction, score):
    """Largest fall of `score(rows)` between two values of a column, all else the same, and the rows."""
    points = [points_of(model, j) for j in range(model.n_features_in_)]
    others = [points[j] for j in range(len(points)) if j != column]
    values = [value for value in points[column] if value is not None]
    worst, where = -np.inf, None
    for rest in itertools.product(*others):
        rows = [[*rest[:column], value, *rest[column:]] for value in values]
        found = direction * score(rows)
        falls = found[:-1] - found[1:]
        if len(falls) and falls.max() > worst:
            k = int(falls.argmax())
            worst, where = float(falls.max()), (rows[k], rows[k + 1])
    return worst, where
