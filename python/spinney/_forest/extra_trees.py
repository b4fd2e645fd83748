"""Forests whose cuts are drawn at random."""

from __future__ import annotations

from typing import Any

from spinney._forest.base import ForestClassifier, ForestRegressor
from spinney._tree.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor


class ExtraTreesClassifier(ForestClassifier):
    """A forest for classes whose trees cut at random.

    Parameters
    ----------
    n_estimators : int or "auto", default=100
        Number of trees. "auto" adds trees until the out-of-bag error has settled: at least 100, at most 1000.
    criterion : {"gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio"} or object, default="gini"
        Measure of a split, as of `DecisionTreeClassifier`. An object is a criterion of your own; see
        `spinney.Criterion`.
    max_depth : int, optional
        Most splits between the root and a leaf of a tree.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Fewest rows in a node that is split, and in a leaf, each row counted once; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weight of a sample in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Columns tried at each node, drawn at random unless all are.
    max_features_per_tree : int, float, {"sqrt", "log2"} or None, default=None
        Columns that a tree may use at all, drawn at random for each; None: all.
    max_leaf_nodes : int, optional
        Grow each tree best-first until it has this many leaves.
    min_impurity_decrease : float, default=0.0
        A split must lower the impurity by this much, weighted by the node's share of the total weight.
    min_purity : float, optional
        Do not split a node whose majority class has at least this share.
    bootstrap : bool, default=False
        Grow each tree on a sample of the rows. False: on all of them.
    replace : bool, default=True
        Draw rows with replacement. False draws a subsample: 63.2 % of the rows unless `max_samples` says otherwise.
    max_samples : int, float or None, default=None
        Rows (or groups) drawn for each tree: a number or a share; None: as many as there are.
    sampling : {"balanced", "stratified"} or None, default=None
        Draw from each class in its own right: as many rows as the smallest class has, or in proportion.
    oob_score : bool, str or callable, default=False
        Judge the forest by rows that trees have not seen: by the accuracy, a scikit-learn scorer by name, or
        ``metric(y, predicted)``.
    random_state : int, RandomState or None, default=None
        Seed of samples, columns and cuts.
    n_jobs : int, optional
        Threads; None: all that the process may use. The forest is the same for any number.
    verbose : int, default=0
        1 reports trees done, out-of-bag error and time left to standard error.
    warm_start : bool, default=False
        Keep the trees of the last fit and add to them: the forest becomes what it would have been at once, by the
        random state of the first fit. Parameters of growth apply to the trees added; what would leave the earlier
        ones without a meaning (other rows, samples, categories or combinations of columns) is refused.
    class_weight : dict, list of dicts, "balanced", "balanced_subsample" or None, default=None
        Weights by class label. "balanced": such that the classes weigh the same in the table, each row counting by its
        `sample_weight`; "balanced_subsample": in the sample of each tree.
    ccp_alpha : float, default=0.0
        Penalty per leaf at which each tree is pruned.
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        Columns in which the prediction must not rise (-1) or fall (1).
    interaction_cst : list of groups of columns, "pairwise" or "no_interactions", optional
        Columns that may meet on a path. Columns in no group form one of their own.
    max_bins : int, optional
        Sort numbers into at most this many bins first: faster on large tables. None: exact.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be taken as categories. Strings and categories always are.
    unseen : {"missing", "error", "other"}, default="missing"
        What a category that did not occur in training means at prediction: a missing value, an error, or a value that
        follows the larger branch.
    cost_matrix : array-like of shape (n_classes, n_classes), frame, or dict of dicts by label, optional
        Cost of predicting class j (column) for a row of class i (row). It steers the splits as class weights do.
    priors : array-like of shape (n_classes,), dict by label, "uniform" or None, default=None
        Class probabilities to assume; None: as in the training rows.
    feature_costs : array-like of positive numbers or dict by column name, optional
        Price of each column: a split's gain is divided by its column's price. Columns that a dict leaves out cost 1.
    feature_weights : array-like of numbers or dict by column name, optional
        How likely each column is drawn, in proportion, wherever columns are drawn: for a tree, for a node. 0: never.
        Columns that a dict leaves out have weight 1.
    always_try : list of names or positions, or mask, optional
        Columns tried at every node besides the `max_features` that are drawn from the others.
    shrinkage : float or None, default=None
        Strength of hierarchical shrinkage: node values of each tree are drawn to their ancestors'.
    keep_rows : bool, default=False
        Keep the target and the leaf in each tree of every training row: 2 or 4 bytes per row and tree.
        `predict_set`, `leaf_weights` and `coverage_report` need it.
    oblique : int, "auto" or None, default=None
        Split on random combinations of the columns of numbers, such as ``0.52 a − 0.31 b``, instead of the columns:
        a pool of so many is drawn for the forest, of which `max_features` are tried at each node (a share is one of
        the table's columns). "auto": 1000, fewer in tables of more than 16,000 rows, at least 100 and enough to take
        up every column. Categories, and columns that lack so many values that most combinations with them would be
        missing, are split on as they are and tried as often as without a pool.
    n_combined : int, default=3
        Columns in each combination.

    Attributes
    ----------
    classes_ : ndarray, or list of these
        Labels, sorted; one array per output.
    n_classes_ : int, or ndarray of int
        Number of labels.
    estimators_ : sequence
        The trees as estimators, made on demand.
    estimators_samples_ : sequence of ndarray
        Rows that each tree was grown on, made on demand.
    forest_ : FittedForest
        The trees as one set of arrays.
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees of each column's share in the decrease of the impurity.
    oob_score_ : float
        With `oob_score`: accuracy, or the score asked for, of the out-of-bag predictions.
    oob_curve_ : ndarray of shape (n_trees,)
        With `oob_score`: share of wrong classes of the out-of-bag predictions after each tree.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes), or a list of these
        With `oob_score`: class shares by the trees that have not seen the row; NaN if all have.
    schema_ : Schema
        Columns, kinds and categories the forest was grown on.
    cost_matrix_ : ndarray of shape (n_classes, n_classes), or None
        Costs in the order of `classes_`, if any were given.
    priors_ : ndarray of shape (n_classes,), or None
        Class probabilities that were assumed, if any were given.
    n_features_in_, n_outputs_, max_features_ : int
        Columns, outputs, and columns tried at each node.
    feature_names_in_ : ndarray of str
        Column names, if the table had any.

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
    splitter = "random"

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
        cost_matrix: Any = None,
        priors: Any = None,
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
        Measure of a split, as of `DecisionTreeRegressor`. An object is a criterion of your own; see
        `spinney.Criterion`.
    max_depth : int, optional
        Most splits between the root and a leaf of a tree.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Fewest rows in a node that is split, and in a leaf, each row counted once; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weight of a sample in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Columns tried at each node, drawn at random unless all are.
    max_features_per_tree : int, float, {"sqrt", "log2"} or None, default=None
        Columns that a tree may use at all, drawn at random for each; None: all.
    max_leaf_nodes : int, optional
        Grow each tree best-first until it has this many leaves.
    min_impurity_decrease : float, default=0.0
        A split must lower the impurity by this much, weighted by the node's share of the total weight.
    bootstrap : bool, default=False
        Grow each tree on a sample of the rows. False: on all of them.
    replace : bool, default=True
        Draw rows with replacement. False draws a subsample: 63.2 % of the rows unless `max_samples` says otherwise.
    max_samples : int, float or None, default=None
        Rows (or groups) drawn for each tree: a number or a share; None: as many as there are.
    oob_score : bool, str or callable, default=False
        Judge the forest by rows that trees have not seen: by R², a scikit-learn scorer by name, or
        ``metric(y, predicted)``.
    random_state : int, RandomState or None, default=None
        Seed of samples, columns and cuts.
    n_jobs : int, optional
        Threads; None: all that the process may use. The forest is the same for any number.
    verbose : int, default=0
        1 reports trees done, out-of-bag error and time left to standard error.
    warm_start : bool, default=False
        Keep the trees of the last fit and add to them: the forest becomes what it would have been at once, by the
        random state of the first fit. Parameters of growth apply to the trees added; what would leave the earlier
        ones without a meaning (other rows, samples, categories or combinations of columns) is refused.
    ccp_alpha : float, default=0.0
        Penalty per leaf at which each tree is pruned.
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        Columns in which the prediction must not rise (-1) or fall (1).
    interaction_cst : list of groups of columns, "pairwise" or "no_interactions", optional
        Columns that may meet on a path. Columns in no group form one of their own.
    max_bins : int, optional
        Sort numbers into at most this many bins first: faster on large tables. None: exact.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be taken as categories. Strings and categories always are.
    unseen : {"missing", "error", "other"}, default="missing"
        What a category that did not occur in training means at prediction: a missing value, an error, or a value that
        follows the larger branch.
    feature_costs : array-like of positive numbers or dict by column name, optional
        Price of each column: a split's gain is divided by its column's price. Columns that a dict leaves out cost 1.
    feature_weights : array-like of numbers or dict by column name, optional
        How likely each column is drawn, in proportion, wherever columns are drawn: for a tree, for a node. 0: never.
        Columns that a dict leaves out have weight 1.
    always_try : list of names or positions, or mask, optional
        Columns tried at every node besides the `max_features` that are drawn from the others.
    shrinkage : float or None, default=None
        Strength of hierarchical shrinkage: node values of each tree are drawn to their ancestors'.
    keep_rows : bool, default=False
        Keep the target and the leaf in each tree of every training row: 2 or 4 bytes per row and tree.
        `predict_quantiles`, `predict_interval`, `leaf_weights` and `coverage_report` need it.
    oblique : int, "auto" or None, default=None
        Split on random combinations of the columns of numbers, such as ``0.52 a − 0.31 b``, instead of the columns:
        a pool of so many is drawn for the forest, of which `max_features` are tried at each node (a share is one of
        the table's columns). "auto": 1000, fewer in tables of more than 16,000 rows, at least 100 and enough to take
        up every column. Categories, and columns that lack so many values that most combinations with them would be
        missing, are split on as they are and tried as often as without a pool.
    n_combined : int, default=3
        Columns in each combination.

    Attributes
    ----------
    estimators_ : sequence
        The trees as estimators, made on demand.
    estimators_samples_ : sequence of ndarray
        Rows that each tree was grown on, made on demand.
    forest_ : FittedForest
        The trees as one set of arrays.
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees of each column's share in the decrease of the impurity.
    oob_score_ : float
        With `oob_score`: R², or the score asked for, of the out-of-bag predictions.
    oob_curve_ : ndarray of shape (n_trees,)
        With `oob_score`: mean squared error of the out-of-bag predictions after each tree.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        With `oob_score`: means over the trees that have not seen the row; NaN if all have.
    schema_ : Schema
        Columns, kinds and categories the forest was grown on.
    n_features_in_, n_outputs_, max_features_ : int
        Columns, outputs, and columns tried at each node.
    feature_names_in_ : ndarray of str
        Column names, if the table had any.

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
    splitter = "random"

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
        self.feature_costs = feature_costs
        self.feature_weights = feature_weights
        self.always_try = always_try
        self.shrinkage = shrinkage
        self.keep_rows = keep_rows
        self.oblique = oblique
        self.n_combined = n_combined
