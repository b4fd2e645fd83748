"""Reference implementation of nearest neighbours: all pairs of rows, and a vote for every number of neighbours."""

import numpy as np
import spinney._engine as _engine


def _powers(apart, p):
    flat = np.abs(apart).ravel()
    there = flat >= np.finfo(float).tiny
    found = np.zeros(len(flat))
    found[there] = _engine.exp(p * _engine.log(flat[there]))
    return found.reshape(apart.shape)


def keys(rows, queries, metric, p=2.0):
    """What distances are compared by, (n_queries, n_rows); terms are added one after the other."""
    total, common = np.zeros((len(queries), len(rows))), np.zeros((len(queries), len(rows)))
    for t in range(rows.shape[1]):
        apart = queries[:, t : t + 1] - rows[:, t]
        if metric == "squares":
            total += apart * apart
        elif metric == "absolute":
            total += np.abs(apart)
        elif metric == "powers":
            total += _powers(apart, p)
        elif metric == "largest":
            total = np.maximum(total, np.abs(apart))
        elif metric == "differing":
            total += queries[:, t : t + 1] != rows[:, t]
        else:
            there = ~np.isnan(apart)
            total += np.where(there, np.minimum(1.0, np.abs(apart)), 0.0)
            common += there
    if metric == "gower":
        return np.where(common == 0, 1.0, total / np.where(common == 0, 1.0, common))
    return total


def nearest(rows, queries, k, metric, p=2.0):
    """Rows and keys of the k nearest; of those equally far, the first."""
    found = keys(rows, queries, metric, p)
    order = np.argsort(found, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(found, order, axis=1)


KERNELS = {
    "triangular": lambda u: 1 - u,
    "epanechnikov": lambda u: 1 - u**2,
    "biweight": lambda u: (1 - u**2) ** 2,
    "triweight": lambda u: (1 - u**2) ** 3,
    "tricube": lambda u: (1 - u**3) ** 3,
    "gaussian": lambda u: np.exp(-2 * u**2),
}


def shares(distance, codes, k, n_classes, weights="uniform", ties="first", weight=None):
    """Class shares of one query from the distances of all rows; rows of weight 2 stand in the line twice."""
    if weight is not None:
        distance, codes = np.repeat(distance, weight), np.repeat(codes, weight)
    order = np.argsort(distance, kind="stable")
    distance, codes = distance[order], codes[order]
    n = min(k, len(distance))
    if ties == "all":
        n = int((distance <= distance[n - 1] * (1 + 1e-10)).sum())
    near = distance[:n]
    if weights == "uniform":
        votes = np.ones(n)
    elif weights == "distance":
        votes = (near == 0).astype(float) if (near == 0).any() else 1 / near
    else:
        bandwidth = distance[min(n, len(distance) - 1)]
        votes = KERNELS[weights](np.minimum(near / bandwidth if bandwidth > 0 else 0 * near, 1 - 1e-6))
    found = np.bincount(codes[:n], votes, n_classes)
    return found / found.sum()


def cell_answers(X, y, queries, edge, n_classes=None):
    """Answers of plain cells of numbers from 0 on, by lists of their rows; None for empty cells."""
    rows = {}
    for row, value in zip(X, y, strict=True):
        rows.setdefault(tuple(np.floor(row / edge)), []).append(value)
    lows, highs = np.floor(X.min(axis=0) / edge), np.floor(X.max(axis=0) / edge)
    found = []
    for query in queries:
        values = rows.get(tuple(np.clip(np.floor(query / edge), lows, highs)))
        if values is None:
            found.append(None)
        elif n_classes is None:
            found.append(np.array([np.mean(values)]))
        else:
            found.append(np.bincount(values, minlength=n_classes) / len(values))
    return found
