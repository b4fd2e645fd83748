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


# ---- any risk, in exact arithmetic ---------------------------------------------------------------------------


def all_subtrees(tree, node=0):
    """Return every pruned subtree of the branch at `node`, each as the frozenset of its leaves."""
    here = [frozenset([node])]
    if tree.children_left[node] == -1:
        return here
    left = all_subtrees(tree, tree.children_left[node])
    right = all_subtrees(tree, tree.children_right[node])
    return here + [a | b for a in left for b in right]


def smallest_minimiser(tree, risk, alpha):
    """T(alpha) by its definition: the least R + alpha |T|, of these the fewest leaves."""
    return min(all_subtrees(tree), key=lambda leaves: (sum(risk[t] for t in leaves) + alpha * len(leaves), len(leaves)))


def exact_complexities(tree, risk):
    """Weakest link after weakest link; returns the alpha at which each inner node goes. `risk`: Fractions."""
    leaves, gone, floor = set(), {}, 0
    while True:
        strength = {}
        for node in subtree(tree, leaves, 0):
            tips = branch_leaves(tree, leaves, node)
            if tips != [node]:
                strength[node] = (risk[node] - sum(risk[t] for t in tips)) / (len(tips) - 1)
        if not strength:
            return gone
        weakest = min(strength.values())
        floor = max(floor, weakest)
        for node in [n for n, g in strength.items() if g == weakest]:
            for below in subtree(tree, leaves, node):
                if tree.children_left[below] != -1:
                    gone.setdefault(below, floor)
            leaves.add(node)


def bottom_up(tree, risk, alpha):
    """rpart's recursion; returns (complexity by node that is left, nodes that stay split)."""
    complexity, split = {}, set()

    def walk(node, bound):
        complexity[node] = alpha
        bound = min(bound, risk[node])
        if tree.children_left[node] == -1 or bound <= alpha:
            return risk[node], 0
        a, b = tree.children_left[node], tree.children_right[node]
        left = walk(a, bound - alpha)
        worth = max((risk[node] - left[0]) / (left[1] + 1), risk[node] - risk[a])
        right = walk(b, min(bound, worth) - alpha)
        kept = {a: left, b: right}

        def value():
            return (risk[node] - kept[a][0] - kept[b][0]) / (kept[a][1] + kept[b][1] + 1)

        weaker, stronger = (b, a) if complexity[b] <= complexity[a] else (a, b)
        if value() > complexity[weaker]:
            kept[weaker] = risk[weaker], 0
            if value() > complexity[stronger]:
                kept[stronger] = risk[stronger], 0
        complexity[node] = value()
        if complexity[node] <= alpha:
            for below in subtree(tree, set(), node)[1:]:
                complexity.pop(below, None)
                split.discard(below)
            return risk[node], 0
        split.add(node)
        return kept[a][0] + kept[b][0], kept[a][1] + kept[b][1] + 1

    walk(0, risk[0])
    for node in sorted(complexity):
        for son in (tree.children_left[node], tree.children_right[node]):
            if son in complexity:
                complexity[son] = min(complexity[son], complexity[node])
    return complexity, split


# ---- cross-validation ------------------------------------------------------------------------------------------


def cv_errors(model, X, y, weight, folds, alphas, loss):
    """Grow a tree per fold, prune it at every cut, predict; returns (mean loss, its standard error) by alpha.

    `folds` are pairs of row lists, `alphas` ascending, `loss` is (true, predicted) -> loss of each row.
    """
    cuts = [*np.sqrt(np.multiply(alphas[:-1], alphas[1:])), np.inf]
    losses = [[] for _ in cuts]
    weights = []
    for grown_on, held_out in folds:
        tree = model().fit(X[grown_on], y[grown_on], weight[grown_on])
        weights.extend(weight[held_out])
        for k, cut in enumerate(cuts):
            losses[k].extend(loss(y[held_out], tree.pruned(alpha=cut).predict(X[held_out])))
    losses, weights = np.array(losses), np.array(weights)
    total = weights.sum()
    mean = losses @ weights / total
    n_effective = total**2 / (weights**2).sum()
    return mean, np.sqrt(((losses - mean[:, None]) ** 2 @ weights) / total / n_effective)
