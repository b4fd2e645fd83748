"""AdaBoost in plain NumPy, with stumps found by trying every split: the reference implementation of the estimators."""

from itertools import pairwise

import numpy as np

MIN_PROBABILITY = 1e-5


def cuts(X):
    """Yield every column and cut, in the order in which ties are broken."""
    for column in range(X.shape[1]):
        values = np.unique(X[:, column])
        for low, high in pairwise(values):
            yield column, (low + high) / 2


def stump(X, score, leaf):
    """Cut where score(left) + score(right) is largest, the first of near equals; (column, cut, left, right)."""
    best, found = -np.inf, None
    for column, cut in cuts(X):
        left = X[:, column] <= cut
        gain = score(left) + score(~left)
        if found is None or gain > best + 1e-12 * max(1.0, abs(best)):
            best, found = gain, (column, cut, leaf(left), leaf(~left))
    return found


def class_stump(X, codes, weight, n_classes, criterion="gini"):
    """Stump by weighted Gini index, or by weighted error; leaves are class shares."""

    def totals(rows):
        return np.bincount(codes[rows], weight[rows], n_classes)

    def score(rows):
        own = totals(rows)
        return (own**2).sum() / own.sum() if criterion == "gini" else own.max()

    return stump(X, score, lambda rows: totals(rows) / totals(rows).sum())


def value_stump(X, y, weight):
    """Stump by weighted squared error; leaves are means."""

    def mean(rows):
        return (weight[rows] * y[rows]).sum() / weight[rows].sum()

    return stump(X, lambda rows: weight[rows].sum() * mean(rows) ** 2, mean)


def stump_predictions(X, found):
    column, cut, left, right = found
    return np.where((X[:, column] <= cut)[:, np.newaxis], np.atleast_1d(left), np.atleast_1d(right))


def votes(X, codes, weight, n_classes, n_rounds, samme=True, rate=1.0, criterion="misclassification"):
    """AdaBoost.M1 or SAMME: errors, weights of the members, and the sum of votes by class."""
    w = weight / weight.sum()
    errors, alphas, total = [], [], np.zeros((len(X), n_classes))
    for _ in range(n_rounds):
        h = stump_predictions(X, class_stump(X, codes, w, n_classes, criterion)).argmax(axis=1)
        error = w[h != codes].sum()
        alpha = rate * (np.log((1 - error) / error) + (np.log(n_classes - 1) if samme else 0.0))
        w = w * np.exp(alpha * (h != codes))
        w /= w.sum()
        errors.append(error)
        alphas.append(alpha)
        total[np.arange(len(X)), h] += alpha
    return np.array(errors), np.array(alphas), total


def real(X, codes, weight, n_classes, n_rounds, rate=1.0):
    """SAMME.R: sum of log p - mean log p, by class."""
    w = weight / weight.sum()
    total = np.zeros((len(X), n_classes))
    own = np.arange(n_classes) == codes[:, np.newaxis]
    coding = np.where(own, 1.0, -1.0 / (n_classes - 1))
    for _ in range(n_rounds):
        logs = np.log(np.maximum(stump_predictions(X, class_stump(X, codes, w, n_classes)), MIN_PROBABILITY))
        total += rate * (logs - logs.mean(axis=1, keepdims=True))
        w = w * np.exp(-rate * (n_classes - 1) / n_classes * (coding * logs).sum(axis=1))
        w /= w.sum()
    return total


def gentle(X, sign, weight, n_rounds, rate=1.0):
    """Gentle AdaBoost of y = ±1: the score."""
    w, f = weight / weight.sum(), np.zeros(len(X))
    for _ in range(n_rounds):
        step = rate * stump_predictions(X, value_stump(X, sign, w))[:, 0]
        f += step
        w = w * np.exp(-sign * step)
        w /= w.sum()
    return f


def logit(X, codes, weight, n_classes, n_rounds, rate=1.0):
    """LogitBoost: scores of the classes, (n_rows, n_classes), up to a number by row."""
    w0 = weight / weight.sum()
    f = np.zeros((len(X), n_classes))
    own = (np.arange(n_classes) == codes[:, np.newaxis]).astype(float)
    for _ in range(n_rounds):
        p = np.exp(f - f.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        steps = []
        for k in range(n_classes):
            spread = np.maximum(p[:, k] * (1 - p[:, k]), 1e-10)
            z = np.clip((own[:, k] - p[:, k]) / spread, -4, 4)
            steps.append(stump_predictions(X, value_stump(X, z, w0 * spread))[:, 0])
        step = np.column_stack(steps)
        f += rate * (n_classes - 1) / n_classes * (step - step.mean(axis=1, keepdims=True))
    return f


def r2(X, y, weight, n_rounds, loss="linear", rate=1.0):
    """AdaBoost.R2 of stumps: predictions of the members, (n_rows, n_rounds), their weights, the medians."""
    w, values, alphas = weight / weight.sum(), [], []
    for _ in range(n_rounds):
        h = stump_predictions(X, value_stump(X, y, w))[:, 0]
        e = np.abs(y - h) / np.abs(y - h).max()
        e = {"linear": e, "square": e**2, "exponential": 1 - np.exp(-e)}[loss]
        error = (w * e).sum()
        beta = error / (1 - error)
        alphas.append(rate * np.log(1 / beta))
        w = w * beta ** ((1 - e) * rate)
        w /= w.sum()
        values.append(h)
    return np.column_stack(values), np.array(alphas), medians(np.column_stack(values), np.array(alphas))


def medians(values, weights):
    """Lowest value of each row up to which half of the weight lies."""
    found = []
    for row in values:
        order = sorted(range(len(row)), key=lambda i: row[i])
        reached, i = 0.0, -1
        while reached < 0.5 * weights.sum() - 1e-12:
            i += 1
            reached += weights[order[i]]
        found.append(row[order[i]])
    return np.array(found)
