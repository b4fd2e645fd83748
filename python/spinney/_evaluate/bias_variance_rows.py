"""What learners and their members say of rows, in one form for classes and values: (n_rows, n_values)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._evaluate.problem import EstimatorLike

Array = NDArray[Any]
Learners = EstimatorLike | Mapping[str, EstimatorLike]  # as callers give them
_ROWS_COMPARED = 50  # enough to see whether an ensemble says the mean of its members


class Learner(Protocol):
    """A fitted estimator of any library; classifiers have the classes, and most of them probabilities."""

    classes_: Array

    def predict(self, X: TableLike) -> Array:
        """Labels or values."""

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities."""


def read_estimators(estimator: Learners) -> dict[str, EstimatorLike]:
    """Return learners by name."""
    learners = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
    if not learners:
        raise ValueError("There is no learner to judge. Pass an estimator, or a dict from names to estimators.")
    for name, learner in learners.items():
        if isinstance(learner, type) or not hasattr(learner, "fit") or not hasattr(learner, "predict"):
            raise TypeError(f"Learner {name!r} is not an estimator: it needs fit and predict. Got {learner!r}.")
    return {str(name): learner for name, learner in learners.items()}


def onehot(labels: Array, classes: Array) -> Floats:
    """Return 1 in the column of each row's class; nowhere if the class is not among `classes`."""
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.asarray(np.eye(len(classes))[place] * (classes[place] == labels)[:, None])


def read_truth(said: ArrayLike, shape: tuple[int, ...], classes: Array | None) -> Floats:
    """Check the truth: means, or class probabilities.

    Parameters
    ----------
    said : array-like
        One value per row, or one per row and output or class; of two classes the second alone will do.
    shape : tuple
        (n_rows, n_values) that is wanted.
    classes : ndarray or None
        Labels.

    Returns
    -------
    ndarray of the shape wanted
    """
    values = np.asarray(said, dtype=np.float64)
    if values.ndim == 1 and classes is not None and len(classes) == 2:
        values = np.column_stack([1 - values, values])
    if values.ndim == 1:
        values = values[:, None]
    if values.shape != shape:
        what = "one mean per row" if classes is None else f"one probability per row and class of {classes.tolist()}"
        raise ValueError(f"truth(X) has the shape {values.shape}; it must give {what}: {shape}.")
    if classes is not None and not (np.allclose(values.sum(axis=1), 1) and (values >= 0).all()):
        raise ValueError("truth(X) must give probabilities that add up to 1 in each row.")
    return values


def predictions(fitted: Learner, X: TableLike, classes: Array | None, loss: str) -> Floats:
    """Return predictions as means, probabilities (squared loss) or classes as 0 and 1 (0-1 loss)."""
    if classes is None:
        said = np.asarray(fitted.predict(X), dtype=np.float64)
        return said.reshape(len(said), -1)
    if loss == "zero_one" or not hasattr(fitted, "predict_proba"):
        return onehot(np.asarray(fitted.predict(X)), classes)
    return _aligned(fitted.predict_proba(X), fitted.classes_, classes)


def _aligned(said: ArrayLike, its_classes: Array, classes: Array) -> Floats:
    probabilities = np.asarray(said)
    shares = np.zeros((len(probabilities), len(classes)))
    place = np.searchsorted(classes, its_classes)
    known = place < len(classes)
    known[known] &= classes[place[known]] == np.asarray(its_classes)[known]
    shares[:, place[known]] = probabilities[:, known]
    return shares


def members_say(fitted: Learner, X: TableLike, classes: Array | None) -> Floats | None:
    """Return what each member says of X: (n_members, n_rows, n_values).

    None if there are no members, or their mean is not what the ensemble says (as in boosting).
    """
    members = getattr(fitted, "estimators_", None)
    if not isinstance(members, list) or len(members) < 2 or not all(hasattr(m, "predict") for m in members):
        return None
    columns = getattr(fitted, "estimators_features_", [None] * len(members))
    table = pick_table(X)
    says = [_member_says(fitted, m, table.take(columns=c), classes) for m, c in zip(members, columns, strict=True)]
    if any(said is None for said in says):
        return None
    by_member = np.array(says)
    few = np.arange(min(_ROWS_COMPARED, table.n_rows))
    whole = predictions(fitted, table.take(few), classes, "squared")
    return by_member if np.allclose(by_member[:, few].mean(axis=0), whole) else None


def _member_says(ensemble: Learner, member: Learner, X: TableLike, classes: Array | None) -> Floats | None:
    if hasattr(ensemble, "feature_names_in_") and not hasattr(member, "feature_names_in_"):
        X = np.asarray(X)  # scikit-learn's ensembles show their members arrays
    if classes is None:
        said = np.asarray(member.predict(X), dtype=np.float64)
        return said.reshape(len(said), -1)
    if not is_classifier(member):
        return None
    is_vote = getattr(ensemble, "voting", None) == "hard" or not hasattr(member, "predict_proba")
    own = np.asarray(ensemble.classes_)
    labels = np.asarray(member.classes_)
    by_code = not np.isin(labels, own).all() or (labels.dtype.kind == "f" and own.dtype.kind != "f")
    if is_vote:
        said = np.asarray(member.predict(X))
        return onehot(own[said.astype(int)] if by_code else said, classes)
    return _aligned(member.predict_proba(X), own[labels.astype(int)] if by_code else labels, classes)
