"""Soft labels: a probability of each class as the target of a row.

A row with several possible classes is fitted as one copy per class, whose weight is multiplied by the probability of
the class. Copies stay together in samples and folds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney._data.arguments import argument_array, argument_numbers
from spinney._data.reproducible import log
from spinney._data.select import pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.fit_inputs import CopiedRows
from spinney._estimator.target import read_weights

_TOLERANCE = 1e-6  # of sums of probabilities
_LEAST = float(np.finfo(np.float64).eps)  # probability at which a logarithm is cut off, as in scikit-learn's log loss
_BY_ROW = ("offset", "time", "exposure")  # other arguments of fit with an entry for each row


class SoftLabels:
    """A target of classification that gives each row a probability of each class.

    Pass it as `y` to `fit` and `score` of trees, forests, gradient boosting and other classifiers with `sample_weight`,
    or as `y_val`. The fit equals that of a
    table with a copy of each row for each class of positive probability, whose weight is multiplied by the probability.
    Copies are drawn and held out together; ``min_samples_leaf`` and other numbers of rows count each of them.

    Parameters
    ----------
    proba : array-like or data frame of shape (n_samples, n_classes)
        Probabilities: at least 0, with a sum of 1 in each row.
    classes : array-like of shape (n_classes,), optional
        Labels of the columns. None: the column names of a data frame, else 0, 1, ….

    Attributes
    ----------
    proba : ndarray of shape (n_samples, n_classes)
        Probabilities, in the order of ``classes``.
    classes : ndarray of shape (n_classes,)
        Sorted labels: the ``classes_`` of the fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = spinney.SoftLabels([[1, 0], [0.8, 0.2], [0.3, 0.7], [0, 1]], classes=["no", "yes"])
    >>> spinney.DecisionTreeClassifier(max_depth=1).fit(X, y).predict_proba([[0.5]])
    array([[0.9, 0.1]])
    """

    def __init__(self, proba: Any, classes: ArrayLike | None = None) -> None:
        numbers = argument_numbers(argument_array(proba, "proba"), "proba")
        if numbers.ndim != 2 or numbers.shape[1] < 2:
            raise ValueError(f"proba needs a row per sample and a column per class, two at least. Got {numbers.shape}.")
        names = list(getattr(proba, "columns", range(numbers.shape[1]))) if classes is None else classes
        labels = np.asarray(names)
        if labels.dtype.kind in "US":
            labels = labels.astype(object)
        sorted_labels, order = np.unique(labels, return_index=True)
        if labels.shape != (numbers.shape[1],) or len(order) < len(labels):
            raise ValueError(f"classes needs a different label for each of the {numbers.shape[1]} columns of proba.")
        is_valid = (numbers >= 0).all(axis=1) & (np.abs(numbers.sum(axis=1) - 1) <= _TOLERANCE)
        if not is_valid.all():
            row = int(np.flatnonzero(~is_valid)[0])
            raise ValueError(
                f"proba needs probabilities of at least 0 with a sum of 1. Row {row} has {numbers[row].tolist()}."
            )
        absent = np.flatnonzero(~(numbers > 0).any(axis=0))
        if len(absent):
            raise ValueError(
                f"The class {labels[absent].tolist()[0]!r} has probability 0 in every row. Drop its column."
            )
        self.classes: NDArray[Any] = sorted_labels
        self.proba: Floats = np.ascontiguousarray((numbers / numbers.sum(axis=1, keepdims=True))[:, order])

    def __len__(self) -> int:
        return len(self.proba)

    def __repr__(self) -> str:
        return f"<SoftLabels: {len(self.proba)} rows, {len(self.classes)} classes>"

    def __getitem__(self, rows: Any) -> Self:
        """Return some rows."""
        found = object.__new__(type(self))
        found.classes, found.proba = self.classes, np.atleast_2d(self.proba[rows])
        return found

    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        raise TypeError(
            "SoftLabels are probabilities of classes. Pass them to fit or score of a tree, a forest or gradient "
            "boosting, or read their attribute proba."
        )

    def cross_entropy(self, proba: ArrayLike, sample_weight: ColumnLike = None) -> float:
        """Return the mean cross-entropy of predicted probabilities: the log loss that these labels expect.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions, such as those of ``predict_proba``, in the order of ``classes``.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Smaller is better; at least the mean entropy of the labels.
        """
        predicted = argument_numbers(argument_array(proba, "proba"), "proba")
        if predicted.shape != self.proba.shape:
            raise ValueError(f"proba has shape {predicted.shape}; it needs {self.proba.shape}.")
        by_row = -(self.proba * log(np.clip(predicted, _LEAST, 1.0))).sum(axis=1)
        return float(np.average(by_row, weights=read_weights(sample_weight, len(by_row))))

    def copied(
        self, X: TableLike, sample_weight: ColumnLike = None, suffix: str = ""
    ) -> tuple[Any, NDArray[Any], Floats, NDArray[np.intp]]:
        """Return copies of rows: the table, their labels, their weights, and the row that each is a copy of."""
        table = pick_table(X)
        if table.n_rows != len(self):
            raise ValueError(f"X{suffix} has {table.n_rows} rows, and y{suffix} has {len(self)}.")
        rows, columns = np.nonzero(self.proba)
        proba, weight = self.proba[rows, columns], read_weights(sample_weight, len(self))
        return table.take(rows), self.classes[columns], proba if weight is None else weight[rows] * proba, rows


def accepts_soft_labels(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `fit` or `score` that accepts `SoftLabels` in its targets."""
    signature = inspect.signature(method)
    if not {"X", "y", "sample_weight"} <= signature.parameters.keys() or hasattr(method, "_accepts_soft_labels"):
        return method

    @wraps(method)
    def with_copies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(_holds_soft_labels(value) for value in (*args, *kwargs.values())):
            return method(self, *args, **kwargs)
        if not self._is_class_target:
            raise TypeError(f"SoftLabels are for classifiers, and {type(self).__name__} is none.")
        bound = signature.bind(self, *args, **kwargs)
        rows = _copy_rows(bound.arguments)
        _copy_rows(bound.arguments, "_val")
        if rows is not None and "groups" in signature.parameters:
            _group_copies(bound.arguments, rows)
        found = method(*bound.args, **bound.kwargs)
        if rows is not None and method.__name__ == "fit" and "oob_decision_function_" in vars(self):
            self.oob_decision_function_ = self.oob_decision_function_[np.unique(rows, return_index=True)[1]]
        return found

    with_copies._accepts_soft_labels = True  # type: ignore[attr-defined]
    return with_copies


def _holds_soft_labels(value: object) -> bool:
    values = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(one, SoftLabels) for one in values)


def _copy_rows(arguments: dict[str, Any], suffix: str = "") -> NDArray[np.intp] | None:
    """Replace soft labels among the arguments by copies of rows; return the row of each copy, if there are any."""
    y = arguments.get(f"y{suffix}")
    if isinstance(y, dict):  # several validation sets by name
        keys = [name + suffix for name in ("X", "y", "sample_weight", "offset")]
        sets = {name: {key: None if arguments.get(key) is None else arguments[key][name] for key in keys} for name in y}
        for one in sets.values():
            _copy_rows(one, suffix)
        for key in keys:
            if any(one[key] is not None for one in sets.values()):
                arguments[key] = {name: one[key] for name, one in sets.items()}
    if not isinstance(y, SoftLabels):
        return None
    X, labels, weight, rows = y.copied(arguments[f"X{suffix}"], arguments.get(f"sample_weight{suffix}"), suffix)
    arguments |= {f"X{suffix}": X, f"y{suffix}": labels, f"sample_weight{suffix}": weight}
    for name in _BY_ROW:
        if (value := arguments.get(name + suffix)) is not None:
            arguments[name + suffix] = argument_array(value, name + suffix)[rows]
    return rows


def _group_copies(arguments: dict[str, Any], rows: NDArray[np.intp]) -> None:
    """Keep copies of a row together in samples and folds."""
    if arguments.get("groups") is not None:
        arguments["groups"] = argument_array(arguments["groups"], "groups")[rows]
    elif arguments.get("time") is None and (rows[1:] == rows[:-1]).any():
        arguments["groups"] = rows.view(CopiedRows)
