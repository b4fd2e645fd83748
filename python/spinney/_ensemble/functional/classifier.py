"""Functional boosting of classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import HasMethods, StrOptions

from spinney._boosting.learning_rows import LearningRows
from spinney._ensemble.functional.functional import BaseFunctionalBoosting, Floats
from spinney._ensemble.functional.losses import FunctionalLoss, make_loss
from spinney._ensemble.functional.shapes import WithShapes
from spinney._estimator import class_scores
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import known_codes, read_one_class
from spinney._model.functional.model import FittedFunctions


class FunctionalBoostingClassifier(WithShapes, ClassifierMixin, BaseFunctionalBoosting):
    """Boosting of any weak learners, for any loss of classes.

    Scores start at the constants of least loss. Each round fits every weak learner to the negative slopes of the loss
    by least squares, takes the one that explains most, finds how far to go, and adds that, times the learning rate.
    With more than two classes there is a score for each, and a round adds a function to every one of them.

    See Also
    --------
    FunctionalBoostingRegressor : The same for numbers.
    GradientBoostingClassifier : Boosted trees, much faster and with more options.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier("splines", n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseFunctionalBoosting._parameter_constraints,
        "loss": [StrOptions({"log_loss", "exponential"}), HasMethods(["loss", "gradient"]), callable],
    }
    _is_class_target = True
    predict_proba = class_scores.predict_proba
    predict_log_proba = class_scores.predict_log_proba
    decision_function = class_scores.decision_function

    def __init__(
        self,
        learners: Any = "stumps",
        *,
        loss: Any = "log_loss",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        step: str = "line_search",
        subsample: float = 1.0,
        early_stopping: bool = False,
        scoring: Any = None,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        keep_best: bool = True,
        categorical_features: Any = None,
        unseen: str = "missing",
        verbose: int = 0,
        callbacks: Any = None,
        keep_interrupted: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "boosting")
        if isinstance(self.loss, str) and self.loss == "exponential" and len(classes) > 2:
            raise ValueError(f"loss='exponential' is for two classes; y has {len(classes)}. Use loss='log_loss'.")
        n_scores = 1 if len(classes) == 2 else len(classes)
        return codes, {"_n_scores": n_scores, "classes_": classes, "n_classes_": len(classes)}

    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str) -> Floats:
        return known_codes(y, learned["classes_"], n_rows, name)

    def _check_rows(self, rows: LearningRows) -> None:
        used = rows.target[rows.weights() > 0]
        lost = sorted(set(rows.target.tolist()) - set(used.tolist()))
        if lost:
            raise ValueError(
                f"The class with index {int(lost[0])} in classes_ has no row of positive weight to learn from. Drop "
                "its rows, or give some of them a weight."
            )

    def _make_loss(self, learned: dict[str, Any]) -> FunctionalLoss:
        return make_loss(self.loss, {}, len(learned["classes_"]))

    def _predicted(self, scores: Floats, view: FittedFunctions, learned: dict[str, Any]) -> NDArray[Any]:
        return view.labels(view.score_codes(scores), [np.asarray(learned["classes_"])])

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Scores of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            As `decision_function`.
        """
        inputs = self._inputs(X)
        for scores in self.functions_.staged_scores(inputs):
            yield scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Class probabilities of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        inputs = self._inputs(X)
        for scores in self.functions_.staged_scores(inputs):
            yield self.functions_.predicted(scores)
