"""What forests share: samples of rows, growing, predicting, out-of-bag errors."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.columns import RawTable
from spinney._data.numeric.reproducible import any_order_sum
from spinney._data.scan import client_of
from spinney._estimator.costs import ClassCosts
from spinney._estimator.parameters import COUNT, count_features
from spinney._estimator.row_copies import relative_weights, weight_of_one_row
from spinney._estimator.row_fingerprint import RowPrint
from spinney._estimator.streams import check_files, taken_apart
from spinney._estimator.support import ColumnRanges
from spinney._estimator.target import read_weights
from spinney._estimator.user_criterion import check_shares, is_user, prepare, refuse_unsupported
from spinney._forest.evaluation import JudgedForest
from spinney._forest.growing.batches import ForestRequest, Grown, balanced_weights, grow_in_turns
from spinney._forest.growing.combinations import with_combinations
from spinney._forest.growing.learning_rows import LearningRows, per_draw
from spinney._forest.growing.out_of_bag import OutOfBag
from spinney._forest.growing.rows import Draws, draw_rows, row_keys, rows_with_weight
from spinney._forest.growing.saved_state import forest_from_json, forest_to_json
from spinney._forest.growing.strength import (
    N_JUDGES,
    STRENGTHS,
    USUAL,
    JudgingRows,
    first_trees,
    grows_again,
    strength_by_helpers,
)
from spinney._forest.growing.training_rows import keep_training_rows
from spinney._forest.growing.warm_start import (
    check_extension,
    check_samples_go_on,
)
from spinney._forest.importances import ForestImportances
from spinney._forest.proximities.neighbourhood import Neighbourhood
from spinney._forest.proximities.prototypes import ClassPrototypes
from spinney._forest.uncertainty.intervals import UncertainClasses, UncertainForest, UncertainValues
from spinney._model.forest import FittedForest
from spinney._model.saving.model_part import FittedPart
from spinney._model.tree import FittedTree
from spinney._tree.grow.estimator import GrowingEstimator
from spinney._tree.grow.streams import check_stream
from spinney._tree.grow.task import OfClasses, OfValues

Floats = NDArray[np.float64]


_NO_SURROGATES = (
    "The trees of a forest learn at each split to which side rows without a value go. For surrogate splits, fit a "
    "decision tree with missing='surrogate', or bagging of such trees."
)
_NO_PRUNING = "Trees of a forest are pruned by ccp_alpha alone; choose it by oob_score_."


class BaseForest(JudgedForest, Neighbourhood, ForestImportances, UncertainForest, GrowingEstimator):
    """What forests of classes and of values share."""

    _elsewhere: ClassVar[dict[str, str]] = {
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GrowingEstimator._parameter_constraints,
        "n_estimators": [COUNT, StrOptions({"auto"})],
        "max_features_per_tree": GrowingEstimator._parameter_constraints["max_features"],
        "bootstrap": ["boolean"],
        "replace": ["boolean"],
        "max_samples": [
            COUNT,
            Interval(RealNotInt, 0.0, None, closed="neither"),
            None,
        ],
        "oob_score": ["boolean", callable, str],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "shrinkage": [Interval(Real, 0.0, None, closed="left"), None],
        "keep_rows": ["boolean"],
        "oblique": [COUNT, StrOptions({"auto"}), None],
        "n_combined": [Interval(Integral, 1, None, closed="left")],
    }

    def _to_header(self) -> dict[str, Any]:
        return forest_to_json(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        return forest_from_json(header, part)

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
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
        if (client := client_of(X)) is not None:
            beside = {"y": y, "sample_weight": sample_weight, "groups": groups}
            from spinney._forest.distributed import fit_forest

            fitted: Self = fit_forest(client, self, X, beside)
            return fitted
        return self._fit(X, y, sample_weight, groups)

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, share: Any = None) -> Self:
        """Grow the forest; `share` grows trees in other processes, as a `ForestRequest` takes it."""
        self._check_parameters()
        self._check_samples(groups)
        refuse_unsupported(self)
        beside = {"y": y, "sample_weight": sample_weight, "groups": groups}
        X, (y, sample_weight, groups) = taken_apart(X, beside, self.categorical_features)
        check_stream(X, self)
        table = read_table(X)
        earlier: FittedForest | None = self.forest_ if self.warm_start and hasattr(self, "forest_") else None
        schema = self._learn_schema(table, goes_on=earlier is not None)
        weight = read_weights(sample_weight, table.n_rows)
        target = self._read_target(y, table.n_rows)
        learned = self._learned(target)
        if earlier is not None:
            check_extension(self, earlier, learned)
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max)) if earlier is None else self._seed
        schema, rows = self._learning_rows(schema, table, target, (y, weight, groups), seed, earlier)
        grown, found = self._grow(schema, rows, learned, seed, earlier, share)
        check_files(X)
        learned.pop("_n_classes")
        self._keep(schema, grown, learned | found | self._learned_costs(rows.costs))
        return self

    def _learning_rows(
        self,
        schema: Schema,
        table: RawTable,
        target: Any,
        beside: tuple[Any, Floats | None, Any],
        seed: int,
        earlier: FittedForest | None,
    ) -> tuple[Schema, LearningRows]:
        """Read what stands beside the table (target, weights, groups); return the schema with its combinations too."""
        y, given, groups = beside
        relative, copies = relative_weights(given)
        # rates are shrunk by how many events there are: their unit does matter
        sample_weight = given if self._setting("rate_shrinkage") > 0 else relative
        weight = self._target_weights(target, y, sample_weight)
        costs = self._read_costs(target, weight)
        inputs = schema.encode_inputs(table, unseen=self.unseen, estimator=type(self).__name__)
        schema = with_combinations(self, schema, inputs, sample_weight, seed, earlier is None)
        array, n_classes = self._engine_target(target)
        has_prints = self.bootstrap or self._known_strength(earlier, costs) is None
        return schema, LearningRows(
            inputs,
            self._pooled(schema.combined(inputs), sample_weight),
            array,
            n_classes,
            target.classes if n_classes else None,
            given,
            sample_weight,
            weight,
            copies if self.bootstrap and groups is None else None,
            costs,
            groups,
            inputs.fingerprints(self._n_threads) if has_prints else None,
        )

    def _grow(
        self,
        schema: Schema,
        rows: LearningRows,
        learned: dict[str, Any],
        seed: int,
        earlier: FittedForest | None,
        share: Any,
    ) -> tuple[Grown, dict[str, Any]]:
        """Grow the trees; return what else was found."""
        keys = None if rows.prints is None else row_keys(rows.prints, rows.target, rows.inputs.n_columns)
        draws = self._draw(keys, rows, seed) if self.bootstrap and keys is not None else None
        if earlier is not None:
            check_samples_go_on(self.__dict__, draws)
        known = self._known_strength(earlier, rows.costs)
        target = rows.target, rows.n_classes
        request = self._request(
            schema, rows.columns, target, rows.weight, rows.copies, draws, rows.costs, seed, learned,
            (known or 0.0) * rows.unit,
        )  # fmt: skip
        request = replace(request, share=share)
        out_of_bag = self._out_of_bag(rows.columns, draws, (rows.target, rows.classes), rows.sample_weight)
        grown = Grown(earlier, out_of_bag)
        if known is None:
            assert keys is not None
            request, known = self._with_strength(request, grown, rows.to_judge_by(keys), schema, seed, learned)
        grow_in_turns(request, grown, self.n_estimators, self.verbose)
        found: dict[str, Any] = {"_seed": seed, "_draws": draws, "shrinkage_": known, "_training_rows": None}
        found["_all_rows"] = None if self.bootstrap else rows_with_weight(rows.weight, rows.columns.n_rows)
        found["_ranges"] = ColumnRanges.of(rows.inputs, rows.weight, self._n_threads)
        found["_row_print"] = None
        if self.bootstrap and rows.prints is not None:
            found["_row_print"] = RowPrint.of(rows.prints, rows.target)
        if self.keep_rows:
            assert grown.forest is not None
            found["_training_rows"] = keep_training_rows(
                grown.forest, rows.columns, *target, rows.in_leaves, rows.sample_weight, draws,
                request.balanced is not None, self._n_threads,
            )  # fmt: skip
        return grown, found

    def _known_strength(self, earlier: FittedForest | None, costs: ClassCosts | None) -> float | None:
        """Return by how many rows leaves are shrunk; None: that is to be found out."""
        if self.shrinkage != "auto":
            return float(self.shrinkage or 0.0)
        usual = STRENGTHS[USUAL]
        if earlier is not None and earlier.n_trees >= N_JUDGES:
            return float(getattr(self, "shrinkage_", usual))
        has_few = self.n_estimators != "auto" and self.n_estimators < N_JUDGES
        return usual if has_few or costs is not None or is_user(self.criterion) else None

    def _with_strength(
        self,
        request: ForestRequest,
        grown: Grown,
        rows: JudgingRows,
        schema: Schema,
        seed: int,
        learned: dict[str, Any],
    ) -> tuple[ForestRequest, float]:
        """Find out by how many rows leaves are shrunk; put the trees that have told it into the forest."""

        def for_helpers(some: JudgingRows) -> ForestRequest:
            columns = some.columns if some is rows else self._pooled(some.columns, some.weight)
            own_seed = (seed + 1) % np.iinfo(np.int32).max
            draws = draw_rows(
                keys=some.keys, weight=some.weight, copies=some.copies, groups=None, classes=None, balanced=False,
                replace=True, max_samples=None, seed=own_seed,
            )  # fmt: skip
            target = (some.codes, some.n_classes)
            return self._request(schema, columns, target, some.weight, some.copies, draws, None, own_seed, learned, 0.0)

        if grown.forest is not None:  # few trees of an earlier fit, which had the usual strength
            strength = float(getattr(self, "shrinkage_", STRENGTHS[USUAL]))
            if not grows_again(request, grown.forest, strength * rows.unit):
                return replace(request, shrinkage=strength * rows.unit), strength
            grown.forest = None
        if request.draws is None:
            strength = strength_by_helpers(rows, for_helpers, self._n_threads)
        else:
            first, strength = first_trees(request, rows, self._n_threads)
            grown.add(first, self.n_estimators == "auto")
        return replace(request, shrinkage=strength * rows.unit), strength

    def _check_samples(self, groups: Any) -> None:
        """Refuse parameters of sampling that do not go together."""
        if self.bootstrap:
            if isinstance(self.oob_score, str):
                get_scorer(self.oob_score)  # refuses an unknown name before the trees are grown
            return
        if self.max_samples is not None:
            raise ValueError("max_samples goes with bootstrap=True. Set that, or max_samples=None.")
        if self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True: else no row is left out.")
        for name, given in (
            ("n_estimators='auto'", self.n_estimators == "auto"),
            ("sampling", self._setting("sampling") is not None),
            ("replace=False", not self.replace),
            ("groups", groups is not None),
        ):
            if given:
                raise ValueError(f"{name} goes with bootstrap=True: with bootstrap=False every tree sees every row.")

    def _draw(self, keys: NDArray[np.uint64], rows: LearningRows, seed: int) -> Draws:
        classes = None
        if self._setting("sampling") is not None:  # with several outputs, each combination of their classes is one
            classes = np.unique(rows.target, axis=0, return_inverse=True)[1].reshape(-1)
        return draw_rows(
            keys=keys,
            weight=rows.weight,
            copies=rows.copies,
            groups=rows.groups,
            classes=classes,
            balanced=self._setting("sampling") == "balanced",
            replace=self.replace,
            max_samples=self.max_samples,
            seed=seed,
        )

    def _request(
        self,
        schema: Schema,
        columns: _engine.Table,
        target: tuple[NDArray[Any], list[int]],
        weight: Floats | None,
        copies: NDArray[np.int64] | None,
        draws: Draws | None,
        costs: ClassCosts | None,
        seed: int,
        learned: dict[str, Any],
        strength: float,
    ) -> ForestRequest:
        array, n_classes = target
        user = prepare(self, array, weight, learned["_n_classes"])
        if user is not None and not n_classes:
            learned["n_outputs_"] = user.n_values
        total = float(columns.n_rows) if weight is None else any_order_sum(weight)
        weight = each_draw = per_draw(weight, copies)
        if costs is not None:
            weight = costs.split_weights(array[:, 0], weight)
        in_sample = total if draws is None else total * draws.share
        row_weight = weight_of_one_row(weight)
        if draws is not None and (weight is None or row_weight > 0):  # the rows of a sample are there several times
            row_weight = draws.times_drawn * (row_weight or 1.0)
        options = self._growth_options(
            schema, columns.n_rows, in_sample, target, costs, user, seed, row_weight=row_weight
        )
        per_tree = self.max_features_per_tree

        def view(forest: _engine.Forest) -> FittedForest:
            decision = None if costs is None else costs.decision
            return FittedForest(forest, learned["_n_classes"], learned["n_outputs_"], decision)

        def finish(tree: FittedTree) -> FittedTree:
            if user is not None and n_classes:
                check_shares(tree.engine)
            tree = self._restated(tree, costs)
            if self.ccp_alpha > 0:
                tree = tree.replaced(tree.engine.pruned(float(self.ccp_alpha), self._node_risks(tree)))
            return tree

        restates = costs is not None or self._setting("rate_shrinkage") > 0
        changes = restates or user is not None or self.ccp_alpha > 0
        is_balanced = self._setting("class_weight") == "balanced_subsample"
        return ForestRequest(
            columns,
            self._engine_criterion(costs, False),
            array if user is None else user.y,
            n_classes,
            weight,
            options,
            draws,
            None if per_tree is None else min(count_features(per_tree, schema.n_features), schema.n_split_features),
            array if is_balanced else None,
            each_draw if is_balanced else None,
            finish if changes else None,
            schema.n_categories,
            view,
            strength,
        )

    def _out_of_bag(
        self,
        columns: _engine.Table,
        draws: Draws | None,
        target: tuple[NDArray[Any], list[NDArray[Any]] | None],
        weight: Floats | None,
    ) -> OutOfBag | None:
        if draws is None or not (self.oob_score or self.n_estimators == "auto"):
            return None
        array, classes = target
        y = array if classes is None else np.column_stack([c[array[:, k]] for k, c in enumerate(classes)])
        y = y[:, 0] if y.shape[1] == 1 else y
        return OutOfBag(columns, draws, array, y, classes, weight, self._n_threads)

    def _keep(self, schema: Schema, grown: Grown, learned: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        assert grown.forest is not None
        found: dict[str, Any] = {}
        if grown.oob is not None:
            metric = None if isinstance(self.oob_score, (bool, np.bool_)) else self.oob_score
            found["oob_score_"] = grown.oob.score(grown.forest, metric)
            found["oob_curve_"] = np.array(grown.curve)
            found[self._oob_name] = grown.forest.spread(grown.oob.means())
            grown.oob.warn_if_lacking()
        for name in ("oob_score_", "oob_curve_", self._oob_name):
            self.__dict__.pop(name, None)
        self._keep_schema(schema)
        self.forest_ = grown.forest
        for name, value in (learned | found).items():
            setattr(self, name, value)

    _oob_name: ClassVar[str]


class ForestClassifier(ClassPrototypes, UncertainClasses, OfClasses, BaseForest):
    """A forest for classes."""

    _oob_name = "oob_decision_function_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OfClasses._parameter_constraints,
        **BaseForest._parameter_constraints,
        "shrinkage": [Interval(Real, 0.0, None, closed="left"), StrOptions({"auto"}), None],
        "class_weight": [dict, list, StrOptions({"balanced", "balanced_subsample"}), None],
        "sampling": [StrOptions({"balanced", "stratified"}), None],
    }

    def _target_weights(self, target: Any, y: Any, weight: Floats | None) -> Floats | None:
        if self.class_weight == "balanced_subsample" and self.bootstrap:
            return weight
        if self.class_weight not in ("balanced", "balanced_subsample"):
            return super()._target_weights(target, y, weight)
        array, n_classes = self._engine_target(target)
        return balanced_weights(array, n_classes, weight, np.ones(len(array), dtype=np.uint32))


class ForestRegressor(UncertainValues, OfValues, BaseForest):
    """A forest for numbers."""

    _oob_name = "oob_prediction_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OfValues._parameter_constraints,
        **BaseForest._parameter_constraints,
        "criterion": [
            StrOptions({"squared_error", "friedman_mse", "absolute_error", "poisson", "user"}),
            HasMethods(["evaluate", "split"]),
        ],
    }
