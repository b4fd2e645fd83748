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
from spinney._estimator.single_target import read_one_class
from spinney._estimator.table_estimator import SavedEstimator
from spinney._linear.classifier import LinearClassifier
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

    Parameters
    ----------
    estimators : list or dict, optional
        The members: estimators of any library, words of ``spinney fit --model`` such as "forest", or pairs of a name
        and one of these; or a dict from names to these. "drop" leaves a member out. None: a forest, extremely
        randomised trees, boosting and a linear model. Of other libraries' classifiers, members learn the codes of the
        classes, as in scikit-learn.
    final_estimator : estimator or str, optional
        What combines the members: an estimator, a word such as "boosting", or "greedy", which averages probabilities
        with weights that greedy selection finds by log loss. None: `LinearClassifier` without scaling, which is
        scikit-learn's logistic regression to rounding.
    layers : list of lists, optional
        Members of further layers, each given as `estimators`: they learn from the out-of-fold predictions of the layer
        before, by the same folds, and the final estimator from those of the last layer.
    cv : int, splitter, iterable of splits, array of fold numbers, or "prefit", default=5
        Folds. For a number, they are drawn by `random_state` with the classes spread evenly, or, if `fit` is given
        groups, such that each group stays in one fold. Rows that are never held out, such as the first of a time
        series, do not teach the final estimator; rows that are held out several times do so by their mean. None: 5.
        "prefit": the members are fitted already, and the final estimator learns from what they say of the rows of
        `fit`, which should be rows that they have not seen.
    stack_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        What members are asked for. "auto": for each the first of these three that it has. Of two classes, the
        probability of the second is one column; labels are given as their codes.
    passthrough : bool, default=False
        Whether the final estimator also gets the columns of the table, as they are: one of spinney takes strings and
        categories.
    refit : bool, default=True
        Whether members are fitted to all rows for prediction. False: the models of the folds are averaged, which saves
        one fit for each member.
    n_jobs : int, optional
        Threads. None: all that the process may use. Members run side by side; those that do not say how many threads
        they use share what is left, or, if they are of other libraries, use one. The result is the same for any number.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of the random states of members and the final estimator that are None.
    verbose : int, default=0
        1 reports fits done and time left to standard error; 2 reports every fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_classes_ : int, or ndarray of int
        Number of classes; one number per output.
    estimators_ : list of estimators
        The fitted members; without `refit`, an object for each that averages the models of its folds.
    named_estimators_ : Bunch
        The fitted members by name.
    final_estimator_ : estimator
        What combines the members; with `layers`, the stack of the next layer; of "greedy", an object with `weights_`.
    stack_method_ : list of str
        What each member is asked for.
    oof_predictions_ : ndarray of shape (n_samples, n_columns)
        What the final estimator has learned from: the members' predictions for rows that they have not seen; NaN for
        rows that were never held out. Model files do not keep them.
    oof_scores_ : dict of str to float
        Score of each member's out-of-fold predictions: accuracy.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

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
        self.estimators = estimators
        self.final_estimator = final_estimator
        self.layers = layers
        self.cv = cv
        self.stack_method = stack_method
        self.passthrough = passthrough
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[Any] | None, dict[str, Any]]:
        codes, classes = read_one_class(y, n_rows, "stacking")
        places = codes.astype(np.intp)
        return classes[places], places, {"classes_": classes, "n_classes_": len(classes)}

    def _default_final(self) -> SavedEstimator:
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
