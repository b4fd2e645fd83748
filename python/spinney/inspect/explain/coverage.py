"""Empirical coverage of prediction intervals and prediction sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney._data.display import Backend, ShownAsTable, align, frame_of, shortest
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.held_out import read_row_groups
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import known_codes, read_values, read_weights
from spinney.inspect.draw.curves import draw_coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class CoverageReport(ShownAsTable):
    """Result of `coverage_report`; prints as text.

    Attributes
    ----------
    columns : dict of lists
        One entry for all rows, then one per bin or group: `rows` (description), `n` (number of rows, or their weight),
        `coverage` (fraction covered), `standard_error` (binomial: the square root of c (1 - c) / n), and `mean_width`
        of the intervals or `mean_size` of the sets.
    nominal : float
        The nominal coverage.
    size_name : {"mean_width", "mean_size"}
        Entry of `columns` with the mean width of the intervals or the mean size of the sets.

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
        """Plot the coverage of each bin or group with two standard errors, and the nominal coverage.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        return draw_coverage(self.columns, self.nominal, ax)

    def __repr__(self) -> str:
        covered = self.columns["coverage"][0]
        return f"<CoverageReport: {100 * covered:.1f}% covered, {100 * self.nominal:g}% nominal>"

    def __str__(self) -> str:
        head = ["rows", "n", "coverage", "standard error", "width" if self.size_name == "mean_width" else "size"]
        lines = [
            [label, f"{n:,.10g}", f"{100 * covered:.1f}%", f"±{100 * error:.1f}%", shortest(size, 4)]
            for label, n, covered, error, size in zip(*self.columns.values(), strict=True)
        ]
        return "\n".join([f"Nominal coverage: {100 * self.nominal:g}%", "", *align([head, *lines])])


def coverage_report(
    estimator: TableEstimator,
    X: TableLike,
    y: ColumnLike,
    coverage: float = 0.9,
    method: Literal["quantile", "jackknife+", "residual", "scaled", "lac", "aps"] | None = None,
    *,
    bins: int = 5,
    groups: ColumnLike = None,
    sample_weight: ColumnLike = None,
    offset: ColumnLike = None,
) -> CoverageReport:
    """Return how often `predict_interval`, or `predict_set` of a classifier, covers the targets of new rows.

    Forests need ``keep_rows=True``.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows that were used neither to fit nor to calibrate the model.
    y : array-like of shape (n_samples,)
        Their targets.
    coverage : float, default=0.9
        As in `predict_interval` or `predict_set`.
    method : str, optional
        As in `predict_interval` or `predict_set`; None: their default.
    bins : int, default=5
        Number of quantile bins of the prediction by which the coverage is also reported; for classifiers, it is
        reported by the predicted class. 0: only the coverage of all rows is reported.
    groups : array-like of shape (n_samples,), optional
        Labels by which the coverage is reported, instead of by bins or predicted classes.
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
    options = {} if offset is None else {"offset": offset}
    how = {} if method is None else {"method": method}
    if is_classifier(model):
        sets = model.predict_set(X, coverage, **how, **options)
        codes = known_codes(y, model.classes_, len(sets)).astype(np.intp)
        covered = sets[np.arange(len(sets)), codes]
        sizes, size_name = sets.sum(axis=1).astype(np.float64), "mean_size"
    else:
        intervals = model.predict_interval(X, coverage, **how, **options)
        target = read_values(y, len(intervals))[:, 0]
        covered = (intervals[:, 0] <= target) & (target <= intervals[:, 1])
        sizes, size_name = intervals[:, 1] - intervals[:, 0], "mean_width"
    predicted = np.asarray(model.predict(X, **options)) if bins else None
    if predicted is not None and is_classifier(model):
        predicted = predicted.astype(str)
    weight = read_weights(sample_weight, len(covered))
    weight = np.ones(len(covered)) if weight is None else weight
    subsets = [("all", np.ones(len(covered), dtype=bool)), *_subsets(predicted, groups, bins, len(covered))]
    lines = [(label, *_measures(covered[m], sizes[m], weight[m])) for label, m in subsets if weight[m].sum() > 0]
    names = ("rows", "n", "coverage", "standard_error", size_name)
    return CoverageReport({name: [line[k] for line in lines] for k, name in enumerate(names)}, coverage, size_name)


def _measures(covered: NDArray[np.bool_], sizes: Floats, weight: Floats) -> tuple[float, float, float, float]:
    """Return the weight of some rows, the fraction of it that is covered, its standard error, and the mean size."""
    total = float(weight.sum())
    coverage = float((weight * covered).sum() / total)
    n = int(total) if total == int(total) else total
    return n, coverage, float(np.sqrt(coverage * (1 - coverage) / total)), float(np.average(sizes, weights=weight))


def _subsets(
    predicted: NDArray[Any] | None, groups: ColumnLike, bins: int, n_rows: int
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the groups, or the bins of the prediction, with their labels."""
    if groups is not None:
        labels = read_row_groups(groups, n_rows)
        return [(str(label), labels == label) for label in np.unique(labels)]
    if predicted is None or bins < 1:
        return []
    if predicted.dtype.kind != "f":
        return [(str(label), predicted == label) for label in np.unique(predicted)]
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, bins + 1)[1:-1], method="inverted_cdf"))
    bin_of = np.searchsorted(edges, predicted, side="left")  # a bin includes its upper edge
    subsets = []
    for k in range(len(edges) + 1):
        members = bin_of == k
        if members.any():
            low, high = shortest(float(predicted[members].min()), 4), shortest(float(predicted[members].max()), 4)
            subsets.append((f"predicted {low} to {high}", members))
    return subsets
