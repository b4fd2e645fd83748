"""Distances between the rows of a table.

A measure turns rows into terms, which the engine compares. Sums run over the terms in their order, so distances are
bit-identical on every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema
from spinney._data.design import Design
from spinney._data.reproducible import exp, log
from spinney._data.types import Floats
from spinney._model.file.codec import array, number, optional, saved_fields, word
from spinney._model.file.container import refuse
from spinney._model.model import DESIGN

# what the engine sums: over terms, or over columns
_OF_TERMS = {
    "euclidean": "squares",
    "manhattan": "absolute",
    "chebyshev": "largest",
    "minkowski": "powers",
    "cosine": "squares",
    "mahalanobis": "squares",
    "seuclidean": "squares",
    "sqeuclidean": "squares",
    "correlation": "squares",
}
_OF_COLUMNS = {"hamming": "differing", "gower": "gower"}
PRECOMPUTED = "precomputed"
METRICS = (*_OF_TERMS, *_OF_COLUMNS, PRECOMPUTED)
# distances of differences between terms, whose terms need no statistics of the rows
OF_DIFFERENCES = ("euclidean", "manhattan", "chebyshev", "minkowski", "sqeuclidean")
POWERS = {1.0: "manhattan", 2.0: "euclidean", np.inf: "chebyshev"}  # Minkowski's distances with names
_FARTHEST = 1e100
_NO_VALUE = np.finfo(np.float64).max  # stands for missing values in Hamming's distance
_REDUNDANT = 1e-10  # fraction of a term's variance that the terms before it do not explain


_SAVED = saved_fields(
    metric=word(METRICS),
    p=number(above=0, below=np.inf),
    design=optional(DESIGN),
    low=optional(array("float64", "n_features")),
    width=optional(array("float64", "n_features", least=0)),
    kept=optional(array("int32", "n_kept", least=0, below="n_terms")),
    factor=optional(array("float64", "n_kept", "n_kept")),
)


@dataclass(frozen=True)
class Measure:
    """A distance between rows.

    Attributes
    ----------
    metric : str
        Name of the metric; "callable" for a user-defined function.
    p : float
        Power of Minkowski's distance.
    design : Design or None
        How columns become terms; None if the distance compares columns.
    low, width : ndarray of shape (n_features,) or None
        Minimum and range of numbers, for Gower's distance; a range of 0: the column is constant, and left out.
    kept, factor : ndarray of shape (n_kept,), (n_kept, n_kept), or None
        Linearly independent terms and the Cholesky factor of their covariance, for Mahalanobis' distance.
    function : callable or None
        User-defined distance of two rows of terms.
    """

    metric: str
    p: float = 2.0
    design: Design | None = None
    low: Floats | None = None
    width: Floats | None = None
    kept: NDArray[np.int32] | None = None
    factor: Floats | None = None
    function: Callable[[Floats, Floats], float] | None = None

    @classmethod
    def learn(
        cls,
        metric: Any,
        p: float,
        scale: str | None,
        columns: _engine.Table,
        schema: Schema,
        weight: Floats,
        params: Mapping[str, Any] = MappingProxyType({}),
    ) -> Measure:
        """Learn the scales from the rows of positive weight; `metric` is a resolved name or a function.

        `params` are scikit-learn's: weights `w` of Minkowski's distance, variances `V` of the standardised Euclidean
        distance, the covariance `V` or its inverse `VI` of Mahalanobis' distance.
        """
        if callable(metric):
            return cls("callable", design=Design.learn(columns, schema, weight, scale), function=metric)
        if metric in ("hamming", PRECOMPUTED):
            return cls(metric)
        if metric == "gower":
            low, width = _ranges(columns, schema, weight)
            return cls(metric, low=low, width=width)
        design = Design.learn(columns, schema, weight, scale)
        if metric == "mahalanobis":
            found = cls(metric, float(p), design)
            return found._with_covariance(columns, weight) if not params else found._with_given_covariance(**params)
        if metric == "seuclidean":
            variance = params.get("V")
            variance = _variances(design.matrix(columns), weight) if variance is None else variance
            design = _divided(design, np.sqrt(_one_per_term(variance, "V", len(design))))
        if metric == "minkowski":
            metric = POWERS.get(p, metric)
            if (factors := params.get("w")) is not None:
                factors = _one_per_term(factors, "w", len(design))
                design = _divided(design, np.where(factors > 0, exp(-log(factors) / p), 0.0))
        return cls(metric, float(p) if p < np.inf else 2.0, design)

    @classmethod
    def of_numbers(cls, metric: str, p: float, rows: Floats) -> Measure:
        """Return the measure of unscaled, bounded numbers, (n_rows, n_terms), as `learn` does."""
        metric = POWERS.get(p, metric) if metric == "minkowski" else metric
        return cls(metric, float(p) if p < np.inf else 2.0, Design.of_numbers(rows))

    def _with_given_covariance(self, V: Any = None, VI: Any = None) -> Measure:
        """Use the covariance of the terms, or its inverse, instead of that of the training rows."""
        assert self.design is not None
        name, n = ("V", len(self.design)) if VI is None else ("VI", len(self.design))
        given = np.asarray(V if VI is None else VI, dtype=np.float64)
        if given.shape != (n, n) or not np.isfinite(given).all() or np.linalg.eigvalsh(given).min(initial=1.0) <= 0:
            raise ValueError(
                f"{name!r} in metric_params must be a positive definite matrix of shape ({n}, {n}), a row for each "
                f"term of the distance. Its shape is {given.shape}."
            )
        kept, factor = _factored(given if VI is None else np.asarray(np.linalg.inv(given), dtype=np.float64))
        return replace(self, kept=kept, factor=factor)

    def _with_covariance(self, columns: _engine.Table, weight: Floats) -> Measure:
        assert self.design is not None
        used = weight > 0
        terms, kept_weight = self.design.matrix(columns)[:, used], weight[used]
        total = float(kept_weight.sum())
        centred = terms - ((terms * kept_weight).sum(axis=1) / total)[:, np.newaxis]
        n = len(terms)
        covariance = np.empty((n, n))
        for i in range(n):
            covariance[i, : i + 1] = (centred[: i + 1] * (centred[i] * kept_weight)).sum(axis=1)
            covariance[: i + 1, i] = covariance[i, : i + 1]
        covariance /= total - 1 if total > 1 else total
        kept, factor = _factored(covariance)
        return replace(self, kept=kept, factor=factor)

    # ---- rows ------------------------------------------------------------------------------------------------

    @property
    def is_indexed(self) -> bool:
        """Whether the engine searches neighbours by this distance."""
        return self.function is None and self.metric != PRECOMPUTED

    @property
    def engine_metric(self) -> str:
        """Name of the metric in the engine."""
        return (_OF_TERMS | _OF_COLUMNS)[self.metric]

    @property
    def center(self) -> Floats | None:
        """Values subtracted from the terms; None if the metric does not scale."""
        return self.low if self.design is None else self.design.center

    @property
    def scale(self) -> Floats | None:
        """Values that the terms are divided by; None if the metric does not scale."""
        return self.width if self.design is None else self.design.scale

    def names(self, schema: Schema) -> list[str]:
        """Return the names of the terms."""
        return list(schema.names) if self.design is None else self.design.names(schema)

    def terms(self, columns: _engine.Table) -> Floats:
        """Return the terms of rows, (n_rows, n_terms)."""
        if self.metric == PRECOMPUTED:
            return _read_distances(columns)
        if self.design is None:
            return self._column_terms(columns)
        if self.metric in ("cosine", "correlation"):
            terms = self.design.matrix(columns)
            if self.metric == "correlation":
                terms = terms - sum(terms, np.zeros(terms.shape[1])) / max(1, len(terms))
            terms = _normalised(terms)
        elif self.factor is not None and self.kept is not None:
            terms = _solved(self.factor, self.design.matrix(columns)[self.kept])
        else:
            return self.design.matrix(columns, by_row=True)
        return np.ascontiguousarray(terms.T)

    def _column_terms(self, columns: _engine.Table) -> Floats:
        terms = np.clip(_all_columns(columns), -_FARTHEST, _FARTHEST)
        if self.low is None or self.width is None:
            return np.where(np.isnan(terms), _NO_VALUE, terms)
        varies = self.width > 0
        return np.where(varies, (terms - self.low) / np.where(varies, self.width, 1.0), np.nan)

    def n_terms(self, n_features: int) -> int:
        """Return the number of terms of a row."""
        if self.design is None:
            return n_features
        if self.kept is not None:
            return len(self.kept)
        return len(self.design) + (self.metric in ("cosine", "correlation"))

    def distances(self, keys: Floats, n_terms: int) -> Floats:
        """Turn the engine's sums into distances."""
        if self.metric in ("euclidean", "seuclidean", "mahalanobis"):
            return np.sqrt(keys)
        if self.metric in ("cosine", "correlation"):
            return keys / 2
        if self.metric == "minkowski":
            return exp(log(keys) / self.p)
        return keys / max(1, n_terms) if self.metric == "hamming" else keys

    # ---- files -----------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the measure as JSON."""
        return _SAVED.to_header(self)

    @classmethod
    def from_json(cls, fields: object, schema: Schema) -> Measure:
        """Read a measure from JSON; refuse one that does not fit the columns."""
        measure = cls(**_SAVED.from_header(fields, schema=schema, n_features=schema.n_features, n_terms=0))
        needed = {
            "gower": ("low", "width"),
            "hamming": (),
            PRECOMPUTED: (),
            "mahalanobis": ("design", "kept", "factor"),
        }
        present = {name for name in ("design", "low", "width", "kept", "factor") if getattr(measure, name) is not None}
        if present != set(needed.get(measure.metric, ("design",))):
            refuse("is damaged: its distance is unusable")
        if measure.factor is not None and not measure.factor.diagonal().all():
            refuse("is damaged: its covariance is impossible")
        return measure


def _one_per_term(given: Any, name: str, n: int) -> Floats:
    """Return the numbers of metric_params, one for each term of the distance; refuse others."""
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape != (n,) or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise ValueError(
            f"{name!r} in metric_params must be {n} finite numbers of at least 0, one for each term of the distance. "
            f"Its shape is {numbers.shape}."
        )
    return numbers


def _variances(terms: Floats, weight: Floats) -> Floats:
    """Return the variance of each term, where a row of weight 2 counts twice."""
    total = float(weight.sum())
    means = (terms * weight).sum(axis=1, keepdims=True) / total
    return np.asarray(((terms - means) ** 2 * weight).sum(axis=1) / (total - 1 if total > 1 else total))


def _divided(design: Design, divisor: Floats) -> Design:
    """Divide each term by a number; terms with the divisor 0 are left out."""
    kept = divisor > 0
    chosen = {name: numbers[kept] for name, numbers in design.arrays.items()}
    return replace(design, **chosen | {"scale": design.scale[kept] * divisor[kept]})


def _all_columns(columns: _engine.Table) -> Floats:
    """Return the numbers and codes of all columns, (n_rows, n_columns)."""
    return columns.block(np.arange(columns.n_columns, dtype=np.int32), True)


def _read_distances(columns: _engine.Table) -> Floats:
    """Return a matrix of distances to the training rows, (n_rows, n_training_rows)."""
    found = _all_columns(columns)
    if not (np.isfinite(found) & (found >= 0)).all():
        row, column = np.argwhere(~(np.isfinite(found) & (found >= 0)))[0]
        raise ValueError(
            f"metric='precomputed' needs finite distances of at least 0, but X has {found[row, column]:g} in row "
            f"{row}, column {column}."
        )
    return found


def _ranges(columns: _engine.Table, schema: Schema, weight: Floats) -> tuple[Floats, Floats]:
    """Return minimum and range of each column of numbers; codes of categories, which differ by 1 or more, stay.

    Constant columns have the range 0: in the mean over the columns that two rows have, they would only hide the others.
    """
    low, width = np.zeros(schema.n_features), np.ones(schema.n_features)
    used = weight > 0
    for j, n_categories in enumerate(schema.n_categories):
        values = np.asarray(columns.column(j))[used]
        values = values[~np.isnan(values)]
        if len(values) and (values == values[0]).all():
            width[j] = 0.0
        elif not n_categories:
            values = values[np.abs(values) < _FARTHEST]  # an infinite number has the largest distance from all others
            if len(values):
                low[j] = values.min()
                width[j] = np.ptp(values) or 1.0
    return low, width if width.any() else np.ones(schema.n_features)


def _normalised(terms: Floats) -> Floats:
    """Divide rows by their length. Rows of zeros get an additional dimension, orthogonal to all other rows."""
    squares = np.zeros(terms.shape[1])
    largest = np.abs(terms).max(axis=0, initial=0.0)
    scaled = terms / np.where(largest > 0, largest, 1.0)  # so that squares do not overflow
    for term in scaled:
        squares += term * term
    found = scaled / np.where(squares > 0, np.sqrt(squares), 1.0)
    return np.concatenate([found, (squares == 0).astype(np.float64)[np.newaxis]])


def _factored(covariance: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Return the terms that are linearly independent of those before them, and the factor of their covariance."""
    n = len(covariance)
    rest = covariance.copy()
    kept: list[int] = []
    columns: list[Floats] = []
    for j in range(n):
        if not rest[j, j] > _REDUNDANT * covariance[j, j]:
            continue
        column = rest[:, j] / np.sqrt(rest[j, j])
        rest -= column[:, np.newaxis] * column
        kept.append(j)
        columns.append(column)
    factor = np.array([[column[j] for column in columns] for j in kept]).reshape(len(kept), len(kept))
    return np.array(kept, dtype=np.int32), np.tril(factor)


def _solved(factor: Floats, terms: Floats) -> Floats:
    """Solve L y = x for each row x, (n_terms, n_rows)."""
    found = terms.copy()
    for j in range(len(factor)):
        found[j] /= factor[j, j]
        found[j + 1 :] -= factor[j + 1 :, j : j + 1] * found[j]
    return found
