"""What is learned: classes or values. Shared by trees and forests."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney._cluster.predictions import lazy_for_collections
from spinney._data.numeric.reproducible import log
from spinney._estimator.costs import ClassCosts, read_cost_matrix, read_priors
from spinney._estimator.exposure import deviance, per_exposure, shrink_rates, survival_rates
from spinney._estimator.held_out import Loss
from spinney._estimator.target import encode_labels, read_classes, read_values, warn_if_coarse
from spinney._estimator.user_criterion import is_user, row_losses
from spinney._model.tree import FittedTree
from spinney._tree.grow.estimator import RATE_CRITERIA, GrowingEstimator


def _has_one_output(model: OfClasses) -> bool:
    return bool(model.n_outputs_ == 1)


class OfClasses(ClassifierMixin, GrowingEstimator):
    """Classes as target."""

    _is_class_target = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GrowingEstimator._parameter_constraints,
        "criterion": [
            StrOptions({"gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio", "user"}),
            HasMethods(["evaluate", "split"]),
        ],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
        "min_purity": [Interval(Real, 0.0, 1.0, closed="right"), None],
        "cost_matrix": ["array-like", dict, None],
        "priors": ["array-like", dict, StrOptions({"uniform"}), None],
        "cost_splits": [StrOptions({"altered_priors", "generalised_gini"}), None],
    }

    def _read_target(self, y: Any, n_rows: int) -> Any:
        return read_classes(y, n_rows)

    def _engine_target(self, target: Any) -> tuple[NDArray[Any], list[int]]:
        return target.codes, [len(c) for c in target.classes]

    def _target_weights(self, target: Any, y: Any, weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        return weight if self.class_weight is None else self._class_weighted(self.class_weight, y, weight)

    @staticmethod
    def _class_weighted(class_weight: Any, y: Any, weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
        by_class = compute_sample_weight(class_weight, np.asarray(y))
        if not (by_class >= 0).all() or not np.isfinite(by_class).all():
            raise ValueError("class_weight must give finite weights of at least 0.")
        if not (by_class > 0).any():
            raise ValueError("class_weight gives every row a weight of 0. Give at least one class a positive weight.")
        return np.ascontiguousarray(by_class if weight is None else weight * by_class, dtype=np.float64)

    def _learned(self, target: Any) -> dict[str, Any]:
        n_classes = [len(c) for c in target.classes]
        single = target.n_outputs == 1
        return {
            "_n_classes": n_classes,
            "classes_": target.classes[0] if single else target.classes,
            "n_classes_": n_classes[0] if single else np.array(n_classes),
            "n_outputs_": target.n_outputs,
        }

    def _read_costs(self, target: Any, weight: NDArray[np.float64] | None) -> ClassCosts | None:
        if self._setting("cost_splits") == "generalised_gini" and self.criterion != "gini":
            raise ValueError(
                f"cost_splits='generalised_gini' needs criterion='gini', not {self.criterion!r}. Change one of them; "
                "'altered_priors' goes with every criterion."
            )
        if self._setting("cost_matrix") is None and self._setting("priors") is None:
            return None
        if target.n_outputs > 1:
            raise ValueError("cost_matrix and priors are for one output. Fit one tree per output.")
        if self._setting("priors") is not None and self.class_weight is not None:
            raise ValueError("priors and class_weight both reweight the classes. Pass one of them.")
        classes = target.classes[0]
        cost = None if self._setting("cost_matrix") is None else read_cost_matrix(self._setting("cost_matrix"), classes)
        priors = None if self._setting("priors") is None else read_priors(self._setting("priors"), classes)
        return ClassCosts.of(cost, priors, self._setting("cost_splits"), target.codes[:, 0], weight, classes)

    def _learned_costs(self, costs: ClassCosts | None) -> dict[str, Any]:
        found = costs or ClassCosts()
        return {"cost_matrix_": found.cost, "priors_": found.priors}

    def _restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        if costs is None:
            return tree
        tree.cost = costs.decision
        return costs.restate(tree, self.criterion)

    @property
    def _prunes_by_impurity(self) -> bool:
        has_costs = self._setting("cost_matrix") is not None or self._setting("priors") is not None
        by_impurity = self._setting("risk") == "impurity" or (self._setting("risk") == "auto" and not has_costs)
        return by_impurity and self._setting("dialect") is None

    def _node_errors(self, tree: FittedTree) -> NDArray[np.float64]:
        if tree.cost is not None:
            return np.asarray(tree.expected_cost.min(axis=1))
        shares = [1 - tree.flat_value[:, columns].max(axis=1) for columns in tree.class_columns]
        return np.asarray(np.mean(shares, axis=0))

    def _held_out_target(self, target: Any, y: Any, n_rows: int) -> NDArray[Any]:
        return encode_labels(y, target.classes, n_rows, "y_val")

    def _losses(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> NDArray[np.float64]:
            if costs is not None:
                return costs.loss(actual[rows, 0], tree.majority[nodes, 0])
            wrong: NDArray[np.float64] = (tree.majority[nodes] != actual[rows]).mean(axis=1)
            return wrong

        return loss

    @lazy_for_collections()
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
        codes = self._by_blocks(X, lambda columns: self._fitted.codes(columns, self._n_threads))
        return self._fitted.labels(codes, [self.classes_] if self.n_outputs_ == 1 else self.classes_)

    @lazy_for_collections(_has_one_output)
    def predict_proba(self, X: Any) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Class shares of each row: those of its leaf, or their mean over the trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            One array per output; columns in the order of `classes_`.
        """
        flat = self._by_blocks(X, lambda columns: self._fitted.predictions(columns, self._n_threads))
        return self._fitted.spread(flat)

    @lazy_for_collections(_has_one_output)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64] | list[NDArray[np.float64]]:
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
        with np.errstate(divide="ignore"):
            return log(shares) if self.n_outputs_ == 1 else [log(s) for s in shares]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class OfValues(RegressorMixin, GrowingEstimator):
    """Numbers as target."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GrowingEstimator._parameter_constraints,
        "criterion": [
            StrOptions({"squared_error", "friedman_mse", "absolute_error", "poisson", "exponential", "user"}),
            HasMethods(["evaluate", "split"]),
        ],
        "rate_shrinkage": [Interval(Real, 0.0, None, closed="left")],
    }

    def _read_target(self, y: Any, n_rows: int) -> Any:
        values = read_values(y, n_rows)
        if self._setting("rate_shrinkage") > 0 and self.criterion not in RATE_CRITERIA:
            raise ValueError(f"rate_shrinkage goes with criterion='poisson', not {self.criterion!r}. Set it to 0.")
        if self.criterion in RATE_CRITERIA and (values < 0).any():
            raise ValueError(
                "Some value(s) of y are negative which is not allowed for Poisson regression. "
                "Use criterion='squared_error'."
            )
        return values

    def _engine_target(self, target: Any) -> tuple[NDArray[Any], list[int]]:
        return target, []

    def _target_weights(self, target: Any, y: Any, weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        events = target if weight is None else target[weight > 0]
        total = float(len(target)) if weight is None else float(weight.sum())
        largest = float(np.abs(events).max(initial=1.0))
        if np.log2(largest) + np.log2(total) > 1030:
            raise ValueError(
                "The weighted sum of y is too large for a floating-point number. Rescale y or sample_weight."
            )
        if self.criterion != "absolute_error" and not is_user(self.criterion):
            warn_if_coarse(events)
        if self.criterion in RATE_CRITERIA and not (events.sum(axis=0) > 0).all():
            raise ValueError(
                "Sum of y is not positive which is necessary for Poisson regression: there is no event to count."
            )
        return weight

    def _learned(self, target: Any) -> dict[str, Any]:
        return {"_n_classes": None, "n_outputs_": target.shape[1]}

    def _per_exposure(
        self, y: Any, weight: NDArray[np.float64] | None, exposure: Any, has_held_out: bool, n_rows: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.criterion == "exponential":
            return survival_rates(y, weight, exposure, has_held_out, n_rows)
        if self.criterion != "poisson":
            raise ValueError(f"exposure goes with criterion='poisson', not {self.criterion!r}. Change one of them.")
        if has_held_out:
            raise ValueError("exposure does not go with X_val. Use validation_fraction.")
        return per_exposure(read_values(y, n_rows), weight, exposure)

    def _restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        return (
            shrink_rates(tree, float(self._setting("rate_shrinkage"))) if self._setting("rate_shrinkage") > 0 else tree
        )

    def _held_out_target(self, target: Any, y: Any, n_rows: int) -> NDArray[Any]:
        values = read_values(y, n_rows)
        if values.shape[1] != target.shape[1]:
            raise ValueError(f"y_val has {values.shape[1]} outputs and y has {target.shape[1]}.")
        return values

    def _losses(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        if is_user(self.criterion):
            return row_losses(self.criterion, actual)

        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> NDArray[np.float64]:
            fitted, values = tree.flat_value[nodes], actual[rows]
            by_output: NDArray[np.float64] = (values - fitted) ** 2
            if self.criterion == "absolute_error":
                by_output = np.abs(values - fitted)
            elif self.criterion in RATE_CRITERIA:
                by_output = deviance(values, fitted)
            return np.asarray(by_output.mean(axis=1))

        return loss

    @lazy_for_collections()
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Value of each row: that of its leaf, or the mean over the trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        flat = self._by_blocks(X, lambda columns: self._fitted.predictions(columns, self._n_threads))
        return self._fitted.spread(flat)  # type: ignore[return-value]
