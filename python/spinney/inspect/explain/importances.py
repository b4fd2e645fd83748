"""How much columns matter: the table of importances that forests and boosting give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    pass

import math
from typing import TYPE_CHECKING

from spinney._data.display import Backend, elide, frame_of, one_line, plural, shortest

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]
MEASURES = {
    "impurity": "share in the decrease of the impurity",
    "unbiased": "decrease of the impurity, unbiased",
    "error": "rise of the error rate when permuted",
    "brier": "rise of the Brier score when permuted",
    "margin": "fall of the margin when permuted",
    "squared_error": "rise of the squared error when permuted",
    "absolute_error": "rise of the absolute error when permuted",
    "gain": "share in the loss that the splits save",
    "splits": "share in the splits",
    "loss": "rise of the loss when permuted",
}


@dataclass(frozen=True, eq=False)
class Importances:
    """What `importances` of a forest, or of boosting, found; prints as text.

    Attributes
    ----------
    names : list of str
        Columns, or groups of these, in the order of the table.
    kind : {"permutation", "unbiased", "impurity", "gain", "splits"}
    loss : str or None
        What permutation makes worse; None for the other kinds.
    importance, standard_error, z : ndarray of shape (n_names,)
        Mean over the trees (boosting: over the permutations), its standard error over these, and their ratio (NaN where
        the error is 0 or not known).
    by_tree : ndarray of shape (n_trees, n_names)
        What the means are of; NaN for trees without out-of-bag rows. Boosting: a row per permutation.
    by_row : ndarray of shape (n_samples, n_names), or None
        With ``by_row=True``: mean rise of the row's loss over the trees that have not seen it; NaN if all have.
    n_splits : ndarray of shape (n_names,), or None
        Splits on the columns in all trees; oblique splits count for each of their columns. None: there are no trees to
        count them in.
    tree_loss : float or None
        Mean loss of a single tree on its out-of-bag rows, or of a boosted model on the rows given: what permutation
        adds to.
    unit : {"tree", "permutation", "fold"}
        What the means are over.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = RandomForestClassifier(random_state=0).fit(X, y).importances(X, y)
    >>> sorted(found.to_frame("pandas")["column"][:2])
    ['petal length (cm)', 'petal width (cm)']
    """

    names: list[str]
    kind: str
    loss: str | None
    importance: Floats
    standard_error: Floats
    z: Floats
    by_tree: Floats
    by_row: Floats | None
    n_splits: NDArray[np.intp] | None
    tree_loss: float | None
    unit: str = "tree"

    def __len__(self) -> int:
        return len(self.names)

    @property
    def measure(self) -> str:
        """What the numbers are, in words."""
        return MEASURES.get(self.loss or self.kind, f"fall of {self.loss} when permuted")

    @property
    def order(self) -> list[int]:
        """Positions in `names`, the most important first."""
        return sorted(range(len(self)), key=lambda j: (-self.importance[j], j))

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the importances as a frame, the most important first.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            `column`, `importance`, `standard_error`, `z`, and `n_splits` of models of trees.
        """
        order = self.order
        columns: dict[str, list[Any]] = {"column": [self.names[j] for j in order]}
        for name in ("importance", "standard_error", "z", "n_splits"):
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)[order].tolist()
        return frame_of(columns, backend)

    def rows_to_frame(self, backend: Backend | None = None) -> Any:
        """Return the importances of single rows as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per row of the table, one column per name.
        """
        by_row = self._known_rows()
        return frame_of({name: by_row[:, j].tolist() for j, name in enumerate(self.names)}, backend)

    def _known_rows(self) -> Floats:
        if self.by_row is None:
            raise ValueError("These importances were not measured by row. Ask for importances(X, y, by_row=True).")
        return self.by_row

    def plot(self, *, style: str = "bar", max_columns: int = 15, ax: Axes | None = None) -> Axes:
        """Draw the importances, with one standard error to either side.

        Parameters
        ----------
        style : {"bar", "box"}, default="bar"
            Bars, or a box over the trees with its mean and standard error inside.
        max_columns : int, default=15
            Bars at most; the most important are drawn.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.charts.importances import draw_importances

        return draw_importances(self, style, max_columns, ax)

    def plot_rows(self, *, colour: object = None, max_columns: int = 15, ax: Axes | None = None) -> Axes:
        """Draw the importances of single rows as points, a line of points per column.

        Parameters
        ----------
        colour : array-like of shape (n_samples,), optional
            Numbers or labels that colour the rows, such as the target.
        max_columns : int, default=15
            Lines at most; the most important columns are drawn.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.charts.importances import draw_rows

        return draw_rows(self, self._known_rows(), colour, max_columns, ax)

    def __repr__(self) -> str:
        over = "" if np.isnan(self.standard_error).all() else f", {plural(len(self.by_tree), self.unit)}"
        return f"<Importances: {self.kind}, {plural(len(self), 'column')}{over}>"

    def __str__(self) -> str:
        known = not np.isnan(self.standard_error).all()
        over = f", {plural(len(self.by_tree), self.unit)}" if known else ""
        lines = [f"{self.measure[0].upper()}{self.measure[1:]}{over}"]
        if self.tree_loss is not None and self.unit == "tree":
            lines.append(f"Out-of-bag loss of a single tree: {shortest(self.tree_loss, 4)}")
        elif self.tree_loss is not None:
            what, score = ("Loss", self.tree_loss) if self.loss == "loss" else (self.loss, -self.tree_loss)
            lines.append(f"{what} of the model: {shortest(score, 4)}")
        names = [elide(one_line(self.names[j]), 40) for j in self.order[:_MOST_LINES]]
        width = max((len(name) for name in names), default=0)
        largest = np.nanmax(self.standard_error, initial=0.0) or 0.01
        digits = max(0, 1 - math.floor(math.log10(largest)))  # two of the largest error
        values = [f"{value:.{digits}f}" for value in self.importance[self.order[:_MOST_LINES]]]
        number_width = max((len(value) for value in values), default=0)
        for name, value, j in zip(names, values, self.order, strict=False):
            error = f" ± {self.standard_error[j]:.{digits}f}" if known else ""
            lines.append(f"{name:<{width}}  {value:>{number_width}}{error}")
        if len(names) < len(self):
            lines.append(f"… and {plural(len(self) - len(names), 'column')} below")
        return "\n".join(lines)


_MOST_LINES = 30
