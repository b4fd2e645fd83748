"""The automatic settings: rows of conditions and settings, which the documentation prints, and what they decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney._boosting.settings import SEARCH, BoostingSettings

_SOME_ROWS = 0.7  # fraction that every second booster of a small table draws
_SOME_COLUMNS = 0.35  # fraction that a node of every other pair of them considers, of numeric targets
_FEW_BINS = 24  # of every other pair of them, with several classes


def fixed(n_rounds: int, learning_rate: float, stops_early: bool, patience: int | None) -> Recipe:
    """All rounds, or fewer by held-out rows, of functions that are not these trees."""
    return Recipe(n_rounds, learning_rate, stops_early=stops_early, patience=int(patience or Recipe.patience))


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


FEWEST_ROWS = 10  # with fewer rows, folds say nothing
FEW_COLUMNS = 0.2  # fraction of many columns that a node of a small table considers
_TINY, _SMALL, _LARGE, VERY_LARGE_TABLE = 1000, 3000, 20_000, 1_000_000  # rows
_OPEN = ("learning_rate", "max_leaf_nodes", "l2_regularization", "subsample", "max_features", "max_bins")


@dataclass(frozen=True)
class Situation:
    """What the settings that a user leaves open depend on.

    Attributes
    ----------
    settings : BoostingSettings
        What the user has set.
    n_rows, n_columns, n_scores : int
        Size of the training table, and scores of a row: more than one for several classes or outputs.
    weight : float
        Total weight of the rows.
    has_held_out : bool
        Whether the user says which rows are held out.
    """

    settings: BoostingSettings
    n_rows: int
    n_columns: int
    n_scores: int
    weight: float
    has_held_out: bool

    @property
    def is_auto(self) -> bool:
        """Whether the number of rounds is left open."""
        return isinstance(self.settings.n_estimators, str)

    @property
    def stops_early(self) -> bool:
        """Whether boosters stop by held-out rows."""
        is_too_small = self.is_auto and not self.has_held_out and self.n_rows < FEWEST_ROWS
        return self.settings.stops_early and not is_too_small

    @property
    def has_folds(self) -> bool:
        """Whether there is one booster for each fold."""
        return self.stops_early and makes_folds(self.settings, self.has_held_out)

    @property
    def is_small(self) -> bool:
        """Whether there are few rows for the kind of target."""
        return self.n_rows < (_SMALL if self.settings.is_class_target else _TINY)

    @property
    def is_multiclass(self) -> bool:
        """Whether there are several classes, with a score each."""
        return self.settings.is_class_target and self.n_scores > 1

    @property
    def work(self) -> float:
        """A half to 2, by the effort asked for: a factor of the boosters and of their rounds."""
        effort = 0.5 if self.settings.effort == SEARCH else float(self.settings.effort)
        return 0.5 + effort if effort < 0.5 else 2 * effort

    def is_open(self, parameter: str) -> bool:
        """Whether the user has left a parameter to the recipe."""
        return _is_open(getattr(self.settings, parameter))

    @property
    def given(self) -> dict[str, Any]:
        """What the user has set, by the names of the recipe: it stays."""
        settings = self.settings
        found = {name: getattr(settings, name) for name in (*_OPEN, "min_samples_leaf") if not self.is_open(name)}
        if not self.is_auto:
            found["n_rounds"] = int(settings.n_estimators)
        if settings.n_iter_no_change:
            found["patience"] = int(settings.n_iter_no_change)
        return found


def makes_folds(settings: BoostingSettings, has_held_out: bool) -> bool:
    """Whether each row is held out once, from one of several boosters.

    A first model would have to be fitted anew for each; and who says how rows are held out means one part.
    """
    is_open = settings.n_estimators == "auto" and settings.early_stopping is None
    return is_open and not settings.starts_at_model and not has_held_out


@dataclass(frozen=True)
class Condition:
    """Something that holds in a situation or not, and how to say it."""

    description: str
    holds: Callable[[Situation], bool]


@dataclass(frozen=True)
class Formula:
    """A value that depends on the situation, and how to say it."""

    description: str
    value: Callable[[Situation], Any]


@dataclass(frozen=True)
class Row:
    """Settings that apply where all conditions hold."""

    when: tuple[Condition, ...]
    settings: Mapping[str, Any]


def decide(situation: Situation) -> dict[str, Any]:
    """Return all settings: those of later rows replace those of earlier ones, and what the user has set stays."""
    found: dict[str, Any] = {}
    for row in ROWS:
        if all(condition.holds(situation) for condition in row.when):
            found |= row.settings
    found |= situation.given
    return {name: value.value(situation) if isinstance(value, Formula) else value for name, value in found.items()}


def to_markdown() -> str:
    """Return the rows as a table for the documentation."""
    lines = ["| where | settings |", "|---|---|"]
    for row in ROWS:
        when = ", ".join(condition.description for condition in row.when) or "always"
        settings = "; ".join(f"`{name}` = {_in_words(value)}" for name, value in row.settings.items())
        lines.append(f"| {when} | {settings} |")
    return "\n".join(lines) + "\n"


def _in_words(value: Any) -> str:
    return value.description if isinstance(value, Formula) else repr(value)


def _by_work(number: float, is_count: bool = True) -> Formula:
    """Return rounds in proportion to the work, or steps in inverse proportion."""
    if is_count:
        return Formula(f"{number} × work", lambda s: round(number * s.work))
    return Formula(f"{number} / work", lambda s: number / s.work)


def _by_more_work(number: float, is_count: bool = True) -> Formula:
    """Return the same, for work of at least 1."""
    if is_count:
        return Formula(f"{number} × max(1, work)", lambda s: round(number * max(1.0, s.work)))
    return Formula(f"{number} / max(1, work)", lambda s: number / max(1.0, s.work))


def _growing_steps(first: float, after: int, most: int, by: Callable[..., Formula]) -> dict[str, Formula]:
    """Return steps that grow: half the rounds for about the same loss, where boosters have a long way to go."""
    return {"learning_rate": by(first, is_count=False), "steps_grow_after": by(after), "n_rounds": by(most)}


def _fewer_rows(n_rows: int) -> Condition:
    return Condition(f"fewer than {n_rows:,} rows", lambda s: s.n_rows < n_rows)


def _columns(n_columns: int) -> Condition:
    return Condition(f"at least {n_columns} columns", lambda s: s.n_columns >= n_columns)


def _folds_of_small(most: int) -> Formula:
    """Return the folds of a small table."""
    description = f"{most} × work, at most {most} and a tenth of the rows, at least 5"
    return Formula(description, lambda s: max(5, min(round(most * min(s.work, 1.0)), s.n_rows // 10)))


_AUTO = Condition('`n_estimators="auto"`', lambda s: s.is_auto)
_BY_SIZE = Condition('`n_estimators="auto"` with held-out rows', lambda s: s.is_auto and s.stops_early)
_NOT_BY_SIZE = Condition('no `n_estimators="auto"` with held-out rows', lambda s: not (s.is_auto and s.stops_early))
_FOLDS = Condition("folds", lambda s: s.has_folds)
_IS_SMALL = Condition("small table (classes: fewer than 3,000 rows, numbers: 1,000)", lambda s: s.is_small)
_NOT_SMALL = Condition("no small table", lambda s: not s.is_small)
_CLASSES = Condition("classes", lambda s: s.settings.is_class_target)
_MULTICLASS = Condition("several classes", lambda s: s.is_multiclass)
_TWO_CLASSES = Condition("two classes", lambda s: s.settings.is_class_target and not s.is_multiclass)
_NUMBERS = Condition("numeric target", lambda s: not s.settings.is_class_target)
_ONE_SCORE = Condition("one score", lambda s: s.n_scores == 1)
_SQUARED = Condition('`loss="squared_error"`', lambda s: bool(s.settings.loss == "squared_error"))
_PAIRWISE = Condition('`loss="pairwise"`', lambda s: bool(s.settings.loss == "pairwise"))
_LAMBDAMART = Condition('`loss="lambdamart"`', lambda s: bool(s.settings.loss == "lambdamart"))
_LISTED = Condition("rows of a total weight of 10,000 to 50,000", lambda s: 10_000.0 <= s.weight < 50_000.0)
_BY_GRADIENT = Condition('`sampling="gradient"`', lambda s: s.settings.sampling == "gradient")
_BY_GOSS = Condition('`sampling="goss"`', lambda s: s.settings.sampling == "goss")
_ONCE = Condition("rows are split into folds once", lambda s: not (s.is_small and round(max(s.work, 1.0)) > 1))
_CALIBRATES = Condition("intervals", lambda s: s.settings.calibrates and not s.settings.is_class_target)
_OPEN_STEPS = Condition('`learning_rate="auto"`', lambda s: s.is_open("learning_rate"))
_OPEN_DRAWS = Condition('`subsample="auto"`', lambda s: s.is_open("subsample"))
_OPEN_BINS = Condition('`max_bins="auto"`', lambda s: s.is_open("max_bins"))
_OPEN_TREES = Condition(
    '`max_features` and `min_samples_leaf` "auto"',
    lambda s: s.is_open("max_features") and s.is_open("min_samples_leaf"),
)


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
        Number of folds, with a booster for each, evaluated on it; 0: one booster for all rows.
    n_repeats : int
        How often the rows are split into folds.
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

    n_rounds: int = 100
    learning_rate: float = 0.1
    max_leaf_nodes: int | None = 31
    l2_regularization: float = 0.0
    subsample: float = 1.0
    max_features: int | float | str | None = None
    max_bins: int = 255
    min_samples_leaf: int | None = None
    steps_grow_after: int = 0
    patience: int = 10
    worth: float = 0.0
    worth_of_present: bool = False
    n_folds: int = 0
    n_repeats: int = 1
    held_twice: float = 0.0
    draws_rows: bool = False
    varies_trees: bool = False
    varies_bins: bool = False
    draws_bins: bool = False
    has_statistics: bool = False
    stops_early: bool = False
    is_auto: bool = False

    def of_member(self, i: int) -> Recipe:
        """Return what one of the boosters is to do: the mean of several that differ is better than each."""
        subsample = _SOME_ROWS if self.draws_rows and i % 2 else self.subsample
        if not self.varies_trees:
            max_bins = _FEW_BINS if self.varies_bins and i // 2 % 2 else self.max_bins
            return replace(self, subsample=subsample, max_bins=max_bins)
        if i // 2 % 2:
            return replace(self, subsample=subsample, max_features=None, min_samples_leaf=1)
        return replace(self, subsample=subsample, max_features=_SOME_COLUMNS)


PLAIN = {one.name: one.default for one in fields(Recipe) if one.name not in ("stops_early", "is_auto")}

ROWS = (
    Row((), PLAIN),
    # how strongly leaves are drawn to zero: chance in a row pulls on all of its pairs at once, and evens out in many
    Row(
        (_NOT_BY_SIZE, _PAIRWISE),
        {"l2_regularization": Formula("weight / 1,000, at most 10", lambda s: min(s.weight * 1e-3, 10.0))},
    ),
    Row((_NOT_BY_SIZE, _LAMBDAMART, _LISTED), {"l2_regularization": 1.0}),
    # when a booster stops: all held-out rows together must gain a fraction of one row's first loss, as less is chance;
    # other losses than squared errors have no natural 0, or go on falling to it
    Row((_AUTO,), {"patience": 50, "worth": Formula("0.3 / rows", lambda s: 0.3 / s.n_rows)}),
    Row((_AUTO, _IS_SMALL, _MULTICLASS), {"patience": 30}),
    Row((_SQUARED,), {"worth_of_present": True}),
    # trees and steps by the size of the table
    Row(
        (_BY_SIZE,),
        {
            "n_rounds": _by_work(600),
            "learning_rate": _by_work(0.1, is_count=False),
            "max_leaf_nodes": 24,
            "l2_regularization": 1.0,
            "max_features": 0.5,
            "min_samples_leaf": Formula("rows / 20, from 3 to 10", lambda s: max(3, min(10, s.n_rows // 20))),
        },
    ),
    Row(
        (_BY_SIZE, _CLASSES),
        {
            "l2_regularization": Formula("100 / rows, at most 3", lambda s: min(3.0, 100 / s.n_rows)),
            "min_samples_leaf": Formula("rows / 60, from 3 to 20", lambda s: max(3, min(20, s.n_rows // 60))),
        },
    ),
    Row((_BY_SIZE, _MULTICLASS), {"max_leaf_nodes": 12}),
    Row((_BY_SIZE, _NUMBERS, _fewer_rows(_SMALL)), {"learning_rate": _by_work(0.15, is_count=False)}),
    Row(
        (_BY_SIZE, _IS_SMALL),
        {"n_rounds": _by_work(1000), "learning_rate": _by_work(0.08, is_count=False), "max_leaf_nodes": 12},
    ),
    Row((_BY_SIZE, _IS_SMALL, _MULTICLASS), {"learning_rate": _by_work(0.16, is_count=False)}),
    Row((_BY_SIZE, _fewer_rows(_TINY)), {"max_leaf_nodes": 6}),
    Row((_BY_SIZE, _fewer_rows(_LARGE)), {"max_bins": 64}),
    # boosters, and how they differ: the mean of several that differ is better than each
    Row((_FOLDS,), {"n_folds": Formula("5 × work, at least 3", lambda s: 3 if s.work < 0.75 else round(5 * s.work))}),
    Row(
        (_FOLDS, _IS_SMALL),
        {"n_folds": _folds_of_small(10), "n_repeats": Formula("max(1, work)", lambda s: round(max(s.work, 1.0)))},
    ),
    Row((_FOLDS, _IS_SMALL, _MULTICLASS, _columns(30)), {"n_folds": _folds_of_small(7)}),
    Row((_FOLDS, _ONCE, _ONE_SCORE, _CALIBRATES), {"held_twice": 0.2}),
    Row((_FOLDS, _IS_SMALL, _OPEN_DRAWS), {"draws_rows": True}),
    Row((_FOLDS, _IS_SMALL, _NUMBERS, _OPEN_TREES), {"varies_trees": True}),
    Row((_FOLDS, _IS_SMALL, _MULTICLASS, _OPEN_BINS), {"varies_bins": True}),
    Row((_FOLDS, _fewer_rows(_LARGE)), {"draws_bins": True}),
    Row((_FOLDS, _ONE_SCORE, _fewer_rows(VERY_LARGE_TABLE)), {"has_statistics": True}),
    # long steps that grow: the mean of boosters forgives each of them its long steps
    Row(
        (_FOLDS, _IS_SMALL, _CLASSES, _OPEN_STEPS),
        {**_growing_steps(0.1, 50, 500, _by_more_work), "patience": _by_more_work(40)},
    ),
    Row(
        (_FOLDS, _IS_SMALL, _MULTICLASS, _OPEN_STEPS),
        {**_growing_steps(0.4, 15, 200, _by_more_work), "patience": _by_more_work(10)},
    ),
    Row((_FOLDS, _NOT_SMALL, _SQUARED, _OPEN_STEPS), _growing_steps(0.1, 100, 350, _by_work)),
    Row((_FOLDS, _NOT_SMALL, _SQUARED, _OPEN_STEPS, _fewer_rows(_SMALL)), _growing_steps(0.2, 40, 200, _by_work)),
    # fewer columns for each node where there are many: boosters differ more, and their mean errs less
    Row((_FOLDS, _TWO_CLASSES, _columns(12), _fewer_rows(_LARGE)), {"max_features": 0.3}),
    Row((_FOLDS, _TWO_CLASSES, _columns(12), _fewer_rows(_SMALL)), {"max_features": FEW_COLUMNS}),
    Row((_FOLDS, _MULTICLASS, _columns(30), _fewer_rows(_SMALL)), {"max_features": FEW_COLUMNS}),
    # rows drawn by their gradients
    Row((_BY_GRADIENT,), {"subsample": 0.5}),
    Row(
        (_BY_GOSS,),
        {"subsample": Formula("`top_rate` + 0.1, at most 1", lambda s: min(1.0, s.settings.top_share + 0.1))},
    ),
)
