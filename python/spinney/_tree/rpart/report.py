"""The tables and texts of rpart: frame, splits, printcp, summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._data import Schema
from spinney._data.display import align
from spinney._estimator.estimator import only_if
from spinney._estimator.table_estimator import TableEstimator
from spinney._tree.rpart.record import RpartRecord

if TYPE_CHECKING:
    from pandas import DataFrame

_TITLES = {
    "class": "Classification tree",
    "anova": "Regression tree",
    "poisson": "Rates regression tree",
    "exp": "Survival regression tree",
}


def _number(value: float, digits: int) -> str:
    if value is None or np.isnan(value):
        return "NaN"
    return f"{value:.{digits}g}"


class RpartReport:
    """The texts and frames of a record.

    Parameters
    ----------
    record : RpartRecord
    schema : Schema
    classes : ndarray or None
        Class labels.
    """

    def __init__(self, record: RpartRecord, schema: Schema, classes: NDArray[Any] | None) -> None:
        self.record, self.schema, self.classes = record, schema, classes

    def frame(self) -> DataFrame:
        """Return the nodes as a pandas frame."""
        import pandas as pd

        frame = pd.DataFrame(self.record.frame(self.schema)).set_index("node")
        if self.classes is not None:
            frame["yval"] = [self.classes[int(k) - 1] for k in frame["yval"]]
        return frame

    def splits(self) -> DataFrame:
        """Return the splits as a pandas frame."""
        import pandas as pd

        columns = ["node", "role", "var", "count", "improve", "adj", "cut", "below", "left", "right"]
        return pd.DataFrame(self.record.splits(self.schema), columns=columns)

    # ---- printcp -----------------------------------------------------------------------------------------

    def complexity_text(self, digits: int) -> str:
        """Return the text of printcp."""
        record = self.record
        used = sorted({line["var"] for line in record.frame(self.schema)} - {"<leaf>"})
        n = int(record.tree.n_node_samples[0])
        root = f"Root node error: {_number(record.root_risk, digits)}/{n} = {_number(record.root_risk / n, digits)}"
        lines = [f"{_TITLES[record.method]}:", "", "Variables actually used in tree construction:"]
        lines += [", ".join(used) if used else "(none)", "", root, "", f"n = {n}", ""]
        return "\n".join(lines + self.table_lines(digits))

    def table_lines(self, digits: int) -> list[str]:
        """Return the lines of the table of complexities."""
        table = self.record.cp_table
        names = ["CP", "nsplit", "rel error", "xerror", "xstd"][: table.shape[1]]
        rows = [["", *names]]
        for i, line in enumerate(table, start=1):
            cells = [_number(value, digits) for value in line]
            cells[1] = str(int(line[1]))
            rows.append([str(i), *cells])
        return align(rows, gap=" ")

    # ---- summary -----------------------------------------------------------------------------------------

    def summary_text(self, digits: int) -> str:
        """Return the text of summary: every node with its splits."""
        record = self.record
        lines = [f"{_TITLES[record.method]}:", f"  n = {int(record.tree.n_node_samples[0])}"]
        if record.n_dropped:
            lines[-1] += f" ({record.n_dropped} rows dropped: no response, or no predictor)"
        lines += ["", *self.table_lines(digits), "", *self._importance_lines(), ""]
        by_node: dict[int, list[dict[str, Any]]] = {}
        for split in record.splits(self.schema):
            by_node.setdefault(split["node"], []).append(split)
        frame = record.frame(self.schema)
        rows_of = {line["node"]: line["n"] for line in frame}
        for node in sorted(frame, key=lambda line: int(line["node"])):
            lines += [*self._node_lines(node, by_node.get(node["node"], []), rows_of, digits), ""]
        return "\n".join(lines).rstrip()

    def _importance_lines(self) -> list[str]:
        importance = self.record.importance(self.schema.n_features)
        if not importance.sum() > 0:
            return ["Variable importance: none"]
        percent = np.rint(100 * importance / importance.sum()).astype(int)
        order = np.argsort(-importance, kind="stable")
        shown = [k for k in order if percent[k] > 0]
        cells = [[self.schema.names[k] for k in shown], [str(percent[k]) for k in shown]]
        return ["Variable importance", *align(cells, left=(), gap=" ")]

    def _node_lines(
        self, node: dict[str, Any], splits: list[dict[str, Any]], rows_of: dict[int, int], digits: int
    ) -> list[str]:
        head = f"Node number {node['node']}: {node['n']} observations"
        if splits:
            head += f",    complexity param={_number(node['complexity'], digits)}"
        lines = [head, *self._value_lines(node, digits)]
        if not splits:
            return lines
        left, right = 2 * node["node"], 2 * node["node"] + 1
        stay = node["n"] - rows_of[left] - rows_of[right]
        remain = f", {stay} observations remain" if stay else ""
        lines.append(f"  left son={left} ({rows_of[left]} obs) right son={right} ({rows_of[right]} obs){remain}")
        primary = [split for split in splits if split["role"] != "surrogate"]
        surrogates = [split for split in splits if split["role"] == "surrogate"]
        lines.append("  Primary splits:")
        lines += self._split_lines(primary, node["n"], digits, "improve")
        if surrogates:
            lines.append("  Surrogate splits:")
            lines += self._split_lines(surrogates, node["n"], digits, "agree")
        return lines

    def _value_lines(self, node: dict[str, Any], digits: int) -> list[str]:
        if self.record.method == "class":
            assert self.classes is not None
            label = self.classes[int(node["yval"]) - 1]
            loss = node["dev"] / (node["nodeprob"] * self.record.total_weight)
            rows = [
                ["    class counts:", *[_number(c, digits) for c in node["counts"]]],
                ["   probabilities:", *[f"{p:.3f}" for p in node["yprob"]]],
            ]
            head = f"  predicted class={label}  expected loss={_number(loss, digits)}"
            return [f"{head}  P(node) ={_number(node['nodeprob'], digits)}", *align(rows, left=(), gap=" ")]
        if self.record.method == "anova":
            mse = node["dev"] / node["wt"]
            return [f"  mean={_number(node['yval'], digits)}, MSE={_number(mse, digits)}"]
        rate, deviance = _number(node["yval"], digits), _number(node["dev"] / node["wt"], digits)
        return [f"  events={_number(node['events'], digits)},  estimated rate={rate} , mean deviance={deviance}"]

    def _split_lines(self, splits: list[dict[str, Any]], n: int, digits: int, measure: str) -> list[str]:
        rows = []
        for split in splits:
            if measure == "improve":
                tail = f"improve={_number(split['improve'], digits)}, ({n - split['count']} missing)"
            else:
                tail = f"agree={split['improve']:.3f}, adj={split['adj']:.3f}, ({split['count']} split)"
            rows.append([f"      {split['var']}", self._condition(split, digits), tail])
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        return [f"{row[0]:<{widths[0]}} {row[1]:<{widths[1]}} {row[2]}".rstrip() for row in rows]

    def _condition(self, split: dict[str, Any], digits: int) -> str:
        if split["left"] is not None:
            sides = [", ".join(str(value) for value in split[side]) for side in ("left", "right")]
            return f"{{{sides[0]}}} to the left, {{{sides[1]}}} to the right,"
        sign = "< " if split["below"] == "left" else ">="
        return f"{sign} {_number(split['cut'], max(digits, 6))} to the left,"


# ---- methods of trees grown by rpart's rules -----------------------------------------------------------------


def _why_no_report(model: TableEstimator) -> str | None:
    by_rpart = hasattr(model, "rpart_") if hasattr(model, "tree_") else model.dialect is not None
    if by_rpart:
        return None
    return f"needs rpart's rules. Make the tree with {type(model).__name__}.rpart(...), or use cp_table_ and plot_cp."


def _report(model: TableEstimator) -> RpartReport:
    check_is_fitted(model)
    return RpartReport(model.rpart_, model.schema_, getattr(model, "classes_", None))


@only_if(_why_no_report)
def printcp(self: TableEstimator, digits: int = 5) -> None:
    """Print the complexity table of a tree made by `rpart(...)`, as rpart's `printcp` does.

    Parameters
    ----------
    digits : int, default=5
        Significant digits.
    """
    print(_report(self).complexity_text(digits))


@only_if(_why_no_report)
def summary(self: TableEstimator, digits: int = 5) -> None:
    """Print each node of a tree made by `rpart(...)`, with all its splits, as rpart's `summary` does.

    Parameters
    ----------
    digits : int, default=5
        Significant digits.
    """
    print(_report(self).summary_text(digits))


@only_if(_why_no_report)
def rpart_frame(self: TableEstimator) -> DataFrame:
    """Return the nodes of a tree made by `rpart(...)`, in the form of rpart's `frame`.

    Returns
    -------
    pandas.DataFrame
        A row per node, indexed by rpart's node number.
    """
    return _report(self).frame()


@only_if(_why_no_report)
def rpart_splits(self: TableEstimator) -> DataFrame:
    """Return the splits of a tree made by `rpart(...)`: primary, competitors and surrogates.

    Returns
    -------
    pandas.DataFrame
        A row per split. For surrogates, `improve` is the agreement and `adj` the agreement beyond the majority rule.
    """
    return _report(self).splits()
