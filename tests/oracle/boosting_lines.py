"""Linear leaves of boosted trees the slow way: the ridge regression of a leaf, and its predictions."""

import math

import numpy as np


def columns_on_path(tree, leaf, is_number):
    """Columns of numbers that the way to a leaf asks for, ascending; `tree` is as `to_dict` gives nodes, flat."""
    found, node = set(), leaf
    left, right = tree.children_left(), tree.children_right()
    while node != 0:
        parents = np.flatnonzero((left == node) | (right == node))
        node = int(parents[0])
        found.add(int(tree.feature[node]))
    return sorted(j for j in found if is_number[j])


def tempered(size):
    """As steps of leaves are: short ones as they are, long ones by their logarithm."""
    return size if size <= 1.5 else 1.5 + math.log((1 + size) / 2.5)


def line_of(values, gradient, hessian, l2, rate, bounded=lambda size: size, l2_of_base=0.0):
    """Base, slopes, middles, lowest and highest values of the rows of a leaf; None where they say nothing.

    The minimum of the second-order loss plus l2 / 2 times the squares of the slopes of standardised columns.
    """
    whole = np.isfinite(values).all(axis=1)
    x, g, h = values[whole], gradient[whole], hessian[whole]
    varies = np.array([len(np.unique(column)) > 1 for column in x.T], dtype=bool)
    if len(x) < varies.sum() + 2 or not varies.any():
        return None
    x = x[:, varies]
    middle = (h[:, np.newaxis] * x).sum(axis=0) / h.sum()
    scale = np.sqrt((h[:, np.newaxis] * (x - middle) ** 2).sum(axis=0) / h.sum())
    z = (x - middle) / scale
    base = -g.sum() / (h.sum() + l2_of_base)
    slope = np.linalg.solve((z.T * h) @ z + l2 * np.eye(z.shape[1]), -z.T @ g)
    longest = np.abs(base + z @ slope).max()
    share = rate * bounded(longest) / longest
    return share * base, share * slope / scale, middle, x.min(axis=0), x.max(axis=0), np.flatnonzero(varies)


def line_prediction(line, values, constant):
    """What a leaf adds to rows; the constant where a value is missing."""
    base, slope, middle, low, high, which = line
    x = values[:, which]
    found = base + (slope * (np.clip(x, low, high) - middle)).sum(axis=1)
    return np.where(np.isnan(x).any(axis=1), constant, found)
