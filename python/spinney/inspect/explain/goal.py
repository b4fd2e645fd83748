"""What a changed row is to bring about, and how far it is from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spinney._data.display.digits import shortest
from spinney.inspect.explain.target_model import Asked, Floats

_LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Goal:
    """A class that is to be predicted, or an interval for a value.

    Attributes
    ----------
    asked : Asked
    text : str
        In words.
    code : int or None
        Position of the class; None: a value is wanted.
    share : float or None
        Least share of the class.
    low, high : float
        Limits of the value.
    """

    asked: Asked
    text: str
    code: int | None
    share: float | None
    low: float
    high: float

    def margins(self, rows: Floats) -> Floats:
        """How far each row, in numbers, is beyond the goal: at least 0 if it is met."""
        answers = self.asked.answers_of_numbers(rows)
        if self.code is None:
            return np.asarray(np.minimum(answers[:, 0] - self.low, self.high - answers[:, 0]))
        if answers.shape[1] == 1:  # one score for two classes
            return np.asarray(answers[:, 0] - _LEAST if self.code == 1 else -answers[:, 0])
        if self.share is not None:
            return np.asarray(answers[:, self.code] - self.share)
        merit = self.asked.merits(answers)
        own = merit[:, self.code]
        before = merit[:, : self.code].max(axis=1, initial=-np.inf)  # which win a tie
        after = merit[:, self.code + 1 :].max(axis=1, initial=-np.inf)
        return np.asarray(np.where(before >= own, own - before - _LEAST, own - np.maximum(before, after)))

    def is_met(self, row: Floats) -> bool:
        """Ask the model itself about one row."""
        met = bool(self.margins(row[np.newaxis])[0] >= 0)
        if self.code is None or self.share is not None or not met:
            return met
        return bool(self.asked.predicted(row) == self._classes[self.code])

    @property
    def _classes(self) -> list[Any]:
        return list(np.asarray(self.asked.model.classes_).tolist())

    def said(self, row: Floats, wanted: bool = False) -> tuple[Any, float | None]:
        """Return what the model says of a row: a value, or a class (`wanted`: the wanted one) and its share."""
        answers = self.asked.answers_of_numbers(row[np.newaxis])[0]
        if self.code is None:
            return float(answers[0]), None
        label = self._classes[self.code] if wanted else self.asked.predicted(row)
        if self.asked.method != "predict_proba":
            return label, None
        return label, float(answers[self._classes.index(label)])


def read_goal(asked: Asked, wanted: object, share: float | None) -> Goal:
    """Read what is wanted: a class, or limits of a value."""
    classes = getattr(asked.model, "classes_", None)
    if classes is None:
        return _value_goal(asked, wanted, share)
    labels = np.asarray(classes).tolist()
    if wanted is None:
        if len(labels) != 2:
            raise ValueError(f"wanted must say which class: one of {', '.join(map(repr, labels[:10]))}.")
        said = asked.predicted(asked.row_numbers())
        wanted = labels[1] if said == labels[0] else labels[0]
    if isinstance(wanted, np.generic):
        wanted = wanted.item()
    if wanted not in labels:
        raise ValueError(f"wanted must be one of the classes {', '.join(map(repr, labels[:10]))}, not {wanted!r}.")
    if share is not None and asked.method != "predict_proba":
        raise ValueError(f"{type(asked.model).__name__} has no predict_proba, so that there are no shares. Drop share.")
    if share is not None and not 0 < share <= 1:
        raise ValueError(f"share must be a number between 0 and 1, not {share!r}.")
    text = f"{wanted}" if share is None else f"{wanted} with a share of at least {share:.0%}"
    return Goal(asked, text, labels.index(wanted), share, -np.inf, np.inf)


def _value_goal(asked: Asked, wanted: Any, share: float | None) -> Goal:
    if share is not None:
        raise ValueError("share goes with classes, and this model predicts values. Drop it.")
    try:
        low, high = wanted
    except TypeError:
        raise ValueError(
            f"wanted must be the least and the largest value, such as (100, None), not {wanted!r}."
        ) from None
    low, high = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    if not low <= high or (np.isinf(low) and np.isinf(high)):
        raise ValueError(f"wanted must be the least and the largest value, one of them at least, not {wanted!r}.")
    if np.isinf(high):
        text = f"at least {shortest(low)}"
    else:
        text = f"at most {shortest(high)}" if np.isinf(low) else f"{shortest(low)} to {shortest(high)}"
    return Goal(asked, text, None, None, low, high)
