"""The layout of the reference files of rpart for a fit: node tables, split lists, csplit codes."""

import numpy as np

from oracle.rpart import importance, predict, prune
from oracle.rpart_splits import LEFT, NOWHERE, RIGHT, directions

CSPLIT = {LEFT: 1, NOWHERE: 2, RIGHT: 3}
SPLIT_COLUMNS = ["node", "role", "var", "count", "ncat", "improve", "index", "adj"]


def describe(fitted, names, newdata, pruning_cps):
    """Neutral dict: frame, splits, csplit, cptable, variable_importance, train_node, newdata_pred, pruned."""
    splits, csplit = split_tables(fitted, names)
    return {
        "frame": frame_table(fitted, names),
        "splits": splits,
        "csplit": csplit,
        "cptable": fitted.cptable.tolist(),
        "variable_importance": named_importance(fitted, names),
        "train_node": fitted.where.tolist(),
        "newdata_pred": predictions(fitted, newdata),
        "pruned": [pruned_summary(prune(fitted, cp), cp, names, newdata) for cp in pruning_cps],
    }


def frame_table(fitted, names):
    return [frame_row(node, fitted.root_risk, names) for node in fitted.root.walk()]


def frame_row(node, root_risk, names):
    summary = node.summary
    row = {
        "node": node.number,
        "var": "<leaf>" if node.is_leaf else names[node.primaries[0].column],
        "n": len(node.rows),
        "wt": node.weight,
        "dev": summary.risk,
        "yval": summary.yval,
        "complexity": relative_complexity(node, root_risk),
        "ncompete": max(len(node.primaries) - 1, 0),
        "nsurrogate": len(node.surrogates),
        "events": summary.events,
        "nodeprob": summary.nodeprob,
    }
    if summary.counts is not None:
        row["counts"], row["yprob"] = summary.counts.tolist(), summary.yprob.tolist()
    return {key: value for key, value in row.items() if value is not None}


def relative_complexity(node, root_risk):
    return node.complexity / root_risk if root_risk else np.nan


def split_tables(fitted, names):
    rows, csplit = [], []
    for node in fitted.root.walk():
        if node.is_leaf:
            continue
        roles = ["primary"] + ["competitor"] * (len(node.primaries) - 1) + ["surrogate"] * len(node.surrogates)
        for role, split in zip(roles, [*node.primaries, *node.surrogates], strict=True):
            ncat, index = -1 if split.below == LEFT else 1, split.cut
            levels = level_directions(split, fitted.table)
            if levels is not None:
                csplit.append([CSPLIT[int(side)] for side in levels])
                ncat, index = len(levels), len(csplit)
            values = [node.number, role, names[split.column], split.count, ncat, split.improve, index, split.adj]
            rows.append(dict(zip(SPLIT_COLUMNS, values, strict=True)))
    return rows, csplit


def level_directions(split, table):
    if split.levels is not None:
        return split.levels
    if table.kinds[split.column] == "ordered":
        codes = np.arange(1, table.n_levels[split.column] + 1)
        return directions(split, codes, cut_is_below=True)
    return None


def named_importance(fitted, names):
    return {names[column]: value for column, value in importance(fitted).items()}


def predictions(fitted, newdata):
    nodes, summaries = predict(fitted, newdata)
    result = {"node": nodes.tolist()}
    if summaries[0].counts is None:
        return {**result, "vector": [s.yval for s in summaries]}
    return {**result, "class_index": [s.yval for s in summaries], "prob": [s.yprob.tolist() for s in summaries]}


def pruned_summary(fitted, cp, names, newdata):
    nodes = list(fitted.root.walk())
    numbers, counts = np.unique(fitted.where, return_counts=True)
    return {
        "cp": cp,
        "nodes": [node.number for node in nodes],
        "leaves": [node.number for node in nodes if node.is_leaf],
        "complexity": [relative_complexity(node, fitted.root_risk) for node in nodes],
        "cptable": fitted.cptable.tolist(),
        "variable_importance": named_importance(fitted, names),
        "newdata_node": predict(fitted, newdata)[0].tolist(),
        "train_node_counts": {str(n): int(c) for n, c in zip(numbers, counts, strict=True)},
    }
