"""A metric on held-out rows, in the place of their loss."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer

import spinney._engine as _engine
from spinney._boosting.losses.rows import LearningRows
from spinney._data.select import pick_table
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


class HeldOutScore:
    """A metric on the held-out rows, as a loss: smaller is better."""

    def __init__(
        self,
        model: Any,
        view: FittedBoosting,
        held_out: LearningRows,
        learned: dict[str, Any],
        base: Floats | None = None,
        encode: Callable[[Any], _engine.Table] | None = None,
    ) -> None:
        self._model = model
        self._view = view
        self._learned = learned
        self._encode = encode
        self._scorer = scorer_of(model.scoring)
        weight = held_out.weight
        rows = np.arange(len(held_out.target)) if weight is None else np.flatnonzero(weight > 0)
        self._rows = rows
        self._base = None if base is None else base.T[rows]
        self._has_offset = held_out.offset is not None
        # a metric by name asks for predictions alone; any other may read the rows, as the caller gave them
        unread = isinstance(model.scoring, str) or takes_predictions(model.scoring) or held_out.given is None
        self._X = np.zeros((len(rows), 1)) if unread else pick_table(held_out.given).take(rows)
        target = held_out.target[rows]
        classes = learned.get("classes_")
        self._y = (
            target
            if classes is None
            else view.labels(
                np.atleast_2d(target.astype(np.intp).T).T,
                classes if isinstance(classes, list) else [np.asarray(classes)],
            )
        )
        used = None if weight is None else weight[rows]
        self._weight = None if used is None or (used == used[0]).all() else used

    def __call__(self, scores: Floats, so_far: Callable[[], FittedBoosting] | None = None) -> float:
        """Judge the scores of the engine, (n_rows, n_scores), and the model that they come from."""
        known = scores[self._rows] if self._base is None else scores[self._rows] + self._base

        def scores_of(X: Any) -> Floats:
            if X is self._X or so_far is None or self._encode is None:
                return known
            if self._has_offset:
                raise ValueError(
                    "scoring asks for predictions of other rows than those held out, and their offset is not known. "
                    "Predict the rows that it is given, as a whole."
                )
            return so_far().scores(self._encode(X), self._model._n_threads)

        judged = _Scored(self._model, self._view, scores_of, self._learned)
        weighted = {} if self._weight is None else {"sample_weight": self._weight}
        return -float(self._scorer(judged, self._X, self._y, **weighted))


_LEAST_IS_BEST = ("_error", "_loss", "_deviance")  # ends of the names of scikit-learn's metrics that are losses


def takes_predictions(metric: Any) -> bool:
    """Whether a metric is a function of targets and predictions, not of a model, rows and targets."""
    if isinstance(metric, str) or not callable(metric):
        return False
    try:
        given = inspect.signature(metric).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(needed) == 2


def sign_of(metric: Any) -> int:
    """-1 for a function of targets and predictions that is smaller for better ones, as its name says; else 1."""
    name = getattr(metric, "__name__", "")
    return -1 if takes_predictions(metric) and name.endswith(_LEAST_IS_BEST) else 1


def scorer_of(metric: Any) -> Any:
    """Return a metric as a scorer: a function of a model, rows and targets, larger for better."""
    if isinstance(metric, str):
        return get_scorer(metric)
    if not takes_predictions(metric):
        return metric
    takes_weights = "sample_weight" in inspect.signature(metric).parameters

    def scorer(model: Any, X: Any, y: Any, **weighted: Any) -> float:
        return sign_of(metric) * float(metric(y, model.predict(X), **(weighted if takes_weights else {})))

    return scorer


class WithScoring:
    """A model as `HeldOutScore` takes it, with another metric."""

    def __init__(self, model: Any, scoring: Any) -> None:
        self._of = model
        self.scoring = scoring

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def __sklearn_tags__(self) -> Any:
        return self._of.__sklearn_tags__()


class _Scored:
    """Looks to a scorer like a fitted estimator; the scores of the held-out rows are known."""

    def __init__(
        self,
        model: Any,
        view: FittedBoosting,
        scores_of: Callable[[Any], Floats],
        learned: dict[str, Any],
    ) -> None:
        self._scores_of = scores_of
        self._view = view
        self._model = model
        self._estimator_type = getattr(model, "_estimator_type", None)
        self.__dict__.update({k: v for k, v in learned.items() if k in ("classes_", "n_classes_")})
        self._learned = learned

    def __sklearn_tags__(self) -> Any:
        return self._model.__sklearn_tags__()

    def fit(self) -> None:
        """Do nothing: scorers ask whether it is there."""

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self._model._predicted(self._scores_of(X), self._view, self._learned))

    def predict_proba(self, X: Any) -> Floats | list[Floats]:
        return self._view.spread(self._view.predicted(self._scores_of(X)))

    def decision_function(self, X: Any) -> Floats:
        scores = self._scores_of(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores
