"""Base of AdaBoost for classification and regression: members, rounds, model files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._data import Schema
from spinney._data.display import plural
from spinney._data.select import pick_table
from spinney._data.types import Floats, TableLike
from spinney._ensemble.adaboost.members import AnyMembers, Members, TreeMembers, is_plain_tree
from spinney._ensemble.adaboost.rules import REASONS, Predict, RoundLoss, Rounds, Rule
from spinney._ensemble.ensemble import (
    ensemble_from_file,
    ensemble_to_file,
    fingerprint_of,
    loaded_template,
    saved_template,
)
from spinney._ensemble.members import LARGEST_SEED, estimator_of_name, set_input_tags
from spinney._ensemble.stagewise import SAVED_RATE, BaseStagewise, Split
from spinney._estimator.estimator import About
from spinney._estimator.parameters import COUNT, estimator, parameter
from spinney._estimator.table_estimator import SequenceOfMembers
from spinney._estimator.target import SingleTarget
from spinney._model.adaboost import VOTES, FittedAdaBoost, FittedMedian
from spinney._model.file.codec import SavedState, numbers, saved_fields, word
from spinney._model.file.container import refuse
from spinney._model.lazy_sequence import LazySequence
from spinney._model.model import FittedModel, fractions
from spinney._model.saving.members import check_member
from spinney._model.saving.saved_model import SavedModel, kind_of
from spinney._model.tree import FittedTree
from spinney._tree.trees import DecisionTreeClassifier, DecisionTreeRegressor
from spinney.inspect.explain import shap as explanations

_MEMBERS_KIND = "adaboost_members"  # kind of a file whose members are not plain trees
_MEMBER_WEIGHTS = saved_fields(estimator_weights_=numbers(key="weights"))
_OF_ALL_ROUNDS = ("train_score_", "validation_score_", "validation_losses_")  # include rounds after the best


@estimator
class BaseAdaBoost(SequenceOfMembers, BaseStagewise):
    """Members that are fitted one after the other, with weights that depend on the errors of earlier members.

    Members that are plain trees of spinney are stored as one fitted model, `adaboost_`; others as a list.
    """

    estimator: BaseEstimator | str | None = parameter(
        HasMethods(["fit", "predict"]), str, None, default=None, kw_only=False
    )
    n_estimators: int = parameter(COUNT, default=50, kw_only=False)
    learning_rate: float | Literal["cv"] = parameter(default=1.0)
    max_depth: int = parameter(Interval(Integral, 1, None, closed="left"), default=1)
    criterion: str | None = parameter(str, None, default=None)
    resample: bool = parameter("boolean", default=False)

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
            "validation_losses_": numbers(key="validation_losses", is_optional=True),
            "stopped_": word(REASONS, key="stopped"),
            **SAVED_RATE,
        },
    )
    shap_values = explanations.shap_values

    # ---- differences between classification and regression -----------------------------------------

    @abstractmethod
    def _make_rule(self, rows: LearningRows, target: SingleTarget) -> Rule:
        """Return the algorithm before the first round."""

    @abstractmethod
    def _validation_loss(self, validation: LearningRows, rule: Rule, target: SingleTarget) -> RoundLoss:
        """Return the loss of the validation set after each round."""

    @abstractmethod
    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedModel:
        """Return the fitted model of members that are trees."""

    @abstractmethod
    def _advice_on_chance(self) -> str:
        """Return what to do if the first member is no better than a random guess."""

    def _set_classes(self, classes: NDArray[Any] | None) -> None:
        """Set the fitted attributes of the classes."""
        return

    @property
    def _algorithm(self) -> str:
        """Name of the algorithm."""
        return "median"

    @property
    def _n_of_round(self) -> int:
        """Number of members of a round."""
        return 1

    @property
    def _fits_values(self) -> bool:
        """Whether members are regressors."""
        return self._algorithm in ("median", "gentle", "logit")

    def _member_classes(self, classes: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return the classes of the members; None if they are regressors."""
        return None if self._fits_values else classes

    def _predict_by(self, members: Members) -> Predict:
        """Return the function that predicts with a member: class codes, class probabilities or values."""
        return members.codes if self._algorithm in VOTES else members.values

    def _check_member(self, template: BaseEstimator) -> None:
        """Refuse members that the algorithm cannot use."""
        name, algorithm = type(template).__name__, f"algorithm={self._algorithm!r}"
        if self._fits_values and is_classifier(template):
            what = algorithm if self._is_class_target else type(self).__name__
            raise ValueError(f"{what} needs regressors, and {name} is a classifier. Pass a regressor.")
        if not self._fits_values and is_regressor(template):
            raise ValueError(
                f"{algorithm} needs classifiers, and {name} is a regressor. Pass a classifier, or algorithm='gentle' "
                "or 'logit'."
            )
        if self._algorithm == "real" and not hasattr(template, "predict_proba"):
            raise ValueError(
                f"{algorithm} needs probabilities, and {name} has no predict_proba. Use algorithm='samme'."
            )

    @property
    def _criterion(self) -> str:
        """The criterion of default trees: a stump that votes minimises the weighted error."""
        if self.criterion is not None:
            return self.criterion
        if self._fits_values:
            return "squared_error"
        return "misclassification" if self.max_depth == 1 and self._algorithm in VOTES else "gini"

    @property
    def _classes(self) -> NDArray[Any] | None:
        return self.classes_ if self._is_class_target else None

    # ---- fitting -------------------------------------------------------------------------------------

    def _encode(self, X: TableLike) -> Members:
        """Return the members, which read the training table."""
        template, name = self._template(), type(self).__name__
        if is_plain_tree(template) and not self.resample:
            return TreeMembers.of(X, self.categorical_features, self.unseen, name, template=template)
        if self.categorical_features is not None or self.unseen != "missing":
            raise ValueError(
                "categorical_features and unseen need members that are plain decision trees of spinney, with "
                "resample=False. Pass them to the estimator instead."
            )
        table = pick_table(X)
        return AnyMembers(template, table.names, table.n_columns, self.resample, name, table)

    def _fit_rows(
        self, encoded: Members, target: SingleTarget, rows: LearningRows, validation: LearningRows | None, split: Split
    ) -> None:
        seeds = check_random_state(self.random_state)
        if validation is None and self.early_stopping:
            rows, validation = split(int(seeds.randint(LARGEST_SEED)))
        rows, validation = encoded.used(rows), None if validation is None else encoded.used(validation)
        rule = self._make_rule(rows, target)
        members = replace(encoded, table=rows.columns, classes=self._member_classes(target.classes))
        rounds = Rounds(self, rule, members, seeds)
        if validation is not None:
            rounds.validate_by(validation.columns, self._validation_loss(validation, rule, target))
        rounds.run()
        self._set_fitted(members, rounds, target.classes)

    def _unfitted_member(self) -> BaseEstimator | None:
        """Return the estimator that is passed, also by a word; None for default trees."""
        if not isinstance(self.estimator, str):
            return self.estimator
        return estimator_of_name(self.estimator, "Regressor" if self._fits_values else "Classifier")

    def _template(self) -> BaseEstimator:
        kind: Any = DecisionTreeRegressor if self._fits_values else DecisionTreeClassifier
        if self.estimator is None:
            template: BaseEstimator = kind(max_depth=self.max_depth, criterion=self._criterion)
        elif self.criterion is None:
            template = clone(self._unfitted_member())
        else:
            raise ValueError("criterion is that of the default trees. Pass it to the estimator instead.")
        self._check_member(template)
        if is_plain_tree(template) and template.n_jobs is None:
            template.n_jobs = self.n_jobs
        return template

    def _set_fitted(self, members: Members, rounds: Rounds, classes: NDArray[Any] | None) -> None:
        """Replace the fitted attributes, after everything that can fail."""
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

    def _saved_parameters(self) -> dict[str, Any]:
        return super()._saved_parameters() | {"estimator": saved_template(self.estimator)}

    @classmethod
    def _loaded_parameters(cls, saved: dict[str, Any]) -> dict[str, Any]:
        return super()._loaded_parameters(saved) | {"estimator": loaded_template(saved.get("estimator"))}

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        if self._has_trees:
            return super()._file_parts()
        header, trees = ensemble_to_file(self, _MEMBERS_KIND, self._members)
        return header | _MEMBER_WEIGHTS.to_header(self) | self._to_header(), trees

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        if kind_of(header) != _MEMBERS_KIND:
            return super()._from_file(header, file)
        model, members = ensemble_from_file(cls, header, file)
        model._members = members
        model._set_classes(model._classes)
        found = _MEMBER_WEIGHTS.from_header(header) | cls._saved.from_header(header)
        weights = found.pop("estimator_weights_")
        if not len(weights) or len(model._members) != model._n_of_round * len(weights):
            refuse("is damaged: its weights do not fit its members")
        cls._check_curves(found, len(weights))
        target = {} if model._member_classes(model._classes) is None else {"classes_": model.classes_}
        for member in model._members:
            check_member(member, {"n_features_in_": model.n_features_in_} | target)
        fitted = {"estimator_weights_": weights, "n_iter_": len(weights), "estimator_": model._template()}
        model.__dict__.update(found | fitted)
        return model

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        assert isinstance(model, FittedAdaBoost | FittedMedian)
        cls._check_curves(found, model.n_rounds)

    @staticmethod
    def _check_curves(found: dict[str, Any], n_rounds: int) -> None:
        for name, curve in found.items():
            if name in SAVED_RATE:
                continue
            n = n_rounds if isinstance(curve, str) else len(curve)
            if n < n_rounds or (n > n_rounds and name not in _OF_ALL_ROUNDS):
                refuse("is damaged: its learning curves do not fit the number of rounds")

    @classmethod
    def _of_saved(cls, header: dict[str, Any], saved: SavedModel) -> Self:
        model = super()._of_saved(header, saved)
        model.estimator_ = model._template()
        if not is_plain_tree(model.estimator_):
            refuse("is damaged: its parameters do not describe its members, which are trees")
        return model

    def fingerprint(self) -> str:
        """Return a hash of the members, in order, and of their weights; all must be models of spinney.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads, chunking of the rows and kind of table.
        """
        if self._has_trees:
            return super().fingerprint()
        prefix = self._algorithm.encode() + self.estimator_weights_.tobytes()
        return fingerprint_of(self._members, [prefix, *[b""] * (len(self._members) - 1)])

    # ---- members -------------------------------------------------------------------------------------

    @property
    def _has_trees(self) -> bool:
        """Whether the members are stored as one model of trees."""
        check_is_fitted(self)
        return self._model_attribute in self.__dict__

    @property
    def _fitted(self) -> FittedAdaBoost | FittedMedian:
        """The fitted model of members that are trees."""
        if not self._has_trees:
            raise TypeError(
                "This needs members that are plain decision trees of spinney; those of this model are of the type "
                f"{type(self.estimator_).__name__}."
            )
        fitted: FittedAdaBoost | FittedMedian = self.__dict__[self._model_attribute]
        return fitted

    @property
    def estimators_(self) -> Sequence[BaseEstimator]:
        """The members in the order of the rounds, and by class within a round that has one member per class."""
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
            members: Members = TreeMembers(
                schema=self.schema_, unseen=self.unseen, owner=name, template=self.estimator_
            )
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
        """Weighted mean of the members' importances; they add up to 1."""
        if self._has_trees:
            return np.asarray(self._fitted.importances(self.n_features_in_))
        if not hasattr(self._members[0], "feature_importances_"):
            raise AttributeError(f"Members of the type {type(self._members[0]).__name__} have no feature_importances_.")
        weights = np.repeat(self.estimator_weights_, self._n_of_round)
        total: Floats = sum(w * m.feature_importances_ for w, m in zip(weights, self._members, strict=True))
        return fractions(total)

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
        why = "" if self._has_trees else "The members are not trees of spinney. Look at its estimators_ in Python."
        return About("AdaBoost", size, lines, sentence, trees, why, self._title_of_tree, self._has_trees)

    def _title_of_tree(self, t: int) -> str:
        weight = self.estimator_weights_[t // self._n_of_round]
        return f"Round {t // self._n_of_round + 1} of {self.n_iter_}, weight {weight:.4g}"

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        if (member := self._unfitted_member()) is not None:
            set_input_tags(tags, [member])
        return tags
