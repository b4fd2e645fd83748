"""Counterfactuals: the smallest changes of a row that change its prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data import Feature
from spinney._data.display import Backend, ShownAsTable, frame_of, one_line, plural, shortest
from spinney._data.types import Floats, TableLike
from spinney._estimator.parameters import require_whole
from spinney.inspect.draw import explanation as charts
from spinney.inspect.explain import counterfactual_search as search
from spinney.inspect.explain.target_model import cells_of_feature, text_of_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """A change of a row that leads to the wanted prediction.

    Attributes
    ----------
    changes : dict of str to (from, to)
        By column: the value of the row and the changed value.
    prediction : object
        Prediction for the changed row: a class, or a number.
    probability : float or None
        Probability of that class, if the model has probabilities.
    distance : float
        Sum of the changes over the columns, each relative to the range between the 5% and 95% quantiles of the column
        in `X`; a changed category counts 1.
    row : dict of str to value
        The changed row.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> spinney.counterfactual(model, X.iloc[0], "Gentoo", X=X)[0].changes["flipper_length_mm"]
    (181.0, 207.0)
    """

    changes: dict[str, tuple[Any, Any]]
    prediction: Any
    probability: float | None
    distance: float
    row: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Counterfactuals(ShownAsTable):
    """Result of `counterfactual`, the smallest change first; prints as text.

    Indexing and iteration return each `Counterfactual`.

    Attributes
    ----------
    alternatives : list of Counterfactual
        The changes found, the smallest first.
    prediction : object
        Prediction for the unchanged row.
    wanted : str
        Description of the wanted prediction.
    is_exact : bool
        Whether it is certain that no smaller change of the allowed columns exists: True for single trees without
        surrogates. For other models, the search tries all changes of one column, and continues from the most promising
        ones.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> spinney.counterfactual(model, X.iloc[0], "Gentoo", X=X)
    <Counterfactuals: 1 alternative for Gentoo>
    """

    alternatives: list[Counterfactual]
    prediction: Any
    wanted: str
    is_exact: bool
    texts: list[dict[str, tuple[str, str]]] = field(repr=False)
    steps: list[dict[str, float]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.alternatives)

    def __getitem__(self, k: int) -> Counterfactual:
        return self.alternatives[k]

    def __repr__(self) -> str:
        return f"<Counterfactuals: {plural(len(self), 'alternative')} for {self.wanted}>"

    def __str__(self) -> str:
        lines = [f"The prediction is {_text(self.prediction, None)}. Changes that lead to {self.wanted}:"]
        for number, (found, texts) in enumerate(zip(self.alternatives, self.texts, strict=True), start=1):
            changes = [f"{one_line(name)} {old} → {new}" for name, (old, new) in texts.items()]
            lines.append(f"{number}. {', '.join(changes)}: {_text(found.prediction, found.probability)}")
        return "\n".join(lines)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the changes as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per change: `alternative`, `column`, `from`, `to` (as text), `prediction`, `distance`.
        """
        lines = [
            (number, name, old, new, found.prediction, found.distance)
            for number, (found, texts) in enumerate(zip(self.alternatives, self.texts, strict=True), start=1)
            for name, (old, new) in texts.items()
        ]
        names = ("alternative", "column", "from", "to", "prediction", "distance")
        return frame_of({name: [line[k] for line in lines] for k, name in enumerate(names)}, backend)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Plot the changes of each column, by alternative.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        return charts.draw_counterfactuals(self, ax)


def counterfactual(
    model: object,
    row: object,
    wanted: object = None,
    *,
    X: TableLike = None,
    fixed: Iterable[Any] = (),
    ranges: Mapping[Any, Any] | None = None,
    probability: float | None = None,
    n: int = 3,
    max_columns: int = 3,
) -> Counterfactuals:
    """Return the smallest changes of a row that lead to the wanted prediction.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library.
    row : mapping, sequence, table of one row, or int
        Values by column name, or in the order of the columns; or the position of a row of `X`.
    wanted : class label, or pair of numbers; optional
        The wanted class, or the smallest and the largest wanted number, each of which may be None (no limit). None: the
        other of two classes.
    X : table, optional
        Rows, such as the training set. They determine which values occur, which columns are whole numbers, and the
        range to which changes of a column are relative. They may be omitted for spinney's trees, whose thresholds are
        used instead.
    fixed : list of columns, optional
        Columns that may not change, by name or position.
    ranges : dict of column to (low, high) or list of categories, optional
        Allowed values of a column. None: the range of its numbers in `X`, or its categories there.
    probability : float, optional
        Minimum probability of the wanted class; None: the wanted class has to be the predicted class.
    n : int, default=3
        Maximum number of alternatives. Each changes a different set of columns.
    max_columns : int, default=3
        Maximum number of changed columns.

    Returns
    -------
    Counterfactuals
        At least one alternative; prints as text, has `to_frame` and `plot`.

    Raises
    ------
    ValueError
        If no change leads to the wanted prediction (the message has the closest one), or if the row already has it.

    Notes
    -----
    Alternatives are ranked by their distance (see `Counterfactual`) plus 0.25 for each changed column. In a single tree
    every leaf is a box, and the nearest points of all boxes are compared, so that the result is exact. In other models,
    columns are changed one at a time, to one value between any two adjacent thresholds of the trees (or, without trees,
    to values that occur), and the best changes are extended by further columns.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> print(spinney.counterfactual(model, X.iloc[0], "Gentoo", X=X, n=1))
    The prediction is Adelie. Changes that lead to Gentoo:
    1. island Torgersen → Biscoe, flipper_length_mm 181 → 207: Gentoo (100%)
    """
    require_whole("n", n)
    require_whole("max_columns", max_columns)
    space = search.read_space(model, row, X, list(fixed), ranges)
    goal = search.read_goal(space.query, wanted, probability)
    prediction, its_probability = goal.prediction(space.row)
    if goal.is_met(space.row):
        text = _text(prediction, its_probability)
        raise ValueError(f"The prediction is already {goal.text}: {text}. No change is needed.")
    found, is_exact, nearest = search.find_alternatives(space, goal, n, max_columns)
    if not found:
        raise ValueError(_failure(space, goal, max_columns, nearest, is_exact))
    features, alternatives, texts, steps = space.query.schema.features, [], [], []
    for changed in found:
        old, new = _cells(features, space.row), _cells(features, changed)
        columns = {features[j].name: j for j in space.changed(changed)}
        changes = {name: (old[name], new[name]) for name in columns}
        distance = float(space.sizes(changed[np.newaxis]).sum())
        alternatives.append(Counterfactual(changes, *goal.prediction(changed), distance, new))
        texts.append({name: _texts(features[j], space.row[j], changed[j]) for name, j in columns.items()})
        steps.append({name: float(space.steps(j, changed[j : j + 1])[0]) for name, j in columns.items()})
    return Counterfactuals(alternatives, prediction, goal.text, is_exact, texts, steps)


def _cells(features: tuple[Feature, ...], row: Floats) -> dict[str, Any]:
    """Return a row of numbers as cells of the caller's table, by column."""
    cells = [cells_of_feature(feature, row[j : j + 1])[0] for j, feature in enumerate(features)]
    plain = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    return {feature.name: cell for feature, cell in zip(features, plain, strict=True)}


def _texts(feature: Feature, old: float, new: float) -> tuple[str, str]:
    """Return both values as distinct texts."""
    texts = text_of_value(feature, old), text_of_value(feature, new)
    return texts if texts[0] != texts[1] else (repr(float(old)), repr(float(new)))


def _text(prediction: object, probability: float | None) -> str:
    text = shortest(float(prediction), 4) if isinstance(prediction, float) else str(prediction)
    return text if probability is None else f"{text} ({probability:.0%})"


def _failure(space: search.SearchSpace, goal: search.Goal, max_columns: int, nearest: Floats, is_exact: bool) -> str:
    """Return the message of the error if no alternative was found."""
    free = [space.query.feature(j).name for j in space.free]
    names = ", ".join(repr(name) for name in free[:6]) + (f" and {len(free) - 6} more" if len(free) > 6 else "")
    if not free:
        return f"No column may change, so the prediction cannot become {goal.text}. Remove columns from fixed."
    prediction, probability = goal.prediction(nearest, wanted=True)
    best = f"closest prediction is {_text(prediction, None)}"
    if probability is not None:
        best = f"highest probability of {prediction} found is {probability:.0%}"
    how = "There is no change" if is_exact else "The search found no change"
    return (
        f"{how} of at most {plural(max_columns, 'column')} among {names} that leads to {goal.text}: the "
        f"{best}. Allow more columns (max_columns, fixed) or wider ranges."
    )
