"""Decision trees for numbers."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from spinney._data.types import ByColumn, ColumnGroups, ColumnNames, RandomState
from spinney._estimator.held_out import CrossValidation
from spinney._estimator.parameters import store_parameters
from spinney._tree.grow.settings import Scorer
from spinney._tree.rpart import report
from spinney._tree.rpart.control import control as rpart_control
from spinney._tree.rpart.control import refuse_twice
from spinney._tree.tree_estimator import TreeRegressor
from spinney.criteria import Criterion


class DecisionTreeRegressor(TreeRegressor):
    """A decision tree for numbers.

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

    printcp = report.printcp
    summary = report.summary
    rpart_frame = report.rpart_frame
    rpart_splits = report.rpart_splits

    def __init__(
        self,
        *,
        criterion: str | Criterion = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = None,
        random_state: RandomState = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        monotonic_cst: ByColumn = None,
        interaction_cst: ColumnGroups = None,
        max_bins: int | None = None,
        validation_fraction: float | None = None,
        categorical_features: ColumnNames = None,
        unseen: str = "missing",
        min_samples_category: int = 5,
        rate_shrinkage: float = 0.0,
        feature_costs: ByColumn = None,
        feature_weights: ByColumn = None,
        always_try: ColumnNames = None,
        missing: str = "learned",
        max_surrogates: int = 5,
        surrogate_style: str = "all",
        missing_fallback: str = "majority",
        max_competitors: int = 0,
        prune: str | None = None,
        cv: CrossValidation = 10,
        rule: str | float | None = "1se",
        scoring: str | Scorer | None = None,
        risk: str = "auto",
        cp: float | None = None,
        shrinkage: float | str | None = None,
        dialect: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

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
        xval: int | ArrayLike | None = 10,
        shrink: float | None = None,
        error: str = "deviance",
        cost: ByColumn = None,
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
