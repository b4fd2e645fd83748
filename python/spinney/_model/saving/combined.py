"""Predictions of several models together, with NumPy and the engine alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney._data import Schema
from spinney._data.columns import match_columns
from spinney._data.select import PickTable, pick_table
from spinney._data.types import TableLike
from spinney._model.calibration import calibrated
from spinney._model.file.container import field, refuse
from spinney._model.predictions import as_columns, as_shares, column_names, mean_said, member_says, tempered_columns
from spinney._model.saving.members import StackPlan, check_member, read_frame, read_weights

Floats = NDArray[np.float64]


class CombinedPredictor(ABC):
    """An ensemble of different models that predicts and does nothing else; made by `load_predictor`.

    Attributes
    ----------
    classes_ : ndarray
        Labels, in a classification.
    n_outputs_, n_features_in_ : int
        Outputs and columns.
    feature_names_in_ : ndarray of str
        Column names, if the training table had any.
    """

    classes_: NDArray[Any]
    n_features_in_: int
    n_outputs_ = 1
    takes_offset = False

    def __init__(self, name: str, frame: dict[str, Any]) -> None:
        self._name = name
        self._names = frame["_names"]
        self._column_names = frame["_column_names"]
        for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
            if attribute in frame:
                setattr(self, attribute, frame[attribute])

    def __repr__(self) -> str:
        return f"<Predictor of a {self._name}: {', '.join(self._names)}>"

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns."""

    @abstractmethod
    def _flat(self, table: PickTable) -> Floats:
        """Values, (n_rows, 1), or class shares, (n_rows, n_classes)."""

    def _answers(self, table: PickTable) -> NDArray[Any]:
        """Labels or values."""
        flat = self._flat(table)
        return np.asarray(self.classes_[flat.argmax(axis=1)]) if hasattr(self, "classes_") else flat[:, 0]

    def _table(self, X: TableLike) -> PickTable:
        table = pick_table(X)
        order = match_columns(table.names, table.n_columns, self._column_names, self.n_features_in_, self._name)
        return table if order is None else pick_table(table.take(columns=np.array(order)))

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict each row, to the bit as the estimator that was saved.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels or values.
        """
        return self._answers(self._table(X))

    def predict_proba(self, X: TableLike) -> Floats:
        """Class shares of each row, as the estimator that was saved.

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
            raise AttributeError("A regression model has no class shares. Use predict.")
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
    """Members that are averaged."""

    def __init__(self, name: str, header: dict[str, Any], models: list[Any]) -> None:
        frame = read_frame(header)
        super().__init__(name, frame)
        if len(models) != len(self._names):
            refuse("is damaged: it lacks models")
        for model in models:
            check_member(model, frame)
        self._models = models
        self._weights = read_weights(header, len(models)).tolist()
        self._method = "predict_proba" if field(header, "soft", bool) else "predict"

    @property
    def schema(self) -> Schema:
        """The columns."""
        return schema_of(self._models[0])

    def _flat(self, table: PickTable) -> Floats:
        classes = getattr(self, "classes_", None)
        said = [member_says(model, table.native, self._method, classes, False) for model in self._models]
        return mean_said(said, self._weights)


class StackPredictor(CombinedPredictor):
    """Members, and what combines them."""

    def __init__(self, name: str, header: dict[str, Any], parameters: Mapping[str, Any], models: list[Any]) -> None:
        frame = read_frame(header)
        super().__init__(name, frame)
        self._plan = StackPlan.read(header, frame, models)
        self._passthrough = bool(parameters.get("passthrough"))
        n_columns = sum(self._plan.widths) + (self.n_features_in_ if self._passthrough else 0)
        if self._plan.final is not None and self._plan.final.n_features_in_ != n_columns:
            refuse("is damaged: what combines its members does not fit them")
        if "decision_function" in self._plan.methods:
            refuse(f"holds a {name} that asks its members for decision functions. Read it with spinney.load.")

    @property
    def schema(self) -> Schema:
        """The columns."""
        return schema_of(self._plan.members[0][0])

    def _columns(self, table: PickTable) -> list[Floats]:
        classes = getattr(self, "classes_", None)
        found = []
        for models, method in zip(self._plan.members, self._plan.methods, strict=True):
            said = [member_says(model, table.native, method, classes, False) for model in models]
            found.append(as_columns(mean_said(said), method, classes))
        return found

    def _meta(self, table: PickTable) -> Any:
        """Return rows as what combines the members sees them."""
        names = column_names(self._names, self._plan.widths, getattr(self, "classes_", None))
        named = dict(zip(names, np.ascontiguousarray(np.hstack(self._columns(table)).T), strict=True))
        return table.beside(named) if self._passthrough else named

    def _flat(self, table: PickTable) -> Floats:
        classes = getattr(self, "classes_", None)
        if self._plan.weights is not None:
            said = tempered_columns(self._columns(table), self._plan.temperatures)
            mean = mean_said(said, self._plan.weights.tolist())
            return mean if classes is None else calibrated(as_shares(mean), self._plan.calibration)
        return member_says(self._plan.final, self._meta(table), "predict_proba", classes, False)

    def _answers(self, table: PickTable) -> NDArray[Any]:
        if self._plan.final is None:
            return super()._answers(table)
        return np.asarray(self._plan.final.predict(self._meta(table)))


class HasSchema(Protocol):
    """A predictor that knows its columns."""

    @property
    def schema(self) -> Schema:
        """The columns."""


def schema_of(model: HasSchema) -> Schema:
    """Return the columns of a predictor."""
    return model.schema
