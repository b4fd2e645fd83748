"""Predictions from a model file, without scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney._engine as _engine
from spinney._data import Schema, read_table
from spinney._data.columns import match_columns
from spinney._data.display import with_article
from spinney._data.select import PickTable, pick_table
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._model.file.codec import flag, saved_fields
from spinney._model.file.container import (
    Target,
    csv_format_of,
    field,
    from_bytes,
    label_of,
    model_file_errors,
    read_file,
    refuse,
)
from spinney._model.file.values import parameters_from_json
from spinney._model.links import read_offset
from spinney._model.model import ModelOfTrees
from spinney._model.predictions import (
    all_probabilities,
    as_columns,
    calibrated,
    column_names,
    mean_prediction,
    member_predictions,
    tempered_columns,
)
from spinney._model.saving.members import WEIGHTS, StackPlan, check_member, read_ensemble, read_models
from spinney._model.saving.saved_model import SavedModel, kind_of
from spinney._names import COMBINED_KINDS, FAMILIES_OF_KIND, FITTED_KINDS, MODULE_OF, WITHOUT_TARGET, estimator_of


class Predictor:
    """A saved model that only predicts; made by `load_predictor`.

    Attributes
    ----------
    classes_ : ndarray, or list of these
        Class labels, in a classification.
    n_outputs_, n_features_in_ : int
        Numbers of outputs and columns.
    feature_names_in_ : ndarray of str
        Column names, if the training table had any.
    """

    def __init__(self, saved: SavedModel, name: str, parameters: Mapping[str, Any]) -> None:
        self._saved = saved
        self._name = name
        self._unseen = parameters.get("unseen", "missing")
        self._n_jobs = parameters.get("n_jobs")
        self._of_thread = local()
        if self._unseen not in ("missing", "error", "other"):
            refuse("is damaged: its parameter 'unseen' is unusable")
        if self._n_jobs is not None and (type(self._n_jobs) is not int or abs(self._n_jobs) >= 2**31):
            refuse("is damaged: its parameter 'n_jobs' is unusable")
        attributes = saved.attributes()
        self.n_outputs_ = saved.model.n_outputs
        for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
            if attribute in attributes:
                setattr(self, attribute, attributes[attribute])

    def __repr__(self) -> str:
        model = self._saved.model
        size = f"{model.node_count} nodes" if isinstance(model, ModelOfTrees) else model.noun
        return f"<Predictor of {with_article(self._name)}: {size}>"

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._saved.schema

    @property
    def takes_offset(self) -> bool:
        """Whether `predict` accepts an offset."""
        return self._saved.model.takes_offset

    def _by_blocks(self, X: TableLike, work: Callable[[_engine.Table, int], NDArray[Any]]) -> NDArray[Any]:
        blocks = self._saved.schema.encode_blocks(read_table(X), self._unseen, self._name)
        found = [work(block, self._n_jobs or 0) for block in blocks]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _predictions(self, X: TableLike) -> Any:
        model = self._saved.model
        return model.by_output(self._by_blocks(X, model.predictions))

    def _scores(self, X: TableLike, offset: ColumnLike) -> NDArray[np.float64]:
        """Scores of gradient boosting plus an offset, (n_rows, n_scores)."""
        model: Any = self._saved.model
        self._require_offsets()
        scores = self._by_blocks(X, model.scores)
        added = read_offset(offset, len(scores), model.n_scores)
        assert added is not None
        return np.asarray(scores + added.T)

    def _require_offsets(self) -> None:
        if not self._saved.model.takes_offset:
            raise ValueError(f"offset is for gradient boosting, and this is {with_article(self._name)}. Leave it out.")

    def predict(self, X: TableLike, *, offset: ColumnLike = None) -> NDArray[Any]:
        """Predict each row, bit-identical to the saved estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Gradient boosting: scores to add to those of the trees.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels or numbers.
        """
        model: Any = self._saved.model
        if offset is not None:
            scores = self._scores(X, offset)
            if self._saved.classes is None:
                return np.asarray(model.by_output(model.predicted(scores)))
            return np.asarray(model.labels(model.score_codes(scores), self._saved.classes))
        if self._saved.classes is None:
            return np.asarray(self._predictions(X))
        return np.asarray(model.labels(self._by_blocks(X, model.codes), self._saved.classes))

    def predict_proba(self, X: TableLike, *, offset: ColumnLike = None) -> NDArray[np.float64]:
        """Predict class probabilities, bit-identical to the saved estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,) or (n_samples, n_scores), optional
            Gradient boosting: scores to add to those of the trees.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or a list of these
            One array per output; columns in the order of `classes_`.
        """
        if self._saved.classes is None:
            raise AttributeError("A regression model has no class probabilities. Use predict.")
        if offset is not None:
            model: Any = self._saved.model
            return model.by_output(model.predicted(self._scores(X, offset)))  # type: ignore[no-any-return]
        proba: NDArray[np.float64] = self._predictions(X)
        return proba

    def predict_one(
        self, row: Sequence[Any] | Mapping[str, Any] | NDArray[np.float64], offset: ColumnLike = None
    ) -> Any:
        """Predict one row, in microseconds.

        Parameters
        ----------
        row : sequence, mapping or float64 array
            Values in column order, or by name.
        offset : float or array-like of shape (n_scores,), optional
            Gradient boosting: scores to add to those of the trees.

        Returns
        -------
        label or float
            Prediction; an array if the model has several outputs.
        """
        predictor = getattr(self._of_thread, "predictor", None)
        if predictor is None:
            predictor = self._of_thread.predictor = self.to_predictor()
        if offset is None:
            return predictor.predict(row)
        self._require_offsets()
        return predictor.predict(row, offset)

    def to_predictor(self) -> Any:
        """Return a predictor of single rows; use one per thread.

        Returns
        -------
        RowPredictor
            The predictor.
        """
        saved = self._saved
        return saved.model.row_predictor(saved.schema, self._unseen, getattr(self, "classes_", None))


_VOTE = saved_fields(weights=WEIGHTS, soft=flag())


class CombinedPredictor(ABC):
    """A saved ensemble of several models that only predicts; made by `load_predictor`.

    Attributes
    ----------
    classes_ : ndarray
        Class labels, in a classification.
    n_outputs_, n_features_in_ : int
        Numbers of outputs and columns.
    feature_names_in_ : ndarray of str
        Column names, if the training table had any.
    """

    classes_: NDArray[Any]
    n_features_in_: int
    n_outputs_ = 1
    takes_offset = False

    def __init__(self, name: str, ensemble: dict[str, Any], models: list[Any]) -> None:
        if not models:
            refuse("is damaged: it lacks models")
        self._name = name
        self.schema: Schema = models[0].schema
        self._is_open = all(model.schema.is_open for model in models)
        self._names = ensemble["_names"]
        self._column_names = ensemble["_column_names"]
        for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
            if attribute in ensemble:
                setattr(self, attribute, ensemble[attribute])

    def __repr__(self) -> str:
        return f"<Predictor of {with_article(self._name)}: {', '.join(self._names)}>"

    @abstractmethod
    def _flat(self, table: PickTable) -> Floats:
        """Return numbers, (n_rows, 1), or class probabilities, (n_rows, n_classes)."""

    def _predictions(self, table: PickTable) -> NDArray[Any]:
        """Return labels or numbers."""
        flat = self._flat(table)
        return np.asarray(self.classes_[flat.argmax(axis=1)]) if hasattr(self, "classes_") else flat[:, 0]

    def _table(self, X: TableLike) -> PickTable:
        table = pick_table(X)
        if self._is_open:
            return table  # members choose their columns
        order = match_columns(table.names, table.n_columns, self._column_names, self.n_features_in_, self._name)
        return table if order is None else pick_table(table.take(columns=np.array(order)))

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict each row, bit-identical to the saved estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels or numbers.
        """
        return self._predictions(self._table(X))

    def predict_proba(self, X: TableLike) -> Floats:
        """Predict class probabilities, bit-identical to the saved estimator.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        if not hasattr(self, "classes_"):
            raise AttributeError("A regression model has no class probabilities. Use predict.")
        return self._flat(self._table(X))

    def predict_one(self, row: Any) -> Any:
        """Predict one row.

        Parameters
        ----------
        row : sequence or mapping
            Values in column order, or by name.

        Returns
        -------
        label or float
            Prediction.
        """
        values = [row[name] for name in self._column_names] if isinstance(row, Mapping) else list(row)
        if self._column_names is None:
            return self.predict([values]).tolist()[0]
        return self.predict({name: [value] for name, value in zip(self._column_names, values, strict=True)})[0]


class VotePredictor(CombinedPredictor):
    """A saved voting ensemble, which averages its members."""

    def __init__(self, name: str, header: dict[str, Any], models: list[Any]) -> None:
        ensemble = read_ensemble(header)
        super().__init__(name, ensemble, models)
        if len(models) != len(self._names):
            refuse("is damaged: it lacks models")
        for model in models:
            check_member(model, ensemble)
        self._models = models
        found = _VOTE.from_header(header, n_members=len(models))
        self._weights = found["weights"].tolist()
        self._method = "predict_proba" if found["soft"] else "predict"

    def _flat(self, table: PickTable) -> Floats:
        classes = getattr(self, "classes_", None)
        predictions = [member_predictions(model, table.native, self._method, classes, False) for model in self._models]
        return mean_prediction(predictions, self._weights)


class StackPredictor(CombinedPredictor):
    """A saved stacked ensemble: members, and the model or the weights that combine them."""

    def __init__(self, name: str, header: dict[str, Any], parameters: Mapping[str, Any], models: list[Any]) -> None:
        ensemble = read_ensemble(header)
        super().__init__(name, ensemble, models)
        self._plan = StackPlan.read(header, ensemble, models)
        self._passthrough = bool(parameters.get("passthrough"))
        n_columns = sum(self._plan.widths) + (self.n_features_in_ if self._passthrough else 0)
        if self._plan.final is not None and self._plan.final.n_features_in_ != n_columns:
            refuse("is damaged: its final model does not fit its members")
        if "decision_function" in self._plan.methods:
            refuse(f"holds a {name} that uses decision functions of its members. Read it with spinney.load.")

    def _columns(self, table: PickTable) -> list[Floats]:
        classes = getattr(self, "classes_", None)
        found = []
        for models, method in zip(self._plan.members, self._plan.methods, strict=True):
            predictions = [member_predictions(model, table.native, method, classes, False) for model in models]
            found.append(as_columns(mean_prediction(predictions), method, classes))
        return found

    def _final_table(self, table: PickTable) -> Any:
        """Return the predictions of the members as the final model reads them, with the columns if `passthrough`."""
        names = column_names(self._names, self._plan.widths, getattr(self, "classes_", None))
        named = dict(zip(names, np.ascontiguousarray(np.hstack(self._columns(table)).T), strict=True))
        return table.with_leading_columns(named) if self._passthrough else named

    def _flat(self, table: PickTable) -> Floats:
        classes = getattr(self, "classes_", None)
        if self._plan.weights is not None:
            predictions = tempered_columns(self._columns(table), self._plan.temperatures)
            mean = mean_prediction(predictions, self._plan.weights.tolist())
            return mean if classes is None else calibrated(all_probabilities(mean), self._plan.calibration)
        return member_predictions(self._plan.final, self._final_table(table), "predict_proba", classes, False)

    def _predictions(self, table: PickTable) -> NDArray[Any]:
        if self._plan.final is None:
            return super()._predictions(table)
        return np.asarray(self._plan.final.predict(self._final_table(table)))


def load_predictor(file: Target) -> Any:
    """Load a saved model for prediction alone, without importing scikit-learn.

    Parameters
    ----------
    file : str, path or binary file
        A file written by the `save` method of a model.

    Returns
    -------
    Predictor, or CombinedPredictor
        A `Predictor`, or a `CombinedPredictor` for stacking and voting, with `predict`, `predict_one` and, in a
        classification, `predict_proba`. Predictions are bit-identical to those of the model.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or written by a newer version of spinney, or if only `load` supports
        the model: bagging, AdaBoost of models other than trees, stacking on decision functions, and models that do not
        predict a target.
    OSError
        If there is no such file, or it cannot be read.

    Examples
    --------
    >>> import io
    >>> import spinney
    >>> file = io.BytesIO()
    >>> spinney.DecisionTreeRegressor().fit([[1.0], [2.0]], [10.0, 20.0]).save(file)
    >>> _ = file.seek(0)
    >>> spinney.load_predictor(file).predict_one([1.8])
    20.0
    """
    data = read_file(file)
    with model_file_errors(label_of(file)):
        header, model_file = from_bytes(data)
        name = field(header, "estimator", str)[:100]
        if name in WITHOUT_TARGET:
            refuse(f"holds a model of the kind {name}, which does not predict a target. Read it with spinney.load.")
        predictor = _predictor_of(header, model_file)
        predictor._csv_format = csv_format_of(header)
        return predictor


def _predictor_of(header: dict[str, Any], file: Any) -> Any:
    """Make a predictor from a header and its trees."""
    name, kind = field(header, "estimator", str)[:100], kind_of(header)
    parameters = parameters_from_json(field(header, "parameters", dict))
    if kind in COMBINED_KINDS:
        if name != estimator_of(COMBINED_KINDS[kind], header.get("classes") is not None):
            refuse("is damaged: its models do not match its estimator")
        models = read_models(header, file, _predictor_of)
        if kind == "vote":
            return VotePredictor(name, header, models)
        return StackPredictor(name, header, parameters, models)
    if kind not in FITTED_KINDS and name in MODULE_OF:
        refuse(f"holds {with_article(name)}, an ensemble of several models. Read it with spinney.load.")
    saved = SavedModel.from_header(header, file)
    _check_name(name, kind, saved.classes is not None)
    return Predictor(saved, name, parameters)


def _check_name(name: str, kind: str, has_classes: bool) -> None:
    """Refuse an estimator whose name does not fit the kind of its model."""
    families = FAMILIES_OF_KIND.get(kind, ())
    fitting, other = ({estimator_of(family, of) for family in families} for of in (has_classes, not has_classes))
    holders = {
        estimator_of(family, of) for every in FAMILIES_OF_KIND.values() for family in every for of in (False, True)
    }
    if name not in MODULE_OF or (name not in holders and not name.endswith(("Classifier", "Regressor"))):
        refuse(f"holds a model that this spinney does not know, {name!r}: upgrade spinney")
    if name not in fitting | other:
        refuse("is damaged: its trees do not match its estimator")
    if name not in fitting:
        refuse("is damaged: its classes do not match its estimator")
