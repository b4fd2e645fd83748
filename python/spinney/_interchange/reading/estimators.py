"""Estimators of imported models."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal, NoReturn, TypeAlias

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from spinney._boosting import sum_of_trees
from spinney._boosting.evaluation import predictions_of
from spinney._boosting.sum_of_trees import SumOfTrees
from spinney._data.display import plural
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._estimator.estimator import About
from spinney._estimator.parameters import N_JOBS, UNSEEN, estimator, parameter
from spinney._model.boosting import FittedImport
from spinney._model.file.codec import SavedState, text
from spinney._model.lazy_sequence import LazySequence
from spinney._model.links import read_offset

_MAX_LENGTH = 200  # of the entries on the origin of a model
_SCORE_NAMES = {
    "identity": "prediction",
    "log": "log of the prediction",
    "logistic": "log-odds of the prediction",
    "softmax": "score of the class",
}


@estimator
class Imported(SumOfTrees):
    """A sum of trees fitted by another library."""

    _saved = SavedState(
        "imported",
        {"source_": text(_MAX_LENGTH, key="source"), "objective_": text(_MAX_LENGTH, key="objective")},
    )
    unseen: Literal["missing", "error", "other"] = parameter(UNSEEN, default="missing")
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    boosting_: FittedImport = field(init=False)
    source_: str = field(init=False)
    objective_: str = field(init=False)

    def fit(self, X: TableLike, y: ColumnLike = None) -> NoReturn:
        """Raise TypeError: the model is already fitted.

        Parameters
        ----------
        X, y : ignored
        """
        raise TypeError(
            f"{type(self).__name__} holds a model fitted by another library and cannot be fitted again. Fit a "
            "GradientBoostingClassifier or a GradientBoostingRegressor, or fit it in that library and import it."
        )

    # ---- predicting ----------------------------------------------------------------------------------

    def _read_offset(self, X: TableLike, offset: ColumnLike, n_rows: int) -> Floats | None:
        return read_offset(offset, n_rows, self.boosting_.n_scores)

    def _scores(self, X: TableLike, offset: ColumnLike = None) -> Floats:
        check_is_fitted(self)
        scores = self._by_blocks(X, lambda columns: self.boosting_.scores(columns, self._n_threads))
        added = self._read_offset(X, offset, len(scores))
        return scores if added is None else scores + added.T

    def predict(self, X: TableLike, *, offset: ColumnLike = None) -> NDArray[Any]:
        """Predict the class or the number of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Initial scores, to which those of the trees are added.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels or numbers.
        """
        return predictions_of(self.boosting_, self._scores(X, offset), self._labels)

    # ---- inspection -------------------------------------------------------------------------------------

    def _score_in_words(self) -> str:
        link, labels = self.boosting_.link, self._labels
        if link == "logit" and labels is not None:
            return f"log-odds of class {labels[0][1]}"
        return _SCORE_NAMES.get(link.partition(" ")[0], "score")

    def _about(self) -> About:
        view = self.boosting_
        rounds, leaves = plural(view.n_rounds, "round"), plural(view.n_leaves, "leaf")
        size = {
            "source": self.source_,
            "objective": self.objective_,
            "rounds": view.n_rounds,
            "trees": view.n_trees,
            "leaves": view.n_leaves,
        }
        lines = {"imported from": f"{self.source_}, {self.objective_}", "boosting": f"{rounds}, {leaves}"}
        trees = LazySequence(view.n_trees, self._tree_estimator)
        sentence = f"from {self.source_}: {rounds}, {leaves}"
        return About("boosting", size, lines, sentence, trees, title_of_tree=self._title_of_tree)

    def _title_of_tree(self, t: int) -> str:
        n_scores, labels = self.boosting_.n_scores, self._labels
        of = "" if n_scores == 1 else f" for {t % n_scores if labels is None else labels[0][t % n_scores]}"
        return f"Round {t // n_scores + 1} of {self.boosting_.n_rounds}, what it adds to the score{of}"


@estimator
class ImportedClassifier(ClassifierMixin, Imported):
    """A classifier fitted by another library, imported by `spinney.from_xgboost` and similar functions.

    It predicts like the original and can be inspected, explained, drawn and saved like spinney's boosted models; the
    library is no longer needed.

    See Also
    --------
    from_xgboost, from_lightgbm, from_catboost, from_sklearn, from_treelite : Import functions.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> theirs = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    >>> ours = spinney.from_sklearn(theirs)
    >>> bool((ours.predict(X) == theirs.predict(X)).all())
    True
    """

    _is_class_target = True

    predict_proba = sum_of_trees.predict_proba
    predict_log_proba = sum_of_trees.predict_log_proba
    decision_function = sum_of_trees.decision_function


@estimator
class ImportedRegressor(RegressorMixin, Imported):
    """A regressor or ranker fitted by another library, imported by `spinney.from_xgboost` and similar functions.

    It predicts like the original and can be inspected, explained, drawn and saved like spinney's boosted models; the
    library is no longer needed. Imported rankers predict scores.

    See Also
    --------
    from_xgboost, from_lightgbm, from_catboost, from_sklearn, from_treelite : Import functions.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> theirs = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    >>> ours = spinney.from_sklearn(theirs)
    >>> bool((abs(ours.predict(X) - theirs.predict(X)) < 1e-9).all())
    True
    """


# What the import functions return, as type checkers see it: most models are classifiers, and `Any` permits regressors.
ImportedModel: TypeAlias = ImportedClassifier | Any
