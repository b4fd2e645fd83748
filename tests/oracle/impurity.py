"""How mixed a node is, and what a two-way split of it gains.

Everything here takes `y` of shape (n, n_outputs), positive weights `w` of shape (n,), and `n_classes`, one
number per output for classification and an empty tuple for regression.
"""

import numpy as np

CLASSIFICATION = ("gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio")
REGRESSION = ("squared_error", "absolute_error", "poisson", "friedman_mse")

# Criteria whose score is not the decrease of the impurity they report.
IMPURITY_OF = {
    "chi2": "gini",
    "gain_ratio": "entropy",
    "log_loss": "entropy",
    "friedman_mse": "squared_error",
}


def gini(shares):
    return 1.0 - np.square(shares).sum()


def entropy(shares):
    present = shares[shares > 0]
    return -(present * np.log2(present)).sum()


def misclassification(shares):
    return 1.0 - shares.max()


class GeneralisedGini:
    """The generalised Gini index: the expected cost of guessing a class by drawing from the node."""

    def __init__(self, cost):
        self.cost = np.asarray(cost, dtype=float)

    def __call__(self, shares):
        return float(sum(self.cost[i, j] * p * q for i, p in enumerate(shares) for j, q in enumerate(shares)))


SHARE_IMPURITY = {"gini": gini, "entropy": entropy, "misclassification": misclassification}


def class_shares(y, w, n_classes):
    return np.bincount(y.astype(int), weights=w, minlength=n_classes) / w.sum()


def weighted_median(y, w):
    """Smallest value with half the weight at or below it; halfway to the next one if it is exactly half."""
    order = np.argsort(y, kind="stable")
    y, running = y[order], np.cumsum(w[order])
    half, slack = running[-1] / 2, 1e-12 * running[-1]
    at = int(np.argmax(running >= half - slack))
    if abs(running[at] - half) <= slack:
        return y[at] / 2 + y[at + 1] / 2
    return y[at]


def lower_median(y, w):
    """Smallest value with at least half the weight at or below it."""
    order = np.argsort(y, kind="stable")
    running = np.cumsum(w[order])
    return y[order][np.argmax(running >= running[-1] / 2 * (1 - 1e-12))]


def mean(y, w):
    return y.dot(w) / w.sum()


def squared_error(y, w):
    return mean((y - mean(y, w)) ** 2, w)


def absolute_error(y, w):
    return mean(np.abs(y - weighted_median(y, w)), w)


def poisson(y, w):
    """Half the mean Poisson deviance."""
    return rate(y, w) if mean(y, w) > 0 else np.inf


def rate(y, w):
    """The same where a node may have no events at all."""
    centre = mean(y, w)
    if centre <= 0:
        return 0.0
    log_ratio = np.log(np.where(y > 0, y, 1.0) / centre)
    return mean(np.where(y > 0, y * log_ratio, 0.0) - y + centre, w)


VALUE_IMPURITY = {"squared_error": squared_error, "absolute_error": absolute_error, "poisson": poisson, "rate": rate}


def impurity(criterion, y, w, n_classes=()):
    """Impurity of one node, averaged over the outputs."""
    name = IMPURITY_OF.get(criterion, criterion)
    if n_classes:
        of_shares = name if callable(name) else SHARE_IMPURITY[name]
        parts = [of_shares(class_shares(y[:, k], w, c)) for k, c in enumerate(n_classes)]
    else:
        parts = [VALUE_IMPURITY[name](y[:, k], w) for k in range(y.shape[1])]
    return float(sum(parts) / len(parts))


def node_value(criterion, y, w, n_classes=()):
    """What a leaf would say: shares (n_outputs, max_n_classes), or centres (n_outputs, 1)."""
    if n_classes:
        value = np.zeros((len(n_classes), max(n_classes)))
        for k, c in enumerate(n_classes):
            value[k, :c] = class_shares(y[:, k], w, c)
        return value
    centre = weighted_median if criterion == "absolute_error" else mean
    return np.array([[centre(y[:, k], w)] for k in range(y.shape[1])])


def impurity_decrease(criterion, y, w, left, n_classes=(), before=None):
    """`before`: the impurity of the node, if known."""
    if before is None:
        before = impurity(criterion, y, w, n_classes)
    share, right = w[left].sum() / w.sum(), ~left
    children = share * impurity(criterion, y[left], w[left], n_classes)
    children += (1 - share) * impurity(criterion, y[right], w[right], n_classes)
    return before - children


def squared_error_decrease(y, w, left):
    """The decrease as what lies between the children, which loses nothing to a large common offset."""
    share = w[left].sum() / w.sum()
    gaps = [mean(y[left, k], w[left]) - mean(y[~left, k], w[~left]) for k in range(y.shape[1])]
    return share * (1 - share) * float(np.mean(np.square(gaps)))


def friedman_score(y, w, left):
    share = w[left].sum() / w.sum()
    average = y.mean(axis=1)
    return share * (1 - share) * (mean(average[left], w[left]) - mean(average[~left], w[~left])) ** 2


def chi2_score(y, w, left, n_classes):
    """Pearson's chi-squared of side by class, divided by the node's weight."""
    scores = []
    for k, c in enumerate(n_classes):
        table = np.array([np.bincount(y[side, k].astype(int), weights=w[side], minlength=c) for side in (left, ~left)])
        table = table[:, table.sum(axis=0) > 0]
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        scores.append(np.sum((table - expected) ** 2 / expected) / table.sum())
    return float(np.mean(scores))


def poisson_score(y, w, left, before=None):
    sums = [np.sum(y[side] * w[side, None], axis=0) for side in (left, ~left)]
    if np.min(sums) <= 10 * np.finfo(float).eps:
        return -np.inf
    return impurity_decrease("poisson", y, w, left, before=before)


def split_score(criterion, y, w, left, n_classes=(), before=None):
    """What the search maximises (gain_ratio: within a column); -inf where the criterion forbids the split."""
    if criterion == "chi2":
        return chi2_score(y, w, left, n_classes)
    if criterion == "friedman_mse":
        return friedman_score(y, w, left)
    if criterion == "squared_error":
        return squared_error_decrease(y, w, left)
    if criterion == "poisson":
        return poisson_score(y, w, left, before)
    return impurity_decrease(criterion, y, w, left, n_classes, before)


def split_information(w, left):
    share = w[left].sum() / w.sum()
    return entropy(np.array([share, 1 - share]))
