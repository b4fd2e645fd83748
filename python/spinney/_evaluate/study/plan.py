"""The models of a study, their settings, and the estimated work of each.

Work is estimated from the size of the table; the unit is roughly a second on two cores of a Neoverse-N1. It chooses the
settings, so that they are the same on every machine; how long the work takes on this one is measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from spinney._data import Schema, read_table
from spinney._data.schema import input_values
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._engine import available_threads
from spinney._ensemble.members import estimator_of_name
from spinney._evaluate.folds import TEST_FRACTION
from spinney._evaluate.runner import Candidate
from spinney._evaluate.study.schedule import MOST_RESERVED, REFIT, REFIT_ALL

TREE, STACK = "tree", "stack"
LOG_BOOSTING = "log-boosting"  # boosting with a log link, for a nonnegative target
SYMMETRIC = "symmetric-boosting"  # with the same split in a whole level of a tree
QUICK = "quick-boosting"  # one booster of 100 rounds
LEAD = "boosting"  # with default settings
GAINS = {  # of the default models, roughly, in the loss of the stack; tuned on no table
    QUICK: 10.0,
    LEAD: 10.0,
    LOG_BOOSTING: 3.0,
    "forest": 3.0,
    SYMMETRIC: 3.0,
    "extra-trees": 2.0,
    "linear": 1.0,
    "tree": 1.0,
    "adaboost": 0.5,
    "knn": 1.0,
    "svm": 2.0,
}
DEFAULT_MODELS = tuple(GAINS)
_FAMILIES = dict.fromkeys((QUICK, LOG_BOOSTING, SYMMETRIC), "boosting") | {"extra-trees": "forest"}
PLANNED_FRACTION = 0.85  # of the time limit; the rest is for the final fits, and for slower machines
_PROFILING = 1e-6  # work per cell of reading and profiling a table
_FEWEST_ROWS, _FEWEST_COLUMNS = 1000, 50  # of a table that is too wide
_FEWEST_STUDIED = 10_000  # training rows of a sampled table
_STUDIED_FRACTION = 2 / 3  # of the rows of a table that is too wide; the others serve to choose columns
_ENOUGH_EFFORT = 0.5  # of boosting: more is worth less than another model in the stack
_SINGLE = 0.22  # time of a single booster, relative to the mean of several
_LARGE = 20_000  # training rows from which boosting has other settings
_RACED, _RACED_CLASSES, _LINEAR = 6.0, 2.0, 1.6  # time of a row below: with a race of recipes; with linear leaves
_LEAD_FRACTION = 0.45  # of the time left, for the booster with default settings


def simplicity(name: str) -> int:
    """Return the rank of a model by simplicity: a readable model, another single model, a stack."""
    return 0 if name in (TREE, "linear") else 2 if name == STACK else 1


def family_of(word: str) -> str:
    """Return the family of a model, whose models run at the same pace."""
    return _FAMILIES.get(word, word)


@dataclass(frozen=True)
class Size:
    """Size of a problem.

    Attributes
    ----------
    n_rows : int
        Training rows.
    n_columns : int
    n_terms : int
        Columns after one-hot encoding.
    n_classes : int
        0 for regression.
    is_nonnegative : bool
        Whether the target of a regression is never negative.
    """

    n_rows: int
    n_columns: int
    n_terms: int
    n_classes: int
    is_nonnegative: bool = False

    @property
    def cells(self) -> float:
        """Rows times columns, with a thousand more rows for the fixed costs."""
        return (self.n_rows + 1000.0) * self.n_columns

    @property
    def scores(self) -> int:
        """Number of trees of a boosting round."""
        return self.n_classes if self.n_classes > 2 else 1

    def of(self, n_rows: int, n_columns: int | None = None) -> Size:
        """Return the size with another number of rows and columns."""
        if n_columns is None:
            return replace(self, n_rows=n_rows)
        n_terms = max(n_columns, round(self.n_terms * n_columns / self.n_columns))
        return replace(self, n_rows=n_rows, n_columns=n_columns, n_terms=n_terms)


@dataclass(frozen=True)
class Effort:
    """Effort of boosting, and trees of a forest.

    Attributes
    ----------
    boosting : float
        The parameter `effort`; 0.5 is its default.
    n_trees : int
    is_single : bool
        Whether a single booster is fitted, instead of the mean of several. On large tables it comes near that mean.
    """

    boosting: float
    n_trees: int
    is_single: bool = False

    @property
    def second_boosting(self) -> float:
        """Effort of a second kind of boosting: diversity is worth more than effort."""
        return min(self.boosting, _ENOUGH_EFFORT)

    @property
    def relative(self) -> float:
        """Time of boosting, relative to the default settings."""
        if self.is_single:
            return _SINGLE * (1 + 2 * self.boosting) / 2
        return 3 ** (2 * self.boosting - 1)

    def settings(self, word: str) -> dict[str, Any]:
        """Return the parameters of boosting of a kind."""
        effort = self.second_boosting if word == SYMMETRIC else self.boosting
        return {"effort": effort} | ({"early_stopping": True} if self.is_single else {})


EFFORTS = (Effort(1.0, 300), Effort(1.0, 100), Effort(0.5, 300), Effort(0.5, 100))
LIGHTER = (
    *(Effort(0.5, 100), Effort(0.25, 100), Effort(0.0, 100)),
    *(Effort(0.5, 100, is_single=True), Effort(0.0, 100, is_single=True)),
)


def _small_table_factor(size: Size, effort: Effort) -> float:
    """Return the time of a row in boosting with automatic settings, relative to a large table."""
    if size.n_rows >= _LARGE or effort.is_single:
        return 1.0
    if effort.boosting < _ENOUGH_EFFORT:
        return _LINEAR
    return _RACED if size.n_classes <= 2 else _RACED_CLASSES


def work_of(word: str, size: Size, effort: Effort) -> float:
    """Return the estimated work of one fit, and of predictions for a quarter as many rows."""
    cells, n, k = size.cells, float(size.n_rows), size.n_classes
    per_cell = 2e-6 if k == 0 else 1e-6 if k == 2 else 1.7e-6 * k
    plain = per_cell * (n + 1000) * (size.n_columns + 12)
    boosting = plain * effort.relative
    symmetric = 1.5 * plain * min(1.0, effort.relative)
    forest = effort.n_trees * (
        cells if k == 0 else cells / size.n_columns**0.5
    )  # features considered per split: all, or the square root
    return {
        "tree": cells * (1e-6 if k == 0 else 8e-7 * (1 + k / 4)),
        LEAD: boosting * _small_table_factor(size, effort),
        QUICK: 0.1 * plain,
        LOG_BOOSTING: boosting,
        SYMMETRIC: symmetric,
        "forest": 5e-8 * forest,
        "extra-trees": 8e-8 * forest,
        "linear": 1e-8 * n * size.n_terms**2 + (0 if k <= 2 else 2e-6 * n * k * size.n_terms) + 1e-6 * cells,
        "adaboost": 1e-6 * cells * (1 + k / 4),
        "knn": 3e-10 * n * n * size.n_terms + 1e-6 * cells,
        "svm": 4e-7 * n * n * (1 + size.n_terms / 100),
    }.get(word, _PEER_WORK.get(word, 3e-6) * cells * size.scores)


def estimator_for(word: str, task: str, effort: Effort, seed: int, metric: str = "neg_log_loss") -> Any:
    """Return the unfitted model of a study by its name.

    A tree of classes is pruned by log loss, unless the metric counts errors: those prune rare classes away. Its leaves
    are shrunk to their parents by a row, so that no probability is 0.
    """
    by_error = task == "regression" or metric == "accuracy"
    plain = "boosting" if word in (QUICK, LOG_BOOSTING, SYMMETRIC) else word
    model = estimator_of_name(plain, "Regressor" if task == "regression" else "Classifier")
    settings: dict[str, dict[str, object]] = {
        "tree": {"prune": "cv"} | ({} if by_error else {"scoring": "neg_log_loss", "shrinkage": 1.0}),
        LEAD: effort.settings(word),
        QUICK: {"n_estimators": 100},
        LOG_BOOSTING: {"loss": "poisson"} | effort.settings(word),
        SYMMETRIC: {"growth": "symmetric"} | effort.settings(word),
        "forest": {"n_estimators": effort.n_trees},
        "extra-trees": {"n_estimators": effort.n_trees},
        "knn": {"n_neighbors": "cv"},
        "svm": {"C": "cv", "probability": task != "regression"},
    }
    chosen = settings.get(word.replace("_", "-"), {}) | {"random_state": seed}
    known = model.get_params(deep=False)
    return model.set_params(**{key: value for key, value in chosen.items() if key in known})


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of a study for a time limit.

    Attributes
    ----------
    words : list of str
        Models, the first ones first.
    effort : Effort
    n_columns : int
    repeats : int
    """

    words: list[str]
    effort: Effort
    n_columns: int
    repeats: int

    @property
    def lead(self) -> str:
        """The model whose time decides how many rows are studied."""
        return LEAD if LEAD in self.words else self.words[0]


def make_plan(size: Size, budget: float, words: list[str] | None, n_folds: int, repeats: int | None) -> Plan:
    """Choose models, effort, columns and repeats by the estimated work.

    Parameters
    ----------
    size : Size
        Size of all training rows.
    budget : float
        Seconds.
    words : list of str, or None
        Requested models; None: the default models.
    n_folds : int
    repeats : int or None
        None: as many as time allows, up to three.
    """
    allowed = PLANNED_FRACTION * budget - min(0.5 * budget, _PROFILING * size.n_rows * size.n_columns)
    defaults = [word for word in DEFAULT_MODELS if word != LOG_BOOSTING or size.is_nonnegative]
    wanted = defaults if words is None else list(words)

    def total(chosen: list[str], effort: Effort, one: Size) -> float:
        return (n_folds + 1) * sum(work_of(word, one, effort) for word in chosen)

    if total(wanted[:2], EFFORTS[-1], size.of(min(size.n_rows, _FEWEST_ROWS))) > allowed:  # too wide
        size = size.of(round(_STUDIED_FRACTION * size.n_rows))
        while total(wanted[:2], EFFORTS[-1], size) > allowed and size.n_columns > _FEWEST_COLUMNS:
            size = size.of(size.n_rows, max(_FEWEST_COLUMNS, int(0.9 * size.n_columns)))
    effort = next((one for one in EFFORTS if total(wanted, one, size) <= allowed), EFFORTS[-1])
    if repeats is None:
        repeats = max(1, min(3, int(allowed / max(total(wanted, effort, size), 1e-9))))
    return Plan(wanted, effort, size.n_columns, repeats)


def rows_to_study(size: Size, plan: Plan, n_folds: int, pace: float, left: float) -> tuple[int, Plan]:
    """Return the training rows, all, a half, a quarter and so on, that the leading model has time for, and the plan.

    Where boosting of half of the rows would take longer, because small tables have other settings, the folds get a
    single booster.

    Parameters
    ----------
    size : Size
        Size of all training rows.
    plan : Plan
    n_folds : int
    pace : float
        Measured seconds of a unit of work.
    left : float
        Seconds left.
    """

    def fits(rows: int) -> float:
        return pace * work_of(plan.lead, size.of(round((1 - 1 / n_folds) * rows)), plan.effort)

    n_rows = size.n_rows
    if n_rows < 2 * _FEWEST_STUDIED or (n_folds + REFIT + REFIT_ALL) * fits(n_rows) <= _LEAD_FRACTION * left:
        return n_rows, plan
    final = REFIT_ALL * fits(n_rows) / min(1.0, plan.effort.relative)
    most = _LEAD_FRACTION * (left - min(final, MOST_RESERVED * left))
    while n_rows >= 2 * _FEWEST_STUDIED and (n_rows == size.n_rows or (n_folds + REFIT) * fits(n_rows) > most):
        if fits(n_rows // 2) > fits(n_rows):
            plan = replace(plan, effort=replace(plan.effort, is_single=True))
        n_rows //= 2
    return n_rows, plan


def lightened(plan: Plan, size: Size, pace: float, left: float) -> Plan:
    """Return the plan with settings of boosting that are light enough for a fit to all rows in the time left."""
    efforts = [plan.effort, *(one for one in LIGHTER if one.relative < plan.effort.relative)]
    for effort in efforts:
        if pace * work_of(plan.lead, size.of(round(size.n_rows / (1 - TEST_FRACTION))), effort) <= MOST_RESERVED * left:
            break
    return replace(plan, effort=effort)


# by name on the leaderboard: module, and class name without "Classifier" or "Regressor"
PEERS = {
    "sklearn forest": ("sklearn.ensemble", "RandomForest"),
    "lightgbm": ("lightgbm", "LGBM"),
    "xgboost": ("xgboost", "XGB"),
    "catboost": ("catboost", "CatBoost"),
}
_PEER_WORK = {"sklearn forest": 1.5e-5, "lightgbm": 3e-6, "xgboost": 3e-6, "catboost": 6e-5}  # per cell


class _Peer(BaseEstimator):
    """A model of another library that takes tables with categories and missing values."""

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
        self._model = self._unfitted()
        params: dict[str, Any] = {}
        if self.library == "lightgbm":
            params = {"categorical_feature": np.flatnonzero(self._is_category).tolist()}
        self._model.fit(self._matrix(X), target, **params)
        return self

    def _unfitted(self) -> Any:
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
                "thread_count": available_threads(),  # its default counts all cores of the machine
                "random_seed": self.random_state,
            },
        }
        return kind(**more[self.library])

    def _matrix(self, X: TableLike) -> Any:
        """Return the table in the format of the library."""
        columns = input_values(self._schema, read_table(X), self.library, "missing")
        if self.library != "catboost" or not any(self._is_category):
            return np.column_stack(columns)
        matrix = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, (values, is_category) in enumerate(zip(columns, self._is_category, strict=True)):
            matrix[:, j] = np.nan_to_num(values, nan=-1).astype(np.int64) if is_category else values
        return matrix


class PeerClassifier(ClassifierMixin, _Peer):
    """A classifier of another library."""

    _kind = "Classifier"

    def predict_proba(self, X: TableLike) -> Floats:
        """Return class probabilities."""
        return np.asarray(self._model.predict_proba(self._matrix(X)), dtype=np.float64)

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return the class of the largest probability."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class PeerRegressor(RegressorMixin, _Peer):
    """A regressor of another library."""

    _kind = "Regressor"

    def predict(self, X: TableLike) -> Floats:
        """Return predictions."""
        return np.asarray(self._model.predict(self._matrix(X)), dtype=np.float64).ravel()


def peer_candidates(task: str, seed: int) -> list[Candidate]:
    """Return the models of the other libraries that are installed."""
    kind = PeerRegressor if task == "regression" else PeerClassifier
    return [
        Candidate(name, kind(name, seed), is_peer=True)
        for name, (module, _) in PEERS.items()
        if find_spec(module.partition(".")[0]) is not None
    ]
