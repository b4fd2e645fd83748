"""What single decision trees share: reading, growing, predicting."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney import _engine
from spinney._costs import ClassCosts, read_cost_matrix, read_priors
from spinney._data import Schema, read_table
from spinney._exposure import deviance, per_exposure, shrink_rates, survival_rates
from spinney._growth import Growth
from spinney._held_out import HeldOut, Loss, split_gains
from spinney._keep.estimator import SavedEstimator
from spinney._parameters import (
    NamedParameters,
    count_features,
    count_rows,
    read_feature_costs,
    read_groups,
    read_monotone,
)
from spinney._pruning.at_fit import FitRows, check_request, prune_grown
from spinney._pruning.methods import PrunableTree
from spinney._row_predictor import RowPredictor
from spinney._shrinkage import shrunk
from spinney._target import encode_labels, read_classes, read_values, read_weights, warn_if_coarse
from spinney._tree_view import FittedTree
from spinney._user_criterion import UserTarget, check_shares, is_user, name_of, prepare, refuse_unsupported, row_losses
from spinney.reading.methods import ReadableTree

_NO_LIMIT = 2**32 - 1
RATE_CRITERIA = ("poisson", "exponential")  # events per unit of time


class BaseTree(PrunableTree, ReadableTree, NamedParameters, SavedEstimator, BaseEstimator):
    """What classification and regression trees share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "splitter": [StrOptions({"best", "random"})],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="neither"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="neither"),
        ],
        "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "random_state": ["random_state"],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
        "max_bins": [Interval(Integral, 2, 65535, closed="both"), None],
        "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
        "feature_costs": ["array-like", dict, None],
        "missing": [StrOptions({"learned", "surrogate"})],
        "max_surrogates": [Interval(Integral, 0, None, closed="left")],
        "surrogate_style": [StrOptions({"all", "present"})],
        "missing_fallback": [StrOptions({"majority", "stop", "ignore"})],
        "max_competitors": [Interval(Integral, 0, None, closed="left")],
        "prune": [StrOptions({"cv", "validation", "pessimistic"}), None],
        "cv": ["cv_object", "array-like"],
        "rule": [StrOptions({"min", "1se"}), Interval(Real, 0.0, None, closed="left"), None],
        "scoring": [str, callable, None],
        "risk": [StrOptions({"auto", "impurity", "error"})],
        "cp": [Real, None],
        "shrinkage": [Interval(Real, 0.0, None, closed="left"), StrOptions({"cv"}), None],
        "dialect": [StrOptions({"rpart", "rpart_quirks"}), None],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    # what an estimator without these parameters does
    feature_costs: Any = None
    missing: str = "learned"
    max_surrogates: int = 5
    surrogate_style: str = "all"
    missing_fallback: str = "majority"
    max_competitors: int = 0
    cv: Any = 10
    rule: Any = "1se"
    scoring: Any = None
    risk: str = "auto"
    cp: float | None = None
    shrinkage: Any = None
    dialect: str | None = None

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> Any:
        """Check y and return what `_engine_target` and `_learned` need of it."""

    @abstractmethod
    def _engine_target(self, target: Any) -> tuple[NDArray[Any], list[int]]:
        """Array and numbers of classes as the engine takes them."""

    @abstractmethod
    def _target_weights(self, target: Any, y: Any, weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Row weights, class weights included."""

    @abstractmethod
    def _learned(self, target: Any) -> dict[str, Any]:
        """Fitted attributes that come from the target."""

    @abstractmethod
    def _held_out_target(self, target: Any, y: Any, n_rows: int) -> NDArray[Any]:
        """Check y of held-out rows and return it as the engine's array of the target is."""

    @abstractmethod
    def _losses(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        """Loss of each row of such an array if it stopped at a node."""

    def _read_costs(self, target: Any, weight: NDArray[np.float64] | None) -> ClassCosts | None:
        """Costs and priors, if there are any."""
        return None

    def _learned_costs(self, costs: ClassCosts | None) -> dict[str, Any]:
        """Fitted attributes that come from the costs."""
        return {}

    def _per_exposure(
        self, y: Any, weight: NDArray[np.float64] | None, exposure: Any, has_held_out: bool, n_rows: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rates and their weights from counts of events and exposures."""
        raise ValueError("exposure belongs to counts of events. Use DecisionTreeRegressor(criterion='poisson').")

    def _restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        """Return a grown tree that says of its nodes what the caller wants to know."""
        return tree

    def _split_gains(self, schema: Schema, costs: ClassCosts | None, tree: FittedTree) -> NDArray[np.float64]:
        """Gain of each split as best-first growth saw it."""
        gains = split_gains(tree if costs is None else costs.as_searched(tree, self.criterion), self.criterion)
        prices = read_feature_costs(self.feature_costs, schema)
        return gains / np.where(tree.is_leaf, 1.0, np.array(prices)[tree.feature]) if prices else gains

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        exposure: Any = None,
        groups: Any = None,
    ) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice; a weight of 0 leaves it out.
        X_val, y_val, sample_weight_val : optional
            Rows held out to decide how far to grow; see `validation_fraction`.
        exposure : array-like of shape (n_samples,), optional
            Time (or people, or miles) over which the events in y were counted, with ``criterion="poisson"``. The tree
            then predicts rates: events per unit of exposure.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label stay together in the folds of ``prune="cv"``.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._validate_params()
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0. Use None for all the cores the process may use, or a number.")
        refuse_unsupported(self)
        if self.dialect is not None:
            if groups is not None or X_val is not None or y_val is not None or sample_weight_val is not None:
                raise ValueError(
                    "rpart's rules know no groups and no held-out rows. Pass folds as xval, or drop dialect."
                )
            return self._fit_by_rpart(X, y, sample_weight, exposure)
        table = read_table(X)
        schema = Schema.learn(table, categorical_features=self.categorical_features, unseen=self.unseen)
        sample_weight = read_weights(sample_weight, table.n_rows)
        counts_time = exposure is not None or self.criterion == "exponential"
        time = None
        if counts_time:
            case_weight = sample_weight
            y, sample_weight = self._per_exposure(y, sample_weight, exposure, X_val is not None, table.n_rows)
            time = (
                sample_weight / np.where(case_weight > 0, case_weight, 1.0)
                if case_weight is not None
                else sample_weight
            )
            if self.scoring is not None:
                raise ValueError(
                    "scoring does not go with exposure or survival times: their trees are judged by deviance."
                )
        target = self._read_target(y, table.n_rows)
        weight = self._target_weights(target, y, sample_weight)
        costs = self._read_costs(target, weight)
        random = check_random_state(self.random_state)
        held_out = self._read_held_out(schema, target, X_val, y_val, sample_weight_val, costs)
        check_request(self, held_out is not None or self.validation_fraction is not None, groups, table.n_rows)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        loss = self._losses(self._engine_target(target)[0], costs)
        if self.validation_fraction is not None:
            weight, weight_val = self._part_rows(target, weight, table.n_rows, random)
            held_out = HeldOut(columns, loss, weight_val)
        learned = self._learned(target)
        n_classes, n_outputs = learned.pop("_n_classes"), learned["n_outputs_"]
        user = prepare(self, self._engine_target(target)[0], weight, n_classes)
        if user is not None and n_classes is None:
            n_outputs = learned["n_outputs_"] = user.n_values

        def grow(rows_weight: NDArray[np.float64] | None) -> FittedTree:
            engine, _ = self._grow(columns, schema, target, rows_weight, random, costs, counts_time, user=user)
            return self._restated(FittedTree(engine, n_classes, n_outputs), costs)

        codes = None if n_classes is None else self._engine_target(target)[0]
        growth = Growth(
            columns,
            codes,
            weight,
            grow,
            loss,
            self._node_risks,
            partial(self._split_gains, schema, costs),
            self._n_threads,
            time,
        )
        tree = growth.grow(weight)
        learned |= self._learned_costs(costs)
        rows = FitRows(X, y, self._engine_target(target)[0], groups, random, partial(self._with_tree, schema, learned))
        pruned = prune_grown(self, tree, growth, held_out, rows)
        tree, learned["shrinkage_"] = shrunk(pruned.tree, self.shrinkage, growth, pruned.alpha, random, groups)
        self._forget()
        self._keep(schema, tree, learned)
        self._keep_pruning(pruned.learned)
        return self

    def _with_tree(self, schema: Schema, learned: dict[str, Any], tree: FittedTree) -> Self:
        """Return a copy that is fitted, with this tree; without `learned`, it keeps what else this one has learned."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        if learned:
            other._forget()
        other._keep(schema, tree, learned)
        return other

    def _forget(self) -> None:
        """Drop all that an earlier fit has learned."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]

    def _node_risks(self, tree: FittedTree) -> NDArray[np.float64]:
        """Risk of each node if it were a leaf, as a share of the root's weight."""
        share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
        by_row = tree.impurity if self._prunes_by_impurity else self._node_errors(tree)
        return np.asarray(share * by_row)

    @property
    def _prunes_by_impurity(self) -> bool:
        return self.dialect is None and self.risk in ("auto", "impurity")

    def _node_errors(self, tree: FittedTree) -> NDArray[np.float64]:
        """Error per unit of weight if each node were a leaf."""
        return tree.impurity

    def _read_held_out(
        self, schema: Schema, target: Any, X: Any, y: Any, weight: Any, costs: ClassCosts | None
    ) -> HeldOut | None:
        if X is None and y is None and weight is None:
            return None
        if X is None or y is None:
            raise ValueError("Pass both X_val and y_val, or neither; sample_weight_val goes with them.")
        if self.validation_fraction is not None:
            raise ValueError("Pass either validation_fraction or X_val and y_val, not both.")
        table = read_table(X)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        actual = self._held_out_target(target, y, table.n_rows)
        return HeldOut(columns, self._losses(actual, costs), read_weights(weight, table.n_rows))

    def _fit_by_rpart(self, X: Any, y: Any, sample_weight: Any, exposure: Any) -> Self:
        from spinney._rpart.estimator import fit_by_rpart

        fit_by_rpart(self, X, y, sample_weight, exposure)
        return self

    def _keep(self, schema: Schema, tree: FittedTree, learned: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if schema.has_names:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.max_features_ = min(count_features(self.max_features, schema.n_features), schema.n_features)
        self.tree_ = tree
        for name, value in learned.items():
            setattr(self, name, value)

    def _part_rows(
        self, target: Any, weight: NDArray[np.float64] | None, n_rows: int, random: np.random.RandomState
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights for growing and for judging: each row has one of them, the other is 0."""
        strata, _ = self._engine_target(target)
        stratify = strata[:, 0] if strata.dtype == np.int32 and strata.shape[1] == 1 else None
        if stratify is not None and np.bincount(stratify).min() < 2:
            stratify = None
        _, rows = train_test_split(
            np.arange(n_rows), test_size=self.validation_fraction, random_state=random, stratify=stratify
        )
        full = np.ones(n_rows) if weight is None else weight
        growing, judging = full.copy(), np.zeros(n_rows)
        growing[rows] = 0.0
        judging[rows] = full[rows]
        if not (growing > 0).any():
            raise ValueError("validation_fraction leaves no row of positive weight to grow the tree on. Lower it.")
        return growing, judging

    def _grow(
        self,
        columns: _engine.Table,
        schema: Schema,
        target: Any,
        weight: NDArray[np.float64] | None,
        random: np.random.RandomState,
        costs: ClassCosts | None,
        has_exposure: bool,
        weighing: dict[str, Any] | None = None,
        user: UserTarget | None = None,
    ) -> tuple[_engine.Tree, NDArray[np.uint32]]:
        """Grow the tree, and say at which node each row came to rest where splits are weighed."""
        array, n_classes = self._engine_target(target)
        case_weight = weight
        if costs is not None:
            weight = costs.split_weights(target.codes[:, 0], weight)
        criterion = self._engine_criterion(costs, has_exposure)
        n_rows, n_features = columns.n_rows, schema.n_features
        max_features = count_features(self.max_features, n_features)
        if max_features > n_features:
            raise ValueError(
                f"max_features={self.max_features} is more than the table's {n_features} columns. Use None for all."
            )
        is_random = self.splitter == "random" or max_features < n_features
        total_weight = float(n_rows) if weight is None else float(weight.sum())
        min_leaf = count_rows(self.min_samples_leaf, n_rows)
        options = {
            "max_depth": min(self.max_depth or _NO_LIMIT, _NO_LIMIT),
            "min_samples_split": min(max(2, 2 * min_leaf, count_rows(self.min_samples_split, n_rows)), _NO_LIMIT),
            "min_samples_leaf": min(min_leaf, _NO_LIMIT),
            "min_weight_leaf": float(self.min_weight_fraction_leaf) * total_weight,
            "min_impurity_decrease": float(self.min_impurity_decrease),
            "min_purity": float(getattr(self, "min_purity", None) or 2.0),
            "max_features": max_features,
            "max_leaf_nodes": min(self.max_leaf_nodes or 0, _NO_LIMIT),
            "random_cuts": self.splitter == "random",
            "seed": int(random.randint(np.iinfo(np.int32).max)) if is_random else 0,
            "monotone": self._monotone(schema, n_classes, array.shape[1]),
            "groups": read_groups(self.interaction_cst, schema),
            "feature_costs": read_feature_costs(self.feature_costs, schema, keep_equal=weighing is not None),
            "cost": None if costs is None else costs.pairs,
            "max_bins": self.max_bins or 0,
            "n_jobs": self._n_threads,
            "weighing": weighing or self._weighing(case_weight),
            "user": None if user is None else user.criterion,
        }
        y = array if user is None else user.y
        tree, resting_node = _engine.grow_tree(columns, criterion, y, n_classes, weight, options)
        if user is not None and n_classes:
            check_shares(tree)
        return tree, resting_node

    def _weighing(self, weight: NDArray[np.float64] | None) -> dict[str, Any] | None:
        """How the engine weighs the splits of a node; None where it keeps the best only."""
        if self.missing == "learned" and self.max_competitors == 0:
            return None
        return {
            "present_only": self.missing == "surrogate",
            "max_competitors": min(self.max_competitors, _NO_LIMIT),
            "max_surrogates": min(self.max_surrogates, _NO_LIMIT),
            "absent_disagrees": self.surrogate_style == "all",
            "fallback": self.missing_fallback,
            "rpart": False,
            "quirks": False,
            "fold": False,
            "closed_cuts": [],
            "rows": [],
            "case_weight": weight,
        }

    def _engine_criterion(self, costs: ClassCosts | None, has_exposure: bool) -> str:
        if costs is not None and costs.pairs is not None:
            return "generalised_gini"
        if self.criterion in RATE_CRITERIA and (has_exposure or getattr(self, "rate_shrinkage", 0) > 0):
            return "rate"
        name = name_of(self.criterion)
        return "entropy" if name == "log_loss" else name

    def _monotone(self, schema: Schema, n_classes: list[int], n_outputs: int) -> list[int]:
        directions = read_monotone(self.monotonic_cst, schema)
        if not directions:
            return []
        if n_outputs > 1:
            raise ValueError(
                "Monotonicity constraints are not supported with multiple outputs. Fit one tree per output."
            )
        if n_classes and n_classes[0] > 2:
            raise ValueError(
                "Monotonicity constraints are not supported with multiclass classification: the classes' shares "
                "cannot all rise. Fit one tree per class against the rest."
            )
        return [] if n_classes == [1] else directions

    # ---- using ---------------------------------------------------------------------------------------

    @property
    def _n_threads(self) -> int:
        """Threads as the engine takes them: 0 stands for all."""
        return self.n_jobs or 0

    def _leaves(self, X: Any) -> NDArray[np.uint32]:
        check_is_fitted(self)
        columns = self.schema_.encode(read_table(X), unseen=self.unseen, estimator=type(self).__name__)
        return self.tree_.engine.apply(columns, self._n_threads)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Leaf of each row.

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

    def decision_path(self, X: Any) -> csr_array:
        """Nodes that each row passes.

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
        steps = list(self.tree_.passed_nodes(leaves))
        row = np.concatenate([r for r, _ in steps])
        column = np.concatenate([a for _, a in steps])
        ones = np.ones(len(row), dtype=np.int64)
        return csr_array((ones, (row, column)), shape=(len(leaves), self.tree_.node_count))

    def get_depth(self) -> int:
        """Depth of the tree: the most splits between the root and a leaf.

        Returns
        -------
        int
            Depth.
        """
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Count the leaves.

        Returns
        -------
        int
            Number of leaves.
        """
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each column in the total decrease of the impurity.

        With ``missing="surrogate"`` a surrogate is credited with the split's gain times its adjusted agreement.
        """
        check_is_fitted(self)
        return self.tree_.importances(self.n_features_in_)

    def to_predictor(self) -> RowPredictor:
        """Prepare a handle that predicts one row at a time, in microseconds.

        The handle checks nothing, starts no thread and needs a row's values in column order, or by name.

        Returns
        -------
        RowPredictor
            The handle.
        """
        check_is_fitted(self)
        return RowPredictor(self.tree_, self.schema_, self.unseen, getattr(self, "classes_", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        return tags


class TreeClassifier(ClassifierMixin, BaseTree):
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseTree._parameter_constraints,
        "criterion": [
            StrOptions({"gini", "entropy", "log_loss", "misclassification", "chi2", "gain_ratio", "user"}),
            HasMethods(["evaluate", "split"]),
        ],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
        "min_purity": [Interval(Real, 0.0, 1.0, closed="right"), None],
        "cost_matrix": ["array-like", dict, None],
        "priors": ["array-like", dict, StrOptions({"uniform"}), None],
        "cost_splits": [StrOptions({"altered_priors", "generalised_gini"}), None],
    }
    cost_matrix: Any = None
    priors: Any = None
    cost_splits: str | None = "altered_priors"

    def _read_target(self, y: Any, n_rows: int) -> Any:
        return read_classes(y, n_rows)

    def _engine_target(self, target: Any) -> tuple[NDArray[Any], list[int]]:
        return target.codes, [len(c) for c in target.classes]

    def _target_weights(self, target: Any, y: Any, weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        if self.class_weight is None:
            return weight
        by_class = compute_sample_weight(self.class_weight, np.asarray(y))
        if not (by_class >= 0).all() or not np.isfinite(by_class).all():
            raise ValueError("class_weight must give finite weights of at least 0.")
        if not (by_class > 0).any():
            raise ValueError("class_weight gives every row a weight of 0. Give at least one class a positive weight.")
        return np.ascontiguousarray(by_class if weight is None else weight * by_class, dtype=np.float64)

    def _learned(self, target: Any) -> dict[str, Any]:
        n_classes = [len(c) for c in target.classes]
        single = target.n_outputs == 1
        return {
            "_n_classes": n_classes,
            "classes_": target.classes[0] if single else target.classes,
            "n_classes_": n_classes[0] if single else np.array(n_classes),
            "n_outputs_": target.n_outputs,
        }

    def _read_costs(self, target: Any, weight: NDArray[np.float64] | None) -> ClassCosts | None:
        if self.cost_splits == "generalised_gini" and self.criterion != "gini":
            raise ValueError(
                f"cost_splits='generalised_gini' needs criterion='gini', not {self.criterion!r}. Change one of them; "
                "'altered_priors' goes with every criterion."
            )
        if self.cost_matrix is None and self.priors is None:
            return None
        if target.n_outputs > 1:
            raise ValueError("cost_matrix and priors are for one output. Fit one tree per output.")
        if self.priors is not None and self.class_weight is not None:
            raise ValueError("priors and class_weight both reweight the classes. Pass one of them.")
        classes = target.classes[0]
        cost = None if self.cost_matrix is None else read_cost_matrix(self.cost_matrix, classes)
        priors = None if self.priors is None else read_priors(self.priors, classes)
        return ClassCosts.of(cost, priors, self.cost_splits, target.codes[:, 0], weight, classes)

    def _learned_costs(self, costs: ClassCosts | None) -> dict[str, Any]:
        found = costs or ClassCosts()
        return {"cost_matrix_": found.cost, "priors_": found.priors}

    def _restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        if costs is None:
            return tree
        tree.cost = costs.decision
        return costs.restate(tree, self.criterion)

    @property
    def _prunes_by_impurity(self) -> bool:
        has_costs = self.cost_matrix is not None or self.priors is not None
        by_impurity = self.risk == "impurity" or (self.risk == "auto" and not has_costs)
        return by_impurity and self.dialect is None

    def _node_errors(self, tree: FittedTree) -> NDArray[np.float64]:
        if tree.cost is not None:
            return np.asarray(tree.expected_cost.min(axis=1))
        shares = [1 - tree.flat_value[:, columns].max(axis=1) for columns in tree.class_columns]
        return np.asarray(np.mean(shares, axis=0))

    def _held_out_target(self, target: Any, y: Any, n_rows: int) -> NDArray[Any]:
        return encode_labels(y, target.classes, n_rows)

    def _losses(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> NDArray[np.float64]:
            if costs is not None:
                return costs.loss(actual[rows, 0], tree.majority[nodes, 0])
            wrong: NDArray[np.float64] = (tree.majority[nodes] != actual[rows]).mean(axis=1)
            return wrong

        return loss

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each row, or the one of least expected cost if there is a cost matrix.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Labels; the first of several equally good ones.
        """
        leaves = self._leaves(X)
        return self.tree_.labels(leaves, [self.classes_] if self.n_outputs_ == 1 else self.classes_)

    def predict_proba(self, X: Any) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Class shares of each row's leaf.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            One array per output; columns in the order of `classes_`.
        """
        leaves = self._leaves(X)
        return self.tree_.shares(leaves)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Logarithm of the class shares; -inf for 0.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            As `predict_proba`.
        """
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(shares) if self.n_outputs_ == 1 else [np.log(s) for s in shares]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class TreeRegressor(RegressorMixin, BaseTree):
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseTree._parameter_constraints,
        "criterion": [
            StrOptions({"squared_error", "friedman_mse", "absolute_error", "poisson", "exponential", "user"}),
            HasMethods(["evaluate", "split"]),
        ],
        "rate_shrinkage": [Interval(Real, 0.0, None, closed="left")],
    }
    rate_shrinkage: float = 0.0

    def _read_target(self, y: Any, n_rows: int) -> Any:
        values = read_values(y, n_rows)
        if self.rate_shrinkage > 0 and self.criterion not in RATE_CRITERIA:
            raise ValueError(f"rate_shrinkage goes with criterion='poisson', not {self.criterion!r}. Set it to 0.")
        if self.criterion in RATE_CRITERIA and (values < 0).any():
            raise ValueError(
                "Some value(s) of y are negative which is not allowed for Poisson regression. "
                "Use criterion='squared_error'."
            )
        return values

    def _engine_target(self, target: Any) -> tuple[NDArray[Any], list[int]]:
        return target, []

    def _target_weights(self, target: Any, y: Any, weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        events = target if weight is None else target[weight > 0]
        total = float(len(target)) if weight is None else float(weight.sum())
        largest = float(np.abs(events).max(initial=1.0))
        if np.log2(largest) + np.log2(total) > 1030:
            raise ValueError(
                "The weighted sum of y is too large for a floating-point number. Rescale y or sample_weight."
            )
        if self.criterion != "absolute_error" and not is_user(self.criterion):
            warn_if_coarse(events)
        if self.criterion in RATE_CRITERIA and not (events.sum(axis=0) > 0).all():
            raise ValueError(
                "Sum of y is not positive which is necessary for Poisson regression: there is no event to count."
            )
        return weight

    def _learned(self, target: Any) -> dict[str, Any]:
        return {"_n_classes": None, "n_outputs_": target.shape[1]}

    def _per_exposure(
        self, y: Any, weight: NDArray[np.float64] | None, exposure: Any, has_held_out: bool, n_rows: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.criterion == "exponential":
            return survival_rates(y, weight, exposure, has_held_out, n_rows)
        if self.criterion != "poisson":
            raise ValueError(f"exposure goes with criterion='poisson', not {self.criterion!r}. Change one of them.")
        if has_held_out:
            raise ValueError("exposure does not go with X_val. Use validation_fraction.")
        return per_exposure(read_values(y, n_rows), weight, exposure)

    def _restated(self, tree: FittedTree, costs: ClassCosts | None) -> FittedTree:
        return shrink_rates(tree, float(self.rate_shrinkage)) if self.rate_shrinkage > 0 else tree

    def _held_out_target(self, target: Any, y: Any, n_rows: int) -> NDArray[Any]:
        values = read_values(y, n_rows)
        if values.shape[1] != target.shape[1]:
            raise ValueError(f"y_val has {values.shape[1]} outputs and y has {target.shape[1]}.")
        return values

    def _losses(self, actual: NDArray[Any], costs: ClassCosts | None) -> Loss:
        if is_user(self.criterion):
            return row_losses(self.criterion, actual)

        def loss(nodes: NDArray[Any], tree: FittedTree, rows: NDArray[Any]) -> NDArray[np.float64]:
            fitted, values = tree.flat_value[nodes], actual[rows]
            by_output: NDArray[np.float64] = (values - fitted) ** 2
            if self.criterion == "absolute_error":
                by_output = np.abs(values - fitted)
            elif self.criterion in RATE_CRITERIA:
                by_output = deviance(values, fitted)
            return np.asarray(by_output.mean(axis=1))

        return loss

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Value of each row's leaf.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        leaves = self._leaves(X)
        return self.tree_.values(leaves)
