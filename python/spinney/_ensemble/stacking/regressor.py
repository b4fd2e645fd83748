"""Stacking of regressors."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from spinney._ensemble.stacking.stacking import BaseStacking
from spinney._estimator.single_target import read_one_value
from spinney._estimator.table_estimator import SavedEstimator
from spinney._linear.regressor import LinearRegressor


class StackingRegressor(RegressorMixin, BaseStacking):
    """Regressors whose predictions are combined by another model, which learns from rows they have not seen.

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
        What combines the members: an estimator, a word such as "boosting", or "greedy", which averages members with
        weights that greedy selection finds by squared error. None: `LinearRegressor` without scaling, which is
        scikit-learn's `RidgeCV` to rounding.
    layers : list of lists, optional
        Members of further layers, each given as `estimators`: they learn from the out-of-fold predictions of the layer
        before, by the same folds, and the final estimator from those of the last layer.
    cv : int, splitter, iterable of splits, array of fold numbers, or "prefit", default=5
        Folds. For a number, they are drawn by `random_state` with the classes spread evenly, or, if `fit` is given
        groups, such that each group stays in one fold. Rows that are never held out, such as the first of a time
        series, do not teach the final estimator; rows that are held out several times do so by their mean. None: 5.
        "prefit": the members are fitted already, and the final estimator learns from what they say of the rows of
        `fit`, which should be rows that they have not seen.
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
        Score of each member's out-of-fold predictions: R².
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    See Also
    --------
    StackingClassifier : The same for classes.
    VotingRegressor : Averages members without learning how.
    compare : Which of several models is best, and how sure one can be.

    References
    ----------
    D. H. Wolpert (1992). Stacked generalization. Neural Networks 5, 241-259.

    R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes (2004). Ensemble selection from libraries of models. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> import spinney
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = spinney.StackingRegressor(["tree", "linear"], "greedy", random_state=0).fit(X, y)
    >>> model.final_estimator_.weights_.round(1)
    array([1., 0.])
    """

    _task = "Regressor"

    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        layers: Any = None,
        cv: Any = 5,
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
        self.passthrough = passthrough
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _read_target(self, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[Any] | None, dict[str, Any]]:
        return read_one_value(y, n_rows, "stacking"), None, {}

    def _default_final(self) -> SavedEstimator:
        return LinearRegressor(scale=False)

    def _method(self, name: str, estimator: Any) -> str:
        return "predict"

    def _scored(self, target: Any, answers: NDArray[Any], weight: Any) -> float:
        return float(r2_score(target, answers, sample_weight=weight))
