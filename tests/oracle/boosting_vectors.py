"""Trees with vector leaves the slow way: every split evaluated for every score, one row at a time."""

import numpy as np

from oracle import boosting as single


def gradients(kind, Y, F, scale=1.0):
    """Gradients and hessians, (n_rows, n_scores): of squares, of classes, or of a normal distribution."""
    if kind == "squares":
        return F - Y, np.ones_like(F)
    if kind == "classes":
        raised = np.exp(F - F.max(axis=1, keepdims=True))
        shares, n = raised / raised.sum(axis=1, keepdims=True), F.shape[1]
        return shares - (Y[:, np.newaxis] == np.arange(n)), n / (n - 1) * shares * (1 - shares)
    residual, precision = Y - F[:, 0], np.exp(-2 * F[:, 1])
    g = np.column_stack([-scale * residual * precision, 1 - residual**2 * precision])
    return g, np.column_stack([scale * precision, np.full(len(Y), 2.0)])


def candidates(x, rows, g, h, is_category, rules, weights):
    """Sides that may go left, and their extra penalty: categories in the order of each score."""
    if not is_category:
        yield from single.candidates(x, rows, g[:, 0], h[:, 0], False, rules)
        return
    codes = np.where(np.isnan(x[rows]), np.inf, x[rows])
    present = np.unique(codes)
    if len(present) < 2:
        return
    if len(present) <= rules.max_one_hot:
        for code in present:
            yield codes == code, 0.0
        return
    total = h[rows].sum()
    kept = [c for c in present if h[rows][codes == c].sum() * len(rows) / total >= rules.smoothing * (1 - 1e-9)]
    sums = {c: (g[rows][codes == c].sum(axis=0), h[rows][codes == c].sum(axis=0)) for c in kept}
    spread = [
        sum(weights[k] * sums[c][0][k] ** 2 / (sums[c][1][k] + rules.l2 + rules.smoothing) for c in kept)
        for k in range(g.shape[1])
    ]
    for k in sorted(range(g.shape[1]), key=lambda k: -spread[k])[:8]:
        order = sorted(kept, key=lambda c: single.step(sums[c][0][k], sums[c][1][k], rules, rules.smoothing))
        for chain in (order, order[::-1]):
            for last in range(1, (len(order) + 1) // 2 + 1):
                yield np.isin(codes, chain[:last]), rules.category_l2


def find_best(node, X, g, h, rules, weights):
    """Set the best split of a node, if it may be split."""
    n = len(node.rows)
    if n < 2 * max(1, rules.min_rows) or node.depth >= rules.max_depth:
        return
    G, H = g[node.rows].sum(axis=0), h[node.rows].sum(axis=0)
    least = max(rules.min_hessian, rules.min_rows * H.sum() / n * (1 - 1e-6) if rules.min_rows > 1 else 0.0)

    def saved(gs, hs, extra=0.0):
        return sum(w * single.worth(a, b, rules, extra) for w, a, b in zip(weights, gs, hs, strict=True))

    parent = saved(G, H)
    for feature in range(X.shape[1]):
        for left, extra in candidates(X[:, feature], node.rows, g, h, feature in rules.categories, rules, weights):
            gl, hl = g[node.rows][left].sum(axis=0), h[node.rows][left].sum(axis=0)
            if min(hl.sum(), (H - hl).sum()) < least or min(left.sum(), n - left.sum()) < max(1, rules.min_rows):
                continue
            gain = saved(gl, hl, extra) + saved(G - gl, H - hl, extra) - parent
            if gain > max(node.gain, rules.min_gain) * (1 + 1e-9) + 1e-12:
                node.gain, node.feature, node.goes_left = gain, feature, left


def grow(X, g, h, rows, rules, weights):
    """Grow one tree; return its root."""
    root = single.Node(rows)
    find_best(root, X, g, h, rules, weights)
    waiting, n_leaves, n_made = [root], 1, 1
    while n_leaves < rules.max_leaves:
        waiting = [node for node in waiting if node.gain > 0]
        if not waiting:
            break
        node = max(waiting, key=lambda v: (-v.depth if rules.depth_wise else 0, v.gain, -v.made))
        waiting.remove(node)
        for side in (node.goes_left, ~node.goes_left):
            child = single.Node(node.rows[side], node.depth + 1, made=n_made)
            n_made += 1
            find_best(child, X, g, h, rules, weights)
            node.children.append(child)
            waiting.append(child)
        n_leaves += 1
    return root


def boost(kind, X, Y, weight, n_rounds, learning_rate, rules, start, weights, scale=1.0):
    """Return the scores of the rows after the rounds, (n_rows, n_scores), and the trees."""
    F, trees = np.tile(np.asarray(start, dtype=float), (len(X), 1)), []
    for _ in range(n_rounds):
        g, h = gradients(kind, Y, F, scale)
        g, h = g * weight[:, np.newaxis], h * weight[:, np.newaxis]
        root = grow(X, g, h, np.flatnonzero(weight > 0), rules, weights)
        for node in root.preorder():
            for k in range(F.shape[1]) if not node.children else ():
                newton = single.step(g[node.rows, k].sum(), h[node.rows, k].sum(), rules)
                is_long = kind == "classes" or (kind == "normal" and k == 1)
                F[node.rows, k] += learning_rate * (single.tempered(newton) if is_long else newton)
        trees.append(root)
    return F, trees
