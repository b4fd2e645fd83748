"""The automatic settings of boosting, as a table of conditions and settings, which the documentation prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney._boosting.settings import BoostingSettings

_SUBSAMPLE = 0.7  # of every second booster of a small table
_SOME_COLUMNS = 0.35  # max_features of every other pair of boosters of a small table, for numeric targets
_FEW_BINS = 24  # max_bins of every other pair of boosters of a small table, for several classes


def fixed_recipe(n_rounds: int, learning_rate: float, stops_early: bool, patience: int | None) -> Recipe:
    """Return a recipe without automatic settings, for boosting of other functions than trees."""
    return Recipe(n_rounds, learning_rate, stops_early=stops_early, patience=int(patience or Recipe.patience))


def resolve(
    settings: BoostingSettings,
    n_rows: int,
    n_scores: int,
    has_held_out: bool,
    weight: float | None = None,
    n_columns: int = 0,
    may_be_linear: bool = False,
) -> Recipe:
    """Return the settings of the user, with values for the automatic ones; `weight` is 1 per row by default."""
    weight = float(n_rows) if weight is None else weight
    situation = Situation(settings, n_rows, n_columns, n_scores, weight, has_held_out, may_be_linear)
    return Recipe(**decide(situation), stops_early=situation.stops_early, is_auto=situation.is_auto)


def may_race(settings: BoostingSettings, recipe: Recipe, n_rows: int, n_scores: int) -> bool:
    """Return whether other recipes compete with the default one on the same folds: see `race`."""
    if n_scores > _FEW_SCORES and n_rows * n_scores > _FEW_NUMBERS:  # 1,000 rows take less than half a second
        return False
    if not recipe.linear_leaves or settings.effort < _LEAST_EFFORT_OF_A_RACE:
        return False
    return not settings.changed - _CHANGED_IN_A_RACE and settings.metrics == (None,)


def challengers(recipe: Recipe, n_categories: list[int]) -> list[Recipe]:
    """Return the recipes that compete with the default one."""
    found = [replace(recipe, is_symmetric=True)]
    if any(n_categories):
        found.append(replace(recipe, has_codes=True, target_encoding=False))
    if 0 < n_categories.count(0) <= _MOST_LINEAR_COLUMNS:
        found.append(replace(recipe, **_TWO_LINEAR_LEAVES))
    return found


_FEW_SCORES, _FEW_NUMBERS = 5, 5_000
_MOST_LINEAR_COLUMNS = 32  # numeric columns: the time of a linear leaf grows with their square
_TWO_LINEAR_LEAVES: dict[str, Any] = {
    "is_linear": True,
    "max_leaf_nodes": 2,
    "learning_rate": 0.5,
    "learning_rate_growth_start": 0,
    "n_rounds": 40,
    "patience": 5,
    "alternates_subsample": False,
    "target_encoding": False,
}
_LEAST_EFFORT_OF_A_RACE = 0.5
_CHANGED_IN_A_RACE = frozenset(  # parameters that do not shape trees
    {"categorical_features", "class_weight", "cost_matrix", "effort", "feature_combinations", "n_jobs", "priors"}
    | {"random_state", "unseen", "verbose"}
)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def draw_seed(settings: BoostingSettings, recipe: Recipe, may_set_aside: bool) -> int:
    """Return the seed of all random draws: 0 if the user has not asked for randomness, else from random_state."""
    fractions = (recipe.subsample, settings.max_features_per_level, settings.max_features_per_tree)
    draws = (
        min(fractions) < 1
        or settings.drop_rate > 0
        or recipe.max_features is not None
        or (recipe.stops_early and may_set_aside)
    )
    if settings.random_state is None and (recipe.is_auto or not draws):
        return 0
    return int(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))


FEWEST_ROWS = 10  # for folds
FEW_COLUMNS = 0.2  # max_features of small tables with many columns
_TINY, _SMALL, _LARGE, VERY_LARGE_TABLE = 1000, 3000, 20_000, 1_000_000  # rows
_AUTO_PARAMETERS = (
    "learning_rate", "max_leaf_nodes", "l2_regularization", "subsample", "max_features", "max_bins", "linear_leaves",
)  # fmt: skip


@dataclass(frozen=True)
class Situation:
    """What the automatic settings depend on.

    Attributes
    ----------
    settings : BoostingSettings
        Settings of the user.
    n_rows, n_columns, n_scores : int
        Size of the training table, and scores of a row: more than one for several classes or outputs.
    weight : float
        Total weight of the rows.
    has_held_out : bool
        Whether the user passes a validation set, or times.
    may_be_linear : bool
        Whether the table is in memory, and no setting is incompatible with linear leaves.
    """

    settings: BoostingSettings
    n_rows: int
    n_columns: int
    n_scores: int
    weight: float
    has_held_out: bool
    may_be_linear: bool = False

    @property
    def is_auto(self) -> bool:
        """Whether the number of rounds is automatic."""
        return isinstance(self.settings.n_estimators, str)

    @property
    def stops_early(self) -> bool:
        """Whether boosters use early stopping."""
        is_too_small = self.is_auto and not self.has_held_out and self.n_rows < FEWEST_ROWS
        return self.settings.stops_early and not is_too_small

    @property
    def has_folds(self) -> bool:
        """Whether there is one booster for each fold."""
        return self.stops_early and makes_folds(self.settings, self.has_held_out)

    @property
    def is_small(self) -> bool:
        """Whether the table is small for the kind of target."""
        return self.n_rows < (_SMALL if self.settings.is_class_target else _TINY)

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more than two classes."""
        return self.settings.is_class_target and self.n_scores > 1

    @property
    def work(self) -> float:
        """Factor of the number of boosters and rounds, from 0.5 to 2, by the parameter `effort`."""
        effort = float(self.settings.effort)
        return 0.5 + effort if effort < 0.5 else 2 * effort

    def is_auto_parameter(self, parameter: str) -> bool:
        """Return whether a parameter is "auto"."""
        return _is_auto(getattr(self.settings, parameter))

    @property
    def user_settings(self) -> dict[str, Any]:
        """The settings of the user, by the names of the recipe."""
        settings, names = self.settings, (*_AUTO_PARAMETERS, "min_samples_leaf")
        found = {name: getattr(settings, name) for name in names if not self.is_auto_parameter(name)}
        if not self.is_auto:
            found["n_rounds"] = int(settings.n_estimators)
        if settings.n_iter_no_change:
            found["patience"] = int(settings.n_iter_no_change)
        return found


def makes_folds(settings: BoostingSettings, has_held_out: bool) -> bool:
    """Return whether a booster is fitted for each fold.

    Not with a validation set or `early_stopping`, which ask for one booster, nor with an estimator in `init`, which
    would have to be fitted for each fold.
    """
    is_auto = settings.n_estimators == "auto" and settings.early_stopping is None
    return is_auto and not settings.starts_at_model and not has_held_out


@dataclass(frozen=True)
class Condition:
    """A condition on the situation, and its description."""

    description: str
    holds: Callable[[Situation], bool]


@dataclass(frozen=True)
class Formula:
    """A value that depends on the situation, and its description."""

    description: str
    value: Callable[[Situation], Any]


@dataclass(frozen=True)
class Row:
    """Settings that apply where all conditions hold."""

    when: tuple[Condition, ...]
    settings: Mapping[str, Any]


def decide(situation: Situation) -> dict[str, Any]:
    """Return all settings: later rows of the table replace earlier ones, and the user's settings replace both."""
    found: dict[str, Any] = {}
    for row in ROWS:
        if all(condition.holds(situation) for condition in row.when):
            found |= row.settings
    found |= situation.user_settings
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
    """Return a count in proportion to the work, or a learning rate in inverse proportion."""
    if is_count:
        return Formula(f"{number} × work", lambda s: round(number * s.work))
    return Formula(f"{number} / work", lambda s: number / s.work)


def _by_more_work(number: float, is_count: bool = True) -> Formula:
    """Return the same as `_by_work`, for work of at least 1."""
    if is_count:
        return Formula(f"{number} × max(1, work)", lambda s: round(number * max(1.0, s.work)))
    return Formula(f"{number} / max(1, work)", lambda s: number / max(1.0, s.work))


def _rising_learning_rate(first: float, after: int, most: int, by: Callable[..., Formula]) -> dict[str, Formula]:
    """Return a learning rate that rises with the rounds: half as many rounds reach about the same loss."""
    return {"learning_rate": by(first, is_count=False), "learning_rate_growth_start": by(after), "n_rounds": by(most)}


def _fewer_rows(n_rows: int) -> Condition:
    return Condition(f"fewer than {n_rows:,} rows", lambda s: s.n_rows < n_rows)


def _columns(n_columns: int) -> Condition:
    return Condition(f"at least {n_columns} columns", lambda s: s.n_columns >= n_columns)


def _folds_of_small(most: int) -> Formula:
    """Return the number of folds of a small table."""
    description = f"{most} × work, at most {most} and a tenth of the rows, at least 5"
    return Formula(description, lambda s: max(5, min(round(most * min(s.work, 1.0)), s.n_rows // 10)))


_AUTO = Condition('`n_estimators="auto"`', lambda s: s.is_auto)
_BY_SIZE = Condition('`n_estimators="auto"` with held-out rows', lambda s: s.is_auto and s.stops_early)
_NOT_BY_SIZE = Condition('unless `n_estimators="auto"` with held-out rows', lambda s: not (s.is_auto and s.stops_early))
_FOLDS = Condition("folds", lambda s: s.has_folds)
_IS_SMALL = Condition(
    "small table (fewer than 3,000 rows for classification, 1,000 for regression)", lambda s: s.is_small
)
_NOT_SMALL = Condition("not a small table", lambda s: not s.is_small)
_CLASSES = Condition("classification", lambda s: s.settings.is_class_target)
_MULTICLASS = Condition("several classes", lambda s: s.is_multiclass)
_TWO_CLASSES = Condition("two classes", lambda s: s.settings.is_class_target and not s.is_multiclass)
_REGRESSION = Condition("regression", lambda s: not s.settings.is_class_target)
_ONE_SCORE = Condition("one score", lambda s: s.n_scores == 1)
_SQUARED = Condition('`loss="squared_error"`', lambda s: bool(s.settings.loss == "squared_error"))
_LINEAR = Condition(
    'table in memory, `loss="squared_error"` or `"log_loss"`, at most 12 scores, no setting against them',
    lambda s: s.may_be_linear and s.settings.loss in ("squared_error", "log_loss") and s.n_scores <= 12,
)
_PAIRWISE = Condition('`loss="pairwise"`', lambda s: bool(s.settings.loss == "pairwise"))
_LAMBDAMART = Condition('`loss="lambdamart"`', lambda s: bool(s.settings.loss == "lambdamart"))
_LISTED = Condition("rows of a total weight of 10,000 to 50,000", lambda s: 10_000.0 <= s.weight < 50_000.0)
_BY_GRADIENT = Condition('`sampling="gradient"`', lambda s: s.settings.sampling == "gradient")
_BY_GOSS = Condition('`sampling="goss"`', lambda s: s.settings.sampling == "goss")
_ONCE = Condition("rows are split into folds once", lambda s: not (s.is_small and round(max(s.work, 1.0)) > 1))
_CALIBRATES = Condition("intervals", lambda s: s.settings.calibrates and not s.settings.is_class_target)
_AUTO_RATE = Condition('`learning_rate="auto"`', lambda s: s.is_auto_parameter("learning_rate"))
_AUTO_SUBSAMPLE = Condition('`subsample="auto"`', lambda s: s.is_auto_parameter("subsample"))
_AUTO_BINS = Condition('`max_bins="auto"`', lambda s: s.is_auto_parameter("max_bins"))
_AUTO_TREES = Condition(
    '`max_features` and `min_samples_leaf` "auto"',
    lambda s: s.is_auto_parameter("max_features") and s.is_auto_parameter("min_samples_leaf"),
)


@dataclass(frozen=True)
class Recipe:
    """The settings of the rounds, without automatic values.

    Attributes
    ----------
    n_rounds : int
        Maximum number of rounds of a booster.
    learning_rate, max_leaf_nodes, l2_regularization, subsample, max_features, max_bins : as the parameters
    min_samples_leaf : int or None
        Minimum number of rows of a leaf; None: the default for the number of rows.
    learning_rate_growth_start : int
        Rounds after which the learning rate rises with the number of rounds, up to three times the first; 0: never.
    stops_early : bool
        Whether early stopping is used.
    patience : int
        Rounds without an improvement after which a booster stops.
    min_improvement : float
        Relative decrease of the first held-out loss, besides `tol`, that counts as an improvement.
    relative_to_current : bool
        Whether it is relative to the current held-out loss instead.
    n_folds : int
        Number of folds, with a booster for each; 0: one booster for all rows.
    n_repeats : int
        Number of splits into folds.
    fold_overlap : float
        Fraction of a fold that the next booster also holds out, instead of as many rows of the other. On rows held
        out twice, the differences between boosters are measured.
    alternates_subsample : bool
        Whether every second booster draws rows.
    alternates_trees : bool
        Whether pairs of boosters alternately consider some columns per node, or have leaves of a single row.
    alternates_bins : bool
        Whether every other pair of boosters has few bins.
    random_bins : bool
        Whether each booster has its own random bin edges. The mean of several is then finer than each, and few bins
        suffice; else all boosters share one binned table.
    target_encoding : bool
        Whether columns with many categories are also target-encoded.
    linear_leaves : bool
        Whether leaves are linear.
    is_linear : bool
        Whether each linear leaf uses all numeric columns, not only those on its path.
    is_symmetric : bool
        Whether trees are symmetric, of depth 6 at most.
    has_codes : bool
        Whether categories are split as numbers, in the order of their codes.
    is_auto : bool
        Whether the number of rounds is automatic.
    """

    n_rounds: int = 100
    learning_rate: float = 0.1
    max_leaf_nodes: int | None = 31
    l2_regularization: float = 0.0
    subsample: float = 1.0
    max_features: int | float | str | None = None
    max_bins: int = 255
    min_samples_leaf: int | None = None
    learning_rate_growth_start: int = 0
    patience: int = 10
    min_improvement: float = 0.0
    relative_to_current: bool = False
    n_folds: int = 0
    n_repeats: int = 1
    fold_overlap: float = 0.0
    alternates_subsample: bool = False
    alternates_trees: bool = False
    alternates_bins: bool = False
    random_bins: bool = False
    target_encoding: bool = False
    linear_leaves: bool = False
    is_linear: bool = False
    is_symmetric: bool = False
    has_codes: bool = False
    stops_early: bool = False
    is_auto: bool = False

    def for_booster(self, i: int) -> Recipe:
        """Return the recipe of one booster: boosters that differ have a better mean."""
        subsample = _SUBSAMPLE if self.alternates_subsample and i % 2 else self.subsample
        if not self.alternates_trees:
            max_bins = _FEW_BINS if self.alternates_bins and i // 2 % 2 else self.max_bins
            return replace(self, subsample=subsample, max_bins=max_bins)
        if i // 2 % 2:
            return replace(self, subsample=subsample, max_features=None, min_samples_leaf=1)
        return replace(self, subsample=subsample, max_features=_SOME_COLUMNS)


PLAIN = {one.name: one.default for one in fields(Recipe) if one.name not in ("stops_early", "is_auto")}

ROWS = (
    Row((), PLAIN),
    # regularization of ranking: the noise of a row affects all of its pairs, and averages out over many rows
    Row(
        (_NOT_BY_SIZE, _PAIRWISE),
        {"l2_regularization": Formula("weight / 1,000, at most 10", lambda s: min(s.weight * 1e-3, 10.0))},
    ),
    Row((_NOT_BY_SIZE, _LAMBDAMART, _LISTED), {"l2_regularization": 1.0}),
    # early stopping: all held-out rows together must gain a fraction of one row's first loss, as less is chance;
    # other losses than squared errors have no natural 0, or keep falling towards it
    Row((_AUTO,), {"patience": 50, "min_improvement": Formula("0.3 / rows", lambda s: 0.3 / s.n_rows)}),
    Row((_AUTO, _IS_SMALL, _MULTICLASS), {"patience": 30}),
    Row((_SQUARED,), {"relative_to_current": True}),
    # trees and learning rates by the size of the table
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
    Row((_BY_SIZE, _REGRESSION, _fewer_rows(_SMALL)), {"learning_rate": _by_work(0.15, is_count=False)}),
    Row(
        (_BY_SIZE, _IS_SMALL),
        {"n_rounds": _by_work(1000), "learning_rate": _by_work(0.08, is_count=False), "max_leaf_nodes": 12},
    ),
    Row((_BY_SIZE, _IS_SMALL, _MULTICLASS), {"learning_rate": _by_work(0.16, is_count=False)}),
    Row((_BY_SIZE, _fewer_rows(_TINY)), {"max_leaf_nodes": 6}),
    Row((_BY_SIZE, _fewer_rows(_LARGE)), {"max_bins": 64}),
    # number of boosters, and how they differ: boosters that differ have a better mean
    Row((_FOLDS,), {"n_folds": Formula("5 × work, at least 3", lambda s: 3 if s.work < 0.75 else round(5 * s.work))}),
    Row(
        (_FOLDS, _IS_SMALL),
        {"n_folds": _folds_of_small(10), "n_repeats": Formula("max(1, work)", lambda s: round(max(s.work, 1.0)))},
    ),
    Row((_FOLDS, _IS_SMALL, _MULTICLASS, _columns(30)), {"n_folds": _folds_of_small(7)}),
    Row((_FOLDS, _ONCE, _ONE_SCORE, _CALIBRATES), {"fold_overlap": 0.2}),
    Row((_FOLDS, _IS_SMALL, _AUTO_SUBSAMPLE), {"alternates_subsample": True}),
    Row((_FOLDS, _IS_SMALL, _REGRESSION, _AUTO_TREES), {"alternates_trees": True}),
    Row((_FOLDS, _IS_SMALL, _MULTICLASS, _AUTO_BINS), {"alternates_bins": True}),
    Row((_FOLDS, _fewer_rows(_LARGE)), {"random_bins": True}),
    Row((_FOLDS, _ONE_SCORE, _fewer_rows(VERY_LARGE_TABLE)), {"target_encoding": True}),
    Row((_FOLDS, _LINEAR, _fewer_rows(_LARGE)), {"linear_leaves": True}),
    # high learning rates that rise: the mean of several boosters tolerates them
    Row(
        (_FOLDS, _IS_SMALL, _CLASSES, _AUTO_RATE),
        {**_rising_learning_rate(0.1, 50, 500, _by_more_work), "patience": _by_more_work(40)},
    ),
    Row(
        (_FOLDS, _IS_SMALL, _MULTICLASS, _AUTO_RATE),
        {**_rising_learning_rate(0.4, 15, 200, _by_more_work), "patience": _by_more_work(10)},
    ),
    Row((_FOLDS, _NOT_SMALL, _SQUARED, _AUTO_RATE), _rising_learning_rate(0.1, 100, 350, _by_work)),
    Row((_FOLDS, _NOT_SMALL, _SQUARED, _AUTO_RATE, _fewer_rows(_SMALL)), _rising_learning_rate(0.2, 40, 200, _by_work)),
    # fewer columns per node of wide tables: boosters differ more, and their mean is better
    Row((_FOLDS, _TWO_CLASSES, _columns(12), _fewer_rows(_LARGE)), {"max_features": 0.3}),
    Row((_FOLDS, _TWO_CLASSES, _columns(12), _fewer_rows(_SMALL)), {"max_features": FEW_COLUMNS}),
    Row((_FOLDS, _MULTICLASS, _columns(30), _fewer_rows(_SMALL)), {"max_features": FEW_COLUMNS}),
    # rows drawn by their gradients
    Row((_BY_GRADIENT,), {"subsample": 0.5}),
    Row(
        (_BY_GOSS,),
        {"subsample": Formula("`top_rate` + 0.1, at most 1", lambda s: min(1.0, s.settings.top_fraction + 0.1))},
    ),
)
