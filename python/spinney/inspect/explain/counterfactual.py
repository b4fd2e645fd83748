"""The smallest changes of a row for which a model would say something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data.display import Backend, frame_of, one_line, plural, shortest
from spinney._data.types import TableLike
from spinney.inspect.explain.counterfactual_search import (
    Alternative,
    Goal,
    Moves,
    find_alternatives,
    read_goal,
    read_moves,
)
from spinney.inspect.explain.target_model import Asked, Floats, cells_of_feature, text_of_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spinney._data import Feature


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """One way to another answer.

    Attributes
    ----------
    changes : dict of str to (from, to)
        By column: the value that the row has and the one it would need.
    prediction : object
        What the model then says: a class, or a number.
    share : float or None
        Share of that class, if the model has shares.
    distance : float
        Sum over the changed columns of how far the value moves, as a share of the column's usual range; a category
        counts 1.
    row : dict of str to value
        The whole changed row.

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
    share: float | None
    distance: float
    row: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """What `counterfactual` found, the smallest change first; prints as text.

    Brackets and loops give each `Counterfactual`.

    Attributes
    ----------
    alternatives : list of Counterfactual
    prediction : object
        What the model says of the row as it is.
    wanted : str
        What was asked for, in words.
    is_exact : bool
        Whether no smaller change of the allowed columns exists: True for single trees without surrogates. Else the
        search looks at all changes of one column, and goes on from the most promising.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> spinney.counterfactual(model, X.iloc[0], "Gentoo", X=X)
    <Counterfactuals: 1 way to Gentoo>
    """

    alternatives: list[Counterfactual]
    prediction: Any
    wanted: str
    is_exact: bool
    texts: list[dict[str, tuple[str, str]]] = field(repr=False)
    moves: list[dict[str, float]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.alternatives)

    def __getitem__(self, k: int) -> Counterfactual:
        return self.alternatives[k]

    def __repr__(self) -> str:
        return f"<Counterfactuals: {plural(len(self), 'way')} to {self.wanted}>"

    def __str__(self) -> str:
        lines = [f"The model says {_said(self.prediction, None)}. For {self.wanted}, one of these would do:"]
        for number, (way, texts) in enumerate(zip(self.alternatives, self.texts, strict=True), start=1):
            parts = [f"{one_line(name)} {old} → {new}" for name, (old, new) in texts.items()]
            lines.append(f"{number}. {', '.join(parts)}: {_said(way.prediction, way.share)}")
        return "\n".join(lines)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Lay the changes out as a table.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            One row per change: `alternative`, `column`, `from`, `to` (as text), `prediction`, `distance`.
        """
        columns: dict[str, list[Any]] = {
            name: [] for name in ("alternative", "column", "from", "to", "prediction", "distance")
        }
        for number, (way, texts) in enumerate(zip(self.alternatives, self.texts, strict=True), start=1):
            for name, (old, new) in texts.items():
                cells = (number, name, old, new, way.prediction, way.distance)
                for key, cell in zip(columns, cells, strict=True):
                    columns[key].append(cell)
        return frame_of(columns, backend)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw how far each way moves which columns.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        from spinney.inspect.charts.explanation import draw_ways

        return draw_ways(self, ax)


def counterfactual(
    model: object,
    row: object,
    wanted: object = None,
    *,
    X: TableLike = None,
    fixed: Iterable[Any] = (),
    ranges: Mapping[Any, Any] | None = None,
    share: float | None = None,
    n: int = 3,
    max_columns: int = 3,
) -> Counterfactuals:
    """Smallest changes of a row for which a model gives the wanted answer.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library.
    row : mapping, sequence, table of one row, or int
        Values by column name, or in the order of the columns; or the position of a row of `X`.
    wanted : class label, or pair of numbers; optional
        The class to be predicted, or the least and the largest value (None: no limit). None: the other of two classes.
    X : table, optional
        Rows such as those of the training part: they say which values occur, which are whole, and how far values
        usually lie apart. Models that are not made of spinney's trees need it. Without it, cuts of the trees stand in.
    fixed : list of columns, optional
        Columns that cannot change, by name or position.
    ranges : dict of column to (low, high) or list of categories, optional
        What a column may become. Without it: what occurs in `X`.
    share : float, optional
        Least share of the wanted class; None: it has to be the class predicted.
    n : int, default=3
        Ways at most. Each changes other columns than those before it.
    max_columns : int, default=3
        Columns at most that a way may change.

    Returns
    -------
    Counterfactuals
        At least one way; prints as text, has `to_frame` and `plot`.

    Raises
    ------
    ValueError
        If there is none, with the nearest that was found; or if the answer is the wanted one already.

    Notes
    -----
    Ways are ranked by their distance and a quarter for each column that they change. In a single tree every leaf is a
    box: the nearest point of each is compared, so that the result is exact. In other models, columns are changed one
    at a time among the cells that the trees tell apart (else: quantiles), and the best are changed further.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> print(spinney.counterfactual(model, X.iloc[0], "Gentoo", X=X, n=1))
    The model says Adelie. For Gentoo, one of these would do:
    1. island Torgersen → Biscoe, flipper_length_mm 181 → 207: Gentoo (100%)
    """
    for name, number in (("n", n), ("max_columns", max_columns)):
        if isinstance(number, bool) or number < 1:
            raise ValueError(f"{name} must be a whole number from 1 up, not {number!r}.")
    moves = read_moves(model, row, X, list(fixed), ranges)
    goal = read_goal(moves.asked, wanted, share)
    if goal.is_met(moves.row):
        raise ValueError(f"The model says {goal.text} already: {_said(*goal.said(moves.row))}. Nothing has to change.")
    found, is_exact, nearest = find_alternatives(moves, goal, n, max_columns)
    if not found:
        raise ValueError(_refusal(moves, goal, max_columns, nearest, is_exact))
    return _told(moves, goal, found, is_exact)


def _told(moves: Moves, goal: Goal, found: list[Alternative], is_exact: bool) -> Counterfactuals:
    features = moves.asked.schema.features
    ways, texts, steps = [], [], []
    for way in found:
        said, share = goal.said(way.row)
        changed = {
            features[j].name: (_cell(features[j], moves.row[j]), _cell(features[j], way.row[j])) for j in way.changed
        }
        whole = {feature.name: _cell(feature, way.row[j]) for j, feature in enumerate(features)}
        ways.append(Counterfactual(changed, said, share, moves.distance(way.row), whole))
        texts.append({features[j].name: _texts(moves.asked, j, moves.row[j], way.row[j]) for j in way.changed})
        steps.append({features[j].name: float(moves.steps(j, way.row[j : j + 1])[0]) for j in way.changed})
    return Counterfactuals(ways, goal.said(moves.row)[0], goal.text, is_exact, texts, steps)


def _cell(feature: Feature, number: float) -> Any:
    cell = cells_of_feature(feature, np.array([number]))[0]
    return cell.item() if isinstance(cell, np.generic) else cell


def _texts(asked: Asked, column: int, old: float, new: float) -> tuple[str, str]:
    """Both values as text, with as many digits as it takes to tell them apart."""
    feature = asked.feature(column)
    texts = text_of_value(feature, old), text_of_value(feature, new)
    return texts if texts[0] != texts[1] else (repr(float(old)), repr(float(new)))


def _said(prediction: object, share: float | None) -> str:
    text = shortest(float(prediction), 4) if isinstance(prediction, float) else str(prediction)
    return text if share is None else f"{text} ({share:.0%})"


def _refusal(moves: Moves, goal: Goal, max_columns: int, nearest: Floats, is_exact: bool) -> str:
    free = [moves.asked.feature(j).name for j in moves.free]
    names = ", ".join(repr(name) for name in free[:6]) + (f" and {len(free) - 6} more" if len(free) > 6 else "")
    if not free:
        return f"No column may change, so that the model cannot say {goal.text}. Take columns out of fixed."
    nearest_said = _said(*goal.said(nearest, wanted=True))
    how = "There is no change" if is_exact else "The search found no change"
    return (
        f"{how} of at most {plural(max_columns, 'column')} among {names} that makes the model say {goal.text}: the "
        f"nearest comes to {nearest_said}. Allow more columns (max_columns, fixed) or wider ranges."
    )
