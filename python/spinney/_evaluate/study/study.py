"""``study``: from a table and a target to a compared family of models."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import fields
from numbers import Real
from pathlib import Path

import numpy as np
from sklearn.utils import check_random_state

from spinney._data.file_readers import MOST_BYTES, ReadTable, read_file
from spinney._data.types import ColumnLike, TableLike
from spinney._evaluate.folds import LARGEST_SEED
from spinney._evaluate.problem import Models
from spinney._evaluate.runner import ProgressCall
from spinney._evaluate.scoring import Scoring
from spinney._evaluate.study.finish import Finish
from spinney._evaluate.study.prepare import StudyOptions, prepare
from spinney._evaluate.study.result import Study
from spinney._evaluate.study.session import Session

_DEFAULTS = {field.name: field.default for field in fields(StudyOptions)}


def study(
    table: TableLike,
    target: str | ColumnLike,
    *,
    group: str | None = None,
    time: str | None = None,
    metric: Scoring = None,
    task: str = "auto",
    minutes: float = 2.0,
    peers: bool = False,
    models: Models | None = None,
    folds: int = 5,
    repeats: int | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    random_state: int | np.random.RandomState | None = 0,
    progress: bool | ProgressCall = False,
) -> Study:
    """Study a table: fit a family of models to it, compare them honestly, and keep the best.

    A fifth of the rows is locked away. On the others a pruned tree, boosting, a forest, extra-trees, a linear model,
    AdaBoost, neighbours, a support vector machine (the last four where they are not too much work; as time allows also
    boosting with symmetric trees and, for values that are never negative, boosting of the logarithm of the mean) and a
    stack of them are compared by cross-validation on the same folds. All are then judged on the rows that were locked
    away, and the best by cross-validation is fitted to all rows. `notes` say what was done and why.

    Columns that name rows, hold one value, or tell the target nearly alone are left out; dates are taken apart; equal
    rows stay together. How much is done follows from the size of the table and from `minutes` by counting, so that the
    same call gives the same bits, unless time runs out: then `notes` say what was cut. Of a table that is too wide for
    the time, the most telling columns are studied, chosen by rows that judge nothing. Ctrl-C keeps what is done.

    Parameters
    ----------
    table : frame, dict of columns, array, str or Path
        Rows: a pandas, polars or pyarrow table, a dict of arrays, an array, or a CSV, Parquet, Arrow or Excel file (of
        one that is larger than 256 MB rows are drawn at random).
    target : str or array-like of shape (n_samples,)
        Name of the column to predict, or its values.
    group : str, optional
        Column: rows with the same value stay together, all learned from or all judged by.
    time : str, optional
        Column: rows to judge by come later than those learned from.
    metric : str or list of str, optional
        Scikit-learn scorers; the first decides. None: log loss and accuracy (and the area under the ROC curve for two
        classes), or the root of the mean squared error and R².
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": strings, booleans and categories make a classification, and so do numbers that are whole (1.0 too) and
        have at most ten different values, each of which occurs twice on average. `compare`, ``spinney fit`` and
        ``spinney bench`` go by the same rule.
    minutes : float, default=2.0
        Time that the study may take.
    peers : bool, default=False
        Whether to compare with scikit-learn, LightGBM, XGBoost and CatBoost with their defaults, where installed.
    models : list, optional
        Words of ``spinney fit --model``, or pairs of a name and an estimator of spinney. None: the usual ones.
    folds : int, default=5
        Folds of the cross-validation.
    repeats : int, optional
        How often folds are drawn anew. None: up to three times, as time allows.
    keep, drop : sequence of str, optional
        Columns to learn from, or not, whatever they look like.
    random_state : int, RandomState or None, default=0
        Seed of the parts, folds and models.
    progress : bool or callable, default=False
        True: tell what is done on standard error. A function is called with the number of fits done, the number there
        will be, what is being done, and the seconds left.

    Returns
    -------
    Study
        Prints as a leader board; has `leaderboard`, `best`, `model`, `notes`, `report`, `save`.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> found = spinney.study(X, y, models=["tree", "linear"], repeats=1)
    >>> found.task, len(found.leaderboard)
    ('multiclass', 4)
    >>> found.model.predict(X)[:2].tolist()
    ['Adelie', 'Adelie']
    """
    start, source, read = clock.monotonic(), "", list[str]()
    given = {name: value for name, value in locals().items() if name in _DEFAULTS and _differs(value, _DEFAULTS[name])}
    if not isinstance(minutes, Real) or not 0 < minutes < math.inf:
        raise ValueError(f"minutes must be a number above 0, such as 2 or 0.5. Got {minutes!r}.")
    if folds < 2:
        raise ValueError(f"folds must be at least 2, so that some rows are learned from. Got {folds!r}.")
    random, columns = check_random_state(random_state), {"keep": _names(keep, "keep"), "drop": _names(drop, "drop")}
    options = StudyOptions(**given | columns)
    seed = int(random.randint(LARGEST_SEED))
    if isinstance(table, (str, Path)):
        source = str(table)
        table = read_file(Path(table), most_bytes=MOST_BYTES, seed=seed)
    if isinstance(table, ReadTable):  # its reading counts
        start, table, read = table.since, table.frame, table.notes
    data = prepare(table, target, options, seed)
    data.notes[:0] = read
    session = Session(data, options, random, start, progress)
    with session.progress:
        result = Finish(session, *session.tried()).study()
    result.source, result.options = source, given
    return result


def _differs(value: object, default: object) -> bool:
    return type(value) is not type(default) or bool(value != default)


def _names(given: Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not all(isinstance(name, str) for name in given):
        raise TypeError(f"{what} must be names of columns. Got {given!r}.")
    return tuple(given)
