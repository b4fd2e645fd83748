"""Histogram density estimation."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.arguments import argument_numbers
from spinney._data.display import plural, warn
from spinney._data.rounding import unit_of
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import About
from spinney._estimator.parameters import N_JOBS, estimator, parameter
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.file.codec import SavedState, columns
from spinney._model.neighbours.histogram import FittedDensity, Grid, Places, table_values
from spinney.inspect.draw.curves import draw_histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_BINS = 100  # per column, unless bin_counts is set
_BELOW = 1e-12


@estimator
class HistogramDensity(DensityMixin, TableEstimator):
    """Histogram density estimation.

    Bins are boxes of equal size. By default the first one starts at the lowest value of each column. Cross-validation
    chooses the bin width that minimises the leave-one-out estimate of the integrated squared error, 2 / ((n - 1) v) -
    (n + 1) / ((n - 1) v) Σ p², where v is the volume of a bin and p the fraction of rows in each bin. If the
    table has a single column, whose values are rounded, and ``bin_counts`` is not set, the widths tried are multiples
    of the unit of rounding, because other bins would show the rounding.

    See Also
    --------
    HistogramRegressor : Means of a target in bins.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.HistogramDensity(1.0).fit([[0.0], [0.4], [0.5], [1.5]])
    >>> model.bins_["density"].tolist()
    [0.75, 0.25]
    """

    bin_width: float | Literal["cv"] | ArrayLike = parameter(
        Interval(Real, 0.0, None, closed="neither"), StrOptions({"cv"}), "array-like", default="cv", kw_only=False
    )
    origin: float | ArrayLike | None = parameter(Real, "array-like", None, default=None)
    bin_counts: ArrayLike | None = parameter("array-like", None, default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)

    histogram_: FittedDensity = field(init=False)
    _model_attribute = "histogram_"
    _has_target = False
    _saved: ClassVar[SavedState] = SavedState("fitted", {"cv_results_": columns("bin_count")})

    def fit(self, X: TableLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Count the rows of each bin; with ``bin_width="cv"``, choose the bin width first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Numeric columns without missing values.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        table = read_table(X)
        schema = Schema.learn(table)
        weight = read_weights(sample_weight, table.n_rows)
        weight = np.ones(table.n_rows) if weight is None else weight
        values = _finite_values(schema, schema.encode(table, estimator=type(self).__name__))
        values, weight = values[weight > 0], weight[weight > 0]
        low, top = values.min(axis=0), values.max(axis=0)
        origin = low if self.origin is None else _by_column(self.origin, "origin", len(low))
        results: dict[str, Any] | None = None
        if isinstance(self.bin_width, str):
            edge, results = self._choose(values, weight, origin, top)
        else:
            edge = _by_column(self.bin_width, "bin_width", len(low))
            if not (edge > 0).all():
                raise ValueError(f"bin_width must be positive numbers. Got {self.bin_width!r}.")
        if not np.isfinite(edge).all() or ((top - low) / edge > 2.0**38).any():
            raise ValueError("The bins are too narrow for the range of a column. Rescale X, or widen the bins.")
        self.histogram_ = _histogram(values, weight, origin, edge, top)
        self.__dict__.pop("cv_results_", None)
        if results is not None:
            self.cv_results_ = results
        self._set_schema(schema)
        return self

    def _choose(self, values: Floats, weight: Floats, origin: Floats, top: Floats) -> tuple[Floats, dict[str, Any]]:
        """Return the bin width of the smallest risk, and the risk of all candidates."""
        total = float(weight.sum())
        span = top - origin
        span = np.where(span > 0, span, 1.0)
        unit = unit_of(values[:, 0]) if self.bin_counts is None and values.shape[1] == 1 else None
        if self.bin_counts is None:
            counts = np.arange(1, min(_MAX_BINS, max(2, len(values))) + 1)
        else:
            counts = np.unique(np.asarray(self.bin_counts))
            if counts.dtype.kind not in "iu" or not len(counts) or counts[0] < 1:
                raise ValueError(f"bin_counts must be whole numbers of at least 1. Got {self.bin_counts!r}.")
        edges = span / counts[:, np.newaxis]
        if unit is not None:
            edges = unit * np.unique(np.ceil(edges / unit), axis=0)[::-1]
            if unit % 1:  # values at a bound are to be above it, whatever the rounding of the quotient
                edges *= 1 - _BELOW
            counts = np.floor(span / edges).astype(np.int64)[:, 0] + 1
        risks = np.zeros(len(counts))
        for i, edge in enumerate(edges):
            model = _histogram(values, weight, origin, edge, top)
            if total > 1:
                squares = float((model.fraction * model.fraction).sum())
                risks[i] = (2 - (total + 1) * squares) / ((total - 1) * model.volume)
        best = int(risks.argmin())
        n_equal = len(values) - len(np.unique(values, axis=0))
        if self.bin_counts is None and unit is None and counts[best] > 0.9 * _MAX_BINS:
            why = f"{n_equal} rows are equal to others, as in rounded columns" if n_equal else "more bins may be better"
            warn(
                f"bin_width='cv' has chosen {counts[best]} bins, of at most {_MAX_BINS}: {why}. Set bin_width, for "
                "rounded columns to a multiple of their unit, or pass bin_counts."
            )
        return edges[best], {"bin_count": counts.astype(np.int64), "risk": risks}

    # ---- evaluating ----------------------------------------------------------------------------------

    def score_samples(self, X: TableLike) -> Floats:
        """Return the log-density of each row; minus infinity in bins without training rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities.
        """
        columns = self._columns(X)
        return self.histogram_.predictions(columns, self._n_threads)[:, 0]

    def score(self, X: TableLike, y: object = None) -> float:
        """Return the log-likelihood: the sum of the log-densities of the rows.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        float
            Log-likelihood.
        """
        return float(self.score_samples(X).sum())

    @property
    def bin_width_(self) -> Floats:
        """Width of the bins by column."""
        check_is_fitted(self)
        return self.histogram_.grid.edge

    @property
    def origin_(self) -> Floats:
        """Start of the first bin by column."""
        check_is_fitted(self)
        return self.histogram_.grid.origin

    @property
    def bins_(self) -> dict[str, NDArray[Any]]:
        """Bins with training rows: bounds, fraction of rows and density."""
        check_is_fitted(self)
        model = self.histogram_
        low = model.grid.origin + model.places.cells * model.grid.edge
        return {"low": low, "high": low + model.grid.edge, "fraction": model.fraction, "density": model.density}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the density of one column as bars, or of two columns as a heat map.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on.

        Returns
        -------
        matplotlib axes
            The axes.
        """
        check_is_fitted(self)
        if self.n_features_in_ > 2:
            raise ValueError(f"A histogram of {self.n_features_in_} columns cannot be plotted. Fit one or two columns.")
        bins = self.bins_
        return draw_histogram(bins["low"], bins["high"], bins["density"], list(self.schema_.names), ax)

    def _about(self) -> About:
        bins = plural(len(self.histogram_.fraction), "bin")
        width = ", ".join(f"{edge:.4g}" for edge in self.bin_width_)
        lines = {"histogram": f"{bins} with rows", "width": width}
        size = {"bins": len(self.histogram_.fraction), "bin_width": self.bin_width_.tolist()}
        sentence = f"{bins} with rows, {width} wide"
        return About("histogram", size, lines, sentence, why_no_trees="the model is a histogram without trees.")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.categorical = False
        tags.input_tags.string = False
        return tags


def _histogram(values: Floats, weight: Floats, origin: Floats, edge: Floats, top: Floats) -> FittedDensity:
    """Return the histogram of rows in bins of a width."""
    sizes = [0] * len(edge)
    grid = Grid.over(values, sizes, origin, edge, True)
    places = Places(grid.cells(values, sizes))
    fraction = np.bincount(places.of_rows, weight, len(places.cells)) / weight.sum()
    return FittedDensity(grid, places, fraction, top)


def _finite_values(schema: Schema, table: _engine.Table) -> Floats:
    """Return the columns as numbers; refuse categories and missing values."""
    for feature in schema.features:
        if feature.kind in ("category", "ordered"):
            raise ValueError(f"Column '{feature.name}' has categories, which have no density. Leave it out.")
    values = table_values(table)
    if not np.isfinite(values).all():
        j = int(np.flatnonzero(~np.isfinite(values).all(axis=0))[0])
        raise ValueError(
            f"Column '{schema.names[j]}' contains NaN, a missing value, or infinity, which a histogram cannot hold. "
            "Drop such rows."
        )
    return values


def _by_column(value: float | ArrayLike, name: str, n_columns: int) -> Floats:
    """Return a number for each column, from one number for all columns or one for each."""
    numbers = argument_numbers(value, name).reshape(-1)
    if len(numbers) not in (1, n_columns) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be one finite number, or one for each of {n_columns} columns. Got {value!r}.")
    return np.broadcast_to(numbers, (n_columns,)).astype(np.float64)
