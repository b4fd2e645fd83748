"""Decision trees for numbers."""

from __future__ import annotations

from typing import Any

from spinney._tree.prune.parameter import PruneParameter
from spinney._tree.rpart.preset import RpartTree, refuse_twice
from spinney._tree.rpart.preset import control as rpart_control
from spinney._tree.tree_estimator import TreeRegressor


class DecisionTreeRegressor(RpartTree, TreeRegressor):
    """A decision tree for numbers.

    Parameters
    ----------
    criterion : {"squared_error", "friedman_mse", "absolute_error", "poisson", "exponential"} or object, \
            default="squared_error"
        How splits are compared. Leaves predict means, or medians with "absolute_error". "exponential" is for survival:
        y has columns (time, event) or (start, stop, event), and leaves predict the hazard relative to that of all rows.
        An object is a criterion of your own; see `spinney.Criterion`.
    splitter : {"best", "random"}, default="best"
        Cut each column that is tried at its best place, or at one drawn at random.
    max_depth : int, optional
        Most splits between the root and a leaf. None: no limit.
    min_samples_split : int or float, default=2
        Fewest rows that a node must hold to be split; a float is a share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows in a leaf; a float is a share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the total weight in a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number or share of the columns tried at each node, drawn at random. None: all. "sqrt" and "log2" count a column
        of k categories, three to ten, as k - 1 columns.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random: cuts, columns, held-out rows, folds. Without effect where nothing is.
    max_leaf_nodes : int, optional
        Grow best-first: always split the node that gains most, until there are this many leaves. None: no limit.
    min_impurity_decrease : float, default=0.0
        A split must lower the impurity, weighted by the node's share of the total weight, by at least this much.
    ccp_alpha : float, default=0.0
        Penalty per leaf of minimal cost-complexity pruning, in the unit of the risk: see `risk`.
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
    rate_shrinkage : float, default=0.0
        With ``criterion="poisson"`` or ``"exponential"``: the assumed coefficient of variation of the leaves' rates
        around the overall rate. The smaller it is, the more leaf rates are drawn towards the overall rate; 0 leaves
        them as they are.
    feature_costs : array-like of positive numbers or dict by column name, optional
        Price of each column, by which the gain of its splits is divided. Columns that a dict leaves out cost 1.
    feature_weights : array-like of numbers or dict by column name, optional
        How likely each column is to be drawn where `max_features` draws some, in proportion; 0: never. Columns that a
        dict leaves out have weight 1.
    always_try : list of names or positions, or mask, optional
        Columns tried at every node, in addition to the `max_features` that are drawn from the others.
    missing : {"learned", "surrogate"}, default="learned"
        Where rows go that lack the value a split asks for: to the side that gives the larger gain, or where a surrogate
        sends them, a split of another column that imitates this one. Columns under a monotone constraint are never
        surrogates.
    max_surrogates : int, default=5
        Most surrogates kept for each split, with ``missing="surrogate"``.
    surrogate_style : {"all", "present"}, default="all"
        How the agreement of a surrogate counts rows that lack the surrogate's own value: as rows on which it disagrees,
        or not at all.
    missing_fallback : {"majority", "stop", "ignore"}, default="majority"
        What to do with a row that lacks the values of all surrogates too: send it to the larger side, or let it stop at
        the node. "ignore" lets it stop without asking the surrogates.
    max_competitors : int, default=0
        How many of the next-best splits to record for each split. They are shown, not used.
    prune : {"cv", "validation", "pessimistic"} or None, default=None
        How to prune the grown tree: by cross-validation, by the error on held-out rows (reduced error), or by C4.5's
        pessimistic estimate. A fitted tree can be pruned further, without growing it again: ``tree.pruned(alpha=...)``
        and ``tree.pruned(cp=...)`` return a copy.
    cv : int, splitter, iterable of splits, or array of fold numbers, default=10
        Folds of ``prune="cv"``. For a number, folds are drawn by `random_state` with the classes spread evenly, or, if
        `fit` is given groups, such that each group stays in one fold. Rows with a negative fold number are never held
        out.
    rule : {"min", "1se"}, float or None, default="1se"
        Which of the nested trees to keep: the one with the lowest cross-validated error, the smallest whose error is
        within one standard error of it, or within that many standard errors. None keeps the whole tree, and the table.
    scoring : str, callable or None, default=None
        A scikit-learn scorer by which cross-validation chooses; None: the tree's own loss. A scorer judges at most 100
        trees, spread over the sequence, and is not given the weights.
    risk : {"auto", "impurity", "error"}, default="auto"
        What pruning weighs against size: the impurity, as in scikit-learn, or the error or cost on the training rows.
        "auto": "error" if there are costs or priors, else "impurity".
    cp : float, optional
        `ccp_alpha` as a share of the root's risk: splits that do not lower the risk by more than this are pruned. 0
        prunes splits that gain nothing, a negative number prunes none.
    shrinkage : float, "cv" or None, default=None
        Strength of hierarchical shrinkage, which draws the values of nodes towards those of their ancestors, in units
        of row weight. "cv" chooses it by the criterion's loss in 5 folds drawn by `random_state`; the trees of the
        folds are pruned by `ccp_alpha` alone.
    dialect : {"rpart", "rpart_quirks"} or None, default=None
        Follow rpart's conventions to the digit, without or with its known errors; see `rpart`.
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
        Share of each column in the total decrease of the impurity. Surrogates are credited by adjusted agreement.
    n_features_in_ : int
        Number of columns.
    n_outputs_ : int
        Number of outputs.
    max_features_ : int
        Number of columns tried at each node.
    feature_names_in_ : ndarray of str
        Column names, if the table has any and all are strings.
    cp_table_ : ComplexityTable
        With ``prune="cv"``: the nested trees and their errors.
    alpha_ : float
        With ``prune="cv"``, or after ``pruned(...)``: the penalty per leaf that was used.
    rpart_ : RpartRecord
        With ``dialect``: what `printcp`, `summary`, `rpart_frame` and `rpart_splits` read.
    oof_predictions_ : ndarray, or list of these
        With ``prune="cv"``: class shares or values of each row, by the fold trees that were grown without it, pruned
        alike; their mean if there are several, NaN if there is none.

    See Also
    --------
    ExtraTreeRegressor : Cuts drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import DecisionTreeRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> DecisionTreeRegressor(max_depth=1, random_state=0).fit(X, [1, 1, 1, 5, 5, 5]).get_n_leaves()
    2
    """

    prune = PruneParameter()

    def __init__(
        self,
        *,
        criterion: Any = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = None,
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
        rate_shrinkage: float = 0.0,
        feature_costs: Any = None,
        feature_weights: Any = None,
        always_try: Any = None,
        missing: str = "learned",
        max_surrogates: int = 5,
        surrogate_style: str = "all",
        missing_fallback: str = "majority",
        max_competitors: int = 0,
        prune: str | None = None,
        cv: Any = 10,
        rule: Any = "1se",
        scoring: Any = None,
        risk: str = "auto",
        cp: float | None = None,
        shrinkage: Any = None,
        dialect: str | None = None,
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
        self.rate_shrinkage = rate_shrinkage
        self.feature_costs = feature_costs
        self.feature_weights = feature_weights
        self.always_try = always_try
        self.missing = missing
        self.max_surrogates = max_surrogates
        self.surrogate_style = surrogate_style
        self.missing_fallback = missing_fallback
        self.max_competitors = max_competitors
        self.prune = prune
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.risk = risk
        self.cp = cp
        self.shrinkage = shrinkage
        self.dialect = dialect
        self.n_jobs = n_jobs

    @classmethod
    def rpart(
        cls,
        *,
        method: str = "anova",
        minsplit: int | None = None,
        minbucket: int | None = None,
        cp: float = 0.01,
        maxcompete: int = 4,
        maxsurrogate: int = 5,
        usesurrogate: int = 2,
        surrogatestyle: int = 0,
        maxdepth: int = 30,
        xval: Any = 10,
        shrink: float | None = None,
        error: str = "deviance",
        cost: Any = None,
        rpart_quirks: bool = False,
        **parameters: Any,
    ) -> DecisionTreeRegressor:
        """Make a tree that follows R's rpart, by rpart's own words.

        Parameters
        ----------
        method : {"anova", "poisson", "exp"}, default="anova"
            Means; rates of events, y being counts or (exposure, counts); or survival, y being (time, status) or
            (start, stop, status).
        minsplit : int, optional
            Fewest rows in a node that is split; 20, or three times minbucket if only that is given.
        minbucket : int, optional
            Fewest rows on each side of a split; a third of minsplit.
        cp : float, default=0.01
            Subtrees that lower the risk by less than this share of the root's risk per split are not kept.
        maxcompete, maxsurrogate : int, default=4 and 5
            Runner-up and surrogate splits kept at each node.
        usesurrogate : {0, 1, 2}, default=2
            Rows that lack a value stop (0), go by surrogates or stop (1), or go by surrogates or with the majority (2).
        surrogatestyle : {0, 1}, default=0
            Agreement as a share of all rows split (0), or of those that have the surrogate's value (1).
        maxdepth : int, default=30
            Depth of the tree, at most 30.
        xval : int or array of fold numbers, default=10
            Folds of the cross-validation; 0: none.
        shrink : float, optional
            Rates: coefficient of variation of the prior that draws them to the overall rate; 1, or 0 with
            ``error="sqrt"``.
        error : {"deviance", "sqrt"}, default="deviance"
            Rates: error of held-out rows.
        cost : array-like or dict by column name, optional
            Price of each column.
        rpart_quirks : bool, default=False
            Repeat rpart's known errors too.
        **parameters
            Other parameters of the estimator, such as random_state for the folds.

        Returns
        -------
        DecisionTreeRegressor
            Not fitted. Weights go to `fit`; afterwards `printcp`, `summary` and `pruned(cp=...)` are there.
        """
        criteria = {"anova": "squared_error", "poisson": "poisson", "exp": "exponential"}
        if method not in criteria:
            raise ValueError(f"method must be 'anova', 'poisson' or 'exp'. Got {method!r}.")
        if error not in ("deviance", "sqrt"):
            raise ValueError(f"error must be 'deviance' or 'sqrt'. Got {error!r}.")
        refuse_twice(parameters, ("criterion", "rate_shrinkage", "scoring"))
        if method == "anova" and (shrink or error != "deviance"):
            raise ValueError("shrink and error are for rates: method='poisson' or 'exp'.")
        if shrink is None:
            shrink = 0.0 if error == "sqrt" or method == "anova" else 1.0
        control = rpart_control(
            minsplit=minsplit,
            minbucket=minbucket,
            cp=cp,
            maxcompete=maxcompete,
            maxsurrogate=maxsurrogate,
            usesurrogate=usesurrogate,
            surrogatestyle=surrogatestyle,
            maxdepth=maxdepth,
            xval=xval,
            cost=cost,
            rpart_quirks=rpart_quirks,
        )
        return cls(
            criterion=criteria[method],
            rate_shrinkage=shrink,
            scoring="sqrt" if error == "sqrt" else None,
            **(control | parameters),
        )
