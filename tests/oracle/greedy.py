"""Greedy selection, the slow and obvious way: lists of members taken, and the loss of their mean."""

import numpy as np


def greedy_weights(predictions, y, loss, n_steps):
    """Return weights; predictions is (n_members, n_rows, ...) and loss a function of (y, mean)."""
    bags = [[]]
    for _ in range(n_steps):
        tried = [[*bags[-1], k] for k in range(len(predictions))]
        bags.append(min(tried, key=lambda bag: loss(y, np.mean([predictions[k] for k in bag], axis=0))))
    best = min(bags[1:], key=lambda bag: loss(y, np.mean([predictions[k] for k in bag], axis=0)))
    return np.array([best.count(k) / len(best) for k in range(len(predictions))])
