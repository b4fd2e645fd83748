"""The tree grower in its most obvious form: list every admissible split of a node, score each from scratch.

Vocabulary: a *problem* is the table and its target; *rules* are the stopping rules and constraints; a
*candidate* is one way to send the rows of a node left or right; *code* is the integer of a category, -1 when
missing.
"""

import itertools
from dataclasses import dataclass, field

import numpy as np

from oracle.impurity import (
    class_shares,
    impurity,
    lower_median,
    mean,
    node_value,
    split_information,
    split_score,
)

MISSING_CODE = -1
MAX_EXHAUSTIVE_CATEGORIES = 10
GAIN_RATIO_SLACK = 1e-12


@dataclass(frozen=True)
class Problem:
    columns: list  # float64 with NaN where missing, or integer codes with MISSING_CODE
    is_category: list
    y: np.ndarray  # (n, n_outputs), classes as codes
    w: np.ndarray  # (n,), all positive
    n_classes: tuple  # () for regression
    criterion: str
    stated: np.ndarray  # (n,), weights by which nodes state their values; those of the search unless given
    pools: tuple = ()  # by column: the code that stands for all rare categories, or None

    def missing(self, column, rows):
        values = self.columns[column][rows]
        return values == MISSING_CODE if self.is_category[column] else np.isnan(values)


@dataclass(frozen=True)
class Rules:
    max_depth: float = np.inf
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    max_leaf_nodes: int | None = None
    min_impurity_decrease: float = 0.0
    min_purity: float = np.inf
    monotonic_cst: tuple | None = None
    interaction_cst: list | None = None
    feature_costs: tuple | None = None
    charges_categories: bool = False


@dataclass(frozen=True)
class Candidate:
    rank: tuple  # ties go to the lowest
    column: int
    left: np.ndarray  # bool, over the rows of the node
    score: float
    ratio: float  # differs from the score for gain_ratio only
    threshold: float  # NaN for categories
    missing_left: bool
    left_codes: frozenset | None = None
    price: float = 1.0
    charge: float = 0.0  # what chance alone may have gained by the order of many categories

    @property
    def merit(self):
        return (self.score - self.charge) / self.price


@dataclass(eq=False)
class Node:
    rows: np.ndarray
    depth: int = 0
    lower: float = -np.inf
    upper: float = np.inf
    used: frozenset = frozenset()  # columns split on by the ancestors
    split: Candidate | None = None
    children: tuple = ()
    missing_left: bool = False
    impurity: float = 0.0
    value: np.ndarray = field(default_factory=lambda: np.zeros((1, 1)))


def pool_rare(codes, times, least):
    """Codes in which the first of the rare categories stands for all, and that one; None: there are not many."""
    there = {code: times[codes == code].sum() for code in np.unique(codes[codes != MISSING_CODE])}
    rare = sorted(code for code, n in there.items() if 0 < n < least)
    return (np.where(np.isin(codes, rare), rare[0], codes), rare[0]) if len(rare) > 10 else (codes, None)


def row_counts(w):
    """Return how often each row counts: by its weight, if all weights are multiples of the smallest."""
    relative = w / w[w > 0].min()
    is_count = np.allclose(relative, np.round(relative), rtol=1e-9, atol=0) and relative.sum() <= 16 * len(w) + 1000
    return np.round(relative) if is_count else (w > 0).astype(float)


def make_problem(X, y, w=None, criterion="gini", categories=(), stated=None, min_samples_category=1, times=None):
    """Split a float matrix into columns and drop the rows of weight zero; `categories` hold codes.

    Categories that are there fewer times than `min_samples_category` are one; `times` are those of the rows.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    y = y.reshape(len(y), -1)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=float)
    if np.any(w < 0):
        raise ValueError("weights must not be negative")
    n_classes = ()
    if callable(criterion) or criterion in ("gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio"):
        encoded = [np.unique(column, return_inverse=True) for column in y.T]
        n_classes = tuple(len(classes) for classes, _ in encoded)
        y = np.stack([codes for _, codes in encoded], axis=1)
    keep = w > 0
    columns, pools = [], []
    for j, column in enumerate(X.T):
        pool = None
        if j in categories:
            column = np.where(np.isnan(column), MISSING_CODE, column).astype(int)
            column, pool = pool_rare(column, row_counts(w) if times is None else times, min_samples_category)
        columns.append(column[keep])
        pools.append(pool)
    is_category = [j in categories for j in range(X.shape[1])]
    stated = w if stated is None else stated
    y = y[keep].astype(float)
    return Problem(columns, is_category, y, w[keep], n_classes, criterion, stated[keep], tuple(pools))


def midpoint(low, high):
    with np.errstate(invalid="ignore"):  # minus infinity and infinity have no middle
        threshold = low / 2 + high / 2
    return threshold if low <= threshold < high else low


def with_missing_sides(cuts, missing, whole):
    """Yield (order, left, missing_left, label) for each (left, label), then missing against present."""
    any_missing = missing.any()
    for at, (left, label) in enumerate(cuts):
        yield at, left & ~missing, False, label
        if any_missing:
            yield at, left | missing, True, label
    if any_missing and not missing.all():
        yield len(cuts), ~missing, False, whole


def number_splits(problem, rows, column):
    values = problem.columns[column][rows]
    missing = np.isnan(values)
    present = np.unique(values[~missing])
    cuts = [(values <= low, midpoint(low, high)) for low, high in itertools.pairwise(present)]
    return with_missing_sides(cuts, missing, np.inf)


def has_one_order(problem):
    """Whether the categories of a node have one natural order, along which the best set is sought."""
    if problem.n_classes:
        return problem.n_classes == (2,)
    return problem.y.shape[1] == 1 or problem.criterion in ("friedman_mse", "absolute_error")


def category_keys(problem, rows, column, codes):
    """Every key by which the categories may be ordered."""
    y, w, values = problem.y[rows], problem.w[rows], problem.columns[column][rows]
    of = [values == code for code in codes]
    if problem.criterion == "absolute_error":
        return [[lower_median(y[i, 0], w[i]) for i in of]]
    if problem.criterion == "friedman_mse":
        return [[mean(y[i].mean(axis=1), w[i]) for i in of]]
    if problem.n_classes:
        y = np.concatenate([np.eye(c)[y[:, k].astype(int)] for k, c in enumerate(problem.n_classes)], axis=1)
    means = np.array([[mean(y[i, k], w[i]) for k in range(y.shape[1])] for i in of])
    if has_one_order(problem):
        return [means[:, -1]]
    weights = np.array([np.sum(w[i]) for i in of])
    centred = means - np.average(means, axis=0, weights=weights)
    covariance = (centred * weights[:, None]).T @ centred
    first = np.linalg.eigh(covariance)[1][:, -1]
    return [*means.T, centred @ first]


def category_cuts(problem, rows, column):
    """Sets of codes that may go left."""
    values = problem.columns[column][rows]
    codes = [int(c) for c in np.unique(values[values != MISSING_CODE])]
    if len(codes) < 2:
        return
    if not has_one_order(problem) and len(codes) <= MAX_EXHAUSTIVE_CATEGORIES:
        for size in range(len(codes) - 1):
            for rest in itertools.combinations(codes[1:], size):
                yield frozenset((codes[0], *rest))
        return
    for key in category_keys(problem, rows, column, codes):
        order = sorted(range(len(codes)), key=lambda i: (key[i], codes[i]))
        for n_left in range(1, len(codes)):
            yield frozenset(codes[i] for i in order[:n_left])


def category_splits(problem, rows, column):
    values = problem.columns[column][rows]
    missing = values == MISSING_CODE
    cuts = [(np.isin(values, list(codes)), codes) for codes in category_cuts(problem, rows, column)]
    return with_missing_sides(cuts, missing, frozenset(values[~missing].tolist()))


def allowed_columns(rules, used, n_columns):
    """Columns in a group that holds every column used above (groups may overlap)."""
    if rules.interaction_cst is None:
        return set(range(n_columns))
    groups = [set(group) for group in rules.interaction_cst]
    rest = set(range(n_columns)).difference(*groups)
    groups = [*groups, rest] if rest else groups
    return set().union(*(group for group in groups if used <= group))


def scalar_value(problem, rows):
    """What a monotone constraint bounds: the share of the second class, or the centre."""
    value = node_value(problem.criterion, problem.y[rows], problem.w[rows], problem.n_classes)
    return value[0, 1] if problem.n_classes else value[0, 0]


def keeps_monotone(problem, rules, node, column, left):
    sign = rules.monotonic_cst[column] if rules.monotonic_cst is not None else 0
    if sign == 0:
        return True
    low, high = scalar_value(problem, node.rows[left]), scalar_value(problem, node.rows[~left])
    inside = node.lower <= min(low, high) and max(low, high) <= node.upper
    return inside and (low - high) * sign <= 0


def is_admissible(problem, rules, node, column, left):
    n_left = int(np.count_nonzero(left))
    if min(n_left, len(left) - n_left) < max(1, rules.min_samples_leaf):
        return False
    if rules.min_weight_fraction_leaf > 0:
        w = problem.w[node.rows]
        if min(w[left].sum(), w[~left].sum()) < rules.min_weight_fraction_leaf * problem.w.sum():
            return False
    return keeps_monotone(problem, rules, node, column, left)


def chance_gain(problem, node, column, before):
    """What the best set of so many categories may gain by chance, beyond what that of ten does."""
    values = problem.columns[column][node.rows]
    k = len(np.unique(values[values != MISSING_CODE]))
    if k <= 10:
        return 0.0
    times = row_counts(problem.w)
    is_count = np.ptp(problem.w / times) <= 1e-9 * problem.w.max()
    n = max(k, times[node.rows].sum() if is_count else len(node.rows))
    scale = 1.0 if problem.criterion == "chi2" else before
    return (k - 10) / (n - 1) * scale / n_directions(problem, node.rows)


def n_directions(problem, rows):
    """Return the degrees of freedom of a target: classes less one, or outputs."""
    y = problem.y[rows]
    if problem.n_classes:
        return max(1, sum(len(np.unique(output)) - 1 for output in y.T))
    return 1 if problem.criterion in ("friedman_mse", "absolute_error") else y.shape[1]


def best_split(problem, rules=None, node=None):
    """Return every admissible candidate of a node (the root unless given), unordered."""
    rules = rules or Rules()
    node = node or Node(np.arange(len(problem.w)))
    y, w, found = problem.y[node.rows], problem.w[node.rows], []
    before = impurity(problem.criterion, y, w, problem.n_classes)
    for column in sorted(allowed_columns(rules, node.used, len(problem.columns))):
        is_category = problem.is_category[column]
        splits = category_splits if is_category else number_splits
        charge = chance_gain(problem, node, column, before) if is_category and rules.charges_categories else 0.0
        for order, left, missing_left, label in splits(problem, node.rows, column):
            if not is_admissible(problem, rules, node, column, left):
                continue
            score = split_score(problem.criterion, y, w, left, problem.n_classes, before)
            if score == -np.inf or (charge > 0 and score <= charge):
                continue
            net = score - charge
            ratio = net / split_information(w, left) if problem.criterion == "gain_ratio" else net
            is_codes = isinstance(label, frozenset)
            found.append(
                Candidate(
                    rank=(column, order, missing_left),
                    column=column,
                    left=left,
                    score=score,
                    ratio=ratio,
                    threshold=np.nan if is_codes else label,
                    missing_left=missing_left,
                    left_codes=label if is_codes else None,
                    price=1.0 if rules.feature_costs is None else rules.feature_costs[column],
                    charge=charge,
                )
            )
    return found


def tolerance(problem, rows, best):
    """Two scores closer than this count as a tie."""
    scale = impurity(problem.criterion, problem.y[rows], problem.w[rows], problem.n_classes)
    return 1e-10 * abs(best) + 1e-12 * scale


def tied_for_best(problem, rows, candidates):
    """Candidates that may be chosen: the largest score, or C4.5's two-stage choice for gain_ratio."""
    if problem.criterion != "gain_ratio":
        best = max(c.merit for c in candidates)
        slack = tolerance(problem, rows, best)
        return [c for c in candidates if c.merit >= best - slack / c.price]
    finalists = []
    for column in {c.column for c in candidates}:
        mine = [c for c in candidates if c.column == column]
        best = max(c.score for c in mine)
        slack = tolerance(problem, rows, best)
        finalists.append([c for c in mine if c.score >= best - slack])
    average = np.mean([max(c.merit for c in column) for column in finalists])
    slack = GAIN_RATIO_SLACK + tolerance(problem, rows, average)
    eligible = [column for column in finalists if max(c.merit for c in column) >= average - slack]
    # Within a column the gain alone decides, so any of its ties may stand for it.
    best = max(min(c.ratio / c.price for c in column) for column in eligible)
    return [c for column in eligible for c in column if c.ratio / c.price >= best - 1e-9 * abs(best) - 1e-12]


def choose(problem, rows, candidates):
    return min(tied_for_best(problem, rows, candidates), key=lambda c: c.rank)


def is_pure(problem, rows):
    return bool(np.all(problem.y[rows] == problem.y[rows[0]]))


def majority_share(problem, rows):
    """Share of the commonest class (the smallest of them over several outputs)."""
    y, w = problem.y[rows], problem.w[rows]
    return min(class_shares(y[:, k], w, c).max() for k, c in enumerate(problem.n_classes))


def stops_before_search(problem, rules, node):
    n, weight = len(node.rows), problem.w[node.rows].sum()
    min_weight = rules.min_weight_fraction_leaf * problem.w.sum()
    return bool(
        node.depth >= rules.max_depth
        or n < rules.min_samples_split
        or n < 2 * rules.min_samples_leaf
        or weight < 2 * min_weight
        or is_pure(problem, node.rows)
        or (problem.n_classes and majority_share(problem, node.rows) >= rules.min_purity)
    )


def improvement(problem, node, candidate):
    return problem.w[node.rows].sum() / problem.w.sum() * (candidate.score - candidate.charge)


def priority(problem, node, candidate):
    """Return the gain by which best-first growth orders the nodes."""
    return improvement(problem, node, candidate) / candidate.price


def plan(problem, rules, node):
    """Fill in the value of the node and its best split, if any."""
    y, w = problem.y[node.rows], problem.stated[node.rows]
    node.impurity = impurity(problem.criterion, y, w, problem.n_classes)
    node.value = node_value(problem.criterion, y, w, problem.n_classes)
    if rules.monotonic_cst is not None:
        node.value = clip(node.value, node.lower, node.upper)
    if not stops_before_search(problem, rules, node):
        candidates = best_split(problem, rules, node)
        if candidates:
            chosen = choose(problem, node.rows, candidates)
            if improvement(problem, node, chosen) + 1e-15 >= rules.min_impurity_decrease:
                node.split = chosen
    return node


def clip(value, lower, upper):
    if value.shape[1] == 2:
        second = np.clip(value[0, 1], lower, upper)
        return np.array([[1 - second, second]])
    return np.clip(value, lower, upper)


def split_node(problem, rules, node):
    """Make the two children and plan them."""
    c = node.split
    rows = node.rows[c.left], node.rows[~c.left]
    bounds = [(node.lower, node.upper), (node.lower, node.upper)]
    sign = rules.monotonic_cst[c.column] if rules.monotonic_cst is not None else 0
    if sign:
        middle = (scalar_value(problem, rows[0]) + scalar_value(problem, rows[1])) / 2
        bounds = [(node.lower, middle), (middle, node.upper)][::sign]
    heavier_left = problem.w[rows[0]].sum() > problem.w[rows[1]].sum()
    saw_missing = problem.missing(c.column, node.rows).any()
    node.missing_left = c.missing_left if saw_missing else bool(heavier_left)
    used = node.used | {c.column}
    node.children = tuple(
        plan(problem, rules, Node(r, node.depth + 1, low, high, used))
        for r, (low, high) in zip(rows, bounds, strict=True)
    )


def grow(problem, rules=None):
    """Grow a whole tree; best-first when `max_leaf_nodes` is set. Return the root."""
    rules = rules or Rules()
    root = plan(problem, rules, Node(np.arange(len(problem.w))))
    frontier, n_leaves = [root], 1
    while frontier and (rules.max_leaf_nodes is None or n_leaves < rules.max_leaf_nodes):
        open_nodes = [n for n in frontier if n.split is not None]
        if not open_nodes:
            break
        node = max(open_nodes, key=lambda n: priority(problem, n, n.split))  # the first of equals
        frontier.remove(node)
        split_node(problem, rules, node)
        frontier.extend(node.children)
        n_leaves += 1
    return root


def preorder(root):
    nodes = [root]
    for child in root.children:
        nodes.extend(preorder(child))
    return nodes


def flatten(root):
    """The tree as arrays, with the names and conventions of `tree_`."""
    nodes = preorder(root)
    index = {id(node): i for i, node in enumerate(nodes)}
    inner = [bool(node.children) for node in nodes]
    return {
        "children_left": [index[id(n.children[0])] if n.children else -1 for n in nodes],
        "children_right": [index[id(n.children[1])] if n.children else -1 for n in nodes],
        "feature": [n.split.column if i else -2 for n, i in zip(nodes, inner, strict=True)],
        "threshold": [n.split.threshold if i else -2.0 for n, i in zip(nodes, inner, strict=True)],
        "impurity": [n.impurity for n in nodes],
        "n_node_samples": [len(n.rows) for n in nodes],
        "value": np.array([n.value for n in nodes]),
    }
