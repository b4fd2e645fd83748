"""Boosting with default settings: folds, the mean of boosters as one model, and automatic settings."""

import runpy
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import spinney
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from spinney._boosting.boosters import mean_curve, round_robin
from spinney._boosting.options import recipe as recipe_table
from spinney._boosting.options.recipe import Recipe, resolve
from spinney._boosting.settings import BoostingSettings

RNG = np.random.default_rng(5)
X = RNG.normal(size=(240, 4))
VALUES = X[:, 0] * 2 + np.abs(X[:, 1]) + RNG.normal(size=240)
TWO = np.where(VALUES > 0.8, "yes", "no")
THREE = np.digitize(VALUES, [-0.5, 1.5])
QUICK = {"learning_rate": 0.3, "n_iter_no_change": 4, "max_leaf_nodes": 6}


def values(**parameters):
    return spinney.GradientBoostingRegressor(**(QUICK | parameters))


def classes(**parameters):
    return spinney.GradientBoostingClassifier(**(QUICK | parameters))


@pytest.mark.parametrize(("make", "y"), [(values, VALUES), (classes, TWO), (classes, THREE)])
def test_boosters_of_all_folds_are_one_model(make, y):
    model = make().fit(X, y)
    assert len(model.train_score_) == len(model.validation_score_) == model.n_iter_ == model.n_estimators_
    assert "on any fold" in model.stopped_because_
    *_, last = model.staged_predict(X)
    assert np.array_equal(last, model.predict(X))
    shap = model.shap_values(X[:5])
    scores = model.predict(X[:5]) if make is values else model.decision_function(X[:5])
    assert np.allclose(np.asarray(shap.values).sum(axis=1) + shap.base_values, scores)
    assert not hasattr(model, "oob_scores_")


@pytest.mark.parametrize(("make", "y"), [(values, VALUES), (classes, THREE)])
def test_threads_and_seeds(make, y, tmp_path):
    prints = {make(n_jobs=n).fit(X, y).fingerprint() for n in (1, 2, 5)}
    assert len(prints) == 1
    model = make().fit(X, y)
    assert prints == {model.fingerprint(), clone(model).fit(X, y).fingerprint()}
    assert make(random_state=1).fit(X, y).fingerprint() not in prints
    model.save(tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.validation_score_, model.validation_score_)
    handle = model.to_predictor()
    assert handle.predict(X[3]) == model.predict(X[3:4])[0]


def test_rows_have_weight_in_the_members_that_do_not_hold_them_out():
    """The held-out loss is that of rows that have not been seen: noise gains nothing by it."""
    noise = RNG.normal(size=240)
    model = values().fit(X, noise)
    assert model.validation_score_[-1] > 0.9 * np.var(noise)
    assert np.std(model.predict(X)) < 0.5 * np.std(noise)


def test_the_mean_of_the_folds_is_better_than_one():
    X_new = RNG.normal(size=(2000, 4))
    y_new = X_new[:, 0] * 2 + np.abs(X_new[:, 1])
    plain = spinney.GradientBoostingRegressor(n_estimators=100).fit(X, VALUES)
    model = spinney.GradientBoostingRegressor().fit(X, VALUES)
    errors = [np.mean((m.predict(X_new) - y_new) ** 2) for m in (model, plain)]
    assert errors[0] < 0.85 * errors[1]


def test_large_tables_have_fewer_folds():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3000, 2))
    for make, target, most in ((values, Z[:, 0], 1000), (classes, Z[:, 0] > 0, 3000)):
        model = make(callbacks=lambda about: about["round"] == 2, keep_best=False)
        assert model.fit(Z[:most], target[:most]).n_iter_ == 10
        assert model.fit(Z[: most - 1], target[: most - 1]).n_iter_ == 20


def test_boosters_of_small_regression_tables_alternate_unless_trees_are_set():
    def recipes(**parameters):
        model = spinney.GradientBoostingRegressor(**parameters)
        recipe = resolve(BoostingSettings.of(model), 240, 1, False)
        return [(r.max_features, r.min_samples_leaf, r.subsample) for r in map(recipe.for_booster, range(4))]

    assert recipes() == [(0.35, 10, 1.0), (0.35, 10, 0.7), (None, 1, 1.0), (None, 1, 0.7)]
    assert recipes(max_features=0.5) == [(0.5, 10, 1.0), (0.5, 10, 0.7)] * 2
    assert {leaf for _, leaf, _ in recipes(min_samples_leaf=4)} == {4}


def test_low_noise_is_learned_to_the_end():
    """A booster goes on while it saves a share of what is left, however small that is beside the first loss."""
    rng = np.random.default_rng(2)
    Z = rng.uniform(-1, 1, size=(400, 2))
    target = Z[:, 0] + Z[:, 1] ** 3
    model = spinney.GradientBoostingRegressor(n_iter_no_change=10).fit(Z[:300], target[:300])
    assert model.score(Z[300:], target[300:]) > 0.9953


def test_effort_buys_boosters_and_small_steps():
    def first_rounds(n_rows, **parameters):
        model = spinney.GradientBoostingRegressor(callbacks=lambda about: True, keep_best=False, **parameters)
        model.fit(np.tile(X, (13, 1))[:n_rows], np.tile(VALUES, 13)[:n_rows])
        return model.n_iter_, np.abs(model.boosting_.engine.value).max() * model.n_iter_

    few, many = ([first_rounds(n, effort=effort) for effort in (0, 0.5, 1)] for n in (240, 3000))
    assert [n for n, _ in few] == [5, 10, 20]
    assert [n for n, _ in many] == [3, 5, 10]
    for steps in ([step for _, step in few], [step for _, step in many]):
        assert steps[0] > 1.5 * steps[1] > 2 * steps[2]
    assert first_rounds(240, effort=1, learning_rate=0.12)[1] > 1.5 * few[1][1]
    with pytest.raises(ValueError, match="effort"):
        values(effort=2).fit(X, VALUES)


def test_the_learning_rate_of_squared_errors_rises_unless_it_is_set():
    def found(n_rows, **parameters):
        model = spinney.GradientBoostingRegressor(**parameters)
        recipe = resolve(BoostingSettings.of(model), n_rows, 1, False)
        return recipe.learning_rate, recipe.learning_rate_growth_start, recipe.n_rounds

    assert found(1000) == (0.2, 40, 200)
    assert found(1000, effort=1) == (0.1, 80, 400)
    assert found(3000) == found(100_000) == (0.1, 100, 350)
    assert found(999) == (0.08, 0, 1000)
    assert found(1000, learning_rate=0.1) == (0.1, 0, 600)
    assert found(1000, loss="absolute_error") == found(1000, early_stopping=True) == (0.15, 0, 600)
    assert found(1000, n_estimators=50) == (0.1, 0, 50)


def test_few_rows_of_classes_take_long_steps_that_grow_and_little_patience():
    def found(n_rows, n_scores, **parameters):
        recipe = resolve(BoostingSettings.of(spinney.GradientBoostingClassifier(**parameters)), n_rows, n_scores, False)
        return recipe.learning_rate, recipe.learning_rate_growth_start, recipe.n_rounds, recipe.patience

    assert found(500, 3) == found(2999, 11) == (0.4, 15, 200, 10)
    assert found(500, 1) == (0.1, 50, 500, 40)
    assert found(5000, 3) == (0.1, 0, 600, 50)
    assert found(500, 3, effort=0) == found(500, 3)
    assert found(500, 3, effort=1) == (0.2, 30, 400, 20)
    assert found(500, 3, learning_rate=0.05) == (0.05, 0, 1000, 30)
    assert found(500, 3, early_stopping=True) == (0.16, 0, 1000, 30)
    assert found(500, 3, n_iter_no_change=7) == (0.4, 15, 200, 7)


@pytest.mark.parametrize("n_scores", [1, 3, 11, 20, 100])
@pytest.mark.parametrize("n_columns", [5, 60, 1000])
def test_the_number_of_trees_of_few_rows_is_bounded(n_scores, n_columns):
    """A fit of 1,000 rows is to take half a second, however many classes there are."""
    recipe = resolve(
        BoostingSettings.of(spinney.GradientBoostingClassifier()), 1000, n_scores, False, n_columns=n_columns
    )
    assert recipe.n_folds * recipe.n_rounds <= (5000 if n_scores == 1 else 1400 if n_columns >= 60 else 2000)
    assert recipe.max_leaf_nodes <= 12
    assert recipe.max_bins <= 64
    assert recipe.max_features == (0.2 if n_columns >= (60 if n_scores > 1 else 20) else 0.5)


def test_nodes_of_two_classes_look_at_fewer_of_many_columns():
    def share(n_rows, n_columns, **parameters):
        model = spinney.GradientBoostingClassifier(**parameters)
        return resolve(BoostingSettings.of(model), n_rows, 1, False, n_columns=n_columns).max_features

    assert share(2999, 12) == share(50, 800) == 0.2
    assert share(3000, 12) == share(19_999, 12) == 0.3
    assert share(2999, 11) == share(3000, 11) == 0.5  # each of few columns may be needed beside all others
    assert share(20_000, 12) == 0.5
    assert share(500, 40, max_features=0.7) == 0.7


def test_rounds_of_many_classes_are_few():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 6))
    y = np.arange(360) % 12
    Z = centres[y] + rng.normal(scale=0.7, size=(360, 6))
    model = spinney.GradientBoostingClassifier(callbacks=lambda progress: None).fit(Z[:180], y[:180])
    assert model.n_iter_ <= 250  # of ten boosters; with steps of 0.16 there were 460
    assert model.score(Z[180:], y[180:]) > 0.65


def test_boosters_of_several_classes_take_turns_in_their_bins():
    def bins(n_scores, **parameters):
        recipe = resolve(BoostingSettings.of(spinney.GradientBoostingClassifier(**parameters)), 500, n_scores, False)
        return [recipe.for_booster(i).max_bins for i in range(5)]

    assert bins(3) == [64, 64, 24, 24, 64]
    assert bins(3, max_bins=40) == [40] * 5
    assert bins(1) == [64] * 5


def test_what_is_set_stays():
    model = values(max_leaf_nodes=2).fit(X, VALUES)
    assert model.boosting_.n_leaves == 2 * model.n_iter_
    assert values(max_features=3).fit(X, VALUES).max_features_ == 3
    assert values().fit(X, VALUES).max_features_ == 2
    plain = spinney.GradientBoostingRegressor(n_estimators=7).fit(X, VALUES)
    assert plain.n_iter_ == 7
    assert not hasattr(plain, "validation_score_")
    spelt_out = spinney.GradientBoostingRegressor(
        n_estimators=7, learning_rate=0.1, max_leaf_nodes=31, l2_regularization=0.0, subsample=1.0, max_features=None,
        max_bins=255,
    )  # fmt: skip
    assert spelt_out.fit(X, VALUES).fingerprint() == plain.fingerprint()


def test_held_out_rows_that_are_given_stop_one_booster():
    model = values().fit(X[:160], VALUES[:160], X_val=X[160:], y_val=VALUES[160:])
    assert model.n_iter_ == np.argmin(model.validation_score_) + 1
    assert model.stopped_because_ == "the held-out loss has not improved for 4 rounds"
    part = values(early_stopping=True, validation_fraction=0.3).fit(X, VALUES)
    assert part.n_iter_ == np.argmin(part.validation_score_) + 1
    assert spinney.GradientBoostingRegressor(early_stopping=False).fit(X, VALUES).n_iter_ == 100


def test_groups_are_held_out_together():
    groups = np.arange(240) // 12
    leaky = np.column_stack([X[:, 2:], groups])
    y = RNG.normal(size=20)[groups]
    patient = {"min_samples_leaf": 3, "n_iter_no_change": 20}
    apart = values(**patient).fit(leaky, y, groups=groups)
    mixed = values(**patient).fit(leaky, y)
    assert apart.validation_score_[-1] > 4 * mixed.validation_score_[-1]
    assert values().fit(leaky, y, groups=np.minimum(groups, 2)).n_iter_ > 0  # three groups: three folds
    with pytest.raises(ValueError, match="groups has a single label"):
        values().fit(leaky, y, groups=np.zeros(240))


def test_weights_offsets_constraints_and_other_losses():
    weight = np.where(np.arange(240) % 3 == 0, 0.0, 1.0)
    model = values().fit(X, np.where(weight > 0, VALUES, 1e6), weight)
    assert np.abs(model.predict(X)).max() < 20
    years = RNG.uniform(0.5, 2, size=240)
    counts = RNG.poisson(years * np.exp(X[:, 0] / 2))
    rates = values(loss="poisson").fit(X, counts, offset=np.log(years))
    assert np.allclose(rates.predict(X, offset=np.log(years)), rates.predict(X) * years)
    rising = values(monotonic_cst=[1, 0, 0, 0]).fit(X, VALUES)
    line = np.column_stack([np.linspace(-3, 3, 50), np.zeros((50, 3))])
    assert (np.diff(rising.predict(line)) >= 0).all()
    for loss in ("absolute_error", "huber", "quantile"):
        assert np.isfinite(values(loss=loss).fit(X, VALUES).predict(X)).all()
    assert classes(loss="exponential").fit(X, TWO).score(X, TWO) > 0.7
    assert classes(class_weight="balanced").fit(X, TWO).score(X, TWO) > 0.7
    assert classes(scoring="accuracy").fit(X, TWO).validation_score_.min() < -0.7
    assert values(init=LinearRegression()).fit(X, VALUES).score(X, VALUES) > 0.5


@pytest.mark.parametrize(("make", "y"), [(values, VALUES), (classes, TWO), (classes, THREE)])
def test_rows_of_weight_0_change_no_bit(make, y):
    """Wherever they stand: folds, bins and rows are drawn among those that count."""
    named = np.column_stack([X, np.arange(240) * 7 % 13])
    weight = 1 + np.arange(240) % 3 / 2
    model = make(categorical_features=[4]).fit(named, y, weight)
    places = np.sort(np.random.default_rng(1).integers(0, 241, size=50))
    more, others = (
        np.insert(named, places, named[:50] + np.array([5, 0, -5, 1, 0]), axis=0),
        np.insert(y, places, y[:50][::-1]),
    )
    again = make(categorical_features=[4]).fit(more, others, np.insert(weight, places, 0.0))
    assert again.n_iter_ == model.n_iter_
    assert np.array_equal(again.validation_score_, model.validation_score_)
    show = "predict" if make is values else "predict_proba"
    assert np.array_equal(getattr(again, show)(named), getattr(model, show)(named))


def test_a_warm_start_needs_a_number():
    model = values(warm_start=True).fit(X, VALUES)
    n_done = model.n_iter_
    with pytest.raises(ValueError, match="does not set their number"):
        model.fit(X, VALUES)
    model.set_params(n_estimators=n_done + 3, n_iter_no_change=None).fit(X, VALUES)
    assert model.n_iter_ == n_done + 3


def test_callbacks_end_all_folds_at_once(capsys):
    rounds = []
    model = values(
        callbacks=lambda about: rounds.append(about["round"]) or len(rounds) == 6, verbose=1, keep_best=False
    )
    model.fit(X, VALUES)
    assert rounds == [1, 2, 3, 4, 5, 6]
    assert model.n_iter_ == 60
    assert model.stopped_because_ == "a callback stopped the fit"
    assert "the best rounds of the 10 boosters are kept: 6, 6, 6, 6, 6, 6, 6, 6, 6, 6" in capsys.readouterr().err


@pytest.mark.parametrize("n_rows", [1, 2, 5, 9, 10, 12, 30])
def test_few_rows(n_rows):
    model = spinney.GradientBoostingRegressor().fit(X[:n_rows], VALUES[:n_rows])
    low, high = VALUES[:n_rows].min(), VALUES[:n_rows].max()
    assert ((low - 1e-9 <= model.predict(X)) & (model.predict(X) <= high + 1e-9)).mean() > 0.9


@pytest.mark.parametrize("n_rows", [10, 25, 40])
def test_a_few_rows_are_learned_from(n_rows):
    line = np.arange(n_rows, dtype=float)[:, np.newaxis]
    y = (line[:, 0] >= n_rows // 2).astype(float)
    assert np.abs(spinney.GradientBoostingRegressor().fit(line, y).predict(line) - y).mean() < 0.2


def test_thirty_rows_give_sensible_shares():
    losses = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(1000, 4))
        y = Z[:, 0] * 2 + np.abs(Z[:, 1]) + rng.normal(size=1000) > 0.8
        shares = spinney.GradientBoostingClassifier().fit(Z[:30], y[:30]).predict_proba(Z[30:])[:, 1]
        is_sure = np.abs(shares - 0.5) > 0.48  # sure of few rows, and wrong on hardly any
        assert is_sure.mean() < 0.25
        assert np.sum((shares > 0.5)[is_sure] != y[30:][is_sure]) <= 0.02 * is_sure.sum()
        assert 1e-3 < shares.min() < shares.max() < 1 - 1e-3
        rate = y[:30].mean()
        losses.append([-np.log(np.where(y[30:], p, 1 - p)).mean() for p in (shares, rate)])
    of_model, of_constant = np.mean(losses, axis=0)
    assert of_model < 0.8 * of_constant


def test_rare_classes():
    """The only row of a class is never held out; a class of two is in two folds."""
    y = np.where(np.arange(240) == 7, "once", np.where(np.isin(np.arange(240), (3, 99)), "twice", TWO))
    model = classes().fit(X, y)
    assert model.predict_proba(X).shape == (240, 4)
    assert np.isfinite(model.predict_proba(X)).all()
    each = spinney.GradientBoostingClassifier().fit(X[:12], np.arange(12))
    assert each.predict_proba(X[:12]).shape == (12, 12)


def test_the_curve_of_several_members_is_the_mean_of_what_each_has_reached():
    random = np.random.default_rng(0)
    curves = [random.random(n).tolist() for n in (7, 3, 12, 1, 5, 9, 2, 8, 4, 6, 11)]
    turns = round_robin([len(curve) for curve in curves])
    last, slow = np.array([curve[0] for curve in curves]), []
    weights = random.dirichlet(np.ones(11))
    for m, r in turns:
        last[m] = curves[m][r]
        slow.append((weights * last).sum())
    np.testing.assert_array_equal(mean_curve(curves, turns, weights), slow)


def test_the_documentation_prints_the_recipe_from_its_table():
    """The page holds a mark and no copy; building it puts every row of the table in its place."""
    docs = Path(__file__).parents[3] / "docs"
    page = (docs / "defaults.md").read_text(encoding="utf-8")
    configuration = runpy.run_path(str(docs / "conf.py"))
    printed = [page]
    configuration["print_recipe"](None, "defaults", printed)
    assert "n_rounds` = " not in page
    lines = [line for line in printed[0].splitlines() if line not in page.splitlines()]
    assert len(lines) == len(recipe_table.ROWS) + 2
    for row, line in zip(recipe_table.ROWS, lines[2:], strict=True):
        assert all(condition.description in line for condition in row.when)
        assert all(f"`{name}` = " in line for name in row.settings)
    other = [page]
    configuration["print_recipe"](None, "performance", other)
    assert other == [page]


def test_every_row_of_the_recipe_sets_what_a_recipe_has():
    names = {field.name for field in fields(Recipe)} - {"stops_early", "is_auto"}
    assert recipe_table.PLAIN.keys() == names
    for row in recipe_table.ROWS:
        assert row.settings
        assert row.settings.keys() <= names
