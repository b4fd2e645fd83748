"""What neighbours and cells answer: classes or values, of one output or several."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import column_or_1d

from spinney._data import Schema
from spinney._data.numeric.reproducible import log
from spinney._estimator.costs import ClassCosts, read_cost_matrix, read_priors
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_classes, read_values
from spinney._neighbours.choice import Judge, SaidClasses, SaidValues

Floats = NDArray[np.float64]


class LocalEstimator(TableEstimator):
    """Answers by what training rows near a row have."""

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], list[int] | None, dict[str, Any]]:
        """Check y; return codes or values, (n_rows, n_outputs), the number of classes, and what is learned from it."""
        raise NotImplementedError

    def _read_costs(self, codes: NDArray[Any], weight: Floats | None, learned: dict[str, Any]) -> ClassCosts:
        """Return costs and priors; none by default."""
        return ClassCosts()

    def _losses(self, target: NDArray[Any], flat: Floats, model: Any, costs: ClassCosts) -> Floats:
        """Loss of each row."""
        raise NotImplementedError

    def _keep_learned(
        self, schema: Schema, model: Any, learned: dict[str, Any], costs: ClassCosts, results: dict[str, Any] | None
    ) -> None:
        """Set the fitted attributes that come from the table, the target and the choice."""
        self.__dict__.pop("cv_results_", None)
        self._keep_schema(schema)
        self.n_outputs_ = model.n_outputs
        if results is not None:
            self.cv_results_ = results
        if "classes_" in learned:
            learned = learned | {"cost_matrix_": costs.cost, "priors_": costs.priors}
        for name, value in learned.items():
            setattr(self, name, value)

    def _make_judge(self, target: NDArray[Any], weight: Floats, costs: ClassCosts, learned: dict[str, Any]) -> Judge:
        scorer = None
        if self.scoring is not None:
            scorer = self.scoring if callable(self.scoring) else get_scorer(self.scoring)

        def judge(model: Any, rows: NDArray[np.intp], flat: Floats) -> tuple[float, Floats | None]:
            if scorer is None:
                losses = self._losses(target[rows], flat, model, costs)
                return float(np.average(losses, weights=weight[rows])), losses
            shares = model.spread(flat)
            if "classes_" not in learned:
                actual = target[rows, 0] if model.n_outputs == 1 else target[rows]
                return -float(scorer(SaidValues(shares), rows[:, np.newaxis], actual)), None
            classes = [learned["classes_"]] if model.n_outputs == 1 else learned["classes_"]
            said = SaidClasses(model.labels(model.best_codes(flat), classes), shares, learned["classes_"])
            actual = model.labels(target[rows].astype(np.intp), classes)
            return -float(scorer(said, rows[:, np.newaxis], actual)), None

        return judge


class OfClasses(ClassifierMixin, LocalEstimator):
    """Classes as target."""

    _is_class_target = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cost_matrix": ["array-like", dict, None],
        "priors": ["array-like", dict, StrOptions({"uniform"}), None],
    }

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], list[int] | None, dict[str, Any]]:
        found = read_classes(y, n_rows)
        single = found.n_outputs == 1
        if single and np.asarray(y).ndim == 2:
            column_or_1d(y, warn=True)
        n_classes = [len(labels) for labels in found.classes]
        learned = {
            "classes_": found.classes[0] if single else found.classes,
            "n_classes_": n_classes[0] if single else np.array(n_classes),
        }
        return np.ascontiguousarray(found.codes), n_classes, learned

    def _read_costs(self, codes: NDArray[Any], weight: Floats | None, learned: dict[str, Any]) -> ClassCosts:
        if self.cost_matrix is None and self.priors is None:
            return ClassCosts()
        if codes.shape[1] > 1:
            raise ValueError("cost_matrix and priors are for one output. Fit one model per output.")
        classes = learned["classes_"]
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, classes)
        priors = None if self.priors is None else read_priors(self.priors, classes)
        return ClassCosts.of(cost, priors, None, codes[:, 0], weight, classes)

    def _losses(self, target: NDArray[Any], flat: Floats, model: Any, costs: ClassCosts) -> Floats:
        codes = model.best_codes(flat)
        if costs.cost is not None or costs.priors is not None:
            return costs.loss(target[:, 0], codes[:, 0])
        return np.asarray((codes != target).mean(axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each row, or the one of least expected cost if there is a cost matrix.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Labels; the first of several equally good ones.
        """
        codes = self._fitted_codes(X)
        return self._fitted.labels(codes, [self.classes_] if self.n_outputs_ == 1 else self.classes_)

    def _fitted_codes(self, X: Any) -> NDArray[np.intp]:
        columns = self._columns(X)
        return self._fitted.codes(columns, self._n_threads)

    def predict_proba(self, X: Any) -> Floats | list[Floats]:
        """Class shares of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            One array per output; columns in the order of `classes_`.
        """
        columns = self._columns(X)
        return self._fitted.spread(self._fitted.predictions(columns, self._n_threads))

    def predict_log_proba(self, X: Any) -> Floats | list[Floats]:
        """Logarithm of the class shares; -inf for 0.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            As `predict_proba`.
        """
        shares = self.predict_proba(X)
        return [log(part) for part in shares] if isinstance(shares, list) else log(shares)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class OfValues(RegressorMixin, LocalEstimator):
    """Numbers as target."""

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], list[int] | None, dict[str, Any]]:
        values = read_values(y, n_rows)
        if values.shape[1] == 1 and np.asarray(y).ndim == 2:
            column_or_1d(y, warn=True)
        return values, None, {}

    def _losses(self, target: NDArray[Any], flat: Floats, model: Any, costs: ClassCosts) -> Floats:
        return np.asarray(((target - flat) ** 2).mean(axis=1))

    def predict(self, X: Any) -> Floats:
        """Value of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Values.
        """
        columns = self._columns(X)
        return np.asarray(self._fitted.spread(self._fitted.predictions(columns, self._n_threads)))
