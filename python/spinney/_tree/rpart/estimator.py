"""From an estimator with `dialect="rpart"` and its rows to a fit by rpart's rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from spinney import _engine
from spinney._data import Schema
from spinney._data.arguments import argument_array, masked_array
from spinney._data.cells import is_missing
from spinney._data.columns import CodedColumn, NumberColumn, RawTable, SparseColumn
from spinney._data.reproducible import log2
from spinney._data.schema import Input
from spinney._data.types import ColumnLike, Floats
from spinney._estimator.costs import read_cost_matrix, read_priors
from spinney._estimator.exposure import hazard_exposure, read_survival
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.target import (
    check_length,
    read_classes,
    read_numbers,
    read_weights,
)
from spinney._model.model import decision_costs
from spinney._model.tree import FittedTree
from spinney._tree.fit import TreeGrower
from spinney._tree.growing import GrowingEstimator
from spinney._tree.pruning import choose
from spinney._tree.rpart.fit import RpartGrowth, fit_record
from spinney._tree.rpart.methods import AnovaMethod, ClassMethod, Method, NodeSummaries, RateMethod, Rounding
from spinney._tree.rpart.record import RpartRecord
from spinney._tree.settings import GrowthSettings
from spinney._tree.task import Target

METHOD_OF = {"squared_error": "anova", "poisson": "poisson", "exponential": "exp"}
_MAX_DEPTH = 30
_LARGEST = 1e70  # target whose risks, which are squares, can be multiplied


def finite_only(table: RawTable) -> RawTable:
    """Return the table with infinite numbers as missing values; the same table if it has none."""
    columns, changed = [], False
    for j in range(table.n_columns):
        column = table.column(j)
        if isinstance(column, NumberColumn) and column.values.dtype.kind == "f" and np.isinf(column.values).any():
            column = NumberColumn(np.where(np.isinf(column.values), np.nan, column.values), column.missing)
            changed = True
        columns.append(column)
    return RawTable(table.n_rows, table.n_columns, table.names, columns=columns) if changed else table


def rows_with_a_value(table: RawTable) -> NDArray[np.bool_]:
    """Mark the rows that are not missing in every column."""
    has_value = np.zeros(table.n_rows, dtype=bool)
    for j in range(table.n_columns):
        column = table.column(j)
        if isinstance(column, SparseColumn):
            return np.ones(table.n_rows, dtype=bool)
        if isinstance(column, CodedColumn):
            has_value |= column.codes >= 0
            continue
        present = np.ones(table.n_rows, dtype=bool) if column.missing is None else column.missing == 0
        has_value |= present & ~np.isnan(column.values) if column.values.dtype.kind == "f" else present
    return has_value


@dataclass(frozen=True)
class RpartResult:
    """The results of a fit by rpart's rules."""

    schema: Schema
    record: RpartRecord
    response: Response
    had_missing: list[bool]

    @property
    def tree(self) -> FittedTree:
        """The tree."""
        return self.record.tree

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that do not come from the table and the tree."""
        table = self.record.complexity_table()
        found = {"rpart_": self.record, "n_outputs_": 1, "shrinkage_": 0.0, "_had_missing": self.had_missing}
        return self.response.attributes() | found | {"alpha_": float(table.alpha[-1]), "cp_table_": table}


def fit_by_rpart(estimator: GrowingEstimator, X: Input, inputs: FitInputs) -> RpartResult:
    """Fit a tree by rpart's rules."""
    settings = replace(estimator._settings, max_depth=estimator.max_depth or _MAX_DEPTH)
    if settings.searches_size:
        raise ValueError("rpart's rules choose no max_depth or min_samples_leaf. Set them, or dialect=None.")
    check_supported(settings, is_classifier(estimator), inputs.exposure)
    quirks = settings.dialect == "rpart_quirks"
    table = X.table
    schema = Schema.learn(
        table, categorical_features=estimator.categorical_features, unseen=estimator.unseen, as_declared=True
    )
    columns = schema.encode(finite_only(table), unseen=estimator.unseen, estimator=type(estimator).__name__)
    weight = read_weights(inputs.sample_weight, table.n_rows)
    weight = np.ones(table.n_rows) if weight is None else weight
    usable = rows_with_a_value(table)
    read = _read_classes if is_classifier(estimator) else _read_numbers
    response = read(settings, inputs, weight, usable)
    rows = np.flatnonzero(usable & response.is_known)
    if len(rows) == 0 or not (weight[rows] > 0).any():
        raise ValueError("No row has a response, a predictor and a positive weight.")
    method = response.method
    array, n_classes = method.engine_target()
    random = check_random_state(estimator.random_state)
    target = Target(array, None if response.classes is None else [response.classes])
    grower = TreeGrower(settings, schema, columns, target, random, has_exposure=True)
    cost = None if response.classes is None else decision_costs(response.costs, response.priors)

    def grow(split_weight: Floats, surrogates: _engine.SurrogateOptions) -> tuple[FittedTree, NDArray[np.uint32]]:
        tree, resting_node = grower.grow(split_weight, surrogates)
        return FittedTree(tree, n_classes or None, 1, cost), resting_node

    growth = RpartGrowth(
        columns=columns,
        method=method,
        method_name=response.name,
        grow=grow,
        surrogates=partial(settings.surrogate_options, weight),
        closed_cuts=[int(feature.kind == "ordered") for feature in schema.features],
        rounding=_rounding(settings, method),
        rows=rows,
        quirks=quirks,
        stale_errors=quirks and settings.missing_fallback != "majority",
        n_jobs=settings.n_threads,
    )
    folds = _folds(settings, table.n_rows, random)
    impurity = partial(_class_impurity if response.classes is not None else _number_impurity, settings.criterion_name)
    record = fit_record(growth, 0.01 if settings.cp is None else float(settings.cp), folds, impurity)
    if folds is not None and settings.rule is not None:
        complexities = record.complexity_table()
        at = choose(complexities.cv_error[::-1], complexities.cv_se[::-1], settings.rule)
        if at is not None:
            record = record.pruned(float(complexities.cp[len(complexities) - 1 - at]))
    had_missing = columns.ranges(None, settings.n_threads)[2].astype(bool).tolist()
    return RpartResult(schema, record, response, had_missing)


def check_supported(settings: GrowthSettings, has_classes: bool, exposure: ColumnLike) -> None:
    """Refuse parameters that rpart's rules do not support."""
    is_rate = settings.criterion in ("poisson", "exponential")
    known = ("gini", "entropy", "log_loss") if has_classes else tuple(METHOD_OF)
    if settings.criterion not in known:
        raise ValueError(f"rpart's rules work with the criteria {', '.join(known)}, not {settings.criterion!r}.")
    changed = {
        "ccp_alpha": settings.ccp_alpha > 0,
        "class_weight": settings.class_weight is not None,
        "validation_fraction": settings.validation_fraction is not None,
        "shrinkage": settings.shrinkage is not None,
        "scoring": settings.scoring is not None and not (is_rate and settings.scoring == "sqrt"),
        "risk": settings.risk == "impurity",
        "cost_splits": settings.cost_splits != "altered_priors",
        "prune": settings.prune not in (None, "cv"),
        "max_leaf_nodes": settings.max_leaf_nodes is not None,
        "splitter": settings.splitter != "best",
    }
    unsupported = [name for name, is_changed in changed.items() if is_changed]
    if unsupported == ["splitter"]:
        raise ValueError("rpart's rules do not support splitter='random'. Set splitter='best', or dialect=None.")
    if unsupported:
        raise ValueError(
            f"rpart's rules do not support {unsupported[0]}. Leave it at its default, or set dialect=None."
        )
    if exposure is not None and settings.criterion != "poisson":
        raise ValueError("exposure requires method='poisson'.")
    if settings.max_depth is not None and settings.max_depth > _MAX_DEPTH:
        raise ValueError("rpart's trees have a depth of at most 30. Set max_depth to 30 or less.")


def _rounding(settings: GrowthSettings, method: Method) -> Rounding:
    """Return how ties are broken: by rpart's rounding, unless the search has limits that rpart does not support."""
    has_limits = settings.max_bins or settings.min_weight_fraction_leaf or settings.monotonic_cst is not None
    return Rounding() if has_limits else method.rounding()


@dataclass(frozen=True)
class Response:
    """The response y in the form that rpart's methods read.

    Attributes
    ----------
    name : {"class", "anova", "poisson", "exp"}
    method : Method
    is_known : ndarray of bool
        Rows that have a response.
    classes : ndarray or None
    costs, priors : ndarray or None
        Costs and priors of the classes.
    """

    name: str
    method: Method
    is_known: NDArray[np.bool_]
    classes: NDArray[Any] | None = None
    costs: Floats | None = None
    priors: Floats | None = None

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of a classifier; none in a regression."""
        if self.classes is None:
            return {}
        sizes = {"classes_": self.classes, "n_classes_": len(self.classes)}
        return sizes | {"cost_matrix_": self.costs, "priors_": self.priors}


def _read_classes(settings: GrowthSettings, inputs: FitInputs, weight: Floats, usable: NDArray[np.bool_]) -> Response:
    codes, classes = read_labels(inputs.y, len(weight))
    codes = np.where(usable, codes, -1).astype(np.int32)
    costs = None if settings.cost_matrix is None else read_cost_matrix(settings.cost_matrix, classes)
    priors = None if settings.priors is None else read_priors(settings.priors, classes)
    method = ClassMethod(
        codes,
        len(classes),
        weight,
        prior=priors,
        loss=costs,
        bits=settings.criterion in ("entropy", "log_loss"),
        transposed_loss=settings.dialect == "rpart_quirks",
    )
    return Response("class", method, codes >= 0, classes, costs, priors)


def _read_numbers(settings: GrowthSettings, inputs: FitInputs, weight: Floats, usable: NDArray[np.bool_]) -> Response:
    name, n_rows = METHOD_OF[str(settings.criterion)], len(weight)
    if name == "anova":
        values = read_numbers(inputs.y, n_rows, (1,))[:, 0]
        if np.nanmax(np.abs(values), initial=0.0) > _LARGEST:
            raise ValueError(
                f"y holds numbers beyond {_LARGEST:g}, whose squares are too large to be summed. Rescale y."
            )
        return Response(name, AnovaMethod(values, weight), ~np.isnan(values))
    if name == "poisson":
        events, time = _counts(inputs.y, inputs.exposure, n_rows)
    else:
        events, time = _survival(inputs.y, n_rows, weight, usable)
    by_root = settings.scoring == "sqrt"
    method = RateMethod(events, time, weight, shrink=float(settings.rate_shrinkage), square_root_errors=by_root)
    return Response(name, method, ~np.isnan(events) & ~np.isnan(time))


def _counts(y: ColumnLike, exposure: ColumnLike, n_rows: int) -> tuple[Floats, Floats]:
    values = read_numbers(y, n_rows, (1, 2))
    if values.shape[1] == 2:
        if exposure is not None:
            raise ValueError("Pass exposure either as the first column of y or as exposure=, not both.")
        time, events = values[:, 0], values[:, 1]
    else:
        events = values[:, 0]
        time = np.ones(n_rows) if exposure is None else read_numbers(exposure, n_rows, (1,), "exposure")[:, 0]
    if (time <= 0).any():
        raise ValueError(f"Exposure must be positive; row {int(np.argmax(time <= 0))} has {time[time <= 0][0]:g}.")
    if (events < 0).any():
        raise ValueError("Counts must not be negative.")
    return events, time


def _survival(y: ColumnLike, n_rows: int, weight: Floats, usable: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    values = read_numbers(y, n_rows, (2, 3))
    values[~usable] = np.nan
    start, stop, event = read_survival(values)
    known = ~np.isnan(values).any(axis=1)
    time = np.full(n_rows, np.nan)
    time[known] = hazard_exposure(start[known], stop[known], event[known], weight[known])
    return event, time


def _folds(settings: GrowthSettings, n_rows: int, random: np.random.RandomState) -> NDArray[Any] | None:
    cv = settings.cv
    if settings.prune != "cv" or cv is None:
        return None
    if isinstance(cv, Integral):
        if int(cv) < 2:
            return None
        return random.permutation(np.arange(n_rows) % int(cv))
    folds = argument_array(cv, "xval")
    if folds.shape != (n_rows,):
        raise ValueError(f"xval has {folds.size} fold numbers and X has {n_rows} rows. Pass one per row.")
    if folds.dtype.kind == "f" and np.isnan(folds).any():
        raise ValueError(f"xval has no fold for row {int(np.argmax(np.isnan(folds)))}. Give every row a fold number.")
    return folds


def _class_impurity(criterion: str, summaries: NodeSummaries) -> Floats:
    p = summaries.value
    if criterion == "gini":
        return np.asarray((p * (1 - p)).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.where(p > 0, p * log2(p), 0.0).sum(axis=1))


def _number_impurity(criterion: str, summaries: NodeSummaries) -> Floats:
    half = 1.0 if criterion == "squared_error" else 0.5
    return np.maximum(half * summaries.risk / summaries.mass, 0.0)


def read_labels(y: ColumnLike, n_rows: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the class codes, -1 where the label is missing, and the labels, in their declared order or sorted."""
    declared = _declared_order(y)
    masked = masked_array(y)
    labels = argument_array(y if masked is None else np.ma.getdata(masked), "y").astype(object)
    if masked is not None:
        labels[np.ma.getmaskarray(masked)] = None
    if labels.ndim > 2 or (labels.ndim == 2 and labels.shape[1] != 1):
        raise ValueError(f"y must hold one label per row; it has shape {labels.shape}. Fit one tree per output.")
    labels = labels.reshape(-1)
    check_length(len(labels), n_rows)
    missing = np.array([is_missing(label) for label in labels], dtype=bool)
    if missing.all():
        raise ValueError("y has no labels: every value is missing.")
    present = np.array(labels[~missing].tolist())
    if present.dtype.kind in "US":
        present = labels[~missing]
    target = read_classes(present, len(present))
    codes = np.full(n_rows, -1, dtype=np.int32)
    codes[~missing] = target.codes[:, 0]
    classes = target.classes[0]
    if declared is None:
        return codes, classes
    known = classes.tolist()
    order = [known.index(label) for label in declared if label in known]
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    codes[~missing] = rank[codes[~missing]]
    return codes, classes[order]


def _declared_order(y: ColumnLike) -> list[Any] | None:
    """Return the categories of a pandas categorical or a polars enumeration."""
    categories = getattr(getattr(y, "dtype", None), "categories", None)
    return None if categories is None else list(categories)
