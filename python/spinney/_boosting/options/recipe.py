"""What a booster does where the user has said nothing: all of it, or some of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney._boosting.options.recipe_table import FEW_COLUMNS, FEWEST_ROWS, PLAIN, Situation, decide
from spinney._boosting.settings import SEARCH, BoostingSettings

_SOME_ROWS = 0.7  # fraction that every second booster of a small table draws
_SOME_COLUMNS = 0.35  # fraction that a node of every other pair of them considers, of numeric targets
_FEW_BINS = 24  # of every other pair of them, with several classes


@dataclass(frozen=True)
class Recipe:
    """How rounds are to learn, with nothing left to be decided.

    Attributes
    ----------
    n_rounds : int
        Most rounds of a booster.
    learning_rate, max_leaf_nodes, l2_regularization, subsample, max_features, max_bins : as the parameters
    min_samples_leaf : int or None
        Fewest rows of a leaf; None: by the number of rows alone.
    steps_grow_after : int
        Rounds after which steps grow with the number of rounds, to three times the first; 0: they never do. A booster
        that has not stopped by then has a long way to go.
    stops_early : bool
        Whether a booster stops when its held-out rows no longer improve.
    patience : int
        After how many rounds without an improvement.
    worth : float
        Share of the first held-out loss that these must save, besides `tol`, to be an improvement.
    worth_of_present : bool
        Whether it is a share of the present held-out loss instead.
    n_folds : int
        One booster for each fold, judged by it; 0: one for all rows.
    n_deals : int
        How often the rows are dealt out into folds.
    held_twice : float
        Share of a fold that the next booster holds out too, and that as many rows of its own are not held out for:
        where two boosters know neither a row, they tell how far boosters differ.
    draws_rows : bool
        Whether every second booster draws rows, though the others do not.
    varies_trees : bool
        Whether pairs of boosters by turns look at some columns in a node, and have leaves of a single row.
    varies_bins : bool
        Whether pairs of boosters by turns have few bins: those of all would miss what lies in a tail.
    draws_bins : bool
        Whether each booster cuts columns into bins of its own. The mean of several then has finer steps than each, and
        bins may be few; else they share one table in codes.
    has_statistics : bool
        Whether columns of many categories have statistics beside them.
    is_auto : bool
        Whether nothing was said of the number of rounds.
    """

    n_rounds: int
    learning_rate: float
    max_leaf_nodes: int | None
    l2_regularization: float
    subsample: float
    max_features: Any
    max_bins: int
    min_samples_leaf: int | None
    steps_grow_after: int
    stops_early: bool
    patience: int
    worth: float
    worth_of_present: bool
    n_folds: int
    n_deals: int
    held_twice: float
    draws_rows: bool
    varies_trees: bool
    varies_bins: bool
    draws_bins: bool
    has_statistics: bool
    is_auto: bool

    def of_member(self, i: int) -> Recipe:
        """Return what one of the boosters is to do: the mean of several that differ is better than each."""
        subsample = _SOME_ROWS if self.draws_rows and i % 2 else self.subsample
        if not self.varies_trees:
            max_bins = _FEW_BINS if self.varies_bins and i // 2 % 2 else self.max_bins
            return replace(self, subsample=subsample, max_bins=max_bins)
        if i // 2 % 2:
            return replace(self, subsample=subsample, max_features=None, min_samples_leaf=1)
        return replace(self, subsample=subsample, max_features=_SOME_COLUMNS)


def fixed(n_rounds: int, learning_rate: float, stops_early: bool, patience: int | None) -> Recipe:
    """All rounds, or fewer by held-out rows, of functions that are not these trees."""
    given: dict[str, Any] = {"n_rounds": n_rounds, "learning_rate": learning_rate}
    given["patience"] = int(patience or PLAIN["patience"])
    return Recipe(**(PLAIN | given), stops_early=stops_early, is_auto=False)


def resolve(
    settings: BoostingSettings,
    n_rows: int,
    n_scores: int,
    has_held_out: bool,
    weight: float | None = None,
    n_columns: int = 0,
) -> Recipe:
    """Decide all that the user has left open, by the size of the table and its weight (1 a row); what is set stays."""
    weight = float(n_rows) if weight is None else weight
    situation = Situation(settings, n_rows, n_columns, n_scores, weight, has_held_out)
    return Recipe(**decide(situation), stops_early=situation.stops_early, is_auto=situation.is_auto)


def searched(settings: BoostingSettings, recipe: Recipe) -> list[Recipe]:
    """Return the recipes to try on the same folds, the usual one first: it alone, unless a search is asked for.

    Each of the others suits some tables better: sums of single columns, columns that act together, many columns that
    say the same, noise. What the user has set stays, and a recipe that is thereby the usual one is not tried again.
    """
    if settings.effort != SEARCH:
        return [recipe]
    if not recipe.n_folds:
        raise ValueError(
            "effort='search' compares recipes by the folds that boosters have held out. It goes with "
            "n_estimators='auto' and without X_val, early_stopping or a model in init, and needs at least "
            f"{FEWEST_ROWS} rows."
        )
    leaves, rows = recipe.max_leaf_nodes or 31, recipe.min_samples_leaf or 1
    other_columns = 0.5 if recipe.max_features == FEW_COLUMNS else FEW_COLUMNS
    others: list[dict[str, Any]] = [
        {"max_leaf_nodes": 3},
        {"max_leaf_nodes": 4 * leaves},
        {"max_features": other_columns, "varies_trees": False},
        {"min_samples_leaf": 4 * rows, "l2_regularization": 10 * recipe.l2_regularization, "varies_trees": False},
    ]
    found = [recipe]
    for other in others:
        made = replace(recipe, **{k: v for k, v in other.items() if _is_open(getattr(settings, k, "auto"))})
        if made not in found and made != replace(recipe, varies_trees=False):
            found.append(made)
    return found


def _is_open(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def draw_seed(settings: BoostingSettings, recipe: Recipe, may_set_aside: bool) -> int:
    """Seed of all draws; fixed where the user asks for none, unless the user gives one."""
    shares = (recipe.subsample, settings.max_features_per_level, settings.max_features_per_tree)
    draws = (
        min(shares) < 1
        or settings.drop_rate > 0
        or recipe.max_features is not None
        or (recipe.stops_early and may_set_aside)
    )
    if settings.random_state is None and (recipe.is_auto or not draws):
        return 0
    return int(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))
