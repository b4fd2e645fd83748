"""Cost-complexity pruning by its definition: at each step look at every inner node, cut the weakest link."""

import numpy as np


def risks(tree):
    """R(t) of each node: its impurity times its share of the weight."""
    weight = np.asarray(tree.weighted_n_node_samples)
    return weight / weight[0] * np.asarray(tree.impurity)


def subtree(tree, leaves, node):
    """Nodes of the branch at `node` when the nodes in `leaves` have been cut back."""
    if node in leaves or tree.children_left[node] == -1:
        return [node]
    left, right = tree.children_left[node], tree.children_right[node]
    return [node, *subtree(tree, leaves, left), *subtree(tree, leaves, right)]


def branch_leaves(tree, leaves, node):
    return [n for n in subtree(tree, leaves, node) if n in leaves or tree.children_left[n] == -1]


def weakest_links(tree, leaves):
    """Return (smallest g, the inner nodes that have it)."""
    risk = risks(tree)
    strength = {}
    for node in subtree(tree, leaves, 0):
        tips = branch_leaves(tree, leaves, node)
        if tips != [node]:
            strength[node] = (risk[node] - sum(risk[t] for t in tips)) / (len(tips) - 1)
    if not strength:
        return None, []
    weakest = min(strength.values())
    return weakest, [n for n, g in strength.items() if g <= weakest + 1e-12]


def pruning_path(tree):
    """Return (alpha, total leaf risk, number of leaves) of each distinct tree of the nested sequence."""
    risk, leaves = risks(tree), set()

    def record(alpha):
        tips = branch_leaves(tree, leaves, 0)
        return max(alpha, 0.0), float(sum(risk[t] for t in tips)), len(tips)

    path = [record(0.0)]
    while True:
        alpha, links = weakest_links(tree, leaves)
        if not links:
            return path
        leaves.update(links)
        step = record(alpha)
        if step[0] <= path[-1][0] + 1e-12:
            path[-1] = (path[-1][0], *step[1:])
        else:
            path.append(step)


def collapse(alphas, impurities):
    """Merge the entries of one alpha, keeping the last: T(alpha) is the smallest minimising subtree."""
    path = []
    for alpha, total in zip(alphas, impurities, strict=True):
        if path and alpha <= path[-1][0] + 1e-12:
            path[-1] = (path[-1][0], total)
        else:
            path.append((float(alpha), float(total)))
    return path
