"""What single decision trees share: reading, growing, predicting."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._cluster.dask_single_worker import fit_alone
from spinney._data import Schema, read_table
from spinney._data.numeric.reproducible import any_order_sum
from spinney._data.scan import client_of
from spinney._estimator.costs import ClassCosts
from spinney._estimator.held_out import HeldOut, Loss
from spinney._estimator.row_copies import weight_of_one_row
from spinney._estimator.streams import check_files, taken_apart
from spinney._estimator.summary import About, counted
from spinney._estimator.target import read_weights
from spinney._estimator.user_criterion import UserTarget, check_shares, prepare, refuse_unsupported
from spinney._model.file.container import field, refuse
from spinney._model.saving.model_part import FittedPart
from spinney._model.tree import FittedTree
from spinney._tree.grow.estimator import NO_LIMIT, GrowingEstimator
from spinney._tree.grow.growth import Growth
from spinney._tree.grow.streams import check_stream
from spinney._tree.grow.task import OfClasses, OfValues
from spinney._tree.prune.at_fit import FitRows, check_request, prune_grown
from spinney._tree.prune.methods import PrunableTree
from spinney._tree.prune.saved_state import pruning_from_json, pruning_to_json
from spinney._tree.readable import ReadableTree
from spinney._tree.rpart.saved_state import record_from_json, record_to_json
from spinney._tree.shrinkage import shrunk


class BaseTree(PrunableTree, ReadableTree, GrowingEstimator):
    """What classification and regression trees share."""

    _model_attribute = "tree_"
    _tied_to_trees = ("rpart_",)
    tree_: FittedTree

    def _n_parts_held_out(self) -> int:
        if self._setting("dialect") is not None:
            return 0
        if self._setting("prune") == "cv":
            return int(self.cv) if isinstance(self.cv, Integral) else 0
        return 2 if self._setting("shrinkage") == "cv" else 0

    # ---- files and lists of models ---------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        learned = self.__dict__
        shrinkage = {"shrinkage": float(learned.get("shrinkage_", 0.0))}
        missing = {"had_missing": learned["_had_missing"]} if "_had_missing" in learned else {}
        return shrinkage | missing | pruning_to_json(learned) | record_to_json(learned)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        shrinkage = field(header, "shrinkage", float) if "shrinkage" in header else 0.0
        missing = {}
        if "had_missing" in header:
            missing["_had_missing"] = had = field(header, "had_missing", list)
            if len(had) != part.schema.n_features or not all(isinstance(column, bool) for column in had):
                refuse("is damaged: what it says of missing values does not fit its columns")
        return pruning_from_json(header) | record_from_json(header, part) | {"shrinkage_": shrinkage} | missing

    def _about(self) -> About:
        n_leaves, depth = int(self.get_n_leaves()), int(self.get_depth())
        sentence = f"{n_leaves} leaves, depth {depth}"
        return About(
            "tree",
            {"leaves": n_leaves, "depth": depth},
            {"tree": f"{counted(n_leaves, 'leaf', 'leaves')}, depth {depth}"},
            sentence,
            why_no_trees="the model is one tree, not a forest. Leave it out.",
        )

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
        X : table of shape (n_samples, n_features), or stream
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are. A stream is a table
            that is read some rows at a time, as by `spinney.scan`: y, sample_weight, exposure and groups may then be
            the names of its columns. It needs `max_bins`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or str
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
        beside = {"y": y, "sample_weight": sample_weight, "exposure": exposure, "groups": groups}
        if (client := client_of(X)) is not None:
            later = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
            fitted: Self = fit_alone(client, self, X, beside | later)
            return fitted
        self._check_parameters()
        refuse_unsupported(self)
        X, (y, sample_weight, exposure, groups) = taken_apart(X, beside, self.categorical_features)
        check_stream(X, self)
        if self._setting("dialect") is not None:
            if groups is not None or X_val is not None or y_val is not None or sample_weight_val is not None:
                raise ValueError(
                    "rpart's rules use neither groups nor held-out rows. Pass folds as xval, or set dialect=None."
                )
            return self._fit_by_rpart(X, y, sample_weight, exposure)
        return self._fit(X, y, sample_weight, exposure, groups, (X_val, y_val, sample_weight_val))

    def _fit(self, X: Any, y: Any, sample_weight: Any, exposure: Any, groups: Any, later: tuple[Any, Any, Any]) -> Self:
        """Grow the tree, prune and shrink it; `later` are the table, target and weights of held-out rows."""
        table = read_table(X)
        schema = self._learn_schema(table)
        sample_weight = read_weights(sample_weight, table.n_rows)
        time = None
        if exposure is not None or self.criterion == "exponential":
            y, sample_weight, time = self._read_time(y, sample_weight, exposure, later[0] is not None, table.n_rows)
        target = self._read_target(y, table.n_rows)
        weight = self._target_weights(target, y, sample_weight)
        costs = self._read_costs(target, weight)
        random = check_random_state(self.random_state)
        held_out = self._read_held_out(schema, target, *later, costs)
        check_request(self, held_out is not None or self.validation_fraction is not None, groups, table.n_rows)
        columns = self._pooled(schema.encode(table, unseen=self.unseen, estimator=type(self).__name__), sample_weight)
        loss = self._losses(self._engine_target(target)[0], costs)
        if self.validation_fraction is not None:
            weight, weight_val = self._part_rows(target, weight, table.n_rows, random)
            held_out = HeldOut(columns, loss, weight_val)
        learned = self._learned(target)
        growth = self._growth(columns, schema, target, weight, costs, random, loss, time, learned)
        tree = growth.grow(weight)
        learned |= self._learned_costs(costs)
        rows = FitRows(X, y, self._engine_target(target)[0], groups, random, partial(self._with_tree, schema, learned))
        pruned = prune_grown(self, tree, growth, held_out, rows)
        tree, learned["shrinkage_"] = shrunk(
            pruned.tree, self._setting("shrinkage"), growth, pruned.alpha, random, groups
        )
        learned["_had_missing"] = columns.ranges(weight, self._n_threads)[2].astype(bool).tolist()
        check_files(X)
        self._forget()
        self._keep(schema, tree, learned)
        self._keep_pruning(pruned.learned)
        return self

    def _read_time(
        self, y: Any, case_weight: NDArray[np.float64] | None, exposure: Any, has_held_out: bool, n_rows: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Rates, their weights, and the time behind each row, from counts of events or from survival times."""
        if self._setting("scoring") is not None:
            raise ValueError("scoring does not go with exposure or survival times: their trees are judged by deviance.")
        rates, weight = self._per_exposure(y, case_weight, exposure, has_held_out, n_rows)
        time = weight if case_weight is None else weight / np.where(case_weight > 0, case_weight, 1.0)
        return rates, weight, time

    def _growth(
        self,
        columns: _engine.Table,
        schema: Schema,
        target: Any,
        weight: NDArray[np.float64] | None,
        costs: ClassCosts | None,
        random: np.random.RandomState,
        loss: Loss,
        time: NDArray[np.float64] | None,
        learned: dict[str, Any],
    ) -> Growth:
        """Return what grows trees of these rows, and puts into `learned` how many outputs they have."""
        array, _ = self._engine_target(target)
        n_classes, n_outputs = learned.pop("_n_classes"), learned["n_outputs_"]
        user = prepare(self, array, weight, n_classes)
        if user is not None and n_classes is None:
            n_outputs = learned["n_outputs_"] = user.n_values

        def grow(rows_weight: NDArray[np.float64] | None) -> FittedTree:
            engine, _ = self._grow(columns, schema, target, rows_weight, random, costs, time is not None, user=user)
            return self._restated(FittedTree(engine, n_classes, n_outputs), costs)

        codes = None if n_classes is None else array
        gains = partial(self._split_gains, schema, costs)
        return Growth(columns, codes, weight, grow, loss, self._node_risks, gains, self._n_threads, time)

    @property
    def _counts_weights(self) -> bool:
        return not self._random_ties

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

    def _read_held_out(
        self, schema: Schema, target: Any, X: Any, y: Any, weight: Any, costs: ClassCosts | None
    ) -> HeldOut | None:
        if X is None and y is None and weight is None:
            return None
        if X is None or y is None:
            raise ValueError("Pass both X_val and y_val, or neither; sample_weight_val goes with them.")
        if self.validation_fraction is not None:
            raise ValueError("Pass either validation_fraction or X_val and y_val, not both.")
        beside = {"y_val": y, "sample_weight_val": weight}
        X, (y, weight) = taken_apart(X, beside, self.categorical_features, "X_val")
        table = read_table(X)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        actual = self._held_out_target(target, y, table.n_rows)
        return HeldOut(columns, self._losses(actual, costs), read_weights(weight, table.n_rows))

    def _fit_by_rpart(self, X: Any, y: Any, sample_weight: Any, exposure: Any) -> Self:
        from spinney._tree.rpart.estimator import fit_by_rpart

        fit_by_rpart(self, X, y, sample_weight, exposure)
        return self

    def _keep(self, schema: Schema, tree: FittedTree, learned: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        self._keep_schema(schema)
        self.tree_ = tree
        tree.n_features = schema.n_split_features
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
        weighing: _engine.WeighingOptions | None = None,
        user: UserTarget | None = None,
    ) -> tuple[_engine.Tree, NDArray[np.uint32]]:
        """Grow the tree, and say at which node each row came to rest where splits are weighed."""
        array, n_classes = self._engine_target(target)
        case_weight = weight
        if costs is not None:
            weight = costs.split_weights(target.codes[:, 0], weight)
        criterion = self._engine_criterion(costs, has_exposure)
        total_weight = float(columns.n_rows) if weight is None else any_order_sum(weight)
        options = self._growth_options(
            schema,
            columns.n_rows,
            total_weight,
            (array, n_classes),
            costs,
            user,
            seed=int(random.randint(np.iinfo(np.int32).max)) if self._is_random(schema) else 0,
            weighing=weighing or self._weighing(case_weight),
            row_weight=weight_of_one_row(weight) if self._guards_categories and self._counts_weights else 0.0,
        )
        y = array if user is None else user.y
        tree, resting_node = _engine.grow_tree(columns, criterion, y, n_classes, weight, options)
        if user is not None and n_classes:
            check_shares(tree)
        return tree, resting_node

    def _weighing(self, weight: NDArray[np.float64] | None) -> _engine.WeighingOptions | None:
        """How the engine weighs the splits of a node; None where it keeps the best only."""
        if self._setting("missing") == "learned" and self._setting("max_competitors") == 0:
            return None
        return _engine.WeighingOptions(
            present_only=self._setting("missing") == "surrogate",
            max_competitors=min(self._setting("max_competitors"), NO_LIMIT),
            max_surrogates=min(self._setting("max_surrogates"), NO_LIMIT),
            absent_disagrees=self._setting("surrogate_style") == "all",
            missing_fallback=self._setting("missing_fallback"),
            case_weight=weight,
            rpart=None,
        )

    # ---- using ---------------------------------------------------------------------------------------

    def _leaves(self, X: Any) -> NDArray[np.uint32]:
        columns = self._columns(X)
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
        return self.tree_.path(leaves)

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
        return self.schema_.credit_inputs(self.tree_.importances(self.schema_.n_split_features))


class TreeClassifier(OfClasses, BaseTree):
    """A tree for classes."""


class TreeRegressor(OfValues, BaseTree):
    """A tree for numbers."""
