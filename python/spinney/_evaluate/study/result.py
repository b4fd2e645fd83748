"""The result of `study`, and its report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from spinney._evaluate.report import write_report
from spinney._evaluate.study.findings import Findings


@dataclass(eq=False, repr=False)
class Study(Findings):
    """Models of a table and their evaluation; returned by `study`.

    Attributes
    ----------
    task : {"binary", "multiclass", "regression"}
        The prediction task.
    metric : str
        Name of the scorer that ranks the models, such as "neg_log_loss"; `metrics` lists all.
    target : str
        Name of the target column.
    classes : ndarray or None
        Labels; None in a regression.
    columns : list of ColumnProfile
        Profile of each column, including whether it is used.
    notes : list of str
        What was done and why.
    X_train, X_test : table
        Training and test set, with the columns that are used.
    y_train, y_test : ndarray
        Target of the training and of the test set.
    train_rows, test_rows : RowNames
        Rows of the whole table that are in `X_train` and `X_test`: `values` holds their row numbers in the file, labels
        of the index, values of the column `id`, or positions; `note` states which.
    folds : list of (ndarray, ndarray)
        Training and held-out rows of `X_train`, of all repeats.
    leaderboard : list of Entry
        The models, best first: `name`, `mean` and standard `error` (of the first metric), `scores` in each fold,
        `difference` to the best model, `test` scores.
    models : dict of str to estimator
        The models, fitted to `X_train`.
    out_of_fold : dict of str to ndarray
        Out-of-fold predictions of `X_train` by each model: class probabilities, (n_rows, n_classes), or numbers,
        (n_rows,); NaN for rows that were never held out.
    test_predictions : dict of str to ndarray
        Predictions of `X_test` by each model.
    best : str
        Name of the model that is kept: the simplest within one standard error of the best, unless ``prefer="best"``.
    why : str
        Why `best` is kept.
    model : estimator
        The model that is kept, fitted to all rows and calibrated.
    single, single_model : str, estimator
        If a stack is kept: the name of its best member, and that member, fitted to all rows and calibrated.
        Otherwise `best` and `model`.
    calibration : str
        How the probabilities of `model` were calibrated.
    tree : DecisionTreeClassifier or DecisionTreeRegressor
        A pruned tree, fitted to `X_train`.
    tree_seconds : float
        Seconds to fit `tree`.
    n_rows : int
        Rows with a target in the table.
    seconds : float
        Seconds that the study took.
    n_repeats : int
        Repeats of the folds.
    versions : dict of str to str
        Versions of the libraries.
    options : dict of str to value
        Arguments of `study` that differ from the defaults, except table and target.
    source : str
        The file, or "" for a table in memory.
    command : str
        The command line that started the study, or "".
    is_interrupted : bool
        Whether Ctrl-C ended the study early.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> study = spinney.study(X, y, models=["tree", "linear"], repeats=1)
    >>> study["baseline"].mean < study[study.best].mean
    True
    >>> [column.name for column in study.columns if not column.is_used]
    []
    """

    def report(self, path: str | Path | None = None, *, seconds: float | None = None) -> Path:
        """Write the report as one self-contained HTML file.

        Parameters
        ----------
        path : str or path, optional
            Output file. None: ``study.html`` in the current folder.
        seconds : float, optional
            Time limit: sections for which there is no time are left out, and listed at the end. None: no limit.

        Returns
        -------
        Path
            The output file.
        """
        return write_report(self, "study.html" if path is None else path, math.inf if seconds is None else seconds)
