"""What forests share: fitting, predicting, and the methods that look into a fitted forest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as fitted_attribute
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import read_table
from spinney._data.display import plural
from spinney._data.scan import client_of
from spinney._data.schema import Input
from spinney._data.types import ByClass, ColumnGroups, ColumnLike, Floats, RandomState, TableLike
from spinney._estimator.conformal import check_coverage, class_sets
from spinney._estimator.estimator import About, only_if
from spinney._estimator.fit_inputs import FitInputs
from spinney._estimator.held_out import KnownProba, KnownValues
from spinney._estimator.parameters import COUNT, estimator, parameter
from spinney._estimator.support import ColumnRanges, predict_or_abstain, predict_support
from spinney._estimator.target import check_same_target, read_weights, same_classes
from spinney._estimator.user_criterion import is_user
from spinney._forest import proximities
from spinney._forest.fitting import FitResult, ForestFit, ForestSettings, check_n_estimators
from spinney._forest.growing import ForestRequest, TreeGrower, balanced_weights
from spinney._forest.growth_record import GrowthRecord
from spinney._forest.importances import ImportanceOptions, OutOfBagTable, find_importances
from spinney._forest.prototypes import find_prototypes, prototype_frame
from spinney._forest.proximities import Kind, Proximities, RowLeaves
from spinney._forest.samples import Draws, Metric, OutOfBag
from spinney._forest.uncertainty import ForestIntervals, standard_errors
from spinney._model.file.container import field
from spinney._model.forest import FittedForest
from spinney._model.lazy_sequence import LazySequence
from spinney._model.saving.saved_model import SavedModel
from spinney._tree import growing
from spinney._tree.growing import GrowingEstimator
from spinney._tree.settings import check_stream
from spinney._tree.task import Classification, Regression, Target
from spinney.criteria import Criterion
from spinney.inspect.explain.coverage import coverage_report
from spinney.inspect.explain.importances import Importances

_NO_SURROGATES = (
    "The trees of a forest learn at each split to which side rows without a value go. For surrogate splits, fit a "
    "decision tree with missing='surrogate', or bagging of such trees."
)
_NO_PRUNING = "Trees of a forest are pruned by ccp_alpha alone; choose it by oob_score_."
_NONE_UNSEEN = "needs trees that have not seen every row, but with bootstrap=False all have. Fit with bootstrap=True."


def _why_no_rows(forest: BaseForest) -> str | None:
    is_kept = forest._growth.rows is not None if hasattr(forest, "forest_") else forest.keep_rows
    if is_kept:
        return None
    return "needs the training rows in the leaves, which this forest does not keep. Fit it with keep_rows=True."


def _why_none_unseen(forest: BaseForest) -> str | None:
    why = _why_no_rows(forest)
    if why is not None:
        return why
    has_unseen = forest._growth.draws is not None if hasattr(forest, "forest_") else forest.bootstrap
    return None if has_unseen else _NONE_UNSEEN


@dataclass(frozen=True)
class TrainingTable:
    """The rows that a forest was fitted on, read again.

    Attributes
    ----------
    columns : Table
    draws : Draws
    target : Target
    """

    columns: _engine.Table
    draws: Draws
    target: Target


@estimator
class BaseForest(GrowingEstimator):
    """What forests for classes and for numbers share."""

    n_estimators: int | str = parameter(COUNT, StrOptions({"auto"}), default=100, kw_only=False)
    max_features_per_tree: int | float | str | None = parameter(*growing.SOME_FEATURES, default=None)
    bootstrap: bool = parameter("boolean", default=False)
    replace: bool = parameter("boolean", default=True)
    max_samples: int | float | None = parameter(
        COUNT, Interval(RealNotInt, 0.0, None, closed="neither"), None, default=None
    )
    oob_score: Metric | bool = parameter("boolean", callable, str, default=False)
    warm_start: bool = parameter("boolean", default=False)
    verbose: int = parameter("verbose", default=0)
    shrinkage: float | str | None = parameter(growing.AT_LEAST_0, None, default=None)
    keep_rows: bool = parameter("boolean", default=False)
    oblique: int | str | None = parameter(COUNT, StrOptions({"auto"}), None, default=None)
    n_combined: int = parameter(growing.at_least(1), default=3)

    forest_: FittedForest = fitted_attribute(init=False)
    _growth: GrowthRecord = fitted_attribute(init=False)

    _other_library_advice: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("missing", "max_surrogates", "surrogate_style", "missing_fallback"), _NO_SURROGATES),
        **dict.fromkeys(("prune", "cv", "rule", "scoring", "risk", "cp", "validation_fraction"), _NO_PRUNING),
        **dict.fromkeys(("dialect", "max_competitors"), "It is for single trees: use a decision tree."),
        "checkpoint": (
            "Trees do not need each other: grow some, save the forest, and go on with warm_start=True and a larger "
            "n_estimators, in another process too; the bits are the same."
        ),
        "splitter": "Random forests search for the best cuts, extra-trees draw cuts at random: choose the class.",
    }
    _random_ties = True
    _model_attribute = "forest_"
    _oob_name: ClassVar[str]  # attribute of the out-of-bag predictions
    _tree_class: ClassVar[type[GrowingEstimator]]  # the estimator of one tree

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
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are. A stream is a table
            that is read some rows at a time, as by `spinney.scan`: y, sample_weight and groups may then be the names of
            its columns. Random forests need `max_bins` for it.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Their unit does not matter: a weight that is twice another's means that the row counts twice, a weight of 0
            leaves it out. If all weights are whole multiples of the smallest, samples are drawn as if rows were there
            so many times; other weights (and those of rows in groups) multiply how often a row is drawn.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are drawn, or left out, together.

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
        """Grow the forest; `grower` grows the trees, here or in other processes."""
        self._check_parameters()
        settings = self._settings
        task = self._task_class(settings)
        settings.check_samples(inputs.groups)
        settings.check_user_criterion()
        inputs = inputs.spooled(self.categorical_features)
        X = Input.of(inputs.X)
        check_stream(X, settings)
        is_warm = self.warm_start and hasattr(self, "forest_")
        earlier, record = (self.forest_, self._growth) if is_warm else (None, GrowthRecord())
        schema = self._learn_schema(X.table, continues=earlier is not None)
        weight = read_weights(inputs.sample_weight, X.n_rows)
        target = task.read(inputs.y, X.n_rows)
        if earlier is not None:
            check_same_target(target.attributes(), self.__dict__)
            check_n_estimators(self.n_estimators, earlier)
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max)) if earlier is None else record.seed
        encoded = schema.encode_inputs(X.table, unseen=self.unseen, estimator=type(self).__name__)
        fit = ForestFit(task, settings, schema, earlier, record, seed, grower)
        result = fit.run(encoded, target, inputs, weight)
        X.verify()
        self._keep(result)
        return self

    @property
    def _settings(self) -> ForestSettings:
        return ForestSettings.of(self, splitter=self._splitter, random_ties=True)

    def _keep(self, result: FitResult) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        for name in ("oob_score_", "oob_curve_", self._oob_name):
            self.__dict__.pop(name, None)
        self._set_schema(result.schema)
        self.forest_ = result.forest
        self._growth = result.record
        found = result.target.attributes() | self._task.cost_attributes(result.costs)
        found |= {"n_outputs_": result.n_outputs} | result.record.attributes(self._oob_name)
        self.__dict__.update(found)

    # ---- trees ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.estimators_)

    def __iter__(self) -> Iterator[GrowingEstimator]:
        return iter(self.estimators_)

    def __getitem__(self, t: int) -> GrowingEstimator:
        return self.estimators_[t]

    def __bool__(self) -> bool:
        return True  # else Python would ask __len__, which an unfitted estimator refuses

    @property
    def estimators_(self) -> Sequence[GrowingEstimator]:
        """The trees as estimators, made on demand."""
        check_is_fitted(self)
        return LazySequence(self.forest_.n_trees, self._tree_estimator)

    def _tree_estimator(self, t: int) -> GrowingEstimator:
        own = self.get_params(deep=False) | {"random_state": None}
        if own.get("class_weight") == "balanced_subsample":
            own["class_weight"] = None
        if own["shrinkage"] == "auto":
            own["shrinkage"] = self._growth.shrinkage
        kind: Any = self._tree_class
        tree: GrowingEstimator = kind(**{name: own[name] for name in kind._get_param_names() if name in own})
        names = ("classes_", "n_classes_", "n_outputs_", "cost_matrix_", "priors_")
        attributes = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if self._ranges is not None:
            attributes["_had_missing"] = self._ranges.has_missing.tolist()
        tree._set_fitted(self.schema_, self.forest_.tree(t), attributes)
        return tree

    @property
    def estimators_samples_(self) -> Sequence[NDArray[np.intp]]:
        """Rows that each tree was grown on, in ascending order, as often as they were drawn; made on demand."""
        check_is_fitted(self)
        samples = self._growth.samples(self.forest_.n_trees)
        return LazySequence(self.forest_.n_trees, self._draws.rows) if samples is None else samples

    @property
    def _draws(self) -> Draws:
        """The rows of each tree; AttributeError if every tree has all, or if they are not known."""
        if self._growth.draws is not None:
            return self._growth.draws
        if not self.bootstrap:
            raise AttributeError("With bootstrap=False every tree is grown on all rows. Fit with bootstrap=True.")
        raise AttributeError(
            "A model file does not keep which rows were drawn unless keep_rows=True. Pickle the model, or fit it again."
        )

    @property
    def _ranges(self) -> ColumnRanges | None:
        """What the training rows had in each column."""
        return self._growth.ranges

    apply = proximities.apply
    decision_path = proximities.decision_path

    def _about(self) -> About:
        n_trees, n_leaves, score = len(self), self.forest_.n_leaves, float(getattr(self, "oob_score_", math.nan))
        is_known, has_classes = math.isfinite(score), hasattr(self, "classes_")
        size = f"{plural(n_trees, 'tree')}, {plural(n_leaves, 'leaf')}"
        lines = {"forest": size}
        if is_known:
            name = "accuracy" if has_classes else "R²"
            lines[f"{name}, out of bag"] = f"{score:.1%}" if has_classes else f"{score:.4g}"
        return About(
            "forest",
            {"trees": n_trees, "leaves": n_leaves, "out_of_bag": score if is_known else None},
            lines,
            f"{size}, out-of-bag score {score:.3f}" if is_known else size,
            self.estimators_,
        )

    @property
    def feature_importances_(self) -> Floats:
        """Mean over the trees of each column's share in the decrease of the impurity."""
        check_is_fitted(self)
        return self.schema_.credit_inputs(self.forest_.importances(self.schema_.n_split_features))

    def importances(
        self,
        X: TableLike = None,
        y: ColumnLike = None,
        kind: str = "permutation",
        *,
        sample_weight: ColumnLike = None,
        loss: str | None = None,
        groups: ColumnGroups = None,
        n_repeats: int = 1,
        by_row: bool = False,
        random_state: RandomState = None,
    ) -> Importances:
        """How much each column matters, with standard errors over the trees.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows that the forest was fitted on, in the same order. Not needed for ``kind="impurity"``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their target.
        kind : {"permutation", "unbiased", "impurity"}, default="permutation"
            "permutation": mean over the trees of what the loss of their out-of-bag rows rises by when a column's values
            are permuted among these. "unbiased": decrease of the impurity (Gini, or variance) with one factor of its
            square from out-of-bag rows, so that columns without information get 0 on average, however many values they
            have. "impurity": share in the decrease of the impurity on the rows of the sample, as
            `feature_importances_`: columns with many values get too much. What an oblique split earns by the last two
            is shared out among its columns by the size of their coefficients, for columns of the same spread.
        sample_weight : array-like of shape (n_samples,), optional
            Weights as given to `fit`; rows of weight 0 are not judged.
        loss : str, optional
            With permutation. Classes: "error" (share of wrong classes, the default), "brier" (squared distance of the
            class shares from the class) or "margin" (share of the class less the largest other). Numbers:
            "squared_error" (the default) or "absolute_error". With several outputs, their mean; losses of numbers are
            first divided by what the best constant would lose (variance, or mean deviation from the median), so that
            an output in large units does not drown the others.
        groups : list of lists of columns, or dict of these, optional
            Columns that are permuted together (else: added up), by name or position. Other columns stand alone.
        n_repeats : int, default=1
            Permutations of each column in each tree.
        by_row : bool, default=False
            Also find the importances of single rows, with permutation.
        random_state : int, RandomState or None, default=None
            Seed of the permutations; None: the forest's own, so that the numbers are the same each time.

        Returns
        -------
        Importances
            The numbers, with `to_frame`, `plot` and `plot_rows`.

        See Also
        --------
        spinney.permutation_importance : The same idea on held-out rows, with any model and scorer.
        spinney.importance_frame : Impurity importances as a table.
        """
        check_is_fitted(self)
        options = ImportanceOptions(kind, loss, groups, n_repeats, by_row, random_state)
        options = options.checked(self._is_class_target, self.schema_.pool is not None)
        rows = None if kind == "impurity" else self._out_of_bag_table(X, y, sample_weight, kind)
        return find_importances(self.forest_, self.schema_, options, rows, self._growth.seed)

    def _out_of_bag_table(self, X: TableLike, y: ColumnLike, sample_weight: ColumnLike, kind: str) -> OutOfBagTable:
        if X is None or y is None:
            raise ValueError(f"kind={kind!r} is measured on the training rows. Pass X and y as given to fit.")
        if not self.bootstrap:
            raise ValueError(
                f"kind={kind!r} needs rows that trees have not seen, but with bootstrap=False every tree sees every "
                "row. Fit with bootstrap=True, or use spinney.permutation_importance on held-out rows."
            )
        if is_user(self.criterion):
            raise ValueError(
                f"kind={kind!r} compares the trees' predictions with y, which a criterion of your own may not allow. "
                "Use spinney.permutation_importance with a scorer of your own."
            )
        known = self._read_training_rows(X, y)
        weight = read_weights(sample_weight, known.columns.n_rows)
        if kind == "unbiased" and self._settings.class_weight != "balanced_subsample":
            weight = self._task.weights(known.target, y, weight)
        target, n_classes = known.target.array, known.target.n_classes
        if not n_classes:
            target = np.ascontiguousarray(target, dtype=np.float64)
        return OutOfBagTable(known.columns, known.draws.engine, target, n_classes, weight, self._n_threads)

    # ---- out of bag ----------------------------------------------------------------------------------

    def oob_errors(
        self, X: TableLike = None, y: ColumnLike = None, metric: Metric = None, *, sample_weight: ColumnLike = None
    ) -> Floats:
        """Out-of-bag error after each tree, by any metric.

        Parameters
        ----------
        X, y : optional
            The rows that the forest was fitted on, in the same order, and their target. Not needed if it was fitted
            with `oob_score` and `metric` is None.
        metric : callable, str or None, default=None
            ``metric(y, predicted)``, or a scikit-learn scorer by name; None: share of wrong classes, or mean squared
            error.
        sample_weight : array-like of shape (n_samples,), optional
            Weights for the error without a metric; rows of weight 0 are not judged.

        Returns
        -------
        ndarray of shape (n_trees,)
            Error, or value of the metric, over the rows that at least one tree so far has not seen; NaN if there is
            none.
        """
        check_is_fitted(self)
        if X is None or y is None:
            if metric is not None or self._growth.oob is None:
                raise ValueError(
                    "Pass X and y as they were at fit. Without them there is only the curve that oob_score=True keeps."
                )
            return np.array(self._growth.oob.curve)
        known = self._read_training_rows(X, y)
        return self._out_of_bag(known, read_weights(sample_weight, known.columns.n_rows)).curve(self.forest_, metric)

    def _out_of_bag(self, known: TrainingTable, weight: Floats | None) -> OutOfBag:
        return OutOfBag(known.columns, known.draws, known.target.array, known.target.classes, weight, self._n_threads)

    def _judge_unseen(
        self, X: TableLike, y: ColumnLike, weight: Floats | None
    ) -> tuple[NDArray[np.intp], Callable[[TableLike], KnownProba | KnownValues]]:
        """Return which training rows are out of bag, and what predicts them by row number if values change."""
        oob = self._out_of_bag(self._read_training_rows(X, y), weight)
        oob.add(self.forest_)
        return oob.rows, lambda changed: oob.with_values(self._columns(changed), self.forest_)

    def _read_training_rows(self, X: TableLike, y: ColumnLike) -> TrainingTable:
        """Read the rows that the forest was fitted on, and their target."""
        draws = self._draws
        columns = self._training_columns(X, draws.n_rows)
        target = self._task.read(y, columns.n_rows)
        if not same_classes(target.attributes(), self.__dict__):
            raise ValueError("y does not have the classes that the forest was fitted on. Pass the same rows.")
        if self._growth.row_fingerprint is not None:
            self._growth.row_fingerprint.check_target(target.array)
        return TrainingTable(columns, draws, target)

    def _training_columns(self, X: TableLike, n_rows: int, advice: str = "Pass the same rows.") -> _engine.Table:
        """Read the table that the forest was fitted on, as far as can be told."""
        check_is_fitted(self)
        inputs = self.schema_.encode_inputs(read_table(X), unseen=self.unseen, estimator=type(self).__name__)
        if inputs.n_rows != n_rows:
            raise ValueError(f"X has {inputs.n_rows} rows, but the forest was fitted on {n_rows}. {advice}")
        if self._growth.row_fingerprint is not None:
            self._growth.row_fingerprint.check_table(inputs, self._n_threads)
        return self.schema_.combined(inputs)

    # ---- proximities ---------------------------------------------------------------------------------

    def proximity(
        self,
        X: TableLike,
        Y: TableLike = None,
        *,
        kind: Kind = "all",
        n_neighbors: int | None = None,
        threshold: float | None = None,
        sparse: bool | None = None,
    ) -> Floats | csr_array:
        """Share of the trees in which two rows rest in the same leaf.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows. For all kinds but "all" and without `Y`, those that the forest was fitted on, in the same order.
        Y : table of shape (n_others, n_features), optional
            Rows to compare them to; None: each other. For all kinds but "all", the training rows; those of `X` are
            then new to every tree.
        kind : {"all", "oob", "in_bag", "gap"}, default="all"
            Trees that count: all; those grown without both rows; those grown on both; or, for each row of `X`, those
            grown without it, a tree's vote being shared among its sampled rows in the leaf. By "all", training rows
            of the same class look nearer than they are, because the trees were grown to part the classes.
        n_neighbors : int, optional
            Keep the largest proximities of each row. Without `Y` an entry is kept if it is among the largest of either
            row, so that the result is symmetric.
        threshold : float, optional
            Keep proximities of at least so much.
        sparse : bool, optional
            Whether to return a sparse matrix; None: if `n_neighbors` or `threshold` is given.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_samples) or (n_samples, n_others)
            Without `Y` symmetric, with 1 in the diagonal. For "gap" the rows add up to 1 and the diagonal is 0.
        """
        if kind not in proximities.KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, proximities.KINDS))}, not {kind!r}.")
        left = self._row_leaves(X, kind if Y is None else "all")
        right = left if Y is None else self._row_leaves(Y, kind)
        selection = proximities.Selection.of(n_neighbors, threshold, sparse, (left.n_rows, right.n_rows))
        return Proximities.between(left, right, kind, Y is None).select(selection, self.n_jobs)

    def outlier_score(self, X: TableLike, y: ColumnLike = None, *, kind: Kind = "all") -> Floats:
        """How far each row lies from the others of its class.

        The raw score is the number of rows over the sum of the squared proximities to the rows of the class; from it
        the median of the class is taken away, and the rest divided by the median absolute deviation (times 1.48, so
        that it is a standard deviation where the scores are normal). Scores above 10 deserve a look (Breiman and
        Cutler).

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their classes; each combination counts as one. None, and in a regression: all rows are one class.
        kind : {"all", "oob"}, default="all"
            Trees that count, as of `proximity`. "oob" needs the rows that the forest was fitted on.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores. Rows of a class whose raw scores do not differ score 0.
        """
        check_own_kind(kind)
        leaves = self._row_leaves(X, kind)
        classes = [np.arange(leaves.n_rows)]
        if y is not None and self._is_class_target:
            codes = self._task.read(y, leaves.n_rows).array
            class_of_row = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
            classes = [np.flatnonzero(class_of_row == c) for c in range(class_of_row.max() + 1)]
        return proximities.outlier_scores(leaves, classes, kind, self.n_jobs)

    def proximity_map(self, X: TableLike, n_components: int = 2) -> Floats:
        """Place rows so that their distances are near to the square root of 1 - proximity.

        Classical scaling of the proximities, by the leading directions of the centred matrix of rows and leaves: the
        proximities themselves are never written out.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        n_components : int, default=2
            Coordinates of each row.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Coordinates, the widest direction first. Their signs are chosen so that the largest is positive.
        """
        return proximities.map_rows(self._row_leaves(X, "all"), n_components)

    def leaf_embedding(self, X: TableLike, *, sparse_output: bool = True) -> csr_array | Floats:
        """Code each row by the leaves it rests in.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        sparse_output : bool, default=True
            Whether to return a sparse matrix.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n_leaves)
            One column per leaf, tree by tree: 1 where the row rests. A row's product with another, over the number of
            trees, is their proximity.
        """
        codes = self._row_leaves(X, "all").one_hot(self.forest_)
        return codes if sparse_output else codes.toarray()

    def _row_leaves(self, X: TableLike, kind: Kind) -> RowLeaves:
        """Find the leaves of rows; with how often they were drawn, where the kind asks for it."""
        if kind == "all":
            return RowLeaves.of(self.forest_, self._columns(X), self._n_threads)
        try:
            draws = self._draws
        except AttributeError as error:
            raise ValueError(f"kind={kind!r} needs to know which rows were drawn. {error}") from None
        advice = f"kind={kind!r} needs the same rows; for others use kind='all'."
        columns = self._training_columns(X, draws.n_rows, advice)
        return RowLeaves.of(self.forest_, columns, self._n_threads, draws.counts_by_row(self.forest_.n_trees))

    # ---- uncertainty ---------------------------------------------------------------------------------

    def _intervals(self) -> ForestIntervals:
        check_is_fitted(self)
        assert self._growth.rows is not None  # the methods that need the rows are there only then
        return ForestIntervals(self.forest_, self._growth.rows, self._n_threads)

    def _leaves(self, X: TableLike, oob: bool = False) -> NDArray[np.uint32]:
        """Leaves of rows; of training rows, in the trees that have not seen them."""
        if not oob:
            return self.forest_.engine.apply(self._columns(X), self._n_threads)
        known = self._intervals().known
        if known.draws is None:
            raise ValueError(f"oob=True {_NONE_UNSEEN}")
        if X is not None:
            self._training_columns(X, known.n_rows, "oob=True is for the training rows: pass these, or None.")
        return known.unseen_leaves

    @only_if(_why_no_rows)
    def leaf_weights(self, X: TableLike = None, *, oob: bool = False) -> csr_array:
        """Weight of each training row in the prediction for each row.

        A training row weighs in by its share of the leaf that both fall into, averaged over the trees; the weights of
        a row add up to 1. They are a conditional distribution of the target (Meinshausen 2006): ``leaf_weights(X) @ y``
        is the mean that a regression forest with squared error predicts.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        oob : bool, default=False
            For the training rows (`X` may be None): use only the trees that have not seen each.

        Returns
        -------
        csr_array of shape (n_samples, n_training_rows)
            Weights.
        """
        return self._intervals().weights(self._leaves(X, oob))

    def predict_standard_error(
        self, X: TableLike, method: str = "infinitesimal", *, corrected: bool = True
    ) -> Floats | list[Floats]:
        """Estimate how much each prediction would vary with another training sample of this size.

        It says how well the forest knows the mean (or the class shares), not how far single targets lie from it; for
        that see `predict_interval`. Estimated from which rows each tree has drawn (Wager, Hastie and Efron 2014).

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        method : {"infinitesimal", "jackknife"}, default="infinitesimal"
            The infinitesimal jackknife, or the jackknife after bootstrap. The first goes with samples with and without
            replacement, whole weights and strata, the second with replacement only. Groups are left out as a whole.
        corrected : bool, default=True
            Subtract what the limited number of trees adds to the variance on average. A variance that falls below 0
            is set to 0, with a warning: then more trees are needed.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_outputs) or (n_samples, n_classes), or a list of the last
            Standard errors, in the shape of `predict` for values and of `predict_proba` for classes.
        """
        check_is_fitted(self)
        try:
            draws = self._draws
        except AttributeError as error:
            raise ValueError(f"Standard errors need to know which rows each tree has drawn. {error}") from None
        if self.forest_.n_trees < 2:
            raise ValueError("Standard errors need at least 2 trees; hundreds are better.")
        return self.forest_.by_output(standard_errors(self.forest_, self._leaves(X), draws, method, corrected))

    predict_support = predict_support
    predict_or_abstain = predict_or_abstain
    coverage_report = only_if(_why_none_unseen)(coverage_report)

    def _effective_rows(self, columns: _engine.Table) -> Floats | None:
        if self._growth.rows is None:
            return None
        leaves = self.forest_.engine.apply(self.schema_.combined(columns), self._n_threads)
        return self._growth.rows.engine.effective_rows(leaves, self._n_threads)


class ForestClassification(Classification):
    """Classes as target of a forest, which may weight them in each sample."""

    def weights(self, target: Target, y: ColumnLike, weight: Floats | None) -> Floats | None:
        class_weight = self.settings.class_weight
        if class_weight == "balanced_subsample" and self.settings.bootstrap:
            return weight
        if class_weight not in ("balanced", "balanced_subsample"):
            return super().weights(target, y, weight)
        once = np.ones(len(target.array), dtype=np.uint32)
        return balanced_weights(target.array, target.n_classes, weight, once)


@estimator
class ForestClassifier(ClassifierMixin, BaseForest):
    """A forest for classes."""

    criterion: str | Criterion = parameter(*growing.CLASS_CRITERIA, default="gini")
    max_features: int | float | str | None = parameter(default="sqrt")
    class_weight: ByClass = parameter(dict, list, StrOptions({"balanced", "balanced_subsample"}), None, default=None)
    min_purity: float | None = parameter(*growing.PURITY, default=None)
    sampling: str | None = parameter(StrOptions({"balanced", "stratified"}), None, default=None)
    cost_matrix: ByClass = parameter("array-like", dict, None, default=None)
    priors: ByClass = parameter("array-like", dict, StrOptions({"uniform"}), None, default=None)
    cost_splits: str | None = parameter(*growing.COST_SPLITS, default="altered_priors")
    shrinkage: float | str | None = parameter(growing.AT_LEAST_0, StrOptions({"auto"}), None, default="auto")

    _is_class_target = True
    _task_class = ForestClassification
    predict_proba = growing.predict_proba
    predict_log_proba = growing.predict_log_proba
    _oob_name = "oob_decision_function_"
    _missing_attribute_reasons: ClassVar[dict[str, str]] = {
        "predict_quantiles": "is for numbers; this forest learns classes. Use predict_proba or predict_set.",
        "predict_cdf": "is for numbers; this forest learns classes. Use predict_proba or predict_set.",
        "predict_interval": "is for numbers; this forest learns classes. Use predict_set.",
    }

    def prototypes(
        self, X: TableLike, y: ColumnLike, *, n_prototypes: int = 1, n_neighbors: int | None = None, kind: Kind = "all"
    ) -> Any:
        """Describe typical rows of each class.

        For each class, the row with the most members of the class among its nearest is found; the prototype is the
        median of these members in each column, or their most frequent category. A further prototype is sought among
        the rows that belong to none yet.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        n_prototypes : int, default=1
            Prototypes of each class, as far as there are rows for them.
        n_neighbors : int, optional
            Nearest rows that are looked at, the row itself among them; None: as many as the smallest class has, at
            most 100.
        kind : {"all", "oob"}, default="all"
            Trees that count, as of `proximity`. "oob" needs the rows that the forest was fitted on.

        Returns
        -------
        frame
            Of polars or pyarrow if `X` is, else of pandas where it is installed. Three rows per prototype: the lower
            quartile, the median and the upper quartile, in the columns of `X`; categories have their most frequent
            value beside the median and none beside the quartiles. Before them stand the class, the number of the
            prototype (from 1), the statistic, the position of the row, and the number of its neighbours of the class.

        Examples
        --------
        >>> import spinney
        >>> X, y = spinney.datasets.load_penguins(as_frame="pandas")
        >>> forest = spinney.RandomForestClassifier(random_state=0).fit(X, y)
        >>> typical = forest.prototypes(X, y).query("statistic == 'median'")
        >>> typical[["class", "island", "bill_length_mm"]].to_string(index=False).splitlines()[0].split()
        ['class', 'island', 'bill_length_mm']
        """
        check_own_kind(kind)
        leaves = self._row_leaves(X, kind)
        target = self._task.read(y, leaves.n_rows)
        if target.classes is None or target.n_outputs > 1:
            raise ValueError("Prototypes are of one output's classes. Pass a forest and a y with one column.")
        found = find_prototypes(leaves, target.array[:, 0], kind, n_prototypes, n_neighbors, self.n_jobs)
        return prototype_frame(self.schema_, X, target.classes[0], found, type(self).__name__)

    @only_if(_why_none_unseen)
    def predict_set(self, X: TableLike, coverage: float = 0.9, method: str = "lac") -> NDArray[np.bool_]:
        """Set of classes that holds the class of each row with a probability of about `coverage`.

        Sets are calibrated by the out-of-bag class shares of the training rows. For new rows like these the coverage is
        close to what is asked for; as the shares of new rows come from all trees, this is not guaranteed.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Share of new rows whose set is to hold their class.
        method : {"lac", "aps"}, default="lac"
            - "lac": classes whose share is at least a threshold. The smallest sets on average; a set is empty where no
              class is likely enough.
            - "aps": the most probable classes until their shares exceed a threshold together: sets that grow where the
              classes are hard to tell apart. Never empty.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), bool
            Whether each class is in the set, in the order of `classes_`.
        """
        intervals = self._intervals()
        if self.n_outputs_ > 1:
            raise ValueError("predict_set is for one output. Fit one forest per output.")
        proba = self.forest_.predictions(self._columns(X), self._n_threads)
        return class_sets(proba, intervals.calibration.known_classes, coverage, method)


@estimator
class ForestRegressor(RegressorMixin, BaseForest):
    """A forest for numbers."""

    criterion: str | Criterion = parameter(*growing.NUMBER_CRITERIA, default="squared_error")
    max_features: int | float | str | None = parameter(default=1.0)
    rate_shrinkage: float = parameter(growing.AT_LEAST_0, default=0.0)

    _task_class = Regression
    _oob_name = "oob_prediction_"
    _missing_attribute_reasons: ClassVar[dict[str, str]] = {
        "predict_set": "is for classes; this forest learns numbers. Use predict_interval.",
    }

    @only_if(_why_no_rows)
    def predict_quantiles(
        self,
        X: TableLike = None,
        quantiles: ArrayLike = (0.025, 0.5, 0.975),
        *,
        oob: bool = False,
    ) -> Floats:
        """Quantiles of the target for each row, from the training rows in its leaves (a quantile regression forest).

        The q-quantile is the smallest target at or below which at least the share q of the weights of `leaf_weights`
        lies: the inverse of the distribution function, always a target that occurred.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        quantiles : float or sequence of float, default=(0.025, 0.5, 0.975)
            Between 0 and 1, in any order.
        oob : bool, default=False
            For the training rows (`X` may be None): use only the trees that have not seen each. NaN if all have.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles) or (n_samples, n_outputs, n_quantiles)
            Quantiles; without the last axis if `quantiles` is one number.
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if levels.ndim != 1 or len(levels) == 0 or not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"quantiles must be numbers between 0 and 1, not {quantiles!r}.")
        return _squeezed(self._intervals().quantiles(self._leaves(X, oob), levels), np.ndim(quantiles) == 0)

    @only_if(_why_no_rows)
    def predict_cdf(self, X: TableLike, values: ArrayLike) -> Floats:
        """Probability that the target is at most each of some values, for each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        values : float or sequence of float
            Where to evaluate the distribution function.

        Returns
        -------
        ndarray of shape (n_samples, n_values) or (n_samples, n_outputs, n_values)
            Shares of the weights of `leaf_weights`; without the last axis if `values` is one number.
        """
        at = np.atleast_1d(np.asarray(values, dtype=np.float64))
        return _squeezed(self._intervals().cdf(self._leaves(X), at), np.ndim(values) == 0)

    @only_if(_why_none_unseen)
    def predict_interval(self, X: TableLike, coverage: float = 0.9, method: str = "quantile") -> Floats:
        """Interval that holds the target of each row with a probability of about `coverage`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Share of new rows whose interval is to hold the target.
        method : {"quantile", "jackknife+", "residual"}, default="quantile"
            - "quantile": quantiles of the forest, widened or narrowed by what makes them cover the training rows out
              of bag (conformalised quantile regression): as wide as each row needs, and never beyond the targets that
              occurred, unless the training rows are too few to tell. Close to `coverage` in practice, without a
              guarantee for small samples.
            - "jackknife+": jackknife+ after bootstrap: nearly one width for all rows. For rows like the training rows
              (exchangeable with them) the coverage is at least 1 - 2 (1 - coverage) whatever the distribution, up to
              the randomness of the number of trees that the theorem asks for; in practice it is close to `coverage`.
              Work grows with the number of rows times the number of training rows.
            - "residual": the prediction plus and minus a quantile of the out-of-bag errors: one width for all rows.
              Guarantees as "quantile".

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends; infinite if there are too few training rows for the coverage. With several outputs
            each has its own interval.

        Notes
        -----
        Training rows that were drawn for every tree have no out-of-bag error and do not count; rows of weight 0 do not
        either, and others count as much as they weigh. Rows of a group are left out together, so that the errors are
        those on new groups.
        """
        check_coverage(coverage)
        return _squeezed(self._intervals().interval(self._columns(X), coverage, method), False)


def check_own_kind(kind: Kind) -> None:
    """Refuse kinds of proximities that are not of rows among themselves."""
    if kind not in ("all", "oob"):
        raise ValueError(f"kind must be 'all' or 'oob', not {kind!r}.")


def _squeezed(found: Floats, is_one: bool) -> Floats:
    """Return numbers by row, output and level without the axis of one output, and of one level if it is one."""
    found = found[:, 0] if found.shape[1] == 1 else found
    return np.asarray(found[..., 0] if is_one else found)
