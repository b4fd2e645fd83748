"""What commands ask of a fitted model, whatever its family."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from spinney._data import Schema
from spinney._data.types import Floats, TableLike
from spinney._estimator.estimator import About
from spinney.inspect.explain.shap import ShapValues


class LoadedModel(Protocol):
    """A fitted estimator of spinney; not every family has every method, which `hasattr` tells."""

    classes_: NDArray[Any]
    estimators_: list[LoadedModel]
    schema_: Schema

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Labels or values."""

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities."""

    def shap_values(self, X: TableLike) -> ShapValues:
        """Contributions of the columns."""

    def _about(self) -> About:
        """Return the model in a few words and numbers."""


class LoadedPredictor(Protocol):
    """A model that predicts and does nothing else."""

    schema: Schema
    classes_: Any
    n_outputs_: int
    takes_offset: bool

    def predict(self, X: TableLike, **params: Floats) -> NDArray[Any]:
        """Labels or values."""

    def predict_proba(self, X: TableLike, **params: Floats) -> Any:
        """Class probabilities, a list of them for several outputs."""
