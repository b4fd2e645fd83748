"""Estimators that are sums of trees, boosted here or imported from another library, and their single trees."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.evaluation import Labels
from spinney._boosting.options.engine_options import read_monotone_of_outputs
from spinney._cluster.collections import lazy_for_collections
from spinney._data import read_table
from spinney._data.display import with_article
from spinney._data.reproducible import log
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import only_if
from spinney._estimator.fit_inputs import batches_with
from spinney._estimator.table_estimator import SequenceOfMembers, TableEstimator
from spinney._model.boosting import FittedBoosting
from spinney._model.distributions import DISTRIBUTIONS
from spinney._model.lazy_sequence import LazyGrid
from spinney._model.links import is_of_ordered_classes, read_offset
from spinney._model.tree import FittedTree
from spinney._tree.trees import DecisionTreeRegressor
from spinney.inspect import constraints

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues


class SumOfTrees(TableEstimator):
    """A model that is a sum of trees: a sequence of trees, with Shapley values of its scores."""

    __len__, __iter__ = SequenceOfMembers.__len__, SequenceOfMembers.__iter__
    __getitem__, __bool__ = SequenceOfMembers.__getitem__, SequenceOfMembers.__bool__

    _model_attribute = "boosting_"
    boosting_: FittedBoosting
    n_jobs: int | None
    classes_: NDArray[Any]  # of several outputs a list
    n_outputs_: int

    @property
    def _depth_limit(self) -> int | None:
        """Maximum depth of a tree, if it is limited."""
        return None

    @property
    def _labels(self) -> Labels | None:
        """Class labels of each output of a classifier."""
        if not self._is_class_target:
            return None
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]

    @abstractmethod
    def _read_offset(self, X: TableLike, offset: ArrayLike | None, n_rows: int) -> Floats | None:
        """Return the scores that are added to the trees, (n_scores, n_rows)."""

    @abstractmethod
    def _scores(self, X: TableLike, offset: ArrayLike | None) -> Floats:
        """Return the scores of each row, (n_rows, n_scores), with the offset."""

    @property
    def feature_importances_(self) -> Floats:
        """Fraction of the total gain of the splits that is due to each column."""
        check_is_fitted(self)
        return self.schema_.credit_inputs(self.boosting_.importances(self.schema_.n_split_features))

    @property
    def estimators_(self) -> LazyGrid:
        """The trees as estimators, created on demand, by round and score (one per class if there are three or more).

        Each is a regression tree that predicts its contribution to the score, and can be printed and drawn as such: a
        leaf shows its contribution, including the learning rate, and a split the mean over its rows.
        """
        check_is_fitted(self)
        return LazyGrid((self.boosting_.n_rounds, self.boosting_.n_scores), self._tree_estimator)

    def _tree_estimator(self, t: int) -> BoostedTree:
        tree = BoostedTree(max_depth=self._depth_limit, unseen=self._unseen_policy, n_jobs=self.n_jobs)
        tree.set_params(criterion="gain")  # which a fit would refuse
        tree._set_fitted(self.schema_, FittedTree(self.boosting_.engine.tree(t), None, 1), {"n_outputs_": 1})
        return tree

    verify_constraints = constraints.verify_constraints

    def _constrained_directions(self, given: Any) -> list[list[int]]:
        return read_monotone_of_outputs(given, self.schema_, [1] * self.boosting_.n_outputs)

    def apply(self, X: TableLike) -> NDArray[np.int64]:
        """Leaf of each row in each tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_rounds) or (n_samples, n_rounds, n_scores)
            Node indices within each tree. Classifiers, and models with several scores per row, have the third
            dimension: one score for two classes, else one per class.
        """
        columns, view = self._columns(X), self.boosting_
        leaves = [view.engine.tree(t).apply(columns, self._n_threads) for t in range(view.n_trees)]
        found = np.column_stack(leaves).astype(np.int64)
        has_scores = self._is_class_target or view.n_scores > 1
        return found.reshape(columns.n_rows, -1, view.n_scores) if has_scores else found

    def shap_values(
        self,
        X: TableLike,
        *,
        interactions: bool = False,
        background: TableLike | None = None,
        offset: ArrayLike | None = None,
    ) -> ShapValues:
        """Explain each score by the contributions of the columns: Shapley values by TreeSHAP.

        The base value and the contributions add up to the score. Depending on the loss, the score is the prediction,
        the logarithm of a mean (Poisson, gamma, Tweedie) or of a median survival time (AFT), or, for classifiers, the
        score or scores that `decision_function` returns. Where the column of a split counts as unknown, both branches
        are followed, weighted by their training rows. The base value is thus the mean score of the training rows, or
        close to it if each tree was fitted to a sample of the rows. With several quantiles, predictions are sorted, but
        the explained scores are not: where the scores cross, the prediction of a quantile is the score of another one.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        interactions : bool, default=False
            Also compute the interactions of pairs of columns: n_features² numbers per row.
        background : table of shape (n_background, n_features), optional
            Rows that supply the values of unknown columns (interventional values); the result is the mean over these
            rows, and the base value is their mean score. The time grows with their number: a few hundred typical rows
            suffice. None: both branches are followed, as described above (path-dependent values).
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`: added to the base value of each row.

        Returns
        -------
        ShapValues
            Has `values`, `base_value` and, if requested, `interactions`; with more than two classes, several quantiles
            or outputs, for each of these. A list of these if a classifier has several outputs.

        See Also
        --------
        TreeExplainer : The same values with the interface of ``shap.TreeExplainer``.
        """
        from spinney.inspect.explain.shap import ShapValues, explain, joined

        check_is_fitted(self)
        batches = batches_with(X, self.schema_, offset)
        if batches is not None:
            return joined(
                [
                    self.shap_values(rows, interactions=interactions, background=background, offset=some)
                    for rows, some in batches
                ]
            )
        table = read_table(X)
        start = None if self._predicts_alone else self._explained_start(X, interactions, background)
        added = read_offset(offset, table.n_rows, self.boosting_.n_scores)
        explained = explain(
            self, table, interactions, background, of=self._score_in_words(), offset=None if added is None else added.T
        )
        if start is not None:
            explained = _sum_of(explained, start)
        names = self._explained_names()
        return replace(explained, output_names=names) if names and isinstance(explained, ShapValues) else explained

    def _explained_start(self, X: TableLike, interactions: bool, background: TableLike | None) -> ShapValues:
        """Return the SHAP values of the estimator of the initial scores; refuse those that are unknown."""
        is_number = self.boosting_.link == "identity" and self.boosting_.n_scores == 1
        if not (is_number and hasattr(self.init_, "shap_values")):
            raise ValueError(
                f"The scores start from predictions of {with_article(type(self.init_).__name__)}, whose "
                "contributions of columns are unknown. Explain regressions that start from trees of spinney, or fit "
                "with init='constant'."
            )
        options = {"interactions": True} if interactions else {}
        found: ShapValues = self.init_.shap_values(X, background=background, **options)
        return found

    def _explained_names(self) -> list[Any] | None:
        """Return the names of the scores of a regression with several scores; None: their numbers."""
        distribution = DISTRIBUTIONS.get(self.boosting_.link)
        return None if distribution is None else list(distribution.score_names)

    def _score_in_words(self) -> str:
        link = self.boosting_.link
        if link == "by_output":
            return "score of the class"
        if is_of_ordered_classes(link):
            return "score of the ordered classes"
        labels = self._labels
        second = None if labels is None else labels[0][1]
        if link in ("logit", "half_logit"):
            return f"{'half the ' if link == 'half_logit' else ''}log-odds of class {second}"
        if link == "hinge" or link.startswith("focal "):
            return f"score of class {second}"
        texts = {
            **dict.fromkeys(DISTRIBUTIONS, "score"),
            "identity": "prediction",
            "log": "log of the prediction",
            "log1p": "log of 1 + prediction",
            "softmax": "score of the class",
        }
        return texts.get(link, "prediction before sorting of quantiles")


def _has_one_output(model: SumOfTrees) -> bool:
    return model.boosting_.n_outputs == 1


def why_no_scores(model: SumOfTrees) -> str | None:
    if vars(model).get("n_outputs_", 1) == 1:
        return None
    return "is for one output: several outputs have different numbers of scores. Use predict_proba."


@lazy_for_collections(_has_one_output)
def predict_proba(self: SumOfTrees, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
    """Class probabilities of each row.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Columns in the order of `classes_`; a list of these if there are several outputs.
    """
    scores = self._scores(X, offset)
    return self.boosting_.by_output(self.boosting_.predicted(scores))


@lazy_for_collections(_has_one_output)
def predict_log_proba(self: SumOfTrees, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
    """Logarithm of the class probabilities.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        In the form of `predict_proba`.
    """
    found = predict_proba(self, X, offset=offset)
    return [log(proba) for proba in found] if isinstance(found, list) else log(found)


@only_if(why_no_scores)
@lazy_for_collections(_has_one_output)
def decision_function(self: SumOfTrees, X: TableLike, *, offset: ArrayLike | None = None) -> Floats:
    """Scores of each row: one number for two classes or ordered classes, otherwise one number per class.

    With the log loss, the score for two classes is the log-odds of the second class.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.
    offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
        As in `predict`.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes)
        Scores.
    """
    scores = self._scores(X, offset)
    return scores[:, 0] if scores.shape[1] == 1 else scores


class BoostedTree(DecisionTreeRegressor):
    """A tree of a boosted model, which predicts its contribution to the score, including the learning rate.

    It is an item of ``model.estimators_`` and works with the functions for decision trees: `export_text`, `plot_tree`,
    `to_frame` and so on. The impurity of a node is minus twice the decrease of the loss by its value, per unit of
    weight, so that the impurity decrease of a split is its gain.
    """

    def fit(self, X: object, y: object, sample_weight: object = None, **more: object) -> NoReturn:
        """Refuse: the tree is part of a model."""
        raise TypeError("This tree is part of a boosted model. Fit the model, or a new decision tree.")

    def predict(self, X: object, **more: Any) -> NDArray[np.float64]:
        """Predict the contribution of the tree to the score of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Contributions.
        """
        if not self.tree_.has_linear_leaves:
            return super().predict(X, **more)
        return self.tree_.predictions(self._columns(X), self._n_threads)[:, 0]


def _sum_of(one: ShapValues, other: ShapValues) -> ShapValues:
    """Return the SHAP values of the sum of two models of a number."""
    pairs = None
    if one.interactions is not None and other.interactions is not None:
        pairs = one.interactions + other.interactions
    base = one.base_value + other.base_value
    found = replace(one, values=one.values + other.values, base_value=base, interactions=pairs, response=None)
    if one.response is None:
        return found
    return replace(found, response=np.stack([found.base_values, found.predictions], axis=1).reshape(one.response.shape))
