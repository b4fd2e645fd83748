"""What a booster does where the user has said nothing: all of it, or some of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_FEWEST_ROWS = 10  # with fewer, folds say nothing
_N_FOLDS = 5
_MOST_ROUNDS = 2000
_PATIENCE, _PATIENCE_OF_FOLDS = 10, 50  # rounds without an improvement before a booster stops, unless the user says


@dataclass(frozen=True)
class Recipe:
    """How rounds are to learn, with nothing left to be decided.

    Attributes
    ----------
    n_rounds : int
        Most rounds of a booster.
    learning_rate, max_leaf_nodes, subsample, max_features : as the parameters
    min_samples_leaf : int or None
        Fewest rows of a leaf; None: by the number of rows alone.
    stops_early : bool
        Whether a booster stops when its held-out rows no longer improve.
    patience : int
        After how many rounds without an improvement.
    n_folds : int
        One booster for each fold, judged by it; 0: one for all rows.
    is_auto : bool
        Whether nothing was said of the number of rounds.
    """

    n_rounds: int
    learning_rate: float
    max_leaf_nodes: int | None
    subsample: float
    max_features: Any
    min_samples_leaf: int | None
    stops_early: bool
    patience: int
    n_folds: int
    is_auto: bool


def fixed(n_rounds: int, learning_rate: float, stops_early: bool, patience: int | None) -> Recipe:
    """All rounds, or fewer by held-out rows, of functions that are not these trees."""
    given = _PLAIN | {"n_rounds": n_rounds, "learning_rate": learning_rate}
    return Recipe(**given, stops_early=stops_early, patience=int(patience or _PATIENCE), n_folds=0, is_auto=False)


def stops_early(model: Any) -> bool:
    """Whether rows are held out to stop by, in one part or in folds."""
    if model.early_stopping is not None:
        return bool(model.early_stopping)
    return model.n_iter_no_change is not None or model.n_estimators == "auto"


def makes_folds(model: Any, has_held_out: bool) -> bool:
    """Whether each row is held out once, from one of several boosters.

    A first model would have to be fitted anew for each; and who says how rows are held out means one part.
    """
    is_plain = model.init is None or isinstance(model.init, str)
    return model.n_estimators == "auto" and model.early_stopping is None and is_plain and not has_held_out


def resolve(model: Any, n_rows: int, has_held_out: bool) -> Recipe:
    """Decide all that the user has left open, by the size of the table; what is set stays."""
    is_auto = isinstance(model.n_estimators, str)
    stops = stops_early(model)
    if is_auto and not has_held_out and n_rows < _FEWEST_ROWS:
        stops = False
    found = _by_size(n_rows) if is_auto and stops else _PLAIN
    for name in _PLAIN:
        if not _is_open(getattr(model, name, "auto")):
            found = found | {name: getattr(model, name)}
    if not is_auto:
        found = found | {"n_rounds": int(model.n_estimators)}
    n_folds = _N_FOLDS if stops and makes_folds(model, has_held_out) else 0
    patience = int(model.n_iter_no_change or (_PATIENCE_OF_FOLDS if is_auto else _PATIENCE))
    return Recipe(**found, stops_early=stops, patience=patience, n_folds=n_folds, is_auto=is_auto)


def _is_open(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


_PLAIN: dict[str, Any] = {
    "n_rounds": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "subsample": 1.0,
    "max_features": None,
    "min_samples_leaf": None,
}


def _by_size(n_rows: int) -> dict[str, Any]:
    return {
        "n_rounds": _MOST_ROUNDS,
        "learning_rate": 0.03,
        "max_leaf_nodes": 24,
        "subsample": 0.8,
        "max_features": 0.5,
        "min_samples_leaf": 5,
    }
