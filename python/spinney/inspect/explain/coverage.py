"""How often intervals or sets of classes cover the truth on given rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import Backend, align, frame_of, shortest
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.held_out import read_row_groups
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import known_codes, read_values, read_weights
from spinney.inspect.charts.evaluation import draw_coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        return draw_coverage(self.columns, self.nominal, ax)

    def __repr__(self) -> str:
        covered, asked = self.columns["coverage"][0], self.nominal
        return f"<CoverageReport: {100 * covered:.1f}% covered, {100 * asked:g}% asked for>"

    def __str__(self) -> str:
        head = ["rows", "n", "coverage", "error", "width" if self.size_name == "mean_width" else "size"]
        lines = [
            [label, f"{n:,.10g}", f"{100 * share:.1f}%", f"±{100 * error:.1f}%", shortest(size, 4)]
            for label, n, share, error, size in zip(*self.columns.values(), strict=True)
        ]
        return "\n".join([f"Coverage asked for: {100 * self.nominal:g}%", "", *align([head, *lines])])


def coverage_report(
    estimator: TableEstimator,
    X: TableLike,
    y: ColumnLike,
    coverage: float = 0.9,
    method: str | None = None,
    *,
    bins: int = 5,
    groups: ColumnLike = None,
    sample_weight: ColumnLike = None,
    offset: ColumnLike = None,
) -> CoverageReport:
    """Count how often `predict_interval`, or `predict_set` of a classifier, holds the targets of given rows.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows that the model has neither been fitted nor calibrated on.
    y : array-like of shape (n_samples,)
        Their targets.
    coverage : float, default=0.9
        As of `predict_interval` or `predict_set`.
    method : str, optional
        As of `predict_interval` or `predict_set`; None: their default.
    bins : int, default=5
        Rows are also counted by that many bins of the prediction, of equal numbers of rows, or by the predicted class;
        0: not.
    groups : array-like of shape (n_samples,), optional
        Count by these labels instead.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`; for boosting.

    Returns
    -------
    CoverageReport
        Prints as text; has `to_frame()` and `plot()`.
    """
    check_is_fitted(estimator)
    model: Any = estimator
    if getattr(model, "n_outputs_", 1) > 1:
        raise ValueError("coverage_report is for one output. Fit one model per output.")
    given = {} if offset is None else {"offset": offset}
    how = {} if method is None else {"method": method}
    if is_classifier(model):
        sets = model.predict_set(X, coverage, **how, **given)
        codes = known_codes(y, model.classes_, len(sets)).astype(np.intp)
        covered = sets[np.arange(len(sets)), codes]
        sizes, size_name = sets.sum(axis=1).astype(np.float64), "mean_size"
    else:
        ends = model.predict_interval(X, coverage, **how, **given)
        target = read_values(y, len(ends))[:, 0]
        covered = (ends[:, 0] <= target) & (target <= ends[:, 1])
        sizes, size_name = ends[:, 1] - ends[:, 0], "mean_width"
    predicted = np.asarray(model.predict(X, **given)) if bins else None
    if predicted is not None and is_classifier(model):
        predicted = predicted.astype(str)
    given_weight = read_weights(sample_weight, len(covered))
    weight = np.ones(len(covered)) if given_weight is None else given_weight
    parts = [("all", np.ones(len(covered), dtype=bool)), *_parts(predicted, groups, bins, len(covered))]
    lines = [(label, *_measured(covered[m], sizes[m], weight[m])) for label, m in parts if weight[m].sum() > 0]
    names = ("rows", "n", "coverage", "standard_error", size_name)
    return CoverageReport({name: [line[k] for line in lines] for k, name in enumerate(names)}, coverage, size_name)


def _measured(covered: NDArray[np.bool_], sizes: Floats, weight: Floats) -> tuple[float, float, float, float]:
    """Return the weight of some rows, the share of it that is covered, its standard error, and the mean size."""
    total = float(weight.sum())
    share = float((weight * covered).sum() / total)
    n = int(total) if total == int(total) else total
    return n, share, float(np.sqrt(share * (1 - share) / total)), float(np.average(sizes, weights=weight))


def _parts(
    predicted: NDArray[Any] | None, groups: ColumnLike, bins: int, n_rows: int
) -> list[tuple[str, NDArray[np.bool_]]]:
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
