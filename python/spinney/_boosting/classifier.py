"""Gradient boosting for classes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney._boosting.boosting import BaseBoosting
from spinney._boosting.fitted.intervals import CertainClasses
from spinney._boosting.fitted.probabilities import SaysShares
from spinney._boosting.fitted.refit import RefitsLeaves
from spinney._boosting.losses.loss import TWO_CLASS_LOSSES, Loss, class_loss, own_loss
from spinney._boosting.losses.outputs import loss_of_outputs
from spinney._boosting.losses.rows import LearningRows
from spinney._estimator.costs import ClassCosts, read_cost_matrix, read_priors
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import known_codes, read_some_classes
from spinney._model.boosting import FittedBoosting

Floats = NDArray[np.float64]


class GradientBoostingClassifier(SaysShares, CertainClasses, RefitsLeaves, ClassifierMixin, BaseBoosting):
    """Gradient boosting of classes.

    Trees are added one by one; each is fitted to the gradient of the loss at the scores so far. With more than two
    classes a round has one tree per class. The model is the same, bit for bit, for any number of threads and any kind
    of table.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
    >>> model = spinney.GradientBoostingClassifier(n_estimators=20).fit(X, y)
    >>> model.predict(X[:2])
    array(['Adelie', 'Adelie'], dtype=object)
    """

    _is_class_target = True

    @property
    def _is_several(self) -> bool:
        return getattr(self, "n_outputs_", 1) > 1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoosting._parameter_constraints,
        "leaves": [StrOptions({"single", "vector"})],
        "loss": [StrOptions({"log_loss", *TWO_CLASS_LOSSES}), HasMethods(["loss", "gradient"]), callable],
        "focal_gamma": [Interval(Real, 0.0, 10.0, closed="both")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "cost_matrix": ["array-like", dict, None],
        "priors": ["array-like", dict, StrOptions({"uniform"}), None],
        "init": [StrOptions({"constant", "zero"}), None, HasMethods(["fit", "predict_proba"])],
    }

    def __init__(
        self,
        loss: Any = "log_loss",
        *,
        focal_gamma: float = 2.0,
        n_estimators: int | str = "auto",
        effort: float | str = 0.5,
        learning_rate: float | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        growth: str = "leaf",
        leaves: str = "single",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float | str = "auto",
        min_hessian_leaf: float = 1e-3,
        min_gain: float = 0.0,
        min_impurity_decrease: float = 0.0,
        l2_regularization: float | str = "auto",
        l1_regularization: float = 0.0,
        max_step: float | str | None = "auto",
        subsample: float | str = "auto",
        sampling: str = "uniform",
        top_share: float = 0.2,
        n_parallel_trees: int = 1,
        drop_rate: float = 0.0,
        skip_drop: float = 0.0,
        max_drop: int | None = None,
        drop_by: str = "uniform",
        max_features: int | float | str | None = "auto",
        max_features_per_level: float = 1.0,
        max_features_per_tree: float = 1.0,
        max_bins: int | str = "auto",
        max_one_hot: int = 4,
        category_smoothing: float = 10.0,
        category_l2: float = 10.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        feature_costs: Any = None,
        feature_weights: Any = None,
        forced_splits: dict[str, Any] | None = None,
        hierarchical_shrinkage: float = 0.0,
        linear_leaves: bool = False,
        linear_l2: float = 5.0,
        init: Any = "constant",
        class_weight: Any = None,
        cost_matrix: Any = None,
        priors: Any = None,
        early_stopping: bool | None = None,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        warm_start: bool = False,
        verbose: int = 0,
        callbacks: Any = None,
        keep_interrupted: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, classes = read_some_classes(y, n_rows)
        is_one = len(classes) == 1
        most = max(map(len, classes))
        if self.loss != "log_loss" and (most > 2 or not is_one):
            name = repr(self.loss) if isinstance(self.loss, str) else "your own"
            found = most if is_one else f"{len(classes)} columns"
            raise ValueError(f"loss={name} is for two classes; y has {found}. Use loss='log_loss'.")
        learned: dict[str, Any] = {"n_outputs_": len(classes)}
        if is_one:
            return codes, learned | {"classes_": classes[0], "n_classes_": len(classes[0])}
        return codes, learned | {"classes_": classes, "n_classes_": np.array(list(map(len, classes)))}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str = "y") -> Floats:
        return known_codes(y, learned["classes_"], n_rows, name)

    def _all_weights(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> Floats | None:
        self._read_costs(target, weight, learned)
        if "_class_weight" not in learned:  # held-out rows count as the training rows do
            if self.class_weight is None:
                return weight
            if learned["n_outputs_"] > 1:
                raise ValueError("class_weight is for one output. Pass sample_weight, or fit one model per output.")
            learned["_class_weight"] = self._read_class_weight(target.astype(np.intp), learned["classes_"])
        by_row = learned["_class_weight"][target.astype(np.intp)]
        return np.ascontiguousarray(by_row if weight is None else weight * by_row)

    def _read_costs(self, target: Floats, weight: Floats | None, learned: dict[str, Any]) -> None:
        """Learn costs and priors, once: what rows of each class count for by these."""
        if "cost_matrix_" in learned:
            return
        learned |= {"cost_matrix_": None, "priors_": None}
        if self.cost_matrix is None and self.priors is None:
            return
        if learned["n_outputs_"] > 1:
            raise ValueError("cost_matrix and priors are for one output. Fit one model per output.")
        if self.priors is not None and self.class_weight is not None:
            raise ValueError("priors and class_weight both reweight the classes. Pass one of them.")
        classes = learned["classes_"]
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, classes)
        priors = None if self.priors is None else read_priors(self.priors, classes)
        costs = ClassCosts.of(cost, priors, None, target.astype(np.int32), weight, classes)
        learned |= {"cost_matrix_": costs.cost, "priors_": costs.priors}
        if costs.prior_factor is not None:
            learned["_class_weight"] = costs.prior_factor

    def _read_class_weight(self, codes: NDArray[np.intp], classes: NDArray[Any]) -> Floats:
        given = self.class_weight
        if isinstance(given, dict):
            unknown = [label for label in given if label not in set(classes.tolist())]
            if unknown:
                raise ValueError(f"class_weight has a class that y does not have: {unknown[0]!r}.")
            by_class = np.array([given.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
        else:
            by_class = len(codes) / (len(classes) * np.bincount(codes, minlength=len(classes)))
        if not (np.isfinite(by_class) & (by_class >= 0)).all():
            raise ValueError("class_weight must give finite weights of at least 0.")
        return by_class

    def _make_loss(self, learned: dict[str, Any]) -> Loss:
        if not isinstance(self.loss, str):
            return own_loss(self.loss, of_classes=True, n_jobs=self.n_jobs)
        classes = learned["classes_"]
        if isinstance(classes, list):
            return loss_of_outputs([class_loss("log_loss", len(labels)) for labels in classes], "by_output")
        return class_loss(self.loss, len(classes), float(self.focal_gamma))

    def _best_constant(self, loss: Loss, rows: LearningRows, n_scores: int) -> Floats:
        for part, target in zip(loss.parts, rows.targets(loss), strict=True):
            totals = np.bincount(target.astype(np.intp), rows.weight, max(2, part.n_scores))
            if (totals == 0).any():
                raise ValueError(
                    f"The class with index {int(np.argmin(totals))} in classes_ has no row of positive weight to learn "
                    "from. Drop its rows, or give some of them a weight."
                )
        return super()._best_constant(loss, rows, n_scores)

    def _predicted(self, scores: Floats, view: FittedBoosting, learned: dict[str, Any]) -> NDArray[Any]:
        classes = learned["classes_"]
        return view.labels(view.score_codes(scores), classes if isinstance(classes, list) else [np.asarray(classes)])
