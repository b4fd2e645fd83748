"""Intervals, sets of classes and support of boosted models."""

import numpy as np
import pytest
import spinney
from oracle.forest_uncertainty import slow_upper_point
from oracle.saved import through_bytes
from spinney import _engine
from spinney._boosting.calibration import Calibration, error_ratio_of_mean
from spinney._boosting.learning_rows import LearningRows, split_folds

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 3))
NOISE = RNG.normal(size=300)
VALUES = X[:, 0] + NOISE * 0.5
CLASSES = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + NOISE, [-0.7, 0.7])]
NEW = RNG.normal(size=(2000, 3))
NEW_NOISE = RNG.normal(size=2000)
QUICK = {"learning_rate": 0.3, "n_iter_no_change": 3, "max_leaf_nodes": 4, "effort": 0.0}


def values(**parameters):
    return spinney.GradientBoostingRegressor(**(QUICK | parameters)).fit(X, VALUES)


def test_errors_are_of_rows_that_a_booster_has_not_seen():
    """Each row's prediction is that of the booster that held it out: noise is not learned."""
    model = values()
    known = model._calibration
    assert len(known.target) == 240  # a fifth is held out by two boosters, and as many rows by none
    assert np.mean(known.errors**2) > 1.3 * np.mean((model.predict(X) - VALUES) ** 2)
    losses = known.errors**2
    assert np.isclose(losses.mean(), model.validation_score_[-1], rtol=0.05)


@pytest.mark.parametrize("of_classes", [False, True])
def test_the_choice_of_rounds_does_not_make_errors_small(of_classes):
    """Of noise, no number of rounds is better than none, but one that is chosen on ten rows seems to be."""
    relative = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        noise, kind = rng.normal(size=(100, 4)), "Classifier" if of_classes else "Regressor"
        y = noise[:, 3] > 0 if of_classes else noise[:, 3]
        model = getattr(spinney, f"GradientBoosting{kind}")(**(QUICK | {"n_iter_no_change": 10}))
        known = model.fit(noise[:, :3], y)._calibration
        if of_classes:
            proba, positive = known.predicted[np.arange(100), y.astype(int)], np.mean(y)
            least = -positive * np.log(positive) - (1 - positive) * np.log(1 - positive)
            relative.append(-np.log(proba).mean() / least)
        else:
            relative.append(np.mean(known.errors**2) / np.var(y))
    assert np.mean(relative) > 0.99


def held_out_by(groups=None, n_folds=5):
    """Booster by row: whether it holds the row out."""
    rows = LearningRows(_engine.Table(300), VALUES, None)
    return np.array([part.weights() > 0 for _, part in split_folds(rows, n_folds, groups, False, 0, 0.2)])


def test_a_fifth_of_each_fold_is_held_out_twice():
    held = held_out_by()
    assert held.sum(axis=1).tolist() == [60] * 5  # so that boosters learn from as many rows as without
    assert np.bincount(held.sum(axis=0)).tolist() == [60, 180, 60]
    assert [(held[k] & held[k - 1]).sum() for k in range(5)] == [12] * 5
    assert np.array_equal(held_out_by(), held)
    groups = np.arange(300) // 5
    together = held_out_by(groups)
    assert set(together.sum(axis=0)) == {0, 1, 2}
    assert (together == together[:, groups * 5]).all()
    assert set(held_out_by(np.arange(300) % 7).sum(axis=0)) == {1}  # too few groups to part them further


def test_the_error_ratio_of_a_mean():
    """Errors of boosters are simulated with a common and an independent component."""
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=20_000), 0.7 * rng.normal(size=(10, 20_000))
    weight = rng.integers(1, 3, size=20_000).astype(float)
    errors = shared + own
    for n_known, n_all in ((1, 5), (1, 10), (2, 10)):
        found = error_ratio_of_mean(errors[:2], errors[:2].mean(axis=0), weight, n_known, n_all)
        truth = np.abs(errors[:n_all].mean(axis=0)).mean() / np.abs(errors[:n_known].mean(axis=0)).mean()
        assert found == pytest.approx(truth, rel=0.01)
    one = np.abs(errors[:2]) @ weight / weight.sum()
    both = np.abs(errors[:2].mean(axis=0)) @ weight / weight.sum()
    own_part = 2 * (one.mean() ** 2 - both**2)
    slow = np.sqrt((one.mean() ** 2 - own_part * 4 / 5) / one.mean() ** 2)
    assert error_ratio_of_mean(errors[:2], errors[:2].mean(axis=0), weight, 1, 5) == pytest.approx(slow)
    assert error_ratio_of_mean(np.zeros((2, 3)), np.zeros(3), np.ones(3), 1, 5) == 1.0


def test_intervals_are_those_of_the_mean_not_of_its_members():
    covered = []
    for seed in range(8):  # the coverage of one draw of 400 rows has a standard deviation of 0.06
        rng = np.random.default_rng(seed)
        Z = rng.uniform(size=(3000, 4))
        y = np.sin(9 * Z[:, 0]) * Z[:, 1] + Z[:, 2] * Z[:, 3]  # no noise: boosters differ most from each other
        model = spinney.GradientBoostingRegressor(learning_rate=0.3, n_iter_no_change=5).fit(Z[:400], y[:400])
        known = model._calibration
        assert known.error_ratio < 0.9
        ends = model.predict_interval(Z[:1], 0.8, "residual")[0]
        assert np.ptp(ends) == pytest.approx(2 * known.error_ratio * slow_upper_point(known.errors, 0.8))
        covered.append(model.coverage_report(Z[400:], y[400:], 0.8, bins=0).columns["coverage"][0])
    assert abs(np.mean(covered) - 0.8) < 0.04
    assert model.calibrate(Z[400:500], y[400:500])._calibration.error_ratio == 1.0


def test_intervals_of_few_rows_are_not_narrowed():
    """The recipe and the rounds are chosen by the errors that calibrate, which makes them small on few rows."""
    rng = np.random.default_rng(5)
    Z = rng.normal(size=(260, 4))
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] + 0.7 * rng.normal(size=260)
    ratios = {n: spinney.GradientBoostingRegressor().fit(Z[:n], y[:n])._calibration.error_ratio for n in (199, 260)}
    assert ratios[199] == 1.0 > ratios[260]


@pytest.mark.parametrize("method", ["scaled", "residual"])
def test_intervals_cover(method):
    model = values()
    report = model.coverage_report(NEW, NEW[:, 0] + NEW_NOISE * 0.5, 0.8, method, bins=3)
    assert 0.77 < report.columns["coverage"][0] < 0.9
    assert len(report.columns["rows"]) == 4
    ends = model.predict_interval(NEW, 0.8, method)
    assert ends.shape == (2000, 2)
    np.testing.assert_allclose(ends.mean(axis=1), model.predict(NEW))
    assert (model.predict_interval(NEW, 0.95, method)[:, 1] >= ends[:, 1]).all()


def test_the_margin_is_the_slow_quantile():
    model = spinney.GradientBoostingRegressor(n_estimators=5).fit(X, VALUES)
    with pytest.raises(AttributeError, match=r"predict_interval needs rows .* calibrate\(X, y\)"):
        model.predict_interval(X)
    weight = RNG.integers(0, 3, size=200).astype(float)
    y = NEW[:200, 0] + NEW_NOISE[:200]
    for given in (None, weight):
        assert model.calibrate(NEW[:200], y, given) is model
        times = np.ones(200, dtype=int) if given is None else given.astype(int)
        errors = np.repeat(np.abs(y - model.predict(NEW[:200])), times)
        margin = slow_upper_point(errors, 0.9)
        low, high = model.predict_interval(NEW[:1], 0.9, "residual")[0]
        assert high - low == pytest.approx(2 * margin)


@pytest.mark.parametrize("weighted", [False, True])
def test_no_row_has_a_say_in_its_own_spread(weighted):
    """The slow way: bins of all rows, means without the one."""
    rng = np.random.default_rng(3)
    predicted = np.sort(rng.normal(size=130))[:, np.newaxis]
    weight = rng.integers(1, 4, size=130).astype(float) if weighted else None
    known = Calibration.of(predicted, predicted[:, 0] + rng.normal(size=130), weight)
    parts, counts = np.array_split(np.arange(130), 2), np.ones(130) if weight is None else weight
    centres = [np.average(predicted[rows, 0], weights=counts[rows]) for rows in parts]
    for i in range(0, 130, 7):
        others = [rows[rows != i] for rows in parts]
        means = [np.average(known.errors[rows], weights=counts[rows]) for rows in others]
        assert known._spread_by_others[i] == pytest.approx(np.interp(predicted[i, 0], centres, means))
    same = Calibration.of(np.zeros((120, 1)), rng.normal(size=120), None)  # all predictions alike
    assert np.isfinite(same.margins(np.zeros(1), 0.9, "scaled")).all()
    one = Calibration.of(np.zeros((1, 1)), np.ones(1), None)
    assert one.margins(np.zeros(1), 0.4, "scaled") == 1.0


def test_scaled_intervals_follow_the_noise():
    rng = np.random.default_rng(1)
    Z = rng.uniform(0, 1, size=(1500, 1))
    y = rng.poisson(np.exp(3 * Z[:, 0])).astype(float)
    model = spinney.GradientBoostingRegressor("poisson", n_estimators=20).fit(Z[:500], y[:500])
    model.calibrate(Z[500:1000], y[500:1000])
    report = model.coverage_report(Z[1000:], y[1000:], bins=3)
    assert min(report.columns["coverage"][1:]) > 0.8
    ends = model.predict_interval([[0.05], [0.95]])
    assert ends[0, 0] >= 0
    assert np.ptp(ends[1]) > 2 * np.ptp(ends[0])
    later = model.predict_interval([[0.95]], offset=[np.log(2.0)])
    assert later.mean() > ends[1].mean()


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_cover(method):
    model = spinney.GradientBoostingClassifier(**QUICK).fit(X, CLASSES)
    truth = np.array(["a", "b", "c"])[np.digitize(NEW[:, 0] + NEW_NOISE, [-0.7, 0.7])]
    report = model.coverage_report(NEW, truth, 0.8, method)
    assert 0.76 < report.columns["coverage"][0] < 0.9
    sets = model.predict_set(NEW, 0.8, method)
    assert sets.shape == (2000, 3)
    if method == "aps":
        assert sets.any(axis=1).all()


def test_weights_of_classes_do_not_weigh_here():
    model = spinney.GradientBoostingClassifier(**QUICK, class_weight={"a": 9.0, "b": 1.0, "c": 1.0}).fit(X, CLASSES)
    assert model._calibration.weight is None


@pytest.mark.parametrize("unseen", ["missing", "error"])
def test_rows_unlike_those_learned_from_are_not_predicted(unseen):
    X_fit = {"size": X[:, 0], "kind": np.array(["a", "b"])[(X[:, 1] > 0).astype(int)]}
    rows = {"size": [0.0, 99.0, 0.5], "kind": ["a", "b", "z"]}
    plain = {"n_estimators": 2, "unseen": unseen}
    model = spinney.GradientBoostingRegressor(**plain).fit(X_fit, VALUES)
    first = model.predict({"size": [0.0, 99.0], "kind": ["a", "b"]})
    for again in (model, through_bytes(model)):
        assert np.array_equal(again.predict_or_abstain(rows), [first[0], np.nan, np.nan], equal_nan=True)
    assert np.isnan(model.predict_or_abstain({"size": [99.0], "kind": ["a"]})).all()
    shifted = model.predict_or_abstain(rows, offset=[1.0, 0.0, 0.0])
    assert shifted[0] == pytest.approx(first[0] + 1)
    if unseen == "missing":
        assert np.array_equal(model.predict_or_abstain(rows, max_outside=1), model.predict(rows))
    of_classes = spinney.GradientBoostingClassifier(**plain).fit(X_fit, CLASSES)
    assert of_classes.predict_or_abstain(rows).tolist() == [
        of_classes.predict({"size": [0.0], "kind": ["a"]})[0],
        None,
        None,
    ]
    two = spinney.GradientBoostingRegressor(**plain).fit(X_fit, np.column_stack([VALUES, VALUES]))
    assert np.isnan(two.predict_or_abstain(rows)).tolist() == [[False] * 2, [True] * 2, [True] * 2]
    several = spinney.GradientBoostingRegressor("quantile", quantile=[0.1, 0.9], n_estimators=2).fit(X, VALUES)
    assert several.predict_or_abstain(np.full((2, 3), 99.0)).shape == several.predict(X[:2]).shape
    with pytest.raises(ValueError, match="max_outside must be a number of columns, at least 0, not -1"):
        model.predict_or_abstain(rows, max_outside=-1)
    with pytest.raises(ValueError, match="X and offset must have one row each"):
        model.predict_or_abstain(rows, offset=np.zeros(4))
    with pytest.raises(ValueError, match="which this model does not store"):
        model.predict_or_abstain(rows, min_rows=2)
    forest = spinney.RandomForestRegressor(n_estimators=2, random_state=0).fit(X, VALUES)
    with pytest.raises(ValueError, match="offset is added to the scores of boosting"):
        forest.predict_or_abstain(X[:3], offset=np.zeros(3))


def test_support_names_what_was_not_seen():
    X_fit = {"size": X[:, 0], "kind": np.array(["a", "b"])[(X[:, 1] > 0).astype(int)]}
    model = spinney.GradientBoostingRegressor(n_estimators=2).fit(X_fit, VALUES)
    found = model.predict_support({"size": [0.0, 99.0, np.nan], "kind": ["a", "a", "z"]})
    assert found.reason.tolist() == [["", ""], ["above", ""], ["missing", "unseen"]]
    assert found.effective_rows is None


@pytest.mark.parametrize("make", [values, lambda: spinney.GradientBoostingClassifier(**QUICK).fit(X, CLASSES)])
def test_files_keep_it(make):
    model = make()
    again = through_bytes(model)
    if hasattr(model, "classes_"):
        assert np.array_equal(again.predict_set(NEW), model.predict_set(NEW))
    else:
        assert np.array_equal(again.predict_interval(NEW), model.predict_interval(NEW))
    assert np.array_equal(again.predict_support(NEW).reason, model.predict_support(NEW).reason)


def test_refusals():
    model = values()
    with pytest.raises(ValueError, match="method must be 'scaled' or 'residual', not 'jackknife'"):
        model.predict_interval(X, method="jackknife")
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        model.predict_interval(X, 90)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        model.calibrate(X, VALUES, np.zeros(300))
    stopped = spinney.GradientBoostingRegressor(n_estimators=5, early_stopping=True).fit(X, VALUES)
    assert not hasattr(stopped, "predict_interval")
    assert not hasattr(stopped, "coverage_report")


@pytest.mark.parametrize("of_classes", [False, True])
def test_some_boosters_of_a_blend_may_have_combined_columns(of_classes):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2200, 5))
    y = table[:, 0] + table[:, 2] * table[:, 3] + rng.normal(size=2200)
    y = y > 1 if of_classes else y
    kind = "Classifier" if of_classes else "Regressor"
    model = getattr(spinney, f"GradientBoosting{kind}")(random_state=0).fit(table[:1200], y[:1200])
    assert model.schema_.pool is not None
    if of_classes:
        covered = model.predict_set(table[1200:], 0.9)[np.arange(1000), y[1200:].astype(int)]
    else:
        lower, upper = model.predict_interval(table[1200:], 0.9).T
        covered = (lower <= y[1200:]) & (y[1200:] <= upper)
    assert 0.86 < covered.mean() < 0.94
