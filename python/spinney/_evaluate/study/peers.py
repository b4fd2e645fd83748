"""Models of other libraries with their defaults, so that a sceptic can check ours on his own table."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from spinney._data import Schema, read_table
from spinney._data.schema import input_values
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._engine import available_threads
from spinney._evaluate.runner import Candidate
from spinney._evaluate.study.plan import Size

# what each is called on the board: module, and class names without "Classifier" or "Regressor"
PEERS = {
    "sklearn forest": ("sklearn.ensemble", "RandomForest"),
    "lightgbm": ("lightgbm", "LGBM"),
    "xgboost": ("xgboost", "XGB"),
    "catboost": ("catboost", "CatBoost"),
}
_WORK = {"sklearn forest": 1.5e-5, "lightgbm": 3e-6, "xgboost": 3e-6, "catboost": 6e-5}  # by cell


class _Peer(BaseEstimator):
    """A model of another library that takes tables as ours do: numbers, codes of categories, missing values."""

    _kind = ""

    def __init__(self, library: str = "lightgbm", random_state: int = 0) -> None:
        self.library = library
        self.random_state = random_state

    def fit(self, X: TableLike, y: ColumnLike) -> Self:
        """Fit the model with its defaults."""
        table = read_table(X)
        self._schema = Schema.learn(table)
        self._is_category = [feature.kind == "category" for feature in self._schema.features]
        target = np.asarray(y)
        if self._kind == "Classifier":
            self.classes_, target = np.unique(target, return_inverse=True)
        self._model = self._made()
        given: dict[str, Any] = {}
        if self.library == "lightgbm":
            given = {"categorical_feature": np.flatnonzero(self._is_category).tolist()}
        self._model.fit(self._matrix(X), target, **given)
        return self

    def _made(self) -> Any:
        from importlib import import_module

        module, family = PEERS[self.library]
        kind = getattr(import_module(module), family + self._kind)
        more: dict[str, dict[str, Any]] = {
            "sklearn forest": {"n_jobs": -1, "random_state": self.random_state},
            "lightgbm": {"verbosity": -1, "random_state": self.random_state},
            "xgboost": {
                "enable_categorical": True,
                "feature_types": ["c" if is_category else "q" for is_category in self._is_category],
                "random_state": self.random_state,
            },
            "catboost": {
                "cat_features": np.flatnonzero(self._is_category).tolist(),
                "allow_writing_files": False,
                "logging_level": "Silent",
                "thread_count": available_threads(),  # by itself it counts the machine's, not those left to us
                "random_seed": self.random_state,
            },
        }
        return kind(**more[self.library])

    def _matrix(self, X: TableLike) -> Any:
        """Return the table as the library takes it."""
        columns = input_values(self._schema, read_table(X), self.library, "missing")
        if self.library != "catboost" or not any(self._is_category):
            return np.column_stack(columns)
        found = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, (values, is_category) in enumerate(zip(columns, self._is_category, strict=True)):
            found[:, j] = np.nan_to_num(values, nan=-1).astype(np.int64) if is_category else values
        return found


class PeerClassifier(ClassifierMixin, _Peer):
    """A classifier of another library."""

    _kind = "Classifier"

    def predict_proba(self, X: TableLike) -> Floats:
        """Class probabilities."""
        return np.asarray(self._model.predict_proba(self._matrix(X)), dtype=np.float64)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return the class of the largest probability."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class PeerRegressor(RegressorMixin, _Peer):
    """A regressor of another library."""

    _kind = "Regressor"

    def predict(self, X: TableLike) -> Floats:
        """Values."""
        return np.asarray(self._model.predict(self._matrix(X)), dtype=np.float64).ravel()


def peer_candidates(task: str, size: Size, seed: int) -> list[Candidate]:
    """Return the models of the libraries that are installed."""
    kind = PeerRegressor if task == "regression" else PeerClassifier
    return [
        Candidate(name, kind(name, seed), _WORK[name] * size.cells * size.scores, is_peer=True)
        for name, (module, _) in PEERS.items()
        if find_spec(module.partition(".")[0]) is not None
    ]
