"""Forests of both libraries by name, and the evaluation of their predictions on test rows."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

# Half a vote of a hundred trees: without a bound, one row that no tree voted for would decide the log loss.
CLIP = 0.005
METRICS = {"classifier": ("log loss", "1 - AUC", "error"), "regressor": ("RMSE",)}


class Method(NamedTuple):
    """A forest and how it gets the columns.

    `columns` is "codes" (every column a number), "one-hot" (categories spread out) or "raw" (categories as such).
    """

    library: str
    family: str
    max_bins: int | None = None
    columns: str = "codes"

    def __str__(self) -> str:
        """Return a name for the records."""
        bins = "exact" if self.max_bins is None else f"{self.max_bins} bins"
        return f"{self.library}, {self.family}, {bins}, {self.columns}"


def make(method: Method, kind: str, is_category: np.ndarray, **options: Any) -> Any:
    """Make an unfitted forest with one thread."""
    if method.library == "sklearn":
        import sklearn.ensemble as module
    else:
        import spinney as module

        if method.max_bins is not None:
            options["max_bins"] = method.max_bins
        if method.columns == "raw":
            options["categorical_features"] = np.flatnonzero(is_category).tolist()
    name = {"forest": "RandomForest", "extra": "ExtraTrees"}[method.family]
    return getattr(module, name + kind.capitalize())(n_jobs=1, **options)


def fit_seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Fit, and return the CPU seconds it took: others may run on the machine."""
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


def shares(model: Any, X: np.ndarray, n_classes: int) -> np.ndarray:
    """Class shares in columns 0 … n_classes - 1; classes that the model has not seen get 0."""
    full = np.zeros((len(X), n_classes))
    full[:, model.classes_] = model.predict_proba(X)
    return full


def evaluate(model: Any, X: np.ndarray, y: np.ndarray, n_classes: int) -> dict[str, float]:
    """Losses on test rows, smaller is better."""
    if not n_classes:
        return {"RMSE": float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))}
    p = shares(model, X, n_classes)
    clipped = np.maximum(p, CLIP)
    clipped /= clipped.sum(axis=1, keepdims=True)
    losses = {
        "log loss": float(-np.mean(np.log(clipped[np.arange(len(y)), y]))),
        "error": float(np.mean(p.argmax(axis=1) != y)),
    }
    auc = mean_auc(p, y)
    return losses if auc is None else losses | {"1 - AUC": 1 - auc}


def mean_auc(p: np.ndarray, y: np.ndarray) -> float | None:
    """Area under the curve; with several classes, the mean over each against the rest. None if there is no curve."""
    from sklearn.metrics import roc_auc_score

    scores = (1,) if p.shape[1] == 2 else range(p.shape[1])
    areas = [roc_auc_score(y == k, p[:, k]) for k in scores if 0 < np.count_nonzero(y == k) < len(y)]
    return float(np.mean(areas)) if areas else None


def vote_error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the fraction of rows that the majority of the trees misclassifies; ties go to the first class."""
    n_classes = len(model.classes_)
    if type(model).__module__.startswith("sklearn"):
        named = np.stack([tree.predict(X) for tree in model.estimators_], axis=1).astype(int)
    else:
        values = model.forest_.engine.value.reshape(-1, n_classes)
        leaves = model.apply(X) + model.forest_.root[:-1].astype(np.int64)
        named = values.argmax(axis=1)[leaves]
    votes = np.zeros((len(X), n_classes))
    for codes in named.T:
        votes[np.arange(len(X)), codes] += 1
    return float(np.mean(model.classes_[votes.argmax(axis=1)] != y))
