"""The base classes of forests: fit, trees, importances, out-of-bag errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field as fitted_attribute
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import read_table
from spinney._data.display import plural
from spinney._data.scan import client_of
from spinney._data.types import ByClass, ColumnGroups, ColumnLike, Floats, RandomState, TableLike
from spinney._estimator.estimator import About, only_if
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.held_out import KnownProba, KnownValues
from spinney._estimator.parameters import COUNT, estimator, parameter
from spinney._estimator.support import ColumnRanges, predict_or_abstain, predict_support
from spinney._estimator.target import read_weights, same_classes
from spinney._estimator.user_criterion import is_user
from spinney._forest import proximities, uncertainty
from spinney._forest.fitting import ForestClassification, ForestFit, ForestSettings
from spinney._forest.growing import ForestRequest, TreeGrower
from spinney._forest.growth_record import GrowthRecord
from spinney._forest.importances import ImportanceOptions, find_importances
from spinney._forest.prototypes import prototypes
from spinney._forest.samples import Draws, Metric, OutOfBag
from spinney._model.file.container import field
from spinney._model.forest import FittedForest
from spinney._model.lazy_sequence import LazySequence
from spinney._model.saving.saved_model import SavedModel
from spinney._tree import growing
from spinney._tree.growing import GrowingEstimator
from spinney._tree.task import Regression, Target
from spinney._tree.tree_estimator import BaseTree
from spinney.inspect.explain.coverage import coverage_report
from spinney.inspect.explain.importances import Importances

_NO_SURROGATES = (
    "The trees of a forest learn at each split on which side missing values belong. For surrogate splits, fit a "
    "decision tree with missing='surrogate', or bagging of such trees."
)
_NO_PRUNING = "Trees of a forest are pruned by ccp_alpha alone; choose it by oob_score_."


@estimator
class BaseForest(GrowingEstimator):
    """A forest."""

    n_estimators: int | Literal["auto"] = parameter(COUNT, StrOptions({"auto"}), default=100, kw_only=False)
    max_features_per_tree: int | float | Literal["sqrt", "log2"] | None = parameter(
        *growing.SOME_FEATURES, default=None
    )
    bootstrap: bool = parameter("boolean", default=False)
    replace: bool = parameter("boolean", default=True)
    max_samples: int | float | None = parameter(
        COUNT, Interval(RealNotInt, 0.0, None, closed="neither"), None, default=None
    )
    oob_score: Metric | bool = parameter("boolean", callable, str, default=False)
    warm_start: bool = parameter("boolean", default=False)
    verbose: int | None = parameter("verbose", None, default=None)
    shrinkage: float | Literal["auto"] | None = parameter(growing.AT_LEAST_0, None, default=None)
    keep_rows: bool = parameter("boolean", default=False)
    oblique: int | Literal["auto"] | None = parameter(COUNT, StrOptions({"auto"}), None, default=None)
    n_combined: int = parameter(growing.at_least(1), default=3)

    forest_: FittedForest = fitted_attribute(init=False)
    _growth: GrowthRecord = fitted_attribute(init=False)

    _other_library_advice: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("missing", "max_surrogates", "surrogate_style", "missing_fallback"), _NO_SURROGATES),
        **dict.fromkeys(("prune", "cv", "rule", "scoring", "risk", "cp", "validation_fraction"), _NO_PRUNING),
        **dict.fromkeys(("dialect", "max_competitors"), "It is for single trees: use a decision tree."),
        "checkpoint": (
            "The trees are independent: grow some, save the forest, and continue with warm_start=True and a larger "
            "n_estimators, in another process too; the result is bit-identical."
        ),
        "splitter": "Random forests search for the best threshold, extra-trees draw it at random: choose the class.",
    }
    _random_ties = True
    _model_attribute = "forest_"
    _oob_name: ClassVar[str]  # attribute of the out-of-bag predictions
    _out_of_bag_class: ClassVar[type[OutOfBag]] = OutOfBag
    _tree_class: ClassVar[type[BaseTree]]  # the estimator of one tree

    def _to_header(self) -> dict[str, Any]:
        return {"forest": self._growth.to_json()}

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        record = GrowthRecord.from_json(field(header, "forest", dict), saved)
        return {"_growth": record} | record.attributes(cls._oob_name)

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(self, X: TableLike, y: ColumnLike, sample_weight: ColumnLike = None, *, groups: ColumnLike = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or stream
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values are supported. A stream is a table that is
            read in chunks, such as that of `spinney.scan`: y, sample_weight and groups may then be names of its
            columns. Random forests need `max_bins` for streams.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Relative weights: a row of twice the weight counts twice, and a weight of 0 leaves the row out. If all
            weights are whole multiples of the smallest, samples are drawn as if rows were repeated. Otherwise, and if
            there are groups, rows are drawn regardless of their weights, and the number of times that a row is drawn is
            multiplied by its weight.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are drawn together, or left out of a sample together.

        Returns
        -------
        self
            The fitted estimator.
        """
        inputs = FitInputs(X, y, sample_weight, groups=groups)
        if (client := client_of(X)) is None:
            return self._fit(inputs)
        from spinney._forest.distributed import fit_forest

        return fit_forest(client, self, inputs)

    def _fit(self, inputs: FitInputs, grower: TreeGrower = ForestRequest.grow) -> Self:
        """Grow the forest from rows in this process; `grower` grows the trees, here or on the workers of a cluster."""
        self._check_parameters()
        schema, attributes = ForestFit(self, grower).run(inputs)
        for name in ("oob_score_", "oob_curve_", self._oob_name):
            self.__dict__.pop(name, None)
        self._set_schema(schema)
        self.__dict__.update(attributes)
        return self

    @property
    def _settings(self) -> ForestSettings:
        return ForestSettings.of(self, splitter=self._splitter, random_ties=True)

    # ---- trees ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.estimators_)

    def __iter__(self) -> Iterator[BaseTree]:
        return iter(self.estimators_)

    def __getitem__(self, t: int) -> BaseTree:
        return self.estimators_[t]

    def __bool__(self) -> bool:
        return True  # otherwise Python calls __len__, which fails before fit

    @property
    def estimators_(self) -> Sequence[BaseTree]:
        """The trees as estimators, created on demand."""
        check_is_fitted(self)
        return LazySequence(self.forest_.n_trees, self._tree_estimator)

    @property
    def estimator_(self) -> BaseTree:
        """A tree with the settings of the forest's trees, not fitted."""
        check_is_fitted(self)
        own = self.get_params(deep=False) | {"random_state": None}
        if own.get("class_weight") == "balanced_subsample":
            own["class_weight"] = None
        if own["shrinkage"] == "auto":
            own["shrinkage"] = self._growth.shrinkage
        kind: Any = self._tree_class
        tree: BaseTree = kind(**{name: own[name] for name in kind._get_param_names() if name in own})
        return tree

    def _tree_estimator(self, t: int) -> BaseTree:
        tree = self.estimator_
        names = ("classes_", "n_classes_", "n_outputs_", "cost_matrix_", "priors_")
        attributes = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if self._ranges is not None:
            attributes["_had_missing"] = self._ranges.has_missing.tolist()
        tree._set_fitted(self.schema_, self.forest_.tree(t), attributes)
        return tree

    @property
    def estimators_samples_(self) -> Sequence[NDArray[np.intp]]:
        """Positions of the rows of each tree's sample, ascending, repeated as often as drawn; computed on demand."""
        check_is_fitted(self)
        samples = self._growth.samples(self.forest_.n_trees)
        return LazySequence(self.forest_.n_trees, self._draws.rows) if samples is None else samples

    @property
    def _draws(self) -> Draws:
        """The samples of the trees; AttributeError if every tree is grown on all rows, or if they are unknown."""
        if self._growth.draws is not None:
            return self._growth.draws
        if not self.bootstrap:
            raise AttributeError("With bootstrap=False every tree is grown on all rows. Fit with bootstrap=True.")
        raise AttributeError(
            "A model file stores which rows were drawn only with keep_rows=True. Pickle the model, or fit it again."
        )

    @property
    def _ranges(self) -> ColumnRanges | None:
        """Range of the training rows in each column."""
        return self._growth.ranges

    def staged_predict(self, X: TableLike) -> Iterator[NDArray[Any]]:
        """Yield the predictions of the first tree, of the first two, and so on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the form of `predict`.
        """
        columns = self._columns(X)
        for mean in self.forest_.staged_predictions(columns, self._n_threads):
            if self._is_class_target:
                classes = [self.classes_] if self.n_outputs_ == 1 else self.classes_
                yield self.forest_.labels(self.forest_.best_codes(mean), classes)
            else:
                yield self.forest_.by_output(mean)

    apply = proximities.apply
    decision_path = proximities.decision_path

    def _about(self) -> About:
        n_trees, n_leaves, score = len(self), self.forest_.n_leaves, float(getattr(self, "oob_score_", math.nan))
        is_known, has_classes = math.isfinite(score), hasattr(self, "classes_")
        size = f"{plural(n_trees, 'tree')}, {plural(n_leaves, 'leaf')}"
        entries = {"forest": size}
        if is_known:
            name = "accuracy" if has_classes else "concordance" if hasattr(self, "causes_") else "R²"
            entries[f"{name}, out of bag"] = f"{score:.1%}" if has_classes else f"{score:.4g}"
        return About(
            "forest",
            {"trees": n_trees, "leaves": n_leaves, "out_of_bag": score if is_known else None},
            entries,
            f"{size}, out-of-bag score {score:.3f}" if is_known else size,
            self.estimators_,
        )

    @property
    def feature_importances_(self) -> Floats:
        """Mean over the trees of each column's fraction of the decrease of the impurity."""
        check_is_fitted(self)
        return self.schema_.credit_inputs(self.forest_.importances(self.schema_.n_split_features))

    def importances(
        self,
        X: TableLike = None,
        y: ColumnLike = None,
        kind: Literal["permutation", "unbiased", "impurity"] = "permutation",
        *,
        sample_weight: ColumnLike = None,
        loss: Literal["error", "brier", "margin", "squared_error", "absolute_error"] | None = None,
        groups: ColumnGroups = None,
        n_repeats: int = 1,
        by_row: bool = False,
        random_state: RandomState = None,
    ) -> Importances:
        """Compute the importance of each column, with standard errors over the trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows that the forest was fitted on, in the same order. Not needed for ``kind="impurity"``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their target.
        kind : {"permutation", "unbiased", "impurity"}, default="permutation"
            "permutation": mean over the trees of the increase of their out-of-bag loss when a column's values are
            permuted among the out-of-bag rows. "unbiased": decrease of the impurity (Gini, or variance), in which one
            factor of each squared probability or mean is estimated on out-of-bag rows, so that columns without
            information get 0 on average, however many values they have. "impurity": fraction of the decrease of the
            impurity on the rows of the sample, as `feature_importances_`: columns with many values are overrated. With
            the last two kinds, the gain of an oblique split is divided among its columns in proportion to the size of
            their coefficients for standardised columns.
        sample_weight : array-like of shape (n_samples,), optional
            Weights as passed to `fit`; rows of weight 0 are not evaluated.
        loss : str, optional
            The loss of the permutation importance. For classes: "error" (misclassification rate, the default), "brier"
            (Brier score) or "margin" (probability of the class minus the largest other probability). For numeric
            targets: "squared_error" (the default) or "absolute_error". With several outputs, the mean of their losses;
            losses of numeric outputs are first divided by the loss of the best constant (variance, or mean deviation
            from the median), so that an output in large units does not dominate.
        groups : list of lists of columns, or dict of these, optional
            Columns that are permuted together, or whose decreases are added, by name or position. Other columns are
            groups of one.
        n_repeats : int, default=1
            Number of permutations of each column in each tree.
        by_row : bool, default=False
            Whether to compute the permutation importances of single rows too.
        random_state : int, RandomState or None, default=None
            Seed of the permutations; None: the seed of the forest, so that results are reproducible.

        Returns
        -------
        Importances
            The importances, with `to_frame`, `plot` and `plot_rows`.

        See Also
        --------
        spinney.permutation_importance : The same idea on held-out rows, with any model and scorer.
        spinney.importance_frame : Impurity importances as a table.
        """
        check_is_fitted(self)
        options = ImportanceOptions(kind, loss, groups, n_repeats, by_row, random_state)
        options = options.checked(self._is_class_target, self.schema_.pool is not None)
        rows = None if kind == "impurity" else self._importance_rows(X, y, sample_weight, kind)
        return find_importances(self.forest_, self.schema_, options, rows, self._growth.seed)

    def _importance_rows(self, X: TableLike, y: ColumnLike, sample_weight: ColumnLike, kind: str) -> OutOfBag:
        if X is None or y is None:
            raise ValueError(
                f"kind={kind!r} is measured on the training rows. Pass the X and y that were passed to fit."
            )
        if not self.bootstrap:
            raise ValueError(
                f"kind={kind!r} needs out-of-bag rows, but with bootstrap=False every tree is grown on all rows. Fit "
                "with bootstrap=True, or use spinney.permutation_importance on held-out rows."
            )
        if self.criterion == "log_rank":
            raise ValueError(
                f"kind={kind!r} is not for times until events. Use spinney.permutation_importance, with "
                "rows='out_of_bag' or on held-out rows."
            )
        if is_user(self.criterion):
            raise ValueError(
                f"kind={kind!r} compares predictions with y, but a user-defined criterion may predict something else. "
                "Use spinney.permutation_importance with your own scorer."
            )
        if kind == "unbiased" and self._settings.voting == "hard":
            raise ValueError(
                "kind='unbiased' needs the class probabilities of the leaves, which voting='hard' replaces by votes. "
                "Use kind='permutation', or fit with voting='soft'."
            )
        rows = self._out_of_bag(X, y, sample_weight)
        if kind == "unbiased" and self._settings.class_weight != "balanced_subsample":
            rows.weight = self._task.weights(Target(rows.target, rows.classes), y, rows.weight)
        return rows

    # ---- out of bag ----------------------------------------------------------------------------------

    def oob_errors(
        self, X: TableLike = None, y: ColumnLike = None, metric: Metric = None, *, sample_weight: ColumnLike = None
    ) -> Floats:
        """Compute the out-of-bag error after each tree, by any metric.

        Parameters
        ----------
        X, y : optional
            The rows that the forest was fitted on, in the same order, and their target. Not needed if it was fitted
            with `oob_score` and `metric` is None.
        metric : callable, str or None, default=None
            ``metric(y, predicted)``, or a scikit-learn scorer by name; None: misclassification rate, or mean squared
            error.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, used if `metric` is None. Rows of weight 0 are not evaluated.

        Returns
        -------
        ndarray of shape (n_trees,)
            Error, or value of the metric, over the rows that are out of bag for at least one tree so far; NaN if there
            are none.
        """
        check_is_fitted(self)
        if X is None or y is None:
            if metric is not None or self._growth.oob is None:
                raise ValueError(
                    "Pass the X and y that were passed to fit. Without them, only the curve of oob_score=True is "
                    "available."
                )
            return np.array(self._growth.oob.curve)
        return self._out_of_bag(X, y, sample_weight).curve(self.forest_, metric)

    def _out_of_bag(self, X: TableLike, y: ColumnLike, sample_weight: ColumnLike) -> OutOfBag:
        """Read the rows that the forest was fitted on, and their target."""
        draws = self._draws
        columns = self._training_columns(X, draws.n_rows)
        target = self._task.read(y, columns.n_rows)
        if not same_classes(target.attributes(), self.__dict__):
            raise ValueError("y does not have the classes that the forest was fitted on. Pass the same rows.")
        if self._growth.row_fingerprint is not None:
            self._growth.row_fingerprint.check_target(target.array)
        weight = read_weights(sample_weight, columns.n_rows)
        return self._out_of_bag_class(columns, draws, target.array, target.classes, weight, self._n_threads)

    def _out_of_bag_predictor(
        self, X: TableLike, y: ColumnLike, weight: Floats | None
    ) -> tuple[NDArray[np.intp], Callable[[TableLike], KnownProba | KnownValues]]:
        """Return which training rows are out of bag, and a function that predicts them with changed values."""
        oob = self._out_of_bag(X, y, weight)
        oob.add(self.forest_)
        return oob.rows, lambda changed: oob.with_values(self._columns(changed), self.forest_)

    def _training_columns(self, X: TableLike, n_rows: int, advice: str = "Pass the same rows.") -> _engine.Table:
        """Read the table that the forest was fitted on; refuse another table as far as it can be recognised."""
        check_is_fitted(self)
        inputs = self.schema_.encode_inputs(read_table(X), unseen=self.unseen, estimator=type(self).__name__)
        if inputs.n_rows != n_rows:
            raise ValueError(f"X has {inputs.n_rows} rows, but the forest was fitted on {n_rows}. {advice}")
        if self._growth.row_fingerprint is not None:
            self._growth.row_fingerprint.check_table(inputs, self._n_threads)
        return self.schema_.combined(inputs)

    proximity = proximities.proximity
    outlier_score = proximities.outlier_score
    proximity_map = proximities.proximity_map
    leaf_embedding = proximities.leaf_embedding

    # ---- uncertainty ---------------------------------------------------------------------------------

    leaf_weights = uncertainty.leaf_weights
    predict_standard_error = uncertainty.predict_standard_error
    predict_support = predict_support
    predict_or_abstain = predict_or_abstain
    coverage_report = only_if(uncertainty.why_no_out_of_bag_rows)(coverage_report)

    def _effective_rows(self, columns: _engine.Table) -> Floats | None:
        if self._growth.rows is None:
            return None
        leaves = self.forest_.engine.apply(self.schema_.combined(columns), self._n_threads)
        return self._growth.rows.engine.effective_rows(leaves, self._n_threads)


@estimator
class ForestClassifier(ClassifierMixin, BaseForest):
    """A forest for classes."""

    criterion: growing.ClassCriterion = parameter(*growing.CLASS_CRITERIA, default="gini")
    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(default="sqrt")
    class_weight: dict[Any, float] | list[dict[Any, float]] | Literal["balanced", "balanced_subsample"] | None = (
        parameter(dict, list, StrOptions({"balanced", "balanced_subsample"}), None, default=None)
    )
    voting: Literal["soft", "hard"] = parameter(StrOptions({"soft", "hard"}), default="soft")
    min_purity: float | None = parameter(*growing.PURITY, default=None)
    sampling: Literal["balanced", "stratified"] | None = parameter(
        StrOptions({"balanced", "stratified"}), None, default=None
    )
    cost_matrix: ByClass = parameter("array-like", dict, None, default=None)
    priors: ByClass = parameter("array-like", dict, StrOptions({"uniform"}), None, default=None)
    cost_splits: Literal["altered_priors", "generalised_gini"] | None = parameter(
        *growing.COST_SPLITS, default="altered_priors"
    )
    shrinkage: float | Literal["auto"] | None = parameter(
        growing.AT_LEAST_0, StrOptions({"auto"}), None, default="auto"
    )

    _is_class_target = True
    _task_class = ForestClassification
    predict_proba = growing.predict_proba
    predict_log_proba = growing.predict_log_proba
    prototypes = prototypes

    def staged_predict_proba(self, X: TableLike) -> Iterator[Floats]:
        """Yield the class probabilities of the first tree, of the first two, and so on.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes), or a list of these
            In the form of `predict_proba`.
        """
        columns = self._columns(X)
        for mean in self.forest_.staged_predictions(columns, self._n_threads):
            yield self.forest_.by_output(mean)

    predict_set = uncertainty.predict_set
    _oob_name = "oob_decision_function_"
    _missing_attribute_reasons: ClassVar[dict[str, str]] = {
        "predict_quantiles": "is for numeric targets; this forest predicts classes. Use predict_proba or predict_set.",
        "predict_cdf": "is for numeric targets; this forest predicts classes. Use predict_proba or predict_set.",
        "predict_interval": "is for numeric targets; this forest predicts classes. Use predict_set.",
    }


@estimator
class ForestRegressor(RegressorMixin, BaseForest):
    """A forest for a numeric target."""

    criterion: growing.RegressionCriterion = parameter(*growing.NUMBER_CRITERIA, default="squared_error")
    max_features: int | float | Literal["sqrt", "log2"] | None = parameter(default=1.0)
    shrinkage: float | None = parameter(default=None)
    rate_shrinkage: float = parameter(growing.AT_LEAST_0, default=0.0)

    _task_class = Regression
    predict_quantiles = uncertainty.predict_quantiles
    predict_cdf = uncertainty.predict_cdf
    predict_interval = uncertainty.predict_interval
    _oob_name = "oob_prediction_"
    _missing_attribute_reasons: ClassVar[dict[str, str]] = {
        "predict_set": "is for classes; this forest predicts numbers. Use predict_interval.",
    }
