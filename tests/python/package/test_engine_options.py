"""Options that cross to the engine: by name, all of them, and of the right type."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import numpy as np
import pytest
import spinney
from spinney import _engine
from spinney._boosting.settings import BoostingSettings

GROWTH = {
    "max_depth": 3,
    "min_samples_split": 2,
    "min_samples_leaf": 1,
    "min_weight_leaf": 0.0,
    "min_impurity_decrease": 0.0,
    "min_purity": 2.0,
    "max_features": 1,
    "feature_weights": [],
    "always_try": [],
    "max_leaf_nodes": 0,
    "random_cuts": False,
    "random_ties": False,
    "charge_categories": False,
    "row_weight": 0.0,
    "seed": 0,
    "monotonic_cst": [],
    "interaction_cst": [],
    "feature_costs": [],
    "cost": None,
    "max_bins": 0,
    "n_jobs": 1,
    "surrogates": None,
    "user": None,
}
WEIGHING = {
    "present_only": True,
    "max_competitors": 1,
    "max_surrogates": 1,
    "absent_disagrees": True,
    "missing_fallback": "majority",
    "case_weight": None,
    "rpart": None,
}
RPART = {
    "quirks": False,
    "fold": False,
    "closed_cuts": [0],
    "rows": [],
    "price": None,
    "class_risk": [],
    "response": None,
    "exposure": None,
    "class_factor": [],
}
BOOSTING = {
    "losses": [("squared_error", 0.0, 1, 1.0)],
    "max_bins": 255,
    "subsample": 1.0,
    "draws_by_gradient": False,
    "top_fraction": 0.0,
    "n_parallel_trees": 1,
    "drop_rate": 0.0,
    "skip_drop": 0.0,
    "max_drop": 1,
    "drops_by_weight": False,
    "learning_rate": 0.1,
    "learning_rate_growth_start": 0,
    "max_leaf_nodes": 31,
    "max_depth": 6,
    "depth_wise": False,
    "symmetric": False,
    "min_samples_split": 2,
    "min_samples_leaf": 1,
    "min_hessian_leaf": 0.0,
    "min_gain": 0.0,
    "l2_regularization": 0.0,
    "l1_regularization": 0.0,
    "max_step": 0.0,
    "damp_steps": True,
    "longest_step": 0.0,
    "vector_leaves": False,
    "max_features_per_tree": 1.0,
    "max_features_per_level": 1.0,
    "max_features": 1.0,
    "max_one_hot": 4,
    "category_smoothing": 10.0,
    "category_l2": 10.0,
    "monotonic_cst": [],
    "interaction_cst": [],
    "feature_costs": [],
    "feature_weights": [],
    "forced_splits": [],
    "hierarchical_shrinkage": 0.0,
    "linear_columns": [],
    "linear_l2": 0.0,
    "linear_in_all": False,
    "seed": 0,
    "n_jobs": 1,
}
KINDS = [
    (_engine.GrowthOptions, GROWTH),
    (_engine.SurrogateOptions, WEIGHING),
    (_engine.RpartOptions, RPART),
    (_engine.BoostingOptions, BOOSTING),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_an_option_that_is_misspelt_forgotten_or_without_its_name_is_an_error(kind, options):
    kind(**options)
    for name in options:
        without = {other: value for other, value in options.items() if other != name}
        with pytest.raises(TypeError):
            kind(**without)
        with pytest.raises(TypeError):
            kind(**without, **{name + "s": options[name]})
    with pytest.raises(TypeError):
        kind(**options, max_dept=3)
    with pytest.raises(TypeError):
        kind(*options.values())


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_options_do_not_change_once_made(kind, options):
    made = kind(**options)
    for name in options:
        with pytest.raises(AttributeError):
            setattr(made, name, options[name])


@pytest.mark.parametrize(
    ("kind", "options", "wrong"),
    [
        (_engine.GrowthOptions, GROWTH, {"max_bins": 65536}),
        (_engine.SurrogateOptions, WEIGHING, {"missing_fallback": "minority"}),
        (_engine.BoostingOptions, BOOSTING, {"losses": [("hinge", 0.0, 1, 1.0)]}),
        (_engine.BoostingOptions, BOOSTING, {"max_bins": 1}),
        (_engine.BoostingOptions, BOOSTING, {"losses": [("squared_error", 0.0, 2, 1.0)]}),
        (_engine.BoostingOptions, BOOSTING, {"losses": []}),
        (_engine.BoostingOptions, BOOSTING, {"monotonic_cst": [[0], [0]]}),
    ],
)
def test_a_value_that_the_engine_does_not_know_is_an_error(kind, options, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        kind(**(options | wrong))


def test_options_are_not_taken_as_a_dict():
    table = _engine.Table(2)
    with pytest.raises(TypeError):
        _engine.grow_tree(table, "squared_error", np.zeros((2, 1)), [], None, GROWTH)
    with pytest.raises(TypeError):
        _engine.Boosting(table, np.zeros((1, 2)), None, np.zeros((1, 2)), None, BOOSTING, 0)


# Options that are worked out from a parameter, and so are something else: a number of rows from a fraction, say.
DERIVED = {
    *("min_weight_leaf", "random_cuts", "random_ties", "charge_categories", "row_weight", "seed", "cost", "surrogates"),
    "user",
}
DERIVED_OF_BOOSTING = {
    "losses",
    "vector_leaves",
    "depth_wise",
    "symmetric",
    "draws_by_gradient",
    "linear_columns",
    "drops_by_weight",
    "seed",
    "damp_steps",
    "linear_in_all",
    "longest_step",
    "learning_rate_growth_start",
}


@pytest.mark.parametrize(
    ("kind", "estimators", "derived"),
    [
        (_engine.GrowthOptions, [spinney.DecisionTreeClassifier, spinney.RandomForestClassifier], DERIVED),
        (_engine.BoostingOptions, [spinney.GradientBoostingRegressor], DERIVED_OF_BOOSTING),
    ],
)
def test_an_option_has_the_name_of_its_parameter(kind, estimators, derived):
    signature = kind.__init__.__doc__.splitlines()[0]
    options = set(re.findall(r"(\w+):", signature)) - {"self"}
    assert len(options) > 10
    parameters = set().union(*(inspect.signature(estimator).parameters for estimator in estimators))
    if kind is _engine.BoostingOptions:
        parameters |= {setting.name for setting in fields(BoostingSettings)}  # which take option objects apart
    assert options - parameters == derived


def test_every_number_has_bounds_that_hold_its_usual_value():
    for option in _engine.boosting_options():
        value = BOOSTING[option.name]
        assert type(value).__name__ == option.type
        assert option.low <= value <= option.high
        assert option.text.endswith(".")


@pytest.mark.parametrize("option", _engine.boosting_options(), ids=lambda option: option.name)
def test_numbers_out_of_bounds_are_refused(option):
    if option.type == "bool":
        return
    if option.closed in ("left", "both") and option.low > 0:
        with pytest.raises(ValueError, match=option.name):
            _engine.BoostingOptions(**BOOSTING | {option.name: int(option.low) - 1})
    if option.type == "int":
        return
    for value in (-1.0, float("nan"), *([option.high + 0.5] if np.isfinite(option.high) else [])):
        with pytest.raises(ValueError, match=option.name):
            _engine.BoostingOptions(**BOOSTING | {option.name: value})
    if option.closed in ("right", "neither") and not option.off_at_zero:
        with pytest.raises(ValueError, match=option.name):
            _engine.BoostingOptions(**BOOSTING | {option.name: 0.0})
