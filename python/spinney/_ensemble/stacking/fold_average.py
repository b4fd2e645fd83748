"""One member as the models of its folds, averaged."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._estimator.attributes import only_if
from spinney._model.predictions import codes_said, decisions_said, mean_said, onehot, shares_said, values_said

Floats = NDArray[np.float64]


def _lacks(method: str) -> Any:
    def why(average: Any) -> str | None:
        if all(hasattr(model, method) for model in average.estimators_):
            return None
        return f"needs models that have one, and {type(average.estimators_[0]).__name__} has none."

    return why


class FoldAverage:
    """The models of a member's folds; they say their mean.

    Attributes
    ----------
    estimators_ : list of estimators
        One per fold.
    classes_ : ndarray of shape (n_classes,)
        Labels, of classifiers.
    """

    def __init__(self, estimators: list[Any], classes: NDArray[Any] | None, by_code: bool) -> None:
        self.estimators_ = estimators
        self._by_code = by_code
        if classes is not None:
            self.classes_ = classes

    def __repr__(self) -> str:
        return f"<FoldAverage of {len(self.estimators_)} {type(self.estimators_[0]).__name__}>"

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self.estimators_[0].n_features_in_)

    @only_if(_lacks("predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """Mean of the models' probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return mean_said([shares_said(model, X, self.classes_, self._by_code) for model in self.estimators_])

    @only_if(_lacks("decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Mean of the models' decision functions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, k)
            As those of the models.
        """
        mean = mean_said([decisions_said(model, X, self.classes_) for model in self.estimators_])
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def predict(self, X: Any) -> NDArray[Any]:
        """Mean of the models' values, or the class with the most votes; of equal ones the first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values or labels.
        """
        if not hasattr(self, "classes_"):
            return mean_said([values_said(model, X) for model in self.estimators_])
        codes = [codes_said(model, X, self.classes_, self._by_code) for model in self.estimators_]
        votes = mean_said([onehot(said, len(self.classes_)) for said in codes])
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    def fingerprint(self) -> str:
        """Hash of the models.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        text = "".join(model.fingerprint() for model in self.estimators_)
        return hashlib.sha256(text.encode()).hexdigest()
