"""Shape functions: the contribution of each column to an additive model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.feature import table_of
from spinney._data.types import Floats, TableLike
from spinney._model.functional.model import FittedFunctions
from spinney._model.functional.steps import TreeSteps
from spinney.inspect.draw.explanation import draw_shapes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spinney.inspect.explain.shap import ShapValues

_N_POINTS = 200


@dataclass(frozen=True)
class Shape:
    """The contribution of one column to the score.

    Attributes
    ----------
    column : str
        The column.
    at : ndarray
        Values of the column: numbers, or categories.
    adds : ndarray of shape (n_values,)
        Contributions of these values; their mean over the training rows is 0.
    missing : float
        Contribution of a missing value.
    is_stepped : bool
        Whether the function is piecewise constant.
    """

    column: str
    at: NDArray[Any]
    adds: Floats
    missing: float
    is_stepped: bool

    @property
    def span(self) -> float:
        """Range of the contributions."""
        return float(self.adds.max() - self.adds.min())


class WithShapes:
    """Mixin of models that are sums of functions."""

    functions_: FittedFunctions
    schema_: Schema

    def shapes(self, label: Any = None) -> list[Shape]:
        """Return the shape functions: the contribution of each column to the score. Their sum is the whole model.

        Parameters
        ----------
        label : label, optional
            With three or more classes: the class of the score.

        Returns
        -------
        list of Shape
            One per column that the model uses, sorted by their range.

        Raises
        ------
        ValueError
            If a function of the model uses several columns.
        """
        check_is_fitted(self)
        score, model, n_jobs = self._score_of(label), self.functions_, getattr(self, "n_jobs", None) or 0
        read = [model.features(round_, score) for round_ in range(model.n_rounds)]
        wide = next((columns for columns in read if len(columns) > 1), None)
        if wide is not None:
            names = " and ".join(repr(self.schema_.names[j]) for j in wide[:2])
            raise ValueError(
                f"A function of the model uses {names} together, so that there are no shape functions. Fit 'stumps', "
                "'linear', 'logistic' or 'splines'."
            )
        found = []
        for j in sorted({columns[0] for columns in read if columns}):
            at, labels = self._grid(j, score)
            inputs = model.inputs(self._table_of(j, np.append(at, np.nan)), n_jobs)
            adds = model.of_column(inputs, j, score) - model.means[score, j]
            kinds = {type(model.step(r, score)[0]) for r, columns in enumerate(read) if columns == (j,)}
            found.append(Shape(self.schema_.names[j], labels, adds[:-1], float(adds[-1]), kinds == {TreeSteps}))
        return sorted(found, key=lambda shape: -shape.span)

    def plot_shapes(self, label: Any = None, *, max_columns: int = 9) -> Figure:
        """Plot the shape function of each column.

        Parameters
        ----------
        label : label, optional
            With three or more classes: the class of the score.
        max_columns : int, default=9
            Maximum number of columns; those of the largest range come first.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return draw_shapes(self.shapes(label)[:max_columns])

    def shap_values(self, X: TableLike, *, background: TableLike = None) -> ShapValues:
        """Shapley values of the columns for each score.

        The base value plus the Shapley values of all columns is the score. The Shapley value of a function of one
        column is the function minus its mean over the training rows. Trees of several columns are explained by
        path-dependent TreeSHAP.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        background : table of shape (n_background, n_features), optional
            Rows over which means and the base value are computed. None: the training rows.

        Returns
        -------
        ShapValues
            With `values` and `base_value`; with more than two classes, for each class.

        Raises
        ------
        ValueError
            If a function that is not a tree uses several columns.
        """
        from spinney.inspect.explain.shap import ShapValues, explain

        check_is_fitted(self)
        classes = getattr(self, "classes_", None)
        of = "prediction" if self.functions_.link == "identity" else "score"
        if classes is not None:
            of = f"score of {classes[1]}" if len(classes) == 2 else "score of the class"
        explained = explain(self, read_table(X), False, background, of=of)
        assert isinstance(explained, ShapValues)
        return explained

    def _shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool
    ) -> tuple[Floats, Floats, Floats]:
        n_jobs, model = getattr(self, "n_jobs", None) or 0, self.functions_
        unknown = None if background is None else model.inputs(background, n_jobs)
        base, values = model.shap_sums(model.inputs(columns, n_jobs), unknown, self.schema_.n_categories)
        return base, values, np.empty(0)

    def _score_of(self, label: Any) -> int:
        classes = getattr(self, "classes_", None)
        if self.functions_.n_scores == 1:
            if label is not None:
                raise ValueError("The model has one score. Leave label out.")
            return 0
        assert classes is not None
        known = classes.tolist()
        if label not in known:
            raise ValueError(f"label must be the class of the score, one of {known}. Got {label!r}.")
        return int(known.index(label))

    def _grid(self, j: int, score: int) -> tuple[Floats, NDArray[Any]]:
        """Return values of a column that show its shape function, encoded and as labels."""
        feature = self.schema_.features[j]
        if feature.kind in ("category", "ordered"):
            codes = np.arange(len(feature.categories), dtype=np.float64)
            return codes, np.array([str(value) for value in feature.categories], dtype=object)
        low, high = self.functions_.ranges[j]
        points = [np.linspace(low, high, _N_POINTS)]
        for part in self.functions_.parts:
            for tree in part.trees():
                cuts = np.asarray(tree.threshold)[np.asarray(tree.feature) == j]
                points += [cuts, np.nextafter(cuts, np.inf)]
        inside = np.unique(np.concatenate(points))
        inside = inside[(inside >= low) & (inside <= high)]
        return inside, inside

    def _table_of(self, feature: int, values: Floats) -> _engine.Table:
        """Return rows with values in one column and missing values in the others."""
        missing = np.full(len(values), np.nan)
        columns = (values if j == feature else missing for j in range(self.schema_.n_features))
        return table_of(columns, len(values), self.schema_.n_categories)
