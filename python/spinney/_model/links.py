"""From scores to predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data.arguments import argument_numbers
from spinney._data.types import ColumnLike

Floats = NDArray[np.float64]

# logit: the score is the log-odds of the second of two classes; half_logit: half of it; hinge and focal: where the
# expected smooth hinge or focal loss is least. The exponent of the focal loss stands behind a space: "focal 2.0".
# ascending: the scores of a row in order. normal: the first of two scores, beside the logarithm of a deviation.
# by_output: logit or softmax, whichever suits the classes of each output.
_VALUE_LINKS = frozenset({"identity", "log", "ascending", "normal"})
_CLASS_LINKS = frozenset({"logit", "half_logit", "hinge", "softmax", "by_output"})

# Of imported models alone. logistic: a value between 0 and 1; signed_square: s|s|; softplus: log(1 + eˢ). Of classes,
# see below: step: the second class above 0; sigmoid: the logistic function of a multiple of the score, and separate:
# that of each class by itself, so that shares need not add up to 1; the multiple stands behind a space.
_IMPORTED_VALUE_LINKS = frozenset({"logistic", "signed_square", "softplus"})


def is_link(link: str) -> bool:
    """Whether scores can have this link."""
    return link in _VALUE_LINKS or is_of_classes(link)


def is_of_classes(link: str) -> bool:
    """Whether the link turns scores into shares of classes."""
    return link in _CLASS_LINKS or _is_focal(link)


def _is_focal(link: str) -> bool:
    return _number_behind("focal", link)


def _number_behind(name: str, link: str) -> bool:
    """Whether a link is a name with a number that is not negative behind a space."""
    found, _, number = link.partition(" ")
    try:
        return found == name and number == repr(float(number)) and 0 <= float(number) < np.inf
    except ValueError:
        return False


def is_imported_link(link: str, of_classes: bool, n_scores: int, n_probabilities: int) -> bool:
    """Whether an imported model of classes, or of values, can have this link, for so many scores and shares."""
    if not of_classes:
        return n_scores == n_probabilities and (link in _VALUE_LINKS or link in _IMPORTED_VALUE_LINKS)
    if link in ("softmax", "identity") or _number_behind("separate", link):
        return n_scores == n_probabilities > 1
    return (link in ("logit", "step") or _number_behind("sigmoid", link)) and n_scores == 1 and n_probabilities == 2


def score_columns(n_classes: list[int]) -> list[slice]:
    """Where the scores of each of several outputs are in a row: one for two classes, else one for each."""
    widths = [1 if n == 2 else n for n in n_classes]
    ends = np.cumsum(widths)
    return [slice(int(end) - width, int(end)) for end, width in zip(ends, widths, strict=True)]


def predicted(link: str, scores: Floats) -> Floats:
    """Turn scores, (n_rows, n_scores), into values, (n_rows, 1), or class shares, (n_rows, n_classes)."""
    if link == "normal":
        return np.ascontiguousarray(scores[:, :1])
    return scores if link == "identity" else _engine.predicted(link, np.ascontiguousarray(scores))


def read_offset(offset: ColumnLike, n_rows: int, n_scores: int, name: str = "offset") -> Floats | None:
    """Offsets as (n_scores, n_rows)."""
    if offset is None:
        return None
    given = argument_numbers(offset, name)
    if given.shape == (n_rows,) and n_scores == 1:
        given = given[:, np.newaxis]
    if given.shape != (n_rows, n_scores):
        wanted = f"({n_rows},)" if n_scores == 1 else f"({n_rows}, {n_scores})"
        raise ValueError(f"{name} has shape {given.shape}; it needs {wanted}: one number per row and score.")
    if not np.isfinite(given).all():
        row = int(np.flatnonzero(~np.isfinite(given).all(axis=1))[0])
        raise ValueError(f"{name} must be finite numbers. Row {row} has {given[row].tolist()}.")
    return np.ascontiguousarray(given.T)
