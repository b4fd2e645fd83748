"""The base class of decision trees: fit, pruning, nodes, text and drawings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import field as fitted_attribute
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch, estimator_html_repr
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._cluster.single_worker import fit_on_one_worker
from spinney._data import Schema
from spinney._data.display import nearest_name, plural
from spinney._data.scan import client_of
from spinney._data.schema import Input
from spinney._data.types import ByClass, ByColumn, ColumnLike, TableLike
from spinney._estimator.estimator import About
from spinney._estimator.fit_inputs import FitInputs, ValidationSet, check_together
from spinney._estimator.held_out import CrossValidation
from spinney._estimator.parameters import estimator, parameter
from spinney._model.file.codec import SavedState, columns, flag, integer, listed, number, optional
from spinney._model.model import fractions
from spinney._model.saving.saved_model import SavedModel
from spinney._model.tree import FittedTree
from spinney._tree.complexity_table import SAVED_PRUNING, ComplexityTable
from spinney._tree.fit import TreeFit, TreeResult
from spinney._tree.growing import AT_LEAST_0, GrowingEstimator, at_least
from spinney._tree.pruning import last_of_ties
from spinney._tree.rpart import control, report
from spinney._tree.rpart.estimator import RpartResult, fit_by_rpart
from spinney._tree.rpart.record import RpartRecord, record_from_json, record_to_json
from spinney._tree.settings import Scorer, check_stream
from spinney.inspect.draw.tree_drawing import notebook_html
from spinney.inspect.text.text import RuleList, explain_row, export_text, rules

_SAVED = SavedState(
    "",
    {
        "shrinkage_": optional(number(key="shrinkage")),
        "_had_missing": optional(listed(flag(), "n_features", key="had_missing")),
        "max_depth_": optional(integer(least=1, key="chosen_depth")),
        "min_samples_leaf_": optional(integer(least=1, key="chosen_leaf")),
        "cv_results_": columns("max_depth", "min_samples_leaf"),
        **SAVED_PRUNING.fields,
    },
)


@estimator
class BaseTree(GrowingEstimator):
    """A decision tree."""

    max_depth: int | Literal["cv"] | None = parameter(  # type: ignore[assignment]
        at_least(1), StrOptions({"cv"}), None, default=None
    )
    min_samples_leaf: int | float | Literal["cv"] = parameter(  # type: ignore[assignment]
        at_least(1), Interval(Real, 0, 1, closed="neither"), StrOptions({"cv"}), default=1
    )
    splitter: Literal["best", "random"] = parameter(StrOptions({"best", "random"}), default="best")
    validation_fraction: float | None = parameter(Interval(Real, 0, 1, closed="neither"), None, default=None)
    missing: Literal["learned", "surrogate"] = parameter(StrOptions({"learned", "surrogate"}), default="learned")
    max_surrogates: int = parameter(at_least(0), default=5)
    surrogate_style: Literal["all", "present"] = parameter(StrOptions({"all", "present"}), default="all")
    missing_fallback: Literal["majority", "stop", "ignore"] = parameter(
        StrOptions({"majority", "stop", "ignore"}), default="majority"
    )
    max_competitors: int = parameter(at_least(0), default=0)
    prune: Literal["cv", "validation", "pessimistic"] | None = parameter(
        StrOptions({"cv", "validation", "pessimistic"}), None, default=None
    )
    cv: CrossValidation = parameter("cv_object", "array-like", default=10)
    rule: Literal["min", "1se"] | float | None = parameter(StrOptions({"min", "1se"}), AT_LEAST_0, None, default="1se")
    scoring: str | Scorer | None = parameter(str, callable, None, default=None)
    risk: Literal["auto", "impurity", "error"] = parameter(StrOptions({"auto", "impurity", "error"}), default="auto")
    cp: float | None = parameter(Real, None, default=None)
    shrinkage: float | Literal["cv"] | None = parameter(AT_LEAST_0, StrOptions({"cv"}), None, default=None)
    dialect: Literal["rpart", "rpart_quirks"] | None = parameter(
        StrOptions({"rpart", "rpart_quirks"}), None, default=None
    )

    tree_: FittedTree = fitted_attribute(init=False)
    rpart_: RpartRecord = fitted_attribute(init=False)
    alpha_: float = fitted_attribute(init=False)
    cp_table_: ComplexityTable = fitted_attribute(init=False)
    _model_attribute = "tree_"
    _tied_to_trees: ClassVar[tuple[str, ...]] = ("rpart_",)
    printcp = report.printcp
    summary = report.summary
    rpart_frame = report.rpart_frame
    rpart_splits = report.rpart_splits

    def _n_folds_held_out(self) -> int:
        settings = self._settings
        if settings.dialect is not None:
            return 0
        if settings.prune == "cv" or settings.searches_size:
            return int(settings.cv) if isinstance(settings.cv, Integral) else 0
        return 2 if settings.shrinkage == "cv" else 0

    # ---- model files and descriptions ------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        return _SAVED.to_header({"shrinkage_": 0.0} | vars(self)) | record_to_json(vars(self).get("rpart_"))

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        found = _SAVED.from_header(header, n_features=saved.schema.n_features)
        return {"shrinkage_": 0.0} | found | record_from_json(header, saved)

    def _about(self) -> About:
        n_leaves, depth = int(self.get_n_leaves()), int(self.get_depth())
        sentence = f"{n_leaves} leaves, depth {depth}"
        return About(
            "tree",
            {"leaves": n_leaves, "depth": depth},
            {"tree": f"{plural(n_leaves, 'leaf')}, depth {depth}"},
            sentence,
            why_no_trees="the model is one tree, not a forest. Leave it out.",
        )

    @classmethod
    def rpart(
        cls,
        *,
        method: Literal["class", "anova", "poisson", "exp"] | None = None,
        minsplit: int | None = None,
        minbucket: int | None = None,
        cp: float = 0.01,
        maxcompete: int = 4,
        maxsurrogate: int = 5,
        usesurrogate: Literal[0, 1, 2] = 2,
        surrogatestyle: Literal[0, 1] = 0,
        maxdepth: int = 30,
        xval: int | ArrayLike | None = 10,
        prior: ByClass = None,
        loss: ByClass = None,
        split: Literal["gini", "information"] = "gini",
        shrink: float | None = None,
        error: Literal["deviance", "sqrt"] = "deviance",
        cost: ByColumn = None,
        rpart_quirks: bool = False,
        **parameters: Any,
    ) -> Self:
        """Return an unfitted tree that follows the rules of R's rpart, with settings by rpart's parameter names.

        Extra-trees raise an error, because their thresholds are random.

        Parameters
        ----------
        method : {"class", "anova", "poisson", "exp"}, optional
            "class" for a classifier. For a regressor: "anova" for means (the default); "poisson" for rates of events,
            y being counts or (exposure, counts); "exp" for survival, y being (time, status) or (start, stop, status).
        minsplit : int, optional
            Minimum number of rows in a node that is split. None: three times minbucket if that is passed, else 20.
        minbucket : int, optional
            Minimum number of rows on each side of a split. None: a third of minsplit.
        cp : float, default=0.01
            Subtrees that lower the risk by less than this fraction of the root's risk per split are pruned.
        maxcompete, maxsurrogate : int, default=4 and 5
            Maximum numbers of competing and of surrogate splits stored at each node.
        usesurrogate : {0, 1, 2}, default=2
            What happens to rows with a missing value at a split. 0: they stop at the node. 1: they follow surrogates,
            and stop if these are missing too. 2: they follow surrogates, and the majority if these are missing too.
        surrogatestyle : {0, 1}, default=0
            The agreement of a surrogate is a fraction of all rows of the split (0), or of the rows in which the
            surrogate's column is not missing (1).
        maxdepth : int, default=30
            Maximum depth of the tree, at most 30.
        xval : int or array of fold numbers, default=10
            Number of folds of the cross-validation (0: none), or the fold number of each row.
        prior : array-like or dict by label, optional
            Classification: prior class probabilities.
        loss : array-like, frame or dict of dicts, optional
            Classification: cost of predicting class j (column of the matrix) for a row of class i (row of the matrix).
        split : {"gini", "information"}, default="gini"
            Classification: split criterion.
        shrink : float, optional
            "poisson" and "exp": coefficient of variation of the prior of the leaf rates, which are shrunk towards the
            overall rate. None: 1, or 0 with ``error="sqrt"``.
        error : {"deviance", "sqrt"}, default="deviance"
            "poisson" and "exp": how the error of held-out rows is measured.
        cost : array-like or dict by column name, optional
            Cost of each column.
        rpart_quirks : bool, default=False
            Whether to reproduce rpart's known bugs.
        **parameters
            Other parameters of the estimator, such as random_state for the folds.

        Returns
        -------
        estimator
            An unfitted tree. Pass weights to `fit`; a fitted tree has `printcp`, `summary` and `pruned(cp=...)`.
        """
        words = {name: value for name, value in locals().items() if name not in ("cls", "parameters")}
        if cls.splitter != "best":
            whole = "DecisionTreeClassifier" if cls._is_class_target else "DecisionTreeRegressor"
            raise ValueError(f"rpart's trees use the best thresholds, not random ones. Use {whole}.rpart.")
        if getattr(cls, "criterion", None) == "log_rank":
            raise ValueError("rpart has no log-rank splits. Use DecisionTreeRegressor.rpart(method='exp').")
        for name in parameters:
            if name not in cls._get_param_names():
                rpart_names = ", ".join(words)
                advice = nearest_name(name, list(words), f"Those of rpart are: {rpart_names}.")
                raise TypeError(f"Neither rpart nor {cls.__name__} has a parameter {name!r}. {advice}")
        return cls(**control.tree_parameters(cls._is_class_target, words, parameters))

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: ColumnLike,
        sample_weight: ColumnLike = None,
        *,
        X_val: TableLike = None,
        y_val: ColumnLike = None,
        sample_weight_val: ColumnLike = None,
        exposure: ColumnLike = None,
        groups: ColumnLike = None,
    ) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or stream
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values need no encoding. A stream is a table that is
            read in chunks, such as that of `spinney.scan`: y, sample_weight, exposure and groups may then be the names
            of its columns. A stream needs `max_bins`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice, except in numbers of rows such as `min_samples_leaf`; a
            weight of 0 leaves the row out.
        X_val, y_val, sample_weight_val : optional
            Validation set, used instead of the rows that `validation_fraction` holds out.
        exposure : array-like of shape (n_samples,), optional
            For regression with ``criterion="poisson"``: the time (or number of people, or distance) over which the
            events in y were counted. The tree then predicts rates: events per unit of exposure.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label stay together in the folds of parameters that are "cv".

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        check_together({"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val})
        validation = () if X_val is None else (ValidationSet(X_val, y_val, sample_weight_val),)
        inputs = FitInputs(X, y, sample_weight, groups=groups, exposure=exposure, validation=validation)
        client = client_of(X)
        return self._fit(inputs) if client is None else fit_on_one_worker(client, self, inputs)

    def _fit(self, inputs: FitInputs) -> Self:
        """Grow and prune the tree from rows in this process."""
        settings = self._settings
        settings.check_user_criterion()
        inputs = inputs.spooled(self.categorical_features)
        table = Input.of(inputs.X)
        check_stream(table, settings)
        if settings.dialect is None:
            result: TreeResult | RpartResult = TreeFit(self, self._with_tree).run(table, inputs)
            table.verify()
        elif inputs.groups is not None or inputs.validation:
            raise ValueError(
                "rpart's rules use neither groups nor a validation set. Pass folds as xval, or set dialect=None."
            )
        else:
            result = fit_by_rpart(self, table, inputs)
        self._forget()
        self._set_fitted(result.schema, result.tree, result.attributes())
        return self

    def _with_tree(self, schema: Schema, attributes: Mapping[str, object], tree: FittedTree) -> Self:
        """Return a fitted copy with this tree; without `attributes`, it has the other fitted attributes of this one."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        if attributes:
            other._forget()
        other._set_fitted(schema, tree, attributes)
        return other

    def _forget(self) -> None:
        """Delete the fitted attributes of an earlier fit."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]

    def _set_fitted(self, schema: Schema, tree: FittedTree, attributes: Mapping[str, object]) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        self._set_schema(schema)
        self.tree_ = tree
        tree.n_features = schema.n_split_features
        for name, value in attributes.items():
            setattr(self, name, value)

    # ---- pruning -------------------------------------------------------------------------------------

    def cost_complexity_pruning_path(
        self, X: TableLike = None, y: ColumnLike = None, sample_weight: ColumnLike = None
    ) -> Any:  # Bunch, which has no types
        """Return the sequence of trees of minimal cost-complexity pruning.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), optional
            Rows on which an unpruned tree is grown first; None: the path of this fitted tree is returned.
        y : array-like, optional
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        Bunch
            `ccp_alphas`, the penalties at which branches are pruned, and `impurities`, the total risk of the leaves
            afterwards: their impurity, or their error with ``risk="error"``. Branches with the same penalty are pruned
            together.
        """
        if X is None and y is None and sample_weight is None:
            self._check_is_fitted()
            self._refuse_shrunk()
            tree = self.tree_
        elif X is None or y is None:
            raise ValueError("Pass both X and y, or neither for the path of the fitted tree.")
        else:
            other = copy.copy(self).set_params(ccp_alpha=0.0, cp=None, prune=None)
            tree = other.fit(X, y, sample_weight).tree_
        _, alphas, risks, _, _ = tree.engine.pruning_path(self._node_risks(tree), self._n_threads)
        last = last_of_ties(alphas)
        return Bunch(ccp_alphas=np.append(0.0, alphas[last]), impurities=risks[np.append(0, 1 + last)])

    def pruned(self, *, alpha: float | None = None, cp: float | None = None) -> Self:
        """Return a more heavily pruned copy of the fitted tree, without growing it again.

        Parameters
        ----------
        alpha : float, optional
            Penalty per leaf, in the unit of the risk; branches whose penalty is at most this are pruned.
        cp : float, optional
            The penalty as a fraction of the root's risk; in a tree grown by rpart's rules it may be negative.

        Returns
        -------
        estimator
            A new fitted tree; this one does not change.
        """
        self._check_is_fitted()
        if (alpha is None) == (cp is None):
            raise ValueError("Pass either alpha=... to pruned, or cp=... as a fraction of the root's risk.")
        if "rpart_" in vars(self):
            self._refuse_shrunk()
            return self._pruned_by_rpart(alpha, cp)
        name, value = ("alpha", alpha) if cp is None else ("cp", cp)
        if not isinstance(value, Real) or not float(value) >= 0:
            raise ValueError(f"{name} must be a number of at least 0. Got {value!r}.")
        self._refuse_shrunk()
        tree = self.tree_
        risks = self._node_risks(tree)
        penalty = float(value) if cp is None else float(value) * float(risks[0])
        other = self._with_tree(self.schema_, {}, tree.replaced(tree.engine.pruned(penalty, risks)))
        table = vars(self).get("cp_table_")
        other.__dict__.pop("oof_predictions_", None)
        other.alpha_ = penalty
        if table is not None:
            other.cp_table_ = replace(table, chosen=None)  # `fit` chose another tree
        return other

    def _pruned_by_rpart(self, alpha: float | None, cp: float | None) -> Self:
        record = self.rpart_.pruned_at(alpha, cp)
        other = self._with_tree(self.schema_, {}, record.tree)
        other.rpart_ = record
        other._set_complexities(record.complexity_table())
        return other

    def _set_complexities(self, table: ComplexityTable) -> None:
        """Set the fitted attributes of a tree pruned by rpart's rules."""
        self.__dict__.pop("oof_predictions_", None)
        self.alpha_, self.cp_table_ = float(table.alpha[-1]), table

    def _refuse_shrunk(self) -> None:
        """Refuse to prune by errors if the values were shrunk, because the errors are then no longer the tree's."""
        if vars(self).get("shrinkage_", 0.0) > 0 and not self._settings.prunes_by_impurity:
            raise ValueError(
                "The values of this tree are shrunk, so its errors no longer measure what a branch gains. Prune first: "
                "with cp=, ccp_alpha= or prune= at fit, or prune the tree before shrink_tree."
            )

    # ---- the nodes -----------------------------------------------------------------------------------

    def _leaves(self, X: TableLike) -> NDArray[np.uint32]:
        columns = self._columns(X)
        return self.tree_.engine.apply(columns, self._n_threads)

    def apply(self, X: TableLike) -> NDArray[np.int64]:
        """Return the leaf of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Node numbers.
        """
        return self._leaves(X).astype(np.int64)

    def decision_path(self, X: TableLike) -> csr_array:
        """Return the nodes on the path of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        csr_array of shape (n_samples, node_count)
            1 where the row passes the node.
        """
        leaves = self._leaves(X)
        return self.tree_.path(leaves)

    def get_depth(self) -> int:
        """Return the depth of the tree: the largest number of splits between the root and a leaf.

        Returns
        -------
        int
            Depth.
        """
        self._check_is_fitted()
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves.

        Returns
        -------
        int
            Number of leaves.
        """
        self._check_is_fitted()
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Fraction of the total decrease of the impurity that is due to each column.

        With ``missing="surrogate"`` a surrogate is credited with the split's gain times its adjusted agreement.
        """
        self._check_is_fitted()
        if "rpart_" in vars(self):
            return fractions(self.rpart_.importance(self.n_features_in_))
        return self.schema_.credit_inputs(self.tree_.importances(self.schema_.n_split_features))

    # ---- text ----------------------------------------------------------------------------------------

    def export_text(self, **options: Any) -> str:
        """Return the tree as indented text.

        Parameters
        ----------
        **options
            As for `spinney.export_text`.

        Returns
        -------
        str
            The tree, a line per node.
        """
        return export_text(self, **options)

    def rules(self, **options: Any) -> RuleList:
        """Return the tree as logical rules, one per leaf.

        Parameters
        ----------
        **options
            As for `spinney.rules`.

        Returns
        -------
        RuleList
            A list of `Rule`.
        """
        return rules(self, **options)

    def explain_row(self, row: object, **options: Any) -> str:
        """Explain the prediction for one row in words.

        Parameters
        ----------
        row : mapping, sequence, Series, or table with one row
            Values by column name, or in column order.
        **options
            As for `spinney.explain_row`.

        Returns
        -------
        str
            The conditions that the row meets, and the prediction.
        """
        return explain_row(self, row, **options)

    # ---- notebooks: scikit-learn's diagram before fit, the tree itself after it -----------------------

    def _html_repr(self) -> str:
        try:
            self._check_is_fitted()
        except NotFittedError:
            return str(estimator_html_repr(self))
        return notebook_html(self)

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html_repr()
        return bundle
