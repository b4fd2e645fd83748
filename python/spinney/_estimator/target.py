"""Reading and checking of targets and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from spinney._data.arguments import argument_array, argument_numbers, masked_array
from spinney._data.cells import is_missing
from spinney._data.display import warn
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.fit_inputs import check_together, groups_of_caller

_BLOCK = 2**16  # rows that are processed at a time, in cache
_WIDEST = 1e300  # range of a target whose sums over any rows stay finite


@dataclass(frozen=True)
class ClassTarget:
    """Class labels as codes."""

    codes: NDArray[np.int32]  # n_rows x n_outputs
    classes: list[NDArray[Any]]  # sorted labels, one array per output

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.classes)


def _as_array(y: ColumnLike, n_rows: int, name: str = "y") -> NDArray[Any]:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    array = argument_array(y, name)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array}\n")
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} should be a 1d array, or 2d for several outputs, got an array of shape {array.shape} instead."
        )
    check_length(array.shape[0], n_rows, name)
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"{name} has no columns. Pass one value per row of X.")
    return array


def _refuse_missing(y: NDArray[Any], name: str = "y") -> None:
    if y.dtype.kind == "f":
        missing = np.isnan(y)
    elif y.dtype.kind in "mM":
        missing = np.isnat(y)
    elif y.dtype.kind == "O":
        try:
            suspects = {v for v in set(y.ravel().tolist()) if is_missing(v)}
        except TypeError as error:
            raise TypeError(
                f"{name} holds values that are not labels, such as lists. Pass one label per row."
            ) from error
        if not suspects:
            return
        missing = np.array([is_missing(v) for v in y.ravel()], dtype=bool).reshape(y.shape)
    else:
        return
    if y.dtype.kind == "f" and np.isinf(y).any():
        row = int(np.flatnonzero(np.isinf(y).reshape(len(y), -1).any(axis=1))[0])
        raise ValueError(f"{name} contains infinity, first in row {row}. Drop or cap such rows before fitting.")
    if missing.any():
        first = int(np.flatnonzero(missing.reshape(len(y), -1).any(axis=1))[0])
        is_partial = missing.ndim == 2 and not missing.all(axis=1)[missing.any(axis=1)].all()
        others = ", or fit one model per output on the rows where it is known" if is_partial else ""
        raise ValueError(
            f"{name} contains NaN: {int(missing.sum())} missing value(s), the first in row {first}. "
            f"Drop these rows before fitting{others}."
        )


def _count_labels(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """`np.unique` of integers that lie close together, without sorting; None if they do not."""
    if column.dtype.kind not in "iu" or not column.size:
        return None
    low, high = int(column.min()), int(column.max())
    if high - low > 1000 or not -(2**62) < low <= high < 2**62:
        return None
    blocks = [slice(begin, begin + _BLOCK) for begin in range(0, len(column), _BLOCK)]  # numbers of eight bytes each
    counts = np.zeros(high - low + 1, dtype=np.int64)
    for block in blocks:
        counts += np.bincount(column[block].astype(np.int64) - low, minlength=len(counts))
    labels = np.flatnonzero(counts)
    code_of = np.zeros(len(counts), dtype=np.int32)
    code_of[labels] = np.arange(len(labels))
    codes = np.empty(len(column), dtype=np.int32)
    for block in blocks:
        codes[block] = code_of[column[block].astype(np.int64) - low]
    return (labels + low).astype(column.dtype), codes


def _factorise(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sorted labels and codes of one output; `np.unique`, but fast for Python objects such as strings."""
    if column.dtype.kind != "O":
        if column.dtype.kind == "f" and (column != np.floor(column)).any():
            check_classification_targets(column)  # refuses it
        return _count_labels(column) or np.unique(column, return_inverse=True)
    values = column.tolist()
    distinct = list(dict.fromkeys(values))
    if not all(isinstance(v, str) for v in distinct):
        plain = np.array(distinct)
        if plain.dtype.kind not in "biuf" or any(isinstance(v, str) for v in distinct):
            kinds = ", ".join(sorted({type(v).__name__ for v in distinct}))
            raise TypeError(
                f"y mixes labels that cannot be ordered, or that are not labels: {kinds}. Use labels of one type."
            )
        if len(set(plain.tolist())) < len(distinct):
            raise TypeError("y mixes integers and floating-point numbers that cannot be distinguished. Use one type.")
        return _factorise(column.astype(plain.dtype))
    code_of = {label: code for code, label in enumerate(sorted(distinct))}
    return np.array(sorted(distinct), dtype=object), np.array([code_of[v] for v in values])


def read_classes(y: ColumnLike, n_rows: int) -> ClassTarget:
    """Return the labels of y as codes per output."""
    array = _as_array(y, n_rows)
    _refuse_missing(array)
    columns = array.reshape(n_rows, -1)
    codes = np.empty(columns.shape, dtype=np.int32)
    classes = []
    for k in range(columns.shape[1]):
        labels, codes[:, k] = _factorise(columns[:, k])
        classes.append(labels)
    return ClassTarget(codes, classes)


def encode_labels(y: ColumnLike, classes: list[NDArray[Any]], n_rows: int, name: str = "y") -> NDArray[np.int32]:
    """Return the codes of known labels; -1 for other labels. `name` is the name of the argument."""
    array = _as_array(y, n_rows, name)
    _refuse_missing(array, name)
    columns = array.reshape(n_rows, -1)
    if columns.shape[1] != len(classes):
        raise ValueError(f"{name} has {columns.shape[1]} outputs here and {len(classes)} in the training data.")
    codes = np.empty(columns.shape, dtype=np.int32)
    for k, labels in enumerate(classes):
        codes[:, k] = _codes_of(columns[:, k], labels)
        if (codes[:, k] < 0).all():
            known = "is a class of the model" if name == "y" else "occurs in y"
            raise ValueError(
                f"None of the labels in {name} {known}: {columns[0, k]!r} is not among {labels[:5].tolist()}. "
                "Pass labels of the same type."
            )
    return codes


def _codes_of(column: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the positions of labels among sorted ones; -1 for unknown labels."""
    if all(array.dtype.kind in "biuf" for array in (column, labels)) and (labels[:-1] < labels[1:]).all():
        at = np.minimum(np.searchsorted(labels, column), len(labels) - 1)
        return np.where(labels[at] == column, at, -1)
    code_of = {label: code for code, label in enumerate(labels.tolist())}
    return np.array([code_of.get(label, -1) for label in column.tolist()])


def read_values(y: Any, n_rows: int, name: str = "y") -> NDArray[np.float64]:
    """Return regression targets, n_rows x n_outputs, float64 and C-contiguous; `name` is the name of the argument."""
    array = _as_array(y, n_rows, name)
    _refuse_missing(array, name)
    values = argument_numbers(array, name, "Convert them to numbers, or predict labels with a classifier")
    if values is not array:
        _refuse_missing(values, name)  # text may be "nan"
    if values.max(initial=0.0) / 2 - values.min(initial=0.0) / 2 > _WIDEST / 2:
        raise ValueError(f"The range of {name} is too wide for sums of its numbers. Rescale {name}.")
    return np.ascontiguousarray(values.reshape(n_rows, -1))


def warn_if_coarse(y: NDArray[np.float64]) -> None:
    """Warn if outliers of y are so large that most other values are equal in the engine's fixed-point numbers.

    Their unit is about the range of y times the number of rows, divided by 2**61; most values should differ by many.
    """
    for k in range(y.shape[1]):
        low, high = float(y[:, k].min()), float(y[:, k].max())
        unit = (high / 2 - low / 2) * (len(y) / 2.0**60)
        if unit == 0 or len(y) < 4 or _is_spread(y[:, k], 2.0**11 * unit):
            continue
        first, third = np.partition(y[:, k], [len(y) // 4, 3 * len(y) // 4])[[len(y) // 4, 3 * len(y) // 4]]
        if 0 < third / 2 - first / 2 < 2.0**11 * unit:
            warn(
                f"y reaches from {low:g} to {high:g}, while half of its values lie within {third - first:g}. "
                "Splits among them may be arbitrary: drop the outliers, or fit a transform such as log(y)."
            )


def _is_spread(values: NDArray[np.float64], least: float) -> bool:
    """Return whether half the interquartile range is surely at least `least`, by counting at quantiles of a sample."""
    n, sample = len(values), np.sort(values[:: max(1, len(values) // 1024)])
    low, high = float(sample[len(sample) * 3 // 8]), float(sample[len(sample) * 5 // 8])
    n_low, n_below = int(np.count_nonzero(values <= low)), int(np.count_nonzero(values < high))
    return high / 2 - low / 2 >= least and n_low > n // 4 and n_below <= 3 * n // 4


def read_weights(sample_weight: ColumnLike, n_rows: int) -> NDArray[np.float64] | None:
    """Return checked weights, or None if all are 1."""
    if sample_weight is None:
        return None
    weight = argument_numbers(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got an array of shape {weight.shape}.")
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n_rows},)! Pass one weight per row of X.")
    if not np.isfinite(weight).all():
        raise ValueError("Input sample_weight contains NaN or infinity. Weights must be finite numbers of at least 0.")
    if (weight < 0).any():
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: row {int(np.argmax(weight < 0))} has "
            f"{weight.min()}. Weights must be at least 0; a weight of 0 leaves the row out."
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            raise ValueError("The sum of sample_weight is too large for a floating-point number. Rescale the weights.")
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number: all of them are 0.")
    return np.ascontiguousarray(weight)


def read_numbers(y: ColumnLike, n_rows: int, n_columns: tuple[int, ...], called: str = "y") -> NDArray[np.float64]:
    """Return y as floats, (n_rows, k), with one of the allowed numbers of columns; NaN where missing."""
    masked = masked_array(y)
    array = argument_array(y if masked is None else np.ma.getdata(masked), called)
    if array.dtype.names is not None:  # such as survival times
        array = np.column_stack([argument_numbers(array[name], f"{called}[{name!r}]") for name in array.dtype.names])
    values = argument_numbers(array, called)
    if masked is not None:
        values = np.where(np.ma.getmaskarray(masked), np.nan, values)
    values = values.reshape(len(values) if values.ndim else 1, -1)
    check_length(len(values), n_rows, called)
    if values.shape[1] not in n_columns:
        wanted = " or ".join(str(n) for n in n_columns)
        raise ValueError(f"{called} has {values.shape[1]} columns; this method needs {wanted}.")
    if np.isinf(values).any():
        raise ValueError(f"{called} contains infinity. Drop or cap such rows before fitting.")
    return np.ascontiguousarray(values)


def check_length(n_values: int, n_rows: int, name: str = "y") -> None:
    """Refuse a target with another number of rows than X."""
    if n_values != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, n_values]}. "
            f"X and {name} must have one row each per observation."
        )


@dataclass(frozen=True)
class SingleTarget:
    """A target of one output: numbers or classes.

    Attributes
    ----------
    values : ndarray of shape (n_rows,)
        Numbers, or class codes.
    classes : ndarray of shape (n_classes,) or None
        Labels.
    """

    values: Floats
    classes: NDArray[Any] | None = None

    @classmethod
    def read(cls, y: ColumnLike, n_rows: int, method: str, is_class_target: bool) -> Self:
        """Read the target of a fit; `method` names the method that supports only one output."""
        return cls(*read_one_class(y, n_rows, method)) if is_class_target else cls(read_one_value(y, n_rows, method))

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None: numbers."""
        return None if self.classes is None else len(self.classes)

    @property
    def labels(self) -> NDArray[Any]:
        """Labels of the classes of a class target."""
        assert self.classes is not None
        return self.classes

    @property
    def codes(self) -> NDArray[np.intp]:
        """Class codes as integers."""
        return self.values.astype(np.intp)

    def require_rows(self, weight: Floats) -> None:
        """Refuse classes that have no row of positive weight."""
        if self.n_classes is None:
            return
        lost = np.setdiff1d(np.arange(self.n_classes), self.values[weight > 0])
        if len(lost):
            raise ValueError(
                f"The class {self.labels.tolist()[lost[0]]!r} has no row of positive weight to learn from. Drop its "
                "rows, or give some of them a positive weight."
            )

    def encode_other_rows(self, y: Any, n_rows: int, method: str, name: str) -> Floats:
        """Return the target of other rows than the training rows as numbers; `name` is the name of the argument."""
        if self.classes is None:
            return read_one_value(y, n_rows, method, name)
        return known_codes(y, self.classes, n_rows, name)


def read_one_class(y: ColumnLike, n_rows: int, method: str) -> tuple[Floats, NDArray[Any]]:
    """Return codes and labels of at least two classes; `method` names the method that supports only one output."""
    codes, classes = read_some_classes(y, n_rows)
    if len(classes) > 1:
        raise ValueError(
            f"y has several outputs, and {method} supports one. Use sklearn.multioutput.MultiOutputClassifier."
        )
    return codes, classes[0]


def read_some_classes(y: Any, n_rows: int) -> tuple[Floats, list[NDArray[Any]]]:
    """Return codes, (n_rows,) or (n_rows, n_outputs), and labels of classes; of each output at least two."""
    found = read_classes(y, n_rows)
    is_one = found.n_outputs == 1
    if is_one and np.asarray(y).ndim == 2:
        column_or_1d(y, warn=True)
    for k, labels in enumerate(found.classes):
        if len(labels) < 2:
            where, remedy = ("y", "Pass at least two classes") if is_one else (f"Column {k} of y", "Leave it out")
            raise ValueError(f"{where} has only one class, {labels.tolist()[0]!r}. {remedy}.")
    codes = found.codes.astype(np.float64)
    return codes[:, 0] if is_one else codes, found.classes


def known_codes(y: Any, classes: NDArray[Any] | list[NDArray[Any]], n_rows: int, name: str = "y") -> Floats:
    """Return the class codes of other rows than the training rows; `name` is the name of the argument."""
    several = isinstance(classes, list)
    codes = encode_labels(y, classes if isinstance(classes, list) else [classes], n_rows, name)
    codes = codes if several else codes[:, 0]
    if (codes < 0).any():
        at = int(np.flatnonzero((codes < 0).ravel())[0])
        row = at // len(classes) if several else at
        found = f"{np.asarray(y).ravel().tolist()[at]!r}, first in row {row}. Drop these rows"
        if name == "y":
            raise ValueError(f"y has a class that the model was not fitted on: {found}.")
        raise ValueError(f"{name} has a class that y does not have: {found}, or add some of the class to y.")
    return codes.astype(np.float64)


def read_one_value(y: object, n_rows: int, method: str, name: str = "y") -> Floats:
    """Return a regression target of one output; `method` names the method, `name` the argument, for messages."""
    values = read_values(y, n_rows, name)
    if values.shape[1] > 1:
        raise ValueError(
            f"{name} has several outputs, and {method} supports one. Use sklearn.multioutput.MultiOutputRegressor."
        )
    if np.asarray(y).ndim == 2:
        column_or_1d(y, warn=True)
    return np.ascontiguousarray(values[:, 0])


def check_held_out(
    X_val: TableLike,
    y_val: ColumnLike,
    more: dict[str, Any],
    groups: ColumnLike,
    sets_aside: bool,
    time: ColumnLike = None,
) -> None:
    """Refuse inconsistent validation sets, groups and times; `more` are further arguments of the validation set."""
    check_together({"X_val": X_val, "y_val": y_val} | more)
    if groups is not None and time is not None:
        raise ValueError("time and groups both determine which rows are held out. Pass one of them.")
    if X_val is None and sets_aside:
        return
    for name, value, rule in (
        ("time", time, "time determines that the latest rows are held out"),
        ("groups", groups_of_caller(groups), "groups determine which rows are held out together"),
    ):
        if value is not None:
            raise ValueError(
                f"{rule}, but no rows are held out. Set early_stopping=True and pass no X_val, or leave {name} out."
            )


def check_callbacks(callbacks: Any) -> None:
    """Refuse callbacks that are not callable, before the fit begins."""
    for callback in [] if callbacks is None or callable(callbacks) else callbacks:
        if not callable(callback):
            raise TypeError(f"callbacks must be functions that take a dict. Got {callback!r}.")


def check_same_target(new: Mapping[str, Any], earlier: Mapping[str, Any]) -> None:
    """Refuse a target with other classes or outputs than the earlier fit.

    Parameters
    ----------
    new, earlier : mapping
        Fitted attributes of the new and the earlier target.
    """
    n_outputs = new.get("n_outputs_")
    if n_outputs != earlier.get("n_outputs_", n_outputs) or not same_classes(new, earlier):
        raise ValueError("warm_start needs the classes and outputs of the earlier fit. Set warm_start=False.")


def same_classes(new: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a target has the classes of a fitted model, with labels of the same type: True is not 1."""
    if "classes_" not in new:
        return True
    pair = [c if isinstance(c, list) else [c] for c in (new["classes_"], earlier["classes_"])]
    return len(pair[0]) == len(pair[1]) and all(map(_same_labels, *pair))


def _same_labels(new: Any, old: Any) -> bool:
    kinds = {_kind(np.asarray(labels).dtype.kind) for labels in (new, old)}
    return len(kinds) == 1 and np.array_equal(new, old)


def _kind(letter: str) -> str:
    """Return one letter for all dtypes of numbers, and one for all dtypes of text."""
    return "f" if letter in "iuf" else "O" if letter in "US" else letter
