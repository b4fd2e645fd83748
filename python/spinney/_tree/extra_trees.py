"""Single trees whose cuts are drawn at random."""

from __future__ import annotations

from typing import Any

from spinney._tree.tree_estimator import TreeClassifier, TreeRegressor


class ExtraTreeClassifier(TreeClassifier):
    """A tree for classes whose cuts are drawn at random and chosen by the criterion.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio"} or object, default="gini"
        How splits are compared. "log_loss" is another name of "entropy"; "chi2" ranks splits by Pearson's statistic;
        "gain_ratio" is C4.5's. An object is a criterion of your own; see `spinney.Criterion`.
    splitter : {"best", "random"}, default="random"
        Cut each column that is tried at its best place, or at one drawn at random.
    max_depth : int, optional
        Most splits between the root and a leaf. None: no limit.
    min_samples_split : int or float, default=2
        Fewest rows that a node must hold to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows in a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Number or share of the columns tried at each node, drawn at random. None: all. "sqrt" and "log2" count a column
        of k categories, three to ten, as k - 1 columns.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random: cuts, columns, held-out rows, folds. Without effect where nothing is.
    max_leaf_nodes : int, optional
        Grow best-first: always split the node that gains most, until there are this many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A split must lower the impurity, weighted by the node's share of the total weight, by at least this much.
    class_weight : dict, list of dicts, "balanced" or None, default=None
        Weights by class label. "balanced": in inverse proportion to the number of rows of each class.
    ccp_alpha : float, default=0.0
        Penalty per leaf of minimal cost-complexity pruning, in the unit of the impurity.
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        1: the prediction must not fall as the column rises; -1: it must not rise; 0: no constraint.
    interaction_cst : list of groups of columns, "pairwise" or "no_interactions", optional
        Groups of columns: those that split on one path from the root must all be in one group. Columns that are in none
        form one more group.
    min_purity : float, optional
        Do not split a node in which one class has at least this share.
    max_bins : int, optional
        Sort numbers into at most this many bins first, which is faster on large tables. None: exact splits.
    validation_fraction : float, optional
        Hold out this share of the rows, grow best-first, and keep as many splits as give the lowest error on these
        rows. You can also give `fit` rows of your own.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as a value that
        follows the larger branch.
    min_samples_category : int, default=5
        Categories with fewer rows than this in the training table are one, in columns with more than ten such; what a
        node has not seen goes with them. A column that still has k > 10 categories at a node of n rows pays for what
        chance gives the best set of them: (k - 10) / (n - 1) of the impurity is taken off its gain. 1: neither.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.

    Attributes
    ----------
    classes_ : ndarray, or list of these
        Class labels, sorted; one array per output.
    n_classes_ : int, or ndarray of int
        Number of classes; one number per output.
    tree_ : FittedTree
        The tree as arrays.
    shrinkage_ : float
        Strength of the shrinkage used; 0 if none.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total decrease of the impurity.
    cost_matrix_ : ndarray of shape (n_classes, n_classes), or None
        Costs in the order of `classes_`, if any were given.
    priors_ : ndarray of shape (n_classes,), or None
        Class probabilities that were assumed, if any were given.
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
    DecisionTreeClassifier : The best cut of every column.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import ExtraTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ExtraTreeClassifier(random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        *,
        criterion: Any = "gini",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = "sqrt",
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        min_purity: float | None = None,
        max_bins: int | None = None,
        validation_fraction: float | None = None,
        categorical_features: Any = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.min_purity = min_purity
        self.max_bins = max_bins
        self.validation_fraction = validation_fraction
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.min_samples_category = min_samples_category
        self.n_jobs = n_jobs


class ExtraTreeRegressor(TreeRegressor):
    """A tree for numbers whose cuts are drawn at random and chosen by the criterion.

    Parameters
    ----------
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson"} or object, default="squared_error"
        How splits are compared. Leaves predict means, or medians with "absolute_error". An object is a criterion of
        your own; see `spinney.Criterion`.
    splitter : {"best", "random"}, default="random"
        Cut each column that is tried at its best place, or at one drawn at random.
    max_depth : int, optional
        Most splits between the root and a leaf. None: no limit.
    min_samples_split : int or float, default=2
        Fewest rows that a node must hold to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows in a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Number or share of the columns tried at each node, drawn at random. None: all. "sqrt" and "log2" count a column
        of k categories, three to ten, as k - 1 columns.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random: cuts, columns, held-out rows, folds. Without effect where nothing is.
    max_leaf_nodes : int, optional
        Grow best-first: always split the node that gains most, until there are this many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A split must lower the impurity, weighted by the node's share of the total weight, by at least this much.
    ccp_alpha : float, default=0.0
        Penalty per leaf of minimal cost-complexity pruning, in the unit of the impurity.
    monotonic_cst : array-like of -1, 0, 1 or dict by column name, optional
        1: the prediction must not fall as the column rises; -1: it must not rise; 0: no constraint.
    interaction_cst : list of groups of columns, "pairwise" or "no_interactions", optional
        Groups of columns: those that split on one path from the root must all be in one group. Columns that are in none
        form one more group.
    max_bins : int, optional
        Sort numbers into at most this many bins first, which is faster on large tables. None: exact splits.
    validation_fraction : float, optional
        Hold out this share of the rows, grow best-first, and keep as many splits as give the lowest error on these
        rows. You can also give `fit` rows of your own.
    categorical_features : list of names or positions, or mask, optional
        Columns of numbers to be treated as categories. Columns of strings or of a categorical type always are.
    unseen : {"missing", "error", "other"}, default="missing"
        How to treat a category that did not occur in training: as a missing value, as an error, or as a value that
        follows the larger branch.
    min_samples_category : int, default=5
        Categories with fewer rows than this in the training table are one, in columns with more than ten such; what a
        node has not seen goes with them. A column that still has k > 10 categories at a node of n rows pays for what
        chance gives the best set of them: (k - 10) / (n - 1) of the impurity is taken off its gain. 1: neither.
    n_jobs : int, optional
        Threads. None: all that the process may use. The result is the same for any number.

    Attributes
    ----------
    tree_ : FittedTree
        The tree as arrays.
    shrinkage_ : float
        Strength of the shrinkage used; 0 if none.
    schema_ : Schema
        Columns, their kinds and their categories in the training table.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the total decrease of the impurity.
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
    DecisionTreeRegressor : The best cut of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import ExtraTreeRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> ExtraTreeRegressor(max_depth=1, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).get_n_leaves()
    2
    """

    def __init__(
        self,
        *,
        criterion: Any = "squared_error",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = 1.0,
        random_state: Any = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        max_bins: int | None = None,
        validation_fraction: float | None = None,
        categorical_features: Any = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_bins = max_bins
        self.validation_fraction = validation_fraction
        self.categorical_features = categorical_features
        self.unseen = unseen
        self.min_samples_category = min_samples_category
        self.n_jobs = n_jobs
