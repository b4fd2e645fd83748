"""verify_constraints: satisfied constraints are proved, violated ones have a counter-example."""

import numpy as np
import pandas as pd
import pytest
import spinney
from oracle.monotone import largest_decrease
from sklearn.linear_model import LinearRegression
from spinney._model.boosting import FittedBoosting

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 3)).round(2)
Y = X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=150)
TWO = np.where(Y > 1, "yes", "no")
SMALL = {"n_estimators": 4, "max_leaf_nodes": 4, "max_bins": 6}


def regressor(**parameters):
    return spinney.GradientBoostingRegressor(**(SMALL | parameters))


def edited(model, change):
    """Replace the leaf values of a model's trees."""
    old = model.boosting_
    trees = []
    for t, tree in enumerate(old.trees()):
        value = change(t, tree.value.copy()).reshape(-1, 1)
        trees.append(tree.with_values(value, tree.weight.copy(), tree.impurity.copy()))
    model.boosting_ = FittedBoosting(trees, old.start, old.link, model.schema_.n_categories, old._n_classes)
    return model


CONSTRAINED = {
    **{
        loss: (spinney.GradientBoostingRegressor, {"loss": loss, "n_estimators": 10}, np.exp(Y / 3))
        for loss in ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "log_cosh")
    },
    **{
        loss: (spinney.GradientBoostingClassifier, {"loss": loss, "n_estimators": 10}, TWO)
        for loss in ("log_loss", "exponential", "focal", "smooth_hinge")
    },
    "user loss": (
        spinney.GradientBoostingRegressor,
        {"loss": lambda y, f: np.exp(y - f) - (y - f) - 1, "n_estimators": 10},
        Y / 3,
    ),
    "folds": (spinney.GradientBoostingRegressor, {"learning_rate": 0.3, "n_iter_no_change": 2}, Y),
    "tree": (spinney.DecisionTreeRegressor, {}, Y),
    "classification tree": (spinney.DecisionTreeClassifier, {"criterion": "entropy"}, TWO),
    "surrogates": (spinney.DecisionTreeRegressor, {"missing": "surrogate"}, Y),
    "pruned": (spinney.DecisionTreeRegressor, {"ccp_alpha": 0.01}, Y),
    "extra tree": (spinney.ExtraTreeRegressor, {"random_state": 0}, Y),
    "forest": (spinney.RandomForestRegressor, {"n_estimators": 10, "random_state": 0}, Y),
    "classification forest": (spinney.RandomForestClassifier, {"n_estimators": 10, "random_state": 0}, TWO),
    "extra trees": (spinney.ExtraTreesRegressor, {"n_estimators": 10, "random_state": 0}, Y),
}


@pytest.mark.parametrize("case", CONSTRAINED)
def test_constraints_of_a_fit_are_proved(case):
    kind, parameters, y = CONSTRAINED[case]
    Z = X.copy()
    Z[::11, 0] = np.nan
    Z[::7, 2] = np.nan
    found = kind(**parameters, monotonic_cst=[1, -1, 0]).fit(Z, y).verify_constraints()
    assert found.holds is True
    assert found.columns["verdict"] == ["proved", "proved"]
    assert found.to_frame("pandas").shape == (2, 4)


@pytest.mark.parametrize("strength", [0.5, 30.0])
def test_shrunken_trees_satisfy_their_constraints(strength):
    tree = spinney.DecisionTreeRegressor(monotonic_cst=[1, 0, 0], shrinkage=strength).fit(X, Y)
    forest = spinney.RandomForestRegressor(5, monotonic_cst=[1, 0, 0], shrinkage=strength, random_state=0).fit(X, Y)
    assert tree.verify_constraints().holds is True
    assert forest.verify_constraints().holds is True


@pytest.mark.parametrize("seed", range(6))
def test_a_planted_violation_is_found(seed):
    rng = np.random.default_rng(seed)

    def perturb(t, value):
        return value if t % 4 else value + rng.normal(scale=0.5, size=len(value))

    model = edited(regressor(monotonic_cst=[1, 0, 0]).fit(X, Y), perturb)
    found = model.verify_constraints()
    worst, _ = largest_decrease(model, 0, 1, lambda rows: model.predict(np.array(rows, dtype=float)))
    assert found.holds is (worst <= 1e-12)
    for violation in found.violations.values():
        low, high = (np.array([list(row.values())], dtype=float) for row in violation.rows)
        assert low[0, 0] < high[0, 0]
        assert np.array_equal(low[0, 1:], high[0, 1:], equal_nan=True)
        assert model.predict(low)[0] == violation.predictions[0] > violation.predictions[1] == model.predict(high)[0]
        assert "violated" in str(found)


def test_a_sum_may_be_increasing_though_a_tree_is_not():
    """One tree decreases at a threshold by less than another increases there."""

    def report_of_sum(factor):
        model = regressor(n_estimators=1, max_leaf_nodes=2, learning_rate=1.0, monotonic_cst=[1]).fit(X[:, :1], Y)
        old, (tree,) = model.boosting_, model.boosting_.trees()
        model.boosting_ = FittedBoosting([tree, tree], old.start, old.link, [0], None)
        return edited(model, lambda t, value: factor * value if t else value).verify_constraints()

    assert report_of_sum(-0.5).holds is True
    assert report_of_sum(-0.5).columns["reason"] == ["the sum is monotonic, though a tree is not"]
    assert report_of_sum(-1.0).holds is True
    assert report_of_sum(-1.1).holds is False


def test_random_probes_agree():
    rng = np.random.default_rng(0)
    probes = rng.normal(size=(100_000, 3)) * 2
    further = probes.copy()
    further[:, 0] += rng.exponential(size=len(probes))
    constrained = spinney.GradientBoostingRegressor(n_estimators=30, monotonic_cst=[1, 0, 0]).fit(X, Y)
    free = spinney.GradientBoostingRegressor(n_estimators=30).fit(X, Y)
    assert constrained.verify_constraints().holds is True
    assert free.verify_constraints([1, 0, 0]).holds is False
    assert (constrained.predict(further) >= constrained.predict(probes)).all()
    assert (free.predict(further) < free.predict(probes)).any()


@pytest.mark.parametrize("unseen", ["missing", "other"])
def test_categories_and_missing_values_are_covered(unseen):
    """A tree increases for one category and decreases for another."""
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.array(["a", "b", "c"])[np.arange(150) % 3]})
    y = np.where(frame["kind"] == "b", -1, 1) * frame["size"]
    few = {"min_samples_leaf": 5, "max_leaf_nodes": 8}
    free = regressor(unseen=unseen, **few).fit(frame, y)
    found = free.verify_constraints({"size": 1})
    worst, _ = largest_decrease(free, 0, 1, lambda rows: free.predict(pd.DataFrame(rows, columns=["size", "kind"])))
    assert found.holds is False
    assert worst > 0
    low, high = found.violations["size"].rows
    assert low["kind"] == high["kind"]
    assert found.violations["size"].predictions[0] > found.violations["size"].predictions[1]
    ordered = frame.assign(grade=pd.Categorical(frame["kind"], ["c", "a", "b"], ordered=True))[["size", "grade"]]
    model = regressor(monotonic_cst={"grade": -1}).fit(ordered, Y)
    assert model.verify_constraints().holds is True
    violation = regressor(**few).fit(ordered, y).verify_constraints({"size": 1}).violations["size"]
    assert violation.rows[0]["grade"] == violation.rows[1]["grade"] in {"a", "b", "c", None}


@pytest.mark.parametrize("leaves", ["single", "vector"])
def test_each_output_has_separate_constraints(leaves):
    both = np.column_stack([Y, -Y])
    model = regressor(leaves=leaves, monotonic_cst=[[1, 0, 0], [-1, 0, 0]]).fit(X, both)
    found = model.verify_constraints()
    assert found.holds is True
    assert found.columns["output"] == [0, 1]
    assert str(found).splitlines()[1].startswith("x0 decreasing in output 1: proved")
    turned = model.verify_constraints([1, 0, 0])
    assert turned.columns["verdict"] == ["proved", "violated"]
    low, high = (np.array([list(row.values())], dtype=float) for row in turned.violations["x0, output 1"].rows)
    assert model.predict(low)[0, 1] > model.predict(high)[0, 1]
    free = regressor(leaves=leaves, warm_start=True).fit(X, both)
    free.set_params(monotonic_cst=[[-1, 0, 0], [-1, 0, 0]], n_estimators=6)
    with pytest.raises(ValueError, match="may violate monotonic_cst"):
        free.fit(X, both)


def test_multi_output_classification_continues_with_warm_start():
    pairs = np.column_stack([Y > 0, Y > 1]).astype(int)
    model = spinney.GradientBoostingClassifier(**SMALL, monotonic_cst=[1, 0, 0], warm_start=True).fit(X, pairs)
    assert model.set_params(n_estimators=6).fit(X, pairs).n_iter_ == 6


def test_each_output_of_binary_targets_is_proved_or_violated():
    pairs = np.column_stack([Y > 0, Y > 1]).astype(int)
    constraints = [[0, 0, 1], [1, -1, 0]]
    model = spinney.GradientBoostingClassifier(**SMALL, monotonic_cst=constraints).fit(X, pairs)
    found = model.verify_constraints()
    assert found.holds is True
    assert found.columns["output"] == [0, 1, 1]
    violated = edited(model, lambda t, value: value if t % 2 == 0 else -value).verify_constraints()
    assert violated.holds is False
    for key, violation in violated.violations.items():
        assert key.endswith("output 1")
        low, high = (np.array([list(row.values())], dtype=float) for row in violation.rows)
        proba = [model.predict_proba(row)[1][0, 1] for row in (low, high)]
        assert tuple(proba) == violation.predictions
        assert np.sign(proba[1] - proba[0]) == (1 if key.startswith("x1") else -1)


def test_quantiles_are_monotonic_if_all_scores_are():
    """A row's quantiles are sorted, so a proof for one score alone proves nothing."""
    several = {"loss": "quantile", "quantile": [0.2, 0.8], "n_estimators": 10}
    assert regressor(**several, monotonic_cst=[1, 0, 0]).fit(X, Y).verify_constraints().holds is True
    model = regressor(**several, monotonic_cst=[1, 0, 0]).fit(X, Y)
    decreasing = edited(model, lambda t, value: value if t % 2 else -3 * value)
    found = decreasing.verify_constraints()
    assert "proved" not in found.columns["verdict"]
    for key, violation in found.violations.items():
        low, high = (np.array([list(row.values())], dtype=float) for row in violation.rows)
        k = int(key[-1])
        first, second = violation.predictions
        assert decreasing.predict(low)[0, k] == first > second == decreasing.predict(high)[0, k]


@pytest.mark.parametrize("other", [[0, 0, 0], [-1, 0, 0], {"x1": 1}])
def test_quantiles_with_different_directions_are_rejected(other):
    first = {"x0": 1} if isinstance(other, dict) else [1, 0, 0]
    with pytest.raises(ValueError, match="quantiles of a row are sorted, so that one rises with a column"):
        regressor(loss="quantile", quantile=[0.2, 0.8], monotonic_cst=[first, other]).fit(X, Y)
    same = regressor(loss="quantile", quantile=[0.2, 0.8], monotonic_cst=[first, first]).fit(X, Y)
    assert same.verify_constraints().holds is True


@pytest.mark.parametrize("other", [[0, 0, 0], [-1, 0, 0]])
def test_quantiles_that_cross_are_not_proved_one_by_one(other):
    model = regressor(loss="quantile", quantile=[0.2, 0.8], n_estimators=10, monotonic_cst=[1, 0, 0]).fit(X, Y)
    crossing = edited(model, lambda t, value: -20 * value if t % 2 else value)
    along = np.zeros((200, 3))
    along[:, 0] = np.linspace(X[:, 0].min(), X[:, 0].max(), 200)
    assert np.diff(crossing.predict(along)[:, 0]).min() < 0
    assert "proved" not in crossing.verify_constraints([[1, 0, 0], other]).columns["verdict"]


def test_a_normal_distribution_is_verified_by_its_mean():
    free = spinney.GradientBoostingRegressor("normal", n_estimators=10).fit(X, Y)
    violation = free.verify_constraints([0, 1, 0]).violations["x1"]
    low, high = (np.array([list(row.values())], dtype=float) for row in violation.rows)
    assert free.predict(low)[0] == violation.predictions[0] > violation.predictions[1] == free.predict(high)[0]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "sklearn"])
def test_models_of_other_libraries_are_verified(library):
    pytest.importorskip(library)
    if library == "lightgbm":
        from lightgbm import LGBMRegressor

        kinds = [LGBMRegressor(n_estimators=5, monotone_constraints=c, verbose=-1) for c in ([1, 0, 0], None)]
    elif library == "xgboost":
        from xgboost import XGBRegressor

        kinds = [XGBRegressor(n_estimators=5, monotone_constraints=c, n_jobs=1) for c in ((1, 0, 0), None)]
    else:
        from sklearn.ensemble import HistGradientBoostingRegressor as HistRegressor

        kinds = [HistRegressor(max_iter=5, monotonic_cst=c) for c in ([1, 0, 0], None)]
    constrained, free = (getattr(spinney, f"from_{library}")(kind.fit(X, Y)) for kind in kinds)
    assert constrained.verify_constraints([1, 0, 0]).holds is True
    violation = free.verify_constraints([0, 1, 0]).violations["x1" if library == "sklearn" else free.schema_.names[1]]
    low, high = (np.array([list(row.values())], dtype=float) for row in violation.rows)
    assert free.predict(low)[0] > free.predict(high)[0]


def test_the_step_limit_is_reported():
    free = spinney.GradientBoostingRegressor(n_estimators=30).fit(X, Y)
    found = free.verify_constraints([0, 0, 1], max_steps=3)
    assert found.holds is None
    assert "undecided (the search takes more than 3 steps)" in str(found)


def test_unverifiable_constraints_are_rejected():
    with pytest.raises(ValueError, match="monotonic_cst does not support init=LinearRegression"):
        regressor(init=LinearRegression(), monotonic_cst=[1, 0, 0]).fit(X, Y)
    model = regressor(warm_start=True, max_bins=60).fit(X, Y)
    model.set_params(monotonic_cst=[0, 1, 0], n_estimators=6)
    with pytest.raises(ValueError, match="may violate monotonic_cst"):
        model.fit(X, Y)
    model = regressor(warm_start=True, monotonic_cst=[0, 1, 0]).fit(X, Y).set_params(n_estimators=6).fit(X, Y)
    assert model.verify_constraints().holds is True
    with pytest.raises(ValueError, match="no constraints to verify"):
        regressor().fit(X, Y).verify_constraints()
    with pytest.raises(ValueError, match="more than two classes"):
        spinney.GradientBoostingClassifier(**SMALL).fit(X, np.arange(150) % 3).verify_constraints([1, 0, 0])
    with pytest.raises(ValueError, match="monotonicity cannot be proved"):
        regressor(init=LinearRegression()).fit(X, Y).verify_constraints([1, 0, 0])
    with pytest.raises(ValueError, match="does not split on single columns"):
        spinney.RandomForestRegressor(3, oblique=5, random_state=0).fit(X, Y).verify_constraints([1, 0, 0])


# ---- every loss with every growth option ---------------------------------------------------------------------------

LOSSES = {
    **{
        loss: (spinney.GradientBoostingRegressor, {"loss": loss}, np.exp(Y / 3))
        for loss in ("squared_error", "absolute_error", "huber", "log_cosh", "quantile", "poisson", "gamma", "tweedie")
    },
    "normal": (spinney.GradientBoostingRegressor, {"loss": "normal"}, Y),
    "quantiles": (spinney.GradientBoostingRegressor, {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}, Y),
    "outputs": (spinney.GradientBoostingRegressor, {}, np.column_stack([Y, -Y])),
    "two medians": (spinney.GradientBoostingRegressor, {"loss": "absolute_error"}, np.column_stack([Y, -Y])),
    "user": (spinney.GradientBoostingRegressor, {"loss": lambda y, f: np.exp((y - f) / 3) - (y - f) / 3}, Y),
    **{
        loss: (spinney.GradientBoostingClassifier, {"loss": loss}, TWO)
        for loss in ("log_loss", "exponential", "focal", "smooth_hinge")
    },
    "multiclass": (spinney.GradientBoostingClassifier, {}, np.digitize(Y, [0, 1.5])),
    "binary outputs": (spinney.GradientBoostingClassifier, {}, np.column_stack([Y > 0, Y > 1]).astype(int)),
    **{
        loss: (spinney.GradientBoostingSurvival, {"loss": loss}, np.exp(Y / 2) * np.where(np.arange(150) % 3, 1, -1))
        for loss in ("cox", "aft")
    },
}
CUTS = {"feature": 0, "threshold": 0.1, "left": {"feature": 1, "threshold": 0.0}}
OPTIONS = {
    "plain": {},
    "linear leaves": {"linear_leaves": True},
    "DART": {"dart": {"rate": 0.4, "by": "weight"}},
    "vector": {"leaves": "vector"},
    "vector DART": {"leaves": "vector", "dart": 0.4},
    "symmetric": {"growth": "symmetric"},
    "depth": {"growth": "depth", "max_depth": 3},
    "GOSS": {"sampling": "goss"},
    "MVS": {"sampling": "gradient"},
    "forest": {"growth": {"n_parallel_trees": 3}, "subsample": 0.6},
    "forced": {"growth": {"forced_splits": CUTS}},
    "shrunken": {"regularization": {"hierarchical_shrinkage": 20.0}},
    "penalties": {"regularization": {"l1": 3.0, "max_step": 0.2}, "l2_regularization": 5.0},
    "large learning rate": {
        "regularization": {"max_step": None},
        "learning_rate": 2.0,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 1,
    },
    "groups": {"interaction_cst": "pairwise", "max_features": 0.5},
    "categories": {"categorical_features": [2]},
    "folds": {"n_estimators": "auto", "effort": 0.0, "max_bins": 16, "n_iter_no_change": 3},
}
TWO_SCORES = {
    "normal": "mean and log of the standard deviation",
    "multiclass": "multiclass classification",
}
REFITTED = ("absolute_error", "huber", "quantile", "quantiles", "two medians")


def rejection(loss, option):
    """Return a pattern of the error that rejects a loss with a growth option; None if it is supported."""
    if option == "linear leaves":
        return "which loss=.* does not have" if loss in REFITTED else "a linear leaf may fall where it must rise"
    if option in ("GOSS", "MVS") and loss in REFITTED:
        return "draws rows by the size of their gradients"
    return TWO_SCORES.get(loss, "makes the same split in all nodes of a level" if option == "symmetric" else None)


@pytest.mark.parametrize(
    ("loss", "option"),
    [
        (loss, option)
        for loss in LOSSES
        for option in OPTIONS
        if loss not in ("cox", "aft") or "leaves" not in OPTIONS[option]
    ],
)
def test_a_fit_satisfies_its_constraints_or_rejects_them(loss, option):
    kind, parameters, y = LOSSES[loss]
    Z = np.column_stack([X[:, :2], np.digitize(X[:, 2], [-1, 0, 1])])
    Z[::11, 0] = np.nan
    settings = {"n_estimators": 6, "max_leaf_nodes": 6, "min_samples_leaf": 3, "random_state": 0, "n_jobs": 1}
    model = kind(**settings | parameters | OPTIONS[option], monotonic_cst=[-1, 1, 0])
    pattern = rejection(loss, option)
    if pattern is not None:
        with pytest.raises(ValueError, match=pattern):
            model.fit(Z, y)
        return
    assert model.fit(Z, y).verify_constraints().holds is True
    if hasattr(model, "refit") and option not in (
        "DART",
        "vector DART",
        "folds",
    ):  # their trees have different learning rates
        assert model.refit(Z[::2], y[::2]).verify_constraints().holds is True
