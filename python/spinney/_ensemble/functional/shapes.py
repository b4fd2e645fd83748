"""Shape functions: what each column adds on its own to a sum of functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.types import TableLike
from spinney._model.functional.model import FittedFunctions
from spinney._model.functional.steps import TreeSteps
from spinney.inspect.draw.explanation import draw_shapes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spinney.inspect.explain.shap import ShapValues

Floats = NDArray[np.float64]
_N_POINTS = 200


@dataclass(frozen=True)
class Shape:
    """What one column adds to the score.

    Attributes
    ----------
    column : str
        The column.
    at : ndarray
        Its values: numbers, or categories.
    adds : ndarray of shape (n_values,)
        What they add, 0 on average over the training rows.
    missing : float
        What a missing value adds.
    is_stepped : bool
        Whether the function is constant between jumps.
    """

    column: str
    at: NDArray[Any]
    adds: Floats
    missing: float
    is_stepped: bool

    @property
    def span(self) -> float:
        """Difference between the most and the least that it adds."""
        return float(self.adds.max() - self.adds.min())


class WithShapes:
    """Mixin for sums of functions."""

    functions_: FittedFunctions
    schema_: Schema

    def shapes(self, label: Any = None) -> list[Shape]:
        """Return what each column adds to the score as a function of it alone: the whole model, as these add up.

        Parameters
        ----------
        label : label, optional
            With three or more classes: the class whose score it is.

        Returns
        -------
        list of Shape
            For each column that steps read on their own, those that span most first.

        Raises
        ------
        ValueError
            If a step reads several columns, so that the model is no sum of functions of one column.
        """
        check_is_fitted(self)
        score, model, n_jobs = self._score_of(label), self.functions_, getattr(self, "n_jobs", None) or 0
        read = [model.features(round_, score) for round_ in range(model.n_rounds)]
        wide = next((columns for columns in read if len(columns) > 1), None)
        if wide is not None:
            names = " and ".join(repr(self.schema_.names[j]) for j in wide[:2])
            raise ValueError(
                f"A step reads {names} together, so that there is no function of each column alone. Fit stumps, "
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
        """Draw what each column adds to the score, a small picture for each.

        Parameters
        ----------
        label : label, optional
            With three or more classes: the class whose score it is.
        max_columns : int, default=9
            Pictures at most; columns that span most come first.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return draw_shapes(self.shapes(label)[:max_columns])

    def shap_values(self, X: TableLike, *, background: TableLike = None) -> ShapValues:
        """Part each score among the columns: Shapley values.

        Starting from the base value, each column adds its value; together they are the score. A step that reads one
        column adds what it says less its mean over the training rows; trees of several columns are parted by TreeSHAP,
        by the weight of the rows that they were grown on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        background : table of shape (n_background, n_features), optional
            Rows that columns take their values from while they are not known: means are over these rows, and so is the
            base value. None: the training rows, as above.

        Returns
        -------
        ShapValues
            Has `values` and `base_value`; with more than two classes, for each class.

        Raises
        ------
        ValueError
            If a step that is no tree reads several columns.
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
            raise ValueError(f"Name the class whose score it is: label must be one of {known}, not {label!r}.")
        return int(known.index(label))

    def _grid(self, j: int, score: int) -> tuple[Floats, NDArray[Any]]:
        """Values of a column that tell its function, as the engine reads them and as people do."""
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
        """Return rows that have values in one column and none elsewhere."""
        table = _engine.Table(len(values))
        for j, n_categories in enumerate(self.schema_.n_categories):
            mine = values if j == feature else np.full(len(values), np.nan)
            if n_categories:
                table.add_category(np.where(np.isnan(mine), -1, mine).astype(np.int32), n_categories)
            else:
                table.add_number(np.ascontiguousarray(mine))
        return table
