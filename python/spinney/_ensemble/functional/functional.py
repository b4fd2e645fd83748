"""What functional boosting of classes and of values share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._boosting.evaluation import HeldOutScore
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.options.recipe import fixed
from spinney._boosting.row_splits import set_aside
from spinney._boosting.settings import RoundSettings, callbacks_of
from spinney._data import Schema, read_table
from spinney._data.column_names import match_columns
from spinney._data.design import Design
from spinney._data.select import pick_table
from spinney._ensemble.functional.dictionary import (
    BY_NAME,
    Dictionary,
    ForeignSteps,
    learners_from_json,
    learners_to_json,
    read_learners,
)
from spinney._ensemble.functional.learners.weak import LearningTable, WeakLearner
from spinney._ensemble.functional.losses import FunctionalLoss
from spinney._ensemble.functional.stages import FunctionMember, FunctionRounds, Stages
from spinney._estimator.parameters import COUNT
from spinney._estimator.single_target import check_held_out, check_scoring
from spinney._estimator.summary import About, counted
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.file.arrays import numbers_from_json
from spinney._model.file.container import field, refuse
from spinney._model.functional.model import FittedFunctions
from spinney._model.functional.steps import Inputs
from spinney._model.saving.model_part import FittedPart

Floats = NDArray[np.float64]
_CURVES = ("train_score", "validation_score", "steps", "gains")


class BaseFunctionalBoosting(TableEstimator):
    """Functional boosting of classes or values."""

    _model_attribute = "functions_"
    functions_: FittedFunctions
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learners": [StrOptions(set(BY_NAME)), list, tuple, HasMethods(["fit", "predict"]), WeakLearner],
        "n_estimators": [COUNT],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "step": [StrOptions({"line_search", "fixed"})],
        "subsample": [Interval(Real, 0.0, 1.0, closed="right")],
        "early_stopping": ["boolean"],
        "scoring": [str, callable, None],
        "validation_fraction": [
            Interval(Real, 0.0, 1.0, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "keep_best": ["boolean"],
        "categorical_features": ["array-like", None],
        "unseen": [StrOptions({"missing", "error", "other"})],
        "verbose": ["verbose"],
        "callbacks": [callable, list, tuple, None],
        "keep_interrupted": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        """Check y; return it as numbers, and what is learned from it."""

    @abstractmethod
    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any], name: str) -> Floats:
        """Return the target of rows that are not learned from."""

    @abstractmethod
    def _make_loss(self, learned: dict[str, Any]) -> FunctionalLoss:
        """Return the loss."""

    @abstractmethod
    def _predicted(self, scores: Floats, view: FittedFunctions, learned: dict[str, Any]) -> NDArray[Any]:
        """Turn scores, (n_rows, n_scores), into predictions."""

    _is_class_target = False

    @property
    def _stops_early(self) -> bool:
        return bool(self.early_stopping)

    def _check_rows(self, rows: LearningRows) -> None:
        """Refuse rows that there is nothing to learn from."""
        return

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        time: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit one function after the other.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Strings, categories, booleans and missing values are taken as they are.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means that the row counts twice, a weight of 0 leaves it out.
        groups : array-like of shape (n_samples,), optional
            Rows with the same label are held out together (early stopping).
        time : array-like of shape (n_samples,), optional
            Moments, numbers or dates: the latest rows are held out (early stopping).
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Held-out rows, for early stopping and the learning curve.

        Returns
        -------
        self
            The fitted estimator.
        """
        learners = self._check_request(X_val, y_val, sample_weight_val, groups, time)
        table = read_table(X)
        schema = self._learn_schema(table)
        target, learned = self._read_target(y, table.n_rows)
        n_scores = learned.pop("_n_scores")
        loss = self._make_loss(learned)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        rows = LearningRows(columns, target, read_weights(sample_weight, table.n_rows), given=X)
        loss.check(rows, "y")
        self._check_rows(rows)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        held_out = self._held_out(schema, loss, X_val, y_val, sample_weight_val, learned)
        later: tuple[LearningRows, Inputs | None] | None = None
        if held_out is None and self._stops_early:
            rows, aside = set_aside(rows, self.validation_fraction, groups, self._is_class_target, seed, time)
            later = aside, None
        design = Design.learn(columns, schema, rows.weights())
        inputs = Inputs(columns, design, self._n_threads, pick_table(X).native)
        if held_out is not None:
            later = held_out, Inputs(held_out.columns, design, self._n_threads, self._native(X_val, schema))
        dictionary = Dictionary(learners, LearningTable(inputs, schema, rows.weights(), seed))
        start = loss.start(rows, n_scores)
        stages = Stages(
            dictionary,
            loss,
            rows,
            later,
            start,
            float(self.learning_rate),
            self.step == "line_search",
            float(self.subsample),
            seed,
        )
        n_classes = [len(learned["classes_"])] if "classes_" in learned else None
        member = self._run(stages, loss, design, start, n_classes, later, learned)
        model = _made(stages, member.n_kept(), dictionary, inputs, start, loss.link, n_classes, rows.weights())
        self._keep(schema, member, model, stages, dictionary, learned | {"_seed": seed})
        return self

    def _n_parts_held_out(self) -> int:
        return 2 if self._stops_early else 0

    def _check_request(self, X_val: Any, y_val: Any, weight_val: Any, groups: Any, time: Any) -> list[Any]:
        self._check_parameters()
        check_scoring(self.scoring, self.callbacks)
        check_held_out(X_val, y_val, {"sample_weight_val": weight_val}, groups, self._stops_early, time)
        return read_learners(self.learners)

    def _held_out(
        self, schema: Schema, loss: FunctionalLoss, X: Any, y: Any, weight: Any, learned: dict[str, Any]
    ) -> LearningRows | None:
        if X is None:
            return None
        table = read_table(X)
        columns = schema.encode(table, unseen=self.unseen, estimator=type(self).__name__)
        target = self._known_target(y, table.n_rows, learned, "y_val")
        held_out = LearningRows(columns, target, read_weights(weight, table.n_rows), given=X)
        loss.check(held_out, "y_val")
        return held_out

    def _run(
        self,
        stages: Stages,
        loss: FunctionalLoss,
        design: Design,
        start: Floats,
        n_classes: list[int] | None,
        later: tuple[LearningRows, Inputs | None] | None,
        learned: dict[str, Any],
    ) -> FunctionMember:
        nothing = np.empty((0, len(start)))
        empty = FittedFunctions(
            start, loss.link, design, [], nothing.astype(np.int32), nothing, n_classes, nothing, nothing
        )
        labels = [np.asarray(learned["classes_"])] if "classes_" in learned else None
        judge = None if later is None or self.scoring is None else HeldOutScore(self.scoring, empty, later[0], labels)
        recipe = fixed(self.n_estimators, self.learning_rate, self._stops_early, self.n_iter_no_change)
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
        member = FunctionMember(settings, recipe, engine, later is not None, judge)
        FunctionRounds(settings, recipe, [member], None, unused).run()
        return member

    def _keep(
        self,
        schema: Schema,
        member: FunctionMember,
        model: FittedFunctions,
        stages: Stages,
        dictionary: Dictionary,
        learned: dict[str, Any],
    ) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        self.__dict__.pop("validation_score_", None)
        self._keep_schema(schema)
        self.functions_ = model
        self.n_iter_ = model.n_rounds
        self.learners_ = list(dictionary.names)
        self.steps_, self.gains_ = np.array(stages.steps), np.array(stages.gains)
        self.train_score_ = np.array(member.train_curve)
        if member.has_held_out:
            self.validation_score_ = np.array(member.held_out_curve)
        for name, value in learned.items():
            setattr(self, name, value)

    # ---- files ---------------------------------------------------------------------------------------

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {"learners": learners_to_json(self.learners)}

    @classmethod
    def _loaded_parameters(cls, kept: dict[str, Any]) -> dict[str, Any]:
        return kept | {"learners": learners_from_json(kept.get("learners"))}

    def _to_header(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"seed": int(self._seed), "learners": list(self.learners_)}
        for name in _CURVES:
            if hasattr(self, name + "_"):
                entry[name] = getattr(self, name + "_").tolist()
        return {"functional": entry}

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        entry = field(header, "functional", dict)
        names, model = field(entry, "learners", list), part.model
        assert isinstance(model, FittedFunctions)
        if not all(isinstance(name, str) for name in names) or len(names) != len(model.parts):
            refuse("is damaged: its weak learners are not those of its steps")
        found: dict[str, Any] = {"_seed": field(entry, "seed", int), "learners_": names}
        for name in _CURVES:
            if name in entry:
                found[name + "_"] = numbers_from_json(field(entry, name, list), name)
                if len(found[name + "_"]) < model.n_rounds:
                    refuse("is damaged: its learning curve is shorter than the model")
        return found

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if hasattr(self, "functions_") and any(isinstance(part, ForeignSteps) for part in self.functions_.parts):
            return state
        return super()._pickled(state)

    def _about(self) -> About:
        last, curve = self.n_iter_ - 1, getattr(self, "validation_score_", None)
        loss, held_out = float(self.train_score_[last]), None if curve is None else float(curve[last])
        rounds = counted(self.n_iter_, "round", "rounds")
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
            why_no_trees="the model is a sum of functions of several kinds. Use its shapes in Python.",
        )

    # ---- using ---------------------------------------------------------------------------------------

    def _native(self, X: Any, schema: Schema) -> Any:
        """Return the caller's table with its columns as they were at fit."""
        table = pick_table(X)
        names = schema.names if schema.has_names else None
        order = match_columns(table.names, table.n_columns, names, schema.n_features, type(self).__name__)
        return table.native if order is None else table.take(columns=np.array(order))

    def _inputs(self, X: Any) -> Inputs:
        columns = self._columns(X)
        foreign = any(isinstance(part, ForeignSteps) for part in self.functions_.parts)
        native = self._native(X, self.schema_) if foreign else None
        return self.functions_.inputs(columns, self._n_threads, native)

    def _scores(self, X: Any) -> Floats:
        inputs = self._inputs(X)
        return self.functions_.scores_of(inputs)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels or values.
        """
        return self._predicted(self._scores(X), self.functions_, self.__dict__)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Predictions of the first rounds.
        """
        inputs = self._inputs(X)
        for scores in self.functions_.staged_scores(inputs):
            yield self._predicted(scores, self.functions_, self.__dict__)

    @property
    def chosen_(self) -> list[dict[str, Any]]:
        """What each round has added: learner, columns by name, factor; with several classes, for each of them."""
        check_is_fitted(self)
        model, names, found = self.functions_, self.schema_.names, []
        for round_ in range(model.n_rounds):
            for k in range(model.n_scores):
                entry: dict[str, Any] = {"round": round_ + 1, "learner": self.learners_[model.part_of[round_, k]]}
                if model.n_scores > 1:
                    entry["class"] = self.classes_[k]
                entry["columns"] = [names[j] for j in model.features(round_, k)]
                entry["factor"] = float(model.factors[round_, k])
                found.append(entry)
        return found

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the squared slopes that the functions explain; those of a step share alike."""
        check_is_fitted(self)
        model, total = self.functions_, np.zeros(self.n_features_in_)
        for round_ in range(model.n_rounds):
            for k in range(model.n_scores):
                columns = list(model.features(round_, k))
                if columns:
                    total[columns] += self.gains_[round_] / model.n_scores / len(columns)
        return np.asarray(total / total.sum() if total.sum() > 0 else total)


def _made(
    stages: Stages,
    n_rounds: int,
    dictionary: Dictionary,
    inputs: Inputs,
    start: Floats,
    link: str,
    n_classes: list[int] | None,
    weight: Floats,
) -> FittedFunctions:
    """Return the model of the first rounds, with the means that its shapes are drawn without."""
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
