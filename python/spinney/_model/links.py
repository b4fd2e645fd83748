"""Links: functions from scores to predictions, by name."""

from __future__ import annotations

import numpy as np

import spinney._engine as _engine
from spinney._data.arguments import argument_numbers
from spinney._data.types import ColumnLike, Floats
from spinney._model.distributions import DISTRIBUTIONS

# logit: the score is the log-odds of the second of two classes; half_logit: half of it; hinge and focal: the
# probability that minimises the expected smooth hinge or focal loss. The exponent of the focal loss follows a space:
# "focal 2.0". ordinal: the log-odds of a class up to k are cut k minus the score; the cuts follow: "ordinal -1.0 0.5".
# log1p: the prediction is eˢ - 1. ascending: the scores of a row in order. The name of a distribution: the mean
# of the distribution whose parameters are functions of the scores.
# by_output: logit or softmax, whichever suits the classes of each output.
_VALUE_LINKS = frozenset({"identity", "log", "log1p", "ascending", *DISTRIBUTIONS})
_CLASS_LINKS = frozenset({"logit", "half_logit", "hinge", "softmax", "by_output"})

# Of imported models alone. logistic: a number between 0 and 1; signed_square: s|s|; softplus: log(1 + eˢ). For classes,
# step: the second class above 0; sigmoid: the logistic function of a multiple of the score; separate: that function for
# each class, so that probabilities need not add up to 1. The multiple follows a space.
_IMPORTED_VALUE_LINKS = frozenset({"logistic", "signed_square", "softplus"})


def is_link(link: str) -> bool:
    """Return whether a name is that of a link."""
    return link in _VALUE_LINKS or is_of_classes(link)


def is_of_classes(link: str) -> bool:
    """Return whether a link turns scores into class probabilities."""
    return link in _CLASS_LINKS or _has_number("focal", link) or is_of_ordered_classes(link)


def is_of_ordered_classes(link: str) -> bool:
    """Return whether a link is that of ordered classes, with or without cuts."""
    return link.partition(" ")[0] == "ordinal"


def has_cuts(link: str, n_classes: int) -> bool:
    """Return whether a link of ordered classes has the ascending cuts between this number of classes."""
    try:
        cuts = cuts_of(link)
    except ValueError:
        return False
    is_ascending = bool(np.isfinite(cuts).all() and (np.diff(cuts) > 0).all())
    return is_ascending and link == ordinal_link(cuts) and len(cuts) == n_classes - 1 >= 1


def ordinal_link(cuts: Floats) -> str:
    """Return the link of ordered classes with these cuts."""
    return " ".join(["ordinal", *map(repr, cuts.tolist())])


def cuts_of(link: str) -> Floats:
    """Return the cuts between ordered classes."""
    return np.array([float(text) for text in link.split(" ")[1:]])


def _has_number(name: str, link: str) -> bool:
    """Return whether a link is a name followed by a space and a non-negative number."""
    found, _, number = link.partition(" ")
    try:
        return found == name and number == repr(float(number)) and 0 <= float(number) < np.inf
    except ValueError:
        return False


def is_imported_link(link: str, of_classes: bool, n_scores: int, n_outputs: int) -> bool:
    """Return whether an imported classifier or regressor can have a link, given its numbers of scores and outputs."""
    if not of_classes:
        return n_scores == n_outputs and link in (_VALUE_LINKS | _IMPORTED_VALUE_LINKS) - set(DISTRIBUTIONS)
    if link in ("softmax", "identity") or _has_number("separate", link):
        return n_scores == n_outputs > 1
    return (link in ("logit", "step") or _has_number("sigmoid", link)) and n_scores == 1 and n_outputs == 2


def score_columns(n_classes: list[int]) -> list[slice]:
    """Slices of the scores of each output in a row: one score for two classes, else one per class."""
    widths = [1 if n == 2 else n for n in n_classes]
    ends = np.cumsum(widths)
    return [slice(int(end) - width, int(end)) for end, width in zip(ends, widths, strict=True)]


def predicted(link: str, scores: Floats) -> Floats:
    """Turn scores, (n_rows, n_scores), into numbers, (n_rows, 1), or class probabilities, (n_rows, n_classes)."""
    if link in DISTRIBUTIONS:
        return np.ascontiguousarray(DISTRIBUTIONS[link].of_scores(scores).mean[:, np.newaxis])
    return scores if link == "identity" else _engine.predicted(link, np.ascontiguousarray(scores))


def read_offset(offset: ColumnLike, n_rows: int, n_scores: int, name: str = "offset") -> Floats | None:
    """Return offsets as an array of shape (n_scores, n_rows); None if there are none."""
    if offset is None:
        return None
    numbers = argument_numbers(offset, name)
    if numbers.shape == (n_rows,) and n_scores == 1:
        numbers = numbers[:, np.newaxis]
    if numbers.shape != (n_rows, n_scores):
        wanted = f"({n_rows},)" if n_scores == 1 else f"({n_rows}, {n_scores})"
        raise ValueError(f"{name} has shape {numbers.shape}; it needs {wanted}: one number per row and score.")
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
        raise ValueError(f"{name} must be finite numbers. Row {row} has {numbers[row].tolist()}.")
    return np.ascontiguousarray(numbers.T)
