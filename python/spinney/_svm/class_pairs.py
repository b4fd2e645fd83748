"""Kernel machines that tell classes apart."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from spinney._data.numeric.reproducible import log
from spinney._estimator.attributes import only_if
from spinney._estimator.single_target import read_one_class
from spinney._model.svm.model import FittedMachines
from spinney._svm.calibrate import fit_curve
from spinney._svm.kernel_machine import BaseSupportVectors, Floats, MarginTable
from spinney._svm.solve import KernelChoice, machines_of, solve
from spinney._svm.weights import class_weights


def _why_no_probabilities(model: Any) -> str | None:
    return None if model.probability else "needs probability=True. Set it and fit again, or use decision_function."


class MachinesOfClasses(ClassifierMixin, BaseSupportVectors):
    """Machines of two classes, of each pair, or of each class against all others."""

    _is_class_target = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSupportVectors._parameter_constraints,
        "probability": ["boolean"],
        "decision_function_shape": [StrOptions({"ovo", "ovr"})],
    }

    # ---- fitting -------------------------------------------------------------------------------------

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "a support vector machine")
        return codes, {"classes_": classes, "n_classes_": len(classes), "cost_matrix_": None}

    def _weights_of_classes(self) -> Any:
        return None

    def _multi_class(self) -> str:
        """Whether each pair of classes has a machine, or each class against all others."""
        return "ovo"

    def _weigh(self, target: Floats, weight: Floats, learned: dict[str, Any]) -> None:
        codes = target.astype(np.intp)
        learned["_by_class"] = class_weights(self._weights_of_classes(), codes, weight, learned["classes_"])

    def _errors(self, model: FittedMachines, scores: Floats, target: Floats) -> Floats:
        return np.asarray(model.score_codes(scores)[:, 0] != target, dtype=np.float64)

    def _calibrate(self, table: MarginTable, kernel: KernelChoice, C: float, learned: dict[str, Any]) -> Floats | None:
        """Fit the curves to the scores of rows in folds that the machines have not seen."""
        if not self.probability:
            return None
        n_classes = len(learned["classes_"])
        found: Floats | None = None
        for fold in self._folds(table, learned, 1):
            weight = np.zeros_like(table.weight)
            weight[fold.grown_on] = table.weight[fold.grown_on]
            design, rows, terms = table.learn(weight)
            self._check_rows(rows, learned)
            problems = self._problems(rows, learned)
            solutions = solve(rows, problems, kernel, np.array([C]), self._effort)[0]
            model = machines_of(rows, problems, solutions, kernel, design, n_classes)
            scores = model.scores_of(table.held_out(model, terms, fold.held_out), self._n_threads)
            if found is None:
                found = np.full((len(table.target), scores.shape[1]), np.nan)
            found[fold.held_out] = scores
        assert found is not None
        seen = ~np.isnan(found[:, 0])
        curves = []
        for m, (positive, negative) in enumerate(_sides(n_classes, self._multi_class())):
            is_positive = np.isin(table.target, positive)
            used = seen & (is_positive | np.isin(table.target, negative))
            curves.append(fit_curve(found[used, m], is_positive[used], table.weight[used]))
        return np.array(curves)

    # ---- using ---------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._scores(X)
        return self.margin_.labels(self.margin_.score_codes(scores), [self.classes_])

    def decision_function(self, X: Any) -> Floats:
        """Scores of each row: of two classes, the signed distance from the boundary in units of the margin.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: positive for the second. More: votes of the machines and, below 1/3, how clear they are; or,
            with ``decision_function_shape="ovo"``, the machines of pairs, positive for the first of the pair.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        return scores if self.decision_function_shape == "ovo" else self.margin_.class_scores(scores)

    @only_if(_why_no_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of each row, by curves fitted to the scores of rows held out.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`. They need not agree with `predict`, which goes by the scores alone.
        """
        return self.margin_.predicted(self._scores(X))

    @only_if(_why_no_probabilities)
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of the class probabilities.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        shares: Floats = self.predict_proba(X)
        return log(shares)


def _sides(n_classes: int, multi_class: str) -> list[tuple[list[int], list[int]]]:
    """Classes on the positive and the negative side of each machine."""
    if n_classes == 2:
        return [([1], [0])]
    if multi_class == "ovo":
        return [([int(i)], [int(j)]) for i, j in zip(*np.triu_indices(n_classes, 1), strict=True)]
    return [([k], [other for other in range(n_classes) if other != k]) for k in range(n_classes)]
