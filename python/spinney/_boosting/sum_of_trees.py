"""Estimators that are sums of trees, of gradient boosting here or of another library, and one tree of such a sum."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.evaluation import Labels
from spinney._boosting.options.engine_options import read_monotone_of_outputs
from spinney._data import read_table
from spinney._data.types import Floats, TableLike
from spinney._estimator.fit_inputs import batches_with
from spinney._estimator.table_estimator import SequenceOfMembers, TableEstimator
from spinney._model.boosting import FittedBoosting
from spinney._model.lazy_sequence import LazyGrid
from spinney._model.tree import FittedTree
from spinney._tree.trees import DecisionTreeRegressor
from spinney.inspect import constraints

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues


class SumOfTrees(TableEstimator):
    """Trees that are added up: read one by one, and explained by what each column adds to the scores."""

    __len__, __iter__ = SequenceOfMembers.__len__, SequenceOfMembers.__iter__
    __getitem__, __bool__ = SequenceOfMembers.__getitem__, SequenceOfMembers.__bool__

    _model_attribute = "boosting_"
    boosting_: FittedBoosting
    n_jobs: int | None
    classes_: NDArray[Any] | Labels
    n_outputs_: int

    @property
    def _depth_limit(self) -> int | None:
        """Largest depth of a tree, if it was limited."""
        return None

    @property
    def _labels(self) -> Labels | None:
        """Labels of each output of a classifier."""
        if not self._is_class_target:
            return None
        return self.classes_ if isinstance(self.classes_, list) else [self.classes_]

    @abstractmethod
    def _read_offset(self, X: TableLike, offset: ArrayLike | None, n_rows: int) -> Floats | None:
        """Return what is added to the trees, (n_scores, n_rows)."""

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the loss that the splits save."""
        check_is_fitted(self)
        return self.boosting_.importances(self.n_features_in_)

    @property
    def estimators_(self) -> LazyGrid:
        """The trees as estimators, made on demand, by round and score: two classes have one score, more have one each.

        Each is a regression tree that predicts what it adds to the score, and can be printed and drawn as such: a
        leaf shows what it adds, learning rate and all, a split the mean of that over the rows that pass.
        """
        check_is_fitted(self)
        return LazyGrid((self.boosting_.n_rounds, self.boosting_.n_scores), self._tree_estimator)

    def _tree_estimator(self, t: int) -> BoostedTree:
        tree = BoostedTree(max_depth=self._depth_limit, unseen=self._unseen_policy, n_jobs=self.n_jobs)
        tree.criterion = "gain"
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
            Node numbers, counted within each tree. The third dimension is there in a classifier, with one score for
            two classes and else one for each, and wherever a row has several scores.
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
    ) -> ShapValues | list[ShapValues]:
        """Part each score among the columns: Shapley values by TreeSHAP.

        Starting from the base value, each column adds its value; together they are the score: the value itself, the
        logarithm of a mean (Poisson, gamma, Tweedie), the log-odds of the second of two classes, or one score per
        class, as `decision_function` gives them. Where a tree asks for a column that is not known yet, both ways are
        taken in proportion to the weight of the rows that the tree was grown on. So the base value is where scores
        start and what each tree adds on average over its own rows: the mean score of the rows learned from, or, where
        each tree drew its own (``subsample`` below 1), a number near it. Of several quantiles, the scores are those
        before a row's are put in order: where they cross, a prediction is the score of another quantile.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        interactions : bool, default=False
            Also compute what pairs of columns add together: n_features² numbers per row.
        background : table of shape (n_background, n_features), optional
            Rows that columns take their values from while they are not known (interventional values); the result is
            the mean over these rows, the base value their mean score. The time grows with their number: some
            hundred typical rows do. None: both ways by the weight of the rows, as above.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`: added to the base value of each row.

        Returns
        -------
        ShapValues
            Has `values`, `base_value` and, if asked for, `interactions`; with more than two classes, several quantiles
            or outputs, for each of these. A list of these if a classifier has several outputs.
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
        added = self._read_offset(X, offset, table.n_rows)
        explained = explain(
            self, table, interactions, background, of=self._score_in_words(), offset=None if added is None else added.T
        )
        names = self._explained_names()
        return replace(explained, output_names=names) if names and isinstance(explained, ShapValues) else explained

    def _explained_names(self) -> list[Any] | None:
        """Names of the scores of a regression that has several; None: their numbers."""
        return ["mean", "log of the standard deviation"] if self.boosting_.link == "normal" else None

    def _score_in_words(self) -> str:
        link = self.boosting_.link
        if link == "by_output":
            return "score of the class"
        labels = self._labels
        second = None if labels is None else labels[0][1]
        if link in ("logit", "half_logit"):
            return f"{'half the ' if link == 'half_logit' else ''}log-odds of class {second}"
        if link == "hinge" or link.startswith("focal "):
            return f"score of class {second}"
        words = {
            "normal": "score",
            "identity": "prediction",
            "log": "log of the prediction",
            "softmax": "score of the class",
        }
        return words.get(link, "prediction before quantiles are put in order")


class BoostedTree(DecisionTreeRegressor):
    """One step of a boosted model: a tree that predicts what it adds to the score, the learning rate included.

    It is made by ``model.estimators_`` and read like any decision tree: by `export_text`, `plot_tree`, `to_frame` and
    so on. Its impurity is minus the loss that a node's step saves, twice and per unit of weight, so that the gain of a
    split is what the split saves beyond it.
    """

    def fit(self, X: object, y: object, sample_weight: object = None, **more: object) -> NoReturn:
        """Refuse: the tree is part of a model."""
        raise TypeError("This tree is part of a boosted model. Fit the model, or a decision tree of its own.")

    def predict(self, X: object, **more: Any) -> NDArray[np.float64]:
        """Predict what the tree adds to the score of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            What it adds.
        """
        if not self.tree_.has_linear_leaves:
            return super().predict(X, **more)
        return self.tree_.predictions(self._columns(X), self._n_threads)[:, 0]
