"""What is compared: models, rows, folds and metrics, as callers give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from spinney._data.arguments import given_array
from spinney._data.select import PickTable
from spinney._ensemble.combination.members import estimator_of_word, read_members
from spinney._estimator.folds import Fold, read_folds, read_row_groups, read_time
from spinney._estimator.single_target import read_one_class, read_one_value
from spinney._evaluate.compare.baseline import ConstantClassifier, ConstantRegressor

BASELINE = "baseline"
_MOST_INTEGER_CLASSES = 10
_METRICS = {"Classifier": ["accuracy", "neg_log_loss"], "Regressor": ["r2", "neg_root_mean_squared_error"]}


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from and to judge by.

    Attributes
    ----------
    table : PickTable
    target : ndarray of shape (n_rows,)
        Labels or values.
    codes : ndarray of shape (n_rows,), or None
        Codes of the classes.
    weight : ndarray of shape (n_rows,), or None
    groups, time : ndarray of shape (n_rows,), or None
        Which rows belong together, and their moments.
    """

    table: PickTable
    target: NDArray[Any]
    codes: NDArray[np.intp] | None
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None = None
    time: NDArray[Any] | None = None


def read_models(models: Any) -> list[tuple[str, Any]]:
    """Return names and what stands for the models: estimators or words."""
    if isinstance(models, str) or hasattr(models, "fit"):
        models = [models]
    return read_members(models, "models")


def task_of(models: list[tuple[str, Any]], y: Any, task: str) -> str:
    """Find out whether classes or values are predicted: by the models, else by y."""
    if task != "auto":
        return {"classification": "Classifier", "regression": "Regressor"}[task]
    for _, model in models:
        if not isinstance(model, str) and (is_classifier(model) or is_regressor(model)):
            return "Classifier" if is_classifier(model) else "Regressor"
    target = given_array(y, "y")
    if target.dtype.kind in "fc" or (target.dtype.kind == "O" and all(isinstance(v, float) for v in target.ravel())):
        return "Regressor"
    if target.dtype.kind in "iu" and len(np.unique(target)) > _MOST_INTEGER_CLASSES:
        return "Regressor"
    return "Classifier"


def estimators_of(models: list[tuple[str, Any]], task: str, baseline: bool) -> dict[str, Any]:
    """Return the models as estimators, and the baseline."""
    found = {name: estimator_of_word(one, task) if isinstance(one, str) else one for name, one in models}
    is_right = is_classifier if task == "Classifier" else is_regressor
    for name, estimator in found.items():
        if not is_right(estimator):
            raise ValueError(
                f"The model {name!r} is a {type(estimator).__name__}, which is no {task.lower()} as others are."
            )
    if baseline and BASELINE not in found:
        found[BASELINE] = ConstantClassifier() if task == "Classifier" else ConstantRegressor()
    return found


def read_problem(table: PickTable, y: Any, weight: Any, task: str, groups: Any = None, time: Any = None) -> Problem:
    """Check the target, and what stands beside it."""
    groups = None if groups is None else read_row_groups(groups, table.n_rows)
    time = None if time is None else read_time(time, table.n_rows)
    if task == "Regressor":
        return Problem(table, read_one_value(y, table.n_rows, "a comparison"), None, weight, groups, time)
    codes, classes = read_one_class(y, table.n_rows, "a comparison")
    places = codes.astype(np.intp)
    return Problem(table, classes[places], places, weight, groups, time)


def make_folds(problem: Problem, cv: Any, repeats: int, random: np.random.RandomState) -> tuple[list[Fold], int]:
    """Return the folds, and how many of them are those of the first repeat."""
    n_rows, groups, time = problem.table.n_rows, problem.groups, problem.time
    weight = np.ones(n_rows) if problem.weight is None else problem.weight
    strata = None if problem.codes is None else problem.codes[:, np.newaxis]
    if time is not None:
        if groups is not None or not _is_number(cv):
            raise ValueError(
                "time makes folds of its own: rows are held out that come after those learned from. Pass "
                "a number of folds as cv, and no groups."
            )
        order = np.argsort(time, kind="stable")
        splits = [(order[train], order[test]) for train, test in TimeSeriesSplit(int(cv)).split(order)]
        folds = read_folds(splits, strata, problem.target, weight, None, random)
        return folds, len(folds)
    if not _is_number(cv):
        folds = read_folds(cv, strata, problem.target, weight, groups, random)
        return folds, len(folds)
    found: list[Fold] = []
    for _ in range(repeats):
        splitter = cv
        if groups is not None:
            splitter = GroupKFold(int(cv), shuffle=True, random_state=int(random.randint(2**31 - 1)))
        found += read_folds(splitter, strata, problem.target, weight, groups, random)
    return found, len(found) // repeats


def _is_number(cv: Any) -> bool:
    return isinstance(cv, Integral) and not isinstance(cv, bool)


def read_metrics(scoring: Any, task: str) -> dict[str, Any]:
    """Return scorers by name; the first decides which model is best."""
    if scoring is None:
        scoring = _METRICS[task]
    if isinstance(scoring, str) or callable(scoring):
        scoring = [scoring]
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    else:
        named = {one if isinstance(one, str) else getattr(one, "__name__", "score"): one for one in scoring}
    if not named:
        raise ValueError("scoring names no metric. Pass at least one, such as 'accuracy'.")
    return {str(name): _scorer(one) if isinstance(one, str) else one for name, one in named.items()}


def _scorer(name: str) -> Any:
    """Return scikit-learn's scorer of a name."""
    try:
        return get_scorer(name)
    except ValueError:
        known = get_scorer_names()
        close = [other for other in known if name and name.lower() in other] or get_close_matches(name.lower(), known)
        meant = f"Did you mean {close[0]!r}?" if close else "Try 'accuracy', 'neg_log_loss', 'roc_auc' or 'r2'."
        raise ValueError(f"There is no metric {name!r}. {meant} They are named as scikit-learn's scorers.") from None
