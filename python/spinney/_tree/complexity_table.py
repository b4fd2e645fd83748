"""The table of complexities: nested pruned trees with their training and cross-validated errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display import ShownAsTable, frame_of
from spinney._model.file.codec import Field, Known, SavedState, integer, lack, nullable, number, numbers, optional, text
from spinney._model.file.container import refuse
from spinney.inspect.draw.curves import draw_complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_SHOWN = 30  # rows printed; longer tables are cut to their head, the chosen row and their tail
_MOST_SAVED = 100  # rows in a model file


@dataclass(frozen=True, eq=False, repr=False)
class ComplexityTable(ShownAsTable):
    """The nested trees of cost-complexity pruning and their errors, from the root alone to the largest tree.

    Attributes
    ----------
    alpha : ndarray of float
        Smallest penalty per leaf at which this tree is the best.
    cp : ndarray of float
        The same as a fraction of the root's risk. The risk is by default the impurity, not the error: see `risk` of
        `DecisionTreeClassifier`.
    n_splits, n_leaves : ndarray of int
        Size of the tree.
    relative_error : ndarray of float
        Error on the training rows as a fraction of the root's: the misclassification rate, the cost, or the loss of
        the criterion of a regression tree.
    cv_error, cv_se : ndarray of float
        The same on held-out rows, and its standard error. With a scorer: the mean score and its standard error over
        the folds.
    chosen : int or None
        Row of the chosen tree; None: no tree was chosen from this table.
    scoring : str or None
        Name of the scorer; None: `cv_error` is the error, not a score.
    rule : str, float or None
        Rule by which the tree was chosen: "min", "1se" or a number of standard errors; None: no tree was chosen.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(prune="cv", min_samples_leaf=20, random_state=0).fit(X, y)
    >>> print(model.cp_table_)
           cp  splits  leaves  relative error  CV error  standard error
    0  0.5187       0       1           1.000     1.000           0.048
    1  0.3244       1       2           0.375     0.385           0.040
    2  0.0151       2       3           0.094     0.109           0.023  ← chosen
    3  0.0078       3       4           0.094     0.109           0.023
    4  0.0066       4       5           0.094     0.109           0.023
    5  0.0004       5       6           0.094     0.109           0.023
    6  0.0000       6       7           0.094     0.109           0.023
    """

    alpha: NDArray[np.float64]
    cp: NDArray[np.float64]
    n_splits: NDArray[np.int64]
    n_leaves: NDArray[np.int64]
    relative_error: NDArray[np.float64]
    cv_error: NDArray[np.float64]
    cv_se: NDArray[np.float64]
    chosen: int | None = None
    scoring: str | None = None
    rule: str | float | None = None

    def __len__(self) -> int:
        return len(self.alpha)

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns as lists; with a scorer, ``cv_error`` is called ``cv_score``."""
        return {
            "alpha": self.alpha.tolist(),
            "cp": self.cp.tolist(),
            "n_splits": self.n_splits.tolist(),
            "n_leaves": self.n_leaves.tolist(),
            "relative_error": self.relative_error.tolist(),
            "cv_error" if self.scoring is None else "cv_score": self.cv_error.tolist(),
            "cv_se": self.cv_se.tolist(),
        }

    def to_frame(self, backend: Any = None) -> Any:
        """Turn the table into a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            alpha, cp, n_splits, n_leaves, relative_error, cv_error (or cv_score) and cv_se.
        """
        return frame_of(self.columns(), backend)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cross-validated error against the size of the tree.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        return draw_complexity(self, ax)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        error = "CV error" if self.scoring is None else f"CV {self.scoring}"
        heads = ["", "cp", "splits", "leaves", "relative error", error, "standard error"]
        digits = _digits(self.cp)
        shown = _shown_rows(len(self), self.chosen)
        cells = [
            [
                str(i),
                f"{self.cp[i]:.{digits}f}",
                str(self.n_splits[i]),
                str(self.n_leaves[i]),
                *(f"{column[i]:.3f}" for column in (self.relative_error, self.cv_error, self.cv_se)),
            ]
            for i in shown
        ]
        widths = [max(len(row[k]) for row in [heads, *cells]) for k in range(len(heads))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(heads, widths, strict=True))]
        before = -1
        for i, row in zip(shown, cells, strict=True):
            if i != before + 1:
                lines.append("…".rjust(widths[0]))
            mark = "  ← chosen" if i == self.chosen else ""
            lines.append("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + mark)
            before = i
        return "\n".join(lines)

    def thinned(self, most: int = _MOST_SAVED) -> ComplexityTable:
        """Return a shorter table, whose rows are spread over this one and include the chosen row.

        Parameters
        ----------
        most : int, default=100
            Maximum number of rows.

        Returns
        -------
        ComplexityTable
            The shorter table, or this table if it has at most `most` rows.
        """
        if len(self) <= most:
            return self
        spread = np.linspace(0, len(self) - 1, most - 1).round().astype(int).tolist()
        rows = sorted({*spread} if self.chosen is None else {*spread, self.chosen})
        chosen = None if self.chosen is None else rows.index(self.chosen)
        arrays: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return replace(self, chosen=chosen, **arrays)


def _digits(cp: NDArray[np.float64]) -> int:
    """Return how many decimals distinguish neighbouring rows: three to seven."""
    for digits in range(3, 7):
        if len(np.unique(cp.round(digits))) == len(cp):
            return digits
    return 7


def _shown_rows(n: int, chosen: int | None) -> list[int]:
    if n <= _MOST_SHOWN:
        return list(range(n))
    around = [] if chosen is None else range(max(chosen - 2, 0), min(chosen + 3, n))
    return sorted({*range(_MOST_SHOWN // 3), *around, *range(n - _MOST_SHOWN // 3, n)})


# ---- model files ---------------------------------------------------------------------------------------------


def _read_rule(value: Any, name: str, known: Known) -> str | float | None:
    return value if isinstance(value, str | float | int | None) else lack(name)


_COLUMNS = dict.fromkeys(("alpha", "cp"), numbers(np.float64, "n_trees", finite=False))
_COLUMNS |= dict.fromkeys(("n_splits", "n_leaves"), numbers(np.int64, "n_trees", least=0, below=2**32))
_COLUMNS |= dict.fromkeys(("relative_error", "cv_error", "cv_se"), numbers(np.float64, "n_trees", finite=False))
_SAVED_TABLE = SavedState(
    "",
    {
        **_COLUMNS,
        "chosen": nullable(integer(least=0, below="n_trees")),
        "scoring": nullable(text()),
        "rule": Field(lambda rule: rule, _read_rule),
    },
)


def _read_table(value: Any, name: str, known: Known) -> ComplexityTable:
    table = ComplexityTable(**_SAVED_TABLE.from_header(value))
    return table if len(table) else refuse("is damaged: its complexity table has no rows")


_ALPHA = number(0.0)  # NaN, which is null, where the root of a tree by rpart's rules has no risk
SAVED_PRUNING = SavedState(
    "",
    {
        "alpha_": Field(
            lambda alpha: None if math.isnan(alpha) else _ALPHA.write(alpha),
            lambda value, name, known: math.nan if value is None else _ALPHA.read(value, name, known),
            key="alpha",
            is_optional=True,
        ),
        "cp_table_": optional(
            Field(lambda table: _SAVED_TABLE.to_header(table.thinned()), _read_table, key="cp_table")
        ),
    },
)
