"""What AdaBoost of classes and of values have in common: rounds, members, files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows, set_aside
from spinney._data import Schema
from spinney._data.display import plural
from spinney._data.feature import Unseen
from spinney._data.select import pick_table
from spinney._data.types import TableLike
from spinney._ensemble.adaboost.members import AnyMembers, Members, TreeMembers, is_plain_tree
from spinney._ensemble.adaboost.rules import REASONS, Predict, RoundLoss, Rounds, Rule
from spinney._ensemble.members import fingerprint_of, models_of, models_parts, take_input_tags
from spinney._estimator.estimator import (
    About,
    class_named,
    opening,
    template_from_json,
    template_to_json,
    unfitted,
)
from spinney._estimator.parameters import COUNT, N_JOBS, UNSEEN, estimator, parameter
from spinney._estimator.table_estimator import SequenceOfMembers, TableEstimator
from spinney._estimator.target import SingleTarget, check_held_out, check_scoring, read_weights
from spinney._model.adaboost import VOTES, FittedAdaBoost, FittedMedian
from spinney._model.file.codec import SavedState, numbers, numbers_from_json, word
from spinney._model.file.container import field as header_field
from spinney._model.file.container import refuse
from spinney._model.file.values import labels_to_json
from spinney._model.lazy_sequence import LazySequence
from spinney._model.model import FittedModel
from spinney._model.saving.members import check_member, read_ensemble
from spinney._model.saving.saved_model import SavedModel, kind_of
from spinney._model.tree import FittedTree
from spinney._tree.trees import DecisionTreeClassifier, DecisionTreeRegressor
from spinney.inspect.explain import shap as explanations

if TYPE_CHECKING:
    pass

Floats = NDArray[np.float64]
_MEMBERS_KIND = "adaboost_members"  # kind of a file whose members are no plain trees
_OF_ALL_ROUNDS = ("train_score_", "validation_score_")  # those that were dropped included


@estimator
class BaseAdaBoost(SequenceOfMembers, TableEstimator):
    """Members fitted one after the other, each with weights that follow from the earlier ones.

    Members that are plain trees of spinney are held as one model that predicts, `adaboost_`; others as a list.
    """

    estimator: BaseEstimator | None = parameter(HasMethods(["fit", "predict"]), None, default=None, kw_only=False)
    n_estimators: int = parameter(COUNT, default=50, kw_only=False)
    learning_rate: float = parameter(Interval(Real, 0.0, None, closed="neither"), default=1.0)
    max_depth: int = parameter(Interval(Integral, 1, None, closed="left"), default=1)
    resample: bool = parameter("boolean", default=False)
    early_stopping: bool = parameter("boolean", default=False)
    scoring: str | Callable[..., float] | None = parameter(str, callable, None, default=None)
    validation_fraction: float | int = parameter(
        Interval(Real, 0.0, 1.0, closed="neither"), Interval(Integral, 1, None, closed="left"), default=0.1
    )
    n_iter_no_change: int = parameter(Interval(Integral, 1, None, closed="left"), default=10)
    tol: float = parameter(Interval(Real, 0.0, None, closed="left"), default=1e-7)
    keep_best: bool = parameter("boolean", default=True)
    categorical_features: Iterable[Any] | None = parameter("array-like", None, default=None)
    unseen: Unseen = parameter(UNSEEN, default="missing")
    random_state: int | RandomState | None = parameter("random_state", default=None)
    n_jobs: int | None = parameter(N_JOBS, None, default=None)
    verbose: int = parameter("verbose", default=0)

    _model_attribute = "adaboost_"
    _saved: ClassVar[SavedState] = SavedState(
        "rounds",
        {
            "estimator_errors_": numbers(key="errors"),
            "normalizers_": numbers(key="normalizers"),
            "_reach": numbers(key="reach"),
            "train_losses_": numbers(key="losses", is_optional=True),
            "train_score_": numbers(key="train_score", is_optional=True),
            "validation_score_": numbers(key="validation_score", is_optional=True),
            "stopped_": word(REASONS, key="stopped"),
        },
    )
    shap_values = explanations.shap_values

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _make_rule(self, rows: LearningRows, target: SingleTarget) -> Rule:
        """Return the algorithm, at its start."""

    @abstractmethod
    def _held_out_loss(self, held: LearningRows, rule: Rule, target: SingleTarget) -> RoundLoss:
        """Return how rounds are evaluated by held-out rows."""

    @abstractmethod
    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedModel:
        """Return what predicts, if members are trees."""

    @abstractmethod
    def _advice_on_chance(self) -> str:
        """Say what to do if the first member is no better than a guess."""

    def _set_classes(self, classes: NDArray[Any] | None) -> None:
        """Set the fitted attributes that follow from the classes."""
        return

    @property
    def _algorithm(self) -> str:
        """Name of the algorithm."""
        return "median"

    @property
    def _n_of_round(self) -> int:
        """Members of a round."""
        return 1

    @property
    def _fits_values(self) -> bool:
        """Whether members are regressors."""
        return self._algorithm in ("median", "gentle", "logit")

    def _member_classes(self, classes: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return the classes that members separate; None: they predict values."""
        return None if self._fits_values else classes

    def _predict_by(self, members: Members) -> Predict:
        """Return what gives the predictions of a member as the algorithm takes them."""
        return members.codes if self._algorithm in VOTES else members.values

    def _check_member(self, template: BaseEstimator) -> None:
        """Refuse members that the algorithm cannot use."""
        name, algorithm = type(template).__name__, f"algorithm={self._algorithm!r}"
        if self._fits_values and is_classifier(template):
            what = algorithm if self._is_class_target else "AdaBoost of numbers"
            raise ValueError(f"{what} needs regressors, and {name} is a classifier. Pass a regressor.")
        if not self._fits_values and is_regressor(template):
            raise ValueError(
                f"{algorithm} needs classifiers, and {name} is a regressor. Pass a classifier, or algorithm='gentle' "
                "or 'logit'."
            )
        if self._algorithm == "real" and not hasattr(template, "predict_proba"):
            raise ValueError(f"{algorithm} needs probabilities, and {name} has no predict_proba. Use 'samme'.")

    @property
    def _classes(self) -> NDArray[Any] | None:
        return self.classes_ if self._is_class_target else None

    # ---- fitting -------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        X_val: TableLike = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Boost.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            NumPy array, pandas, polars or pyarrow table, anything with the Arrow C stream, a scipy sparse matrix or
            a list of rows. Trees of spinney take strings, categories, booleans and missing values as they are; other
            members get tables of the same kind.
        y : array-like of shape (n_samples,)
            Target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the first round. A weight of 2 means that the row counts twice, a weight of 0 leaves it out.
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
        self._check_parameters()
        check_scoring(self.scoring)
        check_held_out(X_val, y_val, {"sample_weight_val": sample_weight_val}, groups, self.early_stopping, time)
        members = self._start_members(X, self._template())
        n_rows = members.table.n_rows
        target = SingleTarget.read(y, n_rows, "AdaBoost", self._is_class_target)
        rows = LearningRows(members.table, target.values, read_weights(sample_weight, n_rows), given=X)
        held: LearningRows | None = None
        if X_val is not None and y_val is not None:
            table: Any = members.read(X_val)
            known = target.encode_other_rows(y_val, table.n_rows, "AdaBoost", "y_val")
            held = LearningRows(table, known, read_weights(sample_weight_val, table.n_rows), given=X_val)
        seeds = check_random_state(self.random_state)
        if held is None and self.early_stopping:
            seed = int(seeds.randint(np.iinfo(np.int32).max))
            rows, held = set_aside(rows, self.validation_fraction, groups, self._is_class_target, seed, time)
        rows, held = members.used(rows), None if held is None else members.used(held)
        rule = self._make_rule(rows, target)
        members = replace(members, table=rows.columns, classes=self._member_classes(target.classes))
        rounds = Rounds(self, rule, members, seeds)
        if held is not None:
            rounds.hold_out(held.columns, self._held_out_loss(held, rule, target))
        rounds.run()
        self._keep(members, rounds, target.classes)
        return self

    def _n_folds_held_out(self) -> int:
        return 2 if self.early_stopping else 0

    def _template(self) -> BaseEstimator:
        kind = DecisionTreeRegressor if self._fits_values else DecisionTreeClassifier
        template = kind(max_depth=self.max_depth) if self.estimator is None else clone(self.estimator)
        self._check_member(template)
        if is_plain_tree(template) and template.n_jobs is None:
            template.n_jobs = self.n_jobs
        return template

    def _start_members(self, X: TableLike, template: BaseEstimator) -> Members:
        name = type(self).__name__
        if is_plain_tree(template) and not self.resample:
            return TreeMembers.of(X, template, self.categorical_features, self.unseen, name)
        if self.categorical_features is not None or self.unseen != "missing":
            raise ValueError(
                "categorical_features and unseen are for members that are plain decision trees of spinney, fitted by "
                "weights. Give them to the estimator itself."
            )
        table = pick_table(X)
        return AnyMembers(template, table.names, table.n_columns, self.resample, name, table)

    def _keep(self, members: Members, rounds: Rounds, classes: NDArray[Any] | None) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        for name in ("_members", "_column_names"):
            self.__dict__.pop(name, None)
        steps = rounds.retained
        self._set_classes(classes)
        self.__dict__.update(rounds.curves())
        self.estimator_, self.n_iter_ = members.template, len(steps)
        self.estimator_weights_ = np.array([step.weight for step in steps])
        fitted = [member for of_round in rounds.members[: len(steps)] for member in of_round]
        if isinstance(members, TreeMembers):
            self._set_schema(members.schema)
            setattr(self, self._model_attribute, self._fitted_of(fitted, self.estimator_weights_, members.schema))
            self.max_features_ = members.template._settings.columns_tried(members.schema)
            return
        self._members, self._column_names, self.n_features_in_ = fitted, members.names, members.n_columns
        if members.names is not None:
            self.feature_names_in_ = np.array(members.names, dtype=object)

    # ---- files ---------------------------------------------------------------------------------------

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        parameters = self.get_params(deep=False)
        template = parameters.pop("estimator")
        if self._has_trees:
            saved = self._saved_model()
            about = None if template is None else opening(template, template.get_params(deep=False))
            header = opening(self, parameters) | {"template": about} | self._to_header() | saved.header()
            return header, saved.model.trees()
        headers, trees = models_parts(self._members)
        header = {
            **opening(self, parameters),
            "kind": _MEMBERS_KIND,
            "template": None if template is None else template_to_json(template),
            "classes": None if self._classes is None else labels_to_json(self._classes),
            "names": self._column_names,
            "n_features": int(self.n_features_in_),
            "members": [str(number) for number in range(len(headers))],
            "models": headers,
            "weights": self.estimator_weights_.tolist(),
        }
        return header | self._to_header(), trees

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        if kind_of(header) != _MEMBERS_KIND:
            return super()._from_file(header, file)
        template = None if header.get("template") is None else template_from_json(header["template"])
        model, frame = unfitted(cls, header, estimator=template), read_ensemble(header)
        if ("classes_" in frame) != cls._is_class_target:
            refuse("is damaged: its estimator and its classes do not go together")
        model.__dict__.update((name, value) for name, value in frame.items() if name != "_names")
        model._set_classes(frame.get("classes_"))
        model._members = models_of(header, file)
        weights = numbers_from_json(header_field(header, "weights", list), "weights")
        model.estimator_weights_, model.n_iter_ = weights, len(weights)
        if not len(weights) or len(model._members) != model._n_of_round * len(weights):
            refuse("is damaged: its weights do not fit its members")
        found = cls._saved.from_header(header)
        cls._check_curves(found, len(weights))
        of_values = model._member_classes(model._classes) is None
        for member in model._members:
            check_member(member, {"n_features_in_": frame["n_features_in_"]} if of_values else frame)
        model.__dict__.update(found | {"estimator_": model._template()})
        return model

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedAdaBoost | FittedMedian)
        cls._check_curves(found, model.n_rounds)

    @staticmethod
    def _check_curves(found: dict[str, Any], n_rounds: int) -> None:
        for name, curve in found.items():
            n = n_rounds if isinstance(curve, str) else len(curve)
            if n < n_rounds or (n > n_rounds and name not in _OF_ALL_ROUNDS):
                refuse("is damaged: the record of its rounds does not fit the model")

    @classmethod
    def _of_saved(cls, header: dict[str, Any], saved: SavedModel) -> Self:
        model = super()._of_saved(header, saved)
        if header.get("template") is not None:
            about = header_field(header, "template", dict)
            model.estimator = unfitted(class_named(about, TableEstimator), about)
        model.estimator_ = model._template()
        if not is_plain_tree(model.estimator_):
            refuse("is damaged: its members are not what its parameters ask for")
        return model

    def fingerprint(self) -> str:
        """Hash of the members, in their order, and of their weights; all must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads, chunking of the rows and kind of table.
        """
        if self._has_trees:
            return super().fingerprint()
        return fingerprint_of(self._members, self._algorithm.encode() + self.estimator_weights_.tobytes())

    # ---- members -------------------------------------------------------------------------------------

    @property
    def _has_trees(self) -> bool:
        """Whether the members are held as one model of trees."""
        check_is_fitted(self)
        return self._model_attribute in self.__dict__

    @property
    def _fitted(self) -> FittedAdaBoost | FittedMedian:
        """What predicts, if members are trees."""
        if not self._has_trees:
            raise TypeError(
                "This works with members that are plain decision trees of spinney; those of this model are of the type "
                f"{type(self.estimator_).__name__}."
            )
        fitted: FittedAdaBoost | FittedMedian = self.__dict__[self._model_attribute]
        return fitted

    @property
    def estimators_(self) -> Sequence[BaseEstimator]:
        """The members, in the order of the rounds; with a member per class, by round and class."""
        if not self._has_trees:
            return self._members
        trees = self._fitted.trees()
        return LazySequence(len(trees), lambda t: self._tree_estimator(trees[t]))

    def _tree_estimator(self, tree: _engine.Tree) -> BaseEstimator:
        classes = self._member_classes(self._classes)
        attributes: dict[str, Any] = {"n_outputs_": 1}
        if classes is not None:
            attributes |= {"classes_": classes, "n_classes_": len(classes), "cost_matrix_": None, "priors_": None}
        fitted = FittedTree(tree, None if classes is None else [len(classes)], 1)
        return self.estimator_._with_tree(self.schema_, attributes, fitted)

    def _by_round(self, X: TableLike) -> Iterator[tuple[list[NDArray[Any]], float]]:
        """Yield the predictions of the members of each round, and their weight."""
        check_is_fitted(self)
        name = type(self).__name__
        if self._has_trees:
            members: Members = TreeMembers(self.estimator_, self.schema_, self.unseen, name)
        else:
            members = AnyMembers(self.estimator_, self._column_names, self.n_features_in_, self.resample, name)
        table = members.read(X)
        fitted = self._fitted.trees() if self._has_trees else self._members
        predict = self._predict_by(replace(members, table=table, classes=self._member_classes(self._classes)))
        n = self._n_of_round
        for t, weight in enumerate(self.estimator_weights_):
            yield [predict(member, table) for member in fitted[t * n : (t + 1) * n]], float(weight)

    @property
    def feature_importances_(self) -> Floats:
        """Mean of the members' importances by their weights; they add up to 1."""
        if self._has_trees:
            return np.asarray(self._fitted.importances(self.n_features_in_))
        if not hasattr(self._members[0], "feature_importances_"):
            raise AttributeError(f"Members of the type {type(self._members[0]).__name__} have no feature_importances_.")
        weights = np.repeat(self.estimator_weights_, self._n_of_round)
        total: Floats = sum(w * m.feature_importances_ for w, m in zip(weights, self._members, strict=True))
        return np.asarray(total / total.sum() if total.sum() > 0 else total)

    def _about(self) -> About:
        last, rounds = int(self.n_iter_) - 1, plural(int(self.n_iter_), "round")
        size: dict[str, Any] = {"rounds": int(self.n_iter_), "stopped": self.stopped_}
        lines = {"AdaBoost": f"{rounds} ({REASONS[self.stopped_].rstrip('.')})"}
        for name, label, curve in (
            ("training_error", "error, training rows", "train_score_"),
            ("held_out_error", "error, held-out rows", "validation_score_"),
        ):
            size[name] = float(getattr(self, curve)[last]) if hasattr(self, curve) else None
            if size[name] is not None:
                lines[label] = f"{size[name]:.4g}"
        sentence = ", ".join([rounds, *(f"{label} {text}" for label, text in list(lines.items())[1:])])
        trees = self.estimators_ if self._has_trees else None
        why = "" if self._has_trees else "The members are no trees of spinney. Look at its estimators_ in Python."
        return About("AdaBoost", size, lines, sentence, trees, why, self._title_of_tree, self._has_trees)

    def _title_of_tree(self, t: int) -> str:
        weight = self.estimator_weights_[t // self._n_of_round]
        return f"Round {t // self._n_of_round + 1} of {self.n_iter_}, of weight {weight:.4g}"

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        if self.estimator is not None:
            take_input_tags(tags, [self.estimator])
        return tags
