"""Interactions between columns: Friedman's H statistic.

The centred partial dependence f_j(x_j) is the main effect of column j. In an additive model f_jk would be f_j + f_k,
and the prediction f would be f_j + f_rest. H measures the deviation from additivity (Friedman and Popescu 2008):

    H²_jk = Σ (f_jk - f_j - f_k)² / Σ f_jk²          H²_j = Σ (f - f_j - f_rest)² / Σ f²

with sums over the rows. The predictions for each of n rows with the values of each other row give both f_j (means over
rows) and f_rest (means over values).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from spinney._data.display import Backend, ShownAsTable, frame_of, plural
from spinney._data.types import Floats
from spinney._estimator.parameters import require_whole
from spinney._estimator.target import read_weights
from spinney.inspect.draw import explanation as charts
from spinney.inspect.draw.axes import short
from spinney.inspect.explain.target_model import ModelQuery, Points, ResponseMethod

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Interactions(ShownAsTable):
    """Result of `interaction_strength`; prints as text.

    Attributes
    ----------
    names : list of str
        Columns.
    overall : ndarray of shape (n_names,)
        H of each column with all others: 0 if it has no interactions, near 1 if it has only interactions.
    pairs : list of (str, str)
        Pairs of columns, the strongest first.
    pairwise : ndarray of shape (n_pairs,)
        H of each pair.
    size : ndarray of shape (n_pairs,)
        Root mean square of the interaction, in the units of the prediction. A pair with a small effect may have a
        large H and a small size.
    of : str
        Description of the predictions.
    n_rows : int
        Number of rows used.

    Examples
    --------
    >>> import spinney
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> model = spinney.DecisionTreeRegressor().fit(X, y)
    >>> print(spinney.interaction_strength(model, X))
    Interactions (Friedman's H) in the prediction, 4 rows
      with any other column
      x0       1.00
      x1       1.00
      pairs
      x0 × x1  1.00
    """

    names: list[str]
    overall: Floats
    pairs: list[tuple[str, str]]
    pairwise: Floats
    size: Floats
    of: str
    n_rows: int

    def __repr__(self) -> str:
        pairs = f"{plural(len(self.names), 'column')}, {plural(len(self.pairs), 'pair')}"
        return f"<Interactions: {pairs}, {plural(self.n_rows, 'row')}>"

    def __str__(self) -> str:
        order = np.argsort(-self.overall, kind="stable")[:_MAX_LINES]
        overall = [(short(self.names[j]), self.overall[j]) for j in order]
        strongest = list(zip(self.pairs, self.pairwise, strict=True))[:_MAX_LINES]
        pairs = [(short(f"{a} × {b}", 60), h) for (a, b), h in strongest]
        width = max((len(name) for name, _ in (*overall, *pairs)), default=0)
        lines = [f"Interactions (Friedman's H) in the {self.of}, {plural(self.n_rows, 'row')}"]
        for title, entries in (("with any other column", overall), ("pairs", pairs)):
            if entries or title != "pairs":
                lines += [f"  {title}", *(f"  {name:<{width}}  {h:.2f}" for name, h in entries)]
        return "\n".join(lines)

    def matrix(self) -> Floats:
        """Return H of the pairs as a symmetric matrix.

        Returns
        -------
        ndarray of shape (n_names, n_names)
            NaN for pairs that were not computed, and on the diagonal.
        """
        matrix = np.full((len(self.names), len(self.names)), np.nan)
        for (a, b), value in zip(self.pairs, self.pairwise, strict=True):
            i, j = self.names.index(a), self.names.index(b)
            matrix[i, j] = matrix[j, i] = value
        return matrix

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return the pairs as a frame, the strongest first.

        Parameters
        ----------
        backend : {"pandas", "polars"}, optional
            Library of the frame; None: the one that is installed, pandas first.

        Returns
        -------
        frame
            `column`, `other`, `strength`, `size`.
        """
        first, second = ([pair[k] for pair in self.pairs] for k in (0, 1))
        numbers = {"strength": self.pairwise.tolist(), "size": self.size.tolist()}
        return frame_of({"column": first, "other": second} | numbers, backend)

    def plot(self, *, max_pairs: int = 10, ax: Axes | None = None) -> Axes:
        """Plot the strongest pairs as bars.

        Parameters
        ----------
        max_pairs : int, default=10
            Maximum number of bars.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes.
        """
        return charts.draw_pairs(self, max_pairs, ax)


_MAX_LINES = 15


def interaction_strength(
    model: BaseEstimator,
    X: Any,
    *,
    columns: Any = None,
    max_columns: int = 8,
    n_rows: int = 200,
    sample_weight: Any = None,
    output: Any = None,
    response_method: ResponseMethod = "auto",
    random_state: Any = 0,
) -> Interactions:
    """Return the strength of interactions in a model: Friedman's H of each column and of pairs.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library: it needs `predict`.
    X : table of shape (n_samples, n_features)
        Rows, such as the training set.
    columns : list of columns, optional
        Columns by name or position; None: all.
    max_columns : int, default=8
        Number of columns among which pairs are computed: those with the strongest interactions.
    n_rows : int, default=200
        Number of sampled rows. The time grows with the square of this number, and with the square of `max_columns`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.
    output : class label, or number of an output, optional
        Class or output to explain. None: all classes or outputs together.
    response_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        Method that predicts, as in `partial_dependence`. The scores of a boosted model without interactions are
        additive; its probabilities are not, because of the link function.
    random_state : int, RandomState or None, default=0
        Seed of the row sample.

    Returns
    -------
    Interactions
        `overall` by column, `pairwise` by pair; `to_frame` and `plot`.

    See Also
    --------
    partial_dependence : Joint effect of a pair of columns, as a map.
    ShapValues.interactions : Interactions of each row.

    Examples
    --------
    >>> import numpy as np, spinney
    >>> X = np.random.default_rng(0).random((300, 3))
    >>> model = spinney.GradientBoostingRegressor(n_estimators=50).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    >>> spinney.interaction_strength(model, X).pairs[0]
    ('x0', 'x1')
    """
    full = ModelQuery(model, X, response_method, output)
    weight = read_weights(sample_weight, full.n_rows)
    chosen = list(range(full.schema.n_features)) if columns is None else [full.column(c) for c in columns]
    chosen = list(dict.fromkeys(chosen))
    require_whole("n_rows", n_rows, 2)
    rows = np.arange(full.n_rows) if weight is None else np.flatnonzero(weight > 0)
    if len(rows) > n_rows:
        rows = np.sort(check_random_state(random_state).choice(rows, n_rows, replace=False))
    query = ModelQuery(model, full.table.take(rows), response_method, output)
    fraction = np.full(len(rows), 1.0 / len(rows)) if weight is None else weight[rows] / weight[rows].sum()
    effects = [_Effect.of(query, [j], fraction) for j in chosen]
    overall = np.array([effect.h(effect.interaction, effect.prediction) for effect in effects])
    strongest = sorted(range(len(chosen)), key=lambda k: (-effects[k].interaction, k))[:max_columns]
    pairs = list(combinations(sorted(strongest), 2))
    joint = [_Effect.of(query, [chosen[a], chosen[b]], fraction).beyond(effects[a], effects[b]) for a, b in pairs]
    pairwise, size = np.array(joint).reshape(-1, 2).T
    order = np.argsort(-pairwise, kind="stable")
    names = [query.feature(j).name for j in chosen]
    named = [(names[pairs[k][0]], names[pairs[k][1]]) for k in order]
    return Interactions(names, overall, named, pairwise[order], size[order], query.of, len(rows))


@dataclass(frozen=True)
class _Effect:
    """Centred partial dependence of some columns at the values of each row, (n_rows, n_outputs)."""

    main: Floats
    rest: Floats  # of all other columns
    prediction: Floats
    fraction: Floats  # of the weight, by row

    @classmethod
    def of(cls, query: ModelQuery, columns: list[int], fraction: Floats) -> _Effect:
        rows = np.arange(query.n_rows)
        points = Points(columns, [query.numbers(j) for j in columns], [rows] * len(columns))
        main, rest, prediction = np.zeros((3, query.n_rows, query.n_outputs))
        for begin, found in query.predict_at_points(points):  # by point, row, output
            batch = slice(begin, begin + len(found))
            main[batch] = np.einsum("prk,r->pk", found, fraction)
            rest += np.einsum("prk,p->rk", found, fraction[batch])
            prediction[batch] = found[np.arange(len(found)), rows[batch]]
        return cls(_centred(main, fraction), _centred(rest, fraction), _centred(prediction, fraction), fraction)

    @property
    def interaction(self) -> float:
        """Mean square of the interaction of the columns with all others."""
        return self._mean_square(self.prediction - self.main - self.rest)

    def beyond(self, first: _Effect, second: _Effect) -> tuple[float, float]:
        """Return H and the size of the interaction of two columns, given the effect of each."""
        interaction = self._mean_square(self.main - first.main - second.main)
        return self.h(interaction, self.main), float(np.sqrt(interaction))

    def h(self, interaction: float, total: Floats) -> float:
        """Return H: the root of an interaction relative to a total effect; 0 if it is only rounding error."""
        size = self._mean_square(total)
        is_relevant = size > 0 and interaction > 1e-24 * self._mean_square(self.prediction)
        return float(np.sqrt(interaction / size)) if is_relevant else 0.0

    def _mean_square(self, values: Floats) -> float:
        return float((self.fraction[:, np.newaxis] * values**2).sum())


def _centred(values: Floats, fraction: Floats) -> Floats:
    return np.asarray(values - (fraction[:, np.newaxis] * values).sum(axis=0))
