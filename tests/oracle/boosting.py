"""Gradient boosting the slow way: every split of every leaf evaluated in floats, one row at a time.

Equivalent to (and much slower than) the engine, whose sums are whole numbers; agreement is to the rounding of these.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import stats
from scipy.optimize import minimize


def ordinal_proba(f, cuts):
    """Probabilities of ordered classes, (n_rows, n_classes): differences of those of each class or a lower one."""
    below = 1 / (1 + np.exp(f[:, np.newaxis] - np.concatenate([[-np.inf], cuts, [np.inf]])))
    return np.diff(below, axis=1)


def ordinal_cuts(codes, f, weight, n_classes):
    """The cuts of least loss at the scores f."""

    def loss(steps):
        cuts = steps[0] + np.concatenate([[0.0], np.cumsum(np.exp(steps[1:]))])
        return weight @ -np.log(ordinal_proba(f, cuts)[np.arange(len(f)), codes]) / weight.sum()

    below = np.cumsum(np.bincount(codes, weight, n_classes))[:-1] / weight.sum()
    start = np.log(below / (1 - below)) + np.average(f, weights=weight)
    steps = minimize(loss, np.concatenate([start[:1], np.log(np.diff(start))]), method="BFGS", tol=1e-9).x
    return steps[0] + np.concatenate([[0.0], np.cumsum(np.exp(steps[1:]))])


def distribution(loss, scores):
    """The distribution of each row at its scores, (n_scores, n_rows), by scipy; ZIP has none."""
    first, second = scores[0], np.exp(scores[1])
    if loss == "normal":
        return stats.norm(first, second)
    if loss == "log_normal":
        return stats.lognorm(second, scale=np.exp(first))
    if loss == "student_t":
        return stats.t(2 + np.exp(scores[2]), first, second)
    if loss == "gamma_distribution":
        return stats.gamma(second, scale=np.exp(first) / second)
    if loss == "negative_binomial":
        return stats.nbinom(second, second / (second + np.exp(first)))
    mean = 1 / (1 + np.exp(-first))
    return stats.beta(mean * second, (1 - mean) * second)


def log_likelihood(loss, y, scores):
    """The logarithm of the density, or of the probability of a count, at the target of each row."""
    if loss == "zero_inflated_poisson":
        zero = 1 / (1 + np.exp(-scores[1]))
        return np.log((y == 0) * zero + (1 - zero) * stats.poisson(np.exp(scores[0])).pmf(y))
    of_rows = distribution(loss, scores)
    return of_rows.logpmf(y) if loss == "negative_binomial" else of_rows.logpdf(y)


def gradients(loss, y, f, parameter=0.0):
    """Gradient and hessian of the loss of each row at the scores f."""
    one = np.ones(len(y))
    if loss == "squared_error":
        return f - y, one
    if loss == "absolute_error":
        return np.sign(f - y), one
    if loss == "huber":
        delta = np.quantile(np.abs(y - f), parameter, method="averaged_inverted_cdf")
        return np.clip(f - y, -delta, delta), one
    if loss == "quantile":
        return np.where(y > f, -parameter, 1 - parameter), one
    if loss == "expectile":
        twice = 2 * np.where(y > f, parameter, 1 - parameter)
        return twice * (f - y), twice
    if loss == "mape":
        return np.sign(f - y) / np.maximum(np.abs(y), 1), 1 / np.maximum(np.abs(y), 1)
    if loss == "logistic":
        p = 1 / (1 + np.exp(-f))
        return p - y, p * (1 - p)
    if loss == "ordinal":  # its cuts as parameter; the hessian is that of the two sides
        edges = np.concatenate([[-np.inf], parameter, [np.inf]])
        low, high = (1 / (1 + np.exp(f - edges[y.astype(int) + k])) for k in (0, 1))
        density = [low * (1 - low), high * (1 - high)]
        return (density[1] - density[0]) / (high - low), density[0] + density[1]
    if loss == "exponential":
        e = np.exp(-(2 * y - 1) * f)
        return -(2 * y - 1) * e, e
    if loss == "log_cosh":  # the parabola that touches the loss and lies above it
        delta = np.quantile(np.abs(y - f), parameter, method="averaged_inverted_cdf") or np.abs(y - f).max() or 1.0
        r = (f - y) / delta
        return delta * np.tanh(r), np.where(np.abs(r) > 1e-4, np.tanh(r) / np.where(r == 0, 1, r), 1.0)
    if loss == "focal":
        sign = 2 * y - 1
        p = 1 / (1 + np.exp(-sign * f))
        q = 1 - p
        curve = q * (parameter * np.log(p) + 2 * parameter + 1) - parameter**2 * p * np.log(p)
        return sign * q**parameter * (parameter * p * np.log(p) - q), p * q**parameter * np.maximum(curve, q)
    if loss == "smooth_hinge":
        sign = 2 * y - 1
        short = np.maximum(1 - sign * f, 0)
        beyond = 1 / (2 * np.maximum(sign * f, 1) - 1)
        return -sign * np.minimum(short, 1), np.where(short > 0, 1 / np.maximum(short, 1), beyond)
    if loss == "squared_log_error":
        return f - np.log1p(y), one
    if loss == "poisson":
        return np.exp(f) - y, np.exp(f)
    if loss == "gamma":
        return 1 - y * np.exp(-f), y * np.exp(-f)
    a, b = y * np.exp((1 - parameter) * f), np.exp((2 - parameter) * f)  # tweedie
    return b - a, (2 - parameter) * b - (1 - parameter) * a


def losses(loss, y, f, parameter=0.0):
    """Loss of each row, without terms that do not depend on f; huber and log_cosh have their delta as parameter."""
    if loss == "squared_error":
        return (f - y) ** 2 / 2
    if loss == "absolute_error":
        return np.abs(f - y)
    if loss == "huber":
        d = np.abs(f - y)
        return np.where(d <= parameter, d**2 / 2, parameter * (d - parameter / 2))
    if loss == "quantile":
        return np.where(y > f, parameter * (y - f), (1 - parameter) * (f - y))
    if loss == "expectile":
        return np.where(y > f, parameter, 1 - parameter) * (f - y) ** 2
    if loss == "mape":
        return np.abs(f - y) / np.maximum(np.abs(y), 1)
    if loss == "logistic":
        return np.logaddexp(0, f) - y * f
    if loss == "ordinal":
        return -np.log(ordinal_proba(f, parameter)[np.arange(len(f)), y.astype(int)])
    if loss == "exponential":
        return np.exp(-(2 * y - 1) * f)
    if loss == "log_cosh":  # its delta as parameter
        return parameter**2 * np.log(np.cosh((f - y) / parameter))
    if loss == "focal":
        p = 1 / (1 + np.exp(-(2 * y - 1) * f))
        return -((1 - p) ** parameter) * np.log(p)
    if loss == "smooth_hinge":
        z = (2 * y - 1) * f
        return np.where(z > 1, 0, np.where(z > 0, (1 - z) ** 2 / 2, 0.5 - z))
    if loss == "squared_log_error":
        return (f - np.log1p(y)) ** 2 / 2
    if loss == "poisson":
        return np.exp(f) - y * f
    if loss == "gamma":
        return y * np.exp(-f) + f
    p = parameter
    return np.exp((2 - p) * f) / (2 - p) - y * np.exp((1 - p) * f) / (1 - p)


@dataclass
class Rules:
    """What a tree may do; the names are the engine's."""

    max_leaves: int = 31
    max_depth: int = 10**9
    depth_wise: bool = False
    symmetric: bool = False
    min_rows: int = 20
    min_hessian: float = 1e-3
    min_gain: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    max_step: float = np.inf
    max_one_hot: int = 4
    smoothing: float = 10.0
    category_l2: float = 10.0
    categories: frozenset = frozenset()


@dataclass(eq=False)
class Node:
    rows: np.ndarray
    depth: int = 0
    gain: float = 0.0
    feature: int = -1
    goes_left: np.ndarray = None  # by row of the table
    children: list = field(default_factory=list)
    made: int = 0

    def preorder(self):
        """This node and those below, left before right."""
        yield self
        for child in self.children:
            yield from child.preorder()


def step(g, h, rules, extra=0.0):
    pull = np.sign(g) * max(abs(g) - rules.l1, 0.0)
    resistance = h + rules.l2 + extra
    return float(np.clip(-pull / resistance if resistance > 0 else 0.0, -rules.max_step, rules.max_step))


def worth(g, h, rules, extra=0.0):
    s = step(g, h, rules, extra)
    return -(2 * g * s + (h + rules.l2 + extra) * s * s + 2 * rules.l1 * abs(s))


def candidates(x, rows, g, h, is_category, rules):
    """Sets of values that may go left, with the extra penalty that their sides get."""
    values, missing = x[rows], np.isnan(x[rows])
    if not is_category:
        cuts = np.unique(values[~missing])
        for cut in cuts if missing.any() else cuts[:-1]:
            yield (values <= cut), 0.0
        for cut in cuts[:-1] if missing.any() else []:
            yield (values <= cut) | missing, 0.0
        return
    codes = np.where(missing, np.inf, values)
    present = np.unique(codes)
    if len(present) < 2:
        return
    if len(present) <= rules.max_one_hot:
        for code in present:
            yield codes == code, 0.0
        return
    sums = {c: (g[rows][codes == c].sum(), h[rows][codes == c].sum()) for c in present}
    rows_per_hessian = len(rows) / h[rows].sum()
    order = [c for c in present if sums[c][1] * rows_per_hessian >= rules.smoothing * (1 - 1e-9)]
    order = sorted(order, key=lambda c: -sums[c][0] / (sums[c][1] + rules.smoothing))
    for chain in (order, order[::-1]):
        for last in range(1, (len(order) + 1) // 2 + 1):
            yield np.isin(codes, chain[:last]), rules.category_l2


def find_best(node, X, g, h, rules):
    """Set the best split of a node, if it may be split."""
    n = len(node.rows)
    if n < 2 * max(1, rules.min_rows) or node.depth >= rules.max_depth:
        return
    G, H = g[node.rows].sum(), h[node.rows].sum()
    least = max(rules.min_hessian, rules.min_rows * H / n * (1 - 1e-6) if rules.min_rows > 1 else 0.0)
    parent = worth(G, H, rules)
    for feature in range(X.shape[1]):
        for left, extra in candidates(X[:, feature], node.rows, g, h, feature in rules.categories, rules):
            gl, hl = g[node.rows][left].sum(), h[node.rows][left].sum()
            if min(hl, H - hl) < least or min(left.sum(), n - left.sum()) < max(1, rules.min_rows):
                continue
            gain = worth(gl, hl, rules, extra) + worth(G - gl, H - hl, rules, extra) - parent
            if gain > max(node.gain, rules.min_gain) * (1 + 1e-9) + 1e-12:
                node.gain, node.feature, node.goes_left = gain, feature, left


def grow(X, g, h, rows, rules):
    """Grow one tree; return its root."""
    root = Node(rows)
    find_best(root, X, g, h, rules)
    waiting, n_leaves, n_made = [root], 1, 1
    while n_leaves < rules.max_leaves:
        waiting = [node for node in waiting if node.gain > 0]
        if not waiting:
            break
        node = max(waiting, key=lambda v: (-v.depth if rules.depth_wise else 0, v.gain, -v.made))
        waiting.remove(node)
        for side in (node.goes_left, ~node.goes_left):
            child = Node(node.rows[side], node.depth + 1, made=n_made)
            n_made += 1
            find_best(child, X, g, h, rules)
            node.children.append(child)
            waiting.append(child)
        n_leaves += 1
    return root


def level_candidates(x, rows, g, h, is_category, rules):
    """Sets of the table's rows that may go left in all nodes of a level, which has `rows`; with the extra penalty."""
    missing = np.isnan(x)
    if not is_category:
        cuts = np.unique(x[~missing])
        for cut in cuts if missing.any() else cuts[:-1]:
            yield x <= cut, 0.0
        for cut in cuts[:-1] if missing.any() else []:
            yield (x <= cut) | missing, 0.0
        return
    codes = np.where(missing, np.inf, x)
    sums = {c: (g[rows][codes[rows] == c].sum(), h[rows][codes[rows] == c].sum()) for c in np.unique(codes[rows])}
    fewest = 0.0 if len(sums) <= rules.max_one_hot else rules.smoothing * (1 - 1e-9)
    order = [c for c, (_, hessian) in sums.items() if hessian * len(rows) / h[rows].sum() >= fewest]
    order = sorted(order, key=lambda c: -sums[c][0] / (sums[c][1] + rules.smoothing))
    one_by_one = len(order) <= rules.max_one_hot
    for last in range(len(order)) if len(order) > 1 else []:
        chosen = [order[last]] if one_by_one else order[: last + 1]
        yield np.isin(codes, chosen), 0.0 if one_by_one else rules.category_l2


def level_gain(node, left, extra, g, h, rules):
    """What a cut saves in a node; 0 if the hessian of a side is too small, so that the node would not be split."""
    rows, n = node.rows, len(node.rows)
    G, H = g[rows].sum(), h[rows].sum()
    gl, hl = g[rows][left[rows]].sum(), h[rows][left[rows]].sum()
    least = max(rules.min_hessian, rules.min_rows * H / n * (1 - 1e-6) if rules.min_rows > 1 else 0.0, 1e-9)
    if min(hl, H - hl) < least:
        return 0.0
    return worth(gl, hl, rules, extra) + worth(G - gl, H - hl, rules, extra) - worth(G, H, rules)


def grow_symmetric(X, g, h, rows, rules):
    """Grow one tree whose levels have one cut each; return its root."""
    root = Node(rows)
    level, n_leaves, depth = [root], 1, 0
    while 2 * n_leaves <= rules.max_leaves and depth < rules.max_depth:
        able = [node for node in level if len(node.rows) >= 2 * max(1, rules.min_rows)]
        best, chosen = 0.0, None
        for feature in range(X.shape[1]) if able else []:
            there = np.concatenate([node.rows for node in able])
            for left, extra in level_candidates(X[:, feature], there, g, h, feature in rules.categories, rules):
                gain = sum(level_gain(node, left, extra, g, h, rules) for node in able)
                if gain > max(best, rules.min_gain) * (1 + 1e-9) + 1e-12:
                    best, chosen = gain, (feature, left)
        if chosen is None:
            break
        feature, left = chosen
        below = []
        for node in level:
            sides = [node.rows[left[node.rows]], node.rows[~left[node.rows]]]
            H = h[node.rows].sum()
            least = max(
                rules.min_hessian, rules.min_rows * H / len(node.rows) * (1 - 1e-6) if rules.min_rows > 1 else 0.0
            )
            is_able = node in able and min(h[side].sum() for side in sides) >= max(least, 1e-9)
            if not is_able or min(map(len, sides)) < max(1, rules.min_rows):
                below.append(node)
                continue
            node.feature = feature
            node.children = [Node(side, depth + 1) for side in sides]
            below += node.children
            n_leaves += 1
        if len(below) == len(level):
            break
        level, depth = below, depth + 1
    return root


def leaf_value(loss, residuals, g, h, rules, parameter):
    """Step of a leaf, before the learning rate."""
    if loss in ("absolute_error", "quantile"):
        share = 0.5 if loss == "absolute_error" else parameter
        return float(np.quantile(residuals, share, method="averaged_inverted_cdf"))
    if loss == "mape":
        order = np.argsort(residuals, kind="stable")
        below = np.cumsum(h[order]) / h.sum()
        low, high = np.searchsorted(below, [0.5 - 1e-12, 0.5 + 1e-12])
        return float(residuals[order[low]] + residuals[order[high]]) / 2
    newton = step(g.sum(), h.sum(), rules)
    plain = ("squared_error", "squared_log_error", "expectile", "log_cosh", "smooth_hinge")
    return newton if loss in plain else tempered(newton)


def tempered(newton):
    """Newton's step where it is long: it goes on as the logarithm that bounds of the loss ask for."""
    size = abs(newton)
    return newton if size <= 1.5 else float(np.sign(newton) * (1.5 + np.log((1 + size) / 2.5)))


def boost(X, y, weight, loss, n_rounds, learning_rate, rules, start, parameter=0.0):
    """Return the scores of the training rows after the rounds, and the trees."""
    f, trees = np.full(len(y), start, dtype=float), []
    for _ in range(n_rounds):
        g, h = gradients(loss, y, f, parameter)
        g, h = g * weight, h * weight
        root = (grow_symmetric if rules.symmetric else grow)(X, g, h, np.flatnonzero(weight > 0), rules)
        before = f.copy()
        for node in root.preorder():
            if not node.children:
                rows = node.rows
                f[rows] += learning_rate * leaf_value(loss, y[rows] - before[rows], g[rows], h[rows], rules, parameter)
        trees.append(root)
    return f, trees


def boost_classes(X, codes, n_classes, n_rounds, learning_rate, rules):
    """Multinomial boosting; return the scores, (n_rows, n_classes), and the trees, class by class in each round."""
    counts = np.bincount(codes, minlength=n_classes)
    f, trees = np.tile(np.log(counts / len(codes)), (len(codes), 1)), []
    for _ in range(n_rounds):
        raised = np.exp(f - f.max(axis=1, keepdims=True))
        shares = raised / raised.sum(axis=1, keepdims=True)
        for k in range(n_classes):
            g = shares[:, k] - (codes == k)
            h = n_classes / (n_classes - 1) * shares[:, k] * (1 - shares[:, k])
            root = grow(X, g, h, np.arange(len(codes)), rules)
            for node in root.preorder():
                if not node.children:
                    f[node.rows, k] += learning_rate * tempered(step(g[node.rows].sum(), h[node.rows].sum(), rules))
            trees.append(root)
    return f, trees


def boost_ordered(X, codes, weight, n_classes, n_rounds, learning_rate, rules):
    """Boosting of ordered classes; return the scores of the training rows, the trees, and the cuts at these scores."""
    f, trees = np.zeros(len(codes)), []
    for _ in range(n_rounds):
        cuts = ordinal_cuts(codes, f, weight, n_classes)
        g, h = (weight * part for part in gradients("ordinal", codes, f, cuts))
        root = grow(X, g, h, np.flatnonzero(weight > 0), rules)
        for node in root.preorder():
            if not node.children:
                f[node.rows] += learning_rate * tempered(step(g[node.rows].sum(), h[node.rows].sum(), rules))
        trees.append(root)
    return f, trees, ordinal_cuts(codes, f, weight, n_classes)
