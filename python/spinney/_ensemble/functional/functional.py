"""Functional boosting for classification and regression."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import field
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.evaluation import HeldOutScore
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.loss import NUMBER_LOSSES, TRAITS, CustomLoss, RegressionLossName
from spinney._boosting.options.recipe import fixed_recipe
from spinney._boosting.settings import RoundSettings, callbacks_of
from spinney._data import Schema
from spinney._data.design import Design
from spinney._data.display import plural
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.ensemble import matched_table
from spinney._ensemble.functional.learners.weak import LearningTable, WeakLearner
from spinney._ensemble.functional.losses import MARGIN_LOSSES, FunctionalLoss, make_loss
from spinney._ensemble.functional.shapes import WithShapes
from spinney._ensemble.functional.stages import (
    BY_NAME,
    Dictionary,
    ForeignSteps,
    FunctionMember,
    FunctionRounds,
    HeldOutRows,
    Stages,
    StepSettings,
    learners_from_json,
    learners_to_json,
    read_learners,
)
from spinney._ensemble.members import LARGEST_SEED
from spinney._ensemble.stagewise import SAVED_RATE, BaseStagewise, EncodedTable, Split
from spinney._estimator import table_estimator
from spinney._estimator.estimator import About
from spinney._estimator.parameters import COUNT, estimator, parameter
from spinney._estimator.rate_search import ATTRIBUTES as RATE_ATTRIBUTES
from spinney._estimator.rate_search import chosen_rate
from spinney._estimator.target import (
    SingleTarget,
)
from spinney._model.file.codec import SavedState, integer, numbers, words
from spinney._model.file.container import refuse
from spinney._model.functional.model import FittedFunctions
from spinney._model.functional.steps import Inputs
from spinney._model.model import FittedModel, fractions


@estimator
class BaseFunctionalBoosting(WithShapes, BaseStagewise):
    """Boosting of any weak learners, for any differentiable loss."""

    learners: Any = parameter(
        StrOptions(set(BY_NAME)),
        list,
        tuple,
        HasMethods(["fit", "predict"]),
        WeakLearner,
        default="stumps",
        kw_only=False,
    )
    n_estimators: int = parameter(COUNT, default=100)
    learning_rate: float | Literal["cv"] = parameter(default=0.1)
    step: Literal["line_search", "fixed"] = parameter(StrOptions({"line_search", "fixed"}), default="line_search")
    subsample: float = parameter(Interval(Real, 0.0, 1.0, closed="right"), default=1.0)
    init: float | None = parameter(Real, None, default=None)
    callbacks: Any = parameter(callable, list, tuple, None, default=None)
    keep_interrupted: bool = parameter("boolean", default=False)

    functions_: FittedFunctions = field(init=False)
    _model_attribute = "functions_"
    _saved: ClassVar[SavedState] = SavedState(
        "functional",
        {
            "_seed": integer(key="seed"),
            "learners_": words(key="learners"),
            "train_score_": numbers(key="train_score"),
            "validation_score_": numbers(key="validation_score", is_optional=True),
            "steps_": numbers(key="steps"),
            "gains_": numbers(key="gains"),
            **SAVED_RATE,
        },
    )

    # ---- differences between classification and regression -----------------------------------------

    @abstractmethod
    def _make_loss(self, n_classes: int | None) -> FunctionalLoss:
        """Return the loss."""

    @abstractmethod
    def _predicted(self, scores: Floats) -> NDArray[Any]:
        """Return the predictions of scores, (n_rows, n_scores)."""

    # ---- fitting -------------------------------------------------------------------------------------

    def _encode(self, X: TableLike) -> EncodedTable:
        return EncodedTable.of(X, self.categorical_features, self.unseen, type(self).__name__)

    def _fit_rows(
        self,
        encoded: EncodedTable,
        target: SingleTarget,
        rows: LearningRows,
        validation: LearningRows | None,
        split: Split,
    ) -> None:
        learners, loss = read_learners(self.learners), self._make_loss(target.n_classes)
        loss.check(rows, "y")
        target.require_rows(rows.weights())
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        columns, schema, X = rows.columns, encoded.schema, rows.X
        held_out: HeldOutRows | None = None
        if validation is not None:
            loss.check(validation, "y_val")
        elif self.early_stopping:
            rows, split_off = split(seed)
            held_out = HeldOutRows(split_off, None)
        design = Design.learn(columns, schema, rows.weights())
        inputs = Inputs(columns, design, self._n_threads, pick_table(X).native)
        if validation is not None:
            native = self._native(validation.X, schema)
            held_out = HeldOutRows(validation, Inputs(validation.columns, design, self._n_threads, native))
        dictionary = Dictionary(learners, LearningTable(inputs, schema, rows.weights(), seed))
        init = None if self.init is None else float(self.init)
        steps = StepSettings(chosen_rate(self), self.step == "line_search", float(self.subsample), seed, init)
        stages = Stages(dictionary, loss, rows, held_out, steps)
        n_classes = None if target.n_classes is None else [target.n_classes]
        member = self._run(stages, FittedFunctions.empty(stages.start, loss.link, design, n_classes), target.classes)
        model = fitted_functions(stages, member.n_retained(), inputs, loss.link, n_classes)
        self._set_fitted(member, model, stages, target.classes)
        self._set_schema(schema)
        self._seed = seed

    def _run(self, stages: Stages, empty: FittedFunctions, classes: NDArray[Any] | None) -> FunctionMember:
        held_out, score = stages.held_out, None
        if held_out is not None and self.scoring is not None:
            score = HeldOutScore(self.scoring, empty, held_out.rows, None if classes is None else [classes])
        recipe = fixed_recipe(self.n_estimators, chosen_rate(self), self.early_stopping, self.n_iter_no_change)
        engine: Any = stages
        unused: Any = None
        settings = RoundSettings(
            metrics=(self.scoring,),
            callbacks=callbacks_of(self.callbacks),
            tol=self.tol,
            keep_best=self.keep_best,
            keep_interrupted=self.keep_interrupted,
            verbose=self.verbose,
            n_threads=self._n_threads,
            is_class_target=self._is_class_target,
        )
        factor = stages.loss_factor
        member = FunctionMember(settings, recipe, engine, held_out is not None, score, loss_factor=factor)
        FunctionRounds(settings, recipe, [member], None, unused).run()
        return member

    def _set_fitted(
        self, member: FunctionMember, model: FittedFunctions, stages: Stages, classes: NDArray[Any] | None
    ) -> None:
        """Set the fitted attributes, after everything that can fail."""
        for name in ("validation_score_", *RATE_ATTRIBUTES):
            self.__dict__.pop(name, None)
        self.functions_ = model
        self.n_iter_ = model.n_rounds
        self.learners_ = list(stages.dictionary.names)
        self.steps_, self.gains_ = np.array(stages.steps), np.array(stages.gains)
        self.train_score_ = np.array(member.train_curve)
        if member.has_held_out:
            self.validation_score_ = np.array(member.held_out_curve)
        if classes is not None:
            self.classes_, self.n_classes_ = classes, len(classes)

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {"learners": learners_to_json(self.learners)}

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        return saved | {"learners": learners_from_json(saved.get("learners"))}

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedFunctions)
        if len(found["learners_"]) != len(model.parts):
            refuse("is damaged: its weak learners do not fit its steps")
        if any(isinstance(curve, np.ndarray) and len(curve) < model.n_rounds for curve in found.values()):
            refuse("is damaged: its learning curve is shorter than the model")

    @property
    def _has_foreign_members(self) -> bool:
        return any(isinstance(part, ForeignSteps) for part in self.functions_.parts)

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        return state if "functions_" in state and self._has_foreign_members else super()._pickled(state)

    def _about(self) -> About:
        last, curve = self.n_iter_ - 1, getattr(self, "validation_score_", None)
        loss, held_out = float(self.train_score_[last]), None if curve is None else float(curve[last])
        rounds = plural(self.n_iter_, "round")
        used = ", ".join(sorted({entry["learner"] for entry in self.chosen_}))
        lines = {"functional boosting": f"{rounds} of {used}", "loss, training rows": f"{loss:.4g}"}
        sentence = f"{rounds} of {used}; loss {loss:.4g}"
        if held_out is not None:
            lines["  held-out rows"] = f"{held_out:.4g}"
            sentence += f", {held_out:.4g} on held-out rows"
        size = {"rounds": self.n_iter_, "learners": self.learners_, "training_loss": loss, "held_out_loss": held_out}
        return About(
            "functional boosting",
            size,
            lines,
            sentence,
            why_no_trees="the model is a sum of functions. Use its shapes in Python.",
        )

    # ---- predicting ----------------------------------------------------------------------------------

    def _native(self, X: TableLike, schema: Schema) -> Any:
        """Return the caller's table with its columns in the order of the training table."""
        names = schema.names if schema.has_names else None
        return matched_table(X, names, schema.n_features, type(self).__name__).native

    def _inputs(self, X: TableLike) -> Inputs:
        columns = self._columns(X)
        native = self._native(X, self.schema_) if self._has_foreign_members else None
        return self.functions_.inputs(columns, self._n_threads, native)

    def _scores(self, X: TableLike) -> Floats:
        inputs = self._inputs(X)
        return self.functions_.scores_of(inputs)

    def _staged_scores(self, X: TableLike) -> Iterator[Floats]:
        inputs = self._inputs(X)
        yield from self.functions_.staged_scores(inputs)

    def staged_predict(self, X: TableLike) -> Iterator[NDArray[Any]]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Predictions of the rounds so far.
        """
        for scores in self._staged_scores(X):
            yield self._predicted(scores)

    @property
    def chosen_(self) -> list[dict[str, Any]]:
        """What each round added: the learner, its column names and the factor, for each class if there are several."""
        check_is_fitted(self)
        model, names, entries = self.functions_, self.schema_.names, []
        for round_ in range(model.n_rounds):
            for k in range(model.n_scores):
                entry: dict[str, Any] = {"round": round_ + 1, "learner": self.learners_[model.part_of[round_, k]]}
                if model.n_scores > 1:
                    entry["class"] = self.classes_[k]
                entry["columns"] = [names[j] for j in model.features(round_, k)]
                entry["factor"] = float(model.factors[round_, k])
                entries.append(entry)
        return entries

    @property
    def feature_importances_(self) -> Floats:
        """Fraction of the explained squared gradient by column; columns of one function get equal parts."""
        check_is_fitted(self)
        model, total = self.functions_, np.zeros(self.n_features_in_)
        for round_ in range(model.n_rounds):
            for k in range(model.n_scores):
                columns = list(model.features(round_, k))
                if columns:
                    total[columns] += self.gains_[round_] / model.n_scores / len(columns)
        return fractions(total)


def fitted_functions(
    stages: Stages, n_rounds: int, inputs: Inputs, link: str, n_classes: list[int] | None
) -> FittedFunctions:
    """Return the model of the first rounds, with the means by which shape functions are centred."""
    dictionary, start, weight = stages.dictionary, stages.start, stages.weight
    part_of = np.array(stages.part_of[:n_rounds], dtype=np.int32).reshape(-1, len(start))
    used = np.bincount(part_of.ravel(), minlength=len(dictionary.fitters)).tolist()
    low, high, _ = inputs.columns.ranges(np.ascontiguousarray(weight), inputs.n_jobs)
    model = FittedFunctions(
        start,
        link,
        inputs.design,
        [fitter.steps.first(n) for fitter, n in zip(dictionary.fitters, used, strict=True)],
        part_of,
        np.array(stages.factors[:n_rounds]).reshape(-1, len(start)),
        n_classes,
        np.zeros((len(start), inputs.columns.n_columns)),
        np.column_stack([low, high]),
    )
    for round_ in range(model.n_rounds):
        for k in range(model.n_scores):
            columns = model.features(round_, k)
            if len(columns) == 1:
                part, step = model.step(round_, k)
                mean = (part.values(inputs, step) * weight).sum() / weight.sum()
                model.means[k, columns[0]] += model.factors[round_, k] * mean
    return model


@estimator
class FunctionalBoostingClassifier(ClassifierMixin, BaseFunctionalBoosting):
    """Classification by boosting of any weak learners, for any differentiable loss.

    Scores start at the constants that minimise the loss. Each round fits every weak learner to the negative gradient of
    the loss by least squares, selects the learner that explains most of it, finds the step length by a line search, and
    adds the function times step length and learning rate. With more than two classes each class has a score, and a
    round adds a function to each.

    See Also
    --------
    FunctionalBoostingRegressor : The same for regression.
    GradientBoostingClassifier : Boosted trees, much faster and with more options.

    Examples
    --------
    >>> import spinney
    >>> X, y = spinney.datasets.load_penguins()
    >>> model = spinney.FunctionalBoostingClassifier("splines", n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    loss: Literal["log_loss", "exponential", "hinge", "squared_hinge", "squared_error"] | CustomLoss = parameter(
        StrOptions({"log_loss", "exponential", *MARGIN_LOSSES}),
        HasMethods(["loss", "gradient"]),
        callable,
        default="log_loss",
    )
    _is_class_target = True
    predict = table_estimator.predict_labels
    predict_proba = table_estimator.predict_proba
    predict_log_proba = table_estimator.predict_log_proba
    decision_function = table_estimator.decision_function
    staged_decision_function = table_estimator.staged_decision_function

    def _make_loss(self, n_classes: int | None) -> FunctionalLoss:
        return make_loss(self.loss, {}, n_classes)

    def _predicted(self, scores: Floats) -> NDArray[Any]:
        return self.functions_.labels(self.functions_.score_codes(scores), [self.classes_])

    def staged_predict_proba(self, X: TableLike) -> Iterator[Floats]:
        """Class probabilities of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            In the form of `predict_proba`.
        """
        for scores in self._staged_scores(X):
            yield self.functions_.predicted(scores)


@estimator
class FunctionalBoostingRegressor(RegressorMixin, BaseFunctionalBoosting):
    """Regression by boosting of any weak learners, for any differentiable loss.

    Scores start at the constant that minimises the loss. Each round fits every weak learner to the negative gradient of
    the loss by least squares, selects the learner that explains most of it, finds the step length by a line search, and
    adds the function times step length and learning rate.

    See Also
    --------
    FunctionalBoostingClassifier : The same for classification.
    GradientBoostingRegressor : Boosted trees, much faster and with more options.

    Examples
    --------
    >>> import spinney
    >>> X = [[float(x), float(x % 7 > 3)] for x in range(100)]
    >>> y = [3 * x + 5 * z for x, z in X]
    >>> model = spinney.FunctionalBoostingRegressor(["stumps", "linear"], n_estimators=20).fit(X, y)
    >>> model.chosen_[0]["learner"]
    'linear'
    """

    loss: RegressionLossName | CustomLoss = parameter(
        StrOptions({name for name in NUMBER_LOSSES if not TRAITS[name].is_distribution}),
        HasMethods(["loss", "gradient"]),
        callable,
        default="squared_error",
    )
    quantile: float = parameter(Interval(Real, 0.0, 1.0, closed="neither"), default=0.5)
    huber_share: float = parameter(Interval(Real, 0.0, 1.0, closed="neither"), default=0.9)
    tweedie_power: float = parameter(Interval(Real, 1.0, 2.0, closed="neither"), default=1.5)
    predict = table_estimator.predict_values

    def _make_loss(self, n_classes: int | None) -> FunctionalLoss:
        parameters = {"quantile": self.quantile, "huber_share": self.huber_share, "tweedie_power": self.tweedie_power}
        return make_loss(self.loss, {name: float(value) for name, value in parameters.items()}, None)

    def _predicted(self, scores: Floats) -> NDArray[Any]:
        return self.functions_.predicted(scores)[:, 0]
