"""The outcome of cross-validated pruning as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._model.file.container import field, refuse
from spinney.inspect.charts.evaluation import draw_complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 30  # rows printed; of longer tables the head, the choice and the tail
_KEPT = 100  # rows in a model file


@dataclass(frozen=True, eq=False, repr=False)
class ComplexityTable:
    """Nested trees and their errors, from the root alone to the largest tree.

    Attributes
    ----------
    alpha : ndarray of float
        Smallest penalty per leaf at which the tree is the best one.
    cp : ndarray of float
        The same as a share of the root's risk.
    n_splits, n_leaves : ndarray of int
        Size of the tree.
    relative_error : ndarray of float
        Loss on the training rows as a share of the root's.
    cv_error, cv_se : ndarray of float
        The same on held-out rows, and its standard error. With a scorer: the mean score and its standard error over
        the folds.
    chosen : int or None
        Row of the tree that was kept.
    scoring : str or None
        Name of the scorer; None: the tree's own loss.
    rule : str, float or None
        How the choice was made.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(prune="cv", min_samples_leaf=20, random_state=0).fit(X, y)
    >>> print(model.cp_table_)
           cp  splits  leaves  relative error  CV error  standard error
    0  0.5187       0       1           1.000     1.000           0.048
    1  0.3244       1       2           0.375     0.385           0.040
    2  0.0151       2       3           0.094     0.109           0.023  ← kept
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

    @property
    def _judged_by(self) -> str:
        return "cv_error" if self.scoring is None else "cv_score"

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns as lists; with a scorer, ``cv_error`` is called ``cv_score``."""
        return {
            "alpha": self.alpha.tolist(),
            "cp": self.cp.tolist(),
            "n_splits": self.n_splits.tolist(),
            "n_leaves": self.n_leaves.tolist(),
            "relative_error": self.relative_error.tolist(),
            self._judged_by: self.cv_error.tolist(),
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
        from spinney._data.display import frame_of

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
        judged = "CV error" if self.scoring is None else f"CV {self.scoring}"
        heads = ["", "cp", "splits", "leaves", "relative error", judged, "standard error"]
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
            mark = "  ← kept" if i == self.chosen else ""
            lines.append("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + mark)
            before = i
        return "\n".join(lines)

    # ---- model files ---------------------------------------------------------------------------------

    def thinned(self, most: int = _KEPT) -> ComplexityTable:
        """Return at most `most` rows spread over the table, the choice among them."""
        if len(self) <= most:
            return self
        rows = set(np.linspace(0, len(self) - 1, most - 1).round().astype(int).tolist())
        kept = sorted(rows if self.chosen is None else rows | {self.chosen})
        chosen = None if self.chosen is None else kept.index(self.chosen)
        arrays = {f.name: getattr(self, f.name)[kept] for f in fields(self) if f.name not in _WORDS}
        return ComplexityTable(**arrays, chosen=chosen, scoring=self.scoring, rule=self.rule)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; numbers that are not finite become None."""
        arrays = {name: _to_json(getattr(self, name)) for name in _NUMBERS}
        return arrays | {name: getattr(self, name) for name in _WORDS}

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> ComplexityTable:
        """Turn back what `to_dict` gives; ValueError if it is something else."""
        arrays: dict[str, Any] = {}
        for name, kind in _NUMBERS.items():
            numbers = entries.get(name)
            known = (int,) if kind is np.int64 else (int, float, type(None))
            if not isinstance(numbers, list) or not all(type(n) in known for n in numbers):
                raise ValueError(f"column {name!r} is unusable")
            try:
                arrays[name] = np.array([np.nan if n is None else n for n in numbers]).astype(kind)
            except (OverflowError, TypeError) as error:
                raise ValueError(f"column {name!r} is unusable") from error
        chosen, scoring, rule = (entries.get(name) for name in _WORDS)
        n = len(arrays["alpha"])
        if not n or any(len(column) != n for column in arrays.values()):
            raise ValueError("the columns differ in length")
        if not (chosen is None or (type(chosen) is int and 0 <= chosen < n)):
            raise ValueError("the chosen row does not exist")
        if not isinstance(scoring, str | None) or not isinstance(rule, str | float | int | None):
            raise ValueError("the rule is unusable")
        return cls(**arrays, chosen=chosen, scoring=scoring, rule=rule)


_WORDS = ("chosen", "scoring", "rule")
_NUMBERS: dict[str, type] = {
    f.name: np.int64 if f.name in ("n_splits", "n_leaves") else np.float64
    for f in fields(ComplexityTable)
    if f.name not in _WORDS
}


def _to_json(numbers: NDArray[Any]) -> list[Any]:
    return [n if np.isfinite(n) else None for n in numbers.tolist()]


def _digits(cp: NDArray[np.float64]) -> int:
    """Decimals that tell neighbours apart, three to seven."""
    for digits in range(3, 7):
        if len(np.unique(cp.round(digits))) == len(cp):
            return digits
    return 7


def _shown_rows(n: int, chosen: int | None) -> list[int]:
    if n <= _SHOWN:
        return list(range(n))
    around = [] if chosen is None else range(max(chosen - 2, 0), min(chosen + 3, n))
    return sorted({*range(_SHOWN // 3), *around, *range(n - _SHOWN // 3, n)})


# ---- model files ---------------------------------------------------------------------------------------------


def pruning_to_json(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the header entries; none if the tree was not pruned by a choice of alpha."""
    entries: dict[str, Any] = {}
    if "alpha_" in attributes:
        alpha = float(attributes["alpha_"])
        entries["alpha"] = alpha if math.isfinite(alpha) else None
    if "cp_table_" in attributes:
        entries["cp_table"] = attributes["cp_table_"].thinned().to_dict()
    return entries


def pruning_from_json(header: dict[str, Any]) -> dict[str, Any]:
    """Turn back what `pruning_to_json` gives."""
    found: dict[str, Any] = {}
    if "alpha" in header:
        alpha = header["alpha"]
        if alpha is not None and (type(alpha) not in (int, float) or not 0 <= alpha <= 1e308):
            refuse("is damaged: its alpha is not a number of at least 0")
        found["alpha_"] = math.inf if alpha is None else float(alpha)
    if "cp_table" in header:
        try:
            found["cp_table_"] = ComplexityTable.from_dict(field(header, "cp_table", dict))
        except ValueError as error:
            refuse(f"is damaged: in its complexity table {error}")
    return found
