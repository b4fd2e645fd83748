"""Kernel machines that predict values."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from spinney._estimator.single_target import read_one_value
from spinney._model.svm.model import FittedMachines
from spinney._svm.kernel_machine import BaseSupportVectors, Floats
from spinney._svm.search import PENALTY


class MachineOfValues(RegressorMixin, BaseSupportVectors):
    """One machine, whose score is the prediction."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSupportVectors._parameter_constraints,
        "C": PENALTY,
    }

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        return read_one_value(y, n_rows, "a support vector machine"), {}

    def _errors(self, model: FittedMachines, scores: Floats, target: Floats) -> Floats:
        return np.asarray((scores[:, 0] - target) ** 2)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        return self._scores(X)[:, 0]
