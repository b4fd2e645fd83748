"""What a boosted model shows of itself: its trees, and what each column adds to each score."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.fitted.tree import BoostedTree
from spinney._boosting.losses.outputs import read_monotone_of_outputs
from spinney._data import Schema, read_table
from spinney._estimator.members import SequenceOfMembers
from spinney._estimator.streams import batches_with
from spinney._estimator.summary import About, counted
from spinney._estimator.table_estimator import TableEstimator
from spinney._model.boosting import FittedBoosting
from spinney._model.lazy_sequence import LazyGrid, LazySequence
from spinney._model.tree import FittedTree
from spinney.inspect.constraints import verify

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues

Floats = NDArray[np.float64]


class ReadableBoosting(SequenceOfMembers, TableEstimator):
    """Mixin for boosted models."""

    boosting_: FittedBoosting
    schema_: Schema

    @property
    def estimators_(self) -> LazyGrid:
        """The trees as estimators, made on demand, by round and score: two classes have one score, more have one each.

        Each is a regression tree that predicts what it adds to the score, and can be printed and drawn as such: a
        leaf shows what it adds, learning rate and all, a split the mean of that over the rows that pass.
        """
        check_is_fitted(self)
        return LazyGrid((self.boosting_.n_rounds, self.boosting_.n_scores), self._tree_estimator)

    def _tree_estimator(self, t: int) -> Any:
        model: Any = self
        tree = BoostedTree(max_depth=model.max_depth, unseen=model.unseen, n_jobs=model.n_jobs)
        tree.criterion = "gain"
        tree._keep(self.schema_, FittedTree(self.boosting_.engine.tree(t), None, 1), {"n_outputs_": 1})
        return tree

    verify_constraints = verify.verify_constraints

    def _constrained_directions(self, given: Any) -> list[list[int]]:
        return read_monotone_of_outputs(given, self.schema_, [1] * self.boosting_.n_outputs)

    def apply(self, X: Any) -> NDArray[np.int64]:
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
        model: Any = self
        columns, view = model._columns(X), self.boosting_
        leaves = [view.engine.tree(t).apply(columns, model._n_threads) for t in range(view.n_trees)]
        found = np.column_stack(leaves).astype(np.int64)
        has_scores = hasattr(self, "classes_") or view.n_scores > 1
        return found.reshape(columns.n_rows, -1, view.n_scores) if has_scores else found

    def shap_values(
        self, X: Any, *, interactions: bool = False, background: Any = None, offset: Any = None
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
        model: Any = self
        batches = batches_with(X, model.schema_, offset)
        if batches is not None:
            given = {"interactions": interactions, "background": background}
            return joined([self.shap_values(rows, offset=some, **given) for rows, some in batches])
        table = read_table(X)
        added = model._read_offset(X, offset, table.n_rows)
        explained = explain(
            self, table, interactions, background, of=self._score_in_words(), offset=None if added is None else added.T
        )
        levels = getattr(self, "_levels", None)
        if levels is not None and isinstance(explained, ShapValues):
            return replace(explained, output_names=levels)
        if self.boosting_.link == "normal" and isinstance(explained, ShapValues):
            return replace(explained, output_names=["mean", "log of the standard deviation"])
        return explained

    def _score_in_words(self) -> str:
        link = self.boosting_.link
        if link == "by_output":
            return "score of the class"
        classes: Any = getattr(self, "classes_", None)
        if link in ("logit", "half_logit"):
            return f"{'half the ' if link == 'half_logit' else ''}log-odds of class {classes[1]}"
        if link == "hinge" or link.startswith("focal "):
            return f"score of class {classes[1]}"
        words = {
            "normal": "score",
            "identity": "prediction",
            "log": "log of the prediction",
            "softmax": "score of the class",
        }
        return words.get(link, "prediction before quantiles are put in order")

    def _about(self) -> About:
        model: Any = self
        last, curve = model.n_iter_ - 1, getattr(self, "validation_score_", None)
        kept, tried, n_leaves = int(model.n_iter_), len(model.train_score_), self.boosting_.n_leaves
        loss, held_out = float(model.train_score_[last]), None if curve is None else float(curve[last])
        stopped = f" (the best of {tried})" if tried > kept else ""
        rounds, leaves = counted(kept, "round", "rounds"), counted(n_leaves, "leaf", "leaves")
        lines = {"boosting": f"{rounds}{stopped}, {leaves}", "loss, training rows": f"{loss:.4g}"}
        sentence = f"{rounds}, {leaves}; loss {loss:.4g}"
        if held_out is not None:
            lines["  held-out rows"] = f"{held_out:.4g}"
            sentence += f", {held_out:.4g} on held-out rows"
        because = getattr(self, "stopped_because_", None)
        if because is not None:
            lines["  stopped"] = because
            sentence += f"; {because}"
        size = {
            "loss": model.loss if isinstance(model.loss, str) else "your own",
            "rounds": kept,
            "rounds_tried": tried,
            "leaves": n_leaves,
        }
        size |= {"training_loss": loss, "held_out_loss": held_out, "stopped_because": because}
        trees = LazySequence(self.boosting_.n_trees, self._tree_estimator)
        return About("boosting", size, lines, sentence, trees, title_of_tree=self._title_of_tree)

    def _title_of_tree(self, t: int) -> str:
        model: Any = self
        n_scores = self.boosting_.n_scores
        of_score = f" for {self._score_names()[t % n_scores]}" if n_scores > 1 else ""
        return f"Round {t // n_scores + 1} of {model.n_iter_}, what it adds to the score{of_score}"

    def _score_names(self) -> list[str]:
        """Name what each score is of, where there are several."""
        model, view = cast(Any, self), self.boosting_
        classes, levels = getattr(self, "classes_", None), getattr(self, "_levels", None)
        if levels is not None:
            return [f"quantile {level:g}" for level in levels]
        if classes is None:
            normal = ["the mean", "the logarithm of the standard deviation"]
            return normal if view.link == "normal" else [f"output {k}" for k in range(view.n_scores)]
        if not isinstance(classes, list):
            return [str(label) for label in model.classes_]
        return [
            f"output {k}, {label}"
            for k, labels in enumerate(classes)
            for label in (labels[1:] if len(labels) == 2 else labels)
        ]
