"""Rows of one group stay together, and with time the latest are held out, in every split that is made inside."""

import numpy as np
import pytest
import spinney
from sklearn.model_selection import TimeSeriesSplit
from spinney._boosting import fit
from spinney._boosting.learning_rows import split_folds

RNG = np.random.default_rng(4)
N = 200
GROUP = np.repeat(np.arange(40), 5)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + RNG.normal(size=40)[GROUP]
LABELS = np.where(Y > 0, "yes", "no")
TIME = np.datetime64("2024-01-01") + RNG.permutation(N)


class Spy:
    """A metric that notes which rows it was shown."""

    def __init__(self):
        self.rows = None

    def __call__(self, model, X, y):
        self.rows = X
        return 0.0


ESTIMATORS = {
    "boosting": (spinney.GradientBoostingRegressor, {"n_estimators": 2, "early_stopping": True}, Y),
    "boosting with defaults": (spinney.GradientBoostingRegressor, {"callbacks": lambda about: True}, Y),
    "boosting of classes": (spinney.GradientBoostingClassifier, {"n_estimators": 2, "early_stopping": True}, LABELS),
    "functional": (spinney.FunctionalBoostingRegressor, {"n_estimators": 2, "early_stopping": True}, Y),
    "adaboost": (spinney.AdaBoostClassifier, {"n_estimators": 2, "early_stopping": True}, LABELS),
}


def held_out_rows(kind, parameters, y, **given):
    """Rows that a fit holds out, as its metric sees them."""
    spy = Spy()
    kind(**parameters, scoring=spy, random_state=0).fit(X, y, **given)
    return np.flatnonzero((X[:, None, :] == np.asarray(spy.rows)[None]).all(axis=2).any(axis=1))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_latest_rows_are_held_out(name):
    held = held_out_rows(*ESTIMATORS[name], time=TIME)
    assert 0 < len(held) < N / 2
    assert TIME[held].min() > np.delete(TIME, held).max()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_groups_are_held_out_together(name):
    held = held_out_rows(*ESTIMATORS[name], groups=GROUP)
    assert 0 < len(held) < N / 2
    assert not set(GROUP[held]) & set(np.delete(GROUP, held))


@pytest.mark.parametrize("of_classes", [False, True])
def test_no_fold_of_a_default_fit_splits_a_group(of_classes, monkeypatch):
    """Those that stop boosters, calibrate them and tell how far they differ are the same."""
    seen = []

    def spy(*given, **more):
        seen.extend(split_folds(*given, **more))
        return seen

    monkeypatch.setattr(fit, "split_folds", spy)
    kind = spinney.GradientBoostingClassifier if of_classes else spinney.GradientBoostingRegressor
    kind(effort=0.0, n_iter_no_change=2).fit(X, LABELS if of_classes else Y, groups=GROUP)
    assert len(seen) >= 5
    for training, validation in seen:
        held = validation.weights() > 0
        assert 0 < held.sum() < N / 2
        assert not (held & (training.weights() > 0)).any()
        assert all(len(set(held[g == GROUP])) == 1 for g in range(40))


def test_intervals_cover_groups_that_are_new():
    """A column gives groups away, and all of a group have one value: known groups are no measure of new ones."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    labels = np.repeat(np.arange(100), 4)
    table, new = np.column_stack([labels, rng.normal(size=400)]), np.column_stack([np.arange(100, 200), np.zeros(100)])
    covered, options = [], {"max_leaf_nodes": 30, "min_samples_leaf": 1, "linear_leaves": False}  # no extrapolation
    for groups in (None, labels):
        model = spinney.GradientBoostingRegressor(effort=0.0, n_iter_no_change=5, **options)
        model.fit(table, values[labels], groups=groups)
        covered.append(model.coverage_report(new, values[100:], 0.9, "residual", bins=0).columns["coverage"][0])
    assert covered[0] < 0.7
    assert covered[1] > 0.8


def test_moments_that_are_the_same_stay_together():
    month = TIME.astype("datetime64[M]")
    held = held_out_rows(*ESTIMATORS["boosting"], time=month)
    assert set(month[held]) & set(np.delete(month, held)) == set()


@pytest.mark.parametrize("name", ["boosting", "functional", "adaboost"])
def test_time_is_refused_where_nothing_is_held_out(name):
    kind, parameters, y = ESTIMATORS[name]
    plain = kind(**(parameters | {"early_stopping": False}))
    with pytest.raises(ValueError, match="time determines that the latest rows are held out, but no rows are"):
        plain.fit(X, y, time=TIME)
    with pytest.raises(ValueError, match="time and groups both determine"):
        kind(**parameters).fit(X, y, time=TIME, groups=GROUP)
    with pytest.raises(ValueError, match="Pass one time per row"):
        kind(**parameters).fit(X, y, time=TIME[:5])
    with pytest.raises(ValueError, match=r"time is missing in 1 row\(s\), the first of which is row 3"):
        kind(**parameters).fit(X, y, time=np.where(np.arange(N) == 3, np.datetime64("NaT"), TIME))


def test_one_booster_of_time_is_the_plain_one():
    given = {"n_estimators": 5, "early_stopping": True, "random_state": 0}
    late = np.sort(TIME)[-20] <= TIME
    one = spinney.GradientBoostingRegressor(**given).fit(X, Y, time=TIME)
    other = spinney.GradientBoostingRegressor(**given).fit(X, Y, (~late).astype(float), X_val=X[late], y_val=Y[late])
    np.testing.assert_allclose(one.validation_score_, other.validation_score_)


def test_folds_of_time_are_those_of_a_splitter():
    """Pruning and stacking take the order of time from a splitter."""
    splitter = TimeSeriesSplit(3)
    tree = spinney.DecisionTreeRegressor(prune="cv", cv=splitter, random_state=0).fit(X, Y)
    assert tree.get_n_leaves() >= 1
    members = [("tree", spinney.DecisionTreeRegressor(max_depth=2))]
    assert np.isfinite(spinney.StackingRegressor(members, cv=splitter).fit(X, Y).predict(X)).all()


def test_bootstrap_samples_draw_groups_as_a_whole(monkeypatch):
    tree = spinney.DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, Y)
    drawn = []
    fit = spinney.DecisionTreeRegressor.fit

    def spy(self, X, y, weight=None, **more):
        if len(X) == N:  # not the stumps that look for runners-up
            drawn.append(weight)
        return fit(self, X, y, weight, **more)

    monkeypatch.setattr(spinney.DecisionTreeRegressor, "fit", spy)
    alone = spinney.fragility(tree, X, Y, n_bootstraps=5, random_state=0)
    assert any(len(set(weight[g == GROUP])) > 1 for weight in drawn for g in range(40))
    drawn.clear()
    found = spinney.fragility(tree, X, Y, groups=GROUP, n_bootstraps=5, random_state=0)
    assert all(len(set(weight[g == GROUP])) == 1 for weight in drawn for g in range(40))
    assert len(found) == len(alone)


def test_bias_and_variance_hold_out_groups():
    """A model that memorises each group has a large error on other groups."""
    name = np.column_stack([GROUP, X[:, 1]]).astype(float)
    y = RNG.normal(size=40)[GROUP]
    given = {"n_repeats": 10, "random_state": 0, "n_jobs": 1}
    tree = spinney.DecisionTreeRegressor()
    alone = spinney.bias_variance(tree, name, y, **given)
    together = spinney.bias_variance(tree, name, y, groups=GROUP, **given)
    error = [found.to_frame("pandas")["error"].iloc[0] for found in (alone, together)]
    assert error[1] > 3 * error[0]
    with pytest.raises(ValueError, match="groups requires X and y"):
        spinney.bias_variance(tree, groups=GROUP, generator=lambda rng, n: (X, Y))
