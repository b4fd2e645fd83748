"""Slow reference implementation of R's rpart: fit, cross-validated complexity table, predict and prune.

With ``quirks=True`` it reproduces the known bugs of rpart 4.1; with ``quirks=False`` it does what is documented:

====================================  ==========================================================
rpart                                 ``quirks=False``
====================================  ==========================================================
xerror reads the loss transposed      loss[true class, predicted class]
a held-out row stuck on a missing     its own error
value repeats the error of the row
before it (usesurrogate 0 and 1)
a factor surrogate needs two rows     or two rows on each side, as for numbers
that disagree with the primary
lists of two lose both for a new best the best two
maxsurrogate = 0 turns the majority   the majority rule depends on usesurrogate alone
rule off while fitting
a tree without splits has its root's  the price of a split, and errors of held-out rows
complexity as CP, and xerror and xstd
of 0
====================================  ==========================================================
"""

from dataclasses import dataclass, field

import numpy as np

from oracle.rpart_methods import Anova, Classes, Poisson, exposure
from oracle.rpart_splits import LEFT, RIGHT, Table
from oracle.rpart_tree import Grower, Node, final_node, next_node

DEFAULTS = {
    "minsplit": 20,
    "minbucket": 7,
    "cp": 0.01,
    "maxcompete": 4,
    "maxsurrogate": 5,
    "usesurrogate": 2,
    "surrogatestyle": 0,
    "maxdepth": 30,
}


@dataclass
class Fit:
    root: Node
    table: Table = field(repr=False)
    method: object = field(repr=False)
    params: dict
    used: np.ndarray = field(repr=False)  # rows of the original table that were fitted
    cptable: np.ndarray
    where: np.ndarray = field(repr=False)  # node number of each used row

    @property
    def root_risk(self):
        return self.root.summary.risk

    @property
    def usesurrogate(self):
        return self.params["usesurrogate"]


def make_table(columns, kinds=None, n_levels=None):
    columns = [np.asarray(column, float) for column in columns]
    kinds = ["numeric"] * len(columns) if kinds is None else list(kinds)
    if n_levels is None:
        n_levels = [0 if k == "numeric" else int(np.nanmax(c)) for c, k in zip(columns, kinds, strict=True)]
    return Table(columns, kinds, list(n_levels))


def fit(
    columns, y, *, method, kinds=None, n_levels=None, n_classes=None, weights=None, params=None, xgroups=None,
    quirks=True,
):  # fmt: skip
    """Fit a tree.

    Parameters
    ----------
    columns : list of (n,) arrays
        Floats, NaN where missing; factors as codes from 1.
    y : (n,) or (n, m) array
        class: codes from 1; anova: values; poisson: (time, events) or events; exp: (time, status) or
        (start, stop, status). NaN where missing.
    method : {"class", "anova", "poisson", "exp"}
    kinds, n_levels : list, optional
        "numeric", "factor" or "ordered", and the number of levels, per column.
    params : dict, optional
        rpart.control's values and split, prior, loss, shrink, error_method, cost.
    xgroups : (n,) array, optional
        Fold of each row; without it there is no cross-validation.
    """
    table, y = make_table(columns, kinds, n_levels), np.asarray(y, float)
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    used = complete_rows(table, y)
    table = Table([finite(column[used]) for column in table.columns], table.kinds, table.n_levels)
    y, weights = y[used], weights[used]
    params = {**DEFAULTS, **(params or {})}
    rules = make_method(method, y, weights, params, n_classes, quirks)
    cost = np.ones(len(table)) if params.get("cost") is None else np.asarray(params["cost"], float)
    grower = Grower(table, rules, weights, params, cost, quirks)
    everything = np.arange(len(y))
    rules.start(everything)
    alpha = params["cp"] * rules.evaluate(everything).risk
    root = grower.grow(everything, alpha)
    cptable = complexity_table(root, alpha)
    unjudged = quirks and root.is_leaf
    if unjudged:
        cptable[0, 0] = root.complexity
    if unjudged and xgroups is not None:
        cptable = np.column_stack([cptable, np.zeros((1, 2))])
    elif xgroups is not None:
        errors = cross_validate(grower, cptable[:, 0], alpha, np.asarray(xgroups)[used])
        cptable = np.column_stack([cptable, summarise_errors(errors, weights)])
    with np.errstate(invalid="ignore", divide="ignore"):
        cptable[:, [0, *range(2, cptable.shape[1])]] /= root.summary.risk
    rules.start(everything)
    return Fit(root, table, rules, params, used, cptable, final_numbers(root, len(y)))


def finite(values):
    """While fitting, an infinite value is a missing one; predict takes it as it is."""
    return np.where(np.isfinite(values), values, np.nan)


def complete_rows(table, y):
    """Rows with a response and at least one predictor."""
    y = y.reshape(len(y), -1)
    has_predictor = ~np.isnan(np.column_stack(table.columns)).all(axis=1)
    return np.flatnonzero(~np.isnan(y).any(axis=1) & has_predictor)


def make_method(method, y, weights, params, n_classes, quirks):
    if method == "anova":
        return Anova(y, weights)
    if method == "class":
        codes = y.astype(int) - 1
        n_classes = int(codes.max()) + 1 if n_classes is None else n_classes
        prior, loss, split = params.get("prior"), params.get("loss"), params.get("split", "gini")
        return Classes(codes, weights, n_classes, prior, loss, split, quirks)
    if method == "poisson":
        time, events = (np.ones(len(y)), y) if y.ndim == 1 else (y[:, 0], y[:, 1])
    else:
        start = y[:, 0] if y.shape[1] == 3 else None
        time, events = exposure(y[:, -2], y[:, -1], start, weights), y[:, -1]
    error_method = params.get("error_method", "deviance")
    shrink = params.get("shrink")
    shrink = (0.0 if error_method == "sqrt" else 1.0) if shrink is None else shrink
    return Poisson(time, events, weights, shrink, error_method)


def complexity_table(root, alpha):
    """Rows of CP, number of splits and risk, in units of risk; equal complexities share a row, near ones do not."""
    internal = [node for node in root.walk() if not node.is_leaf]
    cps = sorted({max(node.complexity, alpha) for node in internal} | {alpha}, reverse=True)
    rows = []
    for cp in cps:
        kept = sum(node.complexity > cp for node in internal)
        rows.append([cp, kept, pruned_risk(root, cp)])
    return np.array(rows)


def pruned_risk(node, cp):
    if node.is_leaf or node.complexity <= cp:
        return node.summary.risk
    return pruned_risk(node.left, cp) + pruned_risk(node.right, cp)


def cross_validate(grower, cps, alpha, groups):
    """Error of each row, held out, at each complexity: one row per case, one column per line of the table."""
    weights = grower.weights
    between = np.concatenate([[10 * cps[0]], between_lines(cps, grower.quirks)])
    errors = np.zeros((len(groups), len(cps)))
    stale = np.zeros(len(cps))
    table = grower.table  # without gaps and factors no held-out row can ask for a surrogate
    with_surrogates = "factor" in table.kinds or any(np.isnan(column).any() for column in table.columns)
    for group in np.unique(groups):
        training, held_out = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
        scale = np.sum(weights[training]) / np.sum(weights)
        root = grower.grow(training, alpha * scale, with_surrogates)
        for row in held_out:
            run_down(grower, root, row, between * scale, stale)
            errors[row] = stale
    return errors


def between_lines(cps, quirks):
    """Geometric means of neighbours. A negative last CP has none: rpart's NaN stops every row where it stands."""
    product = cps[:-1] * cps[1:]
    undefined = np.nan if quirks else cps[1:]
    return np.where(product < 0, undefined, np.sqrt(np.maximum(product, 0)))


def run_down(grower, node, row, cps, errors):
    """Write the errors of a held-out row into ``errors``, one per complexity, going down as the complexity falls."""
    usesurrogate, quirks = grower.params["usesurrogate"], grower.quirks
    stuck = False
    for i, cp in enumerate(cps):
        while not stuck and not node.is_leaf and cp < node.complexity:
            child = next_node(node, grower.table, row, usesurrogate, majority_or_right)
            stuck = child is None
            node = node if stuck else child
        if stuck and quirks:
            return
        errors[i] = grower.method.error(row, node.summary)


def majority_or_right(node):
    return LEFT if node.majority == LEFT else RIGHT


def summarise_errors(errors, weights):
    """Sum and spread of the held-out errors per line of the table."""
    errors, weights = errors[weights > 0], weights[weights > 0]  # the error of others may be infinite
    total = weights @ errors
    with np.errstate(invalid="ignore"):
        spread = weights @ errors**2 - total**2 / np.sum(weights)
    return np.column_stack([total, np.sqrt(np.maximum(spread, 0))])


def final_numbers(root, n_rows):
    where = np.zeros(n_rows, int)
    for node in root.walk():
        where[node.rows] = node.number  # parents come before their children
    return where


def predict(fitted, columns):
    """Node number and summary of each row of a new table."""
    table = make_table(columns, fitted.table.kinds, fitted.table.n_levels)
    nodes = [final_node(fitted.root, table, row, fitted.usesurrogate) for row in range(len(table.columns[0]))]
    return np.array([node.number for node in nodes]), [node.summary for node in nodes]


def copy_pruned(node, cp, root_risk):
    if node.is_leaf or node.complexity / root_risk <= cp:
        return Node(node.number, node.rows, node.weight, node.summary, node.complexity)
    copy = Node(**vars(node))
    copy.left, copy.right = copy_pruned(node.left, cp, root_risk), copy_pruned(node.right, cp, root_risk)
    return copy


def prune(fitted, cp):
    """Fit without the splits whose complexity does not exceed cp (relative to the root's risk)."""
    if all(node.is_leaf or node.complexity / fitted.root_risk > cp for node in fitted.root.walk()):
        return fitted  # cptable included: its last CP stays
    root = copy_pruned(fitted.root, cp, fitted.root_risk)
    with np.errstate(invalid="ignore"):
        n_above = int(np.sum(fitted.cptable[:, 0] > cp))
    cptable = fitted.cptable[: n_above + 1].copy()
    cptable[-1, 0] = cp
    where = final_numbers(root, len(fitted.where))
    return Fit(root, fitted.table, fitted.method, fitted.params, fitted.used, cptable, where)


def importance(fitted):
    """Sum over splits of the improvement, and of adj times it for each surrogate; {column: value}."""
    total = {}
    for node in fitted.root.walk():
        if node.is_leaf:
            continue
        credit = fitted.method.credit(node.primaries[0].improve, node.summary.risk)
        for split, share in [(node.primaries[0], 1.0), *((s, s.adj) for s in node.surrogates)]:
            total[split.column] = total.get(split.column, 0.0) + share * credit
    return total
