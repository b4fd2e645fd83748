"""The base class of boosted classifiers, regressors, rankers and survival models."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.boosters import CURVES
from spinney._boosting.calibration import SAVED_CALIBRATION, Calibration
from spinney._boosting.fit import BoostingFit, FitResult
from spinney._boosting.options.option_objects import (
    OPTION_CLASSES,
    check_option_values,
    check_switched_on,
    with_options,
)
from spinney._boosting.settings import BoosterParameters, BoostingSettings
from spinney._boosting.sum_of_trees import SumOfTrees
from spinney._boosting.target import BoostingTarget, initial_scores
from spinney._cluster.collections import lazy_for_collections
from spinney._data.display import plural
from spinney._data.scan import client_of, stream_of
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import About
from spinney._estimator.fit_inputs import FitInputs, RowInputs, ValidationSet, batches_with, validation_sets
from spinney._estimator.parameters import estimator
from spinney._estimator.rate_search import ATTRIBUTES as RATE_ATTRIBUTES
from spinney._estimator.rate_search import adopt, is_searched, search_rate
from spinney._estimator.support import SAVED_RANGES
from spinney._model.boosting import FittedBoosting
from spinney._model.distributions import DISTRIBUTIONS
from spinney._model.file.codec import SavedState, array, columns, integer, number, numbers, optional, table, text
from spinney._model.file.container import refuse
from spinney._model.lazy_sequence import LazySequence
from spinney._model.links import read_offset
from spinney._model.row_predictors import RowPredictor
from spinney._model.saving.saved_model import SavedModel

BY_ROUND = (*CURVES, "oob_score_", "n_dropped_", "history_")  # attributes that a refitted model does not have
SAVED = SavedState(
    "boosting",
    {
        "_seed": integer(key="seed", least=0, below=2**31),
        "train_score_": numbers(key="train_score"),
        "validation_score_": numbers(key="validation_score", is_optional=True),
        "oob_scores_": optional(array("float64", None, finite=False, key="oob_scores")),
        "oob_improvement_": optional(array("float64", None, finite=False, key="oob_improvement")),
        "scales_": optional(array("float64", None, finite=False, key="scales")),
        "_ranges": optional(SAVED_RANGES),
        "_calibration": optional(table(SAVED_CALIBRATION, Calibration, key="calibration")),
        "n_dropped_": numbers(np.intp, "n_rounds", key="n_dropped", is_optional=True, least=0, below="n_rounds"),
        "_tree_learning_rate": optional(number(above=0.0, below=math.inf, key="step")),
        "stopped_because_": optional(text(key="stopped_because")),
        "learning_rate_": optional(number(above=0.0, key="chosen_rate")),
        "cv_results_": columns(),
    },
)


@estimator
class BaseBoosting(BoosterParameters, SumOfTrees):
    """Gradient boosting of any target."""

    _saved = SAVED
    _target_type: ClassVar[type[BoostingTarget]]
    _leaf_fraction: ClassVar[float] = 0.2  # default min_samples_leaf of small tables, as a fraction of the rows
    boosting_: FittedBoosting = field(init=False)
    train_score_: Floats = field(init=False)
    stopped_because_: str = field(init=False)
    init_: Any = field(init=False)  # the estimator of the initial scores, if there is one
    _seed: int = field(init=False)
    _tree_learning_rate: float = field(init=False)
    _calibration: Calibration = field(init=False)

    _other_library_advice: ClassVar[dict[str, str]] = {
        "criterion": "Splits are compared by the loss that they save. Leave it out.",
        "init": "Pass the predictions of another model as offset, to fit and to predict.",
        "leaves": "There is one score, so that a leaf has one value. Leave it out.",
    }

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params : dict
            New values. The options of an option object, such as `spinney.Dart`, have names like ``dart__rate``. If the
            parameter does not hold an option object yet, one is created.

        Returns
        -------
        self
            The estimator.
        """
        options: dict[str, dict[str, Any]] = {}
        for name in list(params):
            parameter, _, option = name.partition("__")
            if option and parameter in OPTION_CLASSES:
                options.setdefault(parameter, {})[option] = params.pop(name)
        for parameter, changes in options.items():
            check_switched_on(parameter, params.get(parameter, getattr(self, parameter)), changes, parameter in params)
        super().set_params(**params)
        for parameter, changes in options.items():
            setattr(self, parameter, with_options(parameter, getattr(self, parameter), changes))
        return self

    def _validate_params(self) -> None:
        super()._validate_params()
        for parameter in OPTION_CLASSES:
            check_option_values(parameter, getattr(self, parameter), type(self).__name__)

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        X_val: TableLike | dict[str, TableLike] | None = None,
        y_val: ArrayLike | dict[str, ArrayLike] | None = None,
        sample_weight_val: ArrayLike | dict[str, ArrayLike] | None = None,
        offset_val: ArrayLike | dict[str, ArrayLike] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or stream
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or a
            list of rows. Strings, categories, booleans and missing values need no encoding. A stream is a table that is
            read in chunks, such as that of `spinney.scan`: y, sample_weight, offset, groups and time may then be the
            names of its columns.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target; for `GradientBoostingSurvival`, times in one of the forms that its class docstring lists.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 counts twice; a weight of 0 leaves the row out.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Initial scores that the trees add to, such as the logarithm of an exposure. Pass the same to `predict`.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together, by early stopping and in folds.
        time : array-like of shape (n_samples,), optional
            Times, as numbers or dates: the latest rows are held out for early stopping. With ``n_estimators="auto"`` a
            single booster is then fitted, because folds would hold out earlier rows too.
        X_val, y_val, sample_weight_val, offset_val : as X, y, sample_weight and offset, optional
            Validation set, for early stopping and the learning curve. Several sets are dicts of these by name: the
            first stops the fit, and all are evaluated after each round (``history_``).
        checkpoint : str or path, optional
            A file to which the rounds are saved during the fit. If it exists, because an earlier process with the same
            data and parameters was interrupted, the fit resumes from it; the result is bit-identical. The file is
            removed when the fit is done.

        Returns
        -------
        self
            The fitted estimator.
        """
        validation = validation_sets(X_val, y_val, sample_weight_val, offset_val)
        return self._fit_where_rows_are(
            FitInputs(X, y, sample_weight, offset, groups, time, validation=validation, checkpoint=checkpoint)
        )

    def _fit_where_rows_are(self, inputs: FitInputs) -> Self:
        """Boost in this process, or on the workers that hold a Dask collection."""
        if is_searched(self.learning_rate) and not (self.warm_start and hasattr(self, "learning_rate_")):
            return self._fit_with_chosen_rate(inputs)
        if (client := client_of(inputs.X)) is None:
            return self._fit(inputs)
        from spinney._boosting.distributed.fit import fit_boosting

        return fit_boosting(client, self, inputs)

    def _fit_with_chosen_rate(self, inputs: FitInputs) -> Self:
        """Choose the learning rate by cross-validation, and fit with it."""
        self._check_parameters()
        if client_of(inputs.X) is not None or stream_of(inputs.X) is not None:
            raise ValueError(
                "learning_rate='cv' fits the rows of folds, which must be in memory. Choose the rate on a sample, or "
                "set a number."
            )

        of_folds = self._target_type.held_out_groups(inputs) is not None  # else they are lists, which every fit needs

        def fit_fold(model: Self, own: RowInputs, held_out: RowInputs) -> Self:
            groups = [None if of_folds else rows.groups for rows in (own, held_out)]
            validation = ValidationSet(held_out.X, held_out.y, held_out.sample_weight, held_out.offset, groups[1])
            rows = FitInputs(own.X, own.y, own.sample_weight, own.offset, groups[0])
            return model._fit(replace(rows, validation=(validation,)))

        found = search_rate(self, inputs, fit_fold)
        fitted: Self = clone(self).set_params(learning_rate=found["learning_rate_"])
        if of_folds and not (BoostingSettings.of(fitted).stops_early and not inputs.validation):
            inputs = replace(inputs, groups=None)
        adopt(self, fitted._fit(inputs), found)
        return self

    def _fit(self, inputs: FitInputs) -> Self:
        """Fit, and set the fitted attributes at the end, so that a failed fit changes nothing."""
        self._check_parameters()
        settings = BoostingSettings.of(self)
        earlier = None
        if settings.warm_start and hasattr(self, "boosting_"):
            self._check_constraints_hold()
            earlier = FitResult.of(vars(self), self._fitted_target(settings))
        result = BoostingFit(settings, self._target_type, earlier).run(inputs)
        of_search = () if is_searched(self.learning_rate) else RATE_ATTRIBUTES
        for name in (
            *BY_ROUND,
            *of_search,
            "init_",
            "_calibration",
            "_tree_learning_rate",
            "baseline_hazard_",
            "scale_",
        ):
            self.__dict__.pop(name, None)
        self._set_schema(result.schema)
        self.__dict__.update(result.attributes())
        return self

    def _check_constraints_hold(self) -> None:
        """Refuse a warm start if the fitted trees may violate monotonic_cst."""
        fitted = self.boosting_
        has_many = fitted.n_probabilities > 0 and fitted.n_scores > self.n_outputs_  # multiclass: unprovable
        if has_many or not self._constrained_directions(self.monotonic_cst):
            return
        report = self.verify_constraints()
        if report.holds is not True:
            raise ValueError(
                "warm_start adds to the trees of the earlier fit, which may violate monotonic_cst "
                f"({str(report).splitlines()[0]}). Set warm_start=False."
            )

    def _n_folds_held_out(self) -> int:
        return 2 if BoostingSettings.of(self).stops_early else 0

    # ---- the fitted model ----------------------------------------------------------------------------

    def _fitted_target(self, settings: BoostingSettings | None = None) -> BoostingTarget:
        """Return the target of the fitted model."""
        settings = BoostingSettings.of(self) if settings is None else settings
        return self._target_type(settings, self.n_outputs_, self._labels)

    @property
    def _depth_limit(self) -> int | None:
        return self.max_depth

    @property
    def _predicts_alone(self) -> bool:
        return "init_" not in self.__dict__

    def _read_offset(self, X: TableLike, offset: ArrayLike | None, n_rows: int) -> Floats | None:
        """Return the sum of the offset and the scores of `init_`, (n_scores, n_rows)."""
        model = self.boosting_
        added = read_offset(offset, n_rows, model.n_scores)
        if self._predicts_alone:
            return added
        first = initial_scores(self.init_, X, model.link, model.n_probabilities, model.n_scores)
        return first if added is None else first + added

    def to_predictor(self) -> RowPredictor:
        """Return a predictor for single rows, which takes microseconds per row.

        The predictor does not check its input and starts no thread. It takes the values of a row in column order, or by
        name.

        Returns
        -------
        BoostingRowPredictor
            The predictor; each thread needs its own.
        """
        if not self._predicts_alone:
            raise ValueError(
                f"The initial scores are predictions of {type(self.init_).__name__}, which a predictor of single rows "
                "does not support. Use predict, or fit with init='constant'."
            )
        return super().to_predictor()

    # ---- predicting ----------------------------------------------------------------------------------

    def _scores(self, X: TableLike, offset: ArrayLike | None) -> Floats:
        self._check_is_fitted()
        batches = batches_with(X, self.schema_, offset)
        if batches is not None:
            return np.concatenate([self._scores(*part) for part in batches])
        columns = self._columns(X)
        scores = self.boosting_.scores(columns, self._n_threads)
        added = self._read_offset(X, offset, columns.n_rows)
        return scores if added is None else scores + added.T

    def _staged_scores(self, X: TableLike, offset: ArrayLike | None) -> Iterator[Floats]:
        check_is_fitted(self)
        if hasattr(self, "n_dropped_"):
            raise ValueError(
                "Rounds of a fit with dart change earlier ones, so that the model has no stages. Fit it with "
                "dart=None, or with fewer rounds."
            )
        columns = self._columns(X)
        added = self._read_offset(X, offset, columns.n_rows)
        trees = np.zeros((columns.n_rows, self.boosting_.n_scores))
        for round_ in range(self.boosting_.n_rounds):
            trees = trees + self.boosting_.round_sums(columns, round_, self._n_threads)
            scores = trees + self.boosting_.start
            yield scores if added is None else scores + added.T

    @lazy_for_collections()
    def predict(self, X: TableLike, *, offset: ArrayLike | None = None) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Initial scores, to which those of the trees are added, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, numbers, or scores (ranking, Cox's model); a column for each quantile, or for each column of
            y, if there are several.
        """
        scores = self._scores(X, offset)
        return self._target_type.predictions(scores, self.boosting_, self._labels)

    def staged_predict(self, X: TableLike, *, offset: ArrayLike | None = None) -> Iterator[NDArray[Any]]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            As in `predict`.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions of the rounds so far.
        """
        for scores in self._staged_scores(X, offset):
            yield self._target_type.predictions(scores, self.boosting_, self._labels)

    # ---- files and summaries -------------------------------------------------------------------------

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        model, n_features = saved.model, saved.schema.n_features
        assert isinstance(model, FittedBoosting)
        n_rounds, n_predicted = model.n_rounds, max(1, model.n_probabilities)
        found = SAVED.from_header(header, n_rounds=n_rounds, n_features=n_features, n_predicted=n_predicted)
        for name in (CURVES.keys() & found.keys()) - {"validation_score_"}:
            if len(found[name]) < n_rounds:
                refuse("is damaged: its learning curve is shorter than the model")
        if "_calibration" in found and not found["_calibration"].is_usable(model.n_probabilities):
            refuse("is damaged: the rows that calibrate it are unusable")
        if "oob_scores_" in found:
            found["oob_score_"] = float(found["oob_scores_"][n_rounds - 1])
        return found

    @property
    def n_estimators_(self) -> int:
        """Number of rounds, by the name of scikit-learn's gradient boosting."""
        check_is_fitted(self)
        return int(self.boosting_.n_rounds)

    @property
    def n_trees_per_iteration_(self) -> int:
        """Number of trees in a round, by the name of scikit-learn's histogram gradient boosting."""
        check_is_fitted(self)
        return int(self.boosting_.n_scores)

    @property
    def is_categorical_(self) -> NDArray[np.bool_] | None:
        """Whether each column is split as a category without an order; None if no column is."""
        check_is_fitted(self)
        found = np.array([feature.kind == "category" for feature in self.schema_.features])
        return found if found.any() else None

    def _score_names(self) -> list[str]:
        """Return the names of the scores, if there are several."""
        if self.boosting_.link in DISTRIBUTIONS:
            return [f"the {name}" for name in DISTRIBUTIONS[self.boosting_.link].score_names]
        return [f"output {k}" for k in range(self.boosting_.n_scores)]

    def _about(self) -> About:
        last, curve = self.n_iter_ - 1, getattr(self, "validation_score_", None)
        retained, tried, n_leaves = int(self.n_iter_), len(self.train_score_), self.boosting_.n_leaves
        loss, held_out = float(self.train_score_[last]), None if curve is None else float(curve[last])
        stopped = f" (the best of {tried})" if tried > retained else ""
        rounds, leaves = plural(retained, "round"), plural(n_leaves, "leaf")
        lines = {"boosting": f"{rounds}{stopped}, {leaves}", "loss, training rows": f"{loss:.4g}"}
        sentence = f"{rounds}, {leaves}; loss {loss:.4g}"
        if held_out is not None:
            lines["  held-out rows"] = f"{held_out:.4g}"
            sentence += f", {held_out:.4g} on held-out rows"
        stop_reason = getattr(self, "stopped_because_", None)
        if stop_reason is not None:
            lines["  stopped"] = stop_reason
            sentence += f"; {stop_reason}"
        size = {
            "loss": self.loss if isinstance(self.loss, str) else "custom",
            "rounds": retained,
            "rounds_tried": tried,
            "leaves": n_leaves,
        }
        size |= {"training_loss": loss, "held_out_loss": held_out, "stopped_because": stop_reason}
        trees = LazySequence(self.boosting_.n_trees, self._tree_estimator)
        return About("boosting", size, lines, sentence, trees, title_of_tree=self._title_of_tree)

    def _title_of_tree(self, t: int) -> str:
        n_scores = self.boosting_.n_scores
        of_score = f" for {self._score_names()[t % n_scores]}" if n_scores > 1 else ""
        return f"Round {t // n_scores + 1} of {self.n_iter_}, what it adds to the score{of_score}"
