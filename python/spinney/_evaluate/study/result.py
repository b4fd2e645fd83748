"""The result of `study`, and its report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spinney._evaluate.report import write_report
from spinney._evaluate.study.findings import Findings


@dataclass(eq=False, repr=False)
class Study(Findings):
    """A table, models of it, and how good they are; made by `study`.

    Attributes
    ----------
    task : {"binary", "multiclass", "regression"}
        What is predicted.
    metric : str
        The scikit-learn scorer that decides; others that are told beside it are in `metrics`.
    target : str
        Name of the column that is predicted.
    classes : ndarray or None
        Labels; None in a regression.
    columns : list of ColumnProfile
        What each column holds, and whether it is used.
    notes : list of str
        What was done and why.
    X_train, X_test : table
        Rows to learn from, and those by which models were judged in the end; columns after preparing.
    y_train, y_test : ndarray
        Their targets.
    folds : list of (ndarray, ndarray)
        Rows of `X_train` learned from and held out, of all repeats.
    leaderboard : list of Entry
        The models, best first.
    models : dict of str to estimator
        The models, fitted to `X_train`.
    out_of_fold : dict of str to ndarray
        What each model says of the rows of `X_train` when they are held out: class probabilities, (n_rows, n_classes),
        or values, (n_rows,); NaN for rows that were never held out.
    test_predictions : dict of str to ndarray
        The same of `X_test`.
    best : str
        The best model of spinney by cross-validation.
    model : estimator
        The best, fitted to all rows, calibrated: ready to predict.
    calibration : str
        What was done to its probabilities.
    tree : DecisionTreeClassifier or DecisionTreeRegressor
        A pruned tree, fitted to `X_train`.
    n_rows : int
        Rows with a target in the table.
    seconds : float
        Time it took.
    versions : dict of str to str
        Of the libraries.
    options : dict of str to value
        What `study` was given beside table and target, where it is not the default.
    source : str
        The file, or "" for a table in memory.
    command : str
        The command line, or "" where there was none.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> found = spinney.study(X, y, models=["tree", "linear"], repeats=1)
    >>> found["baseline"].mean < found[found.best].mean
    True
    >>> [column.name for column in found.columns if not column.is_used]
    []
    """

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report: one HTML file that needs nothing else.

        Parameters
        ----------
        path : str or path, optional
            Where to write. None: ``study.html`` in the current folder.

        Returns
        -------
        Path
            The file.
        """
        return write_report(self, "study.html" if path is None else path)
