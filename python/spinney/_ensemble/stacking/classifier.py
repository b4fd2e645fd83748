"""Stacking of classifiers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import StrOptions

from spinney._data.numeric.reproducible import log
from spinney._ensemble.combination.prediction import method_of
from spinney._ensemble.stacking.stacking import BaseStacking, Floats
from spinney._estimator.attributes import only_if
from spinney._estimator.estimator import Estimator
from spinney._estimator.parameters import store_parameters
from spinney._estimator.single_target import read_one_class
from spinney._linear.linear_model import LinearClassifier
from spinney._model.predictions import shares_said


def _final_lacks(method: str) -> Any:
    def why(model: Any) -> str | None:
        final = getattr(model, "final_estimator_", None)
        if final is None:
            if model.layers or model._is_greedy:
                return None if method != "decision_function" else "is not what averages have. Use predict_proba."
            final = model._final()
        if hasattr(final, method):
            return None
        return f"needs a final estimator that has it, and {type(final).__name__} has none."

    return why


class StackingClassifier(ClassifierMixin, BaseStacking):
    """Classifiers whose predictions are combined by another model, which learns from rows they have not seen.

    Each member is fitted to the rows outside each fold and asked about the rows in it; what it says there, its
    out-of-fold predictions, are the columns that the final estimator learns from. For new rows the members speak that
    were refitted to all rows. All fits run side by side on threads that share the table, and the ensemble is the same
    for any number of threads.

    See Also
    --------
    StackingRegressor : The same for numbers.
    VotingClassifier : Averages members without learning how.
    compare : Which of several models is best, and how sure one can be.

    References
    ----------
    D. H. Wolpert (1992). Stacked generalization. Neural Networks 5, 241-259.

    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes (2004). Ensemble selection from libraries of models. ICML.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.StackingClassifier(["tree", "forest", "linear"], random_state=0).fit(X, y)
    >>> {name: round(score, 2) for name, score in model.oof_scores_.items()}
    {'tree': 0.96, 'forest': 0.98, 'linear': 0.99}
    """

    _is_class_target = True
    _task = "Classifier"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseStacking._parameter_constraints,
        "stack_method": [StrOptions({"auto", "predict_proba", "decision_function", "predict"})],
    }

    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        layers: Any = None,
        cv: Any = 5,
        stack_method: str = "auto",
        passthrough: bool = False,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        store_parameters(self, locals())

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[Any] | None, dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "stacking")
        places = codes.astype(np.intp)
        return classes[places], places, {"classes_": classes, "n_classes_": len(classes)}

    def _default_final(self) -> Estimator:
        return LinearClassifier(scale=False)

    def _method(self, name: str, estimator: Any) -> str:
        return method_of(estimator, name, self.stack_method)

    def _scored(self, target: Any, answers: NDArray[Any], weight: Any) -> float:
        return float(accuracy_score(target, answers, sample_weight=weight))

    @only_if(_final_lacks("predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities by the final estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        meta = self._meta_of(X)
        return shares_said(self.final_estimator_, meta, self.classes_, self._final_coded)

    @only_if(_final_lacks("predict_proba"))
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
        return log(self.predict_proba(X))

    @only_if(_final_lacks("decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Decision function of the final estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, k)
            As the final estimator gives it.
        """
        meta = self._meta_of(X)
        return np.asarray(self.final_estimator_.decision_function(meta))
