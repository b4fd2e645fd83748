"""The smallest changes of a row for which a model would say something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._data import Feature
from spinney._data.display import Backend, frame_of, one_line, plural, shortest
from spinney._data.types import Floats, TableLike
from spinney.inspect.charts import explanation as charts
from spinney.inspect.explain import counterfactual_search as search
from spinney.inspect.explain.target_model import cells_of_feature, require_whole, text_of_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        lines = [f"The model says {_text(self.prediction, None)}. For {self.wanted}, one of these would do:"]
        for number, (way, texts) in enumerate(zip(self.alternatives, self.texts, strict=True), start=1):
            parts = [f"{one_line(name)} {old} → {new}" for name, (old, new) in texts.items()]
            lines.append(f"{number}. {', '.join(parts)}: {_text(way.prediction, way.share)}")
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
        lines = [
            (number, name, old, new, way.prediction, way.distance)
            for number, (way, texts) in enumerate(zip(self.alternatives, self.texts, strict=True), start=1)
            for name, (old, new) in texts.items()
        ]
        names = ("alternative", "column", "from", "to", "prediction", "distance")
        return frame_of({name: [line[k] for line in lines] for k, name in enumerate(names)}, backend)

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
        return charts.draw_ways(self, ax)


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
    require_whole("n", n)
    require_whole("max_columns", max_columns)
    moves = search.read_moves(model, row, X, list(fixed), ranges)
    goal = search.read_goal(moves.asked, wanted, share)
    prediction, its_share = goal.prediction(moves.row)
    if goal.is_met(moves.row):
        text = _text(prediction, its_share)
        raise ValueError(f"The model says {goal.text} already: {text}. Nothing has to change.")
    found, is_exact, nearest = search.find_alternatives(moves, goal, n, max_columns)
    if not found:
        raise ValueError(_refusal(moves, goal, max_columns, nearest, is_exact))
    features, ways, texts, steps = moves.asked.schema.features, [], [], []
    for changed in found:
        old, new = _cells(features, moves.row), _cells(features, changed)
        named = {features[j].name: j for j in moves.changed(changed)}
        changes = {name: (old[name], new[name]) for name in named}
        distance = float(moves.sizes(changed[np.newaxis]).sum())
        ways.append(Counterfactual(changes, *goal.prediction(changed), distance, new))
        texts.append({name: _texts(features[j], moves.row[j], changed[j]) for name, j in named.items()})
        steps.append({name: float(moves.steps(j, changed[j : j + 1])[0]) for name, j in named.items()})
    return Counterfactuals(ways, prediction, goal.text, is_exact, texts, steps)


def _cells(features: tuple[Feature, ...], row: Floats) -> dict[str, Any]:
    """Return a row of numbers as the caller calls its values, by column."""
    cells = [cells_of_feature(feature, row[j : j + 1])[0] for j, feature in enumerate(features)]
    plain = [cell.item() if isinstance(cell, np.generic) else cell for cell in cells]
    return {feature.name: cell for feature, cell in zip(features, plain, strict=True)}


def _texts(feature: Feature, old: float, new: float) -> tuple[str, str]:
    """Both values as text, with as many digits as it takes to tell them apart."""
    texts = text_of_value(feature, old), text_of_value(feature, new)
    return texts if texts[0] != texts[1] else (repr(float(old)), repr(float(new)))


def _text(prediction: object, share: float | None) -> str:
    text = shortest(float(prediction), 4) if isinstance(prediction, float) else str(prediction)
    return text if share is None else f"{text} ({share:.0%})"


def _refusal(moves: search.Moves, goal: search.Goal, max_columns: int, nearest: Floats, is_exact: bool) -> str:
    free = [moves.asked.feature(j).name for j in moves.free]
    names = ", ".join(repr(name) for name in free[:6]) + (f" and {len(free) - 6} more" if len(free) > 6 else "")
    if not free:
        return f"No column may change, so that the model cannot say {goal.text}. Take columns out of fixed."
    best = _text(*goal.prediction(nearest, wanted=True))
    how = "There is no change" if is_exact else "The search found no change"
    return (
        f"{how} of at most {plural(max_columns, 'column')} among {names} that makes the model say {goal.text}: the "
        f"nearest comes to {best}. Allow more columns (max_columns, fixed) or wider ranges."
    )
