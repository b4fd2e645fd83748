"""Gradient boosting of every library in one shape: the same trees, leaves, bins and steps, as far as each can."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

LIBRARIES = {
    "spinney": "spinney",
    "lightgbm": "lightgbm",
    "lightgbm quantised": "lightgbm",
    "xgboost": "xgboost",
    "catboost": "catboost",
    "sklearn": "scikit-learn",
}
_MOST_IN_SKLEARN = 255
_MODULES = {"scikit-learn": "sklearn"}


@dataclass(frozen=True)
class Task:
    """What is boosted: "regressor" or "classifier", rounds, leaves, threads; whether columns may be categories."""

    kind: str
    n_rounds: int
    n_leaves: int
    n_jobs: int
    categories: bool = False


def installed(task: Task, names: list[str] | None = None) -> list[str]:
    """Return the libraries that are here, ours first; those that cannot do the task are left out."""
    chosen = [name for name, package in LIBRARIES.items() if find_spec(_MODULES.get(package, package))]
    return [name for name in chosen if names is None or name in names or name == "spinney"]


def versions() -> dict[str, str]:
    """Return the versions of the peers."""
    modules = {name: _MODULES.get(name, name) for name in LIBRARIES.values() if name != "spinney"}
    # asked of the module: a package may come under another name, such as xgboost-cpu
    return {name: str(import_module(module).__version__) for name, module in modules.items() if find_spec(module)}


class Booster:
    """One library's model of a task."""

    def __init__(self, library: str, task: Task) -> None:
        self.library = library
        self.task = task

    def fit(self, X: Any, y: Any) -> Booster:
        """Fit the model; making the library's own data set counts."""
        self.narrow = _narrow(X) if self.task.categories and self.library == "sklearn" else []
        self.model = _MAKERS[self.library](self.task, X)
        self.model.fit(self._taken(X), y)
        return self

    def _taken(self, X: Any) -> Any:
        if not self.task.categories or self.library == "spinney":
            return X
        if self.library == "catboost":  # takes no missing category
            frame = X.copy()
            for name in _category_columns(X):
                frame[name] = frame[name].astype(object).where(frame[name].notna(), "missing").astype(str)
            return frame
        if self.library == "sklearn":  # takes at most 255 categories; more become numbers
            wide = {name: X[name].cat.codes for name in _category_columns(X) if name not in self.narrow}
            return X.assign(**wide)
        return X

    def predict(self, X: Any) -> Any:
        """Return values, or class probabilities."""
        taken = self._taken(X)
        if self.task.kind == "regressor":
            return np.asarray(self.model.predict(taken)).ravel()
        return np.asarray(self.model.predict_proba(taken))

    def loss(self, X: Any, y: Any) -> float:
        """Return the mean squared error, or the log loss."""
        found = self.predict(X)
        if self.task.kind == "regressor":
            return float(np.mean((found - y) ** 2))
        shares = np.clip(found[np.arange(len(y)), y], 1e-15, 1)
        return float(-np.mean(np.log(shares)))


def _category_columns(X: Any) -> list[str]:
    return [name for name, kind in X.dtypes.items() if str(kind) == "category"]


def _spinney(task: Task, X: Any) -> Any:
    import spinney

    kind = spinney.GradientBoostingRegressor if task.kind == "regressor" else spinney.GradientBoostingClassifier
    return kind(n_estimators=task.n_rounds, max_leaf_nodes=task.n_leaves, n_jobs=task.n_jobs)


def _lightgbm(task: Task, X: Any, quantised: bool = False) -> Any:
    import lightgbm

    kind = lightgbm.LGBMRegressor if task.kind == "regressor" else lightgbm.LGBMClassifier
    more = {"use_quantized_grad": True} if quantised else {}
    return kind(
        n_estimators=task.n_rounds, num_leaves=task.n_leaves, n_jobs=task.n_jobs, learning_rate=0.1, max_bin=255,
        min_child_samples=20, min_child_weight=1e-3, verbosity=-1, random_state=0, **more,
    )  # fmt: skip


def _xgboost(task: Task, X: Any) -> Any:
    import xgboost

    kind = xgboost.XGBRegressor if task.kind == "regressor" else xgboost.XGBClassifier
    return kind(
        n_estimators=task.n_rounds, max_leaves=task.n_leaves, n_jobs=task.n_jobs, learning_rate=0.1, max_bin=256,
        tree_method="hist", grow_policy="lossguide", max_depth=0, reg_lambda=0.0, min_child_weight=1e-3,
        enable_categorical=task.categories, verbosity=0, random_state=0,
    )  # fmt: skip


def _catboost(task: Task, X: Any) -> Any:
    import catboost

    kind = catboost.CatBoostRegressor if task.kind == "regressor" else catboost.CatBoostClassifier
    more = {"cat_features": _category_columns(X)} if task.categories else {}
    return kind(
        iterations=task.n_rounds, max_leaves=task.n_leaves, thread_count=task.n_jobs, learning_rate=0.1,
        grow_policy="Lossguide", depth=16, border_count=254, min_data_in_leaf=20, bootstrap_type="No",
        allow_writing_files=False, logging_level="Silent", random_seed=0, **more,
    )  # fmt: skip


class _Limited:
    """scikit-learn's model within a number of threads."""

    def __init__(self, model: Any, n_jobs: int) -> None:
        self.model = model
        self.n_jobs = n_jobs

    def __getattr__(self, name: str) -> Any:
        from threadpoolctl import threadpool_limits

        method = getattr(self.model, name)

        def call(*arguments: Any) -> Any:
            with threadpool_limits(limits=self.n_jobs):
                return method(*arguments)

        return call


def _sklearn(task: Task, X: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if task.kind == "regressor" else HistGradientBoostingClassifier
    model = kind(
        max_iter=task.n_rounds, max_leaf_nodes=task.n_leaves, learning_rate=0.1, max_bins=255, min_samples_leaf=20,
        early_stopping=False, categorical_features=_narrow(X) if task.categories else None, random_state=0,
    )  # fmt: skip
    return _Limited(model, task.n_jobs)


def _narrow(X: Any) -> list[str]:
    return [name for name in _category_columns(X) if X[name].nunique() <= _MOST_IN_SKLEARN]


_MAKERS: dict[str, Any] = {
    "spinney": _spinney,
    "lightgbm": _lightgbm,
    "lightgbm quantised": lambda task, X: _lightgbm(task, X, quantised=True),
    "xgboost": _xgboost,
    "catboost": _catboost,
    "sklearn": _sklearn,
}
