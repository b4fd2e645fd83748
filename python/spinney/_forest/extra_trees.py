"""Forests whose cuts are drawn at random."""

from __future__ import annotations

from typing import Any, ClassVar

from spinney._forest.forest import ForestClassifier, ForestRegressor
from spinney._tree.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor
from spinney._tree.grow.estimator import GrowingEstimator


class ExtraTreesClassifier(ForestClassifier):
    """A forest for classes whose trees cut at random.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        Number of trees. "auto" adds trees until the out-of-bag error has settled: at least 100, at most 1000.
    criterion : {"gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio"} or object, default="gini"
        How splits are compared. "log_loss" is another name of "entropy"; "chi2" ranks splits by Pearson's statistic;
        "gain_ratio" is C4.5's. An object is a criterion of your own; see `spinney.Criterion`.
    max_depth : int, optional
        Most splits between the root and a leaf. None: no limit.
    min_samples_split : int or float, default=2
        Fewest rows that a node must hold to be split, where a row drawn several times counts once; a float is a share
        of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows in a leaf, where a row drawn several times counts once; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the weight of a tree's sample in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Number or share of the columns tried at each node, drawn at random. None: all. "sqrt" and "log2" count a column
        of k categories, three to ten, as k - 1 columns.
    max_features_per_tree : int, float, {"sqrt", "log2"} or None, default=None
        Columns drawn for each tree, which splits on no others: a number or a share. None: all.
    max_leaf_nodes : int, optional
        Grow best-first: always split the node that gains most, until there are this many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A split must lower the impurity, weighted by the node's share of the total weight, by at least this much.
    min_purity : float, optional
        Do not split a node in which one class has at least this share.
    bootstrap : bool, default=False
        Whether to grow each tree on a sample of the rows. False: on all rows.
    replace : bool, default=True
        Whether to draw rows with replacement. False draws a subsample: 63.2 % of the rows, unless `max_samples` says
        otherwise.
    max_samples : int, float or None, default=None
        Rows (or groups of rows) drawn for each tree: a number or a share, above 1 too where rows are drawn with
        replacement. None: as many as there are.
    sampling : {"balanced", "stratified"} or None, default=None
        Draw from each class separately: "balanced" takes as many rows of each as the smallest class has, "stratified"
        the same share of each.
    oob_score : bool, str or callable, default=False
        Whether to score out-of-bag predictions, which come for each row from those trees or members that have not seen
        it. True: by accuracy; or the name of a scikit-learn scorer, or ``metric(y, predicted)``.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn at random.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.
    verbose : int, default=0
        1 reports trees done, out-of-bag error and time left to standard error.
    warm_start : bool, default=False
        Whether `fit` keeps the trees of the last fit and adds to them. With unchanged parameters, the result is the
        forest that one fit would give; the random state is that of the first fit. Changed parameters of growth apply to
        the new trees; changes under which the old trees would make no sense (other rows, samples, categories or
        combinations of columns) are refused.
    class_weight : dict, list of dicts, "balanced", "balanced_subsample" or None, default=None
        Weights by class label. "balanced" gives all classes the same total weight in the table, each row counting by
        its `sample_weight`; "balanced_subsample" does so in the sample of each tree.
    ccp_alpha : float, default=0.0
        Penalty per leaf of minimal cost-complexity pruning, in the unit of the impurity.
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        1: the prediction must not fall as the column rises; -1: it must not rise; 0: no constraint.
    interaction_cst : list of groups of columns, "pairwise" or "no_interactions", optional
        Groups of columns: those that split on one path from the root must all be in one group. Columns that are in none
        form one more group.
    max_bins : int, optional
        Sort numbers into at most this many bins first, which is faster on large tables. None: exact splits.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as a value that
        follows the larger branch.
    min_samples_category : int, default=5
        Categories with fewer rows than this in the training table are one, in columns with more than ten such; what a
        node has not seen goes with them. A column that still has k > 10 categories at a node of n rows pays for what
        chance gives the best set of them: (k - 10) / (n - 1) of the impurity is taken off its gain. 1: neither.
    cost_matrix : array-like of shape (n_classes, n_classes), frame, or dict of dicts by label, optional
        Cost of predicting class j (column) for a row of class i (row). Costs guide the splits as class weights do.
    priors : array-like of shape (n_classes,), dict by label, "uniform" or None, default=None
        Class probabilities to assume. None: those of the training rows.
    feature_costs : array-like of positive numbers or dict by column name, optional
        Price of each column, by which the gain of its splits is divided. Columns that a dict leaves out cost 1.
    feature_weights : array-like of numbers or dict by column name, optional
        How likely each column is to be drawn, for a tree or for a node, in proportion; 0: never. Columns that a dict
        leaves out have weight 1.
    always_try : list of names or positions, or mask, optional
        Columns tried at every node, in addition to the `max_features` that are drawn from the others.
    shrinkage : float, "auto" or None, default="auto"
        Strength of hierarchical shrinkage, in rows: the class shares of each tree's nodes are drawn towards those of
        their ancestors, the more the fewer rows they rest on. "auto": 0.1, unless another of 0.01 to 300 clearly lowers
        the log loss of rows that trees have not seen; for trees that see all rows, 32 others are grown on samples to
        tell. With fewer than 50 trees, costs, priors or a criterion of your own it is 0.1. None: leaves say what their
        rows say, as in scikit-learn.
    keep_rows : bool, default=False
        Whether to keep the target of every training row and its leaf in each tree, at 2 or 4 bytes per row and tree.
        `predict_set`, `leaf_weights` and `coverage_report` need it.
    oblique : int, "auto" or None, default=None
        Split on random combinations of the columns of numbers, such as ``0.52 a − 0.31 b``, instead of single columns.
        This many are drawn once for the whole forest, and `max_features` of them are tried at each node (a share is one
        of the number of columns of the table). "auto": 1000, or fewer in tables of more than 16,000 rows, but at least
        100 and enough for every column to take part. Categories are split on as they are, and so are columns with so
        many missing values that most combinations with them would be missing; they are tried as often as without
        combinations.
    n_combined : int, default=3
        Columns in each combination.

    Attributes
    ----------
    classes_ : ndarray, or list of these
        Class labels, sorted; one array per output.
    n_classes_ : int, or ndarray of int
        Number of classes; one number per output.
    estimators_ : sequence
        The trees as estimators, made on demand.
    estimators_samples_ : sequence of ndarray
        Rows that each tree was grown on, found on demand.
    forest_ : FittedForest
        The trees as one set of arrays.
    shrinkage_ : float
        Strength of the shrinkage used; 0 if none.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total decrease of the impurity, averaged over the trees.
    oob_score_ : float
        With `oob_score`: accuracy, or the score asked for, of the out-of-bag predictions. Rows without one are left
        out.
    oob_curve_ : ndarray of shape (len(estimators_),)
        With `oob_score`: share of wrong classes among the out-of-bag predictions after each tree or member.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes), or a list of these
        With `oob_score`: class shares by the trees that have not seen the row; NaN if all have.
    cost_matrix_ : ndarray of shape (n_classes, n_classes), or None
        Costs in the order of `classes_`, if any were given.
    priors_ : ndarray of shape (n_classes,), or None
        Class probabilities that were assumed, if any were given.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    n_outputs_ : int
        Number of outputs.
    max_features_ : int
        Number of columns tried at each node.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    See Also
    --------
    RandomForestClassifier : The best cut of the columns tried, on samples of the rows.
    ExtraTreeClassifier : One tree.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ExtraTreesClassifier(n_estimators=20, random_state=0).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    _tree_class = ExtraTreeClassifier
    _neutral: ClassVar[dict[str, Any]] = {**GrowingEstimator._neutral, "splitter": "random"}

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        criterion: Any = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        max_features_per_tree: int | float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        min_purity: float | None = None,
        bootstrap: bool = False,
        replace: bool = True,
        max_samples: int | float | None = None,
        sampling: str | None = None,
        oob_score: Any = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        cost_matrix: Any = None,
        priors: Any = None,
        feature_costs: Any = None,
        feature_weights: Any = None,
        always_try: Any = None,
        shrinkage: float | str | None = "auto",
        keep_rows: bool = False,
        oblique: int | str | None = None,
        n_combined: int = 3,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_features_per_tree = max_features_per_tree
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.min_purity = min_purity
        self.bootstrap = bootstrap
        self.replace = replace
        self.max_samples = max_samples
        self.sampling = sampling
        self.oob_score = oob_score
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.min_samples_category = min_samples_category
        self.cost_matrix = cost_matrix
        self.priors = priors
        self.feature_costs = feature_costs
        self.feature_weights = feature_weights
        self.always_try = always_try
        self.shrinkage = shrinkage
        self.keep_rows = keep_rows
        self.oblique = oblique
        self.n_combined = n_combined


class ExtraTreesRegressor(ForestRegressor):
    """A forest for numbers whose trees cut at random.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        Number of trees. "auto" adds trees until the out-of-bag error has settled: at least 100, at most 1000.
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson"} or object, default="squared_error"
        How splits are compared. Leaves predict means, or medians with "absolute_error". An object is a criterion of
        your own; see `spinney.Criterion`.
    max_depth : int, optional
        Most splits between the root and a leaf. None: no limit.
    min_samples_split : int or float, default=2
        Fewest rows that a node must hold to be split, where a row drawn several times counts once; a float is a share
        of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows in a leaf, where a row drawn several times counts once; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the weight of a tree's sample in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Number or share of the columns tried at each node, drawn at random. None: all. "sqrt" and "log2" count a column
        of k categories, three to ten, as k - 1 columns.
    max_features_per_tree : int, float, {"sqrt", "log2"} or None, default=None
        Columns drawn for each tree, which splits on no others: a number or a share. None: all.
    max_leaf_nodes : int, optional
        Grow best-first: always split the node that gains most, until there are this many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A split must lower the impurity, weighted by the node's share of the total weight, by at least this much.
    bootstrap : bool, default=False
        Whether to grow each tree on a sample of the rows. False: on all rows.
    replace : bool, default=True
        Whether to draw rows with replacement. False draws a subsample: 63.2 % of the rows, unless `max_samples` says
        otherwise.
    max_samples : int, float or None, default=None
        Rows (or groups of rows) drawn for each tree: a number or a share, above 1 too where rows are drawn with
        replacement. None: as many as there are.
    oob_score : bool, str or callable, default=False
        Whether to score out-of-bag predictions, which come for each row from those trees or members that have not seen
        it. True: by R²; or the name of a scikit-learn scorer, or ``metric(y, predicted)``.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn at random.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.
    verbose : int, default=0
        1 reports trees done, out-of-bag error and time left to standard error.
    warm_start : bool, default=False
        Whether `fit` keeps the trees of the last fit and adds to them. With unchanged parameters, the result is the
        forest that one fit would give; the random state is that of the first fit. Changed parameters of growth apply to
        the new trees; changes under which the old trees would make no sense (other rows, samples, categories or
        combinations of columns) are refused.
    ccp_alpha : float, default=0.0
        Penalty per leaf of minimal cost-complexity pruning, in the unit of the impurity.
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        1: the prediction must not fall as the column rises; -1: it must not rise; 0: no constraint.
    interaction_cst : list of groups of columns, "pairwise" or "no_interactions", optional
        Groups of columns: those that split on one path from the root must all be in one group. Columns that are in none
        form one more group.
    max_bins : int, optional
        Sort numbers into at most this many bins first, which is faster on large tables. None: exact splits.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as a value that
        follows the larger branch.
    min_samples_category : int, default=5
        Categories with fewer rows than this in the training table are one, in columns with more than ten such; what a
        node has not seen goes with them. A column that still has k > 10 categories at a node of n rows pays for what
        chance gives the best set of them: (k - 10) / (n - 1) of the impurity is taken off its gain. 1: neither.
    feature_costs : array-like of positive numbers or dict by column name, optional
        Price of each column, by which the gain of its splits is divided. Columns that a dict leaves out cost 1.
    feature_weights : array-like of numbers or dict by column name, optional
        How likely each column is to be drawn, for a tree or for a node, in proportion; 0: never. Columns that a dict
        leaves out have weight 1.
    always_try : list of names or positions, or mask, optional
        Columns tried at every node, in addition to the `max_features` that are drawn from the others.
    shrinkage : float or None, default=None
        Strength of hierarchical shrinkage, in rows: the values of each tree's nodes are drawn towards those of their
        ancestors, the more the fewer rows they rest on. None: leaves say what their rows say.
    keep_rows : bool, default=False
        Whether to keep the target of every training row and its leaf in each tree, at 2 or 4 bytes per row and tree.
        `predict_quantiles`, `predict_interval`, `leaf_weights` and `coverage_report` need it.
    oblique : int, "auto" or None, default=None
        Split on random combinations of the columns of numbers, such as ``0.52 a − 0.31 b``, instead of single columns.
        This many are drawn once for the whole forest, and `max_features` of them are tried at each node (a share is one
        of the number of columns of the table). "auto": 1000, or fewer in tables of more than 16,000 rows, but at least
        100 and enough for every column to take part. Categories are split on as they are, and so are columns with so
        many missing values that most combinations with them would be missing; they are tried as often as without
        combinations.
    n_combined : int, default=3
        Columns in each combination.

    Attributes
    ----------
    estimators_ : sequence
        The trees as estimators, made on demand.
    estimators_samples_ : sequence of ndarray
        Rows that each tree was grown on, found on demand.
    forest_ : FittedForest
        The trees as one set of arrays.
    shrinkage_ : float
        Strength of the shrinkage used; 0 if none.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total decrease of the impurity, averaged over the trees.
    oob_score_ : float
        With `oob_score`: R², or the score asked for, of the out-of-bag predictions. Rows without one are left out.
    oob_curve_ : ndarray of shape (len(estimators_),)
        With `oob_score`: mean squared error of the out-of-bag predictions after each tree or member.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        With `oob_score`: means over the trees or members that have not seen the row; NaN if all have.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    n_features_in_ : int
        Number of columns.
    n_outputs_ : int
        Number of outputs.
    max_features_ : int
        Number of columns tried at each node.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.

    See Also
    --------
    RandomForestRegressor : The best cut of the columns tried, on samples of the rows.
    ExtraTreeRegressor : One tree.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import ExtraTreesRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> len(ExtraTreesRegressor(n_estimators=20, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).estimators_)
    20
    """

    _tree_class = ExtraTreeRegressor
    _neutral: ClassVar[dict[str, Any]] = {**GrowingEstimator._neutral, "splitter": "random"}

    def __init__(
        self,
        n_estimators: int | str = 100,
        *,
        criterion: Any = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 1.0,
        max_features_per_tree: int | float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        replace: bool = True,
        max_samples: int | float | None = None,
        oob_score: Any = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = None,
        categorical_features: Any = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        feature_costs: Any = None,
        feature_weights: Any = None,
        always_try: Any = None,
        shrinkage: float | None = None,
        keep_rows: bool = False,
        oblique: int | str | None = None,
        n_combined: int = 3,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_features_per_tree = max_features_per_tree
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.replace = replace
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.min_samples_category = min_samples_category
        self.feature_costs = feature_costs
        self.feature_weights = feature_weights
        self.always_try = always_try
        self.shrinkage = shrinkage
        self.keep_rows = keep_rows
        self.oblique = oblique
        self.n_combined = n_combined
