"""From an estimator with `dialect="rpart"` to a fit by rpart's rules."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from spinney import _engine
from spinney._data import Schema, read_table
from spinney._data.arguments import given_array
from spinney._data.columns import CodedColumn, NumberColumn, RawTable, SparseColumn
from spinney._data.numeric.reproducible import log2
from spinney._estimator.costs import read_cost_matrix, read_priors
from spinney._estimator.exposure import hazard_exposure, read_survival
from spinney._estimator.target import ClassTarget, read_numbers, read_weights
from spinney._model.model import decision_costs
from spinney._model.tree import FittedTree
from spinney._tree.prune.choice import choose
from spinney._tree.prune.table import ComplexityTable
from spinney._tree.rpart.fit import RpartGrowth, fit_record
from spinney._tree.rpart.methods import AnovaMethod, ClassMethod, Method, NodeSummaries, RateMethod, Rounding
from spinney._tree.rpart.record import RpartRecord
from spinney._tree.rpart.response import read_labels

Floats = NDArray[np.float64]

METHOD_OF = {"squared_error": "anova", "poisson": "poisson", "exponential": "exp"}
_LARGEST = 1e70  # target whose risks, which are squares, can be multiplied


def finite_only(table: RawTable) -> RawTable:
    """Return the table with infinite numbers as missing; the same table if it has none."""
    columns, changed = [], False
    for j in range(table.n_columns):
        column = table.column(j)
        if isinstance(column, NumberColumn) and column.values.dtype.kind == "f" and np.isinf(column.values).any():
            column = NumberColumn(np.where(np.isinf(column.values), np.nan, column.values), column.missing)
            changed = True
        columns.append(column)
    return RawTable(table.n_rows, table.n_columns, table.names, columns=columns) if changed else table


def rows_with_a_value(table: RawTable) -> NDArray[np.bool_]:
    """Mark the rows that have a value in at least one column."""
    some = np.zeros(table.n_rows, dtype=bool)
    for j in range(table.n_columns):
        column = table.column(j)
        if isinstance(column, SparseColumn):
            return np.ones(table.n_rows, dtype=bool)
        if isinstance(column, CodedColumn):
            some |= column.codes >= 0
            continue
        present = np.ones(table.n_rows, dtype=bool) if column.missing is None else column.missing == 0
        some |= present & ~np.isnan(column.values) if column.values.dtype.kind == "f" else present
    return some


def fit_by_rpart(estimator: Any, X: Any, y: Any, sample_weight: Any, exposure: Any) -> None:
    """Fit the estimator by rpart's rules and set its fitted attributes."""
    refuse_unknown(estimator, exposure)
    quirks = estimator.dialect == "rpart_quirks"
    table = read_table(X)
    finite = finite_only(table)
    schema = Schema.learn(
        table, categorical_features=estimator.categorical_features, unseen=estimator.unseen, as_declared=True
    )
    columns = schema.encode(finite, unseen=estimator.unseen, estimator=type(estimator).__name__)
    weight = read_weights(sample_weight, table.n_rows)
    weight = np.ones(table.n_rows) if weight is None else weight
    usable = rows_with_a_value(table)
    method_name, method, learned, has_response = _read_method(estimator, y, exposure, weight, usable, quirks)
    rows = np.flatnonzero(usable & has_response)
    if len(rows) == 0 or not (weight[rows] > 0).any():
        raise ValueError("No row has a response, a predictor and a positive weight.")
    array, n_classes = method.engine_target()
    target = ClassTarget(array.astype(np.int32), [learned["classes_"]]) if n_classes else array
    random = check_random_state(estimator.random_state)

    cost = decision_costs(learned["cost_matrix_"], learned["priors_"]) if n_classes else None

    def grow(split_weight: Floats, weighing: _engine.WeighingOptions) -> tuple[FittedTree, NDArray[np.uint32]]:
        tree, resting = estimator._grow(columns, schema, target, split_weight, random, None, True, weighing)
        return FittedTree(tree, n_classes or None, 1, cost), resting

    growth = RpartGrowth(
        columns=columns,
        method=method,
        method_name=method_name,
        grow=grow,
        weighing=partial(_weighing, estimator, weight),
        closed_cuts=[int(feature.kind == "ordered") for feature in schema.features],
        rounding=_rounding(estimator, method),
        rows=rows,
        quirks=quirks,
        stale_errors=quirks and estimator.missing_fallback != "majority",
        n_jobs=estimator._n_threads,
    )
    folds = _folds(estimator, table.n_rows, random)
    record = fit_record(growth, 0.01 if estimator.cp is None else float(estimator.cp), folds, _impurity(estimator))
    prices = complexity_table(record)
    if folds is not None and estimator.rule is not None:
        at = choose(prices.cv_error[::-1], prices.cv_se[::-1], estimator.rule)
        if at is not None:
            record = record.pruned(float(prices.cp[len(prices.cp) - 1 - at]))
            prices = complexity_table(record)
    learned |= {"rpart_": record, "n_outputs_": 1, "shrinkage_": 0.0}
    learned["_had_missing"] = columns.ranges(None, estimator._n_threads)[2].astype(bool).tolist()
    estimator._forget()
    estimator._keep(schema, record.tree, learned)
    estimator._keep_pruning({"alpha_": float(prices.alpha[-1]), "cp_table_": prices})


def refuse_unknown(estimator: Any, exposure: Any) -> None:
    """Refuse what rpart's rules do not know."""
    is_rate = estimator.criterion in ("poisson", "exponential")
    known = ("gini", "entropy", "log_loss") if is_classifier(estimator) else tuple(METHOD_OF)
    if estimator.criterion not in known:
        raise ValueError(f"rpart's rules work with the criteria {', '.join(known)}, not {estimator.criterion!r}.")
    how = estimator.get_params(deep=False).get("prune")
    given = {
        "ccp_alpha": estimator.ccp_alpha > 0,
        "class_weight": getattr(estimator, "class_weight", None) is not None,
        "validation_fraction": estimator.validation_fraction is not None,
        "shrinkage": estimator.shrinkage is not None,
        "scoring": estimator.scoring is not None and not (is_rate and estimator.scoring == "sqrt"),
        "risk": estimator.risk == "impurity",
        "cost_splits": getattr(estimator, "cost_splits", "altered_priors") != "altered_priors",
        "prune": how not in (None, "cv"),
        "max_leaf_nodes": estimator.max_leaf_nodes is not None,
        "splitter": estimator.splitter != "best",
    }
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise ValueError(f"rpart's rules do not work with {wrong[0]}. Leave it at its default, or set dialect=None.")
    if exposure is not None and estimator.criterion != "poisson":
        raise ValueError("exposure only goes with method='poisson'.")
    if estimator.max_depth is None or estimator.max_depth > 30:
        raise ValueError("rpart's trees have a depth of at most 30. Set max_depth to 30 or less.")


def _weighing(estimator: Any, weight: Floats, rpart: _engine.RpartOptions) -> _engine.WeighingOptions:
    return _engine.WeighingOptions(
        present_only=True,
        max_competitors=estimator.max_competitors,
        max_surrogates=estimator.max_surrogates,
        absent_disagrees=estimator.surrogate_style == "all",
        missing_fallback=estimator.missing_fallback,
        case_weight=weight,
        rpart=rpart,
    )


def _rounding(estimator: Any, method: Method) -> Rounding:
    """Have ties decided as rpart's rounding does, unless the search has limits that rpart does not know."""
    has_limits = estimator.max_bins or estimator.min_weight_fraction_leaf or estimator.monotonic_cst is not None
    return Rounding() if has_limits else method.rounding()


def _read_method(
    estimator: Any, y: Any, exposure: Any, weight: Floats, usable: NDArray[np.bool_], quirks: bool
) -> tuple[str, Method, dict[str, Any], NDArray[np.bool_]]:
    n_rows = len(weight)
    if is_classifier(estimator):
        codes, classes = read_labels(y, n_rows)
        codes = np.where(usable, codes, -1).astype(np.int32)
        costs = None if estimator.cost_matrix is None else read_cost_matrix(estimator.cost_matrix, classes)
        priors = None if estimator.priors is None else read_priors(estimator.priors, classes)
        bits = estimator.criterion in ("entropy", "log_loss")
        class_method = ClassMethod(
            codes, len(classes), weight, prior=priors, loss=costs, bits=bits, transposed_loss=quirks
        )
        learned = {
            "classes_": classes,
            "n_classes_": len(classes),
            "cost_matrix_": costs,
            "priors_": priors,
        }
        return "class", class_method, learned, codes >= 0
    name = METHOD_OF[estimator.criterion]
    if name == "anova":
        values = read_numbers(y, n_rows, (1,))[:, 0]
        if np.nanmax(np.abs(values), initial=0.0) > _LARGEST:
            raise ValueError(
                f"y holds numbers beyond {_LARGEST:g}, whose squares are too large to be summed. Rescale y."
            )
        return name, AnovaMethod(values, weight), {}, ~np.isnan(values)
    if name == "poisson":
        events, time = _counts(y, exposure, n_rows)
    else:
        events, time = _survival(y, n_rows, weight, usable)
    has_response = ~np.isnan(events) & ~np.isnan(time)
    return (
        name,
        RateMethod(
            events,
            time,
            weight,
            shrink=float(estimator.rate_shrinkage),
            square_root_errors=estimator.scoring == "sqrt",
        ),
        {},
        has_response,
    )


def _counts(y: Any, exposure: Any, n_rows: int) -> tuple[Floats, Floats]:
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


def _survival(y: Any, n_rows: int, weight: Floats, usable: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    values = read_numbers(y, n_rows, (2, 3))
    values[~usable] = np.nan
    start, stop, event = read_survival(values)
    known = ~np.isnan(values).any(axis=1)
    time = np.full(n_rows, np.nan)
    time[known] = hazard_exposure(start[known], stop[known], event[known], weight[known])
    return event, time


def _folds(estimator: Any, n_rows: int, random: np.random.RandomState) -> NDArray[Any] | None:
    cv = estimator.cv
    if estimator.get_params(deep=False).get("prune") != "cv" or cv is None:
        return None
    if np.ndim(cv) == 0:
        if int(cv) < 2:
            return None
        return random.permutation(np.arange(n_rows) % int(cv))
    folds = given_array(cv, "xval")
    if folds.shape != (n_rows,):
        raise ValueError(f"xval has {folds.size} fold numbers and X has {n_rows} rows. Pass one per row.")
    if folds.dtype.kind == "f" and np.isnan(folds).any():
        raise ValueError(f"xval has no fold for row {int(np.argmax(np.isnan(folds)))}. Give every row one.")
    return folds


def _impurity(estimator: Any) -> Any:
    def by_class(summaries: NodeSummaries) -> Floats:
        p = summaries.value
        if estimator.criterion == "gini":
            return np.asarray((p * (1 - p)).sum(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(p > 0, p * log2(p), 0.0).sum(axis=1))

    def by_risk(summaries: NodeSummaries) -> Floats:
        half = 1.0 if estimator.criterion == "squared_error" else 0.5
        return np.maximum(half * summaries.risk / summaries.mass, 0.0)

    return by_class if is_classifier(estimator) else by_risk


def complexity_table(record: RpartRecord) -> ComplexityTable:
    """Return the table of complexities as every pruned tree has it."""
    table = record.cp_table
    judged = table[:, 3:] if table.shape[1] > 3 else np.full((len(table), 2), np.nan)
    return ComplexityTable(
        alpha=table[:, 0] * record.root_risk / float(record.tree.weighted_n_node_samples[0]),
        cp=table[:, 0],
        n_splits=table[:, 1].astype(np.intp),
        n_leaves=table[:, 1].astype(np.intp) + 1,
        relative_error=table[:, 2],
        cv_error=judged[:, 0],
        cv_se=judged[:, 1],
        chosen=None,
        scoring=None,
        rule=None,
    )
