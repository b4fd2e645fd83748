"""The choice of the learning rate of an ensemble by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state

from spinney._data.arguments import argument_array
from spinney._data.reproducible import sample_deviation
from spinney._data.select import PickTable, pick_table
from spinney._data.types import ColumnLike
from spinney._estimator.fit_inputs import ROW_FIELDS, RowInputs
from spinney._estimator.held_out import read_folds
from spinney._estimator.target import read_weights

RATES = (1.0, 0.3, 0.1, 0.03, 0.01)  # of equally good rates the first is chosen
N_FOLDS = 5
SEARCHED = "cv"
ATTRIBUTES = ("learning_rate_", "cv_results_")

# fits an ensemble to the first rows, with the second as its validation set
FitFold = Callable[[Any, RowInputs, RowInputs], object]


def is_searched(rate: object) -> bool:
    """Return whether the learning rate is to be chosen by cross-validation."""
    return isinstance(rate, str) and rate == SEARCHED


def chosen_rate(model: Any) -> float:
    """Return the learning rate of a model: the parameter, or the one chosen for it."""
    return float(model.learning_rate_ if is_searched(model.learning_rate) else model.learning_rate)


def search_rate(model: Any, inputs: RowInputs, fit: FitFold) -> dict[str, Any]:
    """Find the learning rate with the lowest error on held-out rows, after the last round that a fit retains.

    Parameters
    ----------
    model : estimator
        Has ``learning_rate="cv"``; after a fit with a validation set it has `validation_score_` and `n_iter_`.
    inputs : RowInputs
        Training rows.
    fit : FitFold

    Returns
    -------
    dict
        The fitted attributes `learning_rate_` and `cv_results_`.
    """
    if inputs.time is not None:
        raise ValueError(
            "learning_rate='cv' divides the rows into random folds, which time does not allow. Set a learning rate, or "
            "leave time out."
        )
    table = pick_table(inputs.X)
    weight = read_weights(inputs.sample_weight, table.n_rows)
    weight = np.ones(table.n_rows) if weight is None else weight
    random = check_random_state(model.random_state)
    folds = read_folds(N_FOLDS, _strata(model, inputs.y), np.zeros(table.n_rows), weight, inputs.groups, random)
    changes = {"random_state": int(random.randint(np.iinfo(np.int32).max)), "verbose": 0, "callbacks": None}
    changes = {name: value for name, value in changes.items() if name in model.get_params(deep=False)}
    errors = np.empty((len(RATES), len(folds)))
    for f, fold in enumerate(folds):
        training, held_out = _take(inputs, table, fold.train), _take(inputs, table, fold.held_out)
        for r, rate in enumerate(RATES):
            member: Any = clone(model).set_params(learning_rate=rate, **changes)
            fit(member, training, held_out)
            errors[r, f] = member.validation_score_[member.n_iter_ - 1]
    total = np.array([weight[fold.held_out].sum() for fold in folds])
    mean = (errors * total).sum(axis=1) / total.sum()
    spread = sample_deviation(errors) / np.sqrt(len(folds))
    results = {"learning_rate": np.array(RATES), "error": mean, "error_se": spread, "fold_errors": errors}
    return {"learning_rate_": float(RATES[int(np.argmin(mean))]), "cv_results_": results}


def _strata(model: BaseEstimator, y: ColumnLike) -> NDArray[Any] | None:
    """Return the class codes, (n_rows, n_outputs); None in a regression."""
    if not is_classifier(model):
        return None
    labels = argument_array(y, "y")
    columns = labels.reshape(len(labels), -1).T
    return np.column_stack([np.unique(column, return_inverse=True)[1] for column in columns])


def _take(inputs: RowInputs, table: PickTable, rows: NDArray[np.intp]) -> RowInputs:
    """Return some of the rows."""
    given = {name: getattr(inputs, name) for name in ROW_FIELDS}
    chosen = {name: None if values is None else _safe_indexing(values, rows) for name, values in given.items()}
    return replace(inputs, X=table.take(rows), **chosen)


def adopt(model: BaseEstimator, fitted: BaseEstimator, found: dict[str, Any]) -> None:
    """Give an estimator the fitted attributes of a clone, and others; its parameters stay."""
    parameters, state = model.get_params(deep=False), vars(model)
    for name in state.keys() - parameters.keys():
        del state[name]
    state.update({name: value for name, value in vars(fitted).items() if name not in parameters} | found)
