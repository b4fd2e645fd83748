"""Reference implementation of cpp/tree/true_class_proba: out-of-bag probabilities of the rows' classes."""

import numpy as np


def true_class_proba(trees, leaf, unseen, codes, n_classes, strengths):
    """Mean share of each row's own class by trees, (n_rows, n_outputs, n_strengths); 0 where none counts."""
    found = np.zeros((len(codes), len(n_classes), len(strengths)))
    first = np.concatenate([[0], np.cumsum(n_classes)])
    for s, strength in enumerate(strengths):
        shrunken = [tree.shrunk(float(strength)).flat_value for tree in trees]
        for r in range(len(codes)):
            for k in range(len(n_classes)):
                proba = [shrunken[t][leaf[r, t], first[k] + codes[r, k]] for t in range(len(trees))]
                found[r, k, s] = np.average(proba, weights=unseen[:, r]) if unseen[:, r].any() else 0.0
    return found
