"""What AdaBoost of classes and of values share: reading tables, rounds, files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._boosting.learning_rows import LearningRows
from spinney._boosting.row_splits import set_aside
from spinney._data import Schema
from spinney._ensemble.adaboost.saved_state import (
    KIND,
    members_from_file,
    members_parts,
    opening_of,
    rounds_from_json,
    rounds_to_json,
    template_of,
)
from spinney._ensemble.readers import AnyReader, Reader, TreeReader
from spinney._ensemble.rounds import REASONS, Judge, Rounds, Rule
from spinney._ensemble.saved_members import fingerprint_of
from spinney._ensemble.weak import WeakLearner, is_plain_tree
from spinney._estimator.members import SequenceOfMembers
from spinney._estimator.parameters import COUNT
from spinney._estimator.single_target import check_held_out, check_scoring
from spinney._estimator.summary import About, counted
from spinney._estimator.table_estimator import TableEstimator
from spinney._estimator.target import read_weights
from spinney._model.file.container import refuse
from spinney._model.lazy_sequence import LazySequence
from spinney._model.model import FittedModel
from spinney._model.saving.model_part import FittedPart, kind_of
from spinney._model.tree import FittedTree
from spinney.inspect.explain import methods

Floats = NDArray[np.float64]
Say = Callable[[Any, Any], NDArray[Any]]


class BaseAdaBoost(SequenceOfMembers, TableEstimator):
    """Members fitted one after the other, each with weights that follow from the earlier ones.

    Members that are plain trees of spinney are held as one model that predicts, `adaboost_`; others as a list.
    """

    _model_attribute = "adaboost_"
    shap_values = methods.shap_values
    _is_class_target = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [COUNT],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "max_depth": [Interval(Integral, 1, None, closed="left")],
        "resample": ["boolean"],
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
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
    }

    # ---- what differs between classes and values ---------------------------------------------------

    @abstractmethod
    def _default_estimator(self) -> Any:
        """Return the member if none is given."""

    @abstractmethod
    def _check_member(self, template: Any) -> None:
        """Refuse members that the algorithm cannot use."""

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> tuple[Floats, dict[str, Any]]:
        """Check y; return it as numbers, and what is learned from it."""

    @abstractmethod
    def _known_target(self, y: Any, n_rows: int, learned: dict[str, Any]) -> Floats:
        """Return the target of held-out rows, as numbers."""

    @abstractmethod
    def _make_rule(self, rows: LearningRows, learned: dict[str, Any]) -> Rule:
        """Return the algorithm, at its start."""

    @abstractmethod
    def _member_classes(self, learned: dict[str, Any]) -> NDArray[Any] | None:
        """Return the classes that members tell apart; None: they predict values."""

    @abstractmethod
    def _say(self, learner: WeakLearner) -> Say:
        """Return what tells what a member says of a table's rows, as the algorithm takes it."""

    @abstractmethod
    def _held_out_loss(self, held: LearningRows, rule: Any, learned: dict[str, Any]) -> Any:
        """Return how rounds are judged by held-out rows."""

    @abstractmethod
    def _fitted_of(self, trees: list[_engine.Tree], weights: Floats, rule: Any, schema: Schema) -> FittedModel:
        """Return what predicts, if members are trees."""

    @abstractmethod
    def _of_rule(self, rule: Any) -> dict[str, Any]:
        """Return what the algorithm has fixed at its start and predictions need, as attributes."""

    @abstractmethod
    def _known_rule(self, learned: dict[str, Any]) -> dict[str, Any]:
        """Return what `_of_rule` gives of a fit that is known by its parameters and what was learned."""

    @abstractmethod
    def _members_of_round(self, learned: dict[str, Any]) -> int:
        """Return how many members a round has."""

    @abstractmethod
    def _advice_on_chance(self) -> str:
        """Say what to do if the first member is no better than a guess."""

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
        self._check_request((X_val, y_val, sample_weight_val), groups, time)
        template = self._template()
        reader = self._reader_of(X, template)
        target, learned = self._read_target(y, reader.n_rows)
        rows = LearningRows(reader.table, target, read_weights(sample_weight, reader.n_rows), given=X)
        held = None if X_val is None else self._read_held_out(reader, X_val, y_val, sample_weight_val, learned)
        seeds = check_random_state(self.random_state)
        if held is None and self.early_stopping:
            seed = int(seeds.randint(np.iinfo(np.int32).max))
            rows, held = set_aside(rows, self.validation_fraction, groups, self._is_class_target, seed, time)
        rows, held = reader.used(rows), None if held is None else reader.used(held)
        rule = self._make_rule(rows, learned)
        learner = reader.learner(rows.columns, self._member_classes(learned))
        judge = None if held is None else Judge(held.columns, self._held_out_loss(held, rule, learned))
        rounds = Rounds(self, rule, learner, rows.columns, self._say(learner), judge, seeds)
        rounds.run()
        self._keep(reader, rounds, rule, learned)
        return self

    def _n_parts_held_out(self) -> int:
        return 2 if self.early_stopping else 0

    def _check_request(self, given: tuple[Any, Any, Any], groups: Any, time: Any) -> None:
        self._check_parameters()
        check_scoring(self.scoring)
        check_held_out(given[0], given[1], {"sample_weight_val": given[2]}, groups, self.early_stopping, time)

    def _template(self) -> Any:
        template = self._default_estimator() if self.estimator is None else clone(self.estimator)
        self._check_member(template)
        if is_plain_tree(template) and template.n_jobs is None:
            template.n_jobs = self.n_jobs
        return template

    def _reader_of(self, X: Any, template: Any) -> Reader:
        name = type(self).__name__
        if is_plain_tree(template) and not self.resample:
            return TreeReader.of(X, template, self.categorical_features, self.unseen, name)
        if self.categorical_features is not None or self.unseen != "missing":
            raise ValueError(
                "categorical_features and unseen are for members that are plain decision trees of spinney, fitted by "
                "weights. Give them to the estimator itself."
            )
        return AnyReader.of(X, template, self.resample, name)

    def _read_held_out(
        self, reader: Reader, X: Any, y: Any, sample_weight: Any, learned: dict[str, Any]
    ) -> LearningRows:
        table = reader.read(X)
        target = self._known_target(y, table.n_rows, learned)
        return LearningRows(table, target, read_weights(sample_weight, table.n_rows), given=X)

    def _keep(self, reader: Any, rounds: Rounds, rule: Any, learned: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once, when nothing can fail any more."""
        kept = rounds.n_kept
        weights = np.array([step.weight for step in rounds.steps[:kept]])
        members = [member for of_round in rounds.members[:kept] for member in of_round]
        found = learned | rounds.record() | self._of_rule(rule) | {"estimator_": reader.template}
        found |= {"estimator_weights_": weights, "n_iter_": kept, "_n_of_round": len(rounds.members[0])}
        if isinstance(reader, TreeReader):
            found[self._model_attribute] = self._fitted_of(members, weights, rule, reader.schema)
            found["max_features_"] = reader.template._settings.columns_tried(reader.schema)
        else:
            found |= {"_members": members, "_column_names": reader.names}
        for name in [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        for name in ("_members", "_column_names"):
            self.__dict__.pop(name, None)
        if isinstance(reader, TreeReader):
            self._keep_schema(reader.schema)
        else:
            self.n_features_in_ = reader.n_columns
            if reader.names is not None:
                self.feature_names_in_ = np.array(reader.names, dtype=object)
        self.__dict__.update(found)

    # ---- files ---------------------------------------------------------------------------------------

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        if not self._has_trees:
            return members_parts(self)
        part = self._part()
        return opening_of(self) | self._to_header() | part.header(), part.model.trees()

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        if kind_of(header) != KIND:
            return super()._from_file(header, file)
        model: Self = members_from_file(cls, header, file)
        return model

    def _to_header(self) -> dict[str, Any]:
        return rounds_to_json(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], part: FittedPart) -> dict[str, Any]:
        model: Any = part.model
        return rounds_from_json(header, model.n_rounds) | {"_n_of_round": model.n_trees // model.n_rounds}

    @classmethod
    def _of_part(cls, header: dict[str, Any], part: FittedPart) -> Self:
        model = super()._of_part(header, part)
        model.estimator = template_of(header)
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
        how = str(getattr(self, "algorithm", "median")).encode()
        return fingerprint_of(self._members, how + np.ascontiguousarray(self.estimator_weights_).tobytes())

    # ---- members -------------------------------------------------------------------------------------

    @property
    def _has_trees(self) -> bool:
        """Whether the members are held as one model of trees."""
        check_is_fitted(self)
        return self._model_attribute in self.__dict__

    @property
    def _fitted(self) -> FittedModel:
        """What predicts, if members are trees."""
        if not self._has_trees:
            raise TypeError(
                "This works with members that are plain decision trees of spinney; those of this model are of the type "
                f"{type(self.estimator_).__name__}."
            )
        fitted: FittedModel = self.__dict__[self._model_attribute]
        return fitted

    @property
    def estimators_(self) -> Sequence[Any]:
        """The members, in the order of the rounds; with a member per class, by round and class."""
        if not self._has_trees:
            members: list[Any] = self._members
            return members
        trees = self._fitted.trees()
        return LazySequence(len(trees), lambda t: self._tree_estimator(trees[t]))

    def _tree_estimator(self, tree: _engine.Tree) -> Any:
        classes = self._member_classes(self.__dict__)
        learned: dict[str, Any] = {"n_outputs_": 1}
        if classes is not None:
            learned |= {"classes_": classes, "n_classes_": len(classes), "cost_matrix_": None, "priors_": None}
        fitted = FittedTree(tree, None if classes is None else [len(classes)], 1)
        return self.estimator_._with_tree(self.schema_, learned, fitted)

    def _reader(self) -> Reader:
        """Return what reads tables as at fit."""
        name = type(self).__name__
        if self._has_trees:
            return TreeReader(self.estimator_, self.schema_, self.unseen, name)
        return AnyReader(self.estimator_, self._column_names, self.n_features_in_, self.resample, name)

    def _by_round(self, X: Any) -> Iterator[tuple[list[NDArray[Any]], float]]:
        """Yield what the members of each round say of some rows, and their weight."""
        check_is_fitted(self)
        reader = self._reader()
        table = reader.read(X)
        members = self._fitted.trees() if self._has_trees else self._members
        say = self._say(reader.learner(table, self._member_classes(self.__dict__)))
        for t, weight in enumerate(self.estimator_weights_):
            of_round = members[t * self._n_of_round : (t + 1) * self._n_of_round]
            yield [say(member, table) for member in of_round], float(weight)

    @property
    def feature_importances_(self) -> Floats:
        """Mean of the members' importances by their weights, as shares."""
        if self._has_trees:
            model: Any = self._fitted
            return np.asarray(model.importances(self.n_features_in_))
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            member = get_tags(self.estimator)
            for name in ("sparse", "allow_nan", "categorical", "string"):
                setattr(tags.input_tags, name, getattr(member.input_tags, name))
        return tags
