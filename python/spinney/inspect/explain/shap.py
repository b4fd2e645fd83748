"""SHAP values: the contribution of each column to each prediction.

Starting from the base value, the prediction when no column is known, each column adds its Shapley value: its mean
contribution over all orders in which the columns may become known. At a split on an unknown column both children are
followed, in proportion to the training weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spinney._data import RawTable, Schema, read_table
from spinney._data.display import Backend, ShownAsTable, frame_of, plural, shortest
from spinney._data.schema import column_values
from spinney._data.types import Floats, TableLike
from spinney._estimator.fit_inputs import batches_of
from spinney._estimator.parameters import require_whole
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.distributions import DISTRIBUTIONS
from spinney._model.model import FittedModel, ScoredModel
from spinney.inspect.draw import explanation as charts
from spinney.inspect.explain.target_model import cells_of_feature, text_of_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BY_ROW = ("values", "numbers", "interactions", "offset", "response")
_WITHOUT_RESPONSE = ("identity", "ascending", *DISTRIBUTIONS)  # links whose scores are predictions, or have none each


@dataclass(frozen=True, eq=False)
class ShapValues(ShownAsTable):
    """Contributions of the columns to predictions, returned by the method ``shap_values`` of a model.

    `numpy.asarray` returns `values`, indexing selects rows, and `output` selects a class or an output.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_outputs)
        Contribution of each column. With `base_value`, and the row's `offset` if there is one, they sum to the
        prediction: for classifiers, the class probabilities; for boosting, the scores (log-odds, the logarithm of a
        mean, or the prediction itself: see `of`).
    base_value : float or ndarray of shape (n_outputs,)
        The prediction when no column is known: the weighted mean prediction for the training rows, or for the
        background rows. If trees were fitted to different samples, the mean of each tree is over its sample.
    of : str
        Description of the explained predictions.
    offset : ndarray of shape (n_rows,) or (n_rows, n_outputs), or None
        Offset of the scores of each row (gradient boosting).
    response : ndarray of shape (n_rows, 2) or (n_rows, 2, n_outputs), or None
        If scores are explained: the class probability, or the predicted target of a regressor, at the base value (first
        entry) and at the score of the row (second). Otherwise None.
    response_name : {"probability", "prediction"}
        What `response` holds.
    interactions : ndarray of shape (n_rows, n_features, n_features) or (…, n_outputs), or None
        Interaction of each pair of columns, one half in (i, j) and one in (j, i), with the main effects on the
        diagonal. Row i of a matrix adds up to the value of column i.
    feature_names : list of str
        The columns.
    output_names : list or None
        Classes, or positions of the outputs; None: one output.
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
    schema: Schema = field(repr=False)
    numbers: Floats = field(repr=False)
    output_names: list[Any] | None = None
    interactions: Floats | Any = field(default=None, repr=False)  # or None: Any, so that users can index it
    of: str = "prediction"
    offset: Floats | None = field(default=None, repr=False)
    response: Floats | Any = field(default=None, repr=False)
    response_name: Literal["probability", "prediction"] = "probability"

    @property
    def feature_names(self) -> list[str]:
        """The columns."""
        return list(self.schema.names)

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
        """Explained predictions, (n_rows,) or (n_rows, n_outputs): `base_values` plus all contributions."""
        return np.asarray(self.values.sum(axis=1) + self.base_values)

    @property
    def base_values(self) -> Floats:
        """The base value once per row, with the row's offset if there is one."""
        base = np.broadcast_to(self.base_value, (len(self), *np.shape(self.base_value))).copy()
        return base if self.offset is None else base + self.offset

    @property
    def importances(self) -> Floats:
        """Mean absolute value of each column, (n_features,) or (n_features, n_outputs)."""
        return np.asarray(np.abs(self.values).mean(axis=0))

    @property
    def data(self) -> NDArray[Any]:
        """The rows, with the names of categories, and dates as datetimes; missing values are None."""
        features = self.schema.features
        if not any(feature.categories or feature.clock for feature in features):
            return self.numbers
        data = self.numbers.astype(object)
        for j, feature in enumerate(features):
            if feature.categories or feature.clock:
                data[:, j] = cells_of_feature(feature, self.numbers[:, j])
        return data

    def text_of(self, row: int, column: int) -> str:
        """Return the value of a column in a row as text."""
        number = float(self.numbers[row, column])
        feature = self.schema.features[column]
        if feature.kind == "boolean" and not np.isnan(number):
            return shortest(number)
        return text_of_value(feature, number)

    def is_category(self, column: int) -> bool:
        """Return whether a column has categories."""
        return bool(self.schema.features[column].categories)

    # ---- selection -----------------------------------------------------------------------------------------

    def __getitem__(self, rows: Any) -> ShapValues:
        """Select rows: a position, a slice, a list of positions or one bool per row."""
        if isinstance(rows, (int, np.integer)):
            at = range(len(self))[rows]
            rows = slice(at, at + 1)
        elif isinstance(rows, tuple):
            raise IndexError("Indexing selects rows. Use output() for an output and .values for single numbers.")
        return _with_arrays(self, _BY_ROW, lambda array: array[rows])

    def of_outputs(self, outputs: int | slice, names: list[Any] | None, of: str) -> ShapValues:
        """Return the values of one output, or of some, with their names and description."""
        selected = _with_arrays(
            self, ("values", "interactions", "offset", "response"), lambda array: array[..., outputs]
        )
        return replace(selected, base_value=self.base_value[outputs], output_names=names, of=of)

    def output(self, name: object = None) -> ShapValues:
        """Return the values of one class or output.

        Parameters
        ----------
        name : class label or number of an output, optional
            None: the only output, or the second of two classes.

        Returns
        -------
        ShapValues
            With `values` of shape (n_rows, n_features).
        """
        if self.output_names is None:
            if name is not None:
                raise ValueError(f"There is only one output, so {name!r} cannot be selected. Leave it out.")
            return self
        if name is None and len(self.output_names) <= 2:
            k = len(self.output_names) - 1
        elif name is not None and name in self.output_names:
            k = self.output_names.index(name)
        else:
            known = ", ".join(repr(n) for n in self.output_names[:10])
            raise ValueError(f"Pass the output to explain: one of {known}{', …' * (len(self.output_names) > 10)}.")
        of = self.of.replace("of the class", f"of class {self.output_names[k]}")
        return replace(self.of_outputs(k, None, of), base_value=float(self.base_value[k]))

    # ---- conversion -------------------------------------------------------------------------------------

    def to_frame(self, backend: Backend | None = None, *, output: object = None) -> Any:
        """Return the values as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.
        output : class label or number of an output, optional
            As in the method `output`.

        Returns
        -------
        frame
            One row per explained row: the base value, the contribution of each column, and their sum, the prediction.
        """
        selected = self.output(output)
        columns = {"(base)": selected.base_values.tolist()}
        columns |= {name: selected.values[:, j].tolist() for j, name in enumerate(self.feature_names)}
        return frame_of(columns | {"(prediction)": selected.predictions.tolist()}, backend)

    def to_explanation(self) -> Any:
        """Return the values as a ``shap.Explanation``, for the plots of the package shap.

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
        rows = {"data": self.numbers, "display_data": self.data, "feature_names": self.feature_names}
        return shap.Explanation(self.values, base_values=self.base_values, output_names=names, **rows)

    # ---- plots --------------------------------------------------------------------------------------

    def plot(
        self,
        kind: Literal["points", "bars"] = "points",
        *,
        output: object = None,
        max_columns: int = 15,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the contributions of the columns over all rows.

        Parameters
        ----------
        kind : {"points", "bars"}, default="points"
            A point per row and column, coloured by the value of the column; or a bar per column: the mean absolute
            value.
        output : class label or number of an output, optional
            As in the method `output`; None: bars show all outputs, stacked.
        max_columns : int, default=15
            Maximum number of columns: those with the largest mean absolute value.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        if kind not in ("points", "bars"):
            raise ValueError(f"kind must be 'points' or 'bars', not {kind!r}.")
        require_whole("max_columns", max_columns)
        if kind == "bars":
            return charts.draw_bars(self if output is None else self.output(output), max_columns, ax)
        return charts.draw_points(self.output(output), max_columns, ax)

    def plot_row(self, row: int = 0, *, output: object = None, max_columns: int = 10, ax: Axes | None = None) -> Axes:
        """Plot the contributions from the base value to the prediction of one row.

        Parameters
        ----------
        row : int, default=0
            Position of the row.
        output : class label or number of an output, optional
            As in the method `output`.
        max_columns : int, default=10
            Maximum number of contributions: the smallest are shown as one.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        require_whole("max_columns", max_columns)
        return charts.draw_row(self.output(output)[row], max_columns, ax)


def explain(
    model: BaseEstimator,
    table: RawTable,
    interactions: bool,
    background: Any,
    *,
    of: str = "prediction",
    offset: Floats | None = None,
) -> ShapValues:
    """Return the SHAP values of a fitted model for a table, from the sums over trees of `model._shap_sums`.

    `of` describes the explained predictions, and `offset`, (n_rows, n_outputs), is added to them.
    """
    columns = model.schema_.encode(table, unseen=model.unseen, estimator=type(model).__name__)
    pool = model.schema_.pool
    if pool is not None and pool.replaces_inputs:
        raise ValueError(
            "shap_values needs splits on single columns, but the splits of this model are oblique. Fit with "
            "oblique=None, or use a forest's importances(X, y, 'unbiased') or spinney.permutation_importance on "
            "held-out rows."
        )
    numbers = column_values(model.schema_, table, type(model).__name__, model.unseen)
    background_columns = None if background is None else model._columns(background)
    base, values, pairs = model._shap_sums(columns, background_columns, interactions)
    n_split, outputs = model.schema_.n_split_features, list(range(len(base)))
    by_output, rows = values.reshape(columns.n_rows, n_split, len(base)), np.column_stack(numbers)
    by_pair = pairs.reshape(columns.n_rows, n_split, n_split, len(base)) if interactions else None
    if pool is not None:
        by_output = pool.credit_inputs_along(by_output, 1)
        by_pair = None if by_pair is None else pool.credit_inputs_along(pool.credit_inputs_along(by_pair, 1), 2)
    explained = ShapValues(by_output, base, model.schema_, rows, outputs, by_pair, of, offset)
    classes = getattr(model, "classes_", None)
    base_response, response = (_responses(model._fitted, s) for s in (explained.base_values, explained.predictions))
    if base_response is not None and response is not None:
        name: Literal["probability", "prediction"] = "prediction" if classes is None else "probability"
        explained = replace(explained, response=np.stack([base_response, response], axis=1), response_name=name)
    if classes is None or (len(base) == 1 and len(classes) == 2):  # boosting has one score for two classes
        return explained.output(0) if len(base) == 1 else explained
    if not isinstance(classes, list):
        return _outputs(explained, slice(0, len(base)), classes)
    outputs_and_names = zip(model._fitted.explained_columns, classes, strict=True)
    return cast("ShapValues", [_outputs(explained, columns_of, names) for columns_of, names in outputs_and_names])


def _responses(model: FittedModel, scores: Floats) -> Floats | None:
    """Return the class probability or prediction of each score, (n_rows, n_scores); None if scores have none."""
    if not isinstance(model, ScoredModel) or getattr(model, "link", None) in _WITHOUT_RESPONSE:
        return None
    flat = model.predicted_from_explained(scores)
    if flat.shape[1] > scores.shape[1]:  # two classes have one score, that of the second
        flat = np.delete(flat, [own.start for own in model.class_columns if own.stop - own.start == 2], axis=1)
    return flat


def joined(batches: Sequence[ShapValues]) -> ShapValues:
    """Return the concatenated SHAP values of batches of rows."""
    several: Any = batches[0]
    if isinstance(several, list):
        return cast("ShapValues", [_concatenated(list(of_output)) for of_output in zip(*batches, strict=True)])
    return _concatenated(list(batches))


def _concatenated(batches: list[ShapValues]) -> ShapValues:
    names = [name for name in _BY_ROW if getattr(batches[0], name) is not None]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
    return replace(batches[0], **arrays)


def _with_arrays(explained: ShapValues, names: Sequence[str], change: Callable[[Floats], Floats]) -> ShapValues:
    """Return a copy with some of its arrays changed; those that are None stay None."""
    arrays = {name: getattr(explained, name) for name in names}
    new: dict[str, Any] = {name: change(array) for name, array in arrays.items() if array is not None}
    return replace(explained, **new)


def _outputs(explained: ShapValues, columns: slice, names: NDArray[Any]) -> ShapValues:
    if columns.stop - columns.start == 1 < len(names):  # boosting has one score for two classes
        return replace(explained.output(columns.start), of=f"log-odds of class {names[1]}")
    of = "probability of the class" if explained.of == "prediction" else explained.of
    return explained.of_outputs(columns, names.tolist(), of)


def shap_values(
    model: TableEstimator, X: TableLike, *, interactions: bool = False, background: object = None
) -> ShapValues:
    """Return the contribution of each column to each prediction: Shapley values by TreeSHAP.

    The base value (the weighted mean prediction for the training rows) and the values of all columns add up to the
    prediction (for classifiers, the class probabilities). Where the column of a split counts as unknown, both branches
    are followed, weighted by their training rows. If a surrogate decides because the split's column is missing, its
    decision counts as that column's. `AdaBoostRegressor` raises a TypeError, because a median is not a sum of
    contributions.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    interactions : bool, default=False
        Also compute the interactions of pairs of columns: n_features² numbers per row.
    background : table of shape (n_background, n_features), optional
        Rows that supply the values of unknown columns (interventional values); the result is the mean over these rows,
        the base value their mean prediction. The time grows with their number: a few hundred typical rows suffice.
        None: both branches are followed, as described above (path-dependent values).

    Returns
    -------
    ShapValues
        Has `values`, `base_value` and optionally `interactions`; a list of these, one per output, for a classifier
        with several outputs.

    See Also
    --------
    TreeExplainer : The same values with the interface of ``shap.TreeExplainer``.
    """
    check_is_fitted(model)
    batches = batches_of(X, model.schema_)
    if batches is not None:
        return joined([explain(model, batch, interactions, background) for batch in batches])
    return explain(model, read_table(X), interactions, background)
