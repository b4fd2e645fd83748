"""AdaBoost of classes and of values: members fitted one after the other to what the earlier ones got wrong."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted

import spinney._engine as _engine
from spinney._boosting.evaluation import HeldOutScore
from spinney._boosting.learning_rows import LearningRows, set_aside
from spinney._data import Schema, read_table
from spinney._data.feature import Unseen
from spinney._data.reproducible import log
from spinney._data.select import pick_table
from spinney._data.types import TableLike
from spinney._ensemble.adaboost.members import AnyReader, Reader, TreeReader, WeakLearner, is_plain_tree
from spinney._ensemble.adaboost.rules import (
    REASONS,
    HeldOutRounds,
    R2Rule,
    Rounds,
    RoundSettings,
    Rule,
    ScoresRule,
    make_rule,
)
from spinney._ensemble.members import fingerprint_of, models_of, models_parts
from spinney._estimator.estimator import (
    About,
    class_named,
    counted,
    opening,
    template_from_json,
    template_to_json,
    unfitted,
)
from spinney._estimator.parameters import COUNT, N_JOBS, UNSEEN, estimator, parameter
from spinney._estimator.table_estimator import SequenceOfMembers, TableEstimator
from spinney._estimator.target import (
    check_held_out,
    check_scoring,
    known_codes,
    read_one_class,
    read_one_value,
    read_weights,
)
from spinney._model.adaboost import ALGORITHMS, VOTES, FittedAdaBoost, FittedMedian, Sayings, weighted_medians
from spinney._model.boosting import FittedBoosting
from spinney._model.file.codec import SavedState, numbers, numbers_from_json, word
from spinney._model.file.container import field as header_field
from spinney._model.file.container import refuse
from spinney._model.file.values import labels_to_json
from spinney._model.lazy_sequence import LazySequence
from spinney._model.model import FittedModel
from spinney._model.saving.members import check_member, read_frame
from spinney._model.saving.model_part import FittedPart, kind_of
from spinney._model.tree import FittedTree
from spinney._tree.trees import DecisionTreeClassifier, DecisionTreeRegressor
from spinney.inspect.explain import methods

if TYPE_CHECKING:
    from spinney.inspect.explain.shap import ShapValues

Floats = NDArray[np.float64]
Predict = Callable[[Any, Any], NDArray[Any]]  # from a member and a table to what the algorithm takes of it
RoundLoss = Callable[[list[NDArray[Any]], float], float]  # of a round's predictions and its weight
_MEMBERS_KIND = "adaboost_members"  # kind of a file whose members are no plain trees
_OF_ALL_ROUNDS = ("train_score_", "validation_score_")  # those that were dropped included


@dataclass(frozen=True)
class BoostTarget:
    """Values or class codes of the rows, and the labels of the classes."""

    values: Floats
    classes: NDArray[Any] | None = None


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
    shap_values = methods.shap_values

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _default_estimator(self) -> TableEstimator:
        """Return the member if none is given."""

    @abstractmethod
    def _check_member(self, template: BaseEstimator) -> None:
        """Refuse members that the algorithm cannot use."""

    @abstractmethod
    def _read_target(self, y: ArrayLike, n_rows: int) -> BoostTarget:
        """Check y."""

    @abstractmethod
    def _known_target(self, y: ArrayLike, n_rows: int, classes: NDArray[Any] | None, name: str = "y_val") -> Floats:
        """Return the target of held-out rows, as numbers."""

    @abstractmethod
    def _make_rule(self, rows: LearningRows, classes: NDArray[Any] | None) -> Rule:
        """Return the algorithm, at its start."""

    @abstractmethod
    def _held_out_loss(self, held: LearningRows, rule: Rule, classes: NDArray[Any] | None) -> RoundLoss:
        """Return how rounds are evaluated by held-out rows."""

    @abstractmethod
    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedModel:
        """Return what predicts, if members are trees."""

    @abstractmethod
    def _set_classes(self, classes: NDArray[Any] | None) -> None:
        """Set the fitted attributes that follow from the classes."""

    @abstractmethod
    def _advice_on_chance(self) -> str:
        """Say what to do if the first member is no better than a guess."""

    def _member_classes(self, classes: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return the classes that members separate; None: they predict values."""
        return classes

    def _predict_by(self, learner: WeakLearner) -> Predict:
        """Return what gives the predictions of a member as the algorithm takes them."""
        return learner.values

    @property
    def _n_of_round(self) -> int:
        """Members of a round."""
        return 1

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
        reader = self._reader_of(X, self._template())
        target = self._read_target(y, reader.n_rows)
        classes = target.classes
        rows = LearningRows(reader.table, target.values, read_weights(sample_weight, reader.n_rows), given=X)
        held: LearningRows | None = None
        if X_val is not None and y_val is not None:
            table = reader.read(X_val)
            known = self._known_target(y_val, table.n_rows, classes)
            held = LearningRows(table, known, read_weights(sample_weight_val, table.n_rows), given=X_val)
        seeds = check_random_state(self.random_state)
        if held is None and self.early_stopping:
            seed = int(seeds.randint(np.iinfo(np.int32).max))
            rows, held = set_aside(rows, self.validation_fraction, groups, self._is_class_target, seed, time)
        rows, held = reader.used(rows), None if held is None else reader.used(held)
        rule = self._make_rule(rows, classes)
        learner = reader.learner(rows.columns, self._member_classes(classes))
        evaluation = None
        if held is not None:
            evaluation = HeldOutRounds(held.columns, self._held_out_loss(held, rule, classes))
        rounds = Rounds(self._round_settings, rule, learner, rows.columns, self._predict_by(learner), evaluation, seeds)
        rounds.run()
        self._keep(reader, rounds, classes)
        return self

    @property
    def _round_settings(self) -> RoundSettings:
        return RoundSettings(
            n_estimators=int(self.n_estimators),
            early_stopping=bool(self.early_stopping),
            n_iter_no_change=int(self.n_iter_no_change),
            tol=float(self.tol),
            keep_best=bool(self.keep_best),
            verbose=int(self.verbose),
            advice_on_chance=self._advice_on_chance(),
        )

    def _n_parts_held_out(self) -> int:
        return 2 if self.early_stopping else 0

    def _template(self) -> BaseEstimator:
        template = self._default_estimator() if self.estimator is None else clone(self.estimator)
        self._check_member(template)
        if is_plain_tree(template) and template.n_jobs is None:
            template.n_jobs = self.n_jobs
        return template

    def _reader_of(self, X: TableLike, template: BaseEstimator) -> Reader:
        name = type(self).__name__
        if is_plain_tree(template) and not self.resample:
            return TreeReader.of(X, template, self.categorical_features, self.unseen, name)
        if self.categorical_features is not None or self.unseen != "missing":
            raise ValueError(
                "categorical_features and unseen are for members that are plain decision trees of spinney, fitted by "
                "weights. Give them to the estimator itself."
            )
        return AnyReader.of(X, template, self.resample, name)

    def _keep(self, reader: Reader, rounds: Rounds, classes: NDArray[Any] | None) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        for name in ("_members", "_column_names"):
            self.__dict__.pop(name, None)
        steps = rounds.retained
        self._set_classes(classes)
        self.__dict__.update(rounds.curves())
        self.estimator_, self.n_iter_ = reader.template, len(steps)
        self.estimator_weights_ = np.array([step.weight for step in steps])
        members = [member for of_round in rounds.members[: len(steps)] for member in of_round]
        if isinstance(reader, TreeReader):
            self._keep_schema(reader.schema)
            setattr(self, self._model_attribute, self._fitted_of(members, self.estimator_weights_, reader.schema))
            self.max_features_ = reader.template._settings.columns_tried(reader.schema)
        elif isinstance(reader, AnyReader):
            self._members, self._column_names, self.n_features_in_ = members, reader.names, reader.n_columns
            if reader.names is not None:
                self.feature_names_in_ = np.array(reader.names, dtype=object)

    # ---- files ---------------------------------------------------------------------------------------

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        parameters = self.get_params(deep=False)
        template = parameters.pop("estimator")
        if self._has_trees:
            part = self._part()
            about = None if template is None else opening(template, template.get_params(deep=False))
            header = opening(self, parameters) | {"template": about} | self._to_header() | part.header()
            return header, part.model.trees()
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
        model, frame = unfitted(cls, header, estimator=template), read_frame(header)
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
    def _of_part(cls, header: dict[str, Any], part: FittedPart) -> Self:
        model = super()._of_part(header, part)
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

    @property
    def _algorithm(self) -> str:
        """Name of the algorithm in fingerprints."""
        return "median"

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
        learned: dict[str, Any] = {"n_outputs_": 1}
        if classes is not None:
            learned |= {"classes_": classes, "n_classes_": len(classes), "cost_matrix_": None, "priors_": None}
        fitted = FittedTree(tree, None if classes is None else [len(classes)], 1)
        return self.estimator_._with_tree(self.schema_, learned, fitted)

    def _by_round(self, X: TableLike) -> Iterator[tuple[list[NDArray[Any]], float]]:
        """Yield the predictions of the members of each round, and their weight."""
        check_is_fitted(self)
        name = type(self).__name__
        if self._has_trees:
            reader: Reader = TreeReader(self.estimator_, self.schema_, self.unseen, name)
        else:
            reader = AnyReader(self.estimator_, self._column_names, self.n_features_in_, self.resample, name)
        table = reader.read(X)
        members = self._fitted.trees() if self._has_trees else self._members
        predict = self._predict_by(reader.learner(table, self._member_classes(self._classes)))
        n = self._n_of_round
        for t, weight in enumerate(self.estimator_weights_):
            yield [predict(member, table) for member in members[t * n : (t + 1) * n]], float(weight)

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
        last, rounds = int(self.n_iter_) - 1, counted(int(self.n_iter_), "round", "rounds")
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
            member = get_tags(self.estimator)
            for name in ("sparse", "allow_nan", "categorical", "string"):
                setattr(tags.input_tags, name, getattr(member.input_tags, name))
        return tags


# ---- classes -----------------------------------------------------------------------------------------------------


def _link(sayings: Sayings) -> FittedBoosting:
    """Return a sum of no trees, which knows how scores become class probabilities."""
    return FittedBoosting([], np.zeros(sayings.n_scores), sayings.link, [], [sayings.n_classes])


@estimator
class AdaBoostClassifier(ClassifierMixin, BaseAdaBoost):
    """Weak classifiers fitted one after the other, each looking at what the earlier ones got wrong.

    Rows that a member gets wrong weigh more for the next one, and members vote with a weight that follows from their
    error. By default members are stumps, trees of one split, of which spinney fits hundreds a second; any estimator
    will do that takes weights, and one that does not is fitted to rows drawn by their weights.

    See Also
    --------
    GradientBoostingClassifier : Boosts any loss; ``loss="exponential"`` is AdaBoost's.

    References
    ----------
    Y. Freund, R. E. Schapire (1997). A decision-theoretic generalization of on-line learning and an application to
    boosting. Journal of Computer and System Sciences 55, 119-139.

    J. Friedman, T. Hastie, R. Tibshirani (2000). Additive logistic regression: a statistical view of boosting. The
    Annals of Statistics 28, 337-407.

    J. Zhu, H. Zou, S. Rosset, T. Hastie (2009). Multi-class AdaBoost. Statistics and Its Interface 2, 349-360.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = spinney.AdaBoostClassifier(n_estimators=100).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.94
    """

    algorithm: str = parameter(StrOptions(set(ALGORITHMS)), default="samme")
    _sayings: Sayings = field(init=False)
    _is_class_target = True

    # ---- fitting -------------------------------------------------------------------------------------

    @property
    def _fits_values(self) -> bool:
        return self.algorithm in ("gentle", "logit")

    @property
    def _algorithm(self) -> str:
        return self.algorithm

    @property
    def _n_of_round(self) -> int:
        return self._sayings.n_members

    def _default_estimator(self) -> TableEstimator:
        kind = DecisionTreeRegressor if self._fits_values else DecisionTreeClassifier
        return kind(max_depth=self.max_depth)

    def _check_member(self, template: BaseEstimator) -> None:
        name = type(template).__name__
        if self._fits_values and is_classifier(template):
            raise ValueError(f"algorithm={self.algorithm!r} fits values, and {name} is a classifier. Pass a regressor.")
        if not self._fits_values and is_regressor(template):
            raise ValueError(
                f"algorithm={self.algorithm!r} needs classifiers, and {name} is a regressor. Pass a classifier, or "
                "algorithm='gentle' or 'logit'."
            )
        if self.algorithm == "real" and not hasattr(template, "predict_proba"):
            raise ValueError(f"algorithm='real' needs probabilities, and {name} has no predict_proba. Use 'samme'.")

    def _read_target(self, y: ArrayLike, n_rows: int) -> BoostTarget:
        return BoostTarget(*read_one_class(y, n_rows, "AdaBoost"))

    def _known_target(self, y: ArrayLike, n_rows: int, classes: NDArray[Any] | None, name: str = "y_val") -> Floats:
        assert classes is not None
        return known_codes(y, classes, n_rows, name)

    def _make_rule(self, rows: LearningRows, classes: NDArray[Any] | None) -> ScoresRule:
        assert classes is not None
        sayings = Sayings(self.algorithm, len(classes))
        return make_rule(sayings, rows.target.astype(np.intp), rows.weights(), float(self.learning_rate))

    def _set_classes(self, classes: NDArray[Any] | None) -> None:
        assert classes is not None
        self.classes_, self.n_classes_ = classes, len(classes)
        self._sayings = Sayings(self.algorithm, len(classes))

    def _member_classes(self, classes: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if self._fits_values else classes

    def _predict_by(self, learner: WeakLearner) -> Predict:
        return learner.codes if self.algorithm in VOTES else learner.values

    def _held_out_loss(self, held: LearningRows, rule: Rule, classes: NDArray[Any] | None) -> RoundLoss:
        assert isinstance(rule, ScoresRule)
        assert classes is not None
        sayings, added = rule.sayings, rule.added
        scores = np.zeros((len(held.target), sayings.n_scores))
        codes, weight = held.target.astype(np.intp), held.weights()
        score = None if self.scoring is None else HeldOutScore(self.scoring, _link(sayings), held, [classes])

        def loss(predicted: list[NDArray[Any]], member_weight: float) -> float:
            scores[:] += added(predicted, member_weight)
            if score is not None:
                return score(scores)
            return float(weight[sayings.codes(scores) != codes].sum() / weight.sum())

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedAdaBoost:
        return FittedAdaBoost(trees, weights, self._sayings, schema.n_categories)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        assert isinstance(part.model, FittedAdaBoost)
        return super()._from_header(header, part) | {"_sayings": part.model.sayings}

    def _advice_on_chance(self) -> str:
        if self.algorithm == "m1":
            return "With many classes use algorithm='samme', or members that learn more, such as deeper trees."
        return "Use members that learn more, such as deeper trees, or see whether X tells anything of y."

    # ---- using ---------------------------------------------------------------------------------------

    def _staged_scores(self, X: TableLike) -> Iterator[Floats]:
        scores: Any = 0.0
        for predicted, weight in self._by_round(X):
            scores = scores + np.hstack([self._sayings.scores(values, weight) for values in predicted])
            yield scores

    def _scores(self, X: TableLike) -> Floats:
        """Scores of each row, (n_rows, n_scores)."""
        if self._has_trees:
            model = self._fitted
            assert isinstance(model, FittedAdaBoost)
            return self._by_blocks(X, lambda columns: model.scores(columns, self._n_threads))
        *_, scores = self._staged_scores(X)
        return scores

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Class with the largest score; of equal ones the first.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return np.asarray(self.classes_.take(self._sayings.codes(self._scores(X))))

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities of each row, by the theory of the algorithm.

        For two classes 1 / (1 + exp(-2 f)) of the score f; for votes of several classes, in proportion to the
        exponential of each class's votes. They rest on the training rows, and are too sure of themselves where these
        are fitted closely.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return _link(self._sayings).predicted(self._scores(X))

    def predict_log_proba(self, X: TableLike) -> Floats:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Minus infinity where the probability is 0.
        """
        with np.errstate(divide="ignore"):
            return log(self.predict_proba(X))

    def decision_function(self, X: TableLike) -> Floats:
        """Scores of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes f = Σ α / 2 · h, positive for the second: half its log-odds. For more, a number per class:
            the sum of the weights of the members that vote for it (``"m1"``, ``"samme"``), or its logarithmic score.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_decision_function(self, X: TableLike) -> Iterator[Floats]:
        """Scores of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            As `decision_function`.
        """
        for scores in self._staged_scores(X):
            yield scores[:, 0] if scores.shape[1] == 1 else scores

    def staged_predict(self, X: TableLike) -> Iterator[NDArray[Any]]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Labels.
        """
        for scores in self._staged_scores(X):
            yield np.asarray(self.classes_.take(self._sayings.codes(scores)))

    def staged_predict_proba(self, X: TableLike) -> Iterator[Floats]:
        """Class probabilities of each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            As `predict_proba`.
        """
        for scores in self._staged_scores(X):
            yield _link(self._sayings).predicted(scores)

    def staged_score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[float]:
        """Accuracy after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Yields
        ------
        float
            Share of the rows that are given their own class.
        """
        for labels in self.staged_predict(X):
            yield float(accuracy_score(y, labels, sample_weight=sample_weight))

    def shap_values(self, X: TableLike, *, interactions: bool = False, background: TableLike = None) -> ShapValues:
        """Part each score among the columns: Shapley values by TreeSHAP. For members that are trees.

        Starting from the base value, each column adds its value; together they are the score that `decision_function`
        gives. Where a tree asks for a column that is not known yet, both ways are taken in proportion to the weight of
        the rows that the tree was grown on, which is another for each tree.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        interactions : bool, default=False
            Also compute what pairs of columns add together: n_features² numbers per row.
        background : table of shape (n_background, n_features), optional
            Rows that columns take their values from while they are not known (interventional values); the result is
            the mean over these rows, the base value their mean score. The time grows with their number: some
            hundred typical rows do. None: both ways by the weight of the rows, as above.

        Returns
        -------
        ShapValues
            Has `values`, `base_value` and, if asked for, `interactions`; with more than two classes, for each class.
        """
        from spinney.inspect.explain.shap import ShapValues, explain

        check_is_fitted(self)
        self._fitted  # noqa: B018
        two = len(self.classes_) == 2
        of = f"half the log-odds of {self.classes_[1]}" if two else "score of the class"
        explained = explain(self, read_table(X), interactions, background, of=of)
        assert isinstance(explained, ShapValues)
        return explained

    # ---- margins ---------------------------------------------------------------------------------------

    def staged_margins(self, X: TableLike, y: ArrayLike) -> Iterator[Floats]:
        """Margin of each row after each round: how far the vote for its own class is ahead of all others.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Yields
        ------
        ndarray of shape (n_samples,)
            Between -1 and 1 for the rows of the fit: the score of the row's own class less the largest of the others,
            over the most that the rounds could have made of it. Negative where the model is wrong.
        """
        check_is_fitted(self)
        reach = 0.0
        for t, scores in enumerate(self._staged_scores(X)):
            reach += float(self._reach[t])
            yield self._margins(scores, y) / (reach if reach > 0 else 1.0)

    def margins(self, X: TableLike, y: ArrayLike) -> Floats:
        """Margin of each row: how far the vote for its own class is ahead of all others.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        ndarray of shape (n_samples,)
            As the last of `staged_margins`.
        """
        check_is_fitted(self)
        reach = float(np.cumsum(self._reach)[-1])  # in the order of the rounds, as in `staged_margins`
        return self._margins(self._scores(X), y) / (reach if reach > 0 else 1.0)

    def _margins(self, scores: Floats, y: ArrayLike) -> Floats:
        codes = self._known_target(y, len(scores), self.classes_, "y").astype(np.intp)
        if scores.shape[1] == 1:
            return 2.0 * (2.0 * codes - 1.0) * scores[:, 0]
        own = np.take_along_axis(scores, codes[:, np.newaxis], axis=1)[:, 0]
        others = scores.copy()
        np.put_along_axis(others, codes[:, np.newaxis], -np.inf, axis=1)
        return np.asarray(own - others.max(axis=1))

    def staged_weights(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[Floats]:
        """Weights of the training rows before each round, and after the last.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            The rows of the fit.

        Yields
        ------
        ndarray of shape (n_samples,)
            They add up to 1. Where each class has members of its own, (n_samples, n_classes).
        """
        check_is_fitted(self)
        codes = self._known_target(y, len(np.asarray(y)), self.classes_, "y")
        weight = read_weights(sample_weight, len(codes))
        rule = make_rule(
            self._sayings,
            codes.astype(np.intp),
            np.ones(len(codes)) if weight is None else weight,
            float(self.learning_rate),
        )
        yield rule.weights
        for predicted, _ in self._by_round(X):
            rule.take(rule.judge(predicted))
            yield rule.weights


# ---- values ------------------------------------------------------------------------------------------------------


@estimator
class AdaBoostRegressor(RegressorMixin, BaseAdaBoost):
    """Regressors fitted one after the other, each looking at the rows that the earlier ones were far off.

    AdaBoost.R2. A member's error is the mean of the rows' losses, each as a share of the largest; the prediction is the
    median of the members' predictions by their weights. Members that take weights get them, where the original draws
    samples; ``resample=True`` does as the original.

    See Also
    --------
    GradientBoostingRegressor : Boosts any loss, and is usually more accurate.

    References
    ----------
    H. Drucker (1997). Improving regressors using boosting techniques. International Conference on Machine Learning,
    107-115.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spinney.AdaBoostRegressor(n_estimators=50).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 1)
    0.3
    """

    loss: str = parameter(StrOptions({"linear", "square", "exponential"}), default="linear")
    max_depth: int = parameter(default=3)

    def _default_estimator(self) -> TableEstimator:
        return DecisionTreeRegressor(max_depth=self.max_depth)

    def _check_member(self, template: BaseEstimator) -> None:
        if is_classifier(template):
            raise ValueError(f"AdaBoost of numbers needs regressors, and {type(template).__name__} is a classifier.")

    def _read_target(self, y: ArrayLike, n_rows: int) -> BoostTarget:
        return BoostTarget(read_one_value(y, n_rows, "AdaBoost"))

    def _known_target(self, y: ArrayLike, n_rows: int, classes: NDArray[Any] | None, name: str = "y_val") -> Floats:
        return read_one_value(y, n_rows, "AdaBoost", name)

    def _make_rule(self, rows: LearningRows, classes: NDArray[Any] | None) -> R2Rule:
        return R2Rule(rows.target, rows.weights(), self.loss, float(self.learning_rate))

    def _set_classes(self, classes: NDArray[Any] | None) -> None:
        return

    def _held_out_loss(self, held: LearningRows, rule: Rule, classes: NDArray[Any] | None) -> RoundLoss:
        values: list[Floats] = []
        weights: list[float] = []
        used = held.weights() > 0
        y, weight = held.target[used], held.weights()[used]
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        X = pick_table(held.given).take(np.flatnonzero(used)) if callable(self.scoring) else np.arange(len(y))

        def loss(predicted: list[NDArray[Any]], member_weight: float) -> float:
            values.append(predicted[0][used])
            weights.append(member_weight)
            median = weighted_medians(np.column_stack(values), np.array(weights))
            if scorer is None:
                return float(np.average((median - y) ** 2, weights=weight))
            weighted = {} if (weight == weight[0]).all() else {"sample_weight": weight}
            return -float(scorer(_HeldOutValues(median), X, y, **weighted))

        return loss

    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, schema: Schema) -> FittedMedian:
        return FittedMedian(trees, weights)

    def _advice_on_chance(self) -> str:
        return "Use members that learn more, such as deeper trees, or loss='square'."

    def predict(self, X: TableLike) -> Floats:
        """Weighted median of the members' predictions.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values.
        """
        check_is_fitted(self)
        if self._has_trees:
            model = self._fitted
            return self._by_blocks(X, lambda columns: model.predictions(columns, self._n_threads))[:, 0]
        values = np.column_stack([predicted[0] for predicted, _ in self._by_round(X)])
        return weighted_medians(values, self.estimator_weights_)

    def staged_predict(self, X: TableLike) -> Iterator[Floats]:
        """Predict each row after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Yields
        ------
        ndarray of shape (n_samples,)
            Values.
        """
        values: list[Floats] = []
        for predicted, _ in self._by_round(X):
            values.append(predicted[0])
            yield weighted_medians(np.column_stack(values), self.estimator_weights_[: len(values)])

    def staged_score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[float]:
        """R² after each round.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their values.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Yields
        ------
        float
            R².
        """
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))


class _HeldOutValues(RegressorMixin, BaseEstimator):
    """Looks to a scorer like a fitted regressor; the predictions of the held-out rows are known."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def predict(self, X: TableLike) -> Floats:
        """Return the values of the held-out rows."""
        if _num_samples(X) != len(self.values):
            raise ValueError(
                "scoring asks for predictions of other rows than those held out. Predict the rows that it is given, "
                "as a whole."
            )
        return self.values
