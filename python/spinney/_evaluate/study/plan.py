"""The models of a study, in the order in which they are tried, and how much work each is.

Work is counted, not timed, so that the plan of a study is the same on every machine: seconds of two cores of a
Neoverse-N1, roughly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from spinney._data import Schema, read_table
from spinney._data.schema import input_values
from spinney._data.types import ColumnLike, Floats, TableLike
from spinney._engine import available_threads
from spinney._ensemble.members import estimator_of_word
from spinney._evaluate.runner import Candidate

TREE, STACK = "tree", "stack"
LOG_BOOSTING = "log-boosting"  # boosting of the logarithm of the mean: for values that are not negative
SYMMETRIC = "symmetric-boosting"  # with trees that make the same cut in a whole level
USUAL = ("tree", "boosting", LOG_BOOSTING, "forest", SYMMETRIC, "extra-trees", "linear", "adaboost", "knn", "svm")
CORE = ("tree", "boosting", LOG_BOOSTING, "forest")  # what a study of a large table does at least
PLANNED_SHARE = 0.85  # of the budget: what is left is for the last fits, and for machines that are slower
_OPTIONAL_SHARE = 0.45  # of the budget: what a model beyond the core may take
_ROUND_IT = 1e-6  # work by cell of reading and profiling a table
_FEWEST_ROWS, _FEWEST_COLUMNS = 1000, 50  # of a table of which a part is studied
_STUDIED_SHARE = 2 / 3  # of the rows of a table that is too wide: by the others columns are chosen
_ENOUGH_EFFORT = 0.5  # of boosting: more of it is worth less than another model to combine it with


@dataclass(frozen=True)
class Size:
    """How large a problem is.

    Attributes
    ----------
    n_rows : int
        Rows to learn from.
    n_columns : int
    n_terms : int
        Columns once categories have one each.
    n_classes : int
        0 for values.
    has_logs : bool
        Whether values are never negative, so that their mean has a logarithm.
    """

    n_rows: int
    n_columns: int
    n_terms: int
    n_classes: int
    has_logs: bool = False

    @property
    def cells(self) -> float:
        """Rows times columns, and a thousand more for what small tables take all the same."""
        return (self.n_rows + 1000.0) * self.n_columns

    @property
    def scores(self) -> int:
        """Trees of a round of boosting."""
        return self.n_classes if self.n_classes > 2 else 1

    def of(self, n_rows: int, n_columns: int | None = None) -> Size:
        """Return the size of another number of rows, and of columns."""
        if n_columns is None:
            return replace(self, n_rows=n_rows)
        n_terms = max(n_columns, round(self.n_terms * n_columns / self.n_columns))
        return replace(self, n_rows=n_rows, n_columns=n_columns, n_terms=n_terms)


@dataclass(frozen=True)
class Care:
    """How thorough models are: effort of boosting, trees of a forest."""

    effort: float
    n_trees: int

    @property
    def second_effort(self) -> float:
        """Effort of a second kind of boosting: to be another is worth more than to be thorough."""
        return min(self.effort, _ENOUGH_EFFORT)


CARES = (Care(1.0, 300), Care(1.0, 100), Care(0.5, 300), Care(0.5, 100), Care(0.5, 50), Care(0.0, 50))
_WIDE = Care(0.5, 100)  # what columns of a table that is too wide are chosen for


def work_of(word: str, size: Size, care: Care) -> float:
    """Count the work of one fit, and of predictions for a quarter as many rows."""
    cells, n, k = size.cells, float(size.n_rows), size.n_classes
    a_cell = 5e-6 if k == 0 else 3e-6 if k == 2 else 1.7e-6 * k
    boosting = a_cell * (n + 1000) * (size.n_columns + 12) * 3 ** (2 * care.effort - 1)
    symmetric = 1.5 * boosting * 3 ** (2 * (care.second_effort - care.effort))
    forest = care.n_trees * (cells if k == 0 else cells / size.n_columns**0.5)  # nodes look at all columns, or a few
    return {
        "tree": cells * (1e-6 if k == 0 else 8e-7 * (1 + k / 4)),
        "boosting": boosting,
        LOG_BOOSTING: boosting,
        SYMMETRIC: symmetric,
        "forest": 5e-8 * forest,
        "extra-trees": 8e-8 * forest,
        "linear": 1e-8 * n * size.n_terms**2 + (0 if k <= 2 else 2e-6 * n * k * size.n_terms) + 1e-6 * cells,
        "adaboost": 1e-6 * cells * (1 + k / 4),
        "knn": 3e-10 * n * n * size.n_terms + 1e-6 * cells,
        "svm": 4e-7 * n * n * (1 + size.n_terms / 100),
    }.get(word, 3e-6 * cells * size.scores)


def estimator_for(word: str, task: str, care: Care, seed: int) -> Any:
    """Return the unfitted model that a word stands for in a study."""
    plain = "boosting" if word in (LOG_BOOSTING, SYMMETRIC) else word
    model = estimator_of_word(plain, "Regressor" if task == "regression" else "Classifier")
    settings: dict[str, dict[str, object]] = {
        "tree": {"prune": "cv"},
        "boosting": {"effort": care.effort},
        LOG_BOOSTING: {"effort": care.effort, "loss": "poisson"},
        SYMMETRIC: {"effort": care.second_effort, "growth": "symmetric"},
        "forest": {"n_estimators": care.n_trees},
        "extra-trees": {"n_estimators": care.n_trees},
        "knn": {"n_neighbors": "cv"},
        "svm": {"C": "cv", "probability": task != "regression"},
    }
    chosen = settings.get(word.replace("_", "-"), {}) | {"random_state": seed}
    known = model.get_params(deep=False)
    return model.set_params(**{key: value for key, value in chosen.items() if key in known})


def quicker(candidate: Candidate) -> Candidate | None:
    """Return a model that is much less work, if there is one: boosting with the least effort."""
    effort = None if candidate.estimator is None else candidate.estimator.get_params(deep=False).get("effort")
    if not effort:
        return None
    model = clone(candidate.estimator).set_params(effort=0.0)
    return replace(candidate, estimator=model, work=candidate.work / 3 ** (2 * effort))


@dataclass(frozen=True, eq=False)
class Plan:
    """What a study does, if time allows.

    Attributes
    ----------
    words : list of str
        Models, in the order in which they are tried.
    care : Care
    n_rows, n_columns : int
        Rows to learn from, and columns.
    repeats : int
    left_out : list of str
        Models that are too much work for the budget.
    """

    words: list[str]
    care: Care
    n_rows: int
    n_columns: int
    repeats: int
    left_out: list[str]


def make_plan(size: Size, budget: float, words: list[str] | None, n_folds: int, repeats: int | None) -> Plan:
    """Choose models, how thorough they are, rows and repeats, by counting work.

    Parameters
    ----------
    size : Size
        Of all rows to learn from.
    budget : float
        Seconds.
    words : list of str, or None
        Models that are asked for; None: the usual ones.
    n_folds : int
    repeats : int or None
        None: as many as there is time for, up to three.
    """
    allowed = PLANNED_SHARE * budget - min(0.5 * budget, _ROUND_IT * size.n_rows * size.n_columns)
    usual = [word for word in USUAL if word != LOG_BOOSTING or size.has_logs]
    wanted = usual if words is None else list(words)
    core = [word for word in wanted if word in CORE or words is not None] or wanted[:1]

    def work(chosen: list[str], care: Care, one: Size) -> float:
        return (n_folds + 1) * sum(work_of(word, one, care) for word in chosen)

    if work(core, CARES[-1], size.of(min(size.n_rows, _FEWEST_ROWS))) > allowed:  # too wide, however few the rows
        size = size.of(round(_STUDIED_SHARE * size.n_rows))
        while work(core, _WIDE, size) > allowed and size.n_columns > _FEWEST_COLUMNS:
            size = size.of(size.n_rows, max(_FEWEST_COLUMNS, int(0.9 * size.n_columns)))
    n_rows = size.n_rows

    def total(chosen: list[str], care: Care, rows: int) -> float:
        return work(chosen, care, size.of(rows))

    while total(core, CARES[-1], n_rows) > allowed and n_rows > _FEWEST_ROWS:
        n_rows = int(0.9 * n_rows)
    affordable = {
        one: [word for word in wanted if word in core or total([word], one, n_rows) <= _OPTIONAL_SHARE * budget]
        for one in CARES
    }
    care = next(
        (one for one in CARES if one.effort >= _ENOUGH_EFFORT and total(affordable[one], one, n_rows) <= allowed),
        next((one for one in CARES if total(core, one, n_rows) <= 0.9 * allowed), CARES[-1]),
    )
    chosen, left_out, spent = list[str](), list[str](), total(core, care, n_rows)
    for word in wanted:
        if word not in core:
            cost = total([word], care, n_rows)
            if word not in affordable[care] or spent + cost > allowed:
                left_out.append(word)
                continue
            spent += cost
        chosen.append(word)
    if repeats is None:
        repeats = max(1, min(3, int(allowed / max(spent, 1e-9))))
    return Plan(chosen, care, n_rows, size.n_columns, repeats, left_out)


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
