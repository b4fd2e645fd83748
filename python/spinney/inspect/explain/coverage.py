"""How often intervals or sets of classes cover the truth on given rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._data.display.digits import shortest
from spinney._data.display.frames import Backend, frame_of
from spinney._estimator.folds import read_row_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """What `coverage_report` found; prints as text.

    Attributes
    ----------
    columns : dict of lists
        One entry for all rows, then one per bin or group: `rows` (in words), `n` (or the weight), `coverage` (share
        covered), `standard_error` (binomial: the square root of c (1 - c) / n), and `mean_width` of the intervals or
        `mean_size` of the sets.
    nominal : float
        The coverage asked for.
    size_name : {"mean_width", "mean_size"}

    Examples
    --------
    >>> import spinney
    >>> X, y = [[float(i)] for i in range(60)], [float(i % 7) for i in range(60)]
    >>> forest = spinney.RandomForestRegressor(keep_rows=True, random_state=0).fit(X, y)
    >>> forest.coverage_report(X, y, bins=2).columns["rows"][0]
    'all'
    """

    columns: dict[str, list[Any]]
    nominal: float
    size_name: str

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return `columns` as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            All rows first, then one row per bin or group.
        """
        return frame_of(self.columns, backend)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the coverage of each bin or group with two standard errors, beside what was asked for.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.charts.coverage import draw_coverage

        return draw_coverage(self.columns, self.nominal, ax)

    def __repr__(self) -> str:
        covered, asked = self.columns["coverage"][0], self.nominal
        return f"<CoverageReport: {100 * covered:.1f}% covered, {100 * asked:g}% asked for>"

    def __str__(self) -> str:
        head = ["rows", "n", "coverage", "error", "width" if self.size_name == "mean_width" else "size"]
        lines = [head]
        for k, label in enumerate(self.columns["rows"]):
            n, share = self.columns["n"][k], self.columns["coverage"][k]
            error, size = self.columns["standard_error"][k], self.columns[self.size_name][k]
            lines.append([label, f"{n:,.10g}", f"{100 * share:.1f}%", f"±{100 * error:.1f}%", shortest(size, 4)])
        widths = [max(len(line[j]) for line in lines) for j in range(len(head))]
        text = [
            "  ".join(c.ljust(w) if j == 0 else c.rjust(w) for j, (c, w) in enumerate(zip(line, widths, strict=True)))
            for line in lines
        ]
        return "\n".join([f"Coverage asked for: {100 * self.nominal:g}%", "", *text])


def report_coverage(
    covered: NDArray[np.bool_],
    sizes: Floats,
    predicted: NDArray[Any] | None,
    groups: Any,
    bins: int,
    weight: Floats | None,
    nominal: float,
    size_name: str,
) -> CoverageReport:
    """Tabulate coverage over all rows and by groups, by predicted class, or by bins of the predicted value."""
    weight = np.ones(len(covered)) if weight is None else weight
    columns: dict[str, list[Any]] = {name: [] for name in ("rows", "n", "coverage", "standard_error", size_name)}
    for label, members in [("all", np.ones(len(covered), dtype=bool)), *_parts(predicted, groups, bins, len(covered))]:
        total = float(weight[members].sum())
        if total <= 0:
            continue
        share = float((weight[members] * covered[members]).sum() / total)
        columns["rows"].append(label)
        columns["n"].append(int(total) if total == int(total) else total)
        columns["coverage"].append(share)
        columns["standard_error"].append(float(np.sqrt(share * (1 - share) / total)))
        columns[size_name].append(float(np.average(sizes[members], weights=weight[members])))
    return CoverageReport(columns, nominal, size_name)


def _parts(predicted: NDArray[Any] | None, groups: Any, bins: int, n_rows: int) -> list[tuple[str, NDArray[np.bool_]]]:
    if groups is not None:
        labels = read_row_groups(groups, n_rows)
        return [(str(label), labels == label) for label in np.unique(labels)]
    if predicted is None or bins < 1:
        return []
    if predicted.dtype.kind != "f":
        return [(str(label), predicted == label) for label in np.unique(predicted)]
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1], method="inverted_cdf"))
    bin_of = np.searchsorted(edges, predicted, side="left")  # a bin ends at its edge, as the quantile is defined
    found = []
    for k in range(len(edges) + 1):
        members = bin_of == k
        if members.any():
            low, high = shortest(float(predicted[members].min()), 4), shortest(float(predicted[members].max()), 4)
            found.append((f"predicted {low} to {high}", members))
    return found
