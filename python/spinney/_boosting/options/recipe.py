"""What a booster does where the user has said nothing: all of it, or some of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney._boosting.settings import BoostingSettings

_WORTH = 0.3  # of a row's first loss, that all held-out rows together must gain: less than that is chance
_FEWEST_ROWS = 10  # with fewer, folds say nothing
_VERY_FEW_ROWS = 1000  # with fewer, trees are small, and of values there are twice as many folds
_FEW_ROWS = 3000  # with fewer, there are twice as many folds of classes
_MANY_ROWS = 20_000  # from here on, boosters share one table in codes
VERY_MANY_ROWS = 1_000_000  # from here on, they share it whatever its columns are
_SOME_ROWS = 0.7  # share that every second booster draws of few
_SOME_COLUMNS = 0.35  # share that a node of every other pair of them looks at, where values are to be predicted
_FEW_BINS = 24  # of every other pair of them, with several classes
_HELD_TWICE = 0.2  # share of a fold
SEARCH = "search"  # the effort that tries several recipes
_DRAWN_BY_GRADIENT = 0.5  # share of the rows, unless the user says
_DRAWN_BESIDE_TOP = 0.1  # share of the rows, those of small gradients
_L2_OF_PAIRS, _MOST_L2_OF_PAIRS = 1e-3, 10.0  # by weight; what is chance in a row pulls on all of its pairs at once
_L2_OF_LISTED, _LISTED = 1.0, (10_000.0, 50_000.0)  # LambdaMART's, between these weights; chance in more evens out
_PATIENCE, _PATIENCE_OF_FOLDS = 10, 50  # rounds without an improvement before a booster stops, unless the user says
_PATIENCE_OF_CLASSES = 30  # the same of few rows of several classes, or
_PATIENCE_OF_FEW = 10, 40  # of folds of them, and of two classes, whose steps are longer
_WIDE = 30  # columns from which on a node of few rows of several classes looks at fewer, and folds are fewer
_WIDE_OF_TWO = 12  # columns from which on a node of two classes looks at fewer, unless rows are many
_FEW_COLUMNS = 0.2  # share that they then look at, of few rows; of more
_FEW_COLUMNS_OF_MORE = 0.3


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
    given = _PLAIN | {"n_rounds": n_rounds, "learning_rate": learning_rate}
    patience = int(patience or _PATIENCE)
    no_folds = {
        "n_folds": 0,
        "n_deals": 1,
        "held_twice": 0.0,
        "draws_rows": False,
        "varies_trees": False,
        "varies_bins": False,
        "draws_bins": False,
        "has_statistics": False,
    }
    never: dict[str, Any] = {"worth": 0.0, "worth_of_present": False, "is_auto": False} | no_folds
    return Recipe(**given, **never, stops_early=stops_early, patience=patience)


def makes_folds(settings: BoostingSettings, has_held_out: bool) -> bool:
    """Whether each row is held out once, from one of several boosters.

    A first model would have to be fitted anew for each; and who says how rows are held out means one part.
    """
    return (
        settings.n_estimators == "auto"
        and settings.early_stopping is None
        and not settings.starts_at_model
        and not has_held_out
    )


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
    is_auto = isinstance(settings.n_estimators, str)
    stops = settings.stops_early
    if is_auto and not has_held_out and n_rows < _FEWEST_ROWS:
        stops = False
    found = _PLAIN
    if is_auto and stops:
        found = _by_size(n_rows, n_scores, settings.is_class_target, _work(settings))
    elif settings.loss == "pairwise":
        found = found | {"l2_regularization": min(weight * _L2_OF_PAIRS, _MOST_L2_OF_PAIRS)}
    elif settings.loss == "lambdamart" and _LISTED[0] <= weight < _LISTED[1]:
        found = found | {"l2_regularization": _L2_OF_LISTED}
    n_folds, n_deals = 0, 1
    is_few, has_classes = n_rows < _few_rows(settings.is_class_target), _has_classes(settings, n_scores)
    if stops and makes_folds(settings, has_held_out):
        n_most = 7 if has_classes and n_columns >= _WIDE else 10
        n_folds, n_deals = _folds_and_deals(n_rows, is_few, _work(settings), n_most)
    patience = _patience(is_auto, is_few and has_classes)
    if n_folds and is_few and settings.is_class_target:
        patience = _patience_of_few(settings, has_classes) or patience
        found = found | _few_of_classes(settings, n_scores, _work(settings))
    if n_folds and settings.is_class_target:
        found = found | _fewer_columns(n_rows, n_columns, has_classes)
    for name in _PLAIN:
        if not _is_open(getattr(settings, name, "auto")):
            found = found | {name: getattr(settings, name)}
    if settings.sampling != "uniform" and _is_open(settings.subsample):
        is_goss = settings.sampling == "goss"
        drawn = min(1.0, settings.top_share + _DRAWN_BESIDE_TOP) if is_goss else _DRAWN_BY_GRADIENT
        found = found | {"subsample": drawn}
    if not is_auto:
        found = found | {"n_rounds": int(settings.n_estimators)}
    if n_folds and not is_few and settings.loss == "squared_error" and _is_open(settings.learning_rate):
        found = found | _growing_steps(n_rows, _work(settings))
    return Recipe(
        **found,
        stops_early=stops,
        patience=int(settings.n_iter_no_change or patience),
        worth=_WORTH / n_rows if is_auto else 0.0,
        worth_of_present=settings.loss == "squared_error",  # others have no natural 0, or go on falling to it
        n_folds=n_folds,
        n_deals=n_deals,
        held_twice=_HELD_TWICE if n_folds and n_deals == 1 and n_scores == 1 and _calibrates_values(settings) else 0.0,
        draws_rows=n_folds > 0 and is_few and _is_open(settings.subsample),
        varies_trees=n_folds > 0 and is_few and not settings.is_class_target and _leaves_trees_open(settings),
        varies_bins=n_folds > 0 and is_few and has_classes and _is_open(settings.max_bins),
        draws_bins=n_folds > 0 and n_rows < _MANY_ROWS,
        has_statistics=n_folds > 0 and n_scores == 1 and n_rows < VERY_MANY_ROWS,
        is_auto=is_auto,
    )


def _growing_steps(n_rows: int, work: float) -> dict[str, Any]:
    """Return steps that grow: half the rounds for about the same loss, where boosters have a long way to go."""
    first, after, most = (0.2, 40, 200) if n_rows < _FEW_ROWS else (0.1, 100, 350)
    return {"learning_rate": first / work, "steps_grow_after": round(after * work), "n_rounds": round(most * work)}


def _few_of_classes(settings: BoostingSettings, n_scores: int, work: float) -> dict[str, Any]:
    """Return what suits folds of few rows of classes: long steps that grow.

    The mean of boosters forgives each of them its long steps, and a fit of 1,000 rows of many classes takes half a
    second. Steps are not longer still where less work is asked for.
    """
    found: dict[str, Any] = {}
    has_classes, more = n_scores > 1, max(1.0, work)
    if _is_open(settings.learning_rate):
        first, after, most = (0.4, 15, 200) if has_classes else (0.1, 50, 500)
        found = {"learning_rate": first / more, "steps_grow_after": round(after * more), "n_rounds": round(most * more)}
    return found


def _fewer_columns(n_rows: int, n_columns: int, has_classes: bool) -> dict[str, Any]:
    """Return the share of many columns that a node looks at, if it is not half of them.

    Boosters that look at fewer differ more, and their mean errs less; of very few columns each may be needed beside
    all others.
    """
    if n_columns < (_WIDE if has_classes else _WIDE_OF_TWO):
        return {}
    if n_rows < _FEW_ROWS:
        return {"max_features": _FEW_COLUMNS}
    return {} if has_classes or n_rows >= _MANY_ROWS else {"max_features": _FEW_COLUMNS_OF_MORE}


def _patience(is_auto: bool, are_few_of_classes: bool) -> int:
    if not is_auto:
        return _PATIENCE
    return _PATIENCE_OF_CLASSES if are_few_of_classes else _PATIENCE_OF_FOLDS


def _patience_of_few(settings: BoostingSettings, has_classes: bool) -> int:
    """Return that of folds of few rows of classes; 0 where steps are as long as the user says."""
    if not _is_open(settings.learning_rate):
        return 0
    return round(_PATIENCE_OF_FEW[0 if has_classes else 1] * max(1.0, _work(settings)))


def _has_classes(settings: BoostingSettings, n_scores: int) -> bool:
    """Whether there are several classes, with a score each."""
    return bool(settings.is_class_target) and n_scores > 1


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
            f"{_FEWEST_ROWS} rows."
        )
    leaves, rows = recipe.max_leaf_nodes or 31, recipe.min_samples_leaf or 1
    other_columns = 0.5 if recipe.max_features == _FEW_COLUMNS else _FEW_COLUMNS
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


def _work(settings: BoostingSettings) -> float:
    """Return a half to 2, by the effort asked for: as a factor of the boosters, and of their rounds."""
    effort = 0.5 if settings.effort == SEARCH else float(settings.effort)
    return 0.5 + effort if effort < 0.5 else 2 * effort


def _few_rows(is_class_target: bool) -> int:
    return _FEW_ROWS if is_class_target else _VERY_FEW_ROWS


def _folds_and_deals(n_rows: int, is_few: bool, work: float, n_most: int) -> tuple[int, int]:
    """Return the number of folds, and how often rows are dealt out; `work` is a half to 2."""
    if not is_few:
        return (3 if work < 0.75 else round(5 * work)), 1
    return max(5, min(round(n_most * min(work, 1.0)), n_rows // 10)), round(max(work, 1.0))


def _calibrates_values(settings: BoostingSettings) -> bool:
    """Whether the rows held out are to say how wide intervals are."""
    return settings.calibrates and not settings.is_class_target


def _leaves_trees_open(settings: BoostingSettings) -> bool:
    """Whether nothing is said of the columns of a node and the rows of a leaf."""
    return _is_open(settings.max_features) and _is_open(settings.min_samples_leaf)


def _is_open(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


_PLAIN: dict[str, Any] = {
    "n_rounds": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "l2_regularization": 0.0,
    "subsample": 1.0,
    "max_features": None,
    "max_bins": 255,
    "min_samples_leaf": None,
    "steps_grow_after": 0,
}


def _by_size(n_rows: int, n_scores: int, is_class_target: bool, work: float) -> dict[str, Any]:
    """Return what suits a table; `work` is 1 unless the user asks for less or more."""
    is_few = n_rows < _few_rows(is_class_target)
    smallest_leaf = min(20, n_rows // 60) if is_class_target else min(10, n_rows // 20)
    has_classes = n_scores > 1 and is_class_target
    first_steps = (0.16 if has_classes else 0.08) if is_few else 0.15 if n_rows < _FEW_ROWS else 0.1
    most_leaves = 6 if n_rows < _VERY_FEW_ROWS else 12 if is_few or has_classes else 24
    return {
        "n_rounds": round((1000 if is_few else 600) * work),
        "learning_rate": first_steps / work,
        "max_leaf_nodes": most_leaves,
        "l2_regularization": min(3.0, 100 / n_rows) if is_class_target else 1.0,
        "subsample": 1.0,
        "max_features": 0.5,
        "max_bins": 64 if n_rows < _MANY_ROWS else 255,
        "min_samples_leaf": max(3, smallest_leaf),
        "steps_grow_after": 0,
    }


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
