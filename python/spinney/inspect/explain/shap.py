"""How much each column moves each prediction: Shapley values.

What a model predicts for a row is parted among the columns. Starting from the base value, the prediction when no column
is known, each column adds its Shapley value: the mean of what it adds over all orders in which the columns may become
known. Where a split asks for a column that is not known, both ways are taken in proportion to the training weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from spinney._data import RawTable, Schema
from spinney._data.cells import cells_of, date_text
from spinney._data.display import Backend, frame_of, plural, shortest
from spinney._data.schema import column_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShapValues:
    """What each column adds to each prediction; made by the method ``shap_values`` of a model.

    `numpy.asarray` gives `values`, brackets pick rows, and `output` picks a class or an output.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_outputs)
        What each column adds. With `base_value`, they sum to the prediction: for classifiers, the class shares; for
        gradient boosting, the scores (log-odds, the logarithm of a mean, or the value itself: see `of`).
    base_value : float or ndarray of shape (n_outputs,)
        The prediction when no column is known: the mean over the training weight, or over the background. Where each
        tree drew rows of its own, each tree's mean is over those.
    of : str
        What is explained, in words.
    offset : ndarray of shape (n_rows,) or (n_rows, n_outputs), or None
        What is added to the scores of each row before any column speaks (gradient boosting).
    interactions : ndarray of shape (n_rows, n_features, n_features) or (…, n_outputs), or None
        What pairs of columns add together, half in either place, with what each adds alone on the diagonal. Each row of
        a matrix sums to the column's value.
    feature_names : list of str
        The columns.
    output_names : list or None
        Classes, or numbers of outputs; None: one output.
    numbers : ndarray of shape (n_rows, n_features)
        The rows: numbers, or codes of categories; NaN is missing.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[1, 0], [2, 0], [3, 1], [4, 1]], [10, 20, 30, 40]
    >>> explained = spinney.DecisionTreeRegressor().fit(X, y).shap_values(X)
    >>> explained.base_value
    25.0
    >>> explained.values.sum(axis=1) + explained.base_value
    array([10., 20., 30., 40.])
    """

    values: Floats
    base_value: Any
    feature_names: list[str]
    numbers: Floats = field(repr=False)
    output_names: list[Any] | None = None
    interactions: Floats | None = field(default=None, repr=False)
    schema: Schema | None = field(default=None, repr=False)
    of: str = "prediction"
    offset: Floats | None = field(default=None, repr=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n_rows, n_columns = self.values.shape[:2]
        outputs = "" if self.output_names is None else f", {plural(len(self.output_names), 'output')}"
        pairs = "" if self.interactions is None else ", with interactions"
        return f"<ShapValues: {plural(n_rows, 'row')}, {plural(n_columns, 'column')}{outputs}{pairs}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `values`."""
        return self.values.shape

    @property
    def predictions(self) -> Floats:
        """What is explained, (n_rows,) or (n_rows, n_outputs): the base value and all that the columns add."""
        return np.asarray(self.values.sum(axis=1) + self.base_values)

    @property
    def base_values(self) -> Floats:
        """The base value once per row, with the row's offset if there is one."""
        base = np.broadcast_to(self.base_value, (len(self), *np.shape(self.base_value))).copy()
        return base if self.offset is None else base + self.offset

    @property
    def importances(self) -> Floats:
        """Mean size of each column's values, (n_features,) or (n_features, n_outputs)."""
        return np.asarray(np.abs(self.values).mean(axis=0))

    @property
    def data(self) -> NDArray[Any]:
        """The rows, with categories by name and dates as datetimes; what is missing of these is None."""
        features = () if self.schema is None else self.schema.features
        if not any(feature.categories or feature.clock for feature in features):
            return self.numbers
        data = self.numbers.astype(object)
        for j, feature in enumerate(features):
            if feature.categories:
                data[:, j] = [self._category(j, code) for code in self.numbers[:, j]]
            elif feature.clock:
                data[:, j] = cells_of(self.numbers[:, j], feature.resolution, feature.clock)
        return data

    def _category(self, column: int, code: float) -> Any:
        assert self.schema is not None
        categories = self.schema.features[column].categories
        if np.isnan(code):
            return None
        return categories[int(code)] if code < len(categories) else "(other)"

    def text_of(self, row: int, column: int) -> str:
        """Write a value as people read it."""
        number = float(self.numbers[row, column])
        if np.isnan(number):
            return "missing"
        if self.schema is not None and self.schema.features[column].categories:
            return str(self._category(column, number))
        if self.schema is not None and self.schema.features[column].clock:
            feature = self.schema.features[column]
            return date_text(number, feature.resolution, feature.clock)
        return shortest(number, 4)

    def is_category(self, column: int) -> bool:
        """Whether a column holds categories."""
        return self.schema is not None and bool(self.schema.features[column].categories)

    # ---- parts -----------------------------------------------------------------------------------------

    def __getitem__(self, rows: Any) -> ShapValues:
        """Pick rows: a position, a slice, a list of positions or one bool per row."""
        if isinstance(rows, (int, np.integer)):
            at = range(len(self))[rows]
            rows = slice(at, at + 1)
        elif isinstance(rows, tuple):
            raise IndexError("Brackets pick rows. Use output() for an output and .values for single numbers.")
        return replace(
            self,
            values=self.values[rows],
            numbers=self.numbers[rows],
            interactions=None if self.interactions is None else self.interactions[rows],
            offset=None if self.offset is None else self.offset[rows],
        )

    def output(self, name: object = None) -> ShapValues:
        """Pick one class or output.

        Parameters
        ----------
        name : class label or number of an output, optional
            None: the only output, or the second of two classes.

        Returns
        -------
        ShapValues
            The part that explains this output, with `values` of shape (n_rows, n_features).
        """
        if self.output_names is None:
            if name is not None:
                raise ValueError(f"There is one output only, so that {name!r} cannot be picked. Leave it out.")
            return self
        if name is None and len(self.output_names) <= 2:
            k = len(self.output_names) - 1
        elif name is not None and name in self.output_names:
            k = self.output_names.index(name)
        else:
            known = ", ".join(repr(n) for n in self.output_names[:10])
            raise ValueError(f"Say which output to explain: one of {known}{', …' * (len(self.output_names) > 10)}.")
        return replace(
            self,
            values=self.values[:, :, k],
            base_value=float(self.base_value[k]),
            output_names=None,
            of=self.of.replace("of the class", f"of class {self.output_names[k]}"),
            interactions=None if self.interactions is None else self.interactions[..., k],
            offset=None if self.offset is None else self.offset[:, k],
        )

    # ---- elsewhere -------------------------------------------------------------------------------------

    def to_frame(self, backend: Backend | None = None, *, output: object = None) -> Any:
        """Lay the values out as a table.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.
        output : class label or number of an output, optional
            As for `output`.

        Returns
        -------
        frame
            One row per row: its base value, what each column adds, and the prediction, to which these sum.
        """
        picked = self.output(output)
        columns = {"(base)": picked.base_values.tolist()}
        columns |= {name: picked.values[:, j].tolist() for j, name in enumerate(self.feature_names)}
        return frame_of(columns | {"(prediction)": picked.predictions.tolist()}, backend)

    def to_explanation(self) -> Any:
        """Return the values as a ``shap.Explanation``, for the plots of that package.

        Returns
        -------
        shap.Explanation
            The same values, base values, rows and names.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError("An Explanation needs the package shap: pip install shap") from error
        names = None if self.output_names is None else [str(name) for name in self.output_names]
        return shap.Explanation(
            self.values,
            base_values=self.base_values,
            data=self.numbers,
            display_data=self.data,
            feature_names=self.feature_names,
            output_names=names,
        )

    # ---- pictures --------------------------------------------------------------------------------------

    def plot(
        self,
        kind: Literal["points", "bars"] = "points",
        *,
        output: object = None,
        max_columns: int = 15,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw what the columns add, over all rows.

        Parameters
        ----------
        kind : {"points", "bars"}, default="points"
            A point per row and column, coloured by the value of the column; or a bar per column: the mean size.
        output : class label or number of an output, optional
            As for `output`. Without it, bars show all outputs, stacked.
        max_columns : int, default=15
            Columns at most: those whose values are largest on average.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.charts.importances import draw_bars, draw_points

        if kind not in ("points", "bars"):
            raise ValueError(f"kind must be 'points' or 'bars', not {kind!r}.")
        if max_columns < 1:
            raise ValueError(f"max_columns must be at least 1, not {max_columns!r}.")
        if kind == "bars":
            return draw_bars(self if output is None else self.output(output), max_columns, ax)
        return draw_points(self.output(output), max_columns, ax)

    def plot_row(self, row: int = 0, *, output: object = None, max_columns: int = 10, ax: Axes | None = None) -> Axes:
        """Draw the way from the base value to the prediction of one row, column by column.

        Parameters
        ----------
        row : int, default=0
            Position of the row.
        output : class label or number of an output, optional
            As for `output`.
        max_columns : int, default=10
            Steps at most: the smallest are drawn as one.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.charts.importances import draw_row

        if max_columns < 1:
            raise ValueError(f"max_columns must be at least 1, not {max_columns!r}.")
        return draw_row(self.output(output)[row], max_columns, ax)


def explain(
    model: BaseEstimator,
    table: RawTable,
    interactions: bool,
    background: Any,
    *,
    of: str = "prediction",
    offset: Floats | None = None,
) -> ShapValues | list[ShapValues]:
    """Explain the predictions of a fitted model; `model._shap_sums` says how its trees are summed.

    The table has been read by the caller, once: a stream cannot be read again.
    `of` is what they sum to, in words, and `offset`, (n_rows, n_outputs), is added to it.
    """
    columns = model.schema_.encode(table, unseen=model.unseen, estimator=type(model).__name__)
    if model.schema_.pool is not None:
        raise ValueError(
            "shap_values follows single columns through the trees, and the splits of this model are oblique. Fit with "
            "oblique=None, or ask which columns matter overall: a forest's importances(X, y, 'unbiased'), or "
            "spinney.permutation_importance on held-out rows."
        )
    if model._fitted.has_lines:
        raise ValueError(
            "shap_values parts what a leaf says among the columns that lead to it, and the leaves of this model are "
            "lines (linear_leaves=True). Fit with linear_leaves=False, or ask spinney.permutation_importance or "
            "spinney.partial_dependence."
        )
    numbers = column_values(model.schema_, table, type(model).__name__, model.unseen)
    unknown = None if background is None else model._columns(background)
    base, values, pairs = model._shap_sums(columns, unknown, interactions)
    shape = (columns.n_rows, model.schema_.n_features)
    explained = ShapValues(
        values.reshape(*shape, len(base)),
        base,
        list(model.schema_.names),
        np.column_stack(numbers),
        list(range(len(base))),
        pairs.reshape(*shape, shape[1], len(base)) if interactions else None,
        model.schema_,
        of,
        offset,
    )
    classes = getattr(model, "classes_", None)
    if classes is None or (len(base) == 1 and len(classes) == 2):  # boosting has one score for two classes
        return explained.output(0) if len(base) == 1 else explained
    if not isinstance(classes, list):
        return _outputs(explained, slice(0, len(base)), classes)
    parts = zip(model._fitted.explained_columns, classes, strict=True)
    return [_outputs(explained, columns_of, names) for columns_of, names in parts]


def joined(parts: Sequence[ShapValues | list[ShapValues]]) -> ShapValues | list[ShapValues]:
    """Put the values of some rows below those of others: of all batches of a stream."""
    first = parts[0]
    if isinstance(first, list):
        return [_below([part[k] for part in parts if isinstance(part, list)]) for k in range(len(first))]
    return _below([part for part in parts if isinstance(part, ShapValues)])


def _below(parts: list[ShapValues]) -> ShapValues:
    def all_of(name: str) -> Any:
        return None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])

    return replace(parts[0], **{name: all_of(name) for name in ("values", "numbers", "interactions", "offset")})


def _outputs(explained: ShapValues, columns: slice, names: NDArray[Any]) -> ShapValues:
    if columns.stop - columns.start == 1 < len(names):  # boosting has one score for two classes
        return replace(explained.output(columns.start), of=f"log-odds of class {names[1]}")
    return replace(
        explained,
        values=explained.values[..., columns],
        base_value=explained.base_value[columns],
        output_names=names.tolist(),
        of="share of the class" if explained.of == "prediction" else explained.of,
        interactions=None if explained.interactions is None else explained.interactions[..., columns],
        offset=None if explained.offset is None else explained.offset[:, columns],
    )
