"""Which columns act together: Friedman's H statistic.

The partial dependence f_j(x_j), centred, is what column j does alone. If a model were a sum of what columns do alone,
f_jk would be f_j + f_k, and the whole f would be f_j + f_rest. H compares what is left with what there is (Friedman
and Popescu 2008):

    H²_jk = Σ (f_jk - f_j - f_k)² / Σ f_jk²          H²_j = Σ (f - f_j - f_rest)² / Σ f²

with sums over the rows. Answers for each of n rows with the values of each other row give f_j (means over rows) and
f_rest (means over values) at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from spinney._data.display import Backend, frame_of, plural
from spinney._data.types import Floats
from spinney._estimator.target import read_weights
from spinney.inspect.charts import explanation as charts
from spinney.inspect.charts.axes import short
from spinney.inspect.explain.target_model import Asked, Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Interactions:
    """What `interaction_strength` found; prints as text.

    Attributes
    ----------
    names : list of str
        Columns.
    overall : ndarray of shape (n_names,)
        H of each column with all others together: 0, it acts alone; towards 1, it acts only together with others.
    pairs : list of (str, str)
        Pairs of columns, the strongest first.
    pairwise : ndarray of shape (n_pairs,)
        H of each pair.
    size : ndarray of shape (n_pairs,)
        How much the pair does together, in the units of the prediction: the root of the mean square. A pair with little
        effect may have a large H and a small size.
    of : str
        What is explained, in words.
    n_rows : int
        Rows asked about.

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
        order = np.argsort(-self.overall, kind="stable")[:_MOST_LINES]
        alone = [(short(self.names[j]), self.overall[j]) for j in order]
        pairs = [(short(f"{a} × {b}", 60), h) for (a, b), h in zip(self.pairs, self.pairwise, strict=True)][
            :_MOST_LINES
        ]
        width = max((len(name) for name, _ in (*alone, *pairs)), default=0)
        lines = [f"Interactions (Friedman's H) in the {self.of}, {plural(self.n_rows, 'row')}"]
        for title, found in (("with any other column", alone), ("pairs", pairs)):
            if found or title != "pairs":
                lines += [f"  {title}", *(f"  {name:<{width}}  {h:.2f}" for name, h in found)]
        return "\n".join(lines)

    def matrix(self) -> Floats:
        """Return H of the pairs as a symmetric matrix.

        Returns
        -------
        ndarray of shape (n_names, n_names)
            NaN for pairs that were not asked about, and on the diagonal.
        """
        found = np.full((len(self.names), len(self.names)), np.nan)
        for (a, b), value in zip(self.pairs, self.pairwise, strict=True):
            i, j = self.names.index(a), self.names.index(b)
            found[i, j] = found[j, i] = value
        return found

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
        """Draw the strongest pairs as bars.

        Parameters
        ----------
        max_pairs : int, default=10
            Bars at most.
        ax : Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        Axes
            The axes drawn on.
        """
        return charts.draw_pairs(self, max_pairs, ax)


_MOST_LINES = 15


def interaction_strength(
    model: BaseEstimator,
    X: Any,
    *,
    columns: Any = None,
    max_columns: int = 8,
    n_rows: int = 200,
    sample_weight: Any = None,
    output: Any = None,
    response_method: str = "auto",
    random_state: Any = 0,
) -> Interactions:
    """How strongly columns act together in a model: Friedman's H of each column and of pairs.

    Parameters
    ----------
    model : fitted estimator
        Of spinney, scikit-learn, LightGBM or any library: it needs `predict`.
    X : table of shape (n_samples, n_features)
        Rows, such as those of the training part.
    columns : list of columns, optional
        Columns to look at, by name or position; None: all.
    max_columns : int, default=8
        Pairs are looked at among so many columns: those that act most together with others.
    n_rows : int, default=200
        Rows drawn of the table. The work grows with its square, and with the square of `max_columns`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.
    output : class label, or number of an output, optional
        What to explain of a model of several classes or outputs. None: all of them together.
    response_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        What answers. Scores of boosted models are sums, so that what columns do alone adds up: shares of classes are
        not, and show interactions by their shape alone.
    random_state : int, RandomState or None, default=0
        Seed of the draw of rows.

    Returns
    -------
    Interactions
        `overall` by column, `pairwise` by pair; `to_frame` and `plot`.

    See Also
    --------
    partial_dependence : What a pair of columns does together, as a map.
    ShapValues.interactions : What pairs add for each row.

    Examples
    --------
    >>> import numpy as np, spinney
    >>> X = np.random.default_rng(0).random((300, 3))
    >>> model = spinney.GradientBoostingRegressor(n_estimators=50).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    >>> spinney.interaction_strength(model, X).pairs[0]
    ('x0', 'x1')
    """
    whole = Asked(model, X, response_method, output)
    weight = read_weights(sample_weight, whole.n_rows)
    chosen = list(range(whole.schema.n_features)) if columns is None else [whole.column(c) for c in columns]
    chosen = list(dict.fromkeys(chosen))
    if n_rows < 2:
        raise ValueError(f"n_rows must be at least 2, not {n_rows!r}.")
    rows = np.arange(whole.n_rows) if weight is None else np.flatnonzero(weight > 0)
    if len(rows) > n_rows:
        rows = np.sort(check_random_state(random_state).choice(rows, n_rows, replace=False))
    asked = Asked(model, whole.table.take(rows), response_method, output)
    share = np.full(len(rows), 1.0 / len(rows)) if weight is None else weight[rows] / weight[rows].sum()
    found = [_Effect.of(asked, [j], share) for j in chosen]
    overall = np.array([effect.ratio(effect.together, effect.whole) for effect in found])
    strongest = sorted(range(len(chosen)), key=lambda k: (-found[k].together, k))[:max_columns]
    pairs = list(combinations(sorted(strongest), 2))
    both = [_Effect.of(asked, [chosen[a], chosen[b]], share).beyond(found[a], found[b]) for a, b in pairs]
    pairwise, size = np.array(both).reshape(-1, 2).T
    order = np.argsort(-pairwise, kind="stable")
    names = [asked.feature(j).name for j in chosen]
    named = [(names[pairs[k][0]], names[pairs[k][1]]) for k in order]
    return Interactions(names, overall, named, pairwise[order], size[order], asked.of, len(rows))


@dataclass(frozen=True)
class _Effect:
    """What some columns do: centred means at the rows' own values, (n_rows, n_outputs)."""

    alone: Floats
    rest: Floats  # what all other columns do
    whole: Floats
    share: Floats

    @classmethod
    def of(cls, asked: Asked, columns: list[int], share: Floats) -> _Effect:
        every = np.arange(asked.n_rows)
        points = Points(columns, [asked.numbers(j) for j in columns], [every] * len(columns))
        alone, rest, whole = np.zeros((3, asked.n_rows, asked.n_outputs))
        for begin, found in asked.at_points(points):  # by point, row, output
            these = slice(begin, begin + len(found))
            alone[these] = np.einsum("prk,r->pk", found, share)
            rest += np.einsum("prk,p->rk", found, share[these])
            whole[these] = found[np.arange(len(found)), every[these]]
        return cls(_centred(alone, share), _centred(rest, share), _centred(whole, share), share)

    @property
    def together(self) -> float:
        """How much the columns do together with the others, in the units of the answers, squared."""
        return self._square(self.whole - self.alone - self.rest)

    def beyond(self, first: _Effect, second: _Effect) -> tuple[float, float]:
        """H of two columns, of which this is what they do together, and the size of what they do beyond the sum."""
        left = self._square(self.alone - first.alone - second.alone)
        return self.ratio(left, self.alone), float(np.sqrt(left))

    def ratio(self, left: float, values: Floats) -> float:
        """H: root of the share of a square in that of values; 0 where it is rounding beside what the model does."""
        return float(np.sqrt(left / self._square(values))) if left > 1e-24 * self._square(self.whole) else 0.0

    def _square(self, values: Floats) -> float:
        return float((self.share[:, np.newaxis] * values**2).sum())


def _centred(values: Floats, share: Floats) -> Floats:
    return np.asarray(values - (share[:, np.newaxis] * values).sum(axis=0))
