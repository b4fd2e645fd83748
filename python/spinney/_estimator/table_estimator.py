"""Base class of estimators with a schema and one fitted model, and methods that some of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.columns import RawTable
from spinney._data.reproducible import log
from spinney._data.schema import check_categories
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import MODEL_FILE, Estimator, only_if, opening, unfitted
from spinney._estimator.fit_inputs import batches_of
from spinney._estimator.parameters import read_monotone
from spinney._model.file.codec import SavedState
from spinney._model.file.container import from_bytes, refuse
from spinney._model.model import FittedModel, ModelOfTrees
from spinney._model.row_predictors import RowPredictor
from spinney._model.saving.saved_model import SavedModel


class TableEstimator(Estimator):
    """Base class of estimators that read tables by a schema and have one fitted model.

    Files and pickles contain the model; `_saved`, or `_to_header` and `_from_header`, define what else they contain.
    """

    _model_attribute: ClassVar[str]  # name of the attribute of the fitted model
    _tied_to_trees: ClassVar[tuple[str, ...]] = ()  # attributes of `_from_header` that refer to the model's trees
    _has_target: ClassVar[bool] = True
    _saved: ClassVar[SavedState | None] = None  # fitted attributes of the estimator that the model does not have
    schema_: Schema

    @property
    def _fitted(self) -> FittedModel:
        """The fitted model."""
        fitted: FittedModel = getattr(self, self._model_attribute)
        return fitted

    @property
    def _unseen_policy(self) -> Any:
        """Treatment of categories that did not occur at fit; models of numbers have no parameter for it."""
        return getattr(self, "unseen", "missing")

    def _learn_schema(self, table: RawTable, *, continues: bool = False) -> Schema:
        """Return the schema of a table; if a fit continues an earlier one, that of the earlier fit."""
        if continues:
            check_categories(self.schema_, table, self.categorical_features, type(self).__name__)
            return self.schema_
        return Schema.learn(
            table, categorical_features=self.categorical_features, unseen=self.unseen, warn_identifiers=True
        )

    def _set_schema(self, schema: Schema) -> None:
        """Set the fitted attributes that come from the table."""
        self.schema_ = schema
        self.n_features_in_ = schema.n_features
        if schema.has_names:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_is_fitted(self) -> None:
        """Do scikit-learn's `check_is_fitted` where it would raise; it takes longer than to predict one row."""
        if "schema_" not in self.__dict__:
            check_is_fitted(self)

    def _columns(self, X: TableLike) -> _engine.Table:
        """Return the encoded columns of rows to predict."""
        self._check_is_fitted()
        return self.schema_.encode(read_table(X), unseen=self._unseen_policy, estimator=type(self).__name__)

    def _by_blocks(self, X: TableLike, work: Callable[[_engine.Table], NDArray[Any]]) -> NDArray[Any]:
        """Return a function of the encoded rows, computed in blocks of rows where that saves memory."""
        self._check_is_fitted()
        tables = batches_of(X, self.schema_) or [read_table(X)]
        blocks = (self.schema_.encode_blocks(table, self._unseen_policy, type(self).__name__) for table in tables)
        results = [work(block) for tables in blocks for block in tables]
        return results[0] if len(results) == 1 else np.concatenate(results)

    def fingerprint(self) -> str:
        """Return a hash of all numbers that determine predictions.

        They are, depending on the model, the trees, coefficients or stored rows, the initial scores and the link of
        boosting, the costs of misclassification, and the combinations of oblique forests. Names of columns and classes
        are not included, nor are parameters that only `fit` uses.

        Returns
        -------
        str
            64 hexadecimal digits; the same for every number of threads, chunking of the rows and kind of table.

        Examples
        --------
        >>> import spinney
        >>> X, y = spinney.datasets.load_penguins()
        >>> models = [spinney.RandomForestClassifier(5, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)]
        >>> models[0].fingerprint() == models[1].fingerprint()
        True
        """
        check_is_fitted(self)
        return self._saved_model().fingerprint()

    @only_if(lambda model: None if model._has_target else "needs a model that predicts a target.")
    def to_predictor(self) -> RowPredictor:
        """Return a predictor for single rows, which takes microseconds per row.

        The predictor does not check its input and starts no thread. It takes the values of a row in column order, or by
        name.

        Returns
        -------
        RowPredictor
            The predictor; each thread needs its own.
        """
        check_is_fitted(self)
        return self._fitted.row_predictor(self.schema_, self._unseen_policy, getattr(self, "classes_", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # ---- hooks of explanations -------------------------------------------------------------------------------

    @property
    def _predicts_alone(self) -> bool:
        """Whether the fitted model alone gives the predictions; else another model adds to them."""
        return True

    def _effective_rows(self, columns: _engine.Table) -> Floats | None:
        """Return how many training rows count for each row; None if the model does not retain them."""
        return None

    def _constrained_directions(self, constraint: object) -> list[list[int]]:
        """Return directions by output and column: one list if all outputs have the same, none if there are none."""
        directions = read_monotone(constraint, self.schema_)
        return [directions] if directions else []

    def _shap_sums(
        self, columns: _engine.Table, background: _engine.Table | None, interactions: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Return base values by output, flat values by row, column and output, and flat values of pairs."""
        fitted: Any = self._fitted
        sums: tuple[Floats, Floats, Floats] = fitted.shap_sums(columns, background, interactions, self._n_threads)
        return sums

    # ---- files and pickles -----------------------------------------------------------------------------------

    def _to_header(self) -> dict[str, Any]:
        """Return the header entries of the estimator's attributes that the fitted model does not have."""
        return {} if self._saved is None else self._saved.to_header(self.__dict__)

    @classmethod
    def _from_header(cls, header: dict[str, Any], saved: SavedModel) -> dict[str, Any]:
        """Return fitted attributes, the inverse of `_to_header`; `refuse` attributes that do not match the model."""
        attributes = {} if cls._saved is None else cls._saved.from_header(header)
        cls._check_saved(attributes, saved.model)
        return attributes

    @classmethod
    def _check_saved(cls, found: dict[str, Any], model: FittedModel) -> None:
        """Refuse fitted attributes of a file that do not match its model."""
        return

    def _header(self) -> dict[str, Any]:
        """Return the header of a model file, without the entries of the fitted model."""
        return opening(self, self._saved_parameters()) | self._to_header()

    def _saved_model(self) -> SavedModel:
        """Return the fitted model as a saved model."""
        return SavedModel.of(self.__dict__, self._fitted)

    @classmethod
    def _of_saved(cls, header: dict[str, Any], saved: SavedModel) -> Self:
        """Return the fitted estimator of a header."""
        if cls._is_class_target != (saved.classes is not None):
            refuse("is damaged: its classes do not match its estimator")
        if cls._model_attribute != saved.model.attribute:
            refuse("is damaged: its trees do not match its estimator")
        estimator: Self = unfitted(cls, header)
        estimator.__dict__.update(saved.attributes() | cls._from_header(header, saved))
        return estimator

    def _file_parts(self) -> tuple[dict[str, Any], list[_engine.Tree]]:
        saved = self._saved_model()
        return self._header() | saved.header(), saved.model.trees()

    @classmethod
    def _from_file(cls, header: dict[str, Any], file: _engine.ModelFile) -> Self:
        return cls._of_saved(header, SavedModel.from_header(header, file))

    def _pickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if state.get(self._model_attribute) is None:
            return state
        saved = self._saved_model().without_labels()
        entries = self._to_header() if state.keys() & set(self._tied_to_trees) else {}
        in_file = {*saved.attributes(), *self._tied_to_trees} - {"classes_"}
        rest = {name: value for name, value in state.items() if name not in in_file}
        return rest | {MODEL_FILE: saved.to_bytes(entries)}

    def _unpickled(self, state: dict[str, Any]) -> dict[str, Any]:
        if MODEL_FILE not in state:
            return state
        header, file = from_bytes(state[MODEL_FILE])
        saved = SavedModel.from_header(header, file)
        attributes = self._from_header(header, saved) if self._tied_to_trees else {}
        tied = {name: attributes[name] for name in self._tied_to_trees if name in attributes}
        rest = {name: value for name, value in state.items() if name != MODEL_FILE}
        return saved.attributes() | tied | rest


def trees_of(model: object) -> ModelOfTrees:
    """Return the fitted model of an estimator of trees; TypeError for any other object."""
    if not isinstance(model, TableEstimator):
        raise TypeError(f"model must be a fitted tree, forest or boosted model of spinney, not {type(model).__name__}.")
    check_is_fitted(model)
    if not isinstance(model._fitted, ModelOfTrees):
        raise TypeError(f"{type(model).__name__} does not consist of trees. Pass a tree, a forest or a boosted model.")
    return model._fitted


class SequenceOfMembers:
    """Mixin: length, items and iteration are those of ``estimators_``."""

    estimators_: Any

    def __len__(self) -> int:
        return len(self.estimators_)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def __getitem__(self, i: object) -> Any:
        return self.estimators_[i]

    def __bool__(self) -> bool:
        return True  # else Python would call __len__, which raises for an unfitted estimator


class ScoringEstimator(Protocol):
    """An estimator whose model gives scores."""

    classes_: NDArray[Any]  # of classifiers

    @property
    def _fitted(self) -> FittedModel: ...

    def _scores(self, X: TableLike, /) -> Floats:
        """Return the scores of each row: one number for two classes, else one per class."""


class StagedEstimator(Protocol):
    """A classifier with scores after each of its rounds."""

    def _staged_scores(self, X: TableLike, /) -> Iterator[Floats]: ...


class ProbabilityEstimator(Protocol):
    """A classifier with class probabilities."""

    def predict_proba(self, X: TableLike, /) -> Floats: ...


def predict_labels(estimator: ScoringEstimator, X: TableLike) -> NDArray[Any]:
    """Predict the class of each row; of classes with equal scores, the first.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels.
    """
    scores = estimator._scores(X)
    fitted: Any = estimator._fitted
    return np.asarray(fitted.labels(fitted.score_codes(scores), [estimator.classes_]))


def predict_values(estimator: ScoringEstimator, X: TableLike) -> Floats:
    """Predict the numeric target of each row.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,)
        Predicted values.
    """
    scores = estimator._scores(X)
    fitted: Any = estimator._fitted
    return np.asarray(fitted.predicted(scores)[:, 0])


predict_labels.__name__ = predict_values.__name__ = "predict"  # scikit-learn's scorers look a method up by this name


def predict_proba(estimator: ScoringEstimator, X: TableLike) -> Floats:
    """Class probabilities of each row.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Columns in the order of `classes_`.
    """
    scores = estimator._scores(X)
    fitted: Any = estimator._fitted
    return np.asarray(fitted.predicted(scores))


def predict_log_proba(estimator: ProbabilityEstimator, X: TableLike) -> Floats:
    """Logarithm of the class probabilities.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        In the form of `predict_proba`; minus infinity where the probability is 0.
    """
    return log(estimator.predict_proba(X))


def decision_function(estimator: ScoringEstimator, X: TableLike) -> Floats:
    """Scores of each row: one number if there are two classes, otherwise one number per class.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes)
        With two classes: positive for the second class. With more: one score per class, the largest for the predicted
        class.
    """
    scores = estimator._scores(X)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def staged_decision_function(estimator: StagedEstimator, X: TableLike) -> Iterator[Floats]:
    """Scores of each row after each round.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Rows.

    Yields
    ------
    ndarray of shape (n_samples,) or (n_samples, n_classes)
        In the form of `decision_function`.
    """
    for scores in estimator._staged_scores(X):
        yield scores[:, 0] if scores.shape[1] == 1 else scores
