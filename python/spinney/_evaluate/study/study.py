"""``study``: fit and compare several models on a table."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from spinney._data.csv_format import CsvFormat
from spinney._data.file_readers import MAX_BYTES, ReadTable, read_file
from spinney._data.types import ColumnLike, TableLike
from spinney._estimator.other_libraries import explain_unknown_arguments
from spinney._evaluate.folds import LARGEST_SEED
from spinney._evaluate.problem import Models
from spinney._evaluate.progress import EvaluationProgress
from spinney._evaluate.runner import Budget, ProgressCall
from spinney._evaluate.scoring import Scoring
from spinney._evaluate.study.final_fits import FinalFits
from spinney._evaluate.study.prepare import BEST, SIMPLEST, Preference, StudyOptions, prepare
from spinney._evaluate.study.result import Study
from spinney._evaluate.study.rows import RowNames
from spinney._evaluate.study.session import Session

_DEFAULTS = {field.name: field.default for field in fields(StudyOptions)}


@explain_unknown_arguments
def study(
    table: TableLike,
    target: str | ColumnLike,
    *,
    groups: str | None = None,
    time: str | None = None,
    id: str | None = None,
    scoring: Scoring = None,
    positive: object = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    minutes: float = 2.0,
    peers: bool = False,
    models: Models | None = None,
    cv: int | BaseCrossValidator = 5,
    repeats: int | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    prefer: Preference = "simplest",
    random_state: int | np.random.RandomState | None = 0,
    progress: bool | ProgressCall | None = None,
) -> Study:
    """Fit several models to a table, compare them by cross-validation, and keep the best, or a simpler one.

    A fifth of the rows is held out as a test set. On the other rows, as time allows, several models are compared by
    cross-validation on the same folds: boosting, a pruned tree, a forest, extra-trees, a linear model, AdaBoost, k-NN,
    an SVM, boosting with symmetric trees (and, for a nonnegative target, with a log link), and a stack of them. All are
    then evaluated on the test set. The simplest model within one standard error of the best score is kept and
    fitted to all rows. `notes` lists the decisions and their reasons.

    Identifiers, constant columns and columns that leak the target are excluded; date parts are derived; duplicate rows
    stay in the same fold. The models' settings follow from the size of the table and from `minutes`, so that results
    are reproducible unless time runs short; `notes` then reports which models were left out or fitted to fewer rows. If
    a table is too wide for the time limit, only the most predictive columns are used; they are chosen on rows that are
    used for nothing else. Ctrl-C ends the study with the models fitted so far.

    Parameters
    ----------
    table : frame, dict of columns, array, str or Path
        A pandas, polars or pyarrow table, a dict of arrays, an array, or a CSV, Parquet, Arrow or Excel file (a file
        larger than 256 MB is sampled at random).
    target : str or array-like of shape (n_samples,)
        Name of the column to predict, or its values.
    groups : str, optional
        Column of group labels: rows of one group stay in the same fold.
    time : str, optional
        Column of times: held-out rows are later than training rows.
    id : str, optional
        Column that identifies rows in the report; models do not use it. None: the row number, from 1, for a file; the
        index for a pandas frame; the position, from 0, for other tables.
    scoring : str, callable, list or dict of these, optional
        Metrics; the first ranks the models. Names are those of scikit-learn's scorers, with or without ``neg_``, or
        short names: "auc", "f1", "brier", "mcc", "lift", "rmse", "mae", "mape", "quantile_loss_0.9". None: log loss and
        accuracy (and ROC AUC for two classes), or root mean squared error and R².
    positive : label, optional
        The class to which f1, precision, recall, average precision and lift refer. None: class 1 if the classes are 0
        (or -1) and 1, else the rarer of two classes; with more classes, the metric is averaged over all of them.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": classification for strings, booleans and categories, and for whole numbers with at most ten distinct
        values and, on average, at least two rows per value; else regression. `compare`, ``spinney fit`` and
        ``spinney bench`` use the same rule.
    minutes : float, default=2.0
        Time limit.
    peers : bool, default=False
        Whether to include models of scikit-learn, LightGBM, XGBoost and CatBoost with default settings, if installed.
    models : list, optional
        Model names of ``spinney study --model``, or pairs of a name and an estimator of spinney. None: chosen by table
        size and time limit.
    cv : int or splitter, default=5
        Number of cross-validation folds, or a splitter of scikit-learn.
    repeats : int, optional
        Repeats of the cross-validation with new folds. None: up to three, as time allows.
    keep, drop : sequence of str, optional
        Columns to include or to exclude, regardless of the checks above.
    prefer : {"simplest", "best"}, default="simplest"
        The model to keep: the simplest within one standard error of the best score, or the one with the best score. A
        single tree and a linear model are the simplest, then come other single models, then the stack.
    random_state : int, RandomState or None, default=0
        Seed of the test set, folds and models.
    progress : bool, callable or None, default=None
        True: report progress on standard error. None: in a terminal or notebook, after two seconds. A function is
        called with the number of finished fits, the total number, the current step, and the seconds left.

    Returns
    -------
    Study
        Prints as a leaderboard; has `leaderboard`, `best`, `model`, `single_model`, `notes`, `report`, `save`.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> study = spinney.study(X, y, models=["tree", "linear"], repeats=1)
    >>> study.task, sorted(entry.name for entry in study.leaderboard)
    ('multiclass', ['baseline', 'linear', 'stack', 'tree'])
    >>> study.model.predict(X)[:2].tolist()
    ['Adelie', 'Adelie']
    """
    start, source, read = clock.monotonic(), "", list[str]()
    chosen = {name: value for name, value in locals().items() if name in _DEFAULTS and _differs(value, _DEFAULTS[name])}
    if not isinstance(minutes, Real) or not 0 < minutes < math.inf:
        raise ValueError(f"minutes must be a number above 0, such as 2 or 0.5. Got {minutes!r}.")
    if not hasattr(cv, "split") and (not isinstance(cv, Integral) or isinstance(cv, bool) or cv < 2):
        raise ValueError(f"cv must be a number of folds of at least 2, or a splitter of scikit-learn. Got {cv!r}.")
    if repeats is not None and (not isinstance(repeats, Integral) or repeats < 1):
        raise ValueError(f"repeats must be a number of at least 1, or None. Got {repeats!r}.")
    if prefer not in (SIMPLEST, BEST):
        raise ValueError(f"prefer must be 'simplest' or 'best'. Got {prefer!r}.")
    random, columns = check_random_state(random_state), {"keep": _names(keep, "keep"), "drop": _names(drop, "drop")}
    options = StudyOptions(**chosen | columns)
    seed = int(random.randint(LARGEST_SEED))
    if isinstance(table, ReadTable):  # the time to read it counts
        start = table.since
    with EvaluationProgress(progress, 1, Budget(60.0 * minutes, start)) as shown:
        if isinstance(table, (str, Path)):
            source = str(table)
            table = read_file(Path(table), max_bytes=MAX_BYTES, seed=seed)
        format_: CsvFormat | None = None
        row_names: RowNames | None = None
        if isinstance(table, ReadTable):
            row_names = RowNames.of_file(table)
            format_, table, read = table.format, table.frame, table.notes
        data = prepare(table, target, options, seed, row_names)
        data.notes[:0] = read
        session = Session(data, options, random, shown)
        result = FinalFits(session, *session.run_models()).study()
    result.source, result.options = source, chosen
    if format_ is not None:
        for model in (result.model, result.single_model, result.tree, *result.models.values()):
            _remember(model, format_)
    return result


def _remember(model: Any, format_: CsvFormat) -> None:
    """Let a model, and the members of a stack, read text as the file of the study was read."""
    model._csv_format = format_
    for one in getattr(model, "estimators_", [model]) if hasattr(model, "_weighted_mean") else [model]:
        if format_.dates and hasattr(one, "schema_"):
            one.schema_ = one.schema_.with_date_formats(format_.dates)


def _differs(value: object, default: object) -> bool:
    return type(value) is not type(default) or bool(value != default)


def _names(columns: Sequence[str], option: str) -> tuple[str, ...]:
    if isinstance(columns, str):
        return (columns,)
    if not all(isinstance(name, str) for name in columns):
        raise TypeError(f"{option} must be names of columns. Got {columns!r}.")
    return tuple(columns)
